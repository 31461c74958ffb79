"""Damaged records and images in mid-epoch: each loader raises or leaves them out,
counts them, and stays resumable.
"""

from __future__ import annotations

import io
import pickle
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sets import ENGINE, flip
from made_tars import save
from PIL import Image
from running import command

import imagenet_prep
from imagenet_prep import Layout, convert, verify
from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.reading.record import Record
from imagenet_prep.recipes.recipe_set import RecipeSet

IMAGES = 120
HOLLOW = (7, 62, 115)
"""The numbers of the images whose coded data is cut, between a sound header and an end marker."""

RECIPE = "source: {folders: in}\nrecord: inception\nshards: 6\ncheck: header\n"


def noise(number: int) -> bytes:
    """A JPEG of 32 x 32 random pixels."""
    pixels = np.random.default_rng(number).integers(0, 255, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(buffer := io.BytesIO(), "JPEG")
    return buffer.getvalue()


def hollow(content: bytes) -> bytes:
    """The JPEG without the second half of its coded data: only decoding finds that."""
    return content[: len(content) // 2] + b"\xff\xd9"


@pytest.fixture(scope="module")
def of_headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of 120 images in 6 shards, made with ``check: header``: three do not decode.
    Read only.
    """
    folder = tmp_path_factory.mktemp("of-headers")
    for number in range(IMAGES):
        content = noise(number)
        save(
            folder / "in" / "abc"[number % 3] / f"{number:04d}.jpg",
            hollow(content) if number in HOLLOW else content,
        )
    (folder / "recipe.yaml").write_text(RECIPE)
    convert(Layout(folder / "out"), ENGINE, dataset=RecipeSet.read(folder / "recipe.yaml"))
    return folder / "out"


@pytest.fixture
def data_dir(of_headers: Path, tmp_path: Path) -> Path:
    """The test's own copy."""
    return Path(shutil.copytree(of_headers, tmp_path / "out"))


def number_in(name: str) -> int:
    """The number of an image, by its file name."""
    return int(re.findall(r"(\d{4})\.jpg", name)[-1])


def order_of(data_dir: Path) -> list[int]:
    """The numbers of all images in the order of their records."""
    return [
        number_in(record.filename) for record in imagenet_prep.open(data_dir, "train", check=False)
    ]


class Numbered:
    """A data set of one's own: the number of each image, once it is decoded."""

    def __init__(self, records: Any) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> int:
        return numbered(self.records[index])


def numbered(record: Record) -> int:
    """The number of a record's image, once it is decoded."""
    assert record.array().shape == (32, 32, 3)
    return number_in(record.filename)


def loader(data_dir: Path, **settings: Any) -> Any:
    """Batches of 4 numbers."""
    from imagenet_prep.torch import Loader

    return Loader(
        Numbered(imagenet_prep.open(data_dir, "train")),
        **{"batch_size": 4, "drop_last": False, **settings},
    )


def batches_of(loaded: Any) -> list[list[int]]:
    """The numbers of each batch."""
    return [batch.tolist() for batch in loaded]


def flat(batches: list[list[int]]) -> list[int]:
    """The numbers of all batches."""
    return [number for batch in batches for number in batch]


def quietly(work: Callable[[], Any]) -> Any:
    """The result of a call whose warnings are another test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def damage_data(data_dir: Path, index: int) -> int:
    """Flip a bit in the data of a record: the number of its image."""
    record = imagenet_prep.open(data_dir, "train")[index]
    number = number_in(record.filename)
    flip(Path(str(record.shard)), record.offset + 12 + len(record.data) // 2)
    return number


def damage_header(data_dir: Path, index: int) -> int:
    """Flip a bit in the length of a record: the number of its image."""
    record = imagenet_prep.open(data_dir, "train")[index]
    number = number_in(record.filename)
    flip(Path(str(record.shard)), record.offset + 1)
    return number


def test_the_remedy_for_them_is_no_repair(of_headers: Path, tmp_path: Path) -> None:
    """verify says what helps; repair makes the same records, and says so;
    after what verify says the set is sound.
    """
    folder = Path(shutil.copytree(of_headers.parent, tmp_path / "set"))
    said = command("verify", "out", "--depth", "decode", cwd=folder, status=3)
    assert (
        "to do: convert took it, so repair keeps it: remove the shard, "
        "and run the same convert with"
    ) in said.stdout
    assert "imagenet-prep repair" not in said.stdout
    assert (
        "unchanged: it is as convert made it"
        in command("repair", "out", "--depth", "decode", cwd=folder, status=3).stdout
    )
    layout = Layout(folder / "out")
    for problem in verify(layout, ENGINE, depth="decode").problems:
        layout.shard_path(problem.subject).unlink(missing_ok=True)
    words = ("convert", "out", "--config", "recipe.yaml")
    (folder / "recipe.yaml").write_text(RECIPE.replace("header", "decode"))
    assert "3 images can't be converted" in command(*words, cwd=folder, status=3).stderr
    command(*words, "--on-damaged", "skip", cwd=folder, status=3)
    assert len(layout.damaged_images_path.read_bytes().splitlines()) == 3
    assert verify(layout, ENGINE, depth="decode").problems == ()
    assert len(imagenet_prep.open(layout.data_dir, "train")) == IMAGES - 3


def test_images_beyond_the_listed_ones_are_counted(tmp_path: Path) -> None:
    """Of 30 damaged images in a shard 20 are listed, and a line counts the others:
    it is not cut off as one more.
    """
    for number in range(30):
        save(tmp_path / "in" / "a" / f"{number:04d}.jpg", hollow(noise(number)))
    (tmp_path / "recipe.yaml").write_text(RECIPE.replace("shards: 6", "shards: 1"))
    convert(Layout(tmp_path / "out"), ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    said = command("verify", "out", "--depth", "decode", cwd=tmp_path, status=3).stdout
    assert "and 10 more of this kind" in said
    assert "... and 1 more" not in said


# PyTorch ------------------------------------------------------------------------------------------


def test_a_check_of_headers_lets_them_in(of_headers: Path) -> None:
    """The set is finished and sound by its checksums; only decoding finds the three images."""
    assert verify(Layout(of_headers), ENGINE).problems == ()
    found = verify(Layout(of_headers), ENGINE, depth="decode").problems
    assert sorted(number_in(problem.image) for problem in found) == sorted(HOLLOW)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_raises(torch: Any, of_headers: Path, workers: int) -> None:
    """By default: shard, record, file, kind of damage, and what to do."""
    with pytest.raises(DamagedRecordError) as caught:
        batches_of(loader(of_headers, shuffle=False, num_workers=workers))
    text = str(caught.value)
    first = next(number for number in order_of(of_headers) if number in HOLLOW)
    assert re.search(
        r"train-0000\d-of-00006: record \d+ at byte \d+: its image can't be decoded", text
    )
    assert f"{first:04d}.jpg: the " in text
    assert re.search(
        r"imagenet-prep verify \S+ --depth decode", text
    )  # a check of bytes would not find it
    assert "\nLoader(..., on_damaged='skip') leaves out damaged records; " in text


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_loader_goes_on(torch: Any, of_headers: Path, workers: int, shuffle: bool) -> None:
    """All others come in their order and batches;
    the three are counted, and named in a warning each, once.
    """
    order = order_of(of_headers)
    sampled = loader(of_headers, shuffle=shuffle, window=2, on_damaged="skip", num_workers=workers)
    planned = [[order[index] for index in numbers] for numbers in sampled.batch_sampler]
    with pytest.warns(UserWarning, match="left out: ") as warned:
        found = batches_of(sampled)
    assert found == [[number for number in batch if number not in HOLLOW] for batch in planned]
    assert sorted(flat(found)) == [number for number in range(IMAGES) if number not in HOLLOW]
    assert len(sampled) == len(planned) == IMAGES // 4
    assert sampled.skipped == {"image": 3}
    named = [str(each.message) for each in warned if "left out: " in str(each.message)]
    assert sorted(map(number_in, named)) == sorted(HOLLOW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampled.set_epoch(0)
        assert batches_of(sampled) == found
    assert sampled.skipped == {"image": 3}


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 2)])
@pytest.mark.parametrize("distance", [-1, 0, 1])
def test_resumed_beside_the_damaged_one(
    torch: Any, of_headers: Path, before: int, after: int, distance: int
) -> None:
    """Stopped one batch before its batch, at it, or after it:
    exactly the remaining samples, for any workers.
    """
    settings: dict[str, Any] = {"on_damaged": "skip", "seed": 5}
    order = order_of(of_headers)
    first = loader(of_headers, num_workers=before, **settings)
    planned = [[order[index] for index in numbers] for numbers in first.batch_sampler]
    whole = [[number for number in batch if number not in HOLLOW] for batch in planned]
    at = (
        next(which for which, batch in enumerate(planned) if set(batch) & set(HOLLOW))
        + 1
        + distance
    )
    given = quietly(lambda: [batch.tolist() for _, batch in zip(range(at), first, strict=False)])
    second = loader(of_headers, num_workers=after, **settings)
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    assert given + quietly(lambda: batches_of(second)) == whole
    assert (second.epoch, second.given) == (1, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("damage", [damage_data, damage_header])
@pytest.mark.parametrize("index", [0, 30])
def test_checksums_are_told_apart(
    torch: Any, data_dir: Path, damage: Callable[[Path, int], int], index: int, workers: int
) -> None:
    """A flipped bit in data or length, of the first record too:
    its record alone is lost, as "checksum".
    """
    order = order_of(data_dir)
    number = damage(data_dir, index)
    with pytest.raises(
        DamagedRecordError, match=f"record {index % 20} at byte|in its first record"
    ):
        batches_of(loader(data_dir, shuffle=False))
    sampled = loader(data_dir, shuffle=False, on_damaged="skip", num_workers=workers)
    found = flat(quietly(lambda: batches_of(sampled)))
    assert found == [each for each in order if each not in (*HOLLOW, number)]
    assert sampled.skipped == {"image": 3, "checksum": 1}


def test_two_damaged_records_of_a_shard(torch: Any, data_dir: Path) -> None:
    """After a record whose length is damaged, a damaged one is still named by its own number."""
    numbers = [damage_header(data_dir, 3), damage_data(data_dir, 9)]
    records = imagenet_prep.open(data_dir, "train")
    with pytest.raises(DamagedRecordError, match="record 9 at byte") as caught:
        records[9]
    assert (caught.value.number, caught.value.fault) == (9, "checksum")
    assert number_in(caught.value.detail) == numbers[1]
    assert records[10].filename


def test_batches_without_an_image(torch: Any, of_headers: Path) -> None:
    """One image a batch: 117 batches of 120 come, and a state counts all;
    of two ranks, which wait, it is an error.
    """
    sampled = loader(of_headers, batch_size=1, shuffle=False, on_damaged="skip")
    assert len(quietly(lambda: batches_of(sampled))) == IMAGES - 3
    assert (len(sampled), sampled.epoch) == (IMAGES, 1)
    ranks = [
        loader(of_headers, batch_size=1, shuffle=False, on_damaged="skip", rank=rank, world=2)
        for rank in (0, 1)
    ]
    half = order_of(of_headers)[: IMAGES // 2]
    rank = ranks[0 if set(half) & set(HOLLOW) else 1]
    with pytest.raises(InputError, match=r"1 damaged .*and no other\n.*several ranks") as caught:
        quietly(lambda: batches_of(rank))
    assert "repair the records that the warnings name" in caught.value.hint


def test_another_data_loader_gets_no_empty_batch(torch: Any, of_headers: Path) -> None:
    """It can't leave the batch out, whatever the number of ranks: the error speaks of none."""
    ours = loader(of_headers, batch_size=1, shuffle=False, on_damaged="skip")
    other = torch.utils.data.DataLoader(
        ours.dataset, sampler=ours.sampler, collate_fn=ours.collate_fn
    )
    with pytest.raises(InputError, match="1 damaged record and no other") as caught:
        quietly(lambda: list(other))
    assert caught.value.detail == (
        "expected at least one sound record: only imagenet_prep's Loader can skip a batch"
    )
    assert caught.value.hint.startswith("give the DataLoader itself a larger batch_size (it ")


def test_images_and_labels_and_a_collate_of_ones_own(torch: Any, of_headers: Path) -> None:
    """ImageDataset in batches, laid out by pixel, and with a function of the user's."""
    from imagenet_prep.torch import ImageDataset, Loader

    dataset = ImageDataset(imagenet_prep.open(of_headers, "train"))
    sampled = Loader(dataset, 50, shuffle=False, on_damaged="skip", channels_last=True)
    assert quietly(lambda: sum(len(images) for images, _ in sampled)) == IMAGES - 3
    counted = Loader(dataset, 50, shuffle=False, on_damaged="skip", collate_fn=len)
    assert quietly(lambda: sum(counted)) == IMAGES - 3
    with pytest.raises(DamagedRecordError):
        dataset[order_of(of_headers).index(HOLLOW[0])]


def test_what_is_no_damage_is_raised_still(torch: Any, of_headers: Path, data_dir: Path) -> None:
    """A shard that is cut short, and a policy that does not exist."""
    shard = data_dir / "train-00003-of-00006"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(InputError, match="contradict each other"):
        quietly(lambda: batches_of(loader(data_dir, shuffle=False, on_damaged="skip")))
    with pytest.raises(UsageError, match="expected 'raise' or 'skip'"):
        loader(of_headers, on_damaged="ignore")


def test_a_shard_without_an_index_and_with_a_damaged_length(torch: Any, data_dir: Path) -> None:
    """Its records can't be found: that is no single damaged record, and an error."""
    damage_header(data_dir, 12)
    for path in Layout(data_dir).index_paths("train-00000-of-00006"):
        Path(str(path)).unlink()
    with pytest.raises(InputError) as caught:
        quietly(lambda: batches_of(loader(data_dir, shuffle=False, on_damaged="skip")))
    assert not isinstance(caught.value, DamagedRecordError)


@pytest.mark.parametrize("workers", [0, 2])
def test_raw_data(torch: Any, of_headers: Path, workers: int) -> None:
    """The same images, read in place: the same batches and counts."""
    from imagenet_prep.torch import Loader

    recipe = of_headers.parent / "recipe.yaml"
    records = quietly(
        lambda: imagenet_prep.open(of_headers.parent / "new", "train", source="raw", config=recipe)
    )
    if not workers:  # with workers it takes ten seconds: PyTorch waits for each of them
        with pytest.raises(DamagedRecordError, match="on_damaged='skip'"):
            batches_of(Loader(Numbered(records), 4, shuffle=False))
    sampled = Loader(Numbered(records), 4, shuffle=False, on_damaged="skip", num_workers=workers)
    expected = quietly(lambda: batches_of(loader(of_headers, shuffle=False, on_damaged="skip")))
    assert quietly(lambda: batches_of(sampled)) == expected
    assert sampled.skipped == {"image": 3}


# Grain, and any sequence --------------------------------------------------------------------------


def test_map_raises_or_goes_on(data_dir: Path) -> None:
    """``[i]`` of a damaged record is None, iteration leaves it out;
    both count it once and name it once.
    """
    order, number = order_of(data_dir), damage_data(data_dir, 30)
    records = imagenet_prep.open(data_dir, "train")
    with pytest.raises(DamagedRecordError, match="on_damaged='skip'"):
        list(records.map(numbered))
    found = records.map(numbered, on_damaged="skip")
    assert len(found) == IMAGES
    sound = [each for each in order if each not in (*HOLLOW, number)]
    with pytest.warns(UserWarning, match="left out: ") as warned:
        assert list(found) == sound
    assert len(warned) == 4
    assert [found[index] for index in (30, 30 - IMAGES)] == [None, None]
    assert [each for each in found[:] if each is not None] == sound
    assert found.skipped == {"image": 3, "checksum": 1}
    with pytest.raises(UsageError, match="expected 'raise' or 'skip'"):
        records.map(numbered, on_damaged="refuse")  # type: ignore[arg-type]


@pytest.mark.torch  # what make portable leaves out with it
@pytest.mark.parametrize("stop", [1, 2, 20])
def test_grain_goes_on(data_dir: Path, stop: int) -> None:
    """Shuffled, in batches that are filled up;
    an iterator with the state of another gives the rest.
    """
    import grain

    order = order_of(data_dir)
    damaged = {*HOLLOW, damage_data(data_dir, 30)}

    def epoch() -> Any:
        records = imagenet_prep.open(data_dir, "train").map(numbered, on_damaged="skip")
        return iter(grain.MapDataset.source(records).seed(3).shuffle().to_iter_dataset().batch(4))

    whole = quietly(lambda: [batch.tolist() for batch in epoch()])
    assert sorted(flat(whole)) == sorted(set(order) - damaged)
    assert {len(batch) for batch in whole} == {4}
    first, second = epoch(), epoch()
    given = quietly(lambda: [next(first).tolist() for _ in range(stop)])
    second.set_state(first.get_state())
    assert given + quietly(lambda: [batch.tolist() for batch in second]) == whole
