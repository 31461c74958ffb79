"""Place: a path on this machine, or a Location in a Store; this module alone turns URLs into
Locations.

Both have the same methods to join, name and query. The type checker refuses an AnyPath where only a
Path works.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TypeAlias, overload

from msgspec import Struct

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import escaped
from imagenet_prep.storage.local import LocalAppender, LocalSink, LocalStore
from imagenet_prep.storage.store import RemoteAppender, RemoteSink, RemoteStore

SCHEMES = ("s3", "gs", "az")
_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]+):/{1,2}")  # a Path keeps only one of the two slashes
_SECRET = re.compile(r"[@?]")
_BUCKET = re.compile(r"[A-Za-z0-9._$-]+")
_NOT_IN_KEYS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # the store's library refuses them
_LOCAL = "expected a path on this machine"


class Location(Struct, frozen=True):
    """An object of a store, or the objects below a prefix as a folder.

    Names and methods are those of Paths, as far as objects have them. There are no links, and a
    folder exists while it holds an object. A Location can be pickled if its store can.
    """

    store: RemoteStore
    key: str = ""

    def __str__(self) -> str:
        return self.store.url(self.key)

    def __lt__(self, other: Location) -> bool:
        return str(self) < str(other)

    @property
    def name(self) -> str:
        """The last part of the key."""
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
        """The folder; a bucket is its own parent."""
        return Location(self.store, self.key.rpartition("/")[0])

    def __truediv__(self, other: str | os.PathLike[str]) -> Location:
        parts = [part for part in os.fspath(other).split("/") if part not in ("", ".")]
        return Location(self.store, "/".join([self.key, *parts] if self.key else parts))

    def with_name(self, name: str) -> Location:
        """Another name in the same folder."""
        return self.parent / name

    def with_stem(self, stem: str) -> Location:
        """Another stem with the same suffix."""
        return self.parent / f"{stem}{self.suffix}"

    def absolute(self) -> Location:
        """Itself."""
        return self

    def resolve(self) -> Location:
        """The same Location: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """False: there are no links."""
        return False

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Nothing to do: a folder exists once it holds an object."""

    def stat(self) -> os.stat_result:
        """Size and time of an object, or the status of a folder; raises FileNotFoundError."""
        entry = self.store.find(self.key)
        if entry is not None:
            return entry.stat()
        if self.is_dir():
            return os.stat_result((stat.S_IFDIR | 0o755, *[0] * 9))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    def exists(self) -> bool:
        """Whether an object has this name, or is below it."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether an object has this name."""
        return self.store.find(self.key) is not None

    def is_dir(self) -> bool:
        """Whether an object is below this name."""
        return self.store.has_below(self.key)

    def read_bytes(self) -> bytes:
        """The content of an object."""
        return bytes(self.store.get(self.key, 1 << 40))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object, if it exists."""
        self.store.delete(self.key)

    def iterdir(self) -> Iterator[Location]:
        """The folders and objects in it."""
        yield from (self / entry.name for entry in self.store.list_folder(self.key))

    def glob(self, pattern: str) -> Iterator[Location]:
        """Entries whose names match a pattern; slashes in it descend into folders."""
        name_pattern, slash, pattern_below = pattern.partition("/")
        for entry in self.iterdir():
            if fnmatch.fnmatchcase(entry.name, name_pattern):
                if slash:
                    yield from entry.glob(pattern_below)
                else:
                    yield entry


AnyPath: TypeAlias = Path | Location
"""A file or a folder, on this machine or in a store."""

Store: TypeAlias = LocalStore | RemoteStore
"""Finished files under their names; unfinished files are invisible. Names may contain slashes.

Both kinds have the same methods, which the type checker enforces:

- ``load``, ``open``, ``read_ranges`` and ``view`` read a file; ``size``, ``list`` and ``scan`` find
  it.
- ``create`` starts a Sink. ``replace`` and ``save`` write a small file durably; ``claim`` only
  creates new ones.
- ``append`` gives an Appender; ``delete`` removes a file.
- ``sync_names`` makes commits and deletions durable; ``sync`` everything, sealed or not, in one
  call for any number of files. One sync serves all stores of one ``device``.
"""

Sink: TypeAlias = LocalSink | RemoteSink
"""A file being written. As a context manager it is discarded at the end, unless it was committed.

Every method may raise OSError if the system refuses; then the file can't be trusted. It is a
GoneError if someone removed the file: then a retry is useless. ``size`` is the number of bytes
written so far.

- ``write`` appends bytes that are not durable yet; ``rest`` holds nothing open until the next call.
- ``seal`` makes every byte durable; nothing is written after that.
- ``commit`` gives the file its name, or another one, atomically. If the system crashes before the
  names are synced, the old file may be back, or none. If the sink was not sealed, some of its bytes
  may be missing until the store is synced.
- ``discard`` removes the written bytes, unless the file has its final name.
"""

Appender: TypeAlias = LocalAppender | RemoteAppender
"""A file that grows: ``append`` adds whole lines, ``sync`` makes all of them durable."""


def locate(place: str | os.PathLike[str] | Location) -> AnyPath:
    """Turn a URL, also one that went through a Path, into a Location; anything else into a Path.

    Raises:
        UsageError: the URL has another scheme, names no bucket, or holds a secret.
    """
    if isinstance(place, Location):
        return place
    text = os.fspath(place)
    scheme = scheme_of(text)
    if scheme is None:
        return Path(place)
    if scheme not in SCHEMES:
        urls = ", ".join(f"{known_scheme}://BUCKET/FOLDER" for known_scheme in SCHEMES)
        raise _is_url(text, f"{_LOCAL}, or {urls}")
    bucket, key = _bucket_and_key(scheme, text)
    from imagenet_prep.storage.object_store import ObjectStore

    return Location(ObjectStore(scheme=scheme, bucket=bucket), key)


def _bucket_and_key(scheme: str, url: str) -> tuple[str, str]:
    """The bucket of a URL, and the key of an object in it.

    Raises:
        UsageError: the URL names no bucket, or may hold a secret.
    """
    rest = url.partition(":")[2]
    parts = _parts_of(rest)
    # As of s3://$BUCKET/folder where BUCKET is not set: the folder is not treated as a bucket.
    is_without_bucket = not parts or rest.startswith("///")
    bucket = "" if is_without_bucket else parts[0]
    if ":" in bucket or _SECRET.search(url):
        raise UsageError(
            f"{scheme}://... can't be used: it has a :, @ or ?, as with a password or a query",
            f"expected {scheme}://BUCKET/FOLDER without these characters",
            "put credentials into environment variables, or rename the folder",
        )
    if not bucket:
        raise UsageError(
            f"{scheme}://{rest.removeprefix('//')} names no bucket",
            f"expected {scheme}://BUCKET/FOLDER",
        )
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(
            f"{escaped(bucket)} can't be the name of a bucket",
            f"expected {scheme}://BUCKET/FOLDER, with letters, digits, dots and hyphens in BUCKET",
        )
    if _NOT_IN_KEYS.search(url):
        raise UsageError(
            f"{escaped(url)} can't be used: it has a character that names in a store can't have",
            f"expected {scheme}://BUCKET/FOLDER without line breaks and other control characters",
            "check the address: a script may have added a line break",
        )
    return bucket, "/".join(parts[1:])


def _parts_of(rest: str) -> list[str]:
    """The bucket and the parts of the key; ``..`` is the folder above, as in a path."""
    parts: list[str] = []
    for part in rest.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def open_store(folder: AnyPath, unfinished: AnyPath | None = None) -> Store:
    """The store of a folder's files; on a disk, files are in the folder ``unfinished`` until they
    are committed, or next to their final names.
    """
    if isinstance(folder, Location):
        return folder.store.below(folder.key)
    return LocalStore(folder, None if unfinished is None else local_path(unfinished))


def split(place: AnyPath) -> tuple[Store, str]:
    """The store and the name of a file in it."""
    if isinstance(place, Location):
        return place.store, place.key
    return LocalStore(place.parent), place.name


def remembering(folder: AnyPath) -> contextlib.AbstractContextManager[None]:
    """While the block runs, list a folder of a store and those in it only once,
    to look for many names.
    """
    if isinstance(folder, Location):
        return folder.store.remembering(folder.key)
    return contextlib.nullcontext()


def local_or_none(place: AnyPath) -> Path | None:
    """The path of a place on this machine; None if it is in an object store."""
    return None if isinstance(place, Location) else place


@overload
def real_path(place: Path) -> Path: ...


@overload
def real_path(place: Location) -> Location: ...


def real_path(place: AnyPath) -> AnyPath:
    """A place with the links in its path followed, whether it exists or not.

    In a loop of links it stays as it is, where resolve() fails before Python 3.13.
    """
    if isinstance(place, Location):
        return place
    return Path(os.path.realpath(place))


def local_path(place: AnyPath) -> Path:
    """The path of a place on this machine, for a step that requires a disk.

    Raises:
        UsageError: it is in an object store.
    """
    path = local_or_none(place)
    if path is None:
        raise _is_url(place, _LOCAL)
    return path


# URLs ---------------------------------------------------------------------------------------------


def scheme_of(place: object) -> str | None:
    """The scheme of a URL, also of one that went through a Path, in lower case; None for a path."""
    match = _URL.match(str(place))
    return match[1].lower() if match else None


def shown(place: object) -> str:
    """A URL for a message: only its scheme if the rest may contain a secret."""
    text = str(place)
    match = _URL.match(text)
    if match is None:
        return text
    bucket_and_key = text[match.end() :]
    return f"{match[1].lower()}://{'...' if _SECRET.search(bucket_and_key) else bucket_and_key}"


def refuse_url(place: object) -> None:
    """Raise UsageError if ``place`` is a URL of any kind: nobody means a folder ``s3:``."""
    if scheme_of(place) is not None:
        raise _is_url(place, _LOCAL)


def _is_url(place: object, expected: str) -> UsageError:
    scheme = scheme_of(place)
    hint = "download the files, and name their folder"
    if scheme == "file":
        hint = "name the path alone, without file://"
    elif scheme in SCHEMES:
        hint = (
            "use a folder of this machine, and copy the files from or to the bucket; "
            "or mount the bucket"
        )
    return UsageError(f"{shown(place)} is a URL", expected, hint)
