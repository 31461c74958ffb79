"""Findings of verify in words: one of something is not many, and each remedy fits its finding."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from running import command_here
from tiny_sets import made_plan, make_set, make_shard, record, save_manifest, save_plan

import imagenet_prep
from imagenet_prep.checks.checked_shards import failed_check, group
from imagenet_prep.checks.departure import departure
from imagenet_prep.checks.raw_check import _unreadable
from imagenet_prep.checks.shard_check import ShardCheck, _fault_in_words
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.engines.worker_faults import died
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import set_check
from imagenet_prep.ilsvrc2012.class_parts import WHOLE
from imagenet_prep.model import Problem, ProblemKind, ShardInfo
from imagenet_prep.reading.shard import Shard
from imagenet_prep.stages.status import unknown
from imagenet_prep.stages.verify import look, verify
from imagenet_prep.state.manifest import SplitTotals
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import locate
from imagenet_prep.storage.refusals import no_space, unreadable

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
    problem = failed_check("train-00000-of-00003", died("killed by SIGKILL", "try fewer --workers"))
    assert problem.remedy == "try fewer --workers"
    assert "--workers" not in problem.detail


def test_a_full_disk_keeps_no_findings(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note is about the findings, and does not say that everything is kept."""

    def fail(*_: Any) -> None:
        raise no_space(layout.verdict_path)

    monkeypatch.setattr("imagenet_prep.stages.verify.save_verdict", fail)
    verdict = verify(layout, make_engine("threads", 1), depth="quick")
    note = (
        f"the result of this check was not saved: no space left while writing {layout.verdict_path}"
    )
    assert verdict.notes[-1] == note


@pytest.mark.parametrize(
    ("place", "following"),
    [
        ("/data/set", "ls -la /data/set"),
        ("s3://bucket/set", "imagenet-prep status s3://bucket/set"),
    ],
)
def test_an_inaccessible_folder_has_a_command_that_fits(place: str, following: str) -> None:
    """ls shows who owns a folder here, and knows no object store."""
    reason = InputError("it can't be read", "denied", "check the credentials")
    status = unknown(reason, locate(place))
    assert status.following == following
    assert ("credentials" in status.stages[0].detail) == place.startswith("s3:")


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


def test_an_index_that_cant_be_read_is_named(tmp_path: Path) -> None:
    """It is not its shard that can't be read."""
    path = tmp_path / "train-00000-of-00001"
    index = tmp_path / "train-00000.idx"
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    assert _fault_in_words(path, unreadable(path, denied)) == "it can't be read: Permission denied"
    words = _fault_in_words(path, unreadable(index, denied))
    assert words == f"{index} can't be read: Permission denied"


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "check its permissions"),
        (errno.EIO, "its disk, or the network to it, fails"),
        (errno.EMFILE, "raise the limit of open files"),
        (errno.EISDIR, "make it again"),
    ],
)
def test_a_shard_that_the_system_refuses_to_read_is_not_to_be_made_again(
    number: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be sound: what refuses is mended."""
    name = "train-00000-of-00001"

    def refuse(path: Path, *given: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Shard, "open", refuse)
    infos = {name: ShardInfo(name, "", 1, 1, "")}
    examiner: Any = SimpleNamespace(examine=None)
    (problem,) = ShardCheck(Layout(tmp_path), examiner, infos, "make it again")(name).problems
    assert problem.remedy.startswith(remedy)


SHARD = "train-00004-of-00008"
HARMS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe, a socket or a device": os.mkfifo,
    "a broken link": lambda path: path.symlink_to("nowhere"),
    "missing": lambda path: None,
}


@pytest.mark.parametrize("depth", ["quick", "full"])
@pytest.mark.parametrize("place", ["shard", "index", "list"])
@pytest.mark.parametrize("state", HARMS)
def test_what_is_in_the_place_of_a_file_is_named_and_can_be_repaired(
    state: str, place: str, depth: Any, sound: Layout, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """No file has 4,096 bytes there, none is missing that exists, and the remedy works as told."""
    layout = Layout(Path(shutil.copytree(sound.data_dir, tmp_path / "data")))
    index_path, list_path = layout.index_paths(SHARD)
    path = Path(str({"shard": layout.shard_path(SHARD), "index": index_path}.get(place, list_path)))
    path.unlink()
    HARMS[state](path)
    (problem,) = verify(layout, make_engine("threads", 1), depth=depth).problems
    assert problem.subject == SHARD
    if place != "shard":
        assert problem.detail == f"its index file {path} is {state}"
    elif depth == "quick" or "link" in state or state == "missing":
        assert problem.detail.startswith(f"it is {state}")
    if state == "a folder":
        assert problem.remedy.startswith(f"move the folder {path} away, then make it again: ")
        path.rmdir()
    assert isinstance(problem.remedy, Hint)
    repair = problem.remedy.parts[-1]
    assert isinstance(repair, CommandLine)
    command_here(*repair.words[1:])
    assert verify(layout, make_engine("threads", 1)).problems == ()


def test_one_file_alone_is_renamed_to_a_missing_shard(layout: Layout) -> None:
    """Two copies of it: to rename both would lose one of them."""
    shard = layout.shard_path("train-00000-of-00003")
    content = shard.read_bytes()
    shard.unlink()
    for name in ("train-00000-of-00003.bak", "train-00000-of-00003.old"):
        layout.shard_path(name).write_bytes(content)
    stray = [problem for problem in look(layout).problems if problem.kind == "stray-file"]
    remedies = [problem.remedy.partition(" ")[0] for problem in stray]
    assert remedies == ["rename", "move"]


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
    assert problem.remedy.endswith("or move these shards to another folder")


def test_a_set_whose_records_are_lost_is_a_problem(layout: Layout) -> None:
    """Its manifest is gone, and its plan is damaged: verify reports it, with what to do."""
    layout.manifest_path.unlink()
    layout.plan_path.write_text("x")
    (problem,) = look(layout).problems
    assert problem.kind == "unfinished"
    assert problem.detail.endswith(f"{layout.plan_path} can't be understood")
    assert problem.remedy.startswith("run the same imagenet-prep convert again")


def test_a_set_with_strays_is_not_to_be_resumed(layout: Layout) -> None:
    """convert would refuse the shards that its plan does not have."""
    layout.manifest_path.unlink()
    layout.shard_path("train-00000-of-00099").touch()
    verdict = look(layout)
    assert [problem.kind for problem in verdict.problems] == ["stray-file"]
    assert not any("to resume" in note for note in verdict.notes)


def test_shards_of_other_splits_are_not_denied(tmp_path: Path) -> None:
    """Another program's shards of a split test are there: only those of ImageNet's splits lack."""
    (tmp_path / "test-00000-of-00002").touch()
    with pytest.raises(InputError, match=f"^no train or validation shards in {tmp_path}\n"):
        look(Layout(tmp_path))


def test_shards_in_folders_of_splits_are_found(tmp_path: Path) -> None:
    """imagenet_to_gcs.py writes train/ and validation/: no advice to download all of it again."""
    for split in ("train", "validation"):
        (tmp_path / split).mkdir()
        (tmp_path / split / f"{split}-00000-of-00001").touch()
    with pytest.raises(InputError, match=r"found shards in .*train, .*validation\nmove all shards"):
        look(Layout(tmp_path))
    with pytest.raises(InputError, match=f"holds the shards: {tmp_path}/validation$"):
        imagenet_prep.open(tmp_path, "validation")


def test_lost_records_are_no_other_partition(sound: Layout, tmp_path: Path) -> None:
    """A missing shard says nothing about the records per shard of the others."""
    copy = shutil.copytree(sound.data_dir, tmp_path / "data", ignore=lambda *_: ["imagenet-prep"])
    Layout(copy).shard_path(min(sound.find_shards())).unlink()
    checked = command_here("verify", copy, "--allow-incomplete", status=3)
    assert "it is missing: the names of the other shards say that there are " in checked.stdout
    assert "partition" not in checked.stdout


def test_a_rank_does_not_judge_the_whole_set(sound: Layout, tmp_path: Path) -> None:
    """Its records have no order, and its shards no fingerprint: neither is called unreadable."""
    copy = shutil.copytree(sound.data_dir, tmp_path / "data")
    checked = command_here("verify", copy, "--rank", "0/2")
    assert "part: rank 0 of 2, not the whole set." in checked.stdout
    for words in ("records:", "order:", "fingerprint:", "can be read"):
        assert words not in checked.stdout


def _split(reports: list[Any]) -> set_check._Split:
    """A split of two shards, some of them read, whose labels are right."""
    shards = [f"validation-{number:05d}-of-00002" for number in range(2)]
    inventory: Any = SimpleNamespace(of=lambda split: shards)
    labels = set(WHOLE.labels.values())
    return set_check._Split("validation", inventory, reports, labels, WHOLE, None, is_proven=False)


def _report(number: int) -> Any:
    """A shard of 24,000 images."""
    values = {"is_whole": True, "records": 24_000, "names": b"", "filenames": (), "digest": "0"}
    return SimpleNamespace(name=f"validation-{number:05d}-of-00002", counts={}, **values)


def test_a_count_by_the_cut_of_2016_says_so() -> None:
    """Another tool may have cut the shards elsewhere: what a lost one held is not known."""
    (problem,) = set_check._check_complete(_split([_report(0)]), set())
    assert problem.detail == (
        "1,000 of 50,000 images are missing, if the shards with other problems have as many "
        "records as in 2016"
    )


def test_the_records_of_identical_shards_are_not_counted_twice() -> None:
    """Two shards of the same 24,000 images are no 48,000 images."""
    problems = set_check._check_facts(_split([_report(0), _report(1)]), is_part=False)
    assert [problem.kind for problem in problems] == [ProblemKind.DUPLICATE]
