"""Schema: the columns of a parquet file: images, values, boxes, and the names of their classes;
read from pyarrow's schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint

_USUAL = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "photo")
"""Usual names of a column of images, the likeliest first."""

REMEDY = "get an intact copy of it"
USUAL_COLUMNS = "the columns image, with bytes and path, and label, of whole numbers"


class Schema(Struct, frozen=True):
    """The columns of a file.

    Args:
        image: that of images.
        columns: others that can be read.
        passed: those that can't.
        classes: the names of the classes of columns, by column.
        objects: the one of ``columns`` that has the boxes of each image and their classes.
        object_classes: the names of those classes.
        unread_boxes: those of ``passed`` that seem to have boxes.
    """

    image: str
    columns: Sequence[str]
    passed: Sequence[str] = ()
    classes: Mapping[str, Sequence[str]] = {}
    objects: str | None = None
    object_classes: Sequence[str] = ()
    unread_boxes: Sequence[str] = ()


def schema_of(path: Path, schema: Any) -> Schema:
    """The columns of a file by pyarrow's schema.

    Raises:
        InputError: no column has images.
    """
    image = image_column(schema)
    if image is None:
        raise no_images(path, schema)
    columns = [column for column in schema if column.name != image]
    readable, objects = _readable_columns(columns)
    unread = [column for column in columns if column.name not in readable]
    classes, object_classes = _class_names(schema, objects)
    return Schema(
        image,
        readable,
        [column.name for column in unread],
        classes,
        objects,
        object_classes,
        [column.name for column in unread if _BOXES.search(str(column))],
    )


def _readable_columns(columns: Sequence[Any]) -> tuple[list[str], str | None]:
    """The columns of plain values and the one of objects, if there is one; and that one alone."""
    plain: list[str] = []
    objects: str | None = None
    for column in columns:
        if _is_plain(column.type):
            plain.append(column.name)
        elif objects is None and _has_objects(column.type):
            objects = column.name
    return (plain if objects is None else [*plain, objects]), objects


_LONGEST = 300  # characters of the columns in a message

_BOXES = re.compile(r"box|object|annotations\b")
"""Words in the names of columns that hold boxes, or of the fields of those."""


def _class_names(
    schema: Any, objects: str | None
) -> tuple[dict[str, Sequence[str]], Sequence[str]]:
    """The names of classes by column, and those of objects, in the metadata of Hugging Face's."""
    classes: dict[str, Sequence[str]] = {}
    try:
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        json.dumps(metadata, ensure_ascii=False).encode()  # half of a surrogate pair is no name
        features = metadata["info"]["features"]
        for name, feature in features.items():
            if feature.get("_type") == "ClassLabel":
                classes[name] = feature["names"]
        return classes, next(_class_labels_in(features.get(objects)), ())
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}, ()


def _inner_type(arrow_type: Any) -> Any:
    """The type of the values of a list; any other type as it is."""
    from pyarrow import types

    is_list = types.is_list(arrow_type) or types.is_large_list(arrow_type)
    return arrow_type.value_type if is_list else arrow_type


def _has_objects(arrow_type: Any) -> bool:
    """Whether a column has boxes and their classes: a struct of lists, or a list of structs."""
    fields = _fields_of(_inner_type(arrow_type)).keys()
    has_boxes = not fields.isdisjoint(("bbox", "bboxes"))
    return has_boxes and not fields.isdisjoint(("category", "categories"))


def _fields_of(arrow_type: Any) -> dict[str, Any]:
    """The types of the fields of a struct by their names; none of another type."""
    from pyarrow import types

    if not types.is_struct(arrow_type):
        return {}
    return {field.name: field.type for field in arrow_type}


def _class_labels_in(feature: Any) -> Iterator[Sequence[str]]:
    """The names of every ClassLabel within the description of a column."""
    if isinstance(feature, list):
        for part in feature:
            yield from _class_labels_in(part)
    elif isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        yield feature["names"]
    elif isinstance(feature, dict):
        yield from _class_labels_in(list(feature.values()))


def _is_plain(arrow_type: Any) -> bool:
    """Whether a column has numbers, texts, or lists of them."""
    from pyarrow import types

    inner = _inner_type(arrow_type)
    is_number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    return is_number or _is_text(inner)


def _is_text(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type))


def _is_binary(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(arrow_type) or types.is_large_binary(arrow_type))


def no_images(path: Path, schema: Any) -> InputError:
    """The error for a file without a column of images."""
    hint = "write the bytes of each image into such a column, or leave the file out"
    if path.suffix == ".parquet" and any(_is_text(column.type) for column in schema):
        make_recipe = command("init", path)
        hint = Hint("if a column has the paths of image files: ", make_recipe, "; otherwise ", hint)
    return InputError(
        f"{path} has no column of images",
        "expected a column of binary or large_binary, or a struct with such a field named bytes; "
        f"got {_columns_in_words(schema)}",
        hint,
    )


def other_columns(path: Path, schema: Any) -> InputError:
    """The error for a file with other columns than those of ImageNet."""
    hint = Hint(
        "get an intact copy of it; or, for another data set, run ",
        mention("init"),
        " on its folder",
    )
    return InputError(
        f"{path} has other columns, or types of columns, than Hugging Face's ImageNet",
        f"expected {USUAL_COLUMNS}; got {_columns_in_words(schema)}",
        hint,
    )


def _columns_in_words(schema: Any) -> str:
    """The columns with their types, as far as they fit in a line."""
    words = ", ".join(f"{field.name}: {field.type}" for field in schema)
    if len(words) > _LONGEST:
        return f"{words[:_LONGEST]}..."
    return words or "no columns"


def has_usual_columns(schema: Iterable[Any]) -> bool:
    """Whether a file has the columns of ImageNet: images with their paths, and whole numbers."""
    from pyarrow import types

    columns = {field.name: field.type for field in schema}
    if not {"image", "label"} <= columns.keys() or not types.is_integer(columns["label"]):
        return False
    parts = _fields_of(columns["image"])
    if not {"bytes", "path"} <= parts.keys():
        return False
    return _is_binary(parts["bytes"]) and _is_text(parts["path"])


def image_column(schema: Any) -> str | None:
    """The column of images: structs with bytes, or bytes alone;
    one of the usual name, otherwise the first.
    """
    names = [column.name for column in schema if _may_be_image(column.type)]
    usual = [name for name in _USUAL if name in names]
    return next(iter(usual + names), None)


def _may_be_image(arrow_type: Any) -> bool:
    """Whether a column has bytes, alone or in structs."""
    fields = _fields_of(arrow_type)
    return _is_binary(arrow_type) or ("bytes" in fields and _is_binary(fields["bytes"]))


def parts_of(column: Any) -> tuple[Any, Any]:
    """The bytes of a column of images, and their paths, if it has them."""
    from pyarrow import types

    if not types.is_struct(column.type):
        return column, None
    fields = _fields_of(column.type)
    has_path = "path" in fields and _is_text(fields["path"])
    return column.field("bytes"), column.field("path") if has_path else None
