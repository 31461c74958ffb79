"""RecordImages, a container: TFRecord files whose records hold an image each, with its name and its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.storage.mapped import map_file
from imagenet_prep.storage.store import changed
from imagenet_prep.tfrecord.example import BytesList, ExampleError, Feature, Int64List, parse_example
from imagenet_prep.tfrecord.framing import FOOTER, HEADER, FramingError, intact_at, iter_unchecked, parse_header

_REMEDY = "get a sound copy of it"


class RecordRow(NamedTuple):
    """What a record tells but for its image: the byte that it begins at, name, label, how many bytes its image has."""

    offset: int
    name: bytes
    label: int
    length: int


@dataclass(frozen=True, slots=True)
class RecordImages:
    """A file of Examples whose feature ``image`` is an image file: a Row's ``offset`` is where its record begins."""

    path: Path
    is_sliced: ClassVar[bool] = False
    reading: ClassVar[Reading] = "anywhere"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return f"{self.path.name}, byte {row.offset:,}"

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows: parts of the file's map, once the record agrees with its CRC."""
        content = map_file(self.path)

        def read(row: Row) -> Buffer:
            try:
                start = row.offset + HEADER.size
                length = parse_header(content[row.offset : start], 0, row.offset)
                data = intact_at(content, row.offset, start + length + FOOTER.size)
                if data is None:
                    raise _damaged(self.path, row.offset, "its data do not match their CRC")
                image: Buffer = _one(parse_example(data), "image", BytesList)
            except (FramingError, ExampleError) as error:
                raise _damaged(self.path, row.offset, str(error)) from error
            if len(image) != row.length:
                raise changed(self.path, row.offset, row.length, len(image))
            return image

        return read


def iter_record_images(path: Path) -> Iterator[RecordRow]:
    """All records of a file in order; their images are not touched, so their CRCs are compared when they are read.

    Raises:
        InputError: the file is damaged, or holds something else.
    """
    offset = 0
    try:
        for offset, data in iter_unchecked(map_file(path)):
            features = parse_example(data)
            name, image = _one(features, "file_name", BytesList), _one(features, "image", BytesList)
            yield RecordRow(offset, bytes(name), _one(features, "label", Int64List), len(image))
    except (FramingError, ExampleError) as error:
        raise _damaged(path, offset, str(error)) from error


def _one(features: Mapping[str, Feature], name: str, kind: type[BytesList] | type[Int64List]) -> Any:
    """The one value of a feature; raises ExampleError if there is none, or several."""
    found = features.get(name)
    if not isinstance(found, kind) or len(found.values) != 1:
        raise ExampleError(f"expected one value of {name}")
    return found.values[0]


def _damaged(path: Path, offset: int, reason: str) -> InputError:
    return InputError(f"{path} is damaged in the record at byte {offset:,}", reason, _REMEDY)
