"""parse_annotation: ImageNet's annotation XML (PASCAL VOC's form) -> its label and its boxes.

It follows the rules of the original script: docs/record-format.md, "Boxes".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import NamedTuple
from xml.parsers import expat

from msgspec import Struct

from imagenet_prep.model import Box
from imagenet_prep.text import has_doctype

#
# ImageNet's annotation XML (PASCAL VOC's form) -> boxes, by the rules of the original script:
# docs/record-format.md, "Boxes". There are half a million files, nearly all of one shape, so a
# pattern reads a file of that shape. expat reads every other file; it takes several times as long
# and gives the same answer. expat is called directly: it is three times as fast as ElementTree, and
# lets us decide what to refuse. No document type declaration reaches it. Entities can only be
# declared in one, so none can expand (the purpose of defusedxml).

LARGEST = 1 << 20
"""The maximum bytes in an annotation; real ones have about a thousand."""

DEPTH = 20
"""The maximum depth of elements; real annotations have four."""

_UNUSUAL = (
    f"it is larger than {LARGEST:,} bytes, has more than {DEPTH} elements nested in each other, "
    "or has <!DOCTYPE"
)
"""The fault of a file that no annotation tool writes: it could take too much time or memory."""

DIGITS = 15
"""The maximum digits of a number: up to there,
whole numbers and their quotients as floats sort alike.
"""

_CORNER_TAGS = ("xmin", "ymin", "xmax", "ymax")
_TAGS = ("width", "height", "name", *_CORNER_TAGS)


class AnnotationFault(ValueError):  # noqa: N818 - a fault in data, not in the program
    """An annotation that can't be used; its text is the reason."""


class Annotation(Struct, frozen=True):
    """The content of one file.

    Args:
        label: its first ``<name>``, unchanged: a wnid, words such as "Scottish_deerhound", or a
            wnid with blanks around it; empty if there is none.
        boxes: in the file's order, relative to the image; the CSV rounds them.
        no_area: the number of boxes left out, with no area inside the image.
        ended_early: whether an xmin of exactly -1 ended the list, as in the original.
    """

    label: str
    boxes: tuple[Box, ...]
    no_area: int = 0
    ended_early: bool = False


def parse_annotation(content: bytes) -> Annotation:
    """Parse the boxes of one annotation file.

    Corners are integers relative to the ``<size>`` that the annotator saw: divided by it, put in
    order, cut to 0..1. Boxes without area are left out.

    Raises:
        AnnotationFault: not an annotation: no XML, a DOCTYPE, too large or too deep, no size, text
            for a number.
    """
    if len(content) > LARGEST:
        raise AnnotationFault(_UNUSUAL)
    pixels = _read_usual(content) or _read_any(content)
    boxes: list[Box] = []
    for number, row in enumerate(pixels.rows):
        if row[0] == -1:
            return Annotation(pixels.label, tuple(boxes), number - len(boxes), ended_early=True)
        box = _scale(*row, pixels.width, pixels.height)
        if box is not None:
            boxes.append(box)
    no_area = len(pixels.rows) - len(boxes)
    return Annotation(pixels.label, tuple(boxes), no_area, ended_early=False)


def _scale(x1: int, y1: int, x2: int, y2: int, width: int, height: int) -> Box | None:
    if 0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height:  # true for nearly all
        left, top, right, bottom = x1 / width, y1 / height, x2 / width, y2 / height
    else:
        left, right = sorted((_place(x1, width), _place(x2, width)))
        top, bottom = sorted((_place(y1, height), _place(y2, height)))
        if left == right or top == bottom:
            return None
    return Box(left, top, right, bottom)


def _place(pixel: int, side: int) -> float:
    return min(max(pixel / side, 0.0), 1.0)


class _InPixels(NamedTuple):
    """The content of a file in pixels: ``rows`` are xmin, ymin, xmax, ymax of its boxes, unchanged.

    A row whose xmin is -1 ends the list; its other corners don't count.
    """

    width: int
    height: int
    label: str
    rows: list[tuple[int, int, int, int]]


# the usual shape ----------------------------------------------------------------------------------

_WORDS = rb"[A-Za-z0-9_.% -]*"  # characters without a special meaning in XML
_INTEGER = rb"-?[0-9]{1,8}"


def _pattern(shape: bytes) -> re.Pattern[bytes]:
    """A pattern of tags, with optional blanks at each blank of ``shape``."""
    with_blanks = re.sub(rb"\s+", rb"[ \\t\\r\\n]*", shape)
    return re.compile(with_blanks % {b"words": _WORDS, b"int": _INTEGER})


_HEAD = rb"""<annotation>
    <folder>%(words)b</folder> <filename>%(words)b</filename>
    <source> <database>%(words)b</database> </source>
    <size> <width>([0-9]{1,9})</width> <height>([0-9]{1,9})</height> <depth>%(int)b</depth> </size>
    <segmented>%(int)b</segmented> """
_OBJECT = rb"""<object>
    <name>(%(words)b)</name> <pose>%(words)b</pose>
    <truncated>%(int)b</truncated> <difficult>%(int)b</difficult>
    <bndbox> <xmin>(%(int)b)</xmin> <ymin>(%(int)b)</ymin>
    <xmax>(%(int)b)</xmax> <ymax>(%(int)b)</ymax> </bndbox>
    </object> """
_END = rb"</annotation> "


@functools.cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns of a whole file, and of an object in it; compiled on first use."""
    any_object = b"(?:" + _OBJECT.replace(b">(", b">(?:") + b")*"
    return _pattern(_HEAD + any_object + _END), _pattern(_OBJECT)


def _read_usual(content: bytes) -> _InPixels | None:
    """The content of a file of the usual shape; None for any other, which may be valid too."""
    usual_file, usual_object = _patterns()
    head = usual_file.fullmatch(content)
    if head is None:
        return None
    width, height = int(head[1]), int(head[2])
    if not width or not height:
        return None
    objects = usual_object.findall(content, head.end(2))
    rows = [(int(x1), int(y1), int(x2), int(y2)) for _, x1, y1, x2, y2 in objects]
    return _InPixels(width, height, objects[0][0].decode() if objects else "", rows)


# any XML ------------------------------------------------------------------------------------------


_NUMBER = re.compile(f"[+-]?[0-9]{{1,{DIGITS}}}")


def _read_any(content: bytes) -> _InPixels:
    texts = _read_elements(content)
    width, height = _parse_side(texts, "width"), _parse_side(texts, "height")
    label = texts["name"][0] if texts["name"] else ""
    return _InPixels(width, height, label, list(_parse_rows(texts)))


def _parse_rows(texts: dict[str, list[str]]) -> Iterator[tuple[int, int, int, int]]:
    """Rows as the original read them: the nth xmin with the nth of the others,
    -1 for a missing one.
    """
    corners = zip_longest(*(texts[tag] for tag in _CORNER_TAGS), fillvalue="-1")
    for xmin_text, *corner_texts in islice(corners, len(texts["xmin"])):
        xmin = _parse_integer(xmin_text, "xmin")
        if xmin == -1:
            yield -1, -1, -1, -1
            return
        ymin, xmax, ymax = map(_parse_integer, corner_texts, _CORNER_TAGS[1:])
        yield xmin, ymin, xmax, ymax


def _parse_side(texts: dict[str, list[str]], tag: str) -> int:
    if not texts[tag]:
        raise AnnotationFault(f"<{tag}> is missing: expected the size of the image")
    side = _parse_integer(texts[tag][0], tag)
    if side < 1:
        raise AnnotationFault(f"<{tag}> is {side}: expected 1 or more")
    return side


def _parse_integer(text: str, tag: str) -> int:
    digits = text.strip()
    if not _NUMBER.fullmatch(digits):
        raise AnnotationFault(
            f"<{tag}> is {text[:40]!r}, not an integer of at most {DIGITS} digits"
        )
    return int(digits)


class _Reader:
    """Collects the text of the elements that matter, by tag, in the order of their start tags.

    An element's text ends at its first child, as in ElementTree.
    """

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {tag: [] for tag in _TAGS}
        self._depth = 0
        self._current: list[str] | None = None  # text that follows belongs to its last entry

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise AnnotationFault(_UNUSUAL)
        self._current = self.texts.get(tag)
        if self._current is not None:
            self._current.append("")

    def data(self, text: str) -> None:
        if self._current is not None:
            self._current[-1] += text

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._current = None


def _read_elements(content: bytes) -> dict[str, list[str]]:
    # Searched in the bytes: after a handler has raised, expat would still continue and expand.
    if has_doctype(content):
        raise AnnotationFault(_UNUSUAL)
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator="}")  # a tag in a namespace is a different tag
    parser.buffer_text = True
    parser.CharacterDataHandler = reader.data
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(content, True)
    except AnnotationFault:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:  # the last two: not a text codec
        raise AnnotationFault(f"it can't be read as XML: {error}") from error
    return reader.texts
