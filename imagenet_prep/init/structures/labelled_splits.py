"""Tiny ImageNet and sets like it: class folders of train,
and a list of the classes for the loose images of val.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.init.file_endings import LARGEST_TEXT
from imagenet_prep.init.folder_shapes import Shape, shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.init.split_lists import read_cells
from imagenet_prep.init.table_forms import last_name
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.path_parts import has_ending
from imagenet_prep.recipes.splits import split_names
from imagenet_prep.text import listed, number_of

_ENDINGS = (".txt", ".csv", ".tsv")
_IS_LABEL = re.compile("class|label|wnid|category")


def recognise(inspection: Inspection) -> Interpretation | None:
    """A folder of a split without class folders has a list that gives each
    of its images a class of the others.
    """
    shape = shape_of(inspection.items)
    if not shape.splits or "" in shape.splits or not shape.roles.unlabelled:
        return None
    assert inspection.content is not None
    label_by_path = shape.class_by_file()
    splits = dict(shape.splits)
    list_by_folder: dict[str, str] = {}
    for folder, split in split_names(shape.roles.unlabelled).items():
        list_file, labels_of_folder = _find_list(inspection, shape, f"{shape.lead}{folder}")
        if labels_of_folder:
            label_by_path |= labels_of_folder
            splits[folder] = split
            list_by_folder[folder] = list_file
    if not list_by_folder:
        return None
    list_files = list(list_by_folder.values())
    labels: dict[str, str] = {}
    for path, label in label_by_path.items():
        name = path.removeprefix(shape.lead)
        labels[name] = label
    added_splits = listed(sorted(splits.keys() - shape.splits.keys()))
    has = "has" if len(list_files) == 1 else "have"
    evidence = f"{listed(list_files)} {has} the classes of {added_splits}"
    meaning = f"the folders of {listed(shape.splits)} are the classes: {listed(shape.classes)}"
    proposal = Proposal(
        "files",
        inspection.content,
        list(labels),
        shape.lead,
        splits=splits,
        written_labels=labels,
    )
    return Interpretation(
        CERTAIN,
        (evidence,),
        f"{meaning}; {listed(list_files)} {has} others",
        proposal,
        annotation_files=frozenset(list_files),
        losses=_unlisted(inspection, shape, list_by_folder, label_by_path),
        skip_notes=_note_on_bare(inspection, label_by_path),
        labelled=len(labels),
        classes=len(shape.classes),
    )


def _note_on_bare(inspection: Inspection, label_by_path: Mapping[str, str]) -> list[str]:
    """The note on images that no list gives a class, if there are any."""
    bare = [name for name in inspection.items if name not in label_by_path]
    if not bare:
        return []
    count = number_of(len(bare), inspection.noun)
    return [f"{count} without a class, left out: {listed(bare)}"]


def _unlisted(
    inspection: Inspection,
    shape: Shape,
    list_by_folder: Mapping[str, str],
    label_by_path: Mapping[str, str],
) -> list[InputError]:
    """The fault of each list that lacks images of its folder."""
    faults: list[InputError] = []
    for folder, list_file in list_by_folder.items():
        lead = f"{shape.lead}{folder}/"
        images = [name for name in inspection.items if name.startswith(lead)]
        bare = [name for name in images if name not in label_by_path]
        if bare:
            count = number_of(len(bare), inspection.noun)
            problem = f"{inspection.folder / list_file} has no class for {count}: {listed(bare)}"
            hint = "add a line for each" if len(bare) > 1 else "add a line for it"
            faults.append(InputError(problem, f"expected each {inspection.noun} in {lead}", hint))
    return faults


def _find_list(inspection: Inspection, shape: Shape, folder: str) -> tuple[str, dict[str, str]]:
    """The first list that gives each image of a folder a class, and these classes."""
    for name in _texts_near(inspection, folder):
        label_by_path = _read_classes(inspection, shape, folder, name)
        if label_by_path:
            return name, label_by_path
    return "", {}


def _texts_near(inspection: Inspection, folder: str) -> Iterator[str]:
    """The text files in a folder, or next to it with its name."""
    leads = (f"{folder}/", f"{folder}_", f"{folder}.")
    for name, size in inspection.sizes():
        if not name.startswith(leads):
            continue
        if has_ending(name, _ENDINGS) and size <= LARGEST_TEXT:
            yield name


def _read_classes(inspection: Inspection, shape: Shape, folder: str, name: str) -> dict[str, str]:
    """The class of each image of a folder, by the columns of a list; none if most have none.

    The list names files, with their endings or without.
    """
    lead = f"{folder}/"
    paths = [path for path in inspection.items if path.startswith(lead)]
    path_by_name = {last_name(path): path for path in paths}
    path_by_stem = {without_ending(file_name): path for file_name, path in path_by_name.items()}
    lines = read_cells(inspection.folder / name)
    labels = _classes_in(shape, path_by_name, lines)
    if not labels and len(path_by_stem) == len(path_by_name):
        labels = _classes_in(shape, path_by_stem, lines)
    return labels


def _classes_in(
    shape: Shape, path_by_name: Mapping[str, str], lines: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The class of each of some images, which are by their names, in the cells of a list;
    none if most have none.
    """
    names_column = _column_of_names(path_by_name, lines)
    if names_column is None:
        return {}
    cells_by_path: dict[str, Sequence[str]] = {}
    for cells in lines:
        name = last_name(cells[names_column])
        if name in path_by_name:
            cells_by_path[path_by_name[name]] = cells
    if 2 * len(cells_by_path) < len(path_by_name):
        return {}
    rows = list(cells_by_path.values())
    columns = _columns_of_classes(shape, lines, rows)
    if len(columns) != 1:
        return {}
    classes_column = columns[0]
    return {path: cells[classes_column] for path, cells in cells_by_path.items()}


def _column_of_names(path_by_name: Mapping[str, str], lines: Sequence[Sequence[str]]) -> int | None:
    """The first column that names at least half as many images as there are."""
    column_count = min(map(len, lines), default=0)
    for column in range(column_count):
        count = sum(last_name(cells[column]) in path_by_name for cells in lines)
        if 2 * count >= len(path_by_name):
            return column
    return None


def _columns_of_classes(
    shape: Shape, lines: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]
) -> list[int]:
    """The columns that hold class folders alone; of several, those that are called labels."""
    classes = shape.roles.classes
    column_count = min(map(len, lines))
    columns: list[int] = []
    columns_called_labels: list[int] = []
    for column in range(column_count):
        if classes.issuperset(cells[column] for cells in rows):
            columns.append(column)
            title = lines[0][column].lower()
            if _IS_LABEL.search(title):
                columns_called_labels.append(column)
    return columns_called_labels or columns


STRUCTURES = {"labelled-splits": recognise}
