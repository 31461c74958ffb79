"""RecipeDataset: a recipe whose inputs have been listed, and what decides its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSet, cut
from imagenet_prep.images.grades import Check
from imagenet_prep.images.pixels import codec
from imagenet_prep.model import OnDamaged
from imagenet_prep.recipes.classes import Classes, class_notes
from imagenet_prep.recipes.columns import Content, Features, Mapped
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Labelled
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.recorders.recorder import Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import shown_name
from imagenet_prep.state.manifest import CHANGED_BOXES, RECIPE, DatasetEntry
from imagenet_prep.storage.location import AnyPath

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
