"""ObjectPath: a place in an object store, ``s3://bucket/folder/name``, that is joined and asked as Paths are."""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections.abc import Generator, Iterable
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from imagenet_prep.errors import UsageError
from imagenet_prep.storage.urls import scheme_of, shown

if TYPE_CHECKING:
    from typing_extensions import Self

SCHEMES = ("s3", "gs", "az")


class ObjectPath(PosixPath):
    """An object, or the objects below a prefix as a folder.

    Joining, names and parents are those of Paths. What asks or changes the file system asks the store, as far as it is
    defined here; all else would need the path as a text for the system (``os.fspath``), and is refused in words.
    Nothing is kept: a folder is there while an object is below it. Picklable: it holds the URL and no secret.
    """

    __slots__ = ()

    @property
    def scheme(self) -> str:
        """One of SCHEMES."""
        return self.parts[0].removesuffix(":").lower()

    @property
    def bucket(self) -> str:
        """The bucket, of Azure the container."""
        return self.parts[1] if len(self.parts) > 1 else ""

    @property
    def key(self) -> str:
        """The name in the bucket; "" is the bucket itself."""
        return "/".join(self.parts[2:])

    def __str__(self) -> str:
        if not self.parts or not self.parts[0].endswith(":"):
            return "/".join(self.parts) or "."  # relative to another one
        return f"{self.parts[0]}//{'/'.join(self.parts[1:])}"

    def __fspath__(self) -> NoReturn:
        raise UsageError(
            f"{self} lies in an object store", "expected a path of this machine for this", "copy it here first"
        )

    def is_absolute(self) -> bool:
        """It is."""
        return True

    def absolute(self) -> Self:
        """Itself."""
        return self

    def resolve(self, strict: bool = False) -> Self:
        """Itself: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """There are no links."""
        return False

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing to do: a folder is there once something is in it."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and time of an object, or that it is a folder; raises FileNotFoundError."""
        from imagenet_prep.storage import objects

        found = objects.find(self)
        if found is not None:
            return status_of(found.size, found.changed)
        if self.is_dir():
            return os.stat_result((stat.S_IFDIR | 0o755, *[0] * 9))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object of this name, or one below it."""
        return self.is_file() or self.is_dir()

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object of this name."""
        from imagenet_prep.storage import objects

        return bool(self.key) and objects.find(self) is not None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object below it."""
        from imagenet_prep.storage import objects

        return objects.has_below(self)

    def read_bytes(self) -> bytes:
        """All of an object."""
        from imagenet_prep.storage import objects

        return bytes(objects.get(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object; that one is missing is not told."""
        from imagenet_prep.storage import objects

        objects.delete(self)

    def iterdir(self) -> Generator[Self, None, None]:
        """What lies in it as in a folder."""
        from imagenet_prep.storage import objects

        folders, files = objects.list_folder(self)
        yield from (self / name for name in (*folders, *(each.name for each in files)))

    def glob(self, pattern: Any, **_: Any) -> Generator[Self, None, None]:
        """What lies in it and has a name of this pattern; of one with folders, what lies in those."""
        first, slash, rest = str(pattern).partition("/")
        found = (each for each in self.iterdir() if fnmatch.fnmatchcase(each.name, first))
        if slash:
            yield from (below for each in found for below in each.glob(rest))
        else:
            yield from found


def status_of(size: int, changed: int) -> os.stat_result:
    """What os.stat says of a plain file of ``size`` bytes that was changed at that time, in ns."""
    seconds = changed // 10**9
    fields = (stat.S_IFREG | 0o644, 0, 0, 1, 0, 0, size, seconds, seconds, seconds)
    return os.stat_result(fields, {"st_mtime_ns": changed})


def place(where: str | os.PathLike[str]) -> Path:
    """A URL as an ObjectPath, also one that a Path has been made of; anything else as a Path.

    Raises:
        UsageError: the URL is of another scheme, names no bucket, or holds a secret.
    """
    if isinstance(where, ObjectPath):
        return where
    scheme = scheme_of(where)
    if scheme is None:
        return Path(where)
    text = os.fspath(where)
    if scheme not in SCHEMES:
        raise UsageError(
            f"{shown(text)} is a URL",
            f"expected a path of this machine, or {_listed()}",
            "copy it here, or mount it, and name that folder; one here that is called so is meant by its absolute path",
        )
    found = ObjectPath(f"{scheme}:/{text.partition(':')[2]}")
    if "@" in found.bucket or ":" in found.bucket or "?" in text or shown(text).endswith("..."):
        raise UsageError(
            f"{scheme}://... holds more than a bucket and a name",
            f"expected {scheme}://BUCKET/FOLDER, without a user, a password or a query",
            "put credentials into the environment, as docs/object-stores.md says",
        )
    if not found.bucket:
        raise UsageError(f"{scheme}:// names no bucket", f"expected {scheme}://BUCKET/FOLDER")
    return found


def any_object(places: Iterable[Path | None]) -> bool:
    """Whether one of them is in an object store."""
    return any(isinstance(each, ObjectPath) for each in places)


def _listed() -> str:
    return ", ".join(f"{scheme}://BUCKET/FOLDER" for scheme in SCHEMES)
