"""What every command does in every state of a set:
its exit status, and that a refusal leaves every byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, data_of, make_flowers
from set_states import (
    GROWING,
    OTHER,
    RECIPE,
    STATES,
    Folder,
    claimed_growth,
    copied_elsewhere,
    foreign,
    fresh,
    killed_growth,
    older_manifest,
    stopped_before,
)

import imagenet_prep
from imagenet_prep import Layout, PrepError, diff, export, report, status, verify
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.shards import finishing
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.convert import _Conversion
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.set_state import SetState

pytestmark = pytest.mark.once

State = Callable[[Folder], None]
GROWN = (killed_growth, claimed_growth, older_manifest)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[State, Path]:
    """A folder in each state, made once."""
    made: dict[State, Path] = {}
    for state in STATES:
        root = tmp_path_factory.mktemp(state.__name__)
        make_flowers(root / "data", 6)
        with pytest.MonkeyPatch.context() as patch:
            state(Folder(root, patch))
        made[state] = root
    return made


@pytest.fixture
def folder(
    kept: dict[State, Path], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Folder:
    """A folder in the state of the test; a set that was changed by another test is put back."""
    root = kept[request.getfixturevalue("state")]
    copy = root / "copy"
    if not copy.exists():
        (root / "out").mkdir(exist_ok=True)
        shutil.copytree(root / "out", copy)
    shutil.rmtree(root / "out")
    shutil.copytree(copy, root / "out")
    return Folder(root, monkeypatch)


def contents(folder: Folder) -> dict[str, bytes]:
    """Every file of a set, but for locks and the findings of verify and report,
    which any state may have.
    """
    passing = ("lock", "verdict", "problems", "report")
    files = [path for path in list(folder.layout.output_dir.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder.root)): path.read_bytes()
        for path in files
        if not path.name.startswith(passing)
    }


def records(folder: Folder) -> dict[str, list[bytes]]:
    """The records of each shard."""
    return {path.name: data_of(path) for path in existing(folder.layout.output_dir, "*-of-*")}


def outcome(call: Callable[[], object]) -> int:
    """The exit status that the command line gives for a call."""
    try:
        result = call()
    except PrepError as error:
        return error.exit_code
    problems = getattr(getattr(result, "verdict", result), "problems", ())
    return 3 if problems else 0


@pytest.mark.parametrize("state", STATES)
def test_the_state_has_its_word(state: State, folder: Folder) -> None:
    """SetState says what is there, and a state that can't be used says what to do."""
    found = SetState.read(folder.layout)
    assert found.kind == STATES[state]
    if not found.is_usable and found.kind != "nothing":
        assert found.sentence.startswith(str(folder.layout.output_dir))
        assert "imagenet-prep" in found.following


USABLE = ("finished", "foreign")
VERIFY = {"finished": 0, "nothing": 4, "foreign": 3}
"""Verify's exit status by state; 3 otherwise. Shards of another program are no whole ImageNet."""


@pytest.mark.parametrize("state", STATES)
def test_verify_never_calls_an_unfinished_set_right(state: State, folder: Folder) -> None:
    """Only a finished set ends with 0."""
    expected = VERIFY.get(STATES[state], 3)
    before = contents(folder)
    assert outcome(lambda: verify(folder.layout, ENGINE)) == expected
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["open", "export"])
@pytest.mark.parametrize("state", STATES)
def test_readers_take_only_whole_sets(
    state: State, command: str, folder: Folder, tmp_path: Path
) -> None:
    """open and export refuse what is not finished, and leave every byte and no export."""
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: len(imagenet_prep.open(folder.layout.output_dir, "train")),
        "export": lambda: export(folder.layout, "folders", tmp_path / "export", ENGINE),
    }
    before = contents(folder)
    status_of_command = outcome(calls[command])
    assert status_of_command == (0 if STATES[state] in USABLE else 4)
    assert contents(folder) == before
    if status_of_command:
        assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("state", STATES)
def test_merge_finishes_what_is_done_and_nothing_else(state: State, folder: Folder) -> None:
    """It writes a manifest only for shards that are all there; a finished set stays as it is."""
    done = {"finished": 0, "part": 0 if state.__name__ == "ranks_not_merged" else 4}
    done |= {
        "unfinished": 0
        if state.__name__ in ("lost_manifest", "damaged_manifest", "older_manifest")
        else 4
    }
    before = contents(folder)
    assert outcome(lambda: merge(folder.layout)) == done.get(STATES[state], 4)
    after = contents(folder)
    if STATES[state] == "finished" or done.get(STATES[state], 4):
        assert after == before
    if not done.get(STATES[state], 4):
        assert SetState.read(folder.layout).kind == "finished"


@pytest.mark.parametrize("state", STATES)
def test_repair_makes_only_shards_of_a_manifest(state: State, folder: Folder) -> None:
    """A lost shard is made again; without a manifest that covers the plan it is refused."""
    before = contents(folder)
    status_of_command = outcome(lambda: verify_and_repair(folder.layout, ENGINE))
    expected = 0 if STATES[state] == "finished" or state.__name__ == "lost_shard" else 4
    if state.__name__ == "mixed_generations":
        expected = 3  # a file too many is for the user
    if state is copied_elsewhere or state.__name__ == "lost_plan":
        expected = 4  # the recipe's path was in the plan
    assert status_of_command == expected
    if status_of_command:
        assert contents(folder) == before


@pytest.mark.parametrize("command", ["status", "report", "diff"])
@pytest.mark.parametrize("state", STATES)
def test_looking_changes_nothing(
    state: State, command: str, folder: Folder, kept: dict[State, Path], tmp_path: Path
) -> None:
    """status, report and diff name the state, and never call it right or equal."""
    finished = kept[next(each for each in STATES if each.__name__ == "finished")] / "out"
    calls: dict[str, Callable[[], object]] = {
        "status": lambda: status(folder.layout),
        "report": lambda: report(folder.layout, ENGINE, page=tmp_path / "page.html"),
        "diff": lambda: diff(folder.layout.output_dir, finished),
    }
    before = contents(folder)
    status_of_command = outcome(calls[command])
    assert contents(folder) == before
    if command != "status" and STATES[state] not in USABLE:
        assert status_of_command != 0
    stages = {stage.stage: stage for stage in status(folder.layout).stages}
    if STATES[state] not in USABLE:
        assert stages["convert"].state != "done" or state.__name__ in ("mixed_generations",)
        assert stages["verify"].state != "done"


@pytest.mark.parametrize("state", STATES)
def test_convert_leads_every_state_to_the_same_set(
    state: State, folder: Folder, kept: dict[State, Path]
) -> None:
    """Whatever was there, convert ends with the set of one undisturbed run,
    or refuses and leaves every byte.
    """
    refused = {"foreign", "mixed_generations", "copied_elsewhere", "lost_plan", "only_journal"} & {
        state.__name__
    }
    text = GROWING if state in GROWN else None
    before = contents(folder)
    if refused and outcome(lambda: folder.convert(*filter(None, [text]))):
        assert contents(folder) == before
        return
    folder.convert(*filter(None, [text]))
    if state is fresh or state not in GROWN:
        whole = kept[next(each for each in STATES if each.__name__ == "finished")]
        expected = {path.name: data_of(path) for path in existing(whole / "out", "*-of-*")}
        assert records(folder) == expected
    assert SetState.read(folder.layout).kind == "finished"
    names = [
        record.filename
        for split in ("train", "validation")
        for record in imagenet_prep.open(folder.layout.output_dir, split)
    ]
    images = [
        str(path.relative_to(folder.root / "data"))
        for path in existing(folder.root / "data", "*/*.jpg")
    ]
    assert sorted(names) == images
    assert foreign is not state
    assert Layout(folder.layout.data_dir).manifest_path.exists()


FEWER = RECIPE.replace("train: 4", "train: 3")


@pytest.mark.parametrize("command", ["convert", "merge"])
@pytest.mark.parametrize("removed", [1, 2])
def test_a_killed_overwrite_goes_on_in_a_copy(
    command: str, removed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy has other inodes: none of the older shards stays beside the new ones."""
    make_flowers(tmp_path / "data", 4)
    folder = Folder(tmp_path, monkeypatch)
    folder.convert()
    with stopped_before(monkeypatch, "imagenet_prep.state.replacement.remove_if_same", removed):
        folder.convert(FEWER, overwrite=True)
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "copy").rename(tmp_path / "out")
    if command == "merge":
        with pytest.raises(PrepError, match="not done"):
            merge(folder.layout)
    folder.convert(FEWER)
    assert sorted(folder.layout.find_shards({"train"})) == [
        f"train-{number:05d}-of-00003" for number in range(3)
    ]
    assert SetState.read(folder.layout).kind == "finished"


def test_no_manifest_beside_a_shard_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard of another number of shards that arrives while convert runs:
    it ends with an error, and no manifest.
    """
    make_flowers(tmp_path / "data", 4)
    folder = Folder(tmp_path, monkeypatch)
    real = finishing.find_lost

    def find_lost(plan: Plan, layout: Layout, journal: Journal, *seen: object) -> list[str]:
        shard = layout.shard_path("train-00000-of-00004")
        shutil.copy2(shard, shard.with_name("train-00000-of-00003"))
        return real(plan, layout, journal)

    monkeypatch.setattr("imagenet_prep.stages.convert.find_lost", find_lost)
    with pytest.raises(PrepError, match=r"1 shard .*plan.* train-00000-of-00003"):
        folder.convert()
    assert not folder.layout.manifest_path.exists()


@pytest.mark.parametrize("step", ["plan_set", "joined", "compare"])
@pytest.mark.parametrize("text", [FEWER, OTHER], ids=["fewer shards", "other labels"])
def test_a_rank_joins_an_overwrite_that_began_meanwhile(
    text: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another rank claims, removes the older set and ends, while this one is between two steps."""
    make_flowers(tmp_path / "data", 4)
    folder = Folder(tmp_path, monkeypatch)
    folder.convert()
    real, calls = getattr(_Conversion, step), 0

    def call(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        result = real(*arguments, **options)
        if calls == 1:
            folder.convert(text, Share(0, 2), overwrite=True)
        return result

    monkeypatch.setattr(_Conversion, step, staticmethod(call) if step == "plan_set" else call)
    folder.convert(text, Share(1, 2), overwrite=True)
    merge(folder.layout)
    assert calls == 2
    assert verify(folder.layout, ENGINE).problems == ()
