"""tfds: metadata for TensorFlow Datasets, which reads the shards in place.

Its ``load`` and ``builder_from_directory`` read these files. Names of shards come from a template, relative to the
folder of ``dataset_info.json``, and features from their names in the records (tensorflow_datasets:
core/naming.py, core/features, core/proto/dataset_info.proto).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import MOST_CLASSES, SourceSet, SourceShard, find_roles, held_by
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
        if manifest is None or (manifest.dataset.kind == ILSVRC2012 and not manifest.dataset.classes):
            self.name, self.version = "imagenet2012", "5.1.0"
        else:
            name = re.sub(r"\W+", "_", manifest.dataset.name).strip("_").lower()
            self.name, self.version = name if name[:1].isalpha() else f"set_{name}", "1.0.0"
        for shard in source.shards:
            if split_of(shard.name) != shard.split:
                raise UsageError(
                    f"{shard.split} has grown, and TensorFlow Datasets reads only shards of one numbering",
                    f"expected no shard such as {shard.name}",
                    "make the set again with imagenet-prep convert --overwrite, or export to another format",
                )
            compression = Shard.open(shard.path).compression
            if compression != "none":
                raise UsageError(
                    f"{shard.path} is compressed with {compression}, which TensorFlow Datasets does not read",
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
        held = manifest.dataset.features if manifest else held_by(next(source.shards[0].records()))
        names = _class_names(source.numbering) if "label" in roles else []
        image, label = roles.get("encoded"), roles.get("label")
        numbered = {label: len(names)} if label and names else {}
        above = os.path.relpath(local_path(source.layout.output_dir).resolve(), (out / folder).resolve())
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
        text = "".join(f"{name}\n" for name in names).encode()
        files = {
            "features.json": _encode(_features(held, image, numbered)),
            **{f"{each.replace('/', '.')}.labels.txt": text for each in numbered},
            "dataset_info.json": _encode(info),
        }
        return {f"{folder}/{name}": content for name, content in files.items()}

    def usage(self, out: Path) -> str:
        """The call of TensorFlow Datasets that reads the shards."""
        return f"tensorflow_datasets.load('{self.name}:{self.version}', data_dir={str(out.resolve())!r})"


PACKER = TfdsPacker


def _features(held: Mapping[str, Mapping[str, Any]], image: str | None, labels: Mapping[str, int]) -> dict[str, Any]:
    """The content of features.json.

    Args:
        held: the features of every record, as a manifest lists them.
        image: the feature with the image file; it is decoded to uint8 of the shape (height, width, 3).
        labels: the number of labels, including 0, of each feature that is a class.
    """
    declared = {}
    for name, promised in sorted(held.items()):
        kind, of_kind = "tensor_feature.Tensor", {"tensor": _tensor(**promised)}
        if name == image:
            shape = {"dimensions": ["-1", "-1", "3"]}
            kind, of_kind = "image_feature.Image", {"image": {"dtype": "uint8", "shape": shape}}
        elif name in labels:
            kind, of_kind = "class_label_feature.ClassLabel", {"classLabel": {"numClasses": str(labels[name])}}
        declared[name] = {"pythonClassName": f"{_FEATURES}.{kind}", **of_kind}
    return {"pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict", "featuresDict": {"features": declared}}


def _class_names(numbering: Numbering) -> list[str]:
    """The name of each label from 0 up, if the class has one; names are unique. None if there are too many."""
    names = numbering.names
    if not names or max(names) > MOST_CLASSES:
        return []
    unnamed = {label: f"label_{label}" for label in range(max(names) + 1)}
    if numbering.first_label:
        unnamed[0] = "background"
    return [names.get(label, placeholder) for label, placeholder in unnamed.items()]


def _tensor(kind: str, optional: bool, values: int | None) -> dict[str, Any]:
    """One value, or any number of them; none if the feature is optional."""
    shape = {} if values == 1 and not optional else {"dimensions": ["-1"]}
    return {"dtype": _DTYPES[kind], "encoding": "none", "shape": shape}


def _encode(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
