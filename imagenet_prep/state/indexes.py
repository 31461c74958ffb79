"""read_written: the index of a finished shard, if it agrees with the shard's entry."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.model import ShardInfo
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import Index, decode

_LINE = 42  # two numbers of up to 20 digits, a space, a newline
_NAME_LINE = 4106  # a CRC of 8 digits, a space, a path of up to 4,096 bytes, a newline


def read_index(layout: Layout, name: str, records: int) -> Index | None:
    """The index of a shard; None if a file of it is missing, or differs from the written form in any byte.

    Files that are too long for ``records`` records are not read.

    Raises:
        InputError: the disk or the permissions prevent reading.
    """
    found = []
    for path, line in zip(layout.index_paths(name), (_LINE, _NAME_LINE), strict=True):
        try:
            content = find_plain(path, (2 * records + 1000) * line)
        except InputError as error:
            if isinstance(error.__cause__, OSError):
                raise
            return None
        if content is None:
            return None
        found.append(content)
    return decode(*found)


def read_written(layout: Layout, info: ShardInfo) -> Index | None:
    """The index that was written with a shard, which gives the digest of this entry; None otherwise."""
    with contextlib.suppress(InputError):
        found = read_index(layout, info.name, info.records)
        if found and (found.digest, len(found.lengths)) == (info.digest, info.records):
            return found
    return None


def agrees(layout: Layout, info: ShardInfo) -> bool:
    """Whether the index of a shard exists and gives the digest of this entry."""
    return read_written(layout, info) is not None


def is_indexed(layout: Layout, info: ShardInfo, names: Sequence[str]) -> bool:
    """Whether the index of a shard is the one written for these images: it gives the recorded digest."""
    written = read_written(layout, info)
    if written is None:
        return False
    offsets = [0, *itertools.accumulate(written.lengths[:-1])]
    return (written.offsets, written.names) == (offsets[: len(names)], names)
