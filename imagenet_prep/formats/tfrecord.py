"""TFRecord framing: lengths, masked CRC32C, record offsets.

A record is: uint64 length, uint32 masked CRC32C of those 8 bytes, data, uint32 masked CRC32C of the data; all little
endian (tensorflow/core/lib/io/record_writer.h). The mask is a rotation right by 15 plus 0xa282ead8.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from imagenet_prep.formats.crc import crc32c

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
OVERHEAD = HEADER.size + FOOTER.size

_LENGTH = struct.Struct("<Q")
_GATHER = 1020  # buffers a gather list: writev takes IOV_MAX, 1024 on Linux and on macOS
_BATCH = 1 << 20  # bytes a gather list: still in the cache from the CRC when the kernel copies them

Buffer = bytes | memoryview


class FramingError(ValueError):
    """Framing that can't be followed any further: record number, byte offset of its header, reason."""

    def __init__(self, record: int, offset: int, reason: str) -> None:
        super().__init__(f"record {record} at byte {offset}: {reason}")
        self.record = record
        self.offset = offset
        self.reason = reason


class LengthError(FramingError):
    """The length field itself is damaged or absurd: where the next record starts is unknown."""


class TruncatedError(FramingError):
    """The file ends within a record."""


def mask(crc: int) -> int:
    """The masked form in which TFRecord stores a CRC."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(*parts: Buffer) -> tuple[bytes, bytes, int]:
    """Header and footer for a record whose data are ``parts`` one after the other, and the data's length in bytes."""
    crc = length = 0
    for part in parts:
        crc = crc32c(part, crc)
        length += len(part)
    return _header(length), FOOTER.pack(mask(crc)), length


def _header(length: int) -> bytes:
    return HEADER.pack(length, mask(crc32c(_LENGTH.pack(length))))


class Sink(Protocol):
    """Where framed records go."""

    def write(self, parts: Sequence[Buffer]) -> None:
        """Write all of ``parts``, at most 1020 buffers, one after the other."""


class RecordWriter:
    """Frames records and hands them to a sink in large gather lists; image bytes are never copied in user space.

    ``size`` is the bytes written so far, uncompressed; ``offsets`` and ``lengths`` are those of each whole record
    (framing included), ``crcs`` the masked CRCs of their data; ``digest`` is the SHA-256 over each record's length and
    data-CRC fields, in order.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pending: list[Buffer] = []
        self._digest = hashlib.sha256()
        self._flushed = 0
        self.size = 0
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self.crcs: list[int] = []

    def write(self, *parts: Buffer) -> None:
        """Append one record whose data are ``parts`` one after the other; they are held until the next flush."""
        header, footer, length = frame(*parts)
        self._digest.update(header[:8] + footer)
        self.crcs += FOOTER.unpack(footer)
        self.offsets.append(self.size)
        self.lengths.append(length + OVERHEAD)
        self.size += length + OVERHEAD
        self._pending += (header, *parts, footer)
        if len(self._pending) > _GATHER - 8 or self.size - self._flushed >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the sink."""
        if self._pending:
            self._sink.write(self._pending)
            self._pending = []
            self._flushed = self.size

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) over the framing of all records written."""
        return self._digest.hexdigest()


class Framed(NamedTuple):  # a tuple is made in a third of the time that a frozen dataclass takes
    """One record found in a file: number, byte offset of its header, data, the data's masked CRC as stored.

    ``intact`` says whether the data match that CRC.
    """

    number: int
    offset: int
    data: memoryview
    crc: int
    intact: bool


def iter_records(view: memoryview) -> Iterator[Framed]:
    """Every record of a whole TFRecord file; one whose data are damaged comes as not ``intact``.

    Raises:
        LengthError: a length field doesn't match its CRC: where the next record starts is unknown.
        TruncatedError: the file ends within a record.
    """
    for number, (offset, data) in enumerate(iter_unchecked(view)):
        (crc,) = FOOTER.unpack_from(view, offset + HEADER.size + len(data))
        yield Framed(number, offset, data, crc, mask(crc32c(data)) == crc)


def record_at(view: memoryview, number: int, start: int, stop: int) -> Framed | None:
    """The record whose framing begins and ends at these bytes, or None if there is no such record."""
    length = stop - start - OVERHEAD
    if length < 0 or stop > len(view) or view[start : start + HEADER.size] != _header(length):
        return None
    data = view[start + HEADER.size : stop - FOOTER.size]
    (crc,) = FOOTER.unpack_from(view, stop - FOOTER.size)
    return Framed(number, start, data, crc, mask(crc32c(data)) == crc)


def iter_unchecked(view: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The byte offset and the data of every record, the data not held against their CRC: only headers are touched.

    Raises:
        LengthError, TruncatedError: as for iter_records.
    """
    offset, number, end = 0, 0, len(view)
    while offset < end:
        if end - offset < HEADER.size:
            raise TruncatedError(number, offset, f"the file ends {end - offset} bytes into a 12-byte header")
        length, length_crc = HEADER.unpack_from(view, offset)
        if mask(crc32c(view[offset : offset + 8])) != length_crc:
            raise LengthError(number, offset, "the length field does not match its CRC")
        start = offset + HEADER.size
        if length > end - start - FOOTER.size:
            raise TruncatedError(number, offset, f"{length} bytes of data and 4 of CRC announced, {end - start} left")
        yield offset, view[start : start + length]
        offset = start + length + FOOTER.size
        number += 1


def framing_digest(lengths: Iterable[int], crcs: Iterable[int]) -> str:
    """The digest of a shard: SHA-256 (hex) over the data length in bytes and the masked data CRC of each record."""
    return hashlib.sha256(b"".join(map(HEADER.pack, lengths, crcs))).hexdigest()
