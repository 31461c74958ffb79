"""Crop: the part of an image to decode. RandomResizedCrop for training, CenterCrop for validation."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from imagenet_prep.errors import UsageError
from imagenet_prep.images.pixels import Part
from imagenet_prep.reading.shard import Record
from imagenet_prep.torch.arguments import shown, whole


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
