"""exports.array_records: files that array_record itself reads, at random too: the Examples as they are."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, copied, data_of
from running import command
from test_export import LIMITED, files_below, flip, sound

from imagenet_prep.errors import InputError
from imagenet_prep.stages.export import export
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.tensorflow

__all__ = ["sound"]  # the fixture

SHARD = "train-00003-of-00008"


def test_array_record_reads_every_record(tmp_path: Path, sound: Layout) -> None:
    """In order and by number, what Grain's source takes: a group a record, the bytes of the Example."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordReader

    export(sound, "arrayrecord", tmp_path / "out", ENGINE)
    paths = existing(tmp_path / "out", "train-*.array_record")
    assert [path.name for path in paths] == [f"train-{k:05d}-of-00008.array_record" for k in range(8)]
    expected = [data for path in existing(sound.output_dir, "train-*") for data in data_of(path)]
    source = ArrayRecordDataSource([str(path) for path in paths])
    assert len(source) == len(expected) == 300
    assert [source[number] for number in range(300)] == expected
    assert "group_size:1," in ArrayRecordReader(str(paths[0])).writer_options_string()


def test_a_damaged_record_leaves_nothing_wrong(tmp_path: Path, sound: Layout) -> None:
    """The error names it; its shard has no file."""
    layout = copied(sound, tmp_path / "data")
    flip(layout.shard_path(SHARD), 100)
    with pytest.raises(InputError, match=f"{SHARD}: record 0 at byte 0 is damaged"):
        export(layout, "arrayrecord", tmp_path / "out", ENGINE)
    assert len(files_below(tmp_path / "out")) == 15
    assert f"{SHARD}.array_record" not in files_below(tmp_path / "out")


def test_a_disk_that_takes_no_more_leaves_nothing_wrong(tmp_path: Path, sound: Layout) -> None:
    """What array_record says of the disk is status 1, in our words; no file is left, and a rerun makes all."""
    assert hasattr(signal, "SIGXFSZ")
    words = ["export", "arrayrecord", str(sound.output_dir), str(tmp_path / "out"), "--workers", "1", "--quiet"]
    done = subprocess.run([sys.executable, "-c", LIMITED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert files_below(tmp_path / "out") == {}
    command(*words)
    assert len(files_below(tmp_path / "out")) == 16
