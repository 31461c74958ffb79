"""records.ShardWriter: which record goes where, and sets that appear as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing

from imagenet_prep import records
from imagenet_prep.errors import BusyError, SpaceError, UsageError, WriteError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import lines_of
from imagenet_prep.records import ShardWriter, writer
from imagenet_prep.storage import local
from imagenet_prep.storage.durable import write_all
from imagenet_prep.text import size_text

tf = tf_fixture.tf

SET = [f"movies-{index:05d}-of-00003" for index in range(3)]


def numbers(path: Path) -> list[int]:
    """The numbers in a file, in order."""
    return [record["n"] for record in records.read(path)]


def write_set(prefix: Path, count: int = 7, **options: Any) -> ShardWriter:
    """Numbered records in shards; 45 bytes each in a file that is not compressed."""
    with ShardWriter(prefix, **options) as shards:
        for n in range(count):
            shards.write({"n": n, "text": b"12345678" if n < 100 else b""})
    return shards


# which record goes where --------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_records_go_to_shards_in_turn(tmp_path: Path, tf: Any, compression: str | None) -> None:
    """Each of the shards gets every third record, under the usual names,
    and TensorFlow reads them.
    """
    shards = write_set(tmp_path / "new" / "movies", shards=3, compression=compression)
    assert sorted(os.listdir(tmp_path / "new")) == SET
    assert shards.paths == tuple(tmp_path / "new" / name for name in SET)
    assert shards.records == 7
    assert [numbers(path) for path in shards.paths] == [[0, 3, 6], [1, 4], [2, 5]]
    assert list(map(bool, records.read(str(tmp_path / "new" / "movies-*")))) == [True] * 7
    theirs = tf.data.TFRecordDataset(
        [str(path) for path in shards.paths], (compression or "").upper()
    )
    assert sum(1 for _ in theirs) == 7


def test_a_shard_without_records_is_an_empty_file(tmp_path: Path, tf: Any) -> None:
    """There are as many shards as were asked for, whatever comes;
    a compressed one has its header and its end.
    """
    assert [numbers(path) for path in write_set(tmp_path / "movies", 2, shards=3).paths] == [
        [0],
        [1],
        [],
    ]
    assert (tmp_path / SET[2]).stat().st_size == 0
    paths = write_set(tmp_path / "zipped", 0, shards=2, compression="gzip").paths
    assert [numbers(path) for path in paths] == [[], []]
    assert not list(tf.data.TFRecordDataset([str(path) for path in paths], "GZIP"))


def test_a_shard_has_at_most_its_size(tmp_path: Path) -> None:
    """A new one begins where the next record would not fit: by one byte, or not at all."""
    (path,) = write_set(tmp_path / "one", 1, shards=1).paths
    size = path.stat().st_size
    paths = write_set(tmp_path / "exact", shard_size=3 * size).paths
    assert [path.name for path in paths] == [f"exact-{index:05d}-of-00003" for index in range(3)]
    assert [numbers(path) for path in paths] == [[0, 1, 2], [3, 4, 5], [6]]
    assert paths[0].stat().st_size == 3 * size
    paths = write_set(tmp_path / "less", shard_size=3 * size - 1).paths
    assert [numbers(path) for path in paths] == [[0, 1], [2, 3], [4, 5], [6]]


def test_a_record_that_is_larger_than_a_shard_has_one_of_its_own(tmp_path: Path) -> None:
    """No record is refused for the size of shards, and none before or after it shares its own."""
    with ShardWriter(tmp_path / "movies", shard_size=200) as shards:
        for n, length in enumerate((1000, 10, 10, 1000, 10)):
            shards.write({"n": n, "text": bytes(length)})
    assert [numbers(path) for path in shards.paths] == [[0], [1, 2], [3], [4]]


def test_what_a_killed_writer_left_is_no_beginning(tmp_path: Path) -> None:
    """Half a file of a writer that was killed is removed, and not written on."""
    for name in ("movies", "one"):
        (tmp_path / f".{name}.writing").mkdir()
        for left in ("0", "1"):
            (tmp_path / f".{name}.writing" / left).write_bytes(b"half a record")
    assert [numbers(path) for path in write_set(tmp_path / "movies", 4, shards=2).paths] == [
        [0, 2],
        [1, 3],
    ]
    assert records.write(tmp_path / "one", [{"n": 5}]) == 1
    assert numbers(tmp_path / "one") == [5]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *(
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1050.1, "1.1 kB"),
            (999_949, "999.9 kB"),
            (999_951, "1 MB"),
        ),
        *((3e9, "3 GB"), (2.5e15, "2,500 TB")),
    ],
)
def test_sizes_in_words(count: float, text: str) -> None:
    """A size is told in the unit that suits it, to a tenth, everywhere the same."""
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "shards and shard_size: neither is given\nexpected one of the two"),
        ({"shards": 1, "shard_size": 9}, "shards and shard_size: both are given"),
        ({"shards": 0}, "shards 0\nexpected a whole number, at least 1"),
        ({"shards": True}, "shards True\nexpected a whole number"),
        ({"shards": 2.5}, "shards 2.5\nexpected a whole number"),
        ({"shards": "8"}, "shards '8'\nexpected a whole number"),
        ({"shard_size": 0}, "expected a whole number of bytes"),
        ({"shard_size": "100M"}, "expected a whole number of bytes"),
        ({"shards": 1, "compression": "lzma"}, "expected None, 'gzip' or 'zlib'"),
        ({"shards": 1, "schema": {"a": "text"}}, "expected one of int64, float, bytes"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    """At once, before anything is made, and with what was expected."""
    with pytest.raises(UsageError, match=said):
        ShardWriter(tmp_path / "movies", **options)
    assert os.listdir(tmp_path) == []


# all or nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "options"), [(RuntimeError, {"shards": 3}), (KeyboardInterrupt, {"shard_size": 100})]
)
def test_leaving_by_an_exception_discards_everything(
    tmp_path: Path, error: type[BaseException], options: dict[str, Any]
) -> None:
    """Nothing appears, nothing is left behind, and the exception passes."""
    shards = ShardWriter(tmp_path / "movies", **options)
    with pytest.raises(error), shards:  # noqa: PT012 - the block is what is tested
        for n in range(10):
            shards.write({"n": n, "text": bytes(50)})
        raise error
    assert os.listdir(tmp_path) == []
    assert shards.paths == ()


def test_a_writer_is_for_one_block(tmp_path: Path) -> None:
    """Before it, after it, and in a second one, nothing can be written."""
    shards = ShardWriter(tmp_path / "movies", shards=1)
    with pytest.raises(UsageError, match="within the with block"):
        shards.write({"n": 1})
    with shards:
        shards.write({"n": 1})
    with pytest.raises(UsageError, match="within the with block"):
        shards.write({"n": 2})
    with pytest.raises(UsageError, match="was used in another with block"):
        shards.__enter__()
    assert numbers(shards.paths[0]) == [1]


def test_shards_that_are_there_are_not_replaced_unasked(tmp_path: Path) -> None:
    """Two sets under one pattern would be read as one:
    refused before the first record, whatever their number.
    """
    old = write_set(tmp_path / "movies", shards=3).paths
    with pytest.raises(UsageError, match=r"movies-00000-of-00003 .*exists") as caught:
        write_set(tmp_path / "movies", shards=2)
    assert "3 shards have the prefix movies" in caught.value.detail
    assert sorted(os.listdir(tmp_path)) == SET
    assert [numbers(path) for path in old] == [[0, 3, 6], [1, 4], [2, 5]]
    assert write_set(tmp_path / "movies-2", shards=1).records == 7


def test_overwriting_replaces_the_whole_set(tmp_path: Path) -> None:
    """The old set stays until the new one is whole;
    then only the new one is there, and files of other names.
    """
    write_set(tmp_path / "movies", shards=3)
    write_set(tmp_path / "movies-b", shards=1)
    with pytest.raises(RuntimeError):  # noqa: PT012, SIM117
        with ShardWriter(tmp_path / "movies", shards=2, overwrite=True) as shards:
            shards.write({"n": 5})
            raise RuntimeError
    assert numbers(tmp_path / SET[0]) == [0, 3, 6]
    write_set(tmp_path / "movies", 4, shards=2, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == [
        "movies-00000-of-00002",
        "movies-00001-of-00002",
        "movies-b-00000-of-00001",
    ]
    assert numbers(tmp_path / "movies-00001-of-00002") == [1, 3]


def test_one_writer_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one is refused while the first one is at work, in this process and in another.
    The command that removes the lock of a lost machine can be copied.
    """
    script = (
        "import sys\nfrom imagenet_prep.records import ShardWriter\n"
        "with ShardWriter(sys.argv[1], shards=1) as shards: shards.write({'n': 1})"
    )
    with ShardWriter(tmp_path / "movies", shards=2) as shards:
        shards.write({"n": 0})
        monkeypatch.setattr(writer, "remove_claim", lambda _: command_line(["rm", "claim"]))
        with pytest.raises(BusyError, match=r"another writer has locked") as caught:
            write_set(tmp_path / "movies", shards=3)
        assert [*lines_of(caught.value.hint)][-1] == "rm claim"
        other = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "movies"], capture_output=True, text=True
        )
        assert "BusyError" in other.stderr
    assert [numbers(path) for path in shards.paths] == [[0], []]


# faults -------------------------------------------------------------------------------------------


def test_a_set_that_failed_once_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a piece may be written: a block that goes on regardless,
    with space again, can't save the set.
    """
    record = {"n": 0, "text": bytes(writer.HELD)}
    with pytest.raises(SpaceError), ShardWriter(tmp_path / "movies", shards=2) as shards:  # noqa: PT012
        with Path("/dev/full").open("wb", buffering=0) as full, monkeypatch.context() as patch:
            patch.setattr(local, "write_all", lambda _, parts: write_all(full.fileno(), parts))
            with pytest.raises(SpaceError):
                shards.write(record)
        with pytest.raises(SpaceError):
            shards.write(record)
    assert shards.records == 0
    assert os.listdir(tmp_path) == []


def test_space_comes_back_after_a_full_disk(small_disk: Path) -> None:
    """What did not fit is gone, what was there stays, and what fits is written then."""
    records.write(small_disk / "old", [{"n": 1}])
    with pytest.raises(SpaceError), ShardWriter(small_disk / "movies", shards=2) as shards:  # noqa: PT012
        for n in range(30):
            shards.write({"n": n, "text": bytes(100_000)})
    with pytest.raises(SpaceError, match=r"no space left .*/old"):
        records.write(small_disk / "old", ({"n": n, "text": bytes(100_000)} for n in range(30)))
    assert os.listdir(small_disk) == ["old"]
    assert numbers(small_disk / "old") == [1]
    assert write_set(small_disk / "movies", shards=2).records == 7


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_storage_that_fails_at_the_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An fsync or a renaming that fails takes away the shards that have their names already."""
    calls = []

    def fail_the_second(real: Any) -> Any:
        def failing(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments)

        return failing

    owner, name = (os, "fsync") if call == "fsync" else (Path, "replace")
    monkeypatch.setattr(owner, name, fail_the_second(getattr(owner, name)))
    with pytest.raises(WriteError, match=r"cannot write .*/movies") as caught:
        write_set(tmp_path / "movies", shards=3)
    assert os.strerror(errno.EIO) in caught.value.detail
    assert os.listdir(tmp_path) == []


def kept(folder: Path) -> dict[str, bytes | None]:
    """The bytes of every file below a folder, by path; None for a folder."""
    return {
        str(path): path.read_bytes() if path.is_file() else None for path in list(folder.rglob("*"))
    }


@pytest.mark.parametrize(
    "fault", ["folder", "folder that comes later", "no space", "no name", "lost folder"]
)
def test_a_refused_replacement_leaves_every_byte(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever refuses a set that was to replace another,
    the other one is there as before, and nothing else.
    """
    write_set(tmp_path / "movies", shards=3)
    in_the_way = tmp_path / "movies-00007-of-00009"
    if fault == "folder":
        in_the_way.mkdir()
    before = kept(tmp_path)
    rename = Path.replace
    if fault == "no name":

        def refused(path: Path, target: Path) -> Path:
            if target.name.endswith("1-of-00002"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", refused)
    replacing = ShardWriter(tmp_path / "movies", shards=2, overwrite=True)
    with pytest.raises((UsageError, SpaceError, WriteError)), replacing as shards:  # noqa: PT012
        shards.write({"n": 1})
        if fault == "folder that comes later":
            in_the_way.mkdir()
            before[str(in_the_way)] = None
        if fault == "lost folder":
            shutil.rmtree(tmp_path / ".movies.writing")
        if fault == "no space":
            with Path("/dev/full").open("wb", buffering=0) as full, monkeypatch.context() as patch:
                patch.setattr(local, "write_all", lambda _, parts: write_all(full.fileno(), parts))
                shards.write({"n": 2, "text": bytes(writer.HELD)})
    assert kept(tmp_path) == before


def test_many_killed_writers_never_leave_a_part(tmp_path: Path) -> None:
    """Killed at any moment of many, a writer that replaces a set leaves the old one, the new one,
    or the new in part.

    In part only while names are given: each file under a final name is whole, and old and new never
    stand together.
    """
    script = (
        "import sys\nfrom imagenet_prep.records import ShardWriter\n"
        "with ShardWriter(sys.argv[1], shards=5, overwrite=True) as shards:\n"
        "    print('writing', flush=True)\n"
        "    for n in range(2000): shards.write({'n': n, 'set': int(sys.argv[2])})\n"
    )
    write_set(tmp_path / "movies", 0, shards=5)
    for round_ in range(6):
        call = [sys.executable, "-c", script, str(tmp_path / "movies"), str(round_)]
        process = subprocess.Popen(call, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.008 * round_)
        process.kill()
        process.wait()
        process.stdout.close()
        found = [list(records.read(path)) for path in existing(tmp_path, "movies-*")]
        assert len({record["set"] for each in found for record in each}) <= 1
        assert len({len(each) for each in found}) <= 1


def test_one_file_is_written_record_by_record(tmp_path: Path) -> None:
    """open_writer takes features by keyword or a record;
    the file appears at the end, or an earlier one stays.
    """
    path = tmp_path / "new/movies.tfrecord"
    with records.open_writer(path, "gzip", schema={"label": "float"}) as file:
        file.write(image=b"\xff\xd8", label=3)
        with pytest.raises(UsageError, match="record 1"):
            file.write(label="three")
        with pytest.raises(UsageError, match="not both"):
            file.write({"label": 4}, image=b"")
        with pytest.raises(UsageError):
            file.write()
        file.write({"label": 4})
        assert not path.exists()
    assert (file.records, file.paths) == (2, (path,))
    written = path.read_bytes()
    assert list(records.read(path)) == [{"image": b"\xff\xd8", "label": 3.0}, {"label": 4.0}]
    with contextlib.suppress(KeyError), records.open_writer(path) as file:
        file.write(n=1)
        raise KeyError
    assert path.read_bytes() == written
    with pytest.raises(UsageError, match=r"with block"):
        file.write(n=1)
    with records.open_writer(path) as file:
        file.write(n=1)
    assert list(records.read(path)) == [{"n": 1}]
    assert [each.name for each in existing(path.parent, "*")] == ["movies.tfrecord"]


def test_everything_is_durable_before_it_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shard is synced, then renamed, then the folder is synced."""
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def record_fsync(descriptor: int) -> None:
        done.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def record_replace(path: Path, target: Path) -> Path:
        done.append(f"rename {path.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_replace)
    write_set(tmp_path / "movies", shards=2)
    done = [re.sub(r"\.[0-9a-f]{16}$", "", each) for each in done]
    assert done == ["sync 0", "sync 1", "rename 0", "rename 1", f"sync {tmp_path.name}"]
