"""Times and memory of the state of a set of many shards: its journal and its manifest, written, then loaded.

``python scripts/bench_state.py [SHARDS]``, by default a million. Prints a JSON line a step: seconds of CPU, and the
peak of the memory of the process that did it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from imagenet_prep.ilsvrc2012.imagenet import ENTRY
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest, SplitTotals, load_manifest
from imagenet_prep.storage.layout import shard_name


def entries(count: int) -> Iterator[ShardInfo]:
    """Entries of shards as convert makes them."""
    for number in range(count):
        digest, fingerprint = (hashlib.sha256(f"{what} {number}".encode()).hexdigest() for what in ("digest", "items"))
        yield ShardInfo(shard_name("train", number, count), fingerprint, 1000, 110_000_000 + number % 977, digest)


def write_journal(folder: Path, count: int) -> None:
    """A journal as convert writes it."""
    with Journal(folder / "journal.jsonl") as journal:
        for info in entries(count):
            journal.append(info)


def write_manifest(folder: Path, count: int) -> None:
    """A manifest of as many shards."""
    totals = {"train": SplitTotals(1000 * count, 1000 * count, 1000, 0, count)}
    shards = {info.name: info for info in entries(count)}
    Manifest("0", ENTRY, {}, {}, totals, shards).save(folder / "manifest.json")


def load_both(folder: Path, count: int) -> None:
    """What verify, repair and convert begin with."""
    manifest, journal = load_manifest(folder / "manifest.json"), Journal(folder / "journal.jsonl")
    assert manifest is not None
    assert len(manifest.shards) == len(list(journal.names())) == count


def measure(step: Callable[[Path, int], None], folder: Path, count: int) -> None:
    """Run a step in a process of its own and print what it took."""
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(step, folder, count))
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


def _run(step: Callable[[Path, int], None], folder: Path, count: int) -> None:
    began = time.process_time()
    step(folder, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    took = {"step": step.__name__, "shards": count, "cpu_s": round(time.process_time() - began, 1), "peak_mib": peak}
    print(json.dumps(took), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for each in (write_journal, write_manifest, load_both):
            measure(each, Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
        sizes = {path.name: path.stat().st_size for path in Path(name).iterdir()}
        print(json.dumps({"step": "files", "bytes": sizes}))
