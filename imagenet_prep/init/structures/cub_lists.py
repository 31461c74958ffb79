"""CUB-200-2011 and sets like it: class folders with images.txt and
train_test_split.txt by number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.init.folder_shapes import Shape, shape_of
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.recipes.path_matching import match
from imagenet_prep.recipes.path_parts import base_name
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import listed, number_of

_PATHS, _LABELS, _SPLITS = "images.txt", "image_class_labels.txt", "train_test_split.txt"
_BOXES = "CUB-200"
_NAMES_OF_SPLITS = {"1": "train", "0": "test"}


def recognise(inspection: Inspection) -> Interpretation | None:
    """Each line of the lists has the number of an image, then its path,
    its class, or 1 for train and 0 for test.
    """
    lead = _folder_of_lists(inspection)
    shape = shape_of(inspection.items)
    if lead is None or not shape.has_classes or shape.splits:
        return None
    base = inspection.folder / lead
    listed_by_number, bad_path = _read_list(base / _PATHS)
    names = {name.removeprefix(shape.lead) for name in shape.files.names()}
    path_by_number = _as_files(
        listed_by_number, sorted(names), base, inspection.folder / shape.lead
    )
    listed_names = names.intersection(path_by_number.values())
    if not path_by_number or 2 * len(listed_names) < len(names):
        return None
    split_by_number, bad_line = _read_list(base / _SPLITS)
    list_files = _files_of_lists(inspection, lead)
    faults = _missing_images(base, path_by_number, names, _loose_images(inspection, shape))
    if bad_path:
        faults.append(_fault_of_line(base / _PATHS, bad_path, "expected NUMBER CLASS/FILE"))
    if bad_line:
        expected = "expected NUMBER 1 (train) or NUMBER 0 (test)"
        faults.append(_fault_of_line(base / _SPLITS, bad_line, expected))
    else:
        faults += _missing_splits(base, path_by_number, split_by_number)
    if not faults and f"{lead}{_LABELS}" in list_files:
        label_by_number, _ = _read_list(base / _LABELS)
        faults += _contradictions(base, path_by_number, label_by_number)
    if _BOXES in inspection.annotations and not faults:
        return None  # with boxes, boxes-in-class-folders takes these classes and these splits
    divided = _divide(path_by_number, split_by_number)
    interpretation = _interpret(inspection, shape, lead, list(path_by_number.values()), divided)
    return replace(interpretation, faults=faults, annotation_files=frozenset(list_files))


def _interpret(
    inspection: Inspection,
    shape: Shape,
    lead: str,
    paths: Sequence[str],
    divided: Mapping[str, list[str]],
) -> Interpretation:
    """The images at these paths, divided by the lists in the folder ``lead``."""
    assert inspection.content is not None
    proposal = Proposal("folders", inspection.content, paths, shape.lead, written_lists=divided)
    return Interpretation(
        CERTAIN,
        (_evidence(lead, divided),),
        f"the folders are the classes: {listed(shape.classes)}; {_SPLITS} divides them",
        proposal,
        skip_notes=_notes_on_unlisted(inspection, lead, len(paths)),
        labelled=len(paths),
        classes=len(shape.classes),
    )


def _files_of_lists(inspection: Inspection, lead: str) -> list[str]:
    """The lists that are in a folder."""
    names = set(inspection.listing.names)
    files = [f"{lead}{name}" for name in (_PATHS, _LABELS, _SPLITS)]
    return [file for file in files if file in names]


def _evidence(lead: str, divided: Mapping[str, list[str]]) -> str:
    counts = ", ".join(f"{len(paths):,} {split}" for split, paths in divided.items())
    total = sum(map(len, divided.values()))
    return f"{lead}{_PATHS} names {total:,} images in class folders; {lead}{_SPLITS}: {counts}"


def _notes_on_unlisted(inspection: Inspection, lead: str, listed_count: int) -> list[str]:
    """The note on images in no list."""
    unlisted = len(inspection.items) - listed_count
    if not unlisted:
        return []
    count = number_of(unlisted, inspection.noun)
    return [f"{count} not in {lead}{_PATHS}, left out"]


def _folder_of_lists(inspection: Inspection) -> str | None:
    """The folder that has the lists of paths and of splits, with a slash; None if none does."""
    names = set(inspection.listing.names)
    for name in names:
        lead = name.removesuffix(_PATHS)
        if base_name(name) == _PATHS and f"{lead}{_SPLITS}" in names:
            return lead
    return None


def _read_list(path: Path) -> tuple[dict[str, str], int]:
    """The text of each line of a list, by the number that it starts with, and 0 or the first line
    that has no number, no text, or the number of a line before it; none if most lines are such.
    """
    text_by_number: dict[str, str] = {}
    bad_lines: list[int] = []
    for line_number, line in enumerate(_lines_of(path), 1):
        number, _, text = line.strip().partition(" ")
        if not number:
            continue
        if not number.isdigit() or not text or number in text_by_number:
            bad_lines.append(line_number)
            continue
        text_by_number[number] = text.strip()
    if len(bad_lines) > len(text_by_number):
        text_by_number = {}
    return text_by_number, min(bad_lines, default=0)


def _lines_of(path: Path) -> list[str]:
    text = read_plain(path).decode("utf-8-sig", "replace")
    return text.splitlines()


def _fault_of_line(path: Path, line: int, expected: str) -> InputError:
    """The fault of a line of a list that is of another form than ``expected``."""
    text = _lines_of(path)[line - 1].strip()
    number, _, value = text.partition(" ")
    problem = f"{path}, line {line} is {text!r}"
    if number.isdigit() and value:
        problem = f"{path}, line {line}: the number {number} is in a line before, too"
    return InputError(problem, f"{expected}, and each number once", "correct the line")


def _as_files(
    path_by_number: Mapping[str, str], names: Sequence[str], base: Path, images: Path
) -> dict[str, str]:
    """The paths of a list as the files are called, whose names may have letters of another case."""
    rows = match(list(path_by_number.values()), names, images, base / _PATHS)
    by_number: dict[str, str] = {}
    for (number, path), row in zip(path_by_number.items(), rows, strict=True):
        by_number[number] = path if row < 0 else names[row]
    return by_number


def _divide(
    path_by_number: Mapping[str, str], split_by_number: Mapping[str, str]
) -> dict[str, list[str]]:
    """The images of each split."""
    divided: dict[str, list[str]] = {split: [] for split in _NAMES_OF_SPLITS.values()}
    for number, path in path_by_number.items():
        flag = split_by_number.get(number, "")
        split = _NAMES_OF_SPLITS.get(flag, "test")
        divided[split].append(path)
    return {split: paths for split, paths in divided.items() if paths}


def _missing_images(
    base: Path,
    path_by_number: Mapping[str, str],
    names: Collection[str],
    loose_names: Collection[str],
) -> list[InputError]:
    """The faults of images that are not there, or in no class folder."""
    unknown = [path for path in path_by_number.values() if path not in names]
    loose = [path for path in unknown if path in loose_names]
    missing = [path for path in unknown if path not in loose_names]
    faults: list[InputError] = []
    if missing:
        count = number_of(len(missing), "image")
        problem = f"{base / _PATHS} names {count} that no class folder has: {listed(missing)}"
        pronoun, lines = ("it", "its line") if len(missing) == 1 else ("them", "their lines")
        hint = f"add {pronoun}, or delete {lines} in {_PATHS}"
        faults.append(InputError(problem, "expected every image in its class folder", hint))
    if loose:
        count = number_of(len(loose), "image")
        problem = f"{base / _PATHS} names {count} in no class folder: {listed(loose)}"
        hint = (
            "move images into class folders, and write CLASS/FILE in their lines; "
            f"or take the lines out of {_PATHS}"
        )
        faults.append(InputError(problem, "expected CLASS/FILE", hint))
    return faults


def _loose_images(inspection: Inspection, shape: Shape) -> set[str]:
    """The images next to the class folders, as the list names them."""
    loose = (name.removeprefix(shape.lead) for name in inspection.items)
    return {name for name in loose if "/" not in name}


def _missing_splits(
    base: Path, path_by_number: Mapping[str, str], split_by_number: Mapping[str, str]
) -> list[InputError]:
    """The fault of images of no split."""
    numbers = [
        number for number in path_by_number if split_by_number.get(number) not in _NAMES_OF_SPLITS
    ]
    if not numbers:
        return []
    count = number_of(len(numbers), "image")
    word = "number" if len(numbers) == 1 else "numbers"
    which = f"{word} {listed(numbers)} of {_PATHS}"
    problem = f"{base / _SPLITS} has no 0 or 1 for {count}: {which}"
    expected = "expected a line for each image: NUMBER 1 (train) or NUMBER 0 (test)"
    return [InputError(problem, expected, "add or correct these lines")]


def _contradictions(
    base: Path, path_by_number: Mapping[str, str], label_by_number: Mapping[str, str]
) -> list[InputError]:
    """The fault of a list of classes that are not those of the folders."""
    if not label_by_number:
        return []
    image_by_label: dict[str, dict[str, str]] = {}
    folder_by_label: dict[str, str] = {}
    problem = ""
    for number, path in path_by_number.items():
        folder = path.partition("/")[0]
        label = label_by_number.get(number, "")
        images = image_by_label.setdefault(folder, {})
        images.setdefault(label, path)
        other_folder = folder_by_label.setdefault(label, folder)
        if not label:
            problem = f"has no line for image {number}, {path}"
        elif len(images) > 1:
            numbers = " and ".join(f"{label} ({image})" for label, image in images.items())
            problem = f"gives images in the folder {folder} different numbers: {numbers}"
        elif other_folder != folder:
            problem = f"gives the folders {other_folder} and {folder} the same number, {label}"
        if problem:
            break
    else:
        return []
    expected = "expected a line for each image, and one number for each class folder"
    return [
        InputError(f"{base / _LABELS} {problem}", expected, f"correct {_LABELS}, or move it away")
    ]


STRUCTURES = {"cub-lists": recognise}
