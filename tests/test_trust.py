"""Journal, manifest and index of a set: what one of them says counts only
where another one agrees.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, converted, copied
from made_sets import edit_manifest as edit_soundly

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, PrepError, SpaceError, WriteError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.repair import RepairSummary
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage import local
from imagenet_prep.storage.layout import Layout

PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)
VICTIM = "train-00001-of-00004"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A DATA_DIR with archives and the six shards that convert made of them. Read only."""
    return converted(tmp_path_factory.mktemp("trust") / "data", made_tiny, PART)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``, times and all."""
    return copied(sound, tmp_path / "data")


def contents(layout: Layout) -> dict[str, bytes]:
    """Every shard and index, and the manifest."""
    paths = [*layout.output_dir.glob("*-of-*"), *layout.index_dir.iterdir(), layout.manifest_path]
    return {path.name: path.read_bytes() for path in paths}


def made(layout: Layout) -> int:
    """How many shards the same conversion makes again."""
    return sum(split.made for split in convert(layout, ENGINE, PART).splits)


def edit_manifest(layout: Layout, key: str, value: object) -> None:
    """Change the manifest's entry of the victim."""
    manifest = json.loads(layout.manifest_path.read_bytes())
    manifest["shards"][VICTIM][key] = value
    layout.manifest_path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def another(value: object) -> object:
    """The same kind of value with another digit, or one name more."""
    if isinstance(value, list):
        return [*value, "n1.JPEG"]
    return (
        value + 1
        if isinstance(value, int)
        else f"{(int(str(value)[0], 16) + 1) % 16:x}{str(value)[1:]}"
    )


# the journal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["digest", "records", "set_aside"])
def test_a_changed_journal_line_decides_nothing(layout: Layout, key: str) -> None:
    """Verify and repair find the set right, convert makes at most that shard again;
    the manifest stays as it was.
    """
    before = contents(layout)
    lines = [json.loads(line) for line in layout.journal_path.read_bytes().splitlines()]
    (entry,) = (line for line in lines if line["name"] == VICTIM and "made_from" not in line)
    entry[key] = another(entry[key])
    layout.journal_path.write_text(
        "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in lines)
    )
    assert verify(layout, ENGINE).problems == ()
    assert verify_and_repair(layout, ENGINE).repair == RepairSummary()
    assert contents(layout) == before
    assert made(layout) == 1
    assert contents(layout) == before
    assert made(layout) == 0
    assert verify(layout, ENGINE).problems == ()


# the manifest -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_sound", "words"),
    [(False, "changed since it was written"), (True, f"list different content of {VICTIM}")],
)
def test_without_an_index_nothing_tells_which_record_holds(
    layout: Layout, is_sound: bool, words: str
) -> None:
    """Manifest and journal differ, and the index is gone:
    repair refuses, convert makes the shard again.
    """
    before = contents(layout)
    if is_sound:
        edit_soundly(layout, lambda manifest: manifest["shards"][VICTIM].update(digest="0" * 64))
    else:
        edit_manifest(layout, "digest", "0" * 64)
    layout.index_path(VICTIM).unlink()
    with pytest.raises(InputError, match=words) as caught:
        verify_and_repair(layout, ENGINE)
    assert "imagenet-prep convert again" in caught.value.hint
    assert made(layout) == 1
    assert contents(layout) == before


# the index ----------------------------------------------------------------------------------------


def _other_bit(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


HARMS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda content, other: b"",
    "cut": lambda content, other: content[: len(content) // 2],
    "of-another-shard": lambda content, other: other,
    "middle-bit": lambda content, other: _other_bit(content, len(content) // 2),
    "blank": lambda content, other: content.replace(b" ", b"  ", 1),
}


@pytest.mark.parametrize("suffix", ["idx", "list"])
@pytest.mark.parametrize("harm", HARMS)
def test_an_index_is_believed_only_as_it_was_written(
    layout: Layout, suffix: str, harm: str
) -> None:
    """A power cut or a bad disk left another index:
    its shard, and no other, is made again, index and all.
    """
    before = contents(layout)
    path = layout.index_dir / f"{VICTIM}.{suffix}"
    other = layout.index_dir / f"train-00002-of-00004.{suffix}"
    path.write_bytes(HARMS[harm](path.read_bytes(), other.read_bytes()))
    assert contents(layout) != before
    assert made(layout) == 1
    assert contents(layout) == before


def test_an_index_that_cannot_be_read_is_made_again(layout: Layout) -> None:
    """A folder in its place is told; once it is gone, the shard is made again."""
    before = contents(layout)
    path = layout.index_path(VICTIM)
    path.unlink()
    path.mkdir()
    with pytest.raises(PrepError):
        convert(layout, ENGINE, PART)
    path.rmdir()
    assert made(layout) == 1
    assert contents(layout) == before


# the sync -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "error"), [(errno.EIO, WriteError), (errno.ENOSPC, SpaceError)])
def test_what_the_disk_did_not_take_is_not_done(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, number: int, error: type[PrepError]
) -> None:
    """After a sync that failed the page cache proves nothing:
    every shard since the last one is made again.
    """
    before = contents(layout)
    shutil.rmtree(layout.state_dir)
    for path in existing(layout.output_dir, "*-of-*"):
        path.unlink()

    def fail(folder: Path) -> None:
        raise OSError(number, os.strerror(number), str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(local, "sync_file_system", fail)
        with pytest.raises(error):
            convert(layout, ENGINE, PART)
    assert made(layout) == 6
    assert contents(layout) == before
