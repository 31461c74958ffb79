"""What a scheduler's environment says of a job array: which rank this process is, and of how many."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from imagenet_prep.errors import UsageError
from imagenet_prep.shards.share import Share


class _Array(NamedTuple):
    """The variables of a scheduler's job arrays: this task's number, the first and the last one, and the step.

    ``begins``: the number that the first task of every array has, if nothing else is said.
    """

    number: str
    begins: int = 0
    first: str = ""
    last: str = ""
    step: str = ""


_ARRAYS = (
    _Array("SLURM_ARRAY_TASK_ID", 0, "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"),
    _Array("PBS_ARRAY_INDEX"),
    _Array("PBS_ARRAYID"),
    _Array("SGE_TASK_ID", 1, "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"),
    _Array("LSB_JOBINDEX", 1, "", "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP"),
    _Array("JOB_COMPLETION_INDEX"),
)
_COUNTED = "SLURM_ARRAY_TASK_COUNT"
_STEP = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
"""Of a process that srun started. SLURM_NTASKS is set in a batch script too, which runs once."""


def find_share(rank: str | None, world: int | None, environment: Mapping[str, str] = os.environ) -> Share | None:
    """The share that options ask for; None without a rank. With the rank "auto" the environment tells it.

    Raises:
        UsageError: a number is missing, or can't be.
    """
    if rank is None:
        if world is not None:
            raise UsageError(f"--world-size {world} without --rank", "expected both", "give --rank R, or --rank auto")
        return None
    if rank == "auto":
        return _of_environment(world, environment)
    if world is None:
        raise UsageError(f"--rank {rank} without --world-size", "expected how many ranks there are", "give both")
    return Share(int(rank), world)


def _of_environment(world: int | None, environment: Mapping[str, str]) -> Share:
    array = next((each for each in _ARRAYS if (environment.get(each.number) or "").isdigit()), None)
    tasks = _number(environment, _STEP[1])
    if array is not None and array.number == "LSB_JOBINDEX" and environment[array.number] == "0":
        array = None  # LSF's for a job that is no array
    if array is None and tasks is None:
        raise UsageError(
            "--rank auto: no job array is known here",
            f"expected one of {', '.join(each.number for each in _ARRAYS)}, or {_STEP[0]} of srun",
            "give --rank R and --world-size W",
        )
    rank, count = (0, 1) if array is None else _of_array(array, world, environment)
    if tasks is not None and tasks > 1:  # several in each job of the array, if there is one
        rank, count = rank * tasks + (_number(environment, _STEP[0]) or 0), count * tasks
    return Share(rank, count if world is None else world)


def _of_array(array: _Array, world: int | None, environment: Mapping[str, str]) -> tuple[int, int]:
    """Rank and number of ranks by an array's variables. With ``world`` given, tasks are counted as arrays usually are:

    some of them may be run again, and have the numbers that they had.
    """
    number = int(environment[array.number])
    if world is not None:
        return number - array.begins, world
    last = _number(environment, array.last)
    if last is None:
        raise UsageError(
            f"--rank auto: {array.number} is {number}, and nothing says how many there are",
            "expected --world-size W beside it",
            f"give it: one more than the largest {array.number}",
        )
    first, step = _number(environment, array.first) or array.begins, _number(environment, array.step) or 1
    count = (last - first) // step + 1
    counted = _number(environment, _COUNTED) if array.number.startswith("SLURM") else None
    if counted not in (None, count):
        raise UsageError(
            f"--rank auto: the array has {counted} tasks, numbered from {first} to {last} with gaps",
            "expected all of them, or --world-size W beside it",
            "give the number of ranks that the array had at first",
        )
    return (number - first) // step, count


def _number(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name, "") if name else ""
    return int(value) if value.isdigit() else None
