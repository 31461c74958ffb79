"""The inputs of bench.py: archives of photographs nested as the official ones are,
and an annotation archive.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagenet_prep.demo.made_annotations import MadeAnnotation

ANNOTATIONS_PER_IMAGE = 5.4454
"""10,000 images, 54,454 annotations: a tenth of the real ones, so the work outweighs the start."""

BOXES_PER_ANNOTATION = 615_299 / 544_546


def make_input(on: str, images: int, folder: Path) -> None:
    """Make a data set of "images", "annotations" or "rehearsal";
    the folder gets its name when it is complete.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    if on == "images":
        make_images(images, partial)
    elif on == "rehearsal":
        make_rehearsal(images, partial)
    else:
        make_annotations(round(ANNOTATIONS_PER_IMAGE * images), partial)
    partial.rename(folder)


def shape(images: int) -> tuple[int, int, int]:
    """Classes, train images per class, validation images: 95, 100 and 500 for 10,000 images."""
    classes = min(95, max(1, images // 10))
    return classes, max(1, round(0.95 * images / classes)), max(1, images // 20)


def image_count(images: int) -> int:
    """The actual number of images for a requested number: every class has equally many."""
    classes, per_class, validation = shape(images)
    return classes * per_class + validation


def make_images(images: int, folder: Path) -> None:
    """A DATA_DIR with both image archives."""
    from imagenet_prep.demo.archives import make

    classes, per_class, validation = shape(images)
    make(folder / "raw-data", classes=classes, per_class=per_class, validation=validation)


def make_rehearsal(images: int, folder: Path) -> None:
    """A DATA_DIR like a rehearsal's: all classes,
    13 tiny images for each requested one, their boxes.
    """
    from rehearsal import build

    build(folder / "raw-data", images / 100_000)
    subprocess.run(
        [sys.executable, "-m", "imagenet_prep", "annotate", str(folder), "--quiet"], check=True
    )
    shutil.rmtree(folder / "imagenet-prep")


def make_annotations(files: int, folder: Path) -> None:
    """An annotation archive with as many boxes per file as the real one."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "ILSVRC2012_bbox_train_v2.tar.gz", "w:gz", compresslevel=6) as tar:
        for wnid, annotations in groupby(iter_annotations(files), attrgetter("wnid")):
            entry = tarfile.TarInfo(wnid)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
            for each in annotations:
                entry = tarfile.TarInfo(f"{wnid}/{each.name}.xml")
                entry.size = len(each.xml)
                tar.addfile(entry, io.BytesIO(each.xml))


def iter_annotations(files: int) -> Iterator[MadeAnnotation]:
    """This many annotations of one box or two, class by class."""
    from imagenet_prep.demo.made_annotations import annotation
    from imagenet_prep.demo.photographs import photograph_size
    from imagenet_prep.ilsvrc2012.facts import synsets

    for index in range(files):
        wnid = synsets()[index * len(synsets()) // files]
        boxes = int((index + 1) * BOXES_PER_ANNOTATION) - int(index * BOXES_PER_ANNOTATION)
        made = (
            annotation(f"{wnid}_{index}", wnid, photograph_size(index), seed=seed)
            for seed in count()
        )
        yield next(each for each in made if len(each.lines) == boxes)
