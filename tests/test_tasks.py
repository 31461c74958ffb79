"""A shard's task is whole in itself: any process makes the same shard of it, and nothing is shared by a fork."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from imagenet_prep.datasets.plan import InceptionRecorder
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Box
from imagenet_prep.shards.maker import ShardTask
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.tars import Archive
from imagenet_prep.storage.layout import Layout


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
