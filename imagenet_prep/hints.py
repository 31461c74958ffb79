"""Hint: what to do next, as sentences and commands -> one text, or its parts for a renderer.

The terminal gives each command a line of its own, and the report's page a button that copies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from imagenet_prep.escaping import (
    CommandLine,
    Shell,
    command_line,
    is_command_line,
    mention,
    rerun,
)
from imagenet_prep.text import INSTALL


class Hint(str):
    """A text with its commands as data; a text without any may be a plain str.

    As a str it is the whole text in one line, for logs, JSON and messages of exceptions.

    Args:
        parts: sentences and commands in order, or other hints; they are joined without a space.
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Hint:
        """Join the parts, and keep them."""
        all_parts: list[str] = []
        for part in parts:
            all_parts += parts_of(part)
        hint = super().__new__(cls, "".join(all_parts))
        hint.parts = tuple(all_parts)
        return hint

    def __reduce__(self) -> tuple[type[Hint], tuple[str, ...]]:
        return Hint, self.parts


def run_again() -> Hint:
    """The command of this process again, as the end of a hint; a script that imports this package
    has none.
    """
    return Hint("run: ", rerun()) if is_command_line() else Hint("try again")


def install_extra(extra: str) -> Hint:
    """The command that installs an extra of the package, in the folder of its clone."""
    command = command_line([*INSTALL.split(), f".[{extra}]"])
    return Hint(command, "    (in the folder of your clone of imagenet-prep)")


def parts_of(text: str) -> tuple[str, ...]:
    """The sentences and commands of a text, each a ``CommandLine`` or a plain str."""
    return text.parts if isinstance(text, Hint) else (text,)


def has_command(text: str) -> bool:
    """Whether a text has commands as data."""
    return any(isinstance(part, CommandLine) for part in parts_of(text))


def join_hints(separator: str, hints: Iterable[str]) -> Hint:
    """Several hints in one, with a text between them."""
    parts: list[str] = []
    for hint in hints:
        if parts:
            parts.append(separator)
        parts.append(hint)
    return Hint(*parts)


def lines_of(text: str) -> Iterator[str]:
    """The parts of a text as a renderer separates them: sentences, and commands to copy.

    A command that a sentence only names is text of that sentence.
    """
    sentence = ""
    for part in parts_of(text):
        if isinstance(part, CommandLine) and not part.in_sentence:
            if sentence:
                yield sentence
            yield part
            sentence = ""
        else:
            sentence += part
    if sentence:
        yield sentence


def changed(text: str, change: Callable[[str], str]) -> str:
    """A text with each sentence and each word of its commands changed."""
    if not has_command(text):
        return change(text)
    parts: list[str] = []
    for part in parts_of(text):
        if isinstance(part, CommandLine):
            words = tuple(_changed_word(word, change) for word in part.words)
            parts.append(CommandLine(words, part.in_sentence))
        else:
            parts.append(change(part))
    return Hint(*parts)


def _changed_word(word: str, change: Callable[[str], str]) -> str:
    return Shell(change(word)) if isinstance(word, Shell) else change(word)


def as_text(value: object) -> str:
    """A hint, a command or a note as a plain str: the ``enc_hook`` of msgspec."""
    if not isinstance(value, str):
        raise NotImplementedError(f"{type(value).__name__} in JSON")
    return str(value)


CONVERT_AGAIN = Hint("run the same ", mention("convert"), " with --overwrite")
"""How to make a set again: its folder and its recipe are in the command of the first time."""


# kept as JSON -------------------------------------------------------------------------------------

_Word: TypeAlias = str | dict[str, str]
SavedParts: TypeAlias = list[str | list[_Word]]
"""Sentences, and the words of each command; a word that the shell interprets is {"shell": word}."""


def save_parts(hint: str) -> SavedParts:
    """The parts of a hint as JSON-ready values."""
    saved: SavedParts = []
    for part in lines_of(hint):
        if isinstance(part, CommandLine):
            saved.append([_save_word(word) for word in part.words])
        else:
            saved.append(part)
    return saved


def _save_word(word: str) -> _Word:
    return {"shell": str(word)} if isinstance(word, Shell) else word


def load_parts(saved: SavedParts) -> Hint:
    """The hint that ``save_parts`` saved."""
    parts: list[str] = []
    for part in saved:
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append(CommandLine(tuple(map(_load_word, part))))
    return Hint(*parts)


def _load_word(word: _Word) -> str:
    return word if isinstance(word, str) else Shell(word["shell"])
