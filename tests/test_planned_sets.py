"""Plans of hand-written catalogs: cut into shards, saved,
read again as a whole or in part, compared with others.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sets import flip, inception_features
from msgspec.structs import replace
from PIL import Image
from tiny_sets import COUNTS, made_plan, save_plan

from imagenet_prep import __version__
from imagenet_prep.datasets.order import SEED
from imagenet_prep.datasets.plan_differences import differences
from imagenet_prep.datasets.planned_set import (
    Asked,
    PlannedSet,
    PlannedSplit,
    cut,
    plan_name,
    refuse_other_images,
    source_record,
)
from imagenet_prep.datasets.stored_plan import (
    knows,
    plan_of,
    planned_manifest,
    planned_shards,
    read_planned,
    remove_other_rows,
    shard_plans,
)
from imagenet_prep.errors import InputError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.model import Box, Item, ShardInfo, ShardPlan, Silent
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.recorders.recorder import takes
from imagenet_prep.sources.blocks import array_file
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.fingerprint import fingerprint, names_and_sizes
from imagenet_prep.sources.folders import Folder
from imagenet_prep.sources.saved_catalog import PackedCatalog, load_catalog
from imagenet_prep.sources.tars import Archive
from imagenet_prep.state.manifest import DatasetEntry, SplitTotals
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import encode_example

DECIDING = {"seed": 1, "check": "x"}
SETTINGS = json.dumps(DECIDING, sort_keys=True)
RECORDER = InceptionRecorder(check="header")


# recorders ----------------------------------------------------------------------------------------


def jpeg(orientation: int = 1) -> bytes:
    """A picture of 24x16 pixels whose EXIF asks for this turn."""
    tags = Image.Exif()
    tags[0x0112] = orientation
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert("RGB").save(buffer, "JPEG", exif=tags)
    return buffer.getvalue()


BOX = Box(0.0, 0.25, 0.5, 1.0)
ITEM = Item("a.jpg", 2, "n2", "a thing", (BOX, BOX))


def test_a_record_holds_the_bytes_of_its_image() -> None:
    """The fifteen features around them, with the item's label or the one of its number."""
    data = jpeg(6)
    for recorder, label in ((RECORDER, 2), (InceptionRecorder(check="decode", numbers=(10, 7)), 7)):
        recorded = recorder.record(ITEM, data)
        expected = encode_example(inception_features(replace(ITEM, label=label), 24, 16, data))
        assert b"".join(recorded.parts) == expected
        assert (bytes(recorded.parts[1]), recorded.repair) == (data, "")
        assert recorder.numbered(ITEM) == replace(ITEM, label=label)
    assert InceptionRecorder(numbers=(10, 7)).numbered(replace(ITEM, label=1)).label == 10


@pytest.mark.parametrize("upright", [True, False])
def test_boxes_turn_with_their_image(upright: bool) -> None:
    """A quarter turn: the sides are exchanged, and so are those of the boxes;
    an item without boxes turns, too.
    """
    recorder = InceptionRecorder(how=Reencode(quality=90), upright=upright)
    turned = Box(0.0, 0.0, 0.75, 0.5)
    for boxes in ((BOX, BOX), ()):
        recorded = recorder.record(replace(ITEM, boxes=boxes), jpeg(6))
        encoded = bytes(recorded.parts[1])
        size, box = ((16, 24), turned) if upright else ((24, 16), BOX)
        expected = encode_example(
            inception_features(replace(ITEM, boxes=(box,) * len(boxes)), *size, encoded)
        )
        assert b"".join(recorded.parts) == expected
        assert Image.open(io.BytesIO(encoded)).size == size
        assert recorded.repair == ("turned upright" if upright else "")


def test_a_recorder_of_headers_takes_what_it_does_not_decode() -> None:
    """The same recorder otherwise; a cut image passes only there,
    and one without a header nowhere.
    """
    recorder = InceptionRecorder(check="decode", upright=True, numbers=(3, 4), loosely="--loose")
    headers = InceptionRecorder(check="header", upright=True, numbers=(3, 4), loosely="--loose")
    assert recorder.of_headers() == headers
    noise = Image.frombytes("RGB", (64, 64), random.Random(0).randbytes(3 * 64 * 64))
    buffer = io.BytesIO()
    noise.save(buffer, "JPEG")
    data = buffer.getvalue()
    damaged = data[: len(data) // 2] + b"\xff\xd9"
    cases = [
        (recorder, data, True),
        (headers, data, True),
        (recorder, damaged, False),
        (headers, damaged, True),
    ]
    for each, content, expected in [*cases, (headers, b"no image", False)]:
        assert takes(each, ITEM, content) is expected


# cutting ------------------------------------------------------------------------------------------


def a_catalog(
    root: Path, count: int = 10, *, split: str = "train", is_archive: bool = True
) -> Catalog:
    """A table of ``count`` images in an archive or a folder below ``root``;
    every third has a box and a label of 2.
    """
    container: Archive | Folder = Folder(root)
    stamp = 5
    if is_archive:
        archive = root / f"{split}.tar"
        archive.touch()
        container, stamp = Archive(archive), archive.stat().st_mtime_ns
    listing = CatalogBuilder(container)
    for number in range(count):
        listing.append(f"{number}.jpg", 512 * number, 100 + number, stamp)
    catalog = listing.listed()
    catalog.split = split
    catalog.labels = np.array([2 if number % 3 == 0 else 1 for number in range(count)], np.int8)
    catalog.classes = {1: ("n1", "one"), 2: ("n2", "two")}
    catalog.attach_boxes({f"{number}.jpg": [BOX] for number in range(0, count, 3)})
    return catalog


@pytest.mark.parametrize("seed", [None, SEED])
def test_a_split_is_cut_into_shards(tmp_path: Path, seed: int | None) -> None:
    """In the order of the seed, or of the listing;
    each shard has the fingerprint of its rows and settings.
    """
    catalog = a_catalog(tmp_path)
    planned = cut(catalog, tmp_path, RECORDER, 3, seed, DECIDING)
    order = list(range(10))
    if seed is not None:
        draw = random.Random(seed).random
        for i in range(9, 0, -1):
            j = int(draw() * (i + 1))
            order[i], order[j] = order[j], order[i]
        assert order != sorted(order)
    assert list(planned.catalog.names) == [f"{number}.jpg" for number in order]
    spans = [(0, 3), (3, 6), (6, 10)]
    expected = [
        ShardPlan(
            "train", number, 3, start, stop, fingerprint(catalog, order[start:stop], SETTINGS)
        )
        for number, (start, stop) in enumerate(spans)
    ]
    assert list(planned.plans) == expected
    assert [planned.rows(plan) for plan in planned.plans] == [range(*span) for span in spans]
    assert (planned.digest, planned.stamps) == (
        names_and_sizes(catalog),
        catalog.stamps_of_containers(),
    )
    assert (planned.source, planned.recorder, dict(planned.facts)) == (tmp_path, RECORDER, {})
    assert list(planned.times) == [catalog.times(order[start:stop]) for start, stop in spans]


def test_there_may_be_more_shards_than_images(tmp_path: Path) -> None:
    """Empty shards have the fingerprint of no row."""
    catalog = a_catalog(tmp_path, 2)
    plans = cut(catalog, tmp_path, RECORDER, 3, None, DECIDING).plans
    assert [(plan.start, plan.stop) for plan in plans] == [(0, 0), (0, 1), (1, 2)]
    assert plans[0].fingerprint == fingerprint(catalog, range(0), SETTINGS)
    assert len({plan.fingerprint for plan in plans}) == 3
    assert plan_name(plans[1]) == "train-00001-of-00003"


# the manifest's entry of a source -----------------------------------------------------------------


def a_split(root: Path, **more: Any) -> PlannedSplit:
    """A planned split of three shards."""
    return replace(cut(a_catalog(root), root, RECORDER, 3, None, DECIDING), **more)


def test_a_source_record_names_its_images(tmp_path: Path) -> None:
    """The last part of its path, also where that is no UTF-8;
    facts of the split's own come last, and win.
    """
    source = tmp_path / os.fsdecode(b"caf\xe9")
    split = a_split(tmp_path, source=source, facts={"more": 1, "images": 11})
    digest = names_and_sizes(a_catalog(tmp_path))
    assert source_record(split) == {
        "name": "caf\\xe9",
        "images": 11,
        "names_and_sizes": digest,
        "more": 1,
    }
    assert source_record(replace(split, facts={}))["images"] == 10


def refusal(split: PlannedSplit, **changes: Any) -> list[str]:
    """The lines of the error for another set's images; none if they are taken."""
    sources = {"train": {**source_record(split), "name": "elsewhere", **changes.get("source", {})}}
    totals = SplitTotals(10, 10, 2, changes.get("boxes", 4), 3)
    plan = made_plan({"train": 3}, sources=sources, totals={"train": totals})
    manifest = replace(planned_manifest(plan), sources=changes.get("sources", sources))
    entry = replace(manifest.dataset, kind=changes.get("kind", "recipe"))
    manifest = replace(manifest, dataset=entry)
    try:
        refuse_other_images(split, manifest, Layout(Path("d")))
    except InputError as error:
        return error.lines
    return []


def test_other_images_than_those_of_the_shards_are_refused(tmp_path: Path) -> None:
    """Another number, other names or sizes, other boxes, and a manifest without a word of them."""
    split = a_split(tmp_path)
    assert refusal(split) == []
    first = (
        f"the train images in {tmp_path}, or their labels, "
        "are not those that the shards were made from"
    )
    last = (
        "restore the images and any files of labels; or, to make the set again, "
        "run the same imagenet-prep convert with --overwrite"
    )
    same = "their number is the same, 10, but their names, sizes, labels or order differ"
    assert refusal(split, source={"images": 9}) == [first, "expected 9 images, got 10", last]
    assert refusal(split, source={"images": 1}) == [first, "expected 1 image, got 10", last]
    assert refusal(split, source={"names_and_sizes": "x"}) == [first, same, last]
    assert refusal(split, source={"images": 9}, kind="ILSVRC2012")[2].startswith(
        "restore the images, or name their folder with --raw"
    )
    assert refusal(split, boxes=5) == [
        "the train boxes differ from those in the shards",
        "expected 5 boxes, got 4",
        "restore the annotations as they were; or, to make the set again, "
        "run the same imagenet-prep convert with --overwrite",
    ]
    csv = "d/raw-data/imagenet_2012_bounding_boxes.csv"
    for boxes, mend in (
        (5, f"restore {csv}, or make it again: imagenet-prep annotate d"),
        (3, f"restore {csv} as it was; or, to make the set again, "),
        (0, f"move {csv} away, as the shards were made without boxes; or, to make the set again"),
    ):
        assert refusal(split, boxes=boxes, kind="ILSVRC2012")[-1].startswith(mend)
    assert refusal(split, boxes=1)[1] == "expected 1 box, got 4"
    labels = a_catalog(tmp_path)
    labels.labels = np.roll(labels.labels, 1)
    other_labels = cut(labels, tmp_path, RECORDER, 3, None, DECIDING)
    assert refusal(other_labels, source=source_record(split))[1] == same
    for sources in ({}, {"train": [1]}):
        assert (
            refusal(split, sources=sources)[0]
            == "d/imagenet-prep/manifest.json can't be understood"
        )


# the plan -----------------------------------------------------------------------------------------


def a_set(root: Path, *, is_archive: bool = True, **more: Any) -> PlannedSet:
    """A planned set of two splits."""
    splits = tuple(
        cut(
            a_catalog(root, count, split=split, is_archive=is_archive),
            root / "link" / "..",
            RECORDER,
            3,
            1,
            DECIDING,
        )
        for split, count in (("train", 10), ("validation", 4))
    )
    asked = Asked(
        {"seed": 1}, {"train": "a"}, {"train": RECORDER, "validation": RECORDER}, DECIDING
    )
    return PlannedSet(
        entry=DatasetEntry("recipe", "tiny", ("train", "validation"), {}, {}),
        splits=splits,
        settings={"check": "header"},
        expected={"train": 12, "validation": 5},
        options=(("seed", 1),),
        notes=("a note",),
        asked=asked,
        **more,
    )


def planned(
    root: Path, layout: Layout, before: Plan | None = None, **more: Any
) -> tuple[PlannedSet, Plan]:
    """A planned set, and its plan; rows are saved."""
    made = a_set(root, **more)
    packed = {split.catalog.split: PackedCatalog.pack(split.catalog) for split in made.splits}
    plan = plan_of(made, layout, before, packed)
    for table in packed.values():
        table.save(layout.plan_path.with_name(table.name))
    return made, save_plan(layout, plan)


def test_a_plan_has_everything_of_a_planned_set(tmp_path: Path) -> None:
    """Field by field; known places of the plan before are kept, and those of today are renewed."""
    layout = Layout(tmp_path / "data")
    here = str((tmp_path / "train.tar").resolve())
    before = made_plan(stamps={"train": {"/elsewhere": "1", here: "old"}, "test": {"/other": "2"}})
    made, plan = planned(tmp_path, layout, before)
    train, validation = made.splits
    assert plan == Plan(
        dataset=made.entry,
        settings={"check": "header"},
        sources={"train": source_record(train), "validation": source_record(validation)},
        totals={"train": SplitTotals(10, 12, 2, 4, 3), "validation": SplitTotals(4, 5, 2, 2, 3)},
        fingerprints={
            "train": tuple(each.fingerprint for each in train.plans),
            "validation": tuple(each.fingerprint for each in validation.plans),
        },
        expected={"train": 12, "validation": 5},
        options=(("seed", 1),),
        stamps={"train": {"/elsewhere": "1", **train.stamps}, "validation": validation.stamps},
        times={"train": tuple(train.times), "validation": tuple(validation.times)},
        rows={
            "train": PackedCatalog.pack(train.catalog).name,
            "validation": PackedCatalog.pack(validation.catalog).name,
        },
        origins={"train": str(tmp_path.resolve()), "validation": str(tmp_path.resolve())},
        notes=("a note",),
        asked={"options": {"seed": 1}, "raw": {"train": "a"}},
    )
    assert train.stamps[here] != "old"
    assert plan_of(replace(made, asked=None), layout, None, {}).asked == {}
    assert plan_of(made, layout, None, {}).stamps["train"] == train.stamps


def test_a_class_that_has_no_label_is_not_counted(tmp_path: Path) -> None:
    """Label 0 is none."""
    made = a_set(tmp_path)
    made.splits[0].catalog.labels[:] = 0
    made.splits[0].catalog.labels[0] = 1
    assert plan_of(made, Layout(tmp_path), None, {}).totals["train"].classes == 1


@pytest.mark.parametrize(
    ("folders", "recipe", "expected"),
    [
        ({}, {}, None),
        ({"raw": "raw"}, {}, "raw"),
        ({"output": "out"}, {}, "data/raw-data"),
        ({"output": "out"}, {"path": "r.yaml"}, None),
        ({"output": "out", "raw": "raw"}, {"path": "r.yaml"}, "raw"),
    ],
)
def test_a_plan_records_where_its_raw_data_is(
    tmp_path: Path, folders: dict[str, str], recipe: dict[str, str], expected: str | None
) -> None:
    """The folder of --raw; with shards elsewhere DATA_DIR's own, unless a recipe has its base."""
    layout = Layout(
        tmp_path / "data", **{name: tmp_path / folder for name, folder in folders.items()}
    )
    plan = plan_of(a_set(tmp_path, recipe=recipe), layout, None, {})
    assert plan.raw == (str((tmp_path / expected).resolve()) if expected else None)
    assert plan.recipe == recipe


def test_shards_of_a_plan(tmp_path: Path) -> None:
    """By the totals of each split, as they were cut; each with what is known before it is made."""
    made, plan = planned(tmp_path, Layout(tmp_path / "data"))
    for split in made.splits:
        assert shard_plans(plan, split.catalog.split) == list(split.plans)
    shards = {plan_name(each): each for split in made.splits for each in split.plans}
    infos = {
        name: ShardInfo(name, each.fingerprint, each.stop - each.start, 0, "")
        for name, each in shards.items()
    }
    assert planned_shards(plan) == infos
    manifest = planned_manifest(plan)
    assert (manifest.version, manifest.dataset, manifest.shards) == (
        __version__,
        plan.dataset,
        infos,
    )
    assert (manifest.settings, manifest.sources, manifest.totals) == (
        plan.settings,
        plan.sources,
        plan.totals,
    )


def test_a_shard_is_known_by_fingerprint_and_times() -> None:
    """Both, at its own place; a plan without times, or of fewer shards, knows it not."""
    plan = made_plan(times={"train": ("0", "1")})
    shard = ShardPlan("train", 1, 3, 0, 2, "f-train-1")
    assert knows(plan, shard, "1")
    assert not knows(plan, shard, "0")
    assert not knows(plan, replace(shard, fingerprint="f-train-0"), "1")
    assert not knows(plan, replace(shard, index=2, fingerprint="f-train-2"), "2")
    assert not knows(plan, replace(shard, split="validation", fingerprint="f-validation-1"), "1")
    assert not knows(plan, replace(shard, split="test"), "1")
    assert not knows(replace(plan, fingerprints={"train": ("x",)}), shard, "1")


# reading again ------------------------------------------------------------------------------------


def same_rows(found: PlannedSplit, expected: PlannedSplit, rows: list[int]) -> bool:
    """Whether a table read again has these rows of the table that was cut."""
    items = [expected.catalog.item(row) for row in rows]
    return [found.catalog.item(row) for row in range(len(found.catalog))] == items


def test_a_planned_set_is_read_again(tmp_path: Path) -> None:
    """All of it, as it was planned."""
    layout = Layout(tmp_path / "data")
    made, plan = planned(tmp_path, layout)
    found = read_planned(plan, layout, made.asked)
    assert found is not None
    assert replace(found, splits=()) == replace(made, splits=())
    for split, expected in zip(found.splits, made.splits, strict=True):
        assert same_rows(split, expected, list(range(len(expected.catalog))))
        assert split.source == tmp_path.resolve()
        names = ("digest", "recorder", "plans", "stamps")
        assert [getattr(split, name) for name in names] == [
            getattr(expected, name) for name in names
        ]
    notes = replace(plan, notes=("other",), options=(), expected={"train": 1})
    found = read_planned(notes, layout, made.asked)
    assert (found.notes, found.options, found.expected) == (("other",), (), {"train": 1})


def test_some_shards_of_a_planned_set_are_read_again(tmp_path: Path) -> None:
    """Their rows alone, numbered from 0 and compared with their fingerprints."""
    layout = Layout(tmp_path / "data")
    made, plan = planned(tmp_path, layout, is_archive=False)
    names = ["train-00000-of-00003", "train-00002-of-00003", "validation-00001-of-00003"]
    found = read_planned(plan, layout, made.asked, names)
    assert found is not None
    train, validation = found.splits
    assert [plan_name(each) for split in found.splits for each in split.plans] == names
    assert [(each.start, each.stop) for each in (*train.plans, *validation.plans)] == [
        (0, 3),
        (3, 7),
        (0, 1),
    ]
    assert same_rows(train, made.splits[0], [0, 1, 2, 6, 7, 8, 9])
    assert same_rows(validation, made.splits[1], [1])
    assert read_planned(plan, layout, replace(made.asked, deciding={"seed": 2}), names) is None
    assert read_planned(
        plan, layout, replace(made.asked, deciding=dict(reversed(DECIDING.items()))), names
    )
    assert (
        read_planned(plan, layout, made.asked) is None
    )  # files of their own may have changed, each


def test_rows_of_another_plan_are_named(tmp_path: Path) -> None:
    """A plan with the fingerprint of another shard: its rows are not taken."""
    layout = Layout(tmp_path / "data")
    made, plan = planned(tmp_path, layout)
    progress = Silent()
    first, second, last = plan.fingerprints["train"]
    other = replace(plan, fingerprints={**plan.fingerprints, "train": (second, first, last)})
    assert read_planned(other, layout, made.asked, ["train-00001-of-00003"], progress) is None
    rows = layout.plan_path.with_name(plan.rows["train"])
    what = f"{rows} lists other images for train-00001-of-00003 than plan.json"
    assert progress.notes == [
        f"warning: {what}; so the raw data is listed again, which only takes time"
    ]


def lose_rows(layout: Layout, plan: Plan) -> Plan:
    """The rows of a split are gone."""
    for path in list(layout.plan_path.with_name(plan.rows["train"]).iterdir()):
        path.unlink()
    return plan


def damage_rows(layout: Layout, plan: Plan) -> Plan:
    """A bit of the names has changed."""
    flip(layout.plan_path.with_name(plan.rows["validation"]) / array_file("names"), 0)
    return plan


def change_archive(layout: Layout, plan: Plan) -> Plan:
    """An archive has another time."""
    os.utime(layout.data_dir.parent / "validation.tar", ns=(1, 1))
    return plan


def forget_rows(layout: Layout, plan: Plan) -> Plan:
    """The plan does not name them."""
    return replace(plan, rows={})


@pytest.mark.parametrize(
    ("change", "warning"),
    [(lose_rows, "train"), (change_archive, ""), (forget_rows, ""), (damage_rows, "validation")],
)
def test_a_plan_that_does_not_hold_is_not_read(
    tmp_path: Path, change: Callable[[Layout, Plan], Plan], warning: str
) -> None:
    """Rows that are gone or damaged are named; changed raw data is no damage."""
    layout = Layout(tmp_path / "data")
    made, plan = planned(tmp_path, layout)
    rows, plan = plan.rows, change(layout, plan)
    progress = Silent()
    assert read_planned(plan, layout, made.asked, progress=progress) is None
    assert read_planned(plan, layout, made.asked) is None
    if warning:
        (note,) = progress.notes
        folder = layout.plan_path.with_name(rows[warning])
        assert note.startswith(f"warning: {folder} can't be used: ")
        assert note.endswith("; so the raw data is listed again, which only takes time")
    else:
        assert progress.notes == []


def test_rows_of_older_plans_are_removed(tmp_path: Path) -> None:
    """Each folder of rows that the plan does not name;
    files beside them stay, and so does a folder in a folder.
    """
    layout = Layout(tmp_path / "data")
    _, plan = planned(tmp_path, layout)
    folder = layout.plan_path.parent
    for name in ("older", "oldest"):
        (folder / name).mkdir()
        for file in ("names", "catalog.json"):
            (folder / name / file).touch()
    remove_other_rows(plan, layout)
    assert sorted(os.listdir(folder)) == sorted([*plan.rows.values(), "plan.json"])
    for name in plan.rows.values():
        load_catalog(folder / name, name)


# differences --------------------------------------------------------------------------------------


def totals_of(**changes: int) -> dict[str, SplitTotals]:
    """The totals of two splits, with changes in train."""
    plan = made_plan()
    return {**plan.totals, "train": replace(plan.totals["train"], **changes)}


def entry(**changes: Any) -> DatasetEntry:
    """The data set with changes."""
    return replace(made_plan().dataset, **changes)


HOW = {"resize": 64, "max_side": None, "quality": 90, "codec": "c"}
DIFFERENCES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["boxes or columns of some images"]),
    ({"settings": {"check": "decode"}}, ["--check (decode, now header)"]),
    ({"settings": {"check": "XX"}}, ["--check (XX, now header)"]),
    ({"settings": {}}, ["--check (not set, now header)"]),
    ({"settings": {"check": "header", "first_label": 5}}, ["first_label (5, now not set)"]),
    ({"settings": {"check": "header", "max_side": 5}}, ["max_side (5, now not set)"]),
    ({"settings": {"check": "header", "on_damaged": "skip"}}, ["--on-damaged (skip, now not set)"]),
    ({"settings": {"check": "header", "record": {"a": 1}}}, ["record"]),
    ({"settings": {"check": ["x"]}}, ["--check"]),
    (
        {"settings": {"check": "header", "reencode": HOW}},
        ["--quality (90, now not set)", "--resize (64, now not set)"],
    ),
    ({"settings": {"check": "header", "codec": "c"}}, ["boxes or columns of some images"]),
    ({"dataset": entry(classes={"n1": 1})}, ["classes"]),
    ({"totals": totals_of(shards=4)}, ["number of train shards (4, now 3)"]),
    (
        {"totals": {"validation": made_plan().totals["validation"]}},
        ["number of train shards (none, now 3)"],
    ),
    (
        {"totals": {**made_plan().totals, "test": made_plan().totals["train"]}},
        ["number of test shards (3, now none)"],
    ),
    ({"totals": totals_of(boxes=1)}, ["train boxes"]),
    ({"totals": totals_of(classes=9)}, ["number of train classes"]),
    (
        {"totals": totals_of(expected=9, boxes=2)},
        ["train boxes", "expected number of train images (9, now 0)"],
    ),
    ({"totals": totals_of(images=9)}, ["boxes or columns of some images"]),
    (
        {"sources": {"train": {"images": 6, "names_and_sizes": "x"}}},
        ["train images", "validation images"],
    ),
    (
        {"sources": {**made_plan().sources, "train": {"images": 5, "names_and_sizes": "train"}}},
        ["train images (5, now 6)"],
    ),
    (
        {
            "sources": {
                **made_plan().sources,
                "train": {"images": 6, "names_and_sizes": "train", "name": "x"},
            }
        },
        ["boxes or columns of some images"],
    ),
    ({"sources": {**made_plan().sources, "train": "x"}}, ["train images"]),
    (
        {
            "settings": {"check": "decode"},
            "dataset": entry(classes={"n1": 1}),
            "totals": totals_of(shards=4),
        },
        ["--check (decode, now header)", "classes", "number of train shards (4, now 3)"],
    ),
]


@pytest.mark.parametrize(("changes", "expected"), DIFFERENCES)
def test_the_differences_of_two_sets(changes: dict[str, Any], expected: list[str]) -> None:
    """Each is named as the user writes it, from another plan or from its manifest."""
    plan, other = made_plan(), made_plan(**changes)
    assert differences(plan, other) == expected
    manifest = replace(
        planned_manifest(plan), settings=dict(other.settings), sources=dict(other.sources)
    )
    manifest = replace(manifest, dataset=other.dataset, totals=dict(other.totals))
    assert differences(plan, manifest) == expected
    if changes == {}:
        assert differences(plan, other, "pixels") == ["pixels"]
        assert differences(plan, other, "") == []


def test_a_lost_image_is_told_once() -> None:
    """Where all images that are there are expected, that number is not told too."""
    more = {**made_plan().sources, "train": {"images": 7, "names_and_sizes": "x"}}
    then = made_plan(totals=totals_of(images=7, expected=7), sources=more)
    assert differences(made_plan(totals=totals_of(expected=6)), then) == ["train images (7, now 6)"]


def test_other_encoders_are_a_difference() -> None:
    """Only where both sets encode their images again."""
    then = made_plan(settings={"check": "header", "reencode": HOW})
    now = made_plan(settings={"check": "header", "reencode": {**HOW, "codec": "d", "quality": 91}})
    assert differences(now, then) == ["codec (c, now d)", "--quality (90, now 91)"]
    assert differences(made_plan(), then) == [
        "--quality (90, now not set)",
        "--resize (64, now not set)",
    ]
    assert differences(then, made_plan(COUNTS)) == ["--resize (not set, now 64)"]
