"""The small ImageNet in copies that somebody packed, unpacked or renamed: written as such copies are found."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from kaggle_copies import tree
from made_tars import contents, member, pack, save, unpack

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.portals import ZIP

Write = Callable[[Path, MadeSet], None]

TRAIN_TAR, VALIDATION_TAR = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
APPLE_DOUBLE = b"\0\5\x16\7\0\2\0\0Mac OS X        "


def train_tars(made: MadeSet) -> dict[str, bytes]:
    """The tar of each class, by its name in the train archive."""
    return unpack(made.archives["train"])


def write_images(
    folder: Path, made: MadeSet, train: str, validation: str, change: Callable[[str], str] = str, *, flat: bool = False
) -> None:
    """The images as files in class folders; ``change`` gives a file its name, ``flat`` validation has no folders."""
    for split, place in (("train", train), ("validation", validation)):
        for name, content in contents(made, split).items():
            wnid = "" if flat and split == "validation" else made.images[name].wnid
            save(folder / place / wnid / change(name), content)


def write_zip_of(path: Path, files: Iterable[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> None:
    """A zip whose names are written as they are, backslashes too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files:
            info = zipfile.ZipInfo("x")
            info.filename, info.compress_type = name, method
            archive.writestr(info, content)


def _again(change: Callable[[str], str], extra: bool = False, form: int = tarfile.GNU_FORMAT) -> Write:
    """Both archives packed again: ``change`` gives each member its name; ``extra``: with what macOS adds."""

    def repack(files: dict[str, bytes]) -> bytes:
        members: list[tuple[tarfile.TarInfo | str, bytes]] = []
        if extra:
            members += [(member("./", tarfile.DIRTYPE), b""), ("./.DS_Store", b"\0\0\0\1Bud1")]
        for name, content in files.items():
            folder, _, last = change(name).rpartition("/")
            if extra:
                members.append((f"{folder}/._{last}".lstrip("/"), APPLE_DOUBLE))
            members.append((change(name), content))
        return pack(members, form)

    def write(folder: Path, made: MadeSet) -> None:
        tars = {name: repack(unpack(tar)) for name, tar in train_tars(made).items()}
        save(folder / TRAIN_TAR, repack(tars))
        save(folder / VALIDATION_TAR, repack(contents(made, "validation")))

    return write


def _class_tars(folder: Path, made: MadeSet) -> None:
    """A tar per class, its members with ./ in front, and what macOS adds."""
    for name, tar in train_tars(made).items():
        members: list[tuple[str, bytes]] = []
        for image, content in unpack(tar).items():
            members += [(f"./._{image}", APPLE_DOUBLE), (f"./{image}", content)]
        save(folder / "train" / name, pack(members))
        save(folder / "train" / f"._{name}", APPLE_DOUBLE)
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _kaggle(change: Callable[[str], str], extra: bool = False) -> Write:
    def write(folder: Path, made: MadeSet) -> None:
        files = [(change(name), content) for name, content in tree(made).items()]
        if extra:
            files += [(f"__MACOSX/{'/._'.join(name.rsplit('/', 1))}", APPLE_DOUBLE) for name, _ in files[:]]
            files += [("ILSVRC/Data/CLS-LOC/val/.DS_Store", b"\0\0\0\1Bud1")]
        write_zip_of(folder / ZIP.filename, files)

    return write


def _folders(train: str, validation: str, change: Callable[[str], str] = str, *, flat: bool = False) -> Write:
    return lambda folder, made: write_images(folder, made, train, validation, change, flat=flat)


def _imagenet_to_gcs(folder: Path, made: MadeSet) -> None:
    """As tensorflow/tpu's imagenet_to_gcs.py unpacks: validation/ flat, and its labels file next to it."""
    write_images(folder, made, "train", "validation", flat=True)
    save(folder / "synset_labels.txt", "n01440764\n")


def _with_apple_files(folder: Path, made: MadeSet) -> None:
    write_images(folder, made, "train", "val")
    for path in [*folder.glob("*/*/*.JPEG")]:
        save(path.with_name(f"._{path.name}"), APPLE_DOUBLE)
    for path in [folder, folder / "train", *folder.glob("train/*")]:
        save(path / ".DS_Store", b"\0\0\0\1Bud1")


TAKEN: dict[str, Write] = {
    "./ in front": _again(lambda name: f"./{name}"),
    "./ in front, PAX": _again(lambda name: f"./{name}", form=tarfile.PAX_FORMAT),
    "with macOS files": _again(lambda name: f"./{name}", extra=True),
    "class tars with ./": _class_tars,
    "Kaggle's zip in a folder": _kaggle(lambda name: f"imagenet-object-localization-challenge/{name}"),
    "Kaggle's zip of Windows": _kaggle(lambda name: name.replace("/", "\\")),
    "Kaggle's zip of macOS": _kaggle(str, extra=True),
    "imagenet_to_gcs": _imagenet_to_gcs,
    "folders with macOS files": _with_apple_files,
    "validation below val/": _folders("train", "val"),
}
"""Copies that hold the official bytes under the official names: their records are those of the archives."""


def _jpg(suffix: str) -> Callable[[str], str]:
    return lambda name: name.replace(".JPEG", suffix)


def _gzipped(name: str) -> Write:
    def write(folder: Path, made: MadeSet) -> None:
        save(folder / name, gzip.compress(made.archives["train"].read_bytes(), 1))
        save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())

    return write


def _gzipped_inside(folder: Path, made: MadeSet) -> None:
    save(folder / TRAIN_TAR, pack({f"{name}.gz": gzip.compress(tar, 1) for name, tar in train_tars(made).items()}))
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _kaggle_2019(folder: Path, made: MadeSet) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name, content in tree(made).items():
            info = member(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    save(folder / "imagenet_object_localization_patched2019.tar.gz", out.getvalue())


TOLD: dict[str, Write] = {
    "names with .jpg": _folders("train", "val", _jpg(".jpg")),
    "names with .jpeg": _folders("train", "val", _jpg(".jpeg")),
    "names with .JPG": _folders("train", "val", _jpg(".JPG")),
    "train alone with .jpg": lambda folder, made: (
        write_images(folder, made, "train", "val", _jpg(".jpg")),
        [path.rename(path.with_suffix(".JPEG")) for path in [*folder.glob("val/*/*")]],
    )[0],
    "train/train": _folders("train/train", "val/val"),
    "train/train, val flat": _folders("train/train", "val/val", flat=True),
    "wnid/images": lambda folder, made: (
        [
            save(folder / split / made.images[name].wnid / "images" / name, content)
            for split in ("train", "validation")
            for name, content in contents(made, split).items()
        ]
        and None
    ),
    "ILSVRC2012_img_train": _folders("ILSVRC2012_img_train", "ILSVRC2012_img_val", flat=True),
    "imagenet/": _folders("imagenet/train", "imagenet/val"),
    "imagenet/ILSVRC/...": _folders(
        "imagenet/ILSVRC/Data/CLS-LOC/train", "imagenet/ILSVRC/Data/CLS-LOC/val", flat=True
    ),
    "upper case": lambda folder, made: (
        [
            save(folder / split / made.images[name].wnid.upper() / name, content)
            for split in ("train", "val")
            for name, content in contents(made, "train" if split == "train" else "validation").items()
        ]
        and None
    ),
    "train.tar.gz": _gzipped(f"{TRAIN_TAR}.gz"),
    "train.tar, gzipped": _gzipped(TRAIN_TAR),
    "train of tar.gz": _gzipped_inside,
    "Kaggle's tar of 2019": _kaggle_2019,
}
