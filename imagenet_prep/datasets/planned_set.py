"""PlannedSet: catalogs, in record order, cut into the shards to make."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, OptionValues, command
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.model import ShardPlan
from imagenet_prep.recorders.recorder import Recorder
from imagenet_prep.state.manifest import ILSVRC2012, DatasetEntry, Manifest, not_understood
from imagenet_prep.storage.layout import Layout, shard_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog


class PlannedSplit(Struct, frozen=True):
    """One split, planned.

    The rows of ``catalog`` are in record order: those of a shard are consecutive. ``digest`` is
    that of the names, lengths and labels in the order of the listing. ``recorder`` makes the
    records. ``stamps`` are those of the containers that hold the images, by path. ``facts`` are
    more entries of the manifest for the split's images.
    """

    catalog: Catalog
    source: AnyPath
    digest: str
    recorder: Recorder
    plans: tuple[ShardPlan, ...]
    stamps: Mapping[str, str]
    facts: Mapping[str, Any] = {}

    @property
    def times(self) -> Iterator[str]:
        """A digest of the modification times of each shard's image files or archives, in order."""
        return (self.catalog.times(self.rows(plan)) for plan in self.plans)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprint of each shard, in order."""
        return tuple(plan.fingerprint for plan in self.plans)

    @property
    def boxes(self) -> int:
        """The number of boxes of its images."""
        return len(self.catalog.boxes) // 4

    def rows(self, plan: ShardPlan) -> range:
        """The catalog's rows of one shard, in record order."""
        return range(plan.start, plan.stop)


class ShardNote(str):
    """A note on the number of shards, which doesn't matter where no shards are made."""

    __slots__ = ()


class SplitNote(str):
    """A note on one split, which doesn't matter where only another one is read."""

    __slots__ = ("prefix",)

    prefix: str

    @classmethod
    def of(cls, split: str, text: str) -> SplitNote:
        """The note on a split."""
        note = cls(text)
        note.prefix = split
        return note


class PlannedSet(Struct, frozen=True):
    """A whole data set, planned.

    Args:
        entry: the manifest's entry for the data set.
        splits: each cut into plans.
        settings: those that decide bytes.
        expected: images of the whole data set, by split.
        options: the settings that make the same set again.
        notes: messages for the user.
        asked: the inputs of the plan; None if only listing tells whether it still holds.
        lists: files to write before the first shard, with their content.
        recipe: the recipe's path, and the base of its relative paths.
        has_labels: whether images without a label are counted.
    """

    entry: DatasetEntry
    splits: tuple[PlannedSplit, ...]
    settings: Mapping[str, object]
    expected: Mapping[str, int]
    options: OptionValues = ()
    notes: tuple[str, ...] = ()
    asked: Asked | None = None
    lists: Mapping[AnyPath, bytes] = {}
    recipe: Mapping[str, str] = {}
    has_labels: bool = False

    def count_unlabelled(self, split: PlannedSplit) -> int:
        """The number of images of a split that lack a label; none where labels are not counted."""
        return split.catalog.count_by_label().get(0, 0) if self.has_labels else 0


class Asked(Struct, frozen=True):
    """The inputs of a plan, except for the images themselves: if they are equal, so is the plan.

    Args:
        options: all settings.
        raw: by split, the copy that was found, and the other files that count.
        recorders: the recorders of each split.
        deciding: the settings that decide bytes.
    """

    options: Any
    raw: Mapping[str, Any]
    recorders: Mapping[str, Recorder]
    deciding: Mapping[str, object]


def plan_name(plan: ShardPlan) -> str:
    """The name of a plan's shard."""
    return shard_name(plan.split, plan.index, plan.count)


def cut(
    catalog: Catalog,
    source: AnyPath,
    recorder: Recorder,
    count: int,
    seed: int | None,
    deciding: Mapping[str, object],
) -> PlannedSplit:
    """Shuffle a split, unless ``seed`` is None, and cut it into ``count`` plans.

    ``deciding`` are the settings that decide bytes.
    """
    from imagenet_prep.sources.fingerprint import Fingerprints, names_and_sizes

    rows = range(len(catalog)) if seed is None else order.shuffled(len(catalog), seed)
    settings = json.dumps(deciding, sort_keys=True)
    digest = names_and_sizes(catalog)
    stamps = catalog.stamps_of_containers()
    arranged = catalog.picked(rows)
    fingerprints = Fingerprints(arranged, settings)
    of_empty_shard = fingerprints.compute(range(0))  # there may be many more shards than images
    edges = itertools.pairwise(order.bounds(len(catalog), count))
    plans: list[ShardPlan] = []
    for number, (start, stop) in enumerate(edges):
        fingerprint = fingerprints.compute(range(start, stop)) if start < stop else of_empty_shard
        plans.append(ShardPlan(catalog.split, number, count, start, stop, fingerprint))
    return PlannedSplit(arranged, source, digest, recorder, tuple(plans), stamps)


def source_record(planned: PlannedSplit) -> dict[str, object]:
    """A manifest's entry for a split's images.

    It has their source, their number, a digest of names, sizes and labels, and the facts.
    """
    from imagenet_prep.sources.names import shown_name

    return {
        "name": shown_name(planned.source),
        "images": len(planned.catalog),
        "names_and_sizes": planned.digest,
        **planned.facts,
    }


def refuse_other_images(planned: PlannedSplit, manifest: Manifest, layout: Layout) -> None:
    """Raise unless names, sizes, labels and boxes are the recorded ones.

    Times and the kind of container may differ.
    """
    split, source = planned.catalog.split, planned.source
    expected = manifest.sources.get(split)
    if not isinstance(expected, dict):
        raise not_understood(layout.manifest_path)
    current = source_record(planned)
    if any(expected.get(key) != current[key] for key in ("images", "names_and_sizes")):
        expected_images = expected.get("images")
        noun = "image" if expected_images == 1 else "images"
        detail = f"expected {expected_images} {noun}, got {current['images']}"
        if expected_images == current["images"]:
            detail = (
                f"their number is the same, {current['images']}, "
                "but their names, sizes, labels or order differ"
            )
        restore = "restore the images and any files of labels"
        if manifest.dataset.kind == ILSVRC2012:
            restore = "restore the images, or name their folder with --raw"
        raise InputError(
            f"the {split} images in {source}, or their labels, "
            "are not those that the shards were made from",
            detail,
            Hint(f"{restore}; or, to make the set again, ", CONVERT_AGAIN),
        )
    boxes, expected_boxes = planned.boxes, manifest.totals[split].boxes
    if boxes != expected_boxes:
        restore = "restore the annotations as they were"
        remedy = Hint(f"{restore}; or, to make the set again, ", CONVERT_AGAIN)
        if manifest.dataset.kind == ILSVRC2012:
            remedy = _mend_boxes(layout, split, boxes, expected_boxes)
        raise InputError(
            f"the {split} boxes differ from those in the shards",
            f"expected {number_of(expected_boxes, 'box', 'boxes')}, got {boxes:,}",
            remedy,
        )


def _boxes_csv(layout: Layout, split: str) -> AnyPath:
    """The file of a split's boxes: the one that annotate writes, if there is none."""
    written = layout.validation_boxes_csv if split == "validation" else layout.boxes_csv
    given = layout.raw_dir / written.name
    return given if given.exists() and not written.exists() else written


def annotate_command(layout: Layout, split: str) -> CommandLine:
    """The command that makes the file of a split's boxes again."""
    settings: OptionValues = Layout(layout.data_dir, layout.raw).elsewhere()
    if split == "validation":
        settings = (*settings, ("validation_boxes", True))
    return command("annotate", layout.data_dir, settings)


def _mend_boxes(layout: Layout, split: str, boxes: int, expected_boxes: int) -> Hint:
    """The remedy for a file with another number of boxes than the shards have."""
    path = _boxes_csv(layout, split)
    if boxes < expected_boxes:
        return Hint(f"restore {path}, or make it again: ", annotate_command(layout, split))
    mend = f"restore {path} as it was"
    if not expected_boxes:
        mend = f"move {path} away, as the shards were made without boxes"
    return Hint(f"{mend}; or, to make the set again, ", CONVERT_AGAIN)
