"""Loader, resumed hundreds of times in mid-epoch with other ranks, workers, batches and options:
no record is lost.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from imagenet_prep.errors import DamagedRecordError, InputError

RESUMES = 200
"""Resumes in this process; each of them is a case of its own."""

RESUMES_WITH_WORKERS = 10
"""Resumes with worker processes, which take their time to start."""


class Numbers:
    """A data set of its own numbers, of which some are damaged."""

    def __init__(self, count: int, damaged: frozenset[int]) -> None:
        self.count, self.damaged = count, damaged

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> int:
        if number in self.damaged:
            raise DamagedRecordError.of("image", number, "", f"record {number} is damaged")
        return number


@dataclass(frozen=True)
class Trial:
    """A run of an epoch: what all its Loaders share, and the parts that it is divided into."""

    count: int
    damaged: frozenset[int]
    sampler: str
    settings: dict[str, Any]
    world: int
    batch_size: int

    @classmethod
    def draw(cls, draws: random.Random) -> Trial:
        """Any combination that a Loader accepts."""
        world, batch_size = draws.randint(1, 4), draws.randint(1, 5)
        count = draws.randint(20, 60)
        skips = draws.random() < 0.5
        damaged = frozenset(draws.sample(range(count), draws.choice([0, 0, 1, 3])))
        settings = {
            "shuffle": draws.random() < 0.5,
            "drop_last": draws.random() < 0.5,
            "seed": draws.randint(0, 9),
            "on_damaged": "skip" if skips else "raise",
        }
        return cls(
            count, damaged, draws.choice(["", "", "list", "random"]), settings, world, batch_size
        )

    def loaders(self, state: Any = None) -> list[Any]:
        """A Loader of each rank, with the state of the first or its own."""
        from torch.utils.data import RandomSampler

        from imagenet_prep.torch import Loader

        made = []
        for rank in range(self.world):
            dataset = Numbers(self.count, self.damaged)
            samplers = {
                "": None,
                "list": list(range(self.count))[::-1],
                "random": RandomSampler(dataset),
            }
            place = {"rank": rank, "world": self.world, "batch_size": self.batch_size}
            made.append(Loader(dataset, sampler=samplers[self.sampler], **place, **self.settings))
            if state is not None:
                made[-1].load_state_dict(json.loads(json.dumps(state[rank % len(state)])))
        return made


def batches_of(loader: Any, most: int = 10**9) -> Iterator[list[int]]:
    """The numbers of each batch up to a number of batches; a damaged one is empty."""
    batches = iter(loader)
    for _ in range(most):
        try:
            yield next(batches).tolist()
        except InputError:
            yield []
        except StopIteration:
            return


def expected_batches(trial: Trial, rank: int, epoch: int) -> list[list[int]]:
    """The batches of a rank in an epoch, without any interruption."""
    loader = trial.loaders()[rank]
    loader.set_epoch(epoch)
    return list(batches_of(loader))


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize("seed", range(4))
def test_resumes_lose_and_double_nothing(torch: Any, seed: int) -> None:
    """Every record of an epoch comes once, whatever the parts of the epoch,
    ranks, batches, samplers and damage.
    """
    draws = random.Random(seed)
    for _ in range(RESUMES // 4):
        trial = Trial.draw(draws)
        first = trial.loaders()
        stop = draws.randint(1, len(first[0]))
        epoch = draws.randint(0, 2)
        for loader in first:
            loader.set_epoch(epoch)
        given = [list(batches_of(loader, stop)) for loader in first]
        state = [first[0].state_dict()]
        changed = draws.random() < 0.4
        then = (
            replace(trial, world=draws.randint(1, 4), batch_size=draws.randint(1, 5))
            if changed
            else trial
        )
        second = then.loaders(state)
        rest = [list(batches_of(loader)) for loader in second]
        if not changed:
            for rank in range(trial.world):
                whole = expected_batches(trial, rank, epoch)
                assert given[rank] + rest[rank] == whole, trial
                assert list(batches_of(second[rank])) == expected_batches(trial, rank, epoch + 1), (
                    trial
                )
        check_all_came(trial, then, stop, [*given, *rest])


def check_all_came(trial: Trial, then: Trial, stop: int, ranks: list[list[list[int]]]) -> None:
    """No record came twice, except in the padding of ranks;
    none is lost, except in batches dropped at the end.
    """
    seen = Counter(number for batches in ranks for batch in batches for number in batch)
    worlds = {trial.world, then.world}
    doubled = seen.total() - len(seen)
    raised = 0
    if trial.settings["on_damaged"] == "raise":  # its batch is lost
        raised = len(trial.damaged) * (max(trial.batch_size, then.batch_size) - 1)
        if not trial.settings["drop_last"]:
            raised *= 2  # a damaged record in the padding fails twice
    lost = trial.count - len(trial.damaged) - len(seen)
    if trial.settings["drop_last"]:
        assert not doubled, trial
        assert lost <= raised + then.world - 1 + then.world * (then.batch_size - 1), (
            trial,
            then,
            stop,
        )
    else:
        assert doubled <= sum(worlds) - len(worlds), trial
        assert 0 <= lost <= raised, (trial, then, stop)


@pytest.mark.filterwarnings("ignore:left out")
def test_resumes_with_workers(torch: Any) -> None:
    """The same with worker processes, persistent ones,
    and batches in the order in which they are ready.
    """
    draws = random.Random(5)
    for number in range(RESUMES_WITH_WORKERS):
        trial = Trial.draw(draws)
        options = {
            "num_workers": draws.randint(1, 2),
            "persistent_workers": bool(number % 2),
            "in_order": number % 3 == 0,
        }
        trial = replace(trial, world=1, settings={**trial.settings, **options})
        (first,) = trial.loaders()
        given = list(batches_of(first, draws.randint(1, len(first))))
        state = first.state_dict()
        first.close()
        (second,) = trial.loaders([state])
        rest = list(batches_of(second))
        plain = replace(
            trial, settings={**trial.settings, "num_workers": 0, "persistent_workers": False}
        )
        for batches, epoch in (([*given, *rest], 0), (list(batches_of(second)), 1)):
            assert sorted(batches) == sorted(expected_batches(plain, 0, epoch)), trial
