"""name_other_recipes: the notes of a written recipe -> the same, whose commands of init write other
recipes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.escaping import CommandLine, path_word
from imagenet_prep.hints import Hint, has_command, parts_of
from imagenet_prep.init.proposal import Choice

_OUTPUT = "--output"


def name_other_recipes(choice: Choice, target: Path) -> Choice:
    """The choice with an --output of its own in each command that would write ``target``, which
    exists once the notes are read.
    """
    outputs = _free_paths(target)
    changed_notes: dict[str, str] = {}
    for note in (*choice.evidence, *choice.skip_notes, *choice.unused):
        if note not in changed_notes:
            changed_notes[note] = _with_outputs(note, target, outputs)
    return replace(
        choice,
        evidence=tuple(changed_notes[note] for note in choice.evidence),
        skip_notes=tuple(changed_notes[note] for note in choice.skip_notes),
        unused=tuple(changed_notes[note] for note in choice.unused),
    )


def _free_paths(target: Path) -> Iterator[Path]:
    """The paths of further recipes, next to the first: pets-2.yaml, pets-3.yaml."""
    for number in itertools.count(2):
        path = target.with_name(f"{target.stem}-{number}{target.suffix}")
        if not path.exists():
            yield path


def _with_outputs(note: str, target: Path, outputs: Iterator[Path]) -> str:
    """A note with other outputs in its commands."""
    if not has_command(note):
        return note
    parts: list[str] = []
    for part in parts_of(note):
        if isinstance(part, CommandLine) and _output_of(part) == target:
            parts.append(_with_output(part, next(outputs)))
        else:
            parts.append(part)
    return Hint(*parts)


def _output_of(command: CommandLine) -> Path | None:
    """The recipe that a command of init writes; None for another command."""
    words = command.words
    if words[1:2] != ("init",):
        return None
    if _OUTPUT in words:
        return Path(words[words.index(_OUTPUT) + 1])
    place = Path(words[2])
    name = place.stem if place.is_file() else place.resolve().name
    return Path(f"{name}.yaml")


def _with_output(command: CommandLine, output: Path) -> CommandLine:
    """The command of init with another output."""
    words = list(command.words)
    if _OUTPUT in words:
        words[words.index(_OUTPUT) + 1] = path_word(output)
    else:
        words += [_OUTPUT, path_word(output)]
    return CommandLine(tuple(words), command.in_sentence)
