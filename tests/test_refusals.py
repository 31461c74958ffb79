"""What the system refuses: an error that names the file and says what to do,
and never a bug of ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from fault_server import fault_server
from made_sets import ENGINE, flip
from made_tars import save
from running import error_lines
from test_cli import restricted

from imagenet_prep import ConvertOptions, Layout, PrepError, convert
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines.worker_faults import fault
from imagenet_prep.errors import InputError, SpaceError, WriteError
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.refusals import as_error

GONE = (
    "ESTALE",
    "ENXIO",
    "ENODEV",
    "ENOTCONN",
    "ESHUTDOWN",
    "ETIMEDOUT",
    "ECONNABORTED",
    "ECONNRESET",
)
GONE += ("EHOSTDOWN", "EHOSTUNREACH", "ENETUNREACH", "EREMOTEIO")
STORAGE = ("EIO", "EROFS", "EFBIG", *GONE)
LIMITS = ("EMFILE", "ENFILE", "ENOMEM")
INPUT = (
    "ELOOP",
    "ENAMETOOLONG",
    "ENOTDIR",
    "EISDIR",
    "ENOENT",
    "EEXIST",
    "ENOTEMPTY",
    "EXDEV",
    "ETXTBSY",
    "EINVAL",
)
KINDS = {
    **dict.fromkeys(STORAGE, WriteError),
    **dict.fromkeys(LIMITS, PrepError),
    **dict.fromkeys(INPUT, InputError),
    **dict.fromkeys(("ENOSPC", "EDQUOT"), SpaceError),
    **dict.fromkeys(("EACCES", "EPERM"), WriteError),  # of a file that could be read
}


def refusal(name: str, *paths: str | bytes | int) -> OSError:
    """The exception that Python makes of an error number, its name given."""
    number = getattr(errno, name)
    first, second = (*paths, None, None)[:2]
    return OSError(number, os.strerror(number), first, None, second)


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_every_refusal_that_names_a_file_is_three_lines(name: str, kind: type[PrepError]) -> None:
    """The file, the system's reason and a remedy, whatever the error number:
    also as bytes that are not UTF-8.
    """
    for path in ("/a b", b"/a b\xff"):
        error = as_error(refusal(name, path))
        assert type(error) is kind
        assert os.fsdecode(path) in error.what
        assert error.hint
        assert len(str(error).splitlines()) == 3
        if kind is not SpaceError:
            assert error.detail == os.strerror(getattr(errno, name))


def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    """Not only the path below it, which the user may never have written."""
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match="can't be read") as caught:
        read_plain(tmp_path / "a" / "b" / "c.json")
    assert f"expected a folder, but {tmp_path / 'a'} is a file" in caught.value.hint


def test_a_pipe_in_place_of_a_folder_is_not_called_a_file(tmp_path: Path) -> None:
    """The remedy says only that it is no folder."""
    os.mkfifo(tmp_path / "a")
    with pytest.raises(InputError) as caught:
        read_plain(tmp_path / "a" / "b.json")
    assert caught.value.hint.startswith("expected a folder, found something else: ")


def test_a_quota_is_not_called_space(tmp_path: Path) -> None:
    """The disk may have space; this user may not use it."""
    for path in (tmp_path / "a", None):
        error = as_error(refusal("EDQUOT", *([str(path)] if path else [])))
        assert isinstance(error, SpaceError)
        assert "quota" in error.lines[0]


def test_the_folder_that_a_move_meets_is_named(tmp_path: Path) -> None:
    """A partial file can't take the place of a folder: the folder is at fault."""
    (tmp_path / "partial").touch()
    (tmp_path / "final").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        (tmp_path / "partial").replace(tmp_path / "final")
    error = as_error(caught.value)
    assert error.lines[:2] == [f"{tmp_path / 'final'} can't be used", "Is a directory"]


def test_no_two_remedies_of_one_kind_are_mixed_up() -> None:
    """Each remedy speaks of what is wrong."""
    words = {
        "EROFS": "writable",
        "EFBIG": "ulimit -f",
        "EIO": "dmesg",
        "EMFILE": "ulimit -n",
        "ELOOP": "itself",
    }
    words |= dict.fromkeys(GONE, "mount it again")
    words |= {
        "ENAMETOOLONG": "shorter name",
        "ENOTDIR": "expected a folder",
        "EISDIR": "expected a file",
        "EACCES": "permissions",
        "EPERM": "permissions",
        "EDQUOT": "larger quota",
        "EOPNOTSUPP": "another file system",
    }
    for name, word in words.items():
        error = as_error(refusal(name, "/f"))
        assert word in error.hint


@pytest.mark.parametrize("name", [*STORAGE, *LIMITS, "EACCES", "ENOSPC"])
@pytest.mark.parametrize("paths", [(), (3,)])
def test_what_can_be_no_bug_needs_no_name(name: str, paths: tuple[int, ...]) -> None:
    """fstat, read and write of an open file name none, or its number:
    a failing disk is no bug all the same.
    """
    error = as_error(refusal(name, *paths))
    assert type(error) is (InputError if name == "EACCES" else KINDS[name])
    assert "a file" in error.what


@pytest.mark.parametrize("name", ["EBADF", "EINVAL", "EPIPE", "EADDRINUSE", "ENOENT"])
def test_a_bug_stays_a_bug(name: str) -> None:
    """A number that speaks of our own mistake, and no file: the traceback is shown."""
    assert as_error(refusal(name)) is None
    assert as_error(OSError("of our own making")) is None


@pytest.mark.parametrize("name", GONE)
def test_a_worker_whose_storage_went_away_has_no_bug(name: str) -> None:
    """What a worker meets when a mount goes away,
    at a file or in the midst of reading one, is told as that.
    """
    for paths in ((), ("/mounted/a.tar",)):
        error = fault(refusal(name, *paths))
        assert type(error) is WriteError
        assert "mount it again" in error.hint


def test_the_outermost_closed_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the file below it, whose own rights nobody can see."""
    monkeypatch.setattr(os, "access", lambda path, mode: tmp_path not in (path, *path.parents))
    error = as_error(refusal("EACCES", str(tmp_path / "a" / "b")))
    assert error.what == f"{tmp_path} can't be read"


@pytest.fixture
def closed(tmp_path: Path, layout: Layout) -> Iterator[Path]:
    """A folder in which nobody but root may write:
    a finished set with raw data, and one that ranks made.
    """
    shutil.copytree(layout.data_dir, tmp_path / "ranked")
    Layout(tmp_path / "ranked").manifest_path.unlink()
    Layout(tmp_path / "ranked").rank_path("rank-x").touch()
    flip(layout.shard_path("train-00003-of-00008"), 100)
    folders = [path for path in (tmp_path, *tmp_path.rglob("*")) if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    yield tmp_path
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.parametrize(
    "words",
    [
        "convert data --raw RAW --allow-incomplete",
        "convert new --raw RAW --allow-incomplete",
        "convert new --raw RAW --allow-incomplete --rank 0/2",
        "untar data --raw RAW",
        "annotate data --raw RAW --validation-boxes",
        "download data --only boxes --no-digest --base-url http://127.0.0.1:9/",
        "merge ranked",
        "repair data",
        "report data",
        "export webdataset data new",
        "export tfds data",
        "run data --raw RAW --allow-incomplete",
        "demo new",
    ],
)
def test_a_folder_without_the_right_to_write_is_status_1(
    words: str, closed: Path, made_tiny: MadeSet
) -> None:
    """As the documentation says: what can't be written is named in three lines,
    the status is that of the storage.
    """
    raw = str(made_tiny.archives["train"].parent)
    account = {"IMAGENET_USERNAME": "user", "IMAGENET_ACCESS_KEY": "key"}
    ended = restricted(*words.replace("RAW", raw).split(), cwd=closed, **account)
    assert ended.returncode == 1, ended.stderr
    error = error_lines(ended)
    assert len(error) == 3
    assert "Permission denied" in error[1] or "permission to write" in error[1]


@pytest.mark.parametrize(
    "words", ["convert new --raw RAW --allow-incomplete", "annotate new --raw RAW", "verify data"]
)
def test_a_file_without_the_right_to_read_is_status_4(
    words: str, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """What can't be read is an input that is missing, and named."""
    raw = Path(shutil.copytree(made_tiny.archives["train"].parent, tmp_path / "raw"))
    manifest = tmp_path / "data/imagenet-prep/manifest.json"
    save(manifest, "{}")
    for path in (*raw.iterdir(), manifest):
        path.chmod(0)
    (tmp_path / "new").mkdir()
    ended = restricted(*words.replace("RAW", "raw").split(), cwd=tmp_path)
    assert ended.returncode == 4, ended.stderr
    assert "can't be read" in ended.stderr


@contextlib.contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """No file of this process may become larger, for as long as the block runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_download_that_grows_too_large_is_named(tmp_path: Path) -> None:
    """A file system, or ulimit -f, that takes no file of this size: not an unnamed file."""
    save(tmp_path / "served" / "a.tar", bytes(300_000))
    part = tmp_path / "a.tar.part"
    with (
        fault_server(tmp_path / "served") as server,
        _largest_file(100_000),
        pytest.raises(WriteError) as caught,
    ):
        fetch(Session(server.url, 5), server.url + "a.tar", part, Manner(connections=3))
    assert str(part) in caught.value.what
    assert "ulimit -f" in caught.value.hint


@pytest.mark.parametrize("order", ["shuffled", "sequential"])
def test_a_shard_that_grows_too_large_is_named(
    tmp_path: Path, made_tiny: MadeSet, order: Literal["shuffled", "sequential"]
) -> None:
    """The same of a shard, and of the bundle that its images wait in."""
    options = ConvertOptions(
        train_shards=1, validation_shards=1, allow_incomplete=True, read_order=order
    )
    layout = Layout(tmp_path, raw=made_tiny.archives["train"].parent)
    with _largest_file(60_000), pytest.raises(WriteError) as caught:
        convert(layout, ENGINE, options)
    assert caught.value.what.startswith(f"cannot write {tmp_path}")
    assert "-00000-of-00001" in caught.value.what
    assert "ulimit -f" in caught.value.hint
