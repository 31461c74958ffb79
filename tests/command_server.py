"""Commands of ours in processes that are forked from one that has loaded all modules: a start takes
20 ms, not 300.

What runs is what ``python -m imagenet_prep`` runs, in a process, a folder and an environment of its
own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

LARGEST = 1 << 18  # bytes of a request: words, folder and environment
PATIENCE = 600  # seconds that a command may take, on a busy machine
TRACED = "traced"
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_")
"""How the names of variables begin that decide as an interpreter starts:
with other values it must start anew.
"""


def _read_at_start(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


# the tests' side ----------------------------------------------------------------------------------


class CommandServer:
    """The process that forks, and what asks it; its commands may have any environment that
    starts Python alike.
    """

    def __init__(
        self, environment: dict[str, str] | None = None, tracer: Sequence[str] = ()
    ) -> None:
        """``tracer``: the words that start the process under a tracer; its commands are then any
        arguments of Python, -m or -c, and they sync truly.
        """
        environment = environment or dict(os.environ)
        self._owner = os.getpid()
        self._environment = _read_at_start(environment)
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(PATIENCE)
        with other:
            call = [*tracer, sys.executable, __file__, str(other.fileno())]
            if tracer:
                call.append(TRACED)
            self._process = subprocess.Popen(
                call, stdin=subprocess.DEVNULL, pass_fds=[other.fileno()], env=environment
            )

    def can_run(self, environment: dict[str, str]) -> bool:
        """Whether a command in this environment is the same when it is forked."""
        return self._owner == os.getpid() and self._environment == _read_at_start(environment)

    def run(
        self,
        words: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        errors: str = "strict",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, nobody at the keyboard;
        ``errors``: what bytes become that are no text.
        """
        with (
            open(os.devnull) as nobody,
            tempfile.TemporaryFile("w+", errors=errors) as said,
            tempfile.TemporaryFile("w+", errors=errors) as told,
        ):
            streams = [nobody.fileno(), said.fileno(), told.fileno()]
            variables = {
                os.fsencode(name): os.fsencode(value) for name, value in environment.items()
            }
            request = pickle.dumps(
                ([os.fsencode(word) for word in words], os.fsencode(folder), variables)
            )
            try:
                socket.send_fds(self._channel, [request], streams)
                status = self._wait()
            except BaseException:
                self.close()  # a late answer must not be taken for the next command's
                raise
            said.seek(0)
            told.seek(0)
            return subprocess.CompletedProcess(list(words), status, said.read(), told.read())

    def _wait(self) -> int:
        process = int(self._channel.recv(LARGEST))
        try:
            return int(self._channel.recv(LARGEST))
        except BaseException:  # too late, or the test was stopped
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            raise

    def close(self) -> None:
        """Let the process end, though others that were forked meanwhile hold the channel too."""
        if self._owner == os.getpid():
            with contextlib.suppress(OSError):  # it ended already
                self._channel.shutdown(socket.SHUT_RDWR)
            self._channel.close()
            self._process.wait()


_servers: dict[frozenset[tuple[str, str]], CommandServer] = {}
"""By the variables that decide as an interpreter starts."""

_asked: Counter[frozenset[tuple[str, str]]] = Counter()
_one_at_a_time = threading.Lock()


def run_forked(
    words: Sequence[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str] | None:
    """Run a command; None where that takes an interpreter that starts anew,
    or another command is running.
    """
    if not hasattr(socket, "SOCK_SEQPACKET") or not _one_at_a_time.acquire(blocking=False):
        return None
    start = frozenset(_read_at_start(environment).items())
    try:
        server = _server_for(start, environment)
        if server is None or not server.can_run(environment):
            return None
        try:
            return server.run(words, folder, environment)
        except BaseException:
            del _servers[start]
            raise
    finally:
        _one_at_a_time.release()


def _server_for(
    start: frozenset[tuple[str, str]], environment: dict[str, str]
) -> CommandServer | None:
    """The process for such commands: of the tests' own environment from the first one on,
    of others from the second one on, when it saves more than its start takes.
    """
    _asked[start] += 1
    is_own = start == frozenset(_read_at_start(dict(os.environ)).items())
    if start not in _servers and (is_own or _asked[start] > 1):
        _servers[start] = CommandServer(environment)
    return _servers.get(start)


def close() -> None:
    """End the processes that fork, if there are any."""
    while _servers:
        _servers.popitem()[1].close()


# the side of the process that forks ---------------------------------------------------------------


def load() -> None:
    """Import all modules of the package but those that need TensorFlow or PyTorch,
    and what commands import late.
    """
    folder = Path(__file__).parents[1] / "imagenet_prep"
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        if not name.endswith("__main__") and not {"torch", "tensorflow"} & set(name.split(".")):
            importlib.import_module(name)
    for name in ("imagehash", "jinja2", "numpy.ma", "yaml"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def serve(channel: socket.socket) -> None:
    """Fork for each request and answer with the process's id, then with its status;
    returns in what was forked.
    """
    while True:
        request, streams, _, _ = socket.recv_fds(channel, LARGEST, 3)
        if not request:
            os._exit(0)  # the tests are over
        process = os.fork()
        if process == 0:
            channel.close()
            become(*pickle.loads(request), streams)
            return
        for stream in streams:
            os.close(stream)
        channel.send(str(process).encode())
        _, ended = os.waitpid(process, 0)
        channel.send(str(os.waitstatus_to_exitcode(ended)).encode())


def become(
    words: list[bytes], folder: bytes, environment: dict[bytes, bytes], streams: list[int]
) -> None:
    """Make this process what ``python -m imagenet_prep`` would be with these words,
    there, with these streams.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environb.update(environment)
    os.chdir(folder)
    sys.path[0] = os.fsdecode(folder)
    sys.argv[1:] = [os.fsdecode(word) for word in words]


def finish(status: int) -> NoReturn:
    """End as multiprocessing ends what it forked:
    taking every module apart would copy their memory first.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run_python(arguments: list[str]) -> None:
    """What Python does with these arguments: -m and a module's name, or -c and code."""
    option, program, *words = arguments
    sys.argv = [option, *words]
    if option == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    is_traced = sys.argv.pop() == TRACED if sys.argv[2:] else False
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends as the tests do
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a command: NumPy's import starts no threads
    if not is_traced:
        importlib.import_module("unsynced").install()
    load()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        run_python(sys.argv[1:] if is_traced else ["-m", "imagenet_prep", *sys.argv[1:]])
    except SystemExit as end:
        if isinstance(end.code, int):
            finish(end.code)
        raise
    finish(0)
