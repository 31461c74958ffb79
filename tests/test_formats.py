"""Images of other formats than JPEG, as JPEGs or as they are, with what they lose;
and which way up EXIF says.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from made_folders import picture
from made_tars import in_memory, save, unpack
from PIL import Image
from test_folders import read

from imagenet_prep import Layout, convert, export, make_engine, verify
from imagenet_prep.checks.examiner import PromiseExaminer
from imagenet_prep.demo import photographs
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.errors import UsageError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.opening import opened
from imagenet_prep.images.pixels import read_facts
from imagenet_prep.images.prepare import prepare, read_orientation
from imagenet_prep.model import ProblemKind
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.tfrecord.example import BytesList, Feature, Int64List, encode_example

ENGINE = make_engine("threads", 1)
KINDS = {
    "gif": "GIF",
    "webp": "WEBP",
    "bmp": "BMP",
    "tif": "TIFF",
    "avif": "AVIF",
    "png": "PNG",
    "jpg": "JPEG",
}


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    """The bytes of an image."""
    return in_memory(lambda file: image.save(file, kind, **how))


@pytest.mark.parametrize("keep", [False, True])
def test_every_format_is_kept_or_becomes_a_jpeg(tmp_path: Path, keep: bool) -> None:
    """With keep, bytes and image/format are the file's own, PNGs and JPEGs without it, too; verify
    decodes all.

    A reader of WebDataset decodes by the ending: .webp for a WebP that was kept, not .jpg.
    """
    for ending in KINDS:
        save(tmp_path / "in" / ending, picture(f"x.{ending}"))
    recipe = (
        "source: {files: 'in/*'}\nrecord: {image: encoded, format: format, height: height, "
        "name: filename}\n"
    )
    (tmp_path / "r.yaml").write_text(recipe + f"keep: {str(keep).lower()}\n")
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "r.yaml"))
    assert verify(layout, ENGINE, depth="decode").problems == ()
    records = [each for path in existing(tmp_path / "out", "train-*") for each in read(path)]
    for record in records:
        (name,), (image,), (said,) = record["name"], record["image"], record["format"]
        ending = bytes(name).decode()  # type: ignore[arg-type]
        is_kept = keep or ending in ("png", "jpg")
        assert said == (KINDS[ending] if is_kept else "JPEG").encode()
        assert (image == picture(f"x.{ending}")) is is_kept
        assert Image.open(io.BytesIO(image)).format == said.decode()  # type: ignore[arg-type, union-attr]
    assert len(records) == 7
    export(layout, "webdataset", tmp_path / "tars", ENGINE)
    (tar,) = existing(tmp_path / "tars", "*.tar")
    names = {name for name in unpack(tar) if not name.endswith((".json", ".cls"))}
    assert names == {f"{each}.{each if keep or each == 'png' else 'jpg'}" for each in KINDS}


@pytest.mark.parametrize(
    "more",
    ["resize: 100\nrecord: {image: encoded}", "record: inception", "content: pixels"],
    ids=str,
)
def test_keep_contradicts_what_changes_bytes(tmp_path: Path, more: str) -> None:
    """The recipe is refused, with the line."""
    (tmp_path / "r.yaml").write_text(f"source: {{files: '*'}}\nkeep: true\n{more}\n")
    with pytest.raises(UsageError, match="line 2: keep"):
        load(tmp_path / "r.yaml", None, ENGINE)


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()) - {"JPEG"}))
def test_a_record_that_is_wrong_about_its_image_is_found(kind: str) -> None:
    """Another width, and with decoding an image that is cut."""
    image = saved(Image.effect_noise((64, 64), 50).convert("RGB"), kind)
    features: dict[str, Feature | None] = {"e": BytesList((image,)), "w": Int64List((65,))}
    examiner = PromiseExaminer({}, True, {"encoded": ("e",), "width": ("w",)})
    (wrong,) = examiner.examine(memoryview(encode_example(features)), "train", intact=True).findings
    assert wrong.detail == f"width: expected 64, as in its {kind}, got 65"
    features["e"] = BytesList((image[: len(image) * 2 // 3],))
    (wrong,) = examiner.examine(memoryview(encode_example(features)), "train", intact=True).findings
    assert wrong.kind == ProblemKind.BAD_IMAGE


@pytest.mark.parametrize(
    ("image", "kind", "lost"),
    [
        (Image.new("RGBA", (9, 5), (200, 0, 0, 90)), "WEBP", ("alpha",)),
        (Image.new("RGBA", (9, 5), (200, 0, 0, 90)), "TIFF", ("alpha",)),
        (Image.new("P", (9, 5)), "GIF", ()),
        (Image.fromarray(np.full((5, 9), 60_000, np.uint16)), "TIFF", ("16 bits",)),
        (Image.new("L", (9, 5), 40), "BMP", ()),
        (Image.new("1", (9, 5), 1), "TIFF", ()),
    ],
    ids=["rgba", "rgba-tiff", "palette", "16-bits", "grey", "bits"],
)
def test_what_a_jpeg_loses_is_named(image: Image.Image, kind: str, lost: tuple[str, ...]) -> None:
    """Its pixels are those of Pillow's own conversion, without alpha."""
    data = saved(image, kind, **({"lossless": True} if kind == "WEBP" else {}))
    found = prepare(data, "decode")
    assert (found.repair, found.width, found.height) == (kind.lower(), 9, 5)
    assert read_facts(data)[:3] == (kind, 9, 5)
    assert found.lost == lost
    opened = Image.open(io.BytesIO(data))
    expected = (
        (60_000 >> 8,) * 3
        if opened.mode.startswith("I")
        else opened.convert("RGBA").getpixel((4, 2))[:3]
    )
    pixel = Image.open(io.BytesIO(bytes(found.encoded))).getpixel((4, 2))
    assert max(abs(one - other) for one, other in zip(pixel, expected, strict=True)) < 4


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "AVIF"])
def test_an_animation_gives_its_first_frame_and_says_so(kind: str) -> None:
    """The frames after it are lost."""
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue", "green")]
    found = prepare(saved(frames[0], kind, save_all=True, append_images=frames[1:]), "decode")
    assert found.lost == ("other frames",)
    pixel = Image.open(io.BytesIO(bytes(found.encoded))).getpixel((8, 8))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 240


ORIENTATION, MAKE = 0x0112, 0x010F


def jpeg(exif: bytes = b"") -> bytes:
    """A small JPEG with this EXIF segment, if any."""
    return saved(Image.new("RGB", (8, 8)), "JPEG", **({"exif": exif} if exif else {}))


def tiff(
    orientation: int, order: str, *, kind: int = 3, magic: int = 42, promised: int = 2
) -> bytes:
    """An EXIF segment with the maker's name and an orientation,
    big endian (">") or little endian ("<").
    """
    begin = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}HIH", magic, 8, promised)
    make = struct.pack(f"{order}HHI4s", MAKE, 2, 4, b"us\0\0")
    return (
        b"Exif\0\0"
        + begin
        + make
        + struct.pack(f"{order}HHIHH", ORIENTATION, kind, 1, orientation, 0)
        + bytes(4)
    )


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_orientation_is_read(orientation: int, order: str) -> None:
    """All eight, in both byte orders, as Pillow reads them."""
    data = jpeg(tiff(orientation, order))
    with Image.open(io.BytesIO(data)) as image:
        assert image.getexif()[ORIENTATION] == orientation
    assert read_orientation(data) == read_orientation(memoryview(data)) == orientation


def test_exif_behind_other_segments() -> None:
    """Segments before it are passed over, another APP1 among them;
    EXIF behind the frame header is not looked for.
    """
    data = jpeg(tiff(3, ">"))
    assert read_orientation(data[:2] + b"\xff\xff" + data[2:]) == 3
    xmp = b"\xff\xe1" + struct.pack(">H", 2 + 20) + b"http://ns.adobe.com/"
    assert read_orientation(data[:2] + xmp + data[2:]) == 3
    start = data.index(b"Exif") - 4
    (length,) = struct.unpack_from(">H", data, start + 2)
    segment = data[start : start + 2 + length]
    frame = data.index(b"\xff\xc0")
    assert (
        read_orientation(data[:start] + data[start + 2 + length : frame] + data[frame:-2] + segment)
        == 1
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        jpeg(),
        photographs.tiny(1, Kind.CORRUPT_EXIF),
        photographs.tiny(1, Kind.PNG),
        jpeg(tiff(0, "<")),
        jpeg(tiff(9, "<")),
        jpeg(tiff(6, "<", kind=4)),
        jpeg(tiff(6, "<", magic=43)),
        jpeg(tiff(6, "<", promised=1)),
        jpeg(b"Exif\0\0XX" + tiff(6, "<")[8:]),
        jpeg(tiff(6, "<")[:20]),
        jpeg(tiff(6, "<"))[:30],
    ],
)
def test_without_a_sensible_orientation_it_is_upright(data: bytes) -> None:
    """No EXIF, EXIF cut short, an orientation that there isn't, or of another type: upright."""
    assert read_orientation(data) == 1


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "BMP", "AVIF"])
def test_an_image_without_the_rest_of_its_header_is_named_as_that(kind: str) -> None:
    """Not by Pillow's words, which are of an object in memory."""
    with pytest.raises(ImageError, match=f"{kind} .*cut off") as refused:
        prepare(saved(Image.new("RGB", (9, 5)), kind)[:14], "decode")
    assert "0x" not in str(refused.value)


def test_a_format_that_is_not_read_is_refused_by_its_header_alone() -> None:
    """Its size is not asked of Pillow, which does not know it."""
    with pytest.raises(ImageError, match=r"^HEIC can't be read$") as refused:
        read_facts(b"\0\0\0\x18ftypheic" + bytes(40))
    assert refused.value.remedy == "convert it to JPEG or PNG"


def test_an_image_over_the_limit_of_pillow_is_not_called_damaged() -> None:
    """Its size and the limit are named: a sound copy would be as large."""
    header = struct.pack(">IIBBBBB", 20_000, 10_000, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + header
    crc = struct.pack(">I", zlib.crc32(chunk))
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + chunk + crc + bytes(4) + b"IDAT"
    words = "claims 200,000,000 pixels, over Pillow's limit of 178,956,970"
    with pytest.raises(ImageError, match=words) as refused, opened(data, "PNG"):
        pass
    assert refused.value.remedy.startswith("make it smaller")
