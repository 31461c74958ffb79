"""Container, where images lie, and the Reader of its rows. What kinds there are is known to the kinds alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from imagenet_prep.sources.slices import Buffer
from imagenet_prep.storage.location import AnyPath

Reading: TypeAlias = Literal["alone", "anywhere", "in order"]
"""How rows are read: each is a file of its own; all lie in one file, and are read in any order; or only in that of
their offsets, since each costs all that is before it."""


class Row(NamedTuple):
    """One file of a container: its name there, offset and length in bytes, and its modification time in ns.

    ``offset`` is 0 where a file doesn't lie in another one.
    """

    name: str
    offset: int
    length: int
    stamp: int


@dataclass(frozen=True, slots=True)
class Container:
    """Where images lie: the file or folder ``path``. A value, equal to another one of the same place; picklable.

    Each kind is one module, with the function that lists it: rows of a Catalog. ``is_sliced`` is whether its images are
    plain slices of the bytes of one file; ``reading`` how its rows are read: of "in order" shards are made from
    bundles, see ``regroup``.
    """

    path: AnyPath
    is_sliced: ClassVar[bool] = False
    reading: ClassVar[Reading] = "anywhere"

    def place(self, row: Row) -> str:
        """Where a row lies, in words."""
        return f"{self.path.name}, byte {row.offset:,}"

    def open(self) -> Callable[[Row], Buffer]:
        """What reads rows, each without a copy where that can be.

        Raises:
            InputError: now or when a row is read: a file is gone, or not as long as when it was listed.
        """
        raise NotImplementedError


class Reader:
    """Reads rows of containers; keeps the last two open. Belongs to one process."""

    def __init__(self) -> None:
        self._open = functools.lru_cache(maxsize=2)(_open)
        self._last: tuple[Container, Callable[[Row], Buffer]] | None = None  # one value: threads may share a reader

    def __reduce__(self) -> tuple[type[Reader], tuple[()]]:
        """A copy for another process opens again."""
        return Reader, ()

    def read(self, container: Container, row: Row) -> Buffer:
        """The bytes of a row.

        Raises:
            InputError: the file is gone, or shorter than it was when it was listed.
        """
        last = self._last
        if last is None or container is not last[0]:  # to look one up, by its path, takes longer than to slice a map
            last = self._last = container, self._open(container)
        return last[1](row)


def _open(container: Container) -> Callable[[Row], Buffer]:
    return container.open()
