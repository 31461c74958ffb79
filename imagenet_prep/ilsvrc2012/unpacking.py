"""ClassRows, a class of a copy that is no official archive: its images are written to the folder aside of untar."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from imagenet_prep.errors import PrepError
from imagenet_prep.model import Done, Failed, Outcomes
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.written_out import write_rows
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import local_path
from imagenet_prep.storage.refusals import writing


@dataclass(frozen=True, slots=True)
class ClassRows:
    """A class of a split: ``rows`` of the split's catalog, or, for a worker, all of a ``catalog`` of its own."""

    split: str
    wnid: str
    size: int
    rows: range
    catalog: Catalog | None = None

    def alone(self, catalog: Catalog) -> ClassRows:
        """The same with a catalog of its own, to be sent to a worker; ``catalog`` is that of the split."""
        return replace(self, rows=range(len(self.rows)), catalog=catalog.whole(self.rows))


class OfClass(Protocol):
    """What has folders: a class of a split."""

    @property
    def split(self) -> str:
        """The split."""
        ...

    @property
    def wnid(self) -> str:
        """The class."""
        ...


def classes_of(catalog: Catalog) -> list[ClassRows]:
    """One class after the other, as the rows of a split's catalog are sorted."""
    rows, start = [], 0
    for label, count in catalog.count_by_label().items():
        own = range(start, start + count)
        rows.append(ClassRows(catalog.split, catalog.classes[label][0], catalog.size(own), own))
        start += count
    return rows


def folders_of(layout: Layout, task: OfClass) -> tuple[Path, Path]:
    """Where the images of a class go in the end, and where they are put together."""
    return local_path(layout.images_dir(task.split)) / task.wnid, local_path(
        layout.raw_partial_dir
    ) / task.split / task.wnid


def sizes_in(folder: Path) -> dict[str, int]:
    """The size of each file in a folder by name, -1 for what is not a plain file; nothing if there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name: entry.stat().st_size if entry.is_file(follow_symlinks=False) else -1 for entry in entries
            }
    except FileNotFoundError:
        return {}


def write_class(task: ClassRows, layout: Layout) -> tuple[int, int]:
    """How many images a class has, and how many of them are now in the folder aside. Runs in workers."""
    catalog = task.catalog
    assert catalog is not None
    missing, partial = _begin(layout, task, catalog), folders_of(layout, task)[1]
    with writing(partial):
        written = sum(1 for _ in write_rows(catalog, missing, lambda _: partial))
    return len(task.rows), written


def write_in_order(tasks: Sequence[ClassRows], catalog: Catalog, layout: Layout) -> Outcomes[Any, tuple[int, int]]:
    """The same for all classes of a split in one pass: each is done when the last of its images has come."""
    left: dict[int, int] = {}
    by_label = {catalog.labels[task.rows.start]: task for task in tasks}
    wanted: list[int] = []
    for label, task in by_label.items():
        missing = _begin(layout, task, catalog)
        wanted += missing
        left[label] = len(missing)
        if not missing:
            yield Done(task, (len(task.rows), 0))
    written = dict(left)
    partial = {label: folders_of(layout, task)[1] for label, task in by_label.items()}
    try:
        with writing(layout.raw_partial_dir):
            for row in write_rows(catalog, wanted, lambda row: partial[catalog.labels[row]]):
                label = catalog.labels[row]
                left[label] -= 1
                if not left[label]:
                    yield Done(by_label[label], (len(by_label[label].rows), written[label]))
    except PrepError as error:
        yield Failed(next(by_label[label] for label, rows in left.items() if rows), error)


def _begin(layout: Layout, task: ClassRows, catalog: Catalog) -> list[int]:
    """The rows of a class that its final folder lacks; if there are any, an empty folder for them."""
    final, partial = folders_of(layout, task)
    with writing(final):
        present = sizes_in(final)
    missing = [row for row in task.rows if present.get(catalog.names[row]) != catalog.lengths[row]]
    with writing(partial):
        if partial.exists():  # of an earlier run; what it holds may not have reached the disk
            shutil.rmtree(partial)
        if missing:
            partial.mkdir(parents=True)
    return missing
