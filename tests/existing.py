"""Files found by a pattern, never none: a loop over nothing would prove nothing."""

from __future__ import annotations

from pathlib import Path


def existing(folder: Path, pattern: str) -> list[Path]:
    """All paths below ``folder`` that match, in order.
    Where there may be none, ``list(folder.glob(...))`` says so.
    """
    paths = sorted(folder.glob(pattern))
    assert paths, f"nothing in {folder} matches {pattern}"
    return paths
