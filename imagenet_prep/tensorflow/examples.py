"""feature_spec, parse_example: the records of a set as tensors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import inception


def feature_spec(data_dir: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What ``tf.io.parse_example`` takes to know what records hold.

    Args:
        data_dir: a set made here, whatever its features; None: the fifteen features of Inception's records.

    Raises:
        InputError: the manifest there can't be read.
    """
    manifest = None if data_dir is None else load_manifest(Layout(Path(data_dir)).manifest_path)
    promised = manifest.dataset.features if manifest is not None else {}
    return {name: _feature(promise) for name, promise in (promised or inception.PROMISE).items()}


def _feature(promise: Mapping[str, Any]) -> Any:
    kind = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}[promise["kind"]]
    values = promise["values"]
    if promise["optional"] or values is None:
        return tf.io.VarLenFeature(kind)
    return tf.io.FixedLenFeature([] if values == 1 else [values], kind)


def parse_example(record: Any) -> dict[str, Any]:
    """What training needs of a record in Inception's layout, ``record`` a scalar string tensor.

    Returns:
        ``encoded``, scalar string, the JPEG; ``label``, scalar int64, as the record says it: 1 to 1000 for ImageNet;
        ``boxes``, float32 of the shape (number of boxes, 4): ymin, xmin, ymax, xmax from 0 to 1, as tf.image takes
        them; ``filename`` and ``wnid``, scalar strings, empty where the record's maker left them out.
    """
    sides = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
    found = tf.io.parse_single_example(
        record,
        {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            "image/filename": tf.io.FixedLenFeature([], tf.string, ""),
            "image/class/synset": tf.io.FixedLenFeature([], tf.string, ""),
            **{side: tf.io.VarLenFeature(tf.float32) for side in sides},
        },
    )
    return {
        "encoded": found["image/encoded"],
        "label": found["image/class/label"],
        "boxes": tf.stack([found[side].values for side in sides], axis=1),
        "filename": found["image/filename"],
        "wnid": found["image/class/synset"],
    }
