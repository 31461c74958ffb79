"""The CSV of boxes: written as the original wrote it, read back exactly, refused when broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.ilsvrc2012.boxes import BoxesFault, encode_boxes, parse_boxes
from imagenet_prep.model import Box

places = st.lists(st.integers(0, 10_000), min_size=2, max_size=2, unique=True).map(sorted)
boxes = st.builds(lambda x, y: Box(x[0] / 10_000, y[0] / 10_000, x[1] / 10_000, y[1] / 10_000), places, places)
names = st.from_regex(r"[a-zA-Z0-9_. é]{1,20}", fullmatch=True)


def test_lines_have_the_form_of_the_original() -> None:
    """A line is name, xmin, ymin, xmax, ymax with four decimals; lines are sorted by byte value."""
    rows = [
        ("n2_1.JPEG", Box(0, 0, 1, 1)),
        ("n1_9.JPEG", Box(0.006, 0.262, 0.7545, 0.994)),
        ("n1_10.JPEG", Box(0, 0, 1, 1)),
    ]
    assert encode_boxes(rows) == (
        b"n1_10.JPEG,0.0000,0.0000,1.0000,1.0000\n"
        b"n1_9.JPEG,0.0060,0.2620,0.7545,0.9940\n"
        b"n2_1.JPEG,0.0000,0.0000,1.0000,1.0000\n"
    )


@given(st.lists(st.tuples(names, boxes), max_size=20))
def test_round_trip(rows: list[tuple[str, Box]]) -> None:
    """Boxes written are read back, exactly, under their names."""
    found = parse_boxes(encode_boxes(rows))
    assert set(found) == {name for name, _ in rows}
    for name, given_boxes in found.items():
        assert sorted(map(repr, given_boxes)) == sorted(repr(box) for each, box in rows if each == name)


def test_boxes_keep_the_order_of_the_file() -> None:
    """Boxes of one image come in the order of their lines."""
    content = b"a,0.5,0,1,1\nb,0,0,1,1\na,0.1,0,1,1\n"
    assert [box.xmin for box in parse_boxes(content)["a"]] == [0.5, 0.1]


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"name", b"a,0,0,1", b"a,0,0,1,1,1", b",0,0,1,1", b"a,x,0,1,1", b"\xff,0,0,1,1", b"a,0,0,,1"),
        *(b"a,0.6,0,0.5,1", b"a,0,0.6,1,0.5", b"a,-0.1,0,1,1", b"a,0,0,1,1.1", b"a,nan,0,1,1", b"a,0,0,inf,1"),
    ],
)
def test_a_broken_line_is_named(line: bytes) -> None:
    """A line of another form, or a box outside of the image or back to front, is refused by its number."""
    with pytest.raises(BoxesFault) as caught:
        parse_boxes(b"a,0,0,1,1\n" + line + b"\nb,0,0,1,1\n")
    assert caught.value.line == 2
    assert str(caught.value).startswith("line 2: expected ")


def test_corners_can_be_equal() -> None:
    """A box that only four decimals made a line or a point, as 2016 wrote it for large images, is read."""
    found = parse_boxes(b"a,0.9999,0.0001,0.9999,0.0500\na,0,1,1,1\na,0,0,0,0\n")["a"]
    assert found == (Box(0.9999, 0.0001, 0.9999, 0.05), Box(0, 1, 1, 1), Box(0, 0, 0, 0))


def test_a_cut_file_is_refused() -> None:
    """A last line without its end is refused, even where it would still read as a box."""
    with pytest.raises(BoxesFault, match="cut"):
        parse_boxes(b"a,0,0,1,1\nb,0.0000,0.0000,0.5000,0.99")
    assert parse_boxes(b"") == {}


@given(st.binary(max_size=100))
def test_random_bytes_raise_nothing_but_boxes_fault(content: bytes) -> None:
    """Whatever the bytes, the answer is boxes or a BoxesFault."""
    try:
        found = parse_boxes(content)
    except BoxesFault:
        return
    assert all(found.values())
