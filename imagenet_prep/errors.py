"""The exception tree: every error says what happened,
what was expected and found, and what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from imagenet_prep.hints import Hint, install_extra, join_hints

_SHOWN = 20


class PrepError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        what: what went wrong and where (a file, a line, an offset); one line.
        detail: what was expected and what was found; one line, may be empty.
        hint: what to do next; one line, may be empty. One with a command is a ``Hint``.

    ``exit_code`` is the exit status of the command line. ``choices`` are the ways to go on, a line
    each, a ``Hint`` that ends with its command.
    """

    exit_code = 1
    choices: Sequence[str] = ()

    def __init__(self, what: str, detail: str = "", hint: str = "") -> None:
        super().__init__(what, detail, hint)
        self.what = what
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """The lines that are not empty of what, detail and hint, and the choices."""
        return [line for line in (self.what, self.detail, self.hint, *self.choices) if line]


class UsageError(PrepError):
    """The call itself is wrong: an option, a value, or a path that does not exist."""

    exit_code = 2


class DataProblemsError(PrepError):
    """The data has problems: verify found them, or images can't be converted."""

    exit_code = 3


class InputError(PrepError):
    """An input is corrupt or incomplete: an archive, an image, an annotation archive."""

    exit_code = 4

    def with_choices(self, choices: Sequence[str]) -> InputError:
        """The same error with ways to go on."""
        error = InputError(self.what, self.detail, self.hint)
        error.choices = choices
        return error


RecordFault: TypeAlias = Literal["checksum", "record", "image"]
"""The damaged part: the bytes of a record, by its checksums;
a sound record that is no Example; or its image.
"""


class DamagedRecordError(InputError):
    """One damaged record of a set whose other records can be read.

    Attributes:
        fault: "checksum", if its bytes are not those that were written; "record", if it is not an
            Example; "image", if its image can't be decoded.
        number: of the record in its shard, from 0; -1 if it is not known.
        image: the name of its image's file; "" if it is not known.
    """

    fault: RecordFault = "checksum"
    number: int = -1
    image: str = ""

    @classmethod
    def of(cls, fault: RecordFault, number: int, image: str, *lines: str) -> DamagedRecordError:
        """The error for the record ``number`` of a shard; ``lines`` are what, detail and hint."""
        error = cls(*lines)
        error.fault, error.number, error.image = fault, number, image
        return error

    def with_hint(self, hint: str) -> DamagedRecordError:
        """The same error with another hint."""
        return self.of(self.fault, self.number, self.image, self.what, self.detail, hint)

    @property
    def in_short(self) -> str:
        """The fault and its reason in one line, for a warning or a list."""
        return in_a_line(self.with_hint(""))


def all_of(obstacles: Sequence[InputError]) -> InputError:
    """Combine several obstacles into one error that names each, so that one run shows them all.

    They are numbered; a hint has the numbers of its obstacles, unless it is that of all.
    """
    if len(obstacles) == 1:
        return obstacles[0]
    shown = obstacles[:_SHOWN]
    numbers_by_hint: dict[str, list[str]] = {}
    texts: list[str] = []
    for number, obstacle in enumerate(shown, 1):
        texts.append(f"({number}) {obstacle.what}")
        if obstacle.hint:
            numbers_by_hint.setdefault(obstacle.hint, []).append(f"({number})")
    hints = [*numbers_by_hint]
    is_hint_of_all = all(len(numbers) == len(shown) for numbers in numbers_by_hint.values())
    if not is_hint_of_all:
        hints = [Hint(f"{', '.join(numbers)} ", hint) for hint, numbers in numbers_by_hint.items()]
    if len(obstacles) > _SHOWN:
        texts.append(f"and {len(obstacles) - _SHOWN:,} more")
    error = InputError(
        f"{len(obstacles):,} problems: {texts[0]}",
        "; ".join(texts[1:]),
        join_hints("; ", hints),
    )
    choices = dict.fromkeys(choice for obstacle in obstacles for choice in obstacle.choices)
    return error.with_choices(list(choices))


class IncompleteError(InputError):
    """Images of the data set are missing from the input.

    ``lacks`` says what each split lacks; it is empty if that is not known.
    """

    lacks: Mapping[str, str] = MappingProxyType({})


class OtherCopyError(InputError):
    """A copy of the raw data has another image than the copy that the set was planned from."""


class NetworkError(PrepError):
    """A network failure that a later attempt may not meet."""

    exit_code = 5


class AccessError(PrepError):
    """Credentials are missing, or the server refuses them."""

    exit_code = 6


class SpaceError(PrepError):
    """No space is left, or less than the work requires."""

    exit_code = 7


class BusyError(PrepError):
    """Another run holds this DATA_DIR."""

    exit_code = 8


class WriteError(PrepError):
    """The storage failed: an fsync or a rename can't be trusted."""


class WorkerError(PrepError):
    """An exception in a worker that nothing expects; ``detail`` holds the worker's traceback."""


class Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt, no ``except Exception`` may swallow it."""


def missing_library(library: str, purpose: str, extra: str) -> UsageError:
    """The error for a library of an extra that is not installed; ``purpose`` is what it does."""
    return UsageError(
        f"{library}, which {purpose}, is not installed",
        f'expected the packages of the extra "{extra}"',
        install_extra(extra),
    )


def in_a_line(error: Exception) -> str:
    """The whole message of an error as one line."""
    lines = error.lines if isinstance(error, PrepError) else [str(error)]
    return "; ".join(lines).replace("\n", "; ")


def named(error: Exception, task: str) -> Exception:
    """The error of a failed task, with the task's name if the error can't know it."""
    if isinstance(error, (DataProblemsError, WorkerError)):
        return type(error)(f"{task}: {error.what}", error.detail, error.hint)
    return error
