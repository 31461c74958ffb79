"""KaggleSite: ImageNet's copy at Kaggle, one zip of the competition's data, and who may have it.

How one says who asks, and where that is kept, is as Kaggle's own clients have it (https://github.com/Kaggle/kagglehub,
https://github.com/Kaggle/kaggle-api): a token as Bearer, a user name and a key as Basic. The answer is a redirect to a
signed address in Google's storage, whose x-goog-hash tells digests
(https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooghash).
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.errors import AccessError, UsageError
from imagenet_prep.fetch.access import Credentials
from imagenet_prep.fetch.offers import Note, Offer
from imagenet_prep.fetch.patience import Pace, Patience
from imagenet_prep.fetch.reply import PROBE, RefusedError, check_status, inspect
from imagenet_prep.fetch.session import Session, file_url
from imagenet_prep.fetch.tokens import Token, secret_text, token_from, token_in_file

HOME = "https://www.kaggle.com/"
COMPETITION = "imagenet-object-localization-challenge"
RULES_URL = f"https://www.kaggle.com/c/{COMPETITION}/rules"
TOKEN_URL = "https://www.kaggle.com/settings"  # noqa: S105 -- an address

_LENGTHS = {"md5": 16, "crc32c": 4}


def find_login() -> Token | Credentials | None:
    """Who asks: KAGGLE_API_TOKEN (or a file that it names), access_token, KAGGLE_USERNAME and KAGGLE_KEY, kaggle.json.

    The files lie in KAGGLE_CONFIG_DIR, else in ~/.kaggle.

    Raises:
        UsageError: one of them can't be used; what it holds is not shown.
    """
    folder = Path(os.environ.get("KAGGLE_CONFIG_DIR") or "~/.kaggle").expanduser()
    return _from_variable() or token_in_file(folder / "access_token") or _from_pair() or _from_json(folder)


def _from_variable() -> Token | None:
    given = os.environ.get("KAGGLE_API_TOKEN", "").strip()
    path = Path(given).expanduser()
    if "/" in given and path.is_file():
        return token_in_file(path)
    return token_from(given, "KAGGLE_API_TOKEN")


def _from_pair() -> Credentials | None:
    username, key = os.environ.get("KAGGLE_USERNAME", "").strip(), os.environ.get("KAGGLE_KEY", "").strip()
    return Credentials(username, key) if username and key else None


def _from_json(folder: Path) -> Credentials | None:
    path = folder / "kaggle.json"
    if not (text := secret_text(path)):
        return None
    try:
        found = json.loads(text)
        username, key = found["username"], found["key"]
        if isinstance(username, str) and isinstance(key, str) and username and key:
            return Credentials(username, key)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise UsageError(
        f"{path} holds no credentials", 'expected {"username": ..., "key": ...}', f"make a new one at {TOKEN_URL}"
    )


@dataclass(frozen=True, slots=True)
class KaggleSite:
    """Kaggle, or what stands in for it at another address."""

    base_url: str = HOME
    login: Token | Credentials | None = None
    key: str = "kaggle"
    name: str = "Kaggle"
    about: int = 167_000_000_000
    is_in_order: bool = False
    has_boxes: bool = True

    def of(self, splits: tuple[str, ...]) -> KaggleSite:
        """The same: there is one zip of all."""
        return self

    def enter(self, stall: float, note: Note) -> Session:
        """A session with the token, or the user name and the key: they go to the site's own address only."""
        session = Session(self.base_url, stall, note)
        if isinstance(self.login, Token):
            session.use_headers(self.login.headers)
        elif self.login is not None:
            session.use_basic(self.login.username, self.login.password)
        return session

    def files(self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True) -> tuple[Offer, ...]:
        """The one zip; its digests if the storage behind it tells them."""
        url = file_url(self.base_url, f"api/v1/competitions/data/download-all/{COMPETITION}")
        remote = inspect(session, url, pace)
        return (Offer(f"{COMPETITION}.zip", url, remote.total, _ask_digests(session, url, pace)),)

    def explain(self, refused: RefusedError) -> AccessError:
        """403 is what Kaggle says until the rules are accepted; 401, to one whom it doesn't know."""
        if self.login is None:
            detail = "found no KAGGLE_API_TOKEN, no KAGGLE_USERNAME with KAGGLE_KEY, and no file of them in ~/.kaggle"
            hint = f"make a token at {TOKEN_URL}, set KAGGLE_API_TOKEN, and accept the rules at {RULES_URL}"
            return AccessError(refused.what, detail, hint)
        if refused.status == 403:
            hint = f"accept the rules at {RULES_URL}, signed in as the user whose token this is; then run it again"
            return AccessError(refused.what, "got HTTP status 403: the rules are not accepted yet", hint)
        return AccessError(refused.what, refused.detail, f"make a new token at {TOKEN_URL}, and set KAGGLE_API_TOKEN")


def _ask_digests(session: Session, url: str, pace: Pace) -> dict[str, str]:
    def ask() -> dict[str, str]:
        with session.get(url, {"Range": f"bytes=0-{PROBE - 1}"}) as response:
            check_status(response, url)
            found = digests_of(response.headers.get("x-goog-hash", ""))
            return {"md5": found["md5"]} if "md5" in found else found

    return Patience(COMPETITION, pace, note=session.note).until(ask)


def digests_of(header: str) -> dict[str, str]:
    """The digests (hex) in an x-goog-hash header, such as ``crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==``."""
    found = {}
    for each in header.split(","):
        algorithm, _, value = each.strip().partition("=")
        try:
            digest = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(digest) == _LENGTHS.get(algorithm):
            found[algorithm] = digest.hex()
    return found
