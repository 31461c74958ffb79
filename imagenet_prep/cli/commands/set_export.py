"""export: the records of a set in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.each_set import SetWork, each_set
from imagenet_prep.cli.exit_status import PROBLEMS_FOUND
from imagenet_prep.cli.figures import export_figures
from imagenet_prep.cli.option_types import OneOf
from imagenet_prep.cli.place_checks import refuse_missing
from imagenet_prep.cli.printing.shards_text import print_export
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.stage_arguments import engine_of
from imagenet_prep.exports import FORMATS, describe_formats
from imagenet_prep.storage.layout import Layout

if TYPE_CHECKING:
    from imagenet_prep.stages.export import ExportSummary


class _ExportCommand(Command):
    """A command whose help ends with a line for each format."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; the format may be named after DATA_DIR, or last."""
        words = [*args]
        values = self.make_parser(ctx).parse_args([*args])[0]
        places = [values[name] for name in ("container", "data_dir", "out") if values.get(name)]
        formats = [place for place in places[1:] if place in FORMATS]
        if formats and places[0] not in FORMATS:
            format_place = words.index(formats[0])
            words.insert(words.index(places[0]), words.pop(format_place))
        return super().parse_args(ctx, words)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each format."""
        descriptions = describe_formats()
        with formatter.section("Formats"):
            formatter.write_dl([*descriptions.items()])


@click.command(cls=_ExportCommand)
@click.argument("container", metavar="FORMAT", type=OneOf(FORMATS))
@o.data_dir
@o.out
@click.option(
    "--on-damaged",
    type=OneOf(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="Refuse damaged records, or leave them out; the exit status is then 3.",
)
@o.working
def export(
    container: str, data_dir: Path, out: Path | None, quiet: bool, **params: Any
) -> CommandOutcome:
    """Write the records in another format to the folder OUT: the same image bytes, read back,
    resumable.

    croissant and tfds copy no records: they write a few files to OUT, or to a folder of that name
    in DATA_DIR.

    \b
    imagenet-prep export webdataset /data/imagenet /data/imagenet-tars
    imagenet-prep export tfds /data/imagenet
    """
    from imagenet_prep.exports import load_format
    from imagenet_prep.stages.export import export

    all_sets = Layout(data_dir)
    engine = engine_of(params)
    progress = make_progress(quiet)
    if load_format(container).unit == "set":
        all_sets.refuse_urls()
    refuse_missing(data_dir)

    def pack(layout: Layout) -> ExportSummary:
        target = out
        if len(all_sets.sets()) > 1:
            folder = out or data_dir / container
            target = folder / layout.set_name
        on_damaged = params["on_damaged"]
        return export(layout, container, target, engine, on_damaged=on_damaged, progress=progress)

    def show(summary: ExportSummary) -> None:
        print_export(summary, quiet)

    work = SetWork(pack, show, export_figures, _status_of_export)
    return each_set(all_sets, work, has_heads=not quiet)


def _status_of_export(summary: ExportSummary) -> int:
    return PROBLEMS_FOUND if summary.left_out else 0
