"""The facts of the data set: archives, totals, and the label tables in the package."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from msgspec import Struct

_TABLES = Path(__file__).with_name(
    "data"
)  # importlib.resources would add a tenth of a second to every start

NAME = "ILSVRC2012"
TRAIN = "train"
VALIDATION = "validation"
SPLITS = (TRAIN, VALIDATION)

IMAGES = {TRAIN: 1_281_167, VALIDATION: 50_000}
SHARDS = {TRAIN: 1024, VALIDATION: 128}
CLASSES = 1000

FEWEST = {TRAIN: 732, VALIDATION: 50}
"""Images of the smallest train class; all validation classes have the same number."""

PUBLISHED_SIZES = {
    "train-00000-of-01024": 143_009_929,
    "train-00001-of-01024": 144_699_468,
    "train-00002-of-01024": 138_428_833,
    "train-01022-of-01024": 143_137_777,
    "train-01023-of-01024": 143_315_487,
    "validation-00000-of-00128": 52_223_858,
    "validation-00001-of-00128": 51_019_711,
    "validation-00002-of-00128": 51_520_046,
    "validation-00126-of-00128": 52_508_270,
    "validation-00127-of-00128": 55_292_089,
}
"""Bytes of shards made by the scripts of 2016,
from listings in Intel's model zoo documents, 2018.
"""

BOX_FILES = 544_546
BOXES = 615_299

_CMYK = (
    "n01739381_1309 n02077923_14822 n02447366_23489 n02492035_15739 n02747177_10752 "
    "n03018349_4028 n03062245_4620 "
    "n03347037_9675 n03467068_12171 n03529860_11437 n03544143_17228 n03633091_5218 "
    "n03710637_5125 n03961711_5286 "
    "n04033995_2932 n04258138_17003 n04264628_27969 n04336792_7448 n04371774_5854 "
    "n04596742_4225 n07583066_647 "
    "n13037406_4650"
)
ODD_IMAGES = {
    "png": frozenset({"n02105855_2933.JPEG"}),
    "cmyk": frozenset(f"{name}.JPEG" for name in _CMYK.split()),
}
"""The train images that are no RGB JPEGs, by kind. A copy with others was encoded again."""


class OfficialArchive(Struct, frozen=True):
    """One official archive. ``size`` is in bytes, None if only an estimate is published (then
    ``about``).

    ``sha256`` is "" if unknown.
    """

    key: str
    filename: str
    size: int | None
    about: int
    md5: str
    sha256: str = ""


ARCHIVES: dict[str, OfficialArchive] = {
    archive.key: archive
    for archive in (
        OfficialArchive(
            "train",
            "ILSVRC2012_img_train.tar",
            147_897_477_120,
            147_897_477_120,
            "1d675b47d978889d74fa0da5fadfb00e",
            "b08200a27a8e34218a0e58fde36b0fe8f73bc377f4acea2d91602057c3ca45bb",
        ),
        OfficialArchive(
            "validation",
            "ILSVRC2012_img_val.tar",
            6_744_924_160,
            6_744_924_160,
            "29b22e2961454d5413ddabcf34fc5622",
            "c7e06a6c0baccf06d8dbeb6577d71efff84673a5dbdd50633ab44f8ea0456ae0",
        ),
        OfficialArchive(
            "devkit",
            "ILSVRC2012_devkit_t12.tar.gz",
            None,
            2_500_000,
            "fa75699e90414af021442c21a62c3abf",
        ),
        OfficialArchive(
            "boxes",
            "ILSVRC2012_bbox_train_v2.tar.gz",
            None,
            20_000_000,
            "9271167e2176350e65cfe4e546f14b17",
        ),
        OfficialArchive(
            "validation-boxes",
            "ILSVRC2012_bbox_val_v3.tgz",
            None,
            2_200_000,
            "f4cd18b5ea29fe6bbea62ec9c20d80f0",
        ),
    )
}
"""By the name that ``download --only`` accepts.
Sizes and MD5 sums: image-net.org, by way of torchvision and TFDS.
"""

DEFAULT_ARCHIVES = ("train", "validation", "boxes")


def class_list(name: str) -> Path:
    """The path of a part's class list in the package."""
    return _TABLES / f"{name}.txt"


def _read_table(name: str) -> str:
    return (_TABLES / name).read_text(encoding="utf-8")


_TRAIN_NAME = re.compile(r"n[0-9]{8}_[0-9]+\.JPEG").fullmatch


@functools.cache
def synsets() -> tuple[str, ...]:
    """The 1000 wnids in label order: ``synsets()[label - 1]``."""
    table = _read_table("imagenet_lsvrc_2015_synsets.txt")
    return tuple(table.split())


@functools.cache
def labels() -> dict[str, int]:
    """The label, 1 to 1000, of each wnid."""
    return {wnid: label for label, wnid in enumerate(synsets(), 1)}


@functools.cache
def texts() -> dict[str, str]:
    """The words of each of 21,842 wnids: ``texts()["n01440764"] == "tench, Tinca tinca"``."""
    table = _read_table("imagenet_metadata.txt")
    fields = table.replace("\t", "\n").split("\n")
    wnids = fields[::2]
    words = fields[1::2]
    return dict(zip(wnids, words, strict=False))


@functools.cache
def validation_wnids() -> tuple[str, ...]:
    """The wnid of each validation image by file number: ``validation_wnids()[number - 1]``."""
    table = _read_table("imagenet_2012_validation_synset_labels.txt")
    return tuple(table.split())


@functools.cache
def devkit_ids() -> dict[str, int]:
    """The id, 1 to 1000, of each wnid in ILSVRC2012_devkit_t12;
    its order differs from that of the labels.
    """
    wnids = _read_table("imagenet_2012_devkit_synsets.txt").split()
    return {wnid: number for number, wnid in enumerate(wnids, 1)}


def validation_filename(number: int) -> str:
    """The official name of validation image ``number``, 1 to 50,000."""
    return f"ILSVRC2012_val_{number:08d}.JPEG"


def validation_number(filename: str) -> int | None:
    """The number in an official validation file name, or None if it isn't one."""
    digits = filename[15:23]
    if len(filename) != 28 or not _is_number(digits):
        return None
    number = int(digits)
    if 1 <= number <= IMAGES[VALIDATION] and filename == validation_filename(number):
        return number
    return None


def _is_number(text: str) -> bool:
    """Whether a text has only the digits 0 to 9."""
    return text.isascii() and text.isdigit()


def train_wnid(filename: str) -> str | None:
    """The wnid in an official train file name ``n01440764_10026.JPEG``, or None if it isn't one."""
    return filename[:9] if _TRAIN_NAME(filename) else None


def class_of(filename: str, split: str) -> str | None:
    """The wnid of the class of an image with this official name; None for any other name."""
    if split == TRAIN:
        return train_wnid(filename)
    number = validation_number(filename)
    if number is None:
        return None
    return validation_wnids()[number - 1]


def is_wnid(name: str) -> bool:
    """Whether a name has the form of a WordNet id: n and eight digits."""
    return len(name) == 9 and name[0] == "n" and _is_number(name[1:])


def words_of(wnid: str | None, filename: str) -> str:
    """The words of a class, by its wnid or the name of one of its images;
    "" if neither is known.
    """
    known_wnid = wnid or _wnid_of_image(filename)
    return texts().get(known_wnid or "", "")


def _wnid_of_image(filename: str) -> str | None:
    """The wnid of the class of an image with an official name, with or without its suffix."""
    _, _, name = filename.rpartition("/")
    if "." not in name:  # some makers omit the suffix
        name += ".JPEG"
    number = validation_number(name)
    if number is None:
        return train_wnid(name)
    return validation_wnids()[number - 1]
