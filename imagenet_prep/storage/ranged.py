"""RangedView: an object as bytes that can be sliced, each slice fetched by its range; more at a time while in order."""

from __future__ import annotations

from imagenet_prep.errors import InputError
from imagenet_prep.storage import objects
from imagenet_prep.storage.object_path import ObjectPath
from imagenet_prep.storage.refusals import unreadable

_MOST = 8 << 20
_NEAR = 1 << 20  # bytes: to fetch what lies between takes no longer than another request


class RangedView:
    """The bytes of an object, read-only.

    A slice that lies in what was fetched last costs nothing. One that begins within a MiB after its end is taken for
    reading in order: a MiB is fetched, then twice as much at a time, up to 8 MiB, so that a reader of headers has many
    of them in one request. Any other one is fetched as it is, and at least ``least`` bytes. Several threads may read.

    Raises:
        InputError: there is no such object; or, when it is sliced, it is another one now.
        NetworkError, AccessError: as their names say.
    """

    def __init__(self, path: ObjectPath, *, least: int = 0) -> None:
        self.path = path
        found = objects.find(path)
        if found is None:
            raise unreadable(path, FileNotFoundError(2, "No such object"))
        self.changed = found.changed
        self._size = found.size
        self._least = least
        self._window = (0, memoryview(b""), least)  # one value: where it begins, its bytes, and how many were wanted

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> memoryview:
        start, stop, _ = where.indices(self._size)
        begin, held, wanted = self._window
        if begin <= start and stop <= begin + len(held):
            return held[start - begin : stop - begin]
        is_next = bool(held) and begin < start <= begin + len(held) + (_NEAR if self._least else 0)
        wanted = min(max(2 * wanted, _NEAR, stop - start), _MOST) if is_next else self._least
        fetched = self._fetch(start, min(max(stop, start + wanted), self._size))
        self._window = start, fetched, max(wanted, stop - start)
        return fetched[: stop - start]

    def _fetch(self, start: int, stop: int) -> memoryview:
        try:
            found = objects.get_range(self.path, start, stop)
        except FileNotFoundError as error:
            raise unreadable(self.path, error) from error
        if len(found) != stop - start:
            raise InputError(
                f"{self.path} changed while it was read",
                f"expected {stop - start} bytes at offset {start}, got {len(found)}",
                "run the same command again once nothing writes to it",
            )
        return found
