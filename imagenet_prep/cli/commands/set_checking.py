"""verify, repair and diff: whether a set is right, and whether two sets are the same."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.each_set import SetWork, each_set
from imagenet_prep.cli.exit_status import PROBLEMS_FOUND, status_of
from imagenet_prep.cli.figures import repair_figures
from imagenet_prep.cli.option_types import Number
from imagenet_prep.cli.place_checks import find_place, refuse_missing, refuse_missing_data
from imagenet_prep.cli.printing.difference_text import print_diff
from imagenet_prep.cli.printing.verdict_text import (
    print_final_verdict,
    print_raw_verdict,
    print_repair,
    print_verdict,
)
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.stage_arguments import engine_of, note_share
from imagenet_prep.errors import UsageError
from imagenet_prep.storage.layout import RAW_NAME, Layout
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Depth
    from imagenet_prep.pipeline import RepairRun


@click.command(cls=Command)
@o.set_file_or_raw
@o.raw_copy
@o.raw_depth
@click.option(
    "--allow-incomplete",
    is_flag=True,
    help="Without a manifest, or with --raw: treat the set as a part of ILSVRC2012.",
)
@o.rank
@o.working
def verify(data_dir: Path | None, quiet: bool, **params: Any) -> CommandOutcome:
    """Read every byte of the shards, and give a verdict; exit status 3 if anything is wrong.

    It also verifies shards that another tool made, or a single TFRecord file; with --raw or
    --config, images before they are converted.

    \b
    imagenet-prep verify /data/imagenet
    imagenet-prep verify movies.tfrecord
    imagenet-prep verify --raw /data/kaggle
    imagenet-prep verify --config flowers.yaml
    """
    if params["raw"] or params["config"]:
        return _verify_raw(data_dir, params, quiet)
    if data_dir is None:
        raise UsageError(
            "verify needs a folder or a file",
            "expected DATA_DIR, a TFRecord file, --raw FOLDER or --config FILE",
        )
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.stages.verify import verify, verify_file

    place = find_place(data_dir)
    depth: Depth = params["depth"] or "full"
    engine = engine_of(params)
    if params["share"] is not None and not isinstance(place, Layout):
        raise _no_ranks(f"the file {data_dir}")
    progress = make_progress(quiet)
    share = note_share(params["share"], progress)
    if isinstance(place, Layout):
        check = functools.partial(
            verify,
            engine=engine,
            depth=depth,
            allow_incomplete=params["allow_incomplete"],
            share=share,
            progress=progress,
        )
    else:
        check = functools.partial(verify_file, depth=depth)
    show = functools.partial(print_verdict, quiet=quiet)
    work = SetWork(check, show, Verdict.as_dict, status_of)
    return each_set(place, work)


def _no_ranks(data: str) -> UsageError:
    """The error for a share of data that one process checks."""
    return UsageError(
        f"--rank can't be used with {data}",
        "a rank checks its share of the shards in a folder",
        "leave --rank out",
    )


def _verify_raw(data_dir: Path | None, params: Mapping[str, Any], quiet: bool) -> CommandOutcome:
    """Check a copy of images: of ILSVRC2012, or of a recipe."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.registry import ILSVRC2012, read_dataset
    from imagenet_prep.stages.verify_raw import verify_raw

    raw, recipe = params["raw"], params["config"]
    if params["share"] is not None:
        raise _no_ranks("--raw" if raw else "--config")
    if data_dir is not None:
        refuse_missing_data(data_dir)
    dataset = read_dataset(recipe) if recipe else ILSVRC2012
    options = dataset.options
    if isinstance(options, ConvertOptions) and params["allow_incomplete"]:
        options = options.replace(allow_incomplete=True)
    folder = raw or recipe.parent
    parent = folder.parent if folder.name == RAW_NAME else folder  # the DATA_DIR of other commands
    layout = Layout(data_dir or parent, raw)
    verdict = verify_raw(
        layout,
        engine_of(params),
        dataset=dataset,
        options=options,
        depth=params["depth"],
        progress=make_progress(quiet),
    )
    print_raw_verdict(verdict, quiet=quiet)
    status = PROBLEMS_FOUND if verdict.problems else 0
    return CommandOutcome(verdict.as_dict(), status)


@click.command(cls=Command)
@o.places_of_set
@o.depth
@o.working
def repair(
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any
) -> CommandOutcome:
    """Verify, and make wrong or missing shards again: the same bytes, from the same raw data.

    Settings come from the manifest.

    \b
    imagenet-prep repair /data/imagenet
    """
    from imagenet_prep import pipeline

    refuse_missing(output or data_dir)
    verify_and_repair = functools.partial(
        pipeline.verify_and_repair,
        engine=engine_of(params),
        depth=params["depth"],
        progress=make_progress(quiet),
    )

    def show(run: RepairRun) -> None:
        print_repair(run, quiet)
        print_final_verdict(run.verdict, _status_of_repair(run), quiet)

    work = SetWork(verify_and_repair, show, repair_figures, _status_of_repair)
    all_sets = Layout(data_dir, raw, output)
    return each_set(all_sets, work, has_heads=not quiet)


def _status_of_repair(run: RepairRun) -> int:
    return status_of(run.verdict)


@click.command(cls=Command)
@click.argument("set_a", metavar="A", type=o.any_place)
@click.argument("set_b", metavar="B", type=o.any_place)
@click.option(
    "--limit",
    type=Number(min=0),
    default=20,
    show_default=True,
    help="Print the features of at most this many differing records.",
)
@click.option(
    "--bytes",
    "by_bytes",
    is_flag=True,
    help="Compare bytes: another encoding of the same features differs.",
)
@click.option(
    "--data",
    "reads_data",
    is_flag=True,
    help="Read every record; trust no manifest or index.",
)
@o.workers
def diff(
    set_a: AnyPath,
    set_b: AnyPath,
    limit: int,
    by_bytes: bool,
    reads_data: bool,
    quiet: bool,
    **params: Any,
) -> CommandOutcome:
    """List the records that differ between two sets, and the features (exit status 3 if
    any differ).

    Records are compared by their features, whatever their encoding. A or B can be a manifest.json.
    diff trusts manifests and indexes, except with --data and where the last verify found faults.

    \b
    imagenet-prep diff /data/imagenet /mnt/colleague/imagenet
    imagenet-prep diff /data/imagenet published/manifest.json
    """
    from imagenet_prep.stages.diff import diff

    difference = diff(
        set_a,
        set_b,
        engine=engine_of(params),
        by_bytes=by_bytes,
        reads_data=reads_data,
        look_into=limit,
        progress=make_progress(quiet),
    )
    if not quiet:
        print_diff(difference, limit)
    status = 0 if difference.is_same else PROBLEMS_FOUND
    return CommandOutcome(difference.as_dict(), status)
