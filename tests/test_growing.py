"""Sets that grow: new files get shards of their own, earlier shards stay as they are,
and readers see one set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, data_of, flip
from made_tars import save
from running import command

import imagenet_prep
from imagenet_prep import Layout, PrepError, convert, export, verify
from imagenet_prep.demo import photographs
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.plan_file import load_plan

tf = tf_fixture.tf

RECIPE = (
    "source: {folders: data}\nsplits: {train: 0.8, validation: 0.2}\nshards: {train: 4, "
    "validation: 1}\ngrow: true\n"
)


def add(folder: Path, start: int, stop: int, *classes: str) -> None:
    """Images of these numbers in class folders, by turns."""
    for number in range(start, stop):
        save(
            folder / "data" / classes[number % len(classes)] / f"{number:04d}.jpg",
            photographs.tiny(number),
        )


def make(folder: Path, recipe: str = RECIPE, share: Share | None = None) -> Layout:
    """The set of a recipe, made or grown."""
    (folder / "r.yaml").write_text(recipe)
    layout = Layout(folder / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(folder / "r.yaml"), share=share)
    return layout


def shards(layout: Layout) -> dict[str, tuple[int, int, bytes]]:
    """The inode, time and content of each shard."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in existing(layout.output_dir, "*-of-*")
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of 60 images."""
    add(tmp_path, 0, 60, "a", "b", "c")
    make(tmp_path)
    return tmp_path


def test_only_new_shards_are_made(folder: Path) -> None:
    """After 30 more files, and 15 more, each earlier shard is the same file;
    nothing new makes nothing.
    """
    layout = Layout(folder / "out")
    first = shards(layout)
    add(folder, 60, 90, "a", "b", "c")
    second = shards(make(folder))
    assert {name: second[name] for name in first} == first
    assert sorted(second.keys() - first) == [
        *(f"train-grown2-{number:05d}-of-00002" for number in range(2)),
        "validation-grown2-00000-of-00001",
    ]
    assert shards(make(folder)) == second
    add(folder, 90, 105, "c", "d")
    third = shards(make(folder))
    assert {name: third[name] for name in second} == second
    assert sorted({name.partition("-0")[0] for name in third.keys() - second}) == [
        "train-grown3",
        "validation-grown3",
    ]
    names = [
        record.filename
        for split in ("train", "validation")
        for record in imagenet_prep.open(folder / "out", split)
    ]
    assert sorted(names) == [
        str(path.relative_to(folder / "data")) for path in existing(folder / "data", "*/*.jpg")
    ]
    assert verify(layout, ENGINE).problems == ()
    assert (
        len(imagenet_prep.open(folder / "out", "train-grown3"))
        < 15
        < len(imagenet_prep.open(folder / "out", "train"))
    )


def test_every_reader_sees_one_set(folder: Path, tmp_path: Path) -> None:
    """open, a glob, exports and report read the first shards and the new ones;
    formats of one numbering refuse.
    """
    add(folder, 60, 90, "a", "b", "c")
    layout = make(folder)
    held = [bytes(record.data) for record in imagenet_prep.open(folder / "out", "train")]
    assert held == [data for path in existing(folder / "out", "train-*") for data in data_of(path)]
    export(layout, "folders", tmp_path / "folders", ENGINE)
    out = Counter(
        path.relative_to(tmp_path / "folders").parts[0]
        for path in existing(tmp_path / "folders", "**/*.jpg")
    )
    assert out == {"train": len(held), "validation": 90 - len(held)}
    summary = export(layout, "webdataset", tmp_path / "tars", ENGINE)
    assert [(each.split, each.records, each.shards) for each in summary.splits] == [
        ("train", len(held), 6),
        ("validation", 90 - len(held), 2),
    ]
    assert [path.name for path in existing(tmp_path / "tars", "train-*")] == [
        f"train-{n:06d}.tar" for n in range(6)
    ]
    with pytest.raises(UsageError, match="train has grown"):
        export(layout, "tfds", None, ENGINE)
    with pytest.raises(UsageError, match=r"^source='raw' can't read split train, "):
        imagenet_prep.open(folder / "out", "train", source="raw", config=folder / "r.yaml")
    with pytest.raises(UsageError, match="no split is named") as caught:
        imagenet_prep.open(folder / "out", "", source="raw", config=folder / "r.yaml")
    suggested = caught.value.hint.rpartition("split=")[2].strip("'")
    assert "train," not in caught.value.detail
    assert imagenet_prep.open(folder / "out", suggested, source="raw", config=folder / "r.yaml")
    for arguments in (["verify"], ["report"], ["status"]):
        assert command(*arguments, str(folder / "out")).returncode == 0
    assert command("show", str(folder / "out/train-grown2-00000-of-00002")).returncode == 0
    (folder / "out/train-grown2-00001-of-00002").unlink()
    with pytest.raises(InputError, match=r"train-grown2-00001-of-00002 .*missing"):
        imagenet_prep.open(folder / "out", "train")


@pytest.mark.parametrize("prefix", ["", "own"])
def test_damage_is_repaired_although_more_files_came(tmp_path: Path, prefix: str) -> None:
    """repair makes an old and a new shard again, and leaves files of a later growth alone;
    with a prefix too.
    """
    recipe, lead = (f"{RECIPE}output_file_prefix: own\n", "own-") if prefix else (RECIPE, "")
    add(tmp_path, 0, 60, "a", "b", "c")
    make(tmp_path, recipe)
    add(tmp_path, 60, 90, "a", "b", "c")
    layout = make(tmp_path, recipe)
    before = {name: content for name, (_, _, content) in shards(layout).items()}
    add(tmp_path, 90, 95, "a")
    (tmp_path / f"out/{lead}train-00001-of-00004").write_bytes(b"")
    (tmp_path / f"out/{lead}train-grown2-00001-of-00002").unlink()
    assert verify_and_repair(layout, ENGINE).verdict.problems == ()
    assert {name: content for name, (_, _, content) in shards(layout).items()} == before


def test_growth_may_be_stopped_and_taken_up(folder: Path) -> None:
    """A bad new image stops its shard alone; a sound copy, and more files,
    are taken by the same command.
    """
    first = shards(Layout(folder / "out"))
    add(folder, 60, 90, "a", "b", "c")
    bad = next(path for path in existing(folder / "data", "a/00[678]*.jpg"))
    bad.write_bytes(b"\xff\xd8 cut")
    with pytest.raises(PrepError, match="can't be converted"):
        make(folder)
    bad.write_bytes(photographs.tiny(7))
    add(folder, 90, 95, "b")
    layout = make(folder)
    second = shards(layout)
    assert {name: second[name] for name in first} == first
    assert verify(layout, ENGINE).problems == ()
    assert (
        sum(len(imagenet_prep.open(folder / "out", split)) for split in ("train", "validation"))
        == 95
    )


def test_ranks_grow_a_set_together(folder: Path) -> None:
    """Both ranks plan the same growth; merge finishes the set."""
    first = shards(Layout(folder / "out"))
    add(folder, 60, 90, "a", "b", "c")
    for rank in range(2):
        layout = make(folder, share=Share(rank, 2))
    merge(layout)
    second = shards(layout)
    assert {name: second[name] for name in first} == first
    assert len(second) == len(first) + 3
    assert verify(layout, ENGINE).problems == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("gone", "differs from earlier runs: 1 file is not in split train any more: a/0000.jpg"),
        ("longer", "differs from earlier runs: 1 file has another length now: a/0000.jpg"),
        ("same length", " differ: other images, or a copy that did not keep the times"),
        ("new first class", "Z is a new class, which the shards of train"),
        ("without grow", "other inputs or with other settings"),
    ],
)
def test_changes_of_earlier_files_are_refused(folder: Path, change: str, words: str) -> None:
    """Each earlier file must be as it was; the error names those that are not,
    and the shards stay.
    """
    first, recipe = shards(Layout(folder / "out")), RECIPE
    add(folder, 60, 63, "a", "b", "c")
    path = folder / "data/a/0000.jpg"
    if change == "gone":
        path.unlink()
    elif change in ("longer", "same length"):
        path.write_bytes(path.read_bytes() + b"\0" * (change == "longer"))
    elif change == "new first class":
        add(folder, 63, 64, "Z")
    else:
        recipe = recipe.replace("grow: true\n", "")
    with pytest.raises(PrepError, match=re.escape(words)):
        make(folder, recipe)
    assert shards(Layout(folder / "out")) == first


def test_several_changed_files_are_counted(folder: Path) -> None:
    """The message counts the files that have another length."""
    for name in ("a/0000.jpg", "a/0003.jpg"):
        path = folder / "data" / name
        path.write_bytes(path.read_bytes() + b"\0")
    words = "differs from earlier runs: 2 files have another length now: a/0003.jpg, a/0000.jpg"
    with pytest.raises(PrepError, match=re.escape(words)):
        make(folder)


def test_a_file_of_another_class_is_named_with_both(tmp_path: Path) -> None:
    """The labels file gives an earlier file another class: the classes keep their numbers, so the
    hint does not speak of their order.
    """
    add(tmp_path, 0, 6, "x")
    names = [f"x/{number:04d}.jpg" for number in range(6)]
    classes = ["cat", "dog"] * 3
    recipe = (
        "source: {files: 'data/x/*.jpg'}\nlabels: labels.csv\nclasses: [cat, dog]\n"
        "splits: {train: {files: '**/*'}}\ngrow: true\n"
    )

    def write_labels() -> None:
        lines = [f"{name},{label}\n" for name, label in zip(names, classes, strict=True)]
        save(tmp_path / "labels.csv", f"path,label\n{''.join(lines)}")

    write_labels()
    first = shards(make(tmp_path, recipe))
    classes[0] = "dog"
    write_labels()
    with pytest.raises(InputError) as caught:
        make(tmp_path, recipe)
    words = "1 file has another label now: data/x/0000.jpg was of cat, and is of dog"
    assert words in caught.value.what
    assert "restore the earlier files, labels and splits; or, to make" in caught.value.hint
    assert shards(Layout(tmp_path / "out")) == first


def test_overwrite_makes_a_grown_set_as_one(folder: Path) -> None:
    """The shards of the growth are replaced by shards of all files."""
    add(folder, 60, 90, "a", "b", "c")
    layout = make(folder)
    command("convert", str(folder / "out"), "--config", str(folder / "r.yaml"), "--overwrite")
    assert not list((folder / "out").glob("*grown*"))
    assert len(shards(layout)) == 5
    assert verify(layout, ENGINE).problems == ()


def _planned_files(layout: Layout, pattern: str) -> list[Path]:
    return existing(layout.plan_path.parent, pattern)


def _flip_in_each(paths: list[Path]) -> None:
    for path in paths:
        flip(path, path.stat().st_size // 2)


def _empty(paths: list[Path]) -> None:
    for path in paths:
        path.write_bytes(b"")


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


DAMAGE = {
    "plan gone": ("plan.json", _remove),
    "plan flipped": ("plan.json", _flip_in_each),
    "plan empty": ("plan.json", _empty),
    "heads gone": ("*/catalog.json", _remove),
    "heads flipped": ("*/catalog.json", _flip_in_each),
    "names flipped": ("*/names.*", _flip_in_each),
    "offsets gone": ("*/offsets.*", _remove),
    "labels empty": ("*/labels.*", _empty),
    "all gone": ("**/*.*", _remove),
}


@pytest.mark.parametrize(("pattern", "damage"), DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("lost", ["", "train-grown2-00001-of-00002"])
def test_a_damaged_plan_of_a_grown_set_is_made_again(
    folder: Path, pattern: str, damage: Callable[[list[Path]], None], lost: str
) -> None:
    """Its files come back from the indexes of the shards, finished or in mid-growth;
    then it grows as before.
    """
    add(folder, 60, 90, "a", "b", "c")
    layout = make(folder)
    expected = shards(layout)
    if lost:
        layout.shard_path(lost).unlink()
        layout.manifest_path.unlink()
    damage(_planned_files(layout, pattern))
    made = shards(make(folder))
    assert {name: content for name, (_, _, content) in made.items()} == {
        name: shard[2] for name, shard in expected.items()
    }
    assert {name: made[name] for name in made.keys() - {lost}} == {
        name: expected[name] for name in made.keys() - {lost}
    }
    add(folder, 90, 105, "c", "d")
    damage(_planned_files(layout, pattern))
    grown = shards(make(folder))
    assert {name: grown[name] for name in made} == made
    assert sorted({name.partition("-0")[0] for name in grown.keys() - made}) == [
        "train-grown3",
        "validation-grown3",
    ]
    assert verify(layout, ENGINE).problems == ()


def test_without_plan_and_index_nothing_is_guessed(folder: Path) -> None:
    """Neither tells which files the earlier shards hold: the error says so, and the shards stay."""
    layout = Layout(folder / "out")
    first = shards(layout)
    add(folder, 60, 63, "a", "b", "c")
    _empty(_planned_files(layout, "*/names.*"))
    layout.index_paths("train-00002-of-00004")[1].unlink()
    words = r"names\.\w+ is gone or has changed, and \S+/train-00002-of-00004\.list is damaged"
    with pytest.raises(InputError, match=words):
        make(folder)
    assert shards(layout) == first


@pytest.mark.parametrize(("pattern", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_repair_beside_a_damaged_plan(
    folder: Path, pattern: str, damage: Callable[[list[Path]], None]
) -> None:
    """It makes the shards again; without plan.json it names the command that makes the plan again,
    and this is true.
    """
    add(folder, 60, 90, "a", "b", "c")
    layout = make(folder)
    before = {name: content for name, (_, _, content) in shards(layout).items()}
    layout.shard_path("train-grown2-00001-of-00002").write_bytes(b"")
    damage(_planned_files(layout, pattern))
    if not load_plan(layout):
        with pytest.raises(InputError, match=r"recipe of r .*damaged") as refused:
            verify_and_repair(layout, ENGINE)
        assert "run the same imagenet-prep convert, with --config RECIPE" in refused.value.hint
        make(folder)
    assert verify_and_repair(layout, ENGINE).verdict.problems == ()
    assert {name: content for name, (_, _, content) in shards(layout).items()} == before


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_damaged_line_of_an_earlier_growth_adds_no_image_twice(
    folder: Path, is_finished: bool
) -> None:
    """One bit of its journal line: its shard keeps its name and its files,
    beside the shards of a later growth.
    """
    for start in (60, 75):
        add(folder, start, start + 15, "a", "b", "c")
        layout = make(folder)
    before = {name: content for name, (_, _, content) in shards(layout).items()}
    flip(layout.journal_path, layout.journal_path.read_bytes().index(b'"train-grown2-') + 3)
    if not is_finished:
        layout.manifest_path.unlink()
    make(folder)
    assert {name: content for name, (_, _, content) in shards(layout).items()} == before
    assert verify(layout, ENGINE).problems == ()
