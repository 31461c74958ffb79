"""SampleLayout: images and labels in the same files: WebDataset tars, TFRecords, Parquet, arrays of a whole set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels_file import flat_labels
from imagenet_prep.recipes.labels_search import LabelsFile, class_values
from imagenet_prep.recipes.layouts import (
    CERTAIN,
    ONLY_IF_ASKED,
    Description,
    FolderLayout,
    Proposal,
    Reading,
    describe_rest,
)
from imagenet_prep.recipes.sample_sources import Samples, list_samples, split_of
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.text import listed, number_of


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """The three functions of such a layout.

    Args:
        kind: the key of the recipe's source.
        find: the files that it reads.
    """

    kind: str
    find: Callable[[Inspection], Sequence[str]]

    def recognise(self, inspection: Inspection) -> Reading | None:
        """Files of this kind, listed in full."""
        names = self.find(inspection)
        if not names:
            return None
        groups, faults = _by_split(names) if self.kind != "arrays" else {"": list(names)}, []
        certainty = CERTAIN + 1 if set(inspection.items) <= set(names) else ONLY_IF_ASKED
        if "" in groups and len(groups) > 1:
            what = f"{inspection.folder}: {listed(groups[''])} is in no split, and {listed(groups[max(groups)])} is"
            faults.append(
                InputError(what, "expected all files in splits, or none", "move it, or name it as the others")
            )
        try:
            paths = {split: [inspection.folder / name for name in several] for split, several in groups.items()}
            samples, splits = list_samples(self.kind, paths, inspection.engine)
        except InputError as error:
            return Reading(certainty, (), self.meaning, (error,))
        evidence = f"{number_of(len(names), f'{self.kind} file')} with {len(samples.names):,} samples: {listed(names)}"
        if samples.doubt:
            faults.append(samples.doubt)
        elif samples.label is None and len(samples.words) > 1:
            what = f"{inspection.folder} has labels in {' and in '.join(samples.words)}"
            hint = f"a recipe can say: source: {{{self.kind}: ..., label: {next(iter(samples.words))}}}"
            faults.append(InputError(what, "expected one column of labels", hint))
        elif samples.label is not None and None in samples.columns[samples.label]:
            first = samples.names[samples.columns[samples.label].index(None)]
            hint = f"a recipe can say: source: {{{self.kind}: ..., label: false}}; {samples.label} is a column then"
            faults.append(InputError(f"{inspection.folder}: {first} has no {samples.label}", "expected one each", hint))
        table = _table(samples, next(iter(groups.values()))[0]) if not faults else None
        return Reading(certainty, (evidence,), self.meaning, tuple(faults), (groups, samples, splits, table))

    @property
    def meaning(self) -> str:
        """The records, in a few words."""
        return f"a record for each sample of the {self.kind} files"

    def describe(self, inspection: Inspection, reading: Reading) -> Description:
        """All files of this kind; a note if the samples have no classes."""
        if not reading.value:
            return describe_rest(inspection)
        groups, samples, _, table = reading.value
        rest = describe_rest(inspection, alone=[name for several in groups.values() for name in several])
        passed = [*rest.passed, *samples.passed]
        if samples.label is None:
            passed.append("no class: the files have no column of labels")
        elif table is not None and not table.has_labels:
            passed.append(f"no class: {samples.label} holds no labels of classes, which are whole numbers or texts")
        return Description(rest.lost, tuple(passed))

    def recipe(self, inspection: Inspection, reading: Reading) -> Proposal:
        """A source of this kind."""
        groups, samples, splits, table = reading.value
        counts = Counter(flat_labels(table.labels or ()))
        return Proposal(
            self.kind,
            "array" if samples.names[0].endswith(".npy") else "image",
            list(samples.listing.names),
            samples.listing.lengths.tolist(),
            splits={split: split for split in splits} or None,
            classes={table.table.words.get(label, str(label)): counts[label] for label in sorted(counts)},
            table=table,
            paths=groups,
            options={} if table.has_labels or samples.label is None else {"label": False},
        )


def _by_split(names: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(split_of(name.rpartition("/")[2]) or split_of(name), []).append(name)
    order = ["train", "validation", "test"]
    return dict(sorted(groups.items(), key=lambda each: order.index(each[0]) if each[0] in order else -1))


def _table(samples: Samples, where: str) -> LabelsFile:
    """The labels as those of a labels file."""
    path = samples.listing.containers[0].path
    table = samples.table(None, path)
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


def _find_arrays(inspection: Inspection) -> Sequence[str]:
    """IDX files and pickles; a few arrays with the names of images and labels; .npz files that hold several arrays."""
    if inspection.content not in (None, "array"):
        return ()
    several = [name for name in inspection.items if name.lower().endswith(".npz")]
    inside = _names_in(inspection.folder / several[0]) if several else []
    few = len(inspection.items) <= _FEW
    named = few and (not inside if several else all(_NAME.fullmatch(stem_of(name)) for name in inspection.items))
    held = inspection.holders.get("arrays", ())
    return [*inspection.items, *held] if len(inside) > 1 or named or held else ()


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


def _layout(kind: str, find: Callable[[Inspection], Sequence[str]]) -> FolderLayout:
    own = SampleLayout(kind, find)
    return FolderLayout(own.recognise, own.describe, own.recipe)


LAYOUTS = {
    "array-sets": _layout("arrays", _find_arrays),
    "parquet": _layout("parquet", lambda inspection: inspection.holders.get("parquet", ())),
    "tfrecord": _layout("tfrecord", lambda inspection: inspection.holders.get("tfrecord", ())),
    "webdataset": _layout("webdataset", _find_webdataset),
}
