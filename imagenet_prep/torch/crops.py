"""Crop: the part of an image to decode. RandomResizedCrop for training,
CenterCrop for validation.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from imagenet_prep.errors import UsageError
from imagenet_prep.images.parts import Cutout, ImagePart
from imagenet_prep.reading.arguments import shown, whole
from imagenet_prep.reading.record import Record


class Crop:
    """A square part of each image, made ``size`` pixels wide and high; a subclass says which part.

    Only the part is decoded, as far as the JPEG allows it, and at 1/2 or less if it keeps ``size``
    pixels. Then it is resized (bilinear, antialiased).
    """

    def __init__(self, size: int) -> None:
        class_name = type(self).__name__
        self.size = whole(f"{class_name}(size=", size, 1)

    def __repr__(self) -> str:
        class_name = type(self).__name__
        options: list[str] = []
        for name, option in vars(self).items():
            if not name.startswith("_"):
                options.append(f"{name}={option}")
        return f"{class_name}({', '.join(options)})"

    def choose(self, height: int, width: int) -> tuple[float, float, float, float] | ImagePart:
        """The part of an image of this size, in pixels:
        (top, left, height, width), or an ImagePart.
        """
        raise NotImplementedError

    def draw_flip(self) -> bool:
        """Whether to mirror the image: asked once for each image, after ``choose``."""
        return False

    def __call__(self, record: Record) -> torch.Tensor:
        """The part of a record's image, or its mirror image: uint8 of the shape (3, size, size)."""
        cutout = record.cutout(self.choose, self.size)
        is_flipped = self.draw_flip()
        resized = self.resized(cutout)
        if is_flipped:
            return resized.flip(-1)
        return resized

    def resized(self, cutout: Cutout) -> torch.Tensor:
        """The part, uint8 of the shape (3, size, size)."""
        if not cutout.is_all:  # torch resizes whole pixels only
            pixels = torch.from_numpy(cutout.resized(self.size))
            return pixels.permute(2, 0, 1)
        # a batch of one image in channels_last, which torch resizes faster
        pixels = torch.from_numpy(cutout.pixels)
        batch = pixels[None].permute(0, 3, 1, 2)
        square = (self.size, self.size)
        if batch.shape[2:] != square:
            batch = functional.interpolate(batch, square, mode="bilinear", antialias=True)
        return batch[0]


class RandomResizedCrop(Crop):
    """A random part, as torchvision.transforms.RandomResizedCrop takes it: the same parts after the
    same manual_seed.

    Args:
        size: pixels per side of the result.
        scale: limits of the part's area, as a share of the image's.
        ratio: limits of its width / height.
        flip: the share of images to mirror, 0.5 for training: it costs less than a transform.
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
        log_ratio = torch.log(torch.tensor(self.ratio))
        self._log_ratio = log_ratio.tolist()
        self.flip = _number(flip)
        if not 0 <= self.flip <= 1:
            argument = f"RandomResizedCrop(flip={shown(flip)})"
            raise UsageError(argument, "expected a share from 0 to 1")

    def draw_flip(self, generator: torch.Generator | None = None) -> bool:
        """Whether to mirror the image; ``generator`` is that of ``choose``,
        by default torch's own.
        """
        if self.flip <= 0:
            return False
        drawn = torch.rand(1, generator=generator).item()
        return drawn < self.flip

    def choose(
        self, height: int, width: int, generator: torch.Generator | None = None
    ) -> ImagePart:
        """Ten attempts to draw a part that fits, then the largest one in the middle."""
        # as in torchvision/transforms/transforms.py, RandomResizedCrop.get_params: the same numbers
        # in the same order
        share = torch.empty(1)
        place = torch.empty(1, dtype=torch.int64)
        for _ in range(10):
            area_share = share.uniform_(*self.scale, generator=generator).item()
            area = height * width * area_share
            ratio = share.uniform_(*self._log_ratio, generator=generator).exp_().item()
            w = round(math.sqrt(area * ratio))
            h = round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top = place.random_(0, height - h + 1, generator=generator).item()
                left = place.random_(0, width - w + 1, generator=generator).item()
                return ImagePart(top, left, h, w)
        least_ratio, largest_ratio = self.ratio
        h = min(height, round(width / least_ratio))
        w = min(width, round(height * largest_ratio))
        top = (height - h) // 2
        left = (width - w) // 2
        return ImagePart(top, left, h, w)


class CenterCrop(Crop):
    """The square in the middle, for validation: CenterCrop(224) is torchvision's Resize(256) and
    CenterCrop(224).

    The same pixels, a level of rounding apart: the part is in fractions of pixels, and decoded in
    full size (at reduced scale only if nothing differs by more).

    Args:
        size: pixels per side of the result.
        part: the share of the resized image's shorter side, whose length is ``size / part``,
            rounded down:
            224 / 232 for Resize(232) and CenterCrop(224).
    """

    def __init__(self, size: int, part: float = 0.875) -> None:
        super().__init__(size)
        self.part = _share_of_side(part)

    def choose(self, height: int, width: int) -> ImagePart:
        """The middle of the resized image, in pixels of the image itself."""
        # as in torchvision/transforms/functional.py: resize rounds the longer side down,
        # center_crop to the even pixel
        shorter_side = self.size / self.part
        # 224 / (224 / 232) may be 231.99999999999997
        shorter = math.floor(shorter_side + 1e-6)
        resized_height = resized_width = shorter
        if height > width:
            resized_height = int(shorter * height / width)
        elif width > height:
            resized_width = int(shorter * width / height)
        top, part_height = _middle(self.size, resized_height, height)
        left, part_width = _middle(self.size, resized_width, width)
        return ImagePart(top, left, part_height, part_width, is_cut=False)


def _middle(size: int, resized: int, side: int) -> tuple[float, float]:
    """Where the middle ``size`` pixels of a resized side start,
    and their length, in pixels of the side itself.
    """
    scale = side / resized
    resized_start = round((resized - size) / 2)
    start = resized_start * scale
    length = min(size * scale, side - start)
    return start, length


def _number(value: Any) -> float:
    """A number of any type; NaN for what is none, or a text."""
    if isinstance(value, (str, bytes, bytearray)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _share_of_side(part: float) -> float:
    """The ``part`` of a CenterCrop; raises UsageError."""
    share = _number(part)
    if not 0 < share <= 1:
        raise UsageError(f"CenterCrop(part={shown(part)})", "expected a share above 0, at most 1")
    return share


def _limits(name: str, values: tuple[float, float], most: float) -> tuple[float, float]:
    """The limits of a RandomResizedCrop; raises UsageError."""
    try:
        low, high = map(float, values)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not 0 < low <= high <= most:
        expected = "expected a lower and an upper limit, above 0"
        if most != math.inf:
            expected += f", at most {most}"
        raise UsageError(f"RandomResizedCrop({name}={shown(values)})", expected)
    return low, high
