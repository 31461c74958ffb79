"""The errors of an archive that is damaged, foreign or a bomb, and their remedies."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator

from imagenet_prep.errors import InputError
from imagenet_prep.sources.tar_members import BLOCK, TarFault

REMEDY = "check where it comes from, or move it away and run imagenet-prep download"
WHOLE_COPY = "get an intact copy of it"
"""The remedy for an archive that no command fetches."""

INFLATION = 200
"""The maximum expansion of a packed tar. Annotations, 1 kB of repetitive XML per file, expand about 40 times."""

INFLATION_FLOOR = 1 << 30
"""Bytes that any packed tar may expand to, however small it is."""


def stranger(archive: object, name: bytes, offset: int, expected: str) -> InputError:
    """The error for a member foreign to the data set; its data is at ``offset``."""
    return InputError(
        f"{archive} holds a member foreign to this data set, at byte {offset - BLOCK:,}",
        f"expected {expected}, got {name[:100].decode('utf-8', 'backslashreplace')!r}",
        REMEDY,
    )


def duplicate(archive: object, name: str, first: int, again: int) -> InputError:
    """The error for a name that two members share, with their data at ``first`` and ``again``."""
    return InputError(
        f"{archive} holds {name} twice, at byte {first - BLOCK:,} and again at byte {again - BLOCK:,}",
        "expected every name once",
        REMEDY,
    )


def most_unpacked(size: int) -> int:
    """The size at which a packed tar of ``size`` bytes is considered a bomb."""
    return max(INFLATION_FLOOR, INFLATION * size)


@contextlib.contextmanager
def stream_faults(source: object, tell: Callable[[], int] = int) -> Iterator[None]:
    """Turn errors of tar, gzip and the system into one that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        raise InputError(f"{source}, unpacked, is damaged at byte {fault.offset:,}", fault.reason, REMEDY) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged before byte {tell():,}", str(error), REMEDY) from error
    except OSError as error:
        raise InputError(f"{error.filename or source} can't be read", error.strerror or str(error)) from error
