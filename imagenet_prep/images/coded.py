"""check_coded: the Huffman codes of a JPEG, read one by one, for sampling factors that the strict
decoder can't take.

It finds what libjpeg warns of: bad codes, a premature end, bytes that are left over, wrong restart
markers, and odd scan parameters. It takes some 0.1 s for 100 kB; few images have such factors.
ITU-T T.81, Annexes A, B and F.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from imagenet_prep.images import jpeg
from imagenet_prep.images.jpeg import NOT_CLEAN, ImageError
from imagenet_prep.text import number_of

Buffer = bytes | memoryview

Table = list[int]
"""By the next 16 bits: 256 times the length of their code, plus its symbol;
0 if there is no such code.
"""

_DHT, _DRI = 0xC4, 0xDD
_RESTART = re.compile(rb"\xff+([\xd0-\xd7])")
_READ_AHEAD = 8
"""Bytes after the last code that libjpeg may have read already:
it doesn't warn of fewer that are left over.
"""


class _Component(NamedTuple):
    """A component of a frame: its number, and its blocks per row and column of a unit."""

    number: int
    across: int
    down: int


class _Frame(NamedTuple):
    """Size in pixels, and components."""

    width: int
    height: int
    components: tuple[_Component, ...]


def check_coded(data: Buffer) -> None:
    """Raise ImageError unless every scan of a sequential JPEG is whole; only Huffman codes are
    looked at.

    A lenient decoder has taken the JPEG before: the lengths of its segments and the numbers in them
    are possible.
    """
    tables: dict[int, Table] = {}
    frame = _Frame(0, 0, ())
    interval, scan, coded_from = 0, b"", 0
    for segment in jpeg.iter_segments(data):
        if segment.strays:
            count = number_of(segment.strays, "extraneous byte")
            raise ImageError(f"{NOT_CLEAN}{count} before a marker")
        if scan:
            coded = bytes(data[coded_from : segment.start])
            _check_scan(frame, scan, tables, _intervals(coded, interval), interval)
        content = bytes(data[segment.start + 4 : segment.stop])
        scan = content if segment.marker == jpeg.SOS else b""
        coded_from = segment.stop
        if segment.marker == _DHT:
            tables |= _read_tables(content)
        elif segment.marker == _DRI:
            interval = int.from_bytes(content[:2], "big")
        elif segment.marker in jpeg.HUFFMAN:
            frame = _read_frame(content)
        elif segment.marker == jpeg.EOI or jpeg.is_frame(segment.marker):
            return
    raise _damaged_code()


def _damaged_code() -> ImageError:
    """The error for codes, tables or restart markers that are missing, wrong or out of place."""
    return ImageError(f"{NOT_CLEAN}a part of its image data is missing or damaged")


def _read_frame(content: bytes) -> _Frame:
    """A frame header; jpeg.read_header has checked its size."""
    height, width = int.from_bytes(content[1:3], "big"), int.from_bytes(content[3:5], "big")
    components = []
    for at in range(6, 6 + 3 * content[5], 3):
        number, factors = content[at], content[at + 1]
        components.append(_Component(number, factors >> 4, factors & 15))
    return _Frame(width, height, tuple(components))


def _read_tables(content: bytes) -> Iterator[tuple[int, Table]]:
    """The tables of a DHT segment by class and number, as its byte Tc, Th holds them."""
    table_start = 0
    while table_start + 17 <= len(content):
        symbols_start = table_start + 17
        table = [0] * (1 << 16)
        code = 0
        for length, count in enumerate(content[table_start + 1 : table_start + 17], start=1):
            window_count = 1 << (16 - length)  # the windows of 16 bits that start with a code
            for symbol in content[symbols_start : symbols_start + count]:
                window = code << (16 - length)
                table[window : window + window_count] = [length << 8 | symbol] * window_count
                code += 1
            symbols_start += count
            code <<= 1
        yield content[table_start], table
        table_start = symbols_start


def _intervals(coded: bytes, interval: int) -> list[bytes]:
    """The coded data between restart markers, without the zeros that are stuffed after FF."""
    parts = _RESTART.split(coded.rstrip(b"\xff"))  # fill bytes
    for number, marker in enumerate(parts[1::2]):
        if not interval or marker[0] & 7 != number & 7:
            raise _damaged_code()
    return [part.replace(b"\xff\x00", b"\xff") for part in parts[::2]]


def _check_scan(
    frame: _Frame, scan: bytes, tables: Mapping[int, Table], parts: list[bytes], interval: int
) -> None:
    """Read all codes of a scan."""
    if scan[-3:] != jpeg.WHOLE_COEFFICIENTS:
        raise ImageError(f"{NOT_CLEAN}Invalid SOS parameters for sequential JPEG")
    by_number = {component.number: component for component in frame.components}
    components = [by_number[number] for number in scan[1:-3:2]]
    blocks = _blocks_of_unit(components, scan[2:-3:2], tables)
    units = _count_units(frame, components)
    units_per_part = interval or units
    expected = -(-units // interval) if interval else len(parts)
    if len(parts) != expected:
        raise _damaged_code()
    for number, part in enumerate(parts):
        count = min(units_per_part, units - number * interval)
        _read_codes(part, blocks * count)


def _blocks_of_unit(
    components: list[_Component], selectors: bytes, tables: Mapping[int, Table]
) -> list[tuple[Table, Table]]:
    """The tables of each block of a unit, for its first coefficient and for the others."""
    blocks: list[tuple[Table, Table]] = []
    for component, selector in zip(components, selectors, strict=True):
        count = component.across * component.down if len(components) > 1 else 1
        dc, ac = tables.get(selector >> 4), tables.get(0x10 | selector & 15)
        if dc is None or ac is None:
            raise _damaged_code()
        blocks += [(dc, ac)] * count
    return blocks


def _count_units(frame: _Frame, components: list[_Component]) -> int:
    """The number of units of a scan: of one block if it has one component. T.81, A.2."""
    across = max(component.across for component in frame.components)
    down = max(component.down for component in frame.components)
    width, height = frame.width, frame.height
    if len(components) == 1:
        width = -(-width * components[0].across // across)
        height = -(-height * components[0].down // down)
        across = down = 1
    return -(-width // (8 * across)) * -(-height // (8 * down))


def _read_codes(coded: bytes, blocks: list[tuple[Table, Table]]) -> None:
    """Read the codes of these blocks; T.81, F.2.2."""
    at, bits = 0, 8 * len(coded)
    for dc, ac in blocks:
        table, index = dc, 0
        while index < 64:
            window = int.from_bytes(coded[at >> 3 : (at >> 3) + 3].ljust(3, b"\0"), "big")
            code = table[window >> 8 - (at & 7) & 0xFFFF]
            at += (code >> 8) + (code & 15)
            if not code or at > bits:
                raise _damaged_code()
            run = code >> 4 & 15
            if table is dc:
                table, index = ac, 1
            elif code & 15 or run == 15:
                index += run + 1
            else:
                break
    unread = len(coded) - -(-at // 8)
    if unread >= _READ_AHEAD:
        raise ImageError(f"{NOT_CLEAN}{unread:,} extraneous bytes in its image data")
