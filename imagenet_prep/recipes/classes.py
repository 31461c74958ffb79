"""The classes of a set: names, words and numbers; found in the data, or named by the recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.inputs import need_file
from imagenet_prep.recipes.reading import RecipeFile
from imagenet_prep.storage.files import read_plain
from imagenet_prep.storage.location import AnyPath


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a set: names, words, and the numbers that records get. Class ``i`` is label ``i`` + 1."""

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


def first_label(file: RecipeFile, *, is_inception: bool) -> int:
    """The number of the first class: as the recipe says, else 1 in Inception records (0 is background), else 0."""
    return int(is_inception) if file.recipe.first_label is None else file.recipe.first_label


def numbered(names: Sequence[str], texts: Sequence[str], first: int) -> Classes:
    """Classes in this order, with their numbers."""
    return Classes(tuple(names), tuple(texts), tuple(range(first, first + len(names))))


def given_classes(file: RecipeFile, root: AnyPath, first: int) -> Classes | None:
    """The classes that the recipe names, in its order; None if it names none.

    Raises:
        InputError: their file is not there, or is no list of names.
        UsageError: a name occurs twice.
    """
    said = file.recipe.classes
    if said is None:
        return None
    if isinstance(said, str):
        pairs = _read_classes(need_file(file, ("classes",), root / said))
    elif isinstance(said, dict):
        for name, text in said.items():
            if not isinstance(text, str) or not text:
                raise file.fault(("classes", name), f"{text!r} can't be", "expected the words for that class")
        pairs = list(said.items())
    else:
        pairs = [(str(name), str(name)) for name in said]
    names = [name for name, _ in pairs]
    if not names or len(set(names)) != len(names):
        again = next((name for name in names if names.count(name) > 1), None)
        raise file.fault(("classes",), f"{again} is there twice" if again else "nothing in it", "expected each once")
    return numbered(names, [text for _, text in pairs], first)


def _read_classes(path: AnyPath) -> list[tuple[str, str]]:
    """A class a line; after a tab, its words."""
    try:
        lines = read_plain(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} can't be read", str(error)) from error
    pairs = []
    for line in lines:
        name, _, text = line.strip().partition("\t")
        if name:
            pairs.append((name, text.strip() or name))
    return pairs
