"""YOLO: a text file for each image, a line for each box:
its class from 0, then its centre and size, or a polygon.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import parse_number, read_text
from imagenet_prep.recipes.box_files import Drawn, DrawnObject
from imagenet_prep.recipes.box_names import read_box_names, read_data_yaml
from imagenet_prep.recipes.box_policy import NO_PIXELS, corners_around, fault
from imagenet_prep.recipes.formats import (
    NUMBERING,
    AnnotatedFolder,
    Format,
    Lists,
    Proposed,
    folders_of,
)
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.sources.names import below
from imagenet_prep.storage.files import kind_of
from imagenet_prep.text import listed, number_of, parse_whole

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


_YAML = (".yaml", ".yml")

_NAMES = ("classes.txt", ".names", "_darknet.labels")
"""The ends of files that only name classes."""

_NO_LABELS = (
    "classes.txt",
    "predefined_classes.txt",
    "train.txt",
    "val.txt",
    "valid.txt",
    "test.txt",
)
"""Files among those of images that name classes, or images."""


class _Classes(NamedTuple):
    """The names of the classes in order, "" where one is missing; and, for messages, where the
    names are.
    """

    names: Sequence[str]
    place: str


def _read(path: Path, classes: _Classes, pose_length: int) -> Drawn:
    """The objects of one file; lines of ``pose_length`` words end with key points,
    which are not read.
    """
    image = Drawn(path.stem, str(path), [], is_relative=True)
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = line.split()
        if len(words) == pose_length:
            words = words[:5]
        if words:
            place = f"{path}, line {number}"
            image.objects.append(_read_object(words, classes, place))
    return image


def _read_object(words: Sequence[str], classes: _Classes, place: str) -> DrawnObject:
    is_polygon = len(words) >= 7 and len(words) % 2 == 1
    if len(words) != 5 and not is_polygon:
        expected = (
            "expected 5: class, x, y, width, height; or a class and the points of a polygon; "
            "key points and confidences are not read"
        )
        problem = f"the line has {number_of(len(words), 'value')}"
        raise fault(place, problem, expected)
    class_name = _class_name(words[0], classes, place)
    numbers = [parse_number(word, place) for word in words[1:]]
    for value_number, number in enumerate(numbers, 2):
        if -NO_PIXELS < number < NO_PIXELS:
            continue
        size = "large" if number > 0 else "small"
        word = words[value_number - 1]
        problem = f"the number {word[:40]} (value {value_number} of the line) is too {size}"
        raise fault(place, problem, "expected numbers from 0 to 1, relative to the image")
    if is_polygon:
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        return DrawnObject.polygon(class_name, points, place)
    x, y, width, height = numbers
    corners = corners_around(x, y, width / 2, height / 2)
    return DrawnObject(class_name, corners, place)


def _class_name(word: str, classes: _Classes, place: str) -> str:
    """The class of a number; raises InputError if none has it."""
    names = classes.names
    if not names:
        problem = f"{classes.place} has no name of a class"
        raise InputError(problem, "expected the names of class 0, class 1 and so on", "add them")
    number = parse_whole(word)
    if number is None or number >= len(names):
        numbers = "0" if len(names) == 1 else f"0 to {len(names) - 1}"
        expected = f"expected {numbers}: the classes of {classes.place}"
        raise fault(place, f"the class is {word[:40]}", expected)
    if not names[number]:
        problem = f"class {number} has no name in {classes.place}"
        raise fault(place, problem, "expected a name for every class of a box", _NAMELESS)
    return names[number]


_NAMELESS = "add the name, or correct the class of this line"


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    names_place = "`names` in the recipe's `boxes`"
    pose_length = 0
    if isinstance(keys.names, str):
        names_path = below(images.roots.root, keys.names)
        names_place = names_path.name
        pose_length = _length_of_poses(names_path)
        if pose_length:
            note = f"{names_path.name}: key points are not read (kpt_shape), only boxes"
            images.file.unread.append(note)

    classes = _Classes(images.class_names(keys).order, names_place)

    def read(path: Path) -> Drawn:
        return _read(path, classes, pose_length)

    images.mark_files(keys.places, ".txt", read)
    missing = [name for name in images.missing if name.rpartition("/")[2] not in _NO_LABELS]
    images.missing[:] = missing


def _length_of_poses(path: Path) -> int:
    """How many words a line with key points has, as a data.yaml says; 0 if there are none."""
    if path.suffix.lower() not in _YAML:
        return 0
    shape = read_data_yaml(path).get("kpt_shape")
    if not isinstance(shape, list):
        return 0
    number_count = 1
    for text in map(str, shape):
        size = parse_whole(text)
        if size is None:
            return 0
        number_count *= size
    return 5 + number_count


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
    names_file = _find_names(folder, labels)
    if not names_file:
        return _propose_nameless(folder, labels)
    lists = _read_lists(folder, names_file)
    value = {"yolo": folders_of(labels), "names": names_file}
    used = [*labels, names_file]
    for name in folder.names:
        if name.endswith(_NAMES) and name != names_file:
            used.append(name)
    doubts = _doubts(folder, labels)
    return Proposed(value, used, lists, doubts=doubts)


def _propose_nameless(folder: AnnotatedFolder, labels: Sequence[str]) -> Proposed:
    """Classes that are called as their numbers, if the user accepts that."""
    last_class = 0
    for name in labels:
        text = read_text(folder.path / name)
        for line in text.splitlines():
            words = line.split()
            if words and _NUMBER.fullmatch(words[0]):
                last_class = max(last_class, int(words[0]))
    doubt = (
        "YOLO annotations and no file with class names, such as data.yaml: "
        "each class gets its number as its name"
    )
    numbers = range(last_class + 1)
    value = {"yolo": folders_of(labels), "names": tuple(map(str, numbers))}
    doubts = [("use the numbers as names", doubt), *_doubts(folder, labels)]
    return Proposed(value, labels, doubts=doubts)


_NUMBER = re.compile(r"[0-9]{1,5}")


def _refuse_missing_labels(folder: AnnotatedFolder) -> None:
    """Raise InputError if a data.yaml is there, and no text file has a box of an image."""
    for name in folder.names:
        if not name.endswith("data.yaml"):
            continue
        path = folder.path / name
        keys = read_data_yaml(path)
        names_images = {"train", "val", "path"} & keys.keys()
        if "names" in keys and names_images:
            problem = f"{path} describes a YOLO set, and no text file has the name of an image"
            image = next(iter(folder.images), "images/train/a.jpg")
            expected = f"expected {stem_of(image)}.txt with the boxes of {image}"
            without = folder.init(**{"as": "unlabelled", "names": None})
            hint = Hint("write the boxes in such text files; or leave boxes out: ", without)
            raise InputError(problem, expected, hint)


def _find_names(folder: AnnotatedFolder, labels: Sequence[str]) -> str:
    """The file of the names of classes, "" if there is none;
    raises InputError if there are several that differ.
    """
    file_names = [*folder.files, *folder.stray]
    yamls = [name for name in file_names if name.endswith(_YAML)]
    yamls.sort(key=lambda name: not name.endswith("data.yaml"))
    lists = [name for name in file_names if name.endswith(_NAMES)]
    lists = [name for name in lists if read_text(folder.path / name).strip()]  # some are empty
    # also next to a YAML file: a list that can't be read is an error in any case
    classes = {name: read_box_names(folder.path / name).order for name in lists}
    if yamls:
        return yamls[0]
    if not lists:
        return ""
    first_list = lists[0]
    for name in lists:
        if classes[name] != classes[first_list]:
            problem = f"{first_list} and {name} in {folder.path} name the classes differently"
            expected = "expected the same names in the same order"
            hint = (
                f"keep the file whose order is that of the numbers in {listed(labels)}, "
                "and move the other away"
            )
            raise InputError(problem, expected, hint)
    return first_list


def _doubts(folder: AnnotatedFolder, labels: Sequence[str]) -> list[tuple[str, str]]:
    """The doubt whether lines of four points are polygons: they may be boxes that are turned."""
    lengths: set[int] = set()
    for name in labels[:_MOST_READ]:
        text = (folder.path / name).read_text("utf-8-sig", "replace")
        lengths.update(len(line.split()) for line in text.splitlines())
    lengths.discard(0)
    if lengths != {9}:
        return []
    lines = f"the lines of {listed(labels)}"
    aim = "make an upright box around the four points of each line"
    around = "if these are rotated boxes, each becomes the upright box around it"
    return [(aim, f"{lines} have four points each: {around}")]


_MOST_READ = 50


def _read_lists(folder: AnnotatedFolder, names_file: str) -> Lists:
    """The lists of images that a data.yaml names for its splits; none if it names folders, or is a
    list of names.

    Raises:
        InputError: a split is a list, and another one is not, or a list is not there or has no
            image of the folder.
    """
    path, keys = _keys_of_splits(folder, names_file)
    places = _places_of_splits(keys)
    bare_places = (place.strip("[]'\" ") for place in places.values())
    if not any(place.endswith(".txt") for place in bare_places):
        return {}
    lists: dict[str, tuple[str, Sequence[str]]] = {}
    for key, place in places.items():
        places_of_list = [place, f"{keys.get('path', '.')}/{place}"]
        list_path = _find_list(folder, names_file, places_of_list)
        images = _images_in_list(folder, list_path) if list_path else []
        if not images:
            problem = f"there is no file {place} in {folder.path}"
            if list_path:
                problem = f"no line of {list_path} names an image of {folder.path}"
            elif isinstance(keys[key], list):
                problem = "the value is a list"
            elif any(kind_of(path.parent / text) == "folder" for text in places_of_list):
                problem = f"{place} is a folder, and another split has a list of images"
            raise _no_list(path, key, problem, list(places))
        split = "validation" if key in ("val", "valid") else key
        lists[split] = list_path, images
    return lists


def _places_of_splits(keys: Mapping[str, Any]) -> dict[str, str]:
    """The folder or the list of each split, by its key, as the file of names writes it."""
    places: dict[str, str] = {}
    for key in ("train", "val", "valid", "test"):
        place = keys.get(key)
        if place not in (None, "", "~", "null"):
            places[key] = str(place)
    return places


def _no_list(path: Path, key: str, problem: str, keys: Sequence[str]) -> InputError:
    """The error for a key of a split that is no list of images."""
    expected = "expected a text file for each split, with an image in each line"
    remedy = f"correct {key} in {path.name}"
    if len(keys) > 1:
        remedy += f"; or remove {' and '.join(keys)} from it"
    else:
        remedy += ", or remove it"
    otherwise = "then folders such as train and val divide the images"
    return InputError(f"{path}: {key}: {problem}", expected, f"{remedy}; {otherwise}")


def _keys_of_splits(folder: AnnotatedFolder, names_file: str) -> tuple[Path, Mapping[str, Any]]:
    """The file that may name lists of splits, and its keys: the data.yaml, or darknet's .data
    file, which calls the validation split "valid".
    """
    path = folder.path / names_file
    if path.suffix.lower() in _YAML:
        keys = read_data_yaml(path)
        return path, {key: place for key, place in keys.items() if key != "valid"}
    data_file = _find_darknet_data(folder, names_file)
    if not data_file:
        return path, {}
    path = folder.path / data_file
    return path, {key: place for key, place in _read_darknet(path).items() if key != "val"}


def _find_list(folder: AnnotatedFolder, names_file: str, places: Sequence[str]) -> str:
    """The list at one of these places next to the file of names, or at the first place from the
    folder; "" for none.
    """
    names_folder, _, _ = names_file.rpartition("/")
    paths: list[str] = []
    for place in places:
        path = os.path.normpath(f"{names_folder}/{place}")
        paths.append(path.lstrip("/"))
    paths.append(places[0])
    names = set(folder.names)
    return next((path for path in paths if path in names), "")


def _images_in_list(folder: AnnotatedFolder, list_path: str) -> list[str]:
    """The images of the folder that the lines of a list name."""
    path = folder.path / list_path
    text = path.read_text("utf-8-sig", "replace")
    lines = map(str.strip, text.split("\n"))
    names = list(filter(None, lines))
    rows = match(names, folder.images, folder.path, path)
    return [folder.images[row] for row in rows if row >= 0]


def _find_darknet_data(folder: AnnotatedFolder, names_file: str) -> str:
    """Darknet's only .data file next to the names, which has the lists of splits; "" for none."""
    names_folder, _, _ = names_file.rpartition("/")
    neighbours: list[str] = []
    for name in folder.names:
        name_folder, _, _ = name.rpartition("/")
        if name.endswith(".data") and name_folder == names_folder:
            neighbours.append(name)
    return neighbours[0] if len(neighbours) == 1 else ""


def _read_darknet(path: Path) -> dict[str, str]:
    """The keys of darknet's .data file, such as train and valid, with their values."""
    pairs: dict[str, str] = {}
    for line in read_text(path).splitlines():
        key, _, value = line.partition("=")
        pairs[key.strip()] = value.strip()
    return pairs


def _recognises(name: str, ends: bytes) -> bool:
    if not name.lower().endswith(".txt"):
        has_images_or_count = b"train:" in ends or b"nc:" in ends
        return b"names:" in ends and has_images_or_count
    first_lines = ends.split(b"\n")[:3]
    words_of_lines = list(filter(None, map(bytes.split, first_lines)))
    return bool(words_of_lines) and all(map(_is_box, words_of_lines))


def _is_box(words: Sequence[bytes]) -> bool:
    """Whether a line starts as YOLO's do: a class and four numbers, relative to the image."""
    if len(words) < 5 or not words[0].isdigit():
        return False
    try:
        return all(-1 <= float(word) <= 2 for word in words[1:5])
    except ValueError:
        return False


FORMAT = Format(
    "yolo",
    "YOLO",
    "yolo",
    (".txt", ".yaml", ".yml"),
    _recognises,
    _mark,
    usage={
        "YOLO": (
            "`boxes: {yolo: FOLDERS, names: data.yaml}`. `images/train/a.jpg` has "
            "`labels/train/a.txt`; class 0 is label 1. `names` may be classes.txt or darknet's "
            "obj.names. Key points are left out if data.yaml has `kpt_shape`"
        )
    },
    keys=(*NUMBERING, "polygons"),
    needs={"names": "expected names: data.yaml, or [a, b]"},
    per_image=True,
    is_vague=True,
    unannotated="empty",
    propose=_propose,
)
