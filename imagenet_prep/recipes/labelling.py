"""label_and_divide: annotated files -> their labels, by a table or by folders, and their splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.class_names import name_classes
from imagenet_prep.recipes.classes import Classes, given_classes, note_on_first
from imagenet_prep.recipes.column_splits import divisions_of_table
from imagenet_prep.recipes.columns import Content
from imagenet_prep.recipes.divided_files import DividedFiles
from imagenet_prep.recipes.divisions import Division, divide, stratify
from imagenet_prep.recipes.folder_labels import label_by_folder
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.labels import Labelled, label_by_table, may_lack_labels, read_table
from imagenet_prep.recipes.labels_file import LabelTable
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.schema import Labels
from imagenet_prep.recipes.shared_numbering import SharedNumbering
from imagenet_prep.recipes.splits import are_in_an_image_folder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import places_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed, number_of


def label_and_divide(
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    content: Content,
    shared: SharedNumbering,
) -> DividedFiles:
    """The files with their labels, in their splits."""
    source = read_table(file, root) or inputs.table
    table: LabelTable | None = None
    in_folders = False
    if source is not None:
        table, _ = source
    else:
        in_folders = _are_in_class_folders(file, inputs, annotations.listing)
    has_labels = in_folders or (table is not None and table.labels is not None)
    is_inception = file.recipe.record == "inception"
    if file.recipe.record is None and has_labels and content == "image":
        is_inception = _has_usual_record(file, table) and not annotations.columns
    _refuse_several_labels(file, table, is_inception=is_inception)
    if not has_labels:
        _refuse_keys_of_labels(file, is_inception=is_inception)
    first_label = _first_label(file, shared, is_inception=is_inception)
    declared = given_classes(file, root, first_label)
    if source is not None:
        labelled, divisions, notes = _divide_labelled(
            file, inputs, annotations, root, source, declared, first_label
        )
    else:
        labelled, divisions, notes = _divide_folders(
            file, inputs, annotations, root, declared, first_label, in_folders=in_folders
        )
    named_classes = name_classes(file, root, labelled.classes)
    labelled = replace(labelled, classes=named_classes)
    labelled = _with_shared_numbers(file, labelled, shared, is_inception=is_inception)
    if file.recipe.stratified:
        divisions = stratify(file, annotations.listing, divisions[0], labelled.labels)
    return DividedFiles(
        file, inputs, content, annotations, divisions, labelled, is_inception, notes
    )


def _divide_labelled(  # noqa: PLR0913 - what load has found so far
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    source: tuple[LabelTable, AnyPath],
    declared: Classes | None,
    first_label: int,
) -> tuple[Labelled, list[Division], list[str]]:
    """The labels that a table gives, the splits, and notes on them."""
    listing = annotations.listing
    notes: list[str] = []
    table, _ = source
    if table.splits is not None:
        labelled = label_by_table(file, inputs, listing, source, declared, first_label)
        divisions = divisions_of_table(file, labelled)
    else:
        divisions, notes = divide(file, inputs, listing, root, 0, annotations.divided)
        labelled = label_by_table(file, inputs, listing, source, declared, first_label)
    divisions = [_without_left_out(division, labelled) for division in divisions]
    return labelled, divisions, notes


def _divide_folders(  # noqa: PLR0913 - what load has found so far
    file: RecipeFile,
    inputs: Inputs,
    annotations: Annotations,
    root: Path,
    declared: Classes | None,
    first_label: int,
    *,
    in_folders: bool,
) -> tuple[Labelled, list[Division], list[str]]:
    """The labels by folder, or none; the splits, and notes on them."""
    listing = annotations.listing
    classes_below = int(in_folders)
    divisions, notes = divide(file, inputs, listing, root, classes_below, annotations.divided)
    if not in_folders:
        no_labels = np.zeros(len(listing), np.int8)
        return Labelled(Classes(), no_labels), divisions, notes
    labelled = label_by_folder(file, inputs, listing, divisions, declared, first_label)
    divisions = [_labelled_rows(division, labelled) for division in divisions]
    return labelled, divisions, notes


def _are_in_class_folders(file: RecipeFile, inputs: Inputs, listing: Catalog) -> bool:
    """Whether the folders of files are classes: always in a source of folders; in a tar if all
    files are in folders, and these are no folder of images alone.
    """
    if not inputs.has_folders:
        return False
    if file.recipe.source and file.recipe.source.kind == "folders":
        return True
    if not all("/" in name for name in listing.names):
        return False
    return not are_in_an_image_folder(listing.names)


def _refuse_several_labels(
    file: RecipeFile, table: LabelTable | None, *, is_inception: bool
) -> None:
    """Raise UsageError if files have several labels, where each must have one."""
    needs_one_label = is_inception or file.recipe.stratified
    if table is None or not needs_one_label or not table.is_several:
        return
    key = "record" if is_inception else "stratified"
    hint = f"leave out {key}"
    labels = file.recipe.labels
    if isinstance(labels, Labels) and labels.several:
        hint += "; or, if each file has one label, leave out `several` in labels"
    problem = "files can have several labels"
    raise file.fault((key,), problem, "expected one label for each file", hint)


def _refuse_keys_of_labels(file: RecipeFile, *, is_inception: bool) -> None:
    """Raise UsageError for the first key that requires labels, where there are none."""
    keys = [name for name in _OF_LABELS if getattr(file.recipe, name) not in (None, False)]
    if is_inception:
        keys.insert(0, "record")
    if keys:
        expected = (
            "expected class folders, a file that `labels` names, or a table with a column of labels"
        )
        subject = "inception" if keys[0] == "record" else "it"
        problem = f"{subject} requires labels, and there are none"
        hint = f"add labels to the recipe, such as labels: FILE; or leave out {keys[0]}"
        raise file.fault((keys[0],), problem, expected, hint)


def _with_shared_numbers(
    file: RecipeFile, labelled: Labelled, shared: SharedNumbering, *, is_inception: bool
) -> Labelled:
    """The labels with the numbers that the sets of DATA_DIR share.

    Raises:
        InputError: a class, or a number, means something else in another set.
        UsageError: records in Inception's format would lack their labels.
    """
    classes = shared.settle(file, labelled.classes)
    if is_inception and labelled.unlabelled:
        files_have = number_of(labelled.unlabelled, "file has", "files have")
        hint = "leave out `record`"
        if file.recipe.labels is not None:
            hint += ", or leave such files out with labels: {file: ..., unlabelled: skip}"
        raise file.fault(
            ("record",), f"{files_have} no label", "inception requires a label for each file", hint
        )
    notes = labelled.notes
    if shared.first_label is None:
        notes = (*notes, *note_on_first(file, classes))
    return replace(labelled, classes=classes, notes=notes)


_OF_LABELS = ("classes", "class_names", "first_label", "stratified")
"""The keys of a recipe that say more of labels."""


def _has_usual_record(file: RecipeFile, table: LabelTable | None) -> bool:
    """Whether images have a label each, as in Inception's records, and nothing else."""
    recipe = file.recipe
    is_of_arrays = recipe.source is not None and recipe.source.kind == "arrays"
    if recipe.mask or recipe.boxes or recipe.keep or is_of_arrays:
        return False
    if table is None:
        return True
    return not (table.columns or table.is_several or may_lack_labels(file, table))


def _first_label(file: RecipeFile, shared: SharedNumbering, *, is_inception: bool) -> int:
    """The label of the first class: of the recipe, otherwise of the other sets;
    or 1 in Inception's format, where 0 is background.
    """
    if file.recipe.first_label is not None:
        return file.recipe.first_label
    if shared.first_label is not None:
        return shared.first_label
    return int(is_inception)


def _without_left_out(division: Division, labelled: Labelled) -> Division:
    labelled_division = _labelled_rows(division, labelled)
    if not len(labelled_division.rows):
        problem = f"no file of split {division.name} has a label"
        raise InputError(
            problem,
            f"expected at least one label in {_table_paths(labelled)}",
            "add labels; or write in the recipe's `labels`: unlabelled: keep",
        )
    return labelled_division


def _table_paths(labelled: Labelled) -> str:
    """The files that the labels are from."""
    if labelled.table is None or labelled.table_path is None:
        return "the labels"
    return listed(map(str, labelled.table.paths_of_files(labelled.table_path)))


def _labelled_rows(division: Division, labelled: Labelled) -> Division:
    """A division without the files that have no label."""
    labels = labelled.labels[places_of(division.rows)]
    has_label = labels >= 0
    if has_label.all():
        return division
    rows = np.asarray(division.rows, np.int64)
    return replace(division, rows=rows[has_label])
