"""Hugging Face's copy of ImageNet, read where it lies:
the shards are those of the official archives.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from copies_of_imagenet import hugging_face_rows, write_hugging_face, write_parquet
from existing import existing
from made_sets import ENGINE, PART, converted
from made_tars import contents, save

from imagenet_prep import Layout, annotate, convert, make_engine, repair, status, verify
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.huggingface import HubFiles, official_name
from imagenet_prep.ilsvrc2012.official_folders import ImageFolders
from imagenet_prep.ilsvrc2012.plan_inputs import other_copies
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.model import Silent
from imagenet_prep.shards.convert_summary import ConvertSummary


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """The copy's folder ``data``. Read only: work in ``hub_dir``."""
    folder = tmp_path_factory.mktemp("copy") / "data"
    write_hugging_face(folder, made_tiny)
    return folder


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """What the official archives became, without boxes. Read only."""
    return converted(tmp_path_factory.mktemp("official") / "data", made_tiny)


@pytest.fixture
def hub_dir(tmp_path: Path, copy: Path) -> Path:
    """A DATA_DIR of the copy and nothing else."""
    shutil.copytree(copy, tmp_path / "hub" / "raw-data" / "data")
    return tmp_path / "hub"


def _digests(layout: Layout) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in existing(layout.output_dir, "*-of-*")
    }


def _made(summary: ConvertSummary) -> int:
    return sum(split.made for split in summary.splits)


# the same shards ----------------------------------------------------------------------------------


def test_the_shards_are_those_of_the_archives(official: Layout, hub_dir: Path) -> None:
    """Every image has its official name, its label and its bytes, in the order of the archives;
    no box is known.
    """
    summary = convert(Layout(hub_dir), make_engine("processes", 2), PART)
    assert any(note.startswith("no boxes for train") for note in summary.notes)
    assert _digests(Layout(hub_dir)) == _digests(official)


def _in(*parts: str) -> Callable[[Path, Path], None]:
    def put(raw: Path, copy: Path) -> None:
        shutil.copytree(copy, raw.joinpath(*parts))

    return put


def _cached(*parts: str) -> Callable[[Path, Path], None]:
    """As huggingface_hub's cache has it: links to files that are named by their digests."""

    def put(raw: Path, copy: Path) -> None:
        cache = raw.joinpath(*parts)
        folder = cache / "snapshots" / ("0" * 40) / "data"
        folder.mkdir(parents=True)
        (cache / "blobs").mkdir()
        for number, path in enumerate(existing(copy, "*.parquet")):
            blob = cache / "blobs" / f"{number:064x}"
            shutil.copy(path, blob)
            (folder / path.name).symlink_to(os.path.relpath(blob, folder))

    return put


def _two_snapshots(raw: Path, copy: Path) -> None:
    """One of them as an interrupted download left it."""
    for commit, taken in (("a", None), ("b", 2)):
        folder = raw / "snapshots" / (commit * 40) / "data"
        folder.mkdir(parents=True)
        for path in existing(copy, "*.parquet")[:taken]:
            shutil.copy(path, folder)


@pytest.mark.parametrize(
    "put",
    [
        _in(),
        _in("ILSVRC", "imagenet-1k", "data"),
        _cached("hub", "datasets--ILSVRC--imagenet-1k"),
        _two_snapshots,
    ],
)
def test_it_is_found_where_people_have_it(
    tmp_path: Path, copy: Path, put: Callable[[Path, Path], None]
) -> None:
    """In the raw folder, below its name, and in the cache of huggingface_hub;
    the split with more files first.
    """
    put(tmp_path / "raw", copy)
    for split in facts.SPLITS:
        found = find_source(Layout(tmp_path, raw=tmp_path / "raw"), split)
        assert isinstance(found, HubFiles)
        assert (len(found.paths), found.missing) == (3, "")
        assert found.path.name == f"{split}-00000-of-00003.parquet"


def test_a_conversion_goes_on_from_the_other_one(
    tmp_path: Path, made_tiny: MadeSet, official: Layout, copy: Path
) -> None:
    """Begun from one and broken off, it goes on from the other with nothing made again,
    and knows itself complete.
    """
    layout = Layout(tmp_path)
    layout.raw_dir.mkdir()

    def put(which: str) -> None:
        shutil.rmtree(layout.raw_dir)
        if which == "parquet":
            shutil.copytree(copy, layout.raw_dir / "data")
        else:
            layout.raw_dir.mkdir()
            for key in facts.SPLITS:
                shutil.copy2(made_tiny.archives[key], layout.raw_dir)

    put("archives")
    convert(layout, ENGINE, PART)
    lost = [
        layout.shard_path(name) for name in ("train-00002-of-00008", "validation-00007-of-00008")
    ]
    for path in lost:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in existing(tmp_path, "*-of-*")}
    put("parquet")
    assert _made(convert(layout, ENGINE, PART)) == len(lost)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert _digests(layout) == _digests(official)
    put("archives")
    assert _made(convert(layout, ENGINE, PART)) == 0


def test_every_stage_after_it_works(hub_dir: Path, official: Layout) -> None:
    """status names it, verify finds nothing, repair makes a damaged shard again from it."""
    layout = Layout(hub_dir)
    download = status(layout).stages[0]
    assert "files of Hugging Face" in download.detail
    convert(layout, ENGINE, PART)
    assert status(layout).following.startswith("imagenet-prep verify")
    assert not verify(layout, ENGINE).problems
    shard = layout.shard_path("train-00003-of-00008")
    with shard.open("r+b") as file:
        file.seek(shard.stat().st_size // 2)
        file.write(bytes(64))
    verdict = verify(layout, ENGINE)
    assert set(verdict.faulty) == {shard.name}
    repair(layout, ENGINE, verdict.faulty)
    assert _digests(layout) == _digests(official)


def test_it_is_not_read_in_another_order(hub_dir: Path) -> None:
    """--read-order shuffled would decode a group of rows once an image."""
    with pytest.raises(UsageError, match="in a shuffled order") as caught:
        convert(Layout(hub_dir), ENGINE, PART.replace(read_order="shuffled"))
    assert "leave out read_order: shuffled" in caught.value.hint


# what is refused ----------------------------------------------------------------------------------


def _refused(hub_dir: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        convert(Layout(hub_dir), ENGINE, PART)
    assert not list(hub_dir.glob("*-of-*"))
    return caught.value


def test_missing_files_are_named_before_the_others_are_read(hub_dir: Path) -> None:
    """What is not there is told at once: the files that are there are not looked at,
    sound or not.
    """
    data = hub_dir / "raw-data" / "data"
    for name in ("train-00001-of-00003.parquet", "validation-00002-of-00003.parquet"):
        (data / name).unlink()
    (data / "train-00000-of-00003.parquet").write_bytes(b"no parquet")
    with pytest.raises(IncompleteError) as caught:
        convert(Layout(hub_dir), ENGINE, PART.replace(allow_incomplete=False))
    assert caught.value.detail == (
        "train lacks train-00001-of-00003.parquet; validation lacks "
        "validation-00002-of-00003.parquet"
    )


@pytest.mark.parametrize(
    ("split", "name", "label", "said"),
    [
        (
            "train",
            "n01440764_10026_n01443537.JPEG",
            0,
            "ends with the class n01443537, but this image is of n01440764",
        ),
        ("train", "n99999999_1_n99999999.JPEG", 0, "is not the name of a train image"),
        ("train", "ILSVRC2012_val_00000293_n01440764.JPEG", 0, "is not the name of a train image"),
        ("train", "", 0, "is not the name of a train image"),
        (
            "train",
            "n01440764_10026_n01440764.JPEG",
            999,
            "has another label than the class in its name",
        ),
        (
            "validation",
            "ILSVRC2012_val_00000001_n01440764.JPEG",
            0,
            "ends with the class n01440764, but this image is of n01751748",
        ),
    ],
)
def test_a_row_of_another_name_or_label_is_refused(
    hub_dir: Path, split: str, name: str, label: int, said: str
) -> None:
    """It is named with its file; of validation the class in its name is
    compared with the devkit's table.
    """
    row = {"image": {"bytes": b"", "path": name}, "label": label}
    path = write_parquet(hub_dir / "raw-data" / "data" / f"{split}-00001-of-00003.parquet", [row])
    assert _refused(hub_dir).what == f"{path}, row 1: {name!r} {said}"


def test_an_image_that_is_there_twice_is_refused(hub_dir: Path, made_tiny: MadeSet) -> None:
    """In two files, or twice in one: both places are named."""
    rows = hugging_face_rows(made_tiny, "train")[:1]
    data = hub_dir / "raw-data" / "data"
    write_parquet(data / "train-00001-of-00003.parquet", rows)
    error = _refused(hub_dir)
    name = official_name(rows[0]["image"]["path"])[0]
    assert error.what == f"{data} holds {name} twice"
    assert (
        error.detail
        == "train-00000-of-00003.parquet, row 1 and train-00001-of-00003.parquet, row 1"
    )
    write_parquet(data / "train-00000-of-00003.parquet", rows * 2)
    write_parquet(data / "train-00001-of-00003.parquet", [])
    assert (
        _refused(hub_dir).detail
        == "train-00000-of-00003.parquet, row 1 and train-00000-of-00003.parquet, row 2"
    )
    assert _refused(hub_dir).hint == "get an intact copy of it"


def test_a_copy_that_was_not_read_is_read_as_its_note_says(
    hub_dir: Path, made_tiny: MadeSet
) -> None:
    """A folder of some classes beside all files of Hugging Face:
    the note names every file that has to be moved.
    """
    wnid = made_tiny.wnids[0]
    images = contents(made_tiny, "train")
    for image in made_tiny.of("train"):
        if image.wnid == wnid:
            save(hub_dir / "raw-data/train" / wnid / image.filename, images[image.filename])
    layout = Layout(hub_dir)
    source = find_source(layout, "train")
    assert isinstance(source, HubFiles)
    [note] = other_copies(layout, source)
    folder = hub_dir / "raw-data/train"
    pattern = hub_dir / "raw-data/data/train-*.parquet"
    assert note == f"{folder} was not read: to use it, move {pattern} away"
    progress = Silent()
    with pytest.raises(IncompleteError):
        convert(layout, ENGINE, progress=progress)
    assert f"indexing {pattern} for train" in progress.notes
    for path in existing(pattern.parent, pattern.name):
        path.unlink()
    assert find_source(layout, "train") == ImageFolders(folder, "train")


def test_a_damaged_file_is_refused(hub_dir: Path) -> None:
    """By its name, from a worker too."""
    path = hub_dir / "raw-data" / "data" / "validation-00001-of-00003.parquet"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(InputError, match=re.escape(str(path))):
        convert(Layout(hub_dir), make_engine("processes", 2), PART)


def test_boxes_of_official_archives_beside_it_are_used(
    tmp_path: Path, made_tiny: MadeSet, hub_dir: Path
) -> None:
    """It has none itself; those of the official archives in the raw folder
    give the same shards as everywhere.
    """
    found = []
    for layout in (converted(tmp_path / "official", made_tiny), Layout(hub_dir)):
        for key in ("boxes", "validation-boxes"):
            shutil.copy(made_tiny.archives[key], layout.raw_dir)
        annotate(layout, ENGINE, validation=True)
        convert(layout, ENGINE, PART.replace(validation_boxes=True, overwrite=True))
        found.append(_digests(layout))
    assert found[0] == found[1]


def test_what_is_there_is_converted_if_that_is_asked_for(hub_dir: Path, made_tiny: MadeSet) -> None:
    """With --allow-incomplete a file less is a part, and said to be."""
    (hub_dir / "raw-data" / "data" / "train-00001-of-00003.parquet").unlink()
    summary = convert(Layout(hub_dir), ENGINE, PART)
    assert "a part of ILSVRC2012: train lacks train-00001-of-00003.parquet" in summary.notes
    assert summary.splits[0].images == len(made_tiny.of("train")) * 2 // 3


def test_without_pyarrow_the_extra_is_named(hub_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read, and with the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow") as caught:
        convert(Layout(hub_dir), ENGINE, PART)
    assert ".[parquet]" in caught.value.hint
