"""How fast a set is made in an object store, and from one to another, beside bare loops of obstore, in one run.

    python scripts/bench_objects.py                    # 6,000 photographs, 0.7 GB, 5 rounds: minutes
    python scripts/bench_objects.py --images 2000 --repeat 3

The store is SeaweedFS on this machine, so that the network is none and the server shares the processors. The bare loops
move the same bytes with as many threads: they upload the finished shards, or download the archives and then upload the
shards. Images are looked at by their headers: to decode them would take longer than all else. Each way runs once a
round, in turn; ratios are medians of those within rounds. Processor time is that of the client, its workers included,
and not the server's. It takes what the extra `dev` installs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from object_server import run_object_server  # noqa: E402

from imagenet_prep.demo.archives import make  # noqa: E402
from imagenet_prep.engines import make_engine  # noqa: E402
from imagenet_prep.ilsvrc2012.settings import ConvertOptions  # noqa: E402
from imagenet_prep.stages.annotate import annotate  # noqa: E402
from imagenet_prep.stages.convert import convert  # noqa: E402
from imagenet_prep.storage import objects  # noqa: E402
from imagenet_prep.storage.layout import Layout  # noqa: E402
from imagenet_prep.storage.object_path import ObjectPath, place  # noqa: E402

OPTIONS = ConvertOptions(allow_incomplete=True, train_shards=8, validation_shards=2, check="header")


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        data_dir = folder / "data"
        Layout(data_dir).raw_dir.mkdir(parents=True)
        make(Layout(data_dir).raw_dir, classes=20, per_class=given.images // 20, validation=200)
        annotate(Layout(data_dir), make_engine(workers=given.workers))
        convert(Layout(data_dir), make_engine(workers=given.workers), OPTIONS)
        (folder / "server").mkdir()
        with run_object_server(folder / "server") as server:
            os.environ.update(server.environment)
            measure(data_dir, server.new_bucket(), given.repeat, given.workers)


def measure(data_dir: Path, base: str, repeat: int, workers: int) -> None:
    """Every way in turn, ``repeat`` times and once before; prints seconds, speeds, processor time and ratios."""
    shards = sorted(data_dir.glob("*-of-*"))
    archives = sorted(Layout(data_dir).raw_dir.glob("*.tar"))
    size = sum(path.stat().st_size for path in shards)
    raw = place(f"{base}/in")
    for path in (*archives, Layout(data_dir).boxes_csv):
        upload(path, below(raw, f"raw-data/{path.name}"))
    ways: dict[str, Callable[[str], object]] = {
        "bare upload": lambda to: in_threads(workers, lambda path: upload(path, below(place(to), path.name)), shards),
        "convert to the store": lambda to: convert(
            Layout(data_dir, output=place(to)), make_engine(workers=workers), OPTIONS
        ),
        "bare download and upload": lambda to: (
            in_threads(workers, lambda path: download(below(raw, f"raw-data/{path.name}")), archives),
            in_threads(workers, lambda path: upload(path, below(place(to), path.name)), shards),
        ),
        "convert from store to store": lambda to: convert(
            Layout(raw, output=place(to)), make_engine(workers=workers), OPTIONS
        ),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeat + 1):
        for name, way in ways.items():
            to = f"{base}/out"
            before, began = os.times(), time.monotonic()
            way(to)
            seconds, after = time.monotonic() - began, os.times()
            if turn:
                took[name].append(seconds)
                spent[name].append(sum(after[:4]) - sum(before[:4]))
            empty(place(to))
    print(f"{size / 1e6:,.0f} MB of shards, {len(shards)} of them, {workers} workers, {repeat} rounds")
    for name in ways:
        cpu = median(spent[name]) / size * 1e9
        print(f"{name:<28} {median(took[name]):6.2f} s {size / median(took[name]) / 1e6:7.0f} MB/s {cpu:6.2f} CPU s/GB")
    pairs = {"convert to the store": "bare upload", "convert from store to store": "bare download and upload"}
    for name, bare in pairs.items():
        ratio = median(b / a for a, b in zip(took[name], took[bare], strict=True))
        print(f"{name}: {ratio:.2f} of the speed of {bare}")


def below(folder: Path, name: str) -> ObjectPath:
    """An object in a folder of a store."""
    path = folder / name
    assert isinstance(path, ObjectPath)
    return path


def in_threads(workers: int, function: Callable[[Path], object], paths: list[Path]) -> None:
    """Do it for every path, some at a time."""
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(function, paths))


def upload(path: Path, to: ObjectPath) -> None:
    """obstore's own upload of a file."""
    import obstore

    obstore.put(objects.client(to.scheme, to.bucket), to.key, path)


def download(path: ObjectPath) -> None:
    """obstore's own download, piece by piece, kept nowhere."""
    import obstore

    for _ in obstore.get(objects.client(path.scheme, path.bucket), path.key).stream(min_chunk_size=8 << 20):
        pass


def empty(folder: Path) -> None:
    """Delete every object below a folder."""
    assert isinstance(folder, ObjectPath)
    for found in list(objects.list_below(folder)):
        objects.delete(below(folder, found.name))


if __name__ == "__main__":
    main()
