"""asking and persist: requests to an object store,
whose failures become errors that name the object and the cure.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, TypeVar

from imagenet_prep.errors import (
    AccessError,
    InputError,
    NetworkError,
    PrepError,
    UsageError,
    missing_library,
)
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import Hint, install_extra

T = TypeVar("T")

Right: TypeAlias = Literal["read", "list", "write", "delete"]
"""The right that a request needs."""

RETRY_SECONDS = 120
"""Seconds during which a request is retried, unless ``IMAGENET_PREP_RETRY_SECONDS`` is set."""

_MOST_SECONDS = 10**6  # 12 days

_STATUS = re.compile(r"status code: (\d{3})|HTTP status (?:client|server) error \((\d{3})")
_CODE = re.compile(r"(?:<Code>|\(code: )(\w{1,64})(?:</Code>|\))")
_PATH_OF_URL = re.compile(r"(https?://[^/\s]+)\S*")
_METADATA_SERVICE = re.compile(r"/latest/(api/token|meta-data)")
_CREDENTIALS = re.compile(r"169\.254\.|metadata|credential|InstanceProfile|token", re.IGNORECASE)
_CUT_ANSWER = re.compile(r"response body|Got invalid \w+ response")
_REFUSALS = ("PermissionDeniedError", "UnauthenticatedError")
"""The names of obstore's exceptions for a lack of access."""

_SIGN_UP = {
    "s3": (
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for temporary ones also AWS_SESSION_TOKEN"
    ),
    "gs": "GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""The variables that hold a store's credentials."""
_PUBLIC = {"s3": "AWS_SKIP_SIGNATURE", "gs": "GOOGLE_SKIP_SIGNATURE", "az": "AZURE_SKIP_SIGNATURE"}
_KEYS = {
    "s3": ("AWS_ACCESS_KEY_ID",),
    "gs": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"),
    "az": ("AZURE_STORAGE_ACCOUNT_KEY",),
}
"""The variables of which one shows that credentials were given; others may hold some too."""

_ENDPOINT_OF_S3 = "AWS_ENDPOINT_URL_S3"
ENDPOINTS = {
    "s3": (_ENDPOINT_OF_S3, "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": (),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""The variables that name another server."""

_RIGHTS = {
    "s3": {
        "read": "s3:GetObject",
        "list": "s3:ListBucket",
        "write": "s3:PutObject",
        "delete": "s3:DeleteObject",
    },
    "gs": {right: f"storage.objects.{right}" for right in ("list", "delete")}
    | {"read": "storage.objects.get", "write": "storage.objects.create"},
    "az": {"read": "Storage Blob Data Reader", "list": "Storage Blob Data Reader"}
    | dict.fromkeys(("write", "delete"), "Storage Blob Data Contributor"),
}
"""The right, or the role, that each request needs."""

_WRONG_KEYS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthenticationFailed",
    "InvalidToken",
    "InvalidSecurity",
    "AuthenticationRequired",
    "NoAuthenticationInformation",
    "InvalidAuthenticationInfo",
)
_WRONG_CLOCK = "RequestTimeTooSkewed"
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired")
_OTHER_REGION = (
    "AuthorizationHeaderMalformed",
    "PermanentRedirect",
    "IllegalLocationConstraintException",
)
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")


class IncompleteAnswerError(NetworkError):
    """An answer ended early; obstore leaves the retry to its caller."""


def load_library() -> Any:
    """The obstore module.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import obstore
        import obstore.store
    except ImportError as error:
        purpose = "reads and writes object stores"
        if isinstance(error, ModuleNotFoundError) and error.name == "obstore":
            raise missing_library("obstore", purpose, "cloud") from error
        raise UsageError(
            f"obstore, which {purpose}, can't be imported", str(error), install_extra("cloud")
        ) from error
    return obstore


def retry_seconds() -> float:
    """For how long a request is retried.

    Raises:
        UsageError: the environment has no number.
    """
    text = os.environ.get("IMAGENET_PREP_RETRY_SECONDS", "")
    try:
        seconds = float(text) if text else RETRY_SECONDS
    except ValueError:
        seconds = math.nan
    if not seconds <= _MOST_SECONDS:
        expected = f"expected a number of seconds, at most {_MOST_SECONDS:,}"
        hint = "correct IMAGENET_PREP_RETRY_SECONDS, or unset it"
        raise UsageError(f"IMAGENET_PREP_RETRY_SECONDS is {text!r}", expected, hint)
    return max(seconds, 0.0)


def persist(url: str, right: Right, request: Callable[[], T]) -> T:
    """The answer to a request; one that was cut short is retried as long as other requests are."""
    end, pause = time.monotonic() + retry_seconds(), 0.1
    while True:
        try:
            with asking(url, right):
                return request()
        except IncompleteAnswerError:
            if time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 10)


@contextlib.contextmanager
def asking(url: str, right: Right) -> Iterator[None]:
    """Turn obstore's exceptions into the error that names the object; see ``failure``."""
    exceptions = load_library().exceptions
    try:
        yield
    except (exceptions.AlreadyExistsError, PrepError):
        raise
    except (exceptions.BaseError, OSError) as error:
        # its message contains addresses and the server's answer
        raise failure(url, error, right) from None


def _is_without_bucket(code: str, right: Right, *, is_missing: bool) -> bool:
    """Whether the bucket is missing: one that is there can take any object."""
    if code in _NO_BUCKET:
        return True
    return is_missing and right == "write" and code != "NoSuchUpload"


def failure(url: str, error: Exception, right: Right = "read") -> Exception:
    """The error for obstore's exception about an object,
    with only the status and code of its message.
    """
    message = str(error)
    status, code = _status_in(message), _code_in(message)
    is_missing = isinstance(error, FileNotFoundError) or status == 404
    if _is_without_bucket(code, right, is_missing=is_missing):
        return _no_bucket(url, _answer_text(status, code))
    if is_missing:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    answer = _answer_text(status, code)
    if code in _OTHER_REGION or "redirect without LOCATION" in message:
        return _other_region(url, answer)
    if _is_refused(error, status, code):
        is_unknown_user = status == 401 or code in _WRONG_KEYS
        return _no_access(url, right, code, answer or "access denied", is_unknown_user)
    if status is None:
        return _failure_without_status(url, message, answer)
    return _failure_by_status(url, status, answer)


def _is_refused(error: Exception, status: int | None, code: str) -> bool:
    """Whether the store did not accept the credentials, or their rights."""
    is_refused = type(error).__name__ in _REFUSALS or status in (401, 403)
    return is_refused or code in (*_WRONG_KEYS, *_EXPIRED, _WRONG_CLOCK, "AccessDenied")


def _status_in(message: str) -> int | None:
    match = _STATUS.search(message)
    return int(match[1] or match[2]) if match else None


def _code_in(message: str) -> str:
    """The code of the store's answer; "" if the message has none."""
    match = _CODE.search(message)
    if match:
        return match[1]
    return next((code for code in _NO_BUCKET if code in message), "")


def _answer_text(status: int | None, code: str) -> str:
    """The status and the code of an answer, for a message; "" without both."""
    texts = [f"status {status}"] if status else []
    if code:
        texts.append(code)
    return ", ".join(texts)


def _no_bucket(url: str, answer: str) -> InputError:
    scheme, _, path = url.partition("://")
    bucket = path.partition("/")[0]
    noun = "container" if scheme == "az" else "bucket"
    return InputError(
        f"the store finds no {noun} {scheme}://{bucket}",
        answer,
        f"create it, or use another one{_which_server(scheme)}",
    )


def _other_region(url: str, answer: str) -> InputError:
    """The error for a bucket whose region is not that of the request."""
    return InputError(
        f"the store refuses a request for {url}",
        f"the bucket is in another region than the request: {answer or 'a redirect'}",
        "set AWS_REGION to the region of the bucket, such as AWS_REGION=eu-west-1",
    )


def _failure_by_status(url: str, status: int, answer: str) -> PrepError:
    """The error for an answer that is neither "missing" nor "refused"."""
    server = _which_server(url.partition("://")[0])
    if status < 500 and status not in (408, 429):
        return InputError(
            f"the store refuses a request for {url}", answer, f"check the URL{server}"
        )
    return NetworkError(f"no usable answer for {url}", answer, f"try again{server}")


def _failure_without_status(url: str, message: str, answer: str) -> PrepError:
    """The error for a request that got no status: without credentials, or by the network."""
    scheme = url.partition("://")[0]
    if not answer and _lacks_credentials(message):
        return AccessError(
            f"no credentials for {url}", "the environment has none that work", who(scheme)
        )
    error_type, reason = (NetworkError, answer) if answer else _network_fault(message)
    hint = f"try again{_which_server(scheme)}"
    return error_type(f"no usable answer for {url}", reason, hint)


def _lacks_credentials(message: str) -> bool:
    """Whether a request for credentials failed; the path of any other request may have any word."""
    without_paths = _PATH_OF_URL.sub(r"\1", message)
    return bool(_METADATA_SERVICE.search(message) or _CREDENTIALS.search(without_paths))


def _no_access(
    url: str, right: Right, code: str, answer: str, is_unknown_user: bool
) -> AccessError:
    """The error for a refusal: by status and code, the credentials are wrong or a right is missing;
    without a code, either.
    """
    scheme = url.partition("://")[0]
    required = f"the right to {right} objects: {_RIGHTS[scheme][right]}"
    # none, or of a profile or this machine
    are_unknown = _is_anonymous(scheme) or not any(map(os.environ.get, _KEYS[scheme]))
    if code in _EXPIRED:
        credentials = "your credentials" if are_unknown else _SIGN_UP[scheme]
        detail = f"the credentials have expired: {answer}"
        hint = f"renew {credentials}, and try again: what is finished stays"
    elif code == _WRONG_CLOCK:
        detail = f"this machine's clock differs from that of the store: {answer}"
        hint = "set the clock, and try again"
    elif is_unknown_user:
        refused = "the store refuses these credentials"
        if are_unknown:
            refused = "no credentials were given, or the store refuses them"
        detail = f"{refused}: {answer}"
        hint = _sign_in(scheme) if are_unknown else f"check {_SIGN_UP[scheme]}"
    elif are_unknown:
        refused = "" if code else ", the store refuses them"
        detail = f"no credentials were given{refused}, or they lack {required} ({answer})"
        hint = Hint(_sign_in(scheme), "; or ask the bucket's owner for the right")
    elif code:
        detail = f"these credentials lack {required} ({answer})"
        hint = "ask the bucket's owner for it"
    else:
        detail = f"the store refuses these credentials, or they lack {required} ({answer})"
        hint = f"check {_SIGN_UP[scheme]}, or ask the bucket's owner for the right"
    return AccessError(f"no access to {url}", detail, hint)


def _is_anonymous(scheme: str) -> bool:
    """Whether requests go without credentials, as for a public bucket."""
    return os.environ.get(_PUBLIC[scheme], "").lower() in ("1", "true", "yes", "on", "y")


def _sign_in(scheme: str) -> str:
    """How to give credentials where none may have been given."""
    if _is_anonymous(scheme):
        return f"unset {_PUBLIC[scheme]}, and set {_SIGN_UP[scheme]}"
    return who(scheme)


def who(scheme: str) -> str:
    """The variables to set, so that a store knows the user."""
    profile = ""
    if scheme == "s3":
        install = CommandLine(("pip", "install", "botocore"), in_sentence=True)
        profile = Hint(", or AWS_PROFILE (~/.aws is read if botocore is installed: ", install, ")")
    public = f"; a public bucket needs none: {_PUBLIC[scheme]}=true"
    if scheme == "az":
        public = f"; a public container needs only the name and {_PUBLIC[scheme]}=true"
    return Hint(f"set {_SIGN_UP[scheme]}", profile, public)


def endpoint_variable(scheme: str) -> str:
    """The variable that names another server; "" if none does.

    If several do, obstore takes that of S3 alone, otherwise the last one in the environment.
    """
    given = [name for name, value in os.environ.items() if value and name in ENDPOINTS[scheme]]
    if _ENDPOINT_OF_S3 in given:
        return _ENDPOINT_OF_S3
    return given[-1] if given else ""


def _which_server(scheme: str) -> str:
    """The end of a hint that says how to name another server."""
    if scheme != "s3":
        return ""
    name = endpoint_variable(scheme)
    return f"; check {name}" if name else "; for a server other than AWS, set AWS_ENDPOINT_URL"


def _network_fault(message: str) -> tuple[type[NetworkError], str]:
    for sign, reason in (
        ("dns error", "the name of the server is unknown"),
        ("Connection refused", "the server refuses connections"),
        ("TimedOut", "the server was silent for too long"),
        ("timed out", "the server was silent for too long"),
        ("Connection reset", "the connection was reset"),
        ("IncompleteMessage", "the server closed the connection without an answer"),
    ):
        if sign in message:
            return NetworkError, reason
    if _CUT_ANSWER.search(message):
        return IncompleteAnswerError, "the answer was cut short"
    return NetworkError, "the request failed"
