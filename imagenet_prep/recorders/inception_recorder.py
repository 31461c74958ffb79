"""InceptionRecorder: records of the fifteen features that 2016's scripts wrote."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from imagenet_prep.images.prepare import UPRIGHT, prepare, turn_box
from imagenet_prep.model import Item
from imagenet_prep.recorders.recorder import Buffer, Recorded, Recorder
from imagenet_prep.tfrecord import inception


class InceptionRecorder(Recorder, frozen=True):
    """Makes records of 2016's layout.

    ``numbers`` are the labels to write for 1, 2, ...; None: the same labels.
    """

    numbers: Sequence[int] | None = None

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The fifteen features around the image's own bytes, or around its repaired bytes."""
        image = prepare(data, self.check, self.how, upright=self.upright)
        if image.orientation != UPRIGHT and item.boxes:
            item = replace(
                item, boxes=tuple(turn_box(box, image.orientation) for box in item.boxes)
            )
        if self.numbers is not None:
            item = self.numbered(item)
        encoded = image.encoded
        head, tail = inception.record_parts(item, image.width, image.height, len(encoded))
        return Recorded((head, encoded, tail), image.changes, image.warning)

    def numbered(self, item: Item) -> Item:
        """The item with the label of its record."""
        return item if self.numbers is None else replace(item, label=self.numbers[item.label - 1])
