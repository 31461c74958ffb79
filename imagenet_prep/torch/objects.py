"""The objects of a record -> NumPy arrays: boxes in pixels, numbers, labels and masks, each checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.mask_pixels import decode_mask
from imagenet_prep.reading.shard import Record
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.inception import EDGES, OBJECT_FEATURES

LABELS = OBJECT_FEATURES["boxes.label"].name
LABELS_OF_INCEPTION = "image/object/bbox/label"
NAMES = OBJECT_FEATURES["boxes.text"].name
MASKS = OBJECT_FEATURES["boxes.mask"].name

_CORNERS = tuple(OBJECT_FEATURES[f"boxes.{edge}"].name for edge in EDGES)
_ID = OBJECT_FEATURES["boxes.source_id"].name

_ROUNDING = 0.002
"""By how much a box of another program may lead out of its image: a pixel of 500. It is cut, as by convert."""

_SHOWN = 20
_REMAKE = "make the set again from its images, with a recipe"
_WITHOUT_BOXES = f"{_REMAKE} that has boxes; an image without an object has empty lists"
_OUTSIDE = f"{_REMAKE} that has boxes_outside: clip"
_FROM_ZERO = "if classes count from 0: DetectionDataset(records, first_label=0)"
_BY_NAME = "DetectionDataset(records, class_names=['cat', 'dog'])"

Features = Mapping[str, Any]
"""The features of a record by name, as ``Record.features`` has them."""


def read_boxes(record: Record, features: Features, height: int, width: int) -> NDArray[np.float32]:
    """The boxes of a record in pixels of its image: float32 of the shape (N, 4), xmin, ymin, xmax, ymax.

    Raises:
        InputError: the record has no list of boxes, or a box is not inside the image.
    """
    missing = [name for name in _CORNERS if name not in features]
    if missing:
        raise InputError(f"{record.place} has no boxes", f"expected the feature {missing[0]}", _WITHOUT_BOXES)
    count = len(features[_CORNERS[0]])
    columns = [read_numbers(record, features, name, count) for name in _CORNERS]
    boxes = np.stack(columns, axis=1)
    is_inside = (boxes >= -_ROUNDING) & (boxes <= 1 + _ROUNDING)
    is_ordered = boxes[:, :2] <= boxes[:, 2:]
    is_right = is_inside.all(axis=1) & is_ordered.all(axis=1)
    if not is_right.all():
        number = int(np.flatnonzero(~is_right)[0])
        corners = ", ".join(f"{corner:g}" for corner in boxes[number])
        expected = "expected xmin, ymin, xmax, ymax relative to the image, from 0 to 1"
        raise InputError(f"{record.place}: the box {corners}", expected, _OUTSIDE)
    return (boxes.clip(0, 1) * [width, height, width, height]).astype(np.float32)


def read_list(record: Record, features: Features, name: str, count: int) -> Sequence[Any]:
    """The values of a feature that has one per object.

    Raises:
        InputError: the record lacks the feature, or it has another number of values.
    """
    if name not in features:
        raise InputError(f"{record.place} has no {name}", f"expected {count} values, one per object", _REMAKE)
    values: Sequence[Any] = features[name]
    if len(values) != count:
        raise InputError(
            f"{record.place}: {len(values)} values of {name}", f"expected {count}, one per object", _REMAKE
        )
    return values


def read_numbers(record: Record, features: Features, name: str, count: int) -> NDArray[np.float64]:
    """The numbers of a feature that has one per object.

    Raises:
        InputError: as for ``read_list``, and if they are texts.
    """
    values = read_list(record, features, name, count)
    if any(isinstance(value, bytes) for value in values):
        raise InputError(f"{record.place}: {name} holds texts", "expected numbers", _REMAKE)
    return np.array(values, np.float64)


def read_masks(
    record: Record, features: Features, is_kept: NDArray[np.bool_], size: tuple[int, int]
) -> NDArray[np.uint8]:
    """The masks of the objects that are kept: uint8 of the shape (N, height, width), 1 inside, 0 elsewhere.

    Raises:
        InputError: a mask is missing or damaged, or has another ``size`` (height, width) than its image.
    """
    count = len(is_kept)
    files = read_list(record, features, MASKS, count) if count else []
    kept_files = [files[number] for number in range(count) if is_kept[number]]
    masks = np.zeros((len(kept_files), *size), np.uint8)
    for number, data in enumerate(kept_files):
        masks[number] = read_mask(record, decode_mask, data, size)
    return masks


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
        raise record.damaged_image(error, f"{record.place}: its mask is damaged") from error
    height, width = pixels.shape[:2]
    if (height, width) != size:
        what = f"{record.place}: a mask of {width} x {height} pixels"
        raise InputError(what, f"expected those of its image, {size[1]} x {size[0]}", _REMAKE)
    return pixels


def read_image_id(record: Record, features: Features) -> int | str:
    """COCO's id of the image as a number; otherwise the name of its file."""
    name = features.get(_ID)
    text = str(name, "utf-8", "replace") if isinstance(name, bytes) else record.filename
    is_number = text.isascii() and text.isdigit() and str(int(text)) == text
    return int(text) if is_number else text


class ObjectClasses(Struct, frozen=True):
    """The classes of objects: ``names`` by label, from 1; ``first_number`` is the number in records of label 1.

    ``is_by_name``: labels come from names, even if records have numbers.
    """

    names: Mapping[int, str]
    first_number: int
    is_by_name: bool = False

    def read_labels(self, record: Record, features: Features, count: int) -> NDArray[np.int64]:
        """The label of each object: int64 of the shape (N,).

        Raises:
            InputError: the record has neither numbers nor names of classes, or a class is unknown.
        """
        if not self.is_by_name:
            for feature in (LABELS, LABELS_OF_INCEPTION):
                if feature in features:
                    return self._label_numbers(record, read_numbers(record, features, feature, count))
        names = [str(name, "utf-8", "replace") for name in read_list(record, features, NAMES, count)]
        return self._label_names(record, names)

    def _label_numbers(self, record: Record, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        labels = numbers.astype(np.int64) - self.first_number + 1
        for label in labels.tolist():
            if label < 1 or (self.names and label not in self.names):
                number = label + self.first_number - 1
                known = {label + self.first_number - 1: name for label, name in self.names.items()}
                expected = f"{self.first_number} or more"
                if known:
                    expected = f"one of {listed(map(str, known), _SHOWN)}"
                raise InputError(f"{record.place}: an object of class {number}", f"expected {expected}", _FROM_ZERO)
        return labels

    def _label_names(self, record: Record, names: Sequence[str]) -> NDArray[np.int64]:
        labels = {name: label for label, name in self.names.items()}
        for name in names:
            if name not in labels:
                expected = f"one of {listed(labels, _SHOWN)}" if labels else "class_names, which number the classes"
                raise InputError(f"{record.place}: an object of class {name!r}", f"expected {expected}", _BY_NAME)
        return np.array([labels[name] for name in names], np.int64)
