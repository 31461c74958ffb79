"""Masks of outlines: the pixels are those of pycocotools, and what can't be filled is refused."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_masks import pixels_of, png
from made_tars import in_memory
from PIL import Image

from imagenet_prep.errors import InputError
from imagenet_prep.images import mask_pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.formats import mask_files

coco_masks = pytest.importorskip("pycocotools.mask")

SIZE = (37, 23)
WIDTH, HEIGHT = SIZE


def drawn_polygon(draw: random.Random, count: int) -> list[float]:
    """Points anywhere in the image, at its edge and a pixel outside."""
    points = []
    for _ in range(count):
        points += [round(draw.uniform(-1, WIDTH + 1), 2), round(draw.uniform(-1, HEIGHT + 1), 2)]
    return points


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_polygons_are_filled_as_pycocotools_does(parts: int) -> None:
    """Every pixel of a hundred drawn objects, of one polygon or of several."""
    draw = random.Random(parts)
    for _ in range(100):
        polygons = [drawn_polygon(draw, draw.randint(3, 9)) for _ in range(parts)]
        expected = coco_masks.decode(
            coco_masks.merge(coco_masks.frPyObjects(polygons, HEIGHT, WIDTH))
        )
        assert (mask_pixels.fill_polygons(polygons, SIZE) == expected).all()


@given(st.binary(min_size=WIDTH * HEIGHT, max_size=WIDTH * HEIGHT), st.integers(1, 255))
def test_runs_are_read_as_pycocotools_writes_them(data: bytes, level: int) -> None:
    """The text of runs, and the pixels of those, for any mask."""
    mask = (np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH) >= level).astype(np.uint8)
    text = coco_masks.encode(np.asfortranarray(mask))["counts"].decode()
    assert (mask_pixels.fill_runs(mask_pixels.read_runs(text), SIZE) == mask).all()


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30))
def test_a_strange_text_of_runs_is_an_error_at_most(text: str) -> None:
    """No text crashes: it has runs, or the error says why not."""
    try:
        runs = mask_pixels.read_runs(text)
    except ImageError:
        return
    with pytest.raises(ImageError, match=r"lengths sum to|a run has -"):
        mask_pixels.fill_runs([*runs, WIDTH * HEIGHT + 1], SIZE)


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (lambda: mask_pixels.fill_polygons([[1, 1, 5, 5]], SIZE), "a polygon has 4 numbers"),
        (lambda: mask_pixels.check_polygon([1], SIZE), "a polygon has 1 number:"),
        (
            lambda: mask_pixels.fill_polygons([[1, 1, 5, 5, 9, 1, 3]], SIZE),
            "a polygon has 7 numbers",
        ),
        (
            lambda: mask_pixels.fill_polygons([[1, 1, 5, 5, 1e12, 1]], SIZE),
            "a polygon has the x 1000000000000.0: expected -37 to 74, for an image of 37 x 23 pixels",
        ),
        (
            lambda: mask_pixels.fill_polygons([[1, 1, 5, float("nan"), 9, 1]], SIZE),
            "a polygon has the y nan: expected -23 to 46",
        ),
        (lambda: mask_pixels.fill_runs([5, 5], SIZE), "sum to 10 pixels: expected 851 (37 x 23)"),
        (lambda: mask_pixels.fill_runs([WIDTH * HEIGHT + 5, -5], SIZE), "a run has -5 pixels"),
        (lambda: mask_pixels.read_runs("PP P"), "its run lengths (`counts`) can't be read"),
        (lambda: mask_pixels.read_runs("k"), "cut short"),
        (lambda: mask_pixels.read_runs("o" * 14), "its run lengths (`counts`) can't be read"),
        (
            lambda: mask_pixels.segment_numbers(png(np.zeros((4, 4), np.uint16))),
            "is not RGB of 8 bits",
        ),
        (
            lambda: mask_pixels.segment_numbers(png(np.zeros((4, 4), np.uint8))),
            "is not RGB of 8 bits",
        ),
        (
            lambda: mask_pixels.png_of(jpeg_file()),
            "its format is JPEG, which may change the values of a mask",
        ),
        (lambda: mask_pixels.decode_mask(jpeg_file()), "expected PNG, GIF, BMP or TIFF"),
        (lambda: mask_pixels.png_of(b"text"), "it is no image of a known format"),
        (lambda: mask_pixels.decode_mask(b""), "it is empty"),
    ],
)
def test_an_outline_that_cant_be_filled_is_refused(fill: Callable[[], object], words: str) -> None:
    """The error tells what it has and what was expected."""
    with pytest.raises(ImageError) as caught:
        fill()
    assert words in str(caught.value)


def test_a_point_in_shares_of_a_side_is_of_no_image_of_one_pixel() -> None:
    """The size (1, 1) says that points are shares, not how large the image is."""
    with pytest.raises(ImageError, match=r"a polygon has the y 9: expected -1 to 2$"):
        mask_pixels.check_polygon([0, 9, 0, 0, 1, 1], mask_pixels.RELATIVE)


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.booleans(), min_size=36, max_size=36),
    st.booleans(),
)
def test_the_box_of_runs_is_that_of_their_pixels(
    width: int, height: int, values: list[bool], is_padded: bool
) -> None:
    """Runs without a pixel between others change nothing."""
    inside = np.array(values[: width * height], np.uint8)
    runs = [0]
    for value in inside.tolist():
        if value != (len(runs) + 1) % 2:
            runs.append(0)
        runs[-1] += 1
    runs = [*runs[:1], 0, 0, *runs[1:]] if is_padded else runs
    pixels = mask_pixels.fill_runs(runs, (width, height))
    assert np.array_equal(pixels, inside.reshape(width, height).T)
    assert mask_pixels.box_of_runs(runs, (width, height)) == mask_pixels.box_of_pixels(pixels)


def test_runs_of_a_huge_image_are_checked_without_its_pixels() -> None:
    """A file may claim any size: no memory is taken for it."""
    size = (1 << 31, 1 << 30)
    assert mask_pixels.box_of_runs([5, 1, (1 << 61) - 6], size) == (0, 5, 1, 6)
    with pytest.raises(ImageError, match="too large for a mask"):
        mask_pixels.check_runs([1 << 70], (1 << 35, 1 << 35))


def jpeg_file() -> bytes:
    """A mask as JPEG."""
    return png(np.eye(16, dtype=np.uint8) * 255, "JPEG")


def test_segments_are_numbered_by_three_colours() -> None:
    """Red counts one, green 256, blue 65,536."""
    numbers = np.array([[0, 255, 256], [65535, 65536, (1 << 24) - 1]])
    colours = np.stack([numbers & 255, numbers >> 8 & 255, numbers >> 16], axis=2).astype(np.uint8)
    assert (mask_pixels.segment_numbers(png(colours)) == numbers).all()


def test_a_mask_is_encoded_as_it_is() -> None:
    """A gray PNG of 8 bits, of zeros and ones."""
    mask = mask_pixels.fill_polygons([[2, 2, 30, 4, 8, 20]], SIZE)
    with Image.open(io.BytesIO(mask_pixels.encode_mask(mask))) as image:
        assert image.mode == "L"
        assert (np.asarray(image) == mask).all()
        assert mask.any()


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("mode", ["L", "P", "1"])
def test_masks_of_lossless_formats_keep_their_values(form: str, mode: str) -> None:
    """As PNG, each pixel has its value and its colour."""
    image = Image.fromarray(np.tile(np.arange(16, dtype=np.uint8), (9, 1)))
    if mode == "P":
        image.putpalette(
            [level for number in range(256) for level in (255 - number, number // 2, 77)]
        )
    image = image.point([255 * (value > 5) for value in range(256)], "1") if mode == "1" else image
    data = in_memory(lambda file: image.save(file, form))
    with (
        Image.open(io.BytesIO(mask_pixels.png_of(data))) as found,
        Image.open(io.BytesIO(data)) as stored,
    ):
        assert (np.asarray(found) == np.asarray(stored)).all()
        assert (np.asarray(found.convert("RGB")) == np.asarray(image.convert("RGB"))).all()
    is_inside = np.asarray(image.convert("RGB")).any(axis=2)
    assert (mask_pixels.decode_mask(data) == is_inside).all()


def test_a_threshold_takes_a_mask_in_jpeg() -> None:
    """Its noise is gone: two values are left."""
    values = np.zeros((40, 60), np.uint8)
    values[10:30, 20:50] = 255
    found = pixels_of(mask_pixels.threshold_mask(png(values, "JPEG"), 128))
    assert (found == values).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_turn_and_shrink_as_a_png_does(orientation: int) -> None:
    """At any size and orientation, pixels and a PNG of them stay equal."""
    mask = mask_pixels.fill_polygons([[2, 2, 30, 4, 8, 20]], SIZE)
    for size in (SIZE, (19, 12)):
        turned = size[::-1] if orientation > 4 else size
        fitted = mask_pixels.fit_pixels(mask, turned, orientation)
        assert fitted.shape == turned[::-1]
        assert (
            fitted
            == pixels_of(mask_pixels.fit_png(mask_pixels.encode_mask(mask), turned, orientation))
        ).all()


@pytest.mark.parametrize("form", ["GIF", "TIFF"])
@pytest.mark.parametrize(
    "read",
    [
        mask_pixels.png_of,
        mask_pixels.decode_mask,
        lambda data: mask_pixels.threshold_mask(data, 128),
    ],
    ids=["png_of", "decode_mask", "threshold_mask"],
)
def test_a_mask_of_several_frames_is_refused(read: Callable[[bytes], object], form: str) -> None:
    """Nobody can know which frame of a file is the mask."""
    first, second = (Image.fromarray(np.full((4, 5), value, np.uint8)) for value in (0, 255))
    buffer = io.BytesIO()
    first.save(buffer, form, save_all=True, append_images=[second])
    with pytest.raises(ImageError, match=r"several frames"):
        read(buffer.getvalue())


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (
            jpeg_file(),
            "get the mask as it was before JPEG: a PNG made of it may have wrong values, too",
        ),
        (b"text", "replace the mask"),
    ],
    ids=["JPEG", "text"],
)
def test_the_file_of_an_object_has_the_advice_of_its_fault(
    content: bytes, hint: str, tmp_path: Path
) -> None:
    """Nothing in a JPEG can be corrected to make it a mask."""
    (tmp_path / "mask").write_bytes(content)
    unused: Any = None
    with pytest.raises(InputError) as caught:
        mask_files._read(tmp_path, "image", ["mask"], unused, "object")
    assert caught.value.hint == hint
