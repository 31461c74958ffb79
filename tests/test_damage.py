"""Damage that no CRC sees, copies among it: each class of it is called by its name,
with and without a manifest.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, PART, annotated, copied, data_of, write
from running import command_here

from imagenet_prep import Layout, annotate, convert, make_engine, verify
from imagenet_prep.checks.verdict import Verdict
from imagenet_prep.datasets import order
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.model import Item, Problem, ProblemKind
from imagenet_prep.storage.layout import shard_name
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

K = ProblemKind
SHARD, OTHER = "train-00003-of-00008", "train-00006-of-00008"


@pytest.fixture
def bare(layout: Layout) -> Layout:
    """The same without manifest, journal and indexes: shards from anywhere."""
    shutil.rmtree(layout.state_dir)
    return layout


def look(layout: Layout) -> Verdict:
    """A full verify that takes shards without a manifest for a part."""
    return verify(layout, ENGINE, allow_incomplete=True)


def changed(data: bytes, change: Callable[[dict[str, Feature]], object]) -> bytes:
    """The record with other features."""
    features = parse_example(memoryview(data))
    change(features)
    return encode_example(features)


def rewrite(
    layout: Layout, change: Callable[[dict[str, Feature]], object], glob: str = "*-of-*"
) -> None:
    """Change the features of every record."""
    for path in existing(layout.data_dir, glob):
        write(path, [changed(data, change) for data in data_of(path)])


def one(problems: Sequence[Problem]) -> Problem:
    """The only problem."""
    assert len(problems) == 1, problems
    return problems[0]


# our own shards, which the manifest and the index know --------------------------------------------


def test_a_shard_of_another_conversion(layout: Layout, tmp_path: Path, made_tiny: MadeSet) -> None:
    """A shard of the same images in another quality is told from a damaged one,
    with or without its own index.
    """
    other = annotated(tmp_path / "other", made_tiny, PART.replace(quality=40))
    shutil.copy(other.shard_path(SHARD), layout.shard_path(SHARD))
    problem = one(look(layout).problems)
    assert (problem.kind, problem.subject) == (K.OTHER_CONVERSION, SHARD)
    assert "perhaps a shard of another conversion" in problem.detail
    for path in layout.index_paths(SHARD):
        shutil.copy(other.index_dir / path.name, path)
    problem = one(look(layout).problems)
    assert (problem.kind, problem.subject) == (K.OTHER_CONVERSION, SHARD)
    assert problem.detail.startswith("it fits its own index file, and manifest.json lists other")


@pytest.mark.parametrize("exchanged", ["manifest", "manifest alone", "no index", "state"])
def test_a_manifest_of_another_set(
    layout: Layout, tmp_path: Path, made_tiny: MadeSet, exchanged: str
) -> None:
    """It is one problem, and no shard is called damaged; the advised command runs."""
    other = annotated(tmp_path / "other", made_tiny, PART.replace(quality=40))
    if exchanged == "state":
        shutil.rmtree(layout.state_dir)
        shutil.copytree(other.state_dir, layout.state_dir)
    else:
        shutil.copy(other.manifest_path, layout.manifest_path)
    if exchanged in ("manifest alone", "no index"):
        shutil.rmtree(layout.plan_path.parent)
    if exchanged == "no index":
        shutil.rmtree(layout.index_dir)
    verdict = look(layout)
    problem = one(verdict.problems)
    assert (verdict.level, problem.kind, problem.subject) == (
        "damaged",
        K.BAD_MANIFEST,
        "manifest.json",
    )
    if exchanged == "manifest":
        assert "these differ: --quality" in problem.detail
        assert "; or, if you still have the raw data, move this manifest" in problem.remedy
        return
    assert problem.detail == (
        "it lists other records than the 16 shards here: it is of another set, or the shards are"
    )
    assert f"restore the folder {layout.state_dir} " in problem.remedy
    repair = problem.remedy.partition(" that the manifest lists: ")[2]
    if exchanged == "state":  # the plan knows the raw data
        command_here(*shlex.split(repair)[1:])
        assert not look(layout).problems


# labels -------------------------------------------------------------------------------------------


def shift(features: dict[str, Feature]) -> None:
    """Labels from 0."""
    label = features["image/class/label"]
    assert isinstance(label, Int64List)
    relabel(features, label.values[0] - 1)


def relabel(features: dict[str, Feature], number: int) -> None:
    """Another label of the image and its boxes."""
    features["image/class/label"] = Int64List((number,))
    features["image/object/bbox/label"] = Int64List(
        (number,) * len(features["image/object/bbox/label"].values)
    )


def shift_but_boxes(features: dict[str, Feature]) -> None:
    """Labels from 0, with the right labels of boxes, which are not at fault."""
    boxes = features["image/object/bbox/label"]
    shift(features)
    features["image/object/bbox/label"] = boxes


def permute(features: dict[str, Feature]) -> None:
    """The devkit's ids for labels."""
    wnid = features["image/class/synset"]
    assert isinstance(wnid, BytesList)
    relabel(features, facts.devkit_ids()[str(wnid.values[0], "ascii")])


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        (shift, K.ZERO_BASED_LABELS, "labels count from 0"),
        (shift_but_boxes, K.ZERO_BASED_LABELS, "labels count from 0"),
        (permute, K.DEVKIT_LABELS, "labels are the devkit's ids"),
    ],
)
def test_labels_wrong_in_one_way(
    bare: Layout, change: Callable[[dict[str, Feature]], None], kind: ProblemKind, word: str
) -> None:
    """Labels from 0, or by the devkit's ids, are one problem a split, and called by name."""
    rewrite(bare, change)
    problems = look(bare).problems
    assert [(problem.kind, problem.subject) for problem in problems] == [
        (kind, "train"),
        (kind, "validation"),
    ]
    assert problems[0].detail.startswith(f"{word}: 300 of 300 records")
    assert problems[0].count == 300
    assert problems[0].remedy


def test_labels_wrong_in_one_way_are_counted_without_others(bare: Layout) -> None:
    """Most train labels count from 0, and those of one shard are the devkit's ids."""
    rewrite(bare, shift, "train-*")
    path = bare.shard_path(SHARD)
    records = data_of(path)
    rewrite(bare, lambda features: relabel(features, 999), path.name)
    problem = one(look(bare).problems)
    others = len(records)
    assert problem.detail == (
        f"labels count from 0: {300 - others} of 300 records have their class's label minus 1; "
        f"{others} have another wrong label"
    )
    assert problem.count == 300 - others
    rewrite(bare, permute, path.name)
    problem = one(look(bare).problems)
    assert problem.count < 300


def test_devkit_labels_with_the_wrong_synset(bare: Layout) -> None:
    """The classic mistake: the ground truth of validation taken for labels,
    and all else looked up by them.
    """

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


# shards from anywhere: flavours and order ---------------------------------------------------------

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
        (
            put("image/format", BytesList((b"jpg",))),
            "Inception",
            ("image/format is 'jpg', not 'JPEG'",),
        ),
        (
            put("image/class/text", BytesList((b"?",))),
            "Inception",
            ("image/class/text holds other words",),
        ),
        (prefix_name, "Inception", ("image/filename is not the plain file name",)),
    ],
)
def test_flavours(
    bare: Layout,
    change: Callable[[dict[str, Feature]], None],
    flavour: str,
    differences: tuple[str, ...],
) -> None:
    """Records of other makers are recognised, found right as what they are,
    and their differences listed.
    """
    rewrite(bare, change)
    verdict = look(bare)
    assert verdict.problems == ()
    assert (verdict.flavour, verdict.differences) == (flavour, differences)
    assert verdict.order == "canonical"


@pytest.mark.parametrize("field", ["image/filename", "image/class/synset", "image/class/text"])
def test_an_empty_text_is_called_so(bare: Layout, field: str) -> None:
    """A sentence that ends with nothing would look cut."""
    path = bare.shard_path(SHARD)
    records = data_of(path)
    write(path, [changed(records[0], put(field, BytesList((b"",)))), *records[1:]])
    details = [problem.detail for problem in look(bare).problems]
    found = next(detail for detail in details if f"{field}: expected " in detail)
    assert found.endswith((", got an empty text", ", got ''"))


def test_a_record_that_breaks_what_its_flavour_promises(bare: Layout) -> None:
    """Where all records have a feature, one that lacks it is a problem."""
    rewrite(bare, without(*BOXES))
    path = bare.shard_path(SHARD)
    records = data_of(path)
    write(path, [*records[:2], changed(records[2], without("image/height")), *records[3:]])
    problem = one(look(bare).problems)
    assert (problem.kind, problem.record) == (K.BAD_FIELD, 2)
    assert "image/height is missing" in problem.detail


def test_fingerprint(layout: Layout, tmp_path: Path, made_tiny: MadeSet) -> None:
    """The fingerprint is the same for compressed shards and for any maker's,
    and another one for other records.
    """
    own = look(layout).fingerprint
    assert len(own) == 64
    assert (
        look(annotated(tmp_path / "gzip", made_tiny, PART.replace(compression="gzip"))).fingerprint
        == own
    )
    shutil.rmtree(layout.state_dir)
    assert look(layout).fingerprint == own
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, [records[1], records[0], *records[2:]])
    assert look(layout).fingerprint not in ("", own)
    path.unlink()
    assert look(layout).fingerprint == ""


def test_exchanged_shards_without_a_manifest(bare: Layout) -> None:
    """The order of the other shards tells two exchanged ones."""
    one_path, other_path = bare.shard_path(SHARD), bare.shard_path(OTHER)
    aside = one_path.rename(bare.data_dir / "aside")
    other_path.rename(one_path)
    aside.rename(other_path)
    first, second = look(bare).problems
    assert (first.kind, first.subject, first.got) == (K.EXCHANGED_SHARD, SHARD, OTHER)
    assert (second.kind, second.subject, second.got) == (K.EXCHANGED_SHARD, OTHER, SHARD)
    assert second.remedy == (
        f"move the shard that is named {SHARD} away, then rename this one to {SHARD}"
    )
    moved = one_path.rename(bare.data_dir / "moved")
    other_path.rename(one_path)
    moved.rename(other_path)
    assert look(bare).problems == ()


CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], ProblemKind, int, str]] = {
    "a label less one": (lambda r: [*r[:4], changed(r[4], shift), *r[5:]], K.WRONG_LABEL, 4, ""),
    "neighbours swapped": (
        lambda r: [*r[:4], r[5], r[4], *r[6:]],
        K.SWAPPED_RECORDS,
        4,
        "by the order of 2016, which 7 of 8 shards have",
    ),
    "once more, next to itself": (lambda r: [r[0], *r], K.EXTRA_RECORD, 1, "it repeats record 0"),
    "once more, the last": (lambda r: [*r, r[-1]], K.EXTRA_RECORD, -1, "it repeats record "),
    "once more, elsewhere": (lambda r: [*r, r[2]], K.EXTRA_RECORD, -1, "it repeats record 2"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_one_shard_has_otherwise_is_one_problem(bare: Layout, name: str) -> None:
    """Called by its name, at its record; one label that is one less is chance, and wrong."""
    change, kind, record, said = CHANGES[name]
    path = bare.shard_path(SHARD)
    records = data_of(path)
    write(path, change(records))
    problem = one(look(bare).problems)
    assert (problem.kind, problem.subject, problem.record) == (
        kind,
        SHARD,
        len(records) if record < 0 else record,
    )
    assert said in problem.detail


# the order of all shards --------------------------------------------------------------------------

ANOTHER_ORDER = "the records of 2016 in another order"


def reorder(layout: Layout) -> None:
    """Reverse the records of each split: all move, most to another shard,
    and each shard keeps its number of them.
    """
    for split in ("train", "validation"):
        paths = existing(layout.data_dir, f"{split}-*-of-*")
        records = [data_of(path) for path in paths]
        backwards = iter([data for shard in records for data in shard][::-1])
        for path, shard in zip(paths, records, strict=True):
            write(path, [next(backwards) for _ in shard])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (without(), ANOTHER_ORDER),
        (without(*BOXES), "not canonical"),
        (put("image/format", BytesList((b"jpg",))), "not canonical"),
        (shift, "not canonical"),
    ],
    ids=["records of 2016", "without boxes", "another constant", "other labels"],
)
def test_the_records_of_2016_in_another_order(
    bare: Layout, change: Callable[[dict[str, Feature]], None], word: str
) -> None:
    """The scripts of 2016 gave another order where a folder's listing was not sorted:
    only the order is another.
    """
    rewrite(bare, change)
    reorder(bare)
    assert look(bare).order == word


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"shuffle": False}, ANOTHER_ORDER),
        ({"seed": 7, "compression": "gzip"}, ANOTHER_ORDER),
        ({"seed": 7, "quality": 90}, "not canonical"),
        ({"seed": 7, "validation_boxes": True}, "not canonical"),
        ({"seed": 7, "classes": "imagenette", "relabel": 0}, "not canonical"),
    ],
)
def test_the_settings_tell_whether_the_records_are_those_of_2016(
    made_tiny: MadeSet, tmp_path: Path, options: dict[str, object], word: str
) -> None:
    """A set of another seed has the records of 2016, unless images, boxes or labels are others."""
    layout = Layout(tmp_path / "data", raw=made_tiny.archives["train"].parent)
    annotate(layout, ENGINE, validation="validation_boxes" in options)
    convert(layout, ENGINE, PART.replace(**options))  # type: ignore[arg-type]
    verdict = verify(layout, ENGINE)
    assert verdict.order == word
    assert verdict.level in ("incomplete", "as listed")
    shard = existing(layout.data_dir, "train-*-of-*")[0]
    shard.unlink()
    assert verify(layout, ENGINE).order != ANOTHER_ORDER


# all of validation --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """All 50,000 validation records in 128 shards, in canonical order, the same image in all.
    Read only.
    """
    layout, wnids, encoded = (
        Layout(tmp_path_factory.mktemp("v")),
        facts.validation_wnids(),
        photographs.tiny(1),
    )

    def record(number: int) -> bytes:
        wnid = wnids[number - 1]
        item = Item(
            facts.validation_filename(number), facts.labels()[wnid], wnid, facts.texts()[wnid], ()
        )
        head, tail = inception.record_parts(item, 16, 16, len(encoded))
        return head + encoded + tail

    listed = sorted(range(1, 50_001), key=lambda number: (wnids[number - 1], number))
    rows = [listed[i] for i in order.shuffled(50_000, order.SEED)]
    for index, (start, stop) in enumerate(pairwise(order.bounds(50_000, 128))):
        write(
            layout.shard_path(shard_name("validation", index, 128)), map(record, rows[start:stop])
        )
    return layout


def of_validation(layout: Layout) -> Problem:
    """The one problem of validation: there is no train split."""
    verdict = verify(layout, make_engine("processes", 2))
    return one([problem for problem in verdict.problems if "validation" in problem.subject])


def test_an_image_or_a_class_is_missing_in_all_of_validation(
    validation: Layout, tmp_path: Path
) -> None:
    """Without any manifest the image is named with shard and record, the class with its words."""
    layout = copied(validation, tmp_path / "v")
    path = layout.shard_path("validation-00017-of-00128")
    records = data_of(path)
    write(path, records[:100] + records[101:])
    problem, name = of_validation(layout), read_record(memoryview(records[100])).filename
    assert (problem.kind, problem.subject) == (K.MISSING_RECORD, path.name)
    assert (problem.record, problem.image) == (100, name)
    write(path, records)
    for path in existing(layout.data_dir, "*-of-*"):
        if b"n01440764" in path.read_bytes():
            write(path, [data for data in data_of(path) if b"n01440764" not in data])
    problem = of_validation(layout)
    assert (problem.kind, problem.subject) == (K.MISSING_CLASS, "validation")
    assert problem.detail == "1 class has no image: n01440764 (tench, Tinca tinca)"


def test_a_record_too_many_in_all_of_validation(validation: Layout, tmp_path: Path) -> None:
    """A record of another image is one record, and the totals agree with the number."""
    layout = copied(validation, tmp_path / "v")
    path = layout.shard_path("validation-00017-of-00128")
    records = data_of(path)
    name = put("image/filename", BytesList((b"cat.jpg",)))
    write(path, [*records, changed(records[0], name)])
    verdict = verify(layout, make_engine("processes", 2))
    problem = one([problem for problem in verdict.problems if problem.kind is K.WRONG_COUNT])
    assert problem.detail == "1 record too many: expected 50,000, got 50,001"
    assert problem.remedy == "get a sound copy of these shards"


# copies, without a manifest -----------------------------------------------------------------------


@pytest.mark.parametrize(("split", "distance"), [("train", 1), ("validation", 6)])
def test_copies_are_found(bare: Layout, split: str, distance: int) -> None:
    """Whichever shard is overwritten by whichever other one:
    both are named, since either may be the copy.
    """
    for index in (0, 4, 7):
        path = bare.shard_path(shard_name(split, index, 8))
        source = bare.shard_path(shard_name(split, (index + distance) % 8, 8))
        content = path.read_bytes()
        shutil.copy(source, path)
        problem = one(look(bare).problems)
        assert (problem.kind, problem.subject) == (K.DUPLICATE, split)
        names = " and ".join(sorted((path.name, source.name)))
        assert problem.detail.startswith(
            f"{names} hold the same records: at most one of these shards is right"
        )
        assert "second set" in problem.remedy
        path.write_bytes(content)


def test_shards_without_records_are_no_copies(made_tiny: MadeSet, tmp_path: Path) -> None:
    """Empty shards of a set with more shards than images are not called copies of each other."""
    layout = annotated(
        tmp_path / "data", made_tiny, PART.replace(train_shards=8, validation_shards=96)
    )
    layout.manifest_path.unlink()
    layout.journal_path.unlink()
    assert {problem.kind for problem in look(layout).problems} == {K.WRONG_COUNT, K.UNFINISHED}


def test_a_doubled_record_in_an_order_that_is_not_known(made_tiny: MadeSet, tmp_path: Path) -> None:
    """The same where the order is not the canonical one:
    the bytes tell, and another record of the image is none.
    """
    layout = annotated(tmp_path / "data", made_tiny, PART.replace(seed=7))
    shutil.rmtree(layout.state_dir)
    path = layout.shard_path(SHARD)
    records = data_of(path)
    other = changed(records[4], put("image/colorspace", BytesList((b"rgb",))))
    write(path, [*records[:9], other, *records[9:]])
    found = [problem for problem in look(layout).problems if problem.kind is K.DUPLICATE]
    assert [problem.detail.partition(": ")[2] for problem in found] == [
        f"this image is also record 4 of {SHARD}"
    ]
    write(path, [*records[:9], records[4], *records[9:]])
    problem = one(look(layout).problems)
    assert (problem.kind, problem.subject, problem.record) == (K.DUPLICATE, SHARD, 9)
    assert "it repeats record 4" in problem.detail


@pytest.mark.parametrize(("split", "source", "target"), [("train", 1, 6), ("validation", 6, 1)])
def test_a_record_of_another_shard(bare: Layout, split: str, source: int, target: int) -> None:
    """A record added to a shard where it does not belong is named there, not where it belongs."""
    home, path = (bare.shard_path(shard_name(split, index, 8)) for index in (source, target))
    stray, records = data_of(home)[5], data_of(path)
    write(path, [*records[:3], stray, *records[3:]])
    problem = one(look(bare).problems)
    assert (problem.kind, problem.subject, problem.record) == (K.DUPLICATE, path.name, 3)
    assert problem.image == read_record(memoryview(stray)).filename
    assert f"this image is also record 5 of {home.name}, where it belongs" in problem.detail


def test_a_record_that_was_moved_is_not_in_its_shard_too(bare: Layout) -> None:
    """It is missing there, and extra where it is."""
    home, path = (bare.shard_path(shard_name("train", index, 8)) for index in (1, 6))
    rest, records = data_of(home), data_of(path)
    write(path, [*records[:3], rest.pop(5), *records[3:]])
    write(home, rest)
    problems = {problem.subject: problem for problem in look(bare).problems}
    assert problems[path.name].kind is K.EXTRA_RECORD
    assert f"this image belongs to {home.name}, by the order" in problems[path.name].detail
    assert problems[home.name].kind is K.MISSING_RECORD


def test_records_in_another_order(layout: Layout) -> None:
    """A shard whose records were shuffled is named as such."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, [*records[:3], *reversed(records[3:])])
    problem = one(look(layout).problems)
    assert (problem.kind, problem.record) == (K.SWAPPED_RECORDS, 3)
    assert "in another order" in problem.detail
