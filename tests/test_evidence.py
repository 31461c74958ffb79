"""Labels by evidence: init takes the source that names the images and asks where two do;
its commands are run.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
from pathlib import Path

import pytest
from bounded import processor_time
from existing import existing
from made_folders import (
    CATS,
    FLAT,
    LETTERS,
    NONE,
    NUMBERS,
    SEVERAL,
    TWO,
    Made,
    _pictures,
    images,
    labelled,
    pack,
    rows,
    taken,
)
from made_sets import ENGINE
from running import command, command_here, prep_here
from test_folders import check, convert_as_proposed

from imagenet_prep import Layout, convert
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.recipes.class_names import read_names
from imagenet_prep.recipes.classes import labels_in_words
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init

IN_ROOMS = {f"room{number % 2}/{name}": None for number, name in enumerate(FLAT)}
SPECIES = {
    "0.jpg": "owl",
    "1.jpg": "owl",
    "2.jpg": "fox",
    "3.jpg": "fox",
    "4.jpg": "elk",
    "5.jpg": "elk",
}
COLOURS = {
    "0.jpg": "red",
    "1.jpg": "blue",
    "2.jpg": "red",
    "3.jpg": "blue",
    "4.jpg": "red",
    "5.jpg": "blue",
}
TRAIN, VAL = FLAT[:4], FLAT[4:]
BY_SPLIT = {
    "train": {name: LETTERS[name] for name in TRAIN},
    "validation": {name: LETTERS[name] for name in VAL},
}
HOT = "file,b,a\n" + "".join(
    f"{name},{int(label == 'b')},{int(label == 'a')}\n" for name, label in LETTERS.items()
)


LISTS = "file,label\n" + "".join(f'{name},"{list(own)}"\n' for name, own in SEVERAL.items())


def two_columns(first: str = "species", second: str = "colour") -> bytes:
    """A table whose two columns may both be the classes."""
    lines = [
        f"file,{first},{second}",
        *(f"{name},{SPECIES[name]},{COLOURS[name]}" for name in FLAT),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def with_column(name: str, line: str = "{n},{l}") -> dict[str, bytes | None]:
    """Flat images, and a table whose class column has this name."""
    return labelled("l.csv", rows(line, LETTERS, f"file,{name}"))


def by_split(line: str, ending: str = "csv", header: str = "file,label") -> dict[str, bytes | None]:
    """Flat images, and a table of each split."""
    files: dict[str, bytes | None] = dict(images(*FLAT))
    for split, names in (("train", TRAIN), ("val", VAL)):
        files[f"{split}.{ending}"] = rows(
            line, {name: LETTERS[name] for name in names}, header
        ).encode()
    return files


TAKEN: dict[str, Made] = {
    # the class column has another name
    **{
        f"a column {name}": taken(
            with_column(name), f"the column {name} gives 2 classes", train=LETTERS
        )
        for name in (
            "species",
            "breed",
            "target",
            "diagnosis",
            "Id",
            "dx",
            "category",
            "y",
            "animal",
        )
    },
    "numbers that repeat": taken(
        labelled("l.csv", rows("{n},{l}", NUMBERS, "file,category_id")), train=dict(NUMBERS)
    ),
    "ids, sizes, dates and addresses are no classes": taken(
        labelled(
            "l.csv",
            rows(
                "{n},7,640,2021-05-01,http://a/{n},{l}",
                LETTERS,
                "file,patient_id,width,date,url,finding",
            ),
        ),
        "the column finding gives 2 classes",
        train=LETTERS,
    ),
    "whole numbers with a point": taken(
        labelled("l.csv", rows("{n},{l}.0", NUMBERS, "file,label")), train=dict(NUMBERS)
    ),
    "two columns that say the same": taken(
        labelled("l.csv", rows("{n},{l},the {l}", LETTERS, "file,species,name")), train=LETTERS
    ),
    # one-hot columns
    "one-hot columns": taken(
        labelled("l.csv", HOT), "the columns b, a give 2 classes", "b is 1, a is 2", train=LETTERS
    ),
    "one-hot columns of true and false": taken(
        labelled("l.csv", HOT.replace(",1", ",True").replace(",0", ",False")), train=LETTERS
    ),
    # other forms
    "JSON by path": taken(labelled("l.json", json.dumps(LETTERS)), train=LETTERS),
    "JSON by class": taken(
        labelled(
            "l.json", json.dumps({key: [n for n in FLAT if LETTERS[n] == key] for key in "ab"})
        ),
        train=LETTERS,
    ),
    "JSON objects": taken(
        labelled(
            "l.json",
            json.dumps([{"filename": name, "label": key} for name, key in LETTERS.items()]),
        ),
        train=LETTERS,
    ),
    "a count before the lines": taken(
        labelled("l.txt", rows("{n}  {l}", LETTERS, "6\nfile category")), train=LETTERS
    ),
    "spaces between columns": taken(
        labelled("l.txt", rows("{n} 8.5 {l}", LETTERS, "file size species")), train=LETTERS
    ),
    "lists in cells": taken(labelled("l.csv", LISTS), train=SEVERAL),
    "other endings": taken(
        labelled("l.csv", rows("{s}.dcm,{l}", LETTERS, "file,label")),
        "0.dcm is 0.jpg",
        train=LETTERS,
    ),
    "no endings": taken(
        labelled("l.csv", rows("{s},{l}", LETTERS, "id,label")),
        "it has names with no ending: 0 is 0.jpg",
        train=LETTERS,
    ),
    "empty columns of a spreadsheet": taken(
        labelled("l.csv", rows("{n},{l},,", LETTERS, "file,label,,")), train=LETTERS
    ),
    "a file without a header of boxes": taken(
        labelled("l.csv", rows("{n},1,2,8,9,{l}", LETTERS)),
        "6 boxes of 2 classes: a, b",
        train=dict.fromkeys(LETTERS),
    ),
    # splits
    "a table of each split": taken(
        by_split("{n},{l}"), "splits: train, validation, a file of each", **BY_SPLIT
    ),
    "a JSON of each split": taken(
        {
            **images(*FLAT),
            "train.json": json.dumps({name: LETTERS[name] for name in TRAIN}).encode(),
            "val.json": json.dumps({name: LETTERS[name] for name in VAL}).encode(),
        },
        **BY_SPLIT,
    ),
    "a column of splits": taken(
        labelled(
            "l.csv",
            "file,label,split\n"
            + "".join(f"{n},{LETTERS[n]},{'val' if n in VAL else 'train'}\n" for n in FLAT),
        ),
        "by its column `split`",
        **BY_SPLIT,
    ),
    "a column of splits in other words": taken(
        labelled(
            "l.csv",
            "file,label,set\n"
            + "".join(f"{n},{LETTERS[n]},{'VLD' if n in VAL else 'TRN'}\n" for n in FLAT),
        ),
        "TRN is train, VLD is validation",
        **BY_SPLIT,
    ),
    "a column is_valid": taken(
        labelled(
            "l.csv",
            "file,label,is_valid\n" + "".join(f"{n},{LETTERS[n]},{n in VAL}\n" for n in FLAT),
        ),
        "True is validation",
        **BY_SPLIT,
    ),
    # several sources that agree, or don't count
    "images in rooms, and folders agree": taken(
        {**images(*CATS), "l.csv": rows("{n},{l}", CATS, "file,species").encode()}, train=TWO
    ),
    "a table of a few images": taken(
        {**images(*CATS), "l.csv": b"file,species\ncat/c1.jpg,lynx\n"},
        "l.csv is not used: it names 1 of 4 images, and has no class",
        train=TWO,
    ),
    "an example of a submission": taken(
        {
            **with_column("breed"),
            "test/9.jpg": None,
            "sample_submission.csv": b"file,breed\n9.jpg,a\n",
        },
        "1 image for a test is left out, without a label: test/9.jpg",
        train=LETTERS,
    ),
    "ids in train and test": taken(
        {
            **{f"{split}/{name}": None for split in ("train", "test") for name in FLAT},
            "trainLabels.csv": rows("{s},{l}", LETTERS, "id,label").encode(),
        },
        "6 images for a test are left out",
        structure="with-labels",
        train=LETTERS,
    ),
    "a tar beside its table": taken(
        {
            "images.tar": pack(_pictures(*(f"images/{name}" for name in FLAT))),
            "l.csv": rows("{n},{l}", LETTERS, "file,label").encode(),
        },
        train=LETTERS,
    ),
    # names of ids
    "names of numbers in another column": taken(
        labelled("l.csv", rows("{n},{l},no {l}", NUMBERS, "file,label,class_name")),
        "no 3 is 3, no 4 is 4",
        train=dict(NUMBERS),
    ),
    "names of numbers in a file": taken(
        labelled("l.csv", rows("{n},{l}", NUMBERS, "file,label"))
        | {"map.json": b'{"3": "elk", "4": "fox"}'},
        "map.json names all of 2 classes",
        "elk is 3, fox is 4",
        train=dict(NUMBERS),
    ),
    "facts of cameras are no classes": taken(
        labelled("l.csv", rows("{n},2.{s},1/{s}0", LETTERS, "file,aperture,shutter")),
        "no class: ",
        train=NONE,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_the_source_of_labels_is_taken(tmp_path: Path, name: str) -> None:
    """Each image has the class and the split that a person reads, by a reader of its own."""
    made = TAKEN[name]
    made.save(tmp_path / "data")
    layout = convert_as_proposed(made, tmp_path)
    check(layout.output_dir, made)


# questions: the refusal, the command that it names, and the result --------------------------------

PAIRS = [f"{side}/{number}.jpg" for side in ("before", "after") for number in range(4)]
TWO_IMAGES = rows(
    "before/{n},after/{n},{l}", {f"{n}.jpg": "ab"[n % 2] for n in range(4)}, "first,second,label"
)
SORTS = dict(zip(FLAT, ("x", "y", "z", "x", "y", "x"), strict=True))
HOT_AND_SORT = "file,a,b,sort\n" + "".join(
    f"{name},{int(label == 'a')},{int(label == 'b')},{SORTS[name]}\n"
    for name, label in LETTERS.items()
)
STRIPPED = "file,label\n" + "".join(
    f"s3://bucket/v{n // 3}/{n}.jpg,{LETTERS[f'{n}.jpg']}\n" for n in range(6)
)

QUESTIONS: dict[str, tuple[dict[str, bytes | None], str, Made]] = {
    "--label: two columns": (
        labelled("l.csv", two_columns()),
        "--label colour",
        taken({}, train=COLOURS),
    ),
    "--label: another of two": (
        labelled("l.csv", two_columns()),
        "--label species",
        taken({}, train=SPECIES),
    ),
    "--label: folders are rooms": (
        {**IN_ROOMS, "l.csv": rows("{n},{l}", SPECIES, "file,species").encode()},
        "--label species",
        taken({}, train=SPECIES),
    ),
    "--label: numbers under a name that says nothing": (
        labelled("l.csv", rows("{n},{l}", NUMBERS, "file,beauty")),
        "--label beauty",
        taken({}, train=dict(NUMBERS)),
    ),
    "--label: one-hot columns or a class": (
        labelled("l.csv", HOT_AND_SORT),
        "--label a,b",
        taken({}, train=LETTERS),
    ),
    "--label: two tables": (
        labelled("l.csv", rows("{n},{l}", LETTERS, "file,label"))
        | {"m.csv": rows("{n},{l}", SPECIES, "file,label").encode()},
        "--label m.csv:label",
        taken({}, train=SPECIES),
    ),
    "--image: two columns of images": (
        {**images(*PAIRS), "l.csv": TWO_IMAGES.encode()},
        "--image second",
        taken({}, train={f"{n}.jpg": "ab"[n % 2] for n in range(4)}),
    ),
    "--strip: paths of another machine": (
        labelled(
            "l.csv",
            STRIPPED.replace("v0", "set").replace("v1", "set") + "s3://bucket/other/9.jpg,a\n",
        ),
        "--strip s3://bucket/set/",
        taken({}, train=LETTERS),
    ),
    "--split: numbers in a column": (
        labelled(
            "l.csv",
            "file,label,split\n" + "".join(f"{n},{LETTERS[n]},{int(n in VAL)}\n" for n in FLAT),
        ),
        "--split train=0 --split test=1",
        taken({}, train=BY_SPLIT["train"], test=BY_SPLIT["validation"]),
    ),
    "a table of some images": (
        {**with_column("species"), "6.jpg": None},
        "--as with-labels",
        taken({}, train=LETTERS),
    ),
    "a table of more images": (
        labelled("l.csv", rows("{n},{l}", {**LETTERS, "7.jpg": "a"}, "file,species")),
        "--as with-labels",
        taken({}, train=LETTERS),
    ),
    "--label: a table of the folders": (
        {
            **images(*(f"p{number}/{name}" for number, name in enumerate(FLAT))),
            "patients.csv": (
                "patient,diagnosis\n"
                + "".join(f"p{n},{SPECIES[name]}\n" for n, name in enumerate(FLAT))
            ).encode(),
        },
        "--label diagnosis",
        taken({}, train=SPECIES),
    ),
    "folders called crosswise": (
        {
            **images(*CATS),
            "l.csv": b"file,label\ncat/c1.jpg,dog\ncat/c2.jpg,dog\ndog/d1.jpg,cat\ndog/d2.png,cat\n",
        },
        "--as class-folders",
        taken({}, train=TWO),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_names_the_command_that_answers_it(tmp_path: Path, name: str) -> None:
    """init exits with a line for each way: how many images and classes,
    then the command, which works as it stands.
    """
    files, option, made = QUESTIONS[name]
    Made(files).save(tmp_path / "data")
    refused = prep_here("init", "data", cwd=tmp_path)
    assert refused.returncode == 4, refused.stdout
    assert not (tmp_path / "data.yaml").exists()
    lines = [
        line.strip()
        for line in refused.stderr.splitlines()
        if " images" in line and f"{option}" in line
    ]
    assert lines, refused.stderr
    counts, _, call = lines[-1].partition(": imagenet-prep ")
    assert counts.split(" of ")[0].isdigit()
    command_here(*shlex.split(call), cwd=tmp_path)
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "data.yaml"))
    check(layout.output_dir, made)


def test_the_choice_of_a_start_counts_images(tmp_path: Path) -> None:
    """The table has more lines than the folder has images: the choice counts images."""
    lines = STRIPPED.replace("v1", "v0") + "s3://bucket/other/9.jpg,a\n"
    lines += "".join(f"s3://bucket/v0/x{number}.jpg,a\n" for number in range(4))
    Made(labelled("l.csv", lines)).save(tmp_path / "data")
    refused = command_here("init", "data", cwd=tmp_path, status=4)
    counts = "  6 of 6 images, with s3://bucket/v0/ removed from their paths: imagenet-prep "
    call = refused.stderr.partition(counts)[2].partition("\n")[0]
    assert "--strip s3://bucket/v0/" in call, refused.stderr
    command_here(*shlex.split(call), cwd=tmp_path)


def test_names_are_suggested_and_taken(tmp_path: Path) -> None:
    """--names: a list of more names than classes is suggested;
    the command that says so names the classes.
    """
    files = labelled("l.csv", rows("{n},{l}", NUMBERS, "file,label"))
    Made({**files, "classes.txt": b"ant\nbee\ncat\ndog\nelk\nfox\n"}).save(tmp_path / "data")
    said = command_here("init", "data", cwd=tmp_path).stdout
    line = next(line for line in said.splitlines() if "--names" in line)
    command_here(*shlex.split(line.partition("imagenet-prep ")[2]), cwd=tmp_path)
    assert "class_names: data/classes.txt" in (tmp_path / "data-named.yaml").read_text()
    made = load(tmp_path / "data-named.yaml", None, ENGINE)
    assert (made.classes.names, made.classes.numbers) == (("dog", "elk"), (3, 4))


def test_each_option_is_written_into_a_key_of_the_recipe(tmp_path: Path) -> None:
    """--label, --image, --names and --strip become labels.label,
    labels.path, class_names and strip.
    """
    lines = "picture,a,kind,size\n" + "".join(
        f"x/{n},{n},{key},{8 + key}\n" for n, key in NUMBERS.items()
    )
    Made({**labelled("l.csv", lines), "n.csv": b"id,name\n3,elk\n4,fox\n"}).save(tmp_path / "data")
    options = ("--label", "kind", "--image", "picture", "--strip", "x/", "--names", "data/n.csv")
    command_here("init", "data", *options, cwd=tmp_path)
    text = (tmp_path / "data.yaml").read_text()
    for part in (
        "labels: {file: data/l.csv, path: picture, label: kind}",
        "strip: x/",
        "class_names: data/n.csv",
    ):
        assert part in text
    assert load(tmp_path / "data.yaml", None, ENGINE).classes.names == ("elk", "fox")


# numbers are declared -----------------------------------------------------------------------------


def test_classes_are_declared_once(tmp_path: Path) -> None:
    """The recipe has the names in order and the first label:
    a split without the first class keeps its numbers.
    """
    Made(images(*CATS)).save(tmp_path / "data")
    text = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).text
    assert (
        "classes: [cat, dog]   # in the order of their labels, for all splits\nfirst_label: 1   #"
        in text
    )
    for path in existing(tmp_path / "data/cat", "*"):
        path.unlink()
    made = load(tmp_path / "r.yaml", None, ENGINE)
    assert dict(zip(made.classes.names, made.classes.numbers, strict=True)) == {"cat": 1, "dog": 2}
    assert set(made.splits[0].catalog.labels.tolist()) == {2}


def test_a_file_that_numbers_the_classes_gives_their_order(tmp_path: Path) -> None:
    """Keras' class_indices.json says dog is 0 and cat is 1: the recipe has them in this order."""
    Made({**images(*CATS), "class_indices.json": b'{"dog": 0, "cat": 1}'}).save(tmp_path / "data")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert "classes: [dog, cat]" in summary.text
    assert "class_indices.json numbers the classes" in summary.evidence
    assert not summary.passed
    assert load(tmp_path / "r.yaml", None, ENGINE).classes.names == ("dog", "cat")


@pytest.mark.parametrize(
    "files",
    [
        {"wnids.txt": b"dog\ncat\n"},
        {"classes.txt": b"dog\ncat\nape\nbee\ncow\n"},
        {"classes.txt": b"dog\ncat\n", "labels.txt": b"cat\nape\ndog\n"},
        {"classes.txt": b"ant\nape\nbee\ncat\ncow\ndog\n"},
    ],
    ids=["no file of numbers", "mostly other classes", "two orders", "the same order"],
)
def test_an_order_that_is_not_sure_is_named(tmp_path: Path, files: dict[str, bytes]) -> None:
    """The classes stay in the order of their names, and init says which file has another one."""
    Made({**images(*CATS), **files}).save(tmp_path / "data")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert "classes: [cat, dog]" in summary.text
    for name, content in files.items():
        difference = "another order of the classes"
        if content.index(b"cat") < content.index(b"dog"):
            difference = "other classes too"
        start = f"{name} has {difference}, not used: "
        assert any(note.startswith(start) for note in summary.evidence)


def test_a_file_with_the_same_order_is_no_other_one(tmp_path: Path) -> None:
    """Of two files, only the one with another order is named."""
    files = {"classes.txt": b"cat\ndog\n", "labels.names": b"dog\ncat\n"}
    Made({**images(*CATS), **files}).save(tmp_path / "data")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    orders = [note for note in summary.evidence if "not used" in note]
    assert orders == ["labels.names has another order of the classes, not used: dog, cat"]


def test_many_classes_have_a_file_of_their_own(tmp_path: Path) -> None:
    """201 names are in NAME-classes.txt beside the recipe,
    which is not written over another file.
    """
    Made(images(*(f"c{number:03}/{number}.png" for number in range(201)))).save(tmp_path / "data")
    (tmp_path / "r-classes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"r-classes\.txt .*exists"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert not (tmp_path / "r.yaml").exists()
    (tmp_path / "r-classes.txt").unlink()
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert "classes: r-classes.txt" in summary.text
    assert summary.class_list == tmp_path / "r-classes.txt"
    assert summary.class_list.read_text().splitlines()[::200] == ["c000", "c200"]
    assert load(tmp_path / "r.yaml", None, ENGINE).classes.names[200] == "c200"


# what is not taken is named, in few lines ---------------------------------------------------------


def test_files_without_an_ending_are_one_line(tmp_path: Path) -> None:
    """3,000 files without an ending beside the images cost little time,
    and are one line with their count.
    """
    Made(images(*CATS)).save(tmp_path / "data")
    (tmp_path / "data/notes").mkdir()
    for number in range(3000):
        (tmp_path / f"data/notes/n{number:05}_{number}").write_bytes(b"a note")
    with processor_time(2):
        summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    lines = [line for line in summary.passed if "notes/" in line]
    assert len(lines) == 1
    assert lines[0].startswith("3,000 files without an ending, not read: notes/")


def test_a_question_of_columns_names_the_table(tmp_path: Path) -> None:
    """Two columns may be the class: the question says so,
    and that its counts are of images with a class.
    """
    Made(labelled("l.csv", two_columns())).save(tmp_path / "data")
    with pytest.raises(InputError) as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert caught.value.detail == "expected one way (with-labels: a column of l.csv is the class)"
    assert caught.value.hint == "choose one; each line says what it reads:"


def test_one_column_is_no_columns(tmp_path: Path) -> None:
    """The comment in the recipe counts the columns that become features."""
    Made(labelled("l.csv", two_columns())).save(tmp_path / "data")
    summary = init(
        tmp_path / "data", tmp_path / "r.yaml", ENGINE, options=InitOptions(label="species")
    )
    assert "# 6 paths, with the column colour\n" in summary.text


def test_a_function_is_named_for_a_format_that_nothing_reads(tmp_path: Path) -> None:
    """A folder without images, arrays or archives says how a recipe can read it;
    an empty one does not.
    """
    Made({"scan.dat": b"VOL1"}).save(tmp_path / "data")
    with pytest.raises(InputError) as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert caught.value.hint.startswith('write source: {python: "module:function"} in a recipe: ')
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        init(tmp_path / "empty", tmp_path / "r.yaml", ENGINE)
    assert caught.value.hint == ""


def test_labels_that_are_numbers_are_said_once() -> None:
    """A class that is called as its label has one number; others have their name before it."""
    assert labels_in_words("0123456789", range(10)) == "0, 1, 2, ... 9"
    assert labels_in_words(("cat", "dog"), (1, 2)) == "cat is 1, dog is 2"


def test_a_question_says_what_each_way_leaves_out(tmp_path: Path) -> None:
    """Two ways to read a folder, and an archive that neither reads: the question names it."""
    files = {
        **IN_ROOMS,
        "l.csv": rows("{n},{l}", SPECIES, "file,species").encode(),
        "more.zip": b"PK\3\4",
    }
    Made(files).save(tmp_path / "data")
    with pytest.raises(InputError) as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert "class-folders leaves something out (1 .zip that would not " in caught.value.hint
    assert "more.zip)" in caught.value.hint
    assert len(caught.value.choices) == 2


def test_splits_of_a_table_without_labels_can_be_kept(tmp_path: Path) -> None:
    """No table has labels where folders are the classes: a table of all images divides them; if
    it lacks one, the hint names files of paths, which help.
    """
    paths = [f"{name}/{number}.jpg" for name in ("cat", "dog") for number in range(4)]
    splits = {path: "train" if path < f"{path[:4]}2" else "val" for path in paths}
    lines = "".join(f"{path},{split}\n" for path, split in splits.items())
    data = tmp_path / "data"
    Made({**images(*paths), "t.csv": f"file,split\n{lines}".encode()}).save(data)
    divided = init(data, tmp_path / "divided.yaml", ENGINE)
    assert divided.found.endswith("in train and validation")
    assert "splits by lists: t.csv" in divided.evidence
    for split, name in (("train", "train"), ("validation", "val")):
        names = (tmp_path / f"divided-{split}.txt").read_text().split()
        assert names == [path for path, own_split in splits.items() if own_split == name]
    (data / "t.csv").write_text(f"file,split\n{lines}".replace("dog/3.jpg,val\n", ""))
    with pytest.raises(InputError) as caught:
        init(data, tmp_path / "r.yaml", ENGINE)
    assert "list the images of each split in a file, such as train.txt" in str(caught.value.hint)
    for split in ("train", "val"):
        names = [path for path, own_split in splits.items() if own_split == split]
        (data / f"{split}.txt").write_text("".join(f"{name}\n" for name in names))
    assert init(data, tmp_path / "r.yaml", ENGINE)
    assert "train.txt" in (tmp_path / "r.yaml").read_text()


def test_splits_of_a_table_next_to_annotations_can_be_kept(tmp_path: Path) -> None:
    """The boxes are no table that could have a column of splits, and init reads no lists next to
    them: the hint has the line that the recipe takes.
    """
    data, recipe = tmp_path / "data", tmp_path / "r.yaml"
    numbers = range(1, 5)
    names = [f"{number}.jpg" for number in numbers]
    boxes = {
        "images": [{"id": n, "file_name": f"{n}.jpg", "width": 16, "height": 16} for n in numbers],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 1, "bbox": [1, 1, 8, 8]} for n in numbers
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    lines = "".join(f"{name},{'train' if name < '4' else 'val'}\n" for name in names)
    files = {"boxes.json": json.dumps(boxes).encode(), "t.csv": f"file,split\n{lines}".encode()}
    Made({**images(*(f"images/{name}" for name in names)), **files}).save(data)
    with pytest.raises(InputError) as caught:
        init(data, recipe, ENGINE)
    lead, _, line = caught.value.hint.partition("add to the recipe: ")
    assert lead.startswith("first make the recipe with the command below")
    assert "in train.txt, validation.txt next to the recipe" in lead
    line = line.partition("; to leave out")[0]
    assert line == (
        "splits: {train: {manifest: train.txt}, validation: {manifest: validation.txt}}"
    )
    (tmp_path / "train.txt").write_text("data/images/1.jpg\ndata/images/2.jpg\ndata/images/3.jpg\n")
    (tmp_path / "validation.txt").write_text("data/images/4.jpg\n")
    init(data, recipe, ENGINE, structure="coco")
    recipe.write_text(f"{recipe.read_text()}\n{line}\n")
    splits = load(recipe, None, ENGINE).splits
    assert {split.name: len(split.catalog) for split in splits} == {"train": 3, "validation": 1}


def test_a_copy_of_imagenet_is_named(tmp_path: Path) -> None:
    """Its thousand class folders are taken, and the command that reads it
    without a recipe is named.
    """
    from imagenet_prep.ilsvrc2012.facts import synsets

    names = [f"{wnid}/{wnid}_1.JPEG" for wnid in synsets()]
    Made(images(*(f"train/{name}" for name in names))).save(tmp_path / "data")
    Made(images(*names)).save(tmp_path / "other")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    lines = [
        line
        for line in summary.evidence
        if line.endswith(f"convert data-shards --raw {tmp_path / 'data'} --allow-incomplete")
    ]
    assert lines[0].startswith(
        "these are ImageNet's classes; convert reads such a copy, and any boxes in it, without a "
        "recipe (this one has 1,000 of 1,331,167 images): "
    )
    # convert reads class folders below train only
    evidence = init(tmp_path / "other", tmp_path / "o.yaml", ENGINE).evidence
    assert not any("ImageNet" in line for line in evidence)


@pytest.mark.parametrize("data", [".", "t.csv"])
def test_the_command_for_a_copy_of_imagenet_is_one_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    """The current folder has a name of its own in the command;
    a table is no copy, and gets no such command.
    """
    from imagenet_prep.ilsvrc2012.facts import synsets

    paths = {f"train/{wnid}/{wnid}_1.JPEG": wnid for wnid in synsets()}
    table = "file_name,label\n" + "".join(f"{path},{wnid}\n" for path, wnid in paths.items())
    Made(images(*paths) | ({} if data == "." else {data: table.encode()})).save(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    lines = init(Path(data), tmp_path / "r.yaml", ENGINE).evidence
    commands = [
        line.rpartition(": ")[2]
        for line in lines
        if line.startswith("these are ImageNet's classes")
    ]
    proposed = "imagenet-prep convert data-shards --raw . --allow-incomplete"
    assert commands == ([proposed] if data == "." else [])
    for call in commands:
        command_here(*shlex.split(call)[1:], "--dry-run", cwd=tmp_path / "data")


def test_a_recipe_that_can_not_be_written_leaves_no_list_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the names of classes is removed again,
    so that the same command can run once more.
    """
    names = [f"c{number:03}" for number in range(201)]
    Made(images(*(f"{name}/1.jpg" for name in names))).save(tmp_path / "data")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("imagenet_prep.stages.init.save_bytes", full)
        with pytest.raises(PrepError):
            init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    assert [path.name for path in list(tmp_path.iterdir())] == ["data"]
    assert (
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).class_list
        == tmp_path / "r-classes.txt"
    )


# files of names and paths -------------------------------------------------------------------------

NAMES = {
    "by id": ("n.json", '{"0": "cat", "1": "dog"}', ("0", "1")),
    "by name": ("n.json", '{"cat": 0, "dog": 1}', ("0", "1")),
    "Keras' index": ("n.json", '{"0": ["n01", "cat"], "1": ["n02", "dog"]}', ("0", "1")),
    "a list": ("n.json", '["cat", "dog"]', ("0", "1")),
    "COCO's categories": (
        "n.json",
        '{"categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]}',
        ("1", "2"),
    ),
    "a model's card": ("n.json", '{"id2label": {"0": "cat", "1": "dog"}}', ("0", "1")),
    "lines": ("n.txt", "cat\ndog\n", ("0", "1")),
    "lines, counted from 1": ("n.txt", "cat\ndog\n", ("1", "2")),
    "synset_words.txt": ("n.txt", "n02123045 cat\nn02084071 dog\n", ("n02123045", "n02084071")),
    "synsets of numbers": ("n.txt", "n02123045 cat\nn02084071 dog\n", ("0", "1")),
    "names before ids": ("n.txt", "/a/cat 0\n/a/dog 1\n", ("0", "1")),
    "a CSV": ("n.csv", "ClassId,Name\n0,cat\n1,dog\n", ("0", "1")),
    "a CSV of two columns": ("n.csv", "0,cat\n1,dog\n", ("0", "1")),
    "a label map": (
        "n.pbtxt",
        "item { id: 1 name: 'cat' }\nitem {\n  id: 2\n  name: \"dog\"\n}",
        ("1", "2"),
    ),
    "words as ids in a CSV": ("n.csv", "c,cat\nd,dog\n", ("c", "d")),
    "words as ids below a header": ("n.csv", "code,meaning\nc,cat\nd,dog\n", ("c", "d")),
    "names before ids below a header": ("n.csv", "animal,no\ncat,0\ndog,1\n", ("0", "1")),
    "WordNet's ids below a header": (
        "n.txt",
        "wnid\tanimal\nn02123045\tcat\nn02084071\tdog\n",
        ("0", "1"),
    ),
    "padded ids": ("n.json", '{"1": "cat", "2": "dog"}', ("001", "002")),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_ids_are_read(name: str) -> None:
    """JSON, CSV, lines and label maps give each id its name."""
    where, content, ids = NAMES[name]
    names = read_names(Path(where), content.encode()).names_of(ids)
    assert [names[key].rpartition("/")[2] for key in ids] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("where", "content"),
    [
        ("n.csv", "c,cat\nd,dog\ne,eel\n"),
        ("n.txt", "code\tanimal\nc\tcat\nd\tdog\n"),
        ("n.txt", "name\ncat\ndog\n"),
        ("n.txt", "animal no\ncat 0\ndog 1\n"),
    ],
)
def test_a_line_that_may_be_a_heading_is_no_name_of_class_0(where: str, content: str) -> None:
    """Nor is it left out: where numbers follow from the order of lines, it would move them all."""
    with pytest.raises(InputError, match=r"n\.(csv|txt)"):
        read_names(Path(where), content.encode()).names_of_all(("0", "1"), None, where)


@pytest.mark.parametrize(
    ("where", "content", "names"),
    [
        ("n.txt", "id name\n0 tench\n1 crane\n2 crane\n", ["tench", "crane", "crane"]),
        ("n.txt", "name: id\ncrane: 0\ncrane: 1\ntench: 2\n", ["crane", "crane", "tench"]),
        ("n.csv", "0,zero\n1,1\n2,2\n", ["zero", "1", "2"]),
        ("n.txt", "zero 0\n1 1\n2 2\n", ["zero", "1", "2"]),
        ("n.txt", "class none\nclass 1\nclass 2\n", ["class none", "class 1", "class 2"]),
    ],
)
def test_a_heading_is_told_from_the_first_class(where: str, content: str, names: list[str]) -> None:
    """Also where a name occurs twice, and where names are numbers: no name moves to another id."""
    ids = ("0", "1", "2")
    found = read_names(Path(where), content.encode()).names_of_all(ids, None, where)
    assert [found[key] for key in ids] == names


def test_names_alone_are_no_names_of_words() -> None:
    """The hint tells a whole line, as the file has no id to put a tab behind."""
    with pytest.raises(InputError) as caught:
        read_names(Path("n.txt"), b"cat\ndog\n").names_of_all(("n01440764", "n01443537"), None, "n")
    line = "its id (such as n01440764), a tab, its name"
    assert caught.value.hint == f"write a line for each class: {line}"


def test_ids_of_thousands_of_digits_are_no_numbers(tmp_path: Path) -> None:
    """Python refuses to read them as numbers."""
    many_digits = "9" * 4301
    names = read_names(Path("n.txt"), b"cat\ndog\n").names_of((many_digits, "1"))
    assert names == {"1": "dog"}
    listed_names = f"{many_digits} dog\n1 cat\n".encode()
    Made({**images(*CATS), "classes.txt": listed_names}).save(tmp_path / "data")
    assert "classes: [cat, dog]" in init(tmp_path / "data", tmp_path / "r.yaml", ENGINE).text


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("where", "sign"), [("n.csv", ","), ("n.csv", ";"), ("n.tsv", "\t")])
@pytest.mark.parametrize("heading", ["id{}name\n", ""])
def test_a_line_break_in_a_quoted_name_stays(
    where: str, sign: str, heading: str, line_end: str
) -> None:
    """It ends no row, and the words around it are not joined."""
    content = f'{heading}0{{}}"a\nb"\n\n1{{}}"c\u2028d"\n'.replace("{}", sign)
    content = content.replace("\n", line_end)
    names = read_names(Path(where), content.encode()).by_id
    assert names == {"0": f"a{line_end}b", "1": "c\u2028d"}


def test_null_is_no_name_of_a_class() -> None:
    """A class whose name is null has none: it is not called None."""
    content = b'[{"id": 1, "name": "cat"}, {"id": 2, "name": null}]'
    assert read_names(Path("n.json"), content).by_id == {"1": "cat"}


@pytest.mark.parametrize(
    ("ids", "first_label"), [(("1", "2"), 1), (("0", "1"), 0), (("1", "3"), 1), (("2", "3"), 1)]
)
def test_names_in_order_count_from_the_first_label(
    tmp_path: Path, ids: tuple[str, ...], first_label: int
) -> None:
    """As the recipe declares it, in init and in convert, though the last classes,
    or the first ones, have no image.
    """
    names = ("ant", "bee", "cat", "dog")
    files = images(*(f"{name}/{number}{name}.jpg" for name in ids for number in range(2)))
    Made(files).save(tmp_path / "data")
    (tmp_path / "names.txt").write_text("\n".join(names))
    asked = InitOptions(names=tmp_path / "names.txt")
    summary = init(tmp_path / "data", tmp_path / "r.yaml", ENGINE, options=asked)
    declared = re.sub("first_label: .", f"first_label: {first_label}", summary.text)
    (tmp_path / "r.yaml").write_text(declared)
    right = [names[int(name) - first_label] for name in ids]
    assert list(load(tmp_path / "r.yaml", None, ENGINE).classes.names) == right
    if declared == summary.text:
        assert list(summary.classes) == right


@pytest.mark.parametrize("names", [b'{"cat": "feline"}', b'{"cat": "feline", "dog": ""}'])
def test_names_that_lack_a_class_are_refused(tmp_path: Path, names: bytes) -> None:
    """init and a recipe name the id without a name, or with an empty one."""
    Made({**images(*CATS), "n.json": names}).save(tmp_path / "data")
    with pytest.raises(InputError, match=r"no name found in .* for 1 of 2 classes: dog"):
        init(
            tmp_path / "data",
            tmp_path / "r.yaml",
            ENGINE,
            options=InitOptions(names=tmp_path / "data/n.json"),
        )
    (tmp_path / "r.yaml").write_text("source: {folders: data}\nclass_names: {cat: feline}\n")
    with pytest.raises(InputError, match=r"r\.yaml, line 2 .*\bdog"):
        load(tmp_path / "r.yaml", None, ENGINE)


def test_two_classes_of_one_name_keep_their_ids(tmp_path: Path) -> None:
    """ImageNet has two cranes; both stay."""
    Made(images(*CATS)).save(tmp_path / "data")
    (tmp_path / "r.yaml").write_text(
        "source: {folders: data}\nclass_names: {cat: crane, dog: crane}\n"
    )
    made = load(tmp_path / "r.yaml", None, ENGINE)
    assert made.classes.names == ("crane (cat)", "crane (dog)")
    assert made.classes.texts == ("crane", "crane")


PATHS = {
    "a folder with the name of the table": (
        ["1.jpg"],
        ["train/1.jpg", "test/1.jpg"],
        "train.csv",
        [0],
    ),
    "its first word": (["1"], ["train/1.jpg", "test/1.jpg"], "trainLabels.csv", [0]),
    "the end of one path alone": (
        ["a/1"],
        ["images/a/1.jpg", "images/b/1.jpg"],
        "meta/train.json",
        [0],
    ),
    "an ending from before a conversion": (["1.dcm"], ["1.png"], "l.csv", [0]),
    "an ending that two files have": (["1.dcm"], ["1.png", "1.jpg"], "l.csv", [-1]),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_are_matched(name: str) -> None:
    """The file that a path means, where folders and endings differ; none, if it may be two."""
    paths, names, table, found = PATHS[name]
    assert match(paths, names, Path("/d"), Path("/d") / table) == found


def test_a_column_of_labels_in_parquet_is_chosen(tmp_path: Path) -> None:
    """Two columns of labels are a question, whose command writes the column into the source."""
    from made_folders import parquet

    Made({"a.parquet": parquet("1.jpg", "2.jpg", label="fine", coarse=[0, 1])}).save(
        tmp_path / "data"
    )
    lines = prep_here("init", "data", cwd=tmp_path).stderr.splitlines()
    call = next(line for line in lines if line.endswith("--label coarse")).partition(
        "imagenet-prep "
    )[2]
    command_here(*shlex.split(call), cwd=tmp_path)
    assert "label: coarse" in (tmp_path / "data.yaml").read_text()


def test_the_help_of_init_is_short() -> None:
    """At most 40 lines of 80 columns."""
    lines = command("init", "--help", COLUMNS="80").stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            InitOptions(label="Species"),
            "--label names the column Species, and init finds no such column for the images\nexpected one of",
        ),
        (
            InitOptions(label="l.csv:nope"),
            "--label names the column nope, and init finds no such column",
        ),
        (
            InitOptions(image="nope"),
            "--image names the column nope, and init finds no such column",
        ),
    ],
)
def test_a_column_that_is_not_there_is_refused(
    tmp_path: Path, asked: InitOptions, said: str
) -> None:
    """Never silently: the folders would become the classes."""
    Made(labelled("l.csv", two_columns())).save(tmp_path / "data")
    with pytest.raises(UsageError, match=re.escape(said)):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE, options=asked)
    assert not (tmp_path / "r.yaml").exists()


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (
            ("n00000001 1 kit fox", "n00000002 2 siamang"),
            {"n00000001": "kit fox", "n00000002": "siamang"},
        ),
        (
            ("n00000001 kit fox", "n00000002 2 toed sloth"),
            {"n00000001": "kit fox", "n00000002": "2 toed sloth"},
        ),
    ],
)
def test_the_number_of_a_line_is_no_part_of_a_name(
    lines: tuple[str, ...], names: dict[str, str]
) -> None:
    """ImageNet's map_clsloc.txt has an id, a number and the words in each line."""
    found = read_names(Path("map_clsloc.txt"), "\n".join(lines).encode())
    assert found.names_of(names) == names


def test_each_value_of_a_column_of_splits_needs_a_split(tmp_path: Path) -> None:
    """--split for two of three values: the error names the third,
    and its command gives it a split of its own.
    """
    lines = "".join(
        f"{name},{label},{'xyz'[row % 3]}\n" for row, (name, label) in enumerate(LETTERS.items())
    )
    Made(labelled("l.csv", f"file,label,part\n{lines}")).save(tmp_path / "data")
    refused = prep_here("init", "data", "--split", "train=x", "--split", "test=y", cwd=tmp_path)
    assert refused.returncode == 2
    assert "no --split names the value z of the column part of l.csv" in refused.stderr
    command_here(*shlex.split(refused.stderr.rpartition("imagenet-prep ")[2]), cwd=tmp_path)
    made = load(tmp_path / "data.yaml", None, ENGINE)
    assert {split.name: sorted(split.catalog.names) for split in made.splits} == {
        "train": ["data/0.jpg", "data/3.jpg"],
        "test": ["data/1.jpg", "data/4.jpg"],
        "z": ["data/2.jpg", "data/5.jpg"],
    }
