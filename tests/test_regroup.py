"""The sequential plan: the archive is read once, in order,
within a memory bound, and the shards are the same.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from existing import existing
from made_sets import read_catalog
from made_tars import save

from imagenet_prep import ConvertOptions, Layout, convert, make_engine
from imagenet_prep.datasets import order
from imagenet_prep.errors import InputError, SpaceError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Silent
from imagenet_prep.shards import regroup as module
from imagenet_prep.shards.regroup import Bundle, regroup
from imagenet_prep.shards.room import available_memory, is_seek_dear
from imagenet_prep.shards.work import lay_out
from imagenet_prep.sources.slices import Reader, Row
from imagenet_prep.stages import repair as repair_stage
from imagenet_prep.storage.location import locate

PART = ConvertOptions(train_shards=16, validation_shards=8, allow_incomplete=True)


def shard_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every shard by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in existing(folder, "*-of-*")
    }


class Reads(FileIO):
    """A file that remembers what it was asked for."""

    ranges: ClassVar[list[tuple[int, int]]] = []

    def readinto(self, buffer: Any) -> int:
        """Remember the range and read it."""
        start = self.tell()
        self.ranges.append((start, start + super().readinto(buffer)))
        return self.ranges[-1][1] - start


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What a pass reads of its archives."""
    monkeypatch.setattr(module, "FileIO", Reads)
    Reads.ranges.clear()
    return Reads.ranges


def test_an_archive_four_times_the_memory_is_read_once_in_order(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, reads: list[tuple[int, int]]
) -> None:
    """Each read begins where the last one ended or later;
    what is held at a time stays within its bound.
    """
    archive = Layout(data_dir).archive_path(facts.ARCHIVES["train"])
    catalog = read_catalog(archive, "train", make_engine("threads", 1))
    total = sum(catalog.lengths)
    memory = total // 4
    monkeypatch.setattr(module, "CHUNK", memory // 8)
    rows = order.shuffled(len(catalog), 12345)
    edges = order.bounds(len(rows), 8)
    shards = [
        (f"shard-{i}", rows[start:stop])
        for i, (start, stop) in enumerate(itertools.pairwise(edges))
    ]
    flushes: list[int] = []
    true_flush = module._Bundles._flush
    monkeypatch.setattr(
        module._Bundles, "_flush", lambda self: (flushes.append(self._held), true_flush(self))[1]
    )
    moved = regroup(catalog, shards, data_dir / "bundles", memory=memory, progress=Silent())
    assert len(reads) > 8
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(reads))
    assert sum(stop - start for start, stop in reads) <= archive.stat().st_size
    assert len(flushes) >= 4
    assert max(flushes) < memory + max(catalog.lengths)
    old, new = Reader(), Reader()
    for row in range(len(catalog)):
        assert bytes(moved.read(row, new)) == bytes(catalog.read(row, old))
        assert moved.container(row).path.parent == data_dir / "bundles"


def test_only_what_is_missing_is_regrouped(data_dir: Path) -> None:
    """With one shard gone, only its images are read again."""
    layout = Layout(data_dir)
    options = PART.replace(read_order="sequential")
    convert(layout, make_engine("processes", 2), options)
    before = shard_digests(data_dir)
    layout.shard_path("train-00003-of-00016").unlink()
    bars: list[int | None] = []

    class Bars(Silent):
        def begin(self, label: str, total: int | None, unit: str, done: int = 0) -> None:
            if unit == "B":
                bars.append(total)

    convert(layout, make_engine("processes", 2), options, progress=Bars())
    assert shard_digests(data_dir) == before
    (read,) = bars
    assert read < layout.shard_path("train-00003-of-00016").stat().st_size


def test_an_archive_cut_meanwhile_is_named(data_dir: Path) -> None:
    """Bytes that are gone since the archive was indexed are exit 4, with its path."""
    archive = Layout(data_dir).archive_path(facts.ARCHIVES["validation"])
    catalog = read_catalog(archive, "validation", make_engine("threads", 1))
    os.truncate(archive, archive.stat().st_size // 2)
    with pytest.raises(InputError, match="has changed since it was first looked at") as caught:
        regroup(
            catalog, [("s", range(len(catalog)))], data_dir / "b", memory=1 << 30, progress=Silent()
        )
    assert str(archive) in caught.value.what
    assert re.search(r"at offset \d+,\d{3}", caught.value.detail)


def test_a_disk_too_small_for_the_bundles(data_dir: Path, small_disk: Path) -> None:
    """A disk that fills up during the pass is exit 7."""
    catalog = read_catalog(
        Layout(data_dir).archive_path(facts.ARCHIVES["train"]), "train", make_engine("threads", 1)
    )
    with pytest.raises(SpaceError):
        regroup(
            catalog,
            [("s", range(len(catalog)))],
            small_disk / "b",
            memory=1 << 20,
            progress=Silent(),
        )


@pytest.mark.parametrize(
    ("rotational", "file_system", "expected"),
    [("1", "ext4", True), ("0", "ext4", False), ("0", "nfs4", True), ("0", "lustre", True)],
)
def test_where_seeking_is_dear(
    tmp_path: Path, rotational: str, file_system: str, expected: bool
) -> None:
    """A spinning disk and a network file system are told from the system's own records."""
    file, sys, proc = (tmp_path / name for name in ("archive.tar", "sys", "proc"))
    file.touch()
    device = file.stat().st_dev
    save(
        sys / f"dev/block/{os.major(device)}:{os.minor(device)}/queue/rotational", f"{rotational}\n"
    )
    mounted = f"2 1 0:2 / {tmp_path} rw,relatime shared:1 - {file_system} server:/x rw"
    save(proc / "self/mountinfo", f"1 1 0:1 / / rw - ext4 /dev/x rw\n{mounted}\n")
    save(proc / "meminfo", "MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    assert is_seek_dear(file, sys=sys, proc=proc) is expected
    assert available_memory(proc=proc) == 2 << 20


def test_an_untold_system_is_taken_for_a_good_one(tmp_path: Path) -> None:
    """Without /sys and /proc nothing is assumed."""
    file = tmp_path / "archive.tar"
    file.touch()
    assert not is_seek_dear(file, sys=tmp_path / "no", proc=tmp_path / "no")
    assert available_memory(proc=tmp_path / "no") == 8 << 30


def test_a_damaged_bundle_of_raw_data_that_is_there(tmp_path: Path) -> None:
    """Another run copies its images again; only consumed raw data has to be fetched."""
    bundle = tmp_path / "run" / "bundles" / "train-00000-of-00001"
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(b"image" + bytes(4))
    with pytest.raises(InputError, match="is not as it was written") as caught:
        Bundle(bundle).open()(Row("a.jpg", 0, 5, 0))
    assert caught.value.hint.startswith("run the same command again: it copies the images")


@pytest.mark.parametrize("is_in_order", [True, False])
def test_a_pass_to_shards_in_an_object_store(is_in_order: bool) -> None:
    """The hint names the option that leads to the pass: no option does for parquet files."""
    catalog = SimpleNamespace(
        split="train", size=lambda rows: 1, is_in_order=is_in_order, containers=[]
    )
    split: Any = SimpleNamespace(source=Path("/raw"), catalog=catalog, rows=lambda plan: [])
    layout: Any = SimpleNamespace(output_dir=locate("s3://bucket/shards"))
    options = ConvertOptions(read_order="auto" if is_in_order else "sequential")
    plan: Any = SimpleNamespace(split="train")
    with pytest.raises(UsageError, match="is read in one pass") as caught:
        lay_out([split], [plan], layout, options)
    assert ("read_order" in caught.value.hint) is not is_in_order
    with pytest.raises(UsageError, match="is read in one pass") as caught:
        lay_out([split], [plan], layout, options, remedy=repair_stage._REMEDY_STORE)
    assert caught.value.hint.startswith("copy the set to a local folder, repair it there")
