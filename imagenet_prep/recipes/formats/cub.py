"""CUB-200: bounding_boxes.txt, a line an image: its id, then x, y, width and height.

Next to it are images.txt with the names, and train_test_split.txt, where 1 is train.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.recipes.annotated_images import AnnotatedImages, need_annotations
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, number_in, text_in
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_FILE = "bounding_boxes.txt"
_SPLITS = ("test", "train")


def _read(path: Path) -> list[Drawn]:
    """The box of each image, whose class is that of the image: the name of its folder."""
    names = {words[0]: words[1] for words, _ in _lines(path.parent / "images.txt", 2)}
    division = path.parent / "train_test_split.txt"
    is_train = (
        {words[0]: words[1] == "1" for words, _ in _lines(division, 2)} if division.exists() else {}
    )
    images = []
    for words, where in _lines(path, 5):
        if words[0] not in names:
            raise fault(
                where, f"the image {words[0]}", f"expected one of {path.parent / 'images.txt'}"
            )
        name = names[words[0]]
        x, y, width, height = (number_in(word, where) for word in words[1:])
        class_name = name.rpartition("/")[0].rpartition("/")[2]
        box = DrawnObject(class_name, corners_of_size(x, y, width, height), where)
        split = _SPLITS[is_train[words[0]]] if words[0] in is_train else ""
        images.append(Drawn(name, where, [box], split=split))
    return images


def _lines(path: Path, count: int) -> Iterator[tuple[list[str], str]]:
    """The words of each line, and its place."""
    for number, line in enumerate(text_in(need_annotations(path)).splitlines(), 1):
        words = line.split(None, count - 1)
        if len(words) != count:
            raise fault(f"{path}, line {number}", f"{len(words)} values", f"expected {count}")
        yield words, f"{path}, line {number}"


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    places = [name.rpartition("/")[0] for name in folder.names if name.rpartition("/")[2] == _FILE]
    beside = {f"{place}/{name}".lstrip("/") for place in places for name in _BESIDE}
    files = [
        f"{place}/{_FILE}".lstrip("/")
        for place in places
        if f"{place}/images.txt".lstrip("/") in folder.names
    ]
    return Proposed({"cub": files}, [*files, *beside.intersection(folder.names)]) if files else None


_BESIDE = ("images.txt", "train_test_split.txt", "image_class_labels.txt", "classes.txt")


def _is_of(name: str, _ends: bytes) -> bool:
    return name.rpartition("/")[2] == _FILE


FORMAT = Format(
    "cub",
    "CUB-200",
    "cub",
    (".txt",),
    _is_of,
    _mark,
    usage={
        "CUB-200": (
            "`boxes: {cub: bounding_boxes.txt}`. A box has the class of its image; "
            "train_test_split.txt gives the splits"
        )
    },
    propose=_propose,
)
