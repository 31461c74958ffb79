"""Appearance: what a file must look like by its name, where no digest says what it is: both of its ends."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import (
    PROBE,
    Remote,
    check_is_no_page,
    check_status,
    content_range,
    is_page_start,
    name_of,
    read_head,
)
from imagenet_prep.fetch.session import Session, host_of

_TAIL = 22 + 0xFFFF  # bytes: a zip's end record and the longest comment behind it


@dataclass(frozen=True, slots=True)
class Appearance:
    """How files of a kind begin and end.

    Args:
        what: what they are, in words.
        begins: whether these bytes are the first of such a file of so many bytes.
        ends: whether these are its last; None where the end tells nothing.
    """

    what: str
    begins: Callable[[bytes, int], bool]
    ends: Callable[[bytes, int], bool] | None = None

    def fault(self, head: bytes, tail: bytes | None, total: int) -> str:
        """What is wrong with a file of ``total`` bytes, "" if nothing is; ``tail`` is None where it isn't known yet."""
        if not total or not self.begins(head, total):
            return f"expected {self.what}, got {_seen(head, total)}"
        if self.ends and tail is not None and not self.ends(tail, total):
            return f"expected {self.what}, got one that is cut: its {total:,} bytes don't end like one"
        return ""


def _is_tar(head: bytes, total: int) -> bool:
    """POSIX.1-1988 (ustar), GNU and pax archives have this at 257; all consist of blocks of 512 bytes."""
    return head[257:262] == b"ustar" and total % 512 == 0 and total >= 1024


def _is_gzip(head: bytes, total: int) -> bool:
    """RFC 1952, section 2.3: the two bytes, deflate as the method, no flag that is reserved."""
    return head[:3] == b"\x1f\x8b\x08" and len(head) > 3 and head[3] < 0x20 and total >= 18


def _has_end_record(tail: bytes, total: int) -> bool:
    """APPNOTE.TXT, section 4.3.16: the end record stands last, but for a comment whose length it tells."""
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        if len(tail) - at >= 22 and struct.unpack_from("<H", tail, at + 20)[0] == len(tail) - at - 22:
            return True
        at = tail.rfind(b"PK\x05\x06", 0, at)
    return False


def _has_footer(tail: bytes, total: int) -> bool:
    """Apache Parquet, file format: the length of the metadata (4 bytes), then the magic once more."""
    return tail[-4:] == b"PAR1" and len(tail) >= 8 and 0 < struct.unpack("<I", tail[-8:-4])[0] <= total - 12


def _is_something(head: bytes, total: int) -> bool:
    return not is_page_start(head) and not _is_text(head)


_GZIP = Appearance("gzip data", _is_gzip)
_LOOKS = {
    ".tar": Appearance("a tar archive", _is_tar),
    ".gz": _GZIP,
    ".tgz": _GZIP,
    ".zip": Appearance("a zip archive", lambda head, total: head[:4] == b"PK\x03\x04", _has_end_record),
    ".parquet": Appearance("a parquet file", lambda head, total: head[:4] == b"PAR1", _has_footer),
}
_ANY = Appearance("a file of data", _is_something)


def look_of(name: str) -> Appearance:
    """How a file of this name must look; of a name that tells nothing, that it is no text."""
    return _LOOKS.get(Path(name).suffix.lower(), _ANY)


def look_at(session: Session, url: str, remote: Remote, pace: Pace, name: str) -> None:
    """Look at the ends of a file on a server that is to be called ``name``, before much of it is fetched.

    Raises:
        InputError: it does not look like what it should be, or the server encodes it.
        AccessError, NetworkError: as ``inspect``.
    """
    look = look_of(name)
    total = remote.total
    head = _read(session, url, 0, min(PROBE, total), remote, pace) if total else b""
    start = max(0, total - _TAIL)
    has_tail = total and look.ends and (remote.ranges or not start)
    tail = _read(session, url, start, total, remote, pace) if has_tail else None
    if fault := look.fault(head, tail, total):
        raise InputError(
            f"{host_of(url)} has something else under the name {name}",
            fault,
            "check the address given with --base-url; nothing was fetched",
        )


def check_look(path: Path, name: str) -> None:
    """Look at both ends of a file that has arrived, and is to be called ``name``.

    Raises:
        InputError: it does not look like what it should be.
    """
    with path.open("rb") as file:
        head = file.read(PROBE)
        total = file.seek(0, 2)
        file.seek(max(0, total - _TAIL))
        fault = look_of(name).fault(head, file.read(), total)
    if fault:
        raise InputError(
            f"{name} arrived, but is something else; it is kept as {path}",
            fault,
            f"rm {quoted(str(path))}, check the address given with --base-url, and run the same command again",
        )


def _read(session: Session, url: str, start: int, stop: int, remote: Remote, pace: Pace) -> bytes:
    """The bytes ``start`` to ``stop`` of a file; of a server that doesn't serve parts, ``start`` must be 0."""
    span = {"Range": f"bytes={start}-{stop - 1}"} if remote.ranges else None

    def read() -> bytes:
        with session.get(url, span) as response:
            check_status(response, url)
            refuse_encoding(response, url)
            if span and content_range(response) != (start, stop, remote.total):
                raise CutError("the server sent another part than was asked for")
            content = read_head(response, stop - start)
            check_is_no_page(response, b"" if start else content, url)
            if len(content) < stop - start:
                raise CutError("the answer was too short")
            return content

    return Patience(name_of(url), pace, note=session.note).until(read)


def refuse_encoding(response: requests.Response, url: str) -> None:
    """Raise InputError if the bytes of an answer are not those of the file, but encoded."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise InputError(
            f"{host_of(url)} sends {name_of(url)} encoded, though identity was asked for",
            f"expected the file as it is, got Content-Encoding: {encoding[:40]!r}",
            "use another server, or one whose files have a digest that tells what arrived",
        )


def _seen(head: bytes, total: int) -> str:
    if not total:
        return "an empty file"
    if is_page_start(head):
        return "a web page"
    if _is_text(head):
        return "JSON" if head.lstrip()[:1] in (b"{", b"[") else "text"
    return f"{total:,} bytes that begin with {head[:8].hex(' ')}"


def _is_text(head: bytes) -> bool:
    """Whether these are the first bytes of a text: none of them is a control character of a kind that texts lack."""
    return not set(head) & (set(range(32)) - set(b"\t\n\r\f\x1b"))
