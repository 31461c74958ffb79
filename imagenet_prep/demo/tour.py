"""run_demo: every stage on a small generated ImageNet, served on this machine, without an account."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from imagenet_prep.demo.archives import make
from imagenet_prep.errors import NOTHING_KEPT, Terminated, UsageError
from imagenet_prep.fetch.access import Credentials
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.pipeline import RunSummary, missing_archives, run
from imagenet_prep.stages.download import DownloadOptions
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


@contextlib.contextmanager
def serve(folder: Path, username: str, password: str) -> Iterator[str]:
    """Serve the files directly in ``folder`` behind Basic credentials while the block runs.

    Yields:
        The base URL, ending in "/".
    """
    with run_server(FileServer(FileHandler, folder, username, password)) as url:
        yield url


class FileServer(ThreadingHTTPServer):
    """A silent server of one folder, on 127.0.0.1 and a free port."""

    daemon_threads = True

    def __init__(self, handler: type[FileHandler], folder: Path, username: str, password: str) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.folder = folder
        self.authorization = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    @property
    def url(self) -> str:
        """The base URL, ending in "/"."""
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients often disconnect halfway here."""


@contextlib.contextmanager
def run_server(server: FileServer) -> Iterator[str]:
    """Run a server in a thread while the block runs, and yield its URL."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class FileHandler(BaseHTTPRequestHandler):
    """Serves HEAD and GET of whole files and of single byte ranges (RFC 9110, section 14)."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True  # otherwise a small body waits 40 ms for the acknowledgement of its headers
    server: FileServer

    def do_GET(self) -> None:
        """Answer a GET."""
        self.answer()

    def do_HEAD(self) -> None:
        """Answer a HEAD."""
        self.answer()

    def answer(self) -> None:
        """Answer a GET or a HEAD."""
        path = self.find_file()
        if not self.is_welcome():
            self.send_nothing(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Basic realm="archives", charset="UTF-8"'})
        elif path is None:
            self.send_nothing(HTTPStatus.NOT_FOUND)
        else:
            self.send_file(path)

    def is_welcome(self) -> bool:
        """Whether the request has the right credentials."""
        given = self.headers.get("Authorization", "")
        return secrets.compare_digest(given.encode(), self.server.authorization.encode())

    def find_file(self) -> Path | None:
        """The requested file, if it is directly in the folder."""
        name = unquote(urlsplit(self.path).path).removeprefix("/")
        path = self.server.folder / name
        is_plain = name not in ("", ".", "..") and "/" not in name and "\0" not in name
        return path if is_plain and path.is_file() else None

    def send_file(self, path: Path) -> None:
        """Send a file or the requested part of it."""
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())  # of the open file, which may be replaced meanwhile
            size = stat.st_size
            headers = {
                "Accept-Ranges": "bytes",
                "Content-Type": "application/octet-stream",
                "ETag": f'"{stat.st_mtime_ns:x}-{size:x}"',
                "Last-Modified": email.utils.formatdate(int(stat.st_mtime), usegmt=True),
            }
            span = self.asked_range(size, headers)
            if span is None:
                self.send_part(file, 0, size, HTTPStatus.OK, headers)
            elif span[0] >= span[1]:
                headers["Content-Range"] = f"bytes */{size}"
                self.send_nothing(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers)
            else:
                headers["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{size}"
                self.send_part(file, *span, HTTPStatus.PARTIAL_CONTENT, headers)

    def asked_range(self, size: int, headers: dict[str, str]) -> tuple[int, int] | None:
        """Start and stop of the requested range, None for the whole file; start >= stop: beyond the end."""
        condition = self.headers.get("If-Range")
        if condition is not None and condition not in (headers["ETag"], headers["Last-Modified"]):
            return None
        return parse_range(self.headers.get("Range"), size)

    def send_nothing(self, status: int, headers: dict[str, str] | None = None) -> None:
        """Send an answer without a body."""
        self.send_head(status, {**(headers or {}), "Content-Length": "0"})

    def send_part(self, file: BinaryIO, start: int, stop: int, status: int, headers: dict[str, str]) -> None:
        """Send the bytes ``start`` to ``stop`` of a file."""
        self.send_head(status, {**headers, "Content-Length": str(stop - start)})
        if self.command != "HEAD":
            self.send_bytes(file, start, stop)

    def send_head(self, status: int, headers: dict[str, str]) -> None:
        """Send the status line and the headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_bytes(self, file: BinaryIO, start: int, stop: int) -> None:
        """Send the bytes ``start`` to ``stop`` of a file, by the system's sendfile."""
        self.wfile.flush()
        if start < stop:
            self.connection.sendfile(file, start, stop - start)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Parse a single range of a file of ``size`` bytes; None if it is absent, or to be ignored.

    A range beyond the end becomes empty: start >= stop.
    """
    match = _RANGE.fullmatch((header or "").strip())
    if not match or match[1] == match[2] == "":
        return None
    if not match[1]:
        return max(0, size - int(match[2])), size
    start, stop = int(match[1]), min(size, int(match[2]) + 1) if match[2] else size
    return None if match[2] and int(match[2]) < start else (start, stop)


TRAIN_SHARDS, VALIDATION_SHARDS = 8, 2
"""The defaults would make most of the 1152 shards empty: the demo has far fewer images."""

MANY = 2000
"""Enough train images to show the progress of every stage."""

USERNAME = "demo"

_OTHER = "choose another folder"


def run_demo(
    data_dir: Path, engine: Engine, *, classes: int = 20, per_class: int = 12, progress: Progress | None = None
) -> RunSummary:
    """Make archives with the official names, serve them on 127.0.0.1 behind credentials, and run every stage on them.

    The code of the stages is the same as for the real ImageNet; only the URL and the digests differ.

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
    wanted = {"classes": classes, "per_class": per_class}
    _refuse_other(layout, wanted)
    options = ConvertOptions(train_shards=TRAIN_SHARDS, validation_shards=VALIDATION_SHARDS, allow_incomplete=True)
    progress.note("Some images and annotations of the demo are odd or damaged on purpose, as in the real archives.")
    of_stages = Silent() if classes * per_class < MANY else progress
    if layout.demo_path.exists() and not missing_archives(layout):
        progress.note("the archives of an earlier run are kept")
        return run(layout, engine, extract=True, options=options, progress=of_stages)
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
            source = DownloadOptions(base_url=base_url, credentials=Credentials(USERNAME, password), digests=made.md5)
            return run(layout, engine, fetching=source, extract=True, options=options, progress=of_stages)


def _refuse_other(layout: Layout, wanted: Mapping[str, int]) -> None:
    """Raise UsageError if the folder holds anything except a demo with the same numbers."""
    folder, known = layout.data_dir, load_json(layout.demo_path)
    if known is None and folder.is_dir() and any(folder.iterdir()):
        expected = "expected a new or empty folder, or an earlier demo"
        raise UsageError(f"{folder} holds other files", expected, _OTHER)
    if isinstance(known, dict) and known != wanted and layout.raw_dir.exists():
        numbers = f"{known.get('classes')} classes of {known.get('per_class')} images"
        raise UsageError(f"{folder} holds a demo of {numbers}", "expected the same numbers", _OTHER)
