"""raise_for: turns a failed request into an error about the network, the certificate or a proxy."""

from __future__ import annotations

import http.client
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import requests
import urllib3
from requests.exceptions import InvalidProxyURL, InvalidSchema, InvalidURL, ProxyError
from urllib3.exceptions import NameResolutionError, NewConnectionError

from imagenet_prep.errors import AccessError, NetworkError, UsageError
from imagenet_prep.fetch.patience import CutError

_REASONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((NewConnectionError,), "no connection to the server"),
    ((requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError), "the connection timed out"),
    (
        (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError),
        "the server stopped answering, or took too long to answer",
    ),
    ((requests.exceptions.SSLError, urllib3.exceptions.SSLError, ssl.SSLError), "the secure connection failed"),
)
_UNUSABLE = (InvalidProxyURL, InvalidURL, InvalidSchema, urllib3.exceptions.ProxySchemeUnknown)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})", re.ASCII)


def reason_of(error: Exception) -> str:
    """The cause of a network failure, as text without any URL."""
    cause = _cause(error)
    if isinstance(cause, NameResolutionError):
        host = re.search(r"resolve '([^'/@]+)'", str(cause))  # the server's name, or a proxy's
        return f"can't reach {host[1] if host else 'the server'}: unknown host name"
    if any(isinstance(each, http.client.HTTPException) and "got more than" in str(each) for each in _nested(error)):
        return "the server sent too many or too long headers"
    fitting = (words for kinds, words in _REASONS if isinstance(error, kinds) or isinstance(cause, kinds))
    return next(fitting, "the connection broke")


def raise_for(error: Exception, host: str, proxy: Proxy | None, *, was_answered: bool) -> NoReturn:
    """Raise the error for a failed request to ``host`` through ``proxy``.

    If no request ``was_answered`` yet, a refused connection is final after a few attempts: the address may be wrong.

    Raises:
        AccessError: the proxy requires a password.
        CutError: no connection; a later attempt may succeed.
        NetworkError: the certificate can't be trusted, or the proxy refuses the connection.
        UsageError: the environment names a certificate file that doesn't exist.
    """
    cause = _cause(error)
    if any(isinstance(argument, ssl.SSLCertVerificationError) for argument in cause.args):
        raise NetworkError(
            f"{host} can't prove its identity",
            "its TLS certificate could not be verified",
            "check the address and this machine's clock; set REQUESTS_CA_BUNDLE for your own certificate authority",
        ) from None
    if type(error) is OSError:
        _refuse_missing_authorities()
    if proxy is not None:
        proxy.blame(error, host, was_answered=was_answered)
    # the original message holds the URL, including its query
    if isinstance(cause, NameResolutionError):
        raise CutError(reason_of(error), kind="unknown") from None
    if isinstance(cause, NewConnectionError):
        raise CutError(reason_of(error), kind="refused", lasting=_unreached(host, was_answered)) from None
    raise CutError(reason_of(error)) from None


def _unreached(name: str, was_answered: bool) -> NetworkError | None:
    """The error for an address that refuses every attempt; None if it may only do so for a while."""
    if was_answered:
        return None
    return NetworkError(
        f"no connection to {name}",
        "nothing was fetched",
        "check the address, the proxy and this machine's network, or run the same command again later",
    )


def _cause(error: Exception) -> Exception:
    """The error that urllib3 raised before requests wrapped it, twice."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return cause if isinstance(cause, Exception) else error


def _nested(error: BaseException) -> Iterator[BaseException]:
    """An error and the errors it wraps."""
    yield error
    for argument in error.args:
        if isinstance(argument, BaseException):
            yield from _nested(argument)


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


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names.

    Args:
        name: its host and port, without the secrets its address may hold.
        variable: the environment variable that names it.
        is_usable: whether its address is a valid HTTP proxy address.
    """

    name: str
    variable: str
    is_usable: bool

    def refuse_password(self) -> NoReturn:
        """Raise the AccessError for status 407."""
        raise AccessError(
            f"the proxy {self.name} requires a user name and a password",
            f"found none that it accepts in {self.variable}: it answers HTTP status 407",
            f"set {self.variable}=http://USER:PASSWORD@{self.name} (special characters as %40), or NO_PROXY",
        )

    def blame(self, error: Exception, host: str, *, was_answered: bool) -> None:
        """Raise the error for a failed request to ``host`` if this proxy caused it; as ``raise_for``."""
        if isinstance(error, _UNUSABLE) and not self.is_usable:
            raise NetworkError(
                f"the proxy in {self.variable} can't be used",
                "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (special characters as %40)",
                f"correct {self.variable}, or set NO_PROXY={host}",
            ) from None
        if isinstance(error, ProxyError):
            if found := _TUNNEL.search(str(error)):
                self._blame_for_tunnel(int(found[1]), host)
            named = f"{self.name} (from {self.variable})"
            if any(isinstance(each, NameResolutionError) for each in getattr(_cause(error), "args", ())):
                raise CutError(f"unknown host name of the proxy {named}", kind="unknown")
            raise CutError(
                f"no connection to the proxy {named}", lasting=_unreached(f"the proxy {named}", was_answered)
            )

    def _blame_for_tunnel(self, status: int, host: str) -> NoReturn:
        if status == 407:
            self.refuse_password()
        if status == 429 or status >= 500:
            raise CutError(f"the proxy {self.name} answers HTTP status {status}")
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
    return Proxy(name, variable, _is_usable(address))


def _is_usable(address: str) -> bool:
    try:
        parts = urllib3.util.parse_url(address if "://" in address else f"http://{address}")
    except (urllib3.exceptions.HTTPError, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)
