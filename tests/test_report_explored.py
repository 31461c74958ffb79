"""What can be done with the report in a browser: by mouse and keyboard, wide and narrow, with and without script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import VIEWS, show

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.pipeline import report
from imagenet_prep.reading.shard import Shard
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 2)
PART = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    folder = tmp_path_factory.mktemp("explored") / "photographs"
    annotate(Layout(folder, raw=made.archives["train"].parent), ENGINE)
    convert(Layout(folder, raw=made.archives["train"].parent), ENGINE, PART)
    report(Layout(folder), ENGINE)
    return Layout(folder)


@pytest.fixture(scope="module", params=[*VIEWS, (390, "light", False)], ids=lambda view: "-".join(map(str, view)))
def page(request: pytest.FixtureRequest, browser: Any, layout: Layout) -> Iterator[Any]:
    """The page at each width, light and dark, and without script. What a test changes it puts back."""
    width, scheme, *script = request.param
    shown = show(browser, layout.report_path, width, scheme, java_script_enabled=not script)
    shown.page.has_script = not script
    yield shown.page
    assert shown.said == []
    shown.page.context.close()


def focused(page: Any) -> str:
    """The id, or else the class, of the element that has the focus."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.className"))


# the large view --------------------------------------------------------------------------------------------------


def test_a_click_shows_an_image_large(page: Any, layout: Layout) -> None:
    """The image fills the window with its boxes, and all that is known of it stands beside; nothing else is seen."""
    page.click("#tile-3")
    tile = page.locator("#image-3")
    place, window = tile.bounding_box(), page.viewport_size
    assert (place["x"], place["y"], place["width"], place["height"]) == (0, 0, window["width"], window["height"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tile.locator("img").bounding_box()["width"] > 0.4 * window["width"]
    facts = dict(zip(tile.locator("dt").all_inner_texts(), tile.locator("dd").all_inner_texts(), strict=True))
    number, shard = facts["record"].removeprefix("number ").split(", ")[0].split(" of ")
    offset = int(facts["record"].partition("from byte ")[2].removesuffix(" on").replace(",", ""))
    record = next(record for record in Shard.open(layout.shard_path(shard)).records() if record.number == int(number))
    assert (record.offset, record.filename, record.wnid) == (offset, facts["file"], facts["WordNet id"])
    assert (str(record.label), record.text) == (facts["label"], tile.locator("b").inner_text())
    assert f"show on photographs/{shard} with record={number}" in facts["to see it"].replace("`", "")
    assert len(record.boxes) == tile.locator(".box").count()
    assert not page.is_visible("h1")
    page.click("#image-3 .close")
    assert page.is_visible("h1")
    assert not tile.locator("dl").is_visible()


def test_the_large_view_by_keyboard(page: Any) -> None:
    """Enter opens it, Tab stays in it, Close brings back to the image; with script Escape closes and arrows go on."""
    page.focus("#tile-2")
    page.keyboard.press("Enter")
    assert page.is_visible("#image-2 dl")
    seen = set()
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('.tile')?.id ?? 'outside'"))
    assert "image-2" in seen
    assert seen <= {"image-2", "outside"}  # outside: the browser's own buttons, and the page as such
    if page.has_script:
        page.keyboard.press("ArrowRight")
        assert page.is_visible("#image-3 dl")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Escape")
    else:
        page.click("#image-2 .close")
    assert focused(page) == "tile-2"
    assert page.is_visible("h1")


def test_a_view_can_be_sent(page: Any, browser: Any, layout: Layout) -> None:
    """The address of the page with that of an image opens it large at once."""
    other = page.context.new_page()
    other.goto(f"{layout.report_path.resolve().as_uri()}#image-5")
    assert other.is_visible("#image-5 dl")
    other.close()
