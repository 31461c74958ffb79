"""untar: archives become class folders, whole or not at all; hostile archives write nothing outside."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from copies_of_imagenet import write_hugging_face
from existing import existing
from made_tars import member, pack

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import ThreadEngine
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.errors import (
    DataProblemsError,
    InputError,
    PrepError,
    SpaceError,
    UsageError,
    WorkerError,
    WriteError,
)
from imagenet_prep.ilsvrc2012.facts import ARCHIVES, TRAIN, VALIDATION
from imagenet_prep.model import Silent
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.stages import untar as untar_module
from imagenet_prep.stages.untar import UntarSplit, untar
from imagenet_prep.storage.durable import fsync_dir, sync_file_system
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


def times(folder: Path) -> dict[str, int]:
    """The time of every file and folder below a folder."""
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


def expected(made: MadeSet) -> dict[str, str]:
    """What raw-data must hold besides the archives."""
    return {f"{image.split}/{image.wnid}/{image.filename}": image.sha256 for image in made.images.values()}


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


@pytest.mark.parametrize("engine", [ProcessEngine(2), ThreadEngine(3)], ids=["processes", "threads"])
def test_every_image_comes_to_its_class_folder(
    engine: ProcessEngine | ThreadEngine, tiny_data_dir: Path, made_tiny: MadeSet
) -> None:
    """Both levels of train, and validation by its true classes, come out byte for byte, and nothing else is left."""
    layout = Layout(tiny_data_dir)
    summary = untar(layout, engine)
    assert images(layout) == expected(made_tiny)
    assert summary.splits == (UntarSplit(TRAIN, 10, 300, 300), UntarSplit(VALIDATION, 10, 80, 80))
    assert sorted(path.name for path in existing(layout.raw_dir, "*") if path.is_dir()) == [TRAIN, VALIDATION]


def test_second_run_touches_nothing(tiny_data_dir: Path) -> None:
    """When all is there, no file and no folder of raw-data is written."""
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(2))
    before = times(layout.raw_dir)
    summary = untar(layout, ThreadEngine(2))
    assert times(layout.raw_dir) == before
    assert (summary.written, [split.images for split in summary.splits]) == (0, [300, 80])


def test_what_is_missing_or_cut_is_written_again(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """A lost folder, a lost file, a cut file and a link in a file's place are mended; the others stay untouched."""
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(2))
    files = sorted(layout.images_dir(TRAIN).rglob("*.JPEG"))
    shutil.rmtree(layout.images_dir(VALIDATION) / made_tiny.of(VALIDATION)[0].wnid)
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-1])
    files[2].unlink()
    target = tiny_data_dir / "target"
    target.write_bytes(b"mine")
    files[2].symlink_to(target)
    kept = {path: path.stat().st_mtime_ns for path in files[3:]}
    summary = untar(layout, ThreadEngine(2))
    assert images(layout) == expected(made_tiny)
    assert target.read_bytes() == b"mine"
    assert summary.splits[0].written == 3
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_folder_that_a_crash_left_is_made_anew(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """Of a class that a crash left half done nothing is kept: whole, cut, lost, strange or empty in its full size."""
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(1))
    final = layout.images_dir(TRAIN) / made_tiny.wnids[0]
    partial = layout.raw_partial_dir / TRAIN / final.name
    partial.parent.mkdir(parents=True)
    final.rename(partial)
    whole, cut, lost, empty, *_ = sorted(partial.iterdir())
    inode = whole.stat().st_ino
    os.link(whole, tiny_data_dir / "keeps-the-inode")
    empty.write_bytes(bytes(empty.stat().st_size))  # the size was on the disk when the power went, the content not
    cut.write_bytes(cut.read_bytes()[:100])
    lost.unlink()
    (partial / "stray").write_bytes(b"?")
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)
    assert (final / whole.name).stat().st_ino != inode
    assert not layout.raw_partial_dir.exists()


def test_a_crash_between_two_moves_is_mended(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """A partial folder whose files have all been moved, or some of them, ends as if nothing had happened."""
    layout = Layout(tiny_data_dir)
    untar(layout, ThreadEngine(1))
    first, second = (layout.raw_partial_dir / TRAIN / wnid for wnid in made_tiny.wnids[:2])
    first.mkdir(parents=True)
    second.mkdir()
    for path in sorted((layout.images_dir(TRAIN) / second.name).iterdir())[:5]:
        path.rename(second / path.name)
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)
    assert not layout.raw_partial_dir.exists()


UNTAR = """
import sys
from pathlib import Path
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.storage.layout import Layout
from imagenet_prep.stages import untar
untar._SYNC_SECONDS = 0.0
print("begins", flush=True)
untar.untar(Layout(Path(sys.argv[1])), ProcessEngine(2))
"""


def begin_untar(data_dir: Path) -> subprocess.Popen[bytes]:
    """A process that has just begun to untar, and moves each class as soon as it is finished."""
    process = subprocess.Popen(
        [sys.executable, "-c", UNTAR, str(data_dir)], start_new_session=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begins\n"
    process.stdout.close()
    return process


def test_kills_in_a_row_leave_the_tree_of_an_unbroken_run(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """After kill -9 at eight random moments, one after the other, a last run ends with the tree of an unbroken one."""
    layout = Layout(tiny_data_dir)
    begin = time.monotonic()
    assert begin_untar(tiny_data_dir).wait() == 0
    took = time.monotonic() - begin
    draw = random.Random(8)
    met = tries = 0
    while met < 8:
        tries += 1
        assert tries < 80, "the kills come too late"
        shutil.rmtree(layout.images_dir(draw.choice((TRAIN, VALIDATION))), ignore_errors=True)
        process = begin_untar(tiny_data_dir)
        time.sleep(draw.random() * took / 2)
        met += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for name, digest in images(layout).items():  # under a final name, a file is whole at every moment
            assert name.startswith(".partial/") or expected(made_tiny)[name] == digest
    untar(layout, ThreadEngine(2))
    assert images(layout) == expected(made_tiny)
    assert not layout.raw_partial_dir.exists()


HOSTILE = {
    "parent": [(f"../{FIRST}", b"x")],
    "absolute": [("/tmp/n01440764_1.JPEG", b"x")],
    "inside": [(f"{WNID}_1.JPEG/../../{FIRST}", b"x")],
    "folder": [(f"{WNID}/{FIRST}", b"x")],
    "odd-bytes": [(f"{WNID}_\udcff.JPEG", b"x")],
    "newline": [(f"{WNID}_1\n.JPEG", b"x")],
    "digits": [(f"{WNID}_\u0661.JPEG", b"x")],
    "long": [(f"{WNID}_{'1' * 300}.JPEG", b"x")],
    "other-class": [("n01443537_1.JPEG", b"x")],
    "no-image": [("README", b"x")],
    "twice": [(FIRST, b"x"), (SECOND, b"y"), (FIRST, b"z")],
    "symlink": [(member(FIRST, tarfile.SYMTYPE, "/etc/passwd"), b"")],
    "symlink-then-file": [(member(FIRST, tarfile.SYMTYPE, "../../../stolen"), b""), (FIRST, b"x")],
    "hard-link": [(member(FIRST, tarfile.LNKTYPE, "/etc/passwd"), b"")],
    "device": [(member(FIRST, tarfile.CHRTYPE), b"")],
    "fifo": [(member(FIRST, tarfile.FIFOTYPE), b"")],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_members_are_refused_and_write_nothing(case: str, layout: Layout, tmp_path: Path) -> None:
    """A member that is no image of its class ends with exit status 4, archive and offset, and nothing is written."""
    archive = write_train(layout, pack(HOSTILE[case]))
    before = tree(tmp_path)
    error = refused(layout)
    assert error.exit_code == 4
    assert str(archive) in error.what
    offset = {"long": "1,536", "twice": "2,560"}.get(case, "512")
    assert error.what.endswith(f"at byte {offset}")
    assert case != "twice" or error.what == f"{archive} holds {FIRST} twice, at byte 512 and again at byte 2,560"
    assert tree(tmp_path) == before
    assert not layout.images_dir(TRAIN).exists()


def test_a_nul_in_a_name_is_refused(layout: Layout, tmp_path: Path) -> None:
    """A name that pax extends beyond a NUL byte is no image's name."""
    info = member(FIRST)
    info.pax_headers = {"path": f"{FIRST}\0/../evil"}
    write_train(layout, pack([(info, b"")], tarfile.PAX_FORMAT))
    assert "foreign to this data set" in refused(layout).what
    assert not layout.images_dir(TRAIN).exists()


def test_damage_is_named_by_archive_and_byte(layout: Layout) -> None:
    """A wrong checksum in an inner tar, or an archive cut at a member boundary, is exit status 4 with the byte."""
    inner = bytearray(pack([(FIRST, b"x" * 512), (SECOND, b"y" * 512)]))
    inner[1024] ^= 1
    archive = write_train(layout, bytes(inner))
    error = refused(layout)
    assert (error.exit_code, error.what) == (4, f"{archive} ({WNID}.tar) is damaged at byte 1,536")
    assert "checksum" in error.detail
    assert "imagenet-prep download" in error.hint
    content = archive.read_bytes()
    archive.write_bytes(content[:-10240])
    assert "damaged at byte" in refused(layout).what
    archive.write_bytes(b"")
    assert "damaged at byte 0" in refused(layout).what
    assert not layout.images_dir(TRAIN).exists()


@pytest.mark.parametrize("where", ["train", f"train/{WNID}", ".partial", ".partial/train", f".partial/train/{WNID}"])
def test_nothing_is_written_through_links(where: str, layout: Layout, tmp_path: Path) -> None:
    """A link in place of a folder that untar writes to is refused; a linked raw-data is the user's own choice."""
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


def test_other_raw_folder_is_only_read(tiny_data_dir: Path, tmp_path: Path, made_tiny: MadeSet) -> None:
    """With another folder to read from, the images go to DATA_DIR and that folder stays as it is."""
    raw_dir = Layout(tiny_data_dir).raw_dir
    before = times(raw_dir)
    layout = Layout(tmp_path / "other", raw=raw_dir)
    untar(layout, ThreadEngine(2))
    assert tree(layout.own_raw_dir) == expected(made_tiny)
    assert times(raw_dir) == before


def test_a_missing_archive_is_said(tiny_data_dir: Path) -> None:
    """With one archive the other split is left out and that is said; with none the error says how to get them."""
    layout = Layout(tiny_data_dir)
    layout.archive_path(ARCHIVES[VALIDATION]).unlink()
    progress = Silent()
    assert [split.split for split in untar(layout, ThreadEngine(1), progress=progress).splits] == [TRAIN]
    assert "ILSVRC2012_img_val.tar" in progress.notes[0]
    layout.archive_path(ARCHIVES[TRAIN]).unlink()
    assert refused(layout).hint == f"imagenet-prep download {tiny_data_dir}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB, where this machine lets a test mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("mounting a tmpfs takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_exit_7_and_the_next_run_goes_on(small_disk: Path, tmp_path: Path) -> None:
    """Too little space is found before the start, or at the write that fails; then no folder is partly there."""
    archives = Layout(tmp_path / "archives")
    archives.raw_dir.mkdir(parents=True)
    write_train(archives, pack([(f"{WNID}_{number}.JPEG", os.urandom(50_000)) for number in range(8)]))
    layout = Layout(small_disk, raw=archives.raw_dir)
    error = refused(layout, SpaceError)
    assert error.exit_code == 7
    assert "not enough space" in error.what
    assert not layout.images_dir(TRAIN).exists()
    (layout.images_dir(TRAIN) / WNID).mkdir(parents=True)  # a class with a folder counts as whole in the estimate
    assert "no space left while writing" in refused(layout, SpaceError).what
    assert list((layout.images_dir(TRAIN) / WNID).iterdir()) == []
    kept = len(list((layout.raw_partial_dir / TRAIN / WNID).iterdir()))
    assert kept >= 3
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    assert untar(layout, ThreadEngine(1)).splits[0].images == 8
    assert len(list((layout.images_dir(TRAIN) / WNID).iterdir())) == 8


def test_a_place_that_cannot_be_written_is_named(layout: Layout) -> None:
    """A file where a class folder belongs is an error that names it, not a traceback."""
    write_train(layout, pack([(FIRST, b"x")]))
    layout.images_dir(TRAIN).mkdir()
    (layout.images_dir(TRAIN) / WNID).write_bytes(b"in the way")
    assert refused(layout, WriteError).what == f"cannot write {layout.images_dir(TRAIN) / WNID}"


@pytest.mark.parametrize("moment", ["before", "at the move", "no right to write"])
def test_a_folder_that_cannot_be_written_stops_no_other(
    moment: str, tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of one class, or a folder of one class without the right to write, stops no other class."""
    layout = Layout(tiny_data_dir)
    final = layout.images_dir(TRAIN) / made_tiny.wnids[4]
    final.parent.mkdir()
    kind: type[PrepError] = WriteError
    if moment == "before":
        final.write_bytes(b"in the way")
    elif moment == "no right to write":
        kind = InputError
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
            untar_module, "sync_file_system", lambda folder: (sync(folder), final.write_bytes(b"in the way"))
        )
    assert refused(layout, kind).what == f"cannot write {final}"
    final.rmdir() if final.is_dir() else final.unlink()
    train = f"{TRAIN}/{final.name}/"
    assert {name: digest for name, digest in images(layout).items() if not name.startswith(".partial/")} == {
        name: digest for name, digest in expected(made_tiny).items() if not name.startswith(train)
    }
    monkeypatch.undo()
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)


@pytest.mark.parametrize("place", ["train", ".partial/train"])
def test_a_folder_in_the_way_of_a_copy_in_order_stops_no_other(place: str, tmp_path: Path, made_tiny: MadeSet) -> None:
    """From parquet files, too, a file in the place of one class is named, and every other class is written."""
    layout = Layout(tmp_path)
    write_hugging_face(layout.own_raw_dir, made_tiny)
    obstacle = layout.own_raw_dir / place / made_tiny.wnids[4]
    obstacle.parent.mkdir(parents=True)
    obstacle.write_bytes(b"in the way")
    assert refused(layout, WriteError).what == f"cannot write {obstacle}"
    obstacle.unlink()
    others = {name: digest for name, digest in expected(made_tiny).items() if f"train/{obstacle.name}/" not in name}
    assert images(layout) == others
    untar(layout, ThreadEngine(1))
    assert images(layout) == expected(made_tiny)


def test_a_full_disk_goes_before_other_failures(tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that failed is forgotten when the disk turns out full: that is what has to be mended first."""
    layout = Layout(tiny_data_dir)
    answers = iter((InputError("damaged"), SpaceError("full")))

    def fail(*_: object) -> None:
        raise next(answers)

    monkeypatch.setattr(untar_module, "write_rows", fail)
    progress = Silent()
    with pytest.raises(SpaceError, match="full"):
        untar(layout, ThreadEngine(1), progress=progress)
    assert progress.notes == []


def test_a_class_that_fails_stops_no_other(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """With a validation archive that has a name twice, all of train comes to its place, and nothing else."""
    layout = Layout(tiny_data_dir)
    good = layout.archive_path(ARCHIVES[VALIDATION]).read_bytes()
    layout.archive_path(ARCHIVES[VALIDATION]).write_bytes(pack([("ILSVRC2012_val_00000001.JPEG", b"x")] * 2))
    assert "twice" in refused(layout).what
    train = {name: digest for name, digest in expected(made_tiny).items() if name.startswith(TRAIN)}
    assert images(layout) == train
    layout.archive_path(ARCHIVES[VALIDATION]).write_bytes(good)
    assert untar(layout, ThreadEngine(1)).written == len(made_tiny.of(VALIDATION))
    assert images(layout) == expected(made_tiny)


def _kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stumble() -> None:
    raise KeyError("bug")


@pytest.mark.parametrize(
    ("trouble", "error", "said"),
    [(_kill_worker, DataProblemsError, "a worker died 3 times"), (_stumble, WorkerError, "a bug in a worker")],
)
def test_a_worker_in_trouble_is_told_with_its_class(
    trouble: Callable[[], None],
    error: type[PrepError],
    said: str,
    tiny_data_dir: Path,
    made_tiny: MadeSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A class whose worker is killed again and again, or has a bug, is named with its split; the others are done."""
    wnid = made_tiny.wnids[3]
    list_class = untar_module._list_class

    def list_or_not(task: untar_module.ClassTask) -> Catalog:
        if (task.split, task.wnid) == (TRAIN, wnid):
            trouble()
        return list_class(task)

    monkeypatch.setattr(untar_module, "_list_class", list_or_not)
    layout = Layout(tiny_data_dir)
    with pytest.raises(error, match=f"train {wnid}: {said}"):
        untar(layout, ProcessEngine(2))
    assert images(layout) == {
        name: digest for name, digest in expected(made_tiny).items() if not name.startswith(f"{TRAIN}/{wnid}")
    }


@pytest.mark.parametrize(
    ("answer", "said"), [(OSError(errno.EIO, "Input/output error"), "can't be read"), (b"", "damaged at byte 0")]
)
def test_an_archive_that_cannot_be_read_is_named(
    answer: OSError | bytes, said: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails, or an archive that is cut just then, is the archive's error, not that of the folder."""
    archive = write_train(layout, pack([(FIRST, b"x")]))

    def pread(*_: int) -> bytes:
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, "pread", pread)
    assert refused(layout).what == f"{archive} {'is ' if 'damaged' in said else ''}{said}"


@pytest.mark.parametrize("split", [TRAIN, VALIDATION])
@pytest.mark.parametrize("way", ["replaced", "written to"])
def test_an_archive_that_changes_meanwhile_is_noticed(
    way: str, split: str, tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found in a file that isn't the archive listed comes to no final place, and is not called damaged."""
    layout = Layout(tiny_data_dir)
    archive = layout.archive_path(ARCHIVES[split])
    content = archive.read_bytes()
    list_all = untar_module._list

    def change(*given: Any) -> Any:
        listed = list_all(*given)
        if way == "replaced":
            archive.unlink()
        archive.write_bytes(bytes(len(content)))
        os.utime(archive, ns=(0, 0))  # whatever the clock's grain is
        return listed

    monkeypatch.setattr(untar_module, "_list", change)
    assert refused(layout).what == f"{archive} changed while it was being read"
    assert not layout.images_dir(split).exists()
    archive.write_bytes(content)
    monkeypatch.undo()
    untar(layout, ThreadEngine(2))
    assert images(layout) == expected(made_tiny)
    assert not layout.raw_partial_dir.exists()


def replace_by_a_twin(archive: Path) -> None:
    """Another file of the same bytes and time in an archive's place."""
    twin = archive.with_name("twin")
    shutil.copy2(archive, twin)
    twin.replace(archive)


def grow(archive: Path) -> None:
    """More bytes behind an archive's end, its time set back."""
    stamp = archive.stat().st_mtime_ns
    with archive.open("ab") as file:
        file.write(bytes(512))
    os.utime(archive, ns=(stamp, stamp))


def overwrite(archive: Path) -> None:
    """Other bytes in place of all, as many, at another time."""
    stamp, size = archive.stat().st_mtime_ns, archive.stat().st_size
    with archive.open("r+b") as file:
        file.write(b"?" * size)
    os.utime(archive, ns=(stamp + 1, stamp + 1))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each image as it is copied."""
    lengths: list[int] = []
    copy = FileSlices.copy

    def count(view: FileSlices, offset: int, length: int, target: int) -> None:
        copy(view, offset, length, target)
        lengths.append(length)

    monkeypatch.setattr(FileSlices, "copy", count)
    return lengths


@pytest.mark.parametrize("change", [replace_by_a_twin, grow, overwrite])
def test_an_archive_that_changed_since_it_was_listed_is_not_copied(
    change: Callable[[Path], None], layout: Layout, copied: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inode, size and time each tell that it is another one, before a single image of it is copied."""
    archive = write_train(layout, pack([(FIRST, b"x" * 700), (SECOND, b"y" * 700)]))
    list_all = untar_module._list

    def change_then(*given: Any) -> Any:
        listed = list_all(*given)
        change(archive)
        return listed

    monkeypatch.setattr(untar_module, "_list", change_then)
    assert refused(layout).what == f"{archive} changed while it was being read"
    assert copied == []
    assert not layout.images_dir(TRAIN).exists()


@pytest.mark.parametrize("change", [grow, overwrite])
@pytest.mark.parametrize("moment", ["indexed", "copied"])
def test_an_archive_that_changes_under_the_work_is_noticed(
    moment: str, change: Callable[[Path], None], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed before a class is indexed, or between two of its images, it is not called damaged, nor is it used."""
    contents = pack([(FIRST, b"x" * 700), (SECOND, b"y" * 700)])
    archive = write_train(layout, contents)
    list_class, copy = untar_module._list_class, FileSlices.copy

    def list_changed(task: untar_module.ClassTask) -> Catalog:
        change(archive)
        return list_class(task)

    def copy_then_change(view: FileSlices, *given: int) -> None:
        copy(view, *given)
        change(archive)

    if moment == "indexed":
        monkeypatch.setattr(untar_module, "_list_class", list_changed)
    else:
        monkeypatch.setattr(FileSlices, "copy", copy_then_change)
    assert refused(layout).what == f"{archive} changed while it was being read"
    assert not layout.images_dir(TRAIN).exists()
    monkeypatch.undo()
    write_train(layout, contents)
    assert untar(layout, ThreadEngine(1)).written == 2
    assert (layout.images_dir(TRAIN) / WNID / SECOND).read_bytes() == b"y" * 700


def test_a_link_of_the_right_size_is_no_image(layout: Layout, tmp_path: Path) -> None:
    """A link in an image's place to a file of as many bytes is replaced by the image; the file it led to stays."""
    write_train(layout, pack([(FIRST, b"right")]))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"wrong")
    image = layout.images_dir(TRAIN) / WNID / FIRST
    image.parent.mkdir(parents=True)
    image.symlink_to(elsewhere)
    assert untar(layout, ThreadEngine(1)).written == 1
    assert not image.is_symlink()
    assert (image.read_bytes(), elsewhere.read_bytes()) == (b"right", b"wrong")


def test_images_moved_into_a_folder_are_made_durable_before_the_one_aside_goes(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class folder that lacked an image is synced with its new name, while the partial folder still stands."""
    write_train(layout, pack([(FIRST, b"x"), (SECOND, b"y")]))
    untar(layout, ThreadEngine(1))
    final = layout.images_dir(TRAIN) / WNID
    (final / FIRST).unlink()
    seen: list[tuple[list[str], bool]] = []

    def spy(folder: Path) -> None:
        if folder == final:
            seen.append((sorted(os.listdir(final)), (layout.raw_partial_dir / TRAIN / WNID).exists()))
        fsync_dir(folder)

    monkeypatch.setattr(untar_module, "fsync_dir", spy)
    untar(layout, ThreadEngine(1))
    assert seen == [([FIRST, SECOND], True)]


def test_a_class_is_moved_only_once_it_is_durable(
    tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sync, then the folders' new names, then those names made durable; many times if it takes long."""
    layout = Layout(tiny_data_dir)
    calls: list[str] = []

    def spy(name: str, called: Callable[..., Any], path: Callable[..., Path]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls.append(f"{name} {path(*given).relative_to(layout.data_dir)}")
            return called(*given)

        return call

    monkeypatch.setattr(untar_module, "sync_file_system", spy("sync", sync_file_system, lambda path: path))
    monkeypatch.setattr(untar_module, "fsync_dir", spy("fsync", fsync_dir, lambda path: path))
    monkeypatch.setattr(untar_module, "_move", spy("move", untar_module._move, lambda _, final: final.parent))
    monkeypatch.setattr(untar_module, "_SYNC_SECONDS", 0.0)
    untar(layout, ThreadEngine(3))
    assert images(layout) == expected(made_tiny)
    assert len(calls) == 20 * 4
    for sync, move, fsync, fsync_parent in zip(*[iter(calls)] * 4, strict=True):
        split = move.removeprefix("move raw-data/")
        assert (sync, fsync, fsync_parent) == ("sync raw-data", f"fsync raw-data/{split}", "fsync raw-data")


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


def test_progress_comes_to_its_total(tiny_data_dir: Path) -> None:
    """One bar over the bytes of both splits, which ends full."""
    seen: list[tuple[str, int | None]] = []

    class Watching(Silent):
        def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
            seen.append((f"{label} {unit} {done}", total))

        def advance(self, amount: int = 1) -> None:
            seen.append(("", amount))

    untar(Layout(tiny_data_dir), ThreadEngine(2), progress=Watching())
    (begin, total), *steps = seen
    assert begin == "untar B 0"
    assert len(steps) == 20
    assert sum(step or 0 for _, step in steps) == total


def test_images_are_copied_within_the_kernel(tiny_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where archive and folders lie on one file system, and the system can, no image passes through our memory."""
    copied: list[int] = []
    try:
        with (tiny_data_dir / "a").open("wb+") as probe, (tiny_data_dir / "b").open("wb") as other:
            probe.write(b"x")
            probe.flush()
            true_copy = os.copy_file_range
            assert true_copy(probe.fileno(), other.fileno(), 1, 0) == 1
    except (AttributeError, OSError):
        pytest.skip("this system, or this file system, has no copy_file_range")

    def copy(*given: Any) -> int:
        copied.append(true_copy(*given))
        return copied[-1]

    monkeypatch.setattr(os, "copy_file_range", copy)
    layout = Layout(tiny_data_dir)
    assert untar(layout, ThreadEngine(1)).written <= len(copied)
    assert sum(copied) == sum(path.stat().st_size for path in existing(layout.raw_dir, "**/*.JPEG"))


def test_space_is_asked_for_what_is_missing(
    tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes in their place need none, and so do files left aside, unless they are of a class in its place."""
    layout = Layout(tiny_data_dir)
    asked: list[int] = []
    monkeypatch.setattr(untar_module, "refuse_lack", lambda needs: asked.append(sum(need.size for need in needs)))
    untar(layout, ThreadEngine(1))
    first, second = (layout.images_dir(TRAIN) / wnid for wnid in made_tiny.wnids[:2])
    (layout.raw_partial_dir / TRAIN / first.name).mkdir(parents=True)
    (layout.raw_partial_dir / TRAIN / first.name / "x.JPEG").write_bytes(bytes(5000))
    (layout.raw_partial_dir / TRAIN / second.name).mkdir()
    (layout.raw_partial_dir / TRAIN / second.name / "x.JPEG").write_bytes(bytes(700))
    shutil.rmtree(second)
    untar(layout, ThreadEngine(1))
    with tarfile.open(layout.archive_path(ARCHIVES[TRAIN])) as tar:
        assert asked[1] == tar.getmember(f"{second.name}.tar").size - 700
