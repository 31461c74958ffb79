"""RecipeDataset: a recipe whose inputs have been listed, and what decides its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit, cut
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
        planned_splits: list[PlannedSplit] = []
        ordering: dict[str, Any] = {}
        image_counts: dict[str, int] = {}
        for split in self.splits:
            planned_splits.append(self._cut_split(split))
            ordering[split.prefix] = {"seed": split.seed, "shuffle": split.shuffle}
            image_counts[split.prefix] = len(split.catalog)
        settings = {**self.settings, "order": ordering}
        if self.expected:
            settings["expected"] = dict(self.expected)
        notes_on_classes = class_notes(self.classes.names, self.classes.numbers)
        return PlannedSet(
            entry=self._entry(),
            splits=tuple(planned_splits),
            settings=settings,
            expected=image_counts,
            notes=(*self.notes, *notes_on_classes, *self.warnings),
            lists=self._lists(),
            has_labels=self.has_labels,
        )

    def _cut_split(self, split: SplitPlan) -> PlannedSplit:
        """A split cut into plans, with the facts that its manifest has."""
        seed = split.seed if split.shuffle else None
        planned = cut(
            split.catalog, split.origin, split.recorder, split.shards, seed, self.settings
        )
        facts: dict[str, Any] = {}
        is_first = split is self.splits[0]
        if is_first and self.skipped:
            facts["skipped"] = self.skipped
        changed_boxes = self._changed_boxes(split.catalog)
        if changed_boxes:
            facts[CHANGED_BOXES] = changed_boxes
        return replace(planned, facts=facts)

    def _entry(self) -> DatasetEntry:
        """The manifest's entry: the features, and all classes that the recipe knows."""
        path = PurePosixPath(shown_name(self.path))
        prefixes = tuple(split.prefix for split in self.splits)
        features = {feature: dict(promised) for feature, promised in self.features.items()}
        classes = self.classes
        labels = dict(zip(classes.names, classes.numbers, strict=True))
        texts: dict[str, str] = {}
        for class_name, text in zip(classes.names, classes.texts, strict=True):
            if text != class_name:
                texts[class_name] = text
        return DatasetEntry(RECIPE, path.stem, prefixes, features, {}, labels, texts)

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
        if not manifest.paths:
            return {manifest.path: _as_lines(manifest.names)}
        lists: dict[AnyPath, bytes] = {}
        for split in self.splits:
            path = manifest.paths[split.name]
            names = [manifest.lead + name for name in split.catalog.names]
            lists[path] = _as_lines(names)
        return lists


def _as_lines(names: Iterable[str]) -> bytes:
    """A file with a name in each line."""
    text = "".join(f"{name}\n" for name in names)
    return text.encode()


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
        counted_from_1 = range(1, len(numbers) + 1)
        if numbers == counted_from_1:
            return InceptionRecorder(numbers=None, **common)
        return InceptionRecorder(numbers=numbers, **common)
    bounds = None
    if recipe.min_val is not None and recipe.max_val is not None:
        bounds = (recipe.min_val, recipe.max_val)
    return MappedRecorder(
        features, content, split, numbers, bounds, recipe.array, masks, recipe.keep, **common
    )


def _as_range(numbers: tuple[int, ...]) -> Sequence[int]:
    """Numbers that count up as a range, which is short: every task of a shard carries them."""
    if not numbers:
        return range(0)
    start = numbers[0]
    counted = range(start, start + len(numbers))
    if numbers == tuple(counted):
        return counted
    return numbers


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
    record = "inception" if features is None else _features_setting(features)
    changes_boxes = recipe.boxes_outside != "refuse"
    settings = {
        "recipe": RECIPE_VERSION,
        "content": content,
        **recipe.deciding("records"),
        "record": record,
        "first_label": classes.first_label if classes.names else None,
        "class_numbers": _uncounted(classes),
        "keep": recipe.keep or None,
        "boxes_outside": recipe.boxes_outside if changes_boxes else None,
        "upright": is_turned or None,  # versions that turned none did not have this key
        "codec": codec() if decodes_jpegs else None,  # it decides how a JPEG becomes numbers
        "rescale": rescale,
        "array": recipe.array,
    }
    return {name: setting for name, setting in settings.items() if setting is not None}


def _features_setting(features: Sequence[Mapped]) -> dict[str, dict[str, Any]]:
    """The features of a mapped record, as the manifest has them."""
    settings: dict[str, dict[str, Any]] = {}
    for mapped in features:
        settings[mapped.feature] = {
            "from": mapped.column,
            "type": mapped.kind,
            "optional": mapped.optional,
        }
    return settings


def _have_jpegs(endings: Iterable[str]) -> bool:
    lowered_endings = (ending.lower() for ending in endings)
    return any(ending.endswith((".jpg", ".jpeg")) for ending in lowered_endings)


def _uncounted(classes: Classes) -> list[int] | None:
    """The numbers of the classes, if neither their order nor their names tell them."""
    numbers = classes.numbers
    first_label = classes.first_label
    counted = range(first_label, first_label + len(numbers))
    if numbers == tuple(counted):
        return None
    if classes.names == tuple(map(str, numbers)):
        return None
    return list(numbers)
