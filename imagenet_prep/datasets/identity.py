"""Which finished shards are those of a plan: same items, same settings, and nothing that they lie in was written to.

A shard is known by its fingerprint, which holds no file times. So images may move: from archives to folders, to a copy.
The plan on the disk has a stamp of each container that held them. The same container with another stamp may hold other
images: its shards are not those of the plan. Of images that lie elsewhere some are compared with the shards that hold
them: names and lengths don't tell, arrays are all of one length, whatever they hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from imagenet_prep.datasets.plan import Plan, PlannedSplit, Recorder, plan_name
from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Engine, Failed, ShardInfo, ShardPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import scheme_of
from imagenet_prep.tfrecord.framing import FOOTER, decode, frame

LOOKED_AT = 4096
"""About how many images in all, at least one a shard: of a small set, or of a few shards, every one."""

Moved = tuple[ShardPlan, PlannedSplit, ShardInfo]
"""A plan whose images lie elsewhere than those of its finished shard did."""


def find_changed(
    splits: Sequence[PlannedSplit], kept: Plan | None, layout: Layout, journal: Journal, engine: Engine
) -> dict[str, str]:
    """The names of the shards on record that the plans would not make.

    Each with what tells that its images are others, where names, lengths and settings are the same, else with "".

    Raises:
        InputError: an image that lies elsewhere than it did can't be read.
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
            elif kept is None or not kept.knows(plan, times):
                now = {each: split.stamps[each] for each in split.catalog.containers_of(split.rows(plan))}
                written_to = [each for each, stamp in now.items() if known.get(each, stamp) != stamp]
                if written_to:
                    changed[info.name] = _written(written_to[0])
                elif not known.keys() >= now.keys():
                    moved.append((plan, split, info))
    for name, place in find_others(moved, layout, engine).items() if moved else ():
        changed[name] = f"{place} has the name and the length that it had elsewhere, and other bytes"
    return changed


def _written(container: object) -> str:
    """How an image file or an archive of other times is called; an object has a new time only if it was replaced."""
    if scheme_of(container) is not None:
        return f"{container} was replaced by another object"
    return f"only file times differ, of {container}: a copy that did not keep them?"


# images that lie elsewhere -------------------------------------------------------------------------------------


_Known = tuple[int, str, int]
"""A row of a catalog, the shard that it is in, and the CRC of its record there."""


def find_others(moved: Sequence[Moved], layout: Layout, engine: Engine) -> dict[str, str]:
    """By the name of a shard, an image of its plan that has other bytes than the one that the shard holds.

    Raises:
        InputError: an image can't be read.
    """
    few = -(-LOOKED_AT // max(len(moved), 1))
    tasks = list(_tasks(moved, layout, few))
    others: dict[str, str] = {}
    for outcome in engine.map(_Comparer(), tasks) if tasks else ():
        if isinstance(outcome, Failed):
            raise outcome.error
        others.update(outcome.value)
    return others


@dataclass(frozen=True, slots=True)
class _Some:
    """Some images of a split, and for each the shard that it is in, and the CRC of the record that was made of it."""

    catalog: Catalog
    recorder: Recorder
    shards: tuple[str, ...]
    crcs: tuple[int, ...]


def _tasks(moved: Sequence[Moved], layout: Layout, few: int) -> Iterator[_Some]:
    """A task a shard; but of containers that are read in order a task each, the images of all shards in that order."""
    ordered: dict[int, tuple[PlannedSplit, list[_Known]]] = {}
    for plan, split, info in moved:
        known = _known(plan, split, info, layout, few)
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


def _known(plan: ShardPlan, split: PlannedSplit, info: ShardInfo, layout: Layout, few: int) -> list[_Known]:
    """None where the index doesn't tell (the shard is made again then); no repaired ones: another codec differs."""
    crcs: dict[str, int] = {}
    try:
        written = decode(*(layout.indexes.read(path.name) for path in layout.index_paths(info.name)))
    except InputError:
        written = None
    if written is not None and written.digest == info.digest:
        repaired = {repair.rpartition(" (")[0] for repair in info.repairs}
        crcs = {name: crc for name, crc in zip(written.names, written.crcs, strict=True) if name not in repaired}
    rows = [row for row in split.rows(plan) if split.catalog.names[row] in crcs]
    rows = rows[:: max(1, -(-len(rows) // few))]
    return [(row, plan_name(plan), crcs[split.catalog.names[row]]) for row in rows]


@dataclass(frozen=True, slots=True)
class _Comparer:
    """Says by shard where the first image lies that gives another record; picklable."""

    reader: Reader = field(default_factory=Reader, repr=False)

    def __call__(self, some: _Some) -> dict[str, str]:
        others: dict[str, str] = {}
        for row, (shard, crc) in enumerate(zip(some.shards, some.crcs, strict=True)):
            if shard in others:
                continue
            data = some.catalog.read(row, self.reader)
            try:  # a look at headers took it, perhaps, and it doesn't decode
                _, footer, _ = frame(*some.recorder.of_headers().record(some.catalog.item(row), data).parts)
                is_other = FOOTER.unpack(footer) != (crc,)
            except ImageError:
                is_other = True
            if is_other:
                others[shard] = some.catalog.place(row)
        return others
