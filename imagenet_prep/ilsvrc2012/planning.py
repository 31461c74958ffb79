"""plan: cuts the splits of ILSVRC2012 that are present into the shards to make."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.datasets.planned_set import Asked, PlannedSet, PlannedSplit, cut
from imagenet_prep.datasets.stored_plan import read_planned
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.escaping import CommandLine, OptionValues, command, command_line, mention
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import (
    nothing_found,
    refuse_empty,
    refuse_known_copies,
    refuse_unread,
)
from imagenet_prep.ilsvrc2012.box_search import BOX_ARCHIVES, find_annotations, find_boxes_csv
from imagenet_prep.ilsvrc2012.boxes import BoxesFault, BoxTable, parse_boxes
from imagenet_prep.ilsvrc2012.devkit import devkit_paths, train_counts
from imagenet_prep.ilsvrc2012.official import (
    ImageSource,
    count_by_wnid,
    expected_images,
    missing_text,
)
from imagenet_prep.ilsvrc2012.raw_data import ConsumedImages, checked_md5, find_copies, find_source
from imagenet_prep.ilsvrc2012.settings import ENTRY, ConvertOptions, Part, check_options
from imagenet_prep.images import format_of
from imagenet_prep.images.grades import Check
from imagenet_prep.model import Engine, Progress
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.row_bytes import read_in_turn
from imagenet_prep.sources.slices import Reader
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.text import number_of


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
    sources = _require_sources(layout, splits)
    notes: list[str] = []
    if splits:
        options = options.replace(check="header")
        saved = _saved_plan(records, options, sources)
        if saved is not None:
            return saved
    else:
        notes += _note_missing_files(sources, options)
    catalogs = {
        split: _read(source, engine, progress, options.part) for split, source in sources.items()
    }
    by_class = train_counts(layout) or {}
    if not splits:
        notes += _check_complete(layout, sources, catalogs, options, by_class)
        _refuse_encoded_again(catalogs.values(), layout)
    planned: list[PlannedSplit] = []
    for split, catalog in catalogs.items():
        if not catalog:
            refuse_empty(layout, sources[split], options.part)
        notes += _check_count(split, len(catalog), options.shards(split))
        split_plan, split_notes = _plan_split(catalog, sources[split], layout, options, by_class)
        planned.append(split_plan)
        notes += split_notes
    part = options.part
    return PlannedSet(
        entry=replace(ENTRY, name=part.name, classes=part.recorded),
        splits=tuple(planned),
        settings=options.settings(),
        expected={
            split: expected_images(catalogs.get(split), split, part, by_class)
            for split in facts.SPLITS
        },
        options=options.chosen(),
        notes=tuple(notes),
        asked=ask(layout, options, sources),
    )


def _note_missing_files(sources: Mapping[str, ImageSource], options: ConvertOptions) -> list[str]:
    """Notes on copies that lack files; raises IncompleteError if that is not allowed."""
    lacking = [
        f"{split} lacks {source.missing}" for split, source in sources.items() if source.missing
    ]
    return _allow_incomplete(lacking, "files", options)


def _plan_split(
    catalog: Catalog,
    source: ImageSource,
    layout: Layout,
    options: ConvertOptions,
    by_class: Mapping[str, int],
) -> tuple[PlannedSplit, list[str]]:
    """Give the images of a split their boxes, and cut it into shards; notes too."""
    boxes, notes = attach_boxes(catalog, layout, options)
    split_plan = cut(
        catalog,
        source.path,
        _recorder(source, layout, options),
        options.shards(catalog.split),
        options.seed if options.shuffle else None,
        options.fingerprinted(),
    )
    entries = {**boxes, **_by_class(catalog, by_class, options.part)}
    return replace(split_plan, facts=entries), notes


def _require_sources(layout: Layout, splits: Collection[str]) -> dict[str, ImageSource]:
    """The sources of ``splits``; without any, those of every split that is present.

    Raises:
        InputError: one is missing, or all are.
    """
    sources = find_sources(layout)
    for split in splits or facts.SPLITS:
        if split in sources:
            continue
        refuse_unread(layout, split)
        refuse_known_copies(layout, split)
        if splits:
            elsewhere = replace(layout, raw=Path("FOLDER")).elsewhere()
            raise InputError(
                f"no {split} images in {layout.raw_dir}",
                "expected the archive or the folder that the shards were made from",
                Hint(
                    "get these shards again from their owner, or, with the raw data: ",
                    command("repair", layout.data_dir, elsewhere),
                ),
            )
    if not sources:
        raise nothing_found(layout)
    return {split: sources[split] for split in splits} if splits else sources


def find_sources(layout: Layout) -> dict[str, ImageSource]:
    """The source of each split that is present."""
    sources: dict[str, ImageSource] = {}
    for split in facts.SPLITS:
        source = find_source(layout, split)
        if source is not None:
            sources[split] = source
    return sources


def ask(
    layout: Layout, options: ConvertOptions, sources: Mapping[str, ImageSource]
) -> Asked | None:
    """The inputs of a plan; None if their raw data was consumed."""
    if any(isinstance(source, ConsumedImages) for source in sources.values()):
        return None
    recorders = {split: _recorder(source, layout, options) for split, source in sources.items()}
    labels = json.dumps(options.part.recorded, sort_keys=True)
    chosen = options.replace(overwrite=False, consume=False).chosen()
    settings = [[name, str(value)] for name, value in chosen]
    checks = [[split, recorder.check] for split, recorder in recorders.items()]
    raw = {split: _identify(source, layout) for split, source in sources.items()}
    asked_settings = [*settings, *checks, ["labels", labels]]
    return Asked(asked_settings, raw, recorders, options.fingerprinted())


def _identify(source: ImageSource, layout: Layout) -> list[str]:
    """Values that identify a copy, its tables and their state, without reading them."""
    boxes_csv = find_boxes_csv(layout, source.split)
    paths = [source.path]
    if boxes_csv is not None:
        paths.append(boxes_csv)
    paths += devkit_paths(layout)
    identity = [type(source).__name__, source.words, source.missing]
    for path in paths:
        identity.append(str(path.resolve()))
        if path.is_file():
            status = path.stat()
            identity.append(f"{status.st_size} bytes of {status.st_mtime_ns}")
    return identity


def _saved_plan(
    records: SetRecords, options: ConvertOptions, sources: Mapping[str, ImageSource]
) -> PlannedSet | None:
    """These splits from the saved plan, if their copies are unchanged."""
    layout, plan = records.layout, records.plan
    asked = ask(layout, options, sources)
    if plan is None or asked is None:
        return None
    saved_raw = plan.asked.get("raw", {})
    if any(saved_raw.get(split) != identity for split, identity in asked.raw.items()):
        return None
    return read_planned(plan, layout, asked)


def _check_count(split: str, images: int, shards: int) -> list[str]:
    """A note if some shards will be empty; raises UsageError if most will."""
    most_shards = order.most_shards(images)
    if shards > most_shards:
        raise UsageError(
            f"can't cut {number_of(images, 'image')} into {number_of(shards, f'{split} shard')}",
            f"expected at most {most_shards:,}",
        )
    if shards <= images:
        return []
    counts = f"{number_of(images, 'image')} in {number_of(shards, 'shard')}"
    option = "--train-shards" if split == facts.TRAIN else "--validation-shards"
    return [
        f"{split}: {counts}: {shards - images:,} of these will be empty; "
        f"set their number with {option}"
    ]


def _read(source: ImageSource, engine: Engine, progress: Progress, part: Part) -> Catalog:
    progress.note(f"indexing {source.path}")
    catalog = source.catalog(engine, progress)
    if part.is_whole:
        return catalog
    labels = part.rows()
    return catalog.whole(
        [row for row, label in enumerate(catalog.labels.tolist()) if label in labels]
    )


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
    missing: list[str] = []
    parts: list[str] = []
    unread: list[str] = []
    for split in facts.SPLITS:
        catalog = catalogs.get(split)
        text = missing_text(catalog, split, options.part, by_class)
        if not text:
            continue
        missing.append(text)
        parts.append(_part_of(catalog, split, options.part, by_class))
        if split in sources:
            unread += other_copies(layout, sources[split])
    if missing:
        _allow_incomplete([*missing, *unread], "images", options)
    return [*parts, *unread]


_LOOKED_AT = 8
"""Images of a split whose format is looked at before any shard is made."""


def _refuse_encoded_again(catalogs: Iterable[Catalog], layout: Layout) -> None:
    """Raise InputError if a few images show that somebody encoded them again.

    It saves the work; the images of all finished shards decide.
    """
    if repairs := sampled_repairs(catalogs):
        from imagenet_prep.ilsvrc2012.completeness import refuse_encoded_again  # late: few need it

        refuse_encoded_again(repairs, layout.raw_dir)


def sampled_repairs(catalogs: Iterable[Catalog]) -> list[str]:
    """A few images that are no JPEGs, with their formats,
    of local files that can be read in any order.
    """
    repairs = []
    for catalog in catalogs:
        rows = {number * len(catalog) // _LOOKED_AT for number in range(_LOOKED_AT)}
        sample = catalog.picked(sorted(rows) if catalog else [])
        if sample.is_in_order or not _is_local(sample):
            continue
        with contextlib.suppress(InputError):  # convert names an image that can't be read
            for name, image in zip(sample.names, read_in_turn(sample, Reader()), strict=True):
                image_format = format_of(image)
                if image_format not in ("", "JPEG"):
                    repairs.append(f"{name} ({image_format.lower()})")
    return repairs


def _is_local(catalog: Catalog) -> bool:
    """Whether all its files are on this machine."""
    return all(local_or_none(container.path) is not None for container in catalog.containers)


def other_copies(layout: Layout, source: ImageSource) -> list[str]:
    """The other copies of a split, for messages."""
    copies = find_copies(layout, source.split)
    unread = [copy.path for copy in copies if copy.path != source.path]
    return [f"{path} was not read: to use it, move {source.path} away" for path in unread]


def _part_of(catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int]) -> str:
    """Describe how much of a split is present;
    without permission, convert lists the incomplete classes.
    """
    counts = catalog.count_by_label() if catalog else {}
    images = (
        f"{sum(counts.values()):,} of {expected_images(catalog, split, part, by_class):,} "
        f"{split} images"
    )
    return (
        f"a part of {part.name}: {images}, "
        f"{len(counts):,} of {number_of(len(part.labels), 'class', 'classes')}"
    )


def _allow_incomplete(lacking: Sequence[str], noun: str, options: ConvertOptions) -> list[str]:
    """Notes on an incomplete set, if it is allowed; else raise IncompleteError.

    ``noun`` is what has to be got: images, or files.
    """
    if lacking and not options.allow_incomplete:
        raise IncompleteError(
            f"{options.part.name} is incomplete",
            " | ".join(lacking),
            f"get the missing {noun}, or run the same command with --allow-incomplete",
        )
    return [f"a part of {options.part.name}: {text}" for text in lacking]


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


def attach_boxes(
    catalog: Catalog, layout: Layout, options: ConvertOptions
) -> tuple[dict[str, Mapping[str, object]], list[str]]:
    """Give the images their boxes; return the manifest's entry for their file, or a note if there
    are none.

    Raises:
        InputError: validation images require boxes, or the file is damaged, or not the one that
            annotate wrote.
    """
    if catalog.split == facts.VALIDATION and not options.validation_boxes:
        return {}, []
    path = find_boxes_csv(layout, catalog.split)
    if path is None and catalog.split == facts.VALIDATION:
        raise InputError(
            f"no boxes for {catalog.split}: {layout.validation_boxes_csv} does not exist",
            "expected it, since validation_boxes is set",
            _command_for_validation_boxes(layout),
        )
    if path is None:
        return {}, [_note_without_boxes(layout, catalog.split)]
    content = path.read_bytes()
    catalog.attach_boxes(_read_boxes(path, content, layout))
    entry = {"count": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}
    _refuse_other_boxes(path, catalog.split, entry, layout)
    return {"boxes": entry}, []


def _note_without_boxes(layout: Layout, split: str) -> str:
    """The note that a split has no boxes, with the commands that add them.

    It names no path of this set: the plan keeps the note.
    """
    unread = find_annotations(layout, split)
    steps = Hint(
        mention("annotate"),
        " with the same DATA_DIR and --raw, then this convert with --overwrite",
    )
    if unread is None:
        download = mention("download", "DATA_DIR", "--only", BOX_ARCHIVES[split])
        return Hint(
            f"no boxes for {split}: this copy has none; to add them run ", download, ", ", steps
        )
    return Hint(
        f"warning: the {split} records have no boxes, although {unread.path} holds them; "
        "to add them run ",
        steps,
    )


def _command_for_validation_boxes(layout: Layout) -> str:
    """The command that makes the file of validation boxes;
    without annotations the one that downloads them.
    """
    if find_annotations(layout, facts.VALIDATION) is None:
        key = BOX_ARCHIVES[facts.VALIDATION]
        return Hint(
            command("download", layout.data_dir, (("only", key),)),
            "    (then run the same command again)",
        )
    elsewhere = Layout(layout.data_dir, layout.raw).elsewhere()
    return Hint(
        "make it: ", command("annotate", layout.data_dir, (*elsewhere, ("validation_boxes", True)))
    )


def _refuse_other_boxes(
    path: AnyPath, split: str, entry: Mapping[str, object], layout: Layout
) -> None:
    """Raise InputError for a file of boxes that has changed since annotate wrote it."""
    record_path = Layout(path.parent.parent).annotate_path
    record = load_json(record_path)
    written = record.get(split) if isinstance(record, dict) else None
    if not isinstance(written, dict) or written.get("csv_sha256") == entry["sha256"]:
        return
    totals = written.get("totals")
    count = totals.get("boxes") if isinstance(totals, dict) else None
    settings: OptionValues = (("validation_boxes", True),) if split == facts.VALIDATION else ()
    elsewhere = Layout(layout.data_dir, layout.raw).elsewhere()
    annotate = command("annotate", layout.data_dir, (*elsewhere, *settings))
    move_file, move_record = _set_aside_command(path), _set_aside_command(record_path)
    raise InputError(
        f"{path} is not the file that annotate wrote",
        (
            f"expected {count} boxes and SHA-256 {written.get('csv_sha256')}, "
            f"got {entry['count']} and {entry['sha256']}"
        ),
        Hint(move_file.then(annotate), "; to use it as it is: ", move_record),
    )


def _set_aside_command(path: AnyPath) -> CommandLine:
    return command_line(["mv", "--", str(path), f"{path}.old"])


def _read_boxes(path: AnyPath, content: bytes, layout: Layout) -> BoxTable:
    try:
        return parse_boxes(content)
    except BoxesFault as fault:
        elsewhere = Layout(layout.data_dir, layout.raw).elsewhere()
        raise InputError(
            f"{path} is damaged at line {fault.line:,}",
            fault.reason,
            Hint("remove it and make it again: ", command("annotate", layout.data_dir, elsewhere)),
        ) from fault


def _recorder(source: ImageSource, layout: Layout, options: ConvertOptions) -> InceptionRecorder:
    check, numbers = _depth(source, layout, options), options.part.numbers()
    return InceptionRecorder(check=check, how=options.reencode, numbers=numbers)


def _depth(source: ImageSource, layout: Layout, options: ConvertOptions) -> Check:
    """The check of images: "auto" trusts a file whose published digest was verified."""
    if options.check != "auto":
        return options.check
    was_seen = isinstance(source, ConsumedImages) or checked_md5(layout, source.path) == source.md5
    is_published = source.md5 and was_seen
    return "header" if is_published else "decode"
