"""follow: the boxes, key points and mask of an image, turned and made smaller as the image of its record was."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any, NamedTuple

from imagenet_prep.images import png
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import opened, read_facts, turn_upright
from imagenet_prep.images.prepare import UPRIGHT, read_orientation, turn_box
from imagenet_prep.model import Box, Item
from imagenet_prep.recipes.annotating import SIZE
from imagenet_prep.storage.files import read_plain
from imagenet_prep.tfrecord.inception import EDGES

Buffer = bytes | memoryview


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
    return dataclasses.replace(item, columns=columns)


def _turn_points(columns: dict[str, Any], orientation: int) -> None:
    """Turn the key points that are there; those that are not, of visibility 0, stay at 0, 0."""
    points = zip(
        *(columns[f"boxes.keypoint_{each}"] for each in ("x", "y", "visibility")),
        strict=True,
    )
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
