"""Columns in memory and on disk, and the names in them: each answer is that of plain lists; nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import re
import resource
import subprocess
import sys
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imagenet_prep.errors import PrepError, SpaceError, WriteError
from imagenet_prep.model import Box
from imagenet_prep.recipes.contents import is_of
from imagenet_prep.sources import arrangement, names, numbers, sorting
from imagenet_prep.sources.arrangement import Arrangement
from imagenet_prep.sources.catalog import Catalog, narrowed, widened
from imagenet_prep.sources.fingerprint import earlier_fingerprint, fingerprint, names_and_sizes
from imagenet_prep.sources.names import Names, NamesBuilder, names_of
from imagenet_prep.sources.numbers import Builder, Numbers, OnDisk, Places, packed, some, unpacked
from imagenet_prep.sources.tars import Archive

GOLDEN = "2:daa42f9213c35fb3ac7f62384dd59615108f1c597728dc5e66aa754e80f048ab"
EARLIER = "1221183274531b987a7c8bc04db8e75253edc37ec646fede949af5cf721fe7f2"
FIRST = "8e2fd2bd9880a3d05eae487bf4930623a16157067a3d0a55b46dbb82514a7aa9"

FORMS = {"B": (0, 255), "I": (0, 2**32 - 1), "Q": (0, 2**64 - 1), "q": (-(2**63), 2**63 - 1)}
QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAME = st.text(st.sampled_from("aAb/_.é鸟jpegJPEGnpy0"), min_size=1, max_size=21)


@pytest.fixture(params=["in memory", "on disk"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Columns stay in memory; or every one is on disk, and all of them are looked at by a few rows or bytes."""
    if request.param == "on disk":
        _on_disk(monkeypatch)
    return str(request.param)


def _on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        *((numbers, name, value) for name, value in (("IN_MEMORY", 0), ("_FLUSH", 16), ("_BLOCK", 7), ("_WINDOW", 4))),
        *((arrangement, name, value) for name, value in (("_BLOCK", 7), ("_WINDOW", 4))),
        *((module, "chunks", _by_threes) for module in (names, numbers, sorting)),
        (numbers, "CHUNK", 3),
        (sorting, "MOST", 8),
        (sorting, "_SAMPLED", 2),
    ):
        monkeypatch.setattr(module, name, value)


def _by_threes(count: int) -> Iterator[range]:
    return (range(start, min(start + 3, count)) for start in range(0, count, 3))


def _column(form: str, values: list[int]) -> Numbers:
    """A column, put together from pieces."""
    builder = Builder(form)
    for start in range(0, len(values), 5):
        builder.add(array(form, values[start : start + 5]))
    return builder.done()


def _names(texts: list[str]) -> Names:
    builder = NamesBuilder()
    builder.add_all(names_of(texts))
    return builder.done()


@QUICK
@given(form=st.sampled_from([*FORMS]), data=st.data())
def test_a_column_holds_what_was_put_in(kept: str, form: str, data: st.DataObject) -> None:
    """Its length, every row, slices, rows in any order, and what another process is sent: as an array has them."""
    values = data.draw(st.lists(st.integers(*FORMS[form]), max_size=30))
    column = _column(form, values)
    assert isinstance(column, OnDisk) == (kept == "on disk" and bool(values))
    assert (len(column), list(column)) == (len(values), values)
    assert [column[row] for row in range(-len(values), len(values))] == values * 2
    assert list(column[2:7]) == values[2:7]
    assert list(column[::2]) == values[::2]
    rows = data.draw(st.lists(st.integers(0, max(len(values) - 1, 0)), max_size=20 if values else 0))
    assert some(column, Places(rows)).tolist() == [values[row] for row in rows]
    assert some(column, range(1, max(len(values), 1))).tolist() == values[1:]
    sent = packed(column)
    assert list(unpacked(sent)) == list(pickle.loads(pickle.dumps(column))) == values
    if values and max(values) - min(values) < 256:
        assert len(sent[-1]) <= len(values)
    with pytest.raises(IndexError):
        column[len(values)]


@QUICK
@given(st.lists(NAME, max_size=30), st.randoms())
def test_names_are_what_lists_are(kept: str, texts: list[str], chance: random.Random) -> None:
    """Names one by one, many at a time, in any order; compared, found, chosen by their ends: as texts would be."""
    found = _names(texts)
    assert isinstance(found.joined, OnDisk) == (kept == "on disk" and bool(texts))
    assert (len(found), list(found), [found[row] for row in range(len(texts))]) == (len(texts), texts, texts)
    assert list(pickle.loads(pickle.dumps(found))) == list(Names.of_parts(*found.parts())) == texts
    rows = [chance.randrange(len(texts)) for _ in range(20 if texts else 0)]
    assert list(found.picked(rows)) == [texts[row] for row in rows]
    assert list(found.picked(range(1, len(texts)))) == texts[1:]
    encoded = [text.encode() for text in texts]
    signs = [(one > other) - (one < other) for one, other in pairwise(encoded)]
    assert [int(sign) for _, some_signs in found.compared() for sign in some_signs] == signs
    assert found.first_twice() == (signs.index(0) if 0 in signs else None)
    for lead in ("", "a/"):
        behind = [row for row, text in enumerate(texts) if text.startswith(lead)]
        runs = [*found.folders(behind, lead)]
        assert [place for places, *_ in runs for place in places] == [*range(len(behind))]
        for places, folder, slashes in runs:
            within = [texts[behind[place]] for place in places]
            parts = [text.removeprefix(lead).partition("/") for text in within]
            assert {name if slash else None for name, slash, _ in parts} == {folder}
            assert len(within) == 1 or folder is not None
            assert max(text.count("/") for text in within) == slashes
    assert found.chosen(lambda tail: is_of("image", tail)).tolist() == [is_of("image", text) for text in texts]
    for kind in ("image", "array"):
        assert any(is_of(kind, tail) for tail in found.endings()) == any(is_of(kind, text) for text in texts)
    assert {text for text in texts if "jpeg" in text.lower()} <= set(found.holding([b"jpeg"])) <= set(texts)
    ordered = sorted(encoded)
    by_bytes = _names([each.decode() for each in ordered])
    for text in texts:
        assert by_bytes.find(text.encode()) == ordered.index(text.encode())
        folder = text.partition("/")[0] + "/"
        below = by_bytes.below(folder)
        assert [row for row, each in enumerate(by_bytes) if each.startswith(folder)] == list(below)


def test_folders_of_one_length_are_told_apart(kept: str) -> None:
    """They differ within the first 8 bytes, behind them, or in nothing."""
    texts = ["ab/1", "ac/1", "ac/2", "ad/1/2", "12345678a/1", "12345678b/1", "12345678b/2", "1"]
    found = [(len(places), folder, slashes) for places, folder, slashes in _names(texts).folders(range(len(texts)), "")]
    joined: dict[str | None, tuple[int, int]] = {}
    for count, folder, slashes in found:
        before, most = joined.get(folder, (0, 0))
        joined[folder] = before + count, max(most, slashes)
    expected = {"ab": (1, 1), "ac": (2, 1), "ad": (1, 2), "12345678a": (1, 1), "12345678b": (2, 1), None: (1, 0)}
    assert joined == expected


def _catalog(texts: list[str], chance: random.Random, *, is_labelled: bool) -> Catalog:
    """A table of these names, in two archives, with numbers by chance, and boxes for some."""
    found = Catalog("s", ("x", "y"), ("an x", "a y"), [Archive(Path("a.tar")), Archive(Path("b.tar"))])
    for text in texts:
        found.append(text, chance.randrange(2**40), chance.randrange(2**20), chance.randrange(2**62))
        found.container_ids[-1] = chance.randrange(2)  # type: ignore[index]
        if is_labelled:
            found.labels.append(chance.randrange(3))  # type: ignore[union-attr]
    found.attach_boxes({text: [Box(0, 0, 0.5, 1)] * chance.randrange(3) for text in texts[::2]})
    found.columns = {"c": [chance.choice([None, 1, "ß"]) for _ in texts]}
    return found


def _all_of(catalog: Catalog) -> list[Any]:
    """Every row of a table, as it is in memory."""
    if not catalog.labels:
        return [(catalog.row(row), catalog.container(row)) for row in range(len(catalog))]
    return [(catalog.row(row), catalog.container(row), catalog.item(row)) for row in range(len(catalog))]


@QUICK
@given(st.lists(NAME, max_size=25), st.randoms(), st.booleans())
def test_a_table_is_the_same_on_disk(kept: str, texts: list[str], chance: random.Random, is_labelled: bool) -> None:
    """Joined, sorted, brought to another order, cut down for a worker, sent to one: rows and digests stay."""
    plain = _catalog(texts, chance, is_labelled=is_labelled)
    expected, settings = _all_of(plain), "{}"
    halves = plain.picked(range(len(texts) // 2)), plain.picked(range(len(texts) // 2, len(texts)))
    joined = Catalog.join(halves, is_listed=True)
    assert isinstance(joined.names.joined, OnDisk) == (kept == "on disk" and bool(texts))
    bare = Catalog.join([plain.picked(range(0))])
    assert (len(bare), bare.containers) == (0, [])
    assert [(joined.row(row), joined.container(row)) for row in range(len(texts))] == [each[:2] for each in expected]
    ordered = Catalog.join([plain])
    keys = [(int(is_labelled and plain.labels[row]), text.encode(), row) for row, text in enumerate(texts)]
    rows = [row for *_, row in sorted(keys)]
    found = [(ordered.row(row), ordered.container(row)) for row in range(len(texts))]
    assert found == [expected[row][:2] for row in rows]
    for wanted in (rows, range(len(texts) // 2), range(len(texts))):
        assert _all_of(plain.picked(wanted)) == _all_of(plain.whole(wanted)) == [expected[row] for row in wanted]
        sent = pickle.loads(pickle.dumps(narrowed(plain.whole(wanted))))
        assert _all_of(widened(sent)) == [expected[row] for row in wanted]
        assert _all_of(pickle.loads(pickle.dumps(plain.picked(wanted)))) == [expected[row] for row in wanted]
        if is_labelled:
            same = plain.picked(wanted), range(len(wanted))
            assert fingerprint(plain, wanted, settings) == fingerprint(*same, settings)
            assert plain.times(wanted) == same[0].times(same[1])
            assert plain.size(wanted) == sum(plain.lengths[row] for row in wanted)
    if is_labelled:
        assert names_and_sizes(plain) == _first_digest(plain)


def _first_digest(catalog: Catalog) -> str:
    """The digest that manifests have of a listing, as the first versions computed it."""
    import hashlib

    digest = hashlib.sha256("".join(catalog.names).encode())
    digest.update(array("Q", catalog.lengths).tobytes())
    digest.update(array("H", catalog.labels).tobytes())
    return digest.hexdigest()


def test_fingerprints_stay() -> None:
    """Golden values: those that sets hold, of this version and of the two before it."""
    catalog = _catalog(["b/1.jpg", "a/é.jpg", "a/2.jpg"], random.Random(1), is_labelled=True)
    assert fingerprint(catalog, [2, 0, 1], '{"a": 1}') == GOLDEN
    assert earlier_fingerprint(catalog, [2, 0, 1], '{"a": 1}', has_times=False) == EARLIER
    assert earlier_fingerprint(catalog, [2, 0, 1], '{"a": 1}', has_times=True) == FIRST


def test_a_long_column_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies where TMPDIR says, and no file is seen there: a process that is killed leaves nothing."""
    _on_disk(monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    column = _column("Q", [*range(100)])
    assert isinstance(column, OnDisk)
    assert os.fstat(column._file.fileno()).st_dev == tmp_path.stat().st_dev
    assert os.fstat(column._file.fileno()).st_size == 800
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("TMPDIR")
    assert numbers.scratch_folder() == Path("/var/tmp")


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 256 KB for long columns."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs takes root")
    monkeypatch.setenv("TMPDIR", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def _need_clear(error: PrepError, folder: Path, reason: str, hint: str) -> None:
    """What the error says: where, why, what is needed there, what is free, and what to do."""
    assert error.what == f"the plan can't be kept in {folder}: {reason}"
    assert re.fullmatch(
        r"expected room for some 300 bytes an image while the command runs, got [\d.,]+ (.?B) free", error.detail
    )
    assert error.hint == hint


def test_a_full_disk_is_named(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for a column as it grows, nor for the rows of one in another order: the error names folder and remedy."""
    hint = "name another folder in TMPDIR and run the same command again"
    monkeypatch.setattr(numbers, "IN_MEMORY", 0)
    with pytest.raises(SpaceError) as caught:
        _column("Q", [*range(60_000)])
    _need_clear(caught.value, small_disk, "No space left on device", hint)
    assert "got 0 B free" in caught.value.detail
    del caught
    gc.collect()
    column = _column("Q", [*range(20_000)])
    assert isinstance(column, OnDisk)
    with pytest.raises(SpaceError) as caught:
        Arrangement(range(0, 20_000, 1)[::-1]).column(column)
    _need_clear(caught.value, small_disk, "No space left on device", hint)
    del caught
    gc.collect()
    assert list(Arrangement(range(9_999, -1, -1)).column(column)) == [*range(9_999, -1, -1)]


def test_a_file_that_may_not_grow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ulimit -f, or a file system of small files: the limit is named beside the folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(numbers, "IN_MEMORY", 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(WriteError) as caught:
            _column("Q", [*range(60_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    hint = "raise ulimit -f, or name another folder in TMPDIR, and run the same command again"
    _need_clear(caught.value, tmp_path, "File too large", hint)


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR may name a folder that takes no file: the error names it, and nothing is free there."""
    monkeypatch.setenv("TMPDIR", "/proc/nowhere")
    monkeypatch.setattr(numbers, "IN_MEMORY", 0)
    with pytest.raises(WriteError) as caught:
        _column("Q", [*range(60_000)])
    assert caught.value.what == "the plan can't be kept in /proc/nowhere: No such file or directory"
    assert caught.value.detail == "expected a folder with room for some 300 bytes an image while the command runs"
    assert caught.value.hint == "name another folder in TMPDIR and run the same command again"


def test_a_plan_without_room_makes_nothing(small_disk: Path, tmp_path: Path) -> None:
    """convert with a full temporary folder: exit status 7, the folder, the remedy, no shard; with room it goes on."""
    import numpy as np

    (tmp_path / "set" / "a").mkdir(parents=True)
    for number in range(40):
        np.save(tmp_path / "set" / "a" / f"{number}.npy", np.arange(3))
    (tmp_path / "recipe.yaml").write_text("source: {folders: set}\nshards: 2\n")
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    program = (
        "from imagenet_prep import cli; from imagenet_prep.sources import numbers; numbers.IN_MEMORY = 0; cli.main()"
    )
    command = [sys.executable, "-c", program, "convert", "out", "--config", "recipe.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "")
    assert f"error: the plan can't be kept in {small_disk}: No space left on device\n" in done.stderr
    assert "name another folder in TMPDIR and run the same command again" in done.stderr
    assert not list((tmp_path / "out").glob("train-*"))
    filler.unlink()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").glob("train-*"))) == 2
