"""KINDS, the one table of copies of ImageNet in order of preference, and what of them lies in the raw folder."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import class_tars, facts, folders, huggingface, kaggle, official
from imagenet_prep.ilsvrc2012.box_files import BoxFiles
from imagenet_prep.ilsvrc2012.class_tars import ClassTars
from imagenet_prep.ilsvrc2012.consumed import find_consumed
from imagenet_prep.ilsvrc2012.part import Part
from imagenet_prep.ilsvrc2012.source import ImageSource
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

KINDS = (
    official.KIND,
    class_tars.KIND,
    folders.KIND,
    kaggle.KIND,
    huggingface.KIND,
    folders.UNFINISHED,
)
"""First found first taken, each split and its annotations on their own."""

ENCODED_AGAIN = {
    "TensorFlow Datasets": ("imagenet2012-{}.tfrecord-*", "imagenet2012/*/imagenet2012-{}.tfrecord-*"),
    "timm's webdataset": ("imagenet1k-{}-*.tar", "imagenet-1k-wds/imagenet1k-{}-*.tar"),
}
"""Copies that can't give the same bytes, by their makers: patterns of their files below the raw folder.

Of TFDS see ``_fix_image`` in its imagenet2012_dataset_builder.py; of timm https://huggingface.co/datasets/timm/imagenet-1k-wds.
"""


def find_source(layout: Layout, split: str) -> ImageSource | None:
    """Where the images of a split lie, or None.

    Raw data that is being consumed goes before any copy, what is known of one that was consumed comes last.
    """
    under_way = find_consumed(layout, split, is_over=False)
    copy = next((source for kind in KINDS if (source := kind.find(layout, split))), None)
    return under_way or copy or find_consumed(layout, split, is_over=True)


def refuse_encoded_again(layout: Layout, split: str) -> None:
    """Raise InputError if the raw folder holds a split in a copy of encoded images; ask it where there is no other."""
    for maker, patterns in ENCODED_AGAIN.items():
        for path in (path for pattern in patterns for path in sorted(layout.raw_dir.glob(pattern.format(split)))):
            raise InputError(
                f"{path} is of {maker}: that copy can't give the same records",
                "expected images as they were published; in that copy 23 of train were encoded again, "
                "22 that are CMYK and one that is a PNG",
                "get the archives of image-net.org, Kaggle's zip or Hugging Face's parquet files, "
                "and name their folder with --raw",
            )


def has_images(layout: Layout, split: str, part: Part) -> bool:
    """Whether a copy holds a split of these classes, as far as names alone tell: of class tars there may be some."""
    source = find_source(layout, split)
    return source is not None and (not isinstance(source, ClassTars) or part.labels.keys() <= set(source.wnids()))


def find_packed(layout: Layout, split: str) -> ImageSource | None:
    """Where the images of a split lie that are no files of their own yet, or None."""
    found = (kind.find(layout, split) for kind in KINDS)
    return next((each for each in found if each and not each.is_unpacked), None)


def find_annotations(layout: Layout, split: str) -> BoxFiles | None:
    """Where the annotations of a split lie, or None: not always where its images do."""
    return next((found for kind in KINDS if (found := kind.find_boxes(layout, split))), None)


def find_boxes_csv(layout: Layout, split: str) -> AnyPath | None:
    """The boxes of a split: what annotate made here, else what lies in the raw folder; None if there are none."""
    own = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    return next((path for path in (own, layout.raw_dir / own.name) if path.is_file()), None)
