"""One small ImageNet in every form that it is handed on in:
the same shards, and one conversion over all of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from existing import existing
from kaggle_copies import Tree, tree, write_tree, write_zip
from made_sets import ENGINE, catalog_rows
from made_tars import save

from imagenet_prep import (
    ConvertOptions,
    Layout,
    annotate,
    convert,
    make_engine,
    status,
    untar,
    verify,
)
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.made_annotations import boxes_csv
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import kaggle
from imagenet_prep.model import Silent, StageStatus
from imagenet_prep.pipeline import missing_archives, verify_and_repair
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Buffer, Reader
from imagenet_prep.text import size_text

pytestmark = pytest.mark.once

PART = ConvertOptions(
    train_shards=6, validation_shards=3, allow_incomplete=True, validation_boxes=True
)
PLAIN = PART.replace(validation_boxes=False)


def _official(folder: Path, made: MadeSet, files: Tree) -> None:
    folder.mkdir(parents=True)
    for archive in made.archives.values():
        shutil.copy2(archive, folder)


def _untarred(folder: Path, made: MadeSet, files: Tree) -> None:
    """Image folders as untar leaves them, with the archives of boxes beside."""
    _official(folder, made, files)
    untar(Layout(folder.parent, raw=folder), ENGINE)
    if folder != folder.parent / "raw-data":
        for split in ("train", "validation"):
            shutil.move(folder.parent / "raw-data" / split, folder)
        (folder.parent / "raw-data").rmdir()
    for key in ("train", "validation"):
        (folder / made.archives[key].name).unlink()


FORMS: dict[str, Callable[[Path, MadeSet, Tree], object]] = {
    "official archives": _official,
    "image folders": _untarred,
    "Kaggle's tree": lambda folder, made, files: write_tree(folder, files),
    "zip, stored": lambda folder, made, files: write_zip(folder, files, zipfile.ZIP_STORED),
    "zip, deflated": lambda folder, made, files: write_zip(folder, files),
}


@pytest.fixture(scope="module")
def files(made: MadeSet) -> Tree:
    """Kaggle's tree of the small ImageNet."""
    return tree(made)


@pytest.fixture(scope="module")
def copies(made: MadeSet, files: Tree, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A raw folder of each form. Read only."""
    home = tmp_path_factory.mktemp("copies")
    found = {}
    for form, write in FORMS.items():
        found[form] = home / form.replace(" ", "-") / "raw"
        write(found[form], made, files)
    return found


@pytest.fixture(scope="module")
def official(copies: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The SHA-256 of each shard that is made of the official archives,
    boxes of validation included.
    """
    layout = Layout(tmp_path_factory.mktemp("official"), raw=copies["official archives"])
    annotate(layout, ENGINE, validation=True)
    convert(layout, ENGINE, PART)
    return digests(layout)


def digests(layout: Layout) -> dict[str, str]:
    """SHA-256 of every shard by name."""
    paths = existing(layout.output_dir, "*-of-*")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def image(files: Tree, split: str, number: int = 0) -> str:
    """The path of one image in the tree."""
    return [name for name in files if f"Data/CLS-LOC/{split}/" in name][number]


# every form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_shards(
    form: str, copies: dict[str, Path], official: dict[str, str], tmp_path: Path, made: MadeSet
) -> None:
    """Images, labels and boxes of both splits, found by themselves in the raw folder;
    all of it is verified.
    """
    layout = Layout(tmp_path, raw=copies[form])
    assert missing_archives(layout, validation_boxes=True) == ()
    annotated = annotate(layout, make_engine("processes", 2), validation=True)
    assert [each.totals.boxes for each in annotated.splits] == [
        sum(len(each.lines) for each in annotations)
        for annotations in (made.annotations, made.validation_annotations)
    ]
    following = command("convert", tmp_path, (("raw", copies[form]),))
    assert status(Layout(tmp_path)).following == following  # not to download what is there
    assert layout.boxes_csv.read_bytes() == made.boxes_csv
    assert layout.validation_boxes_csv.read_bytes() == boxes_csv(made.validation_annotations)
    convert(layout, make_engine("processes", 2), PART)
    assert digests(layout) == official
    assert verify(layout, ENGINE).problems == ()
    assert [
        each.state for each in status(layout).stages if each.stage in ("download", "annotate")
    ] == ["done"] * 2


@pytest.mark.parametrize(
    ("form", "at"), [("zip, stored", 0), ("zip, deflated", 0.5)], ids=["no image", "deflated"]
)
def test_another_image_of_the_same_length_is_noticed(
    form: str,
    at: float,
    official: dict[str, str],
    copies: dict[str, Path],
    made: MadeSet,
    files: Tree,
    tmp_path: Path,
) -> None:
    """A copy with other bytes in one image: its shard is not taken for the same,
    and the place is named.
    """
    layout = Layout(tmp_path / "data", raw=copies["official archives"])
    convert(layout, ENGINE, PLAIN)
    name = image(files, "val", 3)
    other = bytearray(files[name])
    other[int(len(other) * at)] ^= 1
    FORMS[form](tmp_path / "raw", made, files | {name: bytes(other)})
    with pytest.raises(UsageError) as caught:
        convert(Layout(tmp_path / "data", raw=tmp_path / "raw"), ENGINE, PLAIN)
    assert "1 shard was made from other inputs" in caught.value.what
    assert "other bytes" in caught.value.detail


# which one is taken -------------------------------------------------------------------------------


END = "is cut, damaged at its end, or followed by other bytes"
LATER = "is damaged, or can't be read in place"


@pytest.mark.parametrize(
    ("change", "what"), [("cut", END), ("longer", END), ("later", LATER), ("other", "is damaged")]
)
def test_a_zip_that_is_not_whole_is_not_done(
    copies: dict[str, Path], tmp_path: Path, change: str, what: str
) -> None:
    """Its end tells: status proposes to fetch it,
    annotate and convert say how much is there and what to do.
    """
    layout = Layout(tmp_path)
    layout.raw_dir.mkdir()
    data = (copies["zip, deflated"] / kaggle.ZIP.filename).read_bytes()
    changed = {
        "cut": data[: len(data) // 2],
        "longer": data + bytes(1 << 17),
        "later": bytes(100) + data,
        "other": bytes(range(256)) * 100,
    }
    content = changed[change]
    layout.archive_path(kaggle.ZIP).write_bytes(content)
    found, size = status(layout), size_text(len(content))
    detail = f"images in Kaggle's zip, which {what} ({size})"
    assert found.stages[0] == StageStatus("download", "partly", detail)
    assert found.following == f"imagenet-prep download {tmp_path} --source kaggle"
    for stage in (annotate, convert):
        with pytest.raises(InputError) as caught:
            stage(layout, ENGINE)
        if what == END:
            assert caught.value.what.endswith(f"challenge.zip {END}: it has {size}")
            assert (
                caught.value.detail
                == "expected a zip that ends with its list of files (the central directory)"
            )
        if change != "later":
            assert caught.value.hint.endswith(found.following)


def test_what_changed_since_it_was_listed_is_listed_again(
    made: MadeSet, files: Tree, tmp_path: Path
) -> None:
    """The listing is kept for one file as it was: another one under its name is read."""
    path = write_zip(tmp_path, files)
    source = kaggle.KaggleZip(path, "validation")
    first = source.catalog(ENGINE, Silent())
    assert catalog_rows(source.catalog(ENGINE, Silent())) == catalog_rows(first)
    gone = image(files, "val")
    write_zip(tmp_path, {name: content for name, content in files.items() if name != gone})
    assert len(source.catalog(ENGINE, Silent())) == len(first) - 1


# what lies where it should not --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["zip, deflated", "Kaggle's tree"])
def test_an_image_in_another_class_is_refused(
    form: str, made: MadeSet, files: Tree, tmp_path: Path
) -> None:
    """Sorted wrongly: never guess."""
    name = image(files, "train")
    other = made.wnids[1] if made.wnids[0] in name else made.wnids[0]
    wrong = f"ILSVRC/Data/CLS-LOC/train/{other}/{name.rpartition('/')[2]}"
    FORMS[form](tmp_path / "raw", made, files | {wrong: b"x"})
    with pytest.raises(InputError, match="not in the folder of the class in its name") as caught:
        convert(Layout(tmp_path / "data", raw=tmp_path / "raw"), ENGINE, PART)
    assert wrong in caught.value.what
    assert ("get another copy" in caught.value.hint) is form.startswith("zip")


@pytest.mark.parametrize("form", ["zip, stored", "Kaggle's tree"])
def test_other_files_are_left_alone(
    form: str, official: dict[str, str], made: MadeSet, files: Tree, tmp_path: Path
) -> None:
    """Thumbnails, classes beyond the 1000, checksums, other trees, names that are no text."""
    wnid = made.wnids[0]
    others = (
        "Data/CLS-LOC/train/README",
        f"Data/CLS-LOC/train/{wnid}/Thumbs.db",
        "Data/CLS-LOC/val/x.txt",
    )
    others += (
        "Data/CLS-LOC/train/n00004475/n00004475_1.JPEG",
        "Data/DET/train/a.JPEG",
        "Annotations/DET/a.xml",
    )
    others += (
        f"Data/CLS-LOC/train/{wnid}/deep/{wnid}_1.JPEG",
        f"Annotations/CLS-LOC/train/{wnid}/README",
    )
    FORMS[form](tmp_path / "raw", made, files | {f"ILSVRC/{name}": b"other" for name in others})
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    annotate(layout, ENGINE, validation=True)
    convert(layout, ENGINE, PART)
    assert digests(layout) == official


@pytest.mark.parametrize("kind", ["image", "annotation"])
def test_a_file_twice_is_refused(kind: str, files: Tree, tmp_path: Path) -> None:
    """The same image, or the annotation of the same image, twice in one archive."""
    name = image(files, "val") if kind == "image" else next(iter(files))
    path = write_zip(tmp_path, files)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, files[name])
    with pytest.raises(InputError, match="twice") as caught:
        (convert if kind == "image" else annotate)(Layout(tmp_path / "data", raw=tmp_path), ENGINE)
    assert name.rpartition("/")[2] in caught.value.what


# copies that can't give the same ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "maker", "split"),
    [
        (
            "imagenet2012/5.1.0/imagenet2012-{}.tfrecord-00000-of-01024",
            "TensorFlow Datasets",
            "train",
        ),
        ("imagenet1k-{}-0000.tar", "timm's webdataset", "validation"),
    ],
)
def test_a_copy_that_was_encoded_again_is_refused(
    name: str, maker: str, split: str, copies: dict[str, Path], tmp_path: Path
) -> None:
    """By convert and by repair, with the reason,
    unless the same split is there in a form that can be taken.
    """
    layout = Layout(tmp_path)
    layout.raw_dir.mkdir()
    key = "ILSVRC2012_img_train.tar" if split == "validation" else "ILSVRC2012_img_val.tar"
    (layout.raw_dir / key).symlink_to(copies["official archives"] / key)
    save(layout.raw_dir / name.format(split), b"")
    with pytest.raises(InputError) as caught:
        convert(layout, ENGINE, PLAIN)
    assert name.format(split) in caught.value.what
    assert f"is named like the copy of {maker}" in caught.value.what
    assert "23 train images again" in str(caught.value.detail)
    zipped = layout.raw_dir / kaggle.ZIP.filename
    zipped.symlink_to(copies["zip, stored"] / zipped.name)
    convert(layout, ENGINE, PLAIN)
    zipped.unlink()
    shard = existing(tmp_path, f"{split}-*-of-*")[0]
    shard.unlink()
    with pytest.raises(InputError, match=f"is named like the copy of {maker}"):
        verify_and_repair(layout, ENGINE)


# image folders from it ----------------------------------------------------------------------------


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in existing(folder, "**/*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("form", "engine"), [("zip, stored", "threads"), ("zip, deflated", "processes")]
)
def test_untar_sorts_any_copy_into_class_folders(
    form: str, engine: str, copies: dict[str, Path], tmp_path: Path
) -> None:
    """The same tree as of the official archives; a second run touches nothing,
    one file that has gone comes back.
    """
    layout = Layout(tmp_path, raw=copies[form])
    summary = untar(layout, make_engine(engine, 2))
    official = (
        tree_of(copies["image folders"] / "train"),
        tree_of(copies["image folders"] / "validation"),
    )
    assert tuple(tree_of(layout.images_dir(split)) for split in ("train", "validation")) == official
    assert [(each.split, each.written) for each in summary.splits] == [
        (split, len(files)) for split, files in zip(("train", "validation"), official, strict=True)
    ]
    assert not layout.raw_partial_dir.exists()
    before = {path: path.stat().st_mtime_ns for path in existing(layout.own_raw_dir, "**/*")}
    assert untar(layout, ENGINE).written == 0
    assert {
        path: path.stat().st_mtime_ns for path in existing(layout.own_raw_dir, "**/*")
    } == before
    gone = existing(layout.images_dir("train"), "*/*.JPEG")[7]
    gone.write_bytes(b"cut")
    assert untar(layout, ENGINE).written == 1
    assert tree_of(layout.images_dir("train")) == official[0]


def test_a_copy_that_changes_under_untar_is_refused(
    copies: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something writes to it after it was listed: nothing that it gives then counts."""
    layout = Layout(tmp_path / "data", raw=tmp_path / "raw")
    shutil.copytree(copies["zip, deflated"], tmp_path / "raw")
    true_read = Catalog.read

    def read(self: Catalog, number: int, reader: Reader) -> Buffer:
        os.utime(self.container(number).path, ns=(5, 5))
        return true_read(self, number, reader)

    monkeypatch.setattr(Catalog, "read", read)
    with pytest.raises(InputError, match="has changed since it was first looked at"):
        untar(layout, ENGINE)
    assert not list(layout.images_dir("train").glob("*"))
