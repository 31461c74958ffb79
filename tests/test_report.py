"""stages.report and reporting: the numbers are those of the images,
the page holds them and lets nothing break out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import re
import signal
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from made_sets import ENGINE, copied, reported, write
from made_tars import in_memory
from msgspec.structs import replace
from PIL import Image
from running import command
from test_cli import restricted

from imagenet_prep import ConvertOptions, Layout, make_engine, report
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind, photograph_bytes
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reporting import census as counting
from imagenet_prep.reporting.census import (
    BROKEN,
    FOUR,
    GREY,
    PNG,
    ROTATED,
    TINY,
    UNREAD,
    Census,
    TakeCensus,
    join,
)
from imagenet_prep.reporting.lenient import look
from imagenet_prep.stages.report import write_report
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List, encode_example
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.once

PART = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)
REPAIRED = (Kind.CMYK, Kind.YCCK, Kind.PNG)
VERDICT = Verdict("full", (), (), "complete", "the shards are whole and right.", has_manifest=False)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> Layout:
    """Shards of ``made``, verified, with a report of 48 samples. Read only."""
    return reported(tmp_path_factory.mktemp("sound") / "my-data", made, PART)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return copied(sound, tmp_path / "my-data")


def census_of(layout: Layout, splits: tuple[str, ...] = facts.SPLITS) -> Census:
    """The census of every shard."""
    names = [path.name for path in existing(layout.output_dir, "*-of-*")]
    return join([(name, TakeCensus(layout)(name)) for name in names], splits)


def marks_of(census: Census) -> dict[int, int]:
    """How many records have each mark."""
    bits = {bit: len(census.marked(bit)) for bit in (1 << k for k in range(11))}
    return {bit: count for bit, count in bits.items() if count}


def page_of(layout: Layout) -> str:
    """The page as it was written."""
    return layout.report_path.read_text()


class Page(HTMLParser):
    """A page as a browser's parser sees it: every element with its attributes, and all text.

    The rows of every table are found by its class and caption: the text of each cell.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_shown = True
        self._section = ""
        self.samples: list[tuple[str, dict[str, str | None]]] = []
        self.rows: dict[str, list[list[str]]] = {}
        self._table, self._cell = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))
        self._section = dict(attrs).get("id") or "" if tag in ("h2", "template") else self._section
        if self._section == "images":
            self.samples.append((tag, dict(attrs)))
        self._is_shown = tag not in ("script", "style")
        if tag == "table":
            self._table = dict(attrs).get("class") or "problems"
        elif tag == "tr":
            self.rows.setdefault(self._table, []).append([])
        self._cell = "" if tag in ("caption", "td", "th") else f"{self._cell} "

    def handle_endtag(self, tag: str) -> None:
        """What follows is text of the page again;
        a caption tells one split's totals from another's.
        """
        self._is_shown = True
        if tag == "caption":
            self._table += f" {self._cell.strip()}"
        elif tag in ("td", "th"):
            self.rows[self._table][-1].append(" ".join(self._cell.split()))

    def handle_data(self, data: str) -> None:
        """Keep a piece of text that a reader sees."""
        self.text += data if self._is_shown else ""
        self._cell += data

    def images(self) -> list[dict[str, str | None]]:
        """The attributes of every sample image."""
        return [attributes for tag, attributes in self.samples if tag == "img"]


def write_shard(layout: Layout, records: list[bytes], name: str = "train-00000-of-00001") -> None:
    """A shard of these records' data."""
    layout.output_dir.mkdir(parents=True, exist_ok=True)
    write(layout.shard_path(name), records)


def picture(
    width: int = 40, height: int = 30, mode: str = "RGB", form: str = "JPEG", quality: int = 75
) -> bytes:
    """An image file."""
    return in_memory(
        lambda file: Image.new(mode, (width, height), 120).save(file, form, quality=quality)
    )


def features(**changes: Feature | None) -> dict[str, Feature]:
    """The features of a record that another tool could have made;
    "__" stands for "/", None leaves one out.
    """
    every: dict[str, Feature | None] = {
        "image/encoded": BytesList((picture(),)),
        "image/filename": BytesList((b"n01440764_1.JPEG",)),
        "image/class/label": Int64List((1,)),
        "image/class/text": BytesList((b"tench, Tinca tinca",)),
        **{name.replace("__", "/"): feature for name, feature in changes.items()},
    }
    return {name: feature for name, feature in every.items() if feature is not None}


def boxes(*corners: tuple[float, float, float, float]) -> dict[str, Feature]:
    """The four lists of boxes given as xmin, ymin, xmax, ymax."""
    columns = zip(*corners, strict=True)
    return {
        f"image__object__bbox__{edge}": FloatList(column)
        for edge, column in zip(("xmin", "ymin", "xmax", "ymax"), columns, strict=True)
    }


# the census ---------------------------------------------------------------------------------------


def test_the_census_is_of_the_images_that_were_made(layout: Layout, made: MadeSet) -> None:
    """Counts, sizes, bytes, boxes and odd images are those that the set was made with."""
    census = census_of(layout)
    assert census.faults == {}
    lines = Counter(line.partition(",")[0] for line in made.boxes_csv.decode().splitlines())
    for number, split in enumerate(facts.SPLITS):
        own, images = census.rows[census.rows["split"] == number], made.of(split)
        assert census.labels(number) == Counter(image.label for image in images)
        boxes_of = lines if split == "train" else Counter()
        found = Counter(
            zip(
                *(own[name].tolist() for name in ("label", "width", "height", "boxes")), strict=True
            )
        )
        assert found == Counter(
            (each.label, each.width, each.height, boxes_of[each.filename]) for each in images
        )
    kinds = Counter(image.kind for image in made.images.values())
    assert marks_of(census) == {GREY: kinds[Kind.GREY], ROTATED: 1}
    for mark, own in ((GREY, Kind.GREY), (ROTATED, Kind.ROTATED)):
        named = {_name(layout, *census.place(row)) for row in census.marked(mark)}
        assert named == {image.filename for image in made.images.values() if image.kind is own}
    assert census.words[1] == facts.texts()["n01440764"]


# what other tools make ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("n01440764_1.JPEG", 1, "tench, Tinca tinca", 0)),
        ({"image__class__text": None}, ("n01440764_1.JPEG", 1, "tench, Tinca tinca", 0)),
        (
            {"image__class__label": Int64List(())},
            ("n01440764_1.JPEG", None, "tench, Tinca tinca", 0),
        ),
        ({"image__filename": BytesList((b"\xff\xfe",))}, ("��", 1, "tench, Tinca tinca", 0)),
        (
            {
                "image__class__text": None,
                "image__filename": BytesList((b"ILSVRC2012_val_00000001.JPEG",)),
            },
            ("ILSVRC2012_val_00000001.JPEG", 1, "sea snake", 0),
        ),
        (
            boxes((0.1, 0.2, 0.3, 0.4), (0.0, 0.0, 1.0, 1.0)),
            ("n01440764_1.JPEG", 1, "tench, Tinca tinca", 2),
        ),
    ],
)
def test_records_that_lack_something_are_read_for_the_rest(
    changes: dict[str, Feature | None], expected: tuple[str, int | None, str, int]
) -> None:
    """Each feature may be missing, empty or of another kind: the others still count."""
    seen = look(memoryview(encode_example(features(**changes))), words_of=facts.words_of)
    assert (seen.filename, seen.label, seen.words, len(seen.boxes)) == expected
    assert seen.encoded == picture()


@given(st.binary(max_size=200))
def test_no_record_is_an_error(data: bytes) -> None:
    """Any bytes are something that can be looked at, or nothing."""
    look(memoryview(data))


def test_odd_images_of_other_tools(tmp_path: Path) -> None:
    """Images that were not repaired are told by their headers;
    a record that is no Example is counted as such.
    """
    layout = Layout(tmp_path)
    images = (
        picture(),
        picture(mode="L"),
        picture(mode="CMYK"),
        picture(form="PNG"),
        b"\xff\xd8\xff\xd9",
        b"",
    )
    records = [encode_example(features(image__encoded=BytesList((image,)))) for image in images]
    sized = features(
        image__encoded=None, image__width=Int64List((640,)), image__height=Int64List((480,))
    )
    write_shard(layout, [*records, encode_example(sized), b"\xff\xff\xff"])
    census = census_of(layout)
    unlabeled = counting.UNLABELED
    expected = {GREY: 1, FOUR: 1, PNG: 1, TINY: 4, BROKEN: 2, UNREAD: 1, unlabeled: 1}
    assert marks_of(census) == expected
    assert (len(census.rows), census.rows["width"].max()) == (8, 640)


def _record(number: int, image: bytes, label: int = 1) -> bytes:
    name = f"n01440764_{number}.JPEG".encode()
    return encode_example(
        features(
            image__encoded=BytesList((image,)),
            image__filename=BytesList((name,)),
            image__class__label=Int64List((label,)),
        )
    )


def test_sizes_and_shapes_that_are_odd_are_told(tmp_path: Path) -> None:
    """One image at each bound, and one beyond it; of what most are, nothing is said."""
    layout = Layout(tmp_path)
    sizes = (
        (32, 32),
        (31, 100),
        (4000, 1000),
        (4001, 1000),
        (500, 100),
        (501, 100),
        *[(64, 64)] * 4,
    )
    write_shard(layout, [_record(number, picture(*size)) for number, size in enumerate(sizes)])
    write_report(layout, ENGINE, VERDICT)
    odd = odd_of(layout)
    assert odd["Tiny"] == ["n01440764_1.JPEG"]
    assert odd["Huge"] == ["n01440764_3.JPEG"]
    assert odd["Extreme shape"] == ["n01440764_5.JPEG"]
    write_shard(layout, [_record(number, picture(20, 20)) for number in range(3)])
    write_report(layout, ENGINE, VERDICT)
    assert "Tiny" not in odd_of(layout)


def odd_of(layout: Layout) -> dict[str, list[str]]:
    """By the title of its kind, the names of the odd images that have a picture."""
    articles = re.findall(r'<article class="odd">(.*?)</article>', page_of(layout), re.DOTALL)
    titles = [re.search(r"<h3>(.*?) <span", article) for article in articles]
    return {
        title[1]: [
            re.sub("<.*?>", "", name)
            for name in re.findall(r'<span class="file">(.*?)</span>', article)
        ]
        for title, article in zip(titles, articles, strict=True)
        if title
    }


def test_copies_of_an_image_are_found(tmp_path: Path) -> None:
    """The same bytes within a split, across splits, and under another label;
    not what differs in one byte amid.
    """
    layout = Layout(tmp_path)
    images = [bytes([*picture(90, 60, quality=quality), *bytes(1000)]) for quality in (50, 60, 70)]
    near = images[0][:600] + b"\1" + images[0][601:]
    write_shard(layout, [_record(n, images[k]) for n, k in enumerate((0, 1, 2, 1))])
    other = [_record(7, images[2], label=2), _record(8, near)]
    write_shard(layout, other, "validation-00000-of-00001")
    write_report(layout, ENGINE, VERDICT)
    odd = odd_of(layout)
    assert odd["Duplicates within a split"] == ["n01440764_1.JPEG", "n01440764_3.JPEG"]
    assert odd["Duplicates across splits"] == ["n01440764_2.JPEG", "n01440764_7.JPEG"]
    text = Page(page_of(layout)).text
    assert "the same as n01440764_2.JPEG, under another label" in text
    assert "the same as n01440764_1.JPEG" in text
    assert len(images[0]) == len(near), "told apart by their digests alone"


def test_images_that_look_alike_are_found(tmp_path: Path) -> None:
    """--near-duplicates: a smaller and a coarser copy are named,
    other images and equal files are not.
    """
    layout = Layout(tmp_path / "theirs")
    whole = [photograph_bytes(number)[0] for number in range(6)]
    with Image.open(io.BytesIO(whole[0])) as image:
        smaller, coarser = io.BytesIO(), io.BytesIO()
        image.resize((image.width // 2, image.height // 2)).save(smaller, "JPEG")
        image.save(coarser, "JPEG", quality=20)
    write_shard(
        layout,
        [
            _record(number, data)
            for number, data in enumerate([*whole, whole[5], smaller.getvalue()])
        ],
    )
    write_shard(layout, [_record(9, coarser.getvalue(), label=2)], "validation-00000-of-00001")
    assert "Images that look alike were not searched for." in _reported(layout)
    text = _reported(layout, "--near-duplicates")
    odd = odd_of(layout)
    assert odd["Near-duplicates across splits"] == [
        f"n01440764_{number}.JPEG" for number in (0, 7, 9)
    ]
    assert odd["Duplicates within a split"] == [f"n01440764_{number}.JPEG" for number in (5, 6)]
    assert "Near-duplicates within a split" not in odd
    assert "looks like n01440764_0.JPEG, under another label" in text
    write_shard(layout, [_record(number, data) for number, data in enumerate(whole)])
    layout.shard_path("validation-00000-of-00001").unlink()
    assert "Near-duplicates: none." in _reported(layout, "--near-duplicates")


def _reported(layout: Layout, *options: str) -> str:
    """The text of the page that the command makes of shards with problems."""
    command("report", layout.data_dir, "--quiet", *options, status=3)
    return Page(page_of(layout)).text


def test_without_imagehash(layout: Layout, tmp_path: Path) -> None:
    """The page says what to install, and --near-duplicates is refused with
    the same command before any work.
    """
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['imagehash'] = None\n")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}
    layout.report_path.unlink()
    result = command("report", layout.data_dir, "--near-duplicates", status=2, **environment)
    assert "pip install -e '.[report]'" in result.stderr
    assert not layout.report_path.exists()
    command("report", layout.data_dir, "-q", **environment)
    assert "pip install -e '.[report]'" in Page(page_of(layout)).text
    command("report", layout.data_dir, "-q")
    assert "pip install" not in Page(page_of(layout)).text


def test_repaired_images_are_shown(layout: Layout, made: MadeSet) -> None:
    """Those that the manifest names, each with what was done to it;
    and what annotate left out is told.
    """
    wanted = {image.filename for image in made.images.values() if image.kind in REPAIRED}
    assert set(odd_of(layout)["Repaired"]) == wanted
    text = Page(page_of(layout)).text
    assert "boxes left out: no part of them is within the image" in text
    (layout.data_dir / "imagenet-prep/annotate.json").write_text('{"train": {"totals": [1]}}')
    write_report(layout, ENGINE, VERDICT)
    assert "boxes left out" not in Page(page_of(layout)).text


# samples ------------------------------------------------------------------------------------------


def _name(layout: Layout, shard: str, number: int) -> str:
    data = [data for _, data in Shard.open(layout.shard_path(shard)).unchecked()][number]
    return read_record(data).filename


def test_images_that_do_not_decode_are_said_to(tmp_path: Path) -> None:
    """A sample whose image is damaged behind its header has a place without a picture."""
    layout = Layout(tmp_path)
    image = picture(400, 300)
    cut = features(
        image__encoded=BytesList((image[:300],)),
        image__width=Int64List((0,)),
        image__height=Int64List((1,)),
    )
    outside = features(
        image__filename=BytesList((b"n01440764_2.JPEG",)),
        **boxes((0.5, 0.5, 1.5, 1.0), (0, 0, 0.5, 1)),
    )
    write_shard(layout, [encode_example(cut), encode_example(outside)])
    write_report(layout, ENGINE, VERDICT)
    page = Page(page_of(layout))
    assert page.text.count("This image can't be decoded.") == 1
    assert [image["alt"] for image in page.images()] == ["tench, Tinca tinca: n01440764_2.JPEG"]
    boxes_shown = [
        attributes["style"] for tag, attributes in page.samples if attributes.get("class") == "box"
    ]
    assert boxes_shown == ["left:0%;top:0%;width:50%;height:100%"]


# the page -----------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(layout: Layout) -> None:
    """Nothing from elsewhere; one script, and a policy that allows just that one, by its digest;
    no path of ours.
    """
    text = page_of(layout)
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & {
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "foreignobject",
    }
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)|@import", text)
    policies = [
        each["content"]
        for _, each in page.elements
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert (policies[0] or "").startswith("default-src 'none'; img-src data:;")
    digest = re.search(r" script-src 'sha256-([^']+)';", policies[0] or "")
    scripts: list[str] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert [
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts
    ] == [digest[1]]
    types = [each.get("type") for tag, each in page.elements if tag == "script"]
    assert types == [None]
    assert str(layout.output_dir.parent) not in text


def test_the_same_shards_make_the_same_page(layout: Layout) -> None:
    """Engine, workers and moment make no difference."""
    before = layout.report_path.read_bytes()
    for engine in (ENGINE, make_engine("processes", 2), make_engine("processes", 1)):
        layout.report_path.unlink()
        report(layout, engine)
        assert layout.report_path.read_bytes() == before


HOSTILE = """<script>alert(1)</script>"><img src=x onerror='alert(2)'>{{ 7*7 }}\u202e"""


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    """File names, words, problems and settings that hold markup are shown as they are,
    and do nothing.
    """
    layout = Layout(tmp_path / "<b>data")
    record = features(
        image__filename=BytesList((HOSTILE.encode(),)),
        image__class__text=BytesList((HOSTILE.encode(),)),
    )
    write_shard(
        layout,
        [encode_example(record), encode_example(record | {"image/encoded": BytesList((b"x",))})],
    )
    verdict = replace(
        VERDICT,
        problems=(Problem(ProblemKind.BAD_FIELD, HOSTILE, HOSTILE, HOSTILE),),
        notes=(HOSTILE,),
        flavour=HOSTILE,
        order=HOSTILE,
        fingerprint=HOSTILE,
    )
    write_report(layout, ENGINE, verdict)
    page = Page(page_of(layout))
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert "b<" not in {tag for tag, _ in page.elements}
    assert len(page.images()) == 1
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on")
    ]
    assert page.text.count("<script>alert(1)</script>") >= 9
    assert "{{ 7*7 }}" in page.text
    assert "<b>data" in page.text
    assert "\u202e" not in "".join(image["alt"] or "" for image in page.images())


def test_problems_are_grouped(layout: Layout) -> None:
    """One remedy a kind stands once, others beside each finding;
    long lists end with how many there are; no paths.
    """
    many = [
        Problem(ProblemKind.BAD_CRC, f"train-{i:05d}-of-00999", f"finding {i}", "mend it")
        for i in range(300)
    ]
    path = layout.index_path("x").resolve()
    own = [
        Problem(ProblemKind.STRAY_FILE, f"stray-{i}", f"see {path}", f"rename it to {i}")
        for i in range(2)
    ]
    write_report(layout, ENGINE, replace(VERDICT, problems=(*many, *own)))
    page = Page(page_of(layout))
    assert "302 problems found" in page.text
    assert page.text.count("mend it") == 1
    assert page.text.count("rename it to") == 2
    assert page.text.count("finding ") == 100
    assert "100 of 300 are listed here" in page.text
    assert f"see {path}" not in page.text
    assert "see my-data/imagenet-prep/index/x" in page.text


# damage, and the command --------------------------------------------------------------------------


def test_a_damaged_shard_is_said_to_be_left_out(layout: Layout, made: MadeSet) -> None:
    """Cut shards, a broken length, a folder, a file that is none: exit status 3;
    the page has the rest.
    """
    cut, broken, empty, folder = (layout.shard_path(f"train-{k:05d}-of-00004") for k in range(4))
    cut.write_bytes(cut.read_bytes()[:-3])
    broken.write_bytes(b"\1" + broken.read_bytes()[1:])
    empty.write_bytes(b"")
    folder.unlink()
    folder.mkdir()
    layout.shard_path("validation-00001-of-00002").write_bytes(random.Random(1).randbytes(1000))
    result = command("report", layout.data_dir, status=3)
    assert result.stdout == f"{layout.report_path}\n"
    assert "problems found" in result.stderr
    page = Page(page_of(layout))
    assert "problems found" in page.text
    for path in (cut, broken, folder):
        assert f"Not counted below: {path.name} could not be read to its end" in page.text
    assert f"Not counted below: {empty.name}" not in page.text
    assert page.images()


class _DeadlyCensus(TakeCensus):
    """Kills its worker over one shard, as a read error on a mapped file does."""

    def __call__(self, name: str) -> Census:
        if name == "train-00001-of-00004":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(name)


def test_a_worker_that_dies_costs_its_shard(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard over which workers die is named in the page, and the others are counted."""
    monkeypatch.setattr("imagenet_prep.stages.report.TakeCensus", _DeadlyCensus)
    write_report(layout, make_engine("processes", 2), VERDICT)
    page = Page(page_of(layout))
    assert (
        "Not counted below: train-00001-of-00004 could not be read to its end: every worker process "
        "that tried this task died" in page.text
    )
    assert len(page.images()) == 48


def test_exit_statuses(layout: Layout, tmp_path: Path) -> None:
    """0 if all is right, with the path of the page on a line;
    4 without shards, and then nothing is written.
    """
    layout.report_path.unlink()
    result = command("report", layout.data_dir, "--samples", "2", "--workers", "2", "--quiet")
    assert (result.stdout, result.stderr) == (f"{layout.report_path}\n", "")
    assert len(Page(page_of(layout)).images()) == 2
    command("report", layout.data_dir, "--samples", "-1", status=2)
    empty = tmp_path / "empty"
    empty.mkdir()
    command("report", empty, status=4)
    assert list(empty.iterdir()) == []


def test_the_page_goes_where_it_is_wanted(layout: Layout, tmp_path: Path) -> None:
    """--output: the page is the same, nothing is written beside the shards;
    a file that is no page is refused.
    """
    command("report", layout.data_dir)
    before = layout.report_path.read_bytes()
    layout.report_path.unlink()
    page = tmp_path / "page.html"
    for _ in range(2):
        assert command("report", layout.data_dir, "--output", page).stdout == f"{page}\n"
        assert page.read_bytes() == before
    assert not layout.report_path.exists()
    other = tmp_path / "notes.html"
    other.write_text("mine")
    command("report", layout.data_dir, "--output", other, status=2)
    assert other.read_text() == "mine"


def test_a_set_on_a_read_only_disk_has_a_page_too(layout: Layout, tmp_path: Path) -> None:
    """Its verdict can't be kept there: the page says so, and so does the command."""
    layout.verdict_path.unlink()
    layout.report_path.unlink()
    page = tmp_path / "page.html"
    folders = [
        layout.data_dir,
        *(each for each in existing(layout.data_dir, "**/*") if each.is_dir()),
    ]
    for folder in folders:
        folder.chmod(0o555)
    try:
        refused = restricted("report", layout.data_dir)
        result = restricted("report", layout.data_dir, "--output", page)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert refused.returncode == 1
    assert "--output" in refused.stderr
    assert (result.returncode, result.stdout) == (0, f"{page}\n")
    assert "the result of this check was not saved in" in result.stderr
    assert (
        "the result of this check was not saved in my-data/imagenet-prep"
        in Page(page.read_text()).text
    )
    assert not layout.verdict_path.exists()


def test_open_shows_it_in_the_browser(layout: Layout, tmp_path: Path) -> None:
    """--open hands the address of the page to the browser; where there is none it says so."""
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(f'#!/bin/sh\necho "$1" > {shown}\n')
    browser.chmod(0o755)
    command("report", layout.data_dir, "--open", BROWSER=f"{browser} %s")
    assert shown.read_text().strip() == layout.report_path.resolve().as_uri()
    nowhere = {"BROWSER": "/not/there %s", "PATH": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    assert "no browser" in command("report", layout.data_dir, "--open", **nowhere).stderr


def test_verify_runs_only_if_it_has_to(layout: Layout) -> None:
    """The verdict kept last is taken if it is of these files and of more than a quick look;
    else verify runs first.
    """
    value = json.loads(layout.verdict_path.read_text())
    value["notes"] = ["the one that was kept"]
    layout.verdict_path.write_text(json.dumps(value))
    assert report(layout, ENGINE).verdict.notes == ("the one that was kept",)
    assert "the one that was kept" in page_of(layout)
    layout.verdict_path.write_text(json.dumps({**value, "depth": "quick"}))
    fresh = report(layout, ENGINE).verdict
    assert (fresh.depth, "the one that was kept" in fresh.notes) == ("full", False)
    layout.verdict_path.write_text(json.dumps(value))
    os.utime(layout.shard_path("train-00000-of-00004"), ns=(1, 1))
    assert "the one that was kept" not in report(layout, ENGINE).verdict.notes
    layout.verdict_path.unlink()
    assert report(layout, ENGINE).verdict.depth == "full"
