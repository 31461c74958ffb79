"""Batches of images and labels for training or evaluation, by tf.data; and the features for your
own pipelines.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if importlib.util.find_spec("tensorflow") is None:
    from imagenet_prep.hints import install_extra

    needs = f"imagenet_prep.tensorflow needs TensorFlow: {install_extra('tensorflow')}"
    raise ModuleNotFoundError(needs, name="tensorflow")

import tensorflow as tf

from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.reading.absent_sets import refuse_no_folder
from imagenet_prep.reading.arguments import whole
from imagenet_prep.reading.environment import check_rank, rank_in_environment
from imagenet_prep.reading.left_out import OnDamagedRecord, check_policy
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.state.manifest import find_set, usable_manifest
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tensorflow.damage_skipper import DamageSkipper
from imagenet_prep.tensorflow.epoch_pipeline import EpochPipeline
from imagenet_prep.tensorflow.inception_examples import EVALUATED, NO_LABEL, parse_example
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord import inception

__all__ = ["EVALUATED", "NO_LABEL", "dataset", "feature_spec", "parse_example"]

_DTYPES = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}


def feature_spec(data_dir: str | os.PathLike[str] | None = None, split: str = "") -> dict[str, Any]:
    """The features of the records, for ``tf.io.parse_example``.

    Args:
        data_dir: a set made by imagenet-prep, with any features; None: the fifteen features of
            Inception's records.
        split: the split that is meant, if the folder holds several sets.

    Raises:
        InputError: the folder does not exist, the set is not finished, or its manifest can't be
            read.
        UsageError: the folder holds several sets, and no split is given.
    """
    features = inception.PROMISE
    if data_dir is not None:
        layout = Layout(Path(data_dir))
        refuse_no_folder(layout.output_dir)
        if split:
            set_layout = find_set(layout, split)
            splits = [split]
        else:
            set_layout = _find_only_set(layout)
            splits = None
        state = SetState.read(set_layout)
        state.refuse_unusable(splits)
        if state.manifest is not None and state.manifest.dataset.features:
            features = state.manifest.dataset.features
    return {name: _feature(promise) for name, promise in features.items()}


def _find_only_set(layout: Layout) -> Layout:
    """The only set of a folder; raises UsageError with the argument that chooses one of several."""
    try:
        return layout.one_set()
    except UsageError as error:
        splits = _splits_of_sets(layout)
        expected = "expected a split of one of them"
        if splits:
            expected = f"expected one of their splits: {listed(splits, 20)}"
        example = splits[0] if splits else "..."
        hint = (
            "choose a set by one of its splits: "
            f"feature_spec({str(layout.output_dir)!r}, split={example!r})"
        )
        raise UsageError(error.what, expected, hint) from error


def _splits_of_sets(layout: Layout) -> list[str]:
    """The splits of the finished sets of a folder."""
    splits: list[str] = []
    for set_layout in layout.sets():
        manifest = usable_manifest(set_layout.manifest_path)
        if manifest is not None:
            splits += manifest.dataset.splits
    return splits


def _feature(promise: Mapping[str, Any]) -> Any:
    dtype = _DTYPES[promise["kind"]]
    count = promise["values"]
    if promise["optional"] or count is None:
        return tf.io.VarLenFeature(dtype)
    shape = [] if count == 1 else [count]
    return tf.io.FixedLenFeature(shape, dtype)


def dataset(  # noqa: PLR0913 - options of the public interface, by keyword
    data_dir: str | os.PathLike[str],
    split: str,
    *,
    batch_size: int,
    image_size: int = 224,
    training: bool | None = None,
    seed: int | None = None,
    shuffle_buffer: int = 4096,
    window: int = 16,
    rank: int | None = None,
    world: int | None = None,
    epoch: int | None = None,
    start: int = 0,
    on_damaged: OnDamagedRecord = "raise",
    unlabelled: int | None = None,
    first_label: int | None = None,
) -> Any:
    """One epoch as a tf.data.Dataset of (images, labels): batches for training, or for an
    evaluation.

    Images are float32 from 0 to 1 of the shape (batch_size, image_size, image_size, 3), labels
    int64 (batch_size,).

    LABELS COUNT FROM 0: 0 to 999 for ImageNet, whose records say 1 to 1000; the first class of
    every set is 0.

    For training, shards are read in random order, ``window`` of them at a time, and their records
    are mixed. Each image is cropped at random. The crop has 5% to 100% of the image's area and
    proportions from 3:4 to 4:3. It covers at least a tenth of one of the image's boxes (of the
    image, if it has none). The crop is resized to ``image_size`` square, and mirrored half of the
    time. An incomplete last batch is dropped. Without training, all records come in order, cropped
    to the centre.

    Args:
        data_dir: the folder that holds the shards.
        split: the prefix of its shards' names.
        batch_size: images per batch.
        image_size: pixels per side.
        training: whether to shuffle and distort; None: yes if the split is called "train".
        seed: makes every epoch of every run the same. None: fastest, and never the same.
        shuffle_buffer: records that are mixed; each needs about 110 kB of memory for ImageNet.
        window: shards that are read at a time.
        rank: one of ``world`` readers. Each reads its own shards; for training, all have equally
            many batches. Without rank and world, they are RANK and WORLD_SIZE of the environment,
            as torchrun sets them, or 0 and 1. A cluster in TF_CONFIG is left to a strategy of
            tf.distribute, which divides the batches itself.
        world: the number of readers.
        epoch: with a seed, this epoch in every iteration, to resume it; None: another one in each
            iteration.
        start: batches of the epoch to skip: those before a checkpoint. Their images are not
            decoded.
        on_damaged: "raise" TensorFlow's error at a damaged record, or "skip" it: its batch is
            smaller by one, all other batches stay as they are, also after ``start``. A batch that
            is left without an image does not come; with ``world`` above 1 it is an error. The
            dataset's ``skipped()`` counts such records by fault ("checksum", "record", or "image":
            TensorFlow can't decode it), and a warning names each once. Records are read by
            imagenet-prep then, which is slower, and the shape of a batch starts with None.
        unlabelled: the label of images without one, such as -1; None: they are refused.
        first_label: the number in the records that is label 0; None: that of the manifest, or 1.

    Its ``cardinality()`` is the number of batches, if the manifest counts the records; it is
    unknown with ``on_damaged="skip"`` and one reader, since batches may be left without an image.

    TensorFlow reads the shards itself. Before that, each is compared with its manifest: size,
    index, first and last record. verify compares all records.

    Raises:
        InputError: as imagenet_prep.open; or the first record is not an image in Inception's
            layout, or records have no label.
        UsageError: a setting is invalid, a rank has no shard, or WORLD_SIZE is set without RANK.
    """
    check_policy("dataset", on_damaged)
    _check_numbers(batch_size, image_size, shuffle_buffer, window)
    rank, world = _find_rank(rank, world)
    records = ShardSet(data_dir, split)
    if first_label is not None:
        records.first_label = whole("dataset(first_label=", first_label, 0)
    _refuse_unlabelled(records, data_dir, unlabelled)
    if training is None:
        training = split == "train"
    _check_start(records, world, start)
    _check_epoch(seed, epoch, start, training=training)

    shard_numbers = range(len(records.paths))[rank::world]
    skipper = DamageSkipper(records) if on_damaged == "skip" else None
    _compare(records, shard_numbers, allows_damage=skipper is not None)
    pipeline = EpochPipeline(
        records=records,
        shard_numbers=shard_numbers,
        training=training,
        seed=_epoch_seed(seed, epoch),
        reshuffles=epoch is None,
        skipper=skipper,
    )

    examples = pipeline.read(window, shuffle_buffer).skip(start * batch_size)
    images = pipeline.decode(examples, image_size, unlabelled)
    batches = images.batch(batch_size, drop_remainder=training)

    def count_remaining() -> int:
        count = _count_batches(records, rank, world, batch_size, training=training)
        return max(0, count - start)

    if training and world > 1:
        batches = batches.take(count_remaining())
    if skipper is not None:
        batches = skipper.without_damaged(batches, world)
    if records.is_counted and (skipper is None or world > 1):
        set_cardinality = tf.data.experimental.assert_cardinality(count_remaining())
        batches = batches.apply(set_cardinality)
    batches = batches.prefetch(tf.data.AUTOTUNE)
    batches.skipped = Counter if skipper is None else lambda: skipper.left_out.counts
    return batches


def _check_numbers(batch_size: int, image_size: int, shuffle_buffer: int, window: int) -> None:
    """Raise UsageError for a number that TensorFlow would refuse without the argument's name."""
    whole("dataset(batch_size=", batch_size, 1)
    whole("dataset(image_size=", image_size, 1)
    whole("dataset(shuffle_buffer=", shuffle_buffer, 1)
    whole("dataset(window=", window, 1)


def _epoch_seed(seed: int | None, epoch: int | None) -> int | None:
    """The seed of one epoch; the seed of all if none is chosen."""
    if seed is None or epoch is None:
        return seed
    return zlib.crc32(f"{seed} {epoch}".encode())


def _find_rank(rank: int | None, world: int | None) -> tuple[int, int]:
    """The rank and world of the arguments, or else of the environment, or else 0 of 1."""
    rank_and_world = check_rank("dataset", rank, world)
    if rank_and_world is not None:
        return rank_and_world
    environment = rank_in_environment()
    if environment is None:
        return 0, 1
    hint = (
        "call dataset(..., rank=RANK, world=RANKS); if a strategy of tf.distribute divides the "
        "batches: dataset(..., rank=0, world=1)"
    )
    if environment.world > 1 and environment.rank is None:
        raise UsageError(
            f"the environment has {environment} and no RANK", "expected RANK, too", hint
        )
    workers = _workers_of_cluster()
    if environment.world > 1 and len(workers) > 1:
        what = f"the environment has {environment}, and TF_CONFIG with {len(workers)} workers"
        raise UsageError(what, "expected only one of them: each would divide the records", hint)
    return environment.rank or 0, environment.world


def _workers_of_cluster() -> list[str]:
    """The workers in TF_CONFIG; raises UsageError for one that TensorFlow can't read."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        cluster = resolver.cluster_spec().as_dict()
    except (ValueError, TypeError) as error:
        what = "TF_CONFIG in the environment can't be read"
        expected = f"expected JSON as tf.distribute documents it: {error}"
        raise UsageError(what, expected, "correct TF_CONFIG, or unset it") from error
    workers: list[str] = cluster.get("worker", [])
    return workers


def _check_start(records: ShardSet, world: int, start: int) -> None:
    """Raise UsageError for a rank without a shard, or a start before the first batch."""
    whole("dataset(start=", start, 0)
    if world > len(records.paths):
        shards = number_of(len(records.paths), f"{records.split} shard")
        raise UsageError(
            f"{shards} for {world} ranks",
            "expected at least one shard for each rank",
            "use fewer ranks, or make the set with more shards",
        )


def _check_epoch(seed: int | None, epoch: int | None, start: int, *, training: bool) -> None:
    """Raise UsageError for a place in an epoch of training that no run can find again."""
    if not training or (epoch is None and start == 0):
        return
    if epoch is not None:
        whole("dataset(epoch=", epoch, 0)
    if seed is None or epoch is None:
        arguments = {"seed": seed, "epoch": epoch, "start": start or None}
        given = [f"{name}={value}" for name, value in arguments.items() if value is not None]
        raise UsageError(
            f"dataset({', '.join(given)})",
            "expected a seed and an epoch: no run gives the same order again without them",
        )


def _count_batches(
    records: ShardSet, rank: int, world: int, batch_size: int, *, training: bool
) -> int:
    """The batches of an epoch of this rank; for training,
    as many as the rank with the fewest records fills.
    """
    counts = records.counts
    if training:
        fewest_records = min(sum(counts[reader::world]) for reader in range(world))
        return fewest_records // batch_size
    own_records = sum(counts[rank::world])
    return math.ceil(own_records / batch_size)


def _refuse_unlabelled(
    records: ShardSet, data_dir: str | os.PathLike[str], unlabelled: int | None
) -> None:
    """Raise InputError if the manifest counts records without a label,
    and no label stands for it.
    """
    if records.unlabelled and unlabelled is None:
        verb = "has" if records.unlabelled == 1 else "have"
        count = number_of(records.unlabelled, f"{records.split} record")
        what = f"{count} in {data_dir} {verb} no label"
        hint = (
            "give them the label -1: dataset(..., unlabelled=-1); to leave them out after that: "
            "dataset.unbatch().filter(lambda image, label: label >= 0).batch(N)"
        )
        raise InputError(what, "expected a label for each image", hint)


def _check_label(record: Record, first_label: int) -> None:
    """Raise InputError for a record without Inception's features, or a label below the first."""
    label = record.label  # the error names its file, and the recipe's own features
    if label is None or label >= first_label:
        return
    hint = f"write the records again, with labels from {first_label} up"
    if label >= 0:
        hint = f"if {label} is the first class, call dataset(..., first_label={label})"
    raise InputError(
        f"{record.place} has label {label}",
        f"expected {first_label}, that of the first class, or more",
        hint,
    )


def _compare(records: ShardSet, shard_numbers: range, *, allows_damage: bool) -> None:
    """Compare the shards with their manifest, and a record with Inception's format."""
    allowed = (DamagedRecordError,) if allows_damage else ()
    with contextlib.suppress(*allowed):
        first_record = next(iter(records), None)
        if first_record is not None:
            _check_label(first_record, records.first_label)
    for number in shard_numbers:
        with contextlib.suppress(*allowed):
            records.compare([number])
