"""find_changed: the finished shards that a plan would not make again.

Items, settings or files changed since they were made.

A shard is identified by its fingerprint, which holds no file times. So images may move: from
archives to folders, to a copy. The plan on the disk has a stamp of each container that held them.
The same container with another stamp may hold other images: its shards are not those of the plan.
If images are in a new place, or machines have copies of their own, some are compared with the
shards that hold them. Names and lengths don't prove them equal: arrays all have one length,
whatever they hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.datasets.sampled_images import spread
from imagenet_prep.datasets.stored_plan import knows
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Engine, Failed, ShardInfo, ShardPlan
from imagenet_prep.recorders.recorder import Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.indexes import read_written
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import scheme_of
from imagenet_prep.tfrecord.framing import FOOTER, frame


class JournalledShard(NamedTuple):
    """A finished shard with its plan; the images may be in another place than when it was made."""

    plan: ShardPlan
    split: PlannedSplit
    info: ShardInfo


def find_changed(
    splits: Sequence[PlannedSplit],
    plan_on_disk: Plan | None,
    layout: Layout,
    journal: Journal,
    engine: Engine,
    *,
    may_be_copy: bool = False,
) -> dict[str, str]:
    """The names of the recorded shards that the plans would not make.

    Each has the evidence of other images if names, lengths and settings are the same, otherwise "".
    ``may_be_copy``: machines read copies of their own, so that
    other times prove nothing.

    Raises:
        InputError: a moved image can't be read.
    """
    changed: dict[str, str] = {}
    moved: list[JournalledShard] = []
    for shard in _journalled_shards(splits, plan_on_disk, journal):
        name = shard.info.name
        if shard.info.fingerprint != shard.plan.fingerprint:
            changed[name] = ""
            continue
        stamps = plan_on_disk.stamps.get(shard.plan.split, {}) if plan_on_disk else {}
        other_containers = _other_containers(shard, stamps)
        written_to = _find_written_to(other_containers, stamps, may_be_copy=may_be_copy)
        if written_to is not None:
            changed[name] = _describe_write(written_to)
        elif other_containers:
            moved.append(shard)
    other_images = find_others(moved, layout, engine) if moved else {}
    for name, image in other_images.items():
        changed[name] = f"{image} has the same name and length as in its shard, but other bytes"
    return changed


def _journalled_shards(
    splits: Sequence[PlannedSplit], plan_on_disk: Plan | None, journal: Journal
) -> Iterator[JournalledShard]:
    """The shards with an entry, except those that the plan on the disk knows as they are."""
    for split in splits:
        for plan, times in zip(split.plans, split.times, strict=True):
            info = journal.get(plan_name(plan))
            if info is None:
                continue
            is_known = plan_on_disk is not None and knows(plan_on_disk, plan, times)
            if info.fingerprint != plan.fingerprint or not is_known:
                yield JournalledShard(plan, split, info)


def _other_containers(shard: JournalledShard, stamps: Mapping[str, str]) -> list[str]:
    """The containers of a shard's images that have not these stamps of the plan on the disk."""
    split = shard.split
    containers = split.catalog.containers_of(split.rows(shard.plan))
    return [path for path in containers if stamps.get(path) != split.stamps[path]]


def _find_written_to(
    containers: Sequence[str], stamps: Mapping[str, str], *, may_be_copy: bool
) -> str | None:
    """The first of these containers that was in this place before, with another stamp."""
    for container in containers:
        is_file_of_machine = may_be_copy and scheme_of(container) is None
        if container in stamps and not is_file_of_machine:
            return container
    return None


def _describe_write(container: str) -> str:
    """A description of a changed image file or archive.

    An object has a new time only if it was replaced.
    """
    if scheme_of(container) is not None:
        return f"{container} was replaced by another object"
    causes = "other images, or a copy that did not keep the times"
    return f"the file times of {container} differ: {causes}"


# images in another place --------------------------------------------------------------------------


class _RecordedRow(NamedTuple):
    """A row of a catalog, the shard that holds it, and the CRC of its record there."""

    row: int
    shard: str
    crc: int


def find_others(moved: Sequence[JournalledShard], layout: Layout, engine: Engine) -> dict[str, str]:
    """By shard name, an image of its plan whose bytes differ from those in the shard.

    Raises:
        InputError: an image can't be read.
    """
    tasks = list(_list_tasks(moved, layout))
    other_images: dict[str, str] = {}
    for outcome in engine.map(_Comparer(), tasks) if tasks else ():
        if isinstance(outcome, Failed):
            raise outcome.error
        other_images.update(outcome.value)
    return other_images


class _ComparedImages(Struct, frozen=True):
    """Some images of a split, and for each its shard and the CRC of its record."""

    catalog: Catalog
    recorder: Recorder
    shards: tuple[str, ...]
    crcs: tuple[int, ...]


def _list_tasks(moved: Sequence[JournalledShard], layout: Layout) -> Iterator[_ComparedImages]:
    """A task per shard.

    A container that is read in order has one task, for the images of all shards in that order.
    """
    rows_in_order: dict[int, tuple[PlannedSplit, list[_RecordedRow]]] = {}
    for shard in moved:
        split = shard.split
        rows = _list_recorded(shard, layout, len(moved))
        if split.catalog.is_in_order:
            rows_in_order.setdefault(id(split), (split, []))[1].extend(rows)
        elif rows:
            yield _compared_images(split, rows)
    for split, rows in rows_in_order.values():
        container_ids, offsets = split.catalog.container_ids, split.catalog.offsets
        rows.sort(key=lambda recorded: (container_ids[recorded.row], offsets[recorded.row]))
        for _, group in itertools.groupby(rows, key=lambda recorded: container_ids[recorded.row]):
            yield _compared_images(split, list(group))


def _compared_images(split: PlannedSplit, recorded: Sequence[_RecordedRow]) -> _ComparedImages:
    rows, shards, crcs = zip(*recorded, strict=True)
    return _ComparedImages(split.catalog.whole(rows), split.recorder, shards, crcs)


def _list_recorded(shard: JournalledShard, layout: Layout, shard_count: int) -> list[_RecordedRow]:
    """The rows of a shard to compare, as many as if ``shard_count`` shards are.

    None if the index is missing: the shard is made again then. None that a codec repaired.
    """
    split = shard.split
    crcs: dict[str, int] = {}
    if written := read_written(layout, shard.info):
        repaired = {repair.rpartition(" (")[0] for repair in shard.info.repairs}
        for name, crc in zip(written.names, written.crcs, strict=True):
            if name not in repaired:
                crcs[name] = crc
    names = split.catalog.names
    rows = [row for row in split.rows(shard.plan) if names[row] in crcs]
    compared_rows = spread(rows, shard_count)
    shard_name = plan_name(shard.plan)
    return [_RecordedRow(row, shard_name, crcs[names[row]]) for row in compared_rows]


class _Comparer(Struct, frozen=True):
    """Returns by shard the place of the first image with another record; picklable."""

    reader: Reader = field(default_factory=Reader)

    def __call__(self, images: _ComparedImages) -> dict[str, str]:
        catalog = images.catalog
        other_images: dict[str, str] = {}
        for row, (shard, crc) in enumerate(zip(images.shards, images.crcs, strict=True)):
            if shard not in other_images and self._is_other(images, row, crc):
                other_images[shard] = f"{catalog.names[row]} ({catalog.place(row)})"
        return other_images

    def _is_other(self, images: _ComparedImages, row: int, crc: int) -> bool:
        """Whether the record of an image has another CRC than ``crc``."""
        data = images.catalog.read(row, self.reader)
        recorder = images.recorder.of_headers()
        try:  # a header check may have accepted an image that can't be decoded
            recorded = recorder.record(images.catalog.item(row), data)
        except ImageError:
            return True
        _, footer, _ = frame(*recorded.parts)
        return FOOTER.unpack(footer) != (crc,)
