"""HuggingFaceSite: the data set ILSVRC/imagenet-1k of the Hugging Face Hub, its parquet files at one commit.

The addresses are those of the Hub's API (https://huggingface.co/docs/hub/api); where the token is kept is as the Hub's
own client has it (https://github.com/huggingface/huggingface_hub). A file's lfs.oid in the list of a commit, which is
the X-Linked-ETag of its address, is its SHA-256. Its address redirects to a signed one elsewhere.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from imagenet_prep.errors import AccessError, InputError, NetworkError
from imagenet_prep.escaping import quoted
from imagenet_prep.fetch.offers import Note, Offer, ask_json
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import RefusedError
from imagenet_prep.fetch.session import Session, file_url, host_of
from imagenet_prep.fetch.tokens import Token, token_in_file, token_in_variable
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.text import listed, number_of

HOME = "https://huggingface.co/"
DATASET = "ILSVRC/imagenet-1k"
ACCESS_URL = f"https://huggingface.co/datasets/{DATASET}"
TOKEN_URL = "https://huggingface.co/settings/tokens"  # noqa: S105 -- an address

_ABOUT = {"train": 148_000_000_000, "validation": 7_000_000_000}
_MOST_PAGES = 100
_COMMIT = re.compile(r"[0-9a-f]{40}").fullmatch
_FILE = re.compile(r"data/((train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet)").fullmatch
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})").fullmatch


def find_token() -> Token | None:
    """HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, or token in HF_HOME, which is ~/.cache/huggingface.

    Raises:
        UsageError: one of them can't be used; what it holds is not shown.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    path = os.environ.get("HF_TOKEN_PATH") or f"{home}/token"
    return token_in_variable("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") or token_in_file(
        Path(os.path.expandvars(path)).expanduser()
    )


@dataclass(frozen=True, slots=True)
class HuggingFaceSite:
    """The Hub, or what stands in for it at another address.

    ``splits`` are those whose files are wanted: the Hub's test images have no labels, and are never fetched.
    """

    base_url: str = HOME
    token: Token | None = None
    splits: tuple[str, ...] = ("train", "validation")
    key: str = "huggingface"
    name: str = "Hugging Face"
    is_in_order: bool = True
    has_boxes: bool = False

    @property
    def about(self) -> int:
        """Bytes of the files of its splits, about."""
        return sum(_ABOUT[split] for split in self.splits)

    def of(self, splits: tuple[str, ...]) -> HuggingFaceSite:
        """The site for these splits alone."""
        return dataclasses.replace(self, splits=splits)

    def enter(self, stall: float, note: Note) -> Session:
        """A session with the token, which goes to the site's own address only."""
        session = Session(self.base_url, stall, note)
        if self.token is not None:
            session.use_headers(self.token.headers)
        return session

    def files(self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True) -> tuple[Offer, ...]:
        """The parquet files of one commit: that of the first time, which is remembered in ``state``, if ``is_kept``."""
        commit = self._commit(session, state, pace, is_kept)
        offers: dict[str, Offer] = {}
        counts: dict[str, set[int]] = {split: set() for split in self.splits}
        for entry in self._list(session, commit, pace):
            found = _FILE(str(entry.get("path")))
            if found and found[2] in self.splits:
                offers[found[1]] = self._offer(entry, found[1], commit)
                counts[found[2]].add(int(found[4]))
        self._refuse_incomplete(offers, counts, commit, state)
        return tuple(offers[name] for name in sorted(offers))

    def explain(self, refused: RefusedError) -> AccessError:
        """401 and 403 are both what the Hub says of a data set that one has to ask for (X-Error-Code: GatedRepo)."""
        ask = f"ask for access at {ACCESS_URL}"
        if self.token is None:
            detail = "found no token in HF_TOKEN, nor one that huggingface-cli login has saved"
            return AccessError(refused.what, detail, f"{ask}, make a token at {TOKEN_URL}, and set HF_TOKEN")
        hint = f"{ask}, with the account of the token in {self.token.where}, or make a new token at {TOKEN_URL}"
        return AccessError(refused.what, refused.detail, hint)

    def _commit(self, session: Session, state: Path, pace: Pace, is_kept: bool) -> str:
        """The commit to fetch: other files of the same names may be in the next one."""
        saved = load_json(state)
        pinned = saved.get("commit") if isinstance(saved, dict) else None
        if isinstance(pinned, str) and _COMMIT(pinned):
            return pinned
        url = file_url(self.base_url, f"api/datasets/{DATASET}/revision/main")
        answer, _ = ask_json(session, url, pace)
        commit = answer.get("sha") if isinstance(answer, dict) else None
        if not isinstance(commit, str) or not _COMMIT(commit):
            raise self._strange(url, "a commit")
        if is_kept:
            save_json(state, {"dataset": DATASET, "commit": commit})
        return commit

    def _list(self, session: Session, commit: str, pace: Pace) -> Iterator[dict[str, Any]]:
        """What the folder data holds at a commit; long lists come in pages."""
        first = url = file_url(self.base_url, f"api/datasets/{DATASET}/tree/{commit}/data")
        for _ in range(_MOST_PAGES):
            entries, behind = ask_json(session, url, pace)
            if not isinstance(entries, list):
                break
            yield from (entry for entry in entries if isinstance(entry, dict))
            if not behind:
                return
            url = urljoin(url, behind)
        raise self._strange(first, "a list of files")

    def _offer(self, entry: dict[str, Any], filename: str, commit: str) -> Offer:
        url = file_url(self.base_url, f"datasets/{DATASET}/resolve/{commit}/data/{filename}")
        lfs = entry.get("lfs")
        found = _SHA256(str(lfs.get("oid"))) if isinstance(lfs, dict) else None
        size = entry.get("size")
        if not isinstance(size, int) or size <= 0:
            raise self._strange(url, "its size")
        return Offer(filename, url, size, {"sha256": found[1]} if found else {})

    def _refuse_incomplete(
        self, offers: dict[str, Offer], counts: dict[str, set[int]], commit: str, state: Path
    ) -> None:
        wanted = [
            f"{split}-{number:05d}-of-{max(counts[split], default=1):05d}.parquet"
            for split in self.splits
            for number in range(max(counts[split], default=1))
        ]
        missing = [name for name in wanted if name not in offers]
        if missing or len(wanted) != len(offers):
            raise InputError(
                f"{DATASET} at the commit {commit[:12]} is another copy than the one known here",
                f"expected {number_of(len(wanted), 'parquet file')}, missing: {listed(missing) or 'none'}",
                f"rm {quoted(str(state))} to take the newest commit, or fetch another copy with --source",
            )

    def _strange(self, url: str, expected: str) -> NetworkError:
        return NetworkError(
            f"{host_of(url)} gave no usable answer about {DATASET}",
            f"expected {expected}",
            "check the address given with --base-url, or try later",
        )
