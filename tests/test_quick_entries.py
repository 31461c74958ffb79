"""Journal and manifest as this version writes them are read a line at a time,
to what any other layout is read to.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.settings import ENTRY
from imagenet_prep.model import ShardInfo
from imagenet_prep.state import journal
from imagenet_prep.state.journal import Journal, ShardEntry, info_dict, seal, sealed_line
from imagenet_prep.state.manifest import Manifest, SplitTotals, load_manifest
from imagenet_prep.storage.files import plain_lines

PLAIN = ShardInfo("train-00000-of-00003", "f" * 64, 12, 3456, "d" * 64)
INFOS = (
    PLAIN,
    replace(
        PLAIN,
        name="train-00001-of-00003",
        set_aside=('ü "1": {}.JPEG', "\u2028"),
        repairs=("b (png)",),
    ),
    replace(
        PLAIN, name="train-00002-of-00003", records=0, size=(1 << 63) - 1, file_digest="e" * 64
    ),
)
MANIFEST = Manifest(
    version="0.1.0",
    dataset=ENTRY,
    settings={"shards": {}, "names": {"2": "b", "10": "a"}},
    sources={"train": {"name": "ILSVRC2012_img_train.tar", "images": 23}},
    totals={"train": SplitTotals(23, 1_281_167, 2, 5, 3)},
    shards={info.name: info for info in INFOS},
)
ODD: tuple[Any, ...] = (None, -1, True, 1.0, 1 << 63, "x", [], ["x", 1], {}, {"items": "x"})
ODD_ENTRIES = [
    *({**info_dict(PLAIN), key: odd} for key in info_dict(INFOS[2]) for odd in ODD),
    *(
        {key: value for key, value in info_dict(INFOS[2]).items() if key != left_out}
        for left_out in info_dict(INFOS[2])
    ),
    {**info_dict(PLAIN), "more": 1},
]


def loaded(path: Path) -> Manifest | str:
    """A manifest, or what is said of one that can't be understood."""
    try:
        found = load_manifest(path)
    except InputError as error:
        return error.what
    return found


def told(path: Path) -> list[ShardInfo | None]:
    """All that a journal says."""
    found = Journal(path)
    return [found.get(name) for name in sorted(found.names())]


# the manifest -------------------------------------------------------------------------------------


def test_a_manifest_is_read_a_line_at_a_time(tmp_path: Path) -> None:
    """It is one JSON value with a line a shard;
    the same value in any other layout is the same manifest.
    """
    path = tmp_path / "manifest.json"
    MANIFEST.save(path)
    assert sum(line.startswith(b'    "train-0') for line in path.read_bytes().splitlines()) == len(
        INFOS
    )
    found = loaded(path)
    assert isinstance(found, Manifest)
    value = json.loads(path.read_bytes())
    assert value["shards"].keys() == MANIFEST.shards.keys()
    crc = value.pop("crc")
    assert crc == seal(value)
    for indent in (None, 2):
        path.write_text(json.dumps({**value, "crc": crc}, indent=indent))
        other = loaded(path)
        assert isinstance(other, Manifest)
        assert other == found
    assert found.save(path)
    assert not found.save(path)


def test_a_sealed_manifest_with_an_odd_entry_is_read_as_any_other(tmp_path: Path) -> None:
    """Laid out a line a shard, with the right crc, or in one line:
    it is refused, or understood, in the same way.
    """
    path = tmp_path / "manifest.json"
    MANIFEST.save(path)
    text, ours = path.read_text(), journal.canonical(info_dict(PLAIN)).decode()
    for odd in ODD_ENTRIES:
        value = json.loads(text.replace(ours, json.dumps(odd)))
        crc = value.pop("crc")
        value["crc"] = seal(value)
        path.write_text(json.dumps(value))
        expected = loaded(path)
        path.write_text(
            text.replace(ours, journal.canonical(odd).decode()).replace(crc, value["crc"])
        )
        assert json.loads(path.read_text()) == value
        assert loaded(path) == expected, odd


# the journal --------------------------------------------------------------------------------------


def test_a_line_is_an_entry_only_as_it_was_written(tmp_path: Path) -> None:
    """A later entry counts; the same values in another layout,
    and sealed lines of another form, are passed over.
    """
    path = tmp_path / "journal.jsonl"
    with Journal(path) as written:
        for info in (*INFOS, replace(INFOS[1], fingerprint="0" * 64)):
            written.append(info)
    assert told(path) == [INFOS[0], replace(INFOS[1], fingerprint="0" * 64), INFOS[2]]
    lines = [dict(reversed(json.loads(line).items())) for line in path.read_bytes().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert told(path) == []
    for odd in ODD_ENTRIES:
        path.write_bytes(sealed_line(odd))
        expected = []
        with contextlib.suppress(ValueError):
            expected = [msgspec.convert(odd, ShardEntry).info]
        assert told(path) == expected, odd


def test_a_changed_line_is_passed_over(tmp_path: Path) -> None:
    """Each byte of a sealed line exchanged for another:
    it is not believed, and the line before it is.
    """
    path = tmp_path / "journal.jsonl"
    with Journal(path) as written:
        written.append(INFOS[0])
        before = path.read_bytes()
        written.append(INFOS[1])
    after = path.read_bytes()[len(before) :]
    for position in range(len(after) - 1):
        changed = bytes([after[position] ^ 1])
        path.write_bytes(before + after[:position] + changed + after[position + 1 :])
        assert list(Journal(path).names()) == [INFOS[0].name], (position, changed)


# lines of files -----------------------------------------------------------------------------------


def test_lines_without_end_are_refused(tmp_path: Path) -> None:
    """A line longer than allowed is an error that names the file, and not read to its end;
    a hole is such a line.
    """
    path = tmp_path / "lines"
    path.write_bytes(b"12345\n123456\n")
    assert list(plain_lines(path, 7)) == [b"12345\n", b"123456\n"]
    with pytest.raises(InputError, match="more than 6 bytes"):
        list(plain_lines(path, 6))
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="a line of more than 67,108,864 bytes"):
        list(plain_lines(path))
    assert list(plain_lines(tmp_path / "absent")) == []
