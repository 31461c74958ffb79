"""EpochPipeline: the shards of one reader -> the images and labels of one epoch, by tf.data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from msgspec import Struct

from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.tensorflow.damage_skipper import DamageSkipper
from imagenet_prep.tensorflow.inception_examples import (
    count_label_from_0,
    crop_centre,
    crop_for_training,
)

_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
"""TensorFlow's words for the compression of shards, by ours."""


class EpochPipeline(Struct, frozen=True):
    """The steps of an epoch.

    Args:
        records: of all shards.
        shard_numbers: the shards that are read.
        training: whether to shuffle and distort.
        seed: decides order and crops; None: they are never the same.
        reshuffles: whether each iteration has another order.
        skipper: reads records by number and skips damaged ones; None: TensorFlow reads.
    """

    records: ShardSet
    shard_numbers: range
    training: bool
    seed: int | None
    reshuffles: bool
    skipper: DamageSkipper | None

    def read(self, window: int, shuffle_buffer: int) -> Any:
        """All records in the order of the epoch; their numbers if there is a skipper.

        With a seed, each record of a training comes with two numbers that decide its crop.
        """
        if not self.training:
            return self._shards().flat_map(self._reader())
        examples = self._read_mixed(window, shuffle_buffer)
        if self.seed is None:
            return examples
        numbers = tf.data.Dataset.random(self.seed, rerandomize_each_iteration=self.reshuffles)
        seed_pairs = numbers.batch(2, drop_remainder=True)
        return tf.data.Dataset.zip(examples, seed_pairs)

    def decode(self, examples: Any, image_size: int, unlabelled: int | None) -> Any:
        """Images and labels from 0; with a skipper also their numbers, and whether they are sound.

        ``examples`` are what ``read`` returns.
        """

        def decode_record(record: Any, seeds: Any = None) -> tuple[Any, Any]:
            if self.training:
                return crop_for_training(record, seeds, image_size)
            return crop_centre(record, image_size)

        def count_from_0(image: Any, label: Any, *number_and_soundness: Any) -> tuple[Any, ...]:
            first_label = self.records.first_label
            image, class_index = count_label_from_0(first_label, unlabelled, image, label)
            return (image, class_index, *number_and_soundness)

        def decode_and_count(*read: Any) -> tuple[Any, ...]:
            image, label = decode_record(*read)
            return count_from_0(image, label)

        options = {
            "num_parallel_calls": tf.data.AUTOTUNE,
            "deterministic": not self.training or self.seed is not None,
        }
        if self.skipper is None:
            return examples.map(decode_and_count, **options)
        images = self.skipper.decode(examples, decode_record, image_size, options)
        return images.map(count_from_0)

    def _read_mixed(self, window: int, shuffle_buffer: int) -> Any:
        """Records of several shards at a time, mixed."""
        shard_count = len(self.shard_numbers)
        shards = self._shards().shuffle(
            shard_count, seed=self.seed, reshuffle_each_iteration=self.reshuffles
        )
        examples = shards.interleave(
            self._reader(),
            cycle_length=min(window, shard_count),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=self.seed is not None,
        )
        return examples.shuffle(
            shuffle_buffer, seed=self.seed, reshuffle_each_iteration=self.reshuffles
        )

    def _shards(self) -> Any:
        """The path of each shard; the numbers of its records if there is a skipper."""
        if self.skipper is not None:
            return self.skipper.shards(self.shard_numbers)
        paths = [str(self.records.paths[number]) for number in self.shard_numbers]
        return tf.data.Dataset.from_tensor_slices(paths)

    def _reader(self) -> Callable[[Any], Any]:
        """A function from a shard to its records, or their numbers."""
        if self.skipper is not None:
            return lambda bounds: tf.data.Dataset.range(bounds[0], bounds[1])
        compression = _COMPRESSION[self.records.compression]
        return lambda path: tf.data.TFRecordDataset(path, compression)
