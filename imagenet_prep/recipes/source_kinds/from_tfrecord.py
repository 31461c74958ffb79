"""TFRecords of Examples, each with an image and its values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.images import ending_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples, usual_label
from imagenet_prep.recipes.sample_columns import columns_of, join_files
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.compressed_tars import (
    LONGEST_MAGIC,
    compression_of,
    decompress_command,
)
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.files import view_of
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.example import BytesList, ExampleError, Feature, parse_example
from imagenet_prep.tfrecord.framing import Framed, FramingError, iter_records, parse_header

_OF_IMAGES = {
    f"image/{name}"
    for name in ("encoded", "format", "height", "width", "channels", "colorspace", "filename")
}
"""Features that records get from the image itself, and the name of its file."""

_WORDS = "image/class/text"


class _ContentError(ExampleError):
    """A sound record that is no Example, or one without features."""


class _NoImageError(ExampleError):
    """An Example without an image file."""


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    return join_files(_read_file, paths)


def _read_file(path: Path) -> Samples:
    builder, stamp = CatalogBuilder(Archive(path)), path.stat().st_mtime_ns
    folder = shown_name(path)
    names: list[str] = []
    samples: list[dict[str, Any]] = []
    unread_features: dict[str, None] = {}
    view = view_of(path)
    try:
        for record in iter_records(view):
            features, image_feature, image = _parse_record(record)
            offset = record.offset + 12 + bytes(record.data).find(image)
            file_name = _feature_value(features.get("image/filename"))
            file_name = file_name or f"image{ending_of(image)}"
            name = f"{folder}/{record.number:06}/{str(file_name).rpartition('/')[2]}"
            names.append(name)
            builder.append(name, offset, len(image), stamp)
            sample: dict[str, Any] = {}
            for feature_name, feature in features.items():
                if feature_name in _OF_IMAGES or feature_name == image_feature:
                    continue
                value = _feature_value(feature)
                if isinstance(value, bytes):
                    unread_features[feature_name] = None
                else:
                    sample[feature_name] = value
            samples.append(sample)
    except (FramingError, ExampleError) as error:
        start = bytes(view[0:LONGEST_MAGIC])
        raise _unreadable(path, start, len(names), error) from error
    columns = columns_of(samples)
    label = usual_label(columns)
    words = {} if label is None else _take_words(columns, label)
    passed = [f"the feature {name}: not read where it is no text" for name in unread_features]
    label_words = {label: words} if label and words else {}
    return Samples(builder.sorted(), names, columns, label_words, label, passed)


def _unreadable(path: Path, start: bytes, number: int, error: Exception) -> InputError:
    """The error for the record of this number, or for a file that is compressed by its start."""
    compression = compression_of(start)
    if compression and number == 0:
        decompress = decompress_command(str(path), str(path), compression, keeps=False)
        return InputError(
            f"{path} is compressed with {compression}",
            "expected plain TFRecords, whose images are read in place",
            Hint("decompress it, then run the same command again: ", decompress),
        )
    place = path if isinstance(error, FramingError) else f"{path}, record {number:,},"
    hint = "get a sound copy of the file, or move it away"
    if isinstance(error, _ContentError):
        hint = (
            "write a function that reads the file, for source: {python: MODULE:FUNCTION}; "
            "or move the file away"
        )
    if isinstance(error, _NoImageError):
        hint = (
            "if its pixels are raw, encode them as PNG or JPEG first, or write a function for "
            "source: {python: MODULE:FUNCTION}; or move the file away"
        )
    return InputError(
        f"{place} can't be read: {error}",
        "expected TFRecords of Examples with one image file each",
        hint,
    )


def _parse_record(record: Framed) -> tuple[dict[str, Feature], str, bytes]:
    """The features of a record, the name of the one that is the image, and the image.

    Raises ExampleError.
    """
    if not record.intact:
        raise ExampleError("its data does not match its checksum")
    try:
        features = parse_example(record.data)
    except ExampleError as error:  # the record is as it was written
        raise _ContentError(str(error)) from error
    image_feature = _find_image(features)
    return features, image_feature, bytes(features[image_feature].values[0])  # type: ignore[arg-type]


def _find_image(features: Mapping[str, Feature]) -> str:
    """The feature that holds the image: one of bytes that start as an image does."""
    candidates: list[str] = []
    for name, feature in features.items():
        if not isinstance(feature, BytesList) or len(feature.values) != 1:
            continue
        if ending_of(feature.values[0]):
            candidates.append(name)
    if not candidates:
        if not features:
            raise _ContentError("it has no features")
        names = listed(sorted(features), 6)
        raise _NoImageError(f"none of its features holds one image file (JPEG, PNG, ...): {names}")
    if "image/encoded" in candidates:
        return "image/encoded"
    return min(candidates, key=lambda name: ("image" not in name, name))


def _feature_value(feature: Feature | None) -> Any:
    """The values of a feature as texts and numbers;
    bytes if they are no text, None if there is none.
    """
    values: list[Any] = list(feature.values) if feature else []
    if isinstance(feature, BytesList):
        try:
            values = [bytes(value).decode() for value in values]
        except UnicodeDecodeError:
            return b""
    if len(values) > 1:
        return values
    return values[0] if values else None


def _take_words(columns: dict[str, list[Any]], label: str) -> dict[int, str]:
    """The words of labels, from image/class/text, which is then no column,
    if each label has its own.
    """
    texts = columns.get(_WORDS)
    if texts is None:
        return {}
    pairs: set[tuple[Any, Any]] = set()
    for label_value, text_value in zip(columns[label], texts, strict=True):
        numbers, words = flat_labels([label_value]), flat_labels([text_value])
        if len(numbers) != len(words):
            return {}
        pairs.update(zip(numbers, words, strict=True))
    word_of: dict[int, str] = {}
    for number, word in pairs:
        if isinstance(number, int) and isinstance(word, str):
            word_of[number] = word
    if len(word_of) != len(pairs):
        return {}
    del columns[_WORDS]
    return word_of


_USUAL_NAME = re.compile(r"\.tfrecords?$|-\d{5}-of-\d{5}$")


def _recognises(name: str, head: bytes) -> bool:
    if _USUAL_NAME.search(name) and compression_of(head[:LONGEST_MAGIC]):
        return True  # the error for it has the command that decompresses it
    try:
        parse_header(head[:12], 0, 0)
    except FramingError:
        return False
    return True


KIND = SourceKind(
    "tfrecord",
    60,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
    recognises=_recognises,
)
