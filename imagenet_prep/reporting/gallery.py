"""The images of the page: the samples and the odd ones, each a tile in a grid that can be enlarged."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import Call, Text
from imagenet_prep.model import Box
from imagenet_prep.reporting.charts import TIMES
from imagenet_prep.reporting.odd import OddRow, odd_images
from imagenet_prep.reporting.samples import Sample
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import number_of, size_text


@dataclass(frozen=True, slots=True)
class ShownSet:
    """The set that images are of: the name of its folder, what is in it, words of its classes, names of stages."""

    name: str
    subject: Subject
    words: Mapping[int, str]
    worded: Callable[[Text], str] = str

    @classmethod
    def of(cls, facts: Facts) -> ShownSet:
        """That of a page about one set."""
        return cls(facts.name, facts.subject, facts.census.words, facts.worded)


MOST_OBLONG = 2.5
"""Images more oblong than this, either way, leave some of their place in the grid empty."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A sample in the grid.

    ``number`` tells it from the others of the page, ``split`` is the number of its split. ``ratio`` is the image's
    width / height, ``shape`` that of its place; ``url`` is its thumbnail, "" if there is none; ``boxes`` are CSS.
    ``facts`` are for the large view: name, value, and whether the value is one to copy; ``reason`` tells why it is
    shown.
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
    reason: str

    @classmethod
    def of(cls, number: int, sample: Sample, shown: ShownSet, reason: str = "") -> Tile:
        """A sample with the words of its class; in a set without classes there is no title."""
        ratio = sample.size[0] / sample.size[1]
        title = _class_text(sample, shown)
        filename = sample.filename or f"record {sample.number} of {sample.shard}"
        details = _details(sample, shown)
        parsed = parse_shard_name(sample.shard)
        assert parsed is not None, sample.shard
        return cls(
            number,
            shown.subject.splits.index(parsed[0]),
            title,
            filename,
            details,
            f"{title}: {filename}, {details}" if title else f"{filename}, {details}",
            ratio,
            min(MOST_OBLONG, max(1 / MOST_OBLONG, ratio)),
            f"data:image/jpeg;base64,{base64.b64encode(sample.thumbnail).decode()}" if sample.thumbnail else "",
            [_place(box) for box in sample.boxes],
            list(_told(sample, shown)),
            reason,
        )


def _told(sample: Sample, shown: ShownSet) -> Iterator[tuple[str, str, bool]]:
    """All that there is to say of an image."""
    if sample.label is not None:
        yield "label", f"{sample.label:,}", False
    if sample.wnid:
        yield "WordNet id", sample.wnid, True
    if sample.filename:
        yield "file", sample.filename, True
    width, height = sample.size
    yield "image", f"{width:,} {TIMES} {height:,} pixels, {size_text(sample.file_size)}", False
    if shown.subject.has_boxes:
        yield (
            number_of(len(sample.boxes), "box", "boxes"),
            "; ".join(_corners(box, sample.size) for box in sample.boxes),
            False,
        )
    yield "record", f"number {sample.number:,} of {sample.shard}, from byte {sample.offset:,} on", False
    call = Call("show", Path(shown.name) / sample.shard, (("record", sample.number),))
    yield "to see it", shown.worded(call), True


def _corners(box: Box, size: tuple[int, int]) -> str:
    """A box by two corners, in pixels."""
    xmin, ymin, xmax, ymax = (
        round(edge * size[k % 2]) for k, edge in enumerate((box.xmin, box.ymin, box.xmax, box.ymax))
    )
    return f"({xmin:,}, {ymin:,}) to ({xmax:,}, {ymax:,})"


def _class_text(sample: Sample, shown: ShownSet) -> str:
    if sample.label is None:
        return "" if shown.subject.is_own else "no label"
    return shown.words.get(sample.label) or f"label {sample.label}"


def _details(sample: Sample, shown: ShownSet) -> str:
    size = f"{sample.size[0]} {TIMES} {sample.size[1]}"
    if not shown.subject.has_boxes:
        return size
    count = len(sample.boxes)
    return f"{size}, {'no box' if not count else '1 box' if count == 1 else f'{count:,} boxes'}"


def _place(box: Box) -> str:
    edges = (box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin)
    names = ("left", "top", "width", "height")
    return ";".join(f"{name}:{100 * edge:.4f}%" for name, edge in zip(names, edges, strict=True))


@dataclass(frozen=True, slots=True)
class OddGroup:
    """Odd images of one kind: tiles of some, names of others."""

    row: OddRow
    tiles: list[Tile]


def odd_groups(facts: Facts, after: int) -> list[OddGroup]:
    """The odd images, with pictures that are numbered from the one ``after`` which the others end."""
    numbers, shown = itertools.count(after + 1), ShownSet.of(facts)
    return [
        OddGroup(
            row,
            [
                Tile.of(next(numbers), facts.odd_samples[place], shown, reason)
                for place, reason in row.places
                if place in facts.odd_samples
            ],
        )
        for row in odd_images(facts)
    ]
