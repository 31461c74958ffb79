"""PackedTar, a container: a tar through gzip, whose files can only be read in their order."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.model import Progress
from imagenet_prep.sources.archive_faults import REMEDY, WHOLE_COPY
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.sources.tar_members import TarFault, stream_files
from imagenet_prep.storage.mapped import open_plain
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import changed

INFLATION = 200
"""How often its own size a tar may unpack to. Annotations, 1 kB of repetitive XML a file, come to some 40."""

INFLATION_FLOOR = 1 << 30
"""Bytes that any tar may unpack to, however small it is."""

_STEP = 1 << 24  # packed bytes after which progress is told


@dataclass(frozen=True, slots=True)
class PackedTar:
    """A .tar.gz: a Row's ``offset`` counts the bytes that it unpacks to."""

    path: Path
    is_sliced: ClassVar[bool] = False
    reading: ClassVar[Reading] = "in order"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return f"{self.path.name}, byte {row.offset:,} of what it unpacks to"

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows: for little if their offsets rise, else the whole is unpacked again up to there."""
        return _Forward(self.path).read


def walk_packed(
    path: Path, progress: Progress, keep: Callable[[bytes], int] = lambda _: 0
) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Name, offset in what it unpacks to, and length of each file in a tar through gzip: one pass over all of it.

    Of a file's content as many bytes come along as ``keep`` says of its name, at most. ``progress`` is begun
    and not ended.

    Raises:
        InputError: it is damaged, cut, or unpacks to far too much.
    """
    with stream_faults(path), open_plain(path) as raw, stream_faults(path, raw.tell, WHOLE_COPY):
        size = os.fstat(raw.fileno()).st_size
        progress.begin(f"listing {path.name}", size, "B")
        done = 0
        for file in stream_files(gzip.GzipFile(fileobj=raw), limit=most_unpacked(size), keep=keep):
            yield file
            if raw.tell() - done > _STEP:
                progress.advance(raw.tell() - done)
                done = raw.tell()
        progress.advance(size - done)


def most_unpacked(size: int) -> int:
    """Bytes at which a packed tar of ``size`` bytes is taken to unpack without end."""
    return max(INFLATION_FLOOR, INFLATION * size)


@contextlib.contextmanager
def stream_faults(source: object, tell: Callable[[], int] = int, hint: str = REMEDY) -> Iterator[None]:
    """Turn what tar, gzip and the system find wrong into the error that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        raise InputError(f"{source}, unpacked, is damaged at byte {fault.offset:,}", fault.reason, hint) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged before byte {tell():,}", str(error), hint) from error
    except OSError as error:
        raise InputError(f"{error.filename or source} can't be read", error.strerror or str(error)) from error


class _Forward:
    """Reads the files of a packed tar, for several threads too; a file after the last one read goes on from there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._raw = open_plain(path)
        except OSError as error:
            raise unreadable(path, error) from error
        self._stream = gzip.GzipFile(fileobj=self._raw)

    def read(self, row: Row) -> Buffer:
        """The bytes of a file."""
        with self._lock, stream_faults(self._path, self._raw.tell, WHOLE_COPY):
            self._stream.seek(row.offset)  # backwards it begins again
            found = self._stream.read(row.length)
        if len(found) != row.length:
            raise changed(self._path, row.offset, row.length, len(found))
        return found
