"""Refuses places that a command can't read from or write to, before its work."""

from __future__ import annotations

import os
from pathlib import Path

from imagenet_prep.errors import UsageError, WriteError
from imagenet_prep.storage.files import IN_WORDS, absence_of, kind_of
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none

OF_A_RUN = "expected the DATA_DIR of a run"


def find_place(path: AnyPath) -> Layout | AnyPath:
    """The sets of a folder, or a file itself."""
    if path.is_file():
        return path
    refuse_missing(path, "expected a folder of shards, or a TFRecord file")
    return Layout(path)


def folder_fault(folder: Path) -> str:
    """Why no file can be in a folder: it is absent or none; "" if it is one."""
    if folder.is_dir():
        return ""
    if not os.path.lexists(folder):
        return f"the folder {folder} does not exist"
    return f"{folder} is {IN_WORDS[kind_of(folder)]}, not a folder"


def write_fault(folder: Path) -> str:
    """Why no file can be written in a folder; "" if one can."""
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"the file system of {folder} is read-only"
    return f"no permission to write in the folder {folder}"


def refuse_missing_data(folder: AnyPath) -> None:
    """Refuse a mistyped folder. The stages check folders in object stores."""
    if local_or_none(folder) is not None:
        refuse_missing(folder, OF_A_RUN)


def refuse_missing(folder: AnyPath, expected: str = "expected a folder of shards") -> None:
    """Refuse a folder that does not exist."""
    if not folder.is_dir():
        raise UsageError(absence_of(folder), expected)


def refuse_unwritable(page: AnyPath) -> None:
    """Fail before hours of verify if the page, which is written last, can't be written."""
    local = local_or_none(page)
    if local is None:
        return
    folder = next(parent for parent in local.parents if parent.is_dir())
    fault = write_fault(folder)
    if fault:
        hint = "name a file in another folder with --output"
        raise WriteError(f"the page can't be written in {page.parent}", fault, hint)
