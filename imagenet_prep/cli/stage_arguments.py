"""Turns the options of a call into arguments of stages: engine, settings, data set, account."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from imagenet_prep.cli import options as o
from imagenet_prep.cli.terminal import say
from imagenet_prep.errors import UsageError
from imagenet_prep.fetch import BASE_URL, SIGN_UP_URL
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import nearest_words

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_dataset import CheckedDataset
    from imagenet_prep.checks.verdict import Depth
    from imagenet_prep.datasets.declarations import MakingOptions
    from imagenet_prep.fetch.access import SignIn
    from imagenet_prep.fetch.providers import Site
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.model import Engine, Progress
    from imagenet_prep.shards.share import Share
    from imagenet_prep.stages.download import DownloadOptions


def engine_of(params: Mapping[str, Any]) -> Engine:
    """The engine of --engine and --workers."""
    from imagenet_prep.engines import make_engine

    if params.get("consume") and params.get("engine") == "ray":
        raise UsageError(
            "--consume with --engine ray",
            "expected a local engine, which knows when shards are durable",
        )
    return make_engine(params.get("engine", "processes"), params["workers"])


def note_share(share: Share | None, progress: Progress) -> Share | None:
    """Note the requested rank."""
    if share is not None:
        shards = ", ".join(str(share.rank + step * share.world) for step in range(3))
        progress.note(f"{share}: shards {shards}, ... counted over all splits")
    return share


def depth_of(params: Mapping[str, Any]) -> Depth:
    """The depth of a check of shards."""
    depth: Depth = params["depth"] or "full"
    return depth


def archive_keys(only: str) -> tuple[str, ...]:
    """The archives that --only names; raises UsageError for one that does not exist."""
    keys = tuple(key.strip() for key in only.split(",") if key.strip())
    unknown = [key for key in keys if key not in facts.ARCHIVES]
    if unknown or not keys:
        suggestion = nearest_words(unknown[0], facts.ARCHIVES) if unknown else ""
        expected = f"expected one or more of {','.join(facts.ARCHIVES)}"
        raise UsageError(f"--only {only}", expected, suggestion)
    return keys


def split_places(texts: Sequence[str]) -> dict[str, str]:
    """Where each split is, by its name; raises UsageError for a text without a name or a place,
    or a name twice.
    """
    splits: dict[str, str] = {}
    for text in texts:
        name, sign, place = text.partition("=")
        if not (name and sign and place):
            raise UsageError(
                f"--split {text} has no name or no place", "expected NAME=WHERE, as in train=Train"
            )
        if name in splits:
            raise UsageError(f"--split {name} occurs twice", "expected each split once")
        splits[name] = place
    return splits


def find_account(params: Mapping[str, Any]) -> SignIn | None:
    """The account to sign in with; it prompts when the server requires one.
    A cookies file replaces it.
    """
    from imagenet_prep.fetch.access import find_credentials

    if params.get("cookies") is not None:
        return None
    base_url = params["base_url"] or BASE_URL
    credentials = find_credentials(base_url, prompt=None)
    if credentials is not None or not sys.stdin.isatty():
        return credentials
    prompt = functools.partial(_prompt, base_url)
    return functools.partial(find_credentials, base_url, prompt=prompt)


def _prompt(base_url: str) -> tuple[str, str]:
    from imagenet_prep.fetch.session import host_of

    sign_up = (
        f" (sign up: {SIGN_UP_URL})" if base_url == BASE_URL else ", which will get the password"
    )
    say(f"Account at {host_of(base_url)}{sign_up}", error=True)
    username = click.prompt("Username", err=True)
    return username, click.prompt("Password or access key", hide_input=True, err=True)


def download_options(params: Mapping[str, Any], site: Site | None) -> DownloadOptions:
    """The settings of a download from a site."""
    from imagenet_prep.stages.download import DownloadOptions

    return DownloadOptions(
        site=site,
        base_url=params["base_url"] or BASE_URL,
        connections=params["connections"],
        check_digest=not params["no_digest"],
    )


def convert_options(params: Mapping[str, Any]) -> ConvertOptions:
    """The settings of a conversion; raises UsageError for some that contradict each other."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions, check_options

    options = ConvertOptions(**o.settings_of_call(params))
    check_options(options)
    return options


def read_job(
    layout: Layout, params: Mapping[str, Any], progress: Progress
) -> tuple[Layout, CheckedDataset, MakingOptions]:
    """The shards' folder, data set and settings: from a recipe, or from options for ILSVRC2012."""
    from imagenet_prep.registry import ILSVRC2012, read_dataset

    if params["config"] is not None:
        _refuse_with_recipe(params)
    options = convert_options(params)
    if params["config"] is None:
        if params["allow_python"]:
            raise UsageError(
                "--allow-python without --config", "expected a recipe with source: {python: ...}"
            )
        return layout, ILSVRC2012, options
    from imagenet_prep.recipes.output_places import shards_dir
    from imagenet_prep.recipes.recipe_set import RecipeSet

    dataset = read_dataset(params["config"], allow_python=params["allow_python"])
    if isinstance(dataset, RecipeSet) and dataset.file:
        output = shards_dir(dataset.file, layout.output_dir)
        if output != layout.output_dir:
            layout = replace(layout, output=output)
            progress.note(
                f"the shards are in {output}: the DATA_DIR of verify, status, repair and report"
            )
        if options.consume:
            raise UsageError(
                f"--consume with --config {params['config']}",
                "expected ImageNet, whose digests are known",
            )
    settings: dict[str, Any] = {"overwrite": options.overwrite, "consume": options.consume}
    if list(o.written_options(click.get_current_context(), {"on_damaged"})):
        settings["on_damaged"] = options.on_damaged
    return layout, dataset, dataset.options.replace(**settings)


def _refuse_with_recipe(params: Mapping[str, Any]) -> None:
    """Refuse options for settings of a recipe, except one that only leaves images out."""
    from imagenet_prep.datasets.declarations import recipe_keys, settings_of
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.recipes.schema import Recipe

    settings = (*recipe_keys(ConvertOptions), *settings_of(Recipe))
    names = {setting.name for setting in settings} - {"on_damaged"}
    for option in o.written_options(click.get_current_context(), names):
        raise UsageError(
            f"{option} with --config",
            "expected one of them",
            f"write the setting in {params['config']}",
        )
