"""needs_behind: images that a download will fetch -> the disk space of the steps after it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_search import find_annotations, find_boxes_csv
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.official import ImageSource
from imagenet_prep.ilsvrc2012.official_tars import ClassTars
from imagenet_prep.ilsvrc2012.raw_data import ConsumedImages, find_source
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.shards.consuming import consumed_needs
from imagenet_prep.shards.room import PendingShards, is_pass_better, shard_needs
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.space import Need
from imagenet_prep.text import number_of

_BOXES = 50_000_000
"""Approximate bytes of the boxes of train images as a CSV;
those of validation images are a sixth of it.
"""

_BLOCK = 4096
"""Bytes of a disk block: a file wastes half of its last one on average."""

_LEAST_FILES = 14
"""The minimum number of parquet files of a split."""


class Coming(Struct, frozen=True, kw_only=True):
    """Images that a download is about to fetch.

    Args:
        splits: their splits.
        size: bytes of all files, including those already received.
        by_class: splits of which only the wanted classes are fetched.
        in_order: whether they can only be read in file order.
        has_boxes: whether annotations are fetched, with them or separately.
    """

    splits: Sequence[str] = ()
    size: int = 0
    by_class: Sequence[str] = ()
    in_order: bool = False
    has_boxes: bool = True


class _Amount(Struct, frozen=True):
    """The approximate images of a split: their bytes, and how to read them;
    ``source`` if they are present.
    """

    split: str
    size: int
    in_order: bool
    source: ImageSource | None

    @property
    def images(self) -> int:
        """The number of images."""
        return about_images(self.split, self.size)

    @property
    def is_unpacked(self) -> bool:
        """Whether the images are present as files of their own."""
        return self.source is not None and self.source.is_unpacked


def needs_behind(
    layout: Layout, coming: Coming, options: ConvertOptions, *, extract: bool
) -> Iterator[Need]:
    """Estimate the needs of the steps after a download, for present and incoming images, less
    finished shards.

    With ``extract``, untar makes image folders of everything not unpacked, for all present classes.
    """
    if extract:
        for split in facts.SPLITS:
            yield from _untar_needs(layout, split, coming, options.part)
    amounts: list[_Amount] = []
    for split in facts.SPLITS:
        amount = _estimate(layout, split, coming, options.part)
        if amount is not None:
            amounts.append(amount)
    for amount in amounts:
        yield from _annotate_needs(layout, amount, coming, options)
    for amount in amounts:
        yield from _shards(layout, amount, options)


def note_on_other_shards(layout: Layout, options: ConvertOptions) -> str:
    """A note on finished shards of a set that was cut otherwise; "" without any."""
    for split in facts.SPLITS:
        for filename in layout.find_shards((split,)):
            parsed_name = parse_shard_name(filename)
            if parsed_name is not None and parsed_name[2] != options.shards(split):
                its_set = number_of(parsed_name[2], f"{split} shard")
                return (
                    f"{layout.shard_path(filename)} is of a set of {its_set}, "
                    f"not {options.shards(split):,}: convert replaces it only with --overwrite"
                )
    return ""


def _untar_needs(layout: Layout, split: str, coming: Coming, part: Part) -> Iterator[Need]:
    """The space for the image folders of a split that is not unpacked."""
    is_by_class = split in coming.by_class or isinstance(find_source(layout, split), ClassTars)
    if not is_by_class:
        part = WHOLE
    amount = _estimate(layout, split, coming, part)
    if amount is not None and not amount.is_unpacked:
        yield _missing_folders(layout, amount, part)


def _annotate_needs(
    layout: Layout, amount: _Amount, coming: Coming, options: ConvertOptions
) -> Iterator[Need]:
    """The space for the boxes of a split that annotate has not made yet."""
    if amount.split != facts.TRAIN and not options.validation_boxes:
        return
    has_boxes = coming.has_boxes or find_annotations(layout, amount.split)
    if has_boxes and not find_boxes_csv(layout, amount.split):
        size = _BOXES * amount.images // facts.IMAGES[facts.TRAIN]
        yield Need("annotate", f"boxes of {amount.split}", layout.own_raw_dir, size, is_about=True)


def about_images(split: str, size: int) -> int:
    """The number of images in so many bytes of a split, in proportion to the official archive."""
    archive = facts.ARCHIVES[split]
    return facts.IMAGES[split] * size // archive.about


def folders_need(layout: Layout, split: str, *, classes: int, size: int) -> Need:
    """The disk space of class folders with images of ``size`` bytes in all."""
    images = about_images(split, size)
    needed = size + images * _BLOCK // 2
    words = f"image folders of {split}"
    files = images + classes
    return Need("untar", words, layout.images_dir(split), needed, files, is_about=True)


def _estimate(layout: Layout, split: str, coming: Coming, part: Part) -> _Amount | None:
    """The approximate amount of a split, None if nothing:
    ``part`` of the facts, but no more than present.
    """
    archive = facts.ARCHIVES[split]
    size = archive.about * len(part.labels) // facts.CLASSES
    if split in coming.splits:
        return _Amount(split, min(size, coming.size), coming.in_order, None)
    source = find_source(layout, split)
    if source is None or isinstance(source, ConsumedImages):
        return None  # a resumed conversion requires no more than its first run checked
    return _Amount(split, min(size, source.size), source.is_in_order, source)


def _missing_folders(layout: Layout, amount: _Amount, part: Part) -> Need:
    """The space for missing class folders; an existing folder counts as complete."""
    folder = layout.images_dir(amount.split)
    missing = classes = len(part.labels)
    if folder.is_dir():
        missing -= sum((folder / wnid).is_dir() for wnid in part.labels)
    size = amount.size * missing // classes
    return folders_need(layout, amount.split, classes=missing, size=size)


def _shards(layout: Layout, amount: _Amount, options: ConvertOptions) -> list[Need]:
    """The space for missing shards; a shard with its final name counts as finished."""
    split = amount.split
    count = options.shards(split)
    missing = max(count - _count_finished(layout, split, count), 0)
    size = amount.size * missing // count
    images = about_images(split, size)
    pending = PendingShards(split, missing, images, size, is_about=True)
    if options.consume:
        workers = os.cpu_count() or 1
        under_way = workers * size // max(missing, 1)
        largest_file = amount.size // _LEAST_FILES if amount.in_order else 0
        return consumed_needs(layout, pending, under_way=under_way, whole=largest_file)
    keeps_size = options.reencode is None or not options.reencode.may_shrink
    in_order = amount.in_order or _reads_in_order(layout, amount, size, options)
    return shard_needs(layout, pending, in_order=in_order, keeps_size=keeps_size)


def _count_finished(layout: Layout, split: str, shard_count: int) -> int:
    """How many shards of a split have their final names; ``shard_count`` is the number of all."""
    finished = 0
    for filename in layout.find_shards((split,)):
        parsed_name = parse_shard_name(filename)
        if parsed_name is None:
            continue
        _, _, count_in_name = parsed_name
        if count_in_name == shard_count:  # other shards are of a set that was cut otherwise
            finished += 1
    return finished


def _reads_in_order(layout: Layout, amount: _Amount, size: int, options: ConvertOptions) -> bool:
    """Whether convert will choose to read an archive in file order."""
    if amount.is_unpacked:
        return False
    place = layout.own_raw_dir
    if amount.source is not None:
        place = amount.source.path
    return is_pass_better(place, size, options)
