"""Which containers there are to export to: the one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from imagenet_prep.exports.array_records import ArrayRecordPacker, check_array_record
from imagenet_prep.exports.image_tree import TreePacker
from imagenet_prep.exports.image_values import Meaning
from imagenet_prep.exports.packing import Packer
from imagenet_prep.exports.webdataset import TarPacker


def _array_records(meaning: Meaning, prefix: str) -> Packer:
    check_array_record()
    return ArrayRecordPacker()


PACKERS: Mapping[str, Callable[[Meaning, str], Packer]] = {
    "webdataset": TarPacker,
    "folders": lambda meaning, prefix: TreePacker(meaning),
    "arrayrecord": _array_records,
}
"""What makes the packer of each container: from what the records mean, and from what names of files begin with."""
