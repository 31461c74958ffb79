"""Times a download, digest included, against curl in one interleaved run, with one and several connections.

    python scripts/bench_download.py                  # 2 GB on loopback, 3 rounds: minutes
    python scripts/bench_download.py --size 500 --repeat 5 --folder /mnt/disk

The server is a process of its own (tests/paced_server.py: sendfile). curl writes the file and hashes nothing. Our
engine writes it, computes its SHA-256 or MD5, whichever is faster here, and syncs it. curl, tee, sha256sum and sync
show the cost of the same work with a system's own tools. Each round has its own order; ratios are medians of the
rounds' ratios.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from paced_server import paced_server  # noqa: E402 -- it is in tests/
from syscalls import environment  # noqa: E402

MEGABYTE = 1_000_000
OURS = """
import sys
from pathlib import Path
from imagenet_prep.fetch.partial import finish
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.model import Silent

url, part, connections, *digests = sys.argv[1:]
options = {"digests": dict(zip(digests[::2], digests[1::2]))}
assert fetch(Session(url, 60), url + "a.tar", Path(part), Manner(connections=int(connections)), **options).is_right
finish(Path(part), Path(part).with_name("a.tar"))
"""


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2000, help="MB on loopback")
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    given = parser.parse_args()
    if not shutil.which("curl"):
        sys.exit("curl is needed to compare with")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        beside_curl(Path(folder), given.size, given.repeat)


def beside_curl(folder: Path, megabytes: int, rounds: int) -> None:
    """Time curl, then our engine with 1 and 4 connections, in turn."""
    digests = make_file(folder / "served", megabytes)
    with paced_server(folder / "served") as url:
        ways: dict[str, Callable[[], None]] = {
            "curl": lambda: curl(url, folder / "came"),
            "curl, sync": lambda: shell(f"curl -sfo a.tar {url}a.tar && sync a.tar", folder / "came"),
            "curl, sha256sum, sync": lambda: shell(
                f"curl -sf {url}a.tar | tee a.tar | sha256sum && sync a.tar", folder / "came"
            ),
            "ours, 1 connection": lambda: ours(url, folder / "came", 1, digests),
            "ours, 4 connections": lambda: ours(url, folder / "came", 4, digests),
            "ours, 4, no digest": lambda: ours(url, folder / "came", 4, []),
        }
        table(f"{megabytes:,} MB on loopback", ways, folder / "came", rounds)


def make_file(folder: Path, megabytes: int) -> list[str]:
    """Make a file of random bytes to serve; returns its digests, each after its name."""
    folder.mkdir(exist_ok=True)
    md5, sha256 = hashlib.md5(), hashlib.sha256()
    with (folder / "a.tar").open("wb") as file, open("/dev/urandom", "rb") as noise:
        for _ in range(megabytes):
            content = noise.read(MEGABYTE)
            md5.update(content)
            sha256.update(content)
            file.write(content)
    return ["md5", md5.hexdigest(), "sha256", sha256.hexdigest()]


def curl(url: str, folder: Path) -> None:
    """Fetch with curl."""
    subprocess.run(["curl", "--silent", "--fail", "--output", folder / "a.tar", f"{url}a.tar"], check=True)


def shell(line: str, folder: Path) -> None:
    """Run a line of a shell in a folder."""
    subprocess.run(["sh", "-c", line], cwd=folder, stdout=subprocess.DEVNULL, check=True)


def ours(url: str, folder: Path, connections: int, digests: list[str]) -> None:
    """Fetch with our engine."""
    command = [sys.executable, "-c", OURS, url, str(folder / "a.part"), str(connections), *digests]
    subprocess.run(command, env=environment(), check=True)


def table(heading: str, ways: dict[str, Callable[[], None]], folder: Path, rounds: int) -> None:
    """Run each way once per round; print wall and processor seconds, and throughput relative to the first way."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    processor: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        # in random order: on some machines an earlier way changes the cost of getting pages of memory
        for name, way in random.sample(list(ways.items()), len(ways)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            began, used = time.perf_counter(), processor_seconds()
            way()
            seconds[name].append(time.perf_counter() - began)
            processor[name].append(processor_seconds() - used)
    first = next(iter(ways))
    print(f"{heading}; rounds: {rounds}")
    print(f"{'':24}{'median s':>10}{'fastest':>10}{'slowest':>10}{'CPU s':>10}{f'throughput / {first}':>34}")
    for name, took in seconds.items():
        ratio = median(one / other for one, other in zip(seconds[first], took, strict=True))
        print(
            f"{name:24}{median(took):10.2f}{min(took):10.2f}{max(took):10.2f}{median(processor[name]):10.2f}{ratio:34.2f}"
        )


def processor_seconds() -> float:
    """The processor time of the programs run so far, in user and system mode."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
