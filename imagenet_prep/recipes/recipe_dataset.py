"""RecipeDataset: a recipe whose inputs have been listed, and what decides its bytes; grow: its new files apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.datasets.plan import InceptionRecorder, Plan, PlannedSet, Recorder, cut, load_plan
from imagenet_prep.errors import InputError
from imagenet_prep.images.pixels import codec
from imagenet_prep.images.prepare import Check
from imagenet_prep.recipes.columns import Content, Features
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Classes, Labelled, class_notes
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import RECIPE, DatasetEntry
from imagenet_prep.storage.layout import Layout, grown_from, grown_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


class SplitPlan(Struct, frozen=True):
    """One split of a recipe.

    Args:
        name: "train", ...
        catalog: its items, in the order before the shuffle; its split is the prefix: ``prefix-00000-of-00008``.
        origin: the folder, archive or manifest that the recipe names.
        shards: how many there are.
        shuffle: whether the rows are shuffled, with ``seed``.
        seed: of the shuffle.
        recorder: makes a record of an item.
    """

    name: str
    catalog: Catalog
    origin: AnyPath
    shards: int
    shuffle: bool
    seed: int
    recorder: Recorder

    @property
    def prefix(self) -> str:
        """The prefix of its shards' names: ``prefix-00000-of-00008``."""
        return self.catalog.split


class RecipeDataset(Struct, frozen=True):
    """A whole recipe, compared with its inputs.

    Args:
        path: the recipe.
        splits: in the order in which the recipe has them.
        skip_bad: whether bad items are left out.
        settings: everything that decides bytes except the items, for fingerprints and the manifest; plain JSON.
        features: what every record holds: by name its kind, whether it may be missing, and how many values (None: any).
        classes: names, words and numbers of the classes; empty if there are none.
        notes: what to tell the user.
        warnings: the classes that a split lacks, as text.
        grows: whether new files get new shards, and earlier shards stay as they are.
        manifest: a manifest_file that is still to be made.
        expected: how many "images" and "classes" the recipe says that there are, in all or by prefix.
        skipped: how many listed files are in no split.
    """

    path: AnyPath
    splits: tuple[SplitPlan, ...]
    skip_bad: bool
    settings: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    classes: Classes
    notes: tuple[str, ...]
    manifest: ManifestFile | None = None
    expected: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()
    grows: bool = False
    skipped: int = 0

    def cut(self) -> PlannedSet:
        """Every split, cut into plans."""
        splits = []
        for each in self.splits:
            seed = each.seed if each.shuffle else None
            splits.append(cut(each.catalog, each.origin, each.recorder, each.shards, seed, self.settings))
        if self.skipped:
            splits[0] = replace(splits[0], facts={"skipped": self.skipped})
        prefixes = tuple(each.prefix for each in self.splits)
        ordering = {each.prefix: {"seed": each.seed, "shuffle": each.shuffle} for each in self.splits}
        features = {name: dict(promised) for name, promised in self.features.items()}
        expected = {"expected": dict(self.expected)} if self.expected else {}
        return PlannedSet(
            entry=DatasetEntry(RECIPE, self.path.stem, prefixes, features, {}),
            splits=tuple(splits),
            settings={**self.settings, "order": ordering, **expected},
            expected={each.prefix: len(each.catalog) for each in self.splits},
            notes=(*self.notes, *class_notes(self.classes.names, self.classes.numbers), *self.warnings),
            lists=self._lists(),
        )

    def _lists(self) -> dict[AnyPath, bytes]:
        """The content of the manifest_file that the recipe names and that is not there, by split if each has one."""
        made = self.manifest
        if made is None:
            return {}
        lists: dict[AnyPath, Sequence[str]] = {} if made.paths else {made.path: made.names}
        for split in self.splits if made.paths else ():
            lists[made.paths[split.name]] = [made.lead + name for name in split.catalog.names]
        return {path: "".join(f"{name}\n" for name in names).encode() for path, names in lists.items()}


# records --------------------------------------------------------------------------------------------------------


def make_recorder(
    file: RecipeFile, features: Features, content: Content, labelled: Labelled, split: str, masks: Path | None
) -> Recorder:
    """The recorder of one split; ``features`` are those of a mapped record."""
    recipe = file.recipe
    check: Check = "header" if recipe.check == "header" else "decode"
    upright = content == "image" and recipe.upright
    common: Any = {"check": check, "how": recipe.reencode, "upright": upright, "loosely": "check: header in the recipe"}
    numbers: Sequence[int] = labelled.classes.numbers
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    numbers = counted if numbers == tuple(counted) else numbers  # in short: every task of a shard carries them
    if features is None:
        return InceptionRecorder(numbers=None if numbers == range(1, len(numbers) + 1) else numbers, **common)
    bounds = None if recipe.min_val is None or recipe.max_val is None else (recipe.min_val, recipe.max_val)
    return MappedRecorder(features, content, split, numbers, bounds, recipe.array, masks, recipe.keep, **common)


def settings_of(
    file: RecipeFile, features: Features, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """Everything except the items that decides the bytes of records; settings without a value stay out."""
    recipe, endings = file.recipe, listing.names.endings()
    has_jpegs = content == "pixels" and any(each.lower().endswith((".jpg", ".jpeg")) for each in endings)
    columns = {
        each.feature: {"from": each.column, "type": each.kind, "optional": each.optional} for each in features or ()
    }
    settings = {
        **{"recipe": RECIPE_VERSION, "content": content, **recipe.deciding("records")},
        "record": "inception" if features is None else columns,
        # any that don't count on from the first are the names of their classes, too
        "first_label": classes.numbers[0] if classes.numbers else None,
        "keep": recipe.keep or None,
        "upright": (content == "image" and recipe.upright) or None,  # versions that turned none did not have this key
        "codec": codec() if has_jpegs and recipe.reencode is None else None,  # it decides how a JPEG becomes numbers
        "rescale": None if recipe.min_val is None else [float(recipe.min_val), float(recipe.max_val or 0)],
        "array": recipe.array,
    }
    return {name: value for name, value in settings.items() if value is not None}


# sets that grow ------------------------------------------------------------------------------------------------


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
    planned = ((name, info, journal.get(name)) for name, info in plan.shards().items())
    done = {name for name, info, found in planned if found is not None and found.fingerprint == info.fingerprint}
    splits = [part for split in made.splits for part in _parts(split, plan, layout, done, adds=adds)]
    return replace(made, splits=tuple(sorted(splits, key=lambda each: grown_from(each.prefix)[1])))


def _parts(split: SplitPlan, plan: Plan, layout: Layout, done: set[str], *, adds: bool) -> Iterator[SplitPlan]:
    """The split as it was and its growths, of those with a finished shard; and one of its new files."""
    own = (name for name in plan.totals if grown_from(name)[0] == split.prefix)
    names = sorted((name for name in own if not done.isdisjoint(plan.names(name))), key=grown_from)
    if not names:
        yield split
        return
    places = {name: row for row, name in enumerate(split.catalog.names)}
    growth = np.full(len(places), len(names), np.int16)
    for number, name in enumerate(names):
        then, shards = Catalog.load(layout.plan_path.with_name(plan.rows[name]), check=True), plan.names(name)
        is_done = np.repeat([each in done for each in shards], np.diff(order.bounds(len(then), len(shards))))
        growth[_rows_of(then, is_done, split, places)] = number
    parts = [np.flatnonzero(growth == number) for number in range(len(names) + 1)]
    counts = [plan.totals[name].shards for name in names]
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
    return replace(split, catalog=replace(split.catalog.picked(rows), split=name), shards=shards)
