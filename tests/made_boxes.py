"""Sets with boxes: photographs with annotations of COCO, Pascal VOC,
YOLO or CSV, as their tools write them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from made_tars import in_memory, save
from PIL import Image

NAMES = ("person", "dog", "traffic light")
IDS = {"person": 1, "dog": 18, "traffic light": 10}
POINTS = ["nose", "tail"]


def photograph(
    width: int, height: int, seed: int = 0, orientation: int = 1, form: str = "JPEG"
) -> bytes:
    """A smooth picture of this size, with the EXIF orientation."""
    rows, columns = np.mgrid[0:height, 0:width]
    levels = np.stack(
        [columns * 255 // width, rows * 255 // height, (rows + columns + seed * 40) % 256], axis=2
    )
    tags = Image.Exif()
    tags[0x0112] = orientation
    return in_memory(
        lambda file: Image.fromarray(levels.astype(np.uint8)).save(file, form, exif=tags)
    )


def objects(
    count: int, width: int, height: int, draw: random.Random
) -> list[tuple[str, float, float, float, float]]:
    """Class, x, y, width and height in pixels of some objects."""
    found = []
    for _ in range(count):
        x, y = draw.randrange(width - 8), draw.randrange(height - 8)
        found.append(
            (draw.choice(NAMES), x, y, draw.randint(2, width - x), draw.randint(2, height - y))
        )
    return found


def coco_set(
    folder: Path, count: int = 6, split: str = "train2017", *, points: bool = False
) -> dict[str, Any]:
    """Photographs in folder/split and folder/annotations/instances_split.json;
    returns the content of the latter.
    """
    draw = random.Random(split)
    images, annotations = [], []
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        image = {
            "id": 3 + number * 7,
            "file_name": f"{split}_{number:06d}.jpg",
            "width": width,
            "height": height,
        }
        images.append(image)
        save(folder / split / str(image["file_name"]), photograph(width, height, number))
        for name, x, y, w, h in objects(number % 4, width, height, draw):
            area, crowd = round(w * h * 0.7, 2), draw.randint(0, 1)
            each: dict[str, Any] = {
                "id": len(annotations) + 1,
                "image_id": image["id"],
                "category_id": IDS[name],
            }
            each |= {"bbox": [x + 0.25, y + 0.5, w - 0.75, h - 1], "area": area, "iscrowd": crowd}
            if points and name == "dog":
                each |= {"keypoints": [x + 1, y + 2, 2, 0, 0, 0], "num_keypoints": 1}
            annotations.append(each)
    categories = [{"id": number, "name": name} for name, number in IDS.items()]
    for each in categories if points else ():
        each |= {"keypoints": POINTS} if each["name"] == "dog" else {}
    value = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
    save(folder / f"annotations/instances_{split}.json", json.dumps(value))
    return value


VOC_OBJECT = """<object><name>{0}</name><pose>{5}</pose><truncated>{6}</truncated><difficult>{7}</difficult>
<bndbox><xmin>{1}</xmin><ymin>{2}</ymin><xmax>{3}</xmax><ymax>{4}</ymax></bndbox>
<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part></object>"""


def voc_xml(width: int, height: int, inside: str) -> str:
    """An annotation, whose <filename> is of no use."""
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation><filename>%s</filename>{size}<segmented>0</segmented>{inside}</annotation>"


def voc_set(folder: Path, count: int = 6) -> None:
    """JPEGImages, Annotations, and masks of the first two in SegmentationClass."""
    draw = random.Random("voc")
    for number in range(count):
        width, height, stem = draw.randint(40, 90), draw.randint(40, 90), f"2007_{number:06d}"
        save(folder / f"JPEGImages/{stem}.jpg", photograph(width, height, number))
        found = objects(1 + number % 4, width, height, draw)
        flags = [
            (draw.choice(("Left", "Unspecified")), draw.randint(0, 1), draw.randint(0, 1))
            for _ in found
        ]
        inside = [
            VOC_OBJECT.format(name, x + 1, y + 1, x + w, y + h, *flag)
            for (name, x, y, w, h), flag in zip(found, flags, strict=True)
        ]
        save(folder / f"Annotations/{stem}.xml", voc_xml(width, height, "".join(inside)))
        if number < 2:
            save(folder / f"SegmentationClass/{stem}.png", mask(width, height))


def mask(width: int, height: int, mode: str = "P") -> bytes:
    """A mask: 0, a class, and 255 at a border; with a palette for P."""
    values = np.zeros((height, width), np.uint8)
    values[height // 4 : height // 2, width // 3 :] = 7
    values[0] = 255
    image = Image.fromarray(values)
    if mode == "P":
        image.putpalette(
            [level for colour in range(256) for level in (colour, colour // 2, 255 - colour)]
        )
    elif mode != "L":
        image = (
            Image.fromarray(values.astype(np.uint16) * 257)
            if mode == "I;16"
            else image.convert(mode)
        )
    return in_memory(lambda file: image.save(file, "PNG"))


def yolo_set(folder: Path, count: int = 6) -> None:
    """images and labels, with data.yaml; the last image has no labels."""
    draw = random.Random("yolo")
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        save(folder / f"images/train/{number}.jpg", photograph(width, height, number))
        a, b = 1 / width, 1 / height
        lines = [
            (
                f"{NAMES.index(name)} {(x + w / 2) * a:.6f} {(y + h / 2) * b:.6f} {w * a:.6f} "
                f"{h * b:.6f}\n"
            )
            for name, x, y, w, h in objects(1 + number % 4, width, height, draw)
        ]
        if number < count - 1:
            save(folder / f"labels/train/{number}.txt", "".join(lines))
    save(
        folder / "data.yaml",
        "path: .\ntrain: images/train\nnc: 3\nnames: [person, dog, traffic light]\n",
    )
