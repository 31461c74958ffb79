"""mds: one file per shard, for MosaicML's StreamingDataset, packed by its own writer."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, missing_library
from imagenet_prep.exports.image_values import find_meaning, find_roles
from imagenet_prep.exports.packing import Files, Packer
from imagenet_prep.exports.source_set import SourceSet, SourceShard
from imagenet_prep.exports.to_webdataset import describe, encode_json


class MdsPacker(Packer):
    """Writes ``<split>/shard.00000.mds``: per record x (the image), y (its class from 0), and json
    (all other values).

    x and y are the columns that MosaicML's own readers of images expect.
    """

    unit = "shard"

    def __init__(self, source: SourceSet) -> None:
        if importlib.util.find_spec("streaming") is None:
            raise missing_library("mosaicml-streaming", "writes MDS files", "mds")
        self.meaning = find_meaning(source.manifest)
        self.columns = {"x": "jpeg", "json": "str"}
        if "label" in find_roles(source.manifest):
            self.columns["y"] = "int"

    def file_name(self, shard: SourceShard) -> str:
        """The name of its file."""
        return f"{shard.split}/shard.{shard.index:05d}.mds"

    def pack(self, shard: SourceShard, files: Files) -> None:
        """One file."""
        with tempfile.TemporaryDirectory() as folder:
            writer = self._writer(folder)
            for record, values in files.values(self.meaning):
                sample = {
                    "x": _kept(values.encoded),
                    "json": encode_json(describe(values, self.meaning)),
                }
                if "y" in self.columns:
                    if values.class_index is None:
                        raise InputError(
                            f"{record.place} has no label",
                            "expected a label in every record",
                            _HINT,
                        )
                    sample["y"] = values.class_index
                writer.write(sample)
            files.write(self.file_name(shard), [writer.encode_joint_shard()])

    def finish(self, source: SourceSet, out: Path) -> Mapping[str, bytes]:
        """The index of each split."""
        with tempfile.TemporaryDirectory() as folder:
            config = self._writer(folder).get_config()
        files = {}
        for split, shards in source.splits.items():
            entries = []
            for shard in shards:
                path = out / self.file_name(shard)
                raw_data = {"basename": path.name, "bytes": path.stat().st_size, "hashes": {}}
                entries.append(
                    {**config, "samples": shard.count(), "raw_data": raw_data, "zip_data": None}
                )
            files[f"{split}/index.json"] = json.dumps({"version": 2, "shards": entries}).encode()
        return files

    def usage(self, out: Path) -> str:
        """The call that reads the split for training, or the first one."""
        splits = sorted(path.parent.name for path in out.glob("*/index.json"))
        if not splits:
            return ""
        split = "train" if "train" in splits else splits[0]
        return (
            f"streaming.StreamingDataset(local={str(out.resolve())!r}, split={split!r}, "
            "batch_size=256)"
        )

    def _writer(self, folder: str) -> Any:
        from streaming import MDSWriter

        return MDSWriter(columns=self.columns, out=folder, size_limit=None)


PACKER = MdsPacker

_HINT = "export to webdataset or parquet, which hold images without a label too"


def _kept(encoded: bytes | memoryview) -> Any:
    """An image for the column's encoder, which saves it: as the bytes that it has."""
    from PIL import Image

    class Kept(Image.Image):
        def save(self, fp: Any, format: str | None = None, **params: Any) -> None:
            fp.write(encoded)

    return Kept()
