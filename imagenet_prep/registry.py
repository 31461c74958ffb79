"""Which data sets there are, and which of them the shards of a folder are: the one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from imagenet_prep.datasets.dataset import Dataset
from imagenet_prep.datasets.declarations import Shards, recipe_keys
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.part import LISTS
from imagenet_prep.ilsvrc2012.settings import SHARD_COUNTS, ConvertOptions
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_set import MadeByRecipe, find_made, refuse_made
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout

ILSVRC2012 = ImageNet()
"""What is made and checked where nothing says otherwise."""

KNOWN_SPLITS = ILSVRC2012.splits
"""What the names of shards begin with that are known whoever made them."""


def imagenet_options(file: RecipeFile) -> ConvertOptions:
    """The settings of a recipe of ILSVRC2012: the one that ships with the package, or any with ``imagenet: true``.

    Raises:
        UsageError: a key or a value can't be; the error names file, line and key.
    """
    keys = [each for each in recipe_keys(ConvertOptions) if each.name not in SHARD_COUNTS.values()]
    fields: list[tuple[str, Any, Any]] = [
        ("source", Any, None),
        ("record", Literal["inception"], "inception"),
        ("content", Literal["image"], "image"),
        ("shards", Shards | _Counts, _Counts()),
        *((each.name, each.type, each.default) for each in keys),
    ]
    said = file.convert(file.value, msgspec.defstruct("ImageNetRecipe", fields, forbid_unknown_fields=True), ())
    given = {each.name: getattr(said, each.name) for each in keys}
    counts = _Counts(said.shards, said.shards) if isinstance(said.shards, int) else said.shards
    given |= {name: getattr(counts, split) for split, name in SHARD_COUNTS.items()}
    if given["classes"] is not None and given["classes"] not in LISTS:
        given["classes"] = str(file.path.parent / given["classes"])
    return ConvertOptions(**given)


class _Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shards by split, as a recipe says them."""

    train: Shards = facts.SHARDS[facts.TRAIN]
    validation: Shards = facts.SHARDS[facts.VALIDATION]


def refuse_other_set(layout: Layout, dataset: Dataset) -> None:
    """Raise UsageError if ILSVRC2012 is to be begun where the set of a recipe is."""
    if isinstance(dataset, ImageNet):
        refuse_made(layout)


def labels_of_classes(layout: Layout, manifest: Manifest | None) -> Mapping[str, int] | None:
    """The label of each class by its wnid, of the shards that are ILSVRC2012's; None: nothing but records tells."""
    found = known_set(layout, manifest)
    return found.part.labels if isinstance(found, ImageNet) else None


def known_set(layout: Layout, manifest: Manifest | None) -> ImageNet | MadeByRecipe:
    """The data set of the shards: by their manifest, else by what their conversion began with, else ILSVRC2012."""
    return find_made(layout, manifest) or ImageNet.made(layout, manifest)
