"""Items of a batch are seeded, damaged ones are set aside, and the others become the batch: the work of workers."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, default_collate

from imagenet_prep.errors import DamagedRecordError, RecordFault, UsageError
from imagenet_prep.reading.left_out import with_choice

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt (malloc.h), in bytes: free memory kept at the end, and the least block with a map of its own."""


def collate(samples: list[Any]) -> Any:
    """A batch as DataLoader makes it; images of different sizes are an error that names them."""
    try:
        return default_collate(samples)
    except RuntimeError:
        images = [sample[0] if isinstance(sample, tuple) else sample for sample in samples]
        shapes = {" x ".join(map(str, image.shape)) for image in images if isinstance(image, torch.Tensor)}
        if len(shapes) < 2:
            raise
        what = f"images of a batch have different shapes: {', '.join(sorted(shapes)[:3])}"
        raise UsageError(what, "expected one", "give ImageDataset a transform that makes them one size") from None


def collate_channels_last(samples: list[Any]) -> Any:
    """A batch whose images are laid out by pixel, as they were decoded: nothing is transposed."""
    images = [sample[0] if isinstance(sample, tuple) else None for sample in samples]
    if not all(isinstance(image, torch.Tensor) and image.dim() == 3 for image in images):
        raise UsageError("Loader(channels_last=True)", "expected samples (image, label) whose image is a 3-D tensor")
    batch, *others = collate([(sample[0].permute(1, 2, 0), *sample[1:]) for sample in samples])
    return [batch.permute(0, 3, 1, 2), *others]


def begin_worker(then: Callable[[int], None] | None, number: int) -> None:
    """Let a worker keep up to 128 MiB of freed memory: otherwise the system maps new pages for each image.

    It affects glibc's allocator only; others ignore it, or do so by themselves.
    """
    with contextlib.suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest allowed value
        allocator.mallopt(_M_TRIM_THRESHOLD, 128 << 20)
    if then is not None:
        then(number)


class Damaged(NamedTuple):
    """In place of an item: the number of its record in the data set, its fault, and the words for a warning."""

    number: int
    fault: RecordFault
    words: str


class WithoutDamaged:
    """A collate function for batches with damaged items: the batch of the others, or None, and those."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, items: list[Any]) -> tuple[Any, list[Damaged]]:
        """The batch, and the damaged items."""
        damaged = [item for item in items if isinstance(item, Damaged)]
        sound = [item for item in items if not isinstance(item, Damaged)]
        return (self._collate(sound) if sound else None), damaged


class Seeded(Dataset[Any]):
    """The items of a data set, each with random numbers that its epoch and number decide."""

    def __init__(self, dataset: Any, seed: int, *, skips: bool) -> None:
        self.dataset = dataset
        self._seed = seed
        self._skips = skips

    def __getitems__(self, batch: list[Any]) -> list[Any]:
        """The items of a batch; the random numbers of the process stay as they were."""
        epoch, numbers = batch
        states, items = (random.getstate(), np.random.get_state()), []
        with torch.random.fork_rng(devices=[]):
            for number in numbers:
                text = f"{self._seed} {epoch} {number}".encode()
                seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
                torch.default_generator.manual_seed(seed)
                random.seed(seed)
                np.random.seed(seed % 2**32)
                items.append(self._item(number))
        random.setstate(states[0])
        np.random.set_state(states[1])
        return items

    def _item(self, number: int) -> Any:
        """One item; of a damaged record, what is known about it, or its error."""
        try:
            return self.dataset[number]
        except DamagedRecordError as error:
            if not self._skips:
                raise with_choice(error) from error
            return Damaged(number, error.fault, error.in_short)
