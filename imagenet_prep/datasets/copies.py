"""Copies of the same images: machines that read copies of their own make the shards of one set.

Fingerprints compare their names and lengths. Samples compare their bytes: the plan holds checksums
of some images of each shard, taken from the copy that was listed first. The maker of a shard
compares the images that it reads anyway. Samples are of images, not of archives or folders, so a
copy may have another place and another form. A small set is compared whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSplit, plan_name
from imagenet_prep.datasets.sampled_images import UNKNOWN, other_image, spread
from imagenet_prep.datasets.stored_plan import shard_plans
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.manifest import COPIES, has_copies
from imagenet_prep.state.plan_file import Plan, Samples
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.tfrecord import crc32c

_THREADS = 8  # that read samples at once


def _take_samples(split: PlannedSplit) -> Samples:
    """Per shard, the checksums of some of its images, as ``Plan`` holds them."""
    from concurrent.futures import ThreadPoolExecutor

    catalog = split.catalog
    reader = Reader()

    def place_in_files(row: int) -> tuple[int, int]:
        return catalog.container_ids.item(row), catalog.offsets.item(row)

    def read_checksum(row: int) -> int:
        content = catalog.read(row, reader)
        return crc32c(content)

    count = len(split.plans)
    samples = [spread(split.rows(plan), count) for plan in split.plans]
    rows = [row for sample in samples for row in sample]
    rows.sort(key=place_in_files)
    threads = 1 if catalog.is_in_order else _THREADS
    with ThreadPoolExecutor(threads) as pool:
        crcs = pool.map(read_checksum, rows)
        crc_of = dict(zip(rows, crcs, strict=True))
    return tuple(tuple(crc_of[row] for row in sample) for sample in samples)


def join_copies(plan: Plan, plan_on_disk: Plan | None, splits: Sequence[PlannedSplit]) -> Plan:
    """A plan with the samples of the plan on the disk, which may be of another copy.

    Args:
        plan: of all shards, from the copy that this machine reads.
        plan_on_disk: which another machine may have made.
        splits: those to compare, each with all of its shards; none if this run makes no shard.

    Raises:
        OtherCopyError: an image of the other copy is not the one that was sampled.
    """
    if plan_on_disk is None or plan_on_disk.generation != plan.generation:
        return plan
    sources = dict(plan.sources)
    samples = dict(plan.samples)
    for name, fingerprints in plan.fingerprints.items():
        if fingerprints != plan_on_disk.fingerprints.get(name):
            continue
        source_on_disk = plan_on_disk.sources[name]
        if COPIES in source_on_disk:
            sources[name] = {**sources[name], COPIES: source_on_disk[COPIES]}
        if name in plan_on_disk.samples:
            samples[name] = plan_on_disk.samples[name]
    for split in splits:
        name = split.catalog.split
        if name in samples and _is_elsewhere(plan, plan_on_disk, name):
            _compare(split, samples[name])
            sources[name] = {**sources[name], COPIES: "compared by sample"}
    return replace(plan, sources=sources, samples=samples)


def with_samples(plan: Plan, splits: Sequence[PlannedSplit]) -> Plan:
    """A plan with samples of the splits that have none.

    An object store has none: all machines read the same objects.
    """
    samples = dict(plan.samples)
    for split in splits:
        catalog = split.catalog
        paths = [local_or_none(container.path) for container in catalog.containers]
        is_local = None not in paths
        if catalog.split not in samples and is_local:
            samples[catalog.split] = _take_samples(split)
    return replace(plan, samples=samples)


def without_damaged(plan: Plan, splits: Sequence[PlannedSplit], damaged: Collection[str]) -> Plan:
    """A plan that knows no checksum of these images; ``splits`` hold their shards."""
    samples = dict(plan.samples)
    for split in splits:
        catalog = split.catalog
        sampled_shards = list(samples.get(catalog.split, ()))
        if not sampled_shards:
            continue
        for shard in split.plans:
            rows = spread(split.rows(shard), shard.count)
            crcs = list(sampled_shards[shard.index])
            for number, row in enumerate(rows):
                if catalog.names[row] in damaged:
                    crcs[number] = UNKNOWN
            sampled_shards[shard.index] = tuple(crcs)
        samples[catalog.split] = tuple(sampled_shards)
    return replace(plan, samples=samples)


def _compare(split: PlannedSplit, samples: Samples) -> None:
    """Raise OtherCopyError for the first image that is not the one that was sampled."""
    count = len(split.plans)
    new_samples = _take_samples(split)
    for shard, crcs, expected_crcs in zip(split.plans, new_samples, samples, strict=True):
        rows = spread(split.rows(shard), count)
        for row, crc, expected in zip(rows, crcs, expected_crcs, strict=True):
            if expected not in (UNKNOWN, crc):
                raise other_image(split.catalog, row, expected, crc)


def _is_elsewhere(plan: Plan, plan_on_disk: Plan, split: str) -> bool:
    """Whether the images of a split are in another place, or in files with other times."""
    has_other_place = plan.origins.get(split) != plan_on_disk.origins.get(split)
    has_other_times = plan.times.get(split) != plan_on_disk.times.get(split)
    return has_other_place or has_other_times


def were_copies(plan: Plan) -> bool:
    """Whether the shards of a plan may be made from several copies: other times prove nothing.

    Raw data that was consumed is there again only as another copy.
    """
    return bool(plan.samples) or has_copies(plan.sources) or ("consume", True) in plan.options


def samples_by_shard(plan: Plan) -> Mapping[str, Mapping[int, int]]:
    """By the name of each shard, the checksum of each sampled image, by its row in the shard."""
    by_name: dict[str, Mapping[int, int]] = {}
    for split, samples in plan.samples.items():
        for shard, crcs in zip(shard_plans(plan, split), samples, strict=True):
            rows_of_shard = range(shard.stop - shard.start)
            rows = spread(rows_of_shard, shard.count)
            name = plan_name(shard)
            by_name[name] = dict(zip(rows, crcs, strict=True))
    return by_name
