"""What is read as input is whole, or refused: holes, pipes, broken links,
and files that are no images of the set.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bounded import measure
from existing import existing
from made_sets import ENGINE, PART
from made_tars import in_memory, pack, save, unpack

from imagenet_prep import Layout, annotate, convert, untar
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Silent
from imagenet_prep.sources.array_files import open_arrays
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.slices import Row

TRAIN, VALIDATION = (facts.ARCHIVES[split].filename for split in facts.SPLITS)


class Notes(Silent):
    """Keeps the notes of a command."""

    def __init__(self) -> None:
        """None yet."""
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note."""
        self.notes.append(text)


def fill(path: Path, start: float, stop: float) -> None:
    """Put a hole into a file, from one share of its bytes to another,
    so that its size is as before.
    """
    size = path.stat().st_size
    first, last = int(size * start), int(size * stop)
    with path.open("r+b") as file:
        file.seek(first)
        file.write(bytes(last - first))


# archives with holes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [TRAIN, VALIDATION])
@pytest.mark.parametrize("span", [(0.5, 1), (0.4, 0.6)], ids=["the second half", "the middle"])
def test_an_archive_of_the_right_size_that_came_in_part_is_damaged(
    data_dir: Path, name: str, span: tuple[float, float]
) -> None:
    """Space that a download reserved and never filled is zeros:
    no end of the archive, also with --allow-incomplete.
    """
    path = data_dir / "raw-data" / name
    fill(path, *span)
    with pytest.raises(
        InputError, match=r"is damaged, or can't be read in place, at byte"
    ) as caught:
        convert(Layout(data_dir), ENGINE, PART)
    assert str(path) in caught.value.what
    assert not Layout(data_dir).plan_path.exists()
    with pytest.raises(InputError, match="is damaged"):
        untar(Layout(data_dir), ENGINE)


@pytest.fixture
def class_tars(tmp_path: Path, made: MadeSet) -> Path:
    """A DATA_DIR with a tar per class, and the validation archive."""
    folder = tmp_path / "tars" / "raw-data"
    for name, content in unpack(made.archives[facts.TRAIN]).items():
        save(folder / "train" / name, content)
    shutil.copy2(made.archives[facts.VALIDATION], folder)
    return folder.parent


def test_a_class_tar_with_a_hole_is_damaged(class_tars: Path, made: MadeSet) -> None:
    """Images behind the hole don't count as absent."""
    path = class_tars / "raw-data/train" / f"{made.wnids[2]}.tar"
    offset = path.read_bytes().index(b"ustar", 3000) - 257  # the second header
    content = path.read_bytes()
    path.write_bytes(content[:offset] + bytes(4096) + content[offset + 4096 :])
    with pytest.raises(InputError, match=rf"{path} .*at byte {offset:,}"):
        convert(Layout(class_tars), ENGINE, PART)


def test_joined_tars_of_a_recipe_are_refused(tmp_path: Path) -> None:
    """A tar of a recipe, and a tar in it, are never read in part."""
    one, two = (pack({f"{name}/{number}.png": b"x" for number in range(3)}) for name in "ab")
    for name, content in (("joined", one + two), ("inner", pack({"a.tar": one + two}))):
        save(tmp_path / name / "x.tar", content)
        recipe = tmp_path / f"{name}.yaml"
        recipe.write_text(f"source: {{tar: {name}/x.tar}}\nshards: 1\n")
        ran = measure(tmp_path, "convert", tmp_path / "out", "--config", recipe, "--workers", 1)
        assert ran.status == 4, ran.err
        assert "the tar ends here, but the file goes on" in ran.err


# entries of folders that are no files -------------------------------------------------------------


def make_socket(path: Path) -> None:
    """A socket at a path of any length."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "broken link": lambda path: path.symlink_to("nowhere"),
    "folder": Path.mkdir,
}


@pytest.fixture
def folders(data_dir: Path) -> Path:
    """A DATA_DIR with class folders in place of archives."""
    untar(Layout(data_dir), ENGINE)
    for split in facts.SPLITS:
        (data_dir / "raw-data" / facts.ARCHIVES[split].filename).unlink()
    return data_dir


def planned(data_dir: Path) -> list[str]:
    """The notes of a convert, the end of which is of no matter."""
    progress = Notes()
    convert(Layout(data_dir), ENGINE, PART, progress=progress)
    return progress.notes


@pytest.mark.parametrize("kind", NO_FILES)
def test_an_image_that_is_no_file_is_refused_and_counted(
    folders: Path, made: MadeSet, kind: str
) -> None:
    """Nothing waits for a pipe: what has the name of an image is named with its folder,
    in every split.
    """
    folder = folders / "raw-data/train" / made.wnids[1]
    for number in range(3):
        NO_FILES[kind](folder / f"{made.wnids[1]}_9999{number}.JPEG")
    with pytest.raises(InputError, match=r"_9999\d\.JPEG is not a plain file, .*2 more"):
        convert(Layout(folders), ENGINE, PART)


@pytest.mark.parametrize("kind", [kind for kind in NO_FILES if kind != "folder"])
def test_other_entries_that_are_no_files_are_named(folders: Path, made: MadeSet, kind: str) -> None:
    """They are skipped with a count, in a class folder and beside one."""
    NO_FILES[kind](folders / "raw-data/train" / made.wnids[1] / "log")
    NO_FILES[kind](folders / "raw-data/train" / "log")
    assert any("train: skipped entries that are no files: 2 (" in note for note in planned(folders))


def test_a_pipe_in_place_of_a_class_tar_or_of_annotations_is_refused(
    class_tars: Path, made: MadeSet
) -> None:
    """Each is named, and none is waited for."""
    path = class_tars / "raw-data/train" / f"{made.wnids[0]}.tar"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"\.tar .*\n.*not a plain file"):
        convert(Layout(class_tars), ENGINE, PART)
    folder = class_tars / "boxes" / made.wnids[0]
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.xml")
    with pytest.raises(UsageError, match="is neither a file nor a folder"):
        annotate(Layout(class_tars), ENGINE, boxes=folder / "a.xml")
    with pytest.raises(InputError, match=r"a\.xml is a pipe, a socket or a device"):
        annotate(Layout(class_tars), ENGINE, boxes=folder.parent)


def test_a_pipe_that_took_the_place_of_an_image_is_not_waited_for(tmp_path: Path) -> None:
    """A row of a folder is read at once, or refused."""
    os.mkfifo(tmp_path / "a.JPEG")
    with pytest.raises(InputError, match=r"a\.JPEG .*\n.*not a plain file"):
        Folder(tmp_path).open()(Row("a.JPEG", 0, 10, 0))


@pytest.mark.parametrize("kind", ["tar", "webdataset", "files", "parquet", "tfrecord", "arrays"])
def test_a_pipe_that_a_recipe_names_is_refused(tmp_path: Path, kind: str) -> None:
    """An archive, a file of a pattern, a parquet file and others:
    one error within seconds, and none is waited for.
    """
    os.mkfifo(tmp_path / "x.jpg")
    (tmp_path / "recipe.yaml").write_text(f"source: {{{kind}: x.jpg}}\nshards: 1\n")
    ran = measure(
        tmp_path, "convert", tmp_path / "out", "--config", tmp_path / "recipe.yaml", "--workers", 1
    )
    assert (ran.status, ran.seconds < 10) == (4, True), ran.err
    assert f"{tmp_path}/x.jpg" in ran.err


# files that are no images of the set --------------------------------------------------------------


def test_files_of_other_names_and_in_subfolders_are_counted(folders: Path, made: MadeSet) -> None:
    """Nothing in a folder of images is left out without a word; the same for validation."""
    image = existing(folders / "raw-data/train", "*/*.JPEG")[0]
    (image.parent / "more/deep").mkdir(parents=True)
    for place in (
        "more/a.JPEG",
        "more/deep/b.JPEG",
        "copy of an image.JPEG",
        "Thumbs.db",
        ".DS_Store",
    ):
        shutil.copy2(image, image.parent / place)
    save(folders / "raw-data/train/dogs/c.JPEG", b"dog")
    save(folders / "raw-data/validation" / made.wnids[0] / "notes.txt", b"notes")
    notes = planned(folders)
    train = next(note for note in notes if "train: skipped" in note)
    assert "files of other names: 1 (" in train
    assert "files of macOS, Windows or tar: 2 (" in train
    assert "files in other folders: 3 (" in train
    assert any("validation: skipped files of other names: 1 (" in note for note in notes)


def test_images_beside_class_tars_and_tars_beside_class_folders_are_counted(
    class_tars: Path, made: MadeSet
) -> None:
    """A train/ that was unpacked in part is named, whichever part is read."""
    folder = class_tars / "raw-data/train"
    first = folder / f"{made.wnids[0]}.tar"
    images = unpack(first)
    for name, content in images.items():
        save(folder / name, content)
    notes = planned(class_tars)
    assert any(
        f"train: skipped entries that are no class tars: {len(images)} (n" in note for note in notes
    )
    for name, content in images.items():
        (folder / name).unlink()
        save(folder / made.wnids[0] / name, content)
    shutil.rmtree(class_tars / "imagenet-prep")
    for shard in existing(class_tars, "*-of-*"):
        shard.unlink()
    notes = planned(class_tars)
    assert any(
        f"skipped class tars next to class folders: {len(made.wnids)} (n" in note for note in notes
    )


def test_the_dogs_of_another_task_are_not_the_train_images(data_dir: Path) -> None:
    """ILSVRC2012_img_train_t3.tar is a tar of class tars, too: no command advises to rename it."""
    path = data_dir / "raw-data" / TRAIN
    dogs = path.rename(path.with_name("ILSVRC2012_img_train_t3.tar"))
    with pytest.raises(InputError) as caught:
        convert(Layout(data_dir), ENGINE, PART)
    assert caught.value.what.startswith(f"{dogs} is named like the archive of task 3")
    assert "mv" not in caught.value.hint
    ran = measure(data_dir, "status", data_dir)
    assert ("mv " in ran.out, "imagenet-prep download" in ran.out) == (False, True)


# arrays -------------------------------------------------------------------------------------------

HUGE = struct.pack("<Q", 1 << 62)


def npy(shape: str, kind: str = "'|u1'", form: int = 1) -> bytes:
    """The header of an .npy."""
    text = (
        f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
        + b"\n"
    )
    return (
        b"\x93NUMPY" + bytes([form, 0]) + struct.pack("<H" if form == 1 else "<I", len(text)) + text
    )


ARRAYS = {
    "11 bytes that claim 4 EiB": b"\x80\x04\x8e" + HUGE,
    "a text of 4 EiB": b"\x80\x04\x8d" + HUGE,
    "a frame of 4 EiB": b"\x80\x04\x95" + HUGE,
    "a short one of 4 GiB": b"\x80\x04B\xff\xff\xff\xff",
    "a table of 2^31 values": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a header of 4 GiB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "a header that is cut": npy("(1,)")[:11],
    "more bytes than there are": npy(f"({1 << 62}, 4)"),
    "a negative side": npy("(-1, 4)"),
    "two negative sides": npy("(-2, -2)") + b"1234",
    "a side of 4,000 digits": npy("(" + "9" * 4000 + ",)"),
    "objects": npy("(1,)", "'|O'") + b"12345678",
    "nothing, often": npy(f"({1 << 40}, 0)"),
    "an IDX without its sides": b"\0\0\x08\x04" + b"\xff" * 7,
    "an IDX of 2^128 bytes": b"\0\0\x08\x04" + b"\xff" * 16,
    "an .npz of 4 EiB": in_memory(lambda file: np.savez(file, a=np.arange(3))).replace(
        b"(3,), }", b"(9" + b"9" * 4 + b",)}"
    ),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_that_claims_too_much_is_damaged(tmp_path: Path, case: str) -> None:
    """One error that names the file, without an allocation of what it claims."""
    (tmp_path / "a").write_bytes(ARRAYS[case])
    with pytest.raises(InputError, match=r"/a .*arrays") as caught:
        open_arrays(tmp_path / "a")
    assert len(str(caught.value)) < 600
