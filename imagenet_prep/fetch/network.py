"""What a request that failed means: the network, the server's certificate, or a proxy on the way."""

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
    ((requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError), "no connection in time"),
    (
        (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError),
        "the server stopped answering, or took too long to answer",
    ),
    ((requests.exceptions.SSLError, urllib3.exceptions.SSLError, ssl.SSLError), "the secure connection failed"),
)
_UNUSABLE = (InvalidProxyURL, InvalidURL, InvalidSchema, urllib3.exceptions.ProxySchemeUnknown)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})", re.ASCII)


def reason_of(error: Exception) -> str:
    """What failed on the network, in words that hold no URL."""
    cause = _cause(error)
    if isinstance(cause, NameResolutionError):
        host = re.search(r"resolve '([^'/@]+)'", str(cause))  # the server's, or a proxy's
        return f"can't reach {host[1] if host else 'the server'}: its name is not known"
    if any(isinstance(each, http.client.HTTPException) and "got more than" in str(each) for each in _nested(error)):
        return "the server sent more or longer headers than can be read"
    fitting = (words for kinds, words in _REASONS if isinstance(error, kinds) or isinstance(cause, kinds))
    return next(fitting, "the connection broke")


def raise_for(error: Exception, host: str, proxy: Proxy | None) -> NoReturn:
    """Raise what a failed request to ``host``, by way of ``proxy``, means.

    Raises:
        AccessError: the proxy wants a password.
        CutError: no connection; a later attempt may succeed.
        NetworkError: the certificate can't be trusted, or the proxy does not let us through.
        UsageError: the environment names authorities that are not there.
    """
    cause = _cause(error)
    if any(isinstance(argument, ssl.SSLCertVerificationError) for argument in cause.args):
        raise NetworkError(
            f"{host} can't be trusted to be what it says",
            "its TLS certificate could not be verified",
            "check the address and this machine's clock; set REQUESTS_CA_BUNDLE for an authority of your own",
        ) from None
    if type(error) is OSError:
        _refuse_missing_authorities()
    if proxy is not None:
        proxy.blame(error, host)
    # the original's text holds the URL, and with it the query
    if isinstance(cause, NameResolutionError):
        raise CutError(reason_of(error), kind="unknown") from None
    raise CutError(reason_of(error), kind="refused" if isinstance(cause, NewConnectionError) else "cut") from None


def _cause(error: Exception) -> Exception:
    """What urllib3 had raised before requests wrapped it, twice."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return cause if isinstance(cause, Exception) else error


def _nested(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it wraps."""
    yield error
    for argument in error.args:
        if isinstance(argument, BaseException):
            yield from _nested(argument)


def _refuse_missing_authorities() -> None:
    """Raise UsageError if requests did not find the file of authorities that the environment names."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        path = Path(os.environ.get(variable, ""))
        if not path.exists():
            raise UsageError(
                f"{variable} names {path}, which is not there",
                "expected a file of certificates of authorities",
                f"set {variable} right, or unset it",
            ) from None


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names.

    Args:
        name: its host and port, as far as they can be told without showing what else is in its address.
        variable: the environment variable that it came from.
        is_usable: whether its address is that of an HTTP proxy.
    """

    name: str
    variable: str
    is_usable: bool

    def refuse_password(self) -> NoReturn:
        """Raise the AccessError for 407."""
        raise AccessError(
            f"the proxy {self.name} wants a user name and a password",
            f"found none that it takes in {self.variable}: it answers HTTP status 407",
            f"set {self.variable}=http://USER:PASSWORD@{self.name} (special characters as %40), or NO_PROXY",
        )

    def blame(self, error: Exception, host: str) -> None:
        """Raise what a failed request to ``host`` means if this proxy is to blame for it; as ``raise_for``."""
        if isinstance(error, _UNUSABLE) and not self.is_usable:
            raise NetworkError(
                f"the proxy in {self.variable} can't be used",
                "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (special characters as %40)",
                f"set {self.variable} right, or NO_PROXY={host}",
            ) from None
        if isinstance(error, ProxyError):
            if found := _TUNNEL.search(str(error)):
                self._blame_for_tunnel(int(found[1]), host)
            named = f"{self.name}, which {self.variable} gives,"
            if any(isinstance(each, NameResolutionError) for each in getattr(_cause(error), "args", ())):
                raise CutError(f"the name of the proxy {named} is not known", kind="unknown")
            raise CutError(f"no connection to the proxy {named}")

    def _blame_for_tunnel(self, status: int, host: str) -> NoReturn:
        if status == 407:
            self.refuse_password()
        if status == 429 or status >= 500:
            raise CutError(f"the proxy {self.name} answers HTTP status {status}")
        raise NetworkError(
            f"the proxy {self.name} doesn't let us reach {host}",
            f"it answers HTTP status {status}",
            f"ask who runs it, or set NO_PROXY={host} where that can be reached without it",
        )


def proxy_of(url: str, no_proxy: str | None) -> Proxy | None:
    """The proxy that a request for ``url`` goes through, None if it goes straight; ``no_proxy``: hosts without one."""
    proxies = requests.utils.get_environ_proxies(url, no_proxy=no_proxy)
    address = requests.utils.select_proxy(url, proxies)
    if not address:
        return None
    scheme = urlsplit(url).scheme
    variable = f"{scheme.upper()}_PROXY" if scheme in proxies else "ALL_PROXY"
    # what stands behind the last "@", since a password with other signs may hold anything
    name = re.split(r"[/?#]", address.partition("://")[2].rpartition("@")[2] or address.rpartition("@")[2])[0]
    return Proxy(name, variable, _is_usable(address))


def _is_usable(address: str) -> bool:
    try:
        parts = urllib3.util.parse_url(address if "://" in address else f"http://{address}")
    except (urllib3.exceptions.HTTPError, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)
