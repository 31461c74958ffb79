"""ImageSource: the images of a split in one kind of copy, read in place, one class at a time, in
parallel; and what all kinds share.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

import numpy as np
from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Engine, ProblemKind, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.obstacles import refuse
from imagenet_prep.sources.skipped import Skipped
from imagenet_prep.sources.tar_members import WHOLE_COPY, stream_faults
from imagenet_prep.storage.files import scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of

ANOTHER_COPY = "get another copy of these images"
"""The remedy for images that no command can sort."""

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
    def files(self) -> str:
        """All its files, as a path or a pattern, for messages."""
        return str(self.path)

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


def refuse_misplaced(folder: str, name: str, split: str, *, can_move: bool) -> None:
    """Refuse an image in the wrong class folder: its true class must not be guessed.

    ``can_move``: it is a file of its own, not in an archive.
    """
    wnid = facts.class_of(name, split) or ""
    parent, _, class_folder = folder.rpartition("/")
    remedy = ANOTHER_COPY
    if can_move:
        remedy = f"move every image of {wnid} from {folder} to {parent}/{wnid}"
    error = InputError(
        f"{folder}/{name} is not in the folder of the class in its name",
        f"expected it in {wnid}, found it in {class_folder}",
        remedy,
    )
    refuse(error, ProblemKind.WRONG_LABEL, folder, image=name, expected=wnid, got=class_folder)


def finished(
    parts: Iterable[Catalog],
    split: str,
    path: AnyPath | None = None,
    *,
    remedy_of_twins: str = WHOLE_COPY,
) -> Catalog:
    """The rows of all parts in canonical order, with the words of the labels.

    With the ``path`` of the copy, an image that occurs twice raises InputError with both places
    and ``remedy_of_twins``.
    """
    catalog = Catalog.join(parts)
    catalog.split = split
    catalog.classes = {
        label: (wnid, facts.texts()[wnid]) for label, wnid in enumerate(facts.synsets(), 1)
    }
    if path is None:
        return catalog

    @functools.cache
    def remedy() -> str:
        others = sum(1 for _ in catalog.names.repeated()) - 1
        if not others:
            return remedy_of_twins
        verb = "is" if others == 1 else "are"
        return f"{remedy_of_twins}; {number_of(others, 'other image')} {verb} there twice, too"

    def twice(row: int) -> InputError:
        places = f"{catalog.place(row)} and {catalog.place(row + 1)}"
        return InputError(f"{path} holds {catalog.names[row]} twice", places, remedy())

    return without_twins(catalog, twice)


def without_twins(catalog: Catalog, error_of: Callable[[int], InputError]) -> Catalog:
    """The rows of a sorted catalog, each name once; names that occur again are refused."""
    twins = []
    for row in catalog.names.repeated():
        refuse(error_of(row), ProblemKind.DUPLICATE, catalog.names[row], image=catalog.names[row])
        twins.append(row + 1)
    return catalog.picked(np.delete(np.arange(len(catalog)), twins)) if twins else catalog


def counted(parts: Iterable[tuple[Catalog, Skipped]], skipped: Skipped) -> Iterator[Catalog]:
    """The rows of each part; ``skipped`` counts the other entries of all parts."""
    for catalog, skipped_in_part in parts:
        skipped.update(skipped_in_part)
        yield catalog


def class_folders(folder: AnyPath) -> Iterator[str]:
    """The names of the class folders in a folder."""
    with scan(folder) as entries:
        for entry in entries:
            with stream_faults(entry.path):  # such as a link to itself
                is_class = facts.is_wnid(entry.name) and entry.is_dir()
            if is_class:
                yield entry.name
