"""CUB-200: bounding_boxes.txt, a line an image: its id, then x, y, width and height.

Next to it are images.txt with the names, and train_test_split.txt, where 1 is train.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import parse_number, read_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_policy import corners_of_size, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.recipe_paths import fault_of_path
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_BOXES = "bounding_boxes.txt"
_NAMES = "images.txt"
_DIVISION = "train_test_split.txt"
_BOX_VALUES = ("image id", "x", "y", "width", "height")
_NAME_VALUES = ("image id", "path")
_SPLIT_VALUES = ("image id", "1 or 0")
_NEIGHBOURS = (_NAMES, _DIVISION, "image_class_labels.txt", "classes.txt")


def _read(path: Path) -> list[Drawn]:
    """The box of each image, whose class is that of the image: the name of its folder."""
    names_file = path.parent / _NAMES
    problem = fault_of_path(names_file, "file")
    if problem:
        raise InputError(f"{names_file} {problem}", f"expected the names of images next to {path}")
    names_by_id = {words[0]: words[1] for words, _ in _read_lines(names_file, _NAME_VALUES)}
    splits_by_id = _read_splits(path.parent / _DIVISION)
    images = []
    for (image_id, *numbers), place in _read_lines(path, _BOX_VALUES):
        if image_id not in names_by_id:
            problem = f"no image has the id {image_id}"
            raise fault(place, problem, f"expected an id of {names_file}")
        name = names_by_id[image_id]
        class_name = name.rpartition("/")[0].rpartition("/")[2]
        x, y, width, height = (parse_number(number, place) for number in numbers)
        corners = corners_of_size(x, y, width, height)
        box = DrawnObject(class_name, corners, place)
        images.append(Drawn(name, place, [box], split=splits_by_id.get(image_id, "")))
    return images


def _read_splits(path: Path) -> dict[str, str]:
    """The split of each image by its id; empty without a file of them."""
    if not path.exists():
        return {}
    flags_by_id = {words[0]: words[1] for words, _ in _read_lines(path, _SPLIT_VALUES)}
    return {image_id: "train" if flag == "1" else "test" for image_id, flag in flags_by_id.items()}


def _read_lines(path: Path, values: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """The words of each line, which are these ``values``, and its place."""
    text = read_text(path).removesuffix("\n")
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{path}, line {number}"
        words = line.strip().split(None, len(values) - 1)
        if len(words) != len(values):
            problem = f"the line has {number_of(len(words), 'value')}"
            raise fault(place, problem, f"expected {len(values)}: {', '.join(values)}")
        yield words, place


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.mark_named(keys.places, _read)


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    box_files: list[str] = []
    neighbours: set[str] = set()
    for name in folder.names:
        folders, _, file_name = name.rpartition("/")
        if file_name != _BOXES:
            continue
        neighbours.update(f"{folders}/{neighbour}".lstrip("/") for neighbour in _NEIGHBOURS)
        if f"{folders}/{_NAMES}".lstrip("/") in folder.names:
            box_files.append(name)
    if not box_files:
        return None
    return Proposed({"cub": box_files}, [*box_files, *neighbours.intersection(folder.names)])


def _recognises(name: str, _ends: bytes) -> bool:
    return name.rpartition("/")[2] == _BOXES


FORMAT = Format(
    "cub",
    "CUB-200",
    "cub",
    (".txt",),
    _recognises,
    _mark,
    usage={
        "CUB-200": (
            "`boxes: {cub: bounding_boxes.txt}`. A box has the class of its image; "
            "train_test_split.txt gives the splits"
        )
    },
    propose=_propose,
)
