"""find_share: the rank of this process and the number of ranks, by the variables of launchers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from imagenet_prep.errors import UsageError
from imagenet_prep.shards.share import Share
from imagenet_prep.text import beginning, parse_whole


class _Launcher(Struct, frozen=True):
    """The variables of a launcher: the index of a task, the number of tasks, the first and last
    index, and their step.

    Args:
        start: the first index, where no variable tells it.
        sign: the variable that shows the launcher; by default its index.
    """

    name: str
    index: str
    count: str = ""
    first: str = ""
    last: str = ""
    step: str = ""
    start: int = 0
    sign: str = ""

    @property
    def variables(self) -> list[str]:
        """All of them."""
        names = (self.index, self.first, self.last, self.step, self.count)
        return [name for name in names if name]

    @property
    def option(self) -> str:
        """How to write the rank of 16 by hand."""
        index = f"${self.index}"
        if self.start:
            index = f"$(({self.index} - {self.start}))"
        return f'--rank "{index}/16"'

    @property
    def expected(self) -> str:
        """The numbers that define a share."""
        if self.last:
            return "an array of several tasks without gaps, from 0 or 1"
        return f"{self.index} below {self.count}"

    def share(self, environment: Mapping[str, str]) -> Share | None:
        """The share that it defines, None if it did not start this process as one of several.

        Raises:
            UsageError: index or count are not known, or some tasks are missing.
        """
        if not self._has_started_one_of_several(environment):
            return None
        numbers = self._read_numbers(environment)
        share = self._share_of_numbers(numbers)
        if share is None:
            remedy = "start the array without gaps, from 0 or 1; or " if self.last else ""
            raise self._refusal(environment, f"expected {self.expected}", remedy)
        return share

    def _has_started_one_of_several(self, environment: Mapping[str, str]) -> bool:
        text = environment.get(self.sign or self.index, "")
        if text == "0" and self.start:
            return False
        return text not in ("", "undefined")

    def _read_numbers(self, environment: Mapping[str, str]) -> dict[str, int]:
        """The numbers in its variables, by their names; the step may be missing.

        Raises:
            UsageError: another one holds no number, or none of them gives the number of tasks.
        """
        numbers: dict[str, int] = {}
        unknown: list[str] = []
        for name in self.variables:
            if name == self.step and name not in environment:
                continue
            number = parse_whole(environment.get(name, ""))
            if number is None:
                unknown.append(name)
            else:
                numbers[name] = number
        if unknown:
            names = ", ".join(unknown)
            raise self._refusal(environment, f"expected a number in {names}")
        if not (self.count or self.last):
            raise self._refusal(environment, "no variable has the number of ranks")
        return numbers

    def _share_of_numbers(self, numbers: Mapping[str, int]) -> Share | None:
        """The share, None if the numbers contradict each other or tasks are missing."""
        index = numbers[self.index]
        step = numbers.get(self.step, 1)
        start = numbers.get(self.first, self.start)
        if start > 1 or index < start or step < 1:
            return None
        rank, remainder = divmod(index - start, step)
        world = (numbers[self.last] - start) // step + 1 if self.last else numbers[self.count]
        count = numbers.get(self.count, world)
        if remainder or rank >= world or count != world:
            return None
        if world == 1 and index > 0:
            return None  # one task of an array that is run again: it is not the whole set
        return Share(rank, world)

    def _refusal(self, environment: Mapping[str, str], reason: str, remedy: str = "") -> UsageError:
        settings = _settings_text([self], environment)
        return UsageError(
            f"--rank auto: the variables of {self.name} don't tell which rank of how many this is",
            f"{settings}; {reason}",
            f"{remedy}give the rank and the number of ranks; "
            f"for example, of 16 ranks counted from 0: {self.option}",
        )


_BY_HAND = "give the rank and the number of ranks, such as --rank 0/4 for the first of 4"

_TORCHRUN = _Launcher("torchrun", "RANK", "WORLD_SIZE")
"""Many launchers set these, and a script of any scheduler can."""

_ARRAYS = (
    _Launcher(
        "the Slurm job array",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        "SLURM_ARRAY_TASK_MIN",
        "SLURM_ARRAY_TASK_MAX",
        "SLURM_ARRAY_TASK_STEP",
    ),
    _Launcher(
        "Grid Engine",
        "SGE_TASK_ID",
        "",
        "SGE_TASK_FIRST",
        "SGE_TASK_LAST",
        "SGE_TASK_STEPSIZE",
        start=1,
    ),
    _Launcher("LSF", "LSB_JOBINDEX", last="LSB_JOBINDEX_END", step="LSB_JOBINDEX_STEP", start=1),
    _Launcher("PBS", "PBS_ARRAY_INDEX"),
    _Launcher("Torque", "PBS_ARRAYID"),
    _Launcher("Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    _Launcher("AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
    _Launcher("Google Batch", "BATCH_TASK_INDEX", "BATCH_TASK_COUNT"),
)
"""They start jobs, each of which may start several processes."""

_STEPS = (
    _Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", sign="SLURM_STEP_NUM_TASKS"),
    _Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    _Launcher("MPI", "PMI_RANK", "PMI_SIZE"),
)
"""They start the processes of a job. Slurm sets SLURM_PROCID also where srun did not."""


def find_share(environment: Mapping[str, str]) -> Share:
    """The share that the environment defines; index and count are both known, never guessed.

    ``RANK`` and ``WORLD_SIZE`` come first, unless they are 0 of 1. A job of an array may have
    several processes: then there are as many ranks as processes in all jobs.

    Raises:
        UsageError: it defines no share, or only a part of one, or two launchers disagree.
    """
    by_hand = None
    if all(map(environment.get, _TORCHRUN.variables)):
        by_hand = _TORCHRUN.share(environment)
    if by_hand is not None and by_hand.world > 1:
        return by_hand
    job = _agreed_share(_ARRAYS, environment)
    process = _agreed_share(_STEPS, environment)
    if not (by_hand or job or process):
        raise _no_share(environment)
    job = job or Share(0, 1)
    process = process or Share(0, 1)
    rank = job.rank * process.world + process.rank
    world = job.world * process.world
    return Share(rank, world)


def _no_share(environment: Mapping[str, str]) -> UsageError:
    """The error where no launcher defines a share."""
    problem = "--rank auto: no launcher gave this process a rank and a number of ranks"
    settings = _settings_text((_TORCHRUN, *_ARRAYS, *_STEPS), environment)
    rank = environment.get("SLURM_PROCID")
    if settings == f"found SLURM_PROCID={rank}":
        detail = f"{settings}, but no number of ranks: srun sets it in SLURM_STEP_NUM_TASKS"
        return UsageError(problem, detail, f"start it with srun, or {_BY_HAND}")
    return UsageError(
        problem,
        f"{settings}; expected RANK and WORLD_SIZE, or the variables of "
        "Slurm, MPI, Grid Engine, LSF, Kubernetes, AWS Batch or Google Batch",
        _BY_HAND,
    )


def _agreed_share(launchers: Sequence[_Launcher], environment: Mapping[str, str]) -> Share | None:
    """The share by those of the launchers that started this process;
    one that started it alone says nothing.
    """
    shares: list[Share] = []
    shares_of_several: dict[_Launcher, Share] = {}
    for launcher in launchers:
        share = launcher.share(environment)
        if share is None:
            continue
        shares.append(share)
        if share.world > 1:
            shares_of_several[launcher] = share
    different_shares = set(shares_of_several.values())
    if len(different_shares) > 1:
        names = " and ".join(launcher.name for launcher in shares_of_several)
        raise UsageError(
            f"--rank auto: {names} disagree about which rank of how many this is",
            _settings_text(shares_of_several, environment),
            _BY_HAND,
        )
    if different_shares:
        return different_shares.pop()
    return shares[0] if shares else None


def _settings_text(launchers: Iterable[_Launcher], environment: Mapping[str, str]) -> str:
    """The variables of the launchers that are set, with their values, for a message."""
    settings: list[str] = []
    for launcher in launchers:
        for name in launcher.variables:
            value = environment.get(name)
            if value:
                settings.append(f"{name}={beginning(value, 40)}")
    settings_text = ", ".join(settings) or "no variable that a launcher sets"
    return f"found {settings_text}"
