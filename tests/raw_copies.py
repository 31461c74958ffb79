"""A whole ILSVRC2012 of 300 tiny images in 100 classes, as 13 kinds of copies;
its facts in place of the published ones.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from copies_of_imagenet import write_hugging_face
from kaggle_copies import tree, write_tree, write_zip
from made_tars import contents, save, unpack
from msgspec.structs import replace

from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import Part

TRAIN_TAR, VALIDATION_TAR = (facts.ARCHIVES[split].filename for split in facts.SPLITS)

Write = Callable[[Path, MadeSet], object]


def make_whole(folder: Path) -> MadeSet:
    """200 train and 100 validation images in 100 classes, which have the labels 1 to 100."""
    made = make(folder, classes=100, per_class=2, validation=100, tiny=True)
    labels = {wnid: label for label, wnid in enumerate(made.wnids, 1)}
    images = {name: replace(image, label=labels[image.wnid]) for name, image in made.images.items()}
    return replace(made, images=images)


def use_facts(patch: pytest.MonkeyPatch, made: MadeSet) -> None:
    """Let a made set be ILSVRC2012: its classes, numbers, names, odd images and digests.

    All 1,000 classes would take ten times as long, and say the same.
    """
    wnids = made.wnids
    images = {split: len(made.of(split)) for split in facts.SPLITS}
    names = dict.fromkeys(sorted(image.filename for image in made.of(facts.VALIDATION)))
    kinds = {image.filename: image.kind.value for image in made.images.values()}
    odd = {
        "png": frozenset(name for name, kind in kinds.items() if kind == "png"),
        "cmyk": frozenset(name for name, kind in kinds.items() if kind in ("cmyk", "ycck")),
    }
    archives = {
        key: replace(facts.ARCHIVES[key], size=path.stat().st_size, md5=made.md5[key])
        for key, path in made.archives.items()
    }
    least = images[facts.TRAIN] // len(wnids)
    labels = {wnid: label for label, wnid in enumerate(wnids, 1)}
    patch.setattr(facts, "CLASSES", len(wnids))
    patch.setattr(facts, "synsets", lambda: wnids)
    patch.setattr(facts, "labels", lambda: labels)
    patch.setattr(facts, "IMAGES", images)
    patch.setattr(
        facts, "validation_number", lambda name: int(name[15:23]) if name in names else None
    )
    patch.setattr(facts, "FEWEST", {facts.TRAIN: least, facts.VALIDATION: 0})
    patch.setattr(facts, "ODD_IMAGES", odd)
    patch.setattr(facts, "ARCHIVES", {**facts.ARCHIVES, **archives})
    patch.setattr(Part, "validation_filenames", lambda self: tuple(names))


def write_official(folder: Path, made: MadeSet) -> None:
    """The archives of both splits."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in facts.SPLITS:
        shutil.copy2(made.archives[split], folder)


def write_folders(
    folder: Path, made: MadeSet, validation: str = "val", *, is_flat: bool = False
) -> None:
    """Class folders of both splits."""
    for split, name in ((facts.TRAIN, "train"), (facts.VALIDATION, validation)):
        for image, content in contents(made, split).items():
            wnid = "" if is_flat and split == facts.VALIDATION else made.images[image].wnid
            save(folder / name / wnid / image, content)


def write_class_tars(folder: Path, made: MadeSet, name: str) -> None:
    """The train archive unpacked once, beside the validation archive."""
    for tar, content in unpack(made.archives[facts.TRAIN]).items():
        save(folder / name / tar, content)
    shutil.copy2(made.archives[facts.VALIDATION], folder)


def write_cache(folder: Path, made: MadeSet) -> None:
    """The cache of huggingface_hub: links to files of other names."""
    data = folder / "datasets--ILSVRC--imagenet-1k" / "snapshots" / "0123abcd" / "data"
    for number, path in enumerate(write_hugging_face(data, made)):
        blob = data.parents[2] / "blobs" / str(number)
        blob.parent.mkdir(exist_ok=True)
        path.rename(blob)
        path.symlink_to(os.path.relpath(blob, path.parent))


COPIES: dict[str, Write] = {
    "official archives": write_official,
    "archives in DATA_DIR": lambda folder, made: write_official(folder / "raw-data", made),
    "class tars": lambda folder, made: write_class_tars(folder, made, "ILSVRC2012_img_train"),
    "class tars in train": lambda folder, made: write_class_tars(folder, made, "train"),
    "torchvision's folders": write_folders,
    "untar's folders": lambda folder, made: write_folders(folder, made, "validation"),
    "flat validation folder": lambda folder, made: write_folders(folder, made, is_flat=True),
    "Kaggle's tree": lambda folder, made: write_tree(folder, tree(made)),
    "Kaggle's tree below ILSVRC": lambda folder, made: write_tree(
        folder, {name.removeprefix("ILSVRC/"): content for name, content in tree(made).items()}
    ),
    "Kaggle's zip, stored": lambda folder, made: write_zip(folder, tree(made), zipfile.ZIP_STORED),
    "Kaggle's zip, deflated": lambda folder, made: write_zip(folder, tree(made)),
    "Hugging Face's files": lambda folder, made: write_hugging_face(folder / "data", made),
    "Hugging Face's cache": write_cache,
}
"""The ways in which people keep ILSVRC2012, by name."""


def state_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Size, time of change and time of the last write of everything below a folder,
    the folder included.
    """
    states: dict[str, tuple[int, int, int]] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            path = f"{parent}/{name}"
            status = os.lstat(path)
            states[path] = status.st_size, status.st_ctime_ns, status.st_mtime_ns
    return states


def replace_file(path: Path, content: bytes) -> None:
    """Give a file other content; other links to the old file keep theirs."""
    path.unlink()
    path.write_bytes(content)
