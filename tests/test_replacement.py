"""Replacement: the list of an older set's shards, claimed and finished;
the generation that follows from both plans.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from existing import existing
from msgspec.structs import replace
from tiny_sets import IMAGES, made_plan, make_set, make_shard, record, with_generation

from imagenet_prep.errors import InputError, WriteError
from imagenet_prep.state.journal import Journal, sealed_line
from imagenet_prep.state.replacement import (
    Replacement,
    identity_of,
    is_same,
    next_generation,
    remove_if_same,
    remove_other_lists,
)
from imagenet_prep.storage.layout import Layout

FIRST, SECOND = "train-00000-of-00003", "train-00001-of-00003"
GENERATION = "0123456789abcdef"
NEW = with_generation(made_plan({"train": 2, "validation": 2}, word="new"), GENERATION)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A finished set."""
    layout = Layout(tmp_path / "out")
    layout.output_dir.mkdir()
    make_set(layout)
    return layout


# the list -----------------------------------------------------------------------------------------


def test_a_list_has_the_shards_that_are_there(layout: Layout) -> None:
    """In order, each with size, time and inode; and the names of all journals."""
    record(layout, [], "rank-1-of-2-x")
    (layout.state_dir / "journal-rank-0-of-2-y.jsonl").touch()
    planned = Replacement.plan(layout, [SECOND, "train-00000-of-00009", FIRST])
    paths = {name: layout.shard_path(name).stat() for name in (FIRST, SECOND)}
    expected = {name: (stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in paths.items()}
    assert list(planned.shards.items()) == list(expected.items())
    assert planned.journals == ("journal-rank-0-of-2-y.jsonl", "journal.jsonl")


def test_a_list_is_found_by_its_plan(layout: Layout) -> None:
    """What was claimed is found again, by the plan of its generation alone;
    the first claim counts.
    """
    planned = Replacement.plan(layout, [FIRST])
    planned.claim(layout, GENERATION)
    Replacement.plan(layout, [SECOND]).claim(layout, GENERATION)
    assert Replacement.find(layout, NEW) == planned
    content = {"journals": list(planned.journals), "shards": {FIRST: list(planned.shards[FIRST])}}
    assert layout.replaced_path(GENERATION).read_bytes() == sealed_line(content)
    assert Replacement.find(layout, replace(NEW, generation="other")) is None
    layout.replaced_path("").touch()
    assert Replacement.find(layout, replace(NEW, generation="")) is None


def test_a_damaged_list_is_refused(layout: Layout) -> None:
    """One digit more: nothing may be removed by it."""
    Replacement.plan(layout, [FIRST]).claim(layout, GENERATION)
    path = layout.replaced_path(GENERATION)
    path.write_bytes(path.read_bytes().replace(b"[", b"[1", 1))
    with pytest.raises(InputError) as caught:
        Replacement.find(layout, NEW)
    assert caught.value.lines == [
        f"{path} has changed since it was written",
        "expected the list of the shards that --overwrite replaces",
        "remove it and run the same imagenet-prep convert again with --overwrite",
    ]


def test_the_remaining_shards_of_a_list(layout: Layout) -> None:
    """In order, without shards that are gone, and without those that
    another file has taken the place of.
    """
    names = [f"train-0000{number}-of-00003" for number in range(3)]
    planned = Replacement(dict(reversed(Replacement.plan(layout, names).shards.items())), ())
    assert planned.remaining(layout, made_plan()) == names
    make_shard(layout, "train-00001-of-00004", "")
    layout.shard_path(names[0]).unlink()
    assert planned.remaining(layout, made_plan()) == names[1:]
    layout.shard_path(names[1]).rename(layout.output_dir / "aside")
    make_shard(layout, names[1], "")
    assert planned.remaining(layout, made_plan()) == names[2:]


def test_a_copy_of_a_shard_that_is_not_planned_remains(layout: Layout) -> None:
    """The folder was copied: a name that the new plan does not have is
    told by the size of its file.
    """
    listed = Replacement.plan(layout, [FIRST, SECOND])
    for name in (FIRST, SECOND):
        copy(layout, name)
    assert listed.remaining(layout, made_plan()) == []
    assert listed.remaining(layout, NEW) == [FIRST, SECOND]
    layout.shard_path(FIRST).write_bytes(b"x")
    assert listed.remaining(layout, NEW) == [SECOND]


def copy(layout: Layout, name: str) -> None:
    """Put a copy in the place of a shard."""
    path, aside = layout.shard_path(name), layout.output_dir / "aside"
    path.rename(aside)
    shutil.copyfile(aside, path)
    aside.unlink()


# finishing ----------------------------------------------------------------------------------------


def everything(layout: Layout) -> set[str]:
    """The names of all shards and indexes."""
    files = [*layout.output_dir.iterdir(), *layout.index_dir.iterdir()]
    return {path.name for path in files if path.is_file()}


def files_of(*names: str) -> set[str]:
    """A shard and its index."""
    return {file for name in names for file in (name, f"{name}.idx", f"{name}.list")}


def test_what_is_listed_goes_and_nothing_else(layout: Layout) -> None:
    """Old shards go with their indexes, and old indexes without a shard;
    what the new plan keeps or has made stays.
    """
    plan = made_plan({"train": 2, "validation": 2})
    kept = ("validation-00000-of-00002", "validation-00001-of-00002")
    listed = [name for name in everything(layout) if name.startswith("train") and "." not in name]
    plan = with_generation(plan, GENERATION)
    planned = Replacement.plan(layout, listed)
    planned.claim(layout, GENERATION)
    new = make_shard(layout, "train-00000-of-00002", "f-train-0")
    (layout.index_dir / "train-00008-of-00009.idx").touch()
    planned.finish(layout, plan, is_locked=True)
    assert everything(layout) == files_of(*kept, new.name)
    assert not layout.replaced_path(GENERATION).exists()
    assert set(Journal(layout.journal_path).names()) == set(kept)
    planned.finish(layout, plan, is_locked=True)  # once more after a kill: nothing is there
    assert everything(layout) == files_of(*kept, new.name)


def test_a_shard_of_the_same_name_that_is_new_stays(layout: Layout) -> None:
    """The new generation has made it already: neither it nor its index is removed;
    other listed ones are.
    """
    plan = with_generation(made_plan(word="new"), GENERATION)
    planned = Replacement.plan(layout, plan.fingerprints_by_name())
    layout.shard_path(FIRST).rename(layout.output_dir / "aside")
    new = make_shard(layout, FIRST, "new-train-0", images=IMAGES + 1)
    (layout.output_dir / "aside").unlink()
    planned.finish(layout, plan, is_locked=True)
    assert everything(layout) == files_of(FIRST)
    assert layout.shard_path(FIRST).stat().st_size == new.size


def test_entries_that_stay_are_brought_into_the_main_journal(layout: Layout) -> None:
    """Ranks' journals on the list go; entries of planned shards that are not replaced stay,
    in order; others go.
    """
    plan = with_generation(made_plan(), GENERATION)
    infos = {name: Journal(layout.journal_path).get(name) for name in plan.fingerprints_by_name()}
    Journal.rewrite(
        layout.journal_path, [infos[FIRST], replace(infos[SECOND], fingerprint="other")]
    )
    record(layout, [infos["train-00002-of-00003"]], "rank-0-of-2-x")
    planned = Replacement.plan(layout, [FIRST])
    record(layout, [infos["validation-00000-of-00002"]], "rank-1-of-2-later")
    planned.finish(layout, plan, is_locked=True)
    journals = {path.name: path.read_bytes() for path in list(layout.state_dir.glob("journal*"))}
    assert journals.keys() == {"journal.jsonl", "journal-rank-1-of-2-later.jsonl"}
    (line,) = journals["journal.jsonl"].splitlines()
    assert json.loads(line)["name"] == "train-00002-of-00003"


def test_a_set_without_indexes_and_journal(layout: Layout) -> None:
    """The state of another generation may be gone: the shards go."""
    planned = Replacement.plan(layout, [FIRST])
    for path in list(layout.index_dir.iterdir()):
        path.unlink()
    layout.index_dir.rmdir()
    layout.journal_path.unlink()
    planned.finish(layout, NEW, is_locked=True)
    assert not layout.shard_path(FIRST).exists()
    assert not layout.journal_path.exists()
    assert not layout.index_dir.exists()


def test_only_who_holds_the_locks_removes_copies(layout: Layout) -> None:
    """Without them, copies, their indexes and the list stay."""
    listed = Replacement.plan(layout, [FIRST, SECOND])
    listed.claim(layout, GENERATION)
    copy(layout, FIRST)
    listed.finish(layout, NEW, is_locked=False)
    assert layout.shard_path(FIRST).exists()
    assert layout.index_path(FIRST).exists()
    assert not layout.shard_path(SECOND).exists()
    assert layout.replaced_path(GENERATION).exists()
    listed.finish(layout, NEW, is_locked=True)
    assert not layout.shard_path(FIRST).exists()
    assert not layout.index_path(FIRST).exists()
    assert not layout.replaced_path(GENERATION).exists()


def test_lists_of_other_generations_go(layout: Layout) -> None:
    """This one's list stays, and so does every other file."""
    for generation in (GENERATION, "other", "another"):
        layout.replaced_path(generation).touch()
    remove_other_lists(layout, NEW)
    names = sorted(path.name for path in existing(layout.plan_path.parent, "*"))
    assert names == ["plan.json", f"replaced-{GENERATION}.json"]


def test_a_split_may_have_a_dot_in_its_name(layout: Layout) -> None:
    """The index of a planned shard stays."""
    plan = with_generation(made_plan({"v1.0-train": 1}), GENERATION)
    names = list(plan.fingerprints_by_name())
    make_shard(layout, names[0], "")
    Replacement.plan(layout, [FIRST]).finish(layout, plan, is_locked=True)
    assert [path.name for path in existing(layout.index_dir, "*.idx")] == [f"{names[0]}.idx"]


def test_a_failing_removal_is_a_write_error(layout: Layout) -> None:
    """A folder in the place of a list or a shard can't be removed: the error names it."""
    path = layout.replaced_path(GENERATION)
    path.mkdir()
    with pytest.raises(WriteError) as caught:
        Replacement({}, ()).finish(layout, NEW, is_locked=True)
    assert caught.value.what == f"cannot write {path}"
    folder = layout.output_dir / "folder"
    folder.mkdir()
    with pytest.raises(WriteError) as caught:
        remove_if_same(folder, identity_of(folder))
    assert caught.value.what == f"cannot write {folder}"


@pytest.mark.parametrize("change", ["time", "size", "inode"])
def test_another_file_is_not_the_same(tmp_path: Path, change: str) -> None:
    """Another time, size or inode is another file, and stays; a file that is gone is no file."""
    path = tmp_path / "shard"
    path.write_bytes(b"1")
    identity = identity_of(path)
    assert is_same(path, identity)
    if change == "time":
        os.utime(path, ns=(identity[1], identity[1] + 1))
    elif change == "size":
        path.write_bytes(b"12")
        os.utime(path, ns=(identity[1], identity[1]))
    else:
        path.rename(tmp_path / "aside")
        path.write_bytes(b"1")
        os.utime(path, ns=(identity[1], identity[1]))
    assert not is_same(path, identity)
    remove_if_same(path, identity)
    assert path.exists()
    remove_if_same(path, identity_of(path))
    assert not path.exists()
    assert not is_same(path, identity)
    assert not is_same(path / "below", identity)
    remove_if_same(path, identity)


# the generation -----------------------------------------------------------------------------------


def test_a_generation_is_that_of_every_process() -> None:
    """It follows from both plans; the new plan's own generation does not count."""
    before, plan = made_plan(), made_plan(word="new")
    generation = next_generation(before, plan)
    lines = "\n".join((before.key, plan.key))
    assert generation == hashlib.sha256(lines.encode()).hexdigest()[:16]
    first = "\n".join(("", plan.key))
    assert next_generation(None, plan) == hashlib.sha256(first.encode()).hexdigest()[:16]
    assert next_generation(before, with_generation(plan)) == generation
    others = {
        next_generation(None, plan),
        next_generation(with_generation(before), plan),
        next_generation(before, before),
    }
    assert len({generation, *others}) == 4
    assert all(len(other) == 16 for other in others)
