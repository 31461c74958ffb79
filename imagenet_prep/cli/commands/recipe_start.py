"""init: a recipe for a folder of data, or that of a well-known data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.figures import init_figures
from imagenet_prep.cli.option_types import NewFile
from imagenet_prep.cli.printing.recipe_start_text import (
    print_example,
    print_example_list,
    print_init,
)
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.stage_arguments import engine_of
from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import CommandLine, command_line, program
from imagenet_prep.hints import Hint


@click.command(cls=Command)
@o.folder_or_file
@click.option(
    "--output",
    type=NewFile(),
    help="The recipe's file.  [default: FOLDER's name with .yaml, here]",
)
@click.option(
    "--as",
    "as_structure",
    metavar="STRUCTURE",
    help="How to read FOLDER, if several ways are possible.",
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column of the classes; a,b,c: a one-hot column each; FILE:COLUMN: of another table.",
)
@click.option("--image", metavar="COLUMN", help="Column of the paths of images.")
@click.option(
    "--split",
    "split",
    multiple=True,
    metavar="NAME=WHERE",
    help="A split, and its folder, its list, or its value in a column.",
)
@click.option(
    "--names",
    type=o.existing_file,
    metavar="FILE",
    help="Names of classes by id: JSON, CSV, txt or pbtxt.",
)
@click.option(
    "--strip", metavar="PREFIX", help="Take this off paths in tables, lists and annotations."
)
@click.option("--list", "is_list", is_flag=True, help="List the recipes of well-known data sets.")
@click.option(
    "--example",
    metavar="NAME",
    help="Write one of these recipes to --output, or to the path that you give as FOLDER.",
)
@o.workers
def init(
    folder: Path | None,
    output: Path | None,
    as_structure: str | None,
    is_list: bool,
    example: str | None,
    quiet: bool,
    **params: Any,
) -> CommandOutcome:
    """Inspect a folder of images or arrays, and propose a recipe for it; or copy the recipe of a
    well-known data set.

    \b
    imagenet-prep init flowers
    imagenet-prep init flowers --label species --split train=Train
    imagenet-prep init --list
    imagenet-prep init --example food101
    """
    from imagenet_prep.init.init_options import InitOptions

    options = InitOptions(
        label=params["label"],
        image=params["image"],
        names=params["names"],
        strip=params["strip"],
        splits=_split_places(params["split"]),
    )
    is_about_folder = bool(as_structure) or options != InitOptions()
    paths = [path for path in (folder, output) if path is not None]
    if is_list:
        if is_about_folder or example or paths:
            raise _list_alone()
        return _list_examples()
    if example is not None:
        if is_about_folder or len(paths) > 1:
            raise _example_alone()
        return _write_example(example, output or folder)
    if folder is None:
        raise _folder_missing()
    from imagenet_prep.stages.init import init

    summary = init(
        folder,
        output,
        engine_of(params),
        structure=as_structure,
        options=options,
        progress=make_progress(quiet),
    )
    print_init(summary, quiet)
    figures = init_figures(summary)
    return CommandOutcome(figures)


def _list_alone() -> UsageError:
    """The error for --list with a folder or another option."""
    return UsageError(
        "init --list can't be used with a folder or another option",
        "it lists the recipes of well-known data sets",
        Hint("leave the rest out: ", _list_command()),
    )


def _example_alone() -> UsageError:
    """The error for --example with several files, or with an option on a folder."""
    return UsageError(
        "init --example copies a recipe, and inspects no folder",
        "expected at most one file to write, and no other option except --output",
        "leave the other options out; or leave --example out to inspect a folder",
    )


def _folder_missing() -> UsageError:
    """The error for init without a folder, --list or --example."""
    return UsageError(
        "init requires a folder or a file of data",
        "expected, for example, the folder of your images: init FOLDER",
        Hint("to list recipes of well-known data sets: ", _list_command()),
    )


def _list_command() -> CommandLine:
    """The command that lists the recipes of well-known data sets."""
    return command_line([program(), "init", "--list"])


def _split_places(texts: Sequence[str]) -> dict[str, str]:
    """Where each split is, by its name; raises UsageError for a text without a name or a place,
    or a name twice.
    """
    splits: dict[str, str] = {}
    for text in texts:
        name, _, place = text.partition("=")
        if not name or not place:
            raise UsageError(
                f"--split {text} is not NAME=WHERE",
                "expected the name of a split and where its images are, as in train=Train",
            )
        if name in splits:
            from imagenet_prep.recipes.misread_folders import in_flow

            places = in_flow({name: {"folder": [splits[name], place]}})[1:-1]
            raise UsageError(
                f"--split {name} is given more than once",
                "expected one place for each split",
                f"give it once; for several folders, then write in the recipe's `splits`: {places}",
            )
        splits[name] = place
    return splits


def _list_examples() -> CommandOutcome:
    """List the recipes of well-known data sets."""
    from imagenet_prep.recipes.examples import list_examples

    examples = list_examples()
    print_example_list(examples)
    return CommandOutcome({"examples": dict(examples)})


def _write_example(name: str, file: Path | None) -> CommandOutcome:
    """Write the recipe of a well-known data set."""
    from imagenet_prep.recipes.examples import copy_example

    recipe, text = copy_example(name, file)
    print_example(recipe, text)
    return CommandOutcome({"recipe": str(recipe)})
