"""What can be done with the report in a browser: by mouse and keyboard, wide and narrow, with and without script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import VIEWS, serious_findings, show
from made_sets import reported

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

PART = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    return reported(tmp_path_factory.mktemp("explored") / "photographs", made, PART)


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
    if not page.has_script:
        assert tile.locator(".file").is_visible()
        page.click("#image-3 .close")
        return
    told = dict(zip(tile.locator("dt").all_inner_texts(), tile.locator("dd").all_inner_texts(), strict=True))
    number, shard = told["record"].removeprefix("number ").split(", ")[0].split(" of ")
    offset = int(told["record"].partition("at byte ")[2].replace(",", ""))
    record = next(record for record in Shard.open(layout.shard_path(shard)).records() if record.number == int(number))
    assert (record.offset, record.filename, record.wnid) == (offset, told["file"], told["WordNet id"])
    assert (str(record.label), record.text) == (told["label"], tile.locator("b").inner_text())
    assert told["to see it"] == f"imagenet-prep show photographs/{shard} --record {number}\nCopy"
    assert len(record.boxes) == tile.locator(".box").count()
    assert not page.is_visible("h1")
    page.click("#image-3 .close")
    assert page.is_visible("h1")
    assert not tile.locator("dl").is_visible()


def test_the_large_view_by_keyboard(page: Any) -> None:
    """Enter opens it, Tab stays in it, Close returns to the image; with script Escape closes and arrows go on."""
    page.focus("#tile-2")
    page.keyboard.press("Enter")
    assert page.is_visible("#image-2 .close")
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
    for number in (5, 49) if page.has_script else (5,):  # the 49th is shown by a filter alone
        other.goto("about:blank")
        other.goto(f"{layout.report_path.resolve().as_uri()}#image-{number}")
        other.locator(f"#image-{number} .close").wait_for(timeout=5000)
        assert other.locator(f"#image-{number}").bounding_box()["x"] == 0
    other.close()


# the classes -----------------------------------------------------------------------------------------------------


def names(page: Any) -> list[str]:
    """The classes of the table, from top to bottom."""
    return [str(each) for each in page.locator("table.classes tbody tr:not([hidden]) th .name").all_text_contents()]


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
    opened.wait_for_selector("#class")
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
    scripted.get_by_role("combobox", name="Class").fill(
        {"words": wanted[1:].upper(), "wnid": wnid[1:], "label": label}[by]
    )
    assert names(scripted) == [wanted]
    tiles = scripted.locator("#gallery .tile:visible b").all_inner_texts()
    assert set(tiles) == {wanted}
    assert scripted.get_by_role("status").inner_text().startswith(f"{len(tiles)} of the page's ")
    scripted.get_by_role("combobox", name="Class").fill("no such class")
    assert names(scripted) == []
    assert scripted.locator("#gallery .tile").count() == 0
    scripted.get_by_role("button", name="Clear all filters").click()
    assert names(scripted) == every
    assert scripted.locator("#gallery .tile").count() == 48


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


def test_a_class_shows_its_images(scripted: Any) -> None:
    """Some next to its name once it comes into view; a press on the name filters the gallery and shows it."""
    row = scripted.locator("table.classes tbody tr").nth(1)
    row.scroll_into_view_if_needed()
    row.locator(".thumbs img").nth(2).wait_for(timeout=5000)
    assert row.locator(".thumbs img").count() == 3
    row.locator("button.name").focus()
    scripted.keyboard.press("Enter")
    tiles = scripted.locator("#gallery .tile:visible b").all_inner_texts()
    assert len(tiles) >= 3
    assert set(tiles) == {row.locator("button.name").text_content()}
    scripted.wait_for_function("document.querySelector('#gallery').getBoundingClientRect().top < innerHeight")


# filters ---------------------------------------------------------------------------------------------------------

CHARTS = ("width", "height", "ratio", "bytes", "boxes", "images")


def shown_records(page: Any, layout: Layout) -> list[Any]:
    """The records of the images that the gallery shows, read from the shards."""
    places = page.locator("#gallery .tile:visible").evaluate_all("all => all.map(each => each.dataset.record)")
    found = [place.split(" ") for place in places]
    shards = {shard: list(Shard.open(layout.shard_path(shard)).records()) for _, _, shard in found}
    return [shards[shard][int(number)] for number, _, shard in found]


def value(record: Any, chart: str, counts: dict[Any, int]) -> float:
    """The value of a record in a chart."""
    split = record.shard.name.partition("-")[0]
    values = {"ratio": record.width / record.height, "bytes": len(record.encoded), "boxes": len(record.boxes)}
    values |= {"width": record.width, "height": record.height, "images": counts[split, record.label]}
    return float(values[chart])


@pytest.fixture(scope="module")
def class_sizes(made: MadeSet) -> dict[Any, int]:
    """The number of images of each class, by split and label."""
    return Counter((split, image.label) for split in ("train", "validation") for image in made.of(split))


@pytest.mark.parametrize("chart", CHARTS)
def test_a_bar_filters_the_images(scripted: Any, layout: Layout, chart: str, class_sizes: dict[Any, int]) -> None:
    """Every bar shows at least one image, and those images of the page that are in it; by click and by keyboard."""
    bars = scripted.locator(f"#chart-{chart} button:enabled")
    total, seen = int(re.findall(r"page's (\d+) images", scripted.inner_text("#found"))[0]), 0
    for place, bar in enumerate(bars.all()):
        if place % 2:
            bar.click()
        else:
            bar.focus()
            scripted.keyboard.press("Space")
        assert bar.get_attribute("aria-pressed") == "true"
        low, high = (
            float(bar.get_attribute(f"data-{end}") or f"{sign}inf") for end, sign in (("low", "-"), ("high", ""))
        )
        records = shown_records(scripted, layout)
        assert records
        assert all(low <= value(record, chart, class_sizes) < high for record in records)
        assert scripted.inner_text("#found").startswith(f"{len(records)} of the page's {total} images")
        seen += len(records)
        bar.click()
        assert bar.get_attribute("aria-pressed") == "false"
    assert seen == total
    assert scripted.locator("#gallery .tile").count() == 48


def test_filters_add_up(scripted: Any, layout: Layout, class_sizes: dict[Any, int]) -> None:
    """Two bars of one chart: either; of two charts: both; Clear removes all. Arrow keys move between the bars."""
    one, other = scripted.locator("#chart-boxes button:enabled").all()[1:3]
    one.focus()
    scripted.keyboard.press("Enter")
    alone = len(shown_records(scripted, layout))
    scripted.keyboard.press("ArrowRight")
    scripted.keyboard.press("Enter")
    assert other.get_attribute("aria-pressed") == "true"
    both = shown_records(scripted, layout)
    assert {len(record.boxes) for record in both} == {1, 2}
    assert len(both) > alone
    size = scripted.locator("#chart-width button:enabled[data-low='500.0']")
    size.click()
    found = {(record.filename, record.width >= 500) for record in shown_records(scripted, layout)}
    assert found == {(record.filename, True) for record in both if 500 <= record.width < 550}
    assert len(found) > 2
    scripted.get_by_role("button", name="Clear all filters").click()
    assert scripted.locator("[aria-pressed=true]").count() == 0
    assert scripted.locator("#gallery .tile").count() == 48


def test_the_large_view_stays_within_the_filter(scripted: Any) -> None:
    """Next goes from one shown image to the next; at the last one it stays."""
    scripted.locator("#chart-boxes button:enabled").nth(2).click()
    ids = scripted.locator("#gallery .tile:visible").evaluate_all("all => all.map(each => each.id)")
    scripted.locator(f"#{ids[0]} .frame").click()
    seen = []
    for _ in [*ids, "once more"]:
        seen.append(scripted.evaluate("document.querySelector('.tile:target').id"))
        scripted.keyboard.press("ArrowRight")
    assert seen == [*ids, ids[-1]]
    scripted.keyboard.press("Escape")


def test_commands_are_copied(opened: Any) -> None:
    """Copy puts the command, and the line for torchvision, on the clipboard."""
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for section, start in (("colours", "transforms.Normalize(mean=["), ("odd", "imagenet-prep report photographs")):
        button = opened.locator(f"section:has(#{section}) .copy").last
        button.click()
        opened.locator(f"section:has(#{section}) .copy:text('Copied')").wait_for(timeout=3000)
        assert opened.evaluate("navigator.clipboard.readText()").startswith(start)


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
        shown.page.locator("#chart-boxes button:enabled").nth(1).click()
        assert serious_findings(shown.page) == []
        shown.page.click("#clear")
        shown.page.click("#tile-3")
        assert serious_findings(shown.page) == []
        shown.page.context.close()
