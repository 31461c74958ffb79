"""Place: a path of this machine, or a Location in a Store; URLs become Locations here, and here alone.

Both are joined, named and asked by the same methods. The type checker refuses a AnyPath wherever only a Path will do.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from imagenet_prep.errors import UsageError
from imagenet_prep.storage.local import LocalAppender, LocalSink, LocalStore
from imagenet_prep.storage.object_store import ObjectStore
from imagenet_prep.storage.store import RemoteAppender, RemoteSink, RemoteStore

SCHEMES = ("s3", "gs", "az")
_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]+):/{1,2}")  # a Path has one slash left of the two
_SECRET = re.compile(r"[@?]")


@dataclass(frozen=True, slots=True)
class Location:
    """An object of a store, or the objects below a prefix as a folder.

    Names and methods are those of Paths, as far as objects have them: there are no links, and a folder is there while
    an object is below it. Picklable if the store is.
    """

    store: RemoteStore
    key: str = ""

    def __str__(self) -> str:
        return self.store.url(self.key)

    def __lt__(self, other: Location) -> bool:
        return str(self) < str(other)

    @property
    def name(self) -> str:
        """The last part."""
        return str(self).rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The last dot of the name and the characters after it."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Location:
        """The folder; the bucket is its own."""
        return Location(self.store, self.key.rpartition("/")[0])

    def __truediv__(self, other: str | os.PathLike[str]) -> Location:
        parts = [part for part in os.fspath(other).split("/") if part not in ("", ".")]
        return Location(self.store, "/".join([self.key, *parts] if self.key else parts))

    def with_name(self, name: str) -> Location:
        """Another one in the same folder."""
        return self.parent / name

    def with_stem(self, stem: str) -> Location:
        """Another one with the same suffix."""
        return self.parent / f"{stem}{self.suffix}"

    def absolute(self) -> Location:
        """Itself."""
        return self

    def resolve(self) -> Location:
        """Itself: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """There are no links."""
        return False

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Nothing to do: a folder is there once something is in it."""

    def stat(self) -> os.stat_result:
        """Size and time of an object, or that it is a folder; raises FileNotFoundError."""
        found = self.store.find(self.key)
        if found is not None:
            return found.status
        if self.is_dir():
            return os.stat_result((stat.S_IFDIR | 0o755, *[0] * 9))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    def exists(self) -> bool:
        """Whether there is an object of this name, or one below it."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        return self.store.find(self.key) is not None

    def is_dir(self) -> bool:
        """Whether there is an object below it."""
        return self.store.has_below(self.key)

    def read_bytes(self) -> bytes:
        """All of an object."""
        return bytes(self.store.get(self.key, 1 << 40))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object, if there is one."""
        self.store.delete(self.key)

    def iterdir(self) -> Iterator[Location]:
        """The folders and objects in it."""
        folders, files = self.store.list_folder(self.key)
        yield from (self / name for name in (*folders, *(each.name for each in files)))

    def glob(self, pattern: str) -> Iterator[Location]:
        """Those whose names fit a pattern; one with slashes goes through the folders."""
        first, slash, rest = pattern.partition("/")
        found = (each for each in self.iterdir() if fnmatch.fnmatchcase(each.name, first))
        if slash:
            yield from (below for each in found for below in each.glob(rest))
        else:
            yield from found


AnyPath: TypeAlias = Path | Location
"""Where a file or a folder is."""

Store: TypeAlias = LocalStore | RemoteStore
"""Finished files under their names; nobody sees unfinished ones here. Names may hold slashes.

Both kinds have the same methods, and the type checker holds them to it:

- ``load``, ``open``, ``read``, ``read_ranges`` and ``view`` read a file; ``size``, ``list`` and ``scan`` find it.
- ``create`` begins a Sink. ``replace`` and ``save`` write a small file whole and durably; ``claim`` only where none is.
- ``append`` gives an Appender; ``delete`` removes a file; ``abandon`` removes what killed writers left.
- ``sync_names`` makes commits and deletions durable; ``sync`` everything, sealed or not, in one go for any number of
  files. One sync serves all stores of one ``device``.
"""

Sink: TypeAlias = LocalSink | RemoteSink
"""A file being written. As a context manager it is discarded at the end, unless it was committed.

Every method may raise OSError, as the system refuses; then nothing of the file can be trusted. It is a GoneError if
someone removed the file: trying again is of no use then. ``size`` is the bytes written so far.

- ``write`` appends bytes, none of them durable yet; ``rest`` holds nothing open until the next call.
- ``seal`` makes every byte durable; nothing is written after that.
- ``commit`` gives the file its name, or another one, from one moment to the next. If the system goes down before the
  names are synced, the old file may be there again, or none; if the sink was not sealed, some of its bytes may be
  missing until the store is synced.
- ``discard`` removes the bytes written, unless the file has its name already.
"""

Appender: TypeAlias = LocalAppender | RemoteAppender
"""A file that grows: ``append`` adds whole lines, ``sync`` makes all of them durable."""


def locate(where: str | os.PathLike[str] | Location) -> AnyPath:
    """A URL as a Location, also one that a Path has been made of; anything else as a Path.

    Raises:
        UsageError: the URL has another scheme, names no bucket, or holds a secret.
    """
    if isinstance(where, Location):
        return where
    text = os.fspath(where)
    scheme = scheme_of(text)
    if scheme is None:
        return Path(where)
    urls = [f"{each}://BUCKET/FOLDER" for each in SCHEMES]
    if scheme not in SCHEMES:
        raise UsageError(
            f"{shown(text)} is a URL",
            f"expected a path of this machine, or {', '.join(urls)}",
            "copy it here, or mount it, and name that folder; one here that is called so is meant by its absolute path",
        )
    bucket, *parts = [part for part in text.partition(":")[2].split("/") if part not in ("", ".")] or [""]
    if "@" in bucket or ":" in bucket or "?" in text or shown(text).endswith("..."):
        raise UsageError(
            f"{scheme}://... holds more than a bucket and a name",
            f"expected {scheme}://BUCKET/FOLDER, without a user, a password or a query",
            "put credentials into the environment, as docs/object-stores.md says",
        )
    if not bucket:
        raise UsageError(f"{scheme}:// names no bucket", f"expected {scheme}://BUCKET/FOLDER")
    return Location(ObjectStore(scheme=scheme, bucket=bucket), "/".join(parts))


def open_store(folder: AnyPath, unfinished: AnyPath | None = None) -> Store:
    """The store of the files in a folder; on a disk, files are in ``unfinished`` until they are committed."""
    if isinstance(folder, Location):
        return folder.store.below(folder.key)
    return LocalStore(folder, folder if unfinished is None else local_path(unfinished))


def split(place: AnyPath) -> tuple[Store, str]:
    """A store and the name of a file in it."""
    return (place.store, place.key) if isinstance(place, Location) else (LocalStore(place.parent), place.name)


def local_or_none(place: AnyPath) -> Path | None:
    """The path of a place on this machine; None if it is in another store."""
    return None if isinstance(place, Location) else place


def local_path(place: AnyPath) -> Path:
    """The path of a place on this machine, for a step that needs a disk.

    Raises:
        UsageError: it is in another store.
    """
    path = local_or_none(place)
    if path is None:
        expected = "expected a path of this machine for this"
        raise UsageError(f"{place} lies in an object store", expected, "copy it here first")
    return path


# URLs ------------------------------------------------------------------------------------------------------------


def scheme_of(place: object) -> str | None:
    """The scheme of a URL, also of one that a Path has been made of, in small letters; None for a path."""
    match = _URL.match(str(place))
    return match[1].lower() if match else None


def shown(place: object) -> str:
    """A URL for a message: only its scheme, if it may hold a secret."""
    text = str(place)
    match = _URL.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    return f"{match[1].lower()}://{'...' if _SECRET.search(rest) else rest}"


def refuse_url(place: object) -> None:
    """Raise UsageError if ``place`` is a URL, of an object store or any other: a folder ``s3:`` is never meant."""
    if scheme_of(place) is not None:
        raise UsageError(
            f"{shown(place)} is a URL",
            "expected a path of this machine",
            "copy it here, or mount it, and name that folder; one here that is called so is meant by its absolute path",
        )
