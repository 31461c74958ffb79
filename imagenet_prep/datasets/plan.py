"""Catalogs -> the shards to make: a split in canonical order, cut into plans; a set of splits, and how it is made."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imagenet_prep.datasets import order
from imagenet_prep.datasets.recorder import Recorder
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import Settings
from imagenet_prep.model import ShardPlan
from imagenet_prep.state.manifest import DatasetEntry, Manifest, not_understood
from imagenet_prep.storage.layout import shard_name
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """One split, planned.

    The rows of ``catalog`` are in record order: those of a shard lie together. ``order`` tells where each stood in the
    listing, ``digest`` is that of the names, lengths and labels there. ``recorder`` makes the records. ``stamps`` are
    those of the containers that hold the images, by path.
    """

    catalog: Catalog
    source: AnyPath
    order: Sequence[int]
    digest: str
    recorder: Recorder
    plans: tuple[ShardPlan, ...]
    stamps: Mapping[str, str]

    @property
    def times(self) -> Iterator[str]:
        """A digest of the modification times of what holds the images of each shard, in order."""
        return (self.catalog.times(self.rows(plan)) for plan in self.plans)

    def rows(self, plan: ShardPlan) -> range:
        """The catalog's rows of one shard, in record order."""
        return range(plan.start, plan.stop)


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A whole data set, planned.

    Args:
        entry: what the manifest says of the data set.
        splits: each cut into plans.
        settings: those that decide bytes.
        expected: images of the whole data set, by split.
        options: the settings that make the same set again.
        notes: what to tell the user before the work, and ``closing`` after it.
    """

    entry: DatasetEntry
    splits: tuple[PlannedSplit, ...]
    settings: Mapping[str, object]
    expected: Mapping[str, int]
    options: Settings = ()
    notes: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()


def plan_name(plan: ShardPlan) -> str:
    """The name of the shard that a plan makes."""
    return shard_name(plan.split, plan.index, plan.count)


def cut(
    catalog: Catalog, source: AnyPath, recorder: Recorder, count: int, seed: int | None, deciding: Mapping[str, object]
) -> PlannedSplit:
    """Shuffle a split, unless ``seed`` is None, and cut it into ``count`` plans; ``deciding`` settings decide bytes."""
    rows = range(len(catalog)) if seed is None else order.shuffled(len(catalog), seed)
    settings = json.dumps(deciding, sort_keys=True)
    from imagenet_prep.sources.fingerprint import Fingerprints, names_and_sizes

    digest, stamps = names_and_sizes(catalog), catalog.stamps_of_containers()
    arranged = catalog.picked(rows)
    fingerprints = Fingerprints(arranged, settings)

    nothing, plans = fingerprints.of(range(0)), []  # there may be many more shards than images
    for i, (start, stop) in enumerate(itertools.pairwise(order.bounds(len(catalog), count))):
        fingerprint = fingerprints.of(range(start, stop)) if start < stop else nothing
        plans.append(ShardPlan(catalog.split, i, count, start, stop, fingerprint))
    return PlannedSplit(arranged, source, rows, digest, recorder, tuple(plans), stamps)


def source_record(planned: PlannedSplit) -> dict[str, object]:
    """What a manifest says of a split's images: from where, how many, and a digest of their names, sizes and labels."""
    return {"name": planned.source.name, "images": len(planned.catalog), "names_and_sizes": planned.digest}


def refuse_other_images(planned: PlannedSplit, manifest: Manifest) -> None:
    """Names, sizes and labels must be those of then; times and whether they lie in an archive make no difference."""
    split, source = planned.catalog.split, planned.source
    expected, found = manifest.sources.get(split), source_record(planned)
    if not isinstance(expected, dict):
        raise not_understood(f"source of the {split} images")
    if all(expected.get(key) == found[key] for key in ("images", "names_and_sizes")):
        return
    detail = f"expected {expected.get('images')} images, got {found['images']}"
    if expected.get("images") == found["images"]:
        detail = f"there are {found['images']} images, as there were, but some have other names or sizes"
    raise InputError(
        f"the {split} images in {source} are not those that the shards were made from",
        detail,
        "get those back or name their folder with --raw, or make the set again with imagenet-prep convert --overwrite",
    )
