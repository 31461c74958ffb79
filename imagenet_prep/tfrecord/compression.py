"""Whole TFRecord files, compressed (gzip or zlib) or not: RecordWriter makes one, iter_records reads one by pieces."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.crc import crc32c
from imagenet_prep.tfrecord.framing import (
    FOOTER,
    HEADER,
    OVERHEAD,
    Buffer,
    Framed,
    FramingError,
    LengthError,
    TruncatedError,
    View,
    frame,
    mask,
    parse_header,
)

Compression = Literal["none", "gzip", "zlib"]

MAX_RECORD = 1 << 28
"""A record of a compressed file beyond this many bytes is refused, since the file doesn't show how long it can be."""

_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own encoding of "with a gzip header" and "with a zlib header"
_INPUT = 1 << 16
_OUTPUT = 1 << 18
_GATHER = 1020  # buffers a gather list: writev takes IOV_MAX, 1024 on Linux and on macOS
_BATCH = 1 << 20  # bytes a piece: still in the cache from the CRC when the kernel copies them


class RecordWriter:
    """Frames records and passes them on in large gather lists; what is not compressed is never copied in user space.

    A compressed file is one stream, as TFRecordOptions("GZIP") and ("ZLIB") read it. Its header holds no time and no
    name, so that equal records make equal files. ``size`` is the bytes of all records, framing included, before
    compression; ``held`` those of them that were not passed on yet.

    Args:
        put: takes each gather list: at most 1020 buffers, one after the other.
        compression: of the whole file.
        hold: records wait until there are that many bytes of them.
    """

    def __init__(
        self, put: Callable[[Sequence[Buffer]], object], compression: Compression = "none", hold: int = _BATCH
    ) -> None:
        self._put = put
        self._deflate = None if compression == "none" else zlib.compressobj(wbits=_WINDOW_BITS[compression])
        self._hash = hashlib.sha256()
        self._hold = hold
        self._pending: list[Buffer] = []
        self.size = 0
        self.held = 0

    def write(self, *parts: Buffer) -> tuple[int, int]:
        """Append one record whose data are ``parts`` one after the other.

        Returns:
            Its length in bytes, framing included, and the masked CRC of its data.
        """
        header, footer, length = frame(*parts)
        length += OVERHEAD
        self._pending += (header, *parts, footer)
        self.size += length
        self.held += length
        if self.held >= self._hold:
            self.flush()
        return length, FOOTER.unpack(footer)[0]

    def flush(self) -> None:
        """Pass on every record that waits."""
        parts, self._pending, self.held = self._pending, [], 0
        self._pass_on(parts if self._deflate is None else list(map(self._deflate.compress, parts)))

    def close(self) -> None:
        """Pass on all that is left, the end of a compressed stream too."""
        self.flush()
        if self._deflate is not None:
            self._pass_on([self._deflate.flush()])

    @property
    def file_digest(self) -> str:
        """The SHA-256 (hex) of the bytes passed on; "" where nothing is compressed: those of the records prove all."""
        return "" if self._deflate is None else self._hash.hexdigest()

    def _pass_on(self, pieces: Sequence[Buffer]) -> None:
        if self._deflate is not None:
            pieces = [piece for piece in pieces if piece]
            for piece in pieces:
                self._hash.update(piece)
        for start in range(0, len(pieces), _GATHER):
            self._put(pieces[start : start + _GATHER])


class CompressionError(FramingError):
    """The compressed stream is damaged; record and offset are those within what it inflates to."""


def detect(view: View) -> Compression:
    """How a TFRecord file is compressed, by its first bytes.

    A plain length field can by accident begin like a compressed file, so its CRC is asked first.
    """
    header = bytes(view[: HEADER.size])
    if len(header) == HEADER.size and mask(crc32c(header[:8])) == HEADER.unpack(header)[1]:
        return "none"
    start = header[:2]
    if start == b"\x1f\x8b":
        return "gzip"
    if len(start) == 2 and start[0] & 0x0F == 8 and int.from_bytes(start, "big") % 31 == 0:  # RFC 1950, 2.2
        return "zlib"
    return "none"


def iter_records(view: View, compression: Compression) -> Iterator[Framed]:
    """Every record of a whole file, compressed or not; offsets are those of the uncompressed bytes.

    Raises:
        LengthError: a length field doesn't match its CRC, or is absurd.
        TruncatedError: the file ends within a record or within its compressed stream.
        CompressionError: the compressed stream is damaged.
    """
    if compression == "none":
        yield from tfrecord.iter_records(view)
    else:
        yield from _iter_inflated(_Inflated(view, compression), compression)


def _iter_inflated(stream: _Inflated, compression: str) -> Iterator[Framed]:
    number = offset = 0
    try:
        while header := stream.take(HEADER.size):
            length = parse_header(header, number, offset)
            if length > MAX_RECORD:
                reason = f"{length} bytes of data announced, over the limit of {MAX_RECORD}"
                raise LengthError(number, offset, reason)
            data = stream.take(length)
            footer = stream.take(FOOTER.size)
            if len(data) + len(footer) < length + FOOTER.size:
                reason = f"{length} bytes of data and 4 of CRC announced, {len(data) + len(footer)} left"
                raise TruncatedError(number, offset, reason)
            (crc,) = FOOTER.unpack(footer)
            yield Framed(number, offset, memoryview(data), crc, mask(crc32c(data)) == crc)
            offset += HEADER.size + length + FOOTER.size
            number += 1
    except EOFError:
        raise TruncatedError(number, offset, f"the {compression} stream is cut short") from None
    except zlib.error as error:
        raise CompressionError(number, offset, f"the {compression} stream is damaged: {error}") from None


class _Inflated:
    """What a compressed file inflates to, never more of it in memory than was asked for and one piece."""

    def __init__(self, view: View, compression: str) -> None:
        self._pieces = _inflate(view, _WINDOW_BITS[compression])
        self._buffer = bytearray()

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, or fewer at the end."""
        while len(self._buffer) < count:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._buffer += piece
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def _inflate(view: View, window_bits: int) -> Iterator[bytes]:
    """Inflate stream after stream; raises zlib.error for damage, EOFError where the last one is cut short."""
    stream = zlib.decompressobj(window_bits)
    position, pending = 0, b""
    while pending or position < len(view):
        if not pending:
            pending = bytes(view[position : position + _INPUT])
            position += len(pending)
        if stream.eof:
            stream = zlib.decompressobj(window_bits)
        yield stream.decompress(pending, _OUTPUT)
        pending = stream.unused_data if stream.eof else stream.unconsumed_tail
    while not stream.eof:
        piece = stream.decompress(b"", _OUTPUT)
        if not piece:
            raise EOFError
        yield piece
