"""A file of a folder -> LabelsFile, how a recipe reads its labels, or LabelsRefusal:
which line can't be, and why.
"""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.init.joined_labels import find_losses, noun_of_items, place_of_table
from imagenet_prep.init.label_tables import Judgement, LabelsFile, LabelsRefusal
from imagenet_prep.init.table_forms import (
    Sought,
    TableForm,
    class_values,
    last_name,
    parse_table,
    probe_form,
)
from imagenet_prep.recipes.joined_tables import spread
from imagenet_prep.recipes.labels_file import LINES, LabelTable
from imagenet_prep.recipes.path_matching import folders_to_strip, match
from imagenet_prep.recipes.path_parts import composed
from imagenet_prep.recipes.table_rows import LabelsFault, form_of
from imagenet_prep.text import either, number_of

_PROBED = 50  # names that are sought in a text
_BREAKS = re.compile(r"[\s,;:|\"'=<>{}\[\]()]+")


def last_names(items: Iterable[str]) -> frozenset[str]:
    """The names of files without their folders, in lower case."""
    return frozenset(map(last_name, items))


def judge_labels(
    sought: Sought, name: str, several: str = "", *, needs_header: bool = False
) -> Judgement:
    """A file as labels of images; None if it names none.

    ``several``: how it gives an image more than one, as for ``parse_labels``. ``needs_header``: its
    first line must name columns.
    """
    path = place_of_table(sought.folder, name)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    try:
        form = probe_form(content, name, sought.known_names, several)
        if needs_header and not form.header:
            return None
        table = parse_table(content, form, name, sought)
    except LabelsFault as fault:
        if not _is_about_images(sought, path, name, content):
            return None
        return _refusal(sought, name, content, fault, several)
    is_of_labels = table is not None and table.labels is not None
    if form_of(name) == "json" and not is_of_labels and sought.options.label is None:
        return None  # a document of another sort
    if table is None:
        return None
    return _fit(sought, name, table, form)


def _refusal(
    sought: Sought, name: str, content: bytes, fault: LabelsFault, several: str
) -> LabelsRefusal | None:
    """The refusal of a file about images that can't be understood."""
    if not _has_names_alone(content):
        return LabelsRefusal(name, _wrong_line(sought, name, fault, several), True)
    if name.startswith("../"):
        return None  # a list of another folder's split, for example
    path = place_of_table(sought.folder, name)
    return LabelsRefusal(name, _names_alone(path), True)


def _is_about_images(sought: Sought, path: Path, name: str, content: bytes) -> bool:
    """Whether a file with a fault must be meant as labels of the images."""
    form = form_of(name)
    if form == "json":
        return False
    if form == "csv" and not any(sign in content for sign in (b",", b";", b"\t")):
        return False  # no more than a list of names
    return mentions_half(path, sought.known_names)


_BETWEEN = (b" ", b"\t", b",", b";", b":", b"|")
"""The signs between a name and its label."""


def _has_names_alone(content: bytes) -> bool:
    """Whether no line has anything after a name."""
    lines = content.splitlines()
    return not any(sign in line.strip() for line in lines for sign in _BETWEEN)


def _names_alone(path: Path) -> InputError:
    """The error for a list of images without labels that divides no images either."""
    problem = f"{path} has names of images, and no labels"
    expected = "expected a file and its label in each line"
    hint = (
        f"add the labels, or move {path} away; for splits, write a list for each, with each image "
        "once in all lists"
    )
    return InputError(problem, expected, hint)


def _wrong_line(sought: Sought, name: str, fault: LabelsFault, several: str) -> InputError:
    """The error for a line that can't be understood;
    and the command, if the lines give images several labels.
    """
    path = place_of_table(sought.folder, name)
    problem = f"{fault.place(path)}: {fault.reason}"
    expected = "expected each file once, with its label"
    hint = f"correct that line and run init again; or move {path} away"
    table = None
    if not several and not sought.is_packed:
        table = judge_labels(sought, name, LINES)
    if not isinstance(table, LabelsFile) or not table.has_labels or table.losses:
        return InputError(problem, expected, hint)
    hint += "; or, if an image has several labels, run the command with --as several-labels below"
    images = f"{table.labelled:,} of {_total_of(sought.items)}"
    classes = number_of(table.classes, "class", "classes")
    command = sought.command(**{"as": "several-labels"})
    choice = Hint(f"  {images}, {classes}: ", command)
    error = InputError(problem, expected, hint)
    return error.with_choices([choice])


# names in texts -----------------------------------------------------------------------------------


def mentions_half(path: Path, image_names: frozenset[str]) -> bool:
    """Whether a text contains at least half of the names of images."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    text = _decode(content)
    words = {word.rpartition("/")[2] for word in _BREAKS.split(text)}
    if image_names and 2 * len(words & image_names) >= len(image_names):
        return True
    phrases = _names_of_several_words(image_names)
    if not phrases:
        return False
    count = sum(name in text for name in phrases)
    return 2 * count >= len(phrases)


def mentions(content: bytes, image_names: frozenset[str]) -> bool:
    """Whether a text contains one of these paths without a folder before it."""
    text = _decode(content)
    words = (word.removeprefix("./") for word in _BREAKS.split(text))
    if not image_names.isdisjoint(words):
        return True
    phrases = _names_of_several_words(image_names)
    return any(name in text and f"/{name}" not in text for name in phrases)


def _decode(content: bytes) -> str:
    encoding = "utf-8"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    text = content.decode(encoding, "replace")
    return composed(text).lower().replace("\\", "/")


def _names_of_several_words(names: Iterable[str]) -> list[str]:
    """The first names, if they are several words."""
    first_names = heapq.nsmallest(_PROBED, names)
    return [name for name in first_names if _BREAKS.search(name)]


# whether its lines are those of the images --------------------------------------------------------


def _fit(sought: Sought, name: str, table: LabelTable, form: TableForm) -> Judgement:
    """The table with what it lacks; a refusal, if its paths can't be understood;
    None if it names no image.
    """
    items = sought.items
    path = place_of_table(sought.folder, name)
    table = spread(table, items)
    rows = _rows_of(sought, name, table)
    if name.startswith("../") and not _finds_from_above(sought, path, table, rows):
        inner = _path_from_within(table, items)
        if inner:
            return LabelsRefusal(name, _from_within(sought, path, inner), True)
    named_rows = {row for row in rows if row >= 0}
    is_chosen = bool(sought.options.label and form.label_option)  # the user names its column
    is_most = _are_most(items, named_rows) or (is_chosen and bool(named_rows))
    is_whole = is_most or len(named_rows) == len(table.paths)
    if not is_whole and _could_be_all(sought, name, table):
        if _names_folders(table, items):
            return None
        error = _unmatched(sought, name, table, rows)
        return LabelsRefusal(name, error, True)
    if not named_rows:
        return None
    losses, skips = find_losses(path, table, rows, items)
    options = {**form.options(name), **skips}
    labels = class_values(table)
    return LabelsFile(
        name,
        table,
        options,
        form.column,
        labels,
        rows,
        label=form.label_option,
        candidates=form.candidates,
        image_columns=form.image_columns,
        class_names=form.class_names,
        losses=losses,
        is_most=is_most,
        splits=form.splits,
    )


def _are_most(items: Sequence[str], rows: Collection[int]) -> bool:
    """Whether these rows are half of the images or more, or all outside of a folder for tests."""
    return 2 * len(rows) >= len(items) or _names_all_but_tests(items, rows)


def _finds_from_above(sought: Sought, path: Path, table: LabelTable, rows: Sequence[int]) -> bool:
    """Whether the paths of a table next to the folder mean the same images to convert, whose names
    start above the folder.
    """
    folder = Path(os.path.abspath(sought.folder))  # noqa: PTH100 - links stay, as in names
    names = [f"{folder.name}/{item}" for item in sought.items]
    return match(table.paths, names, folder.parent, path, sought.options.strip) == rows


def _from_within(sought: Sought, path: Path, name: str) -> InputError:
    """The error for a table next to the folder whose paths start within it: convert would find
    other images or none, as its names start above the folder.
    """
    return InputError(
        f"{path} has paths from within {sought.folder}, such as {name}",
        "expected paths from its own folder",
        f"move it into {sought.folder}",
    )


def _rows_of(sought: Sought, name: str, table: LabelTable, strip: str | None = None) -> list[int]:
    """The image of each line of a table, whose paths lose ``strip`` or what the user's option says;
    -1 for none.
    """
    folder = Path(os.path.abspath(sought.folder))  # noqa: PTH100 - links stay, as in names
    return match(table.paths, sought.items, folder, folder / name, strip or sought.options.strip)


def _path_from_within(table: LabelTable, items: Sequence[str]) -> str:
    """The first path of a table that starts within the folder of the images; "" for none."""
    names = set(items)
    inner = (path for path in table.paths if "/" in path and path.removeprefix("./") in names)
    return next(inner, "")


def _could_be_all(sought: Sought, name: str, table: LabelTable) -> bool:
    """Whether a table has the last names of at least half of the images, and is no example of a
    submission.
    """
    if "submission" in name.lower():
        return False
    shared_names = last_names(table.paths) & sought.known_names
    return 2 * len(shared_names) >= len(sought.known_names)


def _names_folders(table: LabelTable, items: Sequence[str]) -> bool:
    """Whether most lines name folders of images, as a list of the names of classes does."""
    folders = {folder for item in items for folder in item.split("/")[:-1]}
    return 2 * len(folders.intersection(table.paths)) >= len(table.paths)


def _names_all_but_tests(items: Sequence[str], named_rows: Collection[int]) -> bool:
    """Whether a table names every image except those in folders of a test, which may be more."""
    others = {row for row, name in enumerate(items) if not is_in_test(name)}
    if not others or len(others) == len(items):
        return False
    return others == set(named_rows)


def is_in_test(name: str) -> bool:
    """Whether a folder of a file has a name of test images."""
    folders = name.lower().split("/")[:-1]
    return any(
        folder.startswith("test") or folder.endswith(("test", "testing", "unlabeled"))
        for folder in folders
    )


def _unmatched(sought: Sought, name: str, table: LabelTable, rows: Sequence[int]) -> InputError:
    """The error for a table whose files have the names of the images,
    and whose paths are others.
    """
    items = sought.items
    path = place_of_table(sought.folder, name)
    expected = f"expected a path from within {sought.folder}"
    prefix = _foreign_prefix(table.paths, items)
    if prefix:
        return _under_prefix(sought, path, table, prefix)
    folders = folders_to_strip(table.paths, items)
    if folders and not sought.options.strip:
        rows_without = _rows_of(sought, name, table, folders)
        if min(rows_without, default=-1) >= 0:
            problem = _path_of_none(sought, path, table, 0)
            expected += f", such as {items[rows_without[0]]}"
            choice = _stripping_choice(sought, table, folders, len({*rows_without}))
            return InputError(problem, expected).with_choices([choice])
    number = _first_unmatched(sought, table, rows)
    file_name = last_name(table.paths[number])
    alike = [name for name in items if last_name(name) == file_name]
    hint = f"correct or remove it, or move {path} away"
    if alike:
        hint = f"write {alike[0]}, for example"
    problem = _path_of_none(sought, path, table, number)
    if len(alike) > 1:
        place = table.place(path, table.lines[number])
        problem = f"{place}: {table.paths[number]} may be {either(alike[:3])}"
    return InputError(problem, expected, hint)


def _under_prefix(sought: Sought, path: Path, table: LabelTable, prefix: str) -> InputError:
    """The error for a table whose paths are those of images after a prefix."""
    number = next(number for number, path in enumerate(table.paths) if path.startswith(prefix))
    problem = _path_of_none(sought, path, table, number)
    example = table.paths[number].removeprefix(prefix)
    expected = f"expected a path from within {sought.folder}, such as {example}"
    stripped = {path.removeprefix(prefix) for path in table.paths if path.startswith(prefix)}
    named = len(stripped.intersection(sought.items))
    choice = _stripping_choice(sought, table, prefix, named)
    return InputError(problem, expected).with_choices([choice])


def _path_of_none(sought: Sought, path: Path, table: LabelTable, number: int) -> str:
    """The problem of a line whose path is that of no image."""
    place = table.place(path, table.lines[number])
    noun = noun_of_items(sought.items)
    return f"{place}: {table.paths[number]} is the path of no {noun} in {sought.folder}"


def _first_unmatched(sought: Sought, table: LabelTable, rows: Sequence[int]) -> int:
    """The first line that names no image: one with the name of an image, if there is any."""
    unmatched = [number for number, row in enumerate(rows) if row < 0]
    for number in unmatched:
        if last_name(table.paths[number]) in sought.known_names:
            return number
    return unmatched[0]


def _total_of(items: Sequence[str]) -> str:
    """The number of all images, or arrays."""
    return number_of(len(items), noun_of_items(items))


def _stripping_choice(sought: Sought, table: LabelTable, prefix: str, named: int) -> str:
    """The line with the command that takes a prefix off all paths, which ``named`` images have."""
    total = len(sought.items)
    options: dict[str, object] = {"strip": prefix}
    if not named == total == len(table.paths):
        options["as"] = "tars-with-labels" if sought.is_packed else "with-labels"
    counts = f"  {named:,} of {_total_of(sought.items)}"
    return Hint(f"{counts}, with {prefix} removed from their paths: ", sought.command(**options))


def _foreign_prefix(paths: Sequence[str], items: Sequence[str]) -> str:
    """The start of most paths before the names of images;
    "" if less than half of the images come of it.
    """
    items_by_name: dict[str, list[str]] = {}
    for item in items:
        file_name = last_name(item)
        items_by_name.setdefault(file_name, []).append(item)
    counts: Counter[str] = Counter()
    for path in paths:
        for item in items_by_name.get(last_name(path), ()):
            if path.endswith(f"/{item}"):
                counts[path.removesuffix(item)] += 1
    if not counts:
        return ""
    prefix, count = counts.most_common(1)[0]
    if 2 * count < len(items):
        return ""
    return prefix
