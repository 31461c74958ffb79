"""ScriptedServer: a server of one file that answers as a Behaviour has it, byte by byte."""

from __future__ import annotations

import contextlib
import email.utils
import random
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fault_server import PROBE, FaultHandler, FaultServer, Seen
from file_server import parse_range, run_server
from made_tars import pack

ALWAYS = 1 << 30
RIGHT, NEW = "right", "new"
"""What a download ends with: the file, or another version of it that has taken its place on the
server; else a status.

None: nothing can tell, and there is no such case: other bytes under the same validator, with no
digest known.
"""
Outcome = str | int | None
Struck = Literal["first", "probes", "parts", "later", "rest", "all"]
"""Which requests: the first of all; those for the first bytes, but for that one; all but those for
the first bytes; those that begin later; the same, where the whole file never comes in one answer;
every one.
"""


def _tar(seed: int) -> bytes:
    """A tar of ten class tars, 400 kB in all."""
    draw, wnids = random.Random(seed), [f"n0144076{number}" for number in range(10)]
    return pack({f"{wnid}.tar": pack({f"{wnid}_1.JPEG": draw.randbytes(29_000)}) for wnid in wnids})


CONTENT, OTHER = _tar(1), _tar(2)
SIZE = len(CONTENT)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A row of the table.

    Args:
        act: what happens in place of the right answer.
        at: to which requests.
        times: to how many of them.
        digest, plain: what the download ends with where a digest is known, and where none is.
        loses: whether bytes that had arrived may be fetched again.
        stall: seconds of silence that the client bears.
    """

    act: Callable[[Answer], None]
    at: Struck
    times: int
    digest: Outcome
    plain: Outcome
    loses: bool = False
    stall: float = 10

    @property
    def name(self) -> str:
        """What it is called."""
        often = "always" if self.times == ALWAYS else f"{self.times}x"
        return f"{self.act.__name__}-{self.at}-{often}"


class ScriptedServer(FaultServer):
    """A server of one file under any name, which misbehaves as a row of the table has it;
    None: not at all.
    """

    def __init__(self, folder: Path, tls: object = None) -> None:
        super().__init__(folder, True, tls)  # type: ignore[arg-type]
        self.RequestHandlerClass = Answer
        self.content = CONTENT
        self.version = 1
        self.behaviour: Behaviour | None = None
        self.left = 0  # how many requests are still to be struck
        self.memory: dict[str, int] = {}  # what a behaviour wants to know of what it did before
        self.body_bytes = 0  # sent of parts

    def misbehave(self, behaviour: Behaviour | None) -> None:
        """From now on."""
        self.behaviour, self.left = behaviour, behaviour.times if behaviour else 0

    def count(self, name: str) -> int:
        """How often this was called with that name before."""
        with self.lock:
            self.memory[name] = self.memory.get(name, 0) + 1
            return self.memory[name] - 1


@contextmanager
def scripted_server(folder: Path, tls: object = None) -> Iterator[ScriptedServer]:
    """A running one."""
    folder.mkdir(exist_ok=True)
    server = ScriptedServer(folder, tls)
    with run_server(server):
        yield server


class Answer(FaultHandler):
    """The answer to one request, as it should be or as a behaviour makes it."""

    server: ScriptedServer

    def answer(self) -> None:
        """Answer rightly, unless this request is struck."""
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, dict(self.headers.items())))
            behaviour = self.server.behaviour
            struck = behaviour is not None and self.server.left > 0 and self._is_meant(behaviour.at)
            self.server.left -= struck
        if struck and behaviour is not None:
            behaviour.act(self)
        elif (
            behaviour
            and self.span is None
            and (behaviour.at == "rest" or self._must_be_cut(behaviour))
        ):
            self.cut(SIZE // 2)
        else:
            self.reply(*self.right())

    def _must_be_cut(self, behaviour: Behaviour) -> bool:
        """Whether without that there is no later request:
        there is one connection, and none has come yet.
        """
        return behaviour.at == "later" and self.server.left == behaviour.times

    def _is_meant(self, at: Struck) -> bool:
        is_probe = self.headers.get("Range") == PROBE
        is_first = len(self.server.seen) == 1
        if at in ("first", "probes"):
            return is_first if at == "first" else is_probe and not is_first
        if at in ("later", "rest"):
            return self.span is not None and self.span[0] > 0
        return at == "all" or not is_probe

    @property
    def span(self) -> tuple[int, int] | None:
        """The range asked for."""
        return parse_range(self.headers.get("Range"), len(self.server.content))

    def right(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body as they should be."""
        content, version = self.server.content, self.server.version
        headers = {
            "Content-Type": "application/octet-stream",
            "ETag": f'"{version}"',
            "Last-Modified": email.utils.formatdate(1_600_000_000 + version, usegmt=True),
        }
        span = self.span
        if span is None:
            return 200, {**headers, "Content-Length": str(len(content))}, content
        start, stop = span
        if start >= stop:
            return (
                416,
                {**headers, "Content-Range": f"bytes */{len(content)}", "Content-Length": "0"},
                b"",
            )
        headers |= {
            "Content-Range": f"bytes {start}-{stop - 1}/{len(content)}",
            "Content-Length": str(stop - start),
        }
        return 206, headers, content[start:stop]

    def reply(
        self, status: int | str, headers: Mapping[str, str | None], body: bytes = b""
    ) -> None:
        """Send an answer; a header that is None is left out."""
        line = status if isinstance(status, str) else f"HTTP/1.1 {status} So it is"
        if self.headers.get("Range") != PROBE:
            # before the client has any: it may be gone, and the next one counted, once all is sent
            with self.server.lock:
                self.server.body_bytes += len(body)
        self.raw(head(line, headers) + body)

    def nothing(self, status: int, **headers: str) -> None:
        """Send an answer without a body."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.reply(status, {**named, "Content-Length": "0"})

    def page(self, kind: str, body: bytes, status: int = 200) -> None:
        """Send something else."""
        self.reply(status, {"Content-Type": kind, "Content-Length": str(len(body))}, body)

    def cut(self, size: int) -> None:
        """Send no more than so many bytes of the right body, then hang up."""
        status, headers, body = self.right()
        self.reply(status, headers, body[:size])
        self.close_connection = True

    def raw(self, data: bytes) -> None:
        """Send bytes; who is gone meanwhile misses nothing."""
        with contextlib.suppress(OSError):
            self.wfile.write(data)
            self.wfile.flush()

    def hang_up(self, data: bytes = b"") -> None:
        """Send bytes, and that was it."""
        self.raw(data)
        self.close_connection = True

    def reset(self) -> None:
        """Let the connection end in a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        for file in (self.rfile, self.wfile):
            with contextlib.suppress(OSError):
                file.close()
        self.connection.close()

    def fall_silent(self) -> None:
        """Send nothing more, and don't hang up either."""
        self.server.over.wait(20)
        self.close_connection = True


def head(line: str, headers: Mapping[str, str | None]) -> bytes:
    """The bytes of a status line and headers."""
    lines = [line, *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
    return "".join(f"{each}\r\n" for each in [*lines, ""]).encode("latin-1")
