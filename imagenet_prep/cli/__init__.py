"""The command line: options to one stage call, print, exit code. The only part that prints, prompts or exits.

Nothing heavy is imported before a command needs it: ``imagenet-prep --help`` loads click alone.
"""

from __future__ import annotations

import io
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file's name need not be UTF-8, and is printed as it is
            stream.reconfigure(errors="surrogateescape")
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
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        from imagenet_prep.cli.system import as_error

        known = as_error(error)
        if known is None:
            return _bug()
        _show(known)
        if error.filename is None:
            _drop_output()
        return known.exit_code
    except Exception:  # noqa: BLE001 - a bug of ours: say so, with all there is to report it
        return _bug()


def _bug() -> int:
    traceback.print_exc()
    click.echo("This is a bug in imagenet-prep. Please report it with the lines above.", err=True)
    return 1


def _drop_output() -> None:
    """Let what is still to be written go nowhere: Python would try it once more at its end, and complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(error: PrepError) -> None:
    from imagenet_prep.cli.printing import to_copy

    click.secho("error: ", fg="red", nl=False, err=True)
    click.echo(to_copy(str(error)), err=True)
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
