"""DeviceSettings: where a Loader decodes images, and what becomes of their pixels;
with the checks of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Subset

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown
from imagenet_prep.torch.crops import Crop
from imagenet_prep.torch.image_dataset import ImageDataset

_TAKES = (
    "Loader(ImageDataset(records, crop=RandomResizedCrop(224, flip=0.5)), batch_size=256, "
    "decode='auto')"
)


@dataclass(frozen=True)
class DeviceSettings:
    """A device, and what it makes of pixels.

    Attributes:
        device: where images are decoded.
        dtype: of the result.
        scale: by channel, what a level from 0 to 255 is multiplied by.
        shift: by channel, what is subtracted then.
        channels_last: whether the result is in torch.channels_last.
    """

    device: torch.device
    dtype: torch.dtype
    scale: tuple[float, ...]
    shift: tuple[float, ...]
    channels_last: bool

    def empty(self, count: int, size: int, device: torch.device) -> torch.Tensor:
        """A batch that is not filled."""
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return torch.empty(
            (count, 3, size, size), dtype=self.dtype, device=device, memory_format=layout
        )


def device_settings(
    dataset: Any, decode: Any, normalize: Any, dtype: torch.dtype | None, *, channels_last: bool
) -> DeviceSettings | None:
    """The settings of a Loader with these arguments; None if workers decode.

    Raises:
        UsageError: an argument is invalid, or does not go with another.
    """
    if decode is None:
        _refuse_without_decode("normalize", normalize)
        _refuse_without_decode("dtype", dtype)
        return None
    device = _device(decode)
    images_within(dataset)
    dtype = _check_dtype(dtype, normalize)
    if dtype is torch.uint8:
        return DeviceSettings(device, dtype, (1.0,) * 3, (0.0,) * 3, channels_last)
    means, deviations = _mean_and_std(normalize)
    scale = tuple(1 / (255 * deviation) for deviation in deviations)
    shift = tuple(mean / deviation for mean, deviation in zip(means, deviations, strict=True))
    return DeviceSettings(device, dtype, scale, shift, channels_last)


def _refuse_without_decode(name: str, argument: object) -> None:
    if argument is not None:
        raise UsageError(
            f"Loader({name}={shown(argument)})",
            "expected decode=..., which this argument is part of",
            "give Loader decode='auto', too; or give ImageDataset a transform that does it",
        )


def _check_dtype(dtype: torch.dtype | None, normalize: Any) -> torch.dtype:
    """The dtype of images: uint8, or floats if they are normalised. Raises UsageError."""
    if dtype is None:
        return torch.uint8 if normalize is None else torch.float32
    if dtype is torch.uint8:
        if normalize is not None:
            raise UsageError(
                "Loader(normalize=..., dtype=torch.uint8)",
                "expected a dtype of floats, or no normalize",
            )
        return dtype
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        expected = "expected torch.uint8, or a dtype of floats"
        raise UsageError(f"Loader(dtype={shown(dtype)})", expected)
    return dtype


def _device(decode: Any) -> torch.device:
    if decode == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(decode)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cuda", "cpu"):
        raise UsageError(
            f"Loader(decode={shown(decode)})",
            "expected 'cuda', 'cpu', 'auto', or such a torch.device",
        )
    if device.type == "cuda" and not torch.cuda.is_available():
        hint = "decode='auto' takes the CPU where there is no GPU"
        raise UsageError(
            f"Loader(decode={shown(decode)})", "expected a GPU that PyTorch can use", hint
        )
    return device


def _mean_and_std(normalize: Any) -> tuple[Sequence[float], Sequence[float]]:
    """By channel, in a range from 0 to 1."""
    if normalize is None:
        return (0.0,) * 3, (1.0,) * 3
    try:
        means, deviations = (tuple(map(float, channels)) for channels in normalize)
    except (TypeError, ValueError):
        means = deviations = ()
    are_three = len(means) == 3 and len(deviations) == 3
    if not are_three or not all(deviation > 0 for deviation in deviations):
        raise UsageError(
            f"Loader(normalize={shown(normalize)})",
            "expected (mean, std): three numbers each, for channels from 0 to 1; std above 0",
        )
    return means, deviations


def images_within(dataset: Any) -> tuple[ImageDataset, Sequence[int] | None]:
    """The ImageDataset of a data set, and the numbers of its records there; None, if they are the
    same.

    Raises:
        UsageError: there is none, or a device can't do what it does.
    """
    images, numbers = dataset, None
    while isinstance(images, Subset):
        if numbers is None:
            numbers = images.indices
        else:
            numbers = [images.indices[number] for number in numbers]
        images = images.dataset
    if type(images) is not ImageDataset:
        raise UsageError(
            f"Loader({shown(dataset)}, decode=...)",
            "expected an ImageDataset or a slice of one, and not a subclass",
            _TAKES,
        )
    if images.transform is not None:
        raise UsageError(
            "Loader(decode=...) with ImageDataset(transform=...)",
            "expected no transform of single images",
            f"leave out transform: {_TAKES}; "
            "to change images, give it a collate_fn, too, which gets the batch [images, labels]",
        )
    if images.crop is None or type(images.crop).__call__ is not Crop.__call__:
        raise UsageError(
            f"Loader(decode=...) with ImageDataset(crop={shown(images.crop)})",
            "expected a RandomResizedCrop, a CenterCrop, or a Crop without a __call__ of its own",
            _TAKES,
        )
    return images, numbers
