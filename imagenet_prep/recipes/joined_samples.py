"""Samples: images with the values next to them, listed from files that hold both;
and how several are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.folder_words import split_name
from imagenet_prep.recipes.label_cells import labels_of_cells, texts_if_mixed
from imagenet_prep.recipes.labels_file import LABELS, LabelTable
from imagenet_prep.recipes.recipe_lines import flow
from imagenet_prep.recipes.row_marks import RowMarks, join_marks
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.remarks import refuse_twice
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import one_of

_LABELS = (
    "cls",
    *LABELS,
    "labels",
    "classes",
    "target",
    "y",
    "image/class/label",
    "fine_label",
    "fine_labels",
)
"""Usual names of labels, the likeliest first."""


class Samples(Struct):
    """Images with the values next to them.

    Args:
        listing: the images; each is in a row.
        names: of the images, in the order of the values; the listing has its own.
        columns: the values of each column.
        words: by column of numbers, what the numbers stand for.
        class_names: the names of the classes by their numbers, where the words alone are not
            unique.
        label: the column that usually has the labels; None if none or several may.
        passed: what is not read, as text.
        lost: the same of what would be missed, such as boxes and masks.
        marks: the boxes of the images.
        doubt: the refusal of labels that are in other columns in other files, if no column is
            named.
    """

    listing: Catalog
    names: list[str]
    columns: dict[str, list[Any]]
    words: dict[str, dict[int, str]] = {}
    label: str | None = None
    passed: list[str] = []
    doubt: InputError | None = None
    class_names: dict[int, str] = {}
    lost: list[str] = []
    marks: RowMarks = RowMarks()

    def table(self, label: str | bool | None, path: AnyPath) -> LabelTable:
        """The samples as a labels file has them; ``label`` as in a recipe's `labels`.

        Raises:
            InputError: there is no such column, or none is named and the files differ.
        """
        if label is None and self.doubt:
            raise self.doubt
        name = self.label if label is None else label or None
        if name is not None and name not in self.columns:
            expected = f"expected {one_of(self.columns)}"
            if not self.columns:
                expected = "expected a column of texts or numbers, and it has none"
            problem = f"{path} has no column {name} that can be the labels"
            hint = "correct the name of the column, or take another one as `label`"
            raise InputError(problem, expected, hint)
        columns = dict(self.columns)
        labels: list[Any] | None = None
        if name:
            labels = labels_of_cells(columns.pop(str(name)))
        columns = {column: texts_if_mixed(cells) for column, cells in columns.items()}
        lines = range(1, len(self.names) + 1)
        words = self.words.get(str(name), {})
        class_names = self.class_names if words else {}
        return LabelTable(
            self.names,
            lines,
            labels,
            columns,
            is_text=False,
            words=words,
            of_samples=True,
            class_names=class_names,
        )

    def rename(self, change: Callable[[str], str]) -> None:
        """Change all names."""
        self.names = list(map(change, self.names))
        self.marks = self.marks.renamed(change)
        names_in_listing = map(change, self.listing.names)
        self.listing = replace(self.listing, names=Names.take(names_in_listing))


def join_samples(parts: Sequence[Samples]) -> Samples:
    """All samples of parts; a column that a part lacks has no values there."""
    columns: dict[str, list[Any]] = {name: [] for part in parts for name in part.columns}
    words: dict[str, dict[int, str]] = {}
    names: list[str] = []
    passed: dict[str, None] = {}
    lost: dict[str, None] = {}
    for part in parts:
        no_values = [None] * len(part.names)
        for name, column in columns.items():
            column += part.columns.get(name, no_values)
        _add_words(words, part, parts)
        names += part.names
        passed |= dict.fromkeys(part.passed)
        lost |= dict.fromkeys(part.lost)
    listing = refuse_twice(Catalog.join(part.listing for part in parts))
    label, doubt = _shared_label(parts)
    class_names = next((part.class_names for part in parts if part.class_names), {})
    marks = join_marks([part.marks for part in parts])
    return Samples(
        listing,
        names,
        columns,
        words,
        label,
        list(passed),
        doubt,
        class_names,
        list(lost),
        marks,
    )


def _add_words(words: dict[str, dict[int, str]], part: Samples, parts: Sequence[Samples]) -> None:
    """Add the words of the numbers of a part to those of the parts before it.

    Raises:
        InputError: a number stands for other words there.
    """
    for name, part_words in part.words.items():
        known_words = words.setdefault(name, {})
        for number, text in part_words.items():
            known_text = known_words.get(number, text)
            if known_text != text:
                known_part = next(
                    other for other in parts if other.words.get(name, {}).get(number) == known_text
                )
                path, known_path = (side.listing.containers[0].path for side in (part, known_part))
                raise InputError(
                    f"{name} {number} is {text} in {path}, but {known_text} in {known_path}",
                    "expected the same classes in all files",
                    "number the classes as in the other file, or write a recipe for each file",
                )
        known_words |= part_words


def _shared_label(parts: Sequence[Samples]) -> tuple[str | None, InputError | None]:
    """The column of labels that all parts have; or None, and the error for a recipe that names
    none.
    """
    doubt = next((part.doubt for part in parts if part.doubt), None)
    part_of_label = {part.label: part for part in parts if part.names}
    labels = list(part_of_label)
    if len(labels) == 1:
        return labels[0], doubt
    if not labels or doubt:
        return None, doubt
    statements: list[str] = []
    options: list[str] = []
    for label, part in part_of_label.items():
        path = part.listing.containers[0].path
        if label:
            statements.append(f"{path} has labels in {label}")
            options.append(f"label: {flow(label)}")
        else:
            statements.append(f"{path} has no column called label, class or the like")
    options.append("label: false")
    problem = " and ".join(statements)
    hint = (
        "give the columns of labels one name, or make a set of each file; or choose a column in "
        "the recipe's `source`, without labels for the other files: "
        f"{' or '.join(options)} (no labels)"
    )
    return None, InputError(problem, "expected labels in the same column of all files", hint)


def split_of(name: str) -> str:
    """The split that the words of a name, or of its folders, stand for; "" if none does."""
    for word in re.split(r"[^a-z0-9]+", name.lower()):
        if word.startswith("eval"):
            continue
        split = "test" if word == "t10k" else split_name(word)
        if split:
            return split
    return ""


def words_beside_split(name: str) -> list[str]:
    """The words of a name, except those that stand for splits:
    bedroom and lmdb for bedroom_train_lmdb.
    """
    return [word for word in re.split(r"[_\-.]+", name) if not split_of(word)]


def usual_label(columns: Iterable[str]) -> str | None:
    """The column that is called as labels usually are; None if there is none."""
    names = set(columns)
    return next((label for label in _LABELS if label in names), None)
