"""A count and a noun -> words: "1 shard", "1,024 shards"."""

from __future__ import annotations


def number_of(count: int, one: str, many: str = "") -> str:
    """How many there are of something; ``many`` where an s at the end of ``one`` does not make it."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
