"""verify of one file: a shard of a set, a file of another maker, records of any kind; damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from existing import existing
from made_sets import annotated, data_of, write
from running import command

from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import UsageError
from imagenet_prep.stages.verify import verify_file


@pytest.fixture
def movies(tmp_path: Path) -> Path:
    """A file of three records."""
    records.write(tmp_path / "movies.tfrecord", [{"n": number, "image": b"\xff\xd8"} for number in range(3)])
    return tmp_path / "movies.tfrecord"


def test_a_file_of_any_records_is_checked(movies: Path) -> None:
    """A sound file is right; a changed byte, a cut and a record that is no Example are named, with exit status 3."""
    assert verify_file(movies).problems == ()
    assert "These records of movies.tfrecord are right" in command("verify", str(movies)).stdout
    assert json.loads(command("verify", str(movies), "--json", "-").stdout)["totals"]["movies.tfrecord"]["records"] == 3
    sound = movies.read_bytes()
    for content, said in ((sound[:20] + b"x" + sound[21:], "bad-crc"), (sound[:-3], "truncated")):
        movies.write_bytes(content)
        assert f"{said}: movies.tfrecord: record " in command("verify", str(movies), status=3).stdout
    write(movies, [b"no Example"])
    assert [problem.kind.value for problem in verify_file(movies).problems] == ["bad-example"]
    records.write(movies, [records.SequenceExample({"title": "x"}, {"frames": [1, 2]})], "gzip")
    assert verify_file(movies).problems == ()
    assert [path.name for path in existing(movies.parent, "*")] == [movies.name]
    with pytest.raises(UsageError, match="a quick check"):
        verify_file(movies, depth="quick")


def test_a_shard_is_compared_with_its_manifest(made_tiny: MadeSet, tmp_path: Path) -> None:
    """A shard with sound records that were not written is refused, and nothing is kept of the check."""
    layout = annotated(tmp_path / "set", made_tiny)
    shard = tmp_path / "set/train-00001-of-00008"
    assert verify_file(shard).sentence == "These shards are whole and right; they hold a part of ILSVRC2012."
    write(shard, data_of(shard)[1:])
    assert [problem.kind.value for problem in verify_file(shard).problems] == ["missing-record"]
    assert not layout.verdict_path.exists()
