"""DividedFiles: annotated, labelled and divided files -> the data set of a recipe, with its
shards and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from imagenet_prep.text import listed, number_of, one_of
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
        promised = inception.PROMISE
        if features is not None:
            promised = cols.promise(features)
        splits = tuple(self._plans(features, values))
        lacking_classes = missing_classes(self._classes_by_split())
        divided_count = sum(self._file_counts().values())
        skipped_count = len(self.inputs.listing) - divided_count
        return RecipeDataset(
            path=file.path,
            splits=splits,
            on_damaged=on_damaged,
            settings={**settings, **self.annotations.settings},
            features=promised,
            classes=labelled.classes,
            notes=notes,
            warnings=tuple(lacking_classes),
            grows=file.recipe.grow,
            skipped=skipped_count,
            manifest=self.inputs.manifest,
            expected=self._expected_totals(),
            changed_boxes=self.annotations.changed_boxes,
            has_labels=labelled.unlabelled > 0,
        )

    def _expected_totals(self) -> dict[str, Any]:
        """The totals that the recipe expects; those of splits by their prefixes."""
        totals: dict[str, Any] = {}
        for key, total in (self.file.recipe.expected or {}).items():
            if isinstance(total, dict):
                totals[self._prefix(key)] = total
            else:
                totals[key] = total
        return totals

    def _file_counts(self) -> dict[str, int]:
        """How many files each split has."""
        return {division.name: len(division.rows) for division in self.divisions}

    def _classes_by_split(self) -> dict[str, list[str]]:
        """The classes that each split has."""
        return {division.name: self._classes_in(division) for division in self.divisions}

    def _prefix(self, split: str) -> str:
        """The set's prefix itself for a single split, prefix and split for several;
        without a prefix the split.
        """
        _, prefix = rules.prefix_of(self.file)
        if not prefix:
            return split
        if len(self.divisions) == 1:
            return prefix
        return f"{prefix}-{split}"

    def _plans(
        self, features: cols.Features, values: Mapping[str, list[Any]]
    ) -> Iterator[SplitPlan]:
        seed = self.file.recipe.seed
        origin = self.inputs.origin
        masks = self.annotations.masks
        shard_counts = self._shard_counts()
        for division in self.divisions:
            name = division.name
            catalog = self._catalog(division, values)
            recorder = make_recorder(self.file, features, self.content, self.labelled, name, masks)
            count = shard_counts[name]
            is_shuffled = self._is_shuffled(division)
            yield SplitPlan(name, catalog, origin, count, is_shuffled, seed, recorder)

    def _is_shuffled(self, division: Division) -> bool:
        """Whether the rows of a split are shuffled.

        A manifest_file was shuffled when it was made; any other one keeps its order unless the
        recipe says more.
        """
        recipe = self.file.recipe
        if recipe.manifest_file is not None:
            return False
        if "shuffle" in self.file.value:
            return recipe.shuffle
        return not division.is_ordered

    def _catalog(self, division: Division, values: Mapping[str, list[Any]]) -> Catalog:
        """The rows of a split, known by the prefix of its shards:
        by label, then by name, or in its own order.
        """
        rows: Rows = division.rows
        labels = self.labelled.labels[places_of(rows)]
        is_by_label = not (labels[1:] < labels[:-1]).any()
        if not division.is_ordered and not is_by_label:
            by_label = np.argsort(labels, kind="stable")  # names are in order already
            rows = np.asarray(rows)[by_label]
            labels = labels[by_label]
        columns: dict[str, Sequence[Any]] = {}
        for name, column in values.items():
            columns[name] = [column[row] for row in rows]
        classes = self.labelled.classes
        names_and_texts = zip(classes.names, classes.texts, strict=True)
        return replace(
            self.annotations.listing.picked(rows),
            split=self._prefix(division.name),
            classes=dict(enumerate(names_and_texts, 1)),
            labels=labels,
            columns=columns,
        )

    def _classes_in(self, division: Division) -> list[str]:
        """The classes that the files of a split have, in order."""
        labels: set[int] = set()
        if self.labelled.several:
            for row in division.rows:
                labels.update(self.labelled.several[row])
        else:
            labels_of_rows = self.labelled.labels[places_of(division.rows)]
            labels.update(np.unique(labels_of_rows).tolist())
        names = self.labelled.classes.names
        return [names[label - 1] for label in sorted(labels) if label > 0]

    def check_expected(self) -> None:
        """Compare the files with the totals that the recipe expects.

        Raises:
            InputError: there are more or fewer images or classes.
            UsageError: there is no such split.
        """
        file = self.file
        images = self._file_counts()
        classes = self._classes_by_split()
        totals = rules.totals_in(file.recipe.expected or {}, images, classes)
        for split, name, expected, actual in totals:
            if split and split not in images:
                problem = f"there is no split {split}"
                raise file.fault(("expected", split), problem, f"expected {one_of(images)}")
            if actual != expected:
                error = _wrong_total(file, split, name, expected, actual)
                kind = rules.kind_of_total(name, expected, actual)
                refuse(error, kind, split or name)

    def all_notes(self, root: Path) -> Iterator[str]:
        """The notes on images that become JPEGs, splits and labels,
        links out of the data, and a manifest elsewhere.
        """
        yield from self._notes_on_jpegs()
        yield from self.inputs.notes
        yield from self.notes
        yield from self.labelled.notes
        links = self.inputs.remarks.links
        if links:
            files = number_of(len(links), "file is a link that leads", "files are links that lead")
            yield f"{files} out of the folder of the data: {listed(links)}"
        manifest = self.inputs.manifest
        if manifest is not None and not str(manifest.path).startswith(f"{root}/"):
            yield f"the manifest_file is written to {manifest.path}"

    def _notes_on_jpegs(self) -> Iterator[str]:
        """The note on images of a split that become JPEGs, if there are any."""
        recipe = self.file.recipe
        is_kept = self.content != "image" or recipe.keep or recipe.reencode is not None
        if is_kept:
            return
        names = self.annotations.listing.names
        if not cols.becoming_jpeg(names.endings(), self.is_inception):
            return
        divided_names = (names[row] for division in self.divisions for row in division.rows)
        note = cols.becoming_jpeg(divided_names, self.is_inception)
        if note:
            yield note

    def _shard_counts(self) -> dict[str, int]:
        """How many shards each split gets: as the recipe says, or as many as its files' bytes fill.

        Raises:
            UsageError: no number for a split, or so many shards that most would be empty.
        """
        file = self.file
        file_counts = self._file_counts()
        declared_counts = rules.shard_counts(file)
        if declared_counts is None:
            shard_size = rules.shard_size(file) or 1
            counts = self._counts_by_size(shard_size)
        elif isinstance(declared_counts, Mapping):
            counts = dict(declared_counts)
        else:
            counts = dict.fromkeys(file_counts, declared_counts)
        unmatched_splits = counts.keys() ^ file_counts.keys()
        if unmatched_splits:
            split = min(unmatched_splits)
            problem = f"no number for split {split}"
            if split in counts:
                problem = f"there is no split {split}"
            expected = f"expected a number for each of {', '.join(file_counts)}"
            raise file.fault(("shards", split), problem, expected)
        for split, file_count in file_counts.items():
            count = counts[split]
            if count > order.most_shards(file_count):
                raise _too_many_shards(file, split, count, file_count)
        return counts

    def _counts_by_size(self, shard_size: int) -> dict[str, int]:
        """How many shards of this size the bytes of each split fill."""
        counts: dict[str, int] = {}
        for division in self.divisions:
            size = self.annotations.listing.size(division.rows)
            filled_shards = -(-size // shard_size)  # rounded up
            most_shards = min(len(division.rows), MAX_SHARDS)
            counts[division.name] = max(1, min(filled_shards, most_shards))
        return counts


def _wrong_total(file: RecipeFile, split: str, name: str, expected: int, actual: int) -> InputError:
    """The error for another number of images or classes, of a split or of all ("")."""
    place = file.place(("expected", name))
    where = ""
    if split:
        place = file.place(("expected", split, name))
        where = f" in {split}"
    problem = f"{place}: {name}: {expected:,} expected, {actual:,} found{where}"
    hint = rules.remedy_of_total(name, expected, actual)
    return InputError(problem, "expected the totals that the recipe gives", hint)


def _too_many_shards(file: RecipeFile, split: str, count: int, file_count: int) -> UsageError:
    """The error for so many shards that most would be empty."""
    keys = (("shards", split), ("shards",), ("num_shards",))
    key = next(key for key in keys if key in file.lines)
    where = ""
    if split != ONLY:
        where = f" in split {split}"
    shards = number_of(count, "shard")
    files = number_of(file_count, "file")
    most_shards = order.most_shards(file_count)
    return file.fault(
        key, f"{shards} for {files}{where}", f"expected at most {most_shards:,} shards"
    )
