"""Layouts, the ways in which people keep a set. An Inspection -> the Choice of one, or what decides.

A layout is a function ``recognise``: an Inspection -> its Reading, which has the recipe and what is left out. A new
layout is a new module with it; its name, with hyphens, is what ``--as`` calls it. A module of several related ones has
their functions in ``LAYOUTS``, by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.escaping import command, command_line
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.inspection import Inspection, strange
from imagenet_prep.recipes.labels_search import LabelsFile, name_in_recipe
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
        written_lists: the files of each split, from ``lead``, where no file lists them: init writes the lists.
        written_labels: the class of each file, from ``lead``, where no file says it: init writes the table.
        table: a labels file, or the labels that are in the source itself.
        annotations: the value of the recipe's key "boxes" or "mask".
        clips_boxes: whether the recipe says ``boxes_outside: clip``.
        options: what a recipe must say of the source, except where it is.
        remarks: what a reader of the recipe must know of the source, a line each.
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
    written_lists: Mapping[str, Sequence[str]] = {}
    written_labels: Mapping[str, str] = {}
    table: LabelsFile | None = None
    annotations: Mapping[str, Mapping[str, Any]] = {}
    clips_boxes: bool = False
    options: Mapping[str, str | bool] = {}
    remarks: Sequence[str] = ()


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
        clipped: impossible boxes, which the recipe clips or drops.
        passed: the other files that it leaves out, and why, as text.
        labelled: how many images it gives a class.
        classes: how many classes there are.
        left_out: how many images it leaves out.
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
    passed: Sequence[str] = ()
    labelled: int = 0
    classes: int = 0
    left_out: int = 0

    @property
    def table(self) -> LabelsFile | None:
        """The labels file that it takes."""
        return self.proposal.table if self.proposal else None


Layout = Callable[[Inspection], Reading | None]
"""A layout: the folder as it reads it; None if it can't be this one."""


class Choice(Struct, frozen=True):
    """The layout chosen for a folder, its evidence, and the notes on files that it leaves out."""

    name: str
    evidence: tuple[str, ...]
    passed: tuple[str, ...]
    proposal: Proposal


def known_layouts() -> dict[str, Layout]:
    """The layouts, by their names."""
    found: dict[str, Layout] = {}
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        found |= getattr(module, "LAYOUTS", None) or {each.name.replace("_", "-"): module.recognise}
    return dict(sorted(found.items()))


def choose_layout(inspection: Inspection, wanted: str | None = None) -> Choice:
    """The layout of a folder: the surest one, or the ``wanted`` one.

    Raises:
        InputError: none fits, two fit, or the folder holds what this layout would lose: every fault is named.
        UsageError: the folder doesn't have the wanted layout.
    """
    tried = {name: recognise(inspection) for name, recognise in known_layouts().items()}
    readings = {name: reading for name, reading in tried.items() if reading is not None}
    if wanted is not None and wanted not in readings:
        what, hint = f"{inspection.folder} can't be read as {wanted}", "leave --as out to see why"
        if wanted == "with-labels" and not inspection.refusals:
            what = f"{inspection.folder} holds no file that names its images, nor does the folder above"
            hint = "write a CSV with the columns filename and label into it"
        raise UsageError(what, f"expected one of {', '.join(readings) or 'no layout at all'}", hint)
    if not readings:
        found = counted(inspection.listing.names, 5) or "nothing"
        what = f"{inspection.folder} holds nothing to make records of"
        expected = f"expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; found {found}"
        hint = _unpacking(inspection.folder, inspection.others.get("packed", ()))
        raise all_of([*inspection.faults, InputError(what, expected, hint)])
    name = wanted or max(readings, key=lambda each: readings[each].certainty)
    reading = readings[name]
    ties = {each: other for each, other in readings.items() if other.certainty == reading.certainty}
    if wanted is None and len(ties) > 1:
        raise all_of([*inspection.faults, _ambiguous(inspection, ties)])
    lost, passed = _left_out(inspection, reading)
    faults = [*inspection.faults, *reading.faults]
    if wanted is None:
        known = {fault.what for fault in faults}
        for verb, choices in (("leave it out", lost), ("clip or drop them", reading.clipped)):
            remedy = "" if reading.faults else f"to {verb}: {as_command(inspection, name)} ({reading.meaning})"
            for fault in choices:
                hint = "; ".join(filter(None, (fault.hint, remedy)))
                if fault.what not in known:
                    faults.append(InputError(fault.what, fault.detail, hint))
    if faults:
        raise all_of(list(dict.fromkeys(faults)))
    assert reading.proposal is not None
    left = [f"{each.what.removeprefix(f'{inspection.folder}/')} (left out, as --as {name} says)" for each in lost]
    left += [f"{each.what} (clipped or dropped, as --as {name} says)" for each in reading.clipped]
    return Choice(name, reading.evidence, (*left, *passed), reading.proposal)


def _ambiguous(inspection: Inspection, readings: Mapping[str, Reading]) -> InputError:
    ways = [f"{as_command(inspection, name)} ({reading.meaning})" for name, reading in readings.items()]
    evidence = "; ".join(line for reading in readings.values() for line in reading.evidence)
    what = f"{inspection.folder} can be read in {len(ways)} ways: {evidence}"
    return InputError(what, "expected one way", f"choose one: {'; or '.join(ways)}")


def as_command(inspection: Inspection, name: str) -> str:
    """The command that reads a folder by one layout."""
    return command("init", inspection.folder, (("as", name),))


# what is left out ----------------------------------------------------------------------------------------------


def _left_out(inspection: Inspection, reading: Reading) -> tuple[list[InputError], list[str]]:
    """The files that a reading leaves out: those that would be missed, and the notes on those that would not."""
    folder, table, used, alone = inspection.folder, reading.table, reading.used, set(reading.alone)
    read = {*(used or ()), *([table.where] if table else ())}
    lost, passed = list(reading.lost), list(reading.passed)
    if tars := [name for name in inspection.archives if name not in alone]:
        lost.append(_unread(inspection, "tars", tars))
    if alone and (items := [name for name in inspection.items if name not in alone]):
        where = "tars" if reading.alone[0] in inspection.archives else reading.alone[0]
        lost.append(_unread(inspection, f"files outside of {where}", items))
    for refusal in (each for each in inspection.refusals if each.where not in read):
        if used is None and (refusal.is_most or not reading.is_labelled):
            lost.append(refusal.error)
        else:
            passed.append(f"{refusal.error.what.removeprefix(f'{folder}/')}; {refusal.error.hint}")
    passed += [_unused(folder, each, table) for each in inspection.labels if each.where not in read]
    for tool, several in inspection.annotations.items():
        rest = sorted(set(several).difference(used or ()))
        if len(rest) == len(several):
            lost.append(_fault(inspection, "annotations", several, tool))
        elif rest:
            passed.append(f"{listed(rest)}: not read, {listed(sorted(used or ()), 2)} taken")
    known = {*(used or ()), *alone}
    for kind, several in inspection.others.items():
        names = [name for name in several if name not in known]
        told = kind == "names images" or (kind in ("data", "text names images") and not reading.is_labelled)
        if names and (kind in ("packed", "strange") or (told and used is None)):
            lost.append(_fault(inspection, kind, names))
        else:
            passed += _by_ending(names, inspection.noun)
    hidden, empty = inspection.remarks.passed.get(HIDDEN), inspection.remarks.passed.get(EMPTY)
    passed += [f"{len(hidden):,} hidden: {listed(hidden)}"] if hidden else []
    passed += [f"{number_of(len(empty), 'empty folder')}: {listed(empty)}"] if empty else []
    passed += [f"{name}: {why}" for why in PRIVATE.values() for name in inspection.remarks.passed.get(why, ())]
    return lost, passed


_MOST_UNPACKED = 4
"""Files that a command names; of more, the hint says what to do."""


def _unpacking(folder: Path, names: Sequence[str]) -> str:
    """The hint for packed files: the command that unpacks zips or .gz files in place; "" if there are none."""
    endings = {suffix_of(name).lower() for name in names}
    paths = [str(folder / name) for name in names]
    if endings == {".gz"} and len(names) <= _MOST_UNPACKED:
        return command_line(["gzip", "-d", "--", *paths])
    if endings == {".zip"} and len(names) <= _MOST_UNPACKED:
        unpack = (command_line(["unzip", "-q", path, "-d", str(folder)]) for path in paths)
        move = (command_line(["mv", "--", path, f"{path}.unpacked"]) for path in paths)
        return " && ".join((*unpack, *move))
    return "unpack them, and run the same command again" if names else ""


def _unread(inspection: Inspection, what: str, names: Sequence[str]) -> InputError:
    problem = f"{inspection.folder} holds {len(names):,} {what} that would not be read: {listed(names)}"
    return InputError(problem, "expected all images in tars, or none", "move them to a folder of their own")


_TO_CSV = "write {} labels to a CSV with the columns filename and label, and name it in `labels`"
_KNOWN_FORMS = "expected CSV, TSV, JSON lines, path:label or path label"
_FAULTS = {
    "packed": (" holds {count} that would not be read: {names}", "expected folders and plain tars"),
    "names images": (": {names} names at least half of the images, in a form that is not known", _KNOWN_FORMS),
    "data": (": {names} may label the images, and names none of them", "expected the names of the files"),
    "annotations": (" has {tool} annotations: {names}", "they are not read"),
}


def _fault(inspection: Inspection, kind: str, names: Sequence[str], tool: str = "") -> InputError:
    """The fault of files that a layout would lose."""
    if kind == "strange":
        return strange(inspection.folder, names, inspection.content, len(inspection.items))
    what, expected = _FAULTS[kind.removeprefix("text ")]
    what = what.format(count=counted(names), names=listed(names), tool=tool)
    hint = _TO_CSV.format("their" if kind == "annotations" else "the")
    hint = "unpack them, or move them away" if kind == "packed" else hint
    return InputError(f"{inspection.folder}{what}", expected, hint)


def _unused(folder: Path, found: LabelsFile, table: LabelsFile | None) -> str:
    if table is not None:
        return f"{found.where}: {table.where} is taken"
    if found.has_labels:
        return f"{found.where}: the folders are the classes"
    return f"{found.where}: has no labels; labels: {name_in_recipe(folder, found.where)} in a recipe takes its columns"


def _by_ending(names: Sequence[str], noun: str) -> list[str]:
    several = sorted(grouped(names, suffix_of).items(), key=lambda each: -len(each[1]))
    return [f"{len(found):,} {suffix}: no {noun} ({listed(found)})" for suffix, found in several]
