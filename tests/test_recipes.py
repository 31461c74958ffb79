"""Recipes -> plans: sources, labels, splits, classes, shards, manifests;
and what the same recipe gives again.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from made_sets import write_lists
from PIL import Image

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.divisions import Shares
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_dataset import RecipeDataset, SplitPlan
from imagenet_prep.recipes.recipe_paths import need_recorded_root
from imagenet_prep.sources.fingerprint import fingerprint
from imagenet_prep.storage.layout import Layout

CLASSES = ("daisy", "rose", "tulip")


def plan(folder: Path, recipe: str, root: Path | None = None) -> RecipeDataset:
    """The plan of a recipe that lies in ``folder``."""
    path = folder / "recipe.yaml"
    path.write_text(recipe)
    return load(path, root, make_engine("threads", 2))


def save_image(path: Path, seed: int = 0, size: tuple[int, int] = (12, 8)) -> None:
    """A small image of its own, of the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def names(split: SplitPlan) -> list[str]:
    """The names of a split, in the order before the shuffle."""
    return list(split.catalog.names)


def rows(split: SplitPlan) -> dict[str, tuple[int, str]]:
    """Label and class by name."""
    items = map(split.catalog.item, range(len(split.catalog)))
    return {item.filename: (item.label, item.wnid) for item in items}


def fingerprints(made: RecipeDataset) -> list[str]:
    """What decides the bytes of each split."""
    settings = json.dumps(made.settings, sort_keys=True)
    return [fingerprint(each.catalog, range(len(each.catalog)), settings) for each in made.splits]


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """A folder that holds flowers/CLASS/N.jpg: three classes of four, one name not ASCII."""
    for number, name in enumerate(CLASSES):
        for image in range(4):
            save_image(tmp_path / "flowers" / name / f"{image}.jpg", 10 * number + image)
    (tmp_path / "flowers/rose/3.jpg").rename(tmp_path / "flowers/rose/é.jpg")
    return tmp_path


# sources ------------------------------------------------------------------------------------------


def test_a_name_that_two_tars_hold_is_refused(flowers: Path) -> None:
    """Without tar_folders the names of several tars are of one set."""
    for archive in ("a.tar", "b.tar"):
        subprocess.run(
            ["tar", "-C", flowers / "flowers", "-cf", flowers / archive, "daisy"], check=True
        )
    with pytest.raises(InputError, match=r"daisy/0\.jpg .*a\.tar .*b\.tar"):
        plan(flowers, "source: {tar: '*.tar'}")


def test_links_that_lead_out_are_named(
    flowers: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link to a file elsewhere is read, and the plan says that it leads out of the data."""
    other = tmp_path_factory.mktemp("other") / "x.jpg"
    save_image(other)
    (flowers / "flowers/rose/linked.jpg").symlink_to(other)
    made = plan(flowers, "source: {folders: flowers}")
    assert "rose/linked.jpg" in names(made.splits[0])
    assert made.notes == (
        "1 file is a link that leads out of the folder of the data: rose/linked.jpg",
    )


def test_the_root_is_raw_then_datapath_then_the_recipes_folder(
    flowers: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths begin at --raw; without it at DATAPATH; without that at the recipe."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    recipe = "source: {folders: flowers}"
    monkeypatch.setenv("DATAPATH", str(flowers))
    assert len(plan(elsewhere, recipe).splits[0].catalog) == 12
    save_image(elsewhere / "flowers/daisy/0.jpg")
    assert len(plan(flowers, recipe, root=elsewhere).splits[0].catalog) == 1
    monkeypatch.delenv("DATAPATH")
    assert len(plan(elsewhere, recipe).splits[0].catalog) == 1


def test_a_folder_of_a_set_that_was_moved(tmp_path: Path) -> None:
    """The plan names it: repair takes its new place, and keeps its other options."""
    layout = Layout(tmp_path, output=tmp_path / "o")
    with pytest.raises(InputError) as caught:
        need_recorded_root(tmp_path / "gone", layout)
    assert caught.value.detail == "the set was made from this folder"
    assert f"repair {tmp_path} --raw FOLDER --output {tmp_path / 'o'}" in caught.value.hint
    need_recorded_root(tmp_path, layout)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gone", "is not there"),
        ("file", "is not a folder"),
        ("pipe", "is a pipe"),
        ("link", "is a broken link"),
    ],
)
def test_a_root_that_is_no_folder_is_called_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    """The error names the path, what it is, and what names it."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    monkeypatch.setenv("DATAPATH", str(tmp_path / name))
    with pytest.raises(InputError) as caught:
        plan(tmp_path, "source: {folders: flowers}")
    assert caught.value.what == f"{tmp_path / name} {problem}"
    assert "as DATAPATH of the environment names it" in caught.value.detail


# labels -------------------------------------------------------------------------------------------


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A folder that holds scans/N.png, four of them."""
    for number in range(4):
        save_image(tmp_path / "scans" / f"{number}.png", number)
    return tmp_path


def test_other_columns_become_columns_of_the_row(scans: Path) -> None:
    """Numbers in a CSV become numbers, an empty cell no value, a list of JSON a list."""
    lines = (
        "filename,label,age,note",
        '0.png,cat,1,"a, b"',
        "1.png,dog,2,",
        "2.png,cat,3,c",
        "3.png,emu,4,d",
    )
    (scans / "labels.csv").write_text("\n".join(lines))
    made = plan(scans, "source: {files: 'scans/*.png'}\nlabels: labels.csv")
    (split,) = made.splits
    by_name = {
        split.catalog.item(row).filename: split.catalog.item(row).columns for row in range(4)
    }
    assert by_name["scans/0.png"] == {"age": 1, "note": "a, b"}
    assert by_name["scans/1.png"] == {"age": 2, "note": None}
    assert made.features["age"] == {"kind": "int64", "optional": False, "values": 1}
    assert made.features["note"] == {"kind": "bytes", "optional": True, "values": 1}
    lines = (
        json.dumps({"file": f"{i}.png", "label": "abac"[i], "box": [i, i + 0.5]}) for i in range(4)
    )
    (scans / "labels.jsonl").write_text("\n".join(lines))
    made = plan(scans, "source: {files: 'scans/*.png'}\nlabels: labels.jsonl")
    assert made.splits[0].catalog.columns["box"] == [[0, 0.5], [2, 2.5], [1, 1.5], [3, 3.5]]
    assert made.features["box"] == {"kind": "float", "optional": False, "values": None}


def test_labels_that_are_numbers_stay_those_numbers(scans: Path) -> None:
    """A number in the labels file is the number in the record,
    whatever the classes are counted from.
    """
    (scans / "labels.txt").write_text("0.png:7\n1.png:3\n2.png:7\n3.png:4\n")
    recipe = "source: {files: 'scans/*.png'}\nlabels: labels.txt\nrecord: {label: label}\n"
    for first in (0, 3):
        classes = plan(scans, f"{recipe}first_label: {first}" if first else recipe).classes
        assert (classes.numbers, classes.first_label) == ((3, 4, 7), first)
    assert rows(plan(scans, recipe).splits[0])["scans/0.png"] == (3, "7")


def test_numbers_name_the_classes_of_a_list(scans: Path) -> None:
    """With `classes`, a number is a place in that list, counted from first_label."""
    (scans / "labels.txt").write_text("0.png:0\n1.png:1\n2.png:0\n3.png:2\n")
    recipe = (
        "source: {files: 'scans/*.png'}\nlabels: labels.txt\nclasses: {cat: a cat, dog: a dog, "
        "emu: an emu}\n"
    )
    made = plan(scans, recipe + "first_label: 0")
    assert rows(made.splits[0])["scans/3.png"] == (3, "emu")
    assert (made.classes.texts[2], made.classes.numbers) == ("an emu", (0, 1, 2))


def test_labels_can_skip_and_ignore(scans: Path) -> None:
    """Files without a label and labels without a file pass if the recipe says so,
    and the plan counts them.
    """
    (scans / "labels.csv").write_text("path,label\n0.png,cat\n1.png,dog\n2.png,\n9.png,cat\n")
    recipe = (
        "source: {files: 'scans/*.png'}\nlabels: {file: labels.csv, missing: ignore, "
        "unlabelled: skip}"
    )
    made = plan(scans, recipe)
    assert names(made.splits[0]) == ["scans/0.png", "scans/1.png"]
    assert made.notes[0] == "2 .png become JPEGs"
    assert len(made.notes) == 3


def test_the_first_label_is_said_or_follows_from_the_record(flowers: Path) -> None:
    """Inception's records count classes from 1, others from 0, unless the recipe says otherwise."""
    assert plan(flowers, "source: {folders: flowers}").classes.numbers == (1, 2, 3)
    assert plan(flowers, "source: {folders: flowers}\nrecord: {label: label}").classes.numbers == (
        0,
        1,
        2,
    )
    assert plan(flowers, "source: {folders: flowers}\nfirst_label: 5").classes.numbers == (5, 6, 7)


def test_classes_can_come_from_a_file(flowers: Path) -> None:
    """A class a line, its words after a tab;
    a class without a file keeps its number and is named.
    """
    (flowers / "classes.txt").write_text("tulip\ta tulip\nlily\nrose\ndaisy\n")
    made = plan(flowers, "source: {folders: flowers}\nclasses: classes.txt")
    assert made.classes.names == ("tulip", "lily", "rose", "daisy")
    assert made.classes.texts[0] == "a tulip"
    assert rows(made.splits[0])["rose/0.jpg"] == (3, "rose")
    assert made.notes == ("1 class has no file: lily",)


# splits -------------------------------------------------------------------------------------------


# printf NAME | sha256sum begins 3938 (0.22 of 2^64), da87 (0.85), acf1 (0.68), f731 (0.97), b83f
# (0.72)
GOLDEN = {
    "0.jpg": "train",
    "3.jpg": "validation",
    "4.jpg": "train",
    "13.jpg": "test",
    "é.jpg": "train",
}


def test_the_hash_of_a_split_never_changes() -> None:
    """Golden values: SHA-256 of the name, its first 8 bytes as a big-endian number over 2^64."""
    shares = Shares({"train": 0.8, "validation": 0.1, "test": 0.1})
    found = {name: shares.split_of(name) for name in GOLDEN}
    assert found == GOLDEN
    counts = [shares.split_of(str(number)) for number in range(10_000)]
    assert [counts.count(split) for split in ("train", "validation", "test")] == [8045, 948, 1007]


def test_a_split_can_be_a_manifest_a_folder_or_a_pattern(flowers: Path) -> None:
    """Each split has its own place; what is in none is left out and counted."""
    (flowers / "test.txt").write_text("rose/é.jpg\nrose/0.jpg\n")
    recipe = "source: {folders: flowers}\nsplits:\n"
    made = plan(flowers, recipe + "  train: {files: '[dt]*/*'}\n  test: {manifest: test.txt}\n")
    train, test = made.splits
    assert (len(train.catalog), names(test), test.shuffle) == (
        8,
        ["rose/é.jpg", "rose/0.jpg"],
        False,
    )
    assert made.notes == ("2 of 12 files are in no split, and are left out",)
    (split,) = plan(
        flowers, "source: {files: 'flowers/*/*'}\nsplits: {test: {folder: flowers/rose}}"
    ).splits
    assert len(split.catalog) == 4


# shards and settings ------------------------------------------------------------------------------


def test_shards_follow_from_a_size_or_a_number(flowers: Path) -> None:
    """A size gives as many as the bytes fill, at most one a file;
    numbers are taken, of all splits or of each.
    """
    total = sum(path.stat().st_size for path in existing(flowers / "flowers", "**/*.jpg"))
    recipe = "source: {folders: flowers}\n"
    assert plan(flowers, recipe + f"shard_size: {total // 3}").splits[0].shards in (3, 4)
    assert plan(flowers, recipe + "shard_size: 1").splits[0].shards == 12
    assert plan(flowers, recipe + "shard_size: 0.5MB").splits[0].shards == 1
    assert plan(flowers, recipe + "num_shards: 5").splits[0].shards == 5
    splits = "splits: {train: 0.5, test: 0.5}\nshards: {train: 3, test: 2}"
    assert [each.shards for each in plan(flowers, recipe + splits).splits] == [3, 2]


@pytest.mark.parametrize(
    "more",
    [
        "first_label: 3",
        "resize: 4",
        "record: {label: label}",
        "compression: gzip",
        "classes: [tulip, rose, daisy]",
    ],
)
def test_what_decides_bytes_decides_the_fingerprint(flowers: Path, more: str) -> None:
    """The same recipe has the same fingerprint; each setting that changes records changes it."""
    recipe = "source: {folders: flowers}\n"
    assert fingerprints(plan(flowers, recipe)) == fingerprints(
        plan(flowers, recipe + "seed: 3\nnum_shards: 2")
    )
    assert fingerprints(plan(flowers, recipe)) != fingerprints(plan(flowers, recipe + more))


# classic keys -------------------------------------------------------------------------------------


CLASSIC = """
manifest_file: manifest.txt
input_file_pattern: arrays/*.npy
output_file_prefix: tfrecords/data
num_shards: 4
min_val: -1
max_val: 1e0
"""


def test_a_manifest_is_made_reused_and_honoured(tmp_path: Path) -> None:
    """It is made shuffled with the seed, once the plan is approved;
    then it is taken as it stands, edits included.
    """
    (tmp_path / "arrays").mkdir()
    for number in range(30):
        np.save(tmp_path / "arrays" / f"{number:02}.npy", np.full((2, 3), number / 10))
    first = plan(tmp_path, CLASSIC)
    manifest = tmp_path / "manifest.txt"
    assert not manifest.exists()
    write_lists(first)
    listed = manifest.read_text().split()
    assert listed == names(first.splits[0])
    assert listed != sorted(listed)
    assert sorted(listed) == [f"arrays/{number:02}.npy" for number in range(30)]
    again = plan(tmp_path, CLASSIC)
    assert again.manifest is None
    assert fingerprints(again) == fingerprints(first)
    manifest.write_text("arrays/03.npy\narrays/01.npy\n")
    edited = plan(tmp_path, CLASSIC)
    assert names(edited.splits[0]) == ["arrays/03.npy", "arrays/01.npy"]
    assert (edited.splits[0].prefix, edited.splits[0].shards) == ("data", 4)
    assert not edited.splits[0].shuffle


def test_absolute_paths_work_as_they_stand(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A pattern that leads elsewhere makes a manifest of absolute names,
    which is understood again.
    """
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for number in range(3):
        np.save(elsewhere / f"{number}.npy", np.zeros(2))
    recipe = f"manifest_file: {tmp_path}/m.txt\ninput_file_pattern: {elsewhere}/*.npy"
    made = plan(tmp_path, recipe)
    write_lists(made)
    assert (tmp_path / "m.txt").read_text().splitlines()[0].startswith(os.fspath(elsewhere))
    assert names(plan(tmp_path, recipe).splits[0]) == names(made.splits[0])


def test_a_bare_name_that_occurs_twice_labels_neither(tmp_path: Path) -> None:
    """Labels by bare names: of two files of one name in two folders it is
    not clear which is meant.
    """
    for name in ("a/0.npy", "b/0.npy", "b/1.npy"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "set" / name, np.zeros(2))
    (tmp_path / "labels.txt").write_text("0.npy:1\n1.npy:2\n")
    recipe = "source: {files: 'set/*/*.npy'}\nlabels: "
    with pytest.raises(InputError, match=r"0\.npy \(line 1\) may be ") as refused:
        plan(tmp_path, f"{recipe}labels.txt\n")
    assert "set/a/0.npy, set/b/0.npy" in refused.value.what
    with pytest.raises(InputError, match=r"0\.npy \(line 1\)"):
        plan(tmp_path, f"{recipe}{{file: labels.txt, unlabelled: skip}}\n")
    only = plan(
        tmp_path,
        f"{recipe}{{file: labels.txt, unlabelled: skip, missing: ignore}}\nrecord: {{l: label}}\n",
    )
    assert names(only.splits[0]) == ["set/b/1.npy"]
    every_file = "set/a/0.npy:1\nset/b/0.npy:1\nset/b/1.npy:2\n"
    (tmp_path / "labels.txt").write_text(f"{every_file}0.npy:1\n")
    keys = "{file: labels.txt, missing: ignore}\nrecord: {l: label}\n"
    every = plan(tmp_path, f"{recipe}{keys}")
    assert len(names(every.splits[0])) == 3, (
        "no file lacks its label: the line that fits two says nothing new"
    )


@pytest.mark.parametrize(
    ("files", "keys"),
    [
        ({"a.csv": "path,label\n0.png,1.0\n1.png,0\n"}, "labels: a.csv\n"),
        (
            {"a.csv": "path,label\n0.png,1\n", "b.json": '{"1.png": 0}'},
            "labels: {file: {train: a.csv, test: b.json}}\n",
        ),
        (
            {"a.csv": "path,label\n0.png,0\n1.png,1\n2.png,1\n"},
            "labels: a.csv\nmask: {folder: masks, unmasked: skip}\n",
        ),
    ],
    ids=["a float among whole numbers", "CSV and JSON", "an image that is left out"],
)
def test_labels_that_were_no_fault(tmp_path: Path, files: dict[str, str], keys: str) -> None:
    """Numbers of several forms are classes; lines may name images that the recipe leaves out."""
    for number in range(3 if "mask" in keys else 2):
        save_image(tmp_path / f"i/{number}.png")
    for number in range(2):
        (tmp_path / "masks").mkdir(exist_ok=True)
        Image.new("L", (12, 8)).save(tmp_path / f"masks/{number}.png")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = plan(tmp_path, "source: {files: 'i/*'}\n" + keys)
    assert made.classes.numbers == (0, 1)
    assert sum(len(split.catalog) for split in made.splits) == 2
