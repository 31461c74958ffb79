"""Tiny ImageNet and sets like it: class folders of train,
and a list of the classes for the loose images of val.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts.class_folders import Shape, shape_of
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.init.split_lists import read_cells
from imagenet_prep.recipes.path_matching import without_ending
from imagenet_prep.recipes.splits import split_names
from imagenet_prep.text import listed, number_of

_ENDINGS = (".txt", ".csv", ".tsv")
_LARGEST = 1 << 28
_IS_LABEL = re.compile("class|label|wnid|category")


def recognise(inspection: Inspection) -> Interpretation | None:
    """A folder of a split without class folders has a list that gives each
    of its images a class of the others.
    """
    shape = shape_of(inspection.items)
    if not shape.splits or "" in shape.splits or not shape.roles.unlabelled:
        return None
    assert inspection.content is not None
    labels = {
        name.removeprefix(shape.lead): class_name
        for name, class_name in shape.class_by_file().items()
    }
    splits, used = dict(shape.splits), []
    for folder, split in split_names(shape.roles.unlabelled).items():
        for name in _lists_of(inspection, f"{shape.lead}{folder}"):
            if found := _read_classes(inspection, shape, f"{shape.lead}{folder}", name):
                labels |= {path.removeprefix(shape.lead): label for path, label in found.items()}
                splits[folder] = split
                used.append(name)
                break
    if not used:
        return None
    bare = [folder for folder in shape.roles.unlabelled if folder not in splits]
    left = len(inspection.items) - len(labels)
    note = f"{', '.join(bare)}: {number_of(left, inspection.noun)} without a class, left out"
    return Interpretation(
        CERTAIN,
        (f"{listed(used)} has the classes of {listed(splits.keys() - shape.splits.keys())}",),
        (
            f"the folders of {listed(shape.splits)} are the classes: {listed(shape.classes)}; "
            f"{listed(used)} has others"
        ),
        Proposal(
            "files",
            inspection.content,
            list(labels),
            shape.lead,
            splits=splits,
            written_labels=labels,
        ),
        annotation_files=frozenset(used),
        skip_notes=[note] if left else [],
        labelled=len(labels),
        classes=len(shape.classes),
    )


def _lists_of(inspection: Inspection, folder: str) -> Iterator[str]:
    """The text files in a folder, or next to it with its name."""
    sizes = zip(inspection.listing.names, inspection.listing.lengths.tolist(), strict=True)
    for name, size in sizes:
        is_near = name.startswith((f"{folder}/", f"{folder}_", f"{folder}."))
        if is_near and name.lower().endswith(_ENDINGS) and size <= _LARGEST:
            yield name


def _read_classes(inspection: Inspection, shape: Shape, folder: str, name: str) -> dict[str, str]:
    """The class of each image of a folder, by the columns of a list; none if one has no class.

    The list names files, with their endings or without.
    """
    images = {
        path.rpartition("/")[2]: path for path in inspection.items if path.startswith(f"{folder}/")
    }
    stems = {without_ending(last): path for last, path in images.items()}
    lines = read_cells(inspection.folder / name)
    return _classes_in(shape, images, lines) or (
        _classes_in(shape, stems, lines) if len(stems) == len(images) else {}
    )


def _classes_in(
    shape: Shape, images: Mapping[str, str], lines: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The class of each of some images, which are by their names, in the cells of a list;
    none if one has no class.
    """
    columns = range(min(map(len, lines), default=0))
    last = [[cell.rpartition("/")[2] for cell in cells] for cells in lines]
    place = next(
        (
            column
            for column in columns
            if sum(cells[column] in images for cells in last) >= len(images)
        ),
        None,
    )
    if place is None:
        return {}
    rows = {
        images[names[place]]: cells
        for names, cells in zip(last, lines, strict=True)
        if names[place] in images
    }
    classes = shape.roles.classes
    fitting = [
        column for column in columns if all(cells[column] in classes for cells in rows.values())
    ]
    named = [column for column in fitting if _IS_LABEL.search(lines[0][column].lower())] or fitting
    if len(rows) < len(images) or len(named) != 1:
        return {}
    return {path: cells[named[0]] for path, cells in rows.items()}


LAYOUTS = {"labelled-splits": recognise}
