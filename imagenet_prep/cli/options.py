"""Arguments and options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from imagenet_prep.cli.base_command import RareOption
from imagenet_prep.cli.option_types import LocalPath, Number, OneOf, PathOrUrl, RankType
from imagenet_prep.ilsvrc2012 import facts

F = TypeVar("F", bound=Callable[..., Any])


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator in place of several options."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_folder = PathOrUrl(path_type=Path, file_okay=False)

_raw_folder = PathOrUrl(path_type=Path, file_okay=False, exists=True)
_depths = OneOf(["quick", "full", "decode"])

any_place = PathOrUrl(path_type=Path)
local_place = LocalPath(path_type=Path)
existing_file = LocalPath(path_type=Path, exists=True, dir_okay=False)

data_dir = click.argument("data_dir", type=_folder)
set_or_file = click.argument("data_dir", type=any_place)
set_file_or_raw = click.argument("data_dir", type=any_place, required=False)
new_data_dir = click.argument("data_dir", type=_folder, required=False)
folder_or_file = click.argument("folder", type=LocalPath(path_type=Path), required=False)
out = click.argument("out", type=_folder, required=False)
raw = click.option(
    "--raw",
    type=_raw_folder,
    help="Raw input, instead of DATA_DIR/raw-data; never written to.",
)
output = click.option("--output", type=_folder, help="Write the shards here.  [default: DATA_DIR]")
set_folder = click.option(
    "--output", type=_folder, help="The folder of the shards.  [default: DATA_DIR]"
)
dry_run = click.option(
    "--dry-run", is_flag=True, help="Print the disk space that every step requires; do nothing."
)
workers = click.option(
    "--workers", type=Number(min=1), help="Worker processes.  [default: one per available CPU]"
)
engine = click.option(
    "--engine",
    cls=RareOption,
    type=OneOf(["processes", "ray"]),
    default="processes",
    show_default=True,
    help="Where work runs; ray: on a cluster.",
)
rank = click.option(
    "--rank",
    "share",
    type=RankType(),
    metavar="R/W|auto",
    help="Only the shards R, R+W, R+2W and so on, for task R (from 0) of W; auto: as the job says.",
)
allow_python = click.option(
    "--allow-python",
    cls=RareOption,
    is_flag=True,
    help="Run the function that the recipe names (source: {python: ...}).",
)
depth = click.option(
    "--depth",
    type=_depths,
    default="full",
    show_default=True,
    help="Check names and sizes; every byte; or also decode every image.",
)
raw_depth = click.option(
    "--depth",
    type=_depths,
    help=(
        "Check names and sizes; every byte; or also decode every image.  [default: full; "
        "with --raw or --config: as convert checks images]"
    ),
)
raw_copy = all_of(
    click.option(
        "--raw",
        type=_raw_folder,
        help="Check the images in this folder before they are converted; writes nothing.",
    ),
    click.option(
        "--config",
        "-c",
        type=existing_file,
        help=(
            "Check the images of this recipe before they are converted; with --raw, "
            "its paths start there."
        ),
    ),
)
places = all_of(data_dir, raw, output)
places_of_set = all_of(data_dir, raw, set_folder)
working = all_of(workers, engine)

fetching = all_of(
    click.option(
        "--source",
        type=OneOf(["imagenet", "kaggle", "huggingface"]),
        default="imagenet",
        show_default=True,
        help="The site to download from.",
    ),
    click.option(
        "--base-url", metavar="URL", help="Another address for the source, such as a mirror."
    ),
    click.option(
        "--connections",
        cls=RareOption,
        type=Number(1, 16),
        default=4,
        show_default=True,
        help="Connections per archive.",
    ),
    click.option(
        "--no-digest", cls=RareOption, is_flag=True, help="Trust the server for size and content."
    ),
    click.option(
        "--cookies",
        cls=RareOption,
        type=existing_file,
        help="A cookies.txt exported from a browser that is signed in.",
    ),
)
only = click.option(
    "--only",
    default=",".join(facts.DEFAULT_ARCHIVES),
    show_default=True,
    help=f"Archives, comma-separated: {', '.join(facts.ARCHIVES)}.",
)
