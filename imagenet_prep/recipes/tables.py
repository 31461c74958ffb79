"""Files that may label others -> the one that does, and what is to be said of the rest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.labels_file import (
    PATHS,
    Form,
    LabelsFault,
    LabelTable,
    form_of,
    match,
    parse_labels,
    texts_of,
    typed,
)

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
_LARGEST = 1 << 28
_MOST = 50  # files that are looked into
_NO_IMAGE = "names no image"


@dataclass(frozen=True, slots=True)
class Table:
    """A file of labels.

    Args:
        where: its path from the folder of the data.
        table: what it says.
        path: the column of paths, where that has no usual name.
        labels: the label of each file; None if there are none, or they can't be classes: numbers with a fraction can't.
    """

    where: str
    table: LabelTable
    path: str | None = None
    labels: list[int] | list[str] | None = None

    @property
    def has_labels(self) -> bool:
        """Whether it says which class a file is of."""
        return self.labels is not None


@dataclass(slots=True)
class Tables:
    """What was found: ``taken`` labels the files; ``passed`` says of others why they don't; ``half`` fit in part."""

    taken: Table | None = None
    passed: list[str] = field(default_factory=list)
    half: list[InputError] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def find_table(folder: Path, files: Sequence[tuple[str, int]], names: Collection[str], *, in_classes: bool) -> Tables:
    """The file of labels among ``files`` (name and size) and those beside ``folder`` that names every one of ``names``.

    Where folders are classes, a file without labels is not needed, and one that fits in part is passed over.
    """
    found = Tables()
    rows = {name: row for row, name in enumerate(names)}
    candidates = [name for name, size in files if name.lower().endswith(SUFFIXES) and size <= _LARGEST][:_MOST]
    for where in [*candidates, *_beside(folder)]:
        judged = _judge(folder, where, rows)
        if judged is None:
            continue
        found.seen.add(where)
        if isinstance(judged, InputError):
            found.half.append(judged)
        elif isinstance(judged, str):
            found.passed.append(f"{where}: {judged}")
        elif not judged.has_labels and in_classes:
            found.passed.append(
                f"{where}: has no labels; labels: {folder.resolve().name}/{where} in a recipe takes its columns"
            )
        elif found.taken is None or (judged.has_labels and not found.taken.has_labels):
            if found.taken is not None:
                found.passed.append(f"{found.taken.where}: {where} is taken")
            found.taken = judged
        else:
            found.passed.append(f"{where}: {found.taken.where} is taken")
    if found.taken is not None or in_classes:
        found.passed += [f"{error.what.removeprefix(f'{folder}/')}; {error.hint}" for error in found.half]
        found.half = []
    return found


def _beside(folder: Path) -> Iterator[str]:
    """Files of labels beside a folder, as the guides have them, whose first line begins with the folder's name."""
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay, as in names
    try:
        entries = sorted(os.scandir(home.parent), key=lambda each: each.name)
        for entry in entries:
            if entry.name.lower().endswith(SUFFIXES) and entry.is_file() and entry.stat().st_size <= _LARGEST:
                with Path(entry.path).open("rb") as file:
                    head = file.read(4096)
                if f"{home.name}/".encode() in head:
                    yield f"../{entry.name}"
    except OSError:
        return


def _judge(folder: Path, where: str, rows: Mapping[str, int]) -> Table | InputError | str | None:
    """A file as a table of labels of these files; why it fits in part, or not at all; None if it is no table."""
    form = form_of(where)
    try:
        content = (folder / where).read_bytes()
        columns = texts_of(content, form)
    except (LabelsFault, OSError, RecursionError):
        return None
    if form == "lines":
        table = _parsed(content, form, None)
        return None if table is None else _fitting(folder, where, table, None, rows)
    last = {name.rpartition("/")[2] for name in rows}
    usual = next((name for name in PATHS if name in columns), None)
    for column in sorted(columns, key=lambda name: name != usual):
        if any(text.rpartition("/")[2] in last for text in columns[column]):
            path = None if column == usual else column
            table = _parsed(content, form, path)
            fitting = None if table is None else _fitting(folder, where, table, path, rows)
            if fitting not in (None, _NO_IMAGE):
                return fitting
    return _by_stems(folder / where, columns.values(), rows)


def _parsed(content: bytes, form: Form, column: str | None) -> LabelTable | None:
    try:
        table = parse_labels(content, form, column)
    except LabelsFault:
        return None
    return table if table.paths else None


def _by_stems(path: Path, columns: Iterable[Sequence[str]], known: Collection[str]) -> InputError | str:
    """A table none of whose columns names files: perhaps one has the names without their endings."""
    bare = {name.rpartition("/")[2]: name for name in known}
    stems = {name.rpartition(".")[0]: name for name in bare}
    for texts in columns:
        if 2 * sum(text in stems for text in texts) >= len(known):
            first = next(text for text in texts if text in stems)
            return InputError(
                f"{path} names files without their endings",
                "expected the names of files",
                f"write {stems[first]} for {first}, and so on",
            )
    return _NO_IMAGE


def _fitting(
    folder: Path, where: str, table: LabelTable, column: str | None, rows: Mapping[str, int]
) -> Table | InputError | str:
    """The table, if its lines are those of all files; else what is wrong with it, and the choice there is."""
    home = os.path.abspath(folder)  # noqa: PTH100 - links stay, as in names
    hits = match(table.paths, rows, home, os.path.dirname(os.path.join(home, where)))  # noqa: PTH118, PTH120
    strange = hits.count(-1)
    named = len(set(hits)) - (strange > 0)
    lacking = len(rows) - named
    if not named:
        return _NO_IMAGE
    path, beginning = folder / where, f"labels: {{file: {folder.resolve().name}/{where}, "
    if lacking:
        what = f"{path} labels {named:,} of {len(rows):,} images"
        return InputError(what, "expected a line for each", f"{beginning}unlabelled: skip}} leaves the others out")
    if strange:
        what = f"{path} labels {strange:,} file{'s' * (strange > 1)} that are not there"
        return InputError(what, "expected files that are there", f"{beginning}missing: ignore}} passes over such lines")
    empty = sum(label is None for label in table.labels or ())
    if empty:
        what = f"{path} has {empty:,} line{'s' * (empty > 1)} without a label"
        return InputError(what, "expected one in each", f"{beginning}unlabelled: skip}} leaves such files out")
    return Table(where, table, column, _classes(table))


def _classes(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes."""
    with contextlib.suppress(LabelsFault):
        kind, values = typed(table.labels or (), table.lines if table.labels else (), table.is_text)
        if table.labels is not None and kind != "float" and not any(isinstance(value, list) for value in values):
            return values
    return None
