"""What is said when an archive can't be trusted: which archive, at which byte, what to do."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator

from imagenet_prep.errors import InputError
from imagenet_prep.sources.tar_members import BLOCK, TarFault

REMEDY = "check where it comes from, or move it away and download it again with imagenet-prep download"
WHOLE_COPY = "get a whole copy of it"
"""What to do about an archive that no command fetches."""

INFLATION = 200
"""How often its own size a tar may unpack to. Annotations, 1 kB of repetitive XML a file, come to some 40."""

INFLATION_FLOOR = 1 << 30
"""Bytes that any tar may unpack to, however small it is."""


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


def most_unpacked(size: int) -> int:
    """Bytes at which a packed tar of ``size`` bytes is taken to unpack without end."""
    return max(INFLATION_FLOOR, INFLATION * size)


@contextlib.contextmanager
def stream_faults(source: object, tell: Callable[[], int] = int) -> Iterator[None]:
    """Turn what tar, gzip and the system find wrong into the error that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        raise InputError(f"{source}, unpacked, is damaged at byte {fault.offset:,}", fault.reason, REMEDY) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged before byte {tell():,}", str(error), REMEDY) from error
    except OSError as error:
        raise InputError(f"{error.filename or source} can't be read", error.strerror or str(error)) from error
