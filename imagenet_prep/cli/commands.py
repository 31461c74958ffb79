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
from imagenet_prep.cli.terminal import make_progress, say
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
def run(data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **given: Any) -> int:
    """Run every required stage, in order: download, annotate, convert, verify.

    \b
    imagenet-prep run /data/imagenet
    imagenet-prep run /data/imagenette --classes imagenette --relabel 0
    """
    from imagenet_prep import pipeline

    layout, options, progress = (
        Layout(data_dir, raw, output),
        _convert_options(given),
        make_progress(quiet),
    )
    layout.refuse_urls()
    fetching = _download_options(given, site_of(given))
    if given["dry_run"]:
        needs = pipeline.foresee(
            layout, fetching=fetching, extract=given["extract"], options=options, progress=progress
        )
        return _conclude_dry_run(needs)
    missing = pipeline.missing_archives(
        layout, validation_boxes=options.validation_boxes, part=options.part
    )
    if missing and fetching.site is None:
        fetching = replace(fetching, credentials=_credentials(given))
    summary = pipeline.run(
        layout,
        _engine(given),
        fetching=fetching,
        extract=given["extract"],
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
def download(data_dir: Path, only: str, quiet: bool, **given: Any) -> int:
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

    layout, progress = Layout(data_dir), make_progress(quiet)
    keys, part = _archive_keys(only), find_part(given["classes"])
    site = site_of(given, keys)
    for key in keys:
        if not layout.archive_path(facts.ARCHIVES[key]).is_file():
            refuse_astray(layout, key)
    if site is not None:
        if given["dry_run"]:
            incoming = foresee_copy(layout, site, progress=progress)
            if not part.is_whole:
                progress.note(all_come(site, part))
            return _conclude_dry_run([each.need(layout) for each in incoming])
        summary = download_copy(
            layout, site, _download_options(given, site), part=part, progress=progress
        )
        printing.print_download(summary, quiet)
        return 0
    incoming = foresee(layout, only=keys, part=part, check_digest=not given["no_digest"])
    if given["dry_run"]:
        return _conclude_dry_run([each.need(layout) for each in incoming])
    who = _credentials(given) if incoming else None
    options = replace(_download_options(given, None), credentials=who, cookies=given["cookies"])
    summary = download(layout, options, only=keys, part=part, progress=progress)
    printing.print_download(summary, quiet)
    return 0


@cli.command()
@o.data_dir
@o.raw
@o.dry_run
@o.workers
@o.quiet
def untar(data_dir: Path, raw: Path | None, dry_run: bool, quiet: bool, **given: Any) -> int:
    """Make image folders: raw-data/train/<wnid>/ and raw-data/validation/<wnid>/.

    convert does not require them: it reads the archives in place.

    \b
    imagenet-prep untar /data/imagenet
    """
    from imagenet_prep.stages.untar import foresee, untar

    _data_must_be_there(raw or data_dir)
    layout, progress = Layout(data_dir, raw), make_progress(quiet)
    if dry_run:
        return _conclude_dry_run(foresee(layout, _engine(given), progress=progress))
    printing.print_untar(untar(layout, _engine(given), progress=progress), quiet)
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
def annotate(data_dir: Path, raw: Path | None, quiet: bool, **given: Any) -> None:
    """Convert the annotation archive to raw-data/imagenet_2012_bounding_boxes.csv.

    \b
    imagenet-prep annotate /data/imagenet
    """
    from imagenet_prep.stages.annotate import annotate

    if given["boxes"] is None:  # otherwise DATA_DIR may be new: only the result goes there
        _data_must_be_there(raw or data_dir)
    summary = annotate(
        Layout(data_dir, raw),
        _engine(given),
        boxes=given["boxes"],
        validation=given["validation_boxes"],
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
    folder: Path | None, output: Path | None, as_layout: str | None, quiet: bool, **given: Any
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

    wanted = {name: given[name] for name in ("label", "image", "names", "strip")}
    asked = InitOptions(**wanted, splits=_splits_of(given["split"]))
    if given["is_list"] or given["example"] is not None:
        is_more = as_layout or asked != InitOptions() or (output and folder)
        if is_more or (given["is_list"] and (given["example"] or output or folder)):
            expected = "expected --list alone, or --example NAME and the file to write"
            raise UsageError("init of a known data set with other options", expected)
        printing.print_examples(given["example"], output or folder)
        return
    if folder is None:
        raise UsageError(
            "init without a folder", "expected a folder of data, --list, or --example NAME"
        )
    from imagenet_prep.stages.init import init

    summary = init(
        folder,
        output,
        _engine(given),
        layout=as_layout,
        options=asked,
        progress=make_progress(quiet),
    )
    printing.print_init(summary, quiet)


def _splits_of(values: Sequence[str]) -> dict[str, str]:
    """Where each split is, by its name; raises UsageError for a value without a name or a place,
    or a name twice.
    """
    splits: dict[str, str] = {}
    for value in values:
        name, sign, place = value.partition("=")
        if not (name and sign and place):
            raise UsageError(
                f"--split {value} has no name or no place", "expected NAME=WHERE, as in train=Train"
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
    data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **given: Any
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

    engine, progress = _engine(given), make_progress(quiet)
    share = _noted(given["share"], progress)
    layout, dataset, options = _job(Layout(data_dir, raw, output), given, progress)
    if given["config"] is None:
        _data_must_be_there(raw or data_dir)
    if given["dry_run"]:
        if given["allow_python"]:
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
def verify(data_dir: Path | None, quiet: bool, **given: Any) -> int:
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
    if given["raw"] or given["config"]:
        return _verify_raw(data_dir, given, progress)
    if data_dir is None:
        raise UsageError(
            "verify without a folder",
            "expected DATA_DIR, a TFRecord file, --raw FOLDER or --config FILE",
        )
    where, depth = _set_or_file(data_dir), _depth_of(given)
    check = functools.partial(
        verify,
        engine=_engine(given),
        depth=depth,
        allow_incomplete=given["allow_incomplete"],
        share=_noted(given["share"], progress),
        progress=progress,
    )
    if not isinstance(where, Layout):
        check = functools.partial(verify_file, depth=depth)
    return _each_set(where, check, printing.print_verdict, _status_of, given["json_file"])


def _depth_of(given: Mapping[str, Any]) -> Depth:
    depth: Depth = given["depth"] or "full"
    return depth


def _verify_raw(data_dir: Path | None, given: Mapping[str, Any], progress: Progress) -> int:
    """Check a copy of images: of ILSVRC2012, or of a recipe."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.registry import ILSVRC2012, read_dataset
    from imagenet_prep.stages.verify_raw import verify_raw

    if given["share"] is not None:
        option = "--raw" if given["raw"] else "--config"
        raise UsageError(f"--rank with {option}", "expected it for shards", "leave it out")
    if data_dir is not None:
        _data_must_be_there(data_dir)
    dataset = read_dataset(given["config"]) if given["config"] else ILSVRC2012
    options = dataset.options
    if isinstance(options, ConvertOptions):
        options = options.replace(
            allow_incomplete=given["allow_incomplete"] or options.allow_incomplete
        )
    folder = given["raw"] or given["config"].parent
    verdict = verify_raw(
        Layout(data_dir or folder, given["raw"]),
        _engine(given),
        dataset=dataset,
        options=options,
        depth=given["depth"],
        progress=progress,
    )
    if not printing.wrote_json(given["json_file"], verdict.as_dict()):
        printing.print_raw_verdict(verdict)
    return PROBLEMS_FOUND if verdict.problems else 0


@cli.command()
@o.places
@o.depth
@o.working
def repair(data_dir: Path, raw: Path | None, output: Path | None, quiet: bool, **given: Any) -> int:
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

    engine, progress, depth = _engine(given), make_progress(quiet), given["depth"]
    mend = functools.partial(
        pipeline.verify_and_repair, engine=engine, depth=depth, progress=progress
    )
    layout = Layout(data_dir, raw, output)
    return _each_set(
        layout, mend, show, lambda summary: _status_of(summary.verdict), has_heads=not quiet
    )


@cli.command()
@click.argument("first", metavar="A", type=o.any_place)
@click.argument("second", metavar="B", type=o.any_place)
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
    first: AnyPath,
    second: AnyPath,
    limit: int,
    by_bytes: bool,
    json_file: Path | None,
    quiet: bool,
    **given: Any,
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

    engine, progress = _engine(given), make_progress(quiet)
    found = diff(
        first, second, engine=engine, by_bytes=by_bytes, look_into=limit, progress=progress
    )
    if not printing.wrote_json(json_file, found.as_dict()) and not quiet:
        printing.print_diff(found, limit)
    return 0 if found.is_same else PROBLEMS_FOUND


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
            said = as_error(error) if isinstance(error, OSError) else error
            if said is None:
                raise
            return unknown(said, output or data_dir)

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
    "--output",
    "page",
    type=o.NewFile(o.HTML),
    help="The page's file.  [default: next to the shards]",
)
@o.working
def report(data_dir: Path, is_opened: bool, page: Path | None, quiet: bool, **given: Any) -> int:
    """Make one page: verdict, images with their boxes, histograms, classes (exit status as with
    verify).

    \b
    imagenet-prep report /data/imagenet --open
    imagenet-prep report movies.tfrecord
    """
    from imagenet_prep import pipeline

    engine, progress, where = _engine(given), make_progress(quiet), _set_or_file(data_dir)
    contents = {name: given[name] for name in ("samples", "near_duplicates")}

    def make(each: Layout | AnyPath) -> ReportSummary:
        layout, own = each if isinstance(each, Layout) else Layout(each.parent), page
        if page and isinstance(where, Layout) and len(where.sets()) > 1:
            own = page.with_stem(f"{page.stem}-{layout.set_name}")
        if own is None:
            _must_be_writable(layout.report_path)
        return pipeline.report(each, engine, **contents, page=own, progress=progress)

    def show(summary: ReportSummary) -> None:
        printing.print_report(summary, quiet)
        if is_opened:
            _open(summary.path)

    return _each_set(where, make, show, lambda summary: _status_of(summary.verdict))


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
def export(container: str, data_dir: Path, out: Path | None, quiet: bool, **given: Any) -> int:
    """Write the records in another format to the folder OUT: the same image bytes, read back,
    resumable.

    tfds copies no records: it writes a few files to OUT, or to DATA_DIR/tfds.

    \b
    imagenet-prep export webdataset /data/imagenet /data/imagenet-tars
    imagenet-prep export tfds /data/imagenet
    """
    from imagenet_prep.exports import load_format
    from imagenet_prep.stages.export import export

    whole, engine, progress = Layout(data_dir), _engine(given), make_progress(quiet)
    if out is None or load_format(container).unit == "set":
        whole.refuse_urls()
    _must_be_there(data_dir)

    def pack(layout: Layout) -> ExportSummary:
        own = (out or data_dir / container) / layout.set_name if len(whole.sets()) > 1 else out
        return export(
            layout, container, own, engine, on_damaged=given["on_damaged"], progress=progress
        )

    def show(summary: ExportSummary) -> None:
        printing.print_export(summary, quiet)

    def status_of(summary: ExportSummary) -> int:
        return PROBLEMS_FOUND if summary.left_out else 0

    return _each_set(whole, pack, show, status_of, has_heads=not quiet)


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
def demo(data_dir: Path | None, classes: int, per_class: int, quiet: bool, **given: Any) -> int:
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
            _engine(given),
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

    from imagenet_prep.cli import cli as whole

    found = get_completion_class(shell)
    assert found is not None
    say(*found(whole, {}, "imagenet-prep", "_IMAGENET_PREP_COMPLETE").source().split("\n"))


# options -> arguments of stages -------------------------------------------------------------------


def _set_or_file(path: AnyPath) -> Layout | AnyPath:
    """The sets of a folder, or a file itself."""
    if path.is_file():
        return path
    _must_be_there(path, "expected a folder of shards, or a TFRecord file")
    return Layout(path)


def _each_set(
    where: Layout | AnyPath,
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
    from imagenet_prep.cli import show_error

    layouts: list[Any] = [where]
    statuses, values = [0], {}
    if isinstance(where, Layout):
        with contextlib.suppress(OSError):  # the work meets the same error and reports it
            layouts = where.sets()
    for each in layouts:
        if has_heads and len(layouts) > 1 and json_file != printing.OUTPUT:
            say(f"{each.set_name or 'without a prefix'}:")
        try:
            found = work(each)
        except PrepError as error:
            if len(layouts) == 1:
                raise
            show_error(error)
            statuses.append(error.exit_code)
            continue
        statuses.append(status_of(found))
        if json_file is not None:
            values[each.set_name if len(layouts) > 1 else ""] = found.as_dict()
        if json_file != printing.OUTPUT:
            show(found)
    if json_file is not None:
        printing.wrote_json(json_file, values if len(layouts) > 1 else values[""])
    return max(statuses)


def _status_of(verdict: Verdict) -> int:
    return PROBLEMS_FOUND if verdict.problems else 0


def _engine(given: Mapping[str, Any]) -> Engine:
    from imagenet_prep.engines import make_engine

    if given.get("consume") and given.get("engine") == "ray":
        raise UsageError(
            "--consume with --engine ray",
            "expected a local engine, which knows when shards are durable",
        )
    return make_engine(given.get("engine", "processes"), given["workers"])


def _noted(share: Share | None, progress: Progress) -> Share | None:
    """Note the requested rank."""
    if share is not None:
        own = ", ".join(str(share.rank + number * share.world) for number in range(3))
        progress.note(f"{share}: shards {own}, ... counted over all splits")
    return share


def _archive_keys(only: str) -> tuple[str, ...]:
    keys = tuple(key.strip() for key in only.split(",") if key.strip())
    unknown = [key for key in keys if key not in facts.ARCHIVES]
    if unknown or not keys:
        raise UsageError(f"--only {only}", f"expected one or more of {','.join(facts.ARCHIVES)}")
    return keys


def _credentials(given: Mapping[str, Any]) -> SignIn | None:
    """The account to sign in with; it prompts when the server requires one.
    A cookies file replaces it.
    """
    from imagenet_prep.fetch.access import find_credentials

    if given.get("cookies") is not None:
        return None
    find = functools.partial(find_credentials, given["base_url"] or BASE_URL)
    found = find(prompt=None)
    if found is not None or not sys.stdin.isatty():
        return found
    return functools.partial(find, prompt=functools.partial(_prompt, given["base_url"] or BASE_URL))


def _prompt(base_url: str) -> tuple[str, str]:
    from imagenet_prep.fetch.session import host_of

    sign_up = (
        f" (sign up: {SIGN_UP_URL})" if base_url == BASE_URL else ", which will get the password"
    )
    say(f"Account at {host_of(base_url)}{sign_up}", error=True)
    username = click.prompt("Username", err=True)
    return username, click.prompt("Password or access key", hide_input=True, err=True)


def _download_options(given: Mapping[str, Any], site: Site | None) -> DownloadOptions:
    from imagenet_prep.stages.download import DownloadOptions

    return DownloadOptions(
        site=site,
        base_url=given["base_url"] or BASE_URL,
        connections=given["connections"],
        check_digest=not given["no_digest"],
    )


def _convert_options(given: Mapping[str, Any]) -> ConvertOptions:
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions, check_options

    options = ConvertOptions(**o.given_settings(given))
    check_options(options)
    return options


def _job(
    layout: Layout, given: Mapping[str, Any], progress: Progress
) -> tuple[Layout, CheckedDataset, MakingOptions]:
    """The shards' folder, data set and settings: from a recipe, or from options for ILSVRC2012."""
    from imagenet_prep.registry import ILSVRC2012, read_dataset

    if given["config"] is not None:
        _refuse_with_recipe(given)
    options = _convert_options(given)
    if given["config"] is None:
        if given["allow_python"]:
            raise UsageError(
                "--allow-python without --config", "expected a recipe with source: {python: ...}"
            )
        return layout, ILSVRC2012, options
    from imagenet_prep.recipes.output_places import shards_dir
    from imagenet_prep.recipes.recipe_set import RecipeSet

    dataset = read_dataset(given["config"], allow_python=given["allow_python"])
    if isinstance(dataset, RecipeSet) and dataset.file:
        output = shards_dir(dataset.file, layout.output_dir)
        if output != layout.output_dir:
            layout = replace(layout, output=output)
            progress.note(
                f"the shards are in {output}: the DATA_DIR of verify, status, repair and report"
            )
        if options.consume:
            raise UsageError(
                f"--consume with --config {given['config']}",
                "expected ImageNet, whose digests are known",
            )
    call: dict[str, Any] = {"overwrite": options.overwrite, "consume": options.consume}
    if list(o.said_settings(click.get_current_context(), {"on_damaged"})):
        call["on_damaged"] = options.on_damaged
    return layout, dataset, dataset.options.replace(**call)


def _refuse_with_recipe(given: Mapping[str, Any]) -> None:
    """Refuse options for settings of a recipe, except one that only leaves images out."""
    from imagenet_prep.datasets.declarations import recipe_keys, settings_of
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.recipes.schema import Recipe

    keys = {each.name for each in (*recipe_keys(ConvertOptions), *settings_of(Recipe))} - {
        "on_damaged"
    }
    for option in o.said_settings(click.get_current_context(), keys):
        raise UsageError(
            f"{option} with --config",
            "expected one of them",
            f"write the setting in {given['config']}",
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
    folder = next(each for each in local.parents if each.is_dir())
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
