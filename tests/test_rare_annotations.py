"""Annotations in rare states: each error says only what its reader saw. Nothing is converted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_tars import save

from imagenet_prep import PrepError, make_engine
from imagenet_prep.recipes.annotated_images import Roots
from imagenet_prep.recipes.annotating import annotate
from imagenet_prep.recipes.box_files import BoxFile
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.row_source import RowImage
from imagenet_prep.recipes.schema import Boxes, Mask, Recipe
from imagenet_prep.sources.folders import list_folder

ENGINE = make_engine("threads", 1)
XML = (
    "<annotation><size><width>{width}</width><height>9</height></size><object><name>cat</name>"
    "<bndbox><xmin>1</xmin><ymin>{ymin}</ymin><xmax>4</xmax><ymax>4</ymax></bndbox></object>"
    "</annotation>"
)
IMAGE = {"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}
LINE = "0 0.5 0.5 0.1 0.1\n"


class Rare(NamedTuple):
    """A recipe's `boxes`, the files, and what the error says, and does not say."""

    boxes: Mapping[str, Any]
    files: Mapping[str, str]
    words: str
    absent: str = ""


def xml(width: object = 9, ymin: object = 1) -> str:
    """VOC's XML of one object."""
    return XML.format(width=width, ymin=ymin)


def yolo(names: object, line: str = LINE, **files: str) -> Rare:
    """YOLO's annotation of one image; the words come later."""
    return Rare({"yolo": "b", "names": names}, {"b/a.txt": line, **files}, "")


def coco(**annotation: object) -> str:
    """COCO's JSON of one annotation."""
    category = {"id": 1, "name": "cat", "keypoints": ["nose"]}
    return json.dumps({"images": [IMAGE], "annotations": [annotation], "categories": [category]})


def via(shape: Mapping[str, Any], attributes: Mapping[str, Any]) -> Mapping[str, str]:
    """VIA's JSON of one region."""
    region = {"shape_attributes": shape, "region_attributes": attributes}
    return {"v.json": json.dumps({"a.jpg9": {"filename": "a.jpg", "regions": [region]}})}


def runs(text: str) -> Rare:
    """Kaggle's run lengths of one object; the words come later."""
    return Rare({"runs": "r.csv"}, {"r.csv": f"ImageId,EncodedPixels\na.jpg,{text}\n"}, "")


def sample(**keys: object) -> Mapping[str, str]:
    """FiftyOne's samples.json of one image."""
    return {"s.json": json.dumps({"samples": [{"filepath": "a.jpg", **keys}]})}


RECT = {"name": "rect", "x": 1, "y": 1, "width": 3, "height": 3}
STATES: Mapping[str, Rare] = {
    "a width far below 0": Rare(
        {"voc": "b"},
        {"b/a.xml": xml(-9e15)},
        "-9000000000000000 x 9 pixels",
    ),
    "a corner far below 0": Rare(
        {"voc": "b"},
        {"b/a.xml": xml(ymin=-1e300)},
        "expected a number of at most 15 digits",
    ),
    "XML in an unknown encoding": Rare(
        {"voc": "b"},
        {"b/a.xml": f"<?xml version='1.0' encoding='martian'?>{xml()}"},
        "a.xml: the XML can't be read: ",
        absent="well-formed",
    ),
    "names that are one text": yolo("n.yaml", **{"n.yaml": "names: cat\n"})._replace(
        words="n.yaml: `names` lists no class\nexpected a list of names, or names by number"
    ),
    "a name that is a list": yolo("n.yaml", **{"n.yaml": "names: [[cat]]\n"})._replace(
        words="n.yaml: the name of class 0 is not a text"
    ),
    "a number of two names": yolo("n.csv", **{"n.csv": "cat,0\ndog,0\n"})._replace(
        words="n.csv: the class 0 has two names, cat and dog\nexpected one name for each number or id"
    ),
    "names of other numbers below a header": yolo(
        "n.csv", **{"n.csv": "name,id\ncat,3\ndog,4\n"}
    )._replace(words="class 0 has no name"),
    "a number of six digits": yolo("n.yaml", **{"n.yaml": "names: {100000: cat}\n"})._replace(
        words="expected whole numbers from 0 to 99,999"
    ),
    "a file of no image": Rare(
        {"voc": "b"},
        {"b/x/other.xml": xml()},
        "b: 1 file has annotations, but not the name of an image",
        absent="strip",
    ),
    "another image, without a folder": Rare(
        {"createml": "c.json"},
        {"c.json": '[{"image": "b.jpg", "annotations": []}]'},
        "not in the source\nexpected names such as a.jpg, got b.jpg (",
        absent="strip",
    ),
    "an annotation without an id": Rare(
        {"coco": "c.json"},
        {"c.json": coco(image_id=2)},
        "annotations[0]: image_id 2",
        absent="None",
    ),
    "the id of an image as a text": Rare(
        {"coco": "c.json"}, {"c.json": coco(image_id="1")}, "image_id '1' is the id of no image"
    ),
    "an image without an id": Rare(
        {"cvat": "c.xml"},
        {"c.xml": "<annotations><image name='a.jpg' width='9'/></annotations>"},
        "c.xml: image (a.jpg): height: the number is missing",
    ),
    "a polygon that is turned": Rare(
        {"cvat": "c.xml"},
        {
            "c.xml": "<annotations><image name='a.jpg' width='9' height='9'>"
            "<polygon label='cat' rotation='5' points='1,1;2,2;1,2'/></image></annotations>"
        },
        "the polygon is rotated\nexpected a shape without rotation",
    ),
    "a tag of another type": Rare(
        {"fiftyone": "s.json"},
        sample(tags=[1], ground_truth={"detections": []}),
        "samples[0].tags[0]: expected a text, got a whole number",
    ),
    "no path of a sample": Rare(
        {"fiftyone": "s.json"}, sample(filepath=None), "samples[0].filepath: expected a text"
    ),
    "no result of a task": Rare(
        {"label_studio": "l.json"},
        {"l.json": '[{"data": {"image": "/a.jpg"}, "annotations": [{}]}]'},
        "l.json: [0]: a part of the task is missing",
        absent="None",
    ),
    "words instead of runs": runs("cat")._replace(words="'cat' is not a whole number"),
    "a run before an earlier one": runs("10 3 2 1")._replace(
        words="the run at 2 comes after a run that starts later"
    ),
    "an empty class": Rare(
        {"via": "v.json"}, via(RECT, {"class": ""}), "its attribute class is '' (str)"
    ),
    "no attributes": Rare(
        {"via": "v.json"}, via(RECT, {}), "regions[0]: it has no attributes", absent="columns"
    ),
    "a turned region without a name": Rare(
        {"via": "v.json"}, via({"theta": 1}, {"class": "cat"}), "region is rotated", absent="None"
    ),
    "attributes that are nested too deep": Rare(
        {"via": "v.csv"},
        {"v.csv": f"filename,region_shape_attributes\na.jpg,{'[' * 99_999}\n"},
        "v.csv, line 2: region_shape_attributes: its JSON is nested too deep",
    ),
    "a row without a class": Rare(
        {"csv": "b.csv"},
        {"b.csv": "path,class,x,y,w,h\na.jpg,,1,1,3,3\n"},
        "line 2: the row has no class\nexpected an image, a box and a class",
    ),
    "too few numbers of a face": Rare(
        {"wider": "w.txt"},
        {"w.txt": "a.jpg\n1\n1 2 x\n"},
        "w.txt, line 3: the line has fewer than four values",
    ),
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one image, whose content nobody reads here except for its size."""
    from made_boxes import photograph

    folder = tmp_path_factory.mktemp("images")
    save(folder / "a.jpg", photograph(9, 9))
    return folder


def refusal(images: Path, root: Path, boxes: Mapping[str, Any], strip: str = "") -> str:
    """The error against annotations of the image."""
    listing, _ = list_folder(images, ENGINE)
    keys: Any = Boxes(**boxes)
    with pytest.raises(PrepError) as caught:
        annotate(Recipe(boxes=keys), listing, Roots(images, root, strip))
    return str(caught.value)


@pytest.mark.parametrize("state", STATES)
def test_an_error_says_what_was_seen(images: Path, tmp_path: Path, state: str) -> None:
    """Values beyond all limits, absent ids and other types: no guess, and no ``None``."""
    rare = STATES[state]
    for name, text in rare.files.items():
        save(tmp_path / name, text)
    error = refusal(images, tmp_path, rare.boxes)
    assert rare.words in error
    assert not rare.absent or rare.absent not in error


def test_annotations_out_of_the_root_are_named(images: Path, tmp_path: Path) -> None:
    """Two files fit an image, in a folder that is not below that of the recipe."""
    for name in ("labels/a.xml", "annotations/a.xml"):
        save(tmp_path / "far" / name, xml())
    error = refusal(images, tmp_path / "root", {"voc": [str(tmp_path / "far")]})
    assert "several annotations fit a.jpg: ../far/annotations/a.xml, ../far/labels/a.xml" in error
    assert f"keep one of these files, and move the others out of {tmp_path / 'far'}" in error


def test_images_of_a_file_without_boxes_are_counted() -> None:
    """A recipe can't leave them out: `unannotated` is for files of annotations."""
    image = RowImage("a.jpg", "row 1", "", "", None, None, None, [], {})
    files = (Path("a.parquet"), Path("b.parquet"))
    marks = RowMarks({"a.jpg": image})
    with pytest.raises(PrepError, match=r"^b\.parquet \(1 image\) has no boxes") as caught:
        marks.mark(["a.jpg", "b.jpg"], lambda _: (9, 9), files.__getitem__, BoxFile(), ())
    assert "unannotated" not in str(caught.value)


def test_folders_that_are_stripped_already_have_their_own_hint(
    images: Path, tmp_path: Path
) -> None:
    """The recipe says `strip`: it may be wrong."""
    save(tmp_path / "c.json", '[{"image": "x/b.jpg", "annotations": []}]')
    error = refusal(images, tmp_path, {"createml": "c.json"}, strip="x/")
    assert "get the images, or correct `strip` in the recipe" in error


@pytest.mark.parametrize("others", [(), ("b.jpg",)])
def test_a_name_of_several_images_is_not_absent(tmp_path: Path, others: Sequence[str]) -> None:
    """Two images have it: the error names both, and how to write one."""
    for name in ("day/a.jpg", "night/a.jpg", *others):
        save(tmp_path / "in" / name, "nobody reads it")
    tasks = [{"image": name, "annotations": []} for name in ("a.jpg", *others)]
    save(tmp_path / "c.json", json.dumps(tasks))
    error = refusal(tmp_path / "in", tmp_path, {"createml": "c.json", "unannotated": "empty"})
    assert "c.json: a.jpg (" in error
    assert ") may be day/a.jpg, night/a.jpg\n" in error
    assert "write the names with their folders, such as day/a.jpg" in error


def test_an_id_of_several_images_is_not_absent(tmp_path: Path) -> None:
    """Two folders have an image of this id: it is not said to lack one."""
    for name in ("day/a.jpg", "night/a.jpg"):
        save(tmp_path / "in" / name, "nobody reads it")
    save(tmp_path / "b.csv", "ImageID,XMin,YMin,XMax,YMax,LabelName\na,.1,.1,.2,.2,cat\n")
    error = refusal(tmp_path / "in", tmp_path, {"csv": "b.csv"})
    assert "a (b.csv, line 2) may be day/a.jpg, night/a.jpg\n" in error.replace(f"{tmp_path}/", "")


def test_a_name_in_another_folder_is_absent(tmp_path: Path) -> None:
    """Images of other folders are called so, and it is none of them."""
    for name in ("day/a.jpg", "night/a.jpg"):
        save(tmp_path / "in" / name, "nobody reads it")
    save(tmp_path / "c.json", '[{"image": "dusk/a.jpg", "annotations": []}]')
    error = refusal(tmp_path / "in", tmp_path, {"createml": "c.json"})
    assert "c.json: 1 image is named, and it is not in the source" in error


@pytest.mark.parametrize("form", ["coco", "createml"])
def test_a_byte_order_mark_is_no_fault(images: Path, tmp_path: Path, form: str) -> None:
    """Editors write one; JSON with it names the fault after it."""
    save(tmp_path / "a.json", b"\xef\xbb\xbf5")
    error = refusal(images, tmp_path, {form: "a.json"})
    assert "got a whole number" in error


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("coco", b'{"images": [{"id": 1, "file_name": "\xff.jpg", "width": 9, "height": 9}]}'),
        ("createml", b'[{"image": "\xff.jpg", "annotations": []}]'),
    ],
)
def test_a_text_of_json_that_is_not_utf_8(
    images: Path, tmp_path: Path, form: str, content: bytes
) -> None:
    """JSON with a text of another encoding is refused, not met as an error of Python."""
    save(tmp_path / "a.json", content)
    error = refusal(images, tmp_path, {form: "a.json"})
    assert "a.json: a text in it is not UTF-8\n" in error


def test_a_mask_in_jpeg_next_to_others_is_named(tmp_path: Path) -> None:
    """The image has a mask, which can't be read: a threshold would change the other masks."""
    for name in ("a.jpg", "b.jpg"):
        save(tmp_path / "in" / name, "nobody reads it")
    for name in ("a.png", "b.jpg"):
        save(tmp_path / "m" / name, "nobody reads it")
    listing, _ = list_folder(tmp_path / "in", ENGINE)
    with pytest.raises(PrepError, match=r"1 mask is a JPEG.*: m/b\.jpg") as caught:
        annotate(Recipe(mask=Mask(folder="m")), listing, Roots(tmp_path / "in", tmp_path))
    assert "threshold" not in caught.value.hint
