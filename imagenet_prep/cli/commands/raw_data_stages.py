"""download, untar and annotate: the raw data of ImageNet, before any shard is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from imagenet_prep.cli import options as o
from imagenet_prep.cli.base_command import Command
from imagenet_prep.cli.command_outcome import CommandOutcome
from imagenet_prep.cli.download_arguments import (
    archive_keys,
    download_options,
    find_account,
    site_of,
)
from imagenet_prep.cli.dry_runs import conclude_dry_run
from imagenet_prep.cli.figures import annotate_figures, download_figures, untar_figures
from imagenet_prep.cli.place_checks import refuse_missing_data
from imagenet_prep.cli.printing.raw_data_text import print_annotate, print_download, print_untar
from imagenet_prep.cli.progress_display import make_progress
from imagenet_prep.cli.stage_arguments import engine_of
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imagenet_prep.fetch.providers import Site
    from imagenet_prep.ilsvrc2012.class_parts import Part
    from imagenet_prep.stages.download import DownloadSummary


class _Request(NamedTuple):
    """The files to download: which archives, which classes of them, and from where.

    Args:
        site: None: from image-net.org.
    """

    keys: Sequence[str]
    part: Part
    site: Site | None


@click.command(cls=Command)
@o.data_dir
@o.only
@click.option(
    "--classes",
    metavar="FILE|NAME",
    help="Only these classes: a file of wnids, or imagenette, imagewoof, imagenet-100.",
)
@o.fetching
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
    from imagenet_prep.ilsvrc2012.class_parts import find_part

    keys = archive_keys(only)
    part = find_part(params["classes"])
    site = site_of(params, keys)
    request = _Request(keys, part, site)
    layout = Layout(data_dir)
    _refuse_archives_elsewhere(layout, keys)
    if params["dry_run"]:
        return _foresee_download(layout, request, params, quiet)
    summary = _download_files(layout, request, params, quiet)
    print_download(summary, quiet)
    figures = download_figures(summary, layout.own_raw_dir)
    return CommandOutcome(figures)


def _refuse_archives_elsewhere(layout: Layout, keys: Sequence[str]) -> None:
    """Refuse to download archives that are near the place where they are expected."""
    from imagenet_prep.ilsvrc2012.astray import refuse_astray

    for key in keys:
        archive = facts.ARCHIVES[key]
        if not layout.archive_path(archive).is_file():
            refuse_astray(layout, key)


def _foresee_download(
    layout: Layout, request: _Request, params: Mapping[str, Any], quiet: bool
) -> CommandOutcome:
    """Print the space that the files would require."""
    from imagenet_prep.stages.download import all_come, foresee, foresee_copy

    keys, part, site = request
    progress = make_progress(quiet)
    if site is None:
        check_digest = not params["no_digest"]
        files = foresee(layout, only=keys, part=part, check_digest=check_digest)
    else:
        files = foresee_copy(layout, site, progress=progress)
        if not part.is_whole:
            progress.note(all_come(site, part))
    needs = [file.need(layout) for file in files]
    return conclude_dry_run(needs)


def _download_files(
    layout: Layout, request: _Request, params: Mapping[str, Any], quiet: bool
) -> DownloadSummary:
    """Download the archives of image-net.org, or the copy of a site."""
    from imagenet_prep.stages.download import download, download_copy, foresee

    keys, part, site = request
    progress = make_progress(quiet)
    options = download_options(params, site)
    if site is not None:
        return download_copy(layout, site, options, part=part, progress=progress)
    missing_archives = foresee(layout, only=keys, part=part, check_digest=options.check_digest)
    account = None
    if missing_archives:
        account = find_account(params)
    options = replace(options, credentials=account)
    return download(layout, options, only=keys, part=part, progress=progress)


@click.command(cls=Command)
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
    layout = Layout(data_dir, raw)
    engine = engine_of(params)
    progress = make_progress(quiet)
    if dry_run:
        needs = foresee(layout, engine, progress=progress)
        return conclude_dry_run(needs)
    summary = untar(layout, engine, progress=progress)
    print_untar(summary, quiet)
    figures = untar_figures(summary, layout.own_raw_dir)
    return CommandOutcome(figures)


@click.command(cls=Command)
@o.data_dir
@o.raw
@click.option(
    "--boxes", type=o.local_place, help="Annotations: a .tar.gz, or a folder of <wnid>/*.xml."
)
@click.option(
    "--validation-boxes",
    is_flag=True,
    help="Also annotate validation images (the scripts of 2016 did not).",
)
@o.workers
def annotate(data_dir: Path, raw: Path | None, quiet: bool, **params: Any) -> CommandOutcome:
    """Convert the annotation archive to raw-data/imagenet_2012_bounding_boxes.csv.

    \b
    imagenet-prep annotate /data/imagenet
    """
    from imagenet_prep.stages.annotate import annotate

    boxes = params["boxes"]
    if boxes is None:  # otherwise DATA_DIR may be new: only the result goes there
        refuse_missing_data(raw or data_dir)
    summary = annotate(
        Layout(data_dir, raw),
        engine_of(params),
        boxes=boxes,
        validation=params["validation_boxes"],
        progress=make_progress(quiet),
    )
    print_annotate(summary, quiet)
    figures = annotate_figures(summary)
    return CommandOutcome(figures)
