"""Files of labels, patterns and arrays meet whatever anyone could write."""

from __future__ import annotations

import contextlib
import csv
import io
import string
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_tars import in_memory

from imagenet_prep.errors import PrepError
from imagenet_prep.images import rasters
from imagenet_prep.images.arrays import ArrayError, parse_array
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.labels_file import parse_labels
from imagenet_prep.recipes.recipe_file import read_recipe
from imagenet_prep.recipes.table_rows import Form, LabelsFault
from imagenet_prep.recipes.typed_values import typed
from imagenet_prep.sources.patterns import compile_pattern, split_pattern

WORDS = st.text(string.ascii_letters + 'é",:\t ', min_size=1).map(str.strip).filter(bool)


@given(st.lists(WORDS, unique=True, min_size=1), st.data())
def test_a_table_that_csv_writes_is_read_back(paths: list[str], data: st.DataObject) -> None:
    """Paths, labels and cells come back as Python's own writer put them,
    quotes and commas included.
    """
    cells = [(path, data.draw(WORDS), data.draw(WORDS)) for path in paths]
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=delimiter).writerows([("path", "label", "more"), *cells])
        table = parse_labels(buffer.getvalue().encode(), form)  # type: ignore[arg-type]
        assert (
            list(zip(table.paths, table.labels or [], table.columns["more"], strict=True)) == cells
        )


@given(st.binary() | st.text().map(str.encode), st.sampled_from(get_args(Form)))
def test_any_bytes_are_a_table_or_a_fault(content: bytes, form: Form) -> None:
    """Nothing but a LabelsFault comes out of parsing and typing."""
    with contextlib.suppress(LabelsFault):
        table = parse_labels(content, form)
        for column in (*table.columns.values(), table.labels or []):
            typed(column, table.lines, table.is_text)


def test_a_line_for_each_label_keeps_the_split_of_its_file() -> None:
    """Several lines of one file are one row of the table,
    with the labels of all and the split that they share.
    """
    content = b"filename,label,split\na.jpg,x,train\na.jpg,y,train\nb.jpg,x,test\nc.jpg,y,train\n"
    table = parse_labels(content, "csv", several="lines", split="split")
    rows = list(zip(table.paths, table.labels or (), table.splits or (), strict=True))
    assert rows == [
        ("a.jpg", ["x", "y"], "train"),
        ("b.jpg", ["x"], "test"),
        ("c.jpg", ["y"], "train"),
    ]


def test_lines_of_one_file_in_two_splits_are_refused() -> None:
    """A file can't be in the train and the test split at once."""
    content = b"filename,label,split\na.jpg,x,train\na.jpg,y,test\n"
    with pytest.raises(LabelsFault, match=r"test.*train .*line 2") as fault:
        parse_labels(content, "csv", several="lines", split="split")
    assert fault.value.line == 3


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "-2", None], "int64", [1, -2, None]),
        (["1", "2.5", "1e3", ".5"], "float", [1.0, 2.5, 1000.0, 0.5]),
        (["01234", "5"], "bytes", ["01234", "5"]),
        (["1", "x"], "bytes", ["1", "x"]),
        ([None, None], "bytes", [None, None]),
    ],
)
def test_a_column_of_texts_gets_the_narrowest_kind(
    values: list[Any], kind: str, expected: list[Any]
) -> None:
    """Whole numbers, numbers, texts; a needless zero makes texts."""
    assert typed(values, range(1, 9)[: len(values)], is_text=True) == (kind, expected)


@pytest.mark.parametrize(
    ("values", "is_text", "kind"),
    [
        (["1", "x"], True, "int64"),
        (["9" * 30], True, "int64"),
        (["1e39"], True, "float"),
        ([10**400], False, "float"),
        ([1, "x"], False, None),
        ([{"a": 1}], False, None),
        ([[1, [2]]], False, None),
    ],
)
def test_a_value_of_another_kind_is_a_fault(values: list[Any], is_text: bool, kind: Any) -> None:
    """The fault names the line of a value that does not fit."""
    with pytest.raises(LabelsFault) as caught:
        typed(values, range(1, len(values) + 1), is_text, kind)
    assert 1 <= caught.value.line <= len(values)


@settings(deadline=None)
@example("[[-?]")
@given(st.text("ab*?[]!^-\\/.", max_size=12))
def test_any_text_is_a_pattern_or_a_value_error(pattern: str) -> None:
    """Nothing but a ValueError comes out, and the two halves of a pattern make it whole."""
    with contextlib.suppress(ValueError):
        compile_pattern(pattern)
    fixed, rest = split_pattern(pattern)
    assert rest in pattern
    assert pattern.startswith(fixed)


@settings(deadline=None)
@given(st.integers(0, 200), st.binary(max_size=8))
def test_a_damaged_file_is_an_error_of_the_file(where: int, junk: bytes) -> None:
    """Arrays and images with junk in them are read, or refused with the error of their kind."""
    for write in (np.savez, np.save):
        data = in_memory(lambda file, write=write: write(file, np.arange(9)))
        with contextlib.suppress(ArrayError):
            parse_array(data[:where] + junk + data[where + len(junk) :])
    with contextlib.suppress(ImageError):
        rasters.decode_raster(b"II*\0" + junk + bytes(where))


@settings(deadline=None)
@given(
    st.text("ab: {}[]-\n\t'\"#&*!%|>?,1.e~", max_size=40)
    | st.binary(max_size=40).map(lambda b: b.decode("latin-1"))
)
def test_any_text_is_a_recipe_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Whatever a recipe holds, its reader raises nothing but an error that names it."""
    path: Path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode())
    said = str(path)
    try:
        read_recipe(path)
    except PrepError as error:
        said = error.what
    assert str(path) in said
