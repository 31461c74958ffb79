"""raise_for puts each failure of a request into its class, by type:
passing, lasting, access, or wrong settings.
"""

from __future__ import annotations

import errno
import http.client
import os
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

import requests
from requests.exceptions import InvalidProxyURL, InvalidSchema, InvalidURL
from urllib3 import exceptions

from imagenet_prep.errors import AccessError, NetworkError, UsageError
from imagenet_prep.fetch.patience import CutError
from imagenet_prep.hints import Hint, install_extra
from imagenet_prep.text import either

AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""The environment variables that may name a file of CA certificates;
the first one that is set counts.
"""

_CUT_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_BREAKS = (http.client.RemoteDisconnected, http.client.IncompleteRead)
INVALID_ANSWER = "the server sent no valid HTTP answer"
"""The reason for every answer that breaks the rules of HTTP."""
_INVALID = (http.client.HTTPException, exceptions.InvalidHeader)
_BASE_URL = "--base-url if you set it"
_UNUSABLE = (
    InvalidProxyURL,
    InvalidURL,
    InvalidSchema,
    exceptions.ProxySchemeUnknown,
    exceptions.LocationParseError,
)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})(?: offers ([\w, ]+))?", re.ASCII)

_SOCKS = ("socks4", "socks4a", "socks5", "socks5h")
_ESCAPES = "write a special character by its code, such as %40 for @"

_NO_TLS, _PORT = (
    "does not speak TLS",
    "if you set --base-url, correct its port, or write http:// in it; otherwise ask the "
    "administrator of this network: another machine may answer in place of the server",
)
_ALERT = re.compile(r"^(tls|ssl)v\w+ alert ")
"""Before a reason that the server gave."""

_OLD, _NEWER = (
    "offers no version of TLS that this machine accepts",
    "ask its administrator for TLS 1.2 or newer",
)
_ASKS, _CLIENT = (
    "requires a client certificate",
    "fetch the file with a client that has one, and move it into the folder of the raw data: "
    "DATA_DIR/raw-data, or the one of --raw",
)

_DISAGREES = "makes no TLS connection with this machine"
_OTHERS = "ask its administrator: it may require a client certificate, or use old ciphers or keys"
_LASTING_TLS = (  # a part of OpenSSL's reason, what it means, what to do
    ("WRONG_VERSION|HTTP_REQUEST|RECORD_LAYER|PACKET_LENGTH|UNKNOWN_PROTOCOL", _NO_TLS, _PORT),
    ("PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS", _OLD, _NEWER),
    ("CERTIFICATE_REQUIRED", _ASKS, _CLIENT),
    (
        "HANDSHAKE_FAILURE|SHARED_CIPHER|INSUFFICIENT_SECURITY|KEY_TOO_SMALL|RENEGOTIATION",
        _DISAGREES,
        _OTHERS,
    ),
)


def reason_of(error: Exception) -> str:
    """The cause of a network failure, as text without any URL."""
    nested = list(_nested(error))
    if _find(nested, (requests.Timeout, exceptions.TimeoutError, TimeoutError)):
        return "the server stopped answering, or took too long"
    if _find(nested, (requests.exceptions.SSLError, exceptions.SSLError, ssl.SSLError)):
        reason = _tls_reason(nested)
        failure = "the secure connection failed"
        return f"{failure}: {reason}" if reason else failure
    if _find(nested, _INVALID) and not _find(nested, _BREAKS):
        return INVALID_ANSWER
    return "the connection broke"


def _tls_reason(nested: list[BaseException]) -> str:
    for cause in nested:
        if isinstance(cause, ssl.SSLError) and cause.reason:
            return cause.reason.lower().replace("_", " ")
    return ""


def raise_for(error: Exception, host: str, proxy: Proxy | None, *, was_answered: bool) -> NoReturn:
    """Raise the error for a failed request to ``host`` through ``proxy``.

    If no request ``was_answered`` yet, the address may be wrong: an unknown host and a refused TLS
    handshake are final, and a missing connection is final after 3 attempts.

    Raises:
        AccessError: the proxy requires a password.
        CutError: no connection; a later attempt may succeed.
        NetworkError: the certificate can't be trusted, the proxy refuses the connection, or the
            host is unknown.
        UsageError: the environment, the address or the cookies can't be used.
    """
    nested = list(_nested(error))
    _refuse_authorities(error, nested)
    _refuse_cookie(nested, host)
    if proxy is not None:
        proxy.blame(error, nested, host)
    if _find(nested, (*_UNUSABLE, UnicodeError)):
        raise UsageError(
            f"no request can be sent to {host}",
            "expected a valid address",
            f"check {_BASE_URL}",
        ) from None
    # the original message holds the URL, including its query
    is_about_proxy = proxy is not None and _find(nested, exceptions.ProxyError)
    name = str(proxy) if is_about_proxy else host
    if _find(nested, ssl.SSLCertVerificationError):
        address = f"the proxy in {proxy.variable}" if is_about_proxy and proxy else _BASE_URL
        raise _untrusted(name, address) from None
    through = f" through {proxy}" if proxy and not is_about_proxy else ""
    if refusal := _refused_tls(nested, f"{name}{through}"):
        raise (CutError(refusal.what, lasting=refusal) if was_answered else refusal) from None
    if unreached := _unreached(nested, name, proxy):
        _raise_unreached(unreached, nested, was_answered)
    raise CutError(f"{reason_of(error)}{through}") from None


def _raise_unreached(
    unreached: NetworkError, nested: list[BaseException], was_answered: bool
) -> NoReturn:
    """Raise the error for a connection that was not made; see ``raise_for``."""
    if was_answered:
        raise CutError(unreached.what, kind="refused") from None
    if _find(nested, exceptions.NameResolutionError):
        raise unreached from None
    raise CutError(unreached.what, kind="refused", lasting=unreached) from None


def _untrusted(name: str, address: str) -> NetworkError:
    """The error for a certificate that can't be verified; ``address`` is where its name is set."""
    variable = _authorities_variable()
    own = f"and the certificates that {variable} names"
    if not variable:
        own = "or name the file of your own certificate authority in REQUESTS_CA_BUNDLE"
    return NetworkError(
        f"{name} can't prove its identity",
        "its TLS certificate could not be verified",
        f"check {address}, this machine's clock, {own}",
    )


def _authorities_variable() -> str:
    """The variable that names a file of CA certificates; "" if none is set."""
    return next(filter(os.environ.get, AUTHORITIES), "")


def _refused_tls(nested: list[BaseException], name: str) -> NetworkError | None:
    """The error for a TLS handshake that fails at every attempt;
    None if another attempt may succeed.
    """
    for cause in nested:
        if not isinstance(cause, ssl.SSLError) or isinstance(cause, _CUT_TLS):
            continue
        for reasons, meaning, hint in _LASTING_TLS:
            if re.search(reasons, cause.reason or ""):
                reason = _tls_reason(nested)
                detail = f"the TLS connection failed: {_ALERT.sub('', reason)}"
                if meaning == _NO_TLS:
                    detail = f"expected TLS, got an answer of another kind ({reason})"
                return NetworkError(f"{name} {meaning}", detail, hint)
    return None


def _unreached(nested: list[BaseException], name: str, proxy: Proxy | None) -> NetworkError | None:
    """The error for a connection that was not made; None if it was."""
    if failure_of_socks := _socks_failure(nested, name, proxy):
        failure = failure_of_socks
    elif _find(nested, exceptions.NameResolutionError):
        failure = f"can't reach {name}: no address was found for its name"
    elif _find(nested, exceptions.ConnectTimeoutError):
        numbers = [cause.errno for cause in nested if isinstance(cause, OSError) and cause.errno]
        reason = os.strerror(numbers[0]).lower() if numbers else "it did not answer in time"
        failure = f"no connection to {name}: {reason}"
    else:
        return None
    address = f"the proxy in {proxy.variable}" if proxy else _BASE_URL
    hint = f"check this machine's network, and {address}, or run the same command again later"
    return NetworkError(failure, "nothing was fetched", hint)


def _socks_failure(nested: list[BaseException], host: str, proxy: Proxy | None) -> str:
    """The failure of a SOCKS proxy, or of a connection behind it; "" without one."""
    for cause in nested:
        error = cause.__context__
        if type(error).__module__ != "socks":  # PySocks, which may not be installed
            continue
        number = getattr(getattr(error, "socket_err", None), "errno", None)
        if number:
            return f"no connection to {proxy}: {os.strerror(number).lower()}"
        message = str(getattr(error, "msg", "")).lower()
        reason = re.sub(r"^(socket error: )?(0x\w\w: )?", "", message)
        return f"{proxy} made no connection to {host}: {reason}"
    return ""


def _nested(error: BaseException) -> Iterator[BaseException]:
    """An error and the errors it wraps: requests wraps those of urllib3,
    which wrap those of the system.
    """
    yield error
    inner = [error.__cause__, *error.args, getattr(error, "reason", None)]
    for cause in dict.fromkeys(part for part in inner if isinstance(part, BaseException)):
        yield from _nested(cause)


def _find(
    nested: list[BaseException], types: type[BaseException] | tuple[type[BaseException], ...]
) -> bool:
    return any(isinstance(cause, types) for cause in nested)


def _refuse_authorities(error: Exception, nested: list[BaseException]) -> None:
    """Raise UsageError if the environment names a file of certificates that can't be opened,
    or holds none.
    """
    variable = _authorities_variable()
    if not variable:
        return
    path = Path(os.environ[variable])
    is_about_tls = _find(nested, (exceptions.SSLError, ssl.SSLError))
    libraries = {cause.library for cause in nested if isinstance(cause, ssl.SSLError)}
    reason = _why_unreadable(path) if is_about_tls or type(error) is OSError else ""
    if reason or libraries & {"X509", "PEM", "ASN1"}:
        fault = f"can't be read: {reason}" if reason else "holds no certificate, or a damaged one"
        raise UsageError(
            f"{variable} names {path}, which {fault}",
            "expected a file of CA certificates",
            f"correct {variable}, or unset it",
        ) from None


def _why_unreadable(path: Path) -> str:
    """The system's reason why a file or a folder can't be read; "" if it can."""
    try:
        path.stat()
    except OSError as error:
        return os.strerror(error.errno or 0).lower()
    return "" if os.access(path, os.R_OK) else os.strerror(errno.EACCES).lower()


def _refuse_cookie(nested: list[BaseException], host: str) -> None:
    """Raise UsageError if the name of a cookie can't be in a header."""
    unsent = [cause for cause in nested if isinstance(cause, UnicodeEncodeError)]
    if any(cause.encoding == "latin-1" for cause in unsent):  # the encoding of headers
        raise UsageError(
            f"a cookie for {host} can't be sent",
            "expected cookies whose names have only ASCII characters",
            f"in the file of --cookies, remove each cookie of {host} with another character in its "
            "name",
        ) from None


def direct_connection(host: str) -> str:
    """How to reach a host without a proxy, as the end of a hint."""
    name = next(filter(os.environ.get, ("no_proxy", "NO_PROXY")), "")  # the first one counts
    change = f"add {host} to the list in {name}" if name else f"set NO_PROXY={host}"
    return f"{change} to connect directly"


class Proxy(NamedTuple):
    """A proxy: its host and port, without the secrets its address may hold,
    and the environment variable it is from.
    """

    name: str
    variable: str
    scheme: str = "http"

    def __str__(self) -> str:
        return f"the proxy {self.name} (from {self.variable})"

    def refuse_password(self, schemes: str, host: str) -> NoReturn:
        """Raise the AccessError for status 407 to a request to ``host``; ``schemes`` are the ways
        to sign in that the proxy offers, "" if none is known.
        """
        direct = direct_connection(host)
        if schemes and "basic" not in schemes.lower():
            raise AccessError(
                f"the proxy {self.name} requires a sign-in by {either(schemes.split(', '))}",
                "imagenet-prep can only send it a user name and a password (Basic)",
                f"set {self.variable} to a proxy that signs in for you, such as cntlm, or {direct}",
            )
        address = f"{self.scheme}://USER:PASSWORD@{self.name}"
        raise AccessError(
            f"the proxy {self.name} requires a sign-in",
            f"{self.variable} has no user name and password that it accepts (HTTP status 407)",
            f"set {self.variable}={address} ({_ESCAPES}), or {direct}",
        )

    def blame(self, error: Exception, nested: list[BaseException], host: str) -> None:
        """Raise the error if the proxy's address or its answer made a request to ``host`` fail;
        as ``raise_for``.
        """
        if self.scheme.startswith("socks") and isinstance(error, InvalidSchema):
            raise UsageError(
                f"{self.variable} names a SOCKS proxy",
                "a SOCKS proxy requires the package PySocks, which is not installed",
                Hint("install it: ", install_extra("socks")),
            ) from None
        is_unknown_socks = self.scheme.startswith("socks") and self.scheme not in _SOCKS
        if is_unknown_socks or isinstance(error, (*_UNUSABLE, UnicodeError)):
            raise NetworkError(
                f"the proxy in {self.variable} can't be used",
                f"expected http://HOST:PORT, http://USER:PASSWORD@HOST:PORT ({_ESCAPES}) or "
                "socks5h://HOST:PORT",
                f"correct {self.variable}, or {direct_connection(host)}",
            ) from None
        if _find(nested, exceptions.ProxyError):
            self._refuse_without_tls(nested)
        if match := _TUNNEL.search(str(error)):
            self._refuse_tunnel(int(match[1]), match[2] or "", host)

    def _refuse_without_tls(self, nested: list[BaseException]) -> None:
        """Raise the error for a proxy whose address starts with https://, but which speaks http."""
        refusal = _refused_tls(nested, str(self))
        if refusal is None or _NO_TLS not in refusal.what:
            return
        raise NetworkError(
            refusal.what,
            f"expected TLS, since {self.variable} starts with https://",
            f"write http:// in place of https:// in {self.variable}",
        ) from None

    def _refuse_tunnel(self, status: int, schemes: str, host: str) -> NoReturn:
        if status == 407:
            self.refuse_password(schemes, host)
        if status == 429 or status >= 500:
            raise CutError(f"the proxy {self.name} answers HTTP status {status}")
        raise NetworkError(
            f"the proxy {self.name} refuses a connection to {host}",
            f"it answers HTTP status {status}",
            f"ask its administrator, or {direct_connection(host)}",
        )


def proxy_of(url: str, no_proxy: str | None) -> Proxy | None:
    """The proxy for a request to ``url``, None without one;
    ``no_proxy`` lists the hosts to reach directly.
    """
    proxies = requests.utils.get_environ_proxies(url, no_proxy=no_proxy)
    address = requests.utils.select_proxy(url, proxies)
    if not address:
        return None
    scheme = urlsplit(url).scheme
    variable = _variable_of(scheme if scheme in proxies else "all")
    # the part after the last "@": a password may hold any character
    host_and_path = address.partition("://")[2].rpartition("@")[2] or address.rpartition("@")[2]
    name = re.split(r"[/?#]", host_and_path)[0]
    proxy_scheme = address.partition("://")[0].lower() if "://" in address else "http"
    return Proxy(name, variable, proxy_scheme)


def _variable_of(scheme: str) -> str:
    """The variable that names the proxy for a scheme; in small letters it counts first."""
    variable = f"{scheme}_proxy"
    return variable if os.environ.get(variable) else variable.upper()
