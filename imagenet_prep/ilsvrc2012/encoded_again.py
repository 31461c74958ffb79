"""Copies of ImageNet that can't give the same bytes: known by the names of their files, and refused with the reason.

In TensorFlow Datasets' imagenet2012 and in timm's imagenet-1k-wds 23 train images were encoded again as RGB JPEGs: 22
that are CMYK, and one that is a PNG (of the former see ``_fix_image`` in its imagenet2012_dataset_builder.py).
"""

from __future__ import annotations

from imagenet_prep.errors import InputError, Phrase
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.storage.layout import Layout

_PATTERNS = {
    facts.TRAIN: ("imagenet2012-train.tfrecord-*", "imagenet1k-train-*.tar"),
    facts.VALIDATION: ("imagenet2012-validation.tfrecord-*", "imagenet1k-validation-*.tar"),
}
_MAKERS = ("TensorFlow Datasets", "timm's webdataset")
_FOLDERS = ("", "imagenet2012/*/", "imagenet-1k-wds/")


def refuse_encoded_again(layout: Layout, split: str) -> None:
    """Raise InputError if the raw folder holds a split in such a copy; ask it where there is no other."""
    for maker, pattern in zip(_MAKERS, _PATTERNS[split], strict=True):
        found = sorted(path for folder in _FOLDERS for path in layout.raw_dir.glob(folder + pattern))
        if found:
            raise InputError(
                f"{found[0]} is of {maker}: that copy can't give the same records",
                "expected images as they were published; in that copy 23 of train were encoded again, "
                "22 that are CMYK and one that is a PNG",
                Phrase(
                    "get the archives of image-net.org, Kaggle's zip or Hugging Face's parquet files, and name their "
                    "folder with {raw}"
                ),
            )
