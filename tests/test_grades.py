"""Three grades of an image: clean, warned and damaged,
the same in convert, verify and the loaders.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import odd_jpegs
import pytest
import tf_fixture
from existing import existing
from made_tars import save
from PIL import Image, ImageCms
from running import command

from imagenet_prep.checks.examiner import check_jpeg
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.images import grades, jpeg, parts, pixels, rasters
from imagenet_prep.images.coded import check_coded
from imagenet_prep.images.grades import Check
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.images.prepare import prepare, read_orientation
from imagenet_prep.reading.shard import Shard

tf = tf_fixture.tf

SMALLER = Reencode(resize=60)
_GREY = odd_jpegs.saved(odd_jpegs.PHOTOGRAPH.convert("L"))


def _named(images: dict[str, bytes]) -> Any:
    return pytest.mark.parametrize(
        "data", [pytest.param(data, id=name) for name, data in images.items()]
    )


def _is_repaired(data: bytes) -> bool:
    return jpeg.read_header(data).components == 4


# grades -------------------------------------------------------------------------------------------


@_named(odd_jpegs.WARNED)
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_a_warned_image_is_taken_with_its_warning(data: bytes, how: Reencode | None) -> None:
    """Whole pixels under odd headers: taken byte for byte unless encoded again,
    and the warning says what is odd.
    """
    prepared = prepare(data, "decode", how)
    assert prepared.warning
    assert " (" not in prepared.warning  # a shard's entry parts the name from the warning there
    assert _is_repaired(data) or how is not None or bytes(prepared.encoded) == data


@_named(odd_jpegs.CLEAN)
@pytest.mark.parametrize("check", ["header", "decode", "strict"])
def test_what_no_jpeg_decoder_looks_at_is_clean(data: bytes, check: Check) -> None:
    """Odd metadata that no decoder of the pixels looks at needs no warning,
    and is no damage to any check.
    """
    prepared = prepare(data, check)
    assert (bytes(prepared.encoded), prepared.warning) == (data, "")


@_named(odd_jpegs.WARNED)
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_strict_refuses_each_warning(data: bytes, how: Reencode | None) -> None:
    """With check: strict each complaint of the decoder is damage,
    and so are bytes after the end.
    """
    with pytest.raises(ImageError):
        prepare(data, "strict", how)


@_named(odd_jpegs.DAMAGED)
@pytest.mark.parametrize("check", ["decode", "strict"])
@pytest.mark.parametrize("how", [None, SMALLER], ids=["as is", "resized"])
def test_missing_or_wrong_coded_data_is_damage(
    data: bytes, check: Check, how: Reencode | None
) -> None:
    """Coded data that is missing or wrong is damage, whatever a lenient decoder makes of it;
    no message denies that such a decoder reads it.
    """
    with pytest.raises(ImageError) as caught:
        prepare(data, check, how)
    if "does not decode: " in str(caught.value):
        with pytest.raises(OSError):
            Image.open(io.BytesIO(data)).load()


@_named(odd_jpegs.WARNED)
def test_headers_alone_are_enough_for_a_warned_image(data: bytes) -> None:
    """check: header takes each warned image too."""
    assert _is_repaired(data) or bytes(prepare(data, "header").encoded) == data


@pytest.mark.parametrize(
    ("kind", "warning"),
    [
        ("Se 0", "odd scan parameters"),
        ("JFIF 2.00", "unknown JFIF revision number 2.00"),
        ("stray bytes before SOF", "1 stray byte before markers"),
        ("ICC numbers", "bad ICC marker"),
        ("10 kB after the end", "10,000 bytes after the end"),
        (
            "an MPO with odd scan parameters",
            f"odd scan parameters, {len(odd_jpegs.PROGRESSIVE):,} bytes after the end",
        ),
        (
            "all at once",
            (
                "2 stray bytes before markers, odd scan parameters, bad ICC marker, "
                "77 bytes after the end"
            ),
        ),
    ],
)
def test_a_warning_says_everything_that_is_odd(kind: str, warning: str) -> None:
    """The warning names each odd thing, with counts of bytes."""
    assert prepare(odd_jpegs.WARNED[kind], "decode").warning == warning


# one judge ----------------------------------------------------------------------------------------


def _verify(data: bytes) -> None:
    for finding in check_jpeg(memoryview(data), {"width": None, "height": None}, decode=True):
        raise ImageError(finding.detail)


USERS = {
    "verify": _verify,
    "decode_array": pixels.decode_array,
    "decode_array, smaller": lambda data: pixels.decode_array(data, 40),
    "decode_part": lambda data: parts.decode_part(
        data, lambda height, width: (0, 0, height, width), 40
    ),
    "decode_raster": rasters.decode_raster,
}


def _decode_upper_half(data: bytes) -> Any:
    return parts.decode_part(data, lambda height, width: (0, 0, height // 2, width), 40)


@pytest.mark.parametrize("user", USERS | {"decode_part, above": _decode_upper_half})
@_named(odd_jpegs.WARNED | odd_jpegs.CLEAN)
def test_verify_and_the_loaders_take_what_convert_takes(user: str, data: bytes) -> None:
    """One judge: verify finds no fault in a warned image, and the loaders decode it."""
    (USERS | {"decode_part, above": _decode_upper_half})[user](data)


@pytest.mark.parametrize("user", USERS)
@_named(odd_jpegs.DAMAGED)
def test_verify_and_the_loaders_refuse_what_convert_refuses(user: str, data: bytes) -> None:
    """One judge: what convert refuses as damaged is damaged to verify and to the loaders."""
    with pytest.raises(ImageError):
        USERS[user](data)


@_named(odd_jpegs.WARNED)
def test_every_decoder_reads_a_warned_image(tf: Any, data: bytes) -> None:
    """Pillow and TensorFlow decode a warned file by default,
    to the pixels of a copy with plain headers.
    """
    plain = bytes(grades.judge(data, "decode", pixels.check_decode).plain)
    assert plain != data
    read = [np.asarray(Image.open(io.BytesIO(each))) for each in (data, plain)]
    assert (read[0] == read[1]).all()
    if not _is_repaired(data):
        read = [tf.io.decode_jpeg(each).numpy() for each in (data, plain)]
        assert (read[0] == read[1]).all()
        assert (pixels.decode_array(data) == pixels.decode_array(plain)).all()


def test_a_warned_image_has_the_pixels_of_the_image_that_it_was_made_from() -> None:
    """Odd headers around the same coded data change no pixel, in full size, smaller, or in part."""
    whole = pixels.decode_array(odd_jpegs.BASELINE)
    part = parts.decode_part(odd_jpegs.BASELINE, lambda height, width: (8, 8, 40, 60), 40).pixels
    for kind in (
        "Se 0",
        "JFIF 2.00",
        "stray bytes before DQT",
        "ICC numbers",
        "1 MB after the end",
    ):
        data = odd_jpegs.WARNED[kind]
        assert (pixels.decode_array(data) == whole).all(), kind
        assert (
            parts.decode_part(data, lambda height, width: (8, 8, 40, 60), 40).pixels == part
        ).all(), kind


def test_the_orientation_is_read_behind_stray_bytes() -> None:
    """Stray bytes ahead of the EXIF segment hide no orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = odd_jpegs.saved(exif=exif)
    assert read_orientation(odd_jpegs.before(data, 0xE1, bytes(5))) == read_orientation(data) == 6


def test_as_many_flipped_bits_are_found_as_by_the_strict_rule() -> None:
    """Of 300 flipped bits in coded data the judge finds each one that libjpeg warns of."""
    rng, found = random.Random(35), {"strict": 0, "decode": 0}
    for seed in range(6):
        data, _ = photographs.photograph_bytes(seed)
        start = odd_jpegs.scan_start(data)
        for _ in range(50):
            flipped = bytearray(data)
            flipped[rng.randrange(start, len(data) - 2)] ^= 1 << rng.randrange(8)
            for check in found:
                try:
                    prepare(bytes(flipped), check)  # type: ignore[arg-type]
                except ImageError:
                    found[check] += 1
    assert found["decode"] >= found["strict"] > 60


def _finds(check: Callable[[bytes], object], data: bytes) -> bool:
    try:
        check(data)
    except ImageError:
        return True
    return False


@pytest.mark.parametrize(
    "data", [odd_jpegs.BASELINE, odd_jpegs.RESTARTS, _GREY], ids=["4:2:0", "restarts", "grey"]
)
def test_codes_of_odd_sampling_factors_are_judged_as_by_the_decoder(data: bytes) -> None:
    """The reader of codes, for factors that the decoder refuses,
    finds each flipped bit that the decoder finds.
    """
    rng, start, header = random.Random(4), odd_jpegs.scan_start(data), jpeg.read_header(data)
    judges = (lambda flipped: pixels.check_decode(flipped, header), check_coded)
    found = []
    for _ in range(100):
        flipped = bytearray(data)
        flipped[rng.randrange(start, len(data) - 2)] ^= 1 << rng.randrange(8)
        found.append(tuple(_finds(check, bytes(flipped)) for check in judges))
    assert set(found) == {(False, False), (True, True)}


# sets ---------------------------------------------------------------------------------------------

ODD = {
    "a.jpg": odd_jpegs.BASELINE,
    "b.jpg": odd_jpegs.WARNED["Se 0"],
    "c.jpg": odd_jpegs.WARNED["stray bytes before DQT"],
    "d.jpg": odd_jpegs.WARNED["10 kB after the end"],
    "e.jpg": odd_jpegs.CLEAN["EXIF cut"],
}
RECIPES = {
    "mapped": "source: {files: 'pets/cats/*.jpg'}\nnum_shards: 1\n",
    "inception": "source: {folders: pets}\nrecord: inception\nnum_shards: 1\n",
    "raw": (
        "source: {files: 'pets/cats/*.jpg'}\ncontent: pixels\nrecord: {pixels: raw, shape: "
        "shape}\nnum_shards: 1\n"
    ),
    "kept": "source: {files: 'pets/cats/*.jpg'}\nkeep: true\nnum_shards: 1\n",
    "resized": "source: {files: 'pets/cats/*.jpg'}\nresize: 60\nnum_shards: 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of five images, three of them warned."""
    for name, data in ODD.items():
        save(tmp_path / "pets" / "cats" / name, data)
    return tmp_path


def _convert(folder: Path, recipe: str, *words: str, status: int = 0) -> str:
    (folder / "recipe.yaml").write_text(recipe)
    ended = command("convert", "out", "--config", "recipe.yaml", *words, cwd=folder, status=status)
    return ended.stdout + ended.stderr


_FOLDERS = {
    recipe: "cats/" if "folders:" in recipe else "pets/cats/" for recipe in RECIPES.values()
}
"""What is in front of the names of files."""


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_warned_images_are_counted_and_named_everywhere(folder: Path, recipe: str) -> None:
    """convert, the manifest, verify, --json, the report and show count or name them;
    nothing advises a repair.
    """
    assert (
        f"unusual, but no pixel is damaged: 3 images: {_FOLDERS[recipe]}b.jpg (odd scan parameters)"
        in _convert(folder, recipe)
    )
    (path,) = (folder / "out").rglob("manifest.json")
    manifest = json.loads(path.read_text())
    (totals,) = manifest["totals"].values()
    (shard,) = manifest["shards"].values()
    assert (totals["warned"], len(shard["warned"])) == (3, 3)
    for depth in ("quick", "full", "decode"):
        said = command("verify", "out", "--depth", depth, cwd=folder)
        assert "warned: 3" in said.stdout + said.stderr
        assert "repair" not in said.stdout + said.stderr
    verdict = json.loads(
        command("verify", "out", "--depth", "decode", "--json", "-", cwd=folder).stdout
    )
    assert (verdict["counts"], verdict["problems"]) == ({"warned": 3}, [])
    assert verdict["warned"] == shard["warned"]
    command("report", "out", "--output", "page.html", cwd=folder)
    assert "b.jpg (odd scan parameters)" in (folder / "page.html").read_text()
    assert "warned: 3" in command("status", "out", cwd=folder).stdout


def test_warned_images_are_in_their_records_byte_for_byte(folder: Path) -> None:
    """Nothing is encoded again, and show says of each record what its image warns of."""
    _convert(folder, RECIPES["inception"])
    shard = next(path for path in list((folder / "out").rglob("*-of-*")) if path.is_file())
    records = {record.filename: bytes(record.encoded) for record in Shard.open(shard).records()}
    assert records == {f"cats/{name}": data for name, data in ODD.items()}
    shown = command("show", shard, cwd=folder).stdout
    assert shown.count("warned: ") == 3
    assert "warned: 10,000 bytes after the end" in shown
    lines = [
        json.loads(line)
        for line in command("show", shard, "--json", "-", cwd=folder).stdout.splitlines()
    ]
    warned = {line["features"]["image/encoded"][0].get("warned", "") for line in lines}
    assert warned == {
        "",
        "10,000 bytes after the end",
        "4 stray bytes before markers",
        "odd scan parameters",
    }


def test_a_stricter_check_of_a_finished_set(folder: Path) -> None:
    """strict refuses warned images that are in shards;
    where there are none, convert says what it did not look at.
    """
    _convert(folder, RECIPES["inception"])
    (shard,) = (path for path in existing(folder / "out", "train-*") if path.is_file())
    content = shard.read_bytes()
    said = _convert(folder, RECIPES["inception"] + "check: strict\n", status=3)
    assert said.count("bad image: ") == 3
    assert _convert(folder, RECIPES["inception"]).count("decides only") == 0
    assert shard.read_bytes() == content
    assert "warned: 3" in command("verify", "out", cwd=folder).stdout
    for name in ODD:
        (folder / "pets" / "cats" / name).unlink()
    save(folder / "pets" / "cats" / "sound.jpg", odd_jpegs.BASELINE)
    _convert(folder, RECIPES["inception"], "--overwrite")
    said = _convert(folder, RECIPES["inception"] + "check: strict\n")
    assert "check strict applies only to new shards" in said
    assert "verify out --depth decode" in said


def test_the_check_of_a_finished_set_names_the_folder_of_its_shards(folder: Path) -> None:
    """With --output the shards are there, and DATA_DIR has none: the command that is named works."""
    for name in ODD:
        (folder / "pets" / "cats" / name).unlink()
    save(folder / "pets" / "cats" / "sound.jpg", odd_jpegs.BASELINE)
    recipe = RECIPES["inception"] + "check: strict\n"
    for _ in range(2):
        said = _convert(folder, recipe, "--output", "elsewhere")
    assert "to decode all images: imagenet-prep verify elsewhere --depth decode" in said
    command("verify", "elsewhere", "--depth", "decode", cwd=folder)


@pytest.mark.parametrize("name", sorted(RECIPES.keys() - {"raw"}))
def test_strict_refuses_a_set_with_warned_images(folder: Path, name: str) -> None:
    """check: strict of a recipe refuses each of them, resized or not,
    and says which check takes it.
    """
    said = _convert(folder, RECIPES[name] + "check: strict\n", status=3)
    assert said.count("bad image: ") == 3
    assert said.count("check: decode in the recipe accepts it unchanged") == 3
    assert "libjpeg warns: Invalid SOS parameters for sequential JPEG; the strict check" in said
    assert not [*(folder / "out").rglob("manifest.json")]


@pytest.mark.parametrize("check", ["auto", "header", "decode", "strict"])
@pytest.mark.parametrize("words", [(), ("--resize", "60")], ids=["as is", "resized"])
def test_imagenet_has_the_same_checks(
    tmp_path: Path, made_tiny: MadeSet, check: str, words: tuple[str, ...]
) -> None:
    """--check of convert decides on a warned image of ImageNet too, with and without --resize."""
    wnid = made_tiny.wnids[0]
    save(tmp_path / f"raw-data/train/{wnid}/{wnid}_1.JPEG", odd_jpegs.WARNED["ICC numbers"])
    part = "--allow-incomplete --train-shards 1 --validation-shards 1"
    status = 3 if check == "strict" else 0
    ended = command(
        "convert", ".", *part.split(), "--check", check, *words, cwd=tmp_path, status=status
    )
    said = ended.stdout + ended.stderr
    if check == "strict":
        assert "--check decode accepts it unchanged" in said
    elif check != "header" or words:
        assert f"unusual, but no pixel is damaged: 1 image: {wnid}_1.JPEG (bad ICC marker)" in said
        assert command("verify", ".", "--depth", "decode", cwd=tmp_path).returncode == 0


def test_a_clean_set_has_no_count_of_warned_images(folder: Path) -> None:
    """Manifests of clean sets keep their bytes: nothing names a count of 0."""
    for name in "bcd":
        (folder / "pets" / "cats" / f"{name}.jpg").unlink()
    assert "warned" not in _convert(folder, RECIPES["inception"])
    (manifest,) = (folder / "out").rglob("manifest.json")
    assert "warned" not in manifest.read_text()


@pytest.mark.parametrize("words", [("--quiet",), ()], ids=["quiet", "told"])
def test_wrong_exif_prints_nothing(folder: Path, words: tuple[str, ...]) -> None:
    """Pillow's warnings of wrong EXIF reach nobody while images are resized, turned or shown."""
    save(
        folder / "pets" / "cats" / "f.jpg",
        odd_jpegs.headed(odd_jpegs.CMYK, 0xE1, odd_jpegs.EXIF_CUT),
    )
    webp = io.BytesIO()
    odd_jpegs.PHOTOGRAPH.save(webp, "WEBP", exif=odd_jpegs.EXIF_CUT)
    save(folder / "pets" / "cats" / "g.webp", webp.getvalue())
    recipe = "source: {files: 'pets/cats/*'}\nresize: 60\nupright: true\nnum_shards: 1\n"
    said = _convert(folder, recipe, *words)
    assert "Warning" not in said
    assert said == "" or not words
    shard = next((folder / "out").rglob("train-*"))
    assert "Warning" not in command("show", shard, "--image", "image.png", cwd=folder).stderr


@pytest.mark.parametrize("mode", ["CMYK", "LAB", "YCbCr"])
def test_a_tiff_of_other_colours_becomes_a_jpeg(mode: str) -> None:
    """Whole pixels in CMYK, Lab or YCbCr are taken as RGB; as bare numbers they stay refused."""
    picture = odd_jpegs.PHOTOGRAPH
    if mode == "LAB":
        picture = ImageCms.profileToProfile(
            picture, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
        )
    buffer = io.BytesIO()
    picture.convert(mode).save(buffer, "TIFF")
    try:
        Image.open(buffer).load()
    except OSError:  # Pillow 12 does not read the TIFFs in YCbCr that it writes
        with pytest.raises(ImageError, match="truncated"):
            prepare(buffer.getvalue(), "decode")
        return
    prepared = prepare(buffer.getvalue(), "decode")
    assert prepared.repair == "tiff"
    difference = pixels.decode_array(prepared.encoded).astype(int) - np.asarray(
        odd_jpegs.PHOTOGRAPH
    )
    assert abs(difference).mean() < 8
    with pytest.raises(ImageError, match=mode):
        rasters.decode_raster(buffer.getvalue())
