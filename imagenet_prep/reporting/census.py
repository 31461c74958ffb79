"""TakeCensus: a shard -> a row of numbers per record.
take_census: all shards -> Census. No image is decoded.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from imagenet_prep.checks.examiner import no_words
from imagenet_prep.errors import InputError, WorkerError, in_a_line
from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import UPRIGHT, read_orientation
from imagenet_prep.model import Done, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.lenient import USUAL, Names, Shown, Words, look, see
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.tfrecord.example import KINDS, BytesList, ExampleError, Feature, parse_example
from imagenet_prep.tfrecord.framing import FramingError

Rows = np.ndarray[Any, np.dtype[np.void]]

R = TypeVar("R")

SMALL_SIDE = 32
LARGE_SIDE = 4000
"""In pixels."""

MOST_EXTREME = 5
"""The longest side of an image may be so many times the other."""

SHOWN_FEATURES = 200
"""Features of another maker's records that are counted, at most:
each record may have names of its own.
"""

# Bytes at the ends of an image, in pages of memory that are read anyway.
_FRONT, _BACK = 512, 256


_ALL_MARKS = (1 << bit for bit in range(11))
UNREAD, UNLABELED, GREY, FOUR, ROTATED, PNG, BROKEN, TINY, HUGE, EXTREME, CHANGED = _ALL_MARKS
"""Marks of a record: not an Example, no label, kinds of odd images;
CHANGED: repaired or turned, says the manifest.
"""

_COLUMNS = {
    "marks": "u2",
    "label": "i8",
    "boxes": "u4",
    "bytes": "u8",
    "width": "u4",
    "height": "u4",
    "ends": "u4",
    "chance": "u4",
}
_PLACE = {"split": "u2", "shard": "u4", "number": "u4"}
_UNREAD = (UNREAD | UNLABELED, *[0] * 7)


class FeatureCensus(Struct, frozen=True):
    """The values of one feature, in every record that has it with the promised kind.

    ``fewest`` and ``most`` are values per record; ``low`` and ``high`` bounds of the numbers
    themselves, or of the lengths of byte strings; ``not_numbers`` counts records with a NaN.
    """

    kind: str = ""
    records: int = 0
    fewest: int | float = math.inf
    most: int | float = -math.inf
    low: float = math.inf
    high: float = -math.inf
    not_numbers: int = 0

    def __add__(self, other: FeatureCensus) -> FeatureCensus:
        """Both together."""
        return FeatureCensus(
            other.kind,
            self.records + other.records,
            min(self.fewest, other.fewest),
            max(self.most, other.most),
            min(self.low, other.low),
            max(self.high, other.high),
            self.not_numbers + other.not_numbers,
        )

    @classmethod
    def of(cls, feature: Feature) -> FeatureCensus:
        """The feature of one record."""
        numbers: list[float]
        if isinstance(feature, BytesList):
            numbers = [len(content) for content in feature.values]
        else:
            # A NaN can't be ordered.
            numbers = [number for number in feature.values if not math.isnan(number)]
        count = len(feature.values)
        return cls(
            kind=KINDS[type(feature)],
            records=1,
            fewest=count,
            most=count,
            low=min(numbers, default=math.inf),
            high=max(numbers, default=-math.inf),
            not_numbers=len(numbers) < count,
        )


class Census(Struct):
    """The contents of all shards.

    ``rows`` is a NumPy table with a row per record, in order of shards. Its columns are split and
    shard (numbers), number (in the shard), marks (bits), label, boxes (their number), bytes (of the
    image file), width, height, ends (a checksum of the file's ends), and chance, a number that
    depends on the image alone. ``filenames`` has a text for each shard: a line per record, with its
    file name or nothing. ``words`` and ``wnids`` name classes by label. ``faults`` are shards
    that could not be read to their end, each with the reason. ``features`` are those that a recipe
    promises, and ``others`` counts records with more.
    """

    rows: Rows
    shards: Sequence[str] = ()
    filenames: Sequence[str] = ()
    words: dict[int, str] = {}
    wnids: dict[int, str] = {}
    faults: dict[str, str] = {}
    features: dict[str, FeatureCensus] = {}
    others: int = 0

    def marked(self, mark: int) -> NDArray[np.intp]:
        """The rows with a mark, in order."""
        marked_rows: NDArray[np.intp] = (self.rows["marks"] & mark).nonzero()[0]
        return marked_rows

    @property
    def has_images(self) -> bool:
        """Whether any record holds an image file."""
        return bool(self.rows["bytes"].any())

    def place(self, row: int) -> tuple[str, int]:
        """Shard and number of a record."""
        return self.shards[self.rows["shard"][row]], int(self.rows["number"][row])

    def list_filenames(self) -> Iterator[str]:
        """The file name of each row, in order; "" where the record has none."""
        for names_of_shard in self.filenames:
            yield from names_of_shard.splitlines()

    def find_rows(self, names: Collection[str]) -> dict[str, list[int]]:
        """The rows of each of these file names that a record has."""
        wanted_names = frozenset(names) - {""}
        rows_by_name: dict[str, list[int]] = {}
        if not wanted_names:
            return rows_by_name
        for row, name in enumerate(self.list_filenames()):
            if name in wanted_names:
                rows_by_name.setdefault(name, []).append(row)
        return rows_by_name

    def labels(self, split: int) -> dict[int, int]:
        """The number of images of each class in a split."""
        labels, counts = np.unique(self.labelled(split)["label"], return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def labelled(self, split: int) -> Rows:
        """The rows of a split that have a label."""
        is_labelled = self.rows["marks"] & UNLABELED == 0
        rows: Rows = self.rows[(self.rows["split"] == split) & is_labelled]
        return rows


class TakeCensus(Struct, frozen=True):
    """Counts the contents of single shards, by name; picklable.

    Args:
        kinds: the kind of each feature that a recipe promises, none if nobody does; None for
            records of ILSVRC2012.
        names: the feature names in a recipe's records.
        words_of: returns the words of a class that a record leaves out.
        changed: the names of changed images, by shard.
    """

    layout: Layout
    kinds: Mapping[str, str] | None = None
    names: Names = field(default_factory=lambda: USUAL)
    words_of: Words = no_words
    changed: Mapping[str, frozenset[str]] = {}

    def __call__(self, name: str) -> Census:
        """The census of one shard. Unreadable records are counted;
        a damaged shard ends only its own reading.
        """
        rows: list[tuple[int, ...]] = []
        filenames: list[str] = []
        census = Census(np.array([], list(_COLUMNS.items())), [name])
        try:
            for _, data in Shard.open(self.layout.shard_path(name)).unchecked():
                shown = self._see(data, census)
                filenames.append(shown.filename if shown else "")
                if shown is None:
                    rows.append(_UNREAD)
                else:
                    rows.append(self._row(shown, f"{name} {len(rows)}", census))
        except FramingError as error:
            census.faults[name] = str(error)
        except InputError as error:
            census.faults[name] = str(error.detail)
        census.rows = np.array(rows, list(_COLUMNS.items()))
        lines = [f"{filename}\n" for filename in filenames[: len(rows)]]
        census.filenames = ["".join(lines)]
        return census

    def _see(self, data: memoryview, census: Census) -> Shown | None:
        """The contents of a record; the features of a recipe's record are counted."""
        if self.kinds is None:
            return look(data, words_of=self.words_of)
        try:
            features = parse_example(data)
        except ExampleError:
            return None
        kinds = self.kinds or _first_kinds(features, census)
        for name, kind in kinds.items():
            feature = features.get(name)
            if feature is not None and KINDS[type(feature)] == kind:
                earlier = census.features.get(name, FeatureCensus())
                census.features[name] = earlier + FeatureCensus.of(feature)
        census.others += not features.keys() <= kinds.keys()
        return see(features, self.names)

    def _row(self, shown: Shown, place: str, census: Census) -> tuple[int, ...]:
        """The numbers of one record; the size is the one in the image's header,
        or else in the record.
        """
        marks = UNLABELED if shown.label is None else 0
        _add_class(census, shown)
        width, height = shown.size or (0, 0)
        encoded = shown.encoded
        file_size = ends = 0
        if encoded is not None:
            file_size = len(encoded)
            ends = zlib.crc32(encoded[-_BACK:], zlib.crc32(encoded[:_FRONT])) if encoded else 0
            try:
                (width, height), odd_kinds = _inspect(encoded, is_own=self.kinds is not None)
                marks |= odd_kinds
                if shown.filename in self.changed.get(census.shards[0], ()):
                    marks |= CHANGED
            except ImageError:
                marks |= BROKEN
        chance = zlib.crc32((shown.filename or place).encode())
        label, boxes = shown.label or 0, len(shown.boxes)
        return marks, label, boxes, file_size, width, height, ends, chance


def _add_class(census: Census, shown: Shown) -> None:
    """Keep the words and the wnid of the record's class; the first ones of a label count."""
    if shown.label is None:
        return
    if shown.words:
        census.words.setdefault(shown.label, shown.words)
    if shown.wnid:
        census.wnids.setdefault(shown.label, shown.wnid)


def _first_kinds(features: Mapping[str, Feature], census: Census) -> Mapping[str, str]:
    """The kind of each feature that nobody promises, as the first record with that name has it."""
    kinds: dict[str, str] = {name: counts.kind for name, counts in census.features.items()}
    for name, feature in features.items():
        kinds.setdefault(name, KINDS[type(feature)])
    return dict(itertools.islice(kinds.items(), SHOWN_FEATURES))


def _inspect(encoded: memoryview, *, is_own: bool) -> tuple[tuple[int, int], int]:
    """Width and height from an image's header, and its odd kinds; a PNG is odd in ILSVRC2012 alone.

    Raises:
        ImageError: the header can't be read.
    """
    image_format, width, height, channels = pixels.read_facts(encoded)
    if image_format == "JPEG":
        marks = {
            GREY: channels == 1,
            FOUR: channels not in (1, 3),
            ROTATED: read_orientation(encoded) != UPRIGHT,
        }
    else:
        marks = {PNG: not is_own, GREY: is_own and channels < 3}
    short, long = sorted((width, height))
    marks |= {
        TINY: short < SMALL_SIDE,
        HUGE: long > LARGE_SIDE,
        EXTREME: long > MOST_EXTREME * short,
    }
    return (width, height), sum(mark for mark, is_set in marks.items() if is_set)


# all shards ---------------------------------------------------------------------------------------


def take_census(
    names: Sequence[str],
    take: TakeCensus,
    splits: Sequence[str],
    engine: Engine,
    progress: Progress,
) -> Census:
    """The census of these shards; unreadable ones are among its faults."""
    censuses = dict(each_shard(engine, take, names, "count", progress))
    return join([(name, censuses[name]) for name in sorted(censuses)], splits)


def join(parts: Sequence[tuple[str, Census | Exception]], splits: Sequence[str]) -> Census:
    """The censuses of single shards, in order, as one;
    of two names of a class the first in the alphabet counts.
    """
    counted = [(name, part) for name, part in parts if isinstance(part, Census)]
    row_count = sum(len(part.rows) for _, part in counted)
    whole = Census(np.zeros(row_count, [*_PLACE.items(), *_COLUMNS.items()]))
    whole.shards = [name for name, _ in counted]
    whole.filenames = [filenames for _, part in counted for filenames in part.filenames]
    start = 0
    for shard_number, (name, part) in enumerate(counted):
        rows = whole.rows[start : start + len(part.rows)]
        start += len(rows)
        rows["split"] = splits.index(split_of(name) or name)
        rows["shard"] = shard_number
        rows["number"] = np.arange(len(rows))
        for column in _COLUMNS:
            rows[column] = part.rows[column]
        _add_part(whole, part)
    for name, outcome in parts:
        if isinstance(outcome, Exception):
            whole.faults[name] = in_a_line(outcome)
    return whole


def _add_part(whole: Census, part: Census) -> None:
    """Add all of a shard's census but its rows."""
    for texts, texts_of_part in ((whole.words, part.words), (whole.wnids, part.wnids)):
        for label, text in texts_of_part.items():
            texts[label] = min(text, texts.get(label, text))
    for name, feature in part.features.items():
        whole.features[name] = whole.features.get(name, FeatureCensus()) + feature
    whole.faults |= part.faults
    whole.others += part.others


def each_shard(
    engine: Engine, work: Callable[[str], R], names: Sequence[str], label: str, progress: Progress
) -> Iterator[tuple[str, R | Exception]]:
    """The outcome of each shard; an unreadable shard,
    or one whose worker died, has an outcome too.
    """
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
