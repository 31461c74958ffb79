"""Ray clusters as docs/cluster.md starts them, by commands: one requires a token, and some of its
machines lack something; one requires none.

The machines are on this one, each with a host name, mounts and variables of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lean_ray
import pytest
from existing import existing
from object_server import ObjectServer
from running import PROGRAM
from test_ray import digests, finished, wait_until

from imagenet_prep.demo.archives import MadeSet

pytestmark = [pytest.mark.once, pytest.mark.ray, pytest.mark.timeout(900)]

TESTS = Path(__file__).resolve().parent
RAY = (sys.executable, "-m", "ray.scripts.scripts")
SMALL = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats")
PART = ("--allow-incomplete", "--train-shards", "32", "--validation-shards", "16")
SHARDS = 48
UNSHARE = ("unshare", "-mu") if os.geteuid() == 0 else ("unshare", "-rmu")
TRIED = "hostname tried && mount --bind /tmp /tmp"
MARK = "CLUSTER_OF_TESTS"
SOON = "from imagenet_prep.engines import ray_machines, ray_tasks; from imagenet_prep.cli import main; "
SOON += "ray_machines._HEAD, ray_tasks.PATIENCE = 4.0, 4.0; "
"""The beginning of a program that waits less for a lost head, and for machines that see no file."""

QUANTIZATION = rb"(\xff\xdb\x00\x43\x00.{25})."  # a byte of the first table of a JPEG


@dataclass
class Started:
    """A cluster by ``ray start``: its folder, address, and the variables of its machines."""

    folder: Path
    token: bool
    port: int = 0
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What docs say, and what keeps it apart from other clusters here."""
        names = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        own = {
            "HOME": str(self.folder / "home"),
            "RAY_TMPDIR": str(self.folder),
            MARK: str(self.port),
            **lean_ray.HOOK,
        }
        path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
        return {**names, **own, "PYTHONPATH": path}

    @property
    def address(self) -> str:
        """As in RAY_ADDRESS."""
        return f"127.0.0.1:{self.port}"

    def start(self, name: str, *options: str, before: str = "true", **variables: str) -> None:
        """Start a machine of this name after some mounts."""
        words = " ".join([*RAY, "start", "--block", *SMALL, *options])
        if options[0] != "--head":
            variables |= {"RAY_AUTH_MODE": "token"} if self.token else {}
        log = (self.folder / f"{name}.log").open("wb")
        call = [*UNSHARE, "sh", "-c", f"hostname {name} && {before} && exec {words}"]
        environment = {**self.environment, **variables}
        environment = {key: value for key, value in environment.items() if value}
        for _ in range(3):  # on a busy machine Ray gives up a start
            node = subprocess.Popen(call, env=environment, stdout=log, stderr=log, cwd=self.folder)
            self.nodes.append(node)
            while node.poll() is None:
                if "Ray runtime started" in (self.folder / f"{name}.log").read_text():
                    return
                time.sleep(0.1)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def begin(
        self, *words: object, program: Sequence[str] = PROGRAM, **variables: str
    ) -> subprocess.Popen[str]:
        """Begin a command of ours on the machine of the head."""
        environment = {**self.environment, "RAY_ADDRESS": self.address, **variables}
        return subprocess.Popen(
            [*program, *map(str, words), "--engine", "ray"],
            env={key: value for key, value in environment.items() if value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def run(
        self, *words: object, status: int = 0, program: Sequence[str] = PROGRAM, **variables: str
    ) -> str:
        """What a command of ours says on standard error; it must end with this status."""
        with self.begin(*words, program=program, **variables) as driver:
            said = driver.communicate(timeout=400)[1]
        assert driver.returncode == status, said
        assert "Traceback" not in said
        return said

    def processes(self) -> list[int]:
        """All of its processes."""
        mark, found = f"{MARK}={self.port}".encode(), []
        for path in list(Path("/proc").glob("[0-9]*")):
            with contextlib.suppress(OSError):
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
        return found

    def stop(self) -> None:
        """Kill them."""
        until = time.monotonic() + 20
        while (left := self.processes()) and time.monotonic() < until:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for node in self.nodes:
                node.poll()
            time.sleep(0.1)

    def start_head(self, name: str = "head") -> None:
        """Start its first machine, at its port."""
        self.start(name, "--head", f"--port={self.port}", "--include-dashboard=false")


@contextlib.contextmanager
def started(*, token: bool) -> Iterator[Started]:
    """A cluster of one machine, with authentication or without."""
    if subprocess.run([*UNSHARE, "sh", "-c", TRIED], check=False).returncode:
        pytest.skip(
            "this system permits no namespaces: machines need names and mounts of their own"
        )
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # its sockets need a short path
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cluster = Started(folder, token, free.getsockname()[1])
    (folder / "home").mkdir()
    if token:
        call = [*RAY, "get-auth-token", "--generate"]
        subprocess.run(call, env=cluster.environment, check=True, capture_output=True)
    try:
        cluster.start_head()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Made:
    """Raw data, and what one machine made of it."""

    raw: Path
    output: Path
    copies: Path

    @property
    def digests(self) -> dict[str, str]:
        """Of every file of the set but its journal."""
        return digests(self.output)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Made:
    """Made once; ``copies`` holds a copy of the raw data with another byte in each image."""
    raw, folder = made_tiny.archives["train"].parent, tmp_path_factory.mktemp("made")
    call = [*PROGRAM, "convert", folder / "out", "--raw", raw, *PART, "--quiet"]
    subprocess.run(call, check=True)
    shutil.copytree(raw, folder / "changed")
    for path in existing(folder / "changed", "ILSVRC2012_img_*.tar"):
        status = path.stat()
        another = re.sub(QUANTIZATION, rb"\1c", path.read_bytes(), flags=re.DOTALL)
        path.write_bytes(another)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for name in ("empty", "shared"):
        (folder / name).mkdir()
    return Made(raw, folder / "out", folder)


def did(said: str) -> dict[str, int]:
    """The number of shards that each machine did, by the command's last line about it."""
    lines = re.findall(r"^shards by machine: (.*)", said, re.MULTILINE)
    return {name: int(count) for name, count in re.findall(r"(\w+) \([0-9.]+\) (\d+)", lines[-1])}


def lacking(said: str) -> dict[str, str]:
    """The machines that a command named, and why."""
    return dict(re.findall(r"gets no more work: (\w+) \((?:\d+\.){3}\d+\): (.*)", said))


# machines that lack something, in a cluster with a token ------------------------------------------


@pytest.fixture(scope="module")
def cluster(made: Made, object_server: ObjectServer) -> Iterator[Started]:
    """Machines that lack folders, or what an object store takes, beside a sound one."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        for name, value in object_server.environment.items():
            patch.setenv(name, value)
        cluster = stack.enter_context(started(token=True))
        (cluster.folder / "without").mkdir()
        lines = "raise ImportError('no obstore here')"
        (cluster.folder / "without" / "obstore.py").write_text(lines)
        here, address = made.copies, f"--address={cluster.address}"
        read_only = f"mount --bind {here}/shared {here}/shared"
        read_only += f" && mount -o remount,bind,ro {here}/shared"
        others = f"{cluster.folder}/without:{cluster.environment['PYTHONPATH']}"
        mount, bad = f"mount --bind {here}", "AWS_SECRET_ACCESS_KEY"
        cluster.start("noraw", address, before=f"{mount}/empty {made.raw}", **{bad: "another"})
        cluster.start(
            "nooutput", address, before=f"{mount}/empty {here}/shared", AWS_ENDPOINT_URL=""
        )
        cluster.start("readonly", address, before=read_only, AWS_ALLOW_HTTP="")
        cluster.start("changed", address, before=f"{mount}/changed {made.raw}", PYTHONPATH=others)
        yield cluster


BOTH = """
import sys
from imagenet_prep.cli import _status
words = sys.argv[1:]
while "--then" in words:
    end = words.index("--then")
    sys.argv[1:], words = [*words[:end], "--engine", "ray"], words[end + 1 :]
    if status := _status():
        sys.exit(status)
    print("--then", file=sys.stderr)
"""
"""A program that runs several commands, each ended by a word: workers started once do them all."""


@pytest.fixture(scope="module")
def said(cluster: Started, made: Made, object_server: ObjectServer) -> dict[str, str]:
    """What two commands say: one that writes to a folder, and one that reads from a store."""
    url = object_server.new_bucket()
    call = [*PROGRAM, "convert", url, "--raw", made.raw, *PART, "--quiet"]
    subprocess.run(call, env=os.environ | object_server.environment, check=True)
    convert = ("convert", made.copies / "shared" / "out", "--raw", made.raw, *PART, "--then")
    program = (*python(SOON + BOTH), *map(str, convert), "verify", url, "--then")
    texts = cluster.run(program=program, **object_server.environment).split("--then\n")
    return dict(zip(("convert", "verify"), texts, strict=False))


def test_a_machine_without_its_folders_is_named(said: dict[str, str], made: Made) -> None:
    """Each had a task; the sound one made all shards, the same bytes as one machine."""
    reasons = lacking(said["convert"])
    assert set(reasons) == {"noraw", "nooutput", "readonly", "changed"}
    assert "it lacks " in reasons["noraw"]
    assert "it has no folder " in reasons["nooutput"]
    assert "it can't write to " in reasons["readonly"]
    assert re.search(r"\.JPEG has other bytes than when", reasons["changed"])
    assert did(said["convert"]) == {"head": SHARDS}
    assert digests(made.copies / "shared" / "out") == made.digests


def test_a_machine_that_cant_reach_the_store_is_named(said: dict[str, str]) -> None:
    """By its address, with its reason: the head alone checks the set."""
    reasons = lacking(said["verify"])
    assert set(reasons) == {"noraw", "nooutput", "readonly", "changed"}
    assert "the store refuses these credentials" in reasons["noraw"]
    assert "not set there, but here: AWS_ENDPOINT_URL" in reasons["nooutput"]
    assert "AWS_ALLOW_HTTP=true" in reasons["readonly"]
    assert "obstore" in reasons["changed"]
    assert did(said["verify"]) == {"head": SHARDS}


REFUSED = {
    "no token": ({"HOME": "/nowhere"}, 6, "the authentication with the Ray cluster"),
    "another token": ({"RAY_AUTH_TOKEN": "ab" * 32}, 6, "the authentication with the Ray cluster"),
    "authentication without a token": (
        {"HOME": "/nowhere", "RAY_AUTH_MODE": "token"},
        6,
        "the authentication with the Ray cluster",
    ),
    "another address": (
        {"RAY_ADDRESS": "127.0.0.1:1"},
        5,
        "can't join the Ray cluster at 127.0.0.1:1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cluster_refuses_with_a_reason(cluster: Started, made: Made, case: str) -> None:
    """In one line, without a traceback or Ray's own lines."""
    variables, status, reason = REFUSED[case]
    said = cluster.run("verify", made.output, "--quiet", status=status, **variables)
    assert said.startswith("error: ")
    assert reason in said
    assert len(said.splitlines()) <= 3


# one machine, in a cluster without a token --------------------------------------------------------


@pytest.fixture(scope="module")
def alone(made: Made) -> Iterator[Started]:
    """A cluster of one CPU."""
    with started(token=False) as cluster:
        yield cluster


SUBMIT = """
import json, os, ray, subprocess, sys
ray.init(log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=1)
def hold():
    import os, time
    open("held", "w").close()
    while not os.path.exists("release"):
        time.sleep(0.1)
@ray.remote(num_cpus=0)
def supervisor(address, call):
    job = json.dumps({"metadata": {"job_submission_id": "raysubmit_1"}})
    variables = {"RAY_ADDRESS": address, "RAY_JOB_CONFIG_JSON_ENV_VAR": job}
    with open("said", "wb") as said:
        return subprocess.run(call, env=os.environ | variables, stderr=said).returncode
held = hold.remote()
while not os.path.exists("held"):
    ray.wait([held], timeout=0.1)
call = [sys.executable, "-m", "imagenet_prep", *sys.argv[1:]]
sys.exit(ray.get(supervisor.remote(os.environ["RAY_ADDRESS"], call)))
"""
"""Holds the CPU until there is a file "release", and starts a command as a job meanwhile."""

OTHER_VERSION = "import ray; ray.__version__ = '2.9.0'; from imagenet_prep.cli import main; main()"


def python(program: str) -> Sequence[str]:
    """The command of a program."""
    return (sys.executable, "-c", program)


def test_a_job_waits_for_a_free_cpu_and_says_so(alone: Started, made: Made) -> None:
    """A job is a driver in the cluster; it goes on when the CPU of other work is free.

    A task starts it with the variables that Ray's jobs have; the dashboard itself isn't here.
    """
    output, told = alone.folder / "job", alone.folder / "said"
    waiting = b"waiting for a free CPU of the Ray cluster: other work has all 1"
    words = ("convert", output, "--raw", made.raw, *PART)
    with alone.begin(*words, program=python(SUBMIT)) as job:
        try:
            wait_until(
                lambda: (told.exists() and waiting in told.read_bytes()) or job.poll() is not None
            )
            assert job.poll() is None
            assert finished(output) == 0
        finally:
            (alone.folder / "release").touch()
        job.communicate(timeout=400)
    said = told.read_text()
    assert job.returncode == 0, said
    assert "Traceback" not in said
    assert did(said) == {"head": SHARDS}
    assert digests(output) == made.digests


@pytest.mark.parametrize(
    ("variables", "program", "reason"),
    [
        (
            {"HOME": "/nowhere", "RAY_AUTH_MODE": "token"},
            PROGRAM,
            "the authentication with the Ray cluster",
        ),
        ({}, python(OTHER_VERSION), "has another version of Ray or Python"),
    ],
)
def test_a_driver_that_cant_join_says_why(
    alone: Started, made: Made, variables: dict[str, str], program: Sequence[str], reason: str
) -> None:
    """Without a token that its own variables require, or with another Ray."""
    words = ("verify", made.output, "--quiet")
    status = 6 if variables else 2
    said = alone.run(*words, status=status, program=program, **variables)
    assert said.startswith("error: ")
    assert reason in said


def test_a_lost_head_ends_a_command_which_can_be_run_again(alone: Started, made: Made) -> None:
    """With status 5; the cluster is started again, and the rest is made: the same bytes."""
    output = alone.folder / "lost"
    slow = SOON + "ray_machines._HEAD, ray_tasks._END = 1.0, 0.5; "
    slow += "import functools, slow_shards; from imagenet_prep.shards import run; "
    slow += "run.ShardMaker = functools.partial(slow_shards.SlowMaker, seconds=0.3); main()"
    words = ("convert", output, "--raw", made.raw, *PART)
    driver = alone.begin(*words, program=python(slow))
    wait_until(lambda: finished(output) > 3 or driver.poll() is not None)
    for process in {*alone.processes()} - {driver.pid}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    said = driver.communicate(timeout=200)[1]
    assert driver.returncode == 5, said
    assert "the head of the Ray cluster at " in said
    assert "Traceback" not in said
    stood = finished(output)
    assert 0 < stood < SHARDS
    alone.start_head("again")
    said = alone.run(*words)
    made_again = did(said).pop("again")
    assert SHARDS - stood <= made_again < SHARDS  # a shard may stand whose answer was lost
    assert digests(output) == made.digests
