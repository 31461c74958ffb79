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
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images import pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Box, Engine, Progress
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting.census import BROKEN, UNLABELED, Census, each_shard
from imagenet_prep.reporting.charts import Chart
from imagenet_prep.reporting.lenient import Names, Shown, look
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

NEAR = 3
"""Bits in which the 64-bit perceptual hashes of near-duplicates differ at most."""


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
    usable = np.flatnonzero((rows["bytes"] > 0) & (rows["marks"] & BROKEN == 0))
    found = rows[usable]
    return usable[np.lexsort((usable, found["chance"], found["boxes"] == 0))]


def choose(census: Census, best: Order, count: int) -> list[int]:
    """``count`` rows of all splits, spread evenly over the classes;
    the same for the same records.
    """
    split_of = census.rows["split"]
    sizes = np.bincount(split_of)
    groups = [best[split_of[best] == split] for split in np.argsort(-sizes, kind="stable")]
    groups = [group for group in groups if len(group)]
    share = count // OTHER_SHARE // max(1, len(groups) - 1)
    shares = {number: min(share, len(group)) for number, group in enumerate(groups) if number}
    for number, group in enumerate(
        groups
    ):  # the largest fills what the others lack, and the reverse
        rest = count - sum(shares.values())
        shares[number] = min(len(group), shares.get(number, 0) + rest)
    return [
        row for number, group in enumerate(groups) for row in spread(census, group, shares[number])
    ]


def spread(census: Census, best: Order, count: int) -> list[int]:
    """The next row of every class, in turn; a last, partial turn uses classes at even distances."""
    by_turn, sizes = _turns(census, best)
    ends = np.cumsum(sizes)
    turns = int(np.searchsorted(ends, count, "right"))
    taken = int(ends[turns - 1]) if turns else 0
    rest = count - taken
    partial = (
        [taken + (2 * k + 1) * int(sizes[turns]) // (2 * rest) for k in range(rest)]
        if turns < len(sizes)
        else []
    )
    return by_turn[[*range(taken), *partial]].tolist() if taken or partial else []


def _turns(census: Census, best: Order) -> tuple[Order, Order]:
    """The first row of every class, by label, then the second of each, and so on;
    the number of rows in each turn.
    """
    rows = census.rows[best]
    labels = np.where(rows["marks"] & UNLABELED, np.iinfo(np.int64).max, rows["label"])
    by_class = np.argsort(labels, kind="stable")
    _, starts, counts = np.unique(labels[by_class], return_index=True, return_counts=True)
    turn = np.arange(len(best)) - np.repeat(starts, counts)
    return best[by_class[np.argsort(turn, kind="stable")]], np.bincount(turn)


def choose_more(census: Census, best: Order, charts: Iterable[Chart]) -> list[int]:
    """Rows that a filter can show: OF_A_BAR of each bar of each chart,
    then OF_A_CLASS of each listed class.
    """
    bars = [best[chart.is_in(bar, best)][:OF_A_BAR] for chart in charts for bar in chart.bars]
    labels = census.rows["label"][best]
    listed = best[np.isin(labels, np.unique(labels)[:SHOWN_CLASSES])]
    by_turn, sizes = _turns(census, listed)
    return list(
        dict.fromkeys(np.concatenate([*bars, by_turn[: sizes[:OF_A_CLASS].sum()]]).tolist())
    )


def form_of(count: int) -> Form:
    """The form of so many further images: smaller if they are more,
    so that the page stays small.
    """
    return Form(
        min(240, math.isqrt(int(_MORE_BYTES / _MOST_BYTES_A_PIXEL / max(1, count)))), "webp", 60
    )


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
        wanted: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for row in rows:
            shard, number = self.census.place(row)
            wanted[shard][number] = row
        work = functools.partial(_visit, self.layout, self.names, dict(wanted), look_at)
        found = (
            each_shard(self.engine, work, sorted(wanted), label, self.progress) if wanted else ()
        )
        return dict(sorted(pair for _, pairs in found if isinstance(pairs, list) for pair in pairs))

    def show(
        self, forms: Mapping[int, Form], measured: Sequence[int]
    ) -> tuple[dict[int, Sample], Colours]:
        """The images in these forms, by row, and the colours of the ``measured`` rows."""
        look_at = functools.partial(_take, forms, frozenset(measured))
        found = self.visit({**forms, **dict.fromkeys(measured)}, look_at, "samples")
        counts = [counts for _, counts in found.values() if counts]
        by_value = (
            np.sum(counts, axis=0, dtype=np.int64).reshape(3, 256) if counts else np.ones((3, 256))
        )
        levels, total = np.arange(256) / 255, by_value[0].sum()
        mean = by_value @ levels / total
        deviation = np.sqrt(by_value @ levels**2 / total - mean**2)
        samples = {row: sample for row, (sample, _) in found.items() if sample}
        split = int(self.census.rows["split"][measured[0]]) if measured else 0
        return samples, Colours(split, len(counts), tuple(mean.tolist()), tuple(deviation.tolist()))

    def find_copies(self) -> list[list[int]]:
        """The rows of each image file that several records hold."""
        rows = self.census.rows
        keys = rows["bytes"] << np.uint64(32) | rows["ends"]
        _, groups, counts = np.unique(keys, return_inverse=True, return_counts=True)
        likely = np.flatnonzero(
            (counts[groups] > 1) & (rows["bytes"] > 0)
        ).tolist()  # only these are read
        by_digest: defaultdict[str, list[int]] = defaultdict(list)
        for row, digest in self.visit(likely, _digest, "duplicates").items():
            by_digest[digest].append(row)
        return [group for group in by_digest.values() if len(group) > 1]

    def find_near(self, copies: Sequence[Sequence[int]]) -> list[list[int]]:
        """The rows of images that look alike, unless all are copies of one file. Every image is
        decoded.

        Raises:
            UsageError: ImageHash is not installed.
        """
        hashes = self.visit(
            np.flatnonzero(self.census.rows["bytes"]).tolist(), _hash, "near-duplicates"
        )
        group_of = {row: number for number, group in enumerate(copies) for row in group}
        rows = list(hashes)
        groups = [
            [rows[k] for k in group]
            for group in group_near(np.array([*hashes.values()], np.uint64))
        ]
        return [
            group for group in groups if len({group_of.get(row, -1 - row) for row in group}) > 1
        ]


def _visit(
    layout: Layout,
    names: Names,
    wanted: Mapping[str, Mapping[int, int]],
    look_at: LookAt[T],
    shard: str,
) -> list[tuple[int, T]]:
    """The results of one shard; ``wanted`` are rows by shard and number there."""
    found, rows = [], wanted[shard]
    with contextlib.suppress(FramingError, InputError):
        records = Shard.open(layout.shard_path(shard)).unchecked()
        for number, (offset, data) in enumerate(itertools.islice(records, max(rows) + 1)):
            if number in rows and (seen := look(data, names)) and seen.encoded is not None:
                with contextlib.suppress(ImageError):
                    found.append((rows[number], look_at(rows[number], offset, seen, seen.encoded)))
    return found


def _take(
    forms: Mapping[int, Form],
    measured: frozenset[int],
    row: int,
    offset: int,
    seen: Shown,
    encoded: memoryview,
) -> tuple[Sample | None, list[int] | None]:
    """The image in its form, and how many of its pixels have each value of red,
    then green, then blue.
    """
    form, picture, counts, size = forms.get(row), b"", None, seen.size or (4, 3)
    with contextlib.suppress(ImageError):  # the page reports it
        image, size = decode(
            encoded, max(form.max_side if form else 0, SHORT_SIDE if row in measured else 0)
        )
        picture = thumbnail(image, size, form) if form else b""
        counts = count_colours(image) if row in measured else None
    if form is None:
        return None, counts
    named = zip(seen.boxes, seen.box_names or [""] * len(seen.boxes), strict=True)
    boxes = tuple((box, name) for box, name in named if box.is_inside)
    sample = Sample(
        row, offset, seen.filename, seen.label, seen.wnid, size, len(encoded), boxes, form, picture
    )
    return sample, counts


def decode(encoded: memoryview, side: int) -> tuple[Image, tuple[int, int]]:
    """An image, at reduced scale if that is enough for ``side`` pixels, and its original width and
    height.

    Raises:
        ImageError: it can't be decoded.
    """
    from PIL import Image

    _, *sides, _ = pixels.read_facts(encoded)
    size = sides[0], sides[1]
    smallest = min(Reencode(max_side=side).target(*size))
    return Image.fromarray(pixels.decode_array(encoded, pixels.REDUCE * smallest)), size


def thumbnail(image: Image, size: tuple[int, int], form: Form) -> bytes:
    """An image of this original size, reduced and encoded."""
    encode = pixels.encode if form.format == "jpeg" else pixels.encode_webp
    return encode(
        pixels.shrink(image, Reencode(max_side=form.max_side).target(*size)), form.quality
    )


def count_colours(image: Image) -> list[int]:
    """How many pixels have each value of red, then of green and blue,
    after Resize(256) and CenterCrop(224).
    """
    from PIL.Image import Resampling

    side = min(image.size) * CROP / SHORT_SIDE
    left, top = ((length - side) / 2 for length in image.size)
    box = (left, top, left + side, top + side)
    return image.resize((CROP, CROP), Resampling.BILINEAR, box).histogram()


def _digest(_row: int, _offset: int, _seen: Shown, encoded: memoryview) -> str:
    return hashlib.sha256(encoded).hexdigest()


def _hash(_row: int, _offset: int, _seen: Shown, encoded: memoryview) -> int:
    """The perceptual hash of an image."""
    from imagehash import phash

    image, _ = decode(encoded, 64)
    return int.from_bytes(np.packbits(phash(image).hash).tobytes(), "big")


def require_imagehash() -> None:
    """Check that the library for near-duplicates is installed.

    Raises:
        UsageError: it is not.
    """
    try:
        import imagehash  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "near-duplicates require ImageHash", str(error), "pip install 'imagenet-prep[report]'"
        ) from error


def group_near(hashes: NDArray[np.uint64]) -> list[list[int]]:
    """The positions of hashes that differ in NEAR bits at most, directly or through others.

    Two such hashes agree in at least one of NEAR + 1 bands of bits, so only hashes with a common
    band are compared.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    unique, inverse = np.unique(hashes, return_inverse=True)
    pairs, width = [np.empty((2, 0), np.intp)], 64 // (NEAR + 1)
    for band in range(NEAR + 1):
        part = unique >> np.uint64(band * width) & np.uint64((1 << width) - 1)
        order = np.argsort(part, kind="stable")
        for lag in range(1, len(unique)):
            same = np.flatnonzero(part[order[lag:]] == part[order[:-lag]])
            if not len(same):
                break
            pair = np.stack([order[same], order[same + lag]])
            bits = np.unpackbits(
                (unique[pair[0]] ^ unique[pair[1]]).view(np.uint8).reshape(-1, 8), axis=1
            ).sum(1)
            pairs.append(pair[:, bits <= NEAR])
    ends = np.concatenate(pairs, axis=1)
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), (len(unique), len(unique)))
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for position, group in enumerate(
        connected_components(graph, directed=False)[1][inverse].tolist()
    ):
        groups[group].append(position)
    return [group for group in groups.values() if len(group) > 1]
