"""find_rank: the rank of this process and the number of ranks, as they are known now."""

from __future__ import annotations

import os

import torch.distributed

from imagenet_prep.errors import UsageError
from imagenet_prep.torch.arguments import whole


def check_ranks(rank: int | None, world: int | None) -> tuple[int, int] | None:
    """The rank and world of a Loader's arguments; None, if it was given neither. Raises UsageError."""
    if rank is None and world is None:
        return None
    if rank is None or world is None:
        given, missing = ("world", "rank") if rank is None else ("rank", "world")
        what = f"Loader({given}={world if rank is None else rank})"
        raise UsageError(what, f"expected {missing} too, or neither: both come from torch.distributed then")
    rank, world = whole("Loader(rank=", rank, 0), whole("Loader(world=", world, 1)
    if rank >= world:
        raise UsageError(f"Loader(rank={rank}, world={world})", "expected a rank below world")
    return rank, world


def find_rank() -> tuple[int, int]:
    """The rank and world of torch.distributed's process group, or else of the environment, or else 0 of 1.

    Raises:
        UsageError: the environment contradicts the group or itself.
    """
    environment = _rank_in_environment()
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        if environment is None:
            return 0, 1
        rank, world = environment
        if rank is None and world > 1:
            hint = "call torch.distributed.init_process_group(), or give Loader rank and world"
            raise UsageError(f"WORLD_SIZE is {world} in the environment", "expected RANK beside it", hint)
        return rank or 0, world
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if environment is not None and (environment[1] != world or environment[0] not in (None, rank)):
        said = " ".join(
            f"{name}={value}"
            for name, value in zip(("RANK", "WORLD_SIZE"), environment, strict=True)
            if value is not None
        )
        what = f"torch.distributed says rank {rank} of {world}, the environment {said}"
        raise UsageError(what, "expected the same of both", "unset these variables, or give Loader rank and world")
    return rank, world


def _rank_in_environment() -> tuple[int | None, int] | None:
    """RANK, which may be missing, and WORLD_SIZE; None without WORLD_SIZE."""
    texts = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE") if os.environ.get(name)}
    if "WORLD_SIZE" not in texts:
        return None
    for name, text in texts.items():
        if not text.isdecimal():
            raise UsageError(f"{name} is {text!r} in the environment", "expected a number")
    rank, world = int(texts["RANK"]) if "RANK" in texts else None, int(texts["WORLD_SIZE"])
    if world < 1 or (rank is not None and rank >= world):
        raise UsageError(f"the environment has RANK={rank} WORLD_SIZE={world}", "expected a rank below the world")
    return rank, world
