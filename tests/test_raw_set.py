"""raw: the records of a split straight from the raw data,
byte for byte those of the shards that convert makes.
"""

from __future__ import annotations

import shlex
import warnings
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from copies_of_imagenet import write_hugging_face
from made_folders import picture
from made_sets import ENGINE, PART, annotated
from made_tars import save
from msgspec.structs import replace
from raw_copies import use_facts
from running import command
from test_consume import CONSUME, see

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout, convert
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.raw.raw_set import RawSet
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.recipes.recipe_set import RecipeSet

pytestmark = pytest.mark.filterwarnings("ignore:(a part of|no boxes for train):UserWarning")

WHOLE = ConvertOptions(allow_incomplete=True)
"""How a part of ImageNet is converted, were it not for 1,024 shards of it."""

VALUES = attrgetter("filename", "label", "wnid", "text", "boxes", "height", "width", "encoded")


def opened(layout: Layout, split: str = "train", options: ConvertOptions = WHOLE) -> RawSet:
    """A split of the raw data."""
    return imagenet_prep.open(layout.data_dir, split, source="raw", raw=layout.raw, options=options)


def own(found: RawSet | ShardSet) -> list[bytes]:
    """The data of each record of a set, by number."""
    return [bytes(found[number].data) for number in range(len(found))]


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """48 photographs of train in 8 shards, odd ones and boxes among them, and 24 of validation.
    Read only.
    """
    return annotated(tmp_path_factory.mktemp("photographs") / "data", made)


# the same records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_records_are_those_of_the_shards(split: str, photographs: Layout) -> None:
    """By number and in order: data, all that they tell, and where shards would begin;
    odd images are repaired.
    """
    shards, found = (
        imagenet_prep.open(photographs.data_dir, split),
        opened(photographs, split, PART),
    )
    assert isinstance(found, RawSet)
    assert (found.split, len(found), found.first_label, found.starts) == (
        split,
        len(shards),
        1,
        shards.starts,
    )
    assert own(found) == own(shards)
    assert [bytes(record.data) for record in found] == own(shards)
    assert [VALUES(record) for record in found] == [VALUES(record) for record in shards]
    assert [record.features for record in found] == [record.features for record in shards]
    assert np.array_equal(found[3].array(), shards[3].array())
    if split == "train":
        assert any(record.boxes for record in found)
        repaired = [record for record in found if type(record.encoded.obj) is bytes]
        assert 0 < len(repaired) < len(found)


OPTIONS = {
    "archive order, gzip": ConvertOptions(shuffle=False, compression="gzip"),
    "smaller images": ConvertOptions(max_side=8),
    "a part, labels from 0": None,
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_are_those_of_convert(
    options: ConvertOptions | None, sound: Layout, made_tiny: MadeSet, tmp_path: Path
) -> None:
    """Order, labels, images encoded again: as convert would have them."""
    if options is None:
        (tmp_path / "classes.txt").write_text("\n".join(made_tiny.wnids[3:5]))
        options = ConvertOptions(classes=str(tmp_path / "classes.txt"), relabel=0)
    options = options.replace(train_shards=2, validation_shards=1, allow_incomplete=True)
    convert(replace(sound, output=tmp_path / "out"), ENGINE, options)
    shards, found = imagenet_prep.open(tmp_path / "out", "train"), opened(sound, options=options)
    assert [bytes(record.data) for record in found] == [bytes(record.data) for record in shards]
    assert [VALUES(record) for record in found] == [VALUES(record) for record in shards]
    assert found.first_label == shards.first_label


@pytest.mark.parametrize("record", ["inception", "{image: encoded, name: filename, number: label}"])
def test_sets_of_recipes(record: str, tmp_path: Path) -> None:
    """By the recipe, whatever its records hold."""
    for number in range(12):
        name = f"{('rose', 'tulip')[number % 2]}/{number}.{('png', 'jpg')[number % 3 == 0]}"
        save(tmp_path / "flowers" / name, picture(name))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"source: {{folders: flowers}}\nrecord: {record}\nfirst_label: 3\nshards: 2\n"
    )
    layout = Layout(tmp_path / "out")
    found = imagenet_prep.open(layout.data_dir, "train", source="raw", config=recipe)
    assert not layout.data_dir.exists()
    convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
    shards = imagenet_prep.open(layout.data_dir, "train")
    assert own(found) == own(shards)
    assert (found.starts, found.first_label) == (shards.starts, shards.first_label)
    assert [each.features for each in found] == [each.features for each in shards]
    if record == "inception":
        assert [VALUES(each) for each in found] == [VALUES(each) for each in shards]
    with pytest.raises(UsageError, match="made with a recipe") as caught:
        imagenet_prep.open(layout.data_dir, "train", source="raw")
    assert caught.value.hint == f"add config={str(recipe)!r}"


# a sequence ---------------------------------------------------------------------------------------


def test_it_is_a_sequence(sound: Layout) -> None:
    """Numbers from both ends, slices, several at once, in reverse;
    beyond either end there is nothing.
    """
    found, expected = opened(sound), own(imagenet_prep.open(sound.data_dir, "train"))
    assert [bytes(record.data) for record in found[250:20:-7]] == expected[250:20:-7]
    assert [bytes(record.data) for record in found.__getitems__([7, -1, 7])] == [
        expected[k] for k in (7, -1, 7)
    ]
    assert [bytes(record.data) for record in reversed(found)] == expected[::-1]
    with pytest.raises(IndexError, match="it has 300 records"):
        found[300]
    assert repr(found).startswith("RawSet(")


@pytest.mark.parametrize("world", [7, 301])
def test_parts_of_a_set(world: int, sound: Layout) -> None:
    """The parts of all ranks are the set, one after the other, as those of the shards are."""
    shards, whole = imagenet_prep.open(sound.data_dir, "train"), opened(sound, options=PART)
    parts = [whole.shard(rank, world) for rank in range(world)]
    assert [bytes(record.data) for part in parts for record in part] == own(shards)
    assert [part.starts for part in parts] == [
        shards.shard(rank, world).starts for rank in range(world)
    ]


# what goes wrong ----------------------------------------------------------------------------------


def test_a_damaged_image_is_named(data_dir: Path) -> None:
    """By archive and name, whether its header shows it or only its pixels; the others are read."""
    layout = Layout(data_dir)
    found = opened(layout)
    archive = layout.raw_dir / "ILSVRC2012_img_train.tar"
    plain = [number for number, record in enumerate(found) if type(record.encoded.obj) is not bytes]
    first, second = plain[0], plain[1]
    with archive.open("r+b") as file:
        file.seek(found[first].offset)
        file.write(b"no JPEG")
        file.seek(found[second].offset + len(found[second].encoded) // 3)
        file.write(b"\xff\xd9" * 40)
    found = opened(layout)
    for read in (attrgetter("data"), attrgetter("encoded"), attrgetter("width"), Record.array):
        place = (
            rf"{found[first].filename} \(ILSVRC2012_img_train\.tar, byte {found[first].offset:,}\)"
        )
        with pytest.raises(InputError, match=place) as caught:
            read(found[first])
        assert caught.value.hint == "get a sound copy of it, or convert it to JPEG or PNG"
    with pytest.raises(
        InputError,
        match=rf"{found[second].filename} \(ILSVRC2012_img_train.tar.*its image can't be decoded",
    ) as caught:
        found[second].array()
    assert caught.value.hint == f"get a sound copy of {archive}"
    assert found[plain[2]].array().size


def test_an_image_that_is_not_used_here_is_not_called_damaged(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own remedy is told: there is no sound copy of a sound file."""
    record = opened(Layout(data_dir))[0]

    def refuse(*_: object) -> None:
        raise ImageError("it has several pages", "save each as a separate file")

    monkeypatch.setattr(type(record._recorder), "record", refuse)
    with pytest.raises(InputError, match="can't be converted") as caught:
        record._make()
    assert caught.value.hint == "save each as a separate file"


def test_what_is_missing_is_said_at_once(data_dir: Path, tmp_path: Path) -> None:
    """No raw data, a part of it that nobody asked for, a split that is not there."""
    with pytest.raises(InputError, match=rf"no images .*{tmp_path}"):
        imagenet_prep.open(tmp_path, "train", source="raw")
    with pytest.raises(IncompleteError, match=r"is incomplete\n.*\n.*or accept a part: options="):
        imagenet_prep.open(data_dir, "train", source="raw")
    with pytest.raises(InputError, match="has no split 'test'"):
        opened(Layout(data_dir), "test")
    with pytest.raises(UsageError, match=r"no split is named\n.*train, validation\n.*'train'"):
        opened(Layout(data_dir), "")
    (data_dir / "raw-data/ILSVRC2012_img_train.tar").unlink()
    with pytest.raises(InputError, match=r"has no split 'train'"):
        opened(Layout(data_dir), "train")
    assert len(opened(Layout(data_dir), "validation")) == 24


def test_what_convert_would_say_is_a_warning(data_dir: Path) -> None:
    """That images or boxes are missing."""
    with pytest.warns(UserWarning, match="a part of ILSVRC2012") as said:
        opened(Layout(data_dir))
    notes = [str(each.message) for each in said]
    assert not any("shards" in note or "this set" in note for note in notes)
    (boxes,) = [note for note in notes if "no boxes for train" in note]
    annotate = boxes.partition(" is there; to add boxes, run ")[2]
    assert annotate == f"imagenet-prep annotate {data_dir}"
    command(*shlex.split(annotate)[1:])
    assert any(record.boxes for record in opened(Layout(data_dir)))
    assert {each.filename for each in said} == {__file__}
    with pytest.warns(UserWarning, match="validation images") as said:
        opened(Layout(data_dir), "validation")
    assert ["validation images" in str(each.message) for each in said] == [True]


def test_only_the_split_that_is_opened_must_be_complete(
    tiny_data_dir: Path, made_tiny: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train images are read without a word on validation images, which are not there."""
    use_facts(monkeypatch, made_tiny)
    raw_dir = Layout(tiny_data_dir).raw_dir
    (raw_dir / "ILSVRC2012_img_val.tar").unlink()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train = imagenet_prep.open(tiny_data_dir, "train", source="raw")
    assert len(train) == len(made_tiny.of("train"))
    assert not any("validation" in str(warning.message) for warning in caught)
    images = {"train": len(train) + 1, "validation": 50}
    monkeypatch.setattr(facts, "IMAGES", images)
    with pytest.raises(IncompleteError) as refused:
        imagenet_prep.open(tiny_data_dir, "train", source="raw")
    assert refused.value.detail.startswith(f"train: {len(train)} of ")
    assert "validation" not in str(refused.value)


def test_what_can_only_be_read_in_order_is_refused(made: MadeSet, tmp_path: Path) -> None:
    """Parquet files: each image would cost all that is before it in its group of rows."""
    layout = Layout(tmp_path / "data")
    layout.raw_dir.mkdir(parents=True)
    write_hugging_face(layout.raw_dir, made)
    with pytest.raises(UsageError, match="can only be read one after another") as caught:
        opened(layout)
    assert "convert" in str(caught.value)


def test_raw_data_that_was_consumed_is_gone(tiny_data_dir: Path) -> None:
    """The shards have its space: that is said at once, and not with the first record."""
    layout = Layout(tiny_data_dir)
    see(layout)
    convert(layout, ENGINE, CONSUME)
    with pytest.raises(InputError, match=r"ILSVRC2012_img_train\.tar .*consumed"):
        opened(layout)


def test_bad_images_can_not_be_left_out(sound: Layout, tmp_path: Path) -> None:
    """Which they are shows when all have been read; by an option or by a recipe."""
    with pytest.raises(UsageError, match="be opened with on_damaged: skip"):
        opened(sound, options=WHOLE.replace(on_damaged="skip"))
    (tmp_path / "recipe.yaml").write_text(
        "source: {imagenet: true}\non_damaged: skip\nallow_incomplete: true\n"
    )
    with pytest.raises(UsageError, match="be opened with on_damaged: skip"):
        imagenet_prep.open(
            sound.data_dir, "train", source="raw", raw=sound.raw, config=tmp_path / "recipe.yaml"
        )


def test_words_that_do_not_fit(sound: Layout) -> None:
    """Settings of raw data for shards, and a source that is none."""
    with pytest.raises(UsageError, match=r"^open\(options=\.\.\.\).*\nexpected source='raw'"):
        imagenet_prep.open(sound.data_dir, "train", options=PART)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="expected 'shards' or 'raw'"):
        imagenet_prep.open(sound.data_dir, "train", source="tar")  # type: ignore[call-overload]


def test_notes_on_shards_do_not_come_with_raw_data(tiny_data_dir: Path, made_tiny: MadeSet) -> None:
    """No shards are made: their number doesn't matter."""
    raw = made_tiny.archives["train"].parent
    options = PART.replace(train_shards=1000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imagenet_prep.open(tiny_data_dir, "train", source="raw", raw=raw, options=options)
    assert not any("empty" in str(warning.message) for warning in caught)
