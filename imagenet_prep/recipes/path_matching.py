"""match: paths as a table has them -> the rows of the files that they mean."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from imagenet_prep.recipes.path_parts import composed
from imagenet_prep.storage.location import AnyPath


def match(
    paths: Sequence[str],
    names: Iterable[str],
    base: AnyPath,
    table: AnyPath,
    strip: str | None = None,
) -> list[int]:
    """The row of the file that each path of a ``table`` means, -1 for none; ``names`` are those of
    the files.

    ``strip`` is taken off the paths first.

    Paths are relative to the source (``base``), or to the folder of the table, or to a folder there
    that has the name of the table, or the first or last word of it (train.csv, train_labels.csv),
    or bare names, else relative to a folder above: that above the labels file, or above the source.
    Then comes what follows the folders that all paths start with, as another machine had them;
    last, a path of folders that ends the name of one file alone. The first way that finds any file
    counts, with letters as they are, then in any case; then the same without the files' endings, as
    VOC's ImageSets have names, and without any: 1.dcm was made 1.png.
    """
    source_folder = os.path.normpath(str(base))
    table_folder = os.path.normpath(str(table.parent))
    file_names = list(names)
    if strip:
        paths = [path.removeprefix(strip) for path in paths]
    if not all(map(str.isascii, file_names)):
        composed_names = list(map(composed, file_names))
        if len(set(composed_names)) == len(set(file_names)):
            file_names = composed_names
            paths = list(map(composed, paths))
            source_folder, table_folder = composed(source_folder), composed(table_folder)
    table_stem = without_ending(table.name)
    stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", table_stem)
    for (cut_name, cut_path), spell in itertools.product(_CUTS, _SPELLINGS):
        texts = [spell(cut_path(path)) for path in paths]
        spelled_names = [spell(cut_name(name)) for name in file_names]
        base_text = spell(source_folder)
        near_text = spell(table_folder)
        finders = _finders(spelled_names, base_text, near_text, texts, spell(stem))
        for find_row in finders:
            rows = [find_row(text) for text in texts]
            if max(rows, default=-1) >= 0:
                return rows
    return [-1] * len(paths)


def _finders(
    names: Sequence[str], base: str, near: str, paths: Sequence[str], stem: str
) -> Iterator[Callable[[str], int]]:
    """Functions that find the row that a path means, one after the other;
    ``stem`` is the name of the table, ``near`` its folder.
    """
    rows = unique_rows(names)

    def from_folder(folder: object, lead: str = "") -> Callable[[str], int]:
        def find(text: str) -> int:
            path = text.removeprefix(lead)
            if path[:1] != "/":
                path = os.path.normpath(f"{folder}/{path}")
            return rows.get(path.removeprefix(f"{base}/"), -1)

        return find

    yield lambda text: rows.get(text.removeprefix("./"), -1)
    yield from_folder(near)
    words = re.split(r"[\W_]+", stem)
    top_folders = {name.partition("/")[0] for name in names if "/" in name}
    for word in dict.fromkeys((stem, words[0], words[-1])):
        if word in top_folders:
            yield from_folder(f"{base}/{word}")
        if near != base:
            yield from_folder(f"{near}/{word}")
    bare_rows = unique_rows(name.rpartition("/")[2] for name in names)
    yield lambda text: bare_rows.get(text, -1)
    yield from_folder(Path(near).parent)
    yield from_folder(Path(base).parent)
    for lead in _shared_leads(paths):
        yield from_folder(base, lead)
        yield from_folder(near, lead)
    yield _finder_by_ends(names, paths)


def _shared_leads(paths: Sequence[str]) -> Iterator[str]:
    """The folders that all paths start with, with a slash: the first one, the first two, and so
    on.
    """
    *lowest_folders, _ = min(paths, default="").split("/")
    *highest_folders, _ = max(paths, default="").split("/")
    lead = ""
    for folder, other_folder in zip(lowest_folders, highest_folders, strict=False):
        if folder != other_folder:
            return
        lead += f"{folder}/"
        yield lead


def folders_to_strip(paths: Sequence[str], names: Iterable[str]) -> str:
    """The folders that all paths start with, and without which some end the names of files; "" for
    none.
    """
    ends: set[str] = set()
    for name in names:
        parts = name.split("/")
        ends.update("/".join(parts[place:]) for place in range(len(parts)))
    for folders in _shared_leads(paths):
        if any(path.removeprefix(folders) in ends for path in paths):
            return folders
    return ""


def _finder_by_ends(names: Sequence[str], paths: Sequence[str]) -> Callable[[str], int]:
    """Finds the only file whose name ends with a path of folders."""
    depths = {path.count("/") for path in paths if "/" in path}
    rows_by_depth: dict[int, dict[str, int]] = {}
    for depth in depths:
        parts_of_names = (name.split("/") for name in names)
        ends = ("/".join(parts[-depth - 1 :]) for parts in parts_of_names)
        rows_by_depth[depth] = unique_rows(ends)

    def find(text: str) -> int:
        if "/" not in text:
            return -1
        depth = text.count("/")
        return rows_by_depth[depth].get(text, -1)

    return find


def unique_rows(names: Iterable[str]) -> dict[str, int]:
    """The row of each name, -1 for one that several have."""
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        rows[name] = -1 if name in rows else row
    return rows


def without_ending(name: str) -> str:
    """The path of a file without its ending."""
    stem, _, _ = name.rpartition(".")
    return stem or name


def _as_is(path: str) -> str:
    return path


def _folded(path: str) -> str:
    with_slashes = path.replace("\\", "/")
    return with_slashes.lower()


_Change = Callable[[str], str]

_CUTS: tuple[tuple[_Change, _Change], ...] = (
    (_as_is, _as_is),
    (without_ending, _as_is),
    (without_ending, without_ending),
)
"""The changes of file names and of paths, tried in turn until any file matches."""

_SPELLINGS: tuple[_Change, ...] = (str, _folded)
"""The same for the letters of both."""
