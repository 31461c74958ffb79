"""write_elsewhere: a note with commands of init -> the same note, whose commands write another
recipe than the one that exists once the note is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint, has_command, parts_of

_OUTPUT = "--output"


def write_elsewhere(notes: Iterable[str], recipe: Path) -> tuple[str, ...]:
    """The notes on a recipe, with a path that is free for that of each command of init."""
    other = _free_path(recipe)
    return tuple(_with_output(note, str(other)) if has_command(note) else note for note in notes)


def _free_path(recipe: Path) -> Path:
    """The recipe's path with a number: data-2.yaml of data.yaml."""
    for number in itertools.count(2):
        path = recipe.with_name(f"{recipe.stem}-{number}{recipe.suffix}")
        if not path.exists():
            return path
    raise AssertionError


def _with_output(note: str, output: str) -> str:
    parts: list[str] = []
    for part in parts_of(note):
        if isinstance(part, CommandLine) and part.words[1:2] == ("init",) and not part.in_sentence:
            words = _without_output(part.words)
            parts.append(CommandLine((*words, _OUTPUT, output)))
        else:
            parts.append(part)
    return Hint(*parts)


def _without_output(words: tuple[str, ...]) -> tuple[str, ...]:
    if _OUTPUT not in words:
        return words
    place = words.index(_OUTPUT)
    return words[:place] + words[place + 2 :]
