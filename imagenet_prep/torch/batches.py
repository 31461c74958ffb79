"""Seeded: items with their own random numbers. BatchCollate: a batch of them, or its error.
Both run in workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import Dataset, default_collate, get_worker_info

from imagenet_prep.errors import DamagedRecordError, InputError, PrepError, RecordFault, UsageError
from imagenet_prep.reading.left_out import with_choice
from imagenet_prep.reading.record import Record
from imagenet_prep.text import listed, number_of
from imagenet_prep.torch.device_settings import DeviceSettings

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt (malloc.h), in bytes: free memory kept at the end,
and the least block with a map of its own.
"""


def collate(samples: list[Any]) -> Any:
    """A batch as DataLoader makes it; images of different sizes are an error that names them, and
    so are objects of images, which differ in number.
    """
    if isinstance(samples[0], Record):
        expected = "expected images and labels, as an ImageDataset gives them"
        raise UsageError("a Loader can't make a batch of records", expected, TAKES_OR_COLLATE)
    try:
        return default_collate(samples)
    except RuntimeError as error:
        if _have_objects(samples):
            raise UsageError(
                "images with objects make no batch of tensors",
                "expected a collate_fn that keeps the objects of each image apart",
                "Loader(dataset, batch_size, collate_fn=collate_detection)",
            ) from error
        images = [sample[0] if isinstance(sample, tuple) else sample for sample in samples]
        shapes = {
            " x ".join(map(str, image.shape)) for image in images if isinstance(image, torch.Tensor)
        }
        if len(shapes) < 2:
            raise
        raise UsageError(
            f"images of a batch have different shapes: {listed(sorted(shapes))}",
            "expected images of one shape",
            "make them one size by a transform of the data set; "
            "an ImageDataset also takes crop=RandomResizedCrop(224)",
        ) from None


def _have_objects(samples: list[Any]) -> bool:
    """Whether samples are those of a DetectionDataset: an image, and a dictionary with boxes."""
    target = samples[0][-1] if isinstance(samples[0], tuple) else None
    return isinstance(target, dict) and "boxes" in target


TAKES = "Loader(ImageDataset(records, crop=RandomResizedCrop(224)), batch_size=256)"
"""The arguments of a Loader, for a hint; ``records`` are what ``open`` gives."""

TAKES_OR_COLLATE = f"{TAKES}, or your own collate_fn"
"""The same for a Loader of records, which a collate_fn can make a batch of."""


def collate_channels_last(samples: list[Any]) -> Any:
    """A batch whose images are laid out by pixel, as they were decoded: nothing is transposed."""
    images = [sample[0] if isinstance(sample, tuple) else None for sample in samples]
    if not all(isinstance(image, torch.Tensor) and image.dim() == 3 for image in images):
        raise UsageError(
            "Loader(channels_last=True)",
            "expected samples (image, label) whose image is a 3-D tensor",
        )
    batch, *labels = collate([(sample[0].permute(1, 2, 0), *sample[1:]) for sample in samples])
    return [batch.permute(0, 3, 1, 2), *labels]


def begin_worker(then: Callable[[int], None] | None, number: int) -> None:
    """Let a worker keep up to 128 MiB of freed memory: otherwise the system maps new pages for each
    image.

    It affects glibc's allocator only; others ignore it, or do so by themselves.
    """
    with contextlib.suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest allowed value
        allocator.mallopt(_M_TRIM_THRESHOLD, 128 << 20)
    if then is not None:
        then(number)


class ItemNumber(int):
    """The number of an item, its epoch, and the number of its batch in a Loader's epoch.

    ``batch`` is None where another DataLoader makes the batches.
    """

    epoch: int
    batch: int | None

    def __new__(cls, number: int, epoch: int, batch: int | None = None) -> ItemNumber:
        """The number itself is the integer."""
        item = super().__new__(cls, number)
        item.epoch, item.batch = epoch, batch
        return item

    def __reduce__(self) -> tuple[Any, ...]:
        return ItemNumber, (int(self), self.epoch, self.batch)


class Damaged(NamedTuple):
    """In place of an item: the number of its record in the data set,
    its fault, and the words for a warning.
    """

    number: int
    fault: RecordFault
    words: str


class LoadedBatch(NamedTuple):
    """A worker's message to its Loader: the batch, or None;
    the damaged items that it lacks; or its error.
    """

    number: int
    batch: Any
    damaged: Sequence[Damaged] = ()
    error: Any = None


@dataclass(frozen=True)
class ItemSettings:
    """The settings that a framework keeps with the data set when it makes a Loader again."""

    seed: int
    skips: bool
    ranks: tuple[int, int] | None
    device: DeviceSettings | None = None


class BatchItems(list[Any]):
    """The items of a batch, the numbers by which they were requested,
    and the error of one of them.
    """

    numbers: Sequence[ItemNumber] = ()
    seed: int = 0
    error: Any = None


class Seeded(Dataset[Any]):
    """The items of a data set, with random numbers seeded by epoch and index.

    Its length, its attributes, and its items by plain numbers are those of the data set.
    """

    def __init__(self, dataset: Any, settings: ItemSettings) -> None:
        self.dataset = dataset
        self.settings = settings
        self.sampler: Any = None

    def set_epoch(self, epoch: int) -> None:
        """Set the sampler's epoch: a resumed loader of accelerate reaches the data set alone."""
        self.sampler.set_epoch(epoch)

    def __getstate__(self) -> dict[str, Any]:
        """Everything that a worker needs."""
        return {**vars(self), "sampler": None}

    def __repr__(self) -> str:
        return repr(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dataset":  # asked while it is unpickled
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, ItemNumber):
            return self.__getitems__([number])[0]
        return self.dataset[number]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """The items of a batch; the random numbers of the process stay as they were."""
        items = BatchItems()
        items.numbers = [number for number in numbers if isinstance(number, ItemNumber)]
        if len(items.numbers) < len(numbers):  # plain numbers of somebody else's sampler
            return [self.dataset[number] for number in numbers]
        if self.settings.device is not None:
            raise UsageError(
                "the data set of a Loader with decode=... is used by another DataLoader",
                "expected the Loader itself, which decodes the images",
                "iterate over the Loader: with accelerate, give Loader rank and world, "
                "and don't prepare it",
            )
        items.seed = self.settings.seed
        with own_random_numbers():
            try:
                for number in items.numbers:
                    seed_all(f"{items.seed} {number.epoch} {int(number)}")
                    items.append(self._item(int(number)))
            except Exception as error:
                if not _is_of_loader(items.numbers):
                    raise
                items.error = portable(error)
        return items

    def _item(self, number: int) -> Any:
        """One item; of a damaged record, what is known about it, or its error."""
        try:
            return self.dataset[number]
        except DamagedRecordError as error:
            if not self.settings.skips:
                raise with_choice(error, "Loader") from error
            return Damaged(number, error.fault, error.in_short)


class BatchCollate:
    """A collate function whose random numbers are seeded by the epoch and the indices of the
    batch's items.

    Damaged items are left out. A Loader gets a LoadedBatch, any other DataLoader the batch itself.
    """

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, items: list[Any]) -> Any:
        """The batch of the items that ``Seeded`` gives."""
        if not isinstance(items, BatchItems):
            return self.collate(items)
        damaged = [item for item in items if isinstance(item, Damaged)]
        if not _is_of_loader(items.numbers):
            return self._for_others(items, damaged)
        batch, error = None, items.error
        if error is None:
            try:
                batch = self._batch(items)
            except Exception as failure:  # noqa: BLE001 - the Loader raises it
                error = portable(failure)
        return LoadedBatch(items.numbers[0].batch or 0, batch, damaged, error)

    def _batch(self, items: BatchItems) -> Any:
        """The batch of the sound items, or None."""
        sound = [item for item in items if not isinstance(item, Damaged)]
        if not sound:
            return None
        with own_random_numbers():
            seed_all(f"batch {items.seed} {items.numbers[0].epoch} {list(map(int, items.numbers))}")
            return self.collate(sound)

    def _for_others(self, items: BatchItems, damaged: Sequence[Damaged]) -> Any:
        """The batch; another DataLoader can't leave it out, nor count what it lacks."""
        for item in damaged:
            warnings.warn(f"left out: {item.words}", stacklevel=2)
        if len(damaged) == len(items):
            expected = (
                "expected at least one sound record: only imagenet_prep's Loader can skip a batch"
            )
            remedy = "give the DataLoader itself a larger batch_size (it doesn't take the Loader's)"
            raise empty_batch(len(damaged), "a batch", expected, remedy)
        return self._batch(items)


def empty_batch(count: int, where: str, expected: str, remedy: str) -> InputError:
    """The error of a batch that must come, whose records are all damaged."""
    what = f"{where} has {number_of(count, 'damaged record')} and no other"
    hint = f"{remedy}, or repair the records that the warnings name"
    return InputError(what, expected, hint)


def _is_of_loader(numbers: Sequence[ItemNumber]) -> bool:
    return bool(numbers) and numbers[0].batch is not None


def portable(error: Exception) -> Any:
    """An error as it can be sent from a worker:
    this package's as it is, any other by its traceback.
    """
    if isinstance(error, StopIteration):  # raised by a Loader's iterator, it would end the epoch
        error = RuntimeError(f"a batch can't be made: {error!r}")
    worker = get_worker_info()
    if worker is None or isinstance(error, PrepError):
        return error
    error_info = (type(error), error, error.__traceback__)
    return ExceptionWrapper(error_info, f"in DataLoader worker process {worker.id}")  # type: ignore[no-untyped-call]


def seed_of(text: str) -> int:
    """A seed of 64 bits that a text decides."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def seed_all(text: str) -> None:
    """Seed the random numbers of torch, random and numpy.random by a text."""
    seed = seed_of(text)
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextlib.contextmanager
def own_random_numbers() -> Iterator[None]:
    """Within, random numbers may be seeded: the process has its own again afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
