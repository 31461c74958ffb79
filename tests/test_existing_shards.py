"""ExistingShards: what a new plan keeps, replaces and must not touch,
and each refusal word for word.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tiny_sets import (
    COUNTS,
    made_plan,
    make_set,
    make_shard,
    make_shards,
    record,
    save_plan,
    with_generation,
)

from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012.planned_boxes import commands_for_boxes
from imagenet_prep.model import Silent
from imagenet_prep.shards.existing import ExistingShards
from imagenet_prep.shards.superseded import freed_space
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import ILSVRC2012, SplitTotals
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.state.replacement import Replacement
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import Layout

NAMES = list(made_plan().fingerprints_by_name())
FIRST, SECOND = NAMES[:2]
GENERATION = "0123456789abcdef"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty folder."""
    (tmp_path / "out").mkdir()
    return Layout(tmp_path / "out")


def find(
    layout: Layout, plan: Plan, changed: tuple[str, ...] = (), known: tuple[str, ...] = ()
) -> ExistingShards:
    """What is there, compared with a plan."""
    return ExistingShards.find(
        SetRecords(layout), plan, load_plan(layout), Journal(layout.journal_path), changed, known
    )


def sizes(layout: Layout, *names: str) -> dict[str, int]:
    """The size of each of these shards."""
    return {name: layout.shard_path(name).stat().st_size for name in sorted(names)}


# finding ------------------------------------------------------------------------------------------


def test_shards_as_planned_are_kept(layout: Layout) -> None:
    """Of a finished set, of one without its manifest, and of one without its journal."""
    plan = make_set(layout)
    kept = ExistingShards(sizes(layout, *NAMES), (), ())
    assert find(layout, plan) == kept
    journal = layout.journal_path.read_bytes()
    layout.journal_path.unlink()
    assert find(layout, plan) == kept
    layout.manifest_path.unlink()
    assert (
        find(layout, plan) == kept
    )  # planned, and nothing says that they are done: made again in their place
    layout.journal_path.write_bytes(journal)
    layout.plan_path.unlink()
    assert find(layout, plan) == kept


@pytest.mark.parametrize(
    "lost", ["journal", "manifest", "plan", "journal and plan", "manifest and plan"]
)
def test_shards_of_other_settings_are_replaced(layout: Layout, lost: str) -> None:
    """Any record says that they were made differently;
    those of a number of shards that is not planned, too.
    """
    make_set(layout)
    paths = {
        "journal": layout.journal_path,
        "manifest": layout.manifest_path,
        "plan": layout.plan_path,
    }
    for name, path in paths.items():
        if name in lost.split(" and "):
            path.unlink()
    train = {"train": 2, "validation": 2}
    found = find(layout, made_plan(train))
    assert found == ExistingShards(sizes(layout, *NAMES), tuple(NAMES[:3]), ())
    assert find(layout, made_plan(word="new")).replaced == tuple(NAMES)


def test_changed_shards_are_replaced(layout: Layout) -> None:
    """Whatever their fingerprint says."""
    plan = make_set(layout)
    assert find(layout, plan, (SECOND,)).replaced == (SECOND,)


def test_what_a_killed_run_left(layout: Layout) -> None:
    """Shards of the plan before, which no journal lists:
    planned again, or replaced if they are not planned.
    """
    plan = save_plan(layout, made_plan())
    make_shard(layout, FIRST, "f-train-0")
    assert find(layout, plan) == ExistingShards(sizes(layout, FIRST), (), ())
    assert find(layout, made_plan(word="new")) == ExistingShards(sizes(layout, FIRST), (), ())
    assert find(layout, made_plan({"train": 2})) == ExistingShards(
        sizes(layout, FIRST), (FIRST,), ()
    )
    layout.index_path(
        FIRST
    ).unlink()  # killed before the index: the plan before says that it is ours
    assert find(layout, plan) == ExistingShards(sizes(layout, FIRST), (), ())


def test_shards_of_another_program_are_foreign(layout: Layout) -> None:
    """Of a split of the plan, of a known one, and of growths;
    those of other splits are no business of a plan's.
    """
    names = [
        "a-00000-of-00001",
        "train-00000-of-00002",
        "train-grown2-00000-of-00001",
        "test-00000-of-00001",
    ]
    for name in (*names, "b-00000-of-00001", FIRST):
        (layout.output_dir / name).touch()
    found = find(layout, made_plan(), known=("test", "a-grown2"))
    assert set(found.foreign) == {*names, FIRST}
    assert found.sizes == sizes(layout, *names, FIRST)
    assert found.replaced == ()
    layout.index_dir.mkdir(parents=True)
    layout.index_path(FIRST).touch()  # a crash left it before the journal's line
    layout.index_path(names[1]).touch()
    assert set(find(layout, made_plan(), known=("test", "a")).foreign) == set(names)


def test_the_splits_of_the_plan_before_count(layout: Layout) -> None:
    """A foreign shard of a split that was planned before."""
    save_plan(layout, made_plan({"old-grown2": 1}))
    (layout.output_dir / "old-00000-of-00009").touch()
    assert find(layout, made_plan()).foreign == ("old-00000-of-00009",)


def test_shards_of_another_set_are_left_out(layout: Layout) -> None:
    """A known split of another set of the folder."""
    other = replace(layout, set_name="night")
    make_set(other, made_plan({"night": 1}))
    (layout.output_dir / "night-00000-of-00002").touch()
    assert find(layout, made_plan(), known=("night",)) == ExistingShards({}, (), ())


def test_a_split_of_another_set_is_refused(layout: Layout) -> None:
    """A plan with a split that another set of the folder has."""
    other = replace(layout, set_name="night")
    make_set(other, made_plan({"night": 1}))
    with pytest.raises(UsageError) as caught:
        find(layout, made_plan({"train": 1, "night": 1}))
    assert caught.value.lines == [
        f"another set in {layout.output_dir} has night shards too",
        f"its plan and manifest are in {other.state_dir}",
        (
            "give this set another output_file_prefix in its recipe, "
            "or choose another folder with --output"
        ),
    ]


def test_a_pending_replacement_goes_on(layout: Layout) -> None:
    """Listed shards that are still the old ones are replaced, though no record is left of them."""
    make_set(layout)
    plan = with_generation(made_plan({"train": 2, "validation": 2}, word="new"), GENERATION)
    Replacement.plan(layout, NAMES[:3]).claim(layout, GENERATION)
    save_plan(layout, plan)
    for path in (layout.journal_path, layout.manifest_path):
        path.unlink()
    layout.shard_path(FIRST).unlink()
    found = find(layout, plan)
    assert (found.replaced, found.foreign) == (tuple(NAMES[1:3]), ())
    record(layout, [make_shard(layout, "train-00000-of-00002", "new-train-0")])
    assert find(layout, plan).replaced == tuple(NAMES[1:3])


def test_a_pending_shard_of_the_same_name_is_replaced(layout: Layout) -> None:
    """Even if its entry says that it is as planned:
    the list is of files, and entries may be of either.
    """
    make_set(layout)
    plan = with_generation(made_plan(), GENERATION)
    Replacement.plan(layout, [SECOND]).claim(layout, GENERATION)
    save_plan(layout, plan)
    assert find(layout, plan).replaced == (SECOND,)


def test_a_pending_shard_of_a_split_that_was_planned_long_ago(layout: Layout) -> None:
    """Neither plan has its split: the list says that it is ours."""
    make_shard(layout, "old-00000-of-00001", "")
    plan = with_generation(made_plan(), GENERATION)
    Replacement.plan(layout, ["old-00000-of-00001"]).claim(layout, GENERATION)
    save_plan(layout, plan)
    (layout.output_dir / "old-00000-of-00002").touch()
    name = "old-00000-of-00001"
    assert find(layout, plan) == ExistingShards(sizes(layout, name), (name,), ())


# refusals -----------------------------------------------------------------------------------------


def test_finished_shards_of_a_split_that_is_not_planned(layout: Layout) -> None:
    """Of a recipe, and of ImageNet, whose raw data is missing; a growth belongs to its split."""
    make_set(layout)
    with pytest.raises(UsageError) as caught:
        find(layout, made_plan({"train": 3, "test": 1}))
    assert caught.value.lines == [
        f"{layout.output_dir} holds finished validation shards, which this recipe does not make",
        "expected only shards of train, test",
        (
            "for another set, give it its own prefix in the recipe: output_file_prefix: tiny; "
            "or choose another folder with --output"
        ),
    ]
    plan = made_plan({"train": 3})
    with pytest.raises(UsageError) as caught:
        find(layout, replace(plan, dataset=replace(plan.dataset, kind="ILSVRC2012")))
    assert caught.value.lines == [
        f"{layout.output_dir} holds finished validation shards, but their raw data is missing",
        f"expected the validation images in {layout.raw_dir} too",
        "put their archive or folder back, or choose another folder with --output",
    ]
    record(layout, [make_shard(layout, "train-grown2-00000-of-00001", "x")])
    assert find(layout, made_plan()).replaced == ("train-grown2-00000-of-00001",)
    assert find(layout, made_plan({**COUNTS, "train-grown3": 1})).replaced == (
        "train-grown2-00000-of-00001",
    )


def test_a_split_that_is_not_planned_is_refused_by_its_growth(layout: Layout) -> None:
    """The message has the growth's name."""
    record(layout, [make_shard(layout, "other-grown2-00000-of-00001", "x")])
    with pytest.raises(UsageError, match=r"other-grown2 .*this recipe does not make"):
        find(layout, made_plan())


def foreign(*names: str) -> ExistingShards:
    """Shards of another program alone."""
    return ExistingShards(dict.fromkeys(names, 1), (), names)


def test_foreign_shards_are_never_mixed_in(layout: Layout) -> None:
    """With --overwrite, those in the way may be replaced;
    the hint says so only where all are in the way.
    """
    plan = made_plan()
    for overwrite in (True, False):
        ExistingShards({}, (), ()).refuse_foreign(layout, plan, overwrite=overwrite)
        with pytest.raises(UsageError) as caught:
            foreign(FIRST, "train-00000-of-00009").refuse_foreign(layout, plan, overwrite=overwrite)
        assert caught.value.lines == [
            f"{layout.output_dir} holds 2 shards (first: {FIRST}), which no file in {layout.state_dir} lists",
            "expected only shards that convert made here",
            "if they were made by imagenet-prep, copy also the folder imagenet-prep that was next to them; "
            "or move them away, or choose another folder with --output",
        ]
    foreign(FIRST).refuse_foreign(layout, plan, overwrite=True)
    with pytest.raises(UsageError) as caught:
        foreign(FIRST).refuse_foreign(layout, plan, overwrite=False)
    assert caught.value.lines == [
        f"{layout.output_dir} holds the shard {FIRST}, which no file in {layout.state_dir} lists",
        "expected only shards that convert made here",
        (
            "if they were made by imagenet-prep, copy also the folder imagenet-prep that was next to them; "
            "or move them away, choose another folder with --output, "
            "or let --overwrite replace those in the way"
        ),
    ]


def replacing(*names: str) -> ExistingShards:
    """Shards to replace alone."""
    return ExistingShards(dict.fromkeys(names, 1), names, ())


def refusal(
    existing: ExistingShards, layout: Layout, plan: Plan, changed: dict[str, str]
) -> list[str]:
    """The lines of the error."""
    with pytest.raises(UsageError) as caught:
        existing.refuse_replaced(SetRecords(layout), plan, changed, commands_for_boxes)
    return caught.value.lines


def test_finished_shards_are_not_replaced_unasked(layout: Layout) -> None:
    """With the evidence of the first that has some, or the differences to what is recorded."""
    plan = made_plan()
    ExistingShards({}, (), ()).refuse_replaced(
        SetRecords(layout), plan, {FIRST: "an image"}, commands_for_boxes
    )
    hint = "make the shards again with --overwrite, or choose another folder with --output"
    both = f"2 shards were made from other inputs or with other settings, {FIRST} first"
    one = f"1 shard was made from other inputs or with other settings, {SECOND} first"
    found = replacing(FIRST, SECOND)
    assert refusal(found, layout, plan, {NAMES[3]: "no", SECOND: "yes", FIRST: ""}) == [
        both,
        "yes",
        f"if images changed by mistake, restore them; or {hint}",
    ]
    unknown = "an input or an option changed since then"
    assert refusal(replacing(SECOND), layout, plan, {}) == [one, unknown, hint]
    save_plan(layout, made_plan(settings={"check": "decode"}))
    changed = "changed since then: --check (decode, now header)"
    earlier = f"give the earlier settings again, {hint}"
    assert refusal(found, layout, plan, {FIRST: ""}) == [both, changed, earlier]
    layout.plan_path.unlink()
    totals = {"train": SplitTotals(6, 0, 1, 1, 3), "validation": SplitTotals(4, 0, 2, 0, 2)}
    make_set(layout, replace(plan, totals=totals))
    layout.plan_path.unlink()
    changed = "changed since then: train boxes, number of validation classes"
    assert refusal(found, layout, plan, {}) == [both, changed, hint]
    save_plan(layout, made_plan(settings={"check": "decode"}))
    assert refusal(found, layout, plan, {}) == [
        both,
        changed,
        hint,
    ]  # of the manifest and not of the plan


def test_a_finished_set_of_a_plan_of_ours_is_whole(layout: Layout) -> None:
    """The journal's entry counts before the manifest's."""
    plan = make_set(layout)
    (info,) = make_shards(layout, made_plan(word="new"), [FIRST])
    assert info.fingerprint == "new-train-0"
    assert find(layout, plan).replaced == (FIRST,)


def test_replaced_shards_are_noted(layout: Layout) -> None:
    """Also by a run that resumes without --overwrite: the note names no option, and counts right."""
    make_set(layout)
    plan = with_generation(made_plan(), GENERATION)
    for names, words in (
        ([SECOND], "1 shard of an older set is"),
        (NAMES, "shards of an older set are"),
    ):
        progress = Silent()
        replacement = Replacement.plan(layout, names)
        replacement.claim(layout, GENERATION)
        freed_space(replacement, plan, layout, progress)
        (note,) = progress.notes
        assert f"{words} removed first (" in str(note)
        assert "--overwrite" not in str(note)


def test_boxes_that_were_asked_for_are_not_brought_back(layout: Layout) -> None:
    """A set with boxes of validation images, and the same conversion without them: annotate would
    change nothing, except for lost boxes of train images.
    """

    def plan_of(settings: dict[str, object], boxes: int, train_boxes: int = 3) -> Plan:
        totals = {
            "train": SplitTotals(4, 4, 1, train_boxes, 2),
            "validation": SplitTotals(4, 4, 1, boxes, 2),
        }
        plan = made_plan({"train": 2, "validation": 2}, settings=settings, totals=totals)
        return replace(plan, dataset=replace(plan.dataset, kind=ILSVRC2012))

    save_plan(layout, plan_of({"validation_boxes": True}, 3))
    again = "make the shards again with --overwrite, or choose another folder with --output"
    lines = refusal(replacing(FIRST), layout, plan_of({"validation_boxes": False}, 0), {})
    assert lines[-1] == again
    for without_boxes in (
        plan_of({"validation_boxes": True}, 0),
        plan_of({"validation_boxes": False}, 0, train_boxes=0),
    ):
        lines = refusal(replacing(FIRST), layout, without_boxes, {})
        assert lines[-1].startswith("bring the boxes back")
    train_only = plan_of({"validation_boxes": False}, 0, train_boxes=0)
    save_plan(layout, plan_of({"validation_boxes": False}, 0))
    annotate = f"imagenet-prep annotate {layout.data_dir}"
    download = f"imagenet-prep download {layout.data_dir} --only boxes"
    lines = refusal(replacing(FIRST), layout, train_only, {})
    assert f": {download} && {annotate} " in lines[-1]
    layout.raw_dir.mkdir(parents=True, exist_ok=True)
    (layout.raw_dir / "ILSVRC2012_bbox_train_v2.tar.gz").touch()
    lines = refusal(replacing(FIRST), layout, train_only, {})
    assert f": {annotate} " in lines[-1]
