"""The small ImageNet in copies that somebody packed, unpacked or renamed:
written as such copies are found.
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from kaggle_copies import tree
from made_tars import contents, member, pack, save, unpack

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.kaggle import ZIP

Write = Callable[[Path, MadeSet], None]

TRAIN_TAR, VALIDATION_TAR = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
APPLE_DOUBLE = b"\0\5\x16\7\0\2\0\0Mac OS X        "


def train_tars(made: MadeSet) -> dict[str, bytes]:
    """The tar of each class, by its name in the train archive."""
    return unpack(made.archives["train"])


def write_images(
    folder: Path,
    made: MadeSet,
    train: str,
    validation: str,
    change: Callable[[str], str] = str,
    *,
    flat: bool = False,
) -> None:
    """The images as files in class folders; ``change`` gives a file its name,
    ``flat`` validation has no folders.
    """
    for split, place in (("train", train), ("validation", validation)):
        for name, content in contents(made, split).items():
            wnid = "" if flat and split == "validation" else made.images[name].wnid
            save(folder / place / wnid / change(name), content)


def write_zip_of(
    path: Path, files: Iterable[tuple[str, bytes]], method: int = zipfile.ZIP_STORED
) -> None:
    """A zip whose names are written as they are, backslashes too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files:
            info = zipfile.ZipInfo("x")
            info.filename, info.compress_type = name, method
            archive.writestr(info, content)


def _again(
    change: Callable[[str], str], extra: bool = False, form: int = tarfile.GNU_FORMAT
) -> Write:
    """Both archives packed again: ``change`` gives each member its name;
    ``extra``: with what macOS adds.
    """

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
            files += [
                (f"__MACOSX/{'/._'.join(name.rsplit('/', 1))}", APPLE_DOUBLE) for name, _ in files
            ]
            files += [("ILSVRC/Data/CLS-LOC/val/.DS_Store", b"\0\0\0\1Bud1")]
        write_zip_of(folder / ZIP.filename, files)

    return write


def _folders(
    train: str, validation: str, change: Callable[[str], str] = str, *, flat: bool = False
) -> Write:
    return lambda folder, made: write_images(folder, made, train, validation, change, flat=flat)


def _imagenet_to_gcs(folder: Path, made: MadeSet) -> None:
    """As tensorflow/tpu's imagenet_to_gcs.py unpacks:
    validation/ flat, and its labels file next to it.
    """
    write_images(folder, made, "train", "validation", flat=True)
    save(folder / "synset_labels.txt", "n01440764\n")


def _with_apple_files(folder: Path, made: MadeSet) -> None:
    write_images(folder, made, "train", "val")
    for path in [*folder.glob("*/*/*.JPEG")]:
        save(path.with_name(f"._{path.name}"), APPLE_DOUBLE)
    for path in [folder, folder / "train", *folder.glob("train/*")]:
        save(path / ".DS_Store", b"\0\0\0\1Bud1")


def _in_folders(name: str) -> str:
    """A member in the folder that it was packed from again."""
    if name.endswith(".tar"):
        return f"./ILSVRC2012_img_train/{name}"
    return f"./val/{name}" if name.startswith("ILSVRC2012_val") else f"{name[:9]}/{name}"


TAKEN: dict[str, Write] = {
    "./ in front": _again(lambda name: f"./{name}"),
    "./ in front, PAX": _again(lambda name: f"./{name}", form=tarfile.PAX_FORMAT),
    "with macOS files": _again(lambda name: f"./{name}", extra=True),
    "class tars with ./": _class_tars,
    "Kaggle's zip in a folder": _kaggle(
        lambda name: f"imagenet-object-localization-challenge/{name}"
    ),
    "Kaggle's zip of Windows": _kaggle(lambda name: name.replace("/", "\\")),
    "Kaggle's zip of macOS": _kaggle(str, extra=True),
    "imagenet_to_gcs": _imagenet_to_gcs,
    "folders with macOS files": _with_apple_files,
    "train/train": _folders("train/train", "val/val"),
    "train/train, val/val flat": _folders("train/train", "val/val", flat=True),
    "folders named as archives": _folders("ILSVRC2012_img_train", "ILSVRC2012_img_val", flat=True),
    "in their own folders": _again(_in_folders),
}
"""Copies that hold the official bytes under the official names:
their records are those of the archives.
"""


# copies that are told -----------------------------------------------------------------------------


def _ending(suffix: str) -> Callable[[str], str]:
    return lambda name: name.replace(".JPEG", suffix)


def _train_file(name: str, change: Callable[[bytes], bytes]) -> Write:
    """The train archive in another form, and the validation archive."""

    def write(folder: Path, made: MadeSet) -> None:
        save(folder / name, change(made.archives["train"].read_bytes()))
        save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())

    return write


def _compressed_class_tars(content: bytes) -> bytes:
    return pack({f"{name}.gz": gzip.compress(tar, 1) for name, tar in unpack(content).items()})


def _class_tars_at(place: str) -> Write:
    def write(folder: Path, made: MadeSet) -> None:
        for name, tar in train_tars(made).items():
            save(folder / place / name, tar)
        save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())

    return write


def _kaggle_tar(outer: str, name: str) -> Write:
    """Kaggle's tree as a compressed tar, as its tar of 2019."""

    def write(folder: Path, made: MadeSet) -> None:
        save(
            folder / name,
            gzip.compress(pack({f"{outer}{name}": data for name, data in tree(made).items()}), 1),
        )

    return write


def _images(made: MadeSet, train: str, validation: str) -> Iterable[tuple[str, bytes]]:
    for split, place in (("train", train), ("validation", validation)):
        for name, content in contents(made, split).items():
            yield f"{place}{made.images[name].wnid}/{name}", content


def _tar_of_folders(name: str, train: str, validation: str) -> Write:
    return lambda folder, made: save(folder / name, pack(_images(made, train, validation)))


def _zip_of_folders(folder: Path, made: MadeSet) -> None:
    write_zip_of(folder / "imagenet.zip", _images(made, "train/", "val/"))


def _zip_below_a_folder(folder: Path, made: MadeSet) -> None:
    write_zip_of(folder / "imagenet.zip", _images(made, "my data/train/", "my data/val/"))


def _compressed_in_a_folder(folder: Path, made: MadeSet) -> None:
    """The class tars, each of them compressed."""
    for name, tar in train_tars(made).items():
        save(folder / "train" / f"{name}.gz", gzip.compress(tar, 1))
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _flat_train(folder: Path, made: MadeSet) -> None:
    """Train images without class folders."""
    for name, content in contents(made, "train").items():
        save(folder / "train" / name, content)
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _folders_beside_an_archive(folder: Path, made: MadeSet) -> None:
    """Train in a folder of a folder, the validation archive above it."""
    for name, content in contents(made, "train").items():
        save(folder / "imagenet" / "train" / made.images[name].wnid / name, content)
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _folder_tar_as_train(folder: Path, made: MadeSet) -> None:
    """The official name on a tar of class folders."""
    train = (each for each in _images(made, "train/", "") if each[0].startswith("train/"))
    save(folder / TRAIN_TAR, pack(train))
    save(folder / VALIDATION_TAR, made.archives["validation"].read_bytes())


def _train_with_jpg(folder: Path, made: MadeSet) -> None:
    write_images(folder, made, "train", "val", _ending(".jpg"))
    for path in [*folder.glob("val/*/*")]:
        path.rename(path.with_suffix(".JPEG"))


def _deeper(folder: Path, made: MadeSet) -> None:
    for split in ("train", "validation"):
        for name, content in contents(made, split).items():
            save(folder / split / made.images[name].wnid / "images" / name, content)


def _upper_case(folder: Path, made: MadeSet) -> None:
    for split in ("train", "validation"):
        for name, content in contents(made, split).items():
            save(folder / split / made.images[name].wnid.upper() / name, content)


TOLD: dict[str, tuple[Write, str]] = {
    "names with .jpg": (
        _folders("train", "val", _ending(".jpg")),
        "train has images whose names end in .jpg: n0",
    ),
    "names with .jpeg": (
        _folders("train", "val", _ending(".jpeg")),
        "train has images whose names end in .jpeg: n0",
    ),
    "names with .JPG": (
        _folders("train", "val", _ending(".JPG")),
        "train has images whose names end in .JPG: n0",
    ),
    "flat val with .jpg": (
        _folders("train", "val", _ending(".jpg"), flat=True),
        "names end in .jpg",
    ),
    "train alone with .jpg": (_train_with_jpg, "train has images whose names end in .jpg: n0"),
    "deeper in class folders": (
        _deeper,
        "train has images in folders within class folders: n0",
    ),
    "upper case": (_upper_case, "train has class folders in upper case: N0"),
    "below imagenet/": (
        _folders("imagenet/train", "imagenet/val"),
        "imagenet/train holds train images, but none are looked for there",
    ),
    "Kaggle's tree below imagenet/": (
        _folders(
            "imagenet/ILSVRC/Data/CLS-LOC/train", "imagenet/ILSVRC/Data/CLS-LOC/val", flat=True
        ),
        "imagenet/ILSVRC/Data/CLS-LOC/train holds train images, but none are looked for there",
    ),
    "valid/": (
        _folders("train", "valid"),
        "valid holds validation images, but none are looked for there",
    ),
    "train/images/": (
        _folders("train/images", "val"),
        "train/images holds train images, but none are looked for there",
    ),
    "class folders without train/": (
        _folders("", "val"),
        "raw holds train images, but none are looked for there",
    ),
    "class tars without a folder": (
        _class_tars_at(""),
        "is a class tar outside a folder of class tars",
    ),
    "train.tar.gz": (
        _train_file(f"{TRAIN_TAR}.gz", gzip.compress),
        f"{TRAIN_TAR}.gz looks like {TRAIN_TAR}, compressed with gzip",
    ),
    "train.tgz": (
        _train_file("train.tgz", gzip.compress),
        f"train.tgz looks like {TRAIN_TAR}, compressed with gzip",
    ),
    "train.tar.xz": (_train_file(f"{TRAIN_TAR}.xz", lzma.compress), "compressed with xz"),
    "train.tar, gzipped": (
        _train_file(TRAIN_TAR, gzip.compress),
        f"{TRAIN_TAR} is compressed with gzip",
    ),
    "train of tar.gz": (
        _train_file(TRAIN_TAR, _compressed_class_tars),
        f"{TRAIN_TAR} holds compressed class tars: n01440764.tar.gz",
    ),
    "Kaggle's tar of 2019": (
        _kaggle_tar("", "imagenet_object_localization_patched2019.tar.gz"),
        "patched2019.tar.gz holds Kaggle's tree in a tar and is compressed with gzip",
    ),
    "Kaggle's tar in a folder": (
        _kaggle_tar("./imagenet/", "kaggle.tar.gz"),
        "holds Kaggle's tree in a tar",
    ),
    "tar of folders": (
        _tar_of_folders("imagenet.tar", "./data/train/", "./data/val/"),
        "holds train images of ILSVRC2012",
    ),
    "train.tar of folders": (
        _folder_tar_as_train,
        f"{TRAIN_TAR} holds images in folders, in place of tars",
    ),
    "zip below a folder": (
        _zip_below_a_folder,
        "imagenet.zip holds train images of ILSVRC2012",
    ),
    "class tars compressed": (
        _compressed_in_a_folder,
        "train holds compressed class tars: n01440764.tar.gz",
    ),
    "train without class folders": (
        _flat_train,
        "train has images outside class folders: n01440764_",
    ),
    "train/train/train": (
        _folders("train/train/train", "val/val/val"),
        "train/train/train holds train images, but none are looked for there",
    ),
    "folders beside an archive": (
        _folders_beside_an_archive,
        "imagenet/train holds train images, but none are looked for there",
    ),
    "zip of folders": (_zip_of_folders, "imagenet.zip holds train images of ILSVRC2012"),
}
"""Copies that one command makes readable, and what the refusal says;
their records are then those of the archives.
"""
