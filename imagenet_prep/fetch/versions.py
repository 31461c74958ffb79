"""Versions: whether the bytes of an answer may be put to those of a part, and the blocks that are compared for it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.patience import CutError
from imagenet_prep.fetch.reply import Remote, RestartError

Ask = Callable[[int, int], tuple[Remote, bytes]]
"""Fetches the bytes from start to stop: of which version they are, and the bytes. Raises CutError."""

_BLOCKS = 4
_BLOCK = 64 << 10
_ATTEMPTS = 20

_Validators = tuple[str | None, str | None]


class Versions:
    """The versions of a file that a part may be put together from.

    Without a digest that is the one that the part began with. With one, another address or ETag for a file of the same
    size is tried: some random blocks of what is there are fetched of it and compared. The digest decides in the end.

    Args:
        part: what is there.
        ask: fetches blocks.
        may_join: whether a digest is known.
    """

    def __init__(self, part: PartialFile, ask: Ask, *, may_join: bool) -> None:
        self._part = part
        self._ask = ask
        self._may_join = may_join
        self._lock = threading.Lock()
        self._joined: set[_Validators] = {_validators(part.remote)}

    def begin(self) -> None:
        """Make sure that what an earlier run left belongs to what is fetched now.

        Raises:
            CutError: no telling yet.
            RestartError: it doesn't.
        """
        before = self._part.before
        if before is not None and not self._part.remote.is_same_version(before):
            self._compare(self._part.remote)

    def admit(self, found: Remote) -> None:
        """Let an answer of version ``found`` pass if its bytes may be put to the part.

        Raises:
            CutError: they may not; perhaps those of the next answer may.
        """
        remote = self._part.remote
        if found == remote or found.is_same_version(remote):
            return
        if found.total != remote.total or not self._may_join:
            raise _changed("the file on the server has changed")
        with self._lock:
            if _validators(found) in self._joined:
                return
            try:
                self._compare(found)
            except RestartError as error:
                raise _changed(str(error)) from None
            self._part.join()
            self._joined.add(_validators(found))

    def _compare(self, found: Remote) -> None:
        """Compare random blocks of what is there with those of version ``found``."""
        spans = self._part.spans()
        agreed = 0
        for _ in range(_ATTEMPTS if spans else 0):
            start, stop = _block(spans)
            version, data = self._ask(start, stop)
            if _validators(version) != _validators(found):
                continue  # another of the servers behind this address has answered
            if data != self._part.read(start, stop):
                raise RestartError("the file on the server has changed: it holds other bytes than what is there")
            agreed += 1
            if agreed == _BLOCKS:
                return
        if spans and not agreed:
            raise CutError("the server answers with one version of the file, then with another")


def _validators(remote: Remote) -> _Validators:
    return remote.etag, remote.last_modified


def _changed(reason: str) -> CutError:
    return CutError(reason, lasting=RestartError(reason))


def _block(spans: list[tuple[int, int]]) -> tuple[int, int]:
    """A block of what is there, chosen by chance: every byte may be met."""
    start, stop = random.choices(spans, [stop - start for start, stop in spans])[0]
    place = random.randrange(start, stop)
    return place, min(stop, place + _BLOCK)
