"""ImageDataset: pixels and label of every record, as PyTorch's DataLoader takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.arguments import shown
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.torch.crops import Crop
from imagenet_prep.torch.record_dataset import RecordDataset

Sample = tuple[Any, int]


class ImageDataset(RecordDataset[Sample]):
    """``(image, label)`` of every record: ``ImageDataset(imagenet_prep.open("/data/imagenet",
    "train"), transform)``.

    An image is a uint8 tensor of the shape (3, height, width) in RGB, with the same pixels as
    Pillow's. ``transform`` prepares it for training (those of torchvision.transforms.v2 accept it
    directly).

    LABELS COUNT FROM 0: 0 to 999 for ImageNet, whose records say 1 to 1000. The first class of
    every set is 0, whatever its number in the records (``records.first_label``): a label is the
    ``class_index`` of its record.

    ``[i:j]`` is a data set of those images.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it.
        transform: a function from an image to an item of a batch; None: the image itself.
        crop: the part of each image to decode, ``RandomResizedCrop(224)`` or ``CenterCrop(224)``;
            ``transform`` gets it as a uint8 tensor (3, 224, 224). None: whole images.
        unlabelled: the label of images without one, such as -1. None: they are an error, which
            names the line that leaves them out.

    Raises:
        UsageError: an argument has the wrong type: records are what ``open`` gives.
        InputError: a record is damaged, holds no image or no label, or its label is below that of
            the first class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transform: Callable[[torch.Tensor], Any] | None = None,
        *,
        crop: Crop | None = None,
        unlabelled: int | None = None,
    ) -> None:
        super().__init__(records)
        if transform is not None and not callable(transform):
            raise UsageError(
                f"ImageDataset: its second argument, transform, is {shown(transform)}",
                "expected a function that takes an image as a tensor",
                "for images of 224 x 224 pixels: crop=CenterCrop(224) or RandomResizedCrop(224)",
            )
        self.transform = transform
        if crop is not None and not isinstance(crop, Crop):
            raise UsageError(
                f"ImageDataset(crop={shown(crop)})",
                "expected a crop of imagenet_prep.torch, such as RandomResizedCrop(224) or "
                "CenterCrop(224)",
                "give a crop of torchvision as transform=..., not as crop=...",
            )
        self.crop = crop
        self.unlabelled = unlabelled

    def __repr__(self) -> str:
        return f"ImageDataset({self.records!r}): {len(self):,} images, labels from 0"

    def _sample(self, record: Record) -> Sample:
        label = self.label(record)
        image = (
            self.crop(record) if self.crop else torch.from_numpy(record.array()).permute(2, 0, 1)
        )
        return (image if self.transform is None else self.transform(image)), label

    def label(self, record: Record) -> int:
        """The label of a record, from 0. Raises InputError."""
        label = record.class_index
        if label is None:
            label = self.unlabelled
        if label is None:
            raise InputError(
                f"{record.place} has no label", "expected a label for each image", _WITHOUT_LABEL
            )
        return label


_WITHOUT_LABEL = (
    "give unlabelled=-1, or leave such images out: "
    "Subset(dataset, [n for n, record in enumerate(dataset.records) if record.label is not None])"
)
