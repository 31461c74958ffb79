"""Class folders, with folders of splits above or below them or without."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint, join_hints
from imagenet_prep.init.class_doubts import classes_of_another_case, labelled_elsewhere
from imagenet_prep.init.folder_shapes import Shape, doubts_of_masks, faults_of, is_usual, shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import (
    LIKELY,
    ONLY_IF_ASKED,
    POSSIBLE,
    DoubtError,
    Interpretation,
    Proposal,
)
from imagenet_prep.init.split_lists import (
    SplitLists,
    find_split_lists,
    find_split_table_of_all,
    read_whole_lists,
)
from imagenet_prep.init.split_options import named_folders, named_lists
from imagenet_prep.init.structures.all_folders import are_doubtful_parts, top_folders
from imagenet_prep.init.table_proposal import remarks_on_lists
from imagenet_prep.recipes.classes import class_order
from imagenet_prep.recipes.folder_labels import misread_masks
from imagenet_prep.recipes.folder_roles import FolderTree
from imagenet_prep.recipes.folder_words import is_image_folder, is_mask_folder, name_as_split
from imagenet_prep.recipes.path_parts import parent_of
from imagenet_prep.text import listed, number_of

_CLASS_FOLDERS = {
    "class-folders": ("first", "folders"),
    "inner-folders": ("inner", "inner folders"),
    "folder-paths": ("path", "paths of the folders"),
}
"""The value of `class_folder` in a recipe, and what the classes are then, by structure."""


def _recognise_first(inspection: Inspection) -> Interpretation | None:
    """Files in folders; one folder alone may be a class or not."""
    folders = named_folders(inspection)
    shape = shape_of(inspection.items, splits=folders)
    classes = shape.classes
    if not classes or _have_no_classes(folders, shape):
        return None
    certainty = LIKELY
    if len(classes) == 1 and not folders:
        if is_image_folder(classes[0]):
            return None
        certainty = POSSIBLE
    commands_for_inner = _commands_for_inner(inspection, shape)
    command_for_paths = _command_for_paths(inspection)
    faults = faults_of(inspection.folder, shape, commands_for_inner, command_for_paths)
    return _interpret(inspection, shape, "class-folders", certainty, faults)


def _have_no_classes(folders: Mapping[str, str] | None, shape: Shape) -> bool:
    """Whether no folder of a split that the user names holds class folders: others may."""
    return bool(folders) and not any(shape.splits)


def _recognise_deep(structure: str, inspection: Inspection) -> Interpretation | None:
    """Folders within folders, which are classes only if asked."""
    folders = named_folders(inspection)
    first_shape = shape_of(inspection.items, splits=folders)
    class_folder, _ = _CLASS_FOLDERS[structure]
    shape = shape_of(inspection.items, class_folder, folders)
    is_deep = first_shape.files.deep() or first_shape.roles.parts
    if not shape.classes or not is_deep or _have_no_classes(folders, shape):
        return None
    certainty = ONLY_IF_ASKED
    if structure == "folder-paths" and are_doubtful_parts(first_shape.roles):
        is_alone = len(shape.classes) == 1 and not folders
        certainty = POSSIBLE if is_alone else LIKELY
    command_for_paths = _command_for_paths(inspection)
    faults = faults_of(inspection.folder, shape, "", command_for_paths)
    return _interpret(inspection, shape, structure, certainty, faults)


def _interpret(
    inspection: Inspection,
    shape: Shape,
    structure: str,
    certainty: int,
    faults: Sequence[InputError],
) -> Interpretation:
    """The folder with these class folders."""
    class_folder, classes_noun = _CLASS_FOLDERS[structure]
    place = ""
    options = {"class_folder": class_folder}
    if class_folder == "first":
        place = _place_of_classes(shape)
        options = {}
    classes = listed(shape.classes)
    count = number_of(len(shape.classes), "folder")
    evidence = f"{count} of files{place}: {classes}"
    meaning = f"the {classes_noun} are the classes: {classes}"
    if shape.roles.doubtful:
        meaning += f"; without {listed(shape.roles.doubtful)}"
    proposal, list_files = _propose(inspection, shape, options)
    if misread_masks(shape.files):
        proposal = replace(proposal, classes=shape.classes)
    ways_to_divide, rival_lists, list_notes = _lists(inspection, shape, proposal)
    notes_on_unlabelled = _notes_on_unlabelled(inspection, shape)
    losses = [
        *doubts_of_masks(inspection.folder, shape),
        *_missed(inspection, shape),
        *labelled_elsewhere(inspection, shape),
        *classes_of_another_case(inspection, shape),
        *ways_to_divide,
    ]
    return Interpretation(
        certainty,
        (evidence, *remarks_on_lists(list_files or frozenset())),
        meaning,
        proposal,
        faults,
        annotation_files=list_files,
        losses=losses,
        skip_notes=[*notes_on_unlabelled, *list_notes],
        labelled=len(proposal.names),
        classes=len(shape.classes),
        list_files=rival_lists,
    )


def _place_of_classes(shape: Shape) -> str:
    """The folders that hold the class folders, for the evidence."""
    if shape.roles.parts:
        return f" in each of {listed(shape.roles.parts)}"
    if any(shape.splits):
        return f" in {' and '.join(shape.splits)}"
    return ""


# the splits ---------------------------------------------------------------------------------------


def _propose(
    inspection: Inspection, shape: Shape, options: Mapping[str, Any]
) -> tuple[Proposal, frozenset[str] | None]:
    """A source of folders, and where its splits are unless their usual names say so;
    and the lists of splits.
    """
    content = inspection.content
    assert content is not None
    splits = shape.splits
    names = [name.removeprefix(shape.lead) for name in shape.files.names()]
    proposal = Proposal("folders", content, names, shape.lead, splits=splits, options=options)
    lists = _lists_of(inspection, shape, names)
    if lists is not None:
        list_files = frozenset(lists.files.values())
        return proposal.divide(lists), list_files
    if not is_usual(shape.roles):
        proposal = replace(proposal, places=shape.roles.places())
    return proposal, None


def _lists_of(inspection: Inspection, shape: Shape, names: Sequence[str]) -> SplitLists | None:
    """The lists of splits: those that the user names,
    or the only ones where no folder says what the splits are.
    """
    if files := named_lists(inspection):
        return read_whole_lists(inspection, files, names, shape.lead)
    if not _is_undivided(shape):
        return None
    ways_to_divide = find_split_lists(inspection, names, shape.lead)
    if not ways_to_divide:
        return find_split_table_of_all(inspection, names, shape.lead)
    if len(ways_to_divide) != 1:
        return None
    return ways_to_divide[0]


def _is_undivided(shape: Shape) -> bool:
    """Whether no folder says what the splits are, and all files are in class folders."""
    return not shape.roles.places() and not shape.splits


_MOST_QUESTIONS = 3
"""Ways to split the images that a question names."""


def _lists(
    inspection: Inspection, shape: Shape, proposal: Proposal
) -> tuple[list[InputError], frozenset[str], list[str]]:
    """The question between several ways to split images by lists, and these lists;
    and the notes on lists that leave images out.
    """
    no_lists: frozenset[str] = frozenset()
    if proposal.lists or proposal.written_lists:
        unlisted = len(shape.files.names()) - len(proposal.names)
        if not unlisted:
            return [], no_lists, []
        count = number_of(unlisted, inspection.noun)
        return [], no_lists, [f"{count} in no list of a split, left out"]
    if not _is_undivided(shape) or inspection.options.splits:
        return [], no_lists, []
    ways_to_divide = find_split_lists(inspection, proposal.names, shape.lead)
    if len(ways_to_divide) < 2:
        return [], no_lists, []
    rival_lists = frozenset(name for lists in ways_to_divide for name in lists.files.values())
    return [_question_of_lists(inspection, ways_to_divide)], rival_lists, []


def _question_of_lists(inspection: Inspection, ways_to_divide: Sequence[SplitLists]) -> InputError:
    """The question between several ways to split images, with the command for each."""
    commands: list[str] = []
    for lists in ways_to_divide[:_MOST_QUESTIONS]:
        commands.append(inspection.command_without_columns(splits=lists.files))
    count = f"{len(ways_to_divide)} ways to split the images"
    first_files = [listed(lists.files.values()) for lists in ways_to_divide[:_MOST_QUESTIONS]]
    problem = f"{inspection.folder}: {count}: {'; '.join(first_files)}"
    lead = "take one: "
    unnamed = len(ways_to_divide) - len(first_files)
    if unnamed:
        problem += f"; and {unnamed} more"
        lead = "take one, for example: "
        commands = commands[:1]
    hint = Hint(lead, join_hints("; or ", commands))
    aim, outcome = "split the images by none of them", "not split by them"
    expected = "expected one list for each split, or no list"
    return DoubtError.of(aim, outcome, problem, expected, hint)


# what would be lost or misread --------------------------------------------------------------------


_ONE_LEVEL = "expected only class folders, or only splits (train, val) with class folders in each"


def _missed(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The images outside of class folders that may have labels."""
    tree = FolderTree.take(inspection.items)
    faults: list[InputError] = []
    for folder in shape.roles.missed:
        path = f"{shape.lead}{folder}"
        below = tree.at(path)
        count = number_of(below.total, inspection.noun)
        hint = ""
        has_classes = not shape.roles.classes.isdisjoint(below.below)
        if has_classes and shape.splits and not is_mask_folder(folder):
            command_for_split = inspection.command(**_with_split(shape, folder))
            hint = Hint("to make it a split, too: ", command_for_split)
        siblings = "splits" if shape.splits else "class folders"
        place = f"is next to {siblings}, and would be left out"
        problem = f"{inspection.folder}: the folder {path} ({count}) {place}"
        faults.append(InputError(problem, _ONE_LEVEL, hint))
    if shape.roles.loose:
        faults += _fault_of_loose(inspection, shape)
    return faults


def _fault_of_loose(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The fault of images next to the folders of classes or splits;
    those within a split are faults of the class folders.
    """
    lead = shape.lead.rstrip("/")
    loose = [name for name in inspection.items if parent_of(name) == lead]
    if not loose:
        return []
    count = number_of(len(loose), inspection.noun)
    problem = f"{inspection.folder}: {loose[0]} is in no class folder ({count})"
    split = "SPLIT/" if shape.splits else ""
    hint = "move it into a class folder" if len(loose) == 1 else "move them into class folders"
    return [InputError(problem, f"expected {shape.lead}{split}CLASS/FILE", hint)]


def _with_split(shape: Shape, folder: str) -> dict[str, object]:
    """The options that take a folder next to the splits as one more."""
    splits = {**shape.splits, folder: name_as_split(folder)}
    places = {split: f"{shape.lead}{top}" for top, split in splits.items()}
    return {"label": None, "image": None, "splits": places}


def _notes_on_unlabelled(inspection: Inspection, shape: Shape) -> list[str]:
    """The notes on folders whose images have no class,
    each with the command that makes records of them.
    """
    tree = FolderTree.take(inspection.items)
    noun = inspection.noun
    notes: list[str] = []
    for folder in (*shape.roles.unlabelled, *shape.roles.doubtful):
        path = f"{shape.lead}{folder}"
        total = tree.at(path).total
        if shape.splits and not shape.roles.classes.isdisjoint(tree.at(path).below):
            count = number_of(total, noun)
            as_split = inspection.command_for_another(**_with_split(shape, folder))
            notes.append(Hint(f"{path}: {count}, left out; to make it a split, too: ", as_split))
            continue
        count = number_of(total, f"{noun} without a class", f"{noun}s without a class")
        options = (("as", "unlabelled"),)
        unlabelled = command("init", inspection.folder / path, options)
        notes.append(Hint(f"{path}: {count}, left out; for records without labels: ", unlabelled))
    return notes


def _commands_for_inner(inspection: Inspection, shape: Shape) -> str:
    """The commands that take folders within classes."""
    classes_by_structure: dict[str, str] = {}
    for structure in ("inner-folders", "folder-paths"):
        class_folder, _ = _CLASS_FOLDERS[structure]
        inner_shape = shape_of(inspection.items, class_folder)
        if not inner_shape.files.same:
            classes_by_structure[structure] = listed(inner_shape.classes)
    if not inspection.options.splits:
        classes_by_structure["all-folders"] = listed(
            class_order(top_folders(inspection.items, shape.lead))
        )
    commands: list[str] = []
    for structure, classes in classes_by_structure.items():
        command_of_structure = inspection.command_without_columns(**{"as": structure})
        commands.append(Hint(command_of_structure, f" (classes: {classes})"))
    return Hint("choose the classes: ", join_hints("; or ", commands))


def _command_for_paths(inspection: Inspection) -> str:
    folder_paths = inspection.command_without_columns(**{"as": "folder-paths"})
    return Hint("to make each path of folders a class: ", folder_paths)


STRUCTURES = {
    "class-folders": _recognise_first,
    "inner-folders": functools.partial(_recognise_deep, "inner-folders"),
    "folder-paths": functools.partial(_recognise_deep, "folder-paths"),
}
