"""The pages of docs/recipes: the recipe of each converts and verifies,
and its snippet prints what the page says.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_fixture
from existing import existing
from made_sets import make_flowers
from PIL import Image
from test_docs import blocks

from imagenet_prep import Layout, convert, make_engine, verify
from imagenet_prep.ilsvrc2012.settings import SHIPPED
from imagenet_prep.recipes.loading import read
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.registry import imagenet_options

tf = tf_fixture.tf

PAGES = Path(__file__).parents[1] / "docs" / "recipes"
RNG = np.random.default_rng(3)


def image(path: Path) -> None:
    """A small image of any colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8)).save(path)


def scans(folder: Path) -> None:
    """scans/N.png and the table of the page, continued."""
    table = next(
        block
        for block in blocks((PAGES / "labels.md").read_text())
        if block.startswith("filename,")
    )
    (folder / "scans.csv").write_text(table + "c.png,benign,50,\n")
    for name in "abc":
        image(folder / "scans" / f"{name}.png")


def digits(folder: Path) -> None:
    """images/N.png and the labels of the page."""
    for name in "ab":
        image(folder / "images" / f"{name}.png")
    (folder / "images/labels.txt").write_text(blocks((PAGES / "pixels.md").read_text())[0])


def arrays(folder: Path) -> None:
    """arrays/N.npy, some of their numbers beyond the bounds."""
    (folder / "arrays").mkdir()
    for number in range(20):
        np.save(folder / "arrays" / f"{number}.npy", RNG.normal(0, 3, (4, 5)))


def parts(folder: Path) -> None:
    """parts/N.tar: two tars with class folders."""
    (folder / "parts").mkdir()
    for number in range(2):
        for name in ("daisy", "rose", "tulip"):
            for each in range(2):
                image(folder / f"in-{number}" / name / f"{2 * number + each}.jpg")
        tar = ["tar", "-C", folder / f"in-{number}", "-cf", folder / f"parts/{number}.tar", "."]
        subprocess.run(tar, check=True)


MAKERS: dict[str, Callable[[Path], object]] = {
    "class-folders.md": lambda folder: make_flowers(
        folder / "flowers", 20, ("daisy", "rose", "tulip")
    ),
    "labels.md": scans,
    "pixels.md": digits,
    "arrays.md": arrays,
    "tars.md": parts,
}


def test_every_page_is_tried() -> None:
    """No page is without its test; that of tables and functions has a module, test_table_page."""
    assert {path.name for path in existing(PAGES, "*.md")} == {*MAKERS, "imagenet.md", "table.md"}


@pytest.mark.parametrize("page", MAKERS)
def test_a_page_does_what_it_says(page: str, inside: Path, tf: Any) -> None:
    """Its recipe gives shards that verify finds right, a second run makes none,
    and its snippet prints its output.
    """
    text = (PAGES / page).read_text()
    MAKERS[page](inside)
    (inside / "recipe.yaml").write_text(blocks(text, "yaml")[0])
    engine = make_engine("threads", 2)
    for is_first in (True, False):
        summary = convert(
            Layout(inside / "out"), engine, dataset=RecipeSet.read(inside / "recipe.yaml")
        )
        assert all(bool(split.made) == is_first for split in summary.splits)
    assert not verify(Layout(inside / "out"), engine).problems
    (snippet,) = blocks(text, "python")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, page, "exec"), {})
    assert printed.getvalue() in blocks(text)


def test_the_page_of_imagenet_has_the_shipped_recipe(tmp_path: Path) -> None:
    """What the page shows says the same as what is shipped."""
    path = tmp_path / "imagenet.yaml"
    path.write_text(blocks((PAGES / "imagenet.md").read_text(), "yaml")[0])
    assert imagenet_options(read(path)) == imagenet_options(read(SHIPPED))
