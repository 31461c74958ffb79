"""Sets that exporters and their readers find awkward, and what each of their records holds."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from made_boxes import photograph
from made_sets import ENGINE
from made_tars import save
from PIL import Image

import imagenet_prep
from imagenet_prep import Layout, convert
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.records import ShardWriter

NAMES = ("a.b", "chat noir", "été", "日本")
"""Classes of folders; validation has images of the first and the third."""

ODD_NAMES = (
    "a\x7fb",
    "a\x85b",
    "a\u2028b",
    "\ufeffa",
    "a\nb",
    "\x01",
    "😀",
    "'\"",
    "class_map.txt",
    "---",
    "null",
)
"""Classes of a file of labels."""

SPLITS = ("train", "validation")


class Sample(NamedTuple):
    """A record: its name with the true ending, its bytes,
    its class from 0 and by name, and its boxes.
    """

    name: str
    encoded: bytes
    index: int | None
    class_name: str | None
    boxes: list[list[float]]
    features: Mapping[str, Any]


def picture(form: str, mode: str = "RGB", seed: int = 0) -> bytes:
    """A small image of a format and a mode of Pillow's."""
    image = Image.open(io.BytesIO(photograph(20 + seed, 18, seed))).convert(mode)
    image.save(file := io.BytesIO(), form)
    return file.getvalue()


def fill_classes(folder: Path) -> None:
    """Images that become JPEGs, next to JPEGs of the same stem;
    odd names of classes; one in a folder of its own.
    """
    for number, name in enumerate(NAMES):
        for split in SPLITS:
            images = {
                "same.jpg": picture("JPEG", seed=number),
                "same.png": picture("PNG", seed=number + 4),
                "same.gif": picture("GIF", "P", seed=number + 8),
                "cmyk.JPEG": picture("JPEG", "CMYK", seed=number),
                "ü , 'x'.jpeg": picture("JPEG", seed=number + 12),
                f"deep/{number}.v2": picture("JPEG", seed=number + 16),
            }
            for image, content in images.items() if split == "train" or number % 2 == 0 else ():
                save(folder / "in" / split / name / image, content)


def fill_numbers(folder: Path) -> None:
    """Folders of classes 2, 5 and 10; validation lacks class 2."""
    for split in SPLITS:
        for number in (2, 5, 10) if split == "train" else (5, 10):
            save(folder / "in" / split / str(number) / f"{split}.jpg", picture("JPEG", seed=number))


def fill_objects(folder: Path) -> None:
    """COCO's annotations: six images without an object, then one with one and one with three."""
    images, annotations = [], list[dict[str, Any]]()
    for number in range(8):
        images.append({"id": number, "file_name": f"{number}.jpg", "width": 40, "height": 30})
        save(folder / f"in/train2017/{number}.jpg", photograph(40, 30, number))
    for image, count in ((6, 1), (7, 3)):
        for box in range(count):
            entry = {
                "id": len(annotations) + 1,
                "image_id": image,
                "category_id": 2 + box,
                "iscrowd": 0,
            }
            annotations.append({**entry, "bbox": [1 + box, 2, 10, 9], "area": 90})
    categories = [
        {"id": number, "name": name} for number, name in enumerate(("chien", "été", "日本"), 2)
    ]
    value = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
    save(folder / "in/annotations/instances_train2017.json", json.dumps(value))


def fill_lists(folder: Path) -> None:
    """Up to three classes and scores for each image; the first six have none."""
    lines = []
    for number in range(10):
        save(folder / f"in/{number}.jpg", picture("JPEG", seed=number))
        count = max(0, number - 6)
        lines.append(
            json.dumps(
                {"path": f"{number}.jpg", "label": NAMES[1 : count + 1], "scores": [0.5] * count}
            )
        )
    save(folder / "in/labels.jsonl", "\n".join(lines) + "\n")


def fill_partly(folder: Path) -> None:
    """The first six images have no label and no price."""
    lines = ["path,label,price"]
    for number in range(10):
        save(folder / f"in/{number}.jpg", picture("JPEG", seed=number))
        lines.append(
            f"{number}.jpg," + (f"{NAMES[number % 3 + 1]},{number}" if number > 5 else ",")
        )
    save(folder / "in/labels.csv", "\n".join(lines) + "\n")


def fill_odd_names(folder: Path) -> None:
    """Classes that only a file of labels can name:
    signs that JSON may hold as they are, and YAML may not.
    """
    lines = []
    for number, name in enumerate(ODD_NAMES):
        save(folder / f"in/{number}.jpg", picture("JPEG", seed=number))
        lines.append(json.dumps({"path": f"{number}.jpg", "label": name}))
    save(folder / "in/labels.jsonl", "\n".join(lines) + "\n")


def fill_captions(folder: Path) -> None:
    """A caption, a score and a code for each image; the first score is missing."""
    lines = ["path,label,caption,score,code"]
    for number in range(4):
        save(folder / f"in/{number}.jpg", picture("JPEG", seed=number))
        score = number / 2 if number else ""
        lines.append(f"{number}.jpg,{NAMES[number % 2]},caption {number},{score},{number + 70}")
    save(folder / "in/labels.csv", "\n".join(lines) + "\n")


def fill_plain(folder: Path) -> None:
    """No labels; eight shards for three images."""
    for number in range(3):
        save(folder / f"in/{number}.jpg", picture("JPEG", seed=number))


def fill_formats(folder: Path) -> None:
    """One image of each of four formats; the fifth has a false ending."""
    for number, form in enumerate(("JPEG", "PNG", "BMP", "WEBP")):
        for name in ("cat", "dog"):
            save(folder / f"in/{name}/{number}.{form.lower()}", picture(form, seed=number))
            save(folder / f"in/{name}/odd.jpg", picture("PNG", seed=9))


class Recipe(NamedTuple):
    """How a set is made."""

    fill: Callable[[Path], None]
    text: str


_PRICE = "{from: price, type: float, optional: true}"
_PARTLY = (
    f"{{image/encoded: encoded, image/filename: path, image/class/label: label, price: {_PRICE}}}"
)

_CAPTIONED = "source: {files: in/*.jpg}\nlabels: {file: in/labels.csv}\nshards: 1\nshuffle: false"
_OWN_NAMES = (
    "image/encoded: encoded, image/filename: path, text: {from: caption}, filename: {from: "
    "caption}, "
    "label: {from: score, type: float, optional: true}, wnid: {from: code, type: int64}"
)
"""Features with the names that exports have for other values."""

RECIPES = {
    "classes": Recipe(fill_classes, "source: {folders: in}\nshards: 2\n"),
    "gzip": Recipe(fill_classes, "source: {folders: in}\nshards: 2\ncompression: gzip\n"),
    "numbers": Recipe(fill_numbers, "source: {folders: in}\nshards: 1\n"),
    "objects": Recipe(
        fill_objects,
        "source: {files: in/train2017/*.jpg}\nshards: 1\nshuffle: false\n"
        "boxes: {coco: in/annotations/instances_train2017.json, unannotated: empty}\n",
    ),
    "lists": Recipe(
        fill_lists,
        "source: {files: in/*.jpg}\nlabels: {file: in/labels.jsonl}\nshards: 1\nshuffle: false\n",
    ),
    "partly": Recipe(
        fill_partly,
        (
            f"source: {{files: in/*.jpg}}\nlabels: {{file: in/labels.csv}}\nshards: 1\nshuffle: "
            f"false\nrecord: {_PARTLY}\n"
        ),
    ),
    "odd names": Recipe(
        fill_odd_names,
        "source: {files: in/*.jpg}\nlabels: {file: in/labels.jsonl}\nshards: 1\nshuffle: false\n",
    ),
    "captions": Recipe(fill_captions, f"{_CAPTIONED}\nrecord: {{{_OWN_NAMES}}}\n"),
    "captions and classes": Recipe(
        fill_captions, f"{_CAPTIONED}\nrecord: {{class: label, {_OWN_NAMES}}}\n"
    ),
    "plain": Recipe(fill_plain, "source: {files: in/*.jpg}\nshards: 8\n"),
    "formats": Recipe(
        fill_formats,
        "source: {folders: in}\nshards: 1\nkeep: true\n"
        "record: {image/encoded: encoded, image/filename: path, image/class/label: label}\n",
    ),
}


def make_set(name: str, folder: Path) -> Layout:
    """One of these sets; "foreign" has no manifest, labels of its own and an empty split."""
    layout = Layout(folder / "shards")
    if name == "foreign":
        for split, count in (("test", 0), ("train", 3)):
            with ShardWriter(folder / "shards" / split, shards=1) as writer:
                for number in range(count):
                    values = {
                        "image/encoded": photograph(20, 20, number),
                        "image/filename": f"{number}.jpg",
                    }
                    writer.write(
                        {
                            **values,
                            "image/class/label": number + 1,
                            "image/class/synset": NAMES[number],
                        }
                    )
        return layout
    recipe = RECIPES[name]
    recipe.fill(folder)
    (folder / "recipe.yaml").write_text(recipe.text)
    dataset = RecipeSet.read(folder / "recipe.yaml")
    convert(layout, ENGINE, dataset.options, dataset=dataset)
    return layout


def samples_of(layout: Layout, split: str) -> list[Sample]:
    """The records of a split, by imagenet-prep's own reader; formats by Pillow."""
    records = imagenet_prep.open(layout.data_dir, split)
    names = {}
    if layout.manifest_path.exists():
        classes = json.loads(layout.manifest_path.read_bytes())["dataset"].get("classes", {})
        names = {label: name for name, label in classes.items()}
    samples = []
    for record in records:
        features = record.features
        label = features.get("image/class/label")
        label = label if isinstance(label, int) else None
        class_name = features.get("image/class/synset", b"").decode() or names.get(label)
        edges = [
            features.get(f"image/object/bbox/{edge}", [])
            for edge in ("xmin", "ymin", "xmax", "ymax")
        ]
        samples.append(
            Sample(
                true_name(features["image/filename"].decode(), features["image/encoded"]),
                features["image/encoded"],
                None if label is None else label - records.first_label,
                class_name,
                [list(box) for box in zip(*edges, strict=True)],
                features,
            )
        )
    return samples


def true_name(name: str, encoded: bytes) -> str:
    """A file name with an ending of the format that Pillow sees."""
    form = str(Image.open(io.BytesIO(encoded)).format)
    endings = [ending for ending, known in Image.registered_extensions().items() if known == form]
    if Path(name).suffix.lower() in endings:
        return name
    return name + {"JPEG": ".jpg"}.get(form, f".{form.lower()}")
