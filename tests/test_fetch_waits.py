"""Nothing hangs, and nobody waits unawares: slow servers, refused connections, answers that pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import PROBE, Faults, FaultServer, fault_server

from imagenet_prep.errors import NetworkError
from imagenet_prep.fetch.access import open_session
from imagenet_prep.fetch.partial import PartialFile
from imagenet_prep.fetch.patience import CutError, Pace, Patience
from imagenet_prep.fetch.pieces import Pieces
from imagenet_prep.fetch.reply import inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.fetch.transfer import fetch
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
    run(server, part, connections=4, pace=replace(PACE, segment=8 << 20, crumb=4 << 20))
    assert [seen.headers.get("Range") for seen in server.seen] == [PROBE, None]


def test_pieces_shrink_towards_the_end() -> None:
    """From the largest to the smallest size; they follow one another and make up the gaps."""
    pieces = Pieces([(0, 1000), (2000, 3000)], 4, largest=200, smallest=20)
    taken = []
    while piece := pieces.take():
        taken.append((piece.start, piece.stop))
    sizes = [stop - start for start, stop in taken]
    assert sizes[0] == 200
    assert sizes[-1] <= 40 < sizes[len(sizes) // 2] < 200
    assert sum(sizes) == 2000
    assert all(before[1] in (after[0], 1000) for before, after in pairwise(taken))


def test_a_piece_that_is_wanted_alone_waits_for_those_of_others() -> None:
    """It is there once nothing is left of any other one."""
    pieces = Pieces([(0, 2000)], 2, largest=100, smallest=100)
    first = pieces.take(alone=True)
    assert first is not None
    assert pieces.take(alone=True) is None
    pieces.claim(first, 100)
    assert pieces.take(alone=True) is not None


def test_an_idle_connection_takes_half_of_the_slowest_piece() -> None:
    """Not of one that is nearly done; and what was taken is not written by the first one any more."""
    pieces = Pieces([(0, 2_000_000)], 2, largest=1_000_000, smallest=1_000_000)
    slow, quick = pieces.take(), pieces.take()
    assert slow is not None
    assert quick is not None
    assert pieces.take() is None  # both have just begun
    slow.since -= 10
    quick.since -= 10
    assert pieces.claim(slow, 100_000) == 100_000
    assert pieces.claim(quick, 990_000) == 990_000
    half = pieces.take()
    assert half is not None
    assert (half.start, half.stop, slow.stop) == (550_000, 1_000_000, 550_000)
    assert pieces.claim(slow, 900_000) == 450_000
    pieces.let_go(slow)
    pieces.let_go(quick)
    rest = pieces.take()
    assert rest is not None
    assert (rest.start, rest.stop) == (1_990_000, 2_000_000)
    assert not pieces.is_done


@pytest.mark.timeout(20)  # less than the time of a stall
@pytest.mark.parametrize("silent", [[0], [0, 1]], ids=["one", "two"])
def test_a_silent_connection_is_helped(
    server: FaultServer, part: Path, silent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others take its piece from behind, the last bytes too, and nobody waits for it to the end."""
    monkeypatch.setattr("imagenet_prep.fetch.pieces._SILENT", 0.1)
    numbers = itertools.count()

    def falls_silent(start: int) -> bool:
        return bool(server.gets()) and next(numbers) in silent

    server.faults = Faults(stall=1000, when=falls_silent)
    progress = run(server, part, connections=4, pace=replace(PACE, segment=1 << 20, crumb=1 << 20, stall=60))
    assert part.read_bytes() == CONTENT
    assert progress.notes == []


def test_who_is_silent_once_more_is_given_more_time() -> None:
    """A server that needs long for every answer comes to its turn: the next one waits twice as long."""
    pieces = Pieces([(0, 100_000)], 2, largest=100_000, smallest=100_000)
    first = pieces.take()
    assert first is not None
    assert pieces.claim(first, 1000) == 1000
    assert pieces.take() is None
    first.heard -= 4
    second = pieces.take()
    assert second is not None
    assert (second.start, second.stop, first.left) == (1000, 100_000, 0)
    assert pieces.claim(first, 1000) == 0
    second.heard -= 4
    assert pieces.take() is None
    second.heard -= 4
    third = pieces.take()
    assert third is not None
    assert third.start == 1000
    assert not pieces.is_done
    assert pieces.claim(third, 99_000) == 99_000
    assert pieces.is_done  # though nobody has let go
