"""Sets with masks: polygons and runs of COCO, YOLO's polygons, panoptic PNGs, folders of masks;
all drawn by a seed.
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from made_boxes import IDS, NAMES, mask, photograph
from made_tars import in_memory, save
from PIL import Image

Polygon = list[float]


def star(draw: random.Random, width: int, height: int) -> Polygon:
    """The corners of a star somewhere in an image: x, y, x, y, ..., with halves of a pixel."""
    x, y = draw.uniform(8, width - 8), draw.uniform(8, height - 8)
    points = []
    for corner in range(draw.randint(3, 9)):
        angle, length = corner * 0.698, draw.uniform(3, 12)
        points += [
            min(max(x + length * np.cos(angle), 0), width),
            min(max(y + length * np.sin(angle), 0), height),
        ]
    return [round(2 * float(value)) / 2 for value in points]


def column_runs(pixels: np.ndarray) -> list[int]:
    """COCO's runs of a mask, as its page says: column by column, zeros first."""
    values = pixels.flatten("F").tolist()
    runs, current = [0], 0
    for value in values:
        if value != current:
            runs.append(0)
            current = value
        runs[-1] += 1
    return runs


def box_around(polygons: list[Polygon]) -> list[float]:
    """x, y, width and height of the box around polygons."""
    xs = [x for polygon in polygons for x in polygon[::2]]
    ys = [y for polygon in polygons for y in polygon[1::2]]
    return [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]


def coco_outlines(
    folder: Path, count: int = 50, *, form: str = "JPEG", orientation: int = 1
) -> dict[str, Any]:
    """Photographs in train2017, and instances_train2017.json:
    polygons, and crowds as runs, plain and compressed.
    """
    from pycocotools import mask as coco_masks

    draw = random.Random("outlines")
    images, annotations = [], []
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        image = {
            "id": 3 + number * 7,
            "file_name": f"{number:06d}.{form.lower()}",
            "width": width,
            "height": height,
        }
        images.append(image)
        save(
            folder / f"train2017/{image['file_name']}",
            photograph(width, height, number, orientation, form),
        )
        for place in range(number % 5):
            polygons = [star(draw, width, height) for _ in range(draw.randint(1, 3))]
            each: dict[str, Any] = {
                "id": len(annotations) + 1,
                "image_id": image["id"],
                "iscrowd": 0,
            }
            each |= {
                "category_id": IDS[draw.choice(NAMES)],
                "bbox": box_around(polygons),
                "segmentation": polygons,
            }
            if place == 3:
                runs = coco_masks.merge(coco_masks.frPyObjects(polygons, height, width))
                pixels = coco_masks.decode(runs)
                counts: Any = runs["counts"].decode() if number % 2 else column_runs(pixels)
                each |= {"iscrowd": 1, "segmentation": {"size": [height, width], "counts": counts}}
                each["bbox"] = [float(value) for value in coco_masks.toBbox(runs)]
            annotations.append({**each, "area": 1.5})
    categories = [{"id": number, "name": name} for name, number in IDS.items()]
    value = {"images": images, "annotations": annotations, "categories": categories}
    save(folder / "annotations/instances_train2017.json", json.dumps(value))
    return value


def yolo_outlines(
    folder: Path, count: int = 50
) -> dict[str, tuple[tuple[int, int], list[tuple[int, Polygon]]]]:
    """Images and labels with a polygon a line; the size of each image,
    and class and relative polygon of its lines.
    """
    draw = random.Random("yolo outlines")
    known = {}
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        save(folder / f"images/train/{number}.jpg", photograph(width, height, number))
        objects = []
        for _ in range(1 + number % 4):
            polygon = star(draw, width, height)
            relative = [
                round(value / (height if place % 2 else width), 6)
                for place, value in enumerate(polygon)
            ]
            objects.append((draw.randrange(3), relative))
        lines = [f"{label} {' '.join(map(str, polygon))}\n" for label, polygon in objects]
        save(folder / f"labels/train/{number}.txt", "".join(lines))
        known[f"{number}.jpg"] = (width, height), objects
    save(
        folder / "data.yaml",
        "path: .\ntrain: images/train\nnc: 3\nnames: [person, dog, traffic light]\n",
    )
    return known


def panoptic_set(
    folder: Path, count: int = 50
) -> dict[str, tuple[np.ndarray, list[dict[str, Any]]]]:
    """val2017, panoptic_val2017.json and its PNGs;
    the number of each pixel and the segments of each image.
    """
    draw = random.Random("panoptic")
    known, images, annotations = {}, [], []
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        name = f"{number:012d}"
        save(folder / f"val2017/{name}.jpg", photograph(width, height, number))
        images.append({"id": number, "file_name": f"{name}.jpg", "width": width, "height": height})
        numbers, segments = np.zeros((height, width), np.int64), []
        for place in range(1 + number % 4):
            segment = draw.randint(1, (1 << 24) - 1)
            x, y = 5 + 8 * place, 3 + 6 * place
            numbers[y : y + 20, x : x + 14] = segment
            bbox = [x, y, min(14, width - x), min(20, height - y)]
            category = IDS[NAMES[place % 3]]
            segments.append(
                {
                    "id": segment,
                    "category_id": category,
                    "iscrowd": place % 2,
                    "bbox": bbox,
                    "area": 9,
                }
            )
        colours = np.stack([numbers & 255, numbers >> 8 & 255, numbers >> 16], axis=2).astype(
            np.uint8
        )
        save(folder / f"annotations/panoptic_val2017/{name}.png", png(colours))
        annotations.append(
            {"image_id": number, "file_name": f"{name}.png", "segments_info": segments}
        )
        known[f"{name}.jpg"] = numbers, segments
    categories = [
        {"id": number, "name": name, "isthing": number % 2} for name, number in IDS.items()
    ]
    value = {"images": images, "annotations": annotations, "categories": categories}
    save(folder / "annotations/panoptic_val2017.json", json.dumps(value))
    return known


def png(values: np.ndarray, form: str = "PNG") -> bytes:
    """An image of these values."""
    return in_memory(lambda file: Image.fromarray(values).save(file, form))


def pixels_of(data: bytes) -> np.ndarray:
    """The values of a PNG."""
    with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
        return np.asarray(image)


def mask_folders(folder: Path, image: str, mask_path: str, count: int = 50) -> dict[str, bytes]:
    """Images and masks by the patterns of their paths;
    the bytes of the mask of each image, by the image's path.
    """
    draw = random.Random("folders")
    known = {}
    for number in range(count):
        width, height = draw.randint(40, 90), draw.randint(40, 90)
        data = mask(width, height, "P" if number % 2 else "L")
        form = Path(mask_path).suffix[1:].upper().replace("TIF", "TIFF")
        if form != "PNG":
            data = _saved_as(data, form)
        save(folder / image.format(number), photograph(width, height, number, form=_form(image)))
        save(folder / mask_path.format(number), data)
        known[image.format(number)] = data
    return known


def _form(path: str) -> str:
    return "PNG" if path.endswith(".png") else "JPEG"


def _saved_as(data: bytes, form: str) -> bytes:
    """An image in another format."""
    with Image.open(io.BytesIO(data)) as image:
        return in_memory(lambda file: image.save(file, form))
