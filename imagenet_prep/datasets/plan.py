"""Catalogs -> shards to make, and the recorders of their images;
and a set planned before, read from its Plan.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep import __version__
from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import Settings
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import UPRIGHT, prepare, turn_box
from imagenet_prep.model import Item, Progress, ShardInfo, ShardPlan
from imagenet_prep.state.manifest import DatasetEntry, Manifest, SplitTotals, not_understood
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.layout import Layout, shard_name
from imagenet_prep.storage.location import AnyPath, local_or_none, locate
from imagenet_prep.tfrecord import inception

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog
    from imagenet_prep.sources.saved_catalog import PackedCatalog


Buffer = bytes | memoryview


class Recorded(Struct, frozen=True):
    """A record: its pieces in order, the change to its image other than encoding, and what its
    image warns of.

    ``repair`` and ``warning`` are "" for none.
    """

    parts: tuple[Buffer, ...]
    repair: str = ""
    warning: str = ""


class Recorder(Struct, frozen=True, kw_only=True):
    """Makes the records of one split; picklable.

    Args:
        check: how closely each image is checked.
        how: how to encode every image again, or None to keep them.
        upright: turn images that are encoded again as EXIF asks, and their boxes with them; 2016
        did not. loosely: the setting of ``check``, as the user writes it, with {} for its value.
    """

    check: Check = "decode"
    how: Reencode | None = None
    upright: bool = False
    loosely: str = "--check {}"

    @property
    def keeps_size(self) -> bool:
        """Whether a record is about as large as its file;
        if not, its size is unknown before it is made.
        """
        return self.how is None or not self.how.may_shrink

    @abstractmethod
    def record(self, item: Item, data: Buffer) -> Recorded:
        """The record of an item whose file holds ``data``.

        Raises:
            ImageError: the file is damaged, or has the wrong kind.
        """

    def of_headers(self) -> Recorder:
        """A recorder of the same records that checks headers alone."""
        return replace(self, check="header")


def takes(recorder: Recorder, item: Item, data: Buffer) -> bool:
    """Whether a recorder can make a record of an item."""
    try:
        recorder.record(item, data)
    except ImageError:
        return False
    return True


_LOOSER: Mapping[Check, tuple[Check, ...]] = {
    "strict": ("decode", "header"),
    "decode": ("header",),
    "header": (),
}


def looser_check(recorder: Recorder, item: Item, data: Buffer) -> str:
    """The setting with which a recorder would take an item that it refuses, as the user writes it;
    "" for none.
    """
    for check in _LOOSER[recorder.check]:
        if takes(replace(recorder, check=check), item, data):
            return recorder.loosely.format(check)
    return ""


class InceptionRecorder(Recorder, frozen=True):
    """Makes records of 2016's layout; ``numbers`` are the labels to write for 1, 2, ..., None:
    the same labels.
    """

    numbers: Sequence[int] | None = None

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The fifteen features around the image's own bytes, or around its repaired bytes."""
        image = prepare(data, self.check, self.how, upright=self.upright)
        if image.orientation != UPRIGHT and item.boxes:
            item = replace(
                item, boxes=tuple(turn_box(box, image.orientation) for box in item.boxes)
            )
        if self.numbers is not None:
            item = self.numbered(item)
        encoded = image.encoded
        head, tail = inception.record_parts(item, image.width, image.height, len(encoded))
        return Recorded((head, encoded, tail), image.changes, image.warning)

    def numbered(self, item: Item) -> Item:
        """The item with the label of its record."""
        return item if self.numbers is None else replace(item, label=self.numbers[item.label - 1])


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

    def rows(self, plan: ShardPlan) -> range:
        """The catalog's rows of one shard, in record order."""
        return range(plan.start, plan.stop)


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
    options: Settings = ()
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
    """Shuffle a split, unless ``seed`` is None, and cut it into ``count`` plans;
    ``deciding`` settings decide bytes.
    """
    rows = range(len(catalog)) if seed is None else order.shuffled(len(catalog), seed)
    settings = json.dumps(deciding, sort_keys=True)
    from imagenet_prep.sources.fingerprint import Fingerprints, names_and_sizes

    digest, stamps = names_and_sizes(catalog), catalog.stamps_of_containers()
    arranged = catalog.picked(rows)
    fingerprints = Fingerprints(arranged, settings)

    nothing, plans = fingerprints.compute(range(0)), []  # there may be many more shards than images
    for i, (start, stop) in enumerate(itertools.pairwise(order.bounds(len(catalog), count))):
        fingerprint = fingerprints.compute(range(start, stop)) if start < stop else nothing
        plans.append(ShardPlan(catalog.split, i, count, start, stop, fingerprint))
    return PlannedSplit(arranged, source, digest, recorder, tuple(plans), stamps)


def source_record(planned: PlannedSplit) -> dict[str, object]:
    """A manifest's entry for a split's images: their source, number,
    digest of names, sizes and labels, and facts.
    """
    from imagenet_prep.sources.names import shown_name

    images = {
        "name": shown_name(planned.source),
        "images": len(planned.catalog),
        "names_and_sizes": planned.digest,
    }
    return {**images, **planned.facts}


def refuse_other_images(planned: PlannedSplit, manifest: Manifest) -> None:
    """Raise unless names, sizes, labels and boxes are the recorded ones;
    times and the kind of container may differ.
    """
    split, source = planned.catalog.split, planned.source
    expected, found = manifest.sources.get(split), source_record(planned)
    if not isinstance(expected, dict):
        raise not_understood(f"source of the {split} images")
    if any(expected.get(key) != found[key] for key in ("images", "names_and_sizes")):
        detail = f"expected {expected.get('images')} images, got {found['images']}"
        if expected.get("images") == found["images"]:
            detail = (
                f"their number is the same, {found['images']}, but some have other names or sizes"
            )
        raise InputError(
            f"the {split} images in {source} are not those that the shards were made from",
            detail,
            (
                "restore them or name their folder with --raw, or make the set again: "
                "imagenet-prep convert --overwrite"
            ),
        )
    if (boxes := len(planned.catalog.boxes) // 4) != manifest.totals[split].boxes:
        raise InputError(
            f"the {split} boxes differ from those in the shards",
            f"expected {manifest.totals[split].boxes} boxes, got {boxes}",
            "restore their file, or make it again with imagenet-prep annotate",
        )


def knows(plan: Plan, shard: ShardPlan, times: str) -> bool:
    """Whether a shard is planned from exactly these items, in files of these times."""
    fingerprints, known = plan.fingerprints.get(shard.split, ()), plan.times.get(shard.split, ())
    if shard.index >= min(len(fingerprints), len(known)):
        return False
    return (fingerprints[shard.index], known[shard.index]) == (shard.fingerprint, times)


def shard_plans(plan: Plan, split: str) -> list[ShardPlan]:
    """The shards of a split, in order."""
    fingerprints = plan.fingerprints[split]
    edges = itertools.pairwise(order.bounds(plan.totals[split].images, len(fingerprints)))
    return [
        ShardPlan(split, number, len(fingerprints), start, stop, fingerprint)
        for number, (fingerprint, (start, stop)) in enumerate(zip(fingerprints, edges, strict=True))
    ]


def planned_shards(plan: Plan) -> dict[str, ShardInfo]:
    """Each shard of a plan by name, with the facts known before it is made."""
    shards: dict[str, ShardInfo] = {}
    for split in plan.fingerprints:
        for shard in shard_plans(plan, split):
            name = plan_name(shard)
            shards[name] = ShardInfo(name, shard.fingerprint, shard.stop - shard.start, 0, "")
    return shards


def planned_manifest(plan: Plan) -> Manifest:
    """The manifest to come, except for facts of finished shards."""
    values = dict(plan.settings), dict(plan.sources), dict(plan.totals)
    return Manifest(__version__, plan.dataset, *values, planned_shards(plan))


def read_planned(
    plan: Plan,
    layout: Layout,
    asked: Asked,
    names: Collection[str] | None = None,
    progress: Progress | None = None,
) -> PlannedSet | None:
    """The planned set, or its shards of these names. None: raw data has changed, or rows are lost.

    None also if all shards are requested and images are in files of their own, each of which may
    have changed. ``progress`` shows which rows are damaged.
    """
    try:
        splits = tuple(_read_split(plan, split, layout, asked, names) for split in asked.recorders)
    except (InputError, KeyError) as error:
        if progress is not None and isinstance(error, InputError):
            progress.note(f"warning: {error.what}: the raw data is listed again")
        return None
    if not all(split.catalog.is_current(trusts_folders=names is not None) for split in splits):
        return None
    return PlannedSet(
        plan.dataset, splits, plan.settings, plan.expected, plan.options, plan.notes, asked=asked
    )


def _read_split(
    plan: Plan, split: str, layout: Layout, asked: Asked, names: Collection[str] | None
) -> PlannedSplit:
    plans = shard_plans(plan, split)
    folder, pieces = layout.plan_path.with_name(plan.rows[split]), None
    if names is not None:
        plans = [shard for shard in plans if plan_name(shard) in names]
        pieces = [range(shard.start, shard.stop) for shard in plans]
    from imagenet_prep.sources.saved_catalog import load_catalog

    catalog = load_catalog(folder, folder.name, pieces)
    if names is not None:
        plans = _renumbered(plans, catalog, json.dumps(asked.deciding, sort_keys=True))
    digest = plan.sources[split]["names_and_sizes"]
    origin = locate(plan.origins[split])
    return PlannedSplit(
        catalog, origin, digest, asked.recorders[split], tuple(plans), plan.stamps[split]
    )


def remove_other_rows(plan: Plan, layout: Layout) -> None:
    """Remove the rows of earlier plans: they are not needed once the set is finished."""
    for path in layout.plan_path.parent.glob("*/*"):
        if path.parent.name not in plan.rows.values():
            path.unlink(missing_ok=True)
            if (folder := local_or_none(path.parent)) is not None:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def differences(
    plan: Plan, other: Plan | Manifest, or_else: str = "boxes or columns of some images"
) -> list[str]:
    """A list of the differences to another set; ``or_else`` if settings and totals are the same."""
    found = _changed_settings(other.settings, plan.settings)
    found += ["classes"] if plan.dataset.classes != other.dataset.classes else []
    for split, totals in plan.totals.items():
        then = other.totals.get(split)
        if then is None or then.shards != totals.shards:
            found.append(
                f"number of {split} shards ({then.shards if then else 'none'}, now {totals.shards})"
            )
        for name in ("boxes", "classes", "expected") if then is not None else ():
            if getattr(then, name) != getattr(totals, name):
                found.append(f"{split} boxes" if name == "boxes" else f"{name} of {split}")
        if _content(other.sources.get(split)) != _content(plan.sources[split]):
            found.append(f"{split} images")
    return found or [or_else] * bool(or_else)


def _changed_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as the user writes them: "--resize (64, now 32)"."""
    from imagenet_prep.datasets.declarations import CommonSettings, settings_of

    options = {each.name for each in settings_of(CommonSettings) if "convert" in each.options}
    before, after = map(_flat, (then, now))
    if "codec" not in before.keys() & after.keys():  # images that are kept have none
        before, after = ({**each, "codec": None} for each in (before, after))
    found = []
    for name in sorted({*before, *after}):
        values = before.get(name), after.get(name)
        if values[0] != values[1]:
            is_plain = all(value is None or isinstance(value, str | int) for value in values)
            told = [
                "none" if value is None else json.dumps(value).strip('"')
                for value in values
                if is_plain
            ]
            words = f"--{name.replace('_', '-')}" if name in options else name
            found.append(f"{words} ({told[0]}, now {told[1]})" if is_plain else words)
    return found


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    how = settings.get("reencode")
    return {**settings, **how, "reencode": None} if isinstance(how, dict) else dict(settings)


def _content(source: object) -> object:
    """The values of a source record that decide its images:
    the same ones may be in an archive or in folders.
    """
    return (
        (source.get("images"), source.get("names_and_sizes"))
        if isinstance(source, dict)
        else source
    )


def _renumbered(plans: Sequence[ShardPlan], catalog: Catalog, settings: str) -> list[ShardPlan]:
    """The plans of shards whose rows a catalog has;
    raises InputError if they are not the planned rows.
    """
    from imagenet_prep.sources.fingerprint import Fingerprints

    found, start, fingerprints = [], 0, Fingerprints(catalog, settings)
    for plan in plans:
        stop = start + plan.stop - plan.start
        if fingerprints.compute(range(start, stop)) != plan.fingerprint:
            raise InputError(f"the rows of {plan_name(plan)} are not those that were planned")
        found.append(replace(plan, start=start, stop=stop))
        start = stop
    return found


def plan_of(
    planned: PlannedSet,
    layout: Layout,
    before: Plan | None,
    packed: Mapping[str, PackedCatalog],
) -> Plan:
    """The plan of a set that was listed, ``packed`` by split;
    known places from ``before`` are kept.
    """
    splits = {split.catalog.split: split for split in planned.splits}
    known = before.stamps if before else {}
    # a recipe's images are relative to its own folder, which ``recipe`` holds
    raw = layout.raw or (layout.own_raw_dir if layout.output and not planned.recipe else None)
    return Plan(
        dataset=planned.entry,
        settings=planned.settings,
        sources={name: source_record(split) for name, split in splits.items()},
        totals={
            name: SplitTotals(
                images=len(split.catalog),
                expected=planned.expected[name],
                classes=len(split.catalog.count_by_label().keys() - {0}),
                boxes=len(split.catalog.boxes) // 4,
                shards=len(split.plans),
                unlabelled=planned.count_unlabelled(split),
            )
            for name, split in splits.items()
        },
        fingerprints={
            name: tuple(plan.fingerprint for plan in split.plans) for name, split in splits.items()
        },
        expected=planned.expected,
        options=planned.options,
        raw=str(raw.resolve()) if raw else None,
        recipe=planned.recipe,
        stamps={name: {**known.get(name, {}), **split.stamps} for name, split in splits.items()},
        times={name: tuple(split.times) for name, split in splits.items()},
        rows={name: each.name for name, each in packed.items()},
        origins={name: str(split.source.resolve()) for name, split in splits.items()},
        notes=planned.notes,
        asked={"options": planned.asked.options, "raw": planned.asked.raw} if planned.asked else {},
    )
