"""read_file_list, look_up: a text with a file's name in each line -> the rows of those files."""

from __future__ import annotations

import contextlib
import functools
import posixpath
from array import array
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.names import below, text_of
from imagenet_prep.sources.other_files import plain_status
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.sources.tars import in_order
from imagenet_prep.sources.utf8_text import decode_text
from imagenet_prep.storage.files import kind_of, read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

_CHUNK = 4096  # names per task


class FileList(Struct, frozen=True):
    """The content of a manifest: one path within the data per file, and its line number."""

    path: AnyPath
    names: list[str]
    lines: Sequence[int]


def read_file_list(
    path: AnyPath, base: Path, base_key: str = "", example: str | None = None
) -> FileList:
    """Read the names in a manifest, relative to ``base``; absolute ones must be below it. Blank
    lines are skipped.

    ``base_key`` is the key of the recipe that names ``base``; "" if ``base`` is the root of its
    relative paths. Where ``base_key`` names files that may be in an archive, ``example`` is the
    name of one.

    Raises:
        InputError: it can't be read, or a line leads out of ``base`` or repeats a path.
    """
    names: list[str] = []
    lines = array("Q")
    text = decode_text(path, read_plain(path))
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip("\r")
        if not entry.strip():
            continue
        name = _below_base(entry, base)
        if f"{posixpath.normpath(name)}/".startswith(("/", "../")):
            place = f"{path}, line {number}"
            if example is not None:
                raise _unlike(entry, base_key, example, place)
            raise _outside(entry, base, base_key, place)
        _check_plain(name, entry, f"{path}, line {number}")
        names.append(name)
        lines.append(number)
    if len(set(names)) < len(names):
        raise _twice(path, names, lines)
    if not names:
        raise InputError(
            f"{path} names no file",
            "expected the name of a file in each line",
            "write the names into it",
        )
    return FileList(path, names, lines)


def _twice(path: AnyPath, names: Sequence[str], lines: Sequence[int]) -> InputError:
    first_rows: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first_rows.setdefault(name, row) < row)
    name = names[row]
    what = f"{path}, line {lines[row]}: {name} is already in line {lines[first_rows[name]]}"
    return InputError(what, "expected every name once", "remove one of the two lines")


def _below_base(entry: str, base: Path) -> str:
    """A path without what leads to ``base``."""
    name = entry
    while name.startswith("./"):
        name = name[2:]
    root = f"{text_of(base.as_posix()).rstrip('/')}/"
    if name.startswith("/") and name.startswith(root):
        name = name[len(root) :]
    return name


def _outside(entry: str, base: Path, base_key: str, place: str) -> InputError:
    """The error for a path that leads out of ``base``."""
    where = "with --raw or in the environment variable DATAPATH"
    if base_key:
        where = f"in `{base_key}`"
    what = f"{place}: {entry} is not written as a path below {base}"
    hint = f"correct the line, or change the folder where paths start, {where}"
    return InputError(what, "expected the path of a file in this folder", hint)


def _unlike(entry: str, base_key: str, example: str, place: str) -> InputError:
    """The error for a path that no file of a source can have as its name."""
    what = f"{place}: {entry} is not the name of a file that the recipe's `{base_key}` can list"
    return InputError(what, f"expected the name of a file, such as {example}", "correct the line")


def _check_plain(name: str, entry: str, place: str) -> None:
    """Raise InputError for a path that is written in an unusual way."""
    if {"", ".", ".."}.isdisjoint(name.split("/")):
        return
    raise InputError(
        f"{place}: {entry} is no plain path of a file",
        "expected a path without . and .., with one / between two names",
        f"write {posixpath.normpath(name)}",
    )


def look_up(files: FileList, base: AnyPath, engine: Engine) -> tuple[Catalog, Remarks]:
    """The files of a manifest, in its order.

    Raises:
        InputError: a file does not exist; the error names its line.
    """
    starts = range(0, len(files.names), _CHUNK)
    chunks = (files.names[start : start + _CHUNK] for start in starts)
    catalogs: list[Catalog] = []
    remarks: list[Remarks] = []
    faults: list[tuple[int, str]] = []
    listings = in_order(engine, LookUp(base), chunks)
    for start, (catalog, chunk_remarks, missing) in zip(starts, listings, strict=True):
        faults += [(start + row, reason) for row, reason in missing]
        catalogs.append(catalog)
        remarks.append(chunk_remarks)
    if faults:
        raise _missing(files, base, faults)
    return Catalog.join(catalogs, is_listed=True), Remarks.join(remarks)


def _missing(files: FileList, base: AnyPath, faults: Sequence[tuple[int, str]]) -> InputError:
    """The error for lines without a file that can be read; the first one is named."""
    row, reason = faults[0]
    more = ""
    if faults[1:]:
        count = number_of(len(faults) - 1, "more line names", "more lines name")
        more = f"; {count} no file that can be read"
    path, line = below(base, files.names[row]), files.lines[row]
    hint = (
        "correct the line, or put a file that you can read at this path; "
        f"relative paths start at {base}"
    )
    first_words, _, label = files.names[row].rpartition(" ")
    if _is_file(base, first_words.rstrip()):
        hint = (
            f"remove {label!r}: such a list has only paths; name a file of paths and labels in "
            "the recipe under labels: {file: ..., format: words}"
        )
    return InputError(
        f"{files.path}, line {line}: {path} {reason}{more}",
        "expected every line to name a file that can be read",
        hint,
    )


def _is_file(base: AnyPath, name: str) -> bool:
    """Whether the path of a file precedes the last word of a line."""
    with contextlib.suppress(InputError):
        return bool(name) and kind_of(below(base, name)) == "file"
    return False


class LookUp(Struct, frozen=True):
    """Looks up names: rows, remarks, and the index of each missing name with the reason."""

    base: AnyPath

    def __call__(self, names: Sequence[str]) -> tuple[Catalog, Remarks, list[tuple[int, str]]]:
        """The rows of names, in their order, and of those that are not
        there the place and the reason.
        """
        rows, remarks = CatalogBuilder(Folder(self.base)), Remarks()
        missing: list[tuple[int, str]] = []
        root = self.base.resolve()
        leads_out = functools.cache(lambda folder: not folder.resolve().is_relative_to(root))
        for row, name in enumerate(names):
            path = below(self.base, name)
            status = plain_status(path)
            if isinstance(status, str):
                missing.append((row, status))
                continue
            rows.append(name, 0, status.st_size, status.st_mtime_ns)
            if leads_out(path if path.is_symlink() else path.parent):
                remarks.links.append(name)
        return rows.listed(), remarks, missing
