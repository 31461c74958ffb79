"""Data files as people keep them, and their faults: arrays, HDF5, .mat, Arrow, MDS, LMDB, zips."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import h5py
import kept_in_archives
import numpy as np
import pyarrow as pa
import pytest
from kept_folders import KNOWN, Painter
from made_folders import write
from made_sets import ENGINE
from made_tars import pack
from PIL import Image

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.array_groups import are_sets, class_of_file, rival_files
from imagenet_prep.recipes.array_sets import list_arrays
from imagenet_prep.recipes.sample_sources import list_samples
from imagenet_prep.sources import stored_arrays
from imagenet_prep.sources.array_files import open_arrays
from imagenet_prep.sources.lmdb_pages import iter_lmdb
from imagenet_prep.sources.mds_shards import iter_mds
from imagenet_prep.sources.slices import Reader
from imagenet_prep.sources.stored_arrays import ArrayStream
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.stages.init import init

# arrays -------------------------------------------------------------------------------------------

_PICTURES = np.zeros((5, 8, 9, 3), np.uint8)
_LABELS = np.arange(5)


def _npy(folder: Path, **arrays: np.ndarray) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name, values in arrays.items():
        np.save(folder / name, values)
    return [folder / f"{name}.npy" for name in arrays]


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"pics": _PICTURES, "x_1": _LABELS}, True),
        ({"healthy": _PICTURES, "sick": _PICTURES[:2]}, True),
        ({"images": _PICTURES, "extra_images": _PICTURES[:2]}, False),
        ({"input": _PICTURES, "target": _PICTURES}, False),
        ({"part1": _PICTURES, "part2": _PICTURES[:2]}, False),
        ({"cat": np.zeros((30, 40), np.float32), "dog": np.zeros((25, 40), np.float32)}, False),
        ({"cat": np.zeros((8, 9, 3), np.uint8), "dog": np.zeros((8, 9, 3), np.uint8)}, False),
    ],
    ids=[
        "labels",
        "a class each",
        "both images",
        "pairs",
        "numbered",
        "spectrograms",
        "a picture each",
    ],
)
def test_arrays_are_sets_by_their_shapes(
    tmp_path: Path, arrays: dict[str, np.ndarray], expected: bool
) -> None:
    """Labels for each image, or a class a file, make a set; other files are an example each."""
    assert are_sets(_npy(tmp_path / "in", **arrays)) is expected


def test_weights_beside_examples_change_nothing(tmp_path: Path) -> None:
    """Class folders of arrays stay class folders, whatever HDF5 file lies beside them."""
    for name in ("cat", "dog"):
        (tmp_path / "in" / name).mkdir(parents=True)
        for number in range(2):
            np.save(tmp_path / "in" / name / f"{name}{number}.npy", np.zeros((8, 9), np.float32))
    with h5py.File(tmp_path / "in/model.h5", "w") as file:
        file["dense/kernel"] = np.zeros((9, 9))
    summary = init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert summary.evidence[0].startswith("2 folders")


def test_one_hot_rows_and_whole_floats_are_numbers(tmp_path: Path) -> None:
    """Rows with a single 1 give its place; rows of several stay lists."""
    hot = np.eye(4)[[3, 0, 1, 2, 3]]
    (samples,) = list_arrays(_npy(tmp_path / "a", x=_PICTURES, y=hot), ENGINE).values()
    assert samples.columns[str(samples.label)] == [3, 0, 1, 2, 3]
    (samples,) = list_arrays(
        _npy(tmp_path / "b", x=_PICTURES, y=_LABELS.astype(float)), ENGINE
    ).values()
    assert samples.columns[str(samples.label)] == [0, 1, 2, 3, 4]
    several = np.array([[1, 1], [0, 0], [1, 0], [0, 1], [1, 1]])
    (samples,) = list_arrays(_npy(tmp_path / "c", x=_PICTURES, y=several), ENGINE).values()
    assert samples.columns[str(samples.label)] == several.tolist()


def test_files_that_are_sets_are_rivals_and_parts_are_not(tmp_path: Path) -> None:
    """By the words of their names."""
    for name in ("blood", "path", "part1", "part2"):
        np.savez(tmp_path / f"{name}.npz", x=_PICTURES, y=_LABELS)
    assert len(rival_files([tmp_path / "blood.npz", tmp_path / "path.npz"])) == 2
    assert rival_files([tmp_path / "part1.npz", tmp_path / "part2.npz"]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cat.npy", "cat"), ("train_cat.npy", "cat"), ("air-ship.npy", "air-ship")],
)
def test_the_class_of_a_file_is_its_name_without_its_split(name: str, expected: str) -> None:
    """Words of splits are no part of it."""
    assert class_of_file(Path(name)) == expected


@pytest.mark.parametrize("start", [0, 7, 40])
@pytest.mark.parametrize("size", [1, 13, 200, -1])
def test_a_stream_of_rows_has_the_bytes_of_the_array(start: int, size: int) -> None:
    """In C order, whatever the order in memory, from any byte."""
    values = np.arange(60, dtype=np.uint8).reshape(3, 4, 5).transpose(2, 0, 1)
    expected = np.ascontiguousarray(values).tobytes()
    stream = ArrayStream(lambda: values)
    stream.seek(start)
    assert stream.read(size) == expected[start : None if size < 0 else start + size]


def _stl(folder: Path, labels: Sequence[int]) -> list[Path]:
    (folder / "train_X.bin").write_bytes(bytes(len(labels) * 3 * 96 * 96))
    (folder / "train_y.bin").write_bytes(bytes(labels))
    (folder / "class_names.txt").write_text("ant\nbee\ncat\n")
    return sorted(folder.iterdir())


def _cifar(folder: Path, labels: Sequence[int]) -> list[Path]:
    (folder / "data_batch_1.bin").write_bytes(
        b"".join(bytes([label]) + bytes(3072) for label in labels)
    )
    (folder / "batches.meta.txt").write_text("ant\nbee\ncat\n\n")
    return sorted(folder.iterdir())


def _named_npz(folder: Path, labels: Sequence[int]) -> list[Path]:
    names = np.array(["ant", "bee", "cat"])
    np.savez(
        folder / "a.npz",
        x=np.zeros((len(labels), 8, 9, 3), np.uint8),
        y=np.array(labels),
        class_names=names,
    )
    return [folder / "a.npz"]


@pytest.mark.parametrize(
    ("save", "labels", "first"),
    [
        (_stl, (1, 2, 3, 1), 1),
        (_stl, (1, 2, 2, 1), 1),
        (_cifar, (0, 1, 2), 0),
        (_cifar, (1, 2), 0),
        (_named_npz, (0, 1, 2, 0, 1), 0),
        (_named_npz, (1, 2, 3, 1, 2), 1),
    ],
)
def test_names_in_order_count_as_their_format_does(
    tmp_path: Path,
    save: Callable[[Path, Sequence[int]], list[Path]],
    labels: Sequence[int],
    first: int,
) -> None:
    """From 1 in STL-10, from 0 in CIFAR-10, though a class has no image;
    elsewhere the largest number tells.
    """
    (samples,) = list_arrays(save(tmp_path, labels), ENGINE).values()
    names = dict(enumerate(("ant", "bee", "cat"), first))
    words = samples.words[str(samples.label)]
    assert [words[label] for label in samples.columns[str(samples.label)]] == [
        names[label] for label in labels
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("data_batch_1.bin", bytes(3074), "a multiple of 3,073"),
        ("train_X.bin", bytes(96), "a multiple of 27,648"),
        ("a.csv", b"label,pixel0,pixel1\n1,2\n", "line 2 has 2 cells"),
        ("a.csv", b"label,pixel0,pixel1\n1,2,256\n", "line 2 has the pixel '256'"),
        ("a.csv", b"label,pixel0,pixel1\n1,2,x\n", "line 2"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(100), "can't be read as arrays"),
        ("a.mat", b"MATLAB 5.0 MAT-file" + bytes(200), "can't be read as arrays"),
    ],
)
def test_damaged_files_of_arrays_are_named(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    """The error has the file and the reason."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_arrays(tmp_path / name)
    assert name in str(caught.value)
    assert reason in str(caught.value)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """And with the command that installs it."""
    with pytest.raises(UsageError, match=r"\.\[mat\]"):
        stored_arrays.need_library("no_such_library", "mat", ".mat files")


def test_a_library_that_does_not_load_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reason is its own."""
    (tmp_path / "broken_library.py").write_text("import no_such_part")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="can't be imported\nNo module named 'no_such_part'"):
        stored_arrays.need_library("broken_library", "mat", ".mat files")


def test_a_mat_of_version_7_3_has_the_same_arrays(tmp_path: Path) -> None:
    """It is HDF5 with its dimensions in reverse: H x W x C x N becomes N x H x W x C."""
    images = np.random.default_rng(1).integers(0, 256, (5, 8, 9, 3), np.uint8)
    with h5py.File(tmp_path / "train.h5", "w") as file:
        file["X"] = images.transpose(1, 2, 3, 0).T
    content = b"MATLAB 7.3 MAT-file".ljust(512) + (tmp_path / "train.h5").read_bytes()
    with h5py.File(tmp_path / "train.mat", "w", userblock_size=512) as file:
        file["X"] = images.transpose(1, 2, 3, 0).T
    with (tmp_path / "train.mat").open("r+b") as stream:
        stream.write(content[:512])
    assert np.array_equal(open_arrays(tmp_path / "train.mat")["X"].values(), images)


# databases ----------------------------------------------------------------------------------------


def _jpeg(red: int, size: int = 16) -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(red).integers(0, 256, (size, size, 3), np.uint8)
    Image.fromarray(noise).save(stream, "JPEG", quality=95)
    return stream.getvalue()


@pytest.mark.once  # lmdb is there where TensorFlow is
def test_a_database_that_lmdb_wrote_is_read_in_place(tmp_path: Path) -> None:
    """Small and large values, of several pages each, in the order of their keys."""
    import lmdb

    images = {f"{number:05}".encode(): _jpeg(number, 8 + 4 * number) for number in range(60)}
    with (
        lmdb.open(str(tmp_path / "train_lmdb"), map_size=1 << 24) as environment,
        environment.begin(write=True) as all_of,
    ):
        for key, value in images.items():
            all_of.put(key, value)
    path = tmp_path / "train_lmdb/data.mdb"
    content = path.read_bytes()
    found = {
        sample.name: content[sample.offset : sample.offset + sample.length]
        for sample in iter_lmdb(path)
    }
    assert found == {f"{key.decode()}.jpg": value for key, value in images.items()}


@pytest.mark.parametrize("place", range(0, 8192 + 64, 97))
def test_a_damaged_database_ends_with_an_error_or_other_values(tmp_path: Path, place: int) -> None:
    """Never with another exception, and never without end."""
    painter = Painter(tmp_path)
    KNOWN["caffe_lmdb"](painter)
    path = tmp_path / "train_lmdb/data.mdb"
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    found: list[str] = []
    with contextlib.suppress(InputError):
        found = [sample.name for sample in iter_lmdb(path)]
    assert len(found) <= 9


def test_a_damaged_shard_of_mds_is_named(tmp_path: Path) -> None:
    """Cut anywhere, it is an error that names the file."""
    KNOWN["mosaic_streaming_of_words"](Painter(tmp_path))
    path = tmp_path / "shard.00000.mds"
    content = path.read_bytes()
    for stop in (0, 3, 30, 200, len(content) - 1):
        path.write_bytes(content[:stop])
        with pytest.raises(InputError, match=r"shard\.00000\.mds"):
            list(iter_mds(path))


def test_a_file_of_arrow_with_a_footer_is_read_too(tmp_path: Path) -> None:
    """The bytes of each image are those of its row, and a cut file is named."""
    images = [_jpeg(number) for number in range(5)]
    rows = pa.table({"image": images, "label": list(range(5))})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)
    samples, _ = list_samples("arrow", {"": [tmp_path / "a.arrow"]}, ENGINE)
    reader = Reader()
    assert [bytes(samples.listing.read(row, reader)) for row in range(5)] == images
    assert samples.columns["label"] == [0, 1, 2, 3, 4]
    content = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(content[:-40])
    with pytest.raises(InputError, match=r"a\.arrow"):
        list_samples("arrow", {"": [tmp_path / "a.arrow"]}, ENGINE)


# archives -----------------------------------------------------------------------------------------


def test_zips_are_listed_as_tars_are(tmp_path: Path) -> None:
    """Names, bytes and hidden files, with a folder for each archive or without."""
    members = {"cat/1.jpg": _jpeg(1), "cat/._1.jpg": b"x", "__MACOSX/cat/._1.jpg": b"y"}
    (tmp_path / "a.zip").write_bytes(kept_in_archives.zipped(members))
    (tmp_path / "b.tar").write_bytes(pack(members))
    reader = Reader()
    for folder_each, names in ((False, ["cat/1.jpg"]), (True, ["a/cat/1.jpg"])):
        listing = list_tars([tmp_path / "a.zip"], ENGINE, folder_each=folder_each)
        assert list(listing.names) == names
        assert bytes(listing.read(0, reader)) == members["cat/1.jpg"]


def test_a_damaged_zip_is_no_archive_of_images(tmp_path: Path) -> None:
    """Init names the damage, and does not ask for it to be unpacked."""
    content = kept_in_archives.zipped({"cat/1.jpg": _jpeg(1)})
    write(tmp_path / "in", **{"a.zip": content[:-10]})
    with pytest.raises(InputError, match=r"a\.zip is cut, damaged at its end") as caught:
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert "unzip" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "members", "hint"),
    [
        ("a.zip", {"x.txt": b"a"}, "a function of yours can read"),
        ("a.zip", {"x.tar": b"a"}, "unzip -q "),
        (
            "imagenet-object-localization-challenge.zip",
            {"val/1.jpg": _jpeg(1), "val.csv": b"a"},
            "without a recipe: imagenet-prep convert in-shards --raw ",
        ),
    ],
)
def test_a_zip_that_needs_no_unpacking(
    tmp_path: Path, file: str, members: dict[str, bytes], hint: str
) -> None:
    """Neither one without images or archives, nor Kaggle's of ImageNet, which convert reads."""
    write(tmp_path / "in", **{file: kept_in_archives.zipped(members)})
    with pytest.raises(InputError) as caught:
        init(tmp_path / "in", tmp_path / "r.yaml", ENGINE)
    assert hint in str(caught.value)
    assert ("unzip" in str(caught.value)) is ("unzip" in hint)


def test_the_parts_of_an_archive_are_joined_by_a_command(tmp_path: Path) -> None:
    """The refusal has the command; after it, the next one unpacks the archive."""
    KNOWN["part_of_a_split_archive"](Painter(tmp_path / "data"))
    with pytest.raises(InputError) as caught:
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)
    command = next(line for line in str(caught.value).splitlines() if line.startswith("cat --"))
    subprocess.run(["sh", "-c", command], check=True)
    with pytest.raises(InputError, match="gzip -d --"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_facts_of_a_set_are_no_statistics_of_pixels(tmp_path: Path) -> None:
    """A number for each image stays a column, whatever its name;
    a mean of each channel is no column.
    """
    values = {
        "images": _PICTURES,
        "labels": _LABELS,
        "mean_age": np.arange(5) / 2,
        "std": np.ones(3),
    }
    np.savez(tmp_path / "a.npz", **values)
    (samples,) = list_arrays([tmp_path / "a.npz"], ENGINE).values()
    assert set(samples.columns) == {"labels", "mean_age"}
    assert any("not read: " in line and " of a.npz" in line for line in samples.passed)


def test_scalars_without_names_are_no_labels(tmp_path: Path) -> None:
    """Four unnamed arrays are images and labels only if they have the lengths of these."""
    np.savez(tmp_path / "a.npz", _PICTURES, np.array(3), _PICTURES, np.array(4))
    with pytest.raises(InputError, match=r"2 arrays hold images, "):
        list_arrays([tmp_path / "a.npz"], ENGINE)


def test_pickled_objects_are_refused_by_init(tmp_path: Path) -> None:
    """With the reason and the way to save them otherwise."""
    KNOWN["pickled_object_array"](Painter(tmp_path / "data"))
    with pytest.raises(InputError, match=r"numpy\.savez"):
        init(tmp_path / "data", tmp_path / "r.yaml", ENGINE)


def test_hdf5_claims_no_more_than_its_file_holds(tmp_path: Path) -> None:
    """An array without its bytes is refused before a row is listed."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (1 << 40, 8, 8), np.uint8, chunks=(1, 8, 8))
    with pytest.raises(InputError, match=r"can't hold 70,368,744,177,664"):
        open_arrays(tmp_path / "a.h5")


def test_hdf5_reads_no_other_file(tmp_path: Path) -> None:
    """Arrays whose bytes are in another file, or that are views of one, are left out."""
    (tmp_path / "secret").write_bytes(bytes(640))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "x", (10, 8, 8), np.uint8, external=[(str(tmp_path / "secret"), 0, 640)]
        )
        file["y"] = np.arange(10)
    assert set(open_arrays(tmp_path / "a.h5")) == {"y"}


def test_a_mat_claims_no_more_than_its_file_holds(tmp_path: Path) -> None:
    """An array of version 7.3 is read whole: it is refused before."""
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file.create_dataset("x", (3, 8, 8, 1 << 40), np.uint8, chunks=(3, 8, 8, 1))
    content = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file" + content[19:])
    with pytest.raises(InputError, match=r"can't hold 211,106,232,532,992"):
        open_arrays(tmp_path / "a.mat")


def test_no_place_in_a_file_of_arrow_is_outside_of_it(tmp_path: Path) -> None:
    """A value that leads out of the file is damage, and doesn't kill the process."""
    rows = pa.table({"image": [_jpeg(number) for number in range(3)]})
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), rows.schema) as writer:
        writer.write_table(rows)
    content = bytearray((tmp_path / "a.arrow").read_bytes())
    place = content.index(struct.pack("<ii", 0, len(_jpeg(0))))
    struct.pack_into("<i", content, place + 4, 0x7FFFFF00)
    (tmp_path / "a.arrow").write_bytes(content)
    code = (
        "import sys; from imagenet_prep.sources.arrow_files import *; print(*map(len, map(str, "
        "iter_arrow_samples("
    )
    code += "Path(sys.argv[1]), read_arrow_schema(Path(sys.argv[1]))))))"
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a.arrow"], capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "a.arrow can't be read" in ran.stderr


def _mask() -> bytes:
    stream = io.BytesIO()
    Image.new("L", (8, 8), 1).save(stream, "PNG")
    return stream.getvalue()


def _mds(
    path: Path, columns: Sequence[tuple[str, str, int | None]], rows: Sequence[Sequence[bytes]]
) -> None:
    """A shard of MosaicML's."""
    names, encodings, sizes = zip(*columns, strict=True)
    keys = {
        "column_names": names,
        "column_encodings": encodings,
        "column_sizes": sizes,
        "format": "mds",
    }
    config = json.dumps(keys).encode()
    samples = []
    for row in rows:
        lengths = (
            struct.pack("<I", len(cell))
            for cell, size in zip(row, sizes, strict=True)
            if size is None
        )
        samples.append(b"".join((*lengths, *row)))
    places = [4 * (len(rows) + 2) + len(config)]
    for sample in samples:
        places.append(places[-1] + len(sample))
    path.write_bytes(
        struct.pack(f"<{len(places) + 1}I", len(rows), *places) + config + b"".join(samples)
    )


def test_masks_and_boxes_of_mds_are_never_dropped_in_silence(tmp_path: Path) -> None:
    """A second image and a column of boxes are a question;
    another value that isn't read is named.
    """
    columns = [
        ("image", "jpeg", None),
        ("mask", "png", None),
        ("boxes", "ndarray", None),
        ("x", "pkl", None),
    ]
    rows = [
        [_jpeg(number), _mask(), b"12", b"34", struct.pack("<q", number)] for number in range(3)
    ]
    _mds(tmp_path / "shard.00000.mds", [*columns, ("label", "int", 8)], rows)
    samples, _ = list_samples("mds", {"": [tmp_path / "shard.00000.mds"]}, ENGINE)
    assert samples.columns == {"label": [0, 1, 2]}
    assert samples.lost == [
        "the column mask: not read, it holds png",
        "the column boxes: not read, it holds ndarray",
    ]
    assert samples.passed == ["the column x: not read, it holds pkl"]
    with pytest.raises(InputError, match="the column mask: not read"):
        init(tmp_path, tmp_path / "r.yaml", ENGINE)


def test_columns_of_mds_nested_without_end_are_damage(tmp_path: Path) -> None:
    """Not an error of the program."""
    config = b"[" * 100_000
    (tmp_path / "a.mds").write_bytes(
        struct.pack("<III", 1, 12 + len(config), 16 + len(config)) + config + b"1234"
    )
    with pytest.raises(InputError, match=r"a\.mds can't be read"):
        list(iter_mds(tmp_path / "a.mds"))


def _page(number: int, flags: int, *nodes: bytes) -> bytearray:
    """A page of LMDB."""
    page, places, start = bytearray(4096), [], 4096
    for node in nodes:
        start -= len(node)
        page[start : start + len(node)] = node
        places.append(start)
    struct.pack_into(
        f"<QHHHH{len(places)}H", page, 0, number, 0, flags, 16 + 2 * len(places), start, *places
    )
    return page


def _lmdb_of(path: Path, *pages: bytes) -> None:
    """A database whose root is page 2."""
    metas = []
    for number in range(2):
        meta = _page(number, 8)
        struct.pack_into("<IIQQ", meta, 16, 0xBEEFC0DE, 1, 0, 1 << 20)
        struct.pack_into("<IHHQQQQQ", meta, 40, 4096, 0, 0, 0, 0, 0, 0, (1 << 64) - 1)
        struct.pack_into("<IHHQQQQQ", meta, 88, 0, 0, 1, 0, 1, 0, 1, 2)
        struct.pack_into("<QQ", meta, 136, 5, number)
        metas.append(meta)
    path.write_bytes(b"".join((*metas, *pages)))


def _node(key: bytes, value: bytes, length: int | None = None) -> bytes:
    """A node of a leaf; its value may claim another length."""
    return (
        struct.pack("<HHHH", len(value) if length is None else length, 0, 0, len(key)) + key + value
    )


def _datum(image: bytes, label: int) -> bytes:
    """Caffe's Datum with an encoded image; a label of ten bytes is below 0."""
    return b"\x22" + _varint(len(image)) + image + b"\x28" + _varint(label % (1 << 64))


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def test_labels_of_datums_may_be_below_0_and_keys_numbers(tmp_path: Path) -> None:
    """-1 is no class, and a key of bytes that are no text is a name of its own."""
    values = [(struct.pack("<Q", number), _datum(_jpeg(number), number - 1)) for number in range(3)]
    _lmdb_of(tmp_path / "data.mdb", _page(2, 2, *(_node(key, value) for key, value in values)))
    found = list(iter_lmdb(tmp_path / "data.mdb"))
    assert [sample.values["label"] for sample in found] == [-1, 0, 1]
    assert [sample.name for sample in found] == [
        f"0{number}00000000000000.jpg" for number in range(3)
    ]


_FAULTS_OF_LMDB = {
    "deep": "nested too deeply",
    "wide": "it is cut or damaged",
    "several": "several values for one key",
    "long": "it is cut or damaged",
}


@pytest.mark.parametrize("fault", _FAULTS_OF_LMDB)
def test_a_database_claims_no_more_than_it_holds(tmp_path: Path, fault: str) -> None:
    """A tree without end, places beyond a page, and a value beyond the file are damage."""
    leaf = _page(2, 2, _node(b"a", _jpeg(1)))
    if fault == "deep":
        branches = [struct.pack("<HHHH", number + 3, 0, 0, 0) for number in range(4000)]
        pages = [_page(number + 2, 1, branch) for number, branch in enumerate(branches)]
    elif fault == "wide":
        struct.pack_into("<H", leaf, 12, 65534)
        pages = [leaf, bytearray(struct.pack("<H", struct.unpack_from("<H", leaf, 16)[0]) * 32768)]
    elif fault == "several":
        (place,) = struct.unpack_from("<H", leaf, 16)
        struct.pack_into("<H", leaf, place + 4, 4 | 2)
        pages = [leaf]
    else:
        pages = [_page(2, 2, _node(b"a", _jpeg(1), 65535))]
    _lmdb_of(tmp_path / "data.mdb", *pages)
    with pytest.raises(InputError) as caught:
        list(iter_lmdb(tmp_path / "data.mdb"))
    assert _FAULTS_OF_LMDB[fault] in str(caught.value)


@pytest.mark.parametrize("value", [b"abc", bytes([8, 3, 16, 2]), bytes([34, 2, 1, 1])])
def test_a_value_without_an_image_is_named_by_its_key(tmp_path: Path, value: bytes) -> None:
    """A text, a Datum without bytes, and one of pixels: another copy would have it, too."""
    _lmdb_of(tmp_path / "data.mdb", _page(2, 2, _node(b"num-samples", value)))
    with pytest.raises(InputError) as caught:
        list(iter_lmdb(tmp_path / "data.mdb"))
    assert "the value of the key 'num-samples' holds no encoded image" in caught.value.detail
    assert "write the database again" in caught.value.hint
