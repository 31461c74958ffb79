"""The images that are shown: which, and their thumbnails. Making those is the work of one worker a shard."""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.errors import InputError
from imagenet_prep.formats import pixels
from imagenet_prep.formats.jpeg import PNG_SIGNATURE, ImageError, read_header
from imagenet_prep.formats.pixels import Reencode
from imagenet_prep.formats.tfrecord import FramingError
from imagenet_prep.layout import Layout
from imagenet_prep.model import Box
from imagenet_prep.reporting.census import Candidate, SplitCensus
from imagenet_prep.reporting.reading import Seen, is_drawable, iter_data, look
from imagenet_prep.sources.reader import map_file

_SMALL = Reencode(max_side=400, quality=75)  # sharp at the size of the page's grid on most screens

VALIDATION_SHARE = 4
"""One sample in so many is a validation image, where there are both."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An image to show.

    ``size`` is the width and height of the image in pixels, ``boxes`` are relative to it, ``thumbnail`` is a JPEG, b""
    if the image does not decode; ``shard`` and ``number`` say where the record is.
    """

    shard: str
    number: int
    filename: str
    label: int | None
    size: tuple[int, int]
    boxes: tuple[Box, ...]
    thumbnail: bytes


def choose(splits: Mapping[str, SplitCensus], count: int) -> list[Candidate]:
    """``count`` records of all splits, spread evenly over the classes; the same for the same records."""
    groups = {split: found.candidates for split, found in splits.items() if found.candidates}
    shares = dict.fromkeys(groups, count)
    if len(groups) > 1:
        validation = min(count // VALIDATION_SHARE, sum(map(len, groups["validation"].values())))
        shares = {"train": count - validation, "validation": validation}
    return [each for split, found in groups.items() for each in _spread(found, shares[split])]


def _spread(candidates: Mapping[int | None, Sequence[Candidate]], count: int) -> list[Candidate]:
    """Turn by turn the next of every class; a turn that can't go round takes classes at even distances."""
    classes = [sorted(candidates[label]) for label in sorted(candidates, key=lambda each: (each is None, each or 0))]
    chosen: list[Candidate] = []
    for turn in itertools.zip_longest(*classes):
        found = [each for each in turn if each is not None]
        rest = count - len(chosen)
        if rest < len(found):
            return chosen + [found[(2 * k + 1) * len(found) // (2 * rest)] for k in range(rest)]
        chosen += found
    return chosen


@dataclass(frozen=True, slots=True)
class TakeSamples:
    """Makes the thumbnails of single shards; picklable. ``numbers`` are those of the records by name of the shard."""

    layout: Layout
    numbers: Mapping[str, frozenset[int]]

    def __call__(self, name: str) -> list[Sample]:
        """The samples of one shard; a record that has become unreadable since the census is left out."""
        return list(self._take(name, heapq.nlargest(1, self.numbers[name])[0]))

    def _take(self, name: str, last: int) -> Iterator[Sample]:
        try:
            records = itertools.islice(iter_data(map_file(self.layout.shard_path(name))), last + 1)
            for number, (_, data) in enumerate(records):
                if number in self.numbers[name] and (seen := look(data)) and seen.encoded is not None:
                    yield _sample(name, number, seen, seen.encoded)
        except (FramingError, InputError):
            return


def _sample(shard: str, number: int, seen: Seen, encoded: memoryview) -> Sample:
    thumbnail, size = b"", seen.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page says so
        thumbnail, size = _thumbnail(encoded)
    boxes = tuple(filter(is_drawable, seen.boxes))
    return Sample(shard, number, seen.filename, seen.label, size, boxes, thumbnail)


def _thumbnail(encoded: memoryview) -> tuple[bytes, tuple[int, int]]:
    """A small JPEG of an image, and the image's own width and height in pixels."""
    if bytes(encoded[:8]) == PNG_SIGNATURE or (header := read_header(encoded)).components == 4:
        image = pixels.decode_rgb(encoded)
        size = image.size
        target = _SMALL.target(*size)
    else:
        size = header.width, header.height
        target = _SMALL.target(*size)
        image = pixels.decode_for(encoded, header.components, target)
    return pixels.encode(pixels.shrink(image, target), _SMALL.quality), size
