"""verify --raw: 13 kinds of sound copies, what is wrong with others,
and that nothing in a copy changes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from copies_of_imagenet import hugging_face_rows, write_hugging_face, write_parquet
from existing import existing
from made_devkit import add_devkit
from made_sets import ENGINE, FLOWERS, make_flowers
from made_tars import in_memory, pack, save, unpack
from raw_copies import (
    COPIES,
    TRAIN_TAR,
    make_whole,
    replace_file,
    state_of,
    use_facts,
    write_folders,
    write_official,
)
from running import command, threads_for_processes

from imagenet_prep import ConvertOptions, Layout, annotate, convert, make_engine
from imagenet_prep.checks.raw_verdict import RawVerdict
from imagenet_prep.checks.verdict import Depth
from imagenet_prep.cli import cli
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.fetch.target import Target
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.images import pixels
from imagenet_prep.model import Silent
from imagenet_prep.registry import read_dataset
from imagenet_prep.sources import obstacles
from imagenet_prep.stages.verify_raw import verify_raw

pytestmark = pytest.mark.once

TENCH, BRAMBLING = "n01440764", "n01530575"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """200 train and 100 validation images in 100 classes. Read only."""
    return make_whole(tmp_path_factory.mktemp("whole"))


@pytest.fixture(autouse=True)
def _its_facts(whole: MadeSet, monkeypatch: pytest.MonkeyPatch) -> None:
    use_facts(monkeypatch, whole)


@pytest.fixture(scope="module")
def folders(whole: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound copy in class folders. Read only."""
    folder = tmp_path_factory.mktemp("folders")
    write_folders(folder, whole)
    return folder


@pytest.fixture
def copy(folders: Path, tmp_path: Path) -> Path:
    """The test's own copy in class folders: links, so files are replaced and never written to."""
    return Path(shutil.copytree(folders, tmp_path / "copy", copy_function=os.link))


def look(folder: Path, depth: Depth | None = None, **options: bool) -> RawVerdict:
    """The verdict of a copy."""
    return verify_raw(
        Layout(folder, folder), ENGINE, options=ConvertOptions(**options), depth=depth
    )


def images_of(folder: Path, wnid: str = TENCH, split: str = "train") -> list[Path]:
    """The images of a class."""
    return sorted((folder / split / wnid).iterdir())


# sound copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COPIES)
def test_a_sound_copy_of_every_kind(kind: str, whole: MadeSet, tmp_path: Path) -> None:
    """All images are counted and sound; only archives with the published MD5 are official;
    nothing changes.
    """
    folder = tmp_path / "copy"
    COPIES[kind](folder, whole)
    before = state_of(tmp_path)
    verdict = look(folder)
    assert verdict.problems == ()
    assert [(total.split, total.images, total.expected) for total in verdict.totals] == [
        ("train", 200, 200),
        ("validation", 100, 100),
    ]
    assert verdict.totals[0].classes == 100
    assert verdict.level == ("official" if "archives" in kind else "complete")
    assert verdict.counts["odd"] == 3
    assert "damaged" not in verdict.counts
    assert verdict.level == "official" or "so are their sizes, packed as" in verdict.reason
    assert state_of(tmp_path) == before


@pytest.mark.parametrize(
    ("kind", "depth", "level"),
    [
        ("official archives", "quick", "as listed"),
        ("official archives", "full", "official"),
        ("official archives", "decode", "official"),
        ("torchvision's folders", "quick", "as listed"),
        ("torchvision's folders", "full", "as listed"),
        ("torchvision's folders", "decode", "complete"),
    ],
)
def test_a_depth_claims_only_what_it_read(
    kind: str, depth: Depth, level: str, whole: MadeSet, tmp_path: Path
) -> None:
    """A quick check is of names and numbers; without a digest,
    only decoding shows that images are sound.
    """
    COPIES[kind](tmp_path, whole)
    verdict = look(tmp_path, depth)
    assert (verdict.level, verdict.problems, verdict.depth) == (level, (), depth)


def test_a_quick_check_looks_at_a_few_images(copy: Path) -> None:
    """It reads the formats of a few images: more PNGs than ILSVRC2012 has
    show that somebody encoded them again.
    """
    image = pixels.decode_rgb(photographs.tiny(1))
    png = in_memory(lambda buffer: image.save(buffer, "PNG"))
    for path in list((copy / "val").rglob("*.JPEG")):
        replace_file(path, png)
    verdict = look(copy, "quick")
    assert verdict.level == "damaged"
    assert [problem.kind.value for problem in verdict.problems] == ["wrong-content"]
    assert "they may have been encoded again: 8 PNG images" in verdict.problems[0].detail


# wrong copies -------------------------------------------------------------------------------------


def _lose_half_a_class(copy: Path, whole: MadeSet) -> None:
    images_of(copy)[0].unlink()


def _cut_an_image(copy: Path, whole: MadeSet) -> None:
    path = images_of(copy)[0]
    replace_file(path, path.read_bytes()[:-100])


def _flip_a_bit(copy: Path, whole: MadeSet) -> None:
    path = images_of(copy)[0]
    content = bytearray(path.read_bytes())
    start = content.index(b"\xff\xda") + 30
    content[start : start + 40] = bytes(40)
    replace_file(path, bytes(content))


def _rename_a_class(copy: Path, whole: MadeSet) -> None:
    (copy / "train" / TENCH).rename(copy / "train" / "tench")


def _encode_again(copy: Path, whole: MadeSet) -> None:
    for path in images_of(copy):
        replace_file(path, pixels.encode(pixels.decode_rgb(path.read_bytes()), 90))
    png = next(image for image in whole.of("train") if image.kind.value == "png")
    path = copy / "train" / png.wnid / png.filename
    replace_file(path, pixels.encode(pixels.decode_rgb(path.read_bytes()), 90))


def _make_pngs(copy: Path, whole: MadeSet) -> None:
    for path in images_of(copy):
        image = pixels.decode_rgb(path.read_bytes())
        replace_file(path, in_memory(lambda buffer, image=image: image.save(buffer, "PNG")))


def _rename_pngs(copy: Path, whole: MadeSet) -> None:
    for path in images_of(copy):
        path.rename(path.with_suffix(".png"))


def _copy_an_image(copy: Path, whole: MadeSet) -> None:
    first, second = images_of(copy)[:2]
    content = first.read_bytes()
    comment = b"\xff\xfe" + (20_002).to_bytes(2, "big") + bytes(20_000)
    for path in (first, second):
        replace_file(path, content[:2] + comment + content[2:])


def _add_an_image(copy: Path, whole: MadeSet) -> None:
    shutil.copy(images_of(copy)[0], copy / "train" / TENCH / f"{TENCH}_99999.JPEG")


def _empty_a_class(copy: Path, whole: MadeSet) -> None:
    for path in images_of(copy):
        path.unlink()


def _swap_classes(copy: Path, whole: MadeSet) -> None:
    train = copy / "train"
    for old, new in ((TENCH, "x"), (BRAMBLING, TENCH), ("x", BRAMBLING)):
        (train / old).rename(train / new)


def _order_validation_otherwise(copy: Path, whole: MadeSet) -> None:
    names = [image.filename for image in whole.of("validation")]
    wnids = [image.wnid for image in whole.of("validation")]
    shutil.rmtree(copy / "val")
    for name, wnid in zip(names, [*wnids[1:], wnids[0]], strict=True):
        save(copy / "val" / wnid / name, photographs.tiny(1))


def _add_foreign_files(copy: Path, whole: MadeSet) -> None:
    save(copy / "train" / TENCH / "Thumbs.db", b"x")
    save(copy / "train" / "README", b"x")
    save(copy / "val" / "more" / "a.txt", b"x")


def _add_a_pipe(copy: Path, whole: MadeSet) -> None:
    os.mkfifo(copy / "train" / TENCH / f"{TENCH}_99999.JPEG")


def _twice(copy: Path, whole: MadeSet) -> None:
    name = next(image for image in whole.of("validation"))
    shutil.copy(copy / "val" / name.wnid / name.filename, copy / "val" / name.filename)


def _without_validation(copy: Path, whole: MadeSet) -> None:
    shutil.rmtree(copy / "val")


def _without_train(copy: Path, whole: MadeSet) -> None:
    shutil.rmtree(copy / "train")


def _tars(copy: Path, whole: MadeSet) -> Path:
    for split in ("train", "val"):
        shutil.rmtree(copy / split)
    for split in facts.SPLITS:
        shutil.copy2(whole.archives[split], copy)
    return copy / TRAIN_TAR


def _cut_the_tar(copy: Path, whole: MadeSet) -> None:
    path = _tars(copy, whole)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _pack_again(copy: Path, whole: MadeSet) -> None:
    path = _tars(copy, whole)
    content = unpack(path)
    content[f"{TENCH}.tar"] = pack(
        [(name, data) for name, data in reversed(unpack(content[f"{TENCH}.tar"]).items())]
    )
    path.write_bytes(pack(content))


def _foreign_member(copy: Path, whole: MadeSet) -> None:
    path = _tars(copy, whole)
    with tarfile.open(path, "a") as tar:
        tar.addfile(tarfile.TarInfo("readme.txt"))


def _hub(copy: Path, whole: MadeSet) -> None:
    for split in ("train", "val"):
        shutil.rmtree(copy / split)
    write_hugging_face(copy / "data", whole)


def _lose_a_parquet_file(copy: Path, whole: MadeSet) -> None:
    _hub(copy, whole)
    (copy / "data" / "validation-00001-of-00003.parquet").unlink()


def _shift_labels(copy: Path, whole: MadeSet) -> None:
    _hub(copy, whole)
    rows = hugging_face_rows(whole, "validation")
    for path in existing(copy / "data", "validation-*"):
        path.unlink()
    shifted = [{**row, "label": row["label"] + 1} for row in rows]
    write_parquet(copy / "data" / "validation-00000-of-00001.parquet", shifted)


MANY = [("several", 0)]
"""Problems whose number depends on the images."""

Change = Callable[[Path, MadeSet], object]

WRONG: dict[str, tuple[Change, str, list[tuple[str, int]], dict[str, int], str]] = {
    "half a class lost": (
        _lose_half_a_class,
        "incomplete",
        [("missing-image", 1), ("missing-image", 1)],
        {},
        f"train/{TENCH}: expected at least 2 images, found 1",
    ),
    "an image cut": (_cut_an_image, "damaged", [("bad-image", 1)], {"damaged": 1}, f"{TENCH}_"),
    "coded data lost": (_flip_a_bit, "damaged", [("bad-image", 1)], {"damaged": 1}, f"{TENCH}_"),
    "a class folder renamed": (
        _rename_a_class,
        "incomplete",
        [("missing-image", 2), ("missing-class", 2)],
        {"skipped": 2},
        f"train/{TENCH}: expected at least 2 images, found none",
    ),
    "images encoded again": (
        _encode_again,
        "as listed",
        [],
        {"odd": 2},
        "2 of 3 PNG and CMYK images",
    ),
    "images as PNG": (
        _make_pngs,
        "damaged",
        [("wrong-content", 1)],
        {},
        "they may have been encoded again",
    ),
    "images named .png": (
        _rename_pngs,
        "incomplete",
        [("missing-image", 2), ("missing-class", 2)],
        {"skipped": 2},
        f"train/{TENCH}: expected",
    ),
    "an image under two names": (
        _copy_an_image,
        "as listed",
        [],
        {},
        "1 pair of images has the same bytes",
    ),
    "an image too many": (
        _add_an_image,
        "damaged",
        [("wrong-count", 1)],
        {},
        "train: expected 200 images, found 201",
    ),
    "an empty class": (
        _empty_a_class,
        "incomplete",
        [("missing-image", 2), ("missing-class", 2)],
        {},
        f"train/{TENCH}: expected at least 2 images, found none",
    ),
    "swapped class folders": (
        _swap_classes,
        "damaged",
        [("wrong-label", 2), ("wrong-label", 2)],
        {},
        f"2 images of {TENCH} are under {BRAMBLING}",
    ),
    "foreign files": (_add_foreign_files, "complete", [], {"skipped": 3}, "files of other names: "),
    "a pipe": (_add_a_pipe, "damaged", [("unreadable", 1)], {}, "is not a plain file"),
    "an image twice": (_twice, "damaged", [("duplicate", 1)], {}, "twice"),
    "validation missing": (
        _without_validation,
        "incomplete",
        [("missing-image", 100)],
        {},
        "validation: expected 100 images, found none",
    ),
    "train missing": (
        _without_train,
        "incomplete",
        [("missing-image", 200)],
        {},
        "train: expected 200 images",
    ),
    "packed again": (_pack_again, "as listed", [], {}, f"{TRAIN_TAR} is not the published archive"),
    "a tar cut": (_cut_the_tar, "damaged", MANY, {}, f"{TRAIN_TAR} is damaged at byte"),
    "a foreign member": (_foreign_member, "damaged", [("stray-file", 1)], {}, "readme.txt"),
    "a parquet file lost": (
        _lose_a_parquet_file,
        "incomplete",
        MANY,
        {},
        "validation-00001-of-00003.parquet",
    ),
    "labels moved by one": (
        _shift_labels,
        "damaged",
        [("wrong-label", 100)],
        {},
        "100 of 100 images",
    ),
    "validation in another order": (
        _order_validation_otherwise,
        "damaged",
        [("wrong-label", 97)],  # three have a neighbour of their class
        {},
        "as if by other",
    ),
}
"""What is done to a copy, then the verdict, the problems as (kind, count),
counts beside the odd images, and words.
"""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_copy(
    what: str, copy: Path, whole: MadeSet, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every fault is named and counted in one run, with the exit status of verify;
    nothing in the copy changes.
    """
    change, level, problems, counts, words = WRONG[what]
    change(copy, whole)
    before = state_of(copy)
    status, verdict = verified(copy, copy.parent / "verdict.json")
    assert verdict["verdict"] == level
    assert status == (3 if level in ("damaged", "incomplete") else 0)
    counted = [(problem["kind"], problem["count"]) for problem in verdict["problems"]]
    assert counted == problems or (problems == MANY and len(counted) > 1)
    assert {**verdict["counts"], **counts} == verdict["counts"]
    found = [
        f"{problem['kind']}: {problem['subject']}: {problem['detail']}"
        for problem in verdict["problems"]
    ]
    assert words in " | ".join([verdict["reason"], *verdict["notes"], *found])
    printed = capfd.readouterr().out
    assert f"\n{level}: " in printed
    assert len(printed.splitlines()) < 100
    assert state_of(copy) == before


def verified(copy: Path, target: Path, *words: object) -> tuple[int, dict[str, Any]]:
    """The exit status and the JSON of a verify of a copy."""
    call = ["verify", "--raw", copy, "--json", target, "--workers", "2", "-q", *words]
    with threads_for_processes():
        status = cli.main([*map(str, call)], standalone_mode=False)
    return status, json.loads(target.read_bytes())


def test_an_image_under_another_class_is_not_named_as_missing(copy: Path, whole: MadeSet) -> None:
    """Of a validation class with an image elsewhere and another one lost,
    only the lost image is missing.
    """
    counts = Counter(image.wnid for image in whole.of("validation"))
    [(wnid, _)] = counts.most_common(1)
    moved, lost = images_of(copy, wnid, "val")[:2]
    other = next(folder for folder in existing(copy / "val", "*") if folder.name != wnid)
    moved.rename(other / moved.name)
    lost.unlink()
    problems = {problem.kind.value: problem for problem in look(copy, "quick").problems}
    assert moved.name in problems["wrong-label"].detail
    missing = next(problem for kind, problem in problems.items() if kind.startswith("missing"))
    assert lost.name in missing.detail
    assert moved.name not in missing.detail


def test_images_beyond_those_kept_are_not_called_missing(
    copy: Path, whole: MadeSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many images under other classes only some are known by name: the others are there too."""
    _order_validation_otherwise(copy, whole)
    monkeypatch.setattr(obstacles, "MOST", 40)
    more, misplaced = look(copy, "quick").problems
    assert more.detail == "57 more faults in this listing"
    assert misplaced.detail.startswith("40 images are under another class, as if by other labels: ")


@pytest.mark.parametrize(
    "change", [_shift_labels, _order_validation_otherwise], ids=["parquet", "folder"]
)
def test_no_command_sorts_images_whose_names_do_not_tell_their_class(
    change: Change, copy: Path, whole: MadeSet
) -> None:
    """Rows of parquet files can't be moved, and untar reads archives only."""
    change(copy, whole)
    remedies = [problem.remedy for problem in look(copy, "quick").problems]
    assert remedies == ["get another copy of these images"]


def test_one_odd_image_in_place_of_another_is_one_other(copy: Path, whole: MadeSet) -> None:
    """The published PNG is a JPEG, and another image is the one PNG: no plural of one."""
    _encode_again(copy, whole)
    path = images_of(copy, BRAMBLING)[0]
    image = pixels.decode_rgb(path.read_bytes())
    replace_file(path, in_memory(lambda buffer: image.save(buffer, "PNG")))
    reason = look(copy).reason
    assert "2 of 3 PNG and CMYK images are among them, and 1 other." in reason


# a part -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_part_is_one_where_that_is_allowed(split: str, copy: Path) -> None:
    """One split alone is incomplete; with --allow-incomplete it is a part,
    with status 0, unless it is damaged.
    """
    shutil.rmtree(copy / ("val" if split == "train" else "train"))
    verdict = look(copy, allow_incomplete=True)
    assert (verdict.level, verdict.problems) == ("part", ())
    assert verdict.reason.endswith("images, all sound. Missing: " + ABSENT[split])
    reason = look(copy, "full", allow_incomplete=True).reason
    assert reason.endswith("images, all with sound headers. Missing: " + ABSENT[split])
    path = next(copy.rglob("*.JPEG"))
    replace_file(path, path.read_bytes()[:-100])
    assert look(copy, allow_incomplete=True).level == "damaged"


def test_a_part_names_two_gaps_and_counts_the_others(copy: Path) -> None:
    """The gaps have commas in them, so a semicolon is between two of them."""
    for folder in sorted((copy / "train").iterdir())[:3]:
        shutil.rmtree(folder)
    reason = look(copy, allow_incomplete=True).reason
    gaps = reason.partition(" Missing: ")[2]
    assert re.fullmatch(r"[^;]*: expected [^;]*; [^;]*: expected [^;]*; 2 more\.", gaps), gaps


ABSENT = {
    "train": "validation: expected 100 images, found none.",
    "validation": "train: expected 200 images, found none.",
}


def test_the_devkit_tells_how_many_images_a_class_lacks(copy: Path, whole: MadeSet) -> None:
    """With the devkit each class has an exact number: too few and too many are told apart."""
    add_devkit(copy, {wnid: 3 if wnid == TENCH else 2 for wnid in facts.synsets()})
    shutil.copy(images_of(copy)[0], copy / "train" / BRAMBLING / f"{BRAMBLING}_99999.JPEG")
    problems = {each.subject: each for each in look(copy, "quick").problems}
    assert problems[f"train/{TENCH}"].detail == "expected 3 images, found 2"
    assert problems[f"train/{BRAMBLING}"].detail == "expected 2 images, found 3"
    assert problems.keys() == {"train", f"train/{TENCH}", f"train/{BRAMBLING}"}


def test_boxes_that_annotate_made_are_counted(copy: Path, whole: MadeSet) -> None:
    """The boxes of a DATA_DIR belong to the images of another folder;
    another number of boxes is incomplete.
    """
    data_dir = copy.parent / "data"
    annotate(Layout(data_dir, whole.archives["train"].parent), ENGINE)
    verdict = verify_raw(Layout(data_dir, copy), ENGINE, depth="quick")
    boxes = whole.boxes_csv.count(b"\n")
    assert verdict.totals[0].boxes == boxes
    assert [(each.kind.value, each.detail) for each in verdict.problems] == [
        ("missing-box", f"expected 615,299 boxes, found {boxes:,}")
    ]
    assert verdict.conclusion.endswith(" A quick check does not read the content of the images.")


# recipes ------------------------------------------------------------------------------------------


def flowers(tmp_path: Path, *lines: str) -> tuple[Path, Path]:
    """25 images in five classes, and their recipe."""
    folder = make_flowers(tmp_path / "flowers", 5)
    save(tmp_path / "flowers.yaml", "\n".join(["source: {folders: flowers}", *lines, ""]))
    return folder, tmp_path / "flowers.yaml"


@pytest.mark.parametrize(
    ("lines", "level", "kinds"),
    [
        ((), "as listed", []),
        (("expected: {images: 25}",), "complete", []),
        (("expected: {images: 26, classes: 4}",), "damaged", ["missing-image", "wrong-count"]),
        (("expected: {images: 26}",), "incomplete", ["missing-image"]),
    ],
)
def test_the_images_of_a_recipe(
    lines: tuple[str, ...], level: str, kinds: list[str], tmp_path: Path
) -> None:
    """A recipe's number of images decides what is called complete; all its faults are listed."""
    _, recipe = flowers(tmp_path, *lines)
    before = state_of(tmp_path)
    verdict = verify_raw(Layout(tmp_path), ENGINE, dataset=read_dataset(recipe))
    assert (verdict.level, [each.kind.value for each in verdict.problems]) == (level, kinds)
    assert [total.images for total in verdict.totals] == [25]
    assert state_of(tmp_path) == before


def test_the_damaged_images_of_a_recipe(tmp_path: Path) -> None:
    """Damaged images are all named; other files are counted;
    the folder is named on the command line.
    """
    folder, recipe = flowers(tmp_path)
    first, second = sorted(folder.rglob("*.jpg"))[:2]
    first.write_bytes(first.read_bytes()[:-50])
    second.write_bytes(b"")
    save(folder / "rose" / "notes.txt", "red")
    status, verdict = verified(tmp_path, tmp_path / "verdict.json", "--config", recipe)
    assert (status, verdict["verdict"], verdict["counts"]) == (
        3,
        "damaged",
        {"damaged": 2, "skipped": 1},
    )
    named = {problem["subject"] for problem in verdict["problems"]}
    assert named == {str(path.relative_to(folder)) for path in (first, second)}


@pytest.mark.parametrize("name", ["1.jpg", "lilac/1.jpg"])
@pytest.mark.parametrize("is_alone", [False, True], ids=["among others", "alone"])
def test_a_file_of_a_recipe_without_a_class(name: str, is_alone: bool, tmp_path: Path) -> None:
    """A file in no class folder, or in that of no class, is a problem;
    all other images are checked.
    """
    classes = f"classes: [{', '.join(sorted(FLOWERS))}]"
    folder, recipe = flowers(tmp_path, *([classes] if "/" in name else []))
    if is_alone:
        for path in list(folder.iterdir()):
            shutil.rmtree(path)
    save(folder / name, photographs.tiny(1))
    verdict = verify_raw(Layout(tmp_path), ENGINE, dataset=read_dataset(recipe))
    assert verdict.level == "damaged"
    assert sum(total.images for total in verdict.totals) == (0 if is_alone else 25)


def test_the_faults_of_a_recipe_beyond_those_listed_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many faults are named; the others are one problem with their number."""
    folder, recipe = flowers(tmp_path, "expected: {images: 30, classes: 6}")
    save(folder / "1.jpg", photographs.tiny(1))
    monkeypatch.setattr(obstacles, "MOST", 1)
    verdict = verify_raw(Layout(tmp_path), ENGINE, dataset=read_dataset(recipe))
    assert verdict.level == "damaged"
    assert len(verdict.problems) == 2
    assert verdict.problems[-1].detail == "2 more faults in this listing"
    monkeypatch.setattr(obstacles, "MOST", 2)
    verdict = verify_raw(Layout(tmp_path), ENGINE, dataset=read_dataset(recipe))
    assert verdict.problems[-1].detail == "1 more fault in this listing"


@pytest.mark.parametrize(
    ("lines", "depth", "level", "damaged"),
    [
        (("check: header",), None, "as listed", 0),
        (("check: header",), "decode", "damaged", 1),
        (("check: header", "resize: 16"), None, "damaged", 1),
        (("check: strict",), None, "damaged", 2),
        (("check: strict",), "decode", "damaged", 2),
        (("check: decode",), None, "damaged", 1),
    ],
)
def test_a_recipe_is_checked_no_less_than_convert_does(
    lines: tuple[str, ...], depth: Depth | None, level: str, damaged: int, tmp_path: Path
) -> None:
    """A check of headers proves no pixels, resized images are decoded,
    and strict refuses warned images.
    """
    folder, recipe = flowers(tmp_path, "expected: {images: 25}", *lines)
    first, second = sorted(folder.rglob("*.jpg"))[:2]
    content = first.read_bytes()
    start = content.index(b"\xff\xda") + 30
    first.write_bytes(
        content[:start] + bytes(len(content) - start - 2) + content[-2:]
    )  # whole by its headers
    content = second.read_bytes()
    second.write_bytes(content[:20] + b"\x12\x34" + content[20:])  # stray bytes ahead of the scan
    verdict = verify_raw(Layout(tmp_path), ENGINE, dataset=read_dataset(recipe), depth=depth)
    assert (verdict.level, verdict.counts.get("damaged", 0)) == (level, damaged)
    assert verdict.depth == ("full" if level == "as listed" else "decode")
    assert verdict.counts.get("warned", 0) == ("check: strict" not in lines)


def test_a_packed_tar_of_a_recipe_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A fault of a whole file has no image: the line starts with the file."""
    save(tmp_path / "set.tar", gzip.compress(pack({"cat/1.jpg": photographs.tiny(1)})))
    save(tmp_path / "set.yaml", "source: {tar: set.tar}\n")
    assert (
        cli.main(["verify", "--config", str(tmp_path / "set.yaml"), "-q"], standalone_mode=False)
        == 3
    )
    output = capfd.readouterr().out
    assert f"unreadable: {tmp_path / 'set.tar'} is compressed with gzip: " in output
    assert "no files" not in output


# refused ------------------------------------------------------------------------------------------


def test_the_help_has_the_command_for_the_recipe_of_init(tmp_path: Path) -> None:
    """After init, verify's example checks the images of the recipe that init wrote."""
    make_flowers(tmp_path / "flowers", 3)
    command("init", "flowers", cwd=tmp_path)
    (words,) = re.findall(
        r"imagenet-prep (verify .*--config flowers\.yaml)", command("verify", "--help").stdout
    )
    assert (
        "\nas listed: all 15 images listed are sound."
        in command(*words.split(), cwd=tmp_path).stdout
    )


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    """Where there is nothing to check, the error says what was expected;
    and what the options need.
    """
    with pytest.raises(InputError, match="no images of ImageNet"):
        look(tmp_path)
    for words, expected in (
        (["verify"], "verify needs a folder or a file"),
        (["verify", "--raw", str(tmp_path), "--rank", "0/2"], "--rank can't be used with --raw"),
        (["verify", "--config", __file__, "--rank", "0/2"], "--rank can't be used with --config"),
        (["verify", str(tmp_path / "nothing"), "--raw", str(tmp_path)], "nothing does not exist"),
    ):
        with pytest.raises(UsageError, match=expected):
            cli.main(words, standalone_mode=False)


def test_shards_beside_the_images_are_not_called_checked(tmp_path: Path) -> None:
    """verify of a recipe's images says that the shards in DATA_DIR were not read,
    and how to verify them; without shards it says nothing of them.
    """
    make_flowers(tmp_path / "flowers", 3)
    command("init", "flowers", cwd=tmp_path)
    (tmp_path / "made").mkdir()
    words = ("verify", "made", "--config", "flowers.yaml")
    assert "shard" not in command(*words, cwd=tmp_path).stdout
    command("convert", "made", "--config", "flowers.yaml", cwd=tmp_path)
    printed = " ".join(command(*words, cwd=tmp_path).stdout.split())
    assert "note: only images were checked, and not the 1 shard in made; " in printed
    assert "to verify shards: imagenet-prep verify made" in printed


def test_shards_that_are_the_source_are_checked(tmp_path: Path) -> None:
    """Shards next to the recipe that reads them are not called unchecked."""
    make_flowers(tmp_path / "flowers", 3)
    command("init", "flowers", cwd=tmp_path)
    command("convert", "made", "--config", "flowers.yaml", cwd=tmp_path)
    shutil.rmtree(tmp_path / "made" / "imagenet-prep")
    (tmp_path / "made" / "again.yaml").write_text("source: {tfrecord: train-*-of-*}\n")
    printed = command("verify", "--config", "made/again.yaml", cwd=tmp_path).stdout
    assert "as listed: all 15 images listed are sound." in printed
    assert "only images were checked" not in printed


def test_a_copy_that_was_consumed_is_one_problem_a_split(whole: MadeSet, tmp_path: Path) -> None:
    """Images that are in the shards alone are not compared class by class,
    and nothing calls them damaged.
    """
    layout = Layout(tmp_path / "data")
    write_official(layout.raw_dir, whole)
    for split in facts.SPLITS:
        name = facts.ARCHIVES[split].filename
        Target(layout, name, None, {"md5": whole.md5[split]}).check_present(Silent())
    options = ConvertOptions(
        train_shards=2, validation_shards=2, allow_incomplete=True, consume=True
    )
    convert(layout, ENGINE, options)
    before = state_of(tmp_path)
    verdict = verify_raw(Layout(layout.data_dir, layout.data_dir), ENGINE)
    assert verdict.level == "incomplete"
    assert [(each.kind.value, each.subject) for each in verdict.problems] == [
        ("missing-image", "train"),
        ("missing-image", "validation"),
    ]
    assert "was consumed: convert --consume freed its space" in verdict.problems[0].detail
    assert state_of(tmp_path) == before


def test_workers_and_threads_find_the_same(copy: Path, whole: MadeSet) -> None:
    """The verdict does not depend on the engine or the number of workers."""
    _cut_an_image(copy, whole)
    _swap_classes(copy, whole)
    found = [
        verify_raw(Layout(copy, copy), engine, depth="decode").as_dict()
        for engine in (ENGINE, make_engine("processes", 2), make_engine("processes", 1))
    ]
    assert found[0] == found[1] == found[2]
