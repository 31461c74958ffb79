"""Pascal VOC: an XML file for each image, with its name;
Stanford Dogs has them without an ending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import check_size, parse_number, read_xml
from imagenet_prep.recipes.box_files import Drawn, DrawnObject, columns_named
from imagenet_prep.recipes.box_policy import Size, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed, folders_of
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


def _read(path: Path) -> Drawn:
    """One XML file; its name tells the image, since <filename> is often another one."""
    root = read_xml(path)
    place = str(path)
    image = Drawn(_text(root, "filename"), place, [], _read_size(root, place))
    for number, element in enumerate(root.findall("object"), 1):
        place_of_object = f"{place}: object {number}"
        image.objects.append(_read_object(element, place_of_object))
    return image


def _read_size(root: ElementTree.Element, place: str) -> Size | None:
    """The size of the image; None without one, or for 0 x 0, which some tools write: the image has
    it, too.
    """
    width = _number(root, "size/width", place, default="0")
    height = _number(root, "size/height", place, default="0")
    if not width and not height:
        return None
    return check_size(width, height, place)


def _read_object(element: ElementTree.Element, place: str) -> DrawnObject:
    class_name = _text(element, "name")
    if not class_name:
        raise fault(place, "the object has no class in <name>", "expected its class")
    xmin, ymin, xmax, ymax = (_number(element, f"bndbox/{edge}", place) for edge in EDGES)
    values: dict[str, int | str] = {}
    for flag in ("difficult", "truncated"):
        number = _number(element, flag, place, default="0")
        values[flag] = int(number)
    values["view"] = _text(element, "pose") or "Unspecified"
    return DrawnObject(class_name, (xmin, ymin, xmax, ymax), place, values)


def _text(element: ElementTree.Element, path: str) -> str:
    text = element.findtext(path) or ""
    return text.strip()


def _number(element: ElementTree.Element, path: str, place: str, default: str = "") -> float:
    text = _text(element, path) or default
    _, _, tag = path.rpartition("/")
    return parse_number(text, place, f"<{tag}>")


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.file.columns = columns_named("difficult", "truncated", "view")
    images.mark_files(keys.places, ".xml", _read)
    if not images.marked:
        _mark_files_without_ending(keys, images)
    _note_other_names(images)


def _mark_files_without_ending(keys: BoxKeys, images: AnnotatedImages) -> None:
    """Read files such as n02085620_7, if some have the names of images."""
    missing = [*images.missing]
    images.mark_files(keys.places, "", _read)
    if not images.marked:
        images.missing[:] = missing


def _note_other_names(images: AnnotatedImages) -> None:
    """Note the annotations whose <filename> is the name of another image."""
    names = [name.rpartition("/")[2] for name in images.names]
    all_names = set(names)
    places = []
    for row, image in images.marked.items():
        if image.name != names[row] and image.name in all_names:
            places.append(image.place)
    if places:
        count = number_of(len(places), "annotation names", "annotations name")
        note = f"{count} another image in <filename>: {listed(places)}; the file's own name counts"
        images.file.unread.append(note)


# init ---------------------------------------------------------------------------------------------

_IMAGE_SET = re.compile(r"(.*/)?ImageSets/Main/(train|val|test|trainval)\.txt")


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """XML files with the names of the images, and perhaps lists of the splits,
    of names without endings.
    """
    if not folder.files:
        return None
    matches = list(filter(None, map(_IMAGE_SET.fullmatch, folder.names)))
    keys = {"voc": folders_of(folder.files)}
    list_folders = {match[1] or "" for match in matches}
    if len(list_folders) > 1:  # VOC2007 and VOC2012, which are no classes
        all_lists = [match[0] for match in matches]
        fault_of_lists = _in_several_folders(folder.path, sorted(list_folders), all_lists)
        return Proposed(keys, folder.files, faults=[fault_of_lists], is_certain=True)
    faults: list[InputError] = []
    path_by_name = {match[2]: match[0] for match in matches}
    lists = _read_lists(folder, path_by_name)
    if lists and not any(names for _, names in lists.values()):
        paths = listed(path for path, _ in lists.values())
        problem = f"{paths}: no line names an image of {folder.path}"
        expected = "expected the name of an image without its ending in each line"
        if folder.images:
            expected += f", such as {stem_of(folder.images[0])}"
        faults.append(InputError(problem, expected, "correct these lists, or remove them"))
    return Proposed(keys, folder.files, lists, faults)


def _in_several_folders(path: Path, folders: Sequence[str], lists: Sequence[str]) -> InputError:
    """The error for lists of splits in several folders, with a command for each."""
    problem = f"{path} has lists of splits in several folders: {listed(lists)}"
    hint = "run init on each of these folders alone:"
    error = InputError(problem, "expected one folder ImageSets/Main", hint)
    return error.with_choices([Hint("  ", command("init", path / folder)) for folder in folders])


def _read_lists(
    folder: AnnotatedFolder, paths: Mapping[str, str]
) -> dict[str, tuple[str, list[str]]]:
    """The lists of the splits, and the images that each has; ``paths`` are by VOC's own names."""
    images_by_stem = {stem_of(name): name for name in folder.images}
    has_both = "train" in paths or "val" in paths
    lists: dict[str, tuple[str, list[str]]] = {}
    voc_names = ("train", "val", "test") if has_both else ("trainval", "test")
    for voc_name in voc_names:
        if voc_name not in paths:
            continue
        path = paths[voc_name]
        text = (folder.path / path).read_text("utf-8-sig", "replace")
        stems = map(str.strip, text.splitlines())
        names = [images_by_stem[stem] for stem in stems if stem in images_by_stem]
        split = "validation" if voc_name == "val" else voc_name
        lists[split] = path, names
    return lists


def _recognises(_name: str, ends: bytes) -> bool:
    tag = re.search(rb"<annotation[\s/>]", ends)
    return tag is not None


FORMAT = Format(
    "voc",
    "Pascal VOC",
    "pascal-voc",
    (".xml", ""),
    _recognises,
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
