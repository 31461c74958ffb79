"""The commands: each turns options into one stage call, prints and returns its outcome."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from imagenet_prep.cli import figures, printing
from imagenet_prep.cli import options as o
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.each_set import SetWork, each_set
from imagenet_prep.cli.option_types import NewFile, Number, OneOf
from imagenet_prep.cli.options import site_of
from imagenet_prep.cli.place_checks import (
    OF_A_RUN,
    find_place,
    refuse_missing,
    refuse_missing_data,
    refuse_unwritable,
)
from imagenet_prep.cli.stage_arguments import (
    archive_keys,
    convert_options,
    depth_of,
    download_options,
    engine_of,
    find_account,
    note_share,
    read_job,
    split_places,
)
from imagenet_prep.cli.terminal import make_progress, say, tell
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.exports import FORMATS, describe_formats
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.model import Progress
    from imagenet_prep.pipeline import RepairRun
    from imagenet_prep.reporting.marks_file import Marks
    from imagenet_prep.shards.convert_summary import ConvertSummary
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
    fetching = download_options(params, site_of(params))
    if params["dry_run"]:
        needs = pipeline.foresee(
            layout, fetching=fetching, extract=params["extract"], options=options, progress=progress
        )
        return _conclude_dry_run(needs)
    missing = pipeline.missing_archives(
        layout, validation_boxes=options.validation_boxes, part=options.part
    )
    if missing and fetching.site is None:
        fetching = replace(fetching, credentials=find_account(params))
    summary = pipeline.run(
        layout,
        engine_of(params),
        fetching=fetching,
        extract=params["extract"],
        options=options,
        progress=progress,
    )
    printing.print_run(summary, quiet)
    status = _conclude(summary.verify, quiet, set_aside=summary.convert.set_aside)
    return CommandOutcome(figures.run_figures(summary, layout), status)


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
def download(data_dir: Path, only: str, quiet: bool, **params: Any) -> CommandOutcome:
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
    keys = archive_keys(only)
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
            layout, site, download_options(params, site), part=part, progress=progress
        )
        printing.print_download(summary, quiet)
        return CommandOutcome(figures.download_figures(summary, layout.own_raw_dir))
    incoming = foresee(layout, only=keys, part=part, check_digest=not params["no_digest"])
    if params["dry_run"]:
        return _conclude_dry_run([archive.need(layout) for archive in incoming])
    options = replace(
        download_options(params, None),
        credentials=find_account(params) if incoming else None,
        cookies=params["cookies"],
    )
    summary = download(layout, options, only=keys, part=part, progress=progress)
    printing.print_download(summary, quiet)
    return CommandOutcome(figures.download_figures(summary, layout.own_raw_dir))


@cli.command()
@o.data_dir
@o.raw
@o.dry_run
@o.workers
def untar(
    data_dir: Path, raw: Path | None, dry_run: bool, quiet: bool, **params: Any
) -> CommandOutcome:
    """Make image folders: raw-data/train/<wnid>/ and raw-data/validation/<wnid>/.

    convert does not require them: it reads the archives in place.

    \b
    imagenet-prep untar /data/imagenet
    """
    from imagenet_prep.stages.untar import foresee, untar

    refuse_missing_data(raw or data_dir)
    layout, progress = Layout(data_dir, raw), make_progress(quiet)
    if dry_run:
        return _conclude_dry_run(foresee(layout, engine_of(params), progress=progress))
    summary = untar(layout, engine_of(params), progress=progress)
    printing.print_untar(summary, quiet)
    return CommandOutcome(figures.untar_figures(summary, layout.own_raw_dir))


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
def annotate(data_dir: Path, raw: Path | None, quiet: bool, **params: Any) -> CommandOutcome:
    """Convert the annotation archive to raw-data/imagenet_2012_bounding_boxes.csv.

    \b
    imagenet-prep annotate /data/imagenet
    """
    from imagenet_prep.stages.annotate import annotate

    if params["boxes"] is None:  # otherwise DATA_DIR may be new: only the result goes there
        refuse_missing_data(raw or data_dir)
    summary = annotate(
        Layout(data_dir, raw),
        engine_of(params),
        boxes=params["boxes"],
        validation=params["validation_boxes"],
        progress=make_progress(quiet),
    )
    printing.print_annotate(summary, quiet)
    return CommandOutcome(figures.annotate_figures(summary))


@cli.command()
@o.folder_or_file
@click.option(
    "--output",
    type=NewFile(),
    help="The recipe's file.  [default: FOLDER's name with .yaml, here]",
)
@click.option(
    "--as",
    "as_structure",
    metavar="STRUCTURE",
    help="How to read FOLDER, if several ways are possible.",
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
def init(
    folder: Path | None, output: Path | None, as_structure: str | None, quiet: bool, **params: Any
) -> CommandOutcome:
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
        splits=split_places(params["split"]),
    )
    if params["is_list"] or params["example"] is not None:
        is_about_folder = bool(as_structure) or options != InitOptions()
        return _answer_about_examples(params, folder, output, is_about_folder=is_about_folder)
    if folder is None:
        raise UsageError(
            "init without a folder", "expected a folder of data, --list, or --example NAME"
        )
    from imagenet_prep.stages.init import init

    summary = init(
        folder,
        output,
        engine_of(params),
        structure=as_structure,
        options=options,
        progress=make_progress(quiet),
    )
    printing.print_init(summary, quiet)
    return CommandOutcome(figures.init_figures(summary))


def _answer_about_examples(
    params: Mapping[str, Any], folder: Path | None, output: Path | None, *, is_about_folder: bool
) -> CommandOutcome:
    """List the recipes of well-known data sets, or write one of them to ``output`` or ``folder``.

    Raises:
        UsageError: the call also has options for a folder of data, or names two files.
    """
    from imagenet_prep.recipes.examples import copy_example, list_examples

    is_list, name = params["is_list"], params["example"]
    names_file = output is not None or folder is not None
    names_two_files = output is not None and folder is not None
    if is_about_folder or names_two_files or (is_list and (name or names_file)):
        raise UsageError(
            "init of a known data set with other options",
            "expected --list alone, or --example NAME and the file to write",
        )
    if is_list:
        examples = list_examples()
        printing.print_example_list(examples)
        return CommandOutcome({"examples": dict(examples)})
    recipe, text = copy_example(name, output or folder)
    printing.print_example(recipe, text)
    return CommandOutcome({"recipe": str(recipe)})


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
    layout, dataset, options = read_job(Layout(data_dir, raw, output), params, progress)
    if params["config"] is None:
        refuse_missing_data(raw or data_dir)
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
    status = PROBLEMS_FOUND if summary.set_aside else 0
    return CommandOutcome(figures.convert_figures(summary, layout.output_dir), status)


@cli.command()
@o.data_dir
@o.output
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
        summary = merge(layout, progress=make_progress(quiet))
        return _Merged(layout, summary, look(layout))

    work = SetWork(
        do=join,
        show=lambda merged: printing.print_merge(merged.summary, merged.verdict, quiet),
        figures=_merge_figures,
        status_of=lambda merged: _status_of(merged.verdict, merged.summary.set_aside),
    )
    return each_set(Layout(data_dir, output=output), work, has_heads=not quiet)


class _Merged(NamedTuple):
    """A set that merge finished, and its verdict."""

    layout: Layout
    summary: ConvertSummary
    verdict: Verdict


def _merge_figures(merged: _Merged) -> dict[str, Any]:
    return {
        **figures.convert_figures(merged.summary, merged.layout.output_dir),
        **figures.verdict_figures(merged.verdict),
    }


@cli.command()
@o.set_file_or_raw
@o.raw_copy
@o.raw_depth
@click.option(
    "--allow-incomplete",
    is_flag=True,
    help="Without a manifest, or with --raw: treat it as a part of ILSVRC2012.",
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
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.stages.verify import verify, verify_file

    progress = make_progress(quiet)
    if params["raw"] or params["config"]:
        return _verify_raw(data_dir, params, progress)
    if data_dir is None:
        raise UsageError(
            "verify without a folder",
            "expected DATA_DIR, a TFRecord file, --raw FOLDER or --config FILE",
        )
    place = find_place(data_dir)
    depth = depth_of(params)
    check = functools.partial(
        verify,
        engine=engine_of(params),
        depth=depth,
        allow_incomplete=params["allow_incomplete"],
        share=note_share(params["share"], progress),
        progress=progress,
    )
    if not isinstance(place, Layout):
        check = functools.partial(verify_file, depth=depth)
    work = SetWork(check, printing.print_verdict, Verdict.as_dict, _status_of)
    return each_set(place, work)


def _verify_raw(
    data_dir: Path | None, params: Mapping[str, Any], progress: Progress
) -> CommandOutcome:
    """Check a copy of images: of ILSVRC2012, or of a recipe."""
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.registry import ILSVRC2012, read_dataset
    from imagenet_prep.stages.verify_raw import verify_raw

    raw, recipe = params["raw"], params["config"]
    if params["share"] is not None:
        option = "--raw" if raw else "--config"
        raise UsageError(f"--rank with {option}", "expected it for shards", "leave it out")
    if data_dir is not None:
        refuse_missing_data(data_dir)
    dataset = read_dataset(recipe) if recipe else ILSVRC2012
    options = dataset.options
    if isinstance(options, ConvertOptions) and params["allow_incomplete"]:
        options = options.replace(allow_incomplete=True)
    folder = raw or recipe.parent
    verdict = verify_raw(
        Layout(data_dir or folder, raw),
        engine_of(params),
        dataset=dataset,
        options=options,
        depth=params["depth"],
        progress=progress,
    )
    printing.print_raw_verdict(verdict)
    return CommandOutcome(verdict.as_dict(), PROBLEMS_FOUND if verdict.problems else 0)


@cli.command()
@o.places
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

    def show(summary: RepairRun) -> None:
        printing.print_repair(summary, quiet)
        _conclude(summary.verdict, quiet)

    verify_and_repair = functools.partial(
        pipeline.verify_and_repair,
        engine=engine_of(params),
        depth=params["depth"],
        progress=make_progress(quiet),
    )
    work = SetWork(
        do=verify_and_repair,
        show=show,
        figures=figures.repair_figures,
        status_of=lambda summary: _status_of(summary.verdict),
    )
    return each_set(Layout(data_dir, raw, output), work, has_heads=not quiet)


@cli.command()
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
@o.workers
def diff(
    set_a: AnyPath,
    set_b: AnyPath,
    limit: int,
    by_bytes: bool,
    quiet: bool,
    **params: Any,
) -> CommandOutcome:
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
        engine=engine_of(params),
        by_bytes=by_bytes,
        look_into=limit,
        progress=make_progress(quiet),
    )
    if not quiet:
        printing.print_diff(difference, limit)
    return CommandOutcome(difference.as_dict(), 0 if difference.is_same else PROBLEMS_FOUND)


@cli.command()
@o.places
def status(data_dir: Path, raw: Path | None, output: Path | None, quiet: bool) -> CommandOutcome:
    """Show each stage as done, partly done or not started, and the next command.

    \b
    imagenet-prep status /data/imagenet
    """
    from imagenet_prep.stages.status import Status, status, unknown
    from imagenet_prep.storage.refusals import as_error

    refuse_missing(output or data_dir, OF_A_RUN)

    def look(layout: Layout) -> Status:
        try:
            return status(layout)
        except (OSError, InputError) as error:
            refusal = as_error(error) if isinstance(error, OSError) else error
            if refusal is None:
                raise
            return unknown(refusal, output or data_dir)

    work = SetWork(look, printing.print_status, Status.as_dict)
    return each_set(Layout(data_dir, raw, output), work)


@cli.command()
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
    help="Show the images that this CSV names, each with its reason, as a set.",
)
@click.option(
    "--output",
    "page",
    type=NewFile(o.HTML),
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

    engine = engine_of(params)
    progress = make_progress(quiet)
    place = find_place(data_dir)
    set_count = len(place.sets()) if isinstance(place, Layout) else 1
    marks = params["mark"] and _read_marks(params["mark"], set_count)
    summaries: list[ReportSummary] = []

    def make(set_or_file: Layout | AnyPath) -> ReportSummary:
        layout = set_or_file if isinstance(set_or_file, Layout) else Layout(set_or_file.parent)
        set_page = page
        if page and set_count > 1:
            set_page = page.with_stem(f"{page.stem}-{layout.set_name}")
        if set_page is None:
            refuse_unwritable(layout.report_path)
        return pipeline.report(
            set_or_file,
            engine,
            samples=params["samples"],
            near_duplicates=params["near_duplicates"],
            mark=marks,
            page=set_page,
            progress=progress,
        )

    def show(summary: ReportSummary) -> None:
        summaries.append(summary)
        printing.print_report(summary, quiet)
        if is_opened:
            _open(summary.path)

    work = SetWork(
        do=make,
        show=show,
        figures=figures.report_figures,
        status_of=lambda summary: _status_of(summary.verdict),
    )
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
        tell(f"note: {describe_unknown(names)}", error=True)


class _ShowCommand(o.Command):
    """A command whose JSON is a line for each record."""

    writes_lines = True


@cli.command(cls=_ShowCommand)
@click.argument("file", type=o.any_file)
@click.option("--limit", type=Number(min=1), help="Show at most this many records.")
@click.option("--record", type=Number(min=0), help="Show only this record; the first is 0.")
@click.option(
    "--image", type=NewFile(o.PNG), help="Save the record's image here as PNG, boxes drawn."
)
def show(
    file: Path, limit: int | None, record: int | None, image: Path | None, quiet: bool
) -> CommandOutcome:
    """Print the records of any TFRecord file.

    \b
    imagenet-prep show /data/imagenet/train-00000-of-01024 --limit 3
    """
    from imagenet_prep.stages.show import save_image, show

    count = printing.print_records(show(file, limit=limit, record=record))
    if not count and not quiet:
        say(f"{file} holds no records", error=True)
    if image is not None:
        save_image(file, record or 0, image)
    return CommandOutcome()


class _ExportCommand(o.Command):
    """A command whose help ends with a line for each format."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each format."""
        with formatter.section("Formats"):
            formatter.write_dl(list(describe_formats().items()))


@cli.command(cls=_ExportCommand)
@click.argument("container", type=OneOf(FORMATS))
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

    tfds copies no records: it writes a few files to OUT, or to DATA_DIR/tfds.

    \b
    imagenet-prep export webdataset /data/imagenet /data/imagenet-tars
    imagenet-prep export tfds /data/imagenet
    """
    from imagenet_prep.exports import load_format
    from imagenet_prep.stages.export import export

    all_sets = Layout(data_dir)
    engine = engine_of(params)
    progress = make_progress(quiet)
    if out is None or load_format(container).unit == "set":
        all_sets.refuse_urls()
    refuse_missing(data_dir)

    def pack(layout: Layout) -> ExportSummary:
        target = out
        if len(all_sets.sets()) > 1:
            target = (out or data_dir / container) / layout.set_name
        return export(
            layout, container, target, engine, on_damaged=params["on_damaged"], progress=progress
        )

    work = SetWork(
        do=pack,
        show=lambda summary: printing.print_export(summary, quiet),
        figures=figures.export_figures,
        status_of=lambda summary: PROBLEMS_FOUND if summary.left_out else 0,
    )
    return each_set(all_sets, work, has_heads=not quiet)


@cli.command()
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

    folder = data_dir or Path(tempfile.mkdtemp(prefix="imagenet-prep-demo-"))
    try:
        summary = run_demo(
            folder,
            engine_of(params),
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
    return CommandOutcome(figures.run_figures(summary, Layout(folder)), code)


@cli.command()
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
def completion(shell: str, quiet: bool) -> CommandOutcome:
    """Print the script that lets your shell complete commands, options and paths; save it where the
    shell looks.

    \b
    imagenet-prep completion bash >> ~/.bash_completion
    imagenet-prep completion zsh > ~/.zfunc/_imagenet-prep  (~/.zfunc is in fpath)
    imagenet-prep completion fish > ~/.config/fish/completions/imagenet-prep.fish
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    whole_command = click.get_current_context().find_root().command
    script = shell_class(whole_command, {}, "imagenet-prep", "_IMAGENET_PREP_COMPLETE").source()
    say(*script.split("\n"))
    return CommandOutcome({"shell": shell, "script": script})


def _status_of(verdict: Verdict, set_aside: int = 0) -> int:
    """The exit status of a verdict, and of images that were set aside."""
    return PROBLEMS_FOUND if set_aside or verdict.problems else 0


def _open(page: AnyPath) -> None:
    import webbrowser

    local = local_or_none(page)
    if local is None or not webbrowser.open(local.resolve().as_uri()):
        say(f"no browser found here: open {page} in one", error=True)


def _conclude_dry_run(needs: Sequence[Need]) -> CommandOutcome:
    """Print the needs; report an error if they do not fit."""
    from imagenet_prep.storage.space import refuse_lack

    printing.print_needs(needs)
    refuse_lack(needs)
    say("It fits.", colour="green")
    return CommandOutcome(figures.needs_figures(needs))


def _conclude(verdict: Verdict, quiet: bool, *, set_aside: int = 0) -> int:
    """Print the verdict after other work; if quiet, only one that has no exit status 0."""
    status = _status_of(verdict, set_aside)
    if status or not quiet:
        printing.print_verdict(verdict)
    return status
