"""Findings of verify in words: one of something is not many, and each remedy fits its finding."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from running import command_here
from tiny_sets import made_plan, make_set, make_shard, record, save_manifest, save_plan

from imagenet_prep.checks.checked_shards import failed_check, group
from imagenet_prep.checks.departure import departure
from imagenet_prep.checks.raw_check import _unreadable
from imagenet_prep.engines.worker_faults import died
from imagenet_prep.errors import InputError
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.stages.verify import look
from imagenet_prep.state.manifest import SplitTotals
from imagenet_prep.storage.layout import Layout

WRITTEN = list("abcdefgh")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A finished set of some bytes."""
    (tmp_path / "out").mkdir()
    layout = Layout(tmp_path / "out")
    make_set(layout)
    return layout


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ("abXdefgh", "from here on 1 record is missing and 1 was not written"),
        ("abXYefgh", "from here on 2 records are missing and 2 were not written"),
        ("acdefg", "2 records are missing, this one first"),
    ],
)
def test_records_that_depart_are_counted(read: str, words: str) -> None:
    """One record and several."""
    difference = departure(WRITTEN, list(read))
    assert difference is not None
    assert difference.words == words


def test_one_record_that_departs() -> None:
    """A shard of one record, which is another one: that is no proof of another conversion."""
    difference = departure(["a"], ["b"])
    assert difference is not None
    words = "1 of 1 record is not as written: perhaps a shard of another conversion"
    assert difference.words == words


def _problems(kind: ProblemKind, subjects: Sequence[str]) -> list[Problem]:
    return [Problem(kind, subject, "wrong") for subject in subjects]


@pytest.mark.parametrize(
    ("kind", "subjects", "where", "detail"),
    [
        (
            ProblemKind.BAD_INDEX,
            [f"night-train-{number:05}-of-00060" for number in range(60)],
            "night-train",
            "and 40 more of this kind in 40 shards",
        ),
        (
            ProblemKind.BAD_INDEX,
            [
                f"{split}-{number:05}-of-00030"
                for split in ("train", "test")
                for number in range(30)
            ],
            "train, test",
            "and 40 more of this kind in 40 shards",
        ),
        (
            ProblemKind.STRAY_FILE,
            [f"train-{number}.txt" for number in range(60)],
            "train",
            "and 40 more of this kind in 40 files",
        ),
    ],
)
def test_grouped_problems_name_their_splits(
    kind: ProblemKind, subjects: Sequence[str], where: str, detail: str
) -> None:
    """A split keeps its whole name, every split is named, and a file is not called a shard."""
    *_, counted = group(_problems(kind, subjects))
    assert (counted.subject, counted.detail, counted.count) == (where, detail, 40)


def test_a_hint_is_no_part_of_what_is_wrong() -> None:
    """A copy's file that can't be read: its remedy is printed once."""
    error = InputError("a.tar can't be read", "Input/output error", "mount it again")
    problem = _unreadable("a.jpg", error)
    assert problem.detail == "a.tar can't be read; Input/output error"
    assert problem.remedy == "mount it again"


def test_a_worker_that_dies_is_no_fault_of_the_disk() -> None:
    """The remedy is that of the error."""
    problem = failed_check("train-00000-of-00003", died("killed by SIGKILL"))
    assert problem.remedy == "try fewer --workers, then verify again"
    assert "--workers" not in problem.detail


def test_a_missing_shard_of_one_record(tmp_path: Path) -> None:
    """A shard holds records: not all of them are images."""
    layout = Layout(tmp_path)
    plan = made_plan(
        {"train": 1},
        sources={"train": {"images": 1, "names_and_sizes": "train"}},
        totals={"train": SplitTotals(1, 0, 1, 0, 1)},
    )
    save_plan(layout, plan)
    name = "train-00000-of-00001"
    shard = make_shard(layout, name, plan.fingerprints_by_name()[name], images=1)
    record(layout, [shard])
    save_manifest(layout, plan)
    layout.shard_path(name).unlink()
    missing = [problem for problem in look(layout).problems if problem.subject == name]
    (problem,) = missing
    assert problem.detail == f"it is missing: 1 record in {shard.size} bytes"


def test_shards_of_a_split_that_the_set_lacks(layout: Layout) -> None:
    """One shard is skipped, and then two: the note fits both."""
    layout.shard_path("test-00000-of-00002").touch()
    assert "1 shard of test skipped: this set has no such split" in look(layout).notes
    layout.shard_path("test-00001-of-00002").touch()
    assert "2 shards of test skipped: this set has no such split" in look(layout).notes


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 shard of test belongs to no set of this folder"),
        (2, "2 shards of test belong to no set of this folder"),
    ],
)
def test_shards_of_no_set_may_be_of_another_program(layout: Layout, count: int, words: str) -> None:
    """Next to a set with a prefix: the state of their set is lost, or they were copied here."""
    make_set(replace(layout, set_name="night"), made_plan({"night-train": 1}))
    for number in range(count):
        layout.shard_path(f"test-{number:05}-of-{count:05}").touch()
    stray = [problem for problem in look(layout).problems if problem.kind == "stray-file"]
    (problem,) = stray
    assert problem.detail.startswith(words)
    assert "another program" in problem.detail
    assert problem.remedy.endswith("or move its shards away")


def test_a_rank_does_not_judge_the_whole_set(sound: Layout, tmp_path: Path) -> None:
    """Its records have no order, and its shards no fingerprint: neither is called unreadable."""
    copy = shutil.copytree(sound.data_dir, tmp_path / "data")
    checked = command_here("verify", copy, "--rank", "0/2")
    assert "part: rank 0 of 2, not the whole set." in checked.stdout
    for words in ("records:", "order:", "fingerprint:", "can be read"):
        assert words not in checked.stdout
