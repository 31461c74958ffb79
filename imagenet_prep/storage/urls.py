"""What is a URL, how it may be shown, and a refusal where only a path will do: a folder ``s3:`` is never meant."""

from __future__ import annotations

import os
import re

from imagenet_prep.errors import UsageError

_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]+):/{1,2}")  # a Path has one slash left of the two
_SECRET = re.compile(r"[@?]")


def scheme_of(place: str | os.PathLike[str]) -> str | None:
    """The scheme of what is a URL, also of one that a Path has been made of, in small letters; None of a path."""
    match = _URL.match(str(place))
    return match[1].lower() if match else None


def shown(place: str | os.PathLike[str]) -> str:
    """A URL as it may be said: only its scheme, if it may hold a secret."""
    text = str(place)
    match = _URL.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    return f"{match[1].lower()}://{'...' if _SECRET.search(rest) else rest}"


def refuse_url(place: str | os.PathLike[str]) -> None:
    """Raise UsageError if ``place`` is a URL, of an object store or any other."""
    if scheme_of(place) is not None:
        raise UsageError(
            f"{shown(place)} is a URL",
            "expected a path of this machine",
            "copy it here, or mount it, and name that folder; one here that is called so is meant by its absolute path",
        )
