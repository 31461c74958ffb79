"""stages.convert: the shards, their resume, and every way in which the input can be wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from existing import existing
from made_sets import ENGINE
from made_tars import pack, unpack
from running import held
from test_hostile_inputs import png

from imagenet_prep import ConvertOptions, Layout, annotate, convert, make_engine
from imagenet_prep.datasets import order
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import (
    BusyError,
    DataProblemsError,
    IncompleteError,
    InputError,
    SpaceError,
    UsageError,
    WriteError,
)
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.images import jpeg
from imagenet_prep.model import Silent
from imagenet_prep.tfrecord import example
from imagenet_prep.tfrecord import framing as tfrecord

PART = ConvertOptions(train_shards=16, validation_shards=8, allow_incomplete=True)


def shard_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every shard by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in existing(folder, "*-of-*")
    }


def stamps(folder: Path) -> dict[str, int]:
    """mtime_ns of every file below ``folder``."""
    return {
        str(path): path.stat().st_mtime_ns for path in existing(folder, "**/*") if path.is_file()
    }


def features_of(shard: Path) -> list[dict[str, example.Feature]]:
    """Every record of a shard, parsed."""
    return [
        example.parse_example(record.data)
        for record in tfrecord.iter_records(memoryview(shard.read_bytes()))
    ]


def text(feature: example.Feature) -> str:
    """The one string of a bytes feature."""
    assert isinstance(feature, example.BytesList)
    return bytes(feature.values[0]).decode()


def replace_member(
    archive: Path, wnid: str, filename: str, change: Callable[[bytes], bytes]
) -> None:
    """Rewrite one image of the train archive."""
    classes = unpack(archive)
    images = unpack(classes[f"{wnid}.tar"])
    images[filename] = change(images[filename])
    archive.write_bytes(pack({**classes, f"{wnid}.tar": pack(images)}))


def test_every_image_stands_once_in_canonical_order_with_its_label_and_bytes(
    data_dir: Path, made: MadeSet
) -> None:
    """The shuffled sorted listing, truly labelled;
    a CMYK JPEG and a PNG become RGB JPEGs of the same size.
    """
    summary = convert(Layout(data_dir), make_engine("processes", 2), PART)
    repaired = {name.split()[0] for split in summary.splits for name in split.repairs}
    assert len(repaired) == 3
    for split in ("train", "validation"):
        images = sorted(made.of(split), key=lambda image: (image.label, image.filename))
        expected = [images[i] for i in order.shuffled(len(images), order.SEED)]
        records = [
            record for path in existing(data_dir, f"{split}-*-of-*") for record in features_of(path)
        ]
        assert [text(record["image/filename"]) for record in records] == [
            image.filename for image in expected
        ]
        for record, image in zip(records, expected, strict=True):
            assert record["image/class/label"] == example.Int64List((image.label,))
            assert text(record["image/class/synset"]) == image.wnid
            assert text(record["image/class/text"]) == facts.texts()[image.wnid]
            assert record["image/height"] == example.Int64List((image.height,))
            assert record["image/width"] == example.Int64List((image.width,))
            data = bytes(record["image/encoded"].values[0])  # type: ignore[arg-type]
            if image.filename in repaired:
                header = jpeg.read_header(data)
                assert (header.width, header.height, header.components) == (
                    image.width,
                    image.height,
                    3,
                )
            else:
                assert hashlib.sha256(data).hexdigest() == image.sha256


@pytest.mark.parametrize(("engine", "workers"), [("processes", 2), ("threads", 5)])
def test_any_number_of_workers_makes_the_same_bytes(
    tiny_data_dir: Path, tmp_path: Path, workers: int, engine: str
) -> None:
    """The shards of 1, 2 and 5 workers, processes or threads, are those of one process."""
    convert(Layout(tiny_data_dir, output=tmp_path / "one"), make_engine("processes", 1), PART)
    convert(Layout(tiny_data_dir, output=tmp_path / "many"), make_engine(engine, workers), PART)
    assert shard_digests(tmp_path / "many") == shard_digests(tmp_path / "one")
    assert len(shard_digests(tmp_path / "one")) == 24


LAST = "validation-00007-of-00008"  # journalled last by a single worker


def torn_journal(layout: Layout) -> None:
    """A journal whose last line is cut."""
    content = layout.journal_path.read_bytes()
    layout.journal_path.write_bytes(content[: content.rindex(b"\n", 0, -1) + 41])


HARM: dict[str, Callable[[Layout], object]] = {
    "delete": lambda layout: layout.shard_path(LAST).unlink(),
    "cut": lambda layout: os.truncate(layout.shard_path(LAST), 2000),
    "torn journal": torn_journal,
    "no index": lambda layout: layout.index_path(LAST).unlink(),
    "empty index": lambda layout: os.truncate(layout.index_path(LAST), 0),
}


@pytest.mark.parametrize("harm", HARM)
def test_only_what_is_missing_is_made_again(tiny_data_dir: Path, harm: str) -> None:
    """A deleted or cut shard, or one whose journal line or index a crash lost,
    is made again, alone, same bytes.
    """
    layout = Layout(tiny_data_dir)
    convert(layout, make_engine("processes", 1), PART)
    before = shard_digests(tiny_data_dir)
    HARM[harm](layout)
    others = {
        name: stamp
        for name, stamp in stamps(tiny_data_dir).items()
        if "-of-" in Path(name).name and LAST not in name
    }
    summary = convert(layout, make_engine("processes", 2), PART)
    assert [split.made for split in summary.splits] == [0, 1]
    assert shard_digests(tiny_data_dir) == before
    assert others.items() <= stamps(tiny_data_dir).items()


def test_an_incomplete_imagenet_is_refused_with_its_gaps(tiny_data_dir: Path) -> None:
    """Without --allow-incomplete nothing is written;
    the error counts what is missing, and names three classes at most. It names copies that
    were not read in lines of their own.
    """
    unread = tiny_data_dir / "raw-data/train/n01440764"
    unread.mkdir(parents=True)
    with pytest.raises(IncompleteError) as caught:
        convert(
            Layout(tiny_data_dir), make_engine("processes", 2), PART.replace(allow_incomplete=False)
        )
    message = "\n".join(caught.value.lines)
    assert "300 of 1,281,167 images" in message
    assert caught.value.hint.endswith("in Python: ConvertOptions(allow_incomplete=True))")
    assert "80 of 50,000 images" in message
    assert "990 classes without an image" in message
    assert "990 classes without an image: " not in message
    assert "raw-data/train was not read: to use it, move" in caught.value.choices[0]
    assert "not read" not in caught.value.detail
    assert len(caught.value.detail) < 240
    assert "--allow-incomplete" in message
    assert not list(tiny_data_dir.glob("*-of-*"))


@pytest.mark.parametrize(
    "harm",
    [
        lambda good: good[: len(good) // 2],
        lambda good: b"",
        lambda good: png(60_000, 60_000, 8, 2, bytes(9)),
    ],
    ids=["truncated", "empty", "bomb"],
)
def test_a_bad_image_is_named_and_its_shard_alone_not_made(
    data_dir: Path, made: MadeSet, harm: Callable[[bytes], bytes]
) -> None:
    """Conversion ends with an error that names the image, its archive and offset;
    all other shards are done.
    """
    image = next(image for image in made.of("train") if image.kind.value == "rgb")
    layout = Layout(data_dir)
    archive = layout.archive_path(facts.ARCHIVES["train"])
    replace_member(archive, image.wnid, image.filename, harm)
    progress = Silent()
    with pytest.raises(DataProblemsError, match=image.filename):
        convert(layout, make_engine("processes", 2), PART, progress=progress)
    assert any(
        image.filename in note and "ILSVRC2012_img_train.tar, byte" in note
        for note in progress.notes
    )
    assert len(list(data_dir.glob("train-*"))) == 15
    assert len(list(data_dir.glob("validation-*"))) == 8
    # With the image set aside everything is made.
    skip = PART.replace(on_damaged="skip")
    progress = Silent()
    summary = convert(layout, ENGINE, skip, progress=progress)
    written = f"{len(made.of('train')) - 1} images"
    assert f"train: Finished writing {written}, 1 set aside." in progress.notes
    assert not any(note.startswith("train: Finished writing all") for note in progress.notes)
    assert [problem.subject for problem in summary.problems] == [image.filename]
    assert summary.splits[0].images == len(made.of("train")) - 1
    assert summary.splits[0].set_aside == 1
    names = {
        text(record["image/filename"])
        for shard in existing(data_dir, "*-of-*")
        for record in features_of(shard)
    }
    assert names == set(made.images) - {image.filename}
    # Without --on-damaged skip again, the shard with the gap does not count as done.
    with pytest.raises(DataProblemsError):
        convert(layout, ENGINE, PART)


@pytest.mark.parametrize(
    "change",
    [lambda options: options.replace(seed=1), lambda options: options.replace(train_shards=8)],
)
def test_changed_settings_are_asked_about_first(
    tiny_data_dir: Path, change: Callable[[ConvertOptions], ConvertOptions]
) -> None:
    """Other settings over finished shards are a usage error;
    with --overwrite the new set stands alone.
    """
    layout = Layout(tiny_data_dir)
    convert(layout, ENGINE, PART)
    before = shard_digests(tiny_data_dir)
    with pytest.raises(UsageError, match="--overwrite"):
        convert(layout, ENGINE, change(PART))
    assert shard_digests(tiny_data_dir) == before
    options = change(PART)
    convert(layout, ENGINE, options.replace(overwrite=True))
    assert len(list(tiny_data_dir.glob("train-*"))) == options.train_shards
    fresh = Layout(tiny_data_dir, output=tiny_data_dir / "fresh")
    convert(fresh, ENGINE, options)
    assert shard_digests(tiny_data_dir) == shard_digests(tiny_data_dir / "fresh")


def test_a_changed_boxes_file_remakes_only_the_shards_it_touches(tiny_data_dir: Path) -> None:
    """One more box touches one shard; the others keep their files."""
    layout = Layout(tiny_data_dir)
    annotate(layout, ENGINE)
    convert(layout, ENGINE, PART)
    before = shard_digests(tiny_data_dir)
    lines = layout.boxes_csv.read_text().splitlines()
    layout.boxes_csv.write_text("\n".join(lines[1:]) + "\n")
    layout.annotate_path.unlink()  # otherwise the file is not the one that annotate wrote
    with pytest.raises(UsageError, match=r"1 .*shard .*other inputs"):
        convert(layout, ENGINE, PART)
    summary = convert(layout, ENGINE, PART.replace(overwrite=True))
    assert sum(split.made for split in summary.splits) == 1
    after = shard_digests(tiny_data_dir)
    assert sum(after[name] != before[name] for name in before) == 1


def test_shards_of_someone_else_are_never_replaced(tiny_data_dir: Path) -> None:
    """A file under a shard's name that no run of ours made is refused, and left as it is."""
    stranger = tiny_data_dir / "train-00003-of-00016"
    stranger.write_bytes(b"from 2016")
    with pytest.raises(UsageError, match="the shard train-00003-of-00016, which no"):
        convert(Layout(tiny_data_dir), make_engine("processes", 2), PART)
    assert stranger.read_bytes() == b"from 2016"
    assert list(tiny_data_dir.glob("*-of-*")) == [stranger]


@pytest.mark.parametrize(
    ("failing", "times", "number"),
    [
        ("fsync", 1, errno.EIO),
        ("replace", 1, errno.EIO),
        ("fsync", 100, errno.EIO),
        ("fsync", 1, errno.ENOSPC),
    ],
)
def test_a_failing_fsync_or_rename_is_tried_once_more(
    tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch, failing: str, times: int, number: int
) -> None:
    """One failure costs a second try; two, or a full disk, end the run,
    and no shard counts as done that isn't.
    """
    true_fsync, true_replace = os.fsync, Path.replace
    left = [times]

    def fail(kind: str, path: str) -> None:
        if kind == failing and "/partial/" in path and "/train-00002" in path and left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number))

    def fsync(descriptor: int) -> None:
        fail("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        true_fsync(descriptor)

    def rename(self: Path, target: Path) -> Path:
        fail("replace", str(self))
        return true_replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", rename)
    layout = Layout(tiny_data_dir)
    if (times, number) == (1, errno.EIO):
        convert(layout, make_engine("threads", 2), PART)
        assert len(list(tiny_data_dir.glob("*-of-*"))) == 24
    else:
        with pytest.raises(
            WriteError if number == errno.EIO else SpaceError, match="train-00002-of-00016"
        ) as caught:
            convert(layout, make_engine("threads", 2), PART)
        assert number == errno.ENOSPC or os.strerror(number) in caught.value.detail
        assert not layout.shard_path("train-00002-of-00016").exists()
        assert len(list(tiny_data_dir.glob("train-*"))) == 15


@pytest.mark.parametrize("small_disk", ["16m"], indirect=True)
def test_a_full_disk_keeps_what_is_finished_and_goes_on_later(
    data_dir: Path, small_disk: Path
) -> None:
    """With too little space the run is refused at the start; filled up on the way it is exit 7;
    freed, it goes on.

    Images that are to be smaller are not taken for what they are now.
    """
    layout, engine = Layout(data_dir, output=small_disk), make_engine("processes", 2)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12 << 20))
    for options in (PART, PART.replace(quality=90)):
        with pytest.raises(SpaceError, match="not enough space"):
            convert(layout, engine, options)
    convert(Layout(data_dir, output=small_disk / "smaller"), engine, PART.replace(resize=32))
    shutil.rmtree(small_disk / "smaller")
    ballast.unlink()
    with pytest.MonkeyPatch.context() as patch:
        # The estimate held at the start, then another program fills the disk.
        fill = ballast.write_bytes
        patch.setattr(
            "imagenet_prep.stages.convert.refuse_lack", lambda *_, **__: fill(bytes(12 << 20))
        )
        with pytest.raises(SpaceError, match="no space left"):
            convert(layout, engine, PART)
    finished = shard_digests(small_disk)
    ballast.unlink()
    convert(layout, engine, PART)
    assert finished.items() <= shard_digests(small_disk).items()
    convert(Layout(data_dir), engine, PART)
    assert shard_digests(small_disk) == shard_digests(data_dir)


def test_finished_shards_without_a_source_are_kept_whatever_the_options(
    tiny_data_dir: Path,
) -> None:
    """With the validation archive gone, its shards are neither removed nor called outdated,
    --overwrite or not.
    """
    layout = Layout(tiny_data_dir)
    convert(layout, ENGINE, PART)
    before = shard_digests(tiny_data_dir)
    layout.archive_path(facts.ARCHIVES["validation"]).unlink()
    for options in (
        PART,
        PART.replace(overwrite=True),
        PART.replace(overwrite=True, train_shards=8),
    ):
        with pytest.raises(UsageError, match=r"raw data .*missing"):
            convert(layout, ENGINE, options)
    assert shard_digests(tiny_data_dir) == before


def test_an_output_folder_has_one_run_at_a_time(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Two DATA_DIRs with one --output exclude each other, as do that folder's own runs."""
    output = tmp_path / "out"
    with held(*Layout(tmp_path / "other", output=output).lock_paths) as holder:
        for layout in (Layout(tiny_data_dir, output=output), Layout(output)):
            with pytest.raises(BusyError, match=str(holder)):
                convert(layout, make_engine("processes", 1), PART)


def test_an_interrupted_overwrite_leaves_one_set_and_no_stale_manifest(
    tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards of the former count and the manifest that recorded them are
    gone before the first new shard stands.
    """
    layout = Layout(tiny_data_dir)
    convert(layout, ENGINE, PART)
    monkeypatch.setattr(
        "imagenet_prep.stages.convert.make_shards", Mock(side_effect=KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        convert(layout, ENGINE, PART.replace(train_shards=8, overwrite=True))
    assert not layout.manifest_path.exists()
    assert not list(tiny_data_dir.glob("train-*-of-00016"))
    assert len(list(tiny_data_dir.glob("validation-*-of-00008"))) == 8


def test_a_command_that_fails_at_once_leaves_no_folder(tmp_path: Path) -> None:
    """A mistyped DATA_DIR is not created."""
    with pytest.raises(InputError):
        convert(Layout(tmp_path / "tpyo" / "deep"), make_engine("processes", 1), PART)
    assert not list(tmp_path.iterdir())
