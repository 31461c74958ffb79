"""tfds: metadata for TensorFlow Datasets, which reads the shards in place.

Its ``load`` and ``builder_from_directory`` read these files. Names of shards come from a template,
relative to the folder of ``dataset_info.json``, and features from their names in the records
(tensorflow_datasets: core/naming.py, core/features, core/proto/dataset_info.proto).
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import (
    SourceSet,
    SourceShard,
    are_lines,
    find_object_names,
    find_roles,
    held_by,
    names_from_0,
)
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
        if manifest is None or (
            manifest.dataset.kind == ILSVRC2012 and not manifest.dataset.classes
        ):
            self.name, self.version = "imagenet2012", "5.1.0"
        else:
            name = re.sub(r"\W+", "_", manifest.dataset.name).strip("_").lower()
            self.name, self.version = name if name[:1].isalpha() else f"set_{name}", "1.0.0"
        for shard in source.shards:
            if split_of(shard.name) != shard.split:
                raise UsageError(
                    (
                        f"{shard.split} has grown, and TensorFlow Datasets reads only shards of "
                        "one "
                        "numbering"
                    ),
                    f"expected no shard such as {shard.name}",
                    (
                        "make the set again with imagenet-prep convert --overwrite, "
                        "or export to another format"
                    ),
                )
            compression = Shard.open(shard.path).compression
            if compression != "none":
                raise UsageError(
                    (
                        f"{shard.path} is compressed with {compression}, "
                        "which TensorFlow Datasets does not read"
                    ),
                    "expected plain shards",
                    "convert again without compression, or export to arrayrecord or webdataset",
                )

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Read and check all records of a shard."""
        for _ in shard.records():
            pass

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The files; the one that TFDS looks for first is last."""
        manifest, folder = source.manifest, f"{self.name}/{self.version}"
        roles = find_roles(manifest)
        held = manifest.dataset.features if manifest else _features_held(source)
        image, label = roles.get("encoded"), roles.get("label")
        names = {label: _class_names(source.numbering)} if label else {}
        names |= {
            feature: names_from_0(of_objects)
            for feature, of_objects in find_object_names(manifest).items()
        }
        names = {
            feature: of_labels
            for feature, of_labels in names.items()
            if of_labels and are_lines(of_labels)
        }
        above = os.path.relpath(
            local_path(source.layout.output_dir).resolve(), (out / folder).resolve()
        )
        info: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "fileFormat": "tfrecord",
            "splits": [
                {
                    "name": split,
                    "filepathTemplate": f"{above}/{{SPLIT}}-{{SHARD_X_OF_Y}}",
                    "numBytes": str(sum(shard.size for shard in shards)),
                    "shardLengths": [str(shard.count()) for shard in shards],
                }
                for split, shards in source.splits.items()
            ],
        }
        if image and label:
            info["supervisedKeys"] = {"input": image, "output": label}
        files = {"features.json": _encode(_features(held, image, names))}
        for feature, of_labels in names.items():
            files[f"{feature.replace('/', '.')}.labels.txt"] = "".join(
                f"{name}\n" for name in of_labels
            ).encode()
        files["dataset_info.json"] = _encode(info)
        return {f"{folder}/{name}": content for name, content in files.items()}

    def usage(self, out: Path) -> str:
        """The call of TensorFlow Datasets that reads the shards."""
        return (
            f"tensorflow_datasets.load('{self.name}:{self.version}', "
            f"data_dir={str(out.resolve())!r})"
        )


PACKER = TfdsPacker


def _features_held(source: SourceSet) -> Mapping[str, Mapping[str, Any]]:
    """The features of a set without a manifest, by its first record; none if it has no record."""
    records = itertools.chain.from_iterable(shard.records() for shard in source.shards)
    first = next(records, None)
    return held_by(first) if first else {}


def _features(
    held: Mapping[str, Mapping[str, Any]], image: str | None, names: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The content of features.json.

    Args:
        held: the features of every record, as a manifest lists them.
        image: the feature with the image file; it is decoded to uint8 of the shape (height, width,
            3).
        names: the name of each label from 0 up, of each feature that is a class.
    """
    declared = {}
    for name, promised in sorted(held.items()):
        kind, of_kind = "tensor_feature.Tensor", {"tensor": _tensor(**promised)}
        if name == image:
            shape = {"dimensions": ["-1", "-1", "3"]}
            kind, of_kind = "image_feature.Image", {"image": {"dtype": "uint8", "shape": shape}}
        elif name in names:
            kind, of_kind = (
                "class_label_feature.ClassLabel",
                {"classLabel": {"numClasses": str(len(names[name]))}},
            )
        feature = {"pythonClassName": f"{_FEATURES}.{kind}", **of_kind}
        declared[name] = (
            _sequence(feature) if name in names and not _is_one(**promised) else feature
        )
    return {
        "pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict",
        "featuresDict": {"features": declared},
    }


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


def _tensor(**promised: Any) -> dict[str, Any]:
    """One value, or any number of them; none if the feature is optional."""
    shape = {} if _is_one(**promised) else {"dimensions": ["-1"]}
    return {"dtype": _DTYPES[promised["kind"]], "encoding": "none", "shape": shape}


def _encode(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
