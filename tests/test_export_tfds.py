"""exports.tfds_metadata: TensorFlow Datasets itself reads our shards where they lie,
by the files that it writes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from made_sets import ENGINE, PART, copied, data_of, write
from running import command
from test_docs import blocks
from test_export import one_record, recipe_set, records_of

from imagenet_prep import Layout, convert, export
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.tfrecord.example import BytesList, Int64List, encode_example, parse_example

tf = tf_fixture.tf
ROOT = Path(__file__).parents[1]


def export_tfds(layout: Layout, out: Path | None = None) -> Path:
    """The folder with the files that TFDS reads: NAME/VERSION below that of the export."""
    (info,) = export(layout, "tfds", out, ENGINE).out.glob("*/*/dataset_info.json")
    return info.parent


@pytest.fixture(scope="module")
def tfds(tf: Any) -> Any:
    """The tensorflow_datasets module."""
    import tensorflow_datasets

    return tensorflow_datasets


def examples(tfds: Any, folder: Path, split: str = "train") -> list[dict[str, Any]]:
    """The examples of a split in the order of the records, images as they are encoded."""
    builder = tfds.builder_from_directory(folder)
    images = [
        name
        for name, each in builder.info.features.items()
        if isinstance(each, tfds.features.Image)
    ]
    config = tfds.ReadConfig(interleave_cycle_length=1)
    skip = {name: tfds.decode.SkipDecoding() for name in images}
    return list(tfds.as_numpy(builder.as_dataset(split=split, read_config=config, decoders=skip)))


@pytest.mark.parametrize("split", ["train", "validation"])
def test_tfds_reads_every_record(tfds: Any, tmp_path: Path, sound: Layout, split: str) -> None:
    """The same bytes and values in the same order, from a folder anywhere;
    how many there are it knows before.
    """
    folder = export_tfds(sound, tmp_path / "deep" / "below")
    found, records = examples(tfds, folder, split), records_of(sound, split)
    assert (
        len(found)
        == len(records)
        == tfds.builder_from_directory(folder).info.splits[split].num_examples
    )
    for example, record in zip(found, records, strict=True):
        assert example["image/encoded"] == record.encoded
        assert example["image/class/label"] == record.label
        assert example["image/filename"] == record.filename.encode()
        assert (example["image/height"], example["image/width"]) == (record.height, record.width)
        assert example["image/object/bbox/ymin"].tolist() == [box.ymin for box in record.boxes]
        assert example.keys() == record.features.keys()


def test_the_example_of_the_page_runs(
    tfds: Any, tmp_path: Path, sound: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/export.md shows how; the files lie beside the shards,
    and verify has nothing to say of them.
    """
    layout = copied(sound, tmp_path / "data")
    (example,) = (
        block
        for block in blocks((ROOT / "docs" / "export.md").read_text(), "python")
        if "tfds" in block
    )
    shown = command("export", "tfds", layout.data_dir).stdout
    assert shown == (
        "tensorflow_datasets.load('imagenet2012:5.1.0', "
        f"data_dir={str(layout.data_dir / 'tfds')!r})\n"
    )
    assert set(eval(shown, {"tensorflow_datasets": tfds})) == {"train", "validation"}
    exec(example.replace("/data/imagenet", str(layout.data_dir)), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert all(line.startswith("(16, 16, 3) n") for line in lines)
    command("verify", layout.data_dir)


def test_numbers_have_no_image(tfds: Any, tmp_path: Path) -> None:
    """Records without an image are read too."""
    layout = recipe_set(tmp_path, "record: {values: values, y: label}\n", content="pixels")
    found = examples(tfds, export_tfds(layout))
    assert [each["values"].tolist() for each in found] == [
        each.features["values"] for each in records_of(layout)
    ]


def test_shards_of_other_makers(tfds: Any, tmp_path: Path) -> None:
    """Without a manifest: what the first record holds, as many records as there are headers."""
    layout = one_record(tmp_path / "data", "a.JPEG", "b.JPEG")
    assert [each["image/filename"] for each in examples(tfds, export_tfds(layout))] == [
        b"a.JPEG",
        b"b.JPEG",
    ]
    few = {
        "image/encoded": BytesList((b"x",)),
        "image/class/label": Int64List((7,)),
        "other": Int64List((1,)),
    }
    write(layout.shard_path("train-00000-of-00001"), [encode_example(few)] * 3)
    found = examples(tfds, export_tfds(layout))
    assert found == [{"image/encoded": b"x", "image/class/label": 7}] * 3


def test_what_it_can_not_read_is_refused(tmp_path: Path, sound: Layout, made_tiny: MadeSet) -> None:
    """Compressed shards; a folder with something else;
    a set that lacks a shard. Nothing is written.
    """
    packed = Layout(tmp_path / "packed", raw=made_tiny.archives["train"].parent)
    convert(packed, ENGINE, PART.replace(compression="gzip"))
    with pytest.raises(UsageError, match="is compressed with gzip"):
        export_tfds(packed)
    stray = tmp_path / "stray"
    stray.mkdir()
    (stray / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        export_tfds(sound, stray)
    lacking = copied(sound, tmp_path / "lacking")
    lacking.shard_path("train-00003-of-00008").unlink()
    with pytest.raises(InputError, match=r"train-00003-of-00008 .*missing"):
        export_tfds(lacking)
    assert os.listdir(stray) == ["thesis.tex"]
    assert not any((each.data_dir / "tfds").exists() for each in (packed, lacking))


@pytest.mark.parametrize("fault", ["cut", "exchanged", "relabelled"])
def test_shards_that_are_not_those_of_the_manifest_are_refused(
    tmp_path: Path, sound: Layout, fault: str
) -> None:
    """No description of wrong shards: each is read and compared with the manifest.
    None without one record's CRC.
    """
    layout = copied(sound, tmp_path / "data")
    path, other = (layout.shard_path(f"train-0000{k}-of-00008") for k in (3, 4))
    records = data_of(path)
    if fault == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif fault == "exchanged":
        shutil.copy(other, path)
    else:
        features = parse_example(records[0])
        (label,) = features["image/class/label"].values
        write(
            path,
            [
                encode_example({**features, "image/class/label": Int64List((int(label) + 1,))}),
                *records[1:],
            ],
        )
    with pytest.raises(InputError, match=path.name):
        export_tfds(layout)
    assert not list((layout.data_dir / "tfds").glob("imagenet2012*"))


def test_writing_it_again(tmp_path: Path, sound: Layout) -> None:
    """The same files, those that are the same not touched;
    shards that were moved are found. Other formats need OUT.
    """
    layout, out = copied(sound, tmp_path / "data"), tmp_path / "out"
    folder = export_tfds(layout, out)
    names = ("dataset_info.json", "features.json", "image.class.label.labels.txt")
    assert folder == out / "imagenet2012" / "5.1.0"
    before = {
        name: ((folder / name).stat().st_mtime_ns, (folder / name).read_bytes()) for name in names
    }
    assert sorted(os.listdir(folder)) == sorted(names)
    export_tfds(layout, out)
    assert {
        name: ((folder / name).stat().st_mtime_ns, (folder / name).read_bytes()) for name in names
    } == before
    moved = layout.data_dir.rename(tmp_path / "moved")
    info = (export_tfds(Layout(moved), out) / "dataset_info.json").read_text()
    assert '"../../../moved/{SPLIT}-{SHARD_X_OF_Y}"' in info
    refused: subprocess.CompletedProcess[str] = command(
        "export", "folders", sound.data_dir, status=2
    )
    assert "export folders writes new files, and no folder for them is given" in refused.stderr
