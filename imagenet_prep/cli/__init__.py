"""The command line: options to one stage call, print, exit code. The only part that prints, prompts or exits.

Nothing heavy is imported before a command needs it: ``imagenet-prep --help`` loads click alone.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from types import FrameType

import click

from imagenet_prep.cli.commands import cli
from imagenet_prep.errors import PrepError, Terminated, WorkerError

INTERRUPTED, PIPE_CLOSED, TERMINATED = 130, 141, 143


def main() -> None:
    """Run the command line and exit with its status (docs/cli.md)."""
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)
    sys.exit(_status())


def _status() -> int:
    try:
        result = cli.main(prog_name="imagenet-prep", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except PrepError as error:
        _show(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _stopped(INTERRUPTED)
    except Terminated:
        return _stopped(TERMINATED)
    except BrokenPipeError:  # whoever read our output has gone: | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception:  # noqa: BLE001 - a bug of ours: say so, with all there is to report it
        traceback.print_exc()
        click.echo("This is a bug in imagenet-prep. Please report it with the lines above.", err=True)
        return 1


def _show(error: PrepError) -> None:
    click.secho("error: ", fg="red", nl=False, err=True)
    click.echo(str(error), err=True)
    if isinstance(error, WorkerError):
        click.echo("This is a bug in imagenet-prep. Please report it with the lines above.", err=True)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Stop in good order at the first signal, at once at the second."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, frame: os._exit(128 + number))
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _stopped(status: int) -> int:
    from imagenet_prep.cli.printing import program

    word = "interrupted" if status == INTERRUPTED else "terminated"
    command = shlex.join([program(), *sys.argv[1:]])
    click.echo(f"\n{word}; everything finished so far is kept. To go on:\n  {command}", err=True)
    return status
