"""Times Ray against the local engine: `--check decode` on this machine, with as many workers.

    python scripts/bench_ray.py [--images 10000] [--repeat 3] [--workers 2] [--dir .bench]

Both run in this process in turn, on a warm page cache: the local engine, Ray, and again. Each time is that of a whole
conversion, planning included; Ray's start is reported separately. Tasks that do nothing, as large as those of shards,
then show Ray's cost per task. The script needs the extra: imagenet-prep[ray].
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import CPUS, PROJECT, machine
from bench_data import image_count, make_input

from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Done, Engine, Portable
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout


@dataclass(frozen=True, slots=True)
class Nothing(Portable[bytes]):
    """Does nothing with bytes."""

    def meeting_point(self, task: bytes, token: str) -> Path | None:
        """No file is needed."""
        return None

    def __call__(self, task: bytes) -> int:
        """Its length."""
        return len(task)


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds; processor seconds of this process; those of all processes of this machine, of any user."""

    wall: float
    here: float
    machine: float


@contextmanager
def timed(times: list[Took]) -> Iterator[None]:
    """Append the cost of a block."""
    os.sync()
    wall, here, everywhere = time.perf_counter(), time.process_time(), busy()
    yield
    times.append(Took(time.perf_counter() - wall, time.process_time() - here, busy() - everywhere))


def busy() -> float:
    """Processor seconds of this machine since it started, for any purpose."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Make the input if it does not exist, run, print."""
    given = parse_arguments()
    data = given.dir / f"images-{given.images}"
    if not data.exists():
        make_input("images", given.images, data)
    engines = {"local": make_engine("processes", given.workers), "ray": make_engine("ray", given.workers)}
    started: list[Took] = []
    with timed(started):
        assert engines["ray"].workers >= 1  # it connects
        list(engines["ray"].map(Nothing(), [b""] * given.workers))  # and starts its workers
    times: dict[str, list[Took]] = {name: [] for name in engines}
    for _ in range(given.repeat):
        for name, engine in engines.items():
            times[name].append(one_round(engine, data, given))
    print(f"Ray's start, its workers included: {started[0].wall:.1f} s")
    for name, found in times.items():
        print(f"{name}: {table_row(found)}")
    ratio = median(ray.wall / local.wall for ray, local in zip(times["ray"], times["local"], strict=True))
    print(f"Ray / local: {ratio:.2f} (median of {given.repeat} rounds' ratios; the goal is at most 1.3)")
    for size in (1_000, 50_000, 100_000):
        one_task(engines["ray"], size)
    print(f"{image_count(given.images):,} images, {given.workers} workers\n\n{machine()}")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=PROJECT / ".bench", help="for inputs (kept) and outputs (removed)")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    parser.add_argument("--workers", type=int, default=CPUS)
    return parser.parse_args()


def one_round(engine: Engine, data: Path, given: argparse.Namespace) -> Took:
    """A whole conversion, in 72 shards for 10,000 images, as in bench.py."""
    out = given.dir / "out-ray"
    shutil.rmtree(out, ignore_errors=True)
    shards = {
        "train_shards": max(8, given.images * 64 // 10_000),
        "validation_shards": max(1, given.images * 8 // 10_000),
    }
    options = ConvertOptions(check="decode", allow_incomplete=True, **shards)
    times: list[Took] = []
    with timed(times):
        convert(Layout(out, raw=data / "raw-data"), engine, options)
    shutil.rmtree(out)
    return times[0]


def table_row(times: list[Took]) -> str:
    """The medians as text."""
    wall, everywhere = median(each.wall for each in times), median(each.machine for each in times)
    return f"{wall:.2f} s wall, {everywhere:.2f} s of processors on the whole machine"


def one_task(engine: Engine, size: int, count: int = 3_000) -> None:
    """Tasks that do nothing, of so many bytes."""
    times: list[Took] = []
    with timed(times):
        outcomes = list(engine.map(Nothing(), (os.urandom(8) + bytes(size) for _ in range(count))))
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    wall, here = (1e3 * seconds / count for seconds in (times[0].wall, times[0].here))
    print(f"a task of {size:,} bytes: {wall:.2f} ms wall, {here:.2f} ms of processor time in the driver")


if __name__ == "__main__":
    import bench_ray  # a worker knows what is of a module by the module's name

    bench_ray.main()
