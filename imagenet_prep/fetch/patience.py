"""How long to keep trying: waits between attempts, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from imagenet_prep.errors import NetworkError


class CutError(Exception):
    """A request that failed in a way that another attempt may mend.

    ``reason`` never holds a URL; ``retry_after`` is the wait in seconds that the server asked for.
    """

    def __init__(self, reason: str, retry_after: float = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Pace:
    """The timing of a transfer; times in seconds.

    Args:
        tries: failures in a row, without one byte of progress, before giving up.
        first_wait: the wait after the first failure; it doubles from one failure to the next.
        longest_wait: the cap of that doubling.
        longest_retry_after: the cap of what a server may ask for in Retry-After.
        stall: a connection that is silent for this long is cut.
        save_every: how often progress is made durable.
        segment: bytes of one piece where several connections share a file.
    """

    tries: int = 10
    first_wait: float = 1
    longest_wait: float = 60
    longest_retry_after: float = 300
    stall: float = 60
    save_every: float = 5
    segment: int = 64 << 20


@dataclass(slots=True)
class Patience:
    """A retry budget that refills on progress.

    Args:
        what: what is being tried, for the error.
        pace: waits and budget.
        pause: waits for some seconds; ``Event.wait`` makes a wait that can be cut short.
    """

    what: str
    pace: Pace
    pause: Callable[[float], object] = time.sleep
    failures: int = 0
    mark: int = 0

    def wait(self, cut: CutError, mark: int = 0) -> None:
        """Wait before the next attempt. ``mark`` is anything that grows with progress, such as bytes received.

        Raises:
            NetworkError: the budget is spent.
        """
        if mark != self.mark:
            self.mark, self.failures = mark, 0
        self.failures += 1
        if self.failures >= self.pace.tries:
            raise NetworkError(
                f"{self.what}: given up after {self.failures} attempts without progress",
                f"the last one failed with: {cut.reason}",
                "what has arrived is kept: run the same command again to go on from there",
            )
        doubled = min(self.pace.longest_wait, self.pace.first_wait * 2 ** (self.failures - 1))
        asked = min(self.pace.longest_retry_after, cut.retry_after)
        self.pause(max(asked, doubled * random.uniform(0.5, 1)))  # jitter: many clients must not come back at once
