"""TakeCensus: a shard -> what it holds, in numbers. take_census: all shards. Headers are read, no image is decoded.

The censuses of shards are added up in any order and come to the same whole.
"""

from __future__ import annotations

import heapq
import math
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from imagenet_prep.checks.examiner import KnownSet, no_words
from imagenet_prep.errors import InputError, WorkerError, in_a_line
from imagenet_prep.images import jpeg, png
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import UPRIGHT, read_orientation
from imagenet_prep.model import Done, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.lenient import Naming, Shown, Words, look, see
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.tfrecord.example import KINDS, BytesList, ExampleError, Feature, parse_example
from imagenet_prep.tfrecord.framing import FramingError


@dataclass(slots=True)
class Spread:
    """How many numbers there were, their sum, the least and the greatest; None before there are any."""

    count: int = 0
    total: float = 0
    least: float | None = None
    greatest: float | None = None

    def add(self, *values: float) -> None:
        """Take some numbers."""
        self.merge(Spread(len(values), sum(values), min(values), max(values)))

    def merge(self, other: Spread) -> None:
        """Take all that another one has seen."""
        self.count += other.count
        self.total += other.total
        if other.least is not None and other.greatest is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
            self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)


@dataclass(slots=True)
class FeatureCensus:
    """One feature in every record that has it in the promised kind.

    ``values`` are how many values the records have; ``bounds`` the numbers themselves, of byte strings their lengths;
    ``not_numbers`` counts records with a NaN.
    """

    values: Spread = field(default_factory=Spread)
    bounds: Spread = field(default_factory=Spread)
    not_numbers: int = 0

    def take(self, feature: Feature) -> None:
        """Count one record's."""
        count = len(feature.values)
        self.values.add(count)
        if isinstance(feature, BytesList):
            numbers: list[float] = [len(value) for value in feature.values]
        else:
            numbers = [value for value in feature.values if value == value]  # a NaN has no place between bounds
            self.not_numbers += len(numbers) < count
        if numbers:
            self.bounds.add(*numbers)

    def merge(self, other: FeatureCensus) -> None:
        """Take all that another one has seen."""
        self.not_numbers += other.not_numbers
        self.values.merge(other.values)
        self.bounds.merge(other.bounds)


@dataclass(slots=True)
class FeaturesCensus:
    """The promised features by name; ``others`` counts records that hold more than these."""

    named: dict[str, FeatureCensus] = field(default_factory=dict)
    others: int = 0

    def take(self, features: Mapping[str, Feature], kinds: Mapping[str, str]) -> None:
        """Count one record; ``kinds`` are those promised, by name."""
        for name, kind in kinds.items():
            feature = features.get(name)
            if feature is not None and KINDS[type(feature)] == kind:
                self.named.setdefault(name, FeatureCensus()).take(feature)
        self.others += not features.keys() <= kinds.keys()

    def merge(self, other: FeaturesCensus) -> None:
        """Take all that another one has seen."""
        self.others += other.others
        for name, found in other.named.items():
            self.named.setdefault(name, FeatureCensus()).merge(found)


R = TypeVar("R")

SIDE_STEPS, ASPECT_STEPS, BYTE_STEPS = 8, 16, 4
"""Bins an octave: of a side in pixels, of width / height, of a file's bytes."""

MANY_BOXES = 10
"""So many boxes an image and more are one bin."""

SHOWN_NAMES = 8
"""Images of an odd kind that are named; the rest are counted."""

GREY, FOUR, ROTATED, PNG, BROKEN = "grey", "four-component", "rotated", "png", "broken"
TINY, HUGE, EXTREME, CHANGED = "tiny", "huge", "extreme", "changed"
"""Kinds of odd images; changed are those that the manifest says were repaired or turned."""

SMALL_SIDE, LARGE_SIDE, MOST_EXTREME = 32, 4000, 5
"""In pixels; and of how much one side may be longer than the other."""


_FRONT, _BACK = 512, 256  # bytes of an image that lie beside what is read of it anyway


def bin_of(value: float, steps: int) -> int:
    """The bin of a positive number, ``steps`` of them an octave: bin k has 2 ** (k / steps) in its middle."""
    return round(math.log2(value) * steps)


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

    def merge(self, other: Odd) -> None:
        """Take those that another one has seen."""
        self.count += other.count
        self.first = heapq.nsmallest(SHOWN_NAMES, self.first + other.first)


@dataclass(slots=True)
class SplitCensus:
    """What the records of one split hold, in numbers.

    ``labels`` counts images a class, ``class_boxes`` and ``class_bytes`` what these have, ``sides`` bins of width and
    height, ``boxes`` images with so many boxes;
    ``candidates`` are by label, None where a record has none.
    """

    records: int = 0
    labels: Counter[int] = field(default_factory=Counter)
    class_boxes: Counter[int] = field(default_factory=Counter)
    class_bytes: Counter[int] = field(default_factory=Counter)
    sides: Counter[tuple[int, int]] = field(default_factory=Counter)
    aspects: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    boxes: Counter[int] = field(default_factory=Counter)
    width: Spread = field(default_factory=Spread)
    height: Spread = field(default_factory=Spread)
    bytes: Spread = field(default_factory=Spread)
    candidates: dict[int | None, list[Candidate]] = field(default_factory=dict)

    def merge(self, other: SplitCensus, keep: int) -> None:
        """Take what another one has seen; ``keep`` candidates a class are enough."""
        self.records += other.records
        for name in ("labels", "class_boxes", "class_bytes", "sides", "aspects", "sizes", "boxes"):
            getattr(self, name).update(getattr(other, name))
        for name in ("width", "height", "bytes"):
            getattr(self, name).merge(getattr(other, name))
        for label, found in other.candidates.items():
            self.candidates[label] = heapq.nsmallest(keep, self.candidates.get(label, []) + found)


@dataclass(slots=True)
class Census:
    """What all shards counted so far hold.

    ``keys`` has by shard what copies of an image share, a number a record.

    ``words`` and ``wnids`` name classes by label; ``shards`` are bytes by name; ``odd`` is by kind; ``unread`` counts
    records that are no Examples; ``faults`` are shards that could not be read to their end, each with the reason.
    """

    splits: dict[str, SplitCensus] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)
    wnids: dict[int, str] = field(default_factory=dict)
    shards: dict[str, int] = field(default_factory=dict)
    odd: dict[str, Odd] = field(default_factory=dict)
    keys: dict[str, array[int]] = field(default_factory=dict)
    unread: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    features: FeaturesCensus = field(default_factory=FeaturesCensus)

    @property
    def has_images(self) -> bool:
        """Whether any record holds an image file."""
        return any(found.bytes.count for found in self.splits.values())

    def merge(self, other: Census, keep: int) -> None:
        """Take what another one has seen; ``keep`` candidates a class are enough."""
        for split, found in other.splits.items():
            self.splits.setdefault(split, SplitCensus()).merge(found, keep)
        for own, others in ((self.words, other.words), (self.wnids, other.wnids)):
            own.update({label: min(text, own.get(label, text)) for label, text in others.items()})
        for kind, odd in other.odd.items():
            self.odd.setdefault(kind, Odd()).merge(odd)
        self.shards.update(other.shards)
        self.keys.update(other.keys)
        self.faults.update(other.faults)
        self.unread += other.unread
        self.features.merge(other.features)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a recipe says of its records: which features mean what, and the kind of each."""

    naming: Naming
    kinds: Mapping[str, str]


def find_promise(dataset: KnownSet, manifest: Manifest | None) -> Promise | None:
    """What the records of a set of one's own are said to hold; None where they are of Inception's layout."""
    if dataset.published is not None or manifest is None:
        return None
    kinds = {name: str(promised.get("kind")) for name, promised in manifest.dataset.features.items()}
    return Promise(Naming.of(manifest.settings), kinds)


@dataclass(frozen=True, slots=True)
class TakeCensus:
    """Counts what single shards hold, by name; picklable.

    ``keep``: candidates a class to hand back. ``promise`` is that of a recipe, None for records of Inception's layout;
    ``words_of`` tells the words of classes that those leave out. ``changed`` names images that were changed, by shard.
    """

    layout: Layout
    keep: int
    promise: Promise | None = None
    words_of: Words = no_words
    changed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __call__(self, name: str) -> Census:
        """The census of one shard. What can't be read is counted, and ends nothing but the reading of this shard."""
        counting = _Counting(name, split_of(name), self)
        try:
            shard = Shard.open(self.layout.shard_path(name))
            counting.census.shards[name] = len(shard.view)
            for number, (_, data) in enumerate(shard.unchecked()):
                counting.take(number, data)
        except FramingError as error:
            counting.census.faults[name] = str(error)
        except InputError as error:
            counting.census.faults[name] = str(error.detail)
        found = Census()
        found.merge(counting.census, self.keep)
        return found


class _Counting:
    """One pass over a shard."""

    def __init__(self, name: str, split: str, take: TakeCensus) -> None:
        self._name = name
        self._split = SplitCensus()
        self._promise = take.promise
        self._words_of = take.words_of
        self._changed = take.changed.get(name, frozenset())
        self._keys = array("Q")
        self.census = Census(splits={split: self._split}, keys={name: self._keys})

    def take(self, number: int, data: memoryview) -> None:
        seen = look(data, words_of=self._words_of) if self._promise is None else self._look(data, self._promise)
        self._keys.append(_copy_key(seen.encoded) if seen else 0)
        if seen is None:
            self.census.unread += 1
            return
        split = self._split
        split.records += 1
        split.boxes[min(len(seen.boxes), MANY_BOXES)] += 1
        if seen.label is not None:
            split.labels[seen.label] += 1
            split.class_boxes[seen.label] += len(seen.boxes)
            split.class_bytes[seen.label] += len(seen.encoded or b"")
            if seen.words:
                self.census.words.setdefault(seen.label, seen.words)
            if seen.wnid:
                self.census.wnids.setdefault(seen.label, seen.wnid)
        size = self._look_at_image(number, seen)
        if size is not None:
            self._count_size(size)

    def _look(self, data: memoryview, promise: Promise) -> Shown | None:
        """A recipe's record, its features counted."""
        try:
            features = parse_example(data)
        except ExampleError:
            return None
        self.census.features.take(features, promise.kinds)
        return see(features, promise.naming)

    def _look_at_image(self, number: int, seen: Shown) -> tuple[int, int] | None:
        """Width and height by the image's own header, else by the record; what is odd about it is noted."""
        encoded = seen.encoded
        if encoded is None:
            return seen.size
        self._split.sizes[bin_of(max(1, len(encoded)), BYTE_STEPS)] += 1
        self._split.bytes.add(len(encoded))
        header: png.PngHeader | jpeg.JpegHeader
        try:
            if png.is_png(encoded):  # odd in ILSVRC2012, as good as a JPEG elsewhere
                header = png.read_header(encoded)
                kinds = [PNG if self._promise is None else GREY if header.channels < 3 else ""]
            else:
                header = jpeg.read_header(encoded)
                is_rotated = read_orientation(encoded) != UPRIGHT
                kinds = [{1: GREY, 3: ""}.get(header.components, FOUR), ROTATED if is_rotated else ""]
        except ImageError:
            self._note(BROKEN, number, seen)
            return seen.size
        sides = sorted((header.width, header.height))
        kinds += [TINY if sides[0] < SMALL_SIDE else "", HUGE if sides[1] > LARGE_SIDE else ""]
        kinds += [EXTREME if sides[1] > MOST_EXTREME * sides[0] else ""]
        kinds += [CHANGED if seen.filename in self._changed else ""]
        for kind in filter(None, kinds):
            self._note(kind, number, seen)
        self._propose(number, seen)
        return header.width, header.height

    def _count_size(self, size: tuple[int, int]) -> None:
        width, height = size
        self._split.sides[bin_of(width, SIDE_STEPS), bin_of(height, SIDE_STEPS)] += 1
        self._split.aspects[bin_of(width / height, ASPECT_STEPS)] += 1
        self._split.width.add(width)
        self._split.height.add(height)

    def _note(self, kind: str, number: int, seen: Shown) -> None:
        odd = self.census.odd.setdefault(kind, Odd())
        odd.count += 1
        if len(odd.first) < SHOWN_NAMES:
            odd.first.append((self._name, number, seen.filename))

    def _propose(self, number: int, seen: Shown) -> None:
        chance = zlib.crc32((seen.filename or f"{self._name} {number}").encode())
        candidate = Candidate(not seen.boxes, chance, self._name, number)
        self._split.candidates.setdefault(seen.label, []).append(candidate)


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
            census.merge(found, take.keep)
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
