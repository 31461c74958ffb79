"""The small ImageNet is what it claims to be: its images, archives, labels and annotations."""

from __future__ import annotations

import hashlib
import io
import os
import statistics
import struct
import tarfile
import warnings
from pathlib import Path
from typing import IO

import pytest
from existing import existing
from PIL import Image, ImageChops, ImageStat

from imagenet_prep.demo import archives, photographs
from imagenet_prep.demo.annotations import MadeAnnotation, Quirk, annotation, boxes_csv
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.demo.photographs import Kind, Motif, draw_thing, motif_of, scene, shapes
from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.facts import TRAIN, VALIDATION

SAMPLES_DIR = Path(__file__).parent.parent / "data" / "bounding_boxes"
SIZE = (200, 150)


def opened(content: bytes) -> Image.Image:
    """The decoded image."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the corrupt EXIF warns, as the real one does
        image = Image.open(io.BytesIO(content))
        image.load()
    return image


def segments(jpeg: bytes) -> dict[int, bytes]:
    """The last payload of each marker up to the start of the scan, by the marker's second byte."""
    assert jpeg[:2] == b"\xff\xd8"
    found, position = {}, 2
    while jpeg[position + 1] != 0xDA:
        assert jpeg[position] == 0xFF
        (length,) = struct.unpack(">H", jpeg[position + 2 : position + 4])
        found[jpeg[position + 1]] = jpeg[position + 4 : position + 2 + length]
        position += 2 + length
    return found


def members(path: Path) -> list[tuple[str, bytes]]:
    """Name and content of each file of an archive, nested tars opened."""
    with path.open("rb") as file:
        return list(_members(file))


def _members(file: IO[bytes]) -> list[tuple[str, bytes]]:
    found = []
    with tarfile.open(fileobj=file) as tar:
        for entry in tar:
            content = tar.extractfile(entry)
            if content is None:
                continue
            found += _members(content) if entry.name.endswith(".tar") else [(entry.name, content.read())]
    return found


# images ----------------------------------------------------------------------------------------------------------


def test_photographs_have_the_bytes_and_pixels_of_imagenet() -> None:
    """Thirty photographs take 90 to 130 kB on average, all decode, and their sizes vary as stated."""
    made = [photographs.photograph_bytes(seed) for seed in range(30)]
    assert 90_000 < statistics.mean(len(content) for content, _ in made) < 130_000
    assert all(opened(content).size == size and opened(content).mode == "RGB" for content, size in made)
    sizes = [size for _, size in made]
    assert len(set(sizes)) >= 6
    assert 0.25 < sizes.count((500, 375)) / 30 < 0.55


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_shows_the_picture(kind: Kind) -> None:
    """Each kind of file decodes to the size and, but for colour, to about the pixels that went in."""
    picture = photographs.photograph(5, SIZE)
    shown = opened(photographs.encode(picture, kind, 95))
    assert shown.size == SIZE
    difference = ImageChops.difference(shown.convert("RGB").convert("L"), picture.convert("L"))
    assert ImageStat.Stat(difference).mean[0] < (20 if kind in (Kind.CMYK, Kind.YCCK) else 5)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("tiny", [False, True])
def test_kinds_are_what_they_claim(kind: Kind, tiny: bool) -> None:
    """The raw bytes bear out each kind: signature, number of components, Adobe marker, EXIF, progressive frame."""
    content = photographs.tiny(3, kind) if tiny else photographs.encode(photographs.photograph(3, SIZE), kind)
    if kind is Kind.PNG:
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        return
    found = segments(content)
    frame = found[0xC2 if kind is Kind.PROGRESSIVE else 0xC0]
    assert frame[5] == {Kind.GREY: 1, Kind.CMYK: 4, Kind.YCCK: 4}.get(kind, 3)
    adobe = {Kind.CMYK: 0, Kind.YCCK: 2}.get(kind)
    assert (found[0xEE][:5], found[0xEE][11]) == (b"Adobe", adobe) if adobe is not None else 0xEE not in found
    assert (0xE1 in found) == (kind in (Kind.ROTATED, Kind.CORRUPT_EXIF))


def test_corrupt_exif_warns() -> None:
    """Reading the EXIF of the corrupt kind warns, as the one in ImageNet does."""
    content = photographs.tiny(3, Kind.CORRUPT_EXIF)
    with pytest.warns(UserWarning, match="Corrupt EXIF"):
        Image.open(io.BytesIO(content)).getexif()


def test_tiny_images_are_tiny_and_differ() -> None:
    """A tiny image is a real JPEG of 16x16 pixels in less than a kilobyte, and each seed has its own."""
    made = {photographs.tiny(seed) for seed in range(50)}
    assert len(made) == 50
    assert all(len(content) < 1000 and opened(content).size == photographs.TINY_SIZE for content in made)


# scenes ----------------------------------------------------------------------------------------------------------


def demo_scenes() -> list[tuple[str, Image.Image, tuple[tuple[int, int, int, int], ...]]]:
    """A scene of each of the demo's twenty classes: its wnid, the image, the boxes."""
    wnids = facts.synsets()[::50]
    return [(wnid, *scene(seed, photographs.photograph_size(seed), wnid)) for seed, wnid in enumerate(wnids)]


def test_scenes_show_one_to_three_things() -> None:
    """The same arguments make the same pixels and boxes."""
    made = demo_scenes()
    again = scene(3, made[3][1].size, made[3][0])
    assert (again[0].tobytes(), again[1]) == (made[3][1].tobytes(), made[3][2])
    assert {len(boxes) for _, _, boxes in made} == {1, 2, 3}


def test_boxes_enclose_things_that_stand_out() -> None:
    """In every box are pixels of the colour of the class; every box lies in the image."""
    for wnid, image, boxes in demo_scenes():
        assert all(
            0 <= xmin < xmax <= image.width and 0 <= ymin < ymax <= image.height for xmin, ymin, xmax, ymax in boxes
        )
        body = Image.new("RGB", image.size, motif_of(wnid).colours["body"])
        alike = ImageChops.difference(image.convert("HSV").getchannel(0), body.convert("HSV").getchannel(0))
        near = alike.point([255 * (value < 12 or value > 243) for value in range(256)])
        inside = [ImageStat.Stat(near.crop(box)).mean[0] for box in boxes]
        assert min(inside) > (50 if "black" not in facts.texts()[wnid] else 0), wnid


def test_a_shape_fills_its_box() -> None:
    """What is drawn of each kind of thing reaches all four edges of its square, or nearly so; every class has one."""
    kinds = {motif_of(wnid).kind for wnid in facts.synsets()}
    assert kinds == shapes()["shapes"].keys()
    colours = motif_of("n01440764").colours
    for kind in kinds:
        found = draw_thing(Motif(kind, colours), (200, 160))[1].point([0] * 96 + [255] * 160).getbbox()
        assert found is not None
        assert max(found[0], found[1], 200 - found[2], 160 - found[3]) < 40


# archives --------------------------------------------------------------------------------------------------------


def test_same_arguments_make_the_same_archives(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Archives are byte-identical when made again."""
    again = make(tmp_path / "again", classes=10, per_class=30, validation=80, tiny=True)
    assert again.md5 == made_tiny.md5
    assert (again.images, again.annotations) == (made_tiny.images, made_tiny.annotations)
    for key in ("boxes", "validation-boxes"):  # no time of writing, which two quick runs would share
        assert again.archives[key].read_bytes()[4:8] == bytes(4)


def test_archives_have_their_official_names_and_digests(made: MadeSet) -> None:
    """Each archive lies under its official name and has the MD5 that is told."""
    assert sorted(made.archives) == ["boxes", "train", "validation", "validation-boxes"]
    for key, path in made.archives.items():
        assert path.name == facts.ARCHIVES[key].filename
        assert hashlib.md5(path.read_bytes()).hexdigest() == made.md5[key]


def test_archives_hold_just_the_images_that_are_told(made: MadeSet) -> None:
    """Names, order, sizes in pixels and bytes of the members agree with the truth."""
    for split in (TRAIN, VALIDATION):
        found = members(made.archives[split])
        assert [name for name, _ in found] == [image.filename for image in made.of(split)]
        for name, content in found:
            image = made.images[name]
            assert hashlib.sha256(content).hexdigest() == image.sha256
            assert opened(content).size == (image.width, image.height)
    assert (len(made.of(TRAIN)), len(made.of(VALIDATION))) == (48, 24)


def test_train_archive_is_nested_and_its_images_are_unsorted(made: MadeSet) -> None:
    """One tar a class, classes in sorted order as in the real archive, images of each in no order."""
    with tarfile.open(made.archives["train"]) as tar:
        assert tuple(tar.getnames()) == tuple(f"{wnid}.tar" for wnid in made.wnids)
    for wnid in made.wnids:
        numbers = [int(image.filename[10:-5]) for image in made.of(TRAIN) if image.wnid == wnid]
        assert len(set(numbers)) == 8
        assert numbers != sorted(numbers)


def test_annotations_are_of_what_is_to_be_seen(made: MadeSet) -> None:
    """The boxes of an annotation without a quirk are those of the things in its image, train and validation."""
    for each in (*made.annotations, *made.validation_annotations):
        image = made.images[f"{each.name}.JPEG"]
        if each.quirk is Quirk.NONE:
            scale = (image.width, image.height) * 2
            boxes = [tuple(float(value) for value in line.split(",")[1:]) for line in each.lines]
            assert boxes == [tuple(round(v / s, 4) for v, s in zip(box, scale, strict=True)) for box in image.boxes], (
                each.name
            )
        assert len(image.boxes) in (1, 2, 3)


@pytest.mark.parametrize("fixture", ["made", "made_tiny"])
def test_every_odd_image_is_there(fixture: str, request: pytest.FixtureRequest) -> None:
    """Every odd kind is in the split it belongs to, grey ones in both."""
    made: MadeSet = request.getfixturevalue(fixture)
    for split, kinds in archives.ODD_KINDS.items():
        assert {image.kind for image in made.of(split)} == {Kind.RGB, *kinds}
    assert all(Kind.GREY in kinds for kinds in archives.ODD_KINDS.values())
    assert {kind for kinds in archives.ODD_KINDS.values() for kind in kinds} == set(Kind) - {Kind.RGB}


def test_smallest_set(tmp_path: Path) -> None:
    """One image of one class is enough, and validation stops at the fifty that the class has."""
    made = make(tmp_path, classes=1, per_class=1, validation=60, tiny=True)
    assert (len(made.of(TRAIN)), len(made.of(VALIDATION))) == (1, 50)
    assert len(made.annotations) == 1


@pytest.mark.parametrize("arguments", [{"classes": 0}, {"classes": 1001}, {"per_class": 0}, {"validation": -1}])
def test_impossible_numbers_are_refused(arguments: dict[str, int], tmp_path: Path) -> None:
    """Numbers of classes or images that ImageNet doesn't have are wrong usage, and nothing is written."""
    with pytest.raises(UsageError, match=next(iter(arguments))):
        make(tmp_path / "raw", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "raw").exists()


# annotations -----------------------------------------------------------------------------------------------------


def samples() -> dict[str, MadeAnnotation]:
    """The sample annotations in data/bounding_boxes by path below it, one for each quirk."""
    size, boxes = (334, 500), ((2, 131, 252, 497), (20, 30, 120, 330))
    made = {}
    for number, quirk in enumerate(Quirk, 1):
        wnid = "n02092002" if quirk is Quirk.BREED_NAME else "n01440764"
        some = boxes[:1] if quirk is Quirk.NONE else boxes
        made[f"{wnid}/{wnid}_{number}.xml"] = annotation(f"{wnid}_{number}", wnid, size, quirk, boxes=some)
    return made


def made_sample(quirk: Quirk) -> MadeAnnotation:
    """The sample with that quirk."""
    return next(each for each in samples().values() if each.quirk is quirk)


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
    assert [line.partition(",")[2] for line in made_sample(quirk).lines] == boxes


def test_boxes_csv_is_sorted_by_bytes() -> None:
    """Lines of the CSV are in byte order, in which a comma comes before any digit and before a dot."""
    content = boxes_csv(annotation(name, "n01440764", (500, 375)) for name in ("n01440764_20", "n01440764_2"))
    assert content.splitlines() == sorted(content.splitlines())
    assert content.endswith(b"\n")
    assert content.startswith(b"n01440764_2.JPEG,")


@pytest.mark.parametrize("fixture", ["made", "made_tiny"])
def test_box_archives_hold_the_annotations(fixture: str, request: pytest.FixtureRequest) -> None:
    """Both box archives hold the annotations told, every quirk once, and most images but not all have one."""
    made: MadeSet = request.getfixturevalue(fixture)
    train = dict(members(made.archives["boxes"]))
    assert train == {f"{each.wnid}/{each.name}.xml": each.xml for each in made.annotations}
    assert dict(members(made.archives["validation-boxes"])) == {
        f"val/{each.name}.xml": each.xml for each in made.validation_annotations
    }
    quirks = [each.quirk for each in made.annotations]
    assert all(quirks.count(quirk) == 1 for quirk in Quirk if quirk is not Quirk.NONE)
    assert len(made.of(TRAIN)) * 0.7 < len(made.annotations) < len(made.of(TRAIN))
    assert sum(each.bad for each in made.annotations) == 3
    boxes = sum(len(each.lines) for each in made.annotations)
    assert boxes == made.boxes_csv.count(b"\n") > len(made.annotations)
    assert all(f"{each.name}.JPEG" in made.images for each in made.annotations)


# the guard -------------------------------------------------------------------------------------------------------


def test_no_credentials_reach_a_test() -> None:
    """A tester's own ImageNet account and netrc file are out of sight."""
    assert not {"IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY"} & set(os.environ)
    assert not Path(os.environ["NETRC"]).exists()
