"""verify folds the reports of shards as they come: in any order to the same verdict, and without their records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from existing import existing
from made_sets import ENGINE, converted
from test_recipe_sets import made, make_flowers

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.model import Outcomes
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout

T = TypeVar("T")
R = TypeVar("R")
RECIPE = "source: {folders: flowers}\nshards: 4\nrecord: {image: encoded, label: label, name: path}\n"


class Backwards:
    """An engine whose last task is done first."""

    workers = 1

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """The outcomes, from the last to the first."""
        yield from reversed(list(ENGINE.map(function, tasks)))


@pytest.fixture(params=["recipe", "imagenet", "imagenet of others"])
def layout(request: pytest.FixtureRequest, tmp_path: Path, made_tiny: MadeSet) -> Layout:
    """A set with a manifest, or one that nothing is recorded of."""
    if request.param == "recipe":
        make_flowers(tmp_path / "flowers", 5)
        return made(tmp_path, RECIPE)
    layout = converted(tmp_path / "data", made_tiny)
    if request.param == "imagenet of others":
        layout.manifest_path.unlink()
        layout.journal_path.unlink()
    return layout


@pytest.mark.parametrize("is_damaged", [False, True])
def test_reports_come_in_any_order(layout: Layout, is_damaged: bool) -> None:
    """The verdict is the same, problems, fingerprint and all, and so is what is kept of it."""
    if is_damaged:
        first, *_, last = existing(layout.data_dir, "train-*")
        content = first.read_bytes()
        first.write_bytes(last.read_bytes())
        last.write_bytes(content[:-20])
    verdict = verify(layout, ENGINE)
    assert bool(verdict.problems) >= is_damaged
    kept = json.loads(layout.verdict_path.read_bytes())
    assert verify(layout, Backwards()) == verdict
    assert json.loads(layout.verdict_path.read_bytes()) == kept
