"""Images and arrays that claim more than they hold, or are damaged in odd ways: refused before they are decoded."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bounded import measure, processor_time
from PIL import Image

from imagenet_prep.images import arrays, pixels
from imagenet_prep.images.arrays import ArrayError, parse_array
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import prepare

pytestmark = pytest.mark.once

DECODERS: dict[str, Callable[[bytes], object]] = {
    "repair": lambda data: prepare(data, "header"),
    "check": lambda data: prepare(data, "decode"),
    "encode again": lambda data: prepare(data, "decode", pixels.Reencode(resize=8)),
    "RGB": pixels.decode_rgb,
    "samples": arrays.decode_raster,
}


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, depth: int, colour: int, data: bytes) -> bytes:
    """A PNG of this size, whatever its data is."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(3)) if colour == 3 else b""
    parts = chunk(b"IHDR", header), palette, chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff(width: int, height: int, data: bytes, *more: tuple[int, int, int]) -> bytes:
    """A grey TIFF of one strip; ``more`` are tags with their types (3, 4: of 16, 32 bits) and values."""
    tags = {256: (4, width), 257: (4, height), 258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1)}
    tags |= {273: (4, 8), 278: (4, height), 279: (4, len(data))} | {tag: (kind, value) for tag, kind, value in more}
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, (kind, value) in sorted(tags.items()))
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + bytes(4)


def jpeg_claiming(width: int, height: int, **options: object) -> bytes:
    """A small JPEG whose header claims another size."""
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, "JPEG", **options)
    data = bytearray(buffer.getvalue())
    at = data.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(("depth", "colour"), [(8, 2), (16, 4), (1, 0), (8, 3)])
def test_a_png_that_claims_much_is_refused_at_once(decoder: str, depth: int, colour: int) -> None:
    """Whatever its samples are, a small PNG of 170 million pixels is refused before memory is asked for."""
    with processor_time(), pytest.raises(ImageError, match="claims"):
        DECODERS[decoder](png(13_000, 13_000, depth, colour, zlib.compress(bytes(10_000))))


@pytest.mark.parametrize("decoder", ["samples"])
def test_a_png_that_inflates_to_much_is_refused_at_once(decoder: str) -> None:
    """A sound one of nothing but zeros, half a megabyte that becomes half a gigabyte, is refused as well."""
    deflate = zlib.compressobj(9)
    rows = b"".join([deflate.compress(bytes(3 * 13_000 + 1)) for _ in range(13_000)] + [deflate.flush()])
    with processor_time(), pytest.raises(ImageError, match="claims 13000 x 13000 pixels"):
        DECODERS[decoder](png(13_000, 13_000, 8, 2, rows))


@pytest.mark.parametrize(
    "data",
    [
        tiff(13_000, 13_000, bytes(100)),
        tiff(13_000, 13_000, zlib.compress(bytes(13_000)), (259, 3, 8)),
        tiff(64, 64, bytes(100), (322, 3, 65_520), (323, 3, 65_520), (324, 4, 8), (325, 4, 100), (259, 3, 8)),
        tiff(8_000, 8_000, bytes(100), (258, 3, 16), (259, 3, 8)),
    ],
)
def test_a_tiff_that_claims_much_is_refused_at_once(data: bytes) -> None:
    """Size, tiles or bits that a small TIFF can't hold: refused before memory is asked for."""
    with processor_time(), pytest.raises(ImageError, match="claims"):
        arrays.decode_raster(data)


@pytest.mark.parametrize("decoder", ["check", "samples"])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_claims_much_is_refused_at_once(decoder: str, progressive: bool) -> None:
    """The same for a JPEG: of a progressive one all coefficients would be kept."""
    with processor_time(), pytest.raises(ImageError, match="claims"):
        DECODERS[decoder](jpeg_claiming(16_000, 16_000, progressive=progressive))


def test_a_bomb_costs_convert_little(tmp_path: Path) -> None:
    """A whole conversion that meets one: status 3, a bad image, and no gigabyte."""
    (tmp_path / "flowers" / "daisy").mkdir(parents=True)
    (tmp_path / "flowers" / "daisy" / "0.png").write_bytes(png(13_000, 13_000, 8, 6, zlib.compress(bytes(1 << 20))))
    (tmp_path / "recipe.yaml").write_text("source: {folders: flowers}\n")
    ran = measure(tmp_path, "convert", tmp_path / "out", "--config", tmp_path / "recipe.yaml", "--workers", 1)
    assert (ran.status, "claims 13000 x 13000 pixels" in ran.err) == (3, True)
    assert ran.memory < 300 << 20


@pytest.mark.parametrize("size", [(70_000, 1), (1, 65_501)])
def test_a_png_too_wide_for_a_jpeg_is_a_bad_image(tmp_path: Path, size: tuple[int, int]) -> None:
    """One that no JPEG can hold is set aside with skip_bad, and is a bad image without; an edge of 65,500 is none."""
    folder = tmp_path / "flowers" / "daisy"
    folder.mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "0.jpg")
    Image.new("RGB", size).save(folder / "1.jpg", "PNG")
    recipe = tmp_path / "recipe.yaml"
    words = ("convert", tmp_path / "out", "--config", recipe, "--workers", 1)
    recipe.write_text("source: {folders: flowers}\nrecord: inception\n")
    ran = measure(tmp_path, *words)
    assert (ran.status, "65,500" in ran.err, "bug" in ran.err) == (3, True, False)
    recipe.write_text("source: {folders: flowers}\nrecord: inception\nskip_bad: true\n")
    assert "set aside: 1 image" in measure(tmp_path, *words).out
    assert prepare(_wide(65_500), "header").width == 65_500
    with pytest.raises(ImageError, match="65501 x 1 pixels"):
        prepare(_wide(65_501), "header")
    assert prepare(_wide(65_501), "header", pixels.Reencode(max_side=100)).width == 100


def _wide(width: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 1)).save(buffer, "PNG")
    return buffer.getvalue()


# arrays --------------------------------------------------------------------------------------------------------


def npz(**arrays: object) -> bytes:
    """An .npz of these arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_every_damaged_npz_is_an_error_of_the_file() -> None:
    """Each byte of a small .npz set to 0, 0x80 and 0xFF: it is read, or refused as damaged; nothing else."""
    data, refused = npz(a=np.arange(3)), 0
    for place in range(len(data)):
        for value in (0, 0x80, 0xFF):
            try:
                parse_array(data[:place] + bytes((value,)) + data[place + 1 :])
            except ArrayError:
                refused += 1
    assert refused > len(data)


def test_an_npz_that_claims_much_is_refused_at_once() -> None:
    """What its entries can't hold, or hold in a way that NumPy never writes, is not inflated."""
    zeros = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000,), }".ljust(128)
    data = npz(a=np.arange(3))
    at = data.index(b"PK\x01\x02") + 24
    claimed = data[:at] + struct.pack("<I", 2_000_000_000) + data[at + 4 :]
    with processor_time(), pytest.raises(ArrayError, match="claims"):
        parse_array(claimed)
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", kind) as archive:
            archive.writestr("a.npy", zeros + bytes(1 << 20))
        with pytest.raises(ArrayError, match="compressed in a way"):
            parse_array(buffer.getvalue())


# what libraries say --------------------------------------------------------------------------------------------


def test_nothing_but_our_own_lines_reaches_the_user(tmp_path: Path) -> None:
    """Damaged TIFFs, a PNG that Pillow warns of, an old .npy: standard error has our lines alone."""
    folder = tmp_path / "scans"
    folder.mkdir()
    scan = Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 64), "u1"))
    for kind in ("tiff_lzw", "tiff_adobe_deflate", "group4"):
        buffer = io.BytesIO()
        (scan.convert("1") if kind == "group4" else scan).save(buffer, "TIFF", compression=kind)
        data = bytearray(buffer.getvalue())
        data[40:60] = b"\xff\x00" * 10
        (folder / f"{kind}.tif").write_bytes(data)
    (tmp_path / "recipe.yaml").write_text("source: {files: 'scans/*[+--a-z]*'}\ncontent: pixels\nskip_bad: true\n")
    call = ("convert", tmp_path / "out", "--config", tmp_path / "recipe.yaml", "--workers", 1, "--quiet")
    ran = measure(tmp_path, *call)
    assert (ran.status, ran.err) == (3, "")  # images were set aside
