"""open_session: credentials or cookies -> a session that the server accepts."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from http.cookiejar import MozillaCookieJar
from pathlib import Path
from typing import TypeAlias

import requests

from imagenet_prep.errors import AccessError, UsageError
from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.fetch import (
    ACCESS_KEY_VARIABLE,
    SIGN_UP_URL,
    USERNAME_VARIABLE,
    answer_checks,
    reply,
)
from imagenet_prep.fetch.credentials import Credentials
from imagenet_prep.fetch.login_form import LoginForm, find_login_form
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Session, file_url, host_of, name_of, origin, proxy_between
from imagenet_prep.hints import Hint
from imagenet_prep.text import listed

_PAGE_BYTES = 1 << 20
_COOKIES = "# Netscape HTTP Cookie File"
_QUOTED = re.compile(r'"[^"]*"?')
_SCHEME = re.compile(
    r"\s*([\w-]+)(?:\s+[^=\s].*|\s*)"
)  # not a parameter (RFC 9110, section 11.6.1)


SignIn: TypeAlias = "Credentials | Callable[[], Credentials | None]"
"""Credentials, or a function that finds them; it is called only if a server asks for some."""


def open_session(
    base_url: str,
    credentials: SignIn | None,
    cookies: Path | None,
    *,
    probe: str,
    pace: Pace | None = None,
    note: Callable[[str], object] = lambda text: None,
) -> Session:
    """Open a session that may fetch from ``base_url``; test it with the first bytes of the file
    ``probe``.

    The session does whatever the server asks for: nothing, Basic credentials, or a sign-in form;
    again when the sign-in expires.

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
    jar = None if cookies is None else _load_cookies(cookies)
    session.use_cookies(jar or ())
    find = cache(credentials) if callable(credentials) else lambda: credentials
    session.enter_with(partial(_enter, session, find, jar))
    url = file_url(base_url, probe)
    Patience(name_of(url), pace, note=note).until(lambda: reply.ask(session, url, reply.FIRST))
    return session


def _enter(
    session: Session,
    find: Callable[[], Credentials | None],
    jar: MozillaCookieJar | None,
    response: requests.Response,
    url: str,
    in_vain: bool,
) -> None:
    """Sign in the way that the server's answer asks for."""
    status, head = response.status_code, reply.Body(response).peek(_PAGE_BYTES)
    is_page = answer_checks.is_page(response, head)
    if status in (200, 206) and not is_page:
        session.sends_data_as_pages = True
        return
    form = find_login_form(head, response.url) if is_page else None
    is_denied = status == 403 and form is None
    if is_denied:
        _refuse_if_lasting(session, url)
    schemes = _offered_schemes(response, url) if status == 401 else []
    credentials = find()
    if credentials is None:
        is_new_page = is_page and form is None and session.has_worked
        raise answer_checks.page_error(url) if is_new_page else _missing(url, jar, response)
    if in_vain:
        raise _refused(url, credentials, is_denied=is_denied)  # an unknown user gets 401, or a form
    if schemes:
        session.sign_with(credentials.username, credentials.password, {*map(str.lower, schemes)})
    elif form is not None:
        _send_form(session, form, credentials)
    else:
        raise _denied_without_form(url, status)


def _denied_without_form(url: str, status: int) -> AccessError:
    if status in (401, 403):
        return answer_checks.denied(url, f"HTTP status {status}")
    return answer_checks.denied(url, "a web page without a recognizable sign-in form")


def _refuse_if_lasting(session: Session, url: str) -> None:
    """Raise the error for status 403, unless credentials may change the answer."""
    denied = answer_checks.denied(url, "HTTP status 403")
    if session.has_worked:  # or it accepts no more connections
        raise CutError("HTTP status 403", kind="refused", lasting=denied)
    if proxy_between(url):
        raise denied


def _offered_schemes(response: requests.Response, url: str) -> list[str]:
    """The names of the ways to sign in that an answer with status 401 offers.

    Raises:
        AccessError: there are some, and none of them is Basic or Digest.
    """
    challenges = _QUOTED.sub("x", response.headers.get("WWW-Authenticate", "")).split(",")
    matches = map(_SCHEME.fullmatch, challenges)
    schemes = [match[1] for match in matches if match]
    if schemes and not {"basic", "digest"} & {*map(str.lower, schemes)}:
        raise _unknown_scheme(url, schemes)
    return schemes


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
            Hint(
                "sign in with a browser, export its cookies, then: ",
                command_line([NAME, "download", "DATA_DIR", "--cookies", "FILE"]),
            ),
        )
    session.post(form.action, form.filled(credentials.username, credentials.password)).close()


def _load_cookies(path: Path) -> MozillaCookieJar:
    """The cookies of a file, with or without a first line that says so;
    values are sent as UTF-8, like browsers do.
    """
    jar = MozillaCookieJar(str(path))
    try:
        text = path.read_text("utf-8-sig")
        if not text.strip():
            raise ValueError("empty")
        with warnings.catch_warnings():
            # http.cookiejar reports a bad line as a bug of its own as well
            warnings.simplefilter("ignore")
            jar._really_load(io.StringIO(f"{_COOKIES}\n{text}"), str(path), True, True)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - any failure of http.cookiejar is the file's fault
        # the original message quotes the line it could not read, and a cookie with it
        raise UsageError(
            f"{path} can't be read as cookies",
            "expected a cookies.txt in Netscape's format",
            "export it again",
        ) from None
    for cookie in jar:
        if cookie.expires == 0:  # how exporters write "until the browser is closed"
            cookie.expires = None
        # http.client encodes it so again
        cookie.value = (cookie.value or "").encode().decode("latin-1")
    return jar


def _missing(url: str, jar: MozillaCookieJar | None, response: requests.Response) -> AccessError:
    host = host_of(url)
    if jar is not None:
        names = [cookie.domain.lstrip(".") for cookie in jar]
        if "Cookie" in response.request.headers:
            return answer_checks.RefusedError(
                f"{host} did not accept the cookies in {jar.filename}", "they may have expired"
            )
        if any(f".{origin(url)[1]}".endswith(f".{name}") for name in names):
            return answer_checks.RefusedError(
                f"no cookie for {host} in {jar.filename} could be sent",
                "they have expired, or are for another path, or for https only",
            )
        return AccessError(
            f"{jar.filename} holds no cookie for {host}",
            f"it holds cookies for: {listed(dict.fromkeys(names), 3) or 'none'}",
            f"sign in at {host} with a browser, and export its cookies again",
        )
    return answer_checks.RefusedError(
        f"{host} requires you to sign in for {name_of(url)}",
        "found no credentials in the environment or netrc",
    )


def _unknown_scheme(url: str, schemes: list[str]) -> AccessError:
    return AccessError(
        f"{host_of(url)} requires you to sign in for {name_of(url)}",
        (
            f"expected the scheme Basic or Digest, it asks for {', '.join(schemes)} with HTTP "
            "status 401"
        ),
        (
            "fetch it with a browser or its own client, and move it into raw-data/, "
            "or use --cookies FILE"
        ),
    )


def _refused(url: str, credentials: Credentials, *, is_denied: bool) -> AccessError:
    source = f" ({credentials.origin})" if credentials.origin else ""
    user = f"{credentials.username!r}{source}"
    if is_denied:
        return answer_checks.RefusedError(
            f"{host_of(url)} denied access to {name_of(url)}, signed in as {user}",
            "expected the archive, got HTTP status 403",
            Hint(
                "ask the site whether this account has access; if a browser can fetch the "
                "file, use ",
                answer_checks.WITH_COOKIES,
                ", or move the browser's copy into raw-data/",
            ),
        )
    variables = f"{USERNAME_VARIABLE} and {ACCESS_KEY_VARIABLE}"
    check = f"check both and try again (or set {variables}, or"
    if answer_checks.has_account():
        check = f"check {variables} and try again (or"
    return answer_checks.RefusedError(
        f"{host_of(url)} refused the credentials of {user}",
        "expected a valid user name and access key",
        (
            Hint(
                check,
                " ",
                answer_checks.WITH_COOKIES,
                f"); without an account sign up at {SIGN_UP_URL}",
            )
        ),
    )


# forms --------------------------------------------------------------------------------------------
