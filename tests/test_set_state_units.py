"""SetState of tiny sets: each field of the state,
each sentence and each following command, exactly.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tiny_sets import (
    COUNTS,
    IMAGES,
    made_plan,
    make_set,
    make_shard,
    make_shards,
    record,
    save_plan,
)
from tiny_sets import with_generation as generated

from imagenet_prep.errors import InputError
from imagenet_prep.model import ProblemKind
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import RESUME, REWRITE, SetState, merge_command
from imagenet_prep.storage.layout import MAX_SHARDS, Layout

FIRST, SECOND, LAST = "train-00000-of-00003", "train-00001-of-00003", "validation-00001-of-00002"
ALL = tuple(made_plan().fingerprints_by_name())
GENERATION = "0123456789abcdef"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty folder."""
    (tmp_path / "out").mkdir()
    return Layout(tmp_path / "out")


def read(layout: Layout) -> SetState:
    """The state; every name in it is spelled as in the folder."""
    state = SetState.read(layout)
    assert state.layout == layout
    sizes = {
        path.name: path.stat().st_size
        for path in list(layout.output_dir.iterdir())
        if "-of-" in path.name
    }
    assert state.sizes.items() <= sizes.items()
    return state


def sizes_of(layout: Layout) -> dict[str, int]:
    """The size of each shard in the folder."""
    return {
        path.name: path.stat().st_size
        for path in list(layout.output_dir.iterdir())
        if "-of-" in path.name
    }


# finished -----------------------------------------------------------------------------------------


def test_a_finished_set(layout: Layout) -> None:
    """All of its shards with their sizes, its manifest, and no plan: nothing disagreed."""
    plan = make_set(layout)
    state = read(layout)
    manifest = load_manifest(layout.manifest_path)
    assert state == SetState(
        SetRecords(layout), "finished", sizes_of(layout), (), manifest.shards, (), (), manifest
    )
    assert "plan" not in vars(state.records)
    assert (state.covers_plan, state.is_usable, state.has_prefixes) == (True, True, False)
    assert dict(state.journalled) == manifest.shards
    assert manifest.shards.keys() == plan.fingerprints_by_name().keys()
    state.refuse_unusable()


def test_nothing(layout: Layout) -> None:
    """An empty folder, and one that does not exist."""
    for empty in (layout, Layout(layout.data_dir / "none")):
        state = SetState.read(empty)
        assert state == SetState(SetRecords(empty), "nothing", {})
        assert not state.covers_plan
        state.refuse_unusable()


def test_shards_of_another_program(layout: Layout) -> None:
    """Shards without any record are foreign, and usable."""
    make_shard(layout, FIRST, "")
    shutil.rmtree(layout.state_dir)
    state = read(layout)
    assert state == SetState(SetRecords(layout), "foreign", sizes_of(layout))
    assert state.sizes
    assert state.is_usable


def test_shards_of_no_set(layout: Layout) -> None:
    """Shards of a split that no set has are orphans, in the order of their numbers;
    those of a prefix are not.
    """
    make_set(layout)
    other = replace(layout, set_name="night")
    make_set(other, made_plan({"night-train": 1}))
    for name in ("test-100000-of-100001", "test-99999-of-100001", "night-more-00000-of-00001"):
        (layout.output_dir / name).touch()
    state = SetState.read(layout)
    assert (state.kind, state.orphans) == (
        "finished",
        ("test-99999-of-100001", "test-100000-of-100001"),
    )
    assert state.sizes.keys() == set(ALL)
    assert state.has_prefixes
    beside = SetState.read(other)
    assert (beside.kind, set(beside.sizes), beside.has_prefixes) == (
        "finished",
        {"night-train-00000-of-00001"},
        True,
    )
    assert beside.orphans == state.orphans
    layout.manifest_path.unlink()
    assert SetState.read(layout).orphans == state.orphans


def test_a_replaced_list_of_an_older_plan_is_no_replacement(layout: Layout) -> None:
    """A finished set beside a list of another generation is finished; its plan was looked at."""
    plan = make_set(layout)
    layout.replaced_path(GENERATION).touch()
    state = read(layout)
    assert (state.kind, state.plan) == ("finished", plan)
    assert (state.manifest, state.infos) == (
        load_manifest(layout.manifest_path),
        state.manifest.shards,
    )


def test_shards_of_a_set_that_lost_its_plan_are_no_orphans(layout: Layout) -> None:
    """They have the prefix of a set that was started: the state of another set leaves them out."""
    night, day = (replace(layout, set_name=name) for name in ("night", "day"))
    make_set(night, made_plan({"night-train": 1}))
    day.state_dir.mkdir(parents=True)
    day.journal_path.touch()
    for name in ("day-train-00000-of-00001", "dusk-00000-of-00001"):
        (layout.output_dir / name).touch()
    assert SetState.read(night).orphans == ("dusk-00000-of-00001",)


# unfinished ---------------------------------------------------------------------------------------


@pytest.fixture
def unfinished(layout: Layout) -> Layout:
    """Two of five shards are done."""
    plan = save_plan(layout, made_plan())
    make_shards(layout, plan, [FIRST, LAST])
    return layout


def test_an_unfinished_set(unfinished: Layout) -> None:
    """The missing shards in order, and the entries of those that are done."""
    state = read(unfinished)
    missing = tuple(name for name in ALL if name not in (FIRST, LAST))
    infos = {name: Journal(unfinished.journal_path).get(name) for name in (FIRST, LAST)}
    plan = load_plan(unfinished)
    assert state == SetState(
        SetRecords(unfinished), "unfinished", sizes_of(unfinished), (), infos, missing
    )
    assert state.plan == plan
    assert state.sentence == (
        f"{unfinished.output_dir} holds an unfinished set: 3 shards are not done, {SECOND} first"
    )
    assert state.following == RESUME
    assert not state.covers_plan
    with pytest.raises(InputError) as caught:
        state.refuse_unusable()
    assert caught.value.lines == [state.sentence, "expected a finished set", RESUME]
    with pytest.raises(InputError):
        state.refuse_unusable(["validation"])


def test_one_missing_shard_is_one(layout: Layout) -> None:
    """The noun and the verb of a single shard."""
    plan = save_plan(layout, made_plan())
    make_shards(layout, plan)
    layout.shard_path(LAST).unlink()
    state = read(layout)
    assert state.missing == (LAST,)
    assert (
        state.sentence
        == f"{layout.output_dir} holds an unfinished set: 1 shard is not done, {LAST} first"
    )


def test_only_the_manifest_is_missing(layout: Layout) -> None:
    """Every shard is done."""
    make_set(layout)
    layout.manifest_path.unlink()
    state = read(layout)
    assert (state.kind, state.missing) == ("unfinished", ())
    assert (
        state.sentence
        == f"{layout.output_dir} holds every shard of a set, but manifest.json is missing"
    )
    assert state.following == REWRITE


def other_size(layout: Layout) -> None:
    """A byte too many."""
    with layout.shard_path(SECOND).open("ab") as file:
        file.write(b"x")


def other_fingerprint(layout: Layout) -> None:
    """The journal's entry is of another plan."""
    record(layout, [replace(Journal(layout.journal_path).get(SECOND), fingerprint="other")])


@pytest.mark.parametrize("change", [other_size, other_fingerprint])
def test_a_shard_that_is_not_as_planned_is_not_done(
    layout: Layout, change: Callable[[Layout], None]
) -> None:
    """Its size is not that of its entry, or its entry is of another plan."""
    make_set(layout)
    layout.manifest_path.unlink()
    change(layout)
    assert read(layout).missing == (SECOND,)


def test_a_growth_in_progress(layout: Layout) -> None:
    """The plan has all shards of the manifest and more, of which some are there;
    entries come from both.
    """
    make_set(layout)
    layout.journal_path.unlink()
    grown = made_plan({**COUNTS, "train-grown2": 2})
    save_plan(layout, grown)
    (info,) = make_shards(layout, grown, ["train-grown2-00000-of-00002"])
    state = read(layout)
    assert (state.kind, state.missing, state.strays) == (
        "unfinished",
        ("train-grown2-00001-of-00002",),
        (),
    )
    assert state.infos == {**load_manifest(layout.manifest_path).shards, info.name: info}
    assert state.plan == grown
    make_shards(layout, grown, ["train-grown2-00001-of-00002"])
    assert read(layout).sentence == (
        f"{layout.output_dir} holds every shard of a set, but manifest.json is older than plan.json"
    )
    assert not state.covers_plan


def test_a_growth_of_an_empty_set(layout: Layout) -> None:
    """A manifest without shards, and a plan that has all that are there."""
    plan = make_set(layout)
    replace(load_manifest(layout.manifest_path), shards={}, totals={}).save(layout.manifest_path)
    assert (read(layout).kind, read(layout).plan) == ("unfinished", plan)


# ranks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [True, False])
def test_ranks_that_are_not_merged(layout: Layout, done: bool) -> None:
    """A rank's mark beside the plan, whether all shards are done or some;
    the journals of all ranks count.
    """
    plan = save_plan(layout, made_plan())
    planned = plan.fingerprints_by_name()
    names = ALL if done else ALL[:-1]
    record(layout, [make_shard(layout, name, planned[name]) for name in names], "rank-0-of-2-x")
    layout.rank_path("rank-0-of-2-x").touch()
    state = read(layout)
    assert (state.kind, tuple(state.infos)) == ("part", names)
    folder, merge = layout.output_dir, f"imagenet-prep merge {layout.data_dir}"
    if done:
        assert (
            state.sentence
            == f"{folder} holds shards of ranks that are not merged: all shards are done"
        )
        assert state.following == f"finish it: {merge}"
    else:
        assert (
            state.sentence
            == f"{folder} holds shards of ranks that are not merged: 1 shard not done"
        )
        assert (
            state.following == "run the missing ranks, which the next command lists; "
            f"then finish the set: {merge}"
        )


def test_a_folder_named_by_output_is_in_the_merge_command(tmp_path: Path) -> None:
    """The command has --output where the shards are elsewhere, and never --raw."""
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw", output=tmp_path / "out")
    assert (
        merge_command(layout)
        == f"imagenet-prep merge {tmp_path / 'data'} --output {tmp_path / 'out'}"
    )


# replacing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_manifest", [True, False])
def test_an_overwrite_that_was_killed(layout: Layout, has_manifest: bool) -> None:
    """The list of its generation is there: replacing, even if manifest and shards agree,
    and before strays count.
    """
    make_set(layout)
    plan = save_plan(
        layout, generated(made_plan({"train": 2, "validation": 2}, word="new"), GENERATION)
    )
    layout.replaced_path(GENERATION).touch()
    if not has_manifest:
        layout.manifest_path.unlink()
    state = read(layout)
    assert (state.kind, state.plan, state.infos) == ("replacing", plan, {})
    assert state.strays == tuple(name for name in ALL if name.startswith("train"))
    assert state.missing == tuple(plan.fingerprints_by_name())
    assert state.sentence == (
        f"{layout.output_dir} holds shards of an older set, which --overwrite has not removed yet"
    )
    assert state.following == RESUME
    assert not state.is_usable
    layout.replaced_path(GENERATION).rename(layout.replaced_path("another"))
    assert SetState.read(layout).kind == ("finished" if has_manifest else "contradictory")


# contradictory ------------------------------------------------------------------------------------


def lose_one(layout: Layout) -> None:
    """A shard is gone."""
    layout.shard_path(SECOND).unlink()


def lose_two(layout: Layout) -> None:
    """Two are gone."""
    layout.shard_path(LAST).unlink()
    lose_one(layout)


def cut_one(layout: Layout) -> None:
    """A shard has four bytes; a longer number has commas in a message."""
    layout.shard_path(SECOND).write_bytes(bytes(1234))


def put_a_folder(layout: Layout) -> None:
    """A folder has its name."""
    lose_one(layout)
    Path(str(layout.shard_path(SECOND))).mkdir()


def add_one(layout: Layout) -> None:
    """A shard of another number of shards."""
    (layout.output_dir / "train-00000-of-00002").touch()


def add_two(layout: Layout) -> None:
    """Two of them, and of a growth."""
    add_one(layout)
    (layout.output_dir / "validation-grown2-00000-of-00001").touch()


def add_and_lose(layout: Layout) -> None:
    """One too many, one too few."""
    add_one(layout)
    lose_one(layout)


SIZE = 2 * (len(FIRST) + len("-0.jpg") + 16)
CONTRADICTIONS: list[
    tuple[Callable[[Layout], None], tuple[str, ...], tuple[str, ...], str, str]
] = [
    (
        lose_one,
        (SECOND,),
        (),
        f"{SECOND} is missing, and manifest.json lists {SIZE} bytes",
        "repair",
    ),
    (
        lose_two,
        (SECOND, LAST),
        (),
        f"{SECOND} is missing, and manifest.json lists {SIZE} bytes (2 shards in all)",
        "repair",
    ),
    (
        cut_one,
        (SECOND,),
        (),
        f"{SECOND} has 1,234 bytes, and manifest.json lists {SIZE} bytes",
        "repair",
    ),
    (
        put_a_folder,
        (SECOND,),
        (),
        f"{SECOND} is a folder, and manifest.json lists {SIZE} bytes",
        "repair",
    ),
    (
        add_one,
        (),
        ("train-00000-of-00002",),
        "train-00000-of-00002 is not in manifest.json",
        "verify",
    ),
    (
        add_two,
        (),
        ("train-00000-of-00002", "validation-grown2-00000-of-00001"),
        "train-00000-of-00002 is not in manifest.json (2 files in all)",
        "verify",
    ),
    (
        add_and_lose,
        (SECOND,),
        ("train-00000-of-00002",),
        f"{SECOND} is missing, and manifest.json lists {SIZE} bytes",
        "verify",
    ),
]


@pytest.mark.parametrize(("change", "missing", "strays", "reason", "stage"), CONTRADICTIONS)
def test_shards_that_contradict_the_manifest(
    layout: Layout,
    change: Callable[[Layout], None],
    missing: tuple[str, ...],
    strays: tuple[str, ...],
    reason: str,
    stage: str,
) -> None:
    """Each list, the reason with the first name, and the command that names or makes the files."""
    plan = make_set(layout)
    change(layout)
    state = read(layout)
    manifest = load_manifest(layout.manifest_path)
    lists = missing, strays
    assert state == SetState(
        SetRecords(layout),
        "contradictory",
        sizes_of(layout),
        (),
        manifest.shards,
        *lists,
        manifest,
        reason,
    )
    assert state.plan == plan
    assert state.covers_plan
    assert state.sentence == f"{layout.output_dir} holds files that contradict each other: {reason}"
    lead = f"make {'it' if len(missing) == 1 else 'them'} again"
    if change is put_a_folder:
        lead = "move the folder away, then make it again"
    if stage == "verify":
        lead = "to see each file"
    assert state.following == f"{lead}: imagenet-prep {stage} {layout.output_dir}"


def test_repair_is_told_the_output_folder(tmp_path: Path) -> None:
    """A set with --output is repaired in its place."""
    layout = Layout(tmp_path / "data", output=tmp_path / "out")
    make_set(layout)
    lose_one(layout)
    hint = f"make it again: imagenet-prep repair {tmp_path / 'data'} --output {tmp_path / 'out'}"
    assert SetState.read(layout).following == hint


@pytest.mark.parametrize("change", [add_two, lose_two])
def test_a_split_without_a_fault_can_be_read(
    layout: Layout, change: Callable[[Layout], None]
) -> None:
    """Lists of splits: only those whose shards, or growths' shards,
    contradict the manifest are refused.
    """
    make_set(layout, made_plan({**COUNTS, "test": 1}))
    change(layout)
    state = SetState.read(layout)
    state.refuse_unusable(["test"])
    for splits in (
        ["train"],
        ["validation"],
        ["test", "train"],
        ["validation-grown2", "test"],
        None,
    ):
        with pytest.raises(InputError):
            state.refuse_unusable(splits)


def test_only_the_faulty_split_is_refused(layout: Layout) -> None:
    """A shard of train is gone: validation can be read."""
    make_set(layout)
    lose_one(layout)
    state = SetState.read(layout)
    state.refuse_unusable(["validation"])
    with pytest.raises(InputError):
        state.refuse_unusable(["train"])


def test_a_stray_of_another_plan_is_no_growth(layout: Layout) -> None:
    """A plan with the stray shards, but other fingerprints of those in the manifest,
    does not cover them.
    """
    make_set(layout)
    grown = made_plan({**COUNTS, "train-grown2": 1}, word="other")
    save_plan(layout, grown)
    make_shards(layout, grown, ["train-grown2-00000-of-00001"])
    state = read(layout)
    assert (state.kind, state.strays) == ("contradictory", ("train-grown2-00000-of-00001",))


def test_a_growth_with_a_stray_of_no_plan_is_no_growth(layout: Layout) -> None:
    """Each of the strays has to be planned."""
    make_set(layout)
    save_plan(layout, made_plan({**COUNTS, "train-grown2": 1}))
    for name in ("train-grown2-00000-of-00001", "train-00000-of-00002"):
        (layout.output_dir / name).touch()
    assert (read(layout).kind, len(read(layout).strays)) == ("contradictory", 2)


def test_a_lost_shard_of_a_grown_set_is_lost(layout: Layout) -> None:
    """A growth that was claimed, and an older shard that is lost: both are missing."""
    make_set(layout)
    save_plan(layout, made_plan({**COUNTS, "train-grown2": 1}))
    assert read(layout).kind == "finished"
    lose_one(layout)
    assert read(layout).kind == "unfinished"


@pytest.mark.parametrize("count", [1, 1000])
def test_strays_beside_a_plan(layout: Layout, count: int) -> None:
    """Without a manifest, shards that the plan lacks are named with their count."""
    save_plan(layout, made_plan())
    for number in range(count):
        (layout.output_dir / f"train-{number:05}-of-02000").touch()
    state = read(layout)
    assert (state.kind, len(state.strays)) == ("contradictory", count)
    words = {1: "1 shard", 1000: "1,000 shards"}[count]
    assert (
        state.reason
        == f"{words} that {state.layout.plan_path} does not list, train-00000-of-02000 first"
    )
    assert state.sentence.endswith(f"holds files that contradict each other: {state.reason}")
    assert state.following == (
        "move away the shards that plan.json does not list, then run the same "
        "imagenet-prep convert again"
    )


def test_a_damaged_plan(layout: Layout) -> None:
    """A plan that is there and can't be read is a contradiction, whatever the shards are."""
    for _ in range(2):
        layout.plan_path.parent.mkdir(parents=True, exist_ok=True)
        layout.plan_path.write_bytes(b"{}\n")
        state = read(layout)
        assert (state.kind, state.reason) == (
            "contradictory",
            f"{layout.plan_path} can't be understood",
        )
        assert (state.sizes, state.infos, state.damage) == (
            sizes_of(layout),
            dict(state.journalled),
            None,
        )
        assert state.following == REWRITE
        make_shards(layout, made_plan())


def test_a_journal_alone(layout: Layout) -> None:
    """The journal lists a shard that is there, and nothing else is left;
    if no shard of it is there, nothing is.
    """
    make_set(layout)
    layout.manifest_path.unlink()
    shutil.rmtree(layout.plan_path.parent)
    for name in ALL[1:]:
        layout.shard_path(name).unlink()
    state = read(layout)
    reason = "journal.jsonl lists shards, but plan.json and manifest.json are gone"
    assert (state.kind, state.reason, set(state.infos)) == ("contradictory", reason, set(ALL))
    assert state.sizes == sizes_of(layout)
    layout.shard_path(FIRST).rename(layout.shard_path("other-00000-of-00001"))
    state = read(layout)
    assert (state.kind, state.reason, set(state.infos)) == ("foreign", "", set(ALL))
    layout.shard_path("other-00000-of-00001").unlink()
    assert read(layout).kind == "nothing"


def test_a_set_without_records_has_the_shards_of_its_prefix(layout: Layout) -> None:
    """Without plan and manifest, only shards with the name of the set are its own."""
    for name in ("night-train-00000-of-00001", "day-train-00000-of-00001"):
        (layout.output_dir / name).touch()
    night = SetState.read(replace(layout, set_name="night"))
    assert (night.kind, set(night.sizes)) == ("foreign", {"night-train-00000-of-00001"})


# damaged manifests --------------------------------------------------------------------------------


def test_a_manifest_that_can_not_be_understood(layout: Layout) -> None:
    """Its damage is told beside the plan; without a plan it is the contradiction."""
    make_set(layout)
    layout.manifest_path.write_bytes(b"[]")
    state = read(layout)
    assert (state.kind, state.missing, state.manifest) == ("unfinished", (), None)
    damage = state.damage
    expected = (
        "expected",
        "remove manifest.json and run the same imagenet-prep convert again: "
        "it keeps the shards that journal.jsonl lists, and makes the others",
    )
    assert (damage.kind, damage.subject) == (ProblemKind.BAD_MANIFEST, "manifest.json")
    assert (damage.detail, damage.remedy) == (
        f"{layout.manifest_path} can't be understood",
        expected[1],
    )
    folder = layout.output_dir
    assert state.sentence == f"{folder} holds every shard of a set, but {damage.detail}"
    shutil.rmtree(layout.plan_path.parent)
    state = read(layout)
    assert (state.kind, state.reason, state.damage) == ("contradictory", damage.detail, damage)
    assert state.sentence == (f"{folder} holds a set that can't be read: {state.reason}")
    assert state.following == damage.remedy
    assert (state.sizes, set(state.infos)) == (sizes_of(layout), set(ALL))


@pytest.mark.parametrize("totals", [{"train": 4}, {"train": 2}, {}])
def test_a_manifest_whose_totals_are_not_its_shards(layout: Layout, totals: dict[str, int]) -> None:
    """A sealed manifest that counts other shards than it lists is damaged."""
    make_set(layout)
    manifest = load_manifest(layout.manifest_path)
    changed = {
        split: replace(each, shards=totals.get(split, each.shards))
        for split, each in manifest.totals.items()
        if totals or split == "train"
    }
    replace(manifest, totals=changed).save(layout.manifest_path)
    state = read(layout)
    detail = f"{layout.manifest_path} does not list the shards that its totals count"
    assert state.manifest is None
    assert state.damage.kind == ProblemKind.BAD_MANIFEST
    assert (state.damage.subject, state.damage.detail, state.damage.remedy) == (
        "manifest.json",
        detail,
        REWRITE,
    )
    with layout.plan_path.open("wb"):
        pass
    state = read(layout)
    assert state.reason == detail
    assert state.sentence == (f"{layout.output_dir} holds a set that can't be read: {detail}")


def test_totals_without_end_are_not_counted(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manifest that counts 2^62 shards is damaged,
    and no name of them is made beyond the most.
    """
    make_set(layout)
    manifest = load_manifest(layout.manifest_path)
    totals = {split: replace(each, shards=1 << 62) for split, each in manifest.totals.items()}
    replace(manifest, totals=totals).save(layout.manifest_path)
    assert MAX_SHARDS > 1000
    monkeypatch.setattr("imagenet_prep.state.set_state.MAX_SHARDS", 1000)
    assert read(layout).damage is not None


def test_a_manifest_that_can_not_be_read_is_an_error(layout: Layout) -> None:
    """A storage that fails is no damage: the manifest may be sound."""
    make_set(layout)
    layout.manifest_path.unlink()
    layout.manifest_path.symlink_to("/proc/self/mem")  # a plain file whose first byte can't be read
    with pytest.raises(InputError, match=r"manifest\.json"):
        SetState.read(layout)


def test_a_file_in_place_of_the_plan_folder(layout: Layout) -> None:
    """It is as good as no plan."""
    make_set(layout)
    shutil.rmtree(layout.plan_path.parent)
    layout.plan_path.parent.touch()
    assert SetState.read(layout).kind == "finished"


# journals -----------------------------------------------------------------------------------------


def test_of_two_entries_the_one_of_the_index_counts(layout: Layout) -> None:
    """Two ranks made a shard differently: the entry that agrees with its index is the shard's."""
    plan = save_plan(layout, made_plan())
    planned = plan.fingerprints_by_name()
    wrong = make_shard(layout, FIRST, "old", word="x", images=IMAGES + 1)
    right = make_shard(layout, FIRST, planned[FIRST])
    for parts in (
        (("rank-0-of-2-a", right), ("rank-1-of-2-b", wrong)),
        (("rank-0-of-2-a", wrong), ("rank-1-of-2-b", right)),
    ):
        for part, info in parts:
            record(layout, [info], part)
        assert read(layout).infos == {FIRST: right}
        for path in list(layout.state_dir.glob("journal*")):
            path.unlink()


def test_other_sets_shards_are_not_its_own(layout: Layout) -> None:
    """A split of another set of the folder is in neither sizes nor strays."""
    make_set(layout)
    other = replace(layout, set_name="x")
    make_set(other, made_plan({"x-train": 1}))
    state = SetState.read(layout)
    assert (state.kind, state.sizes.keys() & {"x-train-00000-of-00001"}, state.orphans) == (
        "finished",
        set(),
        (),
    )


# records ------------------------------------------------------------------------------------------


def test_records_are_read_once(layout: Layout) -> None:
    """Plan and manifest are those of the first look, also for another folder of raw data;
    those of another set are its own.
    """
    plan = make_set(layout)
    records = SetRecords(layout)
    manifest = records.require_manifest()
    assert (records.plan, manifest) == (plan, load_manifest(layout.manifest_path))
    shutil.rmtree(layout.state_dir)
    assert records.usable_manifest is manifest
    assert records.at(replace(layout, raw=layout.data_dir / "raw")).plan is records.plan
    night = records.at(replace(layout, set_name="night"))
    assert (night.plan, night.usable_manifest) == (None, None)


def test_a_damaged_manifest_is_read_once_and_refused_each_time(layout: Layout) -> None:
    """It is no usable one; who needs it gets the error."""
    make_set(layout)
    layout.manifest_path.write_bytes(b"{}")
    records = SetRecords(layout)
    assert records.usable_manifest is None
    layout.manifest_path.unlink()
    for _ in range(2):
        with pytest.raises(InputError):
            records.require_manifest()
