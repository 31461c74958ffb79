"""Options that several commands share, each defined once,
and the site that download options select.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import click
from msgspec import Meta

from imagenet_prep.cli.command_outcome import CommandOutcome, conclude
from imagenet_prep.cli.conversation import begin_conversation, conversation
from imagenet_prep.cli.log_file import Log
from imagenet_prep.cli.option_types import (
    LocalPath,
    LogFile,
    NewFile,
    Number,
    OneOf,
    PathOrUrl,
    RankType,
)
from imagenet_prep.cli.terminal import log_start, say
from imagenet_prep.datasets.declarations import Setting, settings_of
from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import ConvertOptions

if TYPE_CHECKING:
    from imagenet_prep.fetch.providers import Site


def site_of(params: Mapping[str, Any], keys: Sequence[str] = facts.DEFAULT_ARCHIVES) -> Site | None:
    """The site of ``--source`` for the archives ``keys``; None for image-net.org, which has the
    original archives.

    Raises:
        UsageError: the source lacks an option, or a file of secrets can't be used.
    """
    source = params["source"]
    if source == "imagenet":
        return None
    for option in ("cookies", "no_digest"):
        if params.get(option):
            raise UsageError(
                f"--{option.replace('_', '-')} with --source {source}",
                "expected it with --source imagenet only",
            )
    splits = _splits_of_site(source, keys)
    from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite, find_login, find_token

    address = {"base_url": params["base_url"]} if params["base_url"] else {}
    if source == "kaggle":
        return KaggleSite(login=find_login(), **address)
    return HuggingFaceSite(login=find_token(), splits=splits, **address)


def _splits_of_site(source: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The splits among ``keys``; raises UsageError if the site doesn't offer them alone."""
    splits = tuple(split for split in facts.SPLITS if split in keys)
    call = f"--only {','.join(keys)} with --source {source}"
    if not splits:
        raise UsageError(call, f"expected one or more of {', '.join(facts.SPLITS)}")
    if source == "kaggle" and splits != facts.SPLITS:
        raise UsageError(call, "Kaggle has only one zip of everything")
    return splits


F = TypeVar("F", bound=Callable[..., Any])


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
        conversation().command = self.name or ""
        conversation().writes_lines = self.writes_lines
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError:
            _keep_outputs(words)
            raise

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and write its outcome as JSON; returns the exit status."""
        outcome: CommandOutcome = super().invoke(ctx)
        conclude(outcome)
        return outcome.status

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and the examples."""
        text, _, examples = inspect.cleandoc(self.help or "").partition("\n\n\b\n")
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
        return [*super().get_params(ctx)[:-1], _help_all, self.get_help_option(ctx) or _help_all]


class _Rare(click.Option):
    """An option of a LongCommand that only --help-all shows."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        is_shown = ctx.meta.get("help-all") or not isinstance(ctx.command, LongCommand)
        return super().get_help_record(ctx) if is_shown else None


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["help-all"] = True
        say(*ctx.get_help().split("\n"))
        ctx.exit()


_help_all = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options.",
)


def _all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# settings -----------------------------------------------------------------------------------------


def settings_for(command: str) -> Callable[[F], F]:
    """The options of all settings that a command has one for,
    and ``--set`` for the other settings.
    """
    options: list[Callable[[F], F]] = []
    names_without_option: list[str] = []
    for setting in settings_of(ConvertOptions):
        if command in setting.options:
            option_class = _Rare if setting.is_rare else None
            options.append(click.option(_flag(setting), cls=option_class, **_as_click(setting)))
        else:
            names_without_option.append(setting.name)
    set_option = click.option(
        "--set",
        "texts",
        cls=_Rare,
        metavar="NAME=VALUE",
        multiple=True,
        help=f"Change another setting: {', '.join(names_without_option)}.",
    )
    return _all_of(*options, set_option)


def settings_of_call(params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the options of a call and ``--set`` give, by name.

    Raises:
        UsageError: ``--set`` names an unknown setting, or a value that is invalid for it.
    """
    from imagenet_prep.datasets.declarations import read_settings

    names = {setting.name for setting in settings_of(ConvertOptions)}
    from_options = {name: value for name, value in params.items() if name in names}
    return {**from_options, **read_settings(ConvertOptions, params["texts"])}


def written_options(context: click.Context, names: Collection[str]) -> Iterator[str]:
    """The options of these settings in a call, as the user wrote them."""
    for setting in settings_of(ConvertOptions):
        if setting.name in names:
            source = context.get_parameter_source(setting.name)
            if source is click.core.ParameterSource.COMMANDLINE:
                yield _flag(setting)
    for text in context.params["texts"]:
        if text.partition("=")[0] in names:
            yield f"--set {text}"


def _flag(setting: Setting) -> str:
    return f"--{setting.name.replace('_', '-')}"


def _as_click(setting: Setting) -> dict[str, Any]:
    """The arguments of click.option for the setting's type."""
    shared = {"default": setting.default, "help": setting.words}
    plain, bounds = _plain_type(setting.type)
    if plain is bool:
        return {**shared, "is_flag": True}
    shared["show_default"] = setting.default is not None
    if get_origin(plain) is Literal:
        return {**shared, "type": OneOf(get_args(plain), case_sensitive=False)}
    if plain is int:
        return {**shared, "type": Number(bounds.get("ge"), bounds.get("le"))}
    return {**shared, "metavar": "FILE|NAME"}


def _plain_type(annotated: Any) -> tuple[Any, dict[str, int]]:
    """A type without None and annotations; and its bounds."""
    bounds: dict[str, int] = {}
    while True:
        metadata = getattr(annotated, "__metadata__", ())
        constraints = [annotation for annotation in metadata if isinstance(annotation, Meta)]
        for constraint in constraints:
            bounds |= _bounds_of(constraint)
        if constraints:
            annotated = annotated.__origin__
        elif type(None) in get_args(annotated) or isinstance(annotated, types.UnionType):
            annotated = next(part for part in get_args(annotated) if part is not type(None))
        else:
            return annotated, bounds


def _bounds_of(constraint: Meta) -> dict[str, Any]:
    bounds = {"ge": constraint.ge, "le": constraint.le}
    return {name: bound for name, bound in bounds.items() if bound is not None}


# the options of every command ---------------------------------------------------------------------

PNG, JSON, HTML = b"\x89PNG\r\n\x1a\n", b"{", b"<!DOCTYPE html>"
"""The first bytes of files that --image, --json and report's --output write."""


def _keep_json_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    conversation().json_file = value


def _keep_log(ctx: click.Context, param: click.Parameter, value: Log | None) -> None:
    conversation().log = value
    log_start()


def _keep_outputs(words: list[str]) -> None:
    """Keep --json and --log-file of a call whose options could not be parsed."""
    if conversation().json_file is None and conversation().log is None:
        lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
        outputs = click.Command(None, params=[*every_command[:2]], context_settings=lenient)
        outputs.add_help_option = False
        with contextlib.suppress(click.UsageError):
            outputs.make_context("", words)


every_command = (
    _Rare(
        ["--json", "json_file"],
        type=NewFile(JSON, may_be_output=True),
        metavar="FILE|-",
        is_eager=True,
        expose_value=False,
        callback=_keep_json_file,
        help="Write the outcome as JSON to this file; - prints it.",
    ),
    _Rare(
        ["--log-file"],
        type=LogFile(path_type=Path),
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_keep_log,
        help="Append what is printed to this file, with the time.",
    ),
    _Rare(["--quiet", "-q"], is_flag=True, help="Show no progress and no notes."),
)
"""Options that each command gets, and ``conversation`` knows."""

# arguments and options ----------------------------------------------------------------------------

_folder = PathOrUrl(path_type=Path, file_okay=False)

any_place = PathOrUrl(path_type=Path)
existing = LocalPath(path_type=Path, exists=True)
existing_file = LocalPath(path_type=Path, exists=True, dir_okay=False)
any_file = PathOrUrl(path_type=Path)

data_dir = click.argument("data_dir", type=_folder)
set_or_file = click.argument("data_dir", type=PathOrUrl(path_type=Path))
set_file_or_raw = click.argument("data_dir", type=PathOrUrl(path_type=Path), required=False)
new_data_dir = click.argument("data_dir", type=_folder, required=False)
folder_or_file = click.argument("folder", type=LocalPath(path_type=Path), required=False)
out = click.argument("out", type=_folder, required=False)
raw = click.option(
    "--raw",
    type=PathOrUrl(path_type=Path, file_okay=False, exists=True),
    help="Raw input, instead of DATA_DIR/raw-data; never written to.",
)
output = click.option("--output", type=_folder, help="Write the shards here.  [default: DATA_DIR]")
dry_run = click.option(
    "--dry-run", is_flag=True, help="Print the disk space that every step requires; do nothing."
)
workers = click.option(
    "--workers", type=Number(min=1), help="Worker processes.  [default: one per available CPU]"
)
engine = click.option(
    "--engine",
    cls=_Rare,
    type=OneOf(["processes", "ray"]),
    default="processes",
    show_default=True,
    help="Where work runs; ray: on a cluster.",
)
rank = click.option(
    "--rank",
    "share",
    type=RankType(),
    metavar="R/W|auto",
    help="Only the shards of rank R of W.",
)
allow_python = click.option(
    "--allow-python",
    cls=_Rare,
    is_flag=True,
    help="Run the function that the recipe names (source: {python: ...}).",
)
depth = click.option(
    "--depth",
    type=OneOf(["quick", "full", "decode"]),
    default="full",
    show_default=True,
    help="Check names and sizes; every byte; or also decode every image.",
)
raw_depth = click.option(
    "--depth",
    type=OneOf(["quick", "full", "decode"]),
    help=(
        "Check names and sizes; every byte; or also decode every image.  [default: full; "
        "with --raw: decode]"
    ),
)
raw_copy = _all_of(
    click.option(
        "--raw",
        type=PathOrUrl(path_type=Path, file_okay=False, exists=True),
        help="Check the images in this folder before they are converted; writes nothing.",
    ),
    click.option(
        "--config",
        "-c",
        type=existing_file,
        help=(
            "Check the images of this recipe before they are converted; with --raw, "
            "its paths start there."
        ),
    ),
)
places = _all_of(data_dir, raw, output)
working = _all_of(workers, engine)

fetching = _all_of(
    click.option(
        "--source",
        type=OneOf(["imagenet", "kaggle", "huggingface"]),
        default="imagenet",
        show_default=True,
        help="The site to download from.",
    ),
    click.option(
        "--base-url", metavar="URL", help="Another address for the source, such as a mirror."
    ),
    click.option(
        "--connections",
        cls=_Rare,
        type=Number(1, 16),
        default=4,
        show_default=True,
        help="Connections per archive.",
    ),
    click.option(
        "--no-digest", cls=_Rare, is_flag=True, help="Trust the server for size and content."
    ),
)
only = click.option(
    "--only",
    default=",".join(facts.DEFAULT_ARCHIVES),
    show_default=True,
    help=f"Comma-separated: {', '.join(facts.ARCHIVES)}.",
)
