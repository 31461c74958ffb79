"""fetch: one file over HTTP, every byte once, over any number of runs, connections and servers that have it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.connections import Connections, ask_for
from imagenet_prep.fetch.front import Front
from imagenet_prep.fetch.partial import PartialFile, find_leftover
from imagenet_prep.fetch.patience import Pace, Patience
from imagenet_prep.fetch.reply import Remote, RestartError, inspect, name_of
from imagenet_prep.fetch.session import Getter
from imagenet_prep.fetch.versions import Versions
from imagenet_prep.model import Progress


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is there, whole.

    ``algorithm`` and ``digest`` (hex) are of the digest that was computed, "" if none is known; ``is_right`` says
    whether it is the expected one.
    """

    remote: Remote
    algorithm: str = ""
    digest: str = ""
    is_right: bool = True


def fetch(
    session: Getter,
    url: str,
    path: Path,
    progress: Progress,
    *,
    remote: Remote | None = None,
    digests: Mapping[str, str] | None = None,
    connections: int = 4,
    pace: Pace | None = None,
) -> Fetched:
    """Fetch ``url`` into the partial file ``path``, going on from what earlier runs left there.

    Args:
        session: who asks.
        url: what for; redirects are followed again for each piece, so what they lead to may change or expire.
        path: the partial file; two files beside it say what is there of it.
        progress: gets a bar of the bytes, one of what is then left to hash, and a line for each wait.
        remote: what ``inspect`` said of the URL, if it was asked already.
        digests: the digests that the file must have (hex), by algorithm of hashlib; the fastest one is computed. With
            one, bytes are kept though another server, or another version of the file, goes on with it.
        connections: how many pieces to fetch at a time.
        pace: timing and budget of retries.

    Raises:
        AccessError: the server refused, or sent a web page; what is on disk stays as it was.
        NetworkError: it can't be reached, or does not serve the file in a way that can be put together.
        SpaceError: the disk is full.
    """
    job = _Job(session, url, path, progress, digests or {}, pace or Pace())
    for is_last in (False, True):
        remote = remote or inspect(session, url, job.pace)
        job.clear(remote)
        with PartialFile(path, remote, has_digest=bool(digests)) as part:
            try:
                return job.attempt(part, connections, may_join=bool(digests) and not is_last)
            except RestartError as restart:
                if is_last:
                    raise _hopeless(url, restart) from None
                job.tell_of_restart(str(restart), part.size)
                part.reset()
                remote, connections = None, 1 if restart.is_about_ranges else connections
    raise AssertionError("unreachable")


def _hopeless(url: str, restart: RestartError) -> NetworkError:
    return NetworkError(
        f"{name_of(url)}: the server doesn't go on where it broke off",
        f"started over once, then again: {restart}",
        "run the same command again later, or name another server with --base-url",
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to fetch, and the attempts at it."""

    session: Getter
    url: str
    path: Path
    progress: Progress
    digests: Mapping[str, str]
    pace: Pace

    def clear(self, remote: Remote) -> None:
        """Say it beforehand if what earlier runs left is of no use."""
        left = find_leftover(self.path)
        if left and (obstacle := left.obstacle(remote, has_digest=bool(self.digests))):
            self.tell_of_restart(obstacle, left.size)

    def tell_of_restart(self, reason: str, size: int) -> None:
        """Say why bytes are thrown away, while they are still there."""
        cost = f"; {size:,} bytes that are there are thrown away" if size else ""
        self.progress.note(f"{name_of(self.url)}: starting over: {reason}{cost}")

    def attempt(self, part: PartialFile, connections: int, *, may_join: bool) -> Fetched:
        """Fetch what is missing, hash it meanwhile.

        Raises:
            RestartError: nothing can come of what is there.
        """
        versions = Versions(part, ask_for(self.session, self.url, self.pace), may_join=may_join)
        self._begin(versions, part)
        with Front(part, self.digests) if self.digests else contextlib.nullcontext() as front:
            Connections(self.session, self.url, part, versions, self.pace, front).run(connections, self.progress)
            if front is None:
                return Fetched(part.remote)
            digest = front.digest(self.progress, f"checking {name_of(self.url)}")
        is_right = digest == self.digests[front.algorithm]
        if part.is_joined and not is_right:
            raise RestartError(f"parts from different versions have come together, and the {front.algorithm} is wrong")
        return Fetched(part.remote, front.algorithm, digest, is_right)

    def _begin(self, versions: Versions, part: PartialFile) -> None:
        patience = Patience(
            name_of(self.url), self.pace, note=self.progress.note, kept=lambda: part.size, was_answered=True
        )
        patience.until(versions.begin)
