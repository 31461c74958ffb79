"""Copies of the same images: machines that read copies of their own make the shards of one set.

Fingerprints compare their names and lengths. Samples compare their bytes: the plan holds checksums
of some images of each shard, taken from the copy that was listed first. The maker of a shard
compares the images that it reads anyway. Samples are of images, not of archives or folders, so a
copy may have another place and another form. A small set is compared whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.datasets.plan import PlannedSplit, plan_name, shard_plans
from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Buffer, Gone, Reader
from imagenet_prep.state.manifest import COPIES, has_copies
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.tfrecord import crc32c

LOOKED_AT = 4096
"""The approximate number of images to compare, at least one per shard:
every one of a small set, or of a few shards.
"""

_AT_ONCE = 8


class OtherCopyError(InputError):
    """A copy of the raw data has another image than the copy that the set was planned from."""


def spread(rows: Sequence[int], shards: int) -> Sequence[int]:
    """Some rows of a shard, evenly spread: as many as are compared if so many shards are."""
    few = -(-LOOKED_AT // max(shards, 1))
    return rows[:: max(1, -(-len(rows) // few))]


def _take_samples(split: PlannedSplit) -> tuple[tuple[int, ...], ...]:
    """Per shard, the checksums of some of its images, as ``Plan`` holds them.

    None if the images are in an object store, because all machines read the same objects, or if
    they were consumed.
    """
    from concurrent.futures import ThreadPoolExecutor

    catalog, reader = split.catalog, Reader()
    for container in catalog.containers:
        if local_or_none(container.path) is None or isinstance(container, Gone):
            return ()
    samples = [spread(split.rows(plan), len(split.plans)) for plan in split.plans]
    rows = [row for sample in samples for row in sample]
    rows.sort(key=lambda row: (catalog.container_ids.item(row), catalog.offsets.item(row)))
    with ThreadPoolExecutor(1 if catalog.is_in_order else _AT_ONCE) as pool:
        crcs = pool.map(lambda row: crc32c(catalog.read(row, reader)), rows)
        crc_of = dict(zip(rows, crcs, strict=True))
    return tuple(tuple(crc_of[row] for row in sample) for sample in samples)


def join_copies(
    plan: Plan, before: Plan | None, splits: Sequence[PlannedSplit], *, samples: bool, makes: bool
) -> Plan:
    """A plan with the samples of the plan on the disk, if that is of the same shards.

    Args:
        plan: of all shards, from the copy that this machine reads.
        before: the plan on the disk.
        splits: with all of their shards.
        samples: whether to take samples of the splits that have none.
        makes: whether this run makes shards.
    """
    taken, sources = dict[str, tuple[tuple[int, ...], ...]](), dict(plan.sources)
    for split in splits:
        name = split.catalog.split
        known = before if before is not None and _is_same(plan, before, name) else None
        if known is not None and COPIES in known.sources[name]:
            sources[name] = {**sources[name], COPIES: known.sources[name][COPIES]}
        if known is not None and known.samples.get(name):
            taken[name] = known.samples[name]
            if makes and _is_elsewhere(plan, known, name):
                sources[name] = {**sources[name], COPIES: "compared by sample"}
        elif samples and (found := _take_samples(split)):
            taken[name] = found
    return replace(plan, samples=taken, sources=sources)


def _is_same(plan: Plan, before: Plan, split: str) -> bool:
    is_same_generation = plan.generation == before.generation
    return is_same_generation and plan.fingerprints[split] == before.fingerprints.get(split)


def _is_elsewhere(plan: Plan, before: Plan, split: str) -> bool:
    """Whether the images of a split are in another place, or in files with other times."""
    place, known = ((each.origins.get(split), each.times.get(split)) for each in (plan, before))
    return place != known


def were_copies(plan: Plan) -> bool:
    """Whether the shards of a plan may be made from several copies: other times prove nothing."""
    return bool(plan.samples) or has_copies(plan.sources)


def samples_by_shard(plan: Plan) -> Mapping[str, Mapping[int, int]]:
    """By the name of each shard, the checksum of each sampled image, by its row in the shard."""
    by_name: dict[str, Mapping[int, int]] = {}
    for split, samples in plan.samples.items():
        for shard, crcs in zip(shard_plans(plan, split), samples, strict=True):
            rows = spread(range(shard.stop - shard.start), shard.count)
            by_name[plan_name(shard)] = dict(zip(rows, crcs, strict=True))
    return by_name


def refuse_other_image(catalog: Catalog, row: int, data: Buffer, expected: int) -> None:
    """Raise OtherCopyError unless an image has the checksum of its sample."""
    got = crc32c(data)
    if got == expected:
        return
    raise OtherCopyError(
        f"{catalog.names[row]} has other bytes here than in the copy that the set was planned from",
        f"expected an image with the CRC-32C {expected:08x}, got {got:08x} ({catalog.place(row)})",
        "compare the copies, and copy the raw data again (rsync --checksum); "
        "or, if this copy is the right one, choose another folder with --output",
    )
