"""Patience: how long to keep trying; waits between attempts, told to the user, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from imagenet_prep.errors import NetworkError

_TRIES_OF_LASTING = 3

T = TypeVar("T")


class CutError(Exception):
    """A request that failed in a way that another attempt may mend.

    Args:
        reason: what failed, in words that never hold a URL.
        retry_after: the wait in seconds that the server asked for.
        kind: "unknown": no such host, which before the first answer is final. "refused": the server takes no more
            requests than it has, perhaps. "slow": bytes came, and too few for that to be called progress.
        lasting: what it is where it stays after a few attempts.
    """

    def __init__(
        self,
        reason: str,
        retry_after: float = 0,
        *,
        kind: Literal["cut", "unknown", "refused", "slow"] = "cut",
        lasting: Exception | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.kind = kind
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Pace:
    """The timing of a transfer; times in seconds.

    Args:
        tries: failures in a row, without one byte of progress, before giving up.
        first_wait: the wait after the first failure; it doubles from one failure to the next.
        longest_wait: the cap of that doubling.
        longest_retry_after: the cap of what a server may ask for in Retry-After.
        stall: a connection that is silent for this long is cut, and one whose headers take longer.
        least_speed: bytes a second; a connection that is slower over ``slow_after`` seconds is cut.
        save_every: how often progress is made durable.
        save_bytes: it is saved earlier when this many bytes have come, as long as saving takes little of the time.
        segment: bytes of the largest piece where several connections share a file.
        crumb: bytes of the smallest.
    """

    tries: int = 10
    first_wait: float = 1
    longest_wait: float = 60
    longest_retry_after: float = 300
    stall: float = 60
    least_speed: float = 1000
    slow_after: float = 60
    save_every: float = 5
    save_bytes: int = 32 << 20
    segment: int = 32 << 20
    crumb: int = 1 << 20


@dataclass(slots=True)
class Patience:
    """A retry budget that refills on progress.

    Args:
        what: what is being tried, for the error.
        pace: waits and budget.
        pause: waits for some seconds; ``Event.wait`` makes a wait that can be cut short.
        note: told of each wait: why, which try of how many, how long.
        kept: how many bytes of it are there.
        was_answered: whether the server was reached before, so that a name which isn't known now may be known later.
    """

    what: str
    pace: Pace
    pause: Callable[[float], object] = time.sleep
    note: Callable[[str], object] = lambda text: None
    kept: Callable[[], int] = lambda: 0
    was_answered: bool = False
    failures: int = 0
    lasting: int = 0  # how many of them, the last ones, were of the kind that lasts
    mark: int = 0

    def until(self, attempt: Callable[[], T]) -> T:
        """What an attempt returns, tried again after each CutError. Raises as ``wait``."""
        while True:
            try:
                return attempt()
            except CutError as cut:
                self.wait(cut)

    def wait(self, cut: CutError, mark: int = 0) -> None:
        """Wait before the next attempt. ``mark`` is anything that grows with progress, such as bytes received.

        Raises:
            NetworkError: the budget is spent.
            Exception: ``cut.lasting``, if that has lasted.
        """
        if mark != self.mark and cut.kind != "slow":
            self.failures = self.lasting = 0
        self.mark = mark
        self.failures += 1
        self.lasting = self.lasting + 1 if cut.lasting else 0
        tries = self.pace.tries
        if cut.lasting:
            if self.lasting >= min(tries, _TRIES_OF_LASTING):
                raise cut.lasting
            tries = min(tries, self.failures - self.lasting + _TRIES_OF_LASTING)
        if self.failures >= tries or (cut.kind == "unknown" and not self.was_answered):
            raise self._given_up(cut)
        doubled = min(self.pace.longest_wait, self.pace.first_wait * 2 ** (self.failures - 1))
        asked = min(self.pace.longest_retry_after, cut.retry_after)
        seconds = max(asked, doubled * random.uniform(0.5, 1))  # jitter: many clients must not come back at once
        self.note(f"{self.what}: {cut.reason}; try {self.failures + 1} of {tries} in {seconds:.0f} s")
        self.pause(seconds)

    def _given_up(self, cut: CutError) -> NetworkError:
        if cut.kind == "unknown" and not self.was_answered:
            return NetworkError(
                f"{self.what}: {cut.reason}",
                "nothing was fetched",
                "check that name (of --base-url, or of a proxy), and this machine's network",
            )
        again = "run the same command again"
        return NetworkError(
            f"{self.what}: given up after {self.failures} attempts without progress",
            f"the last one failed with: {cut.reason}",
            f"what has arrived is kept: {again} to go on from there" if self.kept() else f"{again} later",
        )
