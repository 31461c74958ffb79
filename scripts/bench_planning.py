"""Plans a made-up set of millions of files: processor time and peak memory.

    python scripts/bench_planning.py --images 13153500 --classes 19167 --shards 10240

Only the listing is made up: reading folders and file status, which no planning can avoid, is
replaced. Each class folder returns names like ImageNet's, with lengths and times. That time is not
counted. The rest is what convert does with a recipe of class folders: each part is pickled as a
worker would send it, joined, checked, labelled, divided, shuffled, cut into shards with their
fingerprints; then every task is made and pickled.
"""

from __future__ import annotations

import argparse
import functools
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.model import Done, Silent
from imagenet_prep.recipes import loading
from imagenet_prep.shards.run import prepare_tasks
from imagenet_prep.shards.work import Work
from imagenet_prep.sources import folders as folders_module
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.storage.layout import Layout

_made_up = 0.0
"""Processor seconds of making up the listing, which are not counted."""


class Here:
    """An engine of one process that sends each result as a worker does."""

    workers = 1

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Run one task after the other."""
        global _made_up
        for task in tasks:
            began = time.process_time()
            value = pickle.dumps(function(task))
            _made_up += time.process_time() - began
            yield Done(task, pickle.loads(value))


def made_up(images: int, classes: int) -> tuple[list[str], Callable[[Any, str], Any]]:
    """The class folders, and a function that lists one."""
    folders = [f"n{number:08d}" for number in range(classes)]

    def walk(self: Any, folder: str) -> Any:
        number, lead = int(folder[1:]), f"{folder}/{folder}_"
        count = images * (number + 1) // classes - images * number // classes
        names = sorted(f"{lead}{7 * each % 100_003}.JPEG" for each in range(count))
        found = CatalogBuilder(folders_module.Folder(self.base))
        for number, name in enumerate(names):
            found.append(
                name,
                0,
                90_000 + number * 7919 % 60_007,
                1_600_000_000_000_000_000 + number * 7_919_000_123,
            )
        return found.listed(), Remarks()

    return folders, walk


def main() -> int:
    """Plan, and print the cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=19_167)
    parser.add_argument("--shards", type=int, default=1024)
    given = parser.parse_args()
    folders, walk = made_up(given.images, given.classes)
    empty = functools.partial(folders_module._WalkedFiles, rows=CatalogBuilder())
    folders_module._Walk.start = lambda self: (empty(remarks=Remarks()), list(folders))  # type: ignore[method-assign]
    folders_module._Walk._below = walk  # type: ignore[method-assign]
    wall, began = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "set").mkdir()
        recipe = Path(folder) / "recipe.yaml"
        recipe.write_text(f"source: {{folders: set}}\nshards: {given.shards}\nrecord: inception\n")
        planned = loading.load(recipe, None, Here()).cut()  # type: ignore[arg-type]
        (split,) = planned.splits
        works = [Work(split, split.plans, 0, in_order=False)]
        sizes = [
            len(pickle.dumps(task))
            for task in prepare_tasks(works, Layout(Path(folder)), MakingOptions(), Silent())
        ]
    spent = time.process_time() - began - _made_up
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    images = len(split.catalog)
    print(
        f"{images:,} images of {given.classes:,} classes in {len(sizes):,} shards: {spent:.1f} s of"
    )
    print(
        f"processor time, {most:,.0f} MB at most, {1000 * sum(sizes) / images / 1000:.1f} kB of "
        "tasks for 1,000 images;"
    )
    print(
        f"not counted: {_made_up:.1f} s to make the listing up; "
        f"by the clock {time.monotonic() - wall:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
