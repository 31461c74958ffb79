"""Writes the report page from shards and their verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.registry import known_set
from imagenet_prep.reporting.census import SHOWN_NAMES, TakeCensus, take_census
from imagenet_prep.reporting.gallery import odd_places
from imagenet_prep.reporting.lenient import names_of
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.page_facts import Facts, Subject
from imagenet_prep.reporting.samples import (
    ODD,
    OF_A_CLASS,
    SAMPLE,
    Sample,
    choose,
    choose_of_classes,
    find_copies,
    form_of_classes,
    take_samples,
    within_limit,
)
from imagenet_prep.state.manifest import Manifest, usable_manifest
from imagenet_prep.storage.files import load_json, save_bytes
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath

SAMPLES = 48
"""Sample images by default."""


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """The page's main facts, and its path."""

    path: AnyPath
    verdict: Verdict


def write_report(
    layout: Layout,
    engine: Engine,
    verdict: Verdict,
    *,
    samples: int = SAMPLES,
    page: AnyPath | None = None,
    progress: Progress | None = None,
) -> ReportSummary:
    """Write the page about the shards of ``layout``: the same shards make the same page.

    ``page`` is its path, by default ``layout.report_path``.

    Shards that are damaged, or that another tool made, are counted as far as they are readable.

    Raises:
        UsageError: a required library is not installed.
    """
    progress, layout = progress or Silent(), layout.one_set()
    manifest = usable_manifest(layout.manifest_path)
    dataset = known_set(layout, manifest)
    names = kinds = None
    if dataset.published is None and manifest is not None:
        names = names_of(manifest.settings)
        kinds = {name: str(promised.get("kind")) for name, promised in manifest.dataset.features.items()}
    keep = max(samples, OF_A_CLASS, SHOWN_NAMES)
    take = TakeCensus(layout, keep, kinds, names, dataset.words_of, _changed_images(manifest))
    census = take_census(list(layout.find_shards(dataset.splits)), take, engine, progress)
    duplicates = find_copies(layout, engine, census.keys, names, progress)
    of_classes = choose_of_classes(census.splits)
    in_classes = form_of_classes(len(of_classes))
    wanted = {
        SAMPLE: [(each.shard, each.number) for each in choose(census.splits, samples)],
        in_classes: [(each.shard, each.number) for each in chain(*of_classes.values())],
        ODD: odd_places(census, duplicates),
    }
    shown = take_samples(layout, engine, wanted, names, progress)
    shown.sort(key=lambda sample: _order(sample, dataset.splits))
    facts = Facts(
        name=layout.output_dir.resolve().name,
        paths=_spellings(layout.output_dir),
        subject=Subject.describe(dataset, manifest, census),
        verdict=verdict,
        manifest=manifest,
        census=census,
        samples=[sample for sample in shown if sample.form == SAMPLE],
        of_classes=within_limit([sample for sample in shown if sample.form == in_classes]),
        odd_samples={(sample.shard, sample.number): sample for sample in shown if sample.form == ODD},
        duplicates=duplicates,
        annotations=_annotations(layout, dataset.splits) if dataset.published else {},
    )
    path = page or layout.report_path
    save_bytes(path, render(facts))
    return ReportSummary(path, verdict)


def _changed_images(manifest: Manifest | None) -> dict[str, frozenset[str]]:
    """The names of repaired or rotated images, by shard."""
    infos = manifest.shards.items() if manifest else ()
    return {name: frozenset(each.rpartition(" (")[0] for each in info.repairs) for name, info in infos if info.repairs}


def _spellings(folder: AnyPath) -> tuple[str, ...]:
    """The spellings of the folder that a path may start with, longest first."""
    ways = {str(path) for path in (folder, folder.absolute(), folder.resolve())}
    return tuple(sorted((way for way in ways if "/" in way), key=len, reverse=True))


def _annotations(layout: Layout, splits: Sequence[str]) -> dict[str, dict[str, int]]:
    """The counts of annotate, by split; unreadable ones are skipped."""
    found: dict[str, dict[str, int]] = {}
    with contextlib.suppress(InputError, OSError, KeyError, TypeError, AttributeError):
        value = load_json(layout.annotate_path)
        for split in splits:
            if split in value:
                totals = value[split]["totals"].items()
                found[split] = {str(name): count for name, count in totals if type(count) is int}
    return found


def _order(sample: Sample, splits: Sequence[str]) -> tuple[int, bool, int, str, str, int]:
    """A sort key: split, class, name."""
    split, label = splits.index(split_of(sample.shard)), sample.label
    return split, label is None, label or 0, sample.filename, sample.shard, sample.number
