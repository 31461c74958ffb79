"""Sets of some bytes, written by hand: plan, shards, indexes,
journals and manifest, without images and conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from imagenet_prep.datasets.stored_plan import planned_manifest
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.indexes import filled
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import DatasetEntry, SplitTotals
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout, grown_from
from imagenet_prep.tfrecord.framing import FOOTER, OVERHEAD, Index, frame

COUNTS = {"train": 3, "validation": 2}
IMAGES = 2
"""Images of each shard."""


def made_plan(counts: Mapping[str, int] = COUNTS, *, word: str = "f", **more: Any) -> Plan:
    """A plan of so many shards for each split; ``word`` begins their fingerprints."""
    splits = dict.fromkeys(grown_from(split)[0] for split in counts)
    entry = DatasetEntry("recipe", "tiny", tuple(splits), {}, {})
    values: dict[str, Any] = {
        "dataset": entry,
        "settings": {"check": "header"},
        "sources": {
            split: {"images": IMAGES * count, "names_and_sizes": split}
            for split, count in counts.items()
        },
        "totals": {
            split: SplitTotals(IMAGES * count, 0, 1, 0, count) for split, count in counts.items()
        },
        "fingerprints": {
            split: tuple(f"{word}-{split}-{n}" for n in range(count))
            for split, count in counts.items()
        },
        "expected": dict.fromkeys(counts, 0),
    }
    return Plan(**{**values, **more})


def save_plan(layout: Layout, plan: Plan) -> Plan:
    """Write a plan where it belongs."""
    layout.plan_path.parent.mkdir(parents=True, exist_ok=True)
    save_bytes(layout.plan_path, plan.encode())
    return plan


def make_shard(
    layout: Layout, name: str, fingerprint: str, *, images: int = IMAGES, word: str = ""
) -> ShardInfo:
    """A shard with its index; its records hold ``word`` and the name of their image.
    Its entry is not recorded.
    """
    index, content = Index(), b""
    for number in range(images):
        image = f"{name}-{number}.jpg"
        data = f"{word}{image}".encode()
        header, footer, length = frame(data)
        content += header + data + footer
        index.add(length + OVERHEAD, *FOOTER.unpack(footer), image)
    layout.index_dir.mkdir(parents=True, exist_ok=True)
    layout.shard_path(name).write_bytes(content)
    for path, lines in zip(layout.index_paths(name), index.encode(), strict=True):
        path.write_bytes(lines)
    return ShardInfo(name, fingerprint, images, len(content), index.digest)


def record(layout: Layout, infos: Iterable[ShardInfo], part: str = "") -> None:
    """Append entries to a journal."""
    with Journal(layout.journal_path, part) as journal:
        for info in infos:
            journal.append(info)


def make_shards(layout: Layout, plan: Plan, names: Iterable[str] | None = None) -> list[ShardInfo]:
    """The shards of a plan, or those of these names, recorded in the journal."""
    planned = plan.fingerprints_by_name()
    infos = [
        make_shard(layout, name, planned[name]) for name in (planned if names is None else names)
    ]
    record(layout, infos)
    return infos


def make_set(layout: Layout, plan: Plan | None = None) -> Plan:
    """A finished set."""
    plan = save_plan(layout, plan or made_plan())
    make_shards(layout, plan)
    save_manifest(layout, plan)
    return plan


def save_manifest(layout: Layout, plan: Plan) -> None:
    """The manifest of a plan's shards in the journal."""
    filled(planned_manifest(plan), Journal(layout.journal_path)).save(layout.manifest_path)


def with_generation(plan: Plan, generation: str = "0123456789abcdef") -> Plan:
    """A plan that replaced shards."""
    return replace(plan, generation=generation)
