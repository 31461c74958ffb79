"""CommandOutcome: what a command returns: its figures and exit status -> the JSON of --json.

The JSON of every command has the same outline: ``command``, ``version``, ``exit_status``,
``error``, ``seconds``, then the figures of the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from imagenet_prep.cli.conversation import Conversation, conversation, json_text
from imagenet_prep.cli.terminal import print_json
from imagenet_prep.errors import PrepError


class CommandOutcome(NamedTuple):
    """The outcome of a call.

    Args:
        figures: the keys of this command, JSON-ready.
        status: the exit status.
        error: the ``error_facts`` of the error that ended it; None if none did.
    """

    figures: Mapping[str, Any] = {}
    status: int = 0
    error: Mapping[str, Any] | None = None


def error_facts(error: PrepError) -> dict[str, Any]:
    """An error as JSON-ready values."""
    choices = [str(choice) for choice in error.choices]
    return describe_error(
        type(error).__name__, error.what, str(error.detail), str(error.hint), choices
    )


def describe_error(
    name: str, what: str, detail: str = "", hint: str = "", choices: list[str] | None = None
) -> dict[str, Any]:
    """The value of ``error``; all its keys are always there."""
    return {
        "type": name,
        "what": what,
        "detail": detail,
        "hint": hint,
        "choices": choices or [],
    }


def set_figures(outcome: CommandOutcome) -> dict[str, Any]:
    """The outcome of one of several sets of a folder."""
    return {"exit_status": outcome.status, "error": outcome.error, **outcome.figures}


def conclude(outcome: CommandOutcome) -> None:
    """Write the outcome to the file of --json, once.

    Raises:
        PrepError, OSError: the JSON can't be written.
        ReaderGoneError: the reader of standard output has exited.
    """
    call = conversation()
    if not call.is_concluded:
        call.is_concluded = True
        _write_outcome(call, outcome)


def begin_lines() -> None:
    """Replace the file of --json by an empty one, for a line of each record."""
    call = conversation()
    if call.json_file is not None and not call.has_json_output and call.lines is None:
        call.lines = call.json_file.open("w")


def write_line(value: Mapping[str, Any]) -> None:
    """Write a line of JSON where --json says."""
    call = conversation()
    begin_lines()
    if call.has_json_output:
        print_json(json_text(value))
    elif call.lines is not None:
        call.lines.write(f"{json_text(value)}\n")


def _write_outcome(call: Conversation, outcome: CommandOutcome) -> None:
    if call.json_file is None or (call.writes_lines and outcome.error is None):
        return
    from imagenet_prep.version import describe_version

    outline = {
        "command": call.command,
        "version": describe_version(),
        "exit_status": outcome.status,
        "error": outcome.error,
        "seconds": call.seconds,
        **outcome.figures,
    }
    if call.writes_lines:
        write_line(outline)
    elif call.has_json_output:
        print_json(*json_text(outline, indent=2).split("\n"))
    else:
        from imagenet_prep.storage.files import save_json

        save_json(call.json_file, outline)
