"""Files that init writes next to a recipe and that it names:
lists of splits and of classes, and a table of labels.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.refusals import refuse_existing, writing

TABLE = "labels.csv"
"""The end of the name of a table of labels."""

CLASSES = "classes.txt"
"""The end of the name of a list of classes."""


def list_end(split: str) -> str:
    """The end of the name of a split's list."""
    return f"{split}.txt"


def written_file(recipe: Path, end: str) -> Path:
    """The file next to a recipe: flowers-train.txt for flowers.yaml."""
    return recipe.with_name(f"{recipe.stem}-{end}")


def written_path(recipe: Path, end: str) -> str:
    """The path of that file in the recipe."""
    path = written_file(recipe, end)
    return path.resolve().as_posix() if "DATAPATH" in os.environ else path.name


def contents_of(
    recipe: Path, lists: Mapping[str, Sequence[str]], labels: Mapping[str, str]
) -> dict[Path, bytes]:
    """The content of each file.

    Args:
        recipe: the recipe.
        lists: by split the names of its images.
        labels: the class of each image, by its path from the recipe.
    """
    files = {
        written_file(recipe, list_end(split)): "".join(f"{name}\n" for name in names).encode()
        for split, names in lists.items()
    }
    if labels:
        stream = io.StringIO()
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("filename", "label"))
        table.writerows(labels.items())
        files[written_file(recipe, TABLE)] = stream.getvalue().encode()
    return files


@contextlib.contextmanager
def saved(files: Mapping[Path, bytes]) -> Iterator[None]:
    """Write the files of a recipe, and remove them again if it can't be used.

    Raises:
        UsageError: one of them exists.
    """
    for path in files:
        refuse_existing(path)
    try:
        for path, content in files.items():
            with writing(path):
                save_bytes(path, content)
        yield
    except BaseException:
        for path in files:
            path.unlink(missing_ok=True)
        raise
