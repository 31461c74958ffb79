"""LoginForm: finds the sign-in form of a web page and fills it in; does no I/O."""

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
        given = {self.username: username, self.password: password}
        return {**self.fields, **{name: value for name, value in given.items() if name}}

    @property
    def may_sign_in(self) -> bool:
        """Whether the form asks for a name and one password, and has no other purpose."""
        asks = self.passwords == 1 and self.password and self.username
        return bool(asks) and not any(map(_OTHERWISE.search, self.words))


def find_login_form(page: bytes, url: str) -> LoginForm | None:
    """Find the one sign-in form of the page at ``url``; None if the page has none, or it is ambiguous.

    The form has one password field, and neither registers nor changes a password. If several qualify, it is the one
    whose words mention signing in.
    """
    parser = _FormParser(url)
    with contextlib.suppress(Exception):  # a page may break html.parser: forms before that point count
        parser.feed(page.decode("utf-8", errors="replace"))
    possible = [form for form in parser.forms if form.may_sign_in]
    chosen = [form for form in possible if any(map(_SIGNING_IN.search, form.words))] or possible
    return chosen[0] if chosen and all(form == chosen[0] for form in chosen) else None


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
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._begin(values)
        elif tag in ("input", "button") and self._form is not None:
            kind = values.get("type", "submit" if tag == "button" else "text").strip().lower()
            if kind == "submit":
                if self._has_button:
                    return
                self._has_button, self._button = True, [] if tag == "button" else None
            self._add(self._form, kind, values)

    def _begin(self, values: dict[str, str]) -> None:
        try:
            action = urljoin(self._url, values.get("action", ""))
            words = [urlsplit(action).path, values.get("id", ""), values.get("name", "")]
        except ValueError:
            return
        self._form = LoginForm(action, values.get("method", "get").strip().lower(), words=[*map(_plain, words)])
        self._has_button, self._button = False, None
        self.forms.append(self._form)

    def _add(self, form: LoginForm, kind: str, values: dict[str, str]) -> None:
        name = values.get("name", "")
        if kind in ("submit", "password", "checkbox", *_NAME_TYPES):
            purpose = values.get("value" if kind == "submit" else "autocomplete", "")
            form.words += (_plain(name), _plain(purpose))
        if kind == "password":
            form.passwords += 1
            form.password = form.password or name
        elif name and kind in _NAME_TYPES and not form.username and not form.passwords:
            form.username = name  # the text field before the password; later ones have other uses
        elif name and (kind in ("submit", "hidden", *_NAME_TYPES) or "checked" in values):
            form.fields[name] = values.get("value", "on" if "checked" in values else "")

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
