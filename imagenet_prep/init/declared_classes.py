"""The classes that init declares: their order and first label, from the data and the files next
to it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import LARGEST_NUMBER
from imagenet_prep.init.name_files import find_name_files
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.init.written_files import CLASSES, written_file, written_path
from imagenet_prep.recipes.class_names import read_names
from imagenet_prep.recipes.classes import Classes
from imagenet_prep.recipes.names_of_classes import NamesOfClasses
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_lines import block, flow_list
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.text import listed, parse_whole

MOST_LISTED = 200
"""Classes that a recipe lists itself; more have a file of their own."""

_FIRST = "the number of the first class in every split"
_KINDS = ("folders", "files", "tar")
"""The sources whose classes a recipe lists."""


class ClassList(Struct, frozen=True):
    """The keys of a recipe that declare its classes,
    and the file of their names, if they are many.
    """

    text: str = ""
    files: Mapping[Path, bytes] = {}


def declare_classes(dataset: RecipeDataset, proposal: Proposal, target: Path) -> ClassList:
    """The classes in order and the first label, for classes that are known by their names."""
    classes = dataset.classes
    number = first_number(classes, proposal)
    if number is not None:
        return ClassList(block("first_label", number, _FIRST))
    if not classes.names or proposal.kind not in _KINDS:
        return ClassList()
    if _have_numbers(classes, proposal):
        are_ids = max(classes.numbers) > LARGEST_NUMBER
        return _list_classes(classes.names, 0, target) if are_ids else ClassList()
    lowest = min(classes.numbers)
    if classes.numbers != tuple(range(lowest, lowest + len(classes.names))):
        return ClassList()
    return _list_classes(classes.names, lowest, target)


def _list_classes(names: Sequence[str], number: int, target: Path) -> ClassList:
    """The classes with these names, in the recipe or in a file next to it.

    ``number`` is that of the first class.
    """
    first_label = block("first_label", number, _FIRST)
    note = "in the order of their labels, for all splits"
    if len(names) <= MOST_LISTED or not all(map(_can_be_line, names)):
        return ClassList(f"classes: {flow_list(names)}   # {note}\n{first_label}")
    path = written_file(target, CLASSES)
    key = block("classes", written_path(target, CLASSES), f"{len(names):,} names, {note}")
    content = "".join(f"{name}\n" for name in names).encode()
    return ClassList(f"{key}\n{first_label}", {path: content})


def _can_be_line(name: str) -> bool:
    """Whether a file of names can have a name in a line."""
    return name == name.strip() and not re.search(r"[\t\r\n]", name)


def first_number(classes: Classes, proposal: Proposal) -> int | None:
    """The number of the first class that the recipe declares, for classes that are numbers;
    None for others.
    """
    if proposal.first_label is not None:
        return proposal.first_label
    if not classes.names or proposal.kind not in _KINDS or not _have_numbers(classes, proposal):
        return None
    lowest = min(classes.numbers)
    if lowest < 0 or max(classes.numbers) > LARGEST_NUMBER:
        return None
    return int(lowest == 1)  # sets count from 0 or from 1, and the first classes may have no image


def _have_numbers(classes: Classes, proposal: Proposal) -> bool:
    """Whether the labels are numbers, or numbers of a table, which stand as they are."""
    if classes.is_numbered:
        return True
    labels = proposal.table.labels if proposal.table is not None else None
    return any(isinstance(label, int) for label in flat_labels(labels or ()))


def hot_classes(proposal: Proposal) -> str:
    """The classes of one-hot columns: they are numbered as the columns are,
    and one may have no image.
    """
    names = proposal.table.options.get("one_hot") if proposal.table is not None else None
    return f"classes: {flow_list(names)}" if names else ""


# the order of a file ------------------------------------------------------------------------------


def order_of_file(dataset: RecipeDataset, inspection: Inspection) -> tuple[str, list[str]]:
    """The key for classes in the order of the only file that gives one, such as class_indices.json;
    and its note.

    A file may have classes that no image is of, up to as many as there are of others: they keep
    their numbers.
    """
    names = dataset.classes.names
    orders = _find_orders(inspection, set(names))
    if not orders or (len(orders) == 1 and names in orders):
        return "", []
    ordered_names, name = next(iter(orders.items()))
    is_sure = _NUMBERED.search(base_name(name).lower()) is not None
    if is_sure and len(orders) == 1 and len(ordered_names) <= 2 * len(names):
        return f"classes: {flow_list(ordered_names)}", [f"{name} numbers the classes"]
    return "", _notes_on_orders(orders, names)


def _notes_on_orders(orders: Mapping[tuple[str, ...], str], names: tuple[str, ...]) -> list[str]:
    """The notes on files whose order of the classes is not used."""
    notes: list[str] = []
    for order, file_name in orders.items():
        known_names = tuple(class_name for class_name in order if class_name in names)
        if order == names:
            continue
        difference = "another order of the classes"
        if known_names == names:
            difference = "other classes too"
        notes.append(f"{file_name} has {difference}, not used: {listed(order)}")
    return notes


_NUMBERED = re.compile(r"class|label|categor|idx|index|\.names$|\.json$|\.pbtxt$")
"""Names of files whose order is that of the numbers;
Tiny ImageNet's wnids.txt is in no order that readers keep.
"""


def _find_orders(inspection: Inspection, class_names: set[str]) -> dict[tuple[str, ...], str]:
    """The orders of all classes that files have, and the first file with each."""
    orders: dict[tuple[str, ...], str] = {}
    if all(name.isdigit() for name in class_names):
        return orders
    for name in find_name_files(inspection):
        path = inspection.folder / name
        with contextlib.suppress(InputError, OSError):
            order = _order_in(read_names(path, path.read_bytes()))
            if class_names <= set(order):
                orders.setdefault(tuple(order), name)
    return orders


def _order_in(names: NamesOfClasses) -> list[str]:
    """The names in the order of their numbers from 0 or 1, or of the lines;
    none if there is no such order.
    """
    if not names.by_id:
        are_distinct = len(set(names.in_order)) == len(names.in_order)
        return list(names.in_order) if are_distinct else []
    number_by_name: dict[str, int] = {}
    for text, name in names.by_id.items():
        number = parse_whole(text)
        if number is not None:
            number_by_name[name] = number
    numbers = sorted(number_by_name.values())
    for first in (0, 1):
        if numbers == list(range(first, first + len(names.by_id))):
            return sorted(number_by_name, key=lambda name: number_by_name[name])
    return []
