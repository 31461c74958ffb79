"""annotation: an image, and a quirk of the published annotations -> a Pascal VOC file and the lines
that are expected of it.

The files have the form of ILSVRC2012_bbox_train_v2.tar.gz, with every quirk of the real ones. The
expected boxes come from how each file is made, not from reading it, so they can test a reader.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.demo.photographs import Corners
from imagenet_prep.ilsvrc2012.facts import synsets, texts


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


class MadeAnnotation(Struct, frozen=True):
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


def annotation(
    name: str,
    wnid: str,
    size: tuple[int, int],
    quirk: Quirk = Quirk.NONE,
    seed: int = 1,
    boxes: tuple[Corners, ...] = (),
) -> MadeAnnotation:
    """Make an annotation for the image ``name`` of ``size`` pixels, at least 4 each way:
    ``boxes``, or one to three.
    """
    boxes = boxes or _random_boxes(random.Random(f"boxes {seed} {name}"), size, quirk)
    plain = _Draft(name, wnid, size, size, (wnid,) * len(boxes), boxes, boxes)
    draft = _CHANGES[quirk](plain)
    xml = _xml(draft)
    if quirk is Quirk.BROKEN:
        xml = xml[: len(xml) * 2 // 3]
    lines = tuple(_line(name, box, size) for box in draft.kept)
    return MadeAnnotation(name, wnid, quirk, xml, lines, draft.skipped)


def boxes_csv(annotations: Iterable[MadeAnnotation]) -> bytes:
    """The whole expected CSV, its lines sorted by byte value."""
    lines = [f"{line}\n".encode() for made in annotations for line in made.lines]
    return b"".join(sorted(lines))


class _Draft(Struct, frozen=True):
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
    """A point in the upper left quarter (half 0) or in the lower right one (1),
    so that a box has area.
    """
    x, y = (rng.randrange(length // 2) + half * (length // 2 + 1) for length in size)
    return min(x, size[0]), min(y, size[1])


def _line(name: str, box: Corners, size: tuple[int, int]) -> str:
    """A line of the CSV: the name, and the corners as shares of width and height."""
    shares = [f"{edge / side:.4f}" for edge, side in zip(box, size * 2, strict=True)]
    return ",".join((f"{name}.JPEG", *shares))


def _xml(draft: _Draft) -> bytes:
    root = Element("annotation")
    _add_texts(root, folder=draft.wnid, filename=draft.filename)
    _add_texts(SubElement(root, "source"), database="ILSVRC_2012")
    if draft.stated:
        width, height = draft.stated
        _add_texts(SubElement(root, "size"), width=width, height=height, depth=3)
    _add_texts(root, segmented=0)
    for name, (xmin, ymin, xmax, ymax) in zip(draft.names, draft.boxes, strict=True):
        thing = SubElement(root, "object")
        _add_texts(thing, name=name, pose="Unspecified", truncated=0, difficult=0)
        _add_texts(SubElement(thing, "bndbox"), xmin=xmin, ymin=ymin, xmax=xmax, ymax=ymax)
    ElementTree.indent(root, "\t")
    return f"{ElementTree.tostring(root, 'unicode')}\n".encode()


def _add_texts(parent: Element, **texts: object) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = str(text)


# the quirks ---------------------------------------------------------------------------------------


def _other_size(draft: _Draft) -> _Draft:
    """The annotator saw the image twice as large."""
    boxes = tuple(
        (2 * xmin, 2 * ymin, 2 * xmax, 2 * ymax) for xmin, ymin, xmax, ymax in draft.boxes
    )
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
    return replace(
        draft, names=(draft.wnid, draft.wnid, *draft.names), boxes=(*empty, *draft.boxes), skipped=2
    )


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
    wrong_names = [_another(draft.wnid)] * (len(draft.names) - 1)
    return replace(draft, names=(draft.wnid, *wrong_names))


def _minus_one(draft: _Draft) -> _Draft:
    """The second box starts at -1: it and all later ones are ignored."""
    first_box, *later_boxes = draft.boxes
    minus_one = (-1, *later_boxes[0][1:])
    return replace(
        draft,
        names=(draft.wnid, *draft.names),
        boxes=(first_box, minus_one, *later_boxes),
        kept=(first_box,),
    )


def _another(wnid: str) -> str:
    """The class 500 further on."""
    number = synsets().index(wnid)
    return synsets()[(number + 500) % len(synsets())]


_CHANGES: dict[Quirk, Callable[[_Draft], _Draft]] = {
    Quirk.NONE: lambda draft: draft,
    Quirk.PERCENT_NAME: lambda draft: replace(draft, filename="%s"),
    Quirk.OTHER_SIZE: _other_size,
    Quirk.SWAPPED: lambda draft: replace(
        draft, boxes=tuple((*box[2:], *box[:2]) for box in draft.boxes)
    ),
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
