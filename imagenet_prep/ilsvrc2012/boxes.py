"""BoxFiles: the annotations in an archive or a folder; parse_annotation; and the CSV that annotate
makes of them.

A line of the CSV is a box, sorted by byte value, as the original's process_bounding_boxes.py
printed it: ``n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940`` is file name, xmin, ymin, xmax,
ymax relative to the image. Two corners can be equal: boxes without area are removed before
rounding, and four decimals can't tell apart all pixels of a side above 10,000.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import os
import re
import stat
import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any, NamedTuple
from xml.parsers import expat

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Box, Progress
from imagenet_prep.sources.tar_members import REMEDY, most_unpacked, stream_faults, stream_members
from imagenet_prep.storage.files import names_in, open_file, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import has_doctype

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
        seen: set[tuple[str, str]] = set()
        for count, file in enumerate(self._files(progress), 1):
            seen.add(file[:2])
            if len(seen) < count:
                folder, name, _ = file
                raise InputError(
                    f"{self.path} holds {folder}/{name}.xml twice",
                    "expected every file once",
                    REMEDY,
                )
            yield file

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
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):  # reading a pipe could block forever
                    raise InputError(
                        f"{path} is not a plain file", "expected an annotation", "remove it"
                    )
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


class BoxArchive(BoxFiles, frozen=True):
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
            for count, (member, content) in enumerate(
                stream_members(stream, limit=limit, keep=LARGEST + 1)
            ):
                folder, _, name = member.decode("utf-8", "surrogateescape").rpartition("/")
                if name.endswith(".xml"):
                    yield folder.rpartition("/")[2], name[:-4], content
                if count % _STEP == 0:  # asking for each file would take a fifth of the time
                    progress.advance(raw.tell() - done)
                    done = raw.tell()
            progress.advance(size - done)


def find_annotations(layout: Layout, split: str) -> BoxFiles | None:
    """Find the annotations of a split, which may be apart from its images;
    None if there are none.
    """
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
    """The boxes of a split: those that annotate made, or those in the raw folder;
    None if there are none.
    """
    own = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    return next((path for path in (own, layout.raw_dir / own.name) if path.is_file()), None)


# the CSV ------------------------------------------------------------------------------------------

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
    """The boxes of each file name, packed: as objects,
    half a million would take hundreds of megabytes.
    """

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
        BoxesFault: an invalid line, a box outside the image or reversed, or a last line without an
            end.
    """
    packed: dict[str, bytes] = {}
    if content and not content.endswith(b"\n"):  # the last number may have lost digits
        raise BoxesFault(content.count(b"\n") + 1, "cut: the line has no end")
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            name, *corners = line.decode().split(",")
            xmin, ymin, xmax, ymax = map(float, corners)
        except ValueError:
            raise BoxesFault(
                number, f"expected NAME,XMIN,YMIN,XMAX,YMAX, got {_show(line)}"
            ) from None
        if not (0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1 and name):
            raise BoxesFault(
                number, f"expected 0 <= XMIN <= XMAX <= 1 and the same for Y, got {_show(line)}"
            )
        packed[name] = packed.get(name, b"") + _CORNERS.pack(xmin, ymin, xmax, ymax)
    return BoxTable(packed)


def encode_boxes(rows: Iterable[tuple[str, Box]]) -> bytes:
    """The CSV of boxes, given as file name and box in any order."""
    return b"".join(
        sorted(
            f"{name},{b.xmin:.4f},{b.ymin:.4f},{b.xmax:.4f},{b.ymax:.4f}\n".encode()
            for name, b in rows
        )
    )


def _show(line: bytes) -> str:
    line = line.removesuffix(b"\n")
    return repr(line if len(line) <= 80 else line[:77] + b"...")[1:]


# annotation files ---------------------------------------------------------------------------------
#
# ImageNet's annotation XML (PASCAL VOC's form) -> boxes, by the rules of the original script:
# docs/record-format.md, "Boxes". There are half a million files, nearly all of one shape, so a
# pattern reads a file of that shape. expat reads every other file; it takes several times as long
# and gives the same answer. expat is called directly: it is three times as fast as ElementTree, and
# lets us decide what to refuse. No document type declaration reaches it. Entities can only be
# declared in one, so none can expand (the purpose of defusedxml).

LARGEST = 1 << 20
"""The maximum bytes in an annotation; real ones have about a thousand."""

DEPTH = 20
"""The maximum depth of elements; real annotations have four."""

DIGITS = 15
"""The maximum digits of a number: up to there,
whole numbers and their quotients as floats sort alike.
"""

_CORNER_TAGS = ("xmin", "ymin", "xmax", "ymax")
_TAGS = ("width", "height", "name", *_CORNER_TAGS)


class AnnotationFault(ValueError):  # noqa: N818 - a fault in data, not in the program
    """An annotation that can't be used; its text is the reason."""


class Annotation(Struct, frozen=True):
    """The content of one file.

    Args:
        label: its first ``<name>``, unchanged: a wnid, words such as "Scottish_deerhound", or a
            wnid with blanks around it; empty if there is none.
        boxes: in the file's order, relative to the image; the CSV rounds them.
        no_area: the number of boxes left out, with no area inside the image.
        ended_early: whether an xmin of exactly -1 ended the list, as in the original.
    """

    label: str
    boxes: tuple[Box, ...]
    no_area: int = 0
    ended_early: bool = False


def parse_annotation(content: bytes) -> Annotation:
    """Parse the boxes of one annotation file.

    Corners are integers relative to the ``<size>`` that the annotator saw: divided by it, put in
    order, cut to 0..1. Boxes without area are left out.

    Raises:
        AnnotationFault: not an annotation: no XML, a DOCTYPE, too large or too deep, no size, text
            for a number.
    """
    if len(content) > LARGEST:
        raise AnnotationFault(f"larger than {LARGEST:,} bytes")
    said = _read_usual(content) or _read_any(content)
    boxes: list[Box] = []
    for number, row in enumerate(said.rows):
        if row[0] == -1:
            return Annotation(said.label, tuple(boxes), number - len(boxes), ended_early=True)
        box = _scale(*row, said.width, said.height)
        if box is not None:
            boxes.append(box)
    return Annotation(said.label, tuple(boxes), len(said.rows) - len(boxes), ended_early=False)


def _scale(x1: int, y1: int, x2: int, y2: int, width: int, height: int) -> Box | None:
    if 0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height:  # true for nearly all
        left, top, right, bottom = x1 / width, y1 / height, x2 / width, y2 / height
    else:
        left, right = sorted((_place(x1, width), _place(x2, width)))
        top, bottom = sorted((_place(y1, height), _place(y2, height)))
        if left == right or top == bottom:
            return None
    return Box(left, top, right, bottom)


def _place(pixel: int, side: int) -> float:
    return min(max(pixel / side, 0.0), 1.0)


class _Said(NamedTuple):
    """The content of a file in pixels: ``rows`` are xmin, ymin, xmax, ymax of its boxes, unchanged.

    A row whose xmin is -1 ends the list; its other corners don't count.
    """

    width: int
    height: int
    label: str
    rows: list[tuple[int, int, int, int]]


# the usual shape ----------------------------------------------------------------------------------

_WORDS = rb"[A-Za-z0-9_.% -]*"  # characters without a special meaning in XML
_INTEGER = rb"-?[0-9]{1,8}"


def _pattern(shape: bytes) -> re.Pattern[bytes]:
    """A pattern of tags, with optional blanks at each blank of ``shape``."""
    return re.compile(
        re.sub(rb"\s+", rb"[ \\t\\r\\n]*", shape) % {b"words": _WORDS, b"int": _INTEGER}
    )


_HEAD = rb"""<annotation>
    <folder>%(words)b</folder> <filename>%(words)b</filename>
    <source> <database>%(words)b</database> </source>
    <size> <width>([0-9]{1,9})</width> <height>([0-9]{1,9})</height> <depth>%(int)b</depth> </size>
    <segmented>%(int)b</segmented> """
_OBJECT = rb"""<object>
    <name>(%(words)b)</name> <pose>%(words)b</pose>
    <truncated>%(int)b</truncated> <difficult>%(int)b</difficult>
    <bndbox> <xmin>(%(int)b)</xmin> <ymin>(%(int)b)</ymin>
    <xmax>(%(int)b)</xmax> <ymax>(%(int)b)</ymax> </bndbox>
    </object> """
_END = rb"</annotation> "


@functools.cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns of a whole file, and of an object in it; compiled on first use."""
    return _pattern(_HEAD + b"(?:" + _OBJECT.replace(b">(", b">(?:") + b")*" + _END), _pattern(
        _OBJECT
    )


def _read_usual(content: bytes) -> _Said | None:
    """The content of a file of the usual shape; None for any other, which may be valid too."""
    usual, usual_object = _patterns()
    head = usual.fullmatch(content)
    if head is None or not (int(head[1]) and int(head[2])):
        return None
    objects = usual_object.findall(content, head.end(2))
    rows = [(int(x1), int(y1), int(x2), int(y2)) for _, x1, y1, x2, y2 in objects]
    return _Said(int(head[1]), int(head[2]), objects[0][0].decode() if objects else "", rows)


# any XML ------------------------------------------------------------------------------------------


_NUMBER = re.compile(f"[+-]?[0-9]{{1,{DIGITS}}}")


def _read_any(content: bytes) -> _Said:
    values = _read_elements(content)
    width, height = _parse_side(values, "width"), _parse_side(values, "height")
    return _Said(
        width, height, values["name"][0] if values["name"] else "", list(_parse_rows(values))
    )


def _parse_rows(values: dict[str, list[str]]) -> Iterator[tuple[int, int, int, int]]:
    """Rows as the original read them: the nth xmin with the nth of the others,
    -1 for a missing one.
    """
    texts = zip_longest(*(values[tag] for tag in _CORNER_TAGS), fillvalue="-1")
    for xmin_text, *others in islice(texts, len(values["xmin"])):
        xmin = _parse_integer(xmin_text, "xmin")
        if xmin == -1:
            yield -1, -1, -1, -1
            return
        ymin, xmax, ymax = map(_parse_integer, others, _CORNER_TAGS[1:])
        yield xmin, ymin, xmax, ymax


def _parse_side(values: dict[str, list[str]], tag: str) -> int:
    if not values[tag]:
        raise AnnotationFault(f"no size: <{tag}> is missing")
    side = _parse_integer(values[tag][0], tag)
    if side < 1:
        raise AnnotationFault(f"a size of {side} in <{tag}>")
    return side


def _parse_integer(text: str, tag: str) -> int:
    digits = text.strip()
    if not _NUMBER.fullmatch(digits):
        raise AnnotationFault(
            f"<{tag}> is {text[:40]!r}, not an integer of at most {DIGITS} digits"
        )
    return int(digits)


class _Reader:
    """Collects the text of the elements that matter, by tag, in the order of their start tags.

    An element's text ends at its first child, as in ElementTree.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {tag: [] for tag in _TAGS}
        self._depth = 0
        self._texts: list[str] | None = None  # text that follows belongs to its last entry

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise AnnotationFault(f"more than {DEPTH} elements nested in each other")
        self._texts = self.values.get(tag)
        if self._texts is not None:
            self._texts.append("")

    def data(self, text: str) -> None:
        if self._texts is not None:
            self._texts[-1] += text

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._texts = None


def _read_elements(content: bytes) -> dict[str, list[str]]:
    # Searched in the bytes: after a handler has raised, expat would still continue and expand.
    if has_doctype(content):
        raise AnnotationFault("a document type declaration, which annotations don't have")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator="}")  # a tag in a namespace is a different tag
    parser.buffer_text = True
    parser.CharacterDataHandler = reader.data
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(content, True)
    except AnnotationFault:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:  # the last two: not a text codec
        raise AnnotationFault(f"not well-formed XML: {error}") from error
    return reader.values
