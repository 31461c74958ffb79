"""Damaged records in exports: refused with shard, record and file,
or left out, counted and named in a file.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from existing import existing
from made_sets import ENGINE, flip, make_flowers, write
from made_tars import save, unpack
from running import command
from test_export import streaming  # noqa: F401 - a fixture

import imagenet_prep
from imagenet_prep import Layout, convert, export
from imagenet_prep.demo import photographs
from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.exports import FORMATS
from imagenet_prep.exports.source_set import SourceSet
from imagenet_prep.model import OnDamaged, Outcomes
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.reading.shard import Shard
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.tfrecord.framing import OVERHEAD, iter_records

pytestmark = pytest.mark.once

T = TypeVar("T")
R = TypeVar("R")

SHARD = "train-00003-of-00008"
COPYING = [name for name in FORMATS if name not in ("croissant", "tfds")]


def damage(layout: Layout, *indices: int, shard: str = SHARD) -> list[str]:
    """Flip a bit in the data of these records of a shard, and in the length of the last one:
    their images' names.
    """
    records = [*Shard.open(layout.shard_path(shard)).records()]
    chosen = [records[index] for index in indices]
    names = [record.filename for record in chosen]
    for record in chosen[:-1]:
        flip(Path(str(record.shard)), record.offset + 12 + len(record.data) // 2)
    flip(Path(str(chosen[-1].shard)), chosen[-1].offset + 1)
    return names


def named(out: Path) -> list[dict[str, Any]]:
    """The lines of an export's damaged-images.jsonl."""
    path = Path(str(Layout(out).damaged_images_path))
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def finals(out: Path) -> dict[str, bytes]:
    """Every file of an export but its state."""
    files = [
        path
        for path in existing(out, "**/*")
        if path.is_file() and "imagenet-prep" not in path.parts
    ]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("container", COPYING)
def test_each_format_refuses_or_leaves_out(container: str, layout: Layout, tmp_path: Path) -> None:
    """Refused: named, nothing half left. Left out: counted and named;
    after a repair all of it, as if never damaged.
    """
    whole = export(layout, container, tmp_path / "whole", ENGINE)
    expected = finals(whole.out)
    names = damage(layout, 2, 5)
    out = tmp_path / "out"
    with pytest.raises(DamagedRecordError, match=f"{SHARD}: record 2 at byte") as caught:
        export(layout, container, out, ENGINE)
    assert caught.value.detail == f"{names[0]}: the data does not match its CRC"
    assert "imagenet-prep verify" in caught.value.hint
    assert "--on-damaged skip leaves out damaged records" in caught.value.hint
    assert named(out) == []
    assert not any("partial" in str(path) for path in existing(out, "**/*"))
    for _ in range(2):  # once more: the same
        summary = export(layout, container, out, ENGINE, on_damaged="skip")
        train, others = summary.splits
        assert (train.records, others.records) == (
            whole.splits[0].records - 2,
            whole.splits[1].records,
        )
        assert (summary.left_out, summary.named_in) == (2, Layout(out).damaged_images_path)
        assert [
            (line["split"], line["shard"], line["record"], line["image"]) for line in named(out)
        ] == [("train", SHARD, number, name) for number, name in zip((2, 5), names, strict=True)]
    with pytest.raises(
        DamagedRecordError, match="record 2"
    ):  # a shard with gaps does not count as exported
        export(layout, container, out, ENGINE)
    assert verify_and_repair(layout, ENGINE).repair.made == (SHARD,)
    summary = export(layout, container, out, ENGINE, on_damaged="skip")
    assert (summary.left_out, summary.named_in, named(out)) == (0, None, [])
    assert finals(out) == expected


class InterruptedEngine:
    """An engine whose run stops after its first outcome."""

    workers = 1

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """One outcome, then the interruption."""
        yield next(ENGINE.map(function, itertools.islice(tasks, 1)))
        raise KeyboardInterrupt


@pytest.mark.parametrize("container", ["webdataset", "folders"])
def test_an_interrupted_run_forgets_no_shard_with_gaps(
    container: str, layout: Layout, tmp_path: Path
) -> None:
    """Two shards lack records; the next run is stopped after the first of them:
    the one after it exports both.
    """
    whole = export(layout, container, tmp_path / "whole", ENGINE).out
    shards = [SHARD, "train-00005-of-00008"]
    sound = {shard: layout.shard_path(shard).read_bytes() for shard in shards}
    names = damage(layout, 2) + damage(layout, 1, shard=shards[1])
    out = tmp_path / "out"
    for engine in (ENGINE, InterruptedEngine(), ENGINE):
        with contextlib.suppress(KeyboardInterrupt):
            assert export(layout, container, out, engine, on_damaged="skip").left_out == 2
        assert [line["image"] for line in named(out)] == names
    layout.shard_path(SHARD).write_bytes(sound[SHARD])
    assert export(layout, container, out, ENGINE, on_damaged="skip").left_out == 1
    assert [line["image"] for line in named(out)] == names[1:]
    layout.shard_path(shards[1]).write_bytes(sound[shards[1]])
    assert export(layout, container, out, ENGINE).left_out == 0
    assert (named(out), finals(out)) == ([], finals(whole))


def test_counts_of_an_export_are_those_of_its_files(layout: Layout, tmp_path: Path) -> None:
    """``_info.json`` counts the samples that each tar has."""
    damage(layout, 0, 7)
    export(layout, "webdataset", tmp_path / "out", ENGINE, on_damaged="skip")
    lengths = json.loads((tmp_path / "out" / "_info.json").read_bytes())["splits"]["train"][
        "shard_lengths"
    ]
    whole = len(imagenet_prep.open(layout.data_dir, "train"))
    assert sum(lengths) == whole - 2
    tars = sorted((tmp_path / "out").glob("imagenet-train-*.tar"))
    counted = [sum(name.endswith(".cls") for name in unpack(path)) for path in tars]
    assert counted == lengths


def test_a_record_that_is_no_example(layout: Layout, tmp_path: Path) -> None:
    """Its checksum is right and its data is not understood:
    damaged too, in a set that another tool made.
    """
    data = [bytes(record.data) for record in imagenet_prep.open(layout.data_dir, "train")][:5]
    foreign = Layout(tmp_path / "foreign")
    (tmp_path / "foreign").mkdir()
    write(tmp_path / "foreign" / "train-00000-of-00001", [*data[:2], b"\xff" * 40, *data[2:]])
    with pytest.raises(DamagedRecordError, match="record 2 at byte"):
        export(foreign, "webdataset", tmp_path / "out", ENGINE)
    summary = export(foreign, "webdataset", tmp_path / "out", ENGINE, on_damaged="skip")
    assert (summary.splits[0].records, summary.left_out) == (5, 1)
    assert named(tmp_path / "out")[0]["reason"].startswith("it is not a tf.train.Example")


def test_a_compressed_shard(tmp_path: Path) -> None:
    """A damaged record within the compressed content is left out as well."""
    with imagenet_prep.records.ShardWriter(tmp_path / "plain" / "train", shards=1) as writer:
        for number in range(4):
            writer.write(
                {
                    "image/encoded": photographs.tiny(number),
                    "image/class/label": 1,
                    "image/filename": "x.jpg",
                }
            )
    content = bytearray((tmp_path / "plain" / "train-00000-of-00001").read_bytes())
    content[500] ^= 1
    save(tmp_path / "set" / "train-00000-of-00001", gzip.compress(bytes(content)))
    summary = export(
        Layout(tmp_path / "set"), "webdataset", tmp_path / "out", ENGINE, on_damaged="skip"
    )
    assert (summary.splits[0].records, summary.left_out) == (3, 1)


@pytest.mark.parametrize("on_damaged", ["refuse", "skip"])
@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_records_that_cant_be_found_are_not_skipped(
    tmp_path: Path, compression: str, on_damaged: OnDamaged
) -> None:
    """After a damaged length no record can be found without an index: the hint offers no skip."""
    write(tmp_path / "train-00000-of-00001", [b"first", b"second", b"third"])
    content = bytearray((tmp_path / "train-00000-of-00001").read_bytes())
    content[len(b"first") + OVERHEAD] ^= 1
    stored = gzip.compress(bytes(content)) if compression == "gzip" else bytes(content)
    (tmp_path / "train-00000-of-00001").write_bytes(stored)
    with pytest.raises(InputError, match="record 1 at byte") as caught:
        list(SourceSet.load(Layout(tmp_path), on_damaged).shards[0].records())
    assert not isinstance(caught.value, DamagedRecordError)


@pytest.mark.parametrize("on_damaged", ["refuse", "skip"])
def test_other_records_in_a_compressed_shard_are_refused(
    tmp_path: Path, on_damaged: OnDamaged
) -> None:
    """Sound records that are not the recorded ones are no damage to leave out:
    the manifest decides.
    """
    make_flowers(tmp_path / "in", 4)
    (tmp_path / "recipe.yaml").write_text(
        "source: {folders: in}\nrecord: inception\nshards: 1\ncompression: gzip\n"
    )
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    shard = tmp_path / "out" / "train-00000-of-00001"
    content = gzip.decompress(shard.read_bytes())
    lengths = [len(record.data) + OVERHEAD for record in iter_records(memoryview(content))]
    first, second = content[: lengths[0]], content[lengths[0] : sum(lengths[:2])]
    other = gzip.compress(second * 2 + content[len(first + second) :], mtime=0)
    padding = shard.stat().st_size - len(other)
    comment = (
        b"\x10" + other[4:10] + b"-" * (padding - 1) + b"\0"
    )  # a flag, and the text of a gzip header
    shard.write_bytes(other[:3] + comment + other[10:])
    with pytest.raises(InputError, match=shard.name):
        export(layout, "webdataset", tmp_path / "tars", ENGINE, on_damaged=on_damaged)


@pytest.mark.parametrize("container", ["croissant", "tfds"])
def test_formats_without_copies_can_leave_none_out(
    container: str, layout: Layout, tmp_path: Path
) -> None:
    """Their readers read the shards themselves."""
    with pytest.raises(UsageError, match="can't leave any out"):
        export(layout, container, tmp_path / "out", ENGINE, on_damaged="skip")
    assert not (tmp_path / "out").exists()


def test_formats_without_copies_do_not_offer_it(layout: Layout, tmp_path: Path) -> None:
    """tfds reads the first record of another tool's shards; to leave it out is no way."""
    first = "train-00000-of-00008"
    shutil.rmtree(layout.state_dir)
    damage(layout, 0, 1, shard=first)
    with pytest.raises(DamagedRecordError, match=f"{first}: record 0") as caught:
        export(layout, "tfds", tmp_path / "out", ENGINE)
    assert "--on-damaged" not in caught.value.hint


def test_the_command(layout: Layout, tmp_path: Path) -> None:
    """Status 4 refused, 3 with records left out, and what was left out is printed."""
    damage(layout, 1, 4)
    words = ("export", "webdataset", layout.data_dir, tmp_path / "out")
    assert "--on-damaged skip leaves out damaged records" in command(*words, status=4).stderr
    told = command(*words, "--on-damaged", "skip", status=3).stdout
    assert "set aside: 2 damaged records; " in told
    assert "damaged-images.jsonl names each" in told
