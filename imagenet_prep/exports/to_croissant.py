"""croissant: metadata of a set for search and loaders (MLCommons Croissant 1.0),
written from its manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.exports.image_values import find_roles
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import MOST_CLASSES, SourceSet, SourceShard
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.state.manifest import ILSVRC2012
from imagenet_prep.storage.layout import STATE_NAME

_TYPES = {"int64": "sc:Integer", "float": "sc:Float", "bytes": "sc:Text"}

_TERMS = """citeAs column conformsTo:dct data:@json dataType:@vocab equivalentProperty
examples:@json extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate
separator source subField transform"""
"""The terms of the standard context: docs.mlcommons.org/croissant/docs/croissant-spec.html,
appendix 1.
"""

_OF_IMAGENET = {
    "url": "https://image-net.org/challenges/LSVRC/2012/",
    "license": "https://image-net.org/download.php",
    "citeAs": (
        "O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, "
        "IJCV 115(3), 2015"
    ),
    "datePublished": "2012-05-14",
    "creator": {"@type": "Organization", "name": "ImageNet", "url": "https://image-net.org/"},
}


class CroissantPacker(Packer):
    """Copies nothing: writes ``croissant.json`` with the shards of each split and their features.

    Of each shard, its first and last record are read: they show whether it is the one in the
    manifest.
    """

    unit = "set"

    def __init__(self, source: SourceSet) -> None:
        folder = source.layout.output_dir
        if source.manifest is None:
            raise UsageError(
                f"there is no {source.layout.manifest_path}",
                "expected this file, which convert writes: it says what Croissant metadata holds",
                (
                    f"if convert made these shards, copy the folder {STATE_NAME} that it wrote "
                    "next to them; or export to another format, such as webdataset"
                ),
            )
        for split, shards in source.splits.items():
            shard_set = ShardSet(folder, split)
            shard_set.compare(range(len(shards)))

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Nothing."""

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The metadata."""
        assert source.manifest is not None, "refused before"
        entry = source.manifest.dataset
        image = find_roles(source.manifest).get("encoded")
        counts: list[str] = []
        file_sets: list[dict[str, Any]] = []
        record_sets: list[dict[str, Any]] = []
        for split, shards in source.splits.items():
            count = sum(shard.count() for shard in shards)
            counts.append(f"{count:,} in {split}")
            file_sets.append(_files(split))
            record_sets.append(_records(split, count, entry.features, image))
        record_sets += _classes(entry.classes)
        description = f"{entry.name} as TFRecord files of tf.train.Example"
        metadata: dict[str, Any] = {
            "@context": _context(),
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": entry.name,
            "description": f"{description}: {', '.join(counts)} records.",
            "version": "1.0.0",
        }
        if entry.kind == ILSVRC2012:
            metadata |= _OF_IMAGENET
        metadata["distribution"] = file_sets
        metadata["recordSet"] = record_sets
        text = json.dumps(metadata, indent=2)
        return {"croissant.json": f"{text}\n".encode()}


PACKER = CroissantPacker


def _context() -> dict[str, Any]:
    context: dict[str, Any] = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
    }
    context |= {"cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/"}
    context |= {"rai": "http://mlcommons.org/croissant/RAI/"}
    for term in _TERMS.split():
        name, _, suffix = term.partition(":")  # its vocabulary, or its type
        if suffix.startswith("@"):
            context[name] = {"@id": f"cr:{name}", "@type": suffix}
        else:
            context[name] = f"{suffix or 'cr'}:{name}"
    return context


def _records(
    split: str, count: int, features: Mapping[str, Mapping[str, Any]], image: str | None
) -> dict[str, Any]:
    """The record set of a split."""
    fields: list[dict[str, Any]] = []
    for name, feature in sorted(features.items()):
        fields.append(_field(split, name, feature, image))
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"{count:,} records",
        "field": fields,
    }


def _classes(labels: Mapping[str, int]) -> list[dict[str, Any]]:
    """The record set of the classes: label and name of each;
    none if there are none, or too many.
    """
    if not 0 < len(labels) <= MOST_CLASSES:
        return []
    label_field = _field_head("classes/label", "label", "sc:Integer")
    name_field = _field_head("classes/name", "name", "sc:Text")
    rows: list[dict[str, Any]] = []
    for name in sorted(labels, key=lambda name: labels[name]):
        rows.append({"classes/label": labels[name], "classes/name": name})
    record_set = {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "description": "the label of each class",
        "key": {"@id": "classes/label"},
        "field": [label_field, name_field],
        "data": rows,
    }
    return [record_set]


def _files(split: str) -> dict[str, Any]:
    name = f"{split}-shards"
    return {
        "@type": "cr:FileSet",
        "@id": name,
        "name": name,
        "includes": f"{split}-*-of-*",
        "encodingFormat": "application/x-tfrecord",
    }


def _field(split: str, name: str, feature: Mapping[str, Any], image: str | None) -> dict[str, Any]:
    data_type = _TYPES[feature["kind"]]
    if name == image:
        data_type = "sc:ImageObject"
    field = _field_head(f"{split}/{name}", name, data_type)
    if feature["values"] != 1:
        field["repeated"] = True
    file_set = {"@id": f"{split}-shards"}
    field["source"] = {"fileSet": file_set, "extract": {"column": name}}
    return field


def _field_head(identifier: str, name: str, data_type: str) -> dict[str, Any]:
    """A field of a record set, without its source."""
    return {"@type": "cr:Field", "@id": identifier, "name": name, "dataType": data_type}
