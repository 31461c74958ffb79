"""The simulation of a cluster against what can be computed by hand; and that docs/scale.md says what it gives."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.project, pytest.mark.once]

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """scripts/simulation/cluster.py."""
    monkeypatch.syspath_prepend(str(SCRIPTS / "simulation"))
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("cluster")


@pytest.mark.parametrize(("shards", "slots", "waves"), [(1, 10, 1), (10, 10, 1), (11, 10, 2), (100, 7, 15)])
def test_without_trouble_tasks_run_in_waves(model: Any, shards: int, slots: int, waves: int) -> None:
    """The time is that of as many tasks as the busiest slot has; nothing is wasted."""
    job = model.Job(1000 * shards, shards, 0.01, shard_seconds=0.5)
    found = model.simulate(job, model.Cluster(slots), model.Policy(second_runs=False))
    assert found.seconds == pytest.approx(waves * 10.5)
    assert (found.wasted, found.refused, found.tasks_lost, found.second_runs) == (0, 0, 0, 0)
    assert found.cost == pytest.approx(slots * found.seconds / (10 * shards))


def test_one_node_does_all_the_work(model: Any) -> None:
    """One slot: the sum of all tasks; two on it: half."""
    job = model.Job(1000, 10, 0.01)
    assert model.simulate(job, model.Cluster(1)).ratio == pytest.approx(1)
    assert model.simulate(job, model.Cluster(1, slots=2)).seconds == pytest.approx(5)


def test_a_driver_bounds_how_many_tasks_begin(model: Any) -> None:
    """Tasks shorter than a round of handing out: the driver's time for all of them, and the last task."""
    job = model.Job(500, 500, 0.1)
    found = model.simulate(job, model.Cluster(100, dispatch_seconds=0.01))
    assert found.seconds == pytest.approx(500 * 0.01 + 0.1)


def test_a_store_bounds_how_many_requests_are_granted(model: Any) -> None:
    """Many slots at a slow store: all requests at its rate, and little more, however many are refused."""
    job = model.Job(100_000, 100, 0.0001)
    found = model.simulate(job, model.Cluster(50, request_rate=1000.0), model.Policy(second_runs=False))
    assert found.ideal == pytest.approx(100)
    assert 0.97 < found.ratio < 1.15
    assert found.refused > 0


def test_a_slow_node_takes_fewer_tasks(model: Any) -> None:
    """Two slots, one at half speed, three tasks: two and one."""
    job = model.Job(3, 3, 1.0)
    cluster = model.Cluster(2, slow=0.5, slow_factor=2.0)
    assert model.simulate(job, cluster, model.Policy(second_runs=False)).seconds == pytest.approx(2)


def test_a_late_task_runs_a_second_time(model: Any) -> None:
    """One node is a hundred times slower: without second runs all wait for it, with them only until it is late."""
    job = model.Job(20, 20, 1.0)
    cluster = model.Cluster(10, slow=0.1, slow_factor=100.0)
    alone = model.simulate(job, cluster, model.Policy(second_runs=False))
    again = model.simulate(job, cluster, model.Policy(ahead=1.0))
    assert alone.seconds == pytest.approx(100)
    assert again.second_runs == 1
    assert again.seconds < 8
    assert again.wasted > 0


def test_what_a_node_takes_with_it_is_done_again(model: Any) -> None:
    """Of two nodes one dies: the other does all, once the loss is noticed."""
    job = model.Job(2, 2, 10.0)
    cluster = model.Cluster(2, lost=0.5, notice_seconds=1.0)
    for seed in range(5):
        found = model.simulate(job, cluster, model.Policy(second_runs=False), seed)
        assert found.tasks_lost == 1
        assert 0 < found.wasted < 10
        assert found.seconds == pytest.approx(20)
    with pytest.raises(RuntimeError, match="every node is dead"):
        model.simulate(job, dataclasses.replace(cluster, lost=1.0))


def test_the_same_seed_gives_the_same_run(model: Any) -> None:
    """And another seed another one."""
    script = importlib.import_module("simulate")
    job = dataclasses.replace(script.JOB, shards=5_000)
    one, same, other = (model.simulate(job, script.CLUSTER, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


def test_a_thousand_nodes_are_within_a_tenth_of_ideal(model: Any) -> None:
    """ImageNet-21k, 1% of nodes lost, 5% three times as slow: with the engine's own policy, and not without it."""
    from imagenet_prep.engines import ray_cluster

    script = importlib.import_module("simulate")
    assert (script.CLUSTER.nodes, script.CLUSTER.lost, script.CLUSTER.slow) == (1000, 0.01, 0.05)
    assert (model.Policy().late, model.Policy().ahead) == (ray_cluster.LATE, ray_cluster.AHEAD)
    found = script.runs(script.JOB, script.CLUSTER, model.Policy())
    assert all(each.ratio < 1.1 for each in found)
    assert all(each.waste < 0.01 for each in found)
    few = script.runs(dataclasses.replace(script.JOB, shards=5_000), script.CLUSTER, model.Policy())
    assert all(each.ratio > 1.2 for each in few)
