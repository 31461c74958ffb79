"""The manifest and the journal with a value of another sort in each of their places."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_recipe_sets import made, make_flowers

from imagenet_prep import Layout, PrepError, make_engine, status, verify
from imagenet_prep.errors import InputError
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.state.journal import Journal, seal, sealed_line
from imagenet_prep.state.manifest import load_manifest

ENGINE = make_engine("threads", 1)
ODD = ([], None, -1, True, "\ud800", {"x": []})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(text: str, path: tuple[Any, ...], odd: object) -> str:
    """The same JSON with another value in one place;
    a manifest is sealed again, so that this value is looked at.
    """
    value = json.loads(text)
    if not path:
        return json.dumps(odd)
    part = value
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = odd
    if "crc" in value and path != ("crc",):
        value["crc"] = seal({key: each for key, each in value.items() if key != "crc"})
    return json.dumps(value)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A set of one shard, made by a recipe."""
    make_flowers(tmp_path / "flowers", 1)
    return made(
        tmp_path, "source: {folders: flowers}\nshards: 1\nrecord: {image: encoded, label: label}\n"
    )


def test_a_manifest_with_anything_in_any_place_is_one_error(layout: Layout) -> None:
    """Status, verify and repair understand it, or raise an error of ours;
    nothing else comes out.
    """
    text, tried, refused = layout.manifest_path.read_text(), 0, 0
    for path in places(json.loads(text)):
        for odd in ODD:
            layout.manifest_path.write_text(replaced(text, path, odd))
            tried += 1
            try:
                load_manifest(layout.manifest_path)
            except InputError:
                refused += 1
                continue  # the commands say so, all in the same way
            status(layout)
            with contextlib.suppress(PrepError):
                verify(layout, ENGINE, depth="quick")
    assert tried > 200
    assert refused > tried / 2


def test_repair_meets_a_manifest_with_anything_in_the_places_of_a_recipe(layout: Layout) -> None:
    """The features, the splits and the settings of the recipe:
    repair raises an error of ours, or goes on.
    """
    text = layout.manifest_path.read_text()
    for path in places(json.loads(text)):
        if path[:1] in (("settings",), ("dataset",)):
            for odd in ODD:
                layout.manifest_path.write_text(replaced(text, path, odd))
                with contextlib.suppress(PrepError):
                    verify_and_repair(layout, ENGINE)


def test_a_journal_with_anything_in_any_place_is_no_crash(layout: Layout) -> None:
    """A line of another form than its own counts as not there: its shard is not done."""
    value = json.loads(layout.journal_path.read_text().splitlines()[-1])
    value.pop("crc")
    text, known = json.dumps(value), 0
    for path in places(value):
        for odd in ODD:
            if not isinstance(changed := json.loads(replaced(text, path, odd)), dict):
                continue
            layout.journal_path.write_bytes(sealed_line(changed))
            known += len(list(Journal(layout.journal_path).names()))
    assert known < 3 * len(ODD)
    for line in ('{"name":' * 100_000, "[" * 100_000, "1" * 20_000, '"\\ud800"'):
        layout.journal_path.write_text(line + "\n")
        assert not list(Journal(layout.journal_path).names())


@pytest.mark.parametrize("name", ["manifest.json", "plan/plan.json", "verdict.json"])
@pytest.mark.parametrize("text", ['{"a":' * 100_000, "1" * 20_000, '{"recipe": [], "root": {}}'])
def test_deep_json_in_a_file_of_ours_is_as_good_as_none(
    layout: Layout, name: str, text: str
) -> None:
    """Nesting without end, and JSON of another form, crash no command."""
    (layout.state_dir / name).write_text(text)
    status(layout)
    for command in (verify, verify_and_repair):
        with contextlib.suppress(PrepError):
            command(layout, ENGINE)
