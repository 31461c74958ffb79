"""Whole TFRecord files, compressed (gzip or zlib) or not:
RecordWriter writes one, iter_records reads one in pieces.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from imagenet_prep.tfrecord import crc32c
from imagenet_prep.tfrecord import framing as tfrecord
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
    short_data,
    short_header,
)

Compression = Literal["none", "gzip", "zlib"]

MAX_RECORD = 1 << 28
"""Larger records of a compressed file are refused, in bytes:
the file doesn't show how long a record can be.
"""

_WINDOW_BITS = {"gzip": 31, "zlib": 15}
"""zlib's own codes for "with a gzip header" and "with a zlib header"."""

_INPUT = 1 << 16
_OUTPUT = 1 << 18
_GATHER = 1020  # buffers per gather list: writev accepts IOV_MAX, 1024 on Linux and on macOS
_BATCH = 1 << 20  # bytes per piece: still in the cache from the CRC when the kernel copies them


class RecordWriter:
    """Frames records and passes them on in large gather lists; uncompressed data is never copied in
    user space.

    A compressed file is one stream, as TFRecordOptions("GZIP") and ("ZLIB") read it. Its header
    holds no time and no name, so equal records make equal files. ``size`` is the bytes of all
    records, framing included, before compression. ``held`` is how many of them still wait.

    Args:
        put: receives each gather list: at most 1020 buffers, in order.
        compression: of the whole file.
        hold: records wait until they have this many bytes together.
    """

    def __init__(
        self,
        put: Callable[[Sequence[Buffer]], object],
        compression: Compression = "none",
        hold: int = _BATCH,
    ) -> None:
        self._put = put
        self._deflate = (
            None if compression == "none" else zlib.compressobj(wbits=_WINDOW_BITS[compression])
        )
        self._hash = hashlib.sha256()
        self._hold = hold
        self._pending: list[Buffer] = []
        self.size = 0
        self.held = 0

    def write(self, *parts: Buffer) -> tuple[int, int]:
        """Append one record whose data is ``parts``, joined.

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
        """Pass on every waiting record."""
        parts, self._pending, self.held = self._pending, [], 0
        if self._deflate is not None:
            parts = list(map(self._deflate.compress, parts))
        self._pass_on(parts)

    def close(self) -> None:
        """Pass on everything left, including the end of a compressed stream."""
        self.flush()
        if self._deflate is not None:
            self._pass_on([self._deflate.flush()])

    @property
    def file_digest(self) -> str:
        """The SHA-256 (hex) of the bytes passed on;
        "" for an uncompressed file, since its records prove all.
        """
        return "" if self._deflate is None else self._hash.hexdigest()

    def _pass_on(self, pieces: Sequence[Buffer]) -> None:
        if self._deflate is not None:
            pieces = [piece for piece in pieces if piece]
            for piece in pieces:
                self._hash.update(piece)
        for start in range(0, len(pieces), _GATHER):
            self._put(pieces[start : start + _GATHER])


class CompressionError(FramingError):
    """The compressed stream is damaged. Record and offset refer to the inflated content."""


def detect(view: View) -> Compression:
    """How a TFRecord file is compressed, judged by its first bytes.

    A plain length field can look like a compressed file by accident, so its CRC is checked first.
    """
    header = bytes(view[: HEADER.size])
    if len(header) == HEADER.size and mask(crc32c(header[:8])) == HEADER.unpack(header)[1]:
        return "none"
    start = header[:2]
    if start == b"\x1f\x8b":
        return "gzip"
    # RFC 1950, 2.2
    if len(start) == 2 and start[0] & 0x0F == 8 and int.from_bytes(start, "big") % 31 == 0:
        return "zlib"
    return "none"


def iter_records(view: View, compression: Compression) -> Iterator[Framed]:
    """Every record of a whole file, compressed or not; offsets refer to the uncompressed bytes.

    Raises:
        LengthError: a length field doesn't match its CRC, or is implausible.
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
            if len(header) < HEADER.size:
                raise TruncatedError(number, offset, short_header(len(header), "content", number))
            length = parse_header(header, number, offset)
            if length > MAX_RECORD:
                reason = (
                    f"the header announces {length:,} bytes of data: expected at most "
                    f"{MAX_RECORD:,} in a compressed file"
                )
                raise LengthError(number, offset, reason)
            data = stream.take(length)
            footer = stream.take(FOOTER.size)
            size = len(data) + len(footer)
            if size < length + FOOTER.size:
                raise TruncatedError(number, offset, short_data(length, size))
            (crc,) = FOOTER.unpack(footer)
            yield Framed(number, offset, memoryview(data), crc, mask(crc32c(data)) == crc)
            offset += HEADER.size + length + FOOTER.size
            number += 1
    except _StrayBytesError:
        reason = f"the {compression} stream ends, and the bytes after it are not another whole one"
        raise CompressionError(number, offset, reason) from None
    except EOFError:
        reason = f"read as {compression}, the file ends too early: it may be cut or damaged"
        raise TruncatedError(number, offset, reason) from None
    except zlib.error as error:
        reason = f"the file can't be read as {compression}: {error}"
        raise CompressionError(number, offset, reason) from None


class _Inflated:
    """The inflated content of a compressed file;
    memory holds one piece more than was requested, at most.
    """

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
        content = bytes(self._buffer[:count])
        del self._buffer[:count]
        return content


class _StrayBytesError(Exception):
    """After the end of a stream come bytes of which nothing can be inflated."""


def _inflate(view: View, window_bits: int) -> Iterator[bytes]:
    """Inflate stream after stream; raises zlib.error for damage,
    EOFError if the last one is cut short.
    """
    stream = zlib.decompressobj(window_bits)
    position, pending = 0, b""
    may_be_stray = False  # a stream has ended, and nothing of the next one was inflated
    while pending or position < len(view):
        if not pending:
            pending = bytes(view[position : position + _INPUT])
            position += len(pending)
        if stream.eof:
            stream = zlib.decompressobj(window_bits)
            may_be_stray = True
        try:
            piece = stream.decompress(pending, _OUTPUT)
        except zlib.error as error:
            raise _StrayBytesError if may_be_stray else error from None
        may_be_stray = may_be_stray and not piece
        yield piece
        pending = stream.unused_data if stream.eof else stream.unconsumed_tail
    yield from _flush(stream, may_be_stray=may_be_stray)


def _flush(stream: Any, *, may_be_stray: bool) -> Iterator[bytes]:
    """The rest of the last stream; raises EOFError if it has no end."""
    while not stream.eof:
        piece = stream.decompress(b"", _OUTPUT)
        if not piece:
            raise _StrayBytesError if may_be_stray else EOFError
        may_be_stray = False
        yield piece
