"""TakeCensus: a shard -> what it holds, in numbers. take_census: all shards. Headers are read, no image is decoded.

The censuses of shards are added up in any order and come to the same whole.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from imagenet_prep.checks.examiner import no_words
from imagenet_prep.errors import InputError, WorkerError, in_a_line
from imagenet_prep.images import jpeg, png
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import UPRIGHT, read_orientation
from imagenet_prep.model import Done, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.lenient import Names, Shown, Words, look, see
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.tfrecord.example import KINDS, BytesList, ExampleError, Feature, parse_example
from imagenet_prep.tfrecord.framing import FramingError

R = TypeVar("R")

SIDE_STEPS, ASPECT_STEPS, BYTE_STEPS = 8, 16, 4
"""Bins per octave: of a side in pixels, of width / height, of a file's bytes."""

MANY_BOXES = 10
"""Images with this many boxes or more share a bin."""

SHOWN_NAMES = 8
"""Images of an odd kind that are named; the rest are counted."""

GREY, FOUR, ROTATED, PNG, BROKEN = "grey", "four-component", "rotated", "png", "broken"
TINY, HUGE, EXTREME, CHANGED = "tiny", "huge", "extreme", "changed"
"""Kinds of odd images; changed are those that the manifest records as repaired or turned."""

SMALL_SIDE, LARGE_SIDE, MOST_EXTREME = 32, 4000, 5
"""In pixels; the last is how much longer than the other one side may be."""

_FRONT, _BACK = 512, 256  # bytes at the ends of an image, which share their pages with what is read anyway


def bin_of(value: float, steps: int) -> int:
    """The bin of a positive number, ``steps`` of them per octave: bin k has 2 ** (k / steps) in its middle."""
    return round(math.log2(value) * steps)


@dataclass(frozen=True, slots=True)
class Spread:
    """How many numbers there are, their sum, the least and the greatest."""

    count: int = 0
    total: float = 0
    least: float = math.inf
    greatest: float = -math.inf

    def __add__(self, other: Spread) -> Spread:
        """Both together."""
        least, greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return Spread(self.count + other.count, self.total + other.total, least, greatest)

    @classmethod
    def of(cls, *values: float) -> Spread:
        """That of some numbers."""
        return cls(len(values), sum(values), min(values), max(values)) if values else cls()


@dataclass(slots=True)
class FeatureCensus:
    """One feature in every record that has it in the promised kind.

    ``values`` are how many values the records have; ``bounds`` the numbers themselves, or the lengths of byte strings;
    ``not_numbers`` counts records with a NaN.
    """

    values: Spread = Spread()
    bounds: Spread = Spread()
    not_numbers: int = 0

    def take(self, feature: Feature) -> None:
        """Count one record's."""
        self.values += Spread.of(len(feature.values))
        if isinstance(feature, BytesList):
            self.bounds += Spread.of(*map(len, feature.values))
        else:
            numbers = [value for value in feature.values if value == value]  # a NaN has no place between bounds
            self.bounds += Spread.of(*numbers)
            self.not_numbers += len(numbers) < len(feature.values)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A record that could be shown: those with boxes come first, then chance decides, the same for the same image."""

    has_no_box: bool
    chance: int
    shard: str
    number: int


@dataclass(slots=True)
class Odd:
    """Odd images of one kind: how many, and the first of them as shard, record, file name."""

    count: int = 0
    first: list[tuple[str, int, str]] = field(default_factory=list)


@dataclass(slots=True)
class SplitCensus:
    """What the records of one split hold, in numbers.

    ``labels`` counts images by class, ``class_boxes`` and ``class_bytes`` what these have, ``sides`` bins of width and
    height, ``boxes`` images by number of boxes; ``candidates`` are by label, None where a record has none.
    """

    records: int = 0
    labels: Counter[int] = field(default_factory=Counter)
    class_boxes: Counter[int] = field(default_factory=Counter)
    class_bytes: Counter[int] = field(default_factory=Counter)
    sides: Counter[tuple[int, int]] = field(default_factory=Counter)
    aspects: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    boxes: Counter[int] = field(default_factory=Counter)
    width: Spread = Spread()
    height: Spread = Spread()
    bytes: Spread = Spread()
    candidates: dict[int | None, list[Candidate]] = field(default_factory=dict)


@dataclass(slots=True)
class Census:
    """What all shards counted so far hold.

    ``words`` and ``wnids`` name classes by label; ``shards`` are bytes by name; ``odd`` is by kind; ``keys`` has, by
    shard, a number per record that copies of an image share; ``unread`` counts records that are no Examples;
    ``faults`` are shards that could not be read to their end, each with the reason; ``features`` are those that a
    recipe promises, and ``others`` counts records that hold more.
    """

    splits: dict[str, SplitCensus] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)
    wnids: dict[int, str] = field(default_factory=dict)
    shards: dict[str, int] = field(default_factory=dict)
    odd: dict[str, Odd] = field(default_factory=dict)
    keys: dict[str, array[int]] = field(default_factory=dict)
    unread: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    features: dict[str, FeatureCensus] = field(default_factory=dict)
    others: int = 0

    @property
    def has_images(self) -> bool:
        """Whether any record holds an image file."""
        return any(found.bytes.count for found in self.splits.values())


def merge(one: Any, other: Any, keep: int) -> Any:
    """Two censuses, or two of the same part, as one: ``one`` takes in ``other``, which is not to be used again.

    Numbers are added, the first of two texts is taken, and the first ``keep`` entries of two lists.
    """
    if isinstance(one, Counter):
        one.update(other)
    elif isinstance(one, dict):
        for key, value in other.items():
            one[key] = merge(one[key], value, keep) if key in one else value
    elif isinstance(one, list):
        return heapq.nsmallest(keep, one + other)
    elif isinstance(one, str):
        return min(one, other)
    elif isinstance(one, int | Spread):
        return one + other
    else:
        for each in dataclasses.fields(one):
            setattr(one, each.name, merge(getattr(one, each.name), getattr(other, each.name), keep))
    return one


@dataclass(frozen=True, slots=True)
class TakeCensus:
    """Counts what single shards hold, by name; picklable.

    Args:
        keep: candidates per class to return, and odd images per kind to name.
        kinds: the kind of each feature that a recipe promises; None for records of ILSVRC2012.
        names: where the records of a recipe have what they show.
        words_of: tells the words of classes that records leave out.
        changed: the names of images that were changed, by shard.
    """

    layout: Layout
    keep: int
    kinds: Mapping[str, str] | None = None
    names: Names | None = None
    words_of: Words = no_words
    changed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __call__(self, name: str) -> Census:
        """The census of one shard. What can't be read is counted, and ends nothing but the reading of this shard."""
        counting = _Counting(name, self)
        census = counting.census
        try:
            shard = Shard.open(self.layout.shard_path(name))
            census.shards[name] = len(shard.view)
            for number, (_, data) in enumerate(shard.unchecked()):
                counting.take(number, data)
        except FramingError as error:
            census.faults[name] = str(error)
        except InputError as error:
            census.faults[name] = str(error.detail)
        for found in census.splits.values():
            found.candidates = {label: heapq.nsmallest(self.keep, own) for label, own in found.candidates.items()}
        return census


class _Counting:
    """One pass over a shard."""

    def __init__(self, name: str, how: TakeCensus) -> None:
        self._name, self._how = name, how
        self._changed = how.changed.get(name, frozenset())
        self._split, self._keys = SplitCensus(), array("Q")
        self.census = Census(splits={split_of(name): self._split}, keys={name: self._keys})

    def take(self, number: int, data: memoryview) -> None:
        """Count one record."""
        seen = self._see(data)
        self._keys.append(_copy_key(seen.encoded) if seen else 0)
        if seen is None:
            self.census.unread += 1
            return
        split, label, encoded = self._split, seen.label, seen.encoded
        split.records += 1
        split.boxes[min(len(seen.boxes), MANY_BOXES)] += 1
        if label is not None:
            split.labels[label] += 1
            split.class_boxes[label] += len(seen.boxes)
            split.class_bytes[label] += len(encoded or b"")
            for texts, text in ((self.census.words, seen.words), (self.census.wnids, seen.wnid)):
                if text:
                    texts.setdefault(label, text)
        size = seen.size if encoded is None else self._look_at_image(number, seen, encoded)
        if size is not None:
            self.count_size(*size)

    def _see(self, data: memoryview) -> Shown | None:
        """What the record shows; the features of a recipe's record are counted."""
        kinds, names, features = self._how.kinds, self._how.names, self.census.features
        if kinds is None or names is None:
            return look(data, words_of=self._how.words_of)
        try:
            held = parse_example(data)
        except ExampleError:
            return None
        for name, kind in kinds.items():
            if name in held and KINDS[type(held[name])] == kind:
                features.setdefault(name, FeatureCensus()).take(held[name])
        self.census.others += not held.keys() <= kinds.keys()
        return see(held, names)

    def _look_at_image(self, number: int, seen: Shown, encoded: memoryview) -> tuple[int, int] | None:
        """Width and height by the image's own header, else by the record; what is odd about it is noted."""
        split = self._split
        split.sizes[bin_of(max(1, len(encoded)), BYTE_STEPS)] += 1
        split.bytes += Spread.of(len(encoded))
        size, kinds = seen.size, [BROKEN]
        try:
            size, kinds = _inspect(encoded, is_own=self._how.kinds is not None)
        except ImageError:
            pass
        else:
            kinds += [CHANGED] * (seen.filename in self._changed)
            chance = zlib.crc32((seen.filename or f"{self._name} {number}").encode())
            candidate = Candidate(not seen.boxes, chance, self._name, number)
            split.candidates.setdefault(seen.label, []).append(candidate)
        for kind in kinds:
            odd = self.census.odd.setdefault(kind, Odd())
            odd.count += 1
            if len(odd.first) < self._how.keep:
                odd.first.append((self._name, number, seen.filename))
        return size

    def count_size(self, width: int, height: int) -> None:
        """Count the size of one image in pixels."""
        split = self._split
        split.sides[bin_of(width, SIDE_STEPS), bin_of(height, SIDE_STEPS)] += 1
        split.aspects[bin_of(width / height, ASPECT_STEPS)] += 1
        split.width += Spread.of(width)
        split.height += Spread.of(height)


def _inspect(encoded: memoryview, *, is_own: bool) -> tuple[tuple[int, int], list[str]]:
    """Width and height by an image's header, and what kinds of odd it is; a PNG is odd in ILSVRC2012 alone.

    Raises:
        ImageError: the header can't be read.
    """
    header: png.PngHeader | jpeg.JpegHeader
    if png.is_png(encoded):
        header = png.read_header(encoded)
        kinds = {PNG: not is_own, GREY: is_own and header.channels < 3}
    else:
        header = jpeg.read_header(encoded)
        components, is_rotated = header.components, read_orientation(encoded) != UPRIGHT
        kinds = {GREY: components == 1, FOUR: components not in (1, 3), ROTATED: is_rotated}
    short, long = sorted((header.width, header.height))
    kinds |= {TINY: short < SMALL_SIDE, HUGE: long > LARGE_SIDE, EXTREME: long > MOST_EXTREME * short}
    return (header.width, header.height), [kind for kind, is_so in kinds.items() if is_so]


def _copy_key(encoded: memoryview | None) -> int:
    """A number that copies of an image file share: of its length and of both its ends; 0 where there is none."""
    if not encoded:
        return 0
    return len(encoded) << 32 | zlib.crc32(encoded[-_BACK:], zlib.crc32(encoded[:_FRONT]))


# all shards ------------------------------------------------------------------------------------------------------


def take_census(names: Sequence[str], take: TakeCensus, engine: Engine, progress: Progress) -> Census:
    """What all these shards hold; those that can't be read are among its faults."""
    census = Census()
    for name, found in each_shard(engine, take, names, "count", progress):
        if isinstance(found, Census):
            merge(census, found, take.keep)
        else:
            census.faults[name] = in_a_line(found)
    return census


def each_shard(
    engine: Engine, work: Callable[[str], R], names: Sequence[str], label: str, progress: Progress
) -> Iterator[tuple[str, R | Exception]]:
    """What came of each shard; a worker that died over one, or could not read it, is an answer too."""
    progress.begin(f"report: {label}", len(names), "shards")
    for outcome in engine.map(work, names):
        progress.advance()
        if isinstance(outcome, Done):
            yield outcome.task, outcome.value
        elif isinstance(outcome.error, WorkerError):
            raise outcome.error
        else:
            yield outcome.task, outcome.error
    progress.end()
