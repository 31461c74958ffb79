"""YOLO: a text file for each image, a line for each box:
its class from 0, then its centre and size, or a polygon.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import (
    Drawn,
    DrawnObject,
    number_in,
    read_data_yaml,
    read_names,
    text_in,
)
from imagenet_prep.recipes.box_policy import NO_PIXELS, corners_around, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Lists, Proposed, folders_of
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.sources.names import below
from imagenet_prep.text import listed

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


def _read(path: Path, names: Sequence[str], posed: int) -> Drawn:
    """The objects of one file; lines of ``posed`` values end with key points,
    which are not read.
    """
    lines = enumerate(text_in(path).split("\n"), 1)
    several = [(line.split(), f"{path}, line {number}") for number, line in lines]
    several = [(words[:5] if len(words) == posed else words, where) for words, where in several]
    shapes = [_shape(words, names, where) for words, where in several if words]
    return Drawn(path.stem, str(path), shapes, is_relative=True)


def _shape(words: Sequence[str], names: Sequence[str], where: str) -> DrawnObject:
    is_polygon = len(words) >= 7 and len(words) % 2 == 1
    if len(words) != 5 and not is_polygon:
        expected = "expected 5: class, x, y, width, height; key points and confidences are not read"
        raise fault(where, f"{len(words)} values", expected)
    number = int(words[0]) if words[0].isdecimal() and len(words[0]) <= _MOST_DIGITS else len(names)
    name = names[number] if number < len(names) else ""
    if not name:
        raise fault(
            where,
            f"class {words[0][:40]}",
            f"expected 0 to {len(names) - 1}, the classes of `names`",
        )
    values = [number_in(word, where) for word in words[1:]]
    if not all(-NO_PIXELS < value < NO_PIXELS for value in values):
        raise fault(
            where, " ".join(words[1:]), "expected numbers from 0 to 1, relative to the image"
        )
    if is_polygon:
        return DrawnObject.polygon(name, list(zip(values[::2], values[1::2], strict=True)), where)
    x, y, width, height = values
    return DrawnObject(name, corners_around(x, y, width / 2, height / 2), where)


_MOST_DIGITS = 18


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    names, posed = images.class_names(keys).order, 0
    if isinstance(keys.names, str):
        path = below(images.roots.root, keys.names)
        posed = _values_of_poses(path)
        images.file.unread += (
            [f"{path.name}: key points are not read (kpt_shape), only boxes"] if posed else []
        )
    images.mark_files(keys.places, ".txt", lambda path: _read(path, names, posed))
    images.missing[:] = [
        name for name in images.missing if name.rpartition("/")[2] not in _NO_LABELS
    ]


_NO_LABELS = (
    "classes.txt",
    "predefined_classes.txt",
    "train.txt",
    "val.txt",
    "valid.txt",
    "test.txt",
)
"""Files among those of images that name classes, or images."""


def _values_of_poses(path: Path) -> int:
    """How many values a line with key points has, as a data.yaml says; 0 if there are none."""
    shape = (
        read_data_yaml(path).get("kpt_shape") if path.suffix.lower() in (".yaml", ".yml") else None
    )
    if not isinstance(shape, list) or not all(str(size).isdecimal() for size in shape):
        return 0
    return 5 + math.prod(map(int, shape))


# init ---------------------------------------------------------------------------------------------


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """Text files with the names of the images, and a file of the names of classes, which may name
    lists of splits.

    Raises:
        InputError: there is no file of names, or a list of a split is not there.
    """
    stems = set(map(stem_of, folder.images))
    labels = [name for name in folder.files if name.endswith(".txt") and stem_of(name) in stems]
    if not labels:
        _refuse_missing_labels(folder)
        return None
    names = _names_file(folder)
    if not names:
        return _propose_nameless(folder, labels)
    lists = _listed_splits(folder, names)
    value = {"yolo": folders_of(labels), "names": names}
    used = [
        *labels,
        names,
        *(name for name in folder.names if name.endswith(_NAMES) and name != names),
    ]
    return Proposed(value, used, lists, doubts=_doubts(folder, labels))


def _propose_nameless(folder: AnnotatedFolder, labels: Sequence[str]) -> Proposed:
    """Classes that are called as their numbers, if the user accepts that."""
    texts = (text_in(folder.path / name) for name in labels)
    words = [line.split()[0] for text in texts for line in text.splitlines() if line.strip()]
    most = max((int(word) for word in words if _NUMBER.fullmatch(word)), default=0)
    doubt = (
        "YOLO annotations, and no file of the names of classes such as data.yaml: "
        "they are called as their numbers"
    )
    value = {"yolo": folders_of(labels), "names": tuple(map(str, range(most + 1)))}
    return Proposed(value, labels, doubts=[doubt, *_doubts(folder, labels)])


_NUMBER = re.compile(r"[0-9]{1,5}")


def _refuse_missing_labels(folder: AnnotatedFolder) -> None:
    """Raise InputError if a data.yaml is there, and no text file has a box of an image."""
    for name in (name for name in folder.names if name.endswith("data.yaml")):
        keys = read_data_yaml(folder.path / name)
        if "names" in keys and {"train", "val", "path"} & keys.keys():
            what = (
                f"{folder.path / name} is that of a YOLO set, and no text file has a box of an "
                "image"
            )
            expected = "expected labels/train/a.txt for images/train/a.jpg"
            without = command("init", folder.path, (("as", "unlabelled"),))
            raise InputError(
                what,
                expected,
                f"put the folder labels next to images; or leave boxes out: {without}",
            )


_NAMES = ("classes.txt", ".names", "_darknet.labels")


def _names_file(folder: AnnotatedFolder) -> str:
    """The file of the names of classes, "" if there is none;
    raises InputError if there are several that differ.
    """
    every = [*folder.files, *folder.stray]
    names = [name for name in every if name.endswith((".yaml", ".yml", *_NAMES))]
    names.sort(
        key=lambda name: (not name.endswith((".yaml", ".yml")), not name.endswith("data.yaml"))
    )
    if not names:
        return ""
    texts = {name: read_names(folder.path / name).order for name in names if name.endswith(_NAMES)}
    other = next(
        (name for name, text in texts.items() if names[0] in texts and text != texts[names[0]]),
        None,
    )
    if other is not None:
        what = f"{names[0]} and {other} in {folder.path} name the classes differently"
        raise InputError(what, "expected the same names", "remove one of them")
    return names[0]


def _doubts(folder: AnnotatedFolder, labels: Sequence[str]) -> list[str]:
    """The doubt whether lines of four points are polygons: they may be boxes that are turned."""
    texts = ((folder.path / name).read_text(errors="replace") for name in labels[:_MOST_READ])
    lengths = {len(line.split()) for text in texts for line in text.splitlines() if line.strip()}
    if lengths != {9}:
        return []
    return [
        f"every line of {listed(labels)} has four points: turned boxes become the boxes around them"
    ]


_MOST_READ = 50


def _listed_splits(folder: AnnotatedFolder, name: str) -> Lists:
    """The lists of images that a data.yaml names for its splits; none if it names folders, or is a
    list of names.

    Raises:
        InputError: a split is a list, and another one is not, or a list is not there or has no
            image of the folder.
    """
    path = folder.path / name
    keys = (
        read_data_yaml(path)
        if path.suffix.lower() in (".yaml", ".yml")
        else _darknet_keys(folder, name)
    )
    places = {
        key: keys[key]
        for key in ("train", "val", "test")
        if keys.get(key) not in (None, "", "~", "null")
    }
    if not any(str(place).strip("[]'\" ").endswith(".txt") for place in places.values()):
        return {}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    known = set(folder.names)
    for split, place in places.items():
        candidates = [place, f"{keys.get('path', '.')}/{place}"]
        near = [
            os.path.normpath(f"{name.rpartition('/')[0]}/{each}").lstrip("/") for each in candidates
        ]
        where = next((each for each in (*near, place) if each in known), "")
        text = (folder.path / where).read_text(errors="replace") if where else ""
        lines = list(filter(None, map(str.strip, text.split("\n"))))
        rows = match(lines, folder.images, folder.path, folder.path / where)
        if max(rows, default=-1) < 0:
            what = f"{path}: {split}: {place} is no list of images of {folder.path}"
            hint = (
                "correct it; or take train, val and test out: all images are divided by their "
                "names then"
            )
            raise InputError(
                what, "expected a text file for each split, with an image in each line", hint
            )
        images = [folder.images[row] for row in rows if row >= 0]
        lists["validation" if split == "val" else split] = where, images
    return lists


def _darknet_keys(folder: AnnotatedFolder, name: str) -> dict[str, str]:
    """The lists of splits that darknet's .data file next to the names has,
    by the keys of a data.yaml.
    """
    place = name.rpartition("/")[0]
    files = [
        each for each in folder.names if each.rpartition("/")[0] == place and each.endswith(".data")
    ]
    if len(files) != 1:
        return {}
    lines = (line.partition("=") for line in text_in(folder.path / files[0]).splitlines())
    keys = {key.strip(): value.strip() for key, _, value in lines}
    return {
        "val" if key == "valid" else key: value
        for key, value in keys.items()
        if key in ("train", "valid", "test")
    }


def _is_of(name: str, ends: bytes) -> bool:
    if not name.lower().endswith(".txt"):
        return b"names:" in ends and (b"train:" in ends or b"nc:" in ends)
    lines = [line.split() for line in ends.split(b"\n")[:3] if line.strip()]
    return bool(lines) and all(map(_is_box, lines))


def _is_box(words: Sequence[bytes]) -> bool:
    """Whether a line starts as YOLO's do: a class and four numbers, relative to the image."""
    try:
        return (
            len(words) >= 5
            and words[0].isdigit()
            and all(-1 <= float(word) <= 2 for word in words[1:5])
        )
    except ValueError:
        return False


FORMAT = Format(
    "yolo",
    "YOLO",
    "yolo",
    (".txt", ".yaml", ".yml"),
    _is_of,
    _mark,
    keys=("names", "first_label", "polygons"),
    needs=("names",),
    per_image=True,
    is_vague=True,
    unannotated="empty",
    propose=_propose,
)
