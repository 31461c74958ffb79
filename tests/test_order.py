"""Order and partition: the golden values of the record set of 2016."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.datasets import order
from imagenet_prep.datasets.order import bounds, most_shards, shuffled
from imagenet_prep.ilsvrc2012 import facts

PROJECT = Path(__file__).resolve().parent.parent
SEED = 12345


def _digest(lines: Iterable[object]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


@pytest.mark.parametrize(
    ("count", "digest"),
    [
        (50_000, "3fb8232b658b6d575ff31d7cac370fbc33e26e62414cef67a25f1aebd93b4c8b"),
        (1_281_167, "7be8ebd96a4e7618ccb4e89554757030fe05743dd11d87bff25ee410b8141122"),
    ],
)
def test_the_shuffle_is_that_of_python_2(count: int, digest: str) -> None:
    """The shuffled indices of either split have the digest that CPython 2.7 gives."""
    assert _digest(shuffled(count, SEED)) == digest


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (1, [1, 0]),
        (3, [1, 0]),
        (0, [0, 1, 2]),
        (1, [2, 1, 0]),
        (0, [2, 0, 1, 3, 4]),
        (1, [1, 4, 2, 3, 0]),
    ],
)
def test_few_are_shuffled_as_by_python_2(seed: int, expected: list[int]) -> None:
    """What CPython 2.7 gives: seed(seed); l = range(len(expected)); shuffle(l)."""
    assert list(shuffled(len(expected), seed)) == expected


@given(
    st.integers(0, 300),
    st.integers(0, 2**40),
    st.integers(1, 400),
    st.integers(1, 8),
    st.integers(1, 9),
)
def test_many_are_exchanged_at_a_time(
    count: int, seed: int, drawn: int, apart: int, fewest: int
) -> None:
    """However many at a time, the order is that of one after the other,
    with Python's own numbers.
    """
    draw, expected = random.Random(seed).random, list(range(count))
    for i in range(count - 1, 0, -1):
        j = int(draw() * (i + 1))
        expected[i], expected[j] = expected[j], expected[i]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_DRAWN", drawn), ("_APART", apart), ("_FEWEST", fewest)):
            patch.setattr(order, name, value)
        assert list(shuffled(count, seed)) == expected


def test_validation_names_come_in_the_order_of_2016() -> None:
    """Synset by synset, names in byte order, then shuffled:
    the published digest, first and last as published.
    """
    labels, wnids = facts.labels(), facts.validation_wnids()
    rows = sorted(
        (labels[wnid], facts.validation_filename(number)) for number, wnid in enumerate(wnids, 1)
    )
    names = [rows[index][1] for index in shuffled(len(rows), SEED)]
    assert _digest(names) == "f543676b311b2c12915e83d4d47774a93c008bbf4651d014a3418fd00deb68a0"
    assert (names[0], names[-1]) == ("ILSVRC2012_val_00042559.JPEG", "ILSVRC2012_val_00028054.JPEG")
    assert facts.labels()[facts.validation_wnids()[42_559 - 1]] == 550  # of the first record


@pytest.mark.parametrize(
    ("count", "shards", "sizes", "digest"),
    [
        (
            50_000,
            128,
            {391: 80, 390: 48},
            "022151b7df5e10a8ca11bc85c9ee0e04052a038f92767984fb97891b591f4aea",
        ),
        (
            1_281_167,
            1024,
            {1251: 881, 1252: 143},
            "dcd5dc5e6b5f7c9c40787caca7ea6a231468d34ae101c681cf0a9456d8ee3764",
        ),
    ],
)
def test_shard_sizes_are_those_of_2016(
    count: int, shards: int, sizes: dict[int, int], digest: str
) -> None:
    """So many shards of this size and of that, in the order with the published digest."""
    edges = bounds(count, shards)
    found = [stop - start for start, stop in pairwise(edges)]
    assert Counter(found) == sizes
    assert _digest(found) == digest


def edges_of_lanes(cut: Callable[[int, int, int], list[int]], count: int, shards: int) -> list[int]:
    """The edges of all shards, lane by lane, by a rule that cuts one range into equal parts."""
    lanes = 8 if shards % 8 == 0 else 1
    edges = [0]
    for start, stop in pairwise(cut(0, count, lanes)):
        edges += cut(start, stop, shards // lanes)[1:]
    return edges


def cut_by_numpy(start: int, stop: int, parts: int) -> list[int]:
    """The edges as the script of 2016 computes them:
    NumPy divides first, multiplies, adds, and then truncates.
    """
    return [int(edge) for edge in np.linspace(start, stop, parts + 1)]


def cut_in_doubles(start: int, stop: int, parts: int) -> list[int]:
    """The same rule written out in Python's floats, which are doubles."""
    step = (stop - start) / parts
    return [*(int(k * step + start) for k in range(parts)), stop]


def cut_exactly(start: int, stop: int, parts: int) -> list[int]:
    """The edges in whole numbers, without rounding."""
    return [start + k * (stop - start) // parts for k in range(parts + 1)]


@pytest.mark.parametrize("count", [456, 50_000, 1_281_167])
def test_every_number_of_shards_is_cut_as_in_2016(count: int) -> None:
    """From 1 to 2,048 shards each boundary is the one that the script of
    2016 computes in doubles, by NumPy and written out.
    """
    for shards in range(1, 2049):
        edges = bounds(count, shards)
        for cut in (cut_by_numpy, cut_in_doubles):
            assert edges == edges_of_lanes(cut, count, shards), f"{count} images in {shards} shards"


@pytest.mark.parametrize(
    ("count", "shards", "boundaries"),
    [
        (456, 100, {25: 113, 50: 227, 75: 341}),
        (50_000, 22, {11: 24_999}),
        (50_000, 42, {21: 24_999}),
        (50_000, 44, {11: 12_499, 22: 24_999}),
        (1_281_167, 440, {11: 32_028, 22: 64_057, 44: 128_115}),
        (1_281_167, 880, {22: 32_028, 44: 64_057, 88: 128_115}),
        (1_281_167, 920, {23: 32_028, 46: 64_057, 92: 128_115}),
        (1_281_167, 1760, {44: 32_028, 88: 64_057, 176: 128_115}),
        (1_281_167, 1840, {46: 32_028, 92: 64_057, 184: 128_115}),
    ],
)
def test_rounding_moves_these_boundaries(
    count: int, shards: int, boundaries: dict[int, int]
) -> None:
    """Golden values: at these numbers of shards doubles put a boundary one
    image before its exact place.
    """
    edges, exact = bounds(count, shards), edges_of_lanes(cut_exactly, count, shards)
    moved = {number: edge for number, edge in enumerate(edges) if edge != exact[number]}
    assert moved == boundaries
    assert all(exact[number] - edge == 1 for number, edge in moved.items())


def test_the_documentation_names_numbers_of_shards_that_rounding_concerns() -> None:
    """For both splits, the page names the first two numbers of shards at which rounding moves a
    boundary, and says that those of 2016 are not among them.
    """
    page = (PROJECT / "docs" / "record-format.md").read_text()
    found = re.search(
        r"(\d+) and (\d+) train shards or (\d+) and (\d+) validation shards, and not 1024 and 128",
        page.replace("\n", " "),
    )
    assert found
    named = [int(number) for number in found.groups()]
    for count, numbers, of_2016 in ((1_281_167, named[:2], 1024), (50_000, named[2:], 128)):
        exact = (edges_of_lanes(cut_exactly, count, shards) for shards in range(1, 1025))
        moved = [shards for shards, edges in enumerate(exact, 1) if bounds(count, shards) != edges]
        assert moved[:2] == numbers
        assert of_2016 not in moved


def test_shards_not_divisible_by_8_use_one_lane() -> None:
    """With 10 shards the cuts are those of one lane;
    with 16 the lanes are cut first, which gives other cuts.
    """
    assert bounds(1003, 10) == cut_in_doubles(0, 1003, 10)
    assert bounds(1003, 16) != cut_in_doubles(0, 1003, 16)


def test_as_many_shards_as_images_or_those_of_2016() -> None:
    """Few images may have the 1,024 shards of 2016, of which some are empty then."""
    assert [most_shards(count) for count in (0, 1024, 1025)] == [1024, 1024, 1025]


@given(st.integers(0, 2_000_000), st.integers(1, 2048))
def test_bounds_cover_every_image_once(count: int, shards: int) -> None:
    """Whatever the numbers, the shards are ranges that follow each other
    from the first image to the last.
    """
    edges = bounds(count, shards)
    assert len(edges) == shards + 1
    assert (edges[0], edges[-1]) == (0, count)
    assert edges == sorted(edges)


@given(st.integers(0, 5_000_000), st.integers(1, 256))
def test_bounds_are_even(count: int, shards: int) -> None:
    """Two shards never differ by more than two images."""
    edges = bounds(count, shards)
    sizes = [stop - start for start, stop in pairwise(edges)]
    assert max(sizes) - min(sizes) <= 2
