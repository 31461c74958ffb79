"""The small ImageNet as Kaggle keeps it: its tree as folders, and in a zip."""

from __future__ import annotations

import zipfile
from pathlib import Path

from made_folders import write
from made_tars import contents

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.facts import SPLITS, TRAIN
from imagenet_prep.ilsvrc2012.kaggle import ZIP

Tree = dict[str, bytes]


def tree(made: MadeSet) -> Tree:
    """All files by their path, in the order of Kaggle's archive: annotations first;
    test images among them.
    """
    files: Tree = {}
    for each in made.annotations:
        files[f"ILSVRC/Annotations/CLS-LOC/train/{each.wnid}/{each.name}.xml"] = each.xml
    for each in made.validation_annotations:
        files[f"ILSVRC/Annotations/CLS-LOC/val/{each.name}.xml"] = each.xml
    files["ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG"] = b"a test image"
    for split in SPLITS:
        for name, content in sorted(contents(made, split).items()):
            folder = f"train/{made.images[name].wnid}" if split == TRAIN else "val"
            files[f"ILSVRC/Data/CLS-LOC/{folder}/{name}"] = content
    files["ILSVRC/ImageSets/CLS-LOC/val.txt"] = b"ILSVRC2012_val_00000001 1\n"
    files["LOC_synset_mapping.txt"] = b"n01440764 tench, Tinca tinca\n"
    return files


def write_tree(folder: Path, files: Tree) -> None:
    """The tree, unpacked."""
    write(folder, **files)


def write_zip(folder: Path, files: Tree, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """The zip that the API gives."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / ZIP.filename, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return folder / ZIP.filename
