"""SegmentationDataset: image and class of every pixel of every record, in torchvision's form."""

from __future__ import annotations

from typing import Any

import torch

from imagenet_prep.errors import InputError
from imagenet_prep.images.mask_pixels import decode_values
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.tfrecord.object_features import OBJECT_FEATURES
from imagenet_prep.torch.objects import read_mask
from imagenet_prep.torch.vision import Transforms, VisionDataset, import_tv_tensors

_MASK = OBJECT_FEATURES["mask.encoded"].name


class SegmentationDataset(VisionDataset[tuple[Any, Any]]):
    """``(image, mask)`` of every record: mask is a tv_tensors.Mask of the shape (height, width), a
    class per pixel.

    An image is a tv_tensors.Image: uint8 of the shape (3, height, width) in RGB. A mask has the
    values of its PNG as they are stored: numbers of classes, often with 255 for pixels of none. It
    is uint8, or int32 for a PNG of 16 bits.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it, of a recipe with ``mask``.
        transforms: a function of image and mask that gives both, such as
            torchvision.transforms.v2.Compose([...]).

    Raises:
        UsageError: an argument is wrong, or torchvision is missing.
        InputError: a record is damaged, has no mask, one of colours, or one of another size than
            its image.
    """

    def __init__(self, records: RecordSequence, transforms: Transforms | None = None) -> None:
        super().__init__(records, transforms)

    def __repr__(self) -> str:
        return f"SegmentationDataset({self.records!r}): {len(self):,} images"

    def _sample(self, record: Record) -> tuple[Any, Any]:
        image = self._read_image(record)
        return self._transform(image, self._read_mask(record, tuple(image.shape[1:])))

    def _read_mask(self, record: Record, size: tuple[int, int]) -> Any:
        data = record.features.get(_MASK)
        if not isinstance(data, bytes):
            problem = "no" if data is None else "no single file in"
            raise InputError(
                f"{record.place} has {problem} {_MASK}",
                "expected one PNG with the class of each pixel",
                "start again from the images, with a recipe that has `mask`; "
                "for masks of objects, use DetectionDataset",
            )
        pixels = read_mask(record, decode_values, data, size)
        if pixels.ndim > 2:
            raise InputError(
                f"{record.place} has a mask of {pixels.shape[2]} channels",
                "expected one number per pixel",
                "write masks as PNGs of one channel, gray or palette, and start again from them",
            )
        dtype = "int32" if pixels.dtype.itemsize > 1 else "uint8"
        tv_tensors = import_tv_tensors("SegmentationDataset")
        return tv_tensors.Mask(torch.from_numpy(pixels.astype(dtype)))
