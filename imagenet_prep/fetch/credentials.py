"""Credentials, Token: secrets to sign in with, from options, the environment, netrc or a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import requests

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.fetch import ACCESS_KEY_VARIABLE, USERNAME_VARIABLE
from imagenet_prep.fetch.session import basic
from imagenet_prep.storage.files import find_plain

_FROM_ENVIRONMENT = f"from {USERNAME_VARIABLE}"
FROM_KAGGLE_VARIABLES = "from KAGGLE_USERNAME"
_VARIABLES = {
    _FROM_ENVIRONMENT: (USERNAME_VARIABLE, ACCESS_KEY_VARIABLE),
    FROM_KAGGLE_VARIABLES: ("KAGGLE_USERNAME", "KAGGLE_KEY"),
}
"""The variables of user name and password, by the origin of credentials."""

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

    def __post_init__(self) -> None:
        """Raise UsageError if they hold bytes that are no text,
        as variables of the environment may.
        """
        names = _VARIABLES.get(self.origin)
        if names is None:
            source = f" ({self.origin})" if self.origin else ""
            names = f"the user name of an account{source}", f"the password of an account{source}"
        for name, text in zip(names, (self.username, self.password), strict=True):
            try:
                text.encode()
            except UnicodeEncodeError:
                what = f"{name} has bytes that are not text"
                hint = f"write {name} again"
                if self.origin in _VARIABLES:
                    hint = f"set the environment variable {name} again"
                raise UsageError(what, "expected text in UTF-8", hint) from None

    @property
    def is_from_environment(self) -> bool:
        """Whether they are those of IMAGENET_USERNAME and IMAGENET_ACCESS_KEY."""
        return self.origin == _FROM_ENVIRONMENT

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
        return Credentials(username, password, _FROM_ENVIRONMENT)
    if username or password:
        present, missing = names if username else reversed(names)
        raise UsageError(
            f"{present} has a value and {missing} has none",
            "expected both, or neither",
            f"set {missing} too, or unset {present}",
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


def token_in(source: str, text: str | None = None, *, hint: str = "") -> Token | None:
    """The token in an environment variable or, if ``text`` is given, in a file; None if it is
    empty.

    ``hint`` says how to set the variable.

    Raises:
        UsageError: the value is more than one word, so no header can hold it; the message doesn't
            show it.
    """
    is_variable = text is None
    word = unquoted(os.environ.get(source, "") if text is None else text)
    is_path = is_variable and "/" in word
    if word and (is_path or not _WORD.fullmatch(word)):
        no_path = " without a slash" if is_variable else ""
        raise UsageError(
            f"{source} holds something other than a token",
            f"expected one word of ASCII characters{no_path}",
            hint or f"write only the token into {source}",
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
            f"{path} can't be read", "expected text in UTF-8", "save it again in UTF-8"
        ) from None
    except InputError as error:
        raise UsageError(error.what, error.detail, error.hint) from None
