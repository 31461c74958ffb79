"""Recorder: makes the record of an image from its file; the base of all record formats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError, MaskError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Item

Buffer = bytes | memoryview


class Recorded(Struct, frozen=True):
    """A record: its pieces in order, the change to its image other than encoding, and what its
    image warns of.

    ``repair`` and ``warning`` are "" for none.
    """

    parts: tuple[Buffer, ...]
    repair: str = ""
    warning: str = ""


class Recorder(Struct, frozen=True, kw_only=True):
    """Makes the records of one split; picklable.

    Args:
        check: how closely each image is checked.
        how: how to encode every image again, or None to keep them.
        upright: turn images that are encoded again as EXIF asks, and their boxes with them; 2016
            did not.
        loosely: the setting of ``check``, as the user writes it, with {} for its value.
    """

    check: Check = "decode"
    how: Reencode | None = None
    upright: bool = False
    loosely: str = "--check {}"

    @property
    def keeps_size(self) -> bool:
        """Whether a record is about as large as its file.

        If not, its size is unknown before it is made.
        """
        return self.how is None or not self.how.may_shrink

    @property
    def writes_masks(self) -> bool:
        """Whether records may hold masks, which Pillow writes."""
        return False

    @abstractmethod
    def record(self, item: Item, data: Buffer) -> Recorded:
        """The record of an item whose file holds ``data``.

        Raises:
            ImageError: the file is damaged, or has the wrong kind.
        """

    def of_headers(self) -> Recorder:
        """A recorder of the same records that checks headers alone."""
        return replace(self, check="header")


def takes(recorder: Recorder, item: Item, data: Buffer) -> bool:
    """Whether a recorder can make a record of an item."""
    try:
        recorder.record(item, data)
    except ImageError:
        return False
    return True


_LOOSER: Mapping[Check, tuple[Check, ...]] = {
    "strict": ("decode", "header"),
    "decode": ("header",),
    "header": (),
}


def looser_check(recorder: Recorder, item: Item, data: Buffer) -> str:
    """The setting with which a recorder would take an item that it refuses, as the user writes it.

    "" for none.
    """
    for check in _LOOSER[recorder.check]:
        if takes(replace(recorder, check=check), item, data):
            return recorder.loosely.format(check)
    return ""


def with_place(error: Exception, place: str, size: int) -> str:
    """The error of an image, followed by where the image is and its size in bytes, in brackets;
    the error alone if its mask is the reason.
    """
    if isinstance(error, MaskError):
        return str(error)
    return f"{error} ({place}, {size:,} bytes)"
