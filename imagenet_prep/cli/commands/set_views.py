"""status, report and show: what a folder, a set or a file of records holds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.each_set import SetWork, each_set
from imagenet_prep.cli.exit_status import status_of
from imagenet_prep.cli.figures import report_figures
from imagenet_prep.cli.option_types import NewFile, Number
from imagenet_prep.cli.place_checks import (
    OF_A_RUN,
    find_place,
    refuse_missing,
    refuse_unwritable,
)
from imagenet_prep.cli.printing.verdict_text import print_report
from imagenet_prep.cli.printing.view_text import print_records, print_status
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.stage_arguments import engine_of
from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.errors import InputError
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

if TYPE_CHECKING:
    from imagenet_prep.reporting.marks_file import Marks
    from imagenet_prep.stages.report import ReportSummary
    from imagenet_prep.stages.status import Status

PNG = b"\x89PNG\r\n\x1a\n"
"""The first bytes of files that --image writes."""

HTML = b"<!DOCTYPE html>"
"""The first bytes of files that report's --output writes."""


@click.command(cls=Command)
@o.places_of_set
def status(data_dir: Path, raw: Path | None, output: Path | None, quiet: bool) -> CommandOutcome:
    """Show the progress of each stage, and the next command.

    \b
    imagenet-prep status /data/imagenet
    """
    from imagenet_prep.stages.status import Status, status, unknown
    from imagenet_prep.storage.refusals import as_error

    folder = output or data_dir
    if output is None:
        refuse_missing(folder, OF_A_RUN)
    else:
        refuse_missing(output)

    def look(layout: Layout) -> Status:
        try:
            return status(layout)
        except InputError as error:
            return unknown(error, folder)
        except OSError as error:
            refusal = as_error(error)
            if refusal is None:
                raise
            return unknown(refusal, folder)

    work = SetWork(look, print_status, Status.as_dict)
    all_sets = Layout(data_dir, raw, output)
    return each_set(all_sets, work)


@click.command(cls=Command)
@o.set_or_file
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--samples",
    type=Number(0, 1000),
    default=48,
    show_default=True,
    help="Images to show at first.",
)
@click.option(
    "--near-duplicates", is_flag=True, help="Decode all images to find those that look alike."
)
@click.option(
    "--mark",
    type=o.existing_file,
    metavar="FILE",
    help="Show the images that this CSV names, with their reasons, in a section of their own.",
)
@click.option(
    "--output",
    "page",
    type=NewFile(HTML),
    help="The page's file.  [default: next to the shards]",
)
@o.working
def report(
    data_dir: Path, is_opened: bool, page: Path | None, quiet: bool, **params: Any
) -> CommandOutcome:
    """Make one page: verdict, images with their boxes, histograms, classes (exit status as with
    verify).

    \b
    imagenet-prep report /data/imagenet --open
    imagenet-prep report movies.tfrecord
    """
    from imagenet_prep import pipeline

    place = find_place(data_dir)
    set_count = len(place.sets()) if isinstance(place, Layout) else 1
    marks = params["mark"] and _read_marks(params["mark"], set_count)
    summaries: list[ReportSummary] = []
    make_page = functools.partial(
        pipeline.report,
        engine=engine_of(params),
        samples=params["samples"],
        near_duplicates=params["near_duplicates"],
        mark=marks,
        progress=make_progress(quiet),
    )

    def make(set_or_file: Layout | AnyPath) -> ReportSummary:
        layout = set_or_file
        if not isinstance(layout, Layout):
            layout = Layout(layout.parent)
        page_of_set = page
        if page is None:
            refuse_unwritable(layout.report_path)
        elif set_count > 1:
            page_of_set = page.with_stem(f"{page.stem}-{layout.set_name}")
        return make_page(set_or_file, page=page_of_set)

    def show(summary: ReportSummary) -> None:
        summaries.append(summary)
        print_report(summary, quiet)
        if is_opened:
            _open(summary.path)

    work = SetWork(make, show, report_figures, _status_of_report)
    outcome = each_set(place, work)
    if marks and len(summaries) == set_count > 1:
        _tell_unknown(marks, summaries, data_dir, quiet)
    return outcome


def _read_marks(path: AnyPath, set_count: int) -> Marks:
    from imagenet_prep.reporting.marks_file import read_marks

    return replace(read_marks(path), of_several_sets=set_count > 1)


def _tell_unknown(
    marks: Marks, summaries: Sequence[ReportSummary], data_dir: Path, quiet: bool
) -> None:
    """Print the flagged names that none of the sets has; refuse marks of which no set has any."""
    from imagenet_prep.reporting.marks_file import describe_unknown, names_of_none

    unknown = [summary.unknown_names for summary in summaries]
    names = names_of_none(marks, unknown, data_dir.resolve().name)
    if names and not quiet:
        tell(f"note: {describe_unknown(marks.file_name, names)}", error=True)


def _status_of_report(summary: ReportSummary) -> int:
    return status_of(summary.verdict)


def _open(page: AnyPath) -> None:
    import webbrowser

    local = local_or_none(page)
    if local is None:
        say(f"a browser can't open {page}: copy the page to this machine first", error=True)
    elif not webbrowser.open(local.resolve().as_uri()):
        say(f"no browser could be opened here: open {page} in one", error=True)


class _ShowCommand(Command):
    """A command whose JSON is a line for each record."""

    writes_lines = True


@click.command(cls=_ShowCommand)
@click.argument("file", type=o.any_place)
@click.option("--limit", type=Number(min=1), help="Show at most this many records.")
@click.option("--record", type=Number(min=0), help="Show only this record; the first is 0.")
@click.option(
    "--image", type=NewFile(PNG), help="Save the record's image here as PNG, boxes drawn."
)
def show(
    file: Path, limit: int | None, record: int | None, image: Path | None, quiet: bool
) -> CommandOutcome:
    """Print the records of any TFRecord file.

    \b
    imagenet-prep show /data/imagenet/train-00000-of-01024 --limit 3
    """
    from imagenet_prep.stages.show import save_image, show

    records = show(file, limit=limit, record=record)
    count = print_records(records)
    if not count and not quiet:
        say(f"{file} holds no records", error=True)
    if image is not None:
        save_image(file, record or 0, image)
    return CommandOutcome()
