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
from imagenet_prep.exports.image_values import features_in, find_object_names, find_roles
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import SourceSet, SourceShard, are_lines, names_from_0
from imagenet_prep.hints import CONVERT_AGAIN, Hint
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
            words = re.sub(r"\W+", "_", manifest.dataset.name)
            self.name = words.strip("_").lower()
            if not self.name[:1].isalpha():
                self.name = f"set_{self.name}"
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
        image = roles.get("encoded")
        label = roles.get("label")
        features = manifest.dataset.features if manifest else _features_of_first_record(source)
        names = _names_by_feature(source, label)
        shards_dir = local_path(source.layout.output_dir).resolve()
        info_dir = (out / folder).resolve()
        relative_dir = os.path.relpath(shards_dir, info_dir)
        splits: list[dict[str, Any]] = []
        for split, shards in source.splits.items():
            splits.append(_split_info(split, shards, relative_dir))
        info: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "fileFormat": "tfrecord",
            "splits": splits,
        }
        if image and label:
            info["supervisedKeys"] = {"input": image, "output": label}
        declared_features = _features(features, image, names)
        files = {"features.json": _encode(declared_features)}
        for feature, label_names in names.items():
            lines = "".join(f"{name}\n" for name in label_names)
            file_stem = feature.replace("/", ".")
            files[f"{file_stem}.labels.txt"] = lines.encode()
        files["dataset_info.json"] = _encode(info)
        return {f"{folder}/{name}": content for name, content in files.items()}

    def usage(self, out: Path) -> str:
        """The call of TensorFlow Datasets that reads the shards."""
        data_dir = str(out.resolve())
        return f"tensorflow_datasets.load('{self.name}:{self.version}', data_dir={data_dir!r})"


PACKER = TfdsPacker


def _refuse_unreadable(shard: SourceShard) -> None:
    """Raise UsageError for a shard that TensorFlow Datasets can't read in place."""
    if split_of(shard.name) != shard.split:
        problem = f"the split {shard.split} has grown: {shard.name} was added to it"
        expected = "TensorFlow Datasets reads no shards that were added to a split"
        hint = Hint("export to another format; or, to make the set again, ", CONVERT_AGAIN)
        raise UsageError(problem, expected, hint)
    compression = Shard.open(shard.path).compression
    if compression != "none":
        raise UsageError(
            f"{shard.path} is compressed with {compression}, "
            "which TensorFlow Datasets does not read",
            "expected plain shards",
            Hint(
                "export to another format; or, to make the set again, remove its compression from "
                "the options or the recipe, and ",
                CONVERT_AGAIN,
            ),
        )


def _features_of_first_record(source: SourceSet) -> Mapping[str, Mapping[str, Any]]:
    """The features of a set without a manifest, by its first record; none if it has no record."""
    for shard in source.shards:
        for record in shard.records():
            return features_in(record)
    return {}


def _names_by_feature(source: SourceSet, label: str | None) -> dict[str, list[str]]:
    """The name of each label from 0 up, of each feature that is a class and has such names."""
    names_by_feature: dict[str, list[str]] = {}
    if label:
        names_by_feature[label] = _class_names(source.numbering)
    for feature, object_names in find_object_names(source.manifest).items():
        names_by_feature[feature] = names_from_0(object_names)
    return {
        feature: names for feature, names in names_by_feature.items() if names and are_lines(names)
    }


def _split_info(split: str, shards: Sequence[SourceShard], shards_dir: str) -> dict[str, Any]:
    byte_count = sum(shard.size for shard in shards)
    lengths = [str(shard.count()) for shard in shards]
    return {
        "name": split,
        "filepathTemplate": f"{shards_dir}/{{SPLIT}}-{{SHARD_X_OF_Y}}",
        "numBytes": str(byte_count),
        "shardLengths": lengths,
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
            content = {"image": {"dtype": "uint8", "shape": shape}}
            declared[name] = _declare("image_feature.Image", content)
        elif name in names:
            count = {"numClasses": str(len(names[name]))}
            label = _declare("class_label_feature.ClassLabel", {"classLabel": count})
            declared[name] = label if _is_one(**feature) else _sequence(label)
        else:
            tensor = _tensor(**feature)
            declared[name] = _declare("tensor_feature.Tensor", {"tensor": tensor})
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
    dtype = _DTYPES[feature["kind"]]
    shape = {} if _is_one(**feature) else {"dimensions": ["-1"]}
    return {"dtype": dtype, "encoding": "none", "shape": shape}


def _encode(metadata: Mapping[str, Any]) -> bytes:
    text = json.dumps(metadata, indent=2, sort_keys=True)
    return f"{text}\n".encode()
