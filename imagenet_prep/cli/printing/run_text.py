"""Prints the summary of every stage of a run, and of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.cli.printing.raw_data_text import print_annotate, print_download, print_untar
from imagenet_prep.cli.printing.shards_text import print_convert
from imagenet_prep.cli.terminal import tell
from imagenet_prep.escaping import command
from imagenet_prep.fetch import SIGN_UP_URL
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.text import number_of

if TYPE_CHECKING:
    from imagenet_prep.pipeline import RunSummary


def print_run(summary: RunSummary, quiet: bool) -> None:
    """Print the summary of each stage of a run."""
    _print_archives(summary, quiet)
    if summary.annotate is not None:
        print_annotate(summary.annotate, quiet)
    print_convert(summary.convert, quiet, facts.SPLITS)


def _print_archives(summary: RunSummary, quiet: bool) -> None:
    if summary.download is not None:
        print_download(summary.download, quiet)
    if summary.untar is not None:
        print_untar(summary.untar, quiet)


def print_demo(summary: RunSummary, quiet: bool) -> None:
    """Print each stage of the demo, without its intended oddities."""
    if quiet:
        return
    _print_archives(summary, quiet)
    if summary.annotate is not None:
        for annotated in summary.annotate.splits:
            files = number_of(annotated.totals.files, "file")
            boxes = number_of(annotated.totals.boxes, "box", "boxes")
            tell(f"annotate: {annotated.split}: {files}, {boxes}")
    for split in summary.convert.splits:
        images = number_of(split.images, "image")
        shards = number_of(split.shards, "shard")
        tell(f"convert: {split.split}: {images} in {shards}")


def print_demo_end(data_dir: Path | None) -> None:
    """Print the next commands, for the demo and for ImageNet."""
    if data_dir is not None:
        shard = data_dir / "train-00007-of-00008"  # the last one has a record of any number
        show = command("show", shard, (("limit", 1),))
        report = command("report", data_dir, (("open", True),))
        tell("", Hint("Look at a record:       ", show))
        tell(Hint("Look at all of it:      ", report))
    run = command("run", "/data/imagenet")
    tell(
        "",
        f"The real ImageNet requires about 330 GB. Sign up at {SIGN_UP_URL}, then:",
        "  export IMAGENET_USERNAME=... IMAGENET_ACCESS_KEY=...",
        Hint("  ", run),
    )
