"""A folder -> what it holds: files, classes, splits, labels; what is passed over, and what is in the way."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, all_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.columns import Content, is_odd, is_of
from imagenet_prep.recipes.labels_file import (
    PATHS,
    LabelsFault,
    LabelTable,
    form_of,
    match,
    parse_labels,
    read_rows,
    typed,
)
from imagenet_prep.recipes.splits import annotations_in, counted, misread, mixed_masks, nested, split_folders, suffix_of
from imagenet_prep.sources.catalog import Catalog, Remarks
from imagenet_prep.sources.folders import EMPTY, HIDDEN, MACOSX, list_folder
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.text import listed

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
_LARGEST = 1 << 28
_MOST = 50  # files that are looked into
_NO_IMAGE = "names no image"
_HEAD, _TAIL = 1 << 16, 1 << 12
_LOOKED_INTO = 3  # files of a type that may be annotations


@dataclass(frozen=True, slots=True)
class Survey:
    """What a folder holds.

    Args:
        kind: how the recipe names it.
        content: what the files are.
        names: the files that count, by their paths from ``lead``.
        lengths: their bytes.
        lead: the folders that lead to them all, with a slash; or "".
        archives: the tars that hold them.
        splits: the given ones, by folder.
        classes: how many files each has.
        table: a file of labels.
        passed: what is passed over, and why, in words.
    """

    kind: str
    content: Content
    names: Sequence[str]
    lengths: Sequence[int]
    lead: str = ""
    archives: Sequence[str] = ()
    splits: Mapping[str, str] | None = None
    classes: Mapping[str, int] | None = None
    table: Table | None = None
    passed: tuple[str, ...] = ()

    @property
    def is_labelled(self) -> bool:
        """Whether the files have classes."""
        return bool(self.classes)


def _nothing_for_records(folder: Path, listing: Catalog) -> InputError:
    found = counted(listing.names, 5) or "nothing"
    return InputError(
        f"{folder} holds nothing to make records of",
        f"expected images (JPEG, PNG, TIFF), arrays (.npy, .npz), or tars of them; found {found}",
    )


def survey_folder(folder: Path, engine: Engine) -> Survey:
    """What lies in a folder.

    Raises:
        InputError: there is nothing that records could be made of; or something is in the way, or would be misread:
            the error names all of it, and the choices.
    """
    listing, remarks = list_folder(folder, engine)
    archives = [name for name in listing.names if name.lower().endswith(".tar") and "/" not in name]
    inside, kind, content = listing, "folders", _main_content(listing)
    if content is None and archives:
        inside, kind = list_tars([folder / name for name in archives], engine, folder_each=False), "tar"
        content = _main_content(inside)
    if content is None:
        raise all_of([*remarks.obstacles, _nothing_for_records(folder, listing)])
    rows = [row for row, name in enumerate(inside.names) if is_of(content, name)]
    shape = _shape_of([inside.names[row] for row in rows], kind)
    tables = Tables()
    if kind == "folders":
        files = list(zip(listing.names, listing.lengths.tolist(), strict=True))
        names = [inside.names[row] for row in rows]
        tables = find_table(folder, files, names, in_classes=bool(shape.classes))
    is_labelled = bool(shape.classes) or (tables.taken is not None and tables.taken.has_labels)
    passed, unread = _others(folder, listing, inside, content, tables)
    obstacles = [*remarks.obstacles, *_wrong_formats(folder, inside, content)]
    if not is_labelled:
        obstacles += [*tables.half, *unread]
    if tables.taken is None:
        obstacles += _wrong_shape(folder, shape)
    if obstacles:
        raise all_of(obstacles)
    lengths, passed = inside.lengths[rows].tolist(), [*passed, *_apart(remarks)]
    if tables.taken is None:
        tars = archives if kind == "tar" else ()
        of = (shape.lead, tars, shape.splits, shape.classes)
        return Survey(shape.kind, content, shape.names, lengths, *of, passed=tuple(passed))
    counts: Counter[int | str] = Counter(tables.taken.labels or ())
    classes = {str(label): counts[label] for label in sorted(counts)}
    names = [shape.lead + name for name in shape.names]
    return Survey("files", content, names, lengths, classes=classes, table=tables.taken, passed=tuple(passed))


def _main_content(listing: Catalog) -> Content | None:
    """What most files are; TIFFs can only be read as numbers, so they are that only where there is no other image."""
    arrays = sum(is_of("array", name) for name in listing.names)
    images = sum(is_of("image", name) for name in listing.names)
    tiffs = sum(is_of("pixels", name) for name in listing.names) - images
    if not arrays + images + tiffs:
        return None
    if arrays >= images + tiffs:
        return "array"
    return "image" if images else "pixels"


def _wrong_formats(folder: Path, listing: Catalog, content: Content) -> list[InputError]:
    """Images of formats that can't be read; TIFFs among others are a choice."""
    odd = [name for name in listing.names if is_odd(content, name)]
    tiffs = [name for name in odd if is_of("pixels", name)]
    others = [name for name in odd if not is_of("pixels", name)]
    found = []
    if tiffs:
        images = sum(is_of(content, name) for name in listing.names)
        what = f"{folder} holds {counted(tiffs)} among {images:,} images: {listed(tiffs)}"
        hint = "convert them to PNG or JPEG; or write a recipe with content: pixels, for records of raw numbers"
        found.append(InputError(what, "expected formats that records can hold", hint))
    if others:
        what = f"{folder} holds images that can't be read: {counted(others)}"
        found.append(InputError(what, "expected JPEG, PNG or TIFF", "convert them to PNG or JPEG, or move them away"))
    return found


# folders -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shape:
    """How files lie: as ``Survey`` has it; ``loose`` are those beside class folders, ``files`` those of each class."""

    kind: str
    names: Sequence[str]
    lead: str
    splits: Mapping[str, str] | None
    files: Mapping[str, Sequence[str]]
    loose: Sequence[str] = ()

    @property
    def classes(self) -> dict[str, int]:
        return {name: len(files) for name, files in self.files.items()}


def _shape_of(names: Sequence[str], kind: str) -> _Shape:
    """Class folders, with given splits above them or not; files that lie in no folder are a pattern."""
    lead = _lead(names) if kind == "folders" else ""
    names = [name.removeprefix(lead) for name in names]
    splits = split_folders(names, 1)
    if splits:
        return _Shape(kind, names, lead, splits, _by_class([name.partition("/")[2] for name in names]))
    deep = [name for name in names if "/" in name]
    tops = {name.partition("/")[0] for name in deep}
    if len(tops) > 1 or (kind == "tar" and len(deep) == len(names)):
        return _Shape(kind, names, lead, None, _by_class(deep), [name for name in names if "/" not in name])
    return _Shape("tar" if kind == "tar" else "files", names, "", None, {})


def _lead(names: Sequence[str]) -> str:
    """The folders that hold all others, where there are class folders below them."""
    lead, rest = "", names
    while not split_folders(rest, 1):
        tops = {name.partition("/")[0] for name in rest}
        if len(tops) > 1:
            return lead if all("/" in name for name in rest) else ""
        if not all(name.count("/") > 1 for name in rest):
            return ""
        lead += f"{next(iter(tops))}/"
        rest = [name.partition("/")[2] for name in rest]
    return lead


def _by_class(names: Sequence[str]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for name in names:
        top, _, rest = name.partition("/")
        files.setdefault(top, []).append(rest)
    return files


def _wrong_shape(folder: Path, shape: _Shape) -> list[InputError]:
    """What would be misread, or lost, if folders were taken for classes."""
    found = []
    in_folders = (f"{name}/{each}" for name, files in shape.files.items() for each in files)
    wrong = misread(shape.files, Names.take(in_folders)) if shape.files else mixed_masks(Names.take(shape.names))
    if wrong is not None:
        hint = f"a recipe can say: {wrong.choice}"
        found.append(InputError(f"{folder}: {wrong.what}", "expected a folder a class", hint))
    inner = nested(shape.files)
    if inner:
        what = f"{folder}: folders within classes would lose their names: {listed(inner)}"
        hint = (
            f"init {folder.name}/{inner[0].partition('/')[0]} takes the inner ones for classes; "
            f"a recipe with classes: [{', '.join(list(shape.files)[:20])}] takes the first"
        )
        found.append(InputError(what, "expected one level of class folders", hint))
    if shape.loose:
        others = f" (and {len(shape.loose) - 1:,} others)" if len(shape.loose) > 1 else ""
        what = f"{shape.lead}{shape.loose[0]} lies in no class folder{others}"
        hint = "move it, or label all in a file"
        found.append(InputError(what, "expected all files in class folders, or none", hint))
    return found


# what is passed over -------------------------------------------------------------------------------------------


def _others(
    folder: Path, listing: Catalog, inside: Catalog, content: Content, tables: Tables
) -> tuple[list[str], list[InputError]]:
    """What is said of files that records are not made of; and annotations that can't be read."""
    names = [name for name in inside.names if not is_of(content, name) and name not in tables.seen]
    by_suffix: dict[str, list[str]] = {}
    for name in names:
        by_suffix.setdefault(suffix_of(name), []).append(name)
    stems = frozenset(name.rpartition("/")[2].rpartition(".")[0] for name in inside.names if is_of(content, name))
    what = "array" if content == "array" else "image"
    passed, unread = [], []
    for suffix, several in sorted(by_suffix.items(), key=lambda each: -len(each[1])):
        tool = _tool(folder, several, stems) if inside is listing else ""
        reason = f"{tool} annotations, which are not read" if tool else f"no {what}"
        passed.append(f"{len(several):,} {suffix}: {reason}")
        if tool:
            hint = "write their labels to a CSV with the columns filename and label, and name it in `labels`"
            unread.append(InputError(f"{folder} has {tool} annotations: {listed(several)}", "they are not read", hint))
    return [*passed, *tables.passed], unread


def _tool(folder: Path, names: Sequence[str], stems: frozenset[str]) -> str:
    """Whose annotations these files of one type are; "" if nobody's who is known."""
    if suffix_of(names[0]) not in (".json", ".xml", *SUFFIXES):
        return ""
    for name in names[:_LOOKED_INTO]:
        try:
            with (folder / name).open("rb") as file:
                head = file.read(_HEAD)
                file.seek(max(0, (folder / name).stat().st_size - _TAIL))
                tail = file.read(_TAIL)
        except OSError:
            continue
        tool = annotations_in(name, head, tail, stems)
        if tool:
            return tool
    return ""


def _apart(remarks: Remarks) -> list[str]:
    """What was not even listed."""
    words = {HIDDEN: ("hidden", "hidden"), EMPTY: ("empty folder", "empty folders")}
    found = [(remarks.passed[key], forms) for key, forms in words.items() if key in remarks.passed]
    said = [f"{len(names):,} {forms[len(names) > 1]}: {listed(names)}" for names, forms in found]
    return said + [f"{name}: macOS keeps its own data there" for name in remarks.passed.get(MACOSX, ())]


# files of labels ------------------------------------------------------------------------------------------------


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
        if form == "lines":
            table = parse_labels(content, form)
            return _fitting(folder, where, table, None, rows) if table.paths else None
        columns = _texts(*read_rows(content, form))
    except (LabelsFault, OSError, RecursionError):
        return None
    last = {name.rpartition("/")[2] for name in rows}
    usual = next((name for name in PATHS if name in columns), None)
    for column in sorted(columns, key=lambda name: name != usual):
        if any(text.rpartition("/")[2] in last for text in columns[column]):
            path = None if column == usual else column
            with contextlib.suppress(LabelsFault):
                fitting = _fitting(folder, where, parse_labels(content, form, path), path, rows)
                if fitting != _NO_IMAGE:
                    return fitting
    return _by_stems(folder / where, columns.values(), rows)


def _texts(lines: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """The texts of each column that can be one of paths: none is missing, and none occurs twice. Others are empty."""
    texts = {name: [each for each in values if isinstance(each, str) and each] for name, values in columns.items()}
    return {name: values if len(set(values)) == len(lines) else [] for name, values in texts.items()}


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
