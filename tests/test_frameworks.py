"""Lightning, accelerate, Trainer, Ignite, torchdata and DDP take a Loader as it is: every record once, counted by rank.

The programs are in framework_cases.py. They run once on one rank and once on two, as processes of their own.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_torch import loader, write_images

COUNT, BATCH = 53, 4
"""As in framework_cases.py, which the other Pythons can't import: they have no PyTorch."""

EVERY = set(range(COUNT))
TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "train" / "frameworks.md"

Phases = dict[str, list[list[int]]]
Outcomes = dict[str, list[Phases]]
"""By program, for each rank: the numbers of the records in each batch, by what was done."""


@pytest.fixture(scope="module")
def images(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """53 images in 5 shards, each with a label of its own. Read only."""
    folder = tmp_path_factory.mktemp("frameworks") / "set"
    folder.mkdir()
    return write_images(folder, range(1, COUNT + 1), 8, shards=5)


@pytest.fixture(scope="module")
def one_rank(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What each program saw alone."""
    out = tmp_path_factory.mktemp("one-rank")
    process = start(images, out, "lightning", "others", ranks=1)
    return outcomes(out, [process])


@pytest.fixture(scope="module")
def two_ranks(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What each program saw on two ranks: Lightning starts its other rank itself, the others are two from the start."""
    out, lightning_out = tmp_path_factory.mktemp("two-ranks"), tmp_path_factory.mktemp("two-ranks-of-lightning")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    shared = {**address, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    pair = [
        start(images, out, "others", ranks=2, **shared, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(2)
    ]
    others = outcomes(out, pair)
    lightning = outcomes(lightning_out, [start(images, lightning_out, "lightning", ranks=2)])
    return {**others, **lightning}


def start(images: Path, out: Path, *kinds: str, ranks: int, **variables: str) -> subprocess.Popen[str]:
    """Start a process that runs the programs of some kinds."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RANKS": str(ranks), "TMPDIR": str(out), **variables}
    call = [sys.executable, TESTS / "framework_cases.py", images, out, *kinds]
    output = subprocess.PIPE
    return subprocess.Popen(call, cwd=out, env=environment, text=True, stdout=output, stderr=subprocess.STDOUT)


def outcomes(out: Path, processes: list[subprocess.Popen[str]]) -> Outcomes:
    """What all ranks saw, when they have ended; a program that failed has its traceback there."""
    try:
        printed = [process.communicate()[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    files = sorted(out.glob("*.json"))
    assert files, printed
    ranks = [json.loads(file.read_text()) for file in files]
    return {program: [rank[program] for rank in ranks] for program in ranks[0]}


@pytest.fixture(params=[1, 2])
def world(request: pytest.FixtureRequest) -> int:
    """The number of ranks."""
    number: int = request.param
    return number


@pytest.fixture
def seen(world: int, request: pytest.FixtureRequest) -> Outcomes:
    """What each program saw on so many ranks."""
    outcome: Outcomes = request.getfixturevalue({1: "one_rank", 2: "two_ranks"}[world])
    return outcome


def by_rank(outcome: Outcomes, program: str, phase: str) -> list[list[list[int]]]:
    """The batches of each rank; a program's error fails the test."""
    for phases in outcome[program]:
        assert isinstance(phases, dict), phases
    return [phases[phase] for phases in outcome[program]]


def counted(ranks: list[list[list[int]]]) -> Counter[int]:
    """How often each record came, over all ranks."""
    return Counter(number for batches in ranks for batch in batches for number in batch)


def expected(images: Path, world: int, epoch: int, **settings: Any) -> list[list[list[int]]]:
    """The batches of an epoch of each rank, by a Loader that no framework has."""
    ranks = []
    for rank in range(world):
        train = loader(images, rank=rank, world=world, **settings)
        train.set_epoch(epoch)
        ranks.append([batch[1].tolist() for batch in train])
    return ranks


# a Loader that divides -----------------------------------------------------------------------------------------

TRAINED = (
    *("before_the_group", "after_the_group", "in_its_place", "ignite", "ignite_deterministic", "trainer_unprepared"),
    *("lightning_passed", "lightning_hooks", "fabric"),
)
VALIDATED = (
    *[(program, "validate") for program in ("before_the_group", "after_the_group", "trainer_unprepared", "fabric")],
    *[(program, phase) for program in ("lightning_passed", "lightning_hooks") for phase in ("validate", "test", "predict")],
)


@pytest.mark.parametrize("program", TRAINED)
def test_two_epochs_of_training(program: str, seen: Outcomes, world: int, images: Path) -> None:
    """Each rank sees its own part of each epoch, as without a framework; no record comes twice."""
    for epoch in range(2):
        ranks = by_rank(seen, program, f"epoch {epoch}")
        assert ranks == expected(images, world, epoch)
        assert set(counted(ranks).values()) == {1}
        assert sum(counted(ranks).values()) == COUNT // world // BATCH * BATCH * world


@pytest.mark.parametrize(("program", "phase"), VALIDATED)
def test_a_validation_is_whole(program: str, phase: str, seen: Outcomes, world: int, images: Path) -> None:
    """Every record is seen, in the last batch too; the first one twice where two ranks need equally many."""
    ranks = by_rank(seen, program, phase)
    assert ranks == expected(images, world, 0, shuffle=False)
    assert counted(ranks) == Counter(EVERY) + Counter([0] * (-COUNT % world))
