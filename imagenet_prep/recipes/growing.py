"""grow: splits as earlier runs planned them, and new files in shards of their own; earlier shards stay as they are."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from imagenet_prep.datasets import order
from imagenet_prep.datasets.plan import Plan, load_plan
from imagenet_prep.errors import InputError
from imagenet_prep.model import ShardInfo
from imagenet_prep.recipes.recipe_dataset import RecipeDataset, SplitPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column
from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.layout import Layout, grown_from, grown_name
from imagenet_prep.text import listed, number_of

_HINT = "restore them, or make the whole set again with imagenet-prep convert --overwrite"


def grow(made: RecipeDataset, layout: Layout, *, adds: bool) -> RecipeDataset:
    """A data set whose splits are those with finished shards; ``adds``: with one more for the new files of each.

    Without finished shards it stays as it is.

    Raises:
        InputError: a file of an earlier run is gone, or has another length or label now.
    """
    plan = load_plan(layout)
    if plan is None:
        return made
    journal = Journal(layout.journal_path)
    done = {name for name, info in plan.shards().items() if _is_done(journal.get(name), info)}
    splits = [part for split in made.splits for part in _parts(split, _Earlier(plan, layout, done), adds=adds)]
    return dataclasses.replace(made, splits=tuple(sorted(splits, key=lambda each: grown_from(each.prefix)[1])))


def _is_done(made: ShardInfo | None, planned: ShardInfo) -> bool:
    return made is not None and made.fingerprint == planned.fingerprint


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The plan of earlier runs, and its finished shards."""

    plan: Plan
    layout: Layout
    done: set[str]

    def growths(self, prefix: str) -> list[str]:
        """The splits that belong to a split and have a finished shard: itself, then its growths."""
        found = (name for name in self.plan.totals if grown_from(name)[0] == prefix)
        return sorted((name for name in found if not self.done.isdisjoint(self.plan.names(name))), key=grown_from)

    def files(self, name: str) -> tuple[Catalog, Column]:
        """The files of a split as they were, and whether the shard of each is finished."""
        found = Catalog.load(self.layout.plan_path.with_name(self.plan.rows[name]), check=True)
        names = self.plan.names(name)
        widths = np.diff(order.bounds(len(found), len(names)))
        return found, np.repeat([each in self.done for each in names], widths)


def _parts(split: SplitPlan, earlier: _Earlier, *, adds: bool) -> Iterator[SplitPlan]:
    names = earlier.growths(split.prefix)
    if not names:
        yield split
        return
    places = {name: row for row, name in enumerate(split.catalog.names)}
    growth = np.full(len(places), len(names), np.int16)
    for number, name in enumerate(names):
        growth[_rows_of(*earlier.files(name), split, places)] = number
    parts = [np.flatnonzero(growth == number) for number in range(len(names) + 1)]
    counts = [earlier.plan.totals[name].shards for name in names]
    for rows, name, count in zip(parts, names, counts, strict=False):
        yield _part(split, rows, name, count)
    if adds and len(parts[-1]):  # shards of about the size of the first ones
        first, new = (split.catalog.size(parts[number]) for number in (0, -1))
        count = min(round(new * counts[0] / max(first, 1)), len(parts[-1]))
        yield _part(split, parts[-1], grown_name(split.prefix, grown_from(names[-1])[1] + 1), max(count, 1))


def _rows_of(then: Catalog, is_done: Column, split: SplitPlan, places: dict[str, int]) -> list[int]:
    """The rows of the files of an earlier run; raises InputError if one in a finished shard is no longer as it was."""
    now, names = split.catalog, list(then.names)
    if lost := [name for name in names if name not in places]:
        raise _changed(then, f"{_files(lost)} not in split {split.name} any more")
    rows = [places[name] for name in names]
    if other := _differing(names, is_done & (now.lengths[rows] != then.lengths)):
        raise _changed(then, f"{_files(other)} of another length now")
    if other := _differing(names, now.labels[rows] != then.labels):
        label = int(then.labels[names.index(other[0])])
        was = f"{then.classes.get(label, ('no class', ''))[0]} was class {label} of the list"
        raise _changed(then, f"{_files(other)} of another label now: {was}", "write `classes` with the new ones last")
    return rows


def _differing(names: Sequence[str], differs: Column) -> list[str]:
    return list(itertools.compress(names, differs.tolist()))


def _files(names: Sequence[str]) -> str:
    return f"{number_of(len(names), 'file is', 'files are')} ({listed(names)})"


def _changed(then: Catalog, how: str, hint: str = _HINT) -> InputError:
    what = f"{then.split} can't grow: of its files, {how}"
    return InputError(what, "expected the files of earlier runs unchanged: only new ones are added", hint)


def _part(split: SplitPlan, rows: Column, name: str, shards: int) -> SplitPlan:
    catalog = dataclasses.replace(split.catalog.picked(rows), split=name)
    return dataclasses.replace(split, prefix=name, catalog=catalog, shards=shards)
