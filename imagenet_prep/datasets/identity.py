"""find_changed: the finished shards that a plan would not make again, since items, settings or
files changed.

A shard is identified by its fingerprint, which holds no file times. So images may move: from
archives to folders, to a copy. The plan on the disk has a stamp of each container that held them.
The same container with another stamp may hold other images: its shards are not those of the plan.
If images are in a new place, or machines have copies of their own, some are compared with the
shards that hold them. Names and lengths don't prove them equal: arrays all have one length,
whatever they hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

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

Moved = tuple[ShardPlan, PlannedSplit, ShardInfo]
"""A plan whose images are in another place than those of its finished shard were."""


def find_changed(
    splits: Sequence[PlannedSplit],
    kept: Plan | None,
    layout: Layout,
    journal: Journal,
    engine: Engine,
    *,
    may_be_copy: bool = False,
) -> dict[str, str]:
    """The names of the recorded shards that the plans would not make.

    Each has the evidence of other images if names, lengths and settings are the same, otherwise "".
    ``may_be_copy``: machines read copies of their own, so that other times prove nothing.

    Raises:
        InputError: a moved image can't be read.
    """
    changed: dict[str, str] = {}
    moved: list[Moved] = []
    for split in splits:
        known = kept.stamps.get(split.catalog.split, {}) if kept else {}
        for plan, times in zip(split.plans, split.times, strict=True):
            info = journal.get(plan_name(plan))
            if info is None:
                continue
            if info.fingerprint != plan.fingerprint:
                changed[info.name] = ""
            elif kept is None or not knows(kept, plan, times):
                now = {
                    each: split.stamps[each]
                    for each in split.catalog.containers_of(split.rows(plan))
                }
                other = [each for each, stamp in now.items() if known.get(each) != stamp]
                written_to = [
                    each
                    for each in other
                    if each in known and not (may_be_copy and scheme_of(each) is None)
                ]
                if written_to:
                    changed[info.name] = _written(written_to[0])
                elif other:
                    moved.append((plan, split, info))
    for name, place in find_others(moved, layout, engine).items() if moved else ():
        changed[name] = f"{place} has the same name and length as in its shard, but other bytes"
    return changed


def _written(container: object) -> str:
    """A description of a changed image file or archive;
    an object has a new time only if it was replaced.
    """
    if scheme_of(container) is not None:
        return f"{container} was replaced by another object"
    return f"only file times differ, of {container}: a copy that did not keep them?"


# images in another place --------------------------------------------------------------------------


_Known = tuple[int, str, int]
"""A row of a catalog, the shard that holds it, and the CRC of its record there."""


def find_others(moved: Sequence[Moved], layout: Layout, engine: Engine) -> dict[str, str]:
    """By shard name, an image of its plan whose bytes differ from those in the shard.

    Raises:
        InputError: an image can't be read.
    """
    tasks = list(_tasks(moved, layout))
    others: dict[str, str] = {}
    for outcome in engine.map(_Comparer(), tasks) if tasks else ():
        if isinstance(outcome, Failed):
            raise outcome.error
        others.update(outcome.value)
    return others


class _Some(Struct, frozen=True):
    """Some images of a split, and for each its shard and the CRC of its record."""

    catalog: Catalog
    recorder: Recorder
    shards: tuple[str, ...]
    crcs: tuple[int, ...]


def _tasks(moved: Sequence[Moved], layout: Layout) -> Iterator[_Some]:
    """A task per shard; a container that is read in order has one task,
    for the images of all shards in that order.
    """
    ordered: dict[int, tuple[PlannedSplit, list[_Known]]] = {}
    for plan, split, info in moved:
        known = _known(plan, split, info, layout, len(moved))
        if split.catalog.is_in_order:
            ordered.setdefault(id(split), (split, []))[1].extend(known)
        elif known:
            yield _some(split, known)
    for split, known in ordered.values():
        container, offset = split.catalog.container_ids, split.catalog.offsets
        known.sort(key=lambda each: (container[each[0]], offset[each[0]]))
        for _, group in itertools.groupby(known, key=lambda each: container[each[0]]):
            yield _some(split, list(group))


def _some(split: PlannedSplit, known: Sequence[_Known]) -> _Some:
    rows, shards, crcs = zip(*known, strict=True)
    return _Some(split.catalog.whole(rows), split.recorder, shards, crcs)


def _known(
    plan: ShardPlan, split: PlannedSplit, info: ShardInfo, layout: Layout, shards: int
) -> list[_Known]:
    """Rows to compare, none if the index is missing (the shard is made
    again then) and none that a codec repaired.
    """
    crcs: dict[str, int] = {}
    if written := read_written(layout, info):
        repaired = {repair.rpartition(" (")[0] for repair in info.repairs}
        crcs = {
            name: crc
            for name, crc in zip(written.names, written.crcs, strict=True)
            if name not in repaired
        }
    rows = [row for row in split.rows(plan) if split.catalog.names[row] in crcs]
    compared = spread(rows, shards)
    return [(row, plan_name(plan), crcs[split.catalog.names[row]]) for row in compared]


class _Comparer(Struct, frozen=True):
    """Returns by shard the place of the first image with another record; picklable."""

    reader: Reader = field(default_factory=Reader)

    def __call__(self, some: _Some) -> dict[str, str]:
        others: dict[str, str] = {}
        for row, (shard, crc) in enumerate(zip(some.shards, some.crcs, strict=True)):
            if shard in others:
                continue
            data = some.catalog.read(row, self.reader)
            try:  # a header check may have accepted an image that can't be decoded
                _, footer, _ = frame(
                    *some.recorder.of_headers().record(some.catalog.item(row), data).parts
                )
                is_other = FOOTER.unpack(footer) != (crc,)
            except ImageError:
                is_other = True
            if is_other:
                others[shard] = f"{some.catalog.names[row]} ({some.catalog.place(row)})"
        return others
