"""Zip, a container whose entries are read in place, stored or deflated, each known by its place in the directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.sources.archive_faults import WHOLE_COPY
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.slices import Buffer, FileSlices
from imagenet_prep.sources.tar_members import Member
from imagenet_prep.sources.zip_entries import CutZip, ZipFault, entry_at, iter_entries, read_entry
from imagenet_prep.storage.local import map_file
from imagenet_prep.text import size_text


@dataclass(frozen=True, slots=True)
class Zip:
    """A zip: a Row's ``offset`` is where the central directory describes the entry, ``length`` that of the file.

    That description tells all it takes to read the entry, and its CRC-32; the header before the data must say the same.
    A Row's name is that of the entry, folders before it may be left out.
    """

    path: Path
    is_sliced: ClassVar[bool] = False  # where data begin is known only from the header before them
    reading: ClassVar[Reading] = "anywhere"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return f"{self.path.name}, entry {row.name}"

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows: a slice of the zip's map, or what it inflates to. Every CRC-32 is compared."""
        content = map_file(self.path)

        def read(row: Row) -> Buffer:
            try:
                entry = entry_at(content, row.offset)
                if entry.size != row.length or not f"/{entry.name.decode()}".endswith(f"/{row.name}"):
                    raise ZipFault(row.offset, f"{row.name} of {row.length:,} bytes is not described here any more")
                return read_entry(content, entry)
            except (ZipFault, UnicodeDecodeError) as fault:
                raise _damaged(self.path, fault) from fault

        return read


def walk_zip(view: FileSlices, hint: str = WHOLE_COPY) -> Iterator[Member]:
    """Name, address and length of every file in a zip, in the order of its central directory.

    Raises:
        InputError: it can't be trusted, and ``hint`` says what to do; see ``iter_entries``.
    """
    try:
        yield from iter_entries(view)
    except ZipFault as fault:
        raise _damaged(view.path, fault, hint) from fault


def _damaged(path: Path, fault: ZipFault | UnicodeDecodeError, hint: str = WHOLE_COPY) -> InputError:
    if isinstance(fault, CutZip):
        what = f"{path} is not complete: it has {size_text(fault.offset)}"
        return InputError(what, "expected a zip that ends with its central directory", hint)
    if isinstance(fault, ZipFault):
        return InputError(f"{path} is damaged at byte {fault.offset:,}", fault.reason, hint)
    return InputError(f"{path} changed since it was listed", str(fault), hint)
