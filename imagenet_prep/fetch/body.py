"""Body: the bytes of an answer, read into a buffer, no slower than a minimum speed."""

from __future__ import annotations

import time

import requests
import urllib3

from imagenet_prep.fetch.patience import CutError, Pace
from imagenet_prep.fetch.session import reason_of
from imagenet_prep.fetch.wire import WireReply


class Body:
    """What comes of an answer.

    Args:
        response: the answer; nothing of its body was read.
        pace: its minimum speed.
    """

    def __init__(self, response: requests.Response, pace: Pace) -> None:
        self._raw = response.raw
        self._pace = pace
        reply = self._raw._original_response
        self._reply = reply if isinstance(reply, WireReply) and not reply.chunked else None
        self._count = 0
        self._waited = 0.0  # seconds, not counting what else was done between two reads

    def read_into(self, view: memoryview) -> int:
        """Read what has arrived into a buffer; 0 at the end of the body.

        Raises:
            CutError: the connection broke, fell silent, or is too slow.
        """
        self._check_speed()
        began = time.monotonic()
        try:
            count = self._read(view)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise CutError(reason_of(error)) from None
        self._waited += time.monotonic() - began
        self._count += count
        return count

    def _read(self, view: memoryview) -> int:
        if self._reply is not None:
            return self._reply.read_into(view)
        data = self._raw.read1(len(view), decode_content=False) or b""
        view[: len(data)] = data
        return len(data)

    def fill(self, view: memoryview) -> int:
        """Fill a small buffer; less at the end of the body, or where it breaks off after the first bytes."""
        filled = 0
        while filled < len(view):
            try:
                count = self.read_into(view[filled:])
            except CutError:
                if not filled:
                    raise
                break  # what came is worth keeping: the next read fails again
            if not count:
                break
            filled += count
        return filled

    def release(self) -> None:
        """Let the connection be used again, now that the whole body was read."""
        if self._reply is not None and self._reply.isclosed():
            self._raw.release_conn()

    def _check_speed(self) -> None:
        if self._waited < self._pace.slow_after:
            return
        if self._count < self._pace.least_speed * self._waited:
            speed = f"{self._count / self._waited:,.0f} bytes/s"
            raise CutError(f"too slow ({speed} over {self._waited:.0f} s)", kind="slow")
        self._count, self._waited = 0, 0.0
