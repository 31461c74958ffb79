"""check_rank: a rank and the number of ranks from arguments.
rank_in_environment: those of RANK and WORLD_SIZE.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Mapping
from typing import NamedTuple

from imagenet_prep.errors import UsageError
from imagenet_prep.text import MOST_DIGITS, parse_whole

_LEAST = {"RANK": 0, "WORLD_SIZE": 1}
"""The variables, and the least number that each can be."""


class EnvironmentRank(NamedTuple):
    """RANK, None where it is not set, and WORLD_SIZE."""

    rank: int | None
    world: int

    def __str__(self) -> str:
        rank = "" if self.rank is None else f"RANK={self.rank} "
        return f"{rank}WORLD_SIZE={self.world}"


def check_rank(call: str, rank: int | None, world: int | None) -> tuple[int, int] | None:
    """The rank and world that ``call`` was given; None, if it was given neither.

    Raises:
        UsageError: one comes without the other, or they are no whole numbers with the rank below
            the world.
    """
    if rank is None and world is None:
        return None
    if rank is not None and world is not None:
        with contextlib.suppress(TypeError):  # one is no whole number
            if 0 <= operator.index(rank) < operator.index(world):
                return operator.index(rank), operator.index(world)
    raise UsageError(
        f"{call}(rank={rank!r}, world={world!r})",
        "expected two whole numbers with 0 <= rank < world",
    )


def _check_numbers(texts: Mapping[str, str]) -> None:
    """Refuse variables that are no whole numbers from their least one up; empty ones count as not
    set.
    """
    for name, text in texts.items():
        least = _LEAST[name]
        if len(text) > MOST_DIGITS:
            raise UsageError(
                f"{name} has {len(text):,} characters in the environment",
                f"expected a whole number of at most {MOST_DIGITS} digits",
            )
        number = parse_whole(text)
        if text and (number is None or number < least):
            raise UsageError(
                f"{name} is {text!r} in the environment", f"expected a whole number from {least} up"
            )


def rank_in_environment() -> EnvironmentRank | None:
    """RANK and WORLD_SIZE of the environment; None without WORLD_SIZE.

    Raises:
        UsageError: one is no number, or the rank is not below the world.
    """
    texts = {name: os.environ.get(name, "") for name in _LEAST}
    if not texts["WORLD_SIZE"]:
        return None
    _check_numbers(texts)
    rank, world = int(texts["RANK"] or 0), int(texts["WORLD_SIZE"])
    in_environment = EnvironmentRank(rank if texts["RANK"] else None, world)
    if rank >= world:
        raise UsageError(
            f"the environment has {in_environment}", "expected a RANK below WORLD_SIZE"
        )
    return in_environment
