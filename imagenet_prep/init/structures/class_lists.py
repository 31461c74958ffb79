"""A list for each class, such as car.txt and bus.txt;
or lists of names with a class after each, at several levels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.name_lists import NameList, divided_by, find_name_lists
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.split_options import named_lists
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.text import listed, number_of

_FLAGS = frozenset(("1", "0", "-1"))
"""Whether an image shows the class, doubtful, and whether it doesn't, as in Pascal VOC's lists."""

_IN_NAMES_OF_LISTS = """
all data file files filelist id ids image images img imgs index
list lists name names path paths set split splits fold folds part
"""
_NO_CLASS = frozenset(("", *_IN_NAMES_OF_LISTS.split()))
"""Words of lists that say no class: those of all images, or of a split."""

_SIGN = "|"
"""The sign between the classes of an image in the table that init writes."""

_SPLIT = "(?:train|val|valid|validation|test|trainval)"


def _recognise_lists(inspection: Inspection) -> Interpretation | None:
    """Two lists of names at least, each called as a class, name half of the images;
    an image can be in several. Lists that --split names are none of these.
    """
    of_splits = set(named_lists(inspection).values())
    lists: list[NameList] = []
    for name_list in filter(_may_be_of_a_class, find_name_lists(inspection)):
        if name_list.name not in of_splits:
            lists.append(name_list)
    classes = {name_list.name: _class_of(name_list) for name_list in lists}
    class_names = set(classes.values())
    if len(class_names) < 2:
        return None
    stems = {re.sub(r"[\d_ -]+", "", name) for name in class_names}
    if len(stems) < len(class_names):
        return None
    labels: dict[str, list[str]] = {}
    for name_list in lists:
        class_name = classes[name_list.name]
        for row, text in zip(name_list.rows, name_list.texts, strict=True):
            if text in ("", "1"):
                image = inspection.items[row]
                labels.setdefault(image, []).append(class_name)
    return _interpret(inspection, lists, labels, "a list for each class")


def _may_be_of_a_class(name_list: NameList) -> bool:
    """Whether a list is called as a class, and has names alone, or names with 1, 0 or -1."""
    if _NO_CLASS.issuperset(name_list.family):
        return False
    texts = set(name_list.texts)
    if texts == {""}:
        return True
    return "-1" in texts and texts <= _FLAGS


def _class_of(name_list: NameList) -> str:
    """The name of a list's file, without its ending and its split."""
    file_name = base_name(name_list.name)
    stem = re.sub(r"\.\w+$", "", file_name)
    if not name_list.split:
        return stem
    return re.sub(rf"^{_SPLIT}[ _-]|[ _-]{_SPLIT}$", "", stem, flags=re.IGNORECASE)


def _recognise_lines(inspection: Inspection) -> Interpretation | None:
    """Lines of a name without an ending and a class that can have blanks;
    lists of several levels are a question.
    """
    lists_by_family: dict[tuple[str, ...], list[NameList]] = {}
    for name_list in find_name_lists(inspection):
        if all(re.search(r"[^\W\d_]", text) for text in name_list.texts):
            family = name_list.family
            lists_by_family.setdefault(family, []).append(name_list)
    levels: list[Interpretation] = []
    for lists in lists_by_family.values():
        level = _level(inspection, lists)
        if level is not None:
            levels.append(level)
    list_name = inspection.options.label
    if list_name is not None:
        return next((level for level in levels if list_name in level.list_files), None)
    if len(levels) < 2:
        return levels[0] if levels else None
    levels.sort(key=lambda level: level.classes)
    return _ask_for_level(levels)


def _ask_for_level(levels: Sequence[Interpretation]) -> Interpretation:
    """The question which level the classes are of."""
    evidence: list[str] = []
    alternatives: list[Alternative] = []
    for level in levels:
        evidence += level.evidence
        options = {"label": min(level.list_files)}
        alternatives.append(Alternative(level.labelled, level.classes, options))
    certainty = levels[0].certainty
    meaning = "a class stands after each name"
    return Interpretation(certainty, tuple(evidence), meaning, alternatives=alternatives)


def _level(inspection: Inspection, lists: Sequence[NameList]) -> Interpretation | None:
    """The lists of one level; None if they name an image twice,
    or have a class for nearly each.
    """
    labels: dict[str, list[str]] = {}
    for name_list in lists:
        for row, text in zip(name_list.rows, name_list.texts, strict=True):
            image = inspection.items[row]
            labels.setdefault(image, []).append(text)
    if _has_several(labels):
        return None
    class_count = len(_classes_in(labels))
    if not 2 <= class_count <= len(labels) // 2:
        return None
    return _interpret(inspection, lists, labels, "a class after each name")


def _classes_in(labels: Mapping[str, Sequence[str]]) -> list[str]:
    class_names: set[str] = set()
    for classes in labels.values():
        class_names.update(classes)
    return sorted(class_names)


def _has_several(labels: Mapping[str, Sequence[str]]) -> bool:
    """Whether an image has several classes."""
    return any(len(classes) > 1 for classes in labels.values())


def _interpret(
    inspection: Inspection,
    lists: Sequence[NameList],
    labels: Mapping[str, Sequence[str]],
    manner: str,
) -> Interpretation | None:
    """The images with the classes of lists; None if less than half of them get a class."""
    total = len(inspection.items)
    if 2 * len(labels) < total:
        return None
    classes = _classes_in(labels)
    certainty = CERTAIN if inspection.labels else CERTAIN + 1
    if shape_of(inspection.items).has_classes:
        certainty = ONLY_IF_ASKED
    files = frozenset(name_list.name for name_list in lists)
    images = f"{len(labels):,} of {number_of(total, 'image')}"
    evidence = f"{listed(sorted(files))}: {manner}, {images}"
    skip_notes: list[str] = []
    if len(labels) < total:
        unlisted = number_of(total - len(labels), inspection.noun)
        skip_notes.append(f"{unlisted} without a class, left out")
    proposal = _propose(inspection, lists, labels)
    return Interpretation(
        certainty,
        (evidence,),
        f"{manner}: {listed(classes)}",
        proposal,
        skip_notes=skip_notes,
        labelled=len(labels),
        classes=len(classes),
        list_files=files,
    )


def _propose(
    inspection: Inspection, lists: Sequence[NameList], labels: Mapping[str, Sequence[str]]
) -> Proposal:
    """The images with a class, divided by the splits that the lists are of."""
    assert inspection.content is not None
    divided = divided_by(lists, inspection.items)
    written_lists: dict[str, list[str]] = {}
    for split, names in divided.items():
        written_lists[split] = [name for name in names if name in labels]
    written_labels: dict[str, str] = {}
    for name, classes in labels.items():
        written_labels[name] = _SIGN.join(classes)
    several = _SIGN if _has_several(labels) else ""
    return Proposal(
        "files",
        inspection.content,
        list(labels),
        written_lists=written_lists,
        written_labels=written_labels,
        several=several,
        absent={name_list.name: name_list.absent for name_list in lists},
    )


STRUCTURES = {"class-lists": _recognise_lists, "class-lines": _recognise_lines}
