"""parquet: one file per shard with images and class names, for Hugging Face's datasets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import UsageError
from imagenet_prep.exports.image_values import find_meaning, find_object_names
from imagenet_prep.exports.packing import Files, Packer, check_read_back
from imagenet_prep.exports.source_set import (
    SourceSet,
    SourceShard,
    class_names_from_0,
    names_from_0,
)
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.sources.parquets import check_pyarrow
from imagenet_prep.tfrecord import crc32c

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 100
"""Rows per group: datasets reads a group at a time, some 11 MB of ImageNet."""


class ParquetPacker(Packer):
    """Writes ``<shard>.parquet``: a row per record, with its image,
    its class counted from 0, and all other values.
    """

    unit = "shard"

    def __init__(self, source: SourceSet) -> None:
        check_pyarrow()
        self.meaning = find_meaning(source.manifest)
        self._refuse_same_columns()
        self.names = class_names_from_0(source.numbering)
        self.object_names = {}
        for feature, names_by_label in find_object_names(source.manifest).items():
            names = names_from_0(names_by_label)
            if names:
                self.object_names[feature] = names

    def _refuse_same_columns(self) -> None:
        """Raise UsageError if a feature with other values has the name of the image's column,
        or of the label's.
        """
        columns = (("encoded", "image", "image file"), ("label", "label", "class label"))
        for role, column, content in columns:
            if role in self.meaning.features and column in self.meaning.others:
                raise UsageError(
                    f"the feature {column} of the records is not the {content}, "
                    f"and parquet requires the name {column} for the {content}",
                    "expected another name for this feature",
                    Hint(
                        "export to webdataset; or rename the feature in the recipe, and ",
                        CONVERT_AGAIN,
                    ),
                )

    def file_name(self, shard: SourceShard) -> str:
        """The name of its file."""
        return f"{shard.name}.parquet"

    def pack(self, shard: SourceShard, files: Files) -> None:
        """Write one file, and read its images back."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile, ParquetWriter

        schema = self._schema()
        rows = self._rows(files)
        crcs: list[int] = []
        with files.aside(self.file_name(shard)) as path:
            with (
                path.open("wb") as file,  # pyarrow opens no path that is not UTF-8
                ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer,
            ):
                while group := list(itertools.islice(rows, _ROWS)):
                    crcs += (crc32c(row["image"]["bytes"]) for row in group)
                    writer.write(pa.Table.from_pylist(group, schema))
            crcs_read: list[int] = []
            with path.open("rb") as finished, ParquetFile(finished) as table:
                for batch in table.iter_batches(_ROWS, columns=["image"]):
                    crcs_read += (crc32c(row["image"]["bytes"]) for row in batch.to_pylist())
            check_read_back(path, crcs_read, crcs)

    def _rows(self, files: Files) -> Iterator[dict[str, Any]]:
        for _, values in files.values(self.meaning):
            path = values.filename + values.true_ending
            image = {"bytes": bytes(values.encoded), "path": path}
            of_class = {"label": values.class_index, "wnid": values.wnid, "text": values.text}
            for name in of_class.keys() & self.meaning.others.keys():
                del of_class[name]
            yield {"image": image, **of_class, **values.others}

    def _schema(self) -> pa.Schema:
        """The columns and their types in datasets,
        which infers the others from the column types.
        """
        import pyarrow as pa

        image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        columns = {"image": image, "label": pa.int64(), "wnid": pa.string(), "text": pa.string()}
        if self.meaning.features:
            for name, feature in self.meaning.others.items():
                columns[name] = _type_of(feature)
        else:
            box = pa.list_(pa.float32())
            columns["boxes"] = pa.list_(box)
            columns["height"] = pa.int64()
            columns["width"] = pa.int64()
        features: dict[str, Any] = {"image": {"_type": "Image"}}
        if self.names:
            features["label"] = _class_label(self.names)
        for name, names in self.object_names.items():
            features[name] = [_class_label(names)]
        info = json.dumps({"info": {"features": features}})
        return pa.schema(columns.items(), {"huggingface": info})


PACKER = ParquetPacker


def _type_of(feature: Mapping[str, Any]) -> pa.DataType:
    """The type of a column: one value, or a list where there may be several."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}
    single = types[feature["kind"]]
    if feature["values"] == 1:
        return single
    return pa.list_(single)


def _class_label(names: list[str]) -> dict[str, Any]:
    """The type of a column of labels in datasets."""
    return {"names": names, "_type": "ClassLabel"}
