"""The report on the data set of a recipe: its own name, its own splits,
what its records hold, images or none.
"""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from made_sets import ENGINE
from PIL import Image
from test_report import Page, odd_of, write_shard

from imagenet_prep import Layout, convert, report
from imagenet_prep.demo import photographs
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.reporting.census import _COLUMNS, UNLABELED, Census, join
from imagenet_prep.reporting.lenient import names_of, see
from imagenet_prep.reporting.samples import best_first, choose
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.tfrecord.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    encode_example,
    parse_example,
)

pytestmark = pytest.mark.once

TIMES = "\N{MULTIPLICATION SIGN}"
DASH = "\N{EN DASH}"
CLASSES = ("daisy", "rose", "tulip")
MAPPED = """
source: {folders: flowers}
splits: {train: 0.6, validation: 0.2, test: 0.2}
output_file_prefix: fl
shards: {train: 3, validation: 2, test: 1}
first_label: 0
record: {img: encoded, y: label, kind: class, name: path, h: height, w: width}
"""
ARRAYS = """
manifest_file: list.txt
input_file_pattern: arrays/*.npy
output_file_prefix: arr
num_shards: 2
min_val: -1
max_val: 3
"""


def made(folder: Path, recipe: str, name: str = "flowers") -> Layout:
    """The shards of a recipe that lies in ``folder``, with their report."""
    path = folder / f"{name}.yaml"
    path.write_text(recipe)
    layout = Layout(folder / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(path))
    report(layout, ENGINE)
    return layout.one_set()


def page_of(layout: Layout) -> Page:
    """The report as a browser's parser sees it, without its style sheet."""
    return Page(re.sub("<style>.*?</style>", "", layout.report_path.read_text(), flags=re.S))


def features_of(layout: Layout) -> dict[str, list[str]]:
    """The cells of the table of features by name."""
    return {row[0]: row[1:] for row in page_of(layout).rows["features"][1:]}


@pytest.fixture(scope="module")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds flowers/CLASS/N.jpg, every fourth image a PNG, one of these grey.
    Read only.
    """
    folder = tmp_path_factory.mktemp("flowers")
    for number in range(90):
        data = photographs.tiny(number)
        path = folder / "flowers" / CLASSES[number % 3] / f"{number:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % 4:
            path.write_bytes(data)
        else:
            with Image.open(io.BytesIO(data)) as image:
                image.convert("L" if number == 4 else "RGB").resize((20, 10)).save(
                    path.with_suffix(".png")
                )
    return folder


@pytest.fixture
def mapped(tmp_path: Path, flowers: Path) -> Layout:
    """Three splits of free records of the flowers, reported on."""
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    return made(tmp_path, MAPPED)


# what it is called --------------------------------------------------------------------------------


def test_totals_are_those_of_each_split(mapped: Layout) -> None:
    """Images, classes and shards of every split stand beside what the manifest records;
    nothing differs.
    """
    manifest = load_manifest(mapped.manifest_path)
    tables = {
        name: rows for name, rows in page_of(mapped).rows.items() if name.startswith("totals")
    }
    assert list(tables) == [f"totals {split}" for split in manifest.dataset.splits]
    assert len(tables) == 3
    for split, total in manifest.totals.items():
        heading, *rows = tables[f"totals {split}"]
        assert heading == ["", "found", "expected"]
        numbers = {"images": total.images, "classes": total.classes, "shards": total.shards}
        assert rows[:-1] == [[what, str(number), str(number)] for what, number in numbers.items()]
        assert rows[-1][0] == "size"
    assert "≠" not in page_of(mapped).text


# what the records hold ----------------------------------------------------------------------------


def test_features_are_counted_and_bounded(mapped: Layout, flowers: Path) -> None:
    """The table has each feature's kind, how many records have it,
    how many values each, and range or lengths.
    """
    files = [path for path in existing(flowers / "flowers", "**/*") if path.is_file()]
    lengths = [path.stat().st_size for path in files]
    assert features_of(mapped) == {
        "h": ["int64", "90", "1", "10 to 16"],
        "img": ["bytes", "90", "1", f"{min(lengths):,} to {max(lengths):,} bytes"],
        "kind": ["bytes", "90", "1", "4 to 5 bytes"],
        "name": ["bytes", "90", "1", "12 to 13 bytes"],
        "w": ["int64", "90", "1", "16 to 20"],
        "y": ["int64", "90", "1", "0 to 2"],
    }


def test_classes_and_files_go_by_the_names_that_the_recipe_gives_them(mapped: Layout) -> None:
    """A label, a class, an image or a path is found under whatever name the recipe maps it to."""
    rows = page_of(mapped).rows["classes"][1:]
    assert [row[0] for row in rows] == [
        f"{name} label {label}" for label, name in enumerate(CLASSES)
    ]
    assert [sum(map(int, row[1].split())) for row in rows] == [30, 30, 30]
    shown = page_of(mapped).images()
    assert len(shown) == 48
    for image in shown:
        assert re.fullmatch(
            r"(daisy|rose|tulip)/\d{3}\.(jpg|png)", (image["alt"] or "").split(": ")[1]
        )
        assert (image["alt"] or "").split(": ")[0] == (image["alt"] or "").split(": ")[1].split(
            "/"
        )[0]


def test_png_images_are_as_good_as_any(mapped: Layout) -> None:
    """PNGs are shown and measured, and not odd; grey ones are named, as grey JPEGs are."""
    page = page_of(mapped)
    names = [image["alt"] or "" for image in page.images()]
    assert sum(name.endswith(".png") for name in names) > 5
    assert "train: 16 to 20, " in page.text
    assert odd_of(mapped) == {"Grey": ["rose/004.png"]}
    assert (
        "one colour component; records of the Inception layout still say RGB and 3 channels"
        in page.text
    )


def test_without_boxes_nothing_is_said_of_boxes(mapped: Layout) -> None:
    """No chart, no total, no switch and no count beside an image, where no record has a box."""
    assert not re.search(r"\bbox", page_of(mapped).text.replace("bboxes", ""))


def test_samples_come_from_every_split() -> None:
    """Most are of the largest split, the others share a quarter,
    and each gives no more than it has.
    """
    sizes = {"train": 50, "validation": 20, "test": 1}
    parts = []
    for split, size in sizes.items():
        rows = np.ones(size, list(_COLUMNS.items()))
        rows["marks"] = UNLABELED
        parts.append((f"{split}-00000-of-00001", Census(rows)))
    for names in (list(sizes), ["test", "train", "validation"]):
        census = join(parts, names)

        def chosen(count: int, census: Census = census, names: list[str] = names) -> Counter[str]:
            rows = choose(census, best_first(census), count)
            assert len(set(rows)) == len(rows)
            return Counter(names[census.rows["split"][row]] for row in rows)

        assert chosen(24) == {"train": 20, "validation": 3, "test": 1}
        assert chosen(68) == {"train": 50, "validation": 17, "test": 1}
        assert chosen(100).total() == 71


def test_sets_without_labels(tmp_path: Path, flowers: Path) -> None:
    """Images without classes have no chart of them and no title."""
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    layout = made(
        tmp_path, "source: {files: 'flowers/*/*.jpg'}\nrecord: {image: encoded, path: path}\n"
    )
    page = page_of(layout)
    assert "Images per class" not in page.text
    assert "spread over the classes" not in page.text
    assert "no label" not in page.text
    assert re.fullmatch(r"flowers/\w+/\d+\.jpg", page.images()[0]["alt"] or "")
    assert f"16 {TIMES} 16" in page.text
    assert [row[0] for row in page_of(layout).rows["totals train"]] == [
        "",
        "images",
        "shards",
        "size",
    ]


# records without images ---------------------------------------------------------------------------


def test_arrays(tmp_path: Path) -> None:
    """Of arrays there are totals, features, shards and settings,
    and one sentence in place of images.
    """
    (tmp_path / "arrays").mkdir()
    for number in range(6):
        np.save(tmp_path / "arrays" / f"{number}.npy", np.array([[-5, 1, number]], "f4"))
    layout = made(tmp_path, ARRAYS, "waves")
    page = page_of(layout)
    assert "All 6 listed records are in." in page.text
    assert "6 records in 2 shards" in page.text
    assert page.text.count("No record holds a JPEG or a PNG") == 1
    assert not [attributes["id"] for tag, attributes in page.elements if tag == "figure"]
    assert not {"images", "odd"} & {attributes.get("id") for _, attributes in page.elements}
    assert not {"#images", "#odd"} & {attributes.get("href") for _, attributes in page.elements}
    assert "image" not in re.sub(r"imagenet-prep|image files", "", page.text)
    assert features_of(layout)["values"] == ["float", "6", "3", "0 to 1"]
    assert features_of(layout)["shape"] == ["int64", "6", "2", "1 to 3"]


FEATURES = st.one_of(
    st.builds(BytesList, st.lists(st.binary(max_size=40), max_size=2).map(tuple)),
    st.builds(FloatList, st.lists(st.floats(width=32), max_size=3).map(tuple)),
    st.builds(Int64List, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=2).map(tuple)),
)
NAMES = st.sampled_from(
    ["image/encoded", "encoded", "image", "label", "class", "text", "path", "height", "width"]
)


@given(
    st.dictionaries(NAMES, FEATURES),
    st.sampled_from([{}, {"record": {"label": {"from": "label"}, "x": 1}}]),
)
def test_any_record_can_be_seen(record: dict[str, Feature], settings: dict[str, object]) -> None:
    """Whatever features hold, and whatever a manifest says of them,
    something or nothing is seen.
    """
    seen = see(parse_example(encode_example(record)), names_of(settings))
    assert seen.size is None or min(seen.size) > 0


# settings, damage ---------------------------------------------------------------------------------


def test_a_damaged_set_is_still_spoken_of_by_its_name(mapped: Layout) -> None:
    """Problems are listed, what is left is counted, and the numbers that differ are marked."""
    mapped.shard_path("fl-train-00001-of-00003").unlink()
    write_shard(
        mapped,
        [encode_example({"y": Int64List((1,)), "more": Int64List(())})],
        "fl-test-00000-of-00001",
    )
    report(mapped, ENGINE)
    page = page_of(mapped)
    assert f"flowers {DASH} imagenet-prep report" in page.text
    assert "problems found" in page.text
    assert "ILSVRC2012" not in page.text
    assert "≠" in page.text
    assert "1 record holds other features too." in page.text


def test_optional_features_and_records_set_aside(tmp_path: Path, flowers: Path) -> None:
    """Records may lack what is optional; a file that was left out is named,
    and the totals allow for it.
    """
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    lines = [
        "path,label,size",
        "flowers/rose/001.jpg,a,3",
        "flowers/tulip/002.jpg,b,",
        "bad.jpg,c,4",
    ]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    recipe = """
        source: {files: ["flowers/rose/001.jpg", "flowers/tulip/002.jpg", "bad.jpg"]}
        labels: labels.csv
        on_damaged: skip
        record: {image: encoded, path: path, label: label, size: {from: size, optional: true}}
    """
    layout = made(tmp_path, recipe)
    assert features_of(layout)["size"] == ["int64, optional", "1", "1", "3"]
    assert page_of(layout).rows["totals train"][1:3] == [
        ["images", "2", "2"],
        ["classes", "2", DASH],
    ]
    assert "damaged, and left out by on_damaged: skip" in page_of(layout).text
    assert "<li>bad.jpg</li>" in layout.report_path.read_text()
    assert odd_of(layout)["Set aside"] == []
    assert "≠" not in page_of(layout).text
