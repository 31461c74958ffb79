"""Prints the progress of stages, and records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from imagenet_prep.cli.command_outcome import begin_lines, write_line
from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.hints import Hint

if TYPE_CHECKING:
    from imagenet_prep.stages.show import ShownRecord
    from imagenet_prep.stages.status import Status


def print_status(status: Status) -> None:
    """Print one line per stage, and the next command."""
    if status.running:
        tell(f"running: {status.running}")
    for stage in status.stages:
        columns = f"{stage.stage:10}{stage.state:12}"
        tell(Hint(columns, stage.detail), hang=22)
    tell(Hint("next: ", status.following))


def print_records(records: Iterable[ShownRecord]) -> int:
    """Print the features of records, one line each, and write each record as a line of JSON;
    returns the number of records.
    """
    count = 0
    begin_lines()
    for record in records:
        count += 1
        write_line(record.as_dict())
        say(*record.lines())
    return count
