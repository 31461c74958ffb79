"""The formats of annotations. A format is one new module with its ``FORMAT``; its name is the
recipe's key in `boxes`.

Listing the formats imports none of their modules. The recipe's type has a key for each, ``init``
recognises their files by ``recognises``, and ``annotating`` reads them by ``mark``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from imagenet_prep.errors import InputError

if TYPE_CHECKING:
    from imagenet_prep.recipes.annotated_images import AnnotatedImages
    from imagenet_prep.recipes.schema import BoxKeys


def _module_names() -> list[str]:
    file_names = os.listdir(__path__[0])
    return sorted(name[:-3] for name in file_names if name.endswith(".py") and name[0] != "_")


FORMATS = tuple(_module_names())
"""The keys of all formats, the names of their modules."""

NUMBERING = ("names", "first_label")
"""The keys of `boxes` that number the classes."""

Lists = Mapping[str, tuple[str, Sequence[str]]]
"""By split the file that lists its images, and those images."""


class AnnotatedFolder(Struct, frozen=True):
    """A folder with files of one format, as ``init`` sees it.

    Args:
        path: where it is.
        files: the files of the format, by their paths from there.
        images: the images that are no masks.
        names: all files.
        init: the command of init for the folder, with the user's options except for those given.
        stray: the files that nothing else takes.
        columns: the columns of images ("path") and classes ("label") that the user names.
    """

    path: Path
    files: Sequence[str]
    images: Sequence[str]
    names: Sequence[str]
    init: Callable[..., str]
    stray: Sequence[str] = ()
    columns: Mapping[str, str] = {}


class Proposed(Struct, frozen=True):
    """The keys of a recipe for the annotations of a folder.

    Args:
        value: the keys of `boxes`.
        used: the files that it takes.
        lists: the lists of splits.
        faults: what keeps the folder from being taken.
        is_certain: whether the folders can't be classes.
        doubts: what a user must accept: what the recipe does then, as a verb, and the doubt.
    """

    value: Mapping[str, Any]
    used: Sequence[str]
    lists: Lists = {}
    faults: Sequence[InputError] = ()
    is_certain: bool = False
    doubts: Sequence[tuple[str, str]] = ()


class Format(Struct, frozen=True):
    """A format of annotations.

    Args:
        key: its key in the recipe's `boxes`, the name of its module.
        tool: the name that people know it by.
        structure: its name for ``init --as``.
        endings: those of its files; "" for files without an ending.
        recognises: whether a file is of the format, by its name and its first and last bytes.
        mark: reads the annotations of images.
        usage: by tool, what a recipe says: the rows of the documentation's table.
        keys: the keys of `boxes` that it has a use for, next to those of all formats.
        needs: those of them that a recipe must have, each with what an error expects.
        per_image: whether each image has a file of its own, of the same name.
        is_numbered: whether its files number the classes themselves.
        is_vague: whether other files may look alike: they count only if they have the names of
            images.
        unannotated: what becomes of images without an annotation where the recipe doesn't say.
        propose: what a recipe says of a folder; None if the folder is none of the format.
        why_unread: the reason why nothing is proposed for a file, and what to do; ("", "") if it is
            none of the file.
    """

    key: str
    tool: str
    structure: str
    endings: Sequence[str]
    recognises: Callable[[str, bytes], bool]
    mark: Callable[[BoxKeys, AnnotatedImages], None]
    usage: Mapping[str, str] = {}
    keys: Sequence[str] = NUMBERING
    needs: Mapping[str, str] = {}
    per_image: bool = False
    is_numbered: bool = False
    is_vague: bool = False
    unannotated: str = "error"
    propose: Callable[[AnnotatedFolder], Proposed | None] | None = None
    why_unread: Callable[[Path], tuple[str, str]] | None = None

    @property
    def is_by_name(self) -> bool:
        """Whether its files name the images; otherwise files and folders have their names."""
        return bool(self.endings) and not self.per_image

    def propose_for(self, folder: AnnotatedFolder) -> Proposed | None:
        """The proposal for a folder: by default the files,
        or the folders of files that each image has.
        """
        if self.propose is not None:
            return self.propose(folder)
        if not folder.files:
            return None
        places = folders_of(folder.files) if self.per_image else sorted(folder.files)
        return Proposed({self.key: places}, folder.files)


_MOST_FOLDERS = 4
"""Folders that a recipe lists one by one, if one folder holds all of them."""


def folders_of(files: Sequence[str]) -> list[str]:
    """The folders of files; of many, the folder that holds all."""
    folders = sorted({name.rpartition("/")[0] or "." for name in files})
    common = os.path.commonpath(folders)
    return [common] if common and len(folders) > _MOST_FOLDERS else folders


def load_format(key: str) -> Format:
    """The format of a key of `boxes`."""
    module = importlib.import_module(f"{__name__}.{key}")
    box_format: Format = module.FORMAT
    return box_format


def all_formats() -> dict[str, Format]:
    """Every format by its key; imports all of their modules."""
    return {key: load_format(key) for key in FORMATS}
