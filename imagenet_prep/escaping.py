"""Escapes text from data for a terminal, and quotes words as a command line that can be copied.

A name can hold anything: a newline that forges a line, an escape sequence that moves the cursor, or
a mark that changes the direction of writing. They are all escaped before they are printed.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
import traceback
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

NAME = "imagenet-prep"

OptionValues: TypeAlias = tuple[tuple[str, object], ...]
"""Options of a command, each with its value, by their Python names."""

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that control a terminal or are invisible:
control, format, surrogate, line, paragraph.
"""


def escaped(text: str) -> str:
    r"""Escape all characters of one line that control a terminal: ``\n``, ``\x1b``, ``\u202e``.

    So are the bytes of a name that are not UTF-8 (surrogate escapes, PEP 383): ``\xe9``.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) & 0xFF:02x}"
    return char.encode("unicode_escape").decode("ascii")


def quoted(word: str) -> str:
    """A word quoted so that a shell reads exactly these bytes; nothing in it is escaped.

    bash, ksh, zsh and, since 2024, POSIX understand ``$'...'``.
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


class Shell(str):
    """A word of a command that the shell interprets, so it isn't quoted: an operator, a pattern,
    a loop.
    """

    __slots__ = ()


class CommandLine(str):
    """A command as its words; as a str it is the line to copy, with each word quoted for a shell.

    Args:
        words: the program and its arguments.
        in_sentence: whether it only names a command within a sentence; others are lines to copy.
    """

    __slots__ = ("in_sentence", "words")
    words: tuple[str, ...]
    in_sentence: bool

    def __new__(cls, words: tuple[str, ...], in_sentence: bool = False) -> CommandLine:
        """Quote the words, and keep them."""
        shell_words = (word if isinstance(word, Shell) else quoted(word) for word in words)
        command = super().__new__(cls, " ".join(shell_words))
        command.words = words
        command.in_sentence = in_sentence
        return command

    def __reduce__(self) -> tuple[type[CommandLine], tuple[tuple[str, ...], bool]]:
        return CommandLine, (self.words, self.in_sentence)

    def then(self, following: CommandLine) -> CommandLine:
        """This command and, if it succeeds, another one."""
        return CommandLine((*self.words, Shell("&&"), *following.words))

    def without(self, option: str) -> CommandLine:
        """This command without an option that has no value."""
        return CommandLine(tuple(word for word in self.words if word != option))

    def into(self, target: str) -> CommandLine:
        """This command with its output in a file."""
        return CommandLine((*self.words, Shell(">"), target))


def command_line(words: Iterable[str]) -> CommandLine:
    """Words as a command to copy."""
    return CommandLine(tuple(words))


def in_sequence(commands: Iterable[CommandLine]) -> CommandLine:
    """Commands one after another, each only if the one before it succeeds."""
    return functools.reduce(CommandLine.then, commands)


def mention(*words: str) -> CommandLine:
    """The name of a command of this program within a sentence, with its options."""
    return CommandLine((NAME, *words), in_sentence=True)


def path_word(path: Path | str) -> str:
    """A path as a word that no command treats as an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def program() -> str:
    """The command that calls this program again:
    its name, or its path if the name is not on PATH.
    """
    called = Path(sys.argv[0])
    folders = os.environ.get("PATH", "").split(os.pathsep)
    is_found = any(os.access(Path(folder, NAME), os.X_OK) for folder in folders)  # never raises
    return str(called) if called.name == NAME and not is_found else NAME


def command(stage: str, folder: object, settings: OptionValues = ()) -> CommandLine:
    """The command that runs a stage on a folder, with ``settings``,
    by their Python names, as options.
    """
    return command_line([program(), stage, path_word(str(folder)), *_options(settings)])


def is_command_line() -> bool:
    """Whether this process is a call of this program, and not a script that imports it."""
    called = Path(sys.argv[0])
    return called.name == NAME or called.parts[-2:] == (__package__, "__main__.py")


def rerun(settings: OptionValues = ()) -> CommandLine:
    """The command of this process, with ``settings`` added to its own options."""
    return command_line([program(), *sys.argv[1:], *_options(settings)])


def rerun_elsewhere(
    folder: object, other: object, settings: OptionValues = ()
) -> CommandLine | None:
    """The command of this process with another folder in place of one, and ``settings`` added;
    None if it doesn't name that folder.
    """
    words = sys.argv[1:]
    places = [place for place, word in enumerate(words) if str(Path(word)) == str(folder)]
    if not places or places[0] == 0:  # the first word is the command
        return None
    words[places[0]] = path_word(str(other))
    return command_line([program(), *words, *_options(settings)])


def _options(settings: OptionValues) -> Iterator[str]:
    for name, value in settings:
        option = f"no-{name}" if value is False else name
        yield f"--{option}".replace("_", "-")
        if isinstance(value, Path):
            yield path_word(value)
        elif not isinstance(value, bool):
            yield str(value)


def traced(error: BaseException) -> str:
    """An exception's traceback as Python prints it,
    except that the exception's own message is one line.
    """
    lines: list[str] = []
    for chunk in traceback.format_exception(type(error), error, error.__traceback__):
        text = chunk.rstrip("\n")
        is_stack = chunk.startswith(("Traceback ", "  ", "\n"))
        lines += text.split("\n") if is_stack else [text]
    return "\n".join(map(escaped, lines))
