"""Indexes of shards: the lines of both files, character by character."""

from __future__ import annotations

import hashlib
import struct
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.tfrecord.framing import (
    OVERHEAD,
    Index,
    decode,
    decode_index,
    encode_index,
    encode_listing,
)


def test_an_index_has_offset_and_length() -> None:
    """A line a record, as NVIDIA DALI's tfrecord2idx writes it."""
    assert encode_index([0, 1234], [1234, 7]) == b"0 1234\n1234 7\n"
    assert encode_index([], []) == b""


def test_a_listing_has_eight_digits_and_the_name() -> None:
    """The CRC in small letters with its zeros, then the name as it stands."""
    crcs, names = [0, 0xBEEF, 0xFFFFFFFF], ["a.JPEG", "b c.png", "d/\u00e9.jpg"]
    assert (
        encode_listing(crcs, names)
        == "00000000 a.JPEG\n0000beef b c.png\nffffffff d/\u00e9.jpg\n".encode()
    )


def test_lists_of_different_lengths_are_no_index() -> None:
    """A record without a length, or without a name, is a bug and no shorter index."""
    with pytest.raises(ValueError, match="shorter"):
        encode_index([0, 1], [1])
    with pytest.raises(ValueError, match="shorter"):
        encode_listing([0, 1], ["a"])


@given(st.lists(st.integers(16, 1 << 40)))
def test_an_index_is_read_back(lengths: list[int]) -> None:
    """The offset of each record, and that of the end."""
    offsets = list(accumulate(lengths, initial=0))
    found = decode_index(encode_index(offsets[:-1], lengths))
    assert list(found) == offsets


@pytest.mark.parametrize(
    "content",
    [
        b"0 20\n21 20\n",
        b"1 20\n",
        b"0 20\n20\n",
        b"0 x\n",
        b"\xff\xfe",
        b"0 -1\n",
        b"0 99999999999999999999\n",
        b"0 18446744073709551615\n18446744073709551615 1\n",
    ],
)
def test_what_leaves_a_gap_is_no_index(content: bytes) -> None:
    """Records that don't follow one another, and anything but numbers."""
    assert decode_index(content) is None


NAMED = Index([0, OVERHEAD], [OVERHEAD, 20], [0, 0xFFFFFFFF], [" two  words", "\u2028"])


def test_both_files_are_read_back_as_they_are_written() -> None:
    """Names may hold blanks and other separators; anything but the bytes of encode is no index."""
    offsets, listing = NAMED.encode()
    assert decode(offsets, listing) == NAMED
    changed = (
        (offsets + b"36 20\n", listing),
        (offsets.replace(b" ", b"  "), listing),
        (offsets.replace(b"0 16\n16", b"0 15\n15"), listing),
        (offsets, listing.replace(b"ffffffff", b"FFFFFFFF")),
        (offsets, listing.replace(b"ffffffff", b"1ffffffff")),
        (offsets, listing + b"x"),
    )
    assert [decode(*files) for files in changed] == [None] * len(changed)


def test_the_digest_of_a_shard() -> None:
    """SHA-256 over length and masked CRC of each record's data."""
    assert NAMED.digest == hashlib.sha256(struct.pack("<QIQI", 0, 0, 4, 0xFFFFFFFF)).hexdigest()
