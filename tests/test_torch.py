"""imagenet_prep.torch: pixels and labels of every record,
in batches that are divided among ranks and resumed.
"""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from existing import existing
from made_sets import PART, converted, flip, make_flowers
from PIL import Image
from running import command

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError

COUNT = 301
"""A number that no number of ranks, workers and images a batch divides."""


@pytest.fixture
def epoch_order(torch: Any) -> Callable[..., Any]:
    """The order of an epoch; not above, since the other Pythons have no PyTorch."""
    from imagenet_prep.torch.epoch_orders import epoch_order

    return epoch_order


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """301 images in 7 shards, each with a label of its own. Read only."""
    return write_images(tmp_path_factory.mktemp("numbered"), range(1, COUNT + 1), 8, shards=7)


def write_images(folder: Path, labels: Iterable[int], *widths: int, shards: int = 1) -> Path:
    """A set of images of these labels, whose widths alternate."""
    with records.ShardWriter(folder / "train", shards=shards) as writer:
        for number, label in enumerate(labels):
            Image.new("RGB", (widths[number % len(widths)], 16), (200, 30, 90)).save(
                buffer := io.BytesIO(), "JPEG"
            )
            writer.write({"image/encoded": buffer.getvalue(), "image/class/label": label})
    return folder


def loader(folder: Path, **settings: Any) -> Any:
    """Batches of 4 of the numbered images."""
    from imagenet_prep.torch import ImageDataset, Loader

    return Loader(
        ImageDataset(imagenet_prep.open(folder, "train")),
        **{"batch_size": 4, "window": 2, **settings},
    )


def labels(batches: Any) -> list[list[int]]:
    """The labels of each batch."""
    return [batch[1].tolist() for batch in batches]


# pixels and labels --------------------------------------------------------------------------------


def test_images_are_pillows_and_labels_count_from_0(
    torch: Any, made: MadeSet, tmp_path: Path
) -> None:
    """A uint8 tensor (3, height, width), pixel for pixel as Pillow decodes it;
    labels are the records' less 1.
    """
    from imagenet_prep.torch import ImageDataset

    found = imagenet_prep.open(converted(tmp_path / "data", made, PART).data_dir, "train")
    dataset = ImageDataset(found)
    assert len(dataset) == len(found) > 0
    assert "labels from 0" in repr(dataset)
    for record, (image, label) in zip(found, dataset, strict=True):
        expected = np.asarray(Image.open(io.BytesIO(record.encoded)).convert("RGB"))
        assert (image.dtype, tuple(image.shape)) == (torch.uint8, (3, record.height, record.width))
        assert np.array_equal(image.permute(1, 2, 0).numpy(), expected)
        assert label == record.label - 1
    assert (
        ImageDataset(found, lambda image: image.float().mean())[0][0]
        == dataset[0][0].float().mean()
    )


def test_a_set_with_features_of_its_own_says_so(torch: Any, tmp_path: Path) -> None:
    """Its recipe named them: the error lists them, and how to read the image."""
    from imagenet_prep.torch import ImageDataset

    make_flowers(tmp_path / "flowers", 1)
    recipe = "source: {folders: flowers}\nrecord: {image: encoded, label: label, class: class}\n"
    (tmp_path / "recipe.yaml").write_text(recipe)
    command("convert", "out", "--config", "recipe.yaml", cwd=tmp_path)
    with pytest.raises(InputError, match="record 0 at byte 0") as caught:
        ImageDataset(imagenet_prep.open(tmp_path / "out", "train"))[0]
    assert caught.value.detail == "this set's recipe names its own features (class, image, label)"
    assert (
        caught.value.hint
        == 'in Python: read record.features["image"], or convert with `record: inception`'
    )


def test_a_label_below_the_first_is_refused(torch: Any, tmp_path: Path) -> None:
    """Background, or labels from 0 in a set that does not say so: no class -1.
    What the user says counts.
    """
    from imagenet_prep.torch import ImageDataset

    found = imagenet_prep.open(write_images(tmp_path, [0], 8), "train")
    with pytest.raises(InputError, match=r"record 0 at byte 0 .*label 0"):
        ImageDataset(found)[0]
    found.first_label = 0
    assert ImageDataset(found)[0][1] == 0


# an epoch -----------------------------------------------------------------------------------------


def test_an_epoch_reads_a_few_shards_at_a_time(epoch_order: Callable[..., Any]) -> None:
    """Every record once, another order each epoch and seed,
    and never more than a window of shards at once.
    """
    starts = [0, 100, 100, 250, 300, 420, 500]
    orders = [
        epoch_order(starts, seed=seed, epoch=epoch, window=2).tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    for order in orders:
        assert sorted(order) == list(range(500))
        shards = [
            next(k for k in range(6) if starts[k] <= number < starts[k + 1]) for number in order
        ]
        spans = {
            shard: (shards.index(shard), len(shards) - shards[::-1].index(shard))
            for shard in set(shards)
        }
        assert all(
            sum(first <= at < last for first, last in spans.values()) <= 2 for at in range(500)
        )
    assert len({tuple(order) for order in orders}) == 4
    assert orders[0] == epoch_order(starts, seed=0, epoch=0, window=2).tolist()
    assert epoch_order([0], seed=0, epoch=0, window=2).tolist() == []


def test_the_order_is_the_same_for_ever(epoch_order: Callable[..., Any]) -> None:
    """What a state of an earlier version means does not change."""
    assert epoch_order([0, 3, 5, 9], seed=3, epoch=2, window=2).tolist() == [
        1,
        2,
        0,
        4,
        3,
        7,
        5,
        6,
        8,
    ]


@pytest.mark.parametrize(("world", "shuffle"), [(4, True), (4, False)])
def test_ranks_divide_an_epoch(torch: Any, numbered: Path, world: int, shuffle: bool) -> None:
    """Shuffled, no record comes twice and what is no full batch is left out;
    else each comes, the last ones twice.
    """
    ranks = [loader(numbered, rank=rank, world=world, shuffle=shuffle) for rank in range(world)]
    first, second = ([labels(rank) for rank in ranks] for _ in range(2))
    seen = Counter(label for rank in first for batch in rank for label in batch)
    of_a_rank = COUNT // world if shuffle else -(-COUNT // world)
    assert (
        {len(rank) for rank in first}
        == {len(ranks[0])}
        == {of_a_rank // 4 if shuffle else -(-of_a_rank // 4)}
    )
    if shuffle:
        assert set(seen.values()) == {1}
        assert len(seen) == len(ranks[0]) * 4 * world
        assert first != second
    else:
        assert set(seen) == set(range(COUNT))
        assert sum(seen.values()) == of_a_rank * world
        assert first == second
        assert first[0][0] == [0, 7, 14, 21]  # the first shard's, in their order


@pytest.mark.parametrize(("world", "before", "after"), [(1, 2, 0), (3, 0, 1)])
def test_an_epoch_is_resumed(
    torch: Any, numbered: Path, world: int, before: int, after: int
) -> None:
    """Stopped anywhere, and gone on with another number of workers:
    exactly the batches that were not given.
    """
    for rank in range(world):
        settings = {"rank": rank, "world": world, "seed": 5}
        whole = loader(numbered, **settings)
        expected = labels(whole) + labels(whole)
        per_epoch = len(whole)
        stop = per_epoch + 3 + rank
        begun = loader(numbered, num_workers=before, **settings)
        found = labels(begun)
        for batch in begun:
            found.append(batch[1].tolist())
            if len(found) == stop:
                break
        state = json.loads(json.dumps(begun.state_dict()))
        resumed = loader(numbered, num_workers=after, **settings)
        resumed.load_state_dict(state)
        assert found + labels(resumed) == expected
        assert (resumed.epoch, resumed.given) == (2, 0)


@pytest.mark.parametrize(("world", "batches"), [(4, 10), (4, 1), (8, 5), (150, 1)])
def test_an_epoch_goes_on_with_another_world(
    torch: Any, numbered: Path, world: int, batches: int
) -> None:
    """Every record comes exactly once, also those that no rank of the
    world before would have been given.
    """
    size = 1 if world == 150 else 4
    given = []
    for rank in range(world):
        begun = loader(numbered, batch_size=size, rank=rank, world=world)
        given += [batch[1].tolist() for _, batch in zip(range(batches), begun, strict=False)]
        state = begun.state_dict()
    assert COUNT % world
    resumed = loader(numbered, batch_size=1)
    resumed.load_state_dict(state)
    seen = Counter(label for batch in (*given, *labels(resumed)) for label in batch)
    assert seen == Counter(range(COUNT))


def test_a_fresh_iterator_starts_the_epoch(torch: Any, numbered: Path) -> None:
    """After a break too, as of a DataLoader; a state that was just loaded is the exception,
    and counts once.
    """
    train = loader(numbered, num_workers=2)
    expected = labels(loader(numbered))
    next(iter(train))
    found = [batch[1].tolist() for _, batch in zip(range(5), train, strict=False)]
    assert found == expected[:5]
    state = train.state_dict()
    assert (state["epoch"], state["given"]) == (0, 5)
    train.load_state_dict({**state, "given": 70})
    assert next(iter(train))[1].tolist() == expected[70]
    assert labels(train) == expected
    assert (train.epoch, train.given) == (1, 0)


def test_an_epoch_ends_with_its_last_batch(torch: Any, numbered: Path) -> None:
    """A trainer that counts batches, as Lightning's, asks for no more:
    the next loop is the next epoch all the same.
    """
    train, expected = loader(numbered, num_workers=1), loader(numbered)
    for _ in range(2):
        counted = [batch[1].tolist() for _, batch in zip(range(len(train)), train, strict=False)]
        assert counted == labels(expected)
    train.set_epoch(1)
    assert [
        batch[1].tolist() for _, batch in zip(range(len(train)), train, strict=False)
    ] == counted
    train.set_epoch(1)
    assert labels(train) == counted
    batches = iter(train)
    train.sampler.set_epoch(1)  # after iter(), before the first batch: Lightning does so
    assert labels(batches) == counted


def test_persistent_workers_serve_one_iterator(torch: Any, numbered: Path) -> None:
    """They give the first one the batches of the second: that is an error, and no other order."""
    train = loader(numbered, num_workers=1, persistent_workers=True)
    next(iter(train))
    assert labels(train) == labels(loader(numbered))
    first = iter(train)
    next(first)
    next(iter(train))
    with pytest.raises(UsageError, match=r"later iterator"):
        next(first)


def test_a_state_of_other_settings_is_refused(torch: Any, numbered: Path) -> None:
    """It would mean other records."""
    state = loader(numbered).state_dict()
    for change in ({"seed": 1}, {"window": 3}, {"shuffle": False}, {"drop_last": False}):
        with pytest.raises(UsageError, match=r"state .*Loader") as caught:
            loader(numbered, **change).load_state_dict(state)
        (name,) = change
        assert caught.value.hint == f"make the Loader with {name}={state[name]}"
    with pytest.raises(UsageError, match="it has no key 'records'"):
        loader(numbered).load_state_dict({})
    without_epoch = {key: value for key, value in state.items() if key != "epoch"}
    with pytest.raises(UsageError, match="it has no key 'epoch'"):
        loader(numbered).load_state_dict(without_epoch)
    with pytest.raises(UsageError, match="records='301', this one has records=301"):
        loader(numbered).load_state_dict({**state, "records": str(state["records"])})


def test_fewer_records_than_a_batch_are_refused(torch: Any, numbered: Path) -> None:
    """A loop over no batch would end at once, and say nothing."""
    count = len(imagenet_prep.open(numbered, "train"))
    for size, settings in ((count + 1, {}), (count // 2 + 1, {"rank": 1, "world": 2})):
        with pytest.raises(UsageError, match=f"no batch of {size}") as caught:
            loader(numbered, batch_size=size, **settings)
        assert caught.value.hint == "give Loader drop_last=False, or a smaller batch_size"
        assert len(loader(numbered, batch_size=size, drop_last=False, **settings)) == 1


@pytest.mark.parametrize("epoch", [-1, "a", None])
def test_an_epoch_that_can_not_be(torch: Any, numbered: Path, epoch: Any) -> None:
    """It is refused by name, and not by the random numbers of its order."""
    with pytest.raises(UsageError, match=rf"^set_epoch\({epoch!r}\)\nexpected a whole number"):
        loader(numbered).set_epoch(epoch)


def test_fewer_records_than_ranks_are_refused(torch: Any, numbered: Path) -> None:
    """No batch size helps then, and the error names none."""
    ranks = {"rank": 0, "world": len(imagenet_prep.open(numbered, "train")) + 1}
    with pytest.raises(UsageError, match="no batch of 1") as caught:
        loader(numbered, batch_size=1, **ranks)
    assert caught.value.hint == "give Loader drop_last=False"
    assert len(loader(numbered, batch_size=1, drop_last=False, **ranks)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"rank": 1},
        {"window": 0},
        {"batch_size": 2.5},
        {"shuffle": 3},
        {"batch_sampler": [[0]]},
        {"sampler": iter([1])},
    ],
    ids=lambda change: "-".join(f"{name}={type(value).__name__}" for name, value in change.items()),
)
def test_settings_that_can_not_be(torch: Any, numbered: Path, change: dict[str, Any]) -> None:
    """A rank is one of its world; windows, batches and worlds are not empty; each has its type."""
    with pytest.raises(UsageError, match=rf"^Loader\(.*{next(iter(change))}="):
        loader(numbered, **change)


def test_what_is_no_data_set_is_refused(torch: Any, numbered: Path) -> None:
    """At the call, with what is expected; a folder needs to be opened."""
    from imagenet_prep.torch import ImageDataset, Loader

    found = imagenet_prep.open(numbered, "train")
    for folder in (str(numbered), numbered):
        with pytest.raises(UsageError, match=r"^ImageDataset\(") as caught:
            ImageDataset(folder)
        assert f"ImageDataset(imagenet_prep.open('{numbered}', 'train'))" in caught.value.hint
        with pytest.raises(UsageError, match=r"^Loader\("):
            Loader(folder, 4)
    for wrong in ([], found[:3], None):
        with pytest.raises(UsageError, match=r"^ImageDataset\("):
            ImageDataset(wrong)
    with pytest.raises(
        UsageError, match=r"transform, is 64\nexpected .*\n.* crop=CenterCrop\(224\)"
    ):
        ImageDataset(found, transform=64)
    with pytest.raises(UsageError, match=r"^Loader\("):
        Loader(torch.utils.data.ChainDataset([]), 4)


@pytest.mark.parametrize("change", [{"given": 76}, {"given": None}, {"epoch": -1}], ids=str)
def test_a_state_beyond_the_epoch_is_refused(
    torch: Any, numbered: Path, change: dict[str, Any]
) -> None:
    """75 batches are an epoch: all of them may have been given."""
    train = loader(numbered)
    train.load_state_dict({**train.state_dict(), "given": 75})
    assert labels(train) == []
    with pytest.raises(UsageError, match=r"^the state"):
        train.load_state_dict({**train.state_dict(), **change})
    with pytest.raises(UsageError, match=r"^the state"):
        train.load_state_dict(None)


def test_images_of_different_sizes_need_a_transform(torch: Any, tmp_path: Path) -> None:
    """The error names the sizes and what to do;
    a collate_fn of the user's takes them as they are.
    """
    from imagenet_prep.torch import ImageDataset, Loader

    dataset = ImageDataset(imagenet_prep.open(write_images(tmp_path, [1, 1], 8, 24), "train"))
    with pytest.raises(UsageError, match=r"3 x 16 x 24, 3 x 16 x 8") as caught:
        next(iter(Loader(dataset, 2, num_workers=1)))
    assert "transform" in str(caught.value)
    assert len(next(iter(Loader(dataset, 2, num_workers=1, collate_fn=list)))) == 2


def test_images_of_many_sizes_are_not_said_to_have_three(torch: Any) -> None:
    """The error shows the first sizes, and that there are others; no class is named that the user
    does not have.
    """
    from imagenet_prep.torch import Loader

    images = [torch.zeros(3, 8, width) for width in range(5)]
    with pytest.raises(UsageError, match=r"3 x 8 x 0, 3 x 8 x 1, 3 x 8 x 2, \.\.\.\n") as caught:
        next(iter(Loader([*images], 5)))
    assert caught.value.hint.startswith("make them one size by a transform of the data set")


# any data set, any order --------------------------------------------------------------------------


def test_any_map_style_data_set_is_loaded(torch: Any, numbered: Path) -> None:
    """A slice, a Subset, a list: every item once, in an order of its own each epoch,
    divided and resumed.
    """
    from imagenet_prep.torch import ImageDataset, Loader

    whole = ImageDataset(imagenet_prep.open(numbered, "train"))
    expected = [label for _, label in whole]
    for dataset, numbers in (
        (whole[20:-7:3], range(20, COUNT - 7, 3)),
        (torch.utils.data.Subset(whole, [3, 1, 4, 15, 92]), [3, 1, 4, 15, 92]),
        (list(whole[:9]), range(9)),
    ):
        ranks = [Loader(dataset, 2, rank=rank, world=2, drop_last=False) for rank in range(2)]
        first, second = ([labels(rank) for rank in ranks] for _ in range(2))
        assert {label for rank in first for batch in rank for label in batch} == {
            expected[k] for k in numbers
        }
        assert first != second
        resumed = Loader(dataset, 2, rank=1, world=2, drop_last=False)
        resumed.load_state_dict({**resumed.state_dict(), "epoch": 1, "given": 1})
        assert labels(resumed) == second[1][1:]


def test_a_sampler_gives_the_order(torch: Any, numbered: Path) -> None:
    """PyTorch's and one's own: the same order on all ranks, another each epoch, resumed;
    the global state is kept.
    """
    from imagenet_prep.torch import ImageDataset, Loader
    from imagenet_prep.torch.epoch_orders import sampled_order

    dataset = ImageDataset(imagenet_prep.open(numbered, "train"))
    expected = [label for _, label in dataset]
    weights = [0.0] * 100 + [1.0] * (COUNT - 100)
    sampler = torch.utils.data.WeightedRandomSampler(weights, 1000)
    ranks = [Loader(dataset, 4, sampler=sampler, rank=rank, world=2, seed=3) for rank in range(2)]
    first, second = ([labels(rank) for rank in ranks] for _ in range(2))
    before = torch.get_rng_state()
    assert sampled_order(sampler, seed=3, epoch=0) == sampled_order(sampler, seed=3, epoch=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert [len(rank) for rank in first] == [125, 125]
    seen = Counter(label for rank in first for batch in rank for label in batch)
    assert set(seen) <= set(expected[100:])
    assert 140 < len(seen) < 202  # of 201, drawn 1,000 times
    assert first != second
    resumed = Loader(dataset, 4, sampler=sampler, rank=1, world=2, seed=3)
    resumed.load_state_dict({**resumed.state_dict(), "epoch": 1, "given": 40})
    assert labels(resumed) == second[1][40:]
    own = Loader(dataset, 4, sampler=[5, 5, 2, 9, 0])
    assert labels(own) == [[expected[k] for k in (5, 5, 2, 9)]]
    with pytest.raises(UsageError, match=r"state .*Loader .*sampler"):
        Loader(dataset, 4, sampler=range(1000), rank=1, world=2, seed=3).load_state_dict(
            resumed.state_dict()
        )


def test_samplers_that_can_not_be_resumed_are_refused(torch: Any, numbered: Path) -> None:
    """One that divides among ranks itself, one with random numbers of its own,
    one that gives less than it says.
    """
    from imagenet_prep.torch import ImageDataset, Loader

    dataset = ImageDataset(imagenet_prep.open(numbered, "train"))
    samplers = torch.utils.data
    for wrong in (
        samplers.DistributedSampler(dataset, num_replicas=2, rank=0),
        samplers.RandomSampler(dataset, generator=torch.Generator()),
    ):
        with pytest.raises(UsageError, match=r"^Loader\(sampler="):
            Loader(dataset, 4, sampler=wrong)

    class Shorter(list[int]):
        def __iter__(self) -> Any:
            return iter([1, 2])

    with pytest.raises(UsageError, match=r"2 numbers.* 5\nexpected as many numbers"):
        labels(Loader(dataset, 4, sampler=Shorter(range(5))))
    for gives in ([1.5, 2.0], ["a"], samplers.BatchSampler([1, 2], 2, drop_last=False)):
        with pytest.raises(UsageError, match=r"^the sampler gave .*\nexpected whole numbers"):
            labels(Loader(dataset, 1, sampler=gives))
    batches = samplers.BatchSampler(samplers.SequentialSampler(dataset), 2, drop_last=False)
    with pytest.raises(UsageError, match="the Loader makes the batches itself"):
        labels(Loader(dataset, 1, sampler=batches))
    assert labels(Loader(dataset, 1, sampler=batches.sampler))


def test_a_damaged_record_ends_an_epoch_with_its_name(
    torch: Any, numbered: Path, tmp_path: Path
) -> None:
    """In a worker process as well."""
    for path in existing(numbered, "train-*"):
        flip(Path(shutil.copy(path, tmp_path)), 200)
    for workers in (0, 1):
        with pytest.raises(InputError, match="record 0 at byte 0 is damaged"):
            labels(loader(tmp_path, num_workers=workers, shuffle=False))
