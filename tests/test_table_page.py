"""The page on tables and functions: its tables, its recipes,
its functions and its commands, as they stand there.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from made_folders import picture
from made_rows import read_split
from made_sets import ENGINE
from made_tars import save
from test_docs import blocks
from test_snippets import run_lines

from imagenet_prep.recipes.loading import load

PAGE = (Path(__file__).parents[1] / "docs" / "recipes" / "table.md").read_text()
_, BIRDS, BOXES, NESTED = blocks(PAGE)
OF_BIRDS, OF_DIGITS = blocks(PAGE, "sh")
BIRDS_RECIPE, DIGITS_RECIPE, CARS_RECIPE = blocks(PAGE, "yaml")
DIGITS, CARS = blocks(PAGE, "python")


def write_birds(folder: Path) -> None:
    """The folder of the page."""
    save(folder / "birds" / "metadata.csv", BIRDS.encode())
    for number in (1, 2, 3):
        save(folder / "birds" / "photos" / f"{number}.jpg", picture(f"{number}.jpg"))


def test_the_table_of_the_page_is_converted(tmp_path: Path) -> None:
    """Its two commands make records of all that it says."""
    write_birds(tmp_path)
    run_lines(OF_BIRDS, tmp_path)
    found = read_split(tmp_path / "birds-shards", "train", {"image/class/text", "text"})
    assert {
        name: (record["image/class/text"], record["text"]) for name, record in found.items()
    } == {
        "photos/1.jpg": ("robin", "a robin on a branch"),
        "photos/2.jpg": ("wren", "a wren in the grass"),
    }
    assert found["photos/1.jpg"]["weight"] == 18.5
    assert list(read_split(tmp_path / "birds-shards", "test", set())) == ["photos/3.jpg"]
    assert (
        BIRDS_RECIPE.strip().removeprefix("source: {").removesuffix("}")
        in (tmp_path / "birds.yaml").read_text()
    )


@pytest.mark.parametrize(("name", "content"), [("t.csv", BOXES), ("t.jsonl", NESTED)])
def test_both_forms_of_boxes_of_the_page_are_the_same(
    tmp_path: Path, name: str, content: str
) -> None:
    """Each gives the same boxes."""
    from made_boxes import photograph

    for number in (1, 2):
        save(tmp_path / f"{number}.jpg", photograph(80, 100))
    save(tmp_path / name, content.encode())
    save(tmp_path / "r.yaml", f"source: {{table: {name}}}\n".encode())
    (split,) = load(tmp_path / "r.yaml", None, ENGINE).splits
    assert split.catalog.columns["boxes.text"] == [["car", "dog"], []]
    assert np.allclose(split.catalog.boxes.reshape(-1, 4)[0], [10 / 80, 0.2, 60 / 80, 0.8])
    assert np.allclose(split.catalog.boxes.reshape(-1, 4)[1], [64 / 80, 0.22, 70 / 80, 0.6])


def test_the_function_of_the_page_for_matlab_runs(tmp_path: Path) -> None:
    """Images and labels of a .mat: the pixels, and 10 is 0."""
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32, 3, 20), dtype=np.uint8)
    scipy.io.savemat(
        tmp_path / "extra_32x32.mat", {"X": pixels, "y": np.arange(1, 21).reshape(-1, 1) % 10 + 1}
    )
    save(tmp_path / "digits.py", DIGITS.encode())
    save(tmp_path / "digits.yaml", DIGITS_RECIPE.encode())
    run_lines(OF_DIGITS, tmp_path)
    found = read_split(tmp_path / "digits-shards", "train", set())
    assert len(found) == 18
    labels = {name: record["image/class/label"] for name, record in found.items()}
    assert labels == {
        f"{number + 1:06}.png": ((number + 1) % 10 + 1) % 10 for number in range(20) if number % 10
    }


def test_the_function_of_the_page_for_a_database_runs(tmp_path: Path) -> None:
    """Paths, classes, prices and boxes of an SQLite database."""
    with sqlite3.connect(tmp_path / "cars.db") as database:
        database.execute("CREATE TABLE photos (id, path, make, price)")
        database.execute("CREATE TABLE parts (photo, part, x, y, width, height)")
        database.executemany(
            "INSERT INTO photos VALUES (?, ?, ?, ?)",
            [(1, "a.jpg", "vw", 5.5), (2, "b.jpg", "bmw", 7.5)],
        )
        database.execute("INSERT INTO parts VALUES (1, 'wheel', 2, 4, 8, 8)")
    for name in ("a.jpg", "b.jpg"):
        save(tmp_path / name, picture(name))
    save(tmp_path / "cars.py", CARS.encode())
    save(tmp_path / "cars.yaml", CARS_RECIPE.encode())
    run_lines("imagenet-prep convert out --config cars.yaml --allow-python\n", tmp_path)
    found = read_split(tmp_path / "out", "train", {"image/class/text", "image/object/class/text"})
    assert {name: record["image/class/text"] for name, record in found.items()} == {
        "a.jpg": "vw",
        "b.jpg": "bmw",
    }
    assert found["a.jpg"]["price"] == 5.5
    assert found["a.jpg"]["image/object/bbox/xmax"] == [10 / 16]
    assert found["a.jpg"]["image/object/class/text"] == ["wheel"]
