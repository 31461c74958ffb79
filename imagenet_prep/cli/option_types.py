"""The types of options and arguments: words, numbers, paths, files to write, logs, ranks."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import click

from imagenet_prep.cli.log_file import Log, why_not_log
from imagenet_prep.cli.place_checks import folder_fault, write_fault
from imagenet_prep.cli.terminal import complain
from imagenet_prep.storage.files import IN_WORDS, absence_of, kind_of
from imagenet_prep.storage.layout import SETS_NAME, STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, locate, real_path, refuse_url, scheme_of
from imagenet_prep.storage.refusals import STORAGE_FAULTS
from imagenet_prep.text import beginning, nearest_words, parse_whole


class OneOf(click.Choice[str]):
    """One of several words; the error for a typo names the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The words to choose from, and perhaps the one that was meant."""
        message = super().get_invalid_choice_message(value, ctx)
        suggestion = nearest_words(str(value), map(str, self.choices))
        return f"{message} {suggestion}".rstrip()


class Number(click.IntRange):
    """A whole number."""

    name = "number"


class LocalPath(click.Path):
    """A path that is not empty, and no URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; an empty value, a URL, or a path of another kind is refused."""
        text = os.fsdecode(value)
        if not text:  # it would mean the current folder
            self.fail("the value is empty; is a shell variable unset?", param, ctx)
        refuse_url(text)
        path = Path(text)
        if fault := self._refusal(path):
            self.fail(fault, param, ctx)
        return path

    def _refusal(self, path: Path) -> str:
        """The fault of a path that is not of the expected kind; empty if it is. click would say of
        a broken link, and of a file in a closed folder, that it does not exist.
        """
        try:
            mode = path.stat().st_mode
        except OSError as error:
            if error.errno in STORAGE_FAULTS:
                raise
            return self._refusal_without_status(path, error)
        if not self.file_okay and not stat.S_ISDIR(mode):
            return f"{absence_of(path)}; expected a folder"
        if not self.dir_okay and stat.S_ISDIR(mode):
            return f"{path} is a folder; expected a file"
        if not os.access(path, os.R_OK):
            return f"{path} can't be read: {os.strerror(errno.EACCES)}"
        return ""

    def _refusal_without_status(self, path: Path, error: OSError) -> str:
        """Why a path that must exist leads to nothing; empty if it need not exist."""
        if not self.exists:
            return ""
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return absence_of(path)
        return f"{path} can't be read: {error.strerror}"


class PathOrUrl(LocalPath):
    """A path, or a URL of an object store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the place that a URL names."""
        text = os.fsdecode(value)
        return locate(text) if scheme_of(text) else super().convert(value, param, ctx)


class NewFile(LocalPath):
    """The path of a file that is written at the end of the work, checked at its start.

    Args:
        beginning: a file with these first bytes is of the same kind and is replaced; any other is
            refused. None: the command decides what to do with an existing file.
        may_be_output: whether "-" stands for standard output.
    """

    def __init__(self, beginning: bytes | None = None, *, may_be_output: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=may_be_output)
        self._beginning = beginning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, once a file can be written there."""
        if self.allow_dash and value == "-":
            return Path("-")
        path = super().convert(value, param, ctx)
        if fault := _fault(path, self._beginning):
            self.fail(f"{value!r} can't be written: {fault}", param, ctx)
        return path


def _fault(path: Path, beginning: bytes | None) -> str:
    """Why a file can't or must not be written at ``path``; empty if it can."""
    try:
        if fault := folder_fault(path.parent):
            return fault
        if path.is_dir():
            return "it is a folder"
        if fault := write_fault(path.parent):
            return fault
        if beginning is not None and os.path.lexists(path):
            return _fault_of_existing(path, beginning)
        return ""
    except OSError as error:
        return error.strerror or str(error)


def _fault_of_existing(path: Path, beginning: bytes) -> str:
    """Why an existing file must not be replaced: it is not plain, belongs to a set, or has other
    first bytes; empty if it may be.
    """
    kind = kind_of(path)
    if kind != "file":
        return f"it is {IN_WORDS[kind]}; expected a new file"
    if _is_state(path):
        return "it belongs to a set of shards; expected a new file"
    with path.open("rb") as file:
        head = file.read(_HEAD)
    checked_name = Layout(path.parent).checked_path.name  # of a raw folder, which has any name
    if path.name == checked_name and b'"command"' not in head:
        return "it may hold the digests of checked images; expected a new file"
    if head.startswith(beginning):
        return ""
    content = "holds something else" if head else "is empty"
    return f"it exists and {content}; expected a new file"


_HEAD = 100
"""First bytes of a file, which name the command in the outcome of one."""


def _is_state(path: Path) -> bool:
    """Whether a file is state of this program next to shards: a manifest is JSON too.

    A clone of imagenet-prep has the name of a folder of state, and no file of one.
    """
    for folder in real_path(path).parents:
        if folder.name == STATE_NAME:
            return any(sign.exists() for sign in _signs_of_state(Layout(folder.parent)))
    return False


def _signs_of_state(layout: Layout) -> tuple[AnyPath, ...]:
    """The paths of which a folder of state has at least one."""
    return (
        layout.annotate_path,
        layout.consumed_dir,
        layout.damaged_images_path,
        layout.demo_path,
        layout.export_path,
        layout.exported_path,
        layout.handed_over_dir,
        layout.index_dir,
        layout.journal_path,
        layout.manifest_path,
        layout.plan_path.parent,
        layout.problems_path,
        layout.state_dir / SETS_NAME,
    )


class LogFile(LocalPath):
    """The path of a log, which is opened at once: a call that can't log does nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The open log."""
        path = super().convert(value, param, ctx)
        fault = why_not_log(path)
        log: Log | None = None
        if not fault:
            try:
                log = Log(path, complain)
            except OSError as error:
                fault = error.strerror or str(error)
        if log is None:
            self.fail(f"{value!r} can't be written: {fault}", param, ctx)
        return log


class RankType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """R/W, or "auto": a Share."""

    name = "rank"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The share of a rank; auto: that of the launcher."""
        from imagenet_prep.cli.launchers import find_share
        from imagenet_prep.shards.share import Share

        if value == "auto":
            return find_share(os.environ)
        rank_text, _, world_text = value.partition("/")
        rank, world = parse_whole(rank_text), parse_whole(world_text)
        if rank is None or world is None:
            shown = beginning(value, 40)
            self.fail(f"{shown!r} is not a rank: expected R/W, such as 0/16, or auto", param, ctx)
        return Share(rank, world)
