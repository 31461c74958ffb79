"""Packed files: the commands that unpack archives, or join the parts of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.escaping import CommandLine, command_line, in_sequence
from imagenet_prep.recipes.path_parts import suffix_of

_PART = re.compile(r"(.+\.(?:tar|tgz|gz|zip|bz2|xz)(?:\.\w+)?)\.(?:part)?(\d+|a[a-z])")

_MOST_UNPACKED = 4
"""Files that a command names; of more, the hint says what to do."""

_GZIPPED = {".gz", ".tgz", ".tar.gz"}


def joining_hint(folder: Path, names: Sequence[str]) -> str:
    """The command that joins the parts of an archive that was split;
    "" if there are none, or several archives.
    """
    archive_of_part: dict[str, str] = {}
    for name in names:
        if match := _PART.fullmatch(name):
            archive_of_part[name] = match[1]
    archives = set(archive_of_part.values())
    if len(archive_of_part) < 2 or len(archives) > 1 or not archives.isdisjoint(names):
        return ""
    parts = [str(folder / name) for name in sorted(archive_of_part)]
    archive = str(folder / archives.pop())
    return command_line(["cat", "--", *parts]).into(archive)


def unpacking_hint(folder: Path, names: Sequence[str]) -> str:
    """The hint for packed files: the command that unpacks tars, zips or .gz files in place;
    "" if there are none.
    """
    if not names:
        return ""
    endings = {suffix_of(name).lower() for name in names}
    paths = [str(folder / name) for name in names]
    if len(names) <= _MOST_UNPACKED:
        if endings <= _GZIPPED:
            return command_line(["gzip", "-d", "--", *paths])
        if endings == {".zip"}:
            return _unpacking_commands([["unzip", "-q", path, "-d"] for path in paths], folder)
        if endings == {".tar"}:
            return _unpacking_commands([["tar", "-xf", path, "-C"] for path in paths], folder)
    return "unpack them, and run the same command again"


def _unpacking_commands(unpacks: Sequence[Sequence[str]], folder: Path) -> CommandLine:
    """The commands that unpack archives into a folder, then give them names that init skips."""
    commands = [command_line([*words, str(folder)]) for words in unpacks]
    for words in unpacks:
        path = words[2]
        commands.append(command_line(["mv", "--", path, f"{path}.unpacked"]))
    return in_sequence(commands)
