"""Job arrays: ranks that make the shards of one set side by side,
in any order, any number of times, and merge.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bounded import kill_group
from existing import existing
from made_sets import ENGINE, PART, flip
from tiny_sets import make_set

from imagenet_prep import Layout, convert, verify
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import BusyError, InputError, UsageError
from imagenet_prep.model import Silent
from imagenet_prep.shards.maker import ShardTask
from imagenet_prep.shards.run import Made, make_shards
from imagenet_prep.shards.share import Share
from imagenet_prep.stages import convert as converting
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.journal import sealed_line

pytestmark = pytest.mark.once

WORLD = 8
SHARDS = ("--train-shards", "24", "--validation-shards", "16")
OPTIONS = ("--allow-incomplete", *SHARDS, "--check", "decode", "--workers", "1")
ROOT = Path(__file__).parent.parent


def run(*words: object) -> subprocess.Popen[str]:
    """A command of ours, begun, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "imagenet_prep", *map(str, words)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: subprocess.Popen[str], status: int = 0) -> str:
    """What a command said until its end, which must be this one."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == status, out
    return out


def contents(folder: Path) -> dict[str, bytes]:
    """Shards, indexes, and what a conversion keeps beside them,
    but for the order of lines in the journal.
    """
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in existing(folder, "**/*")
        if path.is_file()
    }
    found = {
        name: data
        for name, data in found.items()
        if not name.startswith(("raw-data", "imagenet-prep/verdict"))
    }
    journal = found["imagenet-prep/journal.jsonl"]
    return {**found, "imagenet-prep/journal.jsonl": b"\n".join(sorted(set(journal.splitlines())))}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archives of pictures that take a moment each: a kill comes in the middle of something."""
    folder = tmp_path_factory.mktemp("raw")
    make(folder, classes=10, per_class=40, validation=160, tiny=True)
    return folder


@pytest.fixture(scope="module")
def plain(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one convert leaves of the same set."""
    folder = tmp_path_factory.mktemp("plain") / "data"
    said(run("convert", folder, "--raw", raw, *OPTIONS))
    return contents(folder)


# all of it ----------------------------------------------------------------------------------------


def play(folder: Path, raw: Path, draw: random.Random) -> int:
    """Eight ranks in random order, at most four at a time; three are killed and run again, two run
    twice at once.

    Returns:
        How many kills met a rank at work.
    """
    ranks = list(range(WORLD))
    draw.shuffle(ranks)
    killed, twice = draw.sample(ranks, 3), draw.sample(ranks, 2)
    waiting = [
        rank for rank in ranks for _ in range(1 + (rank in twice))
    ]  # those that run twice follow each other
    running: list[tuple[int, subprocess.Popen[str]]] = []
    met = 0
    while waiting or running:
        while waiting and len(running) < 4:
            rank = waiting.pop(0)
            running.append(
                (rank, run("convert", folder, "--raw", raw, *OPTIONS, "--rank", f"{rank}/{WORLD}"))
            )
        for rank, process in running:
            is_at_work = any(folder.glob(f"imagenet-prep/journal-rank-{rank}-of-*"))
            if rank in killed and is_at_work and process.poll() is None:
                kill_group(process)
                killed.remove(rank)
                waiting.append(rank)
                met += 1
        ended = [each for each in running if each[1].poll() is not None]
        for each in ended:
            running.remove(each)
            out, _ = each[1].communicate()
            assert each[1].returncode in (0, -signal.SIGKILL), out
        time.sleep(0.005)
    return met


def check_round(folder: Path, raw: Path, plain: dict[str, bytes], seed: int) -> int:
    """A round of ranks, merged: the very files of a plain convert, and nothing else;
    verify finds no fault.
    """
    met = play(folder, raw, random.Random(seed))
    (folder / "imagenet-prep/plan/.rank-5-of-8-killed.1-2-3.partial").write_bytes(
        b""
    )  # killed while it began
    said(run("merge", folder))
    assert contents(folder) == plain
    assert verify(Layout(folder), ENGINE).problems == ()
    shutil.rmtree(folder)
    return met


def test_ranks_in_any_order_killed_and_twice_at_once(
    raw: Path, plain: dict[str, bytes], tmp_path: Path
) -> None:
    """Merged, they leave what a plain convert leaves."""
    assert check_round(tmp_path / "data", raw, plain, 0) >= 1


@pytest.mark.exhaustive
def test_twenty_rounds(raw: Path, plain: dict[str, bytes], tmp_path: Path) -> None:
    """The same twenty times, each in another order."""
    met = sum(check_round(tmp_path / "data", raw, plain, seed) for seed in range(100, 120))
    assert met >= 40


# merge --------------------------------------------------------------------------------------------


@pytest.fixture
def layout(tmp_path: Path, made_tiny: MadeSet) -> Layout:
    """A set to be made of archives that lie elsewhere."""
    return Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)


@pytest.fixture(scope="module")
def whole(made_tiny: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one convert makes of the same archives. Read only."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    convert(Layout(folder, raw=made_tiny.archives["train"].parent), ENGINE, PART)
    return folder


def make_ranks(layout: Layout, *ranks: int, world: int = 4) -> list[str]:
    """Run these ranks; what they note."""
    progress = Silent()
    for rank in ranks:
        convert(layout, ENGINE, PART, share=Share(rank, world), progress=progress)
    return progress.notes


def test_what_is_missing_is_named_by_rank(layout: Layout) -> None:
    """Ranks that have not run, and one whose shard is gone:
    merge says which to run again, and changes nothing.
    """
    make_ranks(layout, 0, 2)
    layout.shard_path("train-00004-of-00008").unlink()
    before = existing(layout.state_dir, "*")
    with pytest.raises(InputError, match=r"9 of 16 shards .*train-00001-of-00008") as caught:
        merge(layout)
    detail = "expected all shards: these are the shards of ranks 0, 1, 3 (of 4)"
    assert caught.value.detail == detail
    assert caught.value.hint.startswith(
        "run these ranks again; or make what is missing without ranks: imagenet-prep convert "
    )
    assert existing(layout.state_dir, "*") == before
    make_ranks(layout, 1, 3, 0)
    merge(layout)
    assert verify(layout, ENGINE).problems == ()


def test_shards_of_no_rank_are_not_asked_of_ranks(layout: Layout) -> None:
    """A convert without ranks that did not finish is run again as it was."""
    convert(layout, ENGINE, PART)
    layout.manifest_path.unlink()
    layout.shard_path("train-00004-of-00008").unlink()
    with pytest.raises(InputError, match="1 of 16 shards is not done") as caught:
        merge(layout)
    assert caught.value.hint.startswith("to make what is missing: imagenet-prep convert ")


def test_merge_of_a_finished_set_that_lacks_a_shard_names_repair(layout: Layout) -> None:
    """Its manifest records the shard; convert could not replace a folder in its place."""
    convert(layout, ENGINE, PART)
    path = layout.shard_path("train-00004-of-00008")
    path.unlink()
    with pytest.raises(InputError) as caught:
        merge(layout)
    assert caught.value.hint.startswith(f"make it again: imagenet-prep repair {layout.data_dir}")
    path.mkdir()
    with pytest.raises(InputError) as caught:
        merge(layout)
    assert caught.value.hint.startswith("move the folder away, then make it again: ")


def test_missing_shards_of_ranks_are_not_advised_to_the_same_rank_again(layout: Layout) -> None:
    """The same convert with its --rank would make none of them."""
    make_ranks(layout, 0)
    merging = f"then finish the set: imagenet-prep merge {layout.data_dir}"
    assert all(merging in problem.remedy for problem in verify(layout, ENGINE).problems)


def test_a_rank_without_shards_keeps_none(layout: Layout) -> None:
    """There are fewer shards than ranks: nothing was done before, and verify would find no set."""
    options = PART.replace(check="decode", train_shards=1, validation_shards=1)
    progress = Silent()
    for rank in (0, 2):
        convert(layout, ENGINE, options, share=Share(rank, 3), progress=progress)
    assert not any("is kept" in note for note in progress.notes)


def test_images_set_aside_are_told_as_convert_tells_them(
    layout: Layout, made_tiny: MadeSet
) -> None:
    """Ranks with --on-damaged skip: merge, and merge again,
    say how many are missing and end as convert does.
    """
    raw = layout.output_dir.parent / "damaged"
    shutil.copytree(layout.raw_dir, raw)
    archive = raw / made_tiny.archives["validation"].name
    with tarfile.open(archive) as tar:
        place = next(iter(tar)).offset_data
    flip(archive, place)  # of the first byte of an image
    counts = ("--train-shards", "4", "--validation-shards", "2")
    options = ("--raw", raw, "--allow-incomplete", *counts, "--on-damaged", "skip")
    plain, folder = layout.output_dir.parent / "plain", layout.output_dir
    told = said(run("convert", plain, *options), 3).splitlines()
    assert {
        "convert: validation: 79 images in 2 shards, 2 made now",
        "  set aside: 1 image",
    } <= set(told)
    for rank in range(2):
        run("convert", folder, *options, "--rank", f"{rank}/2").communicate(timeout=120)
    for _ in range(2):
        told = said(run("merge", folder), 3).splitlines()
        assert told[-5:-3] == ["merge: validation: 79 images in 2 shards", "  set aside: 1 image"]
        assert told[-3].endswith("damaged-images.jsonl names each image that was set aside")
        assert (told[-2].partition(":")[0], told[-1]) == (
            "incomplete",
            "set aside: 1 image, repaired: 3 images",
        )
        assert "merge: train: 300 images in 4 shards" in told
    assert contents(folder) == contents(plain)
    assert said(run("merge", folder, "--quiet"), 3) == ""


COLUMNS = (
    "names",
    "name_starts",
    "container_ids",
    "offsets",
    "lengths",
    "stamps",
    "labels",
    "catalog",
)


@pytest.mark.parametrize("what", [*COLUMNS, "plan", "gone", "the archive"])
def test_rows_that_have_changed_are_listed_again(
    layout: Layout, whole: Path, tmp_path: Path, what: str
) -> None:
    """A plan with a flipped bit in its rows, or of archives with other times, is not read:
    the shards are the same.
    """
    shutil.copytree(whole, layout.data_dir)
    expected = contents(layout.data_dir)
    rows = layout.plan_path.parent
    for path in list(rows.glob(f"**/{what}.*")):
        flip(path, 0)  # of a row of the first rank
    for folder in [path for path in list(rows.glob("*")) if path.is_dir() and what == "gone"]:
        shutil.rmtree(folder)
    if what == "the archive":
        raw = tmp_path / "raw"
        shutil.copytree(layout.raw_dir, raw, copy_function=shutil.copyfile)
        layout = Layout(layout.data_dir, raw)
    for path in (*existing(layout.output_dir, "*-of-*"), layout.manifest_path):
        path.unlink()
    notes = []
    for share in (Share(0, 2), None):
        progress = Silent()
        convert(layout, ENGINE, PART, share=share, progress=progress)
        notes.append(
            [
                note
                for note in progress.notes
                if "can't be used: " in note or "can't be understood" in note
            ]
        )
    found = contents(layout.data_dir)
    assert verify(layout, ENGINE).problems == ()
    assert [len(each) for each in notes] == [what != "the archive", 0], "the rank mends them"
    if what == "the archive":  # other rows are kept, and the same shards
        assert len(existing(layout.plan_path.parent, "*")) == 3
        expected, found = (
            {name: each[name] for name in each if "/plan/" not in name}
            for each in (expected, found)
        )
    assert found == expected


@pytest.mark.parametrize(
    ("is_named", "share"),
    [(True, Share(0, 1)), (False, Share(0, 1)), (False, None)],
    ids=["named", "rank", "whole"],
)
def test_rows_of_another_plan_are_not_used(
    layout: Layout, tmp_path: Path, is_named: bool, share: Share | None
) -> None:
    """Sound rows of another order, named by the plan or under the name of its own rows:
    the shards are the same.
    """
    convert(layout, ENGINE, PART)
    expected = {path.name: path.read_bytes() for path in existing(layout.output_dir, "*-of-*")}
    other = Layout(layout.data_dir, layout.raw, tmp_path / "other")
    convert(other, ENGINE, PART.replace(seed=7))
    plans = [json.loads(each.plan_path.read_bytes()) for each in (layout, other)]
    for split, name in plans[1]["rows"].items():
        own = layout.plan_path.with_name(plans[0]["rows"][split])
        shutil.copytree(
            other.plan_path.with_name(name),
            own.with_name(name) if is_named else own,
            dirs_exist_ok=True,
        )
    if is_named:
        del plans[0]["crc"]
        layout.plan_path.write_bytes(sealed_line({**plans[0], "rows": plans[1]["rows"]}))
    for path in (*existing(layout.output_dir, "*-of-*"), layout.manifest_path):
        path.unlink()
    progress = Silent()
    convert(layout, ENGINE, PART, share=share, progress=progress)
    assert {
        path.name: path.read_bytes() for path in existing(layout.output_dir, "*-of-*")
    } == expected
    assert len([note for note in progress.notes if "the raw data is listed again" in note]) == 1


def test_other_settings_are_refused_until_overwrite(layout: Layout) -> None:
    """A rank does not make shards beside others of another set;
    with overwrite all ranks do, and merge takes theirs.
    """
    convert(layout, ENGINE, PART)
    before = contents(layout.data_dir)
    other = PART.replace(compression="gzip")
    with pytest.raises(UsageError, match=r"other inputs.*other settings"):
        convert(layout, ENGINE, other, share=Share(0, 2))
    assert contents(layout.data_dir) == before
    for rank in (1, 0):
        convert(layout, ENGINE, other.replace(overwrite=True), share=Share(rank, 2))
    merge(layout)
    assert verify(layout, ENGINE).problems == ()
    assert all(
        path.read_bytes()[:2] == b"\x1f\x8b" for path in existing(layout.output_dir, "*-of-*")
    )
    assert [split.made for split in convert(layout, ENGINE, other).splits] == [0, 0]


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted yet"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "meanwhile"])
def test_a_rank_of_other_settings_is_told_both_values(
    layout: Layout, is_late: bool, is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another rank claimed the folder while this one planned,
    and has shards that no journal lists yet.
    """

    def begin() -> None:
        convert(layout, ENGINE, PART, share=Share(0, 2))
        for path in [] if is_noted else existing(layout.state_dir, "journal*"):
            path.unlink()

    def plan(*arguments: Any) -> Any:
        monkeypatch.undo()
        planned = original(*arguments)
        begin()
        return planned

    original = converting.plan_of
    if is_late:
        monkeypatch.setattr(converting, "plan_of", plan)
    else:
        begin()
    with pytest.raises(UsageError, match=r"other settings|images or settings") as caught:
        convert(layout, ENGINE, PART.replace(train_shards=4), share=Share(1, 2))
    assert "number of train shards (8, now 4)" in caught.value.detail
    assert "move" not in str(caught.value)


def test_raw_data_that_ranks_read_is_not_consumed(layout: Layout) -> None:
    """One rank would take away what another reads."""
    with pytest.raises(UsageError, match=r"rank 0 of 2"):
        convert(layout, ENGINE, PART.replace(consume=True), share=Share(0, 2))
    assert not layout.data_dir.exists()


def test_raw_data_may_lie_elsewhere_on_each_machine(
    layout: Layout, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """Copies without their times: each rank keeps where its images lay,
    and merge and the next convert believe it.
    """
    for rank in range(2):
        raw = tmp_path / f"node-{rank}"
        raw.mkdir()
        for archive in made_tiny.archives.values():
            shutil.copyfile(archive, raw / archive.name)
            os.utime(raw / archive.name, ns=(rank, 1_600_000_000_000_000_000 + rank))
        convert(Layout(layout.data_dir, raw=raw), ENGINE, PART, share=Share(rank, 2))
    merge(layout)
    assert verify(layout, ENGINE).problems == ()
    for rank in range(2):
        again = convert(Layout(layout.data_dir, raw=tmp_path / f"node-{rank}"), ENGINE, PART)
        assert [split.made for split in again.splits] == [0, 0]


def test_a_set_that_is_replaced_stops_ranks(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank at work gives nothing its name any more once a convert has made another set there."""
    begun: list[str] = []

    def make(tasks: Iterator[ShardTask], own: Layout, *rest: Any) -> Made:
        if own.run.startswith("rank-") and not begun:
            begun.append(own.run)
            convert(layout, ENGINE, PART.replace(train_shards=4))
        return make_shards(tasks, own, *rest)

    monkeypatch.setattr("imagenet_prep.stages.convert.make_shards", make)
    with pytest.raises(BusyError, match="was not finished"):
        convert(layout, ENGINE, PART, share=Share(0, 2))
    assert begun
    assert verify(layout, ENGINE).problems == ()


def test_a_convert_of_the_same_set_does_not_stop_ranks(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a rank a plain convert begins and is stopped at once:
    the rank is not disturbed by its beginning.
    """
    begun: list[str] = []

    def make(tasks: Iterator[ShardTask], own: Layout, *rest: Any) -> Made:
        if begun:
            raise KeyboardInterrupt  # of the plain convert, before it has made anything
        begun.append(own.run)
        with pytest.raises(KeyboardInterrupt):
            convert(layout, ENGINE, PART)
        return make_shards(tasks, own, *rest)

    monkeypatch.setattr("imagenet_prep.stages.convert.make_shards", make)
    assert [split.made for split in convert(layout, ENGINE, PART, share=Share(0, 2)).splits] == [
        4,
        4,
    ]


# verify -------------------------------------------------------------------------------------------


def test_each_rank_verifies_its_shards(layout: Layout) -> None:
    """Damage is found by the rank whose shard it is in, a stray file by the first;
    the findings have a file each.
    """
    convert(layout, ENGINE, PART)
    flip(layout.shard_path("train-00006-of-00008"), 1000)
    layout.shard_path("train-00000-of-00009").touch()
    found = [verify(layout, ENGINE, share=Share(rank, 4)) for rank in range(4)]
    assert [sorted({problem.subject for problem in each.problems}) for each in found] == [
        ["train-00000-of-00009"],
        [],
        ["train-00006-of-00008"],
        [],
    ]
    assert sum(each.records or 0 for verdict in found for each in verdict.totals) == 380
    assert [path.name for path in existing(layout.state_dir, "problems-*")] == [
        "problems-rank-0-of-4.jsonl",
        "problems-rank-2-of-4.jsonl",
    ]
    assert len(list(layout.state_dir.glob("verdict-rank-*"))) == 4
    whole = verify(layout, ENGINE)
    assert {problem.subject for problem in whole.problems} == {
        "train-00000-of-00009",
        "train-00006-of-00008",
    }
    assert layout.found_by_ranks() == []


# which rank ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "count"), [(3, 25), (50, 24)])
def test_every_shard_is_one_ranks(world: int, count: int) -> None:
    """And no rank has more than one more than another."""
    names = [f"a-{number:05d}-of-{count:05d}" for number in range(count)]
    shares = [Share(rank, world).of(reversed(names)) for rank in range(world)]
    assert sorted(name for share in shares for name in share) == names
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("rank", "world"), [(8, 8), (-1, 8), (0, 0)])
def test_there_is_no_such_rank(rank: int, world: int) -> None:
    """Ranks are counted from 0 to one less than there are."""
    with pytest.raises(UsageError, match=f"rank {rank} of {world}"):
        Share(rank, world)


SLURM = {
    "SLURM_ARRAY_TASK_ID": "5",
    "SLURM_ARRAY_TASK_MIN": "0",
    "SLURM_ARRAY_TASK_MAX": "7",
    "SLURM_ARRAY_TASK_COUNT": "8",
    "SLURM_ARRAY_TASK_STEP": "1",
}


# the script of the documentation ------------------------------------------------------------------


def test_the_sbatch_script_of_the_documentation(
    raw: Path, plain: dict[str, bytes], tmp_path: Path
) -> None:
    """As Slurm runs it: a task at a time with its variables, then the second script;
    the set is that of a plain one.
    """
    folder = tmp_path / "data"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "imagenet-prep").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m imagenet_prep "$@"\n'
    )
    (tools / "imagenet-prep").chmod(0o755)
    script = ROOT / "docs" / "cluster" / "imagenet.sbatch"
    text = script.read_text()
    assert "#SBATCH --array=0-7" in text
    usual = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "DATA_DIR": str(folder),
        "CONVERT": f"--raw {raw} {' '.join(OPTIONS)}",
    }
    for task in random.Random(1).sample(range(WORLD), WORLD):
        environment = {
            **os.environ,
            **usual,
            **SLURM,
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_CPUS_PER_TASK": "1",
        }
        ran = subprocess.run(
            ["bash", script], env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert f"rank {task} of 8" in ran.stdout + ran.stderr
    said(run("merge", folder))
    assert contents(folder) == plain


def test_nothing_to_merge(tmp_path: Path) -> None:
    """Where no rank has begun, merge says so."""
    with pytest.raises(InputError, match="nothing to merge in"):
        merge(Layout(tmp_path))


def test_a_finished_set_without_a_plan_contradicts_nothing(tmp_path: Path) -> None:
    """Files of ranks are left, and the plan is gone: the set is finished all the same."""
    layout = Layout(tmp_path)
    make_set(layout)
    layout.plan_path.unlink()
    (layout.plan_path.parent / "rank-0-of-2").touch()
    with pytest.raises(
        InputError, match="holds a finished set: there is nothing to merge"
    ) as caught:
        merge(layout)
    assert "to check the finished set: imagenet-prep verify" in caught.value.hint


def test_verify_of_an_unfinished_set_says_to_merge(layout: Layout) -> None:
    """Without a manifest, where ranks are at work: what finishes the set."""
    make_ranks(layout, 0, 1, 2, 3)
    assert any(
        "ranks make these shards" in note and "merge" in note
        for note in verify(layout, ENGINE).notes
    )
    merge(layout)
    assert not any("ranks make" in note for note in verify(layout, ENGINE).notes)
