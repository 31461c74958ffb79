"""A list for each class, such as car.txt and bus.txt;
or lists of names with a class after each, at several levels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.name_lists import NameList, divided_by, find_name_lists
from imagenet_prep.init.proposal import (
    CERTAIN,
    ONLY_IF_ASKED,
    Alternative,
    Interpretation,
    Proposal,
)
from imagenet_prep.text import listed, number_of

_FLAGS = ("1", "0", "-1")
"""Whether an image shows the class, doubtful, and whether it doesn't, as in Pascal VOC's lists."""

_NO_CLASS = frozenset(
    (
        *(
            "",
            "all",
            "data",
            "file",
            "files",
            "filelist",
            "id",
            "ids",
            "image",
            "images",
            "img",
            "imgs",
            "index",
        ),
        *(
            "list",
            "lists",
            "name",
            "names",
            "path",
            "paths",
            "set",
            "split",
            "splits",
            "fold",
            "folds",
            "part",
        ),
    )
)
"""Words of lists that say no class: those of all images, or of a split."""

_SIGN = "|"
"""The sign between the classes of an image in the table that init writes."""


def _recognise_lists(inspection: Inspection) -> Interpretation | None:
    """Two lists of names at least, each called as a class, name half of the images;
    an image can be in several.
    """
    lists = [
        each
        for each in find_name_lists(inspection)
        if set(each.family) - _NO_CLASS and _may_be_of_a_class(each)
    ]
    names = {each.where: _class_of(each) for each in lists}
    stems = {re.sub(r"[\d_ -]+", "", name) for name in names.values()}
    if len(set(names.values())) < 2 or len(stems) < len(set(names.values())):
        return None
    labels: dict[str, list[str]] = {}
    for each in lists:
        for row, text in zip(each.rows, each.texts, strict=True):
            if text in ("", "1"):
                labels.setdefault(inspection.items[row], []).append(names[each.where])
    return _reading(inspection, lists, labels, "a list for each class")


def _may_be_of_a_class(each: NameList) -> bool:
    """Whether a list has names alone, or names with 1, 0 or -1."""
    texts = set(each.texts)
    return texts == {""} or (texts <= {*_FLAGS} and "-1" in texts)


def _class_of(each: NameList) -> str:
    """The name of a list's file, without its ending and its split."""
    stem = re.sub(r"\.\w+$", "", each.where.rpartition("/")[2])
    return (
        re.sub(rf"^{_SPLIT}[ _-]|[ _-]{_SPLIT}$", "", stem, flags=re.IGNORECASE)
        if each.split
        else stem
    )


_SPLIT = "(?:train|val|valid|validation|test|trainval)"


def _recognise_lines(inspection: Inspection) -> Interpretation | None:
    """Lines of a name without an ending and a class that can have blanks;
    lists of several levels are a question.
    """
    levels: dict[tuple[str, ...], list[NameList]] = {}
    for each in find_name_lists(inspection):
        if all(re.search(r"[^\W\d_]", text) for text in each.texts):
            levels.setdefault(each.family, []).append(each)
    interpretations = [
        interpretation
        for lists in levels.values()
        if (interpretation := _level(inspection, lists)) is not None
    ]
    asked = inspection.options.label
    if asked is not None:
        return next(
            (
                interpretation
                for interpretation in interpretations
                if asked in interpretation.list_files
            ),
            None,
        )
    if len(interpretations) < 2:
        return interpretations[0] if interpretations else None
    several = sorted(interpretations, key=lambda interpretation: interpretation.classes)
    ways = [
        Alternative(each.labelled, each.classes, {"label": min(each.list_files)})
        for each in several
    ]
    evidence = tuple(line for each in several for line in each.evidence)
    return Interpretation(
        several[0].certainty, evidence, "a class stands after each name", alternatives=ways
    )


def _level(inspection: Inspection, lists: Sequence[NameList]) -> Interpretation | None:
    """The interpretation of the lists of one level; None if they name an image twice,
    or have a class for nearly each.
    """
    labels: dict[str, list[str]] = {}
    for each in lists:
        for row, text in zip(each.rows, each.texts, strict=True):
            labels.setdefault(inspection.items[row], []).append(text)
    classes = {name for several in labels.values() for name in several}
    if (
        any(len(several) > 1 for several in labels.values())
        or not 2 <= len(classes) <= len(labels) // 2
    ):
        return None
    return _reading(inspection, lists, labels, "a class after each name")


def _reading(
    inspection: Inspection, lists: Sequence[NameList], labels: Mapping[str, Sequence[str]], how: str
) -> Interpretation | None:
    """The interpretation of lists; None if they give less than half of the images a class."""
    if 2 * len(labels) < len(inspection.items):
        return None
    assert inspection.content is not None
    classes = sorted({name for several in labels.values() for name in several})
    is_several = any(len(several) > 1 for several in labels.values())
    divided = divided_by(lists, inspection.items)
    divided = {
        split: [name for name in names if name in labels] for split, names in divided.items()
    }
    files = frozenset(each.where for each in lists)
    left = len(inspection.items) - len(labels)
    certainty = CERTAIN if inspection.labels else CERTAIN + 1
    return Interpretation(
        ONLY_IF_ASKED if shape_of(inspection.items).has_classes else certainty,
        (f"{listed(sorted(files))}: {how}, {len(labels):,} of {len(inspection.items):,} images",),
        f"{how}: {listed(classes)}",
        Proposal(
            "files",
            inspection.content,
            list(labels),
            written_lists=divided,
            written_labels={name: _SIGN.join(several) for name, several in labels.items()},
            several=_SIGN if is_several else "",
        ),
        skip_notes=[f"{number_of(left, inspection.noun)} in no list, left out"] if left else [],
        labelled=len(labels),
        classes=len(classes),
        list_files=files,
    )


LAYOUTS = {"class-lists": _recognise_lists, "class-lines": _recognise_lines}
