"""The error for a file of arrays or samples says what is wrong, and advises what helps."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tars import in_memory

from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError
from imagenet_prep.images.arrays import ArrayError, names_in_npz, parse_array
from imagenet_prep.model import Item
from imagenet_prep.recipes.array_sets import list_arrays
from imagenet_prep.recipes.columns import Mapped
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.sources.array_files import ArrayFile, names_of_classes, open_arrays
from imagenet_prep.sources.lmdb_pages import iter_lmdb
from imagenet_prep.sources.mds_shards import iter_mds
from imagenet_prep.sources.slices import Row
from imagenet_prep.tfrecord.example import Kind

INTACT = "get an intact copy of it"


def npy(array: Any) -> bytes:
    """An .npy."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    """An .npz."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def mds(columns: dict[str, Any], samples: Sequence[bytes]) -> bytes:
    """A shard of MosaicML's."""
    config = json.dumps(columns).encode()
    count = len(samples)
    offsets = [4 * (count + 2) + len(config)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    return struct.pack(f"<{count + 2}I", count, *offsets) + config + b"".join(samples)


def columns(encoding: str) -> dict[str, Any]:
    """The description of one column."""
    return {"column_names": ["x"], "column_encodings": [encoding], "column_sizes": [None]}


PIXELS = b"label,pixel0,pixel1\n"
OF_PYTHON = {"x": Path("x")}
LATER = in_memory(lambda file: np.lib.format.write_array(file, np.arange(2), (3, 0)))
NONE_OF_THEM = "it is none of the formats of arrays"
FAULTS = {
    # name, content, reason, whether another copy may help
    "objects": ("a.npy", npy(np.array([None], object)), "its dtype is object", False),
    "complex": ("a.npy", npy(np.ones(2, complex)), "its dtype is complex128", False),
    "a negative shape": (
        "a.npy",
        npy(np.ones((2, 3))).replace(b"(2, 3)", b"(-2,3)"),
        "its shape (-2, 3) has a negative number",
        True,
    ),
    "two saved in one": (
        "a.npy",
        npy(np.ones(2)) * 2,
        "it has 288 bytes: expected 144 for the shape (2,)",
        True,
    ),
    "a later version": ("a.npy", LATER, "its .npy version is 3.0", False),
    "cut": (
        "a.npy",
        npy(np.ones(9))[:-8],
        "it has 192 bytes: expected 200 for the shape (9,)",
        True,
    ),
    "a text as npy": ("a.npy", b"1 2 3\n", "it does not start as an .npy does", True),
    "empty": ("a.npy", b"", "it is empty", True),
    "a text": ("labels.txt", b"1 2 3\n", NONE_OF_THEM, False),
    "an old pickle": ("a.pkl", pickle.dumps({"x": 1}, 0), NONE_OF_THEM, False),
    "a pickled object": ("a.pkl", pickle.dumps(OF_PYTHON, 4), "expected arrays of NumPy", False),
    "pickled texts": (
        "a.pkl",
        pickle.dumps({"x": np.array(["a"])}, 4),
        "its pickle holds an array of str: expected bool",
        False,
    ),
    "pickled objects": (
        "a.pkl",
        pickle.dumps({"x": np.array([None])}, 4),
        "its pickle holds an array of object: expected bool",
        False,
    ),
    "pickled complex numbers": (
        "a.pkl",
        pickle.dumps({"x": np.ones(2, np.complex64)}, 4),
        "its pickle holds an array of complex64: expected bool",
        False,
    ),
    "a pickled dtype of another version": (
        "a.pkl",
        pickle.dumps({"x": np.ones(2, np.uint8)}, 2).replace(b"(K\3X", b"(K\5X"),
        "its pickle has an array of uint8 in a form that imagenet-prep can't read",
        True,
    ),
    "a cut pickle": ("a.pkl", pickle.dumps({"x": [1] * 99}, 4)[:40], "is cut or damaged", True),
    "a call of numpy.ndarray": (
        "a.pkl",
        b"\x80\x02}U\x01xcnumpy\nndarray\n(K\x01tRs.",
        "its pickle can't be read: TypeError",
        True,
    ),
    "NumPy's version 3": ("a.npy", b"\x93NUMPY\3\0" + bytes(9), "its .npy version is 3.0", False),
    "empty rows": (
        "a.npy",
        npy(np.ones((2, 0))),
        "shape (2, 0) of float64 has rows of 0 bytes",
        True,
    ),
    "a text like a zip": ("a.npz", b"PK is no zip", NONE_OF_THEM, False),
    "floats in IDX": ("a", b"\0\0\x0d\1\0\0\0\1" + bytes(4), "not an IDX file of numbers", True),
    "no IDX in gzip": ("a-idx1-ubyte.gz", gzip.compress(b"x"), "not an IDX file", True),
    "nothing in gzip": (
        "a-idx1-ubyte.gz",
        gzip.compress(b""),
        "(first bytes: none)",
        True,
    ),
    "a cut npz": ("a.npz", b"PK\3\4" + bytes(40), "its zip can't be read", True),
    "one cell": ("a.csv", PIXELS + b"7\n", "line 2 has 1 cell: expected 3", True),
    "a break in quotes": (
        "a.csv",
        PIXELS + b'"a\nb",2,3\n"c",x,3\n',
        "line 4 has the pixel 'x': expected 0 to 255",
        True,
    ),
    "no pixels": ("a.csv", b"emotion,pixels\n1,\n", "line 2 has no pixels", True),
    "fewer pixels": (
        "a.csv",
        b"emotion,pixels\n1,1 2 3 4\n2,5\n",
        "line 3 has 1 pixel: expected 4, as in an earlier row",
        True,
    ),
    "a large pixel": (
        "a.csv",
        PIXELS + b"1,2,256\n",
        "line 2 has the pixel '256': expected 0",
        True,
    ),
    "a pixel with an exponent": ("a.csv", PIXELS + b"1,2,1e2\n", "the pixel '1e2': expected", True),
    "a split of fewer pixels": (
        "a.csv",
        b"pixels,Usage\n1 2 3 4,Training\n1 2,PublicTest\n1 2 3 4,PublicTest\n",
        "line 4 has 4 pixels: expected 2, as in an earlier row",
        True,
    ),
    "rows of CIFAR": ("data_batch_1.bin", bytes(9), "the bytes of an image and its label", True),
    "an empty shard": ("a.mds", b"", "it is empty", True),
    "many samples": ("a.mds", b"\0\0\0\x40" * 9, "it is cut or damaged", True),
    "other JSON": ("a.mds", mds({}, [b"a"]), "it is cut or damaged", True),
    "raw pixels": (
        "a.mds",
        mds(columns("pil"), [struct.pack("<I", 1) + b"a"]),
        "sample 0 has no image in a column of the type jpeg, png, bytes or jpegarray: its columns are x (pil)",
        True,
    ),
    "an empty database": ("a.mdb", b"", "it is empty", True),
    "three bytes": ("a.mdb", b"abc", "it is cut, damaged, or in a form that", True),
    "no database": ("a.mdb", bytes(9999), "it is not an LMDB", True),
}


def test_a_file_of_class_names_is_not_called_arrays(tmp_path: Path) -> None:
    """No advice to save images as arrays helps it."""
    (tmp_path / "batches.meta").write_bytes(pickle.dumps(OF_PYTHON, 4))
    with pytest.raises(InputError, match="can't be read as a file of class names") as caught:
        names_of_classes(tmp_path / "batches.meta")
    assert caught.value.hint == "get an intact copy of it, or move it away"


@pytest.mark.parametrize("case", FAULTS)
def test_the_reason_and_the_advice_fit_the_file(case: str, tmp_path: Path) -> None:
    """Another copy of a file that is as its program wrote it would be refused, too."""
    name, content, reason, is_for_another_copy = FAULTS[case]
    (tmp_path / name).write_bytes(content)
    read = {".mds": iter_mds, ".mdb": iter_lmdb}.get(Path(name).suffix, open_arrays)
    with pytest.raises(InputError) as caught:
        list(read(tmp_path / name))
    error = caught.value
    assert f"{name} can't be read as " in error.what
    assert reason in error.detail
    assert error.hint
    assert (INTACT in error.hint) == is_for_another_copy


def test_the_metadata_of_a_pickled_dtype_is_skipped(tmp_path: Path) -> None:
    """NumPy reads such an array, whose values are the same."""
    with_metadata = np.dtype("uint8", metadata={"channels": "RGB"})
    images = np.arange(24).astype(with_metadata).reshape(2, 2, 2, 3)
    for protocol in (2, 4):
        (tmp_path / "a.pkl").write_bytes(pickle.dumps({"x": images}, protocol))
        array = open_arrays(tmp_path / "a.pkl")["x"]
        assert (array.shape, array.dtype) == (images.shape, np.uint8)


def test_arrays_that_are_saved_as_advised_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls of NumPy in the hints are run as they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npy").write_bytes(npy(np.array([None], object)))
    with pytest.raises(InputError) as caught:
        open_arrays(tmp_path / "a.npy")
    call = caught.value.hint.partition(": ")[2].partition(", in a folder")[0]
    exec(call, {"numpy": np, "images": np.ones((2, 3, 3), np.uint8), "labels": np.arange(2)})
    assert set(open_arrays(tmp_path / "data.npz")) == {"x", "y"}


def test_an_idx_that_was_compressed_twice_is_unpacked_as_advised(tmp_path: Path) -> None:
    """The advised command makes it a file that is read."""
    path = tmp_path / "a b-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"\0\0\x08\1\0\0\0\2\7\1")))
    with pytest.raises(InputError, match="it was compressed twice") as caught:
        open_arrays(path)
    command = caught.value.hint.removeprefix("unpack it once: ")
    subprocess.run(command, shell=True, check=True, timeout=60)
    (array,) = open_arrays(path).values()
    assert array.values().tolist() == [7, 1]


def test_a_file_that_is_replaced_while_it_is_read_is_not_called_damaged_alone(
    tmp_path: Path,
) -> None:
    """The advice is to run the command again."""
    path = tmp_path / "a.npz"
    path.write_bytes(npz(x=np.zeros((2, 28, 28), np.uint8)))
    container = ArrayFile(path)
    row = Row("x/1.npy", 1, len(container.open()(Row("x/1.npy", 1, 912, 0))), 0)
    path.write_bytes(npz(x=np.zeros((2, 32, 32), np.uint8)))
    said = r"x\[1\] has the shape \(32, 32\) of uint8, and had another: .* was replaced after"
    with pytest.raises(InputError, match=said) as caught:
        container.open()(row)
    assert caught.value.hint.startswith("run the same command again")
    path.write_bytes(npz(y=np.zeros((2, 28, 28), np.uint8)))
    with pytest.raises(InputError, match="had the array x, now y") as caught:
        container.open()(row)
    assert caught.value.hint.startswith("run the same command again")
    path.write_bytes(npz(x=np.zeros((1, 28, 28), np.uint8)))
    with pytest.raises(InputError, match=r"the file ends within x\[1\] or before it: "):
        container.open()(row)


def test_a_pickle_of_one_array_is_read(tmp_path: Path) -> None:
    """Without a dictionary, as a script writes its images alone."""
    images = np.arange(48, dtype=np.uint8).reshape(2, 4, 6)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(images, 4))
    (array,) = open_arrays(tmp_path / "a.pkl").values()
    assert np.array_equal(array.values(), images)


@pytest.mark.parametrize("content", [pickle.dumps([1, 2], 4), npz()])
def test_a_file_without_an_array_has_advice(tmp_path: Path, content: bytes) -> None:
    """A pickle of something else, or a zip that is no .npz, such as a checkpoint of PyTorch."""
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=r"no array in .*/a\n") as caught:
        list_arrays([tmp_path / "a"], ThreadEngine(1))
    assert "numpy.savez" in caught.value.hint


@pytest.mark.parametrize("write", [npy, lambda array: npz(x=array)])
@pytest.mark.parametrize("shape", [(6, 4, 5, 3), (6, 2), (1, 4)])
def test_arrays_in_fortran_order_have_the_same_rows(
    tmp_path: Path, shape: tuple[int, ...], write: Callable[[Any], bytes]
) -> None:
    """Their rows are not in one piece of the file."""
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    (tmp_path / "x.npy").write_bytes(write(np.asfortranarray(values)))
    (array,) = open_arrays(tmp_path / "x.npy").values()
    assert array.shape == shape
    with array.open() as file:
        for row, expected in enumerate(values):
            file.seek(array.start + row * array.item_bytes)
            assert file.read(array.item_bytes) == expected.tobytes()
    array.check()


# arrays that are an example each --------------------------------------------------------------------


def array_recorder(*columns: str, kind: Kind = "bytes", **options: Any) -> Callable[[bytes], Any]:
    """What makes a record of these columns of an array."""
    mapped = tuple(Mapped(column, column, kind, many=True) for column in columns)
    recorder = MappedRecorder(mapped, "array", **options)
    return lambda data: recorder.record(Item("a.npy", 1, "a", "a", (), {}), data)


GOOD = npy(np.arange(12.0))
EMPTY = in_memory(np.savez)
TWO = in_memory(lambda file: np.savez(file, x=np.arange(3), y=np.arange(4)))
BOUNDS = (0.0, 1.0)
SOUND: dict[str, tuple[Callable[[bytes], Any], bytes, str]] = {
    "no array": (parse_array, EMPTY, "save it again with an array"),
    "two arrays": (
        parse_array,
        TWO,
        "save it with one array; or, if every file has an array called x, write array: x in the recipe",
    ),
    "no such array": (lambda data: parse_array(data, "z"), TWO, "correct `array` in the recipe"),
    "an npy": (lambda data: parse_array(data, "z"), GOOD, "take `array` out of the recipe"),
    "two in one": (parse_array, GOOD + GOOD, "save one array per file"),
    "another format": (parse_array, b"1 2 3", "or save it again with NumPy"),
    "a later version": (parse_array, LATER, "save it again with numpy.save"),
    "texts": (parse_array, npy(np.array(["a"])), "save its values with a type such as uint8"),
    "NaN": (
        array_recorder("values", kind="float", bounds=BOUNDS),
        npy(np.array([np.nan])),
        "take min_val and max_val out of the recipe",
    ),
    "beyond 32 bits": (
        array_recorder("values", kind="float"),
        npy(np.array([1e300])),
        "write `raw` in place of `values` in the recipe",
    ),
    "floats for whole numbers": (
        array_recorder("values", kind="int64"),
        npy(np.array([0.5])),
        "write type: float for values in the recipe",
    ),
    "beyond 63 bits": (
        array_recorder("values", kind="int64"),
        npy(np.array([1 << 63], "u8")),
        "write type: float for values",
    ),
    "four dimensions": (
        array_recorder("height", kind="int64"),
        npy(np.zeros((1, 1, 1, 1))),
        "write `shape` in place of height, width and depth",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_the_advice_for_a_sound_array_is_not_another_copy_alone(name: str) -> None:
    """Another copy of it would be refused, too."""
    read, data, remedy = SOUND[name]
    with pytest.raises(ArrayError) as caught:
        read(data)
    assert remedy in caught.value.remedy


def test_another_file_in_an_npz_is_no_array() -> None:
    """The array is the only one, and so needs no name."""
    buffer = io.BytesIO()
    np.savez(buffer, x=np.arange(3))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("README.txt", "by hand")
    assert names_in_npz(buffer.getvalue()) == ["x"]
    assert parse_array(buffer.getvalue()).tolist() == [0, 1, 2]
