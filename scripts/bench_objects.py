"""Times making a set in an object store, and from one to another, against bare loops of obstore in
one run.

    python scripts/bench_objects.py                    # 6,000 photographs, 0.6 GB, 5 rounds: minutes
    python scripts/bench_objects.py --images 12000 --repeat 3 --folder /data/bench     # kept there for the next time

The store is SeaweedFS on this machine with default settings: there is no network, and the server
shares the processors. The archives were uploaded in parts of 8 MiB, as convert and `aws s3 cp` send
them.

The bare loops move the same bytes with as many threads: they upload the finished shards, or
download the archives and then upload the shards. They read the archives from front to back.
Conversions run from the command line, start included. Images are checked by their headers: decoding
would outweigh everything else. Processor time is the client's, its workers included, and not the
server's. The script needs the extra `dev`.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from turns import ROOT, compare, options, run

sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from object_server import run_object_server  # noqa: E402

from imagenet_prep.demo.archives import make  # noqa: E402
from imagenet_prep.engines.processes import ProcessEngine  # noqa: E402
from imagenet_prep.stages.annotate import annotate  # noqa: E402
from imagenet_prep.storage.layout import Layout  # noqa: E402
from imagenet_prep.storage.location import AnyPath, Location, locate  # noqa: E402
from imagenet_prep.storage.object_store import PART, ObjectStore, client  # noqa: E402

T = TypeVar("T")

OPTIONS = (
    "--allow-incomplete",
    "--train-shards=8",
    "--validation-shards=2",
    "--check=header",
    "--quiet",
)


def main() -> None:
    """Run the rounds and print a table."""
    given = options(__doc__, images=6000, repeat=5, workers=2).parse_args()
    with tempfile.TemporaryDirectory() as name:
        data_dir = (given.folder or Path(name)) / f"images-{given.images}"
        make_set(data_dir, given.images, given.workers)
        (Path(name) / "server").mkdir()
        with run_object_server(Path(name) / "server") as server:
            os.environ.update(server.environment)
            measure(data_dir, server.new_bucket(), given.repeat, given.workers)


def make_set(data_dir: Path, images: int, workers: int) -> None:
    """Archives of photographs in 20 classes, and their shards here; existing ones are kept."""
    if not Layout(data_dir).raw_dir.is_dir():
        Layout(data_dir).raw_dir.mkdir(parents=True)
        make(
            Layout(data_dir).raw_dir,
            classes=20,
            per_class=images // 20,
            validation=max(20, images // 60),
        )
        annotate(Layout(data_dir), ProcessEngine(workers))
    command_line(data_dir, workers)


def command_line(data_dir: Path | Location, workers: int, *more: str) -> None:
    """Convert in a process of its own."""
    run(
        sys.executable,
        "-m",
        "imagenet_prep",
        "convert",
        data_dir,
        *OPTIONS,
        f"--workers={workers}",
        *more,
    )


def measure(data_dir: Path, base: str, repeat: int, workers: int) -> None:
    """Time each conversion in turn with the bare loop that moves the same bytes;
    amounts are in MB.
    """
    shards = sorted(data_dir.glob("*-of-*"))
    archives = sorted(Layout(data_dir).raw_dir.glob("*.tar"))
    size = sum(path.stat().st_size for path in shards)
    raw, to = below(locate(base), "in"), below(locate(base), "out")
    for path in (*archives, Layout(data_dir).boxes_csv):
        upload(path, below(raw, f"raw-data/{path.name}"))
    stored = [below(raw, f"raw-data/{path.name}") for path in archives]

    def upload_all() -> None:
        in_threads(workers, lambda path: upload(path, below(to, path.name)), shards)

    def download_and_upload() -> None:
        in_threads(workers, download, stored)
        upload_all()

    def converted(source: Path | Location) -> Callable[[], object]:
        return functools.partial(command_line, source, workers, f"--output={to}")

    uploads = {"bare upload": upload_all, "convert to the store": converted(data_dir)}
    copies = {
        "bare download and upload": download_and_upload,
        "convert from store to store": converted(raw),
    }
    for ways in (uploads, copies):
        heading = f"{size / 1e6:,.0f} MB in {len(shards)} shards, {workers} workers"
        compare(heading, ways, size / 1e6, repeat, lambda: empty(to))


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


def empty(folder: Location) -> None:
    """Delete every object below a folder."""
    import obstore

    for page in obstore.list(client_of(folder), f"{folder.key}/"):
        obstore.delete(client_of(folder), [each["path"] for each in page])


if __name__ == "__main__":
    main()
