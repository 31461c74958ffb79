"""Shards and the verdict on them -> one page to look at."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from imagenet_prep.checks.examiner import KnownSet
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.errors import InputError, WorkerError, in_a_line
from imagenet_prep.model import Done, Engine, Progress, Silent
from imagenet_prep.registry import known_set
from imagenet_prep.reporting.census import Census, Promise, TakeCensus
from imagenet_prep.reporting.duplicates import Copy, TakeDigests, alike, groups_of
from imagenet_prep.reporting.lenient import Naming
from imagenet_prep.reporting.odd import Place, odd_places
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.samples import (
    ODD,
    OF_A_CLASS,
    SAMPLE,
    Form,
    Sample,
    TakeSamples,
    choose,
    choose_of_classes,
    form_of_classes,
    within_limit,
)
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.state.manifest import Manifest, usable_manifest
from imagenet_prep.storage.atomic import save_bytes
from imagenet_prep.storage.layout import Layout, parse_shard_name
from imagenet_prep.storage.plain import load_json

R = TypeVar("R")

SAMPLES = 48
"""Images to show, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What the page says in short, and where it is."""

    path: Path
    verdict: Verdict


def write_report(
    layout: Layout,
    engine: Engine,
    verdict: Verdict,
    *,
    samples: int = SAMPLES,
    page: Path | None = None,
    progress: Progress | None = None,
) -> ReportSummary:
    """Write the page about the shards of ``layout``: the same shards make the same page.

    It goes to ``page``, or else to ``layout.report_path``.

    Shards that are damaged, or that another tool made, are counted as far as they can be read.

    Raises:
        UsageError: the libraries that it takes are not installed.
    """
    progress = progress or Silent()
    manifest = usable_manifest(layout.manifest_path)
    dataset = known_set(layout, manifest)
    promise = _promise(dataset, manifest)
    names = list(layout.find_shards(dataset.splits))
    keep = max(samples, OF_A_CLASS)
    take = TakeCensus(layout, keep, promise, dataset.words_of, _changed(manifest))
    census = _take_census(names, take, engine, progress)
    naming = promise.naming if promise else None
    duplicates = _find_duplicates(layout, engine, census, naming, progress)
    of_classes = choose_of_classes(census.splits)
    in_classes = form_of_classes(len(of_classes))
    wanted = {
        SAMPLE: [(each.shard, each.number) for each in choose(census.splits, samples)],
        in_classes: [(each.shard, each.number) for each in chain(*of_classes.values())],
        ODD: odd_places(census, duplicates),
    }
    shown = _take_samples(layout, engine, wanted, naming, progress)
    shown.sort(key=lambda sample: _in_order(sample, dataset.splits))
    facts = Facts(
        name=layout.output_dir.resolve().name,
        paths=_spellings(layout.output_dir),
        verdict=verdict.worded(progress.worded),
        manifest=manifest,
        census=census,
        samples=[sample for sample in shown if sample.form == SAMPLE],
        of_classes=within_limit(_by_label(sample for sample in shown if sample.form == in_classes)),
        odd_samples={(sample.shard, sample.number): sample for sample in shown if sample.form == ODD},
        duplicates=duplicates,
        annotations=_annotations(layout, dataset.splits) if dataset.published else {},
        subject=Subject.of(dataset, manifest, census),
        worded=progress.worded,
    )
    path = page or layout.report_path
    save_bytes(path, render(facts))
    return ReportSummary(path, verdict)


def _promise(dataset: KnownSet, manifest: Manifest | None) -> Promise | None:
    """What the records of a set of one's own are said to hold."""
    if dataset.published is not None or manifest is None:
        return None
    kinds = {name: str(promised.get("kind")) for name, promised in manifest.dataset.features.items()}
    return Promise(Naming.of(manifest.settings), kinds)


def _take_census(names: Sequence[str], take: TakeCensus, engine: Engine, progress: Progress) -> Census:
    census = Census()
    for name, found in _each(engine, take, names, "count", progress):
        if isinstance(found, Census):
            census.merge(found, take.keep)
        else:
            census.faults[name] = in_a_line(found, progress.worded)
    return census


def _changed(manifest: Manifest | None) -> dict[str, frozenset[str]]:
    """The names of images that were repaired or turned, by shard."""
    infos = manifest.shards if manifest else {}
    names = {shard: frozenset(each.rpartition(" (")[0] for each in info.repairs) for shard, info in infos.items()}
    return {shard: found for shard, found in names.items() if found}


def _annotations(layout: Layout, splits: Sequence[str]) -> dict[str, dict[str, int]]:
    """What annotate counted, by split; nothing of what can't be understood."""
    found: dict[str, dict[str, int]] = {}
    with contextlib.suppress(InputError, OSError, KeyError, TypeError, AttributeError):
        value = load_json(layout.annotate_path)
        for split in splits:
            if split in value:
                totals = value[split]["totals"].items()
                found[split] = {str(name): count for name, count in totals if type(count) is int}
    return found


def _find_duplicates(
    layout: Layout, engine: Engine, census: Census, naming: Naming | None, progress: Progress
) -> list[tuple[Copy, ...]]:
    numbers = alike(census.keys)
    take = TakeDigests(layout, numbers, naming)
    found = _each(engine, take, sorted(numbers), "duplicates", progress) if numbers else ()
    return groups_of(copy for _, copies in found if isinstance(copies, list) for copy in copies)


def _take_samples(
    layout: Layout,
    engine: Engine,
    wanted: Mapping[Form, Iterable[Place]],
    naming: Naming | None,
    progress: Progress,
) -> list[Sample]:
    forms: defaultdict[str, dict[int, frozenset[Form]]] = defaultdict(dict)
    for form, places in wanted.items():
        for shard, number in places:
            forms[shard][number] = forms[shard].get(number, frozenset()) | {form}
    take = TakeSamples(layout, dict(forms), naming)
    found = _each(engine, take, sorted(forms), "samples", progress)
    return [sample for _, samples in found if isinstance(samples, list) for sample in samples]


def _by_label(samples: Iterable[Sample]) -> dict[int, list[Sample]]:
    found: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.label is not None:
            found[sample.label].append(sample)
    return dict(found)


def _in_order(sample: Sample, splits: Sequence[str]) -> tuple[int, bool, int, str, str, int]:
    """By split, class and name."""
    parsed = parse_shard_name(sample.shard)
    assert parsed is not None, sample.shard
    return (
        *(splits.index(parsed[0]), sample.label is None, sample.label or 0),
        *(sample.filename, sample.shard, sample.number),
    )


def _each(
    engine: Engine, work: Callable[[str], R], names: Sequence[str], label: str, progress: Progress
) -> Iterator[tuple[str, R | Exception]]:
    """What came of each shard; a worker that died over one, or could not read it, is an answer too."""
    progress.begin(f"report: {label}", len(names), "shards")
    for outcome in engine.map(work, names):
        progress.advance()
        if isinstance(outcome, Done):
            yield outcome.task, outcome.value
        elif isinstance(outcome.error, WorkerError):
            raise outcome.error
        else:
            yield outcome.task, outcome.error
    progress.end()


def _spellings(folder: Path) -> tuple[str, ...]:
    """The ways in which a path of the folder may begin, longest first."""
    ways: Iterable[str] = {str(path) for path in (folder, folder.absolute(), folder.resolve())}
    return tuple(sorted((way for way in ways if "/" in way), key=len, reverse=True))
