"""refuse: a fault of one entry, raised; or collected into Obstacles by a
check that lists a whole copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Generic

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.model import Problem, ProblemKind, R, T
from imagenet_prep.text import number_of

MOST = 10_000
"""The number of faults that are kept; further ones are counted."""


class NoFilesError(InputError):
    """A source has no files; where a fault of its files was collected, that fault is the reason."""


class Obstacles(Struct):
    """The faults of a listing, how many more there are,
    and the entries that were skipped, as text and number.
    """

    problems: list[Problem] = []
    more: int = 0
    skipped: int = 0
    notes: list[str] = []

    def add(self, problem: Problem) -> None:
        """Keep a fault, or count it if there are too many."""
        if len(self.problems) < MOST:
            self.problems.append(problem)
        else:
            self.more += 1

    def listed(self, subject: str) -> Iterator[Problem]:
        """The faults, and those that are only counted as one more, about ``subject``."""
        yield from self.problems
        if self.more:
            detail = f"{number_of(self.more, 'more fault')} in this listing"
            yield Problem(ProblemKind.UNREADABLE, subject, detail, count=self.more)

    def extend(self, part: Obstacles) -> None:
        """Add those of one task."""
        for problem in part.problems:
            self.add(problem)
        self.more += part.more
        self.skipped += part.skipped
        self.notes += part.notes


_collected: ContextVar[Obstacles | None] = ContextVar("obstacles", default=None)


def collected() -> Obstacles | None:
    """The obstacles that are being collected; None if the first one is to be raised."""
    return _collected.get()


@contextlib.contextmanager
def collecting() -> Iterator[Obstacles]:
    """Collect what ``refuse`` would raise, so that a listing goes on past it."""
    obstacles = Obstacles()
    token = _collected.set(obstacles)
    try:
        yield obstacles
    finally:
        _collected.reset(token)


def problem_of(error: InputError, kind: ProblemKind, subject: str, **fields: str) -> Problem:
    """An error as a finding; ``fields`` are other ones of a Problem."""
    detail = ": ".join(filter(None, (error.what, error.detail)))
    return Problem(kind, subject, detail, error.hint, **fields)  # type: ignore[arg-type]


def refuse(
    error: InputError, kind: ProblemKind = ProblemKind.UNREADABLE, subject: str = "", **fields: str
) -> None:
    """Raise the fault of an entry, which then is no row of the listing;
    or collect it as a finding.
    """
    obstacles = _collected.get()
    if obstacles is None:
        raise error
    obstacles.add(problem_of(error, kind, subject, **fields))


def until_fault(rows: Iterator[T], subject: str) -> Iterator[T]:
    """The entries of an archive up to the place where it is damaged, which is refused."""
    try:
        yield from rows
    except InputError as error:
        refuse(error, ProblemKind.UNREADABLE, subject)


class Collecting(Struct, Generic[T, R], frozen=True):
    """Calls a function in a worker, and returns its value with the obstacles that it met;
    None for no value.
    """

    function: Callable[[T], R]

    def __call__(self, task: T) -> tuple[R | None, Obstacles]:
        """The value of a task and its obstacles."""
        with collecting() as obstacles:
            try:
                return self.function(task), obstacles
            except InputError as error:
                refuse(error)
                return None, obstacles
