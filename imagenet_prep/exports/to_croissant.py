"""croissant: metadata of a set for search and loaders (MLCommons Croissant 1.0),
written from its manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import UsageError
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import MOST_CLASSES, SourceSet, SourceShard, find_roles
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.state.manifest import ILSVRC2012

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
        if source.manifest is None:
            raise UsageError(
                f"{source.layout.output_dir} has no manifest",
                "expected the set of a finished convert",
            )
        for split, shards in source.splits.items():
            ShardSet(source.layout.output_dir, split).compare(range(len(shards)))

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Nothing."""

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The metadata."""
        assert source.manifest is not None, "refused before"
        entry = source.manifest.dataset
        image = find_roles(source.manifest).get("encoded")
        totals = {
            split: sum(shard.count() for shard in shards) for split, shards in source.splits.items()
        }
        counts = ", ".join(f"{count:,} in {split}" for split, count in totals.items())
        records = [_records(split, count, entry.features, image) for split, count in totals.items()]
        metadata = {
            "@context": _context(),
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": entry.name,
            "description": f"{entry.name} as TFRecord files of tf.train.Example: {counts} records.",
            "version": "1.0.0",
            **(_OF_IMAGENET if entry.kind == ILSVRC2012 else {}),
            "distribution": [_files(split) for split in totals],
            "recordSet": [*records, *_classes(entry.classes)],
        }
        return {"croissant.json": (json.dumps(metadata, indent=2) + "\n").encode()}


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
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"{count:,} records",
        "field": [
            _field(split, name, feature, image) for name, feature in sorted(features.items())
        ],
    }


def _classes(labels: Mapping[str, int]) -> list[dict[str, Any]]:
    """The record set of the classes: label and name of each;
    none if there are none, or too many.
    """
    if not 0 < len(labels) <= MOST_CLASSES:
        return []
    fields = [
        {"@type": "cr:Field", "@id": f"classes/{name}", "name": name, "dataType": data_type}
        for name, data_type in (("label", "sc:Integer"), ("name", "sc:Text"))
    ]
    ordered = sorted(labels.items(), key=lambda pair: pair[1])
    head = {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "description": "the label of each class",
    }
    rows = [{"classes/label": label, "classes/name": name} for name, label in ordered]
    return [{**head, "key": {"@id": "classes/label"}, "field": fields, "data": rows}]


def _files(split: str) -> dict[str, Any]:
    names = {"@id": f"{split}-shards", "name": f"{split}-shards", "includes": f"{split}-*-of-*"}
    return {"@type": "cr:FileSet", **names, "encodingFormat": "application/x-tfrecord"}


def _field(split: str, name: str, feature: Mapping[str, Any], image: str | None) -> dict[str, Any]:
    data_type = "sc:ImageObject" if name == image else _TYPES[feature["kind"]]
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{split}/{name}",
        "name": name,
        "dataType": data_type,
    }
    if feature["values"] != 1:
        field["repeated"] = True
    field["source"] = {"fileSet": {"@id": f"{split}-shards"}, "extract": {"column": name}}
    return field
