"""Every fault that a server, a proxy or a cable can commit during a transfer, injected for real."""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import shlex
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from fault_server import (
    CANARY,
    COOKIE,
    PASSWORD,
    PROBE,
    USERNAME,
    FaultHandler,
    Faults,
    FaultServer,
    assert_no_secret,
    assert_told,
    fault_server,
)
from made_tars import save
from progress import Bars
from running import command_here

from imagenet_prep.errors import AccessError, NetworkError, UsageError
from imagenet_prep.fetch.access import open_session
from imagenet_prep.fetch.addresses import file_url, redirect_target
from imagenet_prep.fetch.credentials import Credentials, find_credentials
from imagenet_prep.fetch.login_form import find_login_form
from imagenet_prep.fetch.partial import PartialFile, kept_bytes, state_path
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import content_range, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.site_logins import find_login
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.model import Silent

SIZE = 3_000_000
HALF = SIZE // 2
CONTENT = random.Random(1).randbytes(SIZE)
PACE = Pace(
    tries=4, first_wait=0.001, longest_wait=0.01, stall=0.4, save_every=0.05, segment=200_000
)
PAGE = b"<!DOCTYPE html><html><body>Please sign in.</body></html>"
ADA = Credentials(USERNAME, PASSWORD)


@pytest.fixture
def server(tmp_path):
    """An open server of one file, a.tar."""
    save(tmp_path / "served" / "a.tar", CONTENT)
    with fault_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def part(tmp_path):
    """Where the partial file goes."""
    return tmp_path / "partial" / "a.tar.part"


def run(server, part, *, progress=None, connections=1, pace=PACE, query=""):
    """Fetch a.tar into ``part`` as a new process would."""
    session = Session(server.url, pace.stall)
    url = file_url(server.url + query, "a.tar")
    return fetch(session, url, part, Manner(progress or Silent(), connections, pace)).remote


def leave_half(server, part):
    """Leave behind what a run that was killed half-way leaves;
    no fault is active and no request remembered.
    """
    remote = inspect(Session(server.url, PACE.stall), server.url + "a.tar", PACE)
    with PartialFile(part, remote) as file:
        file.reset()
        file.write(0, CONTENT[:HALF])
        file.save()
    with part.open("r+b") as file:
        file.seek(HALF)
        file.write(b"written, but not said when the process died")
    server.seen.clear()


def snapshot(folder):
    """Every file below a folder and its bytes; there may be none."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in list(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def told(kind, status, *words):
    """Expect an error of this kind that ends a command with this status and says these words,
    and no secret.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert_told(caught.value, status, *words)


# the plain way ------------------------------------------------------------------------------------


def test_state_is_private(server, part):
    """The state file is for its owner alone and holds no query."""
    run(server, part, query=f"?token={CANARY}")
    assert state_path(part).stat().st_mode & 0o777 == 0o600
    assert_no_secret(state_path(part).read_text())
    assert json.loads(state_path(part).read_text())["done"] == [[0, SIZE]]
    assert {seen.path for seen in server.seen} == {f"/a.tar?token={CANARY}"}


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_a_file_has_the_rights_that_the_umask_gives(server, part, umask):
    """In a folder that a group shares, the group may write to an archive if the umask says so."""
    before = os.umask(umask)
    try:
        run(server, part)
    finally:
        os.umask(before)
    assert part.stat().st_mode & 0o777 == 0o666 & ~umask


# trouble that passes ------------------------------------------------------------------------------


def test_retry_after(server, part):
    """A server that is busy is left alone for as long as it asks."""
    leave_half(server, part)
    server.faults = Faults(statuses=[(503, {"Retry-After": "1"})])
    started = time.monotonic()
    run(server, part)
    assert 0.95 <= time.monotonic() - started < 10
    assert part.read_bytes() == CONTENT


# no access ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "half"), [(401, False), (403, True)])
def test_refused(server, part, status, half):
    """A refusal is final: one request, exit 6, where to sign up, what to set;
    the disk stays as it was.
    """
    if half:
        leave_half(server, part)
    before = snapshot(part.parent)
    server.faults = Faults(statuses=[(status, {})] * 100)
    words = ("get one from 127.0.0.1:", "IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY")
    with told(AccessError, 6, "a.tar", *words):
        run(server, part)
    assert len(server.seen) == 1
    assert snapshot(part.parent) == before


@pytest.mark.parametrize(
    ("kind", "page", "half", "late"),
    [
        ("text/html; charset=utf-8", PAGE, False, False),
        ("application/octet-stream", b"\n  " + PAGE, True, True),
        ("text/html", b"Sorry", False, True),
    ],
)
def test_page_in_place_of_the_file(server, part, kind, page, half, late):
    """A web page with status 200 is recognised before anything is kept,
    at the start or after a probe went well.
    """
    if half:
        leave_half(server, part)
    before = {Path(part.name): b"", **snapshot(part.parent)}
    server.faults = Faults(page=(kind, page), when=lambda start: not late or len(server.seen) > 1)
    with told(AccessError, 6, "web page", "a.tar", "--cookies"):
        run(server, part)
    assert {**before, **snapshot(part.parent)} == before


# secrets on the way -------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path):
    """Another server, on another port, with the same file."""
    with fault_server(tmp_path / "served") as server:
        yield server


def secretive_session(server, tmp_path):
    """A session that holds a password and a cookie."""
    jar = tmp_path / "cookies.txt"
    jar.write_text(
        f"# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{COOKIE}\n"
    )
    session = open_session(server.url, None, jar, probe="a.tar", pace=PACE)
    session.authorization = ADA.authorization
    server.seen.clear()
    return session


@pytest.mark.parametrize("status", [302, 308])
def test_redirect_to_another_port(server, elsewhere, part, tmp_path, status):
    """Authorization, cookies and the query stay behind when a redirect leads to another port;
    the bytes come.
    """
    session = secretive_session(server, tmp_path)
    server.faults = Faults(
        redirect=f"{elsewhere.url}{{path}}?key={CANARY}&part=1", redirect_status=status
    )
    fetch(session, f"{server.url}a.tar?key={CANARY}", part, Manner(pace=PACE))
    assert part.read_bytes() == CONTENT
    assert {"Authorization", "Cookie"} <= set(server.seen[0].headers)
    for seen in elsewhere.seen:
        assert not {"Authorization", "Cookie"} & set(seen.headers)
        assert seen.path == "/a.tar?part=1"


def test_redirect_and_back(server, elsewhere, part, tmp_path):
    """Cookies that another server sets are not taken,
    and those of home are still sent there afterwards.
    """
    session = secretive_session(server, tmp_path)
    server.faults = Faults(redirect=elsewhere.url + "{path}", times=1)
    elsewhere.faults = Faults(
        statuses=[(302, {"Location": server.url + "a.tar", "Set-Cookie": "spy=1; Path=/"})]
    )
    fetch(session, server.url + "a.tar", part, Manner(pace=PACE))
    assert part.read_bytes() == CONTENT
    assert {seen.headers.get("Cookie") for seen in server.seen} == {f"session={COOKIE}"}


@pytest.mark.parametrize(
    "location", ["http://a.org/x", "ftp://a.org/x", "file:///etc/passwd", "//[/", "http://a.org:x/"]
)
def test_redirect_refused(location):
    """From https nothing leads to http or to anything that is no web address."""
    with told(NetworkError, 5, "a redirect from a.org was not followed"):
        redirect_target(f"https://a.org/f?key={CANARY}", f"https://a.org/f?key={CANARY}", location)


def test_redirects_without_end_are_counted(server, elsewhere):
    """The last one that was received is refused: its number and its server are told."""
    server.faults = Faults(redirect=server.url + "{path}", redirect_status=302)
    with told(NetworkError, 5, f"from 127.0.0.1:{server.server_port}", "redirect number 10 in"):
        Session(server.url, 1).get(server.url + "a.tar")
    assert len(server.seen) == 10


def test_redirect_target():
    """What a server adds is kept, what was ours is dropped abroad,
    and credentials in a URL are dropped anywhere.
    """
    first = "https://a.org/f?key=1&b="
    assert redirect_target(first, first, "/g?key=1") == "https://a.org/g?key=1"
    assert (
        redirect_target(first, first, "https://b.org/g?key=1&sig=2%2F3")
        == "https://b.org/g?sig=2%2F3"
    )
    assert redirect_target(first, "https://b.org/x", "y?key=1&b=") == "https://b.org/y"
    assert redirect_target(first, first, "https://me:pw@b.org/g") == "https://b.org/g"
    assert (
        redirect_target(first, first, "https://b.org/g?sig=a+b%20c")
        == "https://b.org/g?sig=a+b%20c"
    )
    assert redirect_target("http://a.org/", "http://a.org/", "https://a.org/") == "https://a.org/"


# access -------------------------------------------------------------------------------------------


def enter(server, credentials=ADA, cookies=None):
    """Open a session and fetch one byte with it."""
    session = open_session(server.url, credentials, cookies, probe="a.tar", pace=PACE)
    return session.get(server.url + "a.tar", {"Range": "bytes=7-7"}).content


@pytest.fixture
def closed(server):
    """The same, which wants Basic credentials."""
    server.is_open = False
    return server


def test_a_password_is_told_only_to_who_asks(closed):
    """A server that asks for Basic credentials gets them, and only after it asked;
    an open one gets none.
    """
    assert enter(closed) == CONTENT[7:8]
    assert ["Authorization" in seen.headers for seen in closed.seen] == [False, True, True]
    closed.seen.clear()
    closed.is_open = True
    assert enter(closed) == CONTENT[7:8]
    assert not any("Authorization" in seen.headers for seen in closed.seen)


@pytest.mark.parametrize("credentials", [None, Credentials(USERNAME, f"{CANARY}-wrong", "typed")])
@pytest.mark.parametrize("way", ["basic", "form"])
def test_credentials_refused(closed, way, credentials):
    """Missing and wrong credentials: exit 6, where to sign up, what to set; and no second try."""
    if way == "form":
        closed.is_open, closed.faults = True, Faults(login="page")
    with told(
        AccessError,
        6,
        "get one from 127.0.0.1:",
        "IMAGENET_USERNAME",
        "IMAGENET_ACCESS_KEY",
        "--cookies",
    ):
        enter(closed, credentials)
    asked = [
        seen for seen in closed.seen if seen.method == "POST" or "Authorization" in seen.headers
    ]
    assert len(asked) == (credentials is not None)


@pytest.mark.parametrize("way", ["redirect", "page", "forbidden"])
def test_login_form(server, way):
    """A sign-in form is filled in, hidden fields and button included, and its cookie is kept."""
    server.faults = Faults(login=way)
    assert enter(server) == CONTENT[7:8]
    assert [seen.method for seen in server.seen].count("POST") == 1
    assert server.seen[-1].headers["Cookie"] == f"session={COOKIE}"
    assert not any(CANARY in seen.path or "Authorization" in seen.headers for seen in server.seen)


@pytest.mark.parametrize("expires", ["0", "4102444800"])
def test_cookies(server, tmp_path, expires):
    """Cookies that a browser exported open the door,
    however it writes those that end with its session.
    """
    server.faults = Faults(login="redirect")
    jar = tmp_path / "cookies.txt"
    jar.write_text(
        "# Netscape HTTP Cookie "
        f"File\n#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t{expires}\tsession\t{COOKIE}\n"
    )
    assert enter(server, None, jar) == CONTENT[7:8]
    assert {seen.headers["Cookie"] for seen in server.seen} == {f"session={COOKIE}"}


@pytest.mark.parametrize("words", [("download", "--only", "boxes"), ("run", "--train-shards", "4")])
def test_the_command_with_cookies(server, tmp_path, monkeypatch, words):
    """The hint keeps the options of the call, and its command sends the cookies."""
    for name in ("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.faults = Faults(login="redirect")
    stage, *options = words
    first = command_here(
        stage, "d", *options, "--base-url", server.url, status=6, cwd=tmp_path
    ).stderr.rstrip()
    _, _, advised = first.partition("export its cookies to cookies.txt, and run: imagenet-prep ")
    assert advised.startswith(f"{stage} d {' '.join(options)} --base-url ")
    cookie = f"127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tsession\t{COOKIE}\n"
    (tmp_path / "cookies.txt").write_text(cookie)
    command_here(*shlex.split(advised), status=5, cwd=tmp_path)  # it has no such file
    assert server.seen[-1].headers["Cookie"] == f"session={COOKIE}"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (None, ["cookies.txt", "expired", "export its cookies again"]),
        (
            "<html>Accept the terms of use in a browser first.</html>",
            ["without a sign-in form", "your account was not sent", "--cookies"],
        ),
    ],
)
def test_no_way_in(server, tmp_path, form, words):
    """Cookies that do not open the door are named as the reason;
    a page without a form is said to be one.
    """
    server.faults = Faults(login="page", form=form) if form else Faults(login="page")
    jar = tmp_path / "cookies.txt"
    jar.write_text(
        f"# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t1\tsession\t{CANARY}\n"
    )
    with told(AccessError, 6, *words):
        enter(server, ADA if form else None, None if form else jar)


class _ShowsTerms(FaultHandler):
    """Sends a page without a form to everybody who signed in."""

    def answer(self) -> None:
        """The page, if the password came; it may be refused in such a page, too."""
        if "Authorization" in self.headers:
            self._send_page("text/html", b"<html>Accept the terms first.</html>")
        else:
            super().answer()


def test_a_page_after_signing_in_does_not_blame_the_credentials(closed):
    """It may ask to accept terms: only the page is a fact."""
    closed.RequestHandlerClass = _ShowsTerms
    with pytest.raises(AccessError) as caught:
        enter(closed)
    assert_told(
        caught.value, 6, "sent a web page or XML in place of a.tar, after the account 'ada'"
    )
    assert_told(
        caught.value, 6, "the page may ask to accept terms, or refuse the password", "--cookies"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_an_account_that_was_not_sent_is_not_refused(server, monkeypatch, status):
    """A refusal that does not say how to sign in is no word about the account."""
    monkeypatch.setenv("IMAGENET_USERNAME", "ada")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", "one")
    server.faults = Faults(statuses=[(status, {})] * 9)
    with told(AccessError, 6, f"HTTP status {status}", "your account was not sent", "--cookies"):
        enter(server)
    assert not any("Authorization" in seen.headers for seen in server.seen)


class _SendsDataAsPage(FaultHandler):
    """Sends data with the type of a page, once."""

    def answer(self) -> None:
        """Data first."""
        if not self.server.seen:
            self._remember(b"")
            self._send_page("text/html", bytes(64))
        else:
            super().answer()


def test_data_with_the_type_of_a_page_is_no_sign_in(server):
    """The account was not sent for it: a refusal right after is no word about the account."""
    server.RequestHandlerClass = _SendsDataAsPage
    server.faults = Faults(statuses=[(401, {})] * 9)
    with told(AccessError, 6, "HTTP status 401", "your account was not sent"):
        enter(server)


def test_without_credentials_of_the_call_the_environment_is_not_denied(closed, monkeypatch):
    """A call from Python gives none, though the variables are set: they are not called missing."""
    monkeypatch.setenv("IMAGENET_USERNAME", "ada")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", "one")
    with told(AccessError, 6, "requires you to sign in", "no credentials were given") as caught:
        enter(closed, None)
    assert "your account" not in caught.value.hint


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (b"", "refused access to a.tar"),
        (b"<html>Busy</html>", "sent a web page or XML in place of"),
    ],
)
def test_a_refusal_is_not_always_about_signing_in(server, page, words):
    """A status 403 or a page without a form may have another cause: a login is one of several."""
    if page:
        server.faults = Faults(page=("text/html", page))
    else:
        server.faults = Faults(statuses=[(403, {})] * 9)
    with told(
        AccessError, 6, words, "it may require you to sign in, and no credentials were given"
    ):
        enter(server, None)


def test_a_cookie_of_the_server_is_none_of_the_file(server, tmp_path):
    """A site that sets a cookie of its own did not refuse those of the file, which are another's."""
    jar = tmp_path / "cookies.txt"
    jar.write_text(f"image-net.org\tFALSE\t/\tFALSE\t0\tsession\t{CANARY}\n")
    server.faults = Faults(
        statuses=[(302, {"Location": "/b.tar", "Set-Cookie": "visit=1; Path=/"}), (401, {})]
    )
    with told(AccessError, 6, "cookies.txt holds no cookie for", "cookies for image-net.org"):
        enter(server, None, jar)
    assert server.seen[-1].headers["Cookie"] == "visit=1"


def test_cookies_in_a_folder(server, tmp_path):
    """The system's reason is told: to export the cookies again would not help."""
    with told(UsageError, 2, "can't be read", "found a folder"):
        enter(server, None, tmp_path)


@pytest.mark.parametrize("content", [None, CANARY, "\udcff\udcfe\0"])
def test_cookies_unreadable(server, tmp_path, content):
    """A cookie file that is missing or is none is wrong usage, and its content is not shown."""
    jar = tmp_path / "cookies.txt"
    if content is not None:
        jar.write_bytes(content.encode(errors="surrogateescape"))
    with told(UsageError, 2, "cookies.txt"):
        enter(server, None, jar)


@pytest.mark.parametrize(
    "url", ["image-net.org", "ftp://a.org/", f"http://a:{CANARY}@a.org/", "http://a.org:x/"]
)
def test_base_url(url):
    """A base URL that is none, or that holds a password, is wrong usage."""
    with told(UsageError, 2, "base URL"):
        open_session(url, None, None, probe="a.tar")


def test_find_credentials(tmp_path, monkeypatch):
    """The environment comes before netrc, netrc before the prompt;
    with none of them there are no credentials.
    """
    netrc = tmp_path / "netrc"
    netrc.write_text("machine image-net.org login bob password two\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("IMAGENET_USERNAME", "ada")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", "one")
    monkeypatch.setenv("NETRC", str(netrc))
    url = "https://image-net.org/data/"
    assert find_credentials(url, prompt=pytest.fail) == Credentials("ada", "one")
    monkeypatch.delenv("IMAGENET_ACCESS_KEY")
    with pytest.raises(UsageError, match=r"IMAGENET_USERNAME .*IMAGENET_ACCESS_KEY"):
        find_credentials(url, prompt=pytest.fail)
    monkeypatch.delenv("IMAGENET_USERNAME")
    assert find_credentials(url, prompt=pytest.fail) == Credentials("bob", "two")
    assert find_credentials("https://other.org/", prompt=lambda: ("eve", "three")) == Credentials(
        "eve", "three"
    )
    assert find_credentials("https://other.org/", prompt=lambda: ("", "")) is None
    assert find_credentials("https://other.org/", prompt=None) is None


@pytest.mark.parametrize(
    ("find", "names", "bad"),
    [
        (
            lambda: find_credentials("", prompt=None),
            ("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY"),
            0,
        ),
        (
            lambda: find_credentials("", prompt=None),
            ("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY"),
            1,
        ),
        (find_login, ("KAGGLE_USERNAME", "KAGGLE_KEY"), 1),
    ],
)
def test_the_variable_that_is_no_text_is_named(
    find: Callable[[], object], names: tuple[str, str], bad: int, tmp_path, monkeypatch
):
    """The other one is right; the message shows neither value."""
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for number, name in enumerate(names):
        monkeypatch.setenv(name, f"{CANARY}\udcff" if number == bad else CANARY)
    with told(UsageError, 2, f"{names[bad]} has bytes that are not text"):
        find()


def test_credentials_are_kept_close():
    """No repr shows a password, and no pickle takes it to another process."""
    assert_no_secret(repr(ADA) + str(ADA) + f"{[ADA]}")
    with pytest.raises(TypeError) as caught:
        pickle.dumps(ADA)
    assert_no_secret(str(caught.value))


def test_logs_hold_no_secret(closed, part, caplog):
    """At the most talkative level, no logger tells a password, a cookie or a query."""
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "urllib3.connectionpool", "requests"):
        caplog.set_level(logging.DEBUG, logger=name)
    session = open_session(f"{closed.url}?key={CANARY}", ADA, None, probe="a.tar", pace=PACE)
    closed.faults = Faults(cut=1_000_000)
    fetch(session, f"{closed.url}a.tar?key={CANARY}", part, Manner(pace=PACE))
    closed.faults, closed.is_open = Faults(login="redirect"), True
    open_session(closed.url, ADA, None, probe="a.tar", pace=PACE)
    assert "GET /a.tar?..." in caplog.text
    assert "POST /login" in caplog.text
    assert_no_secret(caplog.text)
    assert CANARY.encode() not in b"".join(snapshot(part.parent).values())


def test_find_login_form():
    """The fields of a form are those that a browser would send."""
    page = b"""<FORM Method=POST Action="in?x=1"><input type=hidden name=t value="a&amp;b"><input type=email name=mail>
      <input type=password name=pw><input name=extra value=e><input type=checkbox
      name=stay checked><input type=checkbox name=spam><input type=submit name=go value=Go><button name=x></form>"""
    form = find_login_form(page, "https://a.org/dir/page")
    assert form is not None
    assert (form.action, form.method) == ("https://a.org/dir/in?x=1", "post")
    expected = {"t": "a&b", "mail": "me", "pw": "secret", "extra": "e", "stay": "on", "go": "Go"}
    assert form.filled("me", "secret") == expected


# every kind of death ------------------------------------------------------------------------------


def test_interrupt(server, part):
    """Ctrl-C ends a transfer within moments and leaves it resumable."""
    server.faults = Faults(rate=2_000_000)
    threads = threading.active_count()

    class Interrupt(Bars):
        def advance(self, amount=1):
            super().advance(amount)
            if self.advanced > 500_000:
                self.at = time.monotonic()
                raise KeyboardInterrupt

    progress = Interrupt()
    with pytest.raises(KeyboardInterrupt):
        run(server, part, progress=progress, connections=4)
    assert time.monotonic() - progress.at < 10
    durable = kept_bytes(part, inspect(Session(server.url, 1), server.url + "a.tar", PACE))
    assert 500_000 < durable < SIZE
    server.faults = Faults()
    again = Bars()
    run(server, part, connections=4, progress=again)
    assert part.read_bytes() == CONTENT
    assert again.advanced == SIZE - durable
    assert threading.active_count() <= threads + 10  # of the server: ours are gone


def test_netrc_is_not_used_elsewhere(server, elsewhere, part, tmp_path, monkeypatch):
    """A netrc entry for the host does not make the other port get a password either."""
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login {USERNAME} password {CANARY}")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.faults = Faults(redirect=elsewhere.url + "{path}")
    run(server, part)
    assert not any("Authorization" in seen.headers for seen in server.seen + elsewhere.seen)


CALM = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.05, segment=100_000)


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
def ending(server: FaultServer) -> FaultServer:
    """The same, whose sessions may end."""
    server.RequestHandlerClass = (
        _Ending  # from the first connection on: one that is kept keeps its handler
    )
    _let_sessions_end(server, 1 << 30)
    return server


def _enter(ending: FaultServer, credentials: Credentials | None = ADA) -> Session:
    return open_session(ending.url, credentials, None, probe="a.tar", pace=CALM)


# what a server asks for ---------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, 'Bearer realm="Basic", scope="Basic x"'])
def test_a_server_that_asks_for_no_basic_gets_none(server: FaultServer, header: str | None) -> None:
    """A bare 401, or one that asks for something else, is an answer to which no password goes."""
    headers = {"WWW-Authenticate": header} if header else {}
    server.faults = Faults(statuses=[(401, headers)] * 9)
    with told(AccessError, 6, "401", "with a browser"):
        _enter(server)
    assert len(server.seen) == 1
    assert "Authorization" not in server.seen[0].headers


def test_a_challenge_from_elsewhere_opens_nothing(
    server: FaultServer, elsewhere: FaultServer
) -> None:
    """Where a redirect leads to a server that asks for a password,
    the home server has not asked for it.
    """
    elsewhere.is_open = False
    server.faults = Faults(redirect=elsewhere.url + "{path}")
    with pytest.raises(AccessError):
        _enter(server)
    assert not any("Authorization" in seen.headers for seen in server.seen + elsewhere.seen)


# forms --------------------------------------------------------------------------------------------

LOGIN = '<form action="/login" method=post><input name=user><input type=password name=pass><button>Sign in</button>'
REGISTER = "<form action=/a method=post><input name=user><input type=password name=p1>{}</form>"
NOT_FOR_SIGNING_IN = {
    "two passwords": REGISTER.format("<input type=password name=p2>"),
    "button": REGISTER.format("<button>Create an account</button>"),
    "button in pieces": REGISTER.format("<button><b>Sign</b> <i>up</i></button>"),
    "new password": REGISTER.format("").replace(
        "type=password", "type=password autocomplete=new-password"
    ),
    "action": REGISTER.format("").replace("/a", "/users/sign_up"),
    "reset": REGISTER.format("").replace("/a", "/password/reset"),
    "a name behind the password": (
        "<form method=post><input type=password name=p><input name=user></form>"
    ),
    "no user": "<form method=post><input type=password name=p><button>Sign in</button></form>",
}
SENDS_ELSEWHERE = ('method="get"', "", 'method="post" action="http://127.0.0.1:9/login"')


@pytest.mark.parametrize(
    ("form", "said"),
    [
        *((form, "sign-in form") for form in NOT_FOR_SIGNING_IN.values()),
        *(
            (f"<form {how}><input name=u><input name=p type=password></form>", "form")
            for how in SENDS_ELSEWHERE
        ),
    ],
    ids=[*NOT_FOR_SIGNING_IN, "get", "no method", "another address"],
)
def test_a_form_that_is_not_for_signing_in_gets_nothing(
    server: FaultServer, form: str, said: str
) -> None:
    """One that registers, changes a password, or sends it in a URL or elsewhere: not filled in;
    what to do is said.
    """
    if said == "sign-in form":
        assert find_login_form(form.encode(), "https://a.org/") is None
    server.faults = Faults(login="page", form=f"<html>{form}")
    with told(AccessError, 6, said, "--cookies"):
        _enter(server)
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


# sessions that end midway -------------------------------------------------------------------------


def _let_sessions_end(ending: Any, parts: int, times: int = 1) -> None:
    """Let the session that is open, and the next ones, ``times`` in all,
    end after so many parts each.
    """
    ending.left, ending.parts, ending.times = parts, parts, times - 1


@pytest.mark.parametrize(
    ("way", "connections", "times"), [("page", 1, 2), ("redirect", 4, 1), ("forbidden", 4, 1)]
)
def test_a_session_that_ends_midway(
    ending: FaultServer, tmp_path: Path, way: str, connections: int, times: int
) -> None:
    """Whoever notices first signs in again, all others wait for that;
    the file comes whole, however often it ends.
    """
    ending.faults = Faults(login=way, cut=100_000)
    session = _enter(ending)
    _let_sessions_end(ending, 2, times)
    part = tmp_path / "a.tar.part"
    fetch(session, ending.url + "a.tar", part, Manner(connections=connections, pace=CALM))
    assert part.read_bytes() == CONTENT
    assert [seen.method for seen in ending.seen].count("POST") == 1 + times


def test_signing_in_again_that_does_not_help(ending: FaultServer, tmp_path: Path) -> None:
    """Where the server lets us in and still sends no file,
    its answer is the error after three attempts.
    """
    ending.faults = Faults(login="page")
    session = _enter(ending)
    ending.faults = Faults(statuses=[(403, {})] * 4)
    with told(AccessError, 6, "a.tar", "403", "IMAGENET_ACCESS_KEY"):
        fetch(session, ending.url + "a.tar", tmp_path / "part", Manner(pace=CALM))
    assert len(ending.faults.statuses) == 1  # it may have meant a moment


class _WantsReferer(FaultHandler):
    """Knows who asks, and gives the file to browsers alone."""

    def answer(self) -> None:
        """403 without a Referer."""
        if self.is_welcome():
            self.send_nothing(403)
        else:
            super().answer()


def test_a_site_for_browsers_does_not_blame_the_credentials(closed: FaultServer) -> None:
    """403 to the right credentials is no word about them:
    the status is told, and that a browser's cookies may help.
    """
    closed.RequestHandlerClass = _WantsReferer
    with pytest.raises(AccessError) as caught:
        _enter(closed)
    assert_told(
        caught.value,
        6,
        "denied the account 'ada' access to a.tar",
        "403",
        "--cookies cookies.txt",
    )
    assert "refused the credentials" not in str(caught.value)


# patience and answers -----------------------------------------------------------------------------


def test_time_without_progress_is_bounded() -> None:
    """However many tries are left, and however long the server asks for."""
    waits: list[float] = []
    patience = Patience("a.tar", Pace(tries=10, longest_retry_after=300, budget=500), waits.append)
    patience.wait(CutError("busy", 300))
    patience._since -= 300
    with pytest.raises(NetworkError, match="gave up after 2 failed attempts in a row"):
        patience.wait(CutError("busy", 300))
    assert waits == [300]


NONSENSE = (
    "5-10/10",
    "5-4/10",
    "0-9/*",
    "0-9/10, 0-9/10",
    "0-9/100000000000000000000",
    "\u0660-\u0669/10",
    "",
)


def test_a_content_range_makes_sense_or_counts_for_nothing() -> None:
    """The last byte is part of the range, and lies within the file;
    anything behind it makes it another header.
    """

    def read(value: str) -> tuple[int, int, int] | None:
        response = requests.Response()
        response.headers["Content-Range"] = f"bytes {value}"
        return content_range(response)

    assert [read("0-0/1"), read("5-9/10")] == [(0, 1, 1), (5, 10, 10)]
    assert [value for value in NONSENSE if read(value)] == []


@pytest.mark.parametrize("span", ["0-1022", "1-1024"])
def test_a_probe_that_is_answered_otherwise_tells_no_length(server, span):
    """A first part that ends or begins elsewhere than asked is not believed:
    the file is asked for as a whole.
    """
    server.faults = Faults(content_range=f"bytes {span}/{SIZE}")
    remote = inspect(Session(server.url, 1), server.url + "a.tar", Pace())
    assert (remote.total, remote.ranges) == (SIZE, False)
    assert [seen.headers.get("Range") for seen in server.seen] == ["bytes=0-1023", None]


def test_a_form_is_not_sent_on(server, elsewhere):
    """A server that wants the filled-in form sent to another address is refused,
    and that address gets nothing.
    """
    server.faults = Faults(statuses=[(307, {"Location": elsewhere.url})])
    with pytest.raises(NetworkError, match=r"another address"):
        Session(server.url, 1).post(server.url + "login", {"user": "a", "pass": PASSWORD})
    assert elsewhere.seen == []
