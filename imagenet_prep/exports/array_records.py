"""ArrayRecordPacker: a shard as one file of ArrayRecord, which Grain reads at random: the Examples as they are."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from imagenet_prep.errors import UsageError, WriteError
from imagenet_prep.exports.packing import PackedFile
from imagenet_prep.exports.reading_back import crc_of
from imagenet_prep.exports.source_shard import SourceShard
from imagenet_prep.storage.space import AGAIN, no_space
from imagenet_prep.tfrecord.crc import crc32c

_OPTIONS = "group_size:1,uncompressed"
"""A record a group is what random access calls for. JPEGs become no smaller, and zstd takes three times the time."""

_AT_ONCE = 16  # records that are read back at a time


@dataclass(frozen=True, slots=True)
class ArrayRecordPacker:
    """Makes ``<shard>.array_record`` of each shard."""

    key: ClassVar[str] = "arrayrecord"
    version: ClassVar[int] = 1
    is_a_file_each: ClassVar[bool] = False

    def pack(self, shard: SourceShard, folder: Path) -> Sequence[PackedFile]:
        """One file; that it holds the records is seen by array_record's own reader."""
        from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

        name = f"{shard.name}.array_record"
        path, crcs = folder / name, []
        with _faults(path):
            writer = ArrayRecordWriter(str(path), _OPTIONS)
            for record in shard.records():
                data = bytes(record.data)
                crcs.append(crc32c(data))
                writer.write(data)
            writer.close()
            reader = ArrayRecordReader(str(path))
            if list(_crcs(reader)) != crcs:
                raise WriteError(f"{path} does not read back as it was written", "", f"check the disk {AGAIN}")
            reader.close()
        return [PackedFile(name, name, path.stat().st_size, crc_of(path), len(crcs))]


def _crcs(reader: Any) -> Iterator[int]:
    count: int = reader.num_records()
    for start in range(0, count, _AT_ONCE):
        yield from map(crc32c, reader.read(start, min(count, start + _AT_ONCE)))


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What the library raises of a disk: RuntimeErrors whose words alone tell why."""
    try:
        yield
    except RuntimeError as error:
        if "No space left" in str(error):
            raise no_space(path) from error
        raise WriteError(f"cannot write {path}", str(error), f"fix that {AGAIN}") from error


def check_array_record() -> None:
    """Raise UsageError if the library is not installed."""
    if importlib.util.find_spec("array_record") is None:
        raise UsageError(
            "ArrayRecord files are written by array_record, not installed here",
            "expected the library of the extra that is called arrayrecord",
            "pip install 'imagenet-prep[arrayrecord]'",
        )
