"""Shards of another set under the names of this one: whatever its plan, manifest, journal and index
say, convert and repair leave each byte, and do not call them done.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from existing import existing
from made_sets import make_flowers
from set_states import OTHER, RECIPE, Folder

from imagenet_prep.errors import UsageError
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout

STATES = ("own", "other", "gone", "damaged")
"""Whose each file is: of the set that is converted, of the set of the shards, of none."""


class Sets(NamedTuple):
    """Two sets with shards of the same names, and of the same sizes if only labels differ."""

    own: Layout
    other: Layout
    data: Path


@pytest.fixture(scope="module", params=["labels", "images"])
def sets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sets:
    """The set of a recipe, and one with other labels or with other images too."""
    root = tmp_path_factory.mktemp("sets")
    data = make_flowers(root / "own" / "data", 3)
    shutil.copytree(data, root / "other" / "data")
    if request.param == "images":
        for path in existing(root / "other" / "data", "*/*.jpg"):
            path.rename(path.with_name(f"other-{path.name}"))
    with pytest.MonkeyPatch.context() as patch:
        own, other = Folder(root / "own", patch), Folder(root / "other", patch)
        own.convert(RECIPE)
        other.convert(OTHER)
    return Sets(own.layout, other.layout, data)


def put(source: Path, target: Path, *, damages: bool) -> None:
    """Copy a file or a folder of files; damaged files lack their last bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [source] if source.is_file() else existing(source, "*")
    for path in files:
        copy = target if source.is_file() else target / path.name
        copy.parent.mkdir(exist_ok=True)
        content = path.read_bytes()
        copy.write_bytes(content[:-9] if damages else content)


def mixed(sets: Sets, root: Path, patch: pytest.MonkeyPatch, states: tuple[str, ...]) -> Folder:
    """The shards of the other set, with plan, manifest, journal and index in these states."""
    shutil.copytree(sets.data, root / "data")
    folder = Folder(root, patch)
    folder.layout.output_dir.mkdir()
    for path in existing(sets.other.output_dir, "*-of-*"):
        shutil.copy(path, folder.layout.output_dir)
    names = ("plan_path", "manifest_path", "journal_path", "index_dir")
    for name, state in zip(names, states, strict=True):
        if state == "gone":
            continue
        source = sets.other if state == "other" else sets.own
        put(getattr(source, name), getattr(folder.layout, name), damages=state == "damaged")
    return folder


def contents(folder: Folder) -> dict[str, bytes]:
    """The shards."""
    paths = existing(folder.layout.output_dir, "*-of-*")
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("plan", STATES)
@pytest.mark.parametrize("manifest", STATES)
def test_convert_leaves_the_shards_of_another_set(
    plan: str, manifest: str, sets: Sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair of plan and manifest, with every pair of journal and index."""
    for journal, index in itertools.product(STATES, STATES):
        states = (plan, manifest, journal, index)
        folder = mixed(sets, tmp_path / "-".join(states), monkeypatch, states)
        before = contents(folder)
        with pytest.raises(UsageError):
            folder.convert(RECIPE)
        assert contents(folder) == before, states


@pytest.mark.parametrize("states", [("gone", "own", "gone", "gone"), ("own", "own", "own", "own")])
def test_the_refusal_says_what_is_there_and_its_advice_helps(
    states: tuple[str, ...], sets: Sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --overwrite the set that was asked for takes the place of the other one."""
    folder = mixed(sets, tmp_path / "x", monkeypatch, states)
    with pytest.raises(UsageError) as caught:
        folder.convert(RECIPE)
    assert caught.value.lines == [
        (
            f"{folder.layout.output_dir} holds 6 shards (first: train-00000-of-00004), whose "
            "records are not those of this set"
        ),
        f"expected only shards of this set under these names, as listed in "
        f"{folder.layout.state_dir}",
        (
            "move them away, or choose another folder with --output; or, if nobody needs them, "
            "replace them with --overwrite"
        ),
    ]
    folder.convert(RECIPE, overwrite=True)
    own = {path.name: path.read_bytes() for path in existing(sets.own.output_dir, "*-of-*")}
    assert contents(folder) == own
    assert SetState.read(folder.layout).kind == "finished"


@pytest.mark.parametrize("lost", ["plan", "manifest", "journal", "index", "all but manifest"])
@pytest.mark.parametrize("cut", [False, True])
def test_own_shards_are_made_again(
    lost: str, cut: bool, sets: Sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is lost of its records, a set's own shard is mended in its place."""
    parts = ("plan", "manifest", "journal", "index")
    states = []
    for part in parts:
        is_lost = part == lost or (lost == "all but manifest" and part != "manifest")
        states.append("gone" if is_lost else "own")
    folder = mixed(sets._replace(other=sets.own), tmp_path / "x", monkeypatch, tuple(states))
    before = contents(folder)
    if cut:
        path = folder.layout.shard_path("train-00001-of-00004")
        path.write_bytes(path.read_bytes()[:-20])
    folder.convert(RECIPE)
    assert contents(folder) == before
