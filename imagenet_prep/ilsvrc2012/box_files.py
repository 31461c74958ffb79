"""BoxFiles, where annotations lie (an archive or a folder), and the one way to read them: a file after the other."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.voc import LARGEST
from imagenet_prep.model import Progress
from imagenet_prep.sources.archive_faults import REMEDY
from imagenet_prep.sources.tar_members import TarFault, stream_members

INFLATION = 200
"""How often its own size an archive may unpack to. The real ones, 1 kB of repetitive XML a file, come to some 40."""

INFLATION_FLOOR = 1 << 30
"""Bytes that any archive may unpack to, however small it is."""

BOX_ARCHIVES = {facts.TRAIN: "boxes", facts.VALIDATION: "validation-boxes"}
"""The key of the official archive of annotations, by split."""

_STEP = 256  # files after which progress is told

File = tuple[str, str, bytes]
"""Folder name, file name without suffix, content of one annotation."""


class BoxFiles(Protocol):
    """The annotations of one split, as one kind of copy holds them: a value."""

    @property
    def path(self) -> Path:
        """The archive or the folder that they lie in."""
        ...

    def identity(self) -> dict[str, Any]:
        """What tells this input from another, for JSON: of a file its size and time, of a folder those of its files."""
        ...

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation once, its content cut to one byte more than is allowed.

        Raises:
            InputError: they can't be read, or an archive is damaged or unpacks to far too much.
        """
        ...


def box_files_at(path: Path) -> BoxFiles:
    """Annotations that someone names: an archive of ``<wnid>/*.xml`` or an unpacked folder of them."""
    return BoxFolder(path) if path.is_dir() else BoxArchive(path)


def identity_of_file(path: Path) -> dict[str, Any]:
    """What tells a file from another one."""
    status = path.stat()
    return {"name": path.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Annotations that are files in class folders, or in one folder."""

    path: Path

    def identity(self) -> dict[str, Any]:
        """A digest of the names, sizes and times of all files."""
        digest = hashlib.sha256()
        count = 0
        with _naming(self.path):
            for path in self._paths():
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):  # to read from a pipe could take for ever
                    raise InputError(f"{path} is no plain file", "expected an annotation", "remove it")
                line = f"{path.parent.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n"
                digest.update(os.fsencode(line))
                count += 1
        return {"name": self.path.name, "files": count, "sha256": digest.hexdigest()}

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, sorted."""
        progress.begin(f"read {self.path.name}", None, "files")
        for path in self._paths():
            with _naming(self.path), path.open("rb") as file:
                content = file.read(LARGEST + 1)
            yield path.parent.name, path.stem, content
            progress.advance()

    def _paths(self) -> Iterator[Path]:
        """Every *.xml in the folder and in the folders in it, sorted."""
        with os.scandir(self.path) as entries:
            names = sorted((entry.name, entry.is_dir()) for entry in entries)
        for name, is_folder in names:
            if is_folder:
                inner = sorted(os.listdir(self.path / name))
                yield from (self.path / name / each for each in inner if each.endswith(".xml"))
            elif name.endswith(".xml"):
                yield self.path / name


@dataclass(frozen=True, slots=True)
class BoxArchive:
    """Annotations in a tar, plain or through gzip; read as a stream, never unpacked."""

    path: Path

    def identity(self) -> dict[str, Any]:
        """Size and time of the archive."""
        return identity_of_file(self.path)

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the order of the archive."""
        archive, size = self.path, self.path.stat().st_size
        limit = max(INFLATION_FLOOR, INFLATION * size)
        progress.begin(f"read {archive.name}", size, "B")
        seen: set[tuple[str, str]] = set()
        done = 0
        with _naming(archive), archive.open("rb") as raw, _naming(archive, raw.tell):
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            for member, content in stream_members(stream, limit=limit, keep=LARGEST + 1):
                folder, _, name = os.fsdecode(member).rpartition("/")
                if not name.endswith(".xml"):
                    continue
                file = (folder.rpartition("/")[2], name[:-4])
                if file in seen:
                    raise InputError(f"{archive} holds {folder}/{name} twice", "expected every file once", REMEDY)
                seen.add(file)
                yield (*file, content)
                if len(seen) % _STEP == 0:  # to ask for each file would take a fifth of the time
                    progress.advance(raw.tell() - done)
                    done = raw.tell()
            progress.advance(size - done)


@contextlib.contextmanager
def _naming(source: Path, tell: Callable[[], int] = int) -> Iterator[None]:
    """Turn what tar, gzip and the system find wrong into the error that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        raise InputError(f"{source}, unpacked, is damaged at byte {fault.offset:,}", fault.reason, REMEDY) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged before byte {tell():,}", str(error), REMEDY) from error
    except OSError as error:
        raise InputError(f"{error.filename or source} can't be read", error.strerror or str(error)) from error
