"""untar: archives become class folders, whole or not at all;
hostile archives write nothing outside.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from copies_of_imagenet import write_hugging_face
from existing import existing
from made_tars import member, pack

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError, PrepError, SpaceError, UsageError, WriteError
from imagenet_prep.hints import parts_of
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, SPLITS, TRAIN, VALIDATION
from imagenet_prep.model import Silent
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.stages import untar as untar_module
from imagenet_prep.stages.untar import UntarSplit, untar
from imagenet_prep.storage.durable import sync_file_system
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

WNID = "n01440764"
FIRST, SECOND = f"{WNID}_1.JPEG", f"{WNID}_2.JPEG"


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, links by where they lead."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in existing(folder, "**/*")
        if path.is_symlink() or path.is_file()
    }


def expected(made: MadeSet) -> dict[str, str]:
    """What raw-data must hold besides the archives."""
    return {
        f"{image.split}/{image.wnid}/{image.filename}": image.sha256
        for image in made.images.values()
    }


def images(layout: Layout) -> dict[str, str]:
    """What raw-data holds besides the archives."""
    return {name: digest for name, digest in tree(layout.raw_dir).items() if "/" in name}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A DATA_DIR with an empty raw-data."""
    layout = Layout(tmp_path / "data")
    layout.raw_dir.mkdir(parents=True)
    return layout


def write_train(layout: Layout, inner: bytes, name: str = f"{WNID}.tar") -> Path:
    """A train archive of one class."""
    path = layout.archive_path(ARCHIVES[TRAIN])
    path.write_bytes(pack([(name, inner)]))
    return path


def refused(layout: Layout, kind: type[PrepError] = InputError) -> PrepError:
    """The error that untar raises."""
    with pytest.raises(kind) as caught:
        untar(layout, ThreadEngine(1))
    assert len(str(caught.value).splitlines()) <= 3
    return caught.value


@pytest.mark.parametrize(
    "engine", [ProcessEngine(2), ThreadEngine(3)], ids=["processes", "threads"]
)
def test_every_image_comes_to_its_class_folder(
    engine: ProcessEngine | ThreadEngine,
    tiny_data_dir: Path,
    made_tiny: MadeSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both levels of train, and validation by its true classes,
    come out byte for byte, and nothing else is left.
    """
    monkeypatch.setattr(untar_module, "_SYNC_SECONDS", 0.0)  # moved as soon as it is finished
    layout = Layout(tiny_data_dir)
    summary = untar(layout, engine)
    assert images(layout) == expected(made_tiny)
    assert summary.splits == (UntarSplit(TRAIN, 10, 300, 300), UntarSplit(VALIDATION, 10, 80, 80))
    assert sorted(path.name for path in existing(layout.raw_dir, "*") if path.is_dir()) == [
        TRAIN,
        VALIDATION,
    ]


def test_what_is_missing_or_cut_is_written_again(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """A lost folder, a lost file, a cut file and a link in a file's place are mended;
    the others stay untouched.
    """
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(2))
    files = sorted(layout.images_dir(TRAIN).rglob("*.JPEG"))
    shutil.rmtree(layout.images_dir(VALIDATION) / made_tiny.of(VALIDATION)[0].wnid)
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-1])
    target = tiny_data_dir / "target"
    target.write_bytes(bytes(files[2].stat().st_size))  # of the right size
    files[2].unlink()
    files[2].symlink_to(target)
    kept = {path: path.stat().st_mtime_ns for path in files[3:]}
    summary = untar(layout, ThreadEngine(2))
    assert images(layout) == expected(made_tiny)
    assert set(target.read_bytes()) == {0}
    assert summary.splits[0].written == 3
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


HOSTILE = {
    "parent": [(f"../{FIRST}", b"x")],
    "absolute": [("/tmp/n01440764_1.JPEG", b"x")],
    "folder": [(f"more/{FIRST}", b"x")],
    "odd-bytes": [(f"{WNID}_\udcff.JPEG", b"x")],
    "newline": [(f"{WNID}_1\n.JPEG", b"x")],
    "long": [(f"{WNID}_{'1' * 300}.JPEG", b"x")],
    "other-class": [("n01443537_1.JPEG", b"x")],
    "no-image": [("README", b"x")],
    "twice": [(FIRST, b"x"), (SECOND, b"y"), (FIRST, b"z")],
    "symlink": [(member(FIRST, tarfile.SYMTYPE, "/etc/passwd"), b"")],
    "symlink-then-file": [(member(FIRST, tarfile.SYMTYPE, "../../../stolen"), b""), (FIRST, b"x")],
    "fifo": [(member(FIRST, tarfile.FIFOTYPE), b"")],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_members_are_refused_and_write_nothing(
    case: str, layout: Layout, tmp_path: Path
) -> None:
    """A member that is no image of its class ends with exit status 4,
    archive and offset, and nothing is written.
    """
    archive = write_train(layout, pack(HOSTILE[case]))
    before = tree(tmp_path)
    error = refused(layout)
    assert error.exit_code == 4
    assert str(archive) in error.what
    offset = {"long": "1,536", "twice": "2,560"}.get(case, "512")
    assert error.what.endswith(f"at byte {offset}")
    assert (
        case != "twice"
        or error.what == f"{archive} holds {FIRST} twice, at byte 512 and again at byte 2,560"
    )
    assert tree(tmp_path) == before
    assert not layout.images_dir(TRAIN).exists()


def test_damage_is_named_by_archive_and_byte(layout: Layout) -> None:
    """A wrong checksum in an inner tar, or an archive cut at a member boundary,
    is exit status 4 with the byte.
    """
    inner = bytearray(pack([(FIRST, b"x" * 512), (SECOND, b"y" * 512)]))
    inner[1024] ^= 1
    archive = write_train(layout, bytes(inner))
    error = refused(layout)
    assert (error.exit_code, error.what) == (4, f"{archive} ({WNID}.tar) is damaged at byte 1,536")
    assert "the header of a file" in error.detail
    assert "imagenet-prep download" in error.hint
    content = archive.read_bytes()
    archive.write_bytes(content[:-10240])
    assert "damaged at byte" in refused(layout).what
    archive.write_bytes(b"")
    assert refused(layout).what == f"{archive} is empty"
    assert not layout.images_dir(TRAIN).exists()


@pytest.mark.parametrize(
    "where", ["train", f"train/{WNID}", ".partial", ".partial/train", f".partial/train/{WNID}"]
)
def test_nothing_is_written_through_links(where: str, layout: Layout, tmp_path: Path) -> None:
    """A link in place of a folder that untar writes to is refused;
    a linked raw-data is the user's own choice.
    """
    write_train(layout, pack([(FIRST, b"x")]))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = layout.raw_dir / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    error = refused(layout, UsageError)
    assert error.exit_code == 2
    assert error.what == f"{link} is a link"
    assert list(elsewhere.iterdir()) == []
    link.unlink()
    layout.raw_dir.rename(tmp_path / "moved")
    layout.raw_dir.symlink_to(tmp_path / "moved")
    assert untar(layout, ThreadEngine(1)).written == 1


def test_a_missing_archive_is_said(tiny_data_dir: Path) -> None:
    """With one archive the other split is left out and that is said;
    with none the error says how to get them.
    """
    layout = Layout(tiny_data_dir)
    layout.archive_path(ARCHIVES[VALIDATION]).unlink()
    in_its_place = layout.archive_path(ARCHIVES[VALIDATION])
    in_its_place.mkdir()
    assert refused(layout).what == f"{in_its_place} is a folder"
    in_its_place.rmdir()
    progress = Silent()
    assert [split.split for split in untar(layout, ThreadEngine(1), progress=progress).splits] == [
        TRAIN
    ]
    assert progress.notes[0] == (
        f"validation: skipped, because {layout.raw_dir} has no file ILSVRC2012_img_val.tar, "
        "and no other archive of its images"
    )
    layout.archive_path(ARCHIVES[TRAIN]).unlink()
    shutil.rmtree(layout.images_dir(TRAIN))
    assert refused(layout).hint.startswith(f"imagenet-prep download {tiny_data_dir}    ")


def test_an_archive_in_data_dir_itself_is_named_and_the_advice_moves_it(
    tiny_data_dir: Path, tmp_path: Path
) -> None:
    """The archives are there, so the advice is no download of them."""
    data_dir = tmp_path / "data"
    (tiny_data_dir / "raw-data").rename(data_dir)
    for _ in range(2):
        fault = refused(Layout(data_dir))
        assert " is not in the folder of raw data" in fault.what
        subprocess.run(parts_of(fault.hint)[0], shell=True, check=True)
    assert untar(Layout(data_dir), ThreadEngine(1)).written > 0


def test_images_in_folders_need_no_archive(tiny_data_dir: Path) -> None:
    """The archives may be removed after untar: nothing is left to do, and no download is advised."""
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(1))
    for split in SPLITS:
        layout.archive_path(ARCHIVES[split]).unlink()
    progress = Silent()
    assert untar(layout, ThreadEngine(1), progress=progress).splits == ()
    assert progress.notes == [
        f"{split}: skipped, because its images are in folders: {layout.images_dir(split)}"
        for split in SPLITS
    ]


def test_a_full_disk_is_exit_7_and_the_next_run_goes_on(small_disk: Path, tmp_path: Path) -> None:
    """Too little space is found before the start, or at the write that fails;
    then no folder is partly there.
    """
    archives = Layout(tmp_path / "archives")
    archives.raw_dir.mkdir(parents=True)
    write_train(
        archives, pack([(f"{WNID}_{number}.JPEG", os.urandom(200_000)) for number in range(8)])
    )
    layout = Layout(small_disk, raw=archives.raw_dir)
    error = refused(layout, SpaceError)
    assert error.exit_code == 7
    assert "not enough space" in error.what
    assert not layout.images_dir(TRAIN).exists()
    (layout.images_dir(TRAIN) / WNID).mkdir(
        parents=True
    )  # a class with a folder counts as whole in the estimate
    assert "no space left while writing" in refused(layout, SpaceError).what
    assert list((layout.images_dir(TRAIN) / WNID).iterdir()) == []
    kept = len(list((layout.raw_partial_dir / TRAIN / WNID).iterdir()))
    assert kept >= 3
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    assert untar(layout, ThreadEngine(1)).splits[0].images == 8
    assert len(list((layout.images_dir(TRAIN) / WNID).iterdir())) == 8


def test_a_refused_untar_removes_nothing(small_disk: Path, tmp_path: Path) -> None:
    """What a killed run left stays where there is no space,
    and counts as free where it goes first.
    """
    archives = Layout(tmp_path / "archives")
    archives.raw_dir.mkdir(parents=True)
    write_train(
        archives, pack([(f"{WNID}_{number}.JPEG", os.urandom(200_000)) for number in range(8)])
    )
    layout = Layout(small_disk, raw=archives.raw_dir)
    left = layout.raw_partial_dir / TRAIN / WNID / FIRST
    left.parent.mkdir(parents=True)
    left.write_bytes(bytes(900_000))
    assert "not enough space" in refused(layout, SpaceError).what
    assert left.stat().st_size == 900_000
    subprocess.run(["mount", "-o", "remount,size=2100k", small_disk], check=True)
    assert untar(layout, ThreadEngine(1)).splits[0].images == 8
    assert not left.exists()


def test_a_class_whose_worker_was_killed_is_tried_again(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the killed worker left of the class is removed first."""
    write_train(layout, pack([(f"{WNID}_{number}.JPEG", b"%d" % number) for number in range(8)]))
    killed, write_rows = layout.data_dir / "killed", untar_module.write_rows

    def write(*given: Any) -> Iterator[int]:
        for number, row in enumerate(write_rows(*given)):
            if number == 3 and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield row

    monkeypatch.setattr(untar_module, "write_rows", write)
    assert untar(layout, ProcessEngine(1)).splits[0].images == 8
    assert killed.exists()
    assert len(images(layout)) == 8


@pytest.mark.parametrize("moment", ["before", "at the move", "no right to write"])
def test_a_folder_that_cannot_be_written_stops_no_other(
    moment: str, tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of one class, or a folder of one class without the right to write,
    stops no other class.
    """
    layout = Layout(tiny_data_dir)
    final = layout.images_dir(TRAIN) / made_tiny.wnids[4]
    final.parent.mkdir()
    if moment == "before":
        final.write_bytes(b"in the way")
    elif moment == "no right to write":
        final.mkdir()
        replace = Path.replace

        def refuse(path: Path, target: Path) -> Path:
            if target.parent == final:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return replace(path, target)

        monkeypatch.setattr(Path, "replace", refuse)
    else:
        sync = sync_file_system
        monkeypatch.setattr(
            untar_module,
            "sync_file_system",
            lambda folder: (sync(folder), final.write_bytes(b"in the way")),
        )
    assert refused(layout, WriteError).what == f"cannot write {final}"
    final.rmdir() if final.is_dir() else final.unlink()
    train = f"{TRAIN}/{final.name}/"
    assert {
        name: digest for name, digest in images(layout).items() if not name.startswith(".partial/")
    } == {
        name: digest for name, digest in expected(made_tiny).items() if not name.startswith(train)
    }
    monkeypatch.undo()
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)


def test_a_folder_in_the_way_of_a_copy_in_order_stops_no_other(
    tmp_path: Path, made_tiny: MadeSet
) -> None:
    """From parquet files, too, a file in the place of one class is named,
    and every other class is written.
    """
    layout = Layout(tmp_path)
    write_hugging_face(layout.own_raw_dir, made_tiny)
    obstacle = layout.own_raw_dir / ".partial/train" / made_tiny.wnids[4]
    obstacle.parent.mkdir(parents=True)
    obstacle.write_bytes(b"in the way")
    assert refused(layout, WriteError).what == f"{obstacle} is a file"
    obstacle.unlink()
    others = {
        name: digest
        for name, digest in expected(made_tiny).items()
        if f"train/{obstacle.name}/" not in name
    }
    assert images(layout) == others
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)


def test_a_copy_in_order_that_fails_is_not_called_done(
    tmp_path: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both splits of parquet files stop at a fault: of neither are all other classes done."""

    def fail(*_: Any) -> Iterator[int]:
        raise InputError("damaged")
        yield 0

    monkeypatch.setattr(untar_module, "write_rows", fail)
    layout = Layout(tmp_path)
    write_hugging_face(layout.own_raw_dir, made_tiny)
    progress = Silent()
    with pytest.raises(InputError, match="damaged"):
        untar(layout, ThreadEngine(1), progress=progress)
    assert progress.notes[-1] == "2 errors; finished class folders are kept. The first error:"
    assert images(layout) == {}


def test_an_archive_that_changes_under_the_work_is_noticed(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed between two images of a class, it is not called damaged, nor is it used."""
    contents = pack([(FIRST, b"x" * 700), (SECOND, b"y" * 700)])
    archive, copy = write_train(layout, contents), FileSlices.copy

    def copy_then_change(view: FileSlices, *given: int) -> None:
        copy(view, *given)
        stamp = archive.stat().st_mtime_ns + 1
        archive.write_bytes(b"?" * archive.stat().st_size)
        os.utime(archive, ns=(stamp, stamp))

    monkeypatch.setattr(FileSlices, "copy", copy_then_change)
    assert refused(layout).what == f"{archive} has changed since it was first looked at"
    assert not layout.images_dir(TRAIN).exists()
    monkeypatch.undo()
    write_train(layout, contents)
    assert untar(layout, ThreadEngine(1)).written == 2
    assert (layout.images_dir(TRAIN) / WNID / SECOND).read_bytes() == b"y" * 700


@pytest.mark.parametrize("failing", ["sync_file_system", "fsync_dir"])
def test_a_sync_that_fails_is_an_error(
    failing: str, tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the disk did not take is not called done; without its sync, nothing is moved."""
    layout = Layout(tiny_data_dir)

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))

    monkeypatch.setattr(untar_module, failing, fail)
    assert "raw-data" in refused(layout, WriteError).what
    assert layout.images_dir(TRAIN).exists() == (failing == "fsync_dir")
    monkeypatch.undo()
    copied: list[int] = []
    copy = FileSlices.copy
    monkeypatch.setattr(FileSlices, "copy", lambda *given: (copied.append(1), copy(*given)))
    untar(layout, ThreadEngine(2))
    if failing == "sync_file_system":  # nothing that the disk may not have taken is kept
        assert len(copied) == len(made_tiny.images)
    assert images(layout) == expected(made_tiny)


@pytest.mark.parametrize("said", ["can't be read", "is not a tar, or is damaged at byte 0"])
def test_an_archive_that_cannot_be_read_is_named(
    said: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails, or an archive that is cut just then,
    is the archive's error, not that of the folder.
    """
    archive = write_train(layout, pack([(FIRST, b"x")]))

    def pread(*_: int) -> bytes:
        if "damaged" in said:
            return b""
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", pread)
    assert refused(layout).what == f"{archive} {said}"
