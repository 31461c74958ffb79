"""Loader: batches of an ImageDataset, shuffled, divided among ranks, and resumable in the middle of an epoch."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset, Sampler

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.shard import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Sample = tuple[Any, int]


class ImageDataset(Dataset[Sample]):
    """``(image, label)`` of every record: ``ImageDataset(imagenet_prep.open("/data/imagenet", "train"), transform)``.

    An image is a uint8 tensor of the shape (3, height, width) in RGB, with the same pixels as Pillow's. ``transform``
    prepares it for training (those of torchvision.transforms.v2 accept it directly).

    LABELS COUNT FROM 0: 0 to 999 for ImageNet, whose records say 1 to 1000. The first class of every set is 0, whatever
    its number in the records (``records.first_label``).

    Args:
        records: the set, or a part of it.
        transform: a function from an image to an item of a batch; None: the image itself.
        min_side: decode at 1/2, 1/4 or 1/8 if the shorter side keeps at least this many pixels: up to four times as
            fast, but THE PIXELS DIFFER from those of the whole image made smaller. None: decode in full.

    Raises:
        InputError: a record is damaged or holds no image, or its label is below that of the first class.
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
        """Several samples at once, as PyTorch's DataLoader requests them."""
        return [self._sample(record) for record in self.records.__getitems__(indices)]

    def _sample(self, record: Record) -> Sample:
        label = record.label - self.records.first_label
        if label < 0:
            where = f"{record.shard}: record {record.number} at byte {record.offset} has label {record.label}"
            raise InputError(where, f"expected {self.records.first_label} or more", "set first_label of the records")
        image = torch.from_numpy(record.array(self.min_side)).permute(2, 0, 1)
        return (image if self.transform is None else self.transform(image)), label


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt (malloc.h), in bytes: free memory kept at the end, and the least block with a map of its own."""


class Loader:
    """Batches of one rank, epoch after epoch: iterate over it once per epoch.

    With ``shuffle``, each epoch has its own order, the same on all ranks. Each rank takes its part of it: no record
    occurs twice. Shards are read a few at a time (``window``): spinning disks and network storage are read
    sequentially.

    ``state_dict()`` holds the epoch and the number of batches that the latest iterator gave. A new Loader that gets it
    by ``load_state_dict`` continues with the next record, whatever its ``num_workers``. Every other ``iter()`` starts
    the epoch again: after a ``break`` the same one, unless ``set_epoch`` chooses another.

    Args:
        dataset: the images.
        batch_size: images per batch.
        shuffle: whether to shuffle, for training; otherwise records come in order.
        window: shards that are read at a time.
        seed: any number from 0 up, the same on all ranks.
        rank: one of ``world``; None: from torch.distributed, if it is in use.
        world: the number of ranks.
        drop_last: drop an incomplete batch of each rank; None: if shuffled. Otherwise the last batch of a rank is
            shorter. If the number of records is not a multiple of ``world``, the last records occur twice, as they do
            with torch.utils.data.DistributedSampler: all ranks have equally many batches.
        options: of torch.utils.data.DataLoader: num_workers, pin_memory, persistent_workers, collate_fn, ... A worker
            keeps freed memory, and then calls your worker_init_fn, if there is one.

    Raises:
        UsageError: a number is invalid, there are too few records for one batch, or a state is of another data set or
            of other settings.
    """

    def __init__(  # noqa: PLR0913 - options of the public interface, by keyword
        self,
        dataset: ImageDataset,
        batch_size: int,
        *,
        shuffle: bool = True,
        window: int = 16,
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        drop_last: bool | None = None,
        **options: Any,
    ) -> None:
        in_use = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = rank if rank is not None else torch.distributed.get_rank() if in_use else 0
        self.world = world if world is not None else torch.distributed.get_world_size() if in_use else 1
        if not (0 <= self.rank < self.world and batch_size > 0 and window > 0 and seed >= 0):
            given = f"batch_size {batch_size}, window {window}, seed {seed}, rank {self.rank} of {self.world}"
            raise UsageError(f"a Loader of {given}", "expected a rank below world, and valid numbers")
        self.dataset = dataset
        self.epoch = 0
        self.given = 0
        self._settings = {
            "records": len(dataset),
            "batch_size": batch_size,
            "shuffle": shuffle,
            "window": window,
            "seed": seed,
            "world": self.world,
            "drop_last": shuffle if drop_last is None else drop_last,
        }
        if len(dataset) and not len(self):
            what = f"{number_of(len(dataset), 'record')} for {number_of(self.world, 'rank')}: no batch of {batch_size}"
            raise UsageError(what, "expected enough for one", "choose a smaller batch_size, or drop_last=False")
        begin = partial(_begin, options.pop("worker_init_fn", None))
        self._is_loaded = False
        self._place = (0, 0)  # epoch and batches given, for the next iterator
        self._latest: object = None
        self._loader = DataLoader(dataset, batch_sampler=_Batches(self), worker_init_fn=begin, **options)

    def __len__(self) -> int:
        """The number of batches in an epoch, including those given before it was resumed."""
        size, count = self._settings["batch_size"], self._of_a_rank()
        return count // size if self._settings["drop_last"] else -(-count // size)

    def __iter__(self) -> Iterator[Any]:
        first = self.given if self._is_loaded else 0
        self._is_loaded = False
        return self._iterate(self.epoch, first)

    def _iterate(self, epoch: int, given: int) -> Iterator[Any]:
        self._place = epoch, given
        self._latest = mine = object()
        for batch in self._loader:
            given += 1
            self.epoch, self.given = epoch, given
            yield batch
            if self._latest is not mine and self._loader.persistent_workers:
                raise UsageError("a later iterator has the workers", "expected one at a time with persistent_workers")
        self.epoch, self.given = epoch + 1, 0

    def set_epoch(self, epoch: int) -> None:
        """Start this epoch next; the current one keeps its place."""
        if epoch != self.epoch:
            self.epoch, self.given = epoch, 0

    def state_dict(self) -> dict[str, Any]:
        """The state that a new Loader needs to continue from here."""
        return {"epoch": self.epoch, "given": self.given, **self._settings}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the place of ``state_dict``."""
        for name, value in self._settings.items():
            if state.get(name) != value:
                what = f"the state is of a Loader with {name} {state.get(name)}, this one has {value}"
                raise UsageError(what, "expected the same data set and settings", "make the Loader with those")
        self.epoch, self.given = state["epoch"], state["given"]
        self._is_loaded = True

    def _batches(self, epoch: int, given: int) -> Iterator[list[int]]:
        """The numbers of the records in each remaining batch of an epoch."""
        size, count = self._settings["batch_size"], self._of_a_rank()
        order = self._order(epoch)
        first = self.rank * count
        for at in range(given * size, len(self) * size, size):
            yield [int(order[(first + k) % len(order)]) for k in range(at, min(at + size, count))]

    def _of_a_rank(self) -> int:
        count, world = self._settings["records"], self._settings["world"]
        return int(count // world if self._settings["drop_last"] else -(-count // world))

    def _order(self, epoch: int) -> Any:
        if not self._settings["shuffle"]:
            return range(len(self.dataset))
        settings = {name: self._settings[name] for name in ("seed", "window")}
        return epoch_order(self.dataset.records.starts, epoch=epoch, **settings)


def _begin(then: Callable[[int], None] | None, number: int) -> None:
    """Let a worker keep up to 128 MiB of freed memory: otherwise the system maps new pages for each image.

    It affects glibc's allocator only; others ignore it, or do so by themselves.
    """
    with contextlib.suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the largest allowed value
        allocator.mallopt(_M_TRIM_THRESHOLD, 128 << 20)
    if then is not None:
        then(number)


class _Batches(Sampler[list[int]]):
    """The sampler of the remaining batches, for DataLoader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[int]]:
        return self._loader._batches(*self._loader._place)

    def __len__(self) -> int:
        return len(self._loader) - self._loader._place[1]


def epoch_order(starts: Sequence[int], *, seed: int, epoch: int, window: int) -> NDArray[np.int64]:
    """The numbers of all records, each once: shards in random order, and those of ``window`` shards well mixed.

    A spinning disk or network storage then reads ``window`` shards at a time and not all of them at once. The same
    arguments give the same order with any version of NumPy: it provides random bits, which are sorted.

    Args:
        starts: the number of each shard's first record, then the total.
        seed: any number from 0 up.
        epoch: any number from 0 up; each has an order of its own.
        window: a number of shards, from 1 up.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))

    def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers[np.argsort(bits.random_raw(len(numbers)), kind="stable")]

    shards = mixed(np.arange(len(starts) - 1))
    ordered = [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(shards), window):
        several = [np.arange(starts[shard], starts[shard + 1]) for shard in shards[first : first + window]]
        ordered.append(mixed(np.concatenate(several)))
    return np.concatenate(ordered)
