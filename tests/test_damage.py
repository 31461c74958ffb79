"""Damage that no CRC sees: each class of it is called by its name, with and without a manifest."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE, PART, annotated, data_of, write

from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.datasets import order
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Item, Problem, ProblemKind
from imagenet_prep.stages.verify import verify
from imagenet_prep.storage.layout import Layout, shard_name
from imagenet_prep.tfrecord import inception
from imagenet_prep.tfrecord.example import (
    BytesList,
    Feature,
    Int64List,
    encode_example,
    parse_example,
)
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.once

tf = tf_fixture.tf

K = ProblemKind
SHARD, OTHER = "train-00003-of-00008", "train-00006-of-00008"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """Shards of ``made_tiny`` with their manifest and indexes. Read only."""
    return made(tmp_path_factory.mktemp("sound"), made_tiny, PART)


def made(folder: Path, source: MadeSet, options: ConvertOptions) -> Path:
    """A folder with the shards of a made set."""
    return annotated(folder, source, options).data_dir


@pytest.fixture
def layout(tmp_path: Path, sound: Path) -> Layout:
    """The test's own copy of ``sound``."""
    shutil.copytree(sound, tmp_path / "data")
    return Layout(tmp_path / "data")


@pytest.fixture
def bare(layout: Layout) -> Layout:
    """The same without manifest, journal and indexes: shards from anywhere."""
    shutil.rmtree(layout.state_dir)
    return layout


def look(layout: Layout) -> Verdict:
    """A full verify that takes shards without a manifest for a part."""
    return verify(layout, ENGINE, allow_incomplete=True)


def rewrite(layout: Layout, change: Callable[[dict[str, Feature]], object], glob: str = "*-of-*") -> None:
    """Change the features of every record."""
    for path in existing(layout.data_dir, glob):
        records = []
        for data in data_of(path):
            features = parse_example(memoryview(data))
            change(features)
            records.append(encode_example(features))
        write(path, records)


def one(problems: Sequence[Problem]) -> Problem:
    """The only problem."""
    assert len(problems) == 1, problems
    return problems[0]


# our own shards, which the manifest and the index know ---------------------------------------------------------


def test_every_record_dropped_doubled_swapped(layout: Layout) -> None:
    """The first, some and the last record dropped, doubled and swapped with the next: the right one is named."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    names = [read_record(memoryview(data)).filename for data in records]
    for k in (0, 1, len(records) // 2, len(records) - 2, len(records) - 1):
        write(path, records[:k] + records[k + 1 :])
        problem = one(look(layout).problems)
        assert (problem.kind, problem.record, problem.image, problem.expected) == (
            *(K.MISSING_RECORD, k),
            *(names[k], names[k]),
        )
        write(path, records[: k + 1] + records[k:])
        problem = one(look(layout).problems)
        assert (problem.kind, problem.record, problem.image) == (K.EXTRA_RECORD, k + 1, names[k])
        if k + 1 < len(records):
            write(path, [*records[:k], records[k + 1], records[k], *records[k + 2 :]])
            problem = one(look(layout).problems)
            assert (problem.kind, problem.record) == (K.SWAPPED_RECORDS, k)
            assert f"records {k} and {k + 1} are swapped" in problem.detail


def test_records_lost_and_added(layout: Layout) -> None:
    """Several faults in one shard are counted."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, [*records[:3], *records[5:20], records[0], *records[21:]])
    problem, duplicate = look(layout).problems
    assert (problem.kind, problem.record) == (K.WRONG_CONTENT, 3)
    assert (duplicate.kind, duplicate.record, duplicate.got) == (K.DUPLICATE, 18, f"record 0 of {SHARD}")
    assert "3 records are missing and 1 were not written" in problem.detail


def test_a_shard_of_another_conversion(layout: Layout, tmp_path: Path, made_tiny: MadeSet) -> None:
    """A shard of the same images in another quality is told from a damaged one, with or without its own index."""
    options = PART.replace(quality=40)
    other = Layout(made(tmp_path / "other", made_tiny, options))
    shutil.copy(other.shard_path(SHARD), layout.shard_path(SHARD))
    problem = one(look(layout).problems)
    assert (problem.kind, problem.subject) == (K.OTHER_CONVERSION, SHARD)
    assert "a shard of another conversion" in problem.detail
    for path in layout.index_paths(SHARD):
        shutil.copy(other.index_dir / path.name, path)
    problem = one(look(layout).problems)
    assert (problem.kind, problem.subject) == (K.WRONG_CONTENT, SHARD)
    assert "no sound index" in problem.detail


# labels --------------------------------------------------------------------------------------------------------


def shift(features: dict[str, Feature]) -> None:
    """Labels from 0."""
    label = features["image/class/label"]
    assert isinstance(label, Int64List)
    boxes = features["image/object/bbox/label"]
    features["image/class/label"] = Int64List((label.values[0] - 1,))
    features["image/object/bbox/label"] = Int64List((label.values[0] - 1,) * len(boxes.values))


def permute(features: dict[str, Feature]) -> None:
    """The devkit's ids for labels."""
    wnid = features["image/class/synset"]
    assert isinstance(wnid, BytesList)
    number = facts.devkit_ids()[str(wnid.values[0], "ascii")]
    features["image/class/label"] = Int64List((number,))
    features["image/object/bbox/label"] = Int64List((number,) * len(features["image/object/bbox/label"].values))


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [(shift, K.ZERO_BASED_LABELS, "labels count from 0"), (permute, K.DEVKIT_LABELS, "labels are the devkit's ids")],
)
def test_labels_wrong_in_one_way(
    bare: Layout, change: Callable[[dict[str, Feature]], None], kind: ProblemKind, word: str
) -> None:
    """Labels from 0, or by the devkit's ids, are one problem a split, and called by name."""
    rewrite(bare, change)
    problems = look(bare).problems
    assert [(problem.kind, problem.subject) for problem in problems] == [(kind, "train"), (kind, "validation")]
    assert problems[0].detail.startswith(f"{word}: 300 of 300 records")
    assert problems[0].count == 300
    assert problems[0].remedy


def test_devkit_labels_with_the_wrong_synset(bare: Layout) -> None:
    """The classic mistake: the ground truth of validation taken for labels, and all else looked up by them."""

    def change(features: dict[str, Feature]) -> None:
        permute(features)
        label = features["image/class/label"].values[0]
        assert isinstance(label, int)
        wnid = facts.synsets()[label - 1]
        features["image/class/synset"] = BytesList((wnid.encode(),))
        features["image/class/text"] = BytesList((facts.texts()[wnid].encode(),))

    rewrite(bare, change, "validation-*")
    problem = one(look(bare).problems)
    assert (problem.kind, problem.subject, problem.count) == (K.DEVKIT_LABELS, "validation", 80)


def test_one_label_less_one_is_a_wrong_label(bare: Layout) -> None:
    """One record whose label is one less is chance, and has a wrong label."""
    path = bare.shard_path(SHARD)
    records = data_of(path)
    features = parse_example(memoryview(records[4]))
    shift(features)
    write(path, [*records[:4], encode_example(features), *records[5:]])
    problem = one(look(bare).problems)
    assert (problem.kind, problem.subject, problem.record) == (K.WRONG_LABEL, SHARD, 4)


# shards from anywhere: flavours and order ----------------------------------------------------------------------

BOXES = tuple(f"image/object/bbox/{part}" for part in ("xmin", "xmax", "ymin", "ymax", "label"))


def without(*names: str) -> Callable[[dict[str, Feature]], None]:
    """A change that takes features out."""

    def change(features: dict[str, Feature]) -> None:
        for name in names:
            del features[name]

    return change


def put(name: str, feature: Feature) -> Callable[[dict[str, Feature]], None]:
    """A change that sets a feature."""
    return lambda features: features.__setitem__(name, feature)


def prefix_name(features: dict[str, Feature]) -> None:
    """A path in the place of a file name, without suffix."""
    name = str(features["image/filename"].values[0], "ascii")  # type: ignore[arg-type]
    features["image/filename"] = BytesList((f"/data/imagenet/{name[:-5]}".encode(),))


@pytest.mark.parametrize(
    ("change", "flavour", "differences"),
    [
        (without(), "Inception", ()),
        (without(*BOXES), "Inception without boxes", ()),
        (without(*BOXES, "image/class/text"), "TPU", ()),
        (put("image/ID", Int64List((5,))), "Inception", ("image/ID is extra",)),
        (without("image/colorspace"), "Inception", ("image/colorspace is missing",)),
        (put("image/format", BytesList((b"jpg",))), "Inception", ("image/format is 'jpg', not 'JPEG'",)),
        (put("image/class/text", BytesList((b"?",))), "Inception", ("image/class/text holds other words",)),
        (prefix_name, "Inception", ("image/filename is not the plain file name",)),
    ],
)
def test_flavours(
    bare: Layout, change: Callable[[dict[str, Feature]], None], flavour: str, differences: tuple[str, ...]
) -> None:
    """Records of other makers are recognised, found right as what they are, and their differences listed."""
    rewrite(bare, change)
    verdict = look(bare)
    assert verdict.problems == ()
    assert (verdict.flavour, verdict.differences) == (flavour, differences)
    assert verdict.order == "canonical"


def test_a_record_that_breaks_what_its_flavour_promises(bare: Layout) -> None:
    """Where all records have a feature, one that lacks it is a problem."""
    rewrite(bare, without(*BOXES))
    path = bare.shard_path(SHARD)
    records = data_of(path)
    features = parse_example(memoryview(records[2]))
    del features["image/height"]
    write(path, [*records[:2], encode_example(features), *records[3:]])
    problem = one(look(bare).problems)
    assert (problem.kind, problem.record) == (K.BAD_FIELD, 2)
    assert "image/height is missing" in problem.detail


def test_shuffled_shards_written_by_tensorflow(bare: Layout, tmp_path: Path, tf: Any) -> None:
    """Another order, by TensorFlow's own writer and encoding, without a manifest: right, and not canonical."""
    folder = tmp_path / "shuffled"
    folder.mkdir()
    for split in facts.SPLITS:
        records = [data for path in existing(bare.data_dir, f"{split}-*") for data in data_of(path)]
        random.Random(7).shuffle(records)
        for index, (start, stop) in enumerate(pairwise(order.bounds(len(records), 8))):
            with tf.io.TFRecordWriter(str(folder / shard_name(split, index, 8))) as writer:
                for data in records[start:stop]:
                    writer.write(tf.train.Example.FromString(data).SerializeToString())
    verdict = look(Layout(folder))
    assert verdict.problems == ()
    assert verdict.order == "not canonical"
    assert verdict.fingerprint != look(bare).fingerprint


def test_fingerprint(layout: Layout, tmp_path: Path, made_tiny: MadeSet) -> None:
    """The fingerprint is the same for compressed shards and for any maker's, and another one for other records."""
    options = PART.replace(compression="gzip")
    own = look(layout).fingerprint
    assert len(own) == 64
    assert look(Layout(made(tmp_path / "gzip", made_tiny, options))).fingerprint == own
    shutil.rmtree(layout.state_dir)
    assert look(layout).fingerprint == own
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, [records[1], records[0], *records[2:]])
    assert look(layout).fingerprint not in ("", own)
    path.unlink()
    assert look(layout).fingerprint == ""


def test_exchanged_shards_without_a_manifest(bare: Layout) -> None:
    """The order of all other shards tells two exchanged ones, and a record lost, doubled or swapped in one."""
    one_path, other_path = bare.shard_path(SHARD), bare.shard_path(OTHER)
    aside = one_path.rename(bare.data_dir / "aside")
    other_path.rename(one_path)
    aside.rename(other_path)
    first, second = look(bare).problems
    assert (first.kind, first.subject, first.got) == (K.EXCHANGED_SHARD, SHARD, OTHER)
    assert (second.kind, second.subject, second.got) == (K.EXCHANGED_SHARD, OTHER, SHARD)
    assert second.remedy == f"rename it to {SHARD}"


def test_swapped_records_without_a_manifest(bare: Layout) -> None:
    """Two neighbours that are swapped in one shard are found by the order of all others."""
    path = bare.shard_path(SHARD)
    records = data_of(path)
    write(path, [*records[:4], records[5], records[4], *records[6:]])
    problem = one(look(bare).problems)
    assert (problem.kind, problem.subject, problem.record) == (K.SWAPPED_RECORDS, SHARD, 4)
    assert "by the order of all other shards" in problem.detail


# all of validation ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """All 50,000 validation records in 128 shards, in canonical order, the same few images in them. Read only."""
    folder = tmp_path_factory.mktemp("validation")
    source = sorted(made_tiny.archives["validation"].parent.glob("*img_val.tar"))[0]
    encoded = next(_images(source))
    wnids = facts.validation_wnids()
    listed = sorted(range(1, 50_001), key=lambda number: (wnids[number - 1], number))
    rows = [listed[i] for i in order.shuffled(50_000, order.SEED)]
    for index, (start, stop) in enumerate(pairwise(order.bounds(50_000, 128))):
        write(folder / shard_name("validation", index, 128), [_record(n, encoded) for n in rows[start:stop]])
    return folder


def _images(archive: Path) -> Iterator[bytes]:
    import tarfile

    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            yield file.read()


def _record(number: int, encoded: bytes, shift: int = 0) -> bytes:
    wnid = facts.validation_wnids()[number - 1]
    item = Item(
        filename=facts.validation_filename(number),
        label=facts.labels()[wnid] - shift,
        wnid=wnid,
        text=facts.texts()[wnid],
        boxes=(),
    )
    head, tail = inception.record_parts(item, 16, 16, len(encoded))
    return head + encoded + tail


def of_validation(folder: Path) -> tuple[list[Problem], Verdict]:
    """The problems of validation: there is no train split."""
    verdict = verify(Layout(folder), make_engine("processes", 2))
    return [problem for problem in verdict.problems if "validation" in problem.subject], verdict


def linked(source: Path, folder: Path) -> Path:
    """A folder of links to the same shards, to be replaced one by one."""
    folder.mkdir()
    for path in existing(source, "*-of-*"):
        (folder / path.name).hardlink_to(path)
    return folder


def replace(path: Path, records: Sequence[bytes]) -> None:
    """Put another file in the place of a link."""
    path.unlink()
    write(path, records)


def test_all_of_validation(validation: Path, tmp_path: Path) -> None:
    """All 50,000 images in canonical order have no problem; the first record is the published one."""
    problems, verdict = of_validation(linked(validation, tmp_path / "v"))
    sizes = {problem.kind for problem in problems}
    assert sizes <= {K.SIZE_MISMATCH}, problems[:3]
    assert verdict.order == "canonical"
    first = read_record(memoryview(data_of(validation / "validation-00000-of-00128")[0]))
    assert (first.filename, first.label) == ("ILSVRC2012_val_00042559.JPEG", 550)
    missing = next(problem for problem in verdict.problems if problem.subject == "train")
    assert (missing.kind, missing.count) == (K.MISSING_IMAGE, 1_281_167)


def test_one_validation_image_is_missing(validation: Path, tmp_path: Path) -> None:
    """Without any manifest the one image that is missing is named, with shard, record and byte offset."""
    folder = linked(validation, tmp_path / "v")
    path = folder / "validation-00017-of-00128"
    records = data_of(path)
    name = read_record(memoryview(records[100])).filename
    replace(path, records[:100] + records[101:])
    problem = one(of_validation(folder)[0])
    assert (problem.kind, problem.subject, problem.record, problem.image) == (
        *(K.MISSING_RECORD, path.name),
        *(100, name),
    )


def test_a_validation_class_is_missing(validation: Path, tmp_path: Path) -> None:
    """A class without an image is named with its words."""
    folder = linked(validation, tmp_path / "v")
    for path in existing(folder, "*-of-*"):
        records = data_of(path)
        kept = [data for data in records if read_record(memoryview(data)).wnid != "n01440764"]
        if kept != records:
            replace(path, kept)
    problem = one(of_validation(folder)[0])
    assert (problem.kind, problem.subject) == (K.MISSING_CLASS, "validation")
    assert problem.detail == "1 class has no image: n01440764 (tench, Tinca tinca)"


def test_many_shards_are_missing(validation: Path, tmp_path: Path) -> None:
    """Of more missing shards than anyone reads the first are named and the others counted."""
    folder = linked(validation, tmp_path / "v")
    for index in range(100):
        (folder / shard_name("validation", index, 128)).unlink()
    problems, verdict = of_validation(folder)
    missing = [problem for problem in problems if problem.kind is K.MISSING_SHARD]
    assert len(missing) == 21

    assert missing[-1].detail == "and 80 more of this kind in 80 shards"
    assert len([name for name in verdict.faulty if name.startswith("validation")]) == 100


def test_records_in_another_order(layout: Layout) -> None:
    """A shard whose records were shuffled is named as such."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, [*records[:3], *reversed(records[3:])])
    problem = one(look(layout).problems)
    assert (problem.kind, problem.record) == (K.SWAPPED_RECORDS, 3)
    assert "in another order" in problem.detail


def test_labels_from_0_with_right_labels_of_boxes(bare: Layout) -> None:
    """Boxes that have the right label are not at fault for the record's wrong one."""

    def change(features: dict[str, Feature]) -> None:
        boxes = features["image/object/bbox/label"]
        shift(features)
        features["image/object/bbox/label"] = boxes

    rewrite(bare, change)
    assert [problem.kind for problem in look(bare).problems] == [K.ZERO_BASED_LABELS] * 2
