"""run_demo: every stage on a small generated ImageNet,
served on this machine, without an account.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from imagenet_prep.demo.archives import make
from imagenet_prep.errors import UsageError
from imagenet_prep.fetch.credentials import Credentials
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.pipeline import RunSummary, missing_archives, run
from imagenet_prep.stages.download import DownloadOptions
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import number_of

TRAIN_SHARDS, VALIDATION_SHARDS = 8, 2
"""The defaults would make most of the 1152 shards empty: the demo has far fewer images."""

MANY = 2000
"""Enough train images to show the progress of every stage."""

USERNAME = "demo"

_OTHER = "choose another folder"


def run_demo(
    data_dir: Path,
    engine: Engine,
    *,
    classes: int = 20,
    per_class: int = 12,
    progress: Progress | None = None,
) -> RunSummary:
    """Make archives with the official names, serve them on 127.0.0.1 behind credentials, and run
    every stage on them.

    The code of the stages is the same as for the real ImageNet; only the URL and the digests
    differ.

    Args:
        data_dir: the DATA_DIR to fill; a second run on the same folder finds everything done.
        engine: runs the work.
        classes: the number of classes, of 1000.
        per_class: train images per class; there are a quarter as many validation images.
        progress: gets the progress of each stage.

    Raises:
        UsageError: the folder holds other files, or a demo with other numbers.
    """
    progress, layout = progress or Silent(), Layout(data_dir)
    layout.refuse_urls()
    numbers = {"classes": classes, "per_class": per_class}
    _refuse_other(layout, numbers)
    options = ConvertOptions(
        train_shards=TRAIN_SHARDS, validation_shards=VALIDATION_SHARDS, allow_incomplete=True
    )
    progress.note(
        "Some images and annotations of the demo are odd or damaged on purpose, "
        "as in the real archives."
    )
    of_stages = Silent() if classes * per_class < MANY else progress
    if layout.demo_path.exists() and not missing_archives(layout):
        progress.note("the archives of an earlier run are kept")
        return run(layout, engine, extract=True, options=options, progress=of_stages)
    save_json(layout.demo_path, numbers)
    with tempfile.TemporaryDirectory(prefix="imagenet-prep-") as folder:
        progress.note(f"making a small ImageNet: {_in_words(classes, per_class)}")
        count = max(2, classes * per_class // 4)
        demo_set = make(
            Path(folder), classes=classes, per_class=per_class, validation=count, progress=progress
        )
        credentials = Credentials(USERNAME, secrets.token_urlsafe(12))
        with _serve(Path(folder), credentials) as base_url:
            source = DownloadOptions(
                base_url=base_url, credentials=credentials, digests=demo_set.md5
            )
            return run(
                layout, engine, fetching=source, extract=True, options=options, progress=of_stages
            )


def _refuse_other(layout: Layout, numbers: Mapping[str, int]) -> None:
    """Raise UsageError if the folder holds anything except a demo with the same numbers."""
    folder, demo = layout.data_dir, load_json(layout.demo_path)
    if not _are_numbers(demo) and folder.is_dir() and any(folder.iterdir()):
        expected = "expected a new or empty folder, or an earlier demo"
        raise UsageError(f"{folder} holds other files", expected, _OTHER)
    if isinstance(demo, dict) and demo != numbers and layout.raw_dir.exists():
        classes, per_class = demo["classes"], demo["per_class"]
        problem = f"{folder} holds a demo of {_in_words(classes, per_class)}"
        expected = f"expected --classes {classes} --per-class {per_class}"
        raise UsageError(problem, expected, _OTHER)


def _in_words(classes: int, per_class: int) -> str:
    return f"{number_of(classes, 'class', 'classes')} of {number_of(per_class, 'train image')}"


def _are_numbers(demo: object) -> bool:
    """Whether a value is what a demo saves: its numbers of classes and images."""
    if not isinstance(demo, dict) or demo.keys() != {"classes", "per_class"}:
        return False
    return all(isinstance(number, int) for number in demo.values())


# the server of the archives -----------------------------------------------------------------------


@contextlib.contextmanager
def _serve(folder: Path, credentials: Credentials) -> Iterator[str]:
    """Serve a folder on 127.0.0.1 behind Basic credentials while the block runs;
    yields the base URL.
    """
    text = f"{credentials.username}:{credentials.password}"
    server = _Server(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
    server.authorization = "Basic " + base64.b64encode(text.encode()).decode()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    authorization: str

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients may disconnect halfway."""


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: _Server

    def send_head(self) -> Any:
        """The requested file, once its headers are sent; None without the right credentials."""
        authorization = self.headers.get("Authorization", "")
        if secrets.compare_digest(authorization.encode(), self.server.authorization.encode()):
            return super().send_head()
        self.send_response(HTTPStatus.UNAUTHORIZED)
        self.send_header("WWW-Authenticate", 'Basic realm="archives"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
