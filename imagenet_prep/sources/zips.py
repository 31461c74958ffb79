"""Zip, a container whose entries are read in place; list_zip, walk_zip: a zip -> its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.images import first_bytes
from imagenet_prep.sources.archive_faults import (
    CutZip,
    NoZip,
    ZipFault,
    archive_error,
    other_file_error,
)
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.remarks import fault_of_name, refuse_twice
from imagenet_prep.sources.slices import Buffer, Container, FileSlices, Row
from imagenet_prep.sources.tar_members import WHOLE_COPY, Member
from imagenet_prep.sources.zip_entries import entry_at, iter_entries, read_entry
from imagenet_prep.storage.files import open_file
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.storage.memory_maps import map_file
from imagenet_prep.text import size_text

_HEAD = 512  # bytes that tell a web page


class Zip(Container, frozen=True):
    """A zip: a Row's ``offset`` is its entry in the central directory, ``length`` the size of the
    file.

    That entry has everything required to read the file, and its CRC-32; the header before the data
    must agree. A Row's name is the entry's, possibly without folders, or with the path of the zip
    before it. ``remedy`` is the advice for a damaged one.
    """

    remedy: ClassVar[str] = WHOLE_COPY
    listing_remedy: ClassVar[str] = (
        "run the same command again once nothing writes to it, or get an intact copy of it"
    )

    def place(self, row: Row) -> str:
        """The place of a row, for messages."""
        return f"{self.path.name}, entry {row.name}"

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows: slices of the zip's map, or inflated data.
        Every CRC-32 is checked.
        """
        content = map_file(local_path(self.path))

        def read(row: Row) -> Buffer:
            try:
                entry = entry_at(content, row.offset)
            except ZipFault as fault:
                raise self._changed(row) from fault
            name = _text_of(entry.name).removeprefix("./")
            if entry.size != row.length or not _is_same_file(name, row.name):
                raise self._changed(row)
            try:
                return read_entry(content, entry)
            except ZipFault as fault:
                raise _damaged(self.path, fault, self.remedy) from fault

        return read

    def _changed(self, row: Row) -> InputError:
        """The error for a directory that has another entry in the place of a row."""
        return InputError(
            f"{self.path} was replaced, written to or damaged since its files were listed",
            f"expected {row.name} of {row.length:,} bytes at byte {row.offset:,}",
            self.listing_remedy,
        )


def _is_same_file(entry: str, name: str) -> bool:
    """Whether a row's name is that of an entry:
    without folders, or with the path of the zip before it.
    """
    return f"/{entry}".endswith(f"/{name}") or name.endswith(f"/{entry}")


class SealedZip(Zip, frozen=True):
    """A zip that convert wrote, of the images that a function of the user's yielded."""

    remedy: ClassVar[str] = Hint(
        "run the same ", mention("convert"), " again with --allow-python: it makes the file again"
    )
    listing_remedy: ClassVar[str] = remedy


def list_zip(path: Path, container: type[Zip] = Zip) -> Catalog:
    """The files in a zip by name; hidden ones are left out.

    Raises:
        InputError: it is damaged, a name can't be one of a file, or repeats.
    """
    files = CatalogBuilder(container(path))
    with FileSlices(path) as view:
        stamp = view.modified
        for raw, address, length in walk_zip(view, container.remedy):
            name = _text_of(raw)
            if any(part.startswith(".") for part in name.split("/")):
                continue
            if fault := fault_of_name(name, path):
                raise fault
            files.append(name, address, length, stamp)
    return refuse_twice(files.sorted())


def check_zip(path: Path, remedy: str = WHOLE_COPY) -> None:
    """Compare every entry with its checksum.

    Raises:
        InputError: the zip is damaged.
    """
    view = map_file(path)
    try:
        for _, address, _ in iter_entries(view):
            read_entry(view, entry_at(view, address))
    except ZipFault as fault:
        raise _damaged(path, fault, remedy) from fault


def read_member(path: Path, name: bytes, remedy: str) -> bytes | None:
    """The bytes of an entry, compared with their checksum; None if there is none of this name.

    Raises:
        InputError: the zip is damaged.
    """
    with FileSlices(path) as view:
        for entry_name, address, _ in walk_zip(view, remedy):
            if entry_name != name:
                continue
            try:
                return bytes(read_entry(view, entry_at(view, address)))
            except ZipFault as fault:
                raise _damaged(path, fault, remedy) from fault
    return None


def with_slashes(name: bytes) -> bytes:
    """The name of an entry with slashes between folders:
    some programs of Windows write backslashes (4.4.17.1).
    """
    return name.replace(b"\\", b"/")


def _text_of(name: bytes) -> str:
    return with_slashes(name).decode("utf-8", "surrogateescape")


def walk_zip(view: FileSlices, hint: str = WHOLE_COPY) -> Iterator[Member]:
    """List name, address and length of every file in a zip, in central directory order.

    Raises:
        InputError: it is damaged; ``hint`` is the remedy; see ``iter_entries``.
    """
    try:
        yield from iter_entries(view)
    except ZipFault as fault:
        raise _damaged(view.path, fault, hint) from fault


def _damaged(path: AnyPath, fault: ZipFault, hint: str = WHOLE_COPY) -> InputError:
    if isinstance(fault, CutZip):
        what = f"{path} {fault.problem}: it has {size_text(fault.offset)}"
        return InputError(
            what, "expected a zip that ends with its list of files (the central directory)", hint
        )
    if isinstance(fault, NoZip):
        return _no_zip(path, hint)
    return archive_error(path, fault, hint)


def _no_zip(path: AnyPath, hint: str) -> InputError:
    """The error for a file that is no zip, by its first bytes."""
    with open_file(path) as file:
        head = file.read(_HEAD)
    what = f"{path} is not a zip, or is damaged at its start and its end"
    expected = f"expected 50 4b 03 04 as the first bytes, got {first_bytes(head)}"
    error = other_file_error(path, head, "zip", hint)
    return error or InputError(what, expected, hint)
