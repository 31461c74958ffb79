"""A shard's task is whole in itself: any process makes the same shard of it, and nothing is shared by a fork."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
from existing import existing
from made_sets import ENGINE, PART

from imagenet_prep.datasets.plan import InceptionRecorder, plan_name
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.model import Box, Silent
from imagenet_prep.shards.maker import ShardTask
from imagenet_prep.shards.run import lay_out, prepare_tasks, unfinished
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.tars import Archive
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout

MAKE = """
import pickle, sys
from imagenet_prep.recipes.loading import load
from imagenet_prep.shards.maker import ShardMaker
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        outcome = ShardMaker()(pickle.load(file))
"""


def test_a_task_of_1300_images_is_small() -> None:
    """With names, addresses, boxes and the words of its classes it pickles to less than 300 kB, of any data set."""
    wnids = facts.synsets() * 20
    archives = [Archive(Path(f"/data/raw-data/ILSVRC2012_img_train_{number}.tar")) for number in range(2000)]
    listing = CatalogBuilder(*archives)
    for number, wnid in enumerate(wnids):
        listing.append(f"{wnid}_{number}.JPEG", 512 * number, 110_000 + number, 1_700_000_000_000_000_000, 1 + number)
    catalog = listing.listed()
    catalog.container_ids = np.arange(20_000) % 2000
    catalog.classes = {label: (wnid, facts.texts()[wnid]) for label, wnid in enumerate(wnids, 1)}
    catalog.attach_boxes({name: [Box(0.25, 0.25, 0.5, 0.75)] * 2 for name in catalog.names})
    rows = range(7, 20_000, 15)
    whole = catalog.whole(rows)
    assert [whole.item(number) for number in range(len(rows))] == [catalog.item(row) for row in rows]
    assert [whole.place(number) for number in range(len(rows))] == [catalog.place(row) for row in rows]
    task = ShardTask("train-00000-of-00015", "f" * 64, Layout(Path("data")), whole, InceptionRecorder())
    assert len(rows) > 1300
    assert len(pickle.dumps(task)) < 300_000


def test_any_process_makes_the_same_shards_of_tasks(tiny_data_dir: Path, made_tiny: MadeSet, tmp_path: Path) -> None:
    """Tasks that were pickled here and read by a process that knows nothing else: the bytes that convert writes."""
    layout, there = Layout(tiny_data_dir), Layout(tiny_data_dir, output=tmp_path / "there")
    annotate(layout, ENGINE)
    planned = ImageNet().plan(there, ENGINE, PART, Silent())
    todo = [plan for split in planned.splits for plan in split.plans]
    tasks = list(prepare_tasks(lay_out(planned.splits, todo, there, PART), there, PART, Silent()))
    assert [task.name for task in tasks] == list(map(plan_name, todo))
    paths = [tmp_path / f"{task.name}.pickle" for task in tasks]
    for path, task in zip(paths, tasks, strict=True):
        path.write_bytes(pickle.dumps(task))
    with unfinished(there):
        subprocess.run([sys.executable, "-c", MAKE, *paths], check=True)
    convert(layout, ENGINE, PART)
    for path in existing(tiny_data_dir, "*-of-*"):
        assert (there.output_dir / path.name).read_bytes() == path.read_bytes()
