"""Checks exports with the libraries that read them, on the demo set; those are too large for the tests.

    pip install mosaicml-streaming mlcroissant datasets webdataset timm tensorflow-datasets
    python scripts/check_exports.py

mds: every image, label and file name, by StreamingDataset. croissant: no error and no warning, by mlcroissant.
webdataset, parquet: every label of both splits, by load_dataset. wds/ and tfds/: those that timm's own readers find.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import imagenet_prep


def prep(*words: object) -> None:
    """Run a command of imagenet-prep."""
    subprocess.run([sys.executable, "-m", "imagenet_prep", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def check_mds(data: Path, out: Path) -> None:
    """Compare each record of each split."""
    from PIL import Image, ImageChops
    from streaming import StreamingDataset

    prep("export", "mds", data, out)
    for split in ("train", "validation"):
        records = imagenet_prep.open(data, split)
        samples = StreamingDataset(local=str(out), split=split, batch_size=1)
        assert len(samples) == len(records)
        for number, record in enumerate(records):
            sample, shard = samples[number], samples.shards[int(samples.spanner[number][0])]
            assert bytes(record.encoded) in shard.get_sample_data(samples.spanner[number][1])
            assert ImageChops.difference(sample["x"].convert("RGB"), record.image()).getbbox() is None
            assert (sample["y"], json.loads(sample["json"])["filename"]) == (record.label - 1, record.filename)
            assert isinstance(sample["x"], Image.Image)
        print(f"mds: {len(samples)} records of {split} are equal")


def check_croissant(data: Path) -> None:
    """Validate the metadata; every message of the validator is a failure."""
    import mlcroissant

    prep("export", "croissant", data)
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    from absl import logging as absl_logging

    absl_logging.get_absl_logger().addHandler(handler)
    found = mlcroissant.Dataset(jsonld=str(data / "croissant" / "croissant.json"))
    problems = [*found.metadata.issues.errors, *found.metadata.issues.warnings, *messages]
    assert not problems, problems
    print(f"croissant: valid, record sets {[each.name for each in found.metadata.record_sets]}")


def labels_of(data: Path, split: str) -> list[int]:
    """The labels of a split, from 0."""
    return sorted(record.label - 1 for record in imagenet_prep.open(data, split))


def check_load_dataset(data: Path, out: Path) -> None:
    """Load both splits of both formats at once."""
    from datasets import load_dataset

    files = {"webdataset": "imagenet-{}-*.tar", "parquet": "{}-*.parquet"}
    for container, pattern in files.items():
        prep("export", container, data, out / container)
        names = {split: str(out / container / pattern.format(split)) for split in ("train", "validation")}
        found = load_dataset(container, data_files=names, cache_dir=str(out / "cache"))
        label = {"webdataset": "cls", "parquet": "label"}[container]
        for split in names:
            assert sorted(found[split][label]) == labels_of(data, split)
        if container == "webdataset":
            page = (Path(__file__).parents[1] / "docs" / "export.md").read_text()
            (program,) = re.findall(r"^```python\n(import glob.*?)^```", page, re.M | re.S)
            exec(program.replace("/data/imagenet-tars", str(out / container)), {})
        print(f"load_dataset: {container}, { ({split: len(found[split]) for split in names}) }")


def check_timm(data: Path, out: Path) -> None:
    """Create the data sets of timm's train.py; each gives images and labels from 0, or from 1 with tfds."""
    from timm.data import create_dataset

    prep("export", "tfds", data)
    places = {"wds/": (out / "webdataset", 0), "tfds/imagenet2012:5.1.0": (data / "tfds", 1)}
    for name, (folder, first) in places.items():
        for split in ("train", "validation"):
            keys = {"input_key": "image/encoded", "target_key": "image/class/label"} if first else {}
            options = {"is_training": False, "batch_size": 1, **keys}
            found = create_dataset(name, root=str(folder), split=split, **options)
            labels = sorted(int(label) - first for _, label in found)
            assert labels == labels_of(data, split), (name, split, len(labels))
            print(f"timm: {name}, {len(labels)} images of {split}")


def main() -> None:
    """Make the demo set, and check each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prep("demo", folder / "data")
        check_croissant(folder / "data")
        check_mds(folder / "data", folder / "mds")
        check_load_dataset(folder / "data", folder)
        check_timm(folder / "data", folder)


if __name__ == "__main__":
    main()
