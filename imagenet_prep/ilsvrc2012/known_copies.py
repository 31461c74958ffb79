"""refuse_known_copies: copies and archives, known by name, that lack the published images."""

from __future__ import annotations

from collections.abc import Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import TASK_3, download_hint
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

ENCODED_AGAIN = {
    "TensorFlow Datasets": (
        "imagenet2012-{}.tfrecord-*",
        "imagenet2012/*/imagenet2012-{}.tfrecord-*",
    ),
    "timm's webdataset": ("imagenet1k-{}-*.tar", "imagenet-1k-wds/imagenet1k-{}-*.tar"),
}
"""Copies that can't give the same bytes, by their makers: patterns of their files below the raw
folder.

For TFDS see ``_fix_image`` in its imagenet2012_dataset_builder.py; for timm see
https://huggingface.co/datasets/timm/imagenet-1k-wds.
"""


def refuse_known_copies(layout: Layout, split: str) -> None:
    """Raise InputError if the raw folder holds a split only in an unusable copy;
    call it if there is no other copy.
    """
    for maker, patterns in ENCODED_AGAIN.items():
        path = _first_match(layout.raw_dir, patterns, split)
        if path is not None:
            raise InputError(
                f"{path} is named like the copy of {maker}, which is not used",
                (
                    "expected the published images; the makers of this copy encoded 23 train "
                    "images again (22 CMYK images and one PNG)"
                ),
                "get the archives of image-net.org, Kaggle's zip or Hugging Face's parquet files, "
                "and name their folder with --raw",
            )
    archive_name = facts.ARCHIVES[split].filename
    path = layout.raw_dir / archive_name.replace(".tar", f"{TASK_3}tar")
    if path.is_file():
        raise InputError(
            f"{path} is named like the archive of task 3 (dogs), which has other {split} images",
            f"expected {archive_name}",
            download_hint(layout),
        )


def _first_match(folder: AnyPath, patterns: Sequence[str], split: str) -> AnyPath | None:
    """The first file of a split below a folder that one of the patterns matches."""
    for pattern in patterns:
        paths: list[AnyPath] = sorted(folder.glob(pattern.format(split)))
        if paths:
            return paths[0]
    return None
