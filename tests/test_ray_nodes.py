"""A Ray cluster as docs/cluster.md starts one: with a token, by commands;
some machines lack something.

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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from object_server import ObjectServer, run_object_server
from running import PROGRAM
from test_ray import digests

from imagenet_prep.demo.archives import MadeSet

pytestmark = [pytest.mark.once, pytest.mark.ray, pytest.mark.timeout(900)]

TESTS = Path(__file__).resolve().parent
RAY = (sys.executable, "-m", "ray.scripts.scripts")
SMALL = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats")
PART = ("--allow-incomplete", "--train-shards", "32", "--validation-shards", "16", "--quiet")
UNSHARE = ("unshare", "-mu") if os.geteuid() == 0 else ("unshare", "-rmu")
MARK = "CLUSTER_OF_TESTS"


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
                time.sleep(0.2)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def run(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours on the machine of the head."""
        environment = {**self.environment, "RAY_ADDRESS": self.address, **variables}
        call = [*PROGRAM, *map(str, words), "--engine", "ray"]
        environment = {key: value for key, value in environment.items() if value}
        return subprocess.run(
            call,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            cwd=self.folder,
        )

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


@contextlib.contextmanager
def started(*, token: bool) -> Iterator[Started]:
    """A cluster of one machine, with authentication or without."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # its sockets need a short path
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cluster = Started(folder, token, free.getsockname()[1])
    (folder / "home").mkdir()
    if token:
        call = [*RAY, "get-auth-token", "--generate"]
        subprocess.run(call, env=cluster.environment, check=True, capture_output=True)
    try:
        cluster.start("head", "--head", f"--port={cluster.port}", "--include-dashboard=false")
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
    """Made once; ``copies`` holds a copy of the raw data that lacks its last images."""
    raw, folder = made_tiny.archives["train"].parent, tmp_path_factory.mktemp("made")
    call = [*PROGRAM, "convert", folder / "out", "--raw", raw, *PART]
    subprocess.run(call, check=True)
    shutil.copytree(raw, folder / "stale")
    archive = folder / "stale" / made_tiny.archives["train"].name
    os.truncate(archive, archive.stat().st_size // 20)
    for name in ("empty", "shared"):
        (folder / name).mkdir()
    return Made(raw, folder / "out", folder)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """An object store."""
    with run_object_server(tmp_path_factory.mktemp("objects")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(made: Made, objects: ObjectServer) -> Iterator[Started]:
    """Machines that lack folders, or what an object store takes, beside a sound one."""
    if subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("this system allows no mounts")
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        for name, value in objects.environment.items():
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
        cluster.start("stale", address, before=f"{mount}/stale {made.raw}", PYTHONPATH=others)
        yield cluster


def lacking(said: str) -> dict[str, str]:
    """The machines that a command named, and why."""
    found = re.findall(r"gets no more work: (\w+) \((?:\d+\.){3}\d+\): (.*)", said)
    return dict(found)


def test_a_machine_without_its_folders_is_named(cluster: Started, made: Made) -> None:
    """Each had a task; the others made its shards, the same bytes as one machine."""
    output = made.copies / "shared" / "out"
    ran = cluster.run("convert", output, "--raw", made.raw, *PART)
    assert ran.returncode == 0, ran.stderr
    reasons = lacking(ran.stderr)
    assert set(reasons) == {"noraw", "nooutput", "readonly", "stale"}
    assert digests(output) == made.digests


def test_a_machine_that_cant_reach_the_store_is_named(
    cluster: Started, made: Made, objects: ObjectServer
) -> None:
    """By its address, with its reason: the head alone checks the set."""
    url = objects.new_bucket()
    call = [*PROGRAM, "convert", url, "--raw", made.raw, *PART]
    subprocess.run(call, env=os.environ | objects.environment, check=True)
    ran = cluster.run("verify", url, "--quiet", **objects.environment)
    reasons = lacking(ran.stderr)
    assert set(reasons) == {"noraw", "nooutput", "readonly", "stale"}
    assert "the store refuses these credentials" in reasons["noraw"]
    assert "not set there, but here: AWS_ENDPOINT_URL" in reasons["nooutput"]
    assert "AWS_ALLOW_HTTP=true" in reasons["readonly"]
    assert "obstore" in reasons["stale"]
