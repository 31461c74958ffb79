"""print_problems: the first findings, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from imagenet_prep.cli.terminal import tell
from imagenet_prep.hints import Hint

if TYPE_CHECKING:
    from imagenet_prep.model import Problem

SHOWN_PROBLEMS = 20


def print_problems(problems: Sequence[Problem]) -> None:
    """Print the first problems, then each of their remedies once."""
    print_findings(problems)
    print_remedies(_first_of(problems))


def print_findings(problems: Sequence[Problem]) -> None:
    """Print the first problems, and the number of the others."""
    shown_problems = _first_of(problems)
    for problem in shown_problems:
        print_finding(problem, f"{problem.subject}: ")
    others = len(problems) - len(shown_problems)
    if others:
        tell(f"... and {others:,} more")


def print_finding(problem: Problem, subject: str) -> None:
    """Print a problem of a subject."""
    kind = problem.kind.value
    tell(f"{subject}{problem.detail}", lead=f"{kind}: ", colour="red")


def print_remedies(problems: Iterable[Problem]) -> None:
    """Print each remedy once."""
    remedies = dict.fromkeys(problem.remedy for problem in problems)
    for remedy in remedies:
        if remedy:
            tell(Hint("to do: ", remedy))


def _first_of(problems: Sequence[Problem]) -> Sequence[Problem]:
    """The problems to print: the first ones, and the last one if it is the only other:
    it may count for several.
    """
    if len(problems) == SHOWN_PROBLEMS + 1:
        return problems
    return problems[:SHOWN_PROBLEMS]
