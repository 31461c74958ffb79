"""Command: the class of every command; its options --json, --log-file and --quiet."""

from __future__ import annotations

import contextlib
import inspect
from pathlib import Path
from typing import Any

import click

from imagenet_prep.cli.command_outcome import CommandOutcome, conclude
from imagenet_prep.cli.conversation import begin_conversation, conversation
from imagenet_prep.cli.log_file import Log
from imagenet_prep.cli.option_types import LogFile, NewFile
from imagenet_prep.cli.terminal import log_start, say


class Command(click.Command):
    """A command with the options that every command has; its help has a section of examples, the
    lines after its description.
    """

    writes_lines = False
    """Whether its JSON is a line for each record."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += every_command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a call; --json and --log-file get its errors, too."""
        begin_conversation()
        call = conversation()
        call.command = self.name or ""
        call.writes_lines = self.writes_lines
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _keep_outputs(words)
            if isinstance(error, click.NoSuchOption):
                self._name_setting(error)
            raise

    def _name_setting(self, error: click.NoSuchOption) -> None:
        """Say how a setting without an option of its own is changed."""
        name = error.option_name.lstrip("-").replace("-", "_")
        for param in self.params:
            if isinstance(param, RareOption) and "--set" in param.opts:
                _, _, listing = (param.help or "").partition(": ")
                if name in listing.rstrip(".").split(", "):
                    option = error.option_name
                    text = f"No such option {option!r}. Did you mean '--set {name}=VALUE'?"
                    raise click.UsageError(text, error.ctx) from error

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and write its outcome as JSON; returns the exit status."""
        outcome: CommandOutcome = super().invoke(ctx)
        conclude(outcome)
        return outcome.status

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and the examples."""
        help_text = inspect.cleandoc(self.help or "")
        text, _, examples = help_text.partition("\n\n\b\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)
        if examples:
            with formatter.section("Examples"):
                formatter.write_text(f"\b\n{examples}")


class LongCommand(Command):
    """A command whose help shows the common options; --help-all shows all of them."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All its options, and --help-all."""
        *options, help_option = super().get_params(ctx)
        return [*options, _help_all, help_option]


class RareOption(click.Option):
    """An option of a LongCommand that only --help-all shows."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help, unless they are hidden here."""
        is_long = isinstance(ctx.command, LongCommand)
        if is_long and "help-all" not in ctx.meta:
            return None
        return super().get_help_record(ctx)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["help-all"] = True
        lines = ctx.get_help().split("\n")
        say(*lines)
        ctx.exit()


_help_all = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options.",
)


# the options of every command ---------------------------------------------------------------------

JSON = b"{"
"""The first byte of files that --json writes."""


def _keep_json_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    conversation().json_file = value


def _keep_log(ctx: click.Context, param: click.Parameter, value: Log | None) -> None:
    conversation().log = value
    log_start()


def _keep_outputs(words: list[str]) -> None:
    """Keep --json and --log-file of a call whose options could not be parsed."""
    call = conversation()
    if call.json_file is not None or call.log is not None:
        return
    outputs = click.Command(
        None,
        params=[_json_file, _log_file],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    with contextlib.suppress(click.UsageError):
        outputs.make_context("", words)


_json_file = RareOption(
    ["--json", "json_file"],
    type=NewFile(JSON, may_be_output=True),
    metavar="FILE|-",
    is_eager=True,
    expose_value=False,
    callback=_keep_json_file,
    help="Write the outcome as JSON to this file; - prints it.",
)
_log_file = RareOption(
    ["--log-file"],
    type=LogFile(path_type=Path),
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_keep_log,
    help="Append what is printed to this file, with the time.",
)
_quiet = RareOption(["--quiet", "-q"], is_flag=True, help="Show no progress, notes or summaries.")

every_command = (_json_file, _log_file, _quiet)
"""Options that each command gets, and ``conversation`` knows."""
