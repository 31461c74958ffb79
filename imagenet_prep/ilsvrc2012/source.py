"""ImageNet's Items: from the official archives in place, or from image folders.

Looked for in the raw folder, first found first taken: the archives; ``train/`` and ``validation/`` or ``val/`` (what
untar, torchvision's ImageFolder and the scripts of 2016 have); Kaggle's ``ILSVRC/Data/CLS-LOC/`` tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Engine, Failed
from imagenet_prep.sources.archive_faults import REMEDY, duplicate, stranger
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.class_folders import Folder
from imagenet_prep.sources.slices import FileSlices
from imagenet_prep.sources.tars import Archive, walk
from imagenet_prep.storage.layout import Layout

_FOLDERS = {
    facts.TRAIN: ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train"),
    facts.VALIDATION: ("validation", "val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val"),
}


def find_source(layout: Layout, split: str) -> Path | None:
    """The archive or the folder that holds a split, or None."""
    archive = layout.archive_path(facts.ARCHIVES[split])
    if archive.is_file():
        return archive
    folders = (layout.raw_dir / name for name in _FOLDERS[split])
    return next((folder for folder in folders if folder.is_dir()), None)


def find_boxes_csv(layout: Layout, split: str) -> Path | None:
    """The boxes of a split: what annotate made here, else what lies in the raw folder; None if there are none."""
    own = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    return next((path for path in (own, layout.raw_dir / own.name) if path.is_file()), None)


def read_catalog(source: Path, split: str, engine: Engine) -> Catalog:
    """Index one split from its archive or its folder, in parallel.

    Raises:
        InputError: the archive is corrupt, or holds what can't be of this data set.
    """
    if source.is_dir():
        parts = _run(engine, _FolderScan(source, split), _scan_tasks(source))
    else:
        parts = _run(engine, _ArchiveIndex(source, split), _archive_tasks(source, split))
    catalog = Catalog.join(parts)
    catalog.split, catalog.wnids = split, facts.synsets()
    catalog.texts = tuple(facts.texts()[wnid] for wnid in catalog.wnids)
    _refuse_duplicates(catalog, source)
    return catalog


def _run(
    engine: Engine, function: _FolderScan | _ArchiveIndex, tasks: Iterable[tuple[str, int, int]]
) -> Iterator[Catalog]:
    for outcome in engine.map(function, tasks):
        if isinstance(outcome, Failed):
            raise outcome.error
        yield outcome.value


def _refuse_duplicates(catalog: Catalog, source: Path) -> None:
    for row, (name, following) in enumerate(pairwise(catalog.names)):
        if name == following:
            if source.is_file():
                raise duplicate(source, name, *sorted(catalog.offsets[row : row + 2]))
            places = f"{catalog.place(row)} and {catalog.place(row + 1)}"
            raise InputError(f"{source} holds {name} twice", places, "remove one of the two")


# archives in place ---------------------------------------------------------------------------------------------


def _archive_tasks(archive: Path, split: str) -> list[tuple[str, int, int]]:
    """What can be indexed on its own: each class's tar within the train archive; the validation archive as a whole."""
    with FileSlices(archive) as view:
        if split == facts.VALIDATION:
            return [("", 0, len(view))]
        return [(wnid, offset, offset + length) for wnid, (offset, length) in class_tars(view).items()]


def class_tars(view: FileSlices) -> dict[str, tuple[int, int]]:
    """Offset and length of each class's tar, by wnid, in the train archive.

    Raises:
        InputError: a member is no tar of one of the 1000 classes, or a class is there twice; or it is damaged.
    """
    found: dict[str, tuple[int, int]] = {}
    for name, offset, length in walk(view, hint=REMEDY):
        wnid = name[:-4].decode("ascii", "replace")
        if wnid not in facts.labels() or name[-4:] != b".tar":
            raise stranger(view.path, name, offset, "tars named <wnid>.tar")
        if wnid in found:
            raise duplicate(view.path, f"{wnid}.tar", found[wnid][0], offset)
        found[wnid] = offset, length
    return found


@dataclass(frozen=True, slots=True)
class _ArchiveIndex:
    """Indexes one tar within an archive: a class of train, or all of validation."""

    archive: Path
    split: str

    def __call__(self, task: tuple[str, int, int]) -> Catalog:
        wnid, start, stop = task
        found = Catalog(containers=[Archive(self.archive)])
        with FileSlices(self.archive) as view:
            stamp = view.modified
            for name, offset, length in walk(view, start, stop, inside=wnid and f"{wnid}.tar", hint=REMEDY):
                label = _label_of(name, self.split, wnid)
                if label is None:
                    raise stranger(self.archive, name, offset, f"images of {wnid}" if wnid else "validation images")
                found.append(name.decode(), offset, length, stamp, label)
        return found.sorted()


# folders -------------------------------------------------------------------------------------------------------


def _scan_tasks(folder: Path) -> Iterator[tuple[str, int, int]]:
    """A task a class folder, and one for images that lie in the folder itself (Kaggle's val/)."""
    yield "", 0, 0
    for entry in os.scandir(folder):
        try:
            if facts.is_wnid(entry.name) and entry.is_dir():
                yield entry.name, 0, 0
        except OSError as error:  # a link to itself
            raise InputError(f"{entry.path} can't be read", error.strerror or str(error)) from error


@dataclass(frozen=True, slots=True)
class _FolderScan:
    """Lists the images of one class folder (or of the flat folder); other files are left alone."""

    folder: Path
    split: str

    def __call__(self, task: tuple[str, int, int]) -> Catalog:
        try:
            return self._scan(task[0])
        except OSError as error:  # no right to read it, a link to nowhere
            raise InputError(f"{error.filename} can't be read", error.strerror or str(error)) from error

    def _scan(self, wnid: str) -> Catalog:
        folder = self.folder / wnid
        found = Catalog(containers=[Folder(folder)])
        for entry in os.scandir(folder):
            label = _label_of(os.fsencode(entry.name), self.split, wnid)
            if label is None:
                _refuse_misplaced(folder, entry.name, self.split)
                continue
            status = entry.stat()
            found.append(entry.name, 0, status.st_size, status.st_mtime_ns, label)
        return found.sorted()


def _refuse_misplaced(folder: Path, name: str, split: str) -> None:
    """An image of the data set in another class's folder means that the sorting went wrong: never guess."""
    if split == facts.TRAIN:
        wnid = facts.train_wnid(name)
    else:
        number = facts.validation_number(name)
        wnid = facts.validation_wnids()[number - 1] if number else None
    if wnid in facts.labels() and facts.is_wnid(folder.name):
        raise InputError(
            f"{folder / name} lies in the wrong class folder",
            f"expected it in {wnid}, found it in {folder.name}",
            "move it there, or let imagenet-prep untar DATA_DIR sort the images",
        )


def _label_of(name: bytes, split: str, wnid: str) -> int | None:
    """The label of an image by its official name, or None if it isn't one (or not of ``wnid``, where that is given)."""
    if split == facts.TRAIN:
        is_ours = name.startswith(wnid.encode() + b"_") and name.endswith(b".JPEG") and name[10:-5].isdigit()
        return facts.labels().get(wnid) if is_ours else None
    number = facts.validation_number(name.decode("ascii", "replace"))
    found = facts.validation_wnids()[number - 1] if number else None
    return facts.labels()[found] if found and wnid in ("", found) else None


# completeness --------------------------------------------------------------------------------------------------


def missing_text(catalog: Catalog | None, split: str) -> str | None:
    """What a split lacks against ILSVRC2012, in words, or None if it is whole."""
    expected = facts.IMAGES[split]
    counts = catalog.count_by_label() if catalog else {}
    got = sum(counts.values())
    if got == expected and len(counts) == facts.CLASSES:
        return None
    wnids = facts.synsets()
    floor = 50 if split == facts.VALIDATION else 732  # the smallest train class has 732 images
    absent = [wnid for label, wnid in enumerate(wnids, 1) if label not in counts]
    short = [f"{wnids[label - 1]} ({count})" for label, count in sorted(counts.items()) if count < floor]
    difference = f"{expected - got:,} missing" if got <= expected else f"{got - expected:,} too many"
    text = f"{split}: {got:,} of {expected:,} images, {difference}"
    if absent:
        text += f"; {len(absent)} classes without any: {_some(absent)}"
    if short:
        text += f"; {len(short)} classes with fewer than {floor}: {_some(short)}"
    return text


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
