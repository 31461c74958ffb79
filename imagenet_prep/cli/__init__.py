"""The command line: options to one stage call, print, exit code. The only part that prints, prompts or exits.

Nothing heavy is imported before a command needs it: ``imagenet-prep --help`` loads click alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import warnings
from types import FrameType

import click

from imagenet_prep import __version__
from imagenet_prep.cli.terminal import Bars, ReaderGoneError, prepare_streams, say, tell
from imagenet_prep.errors import NOTHING_KEPT, PrepError, Terminated, WorkerError
from imagenet_prep.escaping import rerun, traced

INTERRUPTED, PIPE_CLOSED, TERMINATED = 130, 141, 143

ANEW = frozenset(("annotate", "diff", "init", "report", "show", "status", "verify"))
"""The commands that begin again from the start when they are stopped."""

_BUG = "This is a bug in imagenet-prep. Please report it with the lines above."


COMMANDS = {
    "run": "every stage that is needed, in order",
    "download": "fetch the archives, with your credentials",
    "untar": "make image folders; convert needs none",
    "annotate": "bounding boxes: from the archive to a CSV",
    "init": "propose a recipe for a folder of your own",
    "convert": "images to shards",
    "merge": "finish a set that ranks have made",
    "verify": "prove the shards right, or say what is wrong",
    "repair": "make again what is wrong or missing",
    "diff": "which records of two sets differ, and how",
    "status": "how far each stage has come, and what is next",
    "report": "a page to look at: totals, charts, images",
    "show": "the records of any TFRecord file, readable",
    "export": "the same records in another container",
    "demo": "all of it on a small ImageNet, without an account",
    "completion": "let your shell complete commands and options",
}
"""What each command does, in the order of work."""


class _Commands(click.Group):
    """The command line, whose commands are loaded when one of them is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them."""
        from imagenet_prep.cli import commands

        return commands.cli.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="imagenet-prep")
def cli() -> None:
    """ImageNet (ILSVRC2012) as TFRecord shards: download, untar, annotate, convert, verify.

    Each command can be run alone, stopped at any moment, and run again: it does what is missing.

    \b
    Try it without an account:   imagenet-prep demo demo-data
    The real thing:              imagenet-prep run DATA_DIR
    """


def main() -> None:
    """Run the command line and exit with its status (docs/cli.md)."""
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's import would start a spinning thread for every core
    prepare_streams()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # of libraries, to whoever calls them: what matters to a user is said by us
    try:
        status = _status()
    except ReaderGoneError:
        status = PIPE_CLOSED
    sys.exit(status)


def _status() -> int:
    try:
        result = cli.main(prog_name="imagenet-prep", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except PrepError as error:
        _show(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        return _stopped(INTERRUPTED, stop)
    except Terminated as stop:
        return _stopped(TERMINATED, stop)
    except OSError as error:
        from imagenet_prep.storage.refusals import as_error

        known = as_error(error)
        if known is None:
            return _bug(error)
        _show(known)
        return known.exit_code
    except Exception as error:  # noqa: BLE001 - a bug of ours: say so, with all there is to report it
        return _bug(error)


def _bug(error: Exception) -> int:
    say(*traced(error).split("\n"), _BUG, error=True)
    return 1


def _show(error: PrepError) -> None:
    if isinstance(error, WorkerError):
        say("error: ", colour="red", end="", error=True)
        say(error.what, *str(error.detail).split("\n"), _BUG, error=True)
    else:
        tell(*error.lines, lead="error: ", colour="red", error=True)


_QUOTES_NOTHING = (click.MissingParameter, click.exceptions.NoArgsIsHelpError)


def _show_usage(error: click.ClickException) -> None:
    """What click says of a call: the usage, in lines of its own, and the message, which may quote any name."""
    shown = io.StringIO()
    error.show(shown)
    usage, is_error, message = shown.getvalue().removesuffix("\n").partition("Error: ")
    say(*usage.removesuffix("\n").split("\n"), error=True)
    if is_error:
        lines = message.expandtabs(2).split("\n") if isinstance(error, _QUOTES_NOTHING) else [message]
        tell(*lines, lead="error: ", colour="red", error=True)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Stop in good order at the first signal, at once at the second."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, frame: os._exit(128 + number))
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _stopped(status: int, stop: BaseException) -> int:
    Bars.abandon()
    word = "interrupted" if status == INTERRUPTED else "terminated"
    said = f"{word}; everything finished so far is kept. To go on:"
    if ANEW.intersection(sys.argv[1:2]):
        said = f"{word}; nothing was changed. To begin again:"
    if NOTHING_KEPT in (stop.args or getattr(stop.__cause__, "args", ())):  # click puts its own in the place of one
        said = f"{word}; {NOTHING_KEPT}. The same command starts over:"
    with contextlib.suppress(ReaderGoneError):  # Ctrl-C stops the whole pipeline
        say("", said, f"  {rerun()}", error=True)
    return status
