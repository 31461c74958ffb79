"""stages.export: the same records as tars and as image folders, whatever set they are of;
whole or not at all.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE, PART, data_of, edit_manifest, flip, inception_features, write
from made_tars import pack, save, unpack
from PIL import Image
from running import PROGRAM, command
from test_kill import run

import imagenet_prep
from imagenet_prep import Layout, convert, export, make_engine
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, SpaceError, UsageError, WriteError
from imagenet_prep.exports import packing
from imagenet_prep.exports.packing import pack_shard
from imagenet_prep.exports.source_set import SourceSet
from imagenet_prep.exports.to_webdataset import TarPacker
from imagenet_prep.ilsvrc2012.class_parts import find_part
from imagenet_prep.model import Item
from imagenet_prep.reading.record import Record
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.tfrecord.example import encode_example

pytestmark = pytest.mark.once

SHARD = "train-00003-of-00008"
TAR = "imagenet-train-000003.tar"


def records_of(layout: Layout, split: str = "train") -> list[Record]:
    """The records of a split, by the reader."""
    return list(imagenet_prep.open(layout.output_dir, split))


def boxes_of(record: Record) -> list[list[float]]:
    """The boxes of a record as exports have them."""
    return [[box.xmin, box.ymin, box.xmax, box.ymax] for box in record.boxes]


def samples_of(tars: Sequence[Path]) -> list[dict[str, Any]]:
    """The samples of tars as webdataset groups them:
    neighbours with the same name up to the first dot.
    """
    samples: list[dict[str, Any]] = []
    for path in tars:
        for name, content in unpack(path).items():
            key, _, extension = name.partition(".")
            if not samples or samples[-1]["__key__"] != (path.name, key):
                samples.append({"__key__": (path.name, key)})
            assert extension not in samples[-1]
            samples[-1][extension] = content
    return samples


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of an export, but for state and facts about the whole set."""
    found = [path for path in list(folder.glob("**/*")) if path.is_file()]
    names = {str(path.relative_to(folder)): path for path in found}
    others = ("imagenet-prep/", "_info", "README.md", "classes.json", ".classes.json")
    files = {name: path.read_bytes() for name, path in names.items() if not name.startswith(others)}
    return {name: content for name, content in files.items() if not name.endswith("/class_map.txt")}


def cut(path: Path) -> None:
    """Remove the second half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def flip_line_of(path: Path) -> None:
    """Flip a bit of the size in the line of a file in the journal of its export,
    if that has one.
    """
    journal = path.parent / "imagenet-prep" / "exported.jsonl"
    if journal.exists():
        content = journal.read_bytes()
        flip(
            journal, content.index(b'"size":', content.index(path.name.encode())) + len(b'"size":')
        )


# webdataset ---------------------------------------------------------------------------------------


def test_tars_hold_the_records(tmp_path: Path, sound: Layout) -> None:
    """Image bytes as they are, the class from 0, the rest as JSON; the shards' order; keys without
    dots, unique.

    _info.json has what timm reads of it; the bytes are what Python's own tarfile makes: ustar,
    without owner and time.
    """
    out = export(sound, "webdataset", tmp_path / "out", ENGINE).out
    splits = json.loads((out / "_info.json").read_text())["splits"]
    assert list(splits) == ["train", "validation"]
    for split, info in splits.items():
        tars = existing(out, f"imagenet-{split}-*.tar")
        assert (
            [path.name for path in tars]
            == [f"imagenet-{split}-{k:06d}.tar" for k in range(8)]
            == info["filenames"]
        )
        assert info["shard_lengths"] == [len(samples_of([path])) for path in tars]
        assert (info["name"], info["num_samples"]) == (split, sum(info["shard_lengths"]))
        samples, records = samples_of(tars), records_of(sound, split)
        assert len({sample["__key__"][1] for sample in samples}) == len(records)
        for sample, record in zip(samples, records, strict=True):
            assert sample["__key__"][1] + ".JPEG" == record.filename
            assert sample["jpg"] == record.encoded
            assert sample["cls"].decode() == str(record.label - 1)
            assert json.loads(sample["json"]) == {
                **{
                    "filename": record.filename,
                    "wnid": record.wnid,
                    "text": record.text,
                    "label": record.label,
                },
                **{"height": record.height, "width": record.width},
                "boxes": json.dumps(boxes_of(record), separators=(",", ":")),
            }
        assert split == "validation" or any(
            json.loads(sample["json"])["boxes"] != "[]" for sample in samples
        )
    assert (out / TAR).read_bytes() == pack(unpack(out / TAR), tarfile.USTAR_FORMAT)


ARRAYS = pytest.param("arrayrecord", marks=pytest.mark.tensorflow)


@pytest.mark.parametrize("container", ["webdataset", "folders", "parquet", ARRAYS])
@pytest.mark.parametrize(
    "change", [cut, lambda path: path.write_bytes(b""), Path.unlink, flip_line_of]
)
def test_a_file_that_is_not_as_written_is_made_again(
    tmp_path: Path, sound: Layout, container: str, change: Callable[[Path], object]
) -> None:
    """A file that was cut, emptied or lost, or whose line in the journal was:
    its shard alone is exported again.
    """
    out = export(sound, container, tmp_path / "out", ENGINE).out
    before = files_below(out)
    change(out / min(before))
    is_made = not (container == "folders" and change is flip_line_of)
    assert [each.made for each in export(sound, container, out, ENGINE).splits] == [int(is_made), 0]
    assert files_below(out) == before
    assert [each.made for each in export(sound, container, out, ENGINE).splits] == [0, 0]


@pytest.mark.parametrize(
    ("container", "name"),
    [
        ("webdataset", "_info.json"),
        ("webdataset", "README.md"),
        ("tfds", "*/*/dataset_info.json"),
        ("croissant", "croissant.json"),
        ("folders", "classes.json"),
        ("folders", "train/class_map.txt"),
    ],
)
def test_a_file_about_the_whole_set_is_written_again(
    tmp_path: Path, sound: Layout, container: str, name: str
) -> None:
    """A file about the set that was cut is whole after the next run."""
    out = export(sound, container, tmp_path / "out", ENGINE).out
    (path,) = out.glob(name)
    before = path.read_bytes()
    cut(path)
    export(sound, container, out, ENGINE)
    assert path.read_bytes() == before


@pytest.mark.parametrize("container", ["webdataset", "folders", "parquet"])
def test_what_is_there_is_not_made_again(tmp_path: Path, sound: Layout, container: str) -> None:
    """A second run makes nothing; one after a file was lost, its shard alone;
    another engine, the same bytes.
    """
    out = tmp_path / "out"
    summary = export(sound, container, out, make_engine("processes", 2))
    assert [(each.split, each.records, each.shards, each.made) for each in summary.splits] == [
        ("train", 300, 8, 8),
        ("validation", 80, 8, 8),
    ]
    before = files_below(out)
    assert [each.made for each in export(sound, container, out, ENGINE).splits] == [0, 0]
    (out / min(before)).unlink()
    save(out / "imagenet-prep/partial/killed/000000", "of a run that was killed")
    assert [each.made for each in export(sound, container, out, ENGINE).splits] == [1, 0]
    assert files_below(out) == before
    assert not (out / "imagenet-prep" / "partial").exists()


# folders ------------------------------------------------------------------------------------------


def test_folders_are_those_of_classes(tmp_path: Path, sound: Layout) -> None:
    """A folder a split, in it one a class, in it the images under their official names."""
    export(sound, "folders", tmp_path / "out", ENGINE)
    expected = {
        f"{split}/{record.wnid}/{record.filename}": bytes(record.encoded)
        for split in ("train", "validation")
        for record in records_of(sound, split)
    }
    assert files_below(tmp_path / "out") == expected
    assert len(expected) == 380


def one_record(folder: Path, *names: str, label: int = 1, wnid: str = "n01440764") -> Layout:
    """Another maker's set: a shard of one split with an image a name."""
    image = photographs.tiny(5)
    folder.mkdir()
    items = [Item(name, label, wnid, "a fish", ()) for name in names]
    write(
        folder / "train-00000-of-00001",
        [encode_example(inception_features(item, 16, 16, image)) for item in items],
    )
    return Layout(folder)


STRAY = ("../../stray.JPEG", "a/../../../stray", "/stray", "a//b", ".", "x" * 300, "a\0b")


@pytest.mark.parametrize(
    ("container", "names", "label", "said"),
    [
        *(
            ("folders", [name], 1, "the image of record 0 can't be saved in a folder")
            for name in STRAY
        ),
        (
            "folders",
            ["a.JPEG", "b.JPEG", "a.JPEG"],
            1,
            r"two records would be saved as train/n01440764/a\.JPEG, one of them in train-",
        ),
        ("webdataset", ["a.JPEG"], 0, "record 0 at byte 0 has label 0"),
    ],
)
def test_records_that_can_not_be_exported(
    tmp_path: Path, container: str, names: list[str], label: int, said: str
) -> None:
    """A name that leads elsewhere or comes twice, a class -1: refused, by shard and record;
    nothing is written.
    """
    with pytest.raises(InputError, match=said):
        export(
            one_record(tmp_path / "data", *names, label=label), container, tmp_path / "out", ENGINE
        )
    assert files_below(tmp_path / "out") == {}
    assert {path.name for path in existing(tmp_path, "*")} == {"data", "out"}


def test_a_class_that_can_not_be_a_folder(tmp_path: Path) -> None:
    """The expected names exclude the one that is refused."""
    with pytest.raises(
        InputError, match=r"the image of record 0 can't be saved in a folder 'and/or' as 'a\.JPEG'"
    ) as caught:
        export(
            one_record(tmp_path / "data", "a.JPEG", wnid="and/or"),
            "folders",
            tmp_path / "out",
            ENGINE,
        )
    assert "a class without '/'" in caught.value.detail
    assert caught.value.hint == "export to webdataset, which accepts any name"
    export(Layout(tmp_path / "data"), "webdataset", tmp_path / "out", ENGINE)  # nothing was written


def test_every_split_has_every_class_folder(tmp_path: Path) -> None:
    """ImageFolder numbers the folders that it finds:
    a class without images in a split has an empty one there.
    """
    layout = one_record(tmp_path / "data", "a.JPEG", wnid="n01440764")
    for split, wnid in (("test", "n01443537"), ("validation", "n01484850")):
        other = one_record(tmp_path / split, f"{split}.JPEG", wnid=wnid)
        shard = other.shard_path("train-00000-of-00001")
        shard.rename(layout.shard_path(f"{split}-00000-of-00001"))
    for _ in range(2):
        export(layout, "folders", tmp_path / "out", ENGINE)
        for split in ("train", "test", "validation"):
            assert sorted(os.listdir(tmp_path / "out" / split)) == [
                "n01440764",
                "n01443537",
                "n01484850",
            ]
        (tmp_path / "out" / "validation" / "n01440764").rmdir()
    assert len(files_below(tmp_path / "out")) == 3


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("train/fish/a.jpg", "train/fish/a.jpg"),
        ("training/fish/deep/a.jpg", "train/fish/deep__a.jpg"),
        ("day/fish/a.jpg", "train/fish/day__a.jpg"),
        ("fish/fish/a.jpg", "train/fish/fish__a.jpg"),
    ],
)
def test_split_and_class_are_in_a_path_once(tmp_path: Path, name: str, path: str) -> None:
    """An image that lay in folders of its split and class is not put into them twice;
    others are part of its name.
    """
    export(one_record(tmp_path / "data", name, wnid="fish"), "folders", tmp_path / "out", ENGINE)
    assert list(files_below(tmp_path / "out")) == [path]


def test_shards_with_images_of_one_name_are_refused_in_folders(tmp_path: Path) -> None:
    """The shard that comes first stays, the other one is named;
    so it is when the command is run again.
    """
    layout = one_record(tmp_path / "data", "a.JPEG")
    first = tmp_path / "data" / "train-00000-of-00001"
    write(tmp_path / "data" / "train-00001-of-00002", data_of(first))
    first.rename(tmp_path / "data" / "train-00000-of-00002")
    for _ in range(2):
        with pytest.raises(
            InputError,
            match=r"saved as train/n01440764/a\.JPEG, one of them in train-0000\d-of",
        ):
            export(layout, "folders", tmp_path / "out", ENGINE)
        assert list(files_below(tmp_path / "out")) == ["train/n01440764/a.JPEG"]


def test_images_of_one_name_stay_apart_in_tars(tmp_path: Path) -> None:
    """Their keys differ, and each has all of its members."""
    layout = one_record(tmp_path / "data", "a.b.JPEG", "a_b.JPEG", "é" * 200 + ".JPEG")
    export(layout, "webdataset", tmp_path / "out", ENGINE)
    samples = samples_of(existing(tmp_path / "out", "*.tar"))
    assert [sample["__key__"][1] for sample in samples] == ["a_b", "a_b_1", "é" * 200]
    assert all(sample.keys() == {"__key__", "jpg", "cls", "json"} for sample in samples)


# parquet ------------------------------------------------------------------------------------------


def features_in(path: Path) -> dict[str, Any]:
    """What a parquet file tells Hugging Face's datasets of its columns."""
    from pyarrow import parquet

    metadata = parquet.read_schema(path).metadata
    features: dict[str, Any] = json.loads(metadata[b"huggingface"])["info"]["features"]
    return features


@pytest.mark.parametrize("split", ["train", "validation"])
def test_parquet_holds_the_records(tmp_path: Path, sound: Layout, split: str) -> None:
    """Images as they are with their names, the class from 0, boxes;
    the schema says what is an image and a class.
    """
    from pyarrow import parquet

    out = export(sound, "parquet", tmp_path / "out", ENGINE).out
    paths = existing(out, f"{split}-*.parquet")
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    assert [row["image"] for row in rows] == [
        {"bytes": record.encoded, "path": record.filename} for record in records_of(sound, split)
    ]
    for row, record in zip(rows, records_of(sound, split), strict=True):
        assert (row["label"], row["wnid"], row["text"]) == (
            record.label - 1,
            record.wnid,
            record.text,
        )
        assert (row["boxes"], row["height"], row["width"]) == (
            boxes_of(record),
            record.height,
            record.width,
        )
    for path in paths:
        assert (
            str(parquet.read_schema(path).field("boxes").type)
            == "list<element: list<element: float>>"
        )
        assert features_in(path)["image"] == {"_type": "Image"}
        label = features_in(path)["label"]
        assert label["_type"] == "ClassLabel"
        assert len(label["names"]) == 1000
        assert {label["names"][row["label"]] == row["wnid"] for row in rows} == {True}


# faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["webdataset", "folders", "parquet", ARRAYS])
def test_a_damaged_record_is_named_and_nothing_wrong_is_left(
    tmp_path: Path, layout: Layout, container: str
) -> None:
    """The other shards are exported, nothing of this one;
    once it is mended the rest follows, as of a sound set.
    """
    export(layout, container, tmp_path / "expected", ENGINE)
    record = records_of(layout)[130]
    path = layout.shard_path(record.shard.name)
    flip(path, record.offset + len(record.data))
    with pytest.raises(
        InputError, match=rf"{path}: record {record.number} at byte {record.offset} is damaged"
    ):
        export(layout, container, tmp_path / "out", ENGINE)
    left, expected = files_below(tmp_path / "out"), files_below(tmp_path / "expected")
    assert left.items() < expected.items()
    assert not list((tmp_path / "out" / "imagenet-prep").glob("partial*"))
    flip(path, record.offset + len(record.data))
    assert [each.made for each in export(layout, container, tmp_path / "out", ENGINE).splits] == [
        1,
        0,
    ]
    assert files_below(tmp_path / "out") == expected


def test_sound_records_that_are_others_are_refused(tmp_path: Path, layout: Layout) -> None:
    """Every CRC and the size are right, but a record has moved: the digest on record tells."""
    path = layout.shard_path(SHARD)
    first, *others = data_of(path)
    write(path, [*others, first])
    with pytest.raises(InputError, match=f"{SHARD} holds other records than manifest.json says"):
        export(layout, "webdataset", tmp_path / "out", ENGINE)
    names = {path.name for path in existing(tmp_path / "out", "*.tar")}
    assert TAR not in names
    assert len(names) == 15


def test_what_was_written_is_read_back(
    tmp_path: Path, sound: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that does not hold what was written never gets its name, and does not stay."""
    target, source = Layout(tmp_path / "out"), SourceSet.load(sound)
    target.partial_dir.mkdir(parents=True)
    assert pack_shard(TarPacker(source), target, source.shards[3]).is_made
    (target.output_dir / TarPacker(source).file_name(source.shards[3])).unlink()
    read = packing._crc_of

    def spoilt(path: Path) -> int:
        flip(path, 600)
        return read(path)

    monkeypatch.setattr(packing, "_crc_of", spoilt)
    with pytest.raises(WriteError, match="does not read back as it was written"):
        pack_shard(TarPacker(source), target, source.shards[3])
    assert not list(target.partial_dir.iterdir())


@pytest.mark.parametrize("container", ["webdataset", ARRAYS])
def test_a_disk_that_takes_no_more_leaves_nothing_wrong(
    tmp_path: Path, sound: Layout, container: str
) -> None:
    """No file of a tar's size can be written: status 1, no file, and a rerun without the limit
    makes all.

    Python would cut its caches of modules at the limit too, and fail to import them ever after.
    """
    out = tmp_path / "out"
    arguments = ["export", container, str(sound.output_dir), str(out), "--workers", "1", "--quiet"]
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 29; exec "$@"', "bash", *PROGRAM]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*limited, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, "cannot write" in done.stderr, "Traceback" in done.stderr) == (
        1,
        True,
        False,
    )
    assert files_below(out) == {}
    command(*arguments)
    assert len(files_below(out)) == 16


def test_what_does_not_fit_is_not_begun(
    tmp_path: Path, sound: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less space than the shards have bytes, or fewer inodes than there are images:
    no file is made.
    """
    found = os.statvfs(tmp_path)
    for blocks, inodes in ((1, 10_000), (found.f_bavail, 300)):
        seen = os.statvfs_result((*found[:4], blocks, 20_000, inodes, inodes, *found[8:]))
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _, seen=seen: seen)
            with pytest.raises(SpaceError, match=r"16 shards .*folders"):
                export(sound, "folders", tmp_path / "out", ENGINE)
    assert files_below(tmp_path / "out") == {}


# another folder -----------------------------------------------------------------------------------


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path, layout: Layout) -> None:
    """The set itself, a folder with a file, another export, a folder with state of ours:
    nothing in them changes.
    """
    stray, state = tmp_path / "stray", tmp_path / "state"
    save(stray / "thesis.tex", "all of it")
    save(state / "imagenet-prep" / "manifest.json", "{}")
    for folder in (stray, state, layout.data_dir):
        before = files_below(folder)
        with pytest.raises(InputError, match="holds something else"):
            export(layout, "webdataset", folder, ENGINE)
        assert files_below(folder) == before
        assert not (folder / "imagenet-prep" / "export.json").exists()
    export(layout, "folders", tmp_path / "out", ENGINE)
    with pytest.raises(InputError, match=r"another export.*folders"):
        export(layout, "webdataset", tmp_path / "out", ENGINE)
    save(tmp_path / "out" / "imagenet-prep" / "export.json", "[1]")
    with pytest.raises(InputError, match=r"another export, to an unknown format"):
        export(layout, "webdataset", tmp_path / "out", ENGINE)


def test_an_export_of_another_set_is_refused(
    tmp_path: Path, layout: Layout, made_tiny: MadeSet
) -> None:
    """A set that was made otherwise since: its images would mix with those of before."""
    export(layout, "folders", tmp_path / "out", ENGINE)
    before = files_below(tmp_path / "out")
    again = Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)
    convert(again, ENGINE, PART.replace(seed=7, overwrite=True))
    with pytest.raises(InputError, match=r"export of another set"):
        export(again, "folders", tmp_path / "out", ENGINE)
    assert files_below(tmp_path / "out") == before


def test_a_set_that_is_not_whole_is_refused(
    tmp_path: Path, layout: Layout, made_tiny: MadeSet
) -> None:
    """A shard is missing, or all of them: nothing is begun."""
    layout.shard_path(SHARD).unlink()
    with pytest.raises(InputError, match=f"{SHARD} is missing"):
        export(layout, "webdataset", tmp_path / "out", ENGINE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no train or validation shards in") as refused:
        export(Layout(tmp_path / "empty"), "webdataset", tmp_path / "out", ENGINE)
    assert (
        f"or, if there are none yet, run the next step: imagenet-prep download {tmp_path / 'empty'}"
        in refused.value.hint
    )
    shutil.copytree(made_tiny.archives["train"].parent, tmp_path / "archives" / "raw-data")
    with pytest.raises(InputError, match="no train or validation shards in") as refused:
        export(Layout(tmp_path / "archives"), "webdataset", tmp_path / "out", ENGINE)
    assert (
        f"or, if there are none yet, run the next step: imagenet-prep convert {tmp_path / 'archives'}"
        in refused.value.hint
    )
    assert not (tmp_path / "out").exists()


# other sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relabel", "first"), [(0, 0), (1, 1)])
def test_a_part_of_imagenet_with_any_labels(
    tmp_path: Path, made_tiny: MadeSet, relabel: int | None, first: int
) -> None:
    """Labels as they were, from 0, from 1: the class counts from 0, the JSON says the label itself.
    Compressed too.
    """
    wnids = sorted(made_tiny.wnids)[2:6]
    listing = tmp_path / "classes.txt"
    listing.write_text("\n".join(wnids))
    layout = Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)
    part = find_part(str(listing), relabel)
    convert(layout, ENGINE, PART.replace(recorded=part, compression="gzip"))
    export(layout, "webdataset", tmp_path / "out", ENGINE)
    samples, records = (
        samples_of(existing(tmp_path / "out", "imagenet-train-*")),
        records_of(layout),
    )
    assert [int(sample["cls"]) for sample in samples] == [
        record.label - first for record in records
    ]
    assert [json.loads(sample["json"])["label"] for sample in samples] == [
        record.label for record in records
    ]
    assert [sample["jpg"] for sample in samples] == [record.encoded for record in records]
    assert relabel != 0 or min(record.label for record in records) == 0


def recipe_set(folder: Path, record: str, *, content: str = "image") -> Layout:
    """A set of two classes, of JPEGs and PNGs, by a recipe."""
    image = photographs.tiny(5)
    for name in ("cat", "dog"):
        for number in range(3):
            save(folder / "images" / name / f"{number}.jpg", image)
        Image.new("RGB", (16, 12), (9, 99, 9)).save(folder / "images" / name / "odd.v2.png")
    recipe = folder / "recipe.yaml"
    recipe.write_text(f"source: {{folders: images}}\nshards: 2\ncontent: {content}\n{record}")
    layout = Layout(folder / "shards")
    dataset = RecipeSet.read(recipe)
    convert(layout, ENGINE, dataset.options, dataset=dataset)
    return layout


def test_a_recipe_names_its_image_and_its_label(tmp_path: Path) -> None:
    """Features of any names: the manifest says which holds what;
    those without a role here are in JSON and columns.
    """
    from pyarrow import parquet

    layout = recipe_set(
        tmp_path, "record: {pic: encoded, y: label, c: class, at: path, h: height}\n"
    )
    export(layout, "webdataset", tmp_path / "out", ENGINE)
    assert [path.name for path in existing(tmp_path / "out", "*.tar")] == [
        "train-000000.tar",
        "train-000001.tar",
    ]
    samples = samples_of(existing(tmp_path / "out", "*.tar"))
    for sample, record in zip(samples, records_of(layout), strict=True):
        features = record.features
        is_png = features["at"].endswith(b".png")
        assert sample["__key__"][1] == features["at"].decode().replace(".", "_")
        assert sample["png" if is_png else "jpg"] == features["pic"]
        assert int(sample["cls"]) == features["y"]
        told = {"filename": features["at"].decode(), "wnid": features["c"].decode(), "text": None}
        assert json.loads(sample["json"]) == {**told, "label": features["y"], "h": features["h"]}
    export(layout, "folders", tmp_path / "tree", ENGINE)
    names = {
        f"train/{name}/{image}"
        for name in ("cat", "dog")
        for image in ("0.jpg", "1.jpg", "2.jpg", "odd.v2.png")
    }
    assert files_below(tmp_path / "tree").keys() == names
    paths = existing(export(layout, "parquet", tmp_path / "parquet", ENGINE).out, "train-*.parquet")
    assert [features_in(path)["label"]["names"] for path in paths] == [["cat", "dog"]] * 2
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    for row, record in zip(rows, records_of(layout), strict=True):
        assert (row["image"]["bytes"], row["label"]) == (
            record.features["pic"],
            record.features["y"],
        )
        assert (row["wnid"], row["h"]) == (record.features["c"].decode(), record.features["h"])


class WriterOfSamples:
    """Stands in for MosaicML's MDSWriter, which is too large for the tests:
    a shard is a JSON list of its samples.
    """

    def __init__(self, columns: dict[str, str], **options: object) -> None:
        self.columns, self.samples = columns, list[dict[str, Any]]()

    def write(self, sample: dict[str, Any]) -> None:
        """Encode a sample as the real one does: the image by its own ``save``."""
        assert sample.keys() == self.columns.keys()
        sample["x"].save(buffer := io.BytesIO(), format="JPEG")
        self.samples.append({**sample, "x": buffer.getvalue().hex()})

    def encode_joint_shard(self) -> bytes:
        """The content of a shard's file."""
        return json.dumps(self.samples).encode()

    def get_config(self) -> dict[str, Any]:
        """The entry of a shard in the index."""
        return {"columns": self.columns}


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with the stand-in of MDSWriter."""
    module: Any = types.ModuleType("streaming")
    module.MDSWriter, module.__spec__ = (
        WriterOfSamples,
        importlib.machinery.ModuleSpec("streaming", None),
    )
    monkeypatch.setitem(sys.modules, "streaming", module)


def classes_in(layout: Layout, container: str, out: Path) -> list[int]:
    """The class of each record of a split in an export."""
    export(layout, container, out, ENGINE)
    if container == "webdataset":
        return [int(sample["cls"]) for sample in samples_of(existing(out, "*train-*.tar"))]
    if container == "mds":
        return [
            sample["y"]
            for path in existing(out, "train/*.mds")
            for sample in json.loads(path.read_bytes())
        ]
    from pyarrow import parquet

    rows = [
        row
        for path in existing(out, "train-*.parquet")
        for row in parquet.read_table(path).to_pylist()
    ]
    assert [["cat", "dog"].index(row["wnid"]) for row in rows] == [row["label"] for row in rows]
    return [row["label"] for row in rows]


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("container", ["webdataset", "parquet", "mds"])
@pytest.mark.parametrize(
    "record", ["record: {pic: encoded, y: label, c: class}\n", "record: inception\n"]
)
@pytest.mark.parametrize("first", [0, 1, 3])
def test_classes_count_from_0_whatever_the_first_label(
    tmp_path: Path, container: str, record: str, first: int
) -> None:
    """The first class of a recipe's set is 0 in every export, as in the readers;
    its records keep their labels.
    """
    layout = recipe_set(tmp_path, f"{record}first_label: {first}\n")
    records = records_of(layout)
    labels = [
        record.features["y" if "y" in record.features else "image/class/label"]
        for record in records
    ]
    assert {first, first + 1} == set(labels)
    assert imagenet_prep.open(layout.output_dir, "train").first_label == first
    assert classes_in(layout, container, tmp_path / "out") == [label - first for label in labels]


@pytest.mark.usefixtures("streaming")
def test_mds_holds_the_records(tmp_path: Path, sound: Layout) -> None:
    """Image bytes as they are, the class from 0, the rest as JSON;
    the index counts samples and bytes.
    """
    out = export(sound, "mds", tmp_path / "out", ENGINE).out
    for split in ("train", "validation"):
        paths, records = existing(out, f"{split}/*.mds"), records_of(sound, split)
        samples = [sample for path in paths for sample in json.loads(path.read_bytes())]
        for sample, record in zip(samples, records, strict=True):
            assert (bytes.fromhex(sample["x"]), sample["y"]) == (record.encoded, record.label - 1)
            told = json.loads(sample["json"])
            assert (told["label"], told["filename"]) == (record.label, record.filename)
        entries = json.loads((out / split / "index.json").read_bytes())["shards"]
        assert sum(entry["samples"] for entry in entries) == len(records)
        sizes = {entry["raw_data"]["basename"]: entry["raw_data"]["bytes"] for entry in entries}
        assert sizes == {path.name: path.stat().st_size for path in paths}


@pytest.mark.usefixtures("streaming")
def test_the_call_that_reads_mds_names_a_split_that_is_there(tmp_path: Path) -> None:
    """A set may have no split for training."""
    layout = recipe_set(tmp_path, "record: {pic: encoded, y: label}\nsplits: {val: 1.0}\n")
    usage = export(layout, "mds", tmp_path / "out", ENGINE).usage
    assert "split='val'" in usage


def test_a_recipe_without_images_is_refused(tmp_path: Path) -> None:
    """Numbers are no image: the refusal says what the records hold."""
    layout = recipe_set(tmp_path, "record: {raw: raw, y: label}\n", content="pixels")
    for container in ("webdataset", "folders"):
        with pytest.raises(UsageError, match=r"no image file\n.*raw, y\nexport to arrayrecord"):
            export(layout, container, tmp_path / "out", ENGINE)
    assert not (tmp_path / "out").exists()
    assert export(layout, "arrayrecord", tmp_path / "out", ENGINE).splits[0].made


def test_images_without_a_class_have_no_folder(tmp_path: Path) -> None:
    """Folders are refused, tars have no member for the class."""
    layout = recipe_set(tmp_path, "record: {pic: encoded, at: path}\n")
    with pytest.raises(InputError, match="record 0 has no class"):
        export(layout, "folders", tmp_path / "tree", ENGINE)
    export(layout, "webdataset", tmp_path / "out", ENGINE)
    assert {
        extension
        for sample in samples_of(existing(tmp_path / "out", "*.tar"))
        for extension in sample
    } == {*("__key__", "jpg", "png", "json")}


def test_a_record_that_is_not_as_the_manifest_says(tmp_path: Path) -> None:
    """A manifest that names a number for the image:
    the record is named, and nothing is exported.
    """
    layout = recipe_set(tmp_path, "record: {pic: encoded, y: label}\n")
    edit_manifest(
        layout, lambda value: value["settings"]["record"]["y"].update({"from": "encoded"})
    )
    edit_manifest(
        layout, lambda value: value["settings"]["record"]["pic"].update({"from": "label"})
    )
    with pytest.raises(
        InputError,
        match=r"record 0 .*: the feature 'y' does not hold .*\nexpected one .* in it, as manifest.json of this set",
    ):
        export(layout, "webdataset", tmp_path / "out", ENGINE)
    assert files_below(tmp_path / "out") == {}


# the command line ---------------------------------------------------------------------------------


def test_the_command_says_what_it_made(tmp_path: Path, sound: Layout) -> None:
    """A line a split, nothing with --quiet; a folder that is not there is wrong usage,
    one that is taken bad input.
    """
    words = ("export", "folders", sound.output_dir, tmp_path / "out")
    shown = command(*words).stdout
    assert "export: train: 300 records of 8 shards (101.3 kB), 8 shards exported now\n" in shown
    assert command(*words, "--quiet").stdout == ""
    command("export", "folders", tmp_path / "nowhere", tmp_path / "out", status=2)
    command("export", "webdataset", sound.output_dir, tmp_path / "out", status=4)


@pytest.mark.parametrize(
    ("container", "package"), [("arrayrecord", "array_record"), ("mds", "mosaicml-streaming")]
)
def test_without_its_package_the_extra_is_named(
    tmp_path: Path, sound: Layout, monkeypatch: pytest.MonkeyPatch, container: str, package: str
) -> None:
    """Before anything is begun."""
    monkeypatch.setitem(sys.modules, "array_record", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=package) as caught:
        export(sound, container, tmp_path / "out", ENGINE)
    assert f".[{container}]" in str(caught.value)
    assert not (tmp_path / "out").exists()


def metadata(layout: Layout) -> dict[str, Any]:
    """The content of croissant.json."""
    out = export(layout, "croissant", None, ENGINE).out
    found: dict[str, Any] = json.loads((out / "croissant.json").read_text())
    return found


@pytest.mark.parametrize("container", ["croissant", "tfds"])
def test_a_format_that_copies_nothing_names_its_files(
    sound: Layout, tmp_path: Path, container: str
) -> None:
    """The numbers are those of the set that they describe."""
    folder = tmp_path / "out"
    ran = command("export", container, sound.data_dir, folder)
    written = {str(path) for path in existing(folder, "**/*") if path.is_file()}
    written = {path for path in written if "/imagenet-prep/" not in path}
    if container == "croissant":
        assert ran.stdout == f"wrote {folder / 'croissant.json'}\n"
    else:
        assert repr(str(folder)) in ran.stdout
    ran = command("export", container, sound.data_dir, folder, "--json", "-")
    outcome = json.loads(ran.stdout)
    assert set(outcome["files"]) == written
    manifest = json.loads(sound.manifest_path.read_text())
    assert outcome["shards"] == len(manifest["shards"])
    assert outcome["images"] == sum(shard["records"] for shard in manifest["shards"].values())


def test_croissant_has_every_feature_of_every_split(sound: Layout) -> None:
    """Names and kinds as in the manifest, the image as an image;
    numbers of records; where the shards are.
    """
    found, manifest = metadata(sound), load_manifest(sound.manifest_path)
    assert manifest
    assert found["name"] == "ILSVRC2012"
    assert [each["includes"] for each in found["distribution"]] == [
        "train-*-of-*",
        "validation-*-of-*",
    ]
    assert [each["name"] for each in found["recordSet"]] == ["train", "validation"]
    for each in found["recordSet"]:
        count = len(records_of(sound, each["name"]))
        assert each["description"] == f"{count:,} records"
        assert f"{count:,} in {each['name']}" in found["description"]
        kinds = {
            field["name"]: (field["dataType"], field.get("repeated", False))
            for field in each["field"]
        }
        assert kinds.keys() == manifest.dataset.features.keys()
        assert kinds["image/encoded"] == ("sc:ImageObject", False)
        assert kinds["image/class/label"] == ("sc:Integer", False)
        assert kinds["image/object/bbox/xmin"] == ("sc:Float", True)
        assert {field["source"]["fileSet"]["@id"] for field in each["field"]} == {
            f"{each['name']}-shards"
        }


def test_croissant_of_a_recipe_claims_no_license(tmp_path: Path) -> None:
    """Only ImageNet's terms are known."""
    found = metadata(recipe_set(tmp_path, "record: {pic: encoded, y: label}\n"))
    assert not {"license", "url", "citeAs"} & found.keys()
    assert "sc:ImageObject" in {field["dataType"] for field in found["recordSet"][0]["field"]}


def test_croissant_needs_a_manifest(sound: Layout, tmp_path: Path) -> None:
    """Shards of another maker do not tell their features."""
    for shard in existing(Path(str(sound.output_dir)), "*-of-*"):
        (tmp_path / shard.name).write_bytes(shard.read_bytes())
    with pytest.raises(UsageError, match=r"there is no .*imagenet-prep/manifest\.json"):
        export(Layout(tmp_path), "croissant", None, ENGINE)


@pytest.mark.tensorflow
def test_array_record_reads_every_record(tmp_path: Path, sound: Layout) -> None:
    """In order and by number, what Grain's source takes:
    a group a record, the bytes of the Example.
    """
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordReader

    export(sound, "arrayrecord", tmp_path / "out", ENGINE)
    paths = existing(tmp_path / "out", "train-*.array_record")
    assert [path.name for path in paths] == [
        f"train-{k:05d}-of-00008.array_record" for k in range(8)
    ]
    expected = [data for path in existing(sound.output_dir, "train-*") for data in data_of(path)]
    source = ArrayRecordDataSource([str(path) for path in paths])
    assert len(source) == len(expected) == 300
    assert [source[number] for number in range(300)] == expected
    assert "group_size:1," in ArrayRecordReader(str(paths[0])).writer_options_string()


KILLS = 4


def count_files(folder: Path) -> int:
    """How many files lie below a folder now, those without their final name too."""
    return sum(len(names) for _, _, names in os.walk(folder))


def test_an_export_survives_kills(tmp_path: Path, sound: Layout) -> None:
    """After each kill every file that has its name is whole, and a rerun makes the rest."""
    arguments = [
        "export",
        "folders",
        str(sound.output_dir),
        str(tmp_path / "out"),
        "--workers",
        "2",
        "--quiet",
    ]
    assert run(arguments).wait() == 0
    expected = files_below(tmp_path / "out")
    draw, met = random.Random(KILLS), 0
    for _ in range(10 * KILLS):
        shutil.rmtree(tmp_path / "out")
        process = run(arguments)
        # By what is there, not by time: a busy machine takes longer for some runs than for others.
        few_files = draw.randrange(len(expected) // 2)
        while process.poll() is None and count_files(tmp_path / "out") <= few_files:
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):  # it ended already
            os.killpg(process.pid, signal.SIGKILL)
        met += process.wait() != 0
        assert files_below(tmp_path / "out").items() <= expected.items()
        assert run(arguments).wait() == 0
        assert files_below(tmp_path / "out") == expected
        assert not (tmp_path / "out" / "imagenet-prep" / "partial").exists()
        if met == KILLS:
            return
    pytest.fail("the kills come too late")


@pytest.mark.parametrize("order", ["DATA FORMAT OUT", "DATA OUT FORMAT"])
def test_the_format_may_be_named_later(tmp_path: Path, sound: Layout, order: str) -> None:
    """DATA_DIR and OUT keep their order."""
    words = {"DATA": sound.data_dir, "OUT": tmp_path / "out", "FORMAT": "webdataset"}
    command("export", *[words[word] for word in order.split()], "--quiet")
    assert existing(tmp_path / "out", "*.tar")
