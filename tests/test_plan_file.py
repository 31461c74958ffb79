"""The plan's file: written and read back; what is damaged, recorded elsewhere,
or of another set of the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tiny_sets import COUNTS, made_plan, make_set, save_plan, with_generation

from imagenet_prep.errors import InputError
from imagenet_prep.state import plan_file
from imagenet_prep.state.journal import sealed_line
from imagenet_prep.state.manifest import SplitTotals
from imagenet_prep.state.plan_file import (
    Plan,
    decode_plan,
    load_plan,
)
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import MAX_SHARDS, Layout

FULL = replace(
    made_plan(),
    options=(("resize", 64), ("overwrite", True)),
    raw="/raw",
    recipe={"path": "r.yaml", "base": "/data"},
    stamps={"train": {"/raw/train": "1"}},
    times={"train": ("1", "2", "3")},
    rows={"train": "abc"},
    origins={"train": "/raw/train"},
    notes=("a note",),
    asked={"raw": {"train": None}},
    generation="0123",
)
"""A plan with every field."""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder."""
    return Layout(tmp_path / "out")


def changed(**values: Any) -> bytes:
    """The file of FULL with other values; None: without this key."""
    value = json.loads(FULL.encode())
    del value["crc"]
    value |= values
    return sealed_line({key: item for key, item in value.items() if item is not None})


def test_a_plan_is_read_back(layout: Layout) -> None:
    """All of its fields, in one sealed line."""
    assert load_plan(layout) is None
    for plan in (made_plan(), FULL):
        save_plan(layout, plan)
        assert load_plan(layout) == plan
        assert decode_plan(plan.encode()) == plan
    (line,) = FULL.encode().splitlines()
    keys = set(json.loads(line))
    assert keys == {*Plan.__struct_fields__, "crc"}


def test_keys_that_are_no_text_are_written(layout: Layout) -> None:
    """Settings may be by number: JSON has them as text, in the order of the text."""
    plan = replace(FULL, settings={"labels": {2: "b", 10: "a"}})
    decoded = decode_plan(plan.encode())
    assert decoded.settings == {"labels": {"10": "a", "2": "b"}}
    assert decoded.encode() == plan.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}\n",
        FULL.encode().replace(b'"a note"', b'"b note"'),
        changed(schema=1),
        changed(schema=None),
        changed(dataset=None),
        changed(notes="a note"),
        changed(fingerprints={"train": ["a", "b", "c"]}),
        changed(fingerprints={"train": ["a", "b"], "validation": ["c", "d"]}),
        changed(fingerprints={"train": [], "validation": ["c", "d"]}),
        sealed_line({}),
    ],
)
def test_a_damaged_plan_is_none(layout: Layout, content: bytes) -> None:
    """Another byte, schema or kind of a value, or totals that don't fit the fingerprints."""
    assert decode_plan(content) is None
    layout.plan_path.parent.mkdir(parents=True)
    layout.plan_path.write_bytes(content)
    assert load_plan(layout) is None


def test_the_counts_of_shards_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A split has from one shard to the most that a name can hold, in each split."""
    totals = SplitTotals(0, 0, 0, 0, 0)
    assert decode_plan(made_plan({"train": 1, "validation": 3}).encode()) is not None
    empty = replace(made_plan(), totals={"train": totals}, fingerprints={"train": ()})
    assert decode_plan(empty.encode()) is None
    assert MAX_SHARDS == 9_999_999
    monkeypatch.setattr(plan_file, "MAX_SHARDS", 2)
    assert decode_plan(made_plan({"train": 2}).encode()) is not None
    assert decode_plan(made_plan({"train": 3}).encode()) is None
    assert decode_plan(made_plan({"train": 2, "validation": 3}).encode()) is None


def test_a_plan_without_end_is_not_read(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is too large is an error, and is not read."""
    save_plan(layout, FULL)
    size = layout.plan_path.stat().st_size
    monkeypatch.setattr(plan_file, "MOST_BYTES", size)
    assert load_plan(layout) == FULL
    monkeypatch.setattr(plan_file, "MOST_BYTES", size - 1)
    with pytest.raises(InputError, match=r"plan\.json"):
        load_plan(layout)


def test_the_names_and_fingerprints_of_shards() -> None:
    """In order; a split that is not planned has none."""
    plan = made_plan()
    assert plan.names("validation") == ["validation-00000-of-00002", "validation-00001-of-00002"]
    assert plan.names("test") == []
    assert plan.fingerprints_by_name() == {
        "train-00000-of-00003": "f-train-0",
        "train-00001-of-00003": "f-train-1",
        "train-00002-of-00003": "f-train-2",
        "validation-00000-of-00002": "f-validation-0",
        "validation-00001-of-00002": "f-validation-1",
    }


def test_a_plan_extends_what_it_has_whole() -> None:
    """All splits of the other plan with the same fingerprints; more of its own are a growth."""
    plan, grown = made_plan(), made_plan({**COUNTS, "train-grown2": 1})
    assert grown.extends(plan)
    assert plan.extends(plan)
    assert not plan.extends(grown)
    assert not plan.extends(made_plan(word="other"))
    assert not plan.extends(None)


def test_a_key_is_that_of_shards_and_generation() -> None:
    """The order of the splits makes no difference; a shard in another split does."""
    plan = made_plan()
    keys = {
        plan.key,
        with_generation(plan).key,
        made_plan(word="other").key,
        made_plan({"train": 3}).key,
        made_plan({"train": 2, "validation": 3}).key,
    }
    assert len(keys) == 5
    assert all(len(key) == 16 for key in keys)
    assert (
        replace(plan, fingerprints=dict(reversed(plan.fingerprints.items())), raw="/other").key
        == plan.key
    )
    lines = b"train\n3\nf-train-0\nf-train-1\nf-train-2\nvalidation\n2\nf-validation-0\nf-validation-1\n"
    assert plan.key == hashlib.sha256(lines).hexdigest()[:16]


# the folder of raw data ---------------------------------------------------------------------------


def test_the_recorded_folder_of_raw_data(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None without a plan, without a folder in it, or if this machine can't read it;
    a URL is not asked.
    """
    raw = tmp_path / "raw"
    raw.mkdir()
    assert SetRecords(layout).raw_dir is None
    save_plan(layout, FULL)
    assert SetRecords(layout).raw_dir is None
    assert str(save_plan(layout, replace(FULL, raw="s3://bucket/raw")).raw_dir) == "s3://bucket/raw"
    assert str(SetRecords(layout).raw_dir) == "s3://bucket/raw"
    save_plan(layout, replace(FULL, raw=str(raw)))
    assert SetRecords(layout).raw_dir == raw
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == raw and mode == os.R_OK))
    assert SetRecords(layout).raw_dir is None
    monkeypatch.undo()
    save_plan(layout, replace(FULL, raw=None))
    assert SetRecords(layout).raw_dir is None


# other sets ---------------------------------------------------------------------------------------


def test_the_splits_of_the_other_sets(layout: Layout) -> None:
    """By the manifest of each, or by its plan; a set that was not planned has none,
    and the own set is left out.
    """
    plain, day, night, odd = (
        replace(layout, set_name=name) for name in ("", "day", "night", "odd")
    )
    for folder in (plain, day, night, odd):
        folder.state_dir.mkdir(parents=True)
    make_set(plain)
    make_set(day, made_plan({"day-train": 1, "day-validation": 1}))
    save_plan(night, made_plan({"night-train": 1}))
    odd.journal_path.touch()
    day.plan_path.unlink()
    expected = {"day-train": day, "day-validation": day, "night-train": night}
    assert SetRecords(plain).foreign_splits == expected
    del expected["night-train"]
    assert SetRecords(night).foreign_splits == {"train": plain, "validation": plain, **expected}
    night.plan_path.write_bytes(b"")
    assert SetRecords(plain).foreign_splits == expected
