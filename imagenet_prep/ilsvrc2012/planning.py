"""plan: cuts the splits of ILSVRC2012 that are present into the shards to make."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.datasets.kept_notes import WILL_BE_EMPTY
from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit, ShardNote, SplitNote, cut
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import refuse_empty
from imagenet_prep.ilsvrc2012.class_parts import Part
from imagenet_prep.ilsvrc2012.devkit import train_counts
from imagenet_prep.ilsvrc2012.image_counts import (
    at_least_text,
    count_by_wnid,
    expected_images,
    has_too_few,
    has_too_many,
    missing_text,
)
from imagenet_prep.ilsvrc2012.official import ImageSource
from imagenet_prep.ilsvrc2012.plan_inputs import (
    ask,
    other_copies,
    recorder_for,
    require_sources,
    saved_plan,
)
from imagenet_prep.ilsvrc2012.planned_boxes import attach_boxes
from imagenet_prep.ilsvrc2012.settings import ENTRY, ConvertOptions, check_options
from imagenet_prep.images import format_of
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.row_bytes import read_in_turn
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.text import number_of

_SAMPLED = 8
"""Images of a split whose format is looked at before any shard is made."""


def plan(
    records: SetRecords,
    engine: Engine,
    options: ConvertOptions,
    progress: Progress,
    splits: Collection[str] = (),
) -> PlannedSet:
    """Index every split that is present, or ``splits``, and cut it into plans; raises as Dataset.

    With ``splits`` the digests of the shards prove the images, so ``check`` is "header".
    """
    check_options(options)
    layout = records.layout
    sources = require_sources(layout, splits)
    notes: list[str] = []
    if splits:
        options = options.replace(check="header")
        unchanged_plan = saved_plan(records, options, sources)
        if unchanged_plan is not None:
            return unchanged_plan
    else:
        notes += _note_missing_files(sources, options)
    catalogs: dict[str, Catalog] = {}
    for split, source in sources.items():
        catalogs[split] = _list_images(source, engine, progress, options.part)
        if not catalogs[split]:
            refuse_empty(layout, source, options.part)
    by_class = train_counts(layout) or {}
    if not splits:
        notes += _check_complete(layout, sources, catalogs, options, by_class)
        _refuse_encoded_again(catalogs.values(), layout)
    planned: list[PlannedSplit] = []
    for split, catalog in catalogs.items():
        if not splits:  # a repair has the number of shards from the manifest
            notes += _check_count(split, len(catalog), options.shards(split))
        split_plan, split_notes = _plan_split(catalog, sources[split], layout, options, by_class)
        planned.append(split_plan)
        notes += [SplitNote.of(split, note) for note in split_notes]
    expected: dict[str, int] = {}
    for split in facts.SPLITS:
        expected[split] = expected_images(catalogs.get(split), split, options.part, by_class)
    return PlannedSet(
        entry=replace(ENTRY, name=options.part.name, classes=options.part.recorded),
        splits=tuple(planned),
        settings=options.settings(),
        expected=expected,
        options=options.chosen(),
        notes=tuple(notes),
        asked=ask(layout, options, sources),
    )


def _list_images(source: ImageSource, engine: Engine, progress: Progress, part: Part) -> Catalog:
    """The catalog of a split, of the classes of a part."""
    progress.note(f"indexing {source.files} for {source.split}")
    catalog = source.catalog(engine, progress)
    if part.is_whole:
        return catalog
    labels = part.rows()
    rows = [row for row, label in enumerate(catalog.labels.tolist()) if label in labels]
    return catalog.whole(rows)


def _plan_split(
    catalog: Catalog,
    source: ImageSource,
    layout: Layout,
    options: ConvertOptions,
    by_class: Mapping[str, int],
) -> tuple[PlannedSplit, list[str]]:
    """Give the images of a split their boxes, and cut it into shards; notes too."""
    boxes_entry, notes = attach_boxes(catalog, layout, options)
    recorder = recorder_for(source, layout, options)
    shards = options.shards(catalog.split)
    seed = options.seed if options.shuffle else None
    split_plan = cut(catalog, source.path, recorder, shards, seed, options.fingerprinted())
    entries = {**boxes_entry, **_by_class(catalog, by_class, options.part)}
    return replace(split_plan, facts=entries), notes


def _by_class(
    catalog: Catalog, by_class: Mapping[str, int], part: Part
) -> dict[str, Mapping[str, int]]:
    """The manifest's entries for the train images of each class:
    how many are listed, and how many by the devkit.
    """
    if not by_class or catalog.split != facts.TRAIN:
        return {}
    counts = count_by_wnid(catalog.count_by_label())
    return {
        "images_by_class": counts,
        "expected_by_class": {wnid: by_class[wnid] for wnid in part.labels},
    }


# completeness -------------------------------------------------------------------------------------


ALLOW_INCOMPLETE = (
    "run the same command with --allow-incomplete "
    "(in a recipe: allow_incomplete: true; in Python: ConvertOptions(allow_incomplete=True))"
)
"""How a command, a recipe or Python accepts a part of ImageNet."""


def _note_missing_files(sources: Mapping[str, ImageSource], options: ConvertOptions) -> list[str]:
    """Notes on copies that lack files; raises IncompleteError if that is not allowed."""
    lacking: dict[str, str] = {}
    for split, source in sources.items():
        if source.missing:
            lacking[split] = f"{split} lacks {source.missing}"
    if lacking and not options.allow_incomplete:
        error = IncompleteError(
            f"{options.part.name} is incomplete",
            "; ".join(lacking.values()),
            f"get the missing files, or {ALLOW_INCOMPLETE}",
        )
        error.lacks = lacking
        raise error
    part = f"a part of {options.part.name}"
    return [SplitNote.of(split, f"{part}: {text}") for split, text in lacking.items()]


def _check_count(split: str, images: int, shards: int) -> list[str]:
    """A note if some shards will be empty; raises UsageError if most will."""
    most_shards = order.most_shards(images)
    option = "--train-shards" if split == facts.TRAIN else "--validation-shards"
    set_number = f"set their number with {option} (in a recipe: shards: {{{split}: NUMBER}})"
    if shards > most_shards:
        raise UsageError(
            f"can't cut {number_of(images, 'image')} into {number_of(shards, f'{split} shard')}",
            f"expected at most {number_of(most_shards, 'shard')}",
            set_number,
        )
    if shards <= images:
        return []
    counts = f"{number_of(images, 'image')} in {number_of(shards, 'shard')}"
    consequence = f"{shards - images:,} {WILL_BE_EMPTY}"
    return [ShardNote(f"{split}: {counts}: {consequence}; {set_number}")]


def _check_complete(
    layout: Layout,
    sources: Mapping[str, ImageSource],
    catalogs: Mapping[str, Catalog],
    options: ConvertOptions,
    by_class: Mapping[str, int],
) -> list[str]:
    """Check that all images are present; if not,
    the message also names copies that were not read.
    """
    missing: dict[str, str] = {}
    parts: list[str] = []
    unread: list[str] = []
    has_surplus = is_short = False
    for split in facts.SPLITS:
        catalog = catalogs.get(split)
        text = missing_text(catalog, split, options.part, by_class)
        if not text:
            continue
        missing[split] = text
        has_surplus |= has_too_many(catalog, split, options.part, by_class)
        is_short |= has_too_few(catalog, split, options.part, by_class)
        parts.append(SplitNote.of(split, _part_of(catalog, split, options.part, by_class)))
        if split in sources:
            copies = other_copies(layout, sources[split])
            unread += [SplitNote.of(split, note) for note in copies]
    if missing and not options.allow_incomplete:
        deviations = [*missing.values()]
        error = _other_number(deviations, options.part, short=is_short, surplus=has_surplus)
        error.lacks = missing
        error.choices = unread
        raise error
    return [*parts, *unread]


def _part_of(catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int]) -> str:
    """Describe how much of a split is present;
    without permission, convert counts the incomplete classes.
    """
    counts = catalog.count_by_label() if catalog else {}
    expected = expected_images(catalog, split, part, by_class)
    at_least = at_least_text(split, part, by_class)
    images = f"{sum(counts.values()):,} of {at_least}{expected:,} {split} images"
    classes = f"{len(counts):,} of {number_of(len(part.labels), 'class', 'classes')}"
    amount = "more than" if sum(counts.values()) > expected else "a part of"
    return f"{amount} {part.name}: {images}, {classes}"


def _other_number(
    deviations: Sequence[str], part: Part, *, short: bool, surplus: bool
) -> IncompleteError:
    """The error for images that are missing, or for more images than there should be."""
    if not short:
        what, steps = f"{part.name} has too many images", "remove the images that are too many"
    elif surplus:
        what = f"{part.name} is incomplete, and has images too many"
        steps = "get the missing images and remove those that are too many"
    else:
        what, steps = f"{part.name} is incomplete", "get the missing images"
    hint = f"{steps}, or {ALLOW_INCOMPLETE}"
    return IncompleteError(what, "; ".join(deviations), hint)


# images encoded again -----------------------------------------------------------------------------


def _refuse_encoded_again(catalogs: Iterable[Catalog], layout: Layout) -> None:
    """Raise InputError if a few images show that somebody encoded them again.

    It saves the work; the images of all finished shards decide.
    """
    repairs = sampled_repairs(catalogs)
    if repairs:
        from imagenet_prep.ilsvrc2012.completeness import refuse_encoded_again  # late: few need it

        refuse_encoded_again(repairs, layout.raw_dir)


def sampled_repairs(catalogs: Iterable[Catalog]) -> list[str]:
    """A few images that are no JPEGs, with their formats,
    of local files that can be read in any order.
    """
    repairs: list[str] = []
    for catalog in catalogs:
        sample = _sample(catalog)
        if sample.is_in_order or not _is_local(sample):
            continue
        with contextlib.suppress(InputError):  # convert names an image that can't be read
            images = read_in_turn(sample, Reader())
            for name, image in zip(sample.names, images, strict=True):
                image_format = format_of(image)
                if image_format not in ("", "JPEG"):
                    repairs.append(f"{name} ({image_format.lower()})")
    return repairs


def _sample(catalog: Catalog) -> Catalog:
    """A few images, spread over a split."""
    images = len(catalog)
    if not images:
        return catalog.picked([])
    rows = {number * images // _SAMPLED for number in range(_SAMPLED)}
    return catalog.picked(sorted(rows))


def _is_local(catalog: Catalog) -> bool:
    """Whether all its files are on this machine."""
    return all(local_or_none(container.path) is not None for container in catalog.containers)
