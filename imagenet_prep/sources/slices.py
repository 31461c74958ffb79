"""FileSlices, read-only slices of a file; Container, a place of images;
and the Reader of its rows.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from imagenet_prep import sources
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention, path_word
from imagenet_prep.hints import Hint
from imagenet_prep.storage.durable import write_all
from imagenet_prep.storage.layout import RAW_NAME
from imagenet_prep.storage.location import AnyPath, Location
from imagenet_prep.storage.memory_maps import open_plain
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import RangedView, changed

Buffer = bytes | memoryview

_COPY_BLOCK = 1 << 20
_HEADERS = 16 << 10  # bytes of an object per header; they take no longer than 512


class FileSlices:
    """A file as read-only bytes, each slice one pread.

    For reading headers, and for copies: with a map, the first access to each page would cost a page
    fault.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_plain(path)
        except OSError as error:
            raise unreadable(path, error) from error
        self._descriptor = self._file.fileno()

    def __len__(self) -> int:
        return self._status().st_size

    def __getitem__(self, span: slice) -> bytes:
        return self._read(span.start, span.stop - span.start)

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def __enter__(self) -> FileSlices:
        """Do nothing: it is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    @property
    def stamp(self) -> tuple[int, int, int]:
        """A value that changes if the file is written to or replaced:
        inode, size, modification time in ns.
        """
        status = self._status()
        return status.st_ino, status.st_size, status.st_mtime_ns

    @property
    def modified(self) -> int:
        """The modification time, in ns."""
        return self.stamp[2]

    def copy(self, offset: int, length: int, target: int) -> None:
        """Append a range to the open file ``target``, within the kernel if it can.

        Raises:
            InputError: the file can't be read, or is shorter than when it was indexed.
            OSError: ``target`` can't be written.
        """
        copied = self._copy_in_kernel(offset, length, target)
        # unsupported here, or between these two: a plain copy, which also raises the true error
        while copied < length:
            content = self._read(offset + copied, min(length - copied, _COPY_BLOCK))
            if not content:
                raise changed(self.path, offset, length, copied)
            write_all(target, [content])
            copied += len(content)

    def _copy_in_kernel(self, offset: int, length: int, target: int) -> int:
        copied = 0
        if hasattr(os, "copy_file_range"):
            with contextlib.suppress(OSError):
                while copied < length:
                    count = os.copy_file_range(
                        self._descriptor, target, length - copied, offset + copied
                    )
                    if not count:
                        break
                    copied += count
        return copied


def slices_of(path: AnyPath) -> FileSlices | RangedView:
    """Open a file or an object for reading headers; raises InputError if it can't be opened."""
    if isinstance(path, Location):
        return path.store.view(path.key, least=_HEADERS)  # adjacent headers arrive with one request
    return FileSlices(path)


ReadOrder: TypeAlias = Literal["alone", "anywhere", "in order"]
"""How rows are read: each is a separate file; or all are in one file and are read in any order; or
they are read in the order of their offsets, since each requires everything before it.
"""


_container_classes: dict[str, type[Container]] = {}


def container_class(name: str) -> type[Container]:
    """The kind of container of this name, which a module of this room defines.

    Raises:
        ValueError: there is none.
    """
    for module in pkgutil.iter_modules(sources.__path__):
        if name in _container_classes:
            break
        importlib.import_module(f"{sources.__name__}.{module.name}")
    try:
        return _container_classes[name]
    except KeyError:
        raise ValueError(
            "perhaps another version of this program wrote it: it names a kind of file, "
            f"{name}, that this version doesn't know"
        ) from None


class Row(NamedTuple):
    """One file of a container: its name there, offset and length in bytes, and its modification
    time in ns.

    ``offset`` is 0 for a separate file.
    """

    name: str
    offset: int
    length: int
    stamp: int


class Container(Struct, frozen=True):
    """A place of images: the file or folder ``path``. A value, equal to another with the same
    place; picklable.

    Each kind is one module, with the function that lists it as rows of a Catalog. ``is_sliced``
    tells whether its images are plain slices of one file. ``is_consumable`` tells whether convert
    can free its space while it makes shards. ``read_order`` tells how its rows are read: "in order"
    requires bundles to make shards (see ``regroup``).
    A subclass registers itself under its name, which a saved table has: see ``container_class``.
    """

    path: AnyPath
    is_sliced: ClassVar[bool] = False
    is_consumable: ClassVar[bool] = False
    read_order: ClassVar[ReadOrder] = "anywhere"

    def __init_subclass__(cls) -> None:
        _container_classes[cls.__name__] = cls

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, byte {row.offset:,}"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows, without a copy if possible.

        Raises:
            InputError: now, or on reading a row: a file is gone, or its length has changed since
                the listing.
        """
        raise NotImplementedError


class Gone(Container, frozen=True):
    """A file that convert consumed; ``path`` is its former place."""

    def place(self, row: Row) -> str:
        """The former place of a row, for messages."""
        return f"{self.path.name}, which was consumed"

    def open(self) -> Callable[[Row], Buffer]:
        """Raise the error that says where the images are now."""
        raise gone(self.path)


def gone(path: AnyPath) -> InputError:
    """The error for a consumed file that is required again."""
    detail = "convert --consume freed its space while it made shards of its images"
    download = mention("download")
    if path.suffix == ".tar" and path.parent.name == RAW_NAME:
        download = mention("download", path_word(str(path.parent.parent)))
    hint = Hint(
        "get it again with ",
        download,
        "; then run ",
        mention("repair"),
        " to make wrong or missing shards again, or ",
        mention("convert"),
        " to make another set",
    )
    return InputError(f"{path} was consumed", detail, hint)


class Reader:
    """Reads rows of containers; keeps the last two open. Belongs to one process."""

    def __init__(self) -> None:
        self._open = functools.lru_cache(maxsize=2)(_open)
        # one value: threads may share a reader
        self._last: tuple[Container, Callable[[Row], Buffer]] | None = None

    def __reduce__(self) -> tuple[type[Reader], tuple[()]]:
        """Open files again in a copy for another process."""
        return Reader, ()

    def read(self, container: Container, row: Row) -> Buffer:
        """The bytes of a row.

        Raises:
            InputError: the file is gone, or shorter than when it was listed.
        """
        last = self._last
        # a lookup by path takes longer than slicing a map
        if last is None or container is not last[0]:
            last = self._last = container, self._open(container)
        return last[1](row)


def _open(container: Container) -> Callable[[Row], Buffer]:
    return container.open()
