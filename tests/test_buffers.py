"""Buffers of storage.memory_maps, through the records of a shard in order:
what is kept stays right, and costs no memory.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made_sets import data_of, flip, write

from imagenet_prep.errors import InputError
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage import memory_maps


def anonymous() -> int:
    """Bytes of this process's memory that are no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


@pytest.fixture(autouse=True)
def _no_view_of_an_earlier_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback may hold records, and so buffers, for as long as it likes."""
    monkeypatch.setattr(memory_maps, "_waiting", deque(maxlen=memory_maps.BUFFERS))


@pytest.fixture
def _in_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that can't load a part of a map."""
    monkeypatch.setattr(memory_maps, "_load_pages", lambda *_: False)


@pytest.fixture(params=["maps", "buffers"])
def _either_way(request: pytest.FixtureRequest) -> None:
    """Both ways of reading in order."""
    if request.param == "buffers":
        request.getfixturevalue("_in_buffers")


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 MB: records of 1 byte to 300 kB, and, in its midst, one that no buffer takes.
    Read only.
    """
    path = tmp_path_factory.mktemp("shard") / "train-00000-of-00001"
    draw = random.Random(2)
    lengths = [draw.choice([draw.randrange(1, 100), draw.randrange(300_000)]) for _ in range(400)]
    write(path, map(draw.randbytes, [*lengths[:200], 3 * memory_maps.BUFFER, *lengths[200:]]))
    return path


@pytest.mark.usefixtures("_in_buffers")
def test_all_that_is_kept_stays_right_and_costs_no_memory(shard: Path) -> None:
    """Who keeps every record has views of the map from some record on."""
    expected = data_of(shard)
    assert sum(1 for _ in Shard.open(shard)) == len(expected)  # the buffers are there
    before = anonymous()
    kept = list(Shard.open(shard))
    grown = anonymous() - before
    assert [bytes(record.data) for record in kept] == expected
    assert grown < (memory_maps.BUFFERS + 2) * memory_maps.BUFFER, grown
    assert any(isinstance(record.data.obj, bytearray) for record in kept)
    assert not all(isinstance(record.data.obj, bytearray) for record in kept)
    assert all(record.data.readonly for record in kept)


def test_records_of_a_loaded_map_are_views_of_it(shard: Path) -> None:
    """Who keeps every record needs no memory."""
    expected = data_of(shard)
    before = anonymous()
    kept = list(Shard.open(shard))
    grown = anonymous() - before
    assert [bytes(record.data) for record in kept] == expected
    assert grown < memory_maps.BUFFER, grown
    assert not any(isinstance(record.data.obj, bytearray) for record in kept)
    assert all(record.data.readonly for record in kept)


def test_only_a_part_that_can_be_used_is_loaded(shard: Path, tmp_path: Path) -> None:
    """Beyond the end of a file that was cut short, and in a copy, nothing is loaded."""
    path = tmp_path / shard.name
    shutil.copy(shard, path)
    view = memory_maps.map_file(path)
    half = len(view) // 2
    assert memory_maps._load_pages(view, half + 1, len(view) - half - 1)
    os.truncate(path, half)
    assert memory_maps._load_pages(view, 1, half - 1)
    assert not memory_maps._load_pages(view, half - 10, memory_maps.BUFFER)
    assert not memory_maps._load_pages(memoryview(bytearray(10)), 0, 10)
    assert not memory_maps._load_pages(memoryview(b""), 0, 0)


@pytest.mark.usefixtures("_either_way")
def test_threads_have_buffers_of_their_own(shard: Path) -> None:
    """Each keeps some records, and lets go of others, while all read."""
    expected = data_of(shard)

    def read(number: int) -> bool:
        kept: list[Record] = []
        for record in Shard.open(shard):
            kept = [*kept[-number:], record]
            if any(bytes(each.data) != expected[each.number] for each in kept):
                return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(read, [1, 1, 2, 3, 20, 40]))


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("number", [0, 380])
def test_a_damaged_record_is_named(shard: Path, tmp_path: Path, number: int) -> None:
    """All before it come, wherever in a buffer it lies."""
    path, expected = tmp_path / shard.name, data_of(shard)
    shutil.copy(shard, path)
    flip(path, sum(len(data) + 16 for data in expected[:number]) + 12)
    found = []
    with pytest.raises(InputError) as caught:
        found.extend(bytes(record.data) for record in Shard.open(path))
    assert found == expected[:number]
    assert f"record {number} at byte" in str(caught.value)


def test_a_part_that_a_disk_can_not_load_is_an_error_with_the_file(
    shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses to load it, and reading it gives the reason: no SIGBUS."""
    path, expected = tmp_path / shard.name, data_of(shard)
    shutil.copy(shard, path)

    def failing(descriptor: int, into: list[bytearray], offset: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", failing)
    size, records = path.stat().st_size, iter(Shard.open(path))
    found = [bytes(next(records).data)]
    os.truncate(path, size // 4)
    with pytest.raises(InputError, match="Input/output error") as caught:
        found.extend(bytes(record.data) for record in records)
    assert str(path) in str(caught.value)
    assert 1 < len(found) < len(expected)
    assert found == expected[: len(found)]


@pytest.mark.usefixtures("_in_buffers")
def test_a_disk_that_fails_is_an_error_with_the_file(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a map it was a SIGBUS."""
    real, calls = os.preadv, itertools.count()

    def failing(descriptor: int, into: list[bytearray], offset: int) -> int:
        if next(calls) == 3:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, into, offset)

    monkeypatch.setattr(os, "preadv", failing)
    with pytest.raises(InputError, match="Input/output error") as caught:
        for _ in Shard.open(shard):
            pass
    assert str(shard) in str(caught.value)
