"""Inputs and settings -> the shards to make: catalogs in canonical order, cut into plans."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from imagenet_prep import ilsvrc2012, order
from imagenet_prep.errors import IncompleteError, InputError, PrepError, UsageError
from imagenet_prep.escaping import quoted
from imagenet_prep.formats.boxes_csv import BoxesFault, BoxTable, parse_boxes
from imagenet_prep.formats.compressed import Compression
from imagenet_prep.formats.image import Check
from imagenet_prep.formats.pixels import Reencode, codec
from imagenet_prep.layout import Layout, parse_shard_name, shard_name
from imagenet_prep.manifest import Manifest
from imagenet_prep.model import Engine, Progress, ShardPlan
from imagenet_prep.recorder import InceptionRecorder, Recorder
from imagenet_prep.sources import imagenet
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage.plain import load_json
from imagenet_prep.wording import number_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.plan import Plan

FORMAT_VERSION = 1
"""Goes into every fingerprint: raised when the bytes of a record change."""


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """How to convert; the defaults make the record set of 2016.

    ``check`` "auto" decodes every image unless the archive's digest is the published one. ``read_order`` "sequential"
    passes over each archive once, holding up to ``memory`` bytes (None: a quarter of what is free); "auto" does so
    where seeking is dear and memory can't hold the archive.
    """

    train_shards: int = ilsvrc2012.SHARDS["train"]
    validation_shards: int = ilsvrc2012.SHARDS["validation"]
    seed: int = ilsvrc2012.SEED
    shuffle: bool = True
    check: Literal["auto", "header", "decode"] = "auto"
    reencode: Reencode | None = None
    read_order: Literal["auto", "shuffled", "sequential"] = "auto"
    memory: int | None = None
    compression: Compression = "none"
    validation_boxes: bool = False
    allow_incomplete: bool = False
    skip_bad: bool = False
    overwrite: bool = False

    def shards(self, split: str) -> int:
        """How many shards a split gets."""
        return self.train_shards if split == ilsvrc2012.TRAIN else self.validation_shards

    def deciding(self) -> dict[str, object]:
        """The settings that decide the bytes of a shard besides its items."""
        deciding: dict[str, object] = {"format": FORMAT_VERSION, "compression": self.compression}
        if self.reencode is not None:
            deciding["reencode"] = {**dataclasses.asdict(self.reencode), "codec": codec()}
        return deciding

    def ordering(self) -> dict[str, object]:
        """The settings that decide which item goes where."""
        return {"seed": self.seed, "shuffle": self.shuffle}


def options_from(manifest: Manifest) -> ConvertOptions:
    """The options of the conversion that a manifest records: the same ones make the same bytes again.

    What decides no bytes (``check``, ``read_order``, ``memory``) has its default. ``skip_bad`` is set if images were
    set aside, ``allow_incomplete`` if images of ILSVRC2012 were missing.

    Raises:
        InputError: the settings can't be understood, or records had another form then.
    """
    settings = manifest.settings
    if settings.get("format") != FORMAT_VERSION:
        raise InputError(
            f"these shards were made by imagenet-prep {manifest.version}, whose records have another form",
            f"expected format {FORMAT_VERSION}, got {settings.get('format')!r}",
            "use that version, or make the set again with imagenet-prep convert --overwrite",
        )
    if not _is_known(settings):
        raise not_understood("settings")
    counts = {**ilsvrc2012.SHARDS, **{split: total.shards for split, total in manifest.totals.items()}}
    if not all(_is_one_of(name, counts) for name in manifest.shards):
        raise not_understood("names of shards")
    return ConvertOptions(
        train_shards=counts[ilsvrc2012.TRAIN],
        validation_shards=counts[ilsvrc2012.VALIDATION],
        seed=settings["seed"],
        shuffle=settings["shuffle"],
        reencode=_reencode_from(settings.get("reencode")),
        compression=settings["compression"],
        validation_boxes=settings["validation_boxes"],
        allow_incomplete=not all(_was_complete(manifest, split) for split in ilsvrc2012.SPLITS),
        skip_bad=manifest.has_set_aside,
    )


def _is_one_of(name: str, counts: Mapping[str, int]) -> bool:
    parsed = parse_shard_name(name)
    return parsed is not None and parsed[1] < parsed[2] == counts.get(parsed[0])


def _is_known(settings: Mapping[str, object]) -> bool:
    kinds = {"seed": int, "shuffle": bool, "compression": str, "validation_boxes": bool}
    has_kinds = all(type(settings.get(name)) is kind for name, kind in kinds.items())
    return has_kinds and settings["compression"] in get_args(Compression)


def _reencode_from(recorded: object) -> Reencode | None:
    if recorded is None:
        return None
    numbers = {key: value for key, value in recorded.items() if key != "codec"} if isinstance(recorded, dict) else {}
    is_known = set(numbers) == {field.name for field in dataclasses.fields(Reencode)}
    if not is_known or not all(value is None or type(value) is int for value in numbers.values()):
        raise not_understood("settings")
    return Reencode(**numbers)


def _was_complete(manifest: Manifest, split: str) -> bool:
    source, totals = manifest.sources.get(split), manifest.totals.get(split)
    images = source.get("images") if isinstance(source, dict) else None
    return totals is not None and (images, totals.classes) == (ilsvrc2012.IMAGES[split], ilsvrc2012.CLASSES)


def not_understood(what: str) -> InputError:
    """The error for a manifest that is no manifest of ours in one point."""
    return InputError(
        f"the {what} in the manifest can't be understood",
        "expected them as imagenet-prep convert writes them",
        "remove the manifest and run the same imagenet-prep convert again: finished shards are kept",
    )


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """One split, planned: ``order`` holds the catalog's rows in record order, ``recorder`` makes the records."""

    catalog: Catalog
    source: Path
    order: array[int]
    recorder: Recorder
    plans: tuple[ShardPlan, ...]

    def rows(self, plan: ShardPlan) -> array[int]:
        """The catalog's rows of one shard, in record order."""
        return self.order[plan.start : plan.stop]


def plan_name(plan: ShardPlan) -> str:
    """The name of the shard that a plan makes."""
    return shard_name(plan.split, plan.index, plan.count)


def source_record(catalog: Catalog, source: Path) -> dict[str, object]:
    """What a manifest says of a split's images: from where, how many, and a digest of their names, sizes and labels."""
    digest = hashlib.sha256(catalog.names.joined)
    for values in (catalog.lengths, catalog.labels):
        digest.update(values.tobytes())
    return {"name": source.name, "images": len(catalog), "names_and_sizes": digest.hexdigest()}


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError if a number can't be."""
    for split in ilsvrc2012.SPLITS:
        if not 1 <= options.shards(split) <= 99_999:
            raise UsageError(f"{options.shards(split)} {split} shards", "expected 1 to 99999")


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A whole data set, planned: what to tell the user about it, and what its manifest says of how it was made.

    ``settings`` are those that decide bytes; ``recipe`` is that of Manifest; ``expected`` images by split;
    ``doubts`` speak against beginning such a set, not against going on with one that an earlier version began.
    """

    splits: tuple[PlannedSplit, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, object]
    expected: Mapping[str, int]
    recipe: dict[str, Any] | None = None
    doubts: tuple[PrepError, ...] = ()


def plan_recipe(plan: Plan) -> PlannedSet:
    """The splits of a recipe, cut into plans."""
    splits = []
    for each in plan.splits:
        seed = each.seed if each.shuffle else None
        splits.append(cut(each.catalog, each.origin, each.recorder, each.shards, seed, plan.settings))
    ordering = {each.prefix: {"seed": each.seed, "shuffle": each.shuffle} for each in plan.splits}
    features = {name: dict(promised) for name, promised in plan.features.items()}
    return PlannedSet(
        tuple(splits),
        plan.notes,
        {**plan.settings, "order": ordering},
        {each.prefix: len(each.catalog) for each in plan.splits},
        {"name": plan.path.stem, "splits": [each.prefix for each in plan.splits], "features": features},
        plan.doubts,
    )


def plan_imagenet(layout: Layout, engine: Engine, options: ConvertOptions, progress: Progress) -> PlannedSet:
    """Every split of ILSVRC2012 that is there, indexed and cut into plans.

    Raises:
        IncompleteError: images of ILSVRC2012 are missing, and ``allow_incomplete`` is not set.
        InputError: there is nothing to convert, or an archive or the boxes file is corrupt.
    """
    sources = {split: imagenet.find_source(layout, split) for split in ilsvrc2012.SPLITS}
    if not any(sources.values()):
        raise InputError(
            f"no images in {layout.raw_dir}",
            "expected the ILSVRC2012 archives, or folders train/ and validation/ (or val/), or Kaggle's ILSVRC/",
            f"imagenet-prep download {quoted(str(layout.data_dir))}    (or name the folder with --raw)",
        )
    catalogs: dict[str, Catalog] = {}
    for split, source in sources.items():
        if source is not None:
            progress.note(f"indexing {source}")
            catalogs[split] = imagenet.read_catalog(source, split, engine)
    notes = _check_complete(catalogs, options)
    splits, doubts = [], []
    for split, catalog in catalogs.items():
        source, count = sources[split], options.shards(split)
        assert source is not None
        if count > (most := order.most_shards(len(catalog))):
            what = f"{number_of(count, f'{split} shard')} of {number_of(len(catalog), 'image')}"
            doubts.append(UsageError(what, f"expected at most {most:,}"))
        notes += _attach_boxes(catalog, layout, options)
        splits.append(_plan_split(catalog, source, layout, options))
    settings = {**options.deciding(), **options.ordering(), "validation_boxes": options.validation_boxes}
    return PlannedSet(tuple(splits), tuple(notes), settings, ilsvrc2012.IMAGES, doubts=tuple(doubts))


def plan_again(
    layout: Layout, engine: Engine, splits: Collection[str], options: ConvertOptions, progress: Progress
) -> list[PlannedSplit]:
    """Some splits, planned as ``options`` say, complete or not: for shards whose digests are known.

    Their digests prove the images, so ``check`` is "header".

    Raises:
        InputError: there are no images of a split, or an archive or the boxes file is corrupt.
    """
    options = dataclasses.replace(options, check="header")
    planned = []
    for split in splits:
        source = imagenet.find_source(layout, split)
        if source is None:
            raise InputError(
                f"no {split} images in {layout.raw_dir}",
                "expected the archive or the folder that the shards were made from",
                "put it back, or name the folder that holds it with --raw",
            )
        progress.note(f"indexing {source}")
        catalog = imagenet.read_catalog(source, split, engine)
        _attach_boxes(catalog, layout, options)
        planned.append(_plan_split(catalog, source, layout, options))
    return planned


def _check_complete(catalogs: dict[str, Catalog], options: ConvertOptions) -> list[str]:
    missing = [imagenet.missing_text(catalogs.get(split), split) for split in ilsvrc2012.SPLITS]
    lacking = [text for text in missing if text]
    if lacking and not options.allow_incomplete:
        raise IncompleteError(
            "this is not the whole of ILSVRC2012",
            " | ".join(lacking),
            "get the missing images, or convert what is there with --allow-incomplete",
        )
    return [f"a part of ILSVRC2012: {text}" for text in lacking]


def _attach_boxes(catalog: Catalog, layout: Layout, options: ConvertOptions) -> list[str]:
    """Give the images their boxes; say so if there are none to give."""
    if catalog.split == ilsvrc2012.VALIDATION and not options.validation_boxes:
        return []
    path = layout.find_boxes_csv(catalog.split)
    if path is None:
        return [f"no boxes for {catalog.split}: {layout.boxes_csv} is not there (imagenet-prep annotate makes it)"]
    catalog.attach_boxes(_read_boxes(path, layout))
    return []


def _read_boxes(path: Path, layout: Layout) -> BoxTable:
    try:
        return parse_boxes(path.read_bytes())
    except BoxesFault as fault:
        raise InputError(
            f"{path} is damaged at line {fault.line:,}",
            fault.reason,
            f"remove it and make it again: imagenet-prep annotate {quoted(str(layout.data_dir))}",
        ) from fault


def _plan_split(catalog: Catalog, source: Path, layout: Layout, options: ConvertOptions) -> PlannedSplit:
    recorder = InceptionRecorder(_depth(source, catalog.split, layout, options), options.reencode)
    seed = options.seed if options.shuffle else None
    return cut(catalog, source, recorder, options.shards(catalog.split), seed, options.deciding())


def cut(
    catalog: Catalog, source: Path, recorder: Recorder, count: int, seed: int | None, deciding: Mapping[str, object]
) -> PlannedSplit:
    """Shuffle a split, unless ``seed`` is None, and cut it into ``count`` plans; ``deciding`` settings decide bytes."""
    rows = array("I", range(len(catalog))) if seed is None else order.shuffled(len(catalog), seed)
    settings = json.dumps(deciding, sort_keys=True)
    edges = order.bounds(len(catalog), count)
    plans = tuple(
        ShardPlan(catalog.split, i, count, start, stop, catalog.fingerprint(rows[start:stop], settings))
        for i, (start, stop) in enumerate(itertools.pairwise(edges))
    )
    return PlannedSplit(catalog, source, rows, recorder, plans)


def _depth(source: Path, split: str, layout: Layout, options: ConvertOptions) -> Check:
    """How closely to look at images: "auto" trusts an archive whose published digest was checked."""
    if options.check != "auto":
        return options.check
    checked = load_json(layout.checked_path) if source.is_file() else None
    known = checked.get(source.name) if isinstance(checked, dict) else None
    if not isinstance(known, dict):
        return "decode"
    status = source.stat()
    unchanged = (known.get("size"), known.get("mtime_ns")) == (status.st_size, status.st_mtime_ns)
    return "header" if unchanged and known.get("md5") == ilsvrc2012.ARCHIVES[split].md5 else "decode"
