"""The values of settings: those that are refused are told what fits,
and sizes are read as they are written.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from running import error_lines, prep

from imagenet_prep.cli.commands import load_commands
from imagenet_prep.datasets.declarations import read_settings, recipe_keys, settings_of
from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.recipes import schema
from imagenet_prep.recipes.columns import wishes
from imagenet_prep.recipes.loading import read
from imagenet_prep.records import ShardWriter
from imagenet_prep.registry import imagenet_options
from imagenet_prep.text import either, parse_size, size_text

# settings and keys with fixed values --------------------------------------------------------------


def leaves(kind: Any) -> Iterator[Any]:
    """The types that a type allows, without annotations."""
    if typing.get_origin(kind) is Annotated:
        yield from leaves(typing.get_args(kind)[0])
    elif typing.get_origin(kind) in (Union, types.UnionType):
        for each in typing.get_args(kind):
            yield from leaves(each)
    else:
        yield kind


def values_of(kind: Any) -> list[str]:
    """The values that a type lists, as users write them."""
    literals = [each for each in leaves(kind) if typing.get_origin(each) is Literal]
    values = [value for each in literals for value in typing.get_args(each)]
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


SETTINGS = {
    each.name: values_of(each.type) for each in settings_of(ConvertOptions) if values_of(each.type)
}
KEYS = {
    each.name: values_of(each.type) for each in recipe_keys(ConvertOptions) if values_of(each.type)
}


def enums_of(struct: type[Struct]) -> dict[str, list[str]]:
    """The keys of a mapping in a recipe that have fixed values."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return {name.rstrip("_"): values_of(hint) for name, hint in hints.items() if values_of(hint)}


INSIDE: dict[type[Struct], str] = {
    schema.Recipe: "source: {folders: x}\n@\n",
    schema.Source: "source: {folders: x, @}\n",
    schema.Labels: "source: {folders: x}\nlabels: {file: x, @}\n",
    schema.Boxes: "source: {folders: x}\nboxes: {voc: x, @}\n",
    schema.Mask: "source: {folders: x}\nmask: {folder: x, @}\n",
    schema.Feature: "source: {folders: x}\nrecord: {a: {from: x, @}}\n",
}
"""The mappings of a recipe, each within one; @ is a key of it."""
IN_RECIPES = [
    (struct, key, values) for struct in INSIDE for key, values in enums_of(struct).items()
]
NO_ENUMS = {schema.PlaceKeys, schema.ExpectedTotals}


def refusal(path: Path, text: str) -> UsageError:
    """The error against a recipe."""
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        wishes(read(path))
    return caught.value


def test_the_tables_know_all_mappings() -> None:
    """A new mapping of a recipe needs a line above; the tables are not empty."""
    structs = {
        each
        for each in vars(schema).values()
        if isinstance(each, type) and each.__module__ == schema.__name__
    }
    # Boxes and Source have all of their keys.
    bases = {schema.BoxKeys, schema.FormatKeys, schema.SourceKeys}
    assert structs - bases == {*INSIDE, *NO_ENUMS}
    assert SETTINGS.keys() >= {"compression", "check", "read_order", "relabel"}
    assert len(IN_RECIPES) > 12
    assert not any(map(enums_of, NO_ENUMS))


@pytest.mark.parametrize("name", SETTINGS)
def test_set_says_all_values(name: str) -> None:
    """After --set, in the words of a choice."""
    with pytest.raises(UsageError) as caught:
        read_settings(ConvertOptions, [f"{name}=x"])
    assert (caught.value.what, caught.value.detail) == (
        f"--set {name}=x",
        f"expected {either(SETTINGS[name])}",
    )


@pytest.mark.parametrize("value", ["x", "3"])
@pytest.mark.parametrize(("struct", "key", "values"), IN_RECIPES)
def test_a_recipe_says_all_values(
    tmp_path: Path, struct: type[Struct], key: str, values: list[str], value: str
) -> None:
    """A wrong text and a wrong type alike: file, line and key, then what fits."""
    if struct is schema.Source and key == "imagenet":
        text = f"source: {{imagenet: {value}}}\n"
    elif (struct, key) == (schema.Source, "label") and value == "x":
        value = text = "source: {folders: x, label: true}\n"
    else:
        text = INSIDE[struct].replace("@", f"{key}: {value}")
    error = refusal(tmp_path / "r.yaml", text)
    assert re.search(rf"r\.yaml, line \d+: .*\b{key}: .* is not valid$", error.what)
    assert error.detail.startswith("expected ")
    assert [each for each in values if each not in error.detail] == []


@pytest.mark.parametrize("name", KEYS)
def test_a_recipe_of_imagenet_says_all_values(tmp_path: Path, name: str) -> None:
    """Its keys are those of another table."""
    path = tmp_path / "r.yaml"
    path.write_text(f"source: {{imagenet: true}}\n{name}: x\n")
    with pytest.raises(UsageError) as caught:
        imagenet_options(read(path))
    assert caught.value.detail == f"expected {either(KEYS[name])}"


CHOICES = [
    (verb, option.opts[0], option.type)
    for verb, each in load_commands().items()
    for option in each.params
    if isinstance(option.type, click.Choice)
]


@pytest.mark.parametrize(("verb", "option", "choice"), CHOICES)
def test_an_option_says_all_values(
    tmp_path: Path, verb: str, option: str, choice: click.Choice[Any]
) -> None:
    """Every option of the command line with a choice."""
    ran = prep(verb, tmp_path, option, "nothing-like-it")
    assert ran.returncode == 2
    told = " ".join(error_lines(ran))
    assert [str(each) for each in choice.choices if f"{each}" not in told] == []


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("seed=x", "expected a whole number"),
        ("shuffle=x", "expected true or false"),
        ("quality=101", "expected a whole number <= 100"),
        ("resize=0", "expected a whole number >= 1"),
    ],
)
def test_set_speaks_plain_words(text: str, detail: str) -> None:
    """No names of types."""
    with pytest.raises(UsageError) as caught:
        read_settings(ConvertOptions, [text])
    assert caught.value.detail == detail


# sizes --------------------------------------------------------------------------------------------

SIZE_SETTINGS = [each.name for each in settings_of(ConvertOptions) if each.is_size]
SIZE_KEYS = [each.name for each in settings_of(schema.Recipe) if each.is_size]
READ = {
    **{
        "1000": 1000,
        "2kB": 2000,
        "2 kB": 2000,
        "3KB": 3000,
        "512 B": 512,
        "22.7 MB": 22_700_000,
        "1.5GB": 1_500_000_000,
    },
    **{
        "100 MiB": 100 << 20,
        "1.5GiB": 3 << 29,
        "4KiB": 4096,
        "2,500 TB": 2_500 * 10**12,
        "100mb": 10**8,
        "1TiB": 1 << 40,
    },
    **{"0.1kB": 100, "1.0000001 GB": 1_000_000_100},
}
REFUSED = [
    "x",
    "",
    "0",
    "0 MB",
    "-5",
    "2k",
    "100M",
    "1e6",
    "5 bytes",
    "1,00 kB",
    "1..5GB",
    " 5",
    "٣",
    "nan",
]
REFUSED += ["0.4 B", "1.5", "1.5 B"]


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("name", SIZE_SETTINGS)
def test_settings_read_sizes(name: str, text: str) -> None:
    """--set memory=2GB."""
    assert read_settings(ConvertOptions, [f"{name}={text}"]) == {name: READ[text]}


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("name", SIZE_KEYS)
def test_recipes_read_sizes(tmp_path: Path, name: str, text: str) -> None:
    """shard_size and memory, with and without quotes."""
    for written in (text, f"'{text}'"):
        (tmp_path / "r.yaml").write_text(f"source: {{folders: x}}\n{name}: {written}\n")
        assert getattr(read(tmp_path / "r.yaml").recipe, name) == READ[text]


def test_a_recipe_of_imagenet_reads_sizes(tmp_path: Path) -> None:
    """Its memory."""
    (tmp_path / "r.yaml").write_text("source: {imagenet: true}\nmemory: 2 kB\n")
    assert imagenet_options(read(tmp_path / "r.yaml")).memory == 2000


@pytest.mark.parametrize("text", REFUSED)
def test_other_texts_are_no_sizes(tmp_path: Path, text: str) -> None:
    """Everywhere the same words, with examples that are read."""
    errors = []
    for name in SIZE_SETTINGS:
        with pytest.raises(UsageError) as caught:
            read_settings(ConvertOptions, [f"{name}={text}"])
        errors.append(caught.value)
    errors += [
        refusal(tmp_path / "r.yaml", f"source: {{folders: x}}\n{name}: '{text}'\n")
        for name in SIZE_KEYS
    ]
    with pytest.raises(UsageError) as caught:
        ShardWriter(tmp_path / "out", shard_size=text)
    errors.append(caught.value)
    assert {error.detail for error in errors} == {
        "expected a whole number of bytes above 0, perhaps with a unit: 100MB, 2 kB or 1.5GiB"
    }
    assert len(errors) == len(SIZE_SETTINGS) + len(SIZE_KEYS) + 1
    assert parse_size(np.int64(5)) == 5
    assert [parse_size(example) for example in ("100MB", "2 kB", "1.5GiB")] == [
        10**8,
        2000,
        3 << 29,
    ]


@pytest.mark.parametrize("value", ["true", "[1]", "1.5", "0"])
def test_other_values_are_no_sizes(tmp_path: Path, value: str) -> None:
    """YAML knows more than texts and whole numbers."""
    assert (
        "expected a whole number of bytes"
        in refusal(tmp_path / "r.yaml", f"source: {{folders: x}}\nshard_size: {value}\n").detail
    )


@given(st.integers(1, 10**18))
def test_a_printed_size_can_be_read(count: int) -> None:
    """To the tenth of a unit that is printed."""
    read_again = parse_size(size_text(count))
    assert read_again is not None
    assert abs(read_again - count) <= max(count * 0.051, 0)
    assert size_text(read_again) == size_text(count)


@given(st.integers(1, 10**14))
def test_a_plain_number_is_bytes(count: int) -> None:
    """As a number, as a text, and with the unit."""
    assert parse_size(count) == parse_size(str(count)) == parse_size(f"{count:,} B") == count
