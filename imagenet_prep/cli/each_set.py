"""each_set: does the work of a command for each set of a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.cli.command_outcome import CommandOutcome, error_facts, set_figures
from imagenet_prep.cli.terminal import say, show_error
from imagenet_prep.errors import InputError, PrepError
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath


class SetWork(Struct, frozen=True):
    """The work of a command on one set, or on one file.

    Args:
        do: does it; returns its summary.
        show: prints the summary.
        figures: the figures of the summary, for --json.
        status_of: the exit status that the summary asks for.
    """

    do: Callable[[Any], Any]
    show: Callable[[Any], None]
    figures: Callable[[Any], dict[str, Any]]
    status_of: Callable[[Any], int] = lambda _: 0

    def outcome_of(self, place: Layout | AnyPath) -> CommandOutcome:
        """Do the work, and print its summary."""
        summary = self.do(place)
        self.show(summary)
        return CommandOutcome(self.figures(summary), self.status_of(summary))


def each_set(place: Layout | AnyPath, work: SetWork, *, has_heads: bool = True) -> CommandOutcome:
    """Do the work for each set of the folder, headed by its name if there are several;
    the worst exit status.
    """
    layouts = _sets_at(place)
    if len(layouts) > 1:
        return _each_of_several(layouts, work, has_heads=has_heads)
    return work.outcome_of(layouts[0] if layouts else place)


def _each_of_several(
    layouts: Sequence[Layout], work: SetWork, *, has_heads: bool
) -> CommandOutcome:
    """Do the work for each set; an error of one is printed, and the others follow."""
    outcomes = {}
    for layout in layouts:
        if has_heads:
            say(f"{layout.set_name or 'without a prefix'}:")
        try:
            outcome = work.outcome_of(layout)
        except PrepError as error:
            show_error(error)
            outcome = CommandOutcome(status=error.exit_code, error=error_facts(error))
        outcomes[layout.set_name] = outcome
    by_set = {name: set_figures(outcome) for name, outcome in outcomes.items()}
    return CommandOutcome({"sets": by_set}, max(outcome.status for outcome in outcomes.values()))


def _sets_at(place: Layout | AnyPath) -> Sequence[Layout]:
    """The sets of a folder; none for a file, or a folder that can't be listed."""
    if isinstance(place, Layout):
        with contextlib.suppress(InputError, OSError):  # the work meets the same error and reports it
            return place.sets()
    return ()
