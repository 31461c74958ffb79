"""Pascal VOC: an XML file for each image, with its name;
Stanford Dogs has them without an ending.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import (
    Drawn,
    DrawnObject,
    columns_named,
    number_in,
    size_of,
    xml_in,
)
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed, folders_of
from imagenet_prep.recipes.splits import stem_of
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


def _read(path: Path) -> Drawn:
    """One XML file; its name tells the image, since <filename> is often another one."""
    root, where = xml_in(path), str(path)
    size = size_of(_number(root, "size/width", where), _number(root, "size/height", where), where)
    several = enumerate(root.findall("object"), 1)
    shapes = [_shape(element, f"{where}: object {number}") for number, element in several]
    return Drawn(_text(root, "filename"), where, shapes, size)


def _shape(element: ElementTree.Element, where: str) -> DrawnObject:
    name = _text(element, "name")
    if not name:
        raise fault(where, "no <name>", "expected the class")
    xmin, ymin, xmax, ymax = (_number(element, f"bndbox/{edge}", where) for edge in EDGES)
    flags = {key: int(_number(element, key, where, "0")) for key in ("difficult", "truncated")}
    values = {**flags, "view": _text(element, "pose") or "Unspecified"}
    return DrawnObject(name, (xmin, ymin, xmax, ymax), where, values)


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _number(element: ElementTree.Element, path: str, where: str, otherwise: str = "") -> float:
    text = _text(element, path) or otherwise
    return number_in(text, f"{where}: <{path.rpartition('/')[2]}>")


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.file.columns = columns_named("difficult", "truncated", "view")
    images.mark_files(keys.places, ".xml", _read)
    if not images.marked:
        missing = images.missing
        images.mark_files(keys.places, "", _read)
        images.missing = missing + images.missing if images.marked else missing
    names = [name.rpartition("/")[2] for name in images.names]
    known = set(names)
    others = [
        image.where
        for row, image in images.marked.items()
        if image.name != names[row] and image.name in known
    ]
    if others:
        count = number_of(len(others), "annotation names", "annotations name")
        what = f"{count} another image in <filename>: {listed(others)}; the file's own name counts"
        images.file.unread.append(what)


# init ---------------------------------------------------------------------------------------------

_IMAGE_SET = re.compile(r"(.*/)?ImageSets/Main/(train|val|test|trainval)\.txt")


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """XML files with the names of the images, and perhaps lists of the splits,
    of names without endings.
    """
    if not folder.files:
        return None
    matches = list(filter(None, map(_IMAGE_SET.fullmatch, folder.names)))
    faults = []
    if len({match[1] for match in matches}) > 1:
        what = (
            f"{folder.path} has lists of splits in several folders: "
            f"{listed(match[0] for match in matches)}"
        )
        hint = "make a recipe of each folder above them"
        faults = [InputError(what, "expected one folder ImageSets/Main", hint)]
    lists = _lists(folder, {match[2]: match[0] for match in matches})
    if lists and not any(names for _, names in lists.values()):
        what = (
            f"{listed(path for path, _ in lists.values())}: no line is the name of an image "
            "without its ending"
        )
        faults.append(
            InputError(
                what, "expected the lists of these images", "correct them, or move them away"
            )
        )
    return Proposed({"voc": folders_of(folder.files)}, folder.files, lists, faults)


def _lists(folder: AnnotatedFolder, by_split: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    """The lists of the splits, and the images that each has."""
    by_stem = {stem_of(name): name for name in folder.images}
    lists: dict[str, tuple[str, list[str]]] = {}
    for split in (
        ("train", "val", "test") if {"train", "val"} & by_split.keys() else ("trainval", "test")
    ):
        if split in by_split:
            lines = map(
                str.strip, (folder.path / by_split[split]).read_text(errors="replace").splitlines()
            )
            names = [by_stem[line] for line in lines if line in by_stem]
            lists["validation" if split == "val" else split] = by_split[split], names
    return lists


def _is_of(_name: str, ends: bytes) -> bool:
    return bool(re.search(rb"<annotation[\s/>]", ends))


FORMAT = Format(
    "voc",
    "Pascal VOC",
    "pascal-voc",
    (".xml", ""),
    _is_of,
    _mark,
    usage={
        "Pascal VOC": (
            "`boxes: {voc: FOLDERS}`. `JPEGImages/a.jpg` has `Annotations/a.xml`, or `a` without "
            "an ending, as in Stanford Dogs"
        )
    },
    per_image=True,
    propose=_propose,
)
