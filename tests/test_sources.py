"""Where Items come from: archives in place and folders of every shape give the same catalog,
faults are named.
"""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from made_sets import read_catalog
from made_tars import contents, pack
from msgspec.structs import replace
from running import command

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.image_counts import missing_text
from imagenet_prep.ilsvrc2012.official_folders import ImageFolders
from imagenet_prep.ilsvrc2012.raw_data import find_source
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Box
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.fingerprint import fingerprint
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.slices import FileSlices, Reader, Row, container_class
from imagenet_prep.sources.tars import Archive
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout

ENGINE = ThreadEngine(2)
SPLITS = facts.SPLITS


def _unpack(made: MadeSet, split: str, folder: Path, *, flat: bool = False) -> Path:
    for name, content in contents(made, split).items():
        path = folder / name if flat else folder / made.images[name].wnid / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def _rows(catalog: Catalog) -> list[tuple[str, int, int]]:
    return [
        (catalog.names[row], catalog.labels[row], catalog.lengths[row])
        for row in range(len(catalog))
    ]


# one catalog, whatever it is made from ------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "place", "flat"),
    [
        ("train", "train", False),
        ("train", "Data/CLS-LOC/train", False),
        ("validation", "val", False),
        ("validation", "ILSVRC/Data/CLS-LOC/val", True),
    ],
)
def test_folders_give_the_catalog_of_the_archive(
    tmp_path: Path, made_tiny: MadeSet, split: str, place: str, flat: bool
) -> None:
    """Untarred, torchvision's and Kaggle's folders:
    the same names, labels and lengths, and the same bytes.
    """
    folder = _unpack(made_tiny, split, tmp_path / place, flat=flat)
    assert find_source(Layout(tmp_path / "data", raw=tmp_path), split) == ImageFolders(
        folder, split
    )
    catalog = read_catalog(folder, split, ENGINE)
    assert _rows(catalog) == _rows(read_catalog(made_tiny.archives[split], split, ENGINE))
    images, reader = contents(made_tiny, split), Reader()
    for row in range(0, len(catalog), 7):
        item = catalog.item(row)
        assert catalog.read(row, reader) == images[item.filename]


# faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_an_image_in_another_classs_folder_is_refused(
    tmp_path: Path, made_tiny: MadeSet, split: str
) -> None:
    """Sorted wrongly, an image would get a wrong label:
    the error names it, where it is and where it belongs.
    """
    folder = _unpack(made_tiny, split, tmp_path / split)
    image = made_tiny.of(split)[0]
    other = next(wnid for wnid in made_tiny.wnids if wnid != image.wnid)
    (folder / image.wnid / image.filename).rename(folder / other / image.filename)
    with pytest.raises(InputError, match="not in the folder of the class in its name") as caught:
        read_catalog(folder, split, ENGINE)
    text = str(caught.value)
    assert str(folder / other / image.filename) in text
    assert f"expected it in {image.wnid}, found it in {other}" in text
    assert text.count("\n") == 2
    target = folder / image.wnid
    assert caught.value.hint == (
        f"move every image of {image.wnid} from {folder / other} to {target}"
    )
    (folder / other / image.filename).rename(target / image.filename)
    assert len(read_catalog(folder, split, ENGINE)) == len(made_tiny.of(split))


def _refused_by_convert(data_dir: Path) -> InputError:
    """The error with which convert refuses an archive; it makes no shard."""
    options = ConvertOptions(train_shards=1, validation_shards=1, allow_incomplete=True)
    with pytest.raises(InputError) as caught:
        convert(Layout(data_dir), ENGINE, options)
    assert caught.value.exit_code == 4
    assert not list(data_dir.glob("*-of-*"))
    return caught.value


def test_a_class_twice_in_the_train_archive_is_refused(tiny_data_dir: Path) -> None:
    """Two tars of one class, each with images of its own, are a broken archive:
    class and both bytes are named.
    """
    path = Layout(tiny_data_dir).archive_path(facts.ARCHIVES["train"])
    path.write_bytes(
        pack([("n01440764.tar", pack({f"n01440764_{number}.JPEG": b"x"})) for number in (1, 2)])
    )
    error = _refused_by_convert(tiny_data_dir)
    assert error.what == f"{path} holds n01440764.tar twice, at byte 0 and again at byte 10,752"


@pytest.mark.parametrize("split", SPLITS)
def test_an_image_twice_in_an_archive_is_refused(tiny_data_dir: Path, split: str) -> None:
    """The error names archive, image and the two bytes,
    in an archive of images and in a class's tar within one.
    """
    path = Layout(tiny_data_dir).archive_path(facts.ARCHIVES[split])
    first, other = {
        "train": ("n01440764_1.JPEG", "n01440764_2.JPEG"),
        "validation": ("ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG"),
    }[split]
    images = pack([(name, b"") for name in (other, first, other)])
    path.write_bytes(pack({"n01440764.tar": images}) if split == "train" else images)
    bytes_ = "512 and again at byte 1,536" if split == "train" else "0 and again at byte 1,024"
    assert (
        _refused_by_convert(tiny_data_dir).what == f"{path} holds {other} twice, at byte {bytes_}"
    )


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ("validation", "ILSVRC2012_val_00050001.JPEG"),
        ("validation", "../ILSVRC2012_val_00000001.JPEG"),
        ("validation", "n01440764_1.JPEG"),
        ("train", "n00004475.tar"),
        ("train", "n01440764.zip"),
    ],
)
def test_a_member_of_another_data_set_is_refused(tmp_path: Path, split: str, name: str) -> None:
    """Only names of the data set's grammar are taken; the error names archive, byte and member."""
    path = tmp_path / "archive.tar"
    path.write_bytes(pack({name: b"content"}))
    with pytest.raises(InputError, match=r"does not belong .*at byte [0-9]+") as caught:
        read_catalog(path, split, ENGINE)
    assert str(path) in caught.value.what
    assert Path(name).name.encode("ascii", "ignore").decode()[:8] in caught.value.detail


@pytest.mark.parametrize("name", ["n01443537_1.JPEG", "note.txt"])
def test_a_stranger_in_a_class_archive_is_refused(tmp_path: Path, name: str) -> None:
    """An image of another class within a class's tar is named,
    with its byte in the outer archive.
    """
    outer = pack({"n01440764.tar": pack({"n01440764_7.JPEG": b"a", name: b"content"})})
    (tmp_path / "outer.tar").write_bytes(outer)
    offset = outer.index(b"content") - 512  # its header
    with pytest.raises(InputError, match=f"at byte {offset:,}") as caught:
        read_catalog(tmp_path / "outer.tar", "train", ENGINE)
    assert "expected images of n01440764" in caught.value.detail


@pytest.mark.parametrize("split", SPLITS)
def test_a_cut_archive_is_never_a_smaller_one(
    tmp_path: Path, made_tiny: MadeSet, split: str
) -> None:
    """Cut to nothing, at a member's boundary or anywhere else, an archive is refused."""
    content = made_tiny.archives[split].read_bytes()
    boundary = content.index(made_tiny.of(split)[1].filename.encode())
    path = tmp_path / "cut.tar"
    for length in (
        0,
        100,
        512,
        boundary,
        boundary + 512,
        len(content) // 2,
        len(content.rstrip(b"\0")),
    ):
        path.write_bytes(content[:length])
        fault = r"is damaged at byte [0-9,]+" if length else "is empty"
        with pytest.raises(InputError, match=fault) as caught:
            read_catalog(path, split, ENGINE)
        assert str(path) in caught.value.what


@pytest.mark.parametrize("split", facts.SPLITS)
def test_a_damaged_boxes_file_is_an_input_error(tiny_data_dir: Path, split: str) -> None:
    """Cut within a line, the CSV of boxes is refused with path and line
    before any shard is made; the command that helps keeps it and makes it again.
    """
    layout = Layout(tiny_data_dir)
    options = ConvertOptions(
        allow_incomplete=True, validation_boxes=True, train_shards=1, validation_shards=1
    )
    annotate(layout, ENGINE, validation=True)
    boxes_csv = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    content = boxes_csv.read_bytes()
    damaged = b"n01440764_1.JPEG,0.1000,0.1000,0.2000,0.2000\nn01440764_1.JPEG,0.1,0.1"
    boxes_csv.write_bytes(damaged)
    with pytest.raises(InputError, match=r"line 2 of .* can't be used") as caught:
        convert(layout, ENGINE, options)
    assert str(boxes_csv) in caught.value.what
    assert not list(tiny_data_dir.glob("*-of-*"))
    words = caught.value.hint.removeprefix("set the file aside, and make it again: ")
    move, _, annotate_again = words.partition(" && imagenet-prep ")
    subprocess.run(["sh", "-c", move], check=True)
    command(*shlex.split(annotate_again))
    assert boxes_csv.read_bytes() == content
    assert Path(f"{boxes_csv}.moved").read_bytes() == damaged
    convert(layout, ENGINE, options)


# reading ------------------------------------------------------------------------------------------


def test_a_file_that_changed_its_length_is_refused(tmp_path: Path) -> None:
    """Longer, shorter or gone since it was indexed: never the wrong bytes."""
    path = tmp_path / "n01440764_1.JPEG"
    path.write_bytes(b"12345")
    folder = Folder(tmp_path)
    assert Reader().read(folder, Row(path.name, 0, 5, 0)) == b"12345"
    for length in (4, 6):
        with pytest.raises(InputError, match="has changed since it was first looked at"):
            Reader().read(folder, Row(path.name, 0, length, 0))
    path.unlink()
    with pytest.raises(InputError, match="can't be read"):
        Reader().read(folder, Row(path.name, 0, 5, 0))


def test_a_range_beyond_an_archive_is_refused(tmp_path: Path) -> None:
    """An archive that became shorter gives an error and not fewer bytes."""
    path = tmp_path / "a.tar"
    path.write_bytes(bytes(1000))
    assert len(Reader().read(Archive(path), Row("a", 512, 488, 0))) == 488
    with pytest.raises(InputError, match=r"expected 489 bytes at offset 512, got 488"):
        Reader().read(Archive(path), Row("a", 512, 489, 0))


def _no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "copy_file_range", raising=False)


def _not_between_these_two(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)


def _gives_up_midway(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [1000]

    def copy(source: int, target: int, count: int, offset: int) -> int:
        if not left:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.write(target, os.pread(source, min(count, left.pop()), offset))

    monkeypatch.setattr(os, "copy_file_range", copy, raising=False)


@pytest.mark.parametrize(
    "kernel", [lambda patch: None, _no_such_call, _not_between_these_two, _gives_up_midway]
)
def test_a_range_is_copied_whatever_the_kernel_offers(
    kernel: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, within the kernel or through memory;
    of a range that is gone, what was left is named.
    """
    content = os.urandom(3_000_000)
    (tmp_path / "archive").write_bytes(content)
    kernel(monkeypatch)
    with (
        FileSlices(tmp_path / "archive") as view,
        (tmp_path / "copy").open("wb", buffering=0) as copy,
    ):
        view.copy(700, 2_500_000, copy.fileno())
        view.copy(2_999_999, 1, copy.fileno())
        view.copy(5, 0, copy.fileno())
        assert (tmp_path / "copy").read_bytes() == content[700:2_500_700] + content[-1:]
        with pytest.raises(InputError, match="archive has changed") as caught:
            view.copy(2_999_900, 200, copy.fileno())
    assert "expected 200 bytes at offset 2,999,900, got 100" in str(caught.value)


# completeness -------------------------------------------------------------------------------------


def _catalog_of(counts: dict[int, int], split: str = "train") -> Catalog:
    """A catalog with so many images of each label,
    of which only labels and offsets are filled in.
    """
    labels = array("I")
    for label, count in counts.items():
        labels.extend([label] * count)
    offsets = array("Q", bytes(8 * len(labels)))
    return Catalog(split, facts.synsets(), facts.synsets(), labels=labels, offsets=offsets)


def test_a_whole_split_misses_nothing() -> None:
    """With all 50,000 images of 1000 classes there is nothing to say;
    one image less or many more are said.
    """
    counts = dict.fromkeys(range(1, 1001), 50)
    assert missing_text(_catalog_of(counts, "validation"), "validation") is None
    train = dict.fromkeys(range(1, 1001), 1281)
    train[1], train[2] = 1300, 1300
    text = missing_text(_catalog_of(train), "train")
    assert text == f"train: {sum(train.values()):,} of 1,281,167 images (129 missing)"
    train[3] = 1500
    assert (
        missing_text(_catalog_of(train), "train")
        == "train: 1,281,257 of 1,281,167 images (90 too many)"
    )
    counts[1000] = 49
    text = missing_text(_catalog_of(counts, "validation"), "validation")
    assert text == (
        "validation: 49,999 of 50,000 images (1 missing; 1 class below the minimum of 50: "
        "n15075141 (49))"
    )


# fingerprints -------------------------------------------------------------------------------------


def _small(**changes: list[int]) -> Catalog:
    """Four images of two classes in an archive, with some of their numbers changed."""
    numbers = {"offsets": [512, 2048], "lengths": [100, 200], "stamps": [7, 7], **changes}
    listing = CatalogBuilder(Archive(Path("archive.tar")))
    for label in (1, 2):
        for number, each in enumerate(
            zip(numbers["offsets"], numbers["lengths"], numbers["stamps"], strict=True)
        ):
            listing.append(f"n01440764_{10 * label + number}.JPEG", *each, label)
    classes = {1: ("n01440764", "tench"), 2: ("n01443537", "goldfish")}
    return replace(listing.listed(), split="train", classes=classes)


def test_the_fingerprint_tells_every_change_apart() -> None:
    """Name, label, words, length, boxes, settings and order each make another fingerprint."""
    rows = [0, 1, 2, 3]
    renamed, relabelled, reworded, boxed, narrower = (_small() for _ in range(5))
    renamed.names = Names.take(name.replace("_10.", "_99.") for name in renamed.names)
    relabelled.labels[1] = 2
    reworded.classes = {**reworded.classes, 1: ("n01440764", "tench, Tinca tinca")}
    boxed.attach_boxes({"n01440764_11.JPEG": (Box(0, 0, 0.5, 1),)})
    narrower.attach_boxes({"n01440764_11.JPEG": (Box(0, 0, 0.25, 1),)})
    catalogs = [
        _small(),
        _small(lengths=[100, 201]),
        renamed,
        relabelled,
        reworded,
        boxed,
        narrower,
    ]
    found = [fingerprint(catalog, rows, "settings") for catalog in catalogs]
    found += [
        fingerprint(_small(), [1, 0, 2, 3], "settings"),
        fingerprint(_small(), [0, 1, 2], "settings"),
    ]
    found.append(fingerprint(_small(), rows, "other settings"))
    assert len(set(found)) == len(found) == 10
    assert fingerprint(_small(), range(4), "settings") == found[0]


def test_the_fingerprint_is_blind_to_what_decides_no_bytes() -> None:
    """Another path, another time or offset in the archive, images of other shards:
    the same fingerprint.
    """
    moved = _small(offsets=[5120, 8192], stamps=[8, 9])
    moved.containers = [Archive(Path("elsewhere") / "archive.tar")]
    assert fingerprint(moved, [0, 1], "s") == fingerprint(_small(), range(2), "s")
    others = _small()
    others.lengths[3] += 1
    assert fingerprint(others, [0, 1], "s") == fingerprint(_small(), range(2), "s")


def test_threads_that_share_a_reader_never_get_one_anothers_images(tmp_path: Path) -> None:
    """Wherever another thread comes between and reads another archive, each gets its own bytes."""
    archives = [Archive(tmp_path / name) for name in "ab"]
    for archive in archives:
        archive.path.write_bytes(archive.path.name.encode() * 4)
    reader, row = Reader(), Row("x", 0, 4, 0)
    moments = []

    def come_between(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code is not Reader.read.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            moments.append(frame.f_lasti)
            assert bytes(reader.read(archives[1], row)) == b"bbbb"
        return come_between

    before = sys.gettrace()
    for _ in range(2):
        sys.settrace(come_between)
        try:
            found = reader.read(archives[0], row)
        finally:
            sys.settrace(before)
        assert bytes(found) == b"aaaa"
    assert len(moments) > 20


def test_unreadable_files_and_folders_are_input_errors(tmp_path: Path, made_tiny: MadeSet) -> None:
    """An archive that isn't there, and a folder whose image is a link to nowhere,
    are said to be what they are.
    """
    with pytest.raises(InputError, match="can't be read"):
        read_catalog(tmp_path / "absent.tar", "validation", ENGINE)
    folder = tmp_path / "val"
    folder.mkdir()
    (folder / made_tiny.of("validation")[0].filename).symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"JPEG is not a plain file\n.*a broken link"):
        read_catalog(folder, "validation", ENGINE)


@pytest.mark.parametrize("name", ["ArrowImages", "SealedZip"])
def test_a_kind_of_container_is_found_by_its_name(name: str) -> None:
    """A new process finds the container that a saved table names, whatever it has imported."""
    script = (
        "import sys; from imagenet_prep.sources.slices import container_class; "
        f"print(container_class({name!r}).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{name}\n"


def test_a_container_that_nobody_knows_is_refused() -> None:
    """A table of a later version may name a container that is not here."""
    with pytest.raises(ValueError, match="Basket"):
        container_class("Basket")
