"""TFRecord files of dictionaries, written and read without TensorFlow (docs/records.md)."""

from __future__ import annotations

from imagenet_prep.reading.values import SequenceExample
from imagenet_prep.records.reader import read, read_sequences
from imagenet_prep.records.writer import ShardWriter, write

__all__ = ["SequenceExample", "ShardWriter", "read", "read_sequences", "write"]
