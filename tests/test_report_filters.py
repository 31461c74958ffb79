"""The filters of a report of 50,000 images, in a real browser: the images that match,
what an address says, and names that hold markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import VIEWS, show
from made_reports import HOSTILE, make_census, make_facts
from msgspec.structs import replace

from imagenet_prep.reporting.census import GREY, Census
from imagenet_prep.reporting.listed_images import LISTED, choose_listed, list_images
from imagenet_prep.reporting.marks_file import Mark, MarkedImages
from imagenet_prep.reporting.page import render
from imagenet_prep.reporting.page_facts import Facts

COUNT = 50_000

MOST_BYTES_AN_IMAGE = 25
"""Of the page, for the columns of the listed images."""


@pytest.fixture(scope="module")
def large_facts() -> Facts:
    """The facts of 50,000 made-up images."""
    return make_facts(COUNT)


@pytest.fixture(scope="module")
def large_page(large_facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their page."""
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_bytes(render(large_facts))
    return path


@pytest.fixture(scope="module")
def opened(browser: Any, large_page: Path) -> Iterator[Any]:
    """The page in a browser; it says nothing on the console."""
    shown = show(browser, large_page, *VIEWS[0])
    shown.page.wait_for_selector("html.is-ready")
    yield shown.page
    assert shown.said == []
    shown.page.context.close()


FOLLOW = """address => new Promise(done => {
    addEventListener('hashchange', () => setTimeout(done), { once: true });
    location.hash = address;
})"""


def visit(page: Any, address: str) -> None:
    """Go to another fragment of the page."""
    page.evaluate(FOLLOW, address)


def expected_count(census: Census, **limits: tuple[float, float]) -> int:
    """The images whose columns lie within these limits."""
    matches = np.ones(len(census.rows), bool)
    for column, (low, high) in limits.items():
        matches &= (census.rows[column] >= low) & (census.rows[column] < high)
    return int(matches.sum())


def test_every_image_is_searched(opened: Any, large_facts: Facts) -> None:
    """Bars, classes, kinds and splits, alone and together, show as many images as NumPy counts."""
    census = large_facts.census
    is_grey = census.rows["marks"] & GREY != 0
    cases = {
        "#width=500..600": expected_count(census, width=(500, 600)),
        "#width=500..600&width=600..700": expected_count(census, width=(500, 700)),
        "#width=500..600&class=7": expected_count(census, width=(500, 600), label=(7, 8)),
        "#class=7&class=9": expected_count(census, label=(7, 8))
        + expected_count(census, label=(9, 10)),
        "#split=validation&boxes=0..1": int((census.rows["split"] == 1).sum()),
        "#odd=grey": int(is_grey.sum()),
        "#problem=truncated": int((census.rows["shard"] == 8).sum()),
        "#problem=wrong-label": 1,
        "#problem=wrong-label&problem=truncated": 1 + int((census.rows["shard"] == 8).sum()),
        "#marked=any": len(large_facts.marked.by_row),
        "#width=500..501": 0,
        "#nonsense=1&class=7": expected_count(census, label=(7, 8)),
    }
    for address, count in cases.items():
        visit(opened, address)
        assert opened.inner_text("#found") == f"{count:,} of 50,000 images match", address
    visit(opened, "#odd=grey")
    assert opened.locator("#chart-width button.without:enabled").count() == 0
    visit(opened, "#problem=wrong-label")
    assert opened.inner_text(".kind[data-token='truncated'] .count") == "1,000"
    assert opened.inner_text(".kind[data-token='grey'] .count") in ("0", "1")


def test_images_come_in_pages(opened: Any, large_facts: Facts) -> None:
    """A hundred at a time, each with its name, its facts and its command;
    Back returns to the earlier ones.
    """
    rows = np.flatnonzero(large_facts.census.rows["label"] == 7)
    names = np.array(list(large_facts.census.list_filenames()))
    wide = np.flatnonzero(large_facts.census.rows["width"] == 640)
    visit(opened, "#width=600..700")
    assert opened.locator("#names .file").all_inner_texts() == names[wide[:100]].tolist()
    opened.click("#later")
    assert opened.locator("#names .file").all_inner_texts() == names[wide[100:200]].tolist()
    assert opened.inner_text("#part") == f"101 to 200 of {len(wide):,}"
    opened.go_back()
    assert opened.locator("#names .file").first.inner_text() == names[wide[0]]
    assert opened.is_disabled("#earlier")
    visit(opened, "#class=7")
    item = opened.locator("#names li").first
    shard, number = large_facts.census.place(rows[0])
    assert (
        item.locator("code").inner_text()
        == f"imagenet-prep show large-set/{shard} --record {number}"
    )
    width, height = large_facts.census.rows[["width", "height"]][rows[0]]
    assert f"{width:,} \N{MULTIPLICATION SIGN} {height:,}" in item.locator(".facts").inner_text()


PRESS = """selector => new Promise(done => {
    document.querySelector(selector).click();
    requestAnimationFrame(() => setTimeout(done));
})"""


def restyled_elements(page: Any, selector: str) -> int:
    """The number of elements whose style the browser computes after a press."""
    session = page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ends: list[object] = []
    session.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    session.on("Tracing.tracingComplete", lambda end: ends.append(end))
    categories = "disabled-by-default-devtools.timeline,devtools.timeline"
    session.send("Tracing.start", {"transferMode": "ReportEvents", "categories": categories})
    page.evaluate(PRESS, selector)
    session.send("Tracing.end")
    while not ends:
        page.wait_for_timeout(20)
    styles = [event["args"] for event in events if event["name"] == "UpdateLayoutTree"]
    return sum(arguments.get("elementCount", 0) for arguments in styles)


def test_a_press_restyles_what_it_changes(opened: Any) -> None:
    """Not the thousand rows of classes, though they are in view: it is seen at once."""
    name = ".classes tr[data-label='500'] button.name"
    opened.locator(name).scroll_into_view_if_needed()
    assert 0 < restyled_elements(opened, name) < 1000
    assert opened.locator(".classes [data-count]").count() > 2000


def test_marked_images_have_their_reasons(opened: Any) -> None:
    """All marked images, and those of a reason; a name or a reason that is markup stays text."""
    visit(opened, "#marked=any")
    whys = opened.locator("#names .why").all_inner_texts()
    assert whys[0] == HOSTILE
    assert set(whys[1:]) == {"blurred, score 0.9"}
    opened.get_by_role("button", name="blurred").click()
    opened.locator(".kind[data-token='any']").click()
    assert HOSTILE not in opened.locator("#names .why").all_inner_texts()
    opened.locator("#filters .filter").click()
    opened.locator(".kind", has_text="<script>").click()
    assert opened.locator("#names .file").all_inner_texts() == [HOSTILE]
    assert opened.locator("#filters .filter").all_inner_texts() == [f"Marked: {HOSTILE}"]
    opened.reload()
    opened.wait_for_selector("html.is-ready")
    assert opened.locator("#names .file").all_inner_texts() == [HOSTILE]
    assert opened.locator("#names img, #names script, #filters img").count() == 0


def test_the_page_stays_small(large_page: Path, large_facts: Facts) -> None:
    """50,000 images are listed in about 1 MB; of more images, flagged ones, those with a picture
    and others by chance are listed, the same each time.
    """
    images = list_images(large_facts, [], list(range(1, 1001)))
    assert sum(len(column.content) for column in images.columns) < MOST_BYTES_AN_IMAGE * COUNT
    assert large_page.stat().st_size < 3_000_000
    assert not images.is_sample
    mark = Mark("", "")
    marked = MarkedImages({3: mark, 9: mark}, ())
    more = replace(large_facts, census=make_census(COUNT + 10_000), charts=(), marked=marked)
    rows = choose_listed(more)
    assert len(set(rows.tolist())) == LISTED
    assert {3, 9} <= set(rows.tolist())
    assert (np.diff(rows) > 0).all()
    assert (rows == choose_listed(more)).all()
    text = render(more).decode()
    assert "The filters search 50,000 of the 60,000 images" in text
