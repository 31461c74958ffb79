"""The parts of a transfer, each alone: patience, what an answer means, and what a session sends to whom."""

from __future__ import annotations

import email.utils
import random
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from fault_server import PASSWORD, Faults, FaultServer, fault_server

from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.access import find_login_form
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import Remote, content_range, inspect, retry_after
from imagenet_prep.fetch.session import Session

CONTENT = random.Random(1).randbytes(100_000)


# patience ------------------------------------------------------------------------------------------------------


@pytest.fixture
def waits() -> list[float]:
    """The waits asked for."""
    return []


def _patience(waits: list[float], **pace: float) -> Patience:
    settings: dict[str, Any] = {"tries": 10, "first_wait": 1, "longest_wait": 20, "longest_retry_after": 300, **pace}
    return Patience("a.tar", Pace(**settings), waits.append)


def test_waits_double_up_to_a_bound(waits: list[float]) -> None:
    """The first retry comes at once; then the wait doubles from failure to failure, to the longest one, with jitter."""
    patience = _patience(waits)
    for _ in range(7):
        patience.wait(CutError("cut"))
    for wait, least in zip(waits, [0, 1, 2, 4, 8, 16, 20], strict=True):
        assert least <= wait <= min(20, least + 0.5)


def test_what_the_server_asks_for_is_heeded_up_to_a_bound(waits: list[float]) -> None:
    """Retry-After counts where it is longer than the wait, and to its own bound."""
    patience = _patience(waits)
    for asked in (100, 1000, 0.001):
        patience.wait(CutError("busy", asked))
    assert waits[:2] == [100, 300]
    assert 2 <= waits[2] <= 2.5


def test_progress_refills_the_budget(waits: list[float]) -> None:
    """Failures in a row end it; one byte of progress between them begins the count and the waits again."""
    patience = _patience(waits, tries=3)
    for mark in (0, 0, 1, 1, 2, 2):
        patience.wait(CutError("cut"), mark)
    with pytest.raises(NetworkError, match="gave up after 3 attempts"):
        patience.wait(CutError("cut"), 2)
    assert len(waits) == 6
    assert waits[::2] == [0, 0, 0]


def test_time_without_progress_is_bounded(waits: list[float]) -> None:
    """However many tries are left, and however long the server asks for."""
    patience = _patience(waits, budget=500)
    patience.wait(CutError("busy", 300))
    patience._since -= 300
    with pytest.raises(NetworkError, match="gave up after 2 attempts"):
        patience.wait(CutError("busy", 300))
    assert waits == [300]


# answers -------------------------------------------------------------------------------------------------------


def _answer(**headers: str) -> requests.Response:
    response = requests.Response()
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return response


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("bytes 0-0/1", (0, 1, 1)),
        ("bytes 5-9/10", (5, 10, 10)),
        ("bytes 5-10/10", None),
        ("bytes 5-4/10", None),
        ("bytes 0-9/*", None),
        ("bytes 0-9/10, 0-9/10", None),
        ("bytes 0-9/100000000000000000000", None),
        ("bytes \u0660-\u0669/10", None),
        ("", None),
    ],
)
def test_a_content_range_makes_sense_or_counts_for_nothing(value: str, found: tuple[int, int, int] | None) -> None:
    """The last byte is part of the range, and lies within the file; anything behind it makes it another header."""
    assert content_range(_answer(Content_Range=value)) == found


def test_a_date_that_is_over_asks_for_no_wait() -> None:
    """A Retry-After in the past is no wait; one in the future is one."""
    assert retry_after(email.utils.formatdate(time.time() - 1000, usegmt=True)) == 0
    assert 900 < retry_after(email.utils.formatdate(time.time() + 1000, usegmt=True)) <= 1000


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({}, True),
        ({"total": 11}, False),
        ({"url": "http://b/"}, False),
        ({"etag": '"2"'}, False),
        ({"etag": None}, True),
        ({"etag": None, "last_modified": "Tue"}, False),
        ({"last_modified": "Tue"}, True),
        ({"etag": None, "last_modified": None}, False),
        ({"etag": 'W/"1"'}, True),
        ({"etag": 'W/"1"', "last_modified": None}, False),
    ],
    ids=str,
)
def test_parts_of_one_version_fit_together(change: dict[str, Any], is_same: bool) -> None:
    """Address and length must be the same; then strong ETags decide, if both have one, else dates, which both have."""
    fields: dict[str, Any] = {"url": "http://a/", "total": 10, "etag": '"1"', "last_modified": "Mon"}
    one, other = Remote(**fields), Remote(**{**fields, **change})
    for has_digest in (False, True):
        assert (one.obstacle(other, has_digest=has_digest) == "") is is_same
        assert (other.obstacle(one, has_digest=has_digest) == "") is is_same


def test_without_validators_a_digest_decides() -> None:
    """Nothing tells two versions apart, but an address or a length."""
    one = Remote("http://a/", 10, 'W/"1"', None)
    assert one.obstacle(one, has_digest=True) == ""
    assert "neither ETag nor date" in one.obstacle(one, has_digest=False)
    assert one.obstacle(Remote("http://b/", 10, None, None), has_digest=True)


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("<form action=/a><input name=q></form><form><input name=u><input name=p type=password></form>", "up"),
        ("<form><input name=u><input name=t><input name=p type=password></form><input name=x type=hidden>", "upt"),
    ],
    ids=["a search first", "two fields before, one outside"],
)
def test_a_form_gets_its_own_fields(page: str, fields: str) -> None:
    """The form with a password; the name goes into the first text field before it; what is outside is not sent."""
    form = find_login_form(page.encode(), "http://a.org/")
    assert form is not None
    filled = form.filled("NAME", "WORD")
    assert "".join(sorted(filled)) == "".join(sorted(fields))
    assert filled["p"] == "WORD"
    assert filled.get("u", "NAME") == "NAME"
    assert filled.get("t", "") == ""


# sessions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """An open server of one file, a.tar."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar").write_bytes(CONTENT)
    with fault_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def elsewhere(tmp_path: Path, server: FaultServer) -> Any:
    """Another server, on another port, with the same file."""
    with fault_server(tmp_path / "served") as other:
        yield other


@pytest.mark.parametrize("span", ["bytes 0-1022/100000", "bytes 1-1024/100000"])
def test_a_probe_that_is_answered_otherwise_tells_no_length(server: FaultServer, span: str) -> None:
    """A first part that ends or begins elsewhere than asked is not believed: the file is asked for as a whole."""
    server.faults = Faults(content_range=span)
    remote = inspect(Session(server.url, 1), server.url + "a.tar", Pace())
    assert (remote.total, remote.ranges) == (len(CONTENT), False)
    assert [seen.headers.get("Range") for seen in server.seen] == ["bytes=0-1023", None]


@pytest.mark.parametrize("size", [1, 1024])
def test_a_probe_of_a_small_file_ends_with_it(server: FaultServer, tmp_path: Path, size: int) -> None:
    """A file of fewer bytes than the probe asks for is known by that one request."""
    (tmp_path / "served" / "a.tar").write_bytes(bytes(size))
    remote = inspect(Session(server.url, 1), server.url + "a.tar", Pace())
    assert (remote.total, remote.ranges) == (size, True)
    assert len(server.seen) == 1


def test_a_form_is_not_sent_on(server: FaultServer, elsewhere: FaultServer) -> None:
    """A server that wants the filled-in form sent to another address is refused, and that address gets nothing."""
    server.faults = Faults(statuses=[(307, {"Location": elsewhere.url})])
    with pytest.raises(NetworkError) as caught:
        Session(server.url, 1).post(server.url + "login", {"user": "a", "pass": PASSWORD})
    assert "sign-in form to another address" in caught.value.detail
    assert elsewhere.seen == []


def test_behind_a_form_only_pages_are_asked_for(server: FaultServer, elsewhere: FaultServer) -> None:
    """Other redirects of a form are followed with GET, and no field of it goes along."""
    server.faults = Faults(statuses=[(302, {"Location": elsewhere.url + "a.tar"})])
    with Session(server.url, 1).post(server.url + "login", {"user": "a", "pass": PASSWORD}) as response:
        assert response.status_code == 200
    assert [(seen.method, seen.path, seen.body) for seen in elsewhere.seen] == [("GET", "/a.tar", b"")]
    assert "Content-Length" not in elsewhere.seen[0].headers
