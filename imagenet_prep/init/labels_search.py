"""A file of a folder -> LabelsFile, how a recipe reads its labels, or LabelsRefusal:
which line can't be, and why.
"""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.label_columns import Candidate, SplitColumn
from imagenet_prep.init.table_forms import (
    Sought,
    TableForm,
    class_values,
    last_name,
    parse_table,
    probe_form,
)
from imagenet_prep.recipes import path_matching, typed_values
from imagenet_prep.recipes.joined_tables import family_of, join_tables, split_in, spread
from imagenet_prep.recipes.labels_file import LINES, LabelsFault, LabelTable, form_of
from imagenet_prep.recipes.splits import place_of_split
from imagenet_prep.text import listed, number_of

_PROBED = 50  # names that are sought in a text
_BREAKS = re.compile(r"[\s,;:|\"'=<>{}\[\]()]+")


class LabelsFile(Struct, frozen=True):
    """A labels file that names images.

    Args:
        where: its path from the folder of the data.
        table: what it says.
        options: what a recipe must say of it, except its name.
        column: what the column of paths is called, for messages.
        labels: the label of each line; None if there are none, or they can't be classes: numbers
        with a fraction can't. rows: which image each line names; -1: none.
        label: the column of labels, or those of one-hot labels, as --label has them; "" for none.
        candidates: the columns that can be the classes, where none of them is taken; the likeliest
        first. images: the columns that name images equally well, if there are several.
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
        return len({str(label) for label in typed_values.flat_labels(self.label_by_row().values())})

    def label_by_row(self) -> dict[int, Any]:
        """The label of each image that has one, and is in a split if there are splits."""
        pairs = zip(self.rows, self.labels or (), strict=False)
        undivided = {
            row
            for row, split in zip(self.rows, self.table.splits or (), strict=False)
            if split is None
        }
        return {
            row: label
            for row, label in pairs
            if row >= 0 and label is not None and row not in undivided
        }

    @property
    def split_names(self) -> list[str]:
        """The splits that its files or the values of a column say;
        none if it says nothing of splits.
        """
        if self.files:
            return list(self.files)
        return (
            list(self.splits.splits.values())
            if self.splits is not None and self.splits.is_sure
            else []
        )

    @property
    def is_of_test(self) -> bool:
        """Whether it lists images of a test, whose labels are not known:
        test.csv, or an example of a submission.
        """
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
    """A file that labels images, and can't be taken;
    ``is_most`` if it names at least half of them.
    """

    where: str
    error: InputError
    is_most: bool


Judgement = LabelsFile | LabelsRefusal | None
"""What a file is as labels of images; None if it names none."""


def last_names(items: Iterable[str]) -> frozenset[str]:
    """The names of files without their folders, in lower case."""
    return frozenset(map(last_name, items))


def judge_labels(
    sought: Sought, where: str, several: str = "", *, needs_header: bool = False
) -> Judgement:
    """A file as labels of images; None if it names none.

    ``several``: how it gives an image more than one, as for ``parse_labels``. ``needs_header``: its
    first line must name columns.
    """
    path = _place(sought.folder, where)
    try:
        content = path.read_bytes()
        reading = probe_form(content, where, sought.known, several)
        if needs_header and not reading.header:
            return None
        table = parse_table(content, reading, where, sought)
    except OSError:
        return None
    except LabelsFault as fault:
        if (
            form_of(where) == "json"
            or _is_of_one_column(content, where)
            or not mentions_half(path, sought.known)
        ):
            return None
        return LabelsRefusal(where, _wrong_line(sought, where, fault, several), True)
    if table is None or (form_of(where) == "json" and table.labels is None):
        return None  # a document of another sort
    return _fit(sought, where, table, reading)


def _is_of_one_column(content: bytes, where: str) -> bool:
    """Whether a CSV is no more than a list of names."""
    return form_of(where) == "csv" and not any(sign in content for sign in (b",", b";", b"\t"))


def _wrong_line(sought: Sought, where: str, fault: LabelsFault, several: str) -> InputError:
    """The error for a line that can't be understood;
    and the command, if the lines give images several labels.
    """
    path = _place(sought.folder, where)
    what = f"{path}, line {fault.line}: {fault.reason}"
    hint = f"correct that line and run init again; or move {path} away"
    lines = None if several else judge_labels(sought, where, LINES)
    if not isinstance(lines, LabelsFile) or not lines.has_labels or lines.lost:
        return InputError(what, "expected a file and its label", hint)
    hint += "; or, if an image has several labels, run the command below"
    counts = (
        f"{lines.labelled:,} of {len(sought.items):,} images, "
        f"{number_of(lines.classes, 'class', 'classes')}"
    )
    choice = f"  {counts}: {sought.options.command(sought.folder, **{'as': 'several-labels'})}"
    return InputError(what, "expected a file and its label", hint).with_choices([choice])


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
    return not names.isdisjoint(words) or any(
        name in text and f"/{name}" not in text for name in _broken(names)
    )


def _text(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return content.decode(encoding, "replace").lower().replace("\\", "/")


def _broken(names: Iterable[str]) -> list[str]:
    """The first names, if they are several words."""
    return [name for name in heapq.nsmallest(_PROBED, names) if _BREAKS.search(name)]


def _place(folder: Path, where: str) -> Path:
    return Path(os.path.normpath(folder / where))


# whether its lines are those of the images --------------------------------------------------------


def _fit(
    sought: Sought, where: str, table: LabelTable, reading: TableForm
) -> LabelsFile | LabelsRefusal | None:
    """The table with what it lacks; a refusal, if its paths can't be understood;
    None if it names no image.
    """
    folder, items = sought.folder, sought.items
    table = spread(table, items)
    home = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay, as in names
    hits, names = (
        path_matching.match(table.paths, items, home, home / where, sought.options.strip),
        set(items),
    )
    inner = next(
        (text for text in table.paths if "/" in text and text.removeprefix("./") in names), None
    )
    path = _place(folder, where)
    if inner and where.startswith(
        "../"
    ):  # convert would not find them, as its names start above the folder
        what = f"{path} has paths from within {folder}, such as {inner}"
        error = InputError(what, "expected paths from its own folder", f"move it into {folder}")
        return LabelsRefusal(where, error, True)
    there = {hit for hit in hits if hit >= 0}
    is_asked = bool(sought.options.label) and bool(there) and reading.taken != ""
    is_most = 2 * len(there) >= len(items) or is_asked or _names_all_but_tests(items, there)
    could_be = 2 * len(last_names(table.paths) & sought.known) >= len(sought.known)
    if (
        not is_most
        and could_be
        and "submission" not in where.lower()
        and len(there) < len(table.paths)
    ):
        return LabelsRefusal(where, _unmatched(sought, path, table, hits), True)
    if not there:
        return None
    lost, skips = _losses(path, table, hits, items)
    return LabelsFile(
        where,
        table,
        {**reading.options(where), **skips},
        reading.column,
        class_values(table),
        hits,
        label=reading.taken,
        candidates=reading.candidates,
        images=reading.images,
        names=reading.names,
        lost=lost,
        is_most=is_most,
        splits=reading.splits,
    )


def _names_all_but_tests(items: Sequence[str], there: Collection[int]) -> bool:
    """Whether a table names every image except those in folders of a test, which may be more."""
    others = {row for row, name in enumerate(items) if not is_in_test(name)}
    return bool(others) and len(others) < len(items) and others == set(there)


def is_in_test(name: str) -> bool:
    """Whether a folder of a file has a name of test images."""
    folders = name.lower().split("/")[:-1]
    return any(
        folder.startswith("test") or folder.endswith(("test", "testing", "unlabeled"))
        for folder in folders
    )


def _unmatched(sought: Sought, path: Path, table: LabelTable, hits: Sequence[int]) -> InputError:
    """The error for a table whose files have the names of the images,
    and whose paths are others.
    """
    items, number = sought.items, next(number for number, hit in enumerate(hits) if hit < 0)
    text = table.paths[number]
    place = table.place(path, table.lines[number])
    if prefix := _foreign_prefix(table.paths, items):
        count = sum(name.startswith(prefix) for name in table.paths)
        error = InputError(
            f"{place}: {text} is a path of another folder", "expected paths from the folder"
        )
        is_whole = count == len(items) == len(table.paths)
        options: dict[str, object] = (
            {"strip": prefix} if is_whole else {"as": "with-labels", "strip": prefix}
        )
        command = sought.options.command(sought.folder, **options)
        return error.with_choices([f"  {count:,} of {len(items):,} images: {command}"])
    same = [name for name in items if last_name(name) == last_name(text)]
    if len(same) > 1:
        what = f"{place}: {text} can be {' or '.join(same[:3])}"
        return InputError(
            what,
            "expected a path from the folder",
            f"write {same[0]} in place of {text}, and so on",
        )
    first = same[0] if same else items[0]
    return InputError(
        f"{place}: {text} is not there",
        "expected a path from the folder",
        f"write {first}, for example",
    )


def _foreign_prefix(paths: Sequence[str], items: Sequence[str]) -> str:
    """The start of most paths before the names of images;
    "" if less than half of the images come of it.
    """
    found: Counter[str] = Counter()
    by_last: dict[str, list[str]] = {}
    for item in items:
        by_last.setdefault(last_name(item), []).append(item)
    for path in paths:
        for item in by_last.get(last_name(path), ()):
            if path.endswith(f"/{item}"):
                found[path.removesuffix(item)] += 1
    if not found:
        return ""
    prefix, count = found.most_common(1)[0]
    return prefix if 2 * count >= len(items) else ""


def _losses(
    path: Path, table: LabelTable, hits: Sequence[int], items: Sequence[str]
) -> tuple[list[InputError], dict[str, str]]:
    """The images without a line, the lines without an image or a label;
    and the keys of a recipe that skip them.
    """
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
    undivided = [
        line for split, line in zip(table.splits or (), table.lines, strict=False) if split is None
    ]
    if undivided:
        place = table.place("", undivided[0]).lstrip(", ")
        what = f"{path} has {number_of(len(undivided), 'line')} without a split: {place}"
        lost.append(InputError(what, "expected one in each"))
    return lost, skips


# files of splits ----------------------------------------------------------------------------------


def join_by_split(
    folder: Path, files: Sequence[LabelsFile], items: Sequence[str]
) -> list[LabelsFile]:
    """The files of several splits as one each, if they name different images:
    by what else their names say.
    """
    families: dict[tuple[object, ...], list[tuple[str, LabelsFile]]] = {}
    for file in files:
        split = split_in(file.where)
        if split and file.table.splits is None:
            plain = {key: value for key, value in file.options.items() if key not in _SKIPS}
            family = (file.has_labels, file.label, str(plain), family_of(file.where))
            families.setdefault(family, []).append((split, file))
    several = {
        key: parts for key, parts in families.items() if len({split for split, _ in parts}) > 1
    }
    groups: dict[tuple[object, ...], list[tuple[str, LabelsFile]]] = {}
    for key, parts in several.items():
        groups.setdefault(key[:3], []).extend(parts)
    joined = []
    for key, group in groups.items():
        if _are_apart(group):
            joined.append(_joined(folder, group, items))
            continue
        apart = (
            parts for family, parts in several.items() if family[:3] == key and _are_apart(parts)
        )
        joined += [_joined(folder, parts, items) for parts in apart]
    return joined


_SKIPS = ("unlabelled", "missing")


def _are_apart(parts: Sequence[tuple[str, LabelsFile]]) -> bool:
    """Whether no image is in two files."""
    rows = [row for _, file in parts for row in file.rows if row >= 0]
    return len(rows) == len(set(rows))


def _joined(
    folder: Path, parts: Sequence[tuple[str, LabelsFile]], items: Sequence[str]
) -> LabelsFile:
    """The files of several splits as one."""
    ordered = sorted(parts, key=lambda part: (place_of_split(part[0]), part[1].where))
    first = ordered[0][1]
    table = join_tables(
        [(split, file.table, _place(folder, file.where)) for split, file in ordered]
    )
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
