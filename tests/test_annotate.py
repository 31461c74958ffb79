"""annotate: the CSV of boxes from archives and folders,
every quirk by its rule, every fault named.
"""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bounded import measure
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from made_sets import flip
from made_tars import member, pack, save
from progress import Bars

from imagenet_prep import ConvertOptions, Layout, PrepError, annotate, convert, verify
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.made_annotations import BAD_QUIRKS, Quirk, boxes_csv
from imagenet_prep.engines.processes import ProcessEngine
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import DataProblemsError, InputError, UsageError
from imagenet_prep.ilsvrc2012.annotation_xml import LARGEST
from imagenet_prep.ilsvrc2012.box_archives import box_files_at
from imagenet_prep.ilsvrc2012.box_search import find_annotations
from imagenet_prep.ilsvrc2012.boxes import BoxesFault, encode_boxes, parse_boxes
from imagenet_prep.ilsvrc2012.facts import ARCHIVES
from imagenet_prep.model import Box, Engine
from imagenet_prep.sources import tar_members
from imagenet_prep.stages import annotate as stage
from imagenet_prep.stages.annotate import BoxesSummary, BoxTotals
from imagenet_prep.tfrecord.framing import iter_records
from imagenet_prep.tfrecord.inception_reader import read_record

WNID = "n01440764"
BOX = "<object><name>{name}</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>50</xmax><ymax>60</ymax></bndbox></object>"
SIZE = "<size><width>100</width><height>100</height></size>"


def xml(name: str = WNID, size: str = SIZE) -> bytes:
    """A sound annotation of one box."""
    return f"<annotation>{size}{BOX.format(name=name)}</annotation>".encode()


LINE = b"%s,0.0100,0.0200,0.5000,0.6000\n"
ONE = ThreadEngine(1)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A DATA_DIR with an empty raw-data."""
    layout = Layout(tmp_path / "data")
    layout.raw_dir.mkdir(parents=True)
    return layout


def write_archive(layout: Layout, content: bytes) -> Path:
    """The annotation archive of train, with content as given."""
    path = layout.archive_path(ARCHIVES["boxes"])
    path.write_bytes(content)
    return path


def train(layout: Layout, boxes: Path | None = None) -> BoxesSummary:
    """The summary of the train boxes."""
    [summary] = annotate(layout, ThreadEngine(1), boxes=boxes).splits
    return summary


def refused(
    layout: Layout,
    boxes: Path | None = None,
    kind: type[PrepError] = InputError,
    engine: Engine = ONE,
) -> PrepError:
    """The error that annotate raises; it leaves no CSV."""
    with pytest.raises(kind) as caught:
        annotate(layout, engine, boxes=boxes)
    assert len(str(caught.value).splitlines()) <= 3
    assert caught.value.exit_code == kind.exit_code
    assert not layout.boxes_csv.exists()
    return caught.value


def unpack(made: MadeSet, folder: Path) -> Path:
    """The annotations of train as a folder of <wnid>/*.xml."""
    for each in made.annotations:
        save(folder / each.wnid / f"{each.name}.xml", each.xml)
    return folder


@pytest.mark.parametrize(
    "engine", [ProcessEngine(1), ProcessEngine(3), ThreadEngine(2)], ids=["1", "3", "threads"]
)
def test_boxes_are_those_that_the_annotations_were_made_from(
    engine: ProcessEngine | ThreadEngine,
    tiny_data_dir: Path,
    made_tiny: MadeSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every quirk by its rule, in batches of any kind:
    CSV and totals are the known ones, bad files are named.
    """
    monkeypatch.setattr(stage, "_BATCH", 7)
    layout = Layout(tiny_data_dir)
    summary = annotate(layout, engine, validation=True)
    boxes, validation_boxes = summary.splits
    assert layout.boxes_csv.read_bytes() == made_tiny.boxes_csv
    assert layout.validation_boxes_csv.read_bytes() == boxes_csv(made_tiny.validation_annotations)
    assert (boxes.totals.files, boxes.totals.boxes) == (
        len(made_tiny.annotations),
        made_tiny.boxes_csv.count(b"\n"),
    )
    assert boxes.totals.other_class + boxes.totals.no_area == sum(
        each.skipped for each in made_tiny.annotations
    )
    assert boxes.totals.no_area == 2
    assert boxes.totals.ended_early == sum(
        each.quirk is Quirk.MINUS_ONE for each in made_tiny.annotations
    )
    assert sorted(Path(problem.subject).name for problem in boxes.problems) == sorted(
        f"{each.name}.xml" for each in made_tiny.annotations if each.quirk in BAD_QUIRKS
    )
    assert (validation_boxes.totals.files, validation_boxes.problems) == (80, ())
    assert len(parse_boxes(layout.boxes_csv.read_bytes())) > 200


def test_second_run_does_nothing(data_dir: Path) -> None:
    """The same input and an unchanged CSV: nothing is read or written,
    and the summary is the same.
    """
    layout = Layout(data_dir)
    first = annotate(layout, ThreadEngine(1), validation=True)
    before = [
        path.stat().st_mtime_ns for path in (layout.boxes_csv, layout.raw_dir, layout.annotate_path)
    ]
    progress = Bars()
    second = annotate(layout, ThreadEngine(1), validation=True, progress=progress)
    assert [
        path.stat().st_mtime_ns for path in (layout.boxes_csv, layout.raw_dir, layout.annotate_path)
    ] == before
    assert progress.labels == []
    for once, again in zip(first.splits, second.splits, strict=True):
        assert (once.up_to_date, again.up_to_date) == (False, True)
        assert (again.totals, again.problems, again.csv_path) == (
            once.totals,
            once.problems,
            once.csv_path,
        )


OTHER_ARCHIVE = gzip.compress(pack([(f"{WNID}/{WNID}_1.xml", xml())]))
CHANGES: dict[str, Callable[[Layout, pytest.MonkeyPatch], object]] = {
    "csv": lambda layout, _: flip(layout.boxes_csv, -2),
    "csv-gone": lambda layout, _: layout.boxes_csv.unlink(),
    "archive": lambda layout, _: write_archive(layout, OTHER_ARCHIVE),
    "state": lambda layout, _: os.truncate(
        layout.annotate_path, layout.annotate_path.stat().st_size - 30
    ),
    "state-form": lambda layout, _: layout.annotate_path.write_text('{"train": ["made_from"]}'),
    "rules": lambda _, patch: patch.setattr(stage, "RULES_VERSION", 99),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_made_again(
    change: str, data_dir: Path, made: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed CSV, archive, rule or state file: the CSV is made again, from the archive."""
    layout = Layout(data_dir)
    train(layout)
    CHANGES[change](layout, monkeypatch)
    assert not train(layout).up_to_date
    assert layout.boxes_csv.read_bytes() == (
        LINE % b"n01440764_1.JPEG" if change == "archive" else made.boxes_csv
    )
    assert train(layout).up_to_date


def test_folders_give_the_same_boxes(data_dir: Path, made: MadeSet, tmp_path: Path) -> None:
    """An unpacked folder and a plain tar give the CSV that the archive gives;
    a file more in the folder is seen.
    """
    layout = Layout(data_dir)
    folder = unpack(made, tmp_path / "unpacked")
    (folder / "README.txt").write_text("not an annotation")
    assert train(layout, folder).totals == train(layout).totals
    assert train(layout, folder).source == folder
    assert layout.boxes_csv.read_bytes() == made.boxes_csv
    assert train(layout, folder).up_to_date
    (folder / WNID / f"{WNID}_77777.xml").write_bytes(xml())
    assert not train(layout, folder).up_to_date
    assert LINE % b"n01440764_77777.JPEG" in layout.boxes_csv.read_bytes()
    bare = Layout(tmp_path / "bare")
    tar = tmp_path / "boxes.tar"
    tar.write_bytes(gzip.decompress(made.archives["boxes"].read_bytes()))
    train(bare, tar)
    assert bare.boxes_csv.read_bytes() == made.boxes_csv


FIRST_NAMES = ("n01443537", " n01443537", "n01443537\n", "n01443537<b/>", "<b/>n01443537", "")
DEERHOUND = "n02092002"


@pytest.mark.parametrize(
    ("files", "totals", "kept"),
    [
        (
            {
                f"{DEERHOUND}/{DEERHOUND}_1.xml": xml("Scottish_deerhound"),
                f"{DEERHOUND}/{DEERHOUND}_2.xml": xml(DEERHOUND),
                f"{DEERHOUND}/{DEERHOUND}_3.xml": xml(WNID),
                f"{DEERHOUND}/{DEERHOUND}_4.xml": xml("n00007846"),
                "n00007846/n00007846_5.xml": xml("n00007846"),
            },
            BoxTotals(files=5, images=3, boxes=3, other_class=1, other_files=1),
            [f"{DEERHOUND}_{number}" for number in (1, 2, 4)],
        ),
        (
            {f"{WNID}/{WNID}_{number}.xml": xml(name) for number, name in enumerate(FIRST_NAMES)},
            BoxTotals(files=6, images=4, boxes=4, other_class=2),
            [f"{WNID}_{number}" for number in (1, 2, 4, 5)],
        ),
    ],
    ids=["other classes", "blanks"],
)
def test_class_rules(
    layout: Layout, files: dict[str, bytes], totals: BoxTotals, kept: list[str]
) -> None:
    """Boxes named after another of the 1000 classes go; those named with words stay; folders of
    other classes go.

    Blanks round another class's name make it no class's name, as in 2016; the same name without
    them leaves out.
    """
    write_archive(layout, gzip.compress(pack(files)))
    assert train(layout).totals == totals
    assert layout.boxes_csv.read_bytes() == b"".join(
        LINE % f"{image}.JPEG".encode() for image in kept
    )


# the image that a file at that place gives a box in 2016 and here, or None and why it is named here
PLACES = {
    f"{WNID}/{WNID}_1.xml": (f"{WNID}_1", ""),
    f"{WNID}/n01443537_5.xml": ("n01443537_5", ""),
    f"{WNID}/n00007846_5.xml": ("n00007846_5", ""),
    f"{WNID}/foo.bar.xml": ("foo.bar", ""),
    f"{WNID}/two words.xml": ("two words", ""),
    f"{WNID}/\u00e9.xml": ("\u00e9", ""),
    f"{WNID}/.{WNID}_2.xml": (None, "or a dot at its start"),
    f"{WNID}/a,b.xml": (
        None,
        "commas",
    ),  # in 2016 a line of six fields, at which the next script stopped
    f"{WNID}/two\nlines.xml": (None, "control characters"),
    f"{WNID}/escape\x1b[1m.xml": (None, "control characters"),
    f"{WNID}/\udce9.xml": (None, "UTF-8"),
    f"{WNID}_3.xml": (None, "in the folder of a class"),
    f".{WNID}/{WNID}_6.xml": (None, "in the folder of a class"),
    f"other/{WNID}_7.xml": (None, "in the folder of a class"),
}


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_places_and_names_as_in_2016(form: str, layout: Layout, tmp_path: Path) -> None:
    """Whatever the name, a file in a class's folder gives boxes, as in 2016;
    what can't be in the CSV is named.
    """
    deeper = f"{WNID}/deeper/{WNID}_8.xml"
    if form == "archive":
        write_archive(layout, gzip.compress(pack([(name, xml()) for name in (*PLACES, deeper)])))
        summary = train(layout)
    else:
        for name in (*PLACES, deeper):
            save(tmp_path / "in" / name, xml())
        summary = train(layout, tmp_path / "in")
    images = [image for image, _ in PLACES.values() if image]
    assert layout.boxes_csv.read_bytes() == b"".join(
        sorted(LINE % f"{image}.JPEG".encode() for image in images)
    )
    assert set(parse_boxes(layout.boxes_csv.read_bytes())) == {f"{image}.JPEG" for image in images}
    found = {problem.subject.rpartition("/")[2]: problem.detail for problem in summary.problems}
    named = {
        name.rpartition("/")[2].replace("\udce9", "\\xe9"): why
        for name, (image, why) in PLACES.items()
        if not image
    }
    if form == "archive":  # in a folder of files it isn't looked at: only <folder>/<name>.xml is
        named[f"{WNID}_8.xml"] = "in the folder of a class"
    assert found.keys() == named.keys()
    assert all(why in found[name] for name, why in named.items())
    assert (
        train(layout, None if form == "archive" else tmp_path / "in").problems == summary.problems
    )


def test_a_box_of_equal_corners_comes_to_the_record(
    tiny_data_dir: Path, made_tiny: MadeSet, tmp_path: Path
) -> None:
    """A box of a huge image whose corners round to the same number is in CSV and record;
    verify finds it sound.
    """
    layout = Layout(tiny_data_dir)
    image = made_tiny.of("train")[0]
    corners = (99990, 5, 99991, 5000), (0, 99999, 100000, 100000), (99999, 0, 100001, 100000)
    boxes = "".join(
        f"<xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax>"
        for a, b, c, d in corners
    )
    content = f"<a><width>100000</width><height>100000</height>{boxes}</a>"
    save(tmp_path / "in" / image.wnid / image.filename.replace(".JPEG", ".xml"), content)
    train(layout, tmp_path / "in")
    lines = (
        "0.0000,1.0000,1.0000,1.0000",
        "0.9999,0.0001,0.9999,0.0500",
        "1.0000,0.0000,1.0000,1.0000",
    )
    assert layout.boxes_csv.read_text() == "".join(f"{image.filename},{line}\n" for line in lines)
    convert(
        layout,
        ThreadEngine(1),
        ConvertOptions(train_shards=1, validation_shards=1, allow_incomplete=True),
    )
    shard = memoryview((layout.data_dir / "train-00000-of-00001").read_bytes())
    records = {
        found.filename: found for found in (read_record(each.data) for each in iter_records(shard))
    }
    got = [
        ",".join(f"{v:.4f}" for v in (b.xmin, b.ymin, b.xmax, b.ymax))
        for b in records[image.filename].boxes
    ]
    assert got == list(lines)
    verdict = verify(layout, ThreadEngine(1))
    assert (verdict.problems, verdict.totals[0].boxes) == ((), 3)


BAD = {
    "doctype": (b"<!DOCTYPE a [<!ENTITY x 'y'>]>" + xml(), "DOCTYPE"),
    "deep": (b"<a>" * 100 + b"</a>" * 100, "nested in each other"),
    "large": (xml() + b" " * 3 * LARGEST, "larger than"),
    "no-size": (xml(size=""), "<width> is missing"),
    "size-0": (xml(size=SIZE.replace("100", "0")), "> is 0: expected 1 or more"),
    "text": (xml(size=SIZE.replace("100", "hundred")), "'hundred', not an integer"),
    "encoding": (b"<?xml version='1.0' encoding='utf-16'?>" + xml(), "can't be read as XML"),
    "cut": (xml()[:-5], "can't be read as XML"),
    "empty": (b"", "can't be read as XML"),
}


def test_bad_files_are_problems_and_the_run_goes_on(layout: Layout) -> None:
    """Each bad file is a Problem with its name and reason; every other file's boxes are there."""
    files: list[tuple[str, bytes]] = []
    for number, (content, _) in enumerate(BAD.values()):
        files += [
            (f"{WNID}/{WNID}_{2 * number}.xml", content),
            (f"{WNID}/{WNID}_{2 * number + 1}.xml", xml()),
        ]
    write_archive(layout, gzip.compress(pack(files)))
    summary = train(layout)
    found = {problem.subject: problem.detail for problem in summary.problems}
    assert len(found) == len(BAD)
    for (name, _), (_, why) in zip(files[::2], BAD.values(), strict=True):
        assert why in found[name]
    assert summary.totals == BoxTotals(files=2 * len(BAD), images=len(BAD), boxes=len(BAD))
    assert summary.totals.without == len(BAD)
    assert layout.boxes_csv.read_bytes().count(b"\n") == len(BAD)


def test_a_large_file_in_a_folder_is_a_problem(tmp_path: Path) -> None:
    """Of a file far too large only the beginning is read, and it is a Problem."""
    (tmp_path / "in" / WNID).mkdir(parents=True)
    with (tmp_path / "in" / WNID / f"{WNID}_1.xml").open("wb") as file:
        file.truncate(100_000_000)
    summary = train(Layout(tmp_path / "data"), tmp_path / "in")
    (problem,) = summary.problems
    assert f"larger than {LARGEST:,} bytes" in problem.detail


def test_a_damaged_archive_is_exit_4(data_dir: Path, made: MadeSet) -> None:
    """An archive cut anywhere, or with one changed byte,
    is named with an offset, and no CSV is written.
    """
    layout = Layout(data_dir)
    whole = made.archives["boxes"].read_bytes()
    for cut in [*range(0, len(whole), len(whole) // 12), len(whole) - 8, len(whole) - 1]:
        path = write_archive(layout, whole[:cut])
        error = refused(layout)
        assert f"{path}" in error.what
        assert "byte" in error.what
    for position in range(20, len(whole), len(whole) // 12):
        write_archive(
            layout, whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :]
        )
        refused(layout)
    write_archive(
        layout, whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    )  # the CRC, behind the last member
    assert "CRC" in refused(layout).detail


def test_missing_input_is_said(layout: Layout, tmp_path: Path) -> None:
    """No archive, no such path, and an input without annotations each say
    what to do or what was expected.
    """
    error = refused(layout)
    assert error.hint == f"imagenet-prep download {layout.data_dir} --only boxes"
    assert find_annotations(layout, "train") is None
    refused(layout, tmp_path / "nowhere", UsageError)
    assert "no annotations" in refused(layout, tmp_path).what


def test_an_annotation_in_no_class_folder_needs_another_name(
    layout: Layout, tmp_path: Path
) -> None:
    """It may be good: only one that can't be read requires no action."""
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / f"{WNID}_1.xml").write_bytes(xml())
    (flat / WNID).mkdir()
    (flat / WNID / f"{WNID}_2.xml").write_bytes(b"no XML")
    problems = {each.subject: each.remedy for each in train(layout, flat).problems}
    assert problems.keys() == {f"flat/{WNID}_1.xml", f"{WNID}/{WNID}_2.xml"}
    renaming = "to get its boxes, move it into the folder of its class (unpack an archive first, and pack it again), and run annotate again"
    assert problems[f"flat/{WNID}_1.xml"] == renaming
    assert problems[f"{WNID}/{WNID}_2.xml"].startswith("nothing is required")


def test_the_example_of_an_annotation_is_of_its_split(layout: Layout) -> None:
    """Annotations of validation are in no class folder."""
    write_archive(layout, gzip.compress(pack(FILES)))
    path = layout.archive_path(ARCHIVES["validation-boxes"])
    path.write_bytes(gzip.compress(pack([])))
    with pytest.raises(
        InputError, match=r"holds no annotations: no file ends with \.xml"
    ) as caught:
        annotate(layout, ThreadEngine(1), validation=True)
    assert (
        caught.value.detail
        == "expected XML files of Pascal VOC's form, such as ILSVRC2012_val_00000001.xml"
    )


def make_link(path: Path) -> None:
    """A link to nothing."""
    path.symlink_to("nowhere")


NO_ANNOTATIONS: dict[str, tuple[Callable[[Path], object], str, int]] = {
    "nothing": (lambda path: None, "does not exist", 2),
    "a broken link": (make_link, "is a broken link", 2),
    "a pipe": (os.mkfifo, "is neither a file nor a folder", 2),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is neither a file nor a folder", 2),
    "a link to itself": (lambda path: path.symlink_to(path), "can't be read", 4),
}


@pytest.mark.parametrize("case", NO_ANNOTATIONS)
def test_boxes_that_are_neither_a_file_nor_a_folder_are_named_as_they_are(
    case: str, tmp_path: Path
) -> None:
    """Only a path with nothing there is said not to exist; none is waited for."""
    make_path, finding, status = NO_ANNOTATIONS[case]
    boxes = tmp_path / "boxes"
    make_path(boxes)
    ran = measure(tmp_path, "annotate", tmp_path / "data", "--boxes", boxes)
    assert ran.status == status, ran.err
    assert f"error: {boxes} {finding}\n" in ran.err


@pytest.mark.parametrize(
    ("make_path", "finding"),
    [
        (os.mkfifo, "a pipe, a socket or a device"),
        (Path.mkdir, "a folder"),
        (make_link, "a broken link"),
    ],
    ids=["pipe", "folder", "link"],
)
def test_what_is_no_file_in_place_of_the_archive_is_named(
    make_path: Callable[[Path], object], finding: str, layout: Layout
) -> None:
    """The archive is not said to be missing, and the command that helps moves it away."""
    archive = layout.archive_path(ARCHIVES["boxes"])
    make_path(archive)
    error = refused(layout)
    assert error.what == f"{archive} is {finding}"
    words, _, _ = error.hint.partition("    (")
    subprocess.run(["sh", "-c", words], check=True)
    assert refused(layout).hint == f"imagenet-prep download {layout.data_dir} --only boxes"


def test_an_archive_in_data_dir_itself_is_moved_and_not_renamed(layout: Layout) -> None:
    """The message says which folder is expected, and its command puts the archive there."""
    archive = layout.data_dir / ARCHIVES["boxes"].filename
    archive.write_bytes(gzip.compress(pack(FILES)))
    error = refused(layout)
    assert error.what == f"{archive} is not in the folder of raw data"
    words, _, _ = error.hint.partition("    (")
    subprocess.run(["sh", "-c", words], check=True)
    assert train(layout).totals.files == len(FILES)


FILES = [(f"{WNID}/{WNID}_{number}.xml", xml()) for number in range(1, 4)]
CSV = b"".join(LINE % f"{WNID}_{number}.JPEG".encode() for number in range(1, 4))


def test_two_annotations_of_one_image_are_both_named(tmp_path: Path) -> None:
    """A file in a folder, and one in its subfolder of the same name."""
    folder = tmp_path / "ann"
    twins = folder / "ann/x.xml", folder / "x.xml"
    for path in twins:
        save(path, xml())
    with pytest.raises(InputError) as caught:
        list(box_files_at(folder).files(Bars()))
    assert caught.value.what == f"{twins[0]} and {twins[1]} are of the same image"
    assert caught.value.hint == "remove one of the two files"


# hostile archives ---------------------------------------------------------------------------------


TAR = pack(FILES)
BOMB = bytes(9_000_000)
HOSTILE_TARS = {
    "checksum": (TAR[:1024] + b"\xff" + TAR[1025:], "is damaged at byte 1,024 of its tar"),
    "symbolic link": (
        pack([FILES[0], (member(FILES[1][0], tarfile.SYMTYPE, "/etc/passwd"), b"")]),
        "can't be read at byte 1,024 of its tar\n'n01440764/n01440764_2.xml' is a symbolic link",
    ),
    "a file twice": (pack(FILES[:1] * 2), f"holds two annotations named {WNID}/{WNID}_1.xml"),
    "no annotations": (pack([]), "no annotations"),
    "a web page": (b"<html>" * 99, "is not a tar, or is damaged at byte 0"),
    "an inflated member": (pack([FILES[0], (FILES[1][0], BOMB)]), "beyond the limit of"),
    "an inflated end": (TAR + BOMB, "the tar ends here, but the file goes on"),
    "two tars joined": (TAR + pack(FILES[:1]), "the tar ends here, but the file goes on"),
}
"""One of each kind of fault: ``test_tar`` has all of them."""


@pytest.mark.parametrize("case", HOSTILE_TARS)
def test_a_hostile_tar_is_exit_4(
    case: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tar that can't be trusted, or inflates without end, is refused as a whole;
    no boxes are written.
    """
    monkeypatch.setattr(tar_members, "INFLATION_FLOOR", 2_000_000)
    content, said = HOSTILE_TARS[case]
    path = write_archive(layout, gzip.compress(content, 9))
    error = refused(layout)
    assert f"{path}" in error.what
    assert said in str(error)
    assert not layout.annotate_path.exists()


@pytest.mark.parametrize("name", ["../../../{}", "/tmp/{}"])
def test_no_name_leads_out_of_data_dir(name: str, layout: Layout, tmp_path: Path) -> None:
    """Nothing is ever written under a member's name: the same CSV comes out, and no other file."""
    write_archive(
        layout, gzip.compress(pack([(name.format(each), content) for each, content in FILES]))
    )
    before = {path for path in existing(tmp_path, "**/*") if path.is_file()}
    assert train(layout).problems == ()
    assert layout.boxes_csv.read_bytes() == CSV
    made = {path for path in existing(tmp_path, "**/*") if path.is_file()} - before
    assert {path.relative_to(layout.data_dir).as_posix() for path in made} <= {
        "raw-data/imagenet_2012_bounding_boxes.csv",
        "imagenet-prep/annotate.json",
        "imagenet-prep/lock",
    }


# hostile folders ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is a pipe, a socket or a device"),
        (lambda path: path.symlink_to(path), "can't be read"),
        (make_link, "is a broken link"),
    ],
    ids=["pipe", "link to itself", "broken link"],
)
def test_what_is_no_file_in_a_folder_is_exit_4(
    make: Callable[[Path], Any], said: str, tmp_path: Path
) -> None:
    """A pipe (which nobody may ever write to) or a broken link under an .xml name is refused."""
    source = tmp_path / "in" / WNID
    save(source / f"{WNID}_1.xml", xml())
    make(source / f"{WNID}_2.xml")
    error = refused(Layout(tmp_path / "data"), tmp_path / "in")
    assert error.what == f"{source / WNID}_2.xml {said}"


# the disk -----------------------------------------------------------------------------------------


# others at the same time --------------------------------------------------------------------------


def test_an_input_that_changes_while_it_is_read_is_read_again(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made from an input that changed meanwhile is never taken
    for what the input says now.
    """
    source, read_all = tmp_path / "in", stage._read_all
    source.write_bytes(pack(FILES[:2]))

    def read_then_change(*given: Any) -> Any:
        result = read_all(*given)
        source.write_bytes(pack(FILES))
        return result

    monkeypatch.setattr(stage, "_read_all", read_then_change)
    train(layout, source)
    monkeypatch.undo()
    assert not train(layout, source).up_to_date
    assert layout.boxes_csv.read_bytes() == CSV


# workers ------------------------------------------------------------------------------------------


def test_files_that_kill_every_worker_are_named(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three deaths on the same files: exit status 3, with archive and file; no CSV."""
    fatal, parse = xml(f"{WNID} fatal"), stage.parse_annotation

    def die_or_parse(content: bytes) -> Any:
        return os.kill(os.getpid(), signal.SIGKILL) if content == fatal else parse(content)

    monkeypatch.setattr(stage, "parse_annotation", die_or_parse)
    path = write_archive(layout, gzip.compress(pack([FILES[0], (FILES[1][0], fatal), FILES[2]])))
    for batch, where in (
        (1, FILES[1][0]),
        (2, f"{FILES[0][0]} or the file after it"),
        (3, f"{FILES[0][0]} or one of the 2 files after it"),
    ):
        monkeypatch.setattr(stage, "_BATCH", batch)
        error = refused(layout, kind=DataProblemsError, engine=ProcessEngine(2))
        assert error.what.startswith(f"{path}, {where}: every worker process")


places = st.lists(st.integers(0, 10_000), min_size=2, max_size=2, unique=True).map(sorted)
boxes = st.builds(
    lambda x, y: Box(x[0] / 10_000, y[0] / 10_000, x[1] / 10_000, y[1] / 10_000), places, places
)
names = st.from_regex(r"[a-zA-Z0-9_. é]{1,20}", fullmatch=True)


@given(st.lists(st.tuples(names, boxes), max_size=20))
def test_round_trip(rows: list[tuple[str, Box]]) -> None:
    """Boxes written are read back, exactly, under their names."""
    found = parse_boxes(encode_boxes(rows))
    assert set(found) == {name for name, _ in rows}
    for name, given_boxes in found.items():
        assert sorted(map(repr, given_boxes)) == sorted(
            repr(box) for each, box in rows if each == name
        )


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"",
            b"name",
            b"a,0,0,1",
            b"a,0,0,1,1,1",
            b",0,0,1,1",
            b"a,x,0,1,1",
            b"\xff,0,0,1,1",
            b"a,0,0,,1",
        ),
        *(
            b"a,0.6,0,0.5,1",
            b"a,0,0.6,1,0.5",
            b"a,-0.1,0,1,1",
            b"a,0,0,1,1.1",
            b"a,nan,0,1,1",
            b"a,0,0,inf,1",
        ),
    ],
)
def test_a_broken_line_is_named(line: bytes) -> None:
    """A line of another form, or a box outside of the image or back to front,
    is refused by its number.
    """
    with pytest.raises(BoxesFault) as caught:
        parse_boxes(b"a,0,0,1,1\n" + line + b"\nb,0,0,1,1\n")
    assert caught.value.line == 2
    assert str(caught.value).startswith("line 2: expected ")


def test_a_box_without_a_name_is_not_called_reversed() -> None:
    """Its corners are right."""
    with pytest.raises(BoxesFault, match="expected NAME,XMIN"):
        parse_boxes(b",0,0,1,1\n")


def test_a_cut_file_is_refused() -> None:
    """A last line without its end is refused, even where it would still read as a box."""
    with pytest.raises(BoxesFault, match="cut"):
        parse_boxes(b"a,0,0,1,1\nb,0.0000,0.0000,0.5000,0.99")
    assert parse_boxes(b"") == {}
