"""grow: a listed recipe and the shards of earlier runs -> the same splits, and new files in
splits of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.model import ShardInfo
from imagenet_prep.recipes.recipe_dataset import RecipeDataset, SplitPlan
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column
from imagenet_prep.sources.saved_catalog import DamagedError, load_catalog
from imagenet_prep.state.indexes import agrees, read_written
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import (
    Layout,
    grown_from,
    grown_name,
    parse_shard_name,
    shard_name,
    split_of,
)
from imagenet_prep.text import listed, number_of

_HINT = Hint(
    "restore the earlier files, labels and splits; or, to make the whole set again, ",
    CONVERT_AGAIN,
)


def grow(dataset: RecipeDataset, records: SetRecords, *, adds: bool) -> RecipeDataset:
    """A data set whose splits are those that an earlier run made; ``adds``: with one more for the
    new files of each.

    A growth stays as it was planned if it has a shard, or if a later one has: a planned shard that
    is lost, or that a killed run did not record, is made again in its place. Without shards the
    data set stays as it is. If the plan is lost or damaged, the indexes of the shards tell their
    files.

    Raises:
        InputError: a file of an earlier run is gone, or has another length or label now.
    """
    earlier = _EarlierShards.find(records)
    splits: list[SplitPlan] = []
    for split in dataset.splits:
        splits += _growths_of(split, earlier, adds=adds)
    splits.sort(key=_growth_number)
    notes = (*dataset.notes, *earlier.notes)
    return replace(dataset, splits=tuple(splits), notes=notes)


def _growth_number(split: SplitPlan) -> int:
    """The number of the growth that a split is; 0 for the split itself."""
    _, number = grown_from(split.prefix)
    return number


class _EarlierShards(Struct, frozen=True):
    """The shards of earlier runs: how many each split and growth has, and the finished ones by
    name.

    ``last`` is the number of the latest growth of each split that has a shard. ``damaged`` names
    the splits whose planned files can't be read.
    """

    layout: Layout
    plan: Plan | None
    counts: Mapping[str, int]
    done: Mapping[str, ShardInfo]
    last: Mapping[str, int]
    damaged: set[str] = set()

    @classmethod
    def find(cls, records: SetRecords) -> _EarlierShards:
        """The shards of the plan; without a plan, all whose indexes agree with their entries."""
        state = SetState.judge(records)
        layout = state.layout
        plan = state.plan
        entries: dict[str, ShardInfo] = {}
        if state.manifest is not None:
            entries |= state.manifest.shards
        entries |= state.journalled
        if plan is None:
            done = {name: info for name, info in entries.items() if agrees(layout, info)}
            parsed_names = filter(None, map(parse_shard_name, done))
            counts = {split: count for split, _, count in parsed_names}
            return cls(layout, None, counts, done, _latest_growths(done))
        fingerprints = plan.fingerprints_by_name()
        done = {}
        for name, info in entries.items():
            if fingerprints.get(name) == info.fingerprint:
                done[name] = info
        counts = {split: totals.shards for split, totals in plan.totals.items()}
        latest_growths = _latest_growths({*done, *state.sizes})
        return cls(layout, plan, counts, done, latest_growths)

    @property
    def notes(self) -> tuple[str, ...]:
        """The note that the plan is damaged, if it is."""
        if not self.damaged:
            return ()
        splits = listed(sorted(self.damaged))
        note = (
            f"warning: the plan's list of {splits} images was damaged or missing; it is made again "
            "from the indexes of the shards"
        )
        return (note,)

    def growths(self, prefix: str) -> list[str]:
        """The names of a split and of its growths up to the latest with a shard, in order."""
        latest = self.last.get(prefix, 0)
        growths: list[str] = []
        for name in self.counts:
            split, number = grown_from(name)
            if split == prefix and number <= latest:
                growths.append(name)
        return sorted(growths, key=grown_from)

    def files(self, name: str) -> Catalog | None:
        """The planned files of a split or growth; None if they can't be read."""
        try:
            if self.plan is not None:
                rows_name = self.plan.rows[name]
                folder = self.layout.plan_path.with_name(rows_name)
                return load_catalog(folder, rows_name)
        except (DamagedError, KeyError):
            pass
        self.damaged.add(name)
        return None

    def is_done(self, name: str) -> list[bool]:
        """Whether each shard of a split or growth is done."""
        count = self.counts[name]
        shard_names = [shard_name(name, number, count) for number in range(count)]
        return [shard in self.done for shard in shard_names]

    def names_in_shards(self, name: str) -> list[str]:
        """The files of the finished shards of a split or growth, by their indexes.

        Raises:
            InputError: an index is lost too.
        """
        names: list[str] = []
        for info in self.done.values():
            if split_of(info.name) != name:
                continue
            written = read_written(self.layout, info)
            if written is None:
                index, plan = self.layout.index_path(info.name), self.layout.plan_path
                raise InputError(
                    f"two files of the set are damaged or missing: {plan} and {index}",
                    f"expected one of the two: each tells which images {info.name} holds",
                    Hint("to make the whole set again, ", CONVERT_AGAIN),
                )
            names += [*written.names, *info.set_aside]
        return names


def _growths_of(split: SplitPlan, earlier: _EarlierShards, *, adds: bool) -> Iterator[SplitPlan]:
    """The split as it was and its growths, of those with a finished shard;
    and one of its new files.
    """
    names = earlier.growths(split.prefix)
    if not names:
        yield split
        return
    growth_of_row = _growth_of_each_row(split, names, earlier)
    for number, name in enumerate(names):
        rows = np.flatnonzero(growth_of_row == number)
        yield _part(split, rows, name, earlier.counts[name])
    new_rows = np.flatnonzero(growth_of_row == len(names))
    if adds and len(new_rows):  # shards of about the size of the first ones
        first_rows = np.flatnonzero(growth_of_row == 0)
        first_bytes = split.catalog.size(first_rows)
        new_bytes = split.catalog.size(new_rows)
        first_count = earlier.counts[names[0]]
        count = round(new_bytes * first_count / max(first_bytes, 1))
        count = min(count, len(new_rows))
        _, last_number = grown_from(names[-1])
        name = grown_name(split.prefix, last_number + 1)
        yield _part(split, new_rows, name, max(count, 1))


def _growth_of_each_row(split: SplitPlan, names: Sequence[str], earlier: _EarlierShards) -> Column:
    """The number of the growth that each row of a split is in; those of no growth are new, and have
    the next number.
    """
    row_of = {name: row for row, name in enumerate(split.catalog.names)}
    new = len(names)
    growths = np.full(len(row_of), new, np.int16)
    for number, name in enumerate(names):
        planned = earlier.files(name)
        is_done = earlier.is_done(name)
        if planned is not None:
            bounds = order.bounds(len(planned), len(is_done))
            in_done_shard = np.repeat(is_done, np.diff(bounds))
            rows = _planned_rows(planned, in_done_shard, split, row_of)
            growths[rows] = number
            continue
        names_in_shards = earlier.names_in_shards(name)
        rows = _known_rows(names_in_shards, name, split, row_of)
        growths[rows] = number
        is_last = number == new - 1
        if is_last and not all(is_done):  # it was being made: all other files were its own
            growths[growths == new] = number
    return growths


def _planned_rows(
    planned: Catalog, in_done_shard: Column, split: SplitPlan, row_of: dict[str, int]
) -> list[int]:
    """The rows of the files of an earlier run; raises InputError if one in a finished shard is
    no longer as it was.
    """
    current = split.catalog
    names = list(planned.names)
    rows = _known_rows(names, planned.split, split, row_of)
    has_other_length = in_done_shard & (current.lengths[rows] != planned.lengths)
    longer_or_shorter = _differing(names, has_other_length)
    if longer_or_shorter:
        change = _files(longer_or_shorter, "has another length now", "have another length now")
        raise _changed(planned.split, change)
    has_other_label = current.labels[rows] != planned.labels
    relabelled = _differing(names, has_other_label)
    if relabelled:
        raise _other_label(planned, current, relabelled, row_of)
    return rows


def _other_label(
    planned: Catalog, current: Catalog, relabelled: Sequence[str], row_of: Mapping[str, int]
) -> InputError:
    """The error for files with another label: the classes were numbered in another order, or a file
    is of another class.
    """
    first_name = relabelled[0]
    planned_row = list(planned.names).index(first_name)
    planned_class = _class_of(planned, planned_row)
    current_class = _class_of(current, row_of[first_name])
    if planned_class == current_class:
        number = int(planned.labels[planned_row])
        current_number = int(current.labels[row_of[first_name]])
        change = f"the class {planned_class} was number {number} of the classes"
        hint: str = "write `classes` in the recipe with the new ones last"
        if planned_class.isdigit():
            restore = "restore the earlier classes; or, to make the set again, "
            hint = Hint(restore, CONVERT_AGAIN)
        return _changed(planned.split, f"{change}, and is number {current_number}", hint)
    files_have = number_of(len(relabelled), "file has", "files have")
    reason = f"{first_name} was of {planned_class}, and is of {current_class}"
    return _changed(planned.split, f"{files_have} another label now: {reason}")


def _class_of(catalog: Catalog, row: int) -> str:
    """The name of the class of a row, "no class" for none."""
    label = int(catalog.labels[row])
    class_name, _ = catalog.classes.get(label, ("no class", ""))
    return class_name


def _latest_growths(names: Iterable[str]) -> dict[str, int]:
    """The number of the latest growth of each split that has one of these shards."""
    latest: dict[str, int] = {}
    for name in names:
        split, growth = grown_from(split_of(name))
        latest[split] = max(growth, latest.get(split, 0))
    return latest


def _known_rows(
    names: Sequence[str], growth: str, split: SplitPlan, row_of: dict[str, int]
) -> list[int]:
    """The rows of files by their names; raises InputError if one is gone."""
    missing = [name for name in names if name not in row_of]
    if missing:
        place = f"in split {split.name} any more"
        raise _changed(growth, _files(missing, f"is not {place}", f"are not {place}"))
    return [row_of[name] for name in names]


def _differing(names: Sequence[str], differs: Column) -> list[str]:
    return list(itertools.compress(names, differs.tolist()))


def _files(names: Sequence[str], change: str, change_of_several: str) -> str:
    """A change of files as text: "2 files are gone: a.jpg, b.jpg"."""
    files = number_of(len(names), f"file {change}", f"files {change_of_several}")
    return f"{files}: {listed(names)}"


def _changed(growth: str, change: str, hint: str = _HINT) -> InputError:
    return InputError(
        f"{growth} differs from earlier runs: {change}",
        "expected the files and labels of earlier runs unchanged: only new files are added",
        hint,
    )


def _part(split: SplitPlan, rows: Column, name: str, shards: int) -> SplitPlan:
    picked = split.catalog.picked(rows)
    catalog = replace(picked, split=name)
    return replace(split, catalog=catalog, shards=shards)
