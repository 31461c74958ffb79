"""The table of data sets: finds the one that a folder's shards belong to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.datasets.dataset import Dataset
from imagenet_prep.datasets.declarations import Shards, recipe_keys
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import LISTS
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.settings import SHARD_COUNTS, ConvertOptions
from imagenet_prep.recipes.recipe_set import RecipeSet, refuse_made
from imagenet_prep.state.manifest import RECIPE, DatasetEntry, Manifest, find_set
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.recipes.recipe_file import RecipeFile

ILSVRC2012 = ImageNet()
"""The default data set."""

KNOWN_SPLITS = ILSVRC2012.splits
"""Splits in the names of shards that are recognized whichever tool made the shards."""


def read_dataset(recipe: Path, *, allow_python: bool = False) -> CheckedDataset:
    """The data set of a recipe: its own, or ILSVRC2012 with its settings.

    With ``allow_python``, convert may run the function that the recipe names as its source.

    Raises:
        UsageError: the recipe is wrong; the error names file, line and key.
        InputError: it can't be read.
    """
    from imagenet_prep.recipes.loading import read
    from imagenet_prep.recipes.rules import is_imagenet

    file = read(recipe)
    if is_imagenet(file):
        return ImageNet(recipe_options=imagenet_options(file))
    return RecipeSet.read(file, allow_python=allow_python)


def imagenet_options(file: RecipeFile) -> ConvertOptions:
    """The settings of a recipe for ILSVRC2012: the recipe of this package, or any with ``imagenet:
    true``.

    Raises:
        UsageError: a key or a value is invalid; the error names file, line and key.
    """
    counts_by_split = SHARD_COUNTS.values()
    keys = [key for key in recipe_keys(ConvertOptions) if key.name not in counts_by_split]
    fields: list[tuple[str, Any, Any]] = [
        ("source", Any, None),
        ("record", Literal["inception"], "inception"),
        ("content", Literal["image"], "image"),
        ("shards", Shards | _Counts, _Counts()),
        *((key.name, key.type, key.default) for key in keys),
    ]
    recipe_type = msgspec.defstruct("ImageNetRecipe", fields, forbid_unknown_fields=True)
    recipe = file.convert(file.value, recipe_type, ())
    settings = {key.name: getattr(recipe, key.name) for key in keys}
    counts = recipe.shards
    if isinstance(counts, int):
        counts = _Counts(counts, counts)
    for split, name in SHARD_COUNTS.items():
        settings[name] = getattr(counts, split)
    classes = settings["classes"]
    if classes is not None and classes not in LISTS:
        settings["classes"] = str(file.path.parent / classes)
    return ConvertOptions(**settings)


class _Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shard counts by split, as given in a recipe."""

    train: Shards = facts.SHARDS[facts.TRAIN]
    validation: Shards = facts.SHARDS[facts.VALIDATION]


def refuse_other_set(records: SetRecords, dataset: Dataset) -> None:
    """Raise UsageError if a conversion to ILSVRC2012 would start in the
    folder of a recipe's set.
    """
    if isinstance(dataset, ImageNet):
        refuse_made(records)


def refuse_images(layout: Layout, manifest: Manifest) -> None:
    """Raise InputError if the images of a set that is about to be finished
    are not those of its data set.
    """
    known_set(SetRecords(layout), manifest).refuse_images(layout, manifest.shards.values())


def labels_of_classes(layout: Layout, manifest: Manifest | None) -> Mapping[str, int]:
    """The label of each class of a set by its name; without a manifest, those of ILSVRC2012."""
    dataset = known_set(SetRecords(layout), manifest)
    if isinstance(dataset, ImageNet):
        return dataset.part.labels
    return manifest.dataset.classes if manifest is not None else {}


def name_imagenet(numbering: Numbering) -> Numbering:
    """The numbering of a set of ILSVRC2012 with the words of its classes,
    and all 1000 labels if it says nothing.
    """
    labels = numbering.labels or facts.labels()
    texts = facts.texts()
    return replace(numbering, labels=labels, texts={wnid: texts.get(wnid, wnid) for wnid in labels})


def known_set(records: SetRecords, manifest: Manifest | None) -> CheckedDataset:
    """The data set of the shards: from their manifest, then from the start of their conversion;
    default ILSVRC2012.
    """
    return RecipeSet.find(records, manifest) or ImageNet.made(records, manifest)


def known_file(path: AnyPath) -> tuple[Layout, CheckedDataset, Manifest]:
    """The folder, the data set and the manifest of one shard; any other file is a data set of its
    own, without promise.

    The manifest has no entry but that of the shard, and no version if the file is of another maker.

    Raises:
        InputError: the manifest of a set that may have it is damaged.
    """
    name = path.name
    split = split_of(name)
    layout = find_set(Layout(path.parent), split)
    state = SetState.read(layout)
    manifest = state.manifest
    if manifest and name in manifest.shards:
        of_shard = replace(manifest, totals={}, shards={name: manifest.shards[name]})
        return layout, known_set(state.records, manifest), of_shard
    entry = DatasetEntry(RECIPE, name, (split or name,), {}, {})
    of_file = Manifest("", entry, {}, {}, {}, {})
    return layout, RecipeSet(None, manifest=of_file), of_file
