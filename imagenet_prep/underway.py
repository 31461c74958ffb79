"""What a conversion was begun with, kept beside its shards, and the commands that go on with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.errors import InputError, PrepError, UsageError, all_of
from imagenet_prep.escaping import command
from imagenet_prep.layout import Layout
from imagenet_prep.manifest import Journal, Manifest, load_manifest
from imagenet_prep.planning import ConvertOptions, PlannedSet, plan_recipe
from imagenet_prep.storage.atomic import save_json
from imagenet_prep.storage.plain import load_json

if TYPE_CHECKING:
    from imagenet_prep.recipes.plan import Plan


# what a conversion sets out to make ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the last conversion set out to make: shards by split; its options, as words of a command; its ``--raw``."""

    shards: Mapping[str, int]
    options: tuple[str, ...]
    raw: Path | None = None


def save_beginning(layout: Layout, planned: PlannedSet, options: ConvertOptions, recipe: Plan | None) -> None:
    """Keep what a conversion begins with: status and repair know it then, whatever happens to the conversion."""
    shards = {split.catalog.split: len(split.plans) for split in planned.splits}
    words = option_words(options) if recipe is None else _beside_recipe(options)
    raw = str(layout.raw.resolve()) if layout.raw else None
    save_json(layout.conversion_path, {"shards": shards, "options": words, "raw": raw})
    if recipe is None:
        layout.recipe_path.unlink(missing_ok=True)
        return
    root = {} if recipe.root is None else {"root": str(recipe.root)}
    save_json(layout.recipe_path, {"recipe": str(recipe.path.resolve()), **root})


def _beside_recipe(options: ConvertOptions) -> list[str]:
    """The options that are given beside a recipe, as words of the command line."""
    flags = {"--skip-bad": options.skip_bad, "--overwrite": options.overwrite}
    return [name for name, is_set in flags.items() if is_set]


def load_beginning(layout: Layout) -> Beginning | None:
    """What the last conversion began with, or None if nothing that can be understood tells."""
    try:
        value = load_json(layout.conversion_path)
        shards = {str(split): int(count) for split, count in value["shards"].items()}
        return Beginning(shards, tuple(map(str, value["options"])), _path(value["raw"]))
    except (InputError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _path(kept: object) -> Path | None:
    """A path that was kept as text; None if it is none, or none that a system can have."""
    if not isinstance(kept, str):
        return None
    try:
        os.fsencode(kept)
    except UnicodeEncodeError:
        return None
    return Path(kept)


def option_words(options: ConvertOptions) -> list[str]:
    """The options of a conversion of ILSVRC2012 as words of the command line: those that matter, without defaults."""
    how, usual = options.reencode, ConvertOptions()
    values = (
        ("--train-shards", options.train_shards, usual.train_shards),
        ("--validation-shards", options.validation_shards, usual.validation_shards),
        ("--seed", options.seed, usual.seed),
        ("--check", options.check, usual.check),
        ("--compression", options.compression, usual.compression),
        ("--resize", how and how.resize, None),
        ("--max-side", how and how.max_side, None),
        ("--quality", how and how.quality, None),
    )
    flags = {
        "--no-shuffle": not options.shuffle,
        "--validation-boxes": options.validation_boxes,
        "--reencode": how is not None,
        "--allow-incomplete": options.allow_incomplete,
        "--skip-bad": options.skip_bad,
        "--overwrite": options.overwrite,
    }
    words = [text for name, value, default in values if value not in (None, default) for text in (name, str(value))]
    return words + [name for name, is_set in flags.items() if is_set]


# the recipe that a set was begun by ----------------------------------------------------------------------------


def as_begun(recipe: Plan, layout: Layout) -> Plan:
    """The recipe as a version meant it that began the set: one that turned no image upright, maybe."""
    earlier = recipe.without_turning()
    if earlier is None:
        return recipe
    try:
        manifest = load_manifest(layout.manifest_path)
    except InputError:
        manifest = None
    if manifest is not None:
        return as_recorded(recipe, manifest)
    with Journal(layout.journal_path) as journal:
        begun = {info.fingerprint for name in journal.names() if (info := journal.get(name))}
    if not begun:
        return recipe
    planned = {plan.fingerprint for split in plan_recipe(earlier).splits for plan in split.plans}
    return earlier if begun & planned else recipe


def as_recorded(recipe: Plan, manifest: Manifest) -> Plan:
    """The same by the manifest of the set."""
    earlier = recipe.without_turning()
    return recipe if earlier is None or "upright" in manifest.settings else earlier


# what speaks against a set -------------------------------------------------------------------------------------


def refuse_doubtful(planned: PlannedSet, layout: Layout) -> None:
    """Raise what speaks against beginning a set, unless shards of this very set are done: then it is gone on with.

    Versions that saw none of it began such sets. Only a shard with images proves that it is this one.
    """
    if not planned.doubts:
        return
    with Journal(layout.journal_path) as journal:
        done = {info.fingerprint for name in journal.names() if (info := journal.get(name))}
    plans = [plan for split in planned.splits for plan in split.plans if plan.start < plan.stop]
    if not any(plan.fingerprint in done for plan in plans):
        inputs = [each for each in planned.doubts if isinstance(each, InputError)]
        raise all_of(inputs) if inputs else planned.doubts[0]


# the set of a recipe -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecipeSet:
    """A data set made by a recipe, as far as it is known.

    Args:
        manifest: once it is whole.
        path: where the recipe lies.
        root: what its relative paths begin with, where that is not the recipe's own folder.
    """

    manifest: Manifest | None
    path: Path | None
    root: Path | None = None

    @property
    def name(self) -> str:
        """The name of the recipe."""
        if self.manifest is not None:
            return self.manifest.dataset
        return self.path.stem if self.path else "data set"


def find_recipe_set(layout: Layout) -> RecipeSet | None:
    """What tells that the shards are a recipe's; None if they are ILSVRC2012, or nothing is known of them."""
    try:
        manifest = load_manifest(layout.manifest_path)
    except InputError:
        manifest = None  # verify says what is wrong with it
    try:
        kept = load_json(layout.recipe_path)
    except InputError:
        kept = None
    places = [_path(kept.get(key)) if isinstance(kept, dict) else None for key in ("recipe", "root")]
    if manifest is not None:
        return RecipeSet(manifest, *places) if manifest.recipe is not None else None
    return RecipeSet(None, *places) if places[0] is not None else None


def refuse_recipe_set(layout: Layout) -> None:
    """ILSVRC2012 is not to be begun where the set of a recipe is.

    Raises:
        UsageError: it is.
    """
    recipe = find_recipe_set(layout)
    if recipe is None:
        return
    again = command_again(layout, recipe) if recipe.path else "give its recipe with --config"
    raise UsageError(
        f"{layout.output_dir} holds shards of the recipe {recipe.name}",
        "expected a folder for ILSVRC2012 alone: without --config that is what would be made",
        f"{again}    (ILSVRC2012: choose another folder, or --output)",
    )


def command_again(layout: Layout, recipe: RecipeSet) -> str:
    """The same conversion again. A folder in the recipe's prefix is part of where the shards are: it is not given."""
    from imagenet_prep.recipes.plan import read
    from imagenet_prep.recipes.rules import prefix_of

    assert recipe.path is not None
    try:
        folder, _ = prefix_of(read(recipe.path))
    except PrepError:
        folder = ""  # convert says what is wrong with it
    root = layout.raw or recipe.root
    raw = ("--raw", str(root)) if root else ()
    output = ("--output", str(_outside(layout.output, folder))) if layout.output else ()
    data_dir = layout.data_dir if layout.output else _outside(layout.data_dir, folder)
    begun = load_beginning(layout) if recipe.manifest is None else None
    more = begun.options if begun else ()
    return command("convert", data_dir, *raw, *output, "--config", str(recipe.path), *more)


def _outside(path: Path, folder: str) -> Path:
    """The path without the folder that it ends with; an absolute folder stays: it may be DATA_DIR itself."""
    parts = () if folder.startswith("/") else Path(folder).parts
    for each in (path, path.resolve()):
        if parts and each.parts[-len(parts) :] == parts:
            return each.parents[len(parts) - 1]
    return path
