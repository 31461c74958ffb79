"""Bytes that arrived are kept across kills; versions are never joined;
and nobody waits for ever, or unawares.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import Faults, FaultServer, fault_server
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from imagenet_prep.errors import NetworkError, WriteError
from imagenet_prep.fetch.partial import (
    PartialFile,
    Spans,
    find_leftover,
    forget,
    kept_bytes,
    state_path,
)
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import Remote, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Fetched, Manner, fetch
from imagenet_prep.model import Silent

SIZE = 3_000_000
HALF = SIZE // 2
CONTENT = random.Random(1).randbytes(SIZE)
OTHER = random.Random(2).randbytes(SIZE)
PACE = Pace(tries=4, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.05, segment=200_000)
REMOTE = Remote("http://a.org/x", 100, '"1"', None)


def md5(content: bytes) -> dict[str, str]:
    """Its digest as it is given to fetch."""
    return {"md5": hashlib.md5(content).hexdigest()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    """An open server of one file, a.tar."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar").write_bytes(CONTENT)
    with fault_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def mirror(tmp_path: Path, server: FaultServer) -> Iterator[FaultServer]:
    """Another server, on another port, with a copy that has another date."""
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "a.tar").write_bytes(CONTENT)
    os.utime(tmp_path / "mirror" / "a.tar", (1_600_000_000, 1_600_000_000))
    with fault_server(tmp_path / "mirror") as mirror:
        yield mirror


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Where the partial file goes."""
    return tmp_path / "partial" / "a.tar.part"


class Telling(Silent):
    """A Progress that remembers, with each note, how much of the part was there when it came."""

    def __init__(self, part: Path) -> None:
        super().__init__()
        self.part = part
        self.told: list[tuple[str, int]] = []

    def note(self, text: str) -> None:
        """Keep the line."""
        if "no more than 3 connections" in text:
            time.sleep(0.2)  # a slow terminal: the line with 2 must still come after it
        left = find_leftover(self.part)
        self.told.append((text, left[1].size if left else 0))

    def restarts(self) -> list[tuple[str, int]]:
        """What was said of starting over."""
        return [each for each in self.told if "starting over" in each[0]]


def run(
    server: FaultServer,
    part: Path,
    digests: dict[str, str],
    connections: int = 1,
    pace: Pace = PACE,
) -> tuple[Fetched, Telling]:
    """Fetch a.tar as a new process would."""
    progress = Telling(part)
    session = Session(server.url, pace.stall, progress.note)
    fetched = fetch(
        session, server.url + "a.tar", part, Manner(progress, connections, pace), digests=digests
    )
    return fetched, progress


def leave_half(server: FaultServer, part: Path, content: bytes = CONTENT) -> None:
    """Leave behind what a killed run leaves half-way."""
    remote = inspect(Session(server.url, PACE.stall), server.url + "a.tar", PACE)
    with PartialFile(part, remote) as file:
        file.reset()
        file.write(0, content[:HALF])
        file.save()
    server.seen.clear()


# what was written ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b'{"done": 3}',
        b'"done": [[0, 20]]',
        b'"done": [["a", 9], [1]]',
        b'"total": 5',
        None,
    ],
    ids=repr,
)
def test_a_map_that_makes_no_sense_is_not_believed(part: Path, damage: bytes | None) -> None:
    """Damaged, of another file, or naming bytes beyond the end of the part (None:
    that has become shorter).
    """
    with PartialFile(part, REMOTE) as file:
        file.write(0, b"x" * 15)
        file.save()
    path = state_path(part)
    state = json.loads(path.read_text())
    if damage is None:
        os.truncate(part, 10)
    elif damage.startswith(b'"'):
        path.write_text(json.dumps({**state, **json.loads(b"{" + damage + b"}")}))
    else:
        path.write_bytes(damage)
    assert kept_bytes(part, REMOTE) == 0


def test_after_a_disk_failed_nothing_is_saved(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed fsync the system may have dropped what was written,
    and the next fsync does not say so.
    """
    with PartialFile(part, REMOTE) as file:
        file.write(0, b"x" * 10)
        file.save()
        file.write(10, b"x" * 10)

        def fail(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(WriteError):
                file.save()
        file.write(20, b"x" * 10)
        file.save()
    assert kept_bytes(part, REMOTE) == 10


def test_a_transfer_is_saved_every_few_seconds(
    server: FaultServer, part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has come is made durable meanwhile."""
    saved: list[int] = []
    save = PartialFile.save
    monkeypatch.setattr(PartialFile, "save", lambda self: (saved.append(self.size), save(self)))
    server.faults = Faults(rate=3_000_000)
    pace = replace(PACE, save_every=0.2)
    fetch(Session(server.url, 2), server.url + "a.tar", part, Manner(connections=1, pace=pace))
    assert len(saved) > 2
    assert 0 < saved[0] < SIZE


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
@example([(0, 1), (1, 2)])
@example([(1, 2), (0, 1)])
def test_spans_are_a_set_of_positions(steps: list[tuple[int, int]]) -> None:
    """Whatever is added: the fewest sorted spans of what is there, its size, gaps and front."""
    spans, held = Spans(), set[int]()
    for start, stop in steps:
        spans.add(start, stop)
        held.update(range(start, stop))
    found = list(spans)
    assert {place for start, stop in found for place in range(start, stop)} == held
    assert all(before[1] < after[0] for before, after in pairwise(found))
    assert spans.size == len(held)
    assert {place for start, stop in spans.gaps(50) for place in range(start, stop)} == set(
        range(50)
    ) - held
    assert spans.front == next(place for place in range(50) if place not in held)


# another server, another version ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connections", "digests"), [(1, {}), (4, md5(CONTENT))], ids=["plain", "digest"]
)
def test_versions_are_never_joined(
    server: FaultServer, mirror: FaultServer, part: Path, digests: dict[str, str], connections: int
) -> None:
    """Another ETag, or another address without a digest:
    what is there goes, which is said while it is still there.
    """
    leave_half(server, part)
    _, progress = run(mirror, part, digests, connections)
    assert part.read_bytes() == CONTENT
    assert len(progress.restarts()) == (not digests)
    for text, size in progress.restarts():
        assert "another address" in text
        assert f"{HALF:,} bytes" in text
        assert size == HALF
    leave_half(server, part, OTHER)
    server.faults = Faults(headers={"ETag": '"another"'})
    _, progress = run(server, part, digests, connections)
    assert part.read_bytes() == CONTENT
    assert ["ETag or the date" in text for text, _ in progress.restarts()] == [True]


def test_two_servers_behind_one_address(server: FaultServer, part: Path) -> None:
    """Their ETags differ from request to request:
    bytes of the one are not put to those of the other.
    """
    server.faults = Faults(etags=('"one"', '"two"'), headers={"Last-Modified": None}, cut=300_000)
    fetched, progress = run(server, part, md5(CONTENT))
    assert (fetched.is_right, part.read_bytes()) == (True, CONTENT)
    assert progress.restarts() == []


def test_without_validator_and_digest_a_part_is_not_gone_on_with(
    server: FaultServer, part: Path
) -> None:
    """No date, and a weak ETag: nothing tells if the file has changed,
    so it starts over, and says why.
    """
    server.faults = Faults(headers={"ETag": 'W/"weak"', "Last-Modified": None})
    leave_half(server, part)
    _, progress = run(server, part, {}, connections=4)
    assert part.read_bytes() == CONTENT
    assert [seen.headers.get("Range") for seen in server.gets()] == [None]
    ((text, size),) = progress.restarts()
    assert "neither ETag nor date" in text
    assert size == HALF
    leave_half(server, part)
    _, progress = run(server, part, md5(CONTENT))
    assert progress.restarts() == []


def test_without_validator_and_digest_a_cut_means_the_beginning(
    server: FaultServer, part: Path
) -> None:
    """Nor is a part of this very run; once, then the server is given up."""
    server.faults = Faults(headers={"ETag": None, "Last-Modified": None}, cut=1_000_000, times=2)
    _, progress = run(server, part, {})  # the probe was the first
    assert part.read_bytes() == CONTENT
    assert [seen.start for seen in server.gets()] == [0, 0]
    ((text, size),) = progress.restarts()
    assert "neither ETag nor date" in text
    assert 0 < size <= 1_000_000
    forget(part)
    server.faults.times = 99
    with pytest.raises(NetworkError, match="started over once"):
        run(server, part, {})


# what waits, and for how long ---------------------------------------------------------------------


def test_a_body_below_the_minimum_speed_is_cut(server: FaultServer, part: Path) -> None:
    """Bytes that come too slowly are no progress:
    after the tries without any the server is given up.
    """
    server.faults = Faults(rate=500)
    with pytest.raises(NetworkError) as caught:
        run(server, part, {}, pace=replace(PACE, least_speed=100_000, slow_after=0.2, tries=3))
    assert "3 failed attempts" in caught.value.what
    assert "too slow (" in caught.value.detail
    assert "received data is kept" in caught.value.hint


def test_a_host_that_is_unknown_for_a_while_is_waited_for(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the server has answered, its name may come back;
    before that, an unknown name is final.
    """
    waits: list[str] = []
    url, pace = server.url.replace("127.0.0.1", "localhost"), replace(PACE, tries=3)
    known, unknown = (Session(url, 1, waits.append) for _ in range(2))
    inspect(known, url + "a.tar", pace)
    known._at_home.close()

    def fail(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(NetworkError, match="3 failed attempts"):
        inspect(known, url + "a.tar", pace)
    assert len(waits) == 1
    with pytest.raises(
        NetworkError, match=r"can't reach localhost:[0-9]+: no address was found for its name"
    ):
        inspect(unknown, url + "a.tar", pace)
    assert len(waits) == 1


# connections --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "status"), [(1, 403), (2, 503)])
def test_a_server_that_takes_fewer_connections_gets_fewer(
    server: FaultServer, part: Path, status: int, most: int
) -> None:
    """Those that it refuses while others work end, and it is said;
    the file comes over the others.
    """
    server.faults = Faults(most=most, refusal=status, rate=1_500_000)
    pace = replace(PACE, tries=1000)  # none is given up for its failures
    _, progress = run(server, part, {}, connections=4, pace=pace)
    assert part.read_bytes() == CONTENT
    ended = [text for text, _ in progress.told if "seems to accept no more than" in text]
    assert len(ended) == 4 - most
    assert f"no more than {most} connection" in ended[-1]


def test_a_body_above_the_minimum_speed_is_not_cut(server: FaultServer, part: Path) -> None:
    """The minimum is one of each while, not of the first moment."""
    server.faults = Faults(rate=3_000_000)
    _, progress = run(server, part, {}, pace=replace(PACE, least_speed=500_000, slow_after=0.2))
    assert progress.told == []
    assert len(server.gets()) == 1
