"""Skipped, the entries of a folder that are no images of the data set, by number and first name; and their listing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from imagenet_prep.model import Progress
from imagenet_prep.sources.obstacles import collected
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.store import FolderEntry

OTHER_NAMES, BELOW, NOT_FILES = "files of other names", "files in other folders", "entries that are no files"
"""Kinds of skipped entries."""


class Skipped(Struct):
    """The entries of a copy that are no images of the data set: their number and the first name, by what they are."""

    entries: dict[str, tuple[int, str]] = {}

    def add(self, what: str, name: str, count: int = 1) -> None:
        """Count ``count`` entries, of which ``name`` is one."""
        before, first = self.entries.get(what, (0, name))
        self.entries[what] = before + count, first

    def note(self, path: AnyPath, progress: Progress) -> None:
        """Name them, if there are any: now, or among the obstacles that are collected."""
        texts = []
        for what, (count, name) in self.entries.items():
            more = ", ..." if count > 1 else ""
            texts.append(f"{what}: {count:,} ({name}{more})")
        if not texts:
            return
        text = f"{path}: skipped {'; '.join(texts)}"
        obstacles = collected()
        if obstacles is None:
            progress.note(text)
        else:
            obstacles.notes.append(text)
            obstacles.skipped += sum(count for count, _ in self.entries.values())


def status_of(entry: FolderEntry) -> os.stat_result | None:
    """The status of an entry; None for a dangling link."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


def files_below(folder: AnyPath) -> Iterator[AnyPath]:
    """All files below a folder, and the folders that can't be read."""
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            with scan(current) as entries:
                for entry in entries:
                    path = current / entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    else:
                        yield path
        except OSError:
            yield current
