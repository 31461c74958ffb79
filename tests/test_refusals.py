"""What the system refuses: an error that names the file and says what to do, and never a bug of ours."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from imagenet_prep.errors import InputError, PrepError, SpaceError, WriteError
from imagenet_prep.storage.refusals import as_error

STORAGE = ("EIO", "EROFS", "EFBIG", "ESTALE", "ENXIO", "ENODEV", "ETIMEDOUT")
LIMITS = ("EMFILE", "ENFILE", "ENOMEM", "ENOLCK")
INPUT = ("ELOOP", "ENAMETOOLONG", "ENOTDIR", "EISDIR", "ENOENT", "EEXIST", "ENOTEMPTY", "EXDEV", "ETXTBSY", "EINVAL")
KINDS = {
    **dict.fromkeys(STORAGE, WriteError),
    **dict.fromkeys(LIMITS, PrepError),
    **dict.fromkeys(INPUT, InputError),
    **dict.fromkeys(("ENOSPC", "EDQUOT"), SpaceError),
    **dict.fromkeys(("EACCES", "EPERM"), InputError),
}


def refusal(name: str, *paths: str | bytes | int) -> OSError:
    """The exception that Python makes of an error number, its name given."""
    number = getattr(errno, name)
    first, second = (*paths, None, None)[:2]
    return OSError(number, os.strerror(number), first, None, second)


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_every_refusal_that_names_a_file_is_three_lines(name: str, kind: type[PrepError]) -> None:
    """The file, the system's reason and a remedy, whatever the error number: also as bytes that are not UTF-8."""
    for path in ("/a b", b"/a b\xff"):
        error = as_error(refusal(name, path))
        assert type(error) is kind
        assert os.fsdecode(path) in error.what
        assert error.hint
        assert len(str(error).splitlines()) == 3
        if kind is not SpaceError:
            assert error.detail == os.strerror(getattr(errno, name))


def test_no_two_remedies_of_one_kind_are_mixed_up() -> None:
    """Each remedy speaks of what is wrong."""
    words = {"EROFS": "writable", "EFBIG": "ulimit -f", "EIO": "dmesg", "EMFILE": "ulimit -n", "ELOOP": "itself"}
    words |= {"ENAMETOOLONG": "shorter path", "ENOTDIR": "expected a folder", "EISDIR": "expected a file"}
    for name, word in words.items():
        error = as_error(refusal(name, "/f"))
        assert error is not None
        assert word in error.hint


def test_a_move_that_fails_names_both_places() -> None:
    """Where two files are meant, both are said."""
    error = as_error(refusal("EXDEV", "/from", "/to"))
    assert error is not None
    assert error.what == "/from can't be used"
    assert error.detail.endswith(" (to /to)")


@pytest.mark.parametrize("name", [*STORAGE, *LIMITS, "EACCES", "ENOSPC"])
@pytest.mark.parametrize("paths", [(), (3,)])
def test_what_can_be_no_bug_needs_no_name(name: str, paths: tuple[int, ...]) -> None:
    """fstat, read and write of an open file name none, or its number: a failing disk is no bug all the same."""
    error = as_error(refusal(name, *paths))
    assert error is not None
    assert type(error) is KINDS[name]
    assert "a file" in error.what


@pytest.mark.parametrize("name", ["EBADF", "EINVAL", "EPIPE", "ENOTCONN", "ENOENT"])
def test_a_bug_stays_a_bug(name: str) -> None:
    """A number that speaks of our own mistake, and no file: the traceback is shown."""
    assert as_error(refusal(name)) is None
    assert as_error(OSError("of our own making")) is None


def test_the_outermost_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the file below it, whose own rights nobody can see."""
    monkeypatch.setattr(os, "access", lambda path, mode: tmp_path not in (path, *path.parents))
    error = as_error(refusal("EACCES", str(tmp_path / "a" / "b")))
    assert error is not None
    assert error.what == f"{tmp_path} can't be read"
