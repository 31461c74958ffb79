"""Compares a shard's index with recorded and found records; tells which shards of a set are done."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import ProblemKind, ShardInfo
from imagenet_prep.state.indexes import agrees
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name

R = TypeVar("R", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Departure:
    """The first record in which a shard differs from the written one, and how it differs.

    ``lost`` are the numbers of written records that are missing.
    """

    kind: ProblemKind
    record: int
    way: str
    lost: tuple[int, ...] = ()


def corrected(layout: Layout, manifest: Manifest, journal: Journal) -> Manifest | None:
    """A manifest with the right entry for each shard: its own, unless the journal has a better supported one.

    None if it has changed since it was written in more than such entries.

    If two entries of a shard differ, one of them has changed. The entry that agrees with the index is right. If both
    agree, the entry with the shard's size is right, then the journal's, which has its own CRC.
    """
    infos: dict[str, ShardInfo] = {}
    for name, info in manifest.shards.items():
        other = journal.get(name)
        if other is None or other == info:
            continue
        size = layout.shards.size(name)
        founded = [each for each in (info, other) if agrees(layout, each)]
        infos[name] = max(founded, key=lambda each: (each.size == size, each is other), default=info)
    if not infos:
        return manifest if manifest.is_sealed else None
    found = dataclasses.replace(manifest, shards={**manifest.shards, **infos}, is_as_written=False)
    return found if manifest.is_sealed or found.is_sealed else None


def first_difference(expected: Sequence[object], found: Sequence[object]) -> int | None:
    """The first position where two sequences differ, or None if they are equal."""
    if expected == found:
        return None
    pairs = enumerate(zip(expected, found, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))


def departure(written: list[R], found: list[R]) -> Departure | None:
    """How the found records differ from the written ones, compared by value; None if they are equal."""
    k = first_difference(written, found)
    if k is None:
        return None
    missing = len(written) - len(found)
    if missing > 0 and written[k + missing :] == found[k:]:
        way = "the record written here is missing" if missing == 1 else f"{missing} records are missing from here on"
        return Departure(ProblemKind.MISSING_RECORD, k, way, tuple(range(k, k + missing)))
    if missing < 0 and written[k:] == found[k - missing :]:
        way = "it was not written" if missing == -1 else f"{-missing} records that were not written, from here on"
        return Departure(ProblemKind.EXTRA_RECORD, k, _twice(found, k) or way)
    if found == [*written[:k], *written[k : k + 2][::-1], *written[k + 2 :]]:
        return Departure(ProblemKind.SWAPPED_RECORDS, k, f"records {k} and {k + 1} are swapped")
    return _wide_departure(written, found, k)


def _twice(found: Sequence[object], k: int) -> str:
    """The record that the one at ``k`` repeats, if it does."""
    other = next((number for number, record in enumerate(found) if record == found[k] and number != k), None)
    return f"it repeats record {other}" if other is not None else ""


def _wide_departure(written: list[R], found: list[R], k: int) -> Departure:
    lost, added = Counter(written), Counter(found)
    lost, added = lost - added, added - lost
    if not lost and not added:
        return Departure(ProblemKind.SWAPPED_RECORDS, k, "from here on the records are in another order")
    if 2 * lost.total() > len(written):
        way = f"{lost.total():,} of {len(written):,} records are not those written: a shard of another conversion"
        return Departure(ProblemKind.OTHER_CONVERSION, k, way)
    numbers = tuple(number for number, record in enumerate(written) if record in lost)
    if found == [record for record in written if record not in lost]:
        return Departure(ProblemKind.MISSING_RECORD, k, f"{len(numbers)} records are missing, this one first", numbers)
    way = f"from here on {lost.total():,} records are missing and {added.total():,} were not written"
    return Departure(ProblemKind.WRONG_CONTENT, k, way, numbers)


# sets that several runs make together --------------------------------------------------------------------------------


def settle(layout: Layout, journal: Journal, wanted: Collection[str] = ()) -> None:
    """For a shard with different entries in a journal's parts, choose the entry that agrees with its index.

    If several agree, an entry whose fingerprint is in ``wanted`` is chosen.
    """
    for infos in journal.rivals().values():
        founded = [info for info in infos if agrees(layout, info)]
        if founded:
            journal.choose(max(founded, key=lambda info: info.fingerprint in wanted))


def not_done(layout: Layout, planned: Manifest, journal: Journal) -> list[str]:
    """The shards of a planned set that are not done; indexes are read only if the journal has all shards."""
    infos = {name: journal.get(name) for name in planned.shards}
    found = [name for name, info in infos.items() if not _is_of(planned, info)]
    return found or [name for name, info in infos.items() if info is not None and not _stands(layout, info)]


def all_not_done(layout: Layout, planned: Manifest, journal: Journal) -> list[str]:
    """As ``not_done``, but complete."""
    infos = ((name, journal.get(name)) for name in planned.shards)
    return [name for name, info in infos if info is None or not _is_of(planned, info) or not _stands(layout, info)]


def _is_of(planned: Manifest, info: ShardInfo | None) -> bool:
    return info is not None and planned.shards[info.name].fingerprint == info.fingerprint


def _stands(layout: Layout, info: ShardInfo) -> bool:
    return layout.shards.size(info.name) == info.size and agrees(layout, info)


def filled(planned: Manifest, journal: Journal) -> Manifest:
    """The manifest of a planned set, once all its shards are made."""
    infos = {name: info for name in planned.shards if (info := journal.get(name))}
    images: defaultdict[str, int] = defaultdict(int)
    repairs: defaultdict[str, list[str]] = defaultdict(list)
    for name, info in infos.items():
        split = (parse_shard_name(name) or ("",))[0]
        images[split] += info.records
        repairs[split] += info.repairs
    turned = {split: count for split, found in repairs.items() if (count := count_changes(found)[TURNED])}
    totals = {split: dataclasses.replace(each, images=images[split]) for split, each in planned.totals.items()}
    dataset = dataclasses.replace(planned.dataset, turned=turned)
    return dataclasses.replace(planned, dataset=dataset, totals=totals, shards=infos, crc=None)
