"""InitOptions: what a user says of a folder with the options of init,
and the commands that say it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from imagenet_prep.escaping import command


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
        target: the recipe that this run writes, also if the user names none.
    """

    structure: str | None = None
    label: str | None = None
    image: str | None = None
    splits: Mapping[str, str] = {}
    names: Path | None = None
    strip: str | None = None
    output: Path | None = None
    target: Path | None = None

    def command(self, folder: object, **changes: object) -> str:
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

    def command_for_another(self, folder: object, **changes: object) -> str:
        """The command of init that writes another recipe than this run, for a note of it."""
        if self.target is None:
            return self.command(folder, **changes)
        number = 2
        while (output := _numbered(self.target, number)).exists():
            number += 1
        return self.command(folder, **changes, output=output)


def _numbered(path: Path, number: int) -> Path:
    """The path of a file next to another, with a number in its name."""
    return path.with_name(f"{path.stem}-{number}{path.suffix}")
