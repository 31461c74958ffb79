"""The files of the package whose functions a command calls, in all of its processes.

    python scripts/called_files.py                       # convert of the set that demo makes
    python scripts/called_files.py verify DATA_DIR       # any other command

Bodies of modules and classes, and what they call at import, don't count. The command must not use
Ray, whose workers are started anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = f"{ROOT / 'imagenet_prep'}/"


class CallLog:
    """A file with a line for each function that was called; workers inherit it.

    A process appends a line at once: workers end without any clean-up.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._seen: set[Any] = set()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._seen.clear)

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Write the function of a frame, the first time that a process calls it."""
        code = frame.f_code
        if event != "call" or code in self._seen or not code.co_filename.startswith(PACKAGE):
            return
        if not code.co_flags & CO_NEWLOCALS or _is_at_import(frame):
            return
        self._seen.add(code)
        process = "command" if os.getpid() == self._pid else "worker"
        line = f"{process} {code.co_filename.removeprefix(PACKAGE)} {code.co_name}\n"
        os.write(self._descriptor, line.encode())

    def functions(self, *processes: str) -> dict[str, list[str]]:
        """The names of the functions by file that these processes called: "command", "worker"."""
        functions: dict[str, set[str]] = {}
        for line in self._path.read_text().splitlines():
            process, file_name, function = line.split(" ", 2)
            if process in processes:
                functions.setdefault(file_name, set()).add(function)
        return {file_name: sorted(functions[file_name]) for file_name in sorted(functions)}


def _is_at_import(frame: FrameType) -> bool:
    """Whether the body of a module, which is being imported, called a function."""
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_name == "<module>" and caller.f_code.co_filename != __file__:
            return True
        caller = caller.f_back
    return False


def main(arguments: Sequence[str]) -> None:
    """Run a command, or convert the demo's set, and print the files that it calls into."""
    sys.path.insert(0, str(ROOT))
    from imagenet_prep.cli import main as run_command

    with tempfile.TemporaryDirectory() as folder:
        command = list(arguments)
        if not command:
            data_dir = _make_raw_data(Path(folder))
            command = ["convert", "--allow-incomplete", str(data_dir)]
        log = CallLog(Path(folder) / "calls")
        with _profiled(log), contextlib.suppress(SystemExit):
            sys.argv[1:] = command
            run_command()
        functions = log.functions("command", "worker")
        called_by_workers = log.functions("worker")
    rooms = Counter(file_name.rpartition("/")[0] for file_name in functions)
    for file_name, names in functions.items():
        mark = "*" if file_name in called_by_workers else " "
        print(f"{mark} {file_name:45} {', '.join(names)}")
    print(*(f"{room or '.'} {count}" for room, count in sorted(rooms.items())), sep=", ")
    print(f"{len(functions)} files, {len(called_by_workers)} of them (*) in workers")


def _make_raw_data(folder: Path) -> Path:
    """The archives and boxes of the demo's set, without its shards."""
    data_dir = folder / "demo"
    command = [sys.executable, "-m", "imagenet_prep", "demo", "--quiet", str(data_dir)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    for path in data_dir.iterdir():
        if path.name == "imagenet-prep":
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    return data_dir


@contextlib.contextmanager
def _profiled(log: CallLog) -> Iterator[None]:
    """Note the calls of this thread, of those that it starts, and of forked processes."""
    threading.setprofile(log.note)
    sys.setprofile(log.note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] # None is documented


if __name__ == "__main__":
    main(sys.argv[1:])
