"""A count and its noun."""

from __future__ import annotations

import pytest

from imagenet_prep.text import number_of


@pytest.mark.parametrize(
    ("count", "nouns", "words"),
    [
        (0, ["shard"], "0 shards"),
        (1, ["shard"], "1 shard"),
        (1024, ["train shard"], "1,024 train shards"),
        (1, ["shard was", "shards were"], "1 shard was"),
        (2, ["box", "boxes"], "2 boxes"),
    ],
)
def test_one_is_not_many(count: int, nouns: list[str], words: str) -> None:
    """One of something, or any other number of them."""
    assert number_of(count, *nouns) == words
