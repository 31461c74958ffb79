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
from imagenet_prep.datasets.planned_set import PlannedSet, cut
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.images.grades import Check
from imagenet_prep.images.pixels import codec
from imagenet_prep.model import OnDamaged, ShardInfo
from imagenet_prep.recipes.classes import Classes, class_notes
from imagenet_prep.recipes.columns import Content, Features, Mapped
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Labelled
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.recorders.recorder import Recorder
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
            ``prefix-00000-of-00008``.
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
        on_damaged: what happens to damaged items.
        settings: everything that decides bytes except the items, for fingerprints and the manifest;
            plain JSON.
        features: what every record holds: by name its kind, whether it may be missing, and how many
            values (None: any).
        classes: names, words and numbers of the classes; empty if there are none.
        notes: what to tell the user.
        warnings: the classes that a split lacks, as text.
        grows: whether new files get new shards, and earlier shards stay as they are.
        manifest: a manifest_file that is still to be made.
        expected: how many "images" and "classes" the recipe says that there are, in all or by
            prefix.
        has_labels: whether a file without a label is one that lacks it.
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
        for number, split in enumerate(self.splits):
            seed = split.seed if split.shuffle else None
            planned = cut(
                split.catalog, split.origin, split.recorder, split.shards, seed, self.settings
            )
            facts: dict[str, Any] = {}
            if number == 0 and self.skipped:
                facts["skipped"] = self.skipped
            if changed_boxes := self._changed_boxes(split.catalog):
                facts[CHANGED_BOXES] = changed_boxes
            splits.append(replace(planned, facts=facts))
        ordering = {
            split.prefix: {"seed": split.seed, "shuffle": split.shuffle} for split in self.splits
        }
        expected = {"expected": dict(self.expected)} if self.expected else {}
        labels = class_notes(self.classes.names, self.classes.numbers)
        return PlannedSet(
            entry=self._entry(tuple(split.prefix for split in self.splits)),
            splits=tuple(splits),
            settings={**self.settings, "order": ordering, **expected},
            expected={split.prefix: len(split.catalog) for split in self.splits},
            notes=(*self.notes, *labels, *self.warnings),
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
        by_outcome: dict[str, dict[str, int]] = {}
        for name in catalog.names:
            for outcome, count in self.changed_boxes.get(name, {}).items():
                by_outcome.setdefault(outcome, {})[name] = count
        return by_outcome

    def _lists(self) -> dict[AnyPath, bytes]:
        """The content of the manifest_file that the recipe names and that is not there,
        by split if each has one.
        """
        manifest = self.manifest
        if manifest is None:
            return {}
        names_by_path: dict[AnyPath, Sequence[str]] = {}
        if manifest.paths:
            for split in self.splits:
                names = [manifest.lead + name for name in split.catalog.names]
                names_by_path[manifest.paths[split.name]] = names
        else:
            names_by_path[manifest.path] = manifest.names
        return {
            path: "".join(f"{name}\n" for name in names).encode()
            for path, names in names_by_path.items()
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
    common: Any = {
        "check": check,
        "how": recipe.reencode,
        "upright": content == "image" and recipe.upright,
        "loosely": "check: {} in the recipe",
    }
    numbers = _as_range(labelled.classes.numbers)
    if features is None:
        is_from_1 = numbers == range(1, len(numbers) + 1)
        return InceptionRecorder(numbers=None if is_from_1 else numbers, **common)
    bounds = None
    if recipe.min_val is not None and recipe.max_val is not None:
        bounds = (recipe.min_val, recipe.max_val)
    return MappedRecorder(
        features, content, split, numbers, bounds, recipe.array, masks, recipe.keep, **common
    )


def _as_range(numbers: tuple[int, ...]) -> Sequence[int]:
    """Numbers that count up as a range, which is short: every task of a shard carries them."""
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    return counted if numbers == tuple(counted) else numbers


def settings_of(
    file: RecipeFile, features: Features, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """Everything except the items that decides the bytes of records;
    settings without a value stay out.
    """
    recipe = file.recipe
    rescale = None
    if recipe.min_val is not None:
        rescale = [float(recipe.min_val), float(recipe.max_val or 0)]
    is_turned = content == "image" and recipe.upright
    decodes = content == "pixels" and recipe.reencode is None
    decodes_jpegs = decodes and _have_jpegs(listing.names.endings())
    settings = {
        "recipe": RECIPE_VERSION,
        "content": content,
        **recipe.deciding("records"),
        "record": "inception" if features is None else _features_setting(features),
        "first_label": classes.first_label if classes.names else None,
        "class_numbers": _uncounted(classes),
        "keep": recipe.keep or None,
        "boxes_outside": recipe.boxes_outside if recipe.boxes_outside != "refuse" else None,
        "upright": is_turned or None,  # versions that turned none did not have this key
        "codec": codec() if decodes_jpegs else None,  # it decides how a JPEG becomes numbers
        "rescale": rescale,
        "array": recipe.array,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _features_setting(features: Sequence[Mapped]) -> dict[str, dict[str, Any]]:
    """The features of a mapped record, as the manifest has them."""
    return {
        mapped.feature: {
            "from": mapped.column,
            "type": mapped.kind,
            "optional": mapped.optional,
        }
        for mapped in features
    }


def _have_jpegs(endings: Iterable[str]) -> bool:
    return any(ending.lower().endswith((".jpg", ".jpeg")) for ending in endings)


def _uncounted(classes: Classes) -> list[int] | None:
    """The numbers of the classes, if neither their order nor their names tell them."""
    counted = range(classes.first_label, classes.first_label + len(classes.numbers))
    if classes.numbers == tuple(counted) or classes.names == tuple(map(str, classes.numbers)):
        return None
    return list(classes.numbers)


# sets that grow -----------------------------------------------------------------------------------


_HINT = Hint("restore them, or make the whole set again with ", mention("convert", "--overwrite"))


def grow(dataset: RecipeDataset, layout: Layout, *, adds: bool) -> RecipeDataset:
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
    splits = [part for split in dataset.splits for part in _growths_of(split, earlier, adds=adds)]
    splits.sort(key=lambda split: grown_from(split.prefix)[1])
    return replace(dataset, splits=tuple(splits), notes=(*dataset.notes, *earlier.notes))


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
        if plan is None:
            done = {name: info for name, info in entries.items() if agrees(layout, info)}
            parsed_names = filter(None, map(parse_shard_name, done))
            counts = {split: count for split, _, count in parsed_names}
            return cls(layout, None, counts, done, _latest_growths(done))
        planned = plan.fingerprints_by_name()
        done = {
            name: info for name, info in entries.items() if planned.get(name) == info.fingerprint
        }
        counts = {split: totals.shards for split, totals in plan.totals.items()}
        return cls(layout, plan, counts, done, _latest_growths({*done, *state.sizes}))

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
        latest = self.last.get(prefix, 0)
        growths = []
        for name in self.counts:
            split, number = grown_from(name)
            if split == prefix and number <= latest:
                growths.append(name)
        return sorted(growths, key=grown_from)

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
                    Hint("make the whole set again with ", mention("convert", "--overwrite")),
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
    parts = [np.flatnonzero(growth_of_row == number) for number in range(len(names) + 1)]
    counts = [earlier.counts[name] for name in names]
    for rows, name, count in zip(parts, names, counts, strict=False):
        yield _part(split, rows, name, count)
    new_rows = parts[-1]
    if adds and len(new_rows):  # shards of about the size of the first ones
        first_bytes, new_bytes = split.catalog.size(parts[0]), split.catalog.size(new_rows)
        count = min(round(new_bytes * counts[0] / max(first_bytes, 1)), len(new_rows))
        name = grown_name(split.prefix, grown_from(names[-1])[1] + 1)
        yield _part(split, new_rows, name, max(count, 1))


def _growth_of_each_row(split: SplitPlan, names: Sequence[str], earlier: _EarlierShards) -> Column:
    """The number of the growth that each row of a split is in; those of no growth are new, and have
    the next number.
    """
    row_of = {name: row for row, name in enumerate(split.catalog.names)}
    new = len(names)
    growths = np.full(len(row_of), new, np.int16)
    for number, name in enumerate(names):
        planned, is_done = earlier.files(name), earlier.is_done(name)
        if planned is not None:
            in_done_shard = np.repeat(is_done, np.diff(order.bounds(len(planned), len(is_done))))
            growths[_planned_rows(planned, in_done_shard, split, row_of)] = number
            continue
        growths[_known_rows(earlier.names_in_shards(name), name, split, row_of)] = number
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
    current, names = split.catalog, list(planned.names)
    rows = _known_rows(names, planned.split, split, row_of)
    has_other_length = in_done_shard & (current.lengths[rows] != planned.lengths)
    if longer_or_shorter := _differing(names, has_other_length):
        raise _changed(planned.split, f"{_files(longer_or_shorter)} of another length now")
    if relabelled := _differing(names, current.labels[rows] != planned.labels):
        label = int(planned.labels[names.index(relabelled[0])])
        class_name, _ = planned.classes.get(label, ("no class", ""))
        hint = _HINT if class_name.isdigit() else "write `classes` with the new ones last"
        reason = f"another label now: {class_name} was class {label} of the list"
        raise _changed(planned.split, f"{_files(relabelled)} of {reason}", hint)
    return rows


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
    if missing := [name for name in names if name not in row_of]:
        raise _changed(growth, f"{_files(missing)} not in split {split.name} any more")
    return [row_of[name] for name in names]


def _differing(names: Sequence[str], differs: Column) -> list[str]:
    return list(itertools.compress(names, differs.tolist()))


def _files(names: Sequence[str]) -> str:
    return f"{number_of(len(names), 'file is', 'files are')} ({listed(names)})"


def _changed(growth: str, change: str, hint: str = _HINT) -> InputError:
    return InputError(
        f"{growth} can't grow: of its files, {change}",
        "expected the files of earlier runs unchanged: only new ones are added",
        hint,
    )


def _part(split: SplitPlan, rows: Column, name: str, shards: int) -> SplitPlan:
    return replace(split, catalog=replace(split.catalog.picked(rows), split=name), shards=shards)
