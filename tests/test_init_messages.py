"""What init says is true of the folder at hand, and its commands help; one row a message."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from existing import existing
from made_folders import CATS, FLAT, Made, images, picture
from made_tars import in_memory, pack
from running import command_here, prep_here

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.init.imagenet_copy import lacks_archives
from imagenet_prep.init.structures import annotated_folder

Files = Mapping[str, bytes | None]

PETS = {f"{kind}/{number}.jpg": None for kind in ("cat", "dog") for number in range(3)}
IN_SPLITS = {f"{split}/{name}": None for split in ("train", "val") for name in CATS}
IN_TWO = images(*(f"{split}/{number}.jpg" for split in ("train", "Testing") for number in "01"))
TEN = [f"{number}.jpg" for number in range(10)]


def table(names: list[str] | Files, header: str, *columns: str) -> bytes:
    """A CSV with a line for each name; the values of each column come in turn."""
    lines = [header]
    for number, name in enumerate(names):
        cells = [column.split()[number % len(column.split())] for column in columns]
        lines.append(",".join((name, *cells)))
    return "".join(f"{line}\n" for line in lines).encode()


def tar(*names: str, **texts: bytes) -> bytes:
    """A tar of images, and of other files."""
    return pack({**{name: picture(name) for name in names}, **texts})


LABELS = table(FLAT, "file,label", "a b")
FRACTIONS = table(FLAT, "file,size", "0.5 1.5 2.5")
XML = "<a>{}</a>"
PARTITION = table(FLAT, "file,label,part", "a b", "x=1 y y")
JOINED = {
    **images(*TEN),
    "train.csv": table(TEN[:6], "file,label", "a b"),
    "val.csv": table([*TEN[6:9], "none.jpg"], "file,label", "a b"),
}
TWO_MASKS = {
    **{f"images/{number}.jpg": None for number in range(4)},
    **{f"masks/{number}_seg.png": None for number in range(4)},
    **{f"masks/{number}_ins.png": None for number in range(4)},
}
BOXES = b"""<annotation><filename>0.jpg</filename><size><width>16</width><height>16</height>
<depth>3</depth></size><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>
<ymax>9</ymax></bndbox></object></annotation>"""
BOXED = {
    **{f"images/{number}.jpg": None for number in range(4)},
    **{f"boxes/{number}.xml": BOXES.replace(b"0.jpg", b"%d.jpg" % number) for number in range(4)},
    "masks/0.png": None,
    "more/masks/1.png": None,
}
VOC = {
    **{f"JPEGImages/{number}.jpg": None for number in range(4)},
    **{f"Annotations/{number}.xml": BOXES for number in range(4)},
    "ImageSets/Main/train.txt": b"0\n1\n",
    "ImageSets/Main/val.txt": b"2\n",
}


def _labelled(**contents: bytes) -> Files:
    """Flat images next to these files; _ in a name stands for a point."""
    return {**images(*FLAT), **{name.replace("_", "."): data for name, data in contents.items()}}


CUB_PATHS = "".join(f"{place} {name}\n" for place, name in enumerate(PETS, 1)).encode()


def _save_arrays(file: BinaryIO) -> None:
    """Four images and their labels."""
    np.savez(file, images=np.zeros((4, 8, 8, 3), np.uint8), labels=np.arange(4) % 2)


ARRAY = in_memory(lambda file: np.save(file, np.zeros((8, 8), np.float32)))
ARRAYS = {"train.npz": in_memory(_save_arrays)}


def _save_vectors(file: BinaryIO) -> None:
    """The same with four numbers for each image."""
    images_of_file, labels = np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2
    np.savez(file, images=images_of_file, labels=labels, vectors=np.full((4, 4), 0.5))


def _save_two_columns(file: BinaryIO) -> None:
    """Images and two arrays of numbers, neither of which is called as labels are."""
    images_of_file, numbers = np.zeros((4, 8, 8, 3), np.uint8), np.arange(4)
    np.savez(file, images=images_of_file, foo=numbers % 2, bar=numbers % 3)


def _save_no_labels(file: BinaryIO) -> None:
    """Images and vectors."""
    np.savez(file, images=np.zeros((4, 8, 8, 3), np.uint8), vectors=np.full((4, 4), 0.5))


ARRAYS_WITH_VECTORS = {"train.npz": in_memory(_save_vectors)}


@dataclass(frozen=True, slots=True)
class Saying:
    """A folder, options, and what init must say or must not; ``status`` is that of the command."""

    files: Files
    options: str
    words: tuple[str, ...]
    status: int = 4
    absent: tuple[str, ...] = ()


NAMELESS = {
    **images("images/0.jpg", "images/1.jpg"),
    "labels/0.txt": b"0 0.5 0.5 0.2 0.2\n",
    "labels/1.txt": b"1 0.5 0.5 0.2 0.2\n",
}

SAYINGS: dict[str, Saying] = {
    # columns
    "a column that no table has": Saying(
        _labelled(l_csv=LABELS),
        "--as with-labels --label none",
        (
            "data: --label names the column none, and init finds no such column for the images\n"
            "expected one of file, label\n",
        ),
        status=2,
        absent=("names its images",),
    ),
    "one of several columns": Saying(
        _labelled(l_csv=LABELS),
        "--label label,none",
        ("--label names the column none, and",),
        status=2,
    ),
    "a column of fractions": Saying(
        _labelled(l_csv=FRACTIONS),
        "--label size",
        ("the column size, which --label names, can't be the classes",),
        status=2,
        absent=("no table",),
    ),
    "a column of paths with that of its labels": Saying(
        _labelled(l_csv=LABELS),
        "--image file,label",
        ("--image names the column file,label, and init finds no such column",),
        status=2,
    ),
    "a column that names no image": Saying(
        _labelled(l_csv=FRACTIONS),
        "--image size",
        ("the column size, which --image names, names less than half of the images",),
        status=2,
    ),
    "a column of paths of a few images": Saying(
        {**PETS, "l.csv": b"file,kind\ncat/0.jpg,a\ndog/1.jpg,b\n"},
        "--image file",
        ("names less than half of the images",),
        status=2,
    ),
    "a table that is not there": Saying(
        _labelled(l_csv=LABELS),
        "--label m.csv:label",
        ("--label names the table m.csv, and init finds no such table for the images",),
        status=2,
    ),
    "the column of labels as that of paths": Saying(
        _labelled(l_csv=LABELS),
        "--image label",
        ("the column label, which --image names, names less than half of the images",),
        status=2,
    ),
    "a column for class folders": Saying(
        {**PETS, "l.csv": table(PETS, "file,kind", "x y z")},
        "--as class-folders --label kind",
        (
            "--as class-folders does not read the column kind, which --label names\n"
            "expected --as with-labels, which takes the labels from a table\n"
            "to read the table: imagenet-prep init data --as with-labels --label kind; "
            "to run init without --label: imagenet-prep init data --as class-folders\n",
        ),
        status=2,
        absent=("no table",),
    ),
    "a column of a few images for class folders": Saying(
        {**PETS, "l.csv": b"file,kind\ncat/0.jpg,x\ndog/1.jpg,y\n"},
        "--as class-folders --label kind",
        ("to read the table: imagenet-prep init data --label kind; to run init without --label: ",),
        status=2,
    ),
    "columns of two tables": Saying(
        {
            **PETS,
            "a.csv": table(PETS, "file,kind", "x y x"),
            "b.csv": table(PETS, "path,size", "p q r"),
        },
        "--label kind --image path",
        (
            "the column path, which --image names, is not in the table that init reads\n"
            "expected columns of one table: --label FILE:COLUMN chooses the table\n",
        ),
        status=2,
    ),
    "only fractions": Saying(
        _labelled(l_csv=FRACTIONS),
        "",
        ("the records have no class: none of the columns (size) looks like one\n",),
        status=0,
        absent=("--label size",),
    ),
    "a table of few images": Saying(
        _labelled(l_csv=table(FLAT[:2], "file,label", "a b")),
        "--as with-labels",
        (
            "holds no file that names at least half of its images",
            "for the 2 images that l.csv labels: imagenet-prep init data --as with-labels --label "
            "l.csv:label",
        ),
        status=2,
    ),
    "names with another ending": Saying(
        _labelled(l_csv=LABELS.replace(b"jpg", b"png")),
        "",
        ("it has names with another ending: 0.png is 0.jpg",),
        status=0,
    ),
    "an array without the column": Saying(
        ARRAYS,
        "--label none",
        (
            "data has no column of labels called none\nexpected --label labels\nto use labels: imagenet-prep init data --label labels\n",
        ),
    ),
    "an array without the column, beside one that is no label": Saying(
        ARRAYS_WITH_VECTORS,
        "--label none",
        (
            "data has no column of labels called none\nexpected --label labels\nto use labels: imagenet-prep init data --label labels\n",
        ),
    ),
    "an array that is no label": Saying(
        ARRAYS_WITH_VECTORS,
        "--label vectors",
        ("no sample has the same label twice\nexpected --label labels\n",),
    ),
    # structures
    "another structure": Saying(
        images(*PETS),
        "--as plain-tars",
        ("expected --as all-folders, class-folders or unlabelled\nto run init without --as: ",),
        status=2,
        absent=("to see why",),
    ),
    "no structure": Saying({"a.md": b"x"}, "--as plain-tars", ("to see why: ",), status=2),
    # files that are not read
    "a few names": Saying(
        _labelled(a_xml=XML.format("0.jpg").encode()),
        "",
        ("a.xml may label the images, and init finds no labels in it",),
        absent=("names none of them", "`labels`"),
    ),
    "two files of names": Saying(
        _labelled(
            a_xml=XML.format(" ".join(FLAT)).encode(), b_xml=b" ".join(map(str.encode, FLAT))
        ),
        "",
        ("a.xml, b.xml have the names of at least half of the images",),
    ),
    "what can't be unpacked": Saying(
        {**images(*PETS), "a.beton": b"x"}, "", ("\nmove it away; ",), absent=("unpack",)
    ),
    "nothing that can be unpacked": Saying(
        {"a.rec": b"x"}, "", ("a function of yours can read any format",), absent=("unpack",)
    ),
    "hidden files alone": Saying(
        {".a.jpg": None},
        "",
        ("found nothing, and hidden files, which init skips: .a.jpg\na name that starts",),
    ),
    "one tar": Saying(
        {**images(*PETS), "a.tar": tar("cat/9.jpg")},
        "",
        (
            "holds 1 tar that would not be read: a.tar\nexpected only image files, or only tars\n",
            "move it out of data",
        ),
    ),
    "an image next to other files": Saying(
        {"a.tar": tar("1.jpg", **{"1.cls": b"0"}), "x.jpg": None},
        "--as webdataset",
        ("holds 1 image outside of tars", "found 1 image in 1 class", "with 1 sample: a.tar"),
        status=0,
    ),
    "a second file of arrays": Saying(
        {"a.npz": ARRAYS["train.npz"], "b.npz": ARRAYS["train.npz"]},
        "--label a.npz:labels",
        ("\nexpected one file of arrays, or files that are parts of one set\n", "out of data"),
    ),
    "one array next to one image": Saying(
        {"a.jpg": None, "b.npy": b"x"},
        "",
        ("next to 1 image:", "move the images or the arrays out of data"),
    ),
    "a part that is missing": Saying(
        {"a.tar.001": b"x", "a.tar.003": b"y"},
        "",
        ("get the parts of a.tar between a.tar.001 and a.tar.003",),
        absent=("cat --",),
    ),
    "the first part is missing": Saying(
        {"a.tar.2": b"x", "a.tar.3": b"y"}, "", ("get the parts of a.tar before a.tar.2",)
    ),
    "parts by letters without the first": Saying(
        {"a.tar.ab": b"x", "a.tar.ac": b"y"}, "", ("get the parts of a.tar before a.tar.ab",)
    ),
    "files of two losses": Saying(
        JOINED,
        "",
        (
            "2 problems: (1) data/train.csv, data/val.csv name 9 of 10 images, and not 9.jpg",
            ": 1 path leads to no image: none.jpg in data/val.csv, line 5",
            "\nto leave out what does not fit, run the command with --as with-labels below\n",
        ),
    ),
    "files in no split": Saying(
        {name: tar("1.jpg", **{"1.cls": b"0"}) for name in ("a.tar", "b.tar", "train-1.tar")},
        "",
        (
            "some files are in no split (a.tar, b.tar), others are in train (train-1.tar)",
            "such as train-a.tar",
        ),
    ),
    "an image in no list": Saying(
        VOC,
        "",
        ("1 image in no list of ImageSets/Main", "expected every image in a list"),
        absent=("needs an annotation",),
    ),
    "a loose image of a split": Saying(
        {**IN_SPLITS, "train/x.jpg": None},
        "",
        ("error: train/x.jpg is in no class folder\nexpected data/train/CLASS/FILE",),
    ),
    # splits
    "a folder of tars as a split": Saying(
        {"train/a.tar": tar("cat/1.jpg"), "test/a.tar": tar("cat/2.jpg")},
        "--split train=train --split test=test",
        ("--split train: init finds no images in the folder data/train",),
        status=2,
        absent=("no folder",),
    ),
    "a class folder as a split": Saying(
        PETS,
        "--split train=cat",
        ("3 images without a class\n", "3 images in no folder of --split, left out"),
        status=0,
        absent=("dog",),
    ),
    "the folder itself as a split": Saying(
        images("train/0.jpg", "0.jpg"),
        "--split train=train --split test=.",
        (
            "--split test: init finds no images in the folder data\nexpected a file that lists images",
        ),
        status=2,
    ),
    "a folder that is a value, and one that is none": Saying(
        {**IN_TWO, "l.csv": table(IN_TWO, "file,label,set", "a b", "train train test test")},
        "--split train=train --split test=Testing",
        ("found 4 images in 2 classes, in train and test",),
        status=0,
    ),
    "a name of two images": Saying(
        {**images(*PETS), "x.txt": b"0.jpg\n", "y.txt": b"1.jpg\n"},
        "--split train=x.txt --split test=y.txt",
        ("x.txt, line 1: 0.jpg may be cat/0.jpg or dog/0.jpg",),
        status=2,
        absent=("is no image",),
    ),
    "lists of names with a start of their own": Saying(
        {
            **images(*PETS),
            "x.txt": "".join(f"v1-{name}\n" for name in [*PETS][:-1]).encode(),
            "y.txt": f"v1-{[*PETS][-1]}\n".encode(),
        },
        "--split train=x.txt --split test=y.txt --strip v1-",
        (f"found {len(PETS)} images in 2 classes, in train and test",),
        status=0,
    ),
    "an image in two lists": Saying(
        {**images(*PETS), "x.txt": b"cat/0.jpg\ndog/0.jpg\n", "y.txt": b"dog/1.jpg\ncat/0.jpg\n"},
        "--split train=x.txt --split test=y.txt",
        ("data/y.txt, line 2: cat/0.jpg is in data/x.txt, line 1 already",),
        status=2,
    ),
    "images in no folder of a split": Saying(
        {f"{folder}/{name}": None for folder in "AB" for name in FLAT},
        "--as unlabelled --split train=A",
        ("\n6 images without a class\n", "6 images in no folder of --split, left out"),
        status=0,
    ),
    "an arrays file of no split": Saying(
        {**ARRAYS, "b.npz": ARRAYS["train.npz"]},
        "",
        ("found 8 images in 2 classes, in train, with",),
        status=0,
    ),
    # lists
    "two ways to split": Saying(
        {
            **images(*PETS),
            **{f"train{number}.txt": b"cat/0.jpg\ncat/1.jpg\ndog/0.jpg\n" for number in "12"},
            **{f"test{number}.txt": b"dog/1.jpg\n" for number in "12"},
        },
        "",
        (
            "error: data: 2 ways to split the images: train1.txt, test1.txt; train2.txt, test2.txt\n",
        ),
        absent=("no labels", "path:label"),
    ),
    "a list of names next to the folder": Saying(
        {**images(*PETS), "../other-train.txt": "".join(f"{name}\n" for name in PETS).encode()},
        "",
        ("found 6 images in 2 classes",),
        status=0,
        absent=("other-train",),
    ),
    "a list of names alone": Saying(
        _labelled(l_txt="".join(f"{name}\n" for name in FLAT).encode()),
        "",
        ("data/l.txt has names of images, and no labels\n",),
        absent=("line 1",),
    ),
    "an image of CUB in no class folder": Saying(
        {
            **images(*PETS, "x.jpg"),
            "images.txt": CUB_PATHS + b"7 x.jpg\n",
            "train_test_split.txt": b"".join(b"%d 1\n" % number for number in range(1, 8)),
        },
        "",
        (
            "images.txt names 1 image in no class folder: x.jpg",
            "and write CLASS/FILE in their lines; or take the lines out of images.txt",
        ),
        absent=("not there",),
    ),
    "a table in a tar of arrays": Saying(
        {"a.tar": pack({"x/0.npy": ARRAY, "y/1.npy": ARRAY, "l.csv": b"a,b\n"})},
        "",
        (
            "1 .csv in tars would not be read: l.csv\nexpected only arrays in tars\n",
            "  2 of 2 arrays, ",
        ),
    ),
    "a line of CUB without a number": Saying(
        {**PETS, "images.txt": CUB_PATHS, "train_test_split.txt": b"1 1\nx 0\n"},
        "",
        ("train_test_split.txt, line 2 is 'x 0'\nexpected NUMBER 1 (train) or NUMBER 0 (test)",),
        absent=("6 images",),
    ),
    "classes once more": Saying(
        {**images(*CATS), **{f"all/{name}": None for name in CATS}},
        "",
        ("the folder all (", "images) is next to class folders, and would be left out\n"),
    ),
    "an image of CUB that is not there": Saying(
        {
            **images(*PETS),
            "images.txt": CUB_PATHS + b"7 cat/9.jpg\n",
            "train_test_split.txt": b"".join(b"%d 1\n" % number for number in range(1, 8)),
        },
        "",
        ("images.txt names 1 image that no class folder has: cat/9.jpg",),
    ),
    "more columns than lines": Saying(
        _labelled(
            l_csv=table(
                FLAT, "file,c1,c2,c3,c4,c5", "a b", "x x y", "p p p q q q", "m n n m", "r s s"
            )
        ),
        "",
        ("can be read in 5 ways: ", "choose one (4 of them are below); each line"),
    ),
    "numbers that may be splits": Saying(
        _labelled(l_csv=table(FLAT, "file,label,split", "a b", "0 1 2")),
        "",
        ("l.csv has the labels, and its column split may be the splits",),
    ),
    "a table of a few images that have no other labels": Saying(
        {**images(*(f"{n}.jpg" for n in range(20))), "l.csv": table(FLAT[:4], "file,kind", "a b")},
        "--as unlabelled",
        (
            "names 4 of 20 images, 2 classes in kind; to use it, and only these 4 images: "
            "imagenet-prep init",
        ),
        status=0,
    ),
    "one-hot columns": Saying(
        _labelled(l_csv=table(FLAT, "file,a,b", "0 1", "1 0")),
        "",
        ("; the columns a, b give 2 classes",),
        status=0,
    ),
    "a loose file below a folder in a tar": Saying(
        {"a.tar": tar("d/x.jpg", *(f"d/{name}" for name in PETS))},
        "",
        ("1 file in d in tars, and in no class folder",),
        absent=("that are no classes",),
    ),
    "a table of images in a tar and next to it": Saying(
        {
            "t.tar": tar(*FLAT),
            "x.jpg": None,
            "metadata.csv": table(
                [*(f"t.tar/{name}" for name in FLAT), "x.jpg"], "file_name,label", "a b"
            ),
        },
        "",
        ("found 7 images in 2 classes", "metadata.csv names 7 images in the column `file_name`"),
        status=0,
        absent=("would not be read",),
    ),
    "a table of arrays": Saying(
        {
            **{f"{number}.npy": ARRAY for number in range(4)},
            "l.csv": table([f"{number}.npy" for number in range(3)], "file,label", "a b"),
        },
        "",
        ("names 3 of 4 arrays, and not 3.npy\nevery array needs a line",),
        absent=(" images", " image "),
    ),
    "a document of some images": Saying(
        _labelled(l_json=b'{"cat": ["0.jpg", "1.jpg"], "dog": ["2.jpg", "3.jpg"]}'),
        "",
        ("names 4 of 6 images, and not 4.jpg\nevery image needs an entry",),
        absent=("needs a line",),
    ),
    "an image among arrays": Saying(
        {**{f"{number}.npy": ARRAY for number in range(4)}, "x": picture("x.jpg")},
        "",
        ("1 file that can't be read with the others: x (JPEG)\nexpected only arrays\n",),
        absent=("convert",),
    ),
    "classes of arrays": Saying(
        {f"{label}/{number}.npy": ARRAY for label in "ab" for number in range(2)},
        "",
        ("\narrays per class: a (2), b (2)\n",),
        status=0,
    ),
    "a GIF among TIFFs": Saying(
        {"0.tif": None, "x": picture("x.gif")}, "", ("x (GIF)\nexpected JPEG, PNG, TIFF\n",)
    ),
    "a table without any label": Saying(
        _labelled(l_csv=table(FLAT, "file,label", '""')),
        "--label label",
        ("6 lines without a label",),
        absent=("imagenet-prep init",),
    ),
    "a path of two images": Saying(
        {**PETS, "l.csv": table([*PETS, "0.jpg"], "file,label", "x y")},
        "",
        ("l.csv: 1 path leads to no image, or to several: 0.jpg in line 8)",),
        absent=("not there",),
    ),
    "columns without labels": Saying(
        _labelled(l_csv=table(FLAT[:4], "file,size", "0.5 1.5")), "", ("l.csv names 4 of 6 images",)
    ),
    "boxes next to a table": Saying(
        {**BOXED, "metadata.csv": table(list(BOXED)[:4], "file_name,label", "a b")},
        "",
        ("has Pascal VOC annotations", " images: imagenet-prep init data --as pascal-voc;"),
    ),
    "a tar with folders and without": Saying(
        {"a.tar": tar("1.jpg", "x/2.jpg"), "b.tar": tar("1.jpg")},
        "",
        ("1.jpg in tars is in no class folder (2 files)", "tar -xf data/a.tar -C data/a"),
        absent=("class-tars", "data/CLASS"),
    ),
    "inner folders of one name in a tar": Saying(
        {"a.tar": tar("cat/a/1.jpg", "dog/a/2.jpg", "cat/3.jpg", "dog/4.jpg")},
        "",
        ("\nunpack, then run init again: tar -xf data/a.tar -C data && mv ",),
    ),
    "names of classes without classes": Saying(
        {**images(*FLAT), "n.txt": b"cat\ndog\n"},
        "--as unlabelled --names data/n.txt",
        ("--names data/n.txt: the data has no classes",),
        status=2,
    ),
    "the file of the names of classes": Saying(
        {**images("0/1.jpg", "1/2.jpg"), "n.txt": b"cat\ndog\n"},
        "--names data/n.txt",
        ("cat is 0, dog is 1",),
        status=0,
        absent=("skipped",),
    ),
    "names of classes by number": Saying(
        {
            **{f"{label}/{name}": None for label in "01" for name in FLAT},
            "n.json": b'{"0":"x","1":"y"}',
        },
        "",
        ("n.json names all of 2 classes\n",),
        status=0,
    ),
    "folders within classes, and a column": Saying(
        {"dog/husky/1.jpg": None, "dog/pug/2.jpg": None, "cat/3.jpg": None},
        "--label kind",
        ("init data --as folder-paths (classes: ",),
    ),
    "two tables that contradict each other": Saying(
        _labelled(l_csv=LABELS, m_csv=table(FLAT, "file,label", "a a b")),
        "",
        ("(with-labels: l.csv or m.csv has the labels)",),
    ),
    "a table that --label leaves out": Saying(
        _labelled(l_csv=LABELS, m_csv=table(FLAT, "file,label", "a a b")),
        "--label m.csv",
        ("skipped: l.csv is not used: it names 6 of 6 images\n",),
        status=0,
    ),
    "boxes of one class in two class folders": Saying(
        {
            **{f"{kind}/{number}.jpg": None for kind in "ab" for number in range(2)},
            **{f"{kind}/{number}.xml": BOXES for kind in "ab" for number in range(2)},
        },
        "",
        ("  4 of 4 images, 2 classes: imagenet-prep init data --as boxes-in-class-folders\n",),
        absent=("boxes of 1 class: cat; 2 folders of files: a, b; a, b annotate",),
    ),
    "two files of arrays": Saying(
        {"a.npz": ARRAYS["train.npz"], "b.npz": ARRAYS["train.npz"]},
        "",
        ("each line says what it reads", "  4 of 4 samples, 2 classes: imagenet-prep init"),
    ),
    "a document without a column": Saying(
        _labelled(l_json=b'{"0.jpg": "a", "1.jpg": "b", "2.jpg": "a", "3.jpg": "b"}'),
        "--label x",
        ("--label names the column x, and init finds no such column",),
        status=2,
    ),
    "a split given twice": Saying(
        images("A/cat/0.jpg", "B/cat/1.jpg"),
        "--split train=A --split train=B",
        ("\ngive it once; for several folders, ", "`splits`: train: {folder: [A, B]}\n"),
        status=2,
    ),
    "a list given twice": Saying(
        {**PETS, "a.txt": b"cat/0.jpg\n", "b.txt": "\n".join(PETS).encode()},
        "--split train=a.txt --split test=a.txt",
        ("--split names data/a.txt for both train and test",),
        status=2,
    ),
    "classes of two cases": Saying(
        {**images("train/cat/0.jpg", "train/b/0.jpg", "val/Cat/0.jpg", "val/b/0.jpg")},
        "",
        ("; to keep them as different classes, run the command with --as class-folders below",),
    ),
    "classes of two cases, kept": Saying(
        {**images("train/cat/0.jpg", "train/b/0.jpg", "val/Cat/0.jpg", "val/b/0.jpg")},
        "--as class-folders",
        ("Cat and cat (kept as different classes, as --as class-folders says)\n",),
        status=0,
        absent=("left out",),
    ),
    "YOLO without names": Saying(
        NAMELESS,
        "",
        ("\nto use the numbers as names, run the command with --as yolo below\n",),
        absent=("leave out",),
    ),
    "YOLO without names, accepted": Saying(
        NAMELESS,
        "--as yolo",
        ("each class gets its number as its name (accepted, as --as yolo says)\n",),
        status=0,
        absent=("left out",),
    ),
    "YOLO without names, as one of two ways": Saying(
        {**NAMELESS, "l.csv": table(["images/0.jpg", "images/1.jpg"], "file,label", "a b")},
        "",
        ("--as yolo would use the numbers as names (YOLO annotations and no file",),
    ),
    "YOLO with four points in each line": Saying(
        {
            **images("images/0.jpg"),
            "labels/0.txt": b"0 0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2\n",
            "data.yaml": b"names: [cat]\n",
        },
        "",
        (
            "\nto make an upright box around the four points of each line, run the command with "
            "--as yolo below\n",
        ),
        absent=("leave out",),
    ),
    "an image next to splits": Saying(
        {**IN_SPLITS, "9.jpg": None},
        "",
        ("\nexpected SPLIT/CLASS/FILE\nmove it into a class folder; to leave out",),
    ),
    "a loss next to a fault": Saying(
        {**JOINED, "x": ARRAY}, "", ("(3) data", "x (NumPy)"), absent=("--as with-labels below",)
    ),
    "odd files in a tar": Saying(
        {"a.tar": tar(*PETS, **{"cat/x.npy": b"x", "cat/y.ppm": b"P6"})},
        "",
        (
            "convert such files to PNG or JPEG, and pack them again",
            "pack it again with only images or only arrays",
        ),
        absent=("move", "FOLDER"),
    ),
    "a table of another name": Saying(
        {**images(*FLAT), "l.csv": table(FLAT, "file,kind", "x y z")},
        "--label other.csv:kind",
        ("init finds no such table for the images\nexpected l.csv\n",),
        status=2,
    ),
    "a value and a folder as splits": Saying(
        {**PETS, "l.csv": table(PETS, "file,label", "x y z")},
        "--as class-folders --split train=x --split test=cat",
        ("--split: train=x is a value of a column, test=cat is a folder\n",),
        status=2,
    ),
    "lists that leave out an image with boxes": Saying(
        {**VOC, "ImageSets/Main/train.txt": b"0\n", "ImageSets/Main/val.txt": b"1\n"},
        "",
        ("  2 of 4 images, 1 class: imagenet-prep init data --as pascal-voc\n",),
    ),
    "folders of masks in a tar": Saying(
        {"a.tar": tar("images/1.jpg", "images/2.jpg", "masks/1.png", "masks/2.png")},
        "",
        ("look like images and their masks", "\nunpack, then run init again: tar -xf data/a.tar"),
    ),
    "folders of the same classes in a tar": Saying(
        {"a.tar": tar("cat/big/1.jpg", "cat/small/2.jpg", "dog/big/3.jpg", "dog/small/4.jpg")},
        "",
        (
            "cat, dog in the tars of data hold the same folders (big, small), and may be the classes",
        ),
    ),
    "splits without classes in a tar": Saying(
        {"a.tar": tar("train/1.jpg", "test/2.jpg")},
        "",
        (
            "folders in data/a.tar with names of splits, not of classes: test, train\n",
            "\nunpack, then run init again: tar -xf data/a.tar -C data && mv ",
        ),
    ),
    # masks, and tables of several splits
    "masks next to their images": Saying(
        {f"x{number}{end}.png": None for number in range(4) for end in ("", "_mask")},
        "--as unlabelled",
        (
            "4 of 8 files have the names of masks: x0_mask.png",
            "move the masks out of data; or, if they are images like the others, write a recipe "
            'with source: {files: "data/**/*"}\n',
        ),
        absent=("classes:", "mask: {"),
    ),
    "masks with another ending next to their images": Saying(
        {"a.jpg": None, "b.jpg": None, "a_mask.png": None},
        "--as unlabelled",
        (
            "or, to read the masks, with source: {files: 'data/**/*.jpg'}, mask: {folder: data, "
            "suffix: _mask, unmasked: skip}",
        ),
    ),
    "boxes next to masks of some images": Saying(
        BOXED,
        "",
        (
            "masks, more/masks have masks of 2 of 4 images",
            "\n  2 images with masks: imagenet-prep init data --as masks\n",
            "\n  4 of 4 images, 1 class: imagenet-prep init data --as pascal-voc\n",
        ),
    ),
    "tables of splits": Saying(
        {name: content for name, content in JOINED.items() if name != "9.jpg"},
        "--as with-labels",
        ("train.csv, val.csv name 9 of 9 images",),
        status=0,
    ),
    "tables of splits that are not used": Saying(
        {
            **images(*IN_SPLITS),
            "train.csv": table(
                [name for name in IN_SPLITS if "train" in name], "file,note", "p q r s"
            ),
            "val.csv": table([name for name in IN_SPLITS if "val" in name], "file,note", "t u v w"),
        },
        "--as class-folders",
        ("train.csv, val.csv are not used: they name 8 of 8 images, and have no class",),
        status=0,
        absent=("not used: train",),
    ),
    # tars
    "tars that are classes": Saying(
        {"cat.tar": tar("1.jpg", **{"l.json": b"{}"}), "dog.tar": tar("1.jpg")},
        "",
        ("  2 of 2 images, 2 classes: imagenet-prep init data --as class-tars",),
    ),
    "several labels in tars": Saying(
        {"a.tar": tar(*FLAT), "l.csv": LABELS + b"0.jpg,b\n"},
        "",
        ("'0.jpg' is in line 2 already",),
        absent=("several-labels",),
    ),
    "several labels of the only image": Saying(
        {"0.jpg": None, "l.csv": b"file,label\n0.jpg,a\n0.jpg,b\n"},
        "",
        ("  1 of 1 image, 2 classes: imagenet-prep init data --as several-labels\n",),
    ),
    # questions
    "a table of boxes that is no table of labels": Saying(
        {
            "0.jpg": None,
            "metadata.csv": b"file_name,label,xmin,ymin,xmax,ymax\n0.jpg,a,1,1,5,5\n",
        },
        "",
        ("metadata.csv annotates 1 of 1 image: 1 box of 1 class: a\n",),
        status=0,
    ),
    "a way that has an error": Saying(
        {
            **{f"{kind}/{number}.png": None for kind in ("images", "masks") for number in range(2)},
            "metadata.csv": b"file_name,mask_file_name\nimages/0.png,masks/0.png\nimages/1.png,2,3\n",
        },
        "",
        (
            "--as universal-table has an error: ",
            "line 3: 2 columns expected, 3 found; run the command below; each line",
            "init data --as masks\n",
        ),
        absent=("init data --as universal-table", "can be read in 2 ways"),
    ),
}


@pytest.mark.parametrize("name", SAYINGS)
def test_what_init_says_is_true_of_the_folder(name: str, tmp_path: Path) -> None:
    """Each row was once another sentence, which was false there."""
    saying = SAYINGS[name]
    Made(saying.files).save(tmp_path / "data")
    ran = prep_here("init", "data", *shlex.split(saying.options), cwd=tmp_path)
    text = f"{ran.stdout}{ran.stderr}"
    assert ran.returncode == saying.status, text
    for words in saying.words:
        assert words in text
    for words in saying.absent:
        assert words not in text


COMMANDS: dict[str, Saying] = {
    "a column that may be the class": Saying(
        _labelled(l_csv=table(FLAT, "file,weather,split", "sun", "train test")),
        "",
        ("; to use weather as the class: imagenet-prep init data --label weather --output ",),
        status=0,
    ),
    "names of masks in classes": Saying(
        {name.replace(".jpg", end): None for name in PETS for end in (".jpg", "_mask.jpg")},
        "",
        ("would take them as images like the others (6 of 12 files have the names of masks",),
    ),
    "a file of arrays without a column called label": Saying(
        {"a.npz": in_memory(_save_two_columns), "b.npz": ARRAYS["train.npz"]},
        "",
        ("4 of 4 samples, 2 classes: imagenet-prep init data --as array-sets --label a.npz:foo\n",),
    ),
    "a file of arrays without labels": Saying(
        {"a.npz": in_memory(_save_no_labels), "b.npz": ARRAYS["train.npz"]},
        "",
        ("4 samples without a class: imagenet-prep init data --as array-sets --label a.npz:\n",),
    ),
    "a split for values with other signs": Saying(
        _labelled(l_csv=PARTITION), "--split train=y", ("x-1", "train"), status=2
    ),
    "a split called as another value": Saying(
        _labelled(l_csv=table(FLAT, "file,label,part", "a b", "one two")),
        "--split two=one",
        ("--split two-2=two --split two=one",),
        status=2,
    ),
    "the table of a part": Saying(
        _labelled(l_csv=table(FLAT[:2], "file,label", "a b")), "--as with-labels", (), status=2
    ),
    "the first column that can be classes": Saying(
        _labelled(l_csv=table(FLAT, "file,size,note", "0.5 1.5 2.5", "p q r s t u")),
        "",
        ("--label note",),
        status=0,
    ),
    "a table next to tars": Saying(
        {"a.tar": tar(*PETS), "l.csv": table(PETS, "file,label", "a b")},
        "--as plain-tars",
        ("--as tars-with-labels --label l.csv:label",),
        status=0,
    ),
    "a table without labels next to tars": Saying(
        {"a.tar": tar(*PETS), "l.csv": table(PETS, "file,size", "0.5 1.5 2.5")},
        "--image file",
        ("expected a table with labels, for images in tars\nto run init without --image: ",),
        status=2,
    ),
    "a folder of the same classes": Saying(
        {**IN_SPLITS, **{f"extra/{name}": None for name in CATS}},
        "",
        ("extra: 4 images, left out; to make it a split, too: ",),
        status=0,
    ),
    "images without labels, and a column of them": Saying(
        _labelled(l_csv=b"file,label\nq.jpg,a\n"),
        "--label label",
        ("  6 images without a class: imagenet-prep init data --as unlabelled\n",),
    ),
    "a table that can't be read, and a column of it": Saying(
        _labelled(l_csv=table(FLAT, "file,a,b", "2", "3")),
        "--label a,b",
        ("  for records without labels: imagenet-prep init data --as unlabelled\n",),
    ),
    "a structure that is another one": Saying(
        images(*PETS), "--as plain-tars", ("without --as: ",), status=2
    ),
    "a broken table next to class folders": Saying(
        {**images(*PETS), "../l.csv": table(PETS, "file,label", "a b") + b"cat/0.jpg\n"},
        "--as with-labels",
        ("; to leave the file out: imagenet-prep init data --as class-folders\n",),
    ),
    "a broken table next to images": Saying(
        {**images(*FLAT), "../l.csv": LABELS + b"0.jpg\n"},
        "",
        ("away\n  for records without labels: imagenet-prep init data --as unlabelled\n",),
    ),
    "a sample without a label": Saying(
        {"a.tar": tar("1.jpg", "2.jpg", "3.jpg", **{"1.cls": b"0", "3.cls": b"1"})},
        "",
        (
            "2.jpg has no label in cls\nexpected a label for each sample\n",
            "add it; or, to make records of such samples without a label: "
            "imagenet-prep init data --label cls\n",
        ),
    ),
    "a column of samples that may be the class": Saying(
        {
            "a.tar": tar(
                *(f"{number}.jpg" for number in range(4)),
                **{
                    f"{number}.json": b'{"sky": "%s"}' % b"ab"[number % 2 :][:1]
                    for number in range(4)
                },
            )
        },
        "",
        ("to use sky as the class: imagenet-prep init data --label sky --output data-2.yaml\n",),
        status=0,
    ),
    "a table that is not used, and a recipe of another name": Saying(
        {**dict.fromkeys(PETS), "l.csv": table(list(PETS), "file,label", "x y")},
        "--as class-folders --output data.yaml",
        (
            "to use it: imagenet-prep init data --as with-labels --label l.csv:label --output data-2",
        ),
        status=0,
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_of_a_message_helps(name: str, tmp_path: Path) -> None:
    """It is copied word for word; a command with losses prints the one that accepts them."""
    saying = COMMANDS[name]
    Made(saying.files).save(tmp_path / "data")
    ran = prep_here("init", "data", *shlex.split(saying.options), cwd=tmp_path)
    text = f"{ran.stdout}{ran.stderr}"
    assert ran.returncode == saying.status, text
    assert all(words in text for words in saying.words), text
    for _ in range(2):
        command = re.findall(r"imagenet-prep (init data.*)", text)[0]
        ran = prep_here(*shlex.split(command), cwd=tmp_path)
        text = f"{ran.stdout}{ran.stderr}"
        if ran.returncode == 0:
            break
    assert ran.returncode == 0, text


def test_a_wrong_structure_of_a_folder_with_images_alone(tmp_path: Path) -> None:
    """The hint to write a table names the folder; with it, init takes the labels."""
    Made(images(*FLAT)).save(tmp_path / "data")
    refused = command_here("init", "data", "--as", "with-labels", status=2, cwd=tmp_path)
    hint = "write a CSV with the columns filename and label into data"
    assert refused.stderr.endswith(f"{hint}\n")
    (tmp_path / "data/l.csv").write_bytes(LABELS.replace(b"file,", b"filename,"))
    command_here("init", "data", "--as", "with-labels", cwd=tmp_path)


def test_a_split_that_is_no_value_of_one_table(tmp_path: Path) -> None:
    """The error names the values, and not a key of a recipe that the user never wrote."""
    content = table(FLAT, "file_name,label,split", "a b", "one two")
    Made({**images(*FLAT), "t.csv": content}).save(tmp_path / "data")
    words = ("init", "data/t.csv", "--split", "train=one", "--split", "test=x")
    refused = command_here(*words, status=2, cwd=tmp_path)
    problem = (
        "error: --split test=x: no column of splits of data/t.csv has the value x\n"
        "expected one of one, two\n"
    )
    assert problem in refused.stderr
    command = refused.stderr.rpartition("without --split: imagenet-prep ")[2]
    command_here(*shlex.split(command), cwd=tmp_path)


NOTED = {
    "a folder of the same classes": ({**IN_SPLITS, **{f"extra/{name}": None for name in CATS}}, ""),
    "a column that may be the class": (
        _labelled(l_csv=table(FLAT, "file,weight,note", "0.5 1.5 2.5 3.5 4.5 5.5", "p q r s t u")),
        "",
    ),
    "a table next to class folders": (
        {**images(*PETS), "l.csv": table(PETS, "file,label", "a b")},
        "--as class-folders",
    ),
    "a table next to tars": (
        {"a.tar": tar(*PETS), "l.csv": table(PETS, "file,label", "a b")},
        "--as plain-tars",
    ),
}


@pytest.mark.parametrize("output", ["", "--output r.yaml"])
@pytest.mark.parametrize("case", NOTED)
def test_the_commands_of_a_run_that_wrote_a_recipe_write_another(
    case: str, output: str, tmp_path: Path
) -> None:
    """Its notes name other ways to read the folder; the recipe's own name is taken by then."""
    content, options = NOTED[case]
    Made(content).save(tmp_path / "data")
    ran = command_here("init", "data", *shlex.split(f"{options} {output}"), cwd=tmp_path)
    calls = set(re.findall(r": imagenet-prep (init data .*)", ran.stdout))
    assert len(calls) == 1
    for call in calls:
        command_here(*shlex.split(call), cwd=tmp_path)
    first = output.partition(" ")[2] or "data.yaml"
    recipes = {path.name for path in existing(tmp_path, "*.yaml")}
    assert recipes == {first, first.replace(".", "-2.")}


@pytest.mark.parametrize("folder", ["data", "."])
def test_masks_in_one_folder_are_parted_by_their_suffix(folder: str, tmp_path: Path) -> None:
    """The command moves only the masks of the other suffix; init takes the rest then."""
    Made(TWO_MASKS).save(tmp_path / "data")
    place = tmp_path if folder == "data" else tmp_path / "data"
    refused = command_here("init", folder, status=4, cwd=place)
    problem = "masks (suffix _ins), masks (suffix _seg) each have masks of 4 images"
    assert problem in refused.stderr
    command = re.findall(r"mkdir .*", refused.stderr)[0].partition("; or")[0]
    subprocess.run(["bash", "-c", command], check=True, cwd=place)
    done = command_here("init", folder, "--output", "r.yaml", cwd=place)
    assert "masks has masks of 4 of 4 images" in done.stdout


@pytest.mark.parametrize("folder", ["data", "data/raw-data"])
def test_imagenet_itself_needs_no_recipe(folder: str, tmp_path: Path) -> None:
    """A DATA_DIR of ImageNet, or its raw-data, is one error, whose command reads the archives."""
    train = tar("n01440764_1.jpg")
    files = {"ILSVRC2012_img_train.tar": train, **dict.fromkeys(("train/a/1.jpg", "train/b/2.jpg"))}
    Made({f"raw-data/{name}": content for name, content in files.items()}).save(tmp_path / "data")
    refused = command_here("init", folder, status=4, cwd=tmp_path)
    assert f"error: {folder} has an archive with a name of ImageNet's own: " in refused.stderr
    assert "ILSVRC2012_img_train.tar" in refused.stderr
    assert "obstacles" not in refused.stderr
    assert "--as class-folders" in refused.stderr
    call = "imagenet-prep convert data --allow-incomplete"
    assert f"convert needs no recipe for ImageNet: {call}\n" in refused.stderr
    for split in facts.SPLITS:
        assert lacks_archives(tmp_path)
        archive = facts.ARCHIVES[split]
        (tmp_path / archive.filename).touch()
        os.truncate(tmp_path / archive.filename, archive.about)
    assert not lacks_archives(tmp_path)


def test_imagenet_elsewhere_is_converted_from_there(tmp_path: Path) -> None:
    """The folder of the archives is named with --raw."""
    files = {"ILSVRC2012_img_val.tar": tar("ILSVRC2012_val_00000001.jpg"), "a/1.jpg": None}
    Made({**files, "b/2.jpg": None}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    call = refused.stderr.partition("needs no recipe for ImageNet: imagenet-prep ")[2]
    call = call.partition("\n")[0]
    assert call == "convert data-shards --raw data --allow-incomplete"
    (tmp_path / "data/ILSVRC2012_img_val.tar").write_bytes(tar("ILSVRC2012_val_00000001.JPEG"))
    command_here(*shlex.split(call), "--dry-run", cwd=tmp_path)


def test_masks_without_a_suffix_are_told_from_those_with_one(tmp_path: Path) -> None:
    """Masks that share a folder are named by what parts them."""
    files = {name.replace("_seg", ""): content for name, content in TWO_MASKS.items()}
    Made(files).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    assert "masks (without a suffix)" in refused.stderr
    assert "masks (suffix _ins)" in refused.stderr


def test_two_folders_of_masks_here(tmp_path: Path) -> None:
    """In the folder itself, the command moves one of them next to the folder."""
    names = [f"{folder}/{number}.png" for folder in ("masks", "labels") for number in range(4)]
    Made({**images(*names), **{f"images/{number}.jpg": None for number in range(4)}}).save(
        tmp_path / "data"
    )
    refused = command_here("init", ".", status=4, cwd=tmp_path / "data")
    assert f"mv -- masks {tmp_path}/data-masks" in refused.stderr


def test_the_keys_that_take_masks_next_to_boxes(tmp_path: Path) -> None:
    """The note has the keys; with them in the recipe, convert takes the images with a mask."""
    Made(BOXED).save(tmp_path / "data")
    done = command_here("init", "data", "--as", "pascal-voc", cwd=tmp_path)
    note = "to keep only the images with a mask, add (mask: .*) and, to boxes, (missing: ignore)"
    mask_key, boxes_key = re.findall(note, done.stdout)[0]
    recipe = tmp_path / "data.yaml"
    text = recipe.read_text().replace("\n  voc:", f"\n  {boxes_key}\n  voc:")
    recipe.write_text(f"{text}\n{mask_key}\n")
    converted = command_here("convert", "out", "--config", "data.yaml", cwd=tmp_path)
    assert "2 images" in converted.stdout


def _save_coco_with_masks(folder: Path) -> None:
    """Two folders of PNGs with boxes, each with a folder of masks, PNGs too."""
    names = [f"{name}/{number}.png" for name in ("a", "b") for number in range(2)]
    masks = [f"photos/{name}/masks/{number}.png" for name in ("a", "b") for number in range(2)]
    entries = [
        {"id": number, "file_name": name, "width": 16, "height": 16}
        for number, name in enumerate(names)
    ]
    boxes = [
        {"id": number, "image_id": number, "category_id": 1, "bbox": [1, 1, 5, 5]}
        for number in range(len(names))
    ]
    content = {"images": entries, "annotations": boxes, "categories": [{"id": 1, "name": "car"}]}
    annotations = {"boxes.json": json.dumps(content).encode()}
    Made({**images(*(f"photos/{name}" for name in names), *masks), **annotations}).save(folder)


def test_masks_below_the_folders_of_images_are_no_images(tmp_path: Path) -> None:
    """The recipe names each folder of images, so the masks below them are not converted."""
    _save_coco_with_masks(tmp_path / "data")
    command_here("init", "data", "--as", "coco", cwd=tmp_path)
    converted = command_here("convert", "out", "--config", "data.yaml", cwd=tmp_path)
    assert "train: 4 images" in converted.stdout


def test_masks_below_many_folders_of_images_are_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe doesn't name many folders: init says why, and takes the folder without the masks."""
    monkeypatch.setattr(annotated_folder, "_MOST_FOLDERS", 1)
    _save_coco_with_masks(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    assert "to see what prevents it: imagenet-prep init data --as coco" in refused.stderr
    refused = command_here("init", "data", "--as", "coco", status=4, cwd=tmp_path)
    assert refused.stderr.endswith("\nmove all masks out of data/photos\n")
    for name in ("a", "b"):
        (tmp_path / "data/photos" / name / "masks").rename(tmp_path / f"masks of {name}")
    command_here("init", "data", "--as", "coco", cwd=tmp_path)


@pytest.mark.parametrize("has_masks", [False, True])
def test_each_year_of_voc_gets_a_recipe_of_its_own(tmp_path: Path, has_masks: bool) -> None:
    """Years are no classes, with masks or without; each advised command writes a recipe."""
    years = {
        f"{year}/{name}": data for year in ("VOC2007", "VOC2012") for name, data in VOC.items()
    }
    kept = {name: data for name, data in years.items() if not name.endswith("3.jpg")}
    kept = {name: data for name, data in kept.items() if "3.xml" not in name}
    masks = {f"VOC2007/SegmentationClass/{number}.png": None for number in range(3)}
    Made({**kept, **(masks if has_masks else {})}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    assert "--as" not in refused.stderr
    if has_masks:
        return
    commands = re.findall(r"^  imagenet-prep (init .*)$", refused.stderr, re.MULTILINE)
    assert commands == ["init data/VOC2007", "init data/VOC2012"]
    for command in commands:
        command_here(*shlex.split(command), cwd=tmp_path)
    assert existing(tmp_path, "VOC*.yaml")


OBJECTS = {
    f"{name}/{kind}.png": None for name in "ab" for kind in ("images/1", "masks/1", "masks/2")
}


def test_masks_of_objects_are_not_called_unread(tmp_path: Path) -> None:
    """They are the objects; no advice to read them a second time."""
    Made(OBJECTS).save(tmp_path / "data")
    done = command_here("init", "data", cwd=tmp_path)
    assert "4 boxes of 1 class" in done.stdout
    assert "not read" not in done.stdout


def test_a_damaged_mask_of_an_object_is_named(tmp_path: Path) -> None:
    """The folders around it become no classes."""
    Made({**OBJECTS, "a/masks/2.png": b"no image"}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    assert "data/a/masks/2.png: it is no image of a known format" in refused.stderr
    assert "--as" not in refused.stderr


def test_annotations_of_another_machine_lose_its_folders(tmp_path: Path) -> None:
    """The advised --strip makes a recipe that has the boxes, and the advised key, too."""
    names = [f"images/{number}.jpg" for number in range(3)]
    records = [
        {"id": i, "file_name": f"d/train/{i}.jpg", "width": 16, "height": 16} for i in range(3)
    ]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 3, 3]} for i in range(3)]
    coco = {"images": records, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    Made({**images(*names), "c.json": json.dumps(coco).encode()}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    (option,) = re.findall(r"run init with (--strip \S+),", refused.stderr)
    (key,) = re.findall(r"write in the recipe `(.*)`", refused.stderr)
    done = command_here("init", "data", *option.split(), cwd=tmp_path)
    assert "c.json annotates 3 of 3 images" in done.stdout
    assert key in (tmp_path / "data.yaml").read_text()
    command_here("convert", "out", "--config", "data.yaml", cwd=tmp_path)


@pytest.mark.parametrize("table_name", ["l.csv", "lists/l.csv"])
def test_a_table_of_another_machine_loses_its_folders(tmp_path: Path, table_name: str) -> None:
    """The advised command labels all images, which are in another folder here."""
    names = [f"images/{number}.jpg" for number in range(3)]
    lines = [f"q/train/{number}.jpg,{label}\n" for number, label in enumerate("aba")]
    content = f"file,label\n{''.join(lines)}".encode()
    Made({**images(*names), table_name: content}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    (command,) = re.findall(r"removed from their paths: imagenet-prep (.*)", refused.stderr)
    done = command_here(*shlex.split(command), cwd=tmp_path)
    assert "found 3 images in 2 classes" in done.stdout


@pytest.mark.parametrize("members", [("1.jpg", "1.jpg"), ("x/1.jpg", "x/1.jpg")])
def test_tars_with_files_of_one_name_are_unpacked_apart(
    members: tuple[str, str], tmp_path: Path
) -> None:
    """No file is written over another one."""
    first, second = members
    archives = {"cat.tar": tar(first, **{"l.json": b"{}"}), "dog.tar": tar(second)}
    Made(archives).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    command = re.findall(r"mkdir .*?unpacked && .*?unpacked", refused.stderr)[0]
    subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
    unpacked = {
        path.relative_to(tmp_path / "data").as_posix() for path in existing(tmp_path, "**/*.jpg")
    }
    assert unpacked == {f"cat/{first}", f"dog/{second}"}


def test_tars_that_are_parts_of_one_set_without_classes(tmp_path: Path) -> None:
    """The images of tars with the same names can be taken without classes."""
    Made({"part1.tar": tar("1.jpg", "2.jpg"), "part2.tar": tar("1.jpg")}).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    unpack, _, again = refused.stderr.rpartition(" && ")
    command = unpack.partition("to take all without classes: ")[2]
    subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
    assert again == "imagenet-prep init data --as unlabelled\n"
    found = command_here("init", "data", "--as", "unlabelled", cwd=tmp_path)
    assert "found 3 images" in found.stdout


def test_many_parts_are_joined_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """The tenth part comes after the ninth."""
    content = tar(*PETS)
    size = len(content) // 10 - 7  # no part starts with a whole file
    parts = {f"a.tar.{number + 1}": content[number * size :][:size] for number in range(10)}
    parts["a.tar.11"] = content[10 * size :]
    Made(parts).save(tmp_path / "data")
    refused = command_here("init", "data", status=4, cwd=tmp_path)
    command = re.findall(r"cat -- .*", refused.stderr)[0]
    subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
    assert (tmp_path / "data/a.tar").read_bytes() == content


def test_a_command_in_a_note_writes_another_recipe(tmp_path: Path) -> None:
    """The note comes with a recipe, which is there then: the command runs as it is."""
    lines = "".join(f"{name},{number % 2}\n" for number, name in enumerate(PETS))
    Made({**images(*PETS), "l.csv": f"file,kind\n{lines}".encode()}).save(tmp_path / "data")
    first = prep_here("init", "data", "--as", "class-folders", cwd=tmp_path)
    for output in ("data-2.yaml", "data-3.yaml"):
        words = first.stdout.partition("to use it: imagenet-prep ")[2].partition("\n")[0]
        assert words.endswith(f" --output {output}"), first.stdout
        advised = prep_here(*shlex.split(words), cwd=tmp_path)
        assert advised.returncode == 0, advised.stderr
        (tmp_path / "data.yaml").unlink()
        first = prep_here("init", "data", "--as", "class-folders", cwd=tmp_path)
