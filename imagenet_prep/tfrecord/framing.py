"""TFRecord framing: lengths, masked CRC32C, record offsets; and Index, which lists the records of a
shard.

A record is: uint64 length, uint32 masked CRC32C of those 8 bytes, data, uint32 masked CRC32C of the
data; all little endian (tensorflow/core/lib/io/record_writer.h). The mask is a rotation right by 15
plus 0xa282ead8.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

from msgspec.json import Decoder

from imagenet_prep.text import number_of
from imagenet_prep.tfrecord import crc32c

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
OVERHEAD = HEADER.size + FOOTER.size

_LENGTH = struct.Struct("<Q")
_MASK_DELTA = 0xA282EAD8

Buffer = bytes | memoryview


class View(Protocol):
    """The bytes of a file, which can be sliced:
    a memoryview, or an object that fetches them by range.
    """

    def __len__(self) -> int:
        """The number of bytes."""
        ...

    def __getitem__(self, where: slice, /) -> memoryview:
        """The bytes of a slice."""
        ...


class FramingError(ValueError):
    """Framing that can't be followed any further:
    record number, byte offset of its header, reason.
    """

    def __init__(self, record: int, offset: int, reason: str) -> None:
        super().__init__(f"record {record} at byte {offset}: {reason}")
        self.record = record
        self.offset = offset
        self.reason = reason


class LengthError(FramingError):
    """The length field itself is damaged or implausible:
    the start of the next record is unknown.
    """


class TruncatedError(FramingError):
    """The file ends within a record."""


def mask(crc: int) -> int:
    """The masked form of a CRC, as TFRecord stores it."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(*parts: Buffer) -> tuple[bytes, bytes, int]:
    """Header and footer for a record whose data is ``parts``,
    joined, and the data's length in bytes.
    """
    crc = length = 0
    for part in parts:
        crc = crc32c(part, crc)
        length += len(part)
    length_crc = crc32c(_LENGTH.pack(length))
    # ``mask``, twice: a call per image costs as much as the rest of this function.
    header = HEADER.pack(length, ((length_crc >> 15 | length_crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)
    footer = FOOTER.pack(((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)
    return header, footer, length


class Framed(NamedTuple):  # a tuple is built in a third of the time of a frozen dataclass
    """One record found in a file: number, byte offset of its header, data, the data's masked CRC as
    stored.

    ``intact`` says whether the data matches that CRC.
    """

    number: int
    offset: int
    data: memoryview
    crc: int
    intact: bool


def iter_records(view: View) -> Iterator[Framed]:
    """Every record of a whole TFRecord file; a record with damaged data is yielded as not
    ``intact``.

    Raises:
        LengthError: a length field doesn't match its CRC: the start of the next record is unknown.
        TruncatedError: the file ends within a record.
    """
    for number, (offset, data) in enumerate(iter_unchecked(view)):
        end = offset + 12 + len(data)
        (stored,) = FOOTER.unpack(view[end : end + 4])
        crc = crc32c(data)
        yield Framed(
            number,
            offset,
            data,
            stored,
            ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF == stored,
        )


def intact_at(
    view: memoryview, start: int, stop: int, check: bool = True, expected: int | None = None
) -> memoryview | None:
    """The data of the intact record whose framing starts and stops at these bytes, or None if there
    is none.

    ``expected`` is the CRC that the record must have. Without ``check`` the data is not compared
    with its CRC.
    """
    if start + OVERHEAD > stop or stop > len(view):
        return None
    length, length_crc = HEADER.unpack_from(view, start)
    if length != stop - start - OVERHEAD:
        return None
    crc = crc32c(view[start : start + 8])
    if ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF != length_crc:
        return None
    data = view[start + 12 : stop - 4]
    # The stored CRC is read after the data: then its bytes are in the processor's cache.
    if check:
        crc = crc32c(data)
    (stored,) = FOOTER.unpack_from(view, stop - 4)
    if check and ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF != stored:
        return None
    return data if expected is None or stored == expected else None


def iter_unchecked(view: View) -> Iterator[tuple[int, memoryview]]:
    """The byte offset and the data of every record; only headers are read, data is not compared
    with its CRC.

    Raises:
        LengthError, TruncatedError: as for iter_records.
    """
    offset, number, end = 0, 0, len(view)
    while offset < end:
        start = offset + HEADER.size
        length = parse_header(view[offset:start], number, offset)
        if length > end - start - FOOTER.size:
            raise TruncatedError(number, offset, short_data(length, end - start))
        yield offset, view[start : start + length]
        offset = start + length + FOOTER.size
        number += 1


def iter_intact(view: memoryview, *, check: bool = True) -> Iterator[tuple[int, memoryview, int]]:
    """Offset, data and stored CRC of each record up to the first one that is not intact, or to the
    end.

    Reading in order spends its time in this loop, so ``iter_records`` handles the rare cases.
    """
    offset, end = 0, len(view)
    unpack, unpack_crc = HEADER.unpack_from, FOOTER.unpack_from
    while offset <= end - OVERHEAD:
        start = offset + 12
        length, length_crc = unpack(view, offset)
        crc = crc32c(view[offset : offset + 8])
        stop = start + length
        if ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF != length_crc or stop > end - 4:
            return
        data = view[start:stop]
        if check:
            crc = crc32c(data)
        (stored,) = unpack_crc(view, stop)
        if check and ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF != stored:
            return
        yield offset, data, stored
        offset = stop + 4


def parse_header(header: Buffer, number: int, offset: int) -> int:
    """The length of a record's data in bytes, from its header or the start of one;
    raises as iter_records does.
    """
    if len(header) < HEADER.size:
        raise TruncatedError(number, offset, short_header(len(header), "file", number))
    length, length_crc = HEADER.unpack(header)
    if mask(crc32c(header[:8])) != length_crc:
        reason = "the length field does not match its CRC"
        raise LengthError(number, offset, _or_stray(reason, number))
    return int(length)


def short_header(size: int, whole: str, number: int) -> str:
    """The reason for a header of ``size`` bytes, of record ``number``:
    the file, or its content, ends there.
    """
    reason = f"the {whole} ends {number_of(size, 'byte')} into a {HEADER.size}-byte header"
    return _or_stray(reason, number)


def short_data(length: int, left: int) -> str:
    """The reason for a record of ``length`` bytes of data with only ``left`` after its header."""
    expected = f"expected {length:,} bytes of data and 4 of CRC after the header"
    return f"{expected}, got {left:,} in all"


def _or_stray(reason: str, number: int) -> str:
    """A reason why record ``number`` can't be read: after others there may be none."""
    return f"{reason}, or other bytes follow the last record" if number else reason


def framing_digest(lengths: Iterable[int], crcs: Iterable[int]) -> str:
    """The digest of a shard: SHA-256 (hex) over the data length in bytes
    and the masked data CRC of each record.
    """
    columns = array("Q", lengths), array("I", crcs)
    pairs = bytearray(len(columns[0]) * HEADER.size)
    column_start = 0
    # One byte of all numbers at a time: three times as fast as packing number by number.
    for numbers in columns:
        if sys.byteorder == "big":
            numbers.byteswap()
        column = numbers.tobytes()
        width = numbers.itemsize
        for place in range(width):
            pairs[column_start + place :: HEADER.size] = column[place::width]
        column_start += width
    return hashlib.sha256(pairs).hexdigest()


@dataclass(slots=True)
class Index:
    """The records of a shard in order: offset, length with framing, stored data CRC, file name;
    and the end offset.
    """

    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    crcs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    end: int = field(default=0, compare=False)

    def add(self, length: int, crc: int, name: str) -> None:
        """Append a record that starts where the last one ends."""
        self.offsets.append(self.end)
        self.end += length
        self.lengths.append(length)
        self.crcs.append(crc)
        self.names.append(name)

    @property
    def digest(self) -> str:
        """The digest of the shard."""
        return framing_digest((length - OVERHEAD for length in self.lengths), self.crcs)

    @property
    def identities(self) -> list[tuple[int, int]]:
        """Length and CRC of each record: together they identify it."""
        return list(zip(self.lengths, self.crcs, strict=True))

    @property
    def places(self) -> Iterable[tuple[int, int, int]]:
        """Offset, length and CRC of each record."""
        return zip(self.offsets, self.lengths, self.crcs, strict=True)

    def encode(self) -> tuple[bytes, bytes]:
        """The content of both files."""
        return encode_index(self.offsets, self.lengths), encode_listing(self.crcs, self.names)


def decode(offsets: Buffer, listing: Buffer) -> Index | None:
    """The Index in both files, or None if they are not byte for byte as they were written."""
    content = bytes(offsets), bytes(listing)
    edges = decode_index(content[0])
    records = decode_listing(content[1])
    if edges is None or records is None:
        return None
    crcs, names = records
    if len(edges) != len(crcs) + 1:
        return None
    lengths = [stop - start for start, stop in pairwise(edges)]
    if min(lengths, default=OVERHEAD) < OVERHEAD:
        return None
    index = Index(list(edges[:-1]), lengths, crcs, names, edges[-1])
    return index if index.encode() == content else None


def decode_listing(listing: bytes) -> tuple[list[int], list[str]] | None:
    """The CRC and the name of each record in a ``.list``; None if a line is no such line."""
    try:
        # A name may hold any separator except a newline.
        lines = [line.split(" ", 1) for line in listing.decode().split("\n")[:-1]]
        crcs = [int(crc, 16) for crc, _ in lines]
    except ValueError:
        return None
    if any(crc >> 32 for crc in crcs):
        return None
    return crcs, [name for _, name in lines]


def encode_index(offsets: Iterable[int], lengths: Iterable[int]) -> bytes:
    """The content of an ``.idx``."""
    return "".join(map("%d %d\n".__mod__, zip(offsets, lengths, strict=True))).encode()


def decode_index(content: bytes) -> array[int] | None:
    """The offset of each record and of the end; None unless they start at 0 and leave no gap."""
    try:
        numbers = array("Q", map(int, content.split()))
        offsets, lengths = numbers[::2], numbers[1::2]
        edges = array("Q", accumulate(lengths, initial=0))
    except (ValueError, OverflowError):
        return None
    return edges if edges[:-1] == offsets else None


_decode_numbers = Decoder(list[int]).decode


def decode_identities(index: bytes, listing: bytes) -> tuple[list[int], array[int]] | None:
    """Length of the data and CRC of each record, from both files of a shard; None if they can't be
    understood.

    Nothing is compared: it is fast, and the digest of the shard proves the result.
    """
    try:
        numbers = _decode_numbers(b"[%b]" % index[:-1].replace(b" ", b",").replace(b"\n", b","))
        lengths = [length - OVERHEAD for length in numbers[1::2]]
        crcs = array(
            "I", bytes.fromhex("".join([line[:8] for line in listing.decode().split("\n")]))
        )
    except ValueError:
        return None
    if sys.byteorder == "little":
        crcs.byteswap()
    return (lengths, crcs) if min(lengths, default=0) >= 0 else None


def encode_listing(crcs: Iterable[int], names: Iterable[str]) -> bytes:
    """The content of a ``.list``."""
    return "".join(map("%08x %s\n".__mod__, zip(crcs, names, strict=True))).encode()


def recorded_name(listing: bytes, number: int) -> str:
    """The name of one record in a ``.list``; "" if it has no such line."""
    lines = listing.decode(errors="replace").split("\n")
    return lines[number].partition(" ")[2] if number < len(lines) else ""
