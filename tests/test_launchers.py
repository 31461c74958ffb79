"""--rank auto by the variables of launchers: a rank and the number of ranks,
or a refusal that shows what was seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from imagenet_prep.cli.launchers import find_share
from imagenet_prep.errors import UsageError
from imagenet_prep.shards.share import Share

Variables = dict[str, object]


def array(task: int, first: int, last: int, count: int, step: int = 1) -> Variables:
    """The variables of a task of a Slurm job array."""
    names = ("ID", "MIN", "MAX", "COUNT", "STEP")
    return {
        f"SLURM_ARRAY_TASK_{name}": value
        for name, value in zip(names, (task, first, last, count, step), strict=True)
    }


def step(number: int, count: int) -> Variables:
    """The variables of a process that srun started."""
    return {"SLURM_PROCID": number, "SLURM_STEP_NUM_TASKS": count}


def grid(task: object, first: object, last: object, step: object = 1) -> Variables:
    """The variables of a task of Grid Engine."""
    return {
        "SGE_TASK_ID": task,
        "SGE_TASK_FIRST": first,
        "SGE_TASK_LAST": last,
        "SGE_TASK_STEPSIZE": step,
    }


def lsf(task: int, last: int) -> Variables:
    """The variables of an element of an LSF job array."""
    return {"LSB_JOBINDEX": task, "LSB_JOBINDEX_END": last, "LSB_JOBINDEX_STEP": 1}


IN_A_BATCH_SCRIPT: Variables = {"SLURM_PROCID": 0, "SLURM_NTASKS": 4}
"""Slurm sets them in a batch script, which is no step of several tasks."""

KNOWN: list[tuple[str, Variables, tuple[int, int]]] = [
    ("Slurm, --array=0-7", array(5, 0, 7, 8), (5, 8)),
    ("Slurm, --array=1-8", array(5, 1, 8, 8), (4, 8)),
    ("Slurm, --array=0-14:2", array(10, 0, 14, 8, step=2), (5, 8)),
    ("Slurm, --array=1-15:2", array(11, 1, 15, 8, step=2), (5, 8)),
    ("Slurm, --array=0", array(0, 0, 0, 1), (0, 1)),
    ("Slurm, an array, in the batch script", {**array(5, 0, 7, 8), **IN_A_BATCH_SCRIPT}, (5, 8)),
    ("Slurm, an array of steps", {**array(5, 0, 7, 8), **step(1, 4)}, (21, 32)),
    ("Slurm, an array of steps of one task", {**array(5, 0, 7, 8), **step(0, 1)}, (5, 8)),
    ("Slurm, an array of one, with steps", {**array(0, 0, 0, 1), **step(1, 4)}, (1, 4)),
    ("srun", step(3, 4), (3, 4)),
    ("srun, with PMI", {**step(3, 4), "PMI_RANK": 3, "PMI_SIZE": 4}, (3, 4)),
    (
        "Slurm, an array of steps with PMI",
        {**array(5, 0, 7, 8), **step(1, 4), "PMI_RANK": 1, "PMI_SIZE": 4},
        (21, 32),
    ),
    ("torchrun", {"RANK": 2, "WORLD_SIZE": 3}, (2, 3)),
    ("torchrun, in a step", {"RANK": 2, "WORLD_SIZE": 8, **step(0, 2)}, (2, 8)),
    (
        "torchrun of one process, in an array",
        {"RANK": 0, "WORLD_SIZE": 1, **array(5, 0, 7, 8)},
        (5, 8),
    ),
    ("RANK alone, in an array", {"RANK": 2, **array(5, 0, 7, 8)}, (5, 8)),
    ("WORLD_SIZE alone, in a step", {"WORLD_SIZE": 4, **step(3, 4)}, (3, 4)),
    ("Open MPI", {"OMPI_COMM_WORLD_RANK": 3, "OMPI_COMM_WORLD_SIZE": 4}, (3, 4)),
    (
        "Open MPI in a Slurm array",
        {**array(1, 0, 1, 2), "OMPI_COMM_WORLD_RANK": 3, "OMPI_COMM_WORLD_SIZE": 4},
        (7, 8),
    ),
    (
        "Open MPI in a shell of srun",
        {**step(0, 1), "OMPI_COMM_WORLD_RANK": 3, "OMPI_COMM_WORLD_SIZE": 4},
        (3, 4),
    ),
    ("MPICH, Intel MPI", {"PMI_RANK": 0, "PMI_SIZE": 4}, (0, 4)),
    ("Grid Engine, -t 1-16", grid(16, 1, 16), (15, 16)),
    ("Grid Engine, -t 1-31:2", grid(31, 1, 31, 2), (15, 16)),
    (
        "srun on Grid Engine's words for no array",
        {**grid("undefined", "undefined", "undefined"), **step(3, 4)},
        (3, 4),
    ),
    ("LSF, [1-16]", lsf(16, 16), (15, 16)),
    (
        "LSF, no array, with Open MPI",
        {**lsf(0, 0), "OMPI_COMM_WORLD_RANK": 1, "OMPI_COMM_WORLD_SIZE": 2},
        (1, 2),
    ),
    ("Kubernetes", {"JOB_COMPLETION_INDEX": 3, "JOB_COMPLETIONS": 16}, (3, 16)),
    ("AWS Batch", {"AWS_BATCH_JOB_ARRAY_INDEX": 3, "AWS_BATCH_JOB_ARRAY_SIZE": 16}, (3, 16)),
    ("Google Batch", {"BATCH_TASK_INDEX": 3, "BATCH_TASK_COUNT": 16}, (3, 16)),
]


@pytest.mark.parametrize(
    ("variables", "expected"), [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN]
)
def test_the_rank_by_a_launcher(variables: Variables, expected: tuple[int, int]) -> None:
    """Index and count are both known."""
    assert find_share(as_text(variables)) == Share(*expected)


def without(variables: Variables, *names: str) -> Variables:
    """The variables but some."""
    return {name: value for name, value in variables.items() if name not in names}


SLURM_LINE = '--rank "$SLURM_ARRAY_TASK_ID/16"'
SGE_LINE = '--rank "$((SGE_TASK_ID - 1))/16"'
UNKNOWN: list[tuple[str, Variables, str, str]] = [
    ("nothing", {}, "no launcher", "--rank 0/4"),
    ("WORLD_SIZE alone", {"WORLD_SIZE": 4}, "no launcher", "--rank 0/4"),
    ("a batch script of Slurm", IN_A_BATCH_SCRIPT, "but no number of ranks: srun", "with srun, or"),
    ("Slurm, --array=7", array(7, 7, 7, 1), "SLURM_ARRAY_TASK_MIN=7", SLURM_LINE),
    ("Slurm, --array=1", array(1, 1, 1, 1), "SLURM_ARRAY_TASK_COUNT=1", SLURM_LINE),
    ("Slurm, --array=3,4", array(3, 3, 4, 2), "SLURM_ARRAY_TASK_MIN=3", SLURM_LINE),
    ("Slurm, --array=0,3,5", array(3, 0, 5, 3), "SLURM_ARRAY_TASK_MAX=5", SLURM_LINE),
    ("Slurm, --array=1,8", array(8, 1, 8, 2), "SLURM_ARRAY_TASK_COUNT=2", SLURM_LINE),
    ("Slurm, an index alone", {"SLURM_ARRAY_TASK_ID": 3}, "SLURM_ARRAY_TASK_COUNT", SLURM_LINE),
    (
        "Slurm, an index and a step",
        {"SLURM_ARRAY_TASK_ID": 3, **step(0, 2)},
        "SLURM_ARRAY_TASK_COUNT",
        SLURM_LINE,
    ),
    (
        "Slurm, no count",
        without(array(5, 0, 7, 8), "SLURM_ARRAY_TASK_COUNT"),
        "SLURM_ARRAY_TASK_MAX=7",
        SLURM_LINE,
    ),
    (
        "Slurm, no first",
        without(array(5, 0, 7, 8), "SLURM_ARRAY_TASK_MIN"),
        "SLURM_ARRAY_TASK_MAX=7",
        SLURM_LINE,
    ),
    ("Slurm, above the count", array(9, 0, 7, 8), "SLURM_ARRAY_TASK_ID=9", SLURM_LINE),
    ("Slurm, a step between", array(3, 0, 14, 8, step=2), "SLURM_ARRAY_TASK_STEP=2", SLURM_LINE),
    ("Slurm, no step", array(3, 0, 14, 8, step=0), "SLURM_ARRAY_TASK_STEP=0", SLURM_LINE),
    (
        "Slurm, no number",
        {**array(3, 0, 7, 8), "SLURM_ARRAY_TASK_ID": "x"},
        "SLURM_ARRAY_TASK_ID=x",
        SLURM_LINE,
    ),
    (
        "srun without a number",
        {"SLURM_STEP_NUM_TASKS": 4},
        "SLURM_PROCID",
        '--rank "$SLURM_PROCID/16"',
    ),
    ("srun, above the count", step(4, 4), "SLURM_PROCID=4", '--rank "$SLURM_PROCID/16"'),
    ("RANK alone", {"RANK": 2}, "RANK=2", "--rank 0/4"),
    ("RANK of too few", {"RANK": 3, "WORLD_SIZE": 3}, "RANK below WORLD_SIZE", '--rank "$RANK/16"'),
    (
        "RANK of too many digits",
        {"RANK": "9" * 4301, "WORLD_SIZE": 3},
        f"RANK={'9' * 40}..., WORLD_SIZE=3; expected a number in RANK",
        '--rank "$RANK/16"',
    ),
    ("RANK of none", {"RANK": 0, "WORLD_SIZE": 0}, "WORLD_SIZE=0", '--rank "$RANK/16"'),
    (
        "Open MPI",
        {"OMPI_COMM_WORLD_RANK": 3},
        "OMPI_COMM_WORLD_RANK=3",
        '--rank "$OMPI_COMM_WORLD_RANK/16"',
    ),
    ("PMI", {"PMI_RANK": -1, "PMI_SIZE": 4}, "PMI_RANK=-1", '--rank "$PMI_RANK/16"'),
    (
        "two of MPI that differ",
        {**step(0, 2), "PMI_RANK": 3, "PMI_SIZE": 8},
        "PMI_RANK=3",
        "--rank 0/4",
    ),
    (
        "two arrays that differ",
        {**array(5, 0, 7, 8), **grid(2, 1, 4)},
        "SGE_TASK_ID=2",
        "--rank 0/4",
    ),
    ("Grid Engine, -t 7", grid(7, 7, 7), "SGE_TASK_FIRST=7", SGE_LINE),
    ("Grid Engine, -t 1", grid(1, 1, 1), "SGE_TASK_LAST=1", SGE_LINE),
    ("Grid Engine, an index alone", {"SGE_TASK_ID": 3}, "SGE_TASK_LAST", SGE_LINE),
    (
        "LSF, an index alone",
        {"LSB_JOBINDEX": 3},
        "LSB_JOBINDEX_END",
        '--rank "$((LSB_JOBINDEX - 1))/16"',
    ),
    ("LSF, [1]", lsf(1, 1), "LSB_JOBINDEX_END=1", '--rank "$((LSB_JOBINDEX - 1))/16"'),
    ("PBS Pro", {"PBS_ARRAY_INDEX": 3}, "PBS_ARRAY_INDEX=3", '--rank "$PBS_ARRAY_INDEX/16"'),
    ("Torque", {"PBS_ARRAYID": 3}, "PBS_ARRAYID=3", '--rank "$PBS_ARRAYID/16"'),
    (
        "Kubernetes",
        {"JOB_COMPLETION_INDEX": 3},
        "JOB_COMPLETIONS",
        '--rank "$JOB_COMPLETION_INDEX/16"',
    ),
    (
        "Kubernetes, above the count",
        {"JOB_COMPLETION_INDEX": 5, "JOB_COMPLETIONS": 3},
        "expected JOB_COMPLETION_INDEX below JOB_COMPLETIONS",
        '--rank "$JOB_COMPLETION_INDEX/16"',
    ),
    (
        "two arrays of other lengths",
        {**array(0, 0, 7, 8), "JOB_COMPLETION_INDEX": 0, "JOB_COMPLETIONS": 4},
        "disagree about which rank of how many this is",
        "--rank 0/4",
    ),
    (
        "AWS Batch",
        {"AWS_BATCH_JOB_ARRAY_INDEX": 3},
        "JOB_ARRAY_SIZE",
        '--rank "$AWS_BATCH_JOB_ARRAY_INDEX/16"',
    ),
    ("Google Batch", {"BATCH_TASK_INDEX": 3}, "BATCH_TASK_COUNT", '--rank "$BATCH_TASK_INDEX/16"'),
]


@pytest.mark.parametrize(
    ("variables", "seen", "line"), [case[1:] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN]
)
def test_a_launcher_that_does_not_say_enough(variables: Variables, seen: str, line: str) -> None:
    """Refused rather than guessed, with the variables that were seen and the line to write."""
    with pytest.raises(UsageError) as caught:
        find_share(as_text(variables))
    shown = f"{caught.value.what} {caught.value.detail}"
    assert seen in shown
    assert line in caught.value.hint
    assert not [
        name
        for name in variables
        if name.startswith(("SLURM_ARRAY", "SGE", "LSB")) and name not in shown
    ]


@pytest.mark.parametrize("variables", [array(3, 3, 9, 7), array(0, 0, 5, 3), grid(7, 7, 9)])
def test_an_array_that_gives_no_rank_is_started_again(variables: Variables) -> None:
    """Its indexes are no ranks, so the line to write alone would leave shards out."""
    with pytest.raises(UsageError) as caught:
        find_share(as_text(variables))
    assert caught.value.hint.startswith("start the array without gaps, from 0 or 1; or ")


def as_text(variables: Variables) -> dict[str, str]:
    """An environment."""
    return {name: str(value) for name, value in variables.items()}


def test_an_array_of_one_task_is_not_the_whole_set(tmp_path: Path) -> None:
    """As Slurm runs --array=7: status 2, three lines, and nothing is written."""
    command = [
        sys.executable,
        "-m",
        "imagenet_prep",
        "convert",
        str(tmp_path / "data"),
        "--rank",
        "auto",
    ]
    environment = {**os.environ, **as_text(array(7, 7, 7, 1))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "SLURM_ARRAY_TASK_ID=7" in done.stderr
    assert SLURM_LINE in done.stderr
    assert not (tmp_path / "data").exists()
