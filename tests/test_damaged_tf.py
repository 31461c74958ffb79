"""imagenet_prep.tensorflow past damaged records: counts, order, and a rest of an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import test_damaged_loaders as loaders
import tf_fixture
from test_damaged_loaders import HOLLOW, IMAGES, damage_data, number_in, quietly

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.errors import UsageError

tf = tf_fixture.tf
of_headers, data_dir = loaders.of_headers, loaders.data_dir


@pytest.fixture
def numbered(data_dir: Path, tmp_path: Path) -> Path:
    """The same images in 6 shards of another program, each with a label of its own:
    its number and 1.
    """
    with records.ShardWriter(tmp_path / "numbered" / "train", shards=6) as writer:
        for record in imagenet_prep.open(data_dir, "train"):
            name, image = record.filename, bytes(record.encoded)
            label = number_in(name) + 1
            writer.write(
                {"image/encoded": image, "image/class/label": label, "image/filename": name}
            )
    return tmp_path / "numbered"


def batches(folder: Path, **settings: Any) -> tuple[list[list[int]], Any]:
    """The numbers of the images of each batch, and the dataset."""
    from imagenet_prep.tensorflow import dataset

    given = {"batch_size": 4, "image_size": 8, "training": False, "on_damaged": "skip", **settings}
    found = dataset(folder, "train", **given)
    return quietly(lambda: [labels.numpy().tolist() for _, labels in found]), found


@pytest.mark.parametrize("training", [False, True])
def test_it_goes_on(tf: Any, numbered: Path, training: bool) -> None:
    """Every other image comes once, in the batches and the order of a set without damage;
    after ``start`` too.
    """
    settings = {"training": training, "seed": 7, "epoch": 1} if training else {}
    planned = [number_in(record.filename) for record in imagenet_prep.open(numbered, "train")]
    undamaged, _ = batches(numbered, **settings)
    number = damage_data(numbered, 30)
    lost = {*HOLLOW, number}
    found, made = batches(numbered, **settings)
    assert made.skipped() == {"image": 3, "checksum": 1}
    assert found == [[each for each in batch if each != number] for batch in undamaged]
    assert sorted(each for batch in found for each in batch) == sorted(set(planned) - lost)
    assert len(found) == IMAGES // 4
    rest, again = batches(numbered, start=10, **settings)
    assert rest == found[10:]
    assert sum(again.skipped().values()) <= 4
    if not training:
        assert [each for batch in found for each in batch] == [
            each for each in planned if each not in lost
        ]


def test_the_order_is_that_of_a_set_read_by_tensorflow(tf: Any, numbered: Path) -> None:
    """With and without skip: the same batches of a sound set, pixel for pixel."""
    from imagenet_prep.tensorflow import dataset

    sound = numbered.parent / "sound"
    with records.ShardWriter(sound / "train", shards=5) as writer:
        for record in imagenet_prep.open(numbered, "train"):
            if number_in(record.filename) not in HOLLOW:
                writer.write(dict(record.features))
    for settings in ({"training": True, "seed": 3}, {"training": False}):
        ways = [
            dataset(
                sound,
                "train",
                batch_size=4,
                image_size=8,
                shuffle_buffer=50,
                window=2,
                on_damaged=way,
                **settings,
            )
            for way in ("raise", "skip")
        ]
        pairs = list(zip(*ways, strict=True))
        assert len(pairs) == (IMAGES - 3 + (0 if settings["training"] else 3)) // 4
        for (images, labels), (others, names) in pairs:
            assert labels.numpy().tolist() == names.numpy().tolist()
            assert (images.numpy() == others.numpy()).all()


def test_each_is_named_once_and_raise_is_the_default(tf: Any, numbered: Path) -> None:
    """A warning for each, in two epochs; by default TensorFlow stops; another policy is refused."""
    from imagenet_prep.tensorflow import dataset

    found = dataset(
        numbered, "train", batch_size=50, image_size=8, training=False, on_damaged="skip"
    )
    with pytest.warns(UserWarning, match="left out: ") as warned:
        counts = [sum(len(labels) for _, labels in found) for _ in range(2)]
    assert counts == [IMAGES - 3] * 2
    named = [str(each.message) for each in warned if "left out: " in str(each.message)]
    assert sorted(map(number_in, named)) == sorted(HOLLOW)
    stopping = dataset(numbered, "train", batch_size=50, image_size=8, training=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(stopping)
    with pytest.raises(UsageError, match="expected 'raise' or 'skip'"):
        dataset(numbered, "train", batch_size=50, on_damaged="refuse")


def test_batches_without_an_image(tf: Any, numbered: Path) -> None:
    """One image a batch: 117 come; of several ranks it is an error,
    since all wait for equally many batches.
    """
    found, _ = batches(numbered, batch_size=1)
    assert len(found) == IMAGES - 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="no other"):
        _ = [batches(numbered, batch_size=1, rank=rank, world=3) for rank in range(3)]
