"""The classes that init declares: their order, first label and names,
from the data and the files next to it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import LARGEST_NUMBER
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.init.written_files import ANOTHER_NAME, CLASSES, written_file, written_path
from imagenet_prep.recipes.class_names import NamesOfClasses, read_names, renamed
from imagenet_prep.recipes.classes import Classes
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_lines import block, flow, path_below, place_in_recipe
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.text import listed, number_of

_MOST_CLASSES = 200
"""Classes that a recipe lists itself; more have a file of their own."""


class ClassList(Struct, frozen=True):
    """The keys of a recipe that declare its classes,
    and the file of their names, if they are many.
    """

    text: str = ""
    files: Mapping[Path, bytes] = {}


def declare_classes(dataset: RecipeDataset, proposal: Proposal, target: Path) -> ClassList:
    """The classes in order and the first label, for classes that are known by their names.

    Raises:
        UsageError: they are so many that they need a file, and it exists.
    """
    classes = dataset.classes
    first_number = _first_number(classes, proposal)
    if first_number is not None:
        return ClassList(block("first_label", first_number, _FIRST))
    if not classes.names or proposal.kind not in _KINDS:
        return ClassList()
    are_numbers = _are_numbers(proposal) or classes.is_numbered
    are_ids = are_numbers and max(classes.numbers) > LARGEST_NUMBER
    least = 0 if are_ids else min(classes.numbers)
    if are_numbers and not are_ids:
        return ClassList()
    if not are_ids and classes.numbers != tuple(range(least, least + len(classes.names))):
        return ClassList()
    first = block("first_label", least, _FIRST)
    note = "in the order of their labels, for all splits"
    names = list(classes.names)
    can_be_lines = all(name == name.strip() and not re.search(r"[\t\r\n]", name) for name in names)
    if len(names) <= _MOST_CLASSES or not can_be_lines:
        listing = f"[{', '.join(map(flow, names))}]"
        return ClassList(f"classes: {listing}   # {note}\n{first}")
    path = written_file(target, CLASSES)
    if path.exists():
        raise UsageError(
            f"{path} already exists", "expected a new file for the names of classes", ANOTHER_NAME
        )
    key = block("classes", written_path(target, CLASSES), f"{len(names):,} names, {note}")
    content = "".join(f"{name}\n" for name in names).encode()
    return ClassList(f"{key}\n{first}", {path: content})


_FIRST = "the number of the first class in every split"
_KINDS = ("folders", "files", "tar")
"""The sources whose classes a recipe lists."""


def _first_number(classes: Classes, proposal: Proposal) -> int | None:
    """The number of the first class that the recipe declares, for classes that are numbers;
    None for others.
    """
    if proposal.first_label is not None:
        return proposal.first_label
    are_numbers = classes.is_numbered or _are_numbers(proposal)
    if not are_numbers or not classes.names or proposal.kind not in _KINDS:
        return None
    least = min(classes.numbers)
    if least < 0 or max(classes.numbers) > LARGEST_NUMBER:
        return None
    return int(least == 1)  # sets count from 0 or from 1, and the first classes may have no image


def hot_classes(proposal: Proposal) -> str:
    """The classes of one-hot columns: they are numbered as the columns are,
    and one may have no image.
    """
    names = proposal.table.options.get("one_hot") if proposal.table is not None else None
    return f"classes: [{', '.join(map(flow, names))}]" if names else ""


def order_of_file(dataset: RecipeDataset, inspection: Inspection) -> tuple[str, list[str]]:
    """The key for classes in the order of the only file that gives one, such as class_indices.json;
    and its note.

    A file may have classes that no image is of, up to as many as there are of others: they keep
    their numbers.
    """
    names = set(dataset.classes.names)
    orders: dict[tuple[str, ...], str] = {}
    for where in () if all(name.isdigit() for name in names) else _name_files(inspection):
        with contextlib.suppress(InputError, OSError):
            order = _order_in(
                read_names(inspection.folder / where, (inspection.folder / where).read_bytes())
            )
            if names <= set(order):
                orders.setdefault(tuple(order), where)
    own = dataset.classes.names
    if not orders or (len(orders) == 1 and own in orders):
        return "", []
    notes = [
        f"{where} has another order of the classes, not used: {listed(order)}"
        for order, where in orders.items()
    ]
    ordered_names, where = next(iter(orders.items()))
    is_sure = _NUMBERED_HERE.search(where.rpartition("/")[2].lower()) is not None
    if len(orders) > 1 or len(ordered_names) > 2 * len(names) or not is_sure:
        return "", notes
    return f"classes: [{', '.join(map(flow, ordered_names))}]", [f"{where} numbers the classes"]


_NUMBERED_HERE = re.compile(r"class|label|categor|idx|index|\.names$|\.json$|\.pbtxt$")
"""Names of files whose order is that of the numbers;
Tiny ImageNet's wnids.txt is in no order that readers keep.
"""


def _order_in(names: NamesOfClasses) -> list[str]:
    """The names in the order of their numbers from 0 or 1, or of the lines;
    none if there is no such order.
    """
    if not names.by_id:
        return list(names.in_order) if len(set(names.in_order)) == len(names.in_order) else []
    numbers = {
        name: int(number)
        for number, name in names.by_id.items()
        if number.isascii() and number.isdigit()
    }
    counted = sorted(numbers.values())
    if (
        not counted
        or counted[0] > 1
        or counted != list(range(counted[0], counted[0] + len(names.by_id)))
    ):
        return []
    return sorted(numbers, key=lambda name: numbers[name])


def _are_numbers(proposal: Proposal) -> bool:
    """Whether the labels are numbers of a table, which stand as they are."""
    table = proposal.table
    values = flat_labels(table.labels or ()) if table is not None else []
    return any(isinstance(value, int) for value in values)


class NamedClasses(Struct, frozen=True):
    """The key of a recipe that names its classes, the classes under these names,
    and what to tell of them.
    """

    text: str
    classes: Classes
    evidence: tuple[str, ...] = ()


def name_classes_of(
    dataset: RecipeDataset,
    proposal: Proposal,
    inspection: Inspection | None,
    target: Path,
    asked: InitOptions,
) -> NamedClasses:
    """The names of classes that are ids: of the file that --names says, of another column, or of
    the only such file.

    Raises:
        UsageError: the file that --names says is not there.
        InputError: it lacks the name of a class.
    """
    classes = dataset.classes
    if asked.names is not None:
        if not asked.names.is_file():
            raise UsageError(
                f"{asked.names} is not there", "expected the file of the names of classes"
            )
        path = asked.names.resolve()
        where = place_in_recipe(path, target)
        found = read_names(path, path.read_bytes()).names_of(
            classes.names, _first_number(classes, proposal)
        )
        if lacking := [name for name in classes.names if name not in found]:
            what = (
                f"{asked.names} names {len(found):,} of "
                f"{number_of(len(classes.names), 'class', 'classes')}"
            )
            raise InputError(
                f"{what}: {listed(lacking)} has no name there", "expected a name for each class"
            )
        note = "the name of each class, by its id"
        return NamedClasses(block("class_names", where, note), renamed(classes, found))
    names = proposal.table.names if proposal.table is not None else {}
    if names and set(names) == set(classes.names):
        text = f"class_names: {flow(dict(names))}   # by the numbers of the table"
        if len(names) <= _MOST_CLASSES:
            return NamedClasses(text, renamed(classes, names))
    has_words = classes.texts != classes.names  # the source knows them, from a file of its own
    if inspection is None or has_words:
        return NamedClasses("", classes)
    return _found_names(classes, _first_number(classes, proposal), inspection, target)


def _found_names(
    classes: Classes, first_number: int | None, inspection: Inspection, target: Path
) -> NamedClasses:
    """The only file of the folder that names all classes:
    taken if it says which name is of which id.
    """
    candidates: dict[str, NamesOfClasses] = {}
    if not classes.names:
        return NamedClasses("", classes)
    for name in _name_files(inspection):
        with contextlib.suppress(InputError, OSError):
            names = read_names(inspection.folder / name, (inspection.folder / name).read_bytes())
            found = names.names_of(classes.names, first_number)
            if (
                len(found) == len(classes.names)
                and not names.are_ids
                and any(key != text for key, text in found.items())
            ):
                candidates[name] = names
    if len(candidates) != 1:
        ways = [_with_names(inspection, target, name) for name in candidates]
        return NamedClasses("", classes, tuple(f"names of classes: {way}" for way in ways))
    where, names = next(iter(candidates.items()))
    is_whole = bool(names.by_id) or len(names.in_order) == len(classes.names)
    if not is_whole:
        way = _with_names(inspection, target, where)
        return NamedClasses("", classes, (f"{where} may have the names of the classes: {way}",))
    text = block(
        "class_names",
        path_below(place_in_recipe(inspection.folder, target), where),
        "the name of each class, by its id",
    )
    count = number_of(len(classes.names), "class", "classes")
    named = renamed(classes, names.names_of(classes.names, first_number))
    return NamedClasses(text, named, (f"{where} names all of {count}",))


def _with_names(inspection: Inspection, target: Path, name: str) -> str:
    """The command that takes a file of names, and writes another recipe."""
    output = target.with_name(f"{target.stem}-named{target.suffix}")
    return inspection.options.command(
        inspection.folder, names=inspection.folder / name, output=output
    )


_NAME_FILES = (".json", ".txt", ".csv", ".tsv", ".pbtxt", ".names")
_LARGEST_NAMES = 1 << 22
_MOST_NAME_FILES = 50


def _name_files(inspection: Inspection) -> list[str]:
    """The files that may have the names of classes:
    the ones without another use, the nearest first.
    """
    known = {name for names in inspection.annotations.values() for name in names}
    tables = (
        table.where for table in (*inspection.labels, *inspection.partial) if table.has_labels
    )
    known |= {where for where in tables if not where.endswith(".json")}
    listing = inspection.listing
    sizes = zip(listing.names, listing.lengths.tolist(), strict=True)
    names = [
        name
        for name, size in sizes
        if name.lower().endswith(_NAME_FILES) and size <= _LARGEST_NAMES
    ]
    return sorted((name for name in names if name not in known), key=lambda name: name.count("/"))[
        :_MOST_NAME_FILES
    ]
