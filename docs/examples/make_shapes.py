"""Draws a small set of circles and squares, annotated as COCO does, into the folder shapes."""

import json
import random
from pathlib import Path

from PIL import Image, ImageDraw

CLASSES = {1: "circle", 2: "square"}


def draw(path, number):
    """Draw one to three shapes; return the class and the box of each.

    Boxes are x, y, width and height in pixels.
    """
    dice, objects = random.Random(number), []
    image = Image.new("RGB", (128, 128), tuple(dice.choices(range(100), k=3)))
    canvas = ImageDraw.Draw(image)
    for left, top in dice.sample([(0, 0), (64, 0), (0, 64), (64, 64)], dice.randint(1, 3)):
        shape, side = dice.choice([*CLASSES]), dice.randint(24, 56)
        x, y = left + dice.randint(0, 63 - side), top + dice.randint(0, 63 - side)
        paint = canvas.ellipse if shape == 1 else canvas.rectangle
        paint((x, y, x + side - 1, y + side - 1), tuple(dice.choices(range(150, 256), k=3)))
        objects.append((shape, [x, y, side, side]))
    image.save(path)
    return objects


def make(split, numbers):
    """Make shapes/SPLIT, and its annotations."""
    Path(f"shapes/{split}").mkdir(parents=True)
    images, annotations = [], []
    for number in numbers:
        name = f"{number:06}.jpg"
        images.append({"id": number, "file_name": name, "width": 128, "height": 128})
        for shape, box in draw(f"shapes/{split}/{name}", number):
            one = {"id": len(annotations) + 1, "image_id": number, "category_id": shape}
            annotations.append({**one, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
    categories = [{"id": shape, "name": name} for shape, name in CLASSES.items()]
    content = {"images": images, "annotations": annotations, "categories": categories}
    Path(f"shapes/instances_{split}.json").write_text(json.dumps(content))


make("train", range(1, 301))
make("validation", range(301, 361))
