"""Checks of a recipe's `source`, which names files of one kind; and of names of splits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import UsageError
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import OPTIONS, kinds_with_option, source_kinds
from imagenet_prep.text import either

if TYPE_CHECKING:
    from msgspec import Struct

SPLIT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
SPLIT_SIGNS = "at most 100 letters, digits, _, -, . and +, the first a letter, a digit or _"
"""The form of ``SPLIT_NAME``, for messages."""

NO_SPLIT_NAME = (
    "it can't be the name of a split",
    f"expected {SPLIT_SIGNS}, and no -grown2 at the end",
)


def check_source(file: RecipeFile) -> None:
    """Exactly one source is named."""
    source = file.recipe.source
    classic_keys = [
        key
        for key in ("manifest_file", "input_file_pattern")
        if getattr(file.recipe, key) is not None
    ]
    if source is None and not classic_keys:
        raise UsageError(
            f"{file.path} has no key source",
            "expected, for example, source: {folders: FOLDER}, "
            'source: {files: "FOLDER/*.jpg"} or source: {tar: FILE}',
        )
    if source is None:
        return
    if classic_keys:
        problem = f"{classic_keys[0]} is a source already"
        raise file.fault(("source",), problem, "expected only one source")
    source_key = only_key(file, ("source",), source, [*source_kinds(), "imagenet"])
    _refuse_unused_options(file, source_key)
    places = getattr(source, source_key)
    _refuse_no_places(file, ("source", source_key), places, "expected a path or a pattern")
    if isinstance(places, dict):
        check_split_names(file, ("source", source_key), places)


def _refuse_unused_options(file: RecipeFile, source_key: str) -> None:
    """Refuse options that the source does not read."""
    for option in OPTIONS:
        users = kinds_with_option(option)
        if option in file.value["source"] and source_key not in users:
            problem = f"it can't be combined with {source_key}"
            raise file.fault(("source", option), problem, f"expected it only with {either(users)}")


def refuse_empty_places(file: RecipeFile) -> None:
    """Raise UsageError if labels, boxes or masks have an empty list of files or folders."""
    from imagenet_prep.recipes.schema import Labels

    labels, boxes, mask = file.recipe.labels, file.recipe.boxes, file.recipe.mask
    if isinstance(labels, Labels):
        _refuse_no_places(file, ("labels", "file"), labels.file)
    if boxes is not None and boxes.format:
        _refuse_no_places(file, ("boxes", boxes.format), getattr(boxes, boxes.format))
    if mask is not None:
        _refuse_no_places(file, ("mask", "folder"), mask.folder)


def _refuse_no_places(
    file: RecipeFile, key: Key, places: object, expected: str = "expected a path"
) -> None:
    """Raise UsageError for an empty list of files or folders, or one of a split."""
    if isinstance(places, (list, dict)) and not places:
        raise file.fault(key, "it is empty", expected)
    if isinstance(places, dict):
        for split, texts in places.items():
            _refuse_no_places(file, (*key, split), texts, expected)


def only_key(file: RecipeFile, key: Key, mapping: Struct, names: Sequence[str]) -> str:
    """The one of these keys that a mapping has; raises UsageError if it has none or several."""
    present_names = [name for name in names if getattr(mapping, name) is not None]
    if len(present_names) != 1:
        problem, count = f"it has {' and '.join(present_names)}", "only one"
        if not present_names:
            other_names = _names_in(file, key)
            problem = f"it has only {', '.join(other_names)}" if other_names else "it is empty"
            count = "one"
        raise file.fault(key, problem, f"expected {count} of {', '.join(names)}")
    return present_names[0]


def _names_in(file: RecipeFile, key: Key) -> list[str]:
    """The keys with a value in a mapping of the recipe."""
    mapping: Any = file.value
    for step in key:
        mapping = mapping[step]
    return [name for name, value in mapping.items() if value is not None]


def check_split_names(file: RecipeFile, key: Key, splits: Iterable[str]) -> None:
    """Raise UsageError for one that can't be the name of a split."""
    for split in splits:
        if not SPLIT_NAME.fullmatch(split):
            raise file.fault((*key, split), *NO_SPLIT_NAME)


def has_rows(file: RecipeFile) -> bool:
    """Whether the source is a table or a function, whose rows may have boxes and masks."""
    source = file.recipe.source
    return source is not None and source.kind != "" and source_kinds()[source.kind].has_rows


def may_have_boxes(file: RecipeFile) -> bool:
    """Whether the samples of the source may have boxes."""
    source = file.recipe.source
    if source is None or source.kind == "":
        return False
    return source_kinds()[source.kind].may_have_boxes
