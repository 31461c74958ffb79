"""Copies of ImageNet that somebody packed or renamed:
read as they are, or named with the command that helps.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from pathlib import Path

import pytest
from made_sets import ENGINE
from made_tars import pack, save
from odd_copies import APPLE_DOUBLE, TAKEN, TOLD
from running import command

from imagenet_prep import ConvertOptions, Layout, annotate, convert, status, untar
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.facts import SPLITS
from imagenet_prep.model import Silent

pytestmark = pytest.mark.once

PART = ConvertOptions(train_shards=2, validation_shards=2, allow_incomplete=True)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """32 images in 4 classes. Read only."""
    return make(tmp_path_factory.mktemp("few"), classes=4, per_class=5, validation=12, tiny=True)


@pytest.fixture(scope="module")
def official(few: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The SHA-256 of each shard that is made of the official archives."""
    layout = Layout(tmp_path_factory.mktemp("official"), raw=few.archives["train"].parent)
    convert(layout, ENGINE, PART)
    return digests(layout)


def digests(layout: Layout) -> dict[str, str]:
    """SHA-256 of every shard by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in list(layout.output_dir.glob("*-of-*"))
    }


class Notes(Silent):
    """Keeps the notes of a command."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note."""
        self.lines.append(text)


@pytest.mark.parametrize("form", TAKEN)
def test_a_copy_that_is_taken_gives_the_official_records(
    form: str, few: MadeSet, official: dict[str, str], tmp_path: Path
) -> None:
    """Names with ./, folders around members, files of macOS, zips of Windows:
    every shard is that of the archives.
    """
    TAKEN[form](tmp_path / "raw", few)
    layout, notes = Layout(tmp_path / "data", raw=tmp_path / "raw"), Notes()
    assert status(layout).following.startswith(
        ("imagenet-prep convert ", "imagenet-prep annotate ")
    )
    convert(layout, ENGINE, PART, progress=notes)
    assert digests(layout) == official
    skipped = [line for line in notes.lines if "skipped files of macOS, Windows or tar: " in line]
    assert bool(skipped) is ("macOS" in form or form == "class tars with ./")


@pytest.mark.parametrize(
    "form", ["./ in front", "with macOS files", "in their own folders", "Kaggle's zip of Windows"]
)
def test_untar_sorts_a_copy_that_is_taken(form: str, few: MadeSet, tmp_path: Path) -> None:
    """The class folders are those of the archives, and nothing of macOS is among them."""
    TAKEN[form](tmp_path / "raw", few)
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    untar(layout, ENGINE)
    found = {
        str(path.relative_to(layout.own_raw_dir))
        for path in list(layout.own_raw_dir.rglob("*"))
        if path.is_file()
    }
    assert found == {
        f"{split}/{image.wnid}/{image.filename}" for split in SPLITS for image in few.of(split)
    }


@pytest.mark.parametrize(
    "form", ["Kaggle's zip in a folder", "Kaggle's zip of Windows", "Kaggle's zip of macOS"]
)
def test_boxes_of_kaggles_zip_are_found(form: str, few: MadeSet, tmp_path: Path) -> None:
    """The annotations are in the same folders as the images."""
    TAKEN[form](tmp_path / "raw", few)
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    annotate(layout, ENGINE)
    assert layout.boxes_csv.read_bytes() == few.boxes_csv


@pytest.mark.parametrize("form", TOLD)
def test_a_copy_that_is_told_can_be_mended(
    form: str, few: MadeSet, official: dict[str, str], tmp_path: Path
) -> None:
    """The refusal says what was found and where; each command that it prints is run,
    and the records are official.
    """
    write, said = TOLD[form]
    write(tmp_path / "raw", few)
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    error = refusal(layout)
    assert error is not None
    assert said in error.what
    assert str(tmp_path / "raw") in error.what
    for _ in range(4):
        if error is not None:
            layout = mend(error, layout)
            error = None if digests(layout) else refusal(layout)
    assert digests(layout) == official


def refusal(layout: Layout) -> InputError | None:
    """The error of a conversion; None if there is none."""
    try:
        convert(layout, ENGINE, PART)
    except InputError as error:
        return error
    return None


def mend(error: InputError, layout: Layout) -> Layout:
    """Run the command of an error, or name the raw folder that it names."""
    assert len(str(error).splitlines()) == 3
    _, with_raw, rest = error.hint.partition("run the same command with --raw ")
    if with_raw:
        raw, _, _ = rest.partition("; ")
        return Layout(layout.data_dir, raw=Path(*shlex.split(raw)))
    words, _, rest = error.hint.removeprefix("move or rename the images: ").partition("    (")
    assert rest.startswith("then run the same command again)")
    subprocess.run(["sh", "-c", words], check=True)
    return layout


def test_files_of_macos_in_a_recipes_tar_are_counted(tmp_path: Path) -> None:
    """A tar of class folders with ./ in front and AppleDouble files:
    images alone become records, the rest is named.
    """
    members = {}
    for name in ("cat/1.jpg", "dog/2.jpg"):
        folder, _, last = name.partition("/")
        members |= {f"./{folder}/._{last}": APPLE_DOUBLE, f"./{name}": photographs.tiny(1)}
        members |= {
            f"__MACOSX/{folder}/._{last}": APPLE_DOUBLE,
            f"./{folder}/.hidden.jpg": b"hidden",
        }
    save(tmp_path / "set.tar", pack(members))
    (tmp_path / "set.yaml").write_text("source: {tar: set.tar}\n")
    ran = command("convert", tmp_path / "out", "--config", tmp_path / "set.yaml")
    assert (
        "skipped in archives: files of macOS, Windows or tar: 4 (cat/._1.jpg, ...); hidden files: 2 ("
        in ran.stderr
    )
    assert "2 images in 1 shard" in ran.stdout
