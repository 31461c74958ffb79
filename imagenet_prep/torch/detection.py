"""DetectionDataset: image and objects of every record, in torchvision's form;
collate_detection: batches of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown, whole
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.tfrecord.object_features import OBJECT_FEATURES
from imagenet_prep.torch.objects import MASKS, ObjectClasses, RecordObjects
from imagenet_prep.torch.vision import Transforms, VisionDataset, import_tv_tensors

Target = dict[str, Any]
"""The objects of an image by torchvision's names."""

Flag = Literal["crowd", "difficult"]
"""The mark of an object that does not count fully: COCO's, and Pascal VOC's."""

_NUMBERS = {
    "area": (OBJECT_FEATURES["boxes.area"].name, torch.float32),
    "iscrowd": (OBJECT_FEATURES["boxes.crowd"].name, torch.int64),
    "difficult": (OBJECT_FEATURES["boxes.difficult"].name, torch.int64),
}
"""The feature and the type of each value per object that a target has, if its record has it."""

_NAMES_OF_FLAGS = {"crowd": "iscrowd", "difficult": "difficult"}

_OF_OBJECTS = ("boxes", "labels", "masks", *_NUMBERS)
"""The names in a target with one value per object."""

_SANITIZED = (
    "leave out transforms that remove boxes (DetectionDataset removes boxes without area), or have "
    "them remove the other values, too: SanitizeBoundingBoxes(labels_getter=...)"
)


class DetectionDataset(VisionDataset[tuple[Any, Target]]):
    """``(image, target)`` of every record, as torchvision's detection models are trained with.

    An image is a tv_tensors.Image: uint8 of the shape (3, height, width) in RGB. A target has

    - ``boxes``: tv_tensors.BoundingBoxes, float32 (N, 4): xmin, ymin, xmax, ymax in pixels of the
      image;
    - ``labels``: int64 (N,), from 1;
    - ``masks``: tv_tensors.Mask, uint8 (N, height, width), 1 inside, if the record has masks of
      objects;
    - ``image_id``: COCO's id of the image as a number, otherwise the name of its file;
    - ``area``, float32 (N,), in pixels of the record's image, and ``iscrowd`` and ``difficult``,
      int64 (N,), 0 or 1: each if the record has it.

    LABELS COUNT FROM 1: 0 is the background of torchvision's models. They are the numbers in the
    records: COCO's ids of categories, 1, 2, ... of other recipes, or the label of the image in
    ImageNet's records. If a class has the number 0, labels are greater by 1. ``class_names`` has
    the name of each label.

    An object whose box has no area is left out, before ``transforms`` and after them: models refuse
    it.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it.
        transforms: a function of image and target that gives both, such as
            torchvision.transforms.v2.Compose([...]).
        class_names: the names of the classes in order, the first of which is label 1: labels come
            from names of objects, not from numbers. None: from the numbers in the records.
        first_label: the number in the records that is label 1. None: 0 if the set has a class of
            that number, else 1.
        leave_out: "crowd", "difficult" or both: objects to leave out, for training.
        masks: False: don't decode them. True: a record without them is an error. None: those that a
            record has.

    Raises:
        UsageError: an argument is wrong, torchvision is missing, or transforms changed the number
            of some values.
        InputError: a record is damaged, has no boxes or an impossible one, or an object is of an
            unknown class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transforms: Transforms | None = None,
        *,
        class_names: Sequence[str] | None = None,
        first_label: int | None = None,
        leave_out: Collection[Flag] = (),
        masks: bool | None = None,
    ) -> None:
        super().__init__(records, transforms)
        _check_flags(leave_out)
        if masks not in (None, False, True):
            argument = f"DetectionDataset(masks={shown(masks)})"
            raise UsageError(argument, "expected True, False or None")
        self.leave_out = tuple(leave_out)
        self.masks = masks
        self._classes = _find_classes(records, class_names, first_label)

    def __repr__(self) -> str:
        return f"DetectionDataset({self.records!r}): {len(self):,} images, labels from 1"

    @property
    def class_names(self) -> dict[int, str]:
        """The name of each class by its label; empty if the set has none."""
        return dict(self._classes.names)

    @property
    def num_classes(self) -> int:
        """The number of classes with the background, as torchvision's models count them: the
        largest label plus 1.

        Raises:
            UsageError: the set has no names of classes.
        """
        names = self._classes.names
        if not names:
            raise UsageError(
                f"num_classes: the class names of the {self.records.split} records are not known",
                "expected class names, from which the classes are counted",
                "if the records have the name of each object (image/object/class/text): "
                "DetectionDataset(records, class_names=['cat', 'dog']); if they have only numbers, "
                "give your model the largest label plus 1 yourself",
            )
        largest_label = max(names)
        return largest_label + 1

    def _sample(self, record: Record) -> tuple[Any, Target]:
        image = self._read_image(record)
        _, height, width = image.shape
        target = self._read_target(record, height, width)
        if self.transforms is None:
            return image, target
        image, target = self._transform(image, target)
        return image, _without_empty(target)

    def _read_target(self, record: Record, height: int, width: int) -> Target:
        tv_tensors = import_tv_tensors("DetectionDataset")
        objects = RecordObjects(record)
        boxes = objects.boxes(height, width)
        labels = self._classes.read_labels(objects)
        numbers: dict[str, Any] = {}
        for name, (feature, _) in _NUMBERS.items():
            if feature in objects.features:
                numbers[name] = objects.numbers(feature)
        is_kept = np.all(boxes[:, 2:] > boxes[:, :2], axis=1)
        for flag in self.leave_out:
            flag_name = _NAMES_OF_FLAGS[flag]
            if flag_name in numbers:
                is_kept = is_kept & (numbers[flag_name] == 0)
        size = (height, width)
        corners = torch.from_numpy(boxes[is_kept])
        target: Target = {
            "boxes": tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=size),
            "labels": torch.from_numpy(labels[is_kept]),
        }
        wants_masks = self.masks
        if wants_masks is None:
            wants_masks = MASKS in objects.features
        if wants_masks:
            masks = objects.masks(is_kept, size)
            target["masks"] = tv_tensors.Mask(torch.from_numpy(masks))
        target["image_id"] = objects.image_id()
        for name, numbers_of_objects in numbers.items():
            _, dtype = _NUMBERS[name]
            tensor = torch.from_numpy(numbers_of_objects[is_kept])
            target[name] = tensor.to(dtype)
        return target


def collate_detection(
    samples: Sequence[tuple[Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A batch of images of any sizes: all images, and all targets.
    Give it to a Loader as ``collate_fn``.
    """
    images, targets = zip(*samples, strict=True)
    return images, targets


def _find_classes(
    records: RecordSequence, class_names: Sequence[str] | None, first_label: int | None
) -> ObjectClasses:
    """The classes of objects by label: from the arguments,
    otherwise from the manifest of the set.
    """
    names_by_label: dict[int, str] = {}
    if class_names is not None:
        _check_class_names(class_names, first_label)
        names_by_label.update(enumerate(class_names, 1))
        return ObjectClasses(names_by_label, 1, is_by_name=True)
    names = records.object_names or records.class_names
    if first_label is None:
        first_label = 0 if 0 in names else 1
    first_number = whole("DetectionDataset(first_label=", first_label, 0)
    for number in sorted(names):
        label = number - first_number + 1
        names_by_label[label] = names[number]
    return ObjectClasses(names_by_label, first_number)


def _check_flags(flags: Collection[Flag]) -> None:
    """Raise UsageError unless these are marks of objects."""
    is_list = isinstance(flags, Collection) and not isinstance(flags, str)
    if not is_list or not all(flag in get_args(Flag) for flag in flags):
        argument = f"DetectionDataset(leave_out={shown(flags)})"
        expected = "expected a list of 'crowd' and 'difficult'"
        raise UsageError(argument, expected, "leave_out=['crowd']")


def _check_class_names(class_names: Sequence[str], first_label: int | None) -> None:
    """Raise UsageError unless these are names of classes, without a first label."""
    is_list = isinstance(class_names, Sequence) and not isinstance(class_names, str)
    are_texts = (
        is_list and len(class_names) > 0 and all(isinstance(name, str) for name in class_names)
    )
    are_distinct = are_texts and len(set(class_names)) == len(class_names)
    if not are_distinct:
        raise UsageError(
            f"DetectionDataset(class_names={shown(class_names)})",
            "expected a list of one or more different texts",
            "class_names=['cat', 'dog']",
        )
    if first_label is not None:
        raise UsageError(
            f"DetectionDataset(class_names=..., first_label={shown(first_label)})",
            "expected only one of these arguments: the first of class_names is label 1",
        )


def _without_empty(target: Any) -> Any:
    """A target that was transformed, without the objects whose boxes have no area."""
    if not isinstance(target, dict):
        return target
    boxes = target.get("boxes")
    if not isinstance(boxes, torch.Tensor):
        return target
    tensors: dict[str, torch.Tensor] = {}
    for name in _OF_OBJECTS:
        tensor = target.get(name)
        if isinstance(tensor, torch.Tensor):
            tensors[name] = tensor
    counts = {name: len(tensor) for name, tensor in tensors.items()}
    if len(set(counts.values())) > 1:
        shown_counts = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise UsageError(
            f"transforms gave {shown_counts}",
            "expected as many of each as there are boxes",
            _SANITIZED,
        )
    has_area = _have_area(boxes)
    if has_area.all():
        return target
    tv_tensors = import_tv_tensors("DetectionDataset")
    new_target = dict(target)
    for name, tensor in tensors.items():
        with_area = tensor[has_area]
        new_target[name] = tv_tensors.wrap(with_area, like=tensor)
    return new_target


def _have_area(boxes: torch.Tensor) -> torch.Tensor:
    """Whether each box has an area; of boxes that are no tv_tensors, or turned ones, nobody knows:
    all have.
    """
    box_format = getattr(boxes, "format", None)
    match getattr(box_format, "value", None):
        case "XYXY":
            is_wide_and_high = boxes[:, 2:4] > boxes[:, :2]
        case "XYWH" | "CXCYWH":
            is_wide_and_high = boxes[:, 2:4] > 0
        case _:
            return torch.ones(len(boxes), dtype=torch.bool)
    return is_wide_and_high.all(dim=1)
