"""Boxes and masks: those of COCO, Pascal VOC, YOLO and CSV in records,
equal to what other readers say; or refused.
"""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from existing import existing
from made_boxes import NAMES, coco_set, mask, photograph, voc_set, voc_xml, yolo_set
from made_tars import in_memory, save
from PIL import Image, ImageOps

import imagenet_prep
from imagenet_prep import Layout, PrepError, convert, make_engine, records, verify
from imagenet_prep.checks.examiner import check_objects
from imagenet_prep.errors import InputError
from imagenet_prep.model import Silent
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init

ENGINE = make_engine("threads", 2)
OBJECT = "image/object/"
EDGES = tuple(f"{OBJECT}bbox/{edge}" for edge in ("xmin", "ymin", "xmax", "ymax"))
COCO_TRAIN = "coco/annotations/instances_train2017.json"
COCO = f"source: {{files: coco/*2017/*.jpg}}\nboxes: {{coco: {COCO_TRAIN}}}\n"
VOC = "source: {files: voc/JPEGImages/*.jpg}\nboxes: {voc: voc/Annotations}\n"
YOLO = "source: {files: yolo/images/**/*.jpg}\nboxes: {yolo: yolo/labels, names: yolo/data.yaml}\n"
CSV = "source: {files: csv/*.jpg}\nboxes: {csv: csv/boxes.csv}\n"


def make(folder: Path, recipe: str) -> list[str]:
    """A set in folder/out, verified; returns the notes of the plan."""
    (folder / "r.yaml").write_text(recipe)
    progress = Silent()
    convert(
        Layout(folder / "out"), ENGINE, dataset=RecipeSet.read(folder / "r.yaml"), progress=progress
    )
    assert verify(Layout(folder / "out"), ENGINE).problems == ()
    return progress.notes


def by_name(folder: Path) -> dict[str, dict[str, Any]]:
    """Every record of the set by the last part of its file's name, by this package's own reader;
    all are lists.
    """
    names = {
        "image/filename",
        "image/source_id",
        "image/caption",
        f"{OBJECT}class/text",
        f"{OBJECT}view",
    }
    names |= {f"{OBJECT}keypoint/text", "image/segmentation/class/format"}
    found = records.read(str(folder / "out/train-*"), lists=True, text=names)
    return {each["image/filename"][0].rpartition("/")[2]: each for each in found}


def texts_in(folder: Path) -> dict[str, list[str]]:
    """The classes of the boxes of each record."""
    return {name: each[f"{OBJECT}class/text"] for name, each in by_name(folder).items()}


def by_tensorflow(folder: Path) -> dict[str, dict[str, Any]]:
    """Every record by the last part of its file's name,
    by tf.data and the features that feature_spec names.
    """
    tf = pytest.importorskip("tensorflow")
    from imagenet_prep.tensorflow import feature_spec

    spec, found = feature_spec(folder / "out"), {}
    for data in tf.data.TFRecordDataset(sorted(map(str, folder.glob("out/train-*")))):
        parsed = tf.io.parse_single_example(data, spec)
        values = {
            name: (tf.sparse.to_dense(each) if isinstance(each, tf.SparseTensor) else each).numpy()
            for name, each in parsed.items()
        }
        found[values["image/filename"].decode().rpartition("/")[2]] = values
    return found


def refusal(folder: Path, recipe: str) -> str:
    """The error against a recipe, in planning or in making, with its notes."""
    progress = Silent()
    (folder / "r.yaml").write_text(recipe)
    with pytest.raises(PrepError) as caught:
        convert(
            Layout(folder / "out"),
            ENGINE,
            dataset=RecipeSet.read(folder / "r.yaml"),
            progress=progress,
        )
    return "\n".join([str(caught.value), *progress.notes])


# equal to other readers ---------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_coco_is_as_pycocotools_reads_it(tmp_path: Path) -> None:
    """Images through tf.data: boxes, names, numbers, crowd and area of every object, in order."""
    coco = pytest.importorskip("pycocotools.coco")
    coco_set(tmp_path / "coco", 60)
    make(tmp_path, COCO)
    theirs, ours = (
        coco.COCO(str(tmp_path / "coco/annotations/instances_train2017.json")),
        by_tensorflow(tmp_path),
    )
    assert len(ours) == len(theirs.getImgIds()) == 60
    boxes = 0
    for image in theirs.loadImgs(theirs.getImgIds()):
        found, width, height = ours[image["file_name"]], image["width"], image["height"]
        several = theirs.loadAnns(theirs.getAnnIds(imgIds=[image["id"]], iscrowd=None))
        corners = [(x, y, x + w, y + h) for x, y, w, h in (each["bbox"] for each in several)]
        for number, (edge, side) in enumerate(zip(EDGES, (width, height) * 2, strict=True)):
            assert (
                found[edge].tolist()
                == np.array([each[number] / side for each in corners], np.float32).tolist()
            )
        assert found[f"{OBJECT}class/label"].tolist() == [each["category_id"] for each in several]
        names = [theirs.loadCats([each["category_id"]])[0]["name"].encode() for each in several]
        assert found[f"{OBJECT}class/text"].tolist() == names
        assert found[f"{OBJECT}is_crowd"].tolist() == [each["iscrowd"] for each in several]
        assert (
            found[f"{OBJECT}area"].tolist()
            == np.array([each["area"] for each in several], np.float32).tolist()
        )
        assert found["image/source_id"] == str(image["id"]).encode()
        boxes += len(several)
    assert boxes > 60


@pytest.mark.tensorflow
def test_voc_is_as_element_tree_reads_it(tmp_path: Path) -> None:
    """Images through tf.data: pixels divided by the size, and every flag;
    parts of objects are no objects.
    """
    voc_set(tmp_path / "voc", 60)
    make(tmp_path, VOC)
    ours = by_tensorflow(tmp_path)
    assert len(ours) == 60
    labels = {name: label for label, name in enumerate(sorted(NAMES), 1)}
    for path in existing(tmp_path / "voc/Annotations", "*.xml"):
        root, found = ElementTree.parse(path).getroot(), ours[f"{path.stem}.jpg"]
        several = root.findall("object")
        for name, edge in zip(EDGES, ("xmin", "ymin", "xmax", "ymax"), strict=True):
            side = int(root.find("size").find("width" if edge[0] == "x" else "height").text)  # type: ignore[union-attr,arg-type]
            values = [int(each.find("bndbox").find(edge).text) / side for each in several]  # type: ignore[union-attr,arg-type]
            assert found[name].tolist() == np.array(values, np.float32).tolist()
        texts = [each.findtext("name", "") for each in several]
        assert found[f"{OBJECT}class/text"].tolist() == [text.encode() for text in texts]
        assert found[f"{OBJECT}class/label"].tolist() == [labels[text] for text in texts]
        assert found[f"{OBJECT}view"].tolist() == [
            each.findtext("pose", "").encode() for each in several
        ]
        for flag in ("difficult", "truncated"):
            assert found[OBJECT + flag].tolist() == [
                int(each.findtext(flag, "")) for each in several
            ]


@pytest.mark.parametrize("first", [None, 0])
def test_yolo_is_as_its_formula(tmp_path: Path, first: int | None) -> None:
    """Centre minus and plus half of the size; classes count from 1, or from first_label;
    no file is no object.
    """
    yolo_set(tmp_path / "yolo")
    recipe = YOLO if first is None else YOLO.replace("names:", "first_label: 0, names:")
    assert any(
        "without an annotation: yolo/images/train/5.jpg" in note for note in make(tmp_path, recipe)
    )
    found = by_name(tmp_path)
    for number in range(6):
        path = tmp_path / f"yolo/labels/train/{number}.txt"
        rows = (
            [list(map(float, line.split())) for line in path.read_text().splitlines()]
            if path.exists()
            else []
        )
        one = found[f"{number}.jpg"]
        for edge, (centre, size, sign) in zip(
            EDGES, ((1, 3, -1), (2, 4, -1), (1, 3, 1), (2, 4, 1)), strict=True
        ):
            assert one[edge] == pytest.approx(
                [row[centre] + sign * row[size] / 2 for row in rows], abs=1e-6
            )
        assert one[f"{OBJECT}class/label"] == [
            int(row[0]) + (1 if first is None else first) for row in rows
        ]
        assert one[f"{OBJECT}class/text"] == [NAMES[int(row[0])] for row in rows]


CSVS = {
    "pixels with sizes": "filename,width,height,class,xmin,ymin,xmax,ymax\n{n},80,40,dog,8,4,40,20\n",
    "pixels alone": "image;x1;y1;x2;y2;label\n{n};8;4;40;20;dog\n",
    "sizes under other names": "file,class,left,top,wide,high\n{n},dog,8,4,32,16\n",
    "relative": "ImageID,LabelName,XMin,XMax,YMin,YMax\n{s},dog,0.1,0.5,0.1,0.5\n",
}


NAMED = {
    "sizes under other names": (
        ", columns: {xmin: left, ymin: top, box_width: wide, box_height: high}"
    )
}


@pytest.mark.parametrize("name", CSVS)
def test_boxes_of_a_csv(tmp_path: Path, name: str) -> None:
    """In pixels of the size that it says or that the image has, or relative;
    a row without corners is no object.
    """
    save(tmp_path / "csv/a.jpg", photograph(80, 40))
    save(tmp_path / "csv/b.jpg", photograph(80, 40))
    save(tmp_path / "csv/boxes.csv", CSVS[name].format(n="a.jpg", s="a"))
    options = f", unannotated: empty{NAMED.get(name, '')}"
    make(tmp_path, CSV.replace("boxes.csv", f"boxes.csv{options}"))
    found = by_name(tmp_path)
    assert [found["a.jpg"][edge] for edge in EDGES] == [
        pytest.approx([side]) for side in (0.1, 0.1, 0.5, 0.5)
    ]
    assert found["a.jpg"][f"{OBJECT}class/text"] == ["dog"]
    assert found["b.jpg"][EDGES[0]] == found["b.jpg"][f"{OBJECT}class/label"] == []


def test_key_points_and_captions_are_kept(tmp_path: Path) -> None:
    """Key points relative to the image, zeros for objects without;
    several captions of an image in order.
    """
    value = coco_set(tmp_path / "coco", points=True)
    captions = [
        {"id": k, "image_id": value["images"][k % 6]["id"], "caption": f"c{k}\n"} for k in range(9)
    ]
    save(tmp_path / "coco/c.json", json.dumps({"images": value["images"], "annotations": captions}))
    make(tmp_path, COCO.replace(".json}", ".json, captions: coco/c.json}"))
    found, images = by_name(tmp_path), {each["id"]: each for each in value["images"]}
    for number, image in enumerate(value["images"]):
        one = found[image["file_name"]]
        assert one["image/caption"] == [f"c{k}" for k in range(9) if k % 6 == number]
        assert len(one[f"{OBJECT}keypoint/x"]) == 2 * len(one[f"{OBJECT}class/label"])
    (x, y) = next(each["keypoints"][:2] for each in value["annotations"] if "keypoints" in each)
    image = images[next(each["image_id"] for each in value["annotations"] if "keypoints" in each)]
    one = found[image["file_name"]]
    place = one[f"{OBJECT}class/text"].index("dog")
    assert one[f"{OBJECT}keypoint/x"][2 * place : 2 * place + 2] == pytest.approx(
        [x / image["width"], 0]
    )
    assert one[f"{OBJECT}keypoint/y"][2 * place : 2 * place + 2] == pytest.approx(
        [y / image["height"], 0]
    )
    assert one[f"{OBJECT}keypoint/visibility"][2 * place : 2 * place + 2] == [2, 0]
    assert one[f"{OBJECT}keypoint/text"][2 * place : 2 * place + 2] == ["nose", "tail"]
    assert one[f"{OBJECT}keypoint/num"][place] == 1


# EXIF and sizes -----------------------------------------------------------------------------------

HOW = {"kept": "", "re-encoded": "quality: 95\n", "resized": "resize: 32\n"}


@pytest.mark.parametrize(
    ("orientation", "how"),
    [*((number, "re-encoded") for number in range(2, 9)), (6, "kept"), (5, "resized")],
)
def test_boxes_points_and_mask_turn_with_the_image(
    tmp_path: Path, orientation: int, how: str
) -> None:
    """As exif_transpose turns a picture of the box, of the point and of the mask;
    a kept image is not turned.
    """
    width, height, (x, y, w, h) = 80, 48, (8, 12, 40, 24)
    data = photograph(width, height, orientation=orientation)
    save(tmp_path / "coco/train2017/a.jpg", data)
    values = np.zeros((height, width), np.uint8)
    values[y : y + h, x : x + w] = 7
    values[y, x] = 9
    tags, picture = Image.Exif(), Image.fromarray(values)
    save(tmp_path / "masks/a.png", in_memory(lambda file: picture.save(file, "PNG")))
    each = {"image_id": 1, "category_id": 1, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}
    each["keypoints"] = [x, y, 2, 0, 0, 0]
    image = {"id": 1, "file_name": "a.jpg", "width": width, "height": height}
    category = {"id": 1, "name": "dog", "keypoints": ["a", "b"]}
    value = {"images": [image], "annotations": [each], "categories": [category]}
    save(tmp_path / "coco/annotations/instances_train2017.json", json.dumps(value))
    make(tmp_path, COCO + "mask: {folder: masks, match: stem}\n" + HOW[how])
    (one,) = by_name(tmp_path).values()
    tags[0x0112] = 1 if how == "kept" else orientation
    stored = Image.open(io.BytesIO(in_memory(lambda file: picture.save(file, "PNG", exif=tags))))
    expected = np.asarray(ImageOps.exif_transpose(stored))
    rows, columns = np.nonzero(expected)
    sides = expected.shape[1], expected.shape[0]
    box = (
        columns.min() / sides[0],
        rows.min() / sides[1],
        (columns.max() + 1) / sides[0],
        (rows.max() + 1) / sides[1],
    )
    assert [one[edge][0] for edge in EDGES] == pytest.approx(box)
    (row,), (column,) = np.nonzero(expected == 9)
    point = one[f"{OBJECT}keypoint/x"][0] * sides[0], one[f"{OBJECT}keypoint/y"][0] * sides[1]
    assert abs(point[0] - column) <= 1
    assert abs(point[1] - row) <= 1
    assert (one[f"{OBJECT}keypoint/x"][1], one[f"{OBJECT}keypoint/y"][1]) == (0, 0)
    size = one["image/width"][0], one["image/height"][0]
    assert one[f"{OBJECT}area"] == pytest.approx([w * h * size[0] * size[1] / (width * height)])
    with Image.open(io.BytesIO(one["image/segmentation/class/encoded"][0])) as found:
        assert found.size == size
        if how == "resized":
            inside = np.nonzero(np.asarray(found) > 0)
            assert np.min(inside, axis=1) / size[::-1] == pytest.approx(
                np.array(box[1::-1]), abs=0.05
            )
            assert set(np.unique(np.asarray(found))) <= {0, 7, 9}
        else:
            assert (np.asarray(found) == expected).all()
    with Image.open(io.BytesIO(one["image/encoded"][0])) as found:
        assert found.size == size


def test_keypoints_without_names_and_outlines_are_named(tmp_path: Path) -> None:
    """A note of each in convert, whose records have boxes alone; an empty list is no outline. init
    says which object has none instead: with it no mask can be read.
    """
    coco_set(tmp_path / "coco", points=True)
    change_coco(tmp_path, lambda v: [each.pop("keypoints", None) for each in v["categories"]])
    change_coco(tmp_path, lambda v: [each.update(segmentation=[]) for each in v["annotations"]])
    points = (
        "instances_train2017.json: keypoints are not read: no category has a list `keypoints` "
        "of their names"
    )
    outlines = (
        "instances_train2017.json: segmentation is not read, only boxes; `polygons: "
        "masks` in `boxes` reads it"
    )
    notes = make(tmp_path, COCO)
    assert points in notes
    assert outlines not in notes
    change_coco(tmp_path, lambda v: v["annotations"][0].update(segmentation=[[1, 1, 9, 1, 9, 9]]))
    assert {points, outlines} <= {*make(tmp_path, COCO)}
    notes_of_init = init(tmp_path / "coco", tmp_path / "new.yaml", ENGINE).passed
    assert points in notes_of_init
    assert outlines not in notes_of_init
    assert any(note.startswith("masks of objects are left out: ") for note in notes_of_init)


# masks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        *((mode, "resized") for mode in ("P", "L", "I;16", "RGB", "1")),
        ("P", "kept"),
        ("L", "re-encoded"),
    ],
)
def test_masks_of_every_mode(tmp_path: Path, mode: str, how: str) -> None:
    """The same bytes with an image that is kept; its values and its palette at any other size."""
    content = mask(80, 48, mode)
    save(tmp_path / "images/a.jpg", photograph(80, 48))
    save(tmp_path / "masks/a_mask.png", content)
    make(tmp_path, "source: {files: images/*.jpg}\nmask: {folder: masks}\n" + HOW[how])
    (one,) = by_name(tmp_path).values()
    (found,) = one["image/segmentation/class/encoded"]
    assert one["image/segmentation/class/format"] == ["png"]
    if how != "resized":
        assert found == content
        return
    with Image.open(io.BytesIO(content)) as before, Image.open(io.BytesIO(found)) as after:
        assert (after.size, after.mode) == ((53, 32), before.mode)
        assert after.getpalette() == before.getpalette()
        assert (
            np.asarray(after) == np.asarray(before.resize((53, 32), Image.Resampling.NEAREST))
        ).all()


@pytest.mark.parametrize("grows", [False, True])
def test_a_mask_that_was_written_again_is_refused(tmp_path: Path, grows: bool) -> None:
    """As an image is, even of the same length: the folder is named. Unchanged masks are made no
    second time.

    Its ending may have any case.
    """
    save(tmp_path / "images/a.jpg", photograph(80, 48))
    save(tmp_path / "masks/a.PNG", mask(80, 48))
    recipe = (
        "source: {files: images/*.jpg}\nmask: {folder: masks, match: stem}\n"
        + "grow: true\n" * grows
    )
    make(tmp_path, recipe)
    make(tmp_path, recipe)
    os.utime(tmp_path / "masks/a.PNG", ns=(1, 1))
    assert f"the file times of masks in {tmp_path / 'masks'} differ: " in refusal(tmp_path, recipe)


# refusals -----------------------------------------------------------------------------------------


def change_coco(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the annotations of COCO."""
    path = folder / "coco/annotations/instances_train2017.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


CSV_ROWS = "file,width,height,class,xmin,ymin,xmax,ymax\na.jpg,80,40,dog,8,4,40,20\n"
XML = voc_xml(80, 48, "").replace("%s", "a.jpg")
MAKERS: Mapping[str, Callable[[Path], object]] = {
    "coco": coco_set,
    "voc": voc_set,
    "yolo": yolo_set,
    "csv": lambda folder: (
        save(folder / "a.jpg", photograph(80, 40)),
        save(folder / "boxes.csv", CSV_ROWS),
    ),
    "in": lambda folder: save(folder / "a.jpg", photograph(80, 48)),
}
Harm = Callable[[Path], object]


def coco(change: Callable[[dict[str, Any]], object]) -> Harm:
    """Change the annotations of COCO."""
    return lambda folder: change_coco(folder, change)


def item(kind: str, number: int, **values: Any) -> Harm:
    """Give one of COCO's annotations, images or categories other values."""
    return coco(lambda value: value[kind][number].update(values))


def voc(old: str, new: str) -> Harm:
    """Put a text in place of another in the first annotation of VOC."""

    def change(folder: Path) -> None:
        path = folder / "voc/Annotations/2007_000000.xml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    return change


def saves(name: str, content: bytes | str | None) -> Harm:
    """Write a file, or remove it."""
    return lambda folder: (
        (folder / name).unlink() if content is None else save(folder / name, content)
    )


def yolo(line: str) -> Harm:
    """Give an image of YOLO one more line."""
    return saves("yolo/labels/train/0.txt", f"0 0.5 0.5 0.1 0.1\n{line}\n")


def csv(row: str) -> Harm:
    """Give the CSV one more row."""
    return saves("csv/boxes.csv", f"{CSV_ROWS}{row}\n")


def nothing(folder: Path) -> None:
    """Leave all as it is: the recipe is at fault."""


def other_images_and_a_license(folder: Path) -> None:
    """Give the annotations of VOC names of no image, and put a text next to them."""
    for path in existing(folder, "voc/Annotations/*.xml"):
        path.rename(path.with_name(f"x{path.name}"))
    save(folder / "voc/Annotations/LICENSE", "free")


ONE = "source: {files: in/*}\n"
XMLS = ONE + "boxes: {voc: xml}\n"
MASKS = ONE + "mask: {folder: m}\n"
POINTS: dict[str, Any] = {"category_id": 1, "keypoints": [1, 2, 1e30]}
MORE = {"id": 1, "file_name": "x.jpg", "width": 9, "height": 9}
FAULTS: Mapping[str, tuple[str, Harm, str]] = {
    "COCO: no category": (
        COCO,
        item("annotations", 2, category_id=5),
        "annotations[2] (id 3): category_id 5 is the id of no category; ex",
    ),
    "COCO: no category_id": (
        COCO,
        coco(lambda v: v["annotations"][2].pop("category_id")),
        "annotations[2] (id 3): category_id is missing; expected the id of one",
    ),
    "COCO: outside": (
        COCO,
        item("annotations", 0, bbox=[0, 0, 500, 3]),
        "a box of xmin 0, ymin 0, xmax 500, ymax 3 leads out",
    ),
    "COCO: two pixels outside": (
        COCO,
        item("annotations", 0, bbox=[-2, 0, 5, 3]),
        "a box of xmin -2, ymin 0, xmax 3, ymax 3 leads out of",
    ),
    "COCO: reversed": (COCO, item("annotations", 0, bbox=[9, 9, -5, 3]), "xmin <= xmax"),
    "COCO: no size": (
        COCO,
        item("images", 1, width=0),
        "images[1] (id 10): the size of the image is given as 0 x",
    ),
    "COCO: a width beyond all numbers": (
        COCO,
        item("images", 1, width=10**400),
        "images[1] (id 10): the size of the image is given as over 9,007,199,254,740,992 x ",
    ),
    "COCO: two names": (
        COCO,
        coco(lambda v: v["categories"].append({"id": 1, "name": "x"})),
        "the name is 'x' here, and 'person' earlier in this file",
    ),
    "COCO: two names in two files": (
        COCO.replace(COCO_TRAIN, f"[{COCO_TRAIN}, other.json]"),
        saves(
            "other.json",
            '{"images": [], "annotations": [], "categories": [{"id": 1, "name": "x"}]}',
        ),
        "other.json: category 1: the name is 'x' here, and 'person' in /",
    ),
    "COCO: cut": (
        COCO,
        saves("coco/annotations/instances_train2017.json", '{"images": [{"id": 1'),
        "instances_train2017.json: the JSON ends too early; expected a COCO file",
    ),
    "COCO: deep": (
        COCO,
        saves("coco/annotations/instances_train2017.json", '{"a": ' * 50_000),
        "instances_train2017.json: the JSON is nested too deep; expected a COCO file",
    ),
    "COCO: no key": (
        COCO,
        coco(lambda v: v["images"][1].pop("file_name")),
        "json: images[1]: the key file_name is missing; expected a COCO file",
    ),
    "COCO: NaN": (
        COCO,
        item("annotations", 0, bbox=[float("nan"), 0, 5, 3]),
        "json: JSON is malformed",
    ),
    "COCO: a box of three": (
        COCO,
        item("annotations", 1, bbox=[1, 2, 3]),
        "json: annotations[1].bbox: expected a list of length 4; expected a COCO file",
    ),
    "COCO: no box": (
        COCO,
        coco(lambda v: v["annotations"][1].pop("bbox")),
        "annotations[1] (id 2): the object has no bbox; expected a bbox or a segmentation",
    ),
    "COCO: no such image": (
        COCO,
        item("annotations", 1, image_id=999),
        "image_id 999 is the id of no image; expected the id of one of the",
    ),
    "COCO: an image twice": (
        COCO,
        coco(lambda v: v["images"].append(v["images"][0])),
        "_000000.jpg, is also that of an earlier image",
    ),
    "COCO: an id twice": (
        COCO,
        coco(lambda v: v["images"][1].update(id=v["images"][0]["id"])),
        "its id is also that of train2017_000000.jpg; expected each image only once",
    ),
    "COCO: an outline, and an object without a box or an outline": (
        COCO,
        coco(
            lambda v: (
                v["annotations"][0].update(segmentation=[[1, 1, 9, 1, 9, 9]]),
                v["annotations"][1].pop("bbox"),
            )
        ),
        "annotations[1] (id 2): the object has no bbox; expected a box; if it has an outline, write",
    ),
    "COCO: no such file": (
        COCO,
        coco(lambda v: v["images"].append(MORE)),
        "1 annotation without an image: x.jpg",
    ),
    "COCO: an image less": (
        COCO,
        coco(lambda v: v["images"].pop(0)),
        "1 image without an annotation",
    ),
    "COCO: another size": (
        COCO,
        item("images", 1, width=99),
        "its boxes are for an image of 99 x ",
    ),
    "COCO: odd key points": (
        COCO,
        coco(
            lambda v: (
                v["categories"][0].update(keypoints=["a"]),
                v["annotations"][0].update(keypoints=[1, 2], category_id=v["categories"][0]["id"]),
            )
        ),
        "keypoints has 2 numbers; expected 3: x, y and visibility of 1 key point",
    ),
    "COCO: key points of a category that names none": (
        COCO,
        coco(
            lambda v: (
                v["categories"][0].update(keypoints=["a"]),
                v["annotations"][0].update(
                    keypoints=[1, 2, 2], category_id=v["categories"][1]["id"]
                ),
            )
        ),
        "annotations[0] (id 1): `keypoints` of its category has 0 names; expected 1, as in another",
    ),
    "COCO: a visibility beyond 64 bits": (
        COCO,
        coco(
            lambda v: (
                v["categories"][0].update(keypoints=["a"]),
                [a.update(POINTS) for a in v["annotations"]],
            )
        ),
        "annotations[0] (id 1): a keypoint's visibility is 1e+30; expected 0, 1 or 2",
    ),
    "COCO: category beyond 64 bits": (
        COCO,
        item("categories", 0, id=2**70),
        "categories[0].id: expected a whole number <= 92233",
    ),
    "VOC: another size": (
        VOC,
        voc("<width>", "<width>1"),
        "2007_000000.jpg: its boxes are for an image of 1",
    ),
    "VOC: the remedy for another size": (
        VOC,
        voc("<width>", "<width>1"),
        "; correct the annotated size, or use the image that was annotated; or leave",
    ),
    "VOC: a size of 0": (
        VOC,
        voc("<width>", "<width>0</width><width>"),
        "xml: the size of the image is given as 0 x",
    ),
    "VOC: outside": (VOC, voc("<xmax>", "<xmax>1"), "xml: object 1: a box of"),
    "VOC: no name": (
        VOC,
        voc("<name>", "<nom/><name></name><name>"),
        "object 1: the object has no class in <name>",
    ),
    "VOC: no number": (VOC, voc("<ymin>", "<ymin>x"), "object 1: <ymin>: 'x"),
    "VOC: not finite": (
        VOC,
        voc("<ymin>", "<ymin>nan</ymin><ymin>"),
        "<ymin>: 'nan' is not a valid number; expected a number of at most 15 digits",
    ),
    "VOC: no ymin": (
        VOC,
        voc("<ymin>", "<ymin></ymin><ymin>"),
        "object 1: <ymin>: the number is missing; expected a number of",
    ),
    "VOC: other images, and a file without an ending": (
        VOC,
        other_images_and_a_license,
        "voc/Annotations: 6 files have annotations, but none has the name of an image; expected a name such "
        "as 2007_000000.xml for the image voc/JPEGImages/2007_000000.jpg, got ",
    ),
    "VOC: an entity": (
        VOC,
        voc("<annotation>", "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation>"),
        "it holds <!DOCTYPE; expected XML without <!DOCTYPE; remove",
    ),
    "VOC: no XML": (VOC, voc("</annotation>", ""), "2007_000000.xml: the XML can't be read: "),
    "VOC: a strange class": (
        VOC.replace("ns}", "ns, names: [dog]}"),
        nothing,
        "' is not in `names`; expected dog",
    ),
    "VOC: no annotation": (
        VOC,
        saves("voc/Annotations/2007_000003.xml", None),
        ": voc/JPEGImages/2007_000003",
    ),
    "VOC: no image": (
        VOC,
        saves("voc/JPEGImages/2007_000003.jpg", None),
        "an image: voc/Annotations/2007_000003.xml",
    ),
    "YOLO: pixels": (
        YOLO,
        yolo("0 12 30 8 9"),
        "line 2: the number 12 (value 2 of the line) is too large; expected numbers from 0 to 1",
    ),
    "YOLO: a polygon in pixels": (
        YOLO,
        yolo("0 .1 .2 .3 .4 .5 .6 -7.5 .2"),
        "line 2: the number -7.5 (value 8 of the line) is too small; expected numbers from 0 to 1",
    ),
    "YOLO: one word": (
        YOLO,
        yolo("0"),
        "line 2: the line has 1 value; expected 5: class, x, y, width, height",
    ),
    "YOLO: a number without a name": (
        YOLO,
        lambda folder: (
            save(folder / "yolo/data.yaml", "names: {0: a, 1: b, 2: c, 4: d}\n"),
            yolo("3 0.5 0.5 0.1 0.1")(folder),
        ),
        "line 2: class 3 has no name in data.yaml; expected a name for every class of a box",
    ),
    "YOLO: an empty list of names": (
        YOLO.replace("data.yaml", "classes.txt"),
        saves("yolo/classes.txt", "\n"),
        "yolo/classes.txt: it names no class; expected the name of a class in each line",
    ),
    "YOLO: names that are not there": (
        YOLO.replace("data.yaml", "classes.txt"),
        lambda folder: (folder / "yolo/classes.txt").symlink_to("gone"),
        "yolo/classes.txt is a broken link; expected a file of the names of the classes",
    ),
    "YOLO: no key of names": (
        YOLO,
        saves("yolo/data.yaml", "train: x\n"),
        "data.yaml: it has no key `names`; expected the names of the classes",
    ),
    "YOLO: an empty name": (
        YOLO,
        saves("yolo/data.yaml", "names: {0: a, 1: ''}"),
        "data.yaml: class 1 has no name; expected whole numbers from 0",
    ),
    "YOLO: centre outside": (
        YOLO,
        yolo("0 0.5 1.5 0.1 0.1"),
        "line 2: a box of xmin 0.45, ymin 1.45, xmax 0.55, ymax 1.55 leads out of",
    ),
    "YOLO: a class too many": (
        YOLO,
        yolo("3 0.5 0.5 0.1 0.1"),
        "line 2: the class is 3; expected 0 to 2",
    ),
    "YOLO: a polygon": (
        YOLO,
        yolo("0 0.1 0.1 0.2 0.1 0.2 0.2"),
        "line 2: the object is a polygon; expected a box",
    ),
    "YOLO: outside": (
        YOLO,
        yolo("0 0.05 0.5 0.2 0.1"),
        "line 2: a box of xmin -0.05, ymin 0.45, xmax 0.15, ymax 0.55 leads out of",
    ),
    "YOLO: no names": (
        YOLO.replace(", names: yolo/data.yaml", ""),
        nothing,
        "it has no key `names`",
    ),
    "YOLO: no YAML": (
        YOLO,
        saves("yolo/data.yaml", "a: b\nnames: ["),
        "yolo/data.yaml, line 2: not valid YAML",
    ),
    "YOLO: deep names": (
        YOLO,
        saves("yolo/data.yaml", "names: " + "[" * 9_000),
        "line 1: values are nested too deep",
    ),
    "YOLO: empty names": (
        YOLO,
        saves("yolo/data.yaml", "names: []"),
        "data.yaml: `names` lists no class",
    ),
    "YOLO: names without numbers": (
        YOLO,
        saves("yolo/data.yaml", "names: {a: cat}"),
        "data.yaml: 'a' is not the number of a class; expected whole numbers from 0",
    ),
    "YOLO: a name twice": (
        YOLO,
        saves("yolo/data.yaml", "names: [a, b, a]"),
        "yolo/data.yaml: the class a occurs 2 times; expected each class once",
    ),
    "YOLO: a name three times": (
        YOLO.replace("yolo/data.yaml", "[a, a, a]"),
        nothing,
        "`names` in the recipe's `boxes`: the class a occurs 3 times",
    ),
    "YOLO: no image": (
        YOLO,
        saves("yolo/labels/train/x.txt", ""),
        "annotation without an image: yolo/labels/train/x",
    ),
    "CSV: not finite": (CSV, csv("a.jpg,80,40,dog,8,inf,9,20"), "boxes.csv, line 3: ymin: 'inf'"),
    "CSV: two sizes": (
        CSV,
        csv("a.jpg,90,40,dog,8,4,40,20"),
        "line 3: the size of the image is given as 90 x 40 pixels; expected 80 x 40, as in an earlier row",
    ),
    "CSV: a short row": (CSV, csv("a.jpg,80"), "line 3: 8 columns expected, 2 found"),
    "CSV: an open quote": (
        CSV,
        csv('a.jpg,80,40,"dog,8,4,40,20'),
        "boxes.csv, line 3: a quotation mark opens a cell",
    ),
    "CSV: no class": (CSV, csv("a.jpg,80,40,,8,4,40,20"), "line 3: the row has no class"),
    "CSV: no image": (
        CSV,
        csv(",80,40,dog,8,4,40,20"),
        "line 3: the row has no name of an image",
    ),
    "CSV: no corner": (
        CSV,
        csv("a.jpg,80,40,dog,8,,40,20"),
        "line 3: ymin: the number is missing; expected a number of",
    ),
    "CSV: no such part of a box": (
        CSV.replace("boxes.csv}", "boxes.csv, columns: {left: xmin}}"),
        nothing,
        "`columns` in the recipe's `boxes` has the unknown key left; expected keys among path, label",
    ),
    "VOC: annotations in folders of their own": (
        XMLS,
        saves("xml/x/1/a.xml", XML),
        "xml: the annotations are in other folders than their images; "
        "expected a.xml in a folder like that of the image in/a.jpg, got xml/x/1/a.xml; "
        "name each folder that holds such files in the recipe's `boxes`: xml/x/1",
    ),
    "VOC: a folder without annotations": (
        XMLS,
        lambda folder: (folder / "xml").mkdir(),
        "xml: no file of annotations; expected a file of annotations with the name",
    ),
    "CSV: sizes under other names": (
        CSV,
        saves("csv/boxes.csv", "file,class,xmin,ymin,wide,high\na.jpg,dog,1,2,3,4\n"),
        "for boxes with a width and a height: {box_width: COLUMN, box_height: COLUMN}",
    ),
    "CSV: one size under another name": (
        CSV.replace("boxes.csv}", "boxes.csv, columns: {box_width: wide}}"),
        saves("csv/boxes.csv", "file,class,x,y,wide,high\na.jpg,dog,1,2,3,4\n"),
        "no column for box_height; the table has file, class, x, y, wide, high",
    ),
    "CSV: a column that is named, and not there": (
        CSV.replace("boxes.csv}", "boxes.csv, columns: {label: kind}}"),
        nothing,
        "boxes.csv: no column kind for label; the table has file",
    ),
    "names of classes in three columns": (
        CSV.replace("boxes.csv}", "boxes.csv, names: csv/names.csv}"),
        saves("csv/names.csv", "dog,0\ncat,1,2\n"),
        "csv/names.csv, line 2: the line has 3 values; expected lines of two values",
    ),
    "names of classes in an empty text": (
        CSV.replace("boxes.csv}", "boxes.csv, names: csv/classes.txt}"),
        saves("csv/classes.txt", "\n"),
        "csv/classes.txt: it names no class; expected the name of a class in each line",
    ),
    "names of classes in an empty CSV": (
        CSV.replace("boxes.csv}", "boxes.csv, names: csv/names.csv}"),
        saves("csv/names.csv", ""),
        "csv/names.csv: it names no class; expected lines of two values",
    ),
    "CSV: not UTF-8": (
        CSV,
        csv("a.jpg,80,40,\udcff,8,4,40,20"),
        "boxes.csv, line 3: it is not UTF-8",
    ),
    "CSV: no such image": (
        CSV,
        csv("b.jpg,80,40,dog,8,4,40,20"),
        "1 annotation without an image: b.jpg",
    ),
    "CSV: no column": (
        CSV,
        saves("csv/boxes.csv", "file,class,left\na.jpg,dog,1\n"),
        "no column for xmin; ",
    ),
    "no annotations": (
        XMLS,
        nothing,
        "xml is not there; expected a folder of annotations; relative paths start at --raw",
    ),
    "CUB: no names": (
        ONE + "boxes: {cub: bounding_boxes.txt}\n",
        saves("bounding_boxes.txt", "1 1 1 2 2\n"),
        "images.txt is not there; expected the names of images next to",
    ),
    "annotations behind a broken link": (
        XMLS,
        lambda folder: (folder / "xml").symlink_to("gone"),
        "xml is a broken link; expected a folder of annotations",
    ),
    "two images of one name": (
        XMLS,
        lambda folder: (
            save(folder / "in/a.png", photograph(80, 48, form="PNG")),
            save(folder / "xml/a.xml", XML),
        ),
        "a.xml fits in/a.jpg and in/a.png",
    ),
    "two annotations of one name": (
        XMLS,
        lambda folder: (
            save(folder / "xml/labels/a.xml", XML),
            save(folder / "xml/annotations/a.xml", XML),
        ),
        "several annotations fit in/a.jpg: xml/annotations/a.xml, xml/labels/a.xml",
    ),
    "annotated when turned": (
        XMLS,
        saves("xml/a.xml", voc_xml(48, 80, "")),
        "has 80 x 48: width and height are swapped, perhaps by an EXIF",
    ),
    "a mask of another size": (
        MASKS,
        saves("m/a.png", mask(48, 80)),
        "its mask m/a.png has 48 x 80 pixels",
    ),
    "the remedy for a mask of another size": (
        MASKS,
        saves("m/a.png", mask(48, 80)),
        "; replace the mask, or use the image that it was made for; or leave out the image",
    ),
    "a mask that is cut": (
        MASKS,
        saves("m/a.png", mask(80, 48)[:-20]),
        "its mask m/a.png: the PNG has no end (IEND)",
    ),
    "the remedy for a mask that is cut": (
        MASKS,
        saves("m/a.png", mask(80, 48)[:-20]),
        "m/a.png: the PNG has no end (IEND): it may be cut short or damaged; "
        "replace the mask; or leave out the image: --on-damaged skip",
    ),
    "an image without a mask": (
        MASKS,
        saves("m/b.png", mask(80, 48)),
        "m: 1 image without a mask: in/a.jpg",
    ),
    "a mask without an image": (
        MASKS,
        lambda folder: [save(folder / name, mask(80, 48)) for name in ("m/a.png", "m/b.png")],
        "m: 1 mask without an image: m/b.png; every image needs a mask, and every mask an image; "
        "to leave them out, write in the recipe's `mask`: missing: ignore",
    ),
    "masks of other images": (
        ONE + "mask: {folder: m, unmasked: skip, missing: ignore}\n",
        saves("m/b.png", mask(80, 48)),
        "m: no mask has the name of an image; expected masks such as a.png for in/a.jpg",
    ),
    "a mask that is a JPEG": (
        MASKS,
        saves("m/a.png", photograph(80, 48)),
        "its mask m/a.png: its format is JPEG, which may change the values of a mask: "
        "expected PNG, GIF, BMP or TIFF",
    ),
    "names of COCO": (
        ONE + "boxes: {coco: a.json, names: [a]}\n",
        nothing,
        "boxes.names: it can't be combined with coco",
    ),
    "two kinds": (ONE + "boxes: {voc: xml, yolo: txt}\n", nothing, "boxes: it has voc and yolo"),
    "Inception's records": (
        XMLS + "record: inception\n",
        nothing,
        "boxes: it can't be combined with record: inception",
    ),
    "numbers": (
        XMLS + "content: pixels\n",
        nothing,
        "boxes: it can't be combined with content: pixels",
    ),
    "an unknown key": (ONE + "boxes: {vok: xml}\n", nothing, "boxes.vok: no such key"),
    "a wrong type": (
        XMLS + "record: {a: {from: boxes.xmin, type: int64}}\n",
        saves("xml/a.xml", XML),
        "the column boxes.xmin can't be of type int64",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """Every fault of annotations: the error names the file and the line or key,
    what is wrong and what is right.
    """
    recipe, harm, said = FAULTS[name]
    for folder, maker in MAKERS.items():
        if f"{folder}/" in recipe:
            maker(tmp_path / folder)
    harm(tmp_path)
    assert said in "; ".join(refusal(tmp_path, recipe).splitlines())


def test_boxes_a_hair_outside_are_cut(tmp_path: Path) -> None:
    """COCO has a few, by rounding: they are counted and named, and need no policy."""

    def change(value: dict[str, Any]) -> None:
        image = value["images"][1]
        value["annotations"][0].update(bbox=[-0.5, 0, image["width"] + 1, 10])

    coco_set(tmp_path / "coco")
    change_coco(tmp_path, change)
    notes = make(tmp_path, COCO)
    assert any(
        note.startswith("1 box cut at the edge of the image") and "annotations[0]" in note
        for note in notes
    )
    one = by_name(tmp_path)["train2017_000001.jpg"]
    assert (one[EDGES[0]], one[EDGES[2]]) == ([0], [1])


@pytest.mark.parametrize(("policy", "count"), [("skip", 5), ("empty", 6)])
def test_images_without_annotation_by_choice(tmp_path: Path, policy: str, count: int) -> None:
    """Left out, or kept without boxes; annotations without an image are ignored:
    both are counted and named.
    """
    voc_set(tmp_path / "voc")
    (tmp_path / "voc/Annotations/2007_000003.xml").unlink()
    save(tmp_path / "voc/Annotations/x.xml", XML)
    notes = make(
        tmp_path,
        VOC.replace(
            "}\nboxes: {voc: ", f"}}\nboxes: {{unannotated: {policy}, missing: ignore, voc: "
        ),
    )
    assert any(
        "1 image without an annotation: voc/JPEGImages/2007_000003.jpg" in note for note in notes
    )
    assert any("1 annotation without an image: voc/Annotations/x.xml" in note for note in notes)
    assert len(by_name(tmp_path)) == count
    assert imagenet_prep.open(tmp_path / "out", "train")[0].label is None


@pytest.mark.parametrize(("form", "orientation"), [("TIFF", 6), ("WEBP", 8)])
def test_boxes_of_turned_images_of_other_formats(
    tmp_path: Path, form: str, orientation: int
) -> None:
    """A TIFF is read turned, and annotated so; a WebP is annotated as it is stored,
    and turned with its boxes.
    """
    ending = {"TIFF": "tif", "WEBP": "webp"}[form]
    save(tmp_path / f"in/a.{ending}", photograph(80, 48, orientation=orientation, form=form))
    width, height = (48, 80) if form == "TIFF" else (80, 48)
    row = f"a.{ending},{width},{height},dog,0,0,{width // 4},{height // 2}\n"
    save(tmp_path / "b.csv", f"file,width,height,class,xmin,ymin,xmax,ymax\n{row}")
    make(tmp_path, "source: {files: in/*}\nboxes: {csv: b.csv}\n")
    (one,) = by_name(tmp_path).values()
    assert (one["image/width"][0], one["image/height"][0]) == (48, 80)
    expected = (0, 0.75, 0.5, 1) if form == "WEBP" else (0, 0, 0.25, 0.5)
    assert [one[edge][0] for edge in EDGES] == pytest.approx(expected)


def test_images_of_one_stem_are_told_apart(tmp_path: Path) -> None:
    """Ids without an ending, as in Open Images, can't: a.jpg or a.png; names with an ending can."""
    save(tmp_path / "csv/a.jpg", photograph(80, 40))
    save(tmp_path / "csv/a.png", photograph(80, 40, form="PNG"))
    recipe = CSV.replace("*.jpg", "a.*")
    header = "ImageID,LabelName,XMin,XMax,YMin,YMax\n"
    save(tmp_path / "csv/boxes.csv", f"{header}a,dog,0.1,0.5,0.1,0.5\n")
    assert "csv/a may be the image csv/a.jpg or csv/a.png" in refusal(tmp_path, recipe)
    save(
        tmp_path / "csv/boxes.csv",
        f"{header}a.jpg,dog,0.1,0.5,0.1,0.5\na.png,cat,0.1,0.5,0.1,0.5\n",
    )
    make(tmp_path, recipe)
    assert texts_in(tmp_path) == {"a.jpg": ["dog"], "a.png": ["cat"]}


def test_splits_folders_of_roboflow(tmp_path: Path) -> None:
    """train/images next to train/labels, in each split the same names."""
    for split, names in (("train", "ab"), ("valid", "ac")):
        for number, name in enumerate(names):
            save(tmp_path / f"yolo/{split}/images/{name}.jpg", photograph(80, 48, number))
            save(
                tmp_path / f"yolo/{split}/labels/{name}.txt",
                f"{len(split) % 3} 0.5 0.5 0.{number + 1} 0.1\n",
            )
    recipe = (
        "source: {files: yolo/**/*.jpg}\nboxes: {yolo: [yolo/train/labels, yolo/valid/labels], "
        "names: [a, b, c]}\n"
    )
    recipe += "splits: {train: {files: yolo/train/**}, validation: {files: yolo/valid/**}}\n"
    make(tmp_path, recipe)
    assert texts_in(tmp_path) == {"a.jpg": ["c"], "b.jpg": ["c"]}


# readers and verify -------------------------------------------------------------------------------


GOOD: Mapping[str, Any] = {
    **{
        "boxes.xmin": [0.1, 0.2],
        "boxes.xmax": [0.3, 0.4],
        "boxes.ymin": [0.1, 0.2],
        "boxes.ymax": [0.5, 0.6],
    },
    **{
        "boxes.label": [1, 2],
        "boxes.text": [b"a", b"b"],
        "boxes.crowd": [0, 1],
        "boxes.keypoint_x": [0.1] * 6,
    },
}
WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "one too few": ({"boxes.xmin": [0.1]}, "the features of its boxes differ in length"),
    "no label": ({"boxes.label": []}, "image/object/class/label 0"),
    "odd points": ({"boxes.keypoint_x": [0.1] * 5}, "image/object/keypoint/x 5"),
    "reversed": ({"boxes.xmin": [0.1, 0.5]}, "expected 0 <= xmin <= xmax <= 1"),
    "outside": ({"boxes.ymax": [0.5, 1.5]}, "expected 0 <= ymin <= ymax <= 1"),
    "not finite": ({"boxes.ymin": [0.1, float("nan")]}, "expected 0 <= ymin <= ymax <= 1"),
    "no such class": ({"boxes.label": [1, 3]}, "a box has label 3 and class b"),
    "another name": ({"boxes.text": [b"b", b"b"]}, "a box of label 1: expected a, got b"),
    "no such name": ({"boxes.text": [b"a", b"c"]}, "a box has label 2 and class c"),
}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"boxes.label": [1, 3]}, "a box has label 3: the set has no such class"),
        ({"boxes.text": [b"a", b"c"]}, "a box has class c: the set has no such class"),
    ],
)
def test_a_box_without_a_label_has_no_label(columns: dict[str, Any], said: str) -> None:
    """A record with only labels, or only classes, of its boxes is described by those alone."""
    (finding,) = check_objects(columns, {1: "a", 2: "b"})
    assert finding.detail == said


@pytest.mark.parametrize("name", WRONG)
def test_verify_finds_wrong_objects(name: str) -> None:
    """Values of other numbers, boxes out of the image, classes that the set doesn't have."""
    changes, said = WRONG[name]
    assert list(check_objects(GOOD, {1: "a", 2: "b"})) == []
    assert said in "\n".join(
        each.detail for each in check_objects({**GOOD, **changes}, {1: "a", 2: "b"})
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (EDGES[0], [0.9], "of a box: expected 0 <= xmin"),
        (f"{OBJECT}class/text", [b"unicorn"], "class unicorn"),
        ("image/segmentation/class/encoded", [mask(9, 9)], "size of its mask"),
    ],
)
def test_verify_reads_the_objects_of_shards(
    tmp_path: Path, name: str, value: list[Any], said: str
) -> None:
    """A record that was changed by another hand, with right checksums,
    is named by what is wrong in it.
    """
    save(tmp_path / "in/a.jpg", photograph(80, 48))
    save(tmp_path / "m/a.png", mask(80, 48))
    save(tmp_path / "b.csv", "file,class,xmin,ymin,xmax,ymax\na.jpg,dog,0.1,0.1,0.5,0.5\n")
    make(tmp_path, "source: {files: in/*}\nboxes: {csv: b.csv}\nmask: {folder: m}\n")
    path = tmp_path / "out/train-00000-of-00001"
    (record,) = records.read(path, lists=True)
    records.write(tmp_path / "changed", [{**record, name: value}])
    path.write_bytes((tmp_path / "changed").read_bytes())
    assert said in "\n".join(
        each.detail for each in verify(Layout(tmp_path / "out"), ENGINE).problems
    )


# init ---------------------------------------------------------------------------------------------


def roboflow(folder: Path) -> None:
    """train and valid, each with images and labels."""
    for split in ("train", "valid"):
        for name in "abc":
            save(folder / f"{split}/images/{split}{name}.jpg", photograph(80, 48))
            save(folder / f"{split}/labels/{split}{name}.txt", "1 0.5 0.5 0.1 0.1\n")
    save(folder / "data.yaml", "train: ../train/images\nnames: ['a', 'b']\n")
    save(folder / "README.txt", "exported\n")


def two_splits(folder: Path) -> None:
    """COCO as it is published: two splits, with captions and key points."""
    for split in ("train2017", "val2017"):
        value = coco_set(folder, split=split)
        captions = [{"image_id": each["id"], "caption": "a dog"} for each in value["images"]]
        save(
            folder / f"annotations/captions_{split}.json",
            json.dumps({**value, "annotations": captions}),
        )
        save(folder / f"annotations/person_keypoints_{split}.json", json.dumps(value))


def masked(folder: Path) -> None:
    """images and masks, in splits."""
    for number, split in enumerate(("train", "train", "val")):
        save(folder / f"images/{split}/{number}.png", photograph(80, 48, form="PNG"))
        save(folder / f"masks/{split}/{number}.png", mask(80, 48))


def published_voc(folder: Path) -> None:
    """VOC with its lists, in the folders that the archive has."""
    voc_set(folder / "VOCdevkit/VOC2012")
    stems = [f"2007_{number:06d}" for number in range(6)]
    save(
        folder / "VOCdevkit/VOC2012/ImageSets/Main/train.txt",
        "".join(f"{stem}\n" for stem in stems),
    )
    save(
        folder / "VOCdevkit/VOC2012/ImageSets/Main/dog_train.txt",
        "".join(f"{stem} -1\n" for stem in stems),
    )


def same_names(
    folder: Path, place: str = "{split}/{number}.jpg", said: str = "{number}.jpg"
) -> None:
    """COCO whose two splits have the same names of images:
    the files are at ``place``, their names are as ``said``.
    """
    for split in ("train2017", "val2017"):
        value = coco_set(folder / "made", split=split)
        for number, each in enumerate(value["images"]):
            path = folder / "made" / split / each["file_name"]
            save(folder / place.format(split=split, number=number), path.read_bytes())
            each["file_name"] = said.format(split=split, number=number)
        save(folder / f"annotations/instances_{split}.json", json.dumps(value))
    shutil.rmtree(folder / "made")


def listed_voc(folder: Path, **lists: str) -> None:
    """VOC with lists of two splits, and one of both."""
    voc_set(folder)
    for split, numbers in {"train": range(4), "val": range(4, 6), "trainval": range(6)}.items():
        own = "".join(f"2007_{number:06d}\n" for number in numbers)
        save(folder / f"ImageSets/Main/{split}.txt", lists.get(split, own))


def voc_with_test_list(folder: Path, splits: Sequence[str]) -> None:
    """VOC whose images are divided evenly among the lists of these splits."""
    voc_set(folder)
    for place, split in enumerate(splits):
        own = "".join(f"2007_{number:06d}\n" for number in range(place, 6, len(splits)))
        save(folder / f"ImageSets/Main/{split}.txt", own)


def listed_yolo(folder: Path, val: str = "images/3.jpg\n") -> None:
    """YOLO whose data.yaml names a list of images for each split."""
    for name in "123":
        save(folder / f"images/{name}.jpg", photograph(80, 48))
        save(folder / f"labels/{name}.txt", "1 0.5 0.5 0.1 0.1\n")
    save(folder / "train.txt", "./images/1.jpg\n./images/2.jpg\n")
    save(folder / "val.txt", val)
    save(folder / "data.yaml", "train: train.txt\nval: val.txt\nnames: ['a', 'b']\n")


def darknet_of_other_images(folder: Path) -> None:
    """Darknet whose obj.data names a list of other images for the validation split."""
    listed_yolo(folder, val="other/x3.jpg\n")
    (folder / "data.yaml").unlink()
    save(folder / "obj.names", "a\nb\n")
    save(folder / "obj.data", "classes = 2\ntrain = train.txt\nvalid = val.txt\n")


def yolo_with_test_list(folder: Path) -> None:
    """YOLO whose data.yaml names a list of test images, too."""
    listed_yolo(folder)
    save(folder / "val.txt", "images/3.jpg\n")
    save(folder / "train.txt", "images/1.jpg\n")
    save(folder / "test.txt", "images/2.jpg\n")
    save(
        folder / "data.yaml", "train: train.txt\nval: val.txt\ntest: test.txt\nnames: ['a', 'b']\n"
    )


SIX = {"train": 6, "validation": 6}
TWELVE = "annotate 12 of 12 images"
PUBLISHED: Mapping[str, tuple[Callable[[Path], object], str, str, dict[str, int]]] = {
    "COCO": (two_splits, "coco", TWELVE, SIX),
    "COCO with the same names": (same_names, "coco", TWELVE, SIX),
    "COCO with folders in its names": (
        functools.partial(
            same_names, place="images/{split}/{number}.jpg", said="{split}/{number}.jpg"
        ),
        *("coco", TWELVE, SIX),
    ),
    "COCO with deep folders": (
        functools.partial(same_names, place="{split}/a/b/{number}.jpg", said="a/b/{number}.jpg"),
        *("coco", TWELVE, SIX),
    ),
    "VOC with lists": (
        listed_voc,
        "pascal-voc",
        "2 in ImageSets/Main/val.txt",
        {"train": 4, "validation": 2},
    ),
    "VOC with a list of tests": (
        functools.partial(voc_with_test_list, splits=("train", "val", "test")),
        *("pascal-voc", "2 in ImageSets/Main/test.txt", {"train": 2, "validation": 2, "test": 2}),
    ),
    "VOC with lists of 2007": (
        functools.partial(voc_with_test_list, splits=("trainval", "test")),
        *("pascal-voc", "3 in ImageSets/Main/test.txt", {"trainval": 3, "test": 3}),
    ),
    "VOC": (
        published_voc,
        "pascal-voc",
        "VOC2012/Annotations annotates 6 of 6 images: 13 boxes of",
        {"train": 6},
    ),
    "YOLO": (yolo_set, "yolo", "labels/train annotates 5 of 6 images", {"train": 6}),
    "Roboflow": (
        roboflow,
        "yolo",
        "annotate 6 of 6 images: 6 boxes of 2 classes:",
        {"train": 3, "validation": 3},
    ),
    "YOLO with lists": (
        listed_yolo,
        "yolo",
        "2 in train.txt, 1 in val.txt",
        {"train": 2, "validation": 1},
    ),
    "YOLO with a list of tests": (
        yolo_with_test_list,
        *("yolo", "1 in test.txt", {"train": 1, "validation": 1, "test": 1}),
    ),
    "masks": (masked, "masks", "masks has masks of 3 of 3 images", {"train": 2, "validation": 1}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_init_recognises_annotations(tmp_path: Path, name: str) -> None:
    """With its evidence; its recipe converts and verifies, every image in its split;
    each file left out is named.
    """
    made, structure, said, counts = PUBLISHED[name]
    made(tmp_path / "in")
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert (summary.structure, said in "\n".join(summary.evidence)) == (structure, True), (
        summary.evidence
    )
    result = convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    assert result is not None
    assert verify(Layout(tmp_path / "out"), ENGINE).problems == ()
    assert {split: len(imagenet_prep.open(tmp_path / "out", split)) for split in counts} == counts
    text = summary.recipe.read_text() + "\n".join(summary.passed)
    names = [
        path.name
        for path in existing(tmp_path / "in", "**/*")
        if path.suffix in (".json", ".txt", ".xml", ".yaml")
    ]
    several = [
        name for name in names if not name[0].isdigit() and not name.startswith(("train", "valid"))
    ]
    assert [name for name in several if name not in text] == []


def test_images_of_the_same_names_have_their_own_boxes(tmp_path: Path) -> None:
    """0.jpg of each split has the boxes of its own file of annotations."""
    same_names(tmp_path / "in")
    make(tmp_path, init(tmp_path / "in", tmp_path / "r.yaml", ENGINE).recipe.read_text())
    for split, place in {"train": "train2017", "validation": "val2017"}.items():
        value = json.loads((tmp_path / f"in/annotations/instances_{place}.json").read_text())
        ids = {each["id"]: each["file_name"] for each in value["images"]}
        areas: dict[str, list[float]] = {name: [] for name in ids.values()}
        for each in value["annotations"]:
            areas[ids[each["image_id"]]].append(pytest.approx(each["area"]))
        found = records.read(str(tmp_path / f"out/{split}-*"), lists=True, text={"image/filename"})
        assert {
            each["image/filename"][0].rpartition("/")[2]: each[f"{OBJECT}area"] for each in found
        } == areas


def one_in_no_list(folder: Path) -> None:
    """VOC with lists that lack an image whose name has blanks."""
    listed_voc(folder, val="2007_000004\n")
    for path, ending in (("JPEGImages", "jpg"), ("Annotations", "xml")):
        (folder / f"{path}/2007_000005.{ending}").rename(folder / f"{path}/an image.{ending}")


def without_counterparts(folder: Path) -> None:
    """VOC that lacks an annotation, and has another of no image."""
    voc_set(folder)
    (folder / "Annotations/2007_000003.xml").unlink()
    save(folder / "Annotations/x.xml", XML)


def class_folders(folder: Path) -> None:
    """Class folders with annotations."""
    for name in ("cat/1", "cat/2", "dog/3", "dog/4"):
        save(folder / f"{name}.jpg", photograph(80, 48))
        save(folder / f"xml/{name[-1]}.xml", XML)


NOT_THERE = functools.partial(listed_voc, val="2007_000004\n2007_9\n2007_000005\n")
OTHER_IMAGES = functools.partial(listed_yolo, val="other/x3.jpg\n")
ONE_IMAGE = functools.partial(listed_yolo, val="images/2.jpg\n")
STRANGE = functools.partial(listed_voc, train="an image\n", val="an image\n")
LOST = (
    "1 image without an annotation: JPEGImages/2007_000003.jpg",
    "1 annotation without an image: Annotations/x.xml",
)
REFUSED: Mapping[str, tuple[Callable[[Path], object], str | None, tuple[str, ...]]] = {
    "VOC: in no list": (
        one_in_no_list,
        None,
        ("1 image in no list of ImageSets/Main: JPEGImages/an image.jpg",),
    ),
    "VOC: not there": (
        NOT_THERE,
        None,
        ("val.txt, line 2: 2007_9 is no file of `source`",),
    ),
    "VOC: lists of other images": (STRANGE, None, ("no line names an image of",)),
    "VOC: lists of other images, asked": (
        STRANGE,
        "pascal-voc",
        ("no line names an image of",),
    ),
    "VOC: no counterparts": (without_counterparts, None, (*LOST, "--as pascal-voc")),
    "YOLO: no list": (
        OTHER_IMAGES,
        None,
        (
            "data.yaml: val: no line of val.txt names an image of",
            "or remove train and val from it",
        ),
    ),
    "YOLO: a list that is not there": (
        lambda folder: (listed_yolo(folder), (folder / "val.txt").unlink()),
        None,
        ("data.yaml: val: there is no file val.txt in",),
    ),
    "darknet: a list of other images": (
        darknet_of_other_images,
        None,
        (
            "obj.data: valid: no line of val.txt names an image of",
            "or remove train and valid from it",
        ),
    ),
    "YOLO: in no list": (
        ONE_IMAGE,
        None,
        ("1 image in no list of train.txt, val.txt: images/3.jpg",),
    ),
    "class folders": (
        class_folders,
        None,
        ("can be read in 3 ways", "--as class-folders", "--as pascal-voc"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_init_refuses_annotations(tmp_path: Path, name: str) -> None:
    """It loses no image and no annotation, and asks where there are two ways;
    a fault is named with its place.
    """
    made, structure, said = REFUSED[name]
    made(tmp_path / "in")
    with pytest.raises(InputError) as caught:
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure=structure)
    assert [part for part in said if part not in str(caught.value)] == []


def test_images_in_no_list_are_left_out_with_as(tmp_path: Path) -> None:
    """The other lists count."""
    one_in_no_list(tmp_path / "in")
    init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure="pascal-voc")
    assert "ImageSets/Main/train.txt" in (tmp_path / "r.yaml").read_text()


@pytest.mark.parametrize("line", ["{}/JPEGImages/2007_000003.jpg", "2007_000003"])
def test_a_list_that_names_what_is_left_out_is_refused(tmp_path: Path, line: str) -> None:
    """The image is there: it has no annotation; without its line the recipe is converted."""
    without_counterparts(tmp_path / "in")
    recipe = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure="pascal-voc").recipe
    lists = tmp_path / "train.txt"
    listed = "in/JPEGImages/2007_000001.jpg\n"
    text = f"{recipe.read_text()}\nsplits: {{train: {{manifest: train.txt}}}}\n"
    save(lists, listed + line.format("in") + "\n")
    with pytest.raises(InputError, match=r"2: .*3\.jpg is an image without annotation\n") as caught:
        make(tmp_path, text)
    assert "`unannotated: skip` can't leave out" in caught.value.detail
    save(lists, listed)
    make(tmp_path, text)
    assert len(by_name(tmp_path)) == 1


def test_what_has_no_counterpart_is_left_out_with_as(tmp_path: Path) -> None:
    """An image without an annotation, and an annotation without an image: both are named."""
    without_counterparts(tmp_path / "in")
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure="pascal-voc")
    assert any(
        "1 image without an annotation: JPEGImages/2007_000003.jpg" in each
        for each in summary.passed
    )
    make(tmp_path, summary.recipe.read_text())
    assert len(by_name(tmp_path)) == 5


def test_another_image_in_filename_is_named(tmp_path: Path) -> None:
    """The XML's own name tells its image; one that names another image of the set is counted."""
    for name, other in (("a", "b.jpg"), ("b", "b.jpg"), ("c", "no.jpg")):
        save(tmp_path / f"voc/JPEGImages/{name}.jpg", photograph(80, 48))
        save(tmp_path / f"voc/Annotations/{name}.xml", voc_xml(80, 48, "") % other)
    path = tmp_path / "voc/Annotations/a.xml"
    note = f"1 annotation names another image in <filename>: {path}; the file's own name counts"
    assert note in make(tmp_path, VOC)
