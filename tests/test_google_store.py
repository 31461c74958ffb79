"""Sets in gs://, on a local server that speaks Google's API: made, checked, resumed, and refused
with Google's variables.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bounded import kill_group
from conftest import stores_for_a_while
from existing import existing
from google_server import KEY_ID, PAGE, GoogleServer, run_google_server
from made_sets import ENGINE
from made_sets import PART as PART_OF_A_SET
from running import prep
from test_objects import until

from imagenet_prep import Layout, convert
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.storage.location import locate, open_store
from imagenet_prep.storage.object_store import PART

OF_A_PART = ("--train-shards", "8", "--validation-shards", "8", "--allow-incomplete", "--quiet")
pytestmark = pytest.mark.objects


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    """The server."""
    with run_google_server() as running:
        running.account(tmp_path_factory.getbasetemp())
        yield running


@pytest.fixture
def google(
    server: GoogleServer,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[GoogleServer]:
    """The same, with the environment that leads to it, and nothing in it."""
    account = tmp_path_factory.getbasetemp() / f"{KEY_ID}.json"
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(account))
    monkeypatch.setenv("GOOGLE_ALLOW_HTTP", "true")
    monkeypatch.setenv("IMAGENET_PREP_RETRY_SECONDS", "5")
    server.objects.clear()
    server.uploads.clear()
    server.seen.clear()
    with stores_for_a_while():
        yield server


def test_requests_of_a_store(google: GoogleServer) -> None:
    """An object is written at once or in parts, read, listed over several pages, claimed and
    deleted.
    """
    store = open_store(locate("gs://bucket/folder"))
    names = [f"{number:02d}" for number in range(2 * PAGE + 1)]
    for name in names:
        assert store.claim(name, name.encode()) == name.encode()
    assert store.claim("00", b"other") == b"00"
    assert store.list() == names
    large = bytes(range(256)) * (PART // 256) + b"and another part"
    with store.create("large") as sink:
        sink.write([large[:PART]])
        sink.write([large[PART:]])
        sink.commit()
    assert google.objects["bucket/folder/large"][0] == large
    assert [*map(bytes, store.read_ranges("large", [(3, 7), (PART, PART + 3)]))] == [
        large[3:7],
        b"and",
    ]
    store.delete("large")
    store.delete("large")
    assert store.load("large") is None
    assert any("continuation-token" in path for _, path in google.seen)


def test_a_set_is_made_resumed_and_checked(
    google: GoogleServer, made_tiny: MadeSet, tmp_path: Path
) -> None:
    """Killed after two shards, made to its end, verified, and read from there: the bytes of a
    folder.
    """
    raw_dir = made_tiny.archives["train"].parent
    convert(Layout(tmp_path / "here", raw_dir), ENGINE, PART_OF_A_SET)
    shards = {path.name: path.read_bytes() for path in existing(tmp_path / "here", "*-of-*")}
    arguments = ["convert", "gs://bucket/set", "--raw", str(raw_dir), *OF_A_PART]
    process = subprocess.Popen(
        [sys.executable, "-m", "imagenet_prep", *arguments],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ},
    )
    try:
        until(lambda: len(made_shards(google)) >= 2 or process.poll() is not None)
    finally:
        kill_group(process)
    done = prep(*arguments)
    assert done.returncode == 0, done.stderr
    assert made_shards(google) == shards
    verified = prep("verify", "gs://bucket/set", "--quiet")
    assert verified.returncode == 0, verified.stderr
    google.put("bucket/set/train-00001-of-00008", shards["train-00002-of-00008"])
    damaged = prep("verify", "gs://bucket/set", "--quiet")
    assert damaged.returncode == 3, damaged.stderr
    assert "train-00001-of-00008" in damaged.stdout + damaged.stderr


def made_shards(google: GoogleServer) -> dict[str, bytes]:
    """The shards that are there, by name."""
    found = {
        name.removeprefix("bucket/set/"): content
        for name, (content, _) in google.objects.copy().items()
    }
    return {name: content for name, content in found.items() if "-of-" in name and "/" not in name}


def test_a_wrong_key_names_the_variables_of_google(
    google: GoogleServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that the server does not know, and a file that is none: Google's variables, no other
    store's.
    """
    account = google.account(tmp_path, "another-key")
    for path in (account, tmp_path / "no-such-file.json"):
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(path))
        for command in ("verify", "status"):
            refused = prep(command, "gs://bucket/set")
            assert refused.returncode == 6, refused.stderr
            assert "GOOGLE_SERVICE_ACCOUNT" in refused.stderr
            assert "AWS" not in refused.stderr
            assert "AZURE" not in refused.stderr
            assert "lack" not in refused.stderr
