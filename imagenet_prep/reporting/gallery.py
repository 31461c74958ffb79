"""What the page says of images: the classes, the samples, the odd ones."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import Call
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Box
from imagenet_prep.reporting.census import BROKEN, FOUR, GREY, PNG, ROTATED, SHOWN_NAMES
from imagenet_prep.reporting.charts import TIMES, size_text
from imagenet_prep.reporting.samples import Sample
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import number_of

SHOWN_CLASSES = 2000
"""Rows of the table of classes."""

MOST_OBLONG = 2.5
"""Images more oblong than this, either way, leave some of their place in the grid empty."""

_ODD = {
    GREY: ("Grey", "one colour component; the record says RGB and 3 channels all the same, as in 2016"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width, height and boxes are those before turning"),
    FOUR: ("Four colour components", "CMYK or YCCK, not repaired: many decoders refuse it"),
    PNG: ("PNG", "not repaired: it is no JPEG, whatever its name says"),
    BROKEN: ("Not readable", "its header can't be read"),
}
_ODD_BY_RECIPE = {
    **_ODD,
    GREY: ("Grey", "one colour component; records of the Inception layout say RGB and 3 channels all the same"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width and height are those before turning"),
}


def classes(facts: Facts) -> list[tuple[int, str, list[int]]]:
    """Label, words, and images of each split: a row a class."""
    splits = [facts.census.splits[split] for split in facts.splits]
    labels = sorted(set().union(*(found.labels for found in splits)))
    words = facts.census.words
    return [(label, words.get(label, ""), [found.labels[label] for found in splits]) for label in labels]


@dataclass(frozen=True, slots=True)
class Tile:
    """A sample in the grid.

    ``number`` tells it from the others of the page, ``split`` is the number of its split. ``ratio`` is the image's
    width / height, ``shape`` that of its place; ``url`` is its thumbnail, "" if there is none; ``boxes`` are CSS.
    ``facts`` are for the large view: name, value, and whether the value is one to copy.
    """

    number: int
    split: int
    title: str
    filename: str
    details: str
    alt: str
    ratio: float
    shape: float
    url: str
    boxes: list[str]
    facts: list[tuple[str, str, bool]]

    @classmethod
    def of(cls, number: int, sample: Sample, facts: Facts) -> Tile:
        """A sample with the words of its class; in a set without classes there is no title."""
        ratio = sample.size[0] / sample.size[1]
        title = _class_text(sample, facts)
        filename = sample.filename or f"record {sample.number} of {sample.shard}"
        details = _details(sample, facts)
        parsed = parse_shard_name(sample.shard)
        assert parsed is not None, sample.shard
        return cls(
            number,
            facts.subject.splits.index(parsed[0]),
            title,
            filename,
            details,
            f"{title}: {filename}, {details}" if title else f"{filename}, {details}",
            ratio,
            min(MOST_OBLONG, max(1 / MOST_OBLONG, ratio)),
            f"data:image/jpeg;base64,{base64.b64encode(sample.thumbnail).decode()}" if sample.thumbnail else "",
            [_place(box) for box in sample.boxes],
            list(_told(sample, facts)),
        )


def _told(sample: Sample, facts: Facts) -> Iterator[tuple[str, str, bool]]:
    """All that there is to say of an image."""
    if sample.label is not None:
        yield "label", f"{sample.label:,}", False
    if sample.wnid:
        yield "WordNet id", sample.wnid, True
    if sample.filename:
        yield "file", sample.filename, True
    width, height = sample.size
    yield "image", f"{width:,} {TIMES} {height:,} pixels, {size_text(sample.file_size)}", False
    if facts.subject.has_boxes:
        yield (
            number_of(len(sample.boxes), "box", "boxes"),
            "; ".join(_corners(box, sample.size) for box in sample.boxes),
            False,
        )
    yield "record", f"number {sample.number:,} of {sample.shard}, from byte {sample.offset:,} on", False
    call = Call("show", Path(facts.name) / sample.shard, (("record", sample.number),))
    yield "to see it", facts.worded(call), True


def _corners(box: Box, size: tuple[int, int]) -> str:
    """A box by two corners, in pixels."""
    xmin, ymin, xmax, ymax = (
        round(edge * size[k % 2]) for k, edge in enumerate((box.xmin, box.ymin, box.xmax, box.ymax))
    )
    return f"({xmin:,}, {ymin:,}) to ({xmax:,}, {ymax:,})"


def _class_text(sample: Sample, facts: Facts) -> str:
    if sample.label is None:
        return "" if facts.subject.is_own else "no label"
    return facts.census.words.get(sample.label) or f"label {sample.label}"


def _details(sample: Sample, facts: Facts) -> str:
    size = f"{sample.size[0]} {TIMES} {sample.size[1]}"
    if not facts.subject.has_boxes:
        return size
    count = len(sample.boxes)
    return f"{size}, {'no box' if not count else '1 box' if count == 1 else f'{count:,} boxes'}"


def _place(box: Box) -> str:
    edges = (box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin)
    names = ("left", "top", "width", "height")
    return ";".join(f"{name}:{100 * edge:.4f}%" for name, edge in zip(names, edges, strict=True))


@dataclass(frozen=True, slots=True)
class OddRow:
    """Odd images of one kind: ``names`` are the first of ``count``."""

    title: str
    meaning: str
    count: int
    names: list[str]


def odd_images(facts: Facts) -> Iterator[OddRow]:
    """A row for each kind of odd image that there is."""
    for kind, (title, meaning) in (_ODD_BY_RECIPE if facts.subject.is_own else _ODD).items():
        odd = facts.census.odd.get(kind)
        if odd is not None:
            names = [name or f"record {number} of {shard}" for shard, number, name in odd.first]
            yield OddRow(title, meaning, odd.count, names)
    infos = facts.manifest.shards.values() if facts.manifest else ()
    changed = sorted(name for info in infos for name in info.repairs)
    turned = [name for name in changed if TURNED in count_changes([name])]
    repaired = [name for name in changed if not name.endswith(f" ({TURNED})")]
    if turned:
        meaning = "encoded again, and turned as the EXIF orientation asks: width and height are those after turning"
        yield OddRow("Turned upright", meaning, len(turned), turned[:SHOWN_NAMES])
    if repaired:
        meaning = "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG"
        yield OddRow("Repaired", meaning, len(repaired), repaired[:SHOWN_NAMES])
    set_aside = sorted(name for info in infos for name in info.set_aside)
    if set_aside:
        yield OddRow("Set aside", "damaged, and left out by skip_bad", len(set_aside), set_aside[:SHOWN_NAMES])
