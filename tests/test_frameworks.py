"""Lightning, accelerate, Trainer, Ignite, torchdata and DDP take a Loader as it is: every record
once, counted by rank.

The programs are in framework_cases.py. They run once on one rank and once on two, in processes that
are forked when the frameworks are imported. Those of docs/examples run as they stand
there, are killed, and resume.
"""

from __future__ import annotations

import fcntl
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

from imagenet_prep.storage.layout import Layout

pytestmark = [
    pytest.mark.torch,
    pytest.mark.once,
    pytest.mark.timeout(1800),
]  # no limit that busy machines reach

COUNT, BATCH = 53, 4
"""As in framework_cases.py, which the other Pythons can't import: they have no PyTorch."""

EVERY = set(range(COUNT))
TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "docs" / "examples"

Phases = dict[str, list[list[int]]]
Outcomes = dict[str, list[Phases]]
"""By program, for each rank: the numbers of the records in each batch, by what was done."""


@pytest.fixture(scope="module")
def images(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """53 images in 5 shards, each with a label of its own. Read only."""
    folder = tmp_path_factory.mktemp("frameworks") / "set"
    folder.mkdir()
    return write_images(folder, range(1, COUNT + 1), 8, shards=5)


CASES = """
import os, sys, tempfile
os.environ.update({variables})
tempfile.tempdir = None
sys.path.insert(0, {tests!r})
sys.argv = [{tests!r} + "/framework_cases.py", {images!r}, {out!r}, *{kinds}]
import framework_cases
framework_cases.main(*sys.argv[1:])
"""
"""A program that runs those of framework_cases.py, with a folder of its own for checkpoints.

sys.argv is what Lightning starts again for its other rank.
"""


def cases(images: Path, out: Path, *kinds: str, ranks: int, **variables: str) -> str:
    """A program that runs the programs of some kinds."""
    out.mkdir(exist_ok=True)
    variables = {"RANKS": str(ranks), "TMPDIR": str(out), **variables}
    return CASES.format(
        variables=variables, tests=str(TESTS), images=str(images), out=str(out), kinds=kinds
    )


@pytest.fixture(scope="module")
def ran(images: Path, sound: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where all programs ran, in processes that share the imports of the frameworks.

    Of the processes that share these tests, the first runs them, and the others wait.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "frameworks"
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            run_all(folder, images, sound.data_dir)
    return folder


def run_all(folder: Path, images: Path, page_set: Path) -> None:
    """Run the programs on one rank and on two, then those of the page.

    Lightning starts its other rank itself, the others are two from the start.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    group = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    programs = {
        "alone": cases(images, folder / "1", "lightning", "others", ranks=1),
        "both-of-lightning": cases(images, folder / "2-lightning", "lightning", ranks=2),
    }
    for rank in "01":
        variables = {**group, "RANK": rank, "LOCAL_RANK": rank}
        programs[f"rank{rank}"] = cases(images, folder / "2", "others", ranks=2, **variables)
    programs.update(page_programs(page_set))
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program)
    groups = ["rank0.py+rank1.py", *[f"{name}.py" for name in programs if "rank" not in name]]
    call = [sys.executable, TESTS / "forked_programs.py", folder, *groups]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, env=environment, text=True, capture_output=True)
    (folder / "status").write_text(f"{done.returncode} {done.stderr}")


def outcomes(out: Path) -> Outcomes:
    """What all ranks saw; a program that failed has its traceback there."""
    files = sorted(out.glob("*.json"))
    printed = [path.read_text() for path in list(out.parent.glob("[abr]*.out"))]
    assert files, [(out.parent / "status").read_text(), *printed]
    ranks = [json.loads(file.read_text()) for file in files]
    return {program: [rank[program] for rank in ranks] for program in ranks[0]}


@pytest.fixture(scope="module")
def one_rank(ran: Path) -> Outcomes:
    """What each program saw alone."""
    return outcomes(ran / "1")


@pytest.fixture(scope="module")
def two_ranks(ran: Path) -> Outcomes:
    """What each program saw on two ranks."""
    return {**outcomes(ran / "2"), **outcomes(ran / "2-lightning")}


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


# a Loader that divides ----------------------------------------------------------------------------

TRAINED = (
    *(
        "before_the_group",
        "after_the_group",
        "in_its_place",
        "ignite",
        "ignite_deterministic",
        "trainer_unprepared",
    ),
    *("lightning_passed", "lightning_hooks", "fabric"),
)
VALIDATED = (
    *[
        (program, "validate")
        for program in ("before_the_group", "after_the_group", "trainer_unprepared", "fabric")
    ],
    *[
        (program, phase)
        for program in ("lightning_passed", "lightning_hooks")
        for phase in ("validate", "test", "predict")
    ],
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
def test_a_validation_is_whole(
    program: str, phase: str, seen: Outcomes, world: int, images: Path
) -> None:
    """Every record is seen, in the last batch too;
    the first one twice where two ranks need equally many.
    """
    ranks = by_rank(seen, program, phase)
    assert ranks == expected(images, world, 0, shuffle=False)
    assert counted(ranks) == Counter(EVERY) + Counter([0] * (-COUNT % world))


@pytest.mark.parametrize("program", ["stateful", "ignite_auto"])
def test_a_data_set_is_taken_without_a_loader(program: str, seen: Outcomes, world: int) -> None:
    """The loaders of torchdata and Ignite give every record of an ImageDataset,
    and torchdata's resumes.
    """
    phases = ["epoch 0", "epoch 1"] if program == "stateful" else ["validate"]
    for phase in phases:
        assert counted(by_rank(seen, program, phase)) == Counter(EVERY) + Counter(
            [0] * (-COUNT % world)
        )


def test_ignite_continues_from_a_state(seen: Outcomes, world: int, images: Path) -> None:
    """The rest of the epoch, and then batches of the next one:
    the engine takes as many as an epoch has.
    """
    first, second = (expected(images, world, epoch) for epoch in range(2))
    ranks = [before[BATCH:] + after[:BATCH] for before, after in zip(first, second, strict=True)]
    assert by_rank(seen, "ignite_resumed", "rest") == ranks


# Lightning ----------------------------------------------------------------------------------------


def test_a_shuffled_loader_predicts(seen: Outcomes, world: int) -> None:
    """Lightning keeps the last batch; what is no equal part of each rank is dropped,
    as the loader drops it.
    """
    ranks = by_rank(seen, "lightning_predict_shuffled", "predict")
    assert sum(counted(ranks).values()) == len(counted(ranks)) == COUNT // world * world


def test_overfitting_repeats_two_batches(seen: Outcomes, world: int) -> None:
    """Both epochs have the same, and each rank its own."""
    first, second = (by_rank(seen, "lightning_overfit", f"epoch {epoch}") for epoch in range(2))
    assert first == second
    assert {len(batches) for batches in first} == {2}
    assert len(counted(first)) == 2 * BATCH * world


def test_limits_are_kept(seen: Outcomes, world: int, images: Path) -> None:
    """Each epoch has its first two batches, and each validation too."""
    for epoch in range(2):
        ranks = by_rank(seen, "lightning_limited", f"epoch {epoch}")
        assert ranks == [batches[:2] for batches in expected(images, world, epoch)]
    whole = expected(images, world, 0, shuffle=False)
    assert by_rank(seen, "lightning_limited", "validate") == [batches[:2] * 2 for batches in whole]
    assert by_rank(seen, "lightning_hooks", "validate after epochs") == [
        batches * 2 for batches in whole
    ]


def test_lightning_resumes_in_an_epoch(seen: Outcomes, world: int, images: Path) -> None:
    """The batches before the checkpoint and those after it are an epoch; the next epoch follows."""
    before, after, last = (
        by_rank(seen, "lightning_resumed", phase)
        for phase in ("before: epoch 1", "epoch 1", "epoch 2")
    )
    whole = [first + second for first, second in zip(before, after, strict=True)]
    assert [len(batches) for batches in before] == [BATCH] * world
    assert whole == expected(images, world, 1)
    assert last == expected(images, world, 2)


def test_a_loader_that_repeats_resumes(seen: Outcomes, world: int) -> None:
    """A CombinedLoader of Lightning starts the smaller loader again within
    an epoch of the trainer.
    """
    assert by_rank(seen, "lightning_cycled_resumed", "parts") == by_rank(
        seen, "lightning_cycled_resumed", "whole"
    )


# accelerate and Trainer, which divide batches themselves ------------------------------------------

PREPARED = ("accelerate_even", "accelerate_uneven", "accelerate_dispatched", "trainer_prepared")


@pytest.mark.parametrize("program", PREPARED)
def test_batches_of_training_are_divided_once(
    program: str, seen: Outcomes, world: int, images: Path
) -> None:
    """Ranks take turns at the batches of an epoch; no record comes twice."""
    for epoch in range(2):
        (every,) = expected(images, 1, epoch)
        count = len(every) // world
        assert by_rank(seen, program, f"epoch {epoch}") == [
            every[rank::world][:count] for rank in range(world)
        ]


def test_a_batch_is_split(seen: Outcomes, world: int, images: Path) -> None:
    """Each rank takes its part of each batch."""
    for epoch in range(2):
        (every,) = expected(images, 1, epoch)
        size = BATCH // world
        parts = [
            [batch[rank * size : (rank + 1) * size] for batch in every] for rank in range(world)
        ]
        assert by_rank(seen, "accelerate_split", f"epoch {epoch}") == parts


@pytest.mark.parametrize(
    ("program", "twice"),
    [
        ("accelerate_even", [0, 5, 10]),
        ("accelerate_uneven", []),
        ("accelerate_split", [0, 5, 10]),
        ("accelerate_dispatched", [0]),
        ("trainer_prepared", [0, 5, 10]),
    ],
)
def test_a_prepared_validation_is_whole(
    program: str, twice: list[int], seen: Outcomes, world: int
) -> None:
    """accelerate fills the last batches with the first records, unless even_batches is off."""
    assert counted(by_rank(seen, program, "validate")) == Counter(EVERY) + Counter(
        twice if world > 1 else []
    )


@pytest.mark.parametrize(
    "program", ["accelerate_even", "accelerate_split", "accelerate_dispatched"]
)
def test_metrics_count_every_record_once(program: str, seen: Outcomes) -> None:
    """gather_for_metrics leaves out what was filled in."""
    for batches in by_rank(seen, program, "gathered"):
        assert counted([batches]) == Counter(EVERY)


def test_an_evaluation_of_trainer_counts_every_record(seen: Outcomes, world: int) -> None:
    """Each once if accelerate prepared the loader,
    else the first twice where two ranks need equally many.
    """
    assert by_rank(seen, "trainer_prepared", "evaluated") == [[[COUNT]]] * world
    assert by_rank(seen, "trainer_unprepared", "evaluated") == [[[COUNT + -COUNT % world]]] * world


def test_batches_are_skipped(seen: Outcomes) -> None:
    """skip_first_batches and the state of a StatefulDataLoader leave the
    rest of the second epoch.
    """
    whole = by_rank(seen, "accelerate_skips", "whole")
    assert by_rank(seen, "accelerate_skips", "rest") == [batches[2:] for batches in whole]
    assert by_rank(seen, "accelerate_stateful", "before") == [batches[:2] for batches in whole]
    assert by_rank(seen, "accelerate_stateful", "rest") == [batches[2:] for batches in whole]
    assert by_rank(seen, "trainer_prepared_resumed", "rest") == [batches[2:] for batches in whole]


@pytest.mark.parametrize(
    "program", ["accelerate_skips_unprepared", "trainer_unprepared_resumed", "foreign"]
)
def test_a_loader_that_nobody_divides_is_refused(
    program: str, seen: Outcomes, world: int, images: Path
) -> None:
    """On one rank its batches are right; on two, each would see all of them:
    the error names the line to write.
    """
    if world == 1:
        epoch = 0 if program == "accelerate_skips_unprepared" else 1
        phase = "epoch 1" if program == "foreign" else "rest"
        (every,) = expected(images, 1, epoch)
        assert by_rank(seen, program, phase) == [every if program == "foreign" else every[2:]]
        return
    for error in seen[program]:
        assert "each of 2 ranks would get all records" in str(error)
        assert "iterate over the Loader itself, or over accelerator.prepare(loader)" in str(error)


def test_accelerate_continues_from_a_state(seen: Outcomes, world: int, images: Path) -> None:
    """It divides the records that no rank was given, and then the next epoch."""
    before, after = (by_rank(seen, "accelerate_resumed", phase) for phase in ("before", "rest"))
    left = COUNT - BATCH * world
    assert sum(counted(after).values()) == left // BATCH // world * BATCH * world
    assert set((counted(before) + counted(after)).values()) == {1}
    (every,) = expected(images, 1, 2)
    count = len(every) // world
    assert by_rank(seen, "accelerate_resumed", "epoch 2") == [
        every[rank::world][:count] for rank in range(world)
    ]


@pytest.mark.parametrize("program", ["fabric_resumed", "accelerate_resumed_without_epoch"])
def test_a_state_is_not_left_unnoticed(program: str, seen: Outcomes) -> None:
    """Frameworks that count epochs from 0 in each run would start the first one again:
    an error says what to do.
    """
    for error in seen[program]:
        assert "set_epoch(0) after a state of epoch 1 was loaded" in str(error)
        assert "loop over the Loader itself" in str(error)


# the page -----------------------------------------------------------------------------------------

WATCH = """
import os

def watch(labels):
    with open("NAME.seen", "a") as file:
        print(labels.tolist(), file=file)
    if "killed" in file.name and sum(1 for _ in open(file.name)) == 30:
        os._exit(9)
"""
"""Notes the labels of each batch, and may die at the 30th,
when the checkpoint of the 20th is the last.
"""

TRAINING_STEP = """
    def training_step(self, network, inputs, *others):
        watch(inputs["labels"])
        return super().training_step(network, inputs, *others)
"""


def watched(program: str, data_dir: Path, run: str) -> str:
    """A program of the page that trains for two epochs of a set,
    and notes the batches of each step.
    """
    program = program.replace("demo-data", str(data_dir))
    program = re.sub(r"(epochs\W+|range\()6", r"\g<1>2", program)
    program = program.replace("loss = functional", "watch(labels); loss = functional")
    program = program.replace(
        "class ImageTrainer(Trainer):\n", f"class ImageTrainer(Trainer):{TRAINING_STEP}\n"
    )
    return WATCH.replace("NAME", run) + program


def page_programs(data_dir: Path) -> dict[str, str]:
    """The programs of the page, by name; Lightning's and Trainer's run twice,
    first to be killed.
    """
    programs = [(EXAMPLES / f"{name}_demo.py").read_text() for name in PROGRAMS]
    runs = [(f"{name}-killed", name) for name in RESUMED] + [(name, name) for name in PROGRAMS]
    return {run: watched(programs[PROGRAMS.index(name)], data_dir, run) for run, name in runs}


PROGRAMS = ["lightning", "trainer", "accelerate", "ignite"]
"""The programs of the page, in its order."""

RESUMED = ["lightning", "trainer"]
"""Those that save checkpoints and continue from them."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_of_the_page(name: str, ran: Path, sound: Layout) -> None:
    """Two epochs end with status 0 and have the batches that a Loader has alone;
    killed ones continue.
    """
    printed = (ran / f"{name}.out").read_text()
    assert printed.endswith("\nstatus 0\n"), printed
    assert re.search(r"loss \d+\.\d+$", printed, re.M)
    seen = (ran / f"{name}.seen").read_text().splitlines()
    train = loader(sound.data_dir, batch_size=16, window=16)
    every = [str(batch[1].tolist()) for _ in range(2) for batch in train]
    if name in RESUMED:
        assert (ran / f"{name}-killed.out").read_text().endswith("\nstatus 9\n")
        assert (ran / f"{name}-killed.seen").read_text().splitlines() == every[:30]
        assert seen == every[20:]
    else:
        assert seen == every
