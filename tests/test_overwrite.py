"""--overwrite and the last look: an older set gives way in an order that no kill,
rank or exchange of files can mix.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE, PART, annotated, data_of, make_flowers
from set_states import GROWING, OTHER, RECIPE, Folder, stopped_before

from imagenet_prep import annotate, convert
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import (
    BusyError,
    InputError,
    PrepError,
    SpaceError,
    UsageError,
    WriteError,
)
from imagenet_prep.model import Engine, Progress
from imagenet_prep.shards import finishing
from imagenet_prep.shards.maker import ShardTask
from imagenet_prep.shards.room import RECORD
from imagenet_prep.shards.run import Made, make_shards
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

FEWER = RECIPE.replace("train: 4", "train: 3")
"""Another number of shards: other names."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 images in class folders."""
    return make_flowers(tmp_path_factory.mktemp("flowers") / "data", 6)


@pytest.fixture
def folder(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder with images and no set."""
    shutil.copytree(data, tmp_path / "data")
    return Folder(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def wanted(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    """The records of each shard of an undisturbed set."""
    root = tmp_path_factory.mktemp("wanted")
    shutil.copytree(data, root / "data")
    with pytest.MonkeyPatch.context() as patch:
        plain = Folder(root, patch)
        plain.convert()
    return records(plain)


def records(folder: Folder) -> dict[str, list[bytes]]:
    """The records of each shard in the folder."""
    return {path.name: data_of(path) for path in existing(folder.layout.output_dir, "*-of-*")}


def contents(folder: Folder) -> dict[str, bytes]:
    """Every file but locks."""
    files = [
        path
        for path in list(folder.layout.output_dir.rglob("*"))
        if path.is_file() and path.name != "lock"
    ]
    return {str(path): path.read_bytes() for path in files}


def is_finished(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """The folder holds the wanted set, its manifest, and no list of replaced files."""
    assert records(folder) == wanted
    assert SetState.read(folder.layout).kind == "finished"
    assert list(folder.layout.plan_path.parent.glob("replaced-*")) == []


# what goes ----------------------------------------------------------------------------------------


def lose_journal(folder: Folder) -> None:
    """No record but plan and manifest."""
    folder.layout.journal_path.unlink()


def lose_line(folder: Folder) -> None:
    """A bit of a journal line, and no manifest."""
    folder.layout.manifest_path.unlink()
    lines = folder.layout.journal_path.read_bytes().splitlines(keepends=True)
    folder.layout.journal_path.write_bytes(
        b"".join([lines[0].replace(b'"records": ', b'"records": 1'), *lines[1:]])
    )


@pytest.mark.parametrize("damage", [None, lose_journal, lose_line])
@pytest.mark.parametrize("before", [OTHER, FEWER, GROWING])
def test_nothing_of_an_older_set_stays(
    before: str,
    damage: Callable[[Folder], None] | None,
    folder: Folder,
    wanted: dict[str, list[bytes]],
) -> None:
    """Other labels, another number of shards, growths:
    all that the folder holds goes, whatever the journal lists.
    """
    folder.convert(before)
    extra = []
    if before == GROWING:
        folder.add_images()
        folder.convert(before)
        extra = existing(folder.root / "data", "*/new-*.jpg")
    if damage:
        damage(folder)
    for path in extra:
        path.unlink()
    folder.convert(overwrite=True)
    is_finished(folder, wanted)


KILLS = [
    "imagenet_prep.sources.saved_catalog:PackedCatalog.save",
    "imagenet_prep.state.replacement:Replacement.claim",
    "imagenet_prep.shards.plan_claim:save_bytes",
    "imagenet_prep.state.replacement:Replacement.finish",
    "imagenet_prep.state.journal:Journal.rewrite",
    "imagenet_prep.state.replacement:remove_if_same",
    "imagenet_prep.state.journal:Journal.append",
    "imagenet_prep.state.manifest:Manifest.save",
]


@pytest.mark.parametrize("target", KILLS)
@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("before", [OTHER, FEWER])
def test_a_killed_overwrite_resumes(
    before: str, overwrite: bool, target: str, folder: Folder, wanted: dict[str, list[bytes]]
) -> None:
    """Killed at each step: until the new plan is there the old set is whole;
    from then on a rerun ends with the new.
    """
    folder.convert(before)
    old = contents(folder)
    with stopped_before(folder.patch, target):
        folder.convert(overwrite=True)
    is_claimed = KILLS.index(target) > KILLS.index("imagenet_prep.shards.plan_claim:save_bytes")
    state = SetState.read(folder.layout)
    if not is_claimed:
        assert state.kind == "finished"
        assert {name: contents(folder)[name] for name in old} == old
        with pytest.raises(UsageError, match="made from other inputs"):
            folder.convert()
    else:
        assert not state.is_usable
    folder.convert(overwrite=overwrite or not is_claimed)
    is_finished(folder, wanted)


def test_an_entry_of_a_new_shard_stays(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """A power cut may bring the list of replaced files back:
    what was made since keeps its entries in the journal.
    """
    folder.convert(OTHER)
    with stopped_before(folder.patch, "imagenet_prep.state.replacement:Replacement.finish"):
        folder.convert(overwrite=True)
    (path,) = existing(folder.layout.plan_path.parent, "replaced-*.json")
    content = path.read_bytes()
    with stopped_before(folder.patch, "imagenet_prep.state.journal:Journal.append", 4):
        folder.convert()
    path.write_bytes(content)
    folder.convert()
    is_finished(folder, wanted)
    assert set(Journal(folder.layout.journal_path).names()) == set(wanted)


def test_one_overwrite_after_another(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """Killed in the middle of one replacement, then another set is wanted: files of both go."""
    folder.convert(OTHER)
    with stopped_before(folder.patch, "imagenet_prep.state.replacement:remove_if_same", 2):
        folder.convert(FEWER, overwrite=True)
    with pytest.raises(UsageError, match="made from other inputs"):
        folder.convert()
    folder.convert(overwrite=True)
    is_finished(folder, wanted)


# ranks --------------------------------------------------------------------------------------------


def test_ranks_with_overwrite_join(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """The first is killed while it removes; the other finishes that,
    and leaves what the first made later.
    """
    folder.convert(OTHER)
    with stopped_before(folder.patch, "imagenet_prep.state.replacement:remove_if_same", 3):
        folder.convert(share=Share(0, 2), overwrite=True)
    folder.convert(share=Share(1, 2), overwrite=True)
    made = {path.name: path.stat().st_ino for path in existing(folder.layout.output_dir, "*-of-*")}
    assert set(made) == set(Share(1, 2).of(wanted))
    folder.convert(share=Share(0, 2), overwrite=True)
    kept = {path.name: path.stat().st_ino for path in existing(folder.layout.output_dir, "*-of-*")}
    assert {name: kept[name] for name in made} == made
    merge(folder.layout)
    is_finished(folder, wanted)


def test_a_rank_of_the_older_plan_stops(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """It is at work when --overwrite claims the folder: none of its shards gets a name any more."""
    begun: list[str] = []

    def make(
        tasks: Iterator[ShardTask],
        own: Layout,
        engine: Engine,
        journal: Journal,
        progress: Progress,
    ) -> Made:
        if own.run.startswith("rank-") and not begun:
            begun.append(own.run)
            folder.convert(overwrite=True)
        return make_shards(tasks, own, engine, journal, progress)

    folder.convert(OTHER, share=Share(0, 2))
    with folder.patch.context() as patch:
        patch.setattr("imagenet_prep.stages.convert.make_shards", make)
        with pytest.raises((BusyError, UsageError)):
            folder.convert(OTHER, share=Share(1, 2))
    assert begun
    is_finished(folder, wanted)
    with pytest.raises(PrepError):
        folder.convert(OTHER, share=Share(1, 2))
    is_finished(folder, wanted)


# the last look ------------------------------------------------------------------------------------


def disturb_once(folder: Folder, change: Callable[[], object], times: int = 1) -> None:
    """Let something change the folder after the last shard, before the look at all of them."""
    calls = iter(range(times))
    look = finishing.find_lost

    def find_lost(*arguments: Any) -> list[str]:
        if next(calls, None) is not None:
            change()
        return look(*arguments)

    folder.patch.setattr("imagenet_prep.stages.convert.find_lost", find_lost)


@pytest.mark.parametrize("what", ["gone", "cut", "another set's", "another set's with its index"])
def test_a_shard_that_changes_before_the_manifest_is_made_again(
    what: str, folder: Folder, wanted: dict[str, list[bytes]], tmp_path: Path
) -> None:
    """Gone, cut, or exchanged for one of the same size:
    the manifest names no shard that was not looked at.
    """
    shutil.copytree(folder.root / "data", tmp_path / "other" / "data")
    other = Folder(tmp_path / "other", folder.patch)
    other.convert(OTHER)
    name = "train-00002-of-00004"
    shard = folder.layout.shard_path(name)

    def change() -> None:
        if what == "gone":
            shard.unlink()
        elif what == "cut":
            os.truncate(shard, 100)
        else:
            assert shard.stat().st_size == other.layout.shard_path(name).stat().st_size
            shutil.copy(other.layout.shard_path(name), shard)
        if what == "another set's with its index":
            for theirs, ours in zip(
                other.layout.index_paths(name), folder.layout.index_paths(name), strict=True
            ):
                shutil.copy(theirs, ours)

    disturb_once(folder, change)
    folder.convert()
    is_finished(folder, wanted)


def test_a_shard_that_vanishes_twice_fails_the_run(folder: Folder) -> None:
    """Something else removes files there: no manifest is written."""
    disturb_once(folder, lambda: folder.layout.shard_path("train-00002-of-00004").unlink(), 2)
    with pytest.raises(
        WriteError, match=r"1 shard .*vanished or changed again, train-00002-of-00004"
    ):
        folder.convert()
    assert not folder.layout.manifest_path.exists()


# refused ------------------------------------------------------------------------------------------


def leave_free(folder: Folder, free: int) -> None:
    """A disk with that many bytes free."""
    real = os.statvfs

    def statvfs(path: Any) -> os.statvfs_result:
        fields = list(real(path))
        fields[1], fields[4] = 1, free  # the block size in bytes, and the blocks that are available
        return os.statvfs_result(fields)

    folder.patch.setattr("imagenet_prep.storage.space.os.statvfs", statvfs)


def enlarge(folder: Folder) -> None:
    """No space, and images that take more of it than the older shards gave."""
    folder.add_images()
    leave_free(folder, 0)


def add_foreign(folder: Folder) -> None:
    """A shard of another program under a name that is not planned."""
    shutil.copy(
        folder.layout.shard_path("train-00000-of-00004"),
        folder.layout.output_dir / "train-00000-of-00009",
    )


def protect_plan(folder: Folder) -> None:
    """The folder of the plan can't be written to."""

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder.layout.plan_path))

    folder.patch.setattr("imagenet_prep.state.replacement.claim", refused)


@pytest.mark.parametrize(
    ("obstacle", "error"),
    [
        (enlarge, SpaceError),
        (add_foreign, UsageError),
        (protect_plan, (WriteError, InputError, PermissionError)),
    ],
)
def test_a_refused_overwrite_leaves_every_byte(
    obstacle: Callable[[Folder], None], error: type[Exception], folder: Folder
) -> None:
    """Space, foreign shards and permissions come before the first removal."""
    folder.convert(OTHER)
    obstacle(folder)
    before = contents(folder)
    with pytest.raises(error):
        folder.convert(overwrite=True)
    assert contents(folder) == before


def test_boxes_that_are_gone_are_brought_back(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Without their file convert would leave the boxes out:
    it says so, and annotate makes every shard right again.
    """
    layout = annotated(tmp_path / "data", made_tiny)
    layout.boxes_csv.unlink()
    before = {path.name: path.read_bytes() for path in existing(layout.output_dir, "*-of-*")}
    with pytest.raises(UsageError, match=r"shards .*other inputs") as caught:
        convert(layout, ENGINE, PART)
    assert f"imagenet-prep annotate {layout.data_dir} --raw {layout.raw}" in caught.value.hint
    assert "--overwrite would leave the boxes out" in caught.value.hint
    annotate(layout, ENGINE)
    assert [split.made for split in convert(layout, ENGINE, PART).splits] == [0, 0]
    assert {
        path.name: path.read_bytes() for path in existing(layout.output_dir, "*-of-*")
    } == before


def test_boxes_are_not_brought_back_for_other_images(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Boxes alone make no other images those of the shards: only --overwrite or --output helps."""
    layout = annotated(tmp_path / "data", made_tiny)
    layout.boxes_csv.unlink()
    make(tmp_path / "other", classes=4, per_class=5, validation=12, tiny=True)
    other = Layout(layout.data_dir, raw=tmp_path / "other")
    with pytest.raises(UsageError, match=r"shards .*other inputs") as caught:
        convert(other, ENGINE, PART)
    assert "train images" in caught.value.detail
    hint = "make the shards again with --overwrite, or choose another folder with --output"
    assert caught.value.hint == f"if images changed by mistake, restore them; or {hint}"


def test_the_space_of_the_older_set_counts(folder: Folder, wanted: dict[str, list[bytes]]) -> None:
    """The same images with other labels fit in the place of the older set, and not beside it."""
    folder.convert(OTHER)
    older = sum(path.stat().st_size for path in existing(folder.layout.output_dir, "*-of-*"))
    images = existing(folder.root / "data", "*/*.jpg")
    needed = sum(path.stat().st_size for path in images) + RECORD * len(images)
    leave_free(folder, needed - older // 2)
    folder.convert(overwrite=True)
    is_finished(folder, wanted)
    shutil.rmtree(folder.layout.output_dir)
    leave_free(folder, needed // 2)
    with pytest.raises(SpaceError, match="not enough space"):
        folder.convert()
