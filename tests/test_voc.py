"""Annotation XML: every rule of the original, one by one, and nothing hostile gets through."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imagenet_prep.ilsvrc2012 import annotation_xml as voc
from imagenet_prep.ilsvrc2012.annotation_xml import (
    LARGEST,
    Annotation,
    AnnotationFault,
    parse_annotation,
)
from imagenet_prep.ilsvrc2012.boxes import encode_boxes
from imagenet_prep.model import Box

Corners = tuple[object, object, object, object]


def xml(
    *boxes: Corners,
    size: str = "<size><width>400</width><height>200</height></size>",
    name: str = "n1",
) -> bytes:
    """An annotation in the form of ImageNet's own."""
    objects = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox>"
        "</object>\n"
        for a, b, c, d in boxes
    )
    return f"<annotation>\n<folder>n1</folder><filename>%s</filename>\n{size}{objects}</annotation>\n".encode()


def reason(content: bytes) -> str:
    """Why an annotation is refused."""
    with pytest.raises(AnnotationFault) as caught:
        parse_annotation(content)
    return str(caught.value)


@pytest.mark.parametrize(
    "corners", [(40, 50, 40, 100), (40, 50, 90, 50), (410, 50, 450, 100), (-9, 1, -2, 20)]
)
def test_boxes_without_area_are_left_out_and_counted(corners: Corners) -> None:
    """A box without area, from the start or once it is cut to the image,
    is left out and the others stay.
    """
    found = parse_annotation(xml(corners, (40, 50, 400, 100)))
    assert (found.boxes, found.no_area) == ((Box(0.1, 0.25, 1.0, 0.5),), 1)


def test_the_area_is_that_before_rounding() -> None:
    """A box thinner than the last decimal written is kept, its corners equal;
    one that is outside is not.
    """
    wide = "<size><width>100000</width><height>200</height></size>"
    boxes = (
        (10000, 1, 10001, 100),
        (100001, 1, 100002, 100),
        (99999, 1, 100001, 100),
        (-1000, 1, 1, 100),
    )
    found = parse_annotation(xml(*boxes, size=wide))
    assert encode_boxes(
        (name, box) for name, box in zip("acd", found.boxes, strict=True)
    ).split() == [
        b"a,0.1000,0.0050,0.1000,0.5000",
        b"c,1.0000,0.0050,1.0000,0.5000",
        b"d,0.0000,0.0050,0.0000,0.5000",
    ]
    assert found.no_area == 1


def without(tag: str, *, which: int, boxes: Sequence[Corners]) -> bytes:
    """An annotation in which one box lacks a corner."""
    parts = xml(*boxes).decode().split("<object>")
    start, stop = parts[which + 1].index(f"<{tag}>"), parts[which + 1].index(f"</{tag}>")
    parts[which + 1] = parts[which + 1][:start] + parts[which + 1][stop + len(tag) + 3 :]
    return "<object>".join(parts).encode()


AS_IN_2016 = {
    # what the script of 2016 printed for each, on Python 2.7: the file, then xmin, ymin, xmax, ymax
    # of its boxes
    "xmax missing": (without("xmax", which=0, boxes=[(40, 50, 400, 100)]), [(0.0, 0.25, 0.1, 0.5)]),
    "ymax missing": (without("ymax", which=0, boxes=[(40, 50, 400, 100)]), [(0.1, 0.0, 1.0, 0.25)]),
    "ymin missing": (without("ymin", which=0, boxes=[(40, 50, 400, 100)]), [(0.1, 0.0, 1.0, 0.5)]),
    "ymin of the first of two missing": (
        without("ymin", which=0, boxes=[(40, 50, 400, 100), (80, 20, 200, 40)]),
        [(0.1, 0.1, 1.0, 0.5), (0.2, 0.0, 0.5, 0.2)],
    ),
    "xmin of the last missing": (
        without("xmin", which=1, boxes=[(40, 50, 400, 100), (80, 20, 200, 40)]),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "xmin of the first of two missing": (
        without("xmin", which=0, boxes=[(40, 50, 400, 100), (80, 20, 200, 40)]),
        [(0.2, 0.25, 1.0, 0.5)],
    ),
    "every xmin missing": (without("xmin", which=0, boxes=[(40, 50, 400, 100)]), []),
    "a fault behind an xmin of -1": (
        xml((40, 50, 400, 100), (-1, "x", "", "9.5"), ("?", 1, 9, 9)),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "a fault in a corner too many": (
        xml((40, 50, 400, 100)).replace(b"</bndbox>", b"<ymax>x</ymax></bndbox>"),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "a plus sign": (xml(("+40", 50, "+400", 100)), [(0.1, 0.25, 1.0, 0.5)]),
    "zeros before": (xml(("0000000040", 50, 400, 100)), [(0.1, 0.25, 1.0, 0.5)]),
    "many digits": (xml((40, 50, "9" * 15, 100)), [(0.1, 0.25, 1.0, 0.5)]),
    "many digits below 0": (xml((40, 50, 400, "-" + "9" * 15)), [(0.1, 0.0, 1.0, 0.25)]),
    "UTF-16": (xml((40, 50, 400, 100)).decode().encode("utf-16"), [(0.1, 0.25, 1.0, 0.5)]),
    "UTF-16, the other order": (
        b"\xfe\xff" + xml((40, 50, 400, 100)).decode().encode("utf-16-be"),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "a mark of UTF-8": (b"\xef\xbb\xbf" + xml((40, 50, 400, 100)), [(0.1, 0.25, 1.0, 0.5)]),
    "another namespace": (xml((40, 50, 400, 100)).replace(b"<object>", b"<object xmlns='u'>"), []),
    "text before and behind a child": (xml(("40<b>1</b>2", 50, 400, 100)), [(0.1, 0.25, 1.0, 0.5)]),
    "a corner within a corner": (
        xml(("40<xmin>-1</xmin>9", 50, 400, 100)),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "an element round all": (
        b"<a><b>" + xml((40, 50, 400, 100)) + b"</b></a>",
        [(0.1, 0.25, 1.0, 0.5)],
    ),
    "a second size": (
        xml((40, 50, 400, 100)).replace(b"</size>", b"</size><width>7</width>"),
        [(0.1, 0.25, 1.0, 0.5)],
    ),
}


@pytest.mark.parametrize("case", AS_IN_2016)
def test_odd_files_give_the_boxes_of_2016(case: str) -> None:
    """What the script of 2016 made boxes of, however odd, gives the same boxes here."""
    content, boxes = AS_IN_2016[case]
    said = parse_annotation(content)
    assert [(box.xmin, box.ymin, box.xmax, box.ymax) for box in said.boxes] == boxes
    assert said.ended_early == (
        case in ("a fault behind an xmin of -1", "a corner within a corner")
    )
    assert said.no_area == 0


def test_xmin_of_minus_one_ends_the_list() -> None:
    """The box whose xmin is exactly -1 and all behind it are not seen, as in the original;
    -2 does no such thing.
    """
    first, last = (40, 50, 400, 100), (1, 1, 100, 100)
    assert parse_annotation(xml(first, (-1, 5, 6, 7), last)) == Annotation(
        "n1", (Box(0.1, 0.25, 1.0, 0.5),), ended_early=True
    )
    assert parse_annotation(xml((-1, 5, 6, 7))) == Annotation("n1", (), ended_early=True)
    assert len(parse_annotation(xml(first, (-2, -1, 100, 100), last)).boxes) == 3


TWO = "n2</name></object><object><name>n3"


@pytest.mark.parametrize(
    ("name", "label"),
    [(TWO, "n2"), (" n2 ", " n2 "), ("<b>n2</b>", ""), ("n2<b>3</b>", "n2"), ("<!-- -->n2", "n2")],
)
def test_the_label_is_the_first_name_as_it_stands(name: str, label: str) -> None:
    """Blanks belong to a label, as in 2016, and what is within a further element doesn't;
    no name is no label.
    """
    assert parse_annotation(xml((1, 1, 9, 9), name=name)).label == label
    assert parse_annotation(xml()) == Annotation("", ())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "can't be read as XML"),
        (xml((1, 1, 9, 9))[:-20], "can't be read as XML"),
        (xml((1, 1, 9, 9), size=""), "<width> is missing"),
        (xml(size="<size><width>0</width><height>0</height></size>"), "<width> is 0"),
        (xml(size="<size><width>wide</width><height>5</height></size>"), "<width> is 'wide'"),
        (xml(("x", 1, 9, 9)), "<xmin> is 'x'"),
        (xml((1, "", 9, 9)), "<ymin> is ''"),
        (xml((1, 1, "9.5", 9)), "<xmax> is '9.5'"),
        (xml((1, 1, 9, "٣")), "<ymax> is"),
        (xml((1, 1, 9, "9" * 16)), "<ymax> is"),
        (xml((1, 1, "<b>9</b>", 9)), "<xmax> is ''"),
        (xml((1, "x", 9, 9), (-1, 1, 9, 9)), "<ymin> is 'x'"),
        (xml((1, 1, 9, 9)).decode().encode("utf-16") + b"\0", "can't be read as XML"),
        (xml((1, 1, 9, 9)) + b"\0", "can't be read as XML"),
        (b"<?xml version='1.0' encoding='utf-16'?>" + xml(), "can't be read as XML"),
        ("<?xml version='1.0' encoding='utf-8'?><a/>".encode("utf-16"), "can't be read as XML"),
        ("<!DOCTYPE annotation><a/>".encode("utf-16"), "<!DOCTYPE"),
        ("<!DOCTYPE annotation><a/>".encode("utf-16-be"), "<!DOCTYPE"),
        (xml(name="caf\xe9").decode().encode("latin-1") + b"\xe9", "can't be read as XML"),
        (b"<?xml version='1.0' encoding='rot13'?>" + xml(), "can't be read as XML"),
        (b"<!DOCTYPE annotation>" + xml(), "<!DOCTYPE"),
        (b"<a>&undeclared;</a>", "can't be read as XML"),
        (b"<a>" * 100 + b"</a>" * 100, "nested in each other"),
        (xml((1, 1, 9, 9)) + b" " * LARGEST, "larger than"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(content: bytes, why: str) -> None:
    """Each kind of broken or hostile annotation is refused, and the reason names it."""
    assert why in reason(content)


def test_entities_are_never_expanded() -> None:
    """Neither a billion laughs nor a file of the system gets into a label,
    and refusing takes no time.
    """
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE a [<!ENTITY l0 "ha">{levels}]><annotation><name>&l11;</name></annotation>'
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation><name>&x;</name></annotation>'
    start = time.process_time()
    assert "<!DOCTYPE" in reason(bomb.encode())
    assert "<!DOCTYPE" in reason(outside.encode())
    assert "<!DOCTYPE" in reason(b"<?xml version='1.0' encoding='latin-1'?>" + outside.encode())
    assert "<!DOCTYPE" in reason(bomb.encode("utf-16"))
    assert time.process_time() - start < 0.5


def test_predefined_entities_and_character_data_are_read() -> None:
    """What every XML text may hold is read as XML says:
    &amp;, CDATA, comments, blanks around numbers.
    """
    content = xml((" 40\n", "<!-- no -->50", "<![CDATA[400]]>", "&#49;00"), name="black &amp; tan")
    assert parse_annotation(content) == Annotation("black & tan", (Box(0.1, 0.25, 1.0, 0.5),))


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=300)
    | st.text(alphabet="<>/!&;xminayDOCTYPE[]'\"?-= 0", max_size=80).map(str.encode)
)
def test_random_bytes_raise_nothing_but_annotation_fault(content: bytes) -> None:
    """Whatever the bytes, the answer is an annotation or an AnnotationFault."""
    for each in (
        content,
        b"<a>" + content + b"</a>",
        b"<?xml version='1.0' encoding='" + content + b"'?><a/>",
    ):
        with pytest.raises(AnnotationFault):  # there's no size in any of them
            parse_annotation(each)


def expected_boxes(
    boxes: Sequence[tuple[int, int, int, int]], width: int, height: int
) -> list[str]:
    """What the original printed, by its own formula."""
    lines = []
    for x1, y1, x2, y2 in boxes:
        if x1 == -1:
            break
        left, right = (min(max(float(x) / float(width), 0.0), 1.0) for x in sorted((x1, x2)))
        top, bottom = (min(max(float(y) / float(height), 0.0), 1.0) for y in sorted((y1, y2)))
        if left < right and top < bottom:
            lines.append(f"{left:.4f},{top:.4f},{right:.4f},{bottom:.4f}")
    return lines


sides = st.integers(1, 9999) | st.integers(9999, 10**6) | st.integers(10**14, 10**15 - 1)
pixels = st.integers(-3, 600) | st.integers(0, 10**6) | st.integers(-(10**15) + 1, 10**15 - 1)


@given(st.lists(st.tuples(pixels, pixels, pixels, pixels), max_size=6), sides, sides)
def test_boxes_are_those_of_the_original(
    boxes: list[tuple[int, int, int, int]], width: int, height: int
) -> None:
    """For any corners and size the boxes are those of the original's formula,
    to the last decimal printed.
    """
    found = parse_annotation(
        xml(*boxes, size=f"<size><width>{width}</width><height>{height}</height></size>")
    )
    texts = [f"{box.xmin:.4f},{box.ymin:.4f},{box.xmax:.4f},{box.ymax:.4f}" for box in found.boxes]
    assert texts == expected_boxes(boxes, width, height)
    assert found.ended_early == any(box[0] == -1 for box in boxes)


def official(
    objects: Sequence[Sequence[str]], size: tuple[str, str], words: str, blank: str
) -> bytes:
    """A file of the shape that the official ones have;
    ``objects`` are name, xmin, ymin, xmax, ymax.
    """
    boxes = "".join(
        f"<object>_<name>{name}</name>_<pose>Unspecified</pose>_<truncated>0</truncated>_<difficult>0</difficult>_"
        f"<bndbox>_<xmin>{a}</xmin>_<ymin>{b}</ymin>_<xmax>{c}</xmax>_<ymax>{d}</ymax>_</bndbox>_</object>_"
        for name, a, b, c, d in objects
    )
    text = (
        f"<annotation>_<folder>{words}</folder>_<filename>{words}</filename>_<source>_<database>ILSVRC2012</database>_"
        f"</source>_<size>_<width>{size[0]}</width>_<height>{size[1]}</height>_<depth>3</depth>_</size>_"
        f"<segmented>0</segmented>_{boxes}</annotation>_"
    )
    return text.replace("_<", f"{blank}<").replace(">_", f">{blank}").encode()


numbers = st.integers(-5, 2000).map(str) | st.text(alphabet="0123456789-", max_size=10)
names = st.sampled_from(["n02092002", " n02092002 ", "Scottish_deerhound", "%s", ""])
objects = st.lists(st.tuples(names, numbers, numbers, numbers, numbers), max_size=3)
blanks = st.sampled_from(["", "\n\t", " ", "\r\n"])
plain = st.builds(official, objects, st.tuples(numbers, numbers), names, blanks)


def counted(pixels: voc._InPixels) -> tuple[int, int, str, list[tuple[int, int, int, int] | None]]:
    """What of a file counts: nothing of a box whose xmin is -1 (None here),
    and no box behind it.
    """
    rows: list[tuple[int, int, int, int] | None] = []
    for row in pixels.rows:
        if row[0] == -1:
            return pixels.width, pixels.height, pixels.label, [*rows, None]
        rows.append(row)
    return pixels.width, pixels.height, pixels.label, rows


@settings(max_examples=150, deadline=None)
@given(
    plain,
    st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(b"<>/&x-0 \n\0\xe9_%]")), max_size=2),
)
def test_the_pattern_says_what_expat_says(content: bytes, changes: list[tuple[int, int]]) -> None:
    """Whatever the pattern accepts, with bytes changed at random too,
    it reads exactly as the XML parser does.
    """
    changed = bytearray(content)
    for position, byte in changes:
        changed[position % len(changed)] = byte
    said = voc._read_usual(bytes(changed))
    assert said is None or counted(said) == counted(voc._read_any(bytes(changed)))
