"""Loader as a DataLoader: its options, ranks found late, seeded batches,
errors that it survives, and its workers.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from existing import existing
from object_server import ObjectServer
from PIL import Image

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.errors import DamagedRecordError, UsageError
from imagenet_prep.reading.arguments import shown
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import locate

DOCS = Path(__file__).parents[1] / "docs" / "train" / "pytorch.md"
COUNT = 20


class Numbers:
    """A data set of its own numbers, some of which raise an error."""

    name = "numbers"

    def __init__(self, errors: dict[int, Exception] | None = None) -> None:
        self.errors = errors or {}

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, number: int) -> int:
        if number in self.errors:
            raise self.errors[number]
        return number


def loader(dataset: Any = None, **settings: Any) -> Any:
    """Batches of 4 numbers in order."""
    from imagenet_prep.torch import Loader

    dataset = Numbers() if dataset is None else dataset
    return Loader(dataset, **{"batch_size": 4, "shuffle": False, **settings})


def flat(batches: Any) -> list[int]:
    """The numbers of all batches."""
    return [number for batch in batches for number in batch.tolist()]


# options ------------------------------------------------------------------------------------------


def test_the_page_names_every_option_of_dataloader(torch: Any) -> None:
    """The table says of each parameter whether it is honoured or refused;
    PyTorch gets no new one unnoticed.
    """
    table = DOCS.read_text().partition("## Options of DataLoader")[2].partition("\n## ")[0]
    named = set(
        re.findall(
            r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)
        )
    )
    assert named == set(inspect.signature(torch.utils.data.DataLoader).parameters) - {"dataset"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"generator": "Generator"}, "expected seed="),
        ({"batch_sampler": [[0, 1]]}, "give it batch_size, and a sampler"),
        ({"world": 2}, r"Loader\(rank=None, world=2\)\nexpected two whole numbers"),
        ({"rank": 1}, r"Loader\(rank=1, world=None\)\nexpected two whole numbers"),
        ({"rank": -1, "world": 2}, "two whole numbers with 0 <= rank < world"),
    ],
)
def test_options_that_are_refused(torch: Any, options: dict[str, Any], message: str) -> None:
    """With what to do."""
    if "generator" in options:
        options = {"generator": torch.Generator()}
    with pytest.raises(UsageError, match=message):
        loader(**options)


def test_options_that_reach_dataloader(torch: Any) -> None:
    """Each is the attribute of that name, as of any DataLoader,
    and so are batch_size, sampler and drop_last.
    """
    options = {
        "num_workers": 2,
        "prefetch_factor": 3,
        "timeout": 30,
        "persistent_workers": True,
        "in_order": False,
    }
    train = loader(drop_last=True, pin_memory=True, multiprocessing_context="spawn", **options)
    assert isinstance(train, torch.utils.data.DataLoader)
    expected = {**options, "batch_size": 4, "drop_last": True, "pin_memory": True}
    assert {name: getattr(train, name) for name in expected} == expected
    assert train.multiprocessing_context.get_start_method() == "spawn"
    assert isinstance(train.sampler, torch.utils.data.DistributedSampler)
    assert (train.dataset.name, len(train.dataset), train.dataset[3]) == ("numbers", COUNT, 3)
    assert len(pickle.loads(pickle.dumps(train))) == 5


def test_an_object_is_shown_by_its_name() -> None:
    """No address in memory, which tells a reader nothing."""
    values = (Numbers(), Numbers, len, loader, lambda number: number, 3)
    texts = ["Numbers(...)", "Numbers", "len", "loader", "<lambda>", "3"]
    assert [shown(value) for value in values] == texts


class Slow(Numbers):
    """Numbers of which the first ones take longer."""

    def __getitem__(self, number: int) -> int:
        time.sleep(0.3 if number < 4 else 0)
        return number


def test_batches_in_any_order_are_counted_one_by_one(torch: Any) -> None:
    """With in_order=False a state knows which batches were given; it belongs to its rank."""
    first = loader(Slow(), num_workers=2, in_order=False)
    given = [batch.tolist() for _, batch in zip(range(2), first, strict=False)]
    assert given[0] != [0, 1, 2, 3], "the second worker was faster"
    state = json.loads(json.dumps(first.state_dict()))
    second = loader()
    second.load_state_dict(state)
    assert sorted(flat(second) + [number for batch in given for number in batch]) == list(
        range(COUNT)
    )
    other = loader(rank=0, world=2)
    other.load_state_dict(state)
    with pytest.raises(UsageError, match=r"of rank 0 of 1 .*given in any order") as caught:
        next(iter(other))
    assert "with the same world and batch_size" in caught.value.hint
    with pytest.raises(UsageError, match=r"its key 'ahead' holds 99\n"):
        loader().load_state_dict({**state, "given": 0, "ahead": [99]})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"before": 3}, r"'before' holds 3"),
        ({"before": [4]}, r"'before' holds 4"),
        ({"before": [[1]]}, r"'before' holds \[1\]"),
        ({"before": [[0, 4]]}, r"'before' holds 0"),
        ({"before": [[1, "4"]]}, r"'before' holds '4'"),
        ({"ahead": None}, r"'ahead' holds None"),
        ({"ahead": ["1"]}, r"'ahead' holds '1'"),
    ],
    ids=str,
)
def test_a_state_with_damaged_lists_is_refused(
    torch: Any, change: dict[str, Any], fault: str
) -> None:
    """The error names the list of the state, and no bug."""
    state = loader().state_dict()
    with pytest.raises(UsageError, match=rf"^the state can't be loaded: its key {fault}\n"):
        loader().load_state_dict({**state, **change})


def test_records_need_a_data_set_of_images(torch: Any, tmp_path: Path) -> None:
    """Records themselves make no batch: the error has the line that does;
    with a collate_fn they do.
    """
    with records.ShardWriter(tmp_path / "train", shards=1) as writer:
        for number in range(4):
            writer.write({"image/encoded": b"", "image/class/label": number})
    shards = imagenet_prep.open(tmp_path, "train")
    with pytest.raises(UsageError, match=r"^Loader\(") as caught:
        loader(shards)
    advised = "Loader(ImageDataset(records, crop=RandomResizedCrop(224)), batch_size=256)"
    assert caught.value.hint == f"{advised}, or your own collate_fn"
    with pytest.raises(UsageError) as caught:
        loader(str(tmp_path))
    assert caught.value.hint == (
        f"records = imagenet_prep.open({str(tmp_path)!r}, 'train'); {advised}"
    )
    with pytest.raises(UsageError, match="a batch of records"):
        next(iter(loader(shards[:])))
    assert len(next(iter(loader(shards, collate_fn=list)))) == 4


# made again by frameworks, and read by others -----------------------------------------------------


def test_a_loader_made_again_gives_the_same(torch: Any) -> None:
    """With the attributes that it has, around its batches or in another order:
    as Lightning and Ignite do.
    """
    from torch.utils.data import BatchSampler, SequentialSampler

    train = loader(shuffle=True, seed=3, drop_last=False, batch_size=3)
    expected = flat(loader(shuffle=True, seed=3, drop_last=False, batch_size=3))
    public = {name: value for name, value in vars(train).items() if not name.startswith("_")}
    kept = {
        name: public[name]
        for name in public.keys() - {"batch_size", "sampler", "drop_last", "batch_sampler"}
    }
    batches = BatchSampler(train.sampler, batch_size=3, drop_last=False)
    around = type(train)(
        **kept, batch_size=1, shuffle=False, sampler=None, batch_sampler=batches, drop_last=False
    )
    assert (flat(around), len(around), around.batch_size) == (expected, 7, 3)
    assert around.dataset is train.dataset
    kept |= {"batch_size": 3, "sampler": SequentialSampler(train.dataset), "batch_sampler": None}
    in_order = type(train)(**kept, shuffle=False, drop_last=False)
    assert flat(in_order) == list(range(COUNT))
    assert isinstance(in_order.sampler, torch.utils.data.DistributedSampler)


def test_other_dataloaders_get_the_undivided_order(torch: Any) -> None:
    """Plain batches of all records, from the place of a loaded state;
    of several ranks it is an error.
    """
    train = loader(shuffle=True, seed=3, drop_last=False)
    expected = [batch.tolist() for batch in train]
    train.set_epoch(0)
    parts = {"batch_sampler": train.batch_sampler, "collate_fn": train.collate_fn}
    other = torch.utils.data.DataLoader(train.dataset, **parts)
    assert [batch.tolist() for batch in other] == expected
    train.load_state_dict({**train.state_dict(), "given": 2})
    assert [batch.tolist() for batch in other] == expected[2:]
    of_two = loader(rank=0, world=2)
    with pytest.raises(UsageError, match=r"2 ranks .*all records"):
        list(torch.utils.data.DataLoader(of_two.dataset, batch_sampler=of_two.batch_sampler))


# ranks --------------------------------------------------------------------------------------------


@pytest.fixture
def group(torch: Any) -> Iterator[Callable[[int, int], None]]:
    """Makes the process group of a rank and world; it ends with the test."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    def make(rank: int, world: int) -> None:
        torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())

    yield make
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_a_process_group_is_found_after_the_loader_was_made(
    group: Callable[[int, int], None],
) -> None:
    """At each use: also if the length was asked for before; explicit ranks win over a group."""
    late, explicit = loader(), loader(rank=0, world=1)
    assert (len(late), late.world) == (5, 1)
    state = {**late.state_dict(), "given": 1}
    group(1, 2)
    assert (len(late), late.rank, late.world) == (3, 1, 2)
    assert flat(late) == list(range(10, 20))
    late.load_state_dict(state)  # 4 records were given to one rank: 16 are left for two
    assert flat(late) == list(range(12, 20))
    assert flat(explicit) == list(range(20))


@pytest.mark.parametrize(
    ("environment", "in_group", "expected"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, None, (1, 2)),
        ({"WORLD_SIZE": "1"}, None, (0, 1)),
        ({"RANK": "1"}, None, (0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (1, 2), (1, 2)),
        ({"WORLD_SIZE": "2"}, (1, 2), (1, 2)),
        ({"WORLD_SIZE": "2"}, None, "WORLD_SIZE=2.*\n.*RANK too"),
        (
            {"RANK": "0", "WORLD_SIZE": "4"},
            (0, 2),
            "rank 0 of 2, the environment RANK=0 WORLD_SIZE=4",
        ),
        (
            {"RANK": "0", "WORLD_SIZE": "2"},
            (1, 2),
            "rank 1 of 2, the environment RANK=0 WORLD_SIZE=2",
        ),
        ({"RANK": "2", "WORLD_SIZE": "2"}, None, "expected a RANK below WORLD_SIZE"),
        ({"WORLD_SIZE": "two"}, None, "expected a whole number from 1 up"),
        ({"WORLD_SIZE": "9" * 4301}, None, "expected a whole number of at most 18 digits"),
        (
            {"WORLD_SIZE": "0"},
            None,
            "WORLD_SIZE is '0' in the environment\nexpected a .* from 1 up",
        ),
    ],
)
def test_ranks_of_the_environment(
    group: Callable[[int, int], None],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    in_group: tuple[int, int] | None,
    expected: Any,
) -> None:
    """RANK and WORLD_SIZE count without a process group;
    where they contradict it, that is an error.
    """
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if in_group is not None:
        group(*in_group)
    made = loader()
    if isinstance(expected, tuple):
        assert (made.rank, made.world) == expected
        return
    for use in (lambda: len(made), lambda: next(iter(made))):
        with pytest.raises(UsageError, match=expected):
            use()


# random numbers of batches ------------------------------------------------------------------------


def mix_up(numbers: list[int]) -> Any:
    """Mixed images, by the random numbers that MixUp and CutMix of torchvision.transforms.v2 draw,
    and two others.
    """
    import torch

    images = torch.arange(float(len(numbers))).reshape(-1, 1, 1, 1).expand(-1, 3, 8, 8)
    share = torch.distributions.Beta(torch.tensor(1.0), torch.tensor(1.0)).sample(())
    left, top = torch.randint(0, 8, (2,)).tolist()
    mixed = images.roll(1, 0).mul(1 - share).add(images.mul(share))
    mixed[..., top:, left:] += random.random() + np.random.random()
    return mixed, torch.tensor(numbers)


def test_randomness_in_collate_is_the_same_in_every_run(torch: Any) -> None:
    """Whatever the number of workers, and after a resume; each epoch and batch has another."""
    settings = {"collate_fn": mix_up, "shuffle": True, "seed": 4}
    train = loader(**settings)
    epochs = [[images for images, _ in train] for _ in range(2)]
    again = loader(num_workers=2, **settings)
    assert all(
        torch.equal(*pair) for pair in zip(epochs[0], (images for images, _ in again), strict=True)
    )
    resumed = loader(num_workers=1, **settings)
    resumed.load_state_dict({**resumed.state_dict(), "given": 3})
    assert all(
        torch.equal(*pair)
        for pair in zip(epochs[0][3:], (images for images, _ in resumed), strict=True)
    )
    states = [torch.get_rng_state() for _ in train]
    assert torch.equal(states[0], states[-1]), "the process keeps its own random numbers"
    assert not torch.equal(epochs[0][0], epochs[1][0])
    assert not torch.equal(epochs[0][0], epochs[0][1])


# errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DamagedRecordError.of("image", 5, "a.jpg", "record 5 is damaged"), DamagedRecordError),
        (ValueError("a transform failed"), ValueError),
        (StopIteration("of a reader"), RuntimeError),
    ],
    ids=["damaged", "value", "stop"],
)
def test_an_iterator_survives_the_error_of_a_batch(
    torch: Any, workers: int, error: Exception, kind: type[Exception]
) -> None:
    """The next batch comes, nothing else is lost,
    and a state continues after the batch that failed.
    """
    train = loader(Numbers({5: error}), num_workers=workers)
    batches = iter(train)
    assert next(batches).tolist() == [0, 1, 2, 3]
    with pytest.raises(kind) as caught:
        next(batches)
    if kind is DamagedRecordError:
        assert (caught.value.fault, caught.value.image) == ("image", "a.jpg")
        assert "on_damaged='skip'" in caught.value.hint
    resumed = loader(Numbers({5: error}), num_workers=workers)
    resumed.load_state_dict(train.state_dict())
    assert flat(batches) == flat(resumed) == list(range(8, 20))
    assert (train.epoch, train.given) == (1, 0)


# workers ------------------------------------------------------------------------------------------


def children() -> set[int]:
    """The processes that this process started and that are alive."""
    numbers = set()
    for path in existing(Path("/proc"), "[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == os.getpid() and state != "Z":
            numbers.add(int(path.parent.name))
    return numbers


def use(ending: str, train: Any) -> None:
    """Take one batch, and end in a way."""
    for _ in train:
        if ending == "error":
            raise ValueError(ending)
        if ending == "interrupt":
            signal.raise_signal(signal.SIGINT)
        break


@pytest.mark.parametrize("persistent", [False, True], ids=["", "persistent"])
@pytest.mark.parametrize(
    "ending", ["scope", "del", "close", "with", "error", "interrupt", "damaged", "value"]
)
def test_workers_end_with_their_loader(torch: Any, ending: str, persistent: bool) -> None:
    """At once, without the garbage collector:
    after del, the scope, close(), an exception, Ctrl-C.
    """
    before = children()
    damage = {
        "damaged": DamagedRecordError.of("image", 1, "", "damaged"),
        "value": ValueError("a transform failed"),
    }
    errors = {1: damage[ending]} if ending in damage else {}

    def scope() -> None:
        train = loader(Numbers(errors), num_workers=2, persistent_workers=persistent)
        if ending == "with":
            with train:
                use(ending, train)
            assert children() == before
        use(ending, train)
        if persistent:
            assert len(children() - before) == 2
        if ending == "close":
            train.close()
            assert children() == before
        if ending == "del":
            del train
            assert children() == before

    kinds = {
        "error": ValueError,
        "interrupt": KeyboardInterrupt,
        "damaged": DamagedRecordError,
        "value": ValueError,
    }
    if ending in kinds:
        with pytest.raises(kinds[ending]) as caught:
            scope()
        del caught
    else:
        scope()
    assert children() == before


def test_a_closed_loader_starts_again(torch: Any) -> None:
    """Its open iterator ends with an error and not as a complete epoch;
    a new one has new workers.
    """
    train = loader(num_workers=1)
    batches = iter(train)
    next(batches)
    train.close()
    with pytest.raises(UsageError, match="was closed"):
        next(batches)
    assert flat(train) == list(range(COUNT))


class Fatal(Numbers):
    """Numbers; until a file exists, one of them kills its worker,
    as a system short of memory does.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __getitem__(self, number: int) -> int:
        if number == 1 and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
        return number


def test_a_killed_worker_loses_no_batch(torch: Any, tmp_path: Path) -> None:
    """The iterator ends with an error and not as a complete epoch;
    a new one has new workers, and continues.
    """
    train = loader(Fatal(tmp_path / "killed"), num_workers=2, persistent_workers=True)
    batches = iter(train)
    with pytest.raises((RuntimeError, OSError)):
        next(batches)
    with pytest.raises(UsageError, match="was closed"):
        next(batches)
    train.load_state_dict(train.state_dict())
    assert flat(train) == list(range(COUNT))


EXITS = """
import os, signal, sys, time, warnings
import torch
from imagenet_prep.torch import Loader

def main():
    train = Loader(list(range(64)), 2, num_workers=3, pin_memory=True, persistent_workers=True)
    try:
        for batch in train:
            print("ready", flush=True)
            time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    warnings.simplefilter("ignore")
    main()
    print(time.time(), flush=True)
"""


def test_a_program_ends_at_once(torch: Any, tmp_path: Path) -> None:
    """Interrupted by Ctrl-C like all its workers, with the options that docs recommend:
    nothing waits for workers.
    """
    (tmp_path / "train.py").write_text(EXITS)
    program = subprocess.Popen(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    os.killpg(program.pid, signal.SIGINT)
    said = program.stdout.read().split()
    took = time.time() - float(said[-1])
    assert (program.wait(), said[0]) == (0, "interrupted")
    assert took < 10, "PyTorch waits five seconds for each of the three workers"
    with pytest.raises(ProcessLookupError):
        os.killpg(program.pid, 0)


# stores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_in_store", [True, False])
def test_a_set_in_an_object_store_trains(
    torch: Any, objects: ObjectServer, tmp_path: Path, is_in_store: bool
) -> None:
    """Opened here and read by workers, which are spawned: forked ones could not reach the store.
    Others are forked.
    """
    from imagenet_prep.torch import ImageDataset

    with records.ShardWriter(tmp_path / "train", shards=2) as writer:
        for label in range(1, 9):
            Image.new("RGB", (8, 8)).save(buffer := io.BytesIO(), "JPEG")
            writer.write({"image/encoded": buffer.getvalue(), "image/class/label": label})
    bucket = locate(objects.new_bucket())
    for path in existing(tmp_path, "train-*"):
        save_bytes(bucket / path.name, path.read_bytes())
    remote = imagenet_prep.open(str(bucket), "train")
    assert remote[0].label == 1
    dataset = ImageDataset(remote if is_in_store else imagenet_prep.open(tmp_path, "train"))
    train = loader(dataset[:], num_workers=1)
    method = train.multiprocessing_context and train.multiprocessing_context.get_start_method()
    assert method == ("spawn" if is_in_store else None)
    assert sorted(label for _, labels in train for label in labels.tolist()) == list(range(8))
