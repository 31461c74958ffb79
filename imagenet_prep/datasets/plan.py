"""Catalogs -> shards to make, and what makes their records; Plan, what was decided, on the disk and claimed."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from imagenet_prep import __version__
from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import Settings
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import UPRIGHT, Check, prepare, turn_box
from imagenet_prep.model import Item, ShardInfo, ShardPlan
from imagenet_prep.state.journal import is_as_written, sealed_line
from imagenet_prep.state.manifest import DatasetEntry, Manifest, SplitTotals, not_understood
from imagenet_prep.storage.files import claim, find_plain, read_plain, save_bytes
from imagenet_prep.storage.layout import MAX_SHARDS, Layout, shard_name
from imagenet_prep.storage.location import AnyPath, local_or_none, locate
from imagenet_prep.tfrecord import inception

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog, PackedCatalog


Buffer = bytes | memoryview

_LOOSELY = "--check header"


class Recorded(NamedTuple):
    """A record: the pieces that follow each other, and what was done to its image beside encoding ("" for nothing)."""

    parts: tuple[Buffer, ...]
    repair: str = ""


class Recorder(Protocol):
    """Makes the records of one split; picklable."""

    @property
    def keeps_size(self) -> bool:
        """Whether a record takes about the bytes of its file; if not, how many can't be known before it is made."""
        ...

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The record of an item whose file holds ``data``.

        Raises:
            ImageError: the file is damaged, or isn't what it should be.
        """
        ...

    @property
    def loosely(self) -> str:
        """How to ask for a check of headers alone."""
        ...

    def of_headers(self) -> Recorder:
        """The recorder of the same records that checks headers alone."""
        ...


def takes(recorder: Recorder, item: Item, data: Buffer) -> bool:
    """Whether a recorder makes a record of an item."""
    try:
        recorder.record(item, data)
    except ImageError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class InceptionRecorder:
    """Records of 2016's layout.

    Args:
        check: how closely each image is looked at.
        how: how to encode every image again, or None to take them as they are.
        numbers: the labels to write for 1, 2, ...; None: those themselves.
        upright: turn images that are encoded again as EXIF asks, and their boxes with them; 2016 did not.
        loosely: how to ask for a ``check`` of headers alone.
    """

    check: Check = "decode"
    how: Reencode | None = None
    numbers: Sequence[int] | None = None
    upright: bool = False
    loosely: str = _LOOSELY

    @property
    def keeps_size(self) -> bool:
        """Not if images are made smaller."""
        return self.how is None or not self.how.may_shrink

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The fifteen features around the image's own bytes, or around what a repair made of them."""
        image = prepare(data, self.check, self.how, upright=self.upright)
        if image.orientation != UPRIGHT and item.boxes:
            item = dataclasses.replace(item, boxes=tuple(turn_box(box, image.orientation) for box in item.boxes))
        item = self.numbered(item)
        head, tail = inception.record_parts(item, image.width, image.height, len(image.encoded))
        return Recorded((head, image.encoded, tail), image.changes)

    def numbered(self, item: Item) -> Item:
        """The item with the label that its record has."""
        return item if self.numbers is None else dataclasses.replace(item, label=self.numbers[item.label - 1])

    def of_headers(self) -> InceptionRecorder:
        """The recorder of the same records that checks headers alone."""
        return dataclasses.replace(self, check="header")


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
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a data set is planned from, but for the images themselves: where it is the same, so is the plan.

    Args:
        options: all settings.
        raw: by split, which copy of it was found, and the files beside it that count.
        recorders: what makes the records of each split.
        deciding: the settings that decide bytes.
    """

    options: Any
    raw: Mapping[str, Any]
    recorders: Mapping[str, Recorder]
    deciding: Mapping[str, object]


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


SCHEMA = 1
"""Of plan.json."""

MOST_BYTES = 1 << 33
"""Of its file, of which a million shards take 70 MB."""

Stamps = Mapping[str, Mapping[str, str]]
"""By split, the stamp of each container that holds its images, by path."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a set will be, and where its images lie.

    Args:
        dataset: what its manifest will say of the data set.
        settings: those that decide bytes.
        sources: what the manifest will say of each split's images.
        totals: what is to be made of each split.
        fingerprints: of the shards of each split, in order.
        expected: images of the whole data set, by split.
        options: the settings that make the same set again.
        raw: the folder that was given for raw data.
        recipe: where the recipe lies, and what its relative paths begin with.
        stamps: of all containers that were found to hold the images.
        times: of the shards of each split, a digest of the modification times of what holds their images.
        rows: the name of the folder beside plan.json that holds the images of each split in record order.
        origins: where the images of each split lie.
        notes: what to tell the user.
        asked: ``options`` of what it was planned from, and ``raw``, as Asked has them.
    """

    dataset: DatasetEntry
    settings: Mapping[str, Any]
    sources: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, SplitTotals]
    fingerprints: Mapping[str, tuple[str, ...]]
    expected: Mapping[str, int]
    options: tuple[tuple[str, Any], ...] = ()
    raw: str | None = None
    recipe: Mapping[str, str] = field(default_factory=dict)
    stamps: Stamps = field(default_factory=dict)
    times: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A digest of which shards are to be made, and of what: that of two plans of one and the same set."""
        digest = hashlib.sha256()
        for split, fingerprints in sorted(self.fingerprints.items()):
            digest.update("\n".join((split, str(len(fingerprints)), *fingerprints, "")).encode())
        return digest.hexdigest()[:16]

    @property
    def raw_dir(self) -> AnyPath | None:
        """The folder of raw data, if one was given."""
        return locate(self.raw) if self.raw else None

    def names(self, split: str) -> list[str]:
        """The names of the shards of a split, in order."""
        count = len(self.fingerprints.get(split, ()))
        return [shard_name(split, number, count) for number in range(count)]

    def knows(self, shard: ShardPlan, times: str) -> bool:
        """Whether it is of these very items in files of these times."""
        fingerprints, known = self.fingerprints.get(shard.split, ()), self.times.get(shard.split, ())
        if shard.index >= min(len(fingerprints), len(known)):
            return False
        return (fingerprints[shard.index], known[shard.index]) == (shard.fingerprint, times)

    def shards(self) -> dict[str, ShardInfo]:
        """Each shard by name, with what is known of it before it is made."""
        found = {}
        for split, fingerprints in self.fingerprints.items():
            edges = itertools.pairwise(order.bounds(self.totals[split].images, len(fingerprints)))
            for name, fingerprint, (start, stop) in zip(self.names(split), fingerprints, edges, strict=True):
                found[name] = ShardInfo(name, fingerprint, stop - start, 0, "")
        return found

    def read(self, layout: Layout, asked: Asked, names: Collection[str] | None = None) -> PlannedSet | None:
        """What was planned: all of it, or the shards of these names. None: raw data was written to, or rows are lost.

        Of all shards files of their own may have changed: then there is None, too.
        """
        try:
            splits = tuple(self._split(split, layout, asked, names) for split in asked.recorders)
        except (InputError, KeyError):
            return None
        if not all(each.catalog.is_current(trusts_folders=names is not None) for each in splits):
            return None
        return PlannedSet(self.dataset, splits, self.settings, self.expected, self.options, self.notes, asked=asked)

    def _split(self, split: str, layout: Layout, asked: Asked, names: Collection[str] | None) -> PlannedSplit:
        fingerprints = self.fingerprints[split]
        edges = itertools.pairwise(order.bounds(self.totals[split].images, len(fingerprints)))
        plans = [
            ShardPlan(split, number, len(fingerprints), start, stop, fingerprint)
            for number, (fingerprint, (start, stop)) in enumerate(zip(fingerprints, edges, strict=True))
        ]
        folder = layout.plan_path.with_name(self.rows[split])
        if hashlib.sha256(read_plain(folder / "catalog.json", MOST_BYTES)).hexdigest()[:16] != folder.name:
            raise InputError(f"{folder} has changed since it was written")
        from imagenet_prep.sources.catalog import Catalog

        if names is None:
            catalog = Catalog.load(folder, check=True)
        else:
            plans = [plan for plan in plans if plan_name(plan) in names]
            catalog = Catalog.load(folder, [range(plan.start, plan.stop) for plan in plans])
            plans = _renumbered(plans, catalog, json.dumps(asked.deciding, sort_keys=True))
        digest = self.sources[split]["names_and_sizes"]
        origin = locate(self.origins[split])
        return PlannedSplit(catalog, origin, (), digest, asked.recorders[split], tuple(plans), self.stamps[split])

    def manifest(self) -> Manifest:
        """The manifest to come, but for what only finished shards tell."""
        values = dict(self.settings), dict(self.sources), dict(self.totals)
        return Manifest(__version__, self.dataset, *values, self.shards())

    def encode(self) -> bytes:
        """Its file: one line of JSON with a seal."""
        import msgspec  # here, so that a command without a plan starts without it

        return sealed_line({"schema": SCHEMA, **msgspec.to_builtins(self, str_keys=True)})

    def save(self, layout: Layout, before: Plan | None, packed: Mapping[str, PackedCatalog], *, replaces: bool) -> None:
        """Keep the rows, then claim the set, unless ``before`` is this plan; ``replaces``: take another one's place.

        Raises:
            UsageError: another plan has been claimed.
        """
        content = self.encode()
        for each in packed.values():
            each.save(layout.plan_path.with_name(each.name))
        if before is not None and before.encode() == content:
            return
        if replaces or (before is not None and before.key == self.key):
            save_bytes(layout.plan_path, content)
            return
        other = _decode(claim(layout.plan_path, content))
        if other is None:  # what nobody can understand claims nothing
            save_bytes(layout.plan_path, content)
        elif other.key != self.key:
            raise UsageError(
                f"{layout.output_dir} is claimed for a set of other images or settings",
                f"expected those of {layout.plan_path}, but these differ: {', '.join(self.differences(other))}",
                "choose another folder with --output, or make this set in its place with --overwrite",
            )

    def remove_other_rows(self, layout: Layout) -> None:
        """Remove what earlier plans kept: nobody reads it once the set is finished."""
        for path in layout.plan_path.parent.glob("*/*"):
            if path.parent.name not in self.rows.values():
                path.unlink(missing_ok=True)
                if (folder := local_or_none(path.parent)) is not None:
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def differences(self, other: Plan | Manifest, or_else: str = "boxes or columns of some images") -> list[str]:
        """In what a set differs from another one, in words; ``or_else`` where settings and totals are the same."""
        ours, theirs = self.settings, other.settings
        found = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        found += ["classes"] if self.dataset.classes != other.dataset.classes else []
        for split, totals in self.totals.items():
            then = other.totals.get(split)
            if then is None or then.shards != totals.shards:
                found.append(f"number of {split} shards")
            for name in ("boxes", "classes", "expected") if then is not None else ():
                if getattr(then, name) != getattr(totals, name):
                    found.append(f"{split} boxes" if name == "boxes" else f"{name} of {split}")
            if _content(other.sources.get(split)) != _content(self.sources[split]):
                found.append(f"{split} images")
        return found or [or_else] * bool(or_else)


def _content(source: object) -> object:
    """What a source record says but for its name: the same images may lie in an archive or in folders."""
    return {key: source[key] for key in source if key != "name"} if isinstance(source, dict) else source


def _renumbered(plans: Sequence[ShardPlan], catalog: Catalog, settings: str) -> list[ShardPlan]:
    """The plans of shards whose rows alone a catalog has; raises InputError if they are not the rows of then."""
    from imagenet_prep.sources.fingerprint import Fingerprints

    found, start, fingerprints = [], 0, Fingerprints(catalog, settings)
    for plan in plans:
        stop = start + plan.stop - plan.start
        if fingerprints.of(range(start, stop)) != plan.fingerprint:
            raise InputError(f"the rows of {plan_name(plan)} are not those that were planned")
        found.append(dataclasses.replace(plan, start=start, stop=stop))
        start = stop
    return found


def plan_of(
    planned: PlannedSet,
    layout: Layout,
    recipe: Mapping[str, str] | None,
    before: Plan | None,
    packed: Mapping[str, PackedCatalog],
) -> Plan:
    """The plan of a set that was listed, ``packed`` by split; what is known of places from ``before`` is kept."""
    splits = {split.catalog.split: split for split in planned.splits}
    known = before.stamps if before else {}
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
            )
            for name, split in splits.items()
        },
        fingerprints={name: tuple(plan.fingerprint for plan in split.plans) for name, split in splits.items()},
        expected=planned.expected,
        options=planned.options,
        raw=str(layout.raw.resolve()) if layout.raw else None,
        recipe=recipe or {},
        stamps={name: {**known.get(name, {}), **split.stamps} for name, split in splits.items()},
        times={name: tuple(split.times) for name, split in splits.items()},
        rows={name: each.name for name, each in packed.items()},
        origins={name: str(split.source.resolve()) for name, split in splits.items()},
        notes=planned.notes,
        asked={"options": planned.asked.options, "raw": planned.asked.raw} if planned.asked else {},
    )


def load_plan(layout: Layout) -> Plan | None:
    """The plan of the set, or None if there is none that can be understood.

    Raises:
        InputError: it can't be read.
    """
    return _decode(find_plain(layout.plan_path, MOST_BYTES) or b"")


def _decode(content: bytes) -> Plan | None:
    if not is_as_written(content):
        return None
    import msgspec

    try:
        value = json.loads(content)
        if value.pop("schema") != SCHEMA:
            return None
        del value["crc"]
        found = msgspec.convert(value, Plan)
    except (msgspec.MsgspecError, ValueError, KeyError):
        return None
    counts = {split: totals.shards for split, totals in found.totals.items()}
    is_whole = counts == {split: len(each) for split, each in found.fingerprints.items()}
    return found if is_whole and all(0 < count <= MAX_SHARDS for count in counts.values()) else None
