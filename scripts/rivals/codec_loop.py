"""The bare codec: the calls that convert makes for every image, one process a core, and nothing
else.

python codec_loop.py decode|resize TRAIN.tar VALIDATION.tar [--workers N]

No conversion that makes these calls can be faster. Images are slices of the mapped archives,
results are dropped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import mmap
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import simplejpeg
from PIL import Image

SHORTER_SIDE = 256
QUALITY = 90
REDUCE = 2
"""A JPEG is decoded at a fraction of its size where each side stays this
many times the target's.
"""


def decode(data: memoryview) -> None:
    """Decode every coefficient, as imagenet_prep.images.pixels.check_decode does."""
    simplejpeg.decode_jpeg(
        data, colorspace="GRAY", min_width=1, min_height=1, min_factor=8, strict=True
    )


def resize(data: memoryview) -> bytes:
    """Decode, shrink, encode, as imagenet_prep.images.prepare.prepare does."""
    height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    scale = min(1.0, SHORTER_SIDE / min(width, height))
    target = round(width * scale), round(height * scale)
    pixels = simplejpeg.decode_jpeg(
        data,
        colorspace="GRAY" if colours == "Gray" else "RGB",
        min_width=REDUCE * target[0],
        min_height=REDUCE * target[1],
        min_factor=2,
        strict=True,
    )
    image = Image.fromarray(pixels[:, :, 0] if colours == "Gray" else pixels)
    if image.size != target:
        image = image.resize(target, Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY, subsampling="4:2:0", comment=b"")
    return buffer.getvalue()


CALLS = {"decode": decode, "resize": resize}


def find_images(view: memoryview, position: int = 0) -> Iterator[memoryview]:
    """Every image of a tar, or of the tars within it; members of 8 GiB and more are beyond it."""
    while view[position]:  # a block of zeros ends a tar
        name = bytes(view[position : position + 100]).rstrip(b"\0")
        size = int(bytes(view[position + 124 : position + 136]).rstrip(b"\0 "), 8)
        data = position + 512
        if name.endswith(b".tar"):
            yield from find_images(view, data)
        else:
            yield view[data : data + size]
        position = data + (size + 511) // 512 * 512


def work(what: str, images: list[memoryview]) -> None:
    """Make the call for every image."""
    call = CALLS[what]
    for image in images:
        with contextlib.suppress(ValueError):  # the few PNG and CMYK images are beyond this codec
            call(image)


def main() -> None:
    """Share the images out among the processes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=CALLS)
    parser.add_argument("archives", type=Path, nargs="+")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    images: list[memoryview] = []
    for archive in given.archives:
        with archive.open("rb") as file:
            images += find_images(memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)))
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=work, args=(given.what, images[i :: given.workers]))
        for i in range(given.workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in processes))


if __name__ == "__main__":
    main()
