"""The files by which TensorFlow Datasets reads finished shards where they lie: ``builder_from_directory``.

It takes the names of shards from a template, relative to the folder of ``dataset_info.json``, and features by the names
that they have in the records (tensorflow_datasets: core/naming.py, core/features, core/proto/dataset_info.proto).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imagenet_prep.errors import UsageError

_FEATURES = "tensorflow_datasets.core.features"
_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}


@dataclass(frozen=True, slots=True)
class SplitShards:
    """A split as TFDS counts it: the records of each of its shards, in order, and the bytes of all of them."""

    name: str
    lengths: tuple[int, ...]
    size: int


def dataset_info(name: str, splits: Sequence[SplitShards], above: str, keys: tuple[str, str] | None) -> dict[str, Any]:
    """What dataset_info.json holds.

    Args:
        name: of the data set, in any words.
        splits: whose shards are ``<split>-00000-of-00008``.
        above: the folder of the shards, as seen from the file's own.
        keys: the features that are the image and its label, for ``as_supervised``.
    """
    template = f"{above}/{{SPLIT}}-{{SHARD_X_OF_Y}}"
    info: dict[str, Any] = {
        "name": re.sub(r"\W+", "_", name).strip("_").lower() or "data_set",
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": split.name,
                "filepathTemplate": template,
                "numBytes": str(split.size),
                "shardLengths": [str(length) for length in split.lengths],
            }
            for split in splits
        ],
    }
    if keys is not None:
        info["supervisedKeys"] = {"input": keys[0], "output": keys[1]}
    return info


def features(held: Mapping[str, Mapping[str, Any]], images: Sequence[str], labels: Mapping[str, int]) -> dict[str, Any]:
    """What features.json holds.

    Args:
        held: what every record holds, as a manifest says it.
        images: those of them that are image files; each is decoded to uint8 of the shape (height, width, 3).
        labels: how many labels there are, 0 included, of those that are classes.
    """
    declared = {
        name: _image() if name in images else _class(labels[name]) if name in labels else _tensor(**promised)
        for name, promised in sorted(held.items())
    }
    return {"pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict", "featuresDict": {"features": declared}}


def class_names(labels: Mapping[str, int]) -> list[str]:
    """The name of each label from 0 on, where a class has it: its wnid; each name is there once."""
    names = {label: wnid for wnid, label in labels.items()}
    return [names.get(label, f"label_{label}" if label else "background") for label in range(max(names) + 1)]


def names_file(feature: str) -> str:
    """What the file with the names of a feature's labels is called, one a line."""
    return f"{feature.replace('/', '.')}.labels.txt"


def _image() -> dict[str, Any]:
    shape = {"dimensions": ["-1", "-1", "3"]}
    return {"pythonClassName": f"{_FEATURES}.image_feature.Image", "image": {"dtype": "uint8", "shape": shape}}


def _class(count: int) -> dict[str, Any]:
    return {
        "pythonClassName": f"{_FEATURES}.class_label_feature.ClassLabel",
        "classLabel": {"numClasses": str(count)},
    }


def _tensor(kind: str, optional: bool, values: int | None) -> dict[str, Any]:
    """One value, or any number of them; none where a record need not have the feature."""
    shape = {} if values == 1 and not optional else {"dimensions": ["-1"]}
    tensor = {"dtype": _DTYPES[kind], "encoding": "none", "shape": shape}
    return {"pythonClassName": f"{_FEATURES}.tensor_feature.Tensor", "tensor": tensor}


def encode(value: Mapping[str, Any]) -> bytes:
    """A file's content."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def refuse_compressed(name: str, compression: str) -> None:
    """Raise UsageError if shards are compressed."""
    if compression != "none":
        raise UsageError(
            f"{name} is compressed with {compression}, which TensorFlow Datasets does not read",
            "expected plain shards",
            "convert again without compression, or export to arrayrecord or webdataset",
        )
