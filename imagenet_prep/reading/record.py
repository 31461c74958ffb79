"""Record: one record of a shard, parsed on demand."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.parts import Cutout, PartChooser, decode_part
from imagenet_prep.images.pixels import decode_array, decode_rgb
from imagenet_prep.model import Box
from imagenet_prep.reading.damage_words import (
    OTHER_CONTENT,
    looks_like,
    place_in_words,
    remedy,
    remedy_of_image,
    why_no_image,
)
from imagenet_prep.reading.values import OF_SEQUENCES, Decoder, ValueRuleError
from imagenet_prep.state.numbering import class_index
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord.example import ExampleError, has_feature_lists
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

    from imagenet_prep.reading.shard import Shard

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
        return self._source.carry(self)

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


def _head_of(image: ImageRecord) -> _Head:
    return (image.label, image.wnid, image.text), 0, None
