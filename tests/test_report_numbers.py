"""The numbers of the report, counted again by TensorFlow from the shards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, reported

from imagenet_prep import ConvertOptions, Layout
from imagenet_prep.demo.archives import MadeSet

pytestmark = pytest.mark.once

tf = tf_fixture.tf
PART = ConvertOptions(train_shards=3, validation_shards=2, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    return reported(tmp_path_factory.mktemp("numbers") / "photographs", made, PART)


def counted(tf: Any, folder: Path, split: str) -> dict[str, np.ndarray]:
    """What tf.data finds in the records of a split."""
    paths = [str(path) for path in existing(folder, f"{split}-*-of-*")]
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
    }
    found: dict[str, list[float]] = {
        key: [] for key in ("width", "height", "ratio", "bytes", "boxes", "label")
    }
    colours = []
    for data in tf.data.TFRecordDataset(paths):
        record = tf.io.parse_single_example(data, features)
        encoded = record["image/encoded"]
        image = tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")
        height, width, _ = image.shape
        values = (
            width,
            height,
            width / height,
            len(encoded.numpy()),
            len(record["image/object/bbox/xmin"].values),
        )
        for key, value in zip(found, (*values, int(record["image/class/label"])), strict=True):
            found[key].append(value)
        scale = 256 / min(height, width)
        size = (round(height * scale), round(width * scale))
        resized = tf.image.resize(image, size, "bilinear", antialias=True)
        colours.append(tf.image.resize_with_crop_or_pad(resized, 224, 224).numpy() / 255)
    return {
        **{key: np.array(values) for key, values in found.items()},
        "colours": np.stack(colours),
    }


def bars_of(page: str, key: str) -> list[tuple[float, float, dict[str, int]]]:
    """The bars of a chart: both limits, and the count by split."""
    figure = re.search(rf'id="chart-{key}".*?</figure>', page, re.DOTALL)
    bars = []
    for button in re.findall(r"<button[^>]*>", figure[0]):
        token = re.search(r'data-token="([^"]*)"', button)[1]
        low, _, high = token.partition("..")
        label = re.search(r'aria-label="([^"]*)"', button)
        counts = re.findall(
            r"(train|validation) ([\d,]+) ", label[1].partition(": ")[2] if label else ""
        )
        limits = float(low or "-inf"), float(high or "inf")
        bars.append((*limits, {split: int(count.replace(",", "")) for split, count in counts}))
    return bars


def test_histograms_and_colours_are_those_of_tensorflow(tf: Any, layout: Layout) -> None:
    """Each bar counts what tf.data counts; mean and deviation are those of
    TensorFlow's decoder and resizing.
    """
    page = layout.report_path.read_text()
    totals = 0
    for split in ("train", "validation"):
        found = counted(tf, layout.output_dir, split)
        labels, sizes = np.unique(found["label"], return_counts=True)
        for key in ("width", "height", "ratio", "bytes", "boxes", "images"):
            values = sizes if key == "images" else found[key]
            bars = bars_of(page, key)
            expected = [int(((low <= values) & (values < high)).sum()) for low, high, _ in bars]
            assert [counts.get(split, 0) for *_, counts in bars] == expected, key
            assert sum(expected) == (len(labels) if key == "images" else len(found["label"]))
            totals += sum(expected)
        if split == "train":
            line = re.search(r"Normalize\(mean=\[(.*?)\], std=\[(.*?)\]\)", page)
            mean, deviation = (
                np.array([float(each) for each in part.split(", ")]) for part in line.groups()
            )
            assert mean == pytest.approx(found["colours"].mean(axis=(0, 1, 2)), abs=0.003)
            assert deviation == pytest.approx(found["colours"].std(axis=(0, 1, 2)), abs=0.003)
            assert f"over all pixels of {len(found['label'])} images of train" in page
    assert totals > 300


def test_boxes_show_their_names(tmp_path: Path) -> None:
    """A record with a class for each box has the names on the boxes."""
    from test_report import _record, boxes, features, page_of, picture, write_shard

    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.stages.report import write_report
    from imagenet_prep.tfrecord.example import BytesList, encode_example

    layout = Layout(tmp_path / "theirs")
    named = features(
        image__class__label=None,
        image__encoded=BytesList((picture(200, 100),)),
        image__object__class__text=BytesList((b"a <b>dog</b>", b"cat")),
        **boxes((0.1, 0.1, 0.4, 0.9), (0.5, 0.5, 1.0, 1.0)),
    )
    write_shard(layout, [encode_example(named), _record(1, picture(80, 80))])
    write_report(layout, ENGINE, Verdict("full", (), (), "complete", "", has_manifest=False))
    text = page_of(layout)
    assert re.findall(r'<span class="name">([^<]*)</span></span>', text) == [
        "a &lt;b&gt;dog&lt;/b&gt;",
        "cat",
    ]
