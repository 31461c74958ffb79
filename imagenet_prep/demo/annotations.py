"""annotation and samples: bounding box annotations with every quirk of the real ones, and the boxes expected of them.

The files have the form of ILSVRC2012_bbox_train_v2.tar.gz (Pascal VOC). The expected boxes come from how each file is
made, not from reading it, so they can test a reader.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from imagenet_prep.ilsvrc2012.facts import synsets, texts

Corners = tuple[int, int, int, int]
"""xmin, ymin, xmax, ymax in pixels."""


class Quirk(str, enum.Enum):
    """The quirk of an annotation."""

    NONE = "none"
    PERCENT_NAME = "percent-name"
    OTHER_SIZE = "other-size"
    SWAPPED = "swapped"
    BEYOND = "beyond"
    NO_AREA = "no-area"
    BREED_NAME = "breed-name"
    OTHER_CLASS = "other-class"
    FIRST_NAME = "first-name"
    MINUS_ONE = "minus-one"
    ZERO_SIZE = "zero-size"
    NO_SIZE = "no-size"
    BROKEN = "broken"


QUIRKS = tuple(quirk for quirk in Quirk if quirk is not Quirk.NONE)
PAIRED = (Quirk.FIRST_NAME, Quirk.OTHER_CLASS, Quirk.MINUS_ONE)
"""Quirks that require two boxes or more."""

BAD_QUIRKS = frozenset((Quirk.ZERO_SIZE, Quirk.NO_SIZE, Quirk.BROKEN))
"""Quirks that make a file a Problem."""


@dataclass(frozen=True, slots=True)
class MadeAnnotation:
    """One annotation file and its expected result.

    Args:
        name: the image's name without ".JPEG" and the file's without ".xml".
        wnid: the image's class.
        quirk: its quirk.
        xml: the file's bytes.
        lines: the lines, without newline, that it must add to the boxes CSV.
        skipped: the number of boxes to leave out (boxes after an xmin of -1 don't exist).
    """

    name: str
    wnid: str
    quirk: Quirk
    xml: bytes
    lines: tuple[str, ...]
    skipped: int

    @property
    def bad(self) -> bool:
        """Whether the file must be reported as a Problem."""
        return self.quirk in BAD_QUIRKS


def annotation(
    name: str,
    wnid: str,
    size: tuple[int, int],
    quirk: Quirk = Quirk.NONE,
    seed: int = 1,
    boxes: tuple[Corners, ...] = (),
) -> MadeAnnotation:
    """Make an annotation for the image ``name`` of ``size`` pixels, at least 4 each way: ``boxes``, or one to three."""
    boxes = boxes or _random_boxes(random.Random(f"boxes {seed} {name}"), size, quirk)
    draft = _CHANGES[quirk](_Draft(name, wnid, size, size, (wnid,) * len(boxes), boxes, boxes))
    xml = _xml(draft)
    if quirk is Quirk.BROKEN:
        xml = xml[: len(xml) * 2 // 3]
    return MadeAnnotation(name, wnid, quirk, xml, tuple(_line(name, box, size) for box in draft.kept), draft.skipped)


def boxes_csv(annotations: Iterable[MadeAnnotation]) -> bytes:
    """The whole expected CSV, its lines sorted by byte value."""
    return b"".join(sorted(f"{line}\n".encode() for each in annotations for line in each.lines))


# how a file is made: a plain draft, a quirk, the text -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Draft:
    """The values to write; ``stated`` is the size in the file.

    ``kept`` are the expected boxes, in pixels of the real size.
    """

    filename: str
    wnid: str
    size: tuple[int, int]
    stated: tuple[int, int] | None
    names: tuple[str, ...]
    boxes: tuple[Corners, ...]
    kept: tuple[Corners, ...]
    skipped: int = 0


def _random_boxes(rng: random.Random, size: tuple[int, int], quirk: Quirk) -> tuple[Corners, ...]:
    count = 2 if quirk in PAIRED else rng.choice((1, 1, 1, 2, 3))
    return tuple((*_corner(rng, size, 0), *_corner(rng, size, 1)) for _ in range(count))


def _corner(rng: random.Random, size: tuple[int, int], half: int) -> tuple[int, int]:
    """A point in the upper left quarter (half 0) or in the lower right one (1), so that a box has area."""
    x, y = (rng.randrange(length // 2) + half * (length // 2 + 1) for length in size)
    return min(x, size[0]), min(y, size[1])


def _line(name: str, box: Corners, size: tuple[int, int]) -> str:
    return ",".join((f"{name}.JPEG", *(f"{edge / side:.4f}" for edge, side in zip(box, size * 2, strict=True))))


def _xml(draft: _Draft) -> bytes:
    root = Element("annotation")
    _add(root, folder=draft.wnid, filename=draft.filename)
    _add(SubElement(root, "source"), database="ILSVRC_2012")
    if draft.stated:
        _add(SubElement(root, "size"), width=draft.stated[0], height=draft.stated[1], depth=3)
    _add(root, segmented=0)
    for name, corners in zip(draft.names, draft.boxes, strict=True):
        thing = SubElement(root, "object")
        _add(thing, name=name, pose="Unspecified", truncated=0, difficult=0)
        _add(SubElement(thing, "bndbox"), **dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)))
    ElementTree.indent(root, "\t")
    return f"{ElementTree.tostring(root, 'unicode')}\n".encode()


def _add(parent: Element, **texts: object) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = str(text)


# the quirks ------------------------------------------------------------------------------------------------------


def _other_size(draft: _Draft) -> _Draft:
    """The annotator saw the image twice as large."""
    boxes = tuple((2 * xmin, 2 * ymin, 2 * xmax, 2 * ymax) for xmin, ymin, xmax, ymax in draft.boxes)
    return replace(draft, stated=(2 * draft.size[0], 2 * draft.size[1]), boxes=boxes)


def _beyond(draft: _Draft) -> _Draft:
    """The first box exceeds all four edges; clamped, it is the whole image."""
    width, height = draft.size
    stretched = ((-7, -3, width + 40, height + 25), *draft.boxes[1:])
    return replace(draft, boxes=stretched, kept=((0, 0, width, height), *draft.kept[1:]))


def _no_area(draft: _Draft) -> _Draft:
    """A box without width, and one outside of the image, which has no area after clamping."""
    width, height = draft.size
    empty = ((width // 2, 1, width // 2, height - 1), (width + 3, 1, width + 30, height - 1))
    return replace(draft, names=(draft.wnid, draft.wnid, *draft.names), boxes=(*empty, *draft.boxes), skipped=2)


def _breed_name(draft: _Draft) -> _Draft:
    """The words of the class in place of its wnid: Scottish_deerhound."""
    breed = texts()[draft.wnid].partition(",")[0].replace(" ", "_")
    return replace(draft, names=(breed,) * len(draft.boxes))


def _other_class(draft: _Draft) -> _Draft:
    """The first name is another class: every box goes, including one with the right name."""
    names = (_another(draft.wnid), *draft.names[1:])
    return replace(draft, names=names, kept=(), skipped=len(draft.boxes))


def _first_name(draft: _Draft) -> _Draft:
    """The first name is right: every box stays, including one with another name."""
    return replace(draft, names=(draft.wnid, *(_another(draft.wnid) for _ in draft.names[1:])))


def _minus_one(draft: _Draft) -> _Draft:
    """The second box starts at -1: it and all later ones are ignored."""
    first, *others = draft.boxes
    boxes = (first, (-1, *others[0][1:]), *others)
    return replace(draft, names=(draft.wnid, *draft.names), boxes=boxes, kept=(first,))


def _another(wnid: str) -> str:
    """The class 500 further on."""
    return synsets()[(synsets().index(wnid) + 500) % len(synsets())]


_CHANGES: dict[Quirk, Callable[[_Draft], _Draft]] = {
    Quirk.NONE: lambda draft: draft,
    Quirk.PERCENT_NAME: lambda draft: replace(draft, filename="%s"),
    Quirk.OTHER_SIZE: _other_size,
    Quirk.SWAPPED: lambda draft: replace(draft, boxes=tuple((*box[2:], *box[:2]) for box in draft.boxes)),
    Quirk.BEYOND: _beyond,
    Quirk.NO_AREA: _no_area,
    Quirk.BREED_NAME: _breed_name,
    Quirk.OTHER_CLASS: _other_class,
    Quirk.FIRST_NAME: _first_name,
    Quirk.MINUS_ONE: _minus_one,
    Quirk.ZERO_SIZE: lambda draft: replace(draft, stated=(0, 0), kept=()),
    Quirk.NO_SIZE: lambda draft: replace(draft, stated=None, kept=()),
    Quirk.BROKEN: lambda draft: replace(draft, kept=()),
}
