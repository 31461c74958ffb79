"""Folders as people bring them: small images in the structures that people use,
with the labels files and the faults that they have.
"""

from __future__ import annotations

import gzip
import json
import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from made_tars import in_memory, pack, save
from PIL import Image

from imagenet_prep.tfrecord.example import BytesList, Feature, Int64List, encode_example
from imagenet_prep.tfrecord.framing import frame

Labels = Mapping[str, int | str | tuple[str, ...] | None]
"""The label or class of each image by its file name, or all its classes; None for none."""


def picture(name: str, kind: str = "") -> bytes:
    """A small image of the format that its name has, in a colour that only this name has."""
    formats = {"jpg": "JPEG", "jpeg": "JPEG", "tif": "TIFF"}
    ending = kind or name.rpartition(".")[2].lower()
    image = Image.new("RGB", (16, 16), colour(name))
    return in_memory(lambda file: image.save(file, formats.get(ending, ending.upper())))


def colour(name: str) -> tuple[int, int, int]:
    """The colour of an image, by its name without folders."""
    place = sum(ord(sign) * (index + 7) for index, sign in enumerate(name.rpartition("/")[2]))
    return (place * 16 % 256, place * 5 // 16 * 16 % 256, place // 7 * 16 % 256)


def write(folder: Path, **contents: bytes) -> None:
    """Files with these contents."""
    for name, content in contents.items():
        save(folder / name, content)


@dataclass(frozen=True, slots=True)
class Made:
    """A folder and what is right for it.

    Args:
        files: contents by name; an image where there are none.
        right: the labels of each split, where init must take it.
        refused: parts of what init must say, where it must refuse.
        structure: what is given with --as.
        said: parts of what init must say where it takes it.
    """

    files: Mapping[str, bytes | None]
    right: Mapping[str, Labels] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    structure: str | None = None
    said: tuple[str, ...] = ()

    def save(self, folder: Path) -> None:
        """Write all files; {home} in a text is the folder."""
        for name, content in self.files.items():
            data = (
                picture(name)
                if content is None
                else content.replace(b"{home}", str(folder).encode())
            )
            write(folder, **{name: data})


def images(*names: str) -> dict[str, bytes | None]:
    """Images of these names."""
    return dict.fromkeys(names)


FLAT = [f"{number}.jpg" for number in range(6)]
SEVERAL = dict(zip(FLAT, (("a", "b"), ("b",), ("c", "a"), ("a",), ("b", "c"), ("c",)), strict=True))
LETTERS = {name: "ab"[number % 2] for number, name in enumerate(FLAT)}
NUMBERS = {name: 3 + number % 2 for number, name in enumerate(FLAT)}
CATS = {"cat/c1.jpg": "cat", "cat/c2.jpg": "cat", "dog/d1.jpg": "dog", "dog/d2.png": "dog"}
BARE = {
    "numbers": ["0", "1", "2"],
    "scan.0": ["0", "1", "2", "scan.0", "scan.1", "scan.2"],
    "in a folder": [f"images/img.{n}" for n in range(6)],
}
SEVEN = {
    f"{kind}/x.{kind}": f"x.{kind}" for kind in ("jpg", "png", "gif", "webp", "bmp", "tif", "avif")
}
TWO = {name.rpartition("/")[2]: label for name, label in CATS.items()}


def labelled(
    name: str, content: str | bytes, *, names: list[str] = FLAT
) -> dict[str, bytes | None]:
    """Flat images and a labels file."""
    return {**images(*names), name: content.encode() if isinstance(content, str) else content}


def rows(line: str, labels: Mapping[str, object] = LETTERS, header: str = "") -> str:
    """A line for each image: {n} is its name, {s} its stem, {l} its label."""
    lines = [
        line.format(n=name, s=name.rpartition(".")[0], l=label) for name, label in labels.items()
    ]
    return "".join(f"{each}\n" for each in ([header] if header else []) + lines)


def array(*shape: int) -> bytes:
    """An .npy of images."""
    return saved(painted(*shape))


def saved(values: object) -> bytes:
    """An .npy of bytes."""
    return in_memory(lambda file: np.save(file, np.array(values, np.uint8)))


def painted(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Images of the colours that their names have as samples, channels last or first;
    zeros of any other shape.
    """
    found = np.zeros(shape, np.uint8)
    for number in range(shape[0] if len(shape) > 2 else 0):
        colours = np.array(colour(f"{number:06}.png"), np.uint8)
        found[number] = (
            colours[0] if len(shape) == 3 else colours if shape[3] == 3 else colours[:, None, None]
        )
    return found


def arrays(**shapes: tuple[int, ...]) -> bytes:
    """An .npz of several arrays."""
    return in_memory(
        lambda file: np.savez_compressed(
            file, **{name: painted(*shape) for name, shape in shapes.items()}
        )
    )


def web(*samples: str) -> bytes:
    """A WebDataset tar of "NAME LABEL"."""
    files = {}
    for sample in samples:
        name, label = sample.split()
        files |= {name: picture(name), f"{name.rpartition('.')[0]}.cls": label.encode()}
    return pack(files)


def framed(*names: str, words: bool = False) -> bytes:
    """A TFRecord file of Examples; the label is the name's number,
    or its last bit with a word of each sample.
    """
    parts: list[bytes] = []
    for name in names:
        values: dict[str, Feature | None] = {
            "image/encoded": BytesList((picture(name),)),
            "image/filename": BytesList((name.encode(),)),
            "image/class/label": Int64List((int(name[0]) % (2 if words else 10),)),
        }
        values |= {"image/class/text": BytesList((b"t" + name[:1].encode(),))} if words else {}
        data = encode_example(values)
        head, foot, _ = frame(data)
        parts += (head, data, foot)
    return b"".join(parts)


def parquet(
    *names: str,
    column: str = "image",
    label: str = "label",
    first: str = "cat",
    **more: list[object],
) -> bytes:
    """A file as Hugging Face's datasets write it;
    the label is 0 for odd names and 1 for even ones.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    images = [{"bytes": picture(name), "path": name} for name in names]
    values = {column: images} if column else {}
    values |= {label: [1 - int(name[0]) % 2 for name in names], **more}
    classes = {
        key: {"_type": "ClassLabel", "names": [first, "dog"]}
        for key in (label, "coarse")
        if key in values
    }
    metadata = {"huggingface": json.dumps({"info": {"features": classes}})}
    return in_memory(
        lambda file: pq.write_table(pa.table(values).replace_schema_metadata(metadata), file)
    )


def idx(*shape: int) -> bytes:
    """An IDX file."""
    return (
        bytes([0, 0, 8, len(shape)])
        + struct.pack(f">{len(shape)}I", *shape)
        + painted(*shape).tobytes()
    )


def zipped(content: bytes) -> bytes:
    """The same content, compressed by gzip."""
    return gzip.compress(content)


def batch(**labels: list[int]) -> bytes:
    """A pickle as CIFAR has it."""
    data = painted(len(next(iter(labels.values()))), 3, 32, 32).reshape(-1, 3072)
    return pickle.dumps({"data": data, "filenames": ["x"] * len(data), **labels}, 2)


def _of_bytes(content: bytes) -> bytes:
    """The pickle with names of bytes, as Python 3 reads those of Python 2."""
    return pickle.dumps({name.encode(): value for name, value in pickle.loads(content).items()}, 2)


def taken(
    files: Mapping[str, bytes | None], *said: str, structure: str | None = None, **right: Labels
) -> Made:
    """A folder that init takes, with the labels of each split."""
    return Made(files, right, structure=structure, said=said)


def refused(files: Mapping[str, bytes | None], *parts: str, structure: str | None = None) -> Made:
    """A folder that init refuses."""
    return Made(files, refused=parts, structure=structure)


def _pictures(*names: str) -> dict[str, bytes]:
    return {name: picture(name) for name in names}


def _annotated() -> dict[str, bytes | None]:
    value = {
        "images": [{"file_name": "0.jpg", "id": 1}],
        "annotations": [{"image_id": 1}],
        "categories": [],
    }
    return {
        **images(*(f"images/{name}" for name in FLAT)),
        "annotations/instances.json": json.dumps(value).encode(),
    }


HEAD = "file,label"
CSV = rows("{n},{l}", header=HEAD)
NONE = dict.fromkeys(FLAT)
NESTED = [f"{place}/{name}" for place in ("x", "y") for name in FLAT]
DEEP = ["animals/cats/tabby/1.jpg", "animals/dogs/pug/2.jpg", "plants/rose/3.jpg"]
WNIDS = {
    "n00000001.tar": ["n00000001_1.JPEG", "n00000001_2.JPEG"],
    "n00000002.tar": ["n00000002_1.JPEG"],
}
WHOLE = {name: name.partition("_")[0] for names in WNIDS.values() for name in names}
TARS = {name: pack(_pictures(*names)) for name, names in WNIDS.items()}
SPLIT = [
    "train/cat/a1.jpg",
    "train/dog/a2.jpg",
    "train/dog/a3.jpg",
    "val/cat/b1.jpg",
    "val/dog/b2.jpg",
]
IN_SPLITS = {
    "train": {"a1.jpg": "cat", "a2.jpg": "dog", "a3.jpg": "dog"},
    "validation": {"b1.jpg": "cat", "b2.jpg": "dog"},
}
BY_SPLIT = images("train/1.jpg", "train/2.jpg", "val/3.jpg")
INNER = images(*(f"{split}/a/{n}/{split}{n}.jpg" for split in ("train", "val") for n in "xy"))
INNER_RIGHT = {
    "train": {"trainx.jpg": "x", "trainy.jpg": "y"},
    "validation": {"valx.jpg": "x", "valy.jpg": "y"},
}
TWELVE = {f"{number}/p{number}.jpg": None for number in range(12)}
TWELVE_RIGHT = {f"p{number}.jpg": number for number in range(12)}
HUB = {"train": ("1.jpg", "2.jpg", "3.png"), "test": ("4.jpg",)}
MEDICAL = arrays(
    **{
        f"{s}_{n}": (2, *r)
        for s in ("train", "val")
        for n, r in (("images", (8, 8, 3)), ("labels", (1,)))
    }
)
NPZ = arrays(x_train=(2, 8, 8), y_train=(2,), x_test=(1, 8, 8), y_test=(1,))
ZEROS = {"000000.png": 0, "000001.png": 0}
AMBIGUOUS = [f"{name}.tar" for name in ("part-1", "part-2")]
CONTRADICTING = {
    **images(*CATS),
    "l.csv": b"file,label\ncat/c1.jpg,x\ncat/c2.jpg,y\ndog/d1.jpg,x\ndog/d2.png,y\n",
}
A_LINE_EACH = labelled(
    "l.csv", f"{HEAD}\n" + "".join(f"{n},{each}\n" for n, own in SEVERAL.items() for each in own)
)
PAIRS = images("benign/0.png", "benign/0_mask.png", "normal/1.png", "normal/1_mask.png")
COLUMN = "l.csv names 6 of 6 images in its column `Id`; the column breed gives 2 classes"


def several(sign: str, line: str = "{n},{l}") -> dict[str, bytes | None]:
    """Flat images and a file of several labels of each."""
    return labelled("l.csv", rows(line, {n: sign.join(own) for n, own in SEVERAL.items()}, HEAD))


def below(folder: str, **more: bytes) -> dict[str, bytes | None]:
    """Flat images in a folder."""
    return {**images(*(f"{folder}/{name}" for name in FLAT)), **more}


def beside(name: str, content: bytes) -> dict[str, bytes | None]:
    """Flat images, and as many files of another name."""
    return images(*FLAT) | {name.format(number): content for number in range(6)}


def one_tar(*names: str, **more: bytes) -> dict[str, bytes | None]:
    """A tar of images and other members."""
    return {"0.tar": pack({**_pictures(*names), **more})}


def bare(names: list[str], **more: bytes) -> dict[str, bytes | None]:
    """Images without endings."""
    return {**{name: picture(name, "png") for name in names}, **more}


def last(names: list[str], label: str | None = None) -> dict[str, str | None]:
    """A label for each name without its folders."""
    return {name.rpartition("/")[2]: label for name in names}


CIFAR_RIGHT = {"train": {"000000.png": "cat", "000001.png": "dog"}, "test": {"000000.png": "dog"}}

EDGES = "file,class,xmin,ymin,xmax,ymax"
STEMS = rows("{s},{l}", header="id,label")
BOXES = rows("{n},{l},1,2,8,9", header=EDGES)
CSV_SPLITS: dict[str, Labels] = {"train": {"1.jpg": None, "2.jpg": None}, "test": {"3.jpg": None}}

FOLDERS: dict[str, Made] = {
    # class folders
    "class folders": taken(images(*CATS), "2 folders of files: cat, dog", train=TWO),
    "class folders two down": taken(images(*(f"data/set/{name}" for name in CATS)), train=TWO),
    "spaces": taken(
        images("big cat/a b.jpg", "dög/ü.jpg"), train={"a b.jpg": "big cat", "ü.jpg": "dög"}
    ),
    "numeric class folders": taken(TWELVE, "12 folders of files: 0, 1, 2", train=TWELVE_RIGHT),
    "padded numbers": taken(
        images("01/a.jpg", "2/b.jpg", "10/c.jpg"), train={"a.jpg": 1, "b.jpg": 2, "c.jpg": 3}
    ),
    "true and 1e3": taken(
        images("true/a.jpg", "1e3/b.jpg"), train={"a.jpg": "true", "b.jpg": "1e3"}
    ),
    "one class": refused(images("cat/1.jpg", "cat/2.jpg"), "--as class-folders", "--as unlabelled"),
    "one class, asked": taken(
        images("cat/1.jpg"), structure="class-folders", train={"1.jpg": "cat"}
    ),
    "one folder of images": taken(
        images("images/1.jpg", "images/2.jpg"), train={"1.jpg": None, "2.jpg": None}
    ),
    "nested class folders": refused(
        images("dog/husky/1.jpg", "dog/poodle/2.jpg", "cat/3.jpg"), "(classes: cat, "
    ),
    "nested class folders, their ways": refused(
        images(*DEEP), "--as inner-folders", "--as folder-paths"
    ),
    "nested class folders, by inner names": taken(
        images(*DEEP),
        "pug is 1, rose is 2, tabby is 3",
        structure="inner-folders",
        train={"1.jpg": "tabby", "2.jpg": "pug", "3.jpg": "rose"},
    ),
    "nested, by paths": taken(
        images(*DEEP), structure="folder-paths", train={name[-5:]: name[:-6] for name in DEEP}
    ),
    "nested class folders in splits, by inner names": taken(
        INNER, structure="inner-folders", **INNER_RIGHT
    ),
    "inner folders of one name": refused(
        images("a/x/1.jpg", "b/x/2.jpg"),
        *("a/x and b/x would be one class, x", "--as folder-paths"),
        structure="inner-folders",
    ),
    "nested class folders in a tar": refused(
        one_tar(*DEEP), "unpack, then run init again: tar -xf "
    ),
    "a loose file": refused(images(*CATS, "loose.jpg"), "loose.jpg is in no class folder"),
    "upper case endings": taken(images("a/1.JPG", "b/2.PNG"), train={"1.JPG": "a", "2.PNG": "b"}),
    "a text among classes": taken(
        {**images(*CATS), "README.md": b"hello"},
        "1 .md file, not read: README.md",
        train=TWO,
    ),
    "empty and hidden": taken(
        {**images(*CATS), ".DS_Store": b"x"}, "1 hidden file or folder: .DS_Store", train=TWO
    ),
    "hidden labels": taken(labelled(".labels.csv", CSV), "with .labels.csv", train=LETTERS),
    "seven formats": taken(images(*SEVEN), train={name: name[2:] for name in SEVEN.values()}),
    "a format that can't be read": refused(
        {**images(*CATS), "dog/x.heic": b"x"}, "1 .heic: dog/x.heic"
    ),
    "an image without an ending": taken(
        {**images(*CATS), "dog/x": picture("x", "jpeg")}, train={**TWO, "x": "dog"}
    ),
    "a GIF as .jpg": taken(
        {**images(*CATS), "dog/x.jpg": picture("x.jpg", "gif")}, train={**TWO, "x.jpg": "dog"}
    ),
    # splits
    "train and val": taken(images(*SPLIT), **IN_SPLITS),
    "train with classes, test without": taken(
        images(*SPLIT[:3], "test/1.jpg"),
        "test: 1 image without a class, left out",
        train=IN_SPLITS["train"],
    ),
    "train and val without classes": refused(
        images("train/1.jpg", "val/2.jpg"), "called as splits are"
    ),
    "splits and a labels file": taken(
        {**BY_SPLIT, "l.csv": b"path,label\ntrain/1.jpg,a\ntrain/2.jpg,b\nval/3.jpg,a\n"},
        "l.csv names 3 of 3 images in its column `path`",
        train={"1.jpg": "a", "2.jpg": "b"},
        validation={"3.jpg": "a"},
    ),
    # labels files that are used
    "csv": taken(
        labelled("labels.csv", CSV),
        "labels.csv names 6 of 6 images in its column `file`",
        train=LETTERS,
    ),
    "an unusual column": taken(
        labelled("l.csv", CSV.replace("file", "picture")), "column `picture`", train=LETTERS
    ),
    "a column of splits": taken(
        labelled(
            "l.csv", rows("{n},{l},train", header=f"{HEAD},subset").replace("train", "val", 1)
        ),
        "splits: train, val, by its column `subset`",
        train={name: label for name, label in LETTERS.items() if name != "0.jpg"},
        validation={"0.jpg": "a"},
    ),
    "a CSV of boxes": taken(
        labelled("l.csv", BOXES + rows("{n},dog,3,3,9,9")),
        "l.csv annotates 6 of 6 images: 12 boxes of 3",
        train=NONE,
    ),
    "a CSV of boxes, below a comment": taken(
        labelled("l.csv", f"# by hand\n{BOXES}"), "6 boxes of 2", train=NONE
    ),
    "a CSV of boxes, one each": taken(
        labelled("l.csv", BOXES), "6 boxes of 2 classes: a, b", train=NONE
    ),
    "two CSVs of boxes": taken(
        {
            **images("train/1.jpg", "train/2.jpg", "test/3.jpg"),
            **{
                f"{name}.csv": rows("{n},a,1,2,8,9", own, EDGES).encode()
                for name, own in CSV_SPLITS.items()
            },
        },
        "test.csv, train.csv annotate 3 of 3 images: 3 boxes of 1 class: a",
        **CSV_SPLITS,
    ),
    "two CSVs of boxes of the same images": refused(
        {**labelled("l.csv", BOXES), "m.csv": BOXES.encode()},
        "0.jpg is annotated in",
        "l.csv, line 2 too",
    ),
    "a CSV of boxes without classes": taken(
        labelled("l.csv", rows("{n},1,2,8,9", header="file,x1,y1,x2,y2")),
        "of 1 class: object",
        train=dict.fromkeys(LETTERS),
    ),
    "a CSV of boxes whose class is not known": refused(
        labelled("l.csv", rows("{n},1,2,8,9,7", header="file,x1,y1,x2,y2,kind")),
        "no column has a usual name of a class",
        "--as with-labels",
    ),
    "a CSV of boxes beside class folders": refused(
        {**images(*CATS), "l.csv": rows("{n},a,1,2,8,9", CATS, EDGES).encode()},
        "--as csv-boxes",
    ),
    "csv without a header": taken(labelled("labels.csv", rows("{n},{l}")), train=LETTERS),
    "semicolons": taken(labelled("labels.csv", CSV.replace(",", ";")), train=LETTERS),
    # several labels
    "several labels, semicolons": taken(several(";"), "several labels, with", train=SEVERAL),
    "several labels, bars": taken(several(" | "), "several labels, with", train=SEVERAL),
    "several labels, spaces": refused(several(" "), "--as several-labels", "--as with-labels"),
    "several labels, commas, asked": taken(
        several(",", '{n},"{l}"'), structure="several-labels", train=SEVERAL
    ),
    "several labels, a line for each": refused(
        A_LINE_EACH, "l.csv, line 3", "if an image has several labels", "--as several-labels"
    ),
    "several labels, a line for each, asked": taken(
        A_LINE_EACH, structure="several-labels", train=SEVERAL
    ),
    "several labels, lines that contradict each other": refused(
        labelled("l.csv", rows("{n},a,1", header=f"{HEAD},size") + "0.jpg,b,2\n"), "l.csv, line 8"
    ),
    "several labels, JSON lines": taken(
        labelled(
            "l.jsonl",
            "".join(json.dumps({"file": n, "label": own}) + "\n" for n, own in SEVERAL.items()),
        ),
        train=SEVERAL,
    ),
    "several labels, WebDataset": taken(
        one_tar(
            *FLAT,
            **{f"{n[0]}.json": json.dumps({"label": own}).encode() for n, own in SEVERAL.items()},
        ),
        train=SEVERAL,
    ),
    "a vector of zeros and ones": taken(
        labelled("l.jsonl", rows('{{"file": "{n}", "label": [0, {l}, 1, 1]}}', NUMBERS)), train=NONE
    ),
    "names of classes with commas": taken(
        labelled("l.csv", rows('{n},"{l}, {l}us"', LETTERS, HEAD)),
        train={name: f"{label}, {label}us" for name, label in LETTERS.items()},
    ),
    "tsv": taken(labelled("labels.tsv", CSV.replace(",", "\t")), train=LETTERS),
    "windows line ends": taken(labelled("labels.csv", CSV.replace("\n", "\r\n")), train=LETTERS),
    "json lines": taken(
        labelled("l.jsonl", rows('{{"file_name": "{n}", "label": "{l}"}}')), train=LETTERS
    ),
    "path:label": taken(labelled("labels.txt", rows("{n}:{l}", NUMBERS)), train=NUMBERS),
    "path label": taken(labelled("labels.txt", rows("{n} {l}", NUMBERS)), train=NUMBERS),
    "comments": taken(
        labelled("labels.csv", "# made by hand\n" + CSV + "# the end\n"), train=LETTERS
    ),
    "a byte order mark": taken(labelled("labels.csv", CSV.encode("utf-8-sig")), train=LETTERS),
    "UTF-16": taken(labelled("labels.csv", CSV.encode("utf-16")), train=LETTERS),
    "absolute paths": taken(
        labelled("labels.csv", rows("{{home}}/{n},{l}", header=HEAD)), train=LETTERS
    ),
    "windows paths": taken(labelled("l.csv", rows(r"D:\set\{n},{l}", header=HEAD)), train=LETTERS),
    "another letter case": taken(labelled("l.csv", CSV.replace("jpg", "JPG")), train=LETTERS),
    "a labels file in a folder": taken(
        below("imgs", **{"meta/l.csv": CSV.encode()}), train=LETTERS
    ),
    "labels as folders": taken(
        {**images(*CATS), "l.csv": rows("{n},{l}", CATS, HEAD).encode()}, train=TWO
    ),
    # labels files next to the folder
    "bare names next to it": taken(
        labelled("../labels.csv", CSV), "../labels.csv names 6 of 6 images", train=LETTERS
    ),
    "paths in it, from next to it": taken(
        below("x", **{"../l.csv": rows("x/{n},{l}", header="path,label").encode()}),
        *("../l.csv names 6 of 6 images",),
        train=LETTERS,
    ),
    "paths in it, from next to it, which end the names of others too": refused(
        below("x", **{"../l.csv": rows("x/{n},{l}", header="path,label").encode()})
        | {f"y/x/{number}.jpg": None for number in range(6)},
        *("l.csv has paths from within", "such as x/0.jpg", "move it into"),
    ),
    "bare names of files in folders, next to it": taken(
        below("x", **{"../l.csv": CSV.encode()}), train=LETTERS
    ),
    "labels of the folder beside": taken(
        labelled("../other.csv", CSV) | {"../other/0.jpg": None},
        "6 images without a class",
        train=NONE,
    ),
    "few of the names next to it": taken(
        labelled("../l.csv", b"file,label\n0.jpg,a\n"), train=NONE
    ),
    # headers
    "capital letters": taken(
        labelled("l.csv", CSV.replace("file,label", "File,Label")), train=LETTERS
    ),
    "a capital number with a fraction": taken(
        labelled("l.csv", rows("{n},0.5", header="File,Label")), train=NONE
    ),
    "csv without a header, label first": taken(
        labelled("labels.csv", rows("{l},{n}")), train=LETTERS
    ),
    "csv without a header, a number first": taken(
        labelled("labels.csv", rows("7,{n},{l}")), train=LETTERS
    ),
    "a column of another name": taken(
        labelled("l.csv", CSV.replace("file,label", "Id,breed")), COLUMN, train=LETTERS
    ),
    "no column of labels": taken(
        labelled("l.csv", rows("{n},{l}", dict.fromkeys(FLAT, "8"), "file,width")),
        "no class: ",
        train=NONE,
    ),
    "a column of tags": taken(
        labelled(
            "l.csv", rows("{n},{l}", {n: "|".join(own) for n, own in SEVERAL.items()}, "file,tags")
        ),
        "several labels, with '|' between them: a, b, c",
        train=SEVERAL,
    ),
    # labels files that are refused, with the line
    "a repeated line": taken(labelled("l.csv", CSV + "0.jpg,a\n"), train=LETTERS),
    "a line that contradicts another": refused(
        labelled("l.csv", CSV + "0.jpg,b\n"), "line 8", "is in line 2 already"
    ),
    "a ragged line": refused(
        labelled("l.csv", CSV + "0.jpg,a,b\n"), "l.csv, line 8", "2 columns expected, 3 found"
    ),
    "a bad line": refused(
        labelled("l.txt", rows("{n}:{l}") + "and more\n"), "l.txt, line 7", "expected path:label"
    ),
    "Latin-1": refused(
        labelled("l.csv", CSV.encode() + b"x.jpg,\xe9\n"), "l.csv, line 8", "not UTF-8"
    ),
    "half of the images": refused(
        labelled("l.csv", CSV[:-18]), "names 4 of 6 images", "--as with-labels"
    ),
    "files that are not there": refused(
        labelled("l.csv", CSV + "7.jpg,a\n"), "7.jpg in line 8", "--as with-labels"
    ),
    "no label": refused(
        labelled("l.csv", CSV.replace("0.jpg,a", "0.jpg,")), "a label: line 2", "--as with-labels"
    ),
    "an index of pandas": taken(
        labelled("l.csv", "\n".join(f"{n or ''},{line}" for n, line in enumerate(CSV.split()))),
        train=LETTERS,
    ),
    "no endings": taken(
        labelled("l.csv", STEMS), "l.csv names 6 of 6 images in its column `id`", train=LETTERS
    ),
    "no endings, and too few": refused(
        labelled("l.csv", STEMS, names=[*FLAT, "6.jpg"]), ", and not 6.jpg"
    ),
    "no endings, and too many": refused(
        labelled("l.csv", STEMS, names=FLAT[1:]), "1 path leads to no image"
    ),
    "no endings, two of a name": refused(
        {**images("0.png"), **labelled("l.csv", STEMS)}, ", and not 0."
    ),
    "no endings, a list of classes": refused(
        labelled("l.csv", "0,cat\n1,dog\n", names=FLAT[:2]), "init finds no labels in it"
    ),
    "with labels, none": refused(
        images(*FLAT),
        "data holds no file that names at least half of its images",
        structure="with-labels",
    ),
    "ambiguous names": refused(
        {**images(*NESTED), "l.csv": CSV.encode()}, "line 2: 0.jpg may be x/0.jpg or y/0.jpg"
    ),
    "two labels files": refused(
        labelled("l.csv", CSV) | {"m.csv": CSV.replace(",a", ",b", 1).encode()},
        "--label l.csv:label",
        "--label m.csv:label",
    ),
    "labels that contradict folders": refused(
        CONTRADICTING, "--as class-folders", "--as with-labels"
    ),
    "labels that contradict folders, asked": taken(
        CONTRADICTING,
        structure="with-labels",
        train={"c1.jpg": "x", "c2.jpg": "y", "d1.jpg": "x", "d2.png": "y"},
    ),
    "labels in order": refused(
        labelled("l.csv", "label\n" + "a\n" * 6), "l.csv may label the images"
    ),
    "a JSON of paths": taken(
        labelled("l.json", json.dumps(LETTERS)), "l.json names 6 of 6 images", train=LETTERS
    ),
    "a JSON that names all": refused(
        labelled("l.json", json.dumps({"a": {"b": FLAT}})), "has the names of at least half"
    ),
    "labels in a file of another ending": refused(
        labelled("labels.dat", rows("{n} {l}")),
        "labels.dat has the names of at least half of the images",
        "--as unlabelled",
    ),
    "a page that shows the images of class folders": taken(
        {**images(*CATS), "index.html": rows("<img src={n}>", CATS).encode()},
        "1 .html file, not read: index.html",
        train=TWO,
    ),
    "labels in a spreadsheet": refused(
        labelled("l.xlsx", b"PK\3\4" + bytes(40)), "l.xlsx may label the images"
    ),
    "path label with spaces in names": taken(
        images("a b.jpg", "c d.jpg") | {"l.txt": b"a b.jpg 3\nc d.jpg 4\n"},
        train={"a b.jpg": 3, "c d.jpg": 4},
    ),
    "labels beside a mask": refused(PAIRS, "can be read in 2 ways: "),
    "a tar beside a folder of images": refused(
        {**images(*CATS), "x/y.tar": TARS["n00000001.tar"]}, "x/y.tar"
    ),
    "a damaged tar": refused({"a.tar": TARS["n00000001.tar"][:600]}, "a.tar is damaged"),
    "a float label": taken(
        labelled(
            "l.csv", rows("{n},{l}", {name: number / 4 for number, name in enumerate(FLAT)}, HEAD)
        ),
        train=NONE,
    ),
    "no labels": taken(images(*FLAT), train=NONE),
    # annotations
    "COCO without sizes": refused(
        _annotated(), "annotations/instances.json: images[0]: the key width is missing"
    ),
    "YOLO without names": refused(
        beside("{}.txt", b"0 0.5 0.5 0.2 0.2\n"), "each class gets its number as its name"
    ),
    "masks beside their images": taken(
        below("img", **{f"img/{n}_seg.png": picture("x.png") for n in range(6)}),
        "has masks of 6 of 6 images",
        train=NONE,
    ),
    **{
        f"no endings, {what}": taken(bare(names), train=last(names)) for what, names in BARE.items()
    },
    **{
        f"no endings and labels.csv, {what}": taken(
            bare(
                names,
                **{"labels.csv": rows("{n},a", dict.fromkeys(names), "filename,label").encode()},
            ),
            train=last(names, "a"),
        )
        for what, names in BARE.items()
    },
    "LabelMe": refused(
        beside("{}.json", b'{"shapes": [{}], "imagePath": "x"}'), "the key label is missing"
    ),
    "captions": refused(beside("{}.txt", b"a cat"), ".txt files of the same names as images"),
    # tars
    "tars of class folders": taken(one_tar(*CATS), train=TWO),
    "a tar a split": taken(
        {
            "train.tar": pack(_pictures(*CATS)),
            "val.tar": pack(_pictures("cat/c9.jpg", "dog/d1.jpg")),
        },
        "the tars are the splits: train, val",
        train=TWO,
        validation={"c9.jpg": "cat", "d1.jpg": "dog"},
    ),
    "a tar a split, with the folders of the splits": taken(
        {
            f"{n}.tar": pack(_pictures(f"{n}/cat/{n}1.jpg", f"{n}/dog/{n}2.jpg"))
            for n in ("train", "val")
        },
        train={"train1.jpg": "cat", "train2.jpg": "dog"},
        validation={"val1.jpg": "cat", "val2.jpg": "dog"},
    ),
    "a tar a split, without folders": refused(
        {f"{name}.tar": pack(_pictures(f"{name}.jpg")) for name in ("train", "val")}, "--as"
    ),
    "a tar without folders": taken(one_tar(*FLAT), train=NONE),
    "cat and dog": refused(
        {f"{n}.tar": pack(_pictures(f"{n}1.jpg")) for n in ("cat", "dog")}, "--as class-tars"
    ),
    "cat.tar and dog.tar, asked": taken(
        {f"{n}.tar": pack(_pictures("1.jpg")) for n in ("cat", "dog")},
        structure="class-tars",
        train={"1.jpg": None},
    ),
    "numbered tars": taken(
        {name: pack(_pictures(f"{name}.jpg")) for name in AMBIGUOUS},
        train={f"{name}.jpg": None for name in AMBIGUOUS},
    ),
    "winter21": taken(TARS, train=WHOLE),
    "fall11": taken({"fall11_whole.tar": pack(TARS)}, train=WHOLE),
    "WebDataset": taken(
        {"0.tar": web("1.jpg 3", "2.png 4"), "1.tar": web("3.jpg 3", "4.webp 4")},
        "2 webdataset files with 4 samples",
        train={"1.jpg": 3, "2.png": 4, "3.jpg": 3, "4.webp": 4},
    ),
    "a gap in the numbers of WebDataset": taken(
        {f"s-{number:03}.tar": web(f"{number}.jpg {number}") for number in (0, 1, 3)},
        "missing, by the numbers of the others: s-002.tar",
        train={"0.jpg": 0, "1.jpg": 1, "3.jpg": 3},
    ),
    "WebDataset of a day": taken({"s-20231126093000123.tar": web("1.jpg 3")}, train={"1.jpg": 3}),
    "an empty class tar": taken(
        {**TARS, "n00000003.tar": pack({})}, "1 empty tar: n00000003.tar", train=WHOLE
    ),
    "WebDataset with masks": taken(
        one_tar("1.jpg", **{"1.cls": b"5", "1.seg.png": picture("x.png")}),
        "1 .seg.png in tars: not read",
        train={"1.jpg": 5},
    ),
    "WebDataset with capital endings": taken(
        one_tar("v1.0/1.JPG", "v1.0/2.JPG", **{"v1.0/1.CLS": b"3", "v1.0/2.CLS": b"4"}),
        train={"1.JPG": 3, "2.JPG": 4},
    ),
    "two images of a key": refused(
        one_tar("1.jpg", "1.JPG", **{"1.cls": b"3"}), "0.tar has both 1.JPG and 1.jpg"
    ),
    "dots in keys": refused(
        one_tar("a.b.jpg", **{"a.b.cls": b"3"}),
        "has a name of an image with several dots: a.b.jpg",
        "rename it in the tar: a_b.jpg",
    ),
    "WebDataset by split": taken(
        {
            f"{name}-00{number}.tar": web(f"{name}{number}.jpg cat")
            for name in ("train", "val")
            for number in (0, 1)
        },
        train={"train0.jpg": "cat", "train1.jpg": "cat"},
        validation={"val0.jpg": "cat", "val1.jpg": "cat"},
    ),
    "WebDataset with captions": taken(
        one_tar("1.jpg", "2.jpg", **{"1.txt": b"a cat", "2.txt": b"a dog"}),
        train={"1.jpg": None, "2.jpg": None},
    ),
    "WebDataset with JSON": taken(
        one_tar(
            "1.jpg", "2.jpg", **{f"{n}.json": b'{"label": %d, "more": {}}' % n for n in (1, 2)}
        ),
        "more: not read",
        train={"1.jpg": 1, "2.jpg": 2},
    ),
    "no label of a key": refused(
        one_tar("1.jpg", "2.jpg", **{"1.cls": b"0"}), "0/2.jpg has no label in cls", "--label cls"
    ),
    "no image of a key": refused(
        one_tar("1.jpg", **{"1.cls": b"0", "2.cls": b"0"}),
        "has no image for 2.cls",
        "add the image (jpg, ",
    ),
    "TFRecords with a word of each sample": taken(
        {"a.tfrecord": framed("1.jpg", "2.jpg", "3.jpg", words=True)},
        train={"1.jpg": 1, "2.jpg": 0, "3.jpg": 1},
    ),
    "one shard of three, parquet": refused(
        {"data/train-00000-of-00003.parquet": parquet("1.jpg", "2.jpg")},
        "data/train-00001-of-00003.parquet, data/train-00002-of-00003.parquet",
    ),
    "one shard of two, WebDataset": refused(
        {"a-00000-of-00002.tar": web("1.jpg 3")}, "a-00001-of-00002.tar"
    ),
    "TFRecords by split": taken(
        {"a-train.tfrecord": framed("1.jpg", "2.jpg"), "a-test.tfrecord": framed("3.png")},
        train={"1.jpg": 1, "2.jpg": 2},
        test={"3.png": 3},
    ),
    "a cut TFRecord": refused(
        {"a.tfrecord": framed("1.jpg", "2.jpg")[:-5]}, "a.tfrecord can't be read: record 1"
    ),
    "parquet": taken(
        {f"data/{split}-00000-of-00001.parquet": parquet(*names) for split, names in HUB.items()},
        "cat is 0, dog is 1",
        train={"1.jpg": "cat", "2.jpg": "dog", "3.png": "cat"},
        test={"4.jpg": "dog"},
    ),
    "parquet with other columns": taken(
        {"a.parquet": parquet("1.jpg", "2.jpg", column="img", label="fine", caption=["a", "b"])},
        train={"1.jpg": "cat", "2.jpg": "dog"},
    ),
    "parquet with two labels": refused(
        {"a.parquet": parquet("1.jpg", "2.jpg", label="fine", coarse=[0, 1])},
        "labels in fine and in coarse",
    ),
    "parquet of numbers": refused(
        {"a.parquet": parquet("1.jpg", column="")}, "a.parquet has no column of images"
    ),
    "images outside of tars": refused(
        {**images(*CATS), "more.tar": TARS["n00000001.tar"]}, "1 tar that would not be"
    ),
    "a zip beside images": refused({**images(*CATS), "more.zip": b"PK\3\4"}, "more.zip", "unpack"),
    # arrays
    "arrays in class folders": taken(
        {"a/1.npy": array(2), "b/2.npy": array(2)}, train={"1.npy": 0, "2.npy": 1}
    ),
    "X and y": taken(
        {"X_train.npy": array(3, 8, 8), "y_train.npy": saved([7, 8, 7])},
        train={"000000.png": 7, "000001.png": 8, "000002.png": 7},
    ),
    "X and y of numbers": taken(
        {"X_train.npy": array(2, 4), "y_train.npy": array(2)},
        train={"000000.npy": 0, "000001.npy": 0},
    ),
    "an npz of four": taken({"mnist.npz": NPZ}, train=ZEROS, test={"000000.png": 0}),
    "MedMNIST": taken({"p.npz": MEDICAL}, train=ZEROS, validation=ZEROS),
    "MNIST": taken(
        {
            **{"train-images-idx3-ubyte": idx(2, 8, 8), "train-labels-idx1-ubyte": idx(2)},
            **{
                "t10k-images-idx3-ubyte.gz": zipped(idx(1, 8, 8)),
                "t10k-labels-idx1-ubyte.gz": zipped(idx(1)),
            },
        },
        train=ZEROS,
        test={"000000.png": 0},
    ),
    "CIFAR with keys of bytes": taken(
        {
            "data_batch_1": _of_bytes(batch(labels=[0, 1])),
            "test_batch": _of_bytes(batch(labels=[1])),
            "batches.meta": pickle.dumps({b"label_names": [b"cat", b"dog"], b"num_vis": 3072}, 2),
        },
        "cat is 0, dog is 1",
        **CIFAR_RIGHT,
    ),
    "CIFAR-100": taken(
        {
            "train": batch(fine_labels=[0, 1], coarse_labels=[1, 1]),
            "meta": pickle.dumps(
                {"fine_label_names": ["cat", "dog"], "coarse_label_names": ["a", "b"]}, 2
            ),
        },
        train=CIFAR_RIGHT["train"],
    ),
    "a pickle that runs code": refused(
        {"data_batch_1": pickle.dumps(print)}, "requires builtins.print"
    ),
    "few labels": refused(
        {"x_train.npy": array(6, 8, 8), "y_train.npy": array(5)},
        "x_train of shape 6 x 8 x 8",
        "y_train of shape 5",
    ),
    "a cut npz": refused({"mnist.npz": NPZ[:-30]}, "mnist.npz"),
    "images beside arrays": refused(
        beside("{}.npy", array(3)), "6 .npy next to 6 images", "--as unlabelled"
    ),
    "images beside arrays, asked": taken(
        beside("{}.npy", array(3)),
        "(left out, as --as unlabelled says)",
        structure="unlabelled",
        train=NONE,
    ),
    "nothing": refused({"a.md": b"x"}, "nothing to make records of"),
}
"""Folders by what they are."""
