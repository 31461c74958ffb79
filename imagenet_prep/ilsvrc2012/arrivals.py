"""Files without a known digest: look_at and fault_of check their structure;
RemoteClasses fetches single classes.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.fetch.addresses import host_of
from imagenet_prep.fetch.answer_checks import is_text
from imagenet_prep.fetch.partial import Span, finish, kept_bytes
from imagenet_prep.fetch.reply import PROBE, Remote, RemoteFile
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.target import set_aside
from imagenet_prep.fetch.transfer import Manner, fetch_span
from imagenet_prep.ilsvrc2012.official_tars import ArchiveIndex, ClassTars, class_tars
from imagenet_prep.sources.archive_faults import ArchiveFault
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tar_members import Sliceable, iter_members
from imagenet_prep.sources.zip_entries import check_end, iter_entries
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.text import is_web_page, number_of

_END_BLOCKS = 1024  # bytes of zeros at the end of a tar (POSIX.1-2017, ustar Interchange Format)
_SMALL = 1 << 16  # bytes: a file that is read as a whole, if the server serves no parts
_ANOTHER_SERVER = "check --base-url if you set it, or use it to name another server"
_FORMATS = {
    ".tar": "a tar archive",
    ".gz": "gzip data",
    ".tgz": "gzip data",
    ".zip": "a zip archive",
    ".parquet": "a parquet file",
}


def look_at(source: RemoteFile, name: str) -> None:
    """Check both ends of a file on a server before fetching it; ``name`` is its local name.

    Raises:
        InputError: the file has the wrong format, or the server encodes it.
        AccessError, NetworkError: as ``inspect``.
    """
    total = len(source)
    head = source[: min(PROBE, total)] if total else b""
    fault = _fault_of_head(head, total, name)
    if not fault and (source.remote.ranges or total <= _SMALL):
        fault = _fault_of_end(source if source.remote.ranges else source[:total], name)
    if fault:
        raise InputError(
            f"{host_of(source.url)} has a wrong file under the name {name}",
            fault,
            "check --base-url if you set it, or try later; this file was not fetched",
        )


def fault_of(path: Path, name: str) -> str:
    """The fault in the structure of a file that has arrived, not all of which is read;
    ``name`` is its final name.
    """
    with FileSlices(path) as view:
        total = len(view)
        return (
            _fault_of_head(view[0:PROBE], total, name)
            or _fault_of_end(view, name)
            or _fault_inside(view, name)
        )


def _fault_of_head(head: bytes, total: int, name: str) -> str:
    """Why these can't be the first bytes of a file of this name; "" if they can."""
    file_format = _FORMATS.get(Path(name).suffix.lower(), "a binary file")
    if total and _fits(head, total, file_format):
        return ""
    if file_format == "a tar archive" and head[257:262] == b"ustar":
        sizes = f"a multiple of 512 bytes and at least {_END_BLOCKS:,}"
        return f"expected a tar archive, whose size is {sizes}, got {total:,} bytes"
    return f"expected {file_format}, got {_describe(head, total)}"


def _fits(head: bytes, total: int, file_format: str) -> bool:
    """Whether a file of this format can have these first bytes."""
    if file_format == "a tar archive":
        return head[257:262] == b"ustar" and total % 512 == 0 and total >= _END_BLOCKS
    if file_format == "gzip data":  # RFC 1952
        has_flags = len(head) > 3 and head[3] < 0x20
        return head[:3] == b"\x1f\x8b\x08" and has_flags and total >= 18
    if file_format == "a zip archive":
        return head[:4] == b"PK\x03\x04"
    if file_format == "a parquet file":
        return head[:4] == b"PAR1"
    return not is_web_page(head) and not is_text(head)


def _describe(head: bytes, total: int) -> str:
    """Describe a file by its first bytes: a web page or XML, other text, or other data."""
    if not total:
        return "an empty file"
    if is_web_page(head):
        return "a web page or XML"
    if is_text(head):
        return "JSON" if head.lstrip()[:1] in (b"{", b"[") else "text"
    return f"{total:,} bytes that start with {head[:8].hex(' ')}"


def _fault_of_end(view: Sliceable, name: str) -> str:
    """Why these can't be the last bytes of a file of this name; "" if they can."""
    total, suffix = len(view), Path(name).suffix.lower()
    if suffix == ".zip":
        try:
            check_end(view)
        except ArchiveFault as fault:
            return f"expected a whole zip archive: {fault.reason}"
    if suffix == ".parquet":  # the length of the metadata (4 bytes), then the magic
        tail = bytes(view[max(0, total - 8) : total])
        if tail[4:] != b"PAR1" or not 0 < struct.unpack("<I", tail[:4])[0] <= total - 12:
            return (
                f"expected a whole parquet file: its {total:,} bytes have no valid end; "
                "it is cut, damaged or followed by other bytes"
            )
    return ""


def _fault_inside(view: FileSlices, name: str) -> str:
    """The fault that the headers within a file show; "" without one."""
    suffix = Path(name).suffix.lower()
    try:
        if suffix == ".tar":
            return _fault_of_tar(view)
        if suffix == ".zip":
            for _ in iter_entries(view):
                pass
        if suffix in (".gz", ".tgz"):
            with gzip.open(view.path) as file:
                while file.read(1 << 22):
                    pass
    except ArchiveFault as fault:
        return f"it {fault.problem} {fault}"
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return f"expected gzip data, got damaged data: {error}"
    return ""


def _fault_of_tar(view: FileSlices) -> str:
    """The fault of a tar, by every header, and the first header and the end of every tar in it."""
    for name, start, length in iter_members(view, 0, len(view)):
        if name.endswith(b".tar"):
            next(iter_members(view, start, start + length), None)
            end = start + length
            if length < _END_BLOCKS or any(view[end - _END_BLOCKS : end]):
                return (
                    f"expected {_END_BLOCKS:,} zero bytes at the end of "
                    f"{name.decode('utf-8', 'replace')}, before byte {end:,}"
                )
    return ""


# single classes -----------------------------------------------------------------------------------


class RemoteClasses(Struct, frozen=True):
    """The classes in the train archive on a server: offset and end of each one's tar, by wnid.

    No digest of a class is known. Instead, the headers before it are checked, and its own headers
    after it arrives; convert decodes each image.
    """

    source: RemoteFile
    spans: Mapping[str, Span]
    manner: Manner

    @classmethod
    def find(
        cls, session: Session, url: str, remote: Remote, wnids: Collection[str], manner: Manner
    ) -> RemoteClasses:
        """Walk the headers of the archive, one request each, until all classes are found.

        Raises:
            InputError: the archive is damaged, or lacks a class.
            NetworkError: the server can't be reached, or sends no parts of a file.
        """
        filename = remote.url.rpartition("/")[2]
        manner.progress.note(
            f"looking for {number_of(len(wnids), 'class', 'classes')} in {filename}"
        )
        source = RemoteFile(session, url, remote, manner.pace)
        try:
            places = class_tars(source, wnids)
        except InputError as fault:  # its hint is about a file of one's own
            raise InputError(fault.what, fault.detail, _ANOTHER_SERVER) from None
        lacking = [wnid for wnid in wnids if wnid not in places]
        if lacking:
            raise InputError(
                f"{source.path} has no {lacking[0]}.tar",
                f"expected {number_of(len(wnids), 'class', 'classes')}, "
                f"{len(lacking):,} of them missing",
                _ANOTHER_SERVER,
            )
        spans: dict[str, Span] = {}
        for wnid, (offset, length) in places.items():
            if wnid in wnids:
                spans[wnid] = (offset, offset + length)
        return cls(source, spans, manner)

    @property
    def size(self) -> int:
        """Bytes of all class tars."""
        return sum(stop - start for start, stop in self.spans.values())

    def bytes_to_come(self, layout: Layout) -> int:
        """Bytes still to fetch."""
        kept = 0
        for wnid in self.spans:
            kept += kept_bytes(layout.part_path(f"{wnid}.tar"), self._remote_of(wnid))
        return self.size - kept

    def fetch(self, layout: Layout, places: ClassTars) -> None:
        """Fetch each class tar, check it, and give it its final name.

        Raises:
            InputError: a class arrived damaged; it is set aside.
            AccessError, NetworkError, SpaceError: the download failed; received bytes are kept.
        """
        make_folder(local_path(places.path))
        for wnid in self.spans:
            partial = layout.part_path(f"{wnid}.tar")
            fetch_span(self.source, self.spans[wnid], partial, self._remote_of(wnid), self.manner)
            self._check(layout, wnid)
            finish(partial, local_path(places.tar(wnid)))

    def _remote_of(self, wnid: str) -> Remote:
        start, stop = self.spans[wnid]
        whole = self.source.remote
        return replace(whole, url=f"{whole.url}/{wnid}.tar", total=stop - start)

    def _check(self, layout: Layout, wnid: str) -> None:
        """Check a received class tar by its headers."""
        tar = layout.part_path(f"{wnid}.tar")
        try:
            images, _ = ArchiveIndex("train")((tar, wnid, 0, None))
            fault = "" if len(images) else "it holds no image"
        except InputError as error:
            fault = f"{error.what}: {error.detail}".replace(str(tar), "it")
        if fault:
            raise set_aside(layout, f"{wnid}.tar", fault)
