"""MappedRecorder: records of the features that a recipe lists;
boxes, key points and masks follow their image.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from imagenet_prep.datasets.plan import Recorded, Recorder
from imagenet_prep.images import arrays, format_of, is_npy, jpeg, pixels, png, rasters
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import prepare
from imagenet_prep.model import Item
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.following import ImageForm, follow, is_annotated
from imagenet_prep.tfrecord.example import (
    BytesList,
    FloatList,
    Int64List,
    Kind,
    SplitEntry,
    encode_entry,
    varint,
)

if TYPE_CHECKING:
    import numpy as np

Buffer = bytes | memoryview

_SIDES = ("height", "width", "depth")

_LONG = 4096  # bytes that are not worth a copy
_FLOATS = b"\x12"  # the tag of a float list, where SplitEntry's default is that of a byte string
_FEW = frozenset(("label", "class", "text", "split", "height", "width", "depth", "channels"))
_FEW |= frozenset(
    ("colorspace", "format", "dtype", "shape")
)  # columns of which many records have the same value


class MappedRecorder(Recorder, frozen=True):
    """Records of features that a recipe lists.

    Args:
        features: in byte order of their names.
        content: what the files are.
        split: the name of the split.
        numbers: the labels to write, for 1, 2, ...
        bounds: numbers are clipped to these two and brought to [0, 1]; None: they stay.
        key: which array of an .npz.
        masks: the folder that paths of masks start at; None if there are none.
        keep: put in every image as it is, whatever its format.
    """

    features: tuple[Mapped, ...]
    content: Content
    split: str = ""
    numbers: Sequence[int] = ()
    bounds: tuple[float, float] | None = None
    key: str | None = None
    masks: Path | None = None
    keep: bool = False

    @property
    def keeps_size(self) -> bool:
        """Only where a record holds its image as it was, or encoded again in its old size."""
        is_smaller = self.how is not None and self.how.may_shrink
        return (
            not is_smaller
            and self.content == "image"
            and any(each.column == "encoded" for each in self.features)
        )

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The Example of all features, in canonical encoding."""
        repair = warning = ""
        if self.content == "image":
            image = self._image(arrays.png_of(data) if is_npy(data) else data)
            given, repair, warning = image.columns, image.repair, image.warning
            if is_annotated(item):
                item = follow(item, data, image.form, self.masks)
        else:
            given, warning = self._numbers(data)
        parts: list[Buffer] = []
        values = given | self._own(item)
        for mapped in self.features:
            value = values[mapped.column]
            if value is not None:
                _append(parts, mapped, value)
            elif not mapped.optional:
                raise ImageError(f"it has no {mapped.column}")
        total = sum(map(len, parts))
        return Recorded(_joined([b"\x0a" + varint(total), *parts]), repair, warning)

    def _image(self, data: Buffer) -> RecordedImage:
        """The image of a file as the record has it.

        JPEGs as in ImageNet's records; PNGs are kept unless everything is encoded again, with
        ``keep`` all formats are.
        """
        if self.keep or (self.how is None and format_of(data) == "PNG"):
            return self._kept(data)
        image = prepare(data, self.check, self.how, upright=self.upright)
        if (
            self.how is not None and image.repair == "png" and not image.lost
        ):  # a JPEG is what was asked for
            image = replace(image, repair="")
        form = ImageForm(image.width, image.height, image.orientation)
        channels = jpeg.read_header(image.encoded).components
        columns = _image_columns(image.encoded, "JPEG", form, channels)
        return RecordedImage(columns, form, image.changes, image.warning)

    def _kept(self, data: Buffer) -> RecordedImage:
        kind, width, height, channels = pixels.read_facts(data)
        warning = ""
        if kind == "PNG":
            png.check_ends(data)
        if kind == "JPEG":
            warning = prepare(data, self.check).warning
        elif self.check != "header" or kind != "PNG":
            pixels.decode_rgb(data)
        form = ImageForm(width, height)
        return RecordedImage(_image_columns(data, kind, form, channels), form, warning=warning)

    def _numbers(self, data: Buffer) -> tuple[dict[str, Any], str]:
        """The columns of an array, or of an image's samples, that the features hold;
        and what the image warns of.
        """
        warning = ""
        if self.content == "array":
            array = arrays.parse_array(data, self.key)
        else:
            array, warning = rasters.judge_raster(data, self.check)
        array = array if self.bounds is None else arrays.rescale(array, *self.bounds)
        wanted = {each.column for each in self.features}
        values = {"values": array, "shape": array.shape, "dtype": array.dtype.name}
        if "raw" in wanted:
            values["raw"] = arrays.raw_bytes(array)
        if not wanted.isdisjoint(_SIDES):
            values |= zip(_SIDES, arrays.plane(array.shape), strict=True)
        return values, warning

    def _own(self, item: Item) -> dict[str, Any]:
        """The columns of an item that are not those of its content."""
        name, label = item.filename, item.label
        return {
            **item.columns,
            **{"path": name, "filename": name.rpartition("/")[2], "split": self.split},
            "label": self.numbers[label - 1] if label and self.numbers else None,
            **{"class": item.wnid if label else None, "text": item.text if label else None},
        }


class RecordedImage(NamedTuple):
    """An image in a record: its columns and form, what was changed in it,
    and what is unusual about its file.
    """

    columns: dict[str, Any]
    form: ImageForm
    repair: str = ""
    warning: str = ""


def _image_columns(encoded: Buffer, kind: str, made: ImageForm, channels: int) -> dict[str, Any]:
    colorspace = "Grayscale" if channels < 3 else "RGB"
    size = {"height": made.height, "width": made.width, "channels": channels}
    return {"encoded": encoded, "format": kind, "colorspace": colorspace, **size}


def _joined(parts: list[Buffer]) -> tuple[Buffer, ...]:
    """The same bytes in fewer pieces: short neighbours are put together."""
    joined: list[Buffer] = []
    short: list[Buffer] = []
    for part in parts:
        if len(part) <= _LONG:
            short.append(part)
            continue
        joined += (b"".join(short), part)
        short = []
    if short:
        joined.append(b"".join(short))
    return tuple(joined)


# values -> entries of an Example ------------------------------------------------------------------


def _append(parts: list[Buffer], mapped: Mapped, value: Any) -> None:
    """The entry of one feature; long values are pieces of their own, and not copied."""
    if mapped.column == "values":
        _append_values(parts, mapped, value)
    elif isinstance(value, (bytes, memoryview)):
        parts += (_split_entry(mapped.feature, b"\x0a").head(len(value)), value)
    elif mapped.column in _FEW:
        parts.append(_common_entry(mapped.feature, mapped.kind, value))
    else:
        parts.append(_entry(mapped.feature, mapped.kind, value))


def _append_values(parts: list[Buffer], mapped: Mapped, array: np.ndarray[Any, Any]) -> None:
    if mapped.kind == "float":
        packed = arrays.float_bytes(array)
        if packed:
            parts += (_split_entry(mapped.feature, _FLOATS).head(len(packed)), packed)
        else:
            parts.append(encode_entry(mapped.feature, FloatList(())))
        return
    if array.dtype.kind == "f":
        raise arrays.ArrayError(f"it holds {array.dtype}: its values are not int64")
    if array.dtype.name == "uint64" and array.size and int(array.max()) >> 63:
        raise arrays.ArrayError(f"it holds {int(array.max())}: expected at most 2**63 - 1")
    parts.append(
        encode_entry(mapped.feature, Int64List(tuple(map(int, array.reshape(-1).tolist()))))
    )


_split_entry = functools.lru_cache(maxsize=256)(SplitEntry)


def _entry(feature: str, kind: Kind, value: Any) -> bytes:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if kind == "bytes":
        return encode_entry(
            feature, BytesList(tuple(e.encode() if isinstance(e, str) else e for e in values))
        )
    made = (
        Int64List(tuple(map(int, values)))
        if kind == "int64"
        else FloatList(tuple(map(float, values)))
    )
    return encode_entry(feature, made)


_common_entry = functools.lru_cache(maxsize=4096)(_entry)
"""An entry that other records have too: encoded once. Its value is hashable."""
