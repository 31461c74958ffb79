"""The command line: turns options into one stage call, prints the outcome and sets the exit status.

This package alone prints, prompts and exits. A command imports its own parts: ``imagenet-prep
--help`` loads only click.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import warnings
from types import FrameType

import click

from imagenet_prep.cli.command_outcome import CommandOutcome, conclude, describe_error, error_facts
from imagenet_prep.cli.conversation import begin_conversation, conversation
from imagenet_prep.cli.streams import ReaderGoneError, prepare_streams
from imagenet_prep.cli.terminal import say, show_bug, show_error, tell
from imagenet_prep.errors import PrepError, Terminated
from imagenet_prep.escaping import rerun, traced
from imagenet_prep.hints import Hint

INTERRUPTED, PIPE_CLOSED, TERMINATED = 130, 141, 143

STARTS_OVER = frozenset(("annotate", "diff", "init", "report", "show", "status", "verify"))
"""The commands that start over after a stop."""

COMMANDS = {
    "run": "run every required stage, in order",
    "download": "download the archives, with your credentials",
    "untar": "make image folders; convert does not require them",
    "annotate": "convert the archive of bounding boxes to a CSV",
    "init": "propose a recipe for your own folder",
    "convert": "convert images to shards",
    "merge": "finish a set whose shards several ranks made",
    "verify": "read every byte of the shards, and give a verdict",
    "repair": "make wrong or missing shards again",
    "diff": "list the records that differ between two sets",
    "status": "show the progress of each stage, and the next command",
    "report": "make a page with totals, charts and images",
    "show": "print the records of any TFRecord file",
    "export": "write the records in another format",
    "demo": "run everything on a small ImageNet, without an account",
    "completion": "let your shell complete commands and options",
}
"""A summary of each command, in the order of work."""


class _Commands(click.Group):
    """The command line; it imports a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        from imagenet_prep.cli.commands import load_command

        if cmd_name not in COMMANDS:
            return None
        return load_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; for a typo, an error with the nearest name."""
        name = args[0]
        if name not in COMMANDS and name[:1].isalpha():
            _refuse_typo(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _refuse_typo(ctx: click.Context, name: str) -> None:
    from imagenet_prep.text import nearest_words

    suggestion = nearest_words(name, COMMANDS)
    if suggestion:
        ctx.fail(f"No such command {name!r}. {suggestion}")


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from imagenet_prep.version import describe_version

        say(f"imagenet-prep, version {describe_version()}")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """ImageNet (ILSVRC2012) as TFRecord shards: download, untar, annotate, convert, verify.

    You can run each command alone and stop it at any moment. When you run it again, it resumes or
    starts over.

    \b
    Try it without an account:   imagenet-prep demo demo-data
    Make the full set:           imagenet-prep run DATA_DIR
    """


def main() -> None:
    """Run the command line and exit with its status."""
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)
    # NumPy's import would start a spinning thread per core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(100_000)  # imports and plans make many objects, and few cycles
    prepare_streams()
    if not sys.warnoptions:
        # libraries warn developers; this package reports what concerns users
        warnings.simplefilter("ignore")
    status = _status()
    gc.freeze()  # the interpreter would look for cycles again before it ends
    sys.exit(status)


def _status() -> int:
    """Answer a call, write the error that ended it as JSON, and return the exit status."""
    begin_conversation()
    outcome = _answer()
    status = outcome.status
    try:
        if outcome.error is not None:
            conclude(outcome)
    except (PrepError, OSError) as error:
        _fail(error)
    except (ReaderGoneError, KeyboardInterrupt, Terminated):
        pass  # the status is that of the error
    conversation().end(status)
    return status


def _answer() -> CommandOutcome:
    """Run a command, and print the error that ends it."""
    try:
        return _run_command()
    except ReaderGoneError:
        what = "the reader of the output has gone"
        error = describe_error("ReaderGoneError", what)
        return CommandOutcome(status=PIPE_CLOSED, error=error)


def _run_command() -> CommandOutcome:
    try:
        result = cli.main(prog_name="imagenet-prep", standalone_mode=False)
    except click.ClickException as error:
        _show_usage(error)
        message = describe_error("UsageError", error.format_message())
        return CommandOutcome(status=error.exit_code, error=message)
    except (KeyboardInterrupt, click.Abort):
        return _stopped(INTERRUPTED)
    except Terminated:
        return _stopped(TERMINATED)
    except Exception as error:  # noqa: BLE001 - a bug: print all that a report needs
        return _fail(error)
    return CommandOutcome(status=result if isinstance(result, int) else 0)


def _fail(error: Exception) -> CommandOutcome:
    """Print an error, or the traceback of a bug."""
    if isinstance(error, OSError):
        from imagenet_prep.storage.refusals import as_error

        error = as_error(error) or error
    if isinstance(error, PrepError):
        show_error(error)
        return CommandOutcome(status=error.exit_code, error=error_facts(error))
    show_bug(error)
    bug = describe_error(type(error).__name__, str(error), traced(error))
    return CommandOutcome(status=1, error=bug)


_QUOTES_NOTHING = (click.MissingParameter, click.exceptions.NoArgsIsHelpError)


def _show_usage(error: click.ClickException) -> None:
    """Print click's usage lines, then its message, which may quote any name."""
    output = io.StringIO()
    error.show(output)
    usage, is_error, message = output.getvalue().removesuffix("\n").partition("Error: ")
    say(*usage.removesuffix("\n").split("\n"), error=True)
    if is_error:
        lines = [message]
        if isinstance(error, _QUOTES_NOTHING):
            lines = message.expandtabs(2).split("\n")
        tell(*lines, lead="error: ", colour="red", error=True)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Stop cleanly at the first signal, immediately at the second."""
    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop_signal, lambda number, frame: os._exit(128 + number))
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _stopped(status: int) -> CommandOutcome:
    from imagenet_prep.cli.progress_display import Bars

    Bars.abandon()
    word = "interrupted" if status == INTERRUPTED else "terminated"
    message = f"{word}; everything finished so far is kept. To resume:"
    if STARTS_OVER.intersection(sys.argv[1:2]) or "--dry-run" in sys.argv:
        message = f"{word}; no image and no shard was changed. To start again:"
    elif conversation().leaves_nothing:
        message = f"{word}; its temporary folder was removed. To start again:"
    with contextlib.suppress(ReaderGoneError):  # Ctrl-C stops the whole pipeline
        say("", message, Hint("  ", rerun()), error=True)
    hint = Hint(message.partition("; ")[2], " ", rerun())
    error = describe_error(word.capitalize(), word, "", hint)
    return CommandOutcome(status=status, error=error)
