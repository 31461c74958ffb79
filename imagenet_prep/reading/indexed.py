"""IndexedShard: a shard, the positions of its records, and a comparison with its manifest."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
import os
import time
import warnings
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import DamagedRecordError, InputError, PrepError
from imagenet_prep.reading.damage_words import remedy
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reading.values import USUAL, Conventions
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.durable import make_folders
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import LocalStore, remove_abandoned
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.framing import (
    OVERHEAD,
    Framed,
    decode_identities,
    decode_index,
    encode_index,
    framing_digest,
)

_CHECK_SECONDS = 1.0
"""How often records by number check that their shard was not replaced:
a check costs as much as a record.
"""


class RecordedShard(Struct, frozen=True):
    """The entry of a shard in a manifest, as far as readers compare it: records, bytes, digest."""

    records: int
    size: int
    digest: str

    def refuse_size(self, path: AnyPath, size: int) -> None:
        """Raise InputError unless a shard has the recorded size, in bytes."""
        if size != self.size:
            what = f"{path} holds {number_of(size, 'byte')}"
            raise InputError(what, f"expected {self.size:,}, as manifest.json says", remedy(path))

    def refuse_other(self, path: AnyPath, lengths: Sequence[int], crcs: Sequence[int]) -> None:
        """Raise InputError unless records of these lengths (of their data,
        in bytes) and CRCs are the recorded ones.
        """
        if not self.is_of(lengths, crcs):
            what = f"{path} holds other records than manifest.json says"
            detail = f"expected {number_of(self.records, 'record')}, got {len(crcs):,}"
            if len(crcs) == self.records:
                detail = "their number is as expected, but their lengths or checksums are not"
            raise InputError(what, detail, remedy(path))

    def is_of(self, lengths: Sequence[int], crcs: Sequence[int]) -> bool:
        """Whether records of these lengths (of their data,
        in bytes) and CRCs are the recorded ones.
        """
        if not len(lengths) == len(crcs) == self.records:
            return False
        return framing_digest(lengths, crcs) == self.digest


def find_recorded(manifest: Manifest | None, name: str) -> RecordedShard | None:
    """The entry of a shard in a manifest, or None."""
    info = manifest.shards.get(name) if manifest else None
    return RecordedShard(info.records, info.size, info.digest) if info else None


class IndexedShard:
    """A shard, and the positions and CRCs of its records, which are found on first use.

    A shard in a manifest is compared with it: its size; its index, or without a matching one its
    own framing; and the CRC of each record that is read.

    Args:
        layout, name: the place of the shard and its index.
        recorded: its entry in the manifest; None for a shard of another maker.
        count: the number of its records, if it was counted before.
        check: compare the data of each record with its CRC.
        conventions: what the set's manifest says of values.

    Raises:
        InputError: the file can't be opened, or is not the recorded one.
    """

    def __init__(
        self,
        layout: Layout,
        name: str,
        recorded: RecordedShard | None,
        count: int | None = None,
        *,
        check: bool = True,
        conventions: Conventions = USUAL,
    ) -> None:
        self.shard = Shard.open(layout.shard_path(name), conventions=conventions)
        self._index_paths = layout.index_paths(name)
        self._recorded = recorded
        self._count = recorded.records if recorded else count
        self._checks_data = check
        self._offsets: array[int] | None = None
        self._crcs: array[int] | None = None  # of a recorded shard
        self._checked = -math.inf
        if recorded:
            recorded.refuse_size(self.shard.path, len(self.shard.view))

    def count(self) -> int:
        """The number of its records."""
        return len(self._find_offsets()) - 1

    def compare(self) -> None:
        """Compare its index, its first and its last record with its manifest."""
        count = self.count()
        if self.shard.compression != "none":  # its last record requires inflating all of it
            next(self.records(), None)
        elif count:
            self.record(0)
            self.record(count - 1)

    def records(self) -> Iterator[Record]:
        """All of its records in order."""
        if self._recorded and self._crcs is None:
            self._find_offsets()
        count = yield from self.shard.records(check=self._checks_data, crcs=self._crcs or ())
        self._refuse_other_count(count)

    def record(self, number: int) -> Record:
        """One of the records, by its number in the shard."""
        offsets, shard = self._offsets or self._find_offsets(), self.shard
        if (seconds := time.monotonic()) - self._checked > _CHECK_SECONDS:
            shard.refuse_replaced()
            self._checked = seconds
        expected = None if (crcs := self._crcs) is None else crcs[number]
        if shard.compression == "none":
            start, stop = offsets[number], offsets[number + 1]
            data = shard.intact_at(start, stop, self._checks_data, expected)
            if data is not None:
                return Record(shard, number, start, data)
        else:
            _warn_of_cost(shard)
        framed = self._framed(number)
        record = shard.sound(framed)
        if shard.compression == "none":  # the index is of another shard
            self._follow()
        if expected not in (None, framed.crc):
            raise shard.exchanged(number, framed.offset)
        return record

    def _framed(self, number: int) -> Framed:
        """A record by its framing and that of all before it, which proves what is wrong with it."""
        shard = self.shard
        try:
            framed = next(itertools.islice(shard.followed(), number, None), None)
        except DamagedRecordError as error:
            if shard.compression != "none" or error.number == number:
                raise
            offset = self._find_offsets()[number]
            raise shard.damaged(
                number,
                offset,
                f"no intact record starts at this byte; record {error.number}, before it, "
                "is damaged too",
            ) from error
        if framed is None:
            self._follow()
        assert framed is not None, "a record that was followed"
        return framed

    def _find_offsets(self) -> array[int]:
        """The start of each record and the end of the last one;
        and the CRCs, if the shard is recorded.
        """
        if self._offsets is None:
            with contextlib.suppress(InputError):  # verify reports a bad index
                if self._recorded:
                    self._offsets = self._by_manifest(self._recorded)
                else:
                    self._offsets = self._by_index()
        offsets = self._offsets or self._follow()
        self._count = len(offsets) - 1
        return offsets

    def _by_manifest(self, recorded: RecordedShard) -> array[int] | None:
        """The offsets in its index, if that gives the recorded digest."""
        index, listing = (find_plain(path) for path in self._index_paths)
        identities = decode_identities(index or b"", listing or b"")
        if identities is None or not recorded.is_of(*identities):
            return None
        lengths, self._crcs = identities
        return _offsets(lengths)

    def _by_index(self) -> array[int] | None:
        """The offsets in its index or in the cache, unless they can't be those of the shard."""
        offsets = self._fitting(decode_index(find_plain(self._index_paths[0]) or b"-"))
        return offsets or self._fitting(_cached_offsets(self.shard.path))

    def _fitting(self, offsets: array[int] | None) -> array[int] | None:
        """The offsets of an index, unless they can't be those of the shard."""
        if offsets is None or self._count not in (None, len(offsets) - 1):
            return None
        fits = self.shard.compression != "none" or offsets[-1] == len(self.shard.view)
        return offsets if fits else None

    def _follow(self) -> array[int]:
        """The offsets by its framing."""
        try:
            lengths, crcs = self.shard.framing()
        except DamagedRecordError as error:  # no index: the records after it can't be found
            raise InputError(error.what, error.detail, error.hint) from error
        offsets = _offsets(lengths)
        if self._recorded:
            self._recorded.refuse_other(self.shard.path, lengths, crcs)
            self._crcs = crcs
        else:
            self._refuse_other_count(len(crcs))
            _keep_offsets(self.shard.path, offsets)
        self._offsets = offsets
        return offsets

    def _refuse_other_count(self, count: int) -> None:
        """Refuse a shard whose number of records differs from the recorded one."""
        if self._count not in (None, count):
            path = self.shard.path
            what = f"{path} holds {number_of(count, 'record')}"
            counted = "manifest.json" if self._recorded else "its index, or an earlier count"
            detail = f"expected {self._count:,} by {counted}"
            raise InputError(what, detail, remedy(path))


def _offsets(lengths: Sequence[int]) -> array[int]:
    """The start of each record and the end of the last one, by the lengths of their data;
    all in bytes.
    """
    return array("Q", itertools.accumulate([length + OVERHEAD for length in lengths], initial=0))


_warned: set[str] = set()


def _warn_of_cost(shard: Shard) -> None:
    """Warn once per process and folder about the cost of a record of a compressed shard."""
    folder = str(shard.path.parent)
    if folder in _warned:
        return
    _warned.add(folder)
    text = (
        f"the shards in {folder} are compressed ({shard.compression}): records[i] decompresses all "
        "records before i in its shard; loop over the records, or write them without compression"
    )
    warnings.warn(text, stacklevel=5)


# indexes of other makers' shards ------------------------------------------------------------------
#
# They are made on first use, and kept in the user's cache folder: nothing is written next to shards
# of other makers. A cached index belongs to one state of a file: path, size and modification time
# are in its name. It saves time and is not trusted: reading a record compares its framing. So it
# does not have to be durable either.


def _cached_offsets(shard: AnyPath) -> array[int] | None:
    """The start of each record of a shard and the end of the last one, in bytes;
    None if they are not cached.
    """
    local = local_or_none(shard)
    if local is None:
        return None
    try:
        return decode_index(_cache_path(local).read_bytes())
    except OSError:
        return None


def _keep_offsets(shard: AnyPath, offsets: array[int]) -> None:
    """Cache the offsets, except those of remote shards;
    a full disk, a missing permission or a broken link is no error.
    """
    local = local_or_none(shard)
    if local is None:
        return
    content = encode_index(offsets[:-1], (stop - start for start, stop in pairwise(offsets)))
    with contextlib.suppress(OSError, PrepError):
        path = _cache_path(local)
        _prepare_cache(path.parent)
        with LocalStore(path.parent).create(path.name) as sink:
            sink.write([content])
            sink.commit()


@functools.cache
def _prepare_cache(folder: Path) -> None:
    """Make the folder of the cache; once per process, remove what killed processes left there."""
    make_folders(folder)
    remove_abandoned(folder)


def _cache_path(shard: Path) -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    folder = Path(home) if home and Path(home).is_absolute() else Path("~/.cache").expanduser()
    status = shard.stat()
    state = f"{shard.resolve()}\n{status.st_size}\n{status.st_mtime_ns}"
    digest = hashlib.sha256(state.encode("utf-8", "surrogateescape")).hexdigest()
    return folder / "imagenet-prep" / "index" / f"{digest[:32]}.idx"
