"""Site: a host of an ImageNet copy (Kaggle, Hugging Face), with its files,
its login and its access errors.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import AccessError, InputError, NetworkError
from imagenet_prep.escaping import command_line
from imagenet_prep.fetch.addresses import file_url, host_of
from imagenet_prep.fetch.answer_checks import RefusedError, check_status
from imagenet_prep.fetch.credentials import Credentials, Token
from imagenet_prep.fetch.patience import Pace, Patience
from imagenet_prep.fetch.reply import Body, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.site_logins import KAGGLE_TOKEN_URL, hub_token_path, kaggle_folders
from imagenet_prep.hints import Hint, run_again
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.text import either, listed, number_of

_LONGEST_JSON = 1 << 25
_NO_LOGIN = -1
_PAGE = ("", "look at the site with a browser, and run the same command again later")
"""The reply to a web page in place of a file."""


class Offer(Struct, frozen=True):
    """A file that a site offers.

    Args:
        filename: its name in the raw folder.
        url: its permanent address, which holds no secret. It redirects to one that expires after
            about an hour.
        size: bytes.
        digests: the digests the site publishes (hex), by algorithm.
    """

    filename: str
    url: str
    size: int
    digests: Mapping[str, str] = {}


class Site(Struct, frozen=True):
    """A site that offers a copy of ImageNet.

    ``base_url`` is its address, ``login`` its credentials. ``key`` is its name in commands and
    files, ``name`` its name for people. ``has_boxes``: its files include annotations;
    ``is_in_order``: images can only be read in order. ``replies``: what a refusal means there and
    what to do, by status; 0: any other, _NO_LOGIN: none was found.
    """

    base_url: str
    login: Token | Credentials | None = None
    splits: tuple[str, ...] = ("train", "validation")
    key: ClassVar[str]
    name: ClassVar[str]
    has_boxes: ClassVar[bool]
    is_in_order: ClassVar[bool]
    replies: ClassVar[Mapping[int, tuple[str, str]]]

    def for_splits(self, splits: tuple[str, ...]) -> Site:
        """The site limited to these splits, if it offers them separately."""
        return replace(self, splits=splits)

    def enter(self, stall: float, note: Callable[[str], object]) -> Session:
        """Open a session that sends the login to the site's own address only;
        ``note`` is called with each wait.
        """
        session = Session(self.base_url, stall, note)
        session.authorization = self.login.authorization if self.login else ""
        return session

    def files(
        self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True
    ) -> tuple[Offer, ...]:
        """All files of the copy.

        ``state`` is the file in which the site keeps the facts a resumed download needs, if
        ``is_kept``.
        """
        raise NotImplementedError

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the server's refusals in the block into an error that says
        what to do on this site.
        """
        try:
            yield
        except RefusedError as refused:
            status = refused.status if refused.status in self.replies else 0
            detail, hint = self.replies[status if self.login else _NO_LOGIN]
            source = self.login.where if isinstance(self.login, Token) else ""
            searched = detail.format(folders=self.login_folders())
            raise AccessError(
                refused.what, searched or refused.detail, hint.format(where=source)
            ) from None

    @staticmethod
    def login_folders() -> str:
        """The folders or the file in which a login is looked for, for messages; "" if a reply names
        none.
        """
        return ""


# Kaggle -------------------------------------------------------------------------------------------

COMPETITION = "imagenet-object-localization-challenge"
RULES_URL = f"https://www.kaggle.com/c/{COMPETITION}/rules"
_LENGTHS = {"md5": 16, "crc32c": 4}


class KaggleSite(Site, frozen=True):
    """Kaggle: one zip of the competition's data.

    Requests sign in as Kaggle's own clients do (https://github.com/Kaggle/kagglehub). The answer is
    a redirect to a signed address in Google's storage, whose x-goog-hash holds digests
    (https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooghash).
    """

    base_url: str = "https://www.kaggle.com/"
    key: ClassVar[str] = "kaggle"
    name: ClassVar[str] = "Kaggle"
    has_boxes: ClassVar[bool] = True
    is_in_order: ClassVar[bool] = False
    replies: ClassVar[Mapping[int, tuple[str, str]]] = {
        _NO_LOGIN: (
            (
                "found no token in KAGGLE_API_TOKEN, no KAGGLE_USERNAME with KAGGLE_KEY, "
                "and no credentials in {folders}"
            ),
            (
                f"create a token at {KAGGLE_TOKEN_URL}, set KAGGLE_API_TOKEN, "
                f"and accept the rules at {RULES_URL}"
            ),
        ),
        403: (
            "got HTTP status 403: this account may not have accepted the rules",
            (
                f"sign in there with the same account, accept the rules at {RULES_URL}, "
                "and run the same command again"
            ),
        ),
        0: (
            "",
            f"create a new token at {KAGGLE_TOKEN_URL}, and set KAGGLE_API_TOKEN",
        ),  # 401: an unknown user
        200: _PAGE,
    }

    @staticmethod
    def login_folders() -> str:
        """The folders of kaggle.json."""
        return either(map(str, kaggle_folders()))

    def files(
        self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True
    ) -> tuple[Offer, ...]:
        """The one zip, with its digests if the storage behind it gives them."""
        url = file_url(self.base_url, f"api/v1/competitions/data/download-all/{COMPETITION}")
        remote = inspect(session, url, pace)
        digests = digests_of(remote.hashes)
        if "md5" in digests:
            digests = {"md5": digests["md5"]}
        return (Offer(f"{COMPETITION}.zip", url, remote.total, digests),)


def digests_of(header: str) -> dict[str, str]:
    """The digests (hex) in an x-goog-hash header,
    such as ``crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==``.
    """
    digests = {}
    for entry in header.split(","):
        algorithm, _, encoded = entry.strip().partition("=")
        with contextlib.suppress(binascii.Error, ValueError):
            digest = base64.b64decode(encoded, validate=True)
            if len(digest) == _LENGTHS.get(algorithm):
                digests[algorithm] = digest.hex()
    return digests


# Hugging Face -------------------------------------------------------------------------------------

DATASET = "ILSVRC/imagenet-1k"
ACCESS_URL = f"https://huggingface.co/datasets/{DATASET}"
_HUB_TOKEN_URL = "https://huggingface.co/settings/tokens"  # noqa: S105 -- an address
_MOST_PAGES = 100
_COMMIT = re.compile(r"[0-9a-f]{40}").fullmatch
_FILE = re.compile(r"data/((train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet)").fullmatch
_EXAMPLES = {
    "train": "data/train-00000-of-00294.parquet",
    "validation": "data/validation-00000-of-00014.parquet",
}
"""A file of each split, as the copy of 2022 has it."""
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})").fullmatch


class HuggingFaceSite(Site, frozen=True):
    """The data set ILSVRC/imagenet-1k of the Hugging Face Hub: its parquet files at one commit.

    The addresses follow the Hub's API (https://huggingface.co/docs/hub/api). A file's lfs.oid in
    the list of a commit is its SHA-256. The Hub's test images have no labels and are never fetched.
    """

    base_url: str = "https://huggingface.co/"
    key: ClassVar[str] = "huggingface"
    name: ClassVar[str] = "Hugging Face"
    has_boxes: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = True
    replies: ClassVar[
        Mapping[int, tuple[str, str]]
    ] = {  # it asks for approval with 401 or 403 (GatedRepo)
        _NO_LOGIN: (
            "found no token in HF_TOKEN, and none of hf auth login in {folders}",
            f"request access at {ACCESS_URL}, create a token at {_HUB_TOKEN_URL}, and set HF_TOKEN",
        ),
        0: (
            "",
            f"request access at {ACCESS_URL}, with the account of the token in {{where}}, "
            f"or create a new token at {_HUB_TOKEN_URL}",
        ),
        200: _PAGE,
    }

    @staticmethod
    def login_folders() -> str:
        """The file of the token."""
        return str(hub_token_path())

    def files(
        self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True
    ) -> tuple[Offer, ...]:
        """The parquet files of one commit; if ``is_kept``,
        ``state`` keeps the commit of the first run.
        """
        known_commit = _load_commit(state)
        commit = known_commit or self._newest_commit(session, state, pace, is_kept)
        offers: dict[str, Offer] = {}
        file_counts = dict.fromkeys(self.splits, 0)
        for entry in self._list(session, commit, pace):
            match = _FILE(str(entry.get("path")))
            if match and match[2] in file_counts:
                filename, split, count = match[1], match[2], int(match[4])
                offers[filename] = self._offer(entry, filename, commit)
                file_counts[split] = max(file_counts[split], count)
        kept_state = state if known_commit else None
        _refuse_other_files(offers, file_counts, commit, kept_state)
        return tuple(offers[name] for name in sorted(offers))

    def _newest_commit(self, session: Session, state: Path, pace: Pace, is_kept: bool) -> str:
        """The commit to fetch; the next one may have other files under the same names."""
        url = file_url(self.base_url, f"api/datasets/{DATASET}/revision/main")
        answer, _ = _ask_json(session, url, pace)
        commit = answer.get("sha") if isinstance(answer, dict) else None
        if not isinstance(commit, str) or not _COMMIT(commit):
            raise _unusable_answer(url)
        if is_kept:
            save_json(state, {"dataset": DATASET, "commit": commit})
        return commit

    def _list(self, session: Session, commit: str, pace: Pace) -> Iterator[dict[str, Any]]:
        """The entries of the folder data at a commit; the Hub sends long lists in pages."""
        first_page = page = file_url(self.base_url, f"api/datasets/{DATASET}/tree/{commit}/data")
        for _ in range(_MOST_PAGES):
            entries, next_page = _ask_json(session, page, pace)
            if not isinstance(entries, list):
                break
            yield from (entry for entry in entries if isinstance(entry, dict))
            if not next_page:
                return
            page = urljoin(page, next_page)
        raise _unusable_answer(first_page)

    def _offer(self, entry: dict[str, Any], filename: str, commit: str) -> Offer:
        url = file_url(self.base_url, f"datasets/{DATASET}/resolve/{commit}/data/{filename}")
        lfs, size = entry.get("lfs"), entry.get("size")
        sha256 = _SHA256(str(lfs.get("oid"))) if isinstance(lfs, dict) else None
        if not isinstance(size, int) or size <= 0:
            raise _unusable_answer(url)
        return Offer(filename, url, size, {"sha256": sha256[1]} if sha256 else {})


def _load_commit(state: Path) -> str:
    """The commit that an earlier run fetched from; "" if there was none."""
    saved = load_json(state)
    commit = saved.get("commit") if isinstance(saved, dict) else None
    return commit if isinstance(commit, str) and _COMMIT(commit) else ""


def _refuse_other_files(
    names: Collection[str], file_counts: Mapping[str, int], commit: str, state: Path | None
) -> None:
    """Raise InputError if the files of a commit are not as many of each split as they say.

    ``state`` is the file that names the commit, if an earlier run chose it.
    """
    expected_names = _names_of_files(file_counts)
    absent_splits = [split for split, count in file_counts.items() if not count]
    if not absent_splits and set(expected_names) == set(names):
        return
    missing_names = [name for name in expected_names if name not in names]
    other_names = sorted(set(names) - set(expected_names))
    texts = [f"expected {number_of(len(expected_names), 'parquet file')}"]
    if absent_splits:
        texts = [f"expected files such as {_EXAMPLES[absent_splits[0]]}, found none"]
    if missing_names:
        texts.append(f"missing: {listed(missing_names)}")
    if other_names:
        texts.append(f"not expected: {listed(other_names)}")
    raise InputError(
        f"commit {commit[:12]} of {DATASET} does not have the expected files",
        "; ".join(texts),
        _another_copy(file_counts, state),
    )


def _names_of_files(file_counts: Mapping[str, int]) -> list[str]:
    """The names of the files of each split, by how many there are."""
    names: list[str] = []
    for split, count in file_counts.items():
        names += [f"{split}-{number:05d}-of-{count:05d}.parquet" for number in range(count)]
    return names


def _another_copy(splits: Collection[str], state: Path | None) -> Hint:
    """The advice to fetch these splits from elsewhere, or from the newest commit."""
    others = "--source imagenet"
    if set(splits) == _EXAMPLES.keys():
        others = "--source imagenet or --source kaggle"
    hint = Hint(f"fetch another copy with {others}")
    if state is None:
        return hint
    remove = command_line(["rm", "--", str(state)])
    return Hint(hint, "; or use the newest commit: ", remove, ", then ", run_again())


def _ask_json(session: Session, url: str, pace: Pace) -> tuple[Any, str]:
    """A JSON value from a site, and the address of the next page ("" after the last).

    Raises:
        AccessError, NetworkError: as ``inspect``; or the answer is not JSON.
    """

    def ask() -> tuple[Any, str]:
        with session.get(url) as response:
            check_status(response, url, name=DATASET)
            body, content = Body(response), b""
            while len(content) <= _LONGEST_JSON and (data := body.read(_LONGEST_JSON)):
                content += data
            return json.loads(content), response.links.get("next", {}).get("url", "")

    try:
        return Patience(DATASET, pace, note=session.note).until(ask)
    except (ValueError, RecursionError):
        raise _unusable_answer(url) from None


def _unusable_answer(url: str) -> NetworkError:
    """The error for an answer of any wrong form: the user does the same in each case."""
    return NetworkError(
        f"{host_of(url)} sent no usable answer about {DATASET}",
        "expected its newest commit, and the names and sizes of its files, as JSON",
        "check --base-url if you set it, or try later",
    )
