"""annotate under every fault: hostile archives and folders, a full disk, kills, a lock that is held."""

from __future__ import annotations

import gzip
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
from imagenet_prep.errors import DataProblemsError, InputError, WriteError
from imagenet_prep.stages import annotate as stage
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.storage.layout import Layout

__all__ = ["layout"]  # the fixture

FILES = [(f"{WNID}/{WNID}_{number}.xml", xml()) for number in range(1, 4)]
CSV = b"".join(LINE % f"{WNID}_{number}.JPEG".encode() for number in range(1, 4))


# hostile archives ----------------------------------------------------------------------------------------------


TAR = pack(FILES)
HOSTILE_TARS = {
    "checksum": (TAR[:1024] + b"\xff" + TAR[1025:], "1,024"),
    "cut within a member": (TAR[:1600], "1,600"),
    "web page": (b"<html>" + b"please log in" * 100 + b"</html>", "0"),
    "symbolic link": (pack([FILES[0], (member(FILES[1][0], tarfile.SYMTYPE, "/etc/passwd"), b"")]), "1,024"),
}
"""One of each kind of fault: ``test_tar`` has all of them."""


@pytest.mark.parametrize("case", HOSTILE_TARS)
def test_a_hostile_tar_is_exit_4_with_the_byte(case: str, layout: Layout) -> None:
    """A tar that can't be trusted is refused as a whole, with archive and byte, and no boxes are written."""
    content, byte = HOSTILE_TARS[case]
    path = write_archive(layout, content if case == "checksum" else gzip.compress(content))
    error = refused(layout)
    assert error.exit_code == 4
    assert error.what.startswith(f"{path}, unpacked, is damaged at byte {byte}")
    assert not layout.annotate_path.exists()


@pytest.mark.parametrize("name", ["../../../{}", "/tmp/{}"])
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


# hostile folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [(os.mkfifo, "is not a plain file"), (lambda path: path.symlink_to(path), "can't be read")],
    ids=["pipe", "link to itself"],
)
def test_what_is_no_file_in_a_folder_is_exit_4(make: Callable[[Path], Any], said: str, tmp_path: Path) -> None:
    """A pipe (which nobody may ever write to) or a broken link under an .xml name is refused."""
    source = tmp_path / "in" / WNID
    source.mkdir(parents=True)
    (source / f"{WNID}_1.xml").write_bytes(xml())
    make(source / f"{WNID}_2.xml")
    error = refused(Layout(tmp_path / "data"), tmp_path / "in")
    assert error.exit_code == 4
    assert error.what == f"{source / WNID}_2.xml {said}"


# the disk ------------------------------------------------------------------------------------------------------


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
