"""TFRecord framing against TensorFlow's writer and reader, and every way a file can be damaged."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.storage.durable import write_all
from imagenet_prep.tfrecord.compression import RecordWriter
from imagenet_prep.tfrecord.framing import (
    OVERHEAD,
    Buffer,
    Framed,
    Index,
    LengthError,
    TruncatedError,
    frame,
    framing_digest,
    intact_at,
    iter_intact,
    iter_records,
    iter_unchecked,
    mask,
)

tf = tf_fixture.tf

SMALL = (b"first record", b"", b"the third\x00", bytes(range(40)))


class _Memory:
    """A sink in memory that remembers how it was fed."""

    def __init__(self) -> None:
        self.content = b""
        self.lists: list[int] = []

    def write(self, parts: Sequence[Buffer]) -> None:
        self.lists.append(len(parts))
        self.content += b"".join(parts)


def _written(records: Sequence[bytes]) -> tuple[bytes, Index]:
    sink = _Memory()
    writer, index = RecordWriter(sink.write), Index()
    for record in records:
        index.add(*writer.write(record), "")
    writer.close()
    assert writer.size == len(sink.content)
    return sink.content, index


def _read(content: bytes) -> list[Framed]:
    return list(iter_records(memoryview(content)))


def test_a_known_crc_has_its_known_mask() -> None:
    """CRC32C of "123456789" is 0xe3069283 (RFC 3720);
    rotated right by 15, plus 0xa282ead8, it is 0xc78ab0e5.
    """
    assert crc32c(b"123456789") == 0xE3069283
    assert mask(0xE3069283) == 0xC78AB0E5
    assert mask(0) == 0xA282EAD8


def test_framing_is_tensorflows(tf: Any, tmp_path: Path) -> None:
    """The file is byte for byte what TFRecordWriter writes."""
    path = tmp_path / "theirs"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in SMALL:
            writer.write(record)
    assert _written(SMALL)[0] == path.read_bytes()


@given(st.lists(st.binary(max_size=300), max_size=12))
def test_records_come_back(records: list[bytes]) -> None:
    """Any records are read back intact, at the offsets and lengths and
    with the digest that the writer tells.
    """
    content, index = _written(records)
    found = _read(content)
    assert [bytes(record.data) for record in found] == records
    assert all(record.intact for record in found)
    assert [record.offset for record in found] == index.offsets
    assert [len(record.data) + OVERHEAD for record in found] == index.lengths
    assert (
        framing_digest([len(record.data) for record in found], [record.crc for record in found])
        == index.digest
    )
    assert [record.crc for record in found] == index.crcs


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5))
def test_parts_make_the_same_record_as_the_whole(parts: list[bytes]) -> None:
    """A record handed over in pieces is framed as the pieces joined."""
    assert frame(*parts) == frame(b"".join(parts))


def test_the_digest_tells_swapped_dropped_and_doubled_records_apart() -> None:
    """What no record's own CRC can show, the digest over the framing shows."""
    a, b, c = b"one", b"two", b"three"
    variants = [(a, b, c), (b, a, c), (a, b), (a, b, b, c), (a, b, c, b"")]
    assert len({_written(records)[1].digest for records in variants}) == len(variants)


def test_gather_lists_stay_within_what_writev_takes() -> None:
    """Thousands of records of three parts are handed over in lists of at most 1020 buffers,
    and none is lost.
    """
    sink = _Memory()
    writer = RecordWriter(sink.write)
    for number in range(2000):
        writer.write(b"head", b"%d" % number, b"tail")
    writer.flush()
    assert max(sink.lists) <= 1020
    assert len(sink.lists) < 20
    assert [bytes(record.data) for record in _read(sink.content)] == [
        b"head%dtail" % n for n in range(2000)
    ]


# damage -------------------------------------------------------------------------------------------


def test_every_cut_is_found() -> None:
    """A file cut anywhere but between two records says so,
    with the number and the offset of the record it cuts.
    """
    content, index = _written(SMALL)
    edges = [*index.offsets, len(content)]
    for length in range(len(content)):
        if length in edges:
            assert len(_read(content[:length])) == edges.index(
                length
            )  # the journal's size and digest find these
            continue
        record = max(number for number, offset in enumerate(index.offsets) if offset < length)
        with pytest.raises(TruncatedError) as caught:
            _read(content[:length])
        assert (caught.value.record, caught.value.offset) == (record, index.offsets[record])
        left = length - index.offsets[record]
        expected = f"expected {len(SMALL[record]):,} bytes of data and 4 of CRC after the header"
        reason = f"{expected}, got {left - 12:,} in all"
        if left < 12:
            reason = f"the file ends {left} byte{'s' * (left > 1)} into a 12-byte header"
            if record:  # nobody can tell a cut header from other bytes
                reason += ", or other bytes follow the last record"
        assert caught.value.reason == reason


def test_every_flipped_bit_is_found() -> None:
    """One wrong bit anywhere is found in the very record that holds it."""
    content, index = _written(SMALL)
    edges = [*index.offsets, len(content)]
    for position in range(len(content)):
        record = max(number for number, offset in enumerate(index.offsets) if offset <= position)
        in_header = position - edges[record] < 12
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            if in_header:
                with pytest.raises(
                    LengthError, match=r": the length field does not match its CRC"
                ) as caught:
                    _read(bytes(damaged))
                assert (caught.value.record, caught.value.offset) == (record, edges[record])
            else:
                assert [found.number for found in _read(bytes(damaged)) if not found.intact] == [
                    record
                ]


def test_unchecked_records_are_found_by_their_lengths() -> None:
    """The same offsets and data, damaged data too;
    damage to a length or a cut is still an error.
    """
    content = bytearray(_written(SMALL)[0])
    expected = [(record.offset, bytes(record.data)) for record in _read(bytes(content))]
    assert _unchecked(content) == expected
    content[12] ^= 1
    assert _unchecked(content) == [(0, b"girst record"), *expected[1:]]
    with pytest.raises(TruncatedError):
        _unchecked(content[:-1])
    content[3] ^= 1
    with pytest.raises(LengthError):
        _unchecked(content)


def _unchecked(content: bytes) -> list[tuple[int, bytes]]:
    return [(offset, bytes(data)) for offset, data in iter_unchecked(memoryview(content))]


def test_a_record_is_found_by_its_ends() -> None:
    """Between the two ends of a record lie its data, if they are intact;
    between any others there are none.
    """
    content = bytearray(_written((b"", b"a", b"abc"))[0])
    content[-5] ^= 1
    records = _read(content)
    assert [record.intact for record in records] == [True, True, False]
    ends = {
        (record.offset, record.offset + len(record.data) + OVERHEAD): record for record in records
    }
    view = memoryview(content)
    for start in range(len(content) + 2):
        for stop in range(len(content) + 20):
            record = ends.get((start, stop))
            data = record.data if record else None
            assert intact_at(view, start, stop, check=False) == data
            assert intact_at(view, start, stop) == (data if record and record.intact else None)
    assert intact_at(view[:-1], *max(ends), check=False) is None
    content[16 + 3] ^= 1
    assert intact_at(view, 16, 33) is None


@pytest.mark.parametrize("check", [True, False])
def test_intact_records_are_those_before_the_first_damage(check: bool) -> None:
    """Whatever bit is flipped, or wherever the file is cut:
    the records before that come, and no other.
    """
    content = _written((b"", b"a", b"abc"))[0]
    whole = [(framed.offset, framed.data, framed.crc) for framed in _read(content)]
    assert list(iter_intact(memoryview(content), check=check)) == whole
    ends = [offset + len(data) + OVERHEAD for offset, data, _ in whole]
    for position in range(len(content)):
        before = sum(end <= position for end in ends)
        assert list(iter_intact(memoryview(content[:position]), check=check)) == whole[:before]
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            found = list(iter_intact(memoryview(damaged), check=check))
            in_header = position - whole[before][0] < 12
            assert (
                found == whole[:before] if check or in_header else found[:before] == whole[:before]
            )
    assert list(iter_intact(memoryview(damaged))) == whole[:-1]


def test_an_absurd_length_with_a_right_crc_is_a_cut() -> None:
    """A length of 2**63 whose CRC is right is refused without reserving memory for it."""
    size = (1 << 63).to_bytes(8, "little")
    header = size + mask(crc32c(size)).to_bytes(4, "little")
    with pytest.raises(TruncatedError, match=f"{1 << 63:,} bytes"):
        _read(header + b"data")


@given(st.binary(max_size=200))
def test_random_bytes_raise_framing_errors_only(content: bytes) -> None:
    """Any bytes are records, a LengthError or a TruncatedError, and nothing else."""
    with contextlib.suppress(LengthError, TruncatedError):
        assert sum(len(record.data) + OVERHEAD for record in _read(content)) == len(content)


# sinks --------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(1, 25))
def test_whatever_the_kernel_takes_the_rest_follows(parts: list[bytes], most: int) -> None:
    """Writes of any size, at buffer edges and within buffers,
    empty buffers included, add up to the whole.
    """
    taken = bytearray()

    def writev(_: int, pending: Sequence[Buffer]) -> int:
        block = b"".join(pending)[:most]
        taken.extend(block)
        return len(block)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "writev", writev)
        write_all(-1, parts)
    assert bytes(taken) == b"".join(parts)
