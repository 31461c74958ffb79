"""RemoteClasses: the tars of some classes, found within the train archive on a server and fetched one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from imagenet_prep.errors import InputError
from imagenet_prep.fetch.partial import Span, finish, forget, kept_bytes
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.fetch.window import RemoteSlices, Window
from imagenet_prep.ilsvrc2012.official import ArchiveIndex, ClassTars, class_tars
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import map_file
from imagenet_prep.storage.location import local_path


@dataclass(frozen=True, slots=True)
class _ClassFile:
    """What paths are made of."""

    filename: str


@dataclass(frozen=True, slots=True)
class RemoteClasses:
    """Where classes lie in the train archive on a server: offset and end of each one's tar, by wnid.

    No digest of a class is known. Instead, the headers on the way to it are checked, and those within it when it has
    arrived; convert decodes each image.
    """

    session: Session
    url: str
    remote: Remote
    spans: Mapping[str, Span]
    manner: Manner

    @classmethod
    def find(cls, session: Session, url: str, remote: Remote, wanted: Collection[str], manner: Manner) -> RemoteClasses:
        """Walk the headers of the archive, each by a request of its own, until all that is wanted is found.

        Raises:
            InputError: the archive is damaged, or lacks a class.
            NetworkError: the server can't be reached, or does not serve parts of a file.
        """
        manner.progress.note(f"looking for {len(wanted):,} classes in {remote.url.rpartition('/')[2]}")
        view = RemoteSlices(session, url, remote, manner.pace)
        found = class_tars(view, wanted)
        lacking = [wnid for wnid in wanted if wnid not in found]
        if lacking:
            raise InputError(
                f"{view.path} has no {lacking[0]}.tar",
                f"expected {len(wanted):,} classes, {len(lacking):,} are missing",
                "check the address given with --base-url",
            )
        spans = {wnid: (offset, offset + length) for wnid, (offset, length) in found.items() if wnid in wanted}
        return cls(session, url, remote, spans, manner)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(stop - start for start, stop in self.spans.values())

    def bytes_to_come(self, layout: Layout) -> int:
        """Those that are still to be fetched."""
        kept = (kept_bytes(layout.part_path(_file(wnid)), self._remote_of(wnid)) for wnid in self.spans)
        return self.size - sum(kept)

    def fetch(self, layout: Layout, places: ClassTars) -> None:
        """Put each where it belongs, whole and looked at.

        Raises:
            InputError: a class arrived damaged; it is kept aside.
            AccessError, NetworkError, SpaceError: as their names say; what has arrived is kept.
        """
        make_folder(local_path(places.path))
        for wnid in self.spans:
            partial, remote = layout.part_path(_file(wnid)), self._remote_of(wnid)
            fetch(self._window(wnid), remote.url, partial, self.manner, remote=remote)
            self._check(layout, wnid)
            finish(partial, local_path(places.tar(wnid)))

    def _window(self, wnid: str) -> Window:
        return Window(self.session, self.url, self.remote.total, self.spans[wnid])

    def _remote_of(self, wnid: str) -> Remote:
        return self._window(wnid).remote(self.remote, f"{self.remote.url}/{_file(wnid).filename}")

    def _check(self, layout: Layout, wnid: str) -> None:
        """Walk the headers of a class that has arrived."""
        partial = layout.part_path(_file(wnid))
        try:
            found = len(ArchiveIndex("train")((partial, wnid, 0, None)))
            fault = "" if found else "it holds no image"
        except InputError as error:
            fault = f"{error.what}: {error.detail}"
        if not fault:
            return
        aside = layout.corrupt_path(_file(wnid), hashlib.sha256(map_file(partial)).hexdigest())
        partial.replace(aside)
        forget(partial)
        raise InputError(
            f"{wnid}.tar arrived damaged; it is kept as {aside}",
            fault,
            "delete that file and run the same command again to fetch it again",
        )


def _file(wnid: str) -> _ClassFile:
    return _ClassFile(f"{wnid}.tar")
