"""Site: a place that hands out a copy of ImageNet: which files it has, who may have them, what its refusals mean."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import requests

from imagenet_prep.errors import AccessError, NetworkError
from imagenet_prep.fetch.patience import Pace, Patience
from imagenet_prep.fetch.reply import RefusedError, check_status, name_of, read_some
from imagenet_prep.fetch.session import Session, host_of

_LONGEST = 1 << 25

Note = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Offer:
    """A file that a site hands out.

    Args:
        filename: what it is called in the raw folder.
        url: its address at home, which holds no secret. Where that redirects to lives an hour, so each request begins
            here again.
        size: bytes.
        digests: those that the site tells (hex), by algorithm.
    """

    filename: str
    url: str
    size: int
    digests: Mapping[str, str] = field(default_factory=dict)


class Site(Protocol):
    """Where a copy of ImageNet is handed out."""

    @property
    def key(self) -> str:
        """What commands and files call it."""
        ...

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def of(self, splits: tuple[str, ...]) -> Site:
        """The site for no more than these splits, if it hands them out apart from each other."""
        ...

    def enter(self, stall: float, note: Note) -> Session:
        """A session that says who asks, to the site's own address and nowhere else; ``note`` is told of each wait."""
        ...

    @property
    def about(self) -> int:
        """Bytes of all its files, about."""
        ...

    @property
    def has_boxes(self) -> bool:
        """Whether they hold annotations, too."""
        ...

    @property
    def is_in_order(self) -> bool:
        """Whether the images of its files can only be read in their order."""
        ...

    def files(self, session: Session, state: Path, pace: Pace, *, is_kept: bool = True) -> tuple[Offer, ...]:
        """All files of the copy.

        ``state`` is where the site finds what a download that goes on must know, and keeps it, if ``is_kept``.
        """
        ...

    def explain(self, refused: RefusedError) -> AccessError:
        """What a refusal means there, and what to do."""
        ...


@contextlib.contextmanager
def explained(site: Site) -> Iterator[None]:
    """Turn what the server refuses in the block into the site's own words."""
    try:
        yield
    except RefusedError as refused:
        raise site.explain(refused) from None


def ask_json(session: Session, url: str, pace: Pace) -> tuple[Any, str]:
    """A JSON value from a site, and the address of the page behind it ("" if this is the last).

    Raises:
        AccessError, NetworkError: as ``inspect``; it is not JSON.
    """

    def ask() -> tuple[Any, str]:
        with session.get(url) as response:
            check_status(response, url)
            return json.loads(_read_all(response)), response.links.get("next", {}).get("url", "")

    try:
        return Patience(name_of(url), pace, note=session.note).until(ask)
    except ValueError:
        raise NetworkError(
            f"{host_of(url)} sent something else in place of {name_of(url)}",
            "expected JSON",
            "check the address given with --base-url, or try later",
        ) from None


def _read_all(response: requests.Response) -> bytes:
    content = b""
    while more := read_some(response, _LONGEST):
        content += more
        if len(content) > _LONGEST:
            raise ValueError("far too long")
    return content
