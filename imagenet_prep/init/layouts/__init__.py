"""Layouts, the ways in which people keep a set. An Inspection -> the Choice of one, or what
decides.

A layout is a function ``recognise``: an Inspection -> its Reading, which has the recipe and what is
left out. A new layout is a new module with it; its name, with hyphens, is what ``--as`` calls it. A
module of several related ones has their functions in ``LAYOUTS``, by name.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.escaping import command_line, quoted
from imagenet_prep.init.inspection import Inspection, ending_of, strange
from imagenet_prep.init.labels_search import LabelsFile
from imagenet_prep.init.split_lists import SplitLists
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.splits import counted, grouped, suffix_of
from imagenet_prep.sources.folders import EMPTY, HIDDEN, PRIVATE
from imagenet_prep.text import listed, number_of

CERTAIN, LIKELY, POSSIBLE, ONLY_IF_ASKED = 3, 2, 1, 0
"""How sure a layout is. The surest one is taken; two of the same are a choice."""


class Proposal(Struct, frozen=True):
    """The content of a recipe. Paths start at the folder of the data.

    Args:
        kind: the key of the recipe's source.
        content: what the files are.
        names: the files that count, by their paths from ``lead``.
        lead: the folders that lead to them all, with a slash; or "".
        paths: the tars, or the files of a source with labels of its own, by split ("": of none).
        splits: the given ones, by folder.
        lists: the files that name those of each split, by split.
        places: the recipe's ``splits``, where the folders don't say them by themselves.
        classes: the recipe's ``classes``, where it must name them.
        divided: the splits that the annotations themselves name.
        written_lists: the files of each split, from ``lead``, where no file lists them: init writes
        the lists. written_labels: the class of each file, from ``lead``, where no file says it:
        init writes the table. several: what is between the classes of a file there, if it can have
        several.
        table: a labels file, or the labels that are in the source itself.
        annotations: the value of the recipe's key "boxes" or "mask".
        clips_boxes: whether the recipe says ``boxes_outside: clip``.
        options: what a recipe must say of the source, except where it is.
        remarks: what a reader of the recipe must know of the source, a line each.
        first_label: the number of the first class, if the format of the source says it.
    """

    kind: str
    content: Content
    names: Sequence[str]
    lead: str = ""
    paths: Mapping[str, Sequence[str]] = {}
    splits: Mapping[str, str] = {}
    lists: Mapping[str, str] = {}
    places: Mapping[str, Mapping[str, Any]] = {}
    classes: Sequence[str] = ()
    divided: Sequence[str] = ()
    written_lists: Mapping[str, Sequence[str]] = {}
    written_labels: Mapping[str, str] = {}
    several: str = ""
    table: LabelsFile | None = None
    annotations: Mapping[str, Mapping[str, Any]] = {}
    clips_boxes: bool = False
    options: Mapping[str, str | bool] = {}
    remarks: Sequence[str] = ()
    first_label: int | None = None

    @property
    def split_names(self) -> list[str]:
        """The splits that the recipe has, by folders, lists, files or the values of a column;
        none: of shares.
        """
        lists = (
            *self.places,
            *self.splits.values(),
            *self.lists,
            *self.written_lists,
            *self.divided,
        )
        of_table = self.table.split_names if self.table is not None else ()
        return list(dict.fromkeys((*lists, *filter(None, self.paths), *of_table)))

    def divide(self, lists: SplitLists) -> Proposal:
        """The same files, divided by lists: the recipe names them, or those that init writes."""
        proposal = replace(self, names=lists.names, splits={})
        if lists.is_plain:
            return replace(proposal, lists=lists.files)
        return replace(proposal, written_lists=lists.divided)


class Way(Struct, frozen=True):
    """A way to read a folder that can be chosen: how many images it gives a class, and the options
    that choose it.

    Args:
        labelled: how many images it gives a class.
        classes: how many classes there are then.
        options: the options of init.
        total: how many images there are, if files are not images.
    """

    labelled: int
    classes: int
    options: Mapping[str, object]
    total: int = 0


class Reading(Struct, frozen=True):
    """A folder as one layout reads it.

    Args:
        certainty: CERTAIN, LIKELY, POSSIBLE or ONLY_IF_ASKED.
        evidence: what speaks for it, a line each.
        meaning: what the records are then, in a few words, for a choice.
        proposal: the recipe; None with faults only.
        faults: what keeps it from being taken, even if it is asked for.
        alone: the files that it takes, such as tars, if those are not all images or arrays.
        used: the files of annotations that it takes; None if it takes none.
        is_labelled: whether its images have classes: a file that may have others is no loss then.
        lost: files that it leaves out and that would be missed.
        clipped: impossible boxes, which the recipe clips or drops; or masks in JPEG, which it
        splits in two values. mending: what the recipe does to those, as a verb; and ``mended``, as
        done.
        passed: the other files that it leaves out, and why, as text.
        labelled: how many images it gives a class.
        classes: how many classes it gives.
        left_out: how many images it leaves out.
        ways: what a user must choose from, if the layout alone does not decide; two at least.
        options: the options of init that take it; {}: its layout.
        lists: the files that divide its images.
    """

    certainty: int
    evidence: tuple[str, ...]
    meaning: str
    proposal: Proposal | None = None
    faults: Sequence[InputError] = ()
    alone: Sequence[str] = ()
    used: Collection[str] | None = None
    is_labelled: bool = True
    lost: Sequence[InputError] = ()
    clipped: Sequence[InputError] = ()
    mending: str = "clip or drop them"
    mended: str = "clipped or dropped"
    passed: Sequence[str] = ()
    labelled: int = 0
    classes: int = 0
    left_out: int = 0
    ways: Sequence[Way] = ()
    options: Mapping[str, object] = {}
    lists: Collection[str] = ()

    @property
    def table(self) -> LabelsFile | None:
        """The labels file that it takes."""
        return self.proposal.table if self.proposal else None


Layout = Callable[[Inspection], Reading | None]
"""A layout: the folder as it reads it; None if it can't be this one."""


class Choice(Struct, frozen=True):
    """The layout chosen for a folder, its evidence, and the notes on files that it leaves out.

    ``unused`` are the notes on tables and lists among them.
    """

    name: str
    evidence: tuple[str, ...]
    passed: tuple[str, ...]
    proposal: Proposal
    unused: tuple[str, ...] = ()


def known_layouts() -> dict[str, Layout]:
    """The layouts, by their names."""
    found: dict[str, Layout] = {}
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        layouts = getattr(module, "LAYOUTS", None) or {
            each.name.replace("_", "-"): module.recognise
        }
        assert not found.keys() & layouts.keys(), f"two layouts have the name of one in {each.name}"
        found |= layouts
    return dict(sorted(found.items()))


def choose_layout(inspection: Inspection, wanted: str | None = None) -> Choice:
    """The layout of a folder: the surest one, or the ``wanted`` one.

    Raises:
        InputError: none fits, two fit, or the folder holds what this layout would lose: every fault
        is named. UsageError: the folder doesn't have the wanted layout.
    """
    tried = {name: recognise(inspection) for name, recognise in known_layouts().items()}
    readings = {name: reading for name, reading in tried.items() if reading is not None}
    if wanted is not None and wanted not in readings:
        what, hint = f"{inspection.folder} can't be read as {wanted}", "leave --as out to see why"
        if wanted == "with-labels" and not inspection.refusals:
            what = (
                f"{inspection.folder} holds no file that names its images, "
                "nor does the folder above"
            )
            hint = "write a CSV with the columns filename and label into it"
        raise UsageError(what, f"expected one of {', '.join(readings) or 'no layout at all'}", hint)
    if not readings:
        found = counted(inspection.listing.names, 5) or "nothing"
        what = f"{inspection.folder} holds nothing to make records of"
        expected = (
            "expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; "
            f"found {found}"
        )
        hint = _joining(inspection) or unpacking(
            inspection.folder, inspection.others.get("packed", ())
        )
        hint = hint or (_ANY_FORMAT if inspection.listing.names else "")
        raise all_of([*inspection.faults, InputError(what, expected, hint)])
    name = wanted or max(readings, key=lambda each: readings[each].certainty)
    reading = readings[name]
    ties = {each: other for each, other in readings.items() if other.certainty == reading.certainty}
    if wanted is None and len(ties) > 1:
        raise all_of([*inspection.faults, _ambiguous(inspection, ties)])
    if reading.ways:
        raise all_of([*inspection.faults, *reading.faults, _ambiguous(inspection, {name: reading})])
    lost, passed, unused = _left_out(inspection, reading)
    faults = [*inspection.faults, *reading.faults]
    if wanted is None:
        faults += _unaccepted(inspection, name, reading, lost, {fault.what for fault in faults})
    if faults:
        raise all_of(list(dict.fromkeys(faults)))
    assert reading.proposal is not None
    left = [
        f"{each.what.removeprefix(f'{inspection.folder}/')} (left out, as --as {name} says)"
        for each in lost
    ]
    left += [f"{each.what} ({reading.mended}, as --as {name} says)" for each in reading.clipped]
    return Choice(
        name, reading.evidence, (*left, *passed, *unused), reading.proposal, tuple(unused)
    )


def _unaccepted(
    inspection: Inspection,
    name: str,
    reading: Reading,
    lost: Sequence[InputError],
    known: Collection[str],
) -> list[InputError]:
    """The faults of what a layout would lose or change, which its own command accepts."""
    faults: list[InputError] = []
    for verb, choices in (("leave it out", lost), (reading.mending, reading.clipped)):
        for fault in choices:
            if fault.what in known:
                continue
            remedy = "" if reading.faults else f"to {verb}, run the command below"
            error = InputError(
                fault.what, fault.detail, "; ".join(filter(None, (fault.hint, remedy)))
            )
            way = Way(reading.labelled, reading.classes, {**reading.options, "as": name})
            ways = [] if reading.faults else [_choice(inspection, way)]
            faults.append(error.with_choices([*fault.choices, *ways]))
    return faults


_MOST_WAYS = 4
"""Candidates that a question names."""


def _ambiguous(inspection: Inspection, readings: Mapping[str, Reading]) -> InputError:
    """The question between readings, a line each, with what they leave out."""
    ways = [
        way
        for name, reading in readings.items()
        for way in reading.ways or [_way_of(name, reading)]
    ]
    evidence = "; ".join(line for reading in readings.values() for line in reading.evidence)
    what = f"{inspection.folder} can be read in {len(ways)} ways: {evidence}"
    losses = []
    for name, reading in readings.items():
        lost = [
            fault.what.removeprefix(f"{inspection.folder}/")
            for fault in _left_out(inspection, reading)[0]
        ]
        losses += [f"--as {name} leaves out: {'; '.join(lost)}"] if lost else []
    meanings = "; ".join(f"{name}: {reading.meaning}" for name, reading in readings.items())
    expected = f"expected one way ({meanings})"
    hint = "; ".join((*losses, "choose one; each line counts the images that get a class:"))
    return InputError(what, expected, hint).with_choices(
        [_choice(inspection, way) for way in ways[:_MOST_WAYS]]
    )


def _way_of(name: str, reading: Reading) -> Way:
    total = len(reading.proposal.names) if reading.proposal is not None and reading.alone else 0
    return Way(reading.labelled, reading.classes, reading.options or {"as": name}, total)


def _choice(inspection: Inspection, way: Way) -> str:
    """A way to go on in one line, which ends with its command."""
    total = way.total or len(inspection.items or inspection.members)
    counts = f"{way.labelled:,} of {total:,} images, {number_of(way.classes, 'class', 'classes')}"
    return f"  {counts}: {inspection.asked.command(inspection.folder, **way.options)}"


def as_command(inspection: Inspection, name: str) -> str:
    """The command that reads a folder by one layout."""
    return inspection.asked.command(inspection.folder, **{"as": name})


# what is left out ---------------------------------------------------------------------------------


def _left_out(
    inspection: Inspection, reading: Reading
) -> tuple[list[InputError], list[str], list[str]]:
    """The files that a reading leaves out: those that would be missed,
    the notes on others, and on unused tables.
    """
    table, used, alone = reading.table, reading.used, set(reading.alone)
    read = {*(used or ()), *reading.lists}
    if table is not None:
        read |= {*table.places}
    lost, passed = list(reading.lost), list(reading.passed)
    if tars := [name for name in inspection.archives if name not in alone]:
        lost.append(_unread(inspection, "tars", tars))
    if alone and (items := [name for name in inspection.items if name not in alone]):
        where = "tars" if reading.alone[0] in inspection.archives else reading.alone[0]
        lost.append(_unread(inspection, f"files outside of {where}", items))
    lost_tables, unused = _unread_tables(inspection, reading, read)
    lost += lost_tables
    for tool, several in inspection.annotations.items():
        rest = sorted(set(several).difference(read))
        if len(rest) == len(several):
            lost.append(_fault(inspection, "annotations", several, tool))
        elif rest:
            passed.append(f"{listed(rest)}: not read, {listed(sorted(used or ()), 2)} taken")
    known = {*(used or ()), *reading.lists, *alone}
    for kind, several in inspection.others.items():
        names = [name for name in several if name not in known]
        told = kind == "names images" or (
            kind in ("data", "text names images") and not reading.is_labelled
        )
        if names and (kind in ("packed", "strange") or (told and used is None)):
            lost.append(_fault(inspection, kind, names))
        else:
            passed += _by_ending(names, inspection.noun)
    hidden, empty = inspection.remarks.passed.get(HIDDEN), inspection.remarks.passed.get(EMPTY)
    passed += [f"{len(hidden):,} hidden: {listed(hidden)}"] if hidden else []
    passed += [f"{number_of(len(empty), 'empty folder')}: {listed(empty)}"] if empty else []
    private = {why: inspection.remarks.passed.get(why) for why in PRIVATE.values()}
    passed += [f"{listed(several)}: {why}" for why, several in private.items() if several]
    return lost, passed, unused


_ANY_FORMAT = (
    'write source: {python: "module:function"} in a recipe: a function of yours can read any format'
)
"""The hint for files that nothing here reads."""

_PART = re.compile(r"(.+\.(?:tar|tgz|gz|zip|bz2|xz)(?:\.\w+)?)\.(?:part)?(\d+|a[a-z])")


def _joining(inspection: Inspection) -> str:
    """The command that joins the parts of an archive that was split;
    "" if there are none, or several archives.
    """
    names = inspection.listing.names
    parts = {name: match[1] for name in names if (match := _PART.fullmatch(name))}
    targets = set(parts.values())
    if len(parts) < 2 or len(targets) > 1 or targets & {*names}:
        return ""
    paths = [str(inspection.folder / name) for name in sorted(parts)]
    return (
        f"{command_line(['cat', '--', *paths])} > {quoted(str(inspection.folder / targets.pop()))}"
    )


_MOST_UNPACKED = 4
"""Files that a command names; of more, the hint says what to do."""


def unpacking(folder: Path, names: Sequence[str]) -> str:
    """The hint for packed files: the command that unpacks tars, zips or .gz files in place;
    "" if there are none.
    """
    endings = {suffix_of(name).lower() for name in names}
    paths = [str(folder / name) for name in names]
    if endings and endings <= {".gz", ".tgz", ".tar.gz"} and len(names) <= _MOST_UNPACKED:
        return command_line(["gzip", "-d", "--", *paths])
    if endings in ({".zip"}, {".tar"}) and len(names) <= _MOST_UNPACKED:
        words = [
            ["unzip", "-q", path, "-d"] if path.endswith("zip") else ["tar", "-xf", path, "-C"]
            for path in paths
        ]
        unpack = (command_line([*several, str(folder)]) for several in words)
        move = (command_line(["mv", "--", path, f"{path}.unpacked"]) for path in paths)
        return " && ".join((*unpack, *move))
    return "unpack them, and run the same command again" if names else ""


def _unread(inspection: Inspection, what: str, names: Sequence[str]) -> InputError:
    problem = (
        f"{inspection.folder} holds {len(names):,} {what} that would not be read: {listed(names)}"
    )
    return InputError(
        problem, "expected all images in tars, or none", "move them to a folder of their own"
    )


_TO_CSV = "write {} labels to a CSV with the columns filename and label, and name it in `labels`"
_MATLAB = ".mat"
_KNOWN_FORMS = "expected CSV, TSV, JSON lines, path:label or path label"
_FAULTS = {
    "packed": (" holds {count} that would not be read: {names}", "expected folders and plain tars"),
    "names images": (
        ": {names} names at least half of the images, in a form that is not known",
        _KNOWN_FORMS,
    ),
    "data": (
        ": {names} may label the images, and names none of them",
        "expected the names of the files",
    ),
    "annotations": (" has {tool} annotations: {names}", "they are not read"),
}


def _fault(inspection: Inspection, kind: str, names: Sequence[str], tool: str = "") -> InputError:
    """The fault of files that a layout would lose."""
    if kind == "strange":
        return strange(inspection.folder, names, inspection.content, len(inspection.items))
    what, expected = _FAULTS[kind.removeprefix("text ")]
    what = what.format(count=counted(names), names=listed(names), tool=tool)
    hint = _TO_CSV.format("their" if kind == "annotations" else "the")
    if all(name.lower().endswith(_MATLAB) for name in names):
        hint = (
            "write them to a table, or read them in Python: source: {python: ...}, "
            "as the page on tables shows"
        )
    hint = "unpack them, or move them away" if kind == "packed" else hint
    return InputError(f"{inspection.folder}{what}", expected, hint)


def _unread_tables(
    inspection: Inspection, reading: Reading, read: Collection[str]
) -> tuple[list[InputError], list[str]]:
    """The tables that a reading does not read:
    those that would be missed, and the notes on the others.
    """
    lost: list[InputError] = []
    unused: list[str] = []
    for refusal in (each for each in inspection.refusals if each.where not in read):
        if reading.used is None and (refusal.is_most or not reading.is_labelled):
            lost.append(refusal.error)
        else:
            what = refusal.error.what.removeprefix(f"{inspection.folder}/")
            unused.append(f"{what}; {refusal.error.hint}".rstrip("; "))
    tables = [each for each in (*inspection.labels, *inspection.partial) if each.where not in read]
    unused += [_unused(inspection, each, reading) for each in tables]
    has_splits = reading.table is not None and reading.table.table.splits is not None
    if not has_splits and _is_whole(reading):
        lost += [_unread_splits(inspection, table) for table in tables if table.splits is not None]
    return lost, unused


def _is_whole(reading: Reading) -> bool:
    """Whether a reading has no splits of its own."""
    proposal = reading.proposal
    return proposal is not None and not (proposal.splits or proposal.lists)


def _unread_splits(inspection: Inspection, table: LabelsFile) -> InputError:
    """The fault of a table that divides the images, where another one has their labels."""
    assert table.splits is not None
    column = table.splits.name
    what = (
        f"{inspection.folder / table.where} divides the images in its column {column}: "
        f"{listed(table.splits.splits)}"
    )
    hint = f"copy the column {column} into the table that has the labels, and run init again"
    return InputError(
        what, "expected the splits in the table of the labels, or as lists of names", hint
    )


def _unused(inspection: Inspection, found: LabelsFile, reading: Reading) -> str:
    """The note on a table that is not read: what it names, and the command that takes it."""
    total = len(inspection.items or inspection.members)
    named = len({row for row in found.rows if row >= 0})
    what = f"{found.place} is not used: it names {named:,} of {total:,} {inspection.noun}s"
    if found.has_labels:
        column = f" in {found.label}" if found.label else ""
        what += f", {number_of(found.classes, 'class', 'classes')}{column}"
        if reading.is_labelled and found.labelled * 2 < total:
            return what
        option = f"{found.where}:{found.label}" if found.label else found.where
        options = {"as": "with-labels", "label": option}
        return f"{what}: {inspection.asked.command(inspection.folder, **options)}"
    return f"{what}, and has no class"


def _by_ending(names: Sequence[str], noun: str) -> list[str]:
    """A line for the files of each ending, and one for all without one."""
    several = sorted(grouped(names, ending_of).items(), key=lambda each: -len(each[1]))
    return [
        f"{len(found):,} {suffix or 'without an ending'}: no {noun} ({listed(found)})"
        for suffix, found in several
    ]
