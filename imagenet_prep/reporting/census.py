"""TakeCensus: a shard -> its contents in numbers. take_census: all shards. Headers are read, no image is decoded.

The censuses of shards can be merged in any order with the same result.
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
from imagenet_prep.images import pixels
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
"""Odd images per kind that are named; the rest are counted."""

GREY, FOUR, ROTATED, PNG, BROKEN = "grey", "four-component", "rotated", "png", "broken"
TINY, HUGE, EXTREME, CHANGED = "tiny", "huge", "extreme", "changed"
"""Kinds of odd images; "changed" are those that the manifest records as repaired or turned."""

SMALL_SIDE, LARGE_SIDE, MOST_EXTREME = 32, 4000, 5
"""In pixels; the last is the longest allowed ratio of two sides."""

_FRONT, _BACK = 512, 256  # bytes at the ends of an image, on pages that are read anyway


def bin_of(value: float, steps: int) -> int:
    """The bin of a positive number, ``steps`` bins per octave: the middle of bin k is 2 ** (k / steps)."""
    return round(math.log2(value) * steps)


@dataclass(frozen=True, slots=True)
class Spread:
    """The count, sum, minimum and maximum of some numbers."""

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
        """The spread of some numbers."""
        return cls(len(values), sum(values), min(values), max(values)) if values else cls()


@dataclass(slots=True)
class FeatureCensus:
    """The values of one feature, in every record that has it with the promised kind.

    ``values`` is the spread of the number of values per record; ``bounds`` that of the numbers themselves, or of the
    lengths of byte strings; ``not_numbers`` counts records with a NaN.
    """

    values: Spread = Spread()
    bounds: Spread = Spread()
    not_numbers: int = 0

    def take(self, feature: Feature) -> None:
        """Count the feature of one record."""
        self.values += Spread.of(len(feature.values))
        if isinstance(feature, BytesList):
            self.bounds += Spread.of(*map(len, feature.values))
        else:
            numbers = [value for value in feature.values if value == value]  # a NaN can't be ordered
            self.bounds += Spread.of(*numbers)
            self.not_numbers += len(numbers) < len(feature.values)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A record that could be shown: records with boxes first, then by chance, which depends on the image alone."""

    has_no_box: bool
    chance: int
    shard: str
    number: int


@dataclass(slots=True)
class Odd:
    """Odd images of one kind: how many, and the first ones as shard, record, file name."""

    count: int = 0
    first: list[tuple[str, int, str]] = field(default_factory=list)


@dataclass(slots=True)
class SplitCensus:
    """The contents of one split's records, in numbers.

    ``labels`` counts images by class, ``class_boxes`` and ``class_bytes`` their boxes and bytes, ``sides`` bins of
    width and height, ``boxes`` images by number of boxes. ``candidates`` is by label, None for records without one.
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
    """The contents of all shards counted so far.

    ``words`` and ``wnids`` name classes by label; ``shards`` are bytes by name; ``odd`` is by kind. ``keys`` has a
    number per record, by shard, that copies of an image share. ``unread`` counts records that are not Examples.
    ``faults`` are shards that could not be read to their end, each with the reason. ``features`` are those that a
    recipe promises, and ``others`` counts records with more.
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
    """Two censuses, or two of the same part, as one: ``one`` absorbs ``other``, which must not be used again.

    Numbers are added; of two texts the first is kept, and of two lists the first ``keep`` entries.
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
    """Counts the contents of single shards, by name; picklable.

    Args:
        keep: candidates per class to return, and odd images per kind to name.
        kinds: the kind of each feature that a recipe promises; None for records of ILSVRC2012.
        names: the feature names in a recipe's records.
        words_of: returns the words of a class that a record leaves out.
        changed: the names of changed images, by shard.
    """

    layout: Layout
    keep: int
    kinds: Mapping[str, str] | None = None
    names: Names | None = None
    words_of: Words = no_words
    changed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __call__(self, name: str) -> Census:
        """The census of one shard. Unreadable records are counted; a damaged shard ends only its own reading."""
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
    """Counts the records of one shard."""

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
        """The contents of a record; the features of a recipe's record are counted."""
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
        """Width and height from the image's own header, or from the record; odd images are noted."""
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
    """Width and height from an image's header, and its odd kinds; a PNG is odd in ILSVRC2012 alone.

    Raises:
        ImageError: the header can't be read.
    """
    kind, width, height, channels = pixels.read_facts(encoded)
    if kind != "JPEG":
        kinds = {PNG: not is_own, GREY: is_own and channels < 3}
    else:
        kinds = {GREY: channels == 1, FOUR: channels not in (1, 3), ROTATED: read_orientation(encoded) != UPRIGHT}
    short, long = sorted((width, height))
    kinds |= {TINY: short < SMALL_SIDE, HUGE: long > LARGE_SIDE, EXTREME: long > MOST_EXTREME * short}
    return (width, height), [kind for kind, is_so in kinds.items() if is_so]


def _copy_key(encoded: memoryview | None) -> int:
    """A number that copies of an image file share, from its length and both its ends; 0 without an image."""
    if not encoded:
        return 0
    return len(encoded) << 32 | zlib.crc32(encoded[-_BACK:], zlib.crc32(encoded[:_FRONT]))


# all shards ------------------------------------------------------------------------------------------------------


def take_census(names: Sequence[str], take: TakeCensus, engine: Engine, progress: Progress) -> Census:
    """The census of these shards; unreadable ones are among its faults."""
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
    """The outcome of each shard; an unreadable shard, or one whose worker died, has an outcome too."""
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
