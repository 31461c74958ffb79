"""Both engines: one outcome a task, whatever happens to task, worker or parent."""

from __future__ import annotations

import errno
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from bounded import bounded
from existing import existing

from imagenet_prep import errors
from imagenet_prep.engines import make_engine
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.engines.worker_faults import TRIES, fault, no_worker
from imagenet_prep.errors import DataProblemsError, InputError, PrepError, UsageError, WorkerError
from imagenet_prep.model import Done, Engine, Failed

both = pytest.mark.parametrize("make", [ProcessEngine, ThreadEngine])
Make = Callable[[int], Engine]

SLEEPERS = """
import os, signal, sys, time
from pathlib import Path
from imagenet_prep.engines.processes import ProcessEngine

def sleep(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
try:
    for outcome in ProcessEngine(3).map(sleep, [sys.argv[1]] * 9):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""

LIMITED = """
import os, resource
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.errors import PrepError

list(ProcessEngine(1).map(abs, [1]))  # what it imports, another user may not be able to read
if os.geteuid() == 0:  # no limit holds for root
    os.setresuid(59873, 59873, 59873)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    list(ProcessEngine(2).map(abs, range(5)))
except PrepError as error:
    print(error)
"""


def _square(number: int) -> int:
    if number % 5 == 3:
        raise InputError(f"number {number}", "expected another", "try again")
    if number % 5 == 4:
        raise KeyError(number)
    return number * number


@both
@pytest.mark.parametrize(("workers", "count"), [(1, 23), (3, 0), (3, 23)])
def test_every_task_has_one_outcome(make: Make, workers: int, count: int) -> None:
    """Results, errors of ours and bugs all come back as values, each with its task."""
    outcomes = {outcome.task: outcome for outcome in make(workers).map(_square, range(count))}
    assert sorted(outcomes) == list(range(count))
    for number, outcome in outcomes.items():
        if number % 5 == 3:
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, InputError)
            assert str(outcome.error) == f"number {number}\nexpected another\ntry again"
        elif number % 5 == 4:
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, WorkerError)
            assert f"KeyError({number})" in outcome.error.what
            assert "_square" in outcome.error.detail  # where it happened
        else:
            assert outcome == Done(number, number * number)


ALL_ERRORS = [
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PrepError)
]


@pytest.mark.parametrize("kind", ALL_ERRORS)
def test_errors_survive_pickling(kind: type[PrepError]) -> None:
    """What, detail, hint and exit code cross from worker to parent."""
    error = pickle.loads(pickle.dumps(kind("what", "detail", "hint")))
    assert type(error) is kind
    assert (error.what, error.detail, error.hint) == ("what", "detail", "hint")
    assert error.exit_code == kind.exit_code


@both
def test_tasks_are_taken_as_they_are_needed(make: Make) -> None:
    """An endless supply of tasks is drawn on only as far as workers are free."""
    taken = []

    def endless() -> Iterator[int]:
        number = 0
        while True:
            taken.append(number)
            yield number
            number += 5

    outcomes = make(2).map(_square, endless())
    for seen in range(1, 20):
        next(outcomes)
        assert len(taken) <= seen + 3
    outcomes.close()  # type: ignore[attr-defined]


@both
def test_a_fault_in_the_supply_of_tasks_is_raised(make: Make) -> None:
    """If the tasks themselves can't be made, that is the caller's error,
    and no worker is left behind.
    """

    def broken() -> Iterator[int]:
        yield 1
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(make(2).map(_square, broken()))


def test_workers_start_no_threads_for_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in a worker is told to start none; here nothing is changed."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    (outcome,) = ProcessEngine(1).map(lambda name: os.environ.get(name), ["OPENBLAS_NUM_THREADS"])
    assert outcome == Done("OPENBLAS_NUM_THREADS", "1")
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_workers_that_wait_are_forked_once() -> None:
    """An engine that is prepared again has no more workers than its number."""
    engine = ProcessEngine(2)
    for _ in range(2):
        engine.prepare()
    assert len(engine._kept) == 2


# workers that die ---------------------------------------------------------------------------------


def _dying(folder: Path, deaths: int, how: int) -> Callable[[int], int]:
    """A function whose call for task 2 kills its worker the first ``deaths`` times."""

    def call(task: int) -> int:
        if task == 2:
            marks = len(list(folder.glob("death-*")))
            if marks < deaths:
                (folder / f"death-{marks}").touch()
                faulthandler.disable()  # pytest's own; it would print a stack
                os.kill(os.getpid(), how)
        return task

    return call


@pytest.mark.parametrize(
    ("how", "cause", "hint", "workers"),
    [
        (signal.SIGKILL, "out of memory", "free some memory, or try fewer --workers", 2),
        (signal.SIGTERM, "SIGTERM", "run the same command again", 1),
        (signal.SIGBUS, "cut short", "check the input and its disk", 1),
        (signal.SIGSEGV, "SIGSEGV: a library may have crashed", "run the same command again", 1),
    ],
)
def test_a_task_that_kills_three_workers_has_failed(
    tmp_path: Path, workers: int, how: int, cause: str, hint: str
) -> None:
    """After three deaths the task is given up, its error names the cause and what helps,
    and the other tasks are done.
    """
    outcomes = {o.task: o for o in ProcessEngine(workers).map(_dying(tmp_path, 99, how), range(6))}
    failed = outcomes.pop(2)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, DataProblemsError)
    assert cause in failed.error.detail
    assert ("library" in failed.error.detail) == (how == signal.SIGSEGV)
    assert failed.error.hint.startswith(hint)
    assert len(list(tmp_path.glob("death-*"))) == TRIES == 3
    assert all(isinstance(outcome, Done) for outcome in outcomes.values())
    assert len(outcomes) == 5


def test_a_worker_killed_in_the_middle_of_its_answer_is_replaced(tmp_path: Path) -> None:
    """An answer of which only a part arrived counts as none: the task is tried again."""

    def answer(task: int) -> bytes:
        if task == 0:
            return b""
        _wait_until((tmp_path / "go").exists, 5)
        (tmp_path / "pid").write_text(str(os.getpid()))
        return bytes(20_000_000)

    outcomes = ProcessEngine(2).map(answer, [0, 1])
    assert next(outcomes) == Done(0, b"")
    (tmp_path / "go").touch()
    _wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 5)
    pid = int((tmp_path / "pid").read_text())
    _wait_until(partial(_waits, pid), 30)  # the socket is full, and it waits for someone to read
    os.kill(pid, signal.SIGKILL)
    assert [len(outcome.value) for outcome in outcomes if isinstance(outcome, Done)] == [20_000_000]


# answers and tasks that can't be read -------------------------------------------------------------


class _Unreadable:
    """Pickles as a call that raises where it is read again."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __reduce__(
        self,
    ) -> tuple[Callable[[type[BaseException]], None], tuple[type[BaseException]]]:
        return _raise, (self.error,)


def _raise(error: type[BaseException]) -> None:
    raise error("in unpickling")


def _at_1(answer: object) -> Callable[[object], object]:
    return lambda task: answer if task == 1 else task


@pytest.mark.parametrize(
    ("workers", "function", "tasks", "said"),
    [
        (1, _at_1(_Unreadable(EOFError)), range(4), "in unpickling"),
        (2, _at_1(_Unreadable(OSError)), range(4), "in unpickling"),
        (2, _at_1(lambda: 0), range(4), "<lambda>"),
        (1, lambda task: task, [0, _Unreadable(EOFError), 2, 3], "in unpickling"),
    ],
    ids=["EOFError", "OSError", "not to be pickled", "task"],
)
def test_what_cant_be_read_or_sent_is_a_failure(
    workers: int,
    function: Callable[[object], object],
    tasks: Sequence[object],
    said: str,
    capfd: Any,
) -> None:
    """Whatever pickling raises, of an answer or a task:
    that task has failed once, the others are done, none hangs.
    """
    with bounded():
        outcomes = list(ProcessEngine(workers).map(function, tasks))
    (failed,) = (outcome for outcome in outcomes if isinstance(outcome, Failed))
    assert failed.task == tasks[1]
    assert isinstance(failed.error, WorkerError)
    assert said in str(failed.error)
    assert sorted(outcome.task for outcome in outcomes if isinstance(outcome, Done)) == [0, 2, 3]
    assert capfd.readouterr().err == ""


def _too_large(task: int) -> int:
    if task == 1:
        raise MemoryError("Unable to allocate 5 GiB")
    return task


@pytest.mark.parametrize("function", [_too_large, _at_1(_Unreadable(MemoryError))])
def test_a_worker_out_of_memory_is_no_bug(function: Callable[[object], object]) -> None:
    """In a task or in its answer: the error has what the allocator said, and what helps."""
    with bounded():
        outcomes = list(ProcessEngine(2).map(function, range(4)))
    (failed,) = (outcome for outcome in outcomes if isinstance(outcome, Failed))
    assert failed.task == 1
    assert not isinstance(failed.error, WorkerError)
    assert failed.error.what == "a worker ran out of memory"
    assert failed.error.detail in ("Unable to allocate 5 GiB", "in unpickling")
    assert "fewer --workers" in failed.error.hint


def test_a_worker_that_lives_on_without_its_pipe_is_ended(tmp_path: Path) -> None:
    """A worker that lost its end of the pipe and runs on is killed before it is waited for,
    its task tried again.
    """

    def call(task: int) -> int:
        if not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            os.closerange(3, 256)  # the pipe among them: the parent reads end of file
            time.sleep(60)
        return task

    with bounded():
        (outcome,) = ProcessEngine(1).map(call, [7])
    assert isinstance(outcome, Done)


@both
def test_what_the_system_refuses_a_worker_names_the_file(make: Make, tmp_path: Path) -> None:
    """An OSError in a worker is no bug: the error says which file, and what to do."""
    (outcome,) = make(1).map(lambda path: path.read_bytes(), [tmp_path])
    assert isinstance(outcome, Failed)
    assert type(outcome.error) is InputError
    assert str(tmp_path) in outcome.error.what
    assert outcome.error.hint


# a system that starts nothing more ----------------------------------------------------------------


def test_a_limit_of_processes_is_an_error_in_three_lines() -> None:
    """Where the system refuses a worker, that is all there is to read."""
    result = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=600
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "a worker can't be started",
        "the system says: Resource temporarily unavailable",
        (
            "raise the limit of processes (ulimit -u, or the container's), or try fewer --workers, "
            "and try again"
        ),
    ]


def test_a_limit_of_open_files_is_no_limit_of_processes() -> None:
    """Each reason of the system has its own remedy."""
    error = no_worker(OSError(errno.EMFILE, "Too many open files"))
    assert "ulimit -n" in error.hint
    assert error.detail == "the system says: Too many open files"


def test_a_library_that_a_worker_cant_import_is_no_bug() -> None:
    """The error names it, without a traceback."""
    error = fault(ImportError("libgomp.so.1: cannot open shared object file"))
    assert isinstance(error, UsageError)
    assert error.detail == "libgomp.so.1: cannot open shared object file"


# an end before the end ----------------------------------------------------------------------------


def _alive(pid: int) -> bool:
    """Whether a process still runs; a zombie that nobody has buried yet doesn't."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def _waits(pid: int) -> bool:
    """Whether a process waits for something, ten times in a row:
    one that waits for the processor is running.
    """
    for _ in range(10):
        time.sleep(0.01)
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            return False
    return True


def _wait_until(condition: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def _begun(folder: Path, count: int) -> list[int]:
    """The ids of ``count`` workers, once all of them are at work."""
    _wait_until(lambda: len(list(folder.iterdir())) >= count, 15)
    return [int(path.name) for path in existing(folder, "*")]


def test_closing_the_iterator_stops_the_workers(tmp_path: Path) -> None:
    """Whoever stops early waits for no task, and no worker is left."""

    def call(task: int) -> int:
        if task:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(60)
        else:
            time.sleep(0.2)
        return task

    outcomes = ProcessEngine(3).map(call, [1, 2, 0])
    assert next(outcomes) == Done(0, 0)
    pids = _begun(tmp_path, 2)
    begin = time.monotonic()
    outcomes.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begin < 30
    assert not any(map(_alive, pids))


def test_no_descriptor_is_left_open() -> None:
    """Ten pools, closed early or not, leave no more open files than there were."""
    list(ProcessEngine(2).map(_square, range(3)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        list(ProcessEngine(2).map(_square, range(3)))
        outcomes = ProcessEngine(2).map(_square, range(5))
        next(outcomes)
        outcomes.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def sleepers(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process of its own group with three busy workers, and their ids."""
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPERS, tmp_path],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        pids = _begun(tmp_path, 3)
        yield process, pids
        for pid in (process.pid, *pids):
            if _alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_killed_parent_leaves_no_worker(
    sleepers: tuple[subprocess.Popen[str], list[int]],
) -> None:
    """Two seconds after kill -9 of the parent no worker is alive, though all were busy."""
    parent, workers = sleepers
    assert all(map(_alive, workers))
    parent.kill()
    parent.wait()
    _wait_until(lambda: not any(map(_alive, workers)), 2)


def test_ctrl_c_ends_parent_and_workers_quietly(
    sleepers: tuple[subprocess.Popen[str], list[int]],
) -> None:
    """SIGINT to the whole group, as a terminal sends it:
    the parent decides, and no worker prints a traceback.
    """
    parent, workers = sleepers
    os.killpg(parent.pid, signal.SIGINT)
    _, printed = parent.communicate(timeout=600)
    assert parent.returncode == 130
    assert printed == ""
    assert not any(map(_alive, workers))


# choice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "workers"), [("steam", 1), ("processes", 0), ("threads", -2)])
def test_wrong_engines_are_usage_errors(name: str, workers: int) -> None:
    """Unknown names and no workers are refused."""
    with pytest.raises(UsageError):
        make_engine(name, workers)


def test_a_worker_killed_while_idle_is_replaced() -> None:
    """Death between two tasks costs no outcome either."""
    outcomes = []
    for outcome in ProcessEngine(1).map(lambda task: (task, os.getpid()), range(4)):
        outcomes.append(outcome.task)
        assert isinstance(outcome, Done)
        os.kill(outcome.value[1], signal.SIGKILL)
        _wait_until(lambda pid=outcome.value[1]: not _alive(pid), 5)
    assert outcomes == [0, 1, 2, 3]


@both
def test_a_thread_that_cant_be_started_is_an_error(
    make: Make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither engine prints a traceback: one error names the limit and what to do."""
    refused = Mock(
        side_effect=RuntimeError("can't start new thread")
    )  # what CPython says where pthread_create failed
    monkeypatch.setattr(threading.Thread, "start", refused)
    with bounded(), pytest.raises(PrepError, match="a worker can't be started") as caught:
        list(make(2).map(_square, range(5)))
    assert not isinstance(caught.value, (WorkerError, DataProblemsError))
    assert "ulimit -u" in caught.value.hint
    assert capfd.readouterr().err == ""
