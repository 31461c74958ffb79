"""read_profile: the credentials of ``~/.aws`` and AWS_PROFILE, by botocore if it is installed."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from imagenet_prep.errors import AccessError
from imagenet_prep.escaping import Shell, command_line
from imagenet_prep.hints import Hint
from imagenet_prep.storage.asking import endpoint_variable

_OTHERS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Where one of them is set, obstore finds the credentials itself."""

_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}

_EXPORT = command_line(["eval", Shell('"$(aws configure export-credentials --format env)"')])
"""The command that makes variables of a profile."""


def read_profile() -> dict[str, Any]:
    """The arguments of an S3 client: credentials, region and server of the profile; none without a
    profile.

    Raises:
        AccessError: AWS_PROFILE is set and can't be read.
    """
    profile = os.environ.get("AWS_PROFILE", "")
    if any(map(os.environ.get, _OTHERS)) or not (profile or _has_files()):
        return {}
    try:
        import botocore.exceptions
        import botocore.session
    except ImportError as error:
        if not profile:
            return {}
        raise AccessError(
            f"AWS_PROFILE is {profile}, and botocore, which reads profiles, can't be imported",
            "expected botocore, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            Hint(command_line(["pip", "install", "botocore"]), ", or: ", _EXPORT),
        ) from error
    try:
        session = botocore.session.Session()
        settings, credentials = session.get_scoped_config(), session.get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise _unusable_profile(profile, error) from error
    return _client_arguments(settings, credentials)


def _unusable_profile(profile: str, error: Exception) -> AccessError:
    """The error for a profile that botocore can't use; "" is the default one."""
    files = [os.environ.get(name) or usual for name, usual in _FILES.items()]
    hint = f"check {'AWS_PROFILE, ' if profile else ''}{' and '.join(files)}"
    return AccessError(f"the profile {profile or 'default'} can't be used", str(error), hint)


def _client_arguments(settings: dict[str, Any], credentials: Any) -> dict[str, Any]:
    """The arguments of a client for a profile; a variable of the environment wins over it."""
    arguments = {}
    if not os.environ.get("AWS_REGION"):
        arguments["region"] = settings.get("region")
    if not endpoint_variable("s3"):
        arguments["endpoint"] = settings.get("endpoint_url")
    if credentials:
        arguments["credential_provider"] = _Provider(credentials)
    return {name: argument for name, argument in arguments.items() if argument}


def _has_files() -> bool:
    """Whether this user has a file of profiles."""
    paths = [Path(os.environ.get(name) or usual) for name, usual in _FILES.items()]
    return any(path.expanduser().is_file() for path in paths)


class _Provider:
    """Gives obstore the keys of a session, which renews them; asked again every five minutes."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def __call__(self) -> dict[str, Any]:
        keys = self._credentials.get_frozen_credentials()
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": until,
        }
