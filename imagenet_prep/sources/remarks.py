"""Remarks, what a listing says apart from its rows; and the faults of its names:
repeated, missing, or not to be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import escaped
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

_LONGEST_NAME = 8191


class Remarks(Struct):
    """Remarks of a listing, apart from its rows.

    ``links`` names rows that are links out of the searched folder. ``passed`` names skipped
    entries, by the reason. ``obstacles`` are the errors of entries that can't be skipped.
    """

    links: list[str] = []
    passed: dict[str, list[str]] = {}
    obstacles: list[InputError] = []

    @classmethod
    def join(cls, parts: Iterable[Remarks]) -> Remarks:
        """All remarks of parts, in order."""
        joined = cls()
        for part in parts:
            joined.links += part.links
            joined.obstacles += part.obstacles
            for reason, names in part.passed.items():
                joined.passed.setdefault(reason, []).extend(names)
        joined.links = sorted(set(joined.links))
        joined.obstacles.sort(key=str)
        for names in joined.passed.values():
            names.sort()
        return joined

    def pass_over(self, name: str, reason: str) -> None:
        """Record a skipped entry."""
        self.passed.setdefault(reason, []).append(name)


def refuse_twice(catalog: Catalog, remedy: str = "rename one of the two files") -> Catalog:
    """The catalog, if its names are unique; its rows are sorted by name.

    Raises:
        InputError: a name repeats; ``remedy`` is the advice where two containers have it.
    """
    row = catalog.names.first_twice()
    if row is None:
        return catalog
    path, next_path = catalog.container(row).path, catalog.container(row + 1).path
    places = f"in {path} and in {next_path}"
    if path == next_path:
        places = f"twice in {path}"
        remedy = "unpack it, keep only one of the two files, and pack the folder again"
    raise InputError(f"{catalog.names[row]} occurs {places}", "expected every name once", remedy)


_SHARD = re.compile(r"(.*-)(\d{5})(-of-(\d{5}).*)")


def missing_shards(paths: Iterable[object], folder: Path = Path()) -> list[InputError]:
    """The fault of each set of files a-00000-of-00002 that isn't whole; ``folder`` is where
    relative paths start.
    """
    numbers_of_sets: dict[tuple[str, str, int], set[int]] = {}
    for path in paths:
        match = _SHARD.fullmatch(str(path))
        if match is None:
            continue
        file_set = match[1], match[3], int(match[4])
        numbers_of_sets.setdefault(file_set, set()).add(int(match[2]))
    faults = []
    for (head, tail, count), numbers in numbers_of_sets.items():
        missing = [f"{head}{number:05}{tail}" for number in range(count) if number not in numbers]
        if missing:
            faults.append(_fault_of_set(missing, count, f"{head}*{tail}", folder))
    return faults


def _fault_of_set(missing: Sequence[str], count: int, pattern: str, folder: Path) -> InputError:
    """The fault of ``count`` files that match a pattern and are not all read."""
    absent = [path for path in missing if not (folder / path).exists()]
    shown = absent or missing
    fault = "missing"
    remedy = "add what is missing"
    if not absent:
        fault = "not read with the others, perhaps for lack of images"
        remedy = "read all of them together"
    verb = "is" if len(shown) == 1 else "are"
    return InputError(
        f"{len(shown):,} of {number_of(count, 'file')} {verb} {fault}: {listed(shown)}",
        f"expected {number_of(count, 'file')} {pattern}, as their names say",
        f"{remedy}; or, if the set is complete, rename the files so that no name has -of-",
    )


_RENAME = "rename the file, or its folder (unpack an archive first, and pack it again)"


def fault_of_name(name: str, container: AnyPath) -> InputError | None:
    """The error for a name that is too long, or can't be a line of UTF-8,
    so it could neither be listed nor found again.
    """
    if len(name) > _LONGEST_NAME:
        return InputError(
            f"{container} holds a file whose path is too long: '{escaped(name[:100])}...'",
            f"expected at most {_LONGEST_NAME:,} characters, got {len(name):,}",
            _RENAME,
        )
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        encoded = b"\n"
    has_controls = any(byte < 32 for byte in encoded) or b"\x7f" in encoded
    if not has_controls:
        return None
    return InputError(
        f"{container} holds a file with a name that can't be used: '{escaped(name)}'",
        "expected UTF-8 without control characters",
        _RENAME,
    )
