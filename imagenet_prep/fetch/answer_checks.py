"""check_status, check_is_no_page: an answer -> nothing, or the error that says what it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import requests
import urllib3

from imagenet_prep.errors import AccessError, InputError, NetworkError
from imagenet_prep.escaping import CommandLine, mention, rerun
from imagenet_prep.fetch import ACCESS_KEY_VARIABLE, BASE_URL, SIGN_UP_URL, USERNAME_VARIABLE
from imagenet_prep.fetch.addresses import host_of, name_of, origin
from imagenet_prep.fetch.failures import INVALID_ANSWER, direct_connection
from imagenet_prep.fetch.patience import CutError
from imagenet_prep.fetch.session import is_page_type, proxy_between
from imagenet_prep.hints import Hint
from imagenet_prep.text import is_web_page

_PASSING = (408, 425, 429, 500, 502, 503, 504, 509, *range(520, 528))
_BUSY = (429, 503)
_RETRY = urllib3.Retry(retry_after_max=10**9)
VARIABLES = f"{USERNAME_VARIABLE} and {ACCESS_KEY_VARIABLE}"
"""The variables of an account, for messages."""
_BROWSER = "sign in with a browser, "


def with_cookies() -> Hint:
    """How to fetch with the cookies of a browser that is signed in, as the end of a hint."""
    return Hint("export its cookies to cookies.txt, and run: ", _command_with_cookies())


def _command_with_cookies() -> CommandLine:
    """The command of this process with a file of cookies; a call from Python has none."""
    if sys.argv[1:2] not in (["download"], ["run"]):
        return mention("download", "DATA_DIR", "--cookies", "cookies.txt")
    has_cookies = any(word.partition("=")[0] == "--cookies" for word in sys.argv)
    return rerun(() if has_cookies else (("cookies", Path("cookies.txt")),))


def refuse_encoding(response: requests.Response, url: str) -> None:
    """Raise InputError if an answer holds encoded bytes instead of the file's own."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise InputError(
            f"{host_of(response.url)} sends {name_of(url)} in encoded form",
            f"expected the file itself, got the HTTP header Content-Encoding: {encoding[:40]}",
            "use another network (a proxy may do this), or name another server with --base-url",
        )


def retry_after(header: str | None) -> float:
    """Seconds to wait by a Retry-After header: a number of seconds or a date;
    0 if it is absent or invalid.
    """
    try:
        return _RETRY.parse_retry_after(header or "")
    except (urllib3.exceptions.InvalidHeader, ValueError, TypeError, IndexError, OverflowError):
        return 0.0


def is_page(response: requests.Response, head: bytes, *, is_start: bool = True) -> bool:
    """Whether a response is a web page, by its first bytes;
    or by its type, unless those bytes are binary.
    """
    return (is_start and is_web_page(head)) or (is_page_type(response) and is_text(head))


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file may be text:
    they hold no control character foreign to texts.
    """
    return not set(head) & (set(range(32)) - set(b"\t\n\r\f\x1b"))


def check_is_no_page(
    response: requests.Response,
    head: bytes,
    url: str,
    *,
    is_start: bool = True,
    was_seen: bool = False,
) -> None:
    """Raise AccessError if a web page arrived in place of a file, or of a later part of it.

    If the file ``was_seen`` a moment ago, the page may pass: it raises CutError.
    """
    if is_page(response, head, is_start=is_start):
        error = page_error(response, url)
        if was_seen:
            raise CutError("a web page or XML in place of the file", lasting=error)
        raise error


def page_error(response: requests.Response, url: str) -> RefusedError:
    """The error for a web page in place of a file, maybe from a server that ``url`` leads to."""
    what = f"{host_of(response.url)} sent a web page or XML in place of {name_of(url)}"
    if origin(response.url) != origin(url):  # it gets no credentials
        detail = f"{host_of(url)} redirects there; nothing of the page was kept"
        return RefusedError(what, detail, with_browser(url))
    return RefusedError(what, "expected the file; nothing of the page was kept", account_hint(url))


def check_status(
    response: requests.Response, url: str, *, name: str = "", was_seen: bool = False
) -> None:
    """Accept status 200 and 206; raise for every other.

    Args:
        response: the answer.
        url: the requested address.
        name: the file's name in messages, if not the one in the URL.
        was_seen: whether the server sent us the file a moment ago; if so, a refusal may be
            temporary.

    Raises:
        AccessError: 401 or 403.
        CutError: a temporary error: busy, overloaded, or a range reported as missing.
        NetworkError: anything else, such as 404.
    """
    status = response.status_code
    if status in (200, 206):
        encoding = response.headers.get("Transfer-Encoding", "chunked").strip().lower()
        if encoding not in ("chunked", "identity"):
            raise CutError(INVALID_ANSWER)
        return
    answer = f"HTTP status {status}"
    wait = retry_after(response.headers.get("Retry-After"))
    if status < 200 or status == 416 or status in _PASSING:
        raise CutError(answer, wait, kind="refused" if status in _BUSY else "cut")
    name = name or name_of(url)
    if origin(response.url) != origin(url):  # another server, whose signed address may have expired
        error = _refusal_elsewhere(status, url, name, response.url)
        raise CutError(f"{answer} from {host_of(response.url)}", wait, lasting=error)
    error = _refusal(status, url, name)
    if was_seen and status != 401:
        raise CutError(answer, wait, kind="refused" if status == 403 else "cut", lasting=error)
    raise error


def _refusal(status: int, url: str, name: str) -> AccessError | NetworkError:
    if status in (401, 403):
        return denied(
            url, f"HTTP status {status}", f"{host_of(url)} refused access to {name}", status
        )
    return NetworkError(
        f"{host_of(url)} did not send {name}",
        f"it answers HTTP status {status}",
        "check --base-url if you set it, or try later",
    )


def _refusal_elsewhere(status: int, url: str, name: str, target: str) -> AccessError | NetworkError:
    """The error for a refusal by the server that ``url`` redirects to: it gets no credentials."""
    is_denied = status in (401, 403)
    refused = "refused access to" if is_denied else "did not send"
    error_type = AccessError if is_denied else NetworkError
    return error_type(
        f"{host_of(target)} {refused} {name}",
        f"{host_of(url)} redirects there; the answer has HTTP status {status}",
        "check --base-url if you set it, or try later, or from another network",
    )


class RefusedError(AccessError):
    """A server refuses a file; ``status`` is its answer, 200 if it sent a page instead."""

    def __init__(self, what: str, detail: str, hint: str, status: int = 200) -> None:
        super().__init__(what, detail, hint)
        self.status = status


def has_account() -> bool:
    """Whether both variables of an account are set."""
    return all(map(os.environ.get, (USERNAME_VARIABLE, ACCESS_KEY_VARIABLE)))


def denied(url: str, got: str, what: str = "", status: int = 200) -> RefusedError:
    """The error for a file that is refused; a proxy in between may be the one that refuses it."""
    what = what or f"{host_of(url)} denied access to {name_of(url)}"
    hint, proxy = account_hint(url), proxy_between(url)
    if proxy and "403" in got:
        got = f"{got} from the server or from {proxy}"
        hint = f"ask the proxy's administrator, or {direct_connection(host_of(url))}"
    return RefusedError(what, f"got {got}", hint, status)


def new_account(url: str) -> str:
    """Where to get an account for a server."""
    host = host_of(url)
    return f"sign up at {SIGN_UP_URL}" if host == host_of(BASE_URL) else f"get one from {host}"


def account_hint(url: str) -> str:
    """The hint for a file that a server refuses, with an account or without one."""
    if has_account():
        ask = f"ask {host_of(url)} whether your account has access"
        return Hint(f"{ask}; or {_BROWSER}", with_cookies())
    return without_account(url)


def with_browser(url: str) -> Hint:
    """The hint for a site that only a browser may be able to sign in to."""
    browser = f"sign in at {host_of(url)} with a browser, read what the site says, "
    return Hint(browser, with_cookies())


def without_account(url: str) -> str:
    """The hint for a file that a server refuses, if no account was given."""
    account = f"if you have no account, {new_account(url)}; then set {VARIABLES}"
    return Hint(f"{account}; or {_BROWSER}", with_cookies())
