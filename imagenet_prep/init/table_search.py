"""The texts of a folder, or next to it -> those that are labels files, each judged as one."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.init.annotation_search import format_of_file
from imagenet_prep.init.file_endings import (
    LARGEST_TEXT,
    MOST_READ,
    TABLES,
    WITH_COLUMNS,
    count_folders,
    ending_of,
)
from imagenet_prep.init.joined_labels import place_of_table
from imagenet_prep.init.label_tables import Judgement, LabelsFile, LabelsRefusal
from imagenet_prep.init.labels_search import judge_labels, last_names, mentions, mentions_half
from imagenet_prep.init.table_forms import Sought
from imagenet_prep.recipes.file_kinds import read_head
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.path_parts import grouped, has_ending, stem_of, suffix_of
from imagenet_prep.sources.folders import HIDDEN
from imagenet_prep.sources.names import below
from imagenet_prep.sources.remarks import Remarks

_LARGEST_JSON = 1 << 26

_WITH_COLUMNS_OR_JSON = (*WITH_COLUMNS, ".json")


def judge_tables(
    sought: Sought, texts: Sequence[str], sizes: Mapping[str, int]
) -> dict[str, Judgement]:
    """The files that may be labels files, in the folder or next to it, each as one."""
    names = [name for name in _candidates(texts) if sizes[name] <= LARGEST_TEXT]
    names += _find_beside(sought)
    documents = _documents(sought.folder, texts)
    names += [name for name in documents if sizes[name] <= _LARGEST_JSON]
    judged = {name: judge_labels(sought, name) for name in names}
    for judge_otherwise in (_judge_by_stems, _judge_by_cut_stems, _judge_by_folders, _judge_lists):
        if any(judged.values()):
            break
        judged |= judge_otherwise(sought, names)
    for name, judgement in judged.items():
        if isinstance(judgement, LabelsRefusal) and _has_class_names(sought, name):
            judged[name] = None
    return judged


def _has_class_names(sought: Sought, name: str) -> bool:
    """Whether the user says that a file has the names of the classes."""
    file = sought.options.names
    return file is not None and place_of_table(sought.folder, name).resolve() == file.resolve()


def _judge_by_stems(sought: Sought, names: Sequence[str]) -> dict[str, Judgement]:
    """Tables that may name images without their endings; others may be of classes."""
    stems = _by_stems(sought)
    judged: dict[str, Judgement] = {}
    for name in names:
        if suffix_of(name) in _WITH_COLUMNS_OR_JSON:
            judged[name] = judge_labels(stems, name, needs_header=True)
    return judged


def _judge_by_cut_stems(sought: Sought, names: Sequence[str]) -> dict[str, Judgement]:
    """Tables that name most images with other endings."""
    cut_stems = replace(_by_stems(sought), is_cut=True)
    names = [name for name in names if suffix_of(name) in _WITH_COLUMNS_OR_JSON]
    return _judge_those(cut_stems, names, _names_most)


def _judge_by_folders(sought: Sought, names: Sequence[str]) -> dict[str, Judgement]:
    """Tables that name the folders of images."""
    folders = last_names(name.rpartition("/")[0] for name in sought.items)
    by_folders = replace(sought, known_names=folders - {""})
    names = [name for name in names if suffix_of(name) in WITH_COLUMNS]
    return _judge_those(by_folders, names, _labels_folders)


def _judge_lists(sought: Sought, names: Sequence[str]) -> dict[str, Judgement]:
    """Texts with columns that name images without their endings."""
    stems = _by_stems(sought)
    names = [name for name in names if suffix_of(name) not in _WITH_COLUMNS_OR_JSON]
    return _judge_those(stems, names, _has_columns)


def _by_stems(sought: Sought) -> Sought:
    """The same images, known by their names without endings."""
    stems = last_names(map(without_ending, sought.items))
    return replace(sought, known_names=stems)


def _judge_those(
    sought: Sought, names: Iterable[str], accepts: Callable[[Judgement], bool]
) -> dict[str, Judgement]:
    """The judgements that are accepted, of these files."""
    judged: dict[str, Judgement] = {}
    for name in names:
        judgement = judge_labels(sought, name)
        if accepts(judgement):
            judged[name] = judgement
    return judged


def _names_most(table: Judgement) -> bool:
    """Whether a table names at least half of the images."""
    return isinstance(table, LabelsFile) and table.is_most


def _labels_folders(table: Judgement) -> bool:
    """Whether a table of folders gives several one class; otherwise it has the names of classes."""
    if not isinstance(table, LabelsFile):
        return False
    if not table.labels:
        return bool(table.candidates)
    class_names = set(map(str, table.labels))
    lines = set(table.table.lines)
    return len(class_names) < len(lines)


def _has_columns(table: Judgement) -> bool:
    """Whether a text has columns of classes, as the list of Oxford's pets:
    words alone name files by chance.
    """
    if not isinstance(table, LabelsFile):
        return False
    if table.options.get("format") != "spaces":
        return False
    return bool(table.candidates) or table.has_labels


def label_alike(judged: Mapping[str, Judgement], sought: Sought) -> dict[str, Judgement]:
    """The tables, of which small ones have the labels of the largest in
    the columns that it has them in.
    """
    relabelled = dict(judged)
    tables = [table for table in judged.values() if isinstance(table, LabelsFile)]
    labelled = [table for table in tables if table.label]
    largest = max(labelled, key=lambda table: len(table.rows), default=None)
    if largest is None or sought.options.label is not None:
        return relabelled
    stems = _by_stems(sought).known_names
    known_names = sought.known_names.union(stems)
    options = replace(sought.options, label=largest.label)
    alike = replace(sought, known_names=known_names, options=options)
    for name, table in judged.items():
        if not isinstance(table, LabelsFile) or table.label:
            continue
        if largest.label in table.table.columns:
            relabelled[name] = judge_labels(alike, name)
    return relabelled


# which files --------------------------------------------------------------------------------------


def _candidates(names: Sequence[str]) -> list[str]:
    """The files that may be labels files: of each ending the first 50,
    those near the folder before the others.
    """
    candidates: list[str] = []
    for ending, files in grouped(names, ending_of).items():
        if ending in TABLES or not ending:
            files.sort(key=count_folders)
            candidates += files[:MOST_READ]
    return candidates


def _documents(folder: Path, names: Sequence[str]) -> list[str]:
    """The JSON documents that no known tool wrote: of many the first 50."""
    documents = [name for name in names if has_ending(name, ".json")]
    documents.sort(key=count_folders)
    first_documents = documents[:MOST_READ]
    return [name for name in first_documents if format_of_file(folder, name, ".json") is None]


def _find_beside(sought: Sought) -> list[str]:
    """Labels files next to a folder: their first lines contain its name,
    or they name half of its images without it.
    """
    folder = Path(os.path.abspath(sought.folder))  # noqa: PTH100 - links stay, as in names
    image_names = sought.known_names.union(map(str.lower, sought.items))
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder.parent) if has_ending(name, TABLES)]
    names.sort(key=lambda name: (stem_of(name) != folder.name, name))
    names_about_folder: list[str] = []
    for name in _candidates(names):
        path = folder.parent / name
        if _is_about(folder, path, image_names, sought.known_names):
            names_about_folder.append(f"../{name}")
    return names_about_folder


def _is_about(
    folder: Path, path: Path, image_names: frozenset[str], last_image_names: frozenset[str]
) -> bool:
    """Whether a file next to a folder is about its images,
    and not about those of another folder.
    """
    if not path.is_file() or path.stat().st_size > LARGEST_TEXT:
        return False
    head = read_head(path, 1 << 20)
    if f"{folder.name}/".encode() in head[:4096]:
        return True
    is_of_another = path.stem != folder.name and path.with_suffix("").is_dir()
    if is_of_another or not mentions(head, image_names):
        return False
    return mentions_half(path, last_image_names)


def take_hidden(folder: Path, remarks: Remarks, image_names: frozenset[str]) -> dict[str, int]:
    """The hidden files that name at least half of the images, with their sizes;
    they are no longer skipped.
    """
    sizes: dict[str, int] = {}
    counts = Counter[str]()  # there may be one next to each image
    for name in list(remarks.passed.get(HIDDEN, ())):
        path = below(folder, name)
        counts[path.suffix] += 1
        if counts[path.suffix] > MOST_READ or not path.is_file():
            continue
        size = path.stat().st_size
        if size > LARGEST_TEXT or not is_text(path):
            continue
        if mentions_half(path, image_names):
            sizes[name] = size
            remarks.passed[HIDDEN].remove(name)
    return sizes


def is_text(path: Path) -> bool:
    """Whether a file starts like a text: without a zero byte, unless it is UTF-16."""
    head = read_head(path)
    return b"\0" not in head or head[:2] in (b"\xff\xfe", b"\xfe\xff")
