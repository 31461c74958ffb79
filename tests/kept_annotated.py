"""Folders of images with boxes, polygons or masks, as annotation tools, data sets and competitions
leave them.

A class that a folder has no name for is ANY: whatever name it gets is right. Boxes have the numbers
that their file has, whether it counts pixels from 0 or 1. An outline is a box without its upper
right quarter, so that its mask is told from its box; a pixel belongs to it if its centre is inside.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from kept_folders import ANY, Box, Painter, Truth, kept, name_of, stem
from PIL import Image

SIZE = (80, 40)
"""Width and height of an image with boxes: a box divided by them has a short decimal."""

CLASSES = ("cat", "dog")
Boxes = dict[str, list[Box]]
"""The boxes of each image by its path."""


# what the builders share --------------------------------------------------------------------------


def boxes_of(number: int, classes: Sequence[str] = CLASSES) -> list[Box]:
    """One or two boxes for the image of this number, in whole pixels, none alike."""
    boxes: list[Box] = []
    for place in range(1 + number % 2):
        xmin = 4 + number % 5 * 4 + 20 * place
        ymin = 2 + number % 4 * 2 + 8 * place
        xmax = xmin + 16 + 2 * place
        ymax = ymin + 12 + 2 * (number % 3)
        boxes.append((classes[(number + place) % len(classes)], xmin, ymin, xmax, ymax))
    return boxes


def draw(painter: Painter, paths: Iterable[str], classes: Sequence[str] = CLASSES) -> Boxes:
    """Images of these paths, and boxes for each."""
    boxes = {}
    for path in paths:
        boxes[path] = boxes_of(len(painter.painted), classes)
        painter.paint(path, SIZE)
    return boxes


def only_boxes(boxes: Boxes, **more: Any) -> Truth:
    """Images that have boxes and no class."""
    return Truth(dict.fromkeys(boxes), boxes=boxes, **more)


def only_masks(masks: Mapping[str, np.ndarray], **more: Any) -> Truth:
    """Images that have a mask and no class."""
    return Truth(dict.fromkeys(masks), masks=masks, **more)


def splits_of(paths: Iterable[str], **folders: str) -> dict[str, str]:
    """The split of each path: ``train="images/train/"`` says where its images are."""
    splits = {}
    for path in paths:
        for split, folder in folders.items():
            if path.startswith(folder):
                splits[path] = split
    return splits


def table(rows: Iterable[Sequence[object]], header: str = "") -> str:
    """A CSV, quoted where it must be; ``header`` is its first line as it stands."""
    stream = io.StringIO()
    if header:
        stream.write(f"{header}\n")
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def png(values: np.ndarray) -> bytes:
    """A mask as a PNG."""
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, "PNG")
    return stream.getvalue()


def outline(box: Box) -> list[tuple[float, float]]:
    """The six corners of a box without its upper right quarter."""
    _, xmin, ymin, xmax, ymax = box
    xmiddle, ymiddle = (xmin + xmax) // 2, (ymin + ymax) // 2
    return [
        (xmin, ymin),
        (xmiddle, ymin),
        (xmiddle, ymiddle),
        (xmax, ymiddle),
        (xmax, ymax),
        (xmin, ymax),
    ]


def filled(box: Box, value: int = 1, size: tuple[int, int] = SIZE) -> np.ndarray:
    """The mask of an outline: ``value`` inside, 0 outside."""
    xmin, ymin, xmax, ymax = map(int, box[1:])
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[ymin:ymax, xmin:xmax] = value
    mask[ymin : (ymin + ymax) // 2, (xmin + xmax) // 2 : xmax] = 0
    return mask


def masks_of(boxes: Boxes) -> dict[str, list[np.ndarray]]:
    """A mask for each outline of each image."""
    masks = {}
    for path, objects in boxes.items():
        masks[path] = [filled(box) for box in objects]
    return masks


def classes_mask(
    number: int, values: Sequence[int] = (1, 2), size: tuple[int, int] = (16, 12)
) -> np.ndarray:
    """A mask of an image: two areas with these values on 0, none alike in two images."""
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[2:6, 1 : 4 + number % 8] = values[0]
    mask[6:11, 3 + number % 8 : 14] = values[1]
    return mask


def mask_pairs(
    painter: Painter, pairs: Iterable[tuple[str, str]], values: Sequence[int] = (1, 2)
) -> dict[str, np.ndarray]:
    """Images and the PNG of each one's mask: (image, mask) by their paths."""
    masks = {}
    for image, path in pairs:
        masks[image] = classes_mask(len(painter.painted), values)
        painter.paint(image)
        painter.write(path, png(masks[image]))
    return masks


def numbered(pattern: str, count: int, first: int = 0) -> list[str]:
    """Paths of the numbers from ``first`` on."""
    return [pattern.format(number) for number in range(first, first + count)]


def voc_xml(
    path: str, boxes: Sequence[Box], folder: str = "images", size: tuple[int, int] = SIZE
) -> str:
    """An annotation as LabelImg writes it."""
    width, height = size
    parts = [
        f"<annotation>\n\t<folder>{folder}</folder>\n\t<filename>{name_of(path)}</filename>",
        f"\t<size><width>{width}</width><height>{height}</height><depth>3</depth></size>\n\t<segmented>0</segmented>",
    ]
    for name, xmin, ymin, xmax, ymax in boxes:
        corners = f"<xmin>{xmin}</xmin><ymin>{ymin}</ymin><xmax>{xmax}</xmax><ymax>{ymax}</ymax>"
        flags = "<pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult>"
        parts.append(f"\t<object><name>{name}</name>{flags}<bndbox>{corners}</bndbox></object>")
    return "\n".join([*parts, "</annotation>\n"])


def yolo_lines(boxes: Sequence[Box], classes: Sequence[str] = CLASSES) -> str:
    """Lines of a class number and the centre and size of its box, divided by those of the image."""
    width, height = SIZE
    lines = []
    for name, xmin, ymin, xmax, ymax in boxes:
        centre = f"{(xmin + xmax) / 2 / width:.6f} {(ymin + ymax) / 2 / height:.6f}"
        lines.append(
            f"{classes.index(name)} {centre} {(xmax - xmin) / width:.6f} "
            f"{(ymax - ymin) / height:.6f}\n"
        )
    return "".join(lines)


def yolo_outlines(boxes: Sequence[Box], classes: Sequence[str] = CLASSES) -> str:
    """Lines of a class number and the corners of its outline, divided by the size of the image."""
    width, height = SIZE
    lines = []
    for box in boxes:
        corners = " ".join(f"{x / width:.6f} {y / height:.6f}" for x, y in outline(box))
        lines.append(f"{classes.index(box[0])} {corners}\n")
    return "".join(lines)


def coco(
    boxes: Boxes,
    names: Mapping[str, str] | None = None,
    categories: Mapping[str, int] | None = None,
    outlines: bool = False,
) -> dict[str, Any]:
    """The JSON of COCO: ``names`` are the file names, if not the last part of each path;
    categories count from 1.
    """
    ids = categories or {name: number for number, name in enumerate(CLASSES, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for path, objects in boxes.items():
        image_id = len(images) + 1
        file_name = (names or {}).get(path, name_of(path))
        images.append({"id": image_id, "file_name": file_name, "width": SIZE[0], "height": SIZE[1]})
        for box in objects:
            name, xmin, ymin, xmax, ymax = box
            polygon = [number for corner in outline(box) for number in corner]
            area = int(filled(box).sum()) if outlines else (xmax - xmin) * (ymax - ymin)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": ids[name],
                    "bbox": [xmin, ymin, xmax - xmin, ymax - ymin],
                    "area": area,
                    "iscrowd": 0,
                    "segmentation": [polygon] if outlines else [],
                }
            )
    listed = [{"id": number, "name": name, "supercategory": "none"} for name, number in ids.items()]
    return {
        "info": {},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": listed,
    }


def cut_out(boxes: Boxes, start: str) -> Boxes:
    """The boxes of the images whose paths start so."""
    return {path: objects for path, objects in boxes.items() if path.startswith(start)}


# Pascal VOC ---------------------------------------------------------------------------------------


@kept
def stanford_dogs(painter: Painter) -> Truth:
    """Stanford Dogs, unpacked: Images/BREED/ID.jpg and Annotation/BREED/ID,
    VOC XML without the ending .xml.
    """
    classes: dict[str, str | None] = {}
    boxes: Boxes = {}
    for folder in ("n02085620-Chihuahua", "n02085782-Japanese_spaniel", "n02085936-Maltese_dog"):
        wordnet_id, breed = folder.split("-")
        for number in (10074, 10131, 10621):
            path = f"Images/{folder}/{wordnet_id}_{number}.jpg"
            boxes |= draw(painter, [path], [breed])
            classes[path] = folder
            painter.write(
                f"Annotation/{folder}/{wordnet_id}_{number}", voc_xml(path, boxes[path], wordnet_id)
            )
    return Truth(classes, boxes=boxes, choices=[only_boxes(boxes), Truth(classes)])


@kept
def labelimg_beside_the_images(painter: Painter) -> Truth:
    """LabelImg as it starts: a.xml next to a.jpg in one folder, and predefined_classes.txt."""
    boxes = draw(painter, numbered("IMG_{:04}.jpg", 7, 120))
    for path, objects in boxes.items():
        painter.write(f"{stem(path)}.xml", voc_xml(path, objects))
    painter.write("predefined_classes.txt", "cat\ndog\n")
    return only_boxes(boxes)


@kept
def roboflow_pascal_voc(painter: Painter) -> Truth:
    """Roboflow's export "Pascal VOC": images and XML together in train,
    valid and test, and two READMEs.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "valid": 2, "test": 2}.items():
        boxes |= draw(painter, numbered(split + "/frame_{:03}_jpg.rf.3ab5f1c0.jpg", count))
    for path, objects in boxes.items():
        painter.write(path.removesuffix(".jpg") + ".xml", voc_xml(path, objects, ""))
    painter.write("README.dataset.txt", "# animals > 2023-05-01\n")
    painter.write("README.roboflow.txt", "animals - v1\n")
    return only_boxes(
        boxes, splits=splits_of(boxes, train="train/", validation="valid/", test="test/")
    )


@kept
def voc_of_some_images(painter: Painter) -> Truth:
    """A folder that somebody labels by and by: half of the photographs have an XML yet;
    a person takes those.
    """
    boxes = draw(painter, numbered("photos/{:02}.jpg", 5))
    for path, objects in boxes.items():
        painter.write(f"annotations/{stem(path)}.xml", voc_xml(path, objects, "photos"))
    bare = [painter.paint(path, SIZE) for path in numbered("photos/{:02}.jpg", 4, 5)]
    return only_boxes({**boxes, **{path: [] for path in bare}}, left_out=bare)


@kept
def voc_lists_of_images_without_annotations(painter: Painter) -> Truth:
    """VOC 2007 with tests: val.txt has one image without its XML,
    and those of test.txt have none at all.
    """
    boxes = draw(painter, numbered("VOC2007/JPEGImages/{:06}.jpg", 6))
    for path, objects in boxes.items():
        painter.write(f"VOC2007/Annotations/{stem(path)}.xml", voc_xml(path, objects))
    bare = [
        painter.paint(f"VOC2007/JPEGImages/{number:06}.jpg", SIZE) for number in (106, 107, 108)
    ]
    train, val = list(boxes)[:4], list(boxes)[4:]
    for split, paths in {"train": train, "val": [*val, bare[0]], "test": bare[1:]}.items():
        painter.write(
            f"VOC2007/ImageSets/Main/{split}.txt", "".join(f"{stem(path)}\n" for path in paths)
        )
    splits = dict.fromkeys(train, "train") | dict.fromkeys(val, "validation")
    return Truth(dict.fromkeys(boxes), boxes=boxes, splits=splits, left_out=bare)


@kept
def face_mask_detection(painter: Painter) -> Truth:
    """Kaggle's Face Mask Detection: images/maksssksksss0.png and annotations/maksssksksss0.xml."""
    classes = ("with_mask", "without_mask", "mask_weared_incorrect")
    boxes = draw(painter, numbered("images/maksssksksss{}.png", 8), classes)
    for path, objects in boxes.items():
        painter.write(f"annotations/{stem(path)}.xml", voc_xml(path, objects))
    return only_boxes(boxes)


@kept
def voc_without_a_list_of_tests(painter: Painter) -> Truth:
    """The tutorial of TensorFlow's object detection:
    images/train and images/test, each with .jpg and .xml.
    """
    boxes = draw(
        painter, numbered("images/train/card{}.jpg", 5) + numbered("images/test/card{}.jpg", 3, 5)
    )
    for path, objects in boxes.items():
        painter.write(path.removesuffix(".jpg") + ".xml", voc_xml(path, objects))
    for split in ("train", "test"):
        rows = []
        for path, objects in cut_out(boxes, f"images/{split}/").items():
            rows += [(name_of(path), *SIZE, *box) for box in objects]
        painter.write(
            f"images/{split}_labels.csv",
            table(rows, "filename,width,height,class,xmin,ymin,xmax,ymax"),
        )
    return only_boxes(boxes, splits=splits_of(boxes, train="images/train/", test="images/test/"))


@kept
def oxford_pets_as_unpacked(painter: Painter) -> Truth:
    """Oxford-IIIT Pets: images/Abyssinian_1.jpg, list.txt, trainval.txt,
    test.txt, trimaps, and XML of some heads.
    """
    classes: dict[str, str | None] = {}
    splits: dict[str, str] = {}
    masks: dict[str, np.ndarray] = {}
    lists: dict[str, list[str]] = {"trainval": [], "test": []}
    for number, breed in enumerate(("Abyssinian", "american_bulldog", "Bengal")):
        species = 2 if breed == "american_bulldog" else 1
        for place in range(1, 5):
            path = f"images/{breed}_{place}.jpg"
            masks[path] = classes_mask(len(painter.painted), (1, 3)) + 0
            masks[path][masks[path] == 0] = 2
            painter.paint(path)
            painter.write(f"annotations/trimaps/{breed}_{place}.png", png(masks[path]))
            classes[path] = breed
            split = "test" if place == 4 else "trainval"
            splits[path] = {"trainval": "train", "test": "test"}[split]
            lists[split].append(f"{breed}_{place} {number + 1} {species} 1\n")
            if place == 1:
                head = [("dog" if species == 2 else "cat", 3, 2, 9, 8)]
                painter.write(
                    f"annotations/xmls/{breed}_{place}.xml", voc_xml(path, head, "images", (16, 12))
                )
    for split, lines in lists.items():
        painter.write(f"annotations/{split}.txt", "".join(lines))
    head_lines = "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n#SPECIES: 1:Cat 2:Dog\n"
    painter.write("annotations/list.txt", head_lines + "".join(lists["trainval"] + lists["test"]))
    numbers = {"Abyssinian": 0, "american_bulldog": 1, "Bengal": 2}
    just_classes = Truth(classes, splits=splits, numbers=numbers)
    just_masks = only_masks(masks, splits=splits)
    return Truth(
        classes, splits=splits, numbers=numbers, masks=masks, choices=[just_classes, just_masks]
    )


# boxes in text files of a data set's own ----------------------------------------------------------


@kept
def cub_200_with_boxes(painter: Painter) -> Truth:
    """CUB_200_2011: images.txt, image_class_labels.txt, train_test_split.txt,
    and bounding_boxes.txt of x, y, w, h.
    """
    classes: dict[str, str | None] = {}
    splits: dict[str, str] = {}
    boxes: Boxes = {}
    tables: dict[str, list[str]] = {
        "images": [],
        "image_class_labels": [],
        "train_test_split": [],
        "bounding_boxes": [],
    }
    birds = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross")
    for label, bird in enumerate(birds, 1):
        for place in range(4):
            name = f"{bird}/{bird[4:]}_{place:04}_{796000 + place}.jpg"
            path = f"images/{name}"
            number = len(painter.painted)
            painter.paint(path, SIZE)
            _, xmin, ymin, xmax, ymax = boxes_of(number)[0]
            boxes[path] = [(bird, xmin, ymin, xmax, ymax)]
            classes[path] = bird
            is_train = place % 2
            splits[path] = "train" if is_train else "test"
            tables["images"].append(f"{number + 1} {name}\n")
            tables["image_class_labels"].append(f"{number + 1} {label}\n")
            tables["train_test_split"].append(f"{number + 1} {is_train}\n")
            corners = f"{float(xmin)} {float(ymin)} {float(xmax - xmin)} {float(ymax - ymin)}"
            tables["bounding_boxes"].append(f"{number + 1} {corners}\n")
    for name, lines in tables.items():
        painter.write(f"{name}.txt", "".join(lines))
    painter.write(
        "classes.txt", "".join(f"{label} {bird}\n" for label, bird in enumerate(birds, 1))
    )
    numbers = {bird: number for number, bird in enumerate(birds)}
    just_classes = Truth(classes, splits=splits, numbers=numbers)
    return Truth(classes, splits=splits, boxes=boxes, numbers=numbers, choices=[just_classes])


@kept
def kitti_training(painter: Painter) -> Truth:
    """KITTI: training/image_2/000000.png and training/label_2/000000.txt,
    whose DontCare is no object.
    """
    boxes = draw(painter, numbered("training/image_2/{:06}.png", 7), ("Car", "Pedestrian"))
    for path, objects in boxes.items():
        lines = []
        for name, *corners in objects:
            pixels = " ".join(f"{corner:.2f}" for corner in corners)
            lines.append(f"{name} 0.00 0 -1.58 {pixels} 1.57 1.65 3.35 4.43 1.65 25.25 -1.56\n")
        nothing = "-1 -1 -10 60.00 30.00 70.00 36.00 -1 -1 -1 -1000 -1000 -1000 -10"
        painter.write(
            f"training/label_2/{stem(path)}.txt", "".join([*lines, f"DontCare {nothing}\n"])
        )
    care = only_boxes(
        {path: [*objects, ("DontCare", 60, 30, 70, 36)] for path, objects in boxes.items()}
    )
    return only_boxes(boxes, choices=[care])


@kept
def kitti_with_tests(painter: Painter) -> Truth:
    """KITTI with testing/image_2 beside, whose images have no labels:
    a split of its own, or left out.
    """
    boxes = draw(painter, numbered("training/image_2/{:06}.png", 5), ("Car", "Cyclist"))
    for path, objects in boxes.items():
        lines = []
        for name, *corners in objects:
            lines.append(
                f"{name} 0.00 0 1.85 {' '.join(f'{corner:.2f}' for corner in corners)} 1 1 1 1 "
                "1 1 0\n"
            )
        painter.write(f"training/label_2/{stem(path)}.txt", "".join(lines))
    tests = [painter.paint(path, SIZE) for path in numbered("testing/image_2/{:06}.png", 3)]
    full = {**boxes, **{path: [] for path in tests}}
    return only_boxes(
        full, splits=splits_of(full, train="training/", test="testing/"), left_out=tests
    )


@kept
def wider_face(painter: Painter) -> Truth:
    """WIDER FACE: WIDER_train/images/0--Parade/x.jpg,
    and in wider_face_split a text of paths, counts and boxes.
    """
    boxes: Boxes = {}
    for split, count in {"train": 4, "val": 3}.items():
        paths = numbered(f"WIDER_{split}/images/0--Parade/0_Parade_marchingband_1_{{}}.jpg", count)
        paths += numbered(f"WIDER_{split}/images/9--Press_Conference/9_Press_{{}}.jpg", 2)
        drawn = draw(painter, paths, ["face"])
        lines = []
        for path, objects in drawn.items():
            lines += [path.removeprefix(f"WIDER_{split}/images/"), str(len(objects))]
            for _, xmin, ymin, xmax, ymax in objects:
                lines.append(f"{xmin} {ymin} {xmax - xmin} {ymax - ymin} 0 0 0 0 0 0 ")
        painter.write(f"wider_face_split/wider_face_{split}_bbx_gt.txt", "\n".join(lines) + "\n")
        boxes |= drawn
    nameless = {path: [(ANY, *box[1:]) for box in objects] for path, objects in boxes.items()}
    return only_boxes(
        nameless, splits=splits_of(boxes, train="WIDER_train/", validation="WIDER_val/")
    )


@kept
def udacity_autti(painter: Painter) -> Truth:
    """Udacity's driving data by Autti: labels.csv without a header, separated by blanks;
    lights have a colour.
    """
    boxes = draw(
        painter, numbered("14780199526863110{:02}.jpg", 8), ("car", "truck", "trafficLight")
    )
    lines = []
    for path, objects in boxes.items():
        for name, *corners in objects:
            state = ' "Red"' if name == "trafficLight" else ""
            lines.append(f'{path} {" ".join(map(str, corners))} 0 "{name}"{state}\n')
    painter.write("labels.csv", "".join(lines))
    return only_boxes(boxes)


@kept
def visdrone(painter: Painter) -> Truth:
    """VisDrone-DET: images/a.jpg and annotations/a.txt of x,y,w,h,score,category,...;
    the names are in its paper.
    """
    boxes = draw(
        painter,
        numbered("VisDrone2019-DET-train/images/{:07}_00500_d_0000005.jpg", 6, 2),
        ("1", "4"),
    )
    for path, objects in boxes.items():
        lines = []
        for name, xmin, ymin, xmax, ymax in objects:
            lines.append(f"{xmin},{ymin},{xmax - xmin},{ymax - ymin},1,{name},0,0\n")
        painter.write(f"VisDrone2019-DET-train/annotations/{stem(path)}.txt", "".join(lines))
    return only_boxes(boxes)


# tables of boxes ----------------------------------------------------------------------------------


@kept
def open_images(painter: Painter) -> Truth:
    """Open Images: train and validation, a table of boxes for each with ids of classes,
    and class-descriptions.
    """
    ids = {"/m/01yrx": "Cat", "/m/0bt9lr": "Dog"}
    boxes: Boxes = {}
    for split, count in {"train": 5, "validation": 3}.items():
        drawn = draw(
            painter,
            numbered(split + "/00000{:011x}.jpg", count, 47 if split == "train" else 90),
            list(ids),
        )
        rows = []
        for path, objects in drawn.items():
            for name, xmin, ymin, xmax, ymax in objects:
                corners = [xmin / SIZE[0], xmax / SIZE[0], ymin / SIZE[1], ymax / SIZE[1]]
                rows.append([stem(path), "xclick", name, 1, *corners, 0, 0, 0, 0, 0])
        header = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,"
        header += "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
        painter.write(f"{split}-annotations-bbox.csv", table(rows, header))
        for path, objects in drawn.items():
            boxes[path] = [(ids[box[0]], *box[1:]) for box in objects]
    painter.write(
        "class-descriptions-boxable.csv", table([*ids.items(), ("/m/011k07", "Tortoise")])
    )
    return only_boxes(boxes, splits=splits_of(boxes, train="train/", validation="validation/"))


@kept
def roboflow_tensorflow_csv(painter: Painter) -> Truth:
    """Roboflow's export "Tensorflow Object Detection":
    _annotations.csv in train, valid and test.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "valid": 3, "test": 2}.items():
        drawn = draw(painter, numbered(split + "/img_{:03}_jpg.rf.0f5a.jpg", count))
        rows = [(name_of(path), *SIZE, *box) for path, objects in drawn.items() for box in objects]
        painter.write(
            f"{split}/_annotations.csv",
            table(rows, "filename,width,height,class,xmin,ymin,xmax,ymax"),
        )
        boxes |= drawn
    painter.write("README.roboflow.txt", "animals - v2\n")
    return only_boxes(
        boxes, splits=splits_of(boxes, train="train/", validation="valid/", test="test/")
    )


@kept
def keras_retinanet(painter: Painter) -> Truth:
    """keras-retinanet: annotations.csv of path,x1,y1,x2,y2,class without a header,
    and classes.csv of class,id.
    """
    boxes = draw(painter, numbered("images/img_{:03}.jpg", 7))
    rows: list[Sequence[object]] = []
    for path, objects in boxes.items():
        rows += [(path, *box[1:], box[0]) for box in objects]
    empty = painter.paint("images/img_empty.jpg", SIZE)
    rows.append((empty, "", "", "", "", ""))
    painter.write("annotations.csv", table(rows))
    painter.write("classes.csv", table([("cat", 0), ("dog", 1)]))
    return only_boxes({**boxes, empty: []}, numbers={"cat": 0, "dog": 1}, left_out=[empty])


@kept
def boxes_of_x1_without_header(painter: Painter) -> Truth:
    """A course's train.csv without a header, one row a box,
    file names without their folder, and no classes.csv.
    """
    boxes = draw(painter, numbered("JPEGImages/{:06}.jpg", 8))
    rows = [
        (name_of(path), *map(int, box[1:]), box[0])
        for path, objects in boxes.items()
        for box in objects
    ]
    painter.write("train.csv", table(rows))
    return only_boxes(boxes)


@kept
def vinbigdata(painter: Painter) -> Truth:
    """VinBigData's chest X-rays: train.csv of image_id without ending, class_name, class_id, x_min;
    "No finding".
    """
    classes = ("Aortic enlargement", "Cardiomegaly")
    boxes = draw(painter, numbered("train/9a5094b2563a1ef3ff50dc5c7ff71{:03}.png", 6), classes)
    rows: list[Sequence[object]] = []
    for path, objects in boxes.items():
        for name, *corners in objects:
            rows.append(
                [stem(path), name, 0 if name == classes[0] else 3, "R10", *map(float, corners)]
            )
    healthy = [
        painter.paint(path, SIZE)
        for path in numbered("train/000434271f63a053c4128a0ba6352{:03}.png", 3)
    ]
    rows += [[stem(path), "No finding", 14, "R11", "", "", "", ""] for path in healthy]
    painter.write(
        "train.csv", table(rows, "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max")
    )
    return only_boxes({**boxes, **{path: [] for path in healthy}}, left_out=healthy)


@kept
def global_wheat(painter: Painter) -> Truth:
    """Kaggle's global wheat detection: train.csv whose column bbox is "[x, y, w, h]";
    the only class has no name.
    """
    boxes = draw(painter, numbered("train/b6ab77fd{}.jpg", 7), [ANY])
    rows = []
    for path, objects in boxes.items():
        for _, xmin, ymin, xmax, ymax in objects:
            bbox = [float(xmin), float(ymin), float(xmax - xmin), float(ymax - ymin)]
            rows.append([stem(path), *SIZE, str(bbox), "usask_1"])
    painter.write("train.csv", table(rows, "image_id,width,height,bbox,source"))
    bare = [painter.paint(path, SIZE) for path in numbered("train/41c0123ccd{}.jpg", 2)]
    painter.write("sample_submission.csv", "image_id,PredictionString\naac893a91,1.0 0 0 50 50\n")
    return only_boxes({**boxes, **{path: [] for path in bare}}, left_out=bare)


@kept
def global_wheat_2021(painter: Painter) -> Truth:
    """Global Wheat 2021: a row an image, whose BoxesString is "x1 y1 x2 y2;..." or no_box;
    a table for each split.
    """
    boxes: Boxes = {}
    for split, count in {"train": 6, "val": 3}.items():
        drawn = draw(painter, numbered("images/" + split[0] + "4f01{}.png", count), [ANY])
        drawn[painter.paint(f"images/{split[0]}none.png", SIZE)] = []
        rows = []
        for path, objects in drawn.items():
            corners = ";".join(" ".join(map(str, box[1:])) for box in objects)
            rows.append([name_of(path), corners or "no_box", "Ethz_1"])
        painter.write(f"competition_{split}.csv", table(rows, "image_name,BoxesString,domain"))
        boxes |= drawn
    return only_boxes(boxes, splits=splits_of(boxes, train="images/t", validation="images/v"))


@kept
def car_object_detection(painter: Painter) -> Truth:
    """Kaggle's Car Object Detection: a table of image, xmin, ymin, xmax, ymax without a class;
    testing_images.
    """
    boxes = draw(painter, numbered("data/training_images/vid_4_{}.jpg", 6, 1000), [ANY])
    rows = [
        (name_of(path), *map(float, box[1:])) for path, objects in boxes.items() for box in objects
    ]
    painter.write(
        "data/train_solution_bounding_boxes (1).csv", table(rows, "image,xmin,ymin,xmax,ymax")
    )
    bare = [
        painter.paint(path, SIZE) for path in numbered("data/testing_images/vid_5_{}.jpg", 3, 400)
    ]
    full = {**boxes, **{path: [] for path in bare}}
    splits = splits_of(full, train="data/training_images/", test="data/testing_images/")
    return only_boxes(full, splits=splits, left_out=bare)


@kept
def rsna_pneumonia(painter: Painter) -> Truth:
    """RSNA's pneumonia as PNGs: patientId,x,y,width,height,Target;
    a row without box is a healthy patient.
    """
    boxes = draw(painter, numbered("images/0004cfab-14fd-4e49-80ba-63a80b6bd{:03}.png", 4), ["1"])
    rows: list[Sequence[object]] = []
    for path, objects in boxes.items():
        for _, xmin, ymin, xmax, ymax in objects:
            rows.append(
                [stem(path), float(xmin), float(ymin), float(xmax - xmin), float(ymax - ymin), 1]
            )
    healthy = [
        painter.paint(path, SIZE)
        for path in numbered("images/00313ee0-9eaa-42f4-b0ab-c148ed324{:03}.png", 4)
    ]
    rows += [[stem(path), "", "", "", "", 0] for path in healthy]
    painter.write("stage_2_train_labels.csv", table(rows, "patientId,x,y,width,height,Target"))
    classes: dict[str, str | None] = {**dict.fromkeys(boxes, "1"), **dict.fromkeys(healthy, "0")}
    full = {**boxes, **{path: [] for path in healthy}}
    return only_boxes(full, left_out=healthy, choices=[Truth(classes), Truth(classes, boxes=full)])


# annotation tools ---------------------------------------------------------------------------------


def via_regions(boxes: Sequence[Box]) -> list[dict[str, Any]]:
    """Rectangles of the VGG Image Annotator."""
    regions = []
    for name, xmin, ymin, xmax, ymax in boxes:
        shape = {"name": "rect", "x": xmin, "y": ymin, "width": xmax - xmin, "height": ymax - ymin}
        regions.append({"shape_attributes": shape, "region_attributes": {"class": name}})
    return regions


@kept
def via_2_project(painter: Painter) -> Truth:
    """VGG Image Annotator 2, project saved as JSON:
    _via_img_metadata with rectangles, beside the images.
    """
    boxes = draw(painter, numbered("street_{}.jpg", 7))
    files = {}
    for path, objects in boxes.items():
        size = (painter.folder / path).stat().st_size
        files[f"{path}{size}"] = {
            "filename": path,
            "size": size,
            "regions": via_regions(objects),
            "file_attributes": {},
        }
    settings = {"ui": {}, "core": {"default_filepath": ""}, "project": {"name": "streets"}}
    project = {
        "_via_settings": settings,
        "_via_img_metadata": files,
        "_via_attributes": {"region": {}, "file": {}},
    }
    painter.write("via_project_23Mar2021_15h30m.json", json.dumps(project))
    return only_boxes(boxes)


@kept
def via_1_balloons(painter: Painter) -> Truth:
    """Matterport's balloons: train and val, each with via_region_data.json,
    whose regions are polygons by number.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "val": 3}.items():
        drawn = draw(
            painter, numbered(split + "/34020010494_e5cb88e1c{}_k.jpg", count), ["balloon"]
        )
        files = {}
        for path, objects in drawn.items():
            regions = {}
            for number, box in enumerate(objects):
                corners = outline(box)
                points = {
                    "all_points_x": [x for x, _ in corners],
                    "all_points_y": [y for _, y in corners],
                }
                shape = {"name": "polygon", **points}
                regions[str(number)] = {
                    "shape_attributes": shape,
                    "region_attributes": {"name": "balloon"},
                }
            name = name_of(path)
            files[f"{name}1000"] = {
                "fileref": "",
                "size": 1000,
                "filename": name,
                "regions": regions,
            }
        painter.write(f"{split}/via_region_data.json", json.dumps(files))
        boxes |= drawn
    splits = splits_of(boxes, train="train/", validation="val/")
    return only_boxes(boxes, splits=splits, object_masks=masks_of(boxes))


@kept
def via_csv(painter: Painter) -> Truth:
    """VGG Image Annotator's CSV: a row a region, whose shape and class are JSON in columns."""
    boxes = draw(painter, numbered("images/plate{:02}.jpg", 7))
    rows = []
    for path, objects in boxes.items():
        for number, region in enumerate(via_regions(objects)):
            texts = [json.dumps(region[f"{part}_attributes"]) for part in ("shape", "region")]
            rows.append([name_of(path), 1000, "{}", len(objects), number, *texts])
    header = "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    painter.write("via_export_csv.csv", table(rows, header))
    return only_boxes(boxes)


def cvat(boxes: Boxes, shapes: Mapping[str, str], names: Sequence[str] = CLASSES) -> str:
    """CVAT's annotations.xml: the elements of each image by its path."""
    labels = "".join(
        f"<label><name>{name}</name><attributes></attributes></label>" for name in names
    )
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>',
        f"  <meta><task><id>7</id><name>animals</name><size>{len(boxes)}</size><labels>{labels}</labels></task></meta>",
    ]
    for number, path in enumerate(boxes):
        head = (
            f'  <image id="{number}" name="{name_of(path)}" width="{SIZE[0]}" height="{SIZE[1]}">'
        )
        parts.append(f"{head}\n{shapes[path]}  </image>")
    return "\n".join([*parts, "</annotations>\n"])


def cvat_box(box: Box) -> str:
    """A box as CVAT writes it."""
    name, xmin, ymin, xmax, ymax = box
    corners = f'xtl="{xmin:.2f}" ytl="{ymin:.2f}" xbr="{xmax:.2f}" ybr="{ymax:.2f}"'
    return (
        f'    <box label="{name}" source="manual" occluded="0" {corners} z_order="0">\n    </box>\n'
    )


def cvat_polygon(box: Box) -> str:
    """An outline as CVAT writes it."""
    points = ";".join(f"{x:.2f},{y:.2f}" for x, y in outline(box))
    return f'    <polygon label="{box[0]}" source="manual" occluded="0" points="{points}" z_order="0">\n    </polygon>\n'


@kept
def cvat_images(painter: Painter) -> Truth:
    """CVAT's export "CVAT for images 1.1": annotations.xml with boxes, and images;
    one image has none.
    """
    boxes = draw(painter, numbered("images/frame_{:06}.jpg", 7))
    boxes[painter.paint("images/frame_000007.jpg", SIZE)] = []
    shapes = {path: "".join(map(cvat_box, objects)) for path, objects in boxes.items()}
    painter.write("annotations.xml", cvat(boxes, shapes))
    return only_boxes(boxes)


@kept
def cvat_polygons(painter: Painter) -> Truth:
    """CVAT for images with polygons alone: an object mask of each, and the box around it."""
    boxes = draw(painter, numbered("images/leaf_{:02}.png", 7))
    shapes = {path: "".join(map(cvat_polygon, objects)) for path, objects in boxes.items()}
    painter.write("annotations.xml", cvat(boxes, shapes))
    return only_boxes(boxes, object_masks=masks_of(boxes))


@kept
def cvat_tags(painter: Painter) -> Truth:
    """CVAT for images with a tag each: a class of the whole image."""
    paths = painter.paint_all("images/{:03}.jpg", 8)
    classes: dict[str, str | None] = {}
    shapes = {}
    for number, path in enumerate(paths):
        classes[path] = CLASSES[number % 2]
        shapes[path] = f'    <tag label="{classes[path]}" source="manual">\n    </tag>\n'
    text = cvat({path: [] for path in paths}, shapes).replace(
        'width="80" height="40"', 'width="16" height="12"'
    )
    painter.write("annotations.xml", text)
    return Truth(classes)


def percent(box: Box) -> dict[str, Any]:
    """A rectangle of Label Studio: x, y, width and height in percent of the image."""
    name, xmin, ymin, xmax, ymax = box
    width, height = SIZE
    return {
        "x": xmin / width * 100,
        "y": ymin / height * 100,
        "width": (xmax - xmin) / width * 100,
        "height": (ymax - ymin) / height * 100,
        "rotation": 0,
        "rectanglelabels": [name],
    }


@kept
def label_studio_json(painter: Painter) -> Truth:
    """Label Studio's JSON: tasks whose image is /data/upload/1/HASH-NAME,
    with rectangles in percent.
    """
    boxes = draw(painter, numbered("images/3f2a91bc-photo_{}.jpg", 7))
    tasks = []
    for number, (path, objects) in enumerate(boxes.items(), 1):
        result: list[dict[str, Any]] = []
        for box in objects:
            result.append(
                {
                    "original_width": SIZE[0],
                    "original_height": SIZE[1],
                    "image_rotation": 0,
                    "value": percent(box),
                    "id": f"r{len(result)}",
                    "from_name": "label",
                    "to_name": "image",
                    "type": "rectanglelabels",
                }
            )
        annotations = [{"id": number, "completed_by": 1, "result": result, "was_cancelled": False}]
        data = {"image": f"/data/upload/1/{name_of(path)}"}
        tasks.append({"id": number, "annotations": annotations, "predictions": [], "data": data})
    painter.write("project-1-at-2023-05-04-10-11-9b1c2d3e.json", json.dumps(tasks))
    return only_boxes(boxes)


@kept
def label_studio_json_min(painter: Painter) -> Truth:
    """Label Studio's JSON-MIN: a list of images with their rectangles in percent under "label"."""
    boxes = draw(painter, numbered("77aa01ee-shelf_{}.jpg", 7))
    tasks = []
    for number, (path, objects) in enumerate(boxes.items(), 1):
        labels = []
        for box in objects:
            labels.append({**percent(box), "original_width": SIZE[0], "original_height": SIZE[1]})
        tasks.append(
            {"image": f"/data/upload/2/{path}", "id": number, "label": labels, "annotator": 1}
        )
    painter.write("project-2-at-2023-06-01-min.json", json.dumps(tasks))
    return only_boxes(boxes)


@kept
def label_studio_choices(painter: Painter) -> Truth:
    """Label Studio's JSON-MIN of a classification: {"image":
    "/data/upload/...", "choice": "cat"}.
    """
    classes: dict[str, str | None] = {}
    tasks = []
    for number, path in enumerate(painter.paint_all("0c1d{:02}-pet.jpg", 8)):
        classes[path] = CLASSES[number % 2]
        tasks.append(
            {
                "image": f"/data/upload/3/{path}",
                "id": number,
                "choice": classes[path],
                "lead_time": 1.5,
            }
        )
    painter.write("project-3-at-2023-06-02-min.json", json.dumps(tasks))
    return Truth(classes)


def labelme(path: str, shapes: Sequence[dict[str, Any]]) -> str:
    """The JSON of one image by LabelMe."""
    head: dict[str, Any] = {
        "version": "5.0.1",
        "flags": {},
        "shapes": shapes,
        "imagePath": name_of(path),
        "imageData": None,
    }
    return json.dumps({**head, "imageHeight": SIZE[1], "imageWidth": SIZE[0]}, indent=2)


@kept
def labelme_rectangles(painter: Painter) -> Truth:
    """LabelMe: a JSON beside each image, with rectangles by two corners,
    one of which was drawn from below.
    """
    boxes = draw(painter, numbered("scan{:02}.jpg", 7))
    for path, objects in boxes.items():
        shapes: list[dict[str, Any]] = []
        for name, xmin, ymin, xmax, ymax in objects:
            points = [[xmax, ymax], [xmin, ymin]] if shapes else [[xmin, ymin], [xmax, ymax]]
            shapes.append(
                {
                    "label": name,
                    "points": points,
                    "group_id": None,
                    "shape_type": "rectangle",
                    "flags": {},
                }
            )
        painter.write(f"{stem(path)}.json", labelme(path, shapes))
    return only_boxes(boxes)


@kept
def labelme_polygons(painter: Painter) -> Truth:
    """LabelMe: images and annotations in two folders, with polygons."""
    boxes = draw(painter, numbered("images/cell_{:02}.png", 7))
    for path, objects in boxes.items():
        shapes: list[dict[str, Any]] = []
        for box in objects:
            points = [list(corner) for corner in outline(box)]
            shapes.append(
                {
                    "label": box[0],
                    "points": points,
                    "group_id": None,
                    "shape_type": "polygon",
                    "flags": {},
                }
            )
        painter.write(f"annotations/{stem(path)}.json", labelme(path, shapes))
    return only_boxes(boxes, object_masks=masks_of(boxes))


@kept
def supervisely(painter: Painter) -> Truth:
    """Supervisely's project: meta.json, ds0/img/a.jpg and ds0/ann/a.jpg.json with rectangles."""
    boxes = draw(painter, numbered("ds0/img/apple_{}.jpg", 7), ("apple", "pear"))
    for path, objects in boxes.items():
        shapes = []
        for name, xmin, ymin, xmax, ymax in objects:
            points = {"exterior": [[xmin, ymin], [xmax, ymax]], "interior": []}
            shapes.append(
                {"classTitle": name, "geometryType": "rectangle", "tags": [], "points": points}
            )
        size = {"height": SIZE[1], "width": SIZE[0]}
        ann = {"description": "", "tags": [], "size": size, "objects": shapes}
        painter.write(f"ds0/ann/{name_of(path)}.json", json.dumps(ann))
    classes = [
        {"title": name, "shape": "rectangle", "color": "#FF0000"} for name in ("apple", "pear")
    ]
    painter.write(
        "meta.json", json.dumps({"classes": classes, "tags": [], "projectType": "images"})
    )
    return only_boxes(boxes)


@kept
def roboflow_createml(painter: Painter) -> Truth:
    """Roboflow's export "CreateML": _annotations.createml.json in each split,
    with centres and sizes in pixels.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "valid": 2}.items():
        drawn = draw(painter, numbered(split + "/sign_{:02}_png.rf.77.jpg", count))
        entries = []
        for path, objects in drawn.items():
            annotations = []
            for name, xmin, ymin, xmax, ymax in objects:
                centre = {"x": (xmin + xmax) / 2, "y": (ymin + ymax) / 2}
                annotations.append(
                    {
                        "label": name,
                        "coordinates": {**centre, "width": xmax - xmin, "height": ymax - ymin},
                    }
                )
            entries.append({"image": name_of(path), "annotations": annotations})
        painter.write(f"{split}/_annotations.createml.json", json.dumps(entries))
        boxes |= drawn
    return only_boxes(boxes, splits=splits_of(boxes, train="train/", validation="valid/"))


@kept
def roboflow_one_hot(painter: Painter) -> Truth:
    """Roboflow's export "Multi-Label Classification" of one class an image:
    _classes.csv, with blanks after commas.
    """
    classes: dict[str, str | None] = {}
    names = ("daisy", "rose", "tulip")
    for split, count in {"train": 6, "valid": 3, "test": 3}.items():
        lines = [f"filename, {', '.join(names)}\n"]
        for number, path in enumerate(painter.paint_all(split + "/f{:02}_jpg.rf.1a.jpg", count)):
            classes[path] = names[number % 3]
            lines.append(
                f"{name_of(path)}, {', '.join(str(int(name == classes[path])) for name in names)}\n"
            )
        painter.write(f"{split}/_classes.csv", "".join(lines))
    return Truth(
        classes, splits=splits_of(classes, train="train/", validation="valid/", test="test/")
    )


@kept
def roboflow_darknet(painter: Painter) -> Truth:
    """Roboflow's export "YOLO Darknet": a.txt beside a.jpg in each split,
    and the names in _darknet.labels.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "valid": 3}.items():
        drawn = draw(painter, numbered(split + "/die_{:02}_jpg.rf.b2.jpg", count))
        for path, objects in drawn.items():
            painter.write(path.removesuffix(".jpg") + ".txt", yolo_lines(objects))
        painter.write(f"{split}/_darknet.labels", "cat\ndog\n")
        boxes |= drawn
    splits = splits_of(boxes, train="train/", validation="valid/")
    return only_boxes(boxes, splits=splits, numbers={"cat": 0, "dog": 1})


@kept
def fiftyone_detections(painter: Painter) -> Truth:
    """FiftyOne's FiftyOneImageDetectionDataset:
    data/a.jpg, and labels.json of relative x, y, width, height.
    """
    boxes = draw(painter, numbered("data/{:06}.jpg", 7, 1))
    labels = {}
    for path, objects in boxes.items():
        detections = []
        for name, xmin, ymin, xmax, ymax in objects:
            place = [
                xmin / SIZE[0],
                ymin / SIZE[1],
                (xmax - xmin) / SIZE[0],
                (ymax - ymin) / SIZE[1],
            ]
            detections.append({"label": CLASSES.index(name), "bounding_box": place})
        labels[stem(path)] = detections
    painter.write("labels.json", json.dumps({"classes": list(CLASSES), "labels": labels}))
    return only_boxes(boxes, numbers={"cat": 0, "dog": 1})


@kept
def ground_truth_boxes(painter: Painter) -> Truth:
    """SageMaker Ground Truth's boxes: output.manifest of JSON lines, with a class-map in each."""
    boxes = draw(painter, numbered("images/bird{:03}.jpg", 7))
    lines = []
    for path, objects in boxes.items():
        annotations = []
        for name, xmin, ymin, xmax, ymax in objects:
            place = {"left": xmin, "top": ymin, "width": xmax - xmin, "height": ymax - ymin}
            annotations.append({"class_id": CLASSES.index(name), **place})
        size = [{"width": SIZE[0], "height": SIZE[1], "depth": 3}]
        meta = {"class-map": {"0": "cat", "1": "dog"}, "type": "groundtruth/object-detection"}
        value = {
            "source-ref": f"s3://birds/{path}",
            "job": {"image_size": size, "annotations": annotations},
        }
        lines.append(json.dumps({**value, "job-metadata": meta}) + "\n")
    painter.write("output.manifest", "".join(lines))
    return only_boxes(boxes, numbers={"cat": 0, "dog": 1})


@kept
def fiftyone_dataset(painter: Painter) -> Truth:
    """FiftyOne's own export (FiftyOneDataset): data, metadata.json,
    and samples.json with detections and tags.
    """
    boxes = draw(painter, numbered("data/{:06}.jpg", 7))
    splits: dict[str, str] = {}
    samples = []
    for number, (path, objects) in enumerate(boxes.items()):
        splits[path] = "validation" if number > 4 else "train"
        detections = []
        for name, xmin, ymin, xmax, ymax in objects:
            place = [
                xmin / SIZE[0],
                ymin / SIZE[1],
                (xmax - xmin) / SIZE[0],
                (ymax - ymin) / SIZE[1],
            ]
            detections.append(
                {"_cls": "Detection", "label": name, "bounding_box": place, "tags": []}
            )
        truth = {"_cls": "Detections", "detections": detections}
        samples.append({"filepath": path, "tags": [splits[path]], "ground_truth": truth})
    painter.write("samples.json", json.dumps({"samples": samples}))
    painter.write(
        "metadata.json", json.dumps({"name": "pets", "media_type": "image", "sample_fields": []})
    )
    return only_boxes(boxes, splits=splits, choices=[only_boxes(boxes)])


@kept
def bdd100k(painter: Painter) -> Truth:
    """BDD100K: images/100k/train/a.jpg, and one JSON for each split of
    names with box2d in labels.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "val": 3}.items():
        drawn = draw(
            painter,
            numbered(f"images/100k/{split}/0000f77c-6257be{{:02}}.jpg", count),
            ("car", "traffic sign"),
        )
        frames = []
        for number, (path, objects) in enumerate(drawn.items()):
            labels: list[dict[str, Any]] = []
            for name, xmin, ymin, xmax, ymax in objects:
                box = {"x1": xmin, "y1": ymin, "x2": xmax, "y2": ymax}
                labels.append(
                    {
                        "id": len(labels),
                        "category": name,
                        "box2d": box,
                        "attributes": {"occluded": False},
                    }
                )
            weather = {
                "weather": ("clear", "rainy")[number % 2],
                "scene": "highway",
                "timeofday": "daytime",
            }
            frames.append(
                {"name": name_of(path), "attributes": weather, "timestamp": 10000, "labels": labels}
            )
        painter.write(f"labels/bdd100k_labels_images_{split}.json", json.dumps(frames))
        boxes |= drawn
    splits = splits_of(boxes, train="images/100k/train/", validation="images/100k/val/")
    return only_boxes(boxes, splits=splits)


@kept
def huggingface_objects(painter: Painter) -> Truth:
    """Hugging Face's imagefolder with objects: metadata.jsonl in train and test,
    bbox of x, y, width, height.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "test": 3}.items():
        drawn = draw(painter, numbered(split + "/{:04}.png", count))
        lines = []
        for path, objects in drawn.items():
            bbox = [[xmin, ymin, xmax - xmin, ymax - ymin] for _, xmin, ymin, xmax, ymax in objects]
            value = {"bbox": bbox, "categories": [name for name, *_ in objects]}
            lines.append(json.dumps({"file_name": name_of(path), "objects": value}) + "\n")
        painter.write(f"{split}/metadata.jsonl", "".join(lines))
        boxes |= drawn
    return only_boxes(boxes, splits=splits_of(boxes, train="train/", test="test/"))


@kept
def huggingface_objects_by_number(painter: Painter) -> Truth:
    """The example of Hugging Face's page: metadata.jsonl with "objects":
    {"bbox", "categories"} of numbers.
    """
    boxes = draw(painter, numbered("train/{:04}.png", 7, 1), ("0", "1"))
    lines = []
    for path, objects in boxes.items():
        bbox = [[float(x), float(y), float(x2 - x), float(y2 - y)] for _, x, y, x2, y2 in objects]
        value = {"bbox": bbox, "categories": [int(name) for name, *_ in objects]}
        lines.append(json.dumps({"file_name": name_of(path), "objects": value}) + "\n")
    painter.write("train/metadata.jsonl", "".join(lines))
    return only_boxes(boxes, numbers={"0": 0, "1": 1})


# COCO ---------------------------------------------------------------------------------------------


@kept
def coco_polygons(painter: Painter) -> Truth:
    """COCO as custom instance segmentation has it:
    images and annotations.json with a polygon for each object.
    """
    boxes = draw(painter, numbered("images/{:012}.jpg", 7, 139))
    painter.write("annotations.json", json.dumps(coco(boxes, outlines=True)))
    return only_boxes(boxes, object_masks=masks_of(boxes))


@kept
def coco_without_bbox(painter: Painter) -> Truth:
    """A home-made COCO of polygons whose annotations lack bbox and area:
    the box is the one around the polygon.
    """
    boxes = draw(painter, numbered("images/tree_{}.jpg", 7))
    value = coco(boxes, outlines=True)
    for annotation in value["annotations"]:
        del annotation["bbox"], annotation["area"], annotation["iscrowd"]
    painter.write("annotations/train.json", json.dumps(value))
    return only_boxes(boxes, object_masks=masks_of(boxes))


def column_runs(mask: np.ndarray) -> list[int]:
    """COCO's run lengths of a mask: column by column, of 0 first."""
    runs = [0]
    current = 0
    for pixel in mask.flatten("F").tolist():
        if pixel != current:
            runs.append(0)
            current = pixel
        runs[-1] += 1
    return runs


@kept
def coco_crowd_rle(painter: Painter) -> Truth:
    """COCO's instances_val2017: polygons, and one crowd an image,
    whose segmentation is counts of an RLE.
    """
    boxes = draw(painter, numbered("val2017/{:012}.jpg", 6, 285), ("person", "bear"))
    value = coco(boxes, categories={"person": 1, "bear": 23}, outlines=True)
    for number, path in enumerate(boxes):
        crowd: Box = ("person", 50 + number, 24, 70 + number, 38)
        boxes[path].append(crowd)
        counts = column_runs(filled(crowd))
        segmentation = {"size": [SIZE[1], SIZE[0]], "counts": counts}
        ids = {"id": 900 + number, "image_id": number + 1, "category_id": 1, "iscrowd": 1}
        area = int(filled(crowd).sum())
        value["annotations"].append(
            {**ids, "bbox": [50 + number, 24, 20, 14], "area": area, "segmentation": segmentation}
        )
    painter.write("annotations/instances_val2017.json", json.dumps(value))
    return only_boxes(
        boxes,
        splits=dict.fromkeys(boxes, "validation"),
        object_masks=masks_of(boxes),
        choices=[only_boxes(boxes, object_masks=masks_of(boxes))],
    )


@kept
def coco_panoptic(painter: Painter) -> Truth:
    """COCO's panoptic: panoptic_val2017.json, and PNGs whose colour is the segment's id,
    beside val2017.
    """
    names = {"person": 1, "grass-merged": 193}
    boxes = draw(painter, numbered("val2017/{:012}.jpg", 6, 724), tuple(names))
    annotations = []
    for number, (path, objects) in enumerate(boxes.items()):
        ids = np.zeros((SIZE[1], SIZE[0]), np.uint32)
        segments: list[dict[str, Any]] = []
        for place, box in enumerate(objects):
            segment = 3226956 + 1000 * number + place
            ids[filled(box) == 1] = segment
            name, xmin, ymin, xmax, ymax = box
            bbox = [xmin, ymin, xmax - xmin, ymax - ymin]
            segments.append(
                {"id": segment, "category_id": names[name], "iscrowd": 0, "bbox": bbox, "area": 100}
            )
        for segment_of in segments:
            segment_of["area"] = int((ids == segment_of["id"]).sum())
        colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
        painter.write(f"annotations/panoptic_val2017/{stem(path)}.png", png(colours))
        file_name = f"{stem(path)}.png"
        annotations.append(
            {"image_id": number + 1, "file_name": file_name, "segments_info": segments}
        )
    images = coco(boxes, categories=names)["images"]
    categories = [
        {"id": number, "name": name, "supercategory": "x", "isthing": int(name == "person")}
        for name, number in names.items()
    ]
    value = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
    painter.write("annotations/panoptic_val2017.json", json.dumps(value))
    splits = dict.fromkeys(boxes, "validation")
    return only_boxes(
        boxes,
        splits=splits,
        object_masks=shown_parts(boxes),
        choices=[
            only_boxes(boxes, object_masks=shown_parts(boxes)),
            only_boxes(boxes, splits=splits),
        ],
    )


def shown_parts(boxes: Boxes) -> dict[str, list[np.ndarray]]:
    """The mask of each object without what a later one hides."""
    masks = masks_of(boxes)
    for several in masks.values():
        for place, mask in enumerate(several):
            for later in several[place + 1 :]:
                mask[later == 1] = 0
    return masks


@kept
def coco_keypoints_alone(painter: Painter) -> Truth:
    """A pose set: only person_keypoints_train.json, with boxes and 17 points;
    one person has none.
    """
    boxes = draw(painter, numbered("train/{:06}.jpg", 7), ["person"])
    value = coco(boxes, categories={"person": 1})
    for number, annotation in enumerate(value["annotations"]):
        x, y, _, _ = annotation["bbox"]
        annotation["keypoints"] = [0, 0, 0] * 17 if number == 3 else [x + 1, y + 1, 2] * 17
        annotation["num_keypoints"] = 0 if number == 3 else 17
        del annotation["segmentation"]
    value["categories"][0] |= {
        "keypoints": [f"p{number}" for number in range(17)],
        "skeleton": [[1, 2]],
    }
    painter.write("annotations/person_keypoints_train.json", json.dumps(value))
    return only_boxes(boxes)


@kept
def coco_of_eighty_categories(painter: Painter) -> Truth:
    """A part of COCO 2017 that keeps the 80 categories, two of which occur:
    their ids stay 17 and 18.
    """
    boxes = draw(painter, numbered("data/{:012}.jpg", 7, 1000))
    categories = {f"thing {number}": number for number in range(1, 91)}
    categories = {
        name: number
        for name, number in categories.items()
        if number not in (12, 17, 18, 26, 29, 30, 45)
    }
    painter.write(
        "labels.json", json.dumps(coco(boxes, categories={**categories, "cat": 17, "dog": 18}))
    )
    return only_boxes(boxes)


@kept
def roboflow_coco(painter: Painter) -> Truth:
    """Roboflow's export "COCO": _annotations.coco.json in each split,
    and an unused category 0 above the others.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "valid": 2, "test": 2}.items():
        drawn = draw(painter, numbered(split + "/pet_{:02}_jpg.rf.9c.jpg", count))
        value = coco(drawn, categories={"pets": 0, "cat": 1, "dog": 2})
        painter.write(f"{split}/_annotations.coco.json", json.dumps(value))
        boxes |= drawn
    painter.write("README.dataset.txt", "# pets\n")
    splits = splits_of(boxes, train="train/", validation="valid/", test="test/")
    return only_boxes(
        boxes,
        splits=splits,
        numbers={"cat": 1, "dog": 2},
        choices=[only_boxes(boxes, splits=splits)],
    )


@kept
def label_studio_coco(painter: Painter) -> Truth:
    """Label Studio's export "COCO": result.json whose file_name is a path of the machine it ran on;
    ids from 0.
    """
    boxes = draw(painter, numbered("images/d41d8cd9-ship{}.jpg", 7))
    names = {path: f"../../label-studio/data/media/upload/5/{name_of(path)}" for path in boxes}
    painter.write("result.json", json.dumps(coco(boxes, names, {"cat": 0, "dog": 1})))
    return only_boxes(boxes, numbers={"cat": 0, "dog": 1})


@kept
def coco_of_windows(painter: Painter) -> Truth:
    """Label Studio or a script on Windows: file_name is images\\a.jpg."""
    boxes = draw(painter, numbered("images/a{}.jpg", 7))
    names = {path: path.replace("/", "\\") for path in boxes}
    painter.write("result.json", json.dumps(coco(boxes, names)))
    return only_boxes(boxes)


@kept
def cvat_coco(painter: Painter) -> Truth:
    """CVAT's export "COCO 1.0" with subsets: annotations/instances_Train.json,
    images/Train/a.jpg, file_name a.jpg.
    """
    boxes: Boxes = {}
    for subset, count in {"Train": 5, "Validation": 3}.items():
        drawn = draw(painter, numbered(f"images/{subset}/{subset[0]}_{{:03}}.jpg", count))
        painter.write(f"annotations/instances_{subset}.json", json.dumps(coco(drawn)))
        boxes |= drawn
    return only_boxes(
        boxes, splits=splits_of(boxes, train="images/Train/", validation="images/Validation/")
    )


@kept
def mmdetection_coco(painter: Painter) -> Truth:
    """MMDetection's custom set: train.json and val.json in annotations,
    all images in one folder.
    """
    boxes: Boxes = {}
    splits: dict[str, str] = {}
    for split, count in {"train": 5, "val": 3}.items():
        drawn = draw(painter, numbered("images/{:04}.png", count, len(boxes)))
        painter.write(f"annotations/{split}.json", json.dumps(coco(drawn)))
        splits |= dict.fromkeys(drawn, "validation" if split == "val" else split)
        boxes |= drawn
    return only_boxes(boxes, splits=splits)


@kept
def coco_with_tests_of_no_boxes(painter: Painter) -> Truth:
    """COCO 2017 with test2017 and image_info_test2017.json: those images have no annotations."""
    boxes: Boxes = {}
    for split, count in {"train2017": 4, "val2017": 2}.items():
        drawn = draw(
            painter, numbered(split + "/{:012}.jpg", count, 9 if split == "train2017" else 139)
        )
        painter.write(f"annotations/instances_{split}.json", json.dumps(coco(drawn)))
        boxes |= drawn
    tests: Boxes = {painter.paint(path, SIZE): [] for path in numbered("test2017/{:012}.jpg", 3, 1)}
    info = coco(dict(tests))
    del info["annotations"]
    painter.write("annotations/image_info_test2017.json", json.dumps(info))
    full: Boxes = {**boxes, **tests}
    splits = splits_of(full, train="train2017/", validation="val2017/", test="test2017/")
    return only_boxes(full, splits=splits, left_out=list(tests))


# YOLO ---------------------------------------------------------------------------------------------


@kept
def yolo_outlines_in_splits(painter: Painter) -> Truth:
    """Ultralytics' segmentation: images/train, labels/train with polygons,
    data.yaml with names by number.
    """
    boxes: Boxes = {}
    for split, count in {"train": 5, "val": 3}.items():
        drawn = draw(painter, numbered(f"images/{split}/crack_{split}{{:02}}.jpg", count))
        for path, objects in drawn.items():
            painter.write(f"labels/{split}/{stem(path)}.txt", yolo_outlines(objects))
        boxes |= drawn
    painter.write(
        "data.yaml",
        (
            "path: ../datasets/cracks\ntrain: images/train\nval: images/val\nnames:\n  0: "
            "cat\n  1: "
            "dog\n"
        ),
    )
    splits = splits_of(boxes, train="images/train/", validation="images/val/")
    return only_boxes(
        boxes, splits=splits, numbers={"cat": 0, "dog": 1}, object_masks=masks_of(boxes)
    )


@kept
def labelimg_yolo(painter: Painter) -> Truth:
    """LabelImg set to YOLO: a.jpg, a.txt and classes.txt in one flat folder."""
    boxes = draw(painter, numbered("shot{:02}.jpg", 7))
    for path, objects in boxes.items():
        painter.write(f"{stem(path)}.txt", yolo_lines(objects))
    painter.write("classes.txt", "cat\ndog\n")
    return only_boxes(boxes, numbers={"cat": 0, "dog": 1})


@kept
def yolo_without_names(painter: Painter) -> Truth:
    """images and labels of a shared YOLO set without data.yaml:
    a person asks what 0 and 1 are, or keeps numbers.
    """
    boxes = draw(painter, numbered("images/{:03}.jpg", 7), ("0", "1"))
    for path, objects in boxes.items():
        painter.write(f"labels/{stem(path)}.txt", yolo_lines(objects, ("0", "1")))
    nameless = {path: [(ANY, *box[1:]) for box in objects] for path, objects in boxes.items()}
    return only_boxes(
        boxes, numbers={"0": 0, "1": 1}, choices=[only_boxes(nameless)], must_ask=True
    )


@kept
def darknet_obj(painter: Painter) -> Truth:
    """AlexeyAB's darknet: data/obj/a.jpg with a.txt, data/obj.names,
    data/obj.data, data/train.txt, data/test.txt.
    """
    boxes = draw(painter, numbered("data/obj/img{}.jpg", 8))
    paths = list(boxes)
    for path, objects in boxes.items():
        painter.write(path.removesuffix(".jpg") + ".txt", yolo_lines(objects))
    painter.write("data/obj.names", "cat\ndog\n")
    painter.write(
        "data/obj.data",
        "classes = 2\ntrain = data/train.txt\nvalid = data/test.txt\nnames = data/obj.names\n",
    )
    painter.write("data/train.txt", "".join(f"{path}\n" for path in paths[:6]))
    painter.write("data/test.txt", "".join(f"{path}\n" for path in paths[6:]))
    test_splits = {**dict.fromkeys(paths[:6], "train"), **dict.fromkeys(paths[6:], "test")}
    valid_splits = {**dict.fromkeys(paths[:6], "train"), **dict.fromkeys(paths[6:], "validation")}
    numbers = {"cat": 0, "dog": 1}
    return only_boxes(
        boxes,
        splits=test_splits,
        numbers=numbers,
        choices=[only_boxes(boxes, splits=valid_splits, numbers=numbers)],
    )


@kept
def yolo_classification(painter: Painter) -> Truth:
    """Ultralytics' classification: train, val and test of class folders, and a README;
    test lacks a class.
    """
    classes: dict[str, str | None] = {}
    for split, names in {
        "train": ("ripe", "rotten"),
        "val": ("ripe", "rotten"),
        "test": ("rotten",),
    }.items():
        for name in names:
            for path in painter.paint_all(f"{split}/{name}/{split}_{name}_{{}}.jpg", 3):
                classes[path] = name
    painter.write("README.roboflow.txt", "fruit - v1\n")
    return Truth(
        classes, splits=splits_of(classes, train="train/", validation="val/", test="test/")
    )


@kept
def yolo_rotated(painter: Painter) -> Truth:
    """Ultralytics' OBB: a class and four corners a line;
    a person asks whether the boxes around them will do.
    """
    boxes: Boxes = {}
    for path in numbered("images/train/ship_{}.jpg", 6):
        painter.paint(path, SIZE)
        boxes[path] = []
        lines = []
        for name, xmin, ymin, xmax, ymax in boxes_of(len(painter.painted)):
            corners = [(xmin, ymin + 4), (xmin + 6, ymin), (xmax, ymax - 4), (xmax - 6, ymax)]
            lines.append(
                f"{CLASSES.index(name)} "
                f"{' '.join(f'{x / SIZE[0]} {y / SIZE[1]}' for x, y in corners)}\n"
            )
            boxes[path].append((name, xmin, ymin, xmax, ymax))
        painter.write(f"labels/train/{stem(path)}.txt", "".join(lines))
    painter.write("data.yaml", "train: images/train\nval: images/train\nnames: [cat, dog]\n")
    return only_boxes(boxes, numbers={"cat": 0, "dog": 1}, must_ask=True)


# masks of classes ---------------------------------------------------------------------------------


@kept
def cityscapes(painter: Painter) -> Truth:
    """Cityscapes: leftImg8bit/train/CITY/ID_leftImg8bit.png,
    and in gtFine labelIds beside color and instanceIds.
    """
    masks: dict[str, np.ndarray] = {}
    for split, city in {"train": "aachen", "val": "lindau"}.items():
        for number in range(4):
            name = f"{split}/{city}/{city}_{number:06}_000019"
            image = f"leftImg8bit/{name}_leftImg8bit.png"
            masks[image] = classes_mask(len(painter.painted), (7, 26))
            painter.paint(image)
            painter.write(f"gtFine/{name}_gtFine_labelIds.png", png(masks[image]))
            painter.write(
                f"gtFine/{name}_gtFine_instanceIds.png", png(masks[image].astype(np.uint16) * 1000)
            )
            painter.write(f"gtFine/{name}_gtFine_color.png", png(np.stack([masks[image]] * 3, -1)))
            painter.write(
                f"gtFine/{name}_gtFine_polygons.json",
                '{"imgHeight": 12, "imgWidth": 16, "objects": []}',
            )
    return only_masks(
        masks, splits=splits_of(masks, train="leftImg8bit/train/", validation="leftImg8bit/val/")
    )


@kept
def ade20k_scene_parsing(painter: Painter) -> Truth:
    """ADEChallengeData2016: images/training, annotations/training, and sceneCategories.txt:
    the scene of each image.
    """
    classes: dict[str, str | None] = {}
    masks: dict[str, np.ndarray] = {}
    lines = []
    for split, folder in {"train": "training", "val": "validation"}.items():
        pairs = []
        for number in range(1, 5):
            name = f"{folder}/ADE_{split}_{number:08}"
            image = f"images/{name}.jpg"
            pairs.append((image, f"annotations/{name}.png"))
            classes[image] = ("airport_terminal", "bedroom")[number % 2]
            lines.append(f"ADE_{split}_{number:08} {classes[image]}\n")
        masks |= mask_pairs(painter, pairs)
    painter.write("sceneCategories.txt", "".join(lines))
    painter.write(
        "objectInfo150.txt",
        "Idx\tRatio\tTrain\tVal\tName\n1\t0.1\t11664\t1172\twall\n2\t0.1\t6046\t612\tsky\n",
    )
    splits = splits_of(masks, train="images/training/", validation="images/validation/")
    scenes = Truth(classes, splits=splits)
    return only_masks(
        masks, splits=splits, choices=[scenes, Truth(classes, splits=splits, masks=masks)]
    )


@kept
def camvid_of_fastai(painter: Painter) -> Truth:
    """fast.ai's CamVid: images/0001TP_006690.png, labels/0001TP_006690_P.png,
    codes.txt, valid.txt.
    """
    names = numbered("0001TP_{:06}", 8, 6690)
    masks = mask_pairs(painter, [(f"images/{name}.png", f"labels/{name}_P.png") for name in names])
    painter.write("codes.txt", "Animal\nArchway\nBicyclist\n")
    painter.write("valid.txt", "".join(f"{name}.png\n" for name in names[6:]))
    splits = {path: "validation" if stem(path) in names[6:] else "train" for path in masks}
    return only_masks(masks, splits=splits, choices=[only_masks(masks)])


@kept
def camvid_of_segnet(painter: Painter) -> Truth:
    """SegNet's tutorial: train and trainannot, val and valannot,
    test and testannot, with lists of pairs.
    """
    masks: dict[str, np.ndarray] = {}
    for split, count in {"train": 4, "val": 2, "test": 2}.items():
        names = numbered("0016E5_{:05}.png", count, len(masks))
        pairs = [(f"{split}/{name}", f"{split}annot/{name}") for name in names]
        masks |= mask_pairs(painter, pairs)
        lines = [f"/SegNet/CamVid/{image} /SegNet/CamVid/{mask}\n" for image, mask in pairs]
        painter.write(f"{split}.txt", "".join(lines))
    return only_masks(
        masks, splits=splits_of(masks, train="train/", validation="val/", test="test/")
    )


@kept
def camvid_in_colours(painter: Painter) -> Truth:
    """Kaggle's CamVid: train and train_labels with a_L.png in colours,
    val and val_labels, class_dict.csv.
    """
    masks: dict[str, np.ndarray] = {}
    colours = {0: (0, 0, 0), 1: (64, 128, 64), 2: (192, 0, 128)}
    for split, count in {"train": 5, "val": 3}.items():
        for number in range(count):
            image = f"{split}/Seq05VD_f0{number}{split[0]}.png"
            values = classes_mask(len(painter.painted))
            masks[image] = np.array([colours[value] for value in range(3)], np.uint8)[values]
            painter.paint(image)
            painter.write(f"{split}_labels/{stem(image)}_L.png", png(masks[image]))
    rows = [("Void", *colours[0]), ("Animal", *colours[1]), ("Archway", *colours[2])]
    painter.write("class_dict.csv", table(rows, "name,r,g,b"))
    return only_masks(masks, splits=splits_of(masks, train="train/", validation="val/"))


@kept
def carvana(painter: Painter) -> Truth:
    """Carvana: train/ID_01.jpg, and train_masks/ID_01_mask.gif with 0 and 1."""
    masks: dict[str, np.ndarray] = {}
    for number in range(1, 9):
        image = f"train/0cdf5b5d0ce1_{number:02}.jpg"
        masks[image] = classes_mask(number, (1, 1))
        painter.paint(image)
        stream = io.BytesIO()
        Image.fromarray(masks[image]).save(stream, "GIF", optimize=False)
        painter.write(f"train_masks/{stem(image)}_mask.gif", stream.getvalue())
    painter.write("metadata.csv", "id,year,make\n0cdf5b5d0ce1,2015,Bentley\n")
    return only_masks(masks)


@kept
def kvasir_seg(painter: Painter) -> Truth:
    """Kvasir-SEG: images and masks of the same names, all JPEG:
    a person thresholds the masks at 128, or asks.
    """
    masks: dict[str, np.ndarray] = {}
    for number in range(8):
        image = f"images/cju0qkwl35piu0993l0dewei{number}.jpg"
        masks[image] = classes_mask(number, (255, 255))
        painter.paint(image)
        stream = io.BytesIO()
        Image.fromarray(masks[image]).convert("RGB").save(stream, "JPEG", quality=90)
        painter.write(image.replace("images/", "masks/"), stream.getvalue())
    return only_masks(masks, must_ask=True)


@kept
def look_into_person(painter: Painter) -> Truth:
    """LIP: train_images, train_segmentations and train_id.txt,
    the same of val, and of test the images alone.
    """
    masks: dict[str, np.ndarray] = {}
    for split, count in {"train": 4, "val": 3}.items():
        names = numbered("{:06}_479036", count, 77 if split == "train" else 900)
        pairs = [
            (f"{split}_images/{name}.jpg", f"{split}_segmentations/{name}.png") for name in names
        ]
        masks |= mask_pairs(painter, pairs)
        painter.write(f"{split}_id.txt", "".join(f"{name}\n" for name in names))
    tests = painter.paint_all("test_images/{:06}_100034.jpg", 2)
    classes = {**dict.fromkeys(masks), **dict.fromkeys(tests)}
    splits = splits_of(
        classes, train="train_images/", validation="val_images/", test="test_images/"
    )
    return Truth(classes, masks=masks, splits=splits, left_out=tests)


@kept
def deepglobe_roads(painter: Painter) -> Truth:
    """DeepGlobe: train/100034_sat.jpg and train/100034_mask.png in one folder,
    test/*_sat.jpg without masks.
    """
    names = numbered("{}", 7, 100034)
    masks = mask_pairs(
        painter, [(f"train/{name}_sat.jpg", f"train/{name}_mask.png") for name in names], (255, 255)
    )
    tests = painter.paint_all("test/{}_sat.jpg", 2, 200034)
    classes = {**dict.fromkeys(masks), **dict.fromkeys(tests)}
    return Truth(
        classes,
        masks=masks,
        splits=splits_of(classes, train="train/", test="test/"),
        left_out=tests,
    )


@kept
def massachusetts_roads(painter: Painter) -> Truth:
    """Massachusetts roads as PNG: png/train and png/train_labels,
    png/val and png/val_labels, of the same names.
    """
    masks: dict[str, np.ndarray] = {}
    for split, count in {"train": 4, "val": 2, "test": 2}.items():
        names = numbered("{}_15.png", count, 10078660 + len(masks))
        masks |= mask_pairs(
            painter,
            [(f"png/{split}/{name}", f"png/{split}_labels/{name}") for name in names],
            (255, 255),
        )
    return only_masks(
        masks, splits=splits_of(masks, train="png/train/", validation="png/val/", test="png/test/")
    )


@kept
def isic_2018_lesions(painter: Painter) -> Truth:
    """ISIC 2018 task 1: ..._Training_Input/ISIC_0.jpg,
    ..._Training_GroundTruth/ISIC_0_segmentation.png, and papers.
    """
    top = "ISIC2018_Task1"
    names = numbered("ISIC_{:07}", 8)
    pairs = []
    for name in names:
        pairs.append(
            (
                f"{top}-2_Training_Input/{name}.jpg",
                f"{top}_Training_GroundTruth/{name}_segmentation.png",
            )
        )
    masks = mask_pairs(painter, pairs, (255, 255))
    for folder in ("-2_Training_Input", "_Training_GroundTruth"):
        painter.write(f"{top}{folder}/LICENSE.txt", "CC-0\n")
    return only_masks(masks)


def pascal_lines(path: str, boxes: Sequence[Box]) -> list[str]:
    """The first version of Pascal's annotations, whose corners are counted from 1."""
    lines = [
        f'# Compatible with PASCAL Annotation Version 1.00\nImage filename : "PennFudanPed/{path}"\n'
    ]
    for number, (name, xmin, ymin, xmax, ymax) in enumerate(boxes, 1):
        corners = f"({xmin + 1}, {ymin + 1}) - ({xmax}, {ymax})"
        lines.append(
            f'Bounding box for object {number} "{name}" (Xmin, Ymin) - (Xmax, Ymax) : {corners}\n'
        )
    return lines


@kept
def penn_fudan(painter: Painter) -> Truth:
    """Penn-Fudan, as in PyTorch's tutorial: PNGImages/a.png,
    PedMasks/a_mask.png with a number for each person.
    """
    masks: dict[str, np.ndarray] = {}
    boxes: Boxes = {}
    objects: dict[str, list[np.ndarray]] = {}
    for number in range(1, 8):
        image = f"PNGImages/FudanPed{number:05}.png"
        painter.paint(image, SIZE)
        boxes[image] = []
        objects[image] = []
        masks[image] = np.zeros((SIZE[1], SIZE[0]), np.uint8)
        for place in range(1, 2 + number % 2):
            box: Box = (
                "PASpersonWalking",
                2 + 30 * place - 25,
                3 + number,
                22 + 30 * place - 25,
                30,
            )
            boxes[image].append(box)
            objects[image].append(filled(box))
            masks[image] += filled(box, place)
        painter.write(f"PedMasks/{stem(image)}_mask.png", png(masks[image]))
        painter.write(f"Annotation/{stem(image)}.txt", "".join(pascal_lines(image, boxes[image])))
    nameless = {path: [(ANY, *box[1:]) for box in several] for path, several in boxes.items()}
    return only_masks(masks, choices=[only_boxes(nameless, object_masks=objects)])


@kept
def voc_segmentation_with_lists(painter: Painter) -> Truth:
    """Pascal VOC's segmentation: lists in ImageSets/Segmentation,
    SegmentationObject beside SegmentationClass.
    """
    names = numbered("2007_{:06}", 6, 33)
    pairs = [(f"JPEGImages/{name}.jpg", f"SegmentationClass/{name}.png") for name in names]
    masks = mask_pairs(painter, pairs, (15, 255))
    for image, mask in masks.items():
        painter.write(f"SegmentationObject/{stem(image)}.png", png((mask > 0).astype(np.uint8)))
    painter.write("ImageSets/Segmentation/train.txt", "".join(f"{name}\n" for name in names[:4]))
    painter.write("ImageSets/Segmentation/val.txt", "".join(f"{name}\n" for name in names[4:]))
    bare = painter.paint_all("JPEGImages/2008_{:06}.jpg", 3)
    splits = {path: "train" if stem(path) in names[:4] else "validation" for path in masks}
    return only_masks(
        masks,
        splits=splits,
        choices=[Truth(dict.fromkeys([*masks, *bare]), masks=masks, left_out=bare)],
    )


@kept
def tgs_salt(painter: Painter) -> Truth:
    """TGS Salt: train/images and train/masks of the same names,
    train.csv of runs, and depths.csv.
    """
    names = numbered("575d24d81{}", 7)
    masks = mask_pairs(
        painter,
        [(f"train/images/{name}.png", f"train/masks/{name}.png") for name in names],
        (255, 255),
    )
    rows = [(name, row_of_runs(masks[f"train/images/{name}.png"])) for name in names]
    painter.write("train.csv", table(rows, "id,rle_mask"))
    painter.write(
        "depths.csv", table([(name, 400 + place) for place, name in enumerate(names)], "id,z")
    )
    return only_masks(masks)


def row_of_runs(mask: np.ndarray) -> str:
    """Kaggle's run lengths: starts, counted from 1 down the columns,
    and lengths of what is not 0.
    """
    runs = column_runs((mask > 0).astype(np.uint8))
    numbers = []
    start = 1
    for place, length in enumerate(runs):
        if place % 2:
            numbers += [start, length]
        start += length
    return " ".join(map(str, numbers))


@kept
def rows_of_masks_beside_images(painter: Painter) -> Truth:
    """A notebook's df.to_csv: a table of image and mask paths,
    with masks in a folder called annotations_png.
    """
    names = numbered("{:03}", 8)
    pairs = [(f"frames/{name}.jpg", f"annotations_png/{name}.png") for name in names]
    masks = mask_pairs(painter, pairs)
    painter.write("train.csv", table(pairs, "image,mask"))
    return only_masks(masks)


# a mask for each object ---------------------------------------------------------------------------


@kept
def data_science_bowl_2018(painter: Painter) -> Truth:
    """Data Science Bowl 2018: stage1_train/ID/images/ID.png,
    and a PNG for each nucleus in stage1_train/ID/masks.
    """
    boxes: Boxes = {}
    for number in range(6):
        name = f"00071198d059ba7f5914a526d124d28e6d010c92466da21d4a04cd53627625{number:02}"
        path = f"stage1_train/{name}/images/{name}.png"
        painter.paint(path, SIZE)
        boxes[path] = [(ANY, *box[1:]) for box in boxes_of(number)]
        for place, box in enumerate(boxes[path]):
            mask_path = f"stage1_train/{name}/masks/{place}4c5{number}.png"
            painter.write(mask_path, png(filled(box, 255)))
    painter.write("stage1_train_labels.csv", "ImageId,EncodedPixels\n")
    return only_boxes(boxes, object_masks=masks_of(boxes))


@kept
def airbus_ships(painter: Painter) -> Truth:
    """Airbus ships: train_v2, and a row of run lengths for each ship;
    an image without ships has an empty one.
    """
    boxes = draw(painter, numbered("train_v2/000155de{}.jpg", 6), [ANY])
    rows = []
    for path, objects in boxes.items():
        rows += [(name_of(path), row_of_runs(filled(box))) for box in objects]
    for path in numbered("train_v2/00003e15{}.jpg", 2):
        boxes[painter.paint(path, SIZE)] = []
        rows.append((name_of(path), ""))
    painter.write("train_ship_segmentations_v2.csv", table(rows, "ImageId,EncodedPixels"))
    return only_boxes(
        boxes, object_masks=masks_of(boxes), left_out=[path for path in boxes if not boxes[path]]
    )


@kept
def severstal_steel(painter: Painter) -> Truth:
    """Severstal's steel: train_images, train.csv of ImageId, ClassId, EncodedPixels;
    others have no defect.
    """
    boxes = draw(painter, numbered("train_images/0002cc93{}.jpg", 6), ("1", "3"))
    rows = []
    for path, objects in boxes.items():
        rows += [(name_of(path), box[0], row_of_runs(filled(box))) for box in objects]
    painter.write("train.csv", table(rows, "ImageId,ClassId,EncodedPixels"))
    bare = [painter.paint(path, SIZE) for path in numbered("train_images/000a4bca{}.jpg", 3)]
    full = {**boxes, **{path: [] for path in bare}}
    return only_boxes(full, object_masks=masks_of(full), left_out=bare)


@kept
def pictures_and_masks_of_another_count(painter: Painter) -> Truth:
    """A half-labelled set: images and masks, where 3 of 8 images have no mask yet;
    a person takes the 5 pairs.
    """
    pairs = [(f"images/{name}.png", f"masks/{name}.png") for name in numbered("{:02}", 5)]
    masks = mask_pairs(painter, pairs)
    bare = painter.paint_all("images/{:02}.png", 3, 5)
    return Truth(dict.fromkeys([*masks, *bare]), masks=masks, left_out=bare)


@kept
def two_kinds_of_masks(painter: Painter) -> Truth:
    """A retina set: images, and for each a vessel mask and a mask of the field of view;
    a person asks which one.
    """
    names = numbered("{}_training", 6, 21)
    vessels: dict[str, np.ndarray] = {}
    views: dict[str, np.ndarray] = {}
    for name in names:
        image = f"images/{name}.png"
        vessels[image] = classes_mask(len(painter.painted), (255, 255))
        views[image] = 255 - classes_mask(len(painter.painted) + 3, (255, 0))
        painter.paint(image)
        painter.write(f"1st_manual/{name}.png", png(vessels[image]))
        painter.write(f"mask/{name}.png", png(views[image]))
    return only_masks(vessels, choices=[only_masks(views)], must_ask=True)


@kept
def yolo_and_voc_of_other_classes(painter: Painter) -> Truth:
    """A set labelled twice: Annotations of VOC with cat and dog, labels of YOLO with one class;
    a person asks.
    """
    boxes = draw(painter, numbered("images/{:03}.jpg", 7))
    pets = {path: [("pet", *box[1:]) for box in objects] for path, objects in boxes.items()}
    for path, objects in boxes.items():
        painter.write(f"Annotations/{stem(path)}.xml", voc_xml(path, objects))
        painter.write(f"labels/{stem(path)}.txt", yolo_lines(pets[path], ("pet",)))
    painter.write("data.yaml", "train: images\nval: images\nnames: [pet]\n")
    return only_boxes(boxes, choices=[only_boxes(pets, numbers={"pet": 0})], must_ask=True)


@kept
def classes_and_boxes_of_other_names(painter: Painter) -> Truth:
    """Class folders of breeds with VOC XML of "dog" beside:
    classes or boxes, a person asks which.
    """
    classes: dict[str, str | None] = {}
    boxes: Boxes = {}
    for breed in ("beagle", "boxer", "pug"):
        drawn = draw(painter, numbered(breed + "/" + breed + "_{}.jpg", 3), ["dog"])
        for path, objects in drawn.items():
            classes[path] = breed
            painter.write(f"{breed}/{stem(path)}.xml", voc_xml(path, objects, breed))
        boxes |= drawn
    return Truth(classes, choices=[only_boxes(boxes), Truth(classes, boxes=boxes)], must_ask=True)
