"""Masks of objects and of images in records: as pycocotools has them,
read by TensorFlow's and torchvision's own.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from existing import existing
from made_boxes import IDS, photograph
from made_masks import (
    box_around,
    coco_outlines,
    mask_folders,
    panoptic_set,
    pixels_of,
    png,
    yolo_outlines,
)
from made_tars import save
from PIL import Image, ImageOps
from running import prep_here
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep import Layout, PrepError, convert, make_engine, records, repair, verify
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images import mask_pixels
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.init import init
from imagenet_prep.stages.merge import merge

coco_masks = pytest.importorskip("pycocotools.mask")

ENGINE = make_engine("threads", 2)
COCO = (
    "source: {files: coco/train2017/*}\nboxes: {coco: "
    "coco/annotations/instances_train2017.json, polygons: masks}\n"
)
YOLO = (
    "source: {files: yolo/images/**/*.jpg}\nboxes: {yolo: yolo/labels, names: yolo/data.yaml, "
    "polygons: masks}\n"
)
PANOPTIC = (
    "source: {files: coco/val2017/*.jpg}\nboxes: {coco: coco/annotations/panoptic_val2017.json, "
    "polygons: masks}\n"
)
OBJECT = "image/object/"
EDGES = tuple(f"{OBJECT}bbox/{edge}" for edge in ("xmin", "ymin", "xmax", "ymax"))


def make(folder: Path, recipe: str, engine: Any = ENGINE, **options: Any) -> None:
    """A set in folder/out, verified with its recipe."""
    (folder / "r.yaml").write_text(recipe)
    convert(Layout(folder / "out"), engine, dataset=RecipeSet.read(folder / "r.yaml"), **options)
    assert verify(Layout(folder / "out"), ENGINE).problems == ()


def by_name(folder: Path) -> dict[str, Any]:
    """The features of every record by the last part of its file's name."""
    records = imagenet_prep.open(folder / "out", "train")
    return {
        record.features["image/filename"].decode().rpartition("/")[2]: record.features
        for record in records
    }


def masks_of(features: Mapping[str, Any]) -> list[np.ndarray]:
    """The pixels of each object."""
    return [pixels_of(data) for data in features[f"{OBJECT}mask"]]


def coco_of(folder: Path) -> Any:
    """The annotations as pycocotools reads them."""
    from pycocotools import coco

    return coco.COCO(str(folder / "coco/annotations/instances_train2017.json"))


def annotations_by_name(
    folder: Path,
) -> Iterator[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]], Any]]:
    """Each image of COCO with its annotations, as pycocotools has them, and pycocotools."""
    coco = coco_of(folder)
    for image in coco.loadImgs(coco.getImgIds()):
        yield image, coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]], iscrowd=None)), coco


def polygon_pixels(polygons: Sequence[Sequence[float]], width: int, height: int) -> np.ndarray:
    """The pixels of polygons by pycocotools itself."""
    return coco_masks.decode(
        coco_masks.merge(coco_masks.frPyObjects(list(polygons), height, width))
    )


# equal to pycocotools -----------------------------------------------------------------------------


def test_masks_of_coco_are_those_of_pycocotools(tmp_path: Path) -> None:
    """Polygons of one and several parts, crowds as runs, plain and compressed:
    every pixel of 50 images.
    """
    coco_outlines(tmp_path / "coco")
    make(tmp_path, COCO)
    ours, crowds, count = by_name(tmp_path), 0, 0
    assert len(ours) == 50
    for image, objects, coco in annotations_by_name(tmp_path):
        features = ours[image["file_name"]]
        found = masks_of(features)
        assert len(found) == len(objects)
        for mask, annotation in zip(found, objects, strict=True):
            assert mask.dtype == np.uint8
            assert (mask == coco.annToMask(annotation)).all()
        corners = [
            (x, y, x + w, y + h) for x, y, w, h in (annotation["bbox"] for annotation in objects)
        ]
        for place, edge in enumerate(EDGES):
            side = image["height"] if place % 2 else image["width"]
            assert (
                features[edge]
                == np.array([box[place] / side for box in corners], np.float32).tolist()
            )
        crowds += sum(features[f"{OBJECT}is_crowd"])
        count += len(found)
    assert count == 100
    assert crowds == 10


def test_boxes_of_coco_come_from_outlines(tmp_path: Path) -> None:
    """The box around the points of polygons, and pycocotools' toBbox of runs,
    where annotations have no bbox.
    """
    value = coco_outlines(tmp_path / "coco")
    for annotation in value["annotations"]:
        del annotation["bbox"]
    save(tmp_path / "coco/annotations/instances_train2017.json", json.dumps(value))
    make(tmp_path, COCO.replace("masks", "boxes"))
    ours = by_name(tmp_path)
    for image, objects, coco in annotations_by_name(tmp_path):
        features = ours[image["file_name"]]
        assert f"{OBJECT}mask" not in features
        for number, annotation in enumerate(objects):
            outline = annotation["segmentation"]
            runs = coco.annToRLE(annotation)
            x, y, w, h = (
                box_around(outline) if isinstance(outline, list) else coco_masks.toBbox(runs)
            )
            sides = (image["width"], image["height"]) * 2
            expected = [edge / side for edge, side in zip((x, y, x + w, y + h), sides, strict=True)]
            assert [features[edge][number] for edge in EDGES] == pytest.approx(expected, abs=1e-7)


def test_masks_of_yolo_are_those_of_pycocotools(tmp_path: Path) -> None:
    """Relative polygons times the size of their image;
    boxes are those around them, classes count from 1.
    """
    known = yolo_outlines(tmp_path / "yolo")
    make(tmp_path, YOLO)
    ours = by_name(tmp_path)
    assert len(ours) == 50
    for name, ((width, height), objects) in known.items():
        features = ours[name]
        assert features[f"{OBJECT}class/label"] == [label + 1 for label, _ in objects]
        for number, (mask, (_, polygon)) in enumerate(
            zip(masks_of(features), objects, strict=True)
        ):
            points = [
                value * (height if place % 2 else width) for place, value in enumerate(polygon)
            ]
            assert (mask == polygon_pixels([points], width, height)).all()
            x, y, w, h = box_around([polygon])
            assert [features[edge][number] for edge in EDGES] == pytest.approx(
                [x, y, x + w, y + h], abs=1e-6
            )


def test_masks_of_panoptic_segments(tmp_path: Path) -> None:
    """Each segment is an object: its pixels are those of its number,
    its box and class those of the file.
    """
    known = panoptic_set(tmp_path / "coco")
    make(tmp_path, PANOPTIC)
    ours = by_name(tmp_path)
    assert len(ours) == 50
    names = {number: name for name, number in IDS.items()}
    for name, (numbers, segments) in known.items():
        features = ours[name]
        for mask, segment in zip(masks_of(features), segments, strict=True):
            assert (mask == (numbers == segment["id"])).all()
        assert features[f"{OBJECT}class/label"] == [segment["category_id"] for segment in segments]
        texts = [names[segment["category_id"]].encode() for segment in segments]
        assert features[f"{OBJECT}class/text"] == texts
        assert features[f"{OBJECT}is_crowd"] == [segment["iscrowd"] for segment in segments]
        for number, segment in enumerate(segments):
            width, height = numbers.shape[::-1]
            x, y, w, h = segment["bbox"]
            expected = [x / width, y / height, (x + w) / width, (y + h) / height]
            assert [features[edge][number] for edge in EDGES] == pytest.approx(expected, abs=1e-7)


def test_a_file_for_each_object(tmp_path: Path) -> None:
    """Data Science Bowl's folders: the mask is what is not black,
    the box is pycocotools' toBbox of it.
    """
    known: dict[str, list[np.ndarray]] = {}
    for number in range(50):
        width, height = 40 + number, 90 - number
        save(
            tmp_path / f"data/{number:02}/images/{number:02}.png",
            photograph(width, height, number, form="PNG"),
        )
        known[f"{number:02}.png"] = []
        for place in range(1 + number % 3):
            pixels = np.zeros((height, width), np.uint8)
            pixels[3 + place : 20, 5 : 9 + 7 * place] = 255
            save(tmp_path / f"data/{number:02}/masks/{place}.png", png(pixels))
            known[f"{number:02}.png"].append(pixels // 255)
    text = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).text
    make(tmp_path, text)
    ours = {name: features for name, features in by_name(tmp_path).items() if name in known}
    assert len(ours) == 50
    for name, expected in known.items():
        features = ours[name]
        for number, (mask, pixels) in enumerate(zip(masks_of(features), expected, strict=True)):
            assert (mask == pixels).all()
            x, y, w, h = coco_masks.toBbox(coco_masks.encode(np.asfortranarray(pixels)))
            sides = pixels.shape[::-1] * 2
            corners = [edge / side for edge, side in zip((x, y, x + w, y + h), sides, strict=True)]
            assert [features[edge][number] for edge in EDGES] == pytest.approx(corners, abs=1e-7)
        assert features[f"{OBJECT}class/text"] == [b"object"] * len(expected)


def test_run_lengths_of_kaggle(tmp_path: Path) -> None:
    """Starts from 1 down the columns and lengths, in a table of images and classes;
    an empty cell is no object.
    """
    value = coco_outlines(tmp_path / "coco")
    rows, known = ["ImageId,ClassId,EncodedPixels"], {}
    for image, objects, coco in annotations_by_name(tmp_path):
        several = [coco.annToMask(each) for each in objects]
        known[image["file_name"]] = several = [pixels for pixels in several if pixels.any()]
        for number, pixels in enumerate(several):
            starts = np.flatnonzero(np.diff(np.concatenate([[0], pixels.flatten("F"), [0]])))
            runs = [
                (start + 1, stop - start)
                for start, stop in zip(starts[::2], starts[1::2], strict=True)
            ]
            text = " ".join(f"{start} {length}" for start, length in runs)
            rows.append(f"{image['file_name']},{number % 3},{text}")
        if not several:
            rows.append(f"{image['file_name']},,")
    save(tmp_path / "coco/train.csv", "\n".join(rows) + "\n")
    (tmp_path / "coco/annotations/instances_train2017.json").unlink()
    make(tmp_path, init(tmp_path / "coco", tmp_path / "r.yaml", ENGINE).text)
    ours = by_name(tmp_path)
    assert len(ours) == len(value["images"])
    for name, several in known.items():
        features = ours[name]
        assert [mask.tolist() for mask in masks_of(features)] == [
            pixels.tolist() for pixels in several
        ]
        assert features[f"{OBJECT}class/text"] == [
            str(number % 3).encode() for number in range(len(several))
        ]
        for number, pixels in enumerate(several):
            x, y, w, h = coco_masks.toBbox(coco_masks.encode(np.asfortranarray(pixels)))
            sides = pixels.shape[::-1] * 2
            corners = [edge / side for edge, side in zip((x, y, x + w, y + h), sides, strict=True)]
            assert [features[edge][number] for edge in EDGES] == pytest.approx(corners, abs=1e-7)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ("1 2 3", "the last run has a start and no length"),
        ("a b", "'a' is not a whole number"),
        ("5 3 2 2", "the run at 2 comes after a run that starts later"),
        ("1 999999", r"the run 1 999999 ends after the last pixel of a.jpg \(40 x 30 = 1,200\)"),
        ("0 3", "a run starts at 0"),
    ],
)
def test_run_lengths_that_cant_be_are_refused(tmp_path: Path, runs: str, words: str) -> None:
    """With the line of the table."""
    save(tmp_path / "in/a.jpg", photograph(40, 30))
    save(tmp_path / "t.csv", f"ImageId,EncodedPixels\na.jpg,{runs}\n")
    with pytest.raises(InputError, match=rf"t.csv, line 2: .*{words}"):
        make(tmp_path, "source: {files: in/*}\nboxes: {runs: t.csv}\n")


# folders of masks ---------------------------------------------------------------------------------

FOLDERS = {
    "the same names": ("images/{}.jpg", "masks/{}.png"),
    "a suffix": ("images/{}.jpg", "masks/{}_mask.png"),
    "Carvana's GIFs": ("train/car_{}.jpg", "train_masks/car_{}_mask.gif"),
    "CamVid's L": ("train/Seq_{}.png", "train_labels/Seq_{}_L.png"),
    "CamVid's P": ("images/Seq_{}.png", "labels/Seq_{}_P.png"),
    "matting's m": ("images/{}.jpg", "mattes/{}_m.png"),
    "a hyphen": ("images/x{}.jpg", "annotations/x{}-seg.png"),
    "ISIC": ("Training_Input/ISIC_{}.jpg", "Training_GroundTruth/ISIC_{}_segmentation.png"),
    "GT": ("Original/{}.png", "Ground Truth/{}.tif"),
    "Penn-Fudan": ("PNGImages/Ped{}.png", "PedMasks/Ped{}_mask.png"),
    "both have a suffix": ("train/{}_sat.jpg", "train/{}_mask.png"),
    "next to each other": ("scans/{}.png", "scans/{}_mask.png"),
    "in folders of patients": ("kaggle/p{}/p_1.png", "kaggle/p{}/p_1_mask.png"),
    "annot": ("train/a{}.png", "trainannot/a{}.png"),
    "BMP": ("images/{}.jpg", "masks/{}.bmp"),
}


AS = {"in folders of patients": "masks"}
"""Folders that may be classes, too: init asks."""


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_masks_of_any_name(tmp_path: Path, name: str) -> None:
    """init finds the pairs; every record has its own mask:
    the bytes of a PNG, the values and colours of others.
    """
    image, mask_path = FOLDERS[name]
    known = mask_folders(tmp_path / "data", image, mask_path, 12)
    chosen = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE, structure=AS.get(name))
    assert chosen.structure == "masks"
    make(tmp_path, chosen.text)
    records = list(imagenet_prep.open(tmp_path / "out", "train"))
    assert len(records) == 12
    for record in records:
        features = record.features
        data = known[
            features["image/filename"].decode().partition("data/")[2] or _only(known, features)
        ]
        mask = features["image/segmentation/class/encoded"]
        assert features["image/segmentation/class/format"] == b"png"
        if mask_path.endswith(".png"):
            assert mask == data
        with Image.open(io.BytesIO(data)) as stored:
            assert (pixels_of(mask) == np.asarray(stored)).all()
            assert (
                np.asarray(Image.open(io.BytesIO(mask)).convert("RGB"))
                == np.asarray(stored.convert("RGB"))
            ).all()


def _only(known: Mapping[str, bytes], features: Mapping[str, Any]) -> str:
    """The image whose path ends as that of a record."""
    (path,) = (path for path in known if path.endswith(features["image/filename"].decode()))
    return path


@pytest.mark.parametrize(
    "names", [("with_mask", "bare"), ("manual", "automatic"), ("label_1", "other")]
)
def test_class_folders_that_are_called_as_masks(tmp_path: Path, names: tuple[str, str]) -> None:
    """Photographs of the same names in two folders are no masks of each other:
    they have many colours.
    """
    for name in names:
        for number in range(6):
            data = photograph(80, 60, number + 7 * len(name), form="PNG")
            save(tmp_path / f"data/{name}/{number}.png", data)
    assert init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).structure == "class-folders"


def test_masks_in_class_folders_are_a_question(tmp_path: Path) -> None:
    """Neither the classes nor the masks are lost in silence."""
    for name in ("benign", "malignant"):
        mask_folders(tmp_path / "data", f"{name}/{name}{{}}.png", f"{name}/{name}{{}}_mask.png", 4)
    with pytest.raises(InputError, match="can be read in 2 ways: ") as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    commands = "\n".join(caught.value.lines)
    assert "--as masks" in commands
    assert "--as class-folders would take them as images like the others (8 of 16" in commands


def test_jpegs_as_masks_are_refused_with_the_way_to_take_them(tmp_path: Path) -> None:
    """init names the command, whose recipe has a threshold;
    a recipe without one is refused, too.
    """
    mask_folders(tmp_path / "data", "images/{}.jpg", "masks/{}.png", 3)
    for number in range(3):
        values = np.zeros((60, 80), np.uint8)
        values[10 + number : 40, 20:50] = 255
        (tmp_path / f"data/masks/{number}.png").unlink()
        save(tmp_path / f"data/images/{number}.jpg", photograph(80, 60, number))
        save(tmp_path / f"data/masks/{number}.jpg", png(values, "JPEG"))
    with pytest.raises(InputError, match=r"3 masks .*JPEG") as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert "--as masks" in caught.value.lines[-1]
    summary = init(tmp_path / "data", tmp_path / "new.yaml", ENGINE, structure="masks")
    assert "made 0 and 255" in summary.evidence[-1]
    assert not summary.passed
    text = summary.text
    assert "threshold: 128" in text
    make(tmp_path, text)
    for name, features in by_name(tmp_path).items():
        expected = np.zeros((60, 80), np.uint8)
        expected[10 + int(name[0]) : 40, 20:50] = 255
        assert (pixels_of(features["image/segmentation/class/encoded"]) == expected).all()
    with pytest.raises(InputError, match="threshold: 128"):
        make(tmp_path, "source: {files: data/images/*}\nmask: {folder: data/masks}\n")


def test_two_masks_of_each_image_are_a_question(tmp_path: Path) -> None:
    """Both are named with the command that sets the other aside."""
    mask_folders(tmp_path / "data", "images/{}.jpg", "1st_manual/{}.png", 4)
    shutil.copytree(tmp_path / "data/1st_manual", tmp_path / "data/mask")
    with pytest.raises(InputError, match=r"1st_manual, mask each have masks of 4 images") as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert f"mv -- {tmp_path}/data/mask {tmp_path}/data-mask" in caught.value.hint


# read by others -----------------------------------------------------------------------------------


def decode(tf: Any, data: bytes) -> dict[str, Any]:
    """A record as tf-models-official decodes it, by its own decoder if that is installed, else by
    its published keys.

    Source: official/vision/dataloaders/tf_example_decoder.py of tensorflow/models.
    """
    try:
        from official.vision.dataloaders.tf_example_decoder import TfExampleDecoder
    except ImportError:
        return decode_by_keys(tf, data)
    return TfExampleDecoder(include_mask=True).decode(data)


def decode_by_keys(tf: Any, data: bytes) -> dict[str, Any]:
    """The same in the same steps, written down from its keys."""
    edges = {
        f"{OBJECT}bbox/{edge}": tf.io.VarLenFeature(tf.float32)
        for edge in ("ymin", "xmin", "ymax", "xmax")
    }
    features = {
        **{
            "image/encoded": tf.io.FixedLenFeature((), tf.string),
            "image/source_id": tf.io.FixedLenFeature((), tf.string),
        },
        **{
            f"image/{side}": tf.io.FixedLenFeature((), tf.int64, -1) for side in ("height", "width")
        },
        **edges,
        f"{OBJECT}class/label": tf.io.VarLenFeature(tf.int64),
        f"{OBJECT}area": tf.io.VarLenFeature(tf.float32),
        f"{OBJECT}is_crowd": tf.io.VarLenFeature(tf.int64),
        f"{OBJECT}mask": tf.io.VarLenFeature(tf.string),
    }
    parsed = tf.io.parse_single_example(data, features)
    dense = {
        name: tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
        for name, value in parsed.items()
    }
    pngs = dense[f"{OBJECT}mask"].numpy()
    decoded = [
        tf.squeeze(tf.io.decode_png(png, channels=1, dtype=tf.uint8), axis=-1) for png in pngs
    ]
    empty = tf.zeros([0, dense["image/height"], dense["image/width"]], tf.float32)
    return {
        "image": tf.io.decode_image(dense["image/encoded"], channels=3),
        "source_id": dense["image/source_id"],
        "groundtruth_classes": dense[f"{OBJECT}class/label"],
        "groundtruth_is_crowd": tf.cast(dense[f"{OBJECT}is_crowd"], tf.bool),
        "groundtruth_boxes": tf.stack([dense[name] for name in edges], axis=-1),
        "groundtruth_instance_masks": tf.cast(tf.stack(decoded), tf.float32) if decoded else empty,
    }


@pytest.mark.tensorflow
@pytest.mark.parametrize("by_keys", [False, True])
def test_tensorflow_models_decode_the_records(tmp_path: Path, by_keys: bool) -> None:
    """Images, boxes, classes, crowds and masks of 50 images, equal to pycocotools'."""
    tf = pytest.importorskip("tensorflow")
    coco_outlines(tmp_path / "coco")
    make(tmp_path, COCO)
    decoded = {}
    for data in tf.data.TFRecordDataset(sorted(map(str, (tmp_path / "out").glob("train-*")))):
        record = (decode_by_keys if by_keys else decode)(tf, data)
        decoded[record["source_id"].numpy().decode()] = record
    assert len(decoded) == 50
    for image, objects, coco in annotations_by_name(tmp_path):
        record = decoded[str(image["id"])]
        width, height = image["width"], image["height"]
        assert record["image"].shape == (height, width, 3)
        masks = record["groundtruth_instance_masks"].numpy()
        assert masks.shape == (len(objects), height, width)
        for mask, annotation in zip(masks, objects, strict=True):
            assert (mask == coco.annToMask(annotation)).all()
        corners = [
            (y / height, x / width, (y + h) / height, (x + w) / width)
            for x, y, w, h in boxes_of(objects)
        ]
        assert record["groundtruth_boxes"].numpy() == pytest.approx(
            np.array(corners).reshape(-1, 4), abs=1e-7
        )
        assert record["groundtruth_classes"].numpy().tolist() == [
            each["category_id"] for each in objects
        ]
        assert record["groundtruth_is_crowd"].numpy().tolist() == [
            bool(each["iscrowd"]) for each in objects
        ]


def boxes_of(annotations: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """x, y, width and height of each annotation."""
    return [annotation["bbox"] for annotation in annotations]


def test_torchvision_transforms_the_records(tmp_path: Path, torch: Any) -> None:
    """Flipped, cropped and resized, masks and boxes of 50 images stay those of pycocotools."""
    torchvision = import_torchvision()
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    coco_outlines(tmp_path / "coco")
    make(tmp_path, COCO)
    ours = by_name(tmp_path)
    change = v2.Compose(
        [v2.RandomHorizontalFlip(1.0), v2.CenterCrop((36, 38)), v2.Resize((72, 76))]
    )

    def transformed(image: np.ndarray, masks: Sequence[np.ndarray], corners: Any) -> dict[str, Any]:
        size = image.shape[:2]
        boxes = tv_tensors.BoundingBoxes(
            torch.tensor(corners).reshape(-1, 4), format="XYXY", canvas_size=size
        )
        stacked = np.stack(masks) if len(masks) else np.zeros((0, *size), np.uint8)
        sample = {"image": tv_tensors.Image(torch.tensor(image).permute(2, 0, 1)), "boxes": boxes}
        return change({**sample, "masks": tv_tensors.Mask(torch.tensor(stacked))})

    whole = 0
    for image, objects, coco in annotations_by_name(tmp_path):
        features = ours[image["file_name"]]
        width, height = image["width"], image["height"]
        picture = np.asarray(Image.open(io.BytesIO(features["image/encoded"])))
        corners = np.array([features[edge] for edge in EDGES], np.float32).T * [
            width,
            height,
            width,
            height,
        ]
        sample = transformed(picture, masks_of(features), corners.astype(np.float32))
        theirs = [(x, y, x + w, y + h) for x, y, w, h in boxes_of(objects)]
        expected = transformed(
            picture, [coco.annToMask(each) for each in objects], np.array(theirs, np.float32)
        )
        assert torch.equal(sample["masks"], expected["masks"])
        assert torch.allclose(sample["boxes"], expected["boxes"], atol=1e-3)
        assert sample["image"].shape[-2:] == sample["masks"].shape[-2:]
        for mask in filter(np.any, masks_of(features)):
            (found,) = torchvision.ops.masks_to_boxes(torch.tensor(mask[None]))
            x, y, w, h = coco_masks.toBbox(coco_masks.encode(np.asfortranarray(mask)))
            assert found.tolist() == [x, y, x + w - 1, y + h - 1]
            whole += 1
    assert whole > 90


# masks follow their image -------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("how", ["quality: 90", "max_side: 40", "keep: true"])
def test_masks_of_objects_turn_and_shrink_with_the_image(
    tmp_path: Path, orientation: int, how: str
) -> None:
    """As exif_transpose turns a picture of each; a smaller one has the nearest pixels;
    a kept image is not turned.
    """
    coco_outlines(tmp_path / "coco", 5, orientation=orientation)
    make(tmp_path, f"{COCO}{how}\n")
    ours = by_name(tmp_path)
    tags = Image.Exif()
    tags[0x0112] = 1 if how == "keep: true" else orientation
    for image, objects, coco in annotations_by_name(tmp_path):
        features = ours[image["file_name"]]
        size = features["image/width"], features["image/height"]
        for mask, annotation in zip(masks_of(features), objects, strict=True):
            assert mask.shape == size[::-1]
            stored = io.BytesIO()
            Image.fromarray(coco.annToMask(annotation)).save(stored, "PNG", exif=tags)
            turned = ImageOps.exif_transpose(Image.open(stored))
            if how == "max_side: 40":
                before = size[::-1] if orientation > 4 else size
                small = Image.fromarray(coco.annToMask(annotation)).resize(
                    before, Image.Resampling.NEAREST
                )
                stored = io.BytesIO()
                small.save(stored, "PNG", exif=tags)
                turned = ImageOps.exif_transpose(Image.open(stored))
            assert (mask == np.asarray(turned)).all()
        with Image.open(io.BytesIO(features["image/encoded"])) as picture:
            assert picture.size == size


@pytest.mark.parametrize(("policy", "objects"), [("clip", 2), ("drop", 1)])
def test_a_mask_goes_with_its_box(tmp_path: Path, policy: str, objects: int) -> None:
    """Of a box that leads out, the part inside has a mask; a box that is dropped has none."""
    value = coco_outlines(tmp_path / "coco", 2)
    polygons = [[[-9, 5, 20, 5, 20, 30, -9, 30]], [[3, 3, 20, 3, 12, 20]]]
    image = value["images"][1]
    value["annotations"] = [
        {
            "id": number,
            "image_id": image["id"],
            "category_id": 1,
            "bbox": box_around(each),
            "segmentation": each,
        }
        for number, each in enumerate(polygons)
    ]
    save(tmp_path / "coco/annotations/instances_train2017.json", json.dumps(value))
    make(tmp_path, f"{COCO}boxes_outside: {policy}\n")
    features = by_name(tmp_path)[image["file_name"]]
    expected = [polygon_pixels(each, image["width"], image["height"]) for each in polygons][
        -objects:
    ]
    assert len(features[EDGES[0]]) == objects
    for mask, pixels in zip(masks_of(features), expected, strict=True):
        assert (mask == pixels).all()


# sets ---------------------------------------------------------------------------------------------


def shards(folder: Path) -> dict[str, bytes]:
    """The bytes of every shard."""
    return {path.name: path.read_bytes() for path in existing(folder / "out", "train-*")}


@pytest.mark.parametrize("recipe", [COCO, PANOPTIC], ids=["polygons", "segments"])
def test_masks_are_the_same_however_a_set_is_made(tmp_path: Path, recipe: str) -> None:
    """By processes, resumed, in ranks, and repaired: byte for byte."""
    coco_outlines(tmp_path / "coco", 20)
    panoptic_set(tmp_path / "coco", 20)
    recipe += "shards: 4\n"
    make(tmp_path, recipe)
    expected = shards(tmp_path)
    (tmp_path / "out/train-00001-of-00004").unlink()
    make(tmp_path, recipe)
    assert shards(tmp_path) == expected
    (tmp_path / "out/train-00002-of-00004").unlink()
    repair(Layout(tmp_path / "out"), ENGINE, verify(Layout(tmp_path / "out"), ENGINE).faulty)
    assert shards(tmp_path) == expected
    shutil.rmtree(tmp_path / "out")
    make(tmp_path, recipe, make_engine("processes", 2))
    assert shards(tmp_path) == expected
    shutil.rmtree(tmp_path / "out")
    for rank in range(2):
        dataset = RecipeSet.read(tmp_path / "r.yaml")
        convert(Layout(tmp_path / "out"), ThreadEngine(1), dataset=dataset, share=Share(rank, 2))
    merge(Layout(tmp_path / "out"))
    assert shards(tmp_path) == expected


def test_another_outline_is_another_set(tmp_path: Path) -> None:
    """One point of one polygon, or the time of one panoptic PNG:
    the set isn't resumed, and the error says why.
    """
    value = coco_outlines(tmp_path / "coco", 8)
    panoptic_set(tmp_path / "coco", 4)
    make(tmp_path, COCO)
    polygons = next(each["segmentation"] for each in value["annotations"] if not each["iscrowd"])
    polygons[0][0] += 0.5
    save(tmp_path / "coco/annotations/instances_train2017.json", json.dumps(value))
    with pytest.raises(PrepError, match=r"changed .*boxes"):
        make(tmp_path, COCO)
    shutil.rmtree(tmp_path / "out")
    make(tmp_path, PANOPTIC)
    folder = tmp_path / "coco/annotations/panoptic_val2017"
    os.utime(folder / "000000000002.png", ns=(1, 1))
    with pytest.raises(PrepError, match=rf"file times .*{folder}"):
        make(tmp_path, PANOPTIC)


# refusals -----------------------------------------------------------------------------------------


def _change(folder: Path, **values: Any) -> None:
    path = folder / "coco/annotations/instances_train2017.json"
    value = json.loads(path.read_text())
    value["annotations"][0].update(values)
    save(path, json.dumps(value))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "two points": (
        {"segmentation": [[1, 1, 9, 9]]},
        "a polygon has 4 numbers: expected x and y of each of 3",
    ),
    "an odd number": ({"segmentation": [[1, 1, 9, 9, 3]]}, "a polygon has 5 numbers"),
    "far outside": ({"segmentation": [[1, 1, 9, 9, 3000, 4]]}, "a polygon has the x 3000"),
    "no outline": ({"segmentation": []}, "the object has no outline"),
    "null": ({"segmentation": None}, "the object has no outline"),
    "a text": (
        {"segmentation": "x"},
        "segmentation: expected an object or a list, got a text",
    ),
    "a text in a polygon": (
        {"segmentation": [[1, 1, "x", 1, 5, 5]]},
        "segmentation[0][2]: expected a number, got a text\nexpected a list of polygons",
    ),
    "runs of another size": (
        {"segmentation": {"counts": [9], "size": [3, 3]}},
        "its run lengths are for 3 x 3 pixels, the image has",
    ),
    "runs without counts": (
        {"segmentation": {"size": [3, 3]}},
        "its segmentation has no `counts`: expected run lengths, as {size: [height, width], counts",
    ),
    "runs without a size": (
        {"segmentation": {"counts": [9]}},
        "its segmentation has no `size`: expected run lengths, as {size: [height, width], counts",
    ),
    "damaged runs": ({"segmentation": {"counts": "P P", "size": [0, 0]}}, "annotations[0]"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_outline_that_cant_be_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """In planning: no shard is made; init takes the boxes alone, and its notes say why."""
    values, words = FAULTS[name]
    coco_outlines(tmp_path / "coco", 3)
    _change(tmp_path, **values)
    with pytest.raises(InputError) as caught:
        make(tmp_path, COCO)
    assert words in str(caught.value)
    assert "instances_train2017.json: annotations[0] (id 1)" in str(caught.value)
    assert not list((tmp_path / "out").glob("train-*"))
    chosen = init(tmp_path / "coco", tmp_path / "new.yaml", ENGINE)
    assert "polygons" not in chosen.text
    assert any("masks of objects are left out" in note for note in chosen.passed)


def test_a_panoptic_png_that_is_missing_or_of_another_size(tmp_path: Path) -> None:
    """The one is named in planning, the other with its image, as one is of another format."""
    panoptic_set(tmp_path / "coco", 3)
    path = tmp_path / "coco/annotations/panoptic_val2017/000000000001.png"
    original = path.read_bytes()
    named = r"mask of its object 1, coco/annotations/panoptic_val2017/000000000001\.png: "
    path.write_bytes(png(np.zeros((5, 6, 3), np.uint8)))
    with pytest.raises(PrepError, match=f"{named}it has 6 x 5 pixels"):
        make(tmp_path, PANOPTIC)
    path.write_bytes((tmp_path / "coco/val2017/000000000001.jpg").read_bytes())
    with pytest.raises(PrepError, match=f"{named}not a PNG: its format is JPEG") as caught:
        make(tmp_path, PANOPTIC)
    assert caught.value.hint.startswith("replace it by the original PNG")
    path.write_bytes(original)
    make(tmp_path, PANOPTIC)
    path.unlink()
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    with pytest.raises(InputError, match=r"PNG of its segments"):
        make(tmp_path, PANOPTIC)


@pytest.mark.parametrize(
    "form", ["../elsewhere/1.png", "a/../../elsewhere/1.png", "{elsewhere}/1.png"]
)
def test_a_panoptic_png_outside_its_folder(tmp_path: Path, form: str) -> None:
    """A path that leads out of the folder of the PNGs is refused in planning,
    even if a PNG is there.
    """
    panoptic_set(tmp_path / "coco", 3)
    annotations = tmp_path / "coco/annotations"
    elsewhere = annotations / "elsewhere"
    (annotations / "panoptic_val2017/a").mkdir()
    elsewhere.mkdir()
    shutil.copy(annotations / "panoptic_val2017/000000000001.png", elsewhere / "1.png")
    value = json.loads((annotations / "panoptic_val2017.json").read_text())
    value["annotations"][1]["file_name"] = form.format(elsewhere=elsewhere)
    save(annotations / "panoptic_val2017.json", json.dumps(value))
    with pytest.raises(InputError, match=r"leads out of .*annotations/panoptic_val2017"):
        make(tmp_path, PANOPTIC)
    assert not list((tmp_path / "out").glob("train-*"))


@pytest.mark.parametrize(
    ("file_name", "words"),
    [
        (None, r"annotations\[1\]: it has no file_name\nexpected the PNG of its segments"),
        ("sub", r"panoptic_val2017/sub is not a file\nexpected the PNG of its segments"),
        ("gone.png", r"panoptic_val2017/gone.png is not there\nexpected the PNG"),
    ],
)
def test_a_panoptic_png_that_is_no_file(tmp_path: Path, file_name: str | None, words: str) -> None:
    """A name that is missing, a folder and a file that is not there are told apart."""
    panoptic_set(tmp_path / "coco", 3)
    annotations = tmp_path / "coco/annotations"
    (annotations / "panoptic_val2017/sub").mkdir()
    value = json.loads((annotations / "panoptic_val2017.json").read_text())
    del value["annotations"][1]["file_name"]
    if file_name is not None:
        value["annotations"][1]["file_name"] = file_name
    save(annotations / "panoptic_val2017.json", json.dumps(value))
    with pytest.raises(InputError, match=words):
        make(tmp_path, PANOPTIC)


def test_polygons_without_pycocotools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """convert names the extra before a shard is made;
    init takes boxes, and says what is left out.
    """
    coco_outlines(tmp_path / "coco", 3)
    mask_pixels.has_pycocotools.cache_clear()
    monkeypatch.setattr(mask_pixels.importlib.util, "find_spec", lambda name: None)
    try:
        with pytest.raises(UsageError, match=r"pip install -e '\.\[masks\]'"):
            make(tmp_path, COCO)
        chosen = init(tmp_path / "coco", tmp_path / "new.yaml", ENGINE)
    finally:
        mask_pixels.has_pycocotools.cache_clear()
    assert "polygons" not in chosen.text
    assert any("`polygons: masks` in `boxes` reads it" in note for note in chosen.passed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda masks: [masks[0], png(np.zeros((3, 3), np.uint8))],
            "size of the mask of its object 2: expected 41 x 82 pixels, got 3 x 3",
        ),
        (lambda masks: [b"no PNG", masks[1]], "the mask of its object 1: not a PNG"),
        (lambda masks: masks[:1], "the features of its boxes differ in length"),
    ],
)
def test_verify_finds_wrong_masks_of_objects(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], words: str
) -> None:
    """A mask of another size, one that is no PNG, and one too few,
    in a shard with right checksums.
    """
    coco_outlines(tmp_path / "coco", 3)
    make(tmp_path, f"{COCO}shards: 1\n")
    path = tmp_path / "out/train-00000-of-00001"
    (record,) = (
        record for record in records.read(path, lists=True) if len(record[f"{OBJECT}mask"]) == 2
    )
    records.write(
        tmp_path / "changed", [{**record, f"{OBJECT}mask": change(record[f"{OBJECT}mask"])}]
    )
    path.write_bytes((tmp_path / "changed").read_bytes())
    assert words in "\n".join(
        problem.detail for problem in verify(Layout(tmp_path / "out"), ENGINE).problems
    )


def test_verify_checks_masks_before_a_set_is_made(tmp_path: Path) -> None:
    """verify --config fills every outline: a panoptic PNG of another size is named."""
    panoptic_set(tmp_path / "coco", 3)
    (tmp_path / "r.yaml").write_text(PANOPTIC)
    assert prep_here("verify", "--config", tmp_path / "r.yaml").returncode == 0
    save(
        tmp_path / "coco/annotations/panoptic_val2017/000000000001.png",
        png(np.zeros((5, 6, 3), np.uint8)),
    )
    done = prep_here("verify", "--config", tmp_path / "r.yaml")
    assert done.returncode == 3
    assert "it has 6 x 5 pixels, the image has" in done.stdout
    assert "correct the mask or its size" in done.stdout + done.stderr
