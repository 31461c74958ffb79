"""BoxTable: the boxes of all images in the CSV that annotate makes; parse_boxes and encode_boxes.

A line of the CSV is a box, sorted by byte value, as the original's process_bounding_boxes.py
printed it: ``n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940`` is file name, xmin, ymin, xmax,
ymax relative to the image. Two corners can be equal: boxes without area are removed before
rounding, and four decimals can't tell apart all pixels of a side above 10,000.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Mapping

from imagenet_prep.model import Box

_CORNERS = struct.Struct("4d")


class BoxesFault(ValueError):  # noqa: N818 - a fault in data, not in the program
    """An invalid line; ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"line {self.line:,}: {self.reason}"


class BoxTable(Mapping[str, tuple[Box, ...]]):
    """The boxes of each file name, packed: as objects,
    half a million would take hundreds of megabytes.
    """

    def __init__(self, packed: dict[str, bytes]) -> None:
        self._packed = packed

    def __getitem__(self, name: str) -> tuple[Box, ...]:
        """The boxes of one image."""
        return tuple(Box(*corners) for corners in _CORNERS.iter_unpack(self._packed[name]))

    def __contains__(self, name: object) -> bool:
        """Whether an image has boxes; it unpacks none."""
        return name in self._packed

    def __iter__(self) -> Iterator[str]:
        """The file names."""
        return iter(self._packed)

    def __len__(self) -> int:
        """The number of images with boxes."""
        return len(self._packed)


def parse_boxes(content: bytes) -> BoxTable:
    """Parse the boxes of each file name, in line order. Half a million lines take about a second.

    Raises:
        BoxesFault: an invalid line, a box outside the image or reversed, or a last line without an
            end.
    """
    packed: dict[str, bytes] = {}
    if content and not content.endswith(b"\n"):  # the last number may have lost digits
        raise BoxesFault(
            content.count(b"\n") + 1, "the line has no line break at its end, so it may be cut"
        )
    for number, line in enumerate(io.BytesIO(content), 1):
        try:
            name, *corners = line.decode().split(",")
            xmin, ymin, xmax, ymax = map(float, corners)
            if not name:
                raise ValueError("no name")
        except ValueError:
            raise BoxesFault(
                number, f"expected NAME,XMIN,YMIN,XMAX,YMAX, got {_show(line)}"
            ) from None
        if not (0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1):
            raise BoxesFault(
                number, f"expected 0 <= XMIN <= XMAX <= 1 and the same for Y, got {_show(line)}"
            )
        packed[name] = packed.get(name, b"") + _CORNERS.pack(xmin, ymin, xmax, ymax)
    return BoxTable(packed)


def encode_boxes(rows: Iterable[tuple[str, Box]]) -> bytes:
    """The CSV of boxes, given as file name and box in any order."""
    lines = [
        f"{name},{box.xmin:.4f},{box.ymin:.4f},{box.xmax:.4f},{box.ymax:.4f}\n".encode()
        for name, box in rows
    ]
    return b"".join(sorted(lines))


def _show(line: bytes) -> str:
    line = line.removesuffix(b"\n")
    shown = line if len(line) <= 80 else line[:77] + b"..."
    return repr(shown)[1:]
