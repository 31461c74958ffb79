"""The options, each defined once; ``run`` takes them all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from imagenet_prep import ilsvrc2012

F = TypeVar("F", bound=Callable[..., Any])

_folder = click.Path(path_type=Path, file_okay=False)
_raw_folder = click.Path(path_type=Path, file_okay=False, exists=True)
_file = click.Path(path_type=Path, exists=True, dir_okay=False)

data_dir = click.argument("data_dir", type=_folder)
raw = click.option("--raw", type=_raw_folder, help="Raw input, in place of DATA_DIR/raw-data; never written to.")
output = click.option("--output", type=_folder, help="Put the shards here.  [default: DATA_DIR]")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress, no notes.")
workers = click.option(
    "--workers", type=click.IntRange(min=1), help="Workers.  [default: one a CPU this process may use]"
)
engine = click.option(
    "--engine",
    type=click.Choice(["processes", "threads"]),
    default="processes",
    show_default=True,
    help="Where work runs.",
)
boxes = click.option(
    "--boxes", type=click.Path(path_type=Path, exists=True), help="Annotations: a .tar.gz, or a folder of <wnid>/*.xml."
)
validation_boxes = click.option(
    "--validation-boxes", is_flag=True, help="Validation images get boxes too (the original never did that)."
)


def new_file(value: str) -> Path:
    """A path that can be written when the work is done: better to say now that it can't."""
    path = Path(value)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{value!r} can't be written: expected a file in a folder that is there")
    return path


def byte_count(value: str) -> int:
    """A number of bytes from its text, with an optional binary suffix: 500M, 2G."""
    number = value.rstrip("KMGTkmgt")
    suffix = value[len(number) :].upper()
    if not number.isdigit() or len(suffix) > 1:
        raise click.BadParameter(f"{value!r} is no size: expected a number of bytes such as 500M or 2G")
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[suffix]


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


only = click.option(
    "--only",
    default=",".join(ilsvrc2012.DEFAULT_ARCHIVES),
    show_default=True,
    help=f"Comma-separated: {', '.join(ilsvrc2012.ARCHIVES)}.",
)

fetching = _all_of(
    click.option("--base-url", default=ilsvrc2012.BASE_URL, show_default=True, help="Where the archives are."),
    click.option("--cookies", type=_file, help="A cookies.txt exported from a browser that is signed in."),
    click.option(
        "--connections", type=click.IntRange(1, 16), default=1, show_default=True, help="Connections for each archive."
    ),
    click.option("--no-digest", is_flag=True, help="Take the server's word for size and content."),
)

reading = _all_of(
    click.option(
        "--read-order",
        type=click.Choice(["auto", "shuffled", "sequential"]),
        default="auto",
        show_default=True,
        help="Fetch images one by one, or pass over the archive once; auto: what the storage calls for.",
    ),
    click.option(
        "--memory",
        type=byte_count,
        metavar="SIZE",
        help="What such a pass may hold: 2G.  [default: a quarter of what is free]",
    ),
)

converting = _all_of(
    click.option("--train-shards", type=int, default=ilsvrc2012.SHARDS["train"], show_default=True),
    click.option("--validation-shards", type=int, default=ilsvrc2012.SHARDS["validation"], show_default=True),
    click.option(
        "--check",
        type=click.Choice(["auto", "header", "decode"]),
        default="auto",
        show_default=True,
        help="Each image's header, or every pixel; auto: every pixel, unless the archive's published MD5 was seen.",
    ),
    click.option(
        "--compression",
        type=click.Choice(["none", "gzip", "zlib"]),
        default="none",
        show_default=True,
        help="Of each shard.",
    ),
    click.option("--reencode", is_flag=True, help="Decode every image and encode it again."),
    click.option("--resize", type=click.IntRange(min=1), help="Shrink to this shorter side, in pixels."),
    click.option("--max-side", type=click.IntRange(min=1), help="Shrink to at most this longer side, in pixels."),
    click.option("--quality", type=click.IntRange(1, 100), help="JPEG quality of re-encoded images.  [default: 90]"),
    reading,
    click.option("--seed", type=int, default=ilsvrc2012.SEED, show_default=True, help="Of the shuffle."),
    click.option("--no-shuffle", is_flag=True, help="Keep images sorted by class and name."),
    validation_boxes,
    click.option("--allow-incomplete", is_flag=True, help="Convert what is there, and record that it is a part."),
    click.option("--skip-bad", is_flag=True, help="Leave out images that can't be used (exit status 3 then)."),
    click.option("--overwrite", is_flag=True, help="Make shards again that were made otherwise."),
)

config = click.option("--config", type=_file, help="A recipe: any data set, not ImageNet (docs/recipes.md).")

OF_RECIPES = (
    "train_shards",
    "validation_shards",
    "check",
    "compression",
    "reencode",
    "resize",
    "max_side",
    "quality",
    "seed",
    "no_shuffle",
    "validation_boxes",
    "allow_incomplete",
    "skip_bad",
)
"""Options of convert that a recipe says by keys of its own."""

incomplete = click.option(
    "--allow-incomplete", is_flag=True, help="Without a manifest: take the shards for a part of ILSVRC2012."
)
samples = click.option("--samples", type=click.IntRange(0, 1000), default=48, show_default=True, help="Images to show.")
quick = click.option("--quick", is_flag=True, help="Names, count and sizes only.")
decode = click.option("--decode", is_flag=True, help="Decode every image too.")
json_file = click.option("--json", "json_file", type=new_file, help="Write the findings to this file as JSON.")
verifying = _all_of(quick, decode, json_file)
