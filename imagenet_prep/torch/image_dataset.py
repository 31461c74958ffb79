"""ImageDataset: the records of a set as pixels and labels, a map-style data set of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from imagenet_prep.errors import InputError
from imagenet_prep.reading.record_sequence import RecordSequence
from imagenet_prep.reading.shard import Record

Sample = tuple[Any, int]


class ImageDataset(Dataset[Sample]):
    """``(image, label)`` of every record: ``ImageDataset(imagenet_prep.open("/data/imagenet", "train"), transform)``.

    An image is a uint8 tensor of the shape (3, height, width) in RGB, the same pixels as Pillow's; ``transform`` makes
    of it what training needs (those of torchvision.transforms.v2 take it as it is).

    LABELS COUNT FROM 0: 0 to 999 for ImageNet, whose records say 1 to 1000. So it is for every set: the first class is
    0, whatever number the records give it (``records.first_label``).

    Args:
        records: the set, or a part of it.
        transform: from an image to what a batch is made of; None: the image itself.
        min_side: decode at 1/2, 1/4 or 1/8 where the shorter side keeps at least as many pixels: up to four times
            as fast, but THE PIXELS DIFFER from those of the whole image made smaller. None: decode in full.

    Raises:
        InputError: a record is damaged or no image's, or its label is below that of the first class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transform: Callable[[torch.Tensor], Any] | None = None,
        *,
        min_side: int | None = None,
    ) -> None:
        self.records = records
        self.transform = transform
        self.min_side = min_side

    def __repr__(self) -> str:
        return f"ImageDataset({self.records!r}): {len(self):,} images, labels from 0"

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Sample:
        return self._sample(self.records[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several at once, as PyTorch's DataLoader asks for them."""
        return [self._sample(record) for record in self.records.__getitems__(indices)]

    def _sample(self, record: Record) -> Sample:
        label = record.label - self.records.first_label
        if label < 0:
            where = f"{record.shard}: record {record.number} at byte {record.offset} has label {record.label}"
            raise InputError(where, f"expected {self.records.first_label} or more", "set first_label of the records")
        image = torch.from_numpy(record.array(self.min_side)).permute(2, 0, 1)
        return (image if self.transform is None else self.transform(image)), label
