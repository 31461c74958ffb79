"""Target: a file for raw-data, with its paths, its expected digests and the check of its format."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.digests import fastest, hasher
from imagenet_prep.fetch.partial import finish, forget, kept_bytes
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import PROBE, Remote, Source, is_text
from imagenet_prep.fetch.session import Session, host_of
from imagenet_prep.fetch.transfer import Fetched
from imagenet_prep.model import Progress
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import is_web_page

_CHUNK = 1 << 22
_NAMES = {"md5": "MD5", "sha256": "SHA-256", "crc32c": "CRC32C"}
_TAIL = 22 + 0xFFFF  # bytes: a zip's end record and the longest comment after it


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A file of the raw folder.

    Args:
        layout: the paths; its ``raw`` is None, since that folder is read-only.
        filename: the file's name.
        size: bytes, None if unknown.
        digests: the expected ones (hex), by algorithm; all describe the same bytes, so any one suffices.
    """

    layout: Layout
    filename: str
    size: int | None
    digests: Mapping[str, str]

    @property
    def path(self) -> Path:
        """The path of the complete, checked file."""
        return self.layout.download_path(self)

    @property
    def partial(self) -> Path:
        """The path of the file while it arrives."""
        return self.layout.part_path(self)

    def is_there(self) -> bool:
        """Whether a file of this name exists and is not known to be a different one.

        Raises:
            InputError: its size, or the digest recorded at its last check, is wrong.
        """
        if not self.path.exists():
            return False
        size = self.path.stat().st_size
        if self.size not in (None, size):
            raise self._stranger(f"expected {self.size:,} bytes, it has {size:,}")
        for algorithm, digest in self._remembered().items():
            self._compare(algorithm, digest)
        return True

    def to_come(self, remote: Remote) -> int:
        """The number of bytes still to fetch."""
        return remote.total - kept_bytes(self.partial, remote, has_digest=bool(self.digests))

    def check_present(self, progress: Progress) -> None:
        """Hash the existing file, unless it was checked before and is unchanged since.

        Raises:
            InputError: it is a different file.
        """
        if self.digests and not self._remembered().keys() & self.digests.keys():
            algorithm = fastest(tuple(self.digests))
            self._compare(algorithm, self._digest(algorithm, progress))
            self._remember()
        forget(self.partial)  # a crash right after the rename leaves the maps
        remove_abandoned(local_path(self.layout.checked_path))

    def place(self, fetched: Fetched) -> None:
        """Give the fetched file its final name, and record its digest.

        Raises:
            InputError: it is not the expected file; it is kept under a name that no command reads.
            WriteError: the disk failed.
        """
        if not fetched.is_right:
            raise self._set_aside(fetched)
        if not self.digests:
            check_look(self.partial, self.filename)
        finish(self.partial, self.path)
        self._remember(fetched.remote.url)

    def _remembered(self) -> dict[str, str]:
        """The digests recorded at the file's last check; none if it has changed since."""
        return seen_digests(self.layout, self.filename, self.path)

    def _remember(self, url: str = "") -> None:
        checked = load_json(self.layout.checked_path)
        stat = self.path.stat()
        entry = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "md5": None, **self.digests}
        entry |= {"url": url} if url else {}
        entries = {**checked, self.filename: entry} if isinstance(checked, dict) else {self.filename: entry}
        save_json(self.layout.checked_path, entries)

    def _compare(self, algorithm: str, digest: str) -> None:
        expected = self.digests.get(algorithm, digest)
        if digest != expected:
            raise self._stranger(f"expected {_NAMES[algorithm]} {expected}, it has {digest}")

    def _set_aside(self, fetched: Fetched) -> InputError:
        aside = self.layout.corrupt_path(self, fetched.digest)
        self.partial.replace(aside)
        forget(self.partial)
        return InputError(
            f"{self.filename} arrived corrupt and is kept as {aside}",
            f"expected {_NAMES[fetched.algorithm]} {self.digests[fetched.algorithm]}, got {fetched.digest}",
            f"run rm {quoted(str(aside))}, then the same command again",
        )

    def _digest(self, algorithm: str, progress: Progress) -> str:
        digest = hasher(algorithm)
        progress.begin(f"checking {self.filename}", self.path.stat().st_size, "B")
        try:
            with self.path.open("rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    progress.advance(len(chunk))
        finally:
            progress.end()
        return digest.hexdigest()

    def _stranger(self, detail: str) -> InputError:
        return InputError(
            f"{self.path} exists, but is not the expected archive",
            detail,
            f"run mv {quoted(str(self.path))} ELSEWHERE, then the same command again",
        )


# if no digest is known -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appearance:
    """The format of the first and last bytes of a kind of file.

    Args:
        what: the kind, for messages.
        starts: tells whether these are the first bytes of such a file of this size.
        ends: tells whether these are its last bytes; None if the end is arbitrary.
        fault_of: finds the fault of a received file, "" without one; None if the ends suffice.
    """

    what: str
    starts: Callable[[bytes, int], bool]
    ends: Callable[[bytes, int], bool] | None = None
    fault_of: Callable[[Path], str] | None = None

    def fault(self, head: bytes, tail: bytes | None, total: int) -> str:
        """The fault of a file of ``total`` bytes, "" without one; ``tail`` is None if unknown so far."""
        if not total or not self.starts(head, total):
            return f"expected {self.what}, got {_seen(head, total)}"
        if self.ends and tail is not None and not self.ends(tail, total):
            return f"expected {self.what}, got a truncated one: its {total:,} bytes have no valid end"
        return ""


def _is_tar(head: bytes, total: int) -> bool:
    """Whether it is a POSIX.1-1988 (ustar), GNU or pax archive: the magic at 257, and blocks of 512 bytes."""
    return head[257:262] == b"ustar" and total % 512 == 0 and total >= 1024


def _tar_fault(path: Path) -> str:
    """The fault of a tar that two blocks of zeros don't end (POSIX.1-2017, ustar Interchange Format)."""
    with path.open("rb") as file:
        file.seek(-1024, 2)
        return "expected a tar archive, got a truncated one: no end blocks" if any(file.read()) else ""


def _is_gzip(head: bytes, total: int) -> bool:
    """Whether it is gzip (RFC 1952, section 2.3): two magic bytes, deflate, no reserved flag."""
    return head[:3] == b"\x1f\x8b\x08" and len(head) > 3 and head[3] < 0x20 and total >= 18


def _gzip_fault(path: Path) -> str:
    """The fault of gzip data, by the CRC-32 and length at its end; "" without one."""
    try:
        with gzip.open(path) as file:
            while file.read(_CHUNK):
                pass
    except (EOFError, OSError, zlib.error) as error:
        return f"expected gzip data, got damaged data: {error}"
    return ""


def _has_end_record(tail: bytes, total: int) -> bool:
    """Whether the end record is last, before a comment of the length it gives (APPNOTE.TXT, section 4.3.16)."""
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        if len(tail) - at >= 22 and struct.unpack_from("<H", tail, at + 20)[0] == len(tail) - at - 22:
            return _has_directory(tail, at, total - len(tail))
        at = tail.rfind(b"PK\x05\x06", 0, at)
    return False


def _has_directory(tail: bytes, at: int, before: int) -> bool:
    """Whether the directory ends at the end record; with ZIP64, whether its record is in place (4.3.15)."""
    if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):
        found = struct.unpack_from("<Q", tail, at - 12)[0] - before
        return 0 <= found < at and tail[found : found + 4] == b"PK\x06\x06"
    size, offset = struct.unpack_from("<II", tail, at + 12)
    return bool(offset + size == before + at)


def _has_footer(tail: bytes, total: int) -> bool:
    """Whether it ends like Apache Parquet: the length of the metadata (4 bytes), then the magic."""
    return tail[-4:] == b"PAR1" and len(tail) >= 8 and 0 < struct.unpack("<I", tail[-8:-4])[0] <= total - 12


def _is_something(head: bytes, total: int) -> bool:
    return not is_web_page(head) and not is_text(head)


_GZIP = Appearance("gzip data", _is_gzip, fault_of=_gzip_fault)
_LOOKS = {
    ".tar": Appearance("a tar archive", _is_tar, fault_of=_tar_fault),
    ".gz": _GZIP,
    ".tgz": _GZIP,
    ".zip": Appearance("a zip archive", lambda head, total: head[:4] == b"PK\x03\x04", _has_end_record),
    ".parquet": Appearance("a parquet file", lambda head, total: head[:4] == b"PAR1", _has_footer),
}
_ANY = Appearance("a binary file", _is_something)


def look_of(name: str) -> Appearance:
    """The format that a file of this name must have; for an unknown suffix, any binary format."""
    return _LOOKS.get(Path(name).suffix.lower(), _ANY)


def look_at(session: Session, url: str, remote: Remote, pace: Pace, name: str) -> None:
    """Check both ends of a file on a server before fetching it; ``name`` is its local name.

    Raises:
        InputError: the file has the wrong format, or the server encodes it.
        AccessError, NetworkError: as ``inspect``.
    """
    look = look_of(name)
    total = remote.total
    source = Source(session, url, remote, pace)
    head = source[: min(PROBE, total)] if total else b""
    start = max(0, total - _TAIL)
    has_tail = total and look.ends and (remote.ranges or not start)
    tail = source[start:total] if has_tail else None
    if fault := look.fault(head, tail, total):
        raise InputError(
            f"{host_of(url)} has a different kind of file under the name {name}",
            fault,
            "check the address given with --base-url; nothing was fetched",
        )


def check_look(path: Path, name: str) -> None:
    """Check both ends of a file that has arrived; ``name`` is its final name.

    Raises:
        InputError: the file has the wrong format.
    """
    with path.open("rb") as file:
        head = file.read(PROBE)
        total = file.seek(0, 2)
        file.seek(max(0, total - _TAIL))
        look = look_of(name)
        fault = look.fault(head, file.read(), total) or (look.fault_of(path) if look.fault_of else "")
    if fault:
        raise InputError(
            f"{name} arrived with the wrong content and is kept as {path}",
            fault,
            f"check the address given with --base-url, run rm {quoted(str(path))}, then the same command again",
        )


def _seen(head: bytes, total: int) -> str:
    if not total:
        return "an empty file"
    if is_web_page(head):
        return "a web page"
    if is_text(head):
        return "JSON" if head.lstrip()[:1] in (b"{", b"[") else "text"
    return f"{total:,} bytes that start with {head[:8].hex(' ')}"
