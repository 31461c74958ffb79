"""What makes the record of an item: ImageNet's own layout here, any other in recipes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import UPRIGHT, Check, prepare, turn_box
from imagenet_prep.model import Item
from imagenet_prep.tfrecord import inception

Buffer = bytes | memoryview

_LOOSELY = "--check header"


class Recorded(NamedTuple):
    """A record: the pieces that follow each other, and what was done to its image beside encoding ("" for nothing)."""

    parts: tuple[Buffer, ...]
    repair: str = ""


class Recorder(Protocol):
    """Makes the records of one split; picklable."""

    @property
    def keeps_size(self) -> bool:
        """Whether a record takes about the bytes of its file; if not, how many can't be known before it is made."""
        ...

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The record of an item whose file holds ``data``.

        Raises:
            ImageError: the file is damaged, or isn't what it should be.
        """
        ...

    @property
    def loosely(self) -> str:
        """How to ask for a check of headers alone."""
        ...

    def of_headers(self) -> Recorder:
        """The recorder of the same records that checks headers alone."""
        ...


def takes(recorder: Recorder, item: Item, data: Buffer) -> bool:
    """Whether a recorder makes a record of an item."""
    try:
        recorder.record(item, data)
    except ImageError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class InceptionRecorder:
    """Records of 2016's layout.

    Args:
        check: how closely each image is looked at.
        how: how to encode every image again, or None to take them as they are.
        numbers: the labels to write for 1, 2, ...; None: those themselves.
        upright: turn images that are encoded again as EXIF asks, and their boxes with them; 2016 did not.
        loosely: how to ask for a ``check`` of headers alone.
    """

    check: Check = "decode"
    how: Reencode | None = None
    numbers: Sequence[int] | None = None
    upright: bool = False
    loosely: str = _LOOSELY

    @property
    def keeps_size(self) -> bool:
        """Not if images are made smaller."""
        return self.how is None or not self.how.may_shrink

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The fifteen features around the image's own bytes, or around what a repair made of them."""
        image = prepare(data, self.check, self.how, upright=self.upright)
        if image.orientation != UPRIGHT and item.boxes:
            item = dataclasses.replace(item, boxes=tuple(turn_box(box, image.orientation) for box in item.boxes))
        item = self.numbered(item)
        head, tail = inception.record_parts(item, image.width, image.height, len(image.encoded))
        return Recorded((head, image.encoded, tail), image.changes)

    def numbered(self, item: Item) -> Item:
        """The item with the label that its record has."""
        return item if self.numbers is None else dataclasses.replace(item, label=self.numbers[item.label - 1])

    def of_headers(self) -> InceptionRecorder:
        """The recorder of the same records that checks headers alone."""
        return dataclasses.replace(self, check="header")
