"""YOLO: a text file for each image, a line for each box: its class from 0, then its centre and size, or a polygon."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, number_in, read_data_yaml, text_in
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Lists, Proposed, folders_of
from imagenet_prep.recipes.labels_file import match
from imagenet_prep.recipes.splits import stem_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_NO_PIXELS = 2
"""Relative corners are smaller, even those of a box that leads out of its image; pixels of a whole file never are."""


def _read(path: Path, names: Sequence[str]) -> Drawn:
    lines = enumerate(text_in(path).split("\n"), 1)
    several = [(line.split(), f"{path}, line {number}") for number, line in lines]
    shapes = [_shape(words, names, where) for words, where in several if words]
    return Drawn(path.stem, str(path), shapes, is_relative=True)


def _shape(words: Sequence[str], names: Sequence[str], where: str) -> DrawnObject:
    is_polygon = len(words) >= 7 and len(words) % 2 == 1
    if len(words) != 5 and not is_polygon:
        expected = "expected 5: class, x, y, width, height; key points and confidences are not read"
        raise fault(where, f"{len(words)} values", expected)
    if not words[0].isdecimal() or len(words[0]) > 18 or not "".join(names[int(words[0]) :][:1]):
        raise fault(where, f"class {words[0][:40]}", f"expected 0 to {len(names) - 1}, the classes of `names`")
    values = [number_in(word, where) for word in words[1:]]
    if not all(-_NO_PIXELS < value < _NO_PIXELS for value in values):
        raise fault(where, " ".join(words[1:]), "expected numbers from 0 to 1, relative to the image")
    name = names[int(words[0])]
    if is_polygon:
        return DrawnObject.polygon(name, list(zip(values[::2], values[1::2], strict=True)), where)
    x, y, width, height = values
    return DrawnObject(name, (x - width / 2, y - height / 2, x + width / 2, y + height / 2), where)


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    names = images.class_names(keys).order
    images.mark_files(keys.places, ".txt", lambda path: _read(path, names))


# init ----------------------------------------------------------------------------------------------------------


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """Text files with the names of the images, and a file of the names of classes, which may name lists of splits.

    Raises:
        InputError: there is no file of names, or a list of a split is not there.
    """
    stems = set(map(stem_of, folder.images))
    labels = [name for name in folder.files if name.endswith(".txt") and stem_of(name) in stems]
    if not labels:
        return None
    every = [*folder.files, *folder.stray]
    names = [name for name in every if name.endswith((".yaml", ".yml", "classes.txt", "obj.names"))]
    names.sort(key=lambda name: (not name.endswith((".yaml", ".yml")), not name.endswith("data.yaml")))
    if not names:
        what = f"{folder.path} has YOLO annotations, and no file of the names of classes"
        hint = "add data.yaml with names: [...], or classes.txt with a class in each line"
        raise InputError(what, "expected one", hint)
    lists = _listed_splits(folder, names[0])
    value = {"yolo": folders_of(labels), "names": names[0]}
    return Proposed(value, [*labels, names[0]], lists)


def _listed_splits(folder: AnnotatedFolder, name: str) -> Lists:
    """The lists of images that a data.yaml names for its splits; none if it names folders, or is a list of names.

    Raises:
        InputError: a split is a list, and another one is not, or a list is not there or has no image of the folder.
    """
    path = folder.path / name
    keys = read_data_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else {}
    places = {key: keys[key] for key in ("train", "val", "test") if keys.get(key) not in (None, "", "~", "null")}
    if not any(str(place).strip("[]'\" ").endswith(".txt") for place in places.values()):
        return {}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    known = set(folder.names)
    for split, place in places.items():
        candidates = [place, f"{keys.get('path', '.')}/{place}"]
        below = [os.path.normpath(f"{name.rpartition('/')[0]}/{each}").lstrip("/") for each in candidates]
        where = next((each for each in below if each in known), "")
        text = (folder.path / where).read_text(errors="replace") if where else ""
        lines = list(filter(None, map(str.strip, text.split("\n"))))
        rows = match(lines, folder.images, folder.path, folder.path / where)
        if max(rows, default=-1) < 0:
            what = f"{path}: {split}: {place} is no list of images of {folder.path}"
            hint = "correct it; or take train, val and test out: all images are divided by their names then"
            raise InputError(what, "expected a text file for each split, with an image in each line", hint)
        images = [folder.images[row] for row in rows if row >= 0]
        lists["validation" if split == "val" else split] = where, images
    return lists


def _is_of(name: str, ends: bytes) -> bool:
    if not name.lower().endswith(".txt"):
        return b"names:" in ends and (b"train:" in ends or b"nc:" in ends)
    lines = [line.split() for line in ends.split(b"\n")[:3] if line.strip()]
    return bool(lines) and all(map(_is_box, lines))


def _is_box(words: Sequence[bytes]) -> bool:
    """Whether a line starts as YOLO's do: a class and four numbers, relative to the image."""
    try:
        return len(words) >= 5 and words[0].isdigit() and all(-1 <= float(word) <= 2 for word in words[1:5])
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
