"""Atomic files, stores and their sinks, the lock on a DATA_DIR, and a disk that is full."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from running import held
from unsynced import true_sync_file_system as sync_file_system

from imagenet_prep.errors import BusyError, InputError, SpaceError, WriteError
from imagenet_prep.hints import parts_of
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.files import absence_of, atomic_file, lack_of, save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import LocalStore
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.refusals import GoneError, as_error
from imagenet_prep.storage.space import Need, refuse_lack, rooms_for

HOLDER = """
import sys, time
from pathlib import Path
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold
with hold(Layout(Path(sys.argv[1])).lock_paths):
    print("holding", flush=True)
    time.sleep(60)
"""


def test_a_file_appears_whole(tmp_path: Path) -> None:
    """Nothing is there under the final name while it is written;
    all of it is there afterwards, and nothing else.
    """
    path = tmp_path / "new" / "file"
    with atomic_file(path) as file:
        file.write(b"con")
        file.flush()
        assert not path.exists()
        file.write(b"tent")
    assert path.read_bytes() == b"content"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """If the block raises, the old content stays and no partial file is left."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_file(path) as file:  # noqa: PT012 - the block is what is tested
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


WRITER = """
import sys
from pathlib import Path
from imagenet_prep.storage.files import atomic_file
for _ in range(100):
    with atomic_file(Path(sys.argv[1])) as file:
        file.write(sys.argv[2].encode() * 100_000)
"""


def test_writers_at_once_each_have_a_file_of_their_own(tmp_path: Path) -> None:
    """Of several processes that write one file at the same time none fails,
    and the file is always one's, whole.
    """
    path = tmp_path / "file"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, letter]) for letter in "abc"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            content = path.read_bytes()
            assert len(content) == 100_000
            assert len(set(content)) == 1
            seen.add(content[:1])
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen <= {b"a", b"b", b"c"}
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_removed_and_a_living_one_is_not_disturbed(
    tmp_path: Path,
) -> None:
    """The next writer of the same file removes it;
    a file that is being written stays, and gets its name.
    """
    path = tmp_path / "file[1]"
    killed = (
        "import os, sys; from pathlib import Path; from imagenet_prep.storage.files import "
        "atomic_file\n"
    )
    killed += "with atomic_file(Path(sys.argv[1])) as file: os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, path], check=False)
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".file[1].")
    (tmp_path / ".file.1-0.partial").write_bytes(b"of another file")
    with atomic_file(path) as outer:
        outer.write(b"outer")
        save_bytes(path, b"inner")
        assert path.read_bytes() == b"inner"
        assert left not in os.listdir(tmp_path)
    assert path.read_bytes() == b"outer"
    assert sorted(os.listdir(tmp_path)) == [".file.1-0.partial", "file[1]"]


def test_what_another_machine_left_may_be_held_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks may not be seen across machines: an unfinished file of another one stays."""
    with monkeypatch.context() as patch:
        there = os.uname_result(("Linux", "elsewhere", "", "", ""))
        patch.setattr(os, "uname", lambda: there)
        with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "file"):  # noqa: PT012
            (left,) = os.listdir(tmp_path)
            raise KeyboardInterrupt
    (tmp_path / left).touch()
    save_bytes(tmp_path / "file", b"content")
    assert sorted(os.listdir(tmp_path)) == [left, "file"]


def test_a_file_is_written_where_nothing_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without locks files appear whole all the same,
    and nobody removes what another may write.
    """

    _refuse(monkeypatch, fcntl, "flock", errno.ENOLCK)
    (tmp_path / ".file.1-0.partial").write_bytes(b"another's")
    save_bytes(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert sorted(os.listdir(tmp_path)) == [".file.1-0.partial", "file"]


def test_equal_content_is_not_written_again(tmp_path: Path) -> None:
    """Saving what is there already touches nothing;
    saving something else of the same length replaces it.
    """
    path = tmp_path / "file"
    assert save_bytes(path, b"content")
    os.utime(path, ns=(1, 1))
    assert not save_bytes(path, b"content")
    assert path.stat().st_mtime_ns == 1
    assert save_bytes(path, b"CONTENT")
    assert path.stat().st_mtime_ns != 1
    assert path.read_bytes() == b"CONTENT"


# space --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("called", "again"),
    [
        (("/bin/imagenet-prep", "convert", "d"), "run: imagenet-prep convert d"),
        (("imagenet_prep/__main__.py", "convert", "d"), "run: imagenet-prep convert d"),
        (("train.py", "--epochs", "3"), "try again"),
        (("-c",), "try again"),
    ],
)
def test_too_little_space_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: tuple[str, ...], again: str
) -> None:
    """The error names folder, purpose, needed and free; the folder need not exist yet. A script
    that imports the package is no command of it.
    """
    monkeypatch.setattr("sys.argv", [*called])
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    refuse_lack([Need("convert", "nothing", tmp_path, 1)])
    with pytest.raises(SpaceError) as caught:
        refuse_lack([Need("convert", "3 shards", tmp_path / "not" / "there", 1 << 60)])
    assert f"not enough space in {tmp_path} for 3 shards" in str(caught.value)
    assert "needed 1,152,921.5 TB, free " in str(caught.value)
    assert (
        str(caught.value.hint)
        == f"free some space, or name another folder in the command, then {again}"
    )
    assert caught.value.exit_code == 7


def test_needs_of_one_disk_add_up(tmp_path: Path, small_disk: Path) -> None:
    """Steps on one file system share what is free there, by bytes and by inodes;
    another one has its own.
    """
    more = Need("untar", "folders", tmp_path / "a", 1, 7)
    half = Need("download", "a file", small_disk / "b", 600 << 10)
    rooms = rooms_for([half, more, half])
    assert [(room.folder, room.size, room.files) for room in rooms] == [
        (small_disk, 1200 << 10, 2),
        (tmp_path, 1, 7),
    ]
    assert [room.lacks_space for room in rooms] == [True, False]
    refuse_lack([half, more])
    with pytest.raises(SpaceError, match="for a file, a file"):
        refuse_lack([half, more, half])
    free = os.statvfs(small_disk).f_favail
    refuse_lack([Need("untar", "folders", small_disk, 0, free)])
    with pytest.raises(SpaceError, match=r"not enough inodes") as caught:
        refuse_lack(
            [
                Need("untar", "folders", small_disk, 1, free),
                Need("convert", "a shard", small_disk, 1, 1),
            ]
        )
    assert f"needed {free + 1:,} files and folders, free {free:,}" in str(caught.value)


def test_inodes_without_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that makes inodes as they are needed says 0 of 0: that is no lack."""
    found = os.statvfs(tmp_path)
    zeros = os.statvfs_result((*found[:5], 0, 0, 0, *found[8:]))
    monkeypatch.setattr(os, "statvfs", lambda _: zeros)
    assert rooms_for([Need("untar", "folders", tmp_path, 1, 1 << 60)])[0].free_files is None
    refuse_lack([Need("untar", "folders", tmp_path, 1, 1 << 60)])


def test_a_full_disk_is_a_space_error(small_disk: Path) -> None:
    """Running out of space while writing names the file, leaves no part of it,
    and keeps what was finished.
    """
    save_bytes(small_disk / "finished", b"done")
    with pytest.raises(SpaceError, match=r"no space left .*/big") as caught:
        save_bytes(small_disk / "big", bytes(2 << 20))
    assert caught.value.hint
    assert os.listdir(small_disk) == ["finished"]
    save_bytes(small_disk / "small", bytes(1 << 16))


# the lock -----------------------------------------------------------------------------------------


def test_a_second_run_is_refused_at_once(tmp_path: Path) -> None:
    """While another process holds DATA_DIR, a BusyError comes at
    once and names that process.
    """
    locks = Layout(tmp_path).lock_paths
    with held(*locks) as holder:
        begin = time.monotonic()
        with pytest.raises(BusyError, match=f"process {holder} on ") as caught, hold(locks):
            pass
        assert time.monotonic() - begin < 10
        assert locks[0].exists()  # the loser must not take the winner's lock away
    assert caught.value.exit_code == 8
    assert str(tmp_path) in caught.value.what


def test_holding_is_re_entrant(tmp_path: Path) -> None:
    """Within one process a stage may hold what its caller holds; only the outermost lets go."""
    layout = Layout(tmp_path)
    with hold(layout.lock_paths):
        with hold(Layout(tmp_path).lock_paths):
            pass
        assert layout.lock_paths[0].exists()
        other = subprocess.run(
            [sys.executable, "-c", HOLDER, tmp_path], capture_output=True, text=True, timeout=600
        )
        assert f"held by process {os.getpid()} on " in other.stderr
    assert not layout.lock_paths[0].exists()
    with hold(layout.lock_paths):
        assert layout.lock_paths[0].exists()


def _refuse(monkeypatch: pytest.MonkeyPatch, module: object, name: str, number: int) -> None:
    """Let a call fail as the system would."""

    def refused(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, name, refused)


def test_a_lock_that_is_refused_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that the storage refuses it, nor that the holder's name can't be read,
    is a bug of ours.
    """
    _refuse(monkeypatch, fcntl, "flock", errno.ESTALE)
    _refuse(monkeypatch, Path, "read_bytes", errno.EIO)
    with pytest.raises(WriteError, match="lock") as caught, hold(Layout(tmp_path).lock_paths):
        pass
    assert str(Layout(tmp_path).lock_paths[0]) in caught.value.what
    assert "mount it again" in caught.value.hint


def test_workers_do_not_keep_the_lock(tmp_path: Path) -> None:
    """A forked child that outlives the holder does not hold DATA_DIR in its place."""
    child = (
        "    import os\n    if os.fork() == 0: print('forked', flush=True); time.sleep(60); "
        "os._exit(0)\n"
    )
    script = HOLDER.replace("    print", f"{child}    print")
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert {process.stdout.readline() for _ in range(2)} == {
            "holding\n",
            "forked\n",
        }  # both have come so far
        process.kill()
        process.wait()
        try:
            with hold(Layout(tmp_path).lock_paths):
                pass
        finally:
            os.killpg(process.pid, signal.SIGKILL)


class _Refusing:
    """A C library whose syncfs finds that the disk did not take something."""

    @staticmethod
    def syncfs(_: int) -> int:
        ctypes.set_errno(errno.EIO)
        return -1


def test_a_file_system_is_synced_or_its_trouble_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """syncfs where there is one, with its error; os.sync elsewhere."""
    synced: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: synced.append("all"))
    sync_file_system(tmp_path)
    assert synced == ([] if sys.platform == "linux" else ["all"])
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: _Refusing)
    with pytest.raises(OSError, match="Input/output error") as caught:
        sync_file_system(tmp_path)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(tmp_path))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    sync_file_system(tmp_path)
    assert synced[-1] == "all"


# a store ------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store of no files."""
    made = LocalStore(tmp_path / "finished", tmp_path / "unfinished")
    made.folder.mkdir()
    made.unfinished.mkdir()
    return made


def test_a_resting_sink_holds_nothing_open(store: LocalStore) -> None:
    """It goes on where it was."""
    before = len(os.listdir("/proc/self/fd"))
    sinks = [store.create(str(number)) for number in range(20)]
    for _ in range(2):
        for sink in sinks:
            sink.write([b"part "])
            sink.rest()
            assert len(os.listdir("/proc/self/fd")) <= before
    for sink in sinks:
        sink.seal()
        sink.commit()
    assert {bytes(store.view(name)) for name in store.list()} == {b"part part "}
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(("rests", "comes_back"), [(False, True), (True, False)])
def test_what_was_removed_gets_no_name(store: LocalStore, rests: bool, comes_back: bool) -> None:
    """A writer that outlives its run finishes nothing,
    neither its whole file nor what it writes afterwards.
    """
    with store.create("a") as old, store.create("b") as never_begun:
        old.write([b"of the run before"])
        if rests:
            old.rest()
        shutil.rmtree(store.unfinished)
        if comes_back:
            store.unfinished.mkdir()
        with pytest.raises(GoneError, match=r"removed while"):  # noqa: PT012 - whichever sees it first
            old.write([b"and more"])
            old.commit()
        if not comes_back:
            with pytest.raises(GoneError):
                never_begun.commit()
    assert store.list() == []


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))


@pytest.mark.parametrize("make", [os.mkfifo, _bind], ids=["pipe", "socket"])
def test_a_pipe_is_not_waited_for(
    store: LocalStore, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not a plain file can't be read; its storage has not gone away."""
    monkeypatch.chdir(store.folder)  # the path of a socket must be short
    make(Path("it"))
    for read in (store.view, store.load):
        with pytest.raises(InputError, match="not a plain file") as caught:
            read("it")
        assert caught.value.hint.startswith("expected a file, found a pipe, a socket or a device")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file", "is a file"),
        ("pipe", "is neither a file nor a folder"),
        ("link", "is a broken link"),
        ("nothing", "does not exist"),
    ],
)
def test_an_absent_folder_is_called_what_it_is(tmp_path: Path, name: str, words: str) -> None:
    """Only a path with nothing at it does not exist."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert absence_of(tmp_path / name) == f"{tmp_path / name} {words}"


def test_what_is_no_folder_does_not_lack_a_file(tmp_path: Path) -> None:
    """A folder lacks archives, or one that is not there; a file does not."""
    (tmp_path / "file").touch()
    assert lack_of(tmp_path, "no archives") == "no archives"
    assert lack_of(tmp_path / "new", "no archives") == "no archives"
    assert lack_of(tmp_path / "file", "no archives") == f"{tmp_path / 'file'} is a file"


def test_a_refusal_of_what_can_be_written_is_not_called_one_to_write(tmp_path: Path) -> None:
    """The system may forbid more than the permissions say."""
    (tmp_path / "file").touch()
    denied = PermissionError(errno.EPERM, "Operation not permitted", str(tmp_path / "file"))
    assert as_error(denied).what == f"{tmp_path / 'file'} can't be used"


def test_a_folder_below_many_new_ones_is_made(tmp_path: Path) -> None:
    """More of them than calls that Python allows within each other."""
    innermost = tmp_path.joinpath(*["d"] * 1100)
    new_folders = make_folder(innermost)
    try:
        assert innermost.is_dir()
        assert len(new_folders) == 1100
        assert make_folder(innermost) == []
    finally:
        for folder in new_folders:  # rmtree calls itself, too
            folder.rmdir()


@pytest.mark.parametrize("below", ["", "a", "a/b"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("file", "a file"),
        ("link", "a broken link: it leads to nowhere"),
        ("pipe", "neither a file nor a folder"),
    ],
)
def test_what_stands_where_a_folder_should_be_is_named(
    tmp_path: Path, name: str, kind: str, below: str
) -> None:
    """The file or the broken link itself, with a command that moves it away; then it works."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    earlier = tmp_path / f"{name}.moved"
    earlier.write_text("moved away earlier")
    with pytest.raises(WriteError) as caught:
        make_folder(tmp_path / name / below)
    assert caught.value.what == f"{tmp_path / name} is {kind}"
    *_, move = parts_of(caught.value.hint)
    subprocess.run(["bash", "-c", move], check=True)
    make_folder(tmp_path / name / below)
    assert (tmp_path / name / below).is_dir()
    assert earlier.read_text() == "moved away earlier"
