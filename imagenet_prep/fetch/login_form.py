"""A page -> LoginForm: the fields to fill in, and where to send them."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

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
