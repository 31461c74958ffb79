"""RemoteClasses: finds the tars of some classes inside the train archive on a server, and fetches each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from imagenet_prep.errors import InputError
from imagenet_prep.fetch.partial import Span, finish, kept_bytes
from imagenet_prep.fetch.reply import Remote, RemoteFile
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.target import set_aside
from imagenet_prep.fetch.transfer import Manner, fetch_span
from imagenet_prep.ilsvrc2012.official import ArchiveIndex, ClassTars, class_tars
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path


@dataclass(frozen=True, slots=True)
class _ClassFile:
    """The file's name, so that paths can be formed."""

    filename: str


@dataclass(frozen=True, slots=True)
class RemoteClasses:
    """The classes in the train archive on a server: offset and end of each one's tar, by wnid.

    No digest of a class is known. Instead, the headers before it are checked, and its own headers after it arrives;
    convert decodes each image.
    """

    source: RemoteFile
    spans: Mapping[str, Span]
    manner: Manner

    @classmethod
    def find(cls, session: Session, url: str, remote: Remote, wanted: Collection[str], manner: Manner) -> RemoteClasses:
        """Walk the headers of the archive, one request each, until every wanted class is found.

        Raises:
            InputError: the archive is damaged, or lacks a class.
            NetworkError: the server can't be reached, or sends no parts of a file.
        """
        manner.progress.note(f"looking for {len(wanted):,} classes in {remote.url.rpartition('/')[2]}")
        source = RemoteFile(session, url, remote, manner.pace)
        found = class_tars(source, wanted)
        lacking = [wnid for wnid in wanted if wnid not in found]
        if lacking:
            raise InputError(
                f"{source.path} has no {lacking[0]}.tar",
                f"expected {len(wanted):,} classes, {len(lacking):,} are missing",
                "check the address given with --base-url",
            )
        spans = {wnid: (offset, offset + length) for wnid, (offset, length) in found.items() if wnid in wanted}
        return cls(source, spans, manner)

    @property
    def size(self) -> int:
        """Bytes of all class tars."""
        return sum(stop - start for start, stop in self.spans.values())

    def bytes_to_come(self, layout: Layout) -> int:
        """Bytes still to fetch."""
        kept = (kept_bytes(layout.part_path(_file(wnid)), self._remote_of(wnid)) for wnid in self.spans)
        return self.size - sum(kept)

    def fetch(self, layout: Layout, places: ClassTars) -> None:
        """Fetch each class tar, check it, and give it its final name.

        Raises:
            InputError: a class arrived damaged; it is set aside.
            AccessError, NetworkError, SpaceError: the download failed; received bytes are kept.
        """
        make_folder(local_path(places.path))
        for wnid in self.spans:
            partial = layout.part_path(_file(wnid))
            fetch_span(self.source, self.spans[wnid], partial, self._remote_of(wnid), self.manner)
            self._check(layout, wnid)
            finish(partial, local_path(places.tar(wnid)))

    def _remote_of(self, wnid: str) -> Remote:
        start, stop = self.spans[wnid]
        whole = self.source.remote
        return replace(whole, url=f"{whole.url}/{_file(wnid).filename}", total=stop - start)

    def _check(self, layout: Layout, wnid: str) -> None:
        """Check a received class tar by its headers."""
        try:
            found = len(ArchiveIndex("train")((layout.part_path(_file(wnid)), wnid, 0, None)))
            fault = "" if found else "it holds no image"
        except InputError as error:
            fault = f"{error.what}: {error.detail}"
        if fault:
            raise set_aside(layout, _file(wnid), fault)


def _file(wnid: str) -> _ClassFile:
    return _ClassFile(f"{wnid}.tar")
