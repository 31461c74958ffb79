"""A server of one folder that asks for credentials and answers ranges;
servers with faults are made from it.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import os
import re
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

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
    is_open = False
    """Whether everyone is welcome."""

    def __init__(
        self, handler: type[FileHandler], folder: Path, username: str, password: str
    ) -> None:
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
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
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
    disable_nagle_algorithm = (
        True  # otherwise a small body waits 40 ms for the acknowledgement of its headers
    )
    server: FileServer

    def do_GET(self) -> None:
        """Answer a GET or a HEAD."""
        self.answer()

    do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

    def answer(self) -> None:
        """Answer a GET or a HEAD."""
        path = self.find_file()
        if not self.is_welcome():
            self.send_nothing(
                HTTPStatus.UNAUTHORIZED,
                {"WWW-Authenticate": 'Basic realm="archives", charset="UTF-8"'},
            )
        elif path is None:
            self.send_nothing(HTTPStatus.NOT_FOUND)
        else:
            self.send_file(path)

    def is_welcome(self) -> bool:
        """Whether the request has the right credentials, or needs none."""
        given = self.headers.get("Authorization", "")
        return self.server.is_open or secrets.compare_digest(
            given.encode(), self.server.authorization.encode()
        )

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
        """Start and stop of the requested range, None for the whole file;
        start >= stop: beyond the end.
        """
        condition = self.headers.get("If-Range")
        if condition is not None and condition not in (headers["ETag"], headers["Last-Modified"]):
            return None
        return parse_range(self.headers.get("Range"), size)

    def send_nothing(self, status: int, headers: dict[str, str] | None = None) -> None:
        """Send an answer without a body."""
        self.send_head(status, {**(headers or {}), "Content-Length": "0"})

    def send_part(
        self, file: BinaryIO, start: int, stop: int, status: int, headers: dict[str, str]
    ) -> None:
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
