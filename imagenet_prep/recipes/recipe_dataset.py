"""RecipeDataset: a recipe whose inputs have been listed, and what decides its bytes;
grow: its new files apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.datasets.plan import InceptionRecorder, PlannedSet, Recorder, cut
from imagenet_prep.errors import InputError
from imagenet_prep.images.grades import Check
from imagenet_prep.images.pixels import codec
from imagenet_prep.model import OnDamaged, ShardInfo
from imagenet_prep.recipes.columns import Content, Features
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Classes, Labelled, class_notes
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Column, shown_name
from imagenet_prep.sources.saved_catalog import DamagedError, load_catalog
from imagenet_prep.state.indexes import agrees, read_written
from imagenet_prep.state.manifest import CHANGED_BOXES, RECIPE, DatasetEntry
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import (
    Layout,
    grown_from,
    grown_name,
    parse_shard_name,
    shard_name,
    split_of,
)
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


class SplitPlan(Struct, frozen=True):
    """One split of a recipe.

    Args:
        name: "train", ...
        catalog: its items, in the order before the shuffle; its split is the prefix:
        ``prefix-00000-of-00008``. origin: the folder, archive or manifest that the recipe names.
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
        on_damaged: what happens to damaged items.
        settings: everything that decides bytes except the items, for fingerprints and the manifest;
        plain JSON. features: what every record holds: by name its kind, whether it may be missing,
        and how many values (None: any). classes: names, words and numbers of the classes; empty if
        there are none.
        notes: what to tell the user.
        warnings: the classes that a split lacks, as text.
        grows: whether new files get new shards, and earlier shards stay as they are.
        manifest: a manifest_file that is still to be made.
        expected: how many "images" and "classes" the recipe says that there are, in all or by
        prefix. has_labels: whether a file without a label is one that lacks it.
        skipped: how many listed files are in no split.
        changed_boxes: how many boxes of each image were "clipped" and "dropped", by its name.
    """

    path: AnyPath
    splits: tuple[SplitPlan, ...]
    on_damaged: OnDamaged
    settings: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    classes: Classes
    notes: tuple[str, ...]
    manifest: ManifestFile | None = None
    expected: Mapping[str, Any] = {}
    has_labels: bool = False
    warnings: tuple[str, ...] = ()
    grows: bool = False
    skipped: int = 0
    changed_boxes: Mapping[str, Mapping[str, int]] = {}

    def cut(self) -> PlannedSet:
        """Every split, cut into plans."""
        splits = []
        for number, each in enumerate(self.splits):
            seed = each.seed if each.shuffle else None
            planned = cut(
                each.catalog, each.origin, each.recorder, each.shards, seed, self.settings
            )
            facts = {
                "skipped": 0 if number else self.skipped,
                CHANGED_BOXES: self._changed_boxes(each.catalog),
            }
            splits.append(
                replace(planned, facts={name: fact for name, fact in facts.items() if fact})
            )
        prefixes = tuple(each.prefix for each in self.splits)
        ordering = {
            each.prefix: {"seed": each.seed, "shuffle": each.shuffle} for each in self.splits
        }
        expected = {"expected": dict(self.expected)} if self.expected else {}
        return PlannedSet(
            entry=self._entry(prefixes),
            splits=tuple(splits),
            settings={**self.settings, "order": ordering, **expected},
            expected={each.prefix: len(each.catalog) for each in self.splits},
            notes=(
                *self.notes,
                *class_notes(self.classes.names, self.classes.numbers),
                *self.warnings,
            ),
            lists=self._lists(),
            has_labels=self.has_labels,
        )

    def _entry(self, prefixes: tuple[str, ...]) -> DatasetEntry:
        """The manifest's entry: the features, and all classes that the recipe knows."""
        name, classes = PurePosixPath(shown_name(self.path)).stem, self.classes
        features = {name: dict(promised) for name, promised in self.features.items()}
        labels = dict(zip(classes.names, classes.numbers, strict=True))
        words = dict(zip(classes.names, classes.texts, strict=True))
        texts = {name: text for name, text in words.items() if text != name}
        return DatasetEntry(RECIPE, name, prefixes, features, {}, labels, texts)

    def _changed_boxes(self, catalog: Catalog) -> dict[str, dict[str, int]]:
        """The boxes of a split that ``boxes_outside`` changed:
        by outcome, how many of each image.
        """
        if not self.changed_boxes:
            return {}
        found: dict[str, dict[str, int]] = {}
        for name in catalog.names:
            for outcome, count in self.changed_boxes.get(name, {}).items():
                found.setdefault(outcome, {})[name] = count
        return found

    def _lists(self) -> dict[AnyPath, bytes]:
        """The content of the manifest_file that the recipe names and that is not there,
        by split if each has one.
        """
        made = self.manifest
        if made is None:
            return {}
        lists: dict[AnyPath, Sequence[str]] = {} if made.paths else {made.path: made.names}
        for split in self.splits if made.paths else ():
            lists[made.paths[split.name]] = [made.lead + name for name in split.catalog.names]
        return {
            path: "".join(f"{name}\n" for name in names).encode() for path, names in lists.items()
        }


# records ------------------------------------------------------------------------------------------


def make_recorder(
    file: RecipeFile,
    features: Features,
    content: Content,
    labelled: Labelled,
    split: str,
    masks: Path | None,
) -> Recorder:
    """The recorder of one split; ``features`` are those of a mapped record."""
    recipe = file.recipe
    check: Check = "decode" if recipe.check == "auto" else recipe.check
    upright = content == "image" and recipe.upright
    common: Any = {
        "check": check,
        "how": recipe.reencode,
        "upright": upright,
        "loosely": "check: {} in the recipe",
    }
    numbers: Sequence[int] = labelled.classes.numbers
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    numbers = (
        counted if numbers == tuple(counted) else numbers
    )  # in short: every task of a shard carries them
    if features is None:
        return InceptionRecorder(
            numbers=None if numbers == range(1, len(numbers) + 1) else numbers, **common
        )
    bounds = (
        None
        if recipe.min_val is None or recipe.max_val is None
        else (recipe.min_val, recipe.max_val)
    )
    return MappedRecorder(
        features, content, split, numbers, bounds, recipe.array, masks, recipe.keep, **common
    )


def settings_of(
    file: RecipeFile, features: Features, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """Everything except the items that decides the bytes of records;
    settings without a value stay out.
    """
    recipe, endings = file.recipe, listing.names.endings()
    has_jpegs = content == "pixels" and any(
        each.lower().endswith((".jpg", ".jpeg")) for each in endings
    )
    columns = {
        each.feature: {"from": each.column, "type": each.kind, "optional": each.optional}
        for each in features or ()
    }
    settings = {
        **{"recipe": RECIPE_VERSION, "content": content, **recipe.deciding("records")},
        "record": "inception" if features is None else columns,
        "first_label": classes.first_label if classes.names else None,
        "class_numbers": _uncounted(classes),
        "keep": recipe.keep or None,
        "boxes_outside": recipe.boxes_outside if recipe.boxes_outside != "refuse" else None,
        "upright": (content == "image" and recipe.upright)
        or None,  # versions that turned none did not have this key
        "codec": codec()
        if has_jpegs and recipe.reencode is None
        else None,  # it decides how a JPEG becomes numbers
        "rescale": None
        if recipe.min_val is None
        else [float(recipe.min_val), float(recipe.max_val or 0)],
        "array": recipe.array,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _uncounted(classes: Classes) -> list[int] | None:
    """The numbers of the classes, if neither their order nor their names tell them."""
    counted = range(classes.first_label, classes.first_label + len(classes.numbers))
    if classes.numbers == tuple(counted) or classes.names == tuple(map(str, classes.numbers)):
        return None
    return list(classes.numbers)


# sets that grow -----------------------------------------------------------------------------------


_HINT = "restore them, or make the whole set again with imagenet-prep convert --overwrite"


def grow(made: RecipeDataset, layout: Layout, *, adds: bool) -> RecipeDataset:
    """A data set whose splits are those that an earlier run made; ``adds``: with one more for the
    new files of each.

    A growth stays as it was planned if it has a shard, or if a later one has: a planned shard that
    is lost, or that a killed run did not record, is made again in its place. Without shards the
    data set stays as it is. If the plan is lost or damaged, the indexes of the shards tell their
    files.

    Raises:
        InputError: a file of an earlier run is gone, or has another length or label now.
    """
    earlier = _EarlierShards.find(layout)
    splits = [part for split in made.splits for part in _parts(split, earlier, adds=adds)]
    ordered = tuple(sorted(splits, key=lambda each: grown_from(each.prefix)[1]))
    return replace(made, splits=ordered, notes=(*made.notes, *earlier.notes))


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
    def find(cls, layout: Layout) -> _EarlierShards:
        """The shards of the plan; without a plan, all whose indexes agree with their entries."""
        state, plan = SetState.read(layout), load_plan(layout)
        entries = {**(state.manifest.shards if state.manifest else {}), **state.journalled}
        if plan is not None:
            planned = plan.fingerprints_by_name()
            done = {
                name: info
                for name, info in entries.items()
                if planned.get(name) == info.fingerprint
            }
            counts = {split: totals.shards for split, totals in plan.totals.items()}
            return cls(layout, plan, counts, done, _latest_growths({*done, *state.sizes}))
        done = {name: info for name, info in entries.items() if agrees(layout, info)}
        parsed_names = filter(None, map(parse_shard_name, done))
        counts = {split: count for split, _, count in parsed_names}
        return cls(layout, None, counts, done, _latest_growths(done))

    @property
    def notes(self) -> tuple[str, ...]:
        """The note that the plan is damaged, if it is."""
        if not self.damaged:
            return ()
        splits = listed(sorted(self.damaged))
        return (
            (
                f"warning: the plan of {splits} is damaged or gone; "
                "the indexes of its shards tell its files"
            ),
        )

    def growths(self, prefix: str) -> list[str]:
        """The names of a split and of its growths up to the latest with a shard, in order."""
        growths = sorted(
            (name for name in self.counts if grown_from(name)[0] == prefix), key=grown_from
        )
        return [name for name in growths if grown_from(name)[1] <= self.last.get(prefix, 0)]

    def files(self, name: str) -> Catalog | None:
        """The planned files of a split or growth; None if they can't be read."""
        try:
            if self.plan is not None:
                rows = self.plan.rows[name]
                return load_catalog(self.layout.plan_path.with_name(rows), rows)
        except (DamagedError, KeyError):
            pass
        self.damaged.add(name)
        return None

    def is_done(self, name: str) -> list[bool]:
        """Whether each shard of a split or growth is done."""
        count = self.counts[name]
        return [shard_name(name, number, count) in self.done for number in range(count)]

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
                raise InputError(
                    (
                        f"the plan in {self.layout.plan_path.parent} is damaged, "
                        f"and so is the index of {info.name}"
                    ),
                    "expected one of them: they tell which files the earlier shards hold",
                    "make the whole set again with imagenet-prep convert --overwrite",
                )
            names += [*written.names, *info.set_aside]
        return names


def _latest_growths(names: Iterable[str]) -> dict[str, int]:
    """The number of the latest growth of each split that has one of these shards."""
    latest: dict[str, int] = {}
    for name in names:
        split, growth = grown_from(split_of(name))
        latest[split] = max(growth, latest.get(split, 0))
    return latest


def _parts(split: SplitPlan, earlier: _EarlierShards, *, adds: bool) -> Iterator[SplitPlan]:
    """The split as it was and its growths, of those with a finished shard;
    and one of its new files.
    """
    names = earlier.growths(split.prefix)
    if not names:
        yield split
        return
    places = {name: row for row, name in enumerate(split.catalog.names)}
    growth = np.full(len(places), len(names), np.int16)
    for number, name in enumerate(names):
        then, is_done = earlier.files(name), earlier.is_done(name)
        if then is not None:
            is_kept = np.repeat(is_done, np.diff(order.bounds(len(then), len(is_done))))
            growth[_rows_of(then, is_kept, split, places)] = number
            continue
        growth[_known_rows(earlier.names_in_shards(name), name, split, places)] = number
        if (
            not all(is_done) and number == len(names) - 1
        ):  # it was being made: all other files were its own
            growth[growth == len(names)] = number
    parts = [np.flatnonzero(growth == number) for number in range(len(names) + 1)]
    counts = [earlier.counts[name] for name in names]
    for rows, name, count in zip(parts, names, counts, strict=False):
        yield _part(split, rows, name, count)
    if adds and len(parts[-1]):  # shards of about the size of the first ones
        first, new = (split.catalog.size(parts[number]) for number in (0, -1))
        count = min(round(new * counts[0] / max(first, 1)), len(parts[-1]))
        yield _part(
            split, parts[-1], grown_name(split.prefix, grown_from(names[-1])[1] + 1), max(count, 1)
        )


def _rows_of(then: Catalog, is_done: Column, split: SplitPlan, places: dict[str, int]) -> list[int]:
    """The rows of the files of an earlier run; raises InputError if one in a finished shard is
    no longer as it was.
    """
    now, names = split.catalog, list(then.names)
    rows = _known_rows(names, then.split, split, places)
    if other := _differing(names, is_done & (now.lengths[rows] != then.lengths)):
        raise _changed(then.split, f"{_files(other)} of another length now")
    if other := _differing(names, now.labels[rows] != then.labels):
        label = int(then.labels[names.index(other[0])])
        name, _ = then.classes.get(label, ("no class", ""))
        hint = _HINT if name.isdigit() else "write `classes` with the new ones last"
        was = f"{name} was class {label} of the list"
        raise _changed(then.split, f"{_files(other)} of another label now: {was}", hint)
    return rows


def _known_rows(
    names: Sequence[str], growth: str, split: SplitPlan, places: dict[str, int]
) -> list[int]:
    """The rows of files by their names; raises InputError if one is gone."""
    if lost := [name for name in names if name not in places]:
        raise _changed(growth, f"{_files(lost)} not in split {split.name} any more")
    return [places[name] for name in names]


def _differing(names: Sequence[str], differs: Column) -> list[str]:
    return list(itertools.compress(names, differs.tolist()))


def _files(names: Sequence[str]) -> str:
    return f"{number_of(len(names), 'file is', 'files are')} ({listed(names)})"


def _changed(growth: str, how: str, hint: str = _HINT) -> InputError:
    what = f"{growth} can't grow: of its files, {how}"
    return InputError(
        what, "expected the files of earlier runs unchanged: only new ones are added", hint
    )


def _part(split: SplitPlan, rows: Column, name: str, shards: int) -> SplitPlan:
    return replace(split, catalog=replace(split.catalog.picked(rows), split=name), shards=shards)
