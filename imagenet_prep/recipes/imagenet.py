"""ImageNet's own settings as a recipe: the one that ships with the package, and any that says ``imagenet: true``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep import ilsvrc2012
from imagenet_prep.recipes import rules
from imagenet_prep.recipes.reading import RecipeFile

SHIPPED = Path(__file__).with_name("imagenet.yaml")
"""The recipe of the defaults."""


def imagenet_options(file: RecipeFile) -> dict[str, Any]:
    """The settings of a recipe of ImageNet, as the keyword arguments of ``planning.ConvertOptions``."""
    recipe = file.recipe
    given = rules.shard_counts(file)
    by_split = given if isinstance(given, Mapping) else dict.fromkeys(ilsvrc2012.SPLITS, given)
    counts = {split: by_split.get(split) or ilsvrc2012.SHARDS[split] for split in ilsvrc2012.SPLITS}
    return {
        "train_shards": counts[ilsvrc2012.TRAIN],
        "validation_shards": counts[ilsvrc2012.VALIDATION],
        "seed": ilsvrc2012.SEED if recipe.seed is None else recipe.seed,
        "shuffle": recipe.shuffle is not False,
        "check": "auto" if recipe.images is None else recipe.images.check,
        "reencode": rules.reencode_of(file),
        "compression": recipe.compression,
        "validation_boxes": recipe.validation_boxes,
        "allow_incomplete": recipe.allow_incomplete,
        "skip_bad": recipe.skip_bad,
    }
