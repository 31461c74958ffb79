"""The table of surroundings: disks, clocks, proxies, certificates, addresses, and how a download must end in each.

A row is a generator: it makes the surroundings and yields; what stands behind that puts them right again.
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
from collections.abc import Callable, Iterator
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
    ScriptedServer6,
    scripted_server,
)

PASSWORD = f"{CANARY}-proxy"


@dataclass(slots=True)
class Place:
    """Where a download runs.

    Args:
        server: one that does as it should.
        folder: for whatever is needed.
        patch: changes this process until the test ends.
        stack: closed when the test ends.
        url: what is asked.
        data: DATA_DIR.
    """

    server: ScriptedServer
    folder: Path
    patch: pytest.MonkeyPatch
    stack: contextlib.ExitStack
    url: str
    data: Path


Act = Callable[[Place], Iterator[None]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A row: what it makes, and what a download ends with in it."""

    act: Act
    outcome: Outcome
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.act.__name__


TABLE: list[Surroundings] = []


def must(outcome: Outcome, *words: str) -> Callable[[Act], Act]:
    """Put a function into the table, with what must come of it, and words of the error."""

    def enter(act: Act) -> Act:
        TABLE.append(Surroundings(act, outcome, words))
        return act

    return enter


def _act(place: Place, act: Callable[[Answer], None], times: int = ALWAYS) -> None:
    place.server.misbehave(Behaviour(act, "parts", times, RIGHT, RIGHT))


# disks ---------------------------------------------------------------------------------------------------------------


def _mount(place: Place, options: str) -> None:
    """A file system of its own for DATA_DIR."""
    place.data.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place.data)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let us mount a small disk: {done.stderr.strip()}")
    place.stack.callback(subprocess.run, ["umount", "--lazy", str(place.data)], check=True)


@must(7, "no space left", "free some space")
def disk_gets_full(place: Place) -> Iterator[None]:
    """Someone else takes the room while it runs, all but 200 kB."""
    _mount(place, "size=8m")
    others = place.data / "others"

    def act(answer: Answer) -> None:
        free = shutil.disk_usage(place.data).free
        others.write_bytes(bytes(free - 200_000))
        answer.reply(*answer.right())

    _act(place, act, times=1)
    yield
    others.unlink()


@must(7, "not enough space", "needed")
def disk_is_too_small(place: Place) -> Iterator[None]:
    """That is known before."""
    _mount(place, "size=280k")
    yield
    subprocess.run(["mount", "-o", "remount,size=8m", place.data], check=True)


@must(1, "writable")
def disk_is_read_only(place: Place) -> Iterator[None]:
    """Nothing can be written."""
    _mount(place, "size=8m,ro")
    yield
    subprocess.run(["mount", "-o", "remount,rw,size=8m", place.data], check=True)


def _failing(place: Place, name: str, number: int, after: int) -> Iterator[None]:
    """A call of the system that fails for the partial file, after so many that did not."""
    real, calls = getattr(os, name), []

    def call(file: int, *arguments: Any) -> Any:
        if Path(f"/proc/self/fd/{file}").readlink().suffix == ".part":
            calls.append(file)
            if len(calls) > after:
                raise OSError(number, os.strerror(number))
        return real(file, *arguments)

    with place.patch.context() as patch:
        patch.setattr(os, name, call)
        yield


@must(1, "cannot write", "dmesg")
def disk_fails_in_a_write(place: Place) -> Iterator[None]:
    """EIO."""
    yield from _failing(place, "pwrite", errno.EIO, 2)


@must(7, "no space left")
def quota_is_used_up(place: Place) -> Iterator[None]:
    """EDQUOT."""
    yield from _failing(place, "pwrite", errno.EDQUOT, 2)


@must(1, "cannot write", "dmesg")
def disk_fails_in_a_sync(place: Place) -> Iterator[None]:
    """EIO from fsync: what was written may be gone."""
    yield from _failing(place, "fsync", errno.EIO, 0)


@must(7, "no space left")
def disk_found_full_by_a_sync(place: Place) -> Iterator[None]:
    """ENOSPC from fsync, as file systems that allocate late have it."""
    yield from _failing(place, "fsync", errno.ENOSPC, 0)


@must(1, "cannot write", "ulimit")
def file_may_not_grow(place: Place) -> Iterator[None]:
    """EFBIG: ulimit -f."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@must(RIGHT)
def writes_are_short(place: Place) -> Iterator[None]:
    """The system takes no more than 1,000 bytes at a time."""
    real = os.pwrite
    with place.patch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, data, offset: real(file, data[:1000], offset))
        yield


@must(RIGHT)
def boots_have_no_id(place: Place) -> Iterator[None]:
    """Only what was synced counts then."""
    place.patch.setattr("imagenet_prep.fetch.partial.boot_id", lambda: "")
    yield


# clocks --------------------------------------------------------------------------------------------------------------


def _clock_jumps(place: Place, seconds: float, **headers: str) -> Iterator[None]:
    """The clock on the wall jumps when the first part is asked for; that answer is cut, or tells to wait."""
    real, jump = time.time, [0.0]

    def act(answer: Answer) -> None:
        jump[0] = seconds
        if headers:
            answer.nothing(503, **headers)
        else:
            answer.cut(len(answer.right()[2]) // 2)

    _act(place, act, times=1)
    with place.patch.context() as patch:
        patch.setattr(time, "time", lambda: real() + jump[0])
        yield


@must(RIGHT)
def clock_jumps_forward(place: Place) -> Iterator[None]:
    """Ten years."""
    yield from _clock_jumps(place, 3e8)


@must(RIGHT)
def clock_jumps_backward(place: Place) -> Iterator[None]:
    """Ten years."""
    yield from _clock_jumps(place, -3e8)


@must(RIGHT)
def clock_jumps_backward_while_it_waits(place: Place) -> Iterator[None]:
    """Until a date that lies in ten years all of a sudden."""
    yield from _clock_jumps(place, -3e8, Retry_After=time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()))


# proxies -------------------------------------------------------------------------------------------------------------


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
        expected = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if self.server.silent:
            threading.Event().wait(2)
            self.close_connection = True
            return False
        if self.server.status or self.headers.get("Proxy-Authorization") != expected:
            page = self.server.page
            self.send_response(self.server.status or 407)
            self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            self.send_header("Content-Type", "text/html" if page else "text/plain")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
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


def _through(
    place: Place, scheme: str = "http", user: str = f"{USERNAME}:{PASSWORD}@", host: str = "127.0.0.1", **faults: Any
) -> int:
    """A proxy between, which the environment names; its port."""
    proxy: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    proxy.daemon_threads = True
    proxy.behind, proxy.status, proxy.page, proxy.silent = place.server.server_port, 0, b"", False
    proxy.__dict__.update(faults)
    threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    place.stack.callback(proxy.server_close)
    place.stack.callback(proxy.shutdown)
    place.patch.setenv(f"{scheme.upper()}_PROXY", f"http://{user}{host}:{proxy.server_port}")
    place.url = f"{scheme}://archives.invalid/"
    return int(proxy.server_port)


def _without(place: Place) -> None:
    """No proxy any more, and the server by its own address."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        place.patch.delenv(name, raising=False)
    place.url = place.server.url


@must(RIGHT)
def proxy_does_as_it_should(place: Place) -> Iterator[None]:
    """It is told who asks."""
    _through(place)
    yield


@must(RIGHT)
def proxy_makes_a_tunnel(place: Place) -> Iterator[None]:
    """TLS through it."""
    place.server = _secure(place, "good")
    _through(place, "https")
    yield


@must(RIGHT)
def proxy_is_not_asked_for_this_machine(place: Place) -> Iterator[None]:
    """None can reach its loopback."""
    place.patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    yield


@must(6, "the proxy 127.0.0.1", "407", "HTTP_PROXY=http://USER:PASSWORD@")
def proxy_wants_a_password(place: Place) -> Iterator[None]:
    """And is told none."""
    _through(place, user="")
    yield
    _without(place)


@must(6, "the proxy 127.0.0.1", "407", "HTTPS_PROXY=http://USER:PASSWORD@")
def proxy_wants_another_password(place: Place) -> Iterator[None]:
    """Before it makes a tunnel."""
    _through(place, "https", user=f"{USERNAME}:{CANARY}@")
    yield
    _without(place)


@must(5, "127.0.0.1", "HTTP_PROXY")
def proxy_has_an_odd_password(place: Place) -> Iterator[None]:
    """Signs in it that stand for something in an address; it is not shown."""
    _through(place, user=f"{USERNAME}:1/{CANARY}#@")
    yield
    _without(place)


def _is_no_proxy(value: str) -> Act:
    def act(place: Place) -> Iterator[None]:
        place.patch.setenv("HTTP_PROXY", value)
        place.url = "http://archives.invalid/"
        yield
        _without(place)

    return act


for _name, _value in (
    ("name", f"http://{CANARY}:x@:y"),
    ("scheme", "socks5://127.0.0.1:1"),
    ("address", f"http://a:{CANARY}@[::1"),
):
    _no_proxy = _is_no_proxy(_value)
    _no_proxy.__name__ = f"proxy_of_no_{_name}"
    must(5, "HTTP_PROXY")(_no_proxy)


@must(5, "the proxy 127.0.0.1", "403", "NO_PROXY=archives.invalid")
def proxy_refuses(place: Place) -> Iterator[None]:
    """This server may not be reached."""
    _through(place, "https", status=403)
    yield
    _without(place)


@must(5, "the proxy 127.0.0.1", "503", "4 attempts")
def proxy_is_busy(place: Place) -> Iterator[None]:
    """For as long as we try."""
    _through(place, "https", status=503)
    yield
    _without(place)


@must(6, "sign in")
def proxy_shows_a_page(place: Place) -> Iterator[None]:
    """The portal of a hotel."""
    _through(place, status=200, page=b"<html>Welcome to our network</html>")
    yield
    _without(place)


@must(5, "4 attempts")
def proxy_falls_silent(place: Place) -> Iterator[None]:
    """At once."""
    _through(place, silent=True)
    yield
    _without(place)


@must(5, "the name of the proxy no-such-proxy.invalid:", "HTTP_PROXY", "nothing was fetched")
def proxy_is_unknown(place: Place) -> Iterator[None]:
    """No such name: one try."""
    _through(place, host="no-such-proxy.invalid")
    yield
    _without(place)


@must(5, "the name of the proxy no-such-proxy.invalid:", "HTTPS_PROXY", "nothing was fetched")
def proxy_for_a_tunnel_is_unknown(place: Place) -> Iterator[None]:
    """No such name: one try."""
    _through(place, "https", host="no-such-proxy.invalid")
    yield
    _without(place)


@must(5, "no connection to the proxy 127.0.0.1:9,", "HTTP_PROXY", "4 attempts")
def proxy_is_not_there(place: Place) -> Iterator[None]:
    """Nobody listens."""
    place.patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    place.url = "http://archives.invalid/"
    yield
    _without(place)


# TLS -----------------------------------------------------------------------------------------------------------------

_OTHER = "subjectAltName=DNS:other.invalid"
_NAMES = "subjectAltName=IP:127.0.0.1,IP:::1,DNS:archives.invalid"


@cache
def _certificates(folder: Path) -> dict[str, Path]:
    """Certificates, each with its key in one file: of an authority, by it (good, wrong, expired), and of its own."""

    def openssl(words: str, *more: str) -> None:
        command = ["openssl", *words.split(), *more]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    openssl(f"req -x509 {key} -days 3 -subj /CN=authority -keyout authority.key -out authority")
    for name, names, days in (
        ("good", _NAMES, 3),
        ("wrong", _OTHER, 3),
        ("old", _NAMES, -1),
    ):
        openssl(f"req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (folder / "names").write_text(names)
        by = "-CA authority -CAkey authority.key -CAcreateserial -extfile names"
        openssl(f"x509 -req -in {name}.csr {by} -days {days} -out {name}")
    openssl(f"req -x509 {key} -days 3 -subj /CN=own -keyout own.key -out own", "-addext", _NAMES)
    for name in ("good", "wrong", "old", "own"):
        (folder / f"{name}.both").write_bytes((folder / f"{name}.key").read_bytes() + (folder / name).read_bytes())
    return {name: folder / f"{name}.both" for name in ("good", "wrong", "old", "own")} | {"": folder / "authority"}


def _secure(place: Place, name: str, kind: type[ScriptedServer] = ScriptedServer) -> ScriptedServer:
    """A server with one of the certificates; the authority is trusted."""
    folder = place.folder.parents[0] / "certificates"  # one for all tests
    folder.mkdir(exist_ok=True)
    found = _certificates(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(found[name])
    server = place.stack.enter_context(scripted_server(place.folder / name, tls, kind))
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(found[""]))
    place.url = server.url
    return server


@must(RIGHT)
def certificate_is_good(place: Place) -> Iterator[None]:
    """By an authority of one's own."""
    _secure(place, "good")
    yield


@must(5, "can't be trusted", "certificate", "REQUESTS_CA_BUNDLE")
def certificate_is_its_own(place: Place) -> Iterator[None]:
    """Nobody vouches for it."""
    _secure(place, "own")
    yield
    _without(place)


@must(5, "can't be trusted", "certificate", "clock")
def certificate_has_expired(place: Place) -> Iterator[None]:
    """Yesterday."""
    _secure(place, "old")
    yield
    _without(place)


@must(5, "can't be trusted", "certificate", "address")
def certificate_is_of_another(place: Place) -> Iterator[None]:
    """Of another name."""
    _secure(place, "wrong")
    yield
    _without(place)


@must(5, "redirect", "from https to http")
def https_leads_to_http(place: Place) -> Iterator[None]:
    """Where anyone can read and change what is sent."""
    server, url = _secure(place, "good"), place.server.url
    server.misbehave(Behaviour(lambda answer: answer.nothing(302, Location=f"{url}a.tar"), "all", ALWAYS, 5, 5))
    yield
    _without(place)


@must(5, "the secure connection failed")
def https_is_http(place: Place) -> Iterator[None]:
    """The server speaks without TLS."""
    place.url = place.server.url.replace("http", "https")
    yield
    _without(place)


@must(2, "REQUESTS_CA_BUNDLE")
def authorities_are_not_there(place: Place) -> Iterator[None]:
    """REQUESTS_CA_BUNDLE names no file."""
    _secure(place, "good")
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(place.folder / "nothing"))
    yield
    _without(place)


# addresses -----------------------------------------------------------------------------------------------------------


@must(RIGHT)
def address_is_of_ipv6(place: Place) -> Iterator[None]:
    """http://[::1]:port/."""
    server = place.stack.enter_context(scripted_server(place.folder / "six", kind=ScriptedServer6))
    place.url = server.url
    yield


@must(RIGHT)
def address_is_of_ipv6_with_tls(place: Place) -> Iterator[None]:
    """https://[::1]:port/; its certificate names the address."""
    _secure(place, "good", ScriptedServer6)
    yield


@must(5, "no connection", "4 attempts")
def nobody_is_at_that_address_of_ipv6(place: Place) -> Iterator[None]:
    """Nobody listens."""
    place.url = "http://[::1]:9/"
    yield
    _without(place)


@must(2, "base URL")
def address_of_ipv6_is_none(place: Place) -> Iterator[None]:
    """Its bracket is not closed."""
    place.url = "http://[::1/"
    yield
    _without(place)


@must(5, "no connection", "4 attempts")
def nobody_is_there(place: Place) -> Iterator[None]:
    """Nobody listens."""
    place.url = "http://127.0.0.1:9/"
    yield
    _without(place)


@must(5, "can't reach no-such-host.invalid: its name is not known", "nothing was fetched")
def server_is_unknown(place: Place) -> Iterator[None]:
    """No such name: one try."""
    place.url = "http://no-such-host.invalid/"
    yield
    _without(place)
