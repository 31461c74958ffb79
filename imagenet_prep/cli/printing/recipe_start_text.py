"""Prints what init found and wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.text import listed

if TYPE_CHECKING:
    from imagenet_prep.stages.init import InitSummary

SHOWN_CLASSES = 20


def print_init(summary: InitSummary, quiet: bool) -> None:
    """Print the evidence, the recipe, and the command that uses it."""
    if quiet:
        return
    tell(f"found {summary.found}", *summary.evidence)
    if summary.classes:
        classes = _class_counts(summary.classes)
        tell(f"{summary.nouns} per class: {classes}", f"labels: {summary.labels}")
    for text in summary.passed:
        tell(Hint("skipped: ", text))
    tell(*summary.warnings)
    _print_recipe(summary.recipe, summary.text)


def _class_counts(classes: Mapping[str, int]) -> str:
    counts = [f"{name} ({count:,})" for name, count in classes.items()]
    text = listed(counts, SHOWN_CLASSES)
    if len(counts) > SHOWN_CLASSES:
        text += f" ({len(counts):,} in all)"
    return text


def print_example_list(examples: Mapping[str, str]) -> None:
    """Print the names of the recipes, each with its data set."""
    listing = click.HelpFormatter()
    listing.write_dl([*examples.items()])
    lines = listing.getvalue().splitlines()
    say(*lines)


def print_example(recipe: Path, text: str) -> None:
    """Print a recipe that was copied, and the command that uses it."""
    _print_recipe(recipe, text)


def _print_recipe(recipe: Path, text: str) -> None:
    """Print a recipe, and the command that uses it."""
    lines = text.split("\n")
    say(f"wrote {recipe}:", "", *lines)
    shards = Path(f"{recipe.stem}-shards")
    convert = command("convert", shards, (("config", recipe),))
    tell(Hint("next: ", convert))
