"""convert and merge: shards from images, by one process or by several ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command, LongCommand
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.conversion_arguments import read_job
from imagenet_prep.cli.dry_runs import conclude_dry_run
from imagenet_prep.cli.each_set import SetWork, each_set
from imagenet_prep.cli.exit_status import PROBLEMS_FOUND, status_of
from imagenet_prep.cli.figures import convert_figures, verdict_figures
from imagenet_prep.cli.place_checks import refuse_missing, refuse_missing_data
from imagenet_prep.cli.printing.shards_text import print_convert, print_merge
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.setting_options import settings_for
from imagenet_prep.cli.stage_arguments import engine_of, note_share
from imagenet_prep.errors import UsageError
from imagenet_prep.storage.layout import Layout

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.shards.convert_summary import ConvertSummary


@click.command(cls=LongCommand)
@o.places
@click.option(
    "--config",
    "-c",
    type=o.existing_file,
    help="A recipe for another data set; init FOLDER proposes one.",
)
@settings_for("convert")
@o.allow_python
@o.rank
@o.dry_run
@o.working
def convert(
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any
) -> CommandOutcome:
    """Convert images to shards: 1024 train and 128 validation, with the same records as in 2016.

    \b
    imagenet-prep convert /data/imagenet
    imagenet-prep convert /data/out --raw /data/kaggle
    imagenet-prep convert /data/imagenette --raw /data/kaggle --classes imagenette
    imagenet-prep convert /data/flowers --config flowers.yaml
    imagenet-prep convert /data/imagenet --rank auto    (each task of a job array)
    """
    from imagenet_prep.stages.convert import convert, foresee

    engine = engine_of(params)
    progress = make_progress(quiet)
    share = note_share(params["share"], progress)
    places = Layout(data_dir, raw, output)
    layout, dataset, options = read_job(places, params, progress)
    if params["config"] is None:
        refuse_missing_data(raw or data_dir)
    if params["dry_run"]:
        if params["allow_python"]:
            raise UsageError(
                "--allow-python can't be used with --dry-run",
                "a dry run runs no code of yours",
                "leave out one of the two",
            )
        needs = foresee(layout, engine, options, dataset=dataset, share=share, progress=progress)
        return conclude_dry_run(needs)
    summary = convert(layout, engine, options, dataset=dataset, share=share, progress=progress)
    expected_splits = dataset.splits if dataset.published else ()
    print_convert(summary, quiet, expected_splits)
    status = PROBLEMS_FOUND if summary.set_aside else 0
    figures = convert_figures(summary, layout.output_dir)
    return CommandOutcome(figures, status)


@click.command(cls=Command)
@o.data_dir
@o.set_folder
def merge(data_dir: Path, output: Path | None, quiet: bool) -> CommandOutcome:
    """Finish a set whose shards the ranks of convert made; no raw data is read.

    If shards are missing, it names the ranks to run again. convert without --rank also finishes the
    set: it makes the missing shards. The exit status is 3, as with convert, if images were set
    aside.

    \b
    imagenet-prep merge /data/imagenet
    """
    from imagenet_prep.stages.merge import merge
    from imagenet_prep.stages.verify import look

    refuse_missing(output or data_dir)

    def join(layout: Layout) -> _Merged:
        progress = make_progress(quiet)
        summary = merge(layout, progress=progress)
        verdict = look(layout)
        return _Merged(layout, summary, verdict)

    def show(merged: _Merged) -> None:
        print_merge(merged.summary, merged.verdict, quiet)

    work = SetWork(do=join, show=show, figures=_figures_of_merge, status_of=_status_of_merge)
    all_sets = Layout(data_dir, output=output)
    return each_set(all_sets, work, has_heads=not quiet)


class _Merged(NamedTuple):
    """A set that merge finished, and its verdict."""

    layout: Layout
    summary: ConvertSummary
    verdict: Verdict


def _figures_of_merge(merged: _Merged) -> dict[str, Any]:
    conversion = convert_figures(merged.summary, merged.layout.output_dir)
    verdict = verdict_figures(merged.verdict)
    return {**conversion, **verdict}


def _status_of_merge(merged: _Merged) -> int:
    return status_of(merged.verdict, merged.summary.set_aside)
