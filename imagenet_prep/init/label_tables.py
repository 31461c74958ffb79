"""LabelsFile: how a recipe reads the labels of a file; LabelsRefusal: why it can't."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.init.label_columns import Candidate
from imagenet_prep.init.split_columns import SplitColumn
from imagenet_prep.recipes.labels_file import NO_LABEL, LabelTable
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.recipes.typed_values import flat_labels
from imagenet_prep.text import listed


class LabelsFile(Struct, frozen=True):
    """A labels file that names images.

    Args:
        name: its path from the folder of the data.
        table: what it says.
        options: what a recipe must say of it, except its name.
        column: what the column of paths is called, for messages.
        labels: the label of each line; None if there are none, or they can't be classes: numbers
            with a fraction can't.
        rows: which image each line names; -1: none.
        label: the column of labels, or those of one-hot labels, as --label has them; "" for none.
        candidates: the columns that can be the classes, where none of them is taken; the likeliest
            first.
        image_columns: the columns that name images equally well, if there are several.
        class_names: the name of each class, by its number, where another column has them.
        losses: the images and lines that have no counterpart, an error each.
        is_most: whether it names at least half of the images.
        files: the files of each split, where it is several.
        splits: the column of splits.
    """

    name: str
    table: LabelTable
    options: Mapping[str, Any]
    column: str
    labels: list[Any] | None
    rows: Sequence[int]
    label: str = ""
    candidates: Sequence[Candidate] = ()
    image_columns: Sequence[str] = ()
    class_names: Mapping[str, str] = {}
    losses: Sequence[InputError] = ()
    is_most: bool = True
    files: Mapping[str, Sequence[str]] = {}
    splits: SplitColumn | None = None

    @property
    def has_labels(self) -> bool:
        """Whether it says which class a file is of."""
        return self.labels is not None

    @property
    def named_rows(self) -> set[int]:
        """The images that it names."""
        return {*self.rows} - {-1}

    @property
    def labelled(self) -> int:
        """How many images it gives a class."""
        return sum(label != NO_LABEL for label in self.label_by_row().values())

    @property
    def classes(self) -> int:
        """How many classes it gives."""
        labels = set(flat_labels(self.label_by_row().values()))
        return len({str(label) for label in labels - {NO_LABEL}})

    def undivided_rows(self) -> set[int]:
        """The images that it gives no split, where it has splits."""
        divided = zip(self.rows, self.table.splits or (), strict=False)
        return {row for row, split in divided if split is None}

    def label_by_row(self) -> dict[int, Any]:
        """The label of each image that has one, and is in a split if there are splits."""
        skipped_rows = self.undivided_rows() | {-1}
        pairs = zip(self.rows, self.labels or (), strict=False)
        return {row: label for row, label in pairs if label is not None and row not in skipped_rows}

    @property
    def split_names(self) -> list[str]:
        """The splits that its files or the values of a column say;
        none if it says nothing of splits.
        """
        if self.files:
            return list(self.files)
        if self.splits is None or not self.splits.is_sure:
            return []
        return list(self.splits.splits.values())

    @property
    def is_of_test(self) -> bool:
        """Whether it lists images of a test, whose labels are not known:
        test.csv, or an example of a submission.
        """
        file_name = base_name(self.name).lower()
        return "submission" in file_name or (not self.has_labels and "test" in file_name)

    @property
    def places(self) -> list[str]:
        """All its files."""
        return [name for names in self.files.values() for name in names] or [self.name]

    @property
    def place(self) -> str:
        """The name of the file, or of the first ones, for messages."""
        return listed(self.places)


class LabelsRefusal(Struct, frozen=True):
    """A file that labels images, and can't be taken;
    ``is_most`` if it names at least half of them.
    """

    name: str
    error: InputError
    is_most: bool


Judgement = LabelsFile | LabelsRefusal | None
"""A file as labels of images; None if it names none."""
