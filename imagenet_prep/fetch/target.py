"""Target: a file that belongs into raw-data: where it goes, what is expected of it, and what it must look like."""

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
from imagenet_prep.fetch.reply import PROBE, Remote, is_text, read_range
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
_TAIL = 22 + 0xFFFF  # bytes: a zip's end record and the longest comment behind it


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A file of the raw folder.

    Args:
        layout: where everything lives; its ``raw`` is None, since that place is only ever read.
        filename: what the file is called.
        size: bytes, None where any size will do.
        digests: those expected (hex), by algorithm: all of the same bytes, so that one stands for the others.
    """

    layout: Layout
    filename: str
    size: int | None
    digests: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Where it is once it is whole and checked."""
        return self.layout.download_path(self)

    @property
    def partial(self) -> Path:
        """Where it arrives."""
        return self.layout.part_path(self)

    def is_there(self) -> bool:
        """Whether a file of its name is there, which is not known to be another.

        Raises:
            InputError: it is known to be another, by its size or a digest that it had when it was checked.
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
        """How many of its bytes are still to be fetched."""
        return remote.total - kept_bytes(self.partial, remote, has_digest=bool(self.digests))

    def check_present(self, progress: Progress) -> None:
        """Hash the file that is there already, unless that was done before and it was not touched since.

        Raises:
            InputError: it is another.
        """
        if self.digests and not self._remembered().keys() & self.digests.keys():
            algorithm = fastest(tuple(self.digests))
            self._compare(algorithm, self._digest(algorithm, progress))
            self._remember()
        forget(self.partial)  # a crash right after the renaming leaves what was said of it behind
        remove_abandoned(local_path(self.layout.checked_path))

    def place(self, fetched: Fetched) -> None:
        """Give what has arrived its name, and remember what it is.

        Raises:
            InputError: it is not what was expected; it is kept under a name that nothing reads.
            WriteError: the disk failed.
        """
        if not fetched.is_right:
            raise self._set_aside(fetched)
        if not self.digests:
            check_look(self.partial, self.filename)
        finish(self.partial, self.path)
        self._remember(fetched.remote.url)

    def _remembered(self) -> dict[str, str]:
        """The digests that the file had when it was last checked; none if it was touched since."""
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
            f"{self.filename} arrived corrupt; it is kept as {aside}",
            f"expected {_NAMES[fetched.algorithm]} {self.digests[fetched.algorithm]}, got {fetched.digest}",
            "delete that file and run the same command again to fetch it again",
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
            f"{self.path} is there, but is not the expected archive",
            detail,
            f"move it away (mv {quoted(str(self.path))} ELSEWHERE) and run the same command again to fetch it",
        )


# where no digest is known --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appearance:
    """How files of a kind begin and end.

    Args:
        what: what they are, in words.
        begins: whether these bytes are the first of such a file of so many bytes.
        ends: whether these are its last; None where the end tells nothing.
        fault_of: what is wrong with one that has arrived, "" if nothing is; None where its ends have told all.
    """

    what: str
    begins: Callable[[bytes, int], bool]
    ends: Callable[[bytes, int], bool] | None = None
    fault_of: Callable[[Path], str] | None = None

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


def _tar_fault(path: Path) -> str:
    """Two blocks of zeros end an archive (POSIX.1-2017, ustar Interchange Format)."""
    with path.open("rb") as file:
        file.seek(-1024, 2)
        return "expected a tar archive, got one that is cut: no end blocks" if any(file.read()) else ""


def _is_gzip(head: bytes, total: int) -> bool:
    """RFC 1952, section 2.3: the two bytes, deflate as the method, no flag that is reserved."""
    return head[:3] == b"\x1f\x8b\x08" and len(head) > 3 and head[3] < 0x20 and total >= 18


def _gzip_fault(path: Path) -> str:
    """What is wrong with gzip data, by the CRC-32 and the length at its end; "" if nothing is."""
    try:
        with gzip.open(path) as file:
            while file.read(_CHUNK):
                pass
    except (EOFError, OSError, zlib.error) as error:
        return f"expected gzip data, got some that is damaged: {error}"
    return ""


def _has_end_record(tail: bytes, total: int) -> bool:
    """APPNOTE.TXT, section 4.3.16: the end record stands last, but for a comment whose length it tells."""
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        if len(tail) - at >= 22 and struct.unpack_from("<H", tail, at + 20)[0] == len(tail) - at - 22:
            return _has_directory(tail, at, total - len(tail))
        at = tail.rfind(b"PK\x05\x06", 0, at)
    return False


def _has_directory(tail: bytes, at: int, before: int) -> bool:
    """Whether the directory ends at the end record; with ZIP64, its record is where it should be (4.3.15)."""
    if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):
        found = struct.unpack_from("<Q", tail, at - 12)[0] - before
        return 0 <= found < at and tail[found : found + 4] == b"PK\x06\x06"
    size, offset = struct.unpack_from("<II", tail, at + 12)
    return bool(offset + size == before + at)


def _has_footer(tail: bytes, total: int) -> bool:
    """Apache Parquet, file format: the length of the metadata (4 bytes), then the magic once more."""
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
    head = read_range(session, url, 0, min(PROBE, total), remote, pace) if total else b""
    start = max(0, total - _TAIL)
    has_tail = total and look.ends and (remote.ranges or not start)
    tail = read_range(session, url, start, total, remote, pace) if has_tail else None
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
        look = look_of(name)
        fault = look.fault(head, file.read(), total) or (look.fault_of(path) if look.fault_of else "")
    if fault:
        raise InputError(
            f"{name} arrived, but is something else; it is kept as {path}",
            fault,
            f"rm {quoted(str(path))}, check the address given with --base-url, and run the same command again",
        )


def _seen(head: bytes, total: int) -> str:
    if not total:
        return "an empty file"
    if is_web_page(head):
        return "a web page"
    if is_text(head):
        return "JSON" if head.lstrip()[:1] in (b"{", b"[") else "text"
    return f"{total:,} bytes that begin with {head[:8].hex(' ')}"
