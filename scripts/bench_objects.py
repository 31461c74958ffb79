"""Times making a set in an object store, and from one to another, against bare loops of obstore in one run.

    python scripts/bench_objects.py                    # 6,000 photographs, 0.6 GB, 5 rounds: minutes
    python scripts/bench_objects.py --images 12000 --repeat 3 --folder /data/bench     # kept there for the next time

The store is SeaweedFS on this machine with default settings: there is no network, and the server shares the
processors. The archives were uploaded in parts of 8 MiB, as convert and `aws s3 cp` send them.

The bare loops move the same bytes with as many threads: they upload the finished shards, or download the archives and
then upload the shards. They read the archives from front to back. Conversions run from the command line, start
included; the row of a set of 40 images shows the fixed cost. Images are checked by their headers: decoding would
outweigh everything else. Each way runs once per round, in turn; ratios are medians of the rounds' ratios. Processor
time is the client's, its workers included, and not the server's. The script needs the extra `dev`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from object_server import run_object_server  # noqa: E402

from imagenet_prep.demo.archives import make  # noqa: E402
from imagenet_prep.engines.processes import ProcessEngine  # noqa: E402
from imagenet_prep.stages.annotate import annotate  # noqa: E402
from imagenet_prep.storage.layout import Layout  # noqa: E402
from imagenet_prep.storage.location import AnyPath, Location, locate  # noqa: E402
from imagenet_prep.storage.object_store import PART, ObjectStore, client  # noqa: E402

T = TypeVar("T")

OPTIONS = ("--allow-incomplete", "--train-shards=8", "--validation-shards=2", "--check=header", "--quiet")


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        data_dir, small = folder / f"images-{given.images}", folder / "images-40"
        make_set(data_dir, given.images, given.workers)
        make_set(small, 40, given.workers)
        (Path(name) / "server").mkdir()
        with run_object_server(Path(name) / "server") as server:
            os.environ.update(server.environment)
            measure(data_dir, small, server.new_bucket(), given.repeat, given.workers)


def make_set(data_dir: Path, images: int, workers: int) -> None:
    """Archives of photographs in 20 classes, and their shards here; existing ones are kept."""
    if not Layout(data_dir).raw_dir.is_dir():
        Layout(data_dir).raw_dir.mkdir(parents=True)
        make(Layout(data_dir).raw_dir, classes=20, per_class=images // 20, validation=max(20, images // 60))
        annotate(Layout(data_dir), ProcessEngine(workers))
    command_line(data_dir, workers)


def command_line(data_dir: Path | Location, workers: int, *options: str) -> None:
    """Convert in a process of its own."""
    command = [sys.executable, "-m", "imagenet_prep", "convert", str(data_dir), *OPTIONS, f"--workers={workers}"]
    subprocess.run([*command, *options], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def take_turns(
    ways: dict[str, Callable[[], object]], repeat: int, clear: Callable[[], None]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds and processor seconds of each way, ``repeat`` times in turn and once before."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeat + 1):
        for name, way in ways.items():
            before, began = os.times(), time.monotonic()
            way()
            seconds, after = time.monotonic() - began, os.times()
            if turn:
                took[name].append(seconds)
                spent[name].append(sum(after[:4]) - sum(before[:4]))
            clear()
    return took, spent


def measure(data_dir: Path, small: Path, base: str, repeat: int, workers: int) -> None:
    """Time every way in turn, ``repeat`` times after one warm-up; print seconds, speeds, processor time and ratios."""
    shards = sorted(data_dir.glob("*-of-*"))
    archives = sorted(Layout(data_dir).raw_dir.glob("*.tar"))
    size = sum(path.stat().st_size for path in shards)
    raw, to = locate(f"{base}/in"), locate(f"{base}/out")
    for path in (*archives, Layout(data_dir).boxes_csv):
        upload(path, below(raw, f"raw-data/{path.name}"))
    stored = [below(raw, f"raw-data/{path.name}") for path in archives]

    def upload_all() -> None:
        in_threads(workers, lambda path: upload(path, below(to, path.name)), shards)

    def download_and_upload() -> None:
        in_threads(workers, download, stored)
        upload_all()

    ways: dict[str, Callable[[], object]] = {
        "bare upload": upload_all,
        "convert to the store": lambda: command_line(data_dir, workers, f"--output={to}"),
        "convert 40 images to it": lambda: command_line(small, workers, f"--output={to}"),
        "bare download and upload": download_and_upload,
        "convert from store to store": lambda: command_line(raw, workers, f"--output={to}"),
    }
    took, spent = take_turns(ways, repeat, lambda: empty(to))
    print(f"{size / 1e6:,.0f} MB of shards, {len(shards)} of them, {workers} workers, {repeat} rounds")
    for name in ways:
        cpu = median(spent[name])
        rate = (
            f"{size / median(took[name]) / 1e6:7.0f} MB/s {cpu / size * 1e9:6.2f} CPU s/GB" if "40" not in name else ""
        )
        print(f"{name:<31} {median(took[name]):6.2f} s {cpu:6.2f} CPU s {rate}")
    for name, bare in (
        ("convert to the store", "bare upload"),
        ("convert from store to store", "bare download and upload"),
    ):
        ratio = median(b / a for a, b in zip(took[name], took[bare], strict=True))
        print(f"{name}: {ratio:.2f} of the speed of {bare}")


def below(folder: AnyPath, name: str) -> Location:
    """An object in a folder of a store."""
    path = folder / name
    assert isinstance(path, Location)
    return path


def in_threads(workers: int, function: Callable[[T], object], given: Iterable[T]) -> None:
    """Call the function on every item, some at a time; results are dropped."""
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda each: function(each) and None, given):
            pass


def client_of(path: Location) -> Any:
    """obstore's own client."""
    assert isinstance(path.store, ObjectStore)
    return client(path.store.scheme, path.store.bucket)


def upload(path: Path, to: Location) -> None:
    """obstore's own upload of a file, in parts of the size that convert sends."""
    import obstore

    obstore.put(client_of(to), to.key, path, chunk_size=PART)


def download(path: Location) -> None:
    """obstore's own download, piece by piece, discarded."""
    import obstore

    for _ in obstore.get(client_of(path), path.key).stream(min_chunk_size=8 << 20):
        pass


def empty(folder: AnyPath) -> None:
    """Delete every object below a folder."""
    assert isinstance(folder, Location)
    assert isinstance(folder.store, ObjectStore)
    for found in list(folder.store.list_below(folder.key)):
        below(folder, found.name).unlink()


if __name__ == "__main__":
    main()
