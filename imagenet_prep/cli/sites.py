"""site_of: the options of a command -> the site that a copy of ImageNet is fetched from, and who asks there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012 import facts

if TYPE_CHECKING:
    from imagenet_prep.fetch.offers import Site


def site_of(given: Mapping[str, Any], keys: Sequence[str] = facts.DEFAULT_ARCHIVES) -> Site | None:
    """The site of ``--source``, for the archives named ``keys``; None for image-net.org, which hands out the originals.

    Raises:
        UsageError: an option that the source doesn't have; a file of secrets can't be used.
    """
    source = given["source"]
    if source == "imagenet":
        return None
    for option in ("cookies", "no_digest"):
        if given[option]:
            raise UsageError(
                f"--{option.replace('_', '-')} with --source {source}", "expected it with --source imagenet only"
            )
    splits = tuple(split for split in facts.SPLITS if split in keys)
    if (source == "kaggle" and splits != facts.SPLITS) or not splits:
        raise UsageError(
            f"--only {','.join(keys)} with --source {source}",
            "Kaggle hands out all in one zip" if splits else f"expected some of {', '.join(facts.SPLITS)}",
        )
    return _kaggle(given["base_url"]) if source == "kaggle" else _hugging_face(given["base_url"], splits)


def _kaggle(base_url: str | None) -> Site:
    from imagenet_prep.fetch.kaggle_site import HOME, KaggleSite, find_login

    return KaggleSite(base_url or HOME, find_login())


def _hugging_face(base_url: str | None, splits: tuple[str, ...]) -> Site:
    from imagenet_prep.fetch.hugging_face_site import HOME, HuggingFaceSite, find_token

    return HuggingFaceSite(base_url or HOME, find_token(), splits)
