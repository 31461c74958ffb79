"""MappedRecorder: records of the features that a recipe lists; boxes, key points and masks follow their image."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from imagenet_prep.datasets.plan import Recorded, Recorder
from imagenet_prep.images import arrays, format_of, is_npy, jpeg, pixels, png
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import opened, read_facts, turn_upright
from imagenet_prep.images.prepare import UPRIGHT, Check, prepare, read_orientation, turn_box
from imagenet_prep.model import Box, Item
from imagenet_prep.recipes.annotating import SIZE
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.storage.files import read_plain
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List, Kind, SplitEntry, encode_entry, varint
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    import numpy as np

Buffer = bytes | memoryview

_LONG = 4096  # bytes that are not worth a copy
_FLOATS = b"\x12"  # the tag of a float list, where SplitEntry's default is that of a byte string
_FEW = frozenset(("label", "class", "text", "split", "height", "width", "depth", "channels"))
_FEW |= frozenset(("colorspace", "format", "dtype", "shape"))  # columns of which many records have the same value


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
        return not is_smaller and self.content == "image" and any(each.column == "encoded" for each in self.features)

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The Example of all features, in canonical encoding."""
        given = _Image(data, self) if self.content == "image" else self._numbers(data)
        if isinstance(given, _Image) and (self.masks is not None or SIZE in item.columns):
            item = follow(item, data, given.made, self.masks)
        parts: list[Buffer] = []
        own = self._own(item)
        for mapped in self.features:
            value = own[mapped.column] if mapped.column in own else given.get(mapped.column)
            if value is not None:
                _append(parts, mapped, value)
            elif not mapped.optional:
                raise ImageError(f"it has no {mapped.column}")
        total = sum(map(len, parts))
        return Recorded(_joined([b"\x0a" + varint(total), *parts]), given.repair)

    def _numbers(self, data: Buffer) -> _Numbers:
        array = arrays.parse_array(data, self.key) if self.content == "array" else arrays.decode_raster(data)
        return _Numbers(array if self.bounds is None else arrays.rescale(array, *self.bounds))

    def _own(self, item: Item) -> dict[str, Any]:
        """The columns of an item that are not those of its content."""
        name, label = item.filename, item.label
        return {
            **item.columns,
            **{"path": name, "filename": name.rpartition("/")[2], "split": self.split},
            "label": self.numbers[label - 1] if label and self.numbers else None,
            **{"class": item.wnid if label else None, "text": item.text if label else None},
        }


# columns of the content ----------------------------------------------------------------------------------------


class _Image:
    """The columns of an image file. JPEGs as in ImageNet's records; PNGs are kept unless everything is encoded again.

    With ``keep``, files of all formats are kept.
    """

    def __init__(self, data: Buffer, by: MappedRecorder) -> None:
        self.repair = ""
        if is_npy(data):
            data = arrays.png_of(data)
        if by.keep or (by.how is None and format_of(data) == "PNG"):
            self._keep(data, by.check)
            return
        image = prepare(data, by.check, by.how, upright=by.upright)
        if by.how is not None and image.repair == "png" and not image.lost:  # a JPEG is what was asked for
            image = replace(image, repair="")
        self.repair = image.changes
        self._encoded, self._size, self._format = image.encoded, (image.width, image.height), "JPEG"
        self._channels = jpeg.read_header(image.encoded).components
        self.made = ImageForm(image.width, image.height, image.orientation)

    def _keep(self, data: Buffer, check: Check) -> None:
        self._format, *size, self._channels = pixels.read_facts(data)
        if self._format == "PNG":
            png.check_ends(data)
        if self._format == "JPEG":
            prepare(data, check)
        elif check == "decode" or self._format != "PNG":
            pixels.decode_rgb(data)
        self._encoded, self._size = data, (size[0], size[1])
        self.made = ImageForm(size[0], size[1])

    def get(self, column: str) -> Buffer | int | str:
        """The value of a column."""
        match column:
            case "encoded":
                return self._encoded
            case "width" | "height":
                return self._size[column == "height"]
            case "channels":
                return self._channels
            case "colorspace":
                return "Grayscale" if self._channels < 3 else "RGB"
        return self._format


class _Numbers:
    """The columns of an array, or of an image's samples."""

    repair = ""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def get(self, column: str) -> Any:
        """The value of a column."""
        match column:
            case "values":
                return self._array
            case "raw":
                return arrays.raw_bytes(self._array)
            case "shape":
                return self._array.shape
            case "dtype":
                return self._array.dtype.name
        return arrays.plane(self._array.shape)[("height", "width", "depth").index(column)]


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


# values -> entries of an Example -------------------------------------------------------------------------------


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
    parts.append(encode_entry(mapped.feature, Int64List(tuple(map(int, array.reshape(-1).tolist())))))


_split_entry = functools.lru_cache(maxsize=256)(SplitEntry)


def _entry(feature: str, kind: Kind, value: Any) -> bytes:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if kind == "bytes":
        return encode_entry(feature, BytesList(tuple(e.encode() if isinstance(e, str) else e for e in values)))
    made = Int64List(tuple(map(int, values))) if kind == "int64" else FloatList(tuple(map(float, values)))
    return encode_entry(feature, made)


_common_entry = functools.lru_cache(maxsize=4096)(_entry)
"""An entry that other records have too: encoded once. Its value is hashable."""


# boxes, key points and masks -----------------------------------------------------------------------------------


class ImageForm(NamedTuple):
    """An image in a record: its size in pixels, and the EXIF orientation that it was turned from."""

    width: int
    height: int
    orientation: int = UPRIGHT


def follow(item: Item, data: Buffer, made: ImageForm, masks: Path | None) -> Item:
    """An item whose columns fit the image that was ``made`` of its file's ``data``.

    Raises:
        ImageError: boxes or mask are of another size than the file's image, or the mask can't be used.
        InputError: the mask can't be read.
    """
    facts = read_facts(data)
    stored = facts.width, facts.height
    columns = dict(item.columns)
    if columns.get(SIZE) is not None and tuple(columns[SIZE]) != stored:
        raise _other_size("its boxes are annotated in", columns[SIZE], stored)
    if SIZE in columns:
        boxes = [turn_box(box, made.orientation) for box in item.boxes]
        columns |= {f"boxes.{edge}": [getattr(box, edge) for box in boxes] for edge in EDGES}
        if "boxes.area" in columns:
            scale = made.width * made.height / (stored[0] * stored[1])
            columns["boxes.area"] = [area * scale for area in columns["boxes.area"]]
        if "boxes.keypoint_x" in columns and made.orientation != UPRIGHT:
            _turn_points(columns, made.orientation)
    if masks is not None:
        name, length = columns["mask.encoded"]
        mask = read_plain(masks / name)
        if len(mask) != length:
            raise ImageError(f"its mask {name} has {len(mask):,} bytes, and had {length:,} when it was listed")
        try:
            columns["mask.encoded"] = _fit_mask(mask, stored, made)
        except ImageError as error:
            raise ImageError(f"its mask {name}: {error}") from error
    return replace(item, columns=columns)


def _turn_points(columns: dict[str, Any], orientation: int) -> None:
    """Turn the key points that are there; those that are not, of visibility 0, stay at 0, 0."""
    points = zip(*(columns[f"boxes.keypoint_{each}"] for each in ("x", "y", "visibility")), strict=True)
    turned = [turn_box(Box(x, y, x, y), orientation) if seen else Box(x, y, x, y) for x, y, seen in points]
    columns["boxes.keypoint_x"] = [point.xmin for point in turned]
    columns["boxes.keypoint_y"] = [point.ymin for point in turned]


def _fit_mask(mask: bytes, stored: tuple[int, int], made: ImageForm) -> bytes:
    """The same bytes, or a PNG of the same values at the image's size and turn: nearest neighbours, nothing mixed."""
    header = png.read_header(mask)
    png.check_ends(mask)
    if (header.width, header.height) != stored:
        raise _other_size("it has", (header.width, header.height), stored)
    if read_orientation(mask) != UPRIGHT:
        raise ImageError("it has an EXIF orientation of its own")
    size = (made.height, made.width) if made.orientation > 4 else (made.width, made.height)
    if size == stored and made.orientation == UPRIGHT:
        return mask
    from PIL import Image

    with opened(mask, "PNG") as image:
        values = image.resize(size, Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    turn_upright(values, made.orientation).save(buffer, "PNG")
    return buffer.getvalue()


def _other_size(what: str, got: Any, stored: tuple[int, int]) -> ImageError:
    width, height = got
    turned = ": its EXIF orientation may have been applied to one of them" if (height, width) == stored else ""
    return ImageError(f"{what} {width} x {height} pixels, the image has {stored[0]} x {stored[1]}{turned}")
