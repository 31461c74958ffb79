"""The sign-in form of a web page: found, and filled in. Pure."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

_NAME_TYPES = ("text", "email", "tel", "")
_SIGNING_IN = re.compile(r"log ?in|log ?on|sign ?in|sign ?on|current password|\bsession")
_OTHERWISE = re.compile(
    r"regist(er|ration)|sign ?up|enroll?|create (\w+ )?account|confirm|retype|repeat|new ?(account|user|password)"
    r"|(reset|change|forgot(ten)?) ?(\w+ )?password|password (reset|change)|(first|last|full) ?name"
)


@dataclass(slots=True)
class LoginForm:
    """A form with a password field.

    Args:
        action: the absolute URL that it goes to.
        method: "get" or "post".
        fields: what it sends as it stands: hidden fields, ticked boxes, its first button.
        username, password: the names of the two fields to fill in ("" if there is none).
    """

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    username: str = ""
    password: str = ""

    def filled(self, username: str, password: str) -> dict[str, str]:
        """All the fields to send."""
        given = {self.username: username, self.password: password}
        return {**self.fields, **{name: value for name, value in given.items() if name}}


@dataclass(slots=True)
class _Seen:
    """A form, and what tells whether it is for signing in.

    Args:
        form: what it would send.
        passwords: how many passwords it asks for.
        words: its address, its name and id, what its visible fields and its first button are called.
    """

    form: LoginForm
    passwords: int = 0
    words: list[str] = field(default_factory=list)

    @property
    def may_sign_in(self) -> bool:
        """Whether it asks for a name and one password, and speaks of nothing else."""
        asks = self.passwords == 1 and self.form.password and self.form.username
        return bool(asks) and not any(_OTHERWISE.search(words) for words in self.words)

    @property
    def says_so(self) -> bool:
        """Whether it speaks of signing in."""
        return any(_SIGNING_IN.search(words) for words in self.words)


def find_login_form(page: bytes, url: str) -> LoginForm | None:
    """The one form of the page that came from ``url`` that is for signing in; None if there is none, or no telling.

    It has one password field, and is not one that registers or changes a password. Among several such forms it is the
    one that speaks of signing in.
    """
    parser = _FormParser(url)
    with contextlib.suppress(Exception):  # what html.parser stumbles over is the page's fault: what came before counts
        parser.feed(page.decode("utf-8", errors="replace"))
    possible = [seen for seen in parser.seen if seen.may_sign_in]
    chosen = [seen.form for seen in possible if seen.says_so] or [seen.form for seen in possible]
    return chosen[0] if chosen and all(form == chosen[0] for form in chosen) else None


class _FormParser(HTMLParser):
    """Collects the forms of a page; their inputs by the rules of HTML's form submission."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[_Seen] = []
        self._url = url
        self._seen: _Seen | None = None
        self._has_button = False
        self._button: list[str] | None = None  # the text of the first button, while it lasts

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._begin_form(values)
        elif tag in ("input", "button") and self._seen is not None:
            kind = values.get("type", "submit" if tag == "button" else "text").strip().lower()
            self._describe(self._seen, kind, values)
            if tag == "button" and kind == "submit" and not self._has_button:
                self._button = []
            if kind == "password" or values.get("name"):
                self._add(self._seen, kind, values.get("name", ""), values)
            self._has_button = self._has_button or kind == "submit"

    def _begin_form(self, values: dict[str, str]) -> None:
        try:
            action = urljoin(self._url, values.get("action", ""))
            path = urlsplit(action).path
        except ValueError:
            return
        self._seen = _Seen(LoginForm(action, values.get("method", "get").strip().lower()))
        self._seen.words += map(_plain, (path, values.get("id", ""), values.get("name", "")))
        self._has_button, self._button = False, None
        self.seen.append(self._seen)

    def handle_data(self, data: str) -> None:
        if self._button is not None:
            self._button.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("form", "button") and self._seen is not None and self._button is not None:
            self._seen.words.append(_plain("".join(self._button)))
            self._button = None
        if tag == "form":
            self._seen = None

    def _describe(self, seen: _Seen, kind: str, values: dict[str, str]) -> None:
        """Note what a field that can be seen, or the first button, is called."""
        if kind in ("password", "checkbox", *_NAME_TYPES):
            seen.words += (_plain(values.get(key, "")) for key in ("name", "autocomplete"))
        elif kind == "submit" and not self._has_button:
            seen.words += (_plain(values.get(key, "")) for key in ("name", "value"))

    def _add(self, seen: _Seen, kind: str, name: str, values: dict[str, str]) -> None:
        form = seen.form
        if kind == "password":
            seen.passwords += 1
            form.password = form.password or name
        elif kind in _NAME_TYPES and not form.username and not seen.passwords:
            form.username = name  # the one before the password; later text fields are something else
        elif kind == "submit":
            if not self._has_button:
                form.fields[name] = values.get("value", "")
        elif kind == "hidden" or kind in _NAME_TYPES or (kind in ("checkbox", "radio") and "checked" in values):
            form.fields[name] = values.get("value", "on" if kind in ("checkbox", "radio") else "")


def _plain(words: str) -> str:
    """Words in lower case, with single spaces where other signs join them: sign_up, Sign-Up, signUp -> sign up."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", words)
    return re.sub(r"[\W_]+", " ", spaced).strip().lower()
