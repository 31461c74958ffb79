"""Every kind of request to a store, each with every fault of a network, twice in turn:
retried, with the same bytes.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE
from made_sets import PART as PART_OF_A_SET
from object_server import KEY, READER, SECRET, Fault, ObjectServer, Proxy, run_proxy, times
from running import prep

from imagenet_prep import Layout, convert
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import (
    AccessError,
    InputError,
    NetworkError,
    PrepError,
    UsageError,
    WriteError,
)
from imagenet_prep.storage.asking import ENDPOINTS, endpoint_variable, failure
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import Location, locate, open_store, remembering
from imagenet_prep.storage.object_store import ObjectStore, client

CONTENT = bytes(range(256)) * 8
PART = 5 << 20
"""Bytes of a part of an upload here, instead of 8 MB: stores take none that is smaller."""

LARGE = CONTENT * (PART // len(CONTENT)) + b"and another part"


@pytest.fixture(scope="module")
def proxied(object_server: ObjectServer) -> Iterator[Proxy]:
    """A proxy before the server."""
    with run_proxy(object_server) as running:
        yield running


@pytest.fixture
def proxy(
    proxied: Proxy, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Proxy]:
    """The same, with the environment that leads to it, and nothing seen or to fail yet."""
    for name, value in objects.environment_by(proxied.port).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("imagenet_prep.storage.object_store.PART", PART)
    proxied.seen.clear()
    client.cache_clear()
    yield proxied
    proxied.fault = lambda method, path: None


@pytest.fixture(scope="module")
def place(object_server: ObjectServer) -> Iterator[Location]:
    """A folder of a bucket with three objects."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in object_server.environment.items():
            environment.setenv(name, value)
        folder = locate(object_server.new_bucket())
        assert isinstance(folder, Location)
        for name in ("a", "b", "c"):
            folder.store.put(f"folder/{name}", CONTENT)
        yield folder


def upload(store: ObjectStore) -> bytes:
    """Write an object in parts, and read it again."""
    with store.create("large") as sink:
        for start in range(0, len(LARGE), PART // 8):
            sink.write([LARGE[start : start + PART // 8]])
        sink.commit()
    return bytes(store.get("large", len(LARGE)))


def put(store: ObjectStore) -> bytes:
    """Write an object, and read it again."""
    store.put("new", CONTENT)
    return bytes(store.get("new", len(CONTENT)))


def delete(store: ObjectStore) -> object:
    """Delete an object, and look for it."""
    store.put("old", CONTENT)
    store.delete("old")
    return store.find("old")


def claim(store: ObjectStore) -> object:
    """Claim a name that is free: by a conditional write, and by the content."""
    for name in ("claimed", "created"):
        store.delete(name)
    is_new = store.put("created", CONTENT, is_new=True)
    return is_new, store.claim("claimed", CONTENT), store.put("created", b"other", is_new=True)


REQUESTS: dict[str, tuple[str, str, Callable[[ObjectStore], Any], object]] = {
    "find": ("HEAD", "/a$", lambda store: store.size("a"), len(CONTENT)),
    "get": ("GET", "/a$", lambda store: bytes(store.get("a", 1 << 20)), CONTENT),
    "range": (
        "GET",
        "/a$",
        lambda store: [*map(bytes, store.read_ranges("a", [(3, 700)]))],
        [CONTENT[3:700]],
    ),
    "ranges": (
        "GET",
        "/a$",
        lambda store: [*map(bytes, store.read_ranges("a", [(0, 9), (9, 9), (900, 1500)]))],
        [CONTENT[:9], b"", CONTENT[900:1500]],
    ),
    "list": (
        "GET",
        "list-type",
        lambda store: [each.name for each in store.list_folder() if len(each.name) == 1],
        ["a", "b", "c"],
    ),
    "has below": ("GET", "list-type", lambda store: store.has_below(""), True),
    "put": ("PUT", "/new$", put, CONTENT),
    "delete": ("POST", "\\?delete", delete, None),
    "claim": ("PUT", "/c(reat|laim)ed$", claim, (True, CONTENT, False)),
    "begin an upload": ("POST", "uploads", upload, LARGE),
    "a part": ("PUT", "partNumber", upload, LARGE),
    "end an upload": ("POST", "uploadId", upload, LARGE),
}


@pytest.mark.parametrize("fault", ["503", "reset", "lost", "truncate"])
@pytest.mark.parametrize("request_of", REQUESTS)
def test_a_fault_twice_in_turn(
    proxy: Proxy, place: Location, request_of: str, fault: Fault
) -> None:
    """The request is made again until it is answered,
    and its outcome is that of one that was answered at once.
    """
    method, pattern, ask, expected = REQUESTS[request_of]
    store = (
        place.store.below(place.key) if method in ("HEAD", "GET") else place.store.below("other")
    )
    assert isinstance(store, ObjectStore)
    left = [2]
    struck = times(2, fault, method, pattern)

    def count(found: str, path: str) -> Fault | None:
        hit = struck(found, path)
        left[0] -= hit is not None
        return hit

    proxy.fault = count
    assert ask(store) == expected
    is_looked_for = (request_of, fault) == (
        "end an upload",
        "truncate",
    )  # the object is there: nothing is asked twice
    assert left == [1 if is_looked_for else 0], "both faults met a request"


def in_turn(method: str, pattern: str, *faults: Fault) -> Callable[[str, str], Fault | None]:
    """These faults, one after the other, for the first requests of a
    method whose path has the pattern.
    """
    left = [*faults]

    def struck(found: str, path: str) -> Fault | None:
        return left.pop(0) if left and found == method and re.search(pattern, path) else None

    return struck


def test_a_repeated_end_meets_no_such_upload(proxy: Proxy, place: Location) -> None:
    """The first answer was lost, and the object is there: its content decides."""
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    proxy.fault = in_turn("POST", "uploadId", "lost", (404, "NoSuchUpload"))
    assert upload(store) == LARGE


def test_an_upload_that_the_store_lost(proxy: Proxy, place: Location) -> None:
    """No object, or the one of before with as many bytes:
    an error that has the shard made once more.
    """
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    for before in (b"", LARGE[::-1]):
        store.delete("large")
        if before:
            store.put("large", before)
        proxy.fault = in_turn("POST", "uploadId", (404, "NoSuchUpload"))
        with pytest.raises(WriteError, match=r"upload of s3://.*/other/large was not completed"):
            upload(store)
    proxy.fault = in_turn("POST", "uploadId", (200, "InternalError"), (200, "InternalError"))
    assert upload(store) == LARGE


PAGE = b"<html>Please sign in</html>"


@pytest.mark.parametrize("answer", [b"", PAGE, (200, "AccessDenied"), (200, "ExpiredToken")])
def test_an_end_that_is_an_error_with_status_200(
    proxy: Proxy, place: Location, answer: Fault
) -> None:
    """The store made nothing: an error that has the shard made once more."""
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    store.delete("large")
    proxy.fault = in_turn("POST", "uploadId", answer)
    with pytest.raises(WriteError, match=r"upload of s3://.*/other/large was not completed"):
        upload(store)
    assert store.find("large") is None


def test_an_end_whose_answer_is_half(proxy: Proxy, place: Location) -> None:
    """Half of an answer that announces no more: the object is there, and its content decides."""
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    proxy.fault = in_turn("POST", "uploadId", "short")
    assert upload(store) == LARGE


NOT_DELETED = (
    "<DeleteResult><Error><Key>other/old</Key><Code>{}</Code>"
    "<Message>As a test asks</Message></Error></DeleteResult>"
)


@pytest.mark.parametrize("code", ["InternalError", "SlowDown"])
def test_a_deletion_that_fails_with_status_200(proxy: Proxy, place: Location, code: str) -> None:
    """It is tried again; what lasts is an error with the store's code."""
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    answer = NOT_DELETED.format(code).encode()
    proxy.fault = in_turn("POST", "\\?delete", answer, answer)
    assert delete(store) is None
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("IMAGENET_PREP_RETRY_SECONDS", "1")
        client.cache_clear()
        proxy.fault = times(1000, answer, "POST", "\\?delete")
        with pytest.raises(NetworkError, match=code):
            delete(store)


def test_a_list_of_many_pages_cut(
    proxy: Proxy, place: Location, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut on a page, or between two: all names are listed, once; a page that never comes is an
    error of the network.
    """
    store = place.store.below("many")
    assert isinstance(store, ObjectStore)
    names = [f"{number:04d}" for number in range(1003)]
    with pytest.MonkeyPatch.context() as past_the_proxy, ThreadPoolExecutor(8) as pool:
        past_the_proxy.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{objects.port}")
        client.cache_clear()
        list(pool.map(lambda name: store.put(name, b""), names))
    client.cache_clear()
    second = "continuation-token"
    for fault in ("truncate", "short", "lost", "reset"):
        for pattern in ("list-type", second):
            proxy.fault = in_turn("GET", pattern, fault, fault)
            assert store.list() == names
    proxy.fault = in_turn("GET", second, "truncate", "lost", "truncate", "short")
    assert [each.name for each in store.list_folder()] == names
    monkeypatch.setenv("IMAGENET_PREP_RETRY_SECONDS", "1")
    client.cache_clear()
    proxy.fault = times(1000, "reset", "GET", second)
    with pytest.raises(NetworkError, match="no usable answer"):
        store.list()


REFUSED: list[tuple[str, Fault, Callable[[ObjectStore], Any], type[PrepError], str]] = [
    (
        "PUT",
        (404, "NoSuchKey"),
        lambda store: store.put("a", b""),
        InputError,
        "the store finds no bucket s3://BUCKET",
    ),
    (
        "PUT",
        (404, "NoSuchBucket"),
        lambda store: store.put("a", b""),
        InputError,
        "finds no bucket s3://BUCKET",
    ),
    ("POST", (404, "NoSuchBucket"), upload, InputError, "the store finds no bucket s3://BUCKET"),
    ("PUT", (403, "AccessDenied"), lambda store: store.put("a", b""), AccessError, "s3:PutObject"),
    ("GET", (403, "AccessDenied"), lambda store: store.get("a", 9), AccessError, "s3:GetObject"),
    ("GET", (403, "AccessDenied"), lambda store: store.list(), AccessError, "s3:ListBucket"),
    (
        "POST",
        (403, "AccessDenied"),
        lambda store: store.delete("a"),
        AccessError,
        "s3:DeleteObject",
    ),
    (
        "POST",
        NOT_DELETED.format("AccessDenied").encode(),
        lambda store: store.delete("old"),
        AccessError,
        "s3:DeleteObject",
    ),
    ("HEAD", (403, ""), lambda store: store.find("a"), AccessError, "s3:GetObject"),
    (
        "HEAD",
        (403, ""),
        lambda store: store.find("a"),
        AccessError,
        "the store refuses these credentials, or they lack the right to read objects",
    ),
    (
        "GET",
        (403, "RequestTimeTooSkewed"),
        lambda store: store.list(),
        AccessError,
        "this machine's clock differs",
    ),
    (
        "PUT",
        (400, "ExpiredToken"),
        lambda store: store.put("a", b""),
        AccessError,
        "also AWS_SESSION_TOKEN",
    ),
    (
        "PUT",
        (403, "SignatureDoesNotMatch"),
        lambda store: store.put("a", b""),
        AccessError,
        "check AWS_ACCESS_KEY_ID",
    ),
    (
        "PUT",
        (400, "ExpiredToken"),
        lambda store: store.put("a", b""),
        AccessError,
        "the credentials have expired",
    ),
    (
        "GET",
        (403, "RequestExpired"),
        lambda store: store.list(),
        AccessError,
        "the credentials have expired",
    ),
]


@pytest.mark.parametrize(("method", "fault", "ask", "kind", "words"), REFUSED)
def test_what_a_refusal_says(
    proxy: Proxy,
    place: Location,
    method: str,
    fault: Fault,
    ask: Callable[[ObjectStore], Any],
    kind: type[PrepError],
    words: str,
) -> None:
    """The bucket that is not there, the right that is missing, or the credentials:
    at the first answer.
    """
    store = place.store.below("other")
    assert isinstance(store, ObjectStore)
    proxy.fault = lambda found, path: fault if found == method else None
    with pytest.raises(kind) as caught:
        ask(store)
    assert words.replace("BUCKET", store.bucket) in str(caught.value)
    assert len([each for each in proxy.seen if each[0] == method]) == 1


def test_who_may_only_read(
    objects: ObjectServer, place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real server's refusal: the right that is missing."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", READER)
    client.cache_clear()
    assert place.store.below(place.key).load("a") == CONTENT
    with pytest.raises(AccessError, match=r"s3:PutObject"):
        place.store.put("a", b"")


@pytest.mark.parametrize(
    ("scheme", "right"), [("az", "Storage Blob Data Contributor"), ("gs", "storage.objects.create")]
)
def test_other_stores_are_advised_by_their_own_names(scheme: str, right: str) -> None:
    """A wrong key of Azure does not ask for one of Google."""
    wrong = failure(
        f"{scheme}://b/a", OSError("status code: 403 <Code>AuthenticationFailed</Code>"), "write"
    )
    lacking = failure(
        f"{scheme}://b/a", OSError("status code: 403 <Code>AccessDenied</Code>"), "write"
    )
    assert isinstance(wrong, AccessError)
    assert ("GOOGLE" in wrong.hint, "AZURE" in wrong.hint) == (scheme == "gs", scheme == "az")
    assert right in str(lacking)


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("AccessDenied", "or they lack the right to write objects: s3:PutObject", "AWS_PROFILE"),
        ("InvalidAccessKeyId", "or the store refuses them", "AWS_PROFILE"),
        ("ExpiredToken", "the credentials have expired", "renew your credentials"),
    ],
)
def test_without_a_key_in_the_environment_both_causes_are_named(
    monkeypatch: pytest.MonkeyPatch, code: str, words: str, hint: str
) -> None:
    """A role or a profile may give credentials: a missing right is named for them, too."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    error = failure("s3://b/a", OSError(f"status code: 403 <Code>{code}</Code>"), "write")
    assert isinstance(error, AccessError)
    assert words in error.detail
    assert hint in error.hint


def test_a_request_without_credentials_is_not_called_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None were given: to set some, requests must be signed again."""
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    error = failure("gs://b/a", OSError("status code: 401"), "list")
    assert isinstance(error, AccessError)
    assert "no credentials were given" in error.detail
    assert error.hint.startswith("unset GOOGLE_SKIP_SIGNATURE, and set GOOGLE_SERVICE_ACCOUNT")


def test_another_server_is_advised_by_the_variable_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where one names a server, it is to be checked, not to be set."""
    lost = OSError("status code: 500")
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert "for a server other than AWS, set AWS_ENDPOINT_URL" in str(failure("s3://b/a", lost))
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    assert str(failure("s3://b/a", lost)).endswith("; check AWS_ENDPOINT")
    assert "AWS" not in str(failure("gs://b/a", lost))
    missing = OSError("status code: 404 <Code>ContainerNotFound</Code>")
    assert "the store finds no container az://b" in str(failure("az://b/a", missing))


@pytest.mark.parametrize(
    "answer",
    [
        "Received redirect without LOCATION, perhaps another region",
        "status code: 400 <Code>AuthorizationHeaderMalformed</Code>",
        "status code: 301 <Code>PermanentRedirect</Code>",
    ],
)
def test_another_region_is_advised_and_not_another_server(answer: str) -> None:
    """To try again would not help, nor would another URL."""
    error = failure("s3://b/a", OSError(answer))
    assert isinstance(error, InputError)
    assert "set AWS_REGION to the region of the bucket" in error.hint


@pytest.mark.objects
def test_a_server_without_a_scheme_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of object stores panics at such an address."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    client.cache_clear()
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL is 'localhost:9000'") as caught:
        locate("s3://bucket/a").exists()
    assert "AWS_ENDPOINT_URL=http://localhost:9000 and AWS_ALLOW_HTTP=true" in caught.value.hint


@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "soon"])
def test_a_number_of_seconds_that_is_none_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """It never ends as a bug in the library of object stores."""
    monkeypatch.setenv("IMAGENET_PREP_RETRY_SECONDS", value)
    client.cache_clear()
    with pytest.raises(UsageError, match="expected a number of seconds"):
        locate("s3://bucket/a").exists()


@pytest.mark.objects
@pytest.mark.parametrize(
    ("scheme", "variable", "reason", "advice"),
    [
        ("s3", "AWS_SKIP_SIGNATURE", '"maybe" as boolean', "variables AWS_..., or set"),
        ("gs", "GOOGLE_SKIP_SIGNATURE", '"maybe" as boolean', "variables GOOGLE_..., or set"),
        ("az", "AZURE_SKIP_SIGNATURE", "Account must be", "needs only the name and AZURE_SKIP"),
    ],
)
def test_the_reason_of_the_library_is_shown(
    scheme: str, variable: str, reason: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that can't be made: the library alone knows why."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "true" if scheme == "az" else "maybe")
    client.cache_clear()
    with pytest.raises(AccessError, match="with the settings of this process") as caught:
        client(scheme, "b")
    assert reason in caught.value.detail
    assert advice in caught.value.hint


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
def test_a_server_without_tls_is_refused_first(
    proxy: Proxy, place: Location, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without AWS_ALLOW_HTTP: before the first request."""
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(AccessError, match=rf"without TLS: {name} "):
        place.store.find("a")
    assert proxy.seen == []


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        ((), ""),
        (("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), "AWS_ENDPOINT_URL"),
        (("AWS_ENDPOINT_URL", "AWS_ENDPOINT"), "AWS_ENDPOINT"),
        (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"), "AWS_ENDPOINT_URL_S3"),
    ],
)
def test_one_variable_names_the_server(
    names: tuple[str, ...], counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Obstore takes that of S3 alone, otherwise the last one in the environment."""
    for name in ENDPOINTS["s3"]:
        monkeypatch.delenv(name, raising=False)
    for name in names:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert endpoint_variable("s3") == counts


PROFILES = """
[profile tests]
region = us-east-1
endpoint_url = http://127.0.0.1:{port}

[profile broken]
source_profile = nobody
role_arn = arn:aws:iam::1:role/x
"""


def test_profiles_are_read(
    objects: ObjectServer, place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS_PROFILE and the files of ~/.aws give keys, region and server;
    a profile that can't be used says so.
    """
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "config").write_text(PROFILES.format(port=objects.port))
    (folder / "credentials").write_text(
        f"[tests]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    store = place.store.below(place.key)
    monkeypatch.setenv("AWS_PROFILE", "tests")
    client.cache_clear()
    assert store.load("a") == CONTENT
    for profile in ("nobody", "broken"):
        monkeypatch.setenv("AWS_PROFILE", profile)
        client.cache_clear()
        with pytest.raises(AccessError, match=rf"profile {profile} "):
            store.load("a")
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(
        AccessError,
        match=r"AWS_PROFILE .*botocore.* can't be imported",
    ):
        store.load("a")


OF_A_PART = (*("--train-shards", "8", "--validation-shards", "8", "--allow-incomplete", "--quiet"),)

# credentials that end ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((400, "ExpiredToken"), "the credentials have expired: status 400, ExpiredToken"),
        (
            (403, "InvalidAccessKeyId"),
            "the store refuses these credentials: status 403, InvalidAccessKeyId",
        ),
    ],
)
def test_credentials_that_end_in_mid_run(
    proxy: Proxy, place: Location, made_tiny: MadeSet, tmp_path: Path, answer: Fault, words: str
) -> None:
    """Once some shards are journalled, the store refuses everything: the refusal names what to
    renew, and the same command finishes with the right bytes, without making those again.
    """
    whole = tmp_path / "whole"
    raw_dir = made_tiny.archives["train"].parent
    convert(Layout(whole, raw_dir), ENGINE, PART_OF_A_SET)
    shards = {path.name: path.read_bytes() for path in existing(whole, "*-of-*")}
    there = place / f"ended-{tmp_path.name}"
    command = ["convert", there, "--raw", raw_dir, *OF_A_PART, "--workers", "1"]
    proxy.fault = ended_with_the_journal(answer)
    refused = prep(*command)
    assert refused.returncode == 6, refused.stderr
    assert words in refused.stderr
    assert "AWS_SESSION_TOKEN" in refused.stderr
    proxy.fault = lambda method, path: None
    assert len(list(there.glob("*-of-*"))) < len(shards)
    proxy.seen.clear()
    finished = prep(*command)
    assert finished.returncode == 0, finished.stderr
    assert {path.name: path.read_bytes() for path in existing(there, "*-of-*")} == shards
    made = [path for method, path in proxy.seen if is_shard(method, path)]
    assert len(made) <= len(shards) - 3, "those of the first second are not made again"


def is_shard(method: str, path: str) -> bool:
    """Whether this request writes a shard."""
    return method == "PUT" and "/index/" not in path and re.search(r"-of-\d+$", path) is not None


def ended_with_the_journal(answer: Fault) -> Callable[[str, str], Fault | None]:
    """Slow shards until at least three of them are journalled; then this answer to everything.

    On a busy machine the first journal may have fewer, so a later one is waited for.
    """
    written: list[str] = []
    journalled: list[str] = []

    def struck(method: str, path: str) -> Fault | None:
        if journalled:
            return answer
        if is_shard(method, path):
            written.append(path)  # the last one may not be finished
            return 0.25
        if method == "PUT" and "/journal-" in path and len(written) > 3:
            journalled.append(path)
        return None

    return struck


# how often it asks --------------------------------------------------------------------------------


def test_requests_before_the_first_image(proxy: Proxy, place: Location, tmp_path: Path) -> None:
    """A set of 22 classes in a store: its raw folder is listed once, its small tars are read by one
    request.

    Without that, 216 requests come before the first image, three of them for each class.
    """
    raw = tmp_path / "raw"
    raw.mkdir()
    make(raw, classes=22, per_class=9, validation=22, tiny=True)
    for path in existing(raw, "*"):
        save_bytes(place / "set" / "raw-data" / path.name, path.read_bytes())
    proxy.seen.clear()
    convert(Layout(place / "set"), ENGINE, PART_OF_A_SET)
    first = next(number for number, (method, path) in enumerate(proxy.seen) if "/index/" in path)
    before = Counter(
        "LIST" if "list-type" in path else method for method, path in proxy.seen[:first]
    )
    assert before["LIST"] <= 14
    assert before["HEAD"] <= 10
    assert len(proxy.seen[:first]) <= 72
    assert sum("raw-data" in path and "list-type" in path for _, path in proxy.seen) == 1


def test_lists_that_are_remembered(
    proxy: Proxy, place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder is listed once, and what this process writes or deletes is seen;
    a long list is not kept.
    """
    top = place / "remembered"
    for name in ("a", "b/c", "b/d/e"):
        save_bytes(top / name, CONTENT)
    with remembering(top):
        proxy.seen.clear()
        looks = [
            (top / name).exists()
            for name in ("a", "b", "b/c", "b/d/e", "no", "no/no", "b/no", "a/b", "b/d/e/f")
        ]
        assert looks == [True, True, True, True, False, False, False, False, False]
        assert [path.name for path in list(top.iterdir())] == ["b", "a"]
        assert len(proxy.seen) == 3
        assert open_store(top / "no").load("x") is None
        assert [len(proxy.seen), (top / "b" / "c").stat().st_size] == [3, len(CONTENT)]
        save_bytes(top / "new", CONTENT)
        (top / "b" / "d" / "e").unlink()
        assert [(top / name).exists() for name in ("new", "b/d/e", "b/c")] == [True, False, True]
        monkeypatch.setattr("imagenet_prep.storage.object_store._MOST_LISTED", 1)
        assert [(top / name).exists() for name in ("new", "b/d/e", "b/c", "b")] == [
            True,
            False,
            True,
            True,
        ]
        assert (place / "a").is_file()
    proxy.seen.clear()
    assert (top / "new").is_file()
    assert len(proxy.seen) == 1


# commands that take a URL -------------------------------------------------------------------------


def test_diff_and_export_of_a_copy(
    place: Location, objects: ObjectServer, tmp_path: Path, made_tiny: MadeSet
) -> None:
    """A set that was copied to a store is the same by diff,
    and is exported here with the same bytes.
    """
    here, other, there = tmp_path / "here", tmp_path / "other", place / "copied"
    for folder, seed in ((here, 12345), (other, 1)):
        layout = Layout(folder, made_tiny.archives["train"].parent)
        convert(layout, ENGINE, PART_OF_A_SET.replace(seed=seed))
    for path in existing(here, "**/*"):
        if path.is_file():
            save_bytes(there / path.relative_to(here), path.read_bytes())
    assert prep("diff", there, here).returncode == 0
    found = [prep("diff", other, first, "--workers", "2") for first in (here, there)]
    assert [each.returncode for each in found] == [3, 3]
    assert found[1].stdout.replace(str(there), str(here)) == found[0].stdout
    for name, source in (("a", here), ("b", there)):
        exported = prep("export", "webdataset", source, tmp_path / name, "--quiet")
        assert exported.returncode == 0, exported.stderr
    tars = [
        {path.name: path.read_bytes() for path in existing(tmp_path / name, "*.tar")}
        for name in "ab"
    ]
    assert len(tars[0]) == 16
    assert tars[0] == tars[1]
    refused = prep("export", "webdataset", here, there / "out")
    assert (refused.returncode, "is a URL" in refused.stderr) == (2, True), refused.stderr
    refused = prep("export", "tfds", there, tmp_path / "c")
    assert (refused.returncode, "is a URL" in refused.stderr) == (2, True), refused.stderr
