"""Prints records of any TFRecord file of tf.train.Example or tf.train.SequenceExample."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from imagenet_prep.checks.examiner import printable
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.images import format_of, grades, jpeg, pixels
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.files import absence_of, atomic_file
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.storage.location import AnyPath, locate
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.example import (
    KINDS,
    BytesList,
    Feature,
    has_feature_lists,
    parse_features,
    parse_sequence_example,
)
from imagenet_prep.tfrecord.tolerant_reader import boxes_in

if TYPE_CHECKING:
    from PIL import Image

Buffer = bytes | memoryview

SHOWN_VALUES = 8
SHOWN_STEPS = 8
SHOWN_BYTES = 16

NOT_SET = "(not set)"
"""Shown for a name without a feature: protobuf allows that, and empty lists."""

_BOX_COLOUR = (255, 64, 0)


Steps = tuple[Feature | None, ...]
"""A feature list: one feature per step."""


class ShownRecord(Struct, frozen=True):
    """One record: number from 0, byte offset of its header (uncompressed), size of its data in
    bytes, sorted features.

    A feature that is not set is None. For a SequenceExample, ``features`` are its context, and
    ``feature_lists`` its sorted lists by name. For an Example, ``feature_lists`` is None.
    """

    number: int
    offset: int
    size: int
    features: Mapping[str, Feature | None]
    feature_lists: Mapping[str, Steps] | None = None

    def lines(self) -> list[str]:
        """Lines for the record, each feature (name, kind, values) and each step;
        long values are abbreviated.
        """
        width = max((len(printable(name)) for name in self.features), default=0)
        counts = number_of(len(self.features), "feature")
        if self.feature_lists is not None:
            lists = number_of(len(self.feature_lists), "feature list")
            counts = f"{counts} of its context, {lists}"
        features = [
            f"  {printable(name):<{width}}  {_text_of(feature)}"
            for name, feature in self.features.items()
        ]
        lines = [
            f"record {self.number} at byte {self.offset}: {self.size:,} bytes, {counts}",
            *features,
        ]
        for name, steps in (self.feature_lists or {}).items():
            lines += _step_lines(name, steps)
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-ready values: every feature a list;
        bytes as text, images and other bytes described.
        """
        record = {"record": self.number, "offset": self.offset, "bytes": self.size}
        features = {name: _json_values(feature) for name, feature in self.features.items()}
        if self.feature_lists is None:
            return {**record, "features": features}
        lists = {name: [*map(_json_values, steps)] for name, steps in self.feature_lists.items()}
        return {**record, "context": features, "feature_lists": lists}


def show(
    path: AnyPath, *, limit: int | None = None, record: int | None = None
) -> Iterator[ShownRecord]:
    """Yield the records of a file, plain or compressed: the first ``limit``, or only number
    ``record``.

    Raises:
        UsageError: the file or record does not exist, or both options are given.
        InputError: a record is damaged, or is not an Example.
    """
    path = locate(path)
    if not path.is_file():
        raise _no_file(path)
    if limit is not None and record is not None:
        problem = f"limit {limit} can't be combined with record {record}"
        raise UsageError(problem, "expected one of the two")
    if limit is not None and limit < 1:
        raise UsageError(f"limit {limit}", "expected at least 1")
    if record is not None and record < 0:
        raise UsageError(f"record {record}", "expected a number from 0")
    return _shown_by_number(path, record) if record is not None else _shown_from_start(path, limit)


def _no_file(path: AnyPath) -> UsageError:
    """The error for a path that is not a file; for a folder, it names one of its shards."""
    if not path.is_dir():
        return UsageError(absence_of(path), "expected a TFRecord file", "")
    shards = [file for file in path.glob("*-of-*") if parse_shard_name(file.name)]
    hint = Hint("name one of its shards: ", command("show", min(shards))) if shards else ""
    return UsageError(f"{path} is a folder", "expected a TFRecord file", hint)


def _shown_from_start(path: AnyPath, limit: int | None) -> Iterator[ShownRecord]:
    shard = Shard.open(path, in_order=True)
    for framed in itertools.islice(shard.followed(), limit):
        yield _shown(shard.sound(framed))


def _shown_by_number(path: AnyPath, number: int) -> Iterator[ShownRecord]:
    shard = Shard.open(path, in_order=True)
    count = 0
    for framed in shard.followed():
        if framed.number == number:
            yield _shown(shard.sound(framed))
            return
        count += 1
    held = "no record"
    if count == 1:
        held = "only record 0"
    elif count:
        held = f"{count:,} records: 0 to {count - 1}"
    raise UsageError(f"{path} has no record {number}", f"it holds {held}")


def _shown(record: Record) -> ShownRecord:
    features, feature_lists = record.parse(_parse)
    return ShownRecord(record.number, record.offset, len(record.data), features, feature_lists)


def _parse(data: memoryview) -> tuple[dict[str, Feature | None], dict[str, Steps] | None]:
    """Sorted features, and the feature lists of a SequenceExample."""
    if not has_feature_lists(data):
        return dict(sorted(parse_features(data).items())), None
    context, feature_lists = parse_sequence_example(data)
    return dict(sorted(context.items())), dict(sorted(feature_lists.items()))


# values as text -----------------------------------------------------------------------------------


def _text_of(feature: Feature | None) -> str:
    """Kind and values."""
    return NOT_SET if feature is None else f"{KINDS[type(feature)]:<5}  {_values(feature)}"


def _step_lines(name: str, steps: Steps) -> Iterator[str]:
    """A line for a feature list, and one for each of its first steps."""
    count = len(steps)
    yield f"  {printable(name)}: {count:,} {'step' if count == 1 else 'steps'}"
    width = len(str(min(count, SHOWN_STEPS) - 1))
    yield from (
        f"    {number:>{width}}  {_text_of(step)}"
        for number, step in enumerate(steps[:SHOWN_STEPS])
    )
    if count > SHOWN_STEPS:
        yield f"    ... ({count:,} steps)"


def _values(feature: Feature) -> str:
    shown = ", ".join(map(_value, feature.values[:SHOWN_VALUES]))
    count = len(feature.values)
    return f"{shown}, ... ({count:,} values)" if count > SHOWN_VALUES else shown or "(no values)"


def _value(feature_value: Buffer | float) -> str:
    if isinstance(feature_value, int):
        return str(feature_value)
    if isinstance(feature_value, float):
        return f"{feature_value:.7g}"
    if picture := _picture(feature_value):
        return f"{picture.format}, {len(feature_value):,} bytes, {picture.size_and_warning}"
    text = _text(feature_value)
    if text is None:
        ellipsis = " ..." if len(feature_value) > SHOWN_BYTES else ""
        return (
            f"{len(feature_value):,} bytes: {bytes(feature_value[:SHOWN_BYTES]).hex(' ')}{ellipsis}"
        )
    return printable(text)


def _text(feature_value: Buffer) -> str | None:
    try:
        return str(feature_value, "utf-8")
    except UnicodeDecodeError:
        return None


def _json_values(feature: Feature | None) -> list[object] | None:
    return (
        None
        if feature is None
        else [_json_value(feature_value) for feature_value in feature.values]
    )


def _json_value(item: Buffer | float) -> object:
    if isinstance(item, int):
        return item
    if isinstance(item, float):
        # JSON has no infinity; the shortest decimal number that equals the 32-bit float
        return float(str(np.float32(item))) if math.isfinite(item) else str(item)
    if picture := _picture(item):
        facts = {"image": picture.format, "bytes": len(item)}
        facts |= {"width": picture.width, "height": picture.height}
        return {**facts, "warned": picture.warning} if picture.warning else facts
    text = _text(item)
    if text is None:
        return {"bytes": len(item), "hex": bytes(item[:SHOWN_BYTES]).hex()}
    return text


class _Picture(NamedTuple):
    """An image: format, width and height in pixels (None if unreadable),
    and its warning, "" if it has none.
    """

    format: str
    width: int | None
    height: int | None
    warning: str

    @property
    def size_and_warning(self) -> str:
        if not self.width:
            return "its size can't be read"
        size = f"{self.width} x {self.height} pixels"
        return f"{size}; warned: {self.warning}" if self.warning else size


def _picture(image: Buffer) -> _Picture | None:
    """An image among the values of a record; None for any other bytes."""
    image_format = format_of(image)
    if not image_format:
        return None
    try:
        _, width, height, _ = pixels.read_facts(image)
    except jpeg.ImageError:
        return _Picture(image_format, None, None, "")
    warning = _warning_of(image) if image_format == "JPEG" else ""
    return _Picture(image_format, width, height, warning)


def _warning_of(feature_value: Buffer) -> str:
    """The warning of a JPEG; a damaged one has none: verify reports it."""
    try:
        return grades.judge(feature_value, "decode", pixels.check_decode).warning
    except jpeg.ImageError:
        return ""


# a record's image ---------------------------------------------------------------------------------


def save_image(path: AnyPath, record: int, png_path: AnyPath) -> None:
    """Write the image of a record, its boxes drawn, as PNG.

    The image is ``image/encoded``, otherwise the first feature, or the first step of a list, that
    holds an image.

    Raises:
        UsageError: the file or record does not exist.
        InputError: the record is damaged, holds no image, or an image that can't be decoded.
    """
    shown = next(show(path, record=record))
    encoded = _find_image(shown)
    if encoded is None:
        raise InputError(
            f"{path}: no image was found in record {record}",
            "expected a JPEG, PNG or other image as the first value of a feature",
        )
    try:
        image = pixels.decode_rgb(encoded)
    except jpeg.ImageError as error:
        raise InputError(
            f"{path}: the image of record {record} can't be decoded", str(error)
        ) from error
    _draw_boxes(image, shown.features)
    with atomic_file(png_path) as file:
        image.save(file, "PNG")


def _find_image(shown: ShownRecord) -> Buffer | None:
    usual = shown.features.get("image/encoded")
    steps = itertools.chain.from_iterable((shown.feature_lists or {}).values())
    for feature in (usual, *shown.features.values(), *steps):
        if isinstance(feature, BytesList) and feature.values and _picture(feature.values[0]):
            return feature.values[0]
    return None


def _draw_boxes(image: Image.Image, features: Mapping[str, Feature | None]) -> None:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    right, bottom = image.width - 1, image.height - 1
    line_width = max(1, min(image.size) // 150)
    for box, _ in boxes_in(features):
        if box.is_inside:
            corners = box.xmin * right, box.ymin * bottom, box.xmax * right, box.ymax * bottom
            draw.rectangle(corners, outline=_BOX_COLOUR, width=line_width)
