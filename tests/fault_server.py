"""The demo's file server with faults to inject:
everything that a server, a proxy or a cable has been seen to do.
"""

from __future__ import annotations

import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

from file_server import FileHandler, FileServer, parse_range, run_server

from imagenet_prep.errors import PrepError

CANARY = "canary-31415926"  # part of every secret: wherever this turns up, a secret has leaked
USERNAME, PASSWORD = "ada", f"{CANARY}-pässword"
COOKIE = f"{CANARY}-cookie"
CSRF = f"{CANARY}-csrf"
PROBE = "bytes=0-1023"
FORM = f"""<!DOCTYPE html><html><body>
<form action="/search"><input name="q"></form>
<form action="/login" method="post"><input type="hidden" name="csrf" value="{CSRF}">
<input type="text" name="user"><input type="password" name="pass"><button name="go" value="1">Sign in</button></form>
</body></html>"""


@dataclass
class Faults:
    """What goes wrong; by default nothing does.

    Args:
        when: whether a request beginning at this offset is struck; statuses are sent whatever it
            says.
        times: how many requests are struck before the fault heals.
        statuses: answers sent to the next requests, before anything else: a status and headers.
        content_range: sent in place of the right one, with wrong bytes; "" leaves it out.
        headers: headers that replace the right ones, whatever ``when`` says; None leaves one out.
        cut: close the connection after so many bytes of a body.
        rate: bytes a second, whatever ``when`` says.

        page: a page (its type, its bytes) sent with status 200 in place of everything.
        redirect: where everything is redirected to; "{path}" is the path asked for.

        login: "redirect", "page" or "forbidden": how one without a session cookie is led to a
            sign-in form.
        form: that form.
        etags: the ETags of several servers behind this one address, in turn, a request each.
        most: how many requests for parts are answered at a time; more get ``refusal``.
    """

    when: Callable[[int], bool] = lambda start: True
    times: int = 1_000_000
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    ignore_range: bool = False
    content_range: str | None = None
    headers: dict[str, str | None] = field(default_factory=dict)
    cut: int | None = None
    rate: float | None = None
    page: tuple[str, bytes] | None = None
    redirect: str | None = None
    redirect_status: int = 302

    login: str | None = None
    form: str = FORM
    etags: tuple[str, ...] = ()
    most: int | None = None
    refusal: int = 503


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def start(self) -> int:
        """Where the range asked for begins."""
        return _start(self.headers.get("Range"))


def _start(header: str | None) -> int:
    return (parse_range(header, 1 << 60) or (0, 0))[0]


class FaultServer(FileServer):
    """A file server with faults, which remembers every request."""

    def __init__(self, folder: Path, is_open: bool, tls: ssl.SSLContext | None) -> None:
        super().__init__(FaultHandler, folder, USERNAME, PASSWORD)
        self.scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.is_open = is_open
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.lock = threading.Lock()
        self.over = threading.Event()

        self.busy = 0  # parts that are being sent

    @property
    def url(self) -> str:
        """The base URL, ending in "/"."""
        return super().url.replace("http", self.scheme)

    def shutdown(self) -> None:
        """End, whatever waits."""
        self.over.set()
        super().shutdown()

    def gets(self) -> list[Seen]:
        """The requests seen that were no probes."""
        return [seen for seen in self.seen if seen.headers.get("Range") != PROBE]


@contextmanager
def fault_server(
    folder: Path, *, is_open: bool = True, tls: ssl.SSLContext | None = None
) -> Iterator[FaultServer]:
    """A running FaultServer; ``is_open``: it wants no credentials."""
    server = FaultServer(folder, is_open, tls)
    with run_server(server):
        yield server


class FaultHandler(FileHandler):
    """Does what the server's Faults say."""

    server: FaultServer

    def do_POST(self) -> None:  # noqa: N802 -- http.server looks for this name
        """Take the sign-in form."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._remember(body)
        if self.server.faults.statuses:
            self.send_nothing(*self.server.faults.statuses.pop(0))
            return
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if fields == {"csrf": CSRF, "user": USERNAME, "pass": PASSWORD, "go": "1"}:
            self.send_nothing(
                303, {"Set-Cookie": f"session={COOKIE}; Path=/; HttpOnly", "Location": "/"}
            )
        else:
            self._send_page("text/html", self.server.faults.form.encode())

    def answer(self) -> None:
        """Answer as the faults want it."""
        self._remember(b"")
        faults = self.server.faults
        self.struck = self._strike()
        path = urlsplit(self.path).path
        if faults.statuses:
            self.send_nothing(*faults.statuses.pop(0))
        elif faults.login and not self._is_signed_in():
            self._lead_to_form(faults, path)
        elif self.struck and faults.redirect:
            location = faults.redirect.replace("{path}", path[1:])
            self.send_head(faults.redirect_status, {"Location": location, "Content-Length": "0"})
        elif self.struck and faults.page:
            self._send_page(*faults.page)
        else:
            super().answer()

    def asked_range(self, size: int, headers: dict[str, str]) -> tuple[int, int] | None:
        """The range asked for, unless it is to be ignored."""
        return (
            None
            if self.struck and self.server.faults.ignore_range
            else super().asked_range(size, headers)
        )

    def send_part(
        self, file: BinaryIO, start: int, stop: int, status: int, headers: dict[str, str]
    ) -> None:
        """Send a part, with headers and length as the faults want them."""
        faults = self.server.faults
        if self.struck and faults.content_range is not None and "Content-Range" in headers:
            headers["Content-Range"] = faults.content_range
        if faults.etags:
            headers["ETag"] = faults.etags[len(self.server.seen) % len(faults.etags)]
        headers = {name: value for name, value in {**headers, **faults.headers}.items() if value}
        if faults.most is None or self.headers.get("Range") == PROBE:
            super().send_part(file, start, stop, status, headers)
            return
        with self.server.lock:
            self.server.busy += 1
            is_refused = self.server.busy > faults.most
        try:
            if is_refused:
                self.send_nothing(faults.refusal)
            else:
                super().send_part(file, start, stop, status, headers)
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def send_bytes(self, file: BinaryIO, start: int, stop: int) -> None:
        """Send bytes, fewer or slower than announced."""
        faults = self.server.faults

        if not self.struck:
            faults = Faults(rate=faults.rate)
        end = stop if faults.cut is None else min(stop, start + faults.cut)
        file.seek(start)
        content = file.read(end - start)
        if faults.content_range is not None and "Range" in self.headers:
            content = b"\xff" * len(
                content
            )  # so that whoever keeps a byte of it ends with another file
        step = max(1, int(faults.rate / 50) if faults.rate else len(content))
        for offset in range(0, len(content), step):
            self.wfile.write(content[offset : offset + step])
            if faults.rate:
                time.sleep(1 / 50)
        if end < stop:
            self.close_connection = True

    def _remember(self, body: bytes) -> None:
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, dict(self.headers.items()), body))

    def _strike(self) -> bool:
        faults = self.server.faults
        with self.server.lock:
            struck = faults.times > 0 and faults.when(_start(self.headers.get("Range")))
            faults.times -= struck
        return struck

    def _is_signed_in(self) -> bool:
        session = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        return session is not None and session.value == COOKIE

    def _lead_to_form(self, faults: Faults, path: str) -> None:
        if faults.login == "redirect" and path != "/login":
            self.send_nothing(302, {"Location": "/login"})
        else:
            self._send_page(
                "text/html; charset=utf-8",
                faults.form.encode(),
                403 if faults.login == "forbidden" else 200,
            )

    def _send_page(self, kind: str, page: bytes, status: int = 200) -> None:
        self.send_head(status, {"Content-Type": kind, "Content-Length": str(len(page))})
        self.wfile.write(page)


def assert_told(error: PrepError, exit_code: int, *words: str) -> None:
    """An error has this exit code, at most three lines, and these words; and no secret in it."""
    assert error.exit_code == exit_code
    assert len(str(error).splitlines()) <= 3
    for word in words:
        assert word in str(error)
    assert_no_secret("".join(traceback.format_exception(error)) + repr(error))


def assert_no_secret(text: str) -> None:
    """No canary is in a text."""
    assert CANARY not in text
