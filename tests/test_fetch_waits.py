"""Nothing hangs, and nobody waits unawares: slow servers, refused connections, answers that pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fault_server import PROBE, Faults, FaultServer, fault_server

from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.access import open_session
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.reply import Remote, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import Segments, fetch
from imagenet_prep.model import Silent

pytestmark = pytest.mark.once

SIZE = 3_000_000
CONTENT = random.Random(1).randbytes(SIZE)
PACE = Pace(tries=4, first_wait=0.001, longest_wait=0.01, stall=2, save_every=0.05, segment=200_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    """An open server of one file, a.tar."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar").write_bytes(CONTENT)
    with fault_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Where the partial file goes."""
    return tmp_path / "partial" / "a.tar.part"


def run(server: FaultServer, part: Path, connections: int = 1, pace: Pace = PACE) -> Silent:
    """Fetch a.tar; what was noted."""
    progress = Silent()
    session = Session(server.url, pace.stall, progress.note)
    fetch(session, server.url + "a.tar", part, progress, connections=connections, pace=pace)
    return progress


# slow ------------------------------------------------------------------------------------------------------------


def test_a_body_below_the_minimum_speed_is_cut(server: FaultServer, part: Path) -> None:
    """Bytes that come too slowly are no progress: after the tries without any the server is given up."""
    server.faults = Faults(rate=500)
    with pytest.raises(NetworkError) as caught:
        run(server, part, pace=replace(PACE, least_speed=100_000, slow_after=0.2, tries=3))
    assert "3 attempts" in caught.value.what
    assert "too slow (" in caught.value.detail
    assert "what has arrived is kept" in caught.value.hint


def test_a_body_above_the_minimum_speed_is_not_cut(server: FaultServer, part: Path) -> None:
    """The minimum is one of each while, not of the first moment."""
    server.faults = Faults(rate=3_000_000)
    progress = run(server, part, pace=replace(PACE, least_speed=500_000, slow_after=0.2))
    assert progress.notes == []
    assert len(server.gets()) == 1


def test_a_host_that_is_unknown_for_a_while_is_waited_for() -> None:
    """Once the server has answered, its name may come back."""
    waits: list[float] = []
    patience = Patience("a.tar", Pace(tries=3), waits.append, was_answered=True)
    for _ in range(2):
        patience.wait(CutError("can't reach nowhere: its name is not known", kind="unknown"))
    with pytest.raises(NetworkError, match="3 attempts"):
        patience.wait(CutError("can't reach nowhere: its name is not known", kind="unknown"))
    assert len(waits) == 2


# what is said ----------------------------------------------------------------------------------------------------


def test_every_wait_says_what_which_try_and_how_long(server: FaultServer, part: Path) -> None:
    """Before the first byte as later: the reason, the number of the try, the seconds."""
    server.faults = Faults(statuses=[(503, {"Retry-After": "1"})])
    assert run(server, part, pace=replace(PACE, longest_retry_after=0.01)).notes == [
        "a.tar: HTTP status 503; try 2 of 4 in 0 s"
    ]
    said: list[str] = []
    server.faults = Faults(statuses=[(503, {})])
    open_session(server.url, None, None, probe="a.tar", pace=PACE, note=said.append)
    assert said == ["a.tar: HTTP status 503; try 2 of 4 in 0 s"]
    said.clear()
    patience = Patience("a.tar", Pace(), lambda seconds: None, said.append)
    patience.wait(CutError("the connection broke", retry_after=7))
    assert said == ["a.tar: the connection broke; try 2 of 10 in 7 s"]


@pytest.mark.parametrize("arrived", [False, True])
def test_what_has_arrived_is_spoken_of_only_if_something_has(server: FaultServer, part: Path, arrived: bool) -> None:
    """An error doesn't promise to keep what isn't there."""
    if arrived:
        leave_some(server, part)
    server.faults = Faults(cut=0, when=lambda start: len(server.gets()) > 0)
    with pytest.raises(NetworkError) as caught:
        run(server, part)
    assert ("what has arrived is kept" in caught.value.hint) is arrived


def leave_some(server: FaultServer, part: Path) -> None:
    """Leave the first 100,000 bytes."""
    remote = inspect(Session(server.url, 1), server.url + "a.tar", PACE)
    with PartialFile(part, remote) as file:
        file.write(0, CONTENT[:100_000])
        file.save()
    server.seen.clear()


# connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "status"), [(1, 403), (2, 503)])
def test_a_server_that_takes_fewer_connections_gets_fewer(
    server: FaultServer, part: Path, status: int, most: int
) -> None:
    """Those that it refuses while others work end, and it is said; the file comes over the others."""
    server.faults = Faults(most=most, refusal=status, rate=1_500_000)
    progress = run(server, part, connections=4, pace=replace(PACE, tries=1000))  # none is given up for its failures
    assert part.read_bytes() == CONTENT
    ended = [text for text in progress.notes if "takes no more than" in text]
    assert len(ended) == 4 - most
    assert f"no more than {most} connection" in ended[-1]


def test_no_connection_is_made_for_nothing(server: FaultServer, part: Path) -> None:
    """A small file is one piece, whatever the number of connections; it needs no Range."""
    run(server, part, connections=4, pace=replace(PACE, segment=8 << 20))
    assert [seen.headers.get("Range") for seen in server.seen] == [PROBE, None]


def test_a_silent_segment_is_taken_once_more(part: Path) -> None:
    """Segments come in their order, each once; then the one that was silent longest, from its last byte on."""
    with PartialFile(part, Remote("http://a/x", 250, '"1"', None)) as file:
        segments = Segments(file, 2, Pace(segment=100, silent=5))
        taken = [segments.take() for _ in range(3)]
        assert [(each.position, each.stop) for each in taken if each] == [(0, 100), (100, 200), (200, 250)]
        first = taken[0]
        assert first is not None
        first.position = 40
        assert segments.take() is None
        first.heard -= 6
        again = segments.take()
        assert again is not None
        assert (again.position, again.stop) == (40, 100)
        file.write(40, bytes(60))
        segments.let_go(again)
        segments.let_go(first)
        rest = segments.take()
        assert rest is not None
        assert (rest.position, rest.stop) == (0, 40)


@pytest.mark.timeout(20)  # less than the time of a stall
@pytest.mark.parametrize("silent", [[0], [0, 1]], ids=["one", "two"])
def test_a_silent_connection_is_helped(server: FaultServer, part: Path, silent: list[int]) -> None:
    """Others fetch its segment too, and nobody waits for it to the end."""
    numbers = itertools.count()

    def falls_silent(start: int) -> bool:
        return bool(server.gets()) and next(numbers) in silent

    server.faults = Faults(stall=1000, when=falls_silent)
    progress = run(server, part, connections=4, pace=replace(PACE, segment=1 << 20, stall=60, silent=0.1))
    assert part.read_bytes() == CONTENT
    assert progress.notes == []
