"""Who is let in, what an answer means, and what a session sends to whom: forms, sessions that end midway, patience."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from fault_server import (
    PASSWORD,
    PROBE,
    USERNAME,
    FaultHandler,
    Faults,
    FaultServer,
    Seen,
    assert_told,
    fault_server,
)

from imagenet_prep.errors import AccessError, NetworkError
from imagenet_prep.fetch.access import Credentials, find_login_form, open_session
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import content_range, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch

CONTENT = random.Random(1).randbytes(600_000)
PACE = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.05, segment=100_000)
ADA = Credentials(USERNAME, PASSWORD)


class _Ending(FaultHandler):
    """Its sessions may end."""

    server: Any

    def _is_signed_in(self) -> bool:
        with self.server.lock:
            if self.server.left <= 0 or self.path == "/login" or not super()._is_signed_in():
                return False
            self.server.left -= self.headers.get("Range") != PROBE
            return True

    def do_POST(self) -> None:  # noqa: N802 -- http.server looks for this name
        """Begin another session."""
        with self.server.lock:
            self.server.left = self.server.parts if self.server.times > 0 else 1 << 30
            self.server.times -= 1
        super().do_POST()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    """An open server of one file, a.tar."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar").write_bytes(CONTENT)
    with fault_server(tmp_path / "served") as server:
        server.RequestHandlerClass = _Ending  # from the first connection on: one that is kept keeps its handler
        _let_sessions_end(server, 1 << 30)
        yield server


def _enter(server: FaultServer, credentials: Credentials | None = ADA) -> Session:
    return open_session(server.url, credentials, None, probe="a.tar", pace=PACE)


# what a server asks for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, 'Digest realm="Basic", nonce="Basic x"'])
def test_a_server_that_asks_for_no_basic_gets_none(server: FaultServer, header: str | None) -> None:
    """A bare 401, or one that asks for something else, is an answer to which no password goes."""
    headers = {"WWW-Authenticate": header} if header else {}
    server.faults = Faults(statuses=[(401, headers)] * 9)
    with pytest.raises(AccessError) as caught:
        _enter(server)
    assert_told(caught.value, 6, "401", "--cookies")
    assert len(server.seen) == 1
    assert "Authorization" not in server.seen[0].headers


def test_a_challenge_from_elsewhere_opens_nothing(server: FaultServer, tmp_path: Path) -> None:
    """Where a redirect leads to a server that asks for a password, the home server has not asked for it."""
    with fault_server(tmp_path / "served", is_open=False) as elsewhere:
        server.faults = Faults(redirect=elsewhere.url + "{path}")
        with pytest.raises(AccessError):
            _enter(server)
        assert not any("Authorization" in seen.headers for seen in server.seen + elsewhere.seen)


# forms ---------------------------------------------------------------------------------------------------------------

LOGIN = '<form action="/login" method=post><input name=user><input type=password name=pass><button>Sign in</button>'
REGISTER = "<form action=/a method=post><input name=user><input type=password name=p1>{}</form>"
NOT_FOR_SIGNING_IN = {
    "two passwords": REGISTER.format("<input type=password name=p2>"),
    "button": REGISTER.format("<button>Create an account</button>"),
    "button in pieces": REGISTER.format("<button><b>Sign</b> <i>up</i></button>"),
    "new password": REGISTER.format("").replace("type=password", "type=password autocomplete=new-password"),
    "action": REGISTER.format("").replace("/a", "/users/sign_up"),
    "reset": REGISTER.format("").replace("/a", "/password/reset"),
    "a name behind the password": "<form method=post><input type=password name=p><input name=user></form>",
    "no user": "<form method=post><input type=password name=p><button>Sign in</button></form>",
}


@pytest.mark.parametrize("kind", NOT_FOR_SIGNING_IN)
def test_a_form_that_is_not_for_signing_in_gets_nothing(server: FaultServer, kind: str) -> None:
    """One that registers, or changes a password, is not filled in; what to do instead is said."""
    form = NOT_FOR_SIGNING_IN[kind]
    assert find_login_form(form.encode(), "https://a.org/") is None
    server.faults = Faults(login="page", form=f"<html>{form}")
    with pytest.raises(AccessError) as caught:
        _enter(server)
    assert_told(caught.value, 6, "sign-in form", "--cookies")
    assert [seen.method for seen in server.seen] == ["GET"]


def test_the_form_that_says_so_is_chosen() -> None:
    """Of two that could be, the one with the word for it; of two with the word, neither."""
    quiet = b"<form action=/x method=post><input name=a><input type=password name=b></form>"
    login = LOGIN.encode() + b"</form>"
    for page in (quiet + login, login + quiet):
        form = find_login_form(page, "https://a.org/")
        assert form is not None
        assert form.action == "https://a.org/login"
    assert find_login_form(login + login.replace(b"/login", b"/signin"), "https://a.org/") is None
    assert find_login_form(quiet + quiet.replace(b"/x", b"/y"), "https://a.org/") is None
    assert find_login_form(quiet, "https://a.org/") is not None


# sessions that end midway -------------------------------------------------------------------------------------------


def _let_sessions_end(server: Any, parts: int, times: int = 1) -> None:
    """Let the session that is open, and the next ones, ``times`` in all, end after so many parts each."""
    server.left, server.parts, server.times = parts, parts, times - 1


def _posts(server: FaultServer) -> list[Seen]:
    return [seen for seen in server.seen if seen.method == "POST"]


@pytest.mark.parametrize(("way", "connections", "times"), [("page", 1, 2), ("redirect", 4, 1), ("forbidden", 4, 1)])
def test_a_session_that_ends_midway(
    server: FaultServer, tmp_path: Path, way: str, connections: int, times: int
) -> None:
    """Whoever notices first signs in again, all others wait for that; the file comes whole, however often it ends."""
    server.faults = Faults(login=way, cut=100_000)
    session = _enter(server)
    _let_sessions_end(server, 2, times)
    part = tmp_path / "a.tar.part"
    fetch(session, server.url + "a.tar", part, Manner(connections=connections, pace=PACE))
    assert part.read_bytes() == CONTENT
    assert len(_posts(server)) == 1 + times


def test_signing_in_again_that_does_not_help(server: FaultServer, tmp_path: Path) -> None:
    """Where the server lets us in and still sends no file, its answer is the error after three attempts."""
    server.faults = Faults(login="page")
    session = _enter(server)
    server.faults = Faults(statuses=[(403, {})] * 4)
    with pytest.raises(AccessError) as caught:
        fetch(session, server.url + "a.tar", tmp_path / "part", Manner(pace=PACE))
    assert_told(caught.value, 6, "a.tar", "403", "IMAGENET_ACCESS_KEY")
    assert len(server.faults.statuses) == 1  # it may have meant a moment


class _WantsReferer(FaultHandler):
    """Knows who asks, and gives the file to browsers alone."""

    def answer(self) -> None:
        """403 without a Referer."""
        if self.is_welcome():
            self.send_nothing(403)
        else:
            super().answer()


def test_a_site_for_browsers_does_not_blame_the_credentials(tmp_path: Path) -> None:
    """403 to the right credentials is no word about them: the status is told, and that a browser's cookies may help."""
    (tmp_path / "served").mkdir()
    with fault_server(tmp_path / "served", is_open=False) as server:
        server.RequestHandlerClass = _WantsReferer
        with pytest.raises(AccessError) as caught:
            _enter(server)
    assert_told(caught.value, 6, "denied access to a.tar, signed in as 'ada'", "403", "--cookies")
    assert "refused the credentials" not in str(caught.value)


# patience ------------------------------------------------------------------------------------------------------


@pytest.fixture
def waits() -> list[float]:
    """The waits asked for."""
    return []


def _patience(waits: list[float], **pace: float) -> Patience:
    settings: dict[str, Any] = {"tries": 10, "first_wait": 1, "longest_wait": 20, "longest_retry_after": 300, **pace}
    return Patience("a.tar", Pace(**settings), waits.append)


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


# sessions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path, server: FaultServer) -> Any:
    """Another server, on another port, with the same file."""
    with fault_server(tmp_path / "served") as other:
        yield other


@pytest.mark.parametrize("span", ["bytes 0-1022/600000", "bytes 1-1024/600000"])
def test_a_probe_that_is_answered_otherwise_tells_no_length(server: FaultServer, span: str) -> None:
    """A first part that ends or begins elsewhere than asked is not believed: the file is asked for as a whole."""
    server.faults = Faults(content_range=span)
    remote = inspect(Session(server.url, 1), server.url + "a.tar", Pace())
    assert (remote.total, remote.ranges) == (len(CONTENT), False)
    assert [seen.headers.get("Range") for seen in server.seen] == ["bytes=0-1023", None]


def test_a_form_is_not_sent_on(server: FaultServer, elsewhere: FaultServer) -> None:
    """A server that wants the filled-in form sent to another address is refused, and that address gets nothing."""
    server.faults = Faults(statuses=[(307, {"Location": elsewhere.url})])
    with pytest.raises(NetworkError) as caught:
        Session(server.url, 1).post(server.url + "login", {"user": "a", "pass": PASSWORD})
    assert "sign-in form to another address" in caught.value.detail
    assert elsewhere.seen == []
