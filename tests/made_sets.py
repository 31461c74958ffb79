"""What tests of whole sets share: a converted set, and the records of its shards read and written again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.formats import tfrecord
from imagenet_prep.layout import Layout
from imagenet_prep.planning import ConvertOptions
from imagenet_prep.stages.convert import convert

ENGINE = make_engine("threads", 2)
PART = ConvertOptions(train_shards=8, validation_shards=8, allow_incomplete=True)


def converted(folder: Path, source: MadeSet, options: ConvertOptions = PART) -> Layout:
    """A DATA_DIR with its own copies of the archives, and the shards that convert made of them."""
    layout = Layout(folder)
    layout.raw_dir.mkdir(parents=True)
    for archive in source.archives.values():
        shutil.copy2(archive, layout.raw_dir)
    convert(layout, ENGINE, options)
    return layout


def copied(layout: Layout, folder: Path) -> Layout:
    """A test's own copy of a DATA_DIR."""
    return Layout(Path(shutil.copytree(layout.data_dir, folder)))


def data_of(path: Path) -> list[bytes]:
    """The data of each record of an undamaged shard."""
    return [bytes(record.data) for record in tfrecord.iter_records(memoryview(path.read_bytes()))]


def write(path: Path, records: Iterable[bytes]) -> None:
    """A shard of these records, soundly framed."""
    framed = ((header, data, footer) for data in records for header, footer, _ in [tfrecord.frame(data)])
    path.write_bytes(b"".join(part for record in framed for part in record))
