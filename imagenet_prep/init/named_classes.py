"""The names of classes that are ids: of the file that the user names, of a column, or of the only
file of names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.hints import Hint
from imagenet_prep.init.declared_classes import MOST_LISTED, first_number
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.name_files import find_name_files
from imagenet_prep.init.proposal import Proposal
from imagenet_prep.recipes.class_names import read_names, renamed
from imagenet_prep.recipes.classes import Classes
from imagenet_prep.recipes.names_of_classes import NamesOfClasses
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.recipe_lines import block, flow, path_below, place_in_recipe
from imagenet_prep.storage.files import absence_of
from imagenet_prep.text import number_of

_NOTE = "the name of each class, by its id"


class NamedClasses(Struct, frozen=True):
    """The key of a recipe that names its classes, the classes under these names,
    and what to tell of them.
    """

    text: str
    classes: Classes
    evidence: tuple[str, ...] = ()


def name_classes(
    dataset: RecipeDataset,
    proposal: Proposal,
    inspection: Inspection | None,
    target: Path,
    options: InitOptions,
) -> NamedClasses:
    """The names of classes that are ids: of the file that --names says, of another column, or of
    the only such file.

    Raises:
        UsageError: the file that --names says is not there.
        InputError: it lacks the name of a class.
    """
    classes = dataset.classes
    number = first_number(classes, proposal)
    if options.names is not None:
        return _name_by_file(classes, number, options.names, target)
    if proposal.table is not None:
        named = _name_by_column(classes, proposal.table.class_names)
        if named is not None:
            return named
    has_words = classes.texts != classes.names  # the source knows them, from a file of its own
    if inspection is None or has_words or not classes.names:
        return NamedClasses("", classes)
    return _name_by_folder(classes, number, inspection, target)


def _name_by_file(classes: Classes, number: int | None, path: Path, target: Path) -> NamedClasses:
    """The classes with the names that the user's file has.

    Raises:
        UsageError: the file is not there, or there is no class.
        InputError: it lacks the name of a class.
    """
    if not path.is_file():
        problem = f"{path} is a folder" if path.is_dir() else absence_of(path)
        raise UsageError(problem, "expected the file of the names of classes")
    if not classes.names:
        problem = f"--names {path}: the data has no classes"
        raise UsageError(problem, "expected data with classes", "leave out --names")
    full_path = path.resolve()
    names_of_classes = read_names(full_path, full_path.read_bytes())
    names = names_of_classes.names_of_all(classes.names, number, str(path))
    key = block("class_names", place_in_recipe(full_path, target), _NOTE)
    return NamedClasses(key, renamed(classes, names))


def _name_by_column(classes: Classes, class_names: Mapping[str, str]) -> NamedClasses | None:
    """The classes with the names of another column of their table; None if it lacks one."""
    if not class_names or set(class_names) != set(classes.names):
        return None
    if len(class_names) > MOST_LISTED:
        return None
    key = f"class_names: {flow(dict(class_names))}   # by the numbers of the table"
    return NamedClasses(key, renamed(classes, class_names))


def _name_by_folder(
    classes: Classes, number: int | None, inspection: Inspection, target: Path
) -> NamedClasses:
    """The classes with the names of the only file of the folder that names all of them, if it says
    which name is of which id.
    """
    candidates: dict[str, NamesOfClasses] = {}
    for name in find_name_files(inspection):
        path = inspection.folder / name
        with contextlib.suppress(InputError, OSError):
            names = read_names(path, path.read_bytes())
            if _names_all(names, classes, number):
                candidates[name] = names
    commands = [_command_with_names(inspection, target, name) for name in candidates]
    notes: list[str] = []
    for name, command in zip(candidates, commands, strict=True):
        notes.append(Hint(f"{name} may have the names of the classes: ", command))
    if len(candidates) != 1:
        return NamedClasses("", classes, tuple(notes))
    name, names = next(iter(candidates.items()))
    if not names.by_id and len(names.in_order) != len(classes.names):
        return NamedClasses("", classes, tuple(notes))
    path_in_recipe = path_below(place_in_recipe(inspection.folder, target), name)
    total = number_of(len(classes.names), "class", "classes")
    return NamedClasses(
        block("class_names", path_in_recipe, _NOTE),
        renamed(classes, names.names_of(classes.names, number)),
        (f"{name} names all of {total}",),
    )


def _names_all(names: NamesOfClasses, classes: Classes, number: int | None) -> bool:
    """Whether a file has a name for each class, and one that says more than its id."""
    if names.are_ids:
        return False
    name_by_id = names.names_of(classes.names, number)
    says_more = any(class_id != name for class_id, name in name_by_id.items())
    return says_more and len(name_by_id) == len(classes.names)


def _command_with_names(inspection: Inspection, target: Path, name: str) -> str:
    """The command that takes a file of names, and writes another recipe."""
    output = target.with_name(f"{target.stem}-named{target.suffix}")
    return inspection.command(names=inspection.folder / name, output=output)
