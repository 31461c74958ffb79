"""HubParquets, one split of Hugging Face's ILSVRC/imagenet-1k in its parquet files; no boxes.

As it is described at https://huggingface.co/datasets/ILSVRC/imagenet-1k: ``data/train-00000-of-00294.parquet`` and so
on, labels from 0, images under names that end with the wnid, in no order. Also as the huggingface_hub library caches it
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache): links in ``snapshots/<commit>/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.source import SourceKind, finished, label_of, no_boxes, refuse_twice_in, run
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.archive_faults import REMEDY
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.parquets import ImageRow, ParquetImages, check_pyarrow, iter_rows
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import number_of

_CACHED = "datasets--ILSVRC--imagenet-1k"
_NAME = re.compile(r"(.+?)_(n[0-9]{8})\.JPEG").fullmatch
_FILE = re.compile(r"(train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet").fullmatch
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class HubParquets:
    """The files of a split that are there, ``count`` of them if all are."""

    paths: tuple[Path, ...]
    split: str
    count: int
    is_unpacked: ClassVar[bool] = False
    md5: ClassVar[str] = ""

    @property
    def path(self) -> Path:
        """The first file."""
        return self.paths[0]

    @property
    def words(self) -> str:
        """What they are."""
        return f"{len(self.paths):,} of {number_of(self.count, 'parquet file')}"

    @property
    def missing(self) -> str:
        """The files that are not there."""
        there = {path.name for path in self.paths}
        names = (f"{self.split}-{number:05d}-of-{self.count:05d}.parquet" for number in range(self.count))
        missing = [name for name in names if name not in there]
        if not missing:
            return ""
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        return f"{', '.join(missing[:_SHOWN])}{more}"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, a task a file: each is read to its end, since nothing else tells the lengths of images."""
        check_pyarrow()
        progress.begin(f"reading the {self.split} files", len(self.paths), "files")
        parts = []
        for part in run(engine, _Listing(self.split), self.paths):
            parts.append(part)
            progress.advance()
        progress.end()
        return refuse_twice_in(self.path.parent, finished(parts, self.split))


@dataclass(frozen=True, slots=True)
class _Listing:
    """Lists the images of one file."""

    split: str

    def __call__(self, path: Path) -> Catalog:
        found, stamp = Catalog(containers=[ParquetImages(path)]), path.stat().st_mtime_ns
        for row in iter_rows(path):
            name, wnid = official_name(row.path)
            label = label_of(name.encode(), self.split, wnid)
            if label is None or label != row.label + 1:
                raise self._stranger(path, row, label)
            found.append(name, row.number, row.length, stamp, label)
        return found.sorted()

    def _stranger(self, path: Path, row: ImageRow, label: int | None) -> InputError:
        where = f"{path}, row {row.number:,}: {row.path[:100]!r}"
        if label is None:
            return InputError(
                f"{where} is no {self.split} image", f"expected a name such as {_EXAMPLES[self.split]}", REMEDY
            )
        return InputError(f"{where} has the label of another class", f"expected {label - 1}, got {row.label}", REMEDY)


_EXAMPLES = {
    facts.TRAIN: "n01440764_10026_n01440764.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_00000293_n01440764.JPEG",
}


def official_name(name: str) -> tuple[str, str]:
    """``n01440764_10026.JPEG`` and ``n01440764`` of a name ``n01440764_10026_n01440764.JPEG``; "" of any other."""
    found = _NAME(name)
    return (f"{found[1]}.JPEG", found[2]) if found else ("", "")


def places(layout: Layout) -> Iterator[Path]:
    """Where the files may lie: the raw folder, folders as they are downloaded, and snapshots of the cache."""
    for top in ("", "imagenet-1k", "ILSVRC/imagenet-1k"):
        yield layout.raw_dir / top / "data"
        yield layout.raw_dir / top
    for cache in ("", _CACHED, f"hub/{_CACHED}"):
        snapshots = layout.raw_dir / cache / "snapshots"
        yield from sorted(path / "data" for path in snapshots.glob("*"))


def _find(layout: Layout, split: str) -> HubParquets | None:
    found = [each for place in places(layout) for each in _of_each_count(place, split)]
    return max(found, key=lambda each: len(each.paths), default=None)


def _of_each_count(folder: Path, split: str) -> Iterator[HubParquets]:
    """The files of a folder, by how many there should be: another export has another number."""
    by_count: dict[int, list[Path]] = {}
    for path in sorted(folder.glob(f"{split}-*.parquet")):
        named = _FILE(path.name)
        if named and int(named[2]) < int(named[3]) and path.is_file():
            by_count.setdefault(int(named[3]), []).append(path)
    for count, paths in by_count.items():
        yield HubParquets(tuple(paths), split, count)


KIND = SourceKind(name="Hugging Face's parquet files", find=_find, find_boxes=no_boxes)
