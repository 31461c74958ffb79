"""RowMarks: the boxes and masks that the rows of a source have,
by the names of the images -> objects of records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_files import BoxFile, Marked
from imagenet_prep.recipes.box_policy import NO_PIXELS, Size, fault
from imagenet_prep.recipes.recipe_paths import OUTSIDE, fault_of_path
from imagenet_prep.recipes.row_objects import RowObject
from imagenet_prep.recipes.row_source import RowImage
from imagenet_prep.sources.names import name_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES


class RowMarks(Struct, frozen=True):
    """The boxes and masks of images, by their names in the listing.

    Args:
        images: by name; empty if no row can have boxes.
        masks: the paths of the masks; empty if there are none.
        class_names: the names of classes that are numbers, from 0, where the source has them.
    """

    images: Mapping[str, RowImage] = {}
    masks: Mapping[str, Path] = {}
    class_names: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.images or self.masks)

    def mark(
        self,
        names: Sequence[str],
        size_of: Callable[[int], Size],
        path_of: Callable[[int], AnyPath],
        file: BoxFile,
        classes: Sequence[str],
    ) -> dict[int, Marked]:
        """The objects of each image, by its row; numbers of classes stay, and get their names from
        ``classes``.

        Args:
            names: of the images.
            size_of: the size of the image of a row.
            path_of: the file that holds the image of a row.
            file: takes notes of boxes that are not inside their image.
            classes: the names of classes that are numbers, from 0, if the recipe has them.

        Raises:
            InputError: boxes are relative, an image has another size, classes are texts and
                numbers, or an image is of a file without boxes.
        """
        objects: list[tuple[RowObject, str]] = []
        for image_of_row in self.images.values():
            objects += image_of_row.objects
        _refuse_relative(objects)
        class_names = classes or self.class_names
        is_numbered = _are_numbers(objects)
        marked: dict[int, Marked] = {}
        for row, name in enumerate(names):
            image = self.images.get(name)
            if image is None:
                raise self._without_boxes(names, path_of)
            marked_image = marked[row] = Marked(image.file_name, image.where)
            if image.objects:
                marked_image.size = size_of(row)
                _refuse_other_size(image, marked_image.size)
                _add_objects(image, marked_image, file, class_names, is_numbered=is_numbered)
        return marked

    def _without_boxes(self, names: Sequence[str], path_of: Callable[[int], AnyPath]) -> InputError:
        """The error for images of files without boxes, where other files have some."""
        boxless = [row for row, name in enumerate(names) if name not in self.images]
        paths = list(dict.fromkeys(_from_here(path_of(row)) for row in boxless))
        have = "has" if len(paths) == 1 else "have"
        these = "this file" if len(paths) == 1 else "these files"
        images = number_of(len(boxless), "image")
        return InputError(
            f"{listed(paths)} ({images}) {have} no boxes, but other files of the source have boxes",
            "expected boxes in all files of the source, or in none",
            f"add boxes to {these}, or take {these} out of the source",
        )

    def renamed(self, change: Callable[[str], str]) -> RowMarks:
        """The same of images with other names."""
        images = {change(name): image for name, image in self.images.items()}
        masks = {change(name): path for name, path in self.masks.items()}
        return RowMarks(images, masks, self.class_names)


def _from_here(path: AnyPath) -> str:
    """A path from the current folder, if it is below it."""
    here = Path.cwd()
    if isinstance(path, Path) and path.is_relative_to(here):
        return str(path.relative_to(here))
    return str(path)


def _refuse_other_size(image: RowImage, size: Size) -> None:
    """Raise InputError if the row of an image has another size."""
    if image.size not in (None, size):
        problem = f"width x height is {_shown(image.size)}"
        raise fault(image.where, problem, f"expected {_shown(size)}, the size of {image.file_name}")


def _add_objects(
    image: RowImage,
    marked_image: Marked,
    file: BoxFile,
    class_names: Sequence[str],
    *,
    is_numbered: bool,
) -> None:
    """Add the boxes of a row, as the policy places them, to its image."""
    for shape, place in image.objects:
        placed = file.place(shape.corners, marked_image, place)
        if placed.corners is not None:
            columns = _class_columns(shape.label, class_names, file, place, is_numbered=is_numbered)
            marked_image.add(placed.corners, **columns)


def join_marks(parts: Sequence[RowMarks]) -> RowMarks:
    """The boxes of all parts; raises InputError if they call their classes differently."""
    part_of_names = {tuple(part.class_names): part for part in parts if part.images}
    if len(part_of_names) > 1:
        first_part, other_part, *_ = part_of_names.values()
        raise _other_names(first_part, other_part)
    images = {name: image for part in parts for name, image in part.images.items()}
    class_names = next(iter(part_of_names), ())
    return RowMarks(images, class_names=class_names)


def _other_names(part: RowMarks, other_part: RowMarks) -> InputError:
    """The error for two files that name the classes of boxes differently."""
    pairs = [*itertools.zip_longest(part.class_names, other_part.class_names)]
    number = next(number for number, (name, other_name) in enumerate(pairs) if name != other_name)
    name, other_name = pairs[number]
    image = next(iter(part.images.values()))
    other_image = next(iter(other_part.images.values()))
    file, other_file = _file_of(image), _file_of(other_image)
    names = f"{_named_in_words(name)} in {file}, but {_named_in_words(other_name)} in {other_file}"
    return InputError(
        f"class {number} of the boxes is {names}",
        "expected the same names in the same order in all files",
        "write one of these files again, with the names and numbers of the other",
    )


def _file_of(image: RowImage) -> str:
    return image.where.rpartition(", row ")[0]


def _named_in_words(name: str | None) -> str:
    return name or "without a name"


def _shown(size: Size | None) -> str:
    if size is None:
        return "nothing"
    width, height = size
    return f"{width} x {height}"


def _class_columns(
    label: str | int, names: Sequence[str], file: BoxFile, place: str, *, is_numbered: bool
) -> dict[str, Any]:
    """The columns of an object's class: its name, and its number if that is what the rows have."""
    if not is_numbered:
        return {"text": str(label)}
    number = int(label)
    if names and number >= len(names):
        numbers = "0" if len(names) == 1 else f"0 to {len(names) - 1}"
        class_names = number_of(len(names), "class has a name", "classes have names")
        expected = f"expected {numbers}: only {class_names}, and the first is class 0"
        raise fault(place, f"the class of a box is {number}", expected)
    name = names[number] if names else str(number)
    file.classes[number] = name
    return {"text": name, "label": number}


def _are_numbers(objects: Sequence[tuple[RowObject, str]]) -> bool:
    """Whether the classes of all boxes are numbers; raises InputError if only some are."""
    if not objects:
        return False
    first_shape, _ = objects[0]
    are_numbers = isinstance(first_shape.label, int)
    for shape, place in objects:
        if isinstance(shape.label, int) != are_numbers:
            kinds = ("a text", "a number") if are_numbers else ("a number", "a text")
            problem = (
                f"the class of a box is {kinds[0]}, and the class of a box before it is {kinds[1]}"
            )
            raise fault(place, problem, "expected only texts, or only numbers")
    return are_numbers


def _refuse_relative(objects: Sequence[tuple[RowObject, str]]) -> None:
    """Raise InputError if no box of all is as large as a pixel:
    they are relative to their images.
    """
    are_relative = all(max(map(abs, shape.corners)) < NO_PIXELS for shape, _ in objects)
    if objects and are_relative:
        shape, place = objects[0]
        named_corners = zip(EDGES, shape.corners, strict=True)
        corners = ", ".join(f"{edge} {corner:g}" for edge, corner in named_corners)
        problem = f"the corners of all boxes are below {NO_PIXELS}, as in this box: {corners}"
        hint = (
            "if they are fractions of the image, multiply all x and widths by the width of the "
            "image, and all y and heights by its height"
        )
        raise fault(place, problem, "expected corners in pixels", hint)


def find_masks(
    images: Mapping[str, RowImage], path_of: Callable[[RowImage, str], str], root: Path
) -> dict[str, Path]:
    """The path of the mask of each image, by its name; none if no row has one.

    Args:
        images: by name.
        path_of: the absolute path that a row means by a text, as those of images.
        root: the folder of the data.

    Raises:
        InputError: some rows have one, or a mask is not there, or outside of the data.
    """
    mask_count = sum(image.mask is not None for image in images.values())
    if not mask_count:
        return {}
    for image in images.values():
        if image.mask is None:
            count = number_of(mask_count, "image has one", "images have one")
            expected = f"expected a mask in every row, or in none: {count}"
            raise fault(image.where, f"{image.file_name} has no mask", expected)
    paths: dict[str, Path] = {}
    for name, image in images.items():
        text = path_of(image, str(image.mask))
        path = Path(name_of(text))
        _check_mask(path, image, root)
        paths[name] = path
    return paths


def _check_mask(path: Path, image: RowImage, root: Path) -> None:
    """Raise InputError unless a mask is a PNG below the folder of the data."""
    if not path.is_relative_to(root):
        problem = f"the mask {path} is outside of the data"
        raise fault(image.where, problem, f"expected a path below {root}", OUTSIDE)
    problem = fault_of_path(path, "file")
    if problem:
        raise fault(image.where, f"the mask {path} {problem}", "expected a PNG file")
    if not path.name.lower().endswith(".png"):
        problem = f"the mask {image.mask} is no PNG by its name"
        expected = "expected a PNG whose pixels are class numbers"
        raise fault(image.where, problem, expected, _SAVE_AS_PNG)


_SAVE_AS_PNG = (
    "save the masks as PNG, and write these names in the rows; a PNG made of a JPEG has the wrong "
    "numbers"
)
