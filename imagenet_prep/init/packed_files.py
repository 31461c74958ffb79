"""Packed files: the commands that unpack archives, or join the parts of one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from imagenet_prep.escaping import CommandLine, command_line, in_sequence
from imagenet_prep.init.file_endings import ARCHIVES, TABLES
from imagenet_prep.init.imagenet_copy import converting_hint
from imagenet_prep.model import Engine
from imagenet_prep.recipes.path_parts import has_ending, suffix_of
from imagenet_prep.sources.names import below
from imagenet_prep.sources.tars import is_zip, list_tars

_PART = re.compile(r"(.+\.(?:tar|tgz|gz|zip|bz2|xz)(?:\.\w+)?)\.(?:part)?(\d+|a[a-z])")

_MOST_UNPACKED = 4
"""Files that a command names; of more, the hint says what to do."""

_KAGGLE = "imagenet-object-localization-challenge.zip"

_TEXTS = (*TABLES, ".json", ".xml", ".yaml", ".yml", ".md", ".html", ".pdf")

_GZIPPED = {".gz", ".tgz", ".tar.gz"}


def joining_hint(folder: Path, names: Sequence[str]) -> str:
    """The command that joins the parts of an archive that was split, or the part that is missing;
    "" if there are no parts, or those of several archives.
    """
    archives: set[str] = set()
    part_by_number: dict[int, str] = {}
    for name in names:
        if match := _PART.fullmatch(name):
            archives.add(match[1])
            part_by_number[_number_of_part(match[2])] = name
    if len(part_by_number) < 2 or len(archives) > 1 or not archives.isdisjoint(names):
        return ""
    archive = archives.pop()
    numbers = sorted(part_by_number)
    if numbers[0] > 1:
        first_part = part_by_number[numbers[0]]
        return f"get the parts of {archive} before {first_part}, then join all of them"
    for number, next_number in itertools.pairwise(numbers):
        if next_number > number + 1:
            part, next_part = part_by_number[number], part_by_number[next_number]
            return f"get the parts of {archive} between {part} and {next_part}, then join all"
    parts = [str(folder / part_by_number[number]) for number in numbers]
    return command_line(["cat", "--", *parts]).into(str(folder / archive))


def _number_of_part(text: str) -> int:
    """The place of a part among others: 2 for 002, and for ab."""
    if text.isdigit():
        return int(text)
    return ord(text[1]) - ord("a") + 1


def worth_unpacking(folder: Path, names: Sequence[str], engine: Engine) -> list[str]:
    """The packed files, without the zips of texts alone.

    Raises:
        InputError: a zip is damaged, or can't be listed.
    """
    kept_names: list[str] = []
    for name in names:
        if is_zip(name):
            listing = list_tars([below(folder, name)], engine, folder_each=False)
            if all(has_ending(member, _TEXTS) for member in listing.names):
                continue
        kept_names.append(name)
    return kept_names


def unpacking_hint(folder: Path, names: Sequence[str], *, apart: bool = False) -> str:
    """The hint for packed files: the command that unpacks tars, zips or .gz files in place;
    "" if there are none, or one that can't be unpacked.

    With ``apart``, each is unpacked into a folder of its own name: files of several have the same
    names.
    """
    if not names or not all(has_ending(name, ARCHIVES) for name in names):
        return ""
    if _KAGGLE in names:
        return converting_hint("convert reads this zip and its boxes without a recipe", folder)
    endings = {suffix_of(name).lower() for name in names}
    paths = [str(folder / name) for name in names]
    if apart:
        if len(names) <= _MOST_UNPACKED and endings == {".tar"}:
            return in_sequence(_unpacking_apart(paths))
        return "unpack each into a folder of its own, and run the same command again"
    return _unpacking_in_place(folder, paths, endings)


def _unpacking_in_place(folder: Path, paths: Sequence[str], endings: set[str]) -> str:
    """The command that unpacks files into their own folder, or that hint as a sentence."""
    if len(paths) <= _MOST_UNPACKED:
        if endings <= _GZIPPED:
            return command_line(["gzip", "-d", "--", *paths])
        if endings == {".zip"}:
            return _unpacking_commands([["unzip", "-q", path, "-d"] for path in paths], folder)
        if endings == {".tar"}:
            return _unpacking_commands([["tar", "-xf", path, "-C"] for path in paths], folder)
    return "unpack them, and run the same command again"


def _unpacking_apart(paths: Sequence[str]) -> Iterator[CommandLine]:
    """The commands that unpack tars into a folder each, then give them names that init skips."""
    for path in paths:
        folder = path[: -len(".tar")]
        yield command_line(["mkdir", "-p", "--", folder])
        yield command_line(["tar", "-xf", path, "-C", folder])
        yield command_line(["mv", "--", path, f"{path}.unpacked"])


def _unpacking_commands(unpacks: Sequence[Sequence[str]], folder: Path) -> CommandLine:
    """The commands that unpack archives into a folder, then give them names that init skips."""
    commands = [command_line([*words, str(folder)]) for words in unpacks]
    for words in unpacks:
        path = words[2]
        commands.append(command_line(["mv", "--", path, f"{path}.unpacked"]))
    return in_sequence(commands)
