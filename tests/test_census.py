"""Counting: what two censuses add up to, in either order."""

from __future__ import annotations

import io
import math
from itertools import permutations
from pathlib import Path

from PIL import Image

from imagenet_prep.images.jpeg import read_header
from imagenet_prep.reporting.census import (
    ASPECT_STEPS,
    BYTE_STEPS,
    SIDE_STEPS,
    TINY,
    Census,
    Odd,
    Spread,
    TakeCensus,
    _Counting,
    bin_of,
    merge,
)
from imagenet_prep.reporting.lenient import LONGEST_TEXT, Shown, names_of, see
from imagenet_prep.reporting.samples import SAMPLE, thumbnail
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List, encode_example

NAMES = names_of({"record": "inception"})


def test_texts_do_not_hang_on_the_order() -> None:
    """The first in byte order of different words for one label are shown, whichever shard came first."""
    for words in permutations(("tench", "carp", "pike")):
        whole = Census()
        for each in words:
            merge(whole, Census(words={1: each}), 1)
        assert whole.words == {1: "carp"}


def test_a_spread_has_both_ends() -> None:
    """Number, sum, least and greatest, whatever the order; an empty one changes nothing."""
    for numbers in permutations((5, 1, 9)):
        spread = sum((Spread.of(number) + Spread.of() for number in numbers), Spread())
        assert spread == Spread.of(*numbers) == Spread(3, 15, 1, 9)


def test_a_bin_has_its_number_in_the_middle() -> None:
    """Bin k holds what is nearer to 2 ** (k / steps) than to its neighbours, by ratio."""
    for k in range(40):
        middle = 2 ** (k / BYTE_STEPS)
        edge = 2 ** ((k + 0.5) / BYTE_STEPS)
        assert bin_of(middle, BYTE_STEPS) == k
        assert bin_of(math.nextafter(edge * 0.999, 0), BYTE_STEPS) == k
        assert bin_of(edge * 1.001, BYTE_STEPS) == k + 1


def test_few_odd_images_are_named() -> None:
    """All are counted, the first eight are named, in the order of shards and records."""
    whole = Census()
    for shard in ("b", "a"):
        first = [(shard, number, f"{shard}{number}.jpg") for number in range(5)]
        merge(whole, Census(odd={TINY: Odd(5, first)}), 8)
    assert whole.odd[TINY].count == 10
    expected = [f"a{number}.jpg" for number in range(5)] + [f"b{number}.jpg" for number in range(3)]
    assert [name for _, _, name in whole.odd[TINY].first] == expected


def test_features_are_counted_by_promise() -> None:
    """A feature of another kind is none of those promised; values, bounds, NaN and strangers add up in any order."""
    kinds = {"x": "float", "y": "int64", "w": "bytes"}
    rows: list[dict[str, Feature]] = [
        {"x": FloatList((1.0, math.nan)), "y": Int64List((3, 2**60))},
        {"x": FloatList((-2.0, 5.0, 6.0)), "y": Int64List(())},
        {"x": FloatList((math.nan,)), "z": BytesList((b"", b"abc"))},
        {"x": Int64List((100,))},
    ]
    how = TakeCensus(Layout(Path()), 1, kinds, NAMES)
    for order in permutations(rows):
        whole = Census()
        for number, row in enumerate(order):
            counting = _Counting(f"train-{number:05d}-of-00004", how)
            counting.take(0, memoryview(encode_example(row)))
            merge(whole, counting.census, 1)
        x, y = whole.features["x"], whole.features["y"]
        assert (x.values.count, x.not_numbers, whole.others) == (3, 2, 1)
        assert (x.values.least, x.values.greatest) == (1, 3)
        assert (x.bounds.least, x.bounds.greatest) == (-2.0, 6.0)
        assert (y.values.count, y.values.least, y.bounds.greatest) == (2, 0, 2**60)
        assert "w" not in whole.features


def test_a_wide_image_is_wide() -> None:
    """Width comes before height in the bins of sizes, and above it in the ratio."""
    counting = _Counting("train-00000-of-00001", TakeCensus(Layout(Path()), 1))
    counting.count_size(400, 100)
    (census,) = counting.census.splits.values()
    assert census.sides == {(bin_of(400, SIDE_STEPS), bin_of(100, SIDE_STEPS)): 1}
    assert census.aspects == {bin_of(4, ASPECT_STEPS): 1}
    assert (census.width.total, census.height.total) == (400, 100)


def test_what_makes_no_sense_is_left_out() -> None:
    """A size that no image has and a box that is no number are not shown; a long text is cut."""

    def seen(**changes: Feature) -> Shown:
        features: dict[str, Feature] = {"image/width": Int64List((4,)), "image/height": Int64List((3,))}
        return see({**features, **{name.replace("__", "/"): feature for name, feature in changes.items()}}, NAMES)

    assert seen().size == (4, 3)
    for pixels in (0, -1, 1 << 16):
        assert seen(image__height=Int64List((pixels,))).size is None
        assert seen(image__width=Int64List((pixels,))).size is None
    edges: dict[str, Feature] = {
        f"image__object__bbox__{edge}": FloatList((0.25, math.nan if edge == "xmax" else 0.5, math.inf))
        for edge in ("xmin", "ymin", "xmax", "ymax")
    }
    (box,) = seen(**edges).boxes
    assert (box.xmin, box.ymax) == (0.25, 0.25)
    for length, shown in ((LONGEST_TEXT, "n" * LONGEST_TEXT), (LONGEST_TEXT + 1, "n" * LONGEST_TEXT + "…")):
        name = BytesList((b"n" * length,))
        assert seen(image__filename=name).filename == shown


def test_a_thumbnail_is_small() -> None:
    """No side of a thumbnail has more than 400 pixels, whatever the image; its own size is told beside it."""
    buffer = io.BytesIO()
    Image.new("RGB", (1000, 500), (200, 30, 30)).save(buffer, "JPEG")
    content, size = thumbnail(memoryview(buffer.getvalue()), SAMPLE)
    header = read_header(content)
    assert (size, header.width, header.height) == ((1000, 500), 400, 200)
