"""Checks the exports to mds with StreamingDataset, which asks for older packages than the tests.

    pip install mosaicml-streaming torchvision
    python scripts/check_exports.py

Every image, class, file name and box of the sets in tests/made_exports.py, record by record.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from made_exports import RECIPES, make_set, samples_of
from made_sets import ENGINE
from torchvision_operators import import_torchvision

from imagenet_prep import Layout, export

UNLABELLED_IN_PART = "partly"
"""The set that mds can't hold: a column y has a value in each record."""


def check_split(layout: Layout, out: Path, split: str) -> int:
    """Compare each record of a split, and count them."""
    from streaming import StreamingDataset

    expected = samples_of(layout, split)
    if not expected:  # it refuses an empty split
        return 0
    samples = StreamingDataset(local=str(out), split=split, batch_size=1)
    assert len(samples) == len(expected), (len(samples), len(expected))
    for number, sample in enumerate(expected):
        shard_number, place = samples.spanner[number]
        shard = samples.shards[int(shard_number)]
        columns = samples[number]
        description = json.loads(columns["json"])
        assert sample.encoded in shard.get_sample_data(place)
        assert columns["x"].size
        assert (columns.get("y"), description["wnid"]) == (sample.index, sample.class_name)
        assert description["filename"].encode() == sample.features["image/filename"]
        if "image/object/bbox/xmin" in description:
            assert description["image/object/bbox/xmin"] == [box[0] for box in sample.boxes]
    return len(expected)


def main() -> None:
    """Make each set, export it, and read it."""
    import_torchvision()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in (*RECIPES, "foreign"):
            if case == UNLABELLED_IN_PART:
                continue
            layout = make_set(case, folder / case)
            out = export(layout, "mds", folder / "exports" / case, ENGINE).out
            for split in sorted(
                path.name for path in out.iterdir() if (path / "index.json").exists()
            ):
                print(f"{case}: {check_split(layout, out, split)} records of {split} are equal")


if __name__ == "__main__":
    main()
