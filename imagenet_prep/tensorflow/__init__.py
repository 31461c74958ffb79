"""Batches of images and labels for training or evaluation, by tf.data; and the features for your
own pipelines.

The crops are those of Inception's training and evaluation (tensorflow/models,
inception/image_processing.py, 2016), without its colour distortions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

if importlib.util.find_spec("tensorflow") is None:
    needs = "imagenet_prep.tensorflow needs TensorFlow: pip install 'imagenet-prep[tensorflow]'"
    raise ModuleNotFoundError(needs, name="tensorflow")

import tensorflow as tf

from imagenet_prep.errors import DamagedRecordError, InputError, RecordFault, UsageError
from imagenet_prep.reading.environment import check_rank, rank_in_environment
from imagenet_prep.reading.left_out import LeftOut, OnDamagedRecord, check_policy
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.state.manifest import find_set
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord import inception


def feature_spec(data_dir: str | os.PathLike[str] | None = None, split: str = "") -> dict[str, Any]:
    """The features of the records, for ``tf.io.parse_example``.

    Args:
        data_dir: a set made by imagenet-prep, with any features; None: the fifteen features of
        Inception's records. split: the split that is meant, if the folder holds several sets.

    Raises:
        InputError: the set is not finished, or its manifest can't be read.
        UsageError: the folder holds several sets, and no split is given.
    """
    manifest = None
    if data_dir is not None:
        layout = Layout(Path(data_dir))
        state = SetState.read(find_set(layout, split) if split else layout.one_set())
        state.refuse_unusable([split] if split else None)
        manifest = state.manifest
    promised = manifest.dataset.features if manifest is not None else {}
    return {name: _feature(promise) for name, promise in (promised or inception.PROMISE).items()}


def _feature(promise: Mapping[str, Any]) -> Any:
    kind = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}[promise["kind"]]
    values = promise["values"]
    if promise["optional"] or values is None:
        return tf.io.VarLenFeature(kind)
    return tf.io.FixedLenFeature([] if values == 1 else [values], kind)


def parse_example(record: Any) -> dict[str, Any]:
    """The values of a record in Inception's layout that training needs; ``record`` is a scalar
    string tensor.

    Returns:
        ``encoded``, scalar string, the JPEG; ``label``, scalar int64, as in the record: 1 to 1000
        for ImageNet, -1 where it has none; ``boxes``, float32 of the shape (number of boxes, 4):
        ymin, xmin, ymax, xmax from 0 to 1, as tf.image expects; ``filename`` and ``wnid``, scalar
        strings, empty where the record's maker left them out.
    """
    sides = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
    found = tf.io.parse_single_example(
        record,
        {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64, NO_LABEL),
            "image/filename": tf.io.FixedLenFeature([], tf.string, ""),
            "image/class/synset": tf.io.FixedLenFeature([], tf.string, ""),
            **{side: tf.io.VarLenFeature(tf.float32) for side in sides},
        },
    )
    return {
        "encoded": found["image/encoded"],
        "label": found["image/class/label"],
        "boxes": tf.stack([found[side].values for side in sides], axis=1),
        "filename": found["image/filename"],
        "wnid": found["image/class/synset"],
    }


NO_LABEL = -1
"""In place of the label of an image without one."""

EVALUATED = 0.875
"""The central part of each side that an evaluation uses."""


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
        iteration. start: batches of the epoch to skip: those before a checkpoint. Their images are
        not decoded. on_damaged: "raise" TensorFlow's error at a damaged record, or "skip" it: its
        batch is smaller by one, all other batches stay as they are, also after ``start``. A batch
        that is left without an image does not come; with ``world`` above 1 it is an error. The
        dataset's ``skipped()`` counts such records by fault ("checksum", "record", or "image":
        TensorFlow can't decode it), and a warning names each once. Records are read by
        imagenet-prep then, which is slower, and the shape of a batch starts with None.
        unlabelled: the label of images without one, such as -1; None: they are refused.

    Its ``cardinality()`` is the number of batches, if the manifest counts the records; it is
    unknown with ``on_damaged="skip"`` and one reader, since batches may be left without an image.

    TensorFlow reads the shards itself. Before that, each is compared with its manifest: size,
    index, first and last record. verify compares all records.

    Raises:
        InputError: as imagenet_prep.open; or the first record is not an image's in Inception's
            layout, or records have no label.
        UsageError: a setting is invalid, a rank has no shard, or WORLD_SIZE is set without RANK.
    """
    check_policy("dataset", on_damaged)
    rank, world = _find_rank(rank, world)
    records = ShardSet(data_dir, split)
    _refuse_unlabelled(records, unlabelled)
    training = split == "train" if training is None else training
    if world > len(records.paths) or start < 0:
        hint = f"a world of at most {len(records.paths)} (one shard per rank), start from 0"
        raise UsageError(f"dataset(rank={rank}, world={world}, start={start})", f"expected {hint}")
    _check_epoch(seed, epoch, start, training=training)
    again = epoch is None  # each iteration has another order
    if epoch is not None and seed is not None:
        seed = zlib.crc32(f"{seed} {epoch}".encode())
    own = range(len(records.paths))[rank::world]
    passing = _Passing(records) if on_damaged == "skip" else None
    _compare(records, own, allows_damage=passing is not None)
    read = _read_files(records) if passing is None else _list_numbers
    shards = _shards(records, own) if passing is None else passing.shards(own)
    if training:
        found = shards.shuffle(len(own), seed=seed, reshuffle_each_iteration=again).interleave(
            read,
            cycle_length=min(window, len(own)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=seed is not None,
        )
        found = found.shuffle(shuffle_buffer, seed=seed, reshuffle_each_iteration=again)
    else:
        found = shards.flat_map(read)
    counted = functools.partial(_from_0, records.first_label, unlabelled)
    if training and seed is not None:
        drawn = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=again)
        found = tf.data.Dataset.zip(found, drawn.batch(2, drop_remainder=True))
    found = found.skip(start * batch_size)

    def decode(record: Any, pair: Any = None) -> tuple[Any, Any]:
        """The image of a record, cropped, and its label."""
        return (
            _for_training(record, pair, image_size)
            if training
            else _in_the_middle(record, image_size)
        )

    how = {
        "num_parallel_calls": tf.data.AUTOTUNE,
        "deterministic": not training or seed is not None,
    }
    if passing is not None:
        found = passing.decoded(found, decode, image_size, how)
        found = found.map(lambda image, label, *told: (*counted(image, label), *told))
    else:
        found = found.map(lambda *read: counted(*decode(*read)), **how)
    found = found.batch(batch_size, drop_remainder=training)
    if training and world > 1:
        found = found.take(
            max(0, _count_batches(records, rank, world, batch_size, training=training) - start)
        )
    if passing is not None:
        found = passing.without_damaged(found, world)
    if records.is_counted and (passing is None or world > 1):
        count = _count_batches(records, rank, world, batch_size, training=training)
        found = found.apply(tf.data.experimental.assert_cardinality(max(0, count - start)))
    found = found.prefetch(tf.data.AUTOTUNE)
    found.skipped = Counter if passing is None else lambda: passing.left_out.counts
    return found


def _find_rank(rank: int | None, world: int | None) -> tuple[int, int]:
    """The rank and world of the arguments, or else of the environment, or else 0 of 1."""
    chosen = check_rank("dataset", rank, world)
    environment = rank_in_environment() if chosen is None else None
    if chosen is not None or environment is None:
        return chosen or (0, 1)
    hint = (
        "give dataset rank= and world=; rank=0, world=1 if a strategy of tf.distribute divides "
        "the batches"
    )
    if environment.world > 1 and environment.rank is None:
        raise UsageError(f"the environment has {environment} and no RANK", "expected both", hint)
    workers = (
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
        .cluster_spec()
        .as_dict()
        .get("worker", [])
    )
    if environment.world > 1 and len(workers) > 1:
        what = f"the environment has {environment}, and TF_CONFIG with {len(workers)} workers"
        raise UsageError(what, "expected one of both: each would divide the records", hint)
    return environment.rank or 0, environment.world


def _check_epoch(seed: int | None, epoch: int | None, start: int, *, training: bool) -> None:
    """Raise UsageError for a place in an epoch of training that no run can find again."""
    if training and (epoch is not None or start) and (seed is None or epoch is None or epoch < 0):
        what = f"dataset(epoch={epoch}, start={start}, seed={seed})"
        raise UsageError(
            what, "expected a seed and an epoch: without, no run gives the same order again"
        )


def _count_batches(
    records: ShardSet, rank: int, world: int, batch_size: int, *, training: bool
) -> int:
    """The batches of an epoch of this rank; for training,
    as many as the rank with the fewest records fills.
    """
    counts = records.counts
    if training:
        return min(sum(counts[reader::world]) for reader in range(world)) // batch_size
    return -(-sum(counts[rank::world]) // batch_size)


def _refuse_unlabelled(records: ShardSet, unlabelled: int | None) -> None:
    """Raise InputError if the manifest counts records without a label,
    and no label stands for it.
    """
    if records.unlabelled and unlabelled is None:
        what = f"{number_of(records.unlabelled, 'record')} of {records!r} have no label"
        hint = (
            "give unlabelled=-1, and leave them out: dataset.unbatch().filter(lambda image, "
            "label: label >= 0)"
        )
        raise InputError(what, "expected a label for each image", hint)


def _shards(records: ShardSet, own: range) -> Any:
    return tf.data.Dataset.from_tensor_slices(
        [str(path) for path in records.paths[own.start : own.stop : own.step]]
    )


def _read_files(records: ShardSet) -> Callable[[Any], Any]:
    """A function from the path of a shard to its records, read by TensorFlow."""
    compression = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[records.compression]
    return lambda path: tf.data.TFRecordDataset(path, compression)


def _list_numbers(bounds: Any) -> Any:
    """The numbers of the records of a shard."""
    return tf.data.Dataset.range(bounds[0], bounds[1])


def _compare(records: ShardSet, shards: range, *, allows_damage: bool) -> None:
    """Compare the shards with their manifest, and a record with Inception's layout."""
    allowed = (DamagedRecordError,) if allows_damage else ()
    with contextlib.suppress(*allowed):
        if record := next(iter(records), None):
            _ = record.label  # the error names its file, and the recipe's own features
    for which in shards:
        with contextlib.suppress(*allowed):
            records.compare([which])


class _Passing:
    """Reads records by number, and goes on past damaged ones:
    each keeps its place until its batch is complete.
    """

    def __init__(self, records: ShardSet) -> None:
        self._records = records
        self.left_out = LeftOut()

    def shards(self, own: range) -> Any:
        """The number of the first record of each shard, and that after its last one."""
        bounds = list(pairwise(accumulate(self._records.counts, initial=0)))[
            own.start : own.stop : own.step
        ]
        return tf.data.Dataset.from_tensor_slices(tf.constant(bounds, tf.int64))

    def decoded(
        self,
        numbers: Any,
        decode: Callable[..., tuple[Any, Any]],
        size: int,
        how: Mapping[str, Any],
    ) -> Any:
        """The image, label and number of each record, and whether it is sound."""

        def read(number: Any, *pair: Any) -> tuple[Any, ...]:
            data = tf.numpy_function(self._read, [number], tf.string)
            return (number, tf.ensure_shape(data, []), *pair)

        def decoded(number: Any, data: Any, *pair: Any) -> Any:
            one = tf.data.Dataset.from_tensors((data, *pair)).map(
                lambda *read: (*decode(*read), number, True)
            )
            label = tf.constant(self._records.first_label, tf.int64)
            blank = tf.data.Dataset.from_tensors((tf.zeros([size, size, 3]), label, number, False))
            return one.ignore_errors().concatenate(blank).take(1)

        return numbers.map(read, **how).interleave(
            decoded, cycle_length=os.cpu_count() or 1, block_length=1, **how
        )

    def without_damaged(self, batches: Any, world: int) -> Any:
        """Images and labels of the sound records of each batch; batches without any don't come."""

        def sound(images: Any, labels: Any, numbers: Any, are_sound: Any) -> tuple[Any, Any]:
            damaged = tf.boolean_mask(numbers, tf.logical_not(are_sound))
            with tf.control_dependencies([tf.numpy_function(self._count, [damaged], [])]):
                return tf.boolean_mask(images, are_sound), tf.boolean_mask(labels, are_sound)

        found = batches.map(sound)
        if world == 1:
            return found.filter(lambda images, _: tf.shape(images)[0] > 0)
        return found.map(_refuse_empty)

    def _read(self, number: Any) -> bytes:
        """The data of a record; none of a damaged one."""
        try:
            return bytes(self._records[int(number)].data)
        except DamagedRecordError as error:
            self.left_out.add(int(number), error.fault, error.in_short)
            return b""

    def _count(self, numbers: Any) -> None:
        """Count the records that could be read, and not decoded."""
        for number in map(int, numbers):
            if number in self.left_out:
                continue
            record = self._records[number]
            fault: RecordFault = "image"
            try:
                words = f"{record!r}: TensorFlow can't decode its image, {record.filename}"
            except DamagedRecordError as error:
                fault, words = error.fault, error.in_short
            self.left_out.add(number, fault, words)


def _refuse_empty(images: Any, labels: Any) -> tuple[Any, Any]:
    message = "a batch has damaged records and no other, and all ranks wait for one: repair the set"
    tf.debugging.assert_greater(tf.shape(images)[0], 0, message)
    return images, labels


def _for_training(record: Any, seed: Any, size: int) -> tuple[Any, Any]:
    example = parse_example(record)
    pair = (
        tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
        if seed is None
        else tf.cast(seed % 2**31, tf.int32)
    )
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(example["encoded"]),
        tf.clip_by_value(example["boxes"], 0, 1)[tf.newaxis],
        seed=pair,
        min_object_covered=0.1,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.05, 1),
        use_image_if_no_bounding_boxes=True,
    )
    part = tf.stack([begin[0], begin[1], extent[0], extent[1]])
    image = tf.image.decode_and_crop_jpeg(example["encoded"], part, channels=3)
    image = tf.image.stateless_random_flip_left_right(image, seed=pair + 1)
    return _resized(image, size), example["label"]


def _in_the_middle(record: Any, size: int) -> tuple[Any, Any]:
    example = parse_example(record)
    shape = tf.image.extract_jpeg_shape(example["encoded"])
    extent = tf.maximum(tf.cast(tf.cast(shape[:2], tf.float32) * EVALUATED, tf.int32), 1)
    begin = (shape[:2] - extent) // 2
    image = tf.image.decode_and_crop_jpeg(
        example["encoded"], tf.concat([begin, extent], 0), channels=3
    )
    return _resized(image, size), example["label"]


def _from_0(first: int, unlabelled: int | None, image: Any, label: Any) -> tuple[Any, Any]:
    """The image, and its label counted from 0 as Record.class_index."""
    is_labelled = label != NO_LABEL
    if unlabelled is None:
        tf.debugging.assert_equal(is_labelled, True, "a record has no label: give unlabelled=-1")
    smallest = tf.cast(first, tf.int64)
    is_class = tf.logical_or(tf.logical_not(is_labelled), label >= smallest)
    tf.debugging.assert_equal(is_class, True, "a label is below that of the first class")
    return image, tf.where(is_labelled, label - smallest, tf.cast(unlabelled or 0, tf.int64))


def _resized(image: Any, size: int) -> Any:
    image = tf.image.resize(tf.cast(image, tf.float32) / 255, [size, size])
    return tf.ensure_shape(image, [size, size, 3])
