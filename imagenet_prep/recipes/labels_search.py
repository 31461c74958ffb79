"""A file of a folder -> LabelsFile, how a recipe reads its labels, or LabelsRefusal: which line can't be, and why."""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.recipes.labels_file import (
    LABELS,
    LINES,
    PATHS,
    Form,
    LabelsFault,
    LabelTable,
    delimiter_of,
    form_of,
    match,
    open_text,
    parse_labels,
    read_rows,
    split_line,
    typed,
)
from imagenet_prep.recipes.splits import stem_of

_PROBED = 50  # lines that tell the form of a file
_FORMS: tuple[Form, ...] = ("lines", "csv", "tsv", "words")
_BREAKS = re.compile(r"[\s,;:|\"'=<>{}\[\]()]+")


@dataclass(frozen=True, slots=True)
class LabelsFile:
    """A labels file that names every image.

    Args:
        where: its path from the folder of the data.
        table: what it says.
        options: what a recipe must say of it, except its name.
        column: what the column of paths is called, for messages.
        labels: the label of each line; None if there are none, or they can't be classes: numbers with a fraction can't.
        rows: which image each line names.
    """

    where: str
    table: LabelTable
    options: Mapping[str, str | bool]
    column: str
    labels: list[Any] | None
    rows: Sequence[int]

    @property
    def has_labels(self) -> bool:
        """Whether it says which class a file is of."""
        return self.labels is not None


@dataclass(frozen=True, slots=True)
class LabelsRefusal:
    """A file that labels images, and can't be taken; ``is_most`` if it names at least half of them."""

    where: str
    error: InputError
    is_most: bool


def last_names(items: Iterable[str]) -> frozenset[str]:
    """The names of files without their folders, in lower case."""
    return frozenset(map(_last, items))


def judge_labels(
    folder: Path, where: str, items: Sequence[str], known: frozenset[str], several: str = ""
) -> LabelsFile | LabelsRefusal | None:
    """A file as labels of the images, whose ``last_names`` are known; None if it names no image.

    ``several``: how it gives an image more than one, as for ``parse_labels``.
    """
    path = _place(folder, where)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    reading: _Form | None = None
    try:
        reading = _probe(content, where, known)
        reading.several = several
        table = _parse(content, reading, known)
    except (LabelsFault, RecursionError) as fault:
        line = fault.line if isinstance(fault, LabelsFault) else 1
        reason = fault.reason if isinstance(fault, LabelsFault) else "values are nested too deep"
        if not mentions_half(path, known):
            return None
        hint = f"correct that line and run init again; or move {path} away"
        lines = None if several else judge_labels(folder, where, items, known, LINES)
        if isinstance(lines, LabelsFile) and lines.has_labels:
            hint += f"; or, if an image has several labels: {command('init', folder, (('as', 'several-labels'),))}"
        return LabelsRefusal(
            where, InputError(f"{path}, line {line}: {reason}", "expected a file and its label", hint), True
        )
    if table is None:
        return _by_stems(path, where, content, reading, items)
    return _fit(folder, where, table, reading, items, known)


def mentions_half(path: Path, known: frozenset[str]) -> bool:
    """Whether a text contains at least half of the names of images."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    text = _text(content)
    words = {word.rpartition("/")[2] for word in _BREAKS.split(text)}
    if known and 2 * len(words & known) >= len(known):
        return True
    broken = _broken(known)
    return bool(broken) and 2 * sum(name in text for name in broken) >= len(broken)


def mentions(content: bytes, names: frozenset[str]) -> bool:
    """Whether a text contains one of these paths without a folder before it."""
    text = _text(content)
    words = (word.removeprefix("./") for word in _BREAKS.split(text))
    return not names.isdisjoint(words) or any(name in text and f"/{name}" not in text for name in _broken(names))


def _text(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return content.decode(encoding, "replace").lower().replace("\\", "/")


def _broken(names: Iterable[str]) -> list[str]:
    """The first names, if they are several words."""
    return [name for name in heapq.nsmallest(_PROBED, names) if _BREAKS.search(name)]


def name_in_recipe(folder: Path, where: str) -> str:
    """The name of a labels file in a recipe above the folder."""
    return os.path.normpath(f"{folder.resolve().name}/{where}")


def _place(folder: Path, where: str) -> Path:
    return Path(os.path.normpath(folder / where))


# how a file is written -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Form:
    form: Form
    header: bool = True
    path: str | None = None
    column: str = ""
    label: str | None = None
    several: str = ""


def _probe(content: bytes, where: str, known: frozenset[str]) -> _Form:
    """The form in which most of the first lines name images, and whether the first line does."""
    if form_of(where) == "jsonl":
        return _Form("jsonl")
    lines = []
    for line in open_text(content):
        if line.strip() and not line.startswith("# ") and line.strip() != "#":
            lines.append(line)
        if len(lines) == _PROBED:
            break
    forms = ("csv", "tsv") if form_of(where) == "csv" else ("tsv",) if form_of(where) == "tsv" else _FORMS
    hits = {form: [_names_image(line, form, known) for line in lines] for form in forms}
    best = max(forms, key=lambda form: sum(hits[form]))
    if not sum(hits[best]):
        best = form_of(where)
    return _Form(best, header=not (best in hits and hits[best][:1] == [True]))


def _names_image(line: str, form: Form, known: frozenset[str]) -> bool:
    if form in ("lines", "words"):
        path, label = split_line(line, form)
        return bool(label) and _last(path) in known
    cells = line.split(delimiter_of(line, form))
    return len(cells) > 1 and any(_last(cell.strip().strip('"')) in known for cell in cells)


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()


def _parse(content: bytes, reading: _Form, known: frozenset[str]) -> LabelTable | None:
    """The table, with the column that names most images as that of paths; None if no column names one.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    if reading.form in ("lines", "words"):
        table = parse_labels(content, reading.form, several=reading.several)
        return table if any(_last(path) in known for path in table.paths) else None
    columns = read_rows(content, reading.form, header=reading.header)[1]
    hits = {
        name: sum(_last(each) in known for each in {value for value in values if isinstance(value, str)})
        for name, values in columns.items()
    }
    if not any(hits.values()):
        return None
    usual = next((name for name in PATHS if name in columns), None)
    best = max(columns, key=lambda name: (hits[name], name == usual))
    reading.column = best
    reading.path = None if best == (usual if reading.header else "1") else best
    label: str | bool | None = None
    if not reading.header and reading.path is not None:
        label = "1" if len(columns) == 2 else False
    if reading.header and not set(LABELS) & set(columns):
        label = reading.label = next((name for name in columns if name.lower() in LABELS and name != best), None)
    several = reading.several
    table = parse_labels(content, reading.form, reading.path, label, header=reading.header, several=several)
    if reading.label and class_values(table) is None:
        reading.label = None
        return parse_labels(content, reading.form, reading.path, several=several)
    return table


def _by_stems(path: Path, where: str, content: bytes, reading: _Form, items: Sequence[str]) -> LabelsRefusal | None:
    """A table none of whose columns names files: perhaps one has the names without their endings."""
    stems, columns = {stem_of(name): name for name in items}, list[Sequence[Any]]()
    with contextlib.suppress(LabelsFault):
        if reading.form in ("lines", "words"):
            forms: tuple[Form, ...] = ("lines", "words")
            columns += [[split_line(line, form)[0] for line in open_text(content)] for form in forms]
        else:
            columns += read_rows(content, reading.form, header=reading.header)[1].values()
    for texts in columns:
        found = [text for text in texts if isinstance(text, str) and text.rpartition("/")[2] in stems]
        if 2 * len({text.rpartition("/")[2] for text in found}) >= len(items):
            what, first = f"{path} names files without their endings", found[0]
            hint = f"write {stems[first.rpartition('/')[2]]} for {first}, and so on"
            return LabelsRefusal(where, InputError(what, "expected the names of files", hint), True)
    return None


# whether its lines are those of the images ---------------------------------------------------------------------


def _fit(
    folder: Path, where: str, table: LabelTable, reading: _Form, items: Sequence[str], known: frozenset[str]
) -> LabelsFile | LabelsRefusal | None:
    """The table, if it names each image in a line and no other file; else what is wrong with it, and the choice."""
    home = os.path.abspath(folder)  # noqa: PTH100 - links stay, as in names
    rows = {name: row for row, name in enumerate(items)}
    hits = match(table.paths, rows, home, os.path.dirname(os.path.join(home, where)))  # noqa: PTH118, PTH120
    inner = next((text for text in table.paths if "/" in text and text.removeprefix("./") in rows), None)
    if inner and where.startswith("../"):  # convert would not find them, as its names start above the folder
        what = f"{_place(folder, where)} has paths from within {folder}, such as {inner}"
        error = InputError(what, "expected paths from its own folder", f"move it into {folder}")
        return LabelsRefusal(where, error, True)
    named = len({hit for hit in hits if hit >= 0})
    is_most = 2 * named >= len(items)
    options = _options(where, table, reading)
    said = ", ".join(f"{key}: {value}" for key, value in options.items())
    beginning = f"labels: {{file: {name_in_recipe(folder, where)}, {said}{', ' if said else ''}"
    fault = _fault(_place(folder, where), table, hits, items, named, beginning)
    if fault is not None:
        is_most = is_most or 2 * len(last_names(table.paths) & known) >= len(known)
        return LabelsRefusal(where, fault, is_most) if named or is_most else None
    return LabelsFile(where, table, options, reading.column, class_values(table), hits)


def _options(where: str, table: LabelTable, reading: _Form) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    if reading.form != form_of(where):
        found["format"] = reading.form
    if not reading.header and reading.form in ("csv", "tsv"):
        found["header"] = False
        if reading.path == "2" and table.labels is not None:
            found["label"] = "1"
    if reading.path is not None:
        found["path"] = reading.path
    if reading.label is not None:
        found["label"] = reading.label
    if reading.several:
        found["several"] = reading.several
    if table.labels is not None and class_values(table) is None:
        found["label"] = False
    return found


def _fault(
    path: Path, table: LabelTable, hits: Sequence[int], items: Sequence[str], named: int, beginning: str
) -> InputError | None:
    strange = [number for number, hit in enumerate(hits) if hit < 0]
    if strange:
        text, line = table.paths[strange[0]], table.lines[strange[0]]
        same = [name for name in items if _last(name) == _last(text)]
        if len(same) > 1:
            what = f"{path}, line {line}: {text} can be {' or '.join(same[:3])}"
            return InputError(what, "expected a path from the folder", f"write {same[0]} in place of {text}, and so on")
    if named < len(items):
        there = {hit for hit in hits if hit >= 0}
        first = next(name for row, name in enumerate(items) if row not in there)
        what = f"{path} labels {named:,} of {len(items):,} images; no line names {first}"
        return InputError(what, "expected a line for each", f"{beginning}unlabelled: skip}} leaves the others out")
    if strange:
        what = f"{path} labels {len(strange):,} file{'s' * (len(strange) > 1)} that are not there"
        what += f": line {line} names {text}"
        return InputError(what, "expected files that are there", f"{beginning}missing: ignore}} skips such lines")
    empty = [line for label, line in zip(table.labels or (), table.lines, strict=False) if label is None]
    if empty:
        what = f"{path} has {len(empty):,} line{'s' * (len(empty) > 1)} without a label: line {empty[0]}"
        return InputError(what, "expected one in each", f"{beginning}unlabelled: skip}} leaves such files out")
    return None


def class_values(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes: in a list, each is once."""
    with contextlib.suppress(LabelsFault):
        kind, values = typed(table.labels or (), table.lines if table.labels else (), table.is_text)
        lists = (value for value in values if isinstance(value, list))
        if table.labels is not None and kind != "float" and all(len(set(each)) == len(each) for each in lists):
            return values
    return None


def separator_of(table: LabelTable) -> tuple[str, bool]:
    """The sign between several labels in the cells of a table, and whether that is sure; "" without a sign of several.

    A semicolon or a bar is sure if a part is in two cells; commas and spaces may be in the name of a class.
    """
    cells = {each for each in table.labels or () if isinstance(each, str)}
    for sign in (";", "|", ",", " "):
        parts = [part.strip() for cell in cells for part in cell.split(sign)]
        if len(parts) > len(cells) and (sign in ";|" or len(cells) > len(set(parts))):
            return sign, sign in ";|" and len(parts) > len(set(parts))
    return "", False
