"""Proxy: what stands between us and a server, by its name without its password, and what its refusals mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import urlsplit

import requests
import urllib3
from requests.exceptions import InvalidProxyURL, InvalidSchema, InvalidURL, ProxyError

from imagenet_prep.errors import AccessError, NetworkError
from imagenet_prep.fetch.patience import CutError

_UNUSABLE = (InvalidProxyURL, InvalidURL, InvalidSchema, urllib3.exceptions.ProxySchemeUnknown)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})", re.ASCII)


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
        """Raise what a failed request to ``host`` means if this proxy is to blame for it.

        Raises:
            AccessError: it wants a password.
            CutError: it can't be reached, or is busy.
            NetworkError: it doesn't let us through, or its address is none.
        """
        if isinstance(error, _UNUSABLE) and not self.is_usable:
            raise NetworkError(
                f"the proxy in {self.variable} can't be used",
                "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (special characters as %40)",
                f"set {self.variable} right, or NO_PROXY={host}",
            ) from None
        if isinstance(error, ProxyError):
            if found := _TUNNEL.search(str(error)):
                self._blame_for_tunnel(int(found[1]), host)
            if _is_unknown(error):
                raise CutError(f"the name of the proxy {self._named} is not known", kind="unknown")
            raise CutError(f"no connection to the proxy {self._named}")

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

    @property
    def _named(self) -> str:
        return f"{self.name}, which {self.variable} gives,"


def proxy_of(url: str, no_proxy: str | None) -> Proxy | None:
    """The proxy that a request for ``url`` goes through, None if it goes straight; ``no_proxy``: hosts without one."""
    proxies = requests.utils.get_environ_proxies(url, no_proxy=no_proxy)
    address = requests.utils.select_proxy(url, proxies)
    if not address:
        return None
    scheme = urlsplit(url).scheme
    variable = f"{scheme.upper()}_PROXY" if scheme in proxies else "ALL_PROXY"
    return Proxy(_name(address), variable, _is_usable(address))


def _name(address: str) -> str:
    """Host and port: what stands behind the last "@", since a password with other signs may hold anything."""
    return re.split(r"[/?#]", address.partition("://")[2].rpartition("@")[2] or address.rpartition("@")[2])[0]


def _is_unknown(error: ProxyError) -> bool:
    """Whether nobody knows the proxy's name: urllib3 has wrapped that, and requests once more."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return any(isinstance(each, urllib3.exceptions.NameResolutionError) for each in getattr(cause, "args", ()))


def _is_usable(address: str) -> bool:
    try:
        parts = urllib3.util.parse_url(address if "://" in address else f"http://{address}")
    except (urllib3.exceptions.HTTPError, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)
