"""DividedFiles: annotated, labelled and divided files -> the data set of a recipe, with its
shards and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.model import OnDamaged
from imagenet_prep.recipes import columns as cols
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.divisions import Division, missing_classes
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labels import Labelled
from imagenet_prep.recipes.recipe_dataset import (
    RecipeDataset,
    SplitPlan,
    make_recorder,
    settings_of,
)
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.splits import ONLY
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Rows, places_of
from imagenet_prep.sources.obstacles import refuse
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord import inception


class DividedFiles(Struct, frozen=True):
    """The files of a recipe with their annotations, splits and labels;
    whether records are of Inception's format.
    """

    file: RecipeFile
    inputs: Inputs
    content: Content
    annotations: Annotations
    divisions: list[Division]
    labelled: Labelled
    is_inception: bool
    notes: list[str]

    def dataset(self, notes: tuple[str, ...], *, on_damaged: OnDamaged) -> RecipeDataset:
        """The data set of these files."""
        file, labelled, listing = self.file, self.labelled, self.annotations.listing
        features, values = cols.extra_columns(
            file, self.is_inception, labelled, self.content, self.annotations
        )
        settings = settings_of(file, features, self.content, listing, labelled.classes)
        expected: dict[str, Any] = {}
        for key, total in (file.recipe.expected or {}).items():
            expected[self._prefix(key) if isinstance(total, dict) else key] = total
        classes = {division.name: self._classes_in(division) for division in self.divisions}
        divided_count = sum(len(division.rows) for division in self.divisions)
        return RecipeDataset(
            path=file.path,
            splits=tuple(self._plans(features, values)),
            on_damaged=on_damaged,
            settings={**settings, **self.annotations.settings},
            features=inception.PROMISE if features is None else cols.promise(features),
            classes=labelled.classes,
            notes=notes,
            warnings=tuple(missing_classes(classes)),
            grows=file.recipe.grow,
            skipped=len(self.inputs.listing) - divided_count,
            manifest=self.inputs.manifest,
            expected=expected,
            changed_boxes=self.annotations.changed_boxes,
            has_labels=labelled.unlabelled > 0,
        )

    def _prefix(self, split: str) -> str:
        """The set's prefix itself for a single split, prefix and split for several;
        without a prefix the split.
        """
        prefix = rules.prefix_of(self.file)[1]
        if not prefix:
            return split
        return prefix if len(self.divisions) == 1 else f"{prefix}-{split}"

    def _plans(
        self, features: cols.Features, values: Mapping[str, list[Any]]
    ) -> Iterator[SplitPlan]:
        counts, recipe = self._shard_counts(), self.file.recipe
        for division in self.divisions:
            name = division.name
            catalog = self._catalog(division, values)
            recorder = make_recorder(
                self.file, features, self.content, self.labelled, name, self.annotations.masks
            )
            yield SplitPlan(
                name,
                catalog,
                self.inputs.origin,
                counts[name],
                self._is_shuffled(division),
                recipe.seed,
                recorder,
            )

    def _is_shuffled(self, division: Division) -> bool:
        """Whether the rows of a split are shuffled.

        A manifest_file was shuffled when it was made; any other one keeps its order unless the
        recipe says more.
        """
        recipe = self.file.recipe
        if recipe.manifest_file is not None:
            return False
        return recipe.shuffle if "shuffle" in self.file.value else not division.is_ordered

    def _catalog(self, division: Division, values: Mapping[str, list[Any]]) -> Catalog:
        """The rows of a split, known by the prefix of its shards:
        by label, then by name, or in its own order.
        """
        rows: Rows = division.rows
        labels, classes = self.labelled.labels[places_of(rows)], self.labelled.classes
        if not division.is_ordered and (labels[1:] < labels[:-1]).any():
            by_label = np.argsort(labels, kind="stable")  # names are in order already
            rows, labels = np.asarray(rows)[by_label], labels[by_label]
        return replace(
            self.annotations.listing.picked(rows),
            split=self._prefix(division.name),
            classes=dict(enumerate(zip(classes.names, classes.texts, strict=True), 1)),
            labels=labels,
            columns={name: [column[row] for row in rows] for name, column in values.items()},
        )

    def _classes_in(self, division: Division) -> list[str]:
        """The classes that the files of a split have, in order."""
        labels = set(np.unique(self.labelled.labels[places_of(division.rows)]).tolist())
        if self.labelled.several:
            labels = {label for row in division.rows for label in self.labelled.several[row]}
        return [self.labelled.classes.names[label - 1] for label in sorted(labels) if label > 0]

    def check_expected(self) -> None:
        """Compare the files with the totals that the recipe expects.

        Raises:
            InputError: there are more or fewer images or classes.
            UsageError: there is no such split.
        """
        file = self.file
        images = {division.name: len(division.rows) for division in self.divisions}
        classes = {division.name: self._classes_in(division) for division in self.divisions}
        totals = rules.totals_in(file.recipe.expected or {}, images, classes)
        for split, name, expected, actual in totals:
            if split and split not in images:
                raise file.fault(
                    ("expected", split), "no such split", f"expected one of {', '.join(images)}"
                )
            if actual != expected:
                error = _wrong_total(file, split, name, expected, actual)
                refuse(error, rules.kind_of_total(name, expected, actual), split or name)

    def all_notes(self, root: Path) -> Iterator[str]:
        """The notes on images that become JPEGs, splits and labels,
        links out of the data, and a manifest elsewhere.
        """
        names, recipe = self.annotations.listing.names, self.file.recipe
        is_kept = self.content != "image" or recipe.keep or recipe.reencode is not None
        if not is_kept and cols.becoming_jpeg(names.endings(), self.is_inception):
            divided_names = (names[row] for division in self.divisions for row in division.rows)
            yield f"{cols.becoming_jpeg(divided_names, self.is_inception)} become JPEGs"
        yield from (*self.inputs.notes, *self.notes, *self.labelled.notes)
        if links := self.inputs.remarks.links:
            files = number_of(len(links), "file is a link that leads", "files are links that lead")
            yield f"{files} out of the folder of the data: {listed(links)}"
        manifest = self.inputs.manifest
        if manifest is not None and not str(manifest.path).startswith(f"{root}/"):
            yield f"the manifest is made as {manifest.path}"

    def _shard_counts(self) -> dict[str, int]:
        """How many shards each split gets: as the recipe says, or as many as its files' bytes fill.

        Raises:
            UsageError: no number for a split, or so many shards that most would be empty.
        """
        file = self.file
        file_counts = {division.name: len(division.rows) for division in self.divisions}
        declared = rules.shard_counts(file)
        if declared is None:
            counts = self._counts_by_size(rules.shard_size(file) or 1)
        elif isinstance(declared, Mapping):
            counts = dict(declared)
        else:
            counts = dict.fromkeys(file_counts, declared)
        if unmatched := sorted(counts.keys() ^ file_counts.keys()):
            split = unmatched[0]
            is_unknown = split in counts
            problem = f"there is no split {split}" if is_unknown else f"no number for split {split}"
            expected = f"expected a number for each of {', '.join(file_counts)}"
            raise file.fault(("shards", split), problem, expected)
        for split, file_count in file_counts.items():
            if counts[split] > order.most_shards(file_count):
                raise _too_many_shards(file, split, counts[split], file_count)
        return counts

    def _counts_by_size(self, shard_size: int) -> dict[str, int]:
        """How many shards of this size the bytes of each split fill."""
        counts: dict[str, int] = {}
        for division in self.divisions:
            filled = -(-self.annotations.listing.size(division.rows) // shard_size)
            counts[division.name] = max(1, min(filled, len(division.rows), MAX_SHARDS))
        return counts


def _wrong_total(file: RecipeFile, split: str, name: str, expected: int, actual: int) -> InputError:
    """The error for another number of images or classes, of a split or of all ("")."""
    place, where = file.place(("expected", name)), ""
    if split:
        place, where = file.place(("expected", split, name)), f" in {split}"
    return InputError(
        f"{place}: {expected:,} {name} expected, {actual:,} found{where}",
        "expected the whole set",
        "get what is missing, or correct `expected` in the recipe",
    )


def _too_many_shards(file: RecipeFile, split: str, count: int, file_count: int) -> UsageError:
    """The error for so many shards that most would be empty."""
    keys = (("shards", split), ("shards",), ("num_shards",))
    key = next(key for key in keys if key in file.lines)
    where = f" in split {split}" if split != ONLY else ""
    problem = f"{number_of(count, 'shard')} of {number_of(file_count, 'file')}{where}"
    return file.fault(key, problem, f"expected at most {order.most_shards(file_count):,}")
