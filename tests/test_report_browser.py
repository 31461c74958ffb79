"""The report in a real browser: laptop and phone, light and dark. Nothing is loaded, boxes lie where they should."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import VIEWS, Shown, show
from existing import existing
from made_sets import reported

from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Box, Problem, ProblemKind
from imagenet_prep.pipeline import report
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.report import write_report
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List, encode_example
from imagenet_prep.tfrecord.framing import frame, iter_records
from imagenet_prep.tfrecord.inception_reader import read_record

SAMPLES = "#gallery .grid"
ENGINE = make_engine("threads", 2)
PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made`` with their report. Read only."""
    return reported(tmp_path_factory.mktemp("report") / "photographs", made, PART)


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def shown(request: pytest.FixtureRequest, browser: Any, layout: Layout) -> Iterator[Shown]:
    """The report at each width, light and dark; opened once for all tests."""
    shown = show(browser, layout.report_path, *request.param)
    yield shown
    shown.page.context.close()


def test_nothing_is_said_or_asked_for(shown: Shown, layout: Layout) -> None:
    """No error and no warning on the console, and no request but for the file itself."""
    shown.page.wait_for_load_state("networkidle")
    assert shown.said == []
    assert [url for url in shown.requests if not url.startswith("data:")] == [layout.report_path.resolve().as_uri()]


def test_the_page_does_not_scroll_sideways(shown: Shown) -> None:
    """Everything fits the window's width; what is wider scrolls in a box of its own."""
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    beyond = """[...document.querySelectorAll('main *')]
        .filter(each => !each.closest('.scroll') && each.getBoundingClientRect().right > innerWidth + 0.5)
        .map(each => each.outerHTML.slice(0, 200))"""
    assert shown.page.evaluate(beyond) == []


def test_every_image_and_chart_is_there(shown: Shown) -> None:
    """All 48 sample images are decoded and visible; every chart has a size and keeps its bars and labels within it."""
    sizes = shown.page.eval_on_selector_all(
        SAMPLES + " img", "all => all.map(each => [each.naturalWidth, each.getBoundingClientRect().width])"
    )
    assert len(sizes) == 48
    assert all(natural > 0 and width > 50 for natural, width in sizes)
    charts = shown.page.eval_on_selector_all(
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
    assert shown.page.evaluate(OVERLAPS) == []


OVERLAPS = """() => [...document.querySelectorAll('.scale')].flatMap(scale => {
    const texts = [...scale.querySelectorAll('span')].filter(each => each.checkVisibility())
        .map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([name, a], i) => texts.slice(i + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right).map(([other]) => `${name} over ${other}`));
})"""


def test_an_image_is_in_the_first_screen(browser: Any, layout: Layout) -> None:
    """800 pixels high, a laptop shows all of an image, and a phone 100 pixels of one at least."""
    for width, seen in ((1280, 220), (390, 100)):
        page = show(browser, layout.report_path, width, "light").page
        page.set_viewport_size({"width": width, "height": 800})
        image = page.locator(SAMPLES + " img").first
        assert 800 - image.bounding_box()["y"] > seen
        assert image.evaluate("each => each.complete && each.naturalWidth > 100")
        page.context.close()


PLACES = """all => all.map(tile => {
    const rectangle = each => { const r = each.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
    const image = tile.querySelector('img');
    return [image.alt.split(': ').at(-1), rectangle(image), [...tile.querySelectorAll('.box')].map(rectangle)];
})"""


def test_boxes_lie_where_the_records_say(shown: Shown, layout: Layout) -> None:
    """Each box, to a pixel, is the record's box times the place of the image."""
    records = {
        record.filename: record.boxes
        for path in existing(layout.output_dir, "*-of-*")
        for record in (read_record(each.data) for each in iter_records(memoryview(path.read_bytes())))
    }
    tiles = shown.page.eval_on_selector_all(SAMPLES + " li", PLACES)
    assert len(tiles) == 48
    assert sum(len(found) for _, _, found in tiles) > 30
    for name, image, found in tiles:
        expected = [_place(box, image) for box in records[name]]
        assert [pytest.approx(each, abs=1) for each in expected] == found, name


def _place(box: Box, image: list[float]) -> list[float]:
    left, top, right, bottom = image
    width, height = right - left, bottom - top
    return [left + box.xmin * width, top + box.ymin * height, left + box.xmax * width, top + box.ymax * height]


def test_boxes_can_be_hidden(shown: Shown) -> None:
    """The switch of the legend hides every box, and shows them again."""
    visible = "all => all.filter(each => each.checkVisibility()).length"
    before = shown.page.eval_on_selector_all(SAMPLES + " .box", visible)
    shown.page.click("text=bounding boxes")
    assert shown.page.eval_on_selector_all(SAMPLES + " .box", visible) == 0
    shown.page.click("text=bounding boxes")
    assert shown.page.eval_on_selector_all(SAMPLES + " .box", visible) == before > 30


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


def test_text_can_be_read(shown: Shown) -> None:
    """Every text, labels of charts included, has the contrast that WCAG asks for: 4.5 to 1."""
    contrasts = shown.page.evaluate(CONTRASTS)
    assert len(contrasts) > 200
    assert [each for each in contrasts if each[0] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper(browser: Any, layout: Layout, scheme: str, tmp_path: Path) -> None:
    """Printed it is light, whatever the screen is, fits the sheet, shows no switch, and all images within few pages."""
    page = show(browser, layout.report_path, 688, scheme).page  # A4 at 96 pixels an inch, without its margins
    page.wait_for_selector("#class")
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.ariaLabel)"
    assert page.eval_on_selector_all(".scroll", cut) == []
    assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []
    assert not any(each.is_visible() for each in page.locator("nav, .chips, input, .copy, .thumbs").all())
    assert page.evaluate("getComputedStyle(document.querySelector('.bars i')).printColorAdjust") == "exact"
    assert page.evaluate("getComputedStyle(document.querySelector('#classes')).breakAfter") == "avoid"
    path = tmp_path / "page.pdf"
    page.pdf(path=path, format="A4")
    assert 3 <= path.read_bytes().count(b"/Type /Page\n") <= 12
    page.context.close()


def test_light_and_dark_differ(browser: Any, layout: Layout) -> None:
    """The page follows the system's choice, charts and all."""
    colours = []
    for scheme in ("light", "dark"):
        page = show(browser, layout.report_path, 1280, scheme).page
        style = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(document.body).backgroundColor]"
        colours.append(page.eval_on_selector(".bars i", style))
        page.context.close()
    assert colours[0][0] != colours[1][0]
    assert colours[0][1] != colours[1][1]


@pytest.fixture
def hostile(tmp_path: Path, layout: Layout) -> Layout:
    """A report of problems and of images whose names hold markup, far more oblong than most."""
    text = "<script>console.error(1)</script><img src=x onerror=alert(2)>" + "long_" * 40
    shard = layout.shard_path("train-00000-of-00004").read_bytes()
    encoded = read_record(next(iter_records(memoryview(shard))).data).encoded
    box = {"xmin": 0.25, "ymin": 0.5, "xmax": 1.0, "ymax": 0.75}
    records = [
        encode_example(
            {
                "image/encoded": BytesList((image,)),
                "image/class/label": Int64List((1,)),
                "image/class/text": BytesList((text.encode(),)),
                "image/filename": BytesList((text.encode(),)),
                **{f"image/object/bbox/{edge}": FloatList((value,)) for edge, value in box.items()},
            }
        )
        for image in (bytes(encoded), _oblong(900, 30), _oblong(30, 900))
    ]
    own = Layout(tmp_path / "theirs")
    own.data_dir.mkdir()
    framed = b"".join(header + data + footer for data in records for header, footer, _ in [frame(data)])
    own.shard_path("train-00000-of-00001").write_bytes(framed)
    problem = Problem(ProblemKind.BAD_FIELD, "train-00000-of-00001", text, text)
    problems = tuple(dataclasses.replace(problem, remedy=f"{text} {k}") for k in range(30))
    verdict = Verdict("full", problems, (), is_part=False, has_manifest=False, notes=(text,), fingerprint=text)
    write_report(own, ENGINE, verdict)
    return own


def _oblong(width: int, height: int) -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (width, height), (90, 120, 60)).save(out, "JPEG")
    return out.getvalue()


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_whatever_names_hold_the_page_stays_as_it_is(browser: Any, hostile: Layout, width: int, scheme: str) -> None:
    """Markup in names does nothing, long names don't widen the page, boxes of oblong images are right too."""
    shown = show(browser, hostile.report_path, width, scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert shown.said == []
    assert [url for url in shown.requests if not url.startswith("data:")] == [hostile.report_path.resolve().as_uri()]
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tiles = shown.page.eval_on_selector_all(SAMPLES + " li", PLACES)
    assert len(tiles) == 3
    for _, image, found in tiles:
        assert found == [pytest.approx(_place(Box(0.25, 0.5, 1.0, 0.75), image), abs=1)]
    ratios = sorted((right - left) / (bottom - top) for _, (left, top, right, bottom), _ in tiles)
    assert ratios[0] == pytest.approx(1 / 30, rel=0.1)
    assert ratios[2] == pytest.approx(30, rel=0.1)
    assert [each for each in shown.page.evaluate(CONTRASTS) if each[0] < 4.5] == []
    assert shown.page.evaluate(OVERLAPS) == []
    shown.page.context.close()


@pytest.fixture(scope="module")
def recipe_layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Layout]:
    """Reports of three splits of images, and of numbers alone."""
    folder = tmp_path_factory.mktemp("recipes")
    for number in range(45):
        path = folder / "images" / ("daisy", "rose", "tulip")[number % 3] / f"{number:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photographs.photograph_bytes(number)[0])
    splits = "splits: {train: 0.6, validation: 0.2, test: 0.2}\noutput_file_prefix: flowers\nshards: 3\n"
    recipes = {
        "images": f"source: {{folders: images}}\nrecord: {{encoded: encoded, label: label, class: class}}\n{splits}",
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


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
@pytest.mark.parametrize("name", ["images", "numbers"])
def test_the_page_of_a_recipe(
    browser: Any, recipe_layouts: dict[str, Layout], name: str, width: int, scheme: str
) -> None:
    """Three splits, with images or without: silent, no wider than the window, legible, and each split with its mark."""
    shown = show(browser, recipe_layouts[name].report_path, width, scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert shown.said == []
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [each for each in shown.page.evaluate(CONTRASTS) if each[0] < 4.5] == []
    assert shown.page.evaluate(OVERLAPS) == []
    marks = "all => all.map(each => getComputedStyle(each).backgroundColor)"
    keys = shown.page.eval_on_selector_all(".chips .key", marks)
    assert len(keys) == len(set(keys)) == 3
    assert shown.page.eval_on_selector_all(SAMPLES + " img", "all => all.length") == (45 if name == "images" else 0)
    shown.page.context.close()
