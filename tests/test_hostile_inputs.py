"""Inputs made to hang a command, to fill the memory, or to crash it: each is one error, said within a second."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest
from bounded import Measured, measure, processor_time
from PIL import Image

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.recipes.labels_file import LabelsFault, parse_labels, typed
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_file import read_recipe

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 2)
FILES = "source: {files: arrays/*.npy}\n"
FOLDERS = "source: {folders: flowers}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two arrays, and two classes of small images."""
    (tmp_path / "arrays").mkdir()
    for number in range(2):
        np.save(tmp_path / "arrays" / f"{number}.npy", np.arange(3))
    for name in ("daisy", "rose"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "flowers" / name / "0.png")
    return tmp_path


def refusal(folder: Path, recipe: str) -> PrepError:
    """The error of a recipe in that folder, of three lines at most."""
    (folder / "recipe.yaml").write_text(recipe)
    with processor_time(), pytest.raises(PrepError) as caught:
        load(folder / "recipe.yaml", None, ENGINE)
    assert len(str(caught.value).splitlines()) <= 3
    assert len(str(caught.value)) < 2000
    return caught.value


def convert(folder: Path, recipe: str) -> Measured:
    """What convert says of a recipe in that folder, and what it took."""
    (folder / "recipe.yaml").write_text(recipe)
    return measure(folder, "convert", folder / "out", "--config", folder / "recipe.yaml", "--workers", 1)


# files that are none -------------------------------------------------------------------------------------------


def odd_file(folder: Path, kind: str) -> Path:
    """Something under the name of a file that is none, or has no end."""
    path = folder / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        before = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        try:
            socket.socket(socket.AF_UNIX).bind("odd")
        finally:
            os.chdir(before)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hole":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    else:
        path.symlink_to("odd")
    return path


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder", "hole", "loop"])
@pytest.mark.parametrize("recipe", ["source: {manifest: odd}\n", FILES + "labels: odd\n", FOLDERS + "classes: odd\n"])
def test_what_is_no_file_is_not_read(folder: Path, kind: str, recipe: str) -> None:
    """A pipe, a device, a socket, a folder, a file of a terabyte, a link to itself: refused at once, by its name."""
    odd_file(folder, kind)
    error = refusal(folder, recipe)
    assert isinstance(error, InputError)
    assert "/odd" in error.what


@pytest.mark.parametrize("kind", ["pipe", "hole"])
def test_a_recipe_that_is_no_file_is_not_read(folder: Path, kind: str) -> None:
    """The recipe itself is one of these: convert says so, with little time and memory."""
    ran = measure(folder, "convert", folder / "out", "--config", odd_file(folder, kind))
    assert ran.status in (2, 4), ran
    assert "odd" in ran.err
    assert len(ran.err.splitlines()) <= 6  # the usage line of a path that can't be is click's
    assert ran.seconds < 5
    assert ran.memory < 200 << 20


@pytest.mark.parametrize(
    ("name", "kind"), [("manifest.json", "pipe"), ("journal.jsonl", "device"), ("plan/plan.json", "folder")]
)
def test_a_file_of_ours_that_is_none_is_one_error(folder: Path, name: str, kind: str) -> None:
    """A pipe, a device, a folder or a loop under the name of a file of ours: no command waits for it, or crashes."""
    assert convert(folder, FOLDERS + "shards: 1\n").status == 0
    out = folder / "out"
    (out / "imagenet-prep" / name).unlink(missing_ok=True)
    odd_file(folder, kind).rename(out / "imagenet-prep" / name)
    for words in (
        ("status", out),
        ("convert", out, "--config", folder / "recipe.yaml"),
        ("verify", out, "--depth", "quick"),
    ):
        ran = measure(folder, *words)
        assert ran.status in (0, 1, 3, 4), (words, ran)
        assert "bug" not in ran.err
        assert len(ran.err.splitlines()) <= 6, ran.err
        assert ran.seconds < 5
        assert ran.memory < 250 << 20


def test_a_link_to_itself_in_a_class_folder_is_one_error(folder: Path) -> None:
    """It is named as what can't be read; a link that leads round and round as well."""
    (folder / "flowers" / "rose" / "1.png").symlink_to("1.png")
    ran = convert(folder, FOLDERS)
    assert (ran.status, ran.err.splitlines()[-2:][0]) == (4, f"error: {folder}/flowers/rose/1.png can't be read")
    (folder / "flowers" / "rose" / "1.png").unlink()
    (folder / "flowers" / "tulip").symlink_to("lily")
    (folder / "flowers" / "lily").symlink_to("tulip")
    assert "can't be read" in refusal(folder, FOLDERS).what


# numbers and nesting without end -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1" * 20_000 + "x", "-" + "9" * 130_000])
@pytest.mark.parametrize("kind", ["bytes", "int64", "float", None])
def test_a_long_number_in_a_label_file_takes_no_time(text: str, kind: str | None) -> None:
    """Tens of thousands of digits are a text, or beyond 64 bits; never a matter of minutes."""
    for content, form in ((f"a:{text}\n", "lines"), (f"path,label\na,{text}\n", "csv")):
        with processor_time():
            table = parse_labels(content.encode(), form)
            assert table.labels is not None
            if kind == "bytes" or (kind is None and text.endswith("x")):
                assert typed(table.labels, table.lines, table.is_text, kind) == ("bytes", [text])
                continue
            with pytest.raises(LabelsFault) as caught:
                typed(table.labels, table.lines, table.is_text, kind)
            assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "line",
    [
        '{"path": "a", "label": ' + "1" * 20_000 + "}",
        '{"path": "a", "label": ' + "[" * 100_000,
        '{"path": "a", "label": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"path": "1.npy", "label": ' + "[" * 100 + "]" * 100 + "}",
        '{"a":' * 100_000,
    ],
)
def test_json_lines_made_to_take_long(folder: Path, line: str) -> None:
    """Numbers and nesting without end in JSON lines: the error names the line."""
    (folder / "labels.jsonl").write_text('{"path": "0.npy", "label": 1}\n' + line + "\n")
    assert "labels.jsonl, line 2: " in refusal(folder, FILES + "labels: labels.jsonl\n").what


@pytest.mark.parametrize("place", ["path", "label", "more", "list", "name of a column"])
def test_half_a_surrogate_pair_in_json_lines_is_no_text(folder: Path, place: str) -> None:
    """What JSON can say and UTF-8 can't write is an error of its line, whichever column it stands in."""
    half = "\\ud800"
    extra = {"list": f', "m": ["x", "{half}"]', "name of a column": f', "{half}": 1', "more": f', "m": "{half}"'}
    path = f"1{half}.npy" if place == "path" else "1.npy"
    label = half if place == "label" else "b"
    text = f'{{"path": "0.npy", "label": "a"}}\n{{"path": "{path}", "label": "{label}"{extra.get(place, "")}}}\n'
    (folder / "labels.jsonl").write_text(text)
    error = refusal(folder, FILES + "labels: labels.jsonl\n")
    assert "labels.jsonl, line 2: " in error.what
    assert "surrogate" in str(error)


@pytest.mark.parametrize(
    "recipe",
    [
        FOLDERS + 'record:\n  "a\\ud800": width\n',
        FOLDERS + 'classes:\n  ["daisy", "\\udfff"]\n',
        'seed: 1\nsource: {folders: "\\ud800"}\n',
    ],
)
def test_half_a_surrogate_pair_in_a_recipe_is_no_text(folder: Path, recipe: str) -> None:
    """A name of a feature, of a class or of a file that UTF-8 can't write: the error names the line."""
    error = refusal(folder, recipe)
    assert isinstance(error, UsageError)
    assert "recipe.yaml, line 2: " in error.what or (recipe.count("\n") == 3 and "line 3: " in error.what)
    assert "surrogate" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "{" * 5_000,
        "- " * 100_000,
        "a:\n" + "".join(" " * i + "a:\n" for i in range(1, 1_000)),
        "[" * 1_000_000,
        "a: " + "'" * 500_001,
        "a: &" + "b" * 500_000,
        "a: |\n" + " x\n" * 100_000,
    ],
)
def test_yaml_made_to_take_long(tmp_path: Path, text: str) -> None:
    """Brackets, indents and signs by the thousand: refused within a second."""
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with processor_time(), pytest.raises(UsageError) as caught:
        read_recipe(path)
    assert len(str(caught.value)) < 1_000


def test_more_shards_than_images_are_bounded(folder: Path) -> None:
    """99,999 shards of two images are refused before one is written; a thousand are made, as 2016's 1024 are."""
    ran = convert(folder, FOLDERS + "record: inception\nshards: 99999\n")
    assert ran.status == 2
    assert "recipe.yaml, line 3: shards: 99,999 shards of 2 files" in ran.err
    assert "expected at most 1,024" in ran.err
    assert ran.seconds < 5
    assert not (folder / "out").exists()
    for recipe in ("num_shards: 1025\n", "shards: {train: 1025}\n"):
        assert "expected at most 1,024" in str(refusal(folder, FOLDERS + recipe))
    (folder / "recipe.yaml").write_text(FOLDERS + "shards: 1024\n")
    assert load(folder / "recipe.yaml", None, ENGINE).splits[0].shards == 1024


@pytest.mark.parametrize("name", ["train-00000-of-00001", "index/train-00000-of-00001.idx"])
def test_a_pipe_in_place_of_a_shard_or_an_index_is_one_problem(folder: Path, name: str) -> None:
    """verify and convert don't wait for it: verify says that it is not a plain file, convert makes the shard again."""
    assert convert(folder, FOLDERS + "shards: 1\n").status == 0
    out = folder / "out"
    path = (out / "imagenet-prep" if "/" in name else out) / name.format("train-00000-of-00001")
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    ran = measure(folder, "verify", out, limit=20)
    assert ran.status == 3, ran
    assert "not a plain file" in ran.out
    if "/" not in name:
        assert measure(folder, "report", out, limit=20).status >= 0
    assert measure(folder, "convert", out, "--config", folder / "recipe.yaml", limit=20).status == 0
    assert path.read_bytes() == content
