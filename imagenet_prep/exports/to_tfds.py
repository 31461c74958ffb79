"""tfds: metadata for TensorFlow Datasets, which reads the shards in place.

Its ``load`` and ``builder_from_directory`` read these files. Names of shards come from a template,
relative to the folder of ``dataset_info.json``, and features from their names in the records
(tensorflow_datasets: core/naming.py, core/features, core/proto/dataset_info.proto).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import mention
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import (
    SourceSet,
    SourceShard,
    are_lines,
    features_in,
    find_object_names,
    find_roles,
    names_from_0,
)
from imagenet_prep.hints import Hint
from imagenet_prep.reading.shard import Shard
from imagenet_prep.state.manifest import ILSVRC2012
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.storage.layout import split_of
from imagenet_prep.storage.location import local_path

_FEATURES = "tensorflow_datasets.core.features"
_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}


class TfdsPacker(Packer):
    """Copies nothing: writes ``dataset_info.json``, ``features.json`` and a list of class names.

    They go to ``<name>/<version>``, where ``tfds.load`` looks for them.
    """

    unit = "set"

    def __init__(self, source: SourceSet) -> None:
        manifest = source.manifest
        self.name, self.version = "imagenet2012", "5.1.0"
        if manifest and (manifest.dataset.kind != ILSVRC2012 or manifest.dataset.classes):
            name = re.sub(r"\W+", "_", manifest.dataset.name).strip("_").lower()
            self.name = name if name[:1].isalpha() else f"set_{name}"
            self.version = "1.0.0"
        for shard in source.shards:
            _refuse_unreadable(shard)

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Read and check all records of a shard."""
        for _ in shard.records():
            pass

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The files; the one that TFDS looks for first is last."""
        manifest = source.manifest
        folder = f"{self.name}/{self.version}"
        roles = find_roles(manifest)
        image, label = roles.get("encoded"), roles.get("label")
        features = manifest.dataset.features if manifest else _features_of_first_record(source)
        names = _names_by_feature(source, label)
        shards_dir = local_path(source.layout.output_dir).resolve()
        relative_dir = os.path.relpath(shards_dir, (out / folder).resolve())
        info: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "fileFormat": "tfrecord",
            "splits": [
                _split_info(split, shards, relative_dir) for split, shards in source.splits.items()
            ],
        }
        if image and label:
            info["supervisedKeys"] = {"input": image, "output": label}
        files = {"features.json": _encode(_features(features, image, names))}
        for feature, label_names in names.items():
            lines = "".join(f"{name}\n" for name in label_names)
            files[f"{feature.replace('/', '.')}.labels.txt"] = lines.encode()
        files["dataset_info.json"] = _encode(info)
        return {f"{folder}/{name}": content for name, content in files.items()}

    def usage(self, out: Path) -> str:
        """The call of TensorFlow Datasets that reads the shards."""
        return (
            f"tensorflow_datasets.load('{self.name}:{self.version}', "
            f"data_dir={str(out.resolve())!r})"
        )


PACKER = TfdsPacker


def _refuse_unreadable(shard: SourceShard) -> None:
    """Raise UsageError for a shard that TensorFlow Datasets can't read in place."""
    if split_of(shard.name) != shard.split:
        raise UsageError(
            f"{shard.split} has grown, and TensorFlow Datasets reads only shards of one numbering",
            f"expected no shard such as {shard.name}",
            Hint(
                "make the set again with ",
                mention("convert", "--overwrite"),
                ", or export to another format",
            ),
        )
    compression = Shard.open(shard.path).compression
    if compression != "none":
        raise UsageError(
            f"{shard.path} is compressed with {compression}, "
            "which TensorFlow Datasets does not read",
            "expected plain shards",
            "convert again without compression, or export to arrayrecord or webdataset",
        )


def _features_of_first_record(source: SourceSet) -> Mapping[str, Mapping[str, Any]]:
    """The features of a set without a manifest, by its first record; none if it has no record."""
    for shard in source.shards:
        for record in shard.records():
            return features_in(record)
    return {}


def _names_by_feature(source: SourceSet, label: str | None) -> dict[str, list[str]]:
    """The name of each label from 0 up, of each feature that is a class and has such names."""
    names = {label: _class_names(source.numbering)} if label else {}
    for feature, object_names in find_object_names(source.manifest).items():
        names[feature] = names_from_0(object_names)
    return {
        feature: names[feature] for feature in names if names[feature] and are_lines(names[feature])
    }


def _split_info(split: str, shards: Sequence[SourceShard], shards_dir: str) -> dict[str, Any]:
    return {
        "name": split,
        "filepathTemplate": f"{shards_dir}/{{SPLIT}}-{{SHARD_X_OF_Y}}",
        "numBytes": str(sum(shard.size for shard in shards)),
        "shardLengths": [str(shard.count()) for shard in shards],
    }


def _features(
    features: Mapping[str, Mapping[str, Any]],
    image: str | None,
    names: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The content of features.json.

    Args:
        features: the features of every record, as a manifest lists them.
        image: the feature with the image file; it is decoded to uint8 of the shape (height, width,
            3).
        names: the name of each label from 0 up, of each feature that is a class.
    """
    declared = {}
    for name, feature in sorted(features.items()):
        if name == image:
            shape = {"dimensions": ["-1", "-1", "3"]}
            declared[name] = _declare(
                "image_feature.Image", {"image": {"dtype": "uint8", "shape": shape}}
            )
        elif name in names:
            label = _declare(
                "class_label_feature.ClassLabel",
                {"classLabel": {"numClasses": str(len(names[name]))}},
            )
            declared[name] = label if _is_one(**feature) else _sequence(label)
        else:
            declared[name] = _declare("tensor_feature.Tensor", {"tensor": _tensor(**feature)})
    return {
        "pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": declared},
    }


def _declare(class_name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"pythonClassName": f"{_FEATURES}.{class_name}", **content}


def _class_names(numbering: Numbering) -> list[str]:
    """The name of each label from 0 up, if the class has one;
    names are unique. None if there are too many.
    """
    names = numbering.names
    if names and numbering.first_label:
        names = {0: "background", **names}
    return names_from_0(names)


def _sequence(feature: Mapping[str, Any]) -> dict[str, Any]:
    """Any number of values of a feature."""
    sequence = {"feature": feature, "length": "-1"}
    return {"pythonClassName": f"{_FEATURES}.sequence_feature.Sequence", "sequence": sequence}


def _is_one(kind: str, optional: bool, values: int | None) -> bool:
    """Whether every record has exactly one value of a feature."""
    return values == 1 and not optional


def _tensor(**feature: Any) -> dict[str, Any]:
    """One value, or any number of them; none if the feature is optional."""
    shape = {} if _is_one(**feature) else {"dimensions": ["-1"]}
    return {"dtype": _DTYPES[feature["kind"]], "encoding": "none", "shape": shape}


def _encode(metadata: Mapping[str, Any]) -> bytes:
    return (json.dumps(metadata, indent=2, sort_keys=True) + "\n").encode()
