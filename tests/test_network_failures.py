"""Failures of the network by type: how often each is tried, the exit status, and the last line,
which is what to do.

Each is raised by a real server, proxy or file. A passing failure is tried until the budget is
spent, a lasting one ends at once or, where a server had sent the file before, after three tries.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_server import CANARY, USERNAME
from misbehaviour import HTML
from running import PROGRAM, prep_here
from scripted_server import (
    ALWAYS,
    CONTENT,
    RIGHT,
    SIZE,
    Answer,
    Behaviour,
    ScriptedServer,
    Struck,
    scripted_server,
)
from surroundings import Make, Place, _certificates, _mount, _proxy, _pump, _secure

from imagenet_prep import DownloadOptions, Layout, PrepError, download
from imagenet_prep.errors import AccessError, NetworkError, UsageError
from imagenet_prep.fetch import SIGN_UP_URL
from imagenet_prep.fetch.answer_checks import RefusedError, account_hint
from imagenet_prep.fetch.credentials import Credentials, Token, find_credentials
from imagenet_prep.fetch.partial import find_leftover
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.providers import KaggleSite
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.site_logins import find_login, find_token
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.model import Silent

pytestmark = [
    pytest.mark.once,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TRAIN = ARCHIVES["train"]
TRIES, ANY = 4, -1
ODD = f"{CANARY}-pässwört€"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
ACCOUNT = {"IMAGENET_USERNAME": USERNAME, "IMAGENET_ACCESS_KEY": f"{CANARY}-key"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A row: what makes it, its class, the requests it costs, the exit status (0:
    the file), words, the last line.
    """

    name: str
    make: Make
    kind: str
    tries: int
    status: int
    words: str
    last: str


TABLE: list[Failure] = []


def failure(
    kind: str, tries: int, status: int, words: str = "", last: str = ""
) -> Callable[[Make], Make]:
    """Put what makes a failure into the table."""

    def enter(make: Make) -> Make:
        TABLE.append(Failure(make.__name__, make, kind, tries, status, words, last))
        return make

    return enter


def rows(*entries: tuple[str, Make, str, int, int, str, str]) -> None:
    """Put several into it."""
    TABLE.extend(Failure(*entry) for entry in entries)


def _at(url: str) -> Make:
    return lambda place: setattr(place, "url", url)


def _behaving(act: Callable[[Answer], None], at: Struck = "all", times: int = ALWAYS) -> Make:
    return lambda place: place.server.misbehave(Behaviour(act, at, times, RIGHT, RIGHT))


def _answers(status: int, **headers: str) -> Make:
    return _behaving(lambda answer: answer.nothing(status, **headers))


def _serve(place: Place, answer: Callable[[socket.socket], object]) -> int:
    """Let a function have each connection to a port of its own; the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(one: socket.socket) -> None:
        with contextlib.suppress(OSError), one:
            answer(one)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    place.stack.callback(listener.close)
    return int(listener.getsockname()[1])


# the network --------------------------------------------------------------------------------------


@failure(
    "lasting", 3, 5, "no connection to 127.0.0.1:{port}: it did not answer in time", "--base-url"
)
def full_backlog(place: Place) -> None:
    """Connections that nobody takes: the system drops further ones."""
    listener = place.stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    for _ in range(3):
        waiting = place.stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(("127.0.0.1", port))
    place.url = f"http://127.0.0.1:{port}/"


_LOOK = "check this machine's network, and --base-url, or run the same command again later"
_GIVEN_UP = "run the same command again"
_ADDRESS = "correct --base-url"
rows(
    (
        "refused",
        _at("http://127.0.0.1:9/"),
        "lasting",
        3,
        5,
        "no connection to 127.0.0.1:9: connection refused",
        _LOOK,
    ),
    ("host_with_two_dots", _at("http://a..b/"), "lasting", 0, 2, "with a host name", _ADDRESS),
    ("host_with_a_space", _at("http://a b/"), "lasting", 0, 2, "with a host name", _ADDRESS),
    (
        "host_too_long",
        _at(f"http://{'a' * 64}.com/"),
        "lasting",
        0,
        2,
        "with a host name",
        _ADDRESS,
    ),
    (
        "leads_to_no_host",
        _answers(302, Location="http://a..b/x"),
        "lasting",
        1,
        5,
        "redirect",
        "--base-url",
    ),
    ("busy", _answers(503), "passing", TRIES, 5, "HTTP status 503", _GIVEN_UP),
    (
        "reset",
        _behaving(lambda answer: answer.reset()),
        "passing",
        TRIES,
        5,
        "the connection broke",
        _GIVEN_UP,
    ),
    ("missing", _answers(404), "lasting", 1, 5, "HTTP status 404", "--base-url"),
)


# TLS ----------------------------------------------------------------------------------------------


def _speaking(place: Place, change: Callable[[ssl.SSLContext, Path], object]) -> None:
    """A server whose TLS is changed."""
    folder = place.folder.parents[0] / "certificates"
    folder.mkdir(exist_ok=True)
    found = _certificates(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(found["good"])
    change(tls, found[""])
    place.server = place.stack.enter_context(scripted_server(place.folder / "tls", tls))
    place.server.handle_error = lambda *_: None  # type: ignore[method-assign]
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(found[""]))
    place.url = place.server.url


_PLAIN = "does not speak TLS"


@failure("lasting", 1, 5, _PLAIN, "correct the port in --base-url, or write http:// in it")
def https_to_an_http_port(place: Place) -> None:
    """The port is that of http."""
    place.url = place.server.url.replace("http", "https")


@failure(
    "lasting", 1, 5, "offers no version of TLS that this machine accepts", "ask its administrator"
)
def old_tls_only(place: Place) -> None:
    """TLS 1.0, and nothing newer."""

    def change(tls: ssl.SSLContext, _: Path) -> None:
        tls.set_ciphers("ALL:@SECLEVEL=0")
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1

    _speaking(place, change)


def _asks_for_certificates(version: ssl.TLSVersion) -> Make:
    def change(tls: ssl.SSLContext, authority: Path) -> None:
        tls.maximum_version = version
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(authority)

    return lambda place: _speaking(place, change)


@failure(
    "lasting",
    1,
    5,
    "requires a client certificate\nthe TLS connection failed: certificate required",
    "fetch the file with a client that has",
)
def client_certificate(place: Place) -> None:
    """With TLS 1.3 it is missed only after the handshake of the client."""
    _secure(place, "good")
    folder = place.folder.parents[0] / "certificates"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "good.both")
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(folder / "authority")

    def answer(one: socket.socket) -> None:
        secure = tls.wrap_socket(one, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            secure.do_handshake()
        os.read(secure.fileno(), 1 << 16)

    place.url = f"https://127.0.0.1:{_serve(place, answer)}/"


rows(
    (
        "handshake_refused",
        _asks_for_certificates(ssl.TLSVersion.TLSv1_2),
        "lasting",
        1,
        5,
        "handshake",
        "administrator",
    ),
)


@failure("lasting", 1, 2, "REQUESTS_CA_BUNDLE", "correct REQUESTS_CA_BUNDLE, or unset it")
def authorities_hold_no_certificate(place: Place) -> None:
    """A text in place of certificates."""
    _secure(place, "good")
    path = place.folder / "authorities"
    path.write_text("no certificate\n")
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(path))


@failure("lasting", 1, 2, "which can't be read: no such file", "correct REQUESTS_CA_BUNDLE")
def authorities_behind_a_broken_link(place: Place) -> None:
    """A link is there; what it leads to is not."""
    _secure(place, "good")
    path = place.folder / "authorities"
    path.symlink_to(place.folder / "nothing")
    place.patch.setenv("REQUESTS_CA_BUNDLE", str(path))


@failure("right", ANY, 0)
def authorities_of_python(place: Place) -> None:
    """SSL_CERT_FILE, as Python and OpenSSL have it."""
    _secure(place, "good")
    place.patch.setenv("SSL_CERT_FILE", os.environ["REQUESTS_CA_BUNDLE"])
    place.patch.delenv("REQUESTS_CA_BUNDLE")


@failure("lasting", 1, 2, "SSL_CERT_FILE", "correct SSL_CERT_FILE, or unset it")
def authorities_of_python_not_there(place: Place) -> None:
    """The same without the file."""
    authorities_of_python(place)
    place.patch.setenv("SSL_CERT_FILE", str(place.folder / "nothing"))


# proxies ------------------------------------------------------------------------------------------


@failure(
    "lasting",
    1,
    5,
    "(from HTTPS_PROXY) does not speak TLS",
    "correct the port in --base-url",
)
def page_inside_a_tunnel(place: Place) -> None:
    """The proxy lets a tunnel be made, and sends its own page into it."""

    def answer(one: socket.socket) -> None:
        one.recv(1 << 16)
        one.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        one.recv(1 << 16)
        one.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + HTML)

    place.patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{_serve(place, answer)}")
    place.url = "https://archives.invalid/"


@failure("passing", TRIES, 5, "the proxy 127.0.0.1:", _GIVEN_UP)
def proxy_hangs_up(place: Place) -> None:
    """It closes each connection."""
    port = _serve(place, lambda one: one.recv(1 << 16))
    place.patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    place.url = "https://archives.invalid/"


@failure("lasting", 1, 2, "HTTP_PROXY names a SOCKS proxy", "pip install -e '.[socks]'")
def socks_without_its_package(place: Place) -> None:
    """requests can't speak to it."""
    import requests.adapters

    def missing(*_: object, **__: object) -> None:
        raise requests.exceptions.InvalidSchema("Missing dependencies for SOCKS support.")

    place.patch.setattr(
        requests.adapters, "SOCKSProxyManager", missing
    )  # what requests has without PySocks
    place.patch.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")
    place.url = "http://archives.invalid/"


@failure("right", ANY, 0)
def socks(place: Place) -> None:
    """A SOCKS proxy that looks up the names (RFC 1928)."""

    def answer(one: socket.socket) -> None:
        one.recv(1 << 10)
        one.sendall(b"\x05\x00")
        one.recv(1 << 10)
        one.sendall(b"\x05\x00\x00\x01" + struct.pack("!IH", 0, 0))
        with socket.create_connection(("127.0.0.1", place.server.server_port)) as upstream:
            _pump(one, upstream)

    place.patch.setenv("HTTP_PROXY", f"socks5h://127.0.0.1:{_serve(place, answer)}")
    place.url = "http://archives.invalid/"


def _socks_answers(answer: bytes) -> Make:
    """A SOCKS proxy with this answer to a request for a connection (RFC 1928, section 6)."""

    def talk(one: socket.socket) -> None:
        one.recv(1 << 10)
        one.sendall(b"\x05\x00")
        one.recv(1 << 10)
        one.sendall(answer)

    def make(place: Place) -> None:
        place.patch.setenv("ALL_PROXY", f"socks5h://127.0.0.1:{_serve(place, talk)}")
        place.url = "http://archives.invalid/"

    return make


def _proxy_in(variable: str, address: str, **others: str) -> Make:
    """A proxy that a variable names, which may be in small letters."""

    def make(place: Place) -> None:
        place.patch.setenv(variable, address)
        for name, value in others.items():
            place.patch.setenv(name, value)
        place.url = "http://archives.invalid/"

    return make


def _small(make: Make) -> Make:
    """The same proxy, named in small letters, with a list of hosts that go without one."""

    def changed(place: Place) -> None:
        make(place)
        place.patch.setenv("http_proxy", os.environ["HTTP_PROXY"])
        place.patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        place.patch.setenv("no_proxy", "localhost")

    return changed


_ODD = f"{USERNAME}:{ODD}@"
_SWAP = "write http:// in place of https:// in HTTP"
rows(
    (
        "https_for_an_http_proxy",
        _proxy("https", speaks="https"),
        "lasting",
        1,
        5,
        "does not speak TLS",
        _SWAP,
    ),
    (
        "the_same_for_http",
        _proxy("http", speaks="https"),
        "lasting",
        1,
        5,
        "does not speak TLS",
        "in place of https:// in HTTP_PROXY",
    ),
    (
        "proxy_of_ntlm",
        _proxy("https", user="", offers=("NTLM", "Negotiate")),
        "access",
        1,
        6,
        "NTLM",
        "NO_PROXY",
    ),
    (
        "the_same_in_the_clear",
        _proxy(user="", offers=("NTLM",)),
        "access",
        1,
        6,
        "NTLM",
        "NO_PROXY",
    ),
    (
        "proxy_of_basic",
        _proxy("https", user="", offers=("NTLM", "Basic")),
        "access",
        1,
        6,
        "HTTPS_PROXY has no user name and password that it accepts (HTTP status 407)",
        "USER:PASSWORD@",
    ),
    (
        "proxy_refuses_in_the_clear",
        _proxy(status=403),
        "access",
        1,
        6,
        "from the proxy 127.0.0.1:",
        "administrator",
    ),
    (
        "password_of_no_text",
        _proxy(user=f"ada:{CANARY}\udcff@"),
        "access",
        1,
        6,
        "407",
        "HTTP_PROXY=http://USER",
    ),
    ("odd_password", _proxy(user=_ODD, password=ODD), "right", ANY, 0, "", ""),
    (
        "proxy_of_ntlm_says_what_to_do",
        _proxy("https", user="", offers=("NTLM", "Negotiate")),
        "access",
        1,
        6,
        "requires a sign-in by NTLM or Negotiate",
        "such as cntlm, or set NO_PROXY=archives.invalid to connect directly",
    ),
    (
        "proxy_in_small_letters",
        _small(_proxy(user="")),
        "access",
        1,
        6,
        "http_proxy has no user name and password that it accepts",
        "set http_proxy=http://USER:PASSWORD@127.0.0.1:",
    ),
    (
        "the_list_of_hosts_that_counts",
        _small(_proxy(status=403)),
        "access",
        1,
        6,
        "(from http_proxy)",
        "add archives.invalid to the list in no_proxy to connect directly",
    ),
    (
        "socks_is_not_there",
        _proxy_in("HTTP_PROXY", "socks5h://127.0.0.1:9"),
        "lasting",
        3,
        5,
        "no connection to the proxy 127.0.0.1:9 (from HTTP_PROXY): connection refused",
        "the proxy in HTTP_PROXY",
    ),
    (
        "socks_refuses",
        _socks_answers(b"\x05\x05\x00\x01" + bytes(6)),
        "lasting",
        3,
        5,
        "(from ALL_PROXY) made no connection to archives.invalid: connection refused",
        "the proxy in ALL_PROXY",
    ),
    (
        "socks_of_no_version",
        _proxy_in("HTTP_PROXY", "socks9://127.0.0.1:9"),
        "lasting",
        1,
        5,
        "the proxy in HTTP_PROXY can't be used",
        "correct HTTP_PROXY",
    ),
    (
        "host_of_no_name",
        lambda place: (
            place.patch.setenv("HTTP_PROXY", "http://127.0.0.1:9"),
            setattr(place, "url", "http://-ü.com/"),
        ),
        "lasting",
        0,
        2,
        "the base URL can't be used",
        "correct --base-url",
    ),
)


@failure("right", ANY, 0)
def odd_password_for_a_tunnel(place: Place) -> None:
    """UTF-8, as curl sends it."""
    place.server = _secure(place, "good")
    _proxy("https", user=_ODD, password=ODD)(place)


# answers in mid-download --------------------------------------------------------------------------


def _page(answer: Answer) -> None:
    answer.page("text/html; charset=utf-8", HTML)


def _hint(answer: Answer) -> None:
    answer.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n" * 2)
    answer.reply(*answer.right())


def _unsatisfiable(answer: Answer) -> None:
    answer.nothing(416, Content_Range=f"bytes */{SIZE}")


rows(
    ("page_in_mid_download", _behaving(_page, "later", 2), "passing", ANY, 0, "", ""),
    ("page_for_ever", _behaving(_page, "rest"), "access", ANY, 6, "web page", "--cookies"),
    (
        "every_resume_is_unsatisfiable",
        _behaving(_unsatisfiable, "later"),
        "passing",
        ANY,
        0,
        "starting over",
        "",
    ),
    ("hints", _behaving(_hint), "right", ANY, 0, "", ""),
)


# access -------------------------------------------------------------------------------------------


def _asking(*schemes: str, account: bool = False) -> Make:
    def make(place: Place) -> None:
        _answers(401, WWW_Authenticate=", ".join(f'{scheme} realm="x"' for scheme in schemes))(
            place
        )
        for name, value in ACCOUNT.items() if account else ():
            place.patch.setenv(name, value)

    return make


@failure("right", ANY, 0)
def digest(place: Place) -> None:
    """The account is proved without the password (RFC 7616)."""

    def act(answer: Answer) -> None:
        fields = dict(re.findall(r'(\w+)="?([^",]*)', answer.headers.get("Authorization", "")))
        parts = [
            hashlib.md5(text.encode()).hexdigest()
            for text in (
                f"{USERNAME}:archives:{ACCOUNT['IMAGENET_ACCESS_KEY']}",
                f"GET:{answer.path}",
            )
        ]
        middle = [fields.get(name, "") for name in ("nonce", "nc", "cnonce", "qop")]
        if (
            fields.get("response")
            == hashlib.md5(":".join([parts[0], *middle, parts[1]]).encode()).hexdigest()
        ):
            answer.reply(*answer.right())
        else:
            answer.nothing(
                401, WWW_Authenticate='Negotiate, Digest realm="archives", nonce="12", qop="auth"'
            )

    _behaving(act)(place)
    for name, value in ACCOUNT.items():
        place.patch.setenv(name, value)


_BROWSER = (
    "fetch it with a browser or the site's own client, and move it into the folder of the raw "
    "data: DATA_DIR/raw-data, or the one of --raw"
)
rows(
    (
        "asks_for_bearer",
        _asking("Bearer", account=True),
        "access",
        1,
        6,
        "requires a sign-in by Bearer for",
        _BROWSER,
    ),
    (
        "asks_for_negotiate",
        _asking("Negotiate", "NTLM", account=True),
        "access",
        1,
        6,
        "requires a sign-in by Negotiate or NTLM for",
        _BROWSER,
    ),
    (
        "asks_without_account",
        _asking("Basic"),
        "access",
        1,
        6,
        "requires you to sign in",
        "set IMAGENET_USERNAME",
    ),
    (
        "refuses_the_account",
        _asking("Basic", account=True),
        "access",
        2,
        6,
        "refused the credentials",
        "check IMAGENET_USERNAME and",
    ),
    (
        "forbids",
        _answers(403),
        "access",
        1,
        6,
        "it may require you to sign in",
        "set IMAGENET_USERNAME",
    ),
)


@pytest.mark.parametrize("account", [False, True])
@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("https://image-net.org/data/x.tar", f"sign up at {SIGN_UP_URL}"),
        ("https://mirror.invalid/x.tar", "get one from mirror.invalid"),
    ],
)
def test_an_account_is_that_of_the_server(
    monkeypatch: pytest.MonkeyPatch, url: str, without: str, account: bool
) -> None:
    """An account at image-net.org opens no mirror."""
    for name in ACCOUNT:
        monkeypatch.setenv(name, "1" if account else "")
    hint = account_hint(url)
    assert (without in hint) != account
    assert (SIGN_UP_URL in hint) == (not account and "image-net" in url)
    assert hint.endswith("run: imagenet-prep download DATA_DIR --cookies cookies.txt")
    monkeypatch.setattr("sys.argv", ["imagenet-prep", "download", "d", "--only", "train"])
    own_command = "run: imagenet-prep download d --only train --cookies cookies.txt"
    assert account_hint(url).endswith(own_command)


@pytest.mark.parametrize("command", ["download", "run"])
def test_a_missing_account_is_named_before_the_network(
    place: Place, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Offline, too: nobody waits for the network only to learn that an account is missing."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    ran = prep_here(command, place.data)
    assert ran.returncode == 5, ran.stderr
    before, _, after = ran.stderr.partition("no connection to the proxy")
    assert "image-net.org may require an account, and none was given" in before
    assert SIGN_UP_URL in before
    assert after


def test_one_attempt_is_no_plural() -> None:
    """Where the time is over after the first."""
    patience = Patience("a.tar", Pace(budget=0), lambda seconds: None)
    with pytest.raises(PrepError, match="gave up after 1 failed attempt"):
        patience.wait(CutError("busy", 300))


@pytest.mark.parametrize(
    ("tries", "plain_cuts", "total"), [(10, 0, 3), (10, 4, 7), (6, 4, 6), (2, 0, 2)]
)
def test_the_number_of_tries_is_the_one_that_follows(
    tries: int, plain_cuts: int, total: int
) -> None:
    """Failures that may last are fewer in a row, after any number of others."""
    notes: list[str] = []
    patience = Patience("a.tar", Pace(tries=tries), lambda seconds: None, notes.append)
    for _ in range(plain_cuts):
        patience.wait(CutError("cut"))
    lasting = CutError("no such host", lasting=NetworkError("gone"))
    attempts = plain_cuts + 1
    with pytest.raises(NetworkError):  # noqa: PT012 - until it gives up
        while True:
            patience.wait(lasting)
            attempts += 1
    assert attempts == total
    assert f"no such host; try {plain_cuts + 2} of {total} in " in notes[-1]


def test_attempts_that_brought_bytes_are_not_said_to_have_brought_none() -> None:
    """Bytes may have arrived in a slow attempt, or in the first one of the row."""
    for kinds in (("slow", "slow"), ("slow", "cut"), ("cut", "cut")):
        patience = Patience("a.tar", Pace(tries=2), lambda seconds: None)
        patience.wait(CutError("too slow", kind=kinds[0]), 5)
        with pytest.raises(PrepError) as caught:
            patience.wait(CutError("again", kind=kinds[1]), 5)
        assert caught.value.what == "a.tar: gave up after 2 failed attempts in a row"


# what comes of each -------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    """A server of one file."""
    with scripted_server(tmp_path / "served") as server:
        yield server


def _fetch(
    place: Place, tries: int = TRIES, segment: int = 64 << 10, **options: Any
) -> tuple[int, list[str], list[str]]:
    """Download the train archive as the command does;
    exit status, the lines of the error, the notes.
    """
    waits = {"first_wait": 0.001, "longest_wait": 0.01, "longest_retry_after": 0.05}
    pace = Pace(
        tries=tries,
        stall=0.5,
        least_speed=1000,
        slow_after=1,
        save_every=0.05,
        segment=segment,
        **waits,
    )
    options = {"connections": 1, "digests": {"train": hashlib.md5(CONTENT).hexdigest()}, **options}
    if "IMAGENET_USERNAME" in os.environ:
        options = {
            "credentials": find_credentials(place.url, prompt=None),
            **options,
        }
    progress, layout = Silent(), Layout(place.data)
    try:
        download(
            layout,
            DownloadOptions(base_url=place.url, pace=pace, **options),
            only=["train"],
            progress=progress,
        )
    except PrepError as error:
        return error.exit_code, error.lines, progress.notes
    assert layout.download_path(TRAIN).read_bytes() == CONTENT
    return 0, [], progress.notes


@pytest.fixture
def place(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """Surroundings of a download, without proxies and accounts of the tester."""
    for name in (*PROXIES, *map(str.lower, PROXIES), *AUTHORITIES, *ACCOUNT):
        monkeypatch.delenv(name, raising=False)
    with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        yield Place(server, tmp_path, patch, stack, server.url)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of all requests, as they are tried."""
    tried: list[str] = []
    real = Session._request

    def counted(session: Session, method: str, url: str, *others: Any) -> Any:
        tried.append(url)
        return real(session, method, url, *others)

    monkeypatch.setattr(Session, "_request", counted)
    return tried


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.kind}-{row.name}")
def test_a_failure_is_what_it_is_called(place: Place, sent: list[str], row: Failure) -> None:
    """It is tried as often as helps, ends with the status of its class,
    and the last line says what to do.
    """
    row.make(place)
    status, lines, notes = _fetch(place)
    said = "\n".join(lines or notes)
    assert status == row.status, said
    assert row.words.replace("{port}", place.url.rpartition(":")[2].strip("/")) in said
    assert CANARY not in said
    assert not lines or row.last in lines[-1]
    assert row.tries in (ANY, len(sent))
    if row.status in (2, 6) and "IMAGENET_USERNAME" in os.environ:
        assert "set IMAGENET" not in lines[-1]


# secrets and their files --------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without secrets."""
    for name in os.environ:
        if name.startswith(("KAGGLE", "HF_", "HUGGING", "XDG_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    return home


_TOKEN = f"{CANARY}-token"


@pytest.mark.parametrize("written", ["\ufeff{}\n", '"{}"', "'{}'\r\n"])
@pytest.mark.parametrize(
    ("variable", "find"),
    [("KAGGLE_API_TOKEN", find_login), ("HF_TOKEN", find_token), ("HF_TOKEN_PATH", find_token)],
)
def test_a_token_is_read_as_it_is_written(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: str,
    variable: str,
    find: Callable[[], Token],
) -> None:
    """A BOM, a line's end, and the quotes that docker's --env-file keeps are no part of it."""
    value = written.format(_TOKEN)
    if variable == "HF_TOKEN_PATH":
        home.mkdir()
        (home / "token").write_text(value, "utf-8")
        value = str(home / "token")
    monkeypatch.setenv(variable, value)
    assert find().value == _TOKEN


@pytest.mark.parametrize(
    ("variable", "find"),
    [("KAGGLE_API_TOKEN", find_login), ("HF_TOKEN", find_token)],
    ids=["kaggle", "hub"],
)
@pytest.mark.parametrize(
    "path",
    [f"/no/{CANARY}", f"~/{CANARY}", f"./{CANARY}/token", f"~nobody-{CANARY}/token"],
)
def test_a_path_is_no_token(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    find: Callable[[], object],
    path: str,
) -> None:
    """A path where no file is, is not sent."""
    monkeypatch.setenv(variable, path)
    with pytest.raises(
        UsageError, match=f"{variable} holds something other than a token"
    ) as caught:
        find()
    assert CANARY not in str(caught.value)
    assert re.match("set it to the token[,;] or ", caught.value.hint)


def test_the_path_of_a_token_has_a_variable_of_its_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HF_TOKEN with the path of a file that is there: the hint names HF_TOKEN_PATH, which works."""
    (tmp_path / "token").write_text(_TOKEN)
    monkeypatch.setenv("HF_TOKEN", str(tmp_path / "token"))
    with pytest.raises(UsageError, match="HF_TOKEN_PATH"):
        find_token()
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    assert find_token() == Token(_TOKEN, str(tmp_path / "token"))


def test_a_long_token_is_no_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a file's name may be: it is sent, and never shown by the system's refusal."""
    token = _TOKEN + "x" * 1000
    monkeypatch.setenv("KAGGLE_API_TOKEN", token)
    assert find_login() == Token(token, "KAGGLE_API_TOKEN")


@pytest.mark.parametrize("variable", ["KAGGLE_CONFIG_DIR", "XDG_CONFIG_HOME", "HF_TOKEN_PATH"])
def test_the_home_of_nobody_is_no_bug(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A path in the home of a user that does not exist holds no secret."""
    monkeypatch.setenv(variable, "~no-such-user/secrets")
    assert find_login() is None
    assert find_token() is None


@pytest.mark.parametrize(
    ("variables", "folders"),
    [
        ({}, "/home/.kaggle or .*/home/.config/kaggle$"),
        ({"KAGGLE_CONFIG_DIR": "/own"}, "and no credentials in /own$"),
    ],
)
def test_the_folders_of_a_login_are_those_that_were_searched(
    home: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folders: str
) -> None:
    """With KAGGLE_CONFIG_DIR, a kaggle.json in ~/.kaggle is not looked for, and not denied."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AccessError) as caught, KaggleSite().explained():
        raise RefusedError("kaggle.com refused access", "status 401", "", 401)
    assert re.search(folders, caught.value.detail), caught.value.detail


@pytest.mark.parametrize("folder", [".kaggle", ".config/kaggle", "other/kaggle", "own"])
def test_kaggle_json_lies_where_its_client_puts_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """~/.kaggle, otherwise XDG_CONFIG_HOME; KAGGLE_CONFIG_DIR before both;
    a BOM and quotes do no harm.
    """
    (home / folder).mkdir(parents=True)
    (home / folder / "kaggle.json").write_text('\ufeff{"username": "ada", "key": "1"}', "utf-8")
    if folder.startswith("other"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "other"))
    if folder == "own":
        monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(home / "own"))
        (home / ".kaggle").mkdir()
    assert find_login() == Credentials("ada", "1")
    (home / ".kaggle").mkdir(exist_ok=True)
    (home / ".kaggle" / "access_token").write_text(_TOKEN)
    assert find_login() == Token(_TOKEN, str(home / ".kaggle" / "access_token"))
    monkeypatch.setenv("KAGGLE_USERNAME", '"ada"')
    monkeypatch.setenv("KAGGLE_KEY", '"2"')
    (home / ".kaggle" / "access_token").unlink()
    assert find_login() == Credentials("ada", "2")


@pytest.mark.parametrize("name", ["IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY"])
def test_credentials_of_no_text_are_wrong_usage(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Bytes that are no text are named by their source, and not shown."""
    for each in ACCOUNT:
        monkeypatch.setenv(each, f"{CANARY}\udcff" if each == name else "1")
    with pytest.raises(UsageError, match="IMAGENET") as caught:
        find_credentials("http://127.0.0.1/", prompt=None)
    assert CANARY not in str(caught.value)


_LINE = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{}\n"


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("# Netscape HTTP Cookie File\n", ODD),
        ("\ufeff# Netscape HTTP Cookie File\r\n", "1"),
        ("", "1"),
        ("# HTTP cookie file.\n# Generated by Wget on 2026-11-27 20:00:00.\n\n", "1"),
    ],
    ids=["odd_value", "bom", "no_header", "wget"],
)
def test_cookies_are_sent_like_browsers_do(place: Place, head: str, value: str) -> None:
    """From any exporter, in UTF-8."""
    path = place.folder / "cookies.txt"
    path.write_text(head + _LINE.format(value), "utf-8")
    status, lines, _ = _fetch(place, cookies=path)
    assert status == 0, lines
    assert place.server.seen[0].headers["Cookie"].encode("latin-1").decode() == f"session={value}"


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_a_cookie_that_no_header_can_hold_is_blamed_alone(place: Place, proxy: str) -> None:
    """Neither the address nor a proxy, and its content is not shown."""
    path = place.folder / "cookies.txt"
    line = _LINE.format(CANARY).replace("session", "s€").replace("127.0.0.1", "archives.invalid")
    path.write_text(line if proxy else _LINE.format(CANARY).replace("session", "s€"), "utf-8")
    if proxy:
        place.patch.setenv("HTTP_PROXY", proxy)
        place.url = "http://archives.invalid/"
    status, lines, _ = _fetch(place, cookies=path)
    assert status == 2, lines
    assert "a cookie for " in lines[0]
    host = "archives.invalid" if proxy else f"127.0.0.1:{place.server.server_port}"
    assert lines[-1] == (
        f"in the file of --cookies, remove each cookie of {host} with another character in its name"
    )
    assert CANARY not in "\n".join(lines)


@pytest.mark.parametrize(
    ("host", "expires", "words"),
    [
        ("127.0.0.1", 0, "got cookies from"),
        ("127.0.0.1", 1, "those for this site have expired"),
        (".image-net.org", 0, "holds no cookie for 127.0.0.1"),
    ],
)
def test_cookies_that_were_not_sent_are_not_called_expired(
    place: Place, host: str, expires: int, words: str
) -> None:
    """Another host's are named as such."""
    path, flag = place.folder / "cookies.txt", str(host.startswith(".")).upper()
    path.write_text(
        f"# Netscape HTTP Cookie File\n{host}\t{flag}\t/\tFALSE\t{expires}\tsession\t{CANARY}\n"
    )
    place.server.misbehave(Behaviour(_page, "all", ALWAYS, RIGHT, RIGHT))
    status, lines, _ = _fetch(place, cookies=path)
    assert (status, words in "\n".join(lines), "expired" in lines[1]) == (
        6,
        True,
        expires == 1 or words[0] == "g",
    ), lines
    assert CANARY not in "\n".join(lines)


@pytest.mark.parametrize(
    ("base_url", "words"), [(None, "image-net.org"), ("http://127.0.0.1:9/x/", "127.0.0.1:9")]
)
def test_the_prompt_names_who_gets_the_password(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    base_url: str | None,
    words: str,
) -> None:
    """A mirror's own name, never that of image-net.org."""
    from imagenet_prep.cli import download_arguments

    typed = iter(["ada", "secret"])
    for name in ACCOUNT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download_arguments.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(download_arguments.click, "prompt", lambda *_, **__: next(typed))
    find = download_arguments.find_account({"base_url": base_url, "cookies": None})
    assert callable(find)
    assert find() == Credentials("ada", "secret")
    said = capsys.readouterr().err
    assert words in said
    assert ("image-net.org" in said) == (base_url is None)


# what lies there ----------------------------------------------------------------------------------


def _link(path: Path) -> None:
    path.symlink_to("/nowhere/archive")


_NO_FILES = [
    (_link, "a broken link"),
    (Path.mkdir, "a folder"),
    (os.mkfifo, "a pipe, a socket or a device"),
]


@pytest.mark.parametrize(("make", "words"), _NO_FILES, ids=["link", "folder", "pipe"])
@pytest.mark.parametrize("key", ["boxes", "train"])
@pytest.mark.parametrize("options", [(), ("--no-digest",)], ids=["digest", "plain"])
def test_what_is_no_file_is_no_archive(
    tmp_path: Path, make: Callable[[Path], None], words: str, key: str, options: tuple[str, ...]
) -> None:
    """It is named before any request, and the command that moves it away
    is no move to the same place.
    """
    path = tmp_path / "data" / "raw-data" / ARCHIVES[key].filename
    path.parent.mkdir(parents=True)
    make(path)
    ran = prep_here(
        "download", tmp_path / "data", "--only", key, "--base-url", "http://127.0.0.1:9/", *options
    )
    assert ran.returncode == 4, ran.stderr
    assert words in ran.stderr
    assert f"{path} {path}    (" not in ran.stderr
    assert path.is_symlink() or path.exists()


@pytest.mark.parametrize(("make", "words"), [(_link, "a broken link"), (Path.touch, "a file")])
def test_raw_data_is_a_folder(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    """A link to a disk that is not there, or a file, is named before any request."""
    (tmp_path / "data").mkdir()
    make(tmp_path / "data" / "raw-data")
    ran = prep_here("download", tmp_path / "data", "--base-url", "http://127.0.0.1:9/")
    assert ran.returncode == 4, ran.stderr
    assert f"raw-data is {words}" in ran.stderr


@pytest.mark.parametrize(
    "content", [b"", HTML, CONTENT[: SIZE // 2], CONTENT[: SIZE // 1024 * 512]]
)
def test_without_a_digest_a_file_that_lies_there_must_look_right(
    place: Place, content: bytes
) -> None:
    """As one that arrives: an empty file, a page and a cut archive are none; the whole one is."""
    path = Layout(place.data).download_path(TRAIN)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    status, lines, _ = _fetch(place, digests=None, check_digest=False)
    assert (status, place.server.seen) == (4, [])
    assert "is not the expected file" in lines[0]
    path.write_bytes(CONTENT)
    assert _fetch(place, digests=None, check_digest=False)[0] == 0
    assert place.server.seen == []


@pytest.mark.parametrize("connections", [1, 4])
def test_with_a_digest_another_mirror_goes_on(place: Place, connections: int) -> None:
    """Its validators are others, and so is its address;
    the bytes are the same, or the digest says so.
    """
    place.server.misbehave(Behaviour(_half_then_nothing, "parts", ALWAYS, RIGHT, RIGHT))
    assert _fetch(place, connections=connections)[0] == 5
    left = find_leftover(Layout(place.data).part_path(TRAIN.filename))
    assert left is not None
    assert left[1].size > 1000
    mirror = place.stack.enter_context(scripted_server(place.folder / "mirror"))
    mirror.version, place.url = 7, mirror.url
    status, _, notes = _fetch(place, connections=connections)
    assert status == 0
    assert "starting over" not in "\n".join(notes)
    assert mirror.body_bytes <= SIZE - left[1].size


def _half_then_nothing(answer: Answer) -> None:
    if answer.server.count("halves"):
        answer.nothing(503)
    else:
        answer.cut(len(answer.right()[2]) // 2)


# what is said meanwhile ---------------------------------------------------------------------------


@pytest.mark.parametrize("connections", [1, 4])
def test_one_note_for_each_kind_of_interruption(place: Place, connections: int) -> None:
    """However often a connection is cut, and by whichever thread it is met."""

    def act(answer: Answer) -> None:
        if answer.server.count("requests") % 5:
            answer.cut(max(1, len(answer.right()[2]) // 4))
        else:
            answer.nothing(503)

    place.server.misbehave(Behaviour(act, "parts", 40, RIGHT, RIGHT))
    status, lines, notes = _fetch(place, connections=connections)
    assert status == 0, lines
    assert (
        len(
            [
                note
                for note in notes
                if "fewer bytes than requested" in note or "the connection broke" in note
            ]
        )
        == 1
    )
    assert len([note for note in notes if "HTTP status 503" in note]) == 1


def test_the_outcome_is_written_where_standard_output_is_closed(
    place: Place, tmp_path: Path
) -> None:
    """On standard error; the exit status is that of the download."""
    folder = tmp_path / "data"
    words = [
        *PROGRAM,
        "download",
        folder,
        "--only",
        "train",
        "--no-digest",
        "--base-url",
        place.url,
    ]
    ran = subprocess.run(
        ["bash", "-c", f"{shlex.join(map(str, words))} >&-"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert f"download: fetched {TRAIN.filename}" in ran.stderr
    assert Layout(folder).download_path(TRAIN).read_bytes() == CONTENT


# space --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inodes", [5, 6, 7])
def test_inodes_are_not_called_space(place: Place, inodes: int) -> None:
    """A file system without room for another file, whose bytes are free;
    then, as ever, nothing is lost.
    """
    _mount(place, f"size=8m,nr_inodes={inodes}")
    status, lines, _ = _fetch(place)
    assert status in (0, 7)
    assert not lines or ("inodes" in lines[0] and "space" not in lines[0]), lines


def test_a_slow_connection_is_called_slow(place: Place) -> None:
    """Connections that end because they are slow are not refused."""
    slow = threading.Semaphore(3)

    def act(answer: Answer) -> None:
        status, headers, body = answer.right()
        if not slow.acquire(blocking=False):
            answer.server.over.wait(0.25)
            answer.reply(status, headers, body)
            return
        answer.reply(status, headers)
        for byte in body[:15]:
            answer.raw(bytes([byte]))
            answer.server.over.wait(0.1)
        answer.close_connection = True
        slow.release()

    place.server.misbehave(Behaviour(act, "parts", ALWAYS, RIGHT, RIGHT))
    notes = _fetch(place, connections=4, tries=2, segment=16 << 10)[2]
    assert [note for note in notes if "too slow" in note and " left" in note], notes
    assert not [note for note in notes if "seems to accept no more" in note], notes
