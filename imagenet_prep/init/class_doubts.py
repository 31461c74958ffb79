"""The doubts about class folders: labels of another table, and names that differ only in case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine, command_line, in_sequence
from imagenet_prep.hints import Hint
from imagenet_prep.init.folder_shapes import Shape
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import DoubtError
from imagenet_prep.text import listed


def labelled_elsewhere(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The folders without classes whose images a table labels in a way
    that can't be joined to the class folders.
    """
    tables = [table for table in inspection.partial if table.has_labels and not table.is_of_test]
    faults: list[InputError] = []
    for folder in shape.roles.unlabelled:
        lead = f"{shape.lead}{folder}/"
        rows = {row for row, name in enumerate(inspection.items) if name.startswith(lead)}
        for table in tables:
            labels = table.label_by_row()
            if rows <= labels.keys():
                class_names = set(map(str, labels.values()))
                shown_labels = listed(sorted(class_names))
                problem = (
                    f"{inspection.folder}: {table.name} labels the images of {lead} as "
                    f"{shown_labels}, and is not read"
                )
                expected = (
                    f"expected a file in {lead} or called as that folder, "
                    f"with the names of the class folders: {listed(shape.classes)}"
                )
                faults.append(InputError(problem, expected))
    return faults


def classes_of_another_case(inspection: Inspection, shape: Shape) -> list[InputError]:
    """The class folders of different splits whose names differ in the case of letters alone:
    they may be one class.
    """
    names_by_word: dict[str, list[str]] = {}
    for name in shape.classes:
        word = name.casefold()
        names_by_word.setdefault(word, []).append(name)
    doubles: list[list[str]] = []
    moves: list[CommandLine] = []
    for names in names_by_word.values():
        if len(names) > 1 and _are_in_different_splits(shape, names):
            doubles.append(names)
            moves += _moves_into_one(inspection, shape, names)
    if not doubles:
        return []
    first_names = " and ".join(doubles[0])
    difference = "differ only in upper and lower case"
    problem = f"{inspection.folder}: classes whose names {difference}: {first_names}"
    hint = "give their folders one name"
    if not any(Path(move.words[-1]).exists() for move in moves):
        hint = Hint("to make them one: ", in_sequence(moves))
    aim, outcome = "keep them as different classes", "kept as different classes"
    return [DoubtError.of(aim, outcome, problem, "expected one name for each class", hint)]


def _are_in_different_splits(shape: Shape, names: Sequence[str]) -> bool:
    """Whether no folder of a split holds two of these classes."""
    leads: list[str] = []
    for name in names:
        leads += [division.lead for division, _, _ in shape.files.runs[name]]
    return len(leads) == len(set(leads))


def _moves_into_one(
    inspection: Inspection, shape: Shape, names: Sequence[str]
) -> Iterator[CommandLine]:
    """The commands that give the folders of several names the first of them."""
    kept_name, *other_names = names
    for name in other_names:
        for division, _, _ in shape.files.runs[name]:
            place = inspection.folder / division.lead
            source, target = place / name, place / kept_name
            yield command_line(["mv", "--", str(source), str(target)])
