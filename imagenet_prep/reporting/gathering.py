"""Shards -> what pages say and show of them: counts and samples, gathered by an engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from imagenet_prep.checks.examiner import KnownSet
from imagenet_prep.errors import WorkerError, in_a_line
from imagenet_prep.model import Done, Engine, Progress
from imagenet_prep.reporting.census import Census, Promise, TakeCensus
from imagenet_prep.reporting.lenient import Naming
from imagenet_prep.reporting.odd import Place
from imagenet_prep.reporting.samples import Form, Sample, TakeSamples
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout

R = TypeVar("R")


def promise_of(dataset: KnownSet, manifest: Manifest | None) -> Promise | None:
    """What the records of a set of one's own are said to hold."""
    if dataset.published is not None or manifest is None:
        return None
    kinds = {name: str(promised.get("kind")) for name, promised in manifest.dataset.features.items()}
    return Promise(Naming.of(manifest.settings), kinds)


def take_census(names: Sequence[str], take: TakeCensus, engine: Engine, progress: Progress) -> Census:
    """What all these shards hold; those that can't be read are among its faults."""
    census = Census()
    for name, found in each_shard(engine, take, names, "count", progress):
        if isinstance(found, Census):
            census.merge(found, take.keep)
        else:
            census.faults[name] = in_a_line(found, progress.worded)
    return census


def changed_images(manifest: Manifest | None) -> dict[str, frozenset[str]]:
    """The names of images that were repaired or turned, by shard."""
    infos = manifest.shards if manifest else {}
    names = {shard: frozenset(each.rpartition(" (")[0] for each in info.repairs) for shard, info in infos.items()}
    return {shard: found for shard, found in names.items() if found}


def take_samples(
    layout: Layout,
    engine: Engine,
    wanted: Mapping[Form, Iterable[Place]],
    naming: Naming | None,
    progress: Progress,
) -> list[Sample]:
    """The images that are wanted in each form, by shard and number of their records."""
    forms: defaultdict[str, dict[int, frozenset[Form]]] = defaultdict(dict)
    for form, places in wanted.items():
        for shard, number in places:
            forms[shard][number] = forms[shard].get(number, frozenset()) | {form}
    take = TakeSamples(layout, dict(forms), naming)
    found = each_shard(engine, take, sorted(forms), "samples", progress)
    return [sample for _, samples in found if isinstance(samples, list) for sample in samples]


def each_shard(
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


def spellings(folder: Path) -> tuple[str, ...]:
    """The ways in which a path of the folder may begin, longest first."""
    ways: Iterable[str] = {str(path) for path in (folder, folder.absolute(), folder.resolve())}
    return tuple(sorted((way for way in ways if "/" in way), key=len, reverse=True))
