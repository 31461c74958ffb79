"""BoxFiles, where annotations lie (an archive or a folder), and the one way to read them: a file after the other."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.voc import LARGEST
from imagenet_prep.model import Progress
from imagenet_prep.sources.archive_faults import REMEDY, most_unpacked, stream_faults
from imagenet_prep.sources.tar_members import stream_members
from imagenet_prep.storage.files import names_in, open_file, scan
from imagenet_prep.storage.location import AnyPath

BOX_ARCHIVES = {facts.TRAIN: "boxes", facts.VALIDATION: "validation-boxes"}
"""The key of the official archive of annotations, by split."""

_STEP = 256  # files after which progress is told

File = tuple[str, str, bytes]
"""Folder name, file name without suffix, content of one annotation."""


class BoxFiles(Protocol):
    """The annotations of one split, as one kind of copy holds them: a value."""

    @property
    def path(self) -> AnyPath:
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


def box_files_at(path: AnyPath) -> BoxFiles:
    """Annotations that someone names: an archive of ``<wnid>/*.xml`` or an unpacked folder of them."""
    return BoxFolder(path) if path.is_dir() else BoxArchive(path)


def refuse_repeated(path: AnyPath, files: Iterable[File]) -> Iterator[File]:
    """The annotations that an archive holds, as long as no two are of one image; else InputError is raised."""
    seen: set[tuple[str, str]] = set()
    for folder, name, content in files:
        if (folder, name) in seen:
            raise InputError(f"{path} holds {folder}/{name}.xml twice", "expected every file once", REMEDY)
        seen.add((folder, name))
        yield folder, name, content


def identity_of_file(path: AnyPath) -> dict[str, Any]:
    """What tells a file from another one."""
    status = path.stat()
    return {"name": path.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Annotations that are files in class folders, or in one folder."""

    path: AnyPath

    def identity(self) -> dict[str, Any]:
        """A digest of the names, sizes and times of all files."""
        digest = hashlib.sha256()
        count = 0
        with stream_faults(self.path):
            for path in self._paths():
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):  # to read from a pipe could take for ever
                    raise InputError(f"{path} is not a plain file", "expected an annotation", "remove it")
                line = f"{path.parent.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n"
                digest.update(os.fsencode(line))
                count += 1
        return {"name": self.path.name, "files": count, "sha256": digest.hexdigest()}

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, sorted."""
        progress.begin(f"read {self.path.name}", None, "files")
        for path in self._paths():
            with stream_faults(self.path), open_file(path) as file:
                content = file.read(LARGEST + 1)
            yield path.parent.name, path.stem, content
            progress.advance()

    def _paths(self) -> Iterator[AnyPath]:
        """Every *.xml in the folder and in the folders in it, sorted."""
        with scan(self.path) as entries:
            names = sorted((entry.name, entry.is_dir()) for entry in entries)
        for name, is_folder in names:
            if is_folder:
                inner = sorted(names_in(self.path / name))
                yield from (self.path / name / each for each in inner if each.endswith(".xml"))
            elif name.endswith(".xml"):
                yield self.path / name


@dataclass(frozen=True, slots=True)
class BoxArchive:
    """Annotations in a tar, plain or through gzip; read as a stream, never unpacked."""

    path: AnyPath

    def identity(self) -> dict[str, Any]:
        """Size and time of the archive."""
        return identity_of_file(self.path)

    def files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the order of the archive."""
        return refuse_repeated(self.path, self._files(progress))

    def _files(self, progress: Progress) -> Iterator[File]:
        archive, size = self.path, self.path.stat().st_size
        limit = most_unpacked(size)
        progress.begin(f"read {archive.name}", size, "B")
        done = 0
        with stream_faults(archive), open_file(archive) as raw, stream_faults(archive, raw.tell):
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            for count, (member, content) in enumerate(stream_members(stream, limit=limit, keep=LARGEST + 1)):
                folder, _, name = os.fsdecode(member).rpartition("/")
                if name.endswith(".xml"):
                    yield folder.rpartition("/")[2], name[:-4], content
                if count % _STEP == 0:  # to ask for each file would take a fifth of the time
                    progress.advance(raw.tell() - done)
                    done = raw.tell()
            progress.advance(size - done)
