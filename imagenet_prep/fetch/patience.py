"""Patience: how often and how long to retry a failed request, which is a CutError."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeVar

from msgspec import Struct
from urllib3 import Retry, exceptions

from imagenet_prep.errors import NetworkError
from imagenet_prep.text import number_of

_TRIES_OF_LASTING = 3

T = TypeVar("T")


@dataclass(eq=False)
class CutError(Exception):
    """A failed request that another attempt may fix.

    Args:
        reason: the cause, as text that never holds a URL.
        retry_after: the wait in seconds that the server asked for.
        kind: "refused": the server may accept no more connections. "slow": bytes arrived, but too
            few to count as progress.
        lasting: the error to raise if it persists after 3 attempts.
    """

    reason: str
    retry_after: float = 0
    _: KW_ONLY
    kind: Literal["cut", "refused", "slow"] = "cut"
    lasting: Exception | None = None


class Pace(Struct, frozen=True):
    """The timing of a transfer; times in seconds.

    Args:
        tries: failures in a row, without one byte of progress, before giving up.
        budget: the longest time without one byte of progress.
        first_wait: the wait before the third attempt; it doubles from one failure to the next.
        longest_wait: the limit of that doubling.
        longest_retry_after: the longest wait accepted from a Retry-After header.
        stall: a connection that is silent, or sends no complete headers, for this long is cut.
        least_speed: bytes per second; a connection slower than this over ``slow_after`` seconds is
            cut.
        save_every: how often progress is made durable.
        segment: bytes per request, if several connections share a file.
    """

    tries: int = 10
    budget: float = 1800
    first_wait: float = 2
    longest_wait: float = 60
    longest_retry_after: float = 300
    stall: float = 60
    least_speed: float = 1000
    slow_after: float = 60
    save_every: float = 5
    segment: int = 16 << 20

    def retry(self) -> Retry:
        """The whole budget of attempts."""
        return Retry(
            self.tries - 1,
            backoff_factor=self.first_wait / 2,
            backoff_max=self.longest_wait,
            backoff_jitter=self.first_wait / 2,  # many clients must not return at once
        )


@dataclass(slots=True)
class Patience:
    """A retry budget that refills on progress.

    Args:
        what: the task, for the error.
        pace: waits and budget.
        pause: waits for some seconds; ``Event.wait`` makes the wait interruptible.
        note: called with the first wait of each kind: its reason, the number of the try, the
            seconds.
        noted: the kinds that were noted; several can share it.
        kept: returns the number of bytes kept so far.
    """

    what: str
    pace: Pace
    pause: Callable[[float], object] = time.sleep
    note: Callable[[str], object] = lambda text: None
    kept: Callable[[], int] = lambda: 0
    noted: set[tuple[str, bool]] = field(default_factory=set)
    _retry: Retry = field(init=False)
    _since: float = field(init=False)  # time of the last byte, or of the first attempt
    _lasting: int = 0  # the number of latest failures in a row that had a lasting error
    _mark: int = 0

    def __post_init__(self) -> None:
        self._refill()

    def _refill(self) -> None:
        self._retry, self._since, self._lasting = self.pace.retry(), time.monotonic(), 0

    def until(self, attempt: Callable[[], T]) -> T:
        """Call ``attempt`` until it raises no CutError, and return its result.
        Raises as ``wait``.
        """
        while True:
            try:
                return attempt()
            except CutError as cut:
                self.wait(cut)

    def wait(self, cut: CutError, mark: int = 0) -> None:
        """Wait before the next attempt. ``mark`` is any number that grows with progress, such as
        bytes received.

        Raises:
            NetworkError: the budget is spent.
            Exception: ``cut.lasting``, if the failure persists.
        """
        if mark != self._mark and cut.kind != "slow":
            self._refill()
        self._mark = mark
        self._lasting = self._lasting + 1 if cut.lasting else 0
        tries = min(self.pace.tries, _TRIES_OF_LASTING) if cut.lasting else self.pace.tries
        if cut.lasting and self._lasting >= tries:
            raise cut.lasting
        try:
            self._retry = self._retry.increment(error=cut)
        except exceptions.MaxRetryError:
            raise self._given_up(cut, self.pace.tries) from None
        failures = len(self._retry.history)
        requested = min(self.pace.longest_retry_after, cut.retry_after)
        seconds = max(requested, self._retry.get_backoff_time())
        if time.monotonic() + seconds > self._since + self.pace.budget:
            raise self._given_up(cut, failures)
        # once when it occurs, and once when it persists
        text = f"{self.what}: {cut.reason}"
        note_key = re.sub(r"[\d.,]+", "", text), failures > _TRIES_OF_LASTING
        if note_key not in self.noted:
            self.noted.add(note_key)
            total = min(self.pace.tries, failures + tries - self._lasting)
            self.note(f"{text}; try {failures + 1} of {total} in {seconds:.0f} s")
        self.pause(seconds)

    def _given_up(self, cut: CutError, failures: int) -> NetworkError:
        again = "run the same command again"
        attempts = number_of(failures, "failed attempt", "failed attempts in a row")
        return NetworkError(
            f"{self.what}: gave up after {attempts}",
            f"the last one failed with: {cut.reason}",
            f"received data is kept: {again} to resume" if self.kept() else f"{again} later",
        )
