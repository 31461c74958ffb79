"""The options, each defined once; ``run`` takes them all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from imagenet_prep.datasets.order import SEED
from imagenet_prep.exports import FORMATS
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import locate, refuse_url, scheme_of
from imagenet_prep.text import byte_count, number_of

F = TypeVar("F", bound=Callable[..., Any])


def _plain(path: Path) -> Path:
    """A path that begins with a dash made absolute: in a command to copy it would be read as an option."""
    return path.absolute() if str(path).startswith("-") else path


def _refuse_empty(value: str) -> None:
    """An empty word would be taken for the folder that the shell is in."""
    if not value:
        raise click.BadParameter("it is empty: is a variable of the shell not set?")


class _Path(click.Path):
    """A path that can stand in a command to copy."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _refuse_empty(os.fsdecode(value))
        refuse_url(os.fsdecode(value))
        return _plain(Path(os.fsdecode(super().convert(value, param, ctx))))


class _Anywhere(_Path):
    """The same, or a URL of an object store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = os.fsdecode(value)
        return locate(text) if scheme_of(text) else super().convert(value, param, ctx)


_folder = _Anywhere(path_type=Path, file_okay=False)
_raw_folder = _Anywhere(path_type=Path, file_okay=False, exists=True)
_file = _Path(path_type=Path, exists=True, dir_okay=False)
_any_file = _Anywhere(path_type=Path)

set_of_shards = _Path(path_type=Path)

PNG, JSON = b"\x89PNG\r\n\x1a\n", b"{"
"""How the files begin that --image and --json write."""

data_dir = click.argument("data_dir", type=_folder)
new_data_dir = click.argument("data_dir", type=_folder, required=False)
folder = click.argument("folder", type=_folder)
container = click.argument("container", type=click.Choice(FORMATS))
out = click.argument("out", type=_folder, required=False)
file = click.argument("file", type=_any_file)
raw = click.option("--raw", type=_raw_folder, help="Raw input, in place of DATA_DIR/raw-data; never written to.")
output = click.option("--output", type=_folder, help="Put the shards here.  [default: DATA_DIR]")
dry_run = click.option(
    "--dry-run", is_flag=True, help="Say what will be fetched, and the space of every step; do nothing."
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress, no notes.")
workers = click.option(
    "--workers", type=click.IntRange(min=1), help="Workers.  [default: one a CPU this process may use]"
)
engine = click.option(
    "--engine",
    type=click.Choice(["processes", "threads", "ray"]),
    default="processes",
    show_default=True,
    help="Where work runs; ray: on a cluster (docs/cluster.md).",
)
ray_address = click.option(
    "--ray-address", metavar="ADDRESS", help="Of the Ray cluster.  [default: RAY_ADDRESS, else one is started here]"
)
boxes = click.option(
    "--boxes", type=_Path(path_type=Path, exists=True), help="Annotations: a .tar.gz, or a folder of <wnid>/*.xml."
)
validation_boxes = click.option(
    "--validation-boxes", is_flag=True, help="Validation images get boxes too (the original never did that)."
)


def new_file(beginning: bytes | None = None) -> Callable[[str], Path]:
    """The type of a path to be written when the work is done: better to say now that it can't.

    Args:
        beginning: a file that begins so is of the same kind, and is replaced; any other is refused. None: the command
            decides about a file that is there.
    """

    def new_file(value: str) -> Path:
        _refuse_empty(value)
        refuse_url(value)
        path = _plain(Path(value))
        fault = _fault(path, beginning)
        if fault:
            raise click.BadParameter(f"{value!r} can't be written: {fault}")
        return path

    return new_file


def _fault(path: Path, beginning: bytes | None) -> str:
    """Why a file can't be written at ``path``, or must not be; empty if it can."""
    try:
        if not path.parent.is_dir():
            return f"there is no folder {path.parent}"
        if path.is_dir():
            return "it is a folder"
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return f"no right to write in the folder {path.parent}"
        if beginning is None or not os.path.lexists(path):
            return ""
        if path.is_file() and not _is_state(path):
            with path.open("rb") as file:
                if file.read(len(beginning)) == beginning:
                    return ""
        return "it is there and holds something else; expected a new file"
    except OSError as error:
        return error.strerror or str(error)


def _is_state(path: Path) -> bool:
    """Whether a file is one of those that are kept beside shards: a manifest is JSON too."""
    folder = path.resolve().parent
    return folder == Layout(folder.parent).state_dir


_WITHOUT_UNIT = 1_000_000  # bytes; whoever gives a smaller number alone means another unit


def memory_size(value: str) -> int:
    """A number of bytes from its text: 500M, 2G, 2GB, 1.5GiB."""
    count = byte_count(value.upper() + "B" if value[-1:].upper() in "KMGT" and value else value)
    if count is None:
        raise click.BadParameter(f"{value!r} is not a size: expected a number of bytes such as 500MB or 2GiB")
    if value.isdigit() and count < _WITHOUT_UNIT:
        raise click.BadParameter(
            f"{value!r} is {number_of(count, 'byte')}: expected a size with its unit, such as 500MB or 2GB"
        )
    return count


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


places = _all_of(data_dir, raw, output)
working = _all_of(workers, engine, ray_address, quiet)

only = click.option(
    "--only",
    default=",".join(facts.DEFAULT_ARCHIVES),
    show_default=True,
    help=f"Comma-separated: {', '.join(facts.ARCHIVES)}.",
)

part = _all_of(
    click.option(
        "--classes",
        metavar="FILE|NAME",
        help="These classes alone: a file of wnids, or imagenette, imagewoof, imagenet-100.",
    ),
    click.option(
        "--relabel",
        type=click.Choice(["none", "0", "1"]),
        default="none",
        show_default=True,
        help="Count labels from 0 or 1, in the order of sorted wnids; none: the official labels.",
    ),
)

fetching = _all_of(
    click.option(
        "--source",
        type=click.Choice(["imagenet", "kaggle", "huggingface"]),
        default="imagenet",
        show_default=True,
        help="Whose copy to fetch.",
    ),
    click.option("--base-url", metavar="URL", help="Where it is, if not at the source's own address."),
    click.option("--cookies", type=_file, help="A cookies.txt exported from a browser that is signed in."),
    click.option(
        "--connections", type=click.IntRange(1, 16), default=4, show_default=True, help="Connections for each archive."
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
        type=memory_size,
        metavar="SIZE",
        help="What such a pass may hold: 2GB.  [default: a quarter of what is free]",
    ),
)

converting = _all_of(
    click.option("--train-shards", type=int, default=facts.SHARDS["train"], show_default=True),
    click.option("--validation-shards", type=int, default=facts.SHARDS["validation"], show_default=True),
    click.option(
        "--check",
        type=click.Choice(["auto", "header", "decode"]),
        default="auto",
        show_default=True,
        help="Each image's header, or every pixel; auto: every pixel, unless the archive's published MD5 was seen.",
    ),
    click.option(
        "--compression",
        type=click.Choice(["none", "gzip", "zlib"], case_sensitive=False),
        default="none",
        show_default=True,
        help="Of each shard.",
    ),
    click.option("--reencode", is_flag=True, help="Decode every image and encode it again."),
    click.option("--resize", type=click.IntRange(min=1), help="Shrink to this shorter side, in pixels."),
    click.option("--max-side", type=click.IntRange(min=1), help="Shrink to at most this longer side, in pixels."),
    click.option("--quality", type=click.IntRange(1, 100), help="JPEG quality of re-encoded images.  [default: 90]"),
    reading,
    click.option("--seed", type=int, default=SEED, show_default=True, help="Of the shuffle."),
    click.option("--no-shuffle", is_flag=True, help="Keep images sorted by class and name."),
    validation_boxes,
    click.option("--allow-incomplete", is_flag=True, help="Convert what is there, and record that it is a part."),
    click.option("--skip-bad", is_flag=True, help="Leave out images that can't be used (exit status 3 then)."),
    click.option("--overwrite", is_flag=True, help="Make shards again that were made with other settings."),
    click.option(
        "--consume", is_flag=True, help="Half the disk: the raw data gives its space to the shards, and is gone."
    ),
)


class _Rank(click.ParamType[Any]):
    """A number, or "auto"."""

    name = "rank"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "auto" and not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is not a rank: expected a number from 0 on, or auto", param, ctx)
        return value


ranks = _all_of(
    click.option(
        "--rank",
        type=_Rank(),
        metavar="R|auto",
        help="Only the shards of this rank, from 0 on, of --world-size; auto: as the job array says.",
    ),
    click.option("--world-size", type=click.IntRange(min=1), metavar="W", help="How many ranks share the shards."),
)

config = click.option("--config", "-c", type=_file, help="A recipe: any data set, not ImageNet (docs/recipes.md).")

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
    "classes",
    "relabel",
)
"""Options of convert that a recipe says by keys of its own."""

incomplete = click.option(
    "--allow-incomplete", is_flag=True, help="Without a manifest: take the shards for a part of ILSVRC2012."
)
samples = click.option("--samples", type=click.IntRange(0, 1000), default=48, show_default=True, help="Images to show.")
page = click.option(
    "--output", "page", type=new_file(b"<!DOCTYPE html>"), help="Where the page goes, instead of beside the shards."
)
quick = click.option("--quick", is_flag=True, help="Names, count and sizes only.")
decode = click.option("--decode", is_flag=True, help="Decode every image too.")
json_file = click.option("--json", "json_file", type=new_file(JSON), help="Write the findings to this file as JSON.")
verifying = _all_of(quick, decode, json_file)
