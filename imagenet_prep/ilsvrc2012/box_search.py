"""find_annotations and find_boxes_csv: where the boxes of a split are, which may be apart from its
images.
"""

from __future__ import annotations

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_archives import BoxArchive, BoxFiles, BoxFolder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

BOX_ARCHIVES = {facts.TRAIN: "boxes", facts.VALIDATION: "validation-boxes"}
"""The key of the official archive of annotations, by split."""

BOX_FOLDERS = {
    facts.TRAIN: ("ILSVRC/Annotations/CLS-LOC/train", "Annotations/CLS-LOC/train"),
    facts.VALIDATION: ("ILSVRC/Annotations/CLS-LOC/val", "Annotations/CLS-LOC/val"),
}
"""Folders searched for annotations: Kaggle's tree."""


def find_annotations(layout: Layout, split: str) -> BoxFiles | None:
    """Find the annotations of a split, which may be apart from its images;
    None if there are none.
    """
    archive = layout.extra_path(facts.ARCHIVES[BOX_ARCHIVES[split]])
    if archive.is_file():
        return BoxArchive(archive)
    for name in BOX_FOLDERS[split]:
        folder = layout.raw_dir / name
        if folder.is_dir():
            return BoxFolder(folder)
    from imagenet_prep.ilsvrc2012.kaggle import ZIP, BoxesInZip  # late: it loads NumPy

    kaggle_zip = layout.extra_path(ZIP)
    return BoxesInZip(kaggle_zip, split) if kaggle_zip.is_file() else None


def can_annotate(layout: Layout) -> bool:
    """Whether annotate takes these folders: it reads and writes no object store."""
    return all(local_or_none(folder) for folder in (layout.data_dir, layout.raw_dir))


def find_boxes_csv(layout: Layout, split: str) -> AnyPath | None:
    """The boxes of a split: those that annotate made, or those in the raw folder;
    None if there are none.
    """
    boxes_csv = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    for path in (boxes_csv, layout.raw_dir / boxes_csv.name):
        if path.is_file():
            return path
    return None
