"""Images and labels in the same files: WebDataset tars, TFRecords,
Parquet, arrays of a whole set.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import names_in_npz
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import class_candidates, distinct_candidates
from imagenet_prep.init.labels_search import LabelsFile
from imagenet_prep.init.layouts import Recogniser
from imagenet_prep.init.packed_files import unpacking_hint
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.table_forms import class_values
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.array_sets import FILE, NAMES, are_sets, rival_files
from imagenet_prep.recipes.columns import is_of
from imagenet_prep.recipes.joined_samples import Samples, split_of
from imagenet_prep.recipes.sample_sources import list_samples
from imagenet_prep.recipes.splits import grouped, stem_of
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.sources.array_formats import counts_from_1
from imagenet_prep.sources.parquets import may_hold_images
from imagenet_prep.text import listed, number_of

_NOUNS = {"arrays": "array"}
"""The name of one file of a kind, if its key in `source` is a plural."""


def _recognise(
    kind: str, find: Callable[[Inspection], Sequence[str]], inspection: Inspection
) -> Interpretation | None:
    """Files of a ``kind`` of source, that ``find`` gives, listed in full;
    a note if the samples have no classes.
    """
    names = find(inspection)
    if not names:
        return None
    certainty = CERTAIN + 1 if set(inspection.items) <= set(names) else ONLY_IF_ASKED
    noun = _NOUNS.get(kind, kind)
    meaning = f"a record for each sample of the {noun} files"
    where, _, asked_label = (inspection.options.label or "").rpartition(":")
    try:
        if kind == "arrays":
            rivals = _rivals(inspection, names)
            if len(rivals) > 1 and where not in rivals:
                return _ask_for_file(inspection, rivals, certainty, meaning)
            names = [where] if where in rivals else names
        groups = _by_split(kind, names)
        if "" in groups and len(groups) > 1:
            what = (
                f"{inspection.folder}: {listed(groups[''])} is in no split, "
                f"and {listed(groups[max(groups)])} is"
            )
            raise InputError(
                what, "expected all files in splits, or none", "move it, or name it as the others"
            )
        paths = {
            split: [inspection.folder / name for name in several]
            for split, several in groups.items()
        }
        samples, splits = list_samples(kind, paths, inspection.engine)
        label, ways = _choose_label(inspection, samples, asked_label, kind)
        if label is None and not ways:
            _check_label(inspection, samples, kind)
        table = _table(samples, groups[next(iter(groups))][0], label)
    except InputError as error:
        return Interpretation(certainty, (), meaning, faults=(error,), containers=names)
    remarks = downsampled.remarks_on(names, samples.names, has_classes=bool(samples.class_names))
    evidence = (
        (
            f"{number_of(len(names), f'{noun} file')} with {len(samples.names):,} samples: "
            f"{listed(names)}"
        ),
        *_evidence_of_classes(samples, table, label),
        *_evidence_of_boxes(samples),
        *_gaps(names),
        *remarks,
    )
    passed = list(samples.passed)
    if label is None and samples.label is None:
        passed.append("no class: the files have no column of labels")
    elif not table.has_labels:
        passed.append(
            f"no class: {label or samples.label} holds no labels of classes: whole numbers or texts"
        )
    proposal = Proposal(
        kind,
        "array" if samples.names[0].endswith(".npy") else "image",
        list(samples.listing.names),
        paths=groups,
        splits={split: split for split in splits},
        table=table,
        options=_options(samples, table, label),
        remarks=remarks,
        first_label=_first_label(names, table, samples.label),
    )
    return Interpretation(
        certainty,
        evidence,
        meaning,
        proposal,
        containers=[*names, *_logs_beside(inspection, kind)],
        skip_notes=[*passed, *_tables_beside(inspection, kind)],
        losses=[_fault_of_lost(inspection, kind, names, line) for line in samples.lost],
        labelled=table.labelled,
        classes=table.classes,
        alternatives=ways,
    )


def _evidence_of_classes(samples: Samples, table: LabelsFile, label: str | None) -> list[str]:
    """The note on the source of the classes, where the files don't call it labels."""
    if label is not None:
        return [f"{label} is the class: {number_of(table.classes, 'class', 'classes')}"]
    if samples.label == FILE:
        return [f"each file is a class: {listed(list(dict.fromkeys(samples.columns[FILE])))}"]
    return []


def _evidence_of_boxes(samples: Samples) -> list[str]:
    """The number of boxes, if the files have some."""
    images = samples.marks.images.values()
    boxes = sum(len(image.objects) for image in images)
    return [f"{number_of(boxes, 'box', 'boxes')} in {len(images):,} images"] if boxes else []


def _fault_of_lost(
    inspection: Inspection, kind: str, names: Sequence[str], line: str
) -> InputError:
    """The fault of boxes or masks that a source can't read."""
    hint = "write the boxes to a table, or to COCO JSON"
    if kind == "webdataset":
        hint = unpacking_hint(inspection.folder, names)
    return InputError(
        f"{inspection.folder}: {line}", "expected images with labels, texts and numbers", hint
    )


def _logs_beside(inspection: Inspection, kind: str) -> list[str]:
    """The parquet files next to tars that hold no images:
    img2dataset's lists of what it fetched.
    """
    names = _holders("parquet", inspection) if kind == "webdataset" else ()
    return [name for name in names if not may_hold_images(inspection.folder / name)]


def _tables_beside(inspection: Inspection, kind: str) -> list[str]:
    names = _logs_beside(inspection, kind)
    return [f"{listed(names)}: not read, a table without images"] if names else []


def _first_label(names: Sequence[str], table: LabelsFile, label: str | None) -> int | None:
    """The number of the first class where a format counts from 1,
    or Inception's, whose 0 is no class.
    """
    are_arrays_from_1 = all(counts_from_1(name.rpartition("/")[2]) for name in names)
    is_named_from_1 = min(table.table.words, default=0) == 1
    is_from_1 = label == "image/class/label" or are_arrays_from_1 or is_named_from_1
    labels = flat_labels(table.labels or ())
    are_numbers = bool(labels) and all(isinstance(number, int) and number > 0 for number in labels)
    return 1 if is_from_1 and are_numbers else None


def _rivals(inspection: Inspection, names: Sequence[str]) -> list[str]:
    paths = {inspection.folder / name: name for name in names}
    return [paths[path] for path in rival_files(list(paths))]


def _ask_for_file(
    inspection: Inspection, names: Sequence[str], certainty: int, meaning: str
) -> Interpretation:
    """The question which file is meant, where each is a set of its own."""
    ways = []
    for name in names[:_MOST_WAYS]:
        samples, _ = list_samples("arrays", {"": [inspection.folder / name]}, inspection.engine)
        table = _table(samples, name, None)
        option = f"{name}:{samples.label}"
        ways.append(
            Alternative(table.labelled, table.classes, {"label": option}, len(samples.names))
        )
    return Interpretation(
        certainty,
        (f"each file is a set of its own: {listed(names)}",),
        meaning,
        containers=names,
        alternatives=ways,
    )


def _choose_label(
    inspection: Inspection, samples: Samples, asked_label: str, kind: str
) -> tuple[str | None, list[Alternative]]:
    """The column of labels, if it has no usual name, or is asked for;
    otherwise the columns that it may be.
    """
    if asked_label in samples.columns:
        return asked_label, []
    if asked_label:
        what = f"{inspection.folder} has no column {asked_label}"
        raise InputError(what, f"expected one of {', '.join(samples.columns) or 'none'}")
    if samples.label is not None or samples.doubt:
        return None, []
    columns = {name: values for name, values in samples.columns.items() if None not in values}
    candidates = distinct_candidates(class_candidates(columns, ""), columns)
    single = [candidate for candidate in candidates if not candidate.is_hot]
    known = [candidate.columns[0] for candidate in single if candidate.is_known]
    if len(single) == 1 and known:
        return known[0], []
    count = len(samples.names)
    ways = [
        Alternative(count, each.classes, {"label": each.option}, count)
        for each in single[:_MOST_WAYS]
    ]
    if len(ways) > 1 and (known or kind == "arrays"):
        return None, ways
    if ways:
        command = inspection.command(**ways[0].options)
        samples.passed = [*samples.passed, f"{single[0].option} may be the class: {command}"]
    return None, []


def _gaps(names: Sequence[str]) -> list[str]:
    """The note on files that are missing among those that are counted: 00001.tar, of 00000.tar and
    00002.tar.

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
            missing += [
                f"{start}{each:0{width}}{end}" for each in range(first, last) if each not in known
            ]
    return [f"missing, by the numbers of the others: {listed(missing)}"] if missing else []


def _options(samples: Samples, table: LabelsFile, wanted: str | None) -> dict[str, str | bool]:
    """The key of a recipe for the labels."""
    if wanted is not None and table.has_labels:
        return {"label": wanted}
    return {} if table.has_labels or samples.label is None else {"label": False}


def _check_label(inspection: Inspection, samples: Samples, kind: str) -> None:
    """Raise InputError if it is not plain which column has the labels, or a sample has none."""
    if inspection.options.label is not None:
        return
    if samples.label is None and len(samples.words) > 1:
        what = f"{inspection.folder} has labels in {' and in '.join(samples.words)}"
        error = InputError(what, "expected one column of labels", "choose one:")
        raise error.with_choices([_choice(inspection, samples, name) for name in samples.words])
    if samples.label is not None and None in samples.columns[samples.label]:
        first = samples.names[samples.columns[samples.label].index(None)]
        hint = (
            f"a recipe can say: source: {{{kind}: ..., label: false}}; "
            f"{samples.label} is a column then"
        )
        raise InputError(
            f"{inspection.folder}: {first} has no {samples.label}", "expected one each", hint
        )


def _choice(inspection: Inspection, samples: Samples, name: str) -> str:
    """A column of labels in one line, which ends with its command."""
    labels = [label for label in samples.columns[name] if label is not None]
    counts = (
        f"{len(labels):,} of {len(samples.names):,} images, "
        f"{number_of(len(set(labels)), 'class', 'classes')}"
    )
    return f"  {counts}: {inspection.command(label=name)}"


def _by_split(kind: str, names: Sequence[str]) -> dict[str, list[str]]:
    """The files by the splits that their names tell; arrays tell theirs themselves."""
    is_one = kind == "arrays"
    groups = grouped(
        names, lambda name: "" if is_one else split_of(name.rpartition("/")[2]) or split_of(name)
    )
    order = ["train", "validation", "test"]
    return dict(
        sorted(groups.items(), key=lambda each: order.index(each[0]) if each[0] in order else -1)
    )


def _table(samples: Samples, where: str, label: str | None) -> LabelsFile:
    """The labels as those of a labels file."""
    path = samples.listing.containers[0].path
    table = samples.table(label, path)
    labels = class_values(table)
    table = samples.table(False, path) if labels is None else table
    return LabelsFile(where, table, {}, "", labels, range(len(samples.names)))


# which files they are -----------------------------------------------------------------------------

_MOST_WAYS = 4
_NAME = re.compile(
    r"([xy]|images?|labels?|data|targets?)([_-]?(train|test|val|valid|validation|eval|dev|all))?|"
    r"(train|test|val|valid|validation|eval|dev)([_-]?([xy]|images?|labels?|data|targets?))?",
    re.IGNORECASE,
)
_FEW = 12
_BESIDE = (".h5", ".hdf5", ".mat", ".csv")
_NUMBERED = re.compile(r"(.*?)(\d+)(\.\w+|)", re.ASCII)


def _find_arrays(inspection: Inspection) -> Sequence[str]:
    """Files of arrays that hold a whole set: of known formats, of usual names,
    or by the shapes of what they hold.
    """
    if inspection.content not in (None, "array"):
        return ()
    several = [name for name in inspection.items if name.lower().endswith(".npz")]
    inside = _names_in(inspection.folder / several[0]) if several else []
    few = len(inspection.items) <= _FEW
    named = few and (
        not inside if several else all(_NAME.fullmatch(stem_of(name)) for name in inspection.items)
    )
    held = inspection.holders.get("arrays", ())
    if inspection.items:  # weights of a network, or a table next to arrays
        held = [name for name in held if not name.lower().endswith(_BESIDE)]
    if not (len(inside) > 1 or named or held or _are_sets(inspection)):
        return ()
    names = {name.rpartition("/")[2]: name for name in inspection.listing.names}
    texts = [names[text] for text in NAMES if text in names]
    found = [*inspection.items, *held]
    if not downsampled.are_batches(found):
        texts = [text for text in texts if not text.endswith(downsampled.SYNSETS)]
    return [*found, *texts]


def _are_sets(inspection: Inspection) -> bool:
    """Whether the files hold sets: they are in no folder but those of splits,
    which class folders are not.
    """
    folders = {name.rpartition("/")[0] for name in inspection.items}
    if not all(folder == "" or split_of(folder) for folder in folders):
        return False
    return are_sets([inspection.folder / name for name in inspection.items])


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
        if _have_masks(listing.names):
            return list(inspection.archives)
    return ()


def _have_masks(names: Iterable[str]) -> bool:
    """Whether most images have a second image of their key: 1.jpg and 1.seg.png."""
    endings: dict[str, set[str]] = {}
    for name in names:
        folder, slash, last = name.rpartition("/")
        key, _, end = last.partition(".")
        if is_of("image", name):
            endings.setdefault(f"{folder}{slash}{key}", set()).add(end.lower())
    paired = [key for key, ends in endings.items() if len({"." in end for end in ends}) == 2]
    return bool(paired) and 2 * len(paired) >= len(endings)


def _holders(kind: str, inspection: Inspection) -> Sequence[str]:
    """The files that inspection found to be of this kind."""
    return inspection.holders.get(kind, ())


def _find_parquet(inspection: Inspection) -> Sequence[str]:
    """The parquet files; none if they hold no images, and something else does."""
    names = _holders("parquet", inspection)
    has_others = bool(inspection.items or inspection.archives)
    if (
        names
        and has_others
        and not any(may_hold_images(inspection.folder / name) for name in names)
    ):
        return ()
    return names


_FINDERS: dict[str, tuple[str, Callable[[Inspection], Sequence[str]]]] = {
    "array-sets": ("arrays", _find_arrays),
    **{
        kind: (kind, functools.partial(_holders, kind))
        for kind in ("tfrecord", "arrow", "mds", "lmdb")
    },
    "parquet": ("parquet", _find_parquet),
    "webdataset": ("webdataset", _find_webdataset),
}

LAYOUTS: dict[str, Recogniser] = {
    name: functools.partial(_recognise, *each) for name, each in _FINDERS.items()
}
