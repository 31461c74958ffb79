"""Content: what files are by their names. The columns of an item,
and the features that a recipe makes of them.
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS as FORMATS
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.labels import Labelled, at_line
from imagenet_prep.recipes.labels_file import LabelsFault, typed
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.tfrecord.example import Kind
from imagenet_prep.tfrecord.inception import OBJECT_FEATURES

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


def is_of(content: Content, name: str) -> bool:
    """Whether a file's name, or the last 8 bytes of it, ends as those of a content do."""
    return name.lower().endswith(ENDINGS[content])


def becoming_jpeg(names: Iterable[str], is_inception: bool) -> str:
    """How many images will become JPEGs, by the endings of their names, as text:
    a mapped record keeps PNGs, too.
    """
    kept = (".jpg", ".jpeg") if is_inception else (".jpg", ".jpeg", ".png")
    others = (
        name.lower() for name in names if is_of("image", name) and not name.lower().endswith(kept)
    )
    found = Counter(f".{name.rpartition('.')[2]}" for name in others)
    return ", ".join(f"{count:,} {ending}" for ending, count in found.most_common())


def is_odd(content: Content, name: str) -> bool:
    """Whether a file is an image, of a format that this content can't be read from:
    data that would be missing.
    """
    return content != "array" and not is_of(content, name) and name.lower().endswith(_OTHER_IMAGES)


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
    found = []
    for name, value in file.recipe.record.items():
        key = ("record", name)
        if not name:
            raise file.fault(key, "a feature without a name", "expected a text")
        if not isinstance(value, dict) and not (isinstance(value, str) and value):
            raise file.fault(
                key, f"{value!r} is not a column", "expected its name, or {from, type, optional}"
            )
        each: Feature = file.convert(
            {"from": value} if isinstance(value, str) else value, Feature, key
        )
        found.append(Wish(name, each.from_ or name, each.type, each.optional))
    if not found:
        raise file.fault(("record",), "no features", "expected at least one")
    return found


def _check_wish(
    file: RecipeFile, wish: Wish, known: _Known, names: Collection[str], content: Content
) -> None:
    """Compare a feature with the existing columns, whose kinds are known except those of a labels
    file.

    Raises:
        UsageError: there is no such column, or it can't be of that type.
    """
    key, column = ("record", wish.feature), wish.column
    if column not in names:
        near = difflib.get_close_matches(column, names, 1)
        expected = f"expected {near[0]}, perhaps" if near else f"expected one of {', '.join(names)}"
        other = next(
            (each for each, columns in OF_CONTENT.items() if column in columns and each != content),
            None,
        )
        hint = f"content is {content}: {column} is a column of {other}" if other else ""
        hint = (
            "labels come from class folders, or from a file that `labels` names"
            if column in OF_CLASS
            else hint
        )
        raise file.fault(key, f"no column {column!r}", expected, hint)
    if wish.kind is not None and wish.kind not in (kinds := known.get(column, (wish.kind,))):
        raise file.fault(key, f"{column} can't be {wish.kind}", f"expected {' or '.join(kinds)}")


def promise(features: Collection[Mapped]) -> dict[str, dict[str, Any]]:
    """The promise for every record: by feature its kind, whether it may be missing,
    and how many values (None: any).
    """
    return {
        each.feature: {
            "kind": each.kind,
            "optional": each.optional,
            "values": None if each.many else 1,
        }
        for each in features
    }


def usual(content: Content, of_class: Mapping[str, Kind], is_rescaled: bool) -> list[Wish]:
    """The features of a record where the recipe names none."""
    label, _, text = of_class or ("", "", "")
    if content == "image":
        columns = {
            f"image/{name}": name for name in ("encoded", "format", "height", "width", "channels")
        }
        columns |= {"image/filename": "path", "image/class/label": label, "image/class/text": text}
    else:
        plain = {"image_raw": "raw"} if content == "pixels" else {"raw": "raw", "dtype": "dtype"}
        size = ("height", "width", "depth") if content == "pixels" else ("shape",)
        columns = {"values": "values"} if is_rescaled else plain
        columns |= {**dict(zip(size, size, strict=True)), "filename": "path", "label": label}
    return [Wish(feature, column) for feature, column in columns.items() if column]


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
    table = labelled.table
    extra = {column_name(name): name for name in table.columns} if table is not None else {}
    objects = {name: OBJECT_FEATURES[name] for name in annotations.columns if name not in extra}
    of_class = (
        OF_CLASSES
        if labelled.several
        else OF_CLASS
        if labelled.classes.names or labelled.unlabelled
        else {}
    )
    if file.recipe.record is None:
        asked = [
            e
            for e in usual(content, of_class, file.recipe.min_val is not None)
            if e.feature not in extra
        ]
        asked += [Wish(name, name, optional=True) for name in extra]
        asked += [Wish(each.name, name) for name, each in objects.items()]
    else:
        asked = wishes(file)
    known = _kinds({**OF_ITEM, **of_class, **OF_CONTENT[content]})
    names = [*known, *extra, *objects]
    known |= {name: (each.kind,) for name, each in objects.items()}
    many = _MANY | {name for name, each in objects.items() if each.values != "one"}
    for wish in asked:
        _check_wish(file, wish, known, names, content)
    features: list[Mapped] = []
    values = dict(annotations.values) | _of_several(labelled)
    for wish in asked:
        if wish.column in extra:
            features.append(
                _from_table(file, wish, extra[wish.column], labelled, annotations.listing, values)
            )
        else:
            kind = wish.kind or known[wish.column][0]
            optional = wish.optional or (wish.column in OF_CLASS and labelled.unlabelled > 0)
            features.append(Mapped(wish.feature, wish.column, kind, optional, wish.column in many))
    features.sort(key=lambda each: each.feature.encode())
    return tuple(features), values


def _of_several(labelled: Labelled) -> dict[str, list[Any]]:
    """The values of OF_CLASSES by row of the listing; none if each file has one label."""
    classes = labelled.classes
    each_has = zip(OF_CLASSES, (classes.numbers, classes.names, classes.texts), strict=True)
    found = {
        column: [[those[label - 1] for label in row] for row in labelled.several]
        for column, those in each_has
    }
    return found if labelled.several else {}


_Known = dict[str, tuple[Kind, ...]]
"""The kinds of feature that each column can be, the usual one first."""


def _kinds(columns: Mapping[str, Kind]) -> _Known:
    found: _Known = {
        name: ("int64", "float") if kind == "int64" else (kind,) for name, kind in columns.items()
    }
    return found | ({"values": ("float", "int64")} if "values" in columns else {})


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
    table, path = labelled.table, labelled.table_path
    assert table is not None
    assert path is not None
    try:
        kind, column = typed(table.columns[name], table.lines, table.is_text, wish.kind)
    except LabelsFault as fault:
        raise at_line(path, LabelsFault(fault.line, f"{name}: {fault.reason}"), table) from fault
    by_row = [column[row] if row >= 0 else None for row in labelled.table_rows.tolist()]
    lacking = [
        row for row, value in enumerate(by_row) if value is None and labelled.labels[row] >= 0
    ]
    if lacking and not wish.optional:
        row = labelled.table_rows[lacking[0]]
        where = table.place(path, table.lines[row]) if row >= 0 else str(path)
        raise InputError(
            f"{where}: {name} has no value for {listing.names[lacking[0]]}",
            f"expected one in every line, {len(lacking):,} have none",
            (
                f"fill it in, or write in {file.path}: {wish.feature}: "
                f"{{from: {wish.column}, optional: true}}"
            ),
        )
    if wish.column in values and values[wish.column] != by_row:
        raise file.fault(
            ("record", wish.feature), f"{wish.column} is of another type above", "expected one type"
        )
    values[wish.column] = by_row
    is_list = any(isinstance(value, list) for value in by_row)
    optional = bool(lacking) if file.recipe.record is None else wish.optional
    return Mapped(wish.feature, wish.column, kind, optional, is_list)
