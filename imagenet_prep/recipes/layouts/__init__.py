"""Layouts, the ways in which people keep a set. An Inspection -> the Choice of one, or what decides.

A layout has three functions: ``recognise`` (how sure it is, on what evidence), ``describe`` (what is taken, and what
is left out and why) and ``recipe``. A new layout is a new module with them; its name, with hyphens, is what ``--as``
calls it. A module of several related ones has them in ``LAYOUTS``, by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from imagenet_prep.errors import InputError, UsageError, all_of
from imagenet_prep.escaping import command
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.inspection import Inspection
from imagenet_prep.recipes.labels_search import LabelsFile, name_in_recipe
from imagenet_prep.recipes.splits import counted, suffix_of
from imagenet_prep.sources.folders import EMPTY, HIDDEN, MACOSX
from imagenet_prep.text import listed

CERTAIN, LIKELY, POSSIBLE, ONLY_IF_ASKED = 3, 2, 1, 0
"""How sure a layout is. The surest one is taken; two of the same are a choice."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A folder as one layout reads it.

    Args:
        certainty: CERTAIN, LIKELY, POSSIBLE or ONLY_IF_ASKED.
        evidence: what speaks for it, a line each.
        meaning: what the records are then, in a few words, for a choice.
        faults: what keeps it from being taken, even if it is asked for.
        value: what the layout found, for its own use.
    """

    certainty: int
    evidence: tuple[str, ...]
    meaning: str
    faults: tuple[InputError, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Description:
    """The files that a layout leaves out, as text: ``lost`` would be missed, ``passed`` would not."""

    lost: tuple[InputError, ...]
    passed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The content of a recipe.

    Args:
        kind: the key of the recipe's source.
        content: what the files are.
        names: the files that count, by their paths from ``lead``.
        lengths: their bytes.
        lead: the folders that lead to them all, with a slash; or "".
        archives: the tars that hold them; ``tar_folders`` if each is a class.
        splits: the given ones, by folder.
        lists: the files that name those of each split, by split; and how many bytes they have.
        classes: how many files each has, in the order of their labels.
        table: a labels file, or the labels that are in the source itself.
        annotations: the value of the recipe's key "boxes" or "mask".
        paths: the files of a source with labels of its own, by split ("": of none).
        options: what a recipe must say of the source, except where it is.
    """

    kind: str
    content: Content
    names: Sequence[str]
    lengths: Sequence[int]
    lead: str = ""
    archives: Sequence[str] = ()
    tar_folders: bool = False
    splits: Mapping[str, str] | None = None
    lists: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    classes: Mapping[str, int] | None = None
    table: LabelsFile | None = None
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    paths: Mapping[str, Sequence[str]] | None = None
    options: Mapping[str, str | bool] = field(default_factory=dict)

    @property
    def is_several(self) -> bool:
        """Whether a file can have several labels."""
        return self.table is not None and self.table.has_labels and self.table.table.is_several


class FolderLayout(NamedTuple):
    """A layout: how sure it is of a folder (None: it can't be this one), the files it takes, and its recipe."""

    recognise: Callable[[Inspection], Reading | None]
    describe: Callable[[Inspection, Reading], Description]
    recipe: Callable[[Inspection, Reading], Proposal]


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout chosen for a folder, its evidence, and the notes on files that it leaves out."""

    name: str
    evidence: tuple[str, ...]
    passed: tuple[str, ...]
    proposal: Proposal


def known_layouts() -> dict[str, FolderLayout]:
    """The layouts, by their names."""
    found: dict[str, FolderLayout] = {}
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        found |= getattr(module, "LAYOUTS", {each.name.replace("_", "-"): module})
    return dict(sorted(found.items()))


def choose_layout(inspection: Inspection, wanted: str | None = None) -> Choice:
    """The layout of a folder: the surest one, or the ``wanted`` one.

    Raises:
        InputError: none fits, two fit, or the folder holds what this layout would lose: every fault is named.
        UsageError: the folder doesn't have the wanted layout.
    """
    layouts = known_layouts()
    readings = {name: found for name, layout in layouts.items() if (found := layout.recognise(inspection)) is not None}
    if wanted is not None and wanted not in readings:
        what, hint = f"{inspection.folder} can't be read as {wanted}", "leave --as out to see why"
        if wanted == "with-labels" and not inspection.refusals:
            what = f"{inspection.folder} holds no file that names its images, nor does the folder above"
            hint = "write a CSV with the columns filename and label into it"
        raise UsageError(what, f"expected one of {', '.join(readings) or 'no layout at all'}", hint)
    if not readings:
        raise all_of([*inspection.faults, _nothing(inspection)])
    name = wanted or max(readings, key=lambda each: readings[each].certainty)
    reading = readings[name]
    ties = [each for each, other in readings.items() if other.certainty == reading.certainty]
    if wanted is None and len(ties) > 1:
        raise all_of([*inspection.faults, _ambiguous(inspection, {each: readings[each] for each in ties})])
    description = layouts[name].describe(inspection, reading)
    faults = [*inspection.faults, *reading.faults]
    if wanted is None:
        asked = f"to leave it out: {as_command(inspection, name)} ({reading.meaning})"
        ways = "" if reading.faults else asked
        said = {each.what for each in faults}
        faults += [
            InputError(each.what, each.detail, "; ".join(filter(None, (each.hint, ways))))
            for each in description.lost
            if each.what not in said
        ]
    if faults:
        raise all_of(list(dict.fromkeys(faults)))
    left = tuple(
        f"{each.what.removeprefix(f'{inspection.folder}/')} (left out, as --as {name} says)"
        for each in description.lost
    )
    return Choice(name, reading.evidence, (*left, *description.passed), layouts[name].recipe(inspection, reading))


def _nothing(inspection: Inspection) -> InputError:
    found = counted(inspection.listing.names, 5) or "nothing"
    return InputError(
        f"{inspection.folder} holds nothing to make records of",
        f"expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; found {found}",
    )


def _ambiguous(inspection: Inspection, readings: Mapping[str, Reading]) -> InputError:
    ways = [f"{as_command(inspection, name)} ({reading.meaning})" for name, reading in readings.items()]
    evidence = "; ".join(line for reading in readings.values() for line in reading.evidence)
    return InputError(
        f"{inspection.folder} can be read in {len(ways)} ways: {evidence}",
        "expected one way",
        f"choose one: {'; or '.join(ways)}",
    )


def as_command(inspection: Inspection, name: str) -> str:
    """The command that reads a folder by one layout."""
    return command("init", inspection.folder, (("as", name),))


# what is left out ----------------------------------------------------------------------------------------------


def describe_rest(
    inspection: Inspection,
    *,
    alone: Sequence[str] = (),
    is_labelled: bool = True,
    table: LabelsFile | None = None,
    used: Collection[str] | None = None,
) -> Description:
    """The files left out by a layout.

    It takes all items, or some files ``alone``, such as tars; and a labels file or ``used`` annotations.
    """
    tars = [name for name in inspection.archives if name not in set(alone)]
    lost = [_unread(inspection, "tars", tars)] if tars else []
    items = [name for name in inspection.items if name not in set(alone)] if alone else []
    if items:
        where = "tars" if alone[0] in inspection.archives else alone[0]
        lost.append(_unread(inspection, f"files outside of {where}", items))
    passed = []
    for refusal in (each for each in inspection.refusals if table is None or each.where != table.where):
        if used is None and (refusal.is_most or not is_labelled):
            lost.append(refusal.error)
        else:
            passed.append(f"{refusal.error.what.removeprefix(f'{inspection.folder}/')}; {refusal.error.hint}")
    others = [each for each in inspection.labels if table is None or each.where != table.where]
    passed += [_unused(inspection, each, table) for each in others]
    for tool, several in inspection.annotations.items():
        if set(several).isdisjoint(used or ()):
            lost.append(_fault(inspection, "annotations", several, tool))
    passed += _beside(inspection, used or ())
    known = {*(used or ()), *alone}
    for kind, several in inspection.others.items():
        names = [name for name in several if name not in known]
        told = kind == "names images" or (kind in ("data", "text names images") and not is_labelled)
        if names and (kind in ("packed", "strange") or (told and used is None)):
            lost.append(_fault(inspection, kind, names))
        elif names:
            passed += _by_ending(names, "array" if inspection.content == "array" else "image")
    return Description(tuple(lost), (*passed, *_apart(inspection)))


def _beside(inspection: Inspection, used: Collection[str]) -> list[str]:
    """The notes on files of the same tools as the used ones."""
    rest = [sorted(set(names) - set(used)) for names in inspection.annotations.values() if set(names) & set(used)]
    return [f"{listed(names)}: not read, {listed(sorted(used), 2)} taken" for names in rest if names]


def _unread(inspection: Inspection, what: str, names: Sequence[str]) -> InputError:
    problem = f"{inspection.folder} holds {len(names):,} {what} that would not be read: {listed(names)}"
    return InputError(problem, "expected all images in tars, or none", "move them to a folder of their own")


def strange(where: object, names: Sequence[str], content: Content | None, fit: int) -> InputError:
    """The fault of arrays among images, or of images among arrays."""
    what = f"{where} holds {counted(names)} next to {fit:,} {'arrays' if content == 'array' else 'images'}"
    hint = "move one kind to another folder; or write a recipe that names one: source: {files: 'FOLDER/**/*.jpg'}"
    return InputError(f"{what}: {listed(names)}", "expected images or arrays: records hold one of them", hint)


_TO_CSV = "write {} labels to a CSV with the columns filename and label, and name it in `labels`"
_FAULTS = {
    "packed": (" holds {count} that would not be read: {names}", "expected folders and plain tars"),
    "names images": (
        ": {names} names at least half of the images, in a form that is not known",
        "expected CSV, TSV, JSON lines, path:label or path label",
    ),
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
    return InputError(
        f"{inspection.folder}{what}", expected, "unpack them, or move them away" if kind == "packed" else hint
    )


def _unused(inspection: Inspection, found: LabelsFile, table: LabelsFile | None) -> str:
    if table is not None:
        return f"{found.where}: {table.where} is taken"
    if found.has_labels:
        return f"{found.where}: the folders are the classes"
    name = name_in_recipe(inspection.folder, found.where)
    return f"{found.where}: has no labels; labels: {name} in a recipe takes its columns"


def _by_ending(names: Sequence[str], what: str) -> list[str]:
    by_suffix: dict[str, list[str]] = {}
    for name in names:
        by_suffix.setdefault(suffix_of(name), []).append(name)
    several = sorted(by_suffix.items(), key=lambda each: -len(each[1]))
    return [f"{len(found):,} {suffix}: no {what} ({listed(found)})" for suffix, found in several]


def _apart(inspection: Inspection) -> list[str]:
    """The files that were not listed."""
    passed = inspection.remarks.passed
    words = {HIDDEN: ("hidden", "hidden"), EMPTY: ("empty folder", "empty folders")}
    found = [(passed[key], forms) for key, forms in words.items() if passed.get(key)]
    said = [f"{len(names):,} {forms[len(names) > 1]}: {listed(names)}" for names, forms in found]
    return said + [f"{name}: macOS keeps its own data there" for name in passed.get(MACOSX, ())]
