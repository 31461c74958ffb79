"""DamageSkipper: numbers of records -> batches of the sound ones, by tf.data.

Each damaged record keeps its place until its batch is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from typing import Any

import tensorflow as tf

from imagenet_prep.errors import DamagedRecordError, RecordFault
from imagenet_prep.reading.left_out import LeftOut
from imagenet_prep.reading.shard_set import ShardSet


class DamageSkipper:
    """Reads records by number, skips damaged ones, and counts them in ``left_out``."""

    def __init__(self, records: ShardSet) -> None:
        self._records = records
        self.left_out = LeftOut()

    def shards(self, shard_numbers: range) -> Any:
        """The number of the first record of each shard, and that after its last one."""
        starts = accumulate(self._records.counts, initial=0)
        bounds = list(pairwise(starts))
        chosen = [bounds[number] for number in shard_numbers]
        chosen_bounds = tf.constant(chosen, tf.int64)
        return tf.data.Dataset.from_tensor_slices(chosen_bounds)

    def decode(
        self,
        numbers: Any,
        decode: Callable[..., tuple[Any, Any]],
        image_size: int,
        options: Mapping[str, Any],
    ) -> Any:
        """The image, label and number of each record, and whether it is sound.

        ``numbers`` are those of records, each with its seeds where the crops are seeded.
        ``decode`` makes an image and a label of a record. ``options`` are those of ``map``.
        """

        def read(number: Any, *seeds: Any) -> tuple[Any, ...]:
            data = tf.numpy_function(self._read, [number], tf.string)
            data = tf.ensure_shape(data, [])
            return (number, data, *seeds)

        def decode_or_blank(number: Any, data: Any, *seeds: Any) -> Any:
            record = tf.data.Dataset.from_tensors((data, *seeds))
            image = record.map(lambda *read: (*decode(*read), number, True))
            label = tf.constant(self._records.first_label, tf.int64)
            pixels = tf.zeros([image_size, image_size, 3])
            blank = tf.data.Dataset.from_tensors((pixels, label, number, False))
            image_or_nothing = image.ignore_errors()
            return image_or_nothing.concatenate(blank).take(1)

        cores = os.cpu_count() or 1
        records = numbers.map(read, **options)
        return records.interleave(decode_or_blank, cycle_length=cores, block_length=1, **options)

    def without_damaged(self, batches: Any, world: int) -> Any:
        """Images and labels of the sound records of each batch; batches without any don't come."""

        def keep_sound(images: Any, labels: Any, numbers: Any, are_sound: Any) -> tuple[Any, Any]:
            are_damaged = tf.logical_not(are_sound)
            damaged = tf.boolean_mask(numbers, are_damaged)
            count_damaged = tf.numpy_function(self._count, [damaged], [])
            with tf.control_dependencies([count_damaged]):
                sound_images = tf.boolean_mask(images, are_sound)
                sound_labels = tf.boolean_mask(labels, are_sound)
                return sound_images, sound_labels

        sound_batches = batches.map(keep_sound)
        if world == 1:
            return sound_batches.filter(_has_images)
        return sound_batches.map(_refuse_empty)

    def _read(self, number: Any) -> bytes:
        """The data of a record; none of a damaged one."""
        record_number = int(number)
        try:
            return bytes(self._records[record_number].data)
        except DamagedRecordError as error:
            self.left_out.add(record_number, error.fault, error.in_short)
            return b""

    def _count(self, numbers: Any) -> None:
        """Count the records that could be read, and not decoded."""
        for number in map(int, numbers):
            if number not in self.left_out:
                self._count_undecoded(number)

    def _count_undecoded(self, number: int) -> None:
        record = self._records[number]
        fault: RecordFault = "image"
        try:
            text = f"{record!r}: TensorFlow can't crop or decode its image, {record.filename}"
        except DamagedRecordError as error:
            fault, text = error.fault, error.in_short
        self.left_out.add(number, fault, text)


def _has_images(images: Any, _labels: Any) -> Any:
    return tf.shape(images)[0] > 0


def _refuse_empty(images: Any, labels: Any) -> tuple[Any, Any]:
    message = (
        "a batch has damaged records and no other, and all ranks wait for one: choose a larger "
        "batch_size, or repair the set (verify --depth decode says how)"
    )
    count = tf.shape(images)[0]
    tf.debugging.assert_greater(count, 0, message)
    return images, labels
