"""Loader: batches of one rank, shuffled, divided among ranks, and resumed."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import whole
from imagenet_prep.reading.environment import check_rank
from imagenet_prep.reading.left_out import LeftOut, OnDamagedRecord, check_policy
from imagenet_prep.text import number_of
from imagenet_prep.torch.batches import (
    BatchCollate,
    ItemSettings,
    LoadedBatch,
    Seeded,
    empty_batch,
)
from imagenet_prep.torch.device_settings import device_settings
from imagenet_prep.torch.epoch_places import EpochPlace
from imagenet_prep.torch.epoch_sampler import EpochSampler, EpochSettings
from imagenet_prep.torch.loader_options import (
    complete_options,
    refuse_flags,
    refuse_other_data,
    refuse_other_samplers,
)


class Loader(DataLoader[Any]):
    """Batches of one rank, epoch after epoch: iterate over it once per epoch.

    It is a DataLoader of PyTorch, and accepts any map-style data set: an ImageDataset, a Subset or
    slice of it, or your own.

    With ``shuffle``, each epoch has its own order, the same on all ranks. Each rank takes its part
    of it: no record occurs twice. Shards are read a few at a time (``window``): spinning disks and
    network storage are read sequentially.

    ``state_dict()`` holds the epoch and the batches that the latest iterator gave. A new Loader
    that gets it by ``load_state_dict`` continues with the next record, whatever its
    ``num_workers``, ``world`` and ``batch_size``. With another world or batch size, the records
    that no rank was given are divided again, and batches of the rest of that epoch are counted from
    0. Every other ``iter()`` starts the epoch again: after a ``break`` the same one, unless
    ``set_epoch`` chooses another.

    Random numbers of torch, random and numpy.random are seeded for each item and each batch, from
    ``seed``, the epoch and the items' numbers. So augmentation in an epoch is the same in every
    run, whatever the workers and ranks; that of single images also for other batches.

    Workers end with the iterator, or with the Loader if it has persistent_workers; ``close()`` and
    the end of a ``with`` statement end them too. A data set in an object store starts them by
    "spawn": the script's work must be below ``if __name__ == "__main__":``.

    Args:
        dataset: the images. All records of a data set other than ImageDataset are mixed, whatever
            the ``window``.
        batch_size: images per batch.
        shuffle: whether to shuffle, for training; otherwise records come in order.
        window: shards that are read at a time.
        seed: any number from 0 up, the same on all ranks.
        rank: one of ``world``. Without both, each epoch asks torch.distributed, if it is in use
            then; otherwise they are RANK and WORLD_SIZE of the environment, or 0 and 1.
        world: the number of ranks.
        drop_last: drop an incomplete batch of each rank; None: if shuffled. Otherwise the last
            batch of a rank is shorter. If the number of records is not a multiple of ``world``, the
            last rank gets the first records of the order again, as with
            torch.utils.data.DistributedSampler: all ranks have equally many batches.
        sampler: numbers of the records in the order of an epoch, in place of ``shuffle`` and
            ``window``. It is asked once per epoch, with PyTorch's random numbers seeded by ``seed``
            and epoch: all ranks divide the same order, and a resumed epoch has it too. Random
            numbers from elsewhere can't be resumed.
        batch_sampler: for frameworks that make a Loader again, around the batches of a Loader.
        channels_last: each batch of images is in torch.channels_last; its shape stays the same.
        on_damaged: "raise" the error of a damaged record or image, or "skip" it: its batch is
            smaller by one, all other batches stay as they are, and so do ``len`` and states.
            ``skipped`` counts, and a warning names each once. A batch that is left without an image
            does not come; with several ranks, which must have equally many batches, it is an error.
            A batch that raised counts as given: the iterator and a state continue with the next
            one.
        decode: "cuda", or any torch.device: a GPU decodes, crops and resizes the images of an
            ImageDataset with a ``crop`` and no ``transform``, and batches ``[images, labels]`` are
            on it. ``num_workers`` is a number of threads then, 2 is a good one; ``collate_fn`` gets
            the batch. "cpu" does the same on the CPU; "auto" takes the GPU where there is one.
            None: workers decode.
        normalize: with ``decode``, (mean, std) of the channels in a range from 0 to 1.
        dtype: with ``decode``, of the images: uint8, or with ``normalize`` float32. Other floats
            range from 0 to 1.
        options: of torch.utils.data.DataLoader: num_workers, pin_memory, persistent_workers,
            collate_fn, ... A worker keeps freed memory, and then calls your worker_init_fn, if
            there is one. ``in_order=False`` makes states belong to their rank.

    Raises:
        UsageError: a setting is invalid, images of a batch have different sizes, there are too few
            records for one batch, a state is of another data set or of other settings, or ranks
            contradict each other.
        DamagedRecordError: a record is damaged, or its image.
    """

    dataset: Seeded
    sampler: EpochSampler
    batch_sampler: Any
    collate_fn: BatchCollate

    def __init__(  # noqa: PLR0913 - options of the public interface, by keyword
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = True,
        window: int = 16,
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        drop_last: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Any = None,
        channels_last: bool = False,
        on_damaged: OnDamagedRecord = "raise",
        decode: Any = None,
        normalize: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        check_policy("Loader", on_damaged)
        refuse_flags(options, shuffle=shuffle, drop_last=drop_last, channels_last=channels_last)
        refuse_other_data(dataset, options)
        refuse_other_samplers(sampler)
        # a framework that makes a Loader again gives its data set back
        if not isinstance(dataset, Seeded):
            seed = whole("Loader(seed=", seed, 0)
            device = device_settings(dataset, decode, normalize, dtype, channels_last=channels_last)
            channels_last = channels_last and device is None
            ranks = check_rank("Loader", rank, world)
            dataset = Seeded(dataset, ItemSettings(seed, on_damaged == "skip", ranks, device))
        if batch_sampler is None:
            settings = EpochSettings(
                batch_size=whole("Loader(batch_size=", batch_size, 1),
                shuffle=shuffle,
                window=whole("Loader(window=", window, 1),
                drop_last=shuffle if drop_last is None else drop_last,
                in_order=options.get("in_order", True),
            )
            epochs = EpochSampler(dataset, sampler, settings)
            options |= {
                "batch_size": settings.batch_size,
                "sampler": epochs,
                "drop_last": settings.drop_last,
            }
        else:
            epochs = _sampler_within(batch_sampler)
            options["batch_sampler"] = batch_sampler
        self._left_out = LeftOut()
        self._decoded = Counter[str]()
        super().__init__(dataset, **complete_options(options, dataset, channels_last=channels_last))
        # a DataLoader with a batch_sampler has another sampler and no batch_size: the attributes
        # say what is used
        self.batch_sampler.set_epoch = epochs.set_epoch  # called by Trainer when it resumes
        vars(self).update(
            sampler=epochs, batch_size=epochs.settings.batch_size, drop_last=epochs.drop_last
        )
        self._latest: weakref.ref[LoaderIterator] | None = None
        # Lightning records arguments, and fails with a positional batch_size; without a record it
        # reads attributes
        vars(self).pop("__pl_saved_args", None)

    def __len__(self) -> int:
        """The number of batches in the epoch, including those given before it was resumed."""
        self.sampler.check_count()
        with self.sampler.divided():
            return super().__len__()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return LoaderIterator(self)

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the iterator."""
        return {**vars(self), "_latest": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.dataset.sampler = self.sampler  # left out of the pickles for workers

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, and the iterator that has them. A new iterator starts others."""
        iterator = None if self._latest is None else self._latest()
        if iterator is not None:
            iterator.close()
        self._iterator = None

    def _begin(self) -> Iterator[LoadedBatch]:
        """The batches of an epoch, made by workers, or by threads on a device."""
        if self.dataset.settings.device is None:
            return DataLoader.__iter__(self)
        from imagenet_prep.torch.device import DeviceBatches

        return DeviceBatches(
            self.dataset, self.collate_fn, self.num_workers, self._decoded
        ).batches(self.batch_sampler)

    @property
    def rank(self) -> int:
        """This rank."""
        return self.sampler.rank

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.sampler.num_replicas

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self.sampler.epoch

    @property
    def given(self) -> int:
        """The batches of this epoch that were given, since it was divided among these ranks."""
        return self.sampler.place.given

    @property
    def skipped(self) -> Counter[str]:
        """The number of damaged records that this Loader left out of batches so far, each counted
        once.

        By fault: "checksum", if the bytes of the record are damaged; "image", if they are not, but
        the image can't be decoded; "record", if it is not an Example.
        """
        return self._left_out.counts

    @property
    def decoded(self) -> Counter[str]:
        """With ``decode``: images that the "gpu" decoded,
        and those that the "cpu" did, since nvJPEG can't.
        """
        return self._decoded

    def set_epoch(self, epoch: int) -> None:
        """Start this epoch next; the current one keeps its place."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state that a new Loader needs to continue from here."""
        return self.sampler.save_place()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the place of ``state_dict``."""
        self.sampler.load_place(state)


class LoaderIterator(Iterator[Any]):
    """The batches of an epoch; it starts when the first is requested, since Lightning calls
    set_epoch before that.

    It survives the errors of batches. It holds its Loader, and no Loader holds it.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._place = EpochPlace()
        self._batches: Iterator[LoadedBatch] | None = None
        self._is_over = self._is_closed = False

    def __next__(self) -> Any:
        if self._is_closed:
            raise UsageError(
                "this iterator was closed, or its workers failed",
                "expected a new one: iter(loader)",
                "to continue in mid-epoch, call loader.load_state_dict(loader.state_dict()) first",
            )
        while not self._is_over:
            loaded = self._next()
            if loaded is None:
                break
            self._place = self._place.after(loaded.number)
            self._loader.sampler.move(self._place)
            if loaded.error is not None:
                try:
                    _raise(loaded.error)
                finally:  # no cycle of error, traceback and frame: it would keep the workers
                    del loaded
            batch = self._without_damaged(loaded)
            if loaded.batch is not None or not loaded.damaged:
                return batch
        raise StopIteration

    def _next(self) -> LoadedBatch | None:
        """The next message of a worker; None at the end of the epoch."""
        loader = self._loader
        if self._batches is None:
            self._place = loader.sampler.begin()
            loader._latest = weakref.ref(self)
            with loader.sampler.divided(self._place):
                self._batches = loader._begin()
        elif loader.persistent_workers and loader._latest != weakref.ref(self):
            raise UsageError(
                "a later iterator took the workers of this one",
                "expected one iterator at a time with persistent_workers",
                "iterate over the new one",
            )
        with loader.sampler.divided(self._place):
            try:
                loaded = next(self._batches, None)
            except Exception:  # of the workers: DataLoader would skip the batches of one that died
                self.close()
                loader._iterator = None
                raise
            if loaded is None:
                self._end(DataLoader.__len__(loader))
        return loaded

    def _end(self, count: int) -> None:
        if self._place.given < count:
            batches = number_of(count, "batch", "batches")
            raise UsageError(
                f"an epoch ended after {self._place.given} of {batches}",
                "expected all batches",
                "iterate over the Loader as it was made; if you did, report it as a bug of "
                "imagenet-prep",
            )
        self._is_over = True
        self._batches = None
        self._loader.sampler.move(EpochPlace(self._place.epoch + 1))

    def _without_damaged(self, loaded: LoadedBatch) -> Any:
        """The batch; counts what it lacks."""
        loader = self._loader
        for record in loaded.damaged:
            loader._left_out.add(record.number, record.fault, record.words)
        if loaded.batch is None and loaded.damaged and loader.world > 1:
            expected = (
                "expected at least one sound record: with several ranks, no batch can be left out"
            )
            place = f"a batch of rank {loader.rank}"
            remedy = "choose a larger batch_size"
            raise empty_batch(len(loaded.damaged), place, expected, remedy)
        return loaded.batch

    def close(self) -> None:
        """End the epoch's workers; no further batch comes."""
        self._is_closed = not self._is_over
        self._batches = None


def _raise(error: Any) -> None:
    """Raise the error of a batch, which may come from a worker."""
    try:
        raise _from_worker(error) if isinstance(error, ExceptionWrapper) else error
    finally:
        del error


def _from_worker(wrapped: ExceptionWrapper) -> Exception:
    """The error without the frame that makes it: they hold each other,
    and the frame's callers hold the workers.
    """
    try:
        wrapped.reraise()  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - the caller raises it
        return error.with_traceback(None)
    raise AssertionError


def _sampler_within(batch_sampler: object) -> EpochSampler:
    """The sampler of a Loader's batches, which a framework wrapped."""
    sampler = getattr(batch_sampler, "sampler", None)
    if not isinstance(sampler, EpochSampler):
        raise UsageError(
            "Loader(batch_sampler=...)",
            "expected no batch_sampler: Loader makes the batches itself",
            "give it batch_size, and a sampler for an order of your own",
        )
    return sampler
