"""The whole way on a small ImageNet of our own making, without an account."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from imagenet_prep.demo.archives import make
from imagenet_prep.demo.server import serve
from imagenet_prep.errors import NOTHING_KEPT, Terminated, UsageError
from imagenet_prep.fetch.access import Credentials
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.pipeline import RunSummary, missing_archives, run
from imagenet_prep.stages.download import DownloadOptions
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout

TRAIN_SHARDS, VALIDATION_SHARDS = 8, 2
"""A thousandth of the real thing's images would leave most of its 1152 shards empty."""

USERNAME = "demo"

_OTHER = "choose another folder"


def run_demo(
    data_dir: Path, engine: Engine, *, classes: int = 20, per_class: int = 12, progress: Progress | None = None
) -> RunSummary:
    """Make archives under the official names, serve them on 127.0.0.1 behind credentials, run every stage on them.

    The stages are the same code as for the real ImageNet, which is told apart by its URL and its digests only.

    Args:
        data_dir: the DATA_DIR to fill; run again on the same folder, it finds everything done.
        engine: where work runs.
        classes: how many of the 1000 classes.
        per_class: train images a class; a quarter of all train images again are validation images.
        progress: where to report.

    Raises:
        UsageError: the folder holds something that no demo made, or one of other numbers.
    """
    progress, layout = progress or Silent(), Layout(data_dir)
    layout.refuse_urls()
    wanted = {"classes": classes, "per_class": per_class}
    _refuse_other(layout, wanted)
    options = ConvertOptions(train_shards=TRAIN_SHARDS, validation_shards=VALIDATION_SHARDS, allow_incomplete=True)
    if layout.demo_path.exists() and not missing_archives(layout):
        progress.note("the archives are there from an earlier run: they are not made and fetched again")
        return run(layout, engine, extract=True, options=options, progress=progress)
    save_json(layout.demo_path, wanted)
    with tempfile.TemporaryDirectory(prefix="imagenet-prep-") as folder:
        progress.note(f"making a small ImageNet: {classes} classes of {per_class} images")
        try:
            count = max(2, classes * per_class // 4)
            made = make(Path(folder), classes=classes, per_class=per_class, validation=count, progress=progress)
        except (KeyboardInterrupt, Terminated) as stop:
            raise type(stop)(NOTHING_KEPT) from stop
        password = secrets.token_urlsafe(12)
        with serve(Path(folder), USERNAME, password) as base_url:
            progress.note(f"serving it at {base_url}, for user {USERNAME} only")
            return run(
                layout,
                engine,
                fetching=DownloadOptions(
                    base_url=base_url, credentials=Credentials(USERNAME, password), digests=made.md5
                ),
                extract=True,
                options=options,
                progress=progress,
            )


def _refuse_other(layout: Layout, wanted: Mapping[str, int]) -> None:
    """Raise UsageError if the folder holds anything but a demo of the same numbers."""
    folder, known = layout.data_dir, load_json(layout.demo_path)
    if known is None and folder.is_dir() and any(folder.iterdir()):
        expected = "expected a new or empty folder, or one of the demo"
        raise UsageError(f"{folder} holds something already", expected, _OTHER)
    if isinstance(known, dict) and known != wanted and layout.raw_dir.exists():
        numbers = f"{known.get('classes')} classes of {known.get('per_class')} images"
        raise UsageError(f"{folder} holds a demo of {numbers}", "expected to make the same again", _OTHER)
