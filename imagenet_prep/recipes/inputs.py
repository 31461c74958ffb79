"""Inputs: the files of a recipe's source, as they were listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import EMPTY
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed


def skipped_in_words(remarks: Remarks) -> list[str]:
    """The skipped files of a listing, a text for each reason; empty folders are not among them."""
    skipped: list[str] = []
    for reason, names in remarks.passed.items():
        if reason != EMPTY:
            skipped.append(f"skipped: {listed(names)} ({reason})")
    return skipped


class ManifestFile(Struct, frozen=True):
    """A manifest that is still to be made: ``names`` in their order, one a line.

    With ``paths``, by split, each split gets one of its own in its place. ``lead`` is what comes
    before the name of a file in the listing.
    """

    path: AnyPath
    names: tuple[str, ...]
    paths: Mapping[str, AnyPath] = {}
    lead: str = ""


class Inputs(Struct, frozen=True):
    """The files of a recipe.

    Args:
        listing: all of them; names are relative to ``base``, or to their archive.
        remarks: what there is to say of the listing.
        base: the folder they are in.
        origin: the folder, archive or manifest that the recipe names, for the record.
        is_ordered: whether their order is that of a manifest.
        has_folders: whether their folders may be classes and splits.
        manifest: one that is to be made of them.
        divided: the rows of each split, where manifests of their own say so.
        given: the splits that the source has, the first folders of all names.
        table: the labels that the source has, and where it is.
        marks: the boxes and masks that the source has; None if it can't have any.
        notes: what is not read, as text.
    """

    listing: Catalog
    remarks: Remarks
    base: Path
    origin: AnyPath
    is_ordered: bool = False
    has_folders: bool = False
    manifest: ManifestFile | None = None
    divided: Mapping[str, range] = {}
    given: Sequence[str] = ()
    table: tuple[LabelTable, AnyPath] | None = None
    marks: RowMarks | None = None
    notes: Sequence[str] = ()

    @property
    def obstacles(self) -> list[InputError]:
        """The obstacles found so far: raised together, so that one run names all of them."""
        return self.remarks.obstacles


def hint_on_hidden(paths: Sequence[str]) -> str:
    """The advice on hidden files; "" if there are none."""
    if not paths:
        return ""
    names = [path.rpartition("/")[2] for path in paths]
    if all(name.startswith("._") for name in names):
        return (
            f"macOS writes such files ({names[0]}) next to images, and they hold no image: copy "
            f"the images themselves, such as {names[0][2:]}"
        )
    return "a name that starts with a dot is hidden: rename the files or folders that you need"
