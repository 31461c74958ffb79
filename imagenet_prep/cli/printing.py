"""Summaries and tables, as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagenet_prep import ilsvrc2012

if TYPE_CHECKING:
    from imagenet_prep.model import Problem
    from imagenet_prep.pipeline import RunSummary
    from imagenet_prep.stages.annotate import AnnotateSummary
    from imagenet_prep.stages.convert import ConvertSummary
    from imagenet_prep.stages.download import DownloadSummary
    from imagenet_prep.stages.show import ShownRecord
    from imagenet_prep.stages.status import Status
    from imagenet_prep.stages.untar import UntarSummary
    from imagenet_prep.stages.verify import Verdict

SHOWN_PROBLEMS = 20


def print_run(summary: RunSummary, quiet: bool) -> None:
    """What each stage of a run did."""
    if summary.download is not None:
        print_download(summary.download, quiet)
    if summary.untar is not None:
        print_untar(summary.untar, quiet)
    print_annotate(summary.annotate, quiet)
    print_convert(summary.convert, quiet)


def print_download(summary: DownloadSummary, quiet: bool) -> None:
    """What was fetched, what was there."""
    if not quiet:
        fetched = ", ".join(summary.fetched) or "nothing"
        click.echo(f"download: fetched {fetched} ({_size(summary.size)}); {len(summary.present)} archives were there")


def print_untar(summary: UntarSummary, quiet: bool) -> None:
    """Images and classes of each split."""
    if not quiet:
        for split in summary.splits:
            click.echo(
                f"untar: {split.split}: {split.images:,} images in {split.classes:,} classes, {split.written:,} written now"
            )


def print_convert(summary: ConvertSummary, quiet: bool) -> None:
    """Shards and images of each split, and what was out of the ordinary."""
    if quiet:
        return
    for split in summary.splits:
        click.echo(
            f"convert: {split.split}: {split.images:,} images in {split.shards:,} shards, {split.made:,} made now"
        )
        if split.repairs:
            click.echo(f"  repaired: {', '.join(split.repairs[:5])}" + (", ..." if len(split.repairs) > 5 else ""))
        if split.set_aside:
            click.echo(f"  set aside: {split.set_aside:,} images")
    _print_problems(summary.problems)


def _print_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems[:SHOWN_PROBLEMS]:
        click.secho(f"{problem.kind.value}: ", fg="red", nl=False)
        click.echo(str(problem))
    if len(problems) > SHOWN_PROBLEMS:
        click.echo(f"... and {len(problems) - SHOWN_PROBLEMS:,} more")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
