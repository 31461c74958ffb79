"""ImageDataset: images and labels of records. RandomResizedCrop, CenterCrop: the part of an image to decode."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch.nn import functional
from torch.utils.data import Dataset, Subset

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images.pixels import Part
from imagenet_prep.reading.shard import Record
from imagenet_prep.reading.shard_set import RecordSequence


def shown(value: object) -> str:
    """A value in a message, cut short."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``; raises UsageError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        end = ")" if "(" in name else ""
        raise UsageError(f"{name}{shown(value)}{end}", f"expected a whole number of at least {least}")
    return number


class Crop:
    """A square part of each image, made ``size`` pixels wide and high; a subclass says which part.

    Only the part is decoded, as far as the JPEG allows it, and at 1/2 or less if it keeps ``size`` pixels. Then it is
    resized (bilinear, antialiased).
    """

    def __init__(self, size: int) -> None:
        self.size = whole(f"{type(self).__name__}(size=", size, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"

    def choose(self, height: int, width: int) -> Part:
        """The part of an image of this size, in pixels: top, left, height, width."""
        raise NotImplementedError

    def __call__(self, record: Record) -> torch.Tensor:
        """The part of a record's image: uint8 of the shape (3, size, size)."""
        return self._resized(torch.from_numpy(record.part(self.choose, self.size)))

    def _resized(self, pixels: torch.Tensor) -> torch.Tensor:
        pixels = pixels.permute(2, 0, 1)
        if pixels.shape[1:] == (self.size, self.size):
            return pixels
        sized = functional.interpolate(pixels[None], (self.size, self.size), mode="bilinear", antialias=True)
        return sized[0]


class RandomResizedCrop(Crop):
    """A random part, as torchvision.transforms.RandomResizedCrop takes it: the same parts after the same manual_seed.

    Args:
        size: pixels per side of the result.
        scale: limits of the part's area, as a share of the image's.
        ratio: limits of its width / height.
        flip: the share of images to mirror, 0.5 for training: done before resizing, it costs less than a transform.
    """

    def __init__(
        self,
        size: int,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        flip: float = 0.0,
    ) -> None:
        super().__init__(size)
        self.scale = _limits("scale", scale, 1)
        self.ratio = _limits("ratio", ratio, math.inf)
        if not isinstance(flip, int | float) or not 0 <= flip <= 1:
            raise UsageError(f"RandomResizedCrop(flip={shown(flip)})", "expected a share from 0 to 1")
        self.flip = flip

    def __call__(self, record: Record) -> torch.Tensor:
        """The part, or its mirror image."""
        pixels = record.part(self.choose, self.size)
        is_flipped = self.flip and torch.rand(1).item() < self.flip
        return self._resized(torch.from_numpy(pixels[:, ::-1].copy() if is_flipped else pixels))

    def choose(self, height: int, width: int) -> Part:
        """Ten attempts to draw a part that fits, then the largest one in the middle."""
        # as in torchvision/transforms/transforms.py, RandomResizedCrop.get_params: the same numbers in the same order
        low, high = torch.log(torch.tensor(self.ratio)).tolist()
        for _ in range(10):
            area = height * width * torch.empty(1).uniform_(*self.scale).item()
            ratio = torch.exp(torch.empty(1).uniform_(low, high)).item()
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top, left = (int(torch.randint(0, free + 1, (1,)).item()) for free in (height - h, width - w))
                return top, left, h, w
        h = min(height, round(width / self.ratio[0]))
        w = min(width, round(height * self.ratio[1]))
        return (height - h) // 2, (width - w) // 2, h, w


class CenterCrop(Crop):
    """The square in the middle, for validation; 224 with 0.875 is the part of Resize(256) and CenterCrop(224).

    Args:
        size: pixels per side of the result.
        part: the side of the square, as a share of the image's shorter side.
    """

    def __init__(self, size: int, part: float = 0.875) -> None:
        super().__init__(size)
        self.part = _limits("part", (part, part), 1)[0]

    def choose(self, height: int, width: int) -> Part:
        """The middle."""
        side = max(1, round(self.part * min(height, width)))
        return (height - side) // 2, (width - side) // 2, side, side


def _limits(name: str, values: tuple[float, float], most: float) -> tuple[float, float]:
    try:
        low, high = map(float, values)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 < low <= high <= most:
        up_to = "" if most == math.inf else f", at most {most}"
        raise UsageError(f"{name}={shown(values)}", f"expected a lower and an upper limit, above 0{up_to}")
    return low, high


Sample = tuple[Any, int]


class ImageDataset(Dataset[Sample]):
    """``(image, label)`` of every record: ``ImageDataset(imagenet_prep.open("/data/imagenet", "train"), transform)``.

    An image is a uint8 tensor of the shape (3, height, width) in RGB, with the same pixels as Pillow's. ``transform``
    prepares it for training (those of torchvision.transforms.v2 accept it directly).

    LABELS COUNT FROM 0: 0 to 999 for ImageNet, whose records say 1 to 1000. The first class of every set is 0, whatever
    its number in the records (``records.first_label``).

    ``[i:j]`` is a data set of those images.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it.
        transform: a function from an image to an item of a batch; None: the image itself.
        crop: the part of each image to decode, ``RandomResizedCrop(224)`` or ``CenterCrop(224)``; ``transform`` gets it
            as a uint8 tensor (3, 224, 224). None: whole images.

    Raises:
        UsageError: an argument has the wrong type: records are what ``open`` gives.
        InputError: a record is damaged or holds no image, or its label is below that of the first class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transform: Callable[[torch.Tensor], Any] | None = None,
        *,
        crop: Crop | None = None,
    ) -> None:
        if not isinstance(records, RecordSequence):
            folder = os.fspath(records) if isinstance(records, str | os.PathLike) else "/data/imagenet"
            hint = f"ImageDataset(imagenet_prep.open({folder!r}, 'train'))"
            raise UsageError(f"ImageDataset({shown(records)})", "expected records that open gives", hint)
        if transform is not None and not callable(transform):
            raise UsageError(f"ImageDataset(transform={shown(transform)})", "expected a function of an image")
        self.records = records
        self.transform = transform
        if crop is not None and not isinstance(crop, Crop):
            raise UsageError(f"ImageDataset(crop={shown(crop)})", "expected RandomResizedCrop(224) or CenterCrop(224)")
        self.crop = crop

    def __repr__(self) -> str:
        return f"ImageDataset({self.records!r}): {len(self):,} images, labels from 0"

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Subset[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | Subset[Sample]:
        if isinstance(index, slice):
            return Subset(self, range(*index.indices(len(self))))
        return self._sample(self.records[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples at once, as PyTorch's DataLoader requests them."""
        return [self._sample(record) for record in self.records.__getitems__(indices)]

    def _sample(self, record: Record) -> Sample:
        label = record.label - self.records.first_label
        if label < 0:
            where = f"{record.shard}: record {record.number} at byte {record.offset} has label {record.label}"
            raise InputError(where, f"expected {self.records.first_label} or more", "set first_label of the records")
        image = self.crop(record) if self.crop else torch.from_numpy(record.array()).permute(2, 0, 1)
        return (image if self.transform is None else self.transform(image)), label
