"""Write tests/odd_images.tar: small images of every kind that a record holds encoded again, or that
looks like one.

python scripts/reference/odd_images.py tests/odd_images.tar

Encoders change between versions, so the tar is committed: run this only to add images, then
``compare.py --write-table`` for the bytes of TensorFlow 0.12.1.
"""

from __future__ import annotations

import io
import struct
import sys
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jpeg_writer import Component, Options, Plane, write_jpeg
from numpy.typing import NDArray
from PIL import Image

from imagenet_prep.demo.photographs import photograph

Factors = tuple[tuple[int, int], ...]

FOUR: dict[str, Factors] = {
    "444": ((1, 1), (1, 1), (1, 1), (1, 1)),
    "422": ((2, 1), (1, 1), (1, 1), (2, 1)),
    "420": ((2, 2), (1, 1), (1, 1), (2, 2)),
    "440": ((1, 2), (1, 1), (1, 1), (1, 2)),
    "411": ((4, 1), (1, 1), (1, 1), (4, 1)),
    "420 with small black": ((2, 2), (1, 1), (1, 1), (1, 1)),
    "three across": ((3, 1), (1, 1), (1, 1), (3, 1)),
    "three down": ((1, 3), (1, 1), (1, 1), (1, 3)),
    "every factor another": ((2, 2), (1, 2), (1, 1), (1, 1)),
}
THREE = {name: factors[:3] for name, factors in FOUR.items() if name != "420 with small black"}
MARKERS: dict[str, int | None] = {"cmyk adobe": 0, "cmyk": None, "ycck": 2}


def main() -> None:
    """Write the tar: the name of each image says what it is."""
    images = [*cmyk_images(), *png_images(), *kept_images()]
    with tarfile.open(sys.argv[1], "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in images:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    print(f"{len(images)} images, {Path(sys.argv[1]).stat().st_size:,} bytes")


# JPEGs --------------------------------------------------------------------------------------------


def cmyk_images() -> Iterator[tuple[str, bytes]]:
    """JPEGs of four components."""
    for number, (marker, adobe) in enumerate(MARKERS.items()):
        for seed, (name, factors) in enumerate(FOUR.items()):
            size = 43 - 2 * seed, 22 + 3 * seed
            yield (
                f"{marker} {name}.jpg",
                _jpeg(_four(number + seed, size), factors, Options(adobe=adobe)),
            )
    plain = Options(adobe=0)
    for width, height in ((1, 1), (7, 5), (16, 16), (17, 33)):
        yield (
            f"cmyk adobe {width} x {height}.jpg",
            _jpeg(_four(1, (width, height)), FOUR["420"], plain),
        )
    for name, options in {
        "ycck quality 10": Options(quality=10, adobe=2),
        "ycck quality 100": Options(quality=100, adobe=2),
        "ycck restart markers": Options(adobe=2, restart=2),
        "ycck scan per component": Options(adobe=2, is_interleaved=False),
        "cmyk jfif": Options(jfif=True),
        "cmyk adobe jfif": Options(jfif=True, adobe=0),
    }.items():
        yield f"{name}.jpg", _jpeg(_four(4, (40, 30)), FOUR["420"], options)
    adobe = _saved(
        Image.fromarray(np.stack(_four(5, (40, 30)), axis=2), "CMYK"), "JPEG", progressive=True
    )
    start = adobe.index(b"\xff\xee\0\x0eAdobe")
    transform = start + 15
    yield "cmyk adobe progressive.jpg", adobe
    yield "cmyk progressive.jpg", adobe[:start] + adobe[start + 16 :]
    yield "ycck progressive.jpg", adobe[:transform] + b"\2" + adobe[transform + 1 :]
    yield (
        "cmyk short adobe.jpg",
        adobe[:start] + b"\xff\xee\0\x0bAdobe" + bytes(4) + adobe[start + 16 :],
    )


def kept_images() -> Iterator[tuple[str, bytes]]:
    """JPEGs of one or three components: their bytes stay."""
    grey = np.asarray(photograph(6, (40, 30)).convert("L"))
    yield "kept grey.jpg", write_jpeg([Component(grey)], Options(jfif=True))
    yield "kept grey 2 x 2.jpg", write_jpeg([Component(grey, 2, 2)], Options(jfif=True))
    for name, factors in THREE.items():
        planes = _planes(photograph(7, (41, 31)).convert("YCbCr"))
        yield f"kept {name}.jpg", _jpeg(planes, factors, Options(jfif=True))
    rgb = _planes(photograph(8, (40, 30)))
    yield "kept rgb adobe.jpg", _jpeg(rgb, THREE["444"], Options(adobe=0))
    yield "kept progressive.jpg", _saved(photograph(8, (40, 30)), "JPEG", progressive=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "kept turned by exif.jpg", _saved(photograph(8, (40, 30)), "JPEG", exif=exif)


def _jpeg(planes: Sequence[Plane], factors: Factors, options: Options) -> bytes:
    components = [Component(plane, *factor) for plane, factor in zip(planes, factors, strict=True)]
    return write_jpeg(components, options)


def _four(seed: int, size: tuple[int, int]) -> list[Plane]:
    """Four planes of a photograph and noise: every pair of values in a product is likely."""
    colours = np.asarray(photograph(seed, size), int)
    black = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 1))
    four = np.concatenate((colours, (colours[:, :, :1] + black) // 2), axis=2).astype(np.uint8)
    four[: size[1] // 4] = np.roll(black, 3).astype(np.uint8)[: size[1] // 4]
    return [np.ascontiguousarray(four[:, :, number]) for number in range(4)]


def _planes(image: Image.Image) -> list[Plane]:
    return [np.asarray(plane) for plane in image.split()]


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


# PNGs ---------------------------------------------------------------------------------------------

_GREY, _RGB, _PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_CHANNELS = {_GREY: 1, _RGB: 3, _PALETTE: 1, _GREY_ALPHA: 2, _RGBA: 4}
_NAMES = {_GREY: "grey", _RGB: "rgb", _PALETTE: "palette", _GREY_ALPHA: "grey alpha", _RGBA: "rgba"}
_DEPTHS = {
    _GREY: (1, 2, 4, 8, 16),
    _RGB: (8, 16),
    _PALETTE: (1, 2, 4, 8),
    _GREY_ALPHA: (8, 16),
    _RGBA: (8, 16),
}
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""The first column and row of each pass, and the steps across and down (PNG, 8.2)."""


def png_images() -> Iterator[tuple[str, bytes]]:
    """PNGs of every colour type and depth, interlaced ones,
    and ones with chunks that decoders may apply.
    """
    for colour, depths in _DEPTHS.items():
        for depth in depths:
            yield f"png {_NAMES[colour]} {depth} bits.png", _png(colour, depth)
    for colour, depth in ((_GREY, 1), (_RGB, 8), (_RGBA, 16), (_PALETTE, 4)):
        yield (
            f"png {_NAMES[colour]} {depth} bits interlaced.png",
            _png(colour, depth, is_interlaced=True),
        )
    transparent = {
        (_GREY, 2): b"\0\1",
        (_GREY, 16): b"\x12\x34",
        (_RGB, 8): b"\0\x80\0\x80\0\x80",
        (_RGB, 16): bytes(6),
        (_PALETTE, 2): b"\0\x80",
        (_PALETTE, 8): bytes(range(0, 256, 2)),
    }
    for (colour, depth), content in transparent.items():
        yield f"png {_NAMES[colour]} {depth} bits trns.png", _png(colour, depth, tRNS=content)
    yield "png rgb 8 bits gamma.png", _png(_RGB, 8, gAMA=struct.pack(">I", 100_000))
    yield "png rgb 16 bits gamma.png", _png(_RGB, 16, gAMA=struct.pack(">I", 45_455))
    yield "png rgba 8 bits background.png", _png(_RGBA, 8, bKGD=struct.pack(">HHH", 255, 0, 255))
    yield "png grey alpha 8 bits sbit.png", _png(_GREY_ALPHA, 8, sBIT=b"\5\5")
    yield "png rgb 8 bits 1 x 1.png", _png(_RGB, 8, size=(1, 1))


def _png(
    colour: int,
    depth: int,
    *,
    size: tuple[int, int] = (37, 26),
    is_interlaced: bool = False,
    **chunks: bytes,
) -> bytes:
    samples = _samples(colour, depth, size)
    passes = [samples]
    if is_interlaced:
        passes = [samples[top::down, left::across] for left, top, across, down in _ADAM7]
    rows = b"".join(b"\0" + _packed_row(row, depth) for part in passes if part.size for row in part)
    content = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, int(is_interlaced)))
    ]
    chunks_before = {name: data for name, data in chunks.items() if name not in ("tRNS", "bKGD")}
    content += [_chunk(name.encode(), data) for name, data in chunks_before.items()]
    if colour == _PALETTE:
        content.append(_chunk(b"PLTE", np.random.default_rng(9).bytes(3 << depth)))
    content += [
        _chunk(name.encode(), data) for name, data in chunks.items() if name not in chunks_before
    ]
    content += [_chunk(b"IDAT", zlib.compress(rows, 9)), _chunk(b"IEND", b"")]
    return b"".join((b"\x89PNG\r\n\x1a\n", *content))


def _samples(colour: int, depth: int, size: tuple[int, int]) -> NDArray[np.uint16]:
    """Samples of the shape (height, width, channels), of ``depth`` bits."""
    random = np.random.default_rng(colour + depth)
    image = np.asarray(photograph(colour, size), np.uint16)
    four = np.concatenate((image, image[:, :, :1] // 2), axis=2)
    channels = {1: four[:, :, 1:2], 2: four[:, :, 2:4], 3: four[:, :, :3], 4: four}[
        _CHANNELS[colour]
    ]
    low = random.integers(0, 256, channels.shape).astype(np.uint16)
    samples: NDArray[np.uint16] = (channels << 8 | low) >> (16 - depth)
    return samples


def _packed_row(row: NDArray[np.uint16], depth: int) -> bytes:
    if depth == 16:
        return row.astype(">u2").tobytes()
    bits = np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - depth :]
    return np.packbits(bits.reshape(-1)).tobytes()


def _chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


if __name__ == "__main__":
    main()
