"""HubFiles, one split of Hugging Face's ILSVRC/imagenet-1k in its parquet files; no boxes.

As https://huggingface.co/datasets/ILSVRC/imagenet-1k has it: ``data/train-00000-of-00294.parquet`` and so on, labels
from 0, images in no order under names that end with the wnid. Also as the huggingface_hub library caches it
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
from imagenet_prep.ilsvrc2012.source import SourceKind, finished, label_of, lacking_text, no_boxes, refuse_twice_in
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.archive_faults import REMEDY
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.in_order import in_order
from imagenet_prep.sources.parquets import ParquetImages, check_pyarrow, iter_rows
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.text import number_of

_CACHED = "datasets--ILSVRC--imagenet-1k"
_NAME = re.compile(r"(.+?)_(n[0-9]{8})\.JPEG").fullmatch
_FILE = re.compile(r"(train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet").fullmatch


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of a split that are there, and the names of all that should be; never empty."""

    paths: tuple[Path, ...]
    split: str
    names: tuple[str, ...]
    is_unpacked: ClassVar[bool] = False
    is_in_order: ClassVar[bool] = True
    md5: ClassVar[str] = ""

    @property
    def path(self) -> Path:
        """The first file."""
        return self.paths[0]

    @property
    def size(self) -> int:
        """Bytes of the files that are there."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def words(self) -> str:
        """What they are."""
        return f"{len(self.paths):,} of {number_of(len(self.names), 'file')} of Hugging Face"

    @property
    def lacking(self) -> list[str]:
        """The names of the files that are not there."""
        there = {path.name for path in self.paths}
        return [name for name in self.names if name not in there]

    @property
    def missing(self) -> str:
        """The same in words."""
        return lacking_text(self.lacking)

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, a task a file: each is read to its end, since nothing else tells the lengths of images."""
        check_pyarrow()
        progress.begin(f"listing the {self.split} files", len(self.paths), "files")
        parts = []
        for part in in_order(engine, _Listing(self.split), self.paths):
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
        for number, own_name, label, length in iter_rows(path):
            name, wnid = official_name(own_name)
            known = label_of(name.encode(), self.split, wnid)
            where = f"{path}, row {number:,}: {own_name[:100]!r}"
            if known is None:
                expected = f"expected a name such as {_EXAMPLES[self.split]}"
                raise InputError(f"{where} is not a {self.split} image", expected, REMEDY)
            if label != known - 1:
                raise InputError(
                    f"{where} has the label of another class", f"expected {known - 1}, got {label}", REMEDY
                )
            found.append(name, number, length, stamp, known)
        return found.sorted()


_EXAMPLES = {
    facts.TRAIN: "n01440764_10026_n01440764.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_00000293_n01440764.JPEG",
}


def official_name(name: str) -> tuple[str, str]:
    """``n01440764_10026.JPEG`` and ``n01440764`` of a name ``n01440764_10026_n01440764.JPEG``; "" of any other."""
    found = _NAME(name)
    return (f"{found[1]}.JPEG", found[2]) if found else ("", "")


def places(layout: Layout) -> Iterator[AnyPath]:
    """Where the files may lie: the raw folder, folders as they are downloaded, and snapshots of the cache."""
    for top in ("", "imagenet-1k", "ILSVRC/imagenet-1k"):
        yield layout.raw_dir / top / "data"
        yield layout.raw_dir / top
    for cache in ("", _CACHED, f"hub/{_CACHED}"):
        snapshots = layout.raw_dir / cache / "snapshots"
        yield from sorted((path / "data" for path in snapshots.glob("*")), key=str)


def _find(layout: Layout, split: str) -> HubFiles | None:
    found = (each for place in places(layout) for each in _parquets(place, split))
    return min(found, key=lambda each: len(each.lacking), default=None)


def _parquets(folder: AnyPath, split: str) -> Iterator[HubFiles]:
    """The parquet files of a folder, by how many there should be: another export has another number."""
    by_count: dict[int, list[Path]] = {}
    for path in sorted(map(local_path, folder.glob(f"{split}-*.parquet"))):
        named = _FILE(path.name)
        if named and int(named[2]) < int(named[3]) and path.is_file():
            by_count.setdefault(int(named[3]), []).append(path)
    for count, paths in by_count.items():
        yield HubFiles(
            tuple(paths), split, tuple(f"{split}-{each:05d}-of-{count:05d}.parquet" for each in range(count))
        )


KIND = SourceKind(name="Hugging Face's ILSVRC/imagenet-1k", find=_find, find_boxes=no_boxes)
