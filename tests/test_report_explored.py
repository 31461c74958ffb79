"""What can be done with the report in a browser: by mouse and keyboard, wide and narrow, with and without script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import VIEWS, serious_findings, show
from made_sets import annotated

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.pipeline import report
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import size_text

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 2)
PART = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    folder = tmp_path_factory.mktemp("explored") / "photographs"
    annotated(folder, made, PART)
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
    told = dict(zip(tile.locator("dt").all_inner_texts(), tile.locator("dd").all_inner_texts(), strict=True))
    number, shard = told["record"].removeprefix("number ").split(", ")[0].split(" of ")
    offset = int(told["record"].partition("at byte ")[2].replace(",", ""))
    record = next(record for record in Shard.open(layout.shard_path(shard)).records() if record.number == int(number))
    assert (record.offset, record.filename, record.wnid) == (offset, told["file"], told["WordNet id"])
    assert (str(record.label), record.text) == (told["label"], tile.locator("b").inner_text())
    assert f"imagenet-prep show photographs/{shard} --record {number}" == told["to see it"]
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


# the classes -----------------------------------------------------------------------------------------------------


def names(page: Any) -> list[str]:
    """The classes of the table, from top to bottom."""
    return [str(each) for each in page.locator("table.classes tbody th .name").all_text_contents()]


def numbers(page: Any, column: int) -> list[int]:
    """What each class has in one column of the table, over the splits that are shown."""
    table = page.locator(".all-classes")
    table.evaluate("each => each.style.contentVisibility = 'visible'")  # what is not laid out has no text
    rows = page.locator("table.classes tbody tr").all()
    parts = [row.locator("td").nth(column - 1).locator("span:visible").all_inner_texts() for row in rows]
    return [sum(int(part.replace(",", "")) for part in each if part.strip()) for each in parts]


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: "-".join(map(str, view)))
def opened(request: pytest.FixtureRequest, browser: Any, layout: Layout) -> Iterator[Any]:
    """The page with script at each width, light and dark."""
    shown = show(browser, layout.report_path, *request.param)
    yield shown.page
    assert shown.said == []
    shown.page.context.close()


@pytest.fixture
def scripted(opened: Any) -> Iterator[Any]:
    """The page with the table ready; it is loaded again afterwards."""
    opened.wait_for_selector("#search")
    yield opened
    opened.reload()


def test_every_class_is_in_the_table(page: Any, made: MadeSet) -> None:
    """Its words, WordNet id and label, and how many images and boxes it has; with script or without."""
    assert names(page) == [record_words(label) for label in sorted({image.label for image in made.images.values()})]
    counts = Counter(image.label for image in made.images.values())
    assert numbers(page, 1) == [counts[label] for label in sorted(counts)]
    lines = Counter(made.images[line.partition(",")[0]].label for line in made.boxes_csv.decode().splitlines())
    assert numbers(page, 2) == [lines[label] for label in sorted(counts)]
    small = page.locator("table.classes tbody small").all_text_contents()
    assert small[0] == f"{facts.synsets()[0]}, label 1"


def record_words(label: int) -> str:
    """The words of a class of ILSVRC2012."""
    return facts.texts()[facts.synsets()[label - 1]]


@pytest.mark.parametrize("by", ["words", "wnid", "label"])
def test_classes_are_found(scripted: Any, by: str) -> None:
    """By a part of the words or of the WordNet id, or by the label; how many are found is said."""
    every = names(scripted)
    wanted = every[2]
    wnid, label = scripted.locator("table.classes tbody small").nth(2).text_content().split(", label ")
    scripted.get_by_label("Search").fill({"words": wanted[1:].upper(), "wnid": wnid[1:], "label": label}[by])
    assert names(scripted) == [wanted]
    assert scripted.get_by_role("status").inner_text() == f"1 of {len(every)} classes"
    scripted.get_by_label("Search").fill("no such class")
    assert names(scripted) == []
    scripted.get_by_label("Search").fill("")
    assert names(scripted) == every


@pytest.mark.parametrize(("head", "column"), [("images", 1), ("boxes", 2)])
def test_classes_are_sorted_by_numbers(scripted: Any, head: str, column: int) -> None:
    """The largest first, the smallest first at the second press, by keyboard too; aria-sort says which."""
    button = scripted.locator("table.classes thead").get_by_role("button", name=head, exact=True)
    button.focus()
    for order, is_reversed in (("descending", True), ("ascending", False)):
        scripted.keyboard.press("Enter")
        found = numbers(scripted, column)
        assert found == sorted(found, reverse=is_reversed)
        assert len(set(found)) > 1
        sorted_heads = scripted.locator("table.classes th[aria-sort]")
        assert sorted_heads.count() == 1
        assert sorted_heads.get_attribute("aria-sort") == order


def test_a_class_shows_its_images(scripted: Any, layout: Layout) -> None:
    """Some beside its name once it comes into view; a click on the name shows them with boxes and records."""
    row = scripted.locator("table.classes tbody tr").nth(1)
    row.scroll_into_view_if_needed()
    row.locator(".thumbs img").nth(2).wait_for(timeout=5000)
    assert row.locator(".thumbs img").count() == 3
    name = row.locator("button.name")
    name.focus()
    scripted.keyboard.press("Enter")
    dialog = scripted.get_by_role("dialog")
    assert dialog.get_by_role("heading").inner_text() == name.inner_text()
    assert scripted.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for tile in dialog.locator("li").all():
        told = dict(zip(tile.locator("dt").all_inner_texts(), tile.locator("dd").all_inner_texts(), strict=True))
        number, shard = told["record"].removeprefix("number ").split(", ")[0].split(" of ")
        assert f"imagenet-prep show photographs/{shard} --record {number}" == told["to see it"]
        found = next(each for each in Shard.open(layout.shard_path(shard)).records() if each.number == int(number))
        assert (found.filename, found.text) == (told["file"], name.inner_text())
        image = tile.locator("img").bounding_box()
        assert image["width"] / image["height"] == pytest.approx(found.width / found.height, rel=0.03)
        boxes = [each.bounding_box() for each in tile.locator(".box").all()]
        places = [(image["x"] + box.xmin * image["width"], box.xmax - box.xmin) for box in found.boxes]
        assert [(box["x"], box["width"] / image["width"]) for box in boxes] == [
            pytest.approx(place, abs=1, rel=0.02) for place in places
        ]
    scripted.keyboard.press("Escape")
    assert dialog.count() == 0
    assert name.evaluate("each => each === document.activeElement")


# the splits ------------------------------------------------------------------------------------------------------


def test_a_split_is_left_out(page: Any, made: MadeSet) -> None:
    """A chip hides all that is of a split, without script too: totals, classes, samples, and its part of charts."""
    tiles = page.locator(".tile:visible").count()
    page.get_by_role("checkbox", name="train").uncheck()
    validation = Counter(image.label for image in made.of("validation"))
    assert sum(numbers(page, 1)) == sum(validation.values())
    assert 0 < page.locator(".tile:visible").count() < tiles
    assert page.locator("table.totals:visible").count() == 1
    assert page.locator("#chart-bytes .of-0").first.is_hidden()
    page.get_by_role("checkbox", name="train").check()
    assert page.locator(".tile:visible").count() == tiles
    assert sum(numbers(page, 1)) == len(made.images)


# who can use it --------------------------------------------------------------------------------------------------


def test_nobody_is_kept_out(browser: Any, layout: Layout) -> None:
    """axe finds nothing serious on the page, wide and narrow, light and dark; nor with an image shown large."""
    for width, scheme in VIEWS:
        shown = show(browser, layout.report_path, width, scheme)
        assert serious_findings(shown.page) == []
        shown.page.click("#tile-3")
        assert serious_findings(shown.page) == []
        shown.page.context.close()


# charts ----------------------------------------------------------------------------------------------------------


def test_charts_tell_values_where_the_pointer_is(page: Any, layout: Layout) -> None:
    """A part of each chart has words of its own and is marked under the pointer; shares of a split are all of it."""
    told = {
        chart: page.locator(f"#chart-{chart} .tip title").evaluate_all("all => all.map(each => each.textContent)")
        for chart in ("classes", "sizes", "aspects", "bytes", "boxes", "shards")
    }
    assert all(told.values()), told
    for chart in ("aspects", "bytes", "boxes"):
        for split in ("train", "validation"):
            shares = [float(found[1]) for text in told[chart] if (found := re.search(rf"{split} ([\d.e+-]+)%", text))]
            assert abs(sum(shares) - 100) < 1, (chart, split)
    sizes = layout.find_shards(("train",))
    assert told["shards"][0].startswith(f"shard 0: train {size_text(sizes['train-00000-of-00002'])}")
    images = sum(int(text.rpartition(": ")[2].split()[0]) for text in told["sizes"])
    assert images == 72
    tip = page.locator("#chart-boxes .tip").first
    tip.hover(force=True)
    assert tip.locator("path").evaluate("each => getComputedStyle(each).fillOpacity") == "0.14"
    page.mouse.move(0, 0)
