"""InitOptions: what a user says of a folder with the options of init,
and the commands that say it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from imagenet_prep.escaping import CommandLine, command, path_word
from imagenet_prep.hints import Hint, has_command, parts_of
from imagenet_prep.storage.durable import unused_path

_OUTPUT = "--output"


class InitOptions(Struct, frozen=True):
    """The options of init that say how to read a folder.

    Args:
        structure: its structure.
        label: the column of classes; several with commas between them are one-hot.
        image: the column of paths.
        splits: where each split is: a folder, a list of files, or a value of a column.
        names: the file of the names of classes.
        strip: what is taken off every path in tables and lists.
        output: the recipe's file.
    """

    structure: str | None = None
    label: str | None = None
    image: str | None = None
    splits: Mapping[str, str] = {}
    names: Path | None = None
    strip: str | None = None
    output: Path | None = None

    def command(self, folder: object, **changes: object) -> CommandLine:
        """The command of init with these options, of which ``changes`` replaces some;
        structure is called `as`.
        """
        options: dict[str, object] = {
            "as": self.structure,
            "label": self.label,
            "image": self.image,
            "names": self.names,
            "strip": self.strip,
            "output": self.output,
            "splits": self.splits,
        }
        options |= changes
        splits = options.pop("splits")
        assert isinstance(splits, Mapping)
        settings = [(option, value) for option, value in options.items() if value]
        settings += [("split", f"{split}={place}") for split, place in splits.items()]
        return command("init", folder, tuple(settings))


def into_new_recipe(note: str, recipe: Path) -> str:
    """A note whose commands of init write another recipe than the one that was just written."""
    if not has_command(note):
        return note
    other_recipe = unused_path(str(recipe.with_suffix("")), recipe.suffix)
    parts: list[str] = []
    for part in parts_of(note):
        if isinstance(part, CommandLine) and part.words[1:2] == ("init",):
            words = _with_output(part.words, recipe, other_recipe)
            parts.append(CommandLine(words, part.in_sentence))
        else:
            parts.append(part)
    return Hint(*parts)


def _with_output(words: tuple[str, ...], recipe: Path, other_recipe: str) -> tuple[str, ...]:
    """The words of a command of init that writes ``other_recipe``, if it would write ``recipe``."""
    if _OUTPUT in words:
        place = words.index(_OUTPUT)
        if words[place + 1] != path_word(recipe):
            return words
        words = (*words[:place], *words[place + 2 :])
    return (*words, _OUTPUT, path_word(other_recipe))
