"""The images that are shown: which, and their thumbnails. Making those is the work of one worker a shard."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from imagenet_prep.errors import InputError
from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError, read_header
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.png import is_png
from imagenet_prep.model import Box
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.census import Candidate, SplitCensus
from imagenet_prep.reporting.lenient import Naming, Shown, is_drawable, look
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import FramingError

_SMALL = Reencode(max_side=400, quality=75)  # sharp at the size of the page's grid on most screens

OTHER_SHARE = 4
"""One sample in so many is of another split than the largest, where there are several."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An image to show.

    ``size`` is the width and height of the image in pixels, ``boxes`` are relative to it, ``thumbnail`` is a JPEG, b""
    if the image does not decode, ``file_size`` is that of the image itself in bytes; ``shard``, ``number`` and
    ``offset`` say where the record is.
    """

    shard: str
    number: int
    offset: int
    filename: str
    label: int | None
    wnid: str
    size: tuple[int, int]
    file_size: int
    boxes: tuple[Box, ...]
    thumbnail: bytes


def choose(splits: Mapping[str, SplitCensus], count: int) -> list[Candidate]:
    """``count`` records of all splits, spread evenly over the classes; the same for the same records."""
    groups = {split: found.candidates for split, found in splits.items() if found.candidates}
    available = {split: sum(map(len, found.values())) for split, found in groups.items()}
    by_size = sorted(groups, key=lambda split: (-splits[split].records, split))
    share = count // OTHER_SHARE // max(1, len(groups) - 1)
    shares = {split: min(share, available[split]) for split in by_size[1:]}
    for split in by_size:  # the largest takes what the others leave, and they what it lacks
        rest = count - sum(shares.values())
        shares[split] = min(available[split], shares.get(split, 0) + rest)
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
    """Makes the thumbnails of single shards; picklable.

    ``numbers`` are those of the records by name of the shard; ``naming`` is that of a recipe's records.
    """

    layout: Layout
    numbers: Mapping[str, frozenset[int]]
    naming: Naming | None = None

    def __call__(self, name: str) -> list[Sample]:
        """The samples of one shard; a record that has become unreadable since the census is left out."""
        return list(self._take(name, max(self.numbers[name])))

    def _take(self, name: str, last: int) -> Iterator[Sample]:
        try:
            records = itertools.islice(Shard.open(self.layout.shard_path(name)).unchecked(), last + 1)
            for number, (offset, data) in enumerate(records):
                if number in self.numbers[name] and (seen := look(data, self.naming)) and seen.encoded is not None:
                    yield _sample((name, number, offset), seen, seen.encoded)
        except (FramingError, InputError):
            return


def _sample(place: tuple[str, int, int], seen: Shown, encoded: memoryview) -> Sample:
    thumbnail, size = b"", seen.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page says so
        thumbnail, size = _thumbnail(encoded)
    boxes = tuple(filter(is_drawable, seen.boxes))
    return Sample(*place, seen.filename, seen.label, seen.wnid, size, len(encoded), boxes, thumbnail)


def _thumbnail(encoded: memoryview) -> tuple[bytes, tuple[int, int]]:
    """A small JPEG of an image, and the image's own width and height in pixels."""
    if is_png(encoded) or (header := read_header(encoded)).components == 4:
        image = pixels.decode_rgb(encoded)
        size = image.size
        target = _SMALL.target(*size)
    else:
        size = header.width, header.height
        target = _SMALL.target(*size)
        image = pixels.decode_for(encoded, header.components, target)
    return pixels.encode(pixels.shrink(image, target), _SMALL.quality), size
