"""A file of a folder -> LabelsFile, how a recipe reads its labels, or LabelsRefusal: which line can't be, and why."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes import labels_file
from imagenet_prep.recipes.asked import Asked
from imagenet_prep.recipes.joined_tables import join_tables
from imagenet_prep.recipes.label_columns import (
    Candidate,
    Columns,
    SplitColumn,
    class_candidates,
    distinct_candidates,
    names_beside,
    split_column,
    usual_column,
)
from imagenet_prep.recipes.labels_file import LABELS, LINES, PATHS, Form, LabelsFault, LabelTable, form_of
from imagenet_prep.recipes.splits import split_name
from imagenet_prep.text import listed, number_of

_NOTHING = Asked()
_PROBED = 50  # lines that tell the form of a file
_FORMS: tuple[Form, ...] = ("lines", "csv", "tsv", "words", "spaces")
_COLUMNS = ("csv", "tsv", "spaces")
_BREAKS = re.compile(r"[\s,;:|\"'=<>{}\[\]()]+")


class LabelsFile(Struct, frozen=True):
    """A labels file that names images.

    Args:
        where: its path from the folder of the data.
        table: what it says.
        options: what a recipe must say of it, except its name.
        column: what the column of paths is called, for messages.
        labels: the label of each line; None if there are none, or they can't be classes: numbers with a fraction can't.
        rows: which image each line names; -1: none.
        label: the column of labels, or those of one-hot labels, as --label has them; "" for none.
        candidates: the columns that can be the classes, where none of them is taken; the likeliest first.
        images: the columns that name images equally well, if there are several.
        names: the name of each class, by its number, where another column has them.
        lost: the images and lines that have no counterpart, an error each.
        is_most: whether it names at least half of the images.
        files: the files of each split, where it is several.
        splits: the column of splits.
    """

    where: str
    table: LabelTable
    options: Mapping[str, Any]
    column: str
    labels: list[Any] | None
    rows: Sequence[int]
    label: str = ""
    candidates: Sequence[Candidate] = ()
    images: Sequence[str] = ()
    names: Mapping[str, str] = {}
    lost: Sequence[InputError] = ()
    is_most: bool = True
    files: Mapping[str, Sequence[str]] = {}
    splits: SplitColumn | None = None

    @property
    def has_labels(self) -> bool:
        """Whether it says which class a file is of."""
        return self.labels is not None

    @property
    def labelled(self) -> int:
        """How many images it gives a class."""
        return len(self.label_by_row())

    @property
    def classes(self) -> int:
        """How many classes it gives."""
        return len({str(label) for label in labels_file.flat_labels(self.label_by_row().values())})

    def label_by_row(self) -> dict[int, Any]:
        """The label of each image that has one."""
        pairs = zip(self.rows, self.labels or (), strict=False)
        return {row: label for row, label in pairs if row >= 0 and label is not None}

    @property
    def is_of_test(self) -> bool:
        """Whether it lists images of a test, whose labels are not known: test.csv, or an example of a submission."""
        name = self.where.rpartition("/")[2].lower()
        return "submission" in name or (not self.has_labels and "test" in name)

    @property
    def places(self) -> list[str]:
        """All its files."""
        return [name for names in self.files.values() for name in names] or [self.where]

    @property
    def place(self) -> str:
        """The name of the file, or of the first ones, for messages."""
        return listed(self.places)


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
    asked: Asked = _NOTHING,
    is_cut: bool = False,
) -> LabelsFile | LabelsRefusal | None:
    """A file as labels of the images, whose ``last_names`` are known; None if it names no image.

    ``several``: how it gives an image more than one, as for ``parse_labels``. ``needs_header``: its first line must
    name columns. ``asked``: the columns that the user names. ``is_cut``: paths
    count without their endings, as the known names are.
    """
    path = _place(folder, where)
    try:
        content = path.read_bytes()
        reading = _probe(content, where, known, several)
        if needs_header and not reading.header:
            return None
        table = _parse(content, reading, known, asked, where, is_cut=is_cut)
    except OSError:
        return None
    except LabelsFault as fault:
        if form_of(where) == "json" or not mentions_half(path, known):
            return None
        hint = f"correct that line and run init again; or move {path} away"
        what = f"{path}, line {fault.line}: {fault.reason}"
        error = InputError(what, "expected a file and its label", hint)
        lines = None if several else judge_labels(folder, where, items, known, LINES, asked=asked)
        if isinstance(lines, LabelsFile) and lines.has_labels and not lines.lost:
            hint += "; or, if an image has several labels, run the command below"
            ways = f"{lines.labelled:,} of {len(items):,} images, {number_of(lines.classes, 'class', 'classes')}"
            error = InputError(what, "expected a file and its label", hint)
            error = error.with_choices([f"  {ways}: {asked.command(folder, **{'as': 'several-labels'})}"])
        return LabelsRefusal(where, error, True)
    if table is None or (form_of(where) == "json" and table.labels is None):
        return None  # a document of another sort
    return _fit(folder, where, table, reading, items, known, asked)


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
    label: str | bool | None = None
    one_hot: Sequence[str] = ()
    splits: SplitColumn | None = None
    taken: str = ""
    candidates: Sequence[Candidate] = ()
    images: Sequence[str] = ()
    names: Mapping[str, str] = {}

    @property
    def split(self) -> str | None:
        """The column that a recipe must name as that of splits."""
        return self.splits.name if self.splits is not None and self.splits.is_sure else None

    def options(self, where: str) -> dict[str, Any]:
        """The keys of `labels` in a recipe, except for the name of the file."""
        has_columns = self.form in _COLUMNS
        found: dict[str, Any] = {
            "format": self.form if self.form != form_of(where) else None,
            "header": False if has_columns and not self.header else None,
            "path": self.path,
            "label": self.label,
            "one_hot": list(self.one_hot) or None,
            "split": self.split,
            "several": self.several or None,
        }
        return {key: value for key, value in found.items() if value is not None}


def _probe(content: bytes, where: str, known: frozenset[str], several: str) -> _Form:
    """The form in which most of the first lines name images, and whether the first line does."""
    usual = form_of(where)
    if usual in ("jsonl", "json"):
        return _Form(usual, header=True, several=several)
    lines = (line for line in labels_file.open_text(content) if line.strip() and not labels_file.COMMENT.match(line))
    first = list(itertools.islice(lines, _PROBED))
    forms: Sequence[Form] = ("csv", "tsv") if usual == "csv" else ("tsv",) if usual == "tsv" else _FORMS
    hits = {form: [_names_image(line, form, known) for line in first] for form in forms}
    best = max(forms, key=lambda form: (sum(hits[form]), form == usual))
    is_wide = any(len(line.split()) > 2 for line in first)
    if best == "words" and (is_wide or first[0].strip().isdigit()) and _are_even(first):
        best = "spaces"
    is_counted = best == "spaces" and first[0].strip().isdigit()
    return _Form(best, header=hits[best][is_counted : is_counted + 1] != [True], several=several)


def _are_even(lines: Sequence[str]) -> bool:
    """Whether all lines have as many words, except for a count and a header at the start."""
    counts = {len(line.split()) for line in lines[2:]}
    return len(counts) == 1 and min(counts) > 1


def _names_image(line: str, form: Form, known: frozenset[str]) -> bool:
    if form in ("lines", "words"):
        path, label = labels_file.split_line(line, form)
        return bool(label) and _last(path) in known
    cells = line.split() if form == "spaces" else line.split(labels_file.delimiter_of(line, form))
    return len(cells) > 1 and any(_last(cell.strip().strip('"')) in known for cell in cells)


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()


def _parse(
    content: bytes, reading: _Form, known: frozenset[str], asked: Asked, where: str, *, is_cut: bool = False
) -> LabelTable | None:
    """The table, with the column that names most images as that of paths; None if no column names one.

    Raises:
        LabelsFault: a line can't be understood, or a path occurs twice.
    """
    form, header, several = reading.form, reading.header, reading.several
    columns = labels_file.read_rows(content, form, header=header)[1]
    hits = {name: _count_images(values, known, is_cut=is_cut) for name, values in columns.items()}
    if not any(hits.values()):
        return None
    if form in ("lines", "words"):
        table = labels_file.parse_labels(content, form, several=several) if hits["1"] else None
        reading.label = False if table is not None and class_values(table) is None else None
        return table
    _choose_paths(reading, columns, hits, asked)
    _choose_labels(reading, columns, asked, where)
    table = _table(content, reading)
    if isinstance(reading.label, str) or reading.label is None:
        if reading.taken and class_values(table) is None and not reading.one_hot:
            reading.label, reading.taken, reading.names = False, "", {}
            table = _table(content, reading)
    return table


def _table(content: bytes, reading: _Form) -> LabelTable:
    return labels_file.parse_labels(
        content,
        reading.form,
        reading.path,
        reading.label,
        header=reading.header,
        several=reading.several if reading.taken else "",
        one_hot=reading.one_hot,
        split=reading.split,
    )


def _count_images(values: Iterable[Any], known: frozenset[str], *, is_cut: bool) -> int:
    """How many different images a column names."""
    texts = {value for value in values if isinstance(value, str)}
    if is_cut:
        cut = {labels_file.without_ending(text) for text in texts}
        texts = cut - texts
    return sum(_last(text) in known for text in texts)


def _choose_paths(reading: _Form, columns: Columns, hits: Mapping[str, int], asked: Asked) -> None:
    """Take the column that names most images; those that name half as many are other ways to read the table."""
    usual = next((name for name in (PATHS if reading.header else "1") if name in columns), None)
    best = max(columns, key=lambda name: (hits[name], name == usual))
    if asked.image in columns and hits.get(asked.image or ""):
        assert asked.image is not None
        best = asked.image
    elif best != usual or not reading.header:
        rivals = [name for name in columns if 2 * hits[name] >= hits[best]]
        reading.images = rivals if len(rivals) > 1 else ()
    reading.column, reading.path = best, None if best == usual else best


def _choose_labels(reading: _Form, columns: Columns, asked: Asked, where: str) -> None:
    """Take the column of labels: the one that is asked for, the one that is called so, or the only one that can be."""
    others = {name: values for name, values in columns.items() if name not in {reading.column, *reading.images}}
    reading.splits = split_column(others, asked.splits)
    if reading.splits is not None:
        others.pop(reading.splits.name)
    if "submission" in where.rpartition("/")[2].lower():
        reading.label = False  # an example of what to hand in: its labels are no more than that
        return
    if asked.label is not None:
        place, sign, wanted = asked.label.rpartition(":")
        is_other = bool(sign) and place != where and family_of(place) != family_of(where)
        names = [wanted] if wanted in columns else wanted.split(",")
        if not is_other and set(names) <= columns.keys():
            _take(reading, columns, names)
            return
        if asked.label != where:
            reading.label = False
            return
    usual = usual_column(others, reading.column) if reading.header else None
    if usual is None and not reading.header and len(columns) == 2 and reading.path is None:
        usual = "2"
    if usual is not None:
        _take(reading, others, [usual])
        return
    candidates = distinct_candidates(class_candidates(others, reading.column), others)
    reading.label = False
    if len(candidates) == 1 and not candidates[0].is_doubtful:
        _take(reading, others, candidates[0].columns)
    else:
        reading.candidates = candidates


def _take(reading: _Form, columns: Columns, names: Sequence[str]) -> None:
    """Take a column as that of labels, or several as one-hot."""
    reading.taken = ",".join(names)
    if len(names) > 1:
        reading.one_hot, reading.label = names, None
        return
    name = names[0]
    default = next((usual for usual in LABELS if usual in columns), None) if reading.header else None
    if not reading.header and reading.path is None:
        default = "2"
    reading.label = None if name == default else name
    if beside := names_beside(columns, name):
        pairs = zip(columns[name], columns[beside], strict=True)
        reading.names = {str(number): text for number, text in sorted(pairs, key=lambda pair: int(pair[0]))}


# whether its lines are those of the images ---------------------------------------------------------------------


def _fit(
    folder: Path,
    where: str,
    table: LabelTable,
    reading: _Form,
    items: Sequence[str],
    known: frozenset[str],
    asked: Asked,
) -> LabelsFile | LabelsRefusal | None:
    """The table with what it lacks; a refusal, if its paths can't be understood; None if it names no image."""
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay, as in names
    hits, names = labels_file.match(table.paths, items, home, home / where, asked.strip), set(items)
    inner = next((text for text in table.paths if "/" in text and text.removeprefix("./") in names), None)
    if inner and where.startswith("../"):  # convert would not find them, as its names start above the folder
        what = f"{_place(folder, where)} has paths from within {folder}, such as {inner}"
        error = InputError(what, "expected paths from its own folder", f"move it into {folder}")
        return LabelsRefusal(where, error, True)
    there = {hit for hit in hits if hit >= 0}
    is_named = bool(asked.label) and bool(there) and reading.taken != ""
    is_most = 2 * len(there) >= len(items) or is_named
    could_be = 2 * len(last_names(table.paths) & known) >= len(known)
    path = _place(folder, where)
    if not is_most and could_be and "submission" not in where.lower() and len(there) < len(table.paths):
        error = _unmatched(path, folder, table, hits, items, asked)
        return LabelsRefusal(where, error, True)
    if not there:
        return None
    labels = class_values(table)
    lost, skips = _losses(path, table, hits, items)
    options = {**reading.options(where), **skips}
    column, label = reading.column, reading.taken
    return LabelsFile(
        where,
        table,
        options,
        column,
        labels,
        hits,
        label=label,
        candidates=reading.candidates,
        images=reading.images,
        names=reading.names,
        lost=lost,
        is_most=is_most,
        splits=reading.splits,
    )


def _unmatched(
    path: Path, folder: Path, table: LabelTable, hits: Sequence[int], items: Sequence[str], asked: Asked
) -> InputError:
    """The error for a table whose files have the names of the images, and whose paths are others."""
    number = next(number for number, hit in enumerate(hits) if hit < 0)
    text, line = table.paths[number], table.lines[number]
    place = table.place(path, line)
    if prefix := _foreign_prefix(table.paths, items):
        count = sum(name.startswith(prefix) for name in table.paths)
        error = InputError(f"{place}: {text} is a path of another folder", "expected paths from the folder")
        is_whole = count == len(items) == len(table.paths)
        options: dict[str, object] = {"strip": prefix} if is_whole else {"as": "with-labels", "strip": prefix}
        return error.with_choices([f"  {count:,} of {len(items):,} images: {asked.command(folder, **options)}"])
    same = [name for name in items if _last(name) == _last(text)]
    if len(same) > 1:
        what = f"{place}: {text} can be {' or '.join(same[:3])}"
        return InputError(what, "expected a path from the folder", f"write {same[0]} in place of {text}, and so on")
    first = same[0] if same else items[0]
    return InputError(f"{place}: {text} is not there", "expected a path from the folder", f"write {first}, for example")


def _foreign_prefix(paths: Sequence[str], items: Sequence[str]) -> str:
    """What precedes the names of images in most paths; "" if less than half of the images come of it."""
    found: Counter[str] = Counter()
    by_last: dict[str, list[str]] = {}
    for item in items:
        by_last.setdefault(_last(item), []).append(item)
    for path in paths:
        for item in by_last.get(_last(path), ()):
            if path.endswith(f"/{item}"):
                found[path.removesuffix(item)] += 1
    if not found:
        return ""
    prefix, count = found.most_common(1)[0]
    return prefix if 2 * count >= len(items) else ""


def _losses(
    path: Path, table: LabelTable, hits: Sequence[int], items: Sequence[str]
) -> tuple[list[InputError], dict[str, str]]:
    """The images without a line, the lines without an image or a label; and the keys of a recipe that skip them."""
    lost: list[InputError] = []
    skips: dict[str, str] = {}
    there = set(hits) - {-1}
    unnamed = [name for row, name in enumerate(items) if row not in there]
    if unnamed:
        what = f"{path} labels {len(there):,} of {len(items):,} images; no line names {unnamed[0]}"
        lost.append(InputError(what, "expected a line for each"))
        skips["unlabelled"] = "skip"
    missing = [number for number, hit in enumerate(hits) if hit < 0]
    if missing:
        count = number_of(len(missing), "file that is", "files that are")
        place = table.place("", table.lines[missing[0]]).lstrip(", ")
        what = f"{path} labels {count} not there: {place} names {table.paths[missing[0]]}"
        lost.append(InputError(what, "expected files that are there"))
        skips["missing"] = "ignore"
    rows = zip(hits, table.labels or (), table.lines, strict=False)
    empty = [line for hit, label, line in rows if hit >= 0 and label is None]
    if empty:
        place = table.place("", empty[0]).lstrip(", ")
        what = f"{path} has {number_of(len(empty), 'line')} without a label: {place}"
        lost.append(InputError(what, "expected one in each"))
        skips["unlabelled"] = "skip"
    return lost, skips


def join_by_split(folder: Path, files: Sequence[LabelsFile], items: Sequence[str]) -> list[LabelsFile]:
    """The files of several splits as one each, if they name different images: by what else their names say."""
    families: dict[tuple[object, ...], list[tuple[str, LabelsFile]]] = {}
    for file in files:
        split = split_in(file.where)
        if split and file.table.splits is None:
            plain = {key: value for key, value in file.options.items() if key not in _SKIPS}
            family = (file.has_labels, file.label, str(plain), family_of(file.where))
            families.setdefault(family, []).append((split, file))
    several = {key: parts for key, parts in families.items() if len({split for split, _ in parts}) > 1}
    groups: dict[tuple[object, ...], list[tuple[str, LabelsFile]]] = {}
    for key, parts in several.items():
        groups.setdefault(key[:3], []).extend(parts)
    joined = []
    for key, group in groups.items():
        if _are_apart(group):
            joined.append(_joined(folder, group, items))
            continue
        apart = (parts for family, parts in several.items() if family[:3] == key and _are_apart(parts))
        joined += [_joined(folder, parts, items) for parts in apart]
    return joined


_SKIPS = ("unlabelled", "missing")


def _are_apart(parts: Sequence[tuple[str, LabelsFile]]) -> bool:
    """Whether no image is in two files."""
    rows = [row for _, file in parts for row in file.rows if row >= 0]
    return len(rows) == len(set(rows))


def _joined(folder: Path, parts: Sequence[tuple[str, LabelsFile]], items: Sequence[str]) -> LabelsFile:
    """The files of several splits as one."""
    order = ["train", "validation", "test"]
    ordered = sorted(parts, key=lambda part: (order.index(part[0]), part[1].where))
    first = ordered[0][1]
    table = join_tables([(split, file.table, _place(folder, file.where)) for split, file in ordered])
    rows = [row for _, file in ordered for row in file.rows]
    lost, skips = _losses(_place(folder, first.where), table, rows, items)
    options = {key: value for key, value in first.options.items() if key not in _SKIPS}
    names: dict[str, str] = {}
    files: dict[str, list[str]] = {}
    for split, file in ordered:
        names |= file.names
        files.setdefault(split, []).append(file.where)
    labels = class_values(table)
    is_named = {str(label) for label in labels or ()} <= names.keys()
    return replace(
        first,
        table=table,
        options={**options, **skips},
        labels=labels,
        rows=rows,
        names=dict(sorted(names.items())) if is_named else {},
        lost=lost,
        is_most=2 * len({*rows} - {-1}) >= len(items),
        files=files,
    )


def split_in(where: str) -> str:
    """The split that the name of a file, or of its folder, says."""
    splits = [split_name(word) for word in _words_of(where) if split_name(word)]
    return splits[-1] if splits else ""


def family_of(where: str) -> tuple[str, ...]:
    """What the path of a file says beside its split: files of several splits have it in common."""
    return tuple(word.lower() for word in _words_of(where) if not split_name(word))


def _words_of(where: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", where.rpartition(".")[0] or where)
    return re.split(r"[\W_\d]+", spaced)


def class_values(table: LabelTable) -> list[Any] | None:
    """The labels of a table, if they can be classes: in a list, each is once."""
    with contextlib.suppress(LabelsFault):
        kind, values = labels_file.typed(table.labels or (), table.lines if table.labels else (), table.is_text)
        lists = (value for value in values if isinstance(value, list))
        if table.labels is not None and kind != "float" and all(len(set(each)) == len(each) for each in lists):
            return values
    return None
