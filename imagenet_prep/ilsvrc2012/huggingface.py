"""HubFiles: a split in the parquet files of Hugging Face, read in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.official import ImageSource, finished, label_of
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.obstacles import refuse
from imagenet_prep.sources.parquets import ParquetImages, check_pyarrow, iter_rows
from imagenet_prep.sources.tar_members import REMEDY
from imagenet_prep.sources.tars import in_order
from imagenet_prep.state.export_record import export_fault
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_path
from imagenet_prep.text import number_of, row_text

#
# The layout of https://huggingface.co/datasets/ILSVRC/imagenet-1k:
# ``data/train-00000-of-00294.parquet`` and so on. Labels count from 0; image names end with the
# wnid, in no order; there are no boxes. The huggingface_hub cache is read too
# (https://huggingface.co/docs/huggingface_hub/guides/manage-cache): links in
# ``snapshots/<commit>/``.

_CACHED = "datasets--ILSVRC--imagenet-1k"
_NAME = re.compile(r"(.+?)_(n[0-9]{8})\.JPEG").fullmatch
_FILE = re.compile(r"(train|validation)-([0-9]{5})-of-([0-9]{5})\.parquet").fullmatch
_SHOWN = 5
_EXAMPLES = {
    facts.TRAIN: "n01440764_10026_n01440764.JPEG",
    facts.VALIDATION: "ILSVRC2012_val_00000293_n01440764.JPEG",
}


class HubFiles(ImageSource, frozen=True):
    """The present files of a split, and the complete number of files; never empty."""

    paths: tuple[Path, ...]
    count: int
    is_in_order: ClassVar[bool] = True

    @classmethod
    def find(cls, layout: Layout, split: str) -> HubFiles | None:
        """The files of the most complete folder."""
        candidates = [
            files
            for folder in hub_folders(layout)
            for files in _hub_files(folder, split)
            if not export_fault(folder)  # an export has files of these names, too
        ]
        return min(candidates, key=lambda files: len(files.lacking), default=None)

    @property
    def files(self) -> str:
        """A pattern of the files."""
        return f"{self.path.parent}/{self.split}-*.parquet"

    @property
    def size(self) -> int:
        """Bytes of the present files."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def words(self) -> str:
        """A description of the files."""
        return f"{len(self.paths):,} of {number_of(self.count, 'file')} of Hugging Face"

    @property
    def lacking(self) -> list[str]:
        """The names of the missing files."""
        present = {path.name for path in self.paths}
        names = [
            f"{self.split}-{number:05d}-of-{self.count:05d}.parquet" for number in range(self.count)
        ]
        return [name for name in names if name not in present]

    @property
    def missing(self) -> str:
        """The missing files, for messages."""
        names = self.lacking
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, one task per file: each is read to its end,
        since only that gives the lengths of images.
        """
        check_pyarrow()
        progress.begin(f"listing the {self.split} files", len(self.paths), "files")
        parts = []
        for part in in_order(engine, _HubListing(self.split), self.paths):
            parts.append(part)
            progress.advance()
        progress.end()
        return finished(parts, self.split, self.path.parent)


def hub_folders(layout: Layout) -> Iterator[AnyPath]:
    """Folders that may hold the files: the raw folder, downloaded folders,
    and snapshots of the cache.
    """
    for top in ("", "imagenet-1k", "ILSVRC/imagenet-1k"):
        yield layout.raw_dir / top / "data"
        yield layout.raw_dir / top
    for cache in ("", _CACHED, f"hub/{_CACHED}"):
        snapshots = layout.raw_dir / cache / "snapshots"
        folders = [snapshot / "data" for snapshot in snapshots.glob("*")]
        yield from sorted(folders, key=str)


def _hub_files(folder: AnyPath, split: str) -> Iterator[HubFiles]:
    """The files of a folder, by their complete number: another export has another number."""
    by_count: dict[int, list[Path]] = {}
    for path in sorted(map(local_path, folder.glob(f"{split}-*.parquet"))):
        match = _FILE(path.name)
        if match is None:
            continue
        number, count = int(match[2]), int(match[3])
        if number < count and path.is_file():
            by_count.setdefault(count, []).append(path)
    for count, paths in by_count.items():
        yield HubFiles(paths[0], split, tuple(paths), count)


class _HubListing(Struct, frozen=True):
    """Lists the images of one file."""

    split: str

    def __call__(self, path: Path) -> Catalog:
        rows, stamp = CatalogBuilder(ParquetImages(path)), path.stat().st_mtime_ns
        for number, hub_name, hub_label, length in iter_rows(path):
            name, wnid = official_name(hub_name)
            label = label_of(name.encode(), self.split, wnid)
            if label is None:
                self._refuse_stranger(path, number, hub_name)
            elif hub_label != label - 1:
                place = _row_place(path, number, hub_name)
                _refuse_wrong_label(path, place, name, wnid, label - 1, hub_label)
            else:
                rows.append(name, number, length, stamp, label)
        return rows.sorted()

    def _refuse_stranger(self, path: Path, number: int, hub_name: str) -> None:
        """Refuse a row that is no image of this split, or whose name gives it another class."""
        place = _row_place(path, number, hub_name)
        problem = f"{place} is not the name of a {self.split} image"
        expected = f"expected a name such as {_EXAMPLES[self.split]}"
        name, wnid = official_name(hub_name)
        true_wnid = facts.class_of(name, self.split)
        if true_wnid in facts.labels() and wnid != true_wnid:
            problem = f"{place} ends with the class {wnid}, but this image is of {true_wnid}"
            expected = f"expected the name {name.removesuffix('.JPEG')}_{true_wnid}.JPEG"
        error = InputError(problem, expected, REMEDY)
        refuse(error, ProblemKind.STRAY_FILE, path.name, image=hub_name[:100])


def _row_place(path: Path, number: int, hub_name: str) -> str:
    return f"{path}, {row_text(number)}: {hub_name[:100]!r}"


def _refuse_wrong_label(
    path: Path, place: str, name: str, wnid: str, expected: int, got: int
) -> None:
    """Refuse a row whose label is not that of the class in its name."""
    error = InputError(
        f"{place} has another label than the class in its name",
        f"expected label {expected}, got {got}",
        REMEDY,
    )
    refuse(
        error,
        ProblemKind.WRONG_LABEL,
        path.name,
        image=name,
        expected=wnid,
        got=_class_named(got),
    )


def _class_named(label: int) -> str:
    """The class of a label of Hugging Face, which counts from 0."""
    if 0 <= label < facts.CLASSES:
        return facts.synsets()[label]
    return f"label {label}"


def official_name(hub_name: str) -> tuple[str, str]:
    """``n01440764_10026.JPEG`` and ``n01440764`` for a name ``n01440764_10026_n01440764.JPEG``;
    "" for any other.
    """
    match = _NAME(hub_name)
    if not match:
        return "", ""
    image, wnid = match[1], match[2]
    return f"{image}.JPEG", wnid
