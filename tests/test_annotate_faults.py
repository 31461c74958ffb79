"""annotate under every fault: hostile archives and folders, a full disk, kills, a lock that is held."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_tars import member, pack
from test_annotate import LINE, WNID, layout, refused, train, write_archive, xml

from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.errors import BusyError, DataProblemsError, InputError, PrepError, SpaceError, WriteError
from imagenet_prep.stages import annotate as stage
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold

__all__ = ["layout"]  # the fixture

FILES = [(f"{WNID}/{WNID}_{number}.xml", xml()) for number in range(1, 4)]
CSV = b"".join(LINE % f"{WNID}_{number}.JPEG".encode() for number in range(1, 4))


# hostile archives ----------------------------------------------------------------------------------------------


TAR = pack(FILES)
HOSTILE_TARS = {
    "checksum": (TAR[:1024] + b"\xff" + TAR[1025:], "1,024"),
    "cut between members": (TAR[:2048], "2,048"),
    "cut within a member": (TAR[:1600], "1,600"),
    "no end blocks": (TAR[: 3 * 1024], "3,072"),
    "web page": (b"<html>" + b"please log in" * 100 + b"</html>", "0"),
    "symbolic link": (pack([FILES[0], (member(FILES[1][0], tarfile.SYMTYPE, "/etc/passwd"), b"")]), "1,024"),
}
"""One of each kind of fault: ``test_tar`` has all of them."""


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("case", HOSTILE_TARS)
def test_a_hostile_tar_is_exit_4_with_the_byte(case: str, packed: bool, layout: Layout) -> None:
    """A tar that can't be trusted is refused as a whole, with archive and byte, and no boxes are written."""
    content, byte = HOSTILE_TARS[case]
    path = write_archive(layout, gzip.compress(content) if packed else content)
    error = refused(layout)
    assert error.exit_code == 4
    assert error.what.startswith(f"{path}, unpacked, is damaged at byte {byte}")
    assert not layout.annotate_path.exists()


@pytest.mark.parametrize("name", ["../../../{}", "/tmp/{}", "a/../../{}", "./{}"])
def test_no_name_leads_out_of_data_dir(name: str, layout: Layout, tmp_path: Path) -> None:
    """Nothing is ever written under a member's name: the same CSV comes out, and no other file."""
    write_archive(layout, gzip.compress(pack([(name.format(each), content) for each, content in FILES])))
    before = {path for path in existing(tmp_path, "**/*") if path.is_file()}
    assert train(layout).problems == ()
    assert layout.boxes_csv.read_bytes() == CSV
    made = {path for path in existing(tmp_path, "**/*") if path.is_file()} - before
    assert {path.relative_to(layout.data_dir).as_posix() for path in made} <= {
        "raw-data/imagenet_2012_bounding_boxes.csv",
        "imagenet-prep/annotate.json",
        "imagenet-prep/lock",
    }


def test_a_nul_in_a_name_is_named(layout: Layout) -> None:
    """A name that pax extends beyond a NUL byte is that of no image."""
    info = member(FILES[0][0])
    info.pax_headers = {"path": f"{WNID}/{WNID}_1\0.xml"}
    write_archive(layout, gzip.compress(pack([(info, FILES[0][1])], tarfile.PAX_FORMAT)))
    assert ["no control character" in problem.detail for problem in train(layout).problems] == [True]
    assert layout.boxes_csv.read_bytes() == b""


# hostile folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is not a plain file"),
        (Path.mkdir, "is not a plain file"),
        (lambda path: path.symlink_to("nowhere"), "can't be read"),
        (lambda path: path.symlink_to(path), "can't be read"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a plain file"),
    ],
    ids=["pipe", "folder", "link to nowhere", "link to itself", "device"],
)
def test_what_is_no_file_in_a_folder_is_exit_4(make: Callable[[Path], Any], said: str, tmp_path: Path) -> None:
    """A pipe (which nobody may ever write to), a device, a folder or a broken link under an .xml name is refused."""
    source = tmp_path / "in" / WNID
    source.mkdir(parents=True)
    (source / f"{WNID}_1.xml").write_bytes(xml())
    make(source / f"{WNID}_2.xml")
    error = refused(Layout(tmp_path / "data"), tmp_path / "in")
    assert error.exit_code == 4
    assert error.what == f"{source / WNID}_2.xml {said}"


# the disk ------------------------------------------------------------------------------------------------------


def _leftovers(layout: Layout) -> list[str]:
    return [path.name for path in existing(layout.data_dir, "**/*") if "partial" in path.name]


SYNCS = 4
"""Of the CSV, its folder, the state file, its folder."""

WHERE: dict[str, Any] = {"fsync": os, "replace": Path}
"""Whose call it is: Python 3.10's Path keeps an os.replace of its own."""


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, SpaceError), (errno.EDQUOT, SpaceError), (errno.EIO, WriteError)]
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_nothing_half_done(
    call: str, number: int, kind: type[PrepError], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each sync and each renaming: exit status 7 if it is full, else 1; no partial file; the next run is right."""
    write_archive(layout, gzip.compress(pack(FILES)))
    true_call = getattr(WHERE[call], call)
    calls = 0
    failed = 0
    for fails_at in range(SYNCS if call == "fsync" else SYNCS // 2):
        layout.boxes_csv.unlink(missing_ok=True)
        layout.annotate_path.unlink(missing_ok=True)
        calls = 0

        def fail(*given: Any, at: int = fails_at, **options: Any) -> Any:
            nonlocal calls, failed
            calls += 1
            if calls - 1 == at:
                failed += 1
                raise OSError(number, os.strerror(number))
            return true_call(*given, **options)

        monkeypatch.setattr(WHERE[call], call, fail)
        with pytest.raises(kind) as caught:
            train(layout)
        monkeypatch.setattr(WHERE[call], call, true_call)
        assert caught.value.exit_code == (1 if kind is WriteError else 7)
        assert _leftovers(layout) == []
        assert not layout.boxes_csv.exists() or layout.boxes_csv.read_bytes() == CSV
        train(layout)
        assert layout.boxes_csv.read_bytes() == CSV
        assert train(layout).up_to_date
    assert failed == (SYNCS if call == "fsync" else SYNCS // 2)


def _kill_at(call: str, number: int, layout: Layout) -> int:
    """How a process ended that annotates, and kills itself just before it makes a call for the ``number``-th time."""
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        true_call, calls = getattr(WHERE[call], call), 0

        def kill(*given: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return true_call(*given, **options)

        setattr(WHERE[call], call, kill)
        try:
            train(layout)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_at_any_step_is_mended_by_the_next_run(call: str, layout: Layout) -> None:
    """kill -9 before each sync and renaming, where an older CSV stands: it is the old or the new one, then the new."""
    old = pack(FILES[:1])
    write_archive(layout, gzip.compress(old))
    train(layout)
    before = layout.boxes_csv.read_bytes(), layout.annotate_path.read_bytes()
    write_archive(layout, gzip.compress(pack(FILES)))
    seen = set()
    for number in range(1, (SYNCS if call == "fsync" else SYNCS // 2) + 1):
        layout.boxes_csv.write_bytes(before[0])
        layout.annotate_path.write_bytes(before[1])
        assert _kill_at(call, number, layout) == -signal.SIGKILL
        seen.add(layout.boxes_csv.read_bytes())
        train(layout)
        assert layout.boxes_csv.read_bytes() == CSV
        assert train(layout).up_to_date
        assert _leftovers(layout) == []
    assert seen == {before[0], CSV}


def test_a_folder_that_cannot_be_written_is_exit_1(layout: Layout, tmp_path: Path) -> None:
    """A folder in the CSV's place is an error that names it."""
    write_archive(layout, gzip.compress(pack(FILES)))
    layout.boxes_csv.mkdir()
    with pytest.raises(WriteError) as caught:
        train(layout)
    assert caught.value.what == f"cannot write {layout.boxes_csv}"
    layout.boxes_csv.rmdir()
    train(layout)
    assert layout.boxes_csv.read_bytes() == CSV


# others at the same time ---------------------------------------------------------------------------------------


def test_a_second_run_is_refused_at_once(layout: Layout) -> None:
    """While another command writes to DATA_DIR, exit status 8, and nothing is written."""
    write_archive(layout, gzip.compress(pack(FILES)))
    begun, told = os.pipe()
    holder = os.fork()
    if holder == 0:  # pragma: no cover - another process
        with hold(layout.lock_paths):
            os.write(told, b"!")
            signal.pause()
    os.read(begun, 1)
    try:
        with pytest.raises(BusyError, match=str(holder)) as caught:
            train(layout)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(begun)
        os.close(told)
    assert caught.value.exit_code == 8
    assert not layout.boxes_csv.exists()
    assert train(layout).totals.boxes == 3


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_an_input_that_changes_while_it_is_read_is_read_again(
    form: str, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made from an input that changed meanwhile is never taken for what the input says now."""
    source = tmp_path / "in"
    if form == "archive":
        source.write_bytes(pack(FILES[:2]))
    else:
        (source / WNID).mkdir(parents=True)
        for name, content in FILES[:2]:
            (source / name).write_bytes(content)
    read_all = stage._read_all

    def read_then_change(*given: Any) -> Any:
        result = read_all(*given)
        if form == "archive":
            source.write_bytes(pack(FILES))
        else:
            (source / FILES[2][0]).write_bytes(FILES[2][1])
        return result

    monkeypatch.setattr(stage, "_read_all", read_then_change)
    train(layout, source)
    monkeypatch.undo()
    assert not train(layout, source).up_to_date
    assert layout.boxes_csv.read_bytes() == CSV


def test_a_state_file_with_another_number_is_not_believed(layout: Layout) -> None:
    """A changed CSV is made again; an annotate.json of another form is as good as none."""
    write_archive(layout, gzip.compress(pack(FILES)))
    train(layout)
    layout.boxes_csv.write_bytes(CSV.replace(b"0.5000", b"0.6000", 1))
    assert not train(layout).up_to_date
    for value in ({"train": 1}, {"train": {"made_from": None}}, [], {"train": {"totals": {"files": 1}}}, None):
        layout.annotate_path.write_text(json.dumps(value))
        assert not train(layout).up_to_date
        assert layout.boxes_csv.read_bytes() == CSV


# workers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def deaths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has the worker that comes to the second file killed the given number of times."""
    counter = tmp_path / "deaths"
    parse = stage.parse_annotation

    def die_then_parse(content: bytes) -> Any:
        if b"fatal" in content and (left := int(counter.read_text())):
            counter.write_text(str(left - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return parse(content)

    monkeypatch.setattr(stage, "parse_annotation", die_then_parse)
    monkeypatch.setattr(stage, "_BATCH", 1)

    def allow(count: int) -> None:
        counter.write_text(str(count))

    return allow


FATAL = xml().replace(b"<annotation>", b"<annotation><folder>fatal</folder>")


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_is_killed_costs_nothing(count: int, layout: Layout, deaths: Callable[[int], None]) -> None:
    """Its files go to another worker: the same CSV, the same counts."""
    write_archive(layout, gzip.compress(pack([FILES[0], (FILES[1][0], FATAL), FILES[2]])))
    deaths(count)
    [summary] = annotate(layout, ProcessEngine(2)).splits
    assert (summary.totals.files, summary.totals.boxes) == (3, 3)
    assert layout.boxes_csv.read_bytes() == CSV


def test_files_that_kill_every_worker_are_named(
    layout: Layout, deaths: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three deaths on the same files: exit status 3, with archive and file; no CSV."""
    path = write_archive(layout, gzip.compress(pack([FILES[0], (FILES[1][0], FATAL), FILES[2]])))
    for batch, where in ((1, FILES[1][0]), (3, f"{FILES[0][0]} or one of the 2 files after it")):
        deaths(99)
        monkeypatch.setattr(stage, "_BATCH", batch)
        with pytest.raises(DataProblemsError) as caught:
            annotate(layout, ProcessEngine(2))
        assert caught.value.exit_code == 3
        assert caught.value.what.startswith(f"{path}, {where}: a worker died 3 times")
        assert not layout.boxes_csv.exists()


def test_an_error_in_the_middle_of_an_archive_leaves_an_older_csv(layout: Layout) -> None:
    """An archive that turns out damaged does not cost the boxes of the one before it."""
    write_archive(layout, gzip.compress(pack(FILES)))
    train(layout)
    write_archive(layout, gzip.compress(pack(FILES))[:-4])
    with pytest.raises(InputError):
        train(layout)
    assert layout.boxes_csv.read_bytes() == CSV
