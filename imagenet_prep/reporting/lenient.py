"""look: a record -> its contents, read leniently: every valid value is used, every missing one is
left out.

verify reports the faults of a record; a page should still show the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from imagenet_prep.checks.examiner import no_words
from imagenet_prep.images import format_of
from imagenet_prep.model import Box
from imagenet_prep.state.manifest import features_by_column
from imagenet_prep.tfrecord.example import (
    BytesList,
    ExampleError,
    Feature,
    Int64List,
    parse_example,
)
from imagenet_prep.tfrecord.tolerant_reader import boxes_in, first_value

Words = Callable[[str | None, str], str]

LONGEST_TEXT = 100
LONGEST_NAME = 300
"""In characters, of any text and of the name of a file, which may be a path."""


class Shown(Struct, frozen=True):
    """The contents of a record: "", None or () where it has no value.

    ``size`` is width and height in pixels as the record states them, if plausible; ``encoded`` is
    the image file. ``box_names`` are the classes of the boxes, or () if the record has none.
    """

    filename: str
    label: int | None
    wnid: str
    words: str
    size: tuple[int, int] | None
    boxes: tuple[Box, ...]
    encoded: memoryview | None
    box_names: tuple[str, ...] = ()


Names = Mapping[str, tuple[str, ...]]
"""The feature names to look for, by their meaning; the first one that a record has counts.

"image" holds an image file; "likely image" does if it starts like one.
"""

_BY_RECIPE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "image": (("encoded",), ()),
    "likely image": ((), ("image/encoded", "encoded", "image")),
    "filename": (("path", "filename"), ("image/filename", "file_name", "filename", "path")),
    "label": (("label",), ("image/class/label", "label")),
    "words": (("text", "class"), ("image/class/text", "class", "text", "image/class/synset")),
    "width": (("width",), ("image/width", "width")),
    "height": (("height",), ("image/height", "height")),
}
"""The columns that a recipe may map to a feature, then the usual names of features."""


def names_of(settings: Mapping[str, Any]) -> Names:
    """The names in the records of a recipe with these settings:
    the mapped ones, then the usual ones.
    """
    features = features_by_column(settings)
    names: dict[str, tuple[str, ...]] = {}
    for meaning, (columns, usual) in _BY_RECIPE.items():
        mapped: list[str] = []
        for column in columns:
            mapped += features.get(column, ())
        names[meaning] = (*mapped, *usual)
    return names


USUAL = names_of({})
"""The names in records of which no recipe is known."""


def look(data: memoryview, names: Names = USUAL, words_of: Words = no_words) -> Shown | None:
    """The contents of a record, or None if its data is not a tf.train.Example.

    ``words_of`` returns the words of a class that the record leaves out, from its wnid or its file
    name.
    """
    try:
        return see(parse_example(data), names, words_of)
    except ExampleError:
        return None


def see(features: Mapping[str, Feature], names: Names, words_of: Words = no_words) -> Shown:
    """The contents of a record by the names of its features."""

    def number(meaning: str) -> int | None:
        value: int | None = first_value(features, names[meaning], Int64List)
        return value

    def text(feature_names: tuple[str, ...], longest: int = LONGEST_TEXT) -> str:
        content = first_value(features, feature_names, BytesList)
        if content is None:
            return ""
        return _clean(str(content, "utf-8", "replace"), longest)

    filename = text(names["filename"], LONGEST_NAME)
    wnid = text(("image/class/synset",))
    words = text(names["words"]) or words_of(wnid, filename)
    label = number("label")
    size = _size(number("width"), number("height"))
    image = first_value(features, names["image"], BytesList)
    if image is None:
        image = _likely_image(features, names["likely image"])
    encoded = None
    if image is not None:
        encoded = memoryview(image)
    boxes: list[Box] = []
    box_names: list[str] = []
    for box, name in boxes_in(features):
        boxes.append(box)
        if name is not None:
            box_names.append(_clean(name))
    return Shown(
        filename,
        label,
        wnid,
        words,
        size,
        tuple(boxes),
        encoded,
        tuple(box_names),
    )


def _likely_image(features: Mapping[str, Feature], names: tuple[str, ...]) -> Any:
    """The first content that starts like an image file: "image" may as well be samples."""
    for name in names:
        content = first_value(features, (name,), BytesList)
        if content and format_of(content):
            return content
    return None


def _size(width: int | None, height: int | None) -> tuple[int, int] | None:
    """A size that a record states, if an image can have it:
    no JPEG has more than 65,535 pixels per side.
    """
    if width is None or height is None:
        return None
    if 0 < width < 1 << 16 and 0 < height < 1 << 16:
        return width, height
    return None


def _clean(text: str, longest: int = LONGEST_TEXT) -> str:
    """Text from a file, cut to a length that fits the page,
    without line ends and characters that reverse or hide text.
    """
    if len(text) > longest:
        text = f"{text[:longest]}…"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "�" for character in text)
