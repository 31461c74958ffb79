"""Classes: their names and numbers, as a recipe, folders or a table give them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.labels_file import NO_LABEL
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import need_path
from imagenet_prep.sources.names import below
from imagenet_prep.sources.utf8_text import decode_text
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import parse_whole


class Classes(Struct, frozen=True):
    """The classes of a set: names, words, and the numbers that records get. Class ``i`` is label
    ``i`` + 1.

    ``first_label`` is the number that counts as class 0. ``is_numbered``: the labels are numbers in
    the data.
    """

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    first_label: int = 0
    is_numbered: bool = False


def class_order(names: Iterable[str]) -> list[str]:
    """Names of classes in the order of their labels:
    as numbers if all are numbers, otherwise by their bytes.
    """
    names = list(names)
    if all(parse_whole(name) is not None for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names, key=str.encode)


NUMBER = re.compile("0|[1-9][0-9]{0,17}")


def refuse_below_first(file: RecipeFile, classes: Classes, *, is_shared: bool = False) -> None:
    """Raise InputError for a number below that of the first class; ``is_shared``: the sets of the
    folder have that number, not the recipe.
    """
    first_label = classes.first_label
    lowest = min(classes.numbers, default=first_label)
    if lowest >= first_label:
        return
    sets = " of all sets in this folder" if is_shared else ""
    problem = f"{file.path}: a class has the number {lowest}, and the first label{sets} is "
    problem += str(first_label)
    hint = f"correct the number; in a table, {NO_LABEL} stands for no label"
    if is_shared:
        hint = "correct the number, or make this set in a folder of its own"
    elif lowest >= 0:
        hint = f"if {lowest} is a class, write first_label: {lowest}; otherwise {hint}"
    raise InputError(problem, f"expected {first_label} or more", hint)


def by_names(file: RecipeFile, names: Iterable[str], first_label: int) -> Classes:
    """The classes of folders: in order, the first of them has the number ``first_label``.

    Names that are all numbers keep them, as the numbers of a table do: a folder that is missing
    moves none. A needless zero makes them texts, as in a table.

    Raises:
        InputError: a number is below that of the first class.
    """
    ordered = class_order(names)
    if not ordered or not all(map(NUMBER.fullmatch, ordered)):
        return numbered(ordered, ordered, first_label)
    class_names = tuple(ordered)
    numbers = tuple(map(int, ordered))
    start = file.recipe.first_label or 0
    classes = Classes(class_names, class_names, numbers, start, is_numbered=True)
    refuse_below_first(file, classes)
    return classes


def labels_in_words(names: Iterable[str], numbers: Iterable[int]) -> str:
    """The labels of the first three classes and of the last one, as text:
    "cat is 1, dog is 2, fox is 3, ... wolf is 12".
    """
    texts: list[str] = []
    for name, number in zip(names, numbers, strict=True):
        is_number = name == str(number)
        texts.append(name if is_number else f"{name} is {number}")
    if len(texts) < 5:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, ... {texts[-1]}"


def class_notes(
    names: Sequence[str], numbers: Sequence[int], what: str = "labels"
) -> Iterator[str]:
    """The labels of classes as text, if they differ from their names."""
    if [*names] != [*map(str, numbers)]:
        yield f"{what}: {labels_in_words(names, numbers)}"


def note_on_first(file: RecipeFile, classes: Classes) -> list[str]:
    """The note that numbers seem to count from 1,
    where the recipe does not say where they start.
    """
    is_open = classes.is_numbered and classes.first_label == 0 and file.recipe.first_label is None
    if not is_open or min(classes.numbers, default=0) != 1:
        return []
    return [
        "labels start at 1, and class 0 has no image: if 1 is the first class, write first_label: 1"
    ]


def numbered(names: Sequence[str], texts: Sequence[str], first_label: int) -> Classes:
    """Classes in this order, with their numbers."""
    numbers = range(first_label, first_label + len(names))
    return Classes(tuple(names), tuple(texts), tuple(numbers), first_label)


def given_classes(file: RecipeFile, root: AnyPath, first_label: int) -> Classes | None:
    """The classes that the recipe names, in its order; None if it names none.

    Raises:
        InputError: their file is not there, or is no list of names.
        UsageError: a name occurs twice.
    """
    declared = file.recipe.classes
    if declared is None:
        return None
    source = ""
    if isinstance(declared, str):
        path = need_path(file, ("classes",), below(root, declared))
        pairs = _read_classes(path)
        source = f"{path}: "
    elif isinstance(declared, dict):
        pairs = _classes_with_words(file, declared)
    else:
        pairs = [(str(name), str(name)) for name in declared]
    names = [name for name, _ in pairs]
    texts = [text for _, text in pairs]
    _refuse_repeated(file, names, source)
    return numbered(names, texts, first_label)


def _refuse_repeated(file: RecipeFile, names: Sequence[str], source: str) -> None:
    """Raise UsageError if a name occurs twice, or there is none; ``source`` is the start of the
    message for names in a file of their own.
    """
    if not names:
        raise file.fault(("classes",), f"{source}no class is named", "expected at least one class")
    for name, count in Counter(names).items():
        if count > 1:
            problem = f"{source}the class {name} occurs {count:,} times"
            raise file.fault(("classes",), problem, "expected each class once")


def _classes_with_words(file: RecipeFile, words: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each class with its words; raises UsageError if these are no text."""
    for name, text in words.items():
        if not isinstance(text, str) or not text:
            key = ("classes", name)
            problem = f"no text describes the class {name}"
            if text is not None and text != "":
                problem = f"the description of the class {name} is not a text"
            raise file.fault(
                key, problem, "expected a text for each class, or names alone: classes: [a, b]"
            )
    return list(words.items())


def _read_classes(path: AnyPath) -> list[tuple[str, str]]:
    """A class a line; after a tab, its words."""
    content = decode_text(path, read_plain(path))
    pairs: list[tuple[str, str]] = []
    for line in content.split("\n"):
        name, _, text = line.strip().partition("\t")
        if name:
            words = text.strip() or name
            pairs.append((name, words))
    return pairs
