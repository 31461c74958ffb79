"""Shards of a part of ImageNet: made of any copy, with official labels and others,
and known as that part by all.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from existing import existing
from made_sets import ENGINE, copied, data_of, edit_manifest
from running import command

from imagenet_prep import ConvertOptions, Layout, annotate, convert, status, verify
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import IncompleteError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import find_part
from imagenet_prep.ilsvrc2012.settings import options_from
from imagenet_prep.model import ProblemKind
from imagenet_prep.recipes.loading import read
from imagenet_prep.registry import imagenet_options
from imagenet_prep.state.journal import sealed_line
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.tfrecord.inception_reader import read_record

SHARDS = {"train_shards": 4, "validation_shards": 2}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """Four classes as large as the smallest real one,
    with all of their validation images, of 16x16 pixels.
    """
    return make(
        tmp_path_factory.mktemp("whole"), classes=4, per_class=732, validation=200, tiny=True
    )


@pytest.fixture(scope="module")
def three(whole: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of three of these classes."""
    path = tmp_path_factory.mktemp("lists") / "three.txt"
    path.write_text(
        "".join(f"{wnid} {facts.texts()[wnid]}\n" for wnid in reversed(whole.wnids[1:]))
    )
    return path


def _layout(folder: Path, source: MadeSet) -> Layout:
    layout = Layout(folder)
    layout.raw_dir.mkdir(parents=True)
    for archive in source.archives.values():
        shutil.copy2(archive, layout.raw_dir)
    return layout


def _options(three: Path, first: int | None = None, **more: Any) -> ConvertOptions:
    return ConvertOptions(**SHARDS, classes=str(three), relabel=first, **more)


@pytest.fixture(scope="module")
def made_parts(
    whole: MadeSet, three: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[int | None, Layout]:
    """The three classes converted: with official labels, from 0 and from 1. Read only."""
    found = {}
    for first in (None, 0, 1):
        layout = _layout(tmp_path_factory.mktemp("part") / "data", whole)
        annotate(layout, ENGINE)
        convert(layout, ENGINE, _options(three, first))
        found[first] = layout
    return found


def _shards(layout: Layout) -> dict[str, bytes]:
    return {name: layout.shard_path(name).read_bytes() for name in layout.find_shards(facts.SPLITS)}


# what is made -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [None, 1])
def test_records_of_a_part_have_its_labels(
    made_parts: dict[int | None, Layout], whole: MadeSet, first: int | None
) -> None:
    """Just the images of the list are there, each with the label of the part, its boxes too;
    synset and words stay.
    """
    wnids = sorted(whole.wnids[1:])
    expected = {
        wnid: facts.labels()[wnid] if first is None else n
        for n, wnid in enumerate(wnids, first or 0)
    }
    paths = existing(made_parts[first].data_dir, "*-of-*")
    records = [read_record(memoryview(data)) for path in paths for data in data_of(path)]
    assert len(records) == 3 * (732 + 50)
    assert {each.filename for each in records} == {
        name for name, image in whole.images.items() if image.wnid in expected
    }
    for record in records:
        assert record.label == expected[record.wnid or ""]
        assert record.text == facts.texts()[record.wnid or ""]
        assert set(record.box_labels) <= {record.label}
    assert sum(len(each.boxes) for each in records) > 0


def test_official_labels_make_the_same_records_as_the_whole(
    made_parts: dict[int | None, Layout], whole: MadeSet, three: Path, tmp_path: Path
) -> None:
    """A record of a part with official labels is, byte for byte,
    the one in the shards of all classes.
    """
    layout = _layout(tmp_path / "all", whole)
    annotate(layout, ENGINE)
    convert(layout, ENGINE, ConvertOptions(**SHARDS, allow_incomplete=True))
    everything = {
        data
        for name in layout.find_shards(facts.SPLITS)
        for data in data_of(layout.shard_path(name))
    }
    part = made_parts[None]
    assert {
        data for name in part.find_shards(facts.SPLITS) for data in data_of(part.shard_path(name))
    } < everything


# what is missing ----------------------------------------------------------------------------------


def test_a_class_that_is_not_there_is_missed(whole: MadeSet, tmp_path: Path) -> None:
    """A part that lacks a class, or images of one,
    is refused until --allow-incomplete says otherwise.
    """
    layout = _layout(tmp_path / "data", whole)
    path = tmp_path / "two.txt"
    path.write_text(f"{whole.wnids[0]}\nn02102040\n")
    options = ConvertOptions(**SHARDS, classes=str(path), relabel=0)
    with pytest.raises(IncompleteError, match="two is incomplete") as caught:
        convert(layout, ENGINE, options)
    detail = "732 of at least 1,464 images (732 missing; 1 class without an image: n02102040)"
    assert detail in caught.value.detail
    assert "validation: 50 of 100 images (50 missing" in caught.value.detail
    summary = convert(layout, ENGINE, options.replace(allow_incomplete=True))
    note = "a part of two: 732 of at least 1,464 train images, 1 of 2 classes"
    assert note in map(str, summary.notes)
    verdict = verify(layout, ENGINE)
    assert (verdict.problems, verdict.level) == ((), "incomplete")
    assert "732 of at least 1,464 train images, 50 of 100 validation images" in verdict.reason
    manifest = load_manifest(layout.manifest_path)
    assert options_from(manifest).allow_incomplete


# verify -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [None, 0])
def test_a_part_is_known_as_that_part(
    made_parts: dict[int | None, Layout], first: int | None
) -> None:
    """verify knows which classes these are, and that nobody knows how many
    images they should have.
    """
    verdict = verify(made_parts[first], ENGINE, depth="decode")
    assert (verdict.problems, verdict.level, verdict.dataset) == ((), "as listed", "three")
    assert verdict.reason.startswith(
        "all 2,346 listed images are in. How many images each class should have is not known"
    )
    assert [(total.records, total.expected, total.classes) for total in verdict.totals] == [
        (2196, 2196, 3),
        (150,) * 2 + (3,),
    ]
    labels = {
        None: "with their official labels",
        0: "labelled 0 to 2 (0 is a class here",
        1: "labelled 1 to 3",
    }
    assert any(
        f"3 of the 1,000 classes of ILSVRC2012, {labels[first]}" in note for note in verdict.notes
    )
    assert verdict.order == "canonical"


def test_exactly_these_classes_are_there(
    made_parts: dict[int | None, Layout], whole: MadeSet, tmp_path: Path
) -> None:
    """A class that the part has not is a wrong label,
    one that it has and of which nothing is there is missing.
    """
    layout = copied(made_parts[None], tmp_path / "copy")
    other = tmp_path / "three.txt"
    other.write_text("\n".join([*whole.wnids[1:3], "n02102040"]))
    edit_manifest(
        layout, lambda value: value["dataset"].update(classes=dict(find_part(str(other)).labels))
    )
    problems = verify(layout, ENGINE).problems
    missing = [problem for problem in problems if problem.kind is ProblemKind.MISSING_CLASS]
    assert [problem.subject for problem in missing] == ["train", "validation"]
    assert all("n02102040 (English springer" in problem.detail for problem in missing)
    assert (missing[0].expected, missing[0].got) == ("3", "2")
    assert missing[0].remedy == "make the set again from all images"
    assert verify(layout, ENGINE, allow_incomplete=True).problems == problems
    assert any(
        f"and a wnid of the classes of three, got {facts.labels()[whole.wnids[3]]}" in each.detail
        for each in problems
    )


# going on, repairing, telling ---------------------------------------------------------------------


def test_a_part_is_gone_on_with_as_that_part_alone(
    made_parts: dict[int | None, Layout], whole: MadeSet, three: Path, tmp_path: Path
) -> None:
    """The same part finds everything done; another one, or other labels,
    is refused until --overwrite.
    """
    layout = copied(made_parts[0], tmp_path / "copy")
    assert [split.made for split in convert(layout, ENGINE, _options(three, 0)).splits] == [0, 0]
    with pytest.raises(UsageError, match=r"changed .*classes"):
        convert(layout, ENGINE, _options(three, 1))
    with pytest.raises(UsageError, match="made from other inputs"):
        convert(layout, ENGINE, ConvertOptions(**SHARDS, allow_incomplete=True))
    two = tmp_path / "two.txt"
    two.write_text("\n".join(whole.wnids[2:]))
    with pytest.raises(UsageError, match="made from other inputs"):
        convert(layout, ENGINE, _options(two, 0))
    assert _shards(layout) == _shards(made_parts[0])
    convert(layout, ENGINE, _options(three, 1, overwrite=True))
    assert _shards(layout) == _shards(made_parts[1])


def test_a_part_under_way_is_known(made_parts: dict[int | None, Layout], tmp_path: Path) -> None:
    """Before its manifest is there, or when that is damaged,
    a part is known by what its conversion began with.
    """
    layout = copied(made_parts[0], tmp_path / "copy")
    layout.manifest_path.unlink()
    verdict = verify(layout, ENGINE)
    assert [problem.kind for problem in verdict.problems] == [ProblemKind.UNFINISHED]
    assert (verdict.dataset, verdict.has_manifest) == ("three", False)
    assert [total.expected for total in verdict.totals] == [2196, 150]
    layout.shard_path("train-00001-of-00004").unlink()
    found = status(layout)
    assert "--relabel 0" in found.following
    assert "three.txt" in found.following
    value = json.loads(layout.plan_path.read_bytes())
    del value["crc"]
    value["dataset"]["classes"] = {"n02102040": 7}
    layout.plan_path.write_bytes(sealed_line(value))
    assert verify(layout, ENGINE, allow_incomplete=True).dataset == "ILSVRC2012"


# the command line and a recipe --------------------------------------------------------------------


def test_the_command_line_and_a_recipe_make_a_part(
    made_parts: dict[int | None, Layout], whole: MadeSet, three: Path, tmp_path: Path
) -> None:
    """--classes and --relabel, or the same keys of a recipe,
    make the same shards, and the same verdict.
    """
    shutil.copy(three, tmp_path)
    recipe = tmp_path / "part.yaml"
    text = (
        "source: {imagenet: true}\nclasses: three.txt\nrelabel: 0\nshards: {train: 4, "
        "validation: 2}\n"
    )
    recipe.write_text(text)
    shards = ["--train-shards", "4", "--validation-shards", "2"]
    layout = _layout(tmp_path / "data", whole)
    annotate(layout, ENGINE)
    for words in (
        ["--classes", three, "--relabel", "0", *shards],
        ["--config", recipe, "--overwrite"],
    ):
        command("convert", layout.data_dir, *words)
        assert _shards(layout) == _shards(made_parts[0])
        for name in layout.find_shards(facts.SPLITS):
            layout.shard_path(name).unlink()
    command("convert", layout.data_dir, *words)
    assert "as listed: all 2,346 listed images are in." in command("verify", layout.data_dir).stdout
    refused = command("convert", layout.data_dir, "-c", recipe, "--classes", "imagenette", status=2)
    assert "--classes can't be used with --config" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--classes", "imagenete"], "expected a class list (imagenette, imagewoof, imagenet-100)"),
        (["--relabel", "2"], "--relabel"),
    ],
)
def test_a_part_that_can_not_be_is_wrong_usage(words: list[str], said: str, tmp_path: Path) -> None:
    """A name that is no list and no file, or a label to count from that is not offered:
    status 2.
    """
    assert said in command("convert", tmp_path, *words, status=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: {imagenet: true}\nclasses: [n01440764]\n", "line 2"),
        ("source: {imagenet: true}\nrelabel: 2\n", "line 2"),
        ("source: {folders: x}\nrelabel: 0\n", "no such key"),
    ],
)
def test_keys_that_can_t_be(text: str, said: str, tmp_path: Path) -> None:
    """Another form of classes, another label, or another data set: refused with the line."""
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        imagenet_options(read(path))
