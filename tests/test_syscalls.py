"""The recorder of system calls: what it says was done gives the very files that were made."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from power_cut import record_run
from syscalls import Operation, record, require_strace


@pytest.fixture(autouse=True)
def _strace() -> None:
    require_strace()


def recorded(tmp_path: Path, script: str) -> Sequence[Operation]:
    """What a Python script did in a new folder; applied to an empty one, it must give the same files."""
    return record_run(["-c", textwrap.dedent(script)], tmp_path / "recorded").operations


def steps(operations: Sequence[Operation]) -> list[str]:
    """Each operation in a few words."""
    return [" ".join(filter(None, (each.kind, "." if each.path == "" else each.path, each.to))) for each in operations]


def test_every_call_is_followed(tmp_path: Path) -> None:
    """Writes at every kind of place, renames, links, folders, what is cut and what is removed."""
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded/source").write_bytes(bytes(range(256)))
    operations = recorded(
        tmp_path,
        """
        import os, pathlib, shutil
        with open("a", "wb", buffering=0) as file:
            file.write(b"one"); file.write(bytes(range(256)))
            file.seek(1); file.write(b"N")
            os.pwrite(file.fileno(), b"far", 300)
            os.writev(file.fileno(), [b"x" * 5, b"", b'"quoted, with = ) 1" <b>'])
            os.fsync(file.fileno())
        with open("a", "ab", buffering=0) as file:
            file.write(b"appended")
        os.truncate("a", 310)
        os.mkdir("folder")
        os.rename("a", "folder/a \\N{SNOWMAN}")
        os.link("folder/a \\N{SNOWMAN}", "second")
        source, target = os.open("../source", os.O_RDONLY), os.open("copy", os.O_WRONLY | os.O_CREAT)
        os.copy_file_range(source, target, 100, 20, 0)
        os.sendfile(target, source, 7, 50)
        os.close(target)
        pathlib.Path("gone").write_bytes(b"gone")
        os.remove("gone")
        os.makedirs("deep/deeper")
        pathlib.Path("deep/deeper/file").write_bytes(b"1")
        shutil.rmtree("deep")
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        os.rename("second", "third", src_dir_fd=here, dst_dir_fd=here)
        os.fsync(here)
        """,
    )
    assert {each.kind for each in operations} >= {"open", "write", "truncate", "rename", "link", "unlink", "rmdir"}
    assert steps(operations)[-3:] == ["rename second third", "sync .", "synced ."]


def test_children_and_threads_count(tmp_path: Path) -> None:
    """A file opened by one and written by another, and two that write files of the same number at the same time."""
    recorded(
        tmp_path,
        """
        import os, threading
        with open("by-child", "wb", buffering=0) as file:
            file.write(b"parent ")
            if os.fork() == 0:
                own = os.open("of-child", os.O_CREAT | os.O_WRONLY)
                file.write(b"child "); os.write(own, b"own")
                os._exit(0)
            os.wait()
        own = os.open("of-parent", os.O_CREAT | os.O_WRONLY)
        thread = threading.Thread(target=lambda: os.write(own, b"thread"))
        thread.start(); thread.join()
        """,
    )


@pytest.mark.parametrize(
    "script",
    [
        "import mmap, os; f = open('a', 'w+b'); f.truncate(9); mmap.mmap(f.fileno(), 9)[:1] = b'x'",
        "import os; os.symlink('a', 'b')",
        "import os; os.mkdir('a'); os.chdir('a')",
        "import os; os.rename('inside', '../outside')",
    ],
)
def test_what_is_not_followed_is_refused(tmp_path: Path, script: str) -> None:
    """Rather than give a wrong list, the recorder stops."""
    (tmp_path / "inside").touch()
    with pytest.raises(ValueError, match=r"is not followed|across the folder's edge"):
        record(["-c", script], tmp_path, tmp_path.parent / f"{tmp_path.name}-trace")
