"""Files as annotation tools write them: init finds their format, and records have their boxes;
or each is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_boxes import photograph
from made_tars import save

from imagenet_prep import Layout, PrepError, convert, make_engine, records, verify
from imagenet_prep.recipes.formats import all_formats
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init

ENGINE = make_engine("threads", 1)
OBJECT = "image/object/"
EDGES = ("xmin", "ymin", "xmax", "ymax")
Box = tuple[str, float, float, float, float]
"""A class, then xmin, ymin, xmax, ymax in pixels."""

CAT: Box = ("cat", 8, 4, 40, 20)
DOG: Box = ("dog", 16, 8, 72, 36)
FACE: Box = ("face", *CAT[1:])
OTHER_FACE: Box = ("face", *DOG[1:])
SIZE = (80, 40)


class Case(NamedTuple):
    """The files of a tool beside images of 80 x 40 pixels,
    the structure that init finds, and the boxes by image.
    """

    structure: str
    files: Mapping[str, str]
    boxes: Mapping[str, Sequence[Box]]
    recipe: str = "names: [cat, dog]"


def write(folder: Path, case: Case) -> None:
    """The images and files of a case."""
    for path in case.boxes:
        save(folder / path, photograph(*SIZE))
    for path, text in case.files.items():
        save(folder / path, text)


def boxes_in(folder: Path) -> dict[str, list[Box]]:
    """The boxes in pixels of each record, by the last part of its image's path."""
    texts = {"image/filename", f"{OBJECT}class/text"}
    names = [f"{OBJECT}bbox/{edge}" for edge in EDGES]
    found: dict[str, list[Box]] = {}
    for record in records.read(str(folder / "*-of-*"), lists=True, text=texts):
        corners = zip(record[f"{OBJECT}class/text"], *(record[name] for name in names), strict=True)
        pixels = [
            (text, *(value * SIZE[place % 2] for place, value in enumerate(edges)))
            for text, *edges in corners
        ]
        found[record["image/filename"][0].rpartition("/")[2]] = pixels  # type: ignore[assignment]
    return found


# as they are right --------------------------------------------------------------------------------


def labelme(*shapes: Mapping[str, Any], **more: object) -> str:
    """The JSON of an image by LabelMe."""
    head = {
        "version": "5.4.1",
        "flags": {},
        "shapes": shapes,
        "imagePath": "a.jpg",
        "imageData": None,
    }
    return json.dumps({**head, "imageHeight": 40, "imageWidth": 80, **more}, indent=2)


def shape(name: str, kind: str, *points: Sequence[float]) -> dict[str, Any]:
    """A shape by LabelMe."""
    return {"label": name, "points": points, "group_id": None, "shape_type": kind, "flags": {}}


def via(*regions: Mapping[str, Any], name: str = "a.jpg") -> dict[str, Any]:
    """An image of a project of VIA 2."""
    return {
        f"{name}1024": {"filename": name, "size": 1024, "regions": regions, "file_attributes": {}}
    }


def region(name: str, kind: str, **numbers: object) -> dict[str, Any]:
    """A region of VIA."""
    return {"shape_attributes": {"name": kind, **numbers}, "region_attributes": {"animal": name}}


def rect(box: Box) -> dict[str, Any]:
    """A rectangle of VIA."""
    name, xmin, ymin, xmax, ymax = box
    return region(name, "rect", x=xmin, y=ymin, width=xmax - xmin, height=ymax - ymin)


VIA_POLYGON = region("dog", "polygon", all_points_x=[16, 72, 72], all_points_y=[8, 8, 36])
VIA_SETTINGS = {"ui": {}, "core": {"buffer_size": 18}, "project": {"name": "p"}}
VIA_CSV = "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n"


def via_row(name: str, *texts: Mapping[str, Any]) -> str:
    """A row of VIA's CSV, whose last cells are JSON."""
    cells = ['"' + json.dumps(text).replace('"', '""') + '"' for text in texts]
    return ",".join([name, "1024", '"{}"', "1", "0", *cells]) + "\n"


def cvat(*images: tuple[str, str]) -> str:
    """CVAT for images 1.1: names, and the elements in each."""
    heads = (
        f'<image id="{number}" name="{name}" width="80" height="40">'
        for number, (name, _) in enumerate(images)
    )
    parts = "".join(
        f"{head}{inside}</image>" for head, (_, inside) in zip(heads, images, strict=True)
    )
    return f'<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta/>{parts}</annotations>'


CVAT_BOX = '<box label="cat" source="manual" occluded="0" xtl="8.00" ytl="4.00" xbr="40.00" ybr="20.00" z_order="0"/>'
CVAT_POLYGON = (
    '<polygon label="dog" occluded="0" points="16.0,8.0;72.0,8.0;72.0,36.0" z_order="0"/>'
)


def task(image: str, *values: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """A task of Label Studio's JSON."""
    results = [
        {
            "original_width": 80,
            "original_height": 40,
            "value": value,
            "type": [*value][-1],
            "to_name": "image",
        }
        for value in values
    ]
    return {
        "id": 7,
        "data": {"image": image},
        "annotations": [{"id": 1, "result": results, **more}],
        "predictions": [],
    }


def percent(box: Box, **more: object) -> dict[str, Any]:
    """A rectangle in percent of the image."""
    name, xmin, ymin, xmax, ymax = box
    corner = {
        "x": xmin / 0.8,
        "y": ymin / 0.4,
        "width": (xmax - xmin) / 0.8,
        "height": (ymax - ymin) / 0.4,
    }
    return {**corner, "rotation": 0, **more, "rectanglelabels": [name]}


LS_POLYGON = {"points": [[20, 20], [90, 20], [90, 90]], "closed": True, "polygonlabels": ["dog"]}
LS_ELLIPSE = {
    "x": 30,
    "y": 30,
    "radiusX": 20,
    "radiusY": 20,
    "rotation": 0,
    "ellipselabels": ["cat"],
}
UPLOADED = "/data/upload/1/0a1b2c3d-"


LS_REGION = {"original_width": 80, "original_height": 40, **percent(CAT)}


def _with_results(**more: object) -> dict[str, Any]:
    """A task of Label Studio whose results have more keys."""
    one = task("/x/a.jpg", percent(CAT))
    one["annotations"][0]["result"][0] |= more
    return one


def centred(box: Box) -> dict[str, Any]:
    """An object of CreateML."""
    name, xmin, ymin, xmax, ymax = box
    centre = {"x": (xmin + xmax) / 2, "y": (ymin + ymax) / 2}
    return {"label": name, "coordinates": {**centre, "width": xmax - xmin, "height": ymax - ymin}}


def box2d(box: Box) -> dict[str, Any]:
    """A label of BDD100K."""
    name, xmin, ymin, xmax, ymax = box
    return {"id": 1, "category": name, "box2d": {"x1": xmin, "y1": ymin, "x2": xmax, "y2": ymax}}


def supervisely(name: str, kind: str, *points: Sequence[float]) -> str:
    """The JSON of an image by Supervisely."""
    each = {
        "classTitle": name,
        "geometryType": kind,
        "tags": [],
        "points": {"exterior": points, "interior": []},
    }
    return json.dumps(
        {"description": "", "tags": [], "size": {"height": 40, "width": 80}, "objects": [each]}
    )


def voc(box: Box) -> str:
    """The XML of an image."""
    name, *edges = box
    corners = "".join(f"<{edge}>{value}</{edge}>" for edge, value in zip(EDGES, edges, strict=True))
    inside = f"<object><name>{name}</name><bndbox>{corners}</bndbox></object>"
    return f"<annotation><size><width>80</width><height>40</height></size>{inside}</annotation>\n"


def coco(file_name: str, box: Box, outline: Sequence[float] = ()) -> str:
    """A COCO file of one image; with an outline it has no box."""
    name, xmin, ymin, xmax, ymax = box
    place = (
        {"segmentation": [outline]} if outline else {"bbox": [xmin, ymin, xmax - xmin, ymax - ymin]}
    )
    image = {"id": 1, "file_name": file_name, "width": 80, "height": 40}
    annotation = {"id": 1, "image_id": 1, "category_id": IDS[name], **place}
    categories = [{"id": number, "name": each} for each, number in IDS.items()]
    return json.dumps({"images": [image], "annotations": [annotation], "categories": categories})


IDS = {"cat": 17, "dog": 18}
CASES: Mapping[str, Case] = {
    "LabelMe: rectangles from any corner": Case(
        "labelme",
        {
            "a.json": labelme(
                shape("cat", "rectangle", (40, 20), (8, 4)),
                shape("dog", "rectangle", (16, 36), (72, 8)),
            ),
            "b.json": labelme(),
        },
        {"a.jpg": [CAT, DOG], "b.jpg": []},
    ),
    "LabelMe: polygons and circles, in a folder of their own": Case(
        "labelme",
        {
            "labels/a.json": labelme(shape("cat", "polygon", (8, 4), (40, 4), (40, 20), (9, 5))),
            "labels/b.json": labelme(shape("dog", "circle", (20, 20), (20, 30)), imageHeight=None),
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [("dog", 10, 10, 30, 30)]},
        "polygons: boxes",
    ),
    "KITTI: DontCare is no object": Case(
        "kitti",
        {
            "training/label_2/a.txt": (
                "cat 0.00 0 -1.58 8.00 4.00 40.00 20.00 1.57 1.65 3.35 4.43 1.65 25.25 -1.56\n"
                "DontCare -1 -1 -10 60.00 30.00 70.00 36.00 -1 -1 -1 -1000 -1000 -1000 -10\n"
            ),
            "training/label_2/b.txt": (
                "dog 0.50 2 1.85 16.00 8.00 72.00 36.00 1.50 1.60 3.69 0.96 1.84 46.67 1.87\n"
            ),
        },
        {"training/image_2/a.jpg": [CAT], "training/image_2/b.jpg": [DOG]},
    ),
    "VIA 2: a project": Case(
        "via",
        {
            "via_project.json": json.dumps(
                {
                    "_via_settings": VIA_SETTINGS,
                    "_via_img_metadata": {**via(rect(CAT), rect(DOG)), **via(name="b.jpg")},
                    "_via_attributes": {"region": {}, "file": {}},
                }
            )
        },
        {"a.jpg": [CAT, DOG], "b.jpg": []},
    ),
    "VIA 1: regions by number": Case(
        "via",
        {
            "via_region_data.json": json.dumps(
                {
                    "a.jpg1024": {
                        "fileref": "",
                        "filename": "a.jpg",
                        "regions": {"0": rect(CAT), "1": VIA_POLYGON},
                    }
                }
            )
        },
        {"a.jpg": [CAT, DOG]},
        "polygons: boxes",
    ),
    "VIA: its CSV": Case(
        "via",
        {
            "via_export.csv": VIA_CSV
            + via_row("a.jpg", *rect(CAT).values())
            + via_row("a.jpg", *region("dog", "ellipse", cx=44, cy=22, rx=28, ry=14).values())
            + via_row("b.jpg", {}, {})
        },
        {"a.jpg": [CAT, DOG], "b.jpg": []},
    ),
    "CVAT: boxes and polygons": Case(
        "cvat",
        {"annotations.xml": cvat(("a.jpg", CVAT_BOX), ("b.jpg", CVAT_POLYGON), ("c.jpg", ""))},
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG], "images/c.jpg": []},
        "polygons: boxes",
    ),
    "Label Studio: its JSON, of files as they were uploaded": Case(
        "label-studio",
        {
            "project.json": json.dumps(
                [
                    task(f"{UPLOADED}a.jpg", percent(CAT), percent(DOG)),
                    task(f"{UPLOADED}b.jpg", was_cancelled=True),
                ]
            )
        },
        {"a.jpg": [CAT, DOG], "b.jpg": []},
    ),
    "Label Studio: polygons and ellipses of local files": Case(
        "label-studio",
        {
            "project.json": json.dumps(
                [task("/data/local-files/?d=x/a%20b.jpg", LS_ELLIPSE, LS_POLYGON)]
            )
        },
        {"a b.jpg": [CAT, DOG]},
        "polygons: boxes",
    ),
    "Label Studio: JSON-MIN": Case(
        "label-studio",
        {
            "project-min.json": json.dumps(
                [
                    {
                        "image": f"{UPLOADED}a.jpg",
                        "id": 1,
                        "label": [percent(CAT, original_width=80, original_height=40)],
                    }
                ]
            )
        },
        {"0a1b2c3d-a.jpg": [CAT]},
        "names: [cat]",
    ),
    "a CSV without a header, as keras-retinanet has it": Case(
        "csv-boxes",
        {
            "annotations.csv": "images/a.jpg,8,4,40,20,cat\nimages/a.jpg,16,8,72,36,dog\nimages/b.jpg,,,,,\n",
            "classes.csv": "dog,1\ncat,0\n",
        },
        {"images/a.jpg": [CAT, DOG], "images/b.jpg": []},
        "names: in/classes.csv\n  header: false",
    ),
    "a CSV without a header, and without a file of names": Case(
        "csv-boxes",
        {"train.csv": "a.jpg,8,4,40,20,cat\na.jpg,16,8,72,36,dog\nb.jpg,16,8,72,36,dog\n"},
        {"images/a.jpg": [CAT, DOG], "images/b.jpg": [DOG]},
        "header: false\n  names: [cat, dog]",
    ),
    "Open Images: ids of images and classes": Case(
        "csv-boxes",
        {
            "train-annotations-bbox.csv": (
                "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf\n"
                "a1,xclick,/m/01yrx,1,0.1,0.5,0.1,0.5,0,0,0\nb2,xclick,/m/0bt9lr,1,0.2,0.9,0.2,0.9,0,0,0\n"
            ),
            "class-descriptions-boxable.csv": "/m/0bt9lr,dog\n/m/01yrx,cat\n/m/011k07,Tortoise\n",
        },
        {"train/a1.jpg": [CAT], "train/b2.jpg": [DOG]},
        "names: in/class-descriptions-boxable.csv",
    ),
    "Open Images: classes whose names are numbers": Case(
        "csv-boxes",
        {
            "train-annotations-bbox.csv": (
                "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n"
                "a1,xclick,10,1,0.1,0.5,0.1,0.5\nb2,xclick,1,1,0.2,0.9,0.2,0.9\n"
            ),
            "class-descriptions-boxable.csv": "LabelName,DisplayName\n1,1\n10,0\n",
        },
        {"train/a1.jpg": [("0", *CAT[1:])], "train/b2.jpg": [("1", *DOG[1:])]},
        "names: in/class-descriptions-boxable.csv",
    ),
    "a CSV of corners and sizes": Case(
        "csv-boxes",
        {"boxes.csv": "image,label,x,y,width,height\na.jpg,cat,8,4,32,16\nb.jpg,dog,16,8,56,28\n"},
        {"a.jpg": [CAT], "b.jpg": [DOG]},
    ),
    "a CSV whose column of images has a name of its own": Case(
        "csv-boxes",
        {
            "boxes.csv": "patientId,label,x,y,width,height\na,cat,8,4,32,16\nb,dog,16,8,56,28\nc,dog,,,,\n"
        },
        {"a.jpg": [CAT], "b.jpg": [DOG], "c.jpg": []},
        "columns: {path: patientId}",
    ),
    "a CSV of boxes in one cell": Case(
        "csv-boxes",
        {
            "boxes.csv": (
                'image_id,width,height,bbox,class\na,80,40,"[8.0, 4.0, 32.0, 16.0]",cat\n'
                'a,80,40,"[16, 8, 56, 28]",dog\n'
            )
        },
        {"a.jpg": [CAT, DOG]},
    ),
    "a CSV of all boxes of an image in one cell": Case(
        "csv-boxes",
        {
            "boxes.csv": (
                "image_name,BoxesString,label\na.jpg,8 4 40 20;16 8 72 36,cat\nb.jpg,no_box,cat\n"
            )
        },
        {"a.jpg": [CAT, ("cat", *DOG[1:])], "b.jpg": []},
        "names: [cat]",
    ),
    "Roboflow's CSV": Case(
        "csv-boxes",
        {
            f"{split}/_annotations.csv": (
                f"filename,width,height,class,xmin,ymin,xmax,ymax\n{split}.jpg,80,40,cat,8,4,40,20\n"
                f"{split}.jpg,80,40,dog,16,8,72,36\n"
            )
            for split in ("train", "valid")
        },
        {"train/train.jpg": [CAT, DOG], "valid/valid.jpg": [CAT, DOG]},
    ),
    "WIDER FACE: paths, counts and boxes": Case(
        "wider-face",
        {
            f"wider_face_split/wider_face_{split}_bbx_gt.txt": (
                f"0--Parade/{split}.jpg\n2\n8 4 32 16 0 0 0 0 0 0 \n16 8 56 28 2 0 0 0 0 1 \n"
                f"0--Parade/{split}0.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n"
            )
            for split in ("train", "val")
        },
        {
            **{
                f"WIDER_{name}/images/0--Parade/{name}.jpg": [FACE, OTHER_FACE]
                for name in ("train", "val")
            },
            **{f"WIDER_{name}/images/0--Parade/{name}0.jpg": [] for name in ("train", "val")},
        },
        "names: [face]",
    ),
    "CreateML: centres and sizes": Case(
        "createml",
        {
            "_annotations.createml.json": json.dumps(
                [
                    {"image": "a.jpg", "annotations": [centred(CAT), centred(DOG)]},
                    {"image": "b.jpg", "annotations": []},
                ]
            )
        },
        {"a.jpg": [CAT, DOG], "b.jpg": []},
    ),
    "BDD100K: labels with and without box2d": Case(
        "bdd100k",
        {
            "labels/val.json": json.dumps(
                [
                    {
                        "name": "a.jpg",
                        "attributes": {"scene": "x"},
                        "labels": [box2d(CAT), {"category": "lane"}],
                    },
                    {"name": "b.jpg", "labels": [box2d(DOG)]},
                    {"name": "c.jpg", "labels": None},
                ]
            )
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG], "images/c.jpg": []},
    ),
    "Supervisely: a file for each image, of its whole name": Case(
        "supervisely",
        {
            "meta.json": json.dumps({"classes": [{"title": "cat", "shape": "rectangle"}]}),
            "ds0/ann/a.jpg.json": supervisely("cat", "rectangle", (40, 20), (8, 4)),
            "ds0/ann/b.jpg.json": supervisely("dog", "polygon", (16, 8), (72, 8), (72, 36)),
        },
        {"ds0/img/a.jpg": [CAT], "ds0/img/b.jpg": [DOG]},
        "polygons: boxes",
    ),
    "FiftyOne: relative boxes by stem": Case(
        "fiftyone",
        {
            "labels.json": json.dumps(
                {
                    "classes": ["cat", "dog"],
                    "labels": {
                        "a": [{"label": 0, "bounding_box": [0.1, 0.1, 0.4, 0.4]}],
                        "b": [{"label": 1, "bounding_box": [0.2, 0.2, 0.7, 0.7]}],
                        "c": None,
                    },
                }
            )
        },
        {"data/a.jpg": [CAT], "data/b.jpg": [DOG], "data/c.jpg": []},
    ),
    "darknet: names and lists in a .data file": Case(
        "yolo",
        {
            "data/obj.data": (
                "classes = 2\ntrain = data/train.txt\nvalid = data/test.txt\nnames "
                "= data/obj.names\n"
            ),
            "data/obj.names": "cat\ndog\n",
            "data/train.txt": "data/obj/a.jpg\n",
            "data/test.txt": "data/obj/b.jpg\n",
            "data/obj/a.txt": "0 0.3 0.3 0.4 0.4\n",
            "data/obj/b.txt": "1 0.55 0.55 0.7 0.7\n",
        },
        {"data/obj/a.jpg": [CAT], "data/obj/b.jpg": [DOG]},
        "validation: {manifest: in/data/test.txt}",
    ),
    "YOLO: key points of thousands of digits": Case(
        "yolo",
        {
            "data.yaml": f"train: images\nkpt_shape: ['{'9' * 4301}']\nnames: [cat, dog]\n",
            "labels/a.txt": "0 0.3 0.3 0.4 0.4\n",
            "labels/b.txt": "1 0.55 0.55 0.7 0.7\n",
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG]},
        "names: in/data.yaml",
    ),
    "YOLO: key points of a set that says so": Case(
        "yolo",
        {
            "data.yaml": "train: images\nkpt_shape: [2, 3]\nnames: [cat, dog]\n",
            "labels/a.txt": "0 0.3 0.3 0.4 0.4 0.2 0.2 2 0.3 0.3 2\n",
            "labels/b.txt": "1 0.55 0.55 0.7 0.7 0.2 0.2 2 0 0 0\n",
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG]},
        "names: in/data.yaml",
    ),
    "YOLO: an empty list of classes": Case(
        "yolo",
        {
            "data.yaml": "train: images\nnames: [cat, dog]\n",
            "labels/classes.txt": "",
            "labels/a.txt": "0 0.3 0.3 0.4 0.4\n",
            "labels/b.txt": "1 0.55 0.55 0.7 0.7\n",
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG]},
        "names: in/data.yaml",
    ),
    "YOLO: polygons": Case(
        "yolo",
        {
            "data.yaml": "train: images\nnames: [cat, dog]\n",
            "labels/a.txt": "0 0.1 0.1 0.5 0.1 0.5 0.5\n",
            "labels/b.txt": "1 0.2 0.2 0.9 0.2 0.9 0.9 0.2 0.9 0.3 0.3\n",
        },
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG]},
        "polygons: masks",
    ),
    "Pascal VOC without the size of the image": Case(
        "pascal-voc",
        {
            "Annotations/a.xml": re.sub("<size>.*</size>", "", voc(CAT), flags=re.DOTALL),
            "Annotations/b.xml": re.sub(r"(width|height)>\d+<", r"\1>0<", voc(DOG)),
        },
        {"JPEGImages/a.jpg": [CAT], "JPEGImages/b.jpg": [DOG]},
        "voc: in/Annotations",
    ),
    "Pascal VOC without an ending, in class folders of the same classes": Case(
        "boxes-in-class-folders",
        {
            "Annotation/n01-cat/n01_1": voc(CAT),
            "Annotation/n02-dog/n02_1": voc(DOG),
        },
        {"Images/n01-cat/n01_1.jpg": [CAT], "Images/n02-dog/n02_1.jpg": [DOG]},
        "folders: in/Images",
    ),
    "COCO: a file for each split, of images in one folder": Case(
        "coco",
        {"annotations/train.json": coco("a.jpg", CAT), "annotations/val.json": coco("b.jpg", DOG)},
        {"images/a.jpg": [CAT], "images/b.jpg": [DOG]},
        "coco: {train: in/annotations/train.json, validation: in/annotations/val.json}",
    ),
    "COCO: outlines alone, named as on another machine": Case(
        "coco",
        {"result.json": coco("/home/me/pics/a.jpg", DOG, outline=[16, 8, 72, 8, 72, 36])},
        {"images/a.jpg": [DOG]},
        "polygons: masks",
    ),
    "CUB: the class of a box is that of its image": Case(
        "boxes-in-class-folders",
        {
            "images.txt": (
                "1 001.cat/a.jpg\r\n2 001.cat/b.jpg\r\n3 002.dog/c.jpg\r\n4 002.dog/d.jpg\r\n"
            ),
            "train_test_split.txt": "1 1\n2 0\n3 1\n4 0\n",
            "image_class_labels.txt": "1 1\n2 1\n3 2\n4 2\n",
            "classes.txt": "1 001.cat\n2 002.dog\n",
            "bounding_boxes.txt": "".join(
                f"{number} 8.0 4.0 32.0 16.0\n" for number in range(1, 5)
            ),
        },
        {
            **{f"images/001.cat/{name}.jpg": [("001.cat", *CAT[1:])] for name in "ab"},
            **{f"images/002.dog/{name}.jpg": [("002.dog", *CAT[1:])] for name in "cd"},
        },
        "# splits: train, test, as the annotations say",
    ),
}


def test_every_format_has_a_case() -> None:
    """Files of each registered format are read here, except masks and runs, which have tests of
    their own.
    """
    structures = {case.structure for case in CASES.values()}
    missing = [
        box_format.tool
        for box_format in all_formats().values()
        if box_format.structure not in structures
        and not any(name.startswith(box_format.tool[:3]) for name in CASES)
    ]
    assert missing == ["masks of objects", "run lengths"]


@pytest.mark.parametrize("name", CASES)
def test_boxes_are_those_of_the_tool(tmp_path: Path, name: str) -> None:
    """Init names the structure, the recipe declares the classes,
    and each record has the boxes of its image, in order.
    """
    case = CASES[name]
    write(tmp_path / "in", case)
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert summary.structure == case.structure
    assert case.recipe in summary.text
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    assert verify(Layout(tmp_path / "out"), ENGINE).problems == ()
    found = boxes_in(tmp_path / "out")
    expected = {path.rpartition("/")[2]: boxes for path, boxes in case.boxes.items()}
    assert set(found) == set(expected)
    for path, boxes in expected.items():
        assert [text for text, *_ in found[path]] == [text for text, *_ in boxes]
        assert [edges for _, *edges in found[path]] == [
            pytest.approx(edges, abs=1e-4) for _, *edges in boxes
        ]


def test_tests_without_labels_are_left_out_with_as(tmp_path: Path) -> None:
    """KITTI's testing has the same names as training:
    they get no boxes of other images, and --as leaves them out.
    """
    write(tmp_path / "in", CASES["KITTI: DontCare is no object"])
    save(tmp_path / "in/testing/image_2/a.jpg", photograph(*SIZE))
    with pytest.raises(PrepError, match=r"testing/image_2/a.jpg"):
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure="kitti")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    found = boxes_in(tmp_path / "out")
    assert {name: boxes[0][0] for name, boxes in found.items()} == {"a.jpg": "cat", "b.jpg": "dog"}


def test_numbers_are_names_only_if_the_user_says_so(tmp_path: Path) -> None:
    """YOLO's labels without a file of names: a question, and --as keeps the numbers as names."""
    write(
        tmp_path / "in", Case("", {"labels/a.txt": "1 0.3 0.3 0.4 0.4\n"}, {"images/a.jpg": [CAT]})
    )
    with pytest.raises(PrepError, match=r"file with class names, such as data\.yaml"):
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert (
        'names: ["0", "1"]'
        in init(tmp_path / "in", tmp_path / "r.yaml", ENGINE, structure="yolo").text
    )


def test_a_start_is_taken_off_names(tmp_path: Path) -> None:
    """Names of another machine: without their start they are those of two
    folders with files of the same names.
    """
    from imagenet_prep.recipes.annotated_images import Roots
    from imagenet_prep.recipes.annotating import annotate
    from imagenet_prep.recipes.schema import Boxes, Recipe
    from imagenet_prep.sources.folders import list_folder

    for name in ("day/a.jpg", "night/a.jpg"):
        save(tmp_path / "in" / name, photograph(*SIZE))
    content = json.loads(coco("/home/me/day/a.jpg", CAT))
    content["images"].append({**content["images"][0], "id": 2, "file_name": "/home/me/night/a.jpg"})
    save(tmp_path / "c.json", json.dumps(content))
    listing, _ = list_folder(tmp_path / "in", ENGINE)
    boxes: Any = Boxes(**{"coco": "c.json"})
    found = annotate(Recipe(boxes=boxes), listing, Roots(tmp_path / "in", tmp_path, "/home/me/"))
    assert [each[0] if each else None for each in found.values["boxes.text"]] == ["cat", None]


# as they can't be ---------------------------------------------------------------------------------

FAULTS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "LabelMe: a point": (
        {"a.json": labelme(shape("cat", "point", (8, 4)))},
        "shapes[0]: the shape 'point' has 1 point; expected a rectangle",
    ),
    "LabelMe: two corners": (
        {"a.json": labelme(shape("cat", "polygon", (8, 4), (9, 4)))},
        "a.json: shapes[0]: a polygon of 2 points; expected at least three",
    ),
    "LabelMe: no label": (
        {"a.json": '{"shapes": [{"points": []}], "imagePath": "a.jpg"}'},
        "a.json: shapes[0]: the key label is missing; expected a LabelMe file",
    ),
    "KITTI: a short line": (
        {"a.txt": f"cat 0 0 0 8 4 40 20 {'0 ' * 7}\n" * 3 + "cat 0 0 0 8\n"},
        "a.txt, line 4: the line has 5 values; expected 15",
    ),
    "VIA: a point": (
        {"v.json": json.dumps(via(region("cat", "point", cx=8, cy=4)))},
        (
            "v.json: a.jpg1024: regions[0]: the shape is 'point'; expected rect, circle, "
            "ellipse, polygon or polyline"
        ),
    ),
    "VIA: two ticks": (
        {
            "v.json": json.dumps(
                via(
                    {
                        **rect(CAT),
                        "region_attributes": {"class": {"cat": True, "dog": True}, "size": "big"},
                    }
                )
            )
        },
        "regions[0]: 2 checkboxes are ticked in its attribute class; expected one checkbox that is ticked: that of its class",
    ),
    "VIA: a number for the class": (
        {"v.json": json.dumps(via({**rect(CAT), "region_attributes": {"class": 3}}))},
        "regions[0]: its attribute class is 3 (int); expected the name of its class",
    ),
    "VIA: a list for the attributes of a CSV": (
        {
            "v.csv": "#filename,region_shape_attributes,region_attributes\n"
            'a.jpg,"[1]","{""class"": ""cat""}"\n'
        },
        'v.csv, line 2: region_shape_attributes is [1]; expected a JSON object, such as {"name"',
    ),
    "VIA: two attributes": (
        {
            "v.json": json.dumps(
                via({**rect(CAT), "region_attributes": {"size": "big", "quality": {"good": True}}})
            )
        },
        (
            "it is not clear which of its attributes is the class: size, quality; expected the "
            "class in class, label, name, type or category; rename the attribute in the file, or "
            "name it in the recipe's `boxes`: columns: {label: ATTRIBUTE}"
        ),
    ),
    "VIA: no numbers": (
        {"v.json": json.dumps(via(region("cat", "rect", x=1)))},
        "regions[0]: a number of the rect is missing or invalid; expected x, y, width and height, "
        "each a number",
    ),
    "CVAT: two tags of an image": (
        {
            "annotations.xml": cvat(
                ("a.jpg", '<tag label="cat" source="manual"/><tag label="dog"/>')
            )
        },
        (
            "annotations.xml: no image has a box, a polygon or an ellipse; expected a box, polygon or ellipse: tags "
            "are classes of whole images; for images with several classes, write a CSV with the "
            "columns filename and label"
        ),
    ),
    "CVAT: nothing is annotated": (
        {"annotations.xml": cvat(("a.jpg", ""))},
        (
            "annotations.xml: no image has a box, a polygon or an ellipse; expected at least one box, polygon or ellipse; "
            "draw them in CVAT, and export again; or move this file away"
        ),
    ),
    "CVAT: rotated": (
        {"annotations.xml": cvat(("a.jpg", CVAT_BOX.replace("xtl", 'rotation="30.0" xtl')))},
        "image 0 (a.jpg): object 1: the box is rotated",
    ),
    "CVAT: a line": (
        {"annotations.xml": cvat(("a.jpg", '<polyline label="cat" points="1,1;2,2"/>'))},
        "object 1: the shape is <polyline>; expected a box, a polygon or an ellipse",
    ),
    "CVAT: an entity": (
        {"annotations.xml": '<!DOCTYPE a [<!ENTITY b "c">]>' + cvat(("a.jpg", CVAT_BOX))},
        "annotations.xml: it holds <!DOCTYPE",
    ),
    "Label Studio: two annotators": (
        {
            "p.json": json.dumps(
                [{**(one := task("/x/a.jpg", percent(CAT))), "annotations": one["annotations"] * 2}]
            )
        },
        "p.json: [0] (id 7): the task has 2 annotations that are not cancelled; expected one",
    ),
    "Label Studio: rotated": (
        {"p.json": json.dumps([task("/x/a.jpg", percent(CAT, rotation=30))])},
        "object 1: the region is rotated; expected a shape without rotation",
    ),
    "Label Studio: turned": (
        {"p.json": json.dumps([_with_results(image_rotation=90)])},
        "p.json: [0] (id 7): the image was turned in Label Studio; "
        "expected regions that were drawn on the image without rotation",
    ),
    **{
        f"Label Studio: labels {labels}": (
            {"p.json": json.dumps([task("/x/a.jpg", {**percent(CAT), "rectanglelabels": labels})])},
            "p.json: [0] (id 7): object 1: rectanglelabels is not a list of one label",
        )
        for labels in (5, "c", [None], [3], [""], [], ["cat", "dog"])
    },
    **{
        f"Label Studio: {numbers}": (
            {"p.json": json.dumps([task("/x/a.jpg", {**percent(CAT), **numbers})])},
            "object 1: a number of the region of rectanglelabels is missing or invalid",
        )
        for numbers in ({"x": True}, {"width": "9"}, {"x": 10**400})
    },
    **{
        f"Label Studio: {name}": (
            {"p.json": json.dumps([one], indent=1)},
            "a part of the task is missing, or of another type",
        )
        for name, one in {
            "no result": {**task("/x/a.jpg"), "annotations": [{}], "old": LS_REGION},
            "a number for annotations": {
                **task("/x/a.jpg", percent(CAT)),
                "annotations": 5,
                "old": LS_REGION,
            },
            "a number for an annotation": {
                **task("/x/a.jpg"),
                "annotations": [5],
                "old": LS_REGION,
            },
            "no value": {
                **task("/x/a.jpg"),
                "annotations": [{"result": [{"original_width": 3}]}],
                "old": LS_REGION,
            },
            "a number for data": {**task("/x/a.jpg", percent(CAT)), "data": 5},
            "a number among regions": {"image": "/x/a.jpg", "id": 7, "label": [5, LS_REGION]},
        }.items()
    },
    **{
        f"VIA: {kind} {numbers}": (
            {"v.json": json.dumps(via(region("cat", kind, **numbers)))},
            f"regions[0]: a number of the {kind} is missing or invalid",
        )
        for kind, numbers in (
            ("rect", {"x": "1", "y": "2", "width": "3", "height": "4"}),
            ("rect", {"x": True, "y": 2, "width": 3, "height": 4}),
            ("circle", {"cx": "9", "cy": 9, "r": 2}),
            ("circle", {"cx": 10**400, "cy": 9, "r": 2}),
            ("ellipse", {"cx": 9, "cy": 9, "rx": 2}),
        )
    },
    "VIA: rotated": (
        {"v.json": json.dumps(via(region("cat", "ellipse", cx=30, cy=20, rx=9, ry=3, theta=1.5)))},
        "regions[0]: the region is rotated; expected a shape without rotation",
    ),
    "CSV: the class may be one of two columns": (
        {"b.csv": "image,x1,y1,x2,y2,kind,breed\na.jpg,1,1,2,2,x,y\n"},
        "no column has a usual name of a class; expected a column such as label or class; others: "
        "kind, breed; if another column has the class names: "
        "imagenet-prep init in --as csv-boxes --label kind --output ",
    ),
    "CSV: a row cut short, and a column of images of another name": (
        {"b.csv": "bild,label,xmin,ymin,xmax,ymax\na.jpg,cat,1,1,9,9\na.jpg\n"},
        "b.csv, line 3: 6 columns expected, 1 found",
    ),
    "YOLO: no labels": (
        {"data.yaml": "train: images\nnames: [cat, dog]\n"},
        (
            "data.yaml describes a YOLO set, and no text file has the name of an image; "
            "expected a.txt with the boxes of a.jpg"
        ),
    ),
    "YOLO: turned boxes": (
        {"data.yaml": "train: .\nnames: [cat]\n", "a.txt": "0 0.1 0.2 0.2 0.1 0.5 0.4 0.4 0.5\n"},
        "the lines of a.txt have four points each: if these are rotated boxes, each becomes the",
    ),
    "COCO: names of another folder": (
        {"c.json": coco("photos/b.jpg", CAT)},
        (
            "c.json: 1 image is named, and it is not in the source; expected names such as "
            "a.jpg, got photos/b.jpg"
        ),
    ),
    "CUB: a short line": (
        {"images.txt": "1 a.jpg\n", "bounding_boxes.txt": "1 1 1 2 2\n1\n"},
        "bounding_boxes.txt, line 2: the line has 1 value; expected 5: image id, x, y, width, height",
    ),
    "FiftyOne: a number, and no names of classes": (
        {
            "labels.json": '{"classes": [], "labels": {"a": [{"label": 0, "bounding_box": [0, 0, 1, 1]}]}}'
        },
        (
            "labels.json: labels.a[0]: the class is the number 0; expected a name, or "
            'a list of names, "classes", at the top of the file'
        ),
    ),
    "FiftyOne: a label of another type": (
        {
            "samples.json": '{"samples": [{"filepath": "a.jpg", "ground_truth": {"detections": '
            '[{"label": null, "bounding_box": [0, 0, 1, 1]}]}}]}'
        },
        (
            "samples.json: samples[0].ground_truth.detections[0].label: "
            "expected a whole number or a text, got null"
        ),
    ),
    "FiftyOne: a number that the classes of samples lack": (
        {
            "samples.json": '{"classes": ["cat"], "samples": [{"filepath": "a.jpg", "ground_truth": '
            '{"detections": [{"label": 5, "bounding_box": [0, 0, 1, 1]}]}}]}'
        },
        (
            "samples.json: samples[0].ground_truth.detections[0]: there is no class 5; "
            "expected the number of a class: `classes` has 1 name, numbered from 0"
        ),
    ),
    "WIDER: the file ends too early": (
        {"wider.txt": "a/a.jpg\n3\n1 1 9 9 0 0 0 0 0 0\n"},
        (
            "wider.txt, line 1: the file ends after 1 line of boxes; expected 3 lines of x, y, "
            "width and height for a/a.jpg"
        ),
    ),
    "WIDER: no number": (
        {"wider.txt": "a/a.jpg\n1\n1 1 9 9 0 0 0 0 0 0\nb/b.jpg\n\n"},
        "wider.txt, line 4: no number of faces follows b/b.jpg; expected the number of faces",
    ),
    "WIDER: a face more than its number": (
        {"wider.txt": "a/a.jpg\n1\n1 1 9 9 0 0 0 0 0 0\n2 2 9 9 0 0 0 0 0 0\nb/b.jpg\n0\n"},
        "wider.txt, line 4: another face follows the 1 face of a/a.jpg; expected the name of the",
    ),
    "WIDER: a face less than its number": (
        {"wider.txt": "a/a.jpg\n2\n1 1 9 9 0 0 0 0 0 0\nb/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0\n"},
        "wider.txt, line 4: 1 of 2 faces of a/a.jpg come before this line; expected x, y, width",
    ),
    "WIDER: a damaged start": (
        {"wider_face_train_bbx_gt.txt": "a/a.jpg\n1\n1 1 9\nb/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0\n"},
        "wider_face_train_bbx_gt.txt, line 3: the line has fewer than four values",
    ),
    "WIDER: a number of thousands of digits": (
        {"wider.txt": f"a/a.jpg\n{'9' * 4301}\n1 1 9 9 0 0 0 0 0 0\n"},
        f"wider.txt, line 2: the line is '{'9' * 80}'; expected the number of faces of a/a.jpg",
    ),
    "WIDER: an image without its number": (
        {
            "wider_face_train_bbx_gt.txt": (
                "c/c.jpg\n1\n1 1 9 9\na/a.jpg\nb/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0\n"
            )
        },
        "line 5: the line is 'b/b.jpg'; expected the number of faces of a/a.jpg, which the line",
    ),
    "run lengths: one within another": (
        {"runs.csv": "ImageId,EncodedPixels\na.jpg,1 5 3 5\n"},
        "runs.csv, line 2: EncodedPixels: the run at 3 overlaps an earlier one",
    ),
    "run lengths: out of the image": (
        {"runs.csv": "ImageId,EncodedPixels\na.jpg,1 5 3000 900\n"},
        "line 2: the run 3000 900 ends after the last pixel of a.jpg (80 x 40 = 3,200)",
    ),
    "run lengths: a word": (
        {"runs.csv": "ImageId,EncodedPixels\na.jpg,1 x\n"},
        "EncodedPixels: 'x' is not a whole number of at most 18 digits",
    ),
    "run lengths: a long number": (
        {"runs.csv": "ImageId,EncodedPixels\na.jpg,1 1000000000000000000\n"},
        "EncodedPixels: '1000000000000000000' is not a whole number of at most 18 digits",
    ),
    "run lengths: one number": (
        {"runs.csv": "ImageId,EncodedPixels\na.jpg,7\n"},
        "EncodedPixels: the last run has a start and no length; expected the start",
    ),
    "CUB: no such image": (
        {"images.txt": "1 a.jpg\n", "bounding_boxes.txt": "2 1 1 2 2\n"},
        "bounding_boxes.txt, line 1: no image has the id 2; expected an id of",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The error names the file, its line or key, and what is right."""
    files, said = FAULTS[name]
    write(tmp_path / "in", Case("", files, {"a.jpg": []}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PrepError) as caught:
        init(Path("in"), tmp_path / "r.yaml", ENGINE)
    assert said in "; ".join(str(caught.value).splitlines())
    assert not (tmp_path / "r.yaml").exists()


def test_tags_of_cvat_are_classes(tmp_path: Path) -> None:
    """A recipe of boxes has no use for them: the hint names the command, which makes a recipe."""
    tags = [(f"{name}.jpg", f'<tag label="{name}"/>') for name in "ab"]
    write(tmp_path / "in", Case("", {"c.xml": cvat(*tags)}, {"a.jpg": [], "b.jpg": []}))
    save(tmp_path / "r.yaml", "source: {files: in/*.jpg}\nboxes: {cvat: in/c.xml}\n")
    with pytest.raises(PrepError, match="tags are classes of whole images") as caught:
        convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "r.yaml"))
    assert "run imagenet-prep init FOLDER --as cvat-tags with the folder of" in caught.value.hint
    summary = init(tmp_path / "in", tmp_path / "t.yaml", ENGINE, structure="cvat-tags")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    assert verify(Layout(tmp_path / "out"), ENGINE).problems == ()


@pytest.mark.parametrize("polygons", ["boxes", "masks"])
def test_a_mask_never_fills_the_hole_of_a_polygon(tmp_path: Path, polygons: str) -> None:
    """Supervisely's polygons have holes: their boxes are taken, and masks of them are refused."""
    content = json.loads(supervisely("cat", "polygon", (8, 4), (40, 4), (40, 20), (8, 20)))
    content["objects"][0]["points"]["interior"] = [[[10, 6], [20, 6], [20, 10]]]
    write(tmp_path, Case("", {"ann/a.jpg.json": json.dumps(content)}, {"img/a.jpg": []}))
    (tmp_path / "r.yaml").write_text(
        f"source: {{files: img/*.jpg}}\nboxes: {{supervisely: ann, polygons: {polygons}}}\n"
    )
    recipe = RecipeSet.read(tmp_path / "r.yaml")
    if polygons == "boxes":
        convert(Layout(tmp_path / "out"), ENGINE, dataset=recipe)
        assert [box[0] for box in boxes_in(tmp_path / "out")["a.jpg"]] == ["cat"]
        return
    with pytest.raises(PrepError, match=r"objects\[0\]: .*holes"):
        convert(Layout(tmp_path / "out"), ENGINE, dataset=recipe)
