"""The file server that other test servers are made from."""

from __future__ import annotations

import pytest
import requests
from file_server import parse_range, serve
from hypothesis import given
from hypothesis import strategies as st

CONTENT = bytes(range(256)) * 40
AUTH = (b"ada", "pässword:1".encode())


@pytest.fixture
def url(tmp_path):
    """A running server of one file, a.tar."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar").write_bytes(CONTENT)
    (tmp_path / "secret").write_text("outside")
    with serve(tmp_path / "served", "ada", "pässword:1") as url:
        yield url


def get(url, method="GET", auth=AUTH, **headers):
    """A request without any help from requests."""
    return requests.request(method, url, headers=headers, auth=auth, timeout=5)


def test_wants_credentials(url):
    """Without credentials, or with wrong ones, it answers 401 and says that it wants Basic ones."""
    for auth in (None, ("ada", "wrong"), ("", "")):
        response = requests.get(url + "a.tar", auth=auth, timeout=5)
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("Basic ")
        assert response.content == b""


def test_whole_file(url):
    """A GET gives the file with its length, type and version."""
    response = get(url + "a.tar")
    assert (response.status_code, response.content) == (200, CONTENT)
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["ETag"].startswith('"')
    assert response.headers["Last-Modified"].endswith("GMT")


@pytest.mark.parametrize(
    ("span", "start", "stop"), [("100-299", 100, 300), ("10000-", 10000, 10240), ("-5", 10235, 10240)]
)
def test_range(url, span, start, stop):
    """A range comes as 206 with an exact Content-Range."""
    response = get(url + "a.tar", Range=f"bytes={span}")
    assert (response.status_code, response.content) == (206, CONTENT[start:stop])
    assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/10240"


def test_range_beyond_the_end(url):
    """A range that isn't there is answered with 416 and the length."""
    for span in ("bytes=10240-", "bytes=20000-20001", "bytes=-0"):
        response = get(url + "a.tar", Range=span)
        assert (response.status_code, response.content) == (416, b"")
        assert response.headers["Content-Range"] == "bytes */10240"


def test_if_range(url):
    """A range of another version is answered with the whole file."""
    etag = get(url + "a.tar", "HEAD").headers["ETag"]
    assert get(url + "a.tar", Range="bytes=5-", **{"If-Range": etag}).status_code == 206
    assert get(url + "a.tar", Range="bytes=5-", **{"If-Range": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["", "..", "../secret", "..%2fsecret", "%00"])
def test_nothing_else(url, name):
    """Anything but a file right in the folder is 404."""
    request = requests.Request("GET", url, auth=AUTH).prepare()
    request.url = url + name  # as it is: requests would tidy the dots away
    with requests.Session() as session:
        assert session.send(request, timeout=5).status_code == 404


@given(size=st.integers(1, 50), first=st.integers(0, 60), last=st.none() | st.integers(0, 60))
def test_parse_range(size, first, last):
    """A range selects just the bytes that Python's own slicing does."""
    span = parse_range(f"bytes={first}-{'' if last is None else last}", size)
    if last is not None and last < first:
        assert span is None
    else:
        assert span is not None
        assert list(range(size))[slice(*span)] == list(range(size))[first : None if last is None else last + 1]
