"""RecordObjects: boxes, numbers and masks of a record's objects as NumPy arrays;
ObjectClasses: their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.mask_pixels import decode_mask
from imagenet_prep.reading.record import Record
from imagenet_prep.text import number_of, one_of, parse_whole
from imagenet_prep.tfrecord.object_features import OBJECT_FEATURES

LABELS = OBJECT_FEATURES["boxes.label"].name
LABELS_OF_INCEPTION = "image/object/bbox/label"
NAMES = OBJECT_FEATURES["boxes.text"].name
MASKS = OBJECT_FEATURES["boxes.mask"].name

_XMIN = OBJECT_FEATURES["boxes.xmin"].name
_ID = OBJECT_FEATURES["boxes.source_id"].name

_ROUNDING = 0.002
"""By how much a box of another program may lead out of its image: a pixel of 500.
It is cut, as by convert.
"""

_FAR_OUTSIDE = 2.0
"""A larger coordinate may be in pixels."""

_REMAKE = (
    "write the records again, with the program that made them, or from the images, with a recipe"
)
_WITHOUT_BOXES = f"{_REMAKE} that has boxes"
_OUTSIDE = f"{_REMAKE} that has boxes_outside: clip"
_SWAPPED = "swap the corners in the annotations, and write the records again"
_WITHOUT_VALUES = {
    MASKS: f"{_REMAKE} that has masks of objects",
    NAMES: f"{_REMAKE} that has the class of each object",
}
_IN_PIXELS = (
    "in the program that wrote the records, divide x by the width and y by the height, "
    "and write them again"
)
_BY_NAME = "DetectionDataset(records, class_names=['cat', 'dog'])"


class RecordObjects:
    """The objects of a record, ``count`` of them, and their values.

    Raises:
        InputError: the record has no list of boxes, or lists of different lengths.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.features: Mapping[str, Any] = record.features
        if _XMIN not in self.features:
            raise InputError(
                f"{record.place} has no feature {_XMIN}",
                "expected a list of boxes, empty if it has no object",
                _WITHOUT_BOXES,
            )
        self.count = len(record.boxes)

    def boxes(self, height: int, width: int) -> NDArray[np.float32]:
        """The boxes in pixels of their image: float32 of the shape (N, 4), xmin, ymin, xmax, ymax.

        Raises:
            InputError: a box is not inside the image.
        """
        boxes = np.array([astuple(box) for box in self.record.boxes]).reshape(-1, 4)
        is_inside = (boxes >= -_ROUNDING) & (boxes <= 1 + _ROUNDING)
        is_ordered = boxes[:, :2] <= boxes[:, 2:]
        is_right = is_inside.all(axis=1) & is_ordered.all(axis=1)
        if not is_right.all():
            number = int(np.flatnonzero(~is_right)[0])
            corners = ", ".join(f"{corner:g}" for corner in boxes[number])
            expected = "expected xmin, ymin, xmax, ymax relative to the image, from 0 to 1"
            hint = _OUTSIDE
            if np.isnan(boxes[number]).any():
                hint = _REMAKE
            elif np.abs(boxes[number]).max() > _FAR_OUTSIDE:  # clipped, it would be the whole image
                expected += f"; it may be in pixels: the image has {width} x {height}"
                hint = _IN_PIXELS
            if is_inside[number].all():
                expected = "expected xmin, ymin, xmax, ymax, the upper left corner first"
                hint = _SWAPPED
            raise InputError(f"{self.record.place} has the box {corners}", expected, hint)
        return (boxes.clip(0, 1) * [width, height, width, height]).astype(np.float32)

    def values(self, name: str) -> Sequence[Any]:
        """The values of a feature, one per object.

        Raises:
            InputError: the record has another number of them.
        """
        values: Sequence[Any] = self.features.get(name, ())
        if len(values) != self.count:
            count = f"{number_of(len(values), 'value')} of" if values else "no"
            raise InputError(
                f"{self.record.place} has {count} {name}",
                f"expected {self.count}, one per object",
                _WITHOUT_VALUES.get(name, _REMAKE),
            )
        return values

    def numbers(self, name: str) -> NDArray[Any]:
        """The numbers of a feature, one per object, in its own type.

        Raises:
            InputError: as for ``values``, and if they are texts.
        """
        values = self.values(name)
        if any(isinstance(value, bytes) for value in values):
            raise InputError(
                f"{self.record.place}: {name} holds texts", "expected numbers", _REMAKE
            )
        return np.array(values)

    def byte_values(self, name: str, content: str) -> Sequence[bytes]:
        """The texts or files of a feature, one per object; ``content`` says which, for the error.

        Raises:
            InputError: as for ``values``, and if they are numbers.
        """
        values = self.values(name)
        if not all(isinstance(value, bytes) for value in values):
            raise InputError(
                f"{self.record.place}: {name} holds numbers", f"expected {content}", _REMAKE
            )
        return values

    def masks(self, is_kept: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.uint8]:
        """The masks of the objects that are kept: uint8 of the shape (N, height, width), 1 inside,
        0 elsewhere.

        Raises:
            InputError: a mask is missing or damaged, or has another ``size`` (height, width) than
                its image.
        """
        files = self.byte_values(MASKS, "PNG files")
        kept = np.flatnonzero(is_kept).tolist()
        masks = np.zeros((len(kept), *size), np.uint8)
        for mask, number in zip(masks, kept, strict=True):
            mask[:] = read_mask(self.record, decode_mask, files[number], size)
        return masks

    def image_id(self) -> int | str:
        """COCO's id of the image as a number; otherwise the name of its file."""
        name = self.features.get(_ID)
        text = str(name, "utf-8", "replace") if isinstance(name, bytes) else self.record.filename
        number = parse_whole(text)
        return text if number is None or str(number) != text else number


def read_mask(
    record: Record, decode: Callable[[bytes], NDArray[Any]], data: bytes, size: tuple[int, int]
) -> NDArray[Any]:
    """The pixels of a mask in a record.

    Raises:
        InputError: it is damaged, or has another ``size`` (height, width) than its image.
    """
    try:
        pixels = decode(data)
    except ImageError as error:
        raise record.damaged_image(error, f"{record.place}: its mask can't be read") from error
    height, width = pixels.shape[:2]
    if (height, width) != size:
        raise InputError(
            f"{record.place} has a mask of {width} x {height} pixels",
            f"expected the size of its image, {size[1]} x {size[0]}",
            _REMAKE,
        )
    return pixels


class ObjectClasses(Struct, frozen=True):
    """The classes of objects: ``names`` by label, from 1; ``first_number`` is the number in records
    of label 1.

    ``is_by_name``: labels come from names, even if records have numbers.
    """

    names: Mapping[int, str]
    first_number: int
    is_by_name: bool = False

    def read_labels(self, objects: RecordObjects) -> NDArray[np.int64]:
        """The label of each object: int64 of the shape (N,).

        Raises:
            InputError: the record has neither numbers nor names of classes, or a class is unknown.
        """
        if not self.is_by_name:
            for feature in (LABELS, LABELS_OF_INCEPTION):
                if feature in objects.features:
                    return self._label_numbers(objects, feature)
        return self._label_names(objects)

    def _label_numbers(self, objects: RecordObjects, feature: str) -> NDArray[np.int64]:
        numbers = objects.numbers(feature).tolist()
        first = self.first_number
        labels = [number - first + 1 for number in numbers]
        for number, label in zip(numbers, labels, strict=True):
            if label % 1 or label < 1 or (self.names and label not in self.names):
                expected = f"a whole number from {first} up"
                numbers_from_1 = [str(number) for number in self._numbers if number >= first]
                if numbers_from_1:
                    expected = one_of(numbers_from_1)
                raise InputError(
                    f"{objects.record.place} has an object of class {number}",
                    f"expected {expected}",
                    self._hint_on_number(number),
                )
        return np.array(labels, np.int64)

    def _hint_on_number(self, number: float) -> str:
        """The remedy for a number that has no label."""
        if number in self._numbers:  # of a class below first_label
            return f"leave out first_label, or give the least number: {min(self._numbers)}"
        if self.names:
            return f"{_REMAKE} that has all classes"
        if 0 <= number < self.first_number and not number % 1:
            return (
                f"if classes count from {number:.0f}: "
                f"DetectionDataset(records, first_label={number:.0f})"
            )
        return f"{_REMAKE} that numbers the classes"

    @property
    def _numbers(self) -> list[int]:
        """The number of each named class in the records."""
        return [label + self.first_number - 1 for label in self.names]

    def _label_names(self, objects: RecordObjects) -> NDArray[np.int64]:
        _refuse_numbers_alone(objects)
        names = [str(name, "utf-8", "replace") for name in objects.byte_values(NAMES, "texts")]
        labels = {name: label for label, name in self.names.items()}
        for name in names:
            if name not in labels:
                expected = "the argument class_names, which numbers the classes"
                if labels:
                    expected = one_of(labels)
                hint = f"add {name!r} to class_names" if self.is_by_name else _BY_NAME
                raise InputError(
                    f"{objects.record.place} has an object of class {name!r}",
                    f"expected {expected}",
                    hint,
                )
        return np.array([labels[name] for name in names], np.int64)


def _refuse_numbers_alone(objects: RecordObjects) -> None:
    """Raise InputError for objects whose classes have numbers, and no names."""
    numbers = [name for name in (LABELS, LABELS_OF_INCEPTION) if name in objects.features]
    if objects.count and numbers and NAMES not in objects.features:
        raise InputError(
            f"{objects.record.place} has no {NAMES}, so its objects have no class names",
            f"expected one per object; it has class numbers: {numbers[0]}",
            "leave out class_names: the labels are then these numbers",
        )
