"""Readers of others on our shards and indexes: the tfrecord package takes the ``.idx`` as it is.

It runs in a process of its own: it registers the messages of tf.train.Example, which TensorFlow
does too.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from made_sets import data_of
from test_docs import blocks

from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.tensorflow


ROOT = Path(__file__).parents[1]
SHARD = "train-00003-of-00008"

READ = """
import hashlib, sys
from tfrecord.reader import tfrecord_loader

for parts in (1, 2, 3):
    for part in range(parts):
        for record in tfrecord_loader(sys.argv[1], sys.argv[2], shard=(part, parts)):
            digest = hashlib.sha256(bytes(record["image/encoded"])).hexdigest()
            print(parts, *record["image/class/label"], digest)
"""


def run(script: str, *words: Path) -> list[str]:
    """What a script prints, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_tfrecord_package_reads_by_our_index(sound: Layout) -> None:
    """Each of several readers begins where the index says;
    together they read every record once, in order.
    """
    records = [read_record(memoryview(data)) for data in data_of(sound.shard_path(SHARD))]
    expected = [f"{each.label} {hashlib.sha256(each.encoded).hexdigest()}" for each in records]
    found = run(READ, sound.shard_path(SHARD), sound.index_path(SHARD))
    assert found == [f"{parts} {line}" for parts in (1, 2, 3) for line in expected]


def test_the_example_of_the_page_runs(sound: Layout) -> None:
    """docs/export.md shows how."""
    (example,) = (
        block
        for block in blocks((ROOT / "docs" / "export.md").read_text(), "python")
        if "tfrecord" in block
    )
    lines = run(
        example.replace("/data/imagenet", str(sound.data_dir)).replace("-of-01024", "-of-00008")
    )
    records = [
        read_record(memoryview(data)) for data in data_of(sound.shard_path("train-00000-of-00008"))
    ]
    assert lines == [f"{each.filename.encode()!r} [{each.label}]" for each in records]
