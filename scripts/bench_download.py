"""Times a download, digest included, against curl in one interleaved run, with one and several
connections.

    python scripts/bench_download.py                  # 2 GB on loopback, 3 rounds: minutes
    python scripts/bench_download.py --size 500 --repeat 5 --folder /mnt/disk

The server is a process of its own (tests/paced_server.py: sendfile). curl writes the file and
hashes nothing. Our engine writes it, computes its SHA-256 or MD5, whichever is faster here, and
syncs it. curl, tee, sha256sum and sync show the cost of the same work with a system's own tools.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from turns import ROOT, compare, options, run

sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from paced_server import paced_server  # noqa: E402 -- it is in tests/

MEGABYTE = 1_000_000
OURS = """
import sys
from pathlib import Path
from imagenet_prep.fetch.partial import finish
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch

url, part, connections, *digests = sys.argv[1:]
options = {"digests": dict(zip(digests[::2], digests[1::2]))}
assert fetch(Session(url, 60), url + "a.tar", Path(part), Manner(connections=int(connections)), **options).is_right
finish(Path(part), Path(part).with_name("a.tar"))
"""


def main() -> None:
    """Measure, and print a table."""
    given = options(__doc__, size=2000, repeat=3).parse_args()
    if not shutil.which("curl"):
        sys.exit("curl is needed to compare with")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        beside_curl(Path(folder) / "served", Path(folder) / "came", given.size, given.repeat)


def beside_curl(served: Path, came: Path, megabytes: int, rounds: int) -> None:
    """Time curl, then our engine with 1 and 4 connections, in turn."""
    digests = make_file(served, megabytes)

    def clear() -> None:
        shutil.rmtree(came, ignore_errors=True)
        came.mkdir()

    with paced_server(served) as url:
        shell = functools.partial(
            subprocess.run, shell=True, cwd=came, stdout=subprocess.DEVNULL, check=True
        )
        ours = functools.partial(run, sys.executable, "-c", OURS, url, came / "a.part")
        ways = {
            "curl": lambda: shell(f"curl -sfo a.tar {url}a.tar"),
            "curl, sync": lambda: shell(f"curl -sfo a.tar {url}a.tar && sync a.tar"),
            "curl, sha256sum, sync": lambda: shell(
                f"curl -sf {url}a.tar | tee a.tar | sha256sum && sync a.tar"
            ),
            "ours, 1 connection": lambda: ours(1, *digests),
            "ours, 4 connections": lambda: ours(4, *digests),
            "ours, 4, no digest": lambda: ours(4),
        }
        compare(f"{megabytes:,} MB on loopback", ways, megabytes, rounds, clear)


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


if __name__ == "__main__":
    main()
