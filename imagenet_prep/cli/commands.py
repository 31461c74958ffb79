"""The commands: each turns options into one stage call,
prints the outcome and returns the exit status.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from imagenet_prep.cli import options as o
from imagenet_prep.cli import printing
from imagenet_prep.cli.options import site_of
from imagenet_prep.cli.terminal import make_progress, say, show_error
from imagenet_prep.errors import InputError, PrepError, UsageError, WriteError
from imagenet_prep.exports import FORMATS, describe_formats
from imagenet_prep.fetch import BASE_URL, SIGN_UP_URL
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

if TYPE_CHECKING:
    from imagenet_prep.checks.checked_dataset import CheckedDataset
    from imagenet_prep.checks.verdict import Depth, Verdict
    from imagenet_prep.datasets.declarations import MakingOptions
    from imagenet_prep.fetch.access import SignIn
    from imagenet_prep.fetch.providers import Site
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.model import Engine, Progress
    from imagenet_prep.pipeline import RepairRun
    from imagenet_prep.shards.convert_summary import ConvertSummary
    from imagenet_prep.shards.share import Share
    from imagenet_prep.stages.download import DownloadOptions
    from imagenet_prep.stages.export import ExportSummary
    from imagenet_prep.stages.report import ReportSummary
    from imagenet_prep.stages.status import Status
    from imagenet_prep.storage.space import Need

PROBLEMS_FOUND = 3

cli = click.Group()
cli.command_class = o.Command
"""All commands by name."""


@cli.command(cls=o.LongCommand)
@o.places
@o.fetching
@click.option("--extract", is_flag=True, help="Also make image folders (train/, validation/).")
@o.settings_for("run")
@o.dry_run
@o.working
def run(data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any) -> int:
    """Run every required stage, in order: download, annotate, convert, verify.

    \b
    imagenet-prep run /data/imagenet
    imagenet-prep run /data/imagenette --classes imagenette --relabel 0
    """
    from imagenet_prep import pipeline

    layout = Layout(data_dir, raw, output)
    options = _convert_options(params)
    progress = make_progress(quiet)
    layout.refuse_urls()
    fetching = _download_options(params, site_of(params))
    if params["dry_run"]:
        needs = pipeline.foresee(
            layout, fetching=fetching, extract=params["extract"], options=options, progress=progress
        )
        return _conclude_dry_run(needs)
    missing = pipeline.missing_archives(
        layout, validation_boxes=options.validation_boxes, part=options.part
    )
    if missing and fetching.site is None:
        fetching = replace(fetching, credentials=_credentials(params))
    summary = pipeline.run(
        layout,
        _engine(params),
        fetching=fetching,
        extract=params["extract"],
        options=options,
        progress=progress,
    )
    printing.print_run(summary, quiet)
    return _conclude(summary.verify, quiet, set_aside=summary.convert.set_aside)


@cli.command()
@o.data_dir
@o.only
@click.option(
    "--classes", metavar="FILE|NAME", help="Only these classes; the values are those of convert."
)
@o.fetching
@click.option(
    "--cookies",
    type=o.existing_file,
    help="A cookies.txt exported from a browser that is signed in.",
)
@o.dry_run
@o.quiet
def download(data_dir: Path, only: str, quiet: bool, **params: Any) -> int:
    """Download the archives with your credentials; resumes, and checks their content.

    Credentials: IMAGENET_USERNAME and IMAGENET_ACCESS_KEY, then ~/.netrc, then a prompt. Kaggle and
    Hugging Face use the credentials of their own tools.

    \b
    imagenet-prep download /data/imagenet --only train,validation,boxes
    imagenet-prep download /data/imagenet --classes imagenette
    imagenet-prep download /data/imagenet --source huggingface
    """
    from imagenet_prep.ilsvrc2012.astray import refuse_astray
    from imagenet_prep.ilsvrc2012.settings import find_part
    from imagenet_prep.stages.download import (
        all_come,
        download,
        download_copy,
        foresee,
        foresee_copy,
    )

    layout = Layout(data_dir)
    progress = make_progress(quiet)
    keys = _archive_keys(only)
    part = find_part(params["classes"])
    site = site_of(params, keys)
    for key in keys:
        if not layout.archive_path(facts.ARCHIVES[key]).is_file():
            refuse_astray(layout, key)
    if site is not None:
        if params["dry_run"]:
            incoming = foresee_copy(layout, site, progress=progress)
            if not part.is_whole:
                progress.note(all_come(site, part))
            return _conclude_dry_run([file.need(layout) for file in incoming])
        summary = download_copy(
            layout, site, _download_options(params, site), part=part, progress=progress
        )
        printing.print_download(summary, quiet)
        return 0
    incoming = foresee(layout, only=keys, part=part, check_digest=not params["no_digest"])
    if params["dry_run"]:
        return _conclude_dry_run([archive.need(layout) for archive in incoming])
    options = replace(
        _download_options(params, None),
        credentials=_credentials(params) if incoming else None,
        cookies=params["cookies"],
    )
    summary = download(layout, options, only=keys, part=part, progress=progress)
    printing.print_download(summary, quiet)
    return 0


@cli.command()
@o.data_dir
@o.raw
@o.dry_run
@o.workers
@o.quiet
def untar(data_dir: Path, raw: Path | None, dry_run: bool, quiet: bool, **params: Any) -> int:
    """Make image folders: raw-data/train/<wnid>/ and raw-data/validation/<wnid>/.

    convert does not require them: it reads the archives in place.

    \b
    imagenet-prep untar /data/imagenet
    """
    from imagenet_prep.stages.untar import foresee, untar

    _data_must_be_there(raw or data_dir)
    layout, progress = Layout(data_dir, raw), make_progress(quiet)
    if dry_run:
        return _conclude_dry_run(foresee(layout, _engine(params), progress=progress))
    printing.print_untar(untar(layout, _engine(params), progress=progress), quiet)
    return 0


@cli.command()
@o.data_dir
@o.raw
@click.option(
    "--boxes", type=o.existing, help="Annotations: a .tar.gz, or a folder of <wnid>/*.xml."
)
@click.option(
    "--validation-boxes",
    is_flag=True,
    help="Also annotate validation images (the original never did).",
)
@o.workers
@o.quiet
def annotate(data_dir: Path, raw: Path | None, quiet: bool, **params: Any) -> None:
    """Convert the annotation archive to raw-data/imagenet_2012_bounding_boxes.csv.

    \b
    imagenet-prep annotate /data/imagenet
    """
    from imagenet_prep.stages.annotate import annotate

    if params["boxes"] is None:  # otherwise DATA_DIR may be new: only the result goes there
        _data_must_be_there(raw or data_dir)
    summary = annotate(
        Layout(data_dir, raw),
        _engine(params),
        boxes=params["boxes"],
        validation=params["validation_boxes"],
        progress=make_progress(quiet),
    )
    printing.print_annotate(summary, quiet)


@cli.command()
@o.folder_or_file
@click.option(
    "--output",
    type=o.NewFile(),
    help="The recipe's file.  [default: FOLDER's name with .yaml, here]",
)
@click.option(
    "--as", "as_layout", metavar="LAYOUT", help="How to read FOLDER, if several ways are possible."
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column of the classes; a,b,c: one-hot; FILE:COLUMN: of that table.",
)
@click.option("--image", metavar="COLUMN", help="Column of the paths of images.")
@click.option(
    "--split",
    "split",
    multiple=True,
    metavar="NAME=WHERE",
    help="Folder, list, or value of a column.",
)
@click.option(
    "--names",
    type=o.existing_file,
    metavar="FILE",
    help="Names of classes by id: JSON, CSV, txt or pbtxt.",
)
@click.option("--strip", metavar="PREFIX", help="Take this off the paths in tables and lists.")
@click.option("--list", "is_list", is_flag=True, help="List the recipes of well-known data sets.")
@click.option(
    "--example",
    metavar="NAME",
    help="Write one of those, to --output or to the file named as FOLDER.",
)
@o.workers
@o.quiet
def init(
    folder: Path | None, output: Path | None, as_layout: str | None, quiet: bool, **params: Any
) -> None:
    """Inspect a folder of images or arrays, and propose a recipe for it; or copy the recipe of a
    well-known data set.

    \b
    imagenet-prep init flowers
    imagenet-prep init flowers --label species --split train=Train
    imagenet-prep init --list
    imagenet-prep init --example food101
    """
    from imagenet_prep.init.init_options import InitOptions

    options = InitOptions(
        label=params["label"],
        image=params["image"],
        names=params["names"],
        strip=params["strip"],
        splits=_splits_of(params["split"]),
    )
    if params["is_list"] or params["example"] is not None:
        is_about_folder = bool(as_layout) or options != InitOptions()
        _print_examples(params, folder, output, is_about_folder=is_about_folder)
        return
    if folder is None:
        raise UsageError(
            "init without a folder", "expected a folder of data, --list, or --example NAME"
        )
    from imagenet_prep.stages.init import init

    summary = init(
        folder,
        output,
        _engine(params),
        layout=as_layout,
        options=options,
        progress=make_progress(quiet),
    )
    printing.print_init(summary, quiet)


def _print_examples(
    params: Mapping[str, Any], folder: Path | None, output: Path | None, *, is_about_folder: bool
) -> None:
    """List the recipes of well-known data sets, or write one of them to ``output`` or ``folder``.

    Raises:
        UsageError: the call also has options for a folder of data, or names two files.
    """
    is_list, name = params["is_list"], params["example"]
    names_file = output is not None or folder is not None
    names_two_files = output is not None and folder is not None
    if is_about_folder or names_two_files or (is_list and (name or names_file)):
        raise UsageError(
            "init of a known data set with other options",
            "expected --list alone, or --example NAME and the file to write",
        )
    printing.print_examples(name, output or folder)


def _splits_of(texts: Sequence[str]) -> dict[str, str]:
    """Where each split is, by its name; raises UsageError for a text without a name or a place,
    or a name twice.
    """
    splits: dict[str, str] = {}
    for text in texts:
        name, sign, place = text.partition("=")
        if not (name and sign and place):
            raise UsageError(
                f"--split {text} has no name or no place", "expected NAME=WHERE, as in train=Train"
            )
        if name in splits:
            raise UsageError(f"--split {name} is there twice", "expected each split once")
        splits[name] = place
    return splits


@cli.command(cls=o.LongCommand)
@o.places
@click.option(
    "--config",
    "-c",
    type=o.existing_file,
    help="A recipe for another data set; init FOLDER proposes one.",
)
@o.settings_for("convert")
@o.allow_python
@o.rank
@o.dry_run
@o.working
def convert(
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any
) -> int:
    """Convert images to shards: 1024 train and 128 validation, with the same records as in 2016.

    \b
    imagenet-prep convert /data/imagenet
    imagenet-prep convert /data/out --raw /data/kaggle
    imagenet-prep convert /data/imagenette --raw /data/kaggle --classes imagenette --relabel 0
    imagenet-prep convert /data/flowers --config flowers.yaml
    imagenet-prep convert /data/imagenet --rank auto    (in each task of a Slurm job array)
    """
    from imagenet_prep.stages.convert import convert, foresee

    engine = _engine(params)
    progress = make_progress(quiet)
    share = _noted(params["share"], progress)
    layout, dataset, options = _job(Layout(data_dir, raw, output), params, progress)
    if params["config"] is None:
        _data_must_be_there(raw or data_dir)
    if params["dry_run"]:
        if params["allow_python"]:
            raise UsageError(
                "--allow-python with --dry-run",
                "expected one of them: a dry run runs no code of yours",
            )
        return _conclude_dry_run(
            foresee(layout, engine, options, dataset=dataset, share=share, progress=progress)
        )
    summary = convert(layout, engine, options, dataset=dataset, share=share, progress=progress)
    printing.print_convert(summary, quiet, dataset.splits if dataset.published else ())
    return PROBLEMS_FOUND if summary.set_aside else 0


@cli.command()
@o.data_dir
@o.output
@o.quiet
def merge(data_dir: Path, output: Path | None, quiet: bool) -> int:
    """Finish a set whose shards the ranks of convert made; no raw data is read.

    If shards are missing, it names the ranks to run again. convert without --rank also finishes the
    set: it makes the missing shards. The exit status is 3, as with convert, if images were set
    aside.

    \b
    imagenet-prep merge /data/imagenet
    """
    from imagenet_prep.stages.merge import merge
    from imagenet_prep.stages.verify import look

    _must_be_there(output or data_dir)

    def status_of(merged: tuple[ConvertSummary, Verdict]) -> int:
        summary, verdict = merged
        return PROBLEMS_FOUND if summary.set_aside else _status_of(verdict)

    def show(merged: tuple[ConvertSummary, Verdict]) -> None:
        printing.print_merge(*merged, quiet)

    def join(layout: Layout) -> tuple[ConvertSummary, Verdict]:
        return merge(layout, progress=make_progress(quiet)), look(layout)

    layout = Layout(data_dir, output=output)
    return _each_set(layout, join, show, status_of, has_heads=not quiet)


@cli.command()
@o.set_file_or_raw
@o.raw_copy
@o.raw_depth
@o.json_file
@click.option(
    "--allow-incomplete",
    is_flag=True,
    help="Without a manifest, or with --raw: treat it as a part of ILSVRC2012.",
)
@o.rank
@o.working
def verify(data_dir: Path | None, quiet: bool, **params: Any) -> int:
    """Read every byte of the shards, and give a verdict; exit status 3 if anything is wrong.

    It also verifies shards that another tool made, or a single TFRecord file; with --raw or
    --config, images before they are converted.

    \b
    imagenet-prep verify /data/imagenet
    imagenet-prep verify movies.tfrecord
    imagenet-prep verify --raw /data/kaggle
    imagenet-prep verify --config flowers.yaml
    """
    from imagenet_prep.stages.verify import verify, verify_file

    progress = make_progress(quiet)
    if params["raw"] or params["config"]:
        return _verify_raw(data_dir, params, progress)
    if data_dir is None:
        raise UsageError(
            "verify without a folder",
            "expected DATA_DIR, a TFRecord file, --raw FOLDER or --config FILE",
        )
    place = _set_or_file(data_dir)
    depth = _depth_of(params)
    check = functools.partial(
        verify,
        engine=_engine(params),
        depth=depth,
        allow_incomplete=params["allow_incomplete"],
        share=_noted(params["share"], progress),
        progress=progress,
    )
    if not isinstance(place, Layout):
        check = functools.partial(verify_file, depth=depth)
    return _each_set(place, check, printing.print_verdict, _status_of, params["json_file"])


def _depth_of(params: Mapping[str, Any]) -> Depth:
    depth: Depth = params["depth"] or "full"
    return depth


def _verify_raw(data_dir: Path | None, params: Mapping[str, Any], progress: Progress) -> int:
    """Check a copy of images: of ILSVRC2012, or of a recipe."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.registry import ILSVRC2012, read_dataset
    from imagenet_prep.stages.verify_raw import verify_raw

    raw, recipe = params["raw"], params["config"]
    if params["share"] is not None:
        option = "--raw" if raw else "--config"
        raise UsageError(f"--rank with {option}", "expected it for shards", "leave it out")
    if data_dir is not None:
        _data_must_be_there(data_dir)
    dataset = read_dataset(recipe) if recipe else ILSVRC2012
    options = dataset.options
    if isinstance(options, ConvertOptions) and params["allow_incomplete"]:
        options = options.replace(allow_incomplete=True)
    folder = raw or recipe.parent
    verdict = verify_raw(
        Layout(data_dir or folder, raw),
        _engine(params),
        dataset=dataset,
        options=options,
        depth=params["depth"],
        progress=progress,
    )
    if not printing.wrote_json(params["json_file"], verdict.as_dict()):
        printing.print_raw_verdict(verdict)
    return PROBLEMS_FOUND if verdict.problems else 0


@cli.command()
@o.places
@o.depth
@o.working
def repair(
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **params: Any
) -> int:
    """Verify, and make wrong or missing shards again: the same bytes, from the same raw data.

    Settings come from the manifest.

    \b
    imagenet-prep repair /data/imagenet
    """
    from imagenet_prep import pipeline

    _must_be_there(output or data_dir)

    def show(summary: RepairRun) -> None:
        printing.print_repair(summary, quiet)
        _conclude(summary.verdict, quiet)

    verify_and_repair = functools.partial(
        pipeline.verify_and_repair,
        engine=_engine(params),
        depth=params["depth"],
        progress=make_progress(quiet),
    )
    return _each_set(
        Layout(data_dir, raw, output),
        verify_and_repair,
        show,
        lambda summary: _status_of(summary.verdict),
        has_heads=not quiet,
    )


@cli.command()
@click.argument("set_a", metavar="A", type=o.any_place)
@click.argument("set_b", metavar="B", type=o.any_place)
@click.option(
    "--limit",
    type=o.Number(min=0),
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
@o.workers
@o.json_file
@o.quiet
def diff(
    set_a: AnyPath,
    set_b: AnyPath,
    limit: int,
    by_bytes: bool,
    json_file: Path | None,
    quiet: bool,
    **params: Any,
) -> int:
    """List the records that differ between two sets, and the features (exit status 3 if
    any differ).

    Records are compared by their features, whatever their encoding. A or B can be a manifest.json.
    diff trusts manifests and indexes; verify proves them.

    \b
    imagenet-prep diff /data/imagenet /mnt/colleague/imagenet
    imagenet-prep diff /data/imagenet published/manifest.json
    """
    from imagenet_prep.stages.diff import diff

    difference = diff(
        set_a,
        set_b,
        engine=_engine(params),
        by_bytes=by_bytes,
        look_into=limit,
        progress=make_progress(quiet),
    )
    if not printing.wrote_json(json_file, difference.as_dict()) and not quiet:
        printing.print_diff(difference, limit)
    return 0 if difference.is_same else PROBLEMS_FOUND


@cli.command()
@o.places
@o.json_file
def status(data_dir: Path, raw: Path | None, output: Path | None, json_file: Path | None) -> int:
    """Show each stage as done, partly done or not started, and the next command.

    \b
    imagenet-prep status /data/imagenet
    """
    from imagenet_prep.stages.status import status, unknown
    from imagenet_prep.storage.refusals import as_error

    _must_be_there(output or data_dir, _OF_A_RUN)

    def look(layout: Layout) -> Status:
        try:
            return status(layout)
        except (OSError, InputError) as error:
            refusal = as_error(error) if isinstance(error, OSError) else error
            if refusal is None:
                raise
            return unknown(refusal, output or data_dir)

    return _each_set(
        Layout(data_dir, raw, output), look, printing.print_status, json_file=json_file
    )


@cli.command()
@o.set_or_file
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--samples",
    type=o.Number(0, 1000),
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
    help="Show the images that this CSV names, each with its reason, as a set.",
)
@click.option(
    "--output",
    "page",
    type=o.NewFile(o.HTML),
    help="The page's file.  [default: next to the shards]",
)
@o.working
def report(data_dir: Path, is_opened: bool, page: Path | None, quiet: bool, **params: Any) -> int:
    """Make one page: verdict, images with their boxes, histograms, classes (exit status as with
    verify).

    \b
    imagenet-prep report /data/imagenet --open
    imagenet-prep report movies.tfrecord
    """
    from imagenet_prep import pipeline

    engine = _engine(params)
    progress = make_progress(quiet)
    place = _set_or_file(data_dir)

    def make(set_or_file: Layout | AnyPath) -> ReportSummary:
        layout = set_or_file if isinstance(set_or_file, Layout) else Layout(set_or_file.parent)
        set_page = page
        if page and isinstance(place, Layout) and len(place.sets()) > 1:
            set_page = page.with_stem(f"{page.stem}-{layout.set_name}")
        if set_page is None:
            _must_be_writable(layout.report_path)
        return pipeline.report(
            set_or_file,
            engine,
            samples=params["samples"],
            near_duplicates=params["near_duplicates"],
            mark=params["mark"],
            page=set_page,
            progress=progress,
        )

    def show(summary: ReportSummary) -> None:
        printing.print_report(summary, quiet)
        if is_opened:
            _open(summary.path)

    return _each_set(place, make, show, lambda summary: _status_of(summary.verdict))


@cli.command()
@click.argument("file", type=o.any_file)
@click.option("--limit", type=o.Number(min=1), help="Show at most this many records.")
@click.option("--record", type=o.Number(min=0), help="Show only this record; the first is 0.")
@o.json_file
@click.option(
    "--image", type=o.NewFile(o.PNG), help="Save the record's image here as PNG, boxes drawn."
)
def show(
    file: Path, limit: int | None, record: int | None, json_file: Path | None, image: Path | None
) -> None:
    """Print the records of any TFRecord file.

    \b
    imagenet-prep show /data/imagenet/train-00000-of-01024 --limit 3
    """
    from imagenet_prep.stages.show import save_image, show

    if not printing.print_records(show(file, limit=limit, record=record), json_file):
        say(f"{file} holds no records", error=True)
    if image is not None:
        save_image(file, record or 0, image)


class _ExportCommand(o.Command):
    """A command whose help ends with a line for each format."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each format."""
        with formatter.section("Formats"):
            formatter.write_dl(list(describe_formats().items()))


@cli.command(cls=_ExportCommand)
@click.argument("container", type=click.Choice(FORMATS))
@o.data_dir
@o.out
@click.option(
    "--on-damaged",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="Refuse damaged records, or leave them out; the exit status is then 3.",
)
@o.working
def export(container: str, data_dir: Path, out: Path | None, quiet: bool, **params: Any) -> int:
    """Write the records in another format to the folder OUT: the same image bytes, read back,
    resumable.

    tfds copies no records: it writes a few files to OUT, or to DATA_DIR/tfds.

    \b
    imagenet-prep export webdataset /data/imagenet /data/imagenet-tars
    imagenet-prep export tfds /data/imagenet
    """
    from imagenet_prep.exports import load_format
    from imagenet_prep.stages.export import export

    all_sets = Layout(data_dir)
    engine = _engine(params)
    progress = make_progress(quiet)
    if out is None or load_format(container).unit == "set":
        all_sets.refuse_urls()
    _must_be_there(data_dir)

    def pack(layout: Layout) -> ExportSummary:
        target = out
        if len(all_sets.sets()) > 1:
            target = (out or data_dir / container) / layout.set_name
        return export(
            layout, container, target, engine, on_damaged=params["on_damaged"], progress=progress
        )

    def show(summary: ExportSummary) -> None:
        printing.print_export(summary, quiet)

    def status_of(summary: ExportSummary) -> int:
        return PROBLEMS_FOUND if summary.left_out else 0

    return _each_set(all_sets, pack, show, status_of, has_heads=not quiet)


@cli.command()
@o.new_data_dir
@click.option(
    "--classes",
    type=o.Number(2, facts.CLASSES),
    default=20,
    show_default=True,
    help="Number of classes.",
)
@click.option(
    "--per-class",
    type=o.Number(2, 1300),
    default=12,
    show_default=True,
    help="Train images per class.",
)
@o.workers
@o.quiet
def demo(data_dir: Path | None, classes: int, per_class: int, quiet: bool, **params: Any) -> int:
    """Make a small ImageNet, serve it locally behind credentials, and run every stage on it.

    Without DATA_DIR it uses a temporary folder and removes it afterwards.

    \b
    imagenet-prep demo demo-data
    """
    import shutil
    import tempfile

    from imagenet_prep.demo import run_demo

    folder = data_dir or Path(tempfile.mkdtemp(prefix="imagenet-prep-demo-"))
    try:
        summary = run_demo(
            folder,
            _engine(params),
            classes=classes,
            per_class=per_class,
            progress=make_progress(quiet),
        )
        printing.print_demo(summary, quiet)
        code = _conclude(summary.verify, quiet)
        if not quiet:
            printing.print_demo_end(data_dir)
    finally:
        if data_dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    return code


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets your shell complete commands, options and paths; save it where the
    shell looks.

    \b
    imagenet-prep completion bash > ~/.local/share/bash-completion/completions/imagenet-prep
    imagenet-prep completion zsh > ~/.zfunc/_imagenet-prep  (fpath+=~/.zfunc before compinit)
    imagenet-prep completion fish > ~/.config/fish/completions/imagenet-prep.fish
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    whole_command = click.get_current_context().find_root().command
    script = shell_class(whole_command, {}, "imagenet-prep", "_IMAGENET_PREP_COMPLETE").source()
    say(*script.split("\n"))


# options -> arguments of stages -------------------------------------------------------------------


def _set_or_file(path: AnyPath) -> Layout | AnyPath:
    """The sets of a folder, or a file itself."""
    if path.is_file():
        return path
    _must_be_there(path, "expected a folder of shards, or a TFRecord file")
    return Layout(path)


def _each_set(
    place: Layout | AnyPath,
    work: Callable[[Any], Any],
    show: Callable[[Any], None],
    status_of: Callable[[Any], int] = lambda _: 0,
    json_file: Path | None = None,
    *,
    has_heads: bool = True,
) -> int:
    """Do the work for each set of the folder, headed by its name if there are several;
    the worst exit status.
    """
    is_shown = json_file != printing.OUTPUT
    layouts = _sets_at(place)
    if len(layouts) > 1:
        has_heads = has_heads and is_shown
        return _each_of_several(layouts, work, show, status_of, json_file, has_heads=has_heads)
    outcome = work(layouts[0] if layouts else place)
    if is_shown:
        show(outcome)
    if json_file is not None:
        printing.wrote_json(json_file, outcome.as_dict())
    return status_of(outcome)


def _each_of_several(
    layouts: Sequence[Layout],
    work: Callable[[Any], Any],
    show: Callable[[Any], None],
    status_of: Callable[[Any], int],
    json_file: Path | None,
    *,
    has_heads: bool,
) -> int:
    """Do the work for each set; an error of one is printed, and the others follow."""
    statuses = [0]
    outcomes = {}
    for layout in layouts:
        if has_heads:
            say(f"{layout.set_name or 'without a prefix'}:")
        try:
            outcome = work(layout)
        except PrepError as error:
            show_error(error)
            statuses.append(error.exit_code)
            continue
        statuses.append(status_of(outcome))
        outcomes[layout.set_name] = outcome
        if json_file != printing.OUTPUT:
            show(outcome)
    if json_file is not None:
        by_set = {name: outcome.as_dict() for name, outcome in outcomes.items()}
        printing.wrote_json(json_file, by_set)
    return max(statuses)


def _sets_at(place: Layout | AnyPath) -> Sequence[Layout]:
    """The sets of a folder; none for a file, or a folder that can't be listed."""
    if isinstance(place, Layout):
        with contextlib.suppress(OSError):  # the work meets the same error and reports it
            return place.sets()
    return ()


def _status_of(verdict: Verdict) -> int:
    return PROBLEMS_FOUND if verdict.problems else 0


def _engine(params: Mapping[str, Any]) -> Engine:
    from imagenet_prep.engines import make_engine

    if params.get("consume") and params.get("engine") == "ray":
        raise UsageError(
            "--consume with --engine ray",
            "expected a local engine, which knows when shards are durable",
        )
    return make_engine(params.get("engine", "processes"), params["workers"])


def _noted(share: Share | None, progress: Progress) -> Share | None:
    """Note the requested rank."""
    if share is not None:
        shards = ", ".join(str(share.rank + step * share.world) for step in range(3))
        progress.note(f"{share}: shards {shards}, ... counted over all splits")
    return share


def _archive_keys(only: str) -> tuple[str, ...]:
    keys = tuple(key.strip() for key in only.split(",") if key.strip())
    unknown = [key for key in keys if key not in facts.ARCHIVES]
    if unknown or not keys:
        raise UsageError(f"--only {only}", f"expected one or more of {','.join(facts.ARCHIVES)}")
    return keys


def _credentials(params: Mapping[str, Any]) -> SignIn | None:
    """The account to sign in with; it prompts when the server requires one.
    A cookies file replaces it.
    """
    from imagenet_prep.fetch.access import find_credentials

    if params.get("cookies") is not None:
        return None
    base_url = params["base_url"] or BASE_URL
    credentials = find_credentials(base_url, prompt=None)
    if credentials is not None or not sys.stdin.isatty():
        return credentials
    prompt = functools.partial(_prompt, base_url)
    return functools.partial(find_credentials, base_url, prompt=prompt)


def _prompt(base_url: str) -> tuple[str, str]:
    from imagenet_prep.fetch.session import host_of

    sign_up = (
        f" (sign up: {SIGN_UP_URL})" if base_url == BASE_URL else ", which will get the password"
    )
    say(f"Account at {host_of(base_url)}{sign_up}", error=True)
    username = click.prompt("Username", err=True)
    return username, click.prompt("Password or access key", hide_input=True, err=True)


def _download_options(params: Mapping[str, Any], site: Site | None) -> DownloadOptions:
    from imagenet_prep.stages.download import DownloadOptions

    return DownloadOptions(
        site=site,
        base_url=params["base_url"] or BASE_URL,
        connections=params["connections"],
        check_digest=not params["no_digest"],
    )


def _convert_options(params: Mapping[str, Any]) -> ConvertOptions:
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions, check_options

    options = ConvertOptions(**o.settings_of_call(params))
    check_options(options)
    return options


def _job(
    layout: Layout, params: Mapping[str, Any], progress: Progress
) -> tuple[Layout, CheckedDataset, MakingOptions]:
    """The shards' folder, data set and settings: from a recipe, or from options for ILSVRC2012."""
    from imagenet_prep.registry import ILSVRC2012, read_dataset

    if params["config"] is not None:
        _refuse_with_recipe(params)
    options = _convert_options(params)
    if params["config"] is None:
        if params["allow_python"]:
            raise UsageError(
                "--allow-python without --config", "expected a recipe with source: {python: ...}"
            )
        return layout, ILSVRC2012, options
    from imagenet_prep.recipes.output_places import shards_dir
    from imagenet_prep.recipes.recipe_set import RecipeSet

    dataset = read_dataset(params["config"], allow_python=params["allow_python"])
    if isinstance(dataset, RecipeSet) and dataset.file:
        output = shards_dir(dataset.file, layout.output_dir)
        if output != layout.output_dir:
            layout = replace(layout, output=output)
            progress.note(
                f"the shards are in {output}: the DATA_DIR of verify, status, repair and report"
            )
        if options.consume:
            raise UsageError(
                f"--consume with --config {params['config']}",
                "expected ImageNet, whose digests are known",
            )
    settings: dict[str, Any] = {"overwrite": options.overwrite, "consume": options.consume}
    if list(o.written_options(click.get_current_context(), {"on_damaged"})):
        settings["on_damaged"] = options.on_damaged
    return layout, dataset, dataset.options.replace(**settings)


def _refuse_with_recipe(params: Mapping[str, Any]) -> None:
    """Refuse options for settings of a recipe, except one that only leaves images out."""
    from imagenet_prep.datasets.declarations import recipe_keys, settings_of
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.recipes.schema import Recipe

    settings = (*recipe_keys(ConvertOptions), *settings_of(Recipe))
    names = {setting.name for setting in settings} - {"on_damaged"}
    for option in o.written_options(click.get_current_context(), names):
        raise UsageError(
            f"{option} with --config",
            "expected one of them",
            f"write the setting in {params['config']}",
        )


_OF_A_RUN = "expected the DATA_DIR of a run"


def _data_must_be_there(folder: AnyPath) -> None:
    """Refuse a mistyped folder. The stages check folders in object stores."""
    if local_or_none(folder) is not None:
        _must_be_there(folder, _OF_A_RUN)


def _must_be_there(folder: AnyPath, expected: str = "expected a folder of shards") -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder} does not exist", expected)


def _must_be_writable(page: AnyPath) -> None:
    """Fail before hours of verify if the page, which is written last, can't be written."""
    local = local_or_none(page)
    if local is None:
        return
    folder = next(parent for parent in local.parents if parent.is_dir())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WriteError(
            f"the page {page} can't be written",
            f"expected permission to write in {folder}",
            "get that permission, or choose another place with --output",
        )


def _open(page: AnyPath) -> None:
    import webbrowser

    local = local_or_none(page)
    if local is None or not webbrowser.open(local.resolve().as_uri()):
        say(f"no browser found here: open {page} in one", error=True)


def _conclude_dry_run(needs: Sequence[Need]) -> int:
    """Print the needs; report an error if they do not fit."""
    from imagenet_prep.storage.space import refuse_lack

    printing.print_needs(needs)
    refuse_lack(needs)
    say("It fits.", colour="green")
    return 0


def _conclude(verdict: Verdict, quiet: bool, *, set_aside: int = 0) -> int:
    """Print the verdict after other work; if quiet, only one that has no exit status 0."""
    status = PROBLEMS_FOUND if set_aside else _status_of(verdict)
    if status or not quiet:
        printing.print_verdict(verdict)
    return status
