"""Files named in a text, one a line: taken in that order, each one looked up."""

from __future__ import annotations

import functools
import stat
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine, Failed
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder, Remarks
from imagenet_prep.sources.class_folders import Folder
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath

_CHUNK = 4096  # names a task


@dataclass(frozen=True, slots=True)
class FileList:
    """What a manifest says: a path within the data and the line it stands in, a file."""

    path: AnyPath
    names: list[str]
    lines: Sequence[int]


def read_file_list(path: AnyPath, base: Path) -> FileList:
    """The names in a manifest, relative to ``base``; absolute ones must lie in it. Blank lines are passed over.

    Raises:
        InputError: it can't be read, or a line leads out of ``base`` or stands there twice.
    """
    names: list[str] = []
    lines = array("Q")
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        entry = line.strip("\r")
        if not entry.strip():
            continue
        names.append(_within(entry, base, path, number))
        lines.append(number)
    if len(set(names)) < len(names):
        raise _twice(path, names, lines)
    if not names:
        raise InputError(f"{path} names no file", "expected the name of a file in each line", "fill it, or remove it")
    return FileList(path, names, lines)


def _twice(path: AnyPath, names: Sequence[str], lines: Sequence[int]) -> InputError:
    first: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first.setdefault(name, row) < row)
    before = lines[first[names[row]]]
    return InputError(f"{path}, line {lines[row]}: {names[row]} is in line {before} already", "expected it once")


def _read_text(path: AnyPath) -> str:
    try:
        return read_plain(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8, at byte {error.start:,}", "expected a text of file names") from error


def _within(entry: str, base: Path, path: AnyPath, line: int) -> str:
    name = entry
    while name.startswith("./"):
        name = name[2:]
    root = f"{base.as_posix().rstrip('/')}/"
    if name.startswith("/") and name.startswith(root):
        name = name[len(root) :]
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise InputError(
            f"{path}, line {line}: {entry} leads out of the data",
            f"expected a path below {base}",
            "name the folder that holds all files with --raw, or DATAPATH in the environment",
        )
    return name


def look_up(files: FileList, base: AnyPath, engine: Engine) -> tuple[Catalog, Remarks]:
    """The files of a manifest, in its order.

    Raises:
        InputError: one is not there; the error names its line.
    """
    chunks = [(start, files.names[start : start + _CHUNK]) for start in range(0, len(files.names), _CHUNK)]
    parts: dict[int, tuple[Catalog, Remarks]] = {}
    for outcome in engine.map(_LookUp(base), chunks):
        if isinstance(outcome, Failed):
            raise outcome.error
        start, found, remarks, missing = outcome.value
        if missing:
            row, reason = missing[0]
            more = f" (and {len(missing) - 1} more near it)" if len(missing) > 1 else ""
            raise InputError(
                f"{files.path}, line {files.lines[start + row]}: {base / files.names[start + row]} {reason}{more}",
                "expected every file that a manifest names to be there",
                "take the line out, or remove the manifest to have it made again",
            )
        parts[start] = found, remarks
    in_order = [parts[start] for start, _ in chunks]
    found = Catalog.join((each for each, _ in in_order), is_listed=True)
    return found, Remarks.join(each for _, each in in_order)


def pick_listed(files: FileList, listing: Catalog) -> list[int]:
    """The rows of a listing that a manifest names, in its order.

    Raises:
        InputError: one is not there; the error names its line.
    """
    rows = {name: row for row, name in enumerate(listing.names)}
    for name, line in zip(files.names, files.lines, strict=True):
        if name not in rows:
            raise InputError(
                f"{files.path}, line {line}: {name} is not among the files of the source",
                "expected every file that a manifest names to be there",
                "take the line out, or look at the source of the recipe",
            )
    return [rows[name] for name in files.names]


@dataclass(frozen=True, slots=True)
class _LookUp:
    """Looks up some names: where they begin, what was found, remarks, and which rows were not, with the reason."""

    base: AnyPath

    def __call__(self, task: tuple[int, list[str]]) -> tuple[int, Catalog, Remarks, list[tuple[int, str]]]:
        start, names = task
        found, remarks = CatalogBuilder(Folder(self.base)), Remarks()
        missing: list[tuple[int, str]] = []
        root = self.base.resolve()
        leads_out = functools.cache(lambda folder: not folder.resolve().is_relative_to(root))
        for row, name in enumerate(names):
            path = self.base / name
            try:
                status = path.stat()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                missing.append((row, "is not there" if isinstance(error, FileNotFoundError) else reason))
                continue
            if not stat.S_ISREG(status.st_mode):
                missing.append((row, "is not a file"))
                continue
            found.append(name, 0, status.st_size, status.st_mtime_ns)
            if leads_out(path if path.is_symlink() else path.parent):
                remarks.links.append(name)
        return start, found.listed(), remarks, missing
