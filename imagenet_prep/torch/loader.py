"""Loader: batches of an ImageDataset, shuffled, divided among ranks, and resumed in the middle of an epoch."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch.distributed
from torch.utils.data import DataLoader, Sampler

from imagenet_prep.errors import UsageError
from imagenet_prep.text import number_of
from imagenet_prep.torch.image_dataset import ImageDataset

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of mallopt (malloc.h), in bytes: what may lie free at the end, and from which size on a block has its own map."""


class Loader:
    """Batches of one rank, epoch after epoch: iterate over it once an epoch.

    Shuffled, each epoch has an order of its own, the same on all ranks, of which each takes its part: no record comes
    twice. Shards are read a few at a time (``window``): disks that turn, and those behind a network, stay sequential.

    ``state_dict()`` tells how many batches of which epoch were given; a new Loader that gets it by ``load_state_dict``
    goes on with the next record, whatever its ``num_workers``.

    Args:
        dataset: the images.
        batch_size: images a batch.
        shuffle: for training; else records come in their order.
        window: shards that are read at a time.
        seed: any number from 0 on, the same on all ranks.
        rank: of ``world``; None: as torch.distributed says, if it is in use.
        world: the number of ranks.
        drop_last: leave out what is not a full batch for each rank; None: if shuffled. Kept, the last batch of a rank
            is shorter, and the last records of a set that doesn't divide by ``world`` come twice, as they do with
            torch.utils.data.DistributedSampler: all ranks have equally many batches.
        options: of torch.utils.data.DataLoader: num_workers, pin_memory, persistent_workers, collate_fn, ... A worker
            keeps the memory that it freed, and then calls your worker_init_fn, if there is one.

    Raises:
        UsageError: a number can't be, there is not one full batch, or a state is not one of this data set and these
            settings.
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
            raise UsageError(f"a Loader of {given}", "expected a rank below world, and numbers that can be")
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
            raise UsageError(what, "expected enough for one", "name a smaller batch_size, or drop_last=False")
        begin = partial(_begin, options.pop("worker_init_fn", None))
        self._loader = DataLoader(dataset, batch_sampler=_Batches(self), worker_init_fn=begin, **options)

    def __len__(self) -> int:
        """The number of batches in an epoch, those that were given before it was resumed among them."""
        size, count = self._settings["batch_size"], self._of_a_rank()
        return count // size if self._settings["drop_last"] else -(-count // size)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            self.given += 1
            yield batch
        self.epoch, self.given = self.epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """What a new Loader needs to go on from here."""
        return {"epoch": self.epoch, "given": self.given, **self._settings}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""
        for name, value in self._settings.items():
            if state.get(name) != value:
                what = f"the state is of a Loader with {name} {state.get(name)}, this one has {value}"
                raise UsageError(what, "expected the same data set and settings", "make the Loader with those")
        self.epoch, self.given = state["epoch"], state["given"]

    def batches(self) -> Iterator[list[int]]:
        """The numbers of the records in each batch that is left of this epoch."""
        size, count = self._settings["batch_size"], self._of_a_rank()
        order = self._order()
        first = self.rank * count
        for at in range(self.given * size, len(self) * size, size):
            yield [int(order[(first + k) % len(order)]) for k in range(at, min(at + size, count))]

    def _of_a_rank(self) -> int:
        count, world = self._settings["records"], self._settings["world"]
        return int(count // world if self._settings["drop_last"] else -(-count // world))

    def _order(self) -> Any:
        if not self._settings["shuffle"]:
            return range(len(self.dataset))
        settings = {name: self._settings[name] for name in ("seed", "window")}
        return epoch_order(self.dataset.records.starts, epoch=self.epoch, **settings)


def _begin(then: Callable[[int], None] | None, number: int) -> None:
    """Let a worker keep what it frees, up to 128 MiB: else the system gives it each image's pages anew.

    glibc's allocator only; others ignore it, or do so by themselves.
    """
    with contextlib.suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        allocator.mallopt(_M_TRIM_THRESHOLD, 128 << 20)
    if then is not None:
        then(number)


class _Batches(Sampler[list[int]]):
    """What DataLoader asks for the batches that are left."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[int]]:
        return self._loader.batches()

    def __len__(self) -> int:
        return len(self._loader) - self._loader.given


def epoch_order(starts: Sequence[int], *, seed: int, epoch: int, window: int) -> NDArray[np.int64]:
    """The numbers of all records, each once: shards in random order, and those of ``window`` shards well mixed.

    A disk that turns, or one behind a network, then reads ``window`` shards at a time and not all of them at once. The
    same arguments give the same order, whatever the version of NumPy: it gives random bits, and they are sorted.

    Args:
        starts: the number of each shard's first record, and behind them that of all records.
        seed: any number from 0 on.
        epoch: any number from 0 on; each has an order of its own.
        window: a number of shards, from 1 on.
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
