"""Simulation: a job, a cluster and a policy -> how long it takes, what is wasted, what it costs.

A discrete-event model: a heap of moments at which something happens. One driver hands out tasks one after the other;
slots work on them; nodes are slow or die; the store refuses requests beyond its rate (503), and who is refused waits.
Nothing here reads a clock: the same seed gives the same result.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

STEP = 100
"""Requests that one event stands for: 13 million events would take minutes."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done.

    Args:
        images: how many there are.
        shards: how many tasks they are cut into.
        image_seconds: what an image takes a slot of ordinary speed, its bytes read and written.
        shard_seconds: what a shard takes beside its images: opened, synced, indexed, named.
        spread: of a task's time, as the sigma of a log-normal factor whose mean is 1.
        image_requests, shard_requests: what is asked of the store for an image, and for a shard beside them.
    """

    images: int
    shards: int
    image_seconds: float
    shard_seconds: float = 0.0
    spread: float = 0.0
    image_requests: float = 1.0
    shard_requests: float = 0.0

    @property
    def task_seconds(self) -> float:
        """What a task takes a slot of ordinary speed that nobody refuses anything."""
        return self.shard_seconds + self.image_seconds * self.images / self.shards

    @property
    def task_requests(self) -> float:
        """What a task asks of the store."""
        return self.shard_requests + self.image_requests * self.images / self.shards

    @property
    def bare_seconds(self) -> float:
        """All images on one slot: the work that has to be done however it is cut."""
        return self.image_seconds * self.images


@dataclass(frozen=True, slots=True)
class Cluster:
    """What it is done on.

    Args:
        nodes, slots: machines, and tasks that each runs at once.
        slow, slow_factor: the share of nodes that take so many times as long, from beginning to end.
        lost: the share of nodes that die, at moments spread over the time that ideal work would take.
        notice_seconds: how long after a death its tasks are known to be lost.
        dispatch_seconds: what the driver takes for each task, one after the other: made, sent, journalled.
        request_rate: requests a second that the store grants; None: as many as are asked for.
    """

    nodes: int
    slots: int = 1
    slow: float = 0.0
    slow_factor: float = 1.0
    lost: float = 0.0
    notice_seconds: float = 10.0
    dispatch_seconds: float = 0.0
    request_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How it is done.

    Args:
        second_runs: at the end, when slots are idle, what is out for ``late`` times the median runs a second time.
        ahead: tasks handed out at most, in slots: those beyond one a slot wait at hand.
        most: tasks that run at once at most; None: one a slot.
        wait_first, wait_most: a refused request waits a random time up to the first, doubled each time up to the most.
    """

    second_runs: bool = True
    late: float = 1.2
    ahead: float = 2.0
    most: int | None = None
    wait_first: float = 0.1
    wait_most: float = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Args:
        seconds: from the first task handed out to the last one done.
        ideal: the images' work divided among all slots, or all requests at the store's rate if that takes longer.
        wasted: slot-seconds of runs that did not count: their node died, or another run of the task was first.
        held: slot-seconds that were paid for: of each node until it died, or all was done.
        refused: requests that were answered by 503.
        second_runs: tasks begun a second time because they were late.
        tasks_lost: runs that went with their node.
    """

    seconds: float
    ideal: float
    wasted: float
    held: float
    work: float
    refused: int
    second_runs: int
    tasks_lost: int

    @property
    def ratio(self) -> float:
        """Time beside ideal."""
        return self.seconds / self.ideal

    @property
    def waste(self) -> float:
        """Wasted work as a share of all that was needed."""
        return self.wasted / self.work

    @property
    def cost(self) -> float:
        """What was paid for, beside the work itself."""
        return self.held / self.work


def ideal_seconds(job: Job, cluster: Cluster) -> float:
    """What no schedule could be faster than: all slots work all the time, or the store is asked all the time."""
    work = job.bare_seconds / (cluster.nodes * cluster.slots)
    if cluster.request_rate is None:
        return work
    return max(work, job.shards * job.task_requests / cluster.request_rate)


def simulate(job: Job, cluster: Cluster, policy: Policy | None = None, seed: int = 0) -> Outcome:
    """Run a job to its end."""
    return _Run(job, cluster, policy or Policy(), random.Random(seed)).outcome()


@dataclass(slots=True)
class _Node:
    speed: float
    dies: float | None
    runs: set[_Attempt] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Attempt:
    task: int
    node: _Node
    sent: float
    began: float
    steps: int
    step_seconds: float
    step_requests: float
    refusals: int = 0
    is_over: bool = False


class _Run:
    def __init__(self, job: Job, cluster: Cluster, policy: Policy, draw: random.Random) -> None:
        self._job, self._cluster, self._policy, self._draw = job, cluster, policy, draw
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = itertools.count()
        self._ideal = ideal_seconds(job, cluster)
        self._nodes = self._make_nodes()
        self._idle: deque[_Node] = deque(node for node in self._nodes for _ in range(cluster.slots))
        draw.shuffle(self._idle)
        self._ready: deque[tuple[float, int]] = deque()  # handed out: from when, and which task
        self._next_task, self._driver_free = 0, 0.0
        self._running: dict[int, list[_Attempt]] = {}
        self._done: set[int] = set()
        self._times: deque[float] = deque(maxlen=1001)  # of the tasks done last
        self._is_watched = False
        self._tokens, self._filled = float(STEP), 0.0
        self._wasted = 0.0
        self._counts = {"refused": 0, "second": 0, "lost": 0}

    def outcome(self) -> Outcome:
        for node in self._nodes:
            if node.dies is not None:
                self._at(node.dies, self._die, node)
        for _ in range(int(self._policy.ahead * len(self._idle))):
            self._hand_out()
        self._fill()
        while len(self._done) < self._job.shards:
            if not self._events:
                raise RuntimeError("every node is dead")
            self._now, _, call, given = heapq.heappop(self._events)
            call(*given)
        slots = self._cluster.slots
        held = slots * sum(self._now if node.dies is None else min(self._now, node.dies) for node in self._nodes)
        return Outcome(
            self._now,
            self._ideal,
            self._wasted,
            held,
            self._job.bare_seconds,
            self._counts["refused"],
            self._counts["second"],
            self._counts["lost"],
        )

    def _make_nodes(self) -> list[_Node]:
        cluster, draw = self._cluster, self._draw
        speeds = [1.0] * cluster.nodes
        for number in draw.sample(range(cluster.nodes), round(cluster.slow * cluster.nodes)):
            speeds[number] = 1 / cluster.slow_factor
        nodes = [_Node(speed, None) for speed in speeds]
        for node in draw.sample(nodes, round(cluster.lost * cluster.nodes)):
            node.dies = draw.uniform(0, self._ideal)
        return nodes

    def _at(self, moment: float, call: Callable[..., None], *given: Any) -> None:
        heapq.heappush(self._events, (moment, next(self._number), call, given))

    # the driver ----------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        """Hand out the next task, if there is one: it is at hand when the driver is through with it."""
        if self._next_task < self._job.shards:
            self._driver_free = max(self._driver_free, self._now) + self._cluster.dispatch_seconds
            self._ready.append((self._driver_free, self._next_task))
            self._next_task += 1

    def _fill(self) -> None:
        """Give work to idle slots."""
        while self._idle and self._ready and not self._is_full():
            moment, task = self._ready.popleft()
            node = self._idle.popleft()
            if node.dies is None or max(moment, self._now) < node.dies:
                self._begin(task, node, moment, max(moment, self._now))
            else:  # a dead slot, or one that will be by then
                self._ready.appendleft((moment, task))
        if self._policy.second_runs and self._idle and not self._ready and self._next_task == self._job.shards:
            self._watch()

    def _is_full(self) -> bool:
        return self._policy.most is not None and len(self._running) >= self._policy.most

    def _watch(self) -> None:
        """Begin what is late a second time; look again later."""
        usual = median(self._times) if self._times else self._job.task_seconds
        for task, attempts in sorted(self._running.items(), key=lambda each: each[1][0].sent):
            while self._idle and self._idle[0].dies is not None and self._idle[0].dies <= self._now:
                self._idle.popleft()
            if not self._idle:
                break
            if len(attempts) == 1 and self._now - attempts[0].sent > self._policy.late * usual:
                self._counts["second"] += 1
                self._begin(task, self._idle.popleft(), self._now, self._now)
        if self._running and not self._is_watched:
            self._is_watched = True
            self._at(self._now + usual / 8, self._look_again)

    def _look_again(self) -> None:
        self._is_watched = False
        self._fill()

    # a run of a task -----------------------------------------------------------------------------------------------

    def _begin(self, task: int, node: _Node, sent: float, moment: float) -> None:
        job = self._job
        factor = self._draw.lognormvariate(-(job.spread**2) / 2, job.spread) if job.spread else 1.0
        requests = job.task_requests if self._cluster.request_rate else 0.0
        steps = max(1, round(requests / STEP))
        seconds = job.task_seconds * factor / node.speed
        attempt = _Attempt(task, node, sent, moment, steps, seconds / steps, requests / steps)
        node.runs.add(attempt)
        self._running.setdefault(task, []).append(attempt)
        self._at(moment, self._step, attempt)

    def _step(self, attempt: _Attempt) -> None:
        """The store is asked; what it grants takes its time, what it refuses is asked for again later."""
        if attempt.is_over:
            return
        if not attempt.steps:
            self._end(attempt)
        elif self._is_granted(attempt.step_requests):
            attempt.steps -= 1
            attempt.refusals = 0
            self._at(self._now + attempt.step_seconds, self._step, attempt)
        else:
            self._counts["refused"] += round(attempt.step_requests)
            longest = min(self._policy.wait_most, self._policy.wait_first * 2**attempt.refusals)
            attempt.refusals += 1
            self._at(self._now + self._draw.uniform(0, longest), self._step, attempt)

    def _is_granted(self, requests: float) -> bool:
        rate = self._cluster.request_rate
        if rate is None:
            return True
        self._tokens = min(max(rate, STEP), self._tokens + rate * (self._now - self._filled))
        self._filled = self._now
        if self._tokens < requests:
            return False
        self._tokens -= requests
        return True

    def _end(self, attempt: _Attempt) -> None:
        """The first run of a task counts; another one is ended with it."""
        self._done.add(attempt.task)
        self._times.append(self._now - attempt.sent)
        for each in self._running.pop(attempt.task):
            if each is not attempt and not each.is_over:
                self._wasted += self._now - each.began
            if not each.is_over:
                self._free(each)
        self._hand_out()
        self._fill()

    def _free(self, attempt: _Attempt) -> None:
        attempt.is_over = True
        attempt.node.runs.discard(attempt)
        self._idle.append(attempt.node)

    def _die(self, node: _Node) -> None:
        """All that ran there is lost, and known to be so after a while."""
        for attempt in sorted(node.runs, key=lambda each: each.task):
            attempt.is_over = True
            self._wasted += max(0.0, self._now - attempt.began)
            self._counts["lost"] += 1
            self._at(self._now + self._cluster.notice_seconds, self._again, attempt)
        node.runs.clear()

    def _again(self, attempt: _Attempt) -> None:
        """What was lost is handed out once more, before all else, unless a second run is on its way."""
        attempts = self._running.get(attempt.task)
        if attempts is None or attempt not in attempts:
            return
        attempts.remove(attempt)
        if not attempts:
            del self._running[attempt.task]
            self._ready.appendleft((self._now, attempt.task))
        self._fill()
