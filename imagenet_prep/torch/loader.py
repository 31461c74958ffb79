"""Loader: batches of an ImageDataset, shuffled, divided among ranks, and resumable in the middle of an epoch."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Sampler, Subset, default_collate

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

    ``[i:j]`` is a data set of those images.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it.
        transform: a function from an image to an item of a batch; None: the image itself.
        min_side: decode at 1/2, 1/4 or 1/8 if the shorter side keeps at least this many pixels: up to four times as
            fast, but THE PIXELS DIFFER from those of the whole image made smaller. None: decode in full.

    Raises:
        UsageError: an argument has the wrong type: records are what ``open`` gives.
        InputError: a record is damaged or holds no image, or its label is below that of the first class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transform: Callable[[torch.Tensor], Any] | None = None,
        *,
        min_side: int | None = None,
    ) -> None:
        if not isinstance(records, RecordSequence):
            folder = os.fspath(records) if isinstance(records, str | os.PathLike) else "/data/imagenet"
            hint = f"ImageDataset(imagenet_prep.open({folder!r}, 'train'))"
            raise UsageError(f"ImageDataset({_shown(records)})", "expected records that open gives", hint)
        if transform is not None and not callable(transform):
            raise UsageError(f"ImageDataset(transform={_shown(transform)})", "expected a function of an image")
        self.records = records
        self.transform = transform
        self.min_side = None if min_side is None else _whole("ImageDataset(min_side=", min_side, 1)

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
        image = torch.from_numpy(record.array(self.min_side)).permute(2, 0, 1)
        return (image if self.transform is None else self.transform(image)), label


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``; raises UsageError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        end = ")" if "(" in name else ""
        raise UsageError(f"{name}{_shown(value)}{end}", f"expected a whole number of at least {least}")
    return number


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt (malloc.h), in bytes: free memory kept at the end, and the least block with a map of its own."""


class Loader:
    """Batches of one rank, epoch after epoch: iterate over it once per epoch.

    It accepts any map-style data set: an ImageDataset, a Subset or slice of it, or your own.

    With ``shuffle``, each epoch has its own order, the same on all ranks. Each rank takes its part of it: no record
    occurs twice. Shards are read a few at a time (``window``): spinning disks and network storage are read
    sequentially.

    ``state_dict()`` holds the epoch and the number of batches that the latest iterator gave. A new Loader that gets it
    by ``load_state_dict`` continues with the next record, whatever its ``num_workers``. Every other ``iter()`` starts
    the epoch again: after a ``break`` the same one, unless ``set_epoch`` chooses another.

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
        options: of torch.utils.data.DataLoader: num_workers, pin_memory, persistent_workers, collate_fn, ... A worker
            keeps freed memory, and then calls your worker_init_fn, if there is one.

    Raises:
        UsageError: a setting is invalid, images of a batch have different sizes, there are too few records for one
            batch, or a state is of another data set or of other settings.
    """

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
        **options: Any,
    ) -> None:
        in_use = torch.distributed.is_available() and torch.distributed.is_initialized()
        rank = rank if rank is not None else torch.distributed.get_rank() if in_use else 0
        world = world if world is not None else torch.distributed.get_world_size() if in_use else 1
        self.world = _whole("Loader(world=", world, 1)
        self.rank = _whole("Loader(rank=", rank, 0)
        if self.rank >= self.world:
            raise UsageError(f"Loader(rank={rank}, world={world})", "expected a rank below world")
        for name, value in (("shuffle", shuffle), ("drop_last", False if drop_last is None else drop_last)):
            if not isinstance(value, bool):
                raise UsageError(f"Loader({name}={_shown(value)})", "expected True or False")
        _refuse_other_data(dataset)
        _refuse_other_samplers(sampler, options)
        self.dataset = dataset
        self.epoch = 0
        self.given = 0
        self._sampler = sampler
        self._settings: dict[str, Any] = {
            "records": len(dataset if sampler is None else sampler),  # type: ignore[arg-type]
            "batch_size": _whole("Loader(batch_size=", batch_size, 1),
            "shuffle": shuffle,
            "window": _whole("Loader(window=", window, 1),
            "seed": _whole("Loader(seed=", seed, 0),
            "world": self.world,
            "drop_last": shuffle if drop_last is None else drop_last,
            "sampler": None if sampler is None else type(sampler).__name__,
        }
        count = self._settings["records"]
        if count and not len(self):
            what = f"{number_of(count, 'record')} for {number_of(self.world, 'rank')}: no batch of {batch_size}"
            raise UsageError(what, "expected enough for one", "choose a smaller batch_size, or drop_last=False")
        begin = partial(_begin, options.pop("worker_init_fn", None))
        options.setdefault("collate_fn", _collated)
        self._is_loaded = False
        self._place = (0, 0)  # epoch and batches given, for the next iterator
        self._latest: object = None
        self._loader = DataLoader(dataset, batch_sampler=_Batches(self), worker_init_fn=begin, **options)

    def __len__(self) -> int:
        """The number of batches in an epoch, including those given before it was resumed."""
        size, count = self._settings["batch_size"], self._of_a_rank()
        return int(count // size if self._settings["drop_last"] else -(-count // size))

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
        if not isinstance(state, Mapping):
            raise UsageError(f"the state {_shown(state)}", "expected what state_dict gives")
        for name, value in self._settings.items():
            if state.get(name) != value:
                what = f"the state is of a Loader with {name} {state.get(name)}, this one has {value}"
                raise UsageError(what, "expected the same data set and settings", "make the Loader with those")
        epoch, given = (_whole(f"the state: {name} ", state.get(name), 0) for name in ("epoch", "given"))
        if given > len(self):
            raise UsageError(f"the state: given {given}", f"expected at most the {len(self)} batches of an epoch")
        self.epoch, self.given = epoch, given
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


def _refuse_other_data(dataset: object) -> None:
    is_map_style = isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")
    if isinstance(dataset, str | IterableDataset) or not is_map_style:
        hint = "Loader(ImageDataset(imagenet_prep.open(folder, 'train'), transform), batch_size)"
        raise UsageError(f"Loader({_shown(dataset)})", "expected a map-style data set", hint)


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
        raise UsageError(f"Loader(sampler={_shown(sampler)})", expected)


def _collated(samples: list[Any]) -> Any:
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


def sampled_order(sampler: Iterable[int], *, seed: int, epoch: int) -> list[int]:
    """A sampler's indices for an epoch, with PyTorch's random numbers on the CPU seeded by both and restored."""
    import numpy as np

    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    (number,) = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(number))
        return [int(each) for each in sampler]


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
