"""choose and take_samples: the images to show, with thumbnails. find_copies: duplicates of an image.

One worker per shard makes thumbnails and digests.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Box, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.census import Candidate, SplitCensus, each_shard
from imagenet_prep.reporting.lenient import Names, Shown, is_drawable, look
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import FramingError

Place = tuple[str, int]
"""Shard and number of a record."""


class Form(NamedTuple):
    """The form of a shown image: the longer side in pixels, the format, its quality."""

    max_side: int
    format: Literal["jpeg", "webp"]
    quality: int


SAMPLE = Form(max_side=400, format="jpeg", quality=75)
"""Sharp at the size of the page's grid on most screens."""

ODD = Form(max_side=240, format="jpeg", quality=75)

OF_A_CLASS = 3
"""Images of each class that are shown next to its name."""

SHOWN_CLASSES = 2000
"""Classes, by label, that the page lists and shows images of."""

_CLASS_BYTES, _MOST_BYTES_A_PIXEL = 3_000_000, 0.15
"""Bytes of all thumbnails together, and of one per squared longer side: a photograph has about as many."""

OTHER_SHARE = 4
"""One of this many samples comes from another split than the largest, if there are several."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An image to show.

    ``size`` is the width and height of the image in pixels, and ``boxes`` are relative to it. ``thumbnail`` is a JPEG,
    or b"" if the image can't be decoded. ``file_size`` is that of the image itself in bytes. ``shard``, ``number`` and
    ``offset`` locate the record, ``form`` is how it is shown.
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
    groups = {split: splits[split].candidates for split in _by_size(splits) if splits[split].candidates}
    available = {split: sum(map(len, found.values())) for split, found in groups.items()}
    share = count // OTHER_SHARE // max(1, len(groups) - 1)
    shares = {split: min(share, available[split]) for split in list(groups)[1:]}
    for split in groups:  # the largest fills what the others lack, and the reverse
        rest = count - sum(shares.values())
        shares[split] = min(available[split], shares.get(split, 0) + rest)
    return [each for split, found in groups.items() for each in _spread(found, shares[split])]


def choose_of_classes(splits: Mapping[str, SplitCensus]) -> dict[int, list[Candidate]]:
    """OF_A_CLASS records of each listed class, by label: one of each split in turn, the largest split first."""
    found = [splits[split].candidates for split in _by_size(splits)]
    labels = sorted({label for own in found for label in own if label is not None})
    return {
        label: list(itertools.chain(*_turns(own.get(label, ()) for own in found)))[:OF_A_CLASS]
        for label in labels[:SHOWN_CLASSES]
    }


def _by_size(splits: Mapping[str, SplitCensus]) -> list[str]:
    return sorted(splits, key=lambda split: (-splits[split].records, split))


def _turns(groups: Iterable[Sequence[Candidate]]) -> Iterator[list[Candidate]]:
    """The best candidate of every group, then the second of each, and so on."""
    for turn in itertools.zip_longest(*map(sorted, groups)):
        yield [each for each in turn if each is not None]


def form_of_classes(classes: int) -> Form:
    """The form of images for this many classes: smaller with more classes, so that the page stays small."""
    side = math.isqrt(int(_CLASS_BYTES / _MOST_BYTES_A_PIXEL / OF_A_CLASS / max(1, classes)))
    return Form(min(240, side), "webp", 60)


def within_limit(samples: Iterable[Sample]) -> dict[int, list[Sample]]:
    """As many images of each class as fit on the page: the first of every class, then the second, and so on."""
    pictures: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.label is not None:
            pictures[sample.label].append(sample)
    kept: dict[int, list[Sample]] = {label: [] for label in pictures}
    room = _CLASS_BYTES
    for number in range(OF_A_CLASS):
        for label, found in pictures.items():
            room -= len(found[number].thumbnail) if number < len(found) else 0
            kept[label] += found[number : number + 1] if room >= 0 else []
    return kept


def _spread(candidates: Mapping[int | None, Sequence[Candidate]], count: int) -> list[Candidate]:
    """The next candidate of every class, in turn; a last, partial turn uses classes at even distances."""
    labels = sorted(candidates, key=lambda each: (each is None, each or 0))
    chosen: list[Candidate] = []
    for found in _turns(candidates[label] for label in labels):
        rest = count - len(chosen)
        if rest < len(found):
            return chosen + [found[(2 * k + 1) * len(found) // (2 * rest)] for k in range(rest)]
        chosen += found
    return chosen


def take_samples(
    layout: Layout, engine: Engine, wanted: Mapping[Form, Iterable[Place]], names: Names | None, progress: Progress
) -> list[Sample]:
    """The requested images in each form, by shard and number of their records."""
    forms: defaultdict[str, defaultdict[int, set[Form]]] = defaultdict(lambda: defaultdict(set))
    for form, places in wanted.items():
        for shard, number in places:
            forms[shard][number].add(form)
    take = functools.partial(_take_samples, layout, {shard: dict(own) for shard, own in forms.items()}, names)
    found = each_shard(engine, take, sorted(forms), "samples", progress)
    return [sample for _, samples in found if isinstance(samples, list) for sample in samples]


def _take_samples(
    layout: Layout, forms: Mapping[str, Mapping[int, set[Form]]], names: Names | None, name: str
) -> list[Sample]:
    """The samples of one shard; ``forms`` are the requested ones of each record, by shard and number there."""
    return [
        _sample((name, number, offset), seen, encoded, form)
        for number, offset, seen, encoded in _records(layout, name, forms[name], names)
        for form in sorted(forms[name][number])
    ]


def _records(
    layout: Layout, name: str, numbers: Iterable[int], names: Names | None
) -> Iterator[tuple[int, int, Shown, memoryview]]:
    """Number, offset, contents and image of these records; a record that has become unreadable is left out."""
    wanted = frozenset(numbers)
    with contextlib.suppress(FramingError, InputError):
        records = itertools.islice(Shard.open(layout.shard_path(name)).unchecked(), max(wanted) + 1)
        for number, (offset, data) in enumerate(records):
            if number in wanted and (seen := look(data, names)) and seen.encoded is not None:
                yield number, offset, seen, seen.encoded


def _sample(place: tuple[str, int, int], seen: Shown, encoded: memoryview, form: Form) -> Sample:
    picture, size = b"", seen.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page reports it
        picture, size = thumbnail(encoded, form)
    boxes = tuple(filter(is_drawable, seen.boxes))
    return Sample(*place, seen.filename, seen.label, seen.wnid, size, len(encoded), boxes, form, picture)


def thumbnail(encoded: memoryview, form: Form) -> tuple[bytes, tuple[int, int]]:
    """An image, reduced, and its original width and height in pixels.

    Raises:
        ImageError: it can't be decoded.
    """
    from PIL import Image

    _, *sides, _ = pixels.read_facts(encoded)
    size = sides[0], sides[1]
    target = Reencode(max_side=form.max_side).target(*size)
    image = Image.fromarray(pixels.decode_array(encoded, pixels.REDUCE * min(target)))
    encode = pixels.encode if form.format == "jpeg" else pixels.encode_webp
    return encode(pixels.shrink(image, target), form.quality), size


# copies ----------------------------------------------------------------------------------------------------------


class Copy(NamedTuple):
    """A record and the SHA-256 (hex) of its image file."""

    digest: str
    shard: str
    number: int
    filename: str
    label: int | None


def find_copies(
    layout: Layout, engine: Engine, keys: Mapping[str, array[int]], names: Names | None, progress: Progress
) -> list[tuple[Copy, ...]]:
    """The copies of each image that has several, in order of shards and records; ``keys`` are a census's."""
    numbers = likely_copies(keys)
    take, by_digest = functools.partial(_take_digests, layout, numbers, names), defaultdict(list)
    found = each_shard(engine, take, sorted(numbers), "duplicates", progress) if numbers else ()
    for copy in sorted((each for _, own in found if isinstance(own, list) for each in own), key=lambda each: each[1:3]):
        by_digest[copy.digest].append(copy)
    return [tuple(copies) for copies in by_digest.values() if len(copies) > 1]


def _take_digests(layout: Layout, numbers: Mapping[str, frozenset[int]], names: Names | None, name: str) -> list[Copy]:
    """The image files of one shard that may be copies, with their digests; ``numbers`` are by shard."""
    return [
        Copy(hashlib.sha256(encoded).hexdigest(), name, number, seen.filename, seen.label)
        for number, _, seen, encoded in _records(layout, name, numbers[name], names)
    ]


def likely_copies(keys: Mapping[str, array[int]]) -> dict[str, frozenset[int]]:
    """The records, by shard, that share their key with another record: only these are read."""
    import numpy as np

    columns = {name: np.frombuffer(column, np.uint64) for name, column in keys.items() if len(column)}
    if not columns:
        return {}
    values, counts = np.unique(np.concatenate(list(columns.values())), return_counts=True)
    repeated = values[(counts > 1) & (values > 0)]
    found = {name: frozenset(np.flatnonzero(np.isin(column, repeated)).tolist()) for name, column in columns.items()}
    return {name: numbers for name, numbers in found.items() if numbers}
