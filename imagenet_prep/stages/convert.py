"""Images -> shards: catalog, canonical order, plans, workers, journal, manifest."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from imagenet_prep import __version__, ilsvrc2012, order
from imagenet_prep.errors import DataProblemsError, IncompleteError, InputError, UsageError
from imagenet_prep.formats.boxes_csv import BoxesFault, parse_boxes
from imagenet_prep.formats.image import Check
from imagenet_prep.layout import Layout, parse_shard_name, shard_name
from imagenet_prep.manifest import Journal, Manifest, SplitTotals
from imagenet_prep.model import Box, Done, Engine, Problem, Progress, ShardInfo, ShardPlan, Silent
from imagenet_prep.shards import Compression, Outcome, ShardMaker
from imagenet_prep.sources import imagenet
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage import check_free_space, fsync_dir, hold, load_json

SYNC_SECONDS = 1.0
"""How often finished shards are made safe against the end of the system; the end of the process can't undo them."""

FORMAT_VERSION = 1
"""Goes into every fingerprint: raised when the bytes of a record change."""


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """How to convert; the defaults make the record set of 2016.

    ``check`` "auto" decodes every image unless the archive's digest is the published one.
    """

    train_shards: int = ilsvrc2012.SHARDS["train"]
    validation_shards: int = ilsvrc2012.SHARDS["validation"]
    seed: int = ilsvrc2012.SEED
    shuffle: bool = True
    check: Literal["auto", "header", "decode"] = "auto"
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
        return {"format": FORMAT_VERSION, "compression": self.compression}

    def ordering(self) -> dict[str, object]:
        """The settings that decide which item goes where."""
        return {"seed": self.seed, "shuffle": self.shuffle}


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split's part of a ConvertSummary: ``made`` of ``shards`` were made by this run, the others were there."""

    split: str
    images: int
    shards: int
    made: int
    set_aside: int
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConvertSummary:
    """What a conversion did. ``problems`` are the images that ``skip_bad`` set aside in this run."""

    splits: tuple[SplitSummary, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def set_aside(self) -> int:
        """How many images are missing from the shards because ``skip_bad`` set them aside, in this run or before."""
        return sum(split.set_aside for split in self.splits)


@dataclass(frozen=True, slots=True)
class _Split:
    """One split, planned."""

    catalog: Catalog
    source: Path
    order: array[int]
    check: Check
    plans: tuple[ShardPlan, ...]


def convert(
    layout: Layout, engine: Engine, options: ConvertOptions = ConvertOptions(), *, progress: Progress | None = None
) -> ConvertSummary:
    """Write every shard that is not done yet, and the manifest.

    Finished shards are recognised by their fingerprint and never made again. Interrupted at any moment, the next call
    goes on from there and ends with the same bytes.

    Raises:
        IncompleteError: images of ILSVRC2012 are missing, and ``allow_incomplete`` is not set.
        InputError: an archive or the boxes file is corrupt.
        UsageError: shards are there that were made with other settings, or by another tool; see ``overwrite``.
        DataProblemsError: bad images; every shard without one is done.
        SpaceError, BusyError, WriteError: as their names say.
    """
    progress = progress or Silent()
    _check_options(options)
    with hold(layout):
        splits, notes = _plan(layout, engine, options, progress)
        summaries, problems = [], []
        with Journal(layout.journal_path) as journal:
            _refuse_strangers(layout, journal, splits, options)
            _prepare_folders(layout)
            for split in splits:
                summary, found = _convert_split(split, layout, engine, options, journal, progress)
                summaries.append(summary)
                problems += found
            _remove_superseded(layout, journal, splits, options)
        shutil.rmtree(layout.partial_dir, ignore_errors=True)
        _manifest(layout, options, splits, journal).save(layout.manifest_path)
        return ConvertSummary(tuple(summaries), tuple(problems), tuple(notes))


def _check_options(options: ConvertOptions) -> None:
    for split in ilsvrc2012.SPLITS:
        if not 1 <= options.shards(split) <= 99_999:
            raise UsageError(f"{options.shards(split)} {split} shards", "expected 1 to 99999")


# planning ------------------------------------------------------------------------------------------------------


def _plan(
    layout: Layout, engine: Engine, options: ConvertOptions, progress: Progress
) -> tuple[list[_Split], list[str]]:
    sources = {split: imagenet.find_source(layout, split) for split in ilsvrc2012.SPLITS}
    if not any(sources.values()):
        raise InputError(
            f"no images in {layout.raw_dir}",
            "expected the ILSVRC2012 archives, or folders train/ and validation/ (or val/), or Kaggle's ILSVRC/",
            f"imagenet-prep download {layout.data_dir}    (or name the folder with --raw)",
        )
    catalogs: dict[str, Catalog] = {}
    for split, source in sources.items():
        if source is not None:
            progress.note(f"indexing {source}")
            catalogs[split] = imagenet.read_catalog(source, split, engine)
    notes = _check_complete(catalogs, options)
    splits = []
    for split, catalog in catalogs.items():
        source = sources[split]
        assert source is not None
        notes += _attach_boxes(catalog, layout, options)
        splits.append(_plan_split(catalog, source, layout, options))
    for note in notes:
        progress.note(note)
    return splits, notes


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
    if catalog.split == ilsvrc2012.TRAIN:
        path = layout.boxes_csv
    elif options.validation_boxes:
        path = layout.validation_boxes_csv
    else:
        return []
    if not path.is_file():
        return [f"no boxes for {catalog.split}: {path} is not there (imagenet-prep annotate makes it)"]
    catalog.attach_boxes(_read_boxes(path, layout))
    return []


def _read_boxes(path: Path, layout: Layout) -> dict[str, tuple[Box, ...]]:
    try:
        return parse_boxes(path.read_bytes())
    except BoxesFault as fault:
        raise InputError(
            f"{path} is damaged at line {fault.line:,}",
            fault.reason,
            f"remove it and make it again: imagenet-prep annotate {layout.data_dir}",
        ) from fault


def _plan_split(catalog: Catalog, source: Path, layout: Layout, options: ConvertOptions) -> _Split:
    count = options.shards(catalog.split)
    rows = order.shuffled(len(catalog), options.seed) if options.shuffle else array("I", range(len(catalog)))
    settings = json.dumps(options.deciding(), sort_keys=True)
    edges = order.bounds(len(catalog), count)
    plans = tuple(
        ShardPlan(catalog.split, i, count, start, stop, catalog.fingerprint(rows[start:stop], settings))
        for i, (start, stop) in enumerate(itertools.pairwise(edges))
    )
    return _Split(catalog, source, rows, _depth(source, catalog.split, layout, options), plans)


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


# what is there already -----------------------------------------------------------------------------------------


def _refuse_strangers(layout: Layout, journal: Journal, splits: Sequence[_Split], options: ConvertOptions) -> None:
    """Raise UsageError rather than replace a shard that was made otherwise, or leave one beside the new set."""
    planned = {_name(plan): plan.fingerprint for split in splits for plan in split.plans}
    foreign, changed = [], []
    for path in sorted(layout.output_dir.glob("*-of-*")):
        if parse_shard_name(path.name) is None:
            continue
        info = journal.get(path.name)
        if info is None:
            # An index without a journal entry is what a crash leaves between the two: the shard is made again.
            if path.name not in planned or not layout.index_path(path.name).exists():
                foreign.append(path.name)
        elif planned.get(path.name) != info.fingerprint:
            changed.append(path.name)
    if foreign and not (options.overwrite and all(name in planned for name in foreign)):
        raise UsageError(
            f"{layout.output_dir} holds {len(foreign)} shards that were not made here, {foreign[0]} first",
            "expected none, or only those of an earlier run",
            "move them away, or choose another folder with --output",
        )
    if changed and not options.overwrite:
        raise UsageError(
            f"{len(changed)} finished shards were made from other inputs or with other settings, {changed[0]} first",
            "an archive, a boxes file or an option changed since then",
            "make them again with --overwrite, or choose another folder with --output",
        )


def _remove_superseded(layout: Layout, journal: Journal, splits: Sequence[_Split], options: ConvertOptions) -> None:
    """With --overwrite, remove our own shards of another count: a glob over train-* must find one set only."""
    if not options.overwrite:
        return
    planned = {_name(plan) for split in splits for plan in split.plans}
    for name in set(journal.names()) - planned:
        layout.shard_path(name).unlink(missing_ok=True)
        layout.index_path(name).unlink(missing_ok=True)


def _is_done(plan: ShardPlan, layout: Layout, journal: Journal, options: ConvertOptions) -> bool:
    info = journal.get(_name(plan))
    if info is None or info.fingerprint != plan.fingerprint or (info.set_aside and not options.skip_bad):
        return False
    is_indexed = _size(layout.index_path(info.name)) > 0 or info.records == 0  # a crash may have left it empty
    return is_indexed and _size(layout.shard_path(info.name)) == info.size


def _size(path: Path) -> int:
    """Bytes of a file, -1 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _name(plan: ShardPlan) -> str:
    return shard_name(plan.split, plan.index, plan.count)


# the work ------------------------------------------------------------------------------------------------------


def _prepare_folders(layout: Layout) -> None:
    shutil.rmtree(layout.partial_dir, ignore_errors=True)
    for folder in (layout.output_dir, layout.partial_dir, layout.index_dir):
        folder.mkdir(parents=True, exist_ok=True)


def _convert_split(
    split: _Split, layout: Layout, engine: Engine, options: ConvertOptions, journal: Journal, progress: Progress
) -> tuple[SplitSummary, list[Problem]]:
    catalog = split.catalog
    todo = [plan for plan in split.plans if not _is_done(plan, layout, journal, options)]
    left = sum(catalog.lengths[row] for plan in todo for row in split.order[plan.start : plan.stop])
    check_free_space(layout.output_dir, left + 1024 * (len(catalog) if todo else 0), f"for {len(todo)} shards")
    images_left = sum(plan.stop - plan.start for plan in todo)
    progress.begin(f"convert {catalog.split}", len(catalog), "images", done=len(catalog) - images_left)
    maker = ShardMaker(
        layout, catalog, split.order, split.check, compression=options.compression, skip_bad=options.skip_bad
    )
    problems, repairs = _run(maker, todo, engine, journal, progress)
    infos = [journal.get(_name(plan)) for plan in split.plans]
    records = sum(info.records for info in infos if info)
    set_aside = sum(len(info.set_aside) for info in infos if info)
    progress.note(f"{catalog.split}: Finished writing all {records} images in data set.")
    summary = SplitSummary(catalog.split, records, len(split.plans), len(todo), set_aside, tuple(sorted(repairs)))
    return summary, problems


def _run(
    maker: ShardMaker, todo: list[ShardPlan], engine: Engine, journal: Journal, progress: Progress
) -> tuple[list[Problem], list[str]]:
    """Make the shards of ``todo``; raise at the end if some could not be made, once all others are done."""
    problems: list[Problem] = []
    repairs: list[str] = []
    failures: list[Exception] = []
    refused = 0
    synced = time.monotonic()
    for outcome in engine.map(maker, todo):
        if not isinstance(outcome, Done):
            failures.append(_named(outcome.error, outcome.task))
            continue
        made: Outcome = outcome.value
        problems += made.problems
        repairs += made.repairs
        if made.info is None:
            refused += 1
        else:
            journal.append(made.info)
        progress.advance(outcome.task.stop - outcome.task.start)
        if time.monotonic() - synced > SYNC_SECONDS:
            _sync(maker.layout, journal)
            synced = time.monotonic()
    _sync(maker.layout, journal)
    progress.end()
    if failures:
        raise failures[0]
    if refused:
        raise _refusal(problems, refused, progress)
    return problems, repairs


def _sync(layout: Layout, journal: Journal) -> None:
    """Make names of shards and indexes durable, then the journal that says they are done."""
    fsync_dir(layout.output_dir)
    fsync_dir(layout.index_dir)
    journal.sync()


def _named(error: Exception, plan: ShardPlan) -> Exception:
    if isinstance(error, DataProblemsError):
        return DataProblemsError(f"{_name(plan)}: {error.what}", error.detail, error.hint)
    return error


def _refusal(problems: list[Problem], refused: int, progress: Progress) -> DataProblemsError:
    for problem in problems:
        progress.note(f"bad image: {problem}")
    return DataProblemsError(
        f"{len(problems)} images can't be converted, {problems[0].subject} first; {refused} shards were not made",
        problems[0].detail,
        "get sound copies of them, or leave them out with --skip-bad",
    )


# the record of it ----------------------------------------------------------------------------------------------


def _manifest(layout: Layout, options: ConvertOptions, splits: Sequence[_Split], journal: Journal) -> Manifest:
    infos: dict[str, ShardInfo] = {}
    for split in splits:
        infos.update((_name(plan), info) for plan in split.plans if (info := journal.get(_name(plan))))
    return Manifest(
        version=__version__,
        settings={**options.deciding(), **options.ordering(), "validation_boxes": options.validation_boxes},
        sources={split.catalog.split: _source_record(split) for split in splits},
        totals={
            split.catalog.split: SplitTotals(
                images=sum(infos[_name(plan)].records for plan in split.plans),
                expected=ilsvrc2012.IMAGES[split.catalog.split],
                classes=len(split.catalog.count_by_label()),
                boxes=len(split.catalog.boxes) // 4,
                shards=len(split.plans),
            )
            for split in splits
        },
        shards=infos,
    )


def _source_record(split: _Split) -> dict[str, object]:
    digest = hashlib.sha256(split.catalog.names)
    for values in (split.catalog.lengths, split.catalog.labels):
        digest.update(values.tobytes())
    return {"name": split.source.name, "images": len(split.catalog), "names_and_sizes": digest.hexdigest()}
