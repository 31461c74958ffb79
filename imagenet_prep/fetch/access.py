"""Session access: finds credentials, tokens and sign-in forms,
and opens a session that the server accepts.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from html.parser import HTMLParser
from http.cookiejar import MozillaCookieJar
from pathlib import Path
from typing import NoReturn, TypeAlias
from urllib.parse import urljoin, urlsplit

import requests

from imagenet_prep.errors import AccessError, InputError, UsageError
from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.fetch import ACCESS_KEY_VARIABLE, SIGN_UP_URL, USERNAME_VARIABLE, reply
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.session import Session, basic, file_url, host_of, origin, proxy_between
from imagenet_prep.hints import Hint
from imagenet_prep.storage.files import find_plain
from imagenet_prep.text import listed

_PAGE_BYTES = 1 << 20
_LONGEST_SECRET = 1 << 16
_COOKIES = "# Netscape HTTP Cookie File"
_QUOTED = re.compile(r'"[^"]*"?')
_SCHEME = re.compile(
    r"\s*([\w-]+)(?:\s+[^=\s].*|\s*)"
)  # not a parameter (RFC 9110, section 11.6.1)
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

    def __post_init__(self) -> None:
        """Raise UsageError if they hold bytes that are no text,
        as variables of the environment may.
        """
        try:
            f"{self.username}{self.password}".encode()
        except UnicodeEncodeError:
            source = f" ({self.origin})" if self.origin else ""
            raise UsageError(
                f"the user name or the password{source} is no text",
                "expected UTF-8",
                "set both again",
            ) from None

    @property
    def authorization(self) -> str:
        """The Authorization header for these credentials (RFC 7617)."""
        return basic(self.username, self.password)


@dataclass(frozen=True, slots=True)
class Token(_Secret):
    """A one-word secret, which no repr shows and no other process gets;
    ``where`` names its source, for messages.
    """

    value: str = field(repr=False)
    where: str

    @property
    def authorization(self) -> str:
        """The Authorization header for this token (RFC 6750, section 2.1)."""
        return f"Bearer {self.value}"


SignIn: TypeAlias = "Credentials | Callable[[], Credentials | None]"
"""Credentials, or a function that finds them; it is called only if a server asks for some."""


def find_credentials(
    base_url: str, *, prompt: Callable[[], tuple[str, str]] | None
) -> Credentials | None:
    """Find credentials in IMAGENET_USERNAME and IMAGENET_ACCESS_KEY, then netrc, then the prompt;
    None if none has any.

    ``prompt`` asks a person and returns user name and password; None without a terminal.

    Raises:
        UsageError: one of the two variables is set without the other.
    """
    names = USERNAME_VARIABLE, ACCESS_KEY_VARIABLE
    username, password = map(os.environ.get, names)
    if username and password:
        return Credentials(username, password, f"from {USERNAME_VARIABLE}")
    if username or password:
        present, missing = names if username else reversed(names)
        raise UsageError(
            f"{present} is set and {missing} is not",
            "expected both, or neither",
            f"export {missing}, or unset {present}",
        )
    account, source = _from_netrc(base_url), "from netrc"
    if not account and prompt:
        account, source = prompt(), "typed"
    return Credentials(*account, source) if account and account[0] else None


def _from_netrc(base_url: str) -> tuple[str, str] | None:
    """User name and password for a server from netrc; None if netrc has none or can't be read."""
    try:
        return requests.utils.get_netrc_auth(base_url)
    except UnicodeDecodeError:  # requests ignores every other fault of a netrc file
        return None


def token_in(source: str, text: str | None = None) -> Token | None:
    """The token in an environment variable or, if ``text`` is given, in a file; None if it is
    empty.

    Raises:
        UsageError: the value is more than one word, so no header can hold it; the message doesn't
            show it.
    """
    is_variable = text is None
    word = unquoted(os.environ.get(source, "") if text is None else text)
    if is_variable and "/" in word:
        raise UsageError(
            f"{source} is neither a token nor the path of a file",
            "expected a token",
            "set it again",
        )
    if word and not _WORD.fullmatch(word):
        raise UsageError(
            f"{source} holds no token", "expected one word of plain characters", "set it again"
        )
    return Token(word, source) if word else None


def unquoted(text: str) -> str:
    """A secret without a byte order mark, space, and the quotes that docker's --env-file keeps."""
    secret = text.strip("\ufeff \t\r\n")
    is_quoted = len(secret) > 1 and secret[0] == secret[-1] and secret[0] in "\"'"
    return secret[1:-1] if is_quoted else secret


def token_in_file(path: Path) -> Token | None:
    """The token in a file; None if the file doesn't exist."""
    return token_in(str(path), secret_text(path))


def secret_text(path: Path) -> str:
    """The text of a file of secrets; "" if the file doesn't exist.

    Raises:
        UsageError: it can't be read, or isn't a plain file.
    """
    try:
        return (find_plain(path, _LONGEST_SECRET) or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} can't be read", "expected a short text", "write it again"
        ) from None
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
    Patience(reply.name_of(url), pace, note=note).until(
        lambda: reply.ask(session, url, reply.FIRST)
    )
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
    is_page = reply.is_page(response, head)
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
        raise reply.page_error(url) if is_new_page else _missing(url, jar, response)
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
        return reply.denied(url, f"HTTP status {status}")
    return reply.denied(url, "a web page without a recognizable sign-in form")


def _refuse_if_lasting(session: Session, url: str) -> None:
    """Raise the error for status 403, unless credentials may change the answer."""
    denied = reply.denied(url, "HTTP status 403")
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
            return reply.RefusedError(
                f"{host} did not accept the cookies in {jar.filename}", "they may have expired"
            )
        if any(f".{origin(url)[1]}".endswith(f".{name}") for name in names):
            return reply.RefusedError(
                f"no cookie for {host} in {jar.filename} could be sent",
                "they have expired, or are for another path, or for https only",
            )
        return AccessError(
            f"{jar.filename} holds no cookie for {host}",
            f"it holds cookies for: {listed(dict.fromkeys(names), 3) or 'none'}",
            f"sign in at {host} with a browser, and export its cookies again",
        )
    return reply.RefusedError(
        f"{host} requires you to sign in for {reply.name_of(url)}",
        "found no credentials in the environment or netrc",
    )


def _unknown_scheme(url: str, schemes: list[str]) -> AccessError:
    return AccessError(
        f"{host_of(url)} requires you to sign in for {reply.name_of(url)}",
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
        return reply.RefusedError(
            f"{host_of(url)} denied access to {reply.name_of(url)}, signed in as {user}",
            "expected the archive, got HTTP status 403",
            Hint(
                "ask the site whether this account has access; if a browser can fetch the "
                "file, use ",
                reply.WITH_COOKIES,
                ", or move the browser's copy into raw-data/",
            ),
        )
    variables = f"{USERNAME_VARIABLE} and {ACCESS_KEY_VARIABLE}"
    check = f"check both and try again (or set {variables}, or"
    if reply.has_account():
        check = f"check {variables} and try again (or"
    return reply.RefusedError(
        f"{host_of(url)} refused the credentials of {user}",
        "expected a valid user name and access key",
        (
            Hint(
                check,
                " ",
                reply.WITH_COOKIES,
                f"); without an account sign up at {SIGN_UP_URL}",
            )
        ),
    )


# forms --------------------------------------------------------------------------------------------

_NAME_TYPES = ("text", "email", "tel", "")
_SIGNING_IN = re.compile(r"log ?in|log ?on|sign ?in|sign ?on|current password|\bsession")
_OTHERWISE = re.compile(
    r"regist(er|ration)|sign ?up|enroll?|create (\w+ )?account|confirm|retype|repeat|new "
    r"?(account|user|password)"
    r"|(reset|change|forgot(ten)?) ?(\w+ )?password|password (reset|change)|(first|last|full) ?name"
)


@dataclass(slots=True)
class LoginForm:
    """A form of a page.

    Args:
        action: the absolute URL that the form is sent to.
        method: "get" or "post".
        fields: values sent unchanged: hidden fields, ticked boxes, its first button.
        username, password: the names of the two fields to fill in ("" if absent).
        passwords: the number of password fields.
        words: its address, name and id, and the labels of its visible fields and first button.
    """

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    username: str = ""
    password: str = ""
    passwords: int = 0
    words: list[str] = field(default_factory=list, compare=False)

    def filled(self, username: str, password: str) -> dict[str, str]:
        """All fields to send."""
        account = {self.username: username, self.password: password}
        return {**self.fields, **{name: text for name, text in account.items() if name}}

    @property
    def may_sign_in(self) -> bool:
        """Whether the form asks for a name and one password, and has no other purpose."""
        asks = self.passwords == 1 and self.password and self.username
        return bool(asks) and not any(map(_OTHERWISE.search, self.words))


def find_login_form(page: bytes, url: str) -> LoginForm | None:
    """Find the one sign-in form of the page at ``url``; None if the page has none, or it is
    ambiguous.

    The form has one password field, and neither registers nor changes a password. If several
    qualify, it is the one whose words mention signing in.
    """
    parser = _FormParser(url)
    # a page may break html.parser: forms before that point count
    with contextlib.suppress(Exception):
        parser.feed(page.decode("utf-8", errors="replace"))
    forms = [form for form in parser.forms if form.may_sign_in]
    about_signing_in = [form for form in forms if any(map(_SIGNING_IN.search, form.words))]
    candidates = about_signing_in or forms
    is_clear = bool(candidates) and all(form == candidates[0] for form in candidates)
    return candidates[0] if is_clear else None


class _FormParser(HTMLParser):
    """Collects the forms of a page; their inputs follow the rules of HTML's form submission."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[LoginForm] = []
        self._url = url
        self._form: LoginForm | None = None
        self._has_button = False
        self._button: list[str] | None = None  # the text of the first button, until it closes

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: text or "" for name, text in attrs}
        if tag == "form":
            self._begin(attributes)
        elif tag in ("input", "button") and self._form is not None:
            default_type = "submit" if tag == "button" else "text"
            input_type = attributes.get("type", default_type).strip().lower()
            if input_type == "submit":
                if self._has_button:
                    return
                self._has_button = True
                self._button = [] if tag == "button" else None
            self._add(self._form, input_type, attributes)

    def _begin(self, attributes: dict[str, str]) -> None:
        try:
            action = urljoin(self._url, attributes.get("action", ""))
            path = urlsplit(action).path
        except ValueError:
            return
        words = [path, attributes.get("id", ""), attributes.get("name", "")]
        method = attributes.get("method", "get").strip().lower()
        self._form = LoginForm(action, method, words=[*map(_plain, words)])
        self._has_button, self._button = False, None
        self.forms.append(self._form)

    def _add(self, form: LoginForm, input_type: str, attributes: dict[str, str]) -> None:
        name = attributes.get("name", "")
        is_text, is_checked = input_type in _NAME_TYPES, "checked" in attributes
        if is_text or input_type in ("submit", "password", "checkbox"):
            purpose = attributes.get("value" if input_type == "submit" else "autocomplete", "")
            form.words += (_plain(name), _plain(purpose))
        if input_type == "password":
            form.passwords += 1
            form.password = form.password or name
        elif not name:
            return
        elif is_text and not form.username and not form.passwords:
            form.username = name  # the text field before the password; later ones have other uses
        elif is_text or is_checked or input_type in ("submit", "hidden"):
            form.fields[name] = attributes.get("value", "on" if is_checked else "")

    def handle_data(self, data: str) -> None:
        if self._button is not None:
            self._button.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("form", "button") and self._form is not None and self._button is not None:
            self._form.words.append(_plain("".join(self._button)))
            self._button = None
        if tag == "form":
            self._form = None


def _plain(words: str) -> str:
    """Words in lower case, separated by single spaces: sign_up, Sign-Up, signUp -> sign up."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", words)
    return re.sub(r"[\W_]+", " ", spaced).strip().lower()
