"""arrayrecord: one file per shard, for random access by Grain."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import WriteError, missing_library
from imagenet_prep.exports.packing import Files, Packer, check_read_back
from imagenet_prep.exports.source_set import CLASSES, SourceSet, SourceShard, encode_classes
from imagenet_prep.storage.refusals import AGAIN, no_space
from imagenet_prep.tfrecord import crc32c

_OPTIONS = "group_size:1,uncompressed"
"""One record per group suits random access.
JPEGs become no smaller, and zstd would triple the time.
"""

_AT_ONCE = 16  # records read back at a time


class ArrayRecordPacker(Packer):
    """Makes ``<shard>.array_record`` of each shard;
    and ``classes.json``, if the manifest has the names of classes.
    """

    unit = "shard"
    requires_utf8_paths = True

    def __init__(self, source: SourceSet) -> None:
        if importlib.util.find_spec("array_record") is None:
            raise missing_library("array_record", "writes ArrayRecord files", "arrayrecord")

    def file_name(self, shard: SourceShard) -> str:
        """The name of its file."""
        return f"{shard.name}.array_record"

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Write one file; array_record's own reader confirms that it holds the records."""
        from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

        with files.aside(self.file_name(shard)) as path, _faults(path):
            crcs = []
            writer = ArrayRecordWriter(str(path), _OPTIONS)
            for record in files.records():
                data = bytes(record.data)
                crcs.append(crc32c(data))
                writer.write(data)
            writer.close()
            reader = ArrayRecordReader(str(path))
            check_read_back(path, list(_crcs(reader)), crcs)
            reader.close()

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The number of each class by its name: records may have numbers alone."""
        if source.manifest is None or not source.manifest.dataset.classes:
            return {}
        by_index = sorted(source.numbering.indices.items(), key=lambda pair: pair[1])
        return {CLASSES: encode_classes(dict(by_index))}


PACKER = ArrayRecordPacker


def _crcs(reader: Any) -> Iterator[int]:
    count: int = reader.num_records()
    for start in range(0, count, _AT_ONCE):
        yield from map(crc32c, reader.read(start, min(count, start + _AT_ONCE)))


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Convert the library's errors about a disk: RuntimeErrors whose text alone tells why."""
    try:
        yield
    except RuntimeError as error:
        if "No space left" in str(error):
            raise no_space(path) from error
        raise WriteError(
            f"cannot write {path}, or read it back",
            str(error),
            f"check the disk and the permissions of its folder, {AGAIN}",
        ) from error
