"""A file of a folder -> LabelsFile, how a recipe reads its labels, or LabelsRefusal: which line can't be, and why."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.recipes import labels_file
from imagenet_prep.recipes.labels_file import LABELS, LINES, PATHS, Form, LabelsFault, LabelTable, form_of
from imagenet_prep.text import number_of

_PROBED = 50  # lines that tell the form of a file
_FORMS: tuple[Form, ...] = ("lines", "csv", "tsv", "words")
_BREAKS = re.compile(r"[\s,;:|\"'=<>{}\[\]()]+")


class LabelsFile(Struct, frozen=True):
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


class LabelsRefusal(Struct, frozen=True):
    """A file that labels images, and can't be taken; ``is_most`` if it names at least half of them."""

    where: str
    error: InputError
    is_most: bool


def last_names(items: Iterable[str]) -> frozenset[str]:
    """The names of files without their folders, in lower case."""
    return frozenset(map(_last, items))


def judge_labels(
    folder: Path,
    where: str,
    items: Sequence[str],
    known: frozenset[str],
    several: str = "",
    *,
    needs_header: bool = False,
) -> LabelsFile | LabelsRefusal | None:
    """A file as labels of the images, whose ``last_names`` are known; None if it names no image.

    ``several``: how it gives an image more than one, as for ``parse_labels``. ``needs_header``: its first line must
    name columns.
    """
    path = _place(folder, where)
    try:
        content = path.read_bytes()
        reading = _probe(content, where, known, several)
        if needs_header and not reading.header:
            return None
        table = _parse(content, reading, known)
    except OSError:
        return None
    except LabelsFault as fault:
        if not mentions_half(path, known):
            return None
        hint = f"correct that line and run init again; or move {path} away"
        lines = None if several else judge_labels(folder, where, items, known, LINES)
        if isinstance(lines, LabelsFile) and lines.has_labels:
            hint += f"; or, if an image has several labels: {command('init', folder, (('as', 'several-labels'),))}"
        what = f"{path}, line {fault.line}: {fault.reason}"
        return LabelsRefusal(where, InputError(what, "expected a file and its label", hint), True)
    return None if table is None else _fit(folder, where, table, reading, items, known)


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


class _Form(Struct):
    """How a file is written; ``column`` is that of paths, ``path`` and ``label`` are what a recipe must name."""

    form: Form
    header: bool
    several: str
    path: str | None = None
    column: str = ""
    label: str | None = None

    def options(self, where: str, table: LabelTable) -> dict[str, str | bool]:
        """The keys of `labels` in a recipe, except for the name of the file."""
        has_columns = self.form in ("csv", "tsv")
        label = "1" if has_columns and not self.header and self.path == "2" and table.labels is not None else self.label
        found: dict[str, str | bool | None] = {
            "format": self.form if self.form != form_of(where) else None,
            "header": False if has_columns and not self.header else None,
            "path": self.path,
            "label": False if table.labels is not None and class_values(table) is None else label,
            "several": self.several or None,
        }
        return {key: value for key, value in found.items() if value is not None}


def _probe(content: bytes, where: str, known: frozenset[str], several: str) -> _Form:
    """The form in which most of the first lines name images, and whether the first line does."""
    usual = form_of(where)
    if usual == "jsonl":
        return _Form(usual, header=True, several=several)
    lines = (line for line in labels_file.open_text(content) if line.strip() and not labels_file.COMMENT.match(line))
    first = list(itertools.islice(lines, _PROBED))
    forms: Sequence[Form] = ("csv", "tsv") if usual == "csv" else ("tsv",) if usual == "tsv" else _FORMS
    hits = {form: [_names_image(line, form, known) for line in first] for form in forms}
    best = max(forms, key=lambda form: (sum(hits[form]), form == usual))
    return _Form(best, header=hits[best][:1] != [True], several=several)


def _names_image(line: str, form: Form, known: frozenset[str]) -> bool:
    if form in ("lines", "words"):
        path, label = labels_file.split_line(line, form)
        return bool(label) and _last(path) in known
    cells = line.split(labels_file.delimiter_of(line, form))
    return len(cells) > 1 and any(_last(cell.strip().strip('"')) in known for cell in cells)


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()


def _parse(content: bytes, reading: _Form, known: frozenset[str]) -> LabelTable | None:
    """The table, with the column that names most images as that of paths; None if no column names one.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    form, header, several = reading.form, reading.header, reading.several
    columns = labels_file.read_rows(content, form, header=header)[1]
    texts = {name: {value for value in values if isinstance(value, str)} for name, values in columns.items()}
    hits = {name: sum(_last(each) in known for each in values) for name, values in texts.items()}
    if not any(hits.values()):
        return None
    if form in ("lines", "words"):
        return labels_file.parse_labels(content, form, several=several) if hits["1"] else None
    usual = next((name for name in (PATHS if header else "1") if name in columns), None)
    best = max(columns, key=lambda name: (hits[name], name == usual))
    reading.column, reading.path = best, None if best == usual else best
    label: str | bool | None = None
    if not header and reading.path is not None:
        label = "1" if len(columns) == 2 else False
    if header and not set(LABELS) & set(columns):
        label = reading.label = next((name for name in columns if name.lower() in LABELS and name != best), None)
    table = labels_file.parse_labels(content, form, reading.path, label, header=header, several=several)
    if reading.label and class_values(table) is None:
        reading.label = None
        return labels_file.parse_labels(content, form, reading.path, several=several)
    return table


# whether its lines are those of the images ---------------------------------------------------------------------


def _fit(
    folder: Path, where: str, table: LabelTable, reading: _Form, items: Sequence[str], known: frozenset[str]
) -> LabelsFile | LabelsRefusal | None:
    """The table, if it names each image in a line and no other file; else what is wrong with it, and the choice."""
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay, as in names
    hits, names = labels_file.match(table.paths, items, home, home / where), set(items)
    inner = next((text for text in table.paths if "/" in text and text.removeprefix("./") in names), None)
    if inner and where.startswith("../"):  # convert would not find them, as its names start above the folder
        what = f"{_place(folder, where)} has paths from within {folder}, such as {inner}"
        error = InputError(what, "expected paths from its own folder", f"move it into {folder}")
        return LabelsRefusal(where, error, True)
    there = {hit for hit in hits if hit >= 0}
    options = reading.options(where, table)
    said = "".join(f"{key}: {value}, " for key, value in options.items())
    beginning = f"labels: {{file: {name_in_recipe(folder, where)}, {said}"
    fault = _fault(_place(folder, where), table, hits, items, beginning)
    if fault is None:
        return LabelsFile(where, table, options, reading.column, class_values(table), hits)
    is_most = 2 * len(there) >= len(items) or 2 * len(last_names(table.paths) & known) >= len(known)
    return LabelsRefusal(where, fault, is_most) if there or is_most else None


def _fault(
    path: Path, table: LabelTable, hits: Sequence[int], items: Sequence[str], beginning: str
) -> InputError | None:
    there = set(hits)
    strange = next((number for number, hit in enumerate(hits) if hit < 0), -1)
    text, line = (table.paths[strange], table.lines[strange]) if strange >= 0 else ("", 0)
    same = [name for name in items if strange >= 0 and _last(name) == _last(text)]
    if len(same) > 1:
        what = f"{path}, line {line}: {text} can be {' or '.join(same[:3])}"
        return InputError(what, "expected a path from the folder", f"write {same[0]} in place of {text}, and so on")
    if first := next((name for row, name in enumerate(items) if row not in there), ""):
        what = f"{path} labels {len(there - {-1}):,} of {len(items):,} images; no line names {first}"
        return InputError(what, "expected a line for each", f"{beginning}unlabelled: skip}} leaves the others out")
    if strange >= 0:
        count = number_of(sum(hit < 0 for hit in hits), "file that is", "files that are")
        what = f"{path} labels {count} not there: line {line} names {text}"
        return InputError(what, "expected files that are there", f"{beginning}missing: ignore}} skips such lines")
    empty = [line for label, line in zip(table.labels or (), table.lines, strict=False) if label is None]
    if empty:
        what = f"{path} has {number_of(len(empty), 'line')} without a label: line {empty[0]}"
        return InputError(what, "expected one in each", f"{beginning}unlabelled: skip}} leaves such files out")
    return None


def class_values(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes: in a list, each is once."""
    with contextlib.suppress(LabelsFault):
        kind, values = labels_file.typed(table.labels or (), table.lines if table.labels else (), table.is_text)
        lists = (value for value in values if isinstance(value, list))
        if table.labels is not None and kind != "float" and all(len(set(each)) == len(each) for each in lists):
            return values
    return None


def separator_of(values: Iterable[Any]) -> tuple[str, bool]:
    """The sign between several labels in the cells of a column, and whether that is sure; "" without a sign of several.

    A semicolon or a bar is sure if a part is in two cells; commas and spaces may be in the name of a class.
    """
    cells = {each for each in values if isinstance(each, str)}
    for sign in (";", "|", ",", " "):
        parts = [part.strip() for cell in cells for part in cell.split(sign)]
        if len(parts) > len(cells) and (sign in ";|" or len(cells) > len(set(parts))):
            return sign, sign in ";|" and len(parts) > len(set(parts))
    return "", False
