"""Downsampled ImageNet: the names of its classes, checks of its batches, and what its user must
know of its labels.

Chrabaszcz, Loshchilov, Hutter, "A Downsampled Variant of ImageNet as an Alternative to the CIFAR
datasets", 2017: ten batches of train images and one of validation images of 8, 16, 32 or 64 pixels,
as pickles or npz files. Labels are those of the devkit of ILSVRC2012, 1 to 1000, by its file
map_clsloc.txt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.sources.array_files import is_downsampled, stem
from imagenet_prep.storage.files import read_plain

SYNSETS = "map_clsloc.txt"
"""The file that names the classes: a WordNet id, a label and words in each line."""

_SYNSET = re.compile(r"(n\d{8}) ([1-9]\d{0,3}) (\S.*)", re.ASCII)
_CLASSES = 1000
_IMAGES = {"train": 1_281_167, "validation": 50_000}
_ORDER = (
    f"labels are 1 to 1000 in the order of {SYNSETS}, not in that of other ImageNet records",
    "label 1 is n02119789 (kit fox) here, and n01440764 (tench) there",
)
_NAMELESS = f"the files have no names of classes: put {SYNSETS} into the folder, and run init again"


def are_batches(names: Iterable[str]) -> bool:
    """Whether batches are among files of these names."""
    return any(is_downsampled(name.rpartition("/")[2]) for name in names)


def find_synsets(names: Iterable[str]) -> str | None:
    """The file that names the classes; None if it is not there."""
    return next((name for name in names if name.rpartition("/")[2] == SYNSETS), None)


def read_synsets(path: Path) -> tuple[dict[int, str], dict[int, str]]:
    """The WordNet id and the words of each label.

    Raises:
        InputError: a line has another form, or a label or an id repeats.
    """
    wnids: dict[int, str] = {}
    words: dict[int, str] = {}
    known_wnids: set[str] = set()
    text = read_plain(path).decode("utf-8-sig", "replace").removesuffix("\n")
    for number, line in enumerate(text.split("\n"), 1):
        match = _SYNSET.fullmatch(line.strip())
        problem = ""
        if match is None:
            problem = f"{line[:100]!r} is not the line of a class"
        elif int(match[2]) in wnids:
            problem = f"the label {match[2]} is also in an earlier line"
        elif match[1] in known_wnids:
            problem = f"the class {match[1]} is also in an earlier line"
        if match is None or problem:
            raise InputError(
                f"{path}, line {number}: {problem}",
                "expected the id, the number and the name of each class once: n02119789 1 kit_fox",
                "correct the line, or get the published file",
            )
        known_wnids.add(match[1])
        label = int(match[2])
        wnids[label], words[label] = match[1], match[3]
    return wnids, words


def refuse_two_forms(paths: Iterable[Path]) -> None:
    """Raise InputError for a batch in two forms: each of its images would be there twice."""
    batches: dict[Path, Path] = {}
    for path in paths:
        if not is_downsampled(path.name):
            continue
        first_form = batches.setdefault(path.with_name(stem(path)), path)
        if first_form != path:
            raise InputError(
                f"{first_form} and {path} are the same batch, by their names",
                "expected one file for each batch",
                "move one of these files out of the folder of the data",
            )


def refuse_labels(path: Path, labels: Sequence[Any]) -> None:
    """Raise InputError for a label of a batch that is none of the 1000:
    labels from 0 would name other classes.
    """
    if not is_downsampled(path.name):
        return
    for label in labels:
        is_number = isinstance(label, (int, float))
        if not is_number or not 1 <= label <= _CLASSES:
            raise InputError(
                f"{path} has the label {label}",
                f"expected labels from 1 to {_CLASSES}",
                f"get the published files; if these are of another set, rename {path.name}: it is "
                "the name of a batch of downsampled ImageNet",
            )


def remarks_on(
    names: Iterable[str], image_names: Iterable[str], *, has_classes: bool
) -> tuple[str, ...]:
    """The order of the labels, whether classes have names, and the splits that lack images; none
    for other files.

    ``names`` are those of the files, ``image_names`` start with the split of each image.
    """
    if not are_batches(names):
        return ()
    remarks = [*_ORDER]
    if not has_classes:
        remarks.append(_NAMELESS)
    counts = Counter(name.partition("/")[0] for name in image_names)
    for split, count in _IMAGES.items():
        if counts[split] != count:
            remarks.append(
                f"{split}: {counts[split]:,} of {count:,} images of downsampled ImageNet"
            )
    return tuple(remarks)
