"""WireAdapter: connections whose answers have a deadline, and whose bodies can be read into a buffer."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import threading
from collections.abc import Iterator
from typing import Any

import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection


class WireAdapter(HTTPAdapter):
    """What mounts these connections in a session of requests."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """As always, with connections of ours."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """As always, with connections of ours; a SOCKS proxy has its own."""
        manager = super().proxy_manager_for(proxy, **options)
        if type(manager) is urllib3.ProxyManager:
            manager.pool_classes_by_scheme = _POOLS
        return manager


class WireReply(http.client.HTTPResponse):
    """An answer: informational ones before it (1xx, such as 103) are passed over."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 100 < status < 200 or status == http.HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            http.client.parse_headers(self.fp)

    def read_into(self, view: memoryview) -> int:
        """Read what has arrived of the body into a buffer, without a copy in between; 0 at its end.

        The body must not be chunked.
        """
        if self.fp is None:
            return 0
        view = view if self.length is None else view[: self.length]
        count = self.fp.readinto1(view)
        if self.length is not None:
            self.length -= count
        if not count or self.length == 0:
            self._close_conn()  # type: ignore[attr-defined]
        return count

    fp: io.BufferedReader
    length: int | None


class _Deadline(HTTPConnection):
    """A connection whose answer must begin, with all its headers, within the timeout that holds for each read."""

    response_class = WireReply

    def getresponse(self) -> Any:
        """The answer; TimeoutError if its headers take too long, however steadily they trickle."""
        with _shut_down_after(self.timeout, self.sock):
            return super().getresponse()


class _DeadlineTls(_Deadline, HTTPSConnection):
    """The same over TLS."""


class _WirePool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Deadline


class _WirePoolTls(urllib3.HTTPSConnectionPool):
    ConnectionCls = _DeadlineTls


_POOLS = {"http": _WirePool, "https": _WirePoolTls}


@contextlib.contextmanager
def _shut_down_after(seconds: Any, sock: socket.socket) -> Iterator[None]:
    """Shut a socket down if the block takes longer: whoever reads from it then comes to an end."""
    if not isinstance(seconds, (int, float)):
        yield
        return
    is_late = threading.Event()

    def shut_down() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not SSLSocket's own: it takes the TLS away from a reader

    timer = threading.Timer(seconds, shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if is_late.is_set():
            raise TimeoutError("the headers took too long") from None
        raise
    finally:
        timer.cancel()
