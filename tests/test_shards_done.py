"""Indexes of finished shards, which shards of a planned set are done,
and the manifest that finish_set writes.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from made_sets import flip
from msgspec.structs import replace
from tiny_sets import (
    IMAGES,
    made_plan,
    make_set,
    make_shard,
    make_shards,
    record,
    save_plan,
    with_generation,
)

from imagenet_prep.datasets.stored_plan import planned_manifest
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images.prepare import TURNED
from imagenet_prep.model import ShardInfo
from imagenet_prep.shards.finishing import find_lost, finish_set, refuse_superseded
from imagenet_prep.state import indexes
from imagenet_prep.state.indexes import (
    agrees,
    filled,
    is_indexed,
    not_done,
    read_index,
    read_written,
    settle,
)
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.storage.layout import Layout

NAME, OTHER = "train-00000-of-00003", "train-00001-of-00003"
IMAGE_NAMES = [f"{NAME}-{number}.jpg" for number in range(IMAGES)]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty folder."""
    (tmp_path / "out").mkdir()
    return Layout(tmp_path / "out")


@pytest.fixture
def info(layout: Layout) -> ShardInfo:
    """A shard with its index."""
    return make_shard(layout, NAME, "f-train-0")


# one index ----------------------------------------------------------------------------------------


def test_an_index_is_read(layout: Layout, info: ShardInfo) -> None:
    """Both files, and the entry that it agrees with."""
    index = read_index(layout, NAME, IMAGES)
    assert (index.names, index.digest, index.end) == (IMAGE_NAMES, info.digest, info.size)
    assert read_written(layout, info) == index
    assert agrees(layout, info)
    assert is_indexed(layout, info, IMAGE_NAMES)


@pytest.mark.parametrize("which", [0, 1])
def test_a_lost_or_changed_index_is_none(layout: Layout, info: ShardInfo, which: int) -> None:
    """Either of its files."""
    path = layout.index_paths(NAME)[which]
    with path.open("ab") as file:
        file.write(b"x")
    assert read_index(layout, NAME, IMAGES) is None
    path.unlink()
    assert read_index(layout, NAME, IMAGES) is None
    assert not agrees(layout, info)
    assert not is_indexed(layout, info, IMAGE_NAMES)


@pytest.mark.parametrize(("which", "line"), [(0, 42), (1, 4106)])
def test_an_index_that_is_too_long_is_not_read(
    layout: Layout, info: ShardInfo, which: int, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for twice the records and a thousand, each with the longest line."""
    limits: list[tuple[str, int]] = []

    def find_plain(path: Path, most: int) -> bytes:
        limits.append((path.name, most))
        return path.read_bytes()

    monkeypatch.setattr(indexes, "find_plain", find_plain)
    assert read_index(layout, NAME, 7) is not None
    assert limits[which] == (layout.index_paths(NAME)[which].name, 1014 * line)
    monkeypatch.undo()
    with layout.index_paths(NAME)[which].open("r+b") as file:
        file.truncate(1014 * line + 1)
    assert read_index(layout, NAME, 7) is None


def test_a_storage_that_fails_is_an_error(layout: Layout, info: ShardInfo) -> None:
    """An index that can't be read is not taken for a lost one,
    except by the questions about one entry.
    """
    layout.index_path(NAME).unlink()
    layout.index_path(NAME).symlink_to(
        "/proc/self/mem"
    )  # a plain file whose first byte can't be read
    with pytest.raises(InputError, match=r"\.idx"):
        read_index(layout, NAME, IMAGES)
    assert read_written(layout, info) is None
    assert not agrees(layout, info)


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"records": IMAGES + 1}, {"name": OTHER}])
def test_an_entry_of_another_shard_does_not_agree(
    layout: Layout, info: ShardInfo, change: dict[str, object]
) -> None:
    """Another digest, another number of records, and no index."""
    other = replace(info, **change)
    assert read_written(layout, other) is None
    assert not agrees(layout, other)


def test_an_index_of_other_images_is_another(layout: Layout, info: ShardInfo) -> None:
    """Other names, more or fewer of them: the shard was written for other images.
    So are gaps between records.
    """
    for names in (IMAGE_NAMES[:1], [*IMAGE_NAMES, "more.jpg"], IMAGE_NAMES[::-1], []):
        assert not is_indexed(layout, info, names)
    empty = make_shard(layout, OTHER, "x", images=0)
    assert is_indexed(layout, empty, [])
    assert not is_indexed(layout, empty, ["a.jpg"])


# the entries of several runs ----------------------------------------------------------------------


@pytest.mark.parametrize("is_first", [True, False])
def test_of_rival_entries_the_one_of_the_index_is_chosen(
    layout: Layout, info: ShardInfo, is_first: bool
) -> None:
    """In whatever part of the journal it is; a shard without rivals keeps its entry."""
    wrong = replace(info, digest="0" * 64)
    alone = ShardInfo(OTHER, "f", 1, 2, "d")
    parts = (info, wrong) if is_first else (wrong, info)
    record(layout, [parts[0]], "rank-0-of-2-a")
    record(layout, [alone, parts[1]], "rank-1-of-2-b")
    journal = Journal(layout.journal_path)
    settle(layout, journal)
    assert (journal.get(NAME), journal.get(OTHER)) == (info, alone)


@pytest.mark.parametrize("wanted", ["one", "two"])
def test_of_entries_that_agree_the_planned_one_is_chosen(
    layout: Layout, info: ShardInfo, wanted: str
) -> None:
    """Equal records under two fingerprints: the one of the plan."""
    for part, fingerprint in (("rank-0-of-2-a", "one"), ("rank-1-of-2-b", "two")):
        record(layout, [replace(info, fingerprint=fingerprint)], part)
    journal = Journal(layout.journal_path)
    settle(layout, journal, {wanted})
    assert journal.get(NAME).fingerprint == wanted


def test_rivals_without_an_index_stay_as_they_are(layout: Layout, info: ShardInfo) -> None:
    """Neither agrees: nothing is chosen."""
    for part, digest in (("rank-0-of-2-a", "1" * 64), ("rank-1-of-2-b", "2" * 64)):
        record(layout, [replace(info, digest=digest)], part)
    journal = Journal(layout.journal_path)
    before = journal.get(NAME)
    settle(layout, journal)
    assert journal.get(NAME) == before


# done ---------------------------------------------------------------------------------------------


def nothing(layout: Layout) -> None:
    """All shards are done."""


def lose_shard(layout: Layout) -> None:
    """A shard is gone."""
    layout.shard_path(OTHER).unlink()


def lose_index(layout: Layout) -> None:
    """Its index is gone."""
    layout.index_path(OTHER).unlink()


def change_size(layout: Layout) -> None:
    """A byte more, and the last record is whole."""
    path = layout.shard_path(OTHER)
    path.write_bytes(b"x" + path.read_bytes())


def change_last_record(layout: Layout) -> None:
    """A bit of the last record's CRC."""
    flip(layout.shard_path(OTHER), -1)


def change_first_byte_of_footer(layout: Layout) -> None:
    """Another bit of it."""
    flip(layout.shard_path(OTHER), -4)


def change_entry(layout: Layout) -> None:
    """The entry is of another plan."""
    record(layout, [replace(Journal(layout.journal_path).get(OTHER), fingerprint="x")])


@pytest.mark.parametrize(
    "change",
    [
        lose_shard,
        lose_index,
        change_size,
        change_last_record,
        change_first_byte_of_footer,
        change_entry,
    ],
)
def test_a_shard_is_done_as_its_entry_says(
    layout: Layout, change: Callable[[Layout], None]
) -> None:
    """Size, index and last record: what is not as recorded is made again, and nothing else is."""
    plan = make_set(layout)
    journal, planned = Journal(layout.journal_path), planned_manifest(plan)
    assert not_done(layout, planned, journal) == []
    assert find_lost(plan, layout, journal) == []
    change(layout)
    journal = Journal(layout.journal_path)
    assert not_done(layout, planned, journal) == [OTHER]
    assert find_lost(plan, layout, journal) == [OTHER]
    journal.forget([NAME])
    assert not_done(layout, planned, journal) == [NAME, OTHER]
    everything = dict.fromkeys(planned.shards)
    assert not_done(layout, planned, everything) == list(planned.shards)


def test_the_last_bytes_of_a_compressed_shard_are_its_own(layout: Layout) -> None:
    """They are not compared; its size is. A shard without records has no last one."""
    plan = made_plan({"train": 2})
    infos = [
        make_shard(layout, name, "f-train-0", images=0) for name in plan.fingerprints_by_name()
    ]
    path = layout.shard_path("train-00001-of-00002")
    plain = make_shard(layout, path.name, "f-train-1")
    path.write_bytes(gzip.compress(path.read_bytes()))
    infos[1] = replace(plain, size=path.stat().st_size, file_digest="0" * 64)
    record(layout, infos)
    assert find_lost(plan, layout, Journal(layout.journal_path)) == []
    record(layout, [replace(infos[1], file_digest="")])
    assert find_lost(plan, layout, Journal(layout.journal_path)) == [path.name]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"x"), Path.touch])
def test_a_shard_that_changes_while_it_is_read_is_not_done(
    layout: Layout, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size was asked, and then it is gone or cut; if nothing happened, it is done."""
    plan = make_set(layout)
    journal = Journal(layout.journal_path)
    real = indexes.read_written

    def read_and_change(layout: Layout, info: ShardInfo) -> object:
        if info.name == OTHER:
            change(layout.shard_path(OTHER))
        return real(layout, info)

    monkeypatch.setattr(indexes, "read_written", read_and_change)
    assert find_lost(plan, layout, journal) == ([] if change is Path.touch else [OTHER])


# the manifest -------------------------------------------------------------------------------------


def test_a_manifest_is_filled_from_the_journal(layout: Layout) -> None:
    """Images and turned ones are counted by split; totals and data set keep their other facts."""
    plan = made_plan({"train": 2, "validation": 1})
    names = list(plan.fingerprints_by_name())
    infos = make_shards(layout, plan)
    infos[0] = replace(
        infos[0], records=1, set_aside=("x.jpg",), repairs=(f"a.jpg ({TURNED})", "b.jpg (png)")
    )
    infos[1] = replace(infos[1], repairs=(f"c.jpg (png, {TURNED})",))
    infos[2] = replace(infos[2], repairs=("d.jpg (cmyk)",))
    record(layout, [*infos, ShardInfo("other-00000-of-00001", "x", 9, 9, "x")])
    planned = planned_manifest(plan)
    manifest = filled(planned, Journal(layout.journal_path))
    images = {"train": 3, "validation": 2}
    assert manifest.shards == dict(zip(names, infos, strict=True))
    assert manifest.totals == {
        split: replace(each, images=images[split]) for split, each in planned.totals.items()
    }
    assert manifest.dataset == replace(planned.dataset, turned={"train": 2})
    assert replace(manifest, shards={}, totals={}, dataset=planned.dataset) == replace(
        planned, shards={}, totals={}
    )


def allow(layout: Layout, manifest: Manifest) -> None:
    """All images are right."""


def test_finish_set_writes_the_manifest(layout: Layout) -> None:
    """The records of ranks become one, and the rows of older plans go."""
    plan = save_plan(layout, made_plan(rows={"train": "current"}))
    planned = plan.fingerprints_by_name()
    record(layout, [make_shard(layout, name, planned[name]) for name in planned], "rank-0-of-1-x")
    layout.rank_path("rank-0-of-1-x").touch()
    for folder in ("current", "older"):
        (layout.plan_path.parent / folder).mkdir()
        (layout.plan_path.parent / folder / "names").touch()
    asked = []
    with Journal(layout.journal_path) as journal:
        manifest = finish_set(plan, layout, journal, lambda *each: asked.append(each))
    assert asked == [(layout, manifest)]
    assert manifest.shards.keys() == planned.keys()
    assert load_manifest(layout.manifest_path) == manifest
    assert sorted(os.listdir(layout.plan_path.parent)) == ["current", "plan.json"]
    assert sorted(path.name for path in existing(layout.state_dir, "journal*")) == ["journal.jsonl"]
    assert set(Journal(layout.journal_path).names()) == planned.keys()


def test_images_that_are_refused_leave_no_manifest(layout: Layout) -> None:
    """Nothing is written or removed."""
    plan = save_plan(layout, made_plan())
    make_shards(layout, plan)

    def refuse(layout: Layout, manifest: Manifest) -> None:
        raise InputError("other images")

    with Journal(layout.journal_path) as journal, pytest.raises(InputError, match="other images"):
        finish_set(plan, layout, journal, refuse)
    assert not layout.manifest_path.exists()


def test_a_run_whose_claim_was_taken_stops(layout: Layout) -> None:
    """Another plan was saved since: an error with the differences, and no manifest;
    an equal plan is no other.
    """
    plan = made_plan()
    refuse_superseded(plan, layout)
    save_plan(layout, replace(plan, raw="/elsewhere"))
    refuse_superseded(plan, layout)
    make_shards(layout, plan)
    classes = replace(plan.dataset, classes={"n1": 1})
    for other in (with_generation(plan), made_plan(word="new")):
        save_plan(layout, replace(other, settings={"check": "decode"}, dataset=classes))
        with Journal(layout.journal_path) as journal, pytest.raises(UsageError) as caught:
            finish_set(plan, layout, journal, allow)
        differing = "these differ: --check (decode, now header), classes"
        assert caught.value.lines == [
            f"another convert has started in {layout.output_dir}, with other images or settings",
            differing,
            "make this set in another folder with --output",
        ]
    assert not layout.manifest_path.exists()
    assert load_plan(layout) is not None
    layout.plan_path.write_bytes(b"")
    refuse_superseded(plan, layout)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("train-00000-of-00002",), "1 shard"),
        (("validation-grown2-00000-of-00001", "train-grown3-00000-of-00001"), "2 shards"),
        (("extra-00000-of-00001",), "1 shard"),
    ],
)
def test_shards_that_the_plan_lacks_are_refused(
    layout: Layout, names: tuple[str, ...], words: str
) -> None:
    """Of a split of the plan or of its data set, or of a growth of one:
    no manifest is written beside them.
    """
    plan = made_plan()
    plan = save_plan(
        layout,
        replace(plan, dataset=replace(plan.dataset, splits=("extra", "train", "validation"))),
    )
    make_shards(layout, plan)
    for name in (*names, "other-00000-of-00001"):
        (layout.output_dir / name).touch()
    with Journal(layout.journal_path) as journal, pytest.raises(InputError) as caught:
        finish_set(plan, layout, journal, allow)
    assert caught.value.hint.startswith("move them to another folder, then try again")
    assert caught.value.lines[:2] == [
        f"{layout.output_dir} holds {words} that {layout.plan_path} does not list, {min(names)} first",
        "expected only shards that plan.json lists",
    ]
    assert not layout.manifest_path.exists()
    for name in names:
        (layout.output_dir / name).unlink()
    with Journal(layout.journal_path) as journal:
        finish_set(plan, layout, journal, allow)
    assert layout.manifest_path.exists()


def test_the_split_of_a_growth_may_be_in_the_totals_alone(layout: Layout) -> None:
    """Its shards are of the plan; others of it are not."""
    plan = save_plan(layout, made_plan({"train": 1, "night": 1}))
    plan = save_plan(layout, replace(plan, dataset=replace(plan.dataset, splits=("train",))))
    make_shards(layout, plan)
    (layout.output_dir / "night-00000-of-00009").touch()
    with (
        Journal(layout.journal_path) as journal,
        pytest.raises(InputError, match="night-00000-of-00009 first"),
    ):
        finish_set(plan, layout, journal, allow)
