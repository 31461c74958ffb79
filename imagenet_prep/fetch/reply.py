"""Remote, a version of a file on a server, and RemoteFile, its bytes:
every answer is checked before it is kept.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import requests
import urllib3
from msgspec import Struct

from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.addresses import bare_url, host_of, name_of
from imagenet_prep.fetch.answer_checks import check_is_no_page, check_status, refuse_encoding
from imagenet_prep.fetch.failures import reason_of
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Session
from imagenet_prep.text import number_of

PROBE = 1024  # bytes: enough to distinguish an archive from a page
FIRST = f"bytes=0-{PROBE - 1}"

_NO_VALIDATOR = (
    "the server sends neither ETag nor date, so nothing shows whether the file is still the same"
)

_OTHER_VALIDATOR = "the ETag or the date of the file on the server differs from before"

_NOT_THE_PART = "the server did not send the requested part of the file"

TOO_SHORT = "the server sent fewer bytes than requested"

_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII)


@dataclass(eq=False)
class RestartError(Exception):
    """The server can't resume the version we hold a part of, so that part is worthless.

    ``is_about_ranges``: the server does not serve parts correctly; every server understands one
    plain request. ``is_break``: the connection broke, and nothing tells whether the file is still
    the same.
    """

    reason: str
    is_about_ranges: bool = False
    is_break: bool = False


@dataclass(frozen=True, slots=True)
class Remote:
    """A version of a file on a server.

    Args:
        url: the address without its query.
        total: bytes.
        etag, last_modified: as the server sent them, None if absent.
        ranges: whether the server sends parts of the file.
        hashes: digests of it as Google's storage gives them.
    """

    url: str
    total: int
    etag: str | None
    last_modified: str | None
    ranges: bool = True
    hashes: str = field(default="", compare=False)

    def obstacle(self, other: Remote, *, has_digest: bool) -> str:
        """Why this version can't be fetched on from bytes of the version ``other``;
        "" if it can.
        """
        if self.total < 0:
            return "the server reports no valid size of the file"
        if self.total != other.total:
            return (
                f"the file on the server has {number_of(self.total, 'byte')}, "
                f"and not {other.total:,} as before"
            )
        if self.url != other.url and not has_digest:
            return "the file comes from another address than before"
        if reason := self.why_whole(has_digest=has_digest):
            return reason
        if self.url != other.url:
            return ""  # another mirror has its own validators; the digest decides
        return "" if self._has_validators_of(other) else _OTHER_VALIDATOR

    def _has_validators_of(self, other: Remote) -> bool:
        """Whether the strong ETags are equal, otherwise the dates; or neither version has any."""
        if self._strong_etag and other._strong_etag:
            return self.etag == other.etag
        if self.last_modified and self.last_modified == other.last_modified:
            return True
        validators = self._strong_etag, self.last_modified, other._strong_etag, other.last_modified
        return not any(validators)

    def why_whole(self, *, has_digest: bool) -> str:
        """Why each byte must arrive in one request; "" if an interrupted transfer can resume.

        Without a digest, the server must send a value that changes with the file: a strong ETag, or
        a date.
        """
        if not self.ranges:
            return "the server sends the file only as a whole"
        return "" if has_digest or self._strong_etag or self.last_modified else _NO_VALIDATOR

    @property
    def _strong_etag(self) -> str | None:
        """The ETag, unless it is weak: different files may share a weak one (RFC 9110,
        section 8.8.1).
        """
        return self.etag if self.etag and not self.etag.startswith("W/") else None


def inspect(
    session: Session,
    url: str,
    pace: Pace,
    *,
    was_seen: bool = False,
    size: int | None = None,
    has_digest: bool = False,
) -> Remote:
    """Ask a server about a file with a small Range request; nothing is written.

    Args:
        session: sends the requests.
        url: the file's address.
        pace: timing and budget of retries.
        was_seen: whether the server had the file a moment ago.
        size: the known size in bytes, for a server that sends none.
        has_digest: whether a digest will check the file. Then the size may also be counted.

    Raises:
        AccessError: the server requires credentials, or sends a web page instead.
        NetworkError: the file doesn't exist, or the server can't be reached.
    """
    trusted_size = size if has_digest else None

    def look() -> Remote:
        for span in (FIRST, None):
            if remote := ask(session, url, span, was_seen=was_seen, size=trusted_size):
                return remote
        if has_digest:
            return _measure(session, url, pace)
        raise NetworkError(
            f"{host_of(url)} doesn't report a valid size of {name_of(url)}",
            "expected the HTTP header Content-Range or Content-Length",
            "check --base-url if you set it, or try later",
        )

    return Patience(name_of(url), pace, note=session.note).until(look)


def ask(
    session: Session, url: str, span: str | None, *, was_seen: bool = False, size: int | None = None
) -> Remote | None:
    """Make one attempt at inspect; None if the answer gives no trustworthy length."""
    with session.get(url, {"Range": span} if span else None) as response:
        if span and response.status_code == 416:
            return None  # an empty file has no range (RFC 9110, section 15.5.17)
        check_status(response, url, was_seen=was_seen)
        check_is_no_page(response, Body(response).peek(PROBE), url)
        if response.status_code == 206:
            total = _total_by_probe(response) if span else None
            is_part = True
        else:
            has_length = "Content-Length" in response.headers
            total = content_length(response) if has_length else size
            is_part = False
        return None if total is None else remote_of(response, url, total, ranges=is_part)


def _total_by_probe(response: requests.Response) -> int | None:
    """The size of a file by an answer with its first bytes; None if it has other bytes."""
    span = content_range(response)
    if span is None:
        return None
    start, stop, total = span
    return total if start == 0 and stop == min(PROBE, total) else None


def _measure(session: Session, url: str, pace: Pace) -> Remote:
    """Count the bytes of a file whose server doesn't report its size."""
    with session.get(url) as response:
        check_status(response, url, was_seen=True)
        body, total = Body(response, pace), 0
        while data := body.read(1 << 20):
            total += len(data)
        return remote_of(response, url, total, ranges=False)


def remote_of(response: requests.Response, url: str, total: int, ranges: bool) -> Remote:
    """The file version that a response belongs to."""
    get = response.headers.get
    return Remote(
        bare_url(url), total, get("ETag"), get("Last-Modified"), ranges, get("x-goog-hash", "")
    )


def content_range(response: requests.Response) -> tuple[int, int, int] | None:
    """Start, stop (exclusive) and total of a Content-Range; None if it is absent or invalid."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if not match:
        return None
    start, last, total = map(int, match.groups())
    return (start, last + 1, total) if start <= last < total else None


class RemoteFile(Struct, frozen=True):
    """The bytes of a version of a file on a server; a slice of it is one request, with retries.

    Args:
        session: sends the requests.
        url: the file's address.
        remote: its version; bytes of another one are refused.
        pace: timing and budget of retries.
        has_digest: whether a digest will check the file.
        is_trusted: accept a part that the server does not describe, or describes as one of a file
            of another size. Only a digest can check it.
    """

    session: Session
    url: str
    remote: Remote
    pace: Pace
    has_digest: bool = False
    is_trusted: bool = False

    @property
    def path(self) -> PurePosixPath:
        """The file's name in messages."""
        return PurePosixPath(host_of(self.url)) / name_of(self.url)

    def __len__(self) -> int:
        return self.remote.total

    def __getitem__(self, span: slice) -> bytes:
        """The bytes of a slice; the start of the file requires no Range support.

        Raises:
            AccessError, InputError, NetworkError: the file has changed, the server sends no parts,
                sends a page or an encoded body, or can't be reached.
        """
        start, stop = span.start or 0, span.stop

        def read() -> bytes:
            with self.open(start, stop) as (body, _):
                data = body.peek(stop - start)
                if len(data) < stop - start:
                    raise CutError(TOO_SHORT)
                body.release()
                return data

        try:
            if start and not self.remote.ranges:
                raise RestartError("", is_about_ranges=True)
            return Patience(
                name_of(self.url), self.pace, note=self.session.note, noted=self.session.noted
            ).until(read)
        except RestartError as restart:
            raise self.refusal(restart) from None

    def refusal(self, restart: RestartError) -> NetworkError:
        """The error for a server from which parts of this version can't be read."""
        if restart.is_about_ranges:
            return NetworkError(
                f"{host_of(self.url)} did not send the requested part of {name_of(self.url)}",
                "it may not support downloads in parts (HTTP Range requests)",
                "try later, or name another server with --base-url; if you chose classes, you can "
                "also leave out --classes",
            )
        if restart.is_break:
            return NetworkError(
                f"{name_of(self.url)} from {host_of(self.url)} can't be resumed",
                restart.reason,
                "run the same command again: complete files are kept",
            )
        return NetworkError(
            f"{name_of(self.url)} on {host_of(self.url)} may have changed while it was read",
            restart.reason,
            "run the same command again: complete files are kept; if it fails again, name another "
            "server with --base-url",
        )

    @contextlib.contextmanager
    def open(
        self, start: int, stop: int, *, is_first: bool = False
    ) -> Iterator[tuple[Body, Remote]]:
        """Request the bytes from ``start`` to ``stop``; the body of the answer, once checked, and
        the version it has.

        ``is_first``: no bytes are kept so far, so another version of the same size will do, if it
            comes whole.

        Raises:
            AccessError: the answer is a web page.
            InputError: it is encoded, and no digest can check it.
            CutError: any other fault; if it persists, RestartError, AccessError or NetworkError.
        """
        is_whole = not self.remote.ranges or (start, stop) == (0, self.remote.total)
        with self.session.get(
            self.url, {} if is_whole else {"Range": f"bytes={start}-{stop - 1}"}
        ) as response:
            body = Body(response, self.pace)
            if response.status_code == 416 and not is_whole:
                raise _no_parts()
            check_status(response, self.url, was_seen=True)
            if not self.has_digest:
                refuse_encoding(response, self.url)
            head = body.peek(min(PROBE, stop - start))
            is_start = response.status_code != 206 or not start
            check_is_no_page(response, head, self.url, is_start=is_start, was_seen=True)
            total = self._total(response, start, stop, is_whole)
            answered = remote_of(response, self.url, total, self.remote.ranges)
            if is_first and is_whole and total == self.remote.total:
                yield body, answered
            else:
                self._refuse_version(answered)
                yield body, self.remote

    def _refuse_version(self, answered: Remote) -> None:
        """Raise CutError if an answer has another version of the file."""
        if answered != self.remote:
            obstacle = answered.obstacle(self.remote, has_digest=True)
            if obstacle:
                raise CutError(obstacle, lasting=RestartError(obstacle))

    def _total(self, response: requests.Response, start: int, stop: int, is_whole: bool) -> int:
        """The size of the file by an answer with the requested bytes, or with the first of them; -1
        if it is invalid.

        Raises:
            CutError: the answer has a different part; RestartError if that persists.
        """
        if response.status_code != 206:
            if not is_whole:
                raise _no_parts()
            return self._total_of_whole(response)
        span = content_range(response)
        if self.is_trusted and (span is None or span[:2] == (start, stop)):
            return self.remote.total
        if span is not None:
            sent_start, sent_stop, total = span
            if (sent_start, sent_stop) == (start, stop):
                return total
            is_shorter = sent_start == start and sent_stop < stop
            if is_shorter and content_length(response) == sent_stop - start:
                return total
        raise _no_parts()

    def _total_of_whole(self, response: requests.Response) -> int:
        """The size of the file by an answer with all of it; -1 if it is invalid."""
        if "Content-Length" not in response.headers:
            return self.remote.total
        length = content_length(response)
        return -1 if length is None else length


def _no_parts() -> CutError:
    """The error for an answer that is not the requested part."""
    return CutError(_NOT_THE_PART, lasting=RestartError(_NOT_THE_PART, is_about_ranges=True))


def content_length(response: requests.Response) -> int | None:
    """The Content-Length, which may appear twice (RFC 9110, section 8.6);
    None if it is absent or invalid.
    """
    header = response.headers.get("Content-Length", "")
    length, *other_lengths = {text.strip() for text in header.split(",")}
    return int(length) if _LENGTH.fullmatch(length) and not other_lengths else None


class Body:
    """The bytes of an answer as they arrive, checked against the minimum speed of a pace.

    Args:
        response: the answer; its body is unread.
        pace: its minimum speed.
    """

    def __init__(self, response: requests.Response, pace: Pace = Pace()) -> None:
        self._response = response
        self._pace = pace
        self._head = b""  # received, and not yet read
        self._count = 0
        self._waited = 0.0  # seconds spent in reads, without the work between them

    def read(self, size: int) -> bytes:
        """Read the received bytes, at most ``size``; b"" at the end of the body.

        Raises:
            CutError: the connection broke, fell silent, or is too slow.
        """
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        if self._waited >= self._pace.slow_after:
            if self._count < self._pace.least_speed * self._waited:
                speed = f"{self._count / self._waited:,.0f} bytes/s"
                raise CutError(f"too slow ({speed} over {self._waited:.0f} s)", kind="slow")
            self._count, self._waited = 0, 0.0
        began = time.monotonic()
        try:
            data = self._response.raw.read1(size, decode_content=False) or b""
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise CutError(reason_of(error)) from None
        self._waited += time.monotonic() - began
        self._count += len(data)
        return data

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, which are read again; fewer if the body is shorter or breaks
        off.

        Raises:
            CutError: none arrived.
        """
        head, self._head = self._head, b""
        while len(head) < size:
            try:
                data = self.read(size - len(head))
            except CutError:
                if not head:
                    raise
                break  # keep these bytes: the next read fails again
            if not data:
                break
            head += data
        self._head = head
        return head[:size]

    def release(self) -> None:
        """Return the connection for reuse, after the whole body was read."""
        self._head = b""
        with contextlib.suppress(CutError):
            self.read(1)
