"""A command under strace -> what it did to the files below one folder, in order:
writes, holes, renames, syncs.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from command_server import CommandServer

import imagenet_prep

Kind = Literal[
    "open",
    "write",
    "truncate",
    "punch",
    "sync",
    "synced",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
]

REQUIRED = "IMAGENET_PREP_STRACE"
"""Set to "required" where a missing strace must be a failure, and no skip."""

_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")

_NAMES = (
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
)
_SYNCS = ("fsync", "fdatasync", "syncfs", "sync")
_TRUNCATES = ("truncate", "ftruncate")
_OTHERS = ("open", "openat", "creat", "lseek", "fallocate")
_REFUSED = (
    "symlink",
    "symlinkat",
    "splice",
    "sendfile",
    "chdir",
    "fchdir",
    "mmap",
)  # not followed: seen, it raises
_TRACED = (*_WRITES, "copy_file_range", *_NAMES, *_SYNCS, *_TRUNCATES, *_OTHERS, *_REFUSED)

_LINE = re.compile(
    r"(\d+) +(?:(\w+)\((.*)\) += (-?\d+|\?)"  # process, call, arguments, result
    r"|(\w+)\((.*) <unfinished \.\.\.>$|<\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?))"
)
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")


@dataclass(frozen=True, slots=True)
class Operation:
    """One step. Paths are relative to the folder; ``path`` is "" for the folder itself.

    A sync is two steps, "sync" where it begins and "synced" where it ended: only what was done
    before the beginning is on the disk at the end. ``call`` tells which belong together, ``path``
    is None for a sync of the file system.

    Args:
        kind: what was done.
        path: to what; of a rename or link: from where.
        to: of a rename or link: to where.
        offset: of a write, or a hole.
        data: of a write.
        size: of a truncate; of a hole, from ``offset`` on.
        flags: of an open: those of "create", "truncate" that it had.
        call: the number of a sync.
    """

    kind: Kind
    path: str | None
    to: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0
    flags: frozenset[str] = frozenset()
    call: int = 0


def require_strace() -> None:
    """Skip the test, or let it fail where that is asked for,
    if there is no strace that may trace.
    """
    reason = _why_not()
    if reason and os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{REQUIRED}=required, and {reason}")
    if reason:
        pytest.skip(f"{reason}: apt-get install strace")


def _why_not() -> str:
    if not shutil.which("strace"):
        return "there is no strace"
    tried = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False
    )
    return (
        ""
        if tried.returncode == 0
        else f"strace may not trace here ({tried.stderr.strip()[-200:]})"
    )


def environment() -> dict[str, str]:
    """An environment in which this very imagenet_prep is imported, wherever a process runs."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(imagenet_prep.__file__).parent.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class _Recorder:
    """A process under strace that forks for each command, and the trace of all it forked."""

    def __init__(self) -> None:
        wanted = ",".join(f"?{name}" for name in _TRACED)
        with tempfile.NamedTemporaryFile() as trace:
            strace = f"strace -f -y -xx -s {1 << 26} --seccomp-bpf -e trace={wanted} -o".split()
            self._server = CommandServer(environment(), [*strace, trace.name])
            atexit.register(self._server.close)
            self._trace = open(trace.name, "r+", encoding="ascii")  # noqa: SIM115
            self._run(["-c", ""], Path())  # strace has the file open, which now needs no name

    def _run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return self._server.run(command, folder, environment(), errors="replace")

    def can_run(self) -> bool:
        return self._server.can_run(environment())

    def record(
        self, command: Sequence[str], folder: Path
    ) -> tuple[subprocess.CompletedProcess[str], Iterator[Operation]]:
        """How a command ended, and what it did."""
        folder = folder.resolve()
        self._trace.read()
        ended = self._run(command, folder)
        lines = self._trace.read().splitlines()
        os.truncate(self._trace.fileno(), 0)  # strace goes on writing where it was
        return ended, _Parser(folder).parse(iter(lines))


_recorders: list[_Recorder] = []


def record(command: Sequence[str], folder: Path, status: int = 0) -> list[Operation]:
    """Run a command in ``folder`` under strace; what it and its children did to that folder.

    Args:
        command: arguments of Python: ``("-m", "imagenet_prep", "convert", ".")``.
        folder: it runs there, and only what lies below it counts.
        status: the exit status that it must end with.
    """
    if not _recorders or not _recorders[-1].can_run():
        _recorders.append(_Recorder())
    ended, operations = _recorders[-1].record(command, folder)
    found = list(operations)
    assert ended.returncode == status, ended.stderr
    return found


class _Parser:
    """Reads strace's lines; keeps where each open file is written next,
    since write(2) doesn't say it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)
        self._begun: dict[
            str, tuple[str, int]
        ] = {}  # by process: the arguments so far, and the number of the sync
        self._positions: dict[
            tuple[str, str], int | None
        ] = {}  # by process and descriptor; None: it appends
        self._calls = 0

    def parse(self, lines: Iterator[str]) -> Iterator[Operation]:
        for line in lines:
            found = _LINE.match(line)
            if not found:
                if "+++" in line or "---" in line or "= ?" in line:
                    continue
                raise ValueError(f"strace says what is not understood: {line[:300]}")
            process, whole, arguments, result, begun, first, resumed, rest, late = found.groups()
            if begun:
                self._calls += 1
                self._begun[process] = first, self._calls
                yield from self._begin(begun, first, self._calls)
            elif resumed:
                first, call = self._begun.pop(process)
                yield from self._end(process, resumed, first + rest, late, call)
            else:
                self._calls += 1
                yield from self._begin(whole, arguments, self._calls)
                yield from self._end(process, whole, arguments, result, self._calls)

    def _begin(self, name: str, arguments: str, call: int) -> Iterator[Operation]:
        if name in _SYNCS:
            yield from self._sync("sync", name, arguments, call)

    def _sync(self, kind: Kind, name: str, arguments: str, call: int) -> Iterator[Operation]:
        if name in ("sync", "syncfs"):
            yield Operation(kind, None, call=call)
        elif (path := self._described(arguments)) is not None:
            yield Operation(kind, path, call=call)

    def _end(
        self, process: str, name: str, arguments: str, result: str, call: int
    ) -> Iterator[Operation]:
        if result == "?" or int(result) < 0:
            return
        if name in _SYNCS:
            yield from self._sync("synced", name, arguments, call)
        elif name in ("open", "openat", "creat"):
            yield from self._open(process, name, arguments, result)
        elif name == "lseek":
            self._seek(process, arguments, int(result))
        elif name in _WRITES or name == "copy_file_range":
            yield from self._write(process, name, arguments, int(result))
        elif name in _TRUNCATES:
            size = int(arguments.rsplit(", ", 1)[1])
            path = self._described(arguments) if name == "ftruncate" else self._named(arguments)[0]
            if path is not None:
                yield Operation("truncate", path, size=size)
        elif name == "fallocate":
            yield from self._punch(arguments)
        elif name in _NAMES:
            yield from self._change_names(name, arguments)
        elif name in _REFUSED:
            self._refuse(name, arguments)

    def _open(self, process: str, name: str, arguments: str, result: str) -> Iterator[Operation]:
        self._positions[process, result] = None if "O_APPEND" in arguments else 0
        flags = {
            flag
            for flag in ("creat", "trunc")
            if f"O_{flag.upper()}" in arguments or name == "creat"
        }
        if not flags:  # as of thousands of modules
            return
        path = self._named(arguments)[0]
        if path is not None:
            yield Operation("open", path, flags=frozenset(flags))

    def _seek(self, process: str, arguments: str, offset: int) -> None:
        key = process, arguments.partition("<")[0]
        if self._positions.get(key, 0) is not None:
            self._positions[key] = offset

    def _write(self, process: str, name: str, arguments: str, written: int) -> Iterator[Operation]:
        is_copy = name == "copy_file_range"
        source, offset_in, target = arguments.split(", ", 2) if is_copy else ("", "", arguments)
        path = self._described(target)
        if path is None:
            return
        data = _copied(source, offset_in, written) if is_copy else _strings(arguments)[:written]
        if len(data) != written:
            raise ValueError(f"{name} wrote {written} bytes, strace shows {len(data)}")
        yield Operation(
            "write", path, offset=self._place(process, name, target, written), data=data
        )

    def _place(self, process: str, name: str, target: str, written: int) -> int:
        """Where a write goes: -1 for the end of the file."""
        if name.startswith("pwrite"):
            return int(target.rsplit(", ", 1)[1])
        if name == "copy_file_range" and (given := re.search(r">, \[(\d+)\]", target)):
            return int(given[1])
        key = process, target.partition("<")[0]
        if key not in self._positions:  # opened by another thread, or by the parent
            key = next(known for known in reversed(self._positions) if known[1] == key[1])
        position = self._positions[key]
        if position is None:
            return -1
        self._positions[key] = position + written
        return position

    def _punch(self, arguments: str) -> Iterator[Operation]:
        _, mode, offset, size = arguments.rsplit(", ", 3)
        path = self._described(arguments)
        if path is not None:
            if "PUNCH_HOLE" not in mode:
                raise ValueError(f"fallocate is not followed: {arguments[:300]}")
            yield Operation("punch", path, offset=int(offset), size=int(size))

    def _change_names(self, name: str, arguments: str) -> Iterator[Operation]:
        paths = self._named(arguments)
        if name.startswith(("rename", "link")):
            if (paths[0] is None) != (paths[1] is None):
                raise ValueError(f"{name} across the folder's edge: {arguments[:300]}")
            if paths[0] is not None and paths[1] is not None:
                yield Operation(
                    "rename" if name.startswith("rename") else "link", paths[0], paths[1]
                )
        elif paths[0] is not None:
            kind: Kind = "mkdir" if name.startswith("mkdir") else "unlink"
            yield Operation(
                "rmdir" if name == "rmdir" or "AT_REMOVEDIR" in arguments else kind, paths[0]
            )

    def _refuse(self, name: str, arguments: str) -> None:
        if name == "mmap":
            if (
                "MAP_SHARED" not in arguments
                or "PROT_WRITE" not in arguments
                or self._described(arguments) is None
            ):
                return
        elif name == "chdir" and self._named(arguments) == [""]:
            return  # as a command begins
        elif name not in ("chdir", "fchdir") and not any(
            path is not None for path in (*self._named(arguments), self._described(arguments))
        ):
            return
        raise ValueError(f"{name} is not followed: {arguments[:300]}")

    def _described(self, arguments: str) -> str | None:
        """The path of the first open file named; None if it is none of ours, or was deleted."""
        found = next(
            (each for each in _DESCRIPTOR.finditer(arguments) if each[1] != "AT_FDCWD"), None
        )
        return None if found is None or found[3] else self._relative(_text(found[2]))

    def _named(self, arguments: str) -> list[str | None]:
        """Every path that is given as a string, each relative to the open folder before it,
        if there is one.
        """
        paths: list[str | None] = []
        base = self._folder
        for found in re.finditer(f"{_DESCRIPTOR.pattern}|{_STRING.pattern}", arguments):
            if found[1]:
                base = _text(found[2])
            elif found[4] is not None:
                paths.append(self._relative(os.path.normpath(Path(base, _text(found[4])))))
        return paths

    def _relative(self, path: str) -> str | None:
        if path == self._folder:
            return ""
        return path[len(self._folder) + 1 :] if path.startswith(f"{self._folder}/") else None


def _text(hexadecimal: str) -> str:
    return os.fsdecode(bytes.fromhex(hexadecimal.replace("\\x", "")))


def _copied(source: str, offset: str, length: int) -> bytes:
    """What the kernel copied from another file, which nobody may have changed since."""
    described = _DESCRIPTOR.match(source)
    if described is None or offset == "NULL":
        raise ValueError(f"a copy from where the file stands is not followed: {source}")
    with Path(_text(described[2])).open("rb") as file:
        file.seek(int(offset.lstrip("[").partition("]")[0]))
        return file.read(length)


def _strings(arguments: str) -> bytes:
    found = list(_STRING.finditer(arguments))
    if any(each[2] for each in found):
        raise ValueError("strace cut a string short")
    return b"".join(bytes.fromhex(each[1].replace("\\x", "")) for each in found)
