"""The level of a verdict: what is called whole and right, what is not,
and the same words in every command.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from copies_of_imagenet import hugging_face_rows, write_parquet
from made_devkit import add_devkit
from made_sets import ENGINE, PART, converted, copied, edit_manifest, make_flowers
from made_tars import save
from msgspec.structs import replace
from running import command
from test_recipe_sets import made as made_by_recipe

from imagenet_prep import ConvertOptions, Layout, annotate, convert, verify
from imagenet_prep.checks.checked_dataset import SetFindings
from imagenet_prep.checks.inventory import Inventory
from imagenet_prep.checks.verdict import RIGHT, Depth, Level, SplitReport, Verdict, level_of
from imagenet_prep.cli.printing.findings_text import SHOWN_PROBLEMS
from imagenet_prep.cli.printing.verdict_text import print_verdict
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.errors import IncompleteError, InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part, find_part
from imagenet_prep.ilsvrc2012.completeness import Evidence, claim
from imagenet_prep.ilsvrc2012.settings import ENTRY
from imagenet_prep.model import Problem, ProblemKind, ShardInfo, Silent
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.recipes.set_totals import wrong_totals
from imagenet_prep.stages.merge import merge
from imagenet_prep.stages.verify_raw import verify_raw
from imagenet_prep.state.manifest import Manifest, load_manifest
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.state.set_state import SetState, StateKind

pytestmark = pytest.mark.once

K = ProblemKind
TENCH = "n01440764"


@pytest.mark.parametrize(
    ("claimed", "problems", "state", "depth", "level"),
    [
        ("official", (), "finished", "full", "official"),
        ("complete", (), "foreign", "decode", "complete"),
        ("official", (), "finished", "quick", "as listed"),
        ("incomplete", (), "finished", "quick", "incomplete"),
        ("complete", (), "unfinished", "full", "unfinished"),
        ("complete", {K.MISSING_SHARD}, "unfinished", "full", "unfinished"),
        ("complete", (), "part", "full", "part"),
        ("complete", {K.MISSING_IMAGE, K.MISSING_CLASS}, "finished", "full", "incomplete"),
        ("complete", {K.MISSING_SHARD, K.BAD_CRC}, "unfinished", "full", "damaged"),
        ("complete", (), "contradictory", "full", "damaged"),
        ("foreign", (), "foreign", "quick", "foreign"),
        ("foreign", {K.BAD_CRC}, "foreign", "full", "damaged"),
    ],
)
def test_a_level_follows_from_claim_problems_state_and_depth(
    claimed: Level, problems: Collection[ProblemKind], state: StateKind, depth: Depth, level: Level
) -> None:
    """Damage comes first, then an unfinished state, then what is missing;
    a quick check proves no set right.
    """
    assert level_of(claimed, problems, state, depth) == level


# all of ImageNet ----------------------------------------------------------------------------------

ODD = tuple(f"{name} ({kind})" for kind, names in facts.ODD_IMAGES.items() for name in names)
SETTINGS = {"seed": 12345, "shuffle": True, "compression": "none"}


def whole_set(change: str) -> tuple[Part, Inventory, tuple[SplitReport, ...], SetFindings]:
    """What verify knows of all of ILSVRC2012, with one thing changed."""
    boxes = {"half of the boxes": facts.BOXES // 2, "no boxes": 0}.get(change, facts.BOXES)
    images = 1_281_166 if change == "an image less" else 1_281_167
    train = SplitReport("train", 1024, images, 1_281_167, 1000, boxes, 1)
    validation = SplitReport("validation", 128, 50_000, 50_000, 1000, 0, 1)
    sizes = dict(facts.PUBLISHED_SIZES)
    if change == "other shard counts":
        sizes = {name.replace("-of-00128", "-of-00064"): size for name, size in sizes.items()}
    if change == "another size":
        sizes["validation-00127-of-00128"] += 1
    repairs = {
        "no odd images": (),
        "one odd image less": ODD[:-1],
        "another PNG": (*ODD[1:], "n01440764_1.JPEG (png)"),
    }
    names = {split: [name for name in sizes if name.startswith(split)] for split in facts.SPLITS}
    odd = ShardInfo("train-00500-of-01024", "", 1, 1, "", (), repairs.get(change, ODD))
    if change == "an odd image in a known shard":
        odd = replace(odd, name="train-00000-of-01024")
        sizes[odd.name] += 1
    more = {
        "resized": {"reencode": {"resize": 64}},
        "compressed": {"compression": "gzip"},
        "another seed": {"seed": 7},
    }
    manifest = Manifest("0", ENTRY, {**SETTINGS, **more.get(change, {})}, {}, {}, {odd.name: odd})
    found = SetFindings(
        (),
        flavour="Inception",
        order="not canonical" if change == "foreign, shuffled" else "canonical",
    )
    is_foreign = change.startswith("foreign")
    if change == "foreign, shuffled":
        sizes = {name: size + 5 for name, size in sizes.items()}
    infos = {} if is_foreign else manifest.shards
    state = SetState(SetRecords(Layout(Path())), "foreign" if is_foreign else "finished", sizes)
    inventory = Inventory("", {}, sizes, names, None if is_foreign else manifest, infos, state)
    part = find_part(None, 0) if change == "labels from 0" else WHOLE
    return part, inventory, (train, validation), found


@pytest.mark.parametrize(
    ("change", "level", "said"),
    [
        (
            "",
            "official",
            "the shards of ILSVRC2012 are whole and right, and have the published sizes.",
        ),
        ("foreign", "official", "whole and right"),
        ("an odd image in a known shard", "official", "whole and right"),
        ("no boxes", "complete", "the shards of ILSVRC2012 are whole and right."),
        ("other shard counts", "complete", "whole and right"),
        ("labels from 0", "complete", "whole and right"),
        ("resized", "complete", "whole and right"),
        ("compressed", "complete", "whole and right"),
        ("another seed", "complete", "whole and right"),
        ("foreign, shuffled", "complete", "whole and right"),
        (
            "another size",
            "as listed",
            "not the published images: 1 of 10 shards whose size is published has another size",
        ),
        ("no odd images", "as listed", "0 of 23 PNG and CMYK images are among them."),
        ("one odd image less", "as listed", "22 of 23 PNG and CMYK images"),
        ("another PNG", "as listed", "22 of 23 PNG and CMYK images are among them, and 1 other."),
        ("half of the boxes", "incomplete", "hold 307,649 of 615,299 boxes"),
        ("an image less", "incomplete", "hold 1,281,166 of 1,281,167 train images"),
    ],
)
def test_levels_of_all_of_imagenet(change: str, level: Level, said: str) -> None:
    """Only the images, boxes and sizes of 2016 are official;
    a known number that does not hold is never complete.
    """
    found = claim(Evidence(*whole_set(change)), is_part=False)
    assert found.level == level
    assert said in found.reason
    assert ("right" in found.reason) == (level in RIGHT)


# one class ----------------------------------------------------------------------------------------


def one_class(folder: Path, images: int, validation: int = 50) -> Layout:
    """A DATA_DIR with class folders of one class, all images alike."""
    layout, content = Layout(folder), photographs.tiny(1)
    for number in range(images):
        save(folder / "raw-data" / "train" / TENCH / f"{TENCH}_{number}.JPEG", content)
    numbers = [number for number, wnid in enumerate(facts.validation_wnids(), 1) if wnid == TENCH]
    for number in numbers[:validation]:
        save(folder / "raw-data" / "val" / facts.validation_filename(number), content)
    (folder / "tench.txt").write_text(TENCH)
    return layout


@pytest.mark.parametrize(
    ("images", "validation", "has_devkit", "level", "said"),
    [
        (899, 50, True, "complete", 'the shards of "tench" are whole and right.'),
        (749, 50, True, "incomplete", "hold 749 of 899 train images (n01440764 749 of 899)."),
        (899, 49, True, "incomplete", "hold 49 of 50 validation images."),
        (900, 50, True, "incomplete", "hold 900 of 899 train images"),
        (
            *(749, 50, False, "as listed"),
            (
                "all 799 listed images are in. How many images n01440764 should have is not known "
                "without the devkit."
            ),
        ),
        (700, 50, False, "incomplete", "hold 700 of at least 732 train images."),
    ],
)
def test_a_part_of_a_class_is_never_called_whole(
    tmp_path: Path, images: int, validation: int, has_devkit: bool, level: Level, said: str
) -> None:
    """With the devkit a missing image is counted, also once the raw data is gone;
    without it nobody knows.
    """
    layout = one_class(tmp_path, images, validation)
    if has_devkit:
        add_devkit(tmp_path / "raw-data", dict.fromkeys(facts.synsets(), 899))
    options = ConvertOptions(
        classes=str(tmp_path / "tench.txt"), train_shards=2, validation_shards=1
    )
    if level == "incomplete":
        finding, step = "tench is incomplete", "get the missing images, or"
        if images > 899:
            finding, step = "tench has too many images", "remove the images that are too many, or"
        with pytest.raises(IncompleteError) as caught:
            convert(layout, ENGINE, options)
        assert caught.value.what == finding
        assert caught.value.hint.startswith(step)
        options = options.replace(allow_incomplete=True)
    progress = Silent()
    convert(layout, ENGINE, options, progress=progress)
    if images > 899:
        assert any(note.startswith("more than tench: 900 of 899") for note in progress.notes)
    shutil.rmtree(tmp_path / "raw-data")
    verdict = verify(layout, ENGINE)
    assert (verdict.problems, verdict.level) == ((), level)
    assert said in verdict.reason
    assert ("right" in verdict.conclusion) == (level in RIGHT)


def test_a_devkit_that_comes_later_is_asked_by_the_next_convert(tmp_path: Path) -> None:
    """No shard is made again: the plan and the manifest take the counts."""
    layout = one_class(tmp_path, 749)
    options = ConvertOptions(
        classes=str(tmp_path / "tench.txt"), train_shards=2, validation_shards=1
    )
    convert(layout, ENGINE, options)
    add_devkit(tmp_path / "raw-data", dict.fromkeys(facts.synsets(), 749))
    assert [split.made for split in convert(layout, ENGINE, options).splits] == [0, 0]
    assert verify(layout, ENGINE).level == "complete"


# boxes --------------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder."""
    return {path: path.read_bytes() for path in list(folder.rglob("*")) if path.is_file()}


def test_a_boxes_file_that_was_cut_is_refused(tiny_data_dir: Path) -> None:
    """Half of the lines beside an intact annotate.json:
    no byte changes, and the remedy brings all boxes back.
    """
    layout = Layout(tiny_data_dir)
    annotate(layout, ENGINE)
    path, content = Path(str(layout.boxes_csv)), Path(str(layout.boxes_csv)).read_bytes()
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    before = files_of(tiny_data_dir)
    with pytest.raises(InputError, match=r"annotate") as caught:
        convert(layout, ENGINE, PART)
    assert f"expected {len(lines)} boxes" in caught.value.detail
    assert f"got {len(lines) // 2} and " in caught.value.detail
    assert files_of(tiny_data_dir) == before
    make_again = caught.value.hint.removeprefix("make it again: ")
    move, _, again = make_again.partition("; ")[0].partition(" && ")
    subprocess.run(shlex.split(move), check=True)
    command(*shlex.split(again)[1:])
    assert path.read_bytes() == content
    convert(layout, ENGINE, PART)
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    assert manifest.sources["train"]["boxes"]["count"] == len(lines)


def test_boxes_of_a_file_without_a_record_of_annotate_are_counted(tiny_data_dir: Path) -> None:
    """A file that annotate did not write here is taken as it is; the verdict counts its boxes."""
    layout = Layout(tiny_data_dir)
    save(Path(str(layout.boxes_csv)), "n01440764_1.JPEG,0.1,0.1,0.2,0.2\n")
    convert(layout, ENGINE, PART)
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    assert manifest.sources["train"]["boxes"]["count"] == 1


# images that were encoded again -------------------------------------------------------------------


@pytest.mark.parametrize("copy", ["class folders", "parquet"])
def test_pngs_under_official_names_are_refused(
    tmp_path: Path, made_tiny: MadeSet, copy: str
) -> None:
    """ILSVRC2012 has one PNG: a copy with more is another data set, and its set is not finished."""
    pngs = {
        name: photographs.tiny(number, Kind.PNG) for number, name in enumerate(made_tiny.images)
    }
    raw = tmp_path / "raw-data"
    for name, image in made_tiny.images.items() if copy == "class folders" else ():
        save(raw / ("train" if image.split == "train" else "val") / image.wnid / name, pngs[name])
    for split in facts.SPLITS if copy == "parquet" else ():
        rows = hugging_face_rows(made_tiny, split)
        for row in rows:
            path = row["image"]["path"]
            row["image"]["bytes"] = pngs[f"{path[:-15]}.JPEG"]
        write_parquet(raw / f"{split}-00000-of-00001.parquet", rows)
    layout = Layout(tmp_path)
    for _ in range(2):
        with pytest.raises(InputError, match="may have been encoded again") as caught:
            convert(layout, ENGINE, PART)
        shown = {
            "class folders": "16 PNG images, ILSVRC2012 has 1",
            "parquet": "380 PNG images, ILSVRC2012 has 1",
        }
        assert caught.value.detail == shown[copy]
        assert "init" in caught.value.hint
        assert not layout.manifest_path.exists()
    if copy == "class folders":  # refused before anything was written
        assert not list(tmp_path.glob("*-of-*"))
        return
    with pytest.raises(InputError, match="may have been encoded again"):
        merge(layout)
    verdict = verify(layout, ENGINE)
    assert (verdict.level, verdict.counts) == ("damaged", {"repaired": 380})
    details = [problem.detail for problem in verdict.problems]
    assert any("encoded again: 380 PNG images, ILSVRC2012 has 1" in detail for detail in details)


@pytest.mark.parametrize(("kind", "most"), [(Kind.CMYK, 22), (Kind.PNG, 1)])
def test_as_many_odd_images_as_imagenet_has_are_repaired(
    tmp_path: Path, kind: Kind, most: int
) -> None:
    """22 CMYK JPEGs and one PNG are repaired; one more of a kind is refused."""
    layout = one_class(tmp_path, 40)
    folder = tmp_path / "raw-data" / "train" / TENCH
    for number in range(most):
        save(folder / f"{TENCH}_{number}.JPEG", photographs.tiny(number, kind))
    options = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True)
    convert(layout, ENGINE, options)
    assert verify(layout, ENGINE).counts == {"repaired": most}
    save(folder / f"{TENCH}_{most}.JPEG", photographs.tiny(most, kind))
    with pytest.raises(InputError, match="may have been encoded again"):
        convert(layout, ENGINE, options.replace(overwrite=True))


# recipes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "level", "said"),
    [
        (
            "expected: {images: 10}",
            "complete",
            'complete: the shards of "recipe" are whole and right.',
        ),
        ("expected: {train: {images: 6}, test: {images: 4}}", "complete", "whole and right"),
        ("expected: {train: {images: 6}}", "as listed", "as listed: all 10 listed records are in."),
        (
            "expected: {classes: 5}",
            "as listed",
            'How many records "recipe" should have is not known',
        ),
        ("", "as listed", "all 10 listed records are in."),
    ],
)
def test_a_recipe_is_complete_if_it_says_how_many_images_there_are(
    tmp_path: Path, more: str, level: Level, said: str
) -> None:
    """Without a number for every split nobody knows whether all images were listed;
    other files are counted.
    """
    save(make_flowers(tmp_path / "flowers", 2) / "daisy" / "notes.txt", "no image")
    text = f"source: {{folders: flowers}}\nshards: 1\nsplits: {{train: 0.8, test: 0.2}}\n{more}\n"
    verdict = verify(made_by_recipe(tmp_path, text), ENGINE)
    assert (verdict.problems, verdict.level) == ((), level)
    assert said in verdict.conclusion
    assert verdict.remarks == "skipped: 1 file"


def test_one_record_is_one_record(tmp_path: Path) -> None:
    """The words of a set of a single image, and of two with a damaged one."""
    folder = tmp_path / "flowers/rose"
    save(folder / "1.jpg", photographs.tiny(1))
    text = "source: {folders: flowers}\nshards: 1\non_damaged: skip\n"
    verdict = verify(made_by_recipe(tmp_path, text), ENGINE)
    assert verdict.conclusion.startswith("as listed: the 1 listed record is in. ")
    dataset = RecipeSet.read(tmp_path / "recipe.yaml")
    raw_verdict = verify_raw(Layout(tmp_path / "out"), ENGINE, dataset=dataset)
    assert raw_verdict.reason.startswith("the 1 image listed is sound. ")
    save(folder / "2.jpg", b"\xff\xd8 no image")
    shutil.rmtree(tmp_path / "out")
    verdict = verify(made_by_recipe(tmp_path, text), ENGINE)
    assert verdict.conclusion == "incomplete: 1 of 2 listed records is in."


def test_a_wrong_total_has_its_noun() -> None:
    """One class is no "classes"."""
    totals = {"classes": 1, "images": 1}
    (classes, images) = wrong_totals(totals, {"train": 2}, {"train": {0, 1}})
    assert classes.detail == "expected 1 class, got 2"
    assert images.detail == "expected 1 image, got 2"


def test_what_was_set_aside_makes_a_set_incomplete(tmp_path: Path) -> None:
    """The reason says of how many listed images, and the second line how many were set aside."""
    save(make_flowers(tmp_path / "flowers", 2) / "rose" / "0002.jpg", b"\xff\xd8 no image")
    verdict = verify(
        made_by_recipe(tmp_path, "source: {folders: flowers}\nshards: 1\non_damaged: skip\n"),
        ENGINE,
    )
    assert (verdict.problems, verdict.level) == ((), "incomplete")
    assert verdict.conclusion == "incomplete: 9 of 10 listed records are in."
    assert verdict.remarks == "set aside: 1 image"


@pytest.mark.parametrize("expected", ["{images: 10}", "{train: {images: 10}}"])
def test_an_expected_number_counts_listed_images(tmp_path: Path, expected: str) -> None:
    """Those that were set aside are stated, by verify as by convert, and are no problem;
    fewer files are one.
    """
    save(make_flowers(tmp_path / "flowers", 2) / "rose" / "0002.jpg", b"\xff\xd8 no image")
    text = "source: {folders: flowers}\nshards: 1\non_damaged: skip\n"
    text += f"expected: {expected}\n"
    verdict = verify(made_by_recipe(tmp_path, text), ENGINE)
    assert (verdict.problems, verdict.level, verdict.remarks) == (
        (),
        "incomplete",
        "set aside: 1 image",
    )
    assert (
        verdict.conclusion
        == "incomplete: expected 10 images: 9 in records, 1 set aside as damaged."
    )
    with pytest.raises(InputError, match="images: 11 expected, 10 found"):
        made_by_recipe(tmp_path, text.replace("images: 10", "images: 11") + "seed: 1\n")


# the same words everywhere ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """Shards of ``made_tiny``. Read only."""
    return converted(tmp_path_factory.mktemp("sound") / "data", made_tiny)


def test_every_command_says_the_same_words(sound: Layout, tmp_path: Path) -> None:
    """verify, its JSON, status, report, its page and merge conclude alike, within 80 columns."""
    folder = copied(sound, tmp_path / "data").data_dir
    conclusion = (
        "incomplete: the shards of ILSVRC2012 hold 300 of 1,281,167 train images, "
        "80 of 50,000 validation images."
    )
    said = {
        "verify": command("verify", folder).stdout,
        "status": command("status", folder).stdout,
        "report": command("report", folder).stderr,
        "merge": command("merge", folder).stdout,
    }
    for name, text in said.items():
        assert conclusion in " ".join(text.split()), name
        assert "repaired: 3 images" in text, name
    assert json.loads(command("status", folder, "--json", "-").stdout)["verdict"] == "incomplete"
    value = json.loads(command("verify", folder, "--json", "-").stdout)
    assert (value["verdict"], value["counts"]) == ("incomplete", {"repaired": 3})
    assert conclusion == f"incomplete: {value['reason']}"
    assert not {"whole", "part"} & value.keys()
    page = (folder / "imagenet-prep" / "report.html").read_text()
    assert "Incomplete" in page
    assert "The shards of ILSVRC2012 hold 300 of 1,281,167 train images" in page


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--rank", "0/2"], 0, "part: rank 0 of 2, not the whole set."),
        (
            ["--depth", "quick"],
            0,
            "incomplete: the shards of ILSVRC2012 hold 300 of 1,281,167 train images",
        ),
    ],
)
def test_levels_of_looks_at_less(
    sound: Layout, tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    """A rank's share is a part; a quick check calls nothing right."""
    text = " ".join(
        command(
            "verify", copied(sound, tmp_path / "data").data_dir, *words, status=status
        ).stdout.split()
    )
    assert said in text
    assert "right" not in text


def test_a_set_without_its_manifest_is_unfinished(sound: Layout, tmp_path: Path) -> None:
    """All shards are there, and nothing says that the set is finished."""
    layout = copied(sound, tmp_path / "data")
    layout.manifest_path.unlink()
    verdict = verify(layout, ENGINE)
    assert (
        verdict.conclusion
        == "unfinished: 16 of 16 shards done, but manifest.json is missing. 1 problem found."
    )


def test_other_images_than_the_manifest_records_are_damage(sound: Layout, tmp_path: Path) -> None:
    """Of a set that says of itself that more images were repaired than ILSVRC2012 has odd ones."""
    layout = copied(sound, tmp_path / "data")

    def repair_all(value: dict[str, Any]) -> None:
        value["shards"]["train-00000-of-00008"]["repairs"] = [
            f"n01440764_{number}.JPEG (png)" for number in range(9)
        ]

    edit_manifest(layout, repair_all)
    verdict = verify(layout, ENGINE)
    assert verdict.level == "damaged"
    assert "PNG images, ILSVRC2012 has 1" in verdict.problems[0].detail


def test_every_problem_that_is_printed_has_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """The last problem is printed if it is the only one after the first twenty,
    and its own remedy with it.
    """
    damaged = [
        Problem(K.BAD_CRC, f"shard {number}", "a", "repair") for number in range(SHOWN_PROBLEMS)
    ]
    problems = (*damaged, Problem(K.MISSING_IMAGE, "train", "b", "get the images"))
    print_verdict(Verdict("full", problems, (), "damaged", "", has_manifest=True))
    printed = capsys.readouterr().out
    assert "missing-image: train: b\n" in printed
    assert re.findall("^to do: (.*)$", printed, re.MULTILINE) == ["repair", "get the images"]
