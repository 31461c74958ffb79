"""Session access: finds credentials and tokens, and opens a session that the server accepts."""

from __future__ import annotations

import base64
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from http.cookiejar import MozillaCookieJar
from pathlib import Path
from typing import NoReturn, TypeAlias

import requests

from imagenet_prep.errors import AccessError, InputError, UsageError
from imagenet_prep.fetch import SIGN_UP_URL, reply
from imagenet_prep.fetch.login import LoginForm, find_login_form
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Session, file_url, host_of, origin
from imagenet_prep.storage.files import find_plain

USERNAME_VARIABLE = "IMAGENET_USERNAME"
ACCESS_KEY_VARIABLE = "IMAGENET_ACCESS_KEY"

_PAGE_BYTES = 1 << 20
_LONGEST_SECRET = 1 << 16
_WORD = re.compile(r"[\x21-\x7e]+")


class _Secret:
    """A secret that can't be pickled, so it stays in this process."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials and tokens can't be pickled: they stay in this process")


@dataclass(frozen=True, slots=True)
class Credentials(_Secret):
    """A user name and its password, which no repr shows and no other process gets.

    ``origin`` says where they were found, for messages.
    """

    username: str
    password: str = field(repr=False)
    origin: str = field(default="", compare=False)

    @property
    def authorization(self) -> str:
        """The Authorization header for these credentials (RFC 7617)."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Token(_Secret):
    """A one-word secret, which no repr shows and no other process gets; ``where`` names its source, for messages."""

    value: str = field(repr=False)
    where: str

    @property
    def authorization(self) -> str:
        """The Authorization header for this token (RFC 6750, section 2.1)."""
        return f"Bearer {self.value}"


SignIn: TypeAlias = "Credentials | Callable[[], Credentials | None]"
"""Credentials, or a function that finds them; it is called only if a server asks for some."""


def find_credentials(base_url: str, *, prompt: Callable[[], tuple[str, str]] | None) -> Credentials | None:
    """Find credentials in IMAGENET_USERNAME and IMAGENET_ACCESS_KEY, then netrc, then the prompt; None if none has any.

    ``prompt`` asks a person and returns user name and password; None without a terminal.

    Raises:
        UsageError: one of the two variables is set without the other.
    """
    names = USERNAME_VARIABLE, ACCESS_KEY_VARIABLE
    username, password = map(os.environ.get, names)
    if username and password:
        return Credentials(username, password, f"from {USERNAME_VARIABLE}")
    if username or password:
        given, missing = names if username else reversed(names)
        raise UsageError(
            f"{given} is set and {missing} is not", "expected both, or neither", f"export {missing}, or unset {given}"
        )
    found, origin = _from_netrc(base_url), "from netrc"
    if not found and prompt:
        found, origin = prompt(), "typed"
    return Credentials(*found, origin) if found and found[0] else None


def _from_netrc(base_url: str) -> tuple[str, str] | None:
    """User name and password for a server from netrc; None if netrc has none or can't be read."""
    try:
        return requests.utils.get_netrc_auth(base_url)
    except UnicodeDecodeError:  # requests ignores every other fault of a netrc file
        return None


def token_in(where: str, text: str | None = None) -> Token | None:
    """The token in an environment variable or, if ``text`` is given, in a file; None if it is empty.

    Raises:
        UsageError: the value is more than one word, so no header can hold it; the message doesn't show it.
    """
    value = (os.environ.get(where, "") if text is None else text).strip()
    if value and not _WORD.fullmatch(value):
        raise UsageError(f"{where} holds no token", "expected one word of plain characters", "set it again")
    return Token(value, where) if value else None


def token_in_file(path: Path) -> Token | None:
    """The token in a file; None if the file doesn't exist."""
    return token_in(str(path), secret_text(path))


def secret_text(path: Path) -> str:
    """The text of a file of secrets; "" if the file doesn't exist.

    Raises:
        UsageError: it can't be read, or isn't a plain file.
    """
    try:
        return (find_plain(path, _LONGEST_SECRET) or b"").decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} can't be read", "expected a short text", "write it again") from None
    except InputError as error:
        raise UsageError(error.what, error.detail, error.hint) from None


def open_session(
    base_url: str,
    credentials: SignIn | None,
    cookies: Path | None,
    *,
    probe: str,
    pace: Pace | None = None,
    note: Callable[[str], object] = lambda text: None,
) -> Session:
    """Open a session that may fetch from ``base_url``; test it with the first bytes of the file ``probe``.

    The session does whatever the server asks for: nothing, Basic credentials, or a sign-in form; again when the sign-in
    expires.

    Args:
        base_url: the folder of the archives.
        credentials: used only if the server asks.
        cookies: a cookies.txt in Netscape's format, as browsers export it.
        probe: a file name.
        pace: timing and budget of retries.
        note: called with the text of each wait.

    Raises:
        AccessError: credentials are missing or refused.
        NetworkError: the server can't be reached or has no such file.
        UsageError: the URL or the cookie file can't be used.
    """
    pace = pace or Pace()
    session = Session(base_url, pace.stall, note)
    if cookies is not None:
        session.use_cookies(_load_cookies(cookies))
    find = cache(credentials) if callable(credentials) else lambda: credentials
    session.enter_with(partial(_enter, session, find, cookies))
    url = file_url(base_url, probe)
    Patience(reply.name_of(url), pace, note=note).until(lambda: reply.ask(session, url, reply.FIRST))
    return session


def _enter(
    session: Session,
    find: Callable[[], Credentials | None],
    cookies: Path | None,
    response: requests.Response,
    url: str,
    in_vain: bool,
) -> None:
    """Sign in the way that the server's answer asks for."""
    status, head = response.status_code, reply.Body(response).peek(_PAGE_BYTES)
    is_page = reply.is_page(response, head)
    if status in (200, 206) and not is_page:
        session.sends_data_as_pages = True
        return
    form = find_login_form(head, response.url) if is_page else None
    if status == 403 and form is None and session.has_worked:  # or it accepts no more connections
        raise CutError("HTTP status 403", kind="refused", lasting=_denied(url, "HTTP status 403"))
    credentials = find()
    if credentials is None:
        raise _missing(url, cookies)
    if in_vain:
        # an unknown user gets 401, or a form
        raise _refused(url, credentials, is_denied=status == 403 and form is None)
    if status == 401 and "basic" in reply.schemes(response.headers.get("WWW-Authenticate", "")):
        session.authorization = credentials.authorization
    elif form is not None:
        _send_form(session, form, credentials)
    else:
        got = f"HTTP status {status}" if status in (401, 403) else "a web page without a recognizable sign-in form"
        raise _denied(url, got)


def _send_form(session: Session, form: LoginForm, credentials: Credentials) -> None:
    """Send the form to the server that the user named only, and never in a URL."""
    try:
        at_home = origin(form.action) == session.home
    except ValueError:
        at_home = False
    if not at_home or form.method != "post":
        raise AccessError(
            "the sign-in form of the server can't be trusted with a password",
            "it goes to another address" if not at_home else "it would put the password into a URL",
            "sign in with a browser, export its cookies, then: imagenet-prep download --cookies FILE",
        )
    session.post(form.action, form.filled(credentials.username, credentials.password)).close()


def _load_cookies(path: Path) -> MozillaCookieJar:
    jar = MozillaCookieJar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # http.cookiejar reports a bad line as a bug of its own as well
            jar.load(str(path), ignore_discard=True, ignore_expires=True)
    except Exception:  # noqa: BLE001 - any failure of http.cookiejar is the file's fault
        # the original message quotes the line it could not read, and a cookie with it
        raise UsageError(
            f"{path} can't be read as cookies", "expected a cookies.txt in Netscape's format", "export it again"
        ) from None
    for cookie in jar:
        if cookie.expires == 0:  # how exporters write "until the browser is closed"
            cookie.expires = None
    return jar


def _missing(url: str, cookies: Path | None) -> AccessError:
    if cookies is not None:
        return reply.RefusedError(f"{host_of(url)} did not accept the cookies in {cookies}", "they may have expired")
    return reply.RefusedError(
        f"{host_of(url)} requires you to sign in for {reply.name_of(url)}",
        "found no credentials in the environment or netrc",
    )


def _refused(url: str, credentials: Credentials, *, is_denied: bool) -> AccessError:
    who = f"{credentials.username!r}" + (f" ({credentials.origin})" if credentials.origin else "")
    if is_denied:
        return reply.RefusedError(
            f"{host_of(url)} denied access to {reply.name_of(url)}, signed in as {who}",
            "expected the archive, got HTTP status 403",
            "ask the site whether this account has access; if a browser can fetch the file, use "
            "imagenet-prep download --cookies FILE, or move the browser's copy into raw-data/",
        )
    return reply.RefusedError(
        f"{host_of(url)} refused the credentials of {who}",
        "expected a valid user name and access key",
        f"check both and try again (or set IMAGENET_USERNAME and IMAGENET_ACCESS_KEY, "
        f"or imagenet-prep download --cookies FILE); without an account sign up at {SIGN_UP_URL}",
    )


def _denied(url: str, got: str) -> AccessError:
    return reply.RefusedError(
        f"{host_of(url)} denied access to {reply.name_of(url)}", f"expected the archive, got {got}"
    )
