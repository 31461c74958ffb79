"""list_images: the facts of a set -> ListedImages, the images that the filters of the page search,
as compressed columns.

A page of a million images would be too large: it lists LISTED of them.
"""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.reporting.census import UNLABELED
from imagenet_prep.reporting.charts import Chart
from imagenet_prep.reporting.odd_images import ANY_MARK, MARKED, ODD, OddImages
from imagenet_prep.reporting.page_facts import Facts

LISTED = 50_000
"""Images that a page lists at most: about 1 MB."""

SHOWN_REASONS = 20
"""Reasons of marks that are filters of their own, the commonest first."""

NO_CODE = np.iinfo(np.uint32).max
"""The code of an image that has no value, in 32 bits; smaller types hold fewer of them."""

PROBLEM = "problem"


class Answer(NamedTuple):
    """A value that images can be filtered by: ``rows`` are those of the census that have it.

    ``token`` names it in the address of the page.
    """

    token: str
    title: str
    rows: Sequence[int]


class Filter(NamedTuple):
    """A question about images of which an image may have several answers, such as what is odd."""

    key: str
    title: str
    answers: Sequence[Answer]


class Column(NamedTuple):
    """Values of the listed images in order, compressed (zlib).

    ``type`` is "text", a line per value, or a NumPy type of little-endian numbers.
    """

    name: str
    type: str
    content: bytes


class ListedImages(Struct, frozen=True):
    """The images that the filters search.

    ``rows`` are rows of the census. ``position_of`` is the position in ``rows`` of a row.
    ``columns`` "by KEY" hold a code for each image: the position of its only answer, or a bit per
    answer; the others hold what is shown of an image.
    """

    rows: NDArray[np.intp]
    columns: Sequence[Column]
    filters: Sequence[Filter]
    record_count: int

    def position_of(self, row: int) -> int:
        """The position of a row of the census."""
        return int(np.searchsorted(self.rows, row))

    def has_answer(self, key: str, token: str) -> bool:
        """Whether images can be filtered by this."""
        for filter in self.filters:
            tokens = {answer.token for answer in filter.answers}
            if filter.key == key and token in tokens:
                return True
        return False

    @property
    def is_sample(self) -> bool:
        """Whether the set has more records than are listed."""
        return len(self.rows) < self.record_count


def list_images(facts: Facts, odd: Iterable[OddImages], labels: Sequence[int]) -> ListedImages:
    """The images that the filters search; ``labels`` are those of the classes, in order."""
    record_count = len(facts.census.rows)
    rows = choose_listed(facts)
    filters = [filter for filter in _several_answers(facts, odd) if filter.answers]
    columns = [*_shown_columns(facts, rows), *_single_answers(facts, rows, labels)]
    for filter in filters:
        bits = _bits(filter, record_count)[rows]
        columns.append(_pack(f"by {filter.key}", bits))
    return ListedImages(rows, columns, filters, record_count)


def choose_listed(facts: Facts) -> NDArray[np.intp]:
    """The rows to list: all, or the flagged ones, those with a picture,
    and others by chance, which depends on the image alone.
    """
    count = len(facts.census.rows)
    if count <= LISTED:
        return np.arange(count)
    marked_rows = facts.marked.by_row if facts.marked else ()
    is_marked, has_picture = np.zeros((2, count), bool)
    is_marked[list(marked_rows)] = True
    has_picture[list(facts.pictures)] = True
    chance = facts.census.rows["chance"]
    order = np.lexsort((np.arange(count), chance, ~has_picture, ~is_marked))
    return np.sort(order[:LISTED])


# what images can be filtered by -------------------------------------------------------------------


def _several_answers(facts: Facts, odd: Iterable[OddImages]) -> Iterator[Filter]:
    """The problems of images, their odd kinds, and the reasons of their marks."""
    yield Filter(PROBLEM, "Problems", list(_problems(facts)))
    odd_answers = []
    for group in odd:
        if group.filter == ODD and len(group.rows):
            answer = Answer(group.token, group.title, group.rows)
            odd_answers.append(answer)
    yield Filter(ODD, "Odd", odd_answers)
    yield Filter(MARKED, "Marked", list(_reasons(facts)))


def _problems(facts: Facts) -> Iterator[Answer]:
    """The kinds of problems, each with the images of its records, or of its shards.

    Of a shard with problems of single records, only these records are meant.
    """
    records_by_place: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for problem in facts.verdict.problems:
        numbers = records_by_place[problem.kind.value, problem.subject]
        if problem.record is not None:
            numbers.add(problem.record)
    rows_by_kind: defaultdict[str, list[int]] = defaultdict(list)
    rows_by_shard = _rows_by_shard(facts)
    for (kind, shard), numbers in records_by_place.items():
        rows = rows_by_shard.get(shard, range(0))
        if numbers:
            rows_by_kind[kind] += [rows[number] for number in numbers if number < len(rows)]
        else:
            rows_by_kind[kind] += rows
    for kind, rows_of_kind in rows_by_kind.items():
        if rows_of_kind:
            yield Answer(kind, kind, rows_of_kind)


def _rows_by_shard(facts: Facts) -> dict[str, range]:
    """The rows of the census of each shard."""
    shards = facts.census.shards
    counts = np.bincount(facts.census.rows["shard"], minlength=len(shards))
    rows_by_shard: dict[str, range] = {}
    start = 0
    for shard, count in zip(shards, counts.tolist(), strict=True):
        end = start + count
        rows_by_shard[shard] = range(start, end)
        start = end
    return rows_by_shard


def _reasons(facts: Facts) -> Iterator[Answer]:
    """All flagged images, then those of each reason."""
    if facts.marked is None:
        return
    yield Answer(ANY_MARK, "all", list(facts.marked.by_row))
    rows_by_reason: defaultdict[str, list[int]] = defaultdict(list)
    for row, mark in facts.marked.by_row.items():
        if mark.reason:
            rows_by_reason[mark.reason].append(row)
    most_first = sorted(rows_by_reason, key=lambda reason: -len(rows_by_reason[reason]))
    for reason in most_first[:SHOWN_REASONS]:
        yield Answer(f"because {reason}", reason, rows_by_reason[reason])


def _bits(filter: Filter, row_count: int) -> NDArray[np.uint32]:
    """A bit per answer for each row of the census."""
    bits = np.zeros(row_count, np.uint32)
    for position, answer in enumerate(filter.answers):
        bits[list(answer.rows)] |= np.uint32(1 << position)
    return bits


def _single_answers(
    facts: Facts, rows: NDArray[np.intp], labels: Sequence[int]
) -> Iterator[Column]:
    """The bar of each chart, the class and the split of each image: a column of codes each."""
    for chart in facts.charts:
        yield _pack(f"by {chart.key}", _bar_codes(chart, rows))
    listed = facts.census.rows[rows]
    if labels:
        codes = np.searchsorted(labels, listed["label"]).astype(np.uint32)
        codes[listed["marks"] & UNLABELED != 0] = NO_CODE
        yield _pack("by class", codes)
        yield _pack("labels", np.array(labels, np.float64))
    yield _pack("by split", listed["split"])


def _bar_codes(chart: Chart, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
    no_bar = np.iinfo(np.uint8).max
    codes = np.full(len(rows), no_bar, np.uint8)
    for position, bar in enumerate(chart.bars):
        codes[chart.is_in(bar, rows)] = position
    return codes


# what is shown of an image ------------------------------------------------------------------------


def _shown_columns(facts: Facts, rows: NDArray[np.intp]) -> Iterator[Column]:
    """Name and place of each image, its size and its boxes, and why it is flagged."""
    census = facts.census
    listed = census.rows[rows]
    is_listed = np.zeros(len(census.rows), bool)
    is_listed[rows] = True
    filenames = itertools.compress(census.list_filenames(), is_listed)
    yield _pack_text("filename", filenames)
    yield _pack_text("shards", census.shards)
    for name in ("shard", "number", "width", "height", "boxes"):
        yield _pack(name, listed[name])
    yield _pack("bytes", np.minimum(listed["bytes"], NO_CODE - 1))
    if facts.marked:
        marks = facts.marked.by_row
        reasons: list[str] = []
        for row in rows.tolist():
            mark = marks.get(row)
            reasons.append("" if mark is None else mark.text)
        yield _pack_text("why", reasons)


def _pack_text(name: str, lines: Iterable[str]) -> Column:
    text = "\n".join(line.replace("\n", " ") for line in lines)
    content = text.encode("utf-8", "replace")
    return Column(name, "text", zlib.compress(content))


def _pack(name: str, numbers: NDArray[Any]) -> Column:
    """A column of numbers, in the smallest type that holds them; no code stays no code."""
    if numbers.dtype.kind == "u":
        numbers = numbers.astype(_smallest_type(numbers))
    little_endian = numbers.astype(numbers.dtype.newbyteorder("<"))
    content = zlib.compress(little_endian.tobytes())
    return Column(name, numbers.dtype.name, content)


def _smallest_type(numbers: NDArray[Any]) -> np.dtype[Any]:
    codes = numbers[numbers != NO_CODE]
    largest = int(codes.max(initial=0))
    # One more: the largest number of a type is no code.
    return np.dtype(np.min_scalar_type(largest + 1))
