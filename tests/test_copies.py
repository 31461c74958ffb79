"""Without a manifest: a shard that is a copy of another, and a record that is there twice, are called what they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_sets import ENGINE, PART, converted, copied, data_of, write

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout, shard_name
from imagenet_prep.tfrecord.example import BytesList, encode_example, parse_example
from imagenet_prep.tfrecord.inception_reader import read_record

K = ProblemKind
SHARD = "train-00003-of-00008"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """Shards in canonical order and nothing else. Read only."""
    return _bare(converted(tmp_path_factory.mktemp("sound") / "data", made_tiny))


@pytest.fixture(scope="module")
def other_order(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """The same in another order. Read only."""
    return _bare(converted(tmp_path_factory.mktemp("order") / "data", made_tiny, PART.replace(seed=7)))


def _bare(layout: Layout) -> Layout:
    shutil.rmtree(layout.state_dir)
    shutil.rmtree(layout.raw_dir)
    return layout


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return copied(sound, tmp_path / "data")


def look(layout: Layout) -> tuple[Problem, ...]:
    """What a full verify finds in shards that are taken for a part."""
    return verify(layout, ENGINE, allow_incomplete=True).problems


@pytest.mark.parametrize(("split", "distance"), [("train", 1), ("validation", 6)])
def test_copies_are_found(layout: Layout, split: str, distance: int) -> None:
    """Whichever shard is overwritten by whichever other one: both are named, since either may be the copy."""
    for index in (0, 4, 7):
        path = layout.shard_path(shard_name(split, index, 8))
        source = layout.shard_path(shard_name(split, (index + distance) % 8, 8))
        content = path.read_bytes()
        shutil.copy(source, path)
        (problem,) = look(layout)
        assert (problem.kind, problem.subject) == (K.DUPLICATE, split)
        assert problem.detail == (
            f"{' and '.join(sorted((path.name, source.name)))} hold the same records: "
            "all except one are copies, but the original is unknown"
        )
        assert "second set" in problem.remedy
        path.write_bytes(content)


def test_two_copies_of_one_shard(layout: Layout) -> None:
    """All three are named in one problem."""
    for name in ("train-00001-of-00008", "train-00006-of-00008"):
        shutil.copy(layout.shard_path(SHARD), layout.shard_path(name))
    (problem,) = look(layout)
    assert problem.detail.startswith(f"train-00001-of-00008, {SHARD} and train-00006-of-00008 hold the same records")


def test_shards_without_records_are_no_copies(made_tiny: MadeSet, tmp_path: Path) -> None:
    """Empty shards of a set with more shards than images are not called copies of each other."""
    options = PART.replace(train_shards=8, validation_shards=96)
    layout = converted(tmp_path / "data", made_tiny, options)
    layout.manifest_path.unlink()
    layout.journal_path.unlink()
    kinds = {problem.kind for problem in look(layout)}
    assert kinds == {K.WRONG_COUNT}


def test_a_doubled_record_is_called_so(layout: Layout) -> None:
    """A record that is there once more, next to itself or elsewhere in its shard, is one problem that says so."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    for k in (0, len(records) - 1):
        write(path, [*records[: k + 1], *records[k:]])
        (problem,) = look(layout)
        assert (problem.kind, problem.subject, problem.record) == (K.EXTRA_RECORD, SHARD, k + 1)
        assert f"it repeats record {k}" in problem.detail
    write(path, [*records, records[2]])
    (problem,) = look(layout)
    assert (problem.kind, problem.record) == (K.EXTRA_RECORD, len(records))
    assert "it repeats record 2" in problem.detail


def test_a_doubled_record_in_an_order_that_is_not_known(other_order: Layout, tmp_path: Path) -> None:
    """The same where the order is not the canonical one: the bytes tell, and another record of the image is none."""
    layout = copied(other_order, tmp_path / "data")
    path = layout.shard_path(SHARD)
    records = data_of(path)
    features = parse_example(memoryview(records[4]))
    features["image/colorspace"] = BytesList((b"rgb",))
    write(path, [*records[:9], encode_example(features), *records[9:]])
    found = [problem for problem in look(layout) if problem.kind is K.DUPLICATE]
    assert [problem.detail.partition(": ")[2] for problem in found] == [f"this image is also record 4 of {SHARD}"]
    write(path, [*records[:9], records[4], *records[9:]])
    (problem,) = look(layout)
    assert (problem.kind, problem.subject, problem.record) == (K.DUPLICATE, SHARD, 9)
    assert "it repeats record 4" in problem.detail


@pytest.mark.parametrize(("split", "source", "target"), [("train", 1, 6), ("validation", 6, 1)])
def test_a_record_of_another_shard(layout: Layout, split: str, source: int, target: int) -> None:
    """A record added to a shard where it does not belong is named there, not where it belongs."""
    home = layout.shard_path(shard_name(split, source, 8))
    path = layout.shard_path(shard_name(split, target, 8))
    stray = data_of(home)[5]
    records = data_of(path)
    write(path, [*records[:3], stray, *records[3:]])
    (problem,) = look(layout)
    assert (problem.kind, problem.subject, problem.record) == (K.DUPLICATE, path.name, 3)
    assert problem.image == read_record(memoryview(stray)).filename
    assert f"this image is also record 5 of {home.name}, where it belongs" in problem.detail
