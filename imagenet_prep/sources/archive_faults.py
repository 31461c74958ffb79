"""ArchiveFault, a fault of a tar or a zip at a byte; archive_error: the error that names the
archive, and what to do.
"""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command_line
from imagenet_prep.hints import Hint
from imagenet_prep.text import is_web_page


class ArchiveFault(ValueError):  # noqa: N818 - a fault in data, not in the program
    """A fault of an archive; ``offset`` is the byte at which ``reason`` shows.

    ``remedy`` is the advice for an archive that is intact, and can't be read in place; "" for a
    damaged one. ``if_intact`` is the advice for one that may be intact, with other bytes before or
    after it.
    """

    def __init__(self, offset: int, reason: str, remedy: str = "", *, if_intact: str = "") -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason
        self.remedy = remedy
        self.if_intact = if_intact

    def __str__(self) -> str:
        return f"at byte {self.offset:,}: {self.reason}"

    @property
    def problem(self) -> str:
        """The words between the archive and the byte, a verb first."""
        if self.remedy:
            return "can't be read in place,"
        return "is damaged, or can't be read in place," if self.if_intact else "is damaged"


class TarFault(ArchiveFault):
    """A fault of a tar."""


class ZipFault(ArchiveFault):
    """A fault of a zip."""


class CutZip(ZipFault):
    """A file that starts like a zip and does not end like one; ``offset`` is its size."""

    @property
    def problem(self) -> str:
        """The words after the zip, a verb first."""
        return "is cut, damaged at its end, or followed by other bytes"


class NoZip(ZipFault):
    """A file that neither starts nor ends like a zip."""


def quoted(name: bytes) -> str:
    """A name of an archive in quotes, for messages; at most 100 bytes of it."""
    return repr(name if len(name) <= 100 else name[:97] + b"...")[1:]


def archive_error(archive: object, fault: ArchiveFault, hint: str) -> InputError:
    """The error for a fault of an archive; ``hint`` is the remedy for a damaged one."""
    what = f"{archive} {fault.problem} at byte {fault.offset:,}"
    if fault.if_intact:
        hint = Hint(hint, "; or, ", fault.if_intact)
    return InputError(what, fault.reason, fault.remedy or hint)


def other_file_error(archive: object, head: bytes, noun: str, hint: str) -> InputError | None:
    """The error for an empty file, or a web page, by its first bytes, in place of a tar or a zip;
    None for any other file.
    """
    if not head:
        return InputError(f"{archive} is empty", f"expected a {noun}", hint)
    if is_web_page(head):
        what = f"{archive} is a web page or XML, not an archive"
        return InputError(what, f"expected a {noun}, got HTML or XML", hint)
    return None


PACK_PLAIN_FILES = Hint(
    "unpack it, remove pipes, devices and broken links, and pack the folder again with GNU tar: ",
    command_line(
        ["tar", "--dereference", "--hard-dereference", "-cf", "NEW.tar", "-C", "FOLDER", "."]
    ),
)
"""The remedy for a tar that holds more than plain files: GNU tar packs the file of each link."""

_KINDS = {
    "1": "a hard link",
    "2": "a symbolic link",
    "3": "a device",
    "4": "a device",
    "6": "a pipe",
    "S": "a sparse file",
}


def special_member(name: str, kind: str, offset: int) -> TarFault:
    """The fault of a member that is no plain file, by the type in its header."""
    noun = _KINDS.get(kind, f"of tar's type {kind!r}")
    return TarFault(offset, f"{name} is {noun}, not a plain file", PACK_PLAIN_FILES)


UNJOIN = (
    "if tars were joined or the padding is longer than usual, unpack it with tar's option "
    "--ignore-zeros, and pack the files again"
)
"""The remedy for a tar with more than its padding after its end."""

_ZIP_AGAIN = "unpack it, and zip its files again"
_ZIP_REMEDIES = {
    "encrypted": f"{_ZIP_AGAIN} without a password",
    "large": f"{_ZIP_AGAIN} without compression (zip -0)",
    "method": f"{_ZIP_AGAIN} with the usual compression, or without (zip -0)",
    "special": f"{_ZIP_AGAIN}, with a file in place of each link",
    "split": "unpack all its parts together, and zip the files again as one zip",
}


def unread_zip(offset: int, reason: str, cause: str) -> ZipFault:
    """The fault of an intact zip that can't be read in place, for one of the causes above."""
    return ZipFault(offset, reason, _ZIP_REMEDIES[cause])
