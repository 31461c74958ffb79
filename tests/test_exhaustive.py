"""Every bit, every length: minutes of it, so not among the tests of each day.
``make exhaustive`` runs it.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from imagenet_prep.checks.shard_check import ShardCheck
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.reading.shard import Shard
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import framing as tfrecord

pytestmark = pytest.mark.exhaustive

K = ProblemKind
NAME = "train-00003-of-00008"
Look = Callable[[bytes | bytearray | memoryview], tuple[Problem, ...]]


@pytest.fixture(scope="module")
def look(sound: Layout) -> Look:
    """Finds the problems of versions of a shard's bytes, without a file for each."""
    manifest = load_manifest(sound.manifest_path)
    assert manifest is not None
    check = ShardCheck(sound, ImageNetExaminer(), manifest.shards)
    return lambda content: tuple(
        check.check(Shard(Path(NAME), memoryview(content), "none")).problems
    )


@pytest.fixture(scope="module")
def content(sound: Layout, look: Look) -> bytes:
    """The bytes of a sound shard: what the tests find is the damage."""
    content = sound.shard_path(NAME).read_bytes()
    assert look(content) == ()
    return content


@pytest.fixture(scope="module")
def edges(content: bytes) -> list[int]:
    """Where each record begins, and the last one ends."""
    return [*(record.offset for record in tfrecord.iter_records(memoryview(content))), len(content)]


def test_every_bit(look: Look, content: bytes, edges: list[int]) -> None:
    """Each flipped bit is exactly one problem,
    of the right kind and with the right record and offset.
    """
    damaged = bytearray(content)
    for number, (start, stop) in enumerate(pairwise(edges)):
        for position in range(start, stop):
            kind = K.BAD_LENGTH if position - start < tfrecord.HEADER.size else K.BAD_CRC
            for bit in range(8):
                damaged[position] ^= 1 << bit
                found = [
                    (problem.kind, problem.record, problem.offset) for problem in look(damaged)
                ]
                damaged[position] ^= 1 << bit
                assert found == [(kind, number, start)], f"byte {position} bit {bit}"


def test_every_length(look: Look, content: bytes, edges: list[int]) -> None:
    """Each shorter length is exactly one problem, with the right record."""
    for number, (start, stop) in enumerate(pairwise(edges)):
        for length in range(start, stop):
            kind = K.MISSING_RECORD if length == start else K.TRUNCATED
            found = [
                (problem.kind, problem.record) for problem in look(memoryview(content)[:length])
            ]
            assert found == [(kind, number)], f"length {length}"


def test_absurd_lengths_take_no_memory(look: Look, content: bytes, edges: list[int]) -> None:
    """A soundly framed length of any power of two up to 2^63 is a problem,
    and memory stays flat.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for power in range(18, 64):
        header = tfrecord.HEADER.pack(
            1 << power, tfrecord.mask(tfrecord.crc32c((1 << power).to_bytes(8, "little")))
        )
        (problem,) = look(content + header + b"xx")
        assert (problem.kind, problem.record, problem.offset) == (
            K.TRUNCATED,
            len(edges) - 1,
            len(content),
        )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kB
