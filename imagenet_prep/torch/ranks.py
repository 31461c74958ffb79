"""find_rank: the rank of this process and the number of ranks, as they are known now."""

from __future__ import annotations

import sys
from types import FrameType

import torch.distributed

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.environment import rank_in_environment


def find_rank() -> tuple[int, int]:
    """The rank and world of torch.distributed's process group; otherwise of the environment, or 0
    of 1.

    Raises:
        UsageError: the environment contradicts the group, or has WORLD_SIZE alone.
    """
    environment = rank_in_environment()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
        if environment is not None and (
            environment.world != world or environment.rank not in (None, rank)
        ):
            raise UsageError(
                f"torch.distributed has rank {rank} of {world}, the environment {environment}",
                "expected the same in both",
                "unset these variables, or give Loader rank and world",
            )
        return rank, world
    if environment is None:
        return 0, 1
    if environment.rank is None and environment.world > 1:
        hint = "call torch.distributed.init_process_group() before, or give Loader rank and world"
        raise UsageError(
            f"the environment has {environment}", "expected RANK too, or a process group", hint
        )
    return environment.rank or 0, environment.world


def is_divided_by_accelerate() -> bool:
    """Whether accelerate's classes that divide batches among ranks called:
    nobody else divides another's batches.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            caller = type(frame.f_locals.get("self")).__name__
            if caller in ("BatchSamplerShard", "DataLoaderDispatcher"):
                return True
        frame = frame.f_back
    return False
