"""run and demo: every stage of ImageNet, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command, LongCommand
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.conversation import conversation
from imagenet_prep.cli.conversion_arguments import convert_options
from imagenet_prep.cli.download_arguments import download_options, find_account, site_of
from imagenet_prep.cli.dry_runs import conclude_dry_run
from imagenet_prep.cli.exit_status import status_of
from imagenet_prep.cli.figures import run_figures
from imagenet_prep.cli.option_types import Number
from imagenet_prep.cli.printing.run_text import print_demo, print_demo_end, print_run
from imagenet_prep.cli.printing.verdict_text import print_final_verdict
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.setting_options import settings_for
from imagenet_prep.cli.stage_arguments import engine_of
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout


@click.command(cls=LongCommand)
@o.places
@o.fetching
@click.option("--extract", is_flag=True, help="Also make image folders (train/, validation/).")
@settings_for("run")
@o.dry_run
@o.working
def run(
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any
) -> CommandOutcome:
    """Run every required stage, in order: download, annotate, convert, verify.

    \b
    imagenet-prep run /data/imagenet
    imagenet-prep run /data/imagenette --classes imagenette
    """
    from imagenet_prep import pipeline

    layout = Layout(data_dir, raw, output)
    options = convert_options(params)
    progress = make_progress(quiet)
    layout.refuse_urls()
    site = site_of(params)
    fetching = download_options(params, site)
    extract = params["extract"]
    if params["dry_run"]:
        needs = pipeline.foresee(
            layout, fetching=fetching, extract=extract, options=options, progress=progress
        )
        return conclude_dry_run(needs)
    missing_archives = pipeline.missing_archives(
        layout, validation_boxes=options.validation_boxes, part=options.part
    )
    if missing_archives and site is None:
        account = find_account(params)
        fetching = replace(fetching, credentials=account)
    summary = pipeline.run(
        layout,
        engine_of(params),
        fetching=fetching,
        extract=extract,
        options=options,
        progress=progress,
    )
    print_run(summary, quiet)
    status = status_of(summary.verify, summary.convert.set_aside)
    print_final_verdict(summary.verify, status, quiet)
    figures = run_figures(summary, layout)
    return CommandOutcome(figures, status)


@click.command(cls=Command)
@o.new_data_dir
@click.option(
    "--classes",
    type=Number(2, facts.CLASSES),
    default=20,
    show_default=True,
    help="Number of classes.",
)
@click.option(
    "--per-class",
    type=Number(2, 1300),
    default=12,
    show_default=True,
    help="Train images per class.",
)
@o.workers
def demo(
    data_dir: Path | None, classes: int, per_class: int, quiet: bool, **params: Any
) -> CommandOutcome:
    """Make a small ImageNet, serve it locally behind credentials, and run every stage on it.

    Without DATA_DIR it uses a temporary folder and removes it afterwards.

    \b
    imagenet-prep demo demo-data
    """
    import shutil
    import tempfile

    from imagenet_prep.demo import run_demo

    folder = data_dir
    if folder is None:
        conversation().leaves_nothing = True
        temporary = tempfile.mkdtemp(prefix="imagenet-prep-demo-")
        folder = Path(temporary)
    try:
        engine = engine_of(params)
        progress = make_progress(quiet)
        summary = run_demo(folder, engine, classes=classes, per_class=per_class, progress=progress)
        print_demo(summary, quiet)
        status = status_of(summary.verify)
        print_final_verdict(summary.verify, status, quiet)
        if not quiet:
            print_demo_end(data_dir)
    finally:
        if data_dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    layout = Layout(folder)
    figures = run_figures(summary, layout)
    return CommandOutcome(figures, status)
