"""KINDS, the one table of copies of ImageNet in order of preference, and what of them lies in the raw folder."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.ilsvrc2012 import class_tars, encoded_again, facts, folders, huggingface, kaggle, official
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
    kaggle.ZIP_KIND,
    huggingface.KIND,
    kaggle.TAR_KIND,
    folders.UNFINISHED,
    *encoded_again.KINDS,
)
"""First found first taken, each split and its annotations on their own."""


def find_source(layout: Layout, split: str, encoders: Sequence[str] = ("",)) -> ImageSource | None:
    """Where the images of a split lie, or None; in a copy of one of these ``encoders``, "": as they were published.

    Raw data that is being consumed goes before any copy, what is known of one that was consumed comes last.
    """
    under_way = find_consumed(layout, split, is_over=False)
    found = (kind.find(layout, split) for kind in KINDS)
    copy = next((source for source in found if source and source.encoder in encoders), None)
    return under_way or copy or find_consumed(layout, split, is_over=True)


def has_images(layout: Layout, split: str, part: Part, encoders: Sequence[str] = ("",)) -> bool:
    """Whether a copy holds a split of these classes, as far as names alone tell: of class tars there may be some."""
    source = find_source(layout, split, encoders)
    return source is not None and (not isinstance(source, ClassTars) or part.labels.keys() <= set(source.wnids()))


def find_packed(layout: Layout, split: str) -> ImageSource | None:
    """Where the images of a split lie that are no files of their own yet, or None."""
    found = (kind.find(layout, split) for kind in KINDS)
    return next((each for each in found if each and not (each.is_unpacked or each.encoder)), None)


def find_annotations(layout: Layout, split: str) -> BoxFiles | None:
    """Where the annotations of a split lie, or None: not always where its images do."""
    return next((found for kind in KINDS if (found := kind.find_boxes(layout, split))), None)


def find_boxes_csv(layout: Layout, split: str) -> AnyPath | None:
    """The boxes of a split: what annotate made here, else what lies in the raw folder; None if there are none."""
    own = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    return next((path for path in (own, layout.raw_dir / own.name) if path.is_file()), None)
