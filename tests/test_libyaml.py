"""Recipes by LibYAML and by PyYAML's own parser: the same values, lines and words of faults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from existing import existing
from hypothesis import given, settings
from hypothesis import strategies as some
from test_broken_recipes import RECIPES

from imagenet_prep.errors import UsageError
from imagenet_prep.recipes import examples, recipe_file

ODD = {
    "a tab in a text": "a: b\tc\n",
    "a tab before a comment": "a: b\t# c\n",
    "a question mark in a list": "a: [b?c, d]\n",
    "a key with a question mark": "? a\n: b\n",
    "another line break": "a: 'b\x85 c'\nd: e\u2028f: g\r\nh: i\n",
    "a byte order mark in a line": "a: b\n\ufeffc: d\n",
    "a byte order mark at the end": "a: b\n...\n\ufeff",
    "a comment at a block": "a: |#b\n  c\n",
    "a directive": "%YAML 1.2\n---\na: b\n",
    "an old directive": "%YAML 1.1\n%TAG ! b\n---\na: b\n",
    "blocks": "a: |2-\n   b\n   c\n\nd: >+\n  e\n\n\nf: g\n",
    "quotes": "a: 'b''c\n\n  d'\n\"e\\n\\u00e9\\\n  f\": [g, {\"h\":i, j}, k: l,]\n",
    "nothing after keys": "a:\nb:\n-\n- c\n-\n  - d\n",
    "a list in a line with a key": "a:\n- b: c\n  d: e\n",
    "no document": "# only this\n",
    "an end": "a: b\n...\n",
    "two documents": "a: b\n---\nc: d\n",
    "an alias": "a: &b c\nd: *b\n",
    "a tag": "a: !!str 1\n",
    "surrogates": 'a: "\\ud83d\\ude00"\n',
    "half a surrogate": 'a: "\\ud83d"\n',
    "no character": 'a: "\\U99999999"\n',
    "a deep list": "a: " + "[" * 70 + "]" * 70 + "\n",
}


def outcomes(text: str) -> list[object]:
    """What both parsers make of a text, the faster one first."""
    with pytest.MonkeyPatch.context() as patch:
        ours = outcome(text)
        patch.delattr(yaml, "CSafeLoader", raising=False)
        return [ours, outcome(text)]


def outcome(text: str) -> object:
    """Values and lines, or the words of the fault."""
    try:
        return repr(recipe_file._read(Path("r.yaml"), text))
    except UsageError as error:
        return str(error)


TEXTS = [recipe for recipe, *_ in RECIPES.values() if isinstance(recipe, str)]
TEXTS += [path.read_text() for path in existing(Path(examples.__file__).parent, "*.yaml")]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_text_is_read_in_one_way(name: str) -> None:
    """LibYAML reads some in another way: it is not asked."""
    ours, theirs = outcomes(ODD[name])
    assert ours == theirs


def test_recipes_are_read_and_refused_in_the_same_words() -> None:
    """Examples and broken ones, with their lines."""
    for text in TEXTS:
        ours, theirs = outcomes(text)
        assert ours == theirs


PIECES = [
    *": \n-?[]{},#&*!|>\"'%@`\\a1\t",
    "---\n",
    "...\n",
    "  ",
    ": ",
    ", ",
    "- ",
    '"a":',
    "\n\n",
]
PIECES += ["b: c\n", "d:\n  e: f\n", "[g, h]", "{i: j}", "# k\n", "|2\n", ">-\n", "\\u0041", "\x85"]


@settings(max_examples=300)
@given(some.lists(some.sampled_from(PIECES), max_size=12))
def test_any_text_is_read_in_one_way(pieces: list[str]) -> None:
    """Whatever stands beside what."""
    ours, theirs = outcomes("".join(pieces))
    assert ours == theirs


def test_libyaml_is_asked_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads ten times as fast; without it, PyYAML's own parser reads."""
    loaders = []
    read = recipe_file._Nodes.read

    def watched(nodes: recipe_file._Nodes, text: str, loader: type) -> object:
        loaders.append(loader)
        return read(nodes, text, loader)

    monkeypatch.setattr(recipe_file._Nodes, "read", watched)
    outcomes("a: b\n")
    assert loaders[-1] is yaml.SafeLoader
    assert loaders[:-1] == (
        [recipe_file._libyaml()] if yaml.__with_libyaml__ else [yaml.SafeLoader]
    )
