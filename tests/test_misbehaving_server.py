"""A server that misbehaves by script: the right file, or the right exit status, and never a wrong
byte under its name.

Each row of the table, with a digest over four connections and without one over a single one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import surroundings
from fault_server import CANARY
from misbehaviour import TABLE
from scripted_server import (
    CONTENT,
    NEW,
    OTHER,
    RIGHT,
    SIZE,
    Behaviour,
    Outcome,
    ScriptedServer,
    scripted_server,
)

from imagenet_prep import DownloadOptions, Layout, PrepError, download
from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.partial import find_leftover
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Manner, fetch
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.model import Silent

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]  # a case that waits for ever fails soon

TRAIN = ARCHIVES["train"]
MD5 = hashlib.md5(CONTENT).hexdigest()
SETTINGS = [(True, 4), (False, 1)]
VERSIONS = (OTHER, CONTENT[:-512])


def _id(has_digest: bool, connections: int) -> str:
    return f"{'digest' if has_digest else 'plain'}-{connections}"


CASES = [
    pytest.param(row, *setting, id=f"{row.name}-{_id(*setting)}")
    for row in TABLE
    for setting in SETTINGS
    if (row.digest if setting[0] else row.plain) is not None
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    """A server of one file."""
    with scripted_server(tmp_path / "served") as server:
        yield server


def _pace(stall: float) -> Pace:
    waits = {"first_wait": 0.001, "longest_wait": 0.01, "longest_retry_after": 0.05}
    return Pace(
        tries=4,
        stall=stall,
        least_speed=1000,
        slow_after=1,
        save_every=0.05,
        segment=64 << 10,
        **waits,
    )


def _download(
    url: str, layout: Layout, has_digest: bool, connections: int, stall: float = 10
) -> list[str]:
    """Fetch the train archive as a new process would; what was noted."""
    progress = Silent()
    known = {"digests": {"train": MD5}} if has_digest else {"check_digest": False}
    options = {"connections": connections, "pace": _pace(stall), **known}
    download(layout, DownloadOptions(base_url=url, **options), only=["train"], progress=progress)  # type: ignore[arg-type]
    return progress.notes


def _run(
    url: str, layout: Layout, has_digest: bool, connections: int, stall: float = 10
) -> tuple[Outcome, str]:
    """What a download ends with, and what was said: notes or the error;
    what must hold of any end is made sure.
    """
    error = None
    try:
        notes = _download(url, layout, has_digest, connections, stall)
    except PrepError as caught:
        error = caught
    if error is not None:
        assert not layout.download_path(TRAIN).exists()
        assert 2 <= len(str(error).splitlines()) <= 3
        assert CANARY not in str(error)
        return error.exit_code, str(error)
    assert not layout.part_path(TRAIN.filename).exists()
    content = layout.download_path(TRAIN).read_bytes()
    return RIGHT if content == CONTENT else NEW if content in VERSIONS else "wrong", "\n".join(
        notes
    )


def _kept(layout: Layout) -> int:
    left = find_leftover(layout.part_path(TRAIN.filename))
    return left[1].size if left else 0


@pytest.mark.parametrize(("row", "has_digest", "connections"), CASES)
def test_it_ends_rightly(
    server: ScriptedServer, tmp_path: Path, row: Behaviour, has_digest: bool, connections: int
) -> None:
    """The right file or the right status; what had arrived is not thrown away;
    and no refusal is for ever.
    """
    layout = Layout(tmp_path / "data")
    expected = row.digest if has_digest else row.plain
    server.misbehave(row)
    outcome, said = _run(server.url, layout, has_digest, connections, row.stall)
    assert outcome == expected, said
    assert row.loses or "starting over" not in said
    assert {seen.headers["Accept-Encoding"] for seen in server.seen} == {"identity"}
    if outcome in (RIGHT, NEW):
        return
    kept = _kept(layout)
    server.misbehave(None)
    server.content, server.version, server.body_bytes = CONTENT, 1, 0
    outcome, said = _run(server.url, layout, has_digest, connections)
    assert outcome == RIGHT, said
    assert row.loses or server.body_bytes <= SIZE - kept


@pytest.mark.parametrize(
    ("row", "has_digest", "connections"),
    [
        pytest.param(row, *setting, id=f"{row.name}-{_id(*setting)}")
        for row in surroundings.TABLE
        for setting in SETTINGS
    ],
)
def test_it_ends_rightly_wherever_it_runs(
    server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    row: surroundings.Surroundings,
    has_digest: bool,
    connections: int,
) -> None:
    """The same of disks, clocks, proxies, certificates and addresses;
    once they are right again, it goes on.
    """
    with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        place = surroundings.Place(server, tmp_path, patch, stack, server.url)
        layout, mend = Layout(place.data), row.make(place)
        outcome, said = _run(
            place.url, layout, has_digest, connections, stall=0.2 if "silent" in row.name else 10
        )
        assert outcome == row.outcome, said
        assert [word for word in row.words if word not in said] == []
        patch.undo()
        if callable(mend):
            mend()
        if outcome != RIGHT:
            kept, server.body_bytes = _kept(layout), 0
            outcome, said = _run(server.url, layout, has_digest, connections)
            assert outcome == RIGHT, said
            assert server.body_bytes <= SIZE - kept
            assert "starting over" not in said


def test_a_length_that_is_known_need_not_be_told(server: ScriptedServer, tmp_path: Path) -> None:
    """With a digest, an answer that tells no length is as good as any."""
    server.misbehave(next(row for row in TABLE if row.act.__name__ == "no_length_at_all"))
    session, url, pace = Session(server.url, 10), f"{server.url}a.tar", _pace(10)
    with pytest.raises(NetworkError, match="doesn't report a valid size of"):
        inspect(session, url, pace, size=SIZE)
    remote = inspect(session, url, pace, size=SIZE, has_digest=True)
    fetched = fetch(
        session, url, tmp_path / "part", Manner(pace=pace), remote=remote, digests={"md5": MD5}
    )
    assert fetched.is_right
