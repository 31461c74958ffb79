"""in_order, what tasks give in the order of the tasks, whichever worker is done first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic

from imagenet_prep.model import Engine, Failed, R, T


def in_order(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """What ``function`` gives for each task; the first failure is raised. What comes early waits in memory."""
    early: dict[int, R] = {}
    following = 0
    for outcome in engine.map(_Numbered(function), enumerate(tasks)):
        if isinstance(outcome, Failed):
            raise outcome.error
        early[outcome.task[0]] = outcome.value
        while following in early:
            yield early.pop(following)
            following += 1


@dataclass(frozen=True, slots=True)
class _Numbered(Generic[T, R]):
    """Calls a function with the task of a number; picklable if that is."""

    function: Callable[[T], R]

    def __call__(self, task: tuple[int, T]) -> R:
        return self.function(task[1])
