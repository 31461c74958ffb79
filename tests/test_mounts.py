"""Mounts that refuse what disks allow: shared maps, all maps, locks; and those that went away."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from fuse_mount import fuse_mount
from made_sets import flip
from msgspec.structs import replace
from refusing import refusing
from running import command, error_lines, prep

from imagenet_prep import Layout
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.storage.claims import Claim, find_claims
from imagenet_prep.storage.memory_maps import map_file

pytestmark = pytest.mark.once

PART = ("--allow-incomplete", "--train-shards", 4, "--validation-shards", 2, "--workers", 1)


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of every shard and index of a set."""
    paths = [*existing(folder, "*-of-*"), *existing(folder, "imagenet-prep/index/*")]
    return {path.name: path.read_bytes() for path in paths}


# maps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [("shared",), ("shared", "private")])
def test_a_set_is_made_and_read_where_maps_are_refused(
    refused: tuple[str, ...], tmp_path: Path, made_tiny: MadeSet
) -> None:
    """FUSE with direct_io refuses shared maps, others all:
    every command works, and shards have the same bytes.
    """
    usual, mounted = tmp_path / "usual", tmp_path / "mounted"
    for folder in (usual, mounted):
        shutil.copytree(made_tiny.archives["train"].parent, folder / "raw-data")
    command("convert", usual, *PART)
    environment = refusing(mounted, **dict.fromkeys(refused, "ENODEV"))
    command("convert", mounted, *PART, **environment)
    assert content(mounted) == content(usual)
    command("verify", mounted, "--depth", "decode", "--workers", 1, **environment)
    shard = sorted(existing(mounted, "train-*-of-*"))[0]
    shown = command("show", shard, "--limit", 1).stdout
    assert command("show", shard, "--limit", 1, **environment).stdout == shown
    flip(shard, 100)
    command("repair", mounted, "--workers", 1, **environment)
    assert content(mounted) == content(usual)
    command("export", "webdataset", mounted, mounted / "out", "--workers", 1, **environment)


def test_fuse_with_direct_io(tmp_path: Path, made_tiny: MadeSet) -> None:
    """On a real mount of that kind, which refuses shared maps,
    raw data and shards are read as on a disk.
    """
    raw, mounted = made_tiny.archives["train"].parent, tmp_path / "mounted"
    usual = tmp_path / "usual"
    command("convert", usual, "--raw", raw, *PART)
    with fuse_mount(raw, mounted):
        command("convert", tmp_path / "other", "--raw", mounted, *PART)
    assert content(tmp_path / "other") == content(usual)
    mounted.rmdir()
    with fuse_mount(usual, mounted):
        shard = next(mounted.glob("train-*-of-*"))
        with shard.open("rb") as file, pytest.raises(OSError, match="No such device"):
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        command("verify", mounted, "--workers", 1)
        assert command("show", shard).stdout == command("show", usual / shard.name).stdout
        command("export", "webdataset", mounted, tmp_path / "out", "--workers", 1)


def test_a_mount_that_goes_away_is_no_bug(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Once its server is gone, each file of a mount is ENOTCONN:
    the error says that the storage went away.
    """
    mounted = tmp_path / "mounted"
    with fuse_mount(made_tiny.archives["train"].parent, mounted) as server:
        server.kill()
        server.wait()
        for words in (
            ("convert", tmp_path / "data", "--raw", mounted, *PART),
            ("verify", mounted),
            ("status", mounted),
        ):
            ended = prep(*words)
            assert "This is a bug" not in ended.stderr + ended.stdout
            assert "Transport endpoint is not connected" in ended.stderr + ended.stdout, words


@pytest.mark.parametrize("reads", [0, 3, 40, 90, 140])
def test_a_mount_that_goes_away_while_it_is_read_is_no_bug(
    reads: int, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """Listing and workers meet ECONNABORTED or ENOTCONN:
    the error says what to do, and then the command goes on.
    """
    raw, mounted = made_tiny.archives["train"].parent, tmp_path / "mounted"
    words = ("convert", tmp_path / "data", "--raw", mounted, *PART)
    with fuse_mount(raw, mounted, reads):
        ended = prep(*words)
    assert ended.returncode in (1, 4)
    assert "bug" not in ended.stderr
    assert "mount it again" in ended.stderr
    mounted.rmdir()
    with fuse_mount(raw, mounted):
        command(*words)


def test_a_copy_in_place_of_a_map_ends_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was cut short meanwhile gives fewer bytes;
    a huge one is refused with a reason.
    """
    from imagenet_prep.storage import memory_maps

    def no_map(*_: object, **__: object) -> memoryview:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(memory_maps, "_map", no_map)
    path = tmp_path / "file"
    path.write_bytes(b"123456")
    with path.open("rb") as file:
        assert bytes(memory_maps.map_descriptor(file.fileno(), 9, in_order=True)) == b"123456"
    assert bytes(map_file(path)[2:4]) == b"34"
    monkeypatch.setattr(memory_maps, "_MOST_COPIED", 5)
    with pytest.raises(InputError, match="no memory maps") as caught:
        map_file(path)
    assert "mount it again" not in caught.value.hint  # its storage is there
    assert "another file system" in caught.value.hint


# locks --------------------------------------------------------------------------------------------


def give_annotations(folder: Path) -> None:
    """A folder of annotations, which annotate looks for before it takes the lock."""
    (folder / "raw-data/ILSVRC/Annotations/CLS-LOC/train").mkdir(parents=True)


@pytest.mark.parametrize("name", ["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def test_every_command_works_without_locks(name: str, tmp_path: Path, made_tiny: MadeSet) -> None:
    """On a file system without flock all commands that hold DATA_DIR run
    to their end and leave no lock.
    """
    folder = tmp_path / "mounted"
    shutil.copytree(made_tiny.archives["train"].parent, folder / "raw-data")
    environment = refusing(folder, lock=name)
    command("annotate", folder, "--workers", 1, **environment)
    for rank in ("0/2", "1/2"):
        command("convert", folder, *PART, "--rank", rank, **environment)
    command("merge", folder, **environment)
    made = content(folder)
    flip(sorted(existing(folder, "train-*-of-*"))[0], 100)
    command("repair", folder, "--workers", 1, **environment)
    command("convert", folder, *PART, **environment)
    assert content(folder) == made
    command("export", "webdataset", folder, folder / "out", "--workers", 1, **environment)
    command("untar", folder, "--workers", 1, **environment)
    script = "import imagenet_prep.records as r, sys; r.write(sys.argv[1], [{'a': 1}])"
    subprocess.run(
        [sys.executable, "-c", script, folder / "own.tfrecord"],
        env={**os.environ, **environment},
        check=True,
    )
    assert not [
        path for path in list(folder.rglob("*")) if path.name == "lock" or "claim" in path.name
    ]
    assert not list(folder.glob(".own*"))


_HOLD = """
import sys
from pathlib import Path
from imagenet_prep import Layout
from imagenet_prep.storage.lock import hold
with hold(Layout(Path(sys.argv[1])).lock_paths):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A process that holds DATA_DIR until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, folder],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_run_without_locks_names_the_first(tmp_path: Path) -> None:
    """It exits 8 and names the living holder, as status does; one that was killed blocks nobody."""
    folder = tmp_path / "mounted"
    give_annotations(folder)
    environment = refusing(folder, lock="ENOLCK")
    first = holder(folder, environment)
    refused = command("annotate", folder, status=8, **environment)
    assert error_lines(refused)[1] == f"held by process {first.pid} on {os.uname().nodename}"
    assert "rm " not in refused.stderr
    assert f"running: process {first.pid} on " in command("status", folder, **environment).stdout
    first.kill()
    first.wait()
    (left,) = folder.rglob(".lock.claim-*")
    second = holder(folder, environment)
    assert not left.exists()
    second.communicate("")
    assert not list((folder / "imagenet-prep").iterdir())


def test_one_of_many_that_start_at_once_holds(tmp_path: Path) -> None:
    """Of processes that start together without locks never two hold DATA_DIR at a time."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    environment = refusing(folder, lock="ENOLCK")
    inside = "open(sys.argv[2], 'x').close(); time.sleep(0.05); os.unlink(sys.argv[2])"
    script = _HOLD.replace("sys.stdin.read()", inside)
    call = [sys.executable, "-c", f"import os, time\n{script}", folder, tmp_path / "inside"]
    processes = [
        subprocess.Popen(call, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert not any(
        "FileExistsError: [Errno 17] File exists: " in error and "inside" in error
        for error in errors
    )
    assert sum(process.returncode == 0 for process in processes) >= 1
    failed = [error for process, error in zip(processes, errors, strict=True) if process.returncode]
    assert [error[-900:] for error in failed if "BusyError" not in error] == []


@pytest.mark.parametrize(
    ("change", "blocks"),
    [
        ({}, True),  # this very process
        ({"process": 1 << 22}, False),  # no such process: ids end before
        ({"started": "1"}, False),  # the id was given to another process since
        ({"boot": "00000000"}, False),  # the machine was started again
        ({"space": "1"}, True),  # another container: its ids say nothing here
        ({"host": "elsewhere", "process": 1 << 22}, True),
        ({"machine": "00000000", "boot": "00000000"}, True),  # another machine of the same name
    ],
)
def test_who_blocks(change: dict[str, object], blocks: bool, tmp_path: Path) -> None:
    """A dead process of this machine does not block;
    of others it is not known, so their claims do.
    """
    lock = tmp_path / "lock"
    claim = replace(Claim.by_this_process(), **change)
    claim.path(lock).touch()
    assert find_claims(lock) == ([claim] if blocks else [])
    assert claim.path(lock).exists() == blocks


def test_a_claim_of_another_machine_is_removed_by_the_command_that_is_named(tmp_path: Path) -> None:
    """Whether a process of another machine lives can't be known:
    the error names it, and how to remove its lock file.
    """
    folder = tmp_path / "a mounted"
    (folder / "imagenet-prep").mkdir(parents=True)
    give_annotations(folder)
    environment = refusing(folder, lock="EOPNOTSUPP")
    there = replace(Claim.by_this_process(), host="elsewhere")
    there.path(folder / "imagenet-prep/lock").touch()
    refused = command("annotate", folder, status=8, **environment)
    what, detail, hint = error_lines(refused)
    assert what == f"error: another run holds {folder}"
    assert detail == f"held by process {os.getpid()} on elsewhere"
    before, _, remove = hint.rpartition("remove its lock file: ")
    assert before.endswith(f"if process {os.getpid()} on elsewhere is gone, ")
    subprocess.run(["bash", "-c", remove], check=True)
    assert "another run" not in prep("annotate", folder, **environment).stderr


def test_a_lock_is_refused_only_where_there_is_none(tmp_path: Path) -> None:
    """Another refusal than that of a missing lock is an error that names the file."""
    folder = tmp_path / "mounted"
    give_annotations(folder)
    refused = prep("annotate", folder, **refusing(folder, lock="ESTALE"))
    assert refused.returncode == 1
    assert "imagenet-prep/lock" in refused.stderr
    assert "mount it again" in refused.stderr


# names that lead nowhere --------------------------------------------------------------------------


def test_a_dangling_plan_ends_a_rank(tmp_path: Path, made_tiny: MadeSet) -> None:
    """A broken link in place of plan.json is refused with the command that removes it;
    a rank then goes on.
    """
    folder = tmp_path / "data"
    plan = Layout(folder).plan_path
    plan.parent.mkdir(parents=True)
    plan.symlink_to(tmp_path / "nothing")
    words = ("convert", folder, "--raw", made_tiny.archives["train"].parent, *PART, "--rank", "0/2")
    refused = command(*words, status=4)
    assert f"{plan} is a broken link" in refused.stderr
    remove = error_lines(refused)[-1].partition("remove it: ")[2]
    subprocess.run(["bash", "-c", remove], check=True)
    command(*words)


@pytest.mark.parametrize("name", ["", "imagenet-prep", "imagenet-prep/index"])
@pytest.mark.parametrize("rank", [(), ("--rank", "0/2")], ids=["alone", "a rank"])
def test_a_broken_link_in_place_of_a_folder(
    tmp_path: Path, made_tiny: MadeSet, name: str, rank: tuple[str, ...]
) -> None:
    """Its disk may not be mounted: nothing is made where it leads to;
    with the link moved away, the same command succeeds.
    """
    raw = made_tiny.archives["train"].parent
    link = tmp_path / "data" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("nowhere")
    words = ("convert", tmp_path / "data", "--raw", raw, *PART, *rank)
    refused = command(*words, status=1)
    lines = error_lines(refused)
    assert lines[0] == f"error: {link} is a broken link: it leads to {link.with_name('nowhere')}"
    assert not link.with_name("nowhere").exists()
    move = lines[-1].partition("move the link away: ")[2]
    subprocess.run(["bash", "-c", move], check=True)
    command(*words)


def test_a_broken_link_in_an_export(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The folder of a split that leads to nothing is named with the command that moves it away."""
    data, out = tmp_path / "data", tmp_path / "out"
    command("convert", data, "--raw", made_tiny.archives["train"].parent, *PART)
    words = ("export", "folders", data, out, "--workers", 1)
    command(*words)
    shutil.rmtree(out / "train")
    (out / "train").symlink_to("nowhere")
    lines = error_lines(command(*words, status=1))
    assert lines[0] == f"error: {out}/train is a broken link: it leads to {out}/nowhere"
    move = lines[-1].partition("move the link away: ")[2]
    subprocess.run(["bash", "-c", move], check=True)
    command(*words)
