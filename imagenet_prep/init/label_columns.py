"""The columns of a table -> which of them can be classes,
one-hot classes or splits, by their names and values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.recipes.labels_file import LABELS, one_hot_columns
from imagenet_prep.recipes.splits import split_name

Columns = Mapping[str, Sequence[Any]]

_CLASSES = (
    *(
        "label",
        "class",
        "labels",
        "classes",
        "target",
        "category",
        "species",
        "breed",
        "diagnosis",
        "dx",
        "disease",
    ),
    *(
        "y",
        "variety",
        "type",
        "kind",
        "genus",
        "family",
        "grade",
        "level",
        "severity",
        "condition",
        "finding",
    ),
    *(
        "emotion",
        "expression",
        "gender",
        "sex",
        "style",
        "genre",
        "artist",
        "brand",
        "make",
        "model",
        "individual",
    ),
    *(
        "identity",
        "person",
        "tag",
        "tags",
        "answer",
        "ground_truth",
        "groundtruth",
        "gt",
        "annotation",
    ),
    *(
        "attribute",
        "attributes",
        "categories",
        "findings",
        "genres",
        "keywords",
        "classname",
        "labelname",
    ),
)
"""Words in the names of columns of classes, the likeliest first."""

_NO_CLASSES = frozenset(
    (
        *(
            "id",
            "ids",
            "idx",
            "index",
            "uuid",
            "guid",
            "key",
            "row",
            "number",
            "no",
            "nr",
            "num",
            "count",
        ),
        *(
            "path",
            "paths",
            "file",
            "filename",
            "filepath",
            "image",
            "img",
            "folder",
            "dir",
            "name_of_file",
        ),
        *(
            "width",
            "height",
            "size",
            "bytes",
            "resolution",
            "depth",
            "channels",
            "area",
            "w",
            "h",
            "filesize",
        ),
        *("split", "set", "subset", "fold", "partition", "usage", "phase"),
        *("date", "time", "datetime", "timestamp", "year", "month", "day", "created", "modified"),
        *(
            "url",
            "uri",
            "link",
            "href",
            "source_url",
            "license",
            "md5",
            "sha1",
            "sha256",
            "hash",
            "checksum",
        ),
        *(
            "lat",
            "latitude",
            "lon",
            "lng",
            "long",
            "longitude",
            "altitude",
            "gps",
            "coordinates",
            "location",
        ),
        *(
            "x",
            "y",
            "xmin",
            "ymin",
            "xmax",
            "ymax",
            "x1",
            "y1",
            "x2",
            "y2",
            "left",
            "top",
            "right",
            "bottom",
        ),
        *("bbox", "box", "cx", "cy", "xc", "yc", "x_min", "y_min", "x_max", "y_max"),
        *("caption", "text", "description", "comment", "comments", "notes", "title", "sentence"),
        *("confidence", "score", "probability", "prob", "weight", "conf"),
    )
)
"""Words in the names of columns that hold something else."""

_COORDINATE = re.compile(
    r"[xy][ _]?(min|max|c|center|[0-9])?|(min|max)[ _]?[xy]|left|top|right|bottom|bbox.*|box.*"
)
LARGEST_NUMBER = 100_000
"""Larger numbers are ids, not numbers of classes."""

_LONGEST = 120


class Candidate(Struct, frozen=True):
    """A column that can be the classes, or several that are one-hot.

    Args:
        columns: its name, or their names.
        classes: how many classes it gives.
        is_known: whether its name says that it holds classes.
        is_numeric: whether its values are numbers.
    """

    columns: tuple[str, ...]
    classes: int
    is_known: bool = False
    is_numeric: bool = False

    @property
    def is_hot(self) -> bool:
        """Whether each column is a class."""
        return len(self.columns) > 1

    @property
    def is_doubtful(self) -> bool:
        """Whether it may as well be a fact that is no class:
        numbers under a name that says nothing.
        """
        return self.is_numeric and not self.is_known

    @property
    def option(self) -> str:
        """The value of --label."""
        return ",".join(self.columns)


def class_candidates(columns: Columns, path: str) -> list[Candidate]:
    """The columns that can be classes, the likeliest first; ``path`` is the column of paths."""
    others = {name: values for name, values in columns.items() if name != path}
    hot = [
        name
        for name in one_hot_columns(others)
        if _rank(name, others) >= len(_CLASSES) or _is_absence(name)
    ]
    candidates: list[Candidate] = []
    if len(hot) > 1:
        candidates.append(Candidate(tuple(hot), len(hot), is_known=_is_exclusive(others, hot)))
    boxes = _coordinates(others)
    taken = {*boxes, *(hot if candidates else ())}
    plain = {name: values for name, values in others.items() if name not in taken}
    for are_ids in (False, True):
        for name, values in plain.items():
            if _is_id(name) == are_ids and _may_be_classes(name, values, others):
                candidates.append(_candidate(name, values, others))
        if candidates:  # ids, as of landmarks, are classes if no other column is
            break
    return sorted(candidates, key=lambda candidate: _order(candidate, others))


def _candidate(name: str, values: Sequence[Any], columns: Columns) -> Candidate:
    distinct = _distinct(values)
    return Candidate(
        (name,), len(distinct), _rank(name, columns) < len(_CLASSES), all(map(_is_number, distinct))
    )


def _is_absence(name: str) -> bool:
    """Whether a column is called No Finding, or the like:
    a class of its own next to one-hot ones.
    """
    return _words(name)[:1] == ["no"] and len(_words(name)) == 2


def _is_id(name: str) -> bool:
    """Whether a column is called landmark_id, or the like."""
    words = _words(name)
    return len(words) > 1 and words[-1] == "id" and not set(words) & set(_CLASSES)


def distinct_candidates(candidates: Sequence[Candidate], columns: Columns) -> list[Candidate]:
    """The candidates without those that only name the classes of an earlier one otherwise;
    numbers come first then.
    """
    kept: list[Candidate] = []
    for candidate in candidates:
        place = next(
            (place for place, other in enumerate(kept) if _is_same(candidate, other, columns)), None
        )
        if place is None:
            kept.append(candidate)
        elif all(map(_is_number, columns[candidate.columns[0]])):
            kept[place] = candidate
    return kept


def _is_same(candidate: Candidate, other: Candidate, columns: Columns) -> bool:
    """Whether two columns give the same images the same classes, under other names."""
    if candidate.is_hot or other.is_hot or candidate.classes != other.classes:
        return False
    pairs = set(zip(columns[candidate.columns[0]], columns[other.columns[0]], strict=True))
    return len(pairs) == candidate.classes


def usual_column(columns: Columns, path: str) -> str | None:
    """The column that is called label or class, in any case."""
    names = [name for name in columns if name != path]
    exact = next((name for name in LABELS if name in names), None)
    return exact or next((name for name in names if name.lower() in LABELS), None)


class SplitColumn(Struct, frozen=True):
    """A column that says which split an image is of.

    Args:
        name: what it is called.
        splits: the split of each value.
        is_sure: whether words say so; numbers may mean something else.
    """

    name: str
    splits: Mapping[str, str]
    is_sure: bool = True

    @property
    def is_usual(self) -> bool:
        """Whether all values are names of splits, which a recipe need not explain."""
        return all(split_name(value) == split for value, split in self.splits.items())


def split_column(columns: Columns, asked: Mapping[str, str]) -> SplitColumn | None:
    """The column of splits: that whose values are ``asked`` for,
    by split, or whose name or values say so.
    """
    named_first = sorted(columns, key=lambda name: not _is_named_split(name)) if asked else columns
    found = (_as_splits(name, columns[name], asked) for name in named_first)
    return next((column for column in found if column is not None), None)


def _is_named_split(name: str) -> bool:
    """Whether a column is called as splits are."""
    words = _words(name)
    return bool(
        {*words, " ".join(words)}
        & {"split", "set", "subset", "partition", "usage", "phase", "data set"}
    )


def _as_splits(name: str, values: Sequence[Any], asked: Mapping[str, str]) -> SplitColumn | None:
    """A column as one of splits; None if it is none."""
    distinct = {str(value) for value in values if value is not None}
    if asked:
        is_asked = set(asked.values()) <= distinct
        return (
            SplitColumn(name, {value: split for split, value in asked.items()})
            if is_asked
            else None
        )
    if len(distinct) < 2 or len(distinct) > _MOST_SPLITS:
        return None
    words = _words(name)
    lower = {value: value.lower() for value in distinct}
    if (
        words[:1] == ["is"]
        and len(words) == 2
        and words[1] in _YES
        and set(lower.values()) <= {*_TRUE, *_FALSE}
    ):
        yes, no = _YES[words[1]]
        return SplitColumn(
            name, {value: yes if word in _TRUE else no for value, word in lower.items()}
        )
    known = {
        value: _WORDS_OF_SPLITS.get(word) or split_name(value) for value, word in lower.items()
    }
    if all(known.values()) and len(set(known.values())) == len(known) and "train" in known.values():
        return SplitColumn(name, dict(sorted(known.items())))
    numbers = sorted(distinct)
    if _is_named_split(name) and numbers in (
        ["0", "1"],
        ["0", "1", "2"],
        ["1", "2"],
        ["1", "2", "3"],
    ):
        names = ("train", "validation", "test") if len(numbers) == 3 else ("train", "test")
        return SplitColumn(name, dict(zip(numbers, names, strict=True)), is_sure=False)
    return None


_MOST_SPLITS = 12
_WORDS_OF_SPLITS = {
    "trn": "train",
    "tr": "train",
    "vld": "validation",
    "tst": "test",
    "te": "test",
    "va": "validation",
}
_TRUE, _FALSE = frozenset(("1", "true", "yes")), frozenset(("0", "false", "no"))
_YES = {
    "valid": ("validation", "train"),
    "val": ("validation", "train"),
    "validation": ("validation", "train"),
    "test": ("test", "train"),
    "train": ("train", "test"),
    "training": ("train", "test"),
}
"""The splits that yes and no mean in a column such as is_valid."""


def names_beside(columns: Columns, label: str) -> str | None:
    """The column of texts that names each number of a column of labels, one to one."""
    numbers = columns[label]
    if not all(_is_number(value) for value in numbers):
        return None
    for name, values in columns.items():
        if name == label or any(
            not isinstance(value, str) or _is_number(value) for value in values
        ):
            continue
        pairs = set(zip(numbers, values, strict=True))
        if len(pairs) > 1 and len(pairs) == len(set(numbers)) == len(set(values)) < len(values):
            return name
    return None


def _order(candidate: Candidate, columns: Columns) -> tuple[int, int, int]:
    rank = (
        _rank(candidate.columns[0], columns)
        if not candidate.is_hot
        else len(_CLASSES) - candidate.is_known
    )
    is_text = any(
        isinstance(value, str) and not _is_number(value) for value in columns[candidate.columns[0]]
    )
    return rank, int(not is_text), candidate.classes


def _rank(name: str, columns: Columns) -> int:
    """The place of a name among those of columns of classes;
    their number, if it is none of them.
    """
    words = _words(name)
    if name.lower() == "y" and "x" in {other.lower() for other in columns}:
        return len(_CLASSES)
    places = [_CLASSES.index(word) for word in (*words, "_".join(words)) if word in _CLASSES]
    return min(places, default=len(_CLASSES))


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def _may_be_classes(name: str, values: Sequence[Any], columns: Columns) -> bool:
    if any(isinstance(value, (list, dict, float)) for value in values):
        return False
    distinct = _distinct(values)
    if len(distinct) < 2:
        return False
    if any(isinstance(value, str) and len(value) > _LONGEST for value in distinct):
        return False
    if any(_is_fraction(value) for value in distinct):
        return False
    if _rank(name, columns) < len(_CLASSES):
        return len(distinct) < len(values) or len(values) < 3 or bool(separator_of(values)[0])
    if (
        all(_is_number(value) for value in distinct)
        and max(abs(int(value)) for value in distinct) > LARGEST_NUMBER
    ):
        return False
    if (
        len(_words(name)) == 1 and name.lower() == "id"
    ):  # of the classes, as other columns name the files
        return len(distinct) < len(values)
    words = _words(name)
    if set(words[:-1] if _is_id(name) else words) & _NO_CLASSES:
        return False
    return 2 * len(distinct) <= len(values)


def _distinct(values: Sequence[Any]) -> set[Any]:
    return {
        str(value) if isinstance(value, (list, dict)) else value
        for value in values
        if value is not None
    }


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return bool(re.fullmatch(r"-?\d{1,18}", value))
    return isinstance(value, int)


def _is_fraction(value: Any) -> bool:
    if not isinstance(value, str) or re.fullmatch(r"-?\d+\.0+", value):
        return False
    return bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", value))


def _is_exclusive(columns: Columns, hot: Sequence[str]) -> bool:
    """Whether each row has a 1 in just one of the columns."""
    rows = zip(*(columns[name] for name in hot), strict=True)
    return all(
        sum(str(value).lower() in ("1", "1.0", "true", "yes") for value in row) == 1 for row in rows
    )


def _coordinates(columns: Columns) -> set[str]:
    """The columns of numbers that are corners of boxes:
    by their names, or as two pairs, one above the other.
    """
    numbers = [
        name
        for name, values in columns.items()
        if values and all(_is_real(value) for value in values)
    ]
    named = {name for name in numbers if _COORDINATE.fullmatch(name.lower())}
    found = named if len(named) > 1 else set()
    for place in range(len(numbers) - 3):
        four = numbers[place : place + 4]
        left, top, right, bottom = ([float(value) for value in columns[name]] for name in four)
        is_box = all(a < b for a, b in zip(left, right, strict=True))
        if is_box and all(a < b for a, b in zip(top, bottom, strict=True)):
            found.update(four)
    return found


def _is_real(value: Any) -> bool:
    if isinstance(value, str):
        return bool(re.fullmatch(r"-?\d+(\.\d+)?", value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def separator_of(values: Iterable[Any]) -> tuple[str, bool]:
    """The sign between several labels in the cells of a column, and whether that is sure; ""
    without a sign of several.

    A semicolon or a bar is sure if a part is in two cells; commas and spaces may be in the name of
    a class.
    """
    cells = {each for each in values if isinstance(each, str)}
    for sign in (";", "|", ",", " "):
        parts = [part.strip() for cell in cells for part in cell.split(sign)]
        if len(parts) > len(cells) and (sign in ";|" or len(cells) > len(set(parts))):
            return sign, sign in ";|" and len(parts) > len(set(parts))
    return "", False
