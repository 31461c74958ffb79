"""What the errors of a download say in rare states: each clause is so there."""

from __future__ import annotations

import ast
import errno
import http.client
import os
from functools import partial
from pathlib import Path

import pytest
import requests
from existing import existing
from memory_store import MemoryStore

import imagenet_prep
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import AccessError, InputError, NetworkError, UsageError
from imagenet_prep.fetch import access
from imagenet_prep.fetch.answer_checks import RefusedError, check_is_no_page, check_status
from imagenet_prep.fetch.base_url_words import about_base_url
from imagenet_prep.fetch.credentials import Credentials
from imagenet_prep.fetch.failures import reason_of
from imagenet_prep.fetch.patience import CutError
from imagenet_prep.fetch.providers import HuggingFaceSite, KaggleSite
from imagenet_prep.fetch.reply import Remote
from imagenet_prep.fetch.session import Session
from imagenet_prep.ilsvrc2012 import astray
from imagenet_prep.ilsvrc2012.raw_data import how_to_get
from imagenet_prep.stages.status import status
from imagenet_prep.stages.untar import untar
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import Location

URL = "http://archives.invalid/a.tar"
PAGE = b"<!DOCTYPE html><title>401 Unauthorized</title>"


def _answer(status: int, page: bytes = b"", url: str = URL, **headers: str) -> requests.Response:
    """An answer as it arrives."""
    from io import BytesIO

    from urllib3 import HTTPResponse

    all_headers = {name.replace("_", "-"): text for name, text in headers.items()}
    response = requests.Response()
    response.status_code, response.url = status, url
    response.headers.update(all_headers)
    response.raw = HTTPResponse(BytesIO(page), headers=all_headers, preload_content=False)
    response.request = requests.Request("GET", url, {"Cookie": "session=new"}).prepare()
    return response


def _refusal(response: requests.Response, *, in_vain: bool) -> AccessError:
    """The error of a sign-in that such an answer asks for."""
    session = Session(URL, 1)
    with pytest.raises(AccessError) as caught:
        access._enter(session, lambda: Credentials("ada", "one"), None, response, URL, in_vain)
    return caught.value


@pytest.mark.parametrize(
    ("status", "words"), [(401, "refused the credentials of 'ada'"), (403, "denied the account")]
)
def test_a_refusal_with_a_page_is_a_refusal(status: int, words: str) -> None:
    """Servers write their status in a page, too: the file was not replaced by one."""
    headers = {"Content_Type": "text/html", "WWW_Authenticate": 'Basic realm="x"'}
    assert words in _refusal(_answer(status, PAGE, **headers), in_vain=True).what


def test_variables_that_were_not_read_are_not_to_be_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call from Python gave the account, whatever the environment holds."""
    monkeypatch.setenv("IMAGENET_USERNAME", "bob")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", "two")
    error = _refusal(_answer(401, WWW_Authenticate="Basic"), in_vain=True)
    assert "IMAGENET_USERNAME" not in error.hint


def test_a_cookie_that_the_answer_replaced_was_sent(tmp_path: Path) -> None:
    """A site that signs out does so: the cookie of the file reached it before."""
    path = tmp_path / "cookies.txt"
    path.write_text("archives.invalid\tFALSE\t/\tFALSE\t0\tsession\told\n")
    jar = access._load_cookies(path)
    error = access._cookies_refused(URL, jar, _answer(403))
    assert "got cookies from" in error.what


def test_cookies_may_have_the_lines_of_windows(tmp_path: Path) -> None:
    """A carriage return would be part of the value, which no header can hold."""
    path = tmp_path / "cookies.txt"
    path.write_bytes(b"# a\r\narchives.invalid\tFALSE\t/\tFALSE\t0\tsession\told\r\n")
    (cookie,) = access._load_cookies(path)
    assert cookie.value == "old"


def test_cookies_from_a_pipe_are_refused(tmp_path: Path) -> None:
    """Without a writer it would be waited for without end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="plain file"):
        access._load_cookies(path)


@pytest.mark.parametrize("status", [403, 404])
def test_who_is_redirected_to_is_who_refuses(status: int) -> None:
    """Neither the first server nor the rules of its site are the reason."""
    with pytest.raises(CutError) as caught:
        check_status(_answer(status, url="http://storage.invalid/x"), URL)
    lasting = caught.value.lasting
    assert str(lasting).startswith("storage.invalid ")
    assert not isinstance(lasting, RefusedError)


def test_a_page_is_of_the_server_that_sent_it() -> None:
    """The first server only led to it."""
    answer = _answer(200, PAGE, "http://storage.invalid/x", Content_Type="text/html")
    words = r"^storage\.invalid sent a web page or XML in place of a\.tar"
    with pytest.raises(RefusedError, match=words) as caught:
        check_is_no_page(answer, PAGE, URL)
    assert caught.value.detail.startswith("archives.invalid redirects there")
    assert "account" not in caught.value.hint


def test_an_empty_kaggle_token_is_not_called_absent() -> None:
    """The variable may name an empty file."""
    with pytest.raises(AccessError) as caught, KaggleSite().explained():
        raise RefusedError("kaggle.com refused access", "status 401", "", 401)
    assert "found no token in KAGGLE_API_TOKEN" in caught.value.detail


def test_the_file_without_a_token_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was saved elsewhere is not called unsaved."""
    monkeypatch.setenv("HF_TOKEN_PATH", "/own/token")
    with pytest.raises(AccessError) as caught, HuggingFaceSite().explained():
        raise RefusedError("huggingface.co refused access", "status 401", "", 401)
    assert "in /own/token" in caught.value.detail


def test_a_user_name_of_any_letters_can_sign_a_digest() -> None:
    """http.client encodes headers as Latin-1; the error would blame a cookie."""
    session = Session(URL, 1)
    session.sign_with("Łukasz", "one", {"digest"})
    assert session._digest is not None
    session._digest.init_per_thread_state()
    session._digest._thread_local.chal = {"realm": "x", "nonce": "y", "qop": "auth"}
    header = session._digest.build_digest_header("GET", URL)
    assert header is not None
    assert 'username="Łukasz"'.encode() in header.encode("latin-1")


def test_a_host_that_no_request_reaches_is_refused_at_the_start() -> None:
    """Behind a proxy, the error would blame the proxy's address."""
    with pytest.raises(UsageError, match="the base URL can't be used"):
        Session("http://*.archives.invalid/", 1)


def test_an_answer_that_is_not_http_did_not_break() -> None:
    """The port may belong to another service."""
    assert "valid HTTP" in reason_of(http.client.BadStatusLine("SSH-2.0-OpenSSH"))
    assert "broke" in reason_of(http.client.RemoteDisconnected("closed"))


def test_an_invalid_length_is_not_a_size() -> None:
    """A Content-Length of "abc" is not -1 byte."""
    version = Remote(URL, -1, None, None)
    obstacle = version.obstacle(Remote(URL, 5, None, None), has_digest=True)
    assert "-1" not in obstacle


def test_a_folder_of_raw_data_is_not_to_be_filled_again(tmp_path: Path) -> None:
    """Untar, given the folder itself, names the folder above, as download does."""
    class_folder = tmp_path / "raw-data" / "train" / "n01440764"
    class_folder.mkdir(parents=True)
    (class_folder / "n01440764_1.JPEG").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        untar(Layout(tmp_path / "raw-data"), ThreadEngine(1))
    assert caught.value.detail == f"expected {tmp_path} as DATA_DIR"
    assert "download" not in caught.value.hint


def test_a_folder_that_cannot_be_listed_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its permissions are the reason, not its images."""

    def closed(folder: Path) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    monkeypatch.setattr(astray, "names_in", closed)
    with pytest.raises(InputError, match="can't be read"):
        raise astray.nothing_found(Layout(tmp_path))


def test_no_download_into_an_object_store_is_advised() -> None:
    """It writes to a local folder only."""
    layout = Layout(Location(MemoryStore(), "set"))
    error = astray.nothing_found(layout)
    assert error.hint == "name the folder that has the images with --raw"
    assert status(layout).following == (
        "imagenet-prep convert memory://tests/set --raw FOLDER_WITH_IMAGES"
    )
    archive = "ILSVRC2012_devkit_t12.tar.gz"
    assert how_to_get(layout, "devkit") == f"put {archive} into memory://tests/set/raw-data"


def test_a_folder_of_raw_data_that_is_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    """Its images may be on a disk that is not mounted: nothing is to be downloaded."""
    (tmp_path / "raw-data").symlink_to(tmp_path / "gone")
    for refuse in (partial(astray.refuse_unread, split="train"), astray.refuse_wrong_folder):
        with pytest.raises(InputError, match="raw-data is a broken link") as caught:
            refuse(Layout(tmp_path))
        assert "download" not in caught.value.hint


BASE_URL_WORDS = [
    ("check --base-url if you set it, or try later", "check --base-url, or try later", "try later"),
    (
        "check --base-url if you set it, or use it to name another server",
        "check --base-url: it names the server",
        "name another server with --base-url",
    ),
    (
        "check this machine's network, and --base-url if you set it, or run it again",
        "check this machine's network, and --base-url, or run it again",
        "check this machine's network, or run it again",
    ),
    ("sign in; check --base-url if you set it", "sign in; check --base-url", "sign in"),
    ("correct --base-url", "correct --base-url", "correct --base-url"),
]


@pytest.mark.parametrize(("before", "given", "absent"), BASE_URL_WORDS)
def test_advice_knows_whether_an_option_was_given(before: str, given: str, absent: str) -> None:
    """Nobody is told to check an option that the call does not have."""
    for is_given, words in ((True, given), (False, absent)):
        error = NetworkError("what", "detail", before)
        with pytest.raises(NetworkError) as caught, about_base_url(is_given=is_given):
            raise error
        assert caught.value.hint == words


def test_every_advice_about_base_url_is_known() -> None:
    """An advice that the package writes in other words than the table's would stay in doubt."""
    package = Path(imagenet_prep.__file__).parent
    modules = [*existing(package / "fetch", "*.py"), package / "ilsvrc2012" / "arrivals.py"]
    texts: list[str] = []
    for module in modules:
        if module.stem != "base_url_words":
            nodes = ast.walk(ast.parse(module.read_text()))
            values = [node.value for node in nodes if isinstance(node, ast.Constant)]
            texts += [text for text in values if isinstance(text, str) and "if you set" in text]
    in_parts = {"--base-url if you set it"}  # a constant: its sentences are rows above
    assert in_parts < set(texts)
    for text in set(texts) - in_parts:
        with pytest.raises(NetworkError) as caught, about_base_url(is_given=False):
            raise NetworkError("what", "detail", text)
        assert "if you set" not in caught.value.hint, text
