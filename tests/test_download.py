"""The download stage: what it fetches, checks, keeps and refuses, and what survives kill -9."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
from pathlib import Path

import pytest
from existing import existing
from fault_server import PASSWORD, USERNAME, Faults, assert_told, fault_server
from made_sets import ENGINE, flip
from made_tars import save
from progress import Bars

from imagenet_prep import Credentials, DownloadOptions, Layout, PrepError, download, status
from imagenet_prep.errors import InputError, NetworkError, UsageError
from imagenet_prep.fetch.access import open_session
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import Remote, inspect
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.ilsvrc2012.official_tars import OfficialTar
from imagenet_prep.model import Silent
from imagenet_prep.stages.download import foresee

CONTENTS = {
    "train": random.Random(1).randbytes(2_000_000),
    "validation": random.Random(2).randbytes(700_000),
    "boxes": gzip.compress(random.Random(3).randbytes(30_000), mtime=0),
}
DIGESTS = {key: hashlib.md5(content).hexdigest() for key, content in CONTENTS.items()}
ADA = Credentials(USERNAME, PASSWORD)
PACE = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.02, segment=150_000)


@pytest.fixture
def server(tmp_path):
    """A server of three archives, which wants Basic credentials."""
    (tmp_path / "served").mkdir()
    for key, content in CONTENTS.items():
        (tmp_path / "served" / ARCHIVES[key].filename).write_bytes(content)
    with fault_server(tmp_path / "served", is_open=False) as server:
        yield server


@pytest.fixture
def layout(tmp_path):
    """A DATA_DIR that doesn't exist yet."""
    return Layout(tmp_path / "data")


def run(server, layout, **options):
    """Download the server's archives."""
    rest = {
        key: options.pop(key) for key in ("only", "part", "before", "progress") if key in options
    }
    settings = {"credentials": ADA, "digests": DIGESTS, "pace": PACE, **options}
    return download(layout, DownloadOptions(base_url=server.url, **settings), **rest)


def assert_whole(layout, keys=tuple(CONTENTS)):
    """The archives are there, byte for byte, and no partial file is left."""
    for key in keys:
        assert layout.download_path(ARCHIVES[key]).read_bytes() == CONTENTS[key]
    assert list(layout.raw_partial_dir.iterdir()) == []


def snapshot(folder):
    """Every file below a folder, its bytes and its time of change."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in existing(folder, "**/*")
        if path.is_file()
    }


def test_fetches_all(server, layout):
    """All archives arrive under their names and are remembered as checked;
    a second run asks nobody.
    """
    assert len(foresee(layout, digests=DIGESTS)) == 3
    summary = run(server, layout, connections=4)
    assert_whole(layout)
    assert summary.fetched == tuple(
        ARCHIVES[key].filename for key in ("train", "validation", "boxes")
    )
    assert (summary.present, summary.size) == ((), sum(map(len, CONTENTS.values())))
    assert foresee(layout, digests=DIGESTS) == ()
    checked = json.loads(layout.checked_path.read_text())
    for key, content in CONTENTS.items():
        stat = layout.download_path(ARCHIVES[key]).stat()
        url = server.url + ARCHIVES[key].filename
        expected = {
            "size": len(content),
            "mtime_ns": stat.st_mtime_ns,
            "md5": DIGESTS[key],
            "url": url,
        }
        assert checked[ARCHIVES[key].filename] == expected
    server.seen.clear()
    before, progress = snapshot(layout.data_dir), Bars()
    again = run(server, layout, credentials=None, progress=progress)
    assert (server.seen, progress.labels, again.fetched, len(again.present)) == ([], [], (), 3)
    assert snapshot(layout.data_dir) == before


def test_space_is_asked_for_what_is_missing(server, layout):
    """What is there of an archive, durable, takes no more space; an archive named twice is one."""
    archive, half = ARCHIVES["boxes"], len(CONTENTS["boxes"]) // 2
    session = open_session(server.url, ADA, None, probe=archive.filename, pace=PACE)
    with PartialFile(
        layout.part_path(archive.filename), inspect(session, server.url + archive.filename, PACE)
    ) as part:
        part.write(0, CONTENTS["boxes"][:half])
        part.save()
    asked = []
    assert len(foresee(layout, only=["boxes", "boxes"], digests=DIGESTS)) == 1
    summary = run(server, layout, only=["boxes", "boxes"], before=asked.extend)
    assert [(each.size, each.to_come) for each in asked] == [
        (len(CONTENTS["boxes"]), len(CONTENTS["boxes"]) - half)
    ]
    assert summary.fetched == (archive.filename,)


def test_an_archive_that_was_touched_is_hashed_again(server, layout):
    """What was checked counts for the very file: another time,
    and it is hashed again, once, and others are not.
    """
    run(server, layout)
    path = layout.download_path(ARCHIVES["train"])
    os.utime(path, ns=(1, 1))
    for expected in ([f"checking {path.name}"], []):
        progress = Bars()
        run(server, layout, progress=progress)
        assert (progress.labels, progress.left) == (expected, 0)
    flip(path, 7)
    content = path.read_bytes()
    os.utime(path, ns=(2, 2))
    with pytest.raises(InputError) as caught:
        run(server, layout)
    assert_told(caught.value, 4, path.name, DIGESTS["train"])
    assert path.read_bytes() == content


def test_only(server, layout):
    """Only the archives named are fetched, each once; a name that isn't known is wrong usage."""
    run(server, layout, only=["boxes", "boxes"])
    assert_whole(layout, ["boxes"])
    assert not layout.download_path(ARCHIVES["train"]).exists()
    with pytest.raises(UsageError) as caught:
        run(server, layout, only=["tests"])
    assert_told(caught.value, 2, "'tests'", "validation-boxes")
    with pytest.raises(UsageError):
        run(server, layout, connections=0)


def test_present_but_wrong(server, layout):
    """A file of that name with other content is never overwritten:
    exit 4, both digests, what to do.
    """
    path = layout.download_path(ARCHIVES["boxes"])
    save(path, b"something else")
    other = hashlib.md5(b"something else").hexdigest()
    run(server, layout, only=["boxes"], digests={"boxes": other})  # it is remembered as right
    before = snapshot(layout.own_raw_dir)
    with pytest.raises(InputError) as caught:
        run(server, layout, only=["boxes"])
    assert_told(caught.value, 4, str(path), DIGESTS["boxes"], other, f"mv -- {path}")
    assert snapshot(layout.own_raw_dir) == before


def test_present_with_the_wrong_size(server, layout):
    """An official archive that was cut is found by its size;
    where no size is compared, it must look right.
    """
    path = layout.download_path(ARCHIVES["validation"])
    save(path, b"cut")
    with pytest.raises(InputError) as caught:
        run(server, layout, only=["validation"], digests=None)
    assert_told(caught.value, 4, str(path), "6,744,924,160 bytes", "has 3")
    with pytest.raises(InputError):
        foresee(layout)
    with pytest.raises(InputError, match=r"not the expected file"):
        foresee(layout, only=["validation"], check_digest=False)
    with pytest.raises(InputError):
        run(server, layout, only=["train", "validation"], digests={"train": DIGESTS["train"]})
    assert server.seen == []


def test_corrupt(server, layout):
    """A file whose digest differs is set aside under a name that nothing reads;
    a later run fetches it afresh.
    """
    name = ARCHIVES["boxes"].filename
    (server.folder / name).write_bytes(b"corrupt")
    got = hashlib.md5(b"corrupt").hexdigest()
    with pytest.raises(InputError) as caught:
        run(server, layout)
    aside = layout.raw_partial_dir / f"{name}.corrupt-{got[:8]}"
    assert_told(caught.value, 4, name, str(aside), DIGESTS["boxes"], got)
    assert [path.name for path in existing(layout.raw_partial_dir, "*")] == [aside.name]
    assert aside.read_bytes() == b"corrupt"
    assert not layout.download_path(ARCHIVES["boxes"]).exists()
    aside.unlink()
    (server.folder / name).write_bytes(CONTENTS["boxes"])
    assert run(server, layout).fetched == (name,)
    assert_whole(layout)


def test_official_size_is_checked_first(server, layout):
    """A server whose file has not the official size is found out before a byte is fetched."""
    with pytest.raises(InputError) as caught:
        run(server, layout, digests=None, before=lambda incoming: None)
    assert_told(
        caught.value, 4, ARCHIVES["train"].filename, "147,897,477,120", "2,000,000", "--base-url"
    )
    assert server.gets() == []
    assert not layout.own_raw_dir.exists()


def test_no_digest(server, layout):
    """Without digests nothing is hashed, and the record says so;
    a later run with digests makes up for it.
    """
    progress = Bars()
    run(
        server,
        layout,
        only=["boxes"],
        digests={"boxes": "0" * 32},
        check_digest=False,
        progress=progress,
    )
    assert_whole(layout, ["boxes"])
    assert progress.labels == [ARCHIVES["boxes"].filename]
    name = ARCHIVES["boxes"].filename
    assert json.loads(layout.checked_path.read_text())[name]["md5"] is None
    run(server, layout, only=["boxes"], check_digest=False)
    run(server, layout, only=["boxes"])
    assert json.loads(layout.checked_path.read_text())[name]["md5"] == DIGESTS["boxes"]


def test_only_whole_files_have_final_names(server, layout):
    """Where a run breaks off, files before that point are there, those after it not,
    and the next run does the rest.
    """
    train = ARCHIVES["train"].filename
    server.faults = Faults(
        cut=0, when=lambda start: server.seen[-1].path != f"/{train}" and len(server.seen) > 5
    )
    with pytest.raises(NetworkError) as caught:
        run(server, layout)
    assert_told(caught.value, 5, ARCHIVES["validation"].filename, "run the same command again")
    assert {path.name for path in existing(layout.own_raw_dir, "*") if path.is_file()} == {
        train,
        "checked.json",
    }
    server.faults = Faults()
    assert run(server, layout).present == (train,)
    assert_whole(layout)


def test_crash_right_after_the_renaming(server, layout):
    """A file that has its name already, but is not remembered yet, is checked;
    its left-over state goes.
    """
    run(server, layout, only=["boxes"])
    layout.checked_path.unlink()
    state = layout.raw_partial_dir / f"{ARCHIVES['boxes'].filename}.part.json"
    state.write_text("{}")
    server.seen.clear()
    run(server, layout, only=["boxes"])
    assert server.seen == []
    assert_whole(layout, ["boxes"])
    assert layout.checked_path.exists()


# what is said, whatever the cause -----------------------------------------------------------------


def test_a_page_that_a_browser_saved_is_no_archive(layout):
    """The error says what happened, and calls no archive damaged."""
    path = layout.download_path(ARCHIVES["validation"])
    save(path, b"<!DOCTYPE html>\n<html>")
    with pytest.raises(InputError) as caught:
        OfficialTar(path, "validation").catalog(ENGINE, Silent())
    assert_told(caught.value, 4, "ILSVRC2012_img_val.tar is a web page or XML, not an archive")
    assert "damaged" not in str(caught.value)


def test_a_folder_of_the_system_takes_no_folders(server):
    """The error names it once."""
    with pytest.raises(PrepError) as caught:
        run(server, Layout(Path("/sys/kernel/imagenet")), only=["boxes"])
    assert_told(caught.value, 1, "cannot write /sys/kernel/imagenet")
    assert "'/sys" not in str(caught.value)


def test_status_names_the_server_that_the_download_came_from(server, layout):
    """With one archive there, or a part of one, the next command has the address of the server,
    without its query.
    """
    run(server, layout, only=["boxes"])
    assert status(layout).following.endswith(f"--base-url {server.url}")
    layout.checked_path.unlink()
    assert "--base-url" not in status(layout).following
    remote = Remote(server.url + ARCHIVES["train"].filename, 9, None, None)
    with PartialFile(layout.part_path(ARCHIVES["train"].filename), remote, has_digest=True) as part:
        part.write(0, b"123")
        part.save()
    assert status(layout).following.endswith(f"--base-url {server.url}")
