"""check_images: the images of listed splits, read and checked on all workers -> ImageFindings.
Nothing is written.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from imagenet_prep.errors import InputError, in_a_line
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Engine, Failed, Item, Problem, ProblemKind, Progress
from imagenet_prep.recorders.recorder import Recorder, looser_check, with_place
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column
from imagenet_prep.sources.row_bytes import read_in_turn
from imagenet_prep.sources.slices import Buffer, Reader
from imagenet_prep.tfrecord import crc32c

MOST = 10_000
"""The number of images of each sort that are named; further ones are counted."""

_CHUNK, _ROWS = 4 << 20, 128  # bytes and images per task: long reads, and progress that moves
_SHOWN = 3

_REMEDY = "get a sound copy of it"


class RawSplit(Struct, frozen=True):
    """One split of a copy, as it was listed.

    Args:
        name: "train", ...
        place: what holds its images, for messages: "the folder train".
        catalog: its images.
        recorder: checks an image as convert would, before it makes the record.
        expected: how many images there should be; None if nobody knows.
    """

    name: str
    place: str
    catalog: Catalog
    recorder: Recorder
    expected: int | None = None


class Named(Struct):
    """Images with a remark each: how many in all by remark, and the first ones as "a.jpg (png)"."""

    counts: Counter[str] = field(default_factory=Counter)
    names: list[str] = []

    def add(self, remarks: Sequence[tuple[str, str]]) -> None:
        """Add names with their remarks."""
        self.counts.update(remark for _, remark in remarks)
        first_remarks = remarks[: MOST - len(self.names)]
        self.names += [f"{name} ({remark})" for name, remark in first_remarks]

    @property
    def total(self) -> int:
        """The number of images."""
        return sum(self.counts.values())


class ImageFindings(Struct):
    """The findings in all images.

    Args:
        problems: an image each, or a file that can't be read.
        damaged: how many images are damaged or unreadable; more than MOST are in no problem of
            their own.
        odd: images that convert would change: their former format.
        warned: unusual images whose pixels are whole.
        twins: pairs of images with the same length and checksum; the first names, and how many
            pairs there are.
    """

    problems: list[Problem] = []
    damaged: int = 0
    odd: Named = field(default_factory=Named)
    warned: Named = field(default_factory=Named)
    twins: list[tuple[str, str]] = []
    twin_count: int = 0


# in a worker --------------------------------------------------------------------------------------


class ImageTask(Struct, frozen=True):
    """Images to check: neighbours in their archive or folder;
    ``start`` is the place of the first in its split.
    """

    split: str
    start: int
    catalog: Catalog
    recorder: Recorder


class ImageReport(Struct, frozen=True):
    """The findings in the images of a task; ``checksums`` are CRC32C by image,
    0 for unreadable ones.
    """

    problems: tuple[Problem, ...]
    odd: tuple[tuple[str, str], ...]
    warned: tuple[tuple[str, str], ...]
    checksums: Column


class ImageCheck(Struct, frozen=True):
    """Checks images as convert does before it writes their records;
    picklable. Its reader keeps archives open.
    """

    reader: Reader = field(default_factory=Reader)

    def __call__(self, task: ImageTask) -> ImageReport:
        """The findings in the images of a task; all faults of an image are reported as Problems."""
        problems: list[Problem] = []
        repaired_images: list[tuple[str, str]] = []
        warned_images: list[tuple[str, str]] = []
        checksums = np.zeros(len(task.catalog), np.uint32)
        for row, (item, data) in enumerate(self._images(task.catalog)):
            if isinstance(data, InputError):
                problems.append(_unreadable(item.filename, data))
                continue
            checksums[row] = crc32c(data)
            try:
                recorded = task.recorder.record(item, data)
            except (ImageError, InputError) as error:
                problem = _bad_image(task, row, item, data, error)
                problems.append(problem)
                continue
            if recorded.repair:
                repaired_images.append((item.filename, recorded.repair))
            if recorded.warning:
                warned_images.append((item.filename, recorded.warning))
        return ImageReport(tuple(problems), tuple(repaired_images), tuple(warned_images), checksums)

    def _images(self, catalog: Catalog) -> Iterator[tuple[Item, Buffer | InputError]]:
        """Each image with its bytes, or with the error that says why it can't be read."""
        items = catalog.items()
        row = 0
        while row < len(catalog):
            unread_images = catalog.picked(range(row, len(catalog)))
            try:
                for data in read_in_turn(unread_images, self.reader):
                    yield next(items), data
                    row += 1
            except InputError as error:
                # in a file that is read in order, nothing after the fault can be read; elsewhere
                # the next image can
                unread = len(catalog) - row if catalog.is_in_order else 1
                for item in itertools.islice(items, unread):
                    yield item, error
                row += unread


def _bad_image(task: ImageTask, row: int, item: Item, data: Buffer, error: Exception) -> Problem:
    catalog = task.catalog
    detail = with_place(error, catalog.place(row), catalog.lengths[row]).replace("\n", "; ")
    remedy = _REMEDY
    if isinstance(error, ImageError):
        remedy = error.remedy or _REMEDY
        looser = looser_check(task.recorder, item, data)
        if looser:
            remedy += f"; {looser} accepts it unchanged"
    return Problem(ProblemKind.BAD_IMAGE, item.filename, detail, remedy)


# all images ---------------------------------------------------------------------------------------


def check_images(splits: Sequence[RawSplit], engine: Engine, progress: Progress) -> ImageFindings:
    """Read and check every image of these splits, each archive and folder from front to back."""
    findings = ImageFindings()
    orders: dict[str, Column] = {}
    checksums: dict[str, Column] = {}
    total_size = 0
    for split in splits:
        orders[split.name] = _reading_order(split.catalog)
        checksums[split.name] = np.zeros(len(split.catalog), np.uint32)
        total_size += _size_of(split.catalog)
    tasks = itertools.chain.from_iterable(_tasks(split, orders[split.name]) for split in splits)
    progress.begin("verify", total_size, "B")
    for outcome in engine.map(ImageCheck(), tasks):
        task = outcome.task
        if isinstance(outcome, Failed):
            if not isinstance(outcome.error, InputError):
                raise outcome.error
            findings.damaged += len(task.catalog)
            findings.problems.append(_unread(task, outcome.error))
            continue
        report = outcome.value
        _add(findings, report)
        stop = task.start + len(task.catalog)
        rows = orders[task.split][task.start : stop]
        checksums[task.split][rows] = report.checksums
        progress.advance(_size_of(task.catalog))
    progress.end()
    findings.problems.sort(key=str)  # tasks end in any order
    findings.odd.names.sort()
    findings.warned.names.sort()
    _find_twins(findings, splits, checksums)
    return findings


def _size_of(catalog: Catalog) -> int:
    """The bytes of all images."""
    rows = range(len(catalog))
    return catalog.size(rows)


def _unread(task: ImageTask, error: InputError) -> Problem:
    """The problem of a task that failed as a whole: the file broke off while it was read."""
    images = len(task.catalog)
    file_name = task.catalog.container(0).path.name
    return replace(_unreadable(file_name, error), count=images)


def _unreadable(subject: str, error: InputError) -> Problem:
    """The problem of a file that can't be read; the hint of the error is its remedy."""
    reason = in_a_line(InputError(error.what, error.detail))
    return Problem(ProblemKind.UNREADABLE, subject, reason, error.hint)


def _add(findings: ImageFindings, report: ImageReport) -> None:
    findings.damaged += len(report.problems)
    room = max(0, MOST - len(findings.problems))
    findings.problems += report.problems[:room]
    findings.odd.add(report.odd)
    findings.warned.add(report.warned)


def _reading_order(catalog: Catalog) -> Column:
    """The rows in the order of their containers and offsets."""
    return np.lexsort((catalog.offsets, catalog.container_ids))


def _tasks(split: RawSplit, ordered: Column) -> Iterator[ImageTask]:
    """The images of a split in a task each few megabytes;
    all of a file that can only be read in its order.
    """
    catalog = split.catalog
    container_ids = catalog.container_ids[ordered].astype(np.int64)
    if catalog.is_in_order:
        changes = np.diff(container_ids) != 0
    else:
        sizes = np.cumsum(catalog.lengths[ordered], dtype=np.int64) // _CHUNK
        blocks = np.arange(len(ordered)) // _ROWS
        changes = (np.diff(sizes) != 0) | (np.diff(blocks) != 0)
    starts = np.flatnonzero(changes) + 1
    edges = [0, *starts.tolist(), len(ordered)]
    for start, stop in itertools.pairwise(edges):
        if start < stop:
            images = catalog.whole(ordered[start:stop])
            yield ImageTask(split.name, start, images, split.recorder)


def _find_twins(
    findings: ImageFindings, splits: Sequence[RawSplit], checksums: dict[str, Column]
) -> None:
    """Find images with the same length and CRC32C:
    of a million different images, no two have both by chance.
    """
    keys = [np.zeros(0, np.uint64)]
    for split in splits:
        lengths = split.catalog.lengths.astype(np.uint64)
        keys.append(lengths << np.uint64(32) | checksums[split.name])
    together = np.concatenate(keys)
    places = np.argsort(together, kind="stable")
    is_read = (together[places] & np.uint64(0xFFFFFFFF)) != 0
    is_twin = (np.diff(together[places]) == 0) & is_read[1:]
    findings.twin_count = int(is_twin.sum())
    for first_position in np.flatnonzero(is_twin)[:MOST].tolist():
        first_place, second_place = places[first_position : first_position + 2].tolist()
        first_name = _name_at(splits, first_place)
        second_name = _name_at(splits, second_place)
        findings.twins.append((first_name, second_name))


def _name_at(splits: Sequence[RawSplit], place: int) -> str:
    for split in splits:
        if place < len(split.catalog):
            return split.catalog.names[place]
        place -= len(split.catalog)
    raise IndexError(place)


def shown_twins(findings: ImageFindings) -> str:
    """The first pairs of images with the same bytes, for a note."""
    shown = findings.twins[:_SHOWN]
    text = "; ".join(f"{first_image} and {second_image}" for first_image, second_image in shown)
    unshown_count = findings.twin_count - len(shown)
    if unshown_count > 0:
        text += f", and {unshown_count:,} more"
    return text


def check_as(recorder: Recorder, check: Check) -> Recorder:
    """The recorder with this check of images, which are not encoded again."""
    return replace(recorder, check=check, how=None)
