"""follow: an item and the image that was made of its file -> its boxes, key points and masks, which
fit that image.

Boxes and points are relative, so that they only turn. Masks turn, and get the size of the image; no
values are mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from imagenet_prep.images import mask_pixels, png
from imagenet_prep.images.jpeg import ImageError, MaskError
from imagenet_prep.images.pixels import read_facts
from imagenet_prep.images.prepare import UPRIGHT, read_orientation, turn_box
from imagenet_prep.model import Box, Item
from imagenet_prep.recipes.annotating import SIZE
from imagenet_prep.recipes.object_masks import OBJECT_MASKS, MaskFiles, file_of, fill_outline
from imagenet_prep.tfrecord.inception import EDGES

Buffer = bytes | memoryview

_CORRECT_SIZE = "correct the annotated size, or use the image that was annotated"
_CORRECT_MASK = "correct the mask or its size, or use the image that was annotated"
_OTHER_IMAGE = "replace the mask, or use the image that it was made for"


class ImageForm(NamedTuple):
    """An image in a record: its size in pixels,
    and the EXIF orientation that it was turned from.
    """

    width: int
    height: int
    orientation: int = UPRIGHT

    def is_kept(self, stored: tuple[int, int]) -> bool:
        """Whether an image of this size in its file was neither turned nor made smaller."""
        has_same_size = stored == (self.width, self.height)
        return has_same_size and self.orientation == UPRIGHT


def is_annotated(item: Item) -> bool:
    """Whether an item has objects or a mask."""
    return SIZE in item.columns or "mask.encoded" in item.columns


def follow(item: Item, data: Buffer, form: ImageForm, root: Path | None) -> Item:
    """An item whose columns fit the image that was made of its file's ``data``.

    Args:
        item: with its columns as planned.
        data: the bytes of its file.
        form: of the image in the record.
        root: the folder that paths of masks start at.

    Raises:
        ImageError: boxes or mask are of another size than the file's image, or the mask can't be
            used.
        InputError: the mask can't be read.
    """
    facts = read_facts(data)
    stored = facts.width, facts.height
    columns = dict(item.columns)
    if SIZE in columns:
        _follow_objects(columns, item.boxes, stored, form)
    files = MaskFiles(root) if root is not None else None
    outlines = columns.get(OBJECT_MASKS)
    if outlines:
        is_relative = columns[SIZE] is None
        masks = _object_masks(outlines, stored, form, files, is_relative=is_relative)
        columns[OBJECT_MASKS] = masks
    if "mask.encoded" in columns and files is not None:
        columns["mask.encoded"] = _mask(columns, stored, form, files)
    return replace(item, columns=columns)


def _follow_objects(
    columns: dict[str, Any], boxes: Sequence[Box], stored: tuple[int, int], form: ImageForm
) -> None:
    """Turn boxes and points, and scale areas."""
    if columns[SIZE] is not None and tuple(columns[SIZE]) != stored:
        raise _other_size("its boxes are for an image of", columns[SIZE], stored, _CORRECT_SIZE)
    turned = [turn_box(box, form.orientation) for box in boxes]
    for edge in EDGES:
        columns[f"boxes.{edge}"] = [getattr(box, edge) for box in turned]
    if "boxes.area" in columns:
        stored_width, stored_height = stored
        scale = form.width * form.height / (stored_width * stored_height)
        columns["boxes.area"] = [area * scale for area in columns["boxes.area"]]
    if "boxes.keypoint_x" in columns and form.orientation != UPRIGHT:
        _turn_points(columns, form.orientation)


def _turn_points(columns: dict[str, Any], orientation: int) -> None:
    """Turn the key points that are there; those that are not, of visibility 0, stay at 0, 0."""
    points: list[Box] = []
    xs = columns["boxes.keypoint_x"]
    ys = columns["boxes.keypoint_y"]
    visibilities = columns["boxes.keypoint_visibility"]
    for x, y, visibility in zip(xs, ys, visibilities, strict=True):
        point = Box(x, y, x, y)
        if visibility:
            point = turn_box(point, orientation)
        points.append(point)
    columns["boxes.keypoint_x"] = [point.xmin for point in points]
    columns["boxes.keypoint_y"] = [point.ymin for point in points]


def _object_masks(
    outlines: Sequence[str],
    stored: tuple[int, int],
    form: ImageForm,
    files: MaskFiles | None,
    *,
    is_relative: bool,
) -> list[bytes]:
    """A PNG of each object's outline, at the size and turn of the image."""
    size = (form.width, form.height)
    encoded: list[bytes] = []
    for number, outline in enumerate(outlines, 1):
        try:
            pixels = fill_outline(outline, stored, files, is_relative=is_relative)
        except MaskError:
            raise  # it names the file
        except ImageError as error:
            mask_words = f"the mask of its object {number}"
            if file := file_of(outline):
                mask_words += f", {file}"
            raise MaskError(f"{mask_words}: {error}", error.remedy or _CORRECT_MASK) from error
        if not form.is_kept(stored):
            pixels = mask_pixels.fit_pixels(pixels, size, form.orientation)
        encoded.append(mask_pixels.encode_mask(pixels))
    return encoded


def _mask(
    columns: Mapping[str, Any], stored: tuple[int, int], form: ImageForm, files: MaskFiles
) -> Buffer:
    """The mask of the whole image as PNG: its own bytes,
    or its values at the size and turn of the image.
    """
    name, length, *threshold = columns["mask.encoded"]
    data = files.read(name, length)
    mask: Buffer
    try:
        if threshold:
            mask = mask_pixels.threshold_mask(data, threshold[0])
        else:
            mask = mask_pixels.png_of(data)
        return _fit_mask(mask, stored, form)
    except ImageError as error:
        reason = str(error)
        verb_or_colon = reason[2:] if reason.startswith("it ") else f": {reason}"
        raise MaskError(
            f"its mask {name}{verb_or_colon}", error.remedy or "replace the mask"
        ) from error


def _fit_mask(mask: Buffer, stored: tuple[int, int], form: ImageForm) -> Buffer:
    """A mask as it is, or at the size and turn of the image.

    Raises:
        ImageError: it is of another size than the file's image, damaged, or turned itself.
    """
    header = png.read_header(mask)
    png.check_ends(mask)
    mask_size = (header.width, header.height)
    if mask_size != stored:
        raise _other_size("it has", mask_size, stored, _OTHER_IMAGE)
    if read_orientation(mask) != UPRIGHT:
        raise ImageError("it has an EXIF orientation", "save the mask without an orientation")
    if form.is_kept(stored):
        return mask
    return mask_pixels.fit_png(mask, (form.width, form.height), form.orientation)


def _other_size(
    subject: str, size: Sequence[int], stored: tuple[int, int], remedy: str
) -> ImageError:
    """The fault of boxes or a mask that are of another size than the image."""
    width, height = size
    stored_width, stored_height = stored
    image_size = f"the image has {stored_width} x {stored_height}"
    problem = f"{subject} {width} x {height} pixels, {image_size}"
    if (height, width) == stored:
        problem += ": width and height are swapped, perhaps by an EXIF orientation"
    return ImageError(problem, remedy)
