"""ImageSource, the images of a split in one kind of copy; and OfficialTar, ClassTars and
ImageFolders.

These are the archives of image-net.org, the tars inside them, and class folders. Each is read in
place: one class at a time, in parallel.
"""

from __future__ import annotations

import itertools
import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.ilsvrc2012.repacked import foreign_member, without_folders
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.obstacles import refuse, until_fault
from imagenet_prep.sources.skipped import (
    BELOW,
    NOT_FILES,
    OTHER_NAMES,
    SYSTEM_FILES,
    Skipped,
    files_below,
    is_system_file,
    status_of,
)
from imagenet_prep.sources.slices import FileSlices, slices_of
from imagenet_prep.sources.tar_members import REMEDY, duplicate, stranger, stream_faults
from imagenet_prep.sources.tars import Archive, NamedSlices, in_order, walk
from imagenet_prep.storage.files import names_in, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.storage.store import FolderEntry, RangedView
from imagenet_prep.text import listed, number_of

_LONGEST = 100  # bytes in a name; a tar's own limit without extensions


class ImageSource(Struct, frozen=True):
    """The images of one split in one kind of copy; a value, with a class per kind.

    Args:
        path: the file or folder that holds them; the first of several files.
        split: ``train`` or ``validation``.
    """

    path: AnyPath
    split: str

    is_unpacked: ClassVar[bool] = False
    """Whether each image is its own file, so that untar has nothing to do."""

    is_in_order: ClassVar[bool] = False
    """Whether its images can only be read in file order."""

    @classmethod
    @abstractmethod
    def find(cls, layout: Layout, split: str) -> ImageSource | None:
        """Find a split in the raw folder in this kind of copy."""

    @abstractmethod
    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images, as ``finished`` returns them: official names, true labels, lengths of the
        image files.

        Raises:
            InputError: the copy is damaged, or holds images foreign to the data set.
        """

    @property
    def words(self) -> str:
        """Its name for messages, such as "the folder train"."""
        return self.path.name

    @property
    def size(self) -> int:
        """Bytes of its present files; if each image is its own file, of the images."""
        return self.path.stat().st_size

    @property
    def md5(self) -> str:
        """The published MD5 (hex) of ``path``, "" if unknown;
        with a verified MD5, images are checked less closely.
        """
        return ""

    @property
    def missing(self) -> str:
        """The names of its missing files, for messages; "" if none is missing."""
        return ""

    @property
    def damage(self) -> str:
        """A fault that is quickly found, as text to append to its name; "" without one."""
        return ""


# shared by all kinds of copies --------------------------------------------------------------------


def label_of(name: bytes, split: str, wnid: str) -> int | None:
    """The label of an image by its official name;
    None if its class isn't ``wnid`` ("" in validation: any).
    """
    if split == facts.TRAIN:
        is_ours = (
            name.startswith(wnid.encode() + b"_")
            and name.endswith(b".JPEG")
            and name[10:-5].isdigit()
        )
        return facts.labels().get(wnid) if is_ours and len(name) <= _LONGEST else None
    true_wnid = facts.class_of(name.decode("ascii", "replace"), split)
    return facts.labels()[true_wnid] if true_wnid and wnid in ("", true_wnid) else None


def is_misplaced(class_folder: str, name: str, split: str) -> bool:
    """Whether a file that is no image of its class folder is an image of another class."""
    return facts.class_of(name, split) in facts.labels() and facts.is_wnid(class_folder)


def refuse_misplaced(folder: str, name: str, split: str) -> None:
    """Refuse an image in the wrong class folder: its true class must not be guessed."""
    wnid, class_folder = facts.class_of(name, split) or "", folder.rpartition("/")[2]
    error = InputError(
        f"{folder}/{name} is in the wrong class folder",
        f"expected it in {wnid}, found it in {class_folder}",
        Hint("move it there, or run ", mention("untar", "DATA_DIR"), " to sort the images"),
    )
    refuse(error, ProblemKind.WRONG_LABEL, folder, image=name, expected=wnid, got=class_folder)


def finished(parts: Iterable[Catalog], split: str, path: AnyPath | None = None) -> Catalog:
    """The rows of all parts in canonical order, with the words of the labels.

    With the ``path`` of the copy, an image that occurs twice raises InputError with both places.
    """
    catalog = Catalog.join(parts)
    catalog.split = split
    catalog.classes = {
        label: (wnid, facts.texts()[wnid]) for label, wnid in enumerate(facts.synsets(), 1)
    }
    return without_twins(catalog, lambda row: _twice(catalog, row, path)) if path else catalog


def _twice(catalog: Catalog, row: int, path: AnyPath) -> InputError:
    places = f"{catalog.place(row)} and {catalog.place(row + 1)}"
    return InputError(f"{path} holds {catalog.names[row]} twice", places, "remove one of the two")


def without_twins(catalog: Catalog, error_of: Callable[[int], InputError]) -> Catalog:
    """The rows of a sorted catalog, each name once; names that occur again are refused."""
    twins = []
    for row in catalog.names.repeated():
        refuse(error_of(row), ProblemKind.DUPLICATE, catalog.names[row], image=catalog.names[row])
        twins.append(row + 1)
    return catalog.picked(np.delete(np.arange(len(catalog)), twins)) if twins else catalog


# completeness -------------------------------------------------------------------------------------


def expected_images(
    catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int] = {}
) -> int:
    """The expected number of images of a split; for some train classes, only a minimum is known.

    ``by_class`` are the devkit's numbers of train images, empty without a devkit.
    """
    if part.is_whole:
        return facts.IMAGES[split]
    if by_class and split == facts.TRAIN:
        return sum(by_class[wnid] for wnid in part.labels)
    counts = catalog.count_by_label() if catalog and split == facts.TRAIN else {}
    fewest = facts.FEWEST[split]
    return sum(max(counts.get(label, 0), fewest) for label in part.rows())


def missing_text(
    catalog: Catalog | None, split: str, part: Part = WHOLE, by_class: Mapping[str, int] = {}
) -> str | None:
    """A description of the images that a split of the part lacks;
    None if it is complete; see ``expected_images``.
    """
    expected = expected_images(catalog, split, part, by_class)
    is_counted = bool(by_class) and split == facts.TRAIN
    counts = catalog.count_by_label() if catalog else {}
    present = sum(counts.values())
    differing = _differing_classes(counts, by_class) if is_counted else []
    if present == expected and len(counts) == len(part.labels) and not differing:
        return None
    is_exact = part.is_whole or is_counted or split == facts.VALIDATION
    at_least = "" if is_exact else "at least "
    difference = (
        f"{expected - present:,} missing"
        if present <= expected
        else f"{present - expected:,} too many"
    )
    text = f"{split}: {present:,} of {at_least}{expected:,} images, {difference}"
    text += _classes_text("without any", _absent_classes(counts, part))
    if differing:
        return text + _classes_text("with other numbers than the devkit's", differing)
    fewest = facts.FEWEST[split]
    return text + _classes_text(f"with fewer than {fewest}", _short_classes(counts, fewest))


def _classes_text(quality: str, classes: Sequence[str]) -> str:
    """Describe classes, as "; 2 classes without any: n01440764, n01443537"; "" for none."""
    if not classes:
        return ""
    return f"; {number_of(len(classes), 'class', 'classes')} {quality}: {listed(classes)}"


def _absent_classes(counts: Mapping[int, int], part: Part) -> list[str]:
    """The classes of the part without an image."""
    labels = facts.labels()
    return [wnid for wnid in facts.synsets() if wnid in part.labels and labels[wnid] not in counts]


def _short_classes(counts: Mapping[int, int], fewest: int) -> list[str]:
    """The classes with fewer images than the smallest class has, with their numbers."""
    wnids = facts.synsets()
    return [
        f"{wnids[label - 1]} ({count})" for label, count in sorted(counts.items()) if count < fewest
    ]


def _differing_classes(counts: Mapping[int, int], by_class: Mapping[str, int]) -> list[str]:
    """The classes that are there with another number of images than the devkit's."""
    return [
        f"{wnid} ({count:,} of {by_class[wnid]:,})"
        for wnid, count in count_by_wnid(counts).items()
        if count != by_class[wnid]
    ]


def count_by_wnid(counts: Mapping[int, int]) -> dict[str, int]:
    """The numbers of images by class, of those by label."""
    wnids = facts.synsets()
    return {wnids[label - 1]: count for label, count in counts.items()}


TarTask = tuple[AnyPath, str, int, int | None]
"""An archive, the wnid of a class ("" for any), the start byte and the end byte (None:
the archive's end).
"""


# tars ---------------------------------------------------------------------------------------------


class OfficialTar(ImageSource, frozen=True):
    """The archive of a split: train is a tar with a tar per class,
    validation has all images in no order.
    """

    @classmethod
    def find(cls, layout: Layout, split: str) -> OfficialTar | None:
        """The archive in the raw folder, or in DATA_DIR's own."""
        path = layout.archive_path(facts.ARCHIVES[split])
        return cls(path, split) if path.is_file() else None

    @property
    def md5(self) -> str:
        """The archive's published facts."""
        return facts.ARCHIVES[self.split].md5

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class tar within the train archive,
        one for all of validation.
        """
        skipped = Skipped()
        groups = in_order(engine, _GroupIndex(self.split), _grouped(self._tasks(skipped)))
        parts = itertools.chain.from_iterable(groups)
        catalog = finished(_counted(parts, skipped), self.split)
        skipped.note(self.path, progress)
        return without_twins(
            catalog,
            lambda row: duplicate(
                self.path, catalog.names[row], *sorted(catalog.offsets[row : row + 2].tolist())
            ),
        )

    def _tasks(self, skipped: Skipped) -> list[TarTask]:
        if self.split == facts.VALIDATION:
            return [(self.path, "", 0, None)]
        with slices_of(self.path) as view:
            places = class_tars(view, skipped=skipped)
        return [
            (self.path, wnid, offset, offset + length) for wnid, (offset, length) in places.items()
        ]


class ClassTars(ImageSource, frozen=True):
    """The train images as a folder of ``<wnid>.tar``: all classes, as the official archive unpacks,
    or some.

    No digest of a class tar is published, so every image is checked closely.
    """

    split: str = facts.TRAIN

    @classmethod
    def find(cls, layout: Layout, split: str) -> ClassTars | None:
        """The first folder with class tars that has no class folders."""
        if split != facts.TRAIN:
            return None
        own_folder = layout.class_tars_dir(facts.ARCHIVES[split])
        raw_dir = layout.raw_dir
        for folder in (raw_dir / own_folder.name, own_folder, raw_dir / facts.TRAIN):
            tars = cls(folder)
            if tars.wnids() and not any(_class_folders(folder)):
                return tars
        return None

    @property
    def words(self) -> str:
        """The number of class tars."""
        return number_of(len(self.wnids()), "class tar")

    @property
    def size(self) -> int:
        """Bytes of the tars."""
        return sum(self.tar(wnid).stat().st_size for wnid in self.wnids())

    def wnids(self) -> list[str]:
        """The classes present."""
        try:
            names = set(names_in(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [wnid for wnid in facts.synsets() if f"{wnid}.tar" in names]

    def tar(self, wnid: str) -> AnyPath:
        """The path of the tar of a class, present or not."""
        return self.path / f"{wnid}.tar"

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class."""
        wnids = self.wnids()
        skipped = self._skip_strangers(wnids)
        tasks = ((self.tar(wnid), wnid, 0, None) for wnid in wnids)
        parts = in_order(engine, ArchiveIndex(self.split), tasks)
        catalog = finished(_counted(parts, skipped), self.split, self.path)
        skipped.note(self.path, progress)
        return catalog

    def _skip_strangers(self, wnids: Iterable[str]) -> Skipped:
        """The entries of the folder that are no class tars."""
        skipped = Skipped()
        tars = {f"{wnid}.tar" for wnid in wnids}
        for name in sorted(set(names_in(self.path)) - tars):
            is_system = is_system_file(os.fsencode(name))
            skipped.add(SYSTEM_FILES if is_system else "entries that are no class tars", name)
        return skipped


def class_tars_in(layout: Layout) -> ClassTars:
    """The class tars in DATA_DIR itself, where download puts them."""
    return ClassTars(layout.class_tars_dir(facts.ARCHIVES[facts.TRAIN]))


def _counted(parts: Iterable[tuple[Catalog, Skipped]], skipped: Skipped) -> Iterator[Catalog]:
    """The rows of each part; ``skipped`` counts the other entries of all parts."""
    for catalog, skipped_in_part in parts:
        skipped.update(skipped_in_part)
        yield catalog


def class_tars(
    view: NamedSlices, wanted: Collection[str] = (), *, skipped: Skipped | None = None
) -> dict[str, tuple[int, int]]:
    """Offset and length of each class's tar, by wnid, in the train archive; it stops once all
    ``wanted`` are found.

    ``skipped`` counts the files that a system added.

    Raises:
        InputError: a member is no tar of one of the 1000 classes, a class repeats, or the archive
            is damaged.
    """
    places: dict[str, tuple[int, int]] = {}
    pending_wnids = set(wanted)
    archive = str(view.path).rpartition("/")[2]
    for member, offset, length in until_fault(walk(view, hint=REMEDY), archive):
        name = without_folders(member)
        wnid = name[:-4].decode("ascii", "replace")
        if wnid not in facts.labels() or name[-4:] != b".tar":
            if not _skip_member(member, skipped):
                error = foreign_member(view.path, member, offset, "tars named <wnid>.tar")
                refuse(error, ProblemKind.STRAY_FILE, archive)
            continue
        if wnid in places:
            error = duplicate(view.path, f"{wnid}.tar", places[wnid][0], offset)
            refuse(error, ProblemKind.DUPLICATE, f"{wnid}.tar")
            continue
        places[wnid] = offset, length
        pending_wnids.discard(wnid)
        if wanted and not pending_wnids:
            break
    return places


_AT_ONCE = 4 << 20  # bytes of small tars in an archive of a store that are fetched by one request


def _grouped(tasks: Iterable[TarTask]) -> Iterator[list[TarTask]]:
    """The tars of an archive, one at a time; in a store,
    small ones that follow each other are together.
    """
    group: list[TarTask] = []
    for task in tasks:
        stop = task[3]
        is_apart = stop is None or local_or_none(task[0]) is not None
        if group and (is_apart or stop is None or stop - group[0][2] > _AT_ONCE):
            yield group
            group = []
        group.append(task)
    if group:
        yield group


class _GroupIndex(Struct, frozen=True):
    """Indexes tars that follow each other in an archive."""

    split: str

    def __call__(self, tasks: Sequence[TarTask]) -> list[tuple[Catalog, Skipped]]:
        """The images of each, as ArchiveIndex lists them."""
        archive, _, start, _ = tasks[0]
        stop = tasks[-1][3]
        with slices_of(archive) as view:
            if stop is not None and stop - start <= _AT_ONCE and len(tasks) > 1:
                view[start:stop]  # one request: the next ones are in it
            return [ArchiveIndex(self.split).of(view, task) for task in tasks]


class ArchiveIndex(Struct, frozen=True):
    """Indexes one tar of a split: a class tar, separate or within the train archive,
    or all of validation.
    """

    split: str

    def __call__(self, task: TarTask) -> tuple[Catalog, Skipped]:
        """The images of a tar, sorted, and the files that a system added.

        Raises:
            InputError: it is damaged, or holds other files.
        """
        with slices_of(task[0]) as view:
            return self.of(view, task)

    def of(self, view: FileSlices | RangedView, task: TarTask) -> tuple[Catalog, Skipped]:
        """The same of an open archive."""
        archive, wnid, start, stop = task
        rows: list[tuple[int, bytes, int, int]] = []
        skipped = Skipped()
        inside = f"{wnid}.tar" if stop is not None else ""
        members = walk(view, start, stop, inside=inside, hint=REMEDY)
        for name, offset, length in until_fault(members, inside or archive.name):
            label = label_of(name, self.split, wnid)
            if label is None:
                name, member = without_folders(name, wnid), name
                label = label_of(name, self.split, wnid)
            if label is not None:
                rows.append((label, name, offset, length))
            elif not _skip_member(member, skipped):
                error = self._foreign(archive, wnid, member, offset)
                _refuse_member(
                    error, name.decode("ascii", "replace"), self.split, wnid, inside or archive.name
                )
        table = CatalogBuilder(Archive(archive))
        modified = view.modified
        # A few hundred rows: sorting them is faster than sorting columns.
        for label, name, offset, length in sorted(rows):
            table.append(name.decode(), offset, length, modified, label)
        return table.listed(), skipped

    def _foreign(self, archive: AnyPath, wnid: str, member: bytes, offset: int) -> InputError:
        """The error for a member that is no image of the class;
        a tar within an archive is never unpacked.
        """
        if wnid:
            return stranger(archive, member, offset, f"images of {wnid}")
        return foreign_member(archive, member, offset, "validation images")


def _skip_member(member: bytes, skipped: Skipped | None) -> bool:
    """Count a member that a system added; returns whether it is one."""
    if not is_system_file(member):
        return False
    if skipped is not None:
        skipped.add(SYSTEM_FILES, member.decode("utf-8", "backslashreplace"))
    return True


def _refuse_member(error: InputError, name: str, split: str, wnid: str, archive: str) -> None:
    """Refuse a member of an archive that is no image of its class;
    it may be one of another class.
    """
    true_wnid = facts.class_of(name, split)
    if wnid and true_wnid in facts.labels():
        refuse(error, ProblemKind.WRONG_LABEL, archive, image=name, expected=true_wnid, got=wnid)
    else:
        refuse(error, ProblemKind.STRAY_FILE, archive, image=name)


# folders ------------------------------------------------------------------------------------------

FOLDERS = {
    facts.TRAIN: (
        "train",
        "ILSVRC/Data/CLS-LOC/train",
        "Data/CLS-LOC/train",
        "ILSVRC2012_img_train",
        "train/train",
    ),
    facts.VALIDATION: (
        *("validation", "val", "ILSVRC/Data/CLS-LOC/val", "Data/CLS-LOC/val", "ILSVRC2012_img_val"),
        *("validation/validation", "val/val"),
    ),
}
"""Folders searched for images: those of untar, torchvision's ImageFolder and the scripts of 2016;
Kaggle's tree; those that an archive is unpacked to, under its own name or into a folder of that
name.
"""


class ImageFolders(ImageSource, frozen=True):
    """A folder with a folder per class, or with all images of the split (Kaggle's val/)."""

    is_unpacked: ClassVar[bool] = True

    @classmethod
    def find(cls, layout: Layout, split: str) -> ImageFolders | None:
        """The first of the folders that exists,
        except one that untar has started and not finished.
        """
        folders = cls.find_begun(layout, split)
        is_begun = (layout.raw_partial_dir / split).is_dir()
        if folders and is_begun and folders.path == layout.images_dir(split):
            return None
        return folders

    @classmethod
    def find_begun(cls, layout: Layout, split: str) -> ImageFolders | None:
        """A folder that untar has not finished counts too: its archive may be gone."""
        for name in FOLDERS[split]:
            folder = layout.raw_dir / name
            if folder.is_dir() and not _is_wrapper(folder):
                return cls(folder, split)
        return None

    @property
    def words(self) -> str:
        """The name of the folder."""
        return f"the folder {self.path.name}"

    @property
    def size(self) -> int:
        """Bytes of all files in it and in its class folders."""
        folders = ("", *_class_folders(self.path))
        return sum(_size_of(self.path / folder) for folder in folders)

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images: one task per class folder, and one for images in the folder itself."""
        tasks = ("", *_class_folders(self.path))
        skipped = Skipped()
        scans = in_order(engine, _FolderScan(self.path, self.split), tasks)
        parts = list(_counted(scans, skipped))
        skipped.note(self.path, progress)
        return finished(parts, self.split, self.path)


def _is_wrapper(folder: AnyPath) -> bool:
    """Whether a folder holds only one of the same name,
    such as train/train, as some archives unpack.
    """
    return (folder / folder.name).is_dir() and not any(
        name not in (folder.name, ".DS_Store") for name in names_in(folder)
    )


def _class_folders(folder: AnyPath) -> Iterator[str]:
    with scan(folder) as entries:
        for entry in entries:
            with stream_faults(entry.path):  # such as a link to itself
                is_class = facts.is_wnid(entry.name) and entry.is_dir()
            if is_class:
                yield entry.name


def _size_of(folder: AnyPath) -> int:
    with scan(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


class _FolderScan(Struct, frozen=True):
    """Lists the images of one class folder, or of the flat folder;
    all other entries are counted.
    """

    folder: AnyPath
    split: str

    def __call__(self, wnid: str) -> tuple[Catalog, Skipped]:
        folder = self.folder / wnid
        rows, skipped, no_files = CatalogBuilder(Folder(folder)), Skipped(), Skipped()
        with stream_faults(folder), scan(folder) as entries:  # no read permission
            for entry in entries:
                label = label_of(os.fsencode(entry.name), self.split, wnid)
                if label is None:
                    if is_misplaced(folder.name, entry.name, self.split):
                        refuse_misplaced(str(folder), entry.name, self.split)
                    else:
                        self._skip(entry, wnid, skipped)
                elif (status := status_of(entry)) and stat.S_ISREG(status.st_mode):
                    rows.append(entry.name, 0, status.st_size, status.st_mtime_ns, label)
                else:
                    no_files.add(NOT_FILES, entry.name)
        if no_files.entries:
            _refuse(folder, *no_files.entries[NOT_FILES])
        return rows.sorted(), skipped

    def _skip(self, entry: FolderEntry, wnid: str, skipped: Skipped) -> None:
        name = f"{wnid}/{entry.name}" if wnid else entry.name
        if entry.is_dir():
            if wnid or not facts.is_wnid(entry.name):  # a class folder has a task of its own
                for path in files_below(self.folder / name):
                    skipped.add(BELOW, path.name)
        elif not entry.is_file():
            skipped.add(NOT_FILES, name)
        elif entry.name[:-4] in facts.labels() and entry.name.endswith(".tar"):
            skipped.add("class tars next to class folders", name)
        elif is_system_file(os.fsencode(entry.name)):
            skipped.add(SYSTEM_FILES, name)
        else:
            skipped.add(OTHER_NAMES, name)


def _refuse(folder: AnyPath, count: int, name: str) -> None:
    """Refuse entries with names of images that can't be read as files, or never end."""
    more = f", and {count - 1:,} more like it" if count > 1 else ""
    error = InputError(
        f"{folder / name} is not a plain file{more}",
        "expected an image, got a pipe, a socket, a device, a folder or a broken link",
        "remove it, or put the image in its place",
    )
    refuse(error, ProblemKind.UNREADABLE, name)
