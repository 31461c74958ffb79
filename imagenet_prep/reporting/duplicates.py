"""Records -> which of them hold the same image file, byte for byte; few files are read for that."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.lenient import Naming, look
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import FramingError

_FRONT, _BACK = 512, 256  # bytes of an image that lie beside what the census reads anyway


def key_of(encoded: memoryview | None) -> int:
    """A number that copies of an image file share: of its length and of both its ends; 0 where there is none."""
    if not encoded:
        return 0
    return len(encoded) << 32 | zlib.crc32(encoded[-_BACK:], zlib.crc32(encoded[:_FRONT]))


def alike(keys: Mapping[str, array[int]]) -> dict[str, frozenset[int]]:
    """The records, by shard, whose key another record has too: those to be read."""
    import numpy as np

    if not any(map(len, keys.values())):
        return {}
    columns = {name: np.frombuffer(column, np.uint64) for name, column in keys.items() if len(column)}
    values, counts = np.unique(np.concatenate(list(columns.values())), return_counts=True)
    repeated = values[(counts > 1) & (values > 0)]
    found = {name: frozenset(np.flatnonzero(np.isin(column, repeated)).tolist()) for name, column in columns.items()}
    return {name: numbers for name, numbers in found.items() if numbers}


class Copy(NamedTuple):
    """A record and the SHA-256 (hex) of its image file."""

    digest: str
    shard: str
    number: int
    filename: str
    label: int | None


@dataclass(frozen=True, slots=True)
class TakeDigests:
    """Reads those image files of single shards that may be copies; picklable. ``numbers`` are by name of the shard."""

    layout: Layout
    numbers: Mapping[str, frozenset[int]]
    naming: Naming | None = None

    def __call__(self, name: str) -> list[Copy]:
        """The digests of one shard's; a record that has become unreadable since the census is left out."""
        found: list[Copy] = []
        with contextlib.suppress(FramingError, InputError):
            found.extend(self._take(name))
        return found

    def _take(self, name: str) -> Iterator[Copy]:
        numbers = self.numbers[name]
        records = itertools.islice(Shard.open(self.layout.shard_path(name)).unchecked(), max(numbers) + 1)
        for number, (_, data) in enumerate(records):
            if number in numbers and (seen := look(data, self.naming)) and seen.encoded is not None:
                yield Copy(hashlib.sha256(seen.encoded).hexdigest(), name, number, seen.filename, seen.label)


def groups_of(copies: Iterable[Copy]) -> list[tuple[Copy, ...]]:
    """The copies of each image of which there are several, in order of shards and records."""
    by_digest: dict[str, list[Copy]] = {}
    for copy in sorted(copies, key=lambda each: (each.shard, each.number)):
        by_digest.setdefault(copy.digest, []).append(copy)
    return [tuple(found) for found in by_digest.values() if len(found) > 1]
