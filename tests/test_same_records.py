"""The same 64 records by every way to read them:
the same bytes and labels, whichever framework trains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, PART
from test_export import samples_of
from test_export_tfds import examples, export_tfds

import imagenet_prep
from imagenet_prep.stages.export import export
from imagenet_prep.storage.layout import Layout

tf = tf_fixture.tf

INDICES = [(37 * number + 11) % 300 for number in range(64)]
"""64 of 300 records, in no order."""

Pair = tuple[bytes, int]
"""The image's file as the record holds it, and the label: 1 to 1000."""


@pytest.fixture(scope="module")
def expected(sound: Layout) -> list[Pair]:
    """What imagenet_prep.open gives."""
    records = imagenet_prep.open(sound.data_dir, "train")
    assert (len(records), len(set(INDICES))) == (300, 64)
    return [(bytes(record.encoded), record.label) for record in records[INDICES]]


@pytest.mark.filterwarnings("ignore:a part of:UserWarning")
def test_raw_data(sound: Layout, expected: list[Pair]) -> None:
    """Straight from the archives, without a shard: whole records, too."""
    raw = imagenet_prep.open(sound.data_dir, "train", source="raw", raw=sound.raw, options=PART)
    assert [(bytes(record.encoded), record.label) for record in raw[INDICES]] == expected
    shards = imagenet_prep.open(sound.data_dir, "train")
    assert [bytes(record.data) for record in raw[INDICES]] == [
        bytes(record.data) for record in shards[INDICES]
    ]


def test_pytorch(torch: Any, sound: Layout, expected: list[Pair]) -> None:
    """The set under PyTorch's own DataLoader, two workers: records as they are."""
    records = imagenet_prep.open(sound.data_dir, "train")
    loader = torch.utils.data.DataLoader(
        records, 8, sampler=INDICES, num_workers=2, collate_fn=list
    )
    found = [record for batch in loader for record in batch]
    assert [(bytes(record.encoded), record.label) for record in found] == expected


def test_pytorch_images(torch: Any, sound: Layout, expected: list[Pair]) -> None:
    """ImageDataset: pixels of just these bytes, and labels from 0."""
    from imagenet_prep.images.pixels import decode_array
    from imagenet_prep.torch import ImageDataset

    dataset = ImageDataset(imagenet_prep.open(sound.data_dir, "train"))
    for (image, label), (encoded, expected_label) in zip(
        dataset.__getitems__(INDICES), expected, strict=True
    ):
        assert torch.equal(image, torch.from_numpy(decode_array(encoded)).permute(2, 0, 1))
        assert label == expected_label - 1


@pytest.mark.torch  # what make portable leaves out with it
@pytest.mark.filterwarnings("ignore:a part of:UserWarning")
@pytest.mark.parametrize("source", ["shards", "raw"])
def test_grain(source: str, sound: Layout, expected: list[Pair]) -> None:
    """Grain's MapDataset, by number and in order."""
    import grain

    records: Any = imagenet_prep.open(sound.data_dir, "train")
    if source == "raw":
        records = imagenet_prep.open(
            sound.data_dir, "train", source="raw", raw=sound.raw, options=PART
        )
    pairs = grain.MapDataset.source(records).map(
        lambda record: (bytes(record.encoded), record.label)
    )
    assert [pairs[index] for index in INDICES] == expected
    in_order = list(pairs.to_iter_dataset())
    assert [in_order[index] for index in INDICES] == expected


def test_tf_data(tf: Any, sound: Layout, expected: list[Pair]) -> None:
    """tf.data over the files themselves, with parse_example."""
    from imagenet_prep.tensorflow import parse_example

    paths = [str(path) for path in imagenet_prep.open(sound.data_dir, "train").paths]
    found = list(tf.data.TFRecordDataset(paths).map(parse_example))
    assert [
        (found[index]["encoded"].numpy(), int(found[index]["label"])) for index in INDICES
    ] == expected


def test_tfds(tf: Any, sound: Layout, expected: list[Pair], tmp_path: Path) -> None:
    """TensorFlow Datasets, by the files that export tfds writes."""
    import tensorflow_datasets

    found = examples(tensorflow_datasets, export_tfds(sound, tmp_path / "tfds"))
    pairs = [
        (found[index]["image/encoded"], int(found[index]["image/class/label"])) for index in INDICES
    ]
    assert pairs == expected


def test_webdataset(sound: Layout, expected: list[Pair], tmp_path: Path) -> None:
    """The tars of export webdataset, one after the other; their classes count from 0."""
    export(sound, "webdataset", tmp_path / "out", ENGINE)
    found = samples_of(existing(tmp_path / "out", "imagenet-train-*.tar"))
    pairs = [(found[index]["jpg"], int(found[index]["cls"]) + 1) for index in INDICES]
    assert pairs == expected
