"""iter_entries, entry_at, read_entry: the bytes of a zip -> its entries, and those of one file.
Files are stored or deflated. Numbers in comments are sections of PKWARE's APPNOTE.TXT.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from imagenet_prep.sources.archive_faults import CutZip, NoZip, ZipFault, quoted, unread_zip
from imagenet_prep.sources.tar_members import Member, Sliceable

_END = struct.Struct("<4sHHHHIIH")  # 4.3.16
_END_LOCATOR = struct.Struct("<4sIQI")  # 4.3.15
_END_64 = struct.Struct("<4sQHHIIQQQQ")  # 4.3.14
_CENTRAL = struct.Struct("<4sH2xHH4xIIIHHHH2xII")  # 4.3.12
_LOCAL = struct.Struct("<4s2xHH4xIIIHH")  # 4.3.7
_WIDE_OFFSET = struct.Struct("<HHQ")
_WIDE_OFFSET_ALONE = b"\1\0\10\0"
_ZIP_64 = 1  # the extra field with sizes beyond 32 bits, 4.5.3
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_NARROW_FIELDS = ((_FULL_32, 8), (_FULL_32, 8), (_FULL_32, 8), (_FULL_16, 4))
"""Size, packed size, offset and disk of an entry: the number that says that its value is in the
zip64 field, and the bytes that it has there.
"""

_LONGEST = _CENTRAL.size + 3 * _FULL_16  # bytes of a header with its name, extra fields and comment
_WINDOW = 1 << 20

STORED, DEFLATED = 0, 8
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SIZES_FOLLOW = 0x8  # the local header was written before they were known
_UNIX, _FILE_TYPES, _PLAIN = 3, 0o170000, (0, 0o100000)
_METHODS = (STORED, DEFLATED)
_ANY_TYPE = 1 << 28  # from here on, the upper bits may mark a special file
_ODD = (b"", b"/")  # the last byte of an empty name, and of a folder's
_DENSEST = 1032  # the maximum expansion of a deflated byte (zlib, "Maximum Compression Factor")

LARGEST_INFLATED = 1 << 30
"""The maximum size of a deflated entry, which is inflated in memory."""


class Entry(NamedTuple):
    """The central directory's description of a file.

    ``address`` is the offset of its header there, ``local`` that of its own header before its data.
    ``size`` is the size of the file, ``packed`` that of its data in the archive, both in bytes;
    ``method`` is STORED or DEFLATED.
    """

    name: bytes
    address: int
    local: int
    size: int
    packed: int
    crc: int
    method: int
    flags: int


def iter_entries(view: Sliceable) -> Iterator[Member]:
    """List name, address and length of every file of a zip, in central directory order; folders are
    skipped.

    The address is the offset of its header in the directory, for ``entry_at``. Names are bytes as
    stored, and may repeat. It takes about 2 microseconds and 16 bytes per entry.

    Raises:
        ZipFault: the zip is truncated, split over several files, or has bytes before or after it;
            an entry is encrypted, uses another method, is outside, or overlaps; a size is
            impossible. Overlaps show at the end.
    """
    start, stop, count = _find_directory(view)
    begins, ends = array("Q"), array("Q")
    position = window_start = start
    window = b""
    whole = -1  # the last byte of the window where a header is in it as a whole
    for _ in range(count):
        if position == stop:
            raise _bad_list(position)
        if position - window_start > whole:
            window_start = position
            window = bytes(view[position : min(stop, position + _WINDOW)])
            whole = len(window) - (_LONGEST if position + _WINDOW < stop else 0)
        name, _, local, size, packed, _, _, _, following = _parse(
            window, position - window_start, position
        )
        end = local + _LOCAL.size + len(name) + packed
        if end > start:
            raise _bad_list(position)
        begins.append(local)
        ends.append(end)
        if not name.endswith(b"/"):
            yield name, position, size
        position = following
    if position != stop:
        raise _bad_list(position)
    _refuse_overlaps(begins, ends)


def entry_at(view: Sliceable, address: int) -> Entry:
    """The entry whose header in the central directory is at ``address``.

    Raises:
        ZipFault: no entry is there.
    """
    window = view[address : min(len(view), address + _LONGEST)]
    return Entry(*_parse(window, 0, address)[:-1])


def read_entry(view: Sliceable, entry: Entry) -> bytes | memoryview:
    """The bytes of a file: a slice of ``view`` if it is stored. Its length and CRC-32 are always
    checked.

    Raises:
        ZipFault: they differ, or its own header contradicts the central directory.
    """
    start = _data_start(view, entry)
    packed = view[start : start + entry.packed]
    if len(packed) != entry.packed:
        raise _bad_file(entry, start)
    data = packed if entry.method == STORED else _inflated(packed, entry, start)
    if zlib.crc32(data) != entry.crc:
        raise _bad_file(entry, start)
    return data


def check_end(view: Sliceable) -> None:
    """Check by its end only that a zip is complete.

    Raises:
        ZipFault: its end doesn't locate the central directory, or contradicts it.
    """
    _find_directory(view)


# the end ------------------------------------------------------------------------------------------


class _End(NamedTuple):
    """The end record, or its zip64 form: its offset, and what it says of disks and directory."""

    offset: int
    disks: set[int]
    entries_here: int
    entries: int
    length: int
    start: int


_PRECEDED = "other bytes precede the zip, or bytes of it are missing or changed"
_ZIP_AGAIN = "if other bytes precede it, unpack it, and zip the files again"


def _find_directory(view: Sliceable) -> tuple[int, int, int]:
    """Start and end of the central directory, and the number of its entries."""
    end = _find_end(view)
    if end.disks != {0} or end.entries_here != end.entries:
        reason = "this is one part of a zip that was split over several files"
        raise unread_zip(end.offset, reason, "split")
    if end.start + end.length > end.offset:
        raise _bad_list(end.offset)
    if end.start + end.length < end.offset:
        raise ZipFault(end.offset, _PRECEDED, if_intact=_ZIP_AGAIN)
    if end.entries * _CENTRAL.size > end.length:
        raise _bad_list(end.offset)
    return end.start, end.offset, end.entries


def _find_end(view: Sliceable) -> _End:
    size = len(view)
    tail = bytes(view[max(0, size - _END.size - _FULL_16) : size])
    at = tail.rfind(b"PK\5\6")
    while at >= 0 and not _is_end(tail, at):
        at = tail.rfind(b"PK\5\6", 0, at)
    if at < 0:
        if bytes(view[0 : min(4, size)]) in (b"PK\3\4", b"PK\5\6"):
            reason = "the zip is cut, its end is damaged, or other bytes follow"
            raise CutZip(size, reason)
        raise NoZip(size, "it is not a zip")
    offset = size - len(tail) + at
    locator = bytes(view[max(0, offset - _END_LOCATOR.size) : offset])
    if locator.startswith(b"PK\6\7") and len(locator) == _END_LOCATOR.size:
        return _read_end_64(view, offset, locator)
    _, disk, first_disk, count_here, count, length, start, _ = _END.unpack_from(tail, at)
    return _End(offset, {disk, first_disk}, count_here, count, length, start)


def _is_end(tail: bytes, at: int) -> bool:
    """Whether the end record of a zip starts at this byte of its last ones."""
    if len(tail) - at < _END.size:
        return False
    comment_length = _END.unpack_from(tail, at)[7]
    return bool(at + _END.size + comment_length == len(tail))


def _read_end_64(view: Sliceable, offset: int, locator: bytes) -> _End:
    """The zip64 form of the end record at ``offset``, to which its locator points."""
    located_disk, offset_64 = _END_LOCATOR.unpack(locator)[1:3]
    record = bytes(view[offset_64 : offset_64 + _END_64.size]) if offset_64 < offset else b""
    if len(record) < _END_64.size or not record.startswith(b"PK\6\6"):
        raise ZipFault(offset - _END_LOCATOR.size, _PRECEDED, if_intact=_ZIP_AGAIN)
    _, _, _, _, disk, first_disk, count_here, count, length, start = _END_64.unpack(record)
    disks = {disk, first_disk, located_disk}
    return _End(offset_64, disks, count_here, count, length, start)


# an entry -----------------------------------------------------------------------------------------


def _parse(
    window: bytes | memoryview, at: int, position: int
) -> tuple[bytes, int, int, int, int, int, int, int, int]:
    """The fields of the entry at ``window[at]``, at ``position`` of the archive,
    and the position of the next one.
    """
    if len(window) - at < _CENTRAL.size:
        raise _bad_list(position)
    (
        mark,
        made_by,
        flags,
        method,
        crc,
        packed,
        size,
        name_length,
        extra_length,
        comment_length,
        disk,
        attributes,
        local,
    ) = _CENTRAL.unpack_from(window, at)
    begin = at + _CENTRAL.size
    extra = begin + name_length
    following = extra + extra_length + comment_length
    if mark != b"PK\1\2" or following > len(window):
        raise _bad_list(position)
    name = bytes(window[begin:extra])
    if size == _FULL_32 or packed == _FULL_32 or local == _FULL_32 or disk == _FULL_16:
        fields = bytes(window[extra : extra + extra_length])
        size, packed, local, disk = _widen(fields, (size, packed, local, disk), position)
    has_size = size == packed
    if method == DEFLATED:
        has_size = size <= _DENSEST * packed and size <= LARGEST_INFLATED
    is_odd = disk or flags & _ENCRYPTED or attributes >= _ANY_TYPE or name[-1:] in _ODD
    if is_odd or not has_size or method not in _METHODS:
        entry = Entry(name, position, local, size, packed, crc, method, flags)
        _check(entry, disk, made_by, attributes)
    return name, position, local, size, packed, crc, method, flags, position + following - at


def _check(entry: Entry, disk: int, made_by: int, attributes: int) -> None:
    """Raise ZipFault for an unreadable or impossible entry."""
    name, position, size = entry.name, entry.address, entry.size
    if entry.flags & _ENCRYPTED:
        raise unread_zip(position, f"{quoted(name)} is marked as encrypted", "encrypted")
    _check_sizes(entry)
    if disk:
        reason = f"{quoted(name)} is in another part of a split zip"
        raise unread_zip(position, reason, "split")
    is_folder = name.endswith(b"/")
    file_type = (attributes >> 16) & _FILE_TYPES
    if made_by >> 8 == _UNIX and not is_folder and file_type not in _PLAIN:
        reason = f"{quoted(name)} is a link, a device or the like, not a plain file"
        raise unread_zip(position, reason, "special")
    if not name or (size and is_folder):
        raise _bad_list(position)


def _check_sizes(entry: Entry) -> None:
    """Raise ZipFault unless an entry has a method that can be read, and sizes that it allows."""
    position, size, packed = entry.address, entry.size, entry.packed
    if entry.method not in _METHODS:
        found = f"{quoted(entry.name)} has compression method {entry.method}"
        reason = f"{found}: expected 0 (stored) or 8 (deflated)"
        raise unread_zip(position, reason, "method")
    if size > _DENSEST * packed or (entry.method == STORED and size != packed):
        raise _bad_list(position)
    if entry.method == DEFLATED and size > LARGEST_INFLATED:
        found = f"{quoted(entry.name)} is compressed, and has {size:,} bytes"
        raise unread_zip(position, f"{found}: expected at most 1 GiB", "large")


def _widen(extra: bytes, narrow: tuple[int, int, int, int], position: int) -> list[int]:
    """Size, packed size, local offset and disk; values that didn't fit are in the zip64 field,
    in this order.
    """
    size, packed, local, disk = narrow
    if len(extra) == _WIDE_OFFSET.size and extra.startswith(_WIDE_OFFSET_ALONE):
        is_narrow = size != _FULL_32 and packed != _FULL_32 and disk != _FULL_16
        if is_narrow and local == _FULL_32:  # the usual, fast case
            return [size, packed, _WIDE_OFFSET.unpack(extra)[2], disk]
    content = _find_zip_64(extra)
    wide = []
    for number, (full, width) in zip(narrow, _NARROW_FIELDS, strict=True):
        if number != full:
            wide.append(number)
            continue
        if len(content) < width:
            raise _bad_list(position)
        wide.append(int.from_bytes(content[:width], "little"))
        content = content[width:]
    return wide


def _find_zip_64(extra: bytes) -> bytes:
    """The content of the zip64 field among the extra fields of an entry; none without it."""
    at = 0
    while at + 4 <= len(extra):
        field_id, length = struct.unpack_from("<HH", extra, at)
        if field_id == _ZIP_64:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""


def _data_start(view: Sliceable, entry: Entry) -> int:
    """Start of the data, if the header before them agrees with the central directory."""
    at = entry.local
    header = view[at : at + _LOCAL.size]
    if len(header) != _LOCAL.size:
        raise _bad_file(entry, at)
    mark, flags, method, crc, packed, size, name_length, extra_length = _LOCAL.unpack(header)
    name_stop = at + _LOCAL.size + name_length
    if mark != b"PK\3\4" or bytes(view[at + _LOCAL.size : name_stop]) != entry.name:
        raise _bad_file(entry, at)
    if size == _FULL_32 or packed == _FULL_32:
        extra = bytes(view[name_stop : name_stop + extra_length])
        try:
            size, packed, _, _ = _widen(extra, (size, packed, 0, 0), at)
        except ZipFault as fault:
            raise _bad_file(entry, at) from fault
    is_same = _has_values(entry, (crc, packed, size), may_lack=bool(flags & _SIZES_FOLLOW))
    if not is_same or method != entry.method or flags & _ENCRYPTED:
        raise _bad_file(entry, at)
    data_start: int = name_stop + extra_length
    return data_start


def _has_values(entry: Entry, local_values: tuple[int, int, int], *, may_lack: bool) -> bool:
    """Whether CRC-32 and sizes in the header before the data are those of the central directory;
    where they follow the data, the header ``may_lack`` them: then they are 0.
    """
    values = entry.crc, entry.packed, entry.size
    pairs = zip(local_values, values, strict=True)
    return all(local == value or (may_lack and not local) for local, value in pairs)


def _inflated(packed: bytes | memoryview, entry: Entry, start: int) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = inflater.decompress(packed, entry.size + 1)
    except zlib.error as error:
        raise _bad_file(entry, start) from error
    if len(data) != entry.size or not inflater.eof or inflater.unused_data:
        raise _bad_file(entry, start)
    return data


def _refuse_overlaps(begins: array[int], ends: array[int]) -> None:
    starts, stops = np.array(begins, np.uint64), np.array(ends, np.uint64)
    order = np.argsort(starts, kind="stable")
    over = np.flatnonzero(starts[order[1:]] < stops[order[:-1]])
    if len(over):
        raise _bad_list(int(starts[order[over[0] + 1]]))


def _bad_list(offset: int) -> ZipFault:
    """The fault of a central directory that is no list of files, or of files that can't be."""
    return ZipFault(offset, "its list of files (the central directory) is wrong")


def _bad_file(entry: Entry, offset: int) -> ZipFault:
    """The fault of a file whose bytes, or the header before them, are not those of the list."""
    name = quoted(entry.name)
    return ZipFault(offset, f"{name} differs from what the zip's list of files says of it")
