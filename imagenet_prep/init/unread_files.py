"""UnreadFiles: an Interpretation -> the files that it leaves out, as losses that a user must accept
or as notes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.init.column_options import unused_columns
from imagenet_prep.init.doubled_folders import doubts_of_doubled
from imagenet_prep.init.file_endings import ARCHIVES, ending_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.label_tables import LabelsFile, LabelsRefusal
from imagenet_prep.init.packed_files import unpacking_hint
from imagenet_prep.init.proposal import Interpretation
from imagenet_prep.init.structures import known_structures
from imagenet_prep.init.unfit_files import strange
from imagenet_prep.recipes.formats import all_formats
from imagenet_prep.recipes.misread_folders import in_flow
from imagenet_prep.recipes.path_parts import counted, grouped, has_ending
from imagenet_prep.sources.folders import EMPTY, HIDDEN, PRIVATE
from imagenet_prep.sources.tars import noun_of
from imagenet_prep.text import listed, number_of


class UnreadFiles(Struct):
    """The files that a structure does not read.

    Args:
        losses: those that would be missed.
        notes: the notes on others.
        unused_tables: the notes on tables that it does not use.
    """

    losses: list[InputError]
    notes: list[str]
    unused_tables: list[str]


def find_unread(inspection: Inspection, interpretation: Interpretation) -> UnreadFiles:
    """The files of a folder that an interpretation leaves out."""
    unread = UnreadFiles(list(interpretation.losses), list(interpretation.skip_notes), [])
    unread.losses += _outside_of_containers(inspection, interpretation)
    unread.losses += _absent_images(inspection, interpretation)
    if interpretation.proposal is not None:
        unread.losses += doubts_of_doubled(inspection, interpretation.proposal)
    read_files = {*(interpretation.annotation_files or ()), *interpretation.list_files}
    read_tables = set(read_files)
    if interpretation.table is not None:
        read_tables.update(interpretation.table.places)
    _add_tables(unread, inspection, interpretation, read_tables)
    _add_annotations(unread, inspection, interpretation, read_tables)
    read_files.update(interpretation.containers)
    read_files.update(_files_of_names(inspection))
    _add_others(unread, inspection, interpretation, read_files)
    unread.notes += _notes_on_skipped(inspection)
    return unread


def _files_of_names(inspection: Inspection) -> list[str]:
    """The file that the user says has the names of the classes, from the folder; none without."""
    file = inspection.options.names
    if file is None:
        return []
    path = os.path.relpath(file.resolve(), inspection.folder.resolve())
    return [Path(path).as_posix()]


def _outside_of_containers(
    inspection: Inspection, interpretation: Interpretation
) -> list[InputError]:
    """The tars that are not taken, and the images outside of those that are."""
    containers = set(interpretation.containers)
    losses: list[InputError] = []
    tars = [name for name in inspection.archives if name not in containers]
    item_files = f"{inspection.noun} files"
    if tars:
        losses.append(_fault_of_tars(inspection, tars, interpretation.containers))
    items = [name for name in inspection.items if name not in containers]
    if containers and items:
        place = interpretation.containers[0]
        if place in inspection.archives:
            place = f"{noun_of(interpretation.containers)}s"
        expected = f"only {item_files}, or only {place}"
        if containers.issubset(inspection.items):
            expected = "one file of arrays, or files that are parts of one set"
        place = f" outside of {place}"
        losses.append(_unread_fault(inspection, inspection.noun, items, expected, place))
    return losses


def _fault_of_tars(
    inspection: Inspection, tars: Sequence[str], containers: Sequence[str]
) -> InputError:
    """The fault of tars that are not taken, next to the ``containers`` that are."""
    noun = noun_of(tars)
    taken = listed(containers) or f"{inspection.noun} files"
    fault = _unread_fault(inspection, noun, tars, f"only {taken}, or only {noun}s")
    unpacking = unpacking_hint(inspection.folder, tars)
    if not isinstance(unpacking, CommandLine) or containers:
        return fault
    hint = Hint("to read the images in it, unpack: ", unpacking, "; or ", fault.hint)
    return InputError(fault.what, fault.detail, hint)


def _absent_images(inspection: Inspection, interpretation: Interpretation) -> list[InputError]:
    """The fault of each list that names images that are not there."""
    if interpretation.proposal is None:
        return []
    noun, folder = inspection.noun, inspection.folder
    faults: list[InputError] = []
    for name, absent in interpretation.proposal.absent.items():
        if absent:
            is_, them = ("is", "it") if len(absent) == 1 else ("are", "them")
            count = number_of(len(absent), noun)
            problem = f"{folder / name} names {count} that {is_} not in {folder}: {listed(absent)}"
            expected = f"expected the name of one of the {noun}s in each line"
            hint = f"add {them}, or take {them} out of the list"
            faults.append(InputError(problem, expected, hint))
    return faults


def _add_annotations(
    unread: UnreadFiles,
    inspection: Inspection,
    interpretation: Interpretation,
    read_files: Collection[str],
) -> None:
    """Add the annotations of tools that no recipe takes, or of which it takes others."""
    for tool, files in inspection.annotations.items():
        skipped = sorted(set(files).difference(read_files))
        if len(skipped) == len(files):
            unread.losses.append(_fault(inspection, "annotations", files, tool))
        elif skipped:
            taken_files = listed(sorted(interpretation.annotation_files or ()), 2)
            unread.notes.append(f"{listed(skipped)}: not read, {taken_files} taken")


def _add_others(
    unread: UnreadFiles,
    inspection: Inspection,
    interpretation: Interpretation,
    read_files: Collection[str],
) -> None:
    """Add the files that no structure reads: images or labels in them would be missed."""
    for reason, files in inspection.others.items():
        names = [name for name in files if name not in read_files]
        if names and _is_loss(reason, interpretation):
            unread.losses.append(_fault(inspection, reason, names))
        else:
            unread.notes += _notes_by_ending(names)


def _is_loss(reason: str, interpretation: Interpretation) -> bool:
    """Whether files that inspection left out for this reason would be missed."""
    if reason in ("packed", "strange"):
        return True
    if interpretation.annotation_files is not None:
        return False
    if reason == "names images":
        return True
    return reason in ("data", "text names images") and not interpretation.is_labelled


def _notes_on_skipped(inspection: Inspection) -> list[str]:
    """The notes on what was not even listed: hidden files, empty folders, those of systems."""
    skipped = inspection.remarks.passed
    notes: list[str] = []
    if hidden := skipped.get(HIDDEN):
        count = number_of(len(hidden), "hidden file or folder", "hidden files or folders")
        notes.append(f"{count}: {listed(hidden)}")
    if empty := skipped.get(EMPTY):
        notes.append(f"{number_of(len(empty), 'empty folder')}: {listed(empty)}")
    for reason in dict.fromkeys(PRIVATE.values()):
        if names := skipped.get(reason):
            notes.append(f"{listed(names)}: {reason}")
    return notes


def without_told(
    notes: Sequence[str], evidence: Sequence[str], inspection: Inspection
) -> tuple[str, ...]:
    """The notes, except those on a single file of which a line of the evidence tells."""
    told: list[str] = []
    for name in chain.from_iterable(inspection.others.values()):
        if any(line.startswith(f"{name} ") for line in evidence):
            told += _notes_by_ending([name])
    return tuple(note for note in notes if note not in told)


def _notes_by_ending(names: Sequence[str]) -> list[str]:
    """A line for the files of each ending, and one for all without one."""
    groups = grouped(names, ending_of)
    notes: list[str] = []
    for ending in sorted(groups, key=lambda ending: -len(groups[ending])):
        files = groups[ending]
        count = number_of(len(files), "file without an ending", "files without an ending")
        if ending:
            count = number_of(len(files), f"{ending} file")
        notes.append(f"{count}, not read: {listed(files)}")
    return notes


# faults of files that would be missed -------------------------------------------------------------

_TO_CSV = "write {} labels to a CSV with the columns filename and label, and run init again"
_KNOWN_FORMS = "expected CSV, TSV, JSON, JSON lines, or a path and its label in each line"
_FAULTS = {
    "packed": (
        " holds {count} that would not be read: {names}",
        "expected all {noun}s in folders, or all in tars",
    ),
    "names images": (
        ": {names} {has} the names of at least half of the {noun}s, in a form that is not known",
        _KNOWN_FORMS,
    ),
    "data": (
        ": {names} may label the images, and init finds no labels in {them}",
        "expected a table that names at least half of the {noun}s",
    ),
    "annotations": (" has {tool} annotations: {names}", "they would not be read"),
}


def _unread_fault(
    inspection: Inspection, noun: str, names: Sequence[str], expected: str, place: str = ""
) -> InputError:
    """The fault of tars or of files next to them, or next to other files with images."""
    count = number_of(len(names), noun)
    problem = f"{inspection.folder} holds {count}{place} that would not be read: {listed(names)}"
    pronoun = "it" if len(names) == 1 else "them"
    return InputError(problem, f"expected {expected}", f"move {pronoun} out of {inspection.folder}")


def _fault(inspection: Inspection, reason: str, names: Sequence[str], tool: str = "") -> InputError:
    """The fault of files that a structure would lose."""
    if reason == "strange":
        return strange(inspection.folder, names, inspection.content, len(inspection.items))
    template, expected = _FAULTS[reason.removeprefix("text ")]
    has = "has" if len(names) == 1 else "have"
    them = "it" if len(names) == 1 else "them"
    noun = inspection.noun
    expected = expected.format(noun=noun)
    problem = template.format(
        count=counted(names), names=listed(names), tool=tool, has=has, noun=noun, them=them
    )
    if reason == "packed":
        can_be_unpacked = all(has_ending(name, ARCHIVES) for name in names)
        hint = f"move {them} away"
        if can_be_unpacked:
            hint = f"unpack {them}, or move {them} away"
    else:
        hint = _TO_CSV.format("their" if reason == "annotations" else "the")
        why_unread, remedy = _why_unread(inspection, names[0], tool)
        if why_unread:
            expected += f": {why_unread}"
        if remedy:
            hint = f"{remedy}; or {hint}"
        hint = _hint_for_tool(inspection, tool) or hint
    return InputError(f"{inspection.folder}{problem}", expected, hint)


def _why_unread(inspection: Inspection, name: str, tool: str) -> tuple[str, str]:
    """The reason why a tool's file is not read, and what to do; ("", "") if it is not known."""
    for format in all_formats().values():
        if format.tool == tool and format.why_unread is not None:
            with contextlib.suppress(InputError):
                return format.why_unread(inspection.folder / name)
    return "", ""


def _hint_for_tool(inspection: Inspection, tool: str) -> str:
    """The command that takes the annotations of a tool, or says why it can't;
    "" if no structure has them.
    """
    structures = known_structures()
    refusing = ""
    for format in all_formats().values():
        if format.tool != tool:
            continue
        interpretation = structures[format.structure](inspection)
        if interpretation is None:
            continue
        if interpretation.faults or interpretation.proposal is None:
            refusing = format.structure
            continue
        unused = unused_columns(inspection, format.structure, interpretation.proposal)
        command = inspection.command(**{"as": format.structure, **dict.fromkeys(unused)})
        count = f"{interpretation.labelled:,} of {number_of(interpretation.total, 'image')}"
        return Hint(f"to read them, for {count}: ", command)
    if not refusing:
        return ""
    return Hint("to see what prevents it: ", inspection.command(**{"as": refusing}))


# tables -------------------------------------------------------------------------------------------


def _add_tables(
    unread: UnreadFiles,
    inspection: Inspection,
    interpretation: Interpretation,
    read_tables: Collection[str],
) -> None:
    """Add the tables that an interpretation does not read."""
    for refusal in inspection.refusals:
        if refusal.name not in read_tables:
            _add_refusal(unread, inspection, interpretation, refusal)
    is_undivided = _is_undivided(interpretation)
    for table in (*inspection.labels, *inspection.partial):
        if table.name in read_tables:
            continue
        note = _note_on_unused(inspection, table, interpretation)
        unread.unused_tables.append(note)
        if is_undivided and table.splits is not None:
            unread.losses.append(_unread_splits(inspection, interpretation, table))


def _add_refusal(
    unread: UnreadFiles,
    inspection: Inspection,
    interpretation: Interpretation,
    refusal: LabelsRefusal,
) -> None:
    """Add a table that can't be taken: a loss, unless annotations are taken or it has little."""
    is_missed = refusal.is_most or not interpretation.is_labelled
    if interpretation.annotation_files is None and is_missed:
        unread.losses.append(refusal.error)
        return
    problem = refusal.error.what.removeprefix(f"{inspection.folder}/")
    parts = filter(None, (problem, refusal.error.hint))
    unread.unused_tables.append(join_hints("; ", parts))


def _is_undivided(interpretation: Interpretation) -> bool:
    """Whether neither the recipe nor its table says what the splits are."""
    proposal = interpretation.proposal
    if proposal is None or proposal.splits or proposal.lists:
        return False
    return proposal.table is None or proposal.table.table.splits is None


def _unread_splits(
    inspection: Inspection, interpretation: Interpretation, table: LabelsFile
) -> InputError:
    """The fault of a table that divides the images, where their labels come from elsewhere."""
    assert table.splits is not None
    column = table.splits.name
    proposal = interpretation.proposal
    expected = "expected a file of image paths for each split"
    hint = "list the images of each split in a file, such as train.txt, and run init again"
    if proposal is not None and proposal.annotations:
        places = {split: {"manifest": f"{split}.txt"} for split in table.splits.splits.values()}
        keys = in_flow({"splits": places})[1:-1]
        files = [place["manifest"] for place in places.values()]
        lists = listed(files, len(files))
        expected = "expected splits in the annotations, which name none"
        hint = (
            "first make the recipe with the command below, without splits; then list the images of "
            f"each split in {lists} next to the recipe, and add to the recipe: {keys}"
        )
    if proposal is not None and proposal.table is not None:
        expected = "expected the splits in the table of labels, or a file of paths for each"
        hint = f"copy the column {column} into the table that has the labels, and run init again"
    return InputError(
        f"{inspection.folder / table.name} divides the images in its column {column}: "
        f"{listed(table.splits.splits)}",
        expected,
        hint,
    )


def _note_on_unused(
    inspection: Inspection, table: LabelsFile, interpretation: Interpretation
) -> str:
    """The note on a table that is not read: what it names, and the command that takes it."""
    total = len(inspection.items or inspection.members)
    named = len({row for row in table.rows if row >= 0})
    counts = f"{named:,} of {number_of(total, inspection.noun)}"
    note = f"{table.place} is not used: it names {counts}"
    no_class = "and has no class"
    if len(table.places) > 1:
        note = f"{table.place} are not used: they name {counts}"
        no_class = "and have no class"
    if not table.has_labels:
        is_known = inspection.options.label is None and not table.candidates
        return f"{note}, {no_class}" if is_known else note
    note += f", {number_of(table.classes, 'class', 'classes')}"
    if table.label:
        note += f" in {table.label}"
    if interpretation.is_labelled and table.labelled * 2 < total:
        return note
    use = "to use them" if len(table.places) > 1 else "to use it"
    if named < total:
        use += f", and only {_these(named, inspection.noun)}"
    return Hint(f"{note}; {use}: ", _label_command(inspection, table))


def _these(count: int, noun: str) -> str:
    """Words for the images that the note has just counted."""
    return f"these {count:,} {noun}s" if count > 1 else f"this {noun}"


def _label_command(inspection: Inspection, table: LabelsFile) -> str:
    """The command of init that reads the labels of a table."""
    label = f"{table.name}:{table.label}" if table.label else table.name
    structure = "with-labels" if inspection.items else "tars-with-labels"
    return inspection.command_for_another(**{"as": structure, "label": label})
