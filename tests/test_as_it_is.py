"""Copies with images that were encoded again, timm's webdataset and TFDS's records: taken as they are where asked."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from copies_of_imagenet import contents
from existing import existing
from made_sets import ENGINE, data_of
from PIL import Image

from imagenet_prep.cli import printing
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.ilsvrc2012.encoded_again import CopyEncodedAgain
from imagenet_prep.ilsvrc2012.facts import SPLITS
from imagenet_prep.ilsvrc2012.finding import find_packed, find_source
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.images.jpeg import read_header
from imagenet_prep.images.png import is_png
from imagenet_prep.model import Silent
from imagenet_prep.pipeline import missing_archives, report, verify_and_repair
from imagenet_prep.registry import known_set
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.verify import verify
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import framing
from imagenet_prep.tfrecord.example import BytesList, Int64List, encode_example
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.once

EXACT = ConvertOptions(train_shards=4, validation_shards=2, allow_incomplete=True)
AS_IT_IS = dataclasses.replace(EXACT, as_it_is=True)
TIMM, TFDS = "timm's webdataset", "TensorFlow Datasets"


def encoded_again(made: MadeSet, split: str, quality: int) -> list[tuple[str, bytes, int]]:
    """Name, content and label from 0 of each image: what is no JPEG of three or one components is made one."""
    found = contents(made, split)
    rows = []
    for image in made.of(split):
        content = found[image.filename]
        if is_png(content) or read_header(content).components == 4:
            file = io.BytesIO()
            Image.open(io.BytesIO(content)).convert("RGB").save(file, "JPEG", quality=quality)
            content = file.getvalue()
        rows.append((image.filename, content, image.label - 1))
    return rows


def write_timm(folder: Path, made: MadeSet, *, told: bool = True) -> Path:
    """As timm/imagenet-1k-wds: samples of jpg, cls and json; without ``told``, the key alone tells the name."""
    folder.mkdir(parents=True)
    for split, width in (("train", 4), ("validation", 2)):
        rows = encoded_again(made, split, 95)
        for number in range(2):
            with tarfile.open(folder / f"imagenet1k-{split}-{number:0{width}d}.tar", "w") as tar:
                for name, content, label in rows[number::2]:
                    key = name[:-5] if split == "train" or not told else f"sample_{name[15:23]}"
                    json_text = json.dumps({"label": label, "filename": f"n01440764/{name}"}).encode()
                    members = {"cls": str(label).encode(), "jpg": content, **({"json": json_text} if told else {})}
                    for kind, data in members.items():
                        info = tarfile.TarInfo(f"{key}.{kind}")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
    return folder


def write_tfds(folder: Path, made: MadeSet) -> Path:
    """As TFDS's imagenet2012: Examples of file_name, image and label."""
    folder.mkdir(parents=True)
    for split in SPLITS:
        rows = encoded_again(made, split, 72)
        for number in range(2):
            with (folder / f"imagenet2012-{split}.tfrecord-{number:05d}-of-00002").open("wb") as file:
                for name, content, label in rows[number::2]:
                    values = {"file_name": name.encode(), "image": content}
                    features = {key: BytesList((value,)) for key, value in values.items()}
                    data = encode_example({**features, "label": Int64List((label,))})
                    header, footer, _ = framing.frame(data)
                    file.write(header + data + footer)
    return folder


WRITERS: dict[str, Callable[[Path, MadeSet], Path]] = {TIMM: write_timm, TFDS: write_tfds}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, made: MadeSet) -> dict[str, Path]:
    """Both copies, and the official archives. Read only."""
    folder = tmp_path_factory.mktemp("copies")
    found = {maker: write(folder / str(number), made) for number, (maker, write) in enumerate(WRITERS.items())}
    return {**found, "official": made.archives["train"].parent}


def _images(layout: Layout) -> dict[str, bytes]:
    """The image in each record, by its name."""
    records = [record for path in existing(layout.output_dir, "*-of-*") for record in data_of(path)]
    return {(found := read_record(memoryview(record))).filename: bytes(found.encoded) for record in records}


@pytest.mark.parametrize("maker", WRITERS)
def test_a_set_as_it_is(copies: dict[str, Path], made: MadeSet, tmp_path: Path, maker: str) -> None:
    """Every image goes in as the copy has it; manifest, verify and report tell whose it is, and what that means."""
    layout, progress = Layout(tmp_path / "data", raw=copies[maker]), Silent()
    convert(layout, ENGINE, AS_IT_IS, progress=progress)
    rows = [row for split in SPLITS for row in encoded_again(made, split, 95 if maker == TIMM else 72)]
    assert _images(layout) == {name: content for name, content, _ in rows}
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    assert manifest.settings["as_it_is"] == dict.fromkeys(SPLITS, maker)
    verdict = verify(layout, ENGINE)
    assert verdict.problems == ()
    assert verdict.dataset == f"ILSVRC2012 as {maker} has it"
    for notes in (verdict.notes, progress.notes):
        said = [note for note in notes if note.startswith(f"train is {maker}'s copy as it is")]
        assert len(said) == 1
        assert "not byte for byte those of 2016" in said[0]
    page = report(layout, ENGINE, samples=0).path.read_text()
    assert f"ILSVRC2012 as {maker.replace(chr(39), '&#39;')} has it" in page
    assert "not byte for byte those of 2016" in page
    layout.manifest_path.rename(tmp_path / "manifest.json")
    assert any("allowed to be one with images" in note for note in verify(layout, ENGINE).notes)
    (tmp_path / "manifest.json").rename(layout.manifest_path)
    before = [path.stat().st_mtime_ns for path in existing(layout.output_dir, "*-of-*")]
    convert(layout, ENGINE, AS_IT_IS)
    assert [path.stat().st_mtime_ns for path in existing(layout.output_dir, "*-of-*")] == before


@pytest.mark.parametrize("maker", WRITERS)
def test_ways_to_read_it(copies: dict[str, Path], tmp_path: Path, maker: str) -> None:
    """By processes, and in one pass over each file: the same shards."""
    found = []
    for name, engine, options in (
        ("threads", ENGINE, AS_IT_IS),
        ("processes", make_engine("processes", 2), AS_IT_IS),
        ("pass", ENGINE, dataclasses.replace(AS_IT_IS, read_order="sequential")),
    ):
        layout = Layout(tmp_path / name, raw=copies[maker])
        convert(layout, engine, options)
        found.append({path.name: path.read_bytes() for path in existing(layout.output_dir, "*-of-*")})
    assert len(found[0]) == 6
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("first", ["official", TIMM, TFDS])
@pytest.mark.parametrize("other", ["official", TIMM, TFDS])
def test_kinds_are_not_mixed(copies: dict[str, Path], tmp_path: Path, first: str, other: str) -> None:
    """A set that was begun from one is not gone on with from another, whole or not, and says what differs."""
    if first == other:
        return
    layout = Layout(tmp_path / "data", raw=copies[first])
    convert(layout, ENGINE, AS_IT_IS)
    for name in ("train-00001-of-00004", "validation-00000-of-00002"):
        layout.shard_path(name).unlink()
    moved = dataclasses.replace(layout, raw=copies[other])
    with pytest.raises(UsageError, match="made from other inputs") as caught:
        convert(moved, ENGINE, AS_IT_IS)
    assert "as_it_is" in str(caught.value.detail)
    layout.manifest_path.unlink()
    with pytest.raises(UsageError, match="made from other inputs"):
        convert(moved, ENGINE, AS_IT_IS)
    convert(moved, ENGINE, dataclasses.replace(AS_IT_IS, overwrite=True))
    assert verify(layout, ENGINE).dataset == ("ILSVRC2012" if other == "official" else f"ILSVRC2012 as {other} has it")


def test_equal_bytes_are_not_mixed_either(made_tiny: MadeSet, tmp_path: Path) -> None:
    """Only three of the images differ: the other shards, too, count as those of their copy alone."""
    layout = Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)
    convert(layout, ENGINE, EXACT)
    assert len(existing(layout.output_dir, "*-of-*")) == 6
    layout.manifest_path.unlink()
    moved = dataclasses.replace(layout, raw=write_timm(tmp_path / "raw", made_tiny))
    with pytest.raises(UsageError, match="6 finished shards were made from other inputs"):
        convert(moved, ENGINE, AS_IT_IS)


def test_published_images_go_first(copies: dict[str, Path], tmp_path: Path) -> None:
    """--as-it-is allows such a copy and does not ask for it; where a split is there as published, that is taken."""
    layout = Layout(tmp_path / "data")
    shutil.copytree(copies[TIMM], layout.raw_dir)
    assert missing_archives(layout) == ("train", "validation", "boxes")
    assert missing_archives(layout, encoders=AS_IT_IS.encoders) == ("boxes",)
    shutil.copy(copies["official"] / "ILSVRC2012_img_val.tar", layout.raw_dir)
    convert(layout, ENGINE, AS_IT_IS)
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    assert manifest.settings["as_it_is"] == {"train": TIMM}
    assert find_packed(layout, "train") is None


@pytest.mark.parametrize("maker", WRITERS)
def test_repair_takes_the_same_copy(copies: dict[str, Path], tmp_path: Path, maker: str) -> None:
    """A damaged shard is made again from the copy that the manifest names, whatever else is there."""
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    shutil.copytree(copies[maker], tmp_path / "raw")
    convert(layout, ENGINE, AS_IT_IS)
    for archive in existing(copies["official"], "*.tar"):
        shutil.copy(archive, tmp_path / "raw")
    shard = layout.shard_path("train-00002-of-00004")
    content = shard.read_bytes()
    shard.write_bytes(content[:-9])
    assert verify_and_repair(layout, ENGINE).repair.made == (shard.name,)
    assert shard.read_bytes() == content
    shard.write_bytes(content[:-9])
    for path in existing(tmp_path / "raw", "imagenet*"):
        path.unlink()
    with pytest.raises(InputError, match="no train images in"):
        verify_and_repair(layout, ENGINE)


def test_the_key_tells_the_name_where_nothing_else_does(made: MadeSet, tmp_path: Path) -> None:
    """Without json, the name is the key with .JPEG."""
    layout = Layout(tmp_path, raw=write_timm(tmp_path / "raw", made, told=False))
    source = find_source(layout, "validation", AS_IT_IS.encoders)
    assert isinstance(source, CopyEncodedAgain)
    assert set(source.catalog(ENGINE, Silent()).names) == {image.filename for image in made.of("validation")}
    assert source.words == "2 of 64 files of timm's webdataset"
    assert source.missing.startswith("imagenet1k-validation-02.tar, ")
    assert source.missing.endswith(" and 57 more")


def _tar(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


KEY = "n01440764_18"


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({f"{KEY}.jpg": b"x", f"{KEY}.cls": b"1"}, "expected the label 0, got 1"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.cls": b"9" * 5000}, "expected the label 0, got -1"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.json": b'{"label": "0"}'}, "expected the label 0, got 0"),
        ({"fish.jpg": b"x", "fish.cls": b"0"}, "'fish.JPEG' is not a train image"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.json": b'{"filename": "../../etc/passwd"}'}, "'passwd' is not a train image"),
        ({f"{KEY}.cls": b"0", f"{KEY}.json": b"{}"}, f"holds no {KEY}.jpg"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.json": b"[1"}, "is not JSON"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.json": b"[" * 60_000}, "is not JSON"),
        ({f"{KEY}.jpg": b"x", f"{KEY}.json": b" " * 70_000}, "70,000 bytes"),
        ({f"{KEY}.jpg": b"x", "a.jpg": b"", f"{KEY}.cls": b"0"}, "'a.JPEG' is not a train image"),
    ],
)
def test_a_tar_that_is_not_right(tmp_path: Path, members: dict[str, bytes], said: str) -> None:
    """Another label, another name, no image, something else than JSON: refused with the place."""
    _tar(tmp_path / "imagenet1k-train-0000.tar", members)
    source = find_source(Layout(tmp_path, raw=tmp_path), "train", AS_IT_IS.encoders)
    assert source is not None
    with pytest.raises(InputError) as caught:
        source.catalog(ENGINE, Silent())
    assert said in str(caught.value)
    assert "imagenet1k-train-0000.tar" in caught.value.what


def _record(**features: BytesList | Int64List) -> bytes:
    data = encode_example(features)
    header, footer, _ = framing.frame(data)
    return header + data + footer


GOOD = {
    "file_name": BytesList((f"{KEY}.JPEG".encode(),)),
    "image": BytesList((b"\xff\xd8image\xff\xd9",)),
    "label": Int64List((0,)),
}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_record(**{**GOOD, "label": Int64List((3,))}), "expected the label 0, got 3"),
        (_record(**{**GOOD, "file_name": BytesList((b"\xff",))}), "is not a train image"),
        (_record(**{**GOOD, "image": Int64List((1,))}), "expected one value of image"),
        (_record(**{**GOOD, "image": BytesList((b"a", b"b"))}), "expected one value of image"),
        (_record(label=Int64List((0,))), "expected one value of file_name"),
        (_record(**GOOD) + _record(**GOOD)[:-1], "damaged in the record"),
        (b"\0" * 40, "damaged in the record at byte 0"),
    ],
)
def test_records_that_are_not_right(tmp_path: Path, content: bytes, said: str) -> None:
    """The same of TFDS's."""
    (tmp_path / "imagenet2012-train.tfrecord-00000-of-00001").write_bytes(content)
    source = find_source(Layout(tmp_path, raw=tmp_path), "train", AS_IT_IS.encoders)
    assert source is not None
    with pytest.raises(InputError, match=r"tfrecord-00000") as caught:
        source.catalog(ENGINE, Silent())
    assert said in str(caught.value)


@pytest.mark.parametrize("change", ["flipped", "cut", "replaced"])
def test_a_record_that_changes_after_it_was_listed(tmp_path: Path, change: str) -> None:
    """Its CRC is compared when its image is read; a file that was cut or replaced meanwhile is noticed."""
    path = tmp_path / "imagenet2012-train.tfrecord-00000-of-00001"
    path.write_bytes(_record(**GOOD))
    source = find_source(Layout(tmp_path, raw=tmp_path), "train", AS_IT_IS.encoders)
    assert source is not None
    catalog = source.catalog(ENGINE, Silent())
    read = catalog.container(0).open()
    assert bytes(read(catalog.row(0))) == GOOD["image"].values[0]
    content = path.read_bytes()
    where = content.index(b"image\xff")
    changed = {
        "flipped": content[:where] + b"I" + content[where + 1 :],
        "cut": content[:-30],
        "replaced": _record(**{**GOOD, "image": BytesList((b"short",))}),
    }
    path.unlink()
    path.write_bytes(changed[change])
    with pytest.raises(PrepError) as caught:
        catalog.container(0).open()(catalog.row(0))
    assert isinstance(caught.value, InputError)


def test_what_verify_prints(copies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last line does not call the set ILSVRC2012 alone."""
    layout = Layout(tmp_path / "data", raw=copies[TIMM])
    convert(layout, ENGINE, AS_IT_IS)
    assert known_set(layout, load_manifest(layout.manifest_path)).name == f"ILSVRC2012 as {TIMM} has it"
    printing.print_verdict(verify(layout, ENGINE))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"These shards are whole and right as what they are: a part of ILSVRC2012 as {TIMM} has it."
