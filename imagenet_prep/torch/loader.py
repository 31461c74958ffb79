"""Loader: batches of one rank, shuffled, divided among ranks, and resumed."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import Any

import torch.distributed
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Sampler

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.reading.left_out import LeftOut, OnDamagedRecord, check_policy
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.text import number_of
from imagenet_prep.torch.arguments import shown, whole
from imagenet_prep.torch.batches import Damaged, Seeded, WithoutDamaged, begin_worker, collate, collate_channels_last
from imagenet_prep.torch.epoch_orders import epoch_order, sampled_order

_Before = list[tuple[int, int]]
"""Earlier parts of an epoch: numbers of ranks, and the records that each of them was given."""


class Loader:
    """Batches of one rank, epoch after epoch: iterate over it once per epoch.

    It accepts any map-style data set: an ImageDataset, a Subset or slice of it, or your own.

    With ``shuffle``, each epoch has its own order, the same on all ranks. Each rank takes its part of it: no record
    occurs twice. Shards are read a few at a time (``window``): spinning disks and network storage are read
    sequentially.

    ``state_dict()`` holds the epoch and the number of batches that the latest iterator gave. A new Loader that gets it
    by ``load_state_dict`` continues with the next record, whatever its ``num_workers``, ``world`` and ``batch_size``.
    With another world or batch size, the records that no rank was given are divided again, and batches of the rest of
    that epoch are counted from 0. Every other ``iter()`` starts the epoch again: after a ``break`` the same one, unless
    ``set_epoch`` chooses another.

    Random numbers of torch, random and numpy.random are seeded for each item, from ``seed``, the epoch and the item's
    number. So a record's augmentation in an epoch is the same in every run, whatever the workers, ranks and batches.

    Args:
        dataset: the images. All records of a data set other than ImageDataset are mixed, whatever the ``window``.
        batch_size: images per batch.
        shuffle: whether to shuffle, for training; otherwise records come in order.
        window: shards that are read at a time.
        seed: any number from 0 up, the same on all ranks.
        rank: one of ``world``; None: from torch.distributed, if it is in use.
        world: the number of ranks.
        drop_last: drop an incomplete batch of each rank; None: if shuffled. Otherwise the last batch of a rank is
            shorter. If the number of records is not a multiple of ``world``, the last records occur twice, as they do
            with torch.utils.data.DistributedSampler: all ranks have equally many batches.
        sampler: numbers of the records in the order of an epoch, in place of ``shuffle`` and ``window``. It is asked
            once per epoch, with PyTorch's random numbers seeded by ``seed`` and epoch: all ranks divide the same order,
            and a resumed epoch has it too. Random numbers from elsewhere can't be resumed.
        channels_last: each batch of images is in torch.channels_last; its shape stays the same.
        on_damaged: "raise" the error of a damaged record or image, or "skip" it: its batch is smaller by one, all other
            batches stay as they are, and so do ``len`` and states. ``skipped`` counts, and a warning names each once. A
            batch that is left without an image does not come; with several ranks, which must have equally many batches,
            it is an error.
        options: of torch.utils.data.DataLoader: num_workers, pin_memory, persistent_workers, collate_fn, ... A worker
            keeps freed memory, and then calls your worker_init_fn, if there is one.

    Raises:
        UsageError: a setting is invalid, images of a batch have different sizes, there are too few records for one
            batch, or a state is of another data set or of other settings.
        DamagedRecordError: a record is damaged, or its image.
    """

    _is_loaded = False
    _latest: object = None

    def __init__(  # noqa: PLR0913 - options of the public interface, by keyword
        self,
        dataset: Any,
        batch_size: int,
        *,
        shuffle: bool = True,
        window: int = 16,
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        drop_last: bool | None = None,
        sampler: Iterable[int] | None = None,
        channels_last: bool = False,
        on_damaged: OnDamagedRecord = "raise",
        **options: Any,
    ) -> None:
        check_policy("Loader", on_damaged)
        self.rank, self.world = _find_rank(rank, world)
        _refuse_flags(options, shuffle=shuffle, drop_last=drop_last, channels_last=channels_last)
        _refuse_other_data(dataset)
        _refuse_other_samplers(sampler, options)
        self.dataset, self._sampler = dataset, sampler
        self.epoch = self.given = 0
        self._before: _Before = []  # the parts of the current epoch that other worlds were given
        self._settings: dict[str, Any] = {
            "records": len(dataset if sampler is None else sampler),  # type: ignore[arg-type]
            "batch_size": whole("Loader(batch_size=", batch_size, 1),
            "shuffle": shuffle,
            "window": whole("Loader(window=", window, 1),
            "seed": whole("Loader(seed=", seed, 0),
            "world": self.world,
            "drop_last": shuffle if drop_last is None else drop_last,
            "sampler": None if sampler is None else type(sampler).__name__,
        }
        if (count := self._settings["records"]) and not len(self):
            what = f"{number_of(count, 'record')} for {number_of(self.world, 'rank')}: no batch of {batch_size}"
            raise UsageError(what, "expected enough for one", "choose a smaller batch_size, or drop_last=False")
        options["worker_init_fn"] = partial(begin_worker, options.get("worker_init_fn"))
        options.setdefault("collate_fn", collate_channels_last if channels_last else collate)
        if skips := on_damaged == "skip":
            options["collate_fn"] = WithoutDamaged(options["collate_fn"])
        self._skips, self._left_out = skips, LeftOut()
        self._place: tuple[int, int, _Before] = (0, 0, [])  # of the next iterator: epoch, batches given, and before
        seeded = Seeded(dataset, self._settings["seed"], skips=skips)
        self._loader = DataLoader(seeded, batch_sampler=_Batches(self), **options)

    def __len__(self) -> int:
        """The number of batches in the epoch, including those given before it was resumed."""
        return self._count_batches(self._before, self.world, self._settings["batch_size"])

    @property
    def sampler(self) -> Loader:
        """The object whose ``set_epoch`` Lightning calls before each epoch."""
        return self

    def __iter__(self) -> Iterator[Any]:
        # runs when the first batch is asked for: Lightning calls set_epoch between iter() and then
        if not self._is_loaded and self.given and self.given >= len(self):
            self.set_epoch(self.epoch + 1)  # every batch was given, though nobody asked for one more
        epoch, given, before = (self.epoch, self.given, self._before) if self._is_loaded else (self.epoch, 0, [])
        self._is_loaded = False
        self._place = epoch, given, before
        self._latest = mine = object()
        for loaded in self._loader:
            given += 1
            self.epoch, self.given, self._before = epoch, given, before
            batch = self._without_damaged(*loaded) if self._skips else loaded
            if batch is None and self._skips:
                continue
            yield batch
            if self._latest is not mine and self._loader.persistent_workers:
                raise UsageError("a later iterator has the workers", "expected one at a time with persistent_workers")
        self.epoch, self.given, self._before = epoch + 1, 0, []

    @property
    def skipped(self) -> Counter[str]:
        """The number of damaged records that this Loader left out of batches so far, each counted once.

        By fault: "checksum", if the bytes of the record are damaged; "image", if they are not, but the image can't be
        decoded; "record", if it is not an Example.
        """
        return self._left_out.counts

    def _without_damaged(self, batch: Any, damaged: Sequence[Damaged]) -> Any:
        """A batch, or None if all of it is damaged; counts what it lacks."""
        for each in damaged:
            self._left_out.add(each.number, each.fault, each.words)
        if batch is None and self.world > 1:
            what = f"a batch of rank {self.rank} has {number_of(len(damaged), 'damaged record')} and no other"
            hint = "mend the set with imagenet-prep repair, or choose a larger batch_size"
            raise InputError(what, f"expected one sound record: all of {self.world} ranks wait for a batch", hint)
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Start this epoch next; the current one keeps its place."""
        if epoch != self.epoch or (self.given >= len(self) and not self._is_loaded):
            self.epoch, self.given, self._before = epoch, 0, []

    def state_dict(self) -> dict[str, Any]:
        """The state that a new Loader needs to continue from here."""
        return {"epoch": self.epoch, "given": self.given, "before": self._before, **self._settings}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the place of ``state_dict``."""
        if not isinstance(state, Mapping):
            raise UsageError(f"the state {shown(state)}", "expected what state_dict gives")
        for name, value in self._settings.items():
            if state.get(name) != value and name not in ("world", "batch_size"):
                what = f"the state is of a Loader with {name} {state.get(name)}, this one has {value}"
                raise UsageError(what, "expected the same data set and settings", "make the Loader with those")
        epoch, given, world, size = (
            whole(f"the state: {name} ", state.get(name), least)
            for name, least in (("epoch", 0), ("given", 0), ("world", 1), ("batch_size", 1))
        )
        before: _Before = [(each[0], each[1]) for each in state.get("before", [])]
        if given > (count := self._count_batches(before, world, size)):
            raise UsageError(f"the state: given {given}", f"expected at most the {count} batches of an epoch")
        if (world, size) != (self.world, self._settings["batch_size"]) and given:
            before, given = [*before, (world, given * size)], 0
        self.epoch, self.given, self._before = epoch, given, before
        self._is_loaded = True

    def _batches(self, epoch: int, given: int, before: _Before) -> Iterator[list[Any]]:
        """The epoch, and the numbers of the records, of each remaining batch of an epoch."""
        size, order = self._settings["batch_size"], self._left(self._order(epoch), before)
        count = self._of_a_rank(len(order), self.world)
        first = self.rank * count
        for at in range(given * size, self._count_batches(before, self.world, size) * size, size):
            yield [epoch, [int(order[(first + k) % len(order)]) for k in range(at, min(at + size, count))]]

    def _of_a_rank(self, count: int, world: int) -> int:
        return int(count // world if self._settings["drop_last"] else -(-count // world))

    def _count_batches(self, before: _Before, world: int, size: int) -> int:
        count = self._of_a_rank(len(self._left(range(self._settings["records"]), before)), world)
        return int(count // size if self._settings["drop_last"] else -(-count // size))

    def _left(self, order: Sequence[int], before: _Before) -> Sequence[int]:
        """The records of an epoch that no rank of other worlds was given, in order."""
        for world, given in before:
            count = self._of_a_rank(len(order), world)
            stops = (min((rank + 1) * count, len(order)) for rank in range(world))
            left = [order[rank * count + given : stop] for rank, stop in enumerate(stops)]
            order = [number for part in (*left, order[world * count :]) for number in part]
        return order

    def _order(self, epoch: int) -> Any:
        count, seed = self._settings["records"], self._settings["seed"]
        if self._sampler is not None:
            order = sampled_order(self._sampler, seed=seed, epoch=epoch)
            if len(order) != count:
                raise UsageError(f"the sampler gave {len(order)} numbers, its length is {count}")
            return order
        if not self._settings["shuffle"]:
            return range(count)
        records = getattr(self.dataset, "records", self.dataset)
        starts = records.starts if isinstance(records, RecordSequence) else [0, count]
        return epoch_order(starts, seed=seed, epoch=epoch, window=self._settings["window"])


def _find_rank(rank: int | None, world: int | None) -> tuple[int, int]:
    """The rank and the number of ranks: as given, or from torch.distributed."""
    in_use = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = rank if rank is not None else torch.distributed.get_rank() if in_use else 0
    world = world if world is not None else torch.distributed.get_world_size() if in_use else 1
    if whole("Loader(rank=", rank, 0) >= whole("Loader(world=", world, 1):
        raise UsageError(f"Loader(rank={rank}, world={world})", "expected a rank below world")
    return operator.index(rank), operator.index(world)


def _refuse_flags(options: Mapping[str, Any], **flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool) and (name, value) != ("drop_last", None):
            raise UsageError(f"Loader({name}={shown(value)})", "expected True or False")
    if flags["channels_last"] and "collate_fn" in options:
        raise UsageError("Loader(channels_last=True, collate_fn=...)", "expected one of both")


def _refuse_other_data(dataset: object) -> None:
    is_map_style = isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")
    if isinstance(dataset, str | IterableDataset) or not is_map_style:
        hint = "Loader(ImageDataset(imagenet_prep.open(folder, 'train'), transform), batch_size)"
        raise UsageError(f"Loader({shown(dataset)})", "expected a map-style data set", hint)


def _refuse_other_samplers(sampler: object, options: Mapping[str, Any]) -> None:
    if "batch_sampler" in options:
        raise UsageError("Loader(batch_sampler=...)", "Loader makes the batches", "give it a sampler")
    expected = ""
    if sampler is not None and not (isinstance(sampler, Iterable) and isinstance(sampler, Sized)):
        expected = "expected numbers of records, and a length"
    elif isinstance(sampler, DistributedSampler):
        expected = "Loader divides the records among ranks itself: leave the sampler out"
    elif getattr(sampler, "generator", None) is not None:
        expected = "its generator can't be resumed: make the sampler without, Loader seeds it"
    if expected:
        raise UsageError(f"Loader(sampler={shown(sampler)})", expected)


class _Batches(Sampler[list[Any]]):
    """The sampler of the remaining batches, for DataLoader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[Any]]:
        return self._loader._batches(*self._loader._place)
