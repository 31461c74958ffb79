"""The report in a real browser: laptop and phone, light and dark,
by mouse and keyboard, with and without script.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import VIEWS, Shown, serious_findings, show
from made_sets import ENGINE, reported
from made_tars import save

from imagenet_prep import ConvertOptions, Layout, convert, report
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Box
from imagenet_prep.reading.shard import Shard
from imagenet_prep.recipes.recipe_set import RecipeSet

SAMPLES = "#gallery .grid"
PART = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    return reported(tmp_path_factory.mktemp("report") / "photographs", made, PART)


@pytest.fixture(
    scope="module",
    params=[*VIEWS, (390, "light", False)],
    ids=lambda view: "-".join(map(str, view)),
)
def shown(request: pytest.FixtureRequest, browser: Any, layout: Layout) -> Iterator[Shown]:
    """The report at each width, light and dark, and without script.
    What a test changes it puts back.
    """
    width, scheme, *script = request.param
    shown = show(browser, layout.report_path, width, scheme, java_script_enabled=not script)
    shown.page.has_script = not script
    if not script:
        shown.page.wait_for_selector("html.is-ready")
    yield shown
    assert shown.said == []
    assert [url for url in shown.requests if not url.startswith("data:")] == [
        layout.report_path.resolve().as_uri()
    ]
    shown.page.context.close()


@pytest.fixture
def page(shown: Shown) -> Any:
    """The same; what it said and asked for is looked at in the end."""
    return shown.page


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: "-".join(map(str, view)))
def opened(request: pytest.FixtureRequest, browser: Any, layout: Layout) -> Iterator[Any]:
    """The page with script at each width, light and dark."""
    shown = show(browser, layout.report_path, *request.param)
    yield shown.page
    assert shown.said == []
    shown.page.context.close()


@pytest.fixture
def scripted(opened: Any) -> Iterator[Any]:
    """The page with its filters ready; it is loaded again afterwards, without any."""
    opened.wait_for_selector("html.is-ready")
    yield opened
    opened.goto(opened.url.partition("#")[0])


# what is seen -------------------------------------------------------------------------------------


def records_of(layout: Layout) -> dict[str, Any]:
    """Every record by file name."""
    shards = [Shard.open(layout.shard_path(name)) for name in layout.find_shards(facts.SPLITS)]
    return {record.filename: record for shard in shards for record in shard.records()}


def fits(page: Any) -> None:
    """The page is no wider than the window, every text has the contrast that WCAG asks for,
    no labels overlap.
    """
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []
    assert page.evaluate(OVERLAPS) == []


OVERLAPS = """() => [...document.querySelectorAll('.scale')].flatMap(scale => {
    const texts = [...scale.querySelectorAll('span')].filter(each => each.checkVisibility())
        .map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([name, a], i) => texts.slice(i + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right).map(([other]) => `${name} over ${other}`));
})"""

PLACES = """all => all.map(tile => {
    const rectangle = each => { const r = each.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
    const image = tile.querySelector('img');
    return [image.alt.split(': ').at(-1), rectangle(image), [...tile.querySelectorAll('.box')].map(rectangle)];
})"""

CONTRASTS = """() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const back = element => {
        for (let each = element; each; each = each.parentElement) {
            const colour = parse(getComputedStyle(each).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll('body *')].filter(each => each.checkVisibility() &&
        [...each.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()));
    return texts.map(each => {
        const style = getComputedStyle(each);
        const front = light(parse(style.color));
        const behind = light(back(each));
        return [(Math.max(front, behind) + 0.05) / (Math.min(front, behind) + 0.05), each.textContent.slice(0, 40)];
    });
}"""


def test_every_image_and_chart_is_there(scripted: Any) -> None:
    """All 48 sample images are decoded and visible;
    every chart has a size and keeps its bars and labels within it.
    """
    sizes = scripted.eval_on_selector_all(
        SAMPLES + " img",
        "all => all.map(each => [each.naturalWidth, each.getBoundingClientRect().width])",
    )
    assert len(sizes) == 48
    assert all(natural > 0 and width > 50 for natural, width in sizes)
    charts = scripted.eval_on_selector_all(
        "figure",
        """all => all.map(figure => {
            const outer = figure.getBoundingClientRect();
            const inside = [...figure.querySelectorAll('.bars i, span')].map(each => each.getBoundingClientRect())
                .every(inner => inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
                    inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1);
            return [outer.width, outer.height, inside];
        })""",
    )
    assert len(charts) == 6
    assert all(width > 220 and height > 120 and inside for width, height, inside in charts)
    fits(scripted)
    beyond = """[...document.querySelectorAll('main *')]
        .filter(each => !each.closest('.scroll') && each.getBoundingClientRect().right > innerWidth + 0.5)
        .map(each => each.outerHTML.slice(0, 200))"""
    assert scripted.evaluate(beyond) == []


def test_boxes_lie_where_the_records_say(scripted: Any, layout: Layout) -> None:
    """Each box, to a pixel, is the record's box times the place of the image;
    the legend's switch hides all of them.
    """
    records = records_of(layout)
    tiles = scripted.eval_on_selector_all(SAMPLES + " li", PLACES)
    assert len(tiles) == 48
    assert sum(len(found) for _, _, found in tiles) > 30
    for name, image, found in tiles:
        expected = [_place(box, image) for box in records[name].boxes]
        assert [pytest.approx(each, abs=1) for each in expected] == found, name
    visible = "all => all.filter(each => each.checkVisibility()).length"
    for count in (0, sum(len(found) for _, _, found in tiles)):
        scripted.click("text=bounding boxes")
        assert scripted.eval_on_selector_all(SAMPLES + " .box", visible) == count


def _place(box: Box, image: list[float]) -> list[float]:
    left, top, right, bottom = image
    width, height = right - left, bottom - top
    return [
        left + box.xmin * width,
        top + box.ymin * height,
        left + box.xmax * width,
        top + box.ymax * height,
    ]


@pytest.fixture(scope="module")
def recipe_layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Layout]:
    """Reports of three splits of images, and of numbers alone."""
    folder = tmp_path_factory.mktemp("recipes")
    for number in range(45):
        name = f"images/{('daisy', 'rose', 'tulip')[number % 3]}/{number:02d}.jpg"
        save(folder / name, photographs.photograph_bytes(number)[0])
    splits = (
        "splits: {train: 0.6, validation: 0.2, test: 0.2}\noutput_file_prefix: flowers\nshards: 3\n"
    )
    recipes = {
        "images": (
            f"source: {{folders: images}}\nrecord: "
            f"{{encoded: encoded, label: label, class: class}}\n{splits}"
        ),
        "numbers": f"source: {{folders: images}}\ncontent: pixels\n{splits}",
    }
    layouts = {}
    for name, text in recipes.items():
        (folder / f"{name}.yaml").write_text(text)
        layouts[name] = Layout(folder / f"{name}-shards")
        convert(layouts[name], ENGINE, dataset=RecipeSet.read(folder / f"{name}.yaml"))
        report(layouts[name], ENGINE)
        layouts[name] = layouts[name].one_set()
    return layouts


@pytest.mark.parametrize("name", ["images", "numbers"])
def test_the_page_of_a_recipe(browser: Any, recipe_layouts: dict[str, Layout], name: str) -> None:
    """Three splits, with images or without: silent, no wider than the window,
    legible, and each split with its mark.
    """
    shown = show(browser, recipe_layouts[name].report_path, *VIEWS[1])
    fits(shown.page)
    assert shown.said == []
    marks = "all => all.map(each => getComputedStyle(each).backgroundColor)"
    keys = shown.page.eval_on_selector_all(".chips .key", marks)
    assert len(keys) == len(set(keys)) == 3
    assert shown.page.eval_on_selector_all(SAMPLES + " img", "all => all.length") == (
        45 if name == "images" else 0
    )
    shown.page.context.close()


# what can be done ---------------------------------------------------------------------------------


def test_a_click_shows_an_image_large(page: Any, layout: Layout) -> None:
    """The image fills the window with its boxes, and all that is known of it stands beside;
    nothing else is seen.
    """
    page.click("#tile-3")
    tile = page.locator("#image-3")
    place, window = tile.bounding_box(), page.viewport_size
    assert (place["x"], place["y"], place["width"], place["height"]) == (
        0,
        0,
        window["width"],
        window["height"],
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tile.locator("img").bounding_box()["width"] > 0.4 * window["width"]
    if not page.has_script:
        assert tile.locator(".file").is_visible()
        page.click("#image-3 .close")
        return
    told = dict(
        zip(tile.locator("dt").all_inner_texts(), tile.locator("dd").all_inner_texts(), strict=True)
    )
    number, shard = told["record"].removeprefix("number ").split(", ")[0].split(" of ")
    offset = int(told["record"].partition("at byte ")[2].replace(",", ""))
    record = records_of(layout)[told["file"]]
    assert (record.number, record.offset, record.wnid) == (int(number), offset, told["WordNet id"])
    assert (str(record.label), record.text) == (told["label"], tile.locator("b").inner_text())
    assert told["to see it"] == f"imagenet-prep show photographs/{shard} --record {number}\nCopy"
    assert len(record.boxes) == tile.locator(".box").count()
    assert not page.is_visible("h1")
    page.click("#image-3 .close")
    assert page.is_visible("h1")
    assert not tile.locator("dl").is_visible()


def test_the_large_view_by_keyboard(page: Any) -> None:
    """Enter opens it, Tab stays in it, Close returns to the image;
    with script Escape closes and arrows go on.
    """
    page.focus("#tile-2")
    page.keyboard.press("Enter")
    assert page.is_visible("#image-2 .close")
    seen = set()
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('.tile')?.id ?? 'outside'"))
    assert "image-2" in seen
    assert seen <= {
        "image-2",
        "outside",
    }  # outside: the browser's own buttons, and the page as such
    if page.has_script:
        page.keyboard.press("ArrowRight")
        assert page.is_visible("#image-3 dl")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Escape")
    else:
        page.click("#image-2 .close")
    assert page.evaluate("document.activeElement.id") == "tile-2"
    assert page.is_visible("h1")


def names(page: Any) -> list[str]:
    """The classes of the table, from top to bottom."""
    return [
        str(each)
        for each in page.locator(
            "table.classes tbody tr:not([hidden]) th .name"
        ).all_text_contents()
    ]


def numbers(page: Any, column: int) -> list[int]:
    """What each class has in one column of the table, over the splits that are shown."""
    table = page.locator(".all-classes")
    table.evaluate(
        "each => each.style.contentVisibility = 'visible'"
    )  # what is not laid out has no text
    rows = page.locator("table.classes tbody tr").all()
    parts = [
        row.locator("td").nth(column - 1).locator("span:visible").all_inner_texts() for row in rows
    ]
    return [sum(int(part.replace(",", "")) for part in each if part.strip()) for each in parts]


def test_every_class_is_in_the_table(page: Any, made: MadeSet) -> None:
    """Its words, WordNet id and label, and how many images and boxes it has;
    with script or without.
    """
    labels = sorted({image.label for image in made.images.values()})
    assert names(page) == [facts.texts()[facts.synsets()[label - 1]] for label in labels]
    counts = Counter(image.label for image in made.images.values())
    assert numbers(page, 1) == [counts[label] for label in sorted(counts)]
    lines = Counter(
        made.images[line.partition(",")[0]].label for line in made.boxes_csv.decode().splitlines()
    )
    assert numbers(page, 2) == [lines[label] for label in sorted(counts)]
    small = page.locator("table.classes tbody small").all_text_contents()
    assert small[0] == f"{facts.synsets()[0]}, label 1"


def test_classes_are_found(scripted: Any, made: MadeSet) -> None:
    """By a part of the words or of the WordNet id, or by the label;
    the number of their images is shown.
    """
    every = names(scripted)
    total = len(made.images)
    wnid, label = (
        scripted.locator("table.classes tbody small").nth(2).text_content().split(", label ")
    )
    field = scripted.get_by_role("combobox", name="Class")
    for text in (every[2][1:].upper(), wnid[1:], label):
        field.fill(text)
        assert names(scripted) == [every[2]]
        tiles = scripted.locator("#gallery .tile:visible b").all_inner_texts()
        assert set(tiles) == {every[2]}
        images = [image for image in made.images.values() if image.wnid == wnid]
        assert scripted.inner_text("#found") == f"{len(images)} of {total} images match"
    field.fill("no such class")
    assert names(scripted) == []
    assert scripted.locator("#gallery .tile").count() == 0
    scripted.get_by_role("button", name="Clear all filters").click()
    assert names(scripted) == every
    assert scripted.locator("#gallery .tile").count() == 48


def test_classes_are_sorted_by_numbers(scripted: Any) -> None:
    """The largest first, the smallest first at the second press, by keyboard too;
    aria-sort says which.
    """
    button = scripted.locator("table.classes thead").get_by_role("button", name="boxes", exact=True)
    button.focus()
    for order, is_reversed in (("descending", True), ("ascending", False)):
        scripted.keyboard.press("Enter")
        found = numbers(scripted, 2)
        assert found == sorted(found, reverse=is_reversed)
        assert len(set(found)) > 1
        sorted_heads = scripted.locator("table.classes th[aria-sort]")
        assert sorted_heads.count() == 1
        assert sorted_heads.get_attribute("aria-sort") == order


def test_a_class_shows_its_images(scripted: Any, layout: Layout) -> None:
    """Some next to its name once it comes into view;
    a press on the name filters the images and shows them, another one takes that back.
    """
    row = scripted.locator("table.classes tbody tr").nth(1)
    row.scroll_into_view_if_needed()
    row.locator(".thumbs img").nth(2).wait_for(timeout=5000)
    assert row.locator(".thumbs img").count() == 3
    row.locator("button.name").focus()
    scripted.keyboard.press("Enter")
    label = int(row.get_attribute("data-label"))
    expected = {name for name, record in records_of(layout).items() if record.label == label}
    assert {record.filename for record in filtered(scripted, layout)} == expected
    scripted.wait_for_function(
        "document.querySelector('#gallery').getBoundingClientRect().top < innerHeight"
    )
    row.locator("button.name").click()
    assert scripted.locator("#gallery .tile").count() == 48


def filtered(page: Any, layout: Layout) -> list[Any]:
    """The records of the images that the page shows: with a picture, or by name and command."""
    every = {(record.shard.name, record.number): record for record in records_of(layout).values()}
    places = page.locator("#gallery .tile:visible").evaluate_all(
        "all => all.map(each => each.dataset.record)"
    )
    records = [
        every[shard, int(number)] for number, _, shard in (place.split(" ") for place in places)
    ]
    texts = page.locator("#names li").evaluate_all(
        "all => all.map(each => ['.file', 'code'].map(part => each.querySelector(part).textContent))"
    )
    for filename, line in texts:
        _, shard, number = re.fullmatch(
            r"imagenet-prep show (.*)/(.*) --record (\d+)", line
        ).groups()
        records.append(every[shard, int(number)])
        assert records[-1].filename == filename
    return records


def value(record: Any, chart: str, counts: dict[Any, int]) -> float:
    """The value of a record in a chart."""
    split = record.shard.name.partition("-")[0]
    values = {
        "ratio": record.width / record.height,
        "bytes": len(record.encoded),
        "boxes": len(record.boxes),
    }
    values |= {
        "width": record.width,
        "height": record.height,
        "images": counts[split, record.label],
    }
    return float(values[chart])


@pytest.mark.parametrize("chart", ["ratio", "images"])
def test_a_bar_filters_the_images(scripted: Any, layout: Layout, chart: str, made: MadeSet) -> None:
    """Every bar shows exactly the images that it counts; by click and by keyboard.
    Pressed again it shows the samples.
    """
    sizes = Counter((split, image.label) for split in facts.SPLITS for image in made.of(split))
    every = records_of(layout).values()
    seen = 0
    for place, bar in enumerate(scripted.locator(f"#chart-{chart} button:enabled").all()):
        if place % 2:
            bar.click()
        else:
            bar.focus()
            scripted.keyboard.press("Space")
        assert bar.get_attribute("aria-pressed") == "true"
        token = bar.get_attribute("data-token")
        low, high = token.split("..")
        limits = float(low or "-inf"), float(high or "inf")
        expected = {
            record.filename
            for record in every
            if limits[0] <= value(record, chart, sizes) < limits[1]
        }
        assert expected
        assert {record.filename for record in filtered(scripted, layout)} == expected
        assert scripted.inner_text("#found") == f"{len(expected)} of {len(every)} images match"
        assert scripted.url.endswith(f"#{chart}={token}")
        seen += len(expected)
        bar.click()
        assert bar.get_attribute("aria-pressed") == "false"
    assert seen == len(every)
    assert scripted.locator("#gallery .tile").count() == 48


def test_filters_add_up(scripted: Any, layout: Layout) -> None:
    """Two bars of one chart: either; of two charts: both; Clear removes all.
    Arrow keys move between the bars.
    """
    one, other = scripted.locator("#chart-boxes button:enabled").all()[1:3]
    one.focus()
    scripted.keyboard.press("Enter")
    alone = len(filtered(scripted, layout))
    scripted.keyboard.press("ArrowRight")
    scripted.keyboard.press("Enter")
    assert other.get_attribute("aria-pressed") == "true"
    both = filtered(scripted, layout)
    assert {len(record.boxes) for record in both} == {1, 2}
    assert len(both) > alone
    size = scripted.locator("#chart-width button:enabled[data-token^='500..']")
    size.click()
    found = {(record.filename, record.width >= 500) for record in filtered(scripted, layout)}
    assert found == {(record.filename, True) for record in both if 500 <= record.width < 550}
    assert len(found) > 2
    scripted.get_by_role("button", name="Clear all filters").click()
    assert scripted.locator("[aria-pressed=true]").count() == 0
    assert scripted.locator("#gallery .tile").count() == 48


def test_filters_are_in_the_address(scripted: Any, layout: Layout, made: MadeSet) -> None:
    """A kind, a bar and a class together: the address brings them back, Back takes one away,
    and each has a button that removes it, by keyboard too.
    """
    images = made.images.values()
    grey = [image.filename for image in images if image.kind is Kind.GREY]
    scripted.locator(".kind", has_text="Grey").click()
    assert sorted(record.filename for record in filtered(scripted, layout)) == sorted(grey)
    label = str(made.images[grey[0]].label)
    scripted.locator(f".classes tr[data-label='{label}'] button.name").click()
    labels = {record.label for record in filtered(scripted, layout)}
    assert labels == {int(label)}
    scripted.locator("#chart-boxes button:enabled").first.click()
    address = scripted.url
    assert address.partition("#")[2].startswith(f"odd=grey&class={label}&boxes=")
    shown = [scripted.locator("#filters .filter").all_inner_texts(), scripted.inner_text("#found")]
    assert shown[0][0] == "Odd: Grey"
    assert len(shown[0]) == 3
    scripted.reload()
    scripted.wait_for_selector("html.is-ready")
    assert scripted.locator("#filters .filter").all_inner_texts() == shown[0]
    assert scripted.inner_text("#found") == shown[1]
    assert scripted.url == address
    scripted.go_back()
    assert scripted.locator("#filters .filter").all_inner_texts() == shown[0][:2]
    scripted.go_forward()
    scripted.get_by_role("button", name="Remove the filter Odd: Grey").focus()
    scripted.keyboard.press("Enter")
    assert scripted.locator("#filters .filter").all_inner_texts() == shown[0][1:]
    assert scripted.evaluate("document.activeElement.textContent") == shown[0][1]


def test_commands_are_copied(opened: Any) -> None:
    """Copy puts the command, and the line for torchvision, on the clipboard."""
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for section, start in (
        ("colours", "transforms.Normalize(mean=["),
        ("odd", "imagenet-prep report photographs"),
    ):
        button = opened.locator(f"section:has(#{section}) .copy").last
        button.click()
        opened.locator(f"section:has(#{section}) .copy:text('Copied')").wait_for(timeout=3000)
        assert opened.evaluate("navigator.clipboard.readText()").startswith(start)


def test_a_split_is_left_out(page: Any, made: MadeSet) -> None:
    """A chip hides all that is of a split, without script too:
    totals, classes, samples, and its part of charts.
    """
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


def test_nobody_is_kept_out(browser: Any, layout: Layout) -> None:
    """axe finds nothing serious on the page, wide and narrow, light and dark;
    nor with an image shown large.
    """
    for width, scheme in VIEWS:
        shown = show(browser, layout.report_path, width, scheme)
        assert serious_findings(shown.page) == []
        shown.page.locator("#chart-boxes button:enabled").nth(1).click()
        assert serious_findings(shown.page) == []
        shown.page.click("#clear")
        shown.page.click("#tile-3")
        assert serious_findings(shown.page) == []
        shown.page.context.close()
