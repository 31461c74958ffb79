"""A kernel that cuts, resizes, mirrors and normalises all images of a batch at once, on a GPU.

It computes what torch.nn.functional.interpolate(mode="bilinear", antialias=True) computes of each
part: a triangle filter as wide as two pixels of the result. One launch replaces four for each
image.
"""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 256
"""Pixels of the result per program."""


@triton.jit  # type: ignore[untyped-decorator]
def resize_parts(  # type: ignore[no-untyped-def]  # noqa: PLR0913 - what a kernel gets
    # int64 (images, 9): address; strides of channel, row, column; rows; columns; whether to mirror
    places,
    parts,  # float32 (images, 4): top, left, height, width in pixels
    result,
    stride_image,
    stride_channel,
    stride_row,
    stride_column,
    scale_r,
    scale_g,
    scale_b,
    shift_r,
    shift_g,
    shift_b,
    SIZE: tl.constexpr,  # noqa: N803
    IS_FLOAT: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):
    """Resize part ``program_id(0)``: the block ``program_id(1)`` of its SIZE x SIZE pixels."""
    image = tl.program_id(0).to(tl.int64)
    place = places + image * 9
    pixels = tl.load(place).to(tl.pointer_type(tl.uint8))
    channel = tl.load(place + 1)
    row_stride = tl.load(place + 2)
    column_stride = tl.load(place + 3)
    first_row = tl.load(place + 4)
    last_row = tl.load(place + 5)
    first_column = tl.load(place + 6)
    last_column = tl.load(place + 7)
    is_mirrored = tl.load(place + 8) != 0
    top = tl.load(parts + image * 4)
    left = tl.load(parts + image * 4 + 1)
    scale_y = tl.load(parts + image * 4 + 2) / SIZE
    scale_x = tl.load(parts + image * 4 + 3) / SIZE
    reach_y = tl.maximum(scale_y, 1.0)
    reach_x = tl.maximum(scale_x, 1.0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y = at // SIZE
    x = at % SIZE
    center_y = top + (y + 0.5) * scale_y
    center_x = left + (tl.where(is_mirrored, SIZE - 1 - x, x) + 0.5) * scale_x
    from_row = tl.maximum(tl.floor(center_y - reach_y + 0.5).to(tl.int64), first_row)
    from_column = tl.maximum(tl.floor(center_x - reach_x + 0.5).to(tl.int64), first_column)
    red = tl.zeros((BLOCK,), tl.float32)
    green = tl.zeros((BLOCK,), tl.float32)
    blue = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    taps_y = tl.ceil(2 * reach_y).to(tl.int32) + 1
    taps_x = tl.ceil(2 * reach_x).to(tl.int32) + 1
    for down in range(taps_y):
        row = from_row + down
        weight_y = tl.maximum(1 - tl.abs(row + 0.5 - center_y) / reach_y, 0.0)
        weight_y = tl.where(row <= last_row, weight_y, 0.0)
        line = pixels + tl.minimum(row, last_row) * row_stride
        for right in range(taps_x):
            column = from_column + right
            weight = weight_y * tl.maximum(1 - tl.abs(column + 0.5 - center_x) / reach_x, 0.0)
            weight = tl.where(column <= last_column, weight, 0.0)
            source = line + tl.minimum(column, last_column) * column_stride
            red += weight * tl.load(source).to(tl.float32)
            green += weight * tl.load(source + channel).to(tl.float32)
            blue += weight * tl.load(source + 2 * channel).to(tl.float32)
            total += weight
    red = tl.floor(red / total + 0.5)  # to whole levels, as the CPU gives them
    green = tl.floor(green / total + 0.5)
    blue = tl.floor(blue / total + 0.5)
    if IS_FLOAT:
        red = red * scale_r - shift_r
        green = green * scale_g - shift_g
        blue = blue * scale_b - shift_b
    kind = result.dtype.element_ty
    target = result + image * stride_image + y * stride_row + x * stride_column
    is_inside = at < SIZE * SIZE
    tl.store(target, red.to(kind), mask=is_inside)
    tl.store(target + stride_channel, green.to(kind), mask=is_inside)
    tl.store(target + 2 * stride_channel, blue.to(kind), mask=is_inside)
