"""status_of: the exit status of a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Verdict

PROBLEMS_FOUND = 3


def status_of(verdict: Verdict, set_aside: int = 0) -> int:
    """The exit status of a verdict, and of images that were set aside."""
    if set_aside or verdict.problems:
        return PROBLEMS_FOUND
    return 0
