"""Addresses on the web: the origin, host and name in a URL, and the target of a redirect."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import requests

from imagenet_prep.errors import NetworkError, UsageError

Origin = tuple[str, str, int]
_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> Origin:
    """Scheme, host and port of a URL. Raises ValueError if the port is no number."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    return parts.scheme, parts.hostname or "", port


def name_of(url: str) -> str:
    """The file name in a URL."""
    return bare_url(url).rpartition("/")[2]


def host_of(url: str) -> str:
    """The host of a URL, with its port if unusual; safe to show anywhere."""
    scheme, host, port = origin(url)
    if port == _DEFAULT_PORTS.get(scheme):
        return host
    return f"{host}:{port}"


def bare_url(url: str) -> str:
    """A URL without query and fragment, which may hold secrets."""
    return urlunsplit((*urlsplit(url)[:3], "", ""))


def file_url(base_url: str, filename: str) -> str:
    """The URL of a file in the folder ``base_url``; a query of the folder is kept."""
    parts = urlsplit(base_url)
    path = f"{parts.path.rstrip('/')}/{filename}"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def home_of(base_url: str) -> Origin:
    """The origin of the home address; raises UsageError if it can't be used."""
    try:
        parts = urlsplit(base_url)
        scheme, host, port = origin(base_url)
        check_host(host)
    except ValueError:
        parts = urlsplit("")
        scheme, host, port = "", "", 0
    if scheme not in _DEFAULT_PORTS or not host:
        raise UsageError(
            "the base URL can't be used",
            "expected http://... or https://... with a host name, and a port up to 65535 if any",
            "correct --base-url",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the base URL holds credentials",
            f"expected just {scheme}://{host_of(base_url)}/...",
            "set the variables of your account instead: IMAGENET_USERNAME and IMAGENET_ACCESS_KEY, "
            "KAGGLE_API_TOKEN or HF_TOKEN",
        )
    return scheme, host, port


def check_host(host: str) -> None:
    """Raise ValueError if no host has this name."""
    if re.search(r"[\s<>\"{}|\\^`*]", host):
        raise ValueError("a character that no name has")
    if host.isascii():
        host.encode("idna")
    else:
        requests.Request("GET", f"http://{host}/").prepare()


def redirect_target(requested: str, current: str, header: str) -> str:
    """The target of a redirect from ``current``; ``requested`` is the first URL of the chain.

    ``header`` is its Location, as http.client gives it: raw bytes decoded as Latin-1.

    For another origin, query parameters of ``requested`` that the server repeats are dropped.
    Credentials in the target are always dropped.

    Raises:
        NetworkError: the target leads from https to http, or is no web address.
    """
    try:
        location = header.encode("latin-1").decode()
        target = urljoin(current, location)
        parts = urlsplit(target)
        scheme, host, _ = origin(target)
        check_host(host)
    except ValueError:
        scheme = host = ""
    if scheme not in _DEFAULT_PORTS or not host:
        raise refused_redirect(current, "it leads to no valid web address")
    if urlsplit(current).scheme == "https" and scheme == "http":
        raise refused_redirect(
            current, "it leads from https to http, where anyone can read and change what is sent"
        )
    query = parts.query
    if origin(target) != origin(requested):
        query = _without_repeated(query, urlsplit(requested).query)
    _, _, host_and_port = parts.netloc.rpartition("@")
    return urlunsplit((scheme, host_and_port, parts.path, query, ""))


def _without_repeated(query: str, requested: str) -> str:
    """A query without the parameters that the ``requested`` query has, which may be secrets."""
    secrets = set(parse_qsl(requested, keep_blank_values=True))
    parameters = parse_qsl(query, keep_blank_values=True)
    if not secrets.intersection(parameters):
        return query
    return urlencode([parameter for parameter in parameters if parameter not in secrets])


def refused_redirect(url: str, why: str) -> NetworkError:
    """The error for a redirect from ``url`` that is not followed."""
    return NetworkError(
        f"a redirect from {host_of(url)} was not followed",
        why,
        "check --base-url if you set it, or try later",
    )
