"""Whether images that lie elsewhere than they did are those that finished shards hold: some of them are looked at.

Names and lengths don't tell: arrays are all of one length, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from imagenet_prep.datasets.plan import PlannedSplit, plan_name
from imagenet_prep.datasets.recorder import Recorder
from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Engine, Failed, ShardInfo, ShardPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.container import Reader
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.framing import FOOTER, frame
from imagenet_prep.tfrecord.index import decode

LOOKED_AT = 4096
"""About how many images in all, at least one a shard: of a small set, or of a few shards, every one."""

Moved = tuple[ShardPlan, PlannedSplit, ShardInfo]
"""A plan whose images lie elsewhere than those of its finished shard did."""


def find_others(moved: Sequence[Moved], layout: Layout, engine: Engine) -> dict[str, str]:
    """By the name of a shard, an image of its plan that has other bytes than the one that the shard holds.

    Raises:
        InputError: an image can't be read.
    """
    few = -(-LOOKED_AT // max(len(moved), 1))
    tasks = [task for each in moved if (task := _some(*each, layout, few)).crcs]
    others: dict[str, str] = {}
    for outcome in engine.map(_Comparer(), tasks) if tasks else ():
        if isinstance(outcome, Failed):
            raise outcome.error
        if outcome.value:
            others[outcome.task.name] = outcome.value
    return others


@dataclass(frozen=True, slots=True)
class _Some:
    """Some images of a shard, and for each the CRC of the record that was made of it."""

    name: str
    catalog: Catalog
    recorder: Recorder
    crcs: tuple[int, ...]


def _some(plan: ShardPlan, split: PlannedSplit, info: ShardInfo, layout: Layout, few: int) -> _Some:
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
    found = tuple(crcs[split.catalog.names[row]] for row in rows)
    return _Some(plan_name(plan), split.catalog.whole(rows), split.recorder, found)


@dataclass(frozen=True, slots=True)
class _Comparer:
    """Says where the first image lies that gives another record; picklable."""

    reader: Reader = field(default_factory=Reader, repr=False)

    def __call__(self, some: _Some) -> str:
        for row, crc in enumerate(some.crcs):
            data = some.catalog.read(row, self.reader)
            try:
                _, footer, _ = frame(*some.recorder.record(some.catalog.item(row), data).parts)
            except ImageError:  # checked more closely than then: that tells nothing
                continue
            if FOOTER.unpack(footer) != (crc,):
                return some.catalog.place(row)
        return ""
