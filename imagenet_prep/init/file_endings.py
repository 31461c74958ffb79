"""Endings of files: which may be labels files, hold data, or be packed."""

from __future__ import annotations

from imagenet_prep.recipes.path_parts import suffix_of

WITH_COLUMNS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson")
"""Endings of files in which images may be named without their endings:
other texts hold such words by chance.
"""

TABLES = (*WITH_COLUMNS, ".txt", ".lst", ".list")
"""Endings of files that may be labels files; a file without an ending may be one, too."""

DATA = (
    *(".json", ".xml", ".yaml", ".yml", ".mat", ".pkl", ".pickle", ".h5", ".hdf5", ".cls", *TABLES),
    *(".xlsx", ".xls", ".ods", ".db", ".sqlite", ".sqlite3", ".pt", ".pth"),
)
"""Endings of files that may hold labels or annotations."""

ARCHIVES = (
    *(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".gz", ".bz2", ".xz", ".zst", ".zip"),
    *(".7z", ".rar"),
)
"""Endings of files that can be unpacked."""

PACKED = (
    *(ending for ending in ARCHIVES if ending != ".tar"),
    *(".parquet", ".arrow", ".feather", ".tfrecord", ".tfrecords", ".lmdb", ".mdb", ".rec"),
    ".beton",
)
"""Endings of files that may hold images, and that no structure reads."""

MOST_READ = 50
"""How many files of one ending are read."""

LARGEST_TEXT = 1 << 28
"""Larger files are not read as texts."""


def ending_of(name: str) -> str:
    """The ending of a file's name; "" for all names without one, which are one group."""
    suffix = suffix_of(name)
    return suffix if suffix.startswith(".") else ""


def count_folders(name: str) -> int:
    """How many folders a file is in, by its name: those near the folder of the data come first."""
    return name.count("/")
