"""A dress rehearsal at full count: the official archives with tiny images, then annotate, convert
and verify.

    python scripts/rehearsal.py DIR

Builds an ImageNet in DIR/raw-data with its official names and true counts: 1,281,167 train images
in 1000 classes of 732 to 1300, 50,000 validation images, 544,546 annotation files with 615,299
boxes. Each image is a real JPEG of some 330 bytes. Then it runs the three commands as a user would,
with no allowance for missing images, measures time and memory, and compares the totals with the
official ones. It needs 3.5 GB in DIR, and Linux (memory is read from /proc). Existing archives are
kept; everything made from them is made again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from imagenet_prep.demo import photographs
from imagenet_prep.demo.made_annotations import BAD_QUIRKS, QUIRKS, Quirk, annotation
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.state.manifest import SplitTotals, load_manifest
from imagenet_prep.storage.files import load_json
from imagenet_prep.storage.layout import Layout

SMALLEST, LARGEST = 732, 1300
"""Images per class."""

SAMPLE_SECONDS = 0.02
"""Seconds between memory checks; shared memory is checked every tenth time,
since the system must walk all pages.
"""

_HIGHEST_NUMBER = 32_000
_DISTINCT = 300  # JPEGs, and annotations of each number of boxes
_MTIME = 1_339_545_600  # 13 June 2012
_STAND_IN = "n02092002"  # the class of every annotation template


# the counts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """The amount of everything: train images by class, validation images,
    annotation files, boxes, shards by split.
    """

    classes: tuple[int, ...]
    validation: int
    box_files: int
    boxes: int
    shards: dict[str, int]

    @property
    def train(self) -> int:
        """All train images."""
        return sum(self.classes)

    @property
    def images(self) -> int:
        """All images."""
        return self.train + self.validation


def official(scale: float) -> Counts:
    """The counts of ILSVRC2012, or about ``scale`` times as much of everything except classes."""
    whole = scale == 1
    classes = tuple(max(1, round(size * scale)) for size in _class_sizes())
    validation = round(facts.IMAGES["validation"] * scale)
    box_files = facts.BOX_FILES if whole else min(round(facts.BOX_FILES * scale), sum(classes))
    boxes = facts.BOXES if whole else min(round(facts.BOXES * scale), 2 * box_files)
    shards = {split: max(8, round(count * scale)) for split, count in facts.SHARDS.items()}
    return Counts(classes, validation, box_files, boxes, shards)


def _class_sizes() -> Iterator[int]:
    """The size of each class: most are full, as in the real set;
    the shortfall is spread over some of them.
    """
    rng = random.Random("class sizes")
    lacking = facts.CLASSES * LARGEST - facts.IMAGES["train"]
    spread = LARGEST - SMALLEST
    gaps = [spread]
    while sum(gaps) < lacking:
        gaps.append(min(rng.randint(1, spread), lacking - sum(gaps)))
    gaps += [0] * (facts.CLASSES - len(gaps))
    rng.shuffle(gaps)
    return (LARGEST - gap for gap in gaps)


def train_names(counts: Counts) -> Iterator[tuple[str, list[bytes]]]:
    """Each class with the names of its images without suffix, shuffled."""
    rng = random.Random("train names")
    for wnid, size in zip(facts.synsets(), counts.classes, strict=True):
        yield (
            wnid,
            [
                b"%s_%d" % (wnid.encode(), number)
                for number in rng.sample(range(1, _HIGHEST_NUMBER), size)
            ],
        )


def annotated(counts: Counts) -> Iterator[tuple[str, list[tuple[bytes, int]]]]:
    """Each class with the names of its annotations and their number of boxes,
    spread evenly over all images.
    """
    chosen = _evenly(counts.box_files, counts.train)
    boxes = _evenly(counts.boxes, counts.box_files)
    for wnid, names in train_names(counts):
        yield wnid, [(name, next(boxes)) for name in names if next(chosen)]


def _evenly(total: int, parts: int) -> Iterator[int]:
    """``total`` as a sum of ``parts`` whole numbers that differ by one at most."""
    return (
        after - before
        for before, after in itertools.pairwise(i * total // parts for i in range(parts + 1))
    )


# building the archives ----------------------------------------------------------------------------


def build(raw_dir: Path, scale: float) -> None:
    """Write the missing archives, on two processes."""
    raw_dir.mkdir(parents=True, exist_ok=True)
    writers = {"train": write_train, "boxes": write_boxes, "validation": write_validation}
    paths = {key: raw_dir / facts.ARCHIVES[key].filename for key in writers}
    stamp = raw_dir / "rehearsal.json"
    if load_json(stamp) != {"scale": scale}:
        for path in (stamp, *paths.values()):
            path.unlink(missing_ok=True)
    with ProcessPoolExecutor(2) as pool:
        missing = [key for key in writers if not paths[key].exists()]
        for finished in [pool.submit(writers[key], paths[key], official(scale)) for key in missing]:
            finished.result()
    stamp.write_text(json.dumps({"scale": scale}))


def write_train(path: Path, counts: Counts) -> None:
    """Write a tar with one tar per class."""
    jpegs = itertools.cycle(_jpegs())
    with _whole(path) as partial, partial.open("wb") as file:
        for wnid, names in train_names(counts):
            members = b"".join(_image(name + b".JPEG", next(jpegs)) for name in names) + _END
            file.write(_header(f"{wnid}.tar".encode(), len(members)) + members)
        file.write(_END)


def write_validation(path: Path, counts: Counts) -> None:
    """Write a flat tar in shuffled order."""
    jpegs = itertools.cycle(_jpegs())
    numbers = random.Random("validation").sample(range(1, counts.validation + 1), counts.validation)
    with _whole(path) as partial, partial.open("wb") as file:
        file.writelines(
            _image(facts.validation_filename(number).encode(), next(jpegs)) for number in numbers
        )
        file.write(_END)


def write_boxes(path: Path, counts: Counts) -> None:
    """Write a compressed tar of <wnid>/<name>.xml."""
    templates = {boxes: itertools.cycle(_templates(boxes)) for boxes in (0, 1, 2)}
    with _whole(path) as partial, gzip.open(partial, "wb", compresslevel=1) as file:
        for wnid, files in annotated(counts):
            folder = wnid.encode()
            for name, boxes in files:
                xml = next(templates[boxes]).replace(b"@name", name).replace(b"@wnid", folder)
                file.write(_header(folder + b"/" + name + b".xml", len(xml)) + _padded(xml))
        file.write(_END)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A temporary path; its file is renamed to ``path`` when it is complete."""
    partial = path.with_suffix(".partial")
    yield partial
    partial.replace(path)


@functools.cache
def _jpegs() -> list[tuple[int, bytes]]:
    """The length of each image, and its bytes as in a tar."""
    return [(len(content), _padded(content)) for content in map(photographs.tiny, range(_DISTINCT))]


def _templates(boxes: int) -> list[bytes]:
    """Annotations with that many boxes, every tenth of them odd in some way,
    with @name and @wnid to fill in.
    """
    odd = itertools.cycle(quirk for quirk in QUIRKS if quirk not in BAD_QUIRKS)
    found: list[bytes] = []
    for seed in itertools.count():
        quirk = Quirk.OTHER_CLASS if boxes == 0 else next(odd) if seed % 10 == 0 else Quirk.NONE
        made = annotation(
            f"{_STAND_IN}_0", _STAND_IN, photographs.photograph_size(seed), quirk, seed
        )
        if len(made.lines) == boxes:
            found.append(
                made.xml.replace(made.name.encode(), b"@name").replace(_STAND_IN.encode(), b"@wnid")
            )
        if len(found) == _DISTINCT:
            break
    return found


# tar: POSIX.1-2017, "ustar Interchange Format"; tarfile itself would need minutes for so many
# members

_BLOCK = 512
_END = bytes(2 * _BLOCK)


def _image(name: bytes, jpeg: tuple[int, bytes]) -> bytes:
    return _header(name, jpeg[0]) + jpeg[1]


def _header(name: bytes, size: int) -> bytes:
    before, after, total = _frame(size)
    return b"%b%b%06o\0 %b" % (name.ljust(100, b"\0"), before, total + sum(name), after)


@functools.cache
def _frame(size: int) -> tuple[bytes, bytes, int]:
    """The parts before and after the checksum in the header of a nameless file,
    and the checksum.
    """
    entry = tarfile.TarInfo()
    entry.size, entry.mtime = size, _MTIME
    header = entry.tobuf(tarfile.GNU_FORMAT)
    return header[100:148], header[156:], int(header[148:154], 8)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _BLOCK)


# running the commands -----------------------------------------------------------------------------


@dataclass(slots=True)
class Usage:
    """The cost of a command: seconds, and the peak memory in bytes of the parent and of its largest
    worker.

    A worker is forked and shares the parent's pages. ``worker`` counts all its memory except mapped
    files (these are the system's cache), ``worker_own`` only the memory that it doesn't share.
    """

    name: str
    wall: float = 0
    cpu: float = 0
    parent: int = 0
    worker: int = 0
    worker_own: int = 0
    status: int = 0


@dataclass(slots=True)
class Rehearsal:
    """Runs the commands in order."""

    folder: Path
    counts: Counts
    scale: float
    usages: list[Usage] = field(default_factory=list)

    def run(self) -> list[str]:
        """Run all commands; returns the faults."""
        _clear(Layout(self.folder))
        shards = [f"--{split}-shards={count}" for split, count in self.counts.shards.items()]
        part = [] if self.scale == 1 else [*shards, "--allow-incomplete"]
        for command in (["annotate"], ["convert", *part], ["verify"]):
            usage = measure(
                [sys.executable, "-m", "imagenet_prep", *command, str(self.folder), "--quiet"],
                command[0],
            )
            self.usages.append(usage)
            if usage.status:
                return [f"{usage.name}: exit status {usage.status}"]
        return list(self.differences())

    def differences(self) -> Iterator[str]:
        """The totals that differ from those that were built."""
        manifest = load_manifest(Layout(self.folder).manifest_path)
        totals = manifest.totals if manifest else {}
        annotate = load_json(Layout(self.folder).annotate_path)["train"]["totals"]
        counts, shards = self.counts, self.counts.shards
        validation_classes = len(set(facts.validation_wnids()[: counts.validation]))
        checks = (
            ("annotation files", counts.box_files, annotate["files"]),
            ("boxes", counts.boxes, annotate["boxes"]),
            (
                "train",
                SplitTotals(
                    counts.train, facts.IMAGES["train"], 1000, counts.boxes, shards["train"]
                ),
                totals.get("train"),
            ),
            (
                "validation",
                SplitTotals(
                    counts.validation,
                    facts.IMAGES["validation"],
                    validation_classes,
                    0,
                    shards["validation"],
                ),
                totals.get("validation"),
            ),
        )
        return (
            f"{name}: expected {expected}, got {got}"
            for name, expected, got in checks
            if expected != got
        )


def _clear(layout: Layout) -> None:
    """Remove everything that the commands make."""
    for path in (layout.boxes_csv, layout.annotate_path, layout.manifest_path, layout.journal_path):
        path.unlink(missing_ok=True)
    for path in [*layout.output_dir.glob("*-of-*"), *layout.index_dir.glob("*-of-*")]:
        path.unlink()


def measure(command: list[str], name: str) -> Usage:
    """Run a command to its end, and track its memory."""
    usage = Usage(name)
    start = time.perf_counter()
    parent = subprocess.Popen(command).pid
    for sample in itertools.count():
        ended = os.wait4(parent, os.WNOHANG)
        if ended[0]:
            break
        with contextlib.suppress(OSError):  # a process may end at any moment
            usage.parent = max(usage.parent, _kilobytes(parent, "status", "VmHWM"))
            for worker in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                usage.worker = max(usage.worker, _kilobytes(worker, "status", "RssAnon"))
                if sample % 10 == 0:
                    usage.worker_own = max(
                        usage.worker_own, _kilobytes(worker, "smaps_rollup", "Private_Dirty")
                    )
        time.sleep(SAMPLE_SECONDS)
    usage.wall = time.perf_counter() - start
    usage.status = os.waitstatus_to_exitcode(ended[1])
    usage.cpu = ended[2].ru_utime + ended[2].ru_stime
    return usage


def _kilobytes(process: int | str, file: str, key: str) -> int:
    """Bytes, from a line "key:  123 kB" in /proc/PROCESS; 0 if there is none."""
    lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{key}:")), 0)


def print_table(usages: list[Usage], images_: int) -> None:
    """Print the cost of each command."""
    print(
        f"{'':10}{'wall s':>9}{'CPU s':>9}{'us/image':>10}{'parent MB':>11}{'worker MB':>11}{'its own':>9}"
    )
    for usage in usages:
        memory = (
            f"{usage.parent / 1e6:11.0f}{usage.worker / 1e6:11.0f}{usage.worker_own / 1e6:9.0f}"
        )
        print(
            f"{usage.name:10}{usage.wall:9.1f}{usage.cpu:9.1f}{usage.wall / images_ * 1e6:10.1f}{memory}"
        )


def main() -> int:
    """Build, run, print; the exit status is 0 if the totals are right."""
    parser = argparse.ArgumentParser(
        description="annotate, convert and verify an ImageNet of tiny images"
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--scale", type=float, default=1, help="build a fraction of everything, such as 0.001"
    )
    given = parser.parse_args()
    counts = official(given.scale)
    start = time.perf_counter()
    build(Layout(given.folder).own_raw_dir, given.scale)
    print(
        f"{counts.images:,} images, {counts.box_files:,} annotations: "
        f"built in {time.perf_counter() - start:.1f} s"
    )
    rehearsal = Rehearsal(given.folder, counts, given.scale)
    wrong = rehearsal.run()
    print_table(rehearsal.usages, counts.images)
    print(
        "\n".join(wrong)
        or f"all totals are right: {counts.boxes:,} boxes, {sum(counts.shards.values()):,} shards"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
