"""Inputs made to hang a command, to fill the memory, or to crash it:
each is one error, said within a second.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bounded import Measured, measure, processor_time
from made_sets import ENGINE
from made_tars import in_memory, save
from PIL import Image

from imagenet_prep import PrepError
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images import pixels, rasters
from imagenet_prep.images.arrays import ArrayError, parse_array
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import prepare
from imagenet_prep.recipes.labels_file import parse_labels
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_file import read_recipe
from imagenet_prep.recipes.table_rows import LabelsFault
from imagenet_prep.recipes.typed_values import typed

pytestmark = pytest.mark.once

FILES = "source: {files: arrays/*.npy}\n"
FOLDERS = "source: {folders: flowers}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two arrays, and two classes of small images."""
    (tmp_path / "arrays").mkdir()
    for number in range(2):
        np.save(tmp_path / "arrays" / f"{number}.npy", np.arange(3))
    for name in ("daisy", "rose"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "flowers" / name / "0.png")
    return tmp_path


def refusal(folder: Path, recipe: str) -> PrepError:
    """The error of a recipe in that folder, of three lines at most."""
    (folder / "recipe.yaml").write_text(recipe)
    with processor_time(), pytest.raises(PrepError) as caught:
        load(folder / "recipe.yaml", None, ENGINE)
    assert len(str(caught.value).splitlines()) <= 3
    assert len(str(caught.value)) < 2000
    return caught.value


def convert(folder: Path, recipe: str) -> Measured:
    """What convert says of a recipe in that folder, and what it took."""
    (folder / "recipe.yaml").write_text(recipe)
    return measure(
        folder, "convert", folder / "out", "--config", folder / "recipe.yaml", "--workers", 1
    )


# files that are none ------------------------------------------------------------------------------


ODD_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "folder": Path.mkdir,
    "hole": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "loop": lambda path: path.symlink_to(path.name),
}
"""What makes something under the name of a file that is none, or has no end."""


@pytest.mark.parametrize("kind", ODD_FILES)
@pytest.mark.parametrize(
    "recipe", ["source: {manifest: odd}\n", FILES + "labels: odd\n", FOLDERS + "classes: odd\n"]
)
def test_what_is_no_file_is_not_read(folder: Path, kind: str, recipe: str) -> None:
    """A pipe, a device, a socket, a folder, a file of a terabyte, a link to itself:
    refused at once, by its name.
    """
    ODD_FILES[kind](folder / "odd")
    error = refusal(folder, recipe)
    assert isinstance(error, InputError)
    assert "/odd" in error.what


@pytest.mark.parametrize(
    ("name", "kind"), [("manifest.json", "pipe"), ("plan/plan.json", "folder")]
)
def test_a_file_of_ours_that_is_none_is_one_error(folder: Path, name: str, kind: str) -> None:
    """A pipe, a device, a folder or a loop under the name of a file of ours:
    no command waits for it, or crashes.
    """
    assert convert(folder, FOLDERS + "shards: 1\n").status == 0
    out = folder / "out"
    (out / "imagenet-prep" / name).unlink()
    ODD_FILES[kind](out / "imagenet-prep" / name)
    for words in (
        ("status", out),
        ("convert", out, "--config", folder / "recipe.yaml"),
        ("verify", out, "--depth", "quick"),
    ):
        ran = measure(folder, *words)
        assert ran.status in (0, 1, 3, 4), (words, ran)
        assert "bug" not in ran.err
        assert len(ran.err.splitlines()) <= 6, ran.err
        assert ran.seconds < 5
        assert ran.memory < 250 << 20


def test_a_link_to_itself_in_a_class_folder_is_one_error(folder: Path) -> None:
    """It is named as what can't be read; a link that leads round and round as well."""
    (folder / "flowers" / "rose" / "1.png").symlink_to("1.png")
    ran = convert(folder, FOLDERS)
    what, _, remedy = ran.err.splitlines()[-3:]
    assert (ran.status, what) == (4, f"error: {folder}/flowers/rose/1.png can't be read")
    expected = "a link leads back to itself, or over too many others: remove it"
    assert remedy == f"{expected} and try again"
    (folder / "flowers" / "rose" / "1.png").unlink()
    (folder / "flowers" / "tulip").symlink_to("lily")
    (folder / "flowers" / "lily").symlink_to("tulip")
    assert "can't be read" in refusal(folder, FOLDERS).what


# numbers and nesting without end ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1" * 20_000 + "x", "-" + "9" * 130_000])
@pytest.mark.parametrize("kind", ["bytes", "int64", "float", None])
def test_a_long_number_in_a_label_file_takes_no_time(text: str, kind: str | None) -> None:
    """Tens of thousands of digits are a text, or beyond 64 bits; never a matter of minutes."""
    for content, form in ((f"a:{text}\n", "lines"), (f"path,label\na,{text}\n", "csv")):
        with processor_time():
            table = parse_labels(content.encode(), form)
            assert table.labels is not None
            if kind == "bytes" or (kind is None and text.endswith("x")):
                assert typed(table.labels, table.lines, table.is_text, kind) == ("bytes", [text])
                continue
            with pytest.raises(LabelsFault) as caught:
                typed(table.labels, table.lines, table.is_text, kind)
            assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"path": "a", "label": ' + "1" * 20_000 + "}", ""),
        ('{"path": "a", "label": ' + "[" * 100_000, ""),
        ('{"path": "a", "label": ' + "[" * 5_000 + "]" * 5_000 + "}", ""),
        ('{"path": "1.npy", "label": ' + "[" * 100 + "]" * 100 + "}", ""),
        ('{"a":' * 100_000, ""),
        ('{"path": "1\\ud800.npy", "label": 1}', "surrogate"),
        ('{"path": "1.npy", "label": "\\ud800"}', "surrogate"),
        ('{"path": "1.npy", "label": 1, "m": "\\ud800"}', "surrogate"),
        ('{"path": "1.npy", "label": 1, "m": ["x", "\\ud800"]}', "surrogate"),
        ('{"path": "1.npy", "label": 1, "\\ud800": 1}', "surrogate"),
    ],
)
def test_json_lines_made_to_take_long_or_that_are_no_text(
    folder: Path, line: str, said: str
) -> None:
    """Numbers and nesting without end, and what UTF-8 can't write, in whichever column:
    the error names the line.
    """
    (folder / "labels.jsonl").write_text('{"path": "0.npy", "label": 1}\n' + line + "\n")
    error = refusal(folder, FILES + "labels: labels.jsonl\n")
    assert "labels.jsonl, line 2: " in error.what
    assert said in str(error)


@pytest.mark.parametrize(
    "recipe",
    [
        FOLDERS + 'record:\n  "a\\ud800": width\n',
        FOLDERS + 'classes:\n  ["daisy", "\\udfff"]\n',
        'seed: 1\nsource: {folders: "\\ud800"}\n',
    ],
)
def test_half_a_surrogate_pair_in_a_recipe_is_no_text(folder: Path, recipe: str) -> None:
    """A name of a feature, of a class or of a file that UTF-8 can't write:
    the error names the line.
    """
    error = refusal(folder, recipe)
    assert isinstance(error, UsageError)
    assert "recipe.yaml, line 2: " in error.what or (
        recipe.count("\n") == 3 and "line 3: " in error.what
    )
    assert "surrogate" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "{" * 5_000,
        "- " * 100_000,
        "a:\n" + "".join(" " * i + "a:\n" for i in range(1, 1_000)),
        "[" * 1_000_000,
        "a: " + "'" * 500_001,
        "a: &" + "b" * 500_000,
        "a: |\n" + " x\n" * 100_000,
    ],
)
def test_yaml_made_to_take_long(tmp_path: Path, text: str) -> None:
    """Brackets, indents and signs by the thousand: refused within a second."""
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with processor_time(), pytest.raises(UsageError) as caught:
        read_recipe(path)
    assert len(str(caught.value)) < 1_000


def test_more_shards_than_images_are_bounded(folder: Path) -> None:
    """99,999 shards of two images are refused before one is written;
    a thousand are made, as 2016's 1024 are.
    """
    ran = convert(folder, FOLDERS + "record: inception\nshards: 99999\n")
    assert ran.status == 2
    assert "recipe.yaml, line 3: shards: 99,999 shards for 2 files" in ran.err
    assert "expected at most 1,024" in ran.err
    assert ran.seconds < 5
    assert not (folder / "out").exists()
    for recipe in ("num_shards: 1025\n", "shards: {train: 1025}\n"):
        assert "expected at most 1,024" in str(refusal(folder, FOLDERS + recipe))
    (folder / "recipe.yaml").write_text(FOLDERS + "shards: 1024\n")
    assert load(folder / "recipe.yaml", None, ENGINE).splits[0].shards == 1024


@pytest.mark.parametrize("name", ["train-00000-of-00001", "index/train-00000-of-00001.idx"])
def test_a_pipe_in_place_of_a_shard_or_an_index_is_one_problem(folder: Path, name: str) -> None:
    """verify and convert don't wait for it: verify says that it is not a plain file,
    convert makes the shard again.
    """
    assert convert(folder, FOLDERS + "shards: 1\n").status == 0
    out = folder / "out"
    path = (out / "imagenet-prep" if "/" in name else out) / name.format("train-00000-of-00001")
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    ran = measure(folder, "verify", out, limit=20)
    assert ran.status == 3, ran
    fault = "is a pipe, a socket or a device" if "/" in name else "not a plain file"
    assert fault in ran.out
    if "/" not in name:
        assert measure(folder, "report", out, limit=20).status >= 0
    assert measure(folder, "convert", out, "--config", folder / "recipe.yaml", limit=20).status == 0
    assert path.read_bytes() == content


DECODERS: dict[str, Callable[[bytes], object]] = {
    "repair": lambda data: prepare(data, "header"),
    "check": lambda data: prepare(data, "decode"),
    "encode again": lambda data: prepare(data, "decode", pixels.Reencode(resize=8)),
    "RGB": pixels.decode_rgb,
    "samples": rasters.decode_raster,
}


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(width: int, height: int, depth: int, colour: int, data: bytes | None) -> bytes:
    """A PNG of this size, whatever its data is; None leaves that out."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(3)) if colour == 3 else b""
    pixels = b"" if data is None else chunk(b"IDAT", data)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + pixels + chunk(b"IEND", b"")


def tiff(width: int, height: int, data: bytes, *more: tuple[int, int, int]) -> bytes:
    """A grey TIFF of one strip; ``more`` are tags with their types (3, 4:
    of 16, 32 bits) and values.
    """
    tags = {256: (4, width), 257: (4, height), 258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1)}
    tags |= {273: (4, 8), 278: (4, height), 279: (4, len(data))} | {
        tag: (kind, value) for tag, kind, value in more
    }
    entries = b"".join(
        struct.pack("<HHII", tag, kind, 1, value) for tag, (kind, value) in sorted(tags.items())
    )
    return (
        b"II*\0"
        + struct.pack("<I", 8 + len(data))
        + data
        + struct.pack("<H", len(tags))
        + entries
        + bytes(4)
    )


def jpeg_claiming(width: int, height: int, **options: object) -> bytes:
    """A small JPEG whose header claims another size."""
    data = bytearray(
        in_memory(lambda file: Image.new("RGB", (16, 16)).save(file, "JPEG", **options))
    )
    at = data.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


TILES = ((322, 3, 65_520), (323, 3, 65_520), (324, 4, 8), (325, 4, 100), (259, 3, 8))
CLAIMS: dict[str, tuple[bytes, list[str]]] = {
    **{
        f"png of {depth} bits, colour {colour}": (
            png(13_000, 13_000, depth, colour, zlib.compress(bytes(10_000))),
            list(DECODERS),
        )
        for depth, colour in ((8, 2), (16, 4), (1, 0), (8, 3))
    },
    "tiff": (tiff(13_000, 13_000, bytes(100)), ["samples"]),
    "deflated tiff": (tiff(13_000, 13_000, zlib.compress(bytes(13_000)), (259, 3, 8)), ["samples"]),
    "tiff of tiles": (tiff(64, 64, bytes(100), *TILES), ["samples"]),
    "tiff of 16 bits": (tiff(8_000, 8_000, bytes(100), (258, 3, 16), (259, 3, 8)), ["samples"]),
    "jpeg": (jpeg_claiming(16_000, 16_000), ["check", "samples"]),
    "progressive jpeg": (jpeg_claiming(16_000, 16_000, progressive=True), ["check", "samples"]),
}


@pytest.mark.parametrize(
    ("what", "decoder"), [(what, each) for what, (_, every) in CLAIMS.items() for each in every]
)
def test_what_claims_much_is_refused_at_once(what: str, decoder: str) -> None:
    """Size, tiles or bits, samples or coefficients, that a small file can't hold:
    before memory is asked for.
    """
    with processor_time(), pytest.raises(ImageError, match="claims"):
        DECODERS[decoder](CLAIMS[what][0])


def test_a_bomb_costs_convert_little(tmp_path: Path) -> None:
    """A whole conversion that meets one: status 3, a bad image, and no gigabyte."""
    save(
        tmp_path / "flowers" / "daisy" / "0.png",
        png(13_000, 13_000, 8, 6, zlib.compress(bytes(1 << 20))),
    )
    (tmp_path / "recipe.yaml").write_text("source: {folders: flowers}\n")
    ran = measure(
        tmp_path, "convert", tmp_path / "out", "--config", tmp_path / "recipe.yaml", "--workers", 1
    )
    assert (ran.status, "claims 13000 x 13000 pixels" in ran.err) == (3, True)
    assert ran.memory < 300 << 20


@pytest.mark.parametrize("size", [(70_000, 1), (1, 65_501)])
def test_a_png_too_wide_for_a_jpeg_is_a_bad_image(tmp_path: Path, size: tuple[int, int]) -> None:
    """One that no JPEG can hold is a bad image, set aside with on_damaged: skip;
    an edge of 65,500 is none.
    """
    folder = tmp_path / "flowers" / "daisy"
    folder.mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "0.jpg")
    Image.new("RGB", size).save(folder / "1.jpg", "PNG")
    recipe = tmp_path / "recipe.yaml"
    words = ("convert", tmp_path / "out", "--config", recipe, "--workers", 1)
    recipe.write_text("source: {folders: flowers}\nrecord: inception\n")
    ran = measure(tmp_path, *words)
    assert (ran.status, "65,500" in ran.err, "bug" in ran.err) == (3, True, False)
    remedy = "make it smaller: max_side: 65500 in the recipe; without one, add --set max_side=65500"
    assert (remedy in ran.err, "sound" in ran.err) == (True, False)
    recipe.write_text("source: {folders: flowers}\nrecord: inception\nmax_side: 65500\n")
    smaller = ("convert", tmp_path / "smaller", *words[2:])
    assert measure(tmp_path, *smaller).status == 0
    recipe.write_text("source: {folders: flowers}\nrecord: inception\non_damaged: skip\n")
    assert "set aside: 1 image" in measure(tmp_path, *words).out
    assert prepare(_wide(65_500), "header").width == 65_500
    with pytest.raises(ImageError, match="65501 x 1 pixels"):
        prepare(_wide(65_501), "header")
    assert prepare(_wide(65_501), "header", pixels.Reencode(max_side=100)).width == 100


def _wide(width: int) -> bytes:
    return in_memory(lambda file: Image.new("RGB", (width, 1)).save(file, "PNG"))


# arrays -------------------------------------------------------------------------------------------


def npz(**arrays: object) -> bytes:
    """An .npz of these arrays."""
    return in_memory(lambda file: np.savez(file, **arrays))


def test_every_damaged_npz_is_an_error_of_the_file() -> None:
    """Each byte of a small .npz set to 0, 0x80 and 0xFF: it is read, or refused as damaged;
    nothing else.
    """
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
    zeros = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000,), }"
    ).ljust(128)
    data = npz(a=np.arange(3))
    at = data.index(b"PK\x01\x02") + 24
    claimed = data[:at] + struct.pack("<I", 2_000_000_000) + data[at + 4 :]
    with processor_time(), pytest.raises(ArrayError, match="claims"):
        parse_array(claimed)
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", kind) as archive:
            archive.writestr("a.npy", zeros + bytes(1 << 20))
        with pytest.raises(ArrayError, match="compressed by ZIP's method 1"):
            parse_array(buffer.getvalue())


# what libraries say -------------------------------------------------------------------------------


def test_nothing_but_our_own_lines_reaches_the_user(tmp_path: Path) -> None:
    """Damaged TIFFs, a PNG that Pillow warns of, an old .npy:
    standard error has our lines alone.
    """
    folder = tmp_path / "scans"
    folder.mkdir()
    scan = Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 64), "u1"))
    for kind in ("tiff_lzw", "tiff_adobe_deflate", "group4"):
        scanned = scan.convert("1") if kind == "group4" else scan
        data = bytearray(
            in_memory(
                lambda file, scan=scanned, kind=kind: scan.save(file, "TIFF", compression=kind)
            )
        )
        data[40:60] = b"\xff\x00" * 10
        (folder / f"{kind}.tif").write_bytes(data)
    (tmp_path / "recipe.yaml").write_text(
        "source: {files: 'scans/*[+--a-z]*'}\ncontent: pixels\non_damaged: skip\n"
    )
    call = (
        "convert",
        tmp_path / "out",
        "--config",
        tmp_path / "recipe.yaml",
        "--workers",
        1,
        "--quiet",
    )
    ran = measure(tmp_path, *call)
    assert (ran.status, ran.err) == (3, "")  # images were set aside
