"""Turns the options of a call into arguments of downloads: archives, site, account."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from imagenet_prep.cli.terminal import say
from imagenet_prep.errors import UsageError
from imagenet_prep.fetch import BASE_URL, SIGN_UP_URL
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.text import nearest_words

if TYPE_CHECKING:
    from imagenet_prep.fetch.access import SignIn
    from imagenet_prep.fetch.providers import Site
    from imagenet_prep.stages.download import DownloadOptions


def archive_keys(only: str) -> tuple[str, ...]:
    """The archives that --only names; raises UsageError for one that does not exist."""
    words = [word.strip() for word in only.split(",")]
    keys = tuple(key for key in words if key)
    unknown = [key for key in keys if key not in facts.ARCHIVES]
    if unknown or not keys:
        suggestion = ""
        if unknown:
            suggestion = nearest_words(unknown[0], facts.ARCHIVES)
        archive_list = ",".join(facts.ARCHIVES)
        raise UsageError(f"--only {only}", f"expected one or more of {archive_list}", suggestion)
    return keys


def site_of(params: Mapping[str, Any], keys: Sequence[str] = facts.DEFAULT_ARCHIVES) -> Site | None:
    """The site of ``--source`` for the archives ``keys``; None for image-net.org, which has the
    original archives.

    Raises:
        UsageError: the source lacks an option, or a file of secrets can't be used.
    """
    source = params["source"]
    if source == "imagenet":
        return None
    _refuse_options_of_imagenet(params)
    splits = _splits_of_site(source, keys)
    from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite
    from imagenet_prep.fetch.site_logins import find_login, find_token

    address = {}
    if params["base_url"]:
        address["base_url"] = params["base_url"]
    if source == "kaggle":
        login = find_login()
        return KaggleSite(login=login, **address)
    token = find_token()
    return HuggingFaceSite(login=token, splits=splits, **address)


def _refuse_options_of_imagenet(params: Mapping[str, Any]) -> None:
    """Refuse the options that only image-net.org has."""
    for name in ("cookies", "no_digest"):
        if params.get(name):
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} can't be used with --source {params['source']}",
                f"--{option} is for --source imagenet, the default",
                f"leave out --{option}",
            )


def _splits_of_site(source: str, keys: Sequence[str]) -> tuple[str, ...]:
    """The splits among ``keys``; raises UsageError if the site doesn't offer them alone."""
    splits = tuple(split for split in facts.SPLITS if split in keys)
    fault = f"--only {','.join(keys)} can't be used with --source {source}"
    if source == "kaggle" and splits != facts.SPLITS:
        raise UsageError(fault, "Kaggle has one zip with everything", "leave --only out")
    is_default = set(keys) == {*facts.DEFAULT_ARCHIVES}
    if source == "huggingface" and len(splits) < len(set(keys)) and not is_default:
        raise UsageError(
            fault,
            "Hugging Face's copy has train and validation images, and nothing else",
            "write --only train or --only validation, or leave --only out for both",
        )
    return splits


def download_options(params: Mapping[str, Any], site: Site | None) -> DownloadOptions:
    """The settings of a download from a site."""
    from imagenet_prep.stages.download import DownloadOptions

    return DownloadOptions(
        site=site,
        base_url=params["base_url"] or BASE_URL,
        connections=params["connections"],
        check_digest=not params["no_digest"],
        cookies=params["cookies"],
    )


def find_account(params: Mapping[str, Any]) -> SignIn | None:
    """The account to sign in with; it prompts when the server requires one.
    A cookies file replaces it.
    """
    from imagenet_prep.fetch.credentials import find_credentials

    if params.get("cookies") is not None:
        return None
    base_url = params["base_url"] or BASE_URL
    credentials = find_credentials(base_url, prompt=None)
    if credentials is not None or not sys.stdin.isatty():
        return credentials
    prompt = functools.partial(_prompt, base_url)
    return functools.partial(find_credentials, base_url, prompt=prompt)


def _prompt(base_url: str) -> tuple[str, str]:
    """Ask for the user name and the password of an account."""
    from imagenet_prep.fetch.addresses import host_of

    host = host_of(base_url)
    remark = ", which will get the password"
    if base_url == BASE_URL:
        remark = f" (sign up: {SIGN_UP_URL})"
    say(f"Account at {host}{remark}", error=True)
    username = click.prompt("Username", err=True)
    password = click.prompt("Password or access key", hide_input=True, err=True)
    return username, password
