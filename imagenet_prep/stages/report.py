"""Writes the report page from shards and their verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, convert

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.errors import AccessError, InputError
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.registry import known_file, known_set
from imagenet_prep.reporting.census import Census, TakeCensus, take_census
from imagenet_prep.reporting.charts import draw_charts
from imagenet_prep.reporting.lenient import USUAL, names_of
from imagenet_prep.reporting.marks_file import MarkedImages, Marks, find_marked
from imagenet_prep.reporting.near_duplicates import require_imagehash
from imagenet_prep.reporting.odd_images import odd_rows
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.page_facts import SHOWN_NAMES, Facts, Subject
from imagenet_prep.reporting.samples import (
    MEASURED,
    ODD,
    SAMPLE,
    Images,
    Order,
    Sample,
    best_first,
    choose,
    choose_more,
    form_of,
    spread,
    within_limit,
)
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.files import load_json, save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, real_path

SAMPLES = 48
"""Sample images by default."""


MARKED_PICTURES = 200
"""Flagged images, in order of records, that have a picture if there is room for it."""


class Contents(Struct, frozen=True):
    """The number of images to show before anybody filters;
    whether to decode all images to find near-duplicates; the images that the user flagged.
    """

    samples: int = SAMPLES
    near_duplicates: bool = False
    marks: Marks | None = None


class ReportSummary(Struct, frozen=True):
    """The page's main facts, and its path; ``remarks`` are sentences about the flagged images,
    ``unknown_names`` are flagged, but of no record.
    """

    path: AnyPath
    verdict: Verdict
    remarks: Sequence[str] = ()
    unknown_names: Sequence[str] = ()


def write_report(
    layout: Layout | AnyPath,
    engine: Engine,
    verdict: Verdict,
    *,
    contents: Contents = Contents(),
    page: AnyPath | None = None,
    progress: Progress | None = None,
) -> ReportSummary:
    """Write the page about the shards of ``layout``, or about one file; by default to
    ``layout.report_path``.

    The same shards make the same page. Shards that are damaged, or that another tool made, are
    counted as far as they are readable. Raises UsageError if a required library is not installed,
    InputError if no record has a name of ``contents.marks``.
    """
    if contents.near_duplicates:
        require_imagehash()
    progress = progress or Silent()
    file_name = ""
    if isinstance(layout, Layout):
        layout = layout.one_set()
        records = SetRecords(layout)
        manifest = records.usable_manifest
        dataset = known_set(records, manifest)
    else:
        file_name = layout.name
        layout, dataset, manifest = known_file(layout)
        records = SetRecords(layout)
    take = _prepare_census(layout, dataset, manifest)
    shard_names = [file_name]
    if not file_name:
        shard_names = list(layout.find_shards(dataset.splits))
    census = take_census(shard_names, take, dataset.splits, engine, progress)
    subject = Subject.describe(dataset, manifest, census)
    annotations: dict[str, dict[str, int]] = {}
    if dataset.published and not file_name:
        annotations = _annotations(layout, dataset.splits)
    name = file_name or real_path(layout.output_dir).name
    marked: MarkedImages | None = None
    if contents.marks:
        shard = layout.shard_path(shard_names[0])
        marked = find_marked(contents.marks, census, name, shard)
    images = Images(layout, census, take.names, engine, progress)
    facts_of_images = _look(images, subject, contents, marked)
    facts = Facts(
        name=name,
        is_file=bool(file_name),
        paths=_private(records),
        subject=subject,
        verdict=verdict,
        manifest=manifest,
        census=census,
        annotations=annotations,
        marked=marked,
        **facts_of_images,
    )
    path = page or _default_page(layout, file_name)
    content = render(facts)
    try:
        save_bytes(path, content)
    except AccessError as error:
        if page is not None:
            raise
        raise AccessError(
            f"the page can't be written in {path.parent}",
            "your credentials may only read there",
            "name a file in another folder with --output",
        ) from error
    if marked is None:
        return ReportSummary(path, verdict)
    return ReportSummary(path, verdict, marked.remarks, marked.unknown_names)


def _default_page(layout: Layout, file_name: str) -> AnyPath:
    if not file_name:
        return layout.report_path
    return layout.report_path.with_stem(f"report-{file_name}")


def _prepare_census(
    layout: Layout, dataset: CheckedDataset, manifest: Manifest | None
) -> TakeCensus:
    names, kinds = USUAL, None
    changed_images: dict[str, frozenset[str]] = {}
    if manifest is not None:
        changed_images = _changed_images(manifest)
        if dataset.published is None:
            features = manifest.dataset.features
            names = names_of(manifest.settings)
            kinds = {name: str(feature.get("kind")) for name, feature in features.items()}
    return TakeCensus(layout, kinds, names, dataset.words_of, changed_images)


def _look(
    images: Images, subject: Subject, contents: Contents, marked: MarkedImages | None
) -> dict[str, Any]:
    """The facts that need a look at some of the images, or at all:
    charts choose the images to show.
    """
    census = images.census
    charts = draw_charts(census, subject.numbers, subject.thing, has_boxes=subject.has_boxes)
    copies = images.find_copies()
    near_duplicates = images.find_near(copies) if contents.near_duplicates else None
    best = best_first(census)
    shown_rows = choose(census, best, contents.samples)
    marked_rows: list[int] = []
    if marked:
        marked_rows = list(marked.by_row)[:MARKED_PICTURES]
    likely_rows: list[int] = []
    if shown_rows:
        likely_rows = [*marked_rows, *choose_more(census, best, charts)]
    shown_at_first = frozenset(shown_rows)
    filtered_rows = [row for row in dict.fromkeys(likely_rows) if row not in shown_at_first]

    form = form_of(len(filtered_rows))
    forms = dict.fromkeys(filtered_rows, form)
    rows_of_findings = odd_rows(census, copies, near_duplicates or ())
    forms |= dict.fromkeys(rows_of_findings, ODD)
    forms |= dict.fromkeys(marked_rows[:SHOWN_NAMES], ODD)
    forms |= dict.fromkeys(shown_rows, SAMPLE)
    measured_rows = spread(census, _rows_of_first_split(census, best), MEASURED)
    pictures, colours = images.show(forms, measured_rows)

    shown = [pictures[row] for row in shown_rows if row in pictures]
    filtered = [pictures[row] for row in filtered_rows if row in pictures]
    filtered_in_limit = list(within_limit(filtered))
    return {
        "charts": charts,
        "samples": _ordered(shown, census),
        "more": _ordered(filtered_in_limit, census),
        "pictures": pictures,
        "colours": colours,
        "copies": copies,
        "near": near_duplicates,
    }


def _rows_of_first_split(census: Census, rows: Order) -> Order:
    """The rows of the first split, among some rows."""
    if not len(rows):
        return rows
    splits = census.rows["split"][rows]
    first_rows: Order = rows[splits == splits.min()]
    return first_rows


def _changed_images(manifest: Manifest) -> dict[str, frozenset[str]]:
    """The names of repaired or rotated images, by shard."""
    images_by_shard: dict[str, frozenset[str]] = {}
    for name, info in manifest.shards.items():
        if info.repairs:
            image_names = [repair.rpartition(" (")[0] for repair in info.repairs]
            images_by_shard[name] = frozenset(image_names)
    return images_by_shard


def _private(records: SetRecords) -> dict[str, str]:
    """The places of raw data and of shards, each with its name on the page."""
    layout = records.layout
    raw_dir = layout.raw
    if raw_dir is None and records.plan is not None:
        raw_dir = records.plan.raw_dir
    places: dict[str, str] = {}
    if raw_dir:
        places = dict.fromkeys(_spellings(raw_dir), "FOLDER")
    output_dir = layout.output_dir
    output_name = real_path(output_dir).name
    for spelling in _spellings(output_dir):
        places[spelling] = output_name
    return places


def _spellings(folder: AnyPath) -> tuple[str, ...]:
    """The spellings of the folder that a path may start with, longest first."""
    spellings = {str(path) for path in (folder, folder.absolute(), real_path(folder))}
    with_parents = [spelling for spelling in spellings if "/" in spelling]
    return tuple(sorted(with_parents, key=len, reverse=True))


class _KnownTotals(Struct):
    totals: dict[str, int]


def _annotations(layout: Layout, splits: Sequence[str]) -> dict[str, dict[str, int]]:
    """The counts of annotate, by split; unreadable ones are skipped."""
    with contextlib.suppress(InputError, OSError, ValueError):
        content = load_json(layout.annotate_path)
        annotated = convert(content, dict[str, _KnownTotals])
        return {split: annotated[split].totals for split in splits if split in annotated}
    return {}


def _ordered(samples: Sequence[Sample], census: Census) -> list[Sample]:
    """Images by split, class and name."""
    splits = census.rows["split"]

    def place(sample: Sample) -> tuple[int, bool, int, str, int]:
        has_no_label = sample.label is None
        return splits[sample.row], has_no_label, sample.label or 0, sample.filename, sample.row

    return sorted(samples, key=place)
