"""Images and labels in the same files: WebDataset tars, TFRecords,
Parquet, arrays of a whole set.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_columns import Candidate, class_candidates, distinct_candidates
from imagenet_prep.init.label_tables import LabelsFile
from imagenet_prep.init.packed_files import unpacking_hint
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.sample_files import (
    find_arrays,
    find_parquet,
    find_webdataset,
    holders_of,
    lists_beside,
    missing_numbers,
)
from imagenet_prep.init.structures import Recogniser
from imagenet_prep.init.table_forms import LABEL_VALUES, class_values
from imagenet_prep.init.unfit_files import ANY_FORMAT
from imagenet_prep.recipes import downsampled
from imagenet_prep.recipes.array_groups import rival_files
from imagenet_prep.recipes.array_sets import FILE
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.joined_samples import Samples, split_of
from imagenet_prep.recipes.label_cells import labels_of_cells
from imagenet_prep.recipes.path_parts import base_name, grouped
from imagenet_prep.recipes.sample_sources import list_samples
from imagenet_prep.recipes.source_kinds import kinds_with_samples, source_kinds
from imagenet_prep.recipes.splits import USUAL
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.sources.array_formats import counts_from_1
from imagenet_prep.text import either, listed, number_of

_MOST_ALTERNATIVES = 4
"""Files that a question names."""

_NOUNS = {"arrays": "array"}
"""The name of one file of a kind, if its key in `source` is a plural."""


_FEW = 2
"""Images next to files of so many times as many samples are pictures of a description."""


class _SampleFiles(Struct, frozen=True):
    """Files of samples, as they are read.

    Args:
        groups: the files by split ("": of none).
        samples: what is in them.
        splits: the splits that they have.
        table: the labels.
        label: the column of labels that is taken, if it has no usual name.
        alternatives: the columns that may be the labels, if that is a question.
    """

    groups: dict[str, list[str]]
    samples: Samples
    splits: Sequence[str]
    table: LabelsFile
    label: str | None
    alternatives: Sequence[Alternative]


def _recognise(
    kind: str, find: Callable[[Inspection], Sequence[str]], inspection: Inspection
) -> Interpretation | None:
    """Files of a ``kind`` of source, that ``find`` gives, listed in full;
    a note if the samples have no classes.
    """
    names = find(inspection)
    if not names:
        return None
    pictures = set(inspection.items).difference(names)
    certainty = ONLY_IF_ASKED if pictures else CERTAIN + 1
    meaning = f"a record for each sample of the {_NOUNS.get(kind, kind)} files"
    file_name, _, column = (inspection.options.label or "").rpartition(":")
    try:
        if kind == "arrays":
            sets = _sets_among(inspection, names)
            if file_name in sets:
                names = [file_name]
            elif len(sets) > 1:
                return _ask_for_file(inspection, sets, certainty, meaning)
        files = _read_files(inspection, kind, names, column)
    except InputError as error:
        return Interpretation(certainty, (), meaning, faults=(error,), containers=names)
    if files.alternatives:
        meaning += ", with one of its columns as the class"
    samples, table = files.samples, files.table
    if _FEW * len(pictures) <= len(samples.names):
        certainty = CERTAIN + 1
    has_classes = bool(samples.class_names)
    remarks = downsampled.remarks_on(names, samples.names, has_classes=has_classes)
    evidence = _evidence(kind, names, files)
    proposal = _propose(kind, names, files, remarks)
    lists = lists_beside(inspection, kind)
    notes = [*samples.passed, *_notes_on_lists(lists)]
    losses = [_fault_of_loss(inspection, kind, names, loss) for loss in samples.lost]
    return Interpretation(
        certainty,
        (*evidence, *_notes_on_labels(inspection, files), *remarks),
        meaning,
        proposal,
        containers=[*names, *lists],
        skip_notes=notes,
        losses=losses,
        labelled=table.labelled,
        classes=table.classes,
        alternatives=files.alternatives,
    )


def _read_files(
    inspection: Inspection, kind: str, names: Sequence[str], column: str
) -> _SampleFiles:
    """The samples of some files with their labels; ``column`` is the one that the user names.

    Raises:
        InputError: they can't be read, or it is not plain which column has the labels.
    """
    groups = _by_split(kind, names)
    if "" in groups and len(groups) > 1:
        raise _fault_of_undivided(inspection, groups)
    paths: dict[str, list[Path]] = {}
    for split, split_files in groups.items():
        paths[split] = [inspection.folder / name for name in split_files]
    samples, splits = list_samples(kind, paths, inspection.engine)
    label, alternatives = _choose_label(inspection, samples, column, kind)
    if label is None and not alternatives:
        _check_label(inspection, samples)
    first_split = next(iter(groups))
    first_file = groups[first_split][0]
    table = _labels_of(samples, first_file, label)
    return _SampleFiles(groups, samples, splits, table, label, alternatives)


def _by_split(kind: str, names: Sequence[str]) -> dict[str, list[str]]:
    """The files by the splits that their names tell; arrays tell theirs themselves."""
    if kind == "arrays":
        return {"": list(names)}
    groups = grouped(names, _split_of_file)
    unusual_splits = [split for split in groups if split not in USUAL]
    usual_splits = [split for split in USUAL if split in groups]
    return {split: groups[split] for split in unusual_splits + usual_splits}


def _split_of_file(path: str) -> str:
    """The split that a file's name tells, or that of a folder above it; "" for none."""
    return split_of(base_name(path)) or split_of(path)


def _fault_of_undivided(inspection: Inspection, groups: Mapping[str, Sequence[str]]) -> InputError:
    """The fault of files in no split next to others in splits."""
    undivided = listed(groups[""])
    split = max(groups)
    problem = (
        f"{inspection.folder}: some files are in no split ({undivided}), "
        f"others are in {split} ({listed(groups[split])})"
    )
    expected = "expected all files in splits, or none"
    example = f"{split}-{base_name(groups[''][0])}"
    hint = f"move those in no split away, or rename them by splits, such as {example}"
    return InputError(problem, expected, hint)


def _labels_of(samples: Samples, name: str, label: str | None) -> LabelsFile:
    """The labels as those of a labels file."""
    path = samples.listing.containers[0].path
    table = samples.table(label, path)
    labels = class_values(table)
    if labels is None:
        table = samples.table(False, path)
    return LabelsFile(name, table, {}, "", labels, range(len(samples.names)))


def _sets_among(inspection: Inspection, names: Sequence[str]) -> list[str]:
    """The files of arrays that are a set of their own each."""
    name_by_path = {inspection.folder / name: name for name in names}
    return [name_by_path[path] for path in rival_files(list(name_by_path))]


def _ask_for_file(
    inspection: Inspection, names: Sequence[str], certainty: int, meaning: str
) -> Interpretation:
    """The question which file is meant, where each is a set of its own."""
    alternatives: list[Alternative] = []
    for name in names[:_MOST_ALTERNATIVES]:
        paths = {"": [inspection.folder / name]}
        samples, _ = list_samples("arrays", paths, inspection.engine)
        alternatives += _choices_of_file(samples, name)
    evidence = f"each file is a set of its own ({listed(names)}); the others are left out"
    return Interpretation(
        certainty,
        (evidence,),
        meaning,
        containers=names,
        alternatives=alternatives,
    )


def _choices_of_file(samples: Samples, name: str) -> list[Alternative]:
    """The columns of a file that may be the labels; without one, its samples without labels."""
    total = len(samples.names)
    table = _labels_of(samples, name, None)
    if table.has_labels:
        options = _options_of_file(name, samples.label)
        return [Alternative(table.labelled, table.classes, options, total)]
    alternatives: list[Alternative] = []
    for candidate in _candidates(samples):
        options = _options_of_file(name, candidate.option)
        alternatives.append(Alternative(total, candidate.classes, options, total))
    return alternatives or [Alternative(0, 0, _options_of_file(name, ""), total)]


def _options_of_file(name: str, label: str | None) -> dict[str, object]:
    """The options that take one file and its labels, and accept that other files are left out."""
    return {"as": "array-sets", "label": f"{name}:{label}"}


# the recipe ---------------------------------------------------------------------------------------


def _propose(
    kind: str, names: Sequence[str], files: _SampleFiles, remarks: Sequence[str]
) -> Proposal:
    """The files as a source, with their labels."""
    samples, table = files.samples, files.table
    options: dict[str, str | bool] = {}
    if files.label is not None and table.has_labels:
        options["label"] = files.label
    elif samples.label is not None and not table.has_labels:
        options["label"] = False
    content: Content = "image"
    if samples.names[0].endswith(".npy"):
        content = "array"
    splits = {split: split for split in files.splits}
    first_label = _first_label(names, table, samples.label)
    return Proposal(
        kind,
        content,
        list(samples.listing.names),
        paths=files.groups,
        splits=splits,
        table=table,
        options=options,
        remarks=remarks,
        first_label=first_label,
    )


def _first_label(names: Sequence[str], table: LabelsFile, label: str | None) -> int | None:
    """The number of the first class where a format counts from 1,
    or Inception's, whose 0 is no class.
    """
    are_arrays_from_1 = all(counts_from_1(base_name(name)) for name in names)
    is_named_from_1 = min(table.table.words, default=0) == 1
    if label != "image/class/label" and not are_arrays_from_1 and not is_named_from_1:
        return None
    labels = flat_labels(table.labels or ())
    for number in labels:
        if not isinstance(number, int) or number <= 0:
            return None
    return 1 if labels else None


# evidence, notes and faults -----------------------------------------------------------------------


def _evidence(kind: str, names: Sequence[str], files: _SampleFiles) -> list[str]:
    """How many samples, classes and boxes there are, and which files seem to be missing."""
    samples, label = files.samples, files.label
    noun = _NOUNS.get(kind, kind)
    count = number_of(len(names), f"{noun} file")
    sample_count = number_of(len(samples.names), "sample")
    evidence = [f"{count} with {sample_count}: {listed(names)}"]
    if label is not None:
        classes = number_of(files.table.classes, "class", "classes")
        evidence.append(f"{label} is the class: {classes}")
    elif samples.label == FILE:
        class_names = dict.fromkeys(samples.columns[FILE])
        classes = listed(list(class_names))
        evidence.append(f"each file is a class: {classes}")
    images = samples.marks.images.values()
    box_count = sum(len(image.objects) for image in images)
    if box_count:
        boxes = number_of(box_count, "box", "boxes")
        evidence.append(f"{boxes} in {number_of(len(images), 'image')}")
    missing = missing_numbers(names)
    if missing:
        evidence.append(f"missing, by the numbers of the others: {listed(missing)}")
    return evidence


_NO_CLASS = "the records have no class: "


def _notes_on_labels(inspection: Inspection, files: _SampleFiles) -> list[str]:
    """The note on samples without classes, with the command for a column that may have them."""
    label = files.label or files.samples.label
    if label is None:
        no_class = f"{_NO_CLASS}the files have no column called label, class or the like"
        candidates = _candidates(files.samples)
        if not candidates or files.alternatives:
            return [no_class]
        option = candidates[0].option
        command = inspection.command_for_another(label=option)
        return [Hint(f"{no_class}; to use {option} as the class: ", command)]
    if files.table.has_labels:
        return []
    return [f"{_NO_CLASS}{label} holds no labels of classes: expected {LABEL_VALUES}"]


def _notes_on_lists(lists: Sequence[str]) -> list[str]:
    if not lists:
        return []
    return [f"{listed(lists)}: not read, a table without images"]


def _fault_of_loss(
    inspection: Inspection, kind: str, names: Sequence[str], loss: str
) -> InputError:
    """The fault of boxes or masks that a source can't read."""
    hint = ANY_FORMAT
    if kind == "webdataset":
        hint = unpacking_hint(inspection.folder, names)
        if isinstance(hint, CommandLine):
            hint = Hint("to read them as single files, unpack: ", hint)
    problem = f"{inspection.folder}: {loss}"
    files = f"{_NOUNS.get(kind, kind)} files"
    expected = f"init reads images, labels, texts and numbers of {files}"
    if kind == "parquet":
        expected += ", and boxes in a column objects that holds bbox and category"
    return InputError(problem, expected, hint)


# the column of labels -----------------------------------------------------------------------------


def _choose_label(
    inspection: Inspection, samples: Samples, column: str, kind: str
) -> tuple[str | None, list[Alternative]]:
    """The column of labels, if it has no usual name, or is asked for;
    otherwise the columns that it may be.
    """
    if column:
        _refuse_no_label(inspection, samples, column)
        return column, []
    if samples.label is not None or samples.doubt:
        return None, []
    candidates = _candidates(samples)
    if not candidates:
        return None, []
    return _choose_candidate(samples, candidates, kind)


def _refuse_no_label(inspection: Inspection, samples: Samples, column: str) -> None:
    """Raise InputError unless the samples have this column, and it can have their labels."""
    label_columns = _columns_of_labels(samples)
    if column in label_columns:
        return
    problem = f"{inspection.folder} has no column of labels called {column}"
    if column in samples.columns:
        problem = (
            f"{inspection.folder}: the column {column} can't be the label: labels are "
            f"{LABEL_VALUES}, and no sample has the same label twice"
        )
    expected = "expected no --label: no column can be the label"
    hint = Hint("to run init without --label: ", inspection.command(label=None))
    if label_columns:
        expected = f"expected --label {either(label_columns)}"
        hint = Hint(f"to use {label_columns[0]}: ", inspection.command(label=label_columns[0]))
    raise InputError(problem, expected, hint)


def _columns_of_labels(samples: Samples) -> list[str]:
    """The columns whose values can be labels."""
    path = samples.listing.containers[0].path
    columns: list[str] = []
    for name in samples.columns:
        if class_values(samples.table(name, path)) is not None:
            columns.append(name)
    return columns


def _choose_candidate(
    samples: Samples, candidates: Sequence[Candidate], kind: str
) -> tuple[str | None, list[Alternative]]:
    """The only column whose name says labels; several columns are a question."""
    is_known = any(candidate.is_known for candidate in candidates)
    if len(candidates) == 1 and is_known:
        return candidates[0].columns[0], []
    if len(candidates) > 1 and (is_known or kind == "arrays"):
        total = len(samples.names)
        alternatives: list[Alternative] = []
        for candidate in candidates:
            options = {"label": candidate.option}
            alternatives.append(Alternative(total, candidate.classes, options, total))
        return None, alternatives
    return None, []


def _candidates(samples: Samples) -> list[Candidate]:
    """The columns that may have the labels of all samples."""
    columns = {name: cells for name, cells in samples.columns.items() if None not in cells}
    candidates = class_candidates(columns, "")
    candidates = distinct_candidates(candidates, columns)
    return [candidate for candidate in candidates if not candidate.is_hot]


def _check_label(inspection: Inspection, samples: Samples) -> None:
    """Raise InputError if it is not plain which column has the labels, or a sample has none."""
    if inspection.options.label is not None:
        return
    label = samples.label
    doubt = samples.doubt
    if label is None and doubt is None and len(samples.words) > 1:
        problem = f"{inspection.folder} has labels in {' and in '.join(samples.words)}"
        doubt = InputError(problem, "expected one column of labels")
    if label is None and doubt is not None:
        names = samples.words or _columns_of_labels(samples)
        choices = [_choice(inspection, samples, name) for name in names]
        if not choices:
            raise doubt
        error = InputError(doubt.what, doubt.detail, "choose a column:")
        raise error.with_choices(choices[:_MOST_ALTERNATIVES])
    if label is None:
        return
    labels = labels_of_cells(samples.columns[label])
    if None in labels:
        name = samples.names[labels.index(None)]
        problem = f"{inspection.folder}: the sample {name} has no label in {label}"
        hint = "add it"
        if label in _columns_of_labels(samples):
            without = "; or, to make records of such samples without a label: "
            hint = Hint(hint, without, inspection.command(label=label))
        raise InputError(problem, "expected a label for each sample", hint)


def _choice(inspection: Inspection, samples: Samples, column: str) -> str:
    """A column of labels in one line, which ends with its command."""
    cells = samples.columns[column]
    labels = [label for label in labels_of_cells(cells) if label is not None]
    sample_counts = f"{len(labels):,} of {number_of(len(samples.names), 'sample')}"
    class_count = len(set(flat_labels(labels)))
    classes = number_of(class_count, "class", "classes")
    command = inspection.command(label=column)
    return Hint(f"  {sample_counts}, {classes}: ", command)


_FINDERS: dict[str, Callable[[Inspection], Sequence[str]]] = {
    "arrays": find_arrays,
    "parquet": find_parquet,
    "webdataset": find_webdataset,
}
"""The function that finds the files of a kind, where more than each file by itself tells them."""


def _structures() -> dict[str, Recogniser]:
    """A recogniser by structure: one for each kind of source whose files hold their own labels."""
    structures: dict[str, Recogniser] = {}
    for key in sorted(kinds_with_samples()):
        holders = functools.partial(holders_of, key)
        find = _FINDERS.get(key, holders)
        name = source_kinds()[key].structure or key
        structures[name] = functools.partial(_recognise, key, find)
    return structures


STRUCTURES: dict[str, Recogniser] = _structures()
