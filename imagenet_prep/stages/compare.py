"""Two sets of shards, and what differs between them -> one page to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.reading.difference import Difference
from imagenet_prep.registry import known_set
from imagenet_prep.reporting.census import TakeCensus
from imagenet_prep.reporting.comparison import Comparison, Side, pictured, render_comparison
from imagenet_prep.reporting.gallery import ShownSet
from imagenet_prep.reporting.gathering import promise_of, spellings, take_census, take_samples
from imagenet_prep.reporting.samples import SAMPLE
from imagenet_prep.reporting.subject import Subject
from imagenet_prep.state.manifest import usable_manifest
from imagenet_prep.storage.atomic import save_bytes
from imagenet_prep.storage.layout import Layout


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """What differs between two sets, and where the page about it is."""

    path: Path
    difference: Difference


def write_comparison(
    difference: Difference, engine: Engine, *, samples: int, page: Path | None = None, progress: Progress | None = None
) -> ComparisonSummary:
    """Write the page about two sets, in folders, that ``difference`` is of: the same shards make the same page.

    It shows at most ``samples`` images a set or a little fewer, and goes to ``page``, or else to the
    ``comparison_path`` of the first. Shards that can't be read are named on it, and left out of its counts.
    """
    progress = progress or Silent()
    first, second = difference.places
    sides = (
        _look(first, difference, 0, samples, engine, progress),
        _look(second, difference, 1, samples, engine, progress),
    )
    path = page or Layout(first).comparison_path
    save_bytes(path, render_comparison(Comparison(sides, difference, samples)))
    return ComparisonSummary(path, difference)


def _look(place: Path, difference: Difference, number: int, samples: int, engine: Engine, progress: Progress) -> Side:
    """What one of the sets holds, and the images of it that are shown."""
    layout = Layout(place)
    manifest = usable_manifest(layout.manifest_path)
    dataset = known_set(layout, manifest)
    promise = promise_of(dataset, manifest)
    names = list(layout.find_shards(dataset.splits))
    census = take_census(names, TakeCensus(layout, 0, promise, dataset.words_of), engine, progress)
    subject = Subject.of(dataset, manifest, census)
    shown = ShownSet(layout.output_dir.resolve().name, subject, census.words, progress.worded)
    naming = promise.naming if promise else None
    wanted = {SAMPLE: pictured(difference, number, samples)}
    pictures = take_samples(layout, engine, wanted, naming, progress)
    return Side(
        shown, spellings(layout.output_dir), census, manifest, {(each.shard, each.number): each for each in pictures}
    )
