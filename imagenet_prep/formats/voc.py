"""ImageNet's annotation XML (PASCAL VOC's form) -> boxes, by the rules of the original process_bounding_boxes.py.

expat is called directly: it is three times as fast as ElementTree, which matters for half a million files, and it
leaves what to refuse to us. No document type declaration gets as far as the parser, and entities can only be declared
in one, so there is nothing to expand (what the defusedxml package would see to).
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.parsers import expat

from imagenet_prep.model import Box

LARGEST = 1 << 20
"""Bytes in the largest annotation that is read; real ones have about a thousand."""

DEPTH = 20
"""Elements within elements; real annotations have four."""

DECIMALS = 4
"""Of every coordinate, as in the original's CSV."""

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_TAGS = ("width", "height", "name", *_CORNERS)


class AnnotationFault(ValueError):  # noqa: N818 - the data is at fault, no error of the program
    """An annotation that can't be used; its text says why."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one file says.

    Args:
        label: its first ``<name>``: a wnid, or words such as "Scottish_deerhound"; empty if there is none.
        boxes: in the file's order, corners rounded to DECIMALS.
        no_area: boxes left out because nothing of them is within the image.
        ended_early: whether an xmin of exactly -1 ended the list, as it did in the original.
    """

    label: str
    boxes: tuple[Box, ...]
    no_area: int = 0
    ended_early: bool = False


def parse_annotation(content: bytes) -> Annotation:
    """The boxes of one annotation file.

    Corners are integers relative to the ``<size>`` that the annotator was shown: divided by it, put in order, cut to
    0..1. A box without area (at DECIMALS, so that none comes out empty) is left out.

    Raises:
        AnnotationFault: not an annotation: no XML, a DOCTYPE, too large or too deep, no size, text for a number.
    """
    values = _read(content)
    width, height = _parse_side(values, "width"), _parse_side(values, "height")
    corners = [[_parse_integer(text, tag) for text in values[tag]] for tag in _CORNERS]
    if len({len(column) for column in corners}) != 1:
        counts = ", ".join(f"{len(column)} {tag}" for tag, column in zip(_CORNERS, corners, strict=True))
        raise AnnotationFault(f"boxes lack corners: {counts}")
    ended_early = -1 in corners[0]
    rows = list(zip(*corners, strict=True))[: corners[0].index(-1) if ended_early else None]
    boxes = tuple(box for x1, y1, x2, y2 in rows if (box := _scale(x1, y1, x2, y2, width, height)) is not None)
    label = values["name"][0].strip() if values["name"] else ""
    return Annotation(label, boxes, len(rows) - len(boxes), ended_early)


def _scale(x1: int, y1: int, x2: int, y2: int, width: int, height: int) -> Box | None:
    xmin, xmax = sorted((_place(x1, width), _place(x2, width)))
    ymin, ymax = sorted((_place(y1, height), _place(y2, height)))
    return Box(xmin, ymin, xmax, ymax) if xmin < xmax and ymin < ymax else None


def _place(pixel: int, side: int) -> float:
    return round(min(max(pixel / side, 0.0), 1.0), DECIMALS)


def _parse_side(values: dict[str, list[str]], tag: str) -> int:
    if not values[tag]:
        raise AnnotationFault(f"no size: <{tag}> is missing")
    side = _parse_integer(values[tag][0], tag)
    if side < 1:
        raise AnnotationFault(f"a size of {side} in <{tag}>")
    return side


def _parse_integer(text: str, tag: str) -> int:
    digits = text.strip()
    if len(digits) > 9 or not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise AnnotationFault(f"<{tag}> is {text[:40]!r}, not an integer")
    return int(digits)


class _Reader:
    """Collects the text of the elements that matter, by tag, in document order."""

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {tag: [] for tag in _TAGS}
        self._depth = 0
        self._text = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise AnnotationFault(f"more than {DEPTH} elements within each other")
        self._text = ""

    def data(self, text: str) -> None:
        self._text += text

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag in self.values:
            self.values[tag].append(self._text)
        self._text = ""


def _read(content: bytes) -> dict[str, list[str]]:
    if len(content) > LARGEST:
        raise AnnotationFault(f"larger than {LARGEST:,} bytes")
    # Looked for in the bytes: after a handler has raised, expat would still go on and expand. Every encoding that is
    # not a superset of ASCII, and could hide the word, has NUL bytes or is refused by expat.
    if b"<!DOCTYPE" in content:
        raise AnnotationFault("a document type declaration, which annotations don't have")
    if b"\0" in content:
        raise AnnotationFault("bytes of zero: not UTF-8 text")
    reader = _Reader()
    parser = expat.ParserCreate()
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
