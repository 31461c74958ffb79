"""Checks exports with the libraries that read them, on the demo set; those are too large for the tests.

    pip install mosaicml-streaming mlcroissant; python scripts/check_exports.py

mds: every image, label and file name, by StreamingDataset. croissant: no error and no warning, by mlcroissant.
"""

from __future__ import annotations

import json
import logging
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


def main() -> None:
    """Make the demo set, and check both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prep("demo", folder / "data")
        check_croissant(folder / "data")
        check_mds(folder / "data", folder / "mds")


if __name__ == "__main__":
    main()
