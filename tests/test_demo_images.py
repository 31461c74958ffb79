"""The small ImageNet is what it claims to be: its images, archives, labels and annotations."""

from __future__ import annotations

from pathlib import Path

import pytest
from existing import existing
from made_tars import unpack

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.made_annotations import BAD_QUIRKS, MadeAnnotation, Quirk, annotation
from imagenet_prep.ilsvrc2012.facts import TRAIN

SAMPLES_DIR = Path(__file__).parent.parent / "data" / "bounding_boxes"


# annotations --------------------------------------------------------------------------------------


def samples() -> dict[str, MadeAnnotation]:
    """The sample annotations in data/bounding_boxes by path below it, one for each quirk."""
    size, boxes = (334, 500), ((2, 131, 252, 497), (20, 30, 120, 330))
    made = {}
    for number, quirk in enumerate(Quirk, 1):
        wnid = "n02092002" if quirk is Quirk.BREED_NAME else "n01440764"
        some = boxes[:1] if quirk is Quirk.NONE else boxes
        made[f"{wnid}/{wnid}_{number}.xml"] = annotation(
            f"{wnid}_{number}", wnid, size, quirk, boxes=some
        )
    return made


def test_sample_files_are_the_samples() -> None:
    """data/bounding_boxes holds the sample annotations, byte for byte, and nothing else."""
    files = {
        str(path.relative_to(SAMPLES_DIR)): path.read_bytes()
        for path in existing(SAMPLES_DIR, "**/*")
        if path.is_file()
    }
    assert files == {path: each.xml for path, each in samples().items()}


@pytest.mark.parametrize(
    ("quirk", "boxes"),
    [
        (Quirk.PERCENT_NAME, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.OTHER_SIZE, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.SWAPPED, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.BEYOND, ["0.0000,0.0000,1.0000,1.0000", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.NO_AREA, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.BREED_NAME, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.OTHER_CLASS, []),
        (Quirk.FIRST_NAME, ["0.0060,0.2620,0.7545,0.9940", "0.0599,0.0600,0.3593,0.6600"]),
        (Quirk.MINUS_ONE, ["0.0060,0.2620,0.7545,0.9940"]),
        (Quirk.ZERO_SIZE, []),
        (Quirk.NO_SIZE, []),
        (Quirk.BROKEN, []),
    ],
)
def test_truth_of_each_quirk(quirk: Quirk, boxes: list[str]) -> None:
    """The lines told for each quirk are the ones worked out by hand."""
    (sample,) = (each for each in samples().values() if each.quirk is quirk)
    assert [line.partition(",")[2] for line in sample.lines] == boxes


@pytest.mark.parametrize("fixture", ["made", "made_tiny"])
def test_box_archives_hold_the_annotations(fixture: str, request: pytest.FixtureRequest) -> None:
    """Both box archives hold the annotations told, every quirk once,
    and most images but not all have one.
    """
    made: MadeSet = request.getfixturevalue(fixture)
    train = unpack(made.archives["boxes"])
    assert train == {f"{each.wnid}/{each.name}.xml": each.xml for each in made.annotations}
    assert unpack(made.archives["validation-boxes"]) == {
        f"val/{each.name}.xml": each.xml for each in made.validation_annotations
    }
    quirks = [each.quirk for each in made.annotations]
    assert all(quirks.count(quirk) == 1 for quirk in Quirk if quirk is not Quirk.NONE)
    assert len(made.of(TRAIN)) * 0.7 < len(made.annotations) < len(made.of(TRAIN))
    assert sum(each.quirk in BAD_QUIRKS for each in made.annotations) == 3
    boxes = sum(len(each.lines) for each in made.annotations)
    assert boxes == made.boxes_csv.count(b"\n") > len(made.annotations)
    assert all(f"{each.name}.JPEG" in made.images for each in made.annotations)


# the guard ----------------------------------------------------------------------------------------
