"""Sources with labels of their own: faults of their files, and the keys that say more of them."""

from __future__ import annotations

import gzip
import io
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from kept_in_archives import lmdb
from made_folders import arrays, batch, framed, idx, parquet, picture, write, zipped
from made_tars import pack

from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.escaping import command
from imagenet_prep.hints import lines_of
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.mapped_records import MappedRecorder
from imagenet_prep.sources.array_files import open_arrays
from imagenet_prep.sources.remarks import missing_shards
from imagenet_prep.sources.slices import Reader
from imagenet_prep.stages.init import init
from imagenet_prep.tfrecord.example import BytesList, Feature, Int64List, encode_example
from imagenet_prep.tfrecord.framing import frame

ENGINE = make_engine("threads", 1)


def example(**more: Feature | None) -> bytes:
    """A TFRecord file of one image and more features."""
    data = encode_example({"image/encoded": BytesList((picture("1.jpg"),)), **more})
    head, foot, _ = frame(data)
    return b"".join((head, data, foot))


def reduced(rows: int, *columns: str) -> bytes:
    """A parquet file of fewer rows, without these columns."""
    buffer = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(parquet("3.jpg"))).slice(0, rows).drop(columns), buffer)
    return buffer.getvalue()


def save(folder: Path, recipe: str, **files: bytes) -> Path:
    """A recipe next to files."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "r.yaml").write_text(recipe)
    return folder / "r.yaml"


FLIPPED = framed("1.jpg", "2.jpg")
FLIPPED = FLIPPED[:40] + bytes([FLIPPED[40] ^ 1]) + FLIPPED[41:]

MAKES_DTYPE = b"cnumpy\ndtype\n(V%b\nI00\nI01\ntR(I3\nV%b\nNNNI-1\nI-1\nI%b\ntb"
MADE = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR(I1\n(I2\nI3\nt%bI0%b\nV%b\ntb"
"""An array of 2 rows and 3 columns in a pickle, as Python 2 writes it:
type, order (0: C), bytes.
"""


def pickled(value: bytes) -> bytes:
    """A pickled dictionary with one value."""
    return b"\x80\x02}Vdata\n" + value + b"s."


def made(
    code: bytes = b"u1",
    order: bytes = b"|",
    flags: bytes = b"0",
    fortran: bytes = b"0",
    data: bytes = b"abcdef",
) -> bytes:
    """A pickle of an array."""
    return pickled(MADE % (MAKES_DTYPE % (code, order, flags), fortran, data))


POINTER = MAKES_DTYPE % (b"O8", b"|", b"0")
TAKES_POINTER = pickled(b"cnumpy.core.multiarray\nscalar\n(" + POINTER + b"Vabcdefgh\ntR")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (TAKES_POINTER, "object"),
        (pickled(POINTER), "object"),
        (made(code=b"O8"), "object"),
        (made(flags=b"63"), "an array of uint8 in a form"),
        (pickled(b"cnumpy\nndarray\n((I349525\nI3072\ntVu1\ntR"), "not callable"),
        (made(data=b"abcde"), "5 bytes"),
        (pickled(b"ccollections\nOrderedDict\n(tR"), "collections.OrderedDict"),
        (pickled(b"cnumpy\ndtype\n}Vcode\nVx\nsb"), "its pickle can't be read"),
    ],
    ids=range(8),
)
def test_a_pickle_makes_only_arrays_of_its_own_bytes(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    """It follows no address, and takes no memory that it doesn't fill."""
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(PrepError, match=r"data_batch_1 .*arrays") as caught:
        open_arrays(tmp_path / "data_batch_1")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (made(), [[97, 98, 99], [100, 101, 102]]),
        (made(fortran=b"1"), [[97, 99, 101], [98, 100, 102]]),
        (made(b"i2", b">", data=b"aaabacadaeaf"), [[24929, 24930, 24931], [24932, 24933, 24934]]),
    ],
    ids=range(3),
)
def test_a_pickle_of_python_2_has_its_values(
    tmp_path: Path, content: bytes, expected: list[list[int]]
) -> None:
    """The order of its bytes, and of its rows and columns, is kept."""
    (tmp_path / "p").write_bytes(content)
    assert open_arrays(tmp_path / "p")["data"].values().tolist() == expected


def repacked(content: bytes, **values: int) -> bytes:
    """An .npz whose first entry, in both of its headers, has other values."""
    places = {"version": (4, 6, 2), "flags": (6, 8, 2), "method": (8, 10, 2)}
    data, second = bytearray(content), content.index(b"PK\1\2")
    for name, value in values.items():
        own, central, size = places[name]
        for place in (own, second + central):
            data[place : place + size] = value.to_bytes(size, "little")
    return bytes(data)


def flipped(content: bytes, place: int) -> bytes:
    """The content with another byte."""
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def stored_npz() -> bytes:
    """An .npz that isn't compressed."""
    buffer = io.BytesIO()
    np.savez(buffer, x=np.zeros((4, 8, 8), np.uint8), y=np.zeros(4, np.uint8))
    return buffer.getvalue()


NPZ, LABELS = arrays(x=(4, 8, 8), y=(4,)), zipped(idx(4))
IMAGES, LABELLED = {"train-images-idx3-ubyte": idx(4, 8, 8)}, {"train-labels-idx1-ubyte": idx(4)}


DAMAGED: dict[str, dict[str, bytes]] = {
    "crc": {**IMAGES, "train-labels-idx1-ubyte.gz": flipped(LABELS, len(LABELS) - 8)},
    "longer": {**IMAGES, "train-labels-idx1-ubyte.gz": zipped(idx(4) + b"x")},
    "cut": {**IMAGES, "train-labels-idx1-ubyte.gz": LABELS[:-9]},
    "deflate": {**IMAGES, "train-labels-idx1-ubyte.gz": LABELS[:14] + b"\xff" * 9},
    "crc of images": {**LABELLED, "train-images-idx3-ubyte.gz": flipped(zipped(idx(4, 8, 8)), -8)},
    "longer images": {**LABELLED, "train-images-idx3-ubyte": idx(4, 8, 8) + b"x"},
    "version": {"a.npz": repacked(NPZ, version=99)},
    "method": {"a.npz": repacked(NPZ, method=97)},
    "encrypted": {"a.npz": repacked(NPZ, flags=1)},
    "npz": {"a.npz": flipped(NPZ, NPZ.index(b"x.npy") + 30)},
    "npz stored": {"a.npz": flipped(stored_npz(), stored_npz().index(b"NUMPY") + 200)},
    "meta": {
        "data_batch_1": batch(labels=[0, 1]),
        "batches.meta": pickle.dumps({"label_names": ["a", "b"]}, 2)[:-9],
    },
}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b'{"a": "\\ud800"}', "a text holds half of a surrogate pair: UTF-8 can't store it"),
        (b"[" * 100_000, "its JSON is nested too deep"),
    ],
)
def test_a_value_that_can_not_be_read_has_a_plain_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    """No word of Python's codecs."""
    content = pack({"1.jpg": picture("1.jpg"), "1.json": content})
    recipe = save(tmp_path, "source: {webdataset: f.tar}\n", **{"f.tar": content})
    with pytest.raises(InputError) as caught:
        load(recipe, None, ENGINE)
    assert caught.value.lines == [
        f"1.json in {tmp_path / 'f.tar'} can't be read",
        reason,
        "correct this file in the tar",
    ]


def test_the_folder_of_a_database_leads_to_its_file(tmp_path: Path) -> None:
    """LMDB's own tools name the folder."""
    recipe = save(tmp_path, "source: {lmdb: train_lmdb}\n")
    database = tmp_path / "train_lmdb" / "data.mdb"
    database.parent.mkdir()
    database.touch()
    with pytest.raises(InputError, match="train_lmdb is not a file") as caught:
        load(recipe, None, ENGINE)
    assert caught.value.hint == f"name the file of the database: {database}"


def test_a_cut_record_is_named_once(tmp_path: Path) -> None:
    """With its byte, and what helps."""
    recipe = save(tmp_path, "source: {tfrecord: f}\n", f=framed("1.jpg", "2.jpg")[:-9])
    with pytest.raises(InputError) as caught:
        load(recipe, None, ENGINE)
    assert caught.value.what.startswith(f"{tmp_path}/f can't be read: record 1 at byte ")
    assert caught.value.hint.startswith("get a sound copy of the file")


def test_the_command_for_compressed_records_works(tmp_path: Path) -> None:
    """The file has its name, and the recipe is as it was."""
    recipe = save(tmp_path, "source: {tfrecord: f}\n", f=gzip.compress(framed("1.jpg")))
    with pytest.raises(InputError, match="compressed with gzip") as caught:
        load(recipe, None, ENGINE)
    (_, decompress) = lines_of(caught.value.hint)
    subprocess.run(decompress, shell=True, check=True)
    assert len(load(recipe, None, ENGINE).splits[0].catalog) == 1


@pytest.mark.parametrize("name", ["train.tfrecord", "train-00000-of-00001"])
def test_init_decompresses_records_by_a_command(name: str, tmp_path: Path) -> None:
    """TensorFlow gives such files no ending of their own; nothing is in the way afterwards."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(framed("1.jpg", "2.jpg")))
    with pytest.raises(InputError, match="compressed with gzip") as caught:
        init(folder, tmp_path / "r.yaml", ENGINE)
    (_, decompress) = lines_of(caught.value.hint)
    subprocess.run(decompress, shell=True, check=True)
    init(folder, tmp_path / "r.yaml", ENGINE)
    assert f"tfrecord: {{train: data/{name}}}" in (tmp_path / "r.yaml").read_text()


def test_dots_in_names_of_a_webdataset_are_named(tmp_path: Path) -> None:
    """Renamed as advised, the images are read."""
    names = {"a.v2.jpg": picture("a.jpg"), "a.v2.cls": b"1"}
    recipe = save(tmp_path, "source: {webdataset: f}\n", f=pack(names))
    with pytest.raises(InputError, match=r"an image with several dots: a\.v2\.jpg") as caught:
        load(recipe, None, ENGINE)
    assert "rename it in the tar: a_v2.jpg and its other files alike" in caught.value.hint
    renamed = {name.replace("a.v2", "a_v2"): content for name, content in names.items()}
    (tmp_path / "f").write_bytes(pack(renamed))
    assert len(load(recipe, None, ENGINE).splits[0].catalog) == 1


@pytest.mark.parametrize("files", DAMAGED.values(), ids=DAMAGED)
def test_damaged_arrays_are_named(tmp_path: Path, files: dict[str, bytes]) -> None:
    """Whatever the library says: no traceback, and no label of a file that isn't whole."""
    save(tmp_path, f"source: {{arrays: [{', '.join(files)}]}}\n", **files)
    damaged = list(files)[-1]
    with pytest.raises(
        InputError, match=r"can't be read as (arrays|a file of class names)"
    ) as caught:
        load(tmp_path / "r.yaml", None, ENGINE)
    assert damaged in str(caught.value)


@pytest.mark.parametrize(
    ("source", "content", "reason"),
    [
        ("tfrecord: f", FLIPPED, "record 0, can't be read"),
        ("tfrecord: f", b"\x1f\x8b" + bytes(40), "f is compressed with gzip"),
        ("tfrecord: {'a/b': f}", framed("1.jpg"), "can't be the name of a split"),
        ("tfrecord: f, label: other", framed("1.jpg"), "has no column other"),
        ("folders: f, label: other", b"", "it can't be combined with folders"),
        ("parquet: f", b"PAR1" + bytes(20), "can't be read as a parquet file"),
        (
            "webdataset: f",
            pack({"1.jpg": picture("1.jpg"), "1.json": b"{"}),
            "/f can't be read\nnot JSON: ",
        ),
        ("arrays: f", pickle.dumps({"data": print}), "its pickle requires builtins.print"),
        (
            "arrays: f",
            arrays(x=(2**4, 8, 8), y=(3,)),
            "the arrays have different lengths: x of shape 16 x 8 x 8, y of shape 3",
        ),
        ("arrays: f", b"\0\0\x08\3" + b"\0\0\3\xff" * 3 + bytes(4), "too few bytes for"),
        ("arrays: f", b"nothing", "can't be read as"),
        (
            "arrays: f",
            arrays(digits=(10, 784)),
            "/f: no array holds images: digits of shape 10 x 784",
        ),
        (
            "lmdb: f",
            lmdb({b"a/b": picture("1.jpg"), b"a_b": picture("2.jpg")}),
            "two keys give the same name",
        ),
    ],
    ids=range(13),
)
def test_a_fault_names_file_and_reason(
    tmp_path: Path, source: str, content: bytes, reason: str
) -> None:
    """Nothing is taken of a file that is damaged, or that would run code."""
    with pytest.raises(PrepError) as caught:
        load(save(tmp_path, f"source: {{{source}}}\n", f=content), None, ENGINE)
    assert reason in str(caught.value)
    assert "f" in str(caught.value)


UNLABELLED = reduced(1, "label")
CLASSES: dict[str, Feature | None] = {
    "image/class/label": Int64List((1, 2)),
    "image/class/text": BytesList((b"a", b"b")),
}
REPEATED: dict[str, Feature | None] = {"image/class/label": Int64List((1, 1))}
PICTURE = {"a/1.jpg": picture("1.jpg")}


def test_several_labels_and_their_words_are_lists(tmp_path: Path) -> None:
    """An Example with two labels gives a record with both, and each label's own word."""
    made = load(save(tmp_path, "source: {tfrecord: a}\n", a=example(**CLASSES)), None, ENGINE)
    assert made.classes.names == ("a", "b")
    catalog = made.splits[0].catalog
    assert catalog.columns["label.list"] == [[1, 2]]
    assert catalog.columns["text.list"] == [["a", "b"]]
    assert {"image/class/label", "image/class/text"} < made.features.keys()
    for key in ("record: inception", "splits: {a: 0.5, b: 0.5}\nstratified: true"):
        with pytest.raises(UsageError, match="files can have several labels"):
            load(save(tmp_path, f"source: {{tfrecord: a}}\n{key}\n"), None, ENGINE)


def test_a_column_replaces_the_usual_feature_of_its_name(tmp_path: Path) -> None:
    """Words that are not those of classes are in the feature of their name,
    which a record has once.
    """
    words = [
        example(**{"image/class/label": Int64List((1,)), "image/class/text": BytesList((word,))})
        for word in (b"a", b"b")
    ]
    made = load(save(tmp_path, "source: {tfrecord: a}\n", a=b"".join(words)), None, ENGINE)
    recorder = made.splits[0].recorder
    assert isinstance(recorder, MappedRecorder)
    assert [each.column for each in recorder.features if each.feature == "image/class/text"] == [
        "image/class/text"
    ]


@pytest.mark.parametrize(
    ("source", "files", "parts"),
    [
        (
            "parquet: [a, b]",
            {"a": parquet("1.jpg"), "b": UNLABELLED},
            ["/a", "/b", "for the other files: label: label or label: false (no labels)"],
        ),
        (
            "parquet: {train: a, validation: b}",
            {"a": parquet("1.jpg"), "b": UNLABELLED},
            [
                "/a has labels in label",
                "/b has no column called label, class or the like",
                "label: false (no labels)",
            ],
        ),
        (
            "webdataset: a",
            {"a": pack(PICTURE | {"a/1.json": b'{"cls": 2}', "a/1.cls": b"3"})},
            ["a/1", "cls", "2", "3"],
        ),
        (
            "webdataset: a",
            {"a": pack(PICTURE | {"a/1.json": b'{"cls": "\\ud800"}'})},
            ["a/1.json in /", "/a can't be read"],
        ),
        (
            "webdataset: a",
            {"a": pack(PICTURE | {"a/1.json": b'{"cls": 0.5}'})},
            ["sample a/a/1.jpg", "label: false"],
        ),
        (
            "tfrecord: a",
            {"a": example(**REPEATED)},
            ["sample a/000000/image.jpg", "has 2 times the label 1: expected once"],
        ),
        ("parquet: a", {"a": reduced(0)}, ["no image in", "/a\nexpected", "name files"]),
        ("arrays: a", {"a": arrays(x=(0, 8, 8), y=(0,))}, ["no image in", "/a", "name files"]),
    ],
    ids=[
        "label in one file",
        "label in one split",
        "two cls",
        "surrogate",
        "fraction",
        "list",
        "no row",
        "no example",
    ],
)
def test_labels_that_may_be_wrong_are_refused(
    tmp_path: Path, source: str, files: dict[str, bytes], parts: list[str]
) -> None:
    """The message names the file or the sample, and what a recipe can say."""
    with pytest.raises(InputError) as caught:
        load(save(tmp_path, f"source: {{{source}}}\n", **files), None, ENGINE)
    for part in parts:
        assert part in str(caught.value)
    assert "labels: {label: false}" not in str(caught.value)


def test_a_label_that_some_files_lack_can_be_named_or_left(tmp_path: Path) -> None:
    """With false it is a column; with its name the images without it have no label,
    and are counted.
    """
    files = {"a": parquet("1.jpg"), "b": UNLABELLED}
    made = load(save(tmp_path, "source: {parquet: [a, b], label: false}\n", **files), None, ENGINE)
    assert made.classes.names == ()
    made = load(save(tmp_path, "source: {parquet: [a, b], label: label}\n"), None, ENGINE)
    assert made.splits[0].catalog.count_by_label()[0] == 1
    assert any("1 record has no label: b/000000/3.jpg" in note for note in made.notes)


def test_init_refuses_sets_without_samples_or_labels_in_all_files(tmp_path: Path) -> None:
    """It ends with a refusal that names the file, not with a recipe."""
    for number, files in enumerate(
        [{"a.parquet": reduced(0)}, {"a.npz": arrays(x=(0, 8, 8), y=(0,))}]
    ):
        write(tmp_path / str(number), **files)
        with pytest.raises(InputError, match=r"no image in"):
            init(tmp_path / str(number), tmp_path / "r.yaml", ENGINE)
    write(tmp_path / "two", **{"train.parquet": parquet("1.jpg"), "val.parquet": UNLABELLED})
    with pytest.raises(InputError, match=r"val\.parquet has no column called label, c") as caught:
        init(tmp_path / "two", tmp_path / "r.yaml", ENGINE)
    (choice,) = caught.value.choices
    settings = (("label", "label"), ("output", tmp_path / "r.yaml"))
    assert choice == f"  1 of 2 samples, 1 class: {command('init', tmp_path / 'two', settings)}"
    init(tmp_path / "two", tmp_path / "r.yaml", ENGINE, options=InitOptions(label="label"))


def test_a_test_split_without_labels_has_records_without_one(tmp_path: Path) -> None:
    """Hugging Face's and Kaggle's tests: the others keep their numbers."""
    write(tmp_path / "two", **{"train.parquet": parquet("1.jpg"), "test.parquet": UNLABELLED})
    summary = init(tmp_path / "two", tmp_path / "r.yaml", ENGINE)
    assert any(
        "test has no label: it is -1, which is no class, in 1 record" in line
        for line in summary.passed
    )
    made = load(tmp_path / "r.yaml", None, ENGINE)
    assert [label for label in made.classes.numbers if label < 0] == []


def test_a_label_can_be_named_or_left_as_a_column(tmp_path: Path) -> None:
    """CIFAR-100's coarse labels have their own words; with false both are columns."""
    meta = pickle.dumps({"fine_label_names": ["cat", "dog"], "coarse_label_names": ["a", "b"]}, 2)
    files = {"train": batch(fine_labels=[0, 1], coarse_labels=[1, 1]), "meta": meta}
    for label, names in (
        ("coarse_labels", ("a", "b")),
        ("fine_labels", ("cat", "dog")),
        ("false", ()),
    ):
        made = load(
            save(tmp_path, f"source: {{arrays: [train, meta], label: {label}}}\n", **files),
            None,
            ENGINE,
        )
        assert made.classes.names == names


def test_files_that_call_a_label_differently_are_refused(tmp_path: Path) -> None:
    """Their labels don't mean the same."""
    other = parquet("1.jpg", first="cow")
    recipe = "source: {parquet: ['a', 'b']}\n"
    with pytest.raises(PrepError, match=r"label 0 .*cow.*cat"):
        load(save(tmp_path, recipe, a=parquet("1.jpg"), b=other), None, ENGINE)


@pytest.mark.parametrize(
    "source", ["parquet: '*.parquet'", "parquet: {train: a-00001-of-00003.parquet}"]
)
def test_shards_that_are_missing_are_named(tmp_path: Path, source: str) -> None:
    """By the names of those that are there, whether a pattern or a name says them."""
    recipe = save(
        tmp_path, f"source: {{{source}}}\n", **{"a-00001-of-00003.parquet": parquet("1.jpg")}
    )
    with pytest.raises(
        PrepError, match=r"2 of 3 files are missing.*a-00000-of-00003.parquet, .*a-00002-of-00003"
    ):
        load(recipe, None, ENGINE)


@pytest.mark.parametrize(
    "split", ["train: a-00000-of-00002.parquet", "train: a-*-of-00002.parquet"]
)
def test_shards_that_are_there_are_not_called_missing(tmp_path: Path, split: str) -> None:
    """A recipe that does not name all of them is told so; one that is gone is missing."""
    names = [f"a-0000{number}-of-00002.parquet" for number in range(2)]
    recipe = save(
        tmp_path,
        f"source: {{parquet: {{{split}}}}}\n",
        **{name: parquet("1.jpg") for name in names},
    )
    if "*" not in split:
        with pytest.raises(PrepError, match="1 of 2 files is not read with the others") as caught:
            load(recipe, None, ENGINE)
        assert "read all of them together" in caught.value.hint
        (fault,) = missing_shards([tmp_path / "a-00001-of-00003", tmp_path / "a-00002-of-00003"])
        assert f"missing: {tmp_path}/a-00000-of-00003" in fault.what
        (tmp_path / "a-00001-of-00003").touch()
        (fault,) = missing_shards([tmp_path / "a-00002-of-00003"])
        assert fault.what.startswith("1 of 3 files is missing")  # the other one is there
    (fault,) = missing_shards(names[:1], tmp_path)  # as init names those with images
    assert fault.what.startswith("1 of 2 files is not read with the others")
    (tmp_path / names[1]).unlink()
    with pytest.raises(PrepError, match="1 of 2 files is missing: "):
        load(recipe, None, ENGINE)


def test_a_file_that_changes_after_its_listing_is_found(tmp_path: Path) -> None:
    """An .npz that lost examples gives no shorter image."""
    made = load(
        save(tmp_path, "source: {arrays: f.npz}\n", **{"f.npz": arrays(x=(4, 8, 8), y=(4,))}),
        None,
        ENGINE,
    )
    (tmp_path / "f.npz").write_bytes(arrays(x=(2, 8, 8), y=(2,)))
    catalog = made.splits[0].catalog
    assert len(catalog.read(0, Reader())) == catalog.lengths[0]
    with pytest.raises(PrepError, match=r"f\.npz .*arrays"):
        catalog.read(3, Reader())


def test_every_value_of_a_picture_is_kept(tmp_path: Path) -> None:
    """Grey, with a channel, RGB, RGBA, and channels first: the PNG has the array's values."""
    from PIL import Image

    from imagenet_prep.images.arrays import png_of

    for shape in ((7, 9), (7, 9, 1), (7, 9, 2), (7, 9, 3), (7, 9, 4), (3, 7, 9), (1, 7, 9)):
        values = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
        np.save(tmp_path / "a.npy", values)
        (tmp_path / "a.png").write_bytes(png_of((tmp_path / "a.npy").read_bytes()))
        found = np.asarray(Image.open(tmp_path / "a.png"))
        expected = values.transpose(1, 2, 0) if shape[2:] == (9,) else values
        assert (found.reshape(expected.shape) == expected).all()
    assert open_arrays(tmp_path / "a.npy")["a"].shape == (1, 7, 9)
    assert picture("a.png")


@pytest.mark.parametrize(
    ("more", "note"),
    [
        (
            {"y_train": np.arange(6) % 2, "extra": np.arange(6)},
            "the array extra of a.npz is not read: no images go with it",
        ),
        (
            {"y_train": np.arange(6) % 2, "std": np.ones(3), "mean": np.ones((8, 8))},
            "2 arrays of statistics are not read: std of a.npz, mean of a.npz",
        ),
        ({"y_train": np.arange(6) / 2}, "no class: label holds no labels of classes"),
        (
            {"x_test": np.zeros((2, 8, 8), np.uint8)},
            "no class: the files have no column called label, ",
        ),
    ],
)
def test_unread_arrays_and_missing_classes_are_named(
    tmp_path: Path, more: dict[str, np.ndarray[Any, Any]], note: str
) -> None:
    """An array that no images go with, and a set without classes, have a note of init."""
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in/a.npz", x_train=np.zeros((6, 8, 8), np.uint8), **more)
    summary = init(tmp_path / "in", tmp_path / "r.yaml", make_engine("threads", 2))
    assert note in "\n".join((*summary.evidence, *summary.passed))


@pytest.mark.parametrize(
    ("labels", "keys", "words"),
    [
        ([-1, 0, 1], "record: inception\n", "record: 1 file has no label"),
        ([-1, 1, 1], "", "the labels are -1 and 1"),
    ],
)
def test_hints_on_labels_of_samples_name_no_labels_file(
    tmp_path: Path, labels: list[int], keys: str, words: str
) -> None:
    """The samples have their labels themselves: the recipe has no `labels` to change."""
    images = np.zeros((3, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=np.array(labels))
    (tmp_path / "r.yaml").write_text(f"source: {{arrays: a.npz}}\n{keys}")
    with pytest.raises(PrepError, match=words) as caught:
        load(tmp_path / "r.yaml", None, ENGINE)
    assert "labels: {file" not in str(caught.value)


def test_half_of_a_surrogate_pair_in_metadata_names_no_class(tmp_path: Path) -> None:
    """UTF-8 can't store it: the classes are called by their numbers."""
    names = load(
        save(tmp_path, "source: {parquet: a}\n", a=parquet("1.jpg", "2.jpg", first="\ud800")),
        None,
        ENGINE,
    ).classes.names
    assert names == ("0", "1")
