"""Runs stages in sequence: all required stages (``imagenet-prep run``),
or verify, repair and verify again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.checks.verdict import Depth, Verdict, load_verdict
from imagenet_prep.errors import AccessError, InputError, NetworkError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.fetch.addresses import host_of
from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite, Site
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import own_images, refuse_astray, refuse_unread
from imagenet_prep.ilsvrc2012.box_search import BOX_ARCHIVES, find_annotations, find_boxes_csv
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.coming_needs import Coming, needs_behind, note_on_other_shards
from imagenet_prep.ilsvrc2012.raw_data import find_source, has_images, hint_to_raw_data_below
from imagenet_prep.ilsvrc2012.settings import ConvertOptions, check_options
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.reading.shard import Shard
from imagenet_prep.recipes.recipe_set import refuse_made
from imagenet_prep.registry import known_set
from imagenet_prep.reporting.marks_file import Marks, read_marks
from imagenet_prep.shards.consumable import refuse_another_output
from imagenet_prep.shards.convert_summary import ConvertSummary
from imagenet_prep.sources.parquets import check_pyarrow
from imagenet_prep.stages import download as downloading
from imagenet_prep.stages.annotate import AnnotateSummary, annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.download import (
    DownloadOptions,
    DownloadSummary,
    Incoming,
    download,
    download_copy,
)
from imagenet_prep.stages.repair import RepairSummary, repair, require_manifest
from imagenet_prep.stages.report import SAMPLES, Contents, ReportSummary, write_report
from imagenet_prep.stages.untar import UntarSummary, untar
from imagenet_prep.stages.verify import verify, verify_file
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.space import Need, refuse_lack, rooms_for
from imagenet_prep.text import listed, size_text


class RunSummary(Struct, frozen=True):
    """The summary of each stage; None for a stage that was not needed."""

    download: DownloadSummary | None
    untar: UntarSummary | None
    annotate: AnnotateSummary | None
    convert: ConvertSummary
    verify: Verdict


def missing_archives(
    layout: Layout, *, validation_boxes: bool = False, part: Part = WHOLE
) -> tuple[str, ...]:
    """The archives to download: their content is not in the raw folder in any form.

    Raises:
        UsageError: the folder holds a set made from a recipe, not ILSVRC2012.
        InputError: a missing archive is in DATA_DIR itself.
    """
    refuse_made(SetRecords(layout))
    missing = [split for split in facts.SPLITS if not has_images(layout, split, part)]
    annotated = facts.SPLITS if validation_boxes else (facts.TRAIN,)
    missing += [
        BOX_ARCHIVES[split]
        for split in annotated
        if not (find_annotations(layout, split) or find_boxes_csv(layout, split))
    ]
    for key in missing:
        if key in facts.SPLITS:
            refuse_unread(layout, key)
        else:
            refuse_astray(layout, key)
    return tuple(missing)


def run(
    layout: Layout,
    engine: Engine,
    *,
    fetching: DownloadOptions = DownloadOptions(),
    extract: bool = False,
    options: ConvertOptions = ConvertOptions(),
    progress: Progress | None = None,
) -> RunSummary:
    """Download what is missing, untar if requested, annotate, convert, verify; each stage resumes.

    Raises:
        PrepError: the stage that failed raised it; earlier stages stay done.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    _refuse_own_images(layout)
    with hold(layout.all_lock_paths, instead=layout.advice_if_read_only):
        work = _RunWork.find(layout, fetching, options, extract)
        fetched = _fetch(layout, work, progress)
        extracted = untar(layout, engine, progress=progress) if extract else None
        annotated = _annotate(layout, engine, work, progress)
        converted = convert(layout, engine, options, progress=progress)
    verdict = verify(layout, engine, progress=progress)
    return RunSummary(fetched, extracted, annotated, converted, verdict)


def _refuse_own_images(layout: Layout) -> None:
    """Raise UsageError for images of the user's own where no image of ImageNet is: a download of
    ImageNet was not meant.
    """
    own = own_images(layout)
    if own is None:
        return
    raise UsageError(
        f"{own} holds images without ImageNet's names, and none of ImageNet's",
        "expected a folder for ImageNet, which run downloads",
        Hint(
            "for your own data set: ",
            command("init", own),
            "; for ImageNet, choose another folder",
        ),
    )


def foresee(
    layout: Layout,
    *,
    fetching: DownloadOptions = DownloadOptions(),
    extract: bool = False,
    options: ConvertOptions = ConvertOptions(),
    progress: Progress | None = None,
) -> tuple[Need, ...]:
    """Estimate the disk space that ``run`` requires with these settings, step by step; nothing is
    written.

    Only a site's list of files is requested. Sizes of image-net.org are published, so it is not
    contacted.

    Raises:
        AccessError, InputError, UsageError: ``run`` would fail before its first download.
    """
    layout.refuse_urls()
    progress = progress or Silent()
    _refuse_own_images(layout)
    work = _RunWork.find(layout, fetching, options, extract)
    if not options.overwrite and (note := note_on_other_shards(layout, options)):
        progress.note(note)
    incoming: Sequence[Incoming] = ()
    if work.keys and work.site is not None:
        incoming = downloading.foresee_copy(layout, work.site, progress=progress)
        if not options.part.is_whole:
            progress.note(downloading.all_come(work.site, options.part))
    elif work.keys:
        check_digest = fetching.check_digest
        incoming = downloading.foresee(
            layout, only=work.keys, part=options.part, check_digest=check_digest
        )
    return tuple(work.needs(layout, incoming))


class RepairRun(Struct, frozen=True):
    """The verdict before the repair, the repair, and the verdict after it."""

    found: Verdict
    repair: RepairSummary
    verdict: Verdict


def verify_and_repair(
    layout: Layout,
    engine: Engine,
    *,
    depth: Depth = "full",
    progress: Progress | None = None,
) -> RepairRun:
    """Verify, make wrong or missing shards again, and verify again if any were made.

    The second pass covers the whole set: duplicates and totals only show across all shards.

    Raises:
        PrepError: ``verify`` or ``repair`` raised it.
    """
    layout = layout.one_set()
    with hold(layout.lock_paths):
        records = SetRecords(layout)
        dataset = known_set(records, require_manifest(records))
        dataset.refuse_without_source()  # fail now, not after every shard was read
        found = verify(layout, engine, depth=depth, progress=progress)
        summary = repair(layout, engine, found.faulty, progress=progress)
        verdict = verify(layout, engine, depth=depth, progress=progress) if summary.made else found
    return RepairRun(found, summary, verdict)


def report(  # noqa: PLR0913 - the options of the command, by keyword
    layout: Layout | AnyPath,
    engine: Engine,
    *,
    samples: int = SAMPLES,
    near_duplicates: bool = False,
    mark: AnyPath | Marks | None = None,
    page: Path | None = None,
    progress: Progress | None = None,
) -> ReportSummary:
    """Make the page about the shards with ``samples`` images; verify first, unless the last verdict
    is current.

    ``page`` is where it is written, by default ``layout.report_path``; another place allows shards
    on a read-only disk. Instead of a layout, it also takes one TFRecord file, of any maker, which
    it always verifies.
    For ``near_duplicates`` every image is decoded, and ImageHash is required. ``mark`` is a CSV
    file of images to show as a set: a column of file names, and optionally reason, label and score;
    or what was read from one.

    Raises:
        UsageError: a required library is not installed.
        InputError: there are no shards, the file has no record, or ``mark`` names no image of it.
    """
    progress = progress or Silent()
    marks = mark if mark is None or isinstance(mark, Marks) else read_marks(mark)
    if isinstance(layout, Layout):
        layout = layout.one_set()
        verdict = _kept_verdict(layout) or verify(layout, engine, progress=progress)
    elif next(iter(Shard.open(layout).followed()), None) is None:
        raise InputError(
            f"{layout} holds no records", "expected a TFRecord file with at least one record"
        )
    else:
        verdict = verify_file(layout)
    return write_report(
        layout,
        engine,
        verdict,
        contents=Contents(samples, near_duplicates, marks),
        page=page,
        progress=progress,
    )


def _kept_verdict(layout: Layout) -> Verdict | None:
    """The last verdict, if it read every byte and neither shards nor
    manifest have changed since.
    """
    kept = load_verdict(layout)
    if kept is None or not kept.is_current or kept.verdict.depth == "quick":
        return None
    return kept.verdict if SetState.read(layout).is_usable else None


def _annotate(
    layout: Layout, engine: Engine, work: _RunWork, progress: Progress
) -> AnnotateSummary | None:
    """Run annotate, unless a site's copy lacks annotations or an earlier
    annotate already read other boxes.
    """
    validation, site = work.options.validation_boxes, work.site
    splits = facts.SPLITS if validation else (facts.TRAIN,)
    lacking = [split for split in splits if find_annotations(layout, split) is None]
    if lacking:
        if all(find_boxes_csv(layout, split) for split in splits):
            return None
        if site is not None:
            images = f"{' and '.join(lacking)} images"
            progress.note(f"annotate is left out: no annotations of {images} in {layout.raw_dir}")
            return None
    return annotate(layout, engine, validation=validation, progress=progress)


def _is_incomplete(layout: Layout, split: str, options: ConvertOptions) -> bool:
    source = find_source(layout, split)
    return source is None or bool(source.missing) or not has_images(layout, split, options.part)


class _RunWork(Struct, frozen=True):
    """The work of a run and the downloads it requires: keys of archives, or splits of a site."""

    keys: tuple[str, ...]
    site: Site | None
    fetching: DownloadOptions
    options: ConvertOptions
    extract: bool

    @classmethod
    def find(
        cls, layout: Layout, fetching: DownloadOptions, options: ConvertOptions, extract: bool
    ) -> _RunWork:
        """Decide by what the raw folder lacks."""
        check_options(options)
        if extract and options.consume:
            what = "--extract and --consume can't be used together"
            reason = "--consume deletes the archives that --extract makes image folders of"
            raise UsageError(what, reason, "leave out --extract or --consume")
        if options.consume:
            refuse_another_output(layout)
        keys = missing_archives(
            layout, validation_boxes=options.validation_boxes, part=options.part
        )
        site = fetching.site
        if site is not None:
            keys = tuple(split for split in facts.SPLITS if _is_incomplete(layout, split, options))
            if keys:
                site = site.for_splits(keys)
                _refuse_unusable_copy(site, options)
        _refuse_images_elsewhere(layout, keys)
        return cls(keys, site, fetching, options, extract)

    def needs(self, layout: Layout, incoming: Sequence[Incoming]) -> list[Need]:
        """The disk space that every step requires. Modes of conversion
        that differ state theirs in needs_behind.
        """
        comes_by_class = self.site is None and not self.options.part.is_whole
        coming = Coming(
            splits=tuple(split for split in facts.SPLITS if split in self.keys),
            size=sum(archive.size for archive in incoming),
            by_class=(facts.TRAIN,) if comes_by_class else (),
            in_order=self.site is not None and self.site.is_in_order,
            has_boxes=self.site is None or self.site.has_boxes,
        )
        later_needs = needs_behind(layout, coming, self.options, extract=self.extract)
        return [*(archive.need(layout) for archive in incoming), *later_needs]

    def consuming_needs(self, layout: Layout, incoming: Sequence[Incoming]) -> list[Need] | None:
        """The disk space that every step requires with --consume; None if it would be refused."""
        if not self._may_consume(layout):
            return None
        consuming = replace(self, options=self.options.replace(consume=True))
        return consuming.needs(layout, incoming)

    def _may_consume(self, layout: Layout) -> bool:
        """Whether the shards could take the space of the raw data,
        as far as known before it is fetched.
        """
        has_fitting_site = self.site is None or isinstance(self.site, HuggingFaceSite)
        is_plain = (
            layout.raw is None
            and layout.output is None
            and self.options.part.is_whole
            and not self.extract
        )
        is_new = SetState.read(layout).kind != "finished"
        return (
            not self.options.consume
            and has_fitting_site
            and is_plain
            and is_new
            and set(facts.SPLITS) <= set(self.keys)
        )


def _refuse_images_elsewhere(layout: Layout, keys: Collection[str]) -> None:
    """Raise InputError before images are downloaded that nothing reads, since --raw lacks them."""
    missing_splits = [split for split in facts.SPLITS if split in keys]
    if missing_splits and not layout.reads_own_raw:
        raise InputError(
            f"{layout.raw_dir} lacks {' and '.join(missing_splits)} images",
            f"run downloads images only to {layout.own_raw_dir}, not to the folder of --raw",
            hint_to_raw_data_below(layout, find_source)
            or f"put them into {layout.raw_dir}; or leave out --raw, and run downloads what "
            f"{layout.own_raw_dir} lacks",
        )


def _refuse_unusable_copy(site: Site, options: ConvertOptions) -> None:
    """Raise UsageError before a download of 155 GB or more that these settings could not use."""
    if options.consume and isinstance(site, KaggleSite):
        raise UsageError(
            "--consume does not work with Kaggle's zip, which holds both splits",
            "--consume deletes the file of a split as its shards are made",
            "leave out --consume, or choose another --source",
        )
    if isinstance(site, HuggingFaceSite):
        check_pyarrow()


def _fetch(layout: Layout, work: _RunWork, progress: Progress) -> DownloadSummary | None:
    """Run download if anything is missing, after checking the space for every later step."""

    def check_space(incoming: Sequence[Incoming]) -> None:
        needs = work.needs(layout, incoming)
        refuse_lack(needs, consuming=work.consuming_needs(layout, incoming))
        if work.site is None and incoming:
            names = listed(archive.name for archive in incoming)
            to_come = sum(archive.to_come for archive in incoming)
            host = host_of(work.fetching.base_url)
            progress.note(f"{host}: {names}: {size_text(to_come)} to download")
        for room in rooms_for(needs):
            needed, free = size_text(room.size), size_text(room.free)
            progress.note(f"{room.folder}: all steps require about {needed}, {free} are free")

    fetching, part = work.fetching, work.options.part
    if not work.keys:
        if work.extract:
            check_space(())
        return None
    if work.site is not None:
        return download_copy(
            layout, work.site, fetching, part=part, before=check_space, progress=progress
        )
    with _or_without_boxes(layout, work):
        return download(
            layout, fetching, only=work.keys, part=part, before=check_space, progress=progress
        )


@contextlib.contextmanager
def _or_without_boxes(layout: Layout, work: _RunWork) -> Iterator[None]:
    """If only boxes could not be downloaded, add the command that
    continues without boxes to the error.
    """
    try:
        yield
    except (AccessError, NetworkError) as error:
        if not set(work.keys) & set(facts.SPLITS) and not work.options.validation_boxes:
            settings = (*layout.elsewhere(), *work.options.chosen())
            without_boxes = Hint(
                "only boxes were to be downloaded; to continue without boxes: ",
                command("convert", layout.data_dir, settings),
            )
            error.hint = Hint(error.hint, "; ", without_boxes) if error.hint else without_boxes
        raise
