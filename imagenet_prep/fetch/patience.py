"""Patience: how often and how long to retry; and raise_for, the error about a network, a certificate or a proxy."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

import requests
from msgspec import Struct
from requests.exceptions import InvalidProxyURL, InvalidSchema, InvalidURL, ProxyError
from urllib3 import Retry, exceptions

from imagenet_prep.errors import AccessError, NetworkError, UsageError

_TRIES_OF_LASTING = 3

T = TypeVar("T")


@dataclass(eq=False)
class CutError(Exception):
    """A failed request that another attempt may fix.

    Args:
        reason: the cause, as text that never holds a URL.
        retry_after: the wait in seconds that the server asked for.
        kind: "refused": the server may accept no more connections. "slow": bytes arrived, but too few to count as
            progress.
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
        least_speed: bytes per second; a connection slower than this over ``slow_after`` seconds is cut.
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
        note: called with each wait: its reason, the number of the try, the seconds.
        kept: returns the number of bytes kept so far.
    """

    what: str
    pace: Pace
    pause: Callable[[float], object] = time.sleep
    note: Callable[[str], object] = lambda text: None
    kept: Callable[[], int] = lambda: 0
    _retry: Retry = field(init=False)
    _since: float = field(init=False)  # time of the last byte, or of the first attempt
    _lasting: int = 0  # the number of latest failures in a row that had a lasting error
    _mark: int = 0

    def __post_init__(self) -> None:
        self._refill()

    def _refill(self) -> None:
        self._retry, self._since, self._lasting = self.pace.retry(), time.monotonic(), 0

    def until(self, attempt: Callable[[], T]) -> T:
        """Call ``attempt`` until it raises no CutError, and return its result. Raises as ``wait``."""
        while True:
            try:
                return attempt()
            except CutError as cut:
                self.wait(cut)

    def wait(self, cut: CutError, mark: int = 0) -> None:
        """Wait before the next attempt. ``mark`` is any number that grows with progress, such as bytes received.

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
        failures, asked = len(self._retry.history), min(self.pace.longest_retry_after, cut.retry_after)
        seconds = max(asked, self._retry.get_backoff_time())
        if time.monotonic() + seconds > self._since + self.pace.budget:
            raise self._given_up(cut, failures)
        self.note(f"{self.what}: {cut.reason}; try {failures + 1} of {max(tries, failures + 1)} in {seconds:.0f} s")
        self.pause(seconds)

    def _given_up(self, cut: CutError, failures: int) -> NetworkError:
        again = "run the same command again"
        return NetworkError(
            f"{self.what}: gave up after {failures} attempts without progress",
            f"the last one failed with: {cut.reason}",
            f"received data is kept: {again} to resume" if self.kept() else f"{again} later",
        )


# failed requests -----------------------------------------------------------------------------------------------

_UNCONNECTED = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, ProxyError)
_REASONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((requests.Timeout, exceptions.TimeoutError, TimeoutError), "the server stopped answering, or took too long"),
    ((requests.exceptions.SSLError, exceptions.SSLError, ssl.SSLError), "the secure connection failed"),
)
_WORDS = {
    "got more than": "the server sent too many or too long headers",
    "multiple unmatching values": "the server sent two different lengths of one answer",
}
_UNUSABLE = (InvalidProxyURL, InvalidURL, InvalidSchema, exceptions.ProxySchemeUnknown)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})", re.ASCII)


def reason_of(error: Exception) -> str:
    """The cause of a network failure, as text without any URL."""
    nested = list(_nested(error))
    for each in nested:
        for words, reason in _WORDS.items():
            if words in str(each):
                return reason
    return next((reason for kinds, reason in _REASONS if _find(nested, kinds)), "the connection broke")


def raise_for(error: Exception, host: str, proxy: Proxy | None, *, was_answered: bool) -> NoReturn:
    """Raise the error for a failed request to ``host`` through ``proxy``.

    If no request ``was_answered`` yet, the address may be wrong: an unknown host is final, and a missing connection is
    final after 3 attempts.

    Raises:
        AccessError: the proxy requires a password.
        CutError: no connection; a later attempt may succeed.
        NetworkError: the certificate can't be trusted, the proxy refuses the connection, or the host is unknown.
        UsageError: the environment names a certificate file that doesn't exist.
    """
    nested = list(_nested(error))
    if _find(nested, ssl.SSLCertVerificationError):
        raise NetworkError(
            f"{host} can't prove its identity",
            "its TLS certificate could not be verified",
            "check the address and this machine's clock; set REQUESTS_CA_BUNDLE for your own certificate authority",
        ) from None
    if type(error) is OSError:
        _refuse_missing_authorities()
    if proxy is not None:
        proxy.blame(error, host)
    # the original message holds the URL, including its query
    name = f"the proxy {proxy.name} (from {proxy.variable})" if proxy else host
    if _find(nested, exceptions.NameResolutionError):
        unknown = f"can't reach {name}: unknown host name"
        if was_answered:
            raise CutError(unknown) from None
        raise _unreached(unknown) from None
    if _find(nested, _UNCONNECTED):
        timed_out = ": it timed out" if _find(nested, exceptions.ConnectTimeoutError) else ""
        what = f"no connection to {name}{timed_out}"
        raise CutError(what, kind="refused", lasting=None if was_answered else _unreached(what)) from None
    raise CutError(reason_of(error)) from None


def _unreached(what: str) -> NetworkError:
    return NetworkError(
        what,
        "nothing was fetched",
        "check --base-url, the proxy and this machine's network, or run the same command again later",
    )


def _nested(error: BaseException) -> Iterator[BaseException]:
    """An error and the errors it wraps: requests wraps those of urllib3, which wrap those of the system."""
    yield error
    for inner in (*error.args, getattr(error, "reason", None)):
        if isinstance(inner, BaseException):
            yield from _nested(inner)


def _find(nested: list[BaseException], kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(each, kinds) for each in nested)


def _refuse_missing_authorities() -> None:
    """Raise UsageError if the environment names a certificate file that doesn't exist."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        path = Path(os.environ.get(variable, ""))
        if not path.exists():
            raise UsageError(
                f"{variable} names {path}, which does not exist",
                "expected a file of CA certificates",
                f"correct {variable}, or unset it",
            ) from None


class Proxy(NamedTuple):
    """A proxy: its host and port, without the secrets its address may hold, and the environment variable it is from."""

    name: str
    variable: str

    def refuse_password(self) -> NoReturn:
        """Raise the AccessError for status 407."""
        raise AccessError(
            f"the proxy {self.name} requires a user name and a password",
            f"found none that it accepts in {self.variable}: it answers HTTP status 407",
            f"set {self.variable}=http://USER:PASSWORD@{self.name} (special characters as %40), or NO_PROXY",
        )

    def blame(self, error: Exception, host: str) -> None:
        """Raise the error if the proxy's address or its answer made a request to ``host`` fail; as ``raise_for``."""
        if isinstance(error, _UNUSABLE):
            raise NetworkError(
                f"the proxy in {self.variable} can't be used",
                "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (special characters as %40)",
                f"correct {self.variable}, or set NO_PROXY={host}",
            ) from None
        status = int(found[1]) if (found := _TUNNEL.search(str(error))) else 0
        if status == 407:
            self.refuse_password()
        if status == 429 or status >= 500:
            raise CutError(f"the proxy {self.name} answers HTTP status {status}")
        if status:
            raise NetworkError(
                f"the proxy {self.name} refuses a connection to {host}",
                f"it answers HTTP status {status}",
                f"ask its administrator, or set NO_PROXY={host} to connect directly",
            )


def proxy_of(url: str, no_proxy: str | None) -> Proxy | None:
    """The proxy for a request to ``url``, None without one; ``no_proxy`` lists the hosts to reach directly."""
    proxies = requests.utils.get_environ_proxies(url, no_proxy=no_proxy)
    address = requests.utils.select_proxy(url, proxies)
    if not address:
        return None
    scheme = urlsplit(url).scheme
    variable = f"{scheme.upper()}_PROXY" if scheme in proxies else "ALL_PROXY"
    # the part after the last "@": a password may hold any character
    name = re.split(r"[/?#]", address.partition("://")[2].rpartition("@")[2] or address.rpartition("@")[2])[0]
    return Proxy(name, variable)
