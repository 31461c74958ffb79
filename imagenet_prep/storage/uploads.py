"""Uploads that were begun and never finished: found and aborted, so that nobody pays for what can't be seen.

S3 keeps the parts of an upload until it is told to forget them. obstore can neither list nor abort uploads, but it
signs URLs with whatever credentials it has found: the request is written into the endpoint of a client of its own, and
the signature covers it. Of gs:// and az:// nothing is aborted: docs/object-stores.md says what becomes of parts there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from imagenet_prep.errors import NetworkError
from imagenet_prep.storage import objects
from imagenet_prep.storage.object_path import ObjectPath

_SECONDS = 30


class Upload(NamedTuple):
    """An upload that was begun: of which object, and its id."""

    key: str
    id: str


def abort_uploads(folder: ObjectPath, is_meant: Callable[[str], bool]) -> int:
    """Abort every upload to an object in a folder whose name ``is_meant``; how many there were."""
    base = f"{folder.key}/" if folder.key else ""
    count = 0
    for each in list(find_uploads(folder)):
        name = each.key.removeprefix(base)
        if each.key.startswith(base) and "/" not in name and is_meant(name):
            _abort(folder, each)
            count += 1
    return count


def find_uploads(path: ObjectPath) -> Iterator[Upload]:
    """Those to objects whose name begins with the key of ``path``; none where the store is not S3."""
    if path.scheme != "s3":
        return
    from xml.etree import ElementTree

    marks = ""
    while True:
        page = ElementTree.fromstring(  # noqa: S314 - of the store that holds the data
            _ask(path, "GET", "", f"uploads=&prefix={quote(path.key, safe='')}{marks}")
        )
        space = page.tag.partition("}")[0] + "}" if page.tag.startswith("{") else ""
        for each in page.iter(f"{space}Upload"):
            yield Upload(each.findtext(f"{space}Key") or "", each.findtext(f"{space}UploadId") or "")
        if page.findtext(f"{space}IsTruncated") != "true":
            return
        key, upload = (page.findtext(f"{space}Next{name}Marker") or "" for name in ("Key", "UploadId"))
        marks = f"&key-marker={quote(key, safe='')}&upload-id-marker={quote(upload, safe='')}"


def _abort(path: ObjectPath, upload: Upload) -> None:
    _ask(path, "DELETE", upload.key, f"uploadId={quote(upload.id, safe='')}")


def _ask(path: ObjectPath, method: str, key: str, query: str) -> bytes:
    """Send a request that obstore has signed: what obstore appends to it is a parameter that stores pass over."""
    import urllib.error  # the two bring a hundred modules, and every command of local folders knows this module
    import urllib.request

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    server = (
        os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or f"https://s3.{region}.amazonaws.com"
    )
    place = f"{server.rstrip('/')}/{path.bucket}" + (f"/{quote(key)}" if key else "")
    options = {"endpoint": f"{place}?{query}&x-of=", "virtual_hosted_style_request": True}
    request = urllib.request.Request(objects.sign(path, method, options), method=method)  # noqa: S310 - see server
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return b"<none/>"
        raise NetworkError(f"uploads to {path} can't be listed or aborted", f"status {error.code}") from None
    except OSError:  # what it says holds the signed address
        raise NetworkError(f"uploads to {path} can't be listed or aborted", "the connection failed") from None
