"""iter_members and stream_members: tar archives -> byte ranges, or names and contents; any fault
raises TarFault.

Python's tarfile takes a broken header or a truncated archive for its end, and silently drops the
rest; a data set must not lose images that way. So every header checksum is checked, the two end
blocks are required, only padding may follow them, and only regular files are accepted. Formats: v7,
ustar and pax (POSIX.1-2017, "pax Interchange Format") and GNU ("Basic Tar Format" in the GNU tar
manual).
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol
from zlib import adler32

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.sources.archive_faults import UNJOIN, TarFault, quoted, special_member
from imagenet_prep.storage.refusals import unreadable

BLOCK = 512

_ZEROS = bytes(BLOCK)
_FILES = b"0\0" + b"7"  # regular, regular in v7, contiguous
_DIRECTORY = ord("5")
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"LKxg"
_EXTENSIONS = b"LKxg"
_USUAL_RECORD = 20 * BLOCK
_LARGEST_RECORD = 1 << 20
_LARGEST_EXTENSION = 1 << 20  # a header of headers; real ones are a few hundred bytes
_STREAM_BLOCK = 1 << 18

Read = Callable[[int, int], bytes]
IsPadding = Callable[[int], bool]
Member = tuple[bytes, int, int]


class Sliceable(Protocol):
    """The archive that iter_members requires:
    bytes, a memoryview, or a file that supports slices.
    """

    def __len__(self) -> int:
        """The number of bytes."""
        ...

    def __getitem__(self, where: slice, /) -> bytes | memoryview:
        """The bytes of a slice; fewer at the end of the archive."""
        ...


class Readable(Protocol):
    """The stream that stream_members requires."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        ...


def iter_members(view: Sliceable, start: int, stop: int) -> Iterator[Member]:
    """List name, offset in ``view`` and length in bytes of each regular file in the tar at
    ``view[start:stop]``.

    Directories are skipped; names are bytes as stored and may repeat. It takes about 2 microseconds
    per member.

    Raises:
        TarFault: a wrong checksum, a truncation, missing end blocks, data after them, an impossible
            size, or a sparse or special file.
    """

    def read(offset: int, length: int) -> bytes:
        if offset + length > stop:
            raise _cut(stop)
        content = bytes(view[offset : offset + length])
        if len(content) < length:  # the file was cut after its length was read
            raise _cut(offset + len(content))
        return content

    def is_padding(end: int) -> bool:
        length = stop - end
        if not length:
            return True
        return _may_pad(length, stop - start) and read(end, length).count(0) == length

    stop = min(stop, len(view))
    return _walk(read, is_padding, start, stop, "beyond the end of the tar")


def stream_members(
    stream: Readable, *, limit: int, keep: int | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each regular file in a tar that is read once, from its first byte to the
    stream's end.

    Args:
        stream: the tar's bytes, possibly from a decompressor.
        limit: the maximum bytes that the stream may expand to.
        keep: longer contents are cut to this many bytes, so that no member can fill the memory.

    Raises:
        TarFault: as iter_members, with offsets in the stream; also for more than ``limit`` bytes.
    """
    max_length = limit if keep is None else keep
    window = _Window(stream, limit)
    beyond = f"beyond the limit of {limit:,} bytes"
    for name, offset, length in _walk(window.read, window.is_padding, 0, limit, beyond):
        yield name, window.read(offset, min(length, max_length))


class _Window:
    """The bytes of a stream by offset, forward only."""

    def __init__(self, stream: Readable, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._buffer = b""
        self._base = 0  # offset of the buffer's first byte
        self._end = 0  # bytes taken from the stream

    def read(self, offset: int, length: int) -> bytes:
        begin = offset - self._base
        if begin + length > len(self._buffer):
            self._refill(offset, length)
            begin = 0
        return self._buffer[begin : begin + length]

    def is_padding(self, end: int) -> bool:
        """Whether only padding follows ``end``; a decompressor that reads
        it all checks its own checksum.
        """
        block = self._buffer[end - self._base :] or self._next()
        while block:
            if self._end - end > _LARGEST_RECORD or block.count(0) < len(block):
                return False
            block = self._next()
        return _may_pad(self._end - end, self._end)

    def _refill(self, offset: int, length: int) -> None:
        pieces = [self._buffer[offset - self._base :]]
        while self._end < offset + length:
            begin = self._end
            block = self._next()
            if not block:
                raise _cut(begin)
            pieces.append(block[max(0, offset - begin) :])
        self._buffer = b"".join(pieces)
        self._base = offset

    def _next(self) -> bytes:
        block = self._stream.read(_STREAM_BLOCK)
        self._end += len(block)
        if self._end > self._limit:
            reason = f"it unpacks to more than {self._limit:,} bytes, the most that is expected"
            raise TarFault(self._limit, reason, REMEDY)
        return block


def _walk(
    read: Read, is_padding: IsPadding, start: int, stop: int, beyond: str
) -> Iterator[Member]:
    position = start
    lasting: dict[bytes, bytes] = {}  # values of a global pax header, for every later member
    coming: dict[bytes, bytes] = {}  # values of extension headers, for the next member
    while (header := read(position, BLOCK)) != _ZEROS:
        _check_sum(header, position)
        kind = header[156]
        name, size = _parse_name(header), _parse_size(header, position)
        if (lasting or coming) and kind not in _EXTENSIONS:
            name, size = _apply({**lasting, **coming}, name, size, position)
        data = position + BLOCK
        if size > stop - data:
            raise TarFault(position, f"{quoted(name)} of {size:,} bytes would extend {beyond}")
        if kind in _EXTENSIONS:
            fields = _parse_extension(kind, size, read, data)
            (lasting if kind == _PAX_GLOBAL else coming).update(fields)
        elif kind == _DIRECTORY or (kind == 0 and name.endswith(b"/")):
            size, coming = 0, {}  # a directory's size reserves room; no data follows
        elif kind in _FILES:
            coming = {}
            yield name, data, size
        else:
            raise special_member(quoted(name), chr(kind), position)
        position = data + (size + BLOCK - 1) // BLOCK * BLOCK
    _check_end(read, is_padding, position, coming)


def has_header(view: Sliceable, start: int, stop: int) -> bool:
    """Whether the first block of ``view[start:stop]`` is the header of a member."""
    header = bytes(view[start : min(stop, start + BLOCK)])
    if len(header) < BLOCK:
        return False
    try:
        _check_sum(header, start)
    except TarFault:
        return False
    return True


def _check_sum(header: bytes, offset: int) -> None:
    """Compare the sum of a header's bytes, with its own field as blanks, with the recorded sum.

    The low half of Adler-32 is 1 + the sum of the bytes modulo 65521: exact for the 256 bytes of
    half a header, and ten times as fast as sum().
    """
    halves = (adler32(header[:256]) & 0xFFFF) + (adler32(header[256:]) & 0xFFFF)
    field = header[148:156]
    total = halves - (adler32(field) & 0xFFFF) + 255  # 8 blanks are 256, minus one of three ones
    if field == b"%06o\0 " % total:
        return
    forms = [b"%07o\0" % total, b"%06o \0" % total]
    if header[124] == 0x20:  # v7 pads every number with blanks
        forms.append(b"%6o\0 " % total)
    if field not in forms:
        raise _bad_header(offset)


def _check_end(
    read: Read, is_padding: IsPadding, position: int, coming: dict[bytes, bytes]
) -> None:
    if coming or read(position + BLOCK, BLOCK) != _ZEROS:
        raise _bad_header(position)
    if not is_padding(position + 2 * BLOCK):
        raise TarFault(
            position,
            "the tar ends here, but the file goes on: another tar or other bytes follow, "
            "or zeros replaced a part of the tar",
            if_intact=UNJOIN,
        )


def _may_pad(length: int, total: int) -> bool:
    """Whether a tar of ``total`` bytes may end with ``length`` bytes of padding.

    Tars are filled up to whole records: of 10 KiB usually, or of a power of two up to 1 MiB.
    """
    record = BLOCK
    while record <= length:
        record *= 2
    return length < _USUAL_RECORD or (record <= _LARGEST_RECORD and total % record == 0)


def _parse_name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    if header[345] and header[257:263] == b"ustar\0":  # GNU, "ustar  ", has times there
        return header[345:500].partition(b"\0")[0] + b"/" + name
    return name


def _parse_size(header: bytes, offset: int) -> int:
    field = header[124:136]
    if field[0] & 0x80:  # base 256 (GNU): big-endian two's complement after the flag
        if field[0] != 0x80:
            raise _bad_header(offset)
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    try:
        if digits.isdigit():
            return int(digits, 8)
    except ValueError:
        pass
    if not digits:
        return 0
    raise _bad_header(offset)


def _apply(fields: dict[bytes, bytes], name: bytes, size: int, offset: int) -> tuple[bytes, int]:
    """Name and size of a member by the fields of the extension headers before it."""
    if any(key.startswith(b"GNU.sparse.") for key in fields):
        raise special_member(quoted(name), "S", offset)
    if text := fields.get(b"size"):
        if not text.isdigit() or len(text) > 20:
            raise _bad_header(offset)
        size = int(text)
    return fields.get(b"path") or name, size


def _parse_extension(kind: int, size: int, read: Read, offset: int) -> dict[bytes, bytes]:
    if size > _LARGEST_EXTENSION:
        raise _bad_header(offset - BLOCK)
    content = read(offset, size)
    if kind == _LONG_NAME:
        return {b"path": content.partition(b"\0")[0]}
    if kind == _LONG_LINK:
        return {b"linkpath": content.partition(b"\0")[0]}
    return _parse_pax(content, offset)


def _parse_pax(content: bytes, offset: int) -> dict[bytes, bytes]:
    """The "<length> <key>=<value>\\n" records of a pax header;
    the length counts the whole record.
    """
    records: dict[bytes, bytes] = {}
    position = 0
    while position < len(content):
        digits = content[position : position + 20].partition(b" ")[0]
        stop = position + int(digits) if digits.isdigit() else 0
        pair = content[position + len(digits) + 1 : max(stop - 1, 0)]
        key, equals, value = pair.partition(b"=")
        if not equals or stop > len(content) or content[stop - 1] != ord("\n"):
            raise _bad_header(offset - BLOCK)
        records[key] = value
        position = stop
    return records


def _bad_header(offset: int) -> TarFault:
    return TarFault(offset, "the header of a file (its name and size) can't be read")


def _cut(offset: int) -> TarFault:
    return TarFault(offset, "the file ends here, before the end of the tar")


# the errors of an archive that is damaged, foreign or a bomb, and their remedies ------------------

REMEDY = Hint(
    "check where it comes from, or move it away and get it again: see ",
    mention("download", "--help"),
)
WHOLE_COPY = "get an intact copy of it"
"""The remedy for an archive that no command fetches."""

INFLATION = 200
"""The maximum expansion of a packed tar. Annotations,
1 kB of repetitive XML per file, expand about 40 times.
"""

INFLATION_FLOOR = 1 << 30
"""Bytes that any packed tar may expand to, however small it is."""


def stranger(archive: object, name: bytes, offset: int, expected: str) -> InputError:
    """The error for a member foreign to the data set; its data is at ``offset``."""
    got = name[:100].decode("utf-8", "backslashreplace")
    return InputError(
        f"{archive} holds a file that does not belong to this data set, at byte {offset - BLOCK:,}",
        f"expected {expected}, got {got!r}",
        REMEDY,
    )


def duplicate(archive: object, name: str, offset: int, next_offset: int) -> InputError:
    """The error for a name that two members share, with their data at these offsets."""
    places = f"at byte {offset - BLOCK:,} and again at byte {next_offset - BLOCK:,}"
    return InputError(f"{archive} holds {name} twice, {places}", "expected every name once", REMEDY)


def most_unpacked(size: int) -> int:
    """The size at which a packed tar of ``size`` bytes is considered a bomb."""
    return max(INFLATION_FLOOR, INFLATION * size)


@contextlib.contextmanager
def stream_faults(source: object, tell: Callable[[], int] = int) -> Iterator[None]:
    """Turn errors of tar, gzip and the system into one that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        problem = "can't be read" if fault.remedy else fault.problem
        what = f"{source} {problem} at byte {fault.offset:,} of its tar"
        if fault.offset < BLOCK and not fault.remedy:
            what = f"{source} is not a tar, or is damaged at byte {fault.offset:,}"
        raise InputError(what, fault.reason, REMEDY) from fault
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        what = f"{source} can't be decompressed, at byte {tell():,} or before it"
        raise InputError(what, str(error), REMEDY) from error
    except OSError as error:
        raise unreadable(error.filename or source, error) from error
