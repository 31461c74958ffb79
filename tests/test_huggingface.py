"""Hugging Face's copy of ImageNet, read where it lies: the shards are those of the official archives."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from copies_of_imagenet import hugging_face_rows, write_hugging_face, write_parquet
from existing import existing
from made_sets import PART, converted

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.portals import HubFiles, official_name
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.model import Silent
from imagenet_prep.shards import regroup
from imagenet_prep.shards.run import ConvertSummary
from imagenet_prep.sources import parquets
from imagenet_prep.sources.parquets import ParquetImages
from imagenet_prep.sources.slices import Buffer, Row
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert, foresee
from imagenet_prep.stages.repair import repair
from imagenet_prep.stages.status import status
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout

ENGINE = make_engine("threads", 2)


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
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in existing(layout.output_dir, "*-of-*")}


def _made(summary: ConvertSummary) -> int:
    return sum(split.made for split in summary.splits)


# the same shards -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["processes", "threads"])
def test_the_shards_are_those_of_the_archives(official: Layout, hub_dir: Path, engine: str) -> None:
    """Every image has its official name, its label and its bytes, in the order of the archives."""
    convert(Layout(hub_dir), make_engine(engine, 2), PART)
    assert _digests(Layout(hub_dir)) == _digests(official)


def test_boxes_of_official_archives_beside_it_are_used(tmp_path: Path, made_tiny: MadeSet, hub_dir: Path) -> None:
    """It has none itself; those of the official archives in the raw folder give the same shards as everywhere."""
    found = []
    for layout in (converted(tmp_path / "official", made_tiny), Layout(hub_dir)):
        for key in ("boxes", "validation-boxes"):
            shutil.copy(made_tiny.archives[key], layout.raw_dir)
        annotate(layout, ENGINE, validation=True)
        convert(layout, ENGINE, PART.replace(validation_boxes=True, overwrite=True))
        found.append(_digests(layout))
    assert found[0] == found[1]


def test_convert_says_that_it_has_no_boxes(hub_dir: Path) -> None:
    """As it does wherever there are none."""
    summary = convert(Layout(hub_dir), ENGINE, PART)
    assert any(note.startswith("no boxes for train") for note in summary.notes)


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
        _in("data"),
        _in(),
        _in("imagenet-1k", "data"),
        _in("imagenet-1k"),
        _in("ILSVRC", "imagenet-1k", "data"),
        _cached(),
        _cached("datasets--ILSVRC--imagenet-1k"),
        _cached("hub", "datasets--ILSVRC--imagenet-1k"),
        _two_snapshots,
    ],
)
def test_it_is_found_where_people_have_it(tmp_path: Path, copy: Path, put: Callable[[Path, Path], None]) -> None:
    """In the raw folder, below its name, and in the cache of huggingface_hub; the split with more files first."""
    put(tmp_path / "raw", copy)
    for split in facts.SPLITS:
        found = find_source(Layout(tmp_path, raw=tmp_path / "raw"), split)
        assert isinstance(found, HubFiles)
        assert (len(found.paths), found.missing) == (3, "")
        assert found.path.name == f"{split}-00000-of-00003.parquet"


def test_archives_and_folders_come_before_it(hub_dir: Path, made_tiny: MadeSet) -> None:
    """What was found before there were copies is still what is taken."""
    shutil.copy(made_tiny.archives["train"], hub_dir / "raw-data")
    found = [find_source(Layout(hub_dir), split) for split in facts.SPLITS]
    assert [source.path.name for source in found if source] == [
        "ILSVRC2012_img_train.tar",
        "validation-00000-of-00003.parquet",
    ]


@pytest.mark.parametrize(("first", "other"), [("archives", "parquet"), ("parquet", "archives")])
def test_a_conversion_goes_on_from_the_other_one(
    tmp_path: Path, made_tiny: MadeSet, official: Layout, copy: Path, first: str, other: str
) -> None:
    """Begun from one and broken off, it goes on from the other with nothing made again, and knows itself complete."""
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

    put(first)
    convert(layout, ENGINE, PART)
    lost = [layout.shard_path(name) for name in ("train-00002-of-00008", "validation-00007-of-00008")]
    for path in lost:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in existing(tmp_path, "*-of-*")}
    put(other)
    assert _made(convert(layout, ENGINE, PART)) == len(lost)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert _digests(layout) == _digests(official)
    put(first)
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


def test_every_file_is_read_once_in_its_order(hub_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the listing: images go to bundles, each file from front to back, in one gathering, under one bar."""
    asked: dict[str, list[int]] = {}
    flushed: list[int] = []
    really = ParquetImages.open

    def opened(self: ParquetImages) -> Callable[[Row], Buffer]:
        read = really(self)

        def noted(row: Row) -> Buffer:
            asked.setdefault(self.path.name, []).append(row.offset)
            return read(row)

        return noted

    monkeypatch.setattr(ParquetImages, "open", opened)
    flush = regroup._Bundles._flush
    monkeypatch.setattr(regroup._Bundles, "_flush", lambda self: (flushed.append(self._held), flush(self)))
    bars: list[str] = []

    class Bars(Silent):
        def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
            bars.append(label)

    convert(Layout(hub_dir), ENGINE, PART, progress=Bars())
    sources = [find_source(Layout(hub_dir), split) for split in facts.SPLITS]
    files = [path for source in sources if isinstance(source, HubFiles) for path in source.paths]
    assert sorted(asked) == sorted(path.name for path in files)
    assert all(offsets == sorted(set(offsets)) for offsets in asked.values())
    assert len(flushed) == len([bar for bar in bars if bar.endswith("in order")]) == 2
    assert not Layout(hub_dir).partial_dir.exists()


def test_it_goes_through_bundles_by_itself(hub_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a word why; the space for the bundles, more than the shards alone take, is asked for beforehand."""
    layout, notes = Layout(hub_dir), Silent()
    needs = foresee(layout, ENGINE, PART)
    assert sum(need.size for need in needs) > 2 * sum(
        path.stat().st_size for path in existing(layout.raw_dir, "*/[tv]*n-*")
    )
    convert(layout, ENGINE, PART, progress=notes)
    said = [note for note in notes.notes if "can only be read in its order" in note]
    assert len(said) == 2
    assert str(layout.partials_dir) in said[0]
    assert not layout.partials_dir.exists()


def test_it_is_not_read_in_another_order(hub_dir: Path) -> None:
    """--read-order shuffled would decode a group of rows once an image."""
    with pytest.raises(UsageError, match="in a shuffled order") as caught:
        convert(Layout(hub_dir), ENGINE, PART.replace(read_order="shuffled"))
    assert "leave the option out" in caught.value.hint


def test_images_that_moved_to_it_are_looked_at_in_one_pass(
    hub_dir: Path, made_tiny: MadeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of all shards by rising offset: to go back would be to decode a group of rows again."""
    layout = Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)
    convert(layout, ENGINE, PART)
    offsets: dict[str, list[int]] = {}
    true_open = ParquetImages.open

    def open_(self: ParquetImages) -> Callable[[Row], Buffer]:
        read = true_open(self)
        return lambda row: (offsets.setdefault(self.path.name, []).append(row.offset), read(row))[1]

    monkeypatch.setattr(ParquetImages, "open", open_)
    convert(replace(layout, raw=hub_dir / "raw-data"), make_engine("threads", 1), PART)
    assert sum(map(len, offsets.values())) > 40
    assert all(each == sorted(each) for each in offsets.values())


def test_a_shard_costs_the_row_groups_of_its_images(hub_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of 8 shards gone, no file is decoded from its beginning to its end again, but for the listing."""
    layout = Layout(hub_dir)
    convert(layout, ENGINE, PART)
    layout.shard_path("validation-00002-of-00008").unlink()
    begun: list[tuple[str, int]] = []
    batches = parquets._batches

    def counted(path: Path, file: Any, first: int, group: int, *columns: str) -> Any:
        if columns == ("image.bytes",):
            begun.append((path.name, group))
        return batches(path, file, first, group, *columns)

    monkeypatch.setattr(parquets, "_batches", counted)
    convert(layout, ENGINE, PART)
    assert {name.partition("-")[0] for name, _ in begun} == {"validation"}
    assert len(begun) == len(set(begun)) <= 10  # images of that shard


@pytest.mark.parametrize("memory", [1, 30_000])
def test_little_memory_gives_the_same_shards(official: Layout, hub_dir: Path, memory: int) -> None:
    """However often bundles are written out."""
    convert(Layout(hub_dir), ENGINE, PART.replace(memory=memory))
    assert _digests(Layout(hub_dir)) == _digests(official)


# what is refused -----------------------------------------------------------------------------------------------


def _refused(hub_dir: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        convert(Layout(hub_dir), ENGINE, PART)
    assert not list(hub_dir.glob("*-of-*"))
    return caught.value


def test_missing_files_are_named_before_the_others_are_read(hub_dir: Path) -> None:
    """What is not there is told at once: the files that are there are not looked at, sound or not."""
    data = hub_dir / "raw-data" / "data"
    for name in ("train-00001-of-00003.parquet", "validation-00002-of-00003.parquet"):
        (data / name).unlink()
    (data / "train-00000-of-00003.parquet").write_bytes(b"no parquet")
    with pytest.raises(IncompleteError) as caught:
        convert(Layout(hub_dir), ENGINE, PART.replace(allow_incomplete=False))
    assert caught.value.detail == (
        "train lacks train-00001-of-00003.parquet | validation lacks validation-00002-of-00003.parquet"
    )


def test_many_missing_files_are_counted(tmp_path: Path) -> None:
    """Of 294 no message names 293."""
    (tmp_path / "raw-data").mkdir()
    (tmp_path / "raw-data" / "train-00007-of-00294.parquet").touch()
    found = find_source(Layout(tmp_path), "train")
    assert found is not None
    assert found.missing == (", ".join(f"train-{number:05d}-of-00294.parquet" for number in range(5)) + " and 288 more")


def test_what_is_there_is_converted_if_that_is_asked_for(hub_dir: Path, made_tiny: MadeSet) -> None:
    """With --allow-incomplete a file less is a part, and said to be."""
    (hub_dir / "raw-data" / "data" / "train-00001-of-00003.parquet").unlink()
    summary = convert(Layout(hub_dir), ENGINE, PART)
    assert "a part of ILSVRC2012: train lacks train-00001-of-00003.parquet" in summary.notes
    assert summary.splits[0].images == len(made_tiny.of("train")) * 2 // 3


def _changed(made: MadeSet, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row of the train split, as it is and changed."""
    row = hugging_face_rows(made, "train")[0]
    image = {**row["image"], **{key: changes.pop(key) for key in ("path", "bytes") if key in changes}}
    return row, {**row, "image": image, **changes}


@pytest.mark.parametrize(
    "name",
    [
        "n01440764_10026.JPEG",
        "n01440764_10026_n01443537.JPEG",
        "n01440764_10026_n01440764.jpg",
        "data/n01440764_10026_n01440764.JPEG",
        "n01440764_x_n01440764.JPEG",
        "n99999999_1_n99999999.JPEG",
        "ILSVRC2012_val_00000293_n01440764.JPEG",
        "ILSVRC2012_test_00000001.JPEG",
        "",
    ],
)
def test_another_name_is_refused(hub_dir: Path, made_tiny: MadeSet, name: str) -> None:
    """A row of anything but a train image is named with its file."""
    rows = list(_changed(made_tiny, path=name))
    path = write_parquet(hub_dir / "raw-data" / "data" / "train-00001-of-00003.parquet", rows)
    error = _refused(hub_dir)
    assert error.what == f"{path}, row 1: {name!r} is not a train image"


def test_a_validation_image_of_another_class_is_refused(hub_dir: Path) -> None:
    """The class in its name is compared with the one in the table of the devkit."""
    name = f"ILSVRC2012_val_00000001_{facts.synsets()[0]}.JPEG"
    row = {"image": {"bytes": b"", "path": name}, "label": 0}
    path = write_parquet(hub_dir / "raw-data" / "data" / "validation-00001-of-00003.parquet", [row])
    assert _refused(hub_dir).what == f"{path}, row 0: {name!r} is not a validation image"


def test_a_label_that_is_not_that_of_the_name_is_refused(hub_dir: Path, made_tiny: MadeSet) -> None:
    """Which of the two would be right, nobody knows."""
    row, other = _changed(made_tiny, label=999)
    path = write_parquet(hub_dir / "raw-data" / "data" / "train-00001-of-00003.parquet", [other])
    error = _refused(hub_dir)
    assert error.what == f"{path}, row 0: {row['image']['path']!r} has the label of another class"
    assert error.detail == f"expected {row['label']}, got 999"


def test_an_image_that_is_there_twice_is_refused(hub_dir: Path, made_tiny: MadeSet) -> None:
    """In two files, or twice in one: both places are named."""
    rows = hugging_face_rows(made_tiny, "train")[:1]
    data = hub_dir / "raw-data" / "data"
    write_parquet(data / "train-00001-of-00003.parquet", rows)
    error = _refused(hub_dir)
    name = official_name(rows[0]["image"]["path"])[0]
    assert error.what == f"{data} holds {name} twice"
    assert error.detail == "train-00000-of-00003.parquet, row 0 and train-00001-of-00003.parquet, row 0"
    write_parquet(data / "train-00000-of-00003.parquet", rows * 2)
    write_parquet(data / "train-00001-of-00003.parquet", [])
    assert _refused(hub_dir).detail == "train-00000-of-00003.parquet, row 0 and train-00000-of-00003.parquet, row 1"


@pytest.mark.parametrize("engine", ["processes", "threads"])
def test_a_damaged_file_is_refused(hub_dir: Path, engine: str) -> None:
    """By its name, from a worker too."""
    path = hub_dir / "raw-data" / "data" / "validation-00001-of-00003.parquet"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(InputError) as caught:
        convert(Layout(hub_dir), make_engine(engine, 2), PART)
    assert str(path) in caught.value.what


def test_without_pyarrow_the_extra_is_named(hub_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read, and with the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow") as caught:
        convert(Layout(hub_dir), ENGINE, PART)
    assert "imagenet-prep[parquet]" in caught.value.hint


def test_files_that_are_none_of_it_are_left_alone(tmp_path: Path, copy: Path) -> None:
    """Test images, files of other exports and numbers beyond their count, a link to nowhere, a folder."""
    data = tmp_path / "raw-data"
    data.mkdir()
    some = existing(copy, "train-*.parquet")
    for name in ("test-00000-of-00001", "train-00003-of-00003", "train-0-of-3", "train", "train-00000-of-00009"):
        shutil.copy(some[0], data / f"{name}.parquet")
    for path in some[:2]:
        shutil.copy(path, data)
    (data / "train-00002-of-00003.parquet").symlink_to("nowhere")
    (data / "validation-00000-of-00001.parquet").mkdir()
    found = find_source(Layout(tmp_path), "train")
    assert found is not None
    assert found.missing == "train-00002-of-00003.parquet"
    assert find_source(Layout(tmp_path), "validation") is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("n01440764_10026_n01440764.JPEG", ("n01440764_10026.JPEG", "n01440764")),
        ("ILSVRC2012_val_00000293_n01440764.JPEG", ("ILSVRC2012_val_00000293.JPEG", "n01440764")),
        ("n01440764_10026.JPEG", ("", "")),
        ("_n01440764.JPEG", ("", "")),
        ("a_n01440764.JPEG\n", ("", "")),
        ("a_n" + "\u0661" * 8 + ".JPEG", ("", "")),
    ],
)
def test_official_names(name: str, found: tuple[str, str]) -> None:
    """Only what has the form of the copy's names has one."""
    assert official_name(name) == found


def test_progress_counts_files(hub_dir: Path) -> None:
    """Minutes of reading are no silence."""
    bars: dict[str, list[int]] = {}

    class Bars(Silent):
        def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
            self.label = label
            bars[label] = [total or 0, 0]

        def advance(self, count: int = 1) -> None:
            bars[self.label][1] += count

    convert(Layout(hub_dir), ENGINE, PART, progress=Bars())
    read = {label: bar for label, bar in bars.items() if label.startswith("listing")}
    assert list(itertools.chain(*read.values())) == [3, 3, 3, 3]
