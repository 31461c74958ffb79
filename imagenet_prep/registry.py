"""Which data sets there are, and which of them the shards of a folder are: the one table."""

from __future__ import annotations

from collections.abc import Mapping

from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.settings import ConvertOptions, options_of_recipe
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_set import MadeByRecipe, find_made
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import Layout

ILSVRC2012 = ImageNet()
"""What is made and checked where nothing says otherwise."""

KNOWN_SPLITS = ILSVRC2012.splits
"""What the names of shards begin with that are known whoever made them."""


def imagenet_options(file: RecipeFile) -> ConvertOptions:
    """How a recipe of ILSVRC2012 itself says that it is converted."""
    return options_of_recipe(file)


def labels_of_classes(layout: Layout, manifest: Manifest | None) -> Mapping[str, int] | None:
    """The label of each class by its wnid, of the shards that are ILSVRC2012's; None: nothing but records tells."""
    found = known_set(layout, manifest)
    return found.part.labels if isinstance(found, ImageNet) else None


def known_set(layout: Layout, manifest: Manifest | None) -> ImageNet | MadeByRecipe:
    """The data set of the shards: by their manifest, else by what their conversion began with, else ILSVRC2012."""
    return find_made(layout, manifest) or ImageNet.made(layout, manifest)
