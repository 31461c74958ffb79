"""Recorders: items and their bytes -> records, held against TensorFlow's parser and decoders."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import tf_fixture
from made_tars import in_memory
from PIL import Image

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.images import pixels, rasters
from imagenet_prep.images.arrays import ArrayError, parse_array
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Item
from imagenet_prep.recipes.columns import Mapped
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.sources.slices import Reader
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List, encode_example

load_tensorflow = tf_fixture.tf
tf: Any = None  # the module, for functions that are no tests

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _tensorflow(load_tensorflow: Any) -> None:
    global tf
    tf = load_tensorflow


def item(label: int = 1, **columns: Any) -> Item:
    """An item of class cat."""
    return Item("a/é.png", label, "cat", "a cat", (), columns)


def recorded(recorder: MappedRecorder | InceptionRecorder, data: bytes, **columns: Any) -> bytes:
    """The bytes of a record."""
    return b"".join(map(bytes, recorder.record(item(**columns), data).parts))


def parsed(record: bytes) -> dict[str, list[Any]]:
    """The values of a record, by TensorFlow."""
    example = tf.train.Example.FromString(record)
    return {
        name: list(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in example.features.feature.items()
    }


def every(kinds: dict[str, str]) -> tuple[Mapped, ...]:
    """A feature of its own name for each column."""
    return tuple(
        Mapped(name, name, kinds[name], many=name in ("values", "shape")) for name in sorted(kinds)
    )  # type: ignore[arg-type]


def saved(array: np.ndarray[Any, Any], **options: Any) -> bytes:
    """The bytes of an .npy."""
    return in_memory(lambda file: np.save(file, array, **options))


def image(array: np.ndarray[Any, Any], form: str, **options: Any) -> bytes:
    """An image file of these samples."""
    return in_memory(lambda file: Image.fromarray(array).save(file, form, **options))


IMAGE = {"encoded": "bytes", "height": "int64", "width": "int64", "channels": "int64"}
IMAGE |= {"colorspace": "bytes", "format": "bytes"}
ITEM = {
    "filename": "bytes",
    "path": "bytes",
    "split": "bytes",
    "label": "int64",
    "class": "bytes",
    "text": "bytes",
}
NUMBERS = {"raw": "bytes", "values": "float", "shape": "int64", "dtype": "bytes"}
PLANE = {"height": "int64", "width": "int64", "depth": "int64"}


# images -------------------------------------------------------------------------------------------


def test_every_column_of_an_image() -> None:
    """A JPEG's bytes stay, and all columns of item and image are what they should be."""
    data = image(RNG.integers(0, 256, (8, 12, 3), dtype=np.uint8), "JPEG")
    recorder = MappedRecorder(every({**IMAGE, **ITEM}), "image", "train", numbers=(40,))
    assert parsed(recorded(recorder, data)) == {
        **{"encoded": [data], "height": [8], "width": [12], "channels": [3]},
        **{
            "colorspace": [b"RGB"],
            "format": [b"JPEG"],
            "filename": ["é.png".encode()],
            "path": ["a/é.png".encode()],
        },
        **{"split": [b"train"], "label": [40], "class": [b"cat"], "text": [b"a cat"]},
    }


def test_a_record_is_in_canonical_encoding() -> None:
    """The pieces are the bytes that the encoder of whole Examples gives."""
    data = saved(np.arange(6, dtype=np.float32).reshape(2, 3))
    kinds = {**NUMBERS, "age": "int64", "names": "bytes", "label": "int64"}
    record = recorded(
        MappedRecorder(every(kinds), "array", numbers=(1,)), data, age=-3, names=["x", "y"]
    )
    values = tuple(map(float, range(6)))
    assert record == encode_example(
        {
            "raw": BytesList((np.arange(6, dtype="<f4").tobytes(),)),
            "values": FloatList(values),
            "shape": Int64List((2, 3)),
            "dtype": BytesList((b"float32",)),
            "age": Int64List((-3,)),
            "names": BytesList((b"x", b"y")),
            "label": Int64List((1,)),
        }
    )


def test_what_a_record_must_have_and_an_item_has_not() -> None:
    """An item without a label gives no record that must have one:
    it is an error, and the record is not cut down.
    """
    data = image(RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8), "JPEG")
    unlabelled = Item("a.jpg", 0, "", "", ())
    for column in ("label", "class", "text"):
        features = (Mapped("height", "height", "int64"), Mapped("it", column, "bytes"))
        with pytest.raises(ImageError, match=f"it has no value for {column}"):
            MappedRecorder(features, "image", numbers=(1,)).record(unlabelled, data)
        optional = (features[0], Mapped("it", column, "bytes", optional=True))
        record = MappedRecorder(optional, "image", numbers=(1,)).record(unlabelled, data)
        assert parsed(b"".join(map(bytes, record.parts))) == {"height": [4]}


# samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_bit_of_a_16_bit_png_is_kept(channels: int) -> None:
    """Grey and colours of 16 bits, with alpha and without, come as TensorFlow has them."""
    samples = RNG.integers(0, 65536, (7, 9, channels), dtype=np.uint16)
    data = tf.io.encode_png(samples).numpy()
    found = rasters.decode_raster(data)
    assert found.dtype == np.uint16
    assert (found == samples).all()
    assert (tf.io.decode_png(data, dtype=tf.uint16).numpy() == found).all()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("bits", "channels"), [(8, 1), (8, 3), (8, 4), (16, 1), (16, 3), (16, 4)])
def test_every_bit_of_a_tiff_is_kept(order: str, bits: int, channels: int) -> None:
    """TIFFs of 8 and 16 bits, of either byte order, give the samples that were put in."""
    samples = RNG.integers(0, 1 << bits, (5, 6, channels)).astype(f"u{bits // 8}")
    data = tiff(samples, order)
    found = rasters.decode_raster(data)
    assert found.dtype == samples.dtype
    assert (found == samples).all()


def tiff(
    samples: np.ndarray[Any, Any], order: str, pages: int = 1, *, planar: bool = False
) -> bytes:
    """An uncompressed TIFF, made by hand (TIFF 6.0, section 2 and 8)."""
    height, width, channels = samples.shape
    body = samples.astype(samples.dtype.newbyteorder(order)).tobytes()
    body += bytes(len(body) % 2)
    bits = struct.pack(f"{order}{channels}H", *[8 * samples.itemsize] * channels)
    offset_of_bits = 8 + len(body)
    start = offset_of_bits + len(bits) + len(bits) % 4
    entries = [(256, 4, 1, width), (257, 4, 1, height)]
    entries += [
        (258, 3, channels, 8 * samples.itemsize if channels == 1 else offset_of_bits),
        (259, 3, 1, 1),
    ]
    entries += [
        (262, 3, 1, 1 if channels == 1 else 2),
        (273, 4, 1, 8),
        (277, 3, 1, channels),
        (278, 4, 1, height),
    ]
    entries += [(279, 4, 1, samples.nbytes)]
    entries += [(284, 3, 1, 2)] if planar else []
    entries += [(338, 3, 1, 2)] if channels == 4 else []
    length = 2 + 12 * len(entries) + 4
    directories = b""
    for page in range(pages):
        directories += struct.pack(f"{order}H", len(entries))
        for tag, kind, count, value in entries:
            packed = (
                struct.pack(f"{order}HH", value, 0)
                if kind == 3 and count == 1
                else struct.pack(f"{order}I", value)
            )
            directories += struct.pack(f"{order}HHI", tag, kind, count) + packed
        directories += struct.pack(
            f"{order}I", start + length * (page + 1) if page + 1 < pages else 0
        )
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, start)
    return head + body + bits + bytes(len(bits) % 4) + directories


def test_samples_of_other_images() -> None:
    """Palettes are resolved, one bit becomes 0 and 255,
    a JPEG is what TensorFlow decodes, within a level or two.
    """
    colours = RNG.integers(0, 256, (6, 7, 3), dtype=np.uint8)
    palette = in_memory(lambda file: Image.fromarray(colours).quantize(4).save(file, "PNG"))
    assert (rasters.decode_raster(palette) == tf.io.decode_png(palette, channels=3).numpy()).all()
    is_light = colours[:, :, 0] > 128
    assert (
        rasters.decode_raster(image(is_light, "PNG"))[:, :, 0] == np.where(is_light, 255, 0)
    ).all()
    smooth = np.broadcast_to(np.arange(0, 240, 10, dtype=np.uint8)[None, :, None], (16, 24, 3))
    for samples in (smooth, smooth[:, :, 0]):
        data = image(np.ascontiguousarray(samples), "JPEG")
        found = rasters.decode_raster(data)
        assert (
            np.abs(found.astype(int) - tf.io.decode_jpeg(data, dct_method="INTEGER_ACCURATE")).max()
            <= 2
        )


def _with_a_large_tile(samples: np.ndarray[Any, Any]) -> bytes:
    """A small TIFF whose tags claim a tile of 65,536 pixels each way."""
    tags = {60_000: 1 << 16, 60_001: 1 << 16}
    picture = Image.fromarray(samples)
    data = in_memory(lambda file: picture.save(file, "TIFF", tiffinfo=tags))
    for tag, tile_tag in zip(tags, (0x0142, 0x0143), strict=True):
        data = data.replace(struct.pack("<HH", tag, 4), struct.pack("<HH", tile_tag, 4))
    return data


def _with_a_long_profile(samples: np.ndarray[Any, Any]) -> bytes:
    """A sound PNG whose colour profile is longer than Pillow reads."""
    picture = Image.fromarray(samples)
    return in_memory(lambda file: picture.save(file, "PNG", icc_profile=bytes(1 << 21)))


def _of_sample_format(number: int, dtype: type[np.generic] = np.uint16) -> bytes:
    """A sound TIFF of samples in a format: 2 signed integers, 3 floats."""
    picture = Image.fromarray(np.ones((4, 4), dtype))
    data = in_memory(lambda file: picture.save(file, "TIFF", tiffinfo={60_000: number}))
    return data.replace(struct.pack("<HH", 60_000, 3), struct.pack("<HH", 0x0153, 3))


def test_images_whose_samples_can_t_be_had_are_refused() -> None:
    """Several pages, floats, other formats and cuts are errors of the image."""
    samples = RNG.integers(0, 256, (5, 6, 3), dtype=np.uint8)
    png_without_end = image(samples, "PNG")[:-1] + b"x"
    for data, reason in (
        (tiff(samples, "<", pages=2), "several pages"),
        (image(np.zeros((4, 4), dtype=np.float32), "TIFF"), "32-bit floats"),
        (
            image(samples, "GIF"),
            "its format is GIF, but `content: pixels` in the recipe requires JPEG, PNG or TIFF",
        ),
        (png_without_end, "cut short or damaged"),
        (_with_a_large_tile(samples), "its tile claims 65536 x 65536 pixels"),
        (_of_sample_format(2), "its samples are signed integers of 16 bits: expected unsigned"),
        (_of_sample_format(2, np.uint8), "its samples are signed integers of 8 bits: expected"),
        (_of_sample_format(3), "TIFF header can't be read: it may be .* of an unusual kind"),
        (tiff(samples, "<")[:60], "TIFF"),
        (_with_a_long_profile(samples), "PNG does not decode"),
        (b"", "empty"),
    ):
        with pytest.raises(ImageError, match=reason) as refused:
            rasters.decode_raster(data)
        may_be_sound = data not in (b"", png_without_end)
        assert bool(refused.value.remedy) == may_be_sound, "a sound copy would be refused again"


def test_16_bit_samples_with_0_for_white_are_to_be_inverted() -> None:
    """Pillow reads them as they are stored."""
    grey = Image.fromarray(np.array([[0, 1000]], np.uint16))
    data = in_memory(lambda file: grey.save(file, "TIFF"))
    photometric = struct.Struct("<HHIH")
    data = data.replace(photometric.pack(0x0106, 3, 1, 1), photometric.pack(0x0106, 3, 1, 0))
    with pytest.raises(ImageError, match="use 0 for white") as refused:
        rasters.decode_raster(data)
    assert "samples inverted (65535 minus each)" in refused.value.remedy
    with Image.open(io.BytesIO(data)) as stored:
        assert np.asarray(stored).tolist() == [[0, 1000]]


def test_16_bit_samples_in_planes_are_to_be_saved_otherwise() -> None:
    """They are sound, and are not called cut short; with the channels together they are read."""
    samples = np.arange(48, dtype=np.uint16).reshape(4, 4, 3)
    assert np.array_equal(rasters.decode_raster(tiff(samples, "<")), samples)
    with pytest.raises(ImageError, match="stored as one plane for each channel") as refused:
        rasters.decode_raster(tiff(samples, "<", planar=True))
    assert "channels of each pixel together" in refused.value.remedy


def test_signed_samples_become_no_jpeg() -> None:
    """Pillow would read -1 as 255."""
    with pytest.raises(ImageError, match="signed integers of 8 bits"):
        pixels.decode_other(_of_sample_format(2, np.uint8), "TIFF")


# arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["?", "<i2", ">i4", "<i8", ">u2", "<f2", ">f4", "<f8"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 4)])
def test_arrays_come_back_as_they_went(dtype: str, shape: tuple[int, ...]) -> None:
    """raw, dtype and shape make the array again, whatever its byte order and memory order were."""
    array = RNG.integers(0, 2, shape).astype(dtype)
    for stored in (array, np.asfortranarray(array)):
        found = parsed(recorded(MappedRecorder(every(NUMBERS), "array"), saved(stored)))
        again = np.frombuffer(found["raw"][0], np.dtype(found["dtype"][0].decode())).reshape(
            found["shape"]
        )
        assert (again == array).all()
        assert found["values"] == [float(value) for value in array.reshape(-1)]


def test_numbers_are_clipped_and_rescaled() -> None:
    """Values end in [0, 1], in `values` as in `raw`, and the bounds become 0 and 1."""
    array = np.array([-9.0, -1.0, 0.0, 1.5, 4.0, 99.0])
    recorder = MappedRecorder(every(NUMBERS), "array", bounds=(-1.0, 4.0))
    found = parsed(recorded(recorder, saved(array)))
    expected = np.array([0, 0, 0.2, 0.5, 1, 1], dtype=np.float32)
    assert np.array_equal(np.float32(found["values"]), expected)
    assert found["raw"] == [expected.tobytes()]
    assert found["dtype"] == [b"float32"]


def test_values_can_be_whole_numbers() -> None:
    """An integer array's values fit int64 features;
    a float array's are refused there, as are too large ones.
    """
    mapped = (Mapped("v", "values", "int64", many=True),)
    recorder = MappedRecorder(mapped, "array")
    assert parsed(recorded(recorder, saved(np.array([-5, 7], dtype="i2")))) == {"v": [-5, 7]}
    for array in (np.array([0.5]), np.array([1 << 63], dtype="u8")):
        with pytest.raises(ArrayError):
            recorder.record(item(), saved(array))


def test_an_npz_has_one_array_or_a_named_one() -> None:
    """One array is taken, of several the one that is named; otherwise the error lists them."""
    two = in_memory(lambda file: np.savez_compressed(file, x=np.arange(3), y=np.arange(4)))
    assert parse_array(two, "y").tolist() == [0, 1, 2, 3]
    with pytest.raises(ArrayError, match=r"2 arrays \(x, y\): expected one"):
        parse_array(two)
    with pytest.raises(ArrayError, match="no array 'z', only x, y"):
        parse_array(two, "z")
    assert parse_array(in_memory(lambda file: np.savez(file, np.arange(2)))).tolist() == [0, 1]


def zipped(name: str, content: bytes) -> bytes:
    """A zip with one member."""

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(name, content)

    return in_memory(write)


GOOD = saved(np.arange(12.0))
BROKEN = {
    "empty": (b"", "empty"),
    "text": (b"1 2 3", "not an .npy"),
    "cut": (GOOD[:-1], "95 bytes after its header, which asks for 96"),
    "longer": (GOOD + b"x", "the .npy has 1 byte after its array"),
    "two": (GOOD + GOOD, f"the .npy has {len(GOOD)} bytes after its array"),
    "header": (GOOD.replace(b"(12,)", b"(-9,)"), "it may be cut short or damaged"),
    "huge": (GOOD.replace(b"(12,), }    ", b"(99999999,)}"), "it may be cut short or damaged"),
    "magic": (GOOD[:6] + b"\x07\x00" + GOOD[8:], "version is 7.0"),
    "no dictionary": (GOOD.replace(b"'descr'", b"'d(sc)'"), "header can't be read"),
    "pickled": (saved(np.array([{}], dtype=object), allow_pickle=True), "object"),
    "complex": (saved(np.array([1j])), "complex"),
    "text array": (saved(np.array(["a"])), "<U1"),
    "dates": (saved(np.array(["2020"], dtype="M8[Y]")), "datetime"),
    "an empty member": (zipped("x.npy", b""), "^its array 'x': it is empty$"),
    "a member of text": (zipped("x.npy", b"1 2 3"), "^its array 'x': not an .npy: it starts with"),
    "zip": (b"PK\x03\x04garbage", "the .npz can't be read: "),
    "no array": (in_memory(np.savez), "the .npz holds no array"),
    "a long header": (
        saved(np.zeros(2, [(f"column_{number}", "f4") for number in range(600)])),
        r"header can't be read: Header info length \([0-9]+\) is large[^\n]*$",
    ),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_array_is_refused(data: bytes, reason: str) -> None:
    """Whatever is wrong is said; nothing is unpickled,
    nothing allocated for a size that is only claimed.
    """
    with pytest.raises(ArrayError, match=reason):
        parse_array(data)


def test_numbers_that_no_record_can_hold_are_refused() -> None:
    """NaN can't be rescaled, a float beyond 32 bits not written;
    infinity and NaN themselves stay.
    """
    with pytest.raises(ArrayError, match="NaN"):
        MappedRecorder(every(NUMBERS), "array", bounds=(0.0, 1.0)).record(
            item(), saved(np.array([np.nan]))
        )
    recorder = MappedRecorder(every(NUMBERS), "array")
    with pytest.raises(ArrayError, match="32 bits"):
        recorder.record(item(), saved(np.array([1e300])))
    assert parsed(recorded(recorder, saved(np.array([np.inf]))))["values"] == [np.inf]
    with pytest.raises(ArrayError, match="1 dimension:"):
        MappedRecorder(every(PLANE), "array").record(item(), saved(np.arange(3)))


@pytest.mark.parametrize(
    ("data", "key", "remedy"),
    [
        (saved(np.array([{}], dtype=object), allow_pickle=True), None, "save its values with a t"),
        (GOOD + GOOD, None, "save one array per file, or get a sound copy"),
        (GOOD, "x", "save it as .npz, or take `array` out of the recipe"),
        (
            in_memory(lambda file: np.savez(file, x=1, y=2)),
            None,
            "an array called x, write array: x in the recipe",
        ),
        (GOOD[:-1], None, "^$"),
        (zipped("x.npy", GOOD + GOOD), None, "save one array per file, or get a sound copy"),
    ],
)
def test_a_sound_array_that_no_record_can_hold_has_a_remedy(
    data: bytes, key: str | None, remedy: str
) -> None:
    """Another copy of a sound file would be refused, too."""
    with pytest.raises(ArrayError) as refused:
        parse_array(data, key)
    assert re.search(remedy, refused.value.remedy)


# whole recipes ------------------------------------------------------------------------------------


def records(folder: Path, recipe: str) -> dict[str, dict[str, list[Any]]]:
    """Every record of a recipe, by the name of its file, by TensorFlow."""
    (folder / "recipe.yaml").write_text(recipe)
    made = load(folder / "recipe.yaml", None, make_engine("threads", 1))
    found = {}
    for split in made.splits:
        for row in range(len(split.catalog)):
            each = split.catalog.item(row)
            record = split.recorder.record(each, split.catalog.read(row, Reader()))
            found[each.filename] = parsed(b"".join(map(bytes, record.parts)))
            missing = {name for name, promise in made.features.items() if not promise["optional"]}
            assert missing <= set(found[each.filename]) <= set(made.features)
    return found


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_images_are_decoded_unless_a_recipe_asks_for_headers_alone(
    tmp_path: Path, form: str
) -> None:
    """Only then is an image with damage inside taken; one that is cut is refused even so."""
    whole = image(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8), form)
    file, recipe = tmp_path / f"a.{form.lower()}", "source: {files: 'a.*'}\n"
    file.write_bytes(whole[:-500] + b"\xff\xfe" * 50 + whole[-400:])
    for images in ("", "check: auto", "check: decode"):
        with pytest.raises(ImageError):
            records(tmp_path, recipe + images)
    assert records(tmp_path, recipe + "check: header")[file.name]["image/encoded"] == [
        file.read_bytes()
    ]
    file.write_bytes(whole[:-20])
    with pytest.raises(ImageError, match="cut short"):
        records(tmp_path, recipe + "check: header")


def test_columns_of_a_labels_file_become_features(tmp_path: Path) -> None:
    """Each of its kind, lists too; a missing value leaves an optional feature out,
    and stops one that is not.
    """
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.arange(number))
    lines = (
        '{"path": "0.npy", "age": 3, "who": "x", "at": [1, 2.5]}',
        '{"path": "1.npy", "age": 4, "who": "y"}',
    )
    (tmp_path / "rows.jsonl").write_text(
        "\n".join((*lines, '{"path": "2.npy", "age": 5, "at": []}'))
    )
    recipe = (
        "source: {files: '*.npy'}\nlabels: rows.jsonl\nrecord:\n  age: {type: float}\n  shape: "
        "shape\n"
    )
    found = records(
        tmp_path, recipe + "  who: {optional: true}\n  place: {from: at, optional: true}\n"
    )
    assert found == {
        "0.npy": {"age": [3.0], "shape": [0], "who": [b"x"], "place": [1.0, 2.5]},
        "1.npy": {"age": [4.0], "shape": [1], "who": [b"y"]},
        "2.npy": {"age": [5.0], "shape": [2], "place": []},
    }
    with pytest.raises(
        InputError, match=r"rows\.jsonl, line 3: the column who has no value for 2\.npy"
    ):
        records(tmp_path, recipe + "  who: who\n")


def test_floats_where_the_recipe_says_int64_name_the_feature() -> None:
    """The array is sound: the recipe has the key that is at fault."""
    recorder = MappedRecorder((Mapped("v", "values", "int64"),), "array")
    with pytest.raises(ImageError) as caught:
        recorder.record(
            Item("a.npy", 0, "", "", ()), in_memory(lambda file: np.save(file, np.ones(3)))
        )
    assert str(caught.value) == "the values are float64, and the recipe says type: int64 for v"
    assert caught.value.remedy == "write type: float for v in the recipe"
