"""Tests ``--consume`` on a disk too small for raw data and shards: it finishes, also when killed
again and again.

    python scripts/half_disk.py [--kills 50] [--megabytes 2000] [--free 400]

Requires root: it mounts a file system that holds the raw data and ``--free`` megabytes more. The
set has the photographs of the demo. Exit status 1: shards differ, or the peak was more than 1.1
times their size.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_data import make_images

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

from running import prep  # noqa: E402 -- it is in tests/

from imagenet_prep.fetch.target import Target  # noqa: E402
from imagenet_prep.model import Silent  # noqa: E402
from imagenet_prep.storage.layout import Layout  # noqa: E402

PHOTOGRAPH = 100_000  # bytes, the mean of those of the demo
CONVERT = ("--allow-incomplete", "--workers", "2", "--quiet")


def main() -> int:
    """Make the set, convert it in three ways, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--free", type=int, default=400)
    parser.add_argument(
        "--dir",
        type=Path,
        help="a folder with room for three times that (default: a temporary one)",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir, prefix="half-disk-") as folder:
        plain = Path(folder, "plain")
        make_images(given.megabytes * 10**6 // PHOTOGRAPH, plain)
        raw = sum(path.stat().st_size for path in sorted((plain / "raw-data").glob("*.tar")))
        assert convert(plain).wait() == 0
        expected = digests(plain)
        with small_disk(Path(folder), raw + given.free * 10**6) as disk:
            fill(disk, plain)
            began, peak = used(disk), watch(convert(disk, "--consume"), disk)
            is_right = verified(disk) and digests(disk) == expected
            shards = sum(path.stat().st_size for path in sorted(disk.glob("*-of-*")))
        kills, rounds = 0, 0
        while kills < given.kills:
            with small_disk(Path(folder), raw + given.free * 10**6) as disk:
                fill(disk, plain)
                kills += kill_again_and_again(disk, given.kills - kills, random.Random(kills))
                rounds += 1
                is_right = is_right and digests(disk) == expected and verified(disk)
    found: dict[str, object] = {
        "raw": raw,
        "shards": shards,
        "disk": raw + given.free * 10**6,
        "begin": began,
    }
    found |= {
        "peak": peak,
        "peak_by_shards": peak / shards,
        "kills": kills,
        "rounds": rounds,
        "is_right": is_right,
    }
    print(json.dumps(found))
    return 0 if is_right and peak <= 1.1 * shards else 1


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """An ext4 file system of exactly this size, in a file."""
    image, mounted = folder / "disk", folder / "mounted"
    mounted.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", mounted], check=True)
        image.unlink()


def fill(disk: Path, plain: Path) -> None:
    """Copy the archives there, and let download check their digests."""
    layout = Layout(disk)
    layout.raw_dir.mkdir()
    for path in sorted((plain / "raw-data").glob("*.tar")):
        copy = Path(shutil.copy2(path, layout.raw_dir))
        with copy.open("rb") as file:
            digest = hashlib.md5(file.read()).hexdigest()
        Target(layout, copy.name, None, {"md5": digest}).check_present(Silent())


def convert(data_dir: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a conversion, in a process group of its own."""
    command = [sys.executable, "-m", "imagenet_prep", "convert", str(data_dir), *CONVERT, *more]
    return subprocess.Popen(command, start_new_session=True)


def used(disk: Path) -> int:
    """Bytes in use."""
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def watch(process: subprocess.Popen[bytes], disk: Path) -> int:
    """The most bytes in use while a process runs, measured every 20 ms."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, used(disk))
        time.sleep(0.02)
    assert process.returncode == 0
    return peak


def kill_again_and_again(disk: Path, count: int, draw: random.Random) -> int:
    """Kill the conversion up to ``count`` times, then let it finish;
    returns the number of kills.
    """
    for kills in range(count):
        process = convert(disk, "--consume")
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert process.wait(draw.uniform(0.5, 2.5)) == 0
            return kills
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert convert(disk, "--consume").wait() == 0
    return count


def verified(disk: Path) -> bool:
    """Whether verify finds no fault."""
    return prep("verify", disk, "--workers", 2, "--quiet").returncode == 0


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each shard."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*-of-*"))
    }


if __name__ == "__main__":
    sys.exit(main())
