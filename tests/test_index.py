"""formats.index: the lines of both files, character by character."""

from __future__ import annotations

import pytest

from imagenet_prep.formats.index import encode_index, encode_listing


def test_an_index_has_offset_and_length() -> None:
    """A line a record, as NVIDIA DALI's tfrecord2idx writes it."""
    assert encode_index([0, 1234], [1234, 7]) == b"0 1234\n1234 7\n"
    assert encode_index([], []) == b""


def test_a_listing_has_eight_digits_and_the_name() -> None:
    """The CRC in small letters with its zeros, then the name as it stands."""
    crcs, names = [0, 0xBEEF, 0xFFFFFFFF], ["a.JPEG", "b c.png", "d/\u00e9.jpg"]
    assert encode_listing(crcs, names) == "00000000 a.JPEG\n0000beef b c.png\nffffffff d/\u00e9.jpg\n".encode()


def test_lists_of_different_lengths_are_no_index() -> None:
    """A record without a length, or without a name, is a bug and no shorter index."""
    with pytest.raises(ValueError, match="shorter"):
        encode_index([0, 1], [1])
    with pytest.raises(ValueError, match="shorter"):
        encode_listing([0, 1], ["a"])
