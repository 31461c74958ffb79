"""A simulation of 1,000 nodes: how long ImageNet-21k takes beside ideal, what is wasted, which policy it takes.

    python scripts/simulate.py [--svg docs/images/scale.svg] [--measure]

Prints the tables of docs/scale.md and draws its curves. --measure: the task times of this machine first, and no curves.
Exit status 1: the run that is chosen takes more than 1.1 times the ideal time.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent / "simulation"))

from cluster import Cluster, Job, Outcome, Policy, simulate
from curves import Chart, draw

IMAGES, IMAGE_BYTES = 13_153_500, 95_000
"""ImageNet-21k: 1.25 TB."""

NETWORK = 2 * IMAGE_BYTES / 1.25e9  # seconds an image: in and out again by 10 Gbit/s
IMAGE_SECONDS = {"as they are": 0.00016, "decoded": 0.00120, "resized": 0.00556}
"""Processor seconds an image, measured: docs/performance.md, two workers on two Xeon threads of one core."""

SHARD_SECONDS, SPREAD = 0.02, 0.06
"""Of a shard: 1 to 3 ms of processor measured, the rest for syncs on a network file system assumed; spread measured."""

DISPATCH = 0.001
"""Driver seconds a task: 0.7 ms measured for Ray's part on a quiet machine, 1.2 to 1.4 with ours on a busy one."""

JOB = Job(IMAGES, 60_000, IMAGE_SECONDS["resized"] + NETWORK, SHARD_SECONDS, SPREAD, 1.0, 4.0)
CLUSTER = Cluster(1000, slow=0.05, slow_factor=3.0, lost=0.01, notice_seconds=10.0, dispatch_seconds=DISPATCH)
STORE = dataclasses.replace(CLUSTER, request_rate=5500.0)  # what S3 promises of a prefix
SEEDS = range(3)
SHARDS = (2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 100_000)
NODES = (10, 30, 100, 300, 1000, 2000)
LOST = (0.003, 0.01, 0.03, 0.1)
AT_ONCE = (30, 100, 300, 1000)


def main() -> int:
    """Tables, and curves."""
    given = parse_arguments()
    if given.measure:
        from measured import measure

        for kind, times in measure().items():
            each = f"{1e3 * times.image:.2f} ms an image, {1e3 * times.shard:.1f} ms a shard"
            print(f"{kind}: {each}, spread {times.spread:.2f}")
        return 0
    chosen = runs(JOB, CLUSTER, Policy())
    print(f"1,000 nodes, {JOB.shards:,} shards: {told(chosen)}")
    print(f"the same, no second runs: {told(runs(JOB, CLUSTER, Policy(second_runs=False)))}")
    charts = [by_shards(), by_nodes(), by_losses(), by_requests()]
    for chart in charts:
        print(f"\n{chart.title} ({chart.up})")
        for name, points in chart.curves.items():
            print(f"  {name}: " + ", ".join(f"{across:g}: {up:.3f}" for across, up in points))
    draw(charts, given.svg)
    return int(middle(chosen, "ratio") > 1.1)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent / "docs" / "images" / "scale.svg"
    parser.add_argument("--svg", type=Path, default=default)
    parser.add_argument("--measure", action="store_true")
    return parser.parse_args()


def runs(job: Job, cluster: Cluster, policy: Policy, seeds: Iterable[int] = SEEDS) -> list[Outcome]:
    """The same with several seeds."""
    return [simulate(job, cluster, policy, seed) for seed in seeds]


def middle(found: list[Outcome], what: str) -> float:
    """The median of a number of theirs."""
    return float(median(getattr(each, what) for each in found))


def told(found: list[Outcome]) -> str:
    """Their medians in words."""
    return (
        f"{middle(found, 'seconds'):.0f} s, {middle(found, 'ratio'):.3f} of ideal; wasted {middle(found, 'waste'):.2%};"
        f" cost {middle(found, 'cost'):.3f}; {middle(found, 'second_runs'):.0f} second runs"
    )


def ratio(job: Job, cluster: Cluster, policy: Policy | None = None) -> float:
    """Time beside ideal."""
    return middle(runs(job, cluster, policy or Policy()), "ratio")


def cut(shards: int, image_seconds: float = JOB.image_seconds) -> Job:
    """The job in so many shards."""
    return dataclasses.replace(JOB, shards=shards, image_seconds=image_seconds)


def by_shards() -> Chart:
    """Task size."""
    both = {"second runs": Policy(), "none": Policy(second_runs=False)}
    curves = {name: [(each, ratio(cut(each), CLUSTER, policy)) for each in SHARDS] for name, policy in both.items()}
    return Chart("1,000 nodes, resized: task size", "shards", "time / ideal", curves, line=1.1, top=2.0)


def by_nodes() -> Chart:
    """How many nodes are worth it."""
    curves = {}
    for kind in ("decoded", "resized"):
        image = IMAGE_SECONDS[kind] + NETWORK
        curves[kind] = [
            (nodes, ratio(cut(60 * nodes, image), dataclasses.replace(CLUSTER, nodes=nodes))) for nodes in NODES
        ]
    return Chart("60 shards a node: number of nodes", "nodes", "time / ideal", curves, line=1.1, top=2.0)


def by_losses() -> Chart:
    """What deaths waste."""
    curves = {
        f"{shards:,} shards": [
            (100 * lost, 100 * middle(runs(cut(shards), dataclasses.replace(CLUSTER, lost=lost), Policy()), "waste"))
            for lost in LOST
        ]
        for shards in (5_000, 60_000)
    }
    return Chart("1,000 nodes: work done in vain", "% of nodes lost", "% of all work", curves)


def by_requests() -> Chart:
    """A store that grants 5,500 requests a second, an image a request: one tenth of the job, for time's sake."""
    part = dataclasses.replace(JOB, images=IMAGES // 10, shards=6_000)
    found = {most: simulate(part, dataclasses.replace(STORE, nodes=most, lost=0.0), Policy()) for most in AT_ONCE}
    curves = {
        "time / ideal": [(most, each.ratio) for most, each in found.items()],
        "slots paid / slots needed": [(most, each.cost) for most, each in found.items()],
        "refused / granted": [
            (most, each.refused / (part.shards * part.task_requests)) for most, each in found.items()
        ],
    }
    return Chart("a store of 5,500 requests/s", "nodes at work", "times", curves)


if __name__ == "__main__":
    sys.exit(main())
