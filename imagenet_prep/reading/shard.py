"""Shard: an open TFRecord file. Record: one of its records, parsed on demand."""

from __future__ import annotations

import contextlib
import functools
import itertools
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.parts import Cutout, PartChooser, decode_part
from imagenet_prep.images.pixels import decode_array, decode_rgb
from imagenet_prep.model import Box
from imagenet_prep.reading.damage_words import (
    OTHER_CONTENT,
    is_recorded,
    listed_name,
    looks_like,
    place_in_words,
    remedy,
    remedy_of_image,
    why_no_image,
)
from imagenet_prep.reading.values import (
    OF_SEQUENCES,
    USUAL,
    Conventions,
    Decoder,
    ValueRuleError,
    any_number,
)
from imagenet_prep.state.manifest import find_set, load_manifest
from imagenet_prep.state.numbering import class_index
from imagenet_prep.storage.files import view_of
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path
from imagenet_prep.storage.memory_maps import FileState, buffered, find_state, refuse_replaced
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.compression import Compression
from imagenet_prep.tfrecord.example import ExampleError, has_feature_lists
from imagenet_prep.tfrecord.framing import (
    FOOTER,
    HEADER,
    OVERHEAD,
    Framed,
    FramingError,
    View,
)
from imagenet_prep.tfrecord.inception_reader import (
    ImageRecord,
    RecordError,
    read_head,
    read_image,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

T = TypeVar("T")

_decoder = functools.cache(Decoder)

_Head = tuple[tuple[int | None, str | None, str | None], int, int | None]
"""Label, wnid and words; where the image starts and stops in the data, or None:
then the whole record is parsed.
"""


class Record:
    """One record of a shard: its ``number`` there, from 0, the ``offset`` of its header in bytes,
    its ``data``.

    The data, a serialized tf.train.Example, is a view of the file: nothing is copied. Other values
    are parsed on first use: ``features`` of any record. A record in Inception's format also has
    ``filename``, ``label``, ``class_index`` (the label counted from 0), ``wnid``, ``text``,
    ``boxes``, ``height``, ``width`` and ``encoded``, and its pixels as ``image`` and ``array``.
    Values that the record's maker left out are None, or "", or empty. A value that can't be read
    raises an InputError that names file, record and byte.
    """

    __slots__ = ("_head", "_image", "_source", "data", "number", "offset")

    def __init__(self, source: Shard, number: int, offset: int, data: memoryview) -> None:
        self._source = source
        self.number = number
        self.offset = offset
        self.data = data
        self._head: _Head | None = None
        self._image: ImageRecord | None = None

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """A copy for another process, with its own data."""
        return _of_another_process, (
            self.shard,
            self._source.compression,
            self._source.conventions,
            self.number,
            self.offset,
            bytes(self.data),
        )

    def __repr__(self) -> str:
        return f"<record {self.number} of {self.shard}, {len(self.data):,} bytes>"

    def __eq__(self, other: object) -> bool:
        """Whether it is the same record of the same file, with the same data."""
        if not isinstance(other, Record):
            return NotImplemented
        return (self.number, self.shard, self.data) == (other.number, other.shard, other.data)

    def __hash__(self) -> int:
        return hash((self.number, self.shard))

    @property
    def shard(self) -> AnyPath:
        """The file that holds it."""
        return self._source.path

    def parse(self, parse: Callable[[memoryview], T]) -> T:
        """The result of ``parse`` on the data; its errors are raised with file, record and byte.

        Raises:
            InputError: the data is not an Example, or lacks the features of an image.
            UsageError: the values are not the ones that ``parse`` expects.
        """
        try:
            return parse(self.data)
        except ExampleError as error:
            kind = looks_like(bytes(self.data[:512]))
            reason = f"{error}: it starts as {kind} does" if kind else str(error)
            what = f"{self.place} can't be read"
            hint = remedy(self.shard, OTHER_CONTENT)
            raise DamagedRecordError.of("record", self.number, "", what, reason, hint) from error
        except RecordError as error:
            what = f"{self.place} is not an image in Inception's format"
            if has_feature_lists(self.data):
                raise InputError(what, *OF_SEQUENCES) from error
            raise InputError(what, *why_no_image(self.shard, str(error))) from error
        except ValueRuleError as error:
            what = f"{self.place} can't be read with this call"
            raise UsageError(what, str(error), error.hint) from error

    @property
    def place(self) -> str:
        """Its file, number and byte, for messages."""
        return place_in_words(self.shard, self.number, self.offset, self._source.compression)

    @property
    def features(self) -> dict[str, Any]:
        """Every feature by name: one value is that value, none or several are a list, texts are
        bytes.

        A feature that may have any number of values, by the manifest or as one of objects, is
        always a list.
        """
        return self.parse(_decoder(lists=self._source.conventions.lists).example)

    def _read(self) -> ImageRecord:
        if self._image is None:
            self._image = self.parse(read_image)
        return self._image

    def _read_head(self) -> _Head:
        """Class and image alone, if they can be read without the rest."""
        head = read_head(self.data) or _head_of(self._read())
        self._head = head
        return head

    @property
    def filename(self) -> str:
        """The name of the image's file."""
        return self._read().filename

    @property
    def label(self) -> int | None:
        """The number of the image's class as the record has it: 1 to 1000 for ImageNet;
        None without a label.
        """
        return (self._head or self._read_head())[0][0]

    @property
    def class_index(self) -> int | None:
        """The label counted from 0, as networks have it: 0 to 999 for ImageNet; None without a
        label.

        Raises:
            InputError: the label is below the ``first_label`` of its set.
        """
        return class_index(self.label, self._source.conventions.first_label, self)

    @property
    def wnid(self) -> str | None:
        """The WordNet id of its class."""
        return (self._head or self._read_head())[0][1]

    @property
    def text(self) -> str | None:
        """The words for its class."""
        return (self._head or self._read_head())[0][2]

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Its boxes, relative to the image."""
        return self._read().boxes

    @property
    def height(self) -> int | None:
        """Its height in pixels."""
        return self._read().height

    @property
    def width(self) -> int | None:
        """Its width in pixels."""
        return self._read().width

    @property
    def encoded(self) -> memoryview:
        """The image's file, a JPEG: a view of the shard."""
        _, start, stop = self._head or self._read_head()
        return self._read().encoded if stop is None else self.data[start:stop]

    def image(self) -> Image:
        """Its pixels as a PIL image in RGB, not turned as EXIF might say.

        Raises:
            InputError: the image is damaged; the error names file and record.
        """
        return self._decoded(decode_rgb)

    def array(self, min_side: int | None = None) -> NDArray[np.uint8]:
        """Its pixels: uint8 of the shape (height, width, 3), in RGB, the same as those of
        ``image``.

        With ``min_side`` a JPEG is decoded at 1/2 or less as long as both sides keep that many
        pixels: faster, but THE PIXELS DIFFER from those of the whole image made smaller.

        Raises:
            InputError: the image is damaged; the error names file and record.
        """
        return self._decoded(lambda data: decode_array(data, min_side))

    def part(self, choose: PartChooser, size: int) -> NDArray[np.uint8]:
        """A part of its image, ``size`` pixels wide and high (bilinear, antialiased): uint8, (size,
        size, 3), in RGB.

        ``choose`` gets height and width of the image, and gives the part in pixels and fractions of
        them: (top, left, height, width), or an ImagePart. A JPEG is decoded at 1/2 or less as long
        as both sides of the part keep ``size`` pixels, and most rows below it are not decoded.

        Raises:
            InputError: the image is damaged; the error names file and record.
            ValueError: the part is not within the image.
        """
        return self.cutout(choose, size).resized(size)

    def cutout(self, choose: PartChooser, size: int) -> Cutout:
        """The pixels that ``part`` resizes, and the box of the part within them;
        errors as there.
        """
        return self._decoded(lambda data: decode_part(data, choose, size))

    def _decoded(self, decode: Callable[[memoryview], T]) -> T:
        try:
            return decode(self.encoded)
        except ImageError as error:
            raise self.damaged_image(error, f"{self.place}: its image can't be decoded") from error

    def damaged_image(self, error: ImageError, what: str) -> DamagedRecordError:
        """The error for an image of this record that can't be decoded; ``what`` says which one."""
        name = ""
        with contextlib.suppress(InputError):
            name = self.filename
        reason = f"{name}: {error}" if name else str(error)
        hint = remedy_of_image(self.shard, error.remedy)
        return DamagedRecordError.of("image", self.number, name, what, reason, hint)


def _of_another_process(
    path: AnyPath,
    compression: Compression,
    conventions: Conventions,
    number: int,
    offset: int,
    data: bytes,
) -> Record:
    shard = Shard(path, memoryview(b""), compression, conventions=conventions)
    return Record(shard, number, offset, memoryview(data))


def _head_of(image: ImageRecord) -> _Head:
    return (image.label, image.wnid, image.text), 0, None


class Shard(Struct, frozen=True):
    """A TFRecord file, mapped, or an object; its records as they are framed,
    intact or not, or as checked Records.
    """

    path: AnyPath
    view: View
    compression: Compression
    opened: FileState | None = None  # of a local file
    conventions: Conventions = USUAL

    @classmethod
    def open(
        cls,
        path: AnyPath,
        compression: Compression | None = None,
        *,
        in_order: bool = False,
        conventions: Conventions = USUAL,
    ) -> Shard:
        """Open a shard; its compression is detected from its first bytes unless it is given.

        Raises:
            InputError: the file can't be opened.
        """
        opened = None
        if (local := local_or_none(path)) is not None:
            with contextlib.suppress(OSError):  # ``view_of`` reports it
                opened = find_state(local)
        view = view_of(path, in_order=in_order)
        return cls(path, view, compression or compressed.detect(view), opened, conventions)

    def refuse_replaced(self) -> None:
        """Raise InputError if another file has its name now:
        records by number and in order would differ.
        """
        if self.opened is not None:
            refuse_replaced(local_path(self.path), local_path(self.path), self.opened)

    def framed(self) -> Iterator[Framed]:
        """Every record, intact or not.

        Raises:
            FramingError: the next record can't be found.
        """
        return compressed.iter_records(self.view, self.compression)

    def intact_at(
        self, start: int, stop: int, check: bool = True, expected: int | None = None
    ) -> memoryview | None:
        """The data of the record whose framing starts and stops at these bytes of a plain shard, or
        None.

        ``expected`` is the CRC that the record must have.
        """
        if isinstance(self.view, memoryview):
            return tfrecord.intact_at(self.view, start, stop, check, expected)
        return tfrecord.intact_at(self.view[start:stop], 0, stop - start, check, expected)

    def unchecked(self) -> Iterator[tuple[int, memoryview]]:
        """Byte offset and data of every record; the data is not compared with its CRC.

        In a plain shard only the headers are touched: unused data is never read from the disk.

        Raises:
            FramingError: as for ``framed``.
        """
        if self.compression == "none":
            return tfrecord.iter_unchecked(self.view)
        return ((framed.offset, framed.data) for framed in self.framed())

    def followed(self) -> Iterator[Framed]:
        """Every record, intact or not.

        Raises:
            InputError: the next record can't be found; the error names file, record and byte.
        """
        with self.naming():
            yield from self.framed()

    def stored(self) -> Iterator[tuple[int, memoryview, int]]:
        """Byte offset, data and stored CRC of every record, which are not compared.

        Raises:
            InputError: as for ``followed``.
        """
        if self.compression != "none":
            for framed in self.followed():
                yield framed.offset, framed.data, framed.crc
            return
        with self.naming():
            for offset, data in self.unchecked():
                end = offset + HEADER.size + len(data)
                (crc,) = FOOTER.unpack(self.view[end : end + FOOTER.size])
                yield offset, data, crc

    def framing(self) -> tuple[array[int], array[int]]:
        """The length of the data of each record, in bytes, and its stored CRC.

        Raises:
            InputError: as for ``followed``.
        """
        lengths, crcs = array("Q"), array("I")
        for _, data, crc in self.stored():
            lengths.append(len(data))
            crcs.append(crc)
        return lengths, crcs

    def sound(self, framed: Framed) -> Record:
        """A record of this shard.

        Raises:
            InputError: its data is damaged; the error names file, record and byte.
        """
        if not framed.intact:
            raise self.damaged(framed.number, framed.offset)
        return Record(self, framed.number, framed.offset, framed.data)

    def damaged(
        self, number: int, offset: int, reason: str = "the data does not match its CRC"
    ) -> DamagedRecordError:
        """The error for a record whose bytes are not those that were written."""
        what = f"{place_in_words(self.path, number, offset, self.compression)} is damaged"
        name = listed_name(self.path, number)
        detail = f"{name}: {reason}" if name else reason
        return DamagedRecordError.of("checksum", number, name, what, detail, remedy(self.path))

    def _unreadable(self, error: FramingError) -> DamagedRecordError:
        """The error for a place where a record should be: other bytes may follow the last one."""
        number = error.record
        place = place_in_words(self.path, number, error.offset, self.compression)
        name = listed_name(self.path, number)
        detail = f"{name}: {error.reason}" if name else error.reason
        what = f"{place} can't be read"
        return DamagedRecordError.of("checksum", number, name, what, detail, remedy(self.path))

    def exchanged(self, number: int, offset: int) -> InputError:
        """The error for a sound record that is not the recorded one."""
        place = place_in_words(self.path, number, offset, self.compression)
        what = f"{place} is not the record that was written there"
        detail = "it is intact, but its checksum is that of another record"
        return InputError(what, detail, remedy(self.path))

    def __iter__(self) -> Iterator[Record]:
        """Every record; raises InputError at the first one that is damaged."""
        return self.records()

    def records(
        self, *, check: bool = True, crcs: Sequence[int] = ()
    ) -> Generator[Record, None, int]:
        """Every record, then their number.

        Args:
            check: compare the data of a plain shard with its CRCs.
            crcs: the CRCs that the records must have; none: any.

        Raises:
            InputError: a record is damaged or another one; the error names file, record and byte.
        """
        self.refuse_replaced()
        number = end = 0
        expected_crcs = iter(crcs) if crcs else itertools.repeat(None)
        if self.compression == "none" and isinstance(self.view, memoryview):
            begin = -1
            by_map = not check  # unused data should not be read
            with buffered(local_path(self.path), self.view, self.opened) as read:
                while begin < end or not by_map:
                    # No progress: the next record is too large for a buffer, or not intact.
                    by_map = by_map or begin == end
                    begin = end
                    window = self.view[begin:] if by_map else read(begin)
                    intact = tfrecord.iter_intact(window, check=check)
                    pairs = zip(intact, expected_crcs)  # noqa: B905 - the CRCs go on in the next window
                    for (offset, data, crc), expected_crc in pairs:
                        if crc != expected_crc and expected_crc is not None:
                            raise self.exchanged(number, begin + offset)
                        yield Record(self, number, begin + offset, data)
                        number += 1
                        end = begin + offset + len(data) + OVERHEAD
        if end < len(self.view):
            for framed in itertools.islice(self.followed(), number, None):
                record = self.sound(framed)
                if crcs and [framed.crc] != [*crcs[number : number + 1]]:
                    raise self.exchanged(number, framed.offset)
                yield record
                number += 1
        return number

    def refuse_other_kind(self) -> None:
        """Raise InputError for a file of another kind; call it if its first record is not intact.

        A file that a manifest records is a damaged shard.
        """
        kind = looks_like(bytes(self.view[:512]))
        if kind and not is_recorded(Layout(self.path.parent), self.path.name):
            raise InputError(f"{self.path} is not a TFRecord file", f"it starts as {kind} does")

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Turn a FramingError into the error that names file, record and byte."""
        try:
            yield
        except FramingError as error:
            if error.offset == 0:
                self.refuse_other_kind()
                where = " in its first record" if self.compression == "none" else ""
                what = f"{self.path} is damaged{where}, or is not a TFRecord file"
                raise DamagedRecordError.of(
                    "checksum", 0, "", what, error.reason, remedy(self.path)
                ) from error
            raise self._unreadable(error) from error


def recorded_lists(path: AnyPath) -> frozenset[str]:
    """The features that hold any number of values, by the manifest of a shard's set;
    none without a sound one.
    """
    layout = Layout(path.parent)
    if not split_of(path.name):
        return frozenset()
    with contextlib.suppress(InputError):
        manifest = load_manifest(find_set(layout, split_of(path.name)).manifest_path)
        return any_number(manifest.dataset.features if manifest else {})
    return frozenset()
