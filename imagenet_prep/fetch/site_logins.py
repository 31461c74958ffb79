"""find_login and find_token: the logins that the tools of Kaggle and Hugging Face keep."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import decode

from imagenet_prep.errors import UsageError
from imagenet_prep.fetch.credentials import (
    FROM_KAGGLE_VARIABLES,
    Credentials,
    Token,
    secret_text,
    token_in,
    token_in_file,
    unquoted,
)

KAGGLE_TOKEN_URL = "https://www.kaggle.com/settings"  # noqa: S105 -- an address
_KAGGLE_HOME = "~/.kaggle"


def find_login() -> Token | Credentials | None:
    """Find a login: KAGGLE_API_TOKEN (or a file it names), access_token, KAGGLE_USERNAME and
    KAGGLE_KEY, kaggle.json.

    The files are in KAGGLE_CONFIG_DIR; without it in ~/.kaggle, or in kaggle in XDG_CONFIG_HOME. An
    access_token is always looked for in ~/.kaggle, too.

    Raises:
        UsageError: one of them can't be used; the message doesn't show its content.
    """
    json_folders = kaggle_folders()
    token_folders = [*json_folders, _expanded(_KAGGLE_HOME)]
    if token := _find_kaggle_token(token_folders):
        return token
    username = unquoted(os.environ.get("KAGGLE_USERNAME", ""))
    key = unquoted(os.environ.get("KAGGLE_KEY", ""))
    if username and key:
        return Credentials(username, key, FROM_KAGGLE_VARIABLES)
    for folder in json_folders:
        if credentials := _from_json(folder / "kaggle.json"):
            return credentials
    return None


def kaggle_folders() -> list[Path]:
    """The folders in which Kaggle's own client looks for kaggle.json."""
    chosen_folder = os.environ.get("KAGGLE_CONFIG_DIR")
    if chosen_folder:
        return [_expanded(chosen_folder)]
    config_home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [_expanded(_KAGGLE_HOME), _expanded(f"{config_home}/kaggle")]


def _expanded(text: str) -> Path:
    """A path of the environment; one in the home of an unknown user stays as it is."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _find_kaggle_token(folders: Sequence[Path]) -> Token | None:
    """The token in KAGGLE_API_TOKEN or a file it names, then in access_token in one of the
    folders.
    """
    path = _expanded(unquoted(os.environ.get("KAGGLE_API_TOKEN", "")))
    if path.name and os.path.isfile(path):  # noqa: PTH113 - Path raises for a long token
        token = token_in_file(path)
    else:
        hint = "set it to the token, or to the path of a file that you can read"
        token = token_in("KAGGLE_API_TOKEN", hint=hint)
    for folder in folders:
        token = token or token_in_file(folder / "access_token")
    return token


class _KaggleLogin(Struct):
    username: Annotated[str, Meta(min_length=1)]
    key: Annotated[str, Meta(min_length=1)]


def _from_json(path: Path) -> Credentials | None:
    if not (text := secret_text(path)):
        return None
    with contextlib.suppress(ValueError, RecursionError):
        login = decode(text, type=_KaggleLogin)
        return Credentials(login.username, login.key)
    raise UsageError(
        f"{path} holds no valid credentials of Kaggle",
        'expected {"username": ..., "key": ...}',
        f"create a new {path.name} at {KAGGLE_TOKEN_URL}",
    )


def find_token() -> Token | None:
    """Find a token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, then token in
    HF_HOME.

    HF_HOME is ~/.cache/huggingface by default.

    Raises:
        UsageError: one of them can't be used; the message doesn't show its content.
    """
    hint = "set it to the token; or unset it, and name a file that holds the token in HF_TOKEN_PATH"
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if token := token_in(name, hint=hint):
            return token
    return token_in_file(hub_token_path())


def hub_token_path() -> Path:
    """The file in which Hugging Face's own client keeps the token."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return _expanded(os.path.expandvars(os.environ.get("HF_TOKEN_PATH") or f"{home}/token"))
