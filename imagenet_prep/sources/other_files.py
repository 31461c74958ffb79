"""other_file, absence_in_words: a path where a plain file or a folder was expected -> words for
what is there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.storage.files import kind_of
from imagenet_prep.storage.location import AnyPath


def other_file(status: os.stat_result) -> str:
    """The kind of a file that is no plain file, with its article."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def absence_in_words(path: AnyPath) -> str:
    """The state of a path that leads to no file: a link may be there."""
    return "is a broken link" if path.is_symlink() else "is not there"


def plain_status(path: AnyPath) -> os.stat_result | str:
    """The status of a plain file; for any other path the reason, a verb first."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return absence_in_words(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return f"can't be read: {reason}"
    if stat.S_ISREG(status.st_mode):
        return status
    return f"is {other_file(status)}"


def no_folder(path: AnyPath) -> InputError:
    """The error for a path that is no folder."""
    fault = "is not a folder"
    if kind_of(path) == "nothing":
        fault = absence_in_words(path)
    return InputError(f"{path} {fault}", "expected the folder that holds the files")


def linked_folder(link: Path) -> InputError:
    """The error for a link to a folder."""
    target = link.resolve()
    if link.parent.resolve().is_relative_to(target):
        return InputError(
            f"{link} is a link to a folder that holds it",
            f"expected a folder, got a link to {target}",
            "remove the link",
        )
    remove = command_line(["rm", "--", str(link)])
    make_links = command_line(["cp", "-rs", "--", str(target), str(link)])
    return InputError(
        f"{link} is a link to another folder",
        f"expected a folder itself, got a link to {target}",
        Hint("replace the link with a folder of links to its files: ", remove.then(make_links)),
    )
