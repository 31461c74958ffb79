"""verify of a recipe's sets: what a feature holds is told by the recipe,
never by the feature's name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_tars import save

from imagenet_prep import Layout, convert, make_engine, records, verify
from imagenet_prep.demo import photographs
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.recipe_set import RecipeSet

K = ProblemKind
ENGINE = make_engine("threads", 1)
SHARD = "train-00000-of-00001"
BARE = "{image/encoded: encoded, image/filename: filename}"
WHOLE = "{image/encoded: encoded, where: path}"
NONE = "{image/encoded: encoded}"


def made(folder: Path, record: str, *names: str, more: str = "") -> Layout:
    """One shard of small JPEGs of these names below ``csvset/images``,
    their records as the recipe says.
    """
    for number, name in enumerate(names or ("a.jpg", "b.jpg", "c.jpg")):
        save(folder / "csvset" / "images" / name, photographs.tiny(number))
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        f"source: {{files: csvset/images/*.jpg}}\nrecord: {record}\nnum_shards: 1\n{more}"
    )
    layout = Layout(folder / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
    return layout


def the_problem(layout: Layout) -> Problem:
    """The one problem that a full verify finds."""
    (problem,) = verify(layout, ENGINE).problems
    return problem


CSV = "labels: {file: notes.csv, label: false}\n"


@pytest.mark.parametrize(
    ("record", "more"),
    [
        (BARE, ""),
        (WHOLE, ""),
        (NONE, ""),
        ("{image/encoded: encoded, filename: note}", CSV),
        ("{image/encoded: encoded, image/filename: note, name: path}", CSV),
        ("{image/encoded: encoded, height: labels.height, image/width: labels.width}", CSV),
        ("{pixels: encoded, image: note, encoded: note}", CSV),
        ("inception", ""),
        ("{image/encoded: encoded, image/filename: {from: filename, optional: true}}", ""),
    ],
)
def test_a_right_set_is_right(tmp_path: Path, record: str, more: str) -> None:
    """Whatever features are called and hold: a set just converted has no problem,
    and none after a repair.
    """
    lines = [f"csvset/images/{name}.jpg,note of {name},170,60\n" for name in "abc"]
    (tmp_path / "notes.csv").write_text("path,note,height,width\n" + "".join(lines))
    if record == "inception":
        (tmp_path / "labels.txt").write_text(
            "".join(f"csvset/images/{name}.jpg:1\n" for name in "abc")
        )
        more = "labels: labels.txt\n"
    layout = made(tmp_path, record, more=more)
    assert verify(layout, ENGINE, depth="decode").problems == ()
    assert verify_and_repair(layout, ENGINE).repair.made == ()


@pytest.mark.parametrize("record", [BARE, WHOLE])
@pytest.mark.parametrize("name", ["a\u2028b.jpg", " a.jpg"])
def test_names_that_end_a_line_elsewhere(tmp_path: Path, record: str, name: str) -> None:
    """A name with a separator of Unicode is one line of the index."""
    assert verify(made(tmp_path, record, name, "c.jpg"), ENGINE).problems == ()


@pytest.mark.parametrize(
    ("record", "old", "new"),
    [(WHOLE, "csvset/images/b.jpg", "b.jpg"), (BARE, "images/b.jpg", "images/d.jpg")],
)
def test_a_damaged_name_in_the_index(tmp_path: Path, record: str, old: str, new: str) -> None:
    """A name in the index is compared with what the record holds of it:
    all of it, or its last part.
    """
    layout = made(tmp_path, record)
    sound = layout.listing_path(SHARD).read_bytes()
    assert sound.count(old.encode()) == 1
    layout.listing_path(SHARD).write_bytes(sound.replace(old.encode(), new.encode()))
    problem = the_problem(layout)
    assert (problem.kind, problem.subject) == (K.BAD_INDEX, SHARD)
    assert "does not match its records" in problem.detail
    assert verify_and_repair(layout, ENGINE).repair.made == (SHARD,)
    assert layout.listing_path(SHARD).read_bytes() == sound


@pytest.mark.parametrize(
    ("which", "change"),
    [
        (1, lambda content: content[:8].upper() + content[8:]),
        (0, lambda content: content.replace(b" ", b"\t", 1)),
        (0, lambda content: content[:-1]),
        (1, lambda content: content[:-1]),
        (0, lambda content: b"0" + content),
    ],
)
def test_an_index_written_otherwise(
    tmp_path: Path, which: int, change: Callable[[bytes], bytes]
) -> None:
    """An index of the right numbers in other bytes is not as it was written, and is found."""
    layout = made(tmp_path, WHOLE)
    path = layout.index_paths(SHARD)[which]
    content = path.read_bytes()
    assert change(content) != content, "the first CRC has no letter: choose other images"
    path.write_bytes(change(content))
    assert the_problem(layout).kind == K.BAD_INDEX


def test_an_image_under_any_name(tmp_path: Path) -> None:
    """A JPEG is looked at in whichever feature the recipe puts it,
    and its size where the recipe puts that.
    """
    layout = made(tmp_path, "{picture: encoded, tall: height, wide: width}")
    path = layout.shard_path(SHARD)
    found = list(records.read(path))
    for change, kind in (
        ({"picture": found[1]["picture"][:-2]}, K.BAD_IMAGE),
        ({"tall": 5}, K.SIZE_MISMATCH),
        ({"wide": 5}, K.SIZE_MISMATCH),
    ):
        records.write(path, [found[0], {**found[1], **change}, *found[2:]])
        problems = verify(layout, ENGINE).problems
        assert (kind, 1) in [(problem.kind, problem.record) for problem in problems]
