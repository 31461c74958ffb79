"""A shard's task: small, and run twice at once or by a run whose successor has begun,
its shard is whole.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_sets import ENGINE, read_catalog
from msgspec.structs import replace
from power_cut import flat, record_run
from syscalls import require_strace

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Box
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.shards.maker import ShardMaker, ShardTask
from imagenet_prep.shards.unfinished import unfinished
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

NAME = "validation-00000-of-00001"

MAKE = """
import pickle, sys
from msgspec.structs import replace
from imagenet_prep.errors import PrepError
from imagenet_prep.shards.maker import ShardMaker

class Halting:
    def __init__(self, recorder, after):
        self.recorder, self.left = recorder, after

    def record(self, item, data):
        if self.left == 0:
            print("so far", flush=True)
            if sys.stdin.readline() != "go on\\n":
                raise RuntimeError("it goes wrong")
        self.left -= 1
        return self.recorder.record(item, data)

with open(sys.argv[1], "rb") as file:
    task = pickle.load(file)
try:
    recorder = Halting(task.recorder, len(task.catalog) // int(sys.argv[2]))
    outcome = ShardMaker()(replace(task, recorder=recorder))
except PrepError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
print(outcome.info.digest, flush=True)
"""


class Writer:
    """A process that has written half of a shard, or another part,
    and waits to be told to go on.
    """

    def __init__(self, task: ShardTask, folder: Path, part: int = 2) -> None:
        path = folder / f"{os.urandom(4).hex()}.pickle"
        path.write_bytes(pickle.dumps(task))
        self._process = subprocess.Popen(
            [sys.executable, "-c", MAKE, path, str(part)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "so far\n"

    def kill(self) -> None:
        """What the out-of-memory killer does."""
        self._process.kill()
        self._process.communicate()

    def go_on(self, word: str = "go on") -> tuple[int, str]:
        """Let it end; its exit status and what it said."""
        said, _ = self._process.communicate(f"{word}\n", timeout=600)
        return self._process.returncode, said


@pytest.fixture
def task(tmp_path: Path, made_tiny: MadeSet) -> ShardTask:
    """A task of some megabytes, so that a quarter of it is in the file when its writer halts."""
    layout = Layout(tmp_path / "data")
    for folder in (layout.partial_dir, layout.index_dir):
        folder.mkdir(parents=True)
    catalog = read_catalog(made_tiny.archives["validation"], "validation", ENGINE)
    return ShardTask(
        NAME, "f" * 64, layout, catalog.whole([*range(80)] * 150), InceptionRecorder(check="header")
    )


@pytest.fixture
def expected(task: ShardTask, tmp_path: Path) -> dict[str, bytes]:
    """Shard and index as a single run leaves them, by name."""
    layout = Layout(tmp_path / "alone")
    for folder in (layout.partial_dir, layout.index_dir):
        folder.mkdir(parents=True)
    ShardMaker()(replace(task, layout=layout))
    return made(layout)


def made(layout: Layout) -> dict[str, bytes]:
    """Shard and index by name."""
    return {
        path.name: path.read_bytes()
        for path in (layout.shard_path(NAME), *layout.index_paths(NAME))
    }


def test_one_that_dies_does_not_harm_the_other(
    task: ShardTask, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """A second run of a task begins and is killed while the first still writes:
    the first one's shard is whole.
    """
    first, second = Writer(task, tmp_path), Writer(task, tmp_path, 4)
    second.kill()
    assert first.go_on()[0] == 0
    assert made(task.layout) == expected


def test_both_end_well(task: ShardTask, expected: dict[str, bytes], tmp_path: Path) -> None:
    """Each of two runs of a task has its shard; the second one replaces it by the same bytes."""
    first, second = Writer(task, tmp_path), Writer(task, tmp_path, 4)
    for writer in (second, first):
        assert writer.go_on()[0] == 0
        assert made(task.layout) == expected
    assert os.listdir(task.layout.partial_dir) == []


def test_a_later_run_is_not_overwritten(task: ShardTask, tmp_path: Path) -> None:
    """A worker that outlives its run can't put its shard in the place of
    one that the next run made otherwise.
    """
    with unfinished(task.layout) as own:
        orphan = Writer(replace(task, layout=own), tmp_path)
        with unfinished(task.layout) as later:  # the driver is dead: nothing of its end is done
            compressed = replace(task, layout=later, compression="gzip")
            ShardMaker()(compressed)
            expected = made(task.layout)
            status, said = orphan.go_on()
            assert made(task.layout) == expected
        assert (status, said.splitlines()[0]) == (
            8,
            f"{NAME} was not finished: its partial file is gone",
        )


def test_a_maker_far_from_who_journals_makes_all_of_it_durable(
    task: ShardTask, tmp_path: Path
) -> None:
    """Right after it, a power cut takes nothing of shard or index;
    nobody else could sync them on that machine.
    """
    require_strace()
    few = task.catalog.whole(range(10))
    path = tmp_path / "task.pickle"
    path.write_bytes(pickle.dumps(replace(task, layout=Layout(Path()), catalog=few, syncs=True)))
    script = "import pickle, sys, pathlib; from imagenet_prep.shards.maker import ShardMaker\n"
    script += "assert ShardMaker()(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())).info"
    folders = {f"imagenet-prep/{name}/other": b"" for name in ("partial", "index")}
    end = record_run(["-c", script, str(path)], tmp_path / "run", **folders).end()
    expected = flat(end.tree())
    assert len(expected) == 3 + len(folders)
    trees = [flat(tree) for _, tree in end.after_cut()]
    assert trees
    assert all(expected.items() <= tree.items() for tree in trees)


def test_a_driver_that_died_leaves_nothing(task: ShardTask, tmp_path: Path) -> None:
    """What a killed run left is removed by the next one; at its end, all is."""
    leave = (
        "import sys, os; from pathlib import Path; from imagenet_prep.storage.layout import "
        "Layout\n"
    )
    leave += "from imagenet_prep.shards.unfinished import unfinished\n"
    leave += "with unfinished(Layout(Path(sys.argv[1]))) as own:\n"
    leave += (
        "    own.bundle_dir.mkdir(); own.bundle_dir.joinpath('a').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", leave, task.layout.data_dir], check=False)
    (left,) = task.layout.partial_dir.iterdir()
    with unfinished(task.layout) as own:
        assert list(task.layout.partial_dir.iterdir()) == [own.partial_dir]
        assert own.partial_dir != left
    assert not task.layout.partial_dir.exists()


# what a task holds --------------------------------------------------------------------------------


def test_a_task_of_1300_images_is_small() -> None:
    """With names, addresses, boxes and the words of its classes it pickles to less than 300 kB,
    of any data set.
    """
    wnids = facts.synsets() * 20
    archives = [
        Archive(Path(f"/data/raw-data/ILSVRC2012_img_train_{number}.tar")) for number in range(2000)
    ]
    listing = CatalogBuilder(*archives)
    for number, wnid in enumerate(wnids):
        listing.append(
            f"{wnid}_{number}.JPEG",
            512 * number,
            110_000 + number,
            1_700_000_000_000_000_000,
            1 + number,
        )
    catalog = listing.listed()
    catalog.container_ids = np.arange(20_000) % 2000
    catalog.classes = {label: (wnid, facts.texts()[wnid]) for label, wnid in enumerate(wnids, 1)}
    catalog.attach_boxes({name: [Box(0.25, 0.25, 0.5, 0.75)] * 2 for name in catalog.names})
    rows = range(7, 20_000, 15)
    whole = catalog.whole(rows)
    assert [whole.item(number) for number in range(len(rows))] == [
        catalog.item(row) for row in rows
    ]
    assert [whole.place(number) for number in range(len(rows))] == [
        catalog.place(row) for row in rows
    ]
    task = ShardTask(
        "train-00000-of-00015", "f" * 64, Layout(Path("data")), whole, InceptionRecorder()
    )
    assert len(rows) > 1300
    assert len(pickle.dumps(task)) < 300_000
