"""Counting: what two censuses add up to, in either order."""

from __future__ import annotations

import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from imagenet_prep.reporting.census import _COLUMNS, Census, TakeCensus, join
from imagenet_prep.reporting.lenient import LONGEST_NAME, Shown, names_of, see
from imagenet_prep.reporting.near_duplicates import group_near
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List, encode_example

NAMES = names_of({"record": "inception"})


def empty(**changes: dict[int, str]) -> Census:
    """The census of a shard without records."""
    return Census(np.empty(0, list(_COLUMNS.items())), **changes)


def test_features_are_counted_by_promise() -> None:
    """A feature of another kind is none of those promised;
    values, bounds, NaN and strangers add up in any order.
    """
    kinds = {"x": "float", "y": "int64", "w": "bytes"}
    rows: list[dict[str, Feature]] = [
        {"x": FloatList((1.0, math.nan)), "y": Int64List((3, 2**60))},
        {"x": FloatList((-2.0, 5.0, 6.0)), "y": Int64List(())},
        {"x": FloatList((math.nan,)), "z": BytesList((b"", b"abc"))},
        {"x": Int64List((100,))},
    ]
    how = TakeCensus(Layout(Path()), kinds, NAMES)
    for order in permutations(rows):
        parts = []
        for number, row in enumerate(order):
            part = empty()
            how._see(memoryview(encode_example(row)), part)
            parts.append((f"train-{number:05d}-of-00004", part))
        whole = join(parts, ["train"])
        x, y = whole.features["x"], whole.features["y"]
        assert (x.records, x.not_numbers, whole.others) == (3, 2, 1)
        assert (x.fewest, x.most) == (1, 3)
        assert (x.low, x.high) == (-2.0, 6.0)
        assert (y.records, y.fewest, y.high) == (2, 0, 2**60)
        assert "w" not in whole.features


def test_what_makes_no_sense_is_left_out() -> None:
    """A size that no image has and a box that is no number are not shown; a long text is cut."""

    def seen(**changes: Feature) -> Shown:
        features: dict[str, Feature] = {
            "image/width": Int64List((4,)),
            "image/height": Int64List((3,)),
        }
        return see(
            {**features, **{name.replace("__", "/"): feature for name, feature in changes.items()}},
            NAMES,
        )

    assert seen().size == (4, 3)
    for pixels in (0, -1, 1 << 16):
        assert seen(image__height=Int64List((pixels,))).size is None
        assert seen(image__width=Int64List((pixels,))).size is None
    edges: dict[str, Feature] = {
        f"image__object__bbox__{edge}": FloatList(
            (0.25, math.nan if edge == "xmax" else 0.5, math.inf)
        )
        for edge in ("xmin", "ymin", "xmax", "ymax")
    }
    names = BytesList((b"a dog", b"a cat", b"none"))
    shown = seen(**edges, image__object__class__text=names)
    (box,) = shown.boxes
    assert (box.xmin, box.ymax, shown.box_names) == (0.25, 0.25, ("a dog",))
    assert seen(**edges, image__object__class__text=BytesList((b"a dog",))).box_names == ()
    for length, shown in (
        (LONGEST_NAME, "n" * LONGEST_NAME),
        (LONGEST_NAME + 1, "n" * LONGEST_NAME + "…"),
    ):
        name = BytesList((b"n" * length,))
        assert seen(image__filename=name).filename == shown


@pytest.mark.parametrize("seed", range(3))
def test_near_hashes_are_grouped(seed: int) -> None:
    """Hashes that differ in 3 bits at most, directly or through others, are one group:
    all pairs were compared.
    """
    random = np.random.default_rng(seed)
    hashes = [int(each) for each in random.integers(0, 1 << 63, 60)]
    hashes += [
        each ^ sum(1 << int(bit) for bit in random.choice(64, random.integers(0, 6), False))
        for each in hashes
    ]
    near = {
        k: {j for j, other in enumerate(hashes) if (one ^ other).bit_count() <= 3}
        for k, one in enumerate(hashes)
    }
    for _ in hashes:
        near = {k: set().union(*(near[j] for j in own)) for k, own in near.items()}
    expected = {tuple(sorted(own)) for own in near.values() if len(own) > 1}
    assert {tuple(group) for group in group_near(np.array(hashes, np.uint64))} == expected
    assert 20 < len(expected) < 60
    assert group_near(np.zeros(4, np.uint64)) == [[0, 1, 2, 3]]
    assert group_near(np.empty(0, np.uint64)) == []
