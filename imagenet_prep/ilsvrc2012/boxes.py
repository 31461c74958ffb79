"""BoxFiles: the annotations in an archive or a folder; and the CSV of boxes that annotate makes of them.

A line of the CSV is a box, sorted by byte value, as the original's process_bounding_boxes.py printed it:
``n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940`` is file name, xmin, ymin, xmax, ymax relative to the image. Two
corners can be equal: boxes without area are removed before rounding, and four decimals can't tell apart all pixels of
a side above 10,000.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.voc import LARGEST
from imagenet_prep.model import Box, Progress
from imagenet_prep.sources.tar_members import REMEDY, most_unpacked, stream_faults, stream_members
from imagenet_prep.storage.files import names_in, open_file, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

BOX_ARCHIVES = {facts.TRAIN: "boxes", facts.VALIDATION: "validation-boxes"}
"""The key of the official archive of annotations, by split."""

BOX_FOLDERS = {
    facts.TRAIN: ("ILSVRC/Annotations/CLS-LOC/train", "Annotations/CLS-LOC/train"),
    facts.VALIDATION: ("ILSVRC/Annotations/CLS-LOC/val", "Annotations/CLS-LOC/val"),
}
"""Folders searched for annotations: Kaggle's tree."""

_STEP = 256  # files between two updates of the progress

File = tuple[str, str, bytes]
"""Folder name, file name without suffix, content of one annotation."""


@dataclass(frozen=True, slots=True)
class BoxFiles(ABC):
    """The annotations of one split, of one kind, in the archive or folder ``path``; a value."""

    path: AnyPath

    def identity(self) -> dict[str, Any]:
        """A JSON value that identifies this input: a file's size and time, or those of all files in a folder."""
        status = self.path.stat()
        return {"name": self.path.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}

    def files(self, progress: Progress) -> Iterator[File]:
        """Each annotation once, its content cut to one byte more than the limit.

        Raises:
            InputError: they can't be read, an archive is damaged or unpacks to far too much, or an image repeats.
        """
        seen: set[tuple[str, str]] = set()
        for count, file in enumerate(self._files(progress), 1):
            seen.add(file[:2])
            if len(seen) < count:
                folder, name, _ = file
                raise InputError(f"{self.path} holds {folder}/{name}.xml twice", "expected every file once", REMEDY)
            yield file

    @abstractmethod
    def _files(self, progress: Progress) -> Iterator[File]:
        """Every annotation, in the fastest order."""


def box_files_at(path: AnyPath) -> BoxFiles:
    """Annotations at a given path: an archive of ``<wnid>/*.xml`` or an unpacked folder of them."""
    return BoxFolder(path) if path.is_dir() else BoxArchive(path)


@dataclass(frozen=True, slots=True)
class BoxFolder(BoxFiles):
    """Annotations that are files in class folders, or in one folder."""

    def identity(self) -> dict[str, Any]:
        """A digest of the names, sizes and times of all files."""
        digest = hashlib.sha256()
        count = 0
        with stream_faults(self.path):
            for path in self._paths():
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):  # reading a pipe could block forever
                    raise InputError(f"{path} is not a plain file", "expected an annotation", "remove it")
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

    def _paths(self) -> Iterator[AnyPath]:
        """Every *.xml in the folder and its direct subfolders, sorted."""
        with scan(self.path) as entries:
            names = sorted((entry.name, entry.is_dir()) for entry in entries)
        for name, is_folder in names:
            if is_folder:
                inner = sorted(names_in(self.path / name))
                yield from (self.path / name / each for each in inner if each.endswith(".xml"))
            elif name.endswith(".xml"):
                yield self.path / name


@dataclass(frozen=True, slots=True)
class BoxArchive(BoxFiles):
    """Annotations in a tar, plain or gzip; read as a stream, never unpacked."""

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
                folder, _, name = member.decode("utf-8", "surrogateescape").rpartition("/")
                if name.endswith(".xml"):
                    yield folder.rpartition("/")[2], name[:-4], content
                if count % _STEP == 0:  # asking for each file would take a fifth of the time
                    progress.advance(raw.tell() - done)
                    done = raw.tell()
            progress.advance(size - done)


def find_annotations(layout: Layout, split: str) -> BoxFiles | None:
    """Find the annotations of a split, which may be apart from its images; None if there are none."""
    archive = layout.archive_path(facts.ARCHIVES[BOX_ARCHIVES[split]])
    if archive.is_file():
        return BoxArchive(archive)
    for folder in (layout.raw_dir / name for name in BOX_FOLDERS[split]):
        if folder.is_dir():
            return BoxFolder(folder)
    from imagenet_prep.ilsvrc2012.portals import ZIP, BoxesInZip  # late: it loads NumPy

    zipped = layout.archive_path(ZIP)
    return BoxesInZip(zipped, split) if zipped.is_file() else None


def find_boxes_csv(layout: Layout, split: str) -> AnyPath | None:
    """The boxes of a split: those that annotate made, or those in the raw folder; None if there are none."""
    own = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    return next((path for path in (own, layout.raw_dir / own.name) if path.is_file()), None)


# the CSV -------------------------------------------------------------------------------------------------------

_CORNERS = struct.Struct("4d")


class BoxesFault(ValueError):  # noqa: N818 - a fault in data, not in the program
    """An invalid line; ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"line {self.line:,}: {self.reason}"


class BoxTable(Mapping[str, tuple[Box, ...]]):
    """The boxes of each file name, packed: as objects, half a million would take hundreds of megabytes."""

    def __init__(self, packed: dict[str, bytes]) -> None:
        self._packed = packed

    def __getitem__(self, name: str) -> tuple[Box, ...]:
        """The boxes of one image."""
        return tuple(Box(*corners) for corners in _CORNERS.iter_unpack(self._packed[name]))

    def __contains__(self, name: object) -> bool:
        """Whether an image has boxes; it unpacks none."""
        return name in self._packed

    def __iter__(self) -> Iterator[str]:
        """The file names."""
        return iter(self._packed)

    def __len__(self) -> int:
        """The number of images with boxes."""
        return len(self._packed)


def parse_boxes(content: bytes) -> BoxTable:
    """Parse the boxes of each file name, in line order. Half a million lines take about a second.

    Raises:
        BoxesFault: an invalid line, a box outside the image or reversed, or a last line without an end.
    """
    packed: dict[str, bytes] = {}
    if content and not content.endswith(b"\n"):  # the last number may have lost digits
        raise BoxesFault(content.count(b"\n") + 1, "cut: the line has no end")
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            name, *corners = line.decode().split(",")
            xmin, ymin, xmax, ymax = map(float, corners)
        except ValueError:
            raise BoxesFault(number, f"expected NAME,XMIN,YMIN,XMAX,YMAX, got {_show(line)}") from None
        if not (0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1 and name):
            raise BoxesFault(number, f"expected 0 <= XMIN <= XMAX <= 1 and the same for Y, got {_show(line)}")
        packed[name] = packed.get(name, b"") + _CORNERS.pack(xmin, ymin, xmax, ymax)
    return BoxTable(packed)


def encode_boxes(rows: Iterable[tuple[str, Box]]) -> bytes:
    """The CSV of boxes, given as file name and box in any order."""
    return b"".join(
        sorted(f"{name},{b.xmin:.4f},{b.ymin:.4f},{b.xmax:.4f},{b.ymax:.4f}\n".encode() for name, b in rows)
    )


def _show(line: bytes) -> str:
    line = line.removesuffix(b"\n")
    return repr(line if len(line) <= 80 else line[:77] + b"...")[1:]
