"""Images whose names start with their class, as cat.0.jpg or great_pyrenees_12.jpg:
a question, never sure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from imagenet_prep.init.folder_shapes import shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import POSSIBLE, Interpretation, Proposal
from imagenet_prep.init.split_lists import SplitLists, find_split_lists
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.path_parts import parent_of, stem_of
from imagenet_prep.recipes.splits import split_names
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
    labels = _labels_by_name(inspection.items, shape.lead)
    classes = class_order(set(labels.values()))
    if len(classes) < 2 or 2 * len(labels) < len(inspection.items):
        return None
    lists = _only_lists(inspection, labels)
    if lists is not None:
        labels = {name: labels[name] for name in lists.names}
    words = number_of(len(classes), "word")
    evidence = f"{len(labels):,} names of images start with one of {words}: {listed(classes)}"
    skip_notes: list[str] = []
    left_out = len(inspection.items) - len(labels)
    if left_out:
        count = number_of(left_out, "image")
        skip_notes.append(f"{count} without a class in the name or in no list, left out")
    proposal = Proposal(
        "files",
        inspection.content,
        list(labels),
        splits=_splits_of_folders(labels),
        written_lists=lists.divided if lists else {},
        written_labels=labels,
        absent=lists.absent if lists else {},
    )
    return Interpretation(
        POSSIBLE,
        (evidence,),
        f"the first words of their names are the classes: {listed(classes)}",
        proposal,
        annotation_files=frozenset(lists.files.values() if lists else ()),
        skip_notes=skip_notes,
        labelled=len(labels),
        classes=len(classes),
    )


def _labels_by_name(items: Sequence[str], lead: str) -> dict[str, str]:
    """The class of each image that its name starts with; none in folders where others have none."""
    words = {name: _first_words(name.removeprefix(lead)) for name in items}
    counts = Counter(words.values())
    labels = {name: word for name, word in words.items() if word and counts[word] > 1}
    totals = Counter(map(parent_of, items))
    named_totals = Counter(map(parent_of, labels))
    folders: set[str] = set()
    for folder, count in named_totals.items():
        if count >= _NAMED * totals[folder]:
            folders.add(folder)
    return {name: word for name, word in labels.items() if parent_of(name) in folders}


def _first_words(name: str) -> str:
    """The start of a file's name before its number; "" for words that cameras and scripts write."""
    match = _NUMBERED.fullmatch(stem_of(name))
    if match is None:
        return ""
    word = match[1].rstrip(" _.-(")
    if re.search(r"[^\W\d_]", word) is None:
        return ""
    plain_word = re.sub(r"[\W\d_]+$", "", word.lower())
    if _CAMERA.fullmatch(plain_word):
        return ""
    return word


def _only_lists(inspection: Inspection, labels: Mapping[str, str]) -> SplitLists | None:
    """The lists that divide images of one folder, if there is one way."""
    folders = set(map(parent_of, labels))
    if len(folders) > 1:
        return None
    ways_to_divide = find_split_lists(inspection, list(labels), "")
    if len(ways_to_divide) != 1:
        return None
    return ways_to_divide[0]


def _splits_of_folders(labels: Mapping[str, str]) -> dict[str, str]:
    """The split of each folder; none if one of them is not called as a split."""
    folders = sorted(set(map(parent_of, labels)))
    splits = split_names(folders)
    if len(splits) < len(folders):
        return {}
    return splits


STRUCTURES = {"file-names": recognise}
