"""Files as annotation tools write them: init finds their format, and records have their boxes; or each is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_boxes import photograph
from made_tars import save

from imagenet_prep import Layout, PrepError, convert, make_engine, records, verify
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init

ENGINE = make_engine("threads", 1)
OBJECT = "image/object/"
Box = tuple[str, float, float, float, float]
"""A class, then xmin, ymin, xmax, ymax in pixels."""

CAT: Box = ("cat", 8, 4, 40, 20)
DOG: Box = ("dog", 16, 8, 72, 36)
SIZE = (80, 40)


class Case(NamedTuple):
    """The files of a tool beside images of 80 x 40 pixels, the layout that init finds, and the boxes by image."""

    layout: str
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
    """The boxes in pixels of each record, by the path of its image."""
    texts = {"image/filename", f"{OBJECT}class/text"}
    names = [f"{OBJECT}bbox/{edge}" for edge in ("xmin", "ymin", "xmax", "ymax")]
    found: dict[str, list[Box]] = {}
    for record in records.read(str(folder / "*-of-*"), lists=True, text=texts):
        corners = zip(record[f"{OBJECT}class/text"], *(record[name] for name in names), strict=True)
        pixels = [(text, *(value * SIZE[place % 2] for place, value in enumerate(edges))) for text, *edges in corners]
        found[record["image/filename"][0]] = pixels  # type: ignore[assignment]
    return found


# as they are right ---------------------------------------------------------------------------------------------


def labelme(*shapes: Mapping[str, Any], **more: object) -> str:
    """The JSON of an image by LabelMe."""
    head = {"version": "5.4.1", "flags": {}, "shapes": shapes, "imagePath": "a.jpg", "imageData": None}
    return json.dumps({**head, "imageHeight": 40, "imageWidth": 80, **more}, indent=2)


def shape(name: str, kind: str, *points: Sequence[float]) -> dict[str, Any]:
    """A shape by LabelMe."""
    return {"label": name, "points": points, "group_id": None, "shape_type": kind, "flags": {}}


CASES: Mapping[str, Case] = {
    "LabelMe: rectangles from any corner": Case(
        "labelme",
        {
            "a.json": labelme(
                shape("cat", "rectangle", (40, 20), (8, 4)), shape("dog", "rectangle", (16, 36), (72, 8))
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
            "training/label_2/b.txt": "dog 0.50 2 1.85 16.00 8.00 72.00 36.00 1.50 1.60 3.69 0.96 1.84 46.67 1.87\n",
        },
        {"training/image_2/a.jpg": [CAT], "training/image_2/b.jpg": [DOG]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_boxes_are_those_of_the_tool(tmp_path: Path, name: str) -> None:
    """Init names the layout, the recipe declares the classes, and each record has the boxes of its image, in order."""
    case = CASES[name]
    write(tmp_path / "in", case)
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert summary.layout == case.layout
    assert case.recipe in summary.text
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    assert verify(Layout(tmp_path / "out"), ENGINE).problems == ()
    found = {path.removeprefix("in/"): boxes for path, boxes in boxes_in(tmp_path / "out").items()}
    assert set(found) == set(case.boxes)
    for path, boxes in case.boxes.items():
        assert [text for text, *_ in found[path]] == [text for text, *_ in boxes]
        assert [edges for _, *edges in found[path]] == [pytest.approx(edges, abs=1e-4) for _, *edges in boxes]


# as they can't be ----------------------------------------------------------------------------------------------

FAULTS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "LabelMe: a point": ({"a.json": labelme(shape("cat", "point", (8, 4)))}, "shapes[0]: a shape 'point' of 1 points"),
    "LabelMe: two corners": (
        {"a.json": labelme(shape("cat", "polygon", (8, 4), (9, 4)))},
        "a.json: shapes[0]: a polygon of 2 points; expected at least three",
    ),
    "LabelMe: no label": (
        {"a.json": '{"shapes": [{"points": []}], "imagePath": "a.jpg"}'},
        "a.json: shapes[0]: Object missing required field label",
    ),
    "KITTI: a short line": (
        {"a.txt": f"cat 0 0 0 8 4 40 20 {'0 ' * 7}\n" * 3 + "cat 0 0 0 8\n"},
        "a.txt, line 4: 5 values; expected 15",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """The error names the file, its line or key, and what is right."""
    files, said = FAULTS[name]
    write(tmp_path / "in", Case("", files, {"a.jpg": []}))
    with pytest.raises(PrepError) as caught:
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert said in "; ".join(str(caught.value).splitlines())
    assert not (tmp_path / "r.yaml").exists()
