"""MappedRecorder: records of the features that a recipe lists;
boxes, key points and masks follow their image.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from imagenet_prep.images import arrays, format_of, is_npy, jpeg, pixels, png, rasters
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import prepare
from imagenet_prep.model import Item
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.following import ImageForm, follow, is_annotated
from imagenet_prep.recipes.recipe_lines import optional_feature
from imagenet_prep.recorders.recorder import Recorded, Recorder
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
_FEW = {"label", "class", "text", "split", "height", "width", "depth", "channels"}
_FEW |= {"colorspace", "format", "dtype", "shape"}
"""Columns of which many records have the same value."""


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
        if is_smaller or self.content != "image":
            return False
        return any(mapped.column == "encoded" for mapped in self.features)

    @property
    def writes_masks(self) -> bool:
        """Only with a folder of masks."""
        return self.masks is not None

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The Example of all features, in canonical encoding."""
        repair = warning = ""
        if self.content == "image":
            encoded = arrays.png_of(data) if is_npy(data) else data
            image = self._image(encoded)
            columns, repair, warning = image.columns, image.repair, image.warning
            if is_annotated(item):
                item = follow(item, data, image.form, self.masks)
        else:
            columns, warning = self._numbers(data)
        entries: list[Buffer] = []
        values = columns | self._item_columns(item)
        for mapped in self.features:
            value = values[mapped.column]
            if value is not None:
                _append(entries, mapped, value)
            elif not mapped.optional:
                entry = optional_feature(mapped.feature, mapped.column, mapped.kind)
                remedy = f"write in the recipe's `record`: {entry}"
                raise ImageError(f"it has no value for {mapped.column}", remedy)
        total = sum(map(len, entries))
        head = b"\x0a" + varint(total)  # of Example.features, the only field of an Example
        return Recorded(_joined([head, *entries]), repair, warning)

    def _image(self, data: Buffer) -> RecordedImage:
        """The image of a file as the record has it.

        JPEGs as in ImageNet's records; PNGs are kept unless everything is encoded again, with
        ``keep`` all formats are.
        """
        if self.keep:
            return self._kept(data)
        if self.how is None and format_of(data) == "PNG":
            return self._kept(data)
        image = prepare(data, self.check, self.how, upright=self.upright)
        is_from_png = image.repair == "png" and not image.lost
        if self.how is not None and is_from_png:
            image = replace(image, repair="")  # a JPEG is what was asked for
        form = ImageForm(image.width, image.height, image.orientation)
        channels = jpeg.read_header(image.encoded).components
        columns = _image_columns(image.encoded, "JPEG", form, channels)
        return RecordedImage(columns, form, image.changes, image.warning)

    def _kept(self, data: Buffer) -> RecordedImage:
        image_format, width, height, channels = pixels.read_facts(data)
        warning = ""
        if image_format == "PNG":
            png.check_ends(data)
        if image_format == "JPEG":
            warning = prepare(data, self.check).warning
        elif self.check != "header" or image_format != "PNG":
            pixels.decode_rgb(data)
        form = ImageForm(width, height)
        columns = _image_columns(data, image_format, form, channels)
        return RecordedImage(columns, form, warning=warning)

    def _numbers(self, data: Buffer) -> tuple[dict[str, Any], str]:
        """The columns of an array, or of an image's samples, that the features hold;
        and what the image warns of.
        """
        warning = ""
        if self.content == "array":
            array = arrays.parse_array(data, self.key)
        else:
            array, warning = rasters.judge_raster(data, self.check)
        if self.bounds is not None:
            array = arrays.rescale(array, *self.bounds)
        columns = {mapped.column for mapped in self.features}
        values = {"values": array, "shape": array.shape, "dtype": array.dtype.name}
        if "raw" in columns:
            values["raw"] = arrays.raw_bytes(array)
        if not columns.isdisjoint(_SIDES):
            values |= zip(_SIDES, arrays.plane(array.shape), strict=True)
        return values, warning

    def _item_columns(self, item: Item) -> dict[str, Any]:
        """The columns of an item that are not those of its content."""
        path = item.filename
        _, _, file_name = path.rpartition("/")
        number = class_name = text = None
        if item.label:
            class_name, text = item.wnid, item.text
            if self.numbers:
                number = self.numbers[item.label - 1]
        return {
            **item.columns,
            "path": path,
            "filename": file_name,
            "split": self.split,
            "label": number,
            "class": class_name,
            "text": text,
        }


class RecordedImage(NamedTuple):
    """An image in a record: its columns and form, what was changed in it,
    and what is unusual about its file.
    """

    columns: dict[str, Any]
    form: ImageForm
    repair: str = ""
    warning: str = ""


def _image_columns(encoded: Buffer, name: str, form: ImageForm, channels: int) -> dict[str, Any]:
    """The columns of an image in the format of this ``name``."""
    return {
        "encoded": encoded,
        "format": name,
        "colorspace": "Grayscale" if channels < 3 else "RGB",
        "height": form.height,
        "width": form.width,
        "channels": channels,
    }


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


def _append(entries: list[Buffer], mapped: Mapped, value: Any) -> None:
    """The entry of one feature; long values are pieces of their own, and not copied."""
    if mapped.column == "values":
        _append_values(entries, mapped, value)
    elif isinstance(value, (bytes, memoryview)):
        head = _split_entry(mapped.feature, b"\x0a").head(len(value))
        entries += (head, value)
    elif mapped.column in _FEW:
        entries.append(_common_entry(mapped.feature, mapped.kind, value))
    else:
        entries.append(_entry(mapped.feature, mapped.kind, value))


def _append_values(entries: list[Buffer], mapped: Mapped, array: np.ndarray[Any, Any]) -> None:
    """The entry of the values of an array, as floats or whole numbers."""
    if mapped.kind == "float":
        packed = arrays.float_bytes(array)
        if packed:
            head = _split_entry(mapped.feature, _FLOATS).head(len(packed))
            entries += (head, packed)
        else:
            entries.append(encode_entry(mapped.feature, FloatList(())))
        return
    if array.dtype.kind == "f":
        raise arrays.ArrayError(
            f"the values are {array.dtype}, and the recipe says type: int64 for {mapped.feature}",
            f"write type: float for {mapped.feature} in the recipe",
        )
    if array.dtype.name == "uint64" and array.size:
        largest = int(array.max())
        if largest >> 63:
            raise arrays.ArrayError(
                f"it holds {largest}: expected at most 2**63 - 1",
                f"write type: float for {mapped.feature} in the recipe, or "
                f"{mapped.feature}: raw to store the bytes",
            )
    numbers = map(int, array.reshape(-1).tolist())
    entry = encode_entry(mapped.feature, Int64List(tuple(numbers)))
    entries.append(entry)


_split_entry = functools.lru_cache(maxsize=256)(SplitEntry)


def _entry(feature: str, kind: Kind, value: Any) -> bytes:
    """The entry of a feature with one value, or with those of a list."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if kind == "int64":
        return encode_entry(feature, Int64List(tuple(map(int, values))))
    if kind == "float":
        return encode_entry(feature, FloatList(tuple(map(float, values))))
    texts = [value.encode() if isinstance(value, str) else value for value in values]
    return encode_entry(feature, BytesList(tuple(texts)))


_common_entry = functools.lru_cache(maxsize=4096)(_entry)
"""An entry that other records have too: encoded once. Its value is hashable."""
