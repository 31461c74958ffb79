"""Every bit, every length: minutes of it, so not among the tests of each day. ``make exhaustive`` runs it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from imagenet_prep.checks.shard_check import ShardCheck, ShardReport
from imagenet_prep.demo.archives import make
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import ProblemKind
from imagenet_prep.reading.shard import Shard
from imagenet_prep.stages.convert import convert
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import framing as tfrecord

pytestmark = pytest.mark.exhaustive

K = ProblemKind
NAME = "train-00000-of-00003"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A shard of two photographs, some 200 kB, and its manifest."""
    raw = tmp_path_factory.mktemp("raw")
    make(raw, classes=2, per_class=3, validation=2)
    layout = Layout(tmp_path_factory.mktemp("set"), raw=raw)
    options = ConvertOptions(train_shards=3, validation_shards=1, allow_incomplete=True)
    convert(layout, make_engine("threads", 2), options)
    assert 150_000 < layout.shard_path(NAME).stat().st_size < 350_000
    return layout


class Harness:
    """Checks versions of a shard's bytes without a file for each."""

    def __init__(self, layout: Layout) -> None:
        manifest = load_manifest(layout.manifest_path)
        assert manifest is not None
        self.check = ShardCheck(layout, ImageNetExaminer(), manifest.shards)
        self.content = layout.shard_path(NAME).read_bytes()
        offsets = [record.offset for record in tfrecord.iter_records(memoryview(self.content))]
        self.edges = [*offsets, len(self.content)]

    def look(self, content: bytes | bytearray | memoryview) -> ShardReport:
        """The report on these bytes."""
        return self.check.check(Shard(Path(NAME), memoryview(content), "none"))

    def record_at(self, position: int) -> int:
        """The number of the record in which a byte lies."""
        return next(i for i, (start, stop) in enumerate(pairwise(self.edges)) if start <= position < stop)


def flips(layout: Layout, start: int, stop: int) -> tuple[int, list[str]]:
    """Flip each bit of the bytes from ``start`` to ``stop``; how many, and what went wrong."""
    harness = Harness(layout)
    content, wrong = bytearray(harness.content), []
    for position in range(start, stop):
        number = harness.record_at(position)
        is_length = position - harness.edges[number] < tfrecord.HEADER.size
        for bit in range(8):
            content[position] ^= 1 << bit
            problems = harness.look(content).problems
            content[position] ^= 1 << bit
            found = [(problem.kind, problem.record, problem.offset) for problem in problems]
            if found != [(K.BAD_LENGTH if is_length else K.BAD_CRC, number, harness.edges[number])]:
                wrong.append(f"byte {position} bit {bit}: {problems}")
    return 8 * (stop - start), wrong


def cuts(layout: Layout, start: int, stop: int) -> tuple[int, list[str]]:
    """Cut the shard to each length from ``start`` to ``stop``; how many, and what went wrong."""
    harness = Harness(layout)
    view, wrong = memoryview(harness.content), []
    for length in range(start, stop):
        problems = harness.look(view[:length]).problems
        number = harness.record_at(length)
        kind = K.MISSING_RECORD if length in harness.edges else K.TRUNCATED
        if [(problem.kind, problem.record) for problem in problems] != [(kind, number)]:
            wrong.append(f"length {length}: {problems}")
    return stop - start, wrong


def pieces(total: int, count: int = 64) -> Iterator[tuple[int, int]]:
    """The range from 0 to ``total`` in pieces."""
    edges = [total * i // count for i in range(count + 1)]
    return pairwise(edges)


@pytest.mark.parametrize("damage", [flips, cuts])
def test_every_bit_and_every_length(layout: Layout, damage: object) -> None:
    """Each damage is exactly one problem, of the right kind and with the right record and offset."""
    size = layout.shard_path(NAME).stat().st_size
    with ProcessPoolExecutor() as pool:
        jobs = [pool.submit(damage, layout, *piece) for piece in pieces(size)]  # type: ignore[arg-type]
        results = [job.result() for job in jobs]
    assert sum(count for count, _ in results) == (8 * size if damage is flips else size)
    assert [each for _, wrong in results for each in wrong] == []


def test_absurd_lengths_take_no_memory(layout: Layout) -> None:
    """A soundly framed length of any power of two up to 2^63 is a problem, and memory stays flat."""
    harness = Harness(layout)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for power in range(18, 64):
        header = tfrecord.HEADER.pack(1 << power, tfrecord.mask(tfrecord.crc32c((1 << power).to_bytes(8, "little"))))
        (problem,) = harness.look(harness.content + header + b"xx").problems
        assert (problem.kind, problem.record, problem.offset) == (K.TRUNCATED, 2, len(harness.content))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kB


def test_the_shard_itself_is_sound(layout: Layout, tmp_path: Path) -> None:
    """Without damage nothing is found: what the others find is the damage."""
    assert Harness(layout).look(Harness(layout).content).problems == ()
