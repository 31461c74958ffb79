"""kill -9 of a transfer at random moments: how many bytes the next run fetches again,
and what it ends with.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from made_tars import save
from paced_server import paced_server, sent_by
from syscalls import environment

from imagenet_prep.fetch.partial import kept_bytes
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import inspect
from imagenet_prep.fetch.session import Session

pytestmark = pytest.mark.once

MEGABYTE = 1_000_000
PROBE = 1024  # bytes that a transfer asks for first

CHILD = textwrap.dedent("""
    import sys
    from pathlib import Path
    from imagenet_prep.fetch.session import Session
    from imagenet_prep.fetch.transfer import Manner, fetch

    url, part, connections, md5 = sys.argv[1:]
    options = {"digests": {"md5": md5} if md5 else {}}
    fetched = fetch(Session(url, 60), url + "a.tar", Path(part), Manner(connections=int(connections)), **options)
    sys.exit(0 if fetched.is_right else 4)
""")


def start(url: str, part: Path, connections: int, md5: str = "") -> subprocess.Popen[bytes]:
    """Fetch a.tar in a process of its own."""
    command = [sys.executable, "-c", CHILD, url, str(part), str(connections), md5]
    return subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)


def fetched_again(
    folder: Path, size: int, kills: int, *, speed: float, connections: int, md5: bool
) -> list[int]:
    """Kill transfers of a file of ``size`` bytes, each at a random moment; the bytes that each kill
    cost.

    Counted is what the server sent: bytes of the file that a run sent beyond those that the next
    one did not ask for.
    """
    content = random.Random(size).randbytes(size)
    save(folder / "served" / "a.tar", content)
    digest = hashlib.md5(content).hexdigest() if md5 else ""
    part, draw, costs = folder / "partial" / "a.part", random.Random(kills), []
    with paced_server(folder / "served", speed / connections) as url:
        remote = inspect(Session(url, 60), url + "a.tar", Pace())
        while len(costs) < kills:
            kept, sent = kept_bytes(part, remote, has_digest=md5), sent_by(url)
            child = start(url, part, connections, digest)
            while sent_by(url) <= sent + PROBE and child.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0, (size - kept) / speed))
            was_running = child.poll() is None
            child.kill()
            child.communicate()
            if was_running:
                came = sent_by(url) - sent - PROBE
                costs.append(came - (kept_bytes(part, remote, has_digest=md5) - kept))
            if kept_bytes(part, remote, has_digest=md5) > size - size // 10:
                finish(url, part, connections, digest, content)
                shutil.rmtree(part.parent)
        finish(url, part, connections, digest, content)
    return costs


def finish(url: str, part: Path, connections: int, digest: str, content: bytes) -> None:
    """Run a transfer to its end; the file is the server's."""
    child = start(url, part, connections, digest)
    assert (child.communicate()[1], child.returncode) == (b"", 0)
    assert part.read_bytes() == content


def test_a_kill_costs_little(tmp_path: Path) -> None:
    """Three kills of 200 MB at 150 MB/s: at most 64 MiB are fetched again,
    and the bytes come out right.
    """
    costs = fetched_again(
        tmp_path, 200 * MEGABYTE, 3, speed=150 * MEGABYTE, connections=4, md5=True
    )
    assert max(costs) < 64 << 20


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path: Path) -> None:
    """200 kills of 200 MB over 4 connections at 100 MB/s: 64 MiB at worst."""
    kills = int(os.environ.get("KILLS", "200"))
    costs = fetched_again(
        tmp_path, 200 * MEGABYTE, kills, speed=100 * MEGABYTE, connections=4, md5=True
    )
    mean, worst = sum(costs) / len(costs) / 2**20, max(costs) / 2**20
    sys.stdout.write(
        f"{len(costs)} kills: fetched again {mean:.2f} MiB a kill on average, "
        f"{worst:.2f} at worst\n"
    )
    assert worst <= 64
