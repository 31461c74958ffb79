"""Which features records hold, who makes them, and what decides their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from imagenet_prep.datasets.recorder import InceptionRecorder, Recorder
from imagenet_prep.errors import InputError
from imagenet_prep.images.pixels import codec
from imagenet_prep.images.prepare import Check
from imagenet_prep.recipes import columns as cols
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.labels import Classes, Labelled, at_line
from imagenet_prep.recipes.labels_file import LabelsFault, typed
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recorders import LOOSELY, MappedRecorder
from imagenet_prep.sources.catalog import Catalog

RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Features of a mapped record (None: Inception's), and the columns of the labels file by row of the listing."""

    features: tuple[Mapped, ...] | None
    values: dict[str, list[Any]]


def extra_columns(
    file: RecipeFile, is_inception: bool, labelled: Labelled, content: Content, listing: Catalog
) -> Extra:
    """What records hold, and the values for it that a file of labels has."""
    if is_inception:
        return Extra(None, {})
    table = labelled.table
    extra = {cols.column_name(name): name for name in table.columns} if table is not None else {}
    if file.recipe.record is None:
        asked = cols.usual(content, labelled.is_labelled, file.recipe.min_val is not None)
        asked += [cols.Wish(name, name, None, optional=True) for name in extra]
    else:
        asked = cols.wishes(file)
    cols.check_wishes(file, asked, content, labelled.is_labelled, extra)
    features: list[Mapped] = []
    values: dict[str, list[Any]] = {}
    for wish in asked:
        if wish.column in extra:
            features.append(_from_table(file, wish, extra[wish.column], labelled, listing, values))
        else:
            features.append(cols.builtin(wish, content, labelled.is_labelled))
    features.sort(key=lambda each: each.feature.encode())
    return Extra(tuple(features), values)


def _from_table(
    file: RecipeFile,
    wish: cols.Wish,
    name: str,
    labelled: Labelled,
    listing: Catalog,
    values: dict[str, list[Any]],
) -> Mapped:
    """A feature of a column of the labels file, whose values go to ``values`` by row of the listing."""
    table, path = labelled.table, labelled.table_path
    assert table is not None
    assert path is not None
    try:
        kind, column = typed(table.columns[name], table.lines, table.is_text, wish.kind)
    except LabelsFault as fault:
        raise at_line(path, LabelsFault(fault.line, f"{name}: {fault.reason}")) from fault
    by_row = [column[row] if row >= 0 else None for row in labelled.table_rows]
    lacking = [row for row, value in enumerate(by_row) if value is None and labelled.labels[row] >= 0]
    if lacking and not wish.optional:
        line = table.lines[labelled.table_rows[lacking[0]]]
        raise InputError(
            f"{path}, line {line}: {name} has no value for {listing.names[lacking[0]]}",
            f"expected one in every line, {len(lacking):,} have none",
            f"fill it in, or write in {file.path}: {wish.feature}: {{from: {wish.column}, optional: true}}",
        )
    if wish.column in values and values[wish.column] != by_row:
        raise file.fault(("record", wish.feature), f"{wish.column} is of another type above", "expected one type")
    values[wish.column] = by_row
    is_list = any(isinstance(value, list) for value in by_row)
    optional = bool(lacking) if file.recipe.record is None else wish.optional
    return Mapped(wish.feature, wish.column, kind, optional, is_list)


def make_recorder(
    file: RecipeFile,
    is_inception: bool,
    features: tuple[Mapped, ...] | None,
    content: Content,
    labelled: Labelled,
    split: str,
) -> Recorder:
    """The recorder of one split; ``features`` are those of a mapped record."""
    recipe = file.recipe
    how = recipe.reencode
    check: Check = "header" if recipe.check == "header" else "decode"
    upright = content == "image" and file.recipe.upright
    numbers = _in_short(labelled.classes.numbers)
    if is_inception or features is None:
        return InceptionRecorder(
            check, how, None if numbers == range(1, len(numbers) + 1) else numbers, upright, LOOSELY
        )
    bounds = None if recipe.min_val is None or recipe.max_val is None else (recipe.min_val, recipe.max_val)
    return MappedRecorder(features, content, split, numbers, check, how, bounds, recipe.array, upright)


def _in_short(numbers: tuple[int, ...]) -> Sequence[int]:
    """The same numbers; where each is one more than the last, as a range: every task of a shard carries them."""
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    return counted if numbers == tuple(counted) else numbers


def settings_of(
    file: RecipeFile, features: tuple[Mapped, ...] | None, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """All that decides the bytes of records beside the items; what is not set stays out."""
    recipe = file.recipe
    settings: dict[str, Any] = {"recipe": RECIPE_VERSION, "content": content, **recipe.deciding("records")}
    if features is None:
        settings["record"] = "inception"
    else:
        settings["record"] = {
            each.feature: {"from": each.column, "type": each.kind, "optional": each.optional} for each in features
        }
    if classes.numbers:  # any that don't count on from the first are the names of their classes, too
        settings["first_label"] = classes.numbers[0]
    if content == "image" and file.recipe.upright:
        settings["upright"] = True  # versions that turned none did not have this key
    jpegs = (each for each in listing.names.endings() if each.lower().endswith((".jpg", ".jpeg")))
    if recipe.reencode is None and content == "pixels" and any(jpegs):
        settings["codec"] = codec()  # how a JPEG becomes numbers is the decoder's choice
    if recipe.min_val is not None:
        settings["rescale"] = [float(recipe.min_val), float(recipe.max_val or 0)]
    if recipe.array is not None:
        settings["array"] = recipe.array
    return settings
