"""Token: a secret of one word that says who asks, from the environment or a file that its owner's tools keep."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.storage.files import find_plain

_LONGEST = 1 << 16
_WORD = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, which no repr shows and no other process gets; ``where`` it was found may be shown."""

    value: str = field(repr=False)
    where: str

    def headers(self) -> dict[str, str]:
        """What says so in a request (RFC 6750, section 2.1)."""
        return {"Authorization": f"Bearer {self.value}"}

    def __reduce__(self) -> NoReturn:
        raise TypeError("tokens can't be pickled: they stay in this process")


def token_from(text: str, where: str) -> Token | None:
    """The token that a variable or a file holds, without the spaces and line ends around it; None if it is empty.

    Raises:
        UsageError: it is no single word, so that no header could hold it; what it is is not shown.
    """
    value = text.strip()
    if value and not _WORD.fullmatch(value):
        raise UsageError(f"{where} holds no token", "expected one word of plain characters", "set it once more")
    return Token(value, where) if value else None


def token_in_variable(*names: str) -> Token | None:
    """The token in the first of these environment variables that is set."""
    tokens = (token_from(os.environ.get(name, ""), name) for name in names)
    return next((token for token in tokens if token), None)


def token_in_file(path: Path) -> Token | None:
    """The token in a file; None if there is none."""
    text = secret_text(path)
    return token_from(text, str(path)) if text else None


def secret_text(path: Path) -> str:
    """What a file of secrets holds, "" if there is none.

    Raises:
        UsageError: it can't be read, or is none.
    """
    try:
        return (find_plain(path, _LONGEST) or b"").decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} can't be read", "expected a short text", "make it again") from None
    except InputError as error:
        raise UsageError(error.what, error.detail, error.hint) from None
