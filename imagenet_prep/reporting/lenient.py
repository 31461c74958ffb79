"""A record read leniently: whatever it tells is taken, whatever it lacks is left out.

verify says what is wrong with a record; a page should still show the rest of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from imagenet_prep.checks.examiner import no_words
from imagenet_prep.images.jpeg import is_jpeg
from imagenet_prep.images.png import is_png
from imagenet_prep.model import Box
from imagenet_prep.tfrecord.example import BytesList, ExampleError, Feature, FloatList, Int64List, parse_example
from imagenet_prep.tfrecord.inception_reader import ImageRecord, RecordError, read_record

Words = Callable[[str | None, str], str]

LONGEST_TEXT = 100

_EDGES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a record shows: "", None or () for what it doesn't say.

    ``size`` is width and height in pixels as the record states them, if they make sense; ``encoded`` is the image file.
    """

    filename: str
    label: int | None
    wnid: str
    words: str
    size: tuple[int, int] | None
    boxes: tuple[Box, ...]
    encoded: memoryview | None


@dataclass(frozen=True, slots=True)
class Naming:
    """Which features of a recipe's records say what: of each row the first that is there.

    ``image`` holds an image file; ``likely_image`` does so if it begins like one.
    """

    image: tuple[str, ...]
    likely_image: tuple[str, ...]
    filename: tuple[str, ...]
    label: tuple[str, ...]
    words: tuple[str, ...]
    width: tuple[str, ...]
    height: tuple[str, ...]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Naming:
        """That of the recipe with these settings: what it maps first, then the names that are usual."""
        record = settings.get("record")
        features: dict[str, list[str]] = {}
        for feature, mapped in record.items() if isinstance(record, dict) else ():
            features.setdefault(str(mapped.get("from")) if isinstance(mapped, dict) else "", []).append(feature)

        def names(columns: tuple[str, ...], usual: tuple[str, ...] = ()) -> tuple[str, ...]:
            return (*(feature for column in columns for feature in features.get(column, ())), *usual)

        return cls(
            image=names(("encoded",), () if isinstance(record, dict) else ("image/encoded",)),
            likely_image=("image/encoded", "encoded", "image"),
            filename=names(("path", "filename"), ("image/filename", "filename", "path")),
            label=names(("label",), ("image/class/label", "label")),
            words=names(("text", "class"), ("image/class/text", "class", "text", "image/class/synset")),
            width=names(("width",), ("image/width", "width")),
            height=names(("height",), ("image/height", "height")),
        )


_BY_ANYONE = Naming(
    image=("image/encoded", "image"),
    likely_image=(),
    filename=("image/filename", "file_name", "filename"),
    label=("image/class/label", "label"),
    words=("image/class/text",),
    width=("image/width",),
    height=("image/height",),
)
"""That of records of ILSVRC2012, whoever made them."""


def look(data: memoryview, naming: Naming | None = None, words_of: Words = no_words) -> Shown | None:
    """What a record's data show, or None if they are no tf.train.Example.

    ``naming`` is that of a recipe's records; ``words_of`` tells the words of a class that the record leaves out, by its
    wnid or its file name.
    """
    try:
        if naming is not None:
            return see(parse_example(data), naming)
        return _of_record(read_record(data), words_of)
    except RecordError:
        return see(parse_example(data), _BY_ANYONE, words_of)
    except ExampleError:
        return None


def see(features: Mapping[str, Feature], naming: Naming, words_of: Words = no_words) -> Shown:
    """What the features of a record show by their names."""
    filename, wnid = _text(features, naming.filename), _text(features, ("image/class/synset",))
    return Shown(
        filename,
        _int(features, naming.label),
        wnid,
        _text(features, naming.words) or words_of(wnid, filename),
        _size(_int(features, naming.width), _int(features, naming.height)),
        tuple(_boxes(features)),
        _image(features, naming.image) or _likely_image(features, naming.likely_image),
    )


def is_drawable(box: Box) -> bool:
    """Whether a box lies within its image: what does not, or is no number, can't be drawn."""
    return 0 <= box.xmin <= box.xmax <= 1 and 0 <= box.ymin <= box.ymax <= 1


def _of_record(record: ImageRecord, words_of: Words) -> Shown:
    filename = _clean(record.filename)
    return Shown(
        filename,
        record.label,
        _clean(record.wnid or ""),
        _clean(record.text) if record.text else words_of(record.wnid, filename),
        _size(record.width, record.height),
        record.boxes,
        record.encoded,
    )


def _size(width: int | None, height: int | None) -> tuple[int, int] | None:
    """A size that a record states, if an image can have it: no JPEG has more than 65,535 pixels a side."""
    if width is None or height is None or not (0 < width < 1 << 16 and 0 < height < 1 << 16):
        return None
    return width, height


def _boxes(features: Mapping[str, Feature]) -> Iterator[Box]:
    edges = [features.get(f"image/object/bbox/{edge}") for edge in _EDGES]
    lists = [edge.values if isinstance(edge, FloatList) else () for edge in edges]
    for corners in zip(*lists, strict=False):
        if all(map(math.isfinite, corners)):
            yield Box(*corners)


def _image(features: Mapping[str, Feature], names: tuple[str, ...]) -> memoryview | None:
    value = _first(features, names, BytesList)
    return memoryview(value) if isinstance(value, bytes | memoryview) else None


def _likely_image(features: Mapping[str, Feature], names: tuple[str, ...]) -> memoryview | None:
    """The first of these features that begins as an image file does: ``image`` may as well be samples."""
    found = (_image(features, (name,)) for name in names)
    return next((each for each in found if each and (is_jpeg(each) or is_png(each))), None)


def _int(features: Mapping[str, Feature], names: tuple[str, ...]) -> int | None:
    value = _first(features, names, Int64List)
    return value if isinstance(value, int) else None


def _text(features: Mapping[str, Feature], names: tuple[str, ...]) -> str:
    value = _first(features, names, BytesList)
    return _clean(str(value, "utf-8", "replace")) if isinstance(value, bytes | memoryview) else ""


def _first(features: Mapping[str, Feature], names: tuple[str, ...], kind: type[Feature]) -> object:
    """The first value of the first of these features that is there and of this kind."""
    found = (feature.values[0] for name in names if isinstance(feature := features.get(name), kind) and feature.values)
    return next(found, None)


def _clean(text: str) -> str:
    """Text from a file, cut to a length that a page has room for, without what would turn it around or hide it."""
    return printable(text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…")


def printable(text: str) -> str:
    """Text without what would turn it around or hide it."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "�" for each in text)
