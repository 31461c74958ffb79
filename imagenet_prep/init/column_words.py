"""Words in the names of columns: which mean classes, and which mean something else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Columns = Mapping[str, Sequence[Any]]
"""The columns of a table, by their names."""

_IN_NAMES_OF_CLASSES = """
label class labels classes target category species breed diagnosis dx disease
y variety type kind genus family grade level severity condition finding
emotion expression gender sex style genre artist brand make model individual
identity person tag tags answer ground_truth groundtruth gt annotation
attribute attributes categories findings genres keywords classname labelname
"""
_CLASS_WORDS = tuple(_IN_NAMES_OF_CLASSES.split())
"""Words in the names of columns of classes, the likeliest first."""

NO_CLASS = len(_CLASS_WORDS)
"""The rank of the names of all other columns."""

_IN_OTHER_NAMES = """
id ids idx index uuid guid key row number no nr num count
path paths file filename filepath image img folder dir name_of_file
width height size bytes resolution depth channels area w h filesize
split set subset fold partition usage phase
date time datetime timestamp year month day created modified
url uri link href source_url license md5 sha1 sha256 hash checksum
lat latitude lon lng long longitude altitude gps coordinates location
x y xmin ymin xmax ymax x1 y1 x2 y2 left top right bottom
bbox box cx cy xc yc x_min y_min x_max y_max
caption text description comment comments notes title sentence
confidence score probability prob weight conf
"""
_OTHER_WORDS = frozenset(_IN_OTHER_NAMES.split())
"""Words in the names of columns that hold something else."""


def words_of(name: str) -> list[str]:
    """The words of a column's name, in lower case: pet, breed for petBreed."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def rank_of(name: str, columns: Columns) -> int:
    """The place of a name among those of columns of classes;
    their number, if it is none of them.
    """
    if name.lower() == "y" and "x" in {other.lower() for other in columns}:
        return NO_CLASS
    words = words_of(name)
    ranks = [_CLASS_WORDS.index(word) for word in (*words, "_".join(words)) if word in _CLASS_WORDS]
    return min(ranks, default=NO_CLASS)


def is_absence(name: str) -> bool:
    """Whether a column is called No Finding, or the like:
    a class of its own next to one-hot ones.
    """
    words = words_of(name)
    return len(words) == 2 and words[0] == "no"


def is_id(name: str) -> bool:
    """Whether a column is called landmark_id, or the like."""
    words = words_of(name)
    return len(words) > 1 and words[-1] == "id" and set(words).isdisjoint(_CLASS_WORDS)


def says_no_class(name: str) -> bool:
    """Whether a word of a column's name, except for that of an id, means something else."""
    words = words_of(name)
    if is_id(name):
        words.pop()
    return not _OTHER_WORDS.isdisjoint(words)
