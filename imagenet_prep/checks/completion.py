"""A set whose shards several runs make: the entries that count, which shards are not done, the manifest of all."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection

from imagenet_prep.checks.index_check import agrees
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout, parse_shard_name


def settle(layout: Layout, journal: Journal, wanted: Collection[str] = ()) -> None:
    """Where parts of a journal say different things of a shard, let that count with which its index agrees.

    Of several such ones that counts whose fingerprint is among those ``wanted``.
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
    """The same, to the last one."""
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
