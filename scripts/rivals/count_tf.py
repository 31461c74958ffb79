"""Count the records of shards with tf.data: what most people do to see whether a conversion is
whole.

python count_tf.py FOLDER
"""

from __future__ import annotations

import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import tensorflow as tf


def main() -> None:
    """Print how many records all shards of a folder have together."""
    shards = tf.io.gfile.glob(f"{sys.argv[1]}/*-of-*")
    records = tf.data.TFRecordDataset(shards, num_parallel_reads=tf.data.AUTOTUNE)
    print(int(records.reduce(0, lambda count, _: count + 1)))


if __name__ == "__main__":
    main()
