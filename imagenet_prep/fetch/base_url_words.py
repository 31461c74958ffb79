"""Advice about --base-url, once it is known whether the option was given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from imagenet_prep.errors import PrepError
from imagenet_prep.hints import Hint, parts_of

_PHRASES = {
    "check --base-url if you set it, or use it to name another server": (
        "check --base-url: it names the server",
        "name another server with --base-url",
    ),
    "check --base-url if you set it, or ": ("check --base-url, or ", ""),
    ", and --base-url if you set it": (", and --base-url", ""),
    "; check --base-url if you set it": ("; check --base-url", ""),
    "if you set --base-url, correct its port, or write http:// in it; otherwise ask": (
        "correct the port in --base-url, or write http:// in it; or ask",
        "ask",
    ),
}
"""Words for any call; for one with --base-url, and for one without it."""


@contextlib.contextmanager
def about_base_url(*, is_given: bool) -> Iterator[None]:
    """Let the advice of an error of the block name --base-url if it was given, and only then."""
    try:
        yield
    except PrepError as error:
        parts = [_said(part, is_given=is_given) for part in parts_of(error.hint)]
        error.hint = Hint(*parts)
        raise


def _said(part: str, *, is_given: bool) -> str:
    """A part of an advice, for this call."""
    for phrase, (with_option, without) in _PHRASES.items():
        if phrase in part:
            return part.replace(phrase, with_option if is_given else without)
    if is_given and "--base-url if you set it" in part:
        return part.replace("--base-url if you set it", "--base-url")
    return part
