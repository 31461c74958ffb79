"""site_of: the options of a command -> the site that a copy of ImageNet is fetched from, and who asks there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012 import facts

if TYPE_CHECKING:
    from imagenet_prep.fetch.providers import Site


def site_of(given: Mapping[str, Any], keys: Sequence[str] = facts.DEFAULT_ARCHIVES) -> Site | None:
    """The site of ``--source``, for the archives named ``keys``; None for image-net.org, which hands out the originals.

    Raises:
        UsageError: an option that the source doesn't have; a file of secrets can't be used.
    """
    source = given["source"]
    if source == "imagenet":
        return None
    for option in ("cookies", "no_digest"):
        if given.get(option):
            raise UsageError(
                f"--{option.replace('_', '-')} with --source {source}", "expected it with --source imagenet only"
            )
    splits = tuple(split for split in facts.SPLITS if split in keys)
    if (source == "kaggle" and splits != facts.SPLITS) or not splits:
        raise UsageError(
            f"--only {','.join(keys)} with --source {source}",
            "Kaggle hands out all in one zip" if splits else f"expected some of {', '.join(facts.SPLITS)}",
        )
    from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite, find_login, find_token

    address = {"base_url": given["base_url"]} if given["base_url"] else {}
    if source == "kaggle":
        return KaggleSite(login=find_login(), **address)
    return HuggingFaceSite(login=find_token(), splits=splits, **address)
