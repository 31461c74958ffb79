"""Ray: a real cluster of several nodes on this machine;
workers, nodes and drivers die, shards are the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lean_ray
import pytest
from bounded import bounded
from existing import existing
from running import command
from slow_shards import OPTIONS

from imagenet_prep import Layout, convert, make_engine
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import ray_tasks, ray_worker
from imagenet_prep.engines.ray_cluster import RayEngine, _no_cluster
from imagenet_prep.engines.worker_faults import TRIES
from imagenet_prep.errors import (
    DataProblemsError,
    InputError,
    NetworkError,
    OtherCopyError,
    UsageError,
    WorkerError,
)
from imagenet_prep.hints import install_extra
from imagenet_prep.model import Done, Failed, Portable
from imagenet_prep.version import describe_version

pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parent
SHARDS = OPTIONS.train_shards + OPTIONS.validation_shards
SMALL = {"num_cpus": 1, "object_store_memory": 80 << 20}
OTHER = "other"


class RayCluster:
    """Nodes of one CPU each, all on this machine: three, until a test loses one.

    The name of the third, in its workers' environment, is "other".
    """

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.folder = folder
        # Ray finds a free port: two clusters may be up at once, each with a token of its own
        head = {
            **SMALL,
            "include_dashboard": False,
            "node_ip_address": "127.0.0.1",
            "gcs_server_port": 0,
        }
        lean_ray.leave_out()
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self._nodes: list[Any] = []
        for name in ("", OTHER):
            self.add_node(name)

    @property
    def nodes(self) -> int:
        """How many there are now, with the head."""
        return 1 + len(self._nodes)

    def lose_node(self) -> None:
        """One of them goes, without a word."""
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)

    def add_node(self, name: str = "") -> None:
        """Another one comes; NODE in the environment of its workers is its name."""
        self._nodes.append(self._cluster.add_node(**SMALL, env_vars={"NODE": name} if name else {}))

    def workers(self) -> list[int]:
        """Processes of this cluster that work on a task of ours now."""
        found = []
        for path in existing(Path("/proc"), "[0-9]*"):
            with contextlib.suppress(OSError):
                is_ours = str(self.folder).encode() in (path / "environ").read_bytes()
                if is_ours and (path / "cmdline").read_bytes().startswith(b"ray::imagenet-prep"):
                    found.append(int(path.name))
        return found

    def shutdown(self) -> None:
        """All of them go."""
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    """One for all tests, that only its owner may use."""
    folder = Path(
        tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    )  # the paths of its sockets must be short
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("HOME", str(folder))
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv(
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0"
        )  # so that it stays on the loopback address
        patch.setenv("PYTHONPATH", path)
        cluster = RayCluster(folder)
        yield cluster
        import ray

        ray.shutdown()
        cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Local:
    """Raw data, and what the local engine made of it."""

    raw: Path
    digests: dict[str, str]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Local:
    """Made once."""
    raw = made_tiny.archives["train"].parent
    folder = tmp_path_factory.mktemp("local") / "out"
    convert(Layout(folder, raw=raw), make_engine("processes", 2), OPTIONS)
    return Local(raw, digests(folder))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a set but its journal:
    the order of its lines is that in which shards were done.
    """
    files = (
        path for path in existing(folder, "**/*") if path.is_file() and "journal" not in path.name
    )
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def start(
    local: Local, output: Path, cluster: RayCluster, seconds: float = 0.02
) -> subprocess.Popen[bytes]:
    """A driver whose workers take so long for each file that they write."""
    call = [sys.executable, "-c", "import slow_shards; slow_shards.main()"]
    return subprocess.Popen(
        [*call, str(local.raw), str(output), cluster.address, str(seconds)], stdout=subprocess.PIPE
    )


def made_by(driver: subprocess.Popen[bytes]) -> int:
    """How many shards a driver made."""
    said, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0
    assert said.startswith(b"{"), said
    return sum(json.loads(said).values())


def finished(output: Path) -> int:
    """Shards under their final names."""
    return len(list(output.glob("*-of-*")))


def wait_until(is_so: Callable[[], object], seconds: float = 120) -> None:
    """Until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


def wait_for_shards(driver: subprocess.Popen[bytes], output: Path, count: int) -> None:
    """Until so many stand."""
    wait_until(lambda: finished(output) >= count or driver.poll() is not None)
    assert driver.poll() is None, "it came to its end too soon"


# what a conversion survives -----------------------------------------------------------------------


def lose_a_worker(cluster: RayCluster) -> None:
    """Kill one that is at work: between two tasks there may be none for a moment."""
    at_work: list[int] = []
    wait_until(lambda: at_work.extend(cluster.workers()) or at_work)
    with contextlib.suppress(ProcessLookupError):
        os.kill(random.choice(at_work), signal.SIGKILL)


LOSSES = {"node": RayCluster.lose_node, "worker": lose_a_worker}


def convert_with_losses(
    local: Local, output: Path, cluster: RayCluster, moments: dict[str, int]
) -> None:
    """Lose a worker or a node after so many shards:
    the run goes on, and its bytes are those of the local engine.
    """
    driver = start(local, output, cluster)
    for loss, moment in moments.items():
        wait_for_shards(driver, output, moment)
        LOSSES[loss](cluster)
    assert made_by(driver) == SHARDS
    assert digests(output) == local.digests


def kill_the_driver(local: Local, output: Path, cluster: RayCluster, moment: int) -> None:
    """Kill it after so many shards and start another at once:
    the same bytes, and no more made again than were out.
    """
    driver = start(local, output, cluster)
    wait_for_shards(driver, output, moment)
    driver.kill()
    driver.communicate()
    stood = finished(output)
    again = made_by(start(local, output, cluster))
    assert stood <= SHARDS - again + 2 * cluster.nodes
    wait_until(lambda: not cluster.workers())  # no orphan writes any more
    assert digests(output) == local.digests


def test_losses_change_no_byte(local: Local, ray_cluster: RayCluster, tmp_path: Path) -> None:
    """A node that goes, and a worker that is killed, in mid-run: their tasks run elsewhere.

    It is the first test: later drivers start a worker less.
    """
    convert_with_losses(local, tmp_path / "out", ray_cluster, {"node": 8, "worker": 20})


def test_a_driver_killed_and_started_again(
    local: Local, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """While orphans of the first still write."""
    kill_the_driver(local, tmp_path / "out", ray_cluster, 8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", [*LOSSES, "driver"])
def test_twenty_losses_change_no_byte(
    local: Local, ray_cluster: RayCluster, tmp_path: Path, loss: str
) -> None:
    """Of each kind, at moments drawn by chance."""
    draw = random.Random(20)
    for number in range(20):
        moment, output = draw.randrange(1, 36), tmp_path / str(number)
        if loss == "driver":
            kill_the_driver(local, output, ray_cluster, moment)
        else:
            convert_with_losses(local, output, ray_cluster, {loss: moment})
        if loss == "node":
            ray_cluster.add_node()
        shutil.rmtree(output)


# the command line ---------------------------------------------------------------------------------

IN_TURN = """
import functools, json, sys
import lean_ray, slow_shards
from imagenet_prep.cli import _status, main
from imagenet_prep.shards import run
lean_ray.leave_out()
*first, last = json.loads(sys.argv[1])
for words in first:
    sys.argv[1:] = words
    if status := _status():
        sys.exit(status)
run.ShardMaker = functools.partial(slow_shards.SlowMaker, seconds=0.2)
sys.argv[1:] = last
main()
"""
"""A program that runs several commands, the last one slowly: a cluster of its own serves them all."""

CONVERT = ("--allow-incomplete", "--train-shards", "32", "--validation-shards", "16")


def test_a_cluster_of_this_machine_alone(
    local: Local, ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an address one is started, quietly; verify finds the same with it as without;
    nothing is left behind.

    A signal stops it soon, as with the local engine: 143, the command to go on, and no worker of it
    lives on.
    """
    (tmp_path / "home").mkdir()
    for name in [each for each in os.environ if each.startswith("RAY_AUTH")]:
        monkeypatch.delenv(name)
    environment = {"HOME": str(tmp_path / "home"), "IMAGENET_ACCESS_KEY": "canary-1f0c"}
    ours = ["--engine", "ray", "--workers", "2", "--quiet"]
    words = [
        ["convert", "out", "--raw", str(local.raw), *CONVERT, *ours],
        ["verify", "out", *ours],
        ["convert", "slow", "--raw", str(local.raw), *CONVERT, *ours],
    ]
    with_ray = subprocess.Popen(
        [sys.executable, "-c", IN_TURN, json.dumps(words)],
        cwd=tmp_path,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: finished(tmp_path / "slow") or with_ray.poll() is not None)
    with_ray.send_signal(signal.SIGTERM)
    found, said = with_ray.communicate(timeout=600)
    assert with_ray.returncode == 143, said
    assert "convert slow" in said
    assert "Traceback" not in said
    assert said.lstrip().startswith("terminated; ")  # nothing was said before
    wait_until(lambda: not ray_cluster.workers(), 10)
    made = digests(tmp_path / "out")
    assert made.pop("imagenet-prep/verdict.json")
    assert made == local.digests
    without = command("verify", "out", "--quiet", cwd=tmp_path)
    assert found == without.stdout
    assert not (tmp_path / "out" / "imagenet-prep" / "partial").exists()
    # a token there would turn on the authentication of the next cluster that is started here
    assert not list((tmp_path / "home").rglob("auth_token"))


# the engine ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work(Portable[int]):
    """Does with a number what its name says; ``folder`` is for marks."""

    folder: Path
    kind: str = "square"

    def meeting_point(self, task: int, token: str) -> Path | None:
        """As shards have it."""
        return Layout(self.folder).meeting_point(token)

    def undo(self, task: int) -> None:
        """Note it."""
        (self.folder / f"undone-{task}").touch()

    def __call__(self, task: int) -> Any:
        """Do it."""
        if self.kind == "square":
            if task % 5 == 3:
                raise InputError(f"number {task}", "expected another", "try again")
            if task % 5 == 4:
                raise KeyError(task)
            return task * task
        if self.kind == "die" and task == 2:
            (self.folder / f"death-{time.monotonic_ns()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "copies":
            self._meet_other_copy(task)
        if self.kind == "copies":
            return os.environ.get("NODE", "")
        if self.kind == "unreadable":
            return _Unreadable()
        return task

    def _meet_other_copy(self, task: int) -> None:
        """Fail on the machine with another copy, if the task tells; the others wait until then."""
        tells = task > LAST_SAME
        event = self.folder / ("failed" if tells else "began")
        if os.environ.get("NODE") == OTHER:
            event.touch()
            if tells:
                raise OtherCopyError(f"number {task} has other bytes here")
        wait_until(event.exists)


LAST_SAME = 40  # the last task of the kind "copies" that another copy does as well


class _Unreadable:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return int, ("in unpickling",)


@pytest.fixture
def engine(ray_cluster: RayCluster) -> RayEngine:
    """The one of this process on that cluster."""
    return RayEngine(address=ray_cluster.address)


def test_every_task_has_one_outcome(
    engine: RayEngine, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """Results, errors of ours and bugs all come back as values, each with its task."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with bounded(120):
        outcomes = {outcome.task: outcome for outcome in engine.map(Work(tmp_path), range(23))}
    assert sorted(outcomes) == list(range(23))
    assert outcomes[7] == Done(7, 49)
    assert isinstance(outcomes[8], Failed)
    assert (type(outcomes[8].error), str(outcomes[8].error)) == (
        InputError,
        "number 8\nexpected another\ntry again",
    )
    assert isinstance(outcomes[9], Failed)
    assert isinstance(outcomes[9].error, WorkerError)
    assert "KeyError(9)" in outcomes[9].error.what
    wait_until(lambda: engine.workers == ray_cluster.nodes)  # a node that was lost is seen late
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_task_that_kills_three_workers_has_failed(
    engine: RayEngine, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """Its error says so, and the other tasks are done."""
    with bounded(120):
        outcomes = {
            outcome.task: outcome for outcome in engine.map(Work(tmp_path, "die"), range(5))
        }
    failed = outcomes.pop(2)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, DataProblemsError)
    assert "every worker process that tried this task died" in str(failed.error)
    assert len(list(tmp_path.glob("death-*"))) == TRIES
    assert outcomes == {number: Done(number, number) for number in (0, 1, 3, 4)}


def test_what_cant_be_read_is_a_failure(
    engine: RayEngine, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    """An answer, a task, and a task that can't even be sent."""
    tasks: list[Any] = [_Unreadable(), threading.Lock()]
    with bounded(120):
        (answer,) = engine.map(Work(tmp_path, "unreadable"), [1])
        unsent, read = engine.map(Work(tmp_path, "task"), tasks)
    for outcome, said in ((answer, "in unpickling"), (read, "in unpickling"), (unsent, "pickle")):
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, WorkerError)
        assert said in str(outcome.error)


def test_another_version_on_a_machine_is_refused(
    engine: RayEngine, ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine and both versions are named, and nothing was done."""
    monkeypatch.setattr("imagenet_prep.__version__", "99.0")
    with (
        bounded(120),
        pytest.raises(UsageError, match=r"no machine of the Ray cluster") as refused,
    ):
        list(engine.map(Work(tmp_path, "die"), range(3)))
    versions = re.findall(r"99\.0(?: \(\w{8}(?:, changed)?\))? here", refused.value.what)
    assert len(versions) == ray_cluster.nodes
    assert list(tmp_path.glob("death-*")) == []


def test_another_folder_on_a_machine_is_refused(
    engine: RayEngine, ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here every process has another one: below /proc/self."""
    monkeypatch.setattr(ray_tasks, "PATIENCE", 0.3)
    mine = tmp_path / "mine"
    mine.mkdir()
    descriptor = os.open(mine, os.O_RDONLY)
    try:
        with bounded(120), pytest.raises(UsageError, match=r"it has (another|no) folder"):
            list(engine.map(Work(Path(f"/proc/self/fd/{descriptor}")), range(3)))
    finally:
        os.close(descriptor)
    assert list(mine.glob("**/met-*")) == []


def test_what_another_copy_did_is_undone_and_done_again(
    engine: RayEngine,
    ray_cluster: RayCluster,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A machine with another image gets no more tasks, and is named with it; the latest outcome of
    each task is of a sound machine.
    """
    caplog.set_level("INFO", "imagenet_prep.engines")
    latest, undone = {}, 0
    with bounded(120):
        for outcome in engine.map(Work(tmp_path, "copies"), range(2 * LAST_SAME)):
            assert isinstance(outcome, Done), outcome
            undone += latest.get(outcome.task) == OTHER
            latest[outcome.task] = outcome.value
    assert latest == dict.fromkeys(range(2 * LAST_SAME), "")
    assert 0 < undone <= len(list(tmp_path.glob("undone-*")))
    assert re.search(r"gets no more work: .* \((\d+\.){3}\d+\): number \d+ has other", caplog.text)
    assert "shards by machine: " in caplog.text


def test_no_secret_is_in_what_is_sent(
    local: Local,
    ray_cluster: RayCluster,
    engine: RayEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither in a task nor in what goes with them all."""
    canary = "canary-7d1e"
    for name in (
        "IMAGENET_USERNAME",
        "IMAGENET_ACCESS_KEY",
        "KAGGLE_KEY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.setenv(name, canary)
    sent: list[bytes] = []
    send = ray_tasks.Flight._send

    def watched(flight: Any, attempt: Any, node: str = "") -> Iterator[Any]:
        import ray

        sent.append(pickle.dumps((ray.get(flight._kit), flight._function.sent(attempt.task))))
        yield from send(flight, attempt, node)

    monkeypatch.setattr(ray_tasks.Flight, "_send", watched)
    convert(Layout(tmp_path, raw=local.raw), engine, OPTIONS)
    assert len(sent) == SHARDS
    assert not any(
        canary.encode() in each or os.environ["RAY_AUTH_TOKEN"].encode() in each for each in sent
    )


# without a cluster --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["ray://127.0.0.1:10001", "127.0.0.1", "nowhere:port", "http://10.0.0.1:8265", "here:²"],
)
def test_an_address_that_is_none_is_refused(address: str, tmp_path: Path) -> None:
    """Before anything is tried."""
    with pytest.raises(UsageError, match="address of"):
        list(RayEngine(address=address).map(Work(tmp_path), [1]))


def test_where_nobody_listens_an_error_says_so(tmp_path: Path) -> None:
    """At once: Ray itself would try for ever."""
    with bounded(20), pytest.raises(NetworkError, match=r"join the Ray cluster at 127\.0\.0\.1:1"):
        list(RayEngine(address="127.0.0.1:1").map(Work(tmp_path), [1]))


def test_where_ray_lacks_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra, by its name."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as refused:
        list(RayEngine().map(Work(tmp_path), [1]))
    assert refused.value.hint == install_extra("ray")


def test_an_address_is_for_ray_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One beside another engine would be passed over; RAY_ADDRESS is taken where none is given."""
    words = r"the engine 'processes' can't use the Ray cluster at 10\.0\.0\.1:6379"
    with pytest.raises(UsageError, match=words):
        make_engine("processes", 2, "10.0.0.1:6379")
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.1:10001")
    with pytest.raises(UsageError, match=r"ray://10\.0\.0\.1"):
        _ = make_engine("ray").workers


def test_a_kit_of_another_version_is_told_apart() -> None:
    """Without Ray too: what a worker says of a driver of another version,
    and that it keeps nothing of it.
    """
    kit = ray_worker.Kit("name", "99.0", b"never read", "/", "", 0.0)
    lacking, nothing = ray_worker.answer(kit, b"never read either")
    assert nothing is None
    assert "99.0 here" in lacking


@pytest.mark.parametrize(
    ("folder", "lack"),
    [
        ("here", "it does not see the new file of this machine in {}/here"),
        ("gone", "it has no folder {}/gone"),
        ("file", "it has no folder {}/file"),
    ],
)
def test_a_folder_that_is_not_shared_is_called_what_it_is(
    tmp_path: Path, folder: str, lack: str
) -> None:
    """Without Ray too: a machine that has no such folder does not have another one."""
    (tmp_path / "here").mkdir()
    (tmp_path / "file").touch()
    mark = str(tmp_path / folder / "mark")
    kit = ray_worker.Kit(mark, describe_version(), b"never read", "/", mark, 0.0)
    assert ray_worker.answer(kit, b"never read either") == (lack.format(tmp_path), None)


@pytest.mark.parametrize(
    ("address", "what", "hint"),
    [
        (None, "no Ray cluster can be started on this machine", "--engine processes"),
        ("auto", "this process can't join the Ray cluster of this machine (auto)", "RAY_ADDRESS"),
        (
            "10.0.0.1:6379",
            "this process can't join the Ray cluster at 10.0.0.1:6379",
            "RAY_ADDRESS",
        ),
    ],
)
def test_a_cluster_that_cannot_be_had_is_named_by_its_place(
    address: str | None, what: str, hint: str
) -> None:
    """Without an address a cluster is started here: RAY_ADDRESS has nothing to do with it."""
    error = _no_cluster(address, RuntimeError("no shared memory"))
    assert (error.what, error.detail) == (what, "no shared memory")
    assert hint in error.hint
    assert ("RAY_ADDRESS" in error.hint) == (address is not None)


def test_an_answer_that_ray_lost_is_no_bug() -> None:
    """Its machine may have gone, or its disk is full."""
    exceptions = pytest.importorskip("ray.exceptions")
    error = ray_tasks._failure(exceptions.OutOfDiskError("the disk is full"))
    assert type(error) is NetworkError
    assert "the disk is full" in error.detail


def test_consume_needs_an_engine_of_this_machine(tmp_path: Path) -> None:
    """Raw data goes only when its shard is durable, which is known of this machine alone."""
    done = command("convert", tmp_path, "--consume", "--engine", "ray", status=2)
    assert "--consume can't be used with --engine ray" in done.stderr
