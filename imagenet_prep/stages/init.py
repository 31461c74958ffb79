"""Inspects a folder and writes a recipe for its layout, with a comment at each choice."""

from __future__ import annotations

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
from imagenet_prep.escaping import NAME, escaped, quoted
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.asked import Asked
from imagenet_prep.recipes.asked_splits import check_asked
from imagenet_prep.recipes.columns import RESERVED, Content, becoming_jpeg, is_of
from imagenet_prep.recipes.inspection import inspect_folder
from imagenet_prep.recipes.labels import labels_in_words
from imagenet_prep.recipes.layouts import Proposal, choose_layout, known_layouts
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.written_files import TABLE, contents_of, list_end, saved, written_path
from imagenet_prep.sources.patterns import literal
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing

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
    if named := list(dict.fromkeys([*proposal.places, *proposal.splits.values(), *proposal.lists])):
        text += f", in {' and '.join(named)}"
    if proposal.kind == "tar":
        tars = len(proposal.paths[""])
        text += f", in {tars:,} tar{'s' if tars > 1 else ''}"
    return text + (f", with {proposal.table.where}" if proposal.table else "")


def render_recipe(proposal: Proposal, folder: Path, recipe: Path) -> str:
    """The text of a recipe for a folder, for the file ``recipe``, without its record."""
    where = _where(folder, recipe)
    named = "the splits, each with a folder per class" if proposal.splits else "a folder per class"
    table = proposal.table if proposal.kind in ("files", "folders") else None
    notes = {"folders": named, "files": "patterns of the images"}
    blocks = [_block("source", _source(proposal, where), notes.get(proposal.kind, "read in place"))]
    blocks[-1] += "".join(f"\n# {escaped(remark)}" for remark in proposal.remarks)
    if table:
        columns = f", with the columns {', '.join(table.table.columns)}" if table.table.columns else ""
        said: Any = _below(where, table.where)
        said = {"file": said, **table.options} if table.options else said
        blocks.append(_block("labels", said, f"{len(table.table.paths):,} lines{columns}"))
        if not table.has_labels:
            hint = "all columns become features; `label: COLUMN` in `labels: {file: ...}` makes one of them the class"
            blocks[-1] += f"\n# {hint}"
    if proposal.written_labels:
        said = {"file": written_path(recipe, TABLE), "unlabelled": "skip"}
        blocks.append(_block("labels", said, "written by init, from the folders and their lists"))
    for key, value in proposal.annotations.items():
        blocks.append(_block(key, {name: _annotation(where, name, each) for name, each in value.items()}))
    if proposal.clips_boxes:
        blocks.append(_block("boxes_outside", "clip", "impossible boxes; drop leaves all of them out"))
    blocks += [
        _block("content", proposal.content, _CONTENT_NOTES[proposal.content]),
        _render_splits(proposal, where),
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
    """A value in one line: JSON strings, with JSON's escapes, are YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_flow(name)}: {_flow(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return _flow(value[0]) if len(value) == 1 else f"[{', '.join(map(_flow, value))}]"
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
    if name not in ("coco", "voc", "yolo", "csv", "captions", "names", "folder"):
        return value
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


def _render_splits(proposal: Proposal, where: str) -> str:
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
    if proposal.annotations:
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


def init(
    folder: Path,
    output: Path | None,
    engine: Engine,
    *,
    layout: str | None = None,
    asked: Asked | None = None,
    progress: Progress | None = None,
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default named like the folder, with .yaml, in the current folder.

    Args:
        folder: the data.
        output: the recipe.
        engine: lists files.
        layout: the layout to use if the folder has several possible ones, or files that would be skipped.
        asked: what else the user says of the folder: columns, splits, names of classes.
        progress: reports what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose something; the error
            lists every fault, with the choices.
        UsageError: the recipe already exists, the folder is a URL, or it does not have that layout.
    """
    refuse_url(folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"{folder} {what}", "expected a folder of data")
    target = output or Path(f"{folder.resolve().name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} already exists", "expected a new file", "choose another name with --output")
    if layout is not None and layout not in (known := known_layouts()):
        raise UsageError(f"there is no layout {layout}", f"expected --as with one of {', '.join(known)}")
    asked = replace(asked or Asked(), layout=layout, output=output)
    (progress or Silent()).note(f"inspecting {folder}")
    inspection = inspect_folder(folder, engine, asked)
    check_asked(inspection)
    choice = choose_layout(inspection, layout)
    proposal = choice.proposal
    if proposal.written_lists:
        lists = {split: {"manifest": written_path(target, list_end(split))} for split in proposal.written_lists}
        proposal = replace(proposal, places=lists)
    text = render_recipe(proposal, folder, target)
    files = _files_of(proposal, folder, target)
    evidence = choice.evidence
    if files:
        evidence = (*evidence, f"the recipe names {', '.join(path.name for path in files)} next to it")
    with saved(files):
        text += _declared_classes(proposal)
        dataset = load(read(target, text), None, engine)
        taken = sum(len(split.catalog) for split in dataset.splits)
        if taken != len(proposal.names):
            what = f"{target} would take {taken:,} files, and {len(proposal.names):,} were found: it is not kept"
            raise InputError(what, "expected all of them", "write a recipe whose `source` names them")
        classes = _count(dataset)
        found = describe(proposal, len(classes))
        use = f"{NAME} convert DATA_DIR --config {quoted(target.name)}"
        head = f"# {escaped(found)}.\n# To use it: {escaped(use)}\n\n"
        text = f"{head}{text}\n{_render_record(dataset, proposal)}\n"
        read(target, text)
        with writing(target):
            save_bytes(target, text.encode())
    labels = labels_in_words(dataset.classes.names, dataset.classes.numbers)
    return InitSummary(target, text, found, choice.name, evidence, classes, labels, choice.passed, dataset.warnings)


def _count(dataset: RecipeDataset) -> dict[str, int]:
    """The number of files of each class."""
    names = dataset.classes.names
    found = Counter[str]()
    for split in dataset.splits:
        for several in split.catalog.columns.get("class.list", ()):
            found.update(several)
        labels, counts = np.unique(split.catalog.labels, return_counts=True)
        found.update(
            {names[label - 1]: count for label, count in zip(labels.tolist(), counts.tolist(), strict=True) if label}
        )
    return {name: found[name] for name in names}
