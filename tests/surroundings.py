"""The table of surroundings: disks, clocks, proxies, certificates, addresses, and how a download
must end in each.

A row is a function that makes the surroundings of a Place. What it returns, if anything, puts them
right again; patches of the process and the address are put right by themselves.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import resource
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fault_server import CANARY, USERNAME
from scripted_server import (
    ALWAYS,
    RIGHT,
    SIZE,
    Answer,
    Behaviour,
    Outcome,
    ScriptedServer,
    scripted_server,
)

PASSWORD = f"{CANARY}-proxy"


@dataclass(slots=True)
class Place:
    """Where a download runs.

    Args:
        server: one that does as it should.
        folder: for whatever is needed.
        patch: changes this process until the surroundings are put right.
        stack: closed when the test ends.
        url: the address that the download gets.
    """

    server: ScriptedServer
    folder: Path
    patch: pytest.MonkeyPatch
    stack: contextlib.ExitStack
    url: str

    @property
    def data(self) -> Path:
        """DATA_DIR."""
        return self.folder / "data"

    def act(self, act: Callable[[Answer], None]) -> None:
        """Let the server do this once, in place of the right answer to a part."""
        self.server.misbehave(Behaviour(act, "parts", 1, RIGHT, RIGHT))


Make = Callable[[Place], object]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A row: its name, what a download ends with in it, words of the error, and what makes it."""

    name: str
    outcome: Outcome
    words: tuple[str, ...]
    make: Make


TABLE: list[Surroundings] = []


def must(outcome: Outcome, *words: str) -> Callable[[Make], Make]:
    """Put a function into the table, with what must come of it, and words of the error."""

    def enter(make: Make) -> Make:
        TABLE.append(Surroundings(make.__name__, outcome, words, make))
        return make

    return enter


# disks --------------------------------------------------------------------------------------------


def _mount(place: Place, options: str) -> None:
    """A file system of its own for DATA_DIR."""
    place.data.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place.data)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let us mount a small disk: {done.stderr.strip()}")
    place.stack.callback(subprocess.run, ["umount", "--lazy", str(place.data)], check=True)


@must(7, "no space left", "free some space")
def disk_gets_full(place: Place) -> object:
    """Someone else takes the room while it runs, all but 200 kB."""
    _mount(place, "size=8m")
    others = place.data / "others"

    def act(answer: Answer) -> None:
        others.write_bytes(bytes(shutil.disk_usage(place.data).free - 200_000))
        answer.reply(*answer.right())

    place.act(act)
    return others.unlink


def _small_disk(options: str, right: str) -> Make:
    def make(place: Place) -> object:
        _mount(place, options)
        return lambda: subprocess.run(["mount", "-o", f"remount,{right}", place.data], check=True)

    return make


def _failing(name: str, number: int, after: int) -> Make:
    """A call of the system that fails for the partial file, after so many that did not."""
    real, calls = getattr(os, name), []

    def call(file: int, *arguments: Any) -> Any:
        if Path(f"/proc/self/fd/{file}").readlink().suffix == ".part":
            calls.append(file)
            if len(calls) > after:
                raise OSError(number, os.strerror(number))
        return real(file, *arguments)

    def make(place: Place) -> None:
        calls.clear()
        place.patch.setattr(os, name, call)

    return make


@must(1, "cannot write", "ulimit")
def file_may_not_grow(place: Place) -> object:
    """EFBIG: ulimit -f."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@must(RIGHT)
def writes_are_short(place: Place) -> None:
    """The system takes no more than 1,000 bytes at a time."""
    real = os.pwrite
    place.patch.setattr(os, "pwrite", lambda file, data, offset: real(file, data[:1000], offset))


TABLE += [
    Surroundings(
        "disk_is_too_small", 7, ("not enough space", "needed"), _small_disk("size=280k", "size=8m")
    ),
    Surroundings("disk_is_read_only", 1, ("writable",), _small_disk("size=8m,ro", "rw,size=8m")),
    Surroundings(
        "disk_fails_in_a_write", 1, ("cannot write", "dmesg"), _failing("pwrite", errno.EIO, 2)
    ),
    Surroundings(
        "disk_fails_in_a_sync", 1, ("cannot write", "dmesg"), _failing("fsync", errno.EIO, 0)
    ),
]


# clocks -------------------------------------------------------------------------------------------


def _clock_jumps(seconds: float, **headers: str) -> Make:
    """The clock on the wall jumps when the first part is asked for;
    that answer is cut, or tells to wait.
    """
    real = time.time

    def make(place: Place) -> None:
        jump = [0.0]

        def act(answer: Answer) -> None:
            jump[0] = seconds
            if headers:
                answer.nothing(503, **headers)
            else:
                answer.cut(len(answer.right()[2]) // 2)

        place.act(act)
        place.patch.setattr(time, "time", lambda: real() + jump[0])

    return make


_NOW = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
TABLE += [
    Surroundings("clock_jumps_forward_ten_years", RIGHT, (), _clock_jumps(3e8)),
    Surroundings(
        "clock_jumps_backward_while_it_waits", RIGHT, (), _clock_jumps(-3e8, Retry_After=_NOW)
    ),
]


# proxies ------------------------------------------------------------------------------------------


class _Proxy(BaseHTTPRequestHandler):
    """A proxy that wants to know who asks, and through which every name leads to one server."""

    server: Any
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Pass a request on, and its answer back."""
        if self._lets_in():
            head = f"GET {urlsplit(self.path).path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            span = self.headers.get("Range")
            head += f"Range: {span}\r\n\r\n" if span else "\r\n"
            with socket.create_connection(("127.0.0.1", self.server.behind)) as upstream:
                upstream.sendall(head.encode())
                while data := upstream.recv(1 << 16):
                    self.connection.sendall(data)
            self.close_connection = True

    def do_CONNECT(self) -> None:
        """Let a tunnel be made."""
        if self._lets_in():
            self.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self.server.behind)) as upstream:
                _pump(self.connection, upstream)
            self.close_connection = True

    def _lets_in(self) -> bool:
        expected = (
            "Basic " + base64.b64encode(f"{USERNAME}:{self.server.password}".encode()).decode()
        )
        if self.server.silent:
            threading.Event().wait(2)
            self.close_connection = True
            return False
        if self.server.status or self.headers.get("Proxy-Authorization") != expected:
            self.send_response(self.server.status or 407)
            for scheme in self.server.offers:
                self.send_header("Proxy-Authenticate", f'{scheme} realm="proxy"')
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(self.server.page)))
            self.end_headers()
            self.wfile.write(self.server.page)
            return False
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Bytes both ways, until one end closes."""
    ends = {one: other, other: one}
    with contextlib.suppress(OSError):
        while True:
            for end in select.select([one, other], [], [], 10)[0]:
                if not (data := end.recv(1 << 16)):
                    return
                ends[end].sendall(data)


def _proxy(
    scheme: str = "http",
    user: str = f"{USERNAME}:{PASSWORD}@",
    host: str = "127.0.0.1",
    speaks: str = "http",
    **faults: Any,
) -> Make:
    """A proxy between, which the environment names;
    ``speaks`` is what its address there begins with.
    """

    def make(place: Place) -> None:
        proxy: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
        proxy.daemon_threads = True
        proxy.behind, proxy.status, proxy.page, proxy.silent = (
            place.server.server_port,
            0,
            b"",
            False,
        )
        proxy.password, proxy.offers = PASSWORD, ("Basic",)
        proxy.__dict__.update(faults)
        threading.Thread(
            target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        place.stack.callback(proxy.server_close)
        place.stack.callback(proxy.shutdown)
        address = f"{speaks}://{user}{host}:{proxy.server_port}"
        place.patch.setenv(f"{scheme.upper()}_PROXY", address)
        place.url = f"{scheme}://archives.invalid/"

    return make


def _named(proxy: str) -> Make:
    """The environment names this as the proxy."""

    def make(place: Place) -> None:
        place.patch.setenv("HTTP_PROXY", proxy)
        place.url = "http://archives.invalid/"

    return make


@must(RIGHT)
def proxy_makes_a_tunnel(place: Place) -> None:
    """TLS through it."""
    place.server = _secure(place, "good")
    _proxy("https")(place)


_OURS = "the proxy 127.0.0.1"
_UNKNOWN = (
    "can't reach the proxy no-such-proxy.invalid:",
    "no address was found for its name",
    "nothing was fetched",
)
_NO_CONNECTION = "no connection to the proxy 127.0.0.1:9 ("
TABLE += [
    Surroundings(f"proxy_{name}", outcome, words, make)
    for name, outcome, words, make in (
        ("does_as_it_should", RIGHT, (), _proxy()),
        (
            "wants_a_password",
            6,
            (_OURS, "407", "HTTP_PROXY=http://USER:PASSWORD@"),
            _proxy(user=""),
        ),
        (
            "wants_another_password",
            6,
            (_OURS, "407", "HTTPS_PROXY="),
            _proxy("https", user=f"{USERNAME}:{CANARY}@"),
        ),
        (
            "has_an_odd_password",
            5,
            ("127.0.0.1", "HTTP_PROXY"),
            _proxy(user=f"{USERNAME}:1/{CANARY}#@"),
        ),
        ("of_no_address", 5, ("HTTP_PROXY",), _named(f"http://a:{CANARY}@[::1")),
        ("refuses", 5, (_OURS, "403", "NO_PROXY=archives.invalid"), _proxy("https", status=403)),
        ("is_busy", 5, (_OURS, "503", "4 failed attempts"), _proxy("https", status=503)),
        ("falls_silent", 5, ("4 failed attempts",), _proxy(silent=True)),
        ("is_unknown", 5, (*_UNKNOWN, "HTTP_PROXY"), _proxy(host="no-such-proxy.invalid")),
        (
            "is_not_there",
            5,
            (_NO_CONNECTION, "HTTP_PROXY", "nothing was fetched"),
            _named("http://127.0.0.1:9"),
        ),
        # none can reach the loopback of this machine
        (
            "is_not_asked",
            RIGHT,
            (),
            lambda place: place.patch.setenv("HTTP_PROXY", "http://127.0.0.1:9"),
        ),
    )
]


# TLS ----------------------------------------------------------------------------------------------

_OTHER = "subjectAltName=DNS:other.invalid"
_NAMES = "subjectAltName=IP:127.0.0.1,IP:::1,DNS:archives.invalid"


@cache
def _certificates(folder: Path) -> dict[str, Path]:
    """Certificates, each with its key in one file:
    of an authority, by it (good, wrong, expired), and of its own.
    """

    def openssl(words: str, *more: str) -> None:
        command = ["openssl", *words.split(), *more]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    openssl(f"req -x509 {key} -days 3 -subj /CN=authority -keyout authority.key -out authority")
    for name, names, days in (("good", _NAMES, 3), ("wrong", _OTHER, 3), ("old", _NAMES, -1)):
        openssl(f"req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (folder / "names").write_text(names)
        by = "-CA authority -CAkey authority.key -CAcreateserial -extfile names"
        openssl(f"x509 -req -in {name}.csr {by} -days {days} -out {name}")
    openssl(f"req -x509 {key} -days 3 -subj /CN=own -keyout own.key -out own", "-addext", _NAMES)
    for name in ("good", "wrong", "old", "own"):
        (folder / f"{name}.both").write_bytes(
            (folder / f"{name}.key").read_bytes() + (folder / name).read_bytes()
        )
    return {name: folder / f"{name}.both" for name in ("good", "wrong", "old", "own")} | {
        "": folder / "authority"
    }


def _secure(place: Place, name: str) -> ScriptedServer:
    """A server with one of the certificates; the authority is trusted."""
    folder = place.folder.parents[0] / "certificates"  # one for all tests
    folder.mkdir(exist_ok=True)
    found = _certificates(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(found[name])
    server = place.stack.enter_context(scripted_server(place.folder / name, tls))
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(found[""]))
    place.url = server.url
    return server


def _by(certificate: str) -> Make:
    return lambda place: _secure(place, certificate) and None


@must(5, "redirect", "from https to http")
def https_leads_to_http(place: Place) -> None:
    """Where anyone can read and change what is sent."""
    plain, server = place.server.url, _secure(place, "good")
    server.misbehave(
        Behaviour(lambda answer: answer.nothing(302, Location=f"{plain}a.tar"), "all", ALWAYS, 5, 5)
    )


@must(2, "REQUESTS_CA_BUNDLE")
def authorities_are_not_there(place: Place) -> None:
    """REQUESTS_CA_BUNDLE names no file."""
    _secure(place, "good")
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(place.folder / "nothing"))


_UNTRUSTED = ("can't prove its identity", "certificate")
TABLE += [
    Surroundings("certificate_is_good", RIGHT, (), _by("good")),
    Surroundings(
        "certificate_is_its_own",
        5,
        (*_UNTRUSTED, "this machine's clock, and the certificates that REQUESTS_CA_BUNDLE names"),
        _by("own"),
    ),
    Surroundings("certificate_has_expired", 5, (*_UNTRUSTED, "clock"), _by("old")),
    Surroundings("certificate_is_of_another", 5, (*_UNTRUSTED, "--base-url"), _by("wrong")),
]


# addresses ----------------------------------------------------------------------------------------


@must(5, "does not speak TLS", "write http://")
def https_is_http(place: Place) -> None:
    """The server speaks without TLS."""
    place.url = place.server.url.replace("http", "https")


def _at(url: str) -> Make:
    return lambda place: setattr(place, "url", url)


_UNREACHED = ("no connection", "nothing was fetched")
_NO_HOST = (
    "can't reach no-such-host.invalid: no address was found for its name",
    "nothing was fetched",
)
TABLE += [
    Surroundings("nobody_is_there", 5, _UNREACHED, _at("http://127.0.0.1:9/")),
    Surroundings("server_is_unknown", 5, _NO_HOST, _at("http://no-such-host.invalid/")),
]
