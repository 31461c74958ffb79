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
_COLUMN_TYPES = list(_COLUMNS.items())
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
        low = min(numbers, default=math.inf)
        high = max(numbers, default=-math.inf)
        return cls(
            kind=KINDS[type(feature)],
            records=1,
            fewest=count,
            most=count,
            low=low,
            high=high,
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
        is_marked = self.rows["marks"] & mark
        return np.flatnonzero(is_marked)

    @property
    def has_images(self) -> bool:
        """Whether any record holds an image file."""
        return bool(self.rows["bytes"].any())

    def place(self, row: int) -> tuple[str, int]:
        """Shard and number of a record."""
        shard = self.rows["shard"][row]
        number = self.rows["number"][row]
        return self.shards[shard], int(number)

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
        label_of_row = self.labelled(split)["label"]
        labels, counts = np.unique(label_of_row, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def labelled(self, split: int) -> Rows:
        """The rows of a split that have a label."""
        is_labelled = self.rows["marks"] & UNLABELED == 0
        is_in_split = self.rows["split"] == split
        rows: Rows = self.rows[is_in_split & is_labelled]
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
        no_rows = np.array([], _COLUMN_TYPES)
        census = Census(no_rows, [name])
        path = self.layout.shard_path(name)
        try:
            for _, data in Shard.open(path).unchecked():
                shown = self._see(data, census)
                if shown is None:
                    filenames.append("")
                    rows.append(_UNREAD)
                else:
                    filenames.append(shown.filename)
                    row = self._row(shown, f"{name} {len(rows)}", census)
                    rows.append(row)
        except FramingError as error:
            census.faults[name] = str(error)
        except InputError as error:
            census.faults[name] = str(error.detail)
        census.rows = np.array(rows, _COLUMN_TYPES)
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
        if not features.keys() <= kinds.keys():
            census.others += 1
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
            if encoded:
                crc_of_front = zlib.crc32(encoded[:_FRONT])
                ends = zlib.crc32(encoded[-_BACK:], crc_of_front)
            is_own = self.kinds is not None
            try:
                (width, height), odd_kinds = _inspect(encoded, is_own=is_own)
                marks |= odd_kinds
                changed_images = self.changed.get(census.shards[0], ())
                if shown.filename in changed_images:
                    marks |= CHANGED
            except ImageError:
                marks |= BROKEN
        seed = shown.filename or place
        chance = zlib.crc32(seed.encode())
        label = shown.label or 0
        boxes = len(shown.boxes)
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
    kinds = {name: counts.kind for name, counts in census.features.items()}
    for name, feature in features.items():
        kinds.setdefault(name, KINDS[type(feature)])
    shown_kinds = itertools.islice(kinds.items(), SHOWN_FEATURES)
    return dict(shown_kinds)


def _inspect(encoded: memoryview, *, is_own: bool) -> tuple[tuple[int, int], int]:
    """Width and height from an image's header, and its odd kinds; a PNG is odd in ILSVRC2012 alone.

    Raises:
        ImageError: the header can't be read.
    """
    image_format, width, height, channels = pixels.read_facts(encoded)
    marks = 0
    if image_format == "JPEG":
        if channels == 1:
            marks |= GREY
        elif channels != 3:
            marks |= FOUR
        if read_orientation(encoded) != UPRIGHT:
            marks |= ROTATED
    elif not is_own:
        marks |= PNG
    elif channels < 3:
        marks |= GREY
    short, long = sorted((width, height))
    if short < SMALL_SIDE:
        marks |= TINY
    if long > LARGE_SIDE:
        marks |= HUGE
    if long > MOST_EXTREME * short:
        marks |= EXTREME
    return (width, height), marks


# all shards ---------------------------------------------------------------------------------------


def take_census(
    names: Sequence[str],
    take: TakeCensus,
    splits: Sequence[str],
    engine: Engine,
    progress: Progress,
) -> Census:
    """The census of these shards; unreadable ones are among its faults."""
    outcomes = dict(each_shard(engine, take, names, "count", progress))
    parts = [(name, outcomes[name]) for name in sorted(outcomes)]
    return join(parts, splits)


def join(parts: Sequence[tuple[str, Census | Exception]], splits: Sequence[str]) -> Census:
    """The censuses of single shards, in order, as one;
    of two names of a class the first in the alphabet counts.
    """
    faults: dict[str, str] = {}
    censuses: dict[str, Census] = {}
    filenames: list[str] = []
    row_count = 0
    for name, outcome in parts:
        if isinstance(outcome, Exception):
            faults[name] = in_a_line(outcome)
            continue
        censuses[name] = outcome
        filenames += outcome.filenames
        row_count += len(outcome.rows)
    all_rows = np.zeros(row_count, [*_PLACE.items(), *_COLUMN_TYPES])
    whole = Census(all_rows, list(censuses), filenames)
    start = 0
    for shard_number, (name, part) in enumerate(censuses.items()):
        stop = start + len(part.rows)
        rows = all_rows[start:stop]
        rows["split"] = splits.index(split_of(name) or name)
        rows["shard"] = shard_number
        rows["number"] = np.arange(len(rows))
        for column in _COLUMNS:
            rows[column] = part.rows[column]
        start = stop
        _add_part(whole, part)
    whole.faults |= faults
    return whole


def _add_part(whole: Census, part: Census) -> None:
    """Add all of a shard's census but its rows."""
    _add_first_in_alphabet(whole.words, part.words)
    _add_first_in_alphabet(whole.wnids, part.wnids)
    for name, feature in part.features.items():
        earlier = whole.features.get(name, FeatureCensus())
        whole.features[name] = earlier + feature
    whole.faults |= part.faults
    whole.others += part.others


def _add_first_in_alphabet(texts: dict[int, str], texts_of_part: Mapping[int, str]) -> None:
    """Add the texts of labels; of two of one label the first in the alphabet is kept."""
    for label, text in texts_of_part.items():
        earlier = texts.get(label, text)
        texts[label] = min(text, earlier)


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
