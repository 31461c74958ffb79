"""Turns the options of a call into the settings, the data set and the folder of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from imagenet_prep.cli.setting_options import settings_of_call, written_options
from imagenet_prep.errors import UsageError
from imagenet_prep.storage.layout import Layout

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_dataset import CheckedDataset
    from imagenet_prep.datasets.declarations import MakingOptions, Setting
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.model import Progress
    from imagenet_prep.recipes.recipe_file import RecipeFile


def convert_options(params: Mapping[str, Any]) -> ConvertOptions:
    """The settings of a conversion; raises UsageError for some that contradict each other."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions, check_options

    settings = settings_of_call(params)
    options = ConvertOptions(**settings)
    check_options(options)
    return options


def read_job(
    layout: Layout, params: Mapping[str, Any], progress: Progress
) -> tuple[Layout, CheckedDataset, MakingOptions]:
    """The shards' folder, data set and settings: from a recipe, or from options for ILSVRC2012."""
    recipe = params["config"]
    if recipe is not None:
        return _read_recipe_job(layout, recipe, params, progress)
    from imagenet_prep.registry import ILSVRC2012

    options = convert_options(params)
    if params["allow_python"]:
        raise UsageError(
            "--allow-python can't be used without --config",
            "expected a recipe with source: {python: ...}",
            "add --config RECIPE, or leave out --allow-python",
        )
    return layout, ILSVRC2012, options


def _read_recipe_job(
    layout: Layout, recipe: Path, params: Mapping[str, Any], progress: Progress
) -> tuple[Layout, CheckedDataset, MakingOptions]:
    """The shards' folder, data set and settings of a recipe."""
    from imagenet_prep.recipes.output_places import shards_dir
    from imagenet_prep.recipes.recipe_set import RecipeSet
    from imagenet_prep.registry import read_dataset

    call = click.get_current_context()
    _refuse_with_recipe(params)
    options = convert_options(params)
    dataset = read_dataset(recipe, allow_python=params["allow_python"])
    if isinstance(dataset, RecipeSet) and dataset.file:
        if options.consume:
            consume, *_ = written_options(call, {"consume"})
            raise UsageError(
                f"{consume} can't be used with --config {recipe}",
                "it deletes raw data, and only the archives of ImageNet can be downloaded again",
                f"leave {consume} out",
            )
        output = shards_dir(dataset.file, layout)
        if output != layout.output_dir:
            layout = replace(layout, output=output)
            progress.note(
                f"the shards go to {output}: pass that folder to verify, status, repair and report"
            )
    settings: dict[str, Any] = {"overwrite": options.overwrite, "consume": options.consume}
    if any(written_options(call, {"on_damaged"})):
        settings["on_damaged"] = options.on_damaged
    return layout, dataset, dataset.options.replace(**settings)


def _refuse_with_recipe(params: Mapping[str, Any]) -> None:
    """Refuse options for settings of a recipe, except one that only leaves images out."""
    from imagenet_prep.datasets.declarations import recipe_keys, settings_of
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.recipes.schema import Recipe

    settings = [*recipe_keys(ConvertOptions), *settings_of(Recipe)]
    names = {setting.name for setting in settings}
    names.discard("on_damaged")
    call = click.get_current_context()
    for name in sorted(names):
        for option in written_options(call, {name}):
            hint = _in_recipe(name, params["config"], option)
            problem = f"{option} can't be used with --config"
            raise UsageError(problem, "all settings come from the recipe", hint)


def _in_recipe(name: str, recipe: Path, option: str) -> str:
    """How a recipe says a setting; one of the user's own images has no key for some."""
    from imagenet_prep.datasets.declarations import recipe_keys
    from imagenet_prep.ilsvrc2012.settings import SHARD_COUNTS, ConvertOptions
    from imagenet_prep.recipes.loading import read
    from imagenet_prep.recipes.rules import is_imagenet
    from imagenet_prep.recipes.schema import Recipe

    if name in SHARD_COUNTS.values():
        return (
            f"write shards: {{SPLIT: NUMBER, ...}} in {recipe}, with a number for every split, "
            "and remove shard_size or num_shards if it is there"
        )
    file = read(recipe)
    table = ConvertOptions if is_imagenet(file) else Recipe
    setting = {setting.name: setting for setting in recipe_keys(table)}.get(name)
    if setting is not None and _applies(setting, file):
        return f"write the setting {name} in {recipe}"
    return f"leave out {option}: this setting does not apply to {recipe}"


def _applies(setting: Setting, file: RecipeFile) -> bool:
    """Whether a recipe can have a setting, as far as it says what its files are."""
    from imagenet_prep.recipes.rules import can_have_boxes

    if setting.only_with == "boxes" and not can_have_boxes(file):
        return False
    return not setting.only_with or file.recipe.content not in ("pixels", "array")
