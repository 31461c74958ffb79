"""The journal of finished shards and the manifest."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.settings import ENTRY
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, SplitTotals, load_manifest

FIRST = ShardInfo("train-00000-of-00002", "f" * 64, 12, 3456, "d" * 64)
SECOND = ShardInfo(
    "train-00001-of-00002", "e" * 64, 11, 3333, "c" * 64, ("n01440764_1.JPEG", "n01440764_2.JPEG")
)

MANIFEST = Manifest(
    version="0.1.0",
    dataset=ENTRY,
    settings={"format": 1, "compression": "none"},
    sources={"train": {"name": "ILSVRC2012_img_train.tar", "images": 23}},
    totals={"train": SplitTotals(23, 1_281_167, 2, 5, 2)},
    shards={info.name: info for info in (FIRST, SECOND)},
)


def test_parts_are_read_as_one(tmp_path: Path) -> None:
    """Every writer has a file of its own; each sees what all wrote,
    and of one shard what it wrote itself.
    """
    path = tmp_path / "journal.jsonl"
    other = replace(FIRST, size=FIRST.size + 1)
    for part, info in (("", FIRST), ("3", SECOND), ("10", other)):
        with Journal(path, part) as journal:
            journal.append(info)
    assert sorted(os.listdir(tmp_path)) == ["journal-10.jsonl", "journal-3.jsonl", "journal.jsonl"]
    for part, first in (("", FIRST), ("10", other)):
        journal = Journal(path, part)
        assert set(journal.names()) == {FIRST.name, SECOND.name}
        assert (journal.get(FIRST.name), journal.get(SECOND.name)) == (first, SECOND)
    path.unlink()
    assert Journal(path).get(SECOND.name) == SECOND


def test_records_of_ranks_become_one(tmp_path: Path) -> None:
    """Where parts differ one is chosen; what counts is written to the journal,
    and the parts of ranks go.
    """
    path, other = tmp_path / "journal.jsonl", replace(FIRST, size=FIRST.size + 1)
    third = replace(SECOND, name="train-00002-of-00003")
    for part, infos in (
        ("", [SECOND]),
        ("rank-1", [FIRST, SECOND]),
        ("rank-2", [other, third]),
        ("own", [third]),
    ):
        with Journal(path, part) as journal:
            for info in infos:
                journal.append(info)
    with Journal(path) as journal:
        assert journal.rivals() == {FIRST.name: [FIRST, other]}
        journal.choose(FIRST)
        journal.forget([third.name, "no such shard"])
        before = path.stat().st_size
        journal.take_in()
        assert journal.get(third.name) is None
    assert path.read_bytes()[before:].count(b"\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["journal-own.jsonl", "journal.jsonl"]
    assert [Journal(path).get(info.name) for info in (FIRST, SECOND, third)] == [
        FIRST,
        SECOND,
        third,
    ]


def test_every_torn_last_line_counts_as_not_done(tmp_path: Path) -> None:
    """A journal cut anywhere within its last line keeps the lines before it, and goes on with a
    line of its own.

    Cut just before the newline, the entry is whole.
    """
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append(FIRST)
    whole = path.stat().st_size
    journal.append(SECOND)
    content = path.read_bytes()
    for length in range(whole, len(content)):
        path.write_bytes(content[:length])
        torn = Journal(path)
        assert torn.get(FIRST.name) == FIRST
        assert torn.get(SECOND.name) == (None if length < len(content) - 1 else SECOND)
        torn.append(SECOND)
        assert Journal(path).get(FIRST.name) == FIRST
        assert Journal(path).get(SECOND.name) == SECOND


@pytest.mark.parametrize(
    "line", [b"", b"5", b"null", b"[]", b'"text"', b"{}", b'{"name": "x"}', b"\xff\xfe", b"\0" * 90]
)
def test_foreign_lines_are_passed_over(tmp_path: Path, line: bytes) -> None:
    """A line that is no entry, such as the zeros that a power cut leaves,
    hides none of the others.
    """
    path = tmp_path / "journal.jsonl"
    Journal(path).append(FIRST)
    path.write_bytes(line + b"\n" + path.read_bytes() + line + b"\n")
    assert list(Journal(path).names()) == [FIRST.name]


@given(st.binary(max_size=80))
def test_any_bytes_are_a_journal(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Reading never fails, whatever the file holds."""
    path = tmp_path_factory.getbasetemp() / "any-journal.jsonl"
    path.write_bytes(content)
    assert list(Journal(path).names()) == []


def test_the_manifest_comes_back(tmp_path: Path) -> None:
    """What was saved is loaded, and saving it again touches nothing."""
    path = tmp_path / "manifest.json"
    assert load_manifest(path) is None
    assert MANIFEST.save(path)
    assert load_manifest(path) == MANIFEST
    assert not MANIFEST.save(path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"{}", b'{"schema": 2}'),
        b'{"schema": 1, "version": "x", "settings": 3, "sources": {}, "totals": {}, "shards": {}}',
        b'{"schema": 1, "version": "x", "settings": {}, "sources": {}, "totals": {"train": {}}, "shards": {}}',
        b'{"schema": 1, "version": "x", "settings": {}, "sources": {}, "totals": {}, "shards": {"x": {}}}',
    ],
)
def test_a_broken_manifest_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    """A manifest that can't be understood is said to be one, with what to do about it."""
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="can't be understood") as caught:
        load_manifest(path)
    assert str(path) in caught.value.what
    assert "imagenet-prep convert" in caught.value.hint
    assert str(caught.value).count("\n") == 2
    assert not re.search(
        r"Error|DATA_DIR", str(caught.value)
    )  # neither Python's words nor a gap to fill


def test_a_manifest_of_a_newer_version_need_not_be_removed(tmp_path: Path) -> None:
    """The hint has both causes of another schema: a newer version, and damage."""
    path = tmp_path / "manifest.json"
    path.write_bytes(b'{"schema": 2}')
    with pytest.raises(InputError) as caught:
        load_manifest(path)
    assert caught.value.lines == [
        f"{path} can't be understood",
        "expected the values that imagenet-prep convert writes",
        "if it was written by a newer imagenet-prep, use that version; otherwise remove "
        "manifest.json and run the same imagenet-prep convert again: "
        "it keeps the shards that journal.jsonl lists, and makes the others",
    ]


def test_only_the_full_data_set_is_no_part() -> None:
    """Both splits, every image of them, 1000 classes each."""
    full = {
        "train": SplitTotals(1_281_167, 1_281_167, 1000, 615_299, 1024),
        "validation": SplitTotals(50_000, 50_000, 1000, 0, 128),
    }
    assert not ImageNet(replace(MANIFEST, totals=full)).is_part
    assert not ImageNet().is_part
    assert ImageNet(MANIFEST).is_part
    assert ImageNet(replace(MANIFEST, totals={"train": full["train"]})).is_part
    assert ImageNet(
        replace(MANIFEST, totals={**full, "validation": SplitTotals(50_000, 50_000, 999, 0, 128)})
    ).is_part
    assert ImageNet(
        replace(MANIFEST, totals={**full, "validation": SplitTotals(49_999, 50_000, 1000, 0, 128)})
    ).is_part
