"""ImageSource: the images of one split in one kind of copy, and the checks that all kinds share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.part import WHOLE, Part
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of

_LONGEST = 100  # bytes in a name; a tar's own limit without extensions


@dataclass(frozen=True, slots=True)
class ImageSource(ABC):
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
        """All images, as ``finished`` returns them: official names, true labels, lengths of the image files.

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
        """The published MD5 (hex) of ``path``, "" if unknown; with a verified MD5, images are checked less closely."""
        return ""

    @property
    def missing(self) -> str:
        """The names of its missing files, for messages; "" if none is missing."""
        return ""

    @property
    def damage(self) -> str:
        """A fault that is quickly found, as text to append to its name; "" without one."""
        return ""


# shared by all kinds of copies ---------------------------------------------------------------------------------


def label_of(name: bytes, split: str, wnid: str) -> int | None:
    """The label of an image by its official name; None if its class isn't ``wnid`` ("" in validation: any)."""
    if split == facts.TRAIN:
        is_ours = name.startswith(wnid.encode() + b"_") and name.endswith(b".JPEG") and name[10:-5].isdigit()
        return facts.labels().get(wnid) if is_ours and len(name) <= _LONGEST else None
    found = facts.class_of(name.decode("ascii", "replace"), split)
    return facts.labels()[found] if found and wnid in ("", found) else None


def refuse_misplaced(folder: str, name: str, split: str) -> None:
    """Raise InputError for an image in the wrong class folder: its true class must not be guessed."""
    wnid, found = facts.class_of(name, split), folder.rpartition("/")[2]
    if wnid in facts.labels() and facts.is_wnid(found):
        raise InputError(
            f"{folder}/{name} is in the wrong class folder",
            f"expected it in {wnid}, found it in {found}",
            "move it there, or run imagenet-prep untar DATA_DIR to sort the images",
        )


def finished(parts: Iterable[Catalog], split: str) -> Catalog:
    """The rows of all parts in canonical order, with the words of the labels."""
    catalog = Catalog.join(parts)
    catalog.split = split
    catalog.classes = {label: (wnid, facts.texts()[wnid]) for label, wnid in enumerate(facts.synsets(), 1)}
    return catalog


def refuse_twice_in(path: AnyPath, catalog: Catalog) -> Catalog:
    """The catalog, if each image occurs once; else raise InputError with both places."""
    row = catalog.names.first_twice()
    if row is not None:
        places = f"{catalog.place(row)} and {catalog.place(row + 1)}"
        raise InputError(f"{path} holds {catalog.names[row]} twice", places, "remove one of the two")
    return catalog


# completeness --------------------------------------------------------------------------------------------------


def expected_images(catalog: Catalog | None, split: str, part: Part) -> int:
    """The expected number of images of a split; for some train classes, only a minimum is known."""
    if part.is_whole:
        return facts.IMAGES[split]
    counts = catalog.count_by_label() if catalog and split == facts.TRAIN else {}
    return sum(max(counts.get(label, 0), facts.FEWEST[split]) for label in part.rows())


def missing_text(catalog: Catalog | None, split: str, part: Part = WHOLE) -> str | None:
    """A description of the images that a split of the part lacks; None if it is complete."""
    expected, floor = expected_images(catalog, split, part), facts.FEWEST[split]
    counts = catalog.count_by_label() if catalog else {}
    got = sum(counts.values())
    if got == expected and len(counts) == len(part.labels):
        return None
    wnids = facts.synsets()
    absent = [wnid for label, wnid in enumerate(wnids, 1) if wnid in part.labels and label not in counts]
    short = [f"{wnids[label - 1]} ({count})" for label, count in sorted(counts.items()) if count < floor]
    difference = f"{expected - got:,} missing" if got <= expected else f"{got - expected:,} too many"
    least = "" if part.is_whole or split == facts.VALIDATION else "at least "
    text = f"{split}: {got:,} of {least}{expected:,} images, {difference}"
    if absent:
        text += f"; {number_of(len(absent), 'class', 'classes')} without any: {listed(absent)}"
    if short:
        text += f"; {number_of(len(short), 'class', 'classes')} with fewer than {floor}: {listed(short)}"
    return text
