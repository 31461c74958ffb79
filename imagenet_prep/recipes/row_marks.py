"""RowMarks: the boxes and masks that the rows of a source have,
by the names of the images -> objects of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.recipes.box_files import BoxFile, Marked
from imagenet_prep.recipes.box_policy import NO_PIXELS, Size, fault
from imagenet_prep.recipes.row_source import RowImage, RowObject
from imagenet_prep.sources.names import name_of
from imagenet_prep.storage.files import kind_of
from imagenet_prep.text import listed


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
        file: BoxFile,
        classes: Sequence[str],
    ) -> dict[int, Marked]:
        """The objects of each image, by its row; numbers of classes stay, and get their names from
        ``classes``.

        Args:
            names: of the images.
            size_of: the size of the image of a row.
            file: takes notes of boxes that are not inside their image.
            classes: the names of classes that are numbers, from 0, if the recipe has them.

        Raises:
            InputError: boxes are relative, an image has another size, or classes are texts and
                numbers.
        """
        objects = [
            (shape, where) for image in self.images.values() for shape, where in image.objects
        ]
        _refuse_relative(objects)
        is_numbered = _are_numbers(objects)
        classes = classes or self.class_names
        marked: dict[int, Marked] = {}
        for row, name in enumerate(names):
            image = self.images.get(name)
            if image is None:  # of a file without boxes
                continue
            found = marked[row] = Marked(image.file_name, image.where)
            if not image.objects:
                continue
            found.size = size_of(row)
            if image.size not in (None, found.size):
                raise fault(
                    image.where,
                    f"a size of {_shown(image.size)}",
                    f"expected {_shown(found.size)}, as the image has",
                )
            for shape, where in image.objects:
                placed = file.place(shape.corners, found, where)
                if placed.corners is not None:
                    found.add(
                        placed.corners,
                        **_class_columns(
                            shape.label, classes, file, where, is_numbered=is_numbered
                        ),
                    )
        return marked

    def renamed(self, change: Callable[[str], str]) -> RowMarks:
        """The same of images with other names."""
        images = {change(name): image for name, image in self.images.items()}
        return RowMarks(
            images, {change(name): path for name, path in self.masks.items()}, self.class_names
        )


def join_marks(parts: Sequence[RowMarks]) -> RowMarks:
    """The boxes of all parts; raises InputError if they call their classes differently."""
    names = {tuple(part.class_names): part for part in parts if part.images}
    if len(names) > 1:
        several = "; ".join(listed(each) or "no names" for each in names)
        first = next(iter(names.values()))
        where = next(iter(first.images.values())).where
        raise fault(
            where,
            f"boxes of other classes elsewhere: {several}",
            "expected the same classes in all files",
        )
    images = {name: image for part in parts for name, image in part.images.items()}
    return RowMarks(images, class_names=next(iter(names), ()))


def _shown(size: Size | None) -> str:
    return f"{size[0]} x {size[1]}" if size else "nothing"


def _class_columns(
    label: str | int, names: Sequence[str], file: BoxFile, where: str, *, is_numbered: bool
) -> dict[str, Any]:
    """The columns of an object's class: its name, and its number if that is what the rows have."""
    if not is_numbered:
        return {"text": str(label)}
    number = int(label)
    if names and number >= len(names):
        raise fault(
            where, f"class {number}", f"expected 0 to {len(names) - 1}, the classes of `names`"
        )
    name = names[number] if names else str(number)
    file.classes[number] = name
    return {"text": name, "label": number}


def _are_numbers(objects: Sequence[tuple[RowObject, str]]) -> bool:
    """Whether the classes of all boxes are numbers; raises InputError if only some are."""
    kinds = {isinstance(shape.label, int): where for shape, where in objects}
    if len(kinds) > 1:
        where = next(
            where
            for shape, where in objects
            if isinstance(shape.label, int) != isinstance(objects[0][0].label, int)
        )
        raise fault(
            where,
            "the class of a box is of another type than those before",
            "expected texts, or numbers",
        )
    return True in kinds


def _refuse_relative(objects: Sequence[tuple[RowObject, str]]) -> None:
    """Raise InputError if no box of all is as large as a pixel:
    they are relative to their images.
    """
    if objects and all(max(map(abs, shape.corners)) < NO_PIXELS for shape, _ in objects):
        shape, where = objects[0]
        corners = ", ".join(f"{value:g}" for value in shape.corners)
        hint = "multiply them by the image's width and height"
        raise fault(
            where,
            f"a box from {corners}, and no box of all rows is larger",
            "expected pixels",
            hint,
        )


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
    masked = {name: image for name, image in images.items() if image.mask is not None}
    if not masked:
        return {}
    if bare := next((image for name, image in images.items() if name not in masked), None):
        raise fault(
            bare.where,
            f"{bare.file_name} has no mask",
            f"expected one in every row: {len(masked):,} have one",
        )
    found = {}
    for name, image in masked.items():
        path = Path(name_of(path_of(image, str(image.mask))))
        if not path.is_relative_to(root):
            raise fault(
                image.where,
                f"the mask {path} is outside of the data",
                f"expected a path below {root}",
            )
        if kind_of(path) != "file":
            raise fault(image.where, f"the mask {path} is not there", "expected a PNG file")
        if not path.name.lower().endswith(".png"):
            raise fault(
                image.where,
                f"the mask {image.mask} is not a PNG",
                "expected the numbers of classes in a PNG",
            )
        found[name] = path
    return found
