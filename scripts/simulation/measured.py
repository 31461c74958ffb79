"""Task times: the processor seconds of real shards, and how to measure them on another machine."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from imagenet_prep.demo.archives import make
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Silent
from imagenet_prep.shards.maker import ShardMaker, ShardTask
from imagenet_prep.shards.run import lay_out, prepare_tasks, unfinished
from imagenet_prep.storage.layout import Layout


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """Processor seconds: of each image; of a shard beside its images; how far shards differ (sigma / mean)."""

    image: float
    shard: float
    spread: float


KINDS = {
    "as they are": ConvertOptions(check="header", allow_incomplete=True),
    "decoded": ConvertOptions(check="decode", allow_incomplete=True),
    "resized": ConvertOptions(reencode=Reencode(resize=256, quality=90), allow_incomplete=True),
}

_IMAGES = 400


def measure() -> dict[str, TaskTimes]:
    """Make shards of 10 and of 50 photographs in this process, and take the line through both: seconds of work."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder, "raw"), classes=10, per_class=_IMAGES // 10, validation=2)
        for kind, options in KINDS.items():
            few, many = (list(_times(Path(folder), options, size)) for size in (10, 50))
            image = (statistics.median(many) - statistics.median(few)) / 40
            shard = max(0.0, statistics.median(few) - 10 * image)
            found[kind] = TaskTimes(image, shard, statistics.stdev(many) / statistics.mean(many))
    return found


def _times(folder: Path, options: ConvertOptions, size: int) -> Iterator[float]:
    """The processor time of each train shard of so many images, but for the first, which imports what it needs."""
    from dataclasses import replace

    options = replace(options, train_shards=_IMAGES // size, validation_shards=1)
    layout = Layout(folder / "out", raw=folder / "raw")
    planned = ImageNet().plan(layout, ThreadEngine(1), options, Silent())
    splits = [split for split in planned.splits if split.catalog.split == "train"]
    plans = [plan for split in splits for plan in split.plans]
    with unfinished(layout) as own:
        for number, task in enumerate(_tasks(splits, plans, own, options)):
            began = time.process_time()
            ShardMaker()(task)
            if number:
                yield time.process_time() - began


def _tasks(splits: list, plans: list, layout: Layout, options: ConvertOptions) -> Iterator[ShardTask]:  # type: ignore[type-arg]
    return prepare_tasks(lay_out(splits, plans, layout, options), layout, options, Silent())
