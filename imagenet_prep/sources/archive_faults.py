"""What is said when an archive can't be trusted: which archive, at which byte, what to do."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.sources.tar_members import BLOCK

REMEDY = "check where it comes from, or move it away and download it again with imagenet-prep download"
WHOLE_COPY = "get a whole copy of it"
"""What to do about an archive that no command fetches."""


def stranger(archive: object, name: bytes, offset: int, expected: str) -> InputError:
    """The error for a member, its data at ``offset``, that can't be of this data set."""
    return InputError(
        f"{archive} holds a member that is not of this data set, at byte {offset - BLOCK:,}",
        f"expected {expected}, got {name[:100].decode('utf-8', 'backslashreplace')!r}",
        REMEDY,
    )


def duplicate(archive: object, name: str, first: int, again: int) -> InputError:
    """The error for a name that two members have, their data at ``first`` and ``again``."""
    return InputError(
        f"{archive} holds {name} twice, at byte {first - BLOCK:,} and again at byte {again - BLOCK:,}",
        "expected every name once",
        REMEDY,
    )
