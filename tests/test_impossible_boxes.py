"""Boxes that lead out of their image, are swapped or empty:
one policy for every kind of annotation.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_boxes import VOC_OBJECT, coco_set, photograph, voc_xml
from made_tars import save
from msgspec.structs import replace
from running import command, prep

import imagenet_prep
from imagenet_prep import Layout, PrepError, convert, make_engine, records, repair, report, verify
from imagenet_prep.cli.conversion_arguments import _in_recipe
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.box_policy import BoxesOutside, Corners, PlacedBox, place_box
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.init import init
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.manifest import Manifest, load_manifest

ENGINE = make_engine("threads", 2)
OBJECT = "image/object/"
WIDTH, HEIGHT = 80, 48
NamedBox = tuple[str, Corners]
FIRST: NamedBox = ("cat", (10, 10, 20, 20))
LAST: NamedBox = ("dog", (30, 30, 50, 40))

# annotations of every kind ------------------------------------------------------------------------


def write_coco(folder: Path, boxes: Mapping[str, Sequence[NamedBox]]) -> str:
    """A COCO file with a key point in each object, and areas as exporters compute them."""
    names = sorted({name for several in boxes.values() for name, _ in several})
    images, annotations = [], []
    for number, (image, several) in enumerate(boxes.items(), 1):
        images.append({"id": number, "file_name": image, "width": WIDTH, "height": HEIGHT})
        for name, (xmin, ymin, xmax, ymax) in several:
            points = {"keypoints": [len(annotations), 1, 2], "num_keypoints": 1}
            bbox = [xmin, ymin, xmax - xmin, ymax - ymin]
            annotation = {
                "id": len(annotations),
                "image_id": number,
                "category_id": names.index(name) + 1,
            }
            annotations.append({**annotation, "bbox": bbox, "area": bbox[2] * bbox[3], **points})
    categories = [
        {"id": number, "name": name, "keypoints": ["nose"]} for number, name in enumerate(names, 1)
    ]
    value = {"images": images, "annotations": annotations, "categories": categories}
    save(folder / "boxes.json", json.dumps(value))
    return "boxes: {coco: boxes.json}\n"


def write_voc(folder: Path, boxes: Mapping[str, Sequence[NamedBox]]) -> str:
    """An XML for each image."""
    for image, several in boxes.items():
        inside = [
            VOC_OBJECT.format(name, *corners, "Left", 0, int(name == "dog"))
            for name, corners in several
        ]
        save(folder / f"xml/{Path(image).stem}.xml", voc_xml(WIDTH, HEIGHT, "".join(inside)))
    return "boxes: {voc: xml}\n"


def write_yolo(folder: Path, boxes: Mapping[str, Sequence[NamedBox]]) -> str:
    """A text for each image: centre and size, relative; the size of a swapped box is negative."""
    names = ["bird", "cat", "dog"]
    for image, several in boxes.items():
        lines = [f"{names.index(name)} {_centre(corners)}\n" for name, corners in several]
        save(folder / f"txt/{Path(image).stem}.txt", "".join(lines))
    return f"boxes: {{yolo: txt, names: [{', '.join(names)}]}}\n"


def _centre(corners: Corners) -> str:
    xmin, ymin, xmax, ymax = corners
    values = (
        (xmin + xmax) / 2 / WIDTH,
        (ymin + ymax) / 2 / HEIGHT,
        (xmax - xmin) / WIDTH,
        (ymax - ymin) / HEIGHT,
    )
    return " ".join(map(repr, values))


def write_csv(
    folder: Path, boxes: Mapping[str, Sequence[NamedBox]], sides: tuple[int, int] = (1, 1)
) -> str:
    """A row for each box, in pixels or divided by the sides of the image."""
    rows = ["file,class,xmin,ymin,xmax,ymax"]
    for image, several in boxes.items():
        for name, (xmin, ymin, xmax, ymax) in several:
            edges = (xmin / sides[0], ymin / sides[1], xmax / sides[0], ymax / sides[1])
            rows.append(",".join((image, name, *map(repr, edges))))
    save(folder / "boxes.csv", "\n".join(rows) + "\n")
    return "boxes: {csv: boxes.csv}\n"


def write_relative_csv(folder: Path, boxes: Mapping[str, Sequence[NamedBox]]) -> str:
    """The same, relative."""
    return write_csv(folder, boxes, (WIDTH, HEIGHT))


WRITERS: Mapping[str, Callable[[Path, Mapping[str, Sequence[NamedBox]]], str]] = {
    "COCO": write_coco,
    "VOC": write_voc,
    "YOLO": write_yolo,
    "CSV": write_csv,
    "relative CSV": write_relative_csv,
}
IMPOSSIBLE: Mapping[str, tuple[Corners, Corners | None, str]] = {
    "outside": ((60, 10, 100, 30), (60, 10, 80, 30), "leads out of the image"),
    "around the image": ((-20, -10, 100, 60), (0, 0, 80, 48), "leads out of the image"),
    "swapped": ((40, 30, 20, 10), (20, 10, 40, 30), "has swapped corners"),
    "swapped and outside": ((100, 30, 60, 10), (60, 10, 80, 30), "has swapped corners"),
    "empty": ((20, 10, 20, 30), None, "is empty"),
    "wholly outside": ((90, 10, 100, 30), None, "leads out of the image"),
}
"""A box in pixels, the part that ``clip`` keeps of it, and the words of its fault."""
every_kind = pytest.mark.parametrize("kind", WRITERS)
every_fault = pytest.mark.parametrize("fault", IMPOSSIBLE)


def prepared(
    folder: Path, kind: str, boxes: Mapping[str, Sequence[NamedBox]], policy: str = ""
) -> Path:
    """Images, their annotations, and a recipe with this policy ("": the default);
    returns the recipe.
    """
    for number, image in enumerate(boxes):
        if not (folder / image).exists():
            save(folder / image, photograph(WIDTH, HEIGHT, number))
    keys = WRITERS[kind](folder, boxes)
    keys += f"boxes_outside: {policy}\n" if policy else ""
    recipe = folder / "r.yaml"
    recipe.write_text(f"source: {{files: '*.jpg'}}\n{keys}shards: 1\nshuffle: false\n")
    return recipe


def manifest_of(folder: Path) -> Manifest:
    """The manifest of the set in folder/out."""
    manifest = load_manifest(Layout(folder / "out").manifest_path)
    assert manifest is not None
    return manifest


def make(recipe: Path) -> dict[str, dict[str, Any]]:
    """The records of a set in ``out`` beside the recipe, by file name; verify finds no problem."""
    out = recipe.parent / "out"
    convert(Layout(out), ENGINE, dataset=RecipeSet.read(recipe))
    assert verify(Layout(out), ENGINE, depth="decode").problems == ()
    names = {
        "image/filename",
        f"{OBJECT}class/text",
        f"{OBJECT}keypoint/text",
        f"{OBJECT}view",
        "image/source_id",
    }
    found = records.read(str(out / "train-*"), lists=True, text=names)
    return {record["image/filename"][0]: record for record in found}


def boxes_of(record: Mapping[str, Any]) -> list[NamedBox]:
    """The classes and boxes of a record, in pixels."""
    edges = [record[f"{OBJECT}bbox/{edge}"] for edge in ("xmin", "ymin", "xmax", "ymax")]
    corners = [
        (a * WIDTH, b * HEIGHT, c * WIDTH, d * HEIGHT) for a, b, c, d in zip(*edges, strict=True)
    ]
    return list(zip(record[f"{OBJECT}class/text"], corners, strict=True))


# one box ------------------------------------------------------------------------------------------

OUTCOMES: Mapping[BoxesOutside, Sequence[str]] = {
    "refuse": ("placed", "refused"),
    "clip": ("placed", "clipped", "dropped"),
    "drop": ("placed", "dropped"),
}
sides = st.one_of(st.floats(-300, 300), st.integers(-3, 90))


@given(
    corners=st.tuples(sides, sides, sides, sides),
    policy=st.sampled_from(typing.get_args(BoxesOutside)),
)
def test_every_placed_box_is_inside_its_image(corners: Corners, policy: BoxesOutside) -> None:
    """A record's box is inside and has an area; a box is placed or impossible,
    and a clipped one is neither again.
    """
    xmin, ymin, xmax, ymax = corners
    shares = (xmin / WIDTH, ymin / HEIGHT, xmax / WIDTH, ymax / HEIGHT)
    for box in (
        place_box(corners, (WIDTH, HEIGHT), "here", policy),
        place_box(shares, None, "here", policy),
    ):
        outcome = box.impossible.outcome if box.impossible else "placed"
        assert outcome in OUTCOMES[policy]
        assert (box.corners is None) == (outcome in ("dropped", "refused"))
        if box.corners is not None:
            xmin, ymin, xmax, ymax = box.corners
            assert 0 <= xmin < xmax <= 1
            assert 0 <= ymin < ymax <= 1
            assert place_box(box.corners, None, "here", policy) == PlacedBox(box.corners)


@pytest.mark.parametrize("policy", typing.get_args(BoxesOutside))
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_no_policy_takes_a_box_that_is_not_finite(policy: BoxesOutside, number: float) -> None:
    """Wherever the number is."""
    for edge in range(4):
        corners = [0.1, 0.1, 0.2, 0.2]
        corners[edge] = number
        with pytest.raises(InputError, match="expected finite numbers"):
            place_box((corners[0], corners[1], corners[2], corners[3]), None, "here", policy)


# the policies -------------------------------------------------------------------------------------


@every_kind
@every_fault
def test_the_default_refuses(tmp_path: Path, kind: str, fault: str) -> None:
    """The error names the place, the fault and the key that mends it; nothing is written."""
    corners, _, words = IMPOSSIBLE[fault]
    recipe = prepared(tmp_path, kind, {"a.jpg": [FIRST, ("bird", corners), LAST]})
    with pytest.raises(InputError) as caught:
        make(recipe)
    assert words in caught.value.what
    assert str(tmp_path) in caught.value.what
    assert "boxes_outside: clip" in caught.value.hint
    assert not list((tmp_path / "out").glob("train-*"))


@every_kind
@every_fault
@pytest.mark.parametrize("policy", ["clip", "drop"])
def test_a_policy_mends_or_leaves_out(tmp_path: Path, kind: str, fault: str, policy: str) -> None:
    """The other boxes of the image stay as they are;
    the change is counted in the manifest and by verify.
    """
    corners, clipped, _ = IMPOSSIBLE[fault]
    recipe = prepared(
        tmp_path, kind, {"a.jpg": [FIRST, ("bird", corners), LAST], "b.jpg": [LAST]}, policy
    )
    made = make(recipe)
    kept = clipped if policy == "clip" else None
    middle = [("bird", kept)] if kept else []
    expected = [FIRST, *middle, LAST]
    assert [name for name, _ in boxes_of(made["a.jpg"])] == [name for name, _ in expected]
    for (_, found), (_, wanted) in zip(boxes_of(made["a.jpg"]), expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)
    outcome = "clipped" if kept else "dropped"
    assert manifest_of(tmp_path).sources["train"]["changed_boxes"] == {outcome: {"a.jpg": 1}}
    assert manifest_of(tmp_path).settings["boxes_outside"] == policy
    verdict = verify(Layout(tmp_path / "out"), ENGINE)
    assert verdict.counts == {f"boxes {outcome}": 1}
    assert f"boxes {outcome}: 1, of 1 image: a.jpg" in verdict.notes


@pytest.mark.parametrize(
    ("policy", "points", "areas"),
    [("clip", [0, 1, 2], [100, 400, 200]), ("drop", [0, 2], [100, 200])],
)
def test_what_belongs_to_a_box_goes_with_it(
    tmp_path: Path, policy: str, points: list[int], areas: list[int]
) -> None:
    """Key points, labels and areas of a dropped box go;
    the area of a clipped one is at most that of its box.
    """
    recipe = prepared(
        tmp_path, "COCO", {"a.jpg": [FIRST, ("bird", (60, 10, 100, 30)), LAST]}, policy
    )
    record = make(recipe)["a.jpg"]
    assert [round(x * WIDTH) for x in record[f"{OBJECT}keypoint/x"]] == points
    assert record[f"{OBJECT}area"] == pytest.approx(areas)
    assert record[f"{OBJECT}class/label"] == ([2, 1, 3] if policy == "clip" else [2, 3])


def test_the_flags_of_a_dropped_box_go_with_it(tmp_path: Path) -> None:
    """Pascal VOC's difficult and view."""
    record = make(prepared(tmp_path, "VOC", {"a.jpg": [("cat", (90, 1, 95, 5)), LAST]}, "drop"))[
        "a.jpg"
    ]
    assert record[f"{OBJECT}difficult"] == [1]
    assert record[f"{OBJECT}view"] == ["Left"]


@every_kind
@pytest.mark.parametrize("policy", ["refuse", "clip", "drop"])
def test_a_pixel_is_rounding_under_every_policy(tmp_path: Path, kind: str, policy: str) -> None:
    """It is cut as before, and no impossible box."""
    corners = (-0.1, 10, 80.1, 30) if kind in ("YOLO", "relative CSV") else (-1, 10, 81, 30)
    recipe = prepared(tmp_path, kind, {"a.jpg": [FIRST, ("bird", corners), LAST]}, policy)
    assert boxes_of(make(recipe)["a.jpg"])[1][1] == pytest.approx((0, 10, 80, 30), abs=1e-4)
    assert "changed_boxes" not in manifest_of(tmp_path).sources["train"]


@pytest.mark.parametrize("policy", ["refuse", "clip", "drop"])
@pytest.mark.parametrize("kind", ["VOC", "YOLO", "CSV", "relative CSV"])
def test_numbers_that_are_not_finite_are_always_refused(
    tmp_path: Path, kind: str, policy: str
) -> None:
    """No policy says what NaN or an infinite side means."""
    for number in ("nan", "inf"):
        recipe = prepared(
            tmp_path, kind, {"a.jpg": [FIRST, ("bird", (1, 2, float(number), 9)), LAST]}, policy
        )
        with pytest.raises(PrepError, match=r"expected a (finite )?number"):
            make(recipe)


def test_the_default_leaves_no_trace(tmp_path: Path) -> None:
    """A set without impossible boxes has the manifest and the records that
    it had before there was a policy.
    """
    made = make(prepared(tmp_path, "COCO", {"a.jpg": [FIRST, LAST]}))
    manifest = manifest_of(tmp_path)
    assert "boxes_outside" not in manifest.settings
    assert "changed_boxes" not in manifest.sources["train"]
    shards = manifest.shards
    assert make(prepared(tmp_path, "COCO", {"a.jpg": [FIRST, LAST]}, "refuse")) == made
    assert manifest_of(tmp_path).shards == shards


def test_one_error_counts_all(tmp_path: Path) -> None:
    """The first box with its numbers, and the places of the others."""
    bad = ("bird", (60, 10, 100, 30))
    recipe = prepared(
        tmp_path, "CSV", {"a.jpg": [FIRST, bad], "b.jpg": [bad, LAST, ("bird", (5, 5, 5, 9))]}
    )
    with pytest.raises(InputError) as caught:
        make(recipe)
    assert (
        "boxes.csv, line 3: a box of xmin 60, ymin 10, xmax 100, ymax 30 leads out of the image of 80 x 48"
        in caught.value.what
    )
    assert "2 more boxes are impossible" in caught.value.detail
    assert "line 6" in caught.value.detail


def test_a_relative_csv_stays_relative_with_a_box_far_outside(tmp_path: Path) -> None:
    """One corner of 2 or more does not turn the corners of all other boxes into pixels."""
    boxes = {"a.jpg": [FIRST, LAST, ("bird", (40, 10, 200, 30))]}
    with pytest.raises(InputError, match="leads out of the image"):
        make(prepared(tmp_path, "relative CSV", boxes))
    record = make(prepared(tmp_path, "relative CSV", boxes, "clip"))["a.jpg"]
    assert boxes_of(record)[0][1] == pytest.approx(FIRST[1], abs=1e-4)
    assert boxes_of(record)[2][1] == pytest.approx((40, 10, 80, 30), abs=1e-4)


def test_another_policy_is_another_set(tmp_path: Path) -> None:
    """It decides the bytes of records: it needs --overwrite,
    and the error names the setting with both values.
    """
    boxes = {"a.jpg": [FIRST, ("bird", (60, 10, 100, 30)), LAST]}
    make(prepared(tmp_path, "COCO", boxes, "clip"))
    recipe = prepared(tmp_path, "COCO", boxes, "drop")
    with pytest.raises(UsageError, match=r"boxes_outside \(clip, now drop\)"):
        make(recipe)
    options = RecipeSet.read(recipe).options.replace(overwrite=True)
    convert(Layout(tmp_path / "out"), ENGINE, options, dataset=RecipeSet.read(recipe))
    assert manifest_of(tmp_path).sources["train"]["changed_boxes"] == {"dropped": {"a.jpg": 1}}


# counted wherever sets are made -------------------------------------------------------------------

SEVERAL = {f"{letter}.jpg": [FIRST, ("bird", (60, 10, 100, 30))] for letter in "abcdefgh"}
SEVERAL |= {"i.jpg": [LAST, ("bird", (5, 5, 5, 9))]}
COUNTED = {"clipped": {f"{letter}.jpg": 1 for letter in "abcdefgh"}, "dropped": {"i.jpg": 1}}


def several(folder: Path, more: str = "") -> Path:
    """A recipe of nine images in three shards."""
    recipe = prepared(folder, "COCO", SEVERAL, "clip")
    recipe.write_text(recipe.read_text().replace("shards: 1", "shards: 3") + more)
    return recipe


def test_counts_are_right_after_resume_and_repair(tmp_path: Path) -> None:
    """Shards that are made again change no count."""
    recipe = several(tmp_path)
    make(recipe)
    manifest = manifest_of(tmp_path)
    assert manifest.sources["train"]["changed_boxes"] == COUNTED
    (tmp_path / "out/train-00001-of-00003").unlink()
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(recipe))
    assert manifest_of(tmp_path) == manifest
    (tmp_path / "out/train-00001-of-00003").unlink()
    repair(Layout(tmp_path / "out"), ENGINE, verify(Layout(tmp_path / "out"), ENGINE).faulty)
    assert manifest_of(tmp_path) == manifest


def test_counts_are_right_after_ranks(tmp_path: Path) -> None:
    """Every rank plans the whole set; merge keeps the counts."""
    recipe = several(tmp_path)
    for rank in range(2):
        convert(
            Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(recipe), share=Share(rank, 2)
        )
    merge(Layout(tmp_path / "out"))
    assert manifest_of(tmp_path).sources["train"]["changed_boxes"] == COUNTED


def test_counts_are_those_of_each_split(tmp_path: Path) -> None:
    """Each entry of sources has the images of its split."""
    recipe = several(tmp_path, "splits: {train: {files: '[a-h].jpg'}, test: {files: i.jpg}}\n")
    recipe.write_text(recipe.read_text().replace("shards: 3", "shards: {train: 2, test: 1}"))
    make(recipe)
    sources = manifest_of(tmp_path).sources
    assert sources["train"]["changed_boxes"] == {"clipped": COUNTED["clipped"]}
    assert sources["test"]["changed_boxes"] == {"dropped": {"i.jpg": 1}}


def test_counts_are_those_of_each_growth(tmp_path: Path) -> None:
    """New images have an entry of their own."""
    boxes = {**SEVERAL, "i.jpg": [FIRST, ("bird", (5, 5, 5, 9))]}
    recipe = prepared(tmp_path, "VOC", {name: boxes[name] for name in COUNTED["clipped"]}, "clip")
    recipe.write_text(f"{recipe.read_text()}grow: true\n")
    make(recipe)
    recipe = prepared(tmp_path, "VOC", boxes, "clip")
    recipe.write_text(f"{recipe.read_text()}grow: true\n")
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(recipe))
    sources = manifest_of(tmp_path).sources
    assert sources["train"]["changed_boxes"] == {"clipped": COUNTED["clipped"]}
    assert sources["train-grown2"]["changed_boxes"] == {"dropped": {"i.jpg": 1}}


def test_counts_are_printed_and_on_the_page(tmp_path: Path) -> None:
    """convert's summary, its notes, verify, its JSON and the report name boxes and images."""
    recipe = several(tmp_path)
    ran = command("convert", tmp_path / "out", "--config", recipe)
    line = "boxes clipped: 8, boxes dropped: 1, of 9 images: a.jpg, b.jpg, c.jpg, ..."
    assert line in ran.stdout
    assert "boxes_outside: clip: 8 impossible boxes clipped" in ran.stderr
    found = command("verify", tmp_path / "out", "--json", tmp_path / "found.json")
    assert line in found.stdout
    counts = json.loads((tmp_path / "found.json").read_text())["counts"]
    assert counts == {"boxes clipped": 8, "boxes dropped": 1}
    report(Layout(tmp_path / "out"), ENGINE)
    page = Layout(tmp_path / "out").report_path.read_text()
    assert "Boxes clipped" in page
    assert "i.jpg (1 box)" in page


def test_readers_get_the_clipped_box(tmp_path: Path) -> None:
    """imagenet_prep.open gives it like any other."""
    make(prepared(tmp_path, "YOLO", {"a.jpg": [("bird", (60, 12, 100, 24))]}, "clip"))
    (box,) = imagenet_prep.open(tmp_path / "out", "train")[0].boxes
    assert (box.xmin, box.ymin, box.xmax, box.ymax) == pytest.approx((0.75, 0.25, 1, 0.5))


# the recipe ---------------------------------------------------------------------------------------

WITH_BOXES = "source: {files: '*.jpg'}\nboxes: {voc: xml}\n"


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (WITH_BOXES + "boxes_outside: cut\n", "expected refuse, clip or drop"),
        (
            "source: {files: '*.jpg'}\nboxes_outside: clip\n",
            "boxes_outside: it requires boxes, and this recipe has no key boxes",
        ),
        (
            WITH_BOXES + "content: array\nboxes_outside: clip\n",
            "boxes_outside: it can't be combined with content: array",
        ),
        ("source: {imagenet: true}\nboxes_outside: clip\n", "boxes_outside"),
    ],
)
def test_a_recipe_that_has_no_use_for_it(tmp_path: Path, recipe: str, words: str) -> None:
    """Another value, no boxes, no images, or ImageNet, whose annotate has rules of its own."""
    (tmp_path / "r.yaml").write_text(recipe)
    ran = prep("convert", tmp_path / "out", "--config", tmp_path / "r.yaml")
    assert ran.returncode == 2, ran.stderr
    assert words in "; ".join(ran.stderr.splitlines())


def test_the_command_line_points_to_the_recipe(tmp_path: Path) -> None:
    """Settings of a recipe are written there, this one too."""
    recipe = several(tmp_path)
    ran = prep("convert", tmp_path / "out", "--config", recipe, "--set", "boxes_outside=drop")
    assert ran.returncode == 2
    assert f"write the setting boxes_outside in {recipe}" in ran.stderr


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        (
            "--train-shards=3",
            "write shards: {SPLIT: NUMBER, ...} in r.yaml, with a number for every split, and remove ",
        ),
        (
            "--allow-incomplete",
            "leave out --allow-incomplete: this setting does not apply to r.yaml",
        ),
        ("--set=relabel=0", "leave out --set relabel=0: this setting does not apply to r.yaml"),
        ("--classes=imagenette", "leave out --classes: this setting does not apply to r.yaml"),
        ("--resize=32", "write the setting resize in r.yaml"),
    ],
)
def test_only_a_key_that_the_recipe_can_have_is_named(
    tmp_path: Path, option: str, hint: str
) -> None:
    """A recipe of one's own images has no key for some settings of ImageNet, which has them all."""
    recipe = several(tmp_path).rename(tmp_path / "r.yaml")
    said = prep("convert", tmp_path / "out", "--config", recipe, option).stderr
    assert hint.replace("r.yaml", str(recipe)) in said
    recipe.write_text("source: {imagenet: true}\n")
    said = prep("convert", tmp_path / "out", "--config", recipe, option).stderr
    assert f"write {'shards: {SPLIT' if 'shards' in option else 'the setting'}" in said


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("source: {imagenet: true}", "keep"),
        ("source: {folders: x}", "boxes_outside"),
        ("source: {folders: x}\ncontent: array", "resize"),
    ],
)
def test_a_setting_is_no_key_of_a_recipe_that_has_no_use_for_it(
    tmp_path: Path, text: str, setting: str
) -> None:
    """A refused option is not proposed as a key that the recipe can't have."""
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"{text}\n")
    hint = f"leave out --{setting}: this setting does not apply to {recipe}"
    assert _in_recipe(setting, recipe, f"--{setting}") == hint


@pytest.mark.parametrize("source", ["table: x.csv", "parquet: x.parquet"])
def test_a_source_with_boxes_of_its_own_has_a_use_for_it(tmp_path: Path, source: str) -> None:
    """Rows and samples may have boxes without the key `boxes`."""
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"source: {{{source}}}\n")
    assert (
        _in_recipe("boxes_outside", recipe, "--set boxes_outside=keep")
        == f"write the setting boxes_outside in {recipe}"
    )


def test_init_asks_before_boxes_are_changed(tmp_path: Path) -> None:
    """It refuses, counts and names them; --as writes the policy into the recipe,
    which then works.
    """
    coco_set(tmp_path / "coco")
    path = tmp_path / "coco/annotations/instances_train2017.json"
    value = json.loads(path.read_text())
    value["annotations"][0].update(bbox=[0, 0, 500, 3])
    path.write_text(json.dumps(value))
    with pytest.raises(
        InputError, match=r"1 impossible box .*train2017/train2017_000001"
    ) as caught:
        init(tmp_path / "coco", tmp_path / "coco.yaml", ENGINE)
    assert "to clip or drop these boxes" in caught.value.hint
    assert "--as coco" in caught.value.choices[0]
    summary = init(tmp_path / "coco", tmp_path / "coco.yaml", ENGINE, structure="coco")
    assert "boxes_outside: clip" in summary.text
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(summary.recipe))
    assert manifest_of(tmp_path).sources["train"]["changed_boxes"]["clipped"]


def test_a_damaged_entry_is_no_crash(tmp_path: Path) -> None:
    """A manifest of another program may have anything there: verify still ends with a verdict."""
    make(several(tmp_path))
    layout, manifest = Layout(tmp_path / "out"), manifest_of(tmp_path)
    for value in (3, ["x"], {"clipped": 3}, {"clipped": {"a": "b"}}):
        sources = {"train": {**manifest.sources["train"], "changed_boxes": value}}
        replace(manifest, sources=sources).save(layout.manifest_path)
        assert verify(layout, ENGINE, depth="quick").problems == ()


def test_a_box_next_to_its_image_is_not_called_empty() -> None:
    """It leads out by less than a pixel, and has a width of its own."""
    impossible = place_box((-0.9, 10, -0.1, 30), (80, 48), "a.json", "refuse").impossible
    assert impossible is not None
    assert (
        impossible.problem
        == "a box of xmin -0.9, ymin 10, xmax -0.1, ymax 30 has no part inside the image"
    )
