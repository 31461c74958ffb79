"""Ways to the same result that take turns, so that other load affects all of them;
a table of what each costs.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Cost(NamedTuple):
    """Seconds by the clock, and of the processor in this process and its finished children."""

    wall: float
    cpu: float


def options(doc: str | None, **numbers: int) -> argparse.ArgumentParser:
    """A parser of these numbers and their defaults, and of ``--folder``."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    return parser


def run(*command: object) -> str:
    """Run a command with the code of this project;
    returns its output, and shows its errors if it fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or Python compiles all modules at each start
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def compare(
    heading: str,
    ways: Mapping[str, Callable[[], object]],
    amount: float,
    rounds: int,
    clear: Callable[[], object] = lambda: None,
) -> None:
    """Run each way once per round, and once before; print medians, and medians of the rounds'
    ratios to the first way.

    ``amount`` is the number of things that a way deals with. A way may return its own ``Cost``. The
    order of a round is random: on some machines an earlier way changes the cost of getting pages of
    memory.
    """
    took: dict[str, list[Cost]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in random.sample([*ways.items()], len(ways)):
            clear()
            before = _spent()
            cost = way()
            if not isinstance(cost, Cost):
                after = _spent()
                cost = Cost(*(end - start for end, start in zip(after, before, strict=True)))
            if turn:
                took[name].append(cost)
    costs_of_first = took[next(iter(ways))]
    print(f"\n{heading}; rounds: {rounds}")
    print(
        f"{'':34}{'wall s':>9}{'CPU s':>9}{'per second':>12}{'CPU us each':>13}{'speed / 1st':>13}{'CPU / 1st':>11}"
    )
    for name, costs in took.items():
        wall = median(cost.wall for cost in costs)
        cpu = median(cost.cpu for cost in costs)
        pairs = [*zip(costs, costs_of_first, strict=True)]
        speed = median(first.wall / cost.wall for cost, first in pairs)
        cpu_ratio = median(cost.cpu / first.cpu for cost, first in pairs)
        rates = f"{amount / wall:12,.0f}{1e6 * cpu / amount:13.2f}"
        print(f"{name:34}{wall:9.3f}{cpu:9.3f}{rates}{speed:13.2f}{cpu_ratio:11.2f}", flush=True)


def _spent() -> Cost:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(time.perf_counter(), time.process_time() + used.ru_utime + used.ru_stime)
