"""The sign-in form of a web page: found, and filled in. Pure."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

_NAME_TYPES = ("text", "email", "tel", "")


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


def find_login_form(page: bytes, url: str) -> LoginForm | None:
    """The first form with a password field of the page that came from ``url``, or None."""
    parser = _FormParser(url)
    with contextlib.suppress(Exception):  # what html.parser stumbles over is the page's fault: what came before counts
        parser.feed(page.decode("utf-8", errors="replace"))
    return next((form for form in parser.forms if form.password), None)


class _FormParser(HTMLParser):
    """Collects the forms of a page; their inputs by the rules of HTML's form submission."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[LoginForm] = []
        self._url = url
        self._form: LoginForm | None = None
        self._has_button = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._begin_form(values)
        elif tag in ("input", "button") and self._form is not None and values.get("name"):
            kind = values.get("type", "submit" if tag == "button" else "text").strip().lower()
            self._add(self._form, kind, values["name"], values)

    def _begin_form(self, values: dict[str, str]) -> None:
        try:
            action = urljoin(self._url, values.get("action", ""))
        except ValueError:
            return
        self._form = LoginForm(action, values.get("method", "get").strip().lower())
        self._has_button = False
        self.forms.append(self._form)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None

    def _add(self, form: LoginForm, kind: str, name: str, values: dict[str, str]) -> None:
        if kind == "password":
            form.password = form.password or name
        elif kind in _NAME_TYPES and not form.username and not form.password:
            form.username = name  # the one before the password; later text fields are something else
        elif kind == "submit":
            if not self._has_button:
                form.fields[name] = values.get("value", "")
            self._has_button = True
        elif kind == "hidden" or kind in _NAME_TYPES or (kind in ("checkbox", "radio") and "checked" in values):
            form.fields[name] = values.get("value", "on" if kind in ("checkbox", "radio") else "")
