"""ImageNet's annotation XML (PASCAL VOC's form) -> boxes, by the rules of the original process_bounding_boxes.py.

Half a million files, nearly all of one shape, so a file of just that shape is read by a pattern. Every other file goes
to expat, which takes several times as long and gives the same answer.

expat is called directly: it is three times as fast as ElementTree, and it leaves what to refuse to us. No document type
declaration gets as far as the parser, and entities can only be declared in one, so there is nothing to expand (what the
defusedxml package would see to).

docs/record-format.md, "Boxes", lists the rules, and where they differ from the original's on purpose.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import NamedTuple
from xml.parsers import expat

from imagenet_prep.model import Box

LARGEST = 1 << 20
"""Bytes in the largest annotation that is read; real ones have about a thousand."""

DEPTH = 20
"""Elements within elements; real annotations have four."""

DIGITS = 15
"""Of a number, at most: up to there, whole numbers and their quotients as floats are in the same order."""

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_TAGS = ("width", "height", "name", *_CORNERS)


class AnnotationFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """An annotation that can't be used; its text says why."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one file says.

    Args:
        label: its first ``<name>`` as it stands there: a wnid, or words such as "Scottish_deerhound", or what is no
            wnid for the blanks around it; empty if there is none.
        boxes: in the file's order, relative to the image; the CSV rounds them.
        no_area: boxes left out because nothing of them is within the image.
        ended_early: whether an xmin of exactly -1 ended the list, as it did in the original.
    """

    label: str
    boxes: tuple[Box, ...]
    no_area: int = 0
    ended_early: bool = False


def parse_annotation(content: bytes) -> Annotation:
    """The boxes of one annotation file.

    Corners are integers relative to the ``<size>`` that the annotator saw: divided by it, put in order, cut to 0..1. A
    box without area is left out.

    Raises:
        AnnotationFault: not an annotation: no XML, a DOCTYPE, too large or too deep, no size, text for a number.
    """
    if len(content) > LARGEST:
        raise AnnotationFault(f"larger than {LARGEST:,} bytes")
    said = _read_usual(content) or _read_any(content)
    boxes: list[Box] = []
    for number, row in enumerate(said.rows):
        if row[0] == -1:
            return Annotation(said.label, tuple(boxes), number - len(boxes), ended_early=True)
        box = _scale(*row, said.width, said.height)
        if box is not None:
            boxes.append(box)
    return Annotation(said.label, tuple(boxes), len(said.rows) - len(boxes), ended_early=False)


def _scale(x1: int, y1: int, x2: int, y2: int, width: int, height: int) -> Box | None:
    if 0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height:  # nearly all of them
        left, top, right, bottom = x1 / width, y1 / height, x2 / width, y2 / height
    else:
        left, right = sorted((_place(x1, width), _place(x2, width)))
        top, bottom = sorted((_place(y1, height), _place(y2, height)))
        if left == right or top == bottom:
            return None
    return Box(left, top, right, bottom)


def _place(pixel: int, side: int) -> float:
    return min(max(pixel / side, 0.0), 1.0)


class _Said(NamedTuple):
    """What a file says, in pixels: ``rows`` are xmin, ymin, xmax, ymax of its boxes, as they stand there.

    No row behind one whose xmin is -1 counts, nor do the other corners of that one.
    """

    width: int
    height: int
    label: str
    rows: list[tuple[int, int, int, int]]


# the usual shape -----------------------------------------------------------------------------------------------

_WORDS = rb"[A-Za-z0-9_.% -]*"  # nothing that XML reads as anything but itself
_INTEGER = rb"-?[0-9]{1,8}"


def _pattern(shape: bytes) -> re.Pattern[bytes]:
    """A pattern of tags, with blanks or none where ``shape`` has some."""
    return re.compile(re.sub(rb"\s+", rb"[ \\t\\r\\n]*", shape) % {b"words": _WORDS, b"int": _INTEGER})


_HEAD = rb"""<annotation>
    <folder>%(words)b</folder> <filename>%(words)b</filename> <source> <database>%(words)b</database> </source>
    <size> <width>([0-9]{1,9})</width> <height>([0-9]{1,9})</height> <depth>%(int)b</depth> </size>
    <segmented>%(int)b</segmented> """
_OBJECT = rb"""<object>
    <name>(%(words)b)</name> <pose>%(words)b</pose> <truncated>%(int)b</truncated> <difficult>%(int)b</difficult>
    <bndbox> <xmin>(%(int)b)</xmin> <ymin>(%(int)b)</ymin> <xmax>(%(int)b)</xmax> <ymax>(%(int)b)</ymax> </bndbox>
    </object> """
_END = rb"</annotation> "


@functools.cache
def _patterns() -> list[re.Pattern[bytes]]:
    """A file of one box, nine in ten; and the head, an object and the end of any: made when the first file is read."""
    return list(map(_pattern, (_HEAD + _OBJECT + _END, _HEAD, _OBJECT, _END)))


def _read_usual(content: bytes) -> _Said | None:
    """What a file of the usual shape says; None of any other, which may be as good."""
    of_one_box, usual_head, usual_object, usual_end = _patterns()
    if found := of_one_box.fullmatch(content):
        width, height, label, x1, y1, x2, y2 = found.groups()
        row = int(x1), int(y1), int(x2), int(y2)
        said = _Said(int(width), int(height), label.decode(), [row])
        return said if said.width and said.height else None
    head = usual_head.match(content)
    if head is None:
        return None
    end, labels, rows = head.end(), [], []
    while found := usual_object.match(content, end):
        label, x1, y1, x2, y2 = found.groups()
        labels.append(label)
        rows.append((int(x1), int(y1), int(x2), int(y2)))
        end = found.end()
    width, height = int(head[1]), int(head[2])
    if not usual_end.fullmatch(content, end) or width == 0 or height == 0:
        return None
    return _Said(width, height, labels[0].decode() if labels else "", rows)


# any XML -------------------------------------------------------------------------------------------------------


_NUMBER = re.compile(f"[+-]?[0-9]{{1,{DIGITS}}}")


def _read_any(content: bytes) -> _Said:
    values = _read_elements(content)
    width, height = _parse_side(values, "width"), _parse_side(values, "height")
    return _Said(width, height, values["name"][0] if values["name"] else "", list(_parse_rows(values)))


def _parse_rows(values: dict[str, list[str]]) -> Iterator[tuple[int, int, int, int]]:
    """As the original took them: the xmin of each number with the others of that number, -1 where there is none."""
    texts = zip_longest(*(values[tag] for tag in _CORNERS), fillvalue="-1")
    for xmin_text, *others in islice(texts, len(values["xmin"])):
        xmin = _parse_integer(xmin_text, "xmin")
        if xmin == -1:
            yield -1, -1, -1, -1
            return
        ymin, xmax, ymax = map(_parse_integer, others, _CORNERS[1:])
        yield xmin, ymin, xmax, ymax


def _parse_side(values: dict[str, list[str]], tag: str) -> int:
    if not values[tag]:
        raise AnnotationFault(f"no size: <{tag}> is missing")
    side = _parse_integer(values[tag][0], tag)
    if side < 1:
        raise AnnotationFault(f"a size of {side} in <{tag}>")
    return side


def _parse_integer(text: str, tag: str) -> int:
    digits = text.strip()
    if not _NUMBER.fullmatch(digits):
        raise AnnotationFault(f"<{tag}> is {text[:40]!r}, not an integer of at most {DIGITS} digits")
    return int(digits)


class _Reader:
    """Collects the text of the elements that matter, by tag, in the order in which they begin.

    An element's text is that before its first child, as ElementTree has it.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {tag: [] for tag in _TAGS}
        self._depth = 0
        self._texts: list[str] | None = None  # text that comes now belongs to the last one

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise AnnotationFault(f"more than {DEPTH} elements within each other")
        self._texts = self.values.get(tag)
        if self._texts is not None:
            self._texts.append("")

    def data(self, text: str) -> None:
        if self._texts is not None:
            self._texts[-1] += text

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._texts = None


_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
"""As every encoding writes it that expat takes: each one else is a superset of ASCII, or refused."""


def _read_elements(content: bytes) -> dict[str, list[str]]:
    # Looked for in the bytes: after a handler has raised, expat would still go on and expand.
    if any(word in content for word in _DOCTYPES):
        raise AnnotationFault("a document type declaration, which annotations don't have")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator="}")  # a tag of another namespace is another tag
    parser.buffer_text = True
    parser.CharacterDataHandler = reader.data
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(content, True)
    except AnnotationFault:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:  # the latter two: a codec that isn't one for text
        raise AnnotationFault(f"not well-formed XML: {error}") from error
    return reader.values
