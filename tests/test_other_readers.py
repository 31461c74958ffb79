"""Readers of others on our shards and indexes: the tfrecord package takes the ``.idx`` as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_sets import data_of
from test_docs import blocks
from test_export import sound

from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.tensorflow

__all__ = ["sound"]  # the fixture

ROOT = Path(__file__).parents[1]
SHARD = "train-00003-of-00008"


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_tfrecord_package_reads_by_our_index(sound: Layout, parts: int) -> None:
    """Each of several readers begins where the index says; together they read every record once, in order."""
    from tfrecord.reader import tfrecord_loader

    expected = [read_record(memoryview(data)) for data in data_of(sound.shard_path(SHARD))]
    found: list[Any] = []
    for part in range(parts):
        paths = (str(sound.shard_path(SHARD)), str(sound.index_path(SHARD)))
        found += tfrecord_loader(*paths, None, shard=(part, parts))
    assert [bytes(each["image/encoded"]) for each in found] == [each.encoded for each in expected]
    assert [each["image/class/label"].tolist() for each in found] == [[each.label] for each in expected]


def test_the_example_of_the_page_runs(sound: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/export.md shows how."""
    (example,) = (block for block in blocks((ROOT / "docs" / "export.md").read_text(), "python") if "tfrecord" in block)
    example = example.replace("/data/imagenet", str(sound.data_dir)).replace("-of-01024", "-of-00008")
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(data_of(sound.shard_path("train-00000-of-00008")))
    assert all(line.startswith("b'n0") for line in lines)
