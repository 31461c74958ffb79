"""Photographs with an EXIF orientation: turned upright where a recipe encodes them again,
and nowhere else.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sets import ENGINE
from msgspec.structs import replace
from PIL import Image, ImageOps
from running import command

from imagenet_prep import records
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import prepare
from imagenet_prep.model import Box, Item
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.loading import read
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.registry import imagenet_options
from imagenet_prep.shards.convert_summary import ConvertSummary
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import parse_example

ORIENTATION = 0x0112
SMALLER = "resize: 24\n"


def photograph(orientation: int = 1, form: str = "JPEG", mode: str = "RGB") -> bytes:
    """A picture of 48x32 pixels, with no symmetry, whose EXIF asks for this turn."""
    rows, columns = np.mgrid[0:32, 0:48]
    picture = Image.fromarray(
        np.stack([columns * 5, rows * 7, (columns > 30) * 200], axis=2).astype(np.uint8)
    )
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    buffer = io.BytesIO()
    picture.convert(mode).save(
        buffer, form, exif=tags, **({"quality": 95} if form == "JPEG" else {})
    )
    return buffer.getvalue()


def upright(data: bytes) -> Image.Image:
    """The picture as a viewer shows it, by Pillow."""
    with Image.open(io.BytesIO(data)) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def difference(first: Image.Image, second: Image.Image) -> float:
    """How far two pictures of one size are apart, in levels a pixel."""
    assert first.size == second.size
    return float(np.abs(np.asarray(first, np.int16) - np.asarray(second, np.int16)).mean())


def decoded(data: Any) -> Image.Image:
    """The picture in these bytes, whatever EXIF says."""
    return Image.open(io.BytesIO(bytes(data))).convert("RGB")


# one image ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_as_viewers_do(orientation: int, form: str) -> None:
    """What is encoded again shows what Pillow's own turning shows;
    its size is that of what is seen.
    """
    data = photograph(orientation, form)
    made = prepare(data, "decode", Reencode(quality=95), upright=True)
    assert difference(decoded(made.encoded), upright(data)) < 3
    assert (made.width, made.height) == upright(data).size
    assert ("turned upright" in made.changes) == (orientation != 1)
    stored = prepare(data, "decode", Reencode(quality=95))
    assert (stored.width, stored.height, stored.orientation) == (48, 32, 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_turned_with_their_image(orientation: int) -> None:
    """The same pixels lie in the box before and after, and its label stays."""
    data, box = photograph(orientation), Box(0.25, 0.5, 0.5, 0.75)
    item = Item("a.jpg", 1, "a", "a", (box,))
    recorder = InceptionRecorder(how=Reencode(quality=95), upright=True)
    record = parse_example(b"".join(map(bytes, recorder.record(item, data).parts)))
    sides = [
        record[f"image/object/bbox/{side}"].values[0] for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    (encoded,) = record["image/encoded"].values
    with Image.open(io.BytesIO(data)) as stored:
        before = stored.convert("RGB").crop((12, 16, 24, 24))
    width, height = decoded(encoded).size
    after = decoded(encoded).crop(
        [round(side * size) for side, size in zip(sides, (width, height) * 2, strict=True)]
    )
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    buffer = io.BytesIO()
    before.save(buffer, "PNG", exif=tags)
    assert difference(after, upright(buffer.getvalue())) < 6


def test_what_is_kept_is_not_turned() -> None:
    """A JPEG that goes in as it is has its EXIF still;
    one of four components is encoded again, so it is turned.
    """
    data = photograph(6)
    assert bytes(prepare(data, "decode", upright=True).encoded) == data
    four = prepare(photograph(6, mode="CMYK"), "decode", upright=True)
    assert (four.width, four.height, four.changes) == (32, 48, "cmyk, turned upright")


# a set --------------------------------------------------------------------------------------------


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """in/CLASS/N.jpg: eight photographs, three of them to be turned."""
    for number, orientation in enumerate((1, 6, 1, 3, 1, 8, 1, 1)):
        path = tmp_path / "in" / "ab"[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photograph(orientation))
    return tmp_path


def made(folder: Path, more: str = SMALLER, **options: Any) -> ConvertSummary:
    """Convert the photographs by a recipe."""
    (folder / "recipe.yaml").write_text(f"source: {{folders: in}}\nshards: 4\n{more}")
    dataset = RecipeSet.read(folder / "recipe.yaml")
    return convert(Layout(folder / "out"), ENGINE, ConvertOptions(**options), dataset=dataset)


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Width and height of each image, as its record has them."""
    found = records.read(folder / "out/train-*", text={"image/filename"})
    return {
        record["image/filename"]: (record["image/width"], record["image/height"])
        for record in found
    }


def recorded(folder: Path) -> dict[str, Any]:
    """The manifest."""
    value: dict[str, Any] = json.loads((folder / "out/imagenet-prep/manifest.json").read_text())
    return value


def test_a_recipe_turns_and_counts(photographs: Path) -> None:
    """By default; the summary says how many, and so does the manifest."""
    (split,) = made(photographs).splits
    assert sizes(photographs)["b/1.jpg"] == (24, 36)
    assert sizes(photographs)["a/0.jpg"] == (36, 24)
    assert split.turned == 3
    assert recorded(photographs)["dataset"]["turned"] == {"train": 3}
    assert recorded(photographs)["settings"]["upright"] is True
    said = command("convert", photographs / "out", "-c", photographs / "recipe.yaml").stdout
    assert "  rotated by their EXIF orientation: 3 images\n" in said
    assert "repaired" not in said


def test_a_recipe_can_leave_them_as_stored(photographs: Path) -> None:
    """With upright: false they are what they were for versions that turned none."""
    (split,) = made(photographs, "resize: 24\nupright: false\n").splits
    assert set(sizes(photographs).values()) == {(36, 24)}
    assert split.turned == 0
    assert recorded(photographs)["dataset"]["turned"] == {}
    assert "upright" not in recorded(photographs)["settings"]


def test_imagenet_stays_as_in_2016(tmp_path: Path) -> None:
    """A recipe of ImageNet can't turn images."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("source: {imagenet: true}\nupright: true\n")
    with pytest.raises(UsageError, match="upright: no such key"):
        imagenet_options(read(recipe))
    assert not InceptionRecorder().upright


def test_a_set_that_turns_is_no_set_that_does_not(photographs: Path) -> None:
    """Turned images stay turned in repair and in a second run;
    a recipe that no longer turns is another one.
    """
    made(photographs)
    assert [split.made for split in made(photographs).splits] == [0]
    with pytest.raises(UsageError, match=r"changed .*upright"):
        made(photographs, "resize: 24\nupright: false\n")
    (photographs / "out/train-00001-of-00004").unlink()
    with pytest.raises(InputError, match=r"other settings than .*: upright"):
        verify_and_repair(Layout(photographs / "out"), ENGINE)
    (photographs / "recipe.yaml").write_text(f"source: {{folders: in}}\nshards: 4\n{SMALLER}")
    assert verify_and_repair(Layout(photographs / "out"), ENGINE).verdict.problems == ()
    assert sizes(photographs)["b/1.jpg"] == (24, 36)


# PNG ----------------------------------------------------------------------------------------------


def test_pngs_that_become_jpegs_are_counted(tmp_path: Path) -> None:
    """In Inception's records; the summary says how many, and what of them is gone."""
    rng = np.random.default_rng(1)
    grey = rng.integers(0, 1 << 16, (8, 8), dtype=np.uint16)
    pictures = {
        "16": Image.fromarray(grey),
        "alpha": Image.fromarray(rng.integers(0, 256, (8, 8, 4), dtype=np.uint8)),
        "palette": Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).quantize(16),
        "plain": Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)),
    }
    for name, picture in pictures.items():
        (tmp_path / "in" / "ab"[name < "b"]).mkdir(parents=True, exist_ok=True)
        picture.save(tmp_path / "in" / "ab"[name < "b"] / f"{name}.png")
    (split,) = made(tmp_path, "record: inception\n").splits
    assert sorted(split.repairs) == [
        *("a/palette.png (png, palette)", "a/plain.png (png)"),
        *("b/16.png (png, 16 bits)", "b/alpha.png (png, alpha)"),
    ]
    said = command("convert", tmp_path / "out", "-c", tmp_path / "recipe.yaml").stdout
    losses = "the lower 8 of 16 bits in 1 image, palette in 1 image, alpha in 1 image"
    assert f"4 PNGs became 8-bit JPEGs: lost {losses}" in said
    assert replace(split, repairs=()).turned == 0
