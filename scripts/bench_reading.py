"""Times reading and decoding finished shards against bare loops and other readers, in one interleaved run.

    python scripts/bench_reading.py                       # 5,000 records of 110 kB, 5 rounds: minutes
    python scripts/bench_reading.py --records 10000 --repeat 7 --folder /mnt/disk

The page cache is warm. The first table has processor time per record within one process, compared with a bare loop.
The second has whole processes, start and imports included. The third has training batches per second, of a random crop
of each image. Ratios are medians of the rounds' ratios. The script needs the extra `dev`. --rivals names a Python that
has this project's dependencies, and any of torchvision, webdataset, mosaicml-streaming, litdata, nvidia-dali-cuda120.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import imagenet_prep  # noqa: E402
from imagenet_prep import records  # noqa: E402
from imagenet_prep.demo.photographs import photograph_bytes  # noqa: E402
from imagenet_prep.model import Item  # noqa: E402
from imagenet_prep.tfrecord import crc32c, inception  # noqa: E402

SHARDS, PHOTOGRAPHS = 8, 200

WHOLE = {
    "open": """
import imagenet_prep
assert sum(len(record.encoded) > 0 for record in imagenet_prep.open(sys.argv[1], "train")) == int(sys.argv[2])
""",
    "grain TFRecordIterDataset": """
import grain
count = 0
for path in paths:
    for record in grain.experimental.TFRecordIterDataset(path):
        count += 1
assert count == int(sys.argv[2])
""",
    "tf.data TFRecordDataset": """
import tensorflow as tf
assert sum(1 for _ in tf.data.TFRecordDataset(paths)) == int(sys.argv[2])
""",
    "tfrecord package": """
from tfrecord.reader import tfrecord_iterator
assert sum(1 for path in paths for _ in tfrecord_iterator(path)) == int(sys.argv[2])
""",
}

HEAD = """
import os, resource, sys, time, warnings
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
warnings.simplefilter("ignore")
from pathlib import Path
paths = sorted(str(path) for path in Path(sys.argv[1]).glob("train-*-of-*"))
"""
LOADERS = ("image-folder", "imagenet-prep", "webdataset", "streaming", "litdata", "dali")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPATH"] = str(ROOT)
PROGRAM = ROOT / "scripts" / "rivals" / "loaders.py"


def main() -> None:
    """Measure, and print three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--images", type=int, default=2000, help="the number of images to decode")
    parser.add_argument("--repeat", type=int, default=5, help="rounds")
    parser.add_argument("--rivals", default=sys.executable, help="a Python with other loaders (default: this one)")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    parser.add_argument("--only", choices=("reading", "loaders"), help="one kind of tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.only != "loaders":
            make_set(folder / "set", given.records)
            within_one_process(folder / "set", given.records, given.repeat)
            whole = {name: python(HEAD + program, folder / "set", given.records) for name, program in WHOLE.items()}
            processes(f"{given.records:,} records, a process each", whole, given.records, given.repeat)
        if given.only != "reading":
            make_set(folder / "images" / "set", given.images)
            train(folder / "images", given.images, given.repeat, given.rivals)


def make_set(folder: Path, count: int) -> None:
    """Make records of photographs in convert's layout, each with a label and a name of its own."""
    photographs = [photograph_bytes(seed) for seed in range(PHOTOGRAPHS)]
    with records.ShardWriter(folder / "train", shards=SHARDS) as shards:
        for number in range(count):
            content, (width, height) = photographs[number % PHOTOGRAPHS]
            label = number * 7919 % 1000 + 1
            item = Item(f"n{label:08d}_{number}.JPEG", label, f"n{label:08d}", f"class {label}, some words", ())
            head, tail = inception.record_parts(item, width, height, len(content))
            shards.write(head + content + tail)


# loaders for training -------------------------------------------------------------------------------------------


def train(folder: Path, count: int, rounds: int, rivals: str) -> None:
    """Images per second of each loader that is installed, without its imports."""
    out = folder / "folders"
    run([sys.executable, "-m", "imagenet_prep", "export", "folders", folder / "set", out])
    (out / "train").rename(folder / "images")
    commands = {}
    for name in LOADERS:
        call = [rivals, PROGRAM, "make", name, folder]
        run_one = [rivals, PROGRAM, "run", name, folder, str(count)]
        tried = subprocess.run(call, capture_output=True, text=True, env=ENVIRONMENT)
        if not tried.returncode:
            tried = subprocess.run(run_one, capture_output=True, text=True, env=ENVIRONMENT)
        if tried.returncode:
            print(f"{name}: left out: {tried.stderr.strip().splitlines()[-1]}")
        else:
            commands[name] = run_one
    heading = f"{count:,} images, random crops of 224, 2 workers, two epochs, imports aside"
    processes(heading, commands, 2 * count, rounds, told)


# within one process --------------------------------------------------------------------------------------------


def within_one_process(folder: Path, count: int, rounds: int) -> None:
    """Processor time per record, in order and at random."""
    paths = sorted(folder.glob("train-*-of-*"))
    kept = imagenet_prep.open(folder, "train")
    order = random.Random(1).sample(range(count), count)
    maps = [mapped(path) for path in paths]
    slices = [(view, start, stop) for view in maps for start, stop in data_of(view)]
    in_order: dict[str, Callable[[], Any]] = {
        "bare mmap + crc32c": lambda: [bare(path) for path in paths],
        "open: label, view, every CRC": lambda: look(imagenet_prep.open(folder, "train")),
        "the same set again": lambda: look(kept),
        "records.read": lambda: sum(1 for _ in records.read(paths)),
    }
    table("in order, us of processor time per record", in_order, count, rounds)
    at_random: dict[str, Callable[[], Any]] = {
        "bare slice + crc32c": lambda: [crc32c(view[a:b]) for view, a, b in (slices[k] for k in order)],
        "open: label, view, CRC": lambda: look(kept[k] for k in order),
    }
    with contextlib.ExitStack() as stack:
        arrays = stack.enter_context(array_records(folder))
        at_random["array_record"] = lambda: [arrays[k] for k in order]
        table("at random, us of processor time per record", at_random, count, rounds)


def mapped(path: Path) -> memoryview:
    """A file as a memory map."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def data_of(view: memoryview) -> list[tuple[int, int]]:
    """Where each record's data starts and stops."""
    found, offset = [], 0
    while offset < len(view):
        (length,) = struct.unpack_from("<Q", view, offset)
        found.append((offset + 12, offset + 12 + length))
        offset += length + 16
    return found


def bare(path: Path) -> None:
    """Map a shard, and compute the CRC of each record's data: any reader that checks them must do this."""
    view, offset, unpack = mapped(path), 0, struct.Struct("<Q").unpack_from
    end = len(view)
    while offset < end:
        (length,) = unpack(view, offset)
        crc32c(view[offset + 12 : offset + 12 + length])
        offset += length + 16


def look(found: Any) -> None:
    """Read each record's label and image."""
    for record in found:
        record.label, record.encoded  # noqa: B018 - the access is measured


@contextlib.contextmanager
def array_records(folder: Path) -> Any:
    """The same records as ArrayRecord files, as Grain reads them."""
    from grain.sources import ArrayRecordDataSource

    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        run([sys.executable, "-m", "imagenet_prep", "export", "arrayrecord", folder, Path(out) / "arrays"])
        yield ArrayRecordDataSource(sorted(str(path) for path in Path(out, "arrays").glob("*.array_record")))


def table(heading: str, ways: Mapping[str, Callable[[], Any]], count: int, rounds: int) -> None:
    """Run each way once per round; print its processor time, also relative to the first way."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            began = time.process_time()
            way()
            took[name].append((time.process_time() - began) / count * 1e6)
    first = next(iter(ways))
    print(f"{heading}; rounds: {rounds}\n{'':34}{'median':>10}{'fastest':>10}{'/ bare':>10}")
    for name, each in took.items():
        ratio = median(one / other for one, other in zip(each[1:], took[first][1:], strict=True))
        print(f"{name:34}{median(each[1:]):10.2f}{min(each[1:]):10.2f}{ratio:10.2f}")


# whole processes -----------------------------------------------------------------------------------------------


def python(program: str, folder: Path, count: int) -> list[Any]:
    """The command that runs a program on a folder."""
    return [sys.executable, "-c", program, folder, str(count)]


def processes(
    heading: str,
    commands: Mapping[str, list[Any]],
    count: int,
    rounds: int,
    measure: Callable[[list[Any]], tuple[float, float]] | None = None,
) -> None:
    """Run each command once per round; print wall and processor time, items per second, and the ratio to the first."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            took[name].append((measure or timed)(command))
    first = next(iter(commands))
    print(f"{heading}; rounds: {rounds}\n{'':34}{'wall s':>10}{'CPU s':>10}{'per second':>12}{'/ first':>8}")
    for name, each in took.items():
        ratio = median(one[0] / other[0] for one, other in zip(took[first], each, strict=True))
        wall, used = (median(values) for values in zip(*each, strict=True))
        print(f"{name:34}{wall:10.2f}{used:10.2f}{count / wall:10.0f}{ratio:10.2f}")


def timed(command: list[Any]) -> tuple[float, float]:
    """Wall and processor seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    run(command)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def told(command: list[Any]) -> tuple[float, float]:
    """The seconds that the command prints: of its loop alone, including the start of its workers."""
    wall, used = map(float, run(command).split())
    return wall, used


def run(command: list[Any]) -> str:
    """Run a command, and return what it prints; show that if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
