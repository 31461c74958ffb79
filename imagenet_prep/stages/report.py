"""Shards and the verdict on them -> one page to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from imagenet_prep.checks.examiner import KnownSet
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.errors import WorkerError, in_a_line
from imagenet_prep.model import Done, Engine, Progress, Silent
from imagenet_prep.registry import known_set
from imagenet_prep.reporting.census import Candidate, Census, Promise, TakeCensus
from imagenet_prep.reporting.lenient import Naming
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.samples import Sample, TakeSamples, choose
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.state.manifest import Manifest, usable_manifest
from imagenet_prep.storage.atomic import save_bytes
from imagenet_prep.storage.layout import Layout, parse_shard_name

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
    census = _take_census(names, TakeCensus(layout, samples, promise, dataset.words_of), engine, progress)
    chosen = choose(census.splits, samples)
    shown = _take_samples(layout, engine, chosen, promise.naming if promise else None, progress)
    facts = Facts(
        name=layout.output_dir.resolve().name,
        paths=_spellings(layout.output_dir),
        verdict=verdict.worded(progress.worded),
        manifest=manifest,
        census=census,
        samples=sorted(shown, key=lambda sample: _in_order(sample, dataset.splits)),
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


def _take_samples(
    layout: Layout, engine: Engine, chosen: Sequence[Candidate], naming: Naming | None, progress: Progress
) -> Iterator[Sample]:
    numbers = defaultdict(set)
    for candidate in chosen:
        numbers[candidate.shard].add(candidate.number)
    take = TakeSamples(layout, {name: frozenset(found) for name, found in numbers.items()}, naming)
    for _, found in _each(engine, take, sorted(numbers), "samples", progress):
        yield from found if isinstance(found, list) else []


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
