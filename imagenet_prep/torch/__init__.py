"""PyTorch: ImageDataset gives pixels and labels; Loader shuffles them, divides them among ranks, and resumes."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import math
import operator
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import Any, NamedTuple, overload

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError("imagenet_prep.torch needs PyTorch: pip install 'imagenet-prep[torch]'", name="torch")

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Sampler, Subset, default_collate

from imagenet_prep.errors import DamagedRecordError, InputError, RecordFault, UsageError
from imagenet_prep.images.pixels import Part
from imagenet_prep.reading.left_out import LeftOut, OnDamagedRecord, check_policy, with_choice
from imagenet_prep.reading.shard import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.text import number_of

__all__ = ["CenterCrop", "Crop", "ImageDataset", "Loader", "RandomResizedCrop"]


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
    its number in the records (``records.first_label``): a label is the ``class_index`` of its record.

    ``[i:j]`` is a data set of those images.

    Args:
        records: the set that ``open`` gives, or a ``shard`` of it.
        transform: a function from an image to an item of a batch; None: the image itself.
        crop: the part of each image to decode, ``RandomResizedCrop(224)`` or ``CenterCrop(224)``; ``transform`` gets it
            as a uint8 tensor (3, 224, 224). None: whole images.
        unlabelled: the label of images without one, such as -1. None: they are an error, which names the line that
            leaves them out.

    Raises:
        UsageError: an argument has the wrong type: records are what ``open`` gives.
        InputError: a record is damaged, holds no image or no label, or its label is below that of the first class.
    """

    def __init__(
        self,
        records: RecordSequence,
        transform: Callable[[torch.Tensor], Any] | None = None,
        *,
        crop: Crop | None = None,
        unlabelled: int | None = None,
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
        self.unlabelled = unlabelled

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
        label = record.class_index
        if label is None:
            label = self.unlabelled
        if label is None:
            raise InputError(f"{record.place} has no label", "expected a label for each image", _WITHOUT_LABEL)
        image = self.crop(record) if self.crop else torch.from_numpy(record.array()).permute(2, 0, 1)
        return (image if self.transform is None else self.transform(image)), label


_WITHOUT_LABEL = (
    "give unlabelled=-1, or leave such images out: "
    "Subset(dataset, [n for n, record in enumerate(dataset.records) if record.label is not None])"
)

# batches ----------------------------------------------------------------------------------------------------------

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt (malloc.h), in bytes: free memory kept at the end, and the least block with a map of its own."""


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
        options["worker_init_fn"] = partial(_begin, options.get("worker_init_fn"))
        options.setdefault("collate_fn", _collated_channels_last if channels_last else _collated)
        if skips := on_damaged == "skip":
            options["collate_fn"] = _WithoutDamaged(options["collate_fn"])
        self._skips, self._left_out = skips, LeftOut()
        self._place: tuple[int, int, _Before] = (0, 0, [])  # of the next iterator: epoch, batches given, and before
        seeded = _Seeded(dataset, self._settings["seed"], skips=skips)
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

    def _without_damaged(self, batch: Any, damaged: Sequence[_Damaged]) -> Any:
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


def _collated_channels_last(samples: list[Any]) -> Any:
    """A batch whose images are laid out by pixel, as they were decoded: nothing is transposed."""
    images = [sample[0] if isinstance(sample, tuple) else None for sample in samples]
    if not all(isinstance(image, torch.Tensor) and image.dim() == 3 for image in images):
        raise UsageError("Loader(channels_last=True)", "expected samples (image, label) whose image is a 3-D tensor")
    batch, *others = _collated([(sample[0].permute(1, 2, 0), *sample[1:]) for sample in samples])
    return [batch.permute(0, 3, 1, 2), *others]


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


class _Damaged(NamedTuple):
    """In place of an item: the number of its record in the data set, its fault, and the words for a warning."""

    number: int
    fault: RecordFault
    words: str


class _WithoutDamaged:
    """A collate function for batches with damaged items: the batch of the others, or None, and those."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, items: list[Any]) -> tuple[Any, list[_Damaged]]:
        damaged = [item for item in items if isinstance(item, _Damaged)]
        sound = [item for item in items if not isinstance(item, _Damaged)]
        return (self._collate(sound) if sound else None), damaged


class _Seeded(Dataset[Any]):
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
            return _Damaged(number, error.fault, error.in_short)


class _Batches(Sampler[list[Any]]):
    """The sampler of the remaining batches, for DataLoader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[Any]]:
        return self._loader._batches(*self._loader._place)


def sampled_order(sampler: Iterable[int], *, seed: int, epoch: int) -> list[int]:
    """A sampler's indices for an epoch, with PyTorch's random numbers on the CPU seeded by both and restored."""
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
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))

    def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers[np.argsort(bits.random_raw(len(numbers)), kind="stable")]

    shards = mixed(np.arange(len(starts) - 1))
    ordered = [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(shards), window):
        several = [np.arange(starts[shard], starts[shard + 1]) for shard in shards[first : first + window]]
        ordered.append(mixed(np.concatenate(several)))
    return np.concatenate(ordered)
