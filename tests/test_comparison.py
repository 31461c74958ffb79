"""report A B: two sets beside each other in a real browser; what differs is counted, named, drawn and shown."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import VIEWS, serious_findings, show
from existing import existing
from made_sets import ENGINE, annotated, converted, copied, data_of, write
from test_report_browser import CONTRASTS, OVERLAPS

from imagenet_prep import compare
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.reading.difference import Difference
from imagenet_prep.reading.shard import Shard
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import BytesList, encode_example, parse_example

PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)
SHARD = "train-00001-of-00004"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Path:
    """Two sets of ``made`` and their page: one has boxes and lacks a record, one lacks three of the last classes."""
    folder = tmp_path_factory.mktemp("two")
    boxed, plain = annotated(folder / "boxed", made, PART), converted(folder / "plain", made, PART)
    by_class = sorted(Shard.open(plain.shard_path(SHARD)), key=lambda record: record.label)
    for layout, lacking in ((boxed, by_class[:1]), (plain, by_class[-3:])):
        numbers = {record.number for record in lacking}
        path = layout.shard_path(SHARD)
        write(path, [data for number, data in enumerate(data_of(path)) if number not in numbers])
    compare(boxed.data_dir, plain.data_dir, ENGINE)
    return folder


@pytest.fixture(scope="module")
def told(folder: Path, made: MadeSet) -> Difference:
    """What differs between them."""
    return compare(folder / "boxed", folder / "plain", ENGINE, page=folder / "again.html").difference


@pytest.fixture(scope="module", params=[*VIEWS, (390, "dark", False)], ids=lambda view: "-".join(map(str, view)))
def page(request: pytest.FixtureRequest, browser: Any, folder: Path) -> Iterator[Any]:
    """The page at each width, light and dark, and without script."""
    width, scheme, *script = request.param
    path = Layout(folder / "boxed").comparison_path
    shown = show(browser, path, width, scheme, java_script_enabled=not script)
    shown.page.wait_for_load_state("networkidle")
    yield shown.page
    assert shown.said == []
    assert [url for url in shown.requests if not url.startswith("data:") and "#" not in url] == [
        path.resolve().as_uri()
    ]
    shown.page.context.close()


def rows(page: Any, section: str) -> dict[str, list[str]]:
    """The rows of the first table of a section, by their heads."""
    found = page.locator(f"section:has(#{section}) table").first.locator("tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in found}


def test_counts_stand_beside_each_other(page: Any, told: Difference, folder: Path) -> None:
    """What became of the records, and totals with a mark where they differ, are right."""
    train = told.splits[0]
    with_boxes = {each.name for each in train.differing}
    assert len(train.only[0]) == 3
    assert len(train.only[1]) == 1
    moved, changed = train.moved, len(with_boxes)
    same = train.records[0] - 3 - changed - moved
    assert {what: cells[0] for what, cells in rows(page, "records").items()} == {
        "the same in both": str(same),
        "the same, in another place": str(moved),
        "with other content": str(changed),
        "only in A": "3",
        "only in B": "1",
    }
    totals = rows(page, "totals")
    first, second = train.records
    assert totals["records"] == [f"{first}", f"{second} ≠"]
    assert totals["shards"] == ["4", "4"]
    boxes = sum(len(r.boxes) for path in existing(folder / "boxed", "train-0*") for r in Shard.open(path))
    assert totals["boxes"] == [str(boxes), "0 ≠"]


def test_classes_that_differ_stand_first(page: Any, told: Difference, folder: Path) -> None:
    """The first rows are classes of which one has more; counts are by split; the chart draws these alone."""
    wnids = {name.split("_")[0] for names in told.splits[0].only for name in names}
    table = page.locator("table.both tbody tr")
    marked = [row for row in table.all() if row.locator(".sign").count()]
    first = table.first.inner_text()
    assert {row.locator("th small").inner_text().split(",")[0] for row in marked} == wnids
    assert marked[0].locator("td").last.text_content() == "\N{MINUS SIGN}2"
    assert "train" in first
    assert "validation" in first
    assert [bool(row.locator(".sign").count()) for row in table.all()] == [True] * len(marked) + [False] * (
        table.count() - len(marked)
    )
    chart = page.locator("#chart-classes-train")
    assert chart.locator(".tip").count() == len(marked)
    text = chart.locator(".tip title").first.text_content()
    found = re.fullmatch(r".+: A (\d+), B (\d+)", text)
    assert found
    assert found[1] != found[2]
    assert page.locator("#chart-classes-validation").count() == 0


def test_records_of_one_alone_are_shown(page: Any, told: Difference) -> None:
    """Each side's own records are counted and named, with their images."""
    articles = page.locator("section:has(#only) article").all()
    assert [each.locator(".count").inner_text() for each in articles] == ["3", "1"]
    for article, names in zip(articles, told.splits[0].only, strict=True):
        assert article.locator("ul.names li").all_inner_texts() == list(names)
        shown = article.locator("img").evaluate_all(
            "all => all.map(each => [each.dataset.name, each.naturalWidth > 0])"
        )
        assert shown == [[name, True] for name in names]


def test_records_that_differ_are_shown_in_pairs(page: Any, told: Difference) -> None:
    """Each is there with both images, the boxes on one of them, and the values of every feature that differs."""
    fields = rows(page, "differing")
    assert set(fields) == {f"image/object/bbox/{each}" for each in ("label", "xmin", "xmax", "ymin", "ymax")}
    articles = page.locator(".records article").all()
    assert len(articles) == 12
    for article, record in zip(articles, told.splits[0].differing, strict=False):
        assert article.locator("h3").inner_text() == record.name
        images = article.locator("li")
        assert images.count() == 2
        assert [images.nth(side).locator(".box").count() > 0 for side in (0, 1)] == [True, False]
        values = article.locator(":scope > dl dd").first.locator("span").all_inner_texts()
        assert values[1] == "B []"
        assert values[0].startswith("A ")


def test_an_image_is_shown_large(page: Any) -> None:
    """A click shows an image of a pair with all that is known of it; Close leads back, without script too."""
    link = page.locator(".records article .frame").first
    link.click()
    tile = page.locator(".tile:target")
    assert tile.locator("dl").is_visible()
    assert "show on boxed/" in tile.locator("dl").inner_text().replace("`", "")
    tile.locator(".close").click()
    assert page.is_visible("h1")


def test_the_page_fits_and_can_be_read(page: Any) -> None:
    """Nothing is wider than the window, no label touches another, every text has its contrast, axe finds nothing."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    beyond = """[...document.querySelectorAll('main *')]
        .filter(each => !each.closest('.scroll') && each.getBoundingClientRect().right > innerWidth + 0.5)
        .map(each => each.outerHTML.slice(0, 200))"""
    assert page.evaluate(beyond) == []
    assert page.evaluate(OVERLAPS) == []
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 100
    assert [each for each in contrasts if each[0] < 4.5] == []


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_axe_finds_nothing_serious(browser: Any, folder: Path, width: int, scheme: str) -> None:
    """No finding that keeps people out."""
    shown = show(browser, Layout(folder / "boxed").comparison_path, width, scheme)
    assert serious_findings(shown.page) == []
    shown.page.context.close()


def test_the_same_sets_make_the_same_page_and_say_no_path(folder: Path, told: Difference) -> None:
    """Made again the page has the same bytes; where the sets lie stands nowhere in it."""
    content = Layout(folder / "boxed").comparison_path.read_bytes()
    assert (folder / "again.html").read_bytes() == content
    assert str(folder).encode() not in content


def test_the_same_twice(folder: Path, tmp_path: Path) -> None:
    """Of a copy it says that it is the same; no class differs, and no record is shown."""
    plain = Layout(folder / "plain")
    copy = copied(plain, tmp_path / "copy")
    summary = compare(plain.data_dir, copy.data_dir, ENGINE, page=tmp_path / "page.html")
    text = summary.path.read_text()
    assert summary.difference.is_same
    assert "The same records in the same places" in text
    assert "Every class has as many images in B as in A." in text
    assert 'id="only"' not in text
    assert 'id="differing"' not in text
    assert "<figure" not in text


def test_damage_is_said_and_paths_are_not(folder: Path, tmp_path: Path) -> None:
    """A record whose data don't match their CRC is among those that differ, in words that name no folder."""
    copy = copied(Layout(folder / "plain"), tmp_path / "somewhere" / "copy")
    shard = copy.shard_path("train-00000-of-00004")
    data = bytearray(shard.read_bytes())
    length = int.from_bytes(data[:8], "little")
    data[12 + length] ^= 1  # the CRC of the first record's data
    shard.write_bytes(data)
    copy.manifest_path.unlink()
    text = compare(folder / "plain", copy.data_dir, ENGINE, page=tmp_path / "page.html").path.read_text()
    assert "copy/train-00000-of-00004: record 0 at byte 0 is damaged" in text
    assert "somewhere" not in text


def test_names_that_hold_markup(browser: Any, folder: Path, tmp_path: Path) -> None:
    """Names and values of records are shown as they are, and do nothing; what would turn text around is replaced."""
    bad = "<script>console.error(1)</script>\u202e" + "long_" * 40
    features = dict(parse_example(memoryview(data_of(folder / "plain" / "validation-00000-of-00002")[0])))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        own = {"image/filename": BytesList((bad.encode(),)), bad: BytesList((f"\u202e{name}".encode(),))}
        write(tmp_path / name / "train-00000-of-00001", [encode_example({**features, **own})])
    summary = compare(tmp_path / "one", tmp_path / "other", ENGINE, page=tmp_path / "page.html")
    assert [set(record.features or {}) for record in summary.difference.splits[0].differing] == [{bad}]
    shown = show(browser, summary.path, 390, "light")
    assert shown.said == []
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.page.locator("article img").count() == 2
    assert "\u202e" not in shown.page.content()
    shown.page.context.close()


def prep(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command."""
    call = [sys.executable, "-m", "imagenet_prep", "report", *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, timeout=120)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    """Its status is that of diff; the page goes where it is told to; a manifest and a file that is none are refused."""
    page = tmp_path / "page.html"
    other = prep(folder / "boxed", folder / "plain", "--output", page, "--samples", 4)
    assert (other.returncode, other.stdout) == (3, f"{page}\n")
    assert other.stderr.endswith("They differ: see the page.\n")
    assert page.read_text().count("<img") == 2 * 1 + 1 + 1
    same = prep(folder / "plain", folder / "plain", "--output", page)
    assert same.returncode == 0
    assert same.stderr.endswith("The two hold the same records in the same places.\n")
    refused = prep(folder / "plain", folder / "plain" / "imagenet-prep" / "manifest.json")
    assert refused.returncode == 2
    assert "diff" in refused.stderr or "is a file" in refused.stderr
    assert prep(folder / "plain", tmp_path / "nothing").returncode == 2


@pytest.mark.parametrize(("name", "error"), [("nope", UsageError), ("empty", InputError)])
def test_nothing_to_compare(folder: Path, tmp_path: Path, name: str, error: type[Exception]) -> None:
    """A folder that is not there, or holds no shards, is named."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(error) as caught:
        compare(folder / "plain", tmp_path / name, ENGINE)
    assert str(tmp_path / name) in str(caught.value)
