"""open_session: credentials or cookies -> a session that the server accepts."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from http.cookiejar import MozillaCookieJar
from pathlib import Path
from typing import TypeAlias

import requests
from requests.cookies import get_cookie_header

from imagenet_prep.errors import AccessError, InputError, UsageError
from imagenet_prep.fetch import BASE_URL, answer_checks, reply
from imagenet_prep.fetch.addresses import file_url, host_of, name_of, origin
from imagenet_prep.fetch.credentials import Credentials
from imagenet_prep.fetch.login_form import LoginForm, find_login_form
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Session, proxy_between
from imagenet_prep.hints import Hint
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import either, listed

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
        note: called with the text of each wait; before the first request, if there is no account
            for image-net.org.

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
    if credentials is None and jar is None and session.home == origin(BASE_URL):
        without_account = answer_checks.without_account(BASE_URL)
        note(Hint("image-net.org may require an account, and none was given: ", without_account))
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
    schemes = _offered_schemes(response, url)
    credentials = find()
    is_bare_page = status in (200, 206) and form is None
    if credentials is None:
        is_new_page = is_bare_page and session.has_worked
        raise _missing(url, jar, response, form, is_new_page=is_new_page)
    if in_vain:  # an unknown user gets 401, or a form
        raise _refused(url, credentials, status, form)
    _send_credentials(session, credentials, schemes, form, response, url)


def _send_credentials(
    session: Session,
    credentials: Credentials,
    schemes: Sequence[str],
    form: LoginForm | None,
    response: requests.Response,
    url: str,
) -> None:
    """Sign in by a scheme of the server's answer, or by its form.

    Raises:
        AccessError: it has neither.
    """
    if schemes:
        session.sign_with(credentials.username, credentials.password, {*map(str.lower, schemes)})
    elif form is not None:
        _send_form(session, form, credentials, url)
    else:
        raise _denied_without_form(url, response.status_code, was_sent=session.has_signed_in)


def _denied_without_form(url: str, status: int, *, was_sent: bool) -> AccessError:
    """The error for an answer that does not say how to sign in; ``was_sent``: the account was,
    to an earlier answer.
    """
    host, name = host_of(url), name_of(url)
    if status in (401, 403):
        what = f"{host} denied access to {name}"
        answer = f"HTTP status {status}, and no known way to sign in"
    else:
        what = f"{host} sent a web page or XML in place of {name}"
        answer = "a page without a sign-in form that imagenet-prep can fill in"
    detail = f"got {answer}"
    if not was_sent:
        detail += "; your account was not sent"
    return answer_checks.RefusedError(what, detail, answer_checks.with_browser(url), status)


def _page_after_sign_in(url: str, credentials: Credentials) -> AccessError:
    """The error for a page without a sign-in form, although credentials were sent."""
    return answer_checks.RefusedError(
        f"{host_of(url)} sent a web page or XML in place of {name_of(url)}, after the account "
        f"{_name_of_user(credentials)} was sent",
        "the page may ask to accept terms, or refuse the password",
        answer_checks.with_browser(url),
    )


def _refuse_if_lasting(session: Session, url: str) -> None:
    """Raise the error for status 403, unless credentials may change the answer."""
    denied = answer_checks.denied(url, "HTTP status 403")
    if session.has_worked:  # or it accepts no more connections
        raise CutError("HTTP status 403", kind="refused", lasting=denied)
    if proxy_between(url):
        raise denied


def _offered_schemes(response: requests.Response, url: str) -> list[str]:
    """The names of the ways to sign in that an answer with status 401 offers; none for another
    status.

    Raises:
        AccessError: there are some, and none of them is Basic or Digest.
    """
    if response.status_code != 401:
        return []
    challenges = _QUOTED.sub("x", response.headers.get("WWW-Authenticate", "")).split(",")
    matches = map(_SCHEME.fullmatch, challenges)
    schemes = [match[1] for match in matches if match]
    if schemes and not {"basic", "digest"} & {*map(str.lower, schemes)}:
        raise _unknown_scheme(url, schemes)
    return schemes


def _send_form(session: Session, form: LoginForm, credentials: Credentials, url: str) -> None:
    """Send the form to the server that the user named only, and never in a URL."""
    try:
        at_home = origin(form.action) == session.home
    except ValueError:
        at_home = False
    if not at_home or form.method != "post":
        host, (scheme, _, _) = host_of(url), session.home
        raise AccessError(
            f"the sign-in form of {host} can't be trusted with a password",
            f"expected a form that sends it to {scheme}://{host} by POST, not in a URL",
            answer_checks.with_browser(url),
        )
    session.post(form.action, form.filled(credentials.username, credentials.password)).close()


def _load_cookies(path: Path) -> MozillaCookieJar:
    """The cookies of a file, with or without a first line that says so;
    values are sent as UTF-8, like browsers do.
    """
    jar = MozillaCookieJar(str(path))
    try:
        text = _text_of(path)
        if not text.strip():
            raise ValueError("empty")
        with warnings.catch_warnings():
            # http.cookiejar reports a bad line as a bug of its own as well
            warnings.simplefilter("ignore")
            jar._really_load(io.StringIO(f"{_COOKIES}\n{text}"), str(path), True, True)  # type: ignore[attr-defined]
    except UsageError:
        raise
    except Exception:  # noqa: BLE001 - any failure of http.cookiejar is the file's fault
        # the original message quotes the line it could not read, and a cookie with it
        raise UsageError(
            f"{path} is not a cookies.txt file, or is damaged",
            "expected cookies in the Netscape format and UTF-8, as browser extensions export them",
            "export the cookies again, as cookies.txt",
        ) from None
    for cookie in jar:
        if cookie.expires == 0:  # how exporters write "until the browser is closed"
            cookie.expires = None
        # http.client encodes it so again
        cookie.value = (cookie.value or "").encode().decode("latin-1")
    return jar


def _text_of(path: Path) -> str:
    """The text of a cookie file; raises UsageError if it can't be read, or is a pipe."""
    try:
        text = read_plain(path).decode("utf-8-sig")
    except InputError as fault:
        raise UsageError(fault.what, fault.detail, fault.hint) from None
    # a cookie must not end with a carriage return
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _missing(
    url: str,
    jar: MozillaCookieJar | None,
    response: requests.Response,
    form: LoginForm | None,
    *,
    is_new_page: bool,
) -> AccessError:
    """The error for an answer that refuses a file, if there are no credentials."""
    if is_new_page:
        return answer_checks.page_error(response, url)
    if jar is not None:
        return _cookies_refused(url, jar, response)
    host, name, status = host_of(url), name_of(url), response.status_code
    found = "no credentials were given"  # a call from Python finds none in the environment
    if status == 401 or form is not None:
        what, detail = f"{host} requires you to sign in for {name}", found
    elif status == 403:
        what = f"{host} refused access to {name}"
        detail = f"HTTP status 403: it may require you to sign in, and {found}"
    else:
        what = f"{host} sent a web page or XML in place of {name}"
        detail = f"it may require you to sign in, and {found}"
    return answer_checks.RefusedError(what, detail, answer_checks.without_account(url), status)


def _cookies_refused(
    url: str, jar: MozillaCookieJar, response: requests.Response
) -> answer_checks.RefusedError:
    """The error for an answer that refuses a file, with the cookies of a file."""
    host = host_of(url)
    cookies = list(jar)  # asking for those to send removes the expired ones
    domains = [cookie.domain.lstrip(".") for cookie in cookies]
    cookies_of_site = [
        cookie
        for cookie, domain in zip(cookies, domains, strict=True)
        if f".{origin(url)[1]}".endswith(f".{domain}")
    ]
    if any(_cookies_for(address, jar) for address in (url, response.url)):
        what = f"{host} got cookies from {jar.filename}, but did not send {name_of(url)}"
        detail = "they may have expired, or their account may have no access"
    elif cookies_of_site:
        what = f"no cookie in {jar.filename} could be sent to {host}"
        detail = "some are for other hosts or paths, or for https only"
        if all(cookie.is_expired() for cookie in cookies_of_site):
            detail = "those for this site have expired"
    else:
        what = f"{jar.filename} holds no cookie for {host}"
        detail = f"it holds cookies for {listed(dict.fromkeys(domains), 3) or 'no site'}"
    sign_in = f"sign in at {host} with a browser, and export its cookies again"
    hint = f"{sign_in}; check --base-url if you set it"
    return answer_checks.RefusedError(what, detail, hint)


def _cookies_for(url: str, jar: MozillaCookieJar) -> str:
    """The header with the cookies of a file that belong to an address, "" without any.

    The cookies that a session holds may be others: an answer can replace them.
    """
    request = requests.Request("GET", url).prepare()
    return get_cookie_header(jar, request) or ""  # type: ignore[no-untyped-call]


def _unknown_scheme(url: str, schemes: list[str]) -> AccessError:
    return AccessError(
        f"{host_of(url)} requires a sign-in by {either(schemes)} for {name_of(url)}",
        "it answers HTTP status 401, and imagenet-prep can't sign in that way",
        "fetch it with a browser or the site's own client, and move it into the folder of the raw "
        "data: DATA_DIR/raw-data, or the one of --raw",
    )


def _name_of_user(credentials: Credentials) -> str:
    source = f" ({credentials.origin})" if credentials.origin else ""
    return f"{credentials.username!r}{source}"


def _refused(
    url: str, credentials: Credentials, status: int, form: LoginForm | None
) -> AccessError:
    """The error for an answer that refuses a file, although credentials were sent."""
    if form is None and status == 403:
        return _denied_to_account(url, credentials)
    if form is None and status != 401:
        return _page_after_sign_in(url, credentials)
    host, user = host_of(url), _name_of_user(credentials)
    what = f"{host} refused the credentials of {user}"
    detail = "expected a valid user name and access key"
    if status != 401:
        what = f"{host} shows its sign-in form again, after the credentials of {user} were sent"
        detail = "they may be wrong, or the form may only work in a browser"
    variables = answer_checks.VARIABLES
    check = "check the user name and the access key, and try again"
    if credentials.is_from_environment:
        check = f"check {variables} and try again"
    elif credentials.origin:  # a call from Python gives its own
        check = f"{check}, or set {variables}"
    check += f" (if you have no account, {answer_checks.new_account(url)})"
    hint = Hint(f"{check}; or sign in with a browser, ", answer_checks.with_cookies())
    return answer_checks.RefusedError(what, detail, hint)


def _denied_to_account(url: str, credentials: Credentials) -> AccessError:
    """The error for status 403 without a sign-in form, although credentials were sent."""
    return answer_checks.RefusedError(
        f"{host_of(url)} denied the account {_name_of_user(credentials)} access to {name_of(url)}",
        "expected the file, got HTTP status 403",
        Hint(
            "ask the site whether this account has access; or, if a browser can fetch the file, ",
            answer_checks.with_cookies(),
        ),
    )
