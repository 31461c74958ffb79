"""Text that comes from data -> what a terminal may show of it, and words -> a command line that can be copied.

A name can hold anything: a newline that forges a line, an escape sequence that moves the cursor, a mark that turns the
direction of writing. None of these is printed as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

NAME = "imagenet-prep"

Settings: TypeAlias = tuple[tuple[str, object], ...]
"""Settings of a stage, each with its value, by their names in Python."""

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of what steers a terminal or can't be seen: control, format, surrogate, line, paragraph."""

_BYTES = re.compile("[\udc80-\udcff]+")


def escaped(text: str) -> str:
    r"""One line of text with everything that steers a terminal written out: ``\n``, ``\x1b``, ``\u202e``.

    Bytes of a name that are not UTF-8 (surrogate escapes, PEP 383) stay as they are, to be printed as such, but for 80
    to 9F: a terminal that doesn't read UTF-8 takes these for control characters.
    """
    if text.isprintable():
        return text
    # Bytes that came from two places and together are UTF-8 would be one character on the terminal.
    whole = _BYTES.sub(lambda found: os.fsencode(found[0]).decode("utf-8", "surrogateescape"), text)
    return "".join(map(_shown, whole))


def _shown(char: str) -> str:
    if "\udca0" <= char <= "\udcff" or unicodedata.category(char) not in _HIDDEN:
        return char
    if "\udc80" <= char <= "\udc9f":
        return f"\\x{ord(char) & 0xFF:02x}"
    return char.encode("unicode_escape").decode("ascii")


def quoted(word: str) -> str:
    """A word of a command line that a shell reads as just these bytes, whatever is in it; nothing in it is escaped.

    ``$'...'`` is understood by bash, ksh, zsh and, since 2024, by POSIX.
    """
    if escaped(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_in_quotes, word)) + "'"


def _in_quotes(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isascii() and char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def command_line(words: Iterable[str]) -> str:
    """Words as a command line to copy."""
    return " ".join(map(quoted, words))


def path_word(path: Path | str) -> str:
    """A path as a word that no command takes for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def program() -> str:
    """How to call this program again: by its name, or by its path where the name alone would not find it."""
    called = Path(sys.argv[0])
    folders = os.environ.get("PATH", "").split(os.pathsep)
    is_found = any(os.access(Path(folder, NAME), os.X_OK) for folder in folders)  # raises nothing
    return str(called) if called.name == NAME and not is_found else NAME


def command(stage: str, folder: object, settings: Settings = ()) -> str:
    """The command line that runs a stage on a folder, with ``settings`` by their names in Python as options."""
    return command_line([program(), stage, path_word(str(folder)), *_options(settings)])


def rerun(settings: Settings = ()) -> str:
    """The command line of this process, to be run again with ``settings`` beside its own options."""
    return command_line([program(), *sys.argv[1:], *_options(settings)])


def _options(settings: Settings) -> Iterator[str]:
    for name, value in settings:
        yield f"--{name if value is not False else f'no-{name}'}".replace("_", "-")
        if not isinstance(value, bool):
            yield path_word(value) if isinstance(value, Path) else str(value)


def traced(error: BaseException) -> str:
    """An exception's traceback, its lines as Python prints them, but for what the exception itself says: one line."""
    chunks = traceback.format_exception(type(error), error, error.__traceback__)
    stack = (chunk.startswith(("Traceback ", "  ", "\n")) for chunk in chunks)
    parts = (
        [*chunk.rstrip("\n").split("\n")] if is_stack else [chunk.rstrip("\n")]
        for chunk, is_stack in zip(chunks, stack, strict=True)
    )
    return "\n".join(escaped(line) for part in parts for line in part)
