"""Words of the report's page that depend on the set: counts, sources, and where to see more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from made_reports import make_facts
from made_sets import ENGINE
from msgspec.structs import replace
from test_report import VERDICT, _record, odd_of, picture, write_shard

from imagenet_prep.checks.verdict import RIGHT, Level
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.reporting.census import FeatureCensus
from imagenet_prep.reporting.odd_images import _CHANGES
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.page_facts import (
    Facts,
    Subject,
    _bounds_text,
    _source_lines,
    banner,
    origin,
)
from imagenet_prep.stages.report import write_report
from imagenet_prep.storage.layout import Layout


@pytest.fixture(scope="module")
def facts() -> Facts:
    """The facts of a set of 1,000 images."""
    return make_facts(1000)


@pytest.mark.parametrize(("count", "words"), [(1, "NaN in 1 record"), (2, "NaN in 2 records")])
def test_one_record_with_nan_is_one(count: int, words: str) -> None:
    """Records whose numbers can't be ordered are counted."""
    feature = FeatureCensus("float", 9, 1, 1, 0.5, 2.5, not_numbers=count)
    assert _bounds_text(feature, "float") == f"0.5 to 2.5, {words}"


@pytest.mark.parametrize("thing", ["image", "record"])
def test_the_images_of_one_file_are_not_called_files(thing: str) -> None:
    """A parquet file, a table or an archive holds many."""
    source = {"name": "animals.parquet", "images": 100, "names_and_sizes": "ab"}
    (_, counts, _), _ = _source_lines("train", source, thing, is_own=True)
    assert counts == f"animals.parquet; 100 {thing}s"


def test_a_damaged_manifest_is_not_called_absent(facts: Facts) -> None:
    """The page knows no maker of a set without a usable manifest; verify says why."""
    values = {name: value for name, value, _ in origin(facts)}
    assert values["made by"] == "unknown: there is no sound manifest"


def test_decoding_is_not_of_jpegs_alone(facts: Facts) -> None:
    """verify decodes the images of a recipe in each of their formats."""
    verdict = replace(facts.verdict, depth="decode", problems=())
    own = replace(facts, verdict=verdict, subject=Subject("own", ("train",)))
    assert banner(own)["notes"][0].endswith("and every image was decoded.")


@pytest.mark.parametrize("level", get_args(Level))
def test_only_a_right_set_has_a_check_mark(facts: Facts, level: Level) -> None:
    """Each kind of verdict has a mark of its own."""
    marks = {}
    for shown_level in ("complete", "incomplete", level):
        verdict = replace(facts.verdict, level=shown_level, problems=(), faulty={})
        page = render(replace(facts, verdict=verdict)).decode()
        found = re.search(r'<section class="verdict (\w+)".*?<path d="([^"]+)"', page, re.DOTALL)
        assert found is not None
        marks[shown_level] = found[2]
    assert marks["incomplete"] != marks["complete"]
    assert (marks[level] == marks["complete"]) == (level in RIGHT)


@pytest.mark.parametrize("depth", ["full", "decode"])
def test_problems_beyond_the_page_have_a_command(facts: Facts, depth: str) -> None:
    """The page may lie elsewhere, or be about one file: no file next to it lists its problems."""
    problems = tuple(
        Problem(ProblemKind.BAD_INDEX, f"train-{number:05}-of-00050", "stale")
        for number in range(201)
    )
    verdict = replace(facts.verdict, problems=problems, depth=depth)
    page = render(replace(facts, verdict=verdict)).decode()
    text = " ".join(re.sub("<[^>]*>", " ", page).split())
    option = "--depth decode " if depth == "decode" else ""
    assert (
        "200 of 201 are listed here. To list all of them: "
        f"imagenet-prep verify large-set {option}--json - Copy" in text
    )
    assert "problems.jsonl" not in page


def test_an_image_that_is_no_png_is_not_called_one(tmp_path: Path) -> None:
    """A WebP in shards of another tool is odd as it is no JPEG."""
    layout = Layout(tmp_path)
    images = [picture(), picture(form="PNG"), picture(form="WEBP")]
    write_shard(layout, [_record(number, image) for number, image in enumerate(images)])
    write_report(layout, ENGINE, VERDICT)
    odd = odd_of(layout)
    assert odd["Not JPEG"] == ["n01440764_1.JPEG", "n01440764_2.JPEG"]
    assert "PNG" not in odd


def test_repairs_are_of_every_format() -> None:
    """A recipe's GIF or WebP becomes a JPEG too."""
    assert _CHANGES["Repaired"].startswith("an image of another format, or a JPEG of four")
