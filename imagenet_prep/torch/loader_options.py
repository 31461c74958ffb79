"""The options of a Loader, checked and completed, for the DataLoader that it is."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Mapping, Sized
from contextlib import suppress
from functools import partial
from typing import Any

from torch.utils.data import DistributedSampler, IterableDataset

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.storage import first_request
from imagenet_prep.torch.batches import (
    TAKES,
    TAKES_OR_COLLATE,
    BatchCollate,
    Seeded,
    begin_worker,
    collate,
    collate_channels_last,
)


def complete_options(
    options: Mapping[str, Any], dataset: Seeded, *, channels_last: bool
) -> dict[str, Any]:
    """The options for DataLoader, with the functions that a Loader wraps;
    nothing is wrapped twice.
    """
    prepared = dict(options)
    if channels_last and options.get("collate_fn") is not None:
        raise UsageError(
            "Loader(channels_last=True, collate_fn=...)", "expected only one of these options"
        )
    worker_init = options.get("worker_init_fn")
    if not (isinstance(worker_init, partial) and worker_init.func is begin_worker):
        prepared["worker_init_fn"] = partial(begin_worker, worker_init)
    make_batch = options.get("collate_fn") or _usual_collate(dataset, channels_last=channels_last)
    if not isinstance(make_batch, BatchCollate):
        make_batch = BatchCollate(make_batch)
    prepared["collate_fn"] = make_batch
    has_context = prepared.get("multiprocessing_context") is not None
    if prepared.get("num_workers") and not has_context and _must_spawn(dataset):
        prepared["multiprocessing_context"] = "spawn"
    return prepared


def _usual_collate(dataset: Seeded, *, channels_last: bool) -> Callable[[list[Any]], Any]:
    if dataset.settings.device is not None:
        return list  # the images and labels of a batch come already
    return collate_channels_last if channels_last else collate


def _must_spawn(dataset: Seeded) -> bool:
    """Whether forked workers could not read the data set:
    this process used the object store that holds it.
    """
    start_method = multiprocessing.get_start_method(allow_none=True)
    if start_method is None:
        start_method = multiprocessing.get_all_start_methods()[0]
    if start_method != "fork" or not first_request.is_made():
        return False
    with suppress(Exception):  # it can't be pickled: a forked worker then says what to do
        pickled = pickle.dumps(dataset)  # it names the modules of all its classes
        return b"imagenet_prep.storage.object_store" in pickled
    return False


def refuse_flags(options: Mapping[str, Any], **flags: object) -> None:
    """Raise UsageError for a flag that is neither True nor False, and for a generator."""
    for name, value in flags.items():
        if not isinstance(value, bool) and (name, value) != ("drop_last", None):
            raise UsageError(f"Loader({name}={shown(value)})", "expected True or False")
    if options.get("generator") is not None:
        raise UsageError(
            "Loader(generator=...)", "expected seed=..., which decides order and augmentation"
        )


def refuse_other_data(dataset: object, options: Mapping[str, Any]) -> None:
    """Raise UsageError for what is no map-style data set whose items make a batch."""
    is_map_style = isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")
    is_records = isinstance(dataset, RecordSequence) and options.get("collate_fn") is None
    if isinstance(dataset, str | IterableDataset) or not is_map_style or is_records:
        hint = TAKES_OR_COLLATE
        if not is_records:
            folder = dataset if isinstance(dataset, str) else "/data/imagenet"
            hint = f"records = imagenet_prep.open({folder!r}, 'train'); {TAKES}"
        raise UsageError(
            f"Loader({shown(dataset)})",
            "expected a data set that gives samples by their numbers, such as an ImageDataset",
            hint,
        )


def refuse_other_samplers(sampler: object) -> None:
    """Raise UsageError for a sampler that a Loader can't divide among ranks or resume."""
    expected = ""
    if sampler is not None and not (isinstance(sampler, Iterable) and isinstance(sampler, Sized)):
        expected = "expected a list or a sampler of record numbers, which has a length"
    elif isinstance(sampler, DistributedSampler):
        expected = "Loader divides the records among ranks itself: leave the sampler out"
    elif getattr(sampler, "generator", None) is not None:
        expected = "its generator can't be resumed: make the sampler without, Loader seeds it"
    if expected:
        raise UsageError(f"Loader(sampler={shown(sampler)})", expected)
