"""Skipped, the entries of a folder that are no images of the data set, by number and first name;
and their listing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from imagenet_prep.model import Progress
from imagenet_prep.sources.obstacles import collected
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.store import FolderEntry

OTHER_NAMES = "files of other names"
BELOW = "files in other folders"
NOT_FILES = "entries that are no files"
HIDDEN_FILES = "hidden files"
SYSTEM_FILES = "files of macOS, Windows or tar"
"""Kinds of skipped entries."""

_SYSTEM_FILE = re.compile(
    rb"(.*/)?(\._[^/]*|\.DS_Store|Thumbs\.db|desktop\.ini|GlobalHead\.[^/]*|pax_global_header)|"
    rb"(.*/)?(__MACOSX|PaxHeaders?(\.\d+)?)/.*",
    re.DOTALL,
)
"""Names of files that a system adds to an archive:
macOS's attributes (AppleDouble), pax headers unpacked as files.
"""


def is_system_file(name: bytes) -> bool:
    """Whether a member of an archive is a file that a system added to it."""
    return _SYSTEM_FILE.fullmatch(name) is not None


class Skipped(Struct):
    """The entries of a copy that are no images of the data set:
    their number and the first name, by what they are.
    """

    entries: dict[str, tuple[int, str]] = {}

    def add(self, reason: str, name: str, count: int = 1) -> None:
        """Count ``count`` entries, of which ``name`` is one."""
        earlier_count, first_name = self.entries.get(reason, (0, name))
        self.entries[reason] = earlier_count + count, first_name

    def update(self, part: Skipped) -> None:
        """Count the entries of another listing too."""
        for reason, (count, name) in part.entries.items():
            self.add(reason, name, count)

    def note(self, path: AnyPath, progress: Progress) -> None:
        """Name them, if there are any: now, or among the obstacles that are collected."""
        if not self.text:
            return
        text = f"{path}: skipped {self.text}"
        obstacles = collected()
        if obstacles is None:
            progress.note(text)
        else:
            obstacles.notes.append(text)
            obstacles.skipped += sum(count for count, _ in self.entries.values())

    @property
    def text(self) -> str:
        """Their kinds, each with its number and the first name; "" if there are none."""
        texts = []
        for reason, (count, name) in self.entries.items():
            names = f"{name}, ..." if count > 1 else name
            texts.append(f"{reason}: {count:,} ({names})")
        return "; ".join(texts)


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
