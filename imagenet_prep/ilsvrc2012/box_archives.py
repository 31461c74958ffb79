"""BoxFiles: the annotations of a split in an archive or a folder, each file's content once."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.annotation_xml import LARGEST
from imagenet_prep.model import Progress
from imagenet_prep.sources.tar_members import REMEDY, most_unpacked, stream_faults, stream_members
from imagenet_prep.storage.files import kind_in_words, names_in, open_file, scan
from imagenet_prep.storage.location import AnyPath

_STEP = 256  # files between two updates of the progress

_NO_FILE = ("expected an annotation", "remove it")
"""The expectation and the remedy for an entry of a folder that is no file."""

_ONE_EACH = "expected one annotation of each image"

File = tuple[str, str, bytes]
"""Folder name, file name without suffix, content of one annotation."""


class BoxFiles(Struct, frozen=True):
    """The annotations of one split, of one kind, in the archive or folder ``path``; a value."""

    path: AnyPath

    def identity(self) -> dict[str, Any]:
        """A JSON value that identifies this input:
        a file's size and time, or those of all files in a folder.
        """
        status = self.path.stat()
        return {"name": self.path.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}

    def files(self, progress: Progress) -> Iterator[File]:
        """Each annotation once, its content cut to one byte more than the limit.

        Raises:
            InputError: they can't be read, an archive is damaged or unpacks to far too much, or an
                image repeats.
        """
        names: set[tuple[str, str]] = set()
        for count, file in enumerate(self._files(progress), 1):
            names.add(file[:2])
            if len(names) < count:
                raise self._twins(*file[:2])
            yield file

    def _twins(self, folder: str, name: str) -> InputError:
        """The error for two annotations of one image."""
        shown = f"{folder}/{name}.xml".lstrip("/")
        return InputError(f"{self.path} holds two annotations named {shown}", _ONE_EACH, REMEDY)

    @abstractmethod
    def _files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the fastest order."""


def box_files_at(path: AnyPath) -> BoxFiles:
    """Annotations at a given path: an archive of ``<wnid>/*.xml`` or an unpacked folder of them."""
    return BoxFolder(path) if path.is_dir() else BoxArchive(path)


class BoxFolder(BoxFiles, frozen=True):
    """Annotations that are files in class folders, or in one folder."""

    def identity(self) -> dict[str, Any]:
        """A digest of the names, sizes and times of all files."""
        digest = hashlib.sha256()
        count = 0
        with stream_faults(self.path):
            for path in self._paths():
                status = _status_of(path)
                if not stat.S_ISREG(status.st_mode):  # reading a pipe could block forever
                    raise InputError(f"{path} is {kind_in_words(path)}", *_NO_FILE)
                line = f"{path.parent.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n"
                digest.update(os.fsencode(line))
                count += 1
        return {"name": self.path.name, "files": count, "sha256": digest.hexdigest()}

    def _files(self, progress: Progress) -> Iterator[File]:
        progress.begin(f"read {self.path.name}", None, "files")
        for path in self._paths():
            with stream_faults(self.path), open_file(path) as file:
                content = file.read(LARGEST + 1)
            yield path.parent.name, path.stem, content
            progress.advance()

    def _twins(self, folder: str, name: str) -> InputError:
        """The error for the files of one name in the folder and in its subfolder of that name."""
        twins = [path for path in self._paths() if (path.parent.name, path.stem) == (folder, name)]
        return InputError(
            f"{' and '.join(map(str, twins))} are of the same image",
            _ONE_EACH,
            "remove one of the two files",
        )

    def _paths(self) -> Iterator[AnyPath]:
        """Every *.xml in the folder and its direct subfolders, sorted."""
        with scan(self.path) as entries:
            names = sorted((entry.name, entry.is_dir()) for entry in entries)
        for name, is_folder in names:
            if is_folder:
                files = sorted(names_in(self.path / name))
                yield from (self.path / name / file for file in files if file.endswith(".xml"))
            elif name.endswith(".xml"):
                yield self.path / name


def _status_of(path: AnyPath) -> os.stat_result:
    """The status of a file that is listed in its folder."""
    try:
        return path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise InputError(f"{path} is a broken link", *_NO_FILE) from None
        raise


class BoxArchive(BoxFiles, frozen=True):
    """Annotations in a tar, plain or gzip; read as a stream, never unpacked."""

    def _files(self, progress: Progress) -> Iterator[File]:
        archive, size = self.path, self.path.stat().st_size
        progress.begin(f"read {archive.name}", size, "B")
        reported = 0
        with stream_faults(archive), open_file(archive) as raw, stream_faults(archive, raw.tell):
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            members = stream_members(stream, limit=most_unpacked(size), keep=LARGEST + 1)
            for count, (member, content) in enumerate(members):
                folder, _, name = member.decode("utf-8", "surrogateescape").rpartition("/")
                if name.endswith(".xml"):
                    yield folder.rpartition("/")[2], name[:-4], content
                if count % _STEP == 0:  # asking for each file would take a fifth of the time
                    position = raw.tell()
                    progress.advance(position - reported)
                    reported = position
            progress.advance(size - reported)
