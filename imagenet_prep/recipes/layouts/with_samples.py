"""Images and labels in the same files: WebDataset tars, TFRecords, Parquet, arrays of a whole set."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels_search import LabelsFile
from imagenet_prep.recipes.layouts import CERTAIN, ONLY_IF_ASKED, Layout, Proposal, Reading
from imagenet_prep.recipes.sample_sources import Samples, list_samples, split_of
from imagenet_prep.recipes.splits import grouped, stem_of
from imagenet_prep.recipes.table_forms import class_values
from imagenet_prep.text import listed, number_of


def _recognise(kind: str, find: Callable[[Inspection], Sequence[str]], inspection: Inspection) -> Reading | None:
    """Files of a ``kind`` of source, that ``find`` gives, listed in full; a note if the samples have no classes."""
    names = find(inspection)
    if not names:
        return None
    certainty = CERTAIN + 1 if set(inspection.items) <= set(names) else ONLY_IF_ASKED
    groups, meaning = _by_split(kind, names), f"a record for each sample of the {kind} files"
    try:
        if "" in groups and len(groups) > 1:
            what = f"{inspection.folder}: {listed(groups[''])} is in no split, and {listed(groups[max(groups)])} is"
            raise InputError(what, "expected all files in splits, or none", "move it, or name it as the others")
        paths = {split: [inspection.folder / name for name in several] for split, several in groups.items()}
        samples, splits = list_samples(kind, paths, inspection.engine)
        _check_label(inspection, samples, kind)
        wanted = _wanted(inspection, samples)
        table = _table(samples, groups[next(iter(groups))][0], wanted)
    except InputError as error:
        return Reading(certainty, (), meaning, faults=(error,), alone=names)
    remarks = downsampled.remarks_on(names, samples.names, has_classes=bool(samples.class_names))
    evidence = (
        f"{number_of(len(names), f'{kind} file')} with {len(samples.names):,} samples: {listed(names)}",
        *_gaps(names),
        *remarks,
    )
    passed = list(samples.passed)
    if samples.label is None and wanted is None:
        passed.append("no class: the files have no column of labels")
    elif not table.has_labels:
        passed.append(f"no class: {samples.label} holds no labels of classes, which are whole numbers or texts")
    proposal = Proposal(
        kind,
        "array" if samples.names[0].endswith(".npy") else "image",
        list(samples.listing.names),
        paths=groups,
        splits={split: split for split in splits},
        table=table,
        options=_options(samples, table, wanted),
        remarks=remarks,
    )
    return Reading(certainty, evidence, meaning, proposal, alone=names, passed=passed)


def _gaps(names: Sequence[str]) -> list[str]:
    """The note on files that are missing among those that are counted: 00001.tar, of 00000.tar and 00002.tar.

    Numbers count files if most of them are there; others are dates or the like.
    """
    several: dict[tuple[str, str], dict[int, str]] = {}
    for match in filter(None, map(_NUMBERED.fullmatch, names)):
        several.setdefault((match[1], match[3]), {})[int(match[2])] = match[2]
    missing: list[str] = []
    for (start, end), known in several.items():
        first, last = min(known), max(known)
        if last - first < 2 * len(known):
            width = len(known[first])
            missing += [f"{start}{each:0{width}}{end}" for each in range(first, last) if each not in known]
    return [f"missing, by the numbers of the others: {listed(missing)}"] if missing else []


def _wanted(inspection: Inspection, samples: Samples) -> str | None:
    """The column of labels that the user names; raises InputError if there is no such column."""
    wanted = inspection.asked.label
    if wanted is not None and wanted not in samples.columns:
        raise InputError(
            f"{inspection.folder} has no column {wanted}", f"expected one of {listed(samples.columns, 20)}"
        )
    return wanted


def _options(samples: Samples, table: LabelsFile, wanted: str | None) -> dict[str, str | bool]:
    """The key of a recipe for the labels."""
    if wanted is not None and table.has_labels:
        return {"label": wanted}
    return {} if table.has_labels or samples.label is None else {"label": False}


def _check_label(inspection: Inspection, samples: Samples, kind: str) -> None:
    """Raise InputError if it is not plain which column has the labels, or a sample has none."""
    if inspection.asked.label is not None:
        return
    if samples.label is None and len(samples.words) > 1:
        what = f"{inspection.folder} has labels in {' and in '.join(samples.words)}"
        error = InputError(what, "expected one column of labels", "choose one:")
        raise error.with_choices([_choice(inspection, samples, name) for name in samples.words])
    if samples.label is not None and None in samples.columns[samples.label]:
        first = samples.names[samples.columns[samples.label].index(None)]
        hint = f"a recipe can say: source: {{{kind}: ..., label: false}}; {samples.label} is a column then"
        raise InputError(f"{inspection.folder}: {first} has no {samples.label}", "expected one each", hint)


def _choice(inspection: Inspection, samples: Samples, name: str) -> str:
    """A column of labels in one line, which ends with its command."""
    labels = [label for label in samples.columns[name] if label is not None]
    counts = f"{len(labels):,} of {len(samples.names):,} images, {number_of(len(set(labels)), 'class', 'classes')}"
    return f"  {counts}: {inspection.asked.command(inspection.folder, label=name)}"


def _by_split(kind: str, names: Sequence[str]) -> dict[str, list[str]]:
    """The files by the splits that their names tell; arrays tell theirs themselves."""
    is_one = kind == "arrays"
    groups = grouped(names, lambda name: "" if is_one else split_of(name.rpartition("/")[2]) or split_of(name))
    order = ["train", "validation", "test"]
    return dict(sorted(groups.items(), key=lambda each: order.index(each[0]) if each[0] in order else -1))


def _table(samples: Samples, where: str, wanted: str | None) -> LabelsFile:
    """The labels, of the column ``wanted`` or of the usual one, as those of a labels file."""
    path = samples.listing.containers[0].path
    table = samples.table(wanted, path)
    labels = class_values(table)
    table = samples.table(False, path) if labels is None else table
    return LabelsFile(where, table, {}, "", labels, range(len(samples.names)))


# which files they are ------------------------------------------------------------------------------------------

_NAME = re.compile(
    r"([xy]|images?|labels?|data|targets?)([_-]?(train|test|val|valid|validation|eval|dev|all))?|"
    r"(train|test|val|valid|validation|eval|dev)([_-]?([xy]|images?|labels?|data|targets?))?",
    re.IGNORECASE,
)
_FEW = 12
_NUMBERED = re.compile(r"(.*?)(\d+)(\.\w+|)", re.ASCII)


def _find_arrays(inspection: Inspection) -> Sequence[str]:
    """IDX files and pickles; a few arrays with the names of images and labels; .npz files that hold several arrays."""
    if inspection.content not in (None, "array"):
        return ()
    several = [name for name in inspection.items if name.lower().endswith(".npz")]
    inside = _names_in(inspection.folder / several[0]) if several else []
    few = len(inspection.items) <= _FEW
    named = few and (not inside if several else all(_NAME.fullmatch(stem_of(name)) for name in inspection.items))
    held = inspection.holders.get("arrays", ())
    if not (len(inside) > 1 or named or held):
        return ()
    found = [*inspection.items, *held]
    synsets = downsampled.find_synsets(inspection.listing.names) if downsampled.are_batches(found) else None
    return [*found, synsets] if synsets else found


def _names_in(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return names_in_npz(file)
    except OSError:
        return []


def _find_webdataset(inspection: Inspection) -> Sequence[str]:
    """All tars, if one holds members such as 1.jpg and 1.cls."""
    for listing in inspection.archives.values():
        parts = (name.rpartition(".") for name in listing.names)
        stems = {stem for stem, _, end in parts if end.lower() in ("cls", "json", "txt")}
        if any(is_of("image", name) and name.rpartition(".")[0] in stems for name in listing.names):
            return list(inspection.archives)
    return ()


_FINDERS: dict[str, tuple[str, Callable[[Inspection], Sequence[str]]]] = {
    "array-sets": ("arrays", _find_arrays),
    "parquet": ("parquet", lambda inspection: inspection.holders.get("parquet", ())),
    "tfrecord": ("tfrecord", lambda inspection: inspection.holders.get("tfrecord", ())),
    "webdataset": ("webdataset", _find_webdataset),
}

LAYOUTS: dict[str, Layout] = {name: functools.partial(_recognise, *each) for name, each in _FINDERS.items()}
