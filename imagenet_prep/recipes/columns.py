"""Content: what files are by their names. The columns of an item,
and the features that a recipe makes of them.
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.labels import Labelled, at_line
from imagenet_prep.recipes.recipe_file import RecipeFile, shortened
from imagenet_prep.recipes.recipe_lines import optional_feature
from imagenet_prep.recipes.table_rows import LabelsFault
from imagenet_prep.recipes.typed_values import fitting_kind, typed
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.text import number_of, one_of
from imagenet_prep.tfrecord.example import Kind
from imagenet_prep.tfrecord.object_features import OBJECT_FEATURES

Content = Literal["image", "pixels", "array"]

ENDINGS: dict[Content, tuple[str, ...]] = {
    "image": tuple(itertools.chain.from_iterable(FORMATS.values())),
    "pixels": (".jpeg", ".jpg", ".png", ".tif", ".tiff"),
    "array": (".npy", ".npz"),
}
_OTHER_IMAGES = (".gif", ".bmp", ".webp", ".heic", ".avif", ".jp2", ".ppm")

_NUMBERS: dict[str, Kind] = {
    **{"raw": "bytes", "values": "float", "shape": "int64", "dtype": "bytes"},
    **{"height": "int64", "width": "int64", "depth": "int64"},
}
OF_CONTENT: dict[Content, dict[str, Kind]] = {
    "image": {
        **{"encoded": "bytes", "format": "bytes", "colorspace": "bytes"},
        **{"height": "int64", "width": "int64", "channels": "int64"},
    },
    "pixels": _NUMBERS,
    "array": _NUMBERS,
}
"""The columns that an item's own bytes give, with the kind of feature that each becomes."""

OF_ITEM: dict[str, Kind] = {"filename": "bytes", "path": "bytes", "split": "bytes"}
OF_CLASS: dict[str, Kind] = {"label": "int64", "class": "bytes", "text": "bytes"}
OF_CLASSES = {f"{name}.list": kind for name, kind in OF_CLASS.items()}
"""The columns of files that can have several labels: a file has a value for each."""

RESERVED = frozenset((*OF_ITEM, *OF_CLASS, *_NUMBERS, *OF_CONTENT["image"]))
"""A column of a labels file that has one of these names is reached as ``labels.NAME``."""

_MANY = frozenset({"values", "shape", *OF_CLASSES})


def has_ending_of(content: Content, name: str) -> bool:
    """Whether a file's name, or the last 5 bytes of it, ends as those of a content do."""
    return name.lower().endswith(ENDINGS[content])


def becoming_jpeg(names: Iterable[str], is_inception: bool) -> str:
    """How many images will become JPEGs, by the endings of their names: "2 .png become JPEGs", ""
    for none. A mapped record keeps PNGs, too.
    """
    kept_endings = (".jpg", ".jpeg") if is_inception else (".jpg", ".jpeg", ".png")
    counts: Counter[str] = Counter()
    for name in names:
        lowered = name.lower()
        if has_ending_of("image", name) and not lowered.endswith(kept_endings):
            _, _, suffix = lowered.rpartition(".")
            counts[f".{suffix}"] += 1
    if not counts:
        return ""
    texts = [f"{count:,} {ending}" for ending, count in counts.most_common()]
    outcome = "becomes a JPEG" if counts.total() == 1 else "become JPEGs"
    return f"{', '.join(texts)} {outcome}"


def is_other_image(content: Content, name: str) -> bool:
    """Whether a file is an image, of a format that this content can't be read from:
    data that would be missing.
    """
    if content == "array" or has_ending_of(content, name):
        return False
    return name.lower().endswith(_OTHER_IMAGES)


class Mapped(Struct, frozen=True):
    """One feature: which column it holds, as which kind;
    ``many`` if it can have several values, or none.
    """

    feature: str
    column: str
    kind: Kind
    optional: bool = False
    many: bool = False


Features = tuple[Mapped, ...] | None
"""The features of a record; None: Inception's."""


class Wish(NamedTuple):
    """One feature as the recipe asks for it: its kind may be left open."""

    feature: str
    column: str
    kind: Kind | None = None
    optional: bool = False


def column_name(name: str) -> str:
    """How a column of a labels file is called in a recipe."""
    return f"labels.{name}" if name in RESERVED else name


def wishes(file: RecipeFile) -> list[Wish]:
    """The features that the recipe lists.

    Raises:
        UsageError: one of them is neither a column nor a mapping of ``from``, ``type`` and
            ``optional``.
    """
    from imagenet_prep.recipes.schema import Feature

    assert isinstance(file.recipe.record, dict)
    listed_wishes: list[Wish] = []
    for name, value in file.recipe.record.items():
        key = ("record", name)
        if not name:
            raise file.fault(key, "a feature without a name", "expected a name")
        if isinstance(value, str) and value:
            value = {"from": value}
        elif not isinstance(value, dict):
            expected = "expected its name, or {from, type, optional}"
            problem = "no column is named"
            if value:
                problem = f"{shortened(value)} is not the name of a column"
            raise file.fault(key, problem, expected)
        feature: Feature = file.convert(value, Feature, key)
        column = feature.from_ or name
        wish = Wish(name, column, feature.type, feature.optional)
        listed_wishes.append(wish)
    if not listed_wishes:
        expected = "expected at least one feature, such as image/encoded: encoded"
        raise file.fault(("record",), "no features", expected)
    return listed_wishes


def _check_wish(
    file: RecipeFile, wish: Wish, kinds: _Kinds, names: Collection[str], content: Content
) -> None:
    """Compare a feature with the existing columns, whose kinds are known except those of a labels
    file.

    Raises:
        UsageError: there is no such column, or it can't be of that type.
    """
    key = ("record", wish.feature)
    column = wish.column
    if column not in names:
        expected = f"expected {one_of(names, len(names))}"
        hint = _hint_on_column(column, content, names)
        similar_names = difflib.get_close_matches(column, names, 1)
        bare_column = column.removeprefix("labels.")
        if bare_column in names:
            expected = f"expected {bare_column}"
        elif similar_names and not hint:
            expected = f"expected {similar_names[0]}, perhaps"
        raise file.fault(key, f"no column {column!r}", expected, hint)
    if wish.kind is None:
        return
    possible_kinds = kinds.get(column, (wish.kind,))
    if wish.kind not in possible_kinds:
        expected = f"expected {' or '.join(possible_kinds)}"
        raise file.fault(key, f"the column {column} can't be of type {wish.kind}", expected)


def _hint_on_column(column: str, content: Content, names: Collection[str]) -> str:
    """Where a column comes from that records of this content don't have."""
    if f"{column}.list" in names:
        return f"a file can have several labels here: write {column}.list"
    if column in OF_CLASS:
        return (
            "these files have no labels: `source: {folders: ...}`, `labels: FILE` or, for rows, "
            "`label: COLUMN` in `source` gives them"
        )
    key, dot, _ = column.partition(".")
    has_others = any(name.startswith(f"{key}.") for name in names)
    if dot and key in ("boxes", "mask") and not has_others:
        return f"`{key}` in the recipe gives the columns {key}.NAME"
    for other_content, columns in OF_CONTENT.items():
        if other_content == content:
            continue
        if column in columns:
            return (
                f"records of content: {other_content} have the column {column}; here content is "
                f"{content}"
            )
    return ""


def promise(features: Collection[Mapped]) -> dict[str, dict[str, Any]]:
    """The promise for every record: by feature its kind, whether it may be missing,
    and how many values (None: any).
    """
    promises: dict[str, dict[str, Any]] = {}
    for mapped in features:
        promises[mapped.feature] = {
            "kind": mapped.kind,
            "optional": mapped.optional,
            "values": None if mapped.many else 1,
        }
    return promises


def usual(content: Content, of_class: Mapping[str, Kind], is_rescaled: bool) -> list[Wish]:
    """The features of a record where the recipe names none."""
    label, _, text = of_class or ("", "", "")
    columns: dict[str, str] = {}
    if content == "image":
        for name in ("encoded", "format", "height", "width", "channels"):
            columns[f"image/{name}"] = name
        columns["image/filename"] = "path"
        columns["image/class/label"] = label
        columns["image/class/text"] = text
    else:
        columns = _usual_pixels(content, is_rescaled)
        columns["filename"] = "path"
        columns["label"] = label
    return [Wish(feature, column) for feature, column in columns.items() if column]


def _usual_pixels(content: Content, is_rescaled: bool) -> dict[str, str]:
    """The columns of the numbers of an image or an array, and of its size, by feature."""
    if is_rescaled:
        columns = {"values": "values"}
    elif content == "pixels":
        columns = {"image_raw": "raw"}
    else:
        columns = {"raw": "raw", "dtype": "dtype"}
    size = ("height", "width", "depth") if content == "pixels" else ("shape",)
    for name in size:
        columns[name] = name
    return columns


# columns of a file of labels ----------------------------------------------------------------------


def extra_columns(
    file: RecipeFile,
    is_inception: bool,
    labelled: Labelled,
    content: Content,
    annotations: Annotations,
) -> tuple[Features, dict[str, list[Any]]]:
    """The features of records (None: Inception's),
    and the values by row that labels file and annotations have.
    """
    if is_inception:
        return None, {}
    table_columns = _columns_of_table(labelled)
    object_columns = [name for name in annotations.columns if name not in table_columns]
    of_class = _columns_of_class(labelled)
    if file.recipe.record is None:
        record = _usual_record(file, content, of_class, table_columns)
        for name in object_columns:
            object_feature = OBJECT_FEATURES[name]
            record.append(Wish(object_feature.name, name))
    else:
        record = wishes(file)
    kinds = _kinds({**OF_ITEM, **of_class, **OF_CONTENT[content]})
    names = [*kinds, *table_columns, *object_columns]
    for name in object_columns:
        object_feature = OBJECT_FEATURES[name]
        kinds[name] = (object_feature.kind,)
    for wish in record:
        _check_wish(file, wish, kinds, names, content)
    features: list[Mapped] = []
    values = dict(annotations.values)
    values |= _of_several(labelled)
    for wish in record:
        if wish.column in table_columns:
            name = table_columns[wish.column]
            earlier_values = values.get(wish.column)
            mapped = _from_table(file, wish, name, labelled, annotations.listing, values)
            if earlier_values not in (None, values[wish.column]):
                _refuse_two_kinds(file, mapped, features)
        else:
            mapped = _from_item(wish, kinds, labelled)
        features.append(mapped)
    features.sort(key=lambda mapped: mapped.feature.encode())
    return tuple(features), values


def _columns_of_table(labelled: Labelled) -> dict[str, str]:
    """The columns of the labels file, if there is one, by their names in a recipe."""
    if labelled.table is None:
        return {}
    return {column_name(name): name for name in labelled.table.columns}


def _refuse_two_kinds(file: RecipeFile, mapped: Mapped, features: Sequence[Mapped]) -> None:
    """Raise UsageError for a column of the labels file that an earlier feature holds with other
    values; those of one kind differ in NaN alone.
    """
    key = ("record", mapped.feature)
    earlier_kinds = {other.kind for other in features if other.column == mapped.column}
    if not earlier_kinds:
        problem = (
            f"the name of the column {mapped.column} of the labels file already means another "
            "value in `record`"
        )
        hint = f"rename the column {mapped.column} in the labels file"
        raise file.fault(key, problem, "expected another name for this column", hint)
    if mapped.kind not in earlier_kinds:
        problem = f"another feature has the column {mapped.column} with another type"
        raise file.fault(key, problem, "expected the same type in all features of a column")


def _from_item(wish: Wish, kinds: _Kinds, labelled: Labelled) -> Mapped:
    """A feature of the image itself, of its class or of its objects."""
    column = wish.column
    may_lack_class = column in OF_CLASS and labelled.unlabelled > 0
    is_optional = wish.optional or may_lack_class
    has_many = column in _MANY
    object_feature = OBJECT_FEATURES.get(column)
    if object_feature is not None and object_feature.values != "one":
        has_many = True
    usual_kind = kinds[column][0]
    kind = wish.kind or usual_kind
    return Mapped(wish.feature, column, kind, is_optional, has_many)


def _usual_record(
    file: RecipeFile,
    content: Content,
    of_class: Mapping[str, Kind],
    table_columns: Collection[str],
) -> list[Wish]:
    """The usual features of the content, and all columns of the labels file."""
    is_rescaled = file.recipe.min_val is not None
    of_content = usual(content, of_class, is_rescaled)
    record = [wish for wish in of_content if wish.feature not in table_columns]
    for name in table_columns:
        wish = Wish(name, name, optional=True)
        record.append(wish)
    return record


def _columns_of_class(labelled: Labelled) -> Mapping[str, Kind]:
    """The columns of the class of a file, or of its classes; none without labels."""
    if labelled.several:
        return OF_CLASSES
    if labelled.classes.names or labelled.unlabelled:
        return OF_CLASS
    return {}


def _of_several(labelled: Labelled) -> dict[str, list[Any]]:
    """The values of OF_CLASSES by row of the listing; none if each file has one label."""
    if not labelled.several:
        return {}
    classes = labelled.classes
    facts: tuple[Sequence[Any], ...] = (classes.numbers, classes.names, classes.texts)
    values: dict[str, list[Any]] = {}
    for column, of_class in zip(OF_CLASSES, facts, strict=True):
        values_by_row: list[Any] = []
        for labels in labelled.several:
            row_values = [of_class[label - 1] for label in labels]
            values_by_row.append(row_values)
        values[column] = values_by_row
    return values


_Kinds = dict[str, tuple[Kind, ...]]
"""The kinds of feature that each column can be, the usual one first."""


def _kinds(columns: Mapping[str, Kind]) -> _Kinds:
    """The kinds that columns can be: whole numbers can be floats, too."""
    kinds: _Kinds = {}
    for name, kind in columns.items():
        kinds[name] = ("int64", "float") if kind == "int64" else (kind,)
    if "values" in columns:
        kinds["values"] = ("float", "int64")
    return kinds


def _from_table(
    file: RecipeFile,
    wish: Wish,
    name: str,
    labelled: Labelled,
    listing: Catalog,
    values: dict[str, list[Any]],
) -> Mapped:
    """A feature of a column of the labels file,
    whose values go to ``values`` by row of the listing.
    """
    kind, column = _typed_column(wish, name, labelled)
    table_rows = labelled.table_rows.tolist()
    by_row = [column[table_row] if table_row >= 0 else None for table_row in table_rows]
    empty_rows: list[int] = []
    for row, value in enumerate(by_row):
        if value is None and labelled.labels[row] >= 0:
            empty_rows.append(row)
    if empty_rows and not wish.optional:
        raise _empty_cells(file, wish, name, labelled, listing, empty_rows)
    values[wish.column] = by_row
    is_list = any(isinstance(value, list) for value in by_row)
    is_optional = wish.optional
    if file.recipe.record is None:
        is_optional = bool(empty_rows)
    return Mapped(wish.feature, wish.column, kind, is_optional, is_list)


def _typed_column(wish: Wish, name: str, labelled: Labelled) -> tuple[Kind, list[Any]]:
    """A column of the labels file, by row of the file: its kind and its values.

    Raises:
        InputError: a cell has no value of the kind that is asked for.
    """
    table, path = labelled.table, labelled.table_path
    assert table is not None
    assert path is not None
    cells = table.columns[name]
    try:
        return typed(cells, table.lines, table.is_text, wish.kind)
    except LabelsFault as fault:
        hint = fault.hint
        if fitting := fitting_kind(cells, table.lines, table.is_text):
            hint = f"correct it; or write type: {fitting} in the recipe"
        fault_of_column = LabelsFault(fault.line, f"{name}: {fault.reason}", hint)
        raise at_line(path, fault_of_column, table) from fault


def _empty_cells(
    file: RecipeFile,
    wish: Wish,
    name: str,
    labelled: Labelled,
    listing: Catalog,
    rows: Sequence[int],
) -> InputError:
    """The error for files without a value in a column that each record must have."""
    table = labelled.table
    assert table is not None
    first_row = rows[0]
    place = str(labelled.table_path)
    table_row = labelled.table_rows[first_row]
    if table_row >= 0:
        line = table.lines[table_row]
        place = table.place(labelled.table_path, line)
    problem = f"{place}: the column {name} has no value for {listing.names[first_row]}"
    files_have = number_of(len(rows), "file has", "files have")
    expected = f"expected a value for each file, and {files_have} none"
    entry = optional_feature(wish.feature, wish.column, wish.kind)
    hint = f"fill in the value, or write in `record` of {file.path}: {entry}"
    return InputError(problem, expected, hint)
