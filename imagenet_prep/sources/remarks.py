"""Remarks, what a listing says apart from its rows; and the faults of its names:
repeated, missing, or not to be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import escaped
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed


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


def refuse_twice(catalog: Catalog) -> Catalog:
    """The catalog, if its names are unique; its rows are sorted by name.

    Raises:
        InputError: a name repeats.
    """
    row = catalog.names.first_twice()
    if row is None:
        return catalog
    path, next_path = catalog.container(row).path, catalog.container(row + 1).path
    places = f"in {path} and in {next_path}" if path != next_path else f"in {path}, twice"
    raise InputError(
        f"{catalog.names[row]} occurs {places}", "expected every name once", "rename one of them"
    )


_SHARD = re.compile(r"(.*-)(\d{5})(-of-(\d{5}).*)")


def missing_shards(paths: Iterable[object]) -> list[InputError]:
    """The fault of each set of files a-00000-of-00002 that isn't whole."""
    numbers_of_sets: dict[tuple[str, str, int], set[int]] = {}
    for match in filter(None, (_SHARD.fullmatch(str(path)) for path in paths)):
        file_set = match[1], match[3], int(match[4])
        numbers_of_sets.setdefault(file_set, set()).add(int(match[2]))
    faults = []
    for (head, tail, count), numbers in numbers_of_sets.items():
        missing = [number for number in range(count) if number not in numbers]
        if missing:
            names = listed([f"{head}{number:05}{tail}" for number in missing])
            missing_count = f"{len(missing):,} of {count:,} files are missing"
            fault = InputError(
                f"{missing_count}, by the names of the others: {names}",
                f"expected {count:,} files {head}*{tail}",
                "add them; or give the files names without -of-",
            )
            faults.append(fault)
    return faults


def fault_of_name(name: str, container: AnyPath) -> InputError | None:
    """The error for a name that can't be a line of UTF-8,
    so it could neither be listed nor found again.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        encoded = b"\n"
    has_controls = any(byte < 32 for byte in encoded) or b"\x7f" in encoded
    if len(name) < 8192 and not has_controls:
        return None
    return InputError(
        f"{container} holds a file whose name can't be written: '{escaped(name)}'",
        "expected UTF-8 without control characters",
        "rename it",
    )
