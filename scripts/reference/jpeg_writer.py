"""write_jpeg: sample planes -> a baseline JPEG of any subsampling, number of components and Adobe
marker.

No encoder at hand writes all that a decoder must read: four components in 4:1:1, or YCCK without
subsampled black. ITU T.81 has the format.
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from PIL import Image

Plane = NDArray[np.uint8]
Blocks = NDArray[np.int64]
Tables = dict[int, tuple[int, int]]

_ZIGZAG = sorted(
    range(64), key=lambda n: (n // 8 + n % 8, n // 8 if (n // 8 + n % 8) % 2 else n % 8)
)


class Component(Struct, frozen=True):
    """A plane of samples in the image's size, and its sampling factors: across and down."""

    plane: Plane
    across: int = 1
    down: int = 1


class Options(Struct, frozen=True):
    """How to write a JPEG.

    Args:
        quality: 1 to 100, as in libjpeg.
        adobe: the transform in the Adobe marker (0 CMYK, 2 YCCK); None for no marker.
        jfif: whether it has a JFIF marker.
        restart: the MCUs between restart markers; 0 for no restart markers.
        is_interleaved: one scan of all components; otherwise one scan per component.
    """

    quality: int = 92
    adobe: int | None = None
    jfif: bool = False
    restart: int = 0
    is_interleaved: bool = True


def write_jpeg(components: Sequence[Component], options: Options) -> bytes:
    """The JPEG of these components, which have planes of one size."""
    height, width = components[0].plane.shape
    content = [b"\xff\xd8"]
    if options.jfif:
        content.append(_segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"))
    if options.adobe is not None:
        content.append(_segment(0xEE, struct.pack(">5sHHHB", b"Adobe", 100, 0, 0, options.adobe)))
    quantisers, huffman = _tables(options.quality)
    content.append(_segment(0xDB, b"\0" + bytes(quantisers[n] for n in _ZIGZAG)))
    frame = struct.pack(">BHHB", 8, height, width, len(components))
    for number, component in enumerate(components, 1):
        frame += bytes((number, component.across << 4 | component.down, 0))
    content.append(_segment(0xC0, frame))
    content += [_segment(0xC4, table) for table in huffman]
    if options.restart:
        content.append(_segment(0xDD, struct.pack(">H", options.restart)))
    most = max(c.across for c in components), max(c.down for c in components)
    planes = [_coefficients(component, most, quantisers) for component in components]
    numbers = range(1, len(components) + 1)
    scans = [tuple(numbers)] if options.is_interleaved else [(number,) for number in numbers]
    codes = [_codes(table) for table in huffman]
    for scan in scans:
        selected = b"".join(bytes((number, 0)) for number in scan)
        content.append(_segment(0xDA, bytes((len(scan),)) + selected + b"\0\x3f\0"))
        mcus = _mcus(
            [planes[number - 1] for number in scan],
            [components[number - 1] for number in scan],
            most,
        )
        content.append(_entropy_coded(mcus, codes, options.restart))
    return b"".join((*content, b"\xff\xd9"))


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def _tables(quality: int) -> tuple[list[int], list[bytes]]:
    """The quantisers for luminance, row by row, and the two Huffman tables (DC,
    AC) of T.81, annex K.
    """
    buffer = io.BytesIO()
    Image.new("L", (8, 8)).save(buffer, "JPEG", quality=quality)
    with Image.open(buffer) as image:
        quantisers = list(image.quantization[0])
    content, huffman = buffer.getvalue(), []
    start = content.index(b"\xff\xc4")
    while content[start : start + 2] == b"\xff\xc4":
        (length,) = struct.unpack_from(">H", content, start + 2)
        huffman.append(content[start + 4 : start + 2 + length])
        start += 2 + length
    return quantisers, huffman


def _codes(table: bytes) -> Tables:
    """The code and its length in bits of each symbol."""
    codes, code, position = {}, 0, 17
    for length in range(1, 17):
        for symbol in table[position : position + table[length]]:
            codes[symbol] = code, length
            code += 1
        position += table[length]
        code <<= 1
    return codes


def _coefficients(component: Component, most: tuple[int, int], quantisers: Sequence[int]) -> Blocks:
    """Quantised coefficients of a plane, of the shape (rows of blocks, columns, 64):
    a whole number of MCUs.
    """
    height, width = component.plane.shape
    size = -(-width * component.across // most[0]), -(-height * component.down // most[1])
    smaller = np.asarray(Image.fromarray(component.plane).resize(size, Image.Resampling.BOX), float)
    across = 8 * component.across * -(-width // (8 * most[0]))
    down = 8 * component.down * -(-height // (8 * most[1]))
    padded = np.pad(smaller, ((0, down - size[1]), (0, across - size[0])), "edge") - 128
    blocks = padded.reshape(down // 8, 8, across // 8, 8).transpose(0, 2, 1, 3)
    angles = np.arange(8)
    transform = np.cos((2 * angles + 1) * angles[:, None] * np.pi / 16) / 2
    transform[0] /= np.sqrt(2)
    found = transform @ blocks @ transform.T
    rounded: Blocks = np.rint(
        found.reshape(down // 8, across // 8, 64) / np.array(quantisers)
    ).astype(int)
    return rounded


def _mcus(
    planes: Sequence[Blocks], components: Sequence[Component], most: tuple[int, int]
) -> Iterator[list[tuple[int, NDArray[np.int64]]]]:
    """The blocks of each MCU, each with the number of its component.
    A scan of one component has a block per MCU.
    """
    if len(planes) == 1:
        component = components[0]
        height, width = component.plane.shape
        rows = -(-height * component.down // (8 * most[1]))
        columns = -(-width * component.across // (8 * most[0]))
        for row, column in itertools.product(range(rows), range(columns)):
            yield [(0, planes[0][row, column])]
        return
    rows, columns = (
        planes[0].shape[0] // components[0].down,
        planes[0].shape[1] // components[0].across,
    )
    for row, column in itertools.product(range(rows), range(columns)):
        mcu = []
        for number, (blocks, component) in enumerate(zip(planes, components, strict=True)):
            for down, across in itertools.product(range(component.down), range(component.across)):
                mcu.append(
                    (
                        number,
                        blocks[row * component.down + down, column * component.across + across],
                    )
                )
        yield mcu


def _entropy_coded(
    mcus: Iterator[list[tuple[int, NDArray[np.int64]]]], codes: Sequence[Tables], restart: int
) -> bytes:
    parts: list[bytes] = []
    bits: list[str] = []
    before: dict[int, int] = {}
    for count, mcu in enumerate(mcus):
        if restart and count and count % restart == 0:
            parts += [_packed(bits), bytes((0xFF, 0xD0 + (count // restart - 1) % 8))]
            bits, before = [], {}
        for number, block in mcu:
            zigzag = [int(block[n]) for n in _ZIGZAG]
            bits.append(_value(codes[0], 0, zigzag[0] - before.get(number, 0)))
            before[number] = zigzag[0]
            bits += _alternating(codes[1], zigzag[1:])
    return b"".join((*parts, _packed(bits)))


def _alternating(codes: Tables, values: Sequence[int]) -> Iterator[str]:
    """The AC coefficients of a block: runs of zeros, values, and the end of the block."""
    zeros = 0
    for value in values:
        if value == 0:
            zeros += 1
            continue
        while zeros > 15:
            yield _code(codes, 0xF0)
            zeros -= 16
        yield _value(codes, zeros, value)
        zeros = 0
    if zeros:
        yield _code(codes, 0)


def _value(codes: Tables, zeros: int, value: int) -> str:
    size = abs(value).bit_length()
    code = _code(codes, zeros << 4 | size)
    return code + f"{value if value > 0 else value + (1 << size) - 1:0{size}b}" if size else code


def _code(codes: Tables, symbol: int) -> str:
    code, length = codes[symbol]
    return f"{code:0{length}b}"


def _packed(bits: Sequence[str]) -> bytes:
    """Bits as bytes, filled up with ones; a byte FF is followed by 00."""
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")
