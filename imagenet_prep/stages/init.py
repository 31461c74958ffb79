"""Inspects a folder and writes a recipe for its layout, with a comment at each choice."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import NAME, command, escaped, quoted
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.asked import InitOptions
from imagenet_prep.recipes.asked_columns import refuse_unused_columns
from imagenet_prep.recipes.asked_splits import check_asked
from imagenet_prep.recipes.class_names import NamesOfClasses, read_names, renamed
from imagenet_prep.recipes.columns import RESERVED, Content, becoming_jpeg, is_of
from imagenet_prep.recipes.formats import FORMATS
from imagenet_prep.recipes.inspection import Inspection, inspect_folder
from imagenet_prep.recipes.label_columns import LARGEST_NUMBER
from imagenet_prep.recipes.labels import Classes, labels_in_words
from imagenet_prep.recipes.labels_file import flat_labels
from imagenet_prep.recipes.layouts import Proposal, choose_layout, known_layouts
from imagenet_prep.recipes.layouts.universal_table import choose_table
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.mask_names import folder_around
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.row_tables import ENDINGS, is_table
from imagenet_prep.recipes.schema import Recipe, Source
from imagenet_prep.recipes.written_files import TABLE, contents_of, list_end, saved, written_path
from imagenet_prep.sources.patterns import literal
from imagenet_prep.sources.tars import noun_of
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing
from imagenet_prep.text import listed, number_of

SHARES = {"train": 0.9, "validation": 0.1}
"""The splits proposed for a set without splits."""

FEWEST = 100
"""The smallest set that is split."""

_MOST_NAMED = 20  # tars that a recipe lists one by one


def describe(proposal: Proposal, classes: int) -> str:
    """The findings as one line."""
    what = {"image": "images", "pixels": "images, as numbers", "array": "arrays"}[proposal.content]
    text = f"{len(proposal.names):,} {what}"
    if classes:
        text += f" in {classes:,} classes"
    named = list(dict.fromkeys([*proposal.places, *proposal.splits.values(), *proposal.lists, *proposal.divided]))
    if named:
        text += f", in {' and '.join(named)}"
    if proposal.kind == "tar":
        archives = proposal.paths[""]
        text += f", in {number_of(len(archives), noun_of(archives))}"
    return text + (f", with {proposal.table.place}" if proposal.table else "")


def render_recipe(proposal: Proposal, folder: Path, recipe: Path, asked: InitOptions | None = None) -> str:
    """The text of a recipe for a folder, for the file ``recipe``, without its classes and its record."""
    asked = asked or InitOptions()
    where = _where(folder, recipe)
    named = "the splits, each with a folder per class" if proposal.splits else "a folder per class"
    table = proposal.table if proposal.kind in ("files", "folders", "tar") else None
    notes = {"folders": named, "files": "patterns of the images"}
    blocks = [_block("source", _source(proposal, where), notes.get(proposal.kind, "read in place"))]
    blocks[-1] += "".join(f"\n# {escaped(remark)}" for remark in proposal.remarks)
    if table:
        names = table.table.columns
        columns = f", with the {'column' if len(names) == 1 else 'columns'} {', '.join(names)}" if names else ""
        said: Any = _below(where, table.where)
        if table.files:
            said = {split: [_below(where, name) for name in names] for split, names in table.files.items()}
        said = {"file": said, **table.options} if table.options or table.files else said
        blocks.append(_block("labels", said, f"{len(table.table.paths):,} lines{columns}"))
        if not table.has_labels:
            blocks[-1] += "\n# all columns become features; init with --label COLUMN makes one of them the class"
    if asked.strip:
        blocks.append(_block("strip", asked.strip, "taken off every path in tables, lists and annotation files"))
    if proposal.written_labels:
        several = {"several": proposal.several} if proposal.several else {}
        said = {"file": written_path(recipe, TABLE), "unlabelled": "skip", **several}
        blocks.append(_block("labels", said, "written by init, from the folders and their lists"))
    for key, value in proposal.annotations.items():
        blocks.append(_block(key, {name: _annotation(where, name, each) for name, each in value.items()}))
        if value.get("polygons") == "masks":
            blocks[-1] += (
                "\n# polygons: masks makes a PNG of each outline, which costs time and space; boxes leaves them out"
            )
    if proposal.clips_boxes:
        blocks.append(_block("boxes_outside", "clip", "impossible boxes; drop leaves all of them out"))
    blocks += [
        _block("content", proposal.content, _CONTENT_NOTES[proposal.content]),
        _render_splits(proposal, where, asked),
        "shard_size: 100MB   # files of about this size, at least one; or shards: N",
        "compression: none   # or gzip, zlib",
        "shuffle: true   # the same order every time\nseed: 12345",
    ]
    return "\n\n".join(blocks) + "\n"


_CONTENT_NOTES: dict[Content, str] = {
    "image": "images are kept as they are; `resize: 256` makes them smaller",
    "pixels": "images are decoded to numbers; min_val and max_val would rescale them to [0, 1]",
    "array": "min_val and max_val would rescale them to [0, 1]",
}


# YAML ----------------------------------------------------------------------------------------------------------


def _block(key: str, value: Any, note: str = "") -> str:
    """A key of the recipe with its value; the keys of a mapping have a line each, and so have the parts of a list."""
    comment = f"   # {escaped(note)}" if note else ""
    if not isinstance(value, Mapping) or key == "labels":
        return f"{key}: {_flow(value)}{comment}"
    lines = [f"{key}:{comment}"]
    for name, each in value.items():
        parts = each if isinstance(each, list) and len(each) > 1 else []
        lines += [f"  {_flow(name)}:", *(f"    - {_flow(part)}" for part in parts)] if parts else []
        lines += [] if parts else [f"  {_flow(name)}: {_flow(each)}"]
    return "\n".join(lines)


def _flow(value: Any) -> str:
    """A value in one line: JSON strings, with JSON's escapes, are YAML. A list of one is written as its part."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_flow(name)}: {_flow(each)}' for name, each in value.items())}}}"
    if isinstance(value, list) and len(value) == 1:
        return _flow(value[0])
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = re.fullmatch(r"[A-Za-z_/][\w./-]*|\.", value, re.ASCII) and value.lower() not in (
        "true",
        "false",
        "null",
    )
    return value if is_plain else escaped(json.dumps(value, ensure_ascii=False))


# paths ---------------------------------------------------------------------------------------------------------


def _where(folder: Path, recipe: Path) -> str:
    """The folder as written in the recipe: relative if it is below the recipe, otherwise absolute."""
    full, base = folder.resolve(), recipe.parent.resolve()
    is_below = full.is_relative_to(base) and "DATAPATH" not in os.environ
    return full.relative_to(base).as_posix() if is_below else full.as_posix()


def _below(where: str, name: str) -> str:
    return posixpath.normpath(name if where == "." else f"{where.rstrip('/')}/{name}") if name else where


def _annotation(where: str, name: str, value: Any) -> Any:
    """The value of a key of `boxes` or `mask`; most are paths."""
    is_path = name in (*FORMATS, "captions", "folder") or (name == "names" and isinstance(value, str))
    if not is_path:
        return value
    if isinstance(value, Mapping):
        return {split: _below(where, path) for split, path in value.items()}
    return _below(where, value) if isinstance(value, str) else [_below(where, each) for each in value]


def _source(proposal: Proposal, where: str) -> dict[str, Any]:
    """The value of `source`."""
    place = _below(where, proposal.lead.rstrip("/"))
    if proposal.paths:
        said: Any = {split: _few(names, where) for split, names in proposal.paths.items()}
        said = said.get("", said)
    else:
        said = place if proposal.kind == "folders" else _patterns(proposal, place)
    return {proposal.kind: said, **proposal.options}


def _few(names: Sequence[str], where: str) -> list[str]:
    """The names, or patterns that match them if they are many."""
    if len(names) <= _MOST_NAMED:
        return [literal(_below(where, name)) for name in names]
    patterns = sorted({_below(literal(where), re.sub(r"\d+", "*", name)) for name in names})
    if len(patterns) <= _MOST_NAMED:
        return patterns
    lead = "**/" if any("/" in name for name in names) else ""
    return [_below(literal(where), f"{lead}*.{ending}") for ending in sorted({n.rpartition(".")[2] for n in names})]


def _patterns(proposal: Proposal, where: str) -> list[str]:
    """The patterns that match all files, one per file extension; names without one give theirs, with any digits."""
    deep = "**/" if any("/" in name for name in proposal.names) else ""
    around = folder_around(proposal.names)
    deep += f"{literal(around)}/" if around else ""
    endings, others = set(), set()
    for name in proposal.names:
        if is_of(proposal.content, name):
            endings.add(f"*.{literal(name.rpartition('.')[2])}")
        else:
            others.add(re.sub(r"\d+", "[0-9]*", literal(name.rpartition("/")[2])))
    patterns = ["*"] if len(others) > _MOST_NAMED else sorted(endings | others)
    return [_below(literal(where), deep + pattern) for pattern in patterns]


def _files_of(proposal: Proposal, folder: Path, recipe: Path) -> dict[Path, bytes]:
    """The content of the files next to a recipe that it names."""
    where = _below(_where(folder, recipe), proposal.lead.rstrip("/"))
    labels = {_below(where, name): label for name, label in proposal.written_labels.items()}
    lists = dict(proposal.written_lists)
    if proposal.kind == "files":  # their names start at the recipe
        lists = {split: [_below(where, name) for name in names] for split, names in lists.items()}
    return contents_of(recipe, lists, labels)


def _render_splits(proposal: Proposal, where: str, asked: InitOptions) -> str:
    if proposal.divided:
        return f"# splits: {', '.join(proposal.divided)}, as the annotations say"
    table = proposal.table
    if table is not None and table.table.splits is not None and proposal.kind in ("files", "tar"):
        values = {value for value in table.table.splits if value is not None}
        if table.splits is not None and not table.splits.is_usual:
            splits = {split: {"value": value} for value, split in table.splits.splits.items()}
            return _block("splits", splits, "by the values of the column")
        how = "each with a file of labels" if table.files else "as the column says"
        return f"# splits: {', '.join(sorted(values))}, {how}"
    if proposal.lists:
        lists = {name: {"manifest": _below(where, path)} for name, path in proposal.lists.items()}
        return _block("splits", lists, "by lists of names")
    if proposal.places:
        return _block("splits", proposal.places, "by the folders")
    if proposal.splits and proposal.kind == "files":
        lead = "." if where.startswith("/") else literal(_below(where, proposal.lead.rstrip("/")))
        files = {name: {"files": _below(lead, f"{literal(top)}/**/*")} for top, name in proposal.splits.items()}
        return _block("splits", files, "by the folders")
    if proposal.splits:
        return f"# splits: {', '.join(proposal.splits)}, as the {'source says' if proposal.paths else 'folders say'}"
    if len(proposal.names) < FEWEST:
        return f"# splits: {_flow(SHARES)}   # one split, train, as it is"
    return _block("splits", SHARES, "by a hash of the name, so that new files move no old ones")


def _declared_classes(proposal: Proposal) -> str:
    """The classes that the recipe must name: their folders would be read as something else."""
    if not proposal.classes:
        return ""
    return f"\nclasses: [{', '.join(map(_flow, proposal.classes))}]   # each folder, in the order of the labels\n"


def _render_record(dataset: RecipeDataset, proposal: Proposal) -> str:
    """The record of the recipe, as ``dataset`` has it without the key; and which images become JPEGs."""
    recorder, numbers = dataset.splits[0].recorder, dataset.classes.numbers
    is_mapped = isinstance(recorder, MappedRecorder)
    found = becoming_jpeg(proposal.names, not is_mapped) if proposal.content == "image" else ""
    kept = "keep: true and a mapping of features in record keep their bytes"
    note = f"# {escaped(found)} become JPEGs; {kept}\n" if found else ""
    if not isinstance(recorder, MappedRecorder):
        fifteen = f"the fifteen features of ImageNet's records; labels are {numbers[0]} to {numbers[-1]}"
        return note + _block("record", "inception", fifteen)
    if proposal.annotations or any(each.column.startswith(("boxes.", "mask.")) for each in recorder.features):
        return (
            note + "# record: the features of TensorFlow's Object Detection API and DeepLab; a mapping chooses others"
        )
    record: dict[str, Any] = {
        e.feature: e.column for e in recorder.features if e.column.removesuffix(".list") in RESERVED
    }
    for each in (each for each in recorder.features if each.feature not in record):
        short = each.feature.removeprefix("labels.")
        record[each.feature if short in record else short] = {"from": each.column, "optional": True}
    return note + _block("record", record, "feature: column")


_MOST_CLASSES = 200
"""Classes that a recipe lists itself; more have a file of their own."""


class _ClassList(Struct, frozen=True):
    """The keys of a recipe that declare its classes, and the file of their names, if they are many."""

    text: str = ""
    path: Path | None = None
    content: bytes = b""

    def save(self) -> None:
        """Write the file, if there is one."""
        if self.path is not None:
            with writing(self.path):
                save_bytes(self.path, self.content)


def _class_list(dataset: RecipeDataset, proposal: Proposal, target: Path) -> _ClassList:
    """The classes in order and the first label, for classes that are known by their names.

    Raises:
        UsageError: they are so many that they need a file, and it exists.
    """
    classes = dataset.classes
    if proposal.first_label is not None:
        return _ClassList(_block("first_label", proposal.first_label, _FIRST))
    if not classes.names or proposal.kind not in ("folders", "files", "tar"):
        return _ClassList()
    are_numbers = _are_numbers(proposal) or classes.is_numbered
    are_ids = are_numbers and max(classes.numbers) > LARGEST_NUMBER
    least = 0 if are_ids else min(classes.numbers)
    if are_numbers and not are_ids:
        first_number = int(least == 1)  # sets count from 0 or from 1, and the first classes may have no image
        return _ClassList(_block("first_label", first_number, _FIRST) if least >= 0 else "")
    if not are_ids and classes.numbers != tuple(range(least, least + len(classes.names))):
        return _ClassList()
    first = _block("first_label", least, _FIRST)
    note = "in the order of their labels, for all splits"
    names = list(classes.names)
    can_be_lines = all(name == name.strip() and not re.search(r"[\t\r\n]", name) for name in names)
    if len(names) <= _MOST_CLASSES or not can_be_lines:
        listing = f"[{', '.join(map(_flow, names))}]"
        return _ClassList(f"classes: {listing}   # {note}\n{first}")
    path = target.parent / f"{target.stem}-classes.txt"
    if path.exists():
        raise UsageError(f"{path} already exists", "expected a new file for the names of classes", _ANOTHER_NAME)
    where = path.resolve().as_posix() if "DATAPATH" in os.environ else path.name
    content = "".join(f"{name}\n" for name in names).encode()
    return _ClassList(f"{_block('classes', where, f'{len(names):,} names, {note}')}\n{first}", path, content)


_FIRST = "the number of the first class in every split"


def _hot_classes(proposal: Proposal) -> str:
    """The classes of one-hot columns: they are numbered as the columns are, and one may have no image."""
    names = proposal.table.options.get("one_hot") if proposal.table is not None else None
    return f"classes: [{', '.join(map(_flow, names))}]" if names else ""


def _order_of_file(dataset: RecipeDataset, inspection: Inspection) -> tuple[str, list[str]]:
    """The key for classes in the order of the only file that gives one, such as class_indices.json; and its note.

    A file may have classes that no image is of, up to as many as there are of others: they keep their numbers.
    """
    names = set(dataset.classes.names)
    orders: dict[tuple[str, ...], str] = {}
    for where in () if all(name.isdigit() for name in names) else _name_files(inspection):
        with contextlib.suppress(InputError, OSError):
            order = _order_in(read_names(inspection.folder / where, (inspection.folder / where).read_bytes()))
            if names <= set(order):
                orders.setdefault(tuple(order), where)
    own = dataset.classes.names
    if not orders or (len(orders) == 1 and own in orders):
        return "", []
    notes = [f"{where} has another order of the classes, not used: {listed(order)}" for order, where in orders.items()]
    ordered_names, where = next(iter(orders.items()))
    is_sure = _NUMBERED_HERE.search(where.rpartition("/")[2].lower()) is not None
    if len(orders) > 1 or len(ordered_names) > 2 * len(names) or not is_sure:
        return "", notes
    return f"classes: [{', '.join(map(_flow, ordered_names))}]", [f"{where} numbers the classes"]


_NUMBERED_HERE = re.compile(r"class|label|categor|idx|index|\.names$|\.json$|\.pbtxt$")
"""Names of files whose order is that of the numbers; Tiny ImageNet's wnids.txt is in no order that readers keep."""


def _order_in(names: NamesOfClasses) -> list[str]:
    """The names in the order of their numbers from 0 or 1, or of the lines; none if there is no such order."""
    if not names.by_id:
        return list(names.in_order) if len(set(names.in_order)) == len(names.in_order) else []
    numbers = {name: int(number) for number, name in names.by_id.items() if number.isascii() and number.isdigit()}
    counted = sorted(numbers.values())
    if not counted or counted[0] > 1 or counted != list(range(counted[0], counted[0] + len(names.by_id))):
        return []
    return sorted(numbers, key=lambda name: numbers[name])


_ANOTHER_NAME = "choose another name with --output"


def _are_numbers(proposal: Proposal) -> bool:
    """Whether the labels are numbers of a table, which stand as they are."""
    table = proposal.table
    values = flat_labels(table.labels or ()) if table is not None else []
    return any(isinstance(value, int) for value in values)


class _Names(Struct, frozen=True):
    """The key of a recipe that names its classes, the classes under these names, and what to tell of them."""

    text: str
    classes: Classes
    evidence: tuple[str, ...] = ()


def _class_names(
    dataset: RecipeDataset, proposal: Proposal, inspection: Inspection | None, target: Path, asked: InitOptions
) -> _Names:
    """The names of classes that are ids: of the file that --names says, of another column, or of the only such file.

    Raises:
        UsageError: the file that --names says is not there.
        InputError: it lacks the name of a class.
    """
    classes = dataset.classes
    if asked.names is not None:
        if not asked.names.is_file():
            raise UsageError(f"{asked.names} is not there", "expected the file of the names of classes")
        path = asked.names.resolve()
        base = target.parent.resolve()
        is_below = path.is_relative_to(base) and "DATAPATH" not in os.environ
        where = path.relative_to(base).as_posix() if is_below else path.as_posix()
        found = read_names(path, path.read_bytes()).names_of(classes.names)
        if lacking := [name for name in classes.names if name not in found]:
            what = f"{asked.names} names {len(found):,} of {number_of(len(classes.names), 'class', 'classes')}"
            raise InputError(f"{what}: {listed(lacking)} has no name there", "expected a name for each class")
        note = "the name of each class, by its id"
        return _Names(_block("class_names", where, note), renamed(classes, found))
    names = proposal.table.names if proposal.table is not None else {}
    if names and set(names) == set(classes.names):
        text = f"class_names: {_flow(dict(names))}   # by the numbers of the table"
        if len(names) <= _MOST_CLASSES:
            return _Names(text, renamed(classes, names))
    return _Names("", classes) if inspection is None else _found_names(classes, inspection, target)


def _found_names(classes: Classes, inspection: Inspection, target: Path) -> _Names:
    """The only file of the folder that names all classes: taken if it says which name is of which id."""
    candidates: dict[str, NamesOfClasses] = {}
    if not classes.names:
        return _Names("", classes)
    for name in _name_files(inspection):
        with contextlib.suppress(InputError, OSError):
            names = read_names(inspection.folder / name, (inspection.folder / name).read_bytes())
            found = names.names_of(classes.names)
            if (
                len(found) == len(classes.names)
                and not names.are_ids
                and any(key != text for key, text in found.items())
            ):
                candidates[name] = names
    if len(candidates) != 1:
        ways = [_with_names(inspection, target, name) for name in candidates]
        return _Names("", classes, tuple(f"names of classes: {way}" for way in ways))
    where, names = next(iter(candidates.items()))
    is_whole = bool(names.by_id) or len(names.in_order) == len(classes.names)
    if not is_whole:
        way = _with_names(inspection, target, where)
        return _Names("", classes, (f"{where} may have the names of the classes: {way}",))
    text = _block("class_names", _below(_where(inspection.folder, target), where), "the name of each class, by its id")
    count = number_of(len(classes.names), "class", "classes")
    return _Names(text, renamed(classes, names.names_of(classes.names)), (f"{where} names all of {count}",))


def _with_names(inspection: Inspection, target: Path, name: str) -> str:
    """The command that takes a file of names, and writes another recipe."""
    output = target.with_name(f"{target.stem}-named{target.suffix}")
    return inspection.asked.command(inspection.folder, names=inspection.folder / name, output=output)


_NAME_FILES = (".json", ".txt", ".csv", ".tsv", ".pbtxt", ".names")
_LARGEST_NAMES = 1 << 22
_MOST_NAME_FILES = 50


def _name_files(inspection: Inspection) -> list[str]:
    """The files that may have the names of classes: the ones without another use, the nearest first."""
    known = {name for names in inspection.annotations.values() for name in names}
    tables = (table.where for table in (*inspection.labels, *inspection.partial) if table.has_labels)
    known |= {where for where in tables if not where.endswith(".json")}
    listing = inspection.listing
    sizes = zip(listing.names, listing.lengths.tolist(), strict=True)
    names = [name for name, size in sizes if name.lower().endswith(_NAME_FILES) and size <= _LARGEST_NAMES]
    return sorted((name for name in names if name not in known), key=lambda name: name.count("/"))[:_MOST_NAME_FILES]


class InitSummary(Struct, frozen=True):
    """The proposed recipe.

    Args:
        recipe: the file that was written.
        text: its content.
        found: what the folder holds, as text.
        layout: the recognised layout.
        evidence: the reasons for the layout.
        classes: the number of files per class, in the order of their labels.
        labels: the labels of the first classes and of the last one, as text; "" if there are none.
        passed: what is skipped, and why, as text.
        warnings: the classes that a split lacks, as text.
        class_list: the file of the names of the classes, if there are many; otherwise None.
    """

    recipe: Path
    text: str
    found: str
    layout: str
    evidence: tuple[str, ...]
    classes: Mapping[str, int]
    labels: str
    passed: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    class_list: Path | None = None


def init(
    folder: Path,
    output: Path | None,
    engine: Engine,
    *,
    layout: str | None = None,
    asked: InitOptions | None = None,
    progress: Progress | None = None,
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default named like the folder, with .yaml, in the current folder.

    Args:
        folder: the data, or a table that names it.
        output: the recipe.
        engine: lists files.
        layout: the layout to use if the folder has several possible ones, or files that would be skipped.
        asked: the other options that say how to read the folder: columns, splits, names of classes.
        progress: reports what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose something; the error
            lists every fault, with the choices.
        UsageError: the recipe already exists, the folder is a URL, or it does not have that layout.
    """
    refuse_url(folder)
    is_alone = folder.is_file() and is_table(folder)
    if not folder.is_dir() and not is_alone:
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"{folder} {what}", f"expected a folder of data, or a table ({', '.join(ENDINGS)})")
    name = folder.stem if is_alone else folder.resolve().name
    target = output or Path(f"{name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} already exists", "expected a new file", _ANOTHER_NAME)
    if layout is not None and layout not in (known := known_layouts()):
        raise UsageError(f"there is no layout {layout}", f"expected --as with one of {', '.join(known)}")
    asked = replace(asked or InitOptions(), layout=layout, output=output)
    (progress or Silent()).note(f"inspecting {folder}")
    inspection = None if is_alone else inspect_folder(folder, engine, asked)
    if inspection is not None:
        check_asked(inspection)
    if inspection is None:
        columns, settings = Source(label=asked.label, image=asked.image), Recipe(strip=asked.strip)
        choice = choose_table(folder, engine, columns, settings)
    else:
        choice = choose_layout(inspection, layout)
        refuse_unused_columns(inspection, choice)
    proposal = choice.proposal
    if proposal.written_lists:
        lists = {split: {"manifest": written_path(target, list_end(split))} for split in proposal.written_lists}
        proposal = replace(proposal, places=lists)
    text = render_recipe(proposal, folder.parent if is_alone else folder, target, asked)
    files = _files_of(proposal, folder, target)
    evidence = choice.evidence
    if files:
        evidence = (*evidence, f"the recipe names {', '.join(path.name for path in files)} next to it")
    with saved(files):
        declared = f"{_hot_classes(proposal)}{_declared_classes(proposal)}"
        dataset = load(read(target, f"{text}\n{declared}\n"), None, engine)
        order, order_evidence = ("", []) if declared or inspection is None else _order_of_file(dataset, inspection)
        if order:
            dataset = load(read(target, f"{text}\n{order}\n"), None, engine)
        taken = sum(len(split.catalog) for split in dataset.splits)
        if taken != len(proposal.names):
            what = f"{target} would take {taken:,} files, and {len(proposal.names):,} were found: it is not kept"
            raise InputError(what, "expected all of them", "write a recipe whose `source` names them")
        counts = _count(dataset)
        class_list = _class_list(dataset, proposal, target)
        names = _class_names(dataset, proposal, inspection, target, asked)
        found = describe(proposal, len(counts))
        parts = [text.rstrip("\n"), class_list.text, names.text, _render_record(dataset, proposal)]
        notes = "".join(f"# {_as_unused(escaped(note))}\n" for note in choice.unused)
        text = f"{_head(found, target)}{notes}\n" + "\n\n".join(filter(None, parts)) + "\n"
        read(target, text)
        class_list.save()
        with writing(target):
            save_bytes(target, text.encode())
    return InitSummary(
        recipe=target,
        text=text,
        found=found,
        layout=choice.name,
        evidence=(*evidence, *order_evidence, *names.evidence, *_of_imagenet(folder, dataset)),
        classes=dict(zip(names.classes.names, counts.values(), strict=True)),
        labels=labels_in_words(names.classes.names, names.classes.numbers),
        passed=choice.passed,
        warnings=dataset.warnings,
        class_list=class_list.path,
    )


def _head(found: str, target: Path) -> str:
    """The first lines of a recipe: what it was written for, and the command that uses it."""
    use = f"{NAME} convert DATA_DIR --config {quoted(target.name)}"
    return f"# {escaped(found)}.\n# To use it: {escaped(use)}\n"


def _as_unused(note: str) -> str:
    """A note on a file that the recipe does not use, which says so."""
    return note if " is not used: " in note else f"not used: {note}"


def _of_imagenet(folder: Path, dataset: RecipeDataset) -> list[str]:
    """The note on class folders that are those of ImageNet, which convert reads without a recipe."""
    from imagenet_prep.ilsvrc2012.facts import synsets

    names = dataset.classes.names
    if len(names) < _FEWEST_OF_IMAGENET or not set(names) <= {*synsets()}:
        return []
    way = command("convert", Path(f"{folder.name}-shards"), (("raw", folder),))
    return [f"these are ImageNet's classes; convert reads such a copy, and any boxes in it, without a recipe: {way}"]


_FEWEST_OF_IMAGENET = 1000


def _count(dataset: RecipeDataset) -> dict[str, int]:
    """The number of files of each class."""
    names = dataset.classes.names
    found = Counter[str]()
    for split in dataset.splits:
        for several in split.catalog.columns.get("class.list", ()):
            found.update(several)
        labels, counts = np.unique(split.catalog.labels, return_counts=True)
        pairs = zip(labels.tolist(), counts.tolist(), strict=True)
        found.update({names[label - 1]: count for label, count in pairs if label > 0})
    return {name: found[name] for name in names}
