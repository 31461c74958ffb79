"""Targets that parse what imagenet-prep keeps of a set, what a server sends, and names."""

from __future__ import annotations

import functools
import io
import json
import os
from contextlib import suppress
from typing import Any

import mutations
import urllib3
from requests.adapters import HTTPAdapter
from target import HOME, SHARD, Here, file_of, target

from imagenet_prep.checks.inventory import take_inventory
from imagenet_prep.checks.set_checks import check_names, check_sizes
from imagenet_prep.checks.shard_check import ShardCheck
from imagenet_prep.checks.verdict import load_verdict
from imagenet_prep.errors import AccessError, InputError, NetworkError, PrepError, UsageError
from imagenet_prep.fetch import (
    access,
    addresses,
    answer_checks,
    credentials,
    login_form,
    partial,
    reply,
    session,
)
from imagenet_prep.fetch.patience import CutError, Pace
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.ilsvrc2012.settings import options_from
from imagenet_prep.registry import known_set
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.download import foresee
from imagenet_prep.stages.status import status
from imagenet_prep.state.indexes import read_index, read_written
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.state.set_state import SetState
from imagenet_prep.storage.layout import Layout, parse_shard_name

_URL = "https://image-net.org/data/ILSVRC/2012/ILSVRC2012_img_val.tar"
_REMOTE = Remote(_URL, 6_744_924_160, '"6a1c"', "Thu, 14 Jun 2012 00:00:00 GMT")

# what imagenet-prep keeps of a set ----------------------------------------------------------------


@target()
def shard_index(data: bytes) -> None:
    """The two files beside a shard, divided by a blank line:
    read, and compared with their shard.
    """
    layout = HOME.copy("shard_index")
    index, _, listing = data.partition(b"\n\n")
    paths = layout.index_paths(SHARD)
    paths[0].write_bytes(index)
    paths[1].write_bytes(listing)
    read_written(layout, HOME.infos[SHARD])
    if read_index(layout, SHARD, HOME.infos[SHARD].records) is not None:
        ShardCheck(layout, ImageNetExaminer(), HOME.infos)(SHARD)


@target(limit=8192, mutate=mutations.json_value)
def manifest_json(data: bytes) -> None:
    """manifest.json of a set, and all that it decides."""
    layout = HOME.copy("manifest_json")
    layout.manifest_path.write_bytes(data)
    try:
        manifest = load_manifest(layout.manifest_path)
    except InputError:
        return
    if manifest is not None and manifest.dataset.kind == "ILSVRC2012":
        with suppress(InputError):
            options_from(manifest)
    _take_inventory(layout)
    with suppress(PrepError):
        status(layout)


def _take_inventory(layout: Layout) -> None:
    with suppress(InputError):
        state = SetState.read(layout)
        dataset = known_set(state.records, state.manifest if state.covers_plan else None)
        inventory = take_inventory(state, dataset)
        check_names(inventory)
        check_sizes(inventory, layout)


@target(limit=8192, mutate=mutations.json_line)
def journal_lines(data: bytes) -> None:
    """journal.jsonl of a set that has no manifest yet."""
    layout = HOME.copy("journal_lines")
    layout.manifest_path.unlink(missing_ok=True)
    layout.journal_path.write_bytes(data)
    journal = Journal(layout.journal_path)
    assert all(journal.get(name) is not None for name in journal.names())
    if journal.names():
        _take_inventory(layout)
        with suppress(PrepError):
            status(layout)


@target(limit=8192, mutate=mutations.json_value)
def verdict_json(data: bytes) -> None:
    """What the last verify found, as status and report read it."""
    layout = HOME.copy("verdict_json")
    layout.verdict_path.write_bytes(data)
    kept = load_verdict(layout)
    if kept is not None:
        json.dumps(kept.verdict.as_dict())
        with suppress(PrepError):
            status(layout)


@target(mutate=mutations.json_line)
def plan_json(data: bytes) -> None:
    """What a set was begun with, that has no manifest yet."""
    layout = HOME.copy("plan_json")
    layout.manifest_path.unlink(missing_ok=True)
    layout.plan_path.write_bytes(data)
    if load_plan(layout) is not None:
        _take_inventory(layout)
        with suppress(PrepError):
            status(layout)


@target(mutate=mutations.json_value)
def checked_json(data: bytes) -> None:
    """Which archives were compared with their digests."""
    layout = HOME.copy("checked_json")
    layout.checked_path.write_bytes(data)
    with suppress(InputError):
        foresee(layout, only=("validation",))


@target(mutate=mutations.json_value)
def annotate_json(data: bytes) -> None:
    """What annotate made, and from what: the boxes come out the same, whatever it says."""
    layout = HOME.copy("annotate_json")
    layout.annotate_path.write_bytes(data)
    annotate(layout, Here())
    assert layout.boxes_csv.read_bytes() == HOME.layout.boxes_csv.read_bytes()


# what a server sends ------------------------------------------------------------------------------


class _Answers(HTTPAdapter):
    """What a session sends its requests by: two of them are answered by the same bytes,
    others by 404.
    """

    _answers: tuple[bytes, ...] = ()

    def prepare(self, data: bytes) -> None:
        """Answer so from now on: a redirect may come again, without going round ten times."""
        self._answers = (data, data)

    def get_connection_with_tls_context(
        self, *_: object, **__: object
    ) -> urllib3.HTTPConnectionPool:
        """Connections of urllib3's own, to what answers so."""
        pool = urllib3.HTTPConnectionPool("image-net.org")
        data, self._answers = (self._answers or (b"404\n\n",))[0], self._answers[1:]
        pool.ConnectionCls = functools.partial(_Connection, data)  # type: ignore[assignment]
        return pool


class _Connection(urllib3.connection.HTTPConnection):
    """One that an answer has come over, and nothing goes out of."""

    def __init__(self, data: bytes, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._data = data

    def _new_conn(self) -> Any:
        return _Socket(self._data)


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _: str) -> io.BytesIO:
        """What came in."""
        return io.BytesIO(b"HTTP/1.1 " + self._data)

    def sendall(self, _: bytes) -> None:
        """Send nothing."""

    def settimeout(self, _: float) -> None:
        """Nothing takes time here."""

    def close(self) -> None:
        """Nothing to close."""


@functools.cache
def _session() -> tuple[session.Session, _Answers]:
    made, answers = session.Session(_URL, 1), _Answers(max_retries=0)
    for each in (made._at_home, made._abroad):
        each.trust_env = False  # looking for proxies takes half the time
        each.mount("https://", answers)
    return made, answers


@target(
    limit=8192,
    words="Content-Range: Content-Length: Content-Type: Retry-After: ETag: "
    "bytes text/html 206 416 503 <html Location: "
    "302 Transfer-Encoding: chunked Set-Cookie: Path=/ Domain=image-net.org",
)
def http_reply(data: bytes) -> None:
    """The answer to a request for a file, without its HTTP version:
    status, headers, a blank line, the body.
    """
    asking, answers = _session()
    asking._at_home.cookies.clear()
    answers.prepare(data)
    with suppress(AccessError, CutError, NetworkError):
        remote = reply.inspect(asking, _URL, Pace(tries=1))
        assert remote.total >= 0
        answers.prepare(data)
        with asking.get(_URL) as response:
            answer_checks.check_status(response, _URL)
            found = reply.content_range(response)
            assert found is None or 0 <= found[0] < found[1] <= found[2]
            body = reply.Body(response)
            head = body.peek(reply.PROBE)
            assert body.read(reply.PROBE) == head
            while body.read(1000):
                assert len(head) == reply.PROBE


@target(limit=1024, words="http:// https:// ftp:// // ? # @ [::1] : %2f .. image-net.org")
def redirect(data: bytes) -> None:
    """Where a redirect leads: never from https to http."""
    for first in (_URL + "?key=secret", "http://127.0.0.1:8000/a?b=c"):
        with suppress(NetworkError):
            where = addresses.redirect_target(first, first, data.decode("latin-1"))
            assert addresses.origin(where)[0] == "https" or first.startswith("http:")
            addresses.host_of(where)
            addresses.bare_url(where)


@target(mutate=mutations.json_value)
def partial_state(data: bytes) -> None:
    """The state beside a part of a download: never more than is there."""
    path = file_of(bytes(1000), "input.part")
    partial.state_path(path).write_bytes(data)
    assert 0 <= partial.kept_bytes(path, _REMOTE) <= 1000


@target(
    limit=16_384,
    words=(
        "<form <input <button type=password name= action= method=post hidden checked <!-- "
        "<![CDATA[ <script> &#x"
    ),
)
def sign_in_page(data: bytes) -> None:
    """A page that may hold a form to sign in: an answer for anything."""
    form = login_form.find_login_form(data, _URL)
    if form is not None:
        assert (
            form.filled("user", "password")[form.password] == "password"
            or form.username == form.password
        )


@target(limit=16_384, words="# Netscape HTTP Cookie File TRUE FALSE / image-net.org")
def cookies_file(data: bytes) -> None:
    """A cookies.txt."""
    with suppress(UsageError):
        access._load_cookies(file_of(data))


@target(words="machine default login password account macdef")
def netrc_file(data: bytes) -> None:
    """A netrc: what can't be read holds no credentials."""
    os.environ["NETRC"] = str(file_of(data, "netrc"))
    credentials.find_credentials("https://image-net.org/", prompt=None)


# names --------------------------------------------------------------------------------------------


@target(limit=256, words="train- validation- -of- 00000 ILSVRC2012_val_ .JPEG n01440764_")
def names(data: bytes) -> None:
    """Names of shards and images."""
    name = data.decode("utf-8", "surrogateescape")
    parsed = parse_shard_name(name)
    assert parsed is None or name == f"{parsed[0]}-{parsed[1]:05d}-of-{parsed[2]:05d}"
    number = facts.validation_number(name)
    assert number is None or 1 <= number <= 50_000
    wnid = facts.train_wnid(name)
    assert wnid is None or facts.is_wnid(wnid)
