"""imagenet_prep.tensorflow: batches for training and evaluation,
and what people's own pipelines take.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_fixture
from made_sets import annotated, make_flowers
from PIL import Image, ImageDraw
from running import command

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.storage.layout import Layout

tf = tf_fixture.tf


@pytest.fixture(scope="module")
def made_set(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """48 photographs in 8 shards, some with boxes, and 24 of validation. Read only."""
    return annotated(tmp_path_factory.mktemp("made-set") / "data", made)


def everything(dataset: Any) -> tuple[np.ndarray, list[int]]:
    """All images and all labels of a dataset."""
    batches = [(images.numpy(), labels.numpy()) for images, labels in dataset]
    return np.concatenate([each for each, _ in batches]), [
        int(label) for _, each in batches for label in each
    ]


def test_an_evaluation_sees_the_middle_of_every_image(tf: Any, made_set: Layout) -> None:
    """In order, the last batch shorter; labels count from 0;
    pixels are those of TensorFlow's own steps.
    """
    from imagenet_prep.tensorflow import dataset

    found = imagenet_prep.open(made_set.data_dir, "validation")
    images, labels = everything(
        dataset(made_set.data_dir, "validation", batch_size=7, image_size=64)
    )
    assert labels == [record.label - 1 for record in found]
    assert images.shape == (len(found), 64, 64, 3)
    assert images.dtype == np.float32
    for record, image in zip(found, images, strict=True):
        pixels = tf.io.decode_jpeg(bytes(record.encoded), channels=3).numpy()
        height, width = (int(side * np.float32(0.875)) for side in pixels.shape[:2])
        top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
        middle = pixels[top : top + height, left : left + width].astype(np.float32) / 255
        assert np.allclose(image, tf.image.resize(middle, [64, 64]).numpy(), atol=1e-5)


def test_training_takes_full_batches_in_another_order_each_epoch(tf: Any, made_set: Layout) -> None:
    """No record twice; with a seed every run is the same, epoch for epoch."""
    from imagenet_prep.tensorflow import dataset

    count = len(imagenet_prep.open(made_set.data_dir, "train"))
    runs = []
    for seed in (3, 3, 4):
        training = dataset(made_set.data_dir, "train", batch_size=5, image_size=32, seed=seed)
        runs.append([everything(training), everything(training)])
    for images, labels in runs[0]:
        assert len(labels) == len(images) == count // 5 * 5
        assert 0 <= images.min() < images.max() <= 1
    (first, second), again, other = runs
    assert np.array_equal(first[0], again[0][0])
    assert np.array_equal(second[0], again[1][0])
    assert not np.array_equal(first[0], second[0])
    assert not np.array_equal(first[0], other[0][0])
    unseeded = everything(dataset(made_set.data_dir, "train", batch_size=1, image_size=8))[1]
    assert Counter(unseeded) == Counter(
        record.label - 1 for record in imagenet_prep.open(made_set.data_dir, "train")
    )


def test_ranks_and_epochs_are_resumed(tf: Any, made_set: Layout) -> None:
    """Equally many batches; the rest of an epoch has its pixels; impossible ones are refused."""
    from imagenet_prep.tensorflow import dataset

    def run(split: str = "train", **settings: Any) -> tuple[np.ndarray, list[int]]:
        settings = {"batch_size": 4, "image_size": 16, "seed": 3, "shuffle_buffer": 16, **settings}
        return everything(dataset(made_set.data_dir, split, **settings))

    ranks = [run(rank=rank, world=3, epoch=1)[0] for rank in range(3)]
    assert len({len(images) for images in ranks}) == 1
    whole, labels = run(rank=1, world=3, epoch=1)
    rest, others = run(rank=1, world=3, epoch=1, start=2)
    assert np.array_equal(rest, whole[8:])
    assert others == labels[8:]
    assert len(rest) == len(whole) - 8 > 0
    assert not np.array_equal(whole, run(rank=1, world=3, epoch=2)[0])
    evaluated = [run("validation", rank=rank, world=2)[1] for rank in range(2)]
    assert sorted(evaluated[0] + evaluated[1]) == sorted(run("validation")[1])
    assert run("validation", start=2)[1] == run("validation")[1][8:]
    for wrong, expected in (
        ({"rank": 2, "world": 2}, "expected two whole numbers with 0 <= rank < world"),
        ({"world": 99}, "expected two whole numbers"),
        ({"start": 1}, "expected a seed and an epoch: no run"),
        ({"epoch": 1, "seed": None}, "expected a seed and an epoch: no run"),
        ({"epoch": -1}, "expected a whole number of at least 0"),
        ({"start": -1}, "expected a whole number of at least 0"),
        ({"batch_size": 0}, "expected a whole number of at least 1"),
        ({"image_size": 2.5}, "expected a whole number of at least 1"),
        ({"shuffle_buffer": 0}, "expected a whole number of at least 1"),
        ({"window": 0}, "expected a whole number of at least 1"),
    ):
        with pytest.raises(UsageError, match=rf"^dataset\(.*\n.*{expected}"):
            run(**wrong)
    with pytest.raises(UsageError, match="shards for 99 ranks\nexpected at least one shard for"):
        run(rank=0, world=99)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven small images in 14 shards, the last three of them empty;
    their labels count up. Read only.
    """
    folder = tmp_path_factory.mktemp("few")
    Image.new("RGB", (20, 16)).save(buffer := io.BytesIO(), "JPEG")
    with records.ShardWriter(folder / "train", shards=14) as shards:
        for number in range(11):
            shards.write({"image/encoded": buffer.getvalue(), "image/class/label": number + 1})
    return folder


@pytest.mark.parametrize(
    ("world", "training", "policy"),
    [(1, False, "raise"), (3, True, "raise"), (1, True, "skip"), (3, False, "skip")],
)
def test_a_dataset_knows_its_length(
    tf: Any, made_set: Layout, world: int, training: bool, policy: Any
) -> None:
    """The number of its batches, also after ``start`` and repeated;
    unknown only where batches may be left out.
    """
    from imagenet_prep.tensorflow import dataset

    for rank, batch_size, start in ((world - 1, 5, 1), (0, 9, 0), (0, 50, 0)):
        epoch = {"seed": 1, "epoch": 2, "start": start} if training else {"start": start}
        options = {
            "rank": rank,
            "world": world,
            "image_size": 8,
            "training": training,
            "on_damaged": policy,
            **epoch,
        }
        batches = dataset(made_set.data_dir, "train", batch_size=batch_size, **options)
        count = sum(1 for _ in batches)
        is_unknown = policy == "skip" and world == 1
        expected = [tf.data.UNKNOWN_CARDINALITY] * 2 if is_unknown else [count, 3 * count]
        assert [int(each.cardinality()) for each in (batches, batches.repeat(3))] == expected
        assert is_unknown or len(batches) == count


def test_a_strategy_divides_a_dataset_of_known_length(tf: Any, made_set: Layout) -> None:
    """A replica of a strategy gets all batches;
    two workers divide the records, as TensorFlow divides them.
    """
    from tensorflow.python.data.experimental.ops.distribute import _AutoShardDataset

    from imagenet_prep.tensorflow import dataset

    labels = sorted(record.class_index for record in imagenet_prep.open(made_set.data_dir, "train"))
    batches = dataset(made_set.data_dir, "train", batch_size=10, image_size=8, training=False)
    divided = tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(batches)
    assert int(divided.cardinality) == len(batches) == -(-len(labels) // 10)
    assert sorted(everything(divided)[1]) == labels
    seen = [everything(_AutoShardDataset(batches, 2, worker))[1] for worker in range(2)]
    assert len(seen[0]) < len(labels)
    assert sorted(seen[0] + seen[1]) == labels


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_shards_may_be_empty(tf: Any, few: Path, policy: Any) -> None:
    """Each rank reads its own shards; a set that another program made has no known length."""
    from imagenet_prep.tensorflow import dataset

    options = {"batch_size": 4, "image_size": 8, "training": False, "on_damaged": policy}
    ranks = [dataset(few, "train", rank=rank, world=3, **options) for rank in range(3)]
    assert [everything(rank)[1] for rank in ranks] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8]]
    assert int(ranks[0].cardinality()) == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({}, {}, list(range(11))),
        ({"WORLD_SIZE": "3", "RANK": "1"}, {}, [1, 4, 7, 10]),
        ({"WORLD_SIZE": "3", "RANK": "1"}, {"rank": 0, "world": 2}, [0, 2, 4, 6, 8, 10]),
        ({"WORLD_SIZE": "1"}, {}, list(range(11))),
        ({"WORLD_SIZE": "4"}, {"rank": 0, "world": 1}, list(range(11))),
        ({"WORLD_SIZE": "4"}, {}, "has WORLD_SIZE=4 and no RANK"),
        ({"WORLD_SIZE": "4", "RANK": "4"}, {}, "has RANK=4 WORLD_SIZE=4"),
        ({"WORLD_SIZE": "four", "RANK": "4"}, {}, "WORLD_SIZE is 'four'"),
        ({"WORLD_SIZE": "99", "RANK": "4"}, {}, r"14 train shards for 99 ranks"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}}'}, {}, list(range(11))),
        (
            {
                "TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}}',
                "WORLD_SIZE": "2",
                "RANK": "0",
            },
            {},
            "expected only one of",
        ),
        (
            {"TF_CONFIG": "{", "WORLD_SIZE": "2", "RANK": "0"},
            {},
            "TF_CONFIG in the environment can't be read",
        ),
        ({}, {"rank": 1}, r"dataset\(rank=1, world=None\)\nexpected two whole numbers"),
        ({}, {"world": 2}, r"dataset\(rank=None, world=2\)\nexpected two whole numbers"),
        ({}, {"rank": 2, "world": 2}, "two whole numbers with 0 <= rank < world"),
        ({}, {"rank": 0.5, "world": 2}, "expected two whole numbers"),
    ],
    ids=str,
)
def test_rank_and_world_of_arguments_and_environment(
    tf: Any,
    few: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: Any,
    expected: Any,
) -> None:
    """Arguments win, then RANK and WORLD_SIZE; half of them is an error,
    and TF_CONFIG is left to its strategy.
    """
    from imagenet_prep.tensorflow import dataset

    for name in ("RANK", "WORLD_SIZE", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def labels() -> list[int]:
        return everything(
            dataset(few, "train", batch_size=4, image_size=8, training=False, **options)
        )[1]

    if isinstance(expected, list):
        assert labels() == expected
    else:
        with pytest.raises(UsageError, match=expected):
            labels()


@pytest.mark.parametrize("has_box", [True, False])
def test_every_crop_covers_a_part_of_a_box(tf: Any, tmp_path: Path, has_box: bool) -> None:
    """On black, with a white spot in its box: white is in every crop;
    without the box it is missing in some.
    """
    from imagenet_prep.tensorflow import dataset

    image = Image.new("RGB", (200, 200))
    ImageDraw.Draw(image).rectangle((150, 160, 189, 189), fill=(255, 255, 255))
    image.save(buffer := io.BytesIO(), "JPEG", quality=95)
    box = {"xmin": 0.75, "xmax": 0.95, "ymin": 0.8, "ymax": 0.95} if has_box else {}
    with records.ShardWriter(tmp_path / "train", shards=1) as shards:
        for _ in range(150):
            boxes = {f"image/object/bbox/{side}": value for side, value in box.items()}
            shards.write({"image/encoded": buffer.getvalue(), "image/class/label": 1, **boxes})
    images, _ = everything(dataset(tmp_path, "train", batch_size=10, image_size=64, seed=1))
    white = (images.max(axis=(1, 2, 3)) > 0.3).sum()
    assert white == 150 if has_box else white < 140


def test_compressed_sets_of_recipes_and_parts(tf: Any, tmp_path: Path) -> None:
    """Compression is found out; a label below the first class ends it."""
    from imagenet_prep.tensorflow import dataset

    Image.new("RGB", (40, 30)).save(buffer := io.BytesIO(), "JPEG")
    sizes = {"batch_size": 4, "image_size": 8}
    for name, labels in {"good": [1], "bad": [0], "later": [1, 2, 0]}.items():
        with records.ShardWriter(tmp_path / name, shards=2, compression="gzip") as shards:
            for label in labels * 6:
                shards.write({"image/encoded": buffer.getvalue(), "image/class/label": label})
    assert everything(dataset(tmp_path, "good", **sizes))[1] == [0] * 6
    advice = re.escape("is the first class, call dataset(..., first_label=0)")
    with pytest.raises(InputError, match=f"has label 0\nexpected 1.*\nif 0 {advice}"):
        dataset(tmp_path, "bad", **sizes)
    later = dataset(tmp_path, "later", **sizes)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"below 1.*; if 0 {advice}.* \[0\]"):
        everything(later)
    assert everything(dataset(tmp_path, "bad", **sizes, first_label=0))[1] == [0] * 6
    from_0 = everything(dataset(tmp_path, "later", **sizes, first_label=0))[1]
    assert Counter(from_0) == {0: 6, 1: 6, 2: 6}


def test_examples_are_parsed(tf: Any, made_set: Layout) -> None:
    """parse_example gives what training needs; feature_spec is that of all fifteen features,
    or of the set's own.
    """
    from imagenet_prep.tensorflow import feature_spec, parse_example

    found = imagenet_prep.open(made_set.data_dir, "train")
    assert any(record.boxes for record in found)
    for record in found:
        example = {
            name: each.numpy()
            for name, each in parse_example(tf.constant(bytes(record.data))).items()
        }
        assert (example["encoded"], example["label"]) == (record.encoded, record.label)
        assert (example["filename"].decode(), example["wnid"].decode()) == (
            record.filename,
            record.wnid,
        )
        sides = [(box.ymin, box.xmin, box.ymax, box.xmax) for box in record.boxes]
        assert np.allclose(example["boxes"], np.array(sides, dtype=np.float32).reshape(-1, 4))
        for spec in (feature_spec(), feature_spec(made_set.data_dir)):
            whole = tf.io.parse_single_example(bytes(record.data), spec)
            assert set(whole) == set(record.features)
            assert int(whole["image/height"]) == record.height
            assert len(tf.sparse.to_dense(whole["image/object/bbox/xmin"])) == len(record.boxes)


def test_a_set_with_features_of_its_own_says_so(tf: Any, tmp_path: Path) -> None:
    """dataset takes Inception's format alone:
    the error lists the features that the recipe named.
    """
    from imagenet_prep.tensorflow import dataset

    make_flowers(tmp_path / "flowers", 1)
    (tmp_path / "recipe.yaml").write_text(
        "source: {folders: flowers}\nrecord: {image: encoded, label: label}\n"
    )
    command("convert", "out", "--config", "recipe.yaml", cwd=tmp_path)
    with pytest.raises(InputError, match=r"features \(image, label\)"):
        next(iter(dataset(tmp_path / "out", "train", batch_size=1)))
