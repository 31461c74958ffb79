"""Parts of paths: files counted by their endings."""

from __future__ import annotations

import pytest

from imagenet_prep.recipes.path_parts import counted


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.gif", "b.GIF", "c.webp"], "2 .gif, 1 .webp"),
        ([f"a.{number}" for number in range(9)][::-1], ", 1 other"),
        ([f"a.{number}" for number in range(10)], ", 2 others"),
    ],
)
def test_files_are_counted_by_type(names: list[str], words: str) -> None:
    """The most frequent types, then how many files are of others."""
    assert counted(names).endswith(words)
