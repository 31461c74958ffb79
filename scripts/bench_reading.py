"""Times reading and decoding finished shards against bare loops and other readers, in one
interleaved run.

    python scripts/bench_reading.py                       # 5,000 records of 110 kB, 5 rounds: minutes
    python scripts/bench_reading.py --records 10000 --repeat 7 --folder /mnt/disk

The page cache is warm. The first table has processor time per record within one process, compared
with a bare loop. The second has whole processes, start and imports included. The third has training
batches per second, of a random crop of each image. Ratios are medians of the rounds' ratios. The
script needs the extra `dev`. --rivals names a Python that has this project's dependencies, and any
of torchvision, webdataset, mosaicml-streaming, litdata, nvidia-dali-cuda120.
"""

from __future__ import annotations

import functools
import mmap
import random
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turns import ROOT, Cost, compare, options, run

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
LOADERS = (
    *("image-folder", "imagenet-prep", "imagenet-prep-channels-last"),
    *("webdataset", "streaming", "litdata", "dali"),
)
PROGRAM = ROOT / "scripts" / "rivals" / "loaders.py"


def main() -> None:
    """Measure, and print three tables."""
    parser = options(__doc__, records=5000, images=2000, repeat=5)
    parser.add_argument(
        "--rivals", default=sys.executable, help="a Python with other loaders (default: this one)"
    )
    parser.add_argument("--only", choices=("reading", "loaders"), help="one kind of tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.only != "loaders":
            make_set(folder / "set", given.records)
            within_one_process(folder / "set", given.records, given.repeat)
            call = functools.partial(functools.partial, run, sys.executable, "-c")
            whole = {
                name: call(HEAD + program, folder / "set", given.records)
                for name, program in WHOLE.items()
            }
            compare(
                f"{given.records:,} records, a process each", whole, given.records, given.repeat
            )
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
            item = Item(
                f"n{label:08d}_{number}.JPEG",
                label,
                f"n{label:08d}",
                f"class {label}, some words",
                (),
            )
            head, tail = inception.record_parts(item, width, height, len(content))
            shards.write(head + content + tail)


# loaders for training -----------------------------------------------------------------------------


def train(folder: Path, count: int, rounds: int, rivals: str) -> None:
    """Images per second of each loader that is installed, without its imports."""
    run(
        sys.executable,
        "-m",
        "imagenet_prep",
        "export",
        "folders",
        folder / "set",
        folder / "folders",
    )
    (folder / "folders" / "train").rename(folder / "images")
    ways: dict[str, Callable[[], Cost]] = {}
    for name in LOADERS:

        def told(name: str = name) -> Cost:
            """The seconds of the loop alone, including the start of its workers."""
            return Cost(*map(float, run(rivals, PROGRAM, "run", name, folder, count).split()))

        try:
            run(rivals, PROGRAM, "make", name, folder)
            told()
        except SystemExit as failed:
            print(f"{name}: left out: {str(failed).strip().splitlines()[-1]}")
        else:
            ways[name] = told
    compare(
        f"{count:,} images, random crops of 224, 2 workers, two epochs, imports aside",
        ways,
        2 * count,
        rounds,
    )


# within one process -------------------------------------------------------------------------------


def within_one_process(folder: Path, count: int, rounds: int) -> None:
    """Processor time per record, in order and at random."""
    paths = sorted(folder.glob("train-*-of-*"))
    kept = imagenet_prep.open(folder, "train")
    order = random.Random(1).sample(range(count), count)
    views = [mapped(path) for path in paths]
    slices = [(view, start, stop) for view in views for start, stop in data_of(view)]
    in_order = {
        "bare mmap + crc32c": lambda: [bare(path) for path in paths],
        "open: label, view, every CRC": lambda: look(imagenet_prep.open(folder, "train")),
        "records.read": lambda: sum(1 for _ in records.read(paths)),
    }
    compare("in order", in_order, count, rounds)
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        arrays = array_records(folder, Path(out) / "arrays")
        at_random = {
            "bare slice + crc32c": lambda: [
                crc32c(view[a:b]) for view, a, b in (slices[k] for k in order)
            ],
            "open: label, view, CRC": lambda: look(kept[k] for k in order),
            "array_record": lambda: [arrays[k] for k in order],
        }
        compare("at random", at_random, count, rounds)


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
    """Map a shard, and compute the CRC of each record's data:
    any reader that checks them must do this.
    """
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


def array_records(folder: Path, out: Path) -> Any:
    """The same records as ArrayRecord files, as Grain reads them."""
    from grain.sources import ArrayRecordDataSource

    run(sys.executable, "-m", "imagenet_prep", "export", "arrayrecord", folder, out)
    return ArrayRecordDataSource(sorted(str(path) for path in out.glob("*.array_record")))


if __name__ == "__main__":
    main()
