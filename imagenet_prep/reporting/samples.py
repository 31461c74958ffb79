"""The images that are shown: which, and their thumbnails. Making those is the work of one worker a shard."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


class Form(NamedTuple):
    """How an image is shown: the longer side in pixels, the format, its quality."""

    max_side: int
    format: Literal["jpeg", "webp"]
    quality: int


SAMPLE = Form(max_side=400, format="jpeg", quality=75)
"""Sharp at the size of the page's grid on most screens."""

ODD = Form(max_side=240, format="jpeg", quality=75)

OF_A_CLASS = 3
"""Images of each class that are shown beside its name."""

SHOWN_CLASSES = 2000
"""Classes, by label, that the page lists, and shows images of."""

_CLASS_BYTES, _MOST_BYTES_A_PIXEL = 3_000_000, 0.15
"""Of all of these together, and of one by its longer side squared: photographs have about as many."""

OTHER_SHARE = 4
"""One sample in so many is of another split than the largest, where there are several."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An image to show.

    ``size`` is the width and height of the image in pixels, ``boxes`` are relative to it, ``thumbnail`` is a JPEG, b""
    if the image does not decode, ``file_size`` is that of the image itself in bytes; ``shard``, ``number`` and
    ``offset`` say where the record is, ``form`` how it is shown.
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
    form: Form
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


def choose_of_classes(splits: Mapping[str, SplitCensus]) -> dict[int, list[Candidate]]:
    """OF_A_CLASS records of each class listed, by label: turn by turn one of each split, the largest split first."""
    by_size = sorted(splits, key=lambda split: (-splits[split].records, split))
    chosen = {}
    labels = sorted({label for found in splits.values() for label in found.candidates if label is not None})
    for label in labels[:SHOWN_CLASSES]:
        turns = itertools.zip_longest(*(sorted(splits[split].candidates.get(label, ())) for split in by_size))
        found = (each for turn in turns for each in turn if each is not None)
        chosen[label] = list(itertools.islice(found, OF_A_CLASS))
    return chosen


def form_of_classes(classes: int) -> Form:
    """How images of so many classes are shown: the smaller the more there are, so that the page stays small."""
    side = math.isqrt(int(_CLASS_BYTES / _MOST_BYTES_A_PIXEL / OF_A_CLASS / max(1, classes)))
    return Form(min(240, side), "webp", 60)


def within_limit(pictures: Mapping[int, Sequence[Sample]]) -> dict[int, list[Sample]]:
    """As many of the images of each class as the page has room for: the first of every class, the second, ..."""
    kept: dict[int, list[Sample]] = {label: [] for label in pictures}
    room = _CLASS_BYTES
    for number in range(OF_A_CLASS):
        for label, found in pictures.items():
            room -= len(found[number].thumbnail) if number < len(found) else 0
            kept[label] += found[number : number + 1] if room >= 0 else []
    return kept


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

    ``forms`` are those wanted of each record, by name of the shard and its number there; ``naming`` is that of a
    recipe's records.
    """

    layout: Layout
    forms: Mapping[str, Mapping[int, frozenset[Form]]]
    naming: Naming | None = None

    def __call__(self, name: str) -> list[Sample]:
        """The samples of one shard; a record that has become unreadable since the census is left out."""
        return list(self._take(name, self.forms[name]))

    def _take(self, name: str, forms: Mapping[int, frozenset[Form]]) -> Iterator[Sample]:
        last = max(forms)
        try:
            records = itertools.islice(Shard.open(self.layout.shard_path(name)).unchecked(), last + 1)
            for number, (offset, data) in enumerate(records):
                if number in forms and (seen := look(data, self.naming)) and seen.encoded is not None:
                    for form in sorted(forms[number]):
                        yield _sample((name, number, offset), seen, seen.encoded, form)
        except (FramingError, InputError):
            return


def _sample(place: tuple[str, int, int], seen: Shown, encoded: memoryview, form: Form) -> Sample:
    thumbnail, size = b"", seen.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page says so
        thumbnail, size = _thumbnail(encoded, form)
    boxes = tuple(filter(is_drawable, seen.boxes))
    return Sample(*place, seen.filename, seen.label, seen.wnid, size, len(encoded), boxes, form, thumbnail)


def _thumbnail(encoded: memoryview, form: Form) -> tuple[bytes, tuple[int, int]]:
    """An image, small, and its own width and height in pixels."""
    small = Reencode(max_side=form.max_side)
    if is_png(encoded) or (header := read_header(encoded)).components == 4:
        image = pixels.decode_rgb(encoded)
        size = image.size
        target = small.target(*size)
    else:
        size = header.width, header.height
        target = small.target(*size)
        image = pixels.decode_for(encoded, header.components, target)
    encode = pixels.encode if form.format == "jpeg" else pixels.encode_webp
    return encode(pixels.shrink(image, target), form.quality), size
