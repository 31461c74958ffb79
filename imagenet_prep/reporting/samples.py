"""choose: a census -> the records to show. Images: their thumbnails and colours, and the duplicates
among all images.

One worker per shard reads the images again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.errors import InputError
from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Box, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.census import BROKEN, UNLABELED, Census, each_shard
from imagenet_prep.reporting.charts import Chart
from imagenet_prep.reporting.lenient import Names, Shown, look
from imagenet_prep.reporting.near_duplicates import group_near, hash_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import FramingError

if TYPE_CHECKING:
    from PIL.Image import Image

Order = NDArray[np.intp]
T = TypeVar("T")


class Form(NamedTuple):
    """The form of a shown image: the longer side in pixels, the format, its quality."""

    max_side: int
    format: Literal["jpeg", "webp"]
    quality: int


SAMPLE = Form(max_side=400, format="jpeg", quality=75)
"""Sharp at the size of the page's grid on most screens."""

ODD = Form(max_side=240, format="jpeg", quality=75)

OF_A_CLASS, OF_A_BAR = 3, 2
"""Images of each class, and of each bar of a chart, that a filter can show."""

SHOWN_CLASSES = 2000
"""Classes, by label, that the page lists and shows images of."""

_MORE_BYTES, _MOST_BYTES_A_PIXEL = 2_500_000, 0.15
"""Bytes of all further thumbnails together, and of one per squared longer side:
a photograph has about as many.
"""

OTHER_SHARE = 4
"""One of this many samples comes from another split than the largest, if there are several."""

MEASURED = 512
"""Images of one split that give the mean and the standard deviation of the channels."""

SHORT_SIDE, CROP = 256, 224
"""In pixels: a measured image is resized and cropped as torchvision's
Resize and CenterCrop would.
"""


class Sample(Struct, frozen=True):
    """An image to show.

    ``size`` is the width and height of the image in pixels, and ``boxes`` are relative to it, each
    with its name or "". ``thumbnail`` has ``form``, or is b"" if the image can't be decoded.
    ``file_size`` is that of the image itself in bytes. ``row`` is that of the census, ``offset``
    the byte of the record in its shard.
    """

    row: int
    offset: int
    filename: str
    label: int | None
    wnid: str
    size: tuple[int, int]
    file_size: int
    boxes: tuple[tuple[Box, str], ...]
    form: Form
    thumbnail: bytes


class Colours(NamedTuple):
    """Mean and standard deviation of red, green and blue, 0 to 1,
    over all pixels of some images of a split.
    """

    split: int
    images: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


# which images -------------------------------------------------------------------------------------


def best_first(census: Census) -> Order:
    """The rows with an image: those with boxes first, then by chance,
    which depends on the image alone.
    """
    rows = census.rows
    has_image = rows["bytes"] > 0
    is_sound = rows["marks"] & BROKEN == 0
    usable = np.flatnonzero(has_image & is_sound)
    chance = rows["chance"][usable]
    has_no_boxes = rows["boxes"][usable] == 0
    order = np.lexsort((usable, chance, has_no_boxes))
    return usable[order]


def choose(census: Census, best: Order, count: int) -> list[int]:
    """``count`` rows of all splits, spread evenly over the classes;
    the same for the same records.
    """
    split_of = census.rows["split"]
    sizes = np.bincount(split_of)
    rows_by_split: list[Order] = []
    for split in np.argsort(-sizes, kind="stable"):
        rows_of_split = best[split_of[best] == split]
        if len(rows_of_split):
            rows_by_split.append(rows_of_split)

    share = count // OTHER_SHARE // max(1, len(rows_by_split) - 1)
    shares = [min(share, len(rows)) for rows in rows_by_split]
    if shares:
        shares[0] = 0
    # The largest split fills what the others lack, and the reverse.
    for position, rows in enumerate(rows_by_split):
        lacking = count - sum(shares)
        shares[position] = min(len(rows), shares[position] + lacking)

    chosen: list[int] = []
    for rows, share in zip(rows_by_split, shares, strict=True):
        chosen += spread(census, rows, share)
    return chosen


def spread(census: Census, best: Order, count: int) -> list[int]:
    """The next row of every class, in turn; a last, partial turn uses classes at even distances."""
    by_turn, sizes = _turns(census, best)
    ends = np.cumsum(sizes)
    whole_turns = int(np.searchsorted(ends, count, "right"))
    start = int(ends[whole_turns - 1]) if whole_turns else 0
    positions = list(range(start))
    if whole_turns < len(sizes):
        lacking = count - start
        size = int(sizes[whole_turns])
        for k in range(lacking):
            distance = (2 * k + 1) * size // (2 * lacking)
            positions.append(start + distance)
    if not positions:
        return []
    rows: list[int] = by_turn[positions].tolist()
    return rows


def _turns(census: Census, best: Order) -> tuple[Order, Order]:
    """The first row of every class, by label, then the second of each, and so on;
    the number of rows in each turn.
    """
    rows = census.rows[best]
    after_all_labels = np.iinfo(np.int64).max
    labels = np.where(rows["marks"] & UNLABELED, after_all_labels, rows["label"])
    by_class = np.argsort(labels, kind="stable")
    _, starts, counts = np.unique(labels[by_class], return_index=True, return_counts=True)
    turn = np.arange(len(best)) - np.repeat(starts, counts)
    by_turn = by_class[np.argsort(turn, kind="stable")]
    return best[by_turn], np.bincount(turn)


def choose_more(census: Census, best: Order, charts: Iterable[Chart]) -> list[int]:
    """Rows that a filter can show: OF_A_BAR of each bar of each chart,
    then OF_A_CLASS of each listed class.
    """
    chosen = []
    for chart in charts:
        for bar in chart.bars:
            rows_of_bar = best[chart.is_in(bar, best)]
            chosen.append(rows_of_bar[:OF_A_BAR])
    labels = census.rows["label"][best]
    listed_labels = np.unique(labels)[:SHOWN_CLASSES]
    rows_of_listed = best[np.isin(labels, listed_labels)]
    by_turn, sizes = _turns(census, rows_of_listed)
    count = sizes[:OF_A_CLASS].sum()
    chosen.append(by_turn[:count])
    rows = np.concatenate(chosen).tolist()
    return list(dict.fromkeys(rows))


def form_of(count: int) -> Form:
    """The form of so many further images: smaller if they are more,
    so that the page stays small.
    """
    pixels_per_image = int(_MORE_BYTES / _MOST_BYTES_A_PIXEL / max(1, count))
    side = math.isqrt(pixels_per_image)
    return Form(min(240, side), "webp", 60)


def within_limit(samples: Iterable[Sample]) -> Iterator[Sample]:
    """As many samples as fit on the page."""
    room = _MORE_BYTES
    for sample in samples:
        room -= len(sample.thumbnail)
        if room >= 0:
            yield sample


# reading them -------------------------------------------------------------------------------------

LookAt = Callable[[int, int, Shown, memoryview], T]
"""A function of a row, the offset of its record, what the record holds, and its image;
picklable.
"""


class Images(Struct, frozen=True):
    """The images of a census, read again by their rows;
    ``names`` are those of a recipe's records.
    """

    layout: Layout
    census: Census
    names: Names
    engine: Engine
    progress: Progress

    def visit(self, rows: Iterable[int], look_at: LookAt[T], label: str) -> dict[int, T]:
        """The result of ``look_at`` by row, in order;
        images that can't be decoded, or are gone, have none.
        """
        rows_by_shard: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for row in rows:
            shard, number = self.census.place(row)
            rows_by_shard[shard][number] = row
        if not rows_by_shard:
            return {}
        visit = functools.partial(_visit, self.layout, self.names, dict(rows_by_shard), look_at)
        results: dict[int, T] = {}
        shards = sorted(rows_by_shard)
        outcomes = each_shard(self.engine, visit, shards, label, self.progress)
        for _, outcome in outcomes:
            if not isinstance(outcome, Exception):
                results.update(outcome)
        return dict(sorted(results.items()))

    def show(
        self, forms: Mapping[int, Form], measured: Sequence[int]
    ) -> tuple[dict[int, Sample], Colours]:
        """The images in these forms, by row, and the colours of the ``measured`` rows."""
        look_at = functools.partial(_take, forms, frozenset(measured))
        rows = {**forms, **dict.fromkeys(measured)}
        samples = {}
        colour_counts = []
        results = self.visit(rows, look_at, "samples")
        for row, (sample, counts) in results.items():
            if sample is not None:
                samples[row] = sample
            if counts:
                colour_counts.append(counts)
        split = 0
        if measured:
            split = int(self.census.rows["split"][measured[0]])
        return samples, _measure_colours(split, colour_counts)

    def find_copies(self) -> list[list[int]]:
        """The rows of each image file that several records hold."""
        rows = self.census.rows
        keys = rows["bytes"] << np.uint64(32) | rows["ends"]
        _, key_of_row, counts = np.unique(keys, return_inverse=True, return_counts=True)
        # Only images of the same length and the same ends are read.
        is_likely = (counts[key_of_row] > 1) & (rows["bytes"] > 0)
        likely_rows = np.flatnonzero(is_likely).tolist()
        digests = self.visit(likely_rows, _digest, "duplicates")
        rows_by_digest: defaultdict[str, list[int]] = defaultdict(list)
        for row, digest in digests.items():
            rows_by_digest[digest].append(row)
        return [group for group in rows_by_digest.values() if len(group) > 1]

    def find_near(self, copies: Sequence[Sequence[int]]) -> list[list[int]]:
        """The rows of images that look alike, unless all are copies of one file. Every image is
        decoded.

        Raises:
            UsageError: ImageHash is not installed.
        """
        images = np.flatnonzero(self.census.rows["bytes"]).tolist()
        hashes = self.visit(images, _hash, "near-duplicates")
        file_of = {}
        for file_number, copied_rows in enumerate(copies):
            file_of.update(dict.fromkeys(copied_rows, file_number))
        rows = list(hashes)
        numbers = np.array(list(hashes.values()), np.uint64)
        groups = []
        for positions in group_near(numbers):
            group = [rows[position] for position in positions]
            files = {file_of.get(row, -1 - row) for row in group}
            if len(files) > 1:
                groups.append(group)
        return groups


def _measure_colours(split: int, counts_by_image: Sequence[list[int]]) -> Colours:
    """Mean and standard deviation of images whose colours ``count_colours`` counted."""
    # without images, one pixel of each level: no division by zero
    by_level: NDArray[Any] = np.ones((3, 256))
    if counts_by_image:
        counts = np.sum(counts_by_image, axis=0, dtype=np.int64)
        by_level = counts.reshape(3, 256)
    levels = np.arange(256) / 255
    pixel_count = by_level[0].sum()
    mean = by_level @ levels / pixel_count
    mean_of_squares = by_level @ levels**2 / pixel_count
    deviation = np.sqrt(mean_of_squares - mean**2)
    image_count = len(counts_by_image)
    return Colours(split, image_count, tuple(mean.tolist()), tuple(deviation.tolist()))


def _visit(
    layout: Layout,
    names: Names,
    rows_by_shard: Mapping[str, Mapping[int, int]],
    look_at: LookAt[T],
    shard: str,
) -> list[tuple[int, T]]:
    """The results of one shard, by row; ``rows_by_shard`` has rows by shard and number there."""
    results = []
    rows = rows_by_shard[shard]
    record_count = max(rows) + 1
    path = layout.shard_path(shard)
    with contextlib.suppress(FramingError, InputError):
        records = itertools.islice(Shard.open(path).unchecked(), record_count)
        for number, (offset, data) in enumerate(records):
            row = rows.get(number)
            if row is None:
                continue
            shown = look(data, names)
            if shown is None or shown.encoded is None:
                continue
            with contextlib.suppress(ImageError):
                result = look_at(row, offset, shown, shown.encoded)
                results.append((row, result))
    return results


def _take(
    forms: Mapping[int, Form],
    measured: frozenset[int],
    row: int,
    offset: int,
    shown: Shown,
    encoded: memoryview,
) -> tuple[Sample | None, list[int] | None]:
    """The image in its form, and how many of its pixels have each value of red,
    then green, then blue.
    """
    form = forms.get(row)
    is_measured = row in measured
    side = 0
    if form is not None:
        side = form.max_side
    if is_measured:
        side = max(side, SHORT_SIDE)
    picture = b""
    colour_counts = None
    size = shown.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page reports it
        image, size = decode(encoded, side)
        if form is not None:
            picture = thumbnail(image, size, form)
        if is_measured:
            colour_counts = count_colours(image)
    if form is None:
        return None, colour_counts
    names = shown.box_names or [""] * len(shown.boxes)
    boxes: list[tuple[Box, str]] = []
    for box, name in zip(shown.boxes, names, strict=True):
        if box.is_inside:
            boxes.append((box, name))
    sample = Sample(
        row=row,
        offset=offset,
        filename=shown.filename,
        label=shown.label,
        wnid=shown.wnid,
        size=size,
        file_size=len(encoded),
        boxes=tuple(boxes),
        form=form,
        thumbnail=picture,
    )
    return sample, colour_counts


def decode(encoded: memoryview, side: int) -> tuple[Image, tuple[int, int]]:
    """An image, at reduced scale if that is enough for ``side`` pixels, and its original width and
    height.

    Raises:
        ImageError: it can't be decoded.
    """
    from PIL import Image

    _, width, height, _ = pixels.read_facts(encoded)
    target = Reencode(max_side=side).target(width, height)
    smallest = min(target)
    image = pixels.decode_array(encoded, pixels.REDUCE * smallest)
    return Image.fromarray(image), (width, height)


def thumbnail(image: Image, size: tuple[int, int], form: Form) -> bytes:
    """An image of this original size, reduced and encoded."""
    target = Reencode(max_side=form.max_side).target(*size)
    shrunk = pixels.shrink(image, target)
    encode = pixels.encode if form.format == "jpeg" else pixels.encode_webp
    return encode(shrunk, form.quality)


def count_colours(image: Image) -> list[int]:
    """How many pixels have each value of red, then of green and blue,
    after Resize(256) and CenterCrop(224).
    """
    from PIL.Image import Resampling

    side = min(image.size) * CROP / SHORT_SIDE
    left, top = ((length - side) / 2 for length in image.size)
    box = (left, top, left + side, top + side)
    crop = image.resize((CROP, CROP), Resampling.BILINEAR, box)
    return crop.histogram()


def _digest(_row: int, _offset: int, _shown: Shown, encoded: memoryview) -> str:
    return hashlib.sha256(encoded).hexdigest()


def _hash(_row: int, _offset: int, _shown: Shown, encoded: memoryview) -> int:
    image, _ = decode(encoded, 64)
    return hash_of(image)
