"""Who is let in: what a server asks for, forms that are for signing in, sessions that end midway, proxies."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_server import (
    CANARY,
    COOKIE,
    FORM,
    PASSWORD,
    PROBE,
    USERNAME,
    FaultHandler,
    Faults,
    FaultServer,
    Seen,
    fault_server,
)

from imagenet_prep.errors import AccessError, NetworkError
from imagenet_prep.fetch.access import Credentials, find_login_form, open_session
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import check_status, inspect
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


def _told(error: AccessError | NetworkError, *words: str) -> None:
    for word in words:
        assert word in str(error)
    assert CANARY not in str(error) + repr(error)
    assert len(str(error).splitlines()) == 3


def test_only_a_server_that_answered_once_is_waited_for(tmp_path: Path) -> None:
    """An address that refuses all connections may be wrong: a few attempts show that before anything is decided."""
    (tmp_path / "a.tar").write_bytes(CONTENT)
    pace = replace(PACE, tries=6)
    with fault_server(tmp_path) as server:
        session, url = open_session(server.url, None, None, probe="a.tar", pace=pace), server.url
    session._at_home.close()  # its connection outlives the server
    with pytest.raises(NetworkError, match="gave up after 6 attempts"):
        inspect(session, f"{url}a.tar", pace)
    waits: list[str] = []
    with pytest.raises(NetworkError, match=r"no connection to 127\.0\.0\.1"):
        open_session(url, None, None, probe="a.tar", pace=pace, note=waits.append)
    assert len(waits) == 2


# what a server asks for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, 'Digest realm="Basic", nonce="Basic x"'])
def test_a_server_that_asks_for_no_basic_gets_none(server: FaultServer, header: str | None) -> None:
    """A bare 401, or one that asks for something else, is an answer to which no password goes."""
    headers = {"WWW-Authenticate": header} if header else {}
    server.faults = Faults(statuses=[(401, headers)] * 9)
    with pytest.raises(AccessError) as caught:
        _enter(server)
    _told(caught.value, "401", "--cookies")
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
    _told(caught.value, "sign-in form", "--cookies")
    assert [seen.method for seen in server.seen] == ["GET"]


@pytest.mark.parametrize("kind", ["two passwords", "button"])
def test_the_form_for_signing_in_is_chosen(server: FaultServer, kind: str) -> None:
    """Among several forms it is the one that looks like it, wherever it stands."""
    server.faults = Faults(login="page", form=NOT_FOR_SIGNING_IN[kind] + FORM)
    _enter(server)
    assert server.seen[-1].headers["Cookie"] == f"session={COOKIE}"


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


@pytest.mark.parametrize(("way", "connections"), [("page", 1), ("redirect", 4), ("forbidden", 4)])
def test_a_session_that_ends_midway(server: FaultServer, tmp_path: Path, way: str, connections: int) -> None:
    """Whoever notices first signs in again, all others wait for that; the file comes whole."""
    server.faults = Faults(login=way, cut=100_000)
    session = _enter(server)
    _let_sessions_end(server, 2)
    part = tmp_path / "a.tar.part"
    fetch(session, server.url + "a.tar", part, Manner(connections=connections, pace=PACE))
    assert part.read_bytes() == CONTENT
    assert len(_posts(server)) == 2


def _ask_at_once(server: FaultServer, session: Session) -> tuple[list[bytes], list[AccessError]]:
    """What four requests at the same moment bring."""
    barrier = threading.Barrier(4)
    bodies: list[bytes] = []
    errors: list[AccessError] = []

    def ask() -> None:
        barrier.wait(10)
        try:
            with session.get(server.url + "a.tar", {"Range": "bytes=5-9"}) as response:
                check_status(response, server.url + "a.tar")
                bodies.append(response.content)
        except AccessError as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return bodies, errors


def test_a_password_that_no_longer_counts_is_sent_once(server: FaultServer) -> None:
    """Four connections that are refused do not try the same password four times."""
    server.faults = Faults(login="forbidden")
    session = _enter(server)
    _let_sessions_end(server, 0, times=100)
    bodies, errors = _ask_at_once(server, session)
    assert (bodies, len(errors)) == ([], 4)
    assert len(_posts(server)) == 2
    for error in errors:
        _told(error, "IMAGENET_ACCESS_KEY")


def test_signing_in_again_that_does_not_help(server: FaultServer, tmp_path: Path) -> None:
    """Where the server lets us in and still sends no file, its answer is the error after three attempts."""
    server.faults = Faults(login="page")
    session = _enter(server)
    server.faults = Faults(statuses=[(403, {})] * 4)
    with pytest.raises(AccessError) as caught:
        fetch(session, server.url + "a.tar", tmp_path / "part", Manner(pace=PACE))
    _told(caught.value, "a.tar", "403", "IMAGENET_ACCESS_KEY")
    assert len(server.faults.statuses) == 1  # it may have meant a moment


def test_a_session_may_end_often(server: FaultServer, tmp_path: Path) -> None:
    """A download of days signs in again each time, as long as something was fetched in between."""
    server.faults = Faults(login="page", cut=100_000)
    session = _enter(server)
    _let_sessions_end(server, 2, times=2)
    part = tmp_path / "part"
    fetch(session, server.url + "a.tar", part, Manner(connections=1, pace=PACE))
    assert part.read_bytes() == CONTENT
    assert len(_posts(server)) == 3


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
    _told(caught.value, "denied access to a.tar, signed in as 'ada'", "403", "--cookies")
    assert "refused the credentials" not in str(caught.value)
