"""Re-encoding: sizes, quality, grey, tolerance of the reduced decode,
strictness, and the shards made of it.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from made_sets import data_of
from PIL import Image

from imagenet_prep import ConvertOptions, Layout, annotate, convert, make_engine, verify
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.errors import UsageError
from imagenet_prep.images import jpeg, pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import prepare
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.tfrecord.inception_reader import read_record

SIDES = st.integers(1, 5000)
TARGETS = st.none() | st.integers(1, 600)


@given(SIDES, SIDES, TARGETS, TARGETS)
def test_the_target_never_enlarges_and_keeps_the_proportions(
    width: int, height: int, resize: int | None, max_side: int | None
) -> None:
    """The shorter side meets --resize, the longer one --max-side, whichever shrinks more;
    nothing grows.
    """
    new_width, new_height = Reencode(resize, max_side).target(width, height)
    assert 1 <= new_width <= width
    assert 1 <= new_height <= height
    scale = min(1.0, (resize or 5000) / min(width, height), (max_side or 5000) / max(width, height))
    assert abs(new_width - max(1, width * scale)) <= 0.5
    assert abs(new_height - max(1, height * scale)) <= 0.5
    if resize is not None and max_side is None and min(width, height) >= resize:
        assert min(new_width, new_height) == resize


def _decoded(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int16)


@pytest.mark.parametrize("size", [(1024, 768), (2000, 1500)])
@pytest.mark.parametrize("resize", [160, 256])
def test_a_reduced_decode_stays_within_its_tolerance(size: tuple[int, int], resize: int) -> None:
    """Decoding at reduced scale differs after the resize by less than a level on average, and by 8
    at most.

    Where a reduced side is no whole number, libjpeg rounds it up: edges move by less than a pixel,
    and differ more.
    """
    data = photographs.encode(photographs.photograph(5, size), Kind.RGB, 92)
    target = Reencode(resize=resize).target(*size)
    decoded = pixels.decode_for(data, jpeg.read_header(data), target)
    if size != (1024, 768) or resize == 160:
        assert decoded.width <= size[0] / 2  # it is used at all
    assert decoded.width >= pixels.REDUCE * target[0]
    full = pixels.shrink(pixels.decode_for(data, jpeg.read_header(data), size), target)
    difference = np.abs(np.asarray(pixels.shrink(decoded, target), int) - np.asarray(full, int))
    is_whole = size[1] * decoded.width % size[0] == 0
    assert difference.mean() < (1 if is_whole else 2)
    assert difference.max() <= (8 if is_whole else 40)


@pytest.mark.parametrize(
    "kind", [Kind.RGB, Kind.GREY, Kind.PROGRESSIVE, Kind.ROTATED, Kind.CMYK, Kind.YCCK, Kind.PNG]
)
def test_every_kind_becomes_a_plain_jpeg_of_the_target_size(kind: Kind) -> None:
    """Grey stays grey, CMYK and PNG become RGB, EXIF rotation is not applied;
    width and height are the JPEG's own.
    """
    data, size = photographs.photograph_bytes(3, kind)
    made = prepare(data, "decode", Reencode(resize=100, quality=80))
    header = jpeg.read_header(made.encoded)
    assert (
        (header.width, header.height)
        == (made.width, made.height)
        == Reencode(resize=100).target(*size)
    )
    assert header.components == (1 if kind is Kind.GREY else 3)
    assert b"Exif" not in bytes(made.encoded)
    expected = _decoded(
        pixels.encode(pixels.shrink(pixels.decode_rgb(data), (made.width, made.height)), 95)
    )
    assert np.abs(_decoded(bytes(made.encoded)) - expected).mean() < 6


def test_a_damaged_image_is_refused_whatever_the_check() -> None:
    """A cut or garbled JPEG is an ImageError, also where --check header would have let it pass."""
    data, _ = photographs.photograph_bytes(3)
    garbled = data[:3000] + bytes(range(256)) * 4 + data[4024:]
    for bad in (data[: len(data) // 2], data[: len(data) // 2] + b"\xff\xd9", garbled):
        with pytest.raises(ImageError):
            prepare(bad, "header", Reencode(resize=100))


def test_resized_shards_verify_and_keep_their_boxes(data_dir: Path, made: MadeSet) -> None:
    """Every image has the target size, boxes are those of the CSV,
    the manifest records settings and codec.
    """
    layout = Layout(data_dir)
    engine = make_engine("processes", 2)
    annotate(layout, engine)
    how = Reencode(resize=128, quality=85)
    options = ConvertOptions(
        train_shards=8, validation_shards=8, allow_incomplete=True, resize=128, quality=85
    )
    convert(layout, engine, options)
    boxes = 0
    for shard in existing(data_dir, "*-of-*"):
        for record in map(read_record, map(memoryview, data_of(shard))):
            image = made.images[record.filename]
            assert (record.width, record.height) == how.target(image.width, image.height)
            boxes += len(record.boxes)
    assert boxes == len(layout.boxes_csv.read_text().splitlines())
    assert not verify(layout, engine, depth="decode").problems
    manifest = load_manifest(layout.manifest_path)
    assert manifest.settings["reencode"] == {
        "resize": 128,
        "max_side": None,
        "quality": 85,
        "codec": pixels.codec(),
    }
    assert "libjpeg-turbo" in pixels.codec()
    with pytest.raises(UsageError, match="--overwrite"):
        convert(layout, engine, options.replace(quality=86))
