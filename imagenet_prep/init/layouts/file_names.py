"""Images whose names start with their class, as cat.0.jpg or great_pyrenees_12.jpg:
a question, never sure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.proposal import POSSIBLE, Interpretation, Proposal
from imagenet_prep.init.split_lists import find_split_lists
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.splits import split_names, stem_of
from imagenet_prep.text import listed, number_of

_NUMBERED = re.compile(r"(.*?)[ _.(-]*\d+\)?")
_CAMERA = re.compile(
    r"(?:img|image|images|dsc[a-z]?|dcim|pict?|photo|picture|frame|scan|slice|screen "
    r"?shot|whatsapp image|p|v|x|"
    r"cam(?:era)?|file|sample|train|val|valid|test|crop|patch|tile|page|untitled|download|unnamed)?"
)
_NAMED = 0.9
"""The least share of the images of a folder that are called by classes."""


def recognise(inspection: Inspection) -> Interpretation | None:
    """Two classes at least, of two images each at least, in folders that are no classes."""
    shape = shape_of(inspection.items)
    if not inspection.items or shape.has_classes or inspection.content != "image":
        return None
    labels = {
        name: word for name in inspection.items if (word := _word(name.removeprefix(shape.lead)))
    }
    counts = Counter(labels.values())
    labels = {name: word for name, word in labels.items() if counts[word] > 1}
    folders = _named_folders(inspection.items, labels)
    labels = {name: word for name, word in labels.items() if name.rpartition("/")[0] in folders}
    classes = class_order(set(labels.values()))
    if len(classes) < 2 or 2 * len(labels) < len(inspection.items):
        return None
    tops = {name.rpartition("/")[0] for name in labels}
    splits = split_names(sorted(tops)) if len(tops) > 1 or all(split_names(tops).values()) else {}
    lists = find_split_lists(inspection, list(labels), "") if len(tops) == 1 else []
    if len(lists) == 1:
        labels = {name: labels[name] for name in lists[0].names}
    left = len(inspection.items) - len(labels)
    return Interpretation(
        POSSIBLE,
        (
            (
                f"{len(labels):,} names of images start with one of "
                f"{number_of(len(classes), 'word')}: {listed(classes)}"
            ),
        ),
        f"the first words of their names are the classes: {listed(classes)}",
        Proposal(
            "files",
            inspection.content,
            list(labels),
            splits=splits if len(splits) == len(tops) else {},
            written_lists=lists[0].divided if len(lists) == 1 else {},
            written_labels=labels,
        ),
        annotation_files=frozenset(lists[0].files.values()) if len(lists) == 1 else frozenset(),
        skip_notes=[
            f"{number_of(left, 'image')} without a class in the name or in no list, left out"
        ]
        if left
        else [],
        labelled=len(labels),
        classes=len(classes),
    )


def _word(name: str) -> str:
    """The start of a file's name before its number; "" for words that cameras and scripts write."""
    match = _NUMBERED.fullmatch(stem_of(name))
    word = match[1].rstrip(" _.-(") if match else ""
    has_letters = re.search(r"[^\W\d_]", word) is not None
    return (
        word
        if has_letters and not _CAMERA.fullmatch(re.sub(r"[\W\d_]+$", "", word.lower()))
        else ""
    )


def _named_folders(items: Sequence[str], labels: dict[str, str]) -> set[str]:
    """The folders in which nearly all images are called by classes."""
    every = Counter(name.rpartition("/")[0] for name in items)
    named = Counter(name.rpartition("/")[0] for name in labels)
    return {folder for folder, count in named.items() if count >= _NAMED * every[folder]}


LAYOUTS = {"file-names": recognise}
