"""Inputs and settings -> plans: how closely images are looked at,
what may be missing, which numbers can be.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, converted, data_of
from msgspec.structs import replace

from imagenet_prep import ConvertOptions, Layout, annotate, convert
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.imagenet import ImageNet
from imagenet_prep.ilsvrc2012.settings import check_options, options_from
from imagenet_prep.model import Silent
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.layout import MAX_SHARDS
from imagenet_prep.tfrecord.inception_reader import read_record

PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


# --check auto -------------------------------------------------------------------------------------


def _remember(layout: Layout, **changes: object) -> None:
    """checked.json as download leaves it once the train archive had its published MD5,
    with some changes.
    """
    archive = facts.ARCHIVES["train"]
    status = layout.archive_path(archive).stat()
    entry = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "md5": archive.md5, **changes}
    layout.checked_path.write_text(json.dumps({archive.filename: entry}))


def _checks(layout: Layout, options: ConvertOptions = PART) -> dict[str, str]:
    """How closely the images of each split are looked at."""
    found = {}
    for split in ImageNet().plan(SetRecords(layout), ENGINE, options, Silent()).splits:
        assert isinstance(split.recorder, InceptionRecorder)
        found[split.catalog.split] = split.recorder.check
    return found


def test_auto_trusts_the_published_digest_alone(tiny_data_dir: Path) -> None:
    """An archive that had its published MD5 is not decoded again;
    the other split, of which nothing is known, is.
    """
    layout = Layout(tiny_data_dir)
    assert _checks(layout) == {"train": "decode", "validation": "decode"}
    _remember(layout)
    assert _checks(layout) == {"train": "header", "validation": "decode"}
    assert _checks(layout, PART.replace(check="decode")) == {
        "train": "decode",
        "validation": "decode",
    }
    assert _checks(layout, PART.replace(check="header")) == {
        "train": "header",
        "validation": "header",
    }
    for change in (
        {"md5": "0" * 32},
        {"size": 1},
        {"mtime_ns": 1},
        {"size": None, "mtime_ns": None},
    ):
        _remember(layout, **change)
        assert _checks(layout)["train"] == "decode", change


# what there is, and what there should be ----------------------------------------------------------


@pytest.mark.parametrize("gone", facts.SPLITS)
def test_one_split_missing_is_refused(tiny_data_dir: Path, gone: str) -> None:
    """A set with one split alone is incomplete;
    allowed, it is planned alone, and said to be a part.
    """
    layout = Layout(tiny_data_dir)
    layout.archive_path(facts.ARCHIVES[gone]).unlink()
    with pytest.raises(IncompleteError, match=re.escape(gone)):
        ImageNet().plan(SetRecords(layout), ENGINE, PART.replace(allow_incomplete=False), Silent())
    planned = ImageNet().plan(SetRecords(layout), ENGINE, PART, Silent())
    (rest,) = (split for split in facts.SPLITS if split != gone)
    assert [split.catalog.split for split in planned.splits] == [rest]
    said = [str(note) for note in planned.notes if "a part of ILSVRC2012" in str(note)]
    assert [text.rpartition(": ")[2].split(" images")[0].split()[-1] for text in said] == [
        *facts.SPLITS
    ]
    assert any(text.endswith(f" {gone} images, 0 of 1,000 classes") for text in said)
    assert max(map(len, said)) <= 100


def test_numbers_of_shards_that_names_can_hold() -> None:
    """1 to 9,999,999; there is no shard of a set of none, and none of eight digits."""
    for split, count in itertools.product(
        ("train_shards", "validation_shards"), (1, 100_001, MAX_SHARDS)
    ):
        check_options(ConvertOptions(**{split: count}))  # type: ignore[arg-type]
    for split, count in itertools.product(
        ("train_shards", "validation_shards"), (-1, 0, MAX_SHARDS + 1)
    ):
        with pytest.raises(UsageError, match=f"{split} is {count:,}\nexpected 1 to 9,999,999"):
            check_options(ConvertOptions(**{split: count}))  # type: ignore[arg-type]


# boxes of validation images -----------------------------------------------------------------------


def _boxes(layout: Layout, split: str) -> dict[str, int]:
    """The number of boxes of every record of a split, by file name."""
    shards = existing(layout.data_dir, f"{split}-*-of-*")
    records = [read_record(memoryview(data)) for path in shards for data in data_of(path)]
    return {record.filename: len(record.boxes) for record in records}


@pytest.mark.parametrize("asked", [True, False])
def test_validation_boxes_reach_the_records_where_asked(tiny_data_dir: Path, asked: bool) -> None:
    """--validation-boxes, from the archive of annotations to the records;
    without it no validation image has a box.
    """
    layout = Layout(tiny_data_dir)
    options = PART.replace(validation_boxes=asked)
    annotate(layout, ENGINE, validation=True)
    convert(layout, ENGINE, options)
    lines = layout.validation_boxes_csv.read_text().splitlines()
    expected = dict.fromkeys(_boxes(layout, "validation"), 0)
    for line in lines if asked else ():
        expected[line.partition(",")[0]] += 1
    assert lines
    assert _boxes(layout, "validation") == expected
    assert any(_boxes(layout, "train").values())
    manifest = load_manifest(layout.manifest_path)
    assert manifest.settings["validation_boxes"] is asked
    assert options_from(manifest).validation_boxes is asked


def test_validation_boxes_that_are_not_there_are_an_error(tiny_data_dir: Path) -> None:
    """Asked for by name, they are not left out with a note, be it that the set is done:
    its plan needs them again.
    """
    layout, options = Layout(tiny_data_dir), PART.replace(validation_boxes=True)
    with pytest.raises(InputError, match="no boxes for validation") as caught:
        convert(layout, ENGINE, options)
    assert str(layout.validation_boxes_csv) in caught.value.what
    assert (
        caught.value.hint
        == f"make it: {command('annotate', tiny_data_dir, (('validation_boxes', True),))}"
    )
    assert not list(tiny_data_dir.glob("*-of-*"))
    annotate(layout, ENGINE, validation=True)
    layout.validation_boxes_csv.write_bytes(b"")
    layout.annotate_path.unlink()
    convert(layout, ENGINE, options)
    layout.validation_boxes_csv.unlink()
    with pytest.raises(InputError, match="no boxes for validation"):
        convert(layout, ENGINE, options)


# what a manifest says -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Manifest:
    """The manifest of a conversion."""
    return load_manifest(
        converted(tmp_path_factory.mktemp("set") / "data", made_tiny, PART).manifest_path
    )


@pytest.mark.parametrize(
    "name",
    [
        "train-00004-of-00004",
        "train-00001-of-00002",
        "test-00000-of-00004",
        "../train-00000-of-00004",
    ],
)
def test_names_in_a_manifest_are_of_its_shards(manifest: Manifest, name: str) -> None:
    """A name beyond the number of shards, of another number, of no split,
    or none at all, is not understood.
    """
    assert options_from(manifest) == PART.replace(check="auto")
    settings = {name: value for name, value in manifest.settings.items() if name != "format"}
    with pytest.raises(InputError, match="folder imagenet-prep can't be understood"):
        options_from(replace(manifest, settings=settings))
    with pytest.raises(InputError, match="whose record format differs"):
        options_from(replace(manifest, settings={**settings, "format": 0}))
    info = next(iter(manifest.shards.values()))
    with pytest.raises(InputError, match="can't be understood"):
        options_from(replace(manifest, shards={**manifest.shards, name: info}))
