"""Downsampled ImageNet: pickles of every protocol and npz files give their own pixels and labels,
and their order.
"""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import subprocess
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from bounded import measure
from numpy.typing import NDArray
from PIL import Image
from running import command

import imagenet_prep
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import InputError
from imagenet_prep.recipes.loading import load
from imagenet_prep.sources.array_files import ArrayFile, open_arrays
from imagenet_prep.sources.slices import Row

pytestmark = pytest.mark.once


class Batch(NamedTuple):
    """The arrays of a file: ``data`` of N x (3 * side * side) bytes,
    labels from 1, and the mean image of train.
    """

    data: NDArray[np.uint8]
    labels: list[int]
    mean: NDArray[np.float64] | None

    @property
    def values(self) -> dict[str, Any]:
        """The dictionary that is saved."""
        values: dict[str, Any] = {"data": self.data, "labels": self.labels}
        return values if self.mean is None else {**values, "mean": self.mean}

    def image(self, number: int) -> NDArray[np.uint8]:
        """The pixels of an image: height, width, channels."""
        side = int((self.data.shape[1] / 3) ** 0.5)
        pixels: NDArray[np.uint8] = self.data[number].reshape(3, side, side).transpose(1, 2, 0)
        return pixels


def batches(side: int, count: int) -> dict[str, Batch]:
    """Three train batches and the validation batch, by their names."""
    random = np.random.default_rng(side)
    found = {}
    for name in ("train_data_batch_1", "train_data_batch_2", "train_data_batch_10", "val_data"):
        data = random.integers(0, 256, (count, 3 * side * side), dtype=np.uint8)
        labels = [1, 1000, *random.integers(1, 1001, count - 2).tolist()]
        found[name] = Batch(data, labels, None if name == "val_data" else data.mean(axis=0))
    return found


def _pickle(protocol: int) -> Callable[[Batch], bytes]:
    return lambda batch: pickle.dumps(batch.values, protocol)


def _pickle_of_numpy_1(batch: Batch) -> bytes:
    return pickle.dumps(batch.values, 2).replace(b"numpy._core.", b"numpy.core.")


def _pickle_of_python_2(batch: Batch) -> bytes:
    """Protocol 2 with the bytes of the array as they are, as Python 2 writes them."""
    count, width = batch.data.shape
    start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85U\1btR(K\1"
    shape = b"J" + struct.pack("<i", count) + b"J" + struct.pack("<i", width) + b"\x86"
    kind = b"cnumpy\ndtype\n(U\2u1K\0K\1tR(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    content = b"T" + struct.pack("<i", batch.data.size) + batch.data.tobytes()
    labels = b"".join(b"M" + struct.pack("<H", label) for label in batch.labels)
    return (
        b"\x80\2}(U\4data"
        + start
        + shape
        + kind
        + b"\x89"
        + content
        + b"tbU\6labels]("
        + labels
        + b"eu."
    )


def _npz(save: Callable[..., None]) -> Callable[[Batch], bytes]:
    def write(batch: Batch) -> bytes:
        buffer = io.BytesIO()
        save(buffer, **batch.values)
        return buffer.getvalue()

    return write


FORMS: dict[str, tuple[str, Callable[[Batch], bytes]]] = {
    **{f"protocol {protocol}": ("", _pickle(protocol)) for protocol in range(6)},
    "NumPy 1": ("", _pickle_of_numpy_1),
    "Python 2": ("", _pickle_of_python_2),
    "npz": (".npz", _npz(np.savez)),
    "npz, compressed": (".npz", _npz(np.savez_compressed)),
}


def write_batches(folder: Path, form: str, side: int = 16, count: int = 100) -> dict[str, Batch]:
    """All batches in a form."""
    folder.mkdir(parents=True)
    ending, write = FORMS[form]
    found = batches(side, count)
    for name, batch in found.items():
        (folder / f"{name}{ending}").write_bytes(write(batch))
    return found


def write_synsets(folder: Path) -> None:
    """A map_clsloc.txt in which two classes have the same words."""
    lines = [
        f"n{90_000_000 + label} {label} {'crane' if label < 3 else f'thing_{label}'}\n"
        for label in range(1, 1001)
    ]
    (folder / "map_clsloc.txt").write_text("".join(lines))


@pytest.mark.parametrize(
    ("form", "side"),
    [
        *((form, 16) for form in FORMS),
        ("protocol 4", 8),
        ("protocol 4", 32),
        ("protocol 2", 64),
        ("npz", 64),
    ],
)
def test_every_pixel_and_label_comes_through(form: str, side: int, tmp_path: Path) -> None:
    """init recognises the folder; the records hold what the files hold,
    by batch and number, in their splits.
    """
    expected = write_batches(tmp_path / "small", form, side, count=40)
    said = command("init", "small", cwd=tmp_path).stdout
    assert (
        "labels are 1 to 1000 in the order of map_clsloc.txt, not in that of other ImageNet records"
        in said
    )
    assert "train: 120 of 1,281,167 images of downsampled ImageNet" in said
    command("convert", "out", "--config", "small.yaml", cwd=tmp_path)
    found = set()
    for split in ("train", "validation"):
        for record in imagenet_prep.open(tmp_path / "out", split):
            _, file, _, image = record.filename.split("/")
            batch, number = expected[file.removesuffix(".npz")], int(image.removesuffix(".png"))
            assert (file.startswith("val_data")) is (split == "validation")
            assert np.array_equal(
                np.asarray(Image.open(io.BytesIO(record.encoded))), batch.image(number)
            )
            assert record.label == batch.labels[number]
            found.add((file, number))
    assert len(found) == 4 * 40


def test_classes_get_their_names_from_the_map(tmp_path: Path) -> None:
    """WordNet ids are the classes, since words are not unique;
    the words are texts; the recipe says the order.
    """
    write_batches(tmp_path / "small", "protocol 4")
    write_synsets(tmp_path / "small")
    said = command("init", "small", cwd=tmp_path).stdout
    assert "n90000001 is 1, " in said
    assert "no names of classes" not in said
    recipe = (tmp_path / "small.yaml").read_text()
    assert "\n# labels are 1 to 1000 in the order of map_clsloc.txt" in recipe
    assert "small/map_clsloc.txt" in recipe
    command("convert", "out", "--config", "small.yaml", cwd=tmp_path)
    texts = {record.label: record.text for record in imagenet_prep.open(tmp_path / "out", "train")}
    assert (texts[1], texts[1000]) == ("crane", "thing_1000")


def test_a_map_of_some_classes_moves_no_number(tmp_path: Path) -> None:
    """Labels count from 1, though the map starts later."""
    (tmp_path / "small").mkdir()
    batch = Batch(np.zeros((3, 3 * 16 * 16), np.uint8), [5, 7, 6], None)
    (tmp_path / "small/val_data").write_bytes(pickle.dumps(batch.values))
    (tmp_path / "small/map_clsloc.txt").write_text(
        "".join(f"n0000000{label} {label} a{label}\n" for label in (5, 6, 7))
    )
    command("init", "small", cwd=tmp_path)
    command("convert", "out", "--config", "small.yaml", cwd=tmp_path)
    records = imagenet_prep.open(tmp_path / "out", "validation")
    assert sorted((record.label, record.class_index) for record in records) == [
        (5, 4),
        (6, 5),
        (7, 6),
    ]


def test_without_the_map_it_is_asked_for(tmp_path: Path) -> None:
    """Labels are numbers then, and init says what names them."""
    write_batches(tmp_path / "small", "npz")
    assert (
        "put map_clsloc.txt into the folder, and run init again"
        in command("init", "small", cwd=tmp_path).stdout
    )


def test_batches_may_be_in_folders(tmp_path: Path) -> None:
    """As the two parts of 64 x 64 and its validation images unpack; a missing batch is named."""
    for name, batch in batches(64, 4).items():
        if name != "train_data_batch_2":
            folder = (
                tmp_path
                / "small"
                / ("Imagenet64_val" if name == "val_data" else "Imagenet64_train_part1")
            )
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name.replace("10", "3")).write_bytes(_pickle(3)(batch))
    said = command("init", "small", cwd=tmp_path).stdout
    assert "found 12 images" in said
    assert (
        "missing, by the numbers of the others: Imagenet64_train_part1/train_data_batch_2" in said
    )


@pytest.mark.parametrize("form", ["zip", "gz"])
def test_packed_batches_are_named_with_the_command_that_unpacks_them(
    form: str, tmp_path: Path
) -> None:
    """As image-net.org gives them: init refuses, its command is run as it is printed,
    and init takes the batches.
    """
    folder = tmp_path / "it's small"
    folder.mkdir()
    for name, batch in batches(8, 4).items():
        content = _pickle(2)(batch)
        if form == "gz":
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            with zipfile.ZipFile(folder / f"Imagenet8_{name[:3]}.zip", "a") as archive:
                archive.writestr(name, content)
    refused = command("init", folder, cwd=tmp_path, status=4).stderr
    subprocess.run(["sh", "-c", refused.strip().splitlines()[-1]], check=True)
    assert "found 16 images" in command("init", folder, cwd=tmp_path).stdout


def _both_forms(folder: Path) -> None:
    (folder / "val_data.npz").write_bytes(_npz(np.savez)(batches(16, 100)["val_data"]))


def _labels_from_0(folder: Path) -> None:
    batch = batches(16, 100)["val_data"]
    (folder / "val_data").write_bytes(
        _pickle(4)(batch._replace(labels=[label - 1 for label in batch.labels]))
    )


def _cut(folder: Path) -> None:
    path = folder / "train_data_batch_2"
    path.write_bytes(path.read_bytes()[:20_000])


def _runs_code(folder: Path) -> None:
    (folder / "val_data").write_bytes(pickle.dumps({"data": eval}, 4))


def _other_length(folder: Path) -> None:
    batch = batches(16, 100)["val_data"]
    (folder / "val_data").write_bytes(_pickle(4)(batch._replace(labels=batch.labels[1:])))


def _map_twice(folder: Path) -> None:
    (folder / "map_clsloc.txt").write_text("n02119789 1 kit_fox\nn02100735 1 English_setter\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_both_forms, "are the same batch"),
        (_labels_from_0, "val_data has the label 0"),
        (_cut, "train_data_batch_2 can't be read as arrays"),
        (_runs_code, "requires builtins.eval"),
        (_other_length, "the arrays have different lengths: "),
        (_map_twice, "map_clsloc.txt, line 2: the label 1 is also in an earlier line"),
    ],
)
def test_what_would_give_wrong_records_is_refused(
    change: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    """A batch twice, other labels, damage, code, a map that contradicts itself:
    the file is named, nothing is made.
    """
    write_batches(tmp_path / "small", "protocol 4")
    change(tmp_path / "small")
    assert said in command("init", "small", cwd=tmp_path, status=4).stderr
    assert not (tmp_path / "small.yaml").exists()


@pytest.mark.parametrize("form", ["protocol 2", "protocol 4", "protocol 5", "Python 2"])
def test_rows_are_read_in_any_order(form: str, tmp_path: Path) -> None:
    """A step back in a file gives the same bytes as the first time."""
    batch = write_batches(tmp_path / "small", form, 32)["val_data"]
    path = tmp_path / "small/val_data"
    read = ArrayFile(path).open()
    length = len(open_arrays(path)["data"].header) + 3072
    for number in (99, 0, 50, 51, 1, 99):
        row = Row(f"val_data/data/{number:06}.png", number, length, 0)
        assert bytes(read(row))[-3072:] == batch.data[number].tobytes()


def test_a_text_that_stands_for_too_few_bytes_is_damaged(tmp_path: Path) -> None:
    """Protocol 2 has bytes as a text: its characters are counted to its end."""
    path = tmp_path / "val_data"
    content = _pickle(2)(batches(32, 100)["val_data"])
    characters = content.index("\u00ff".encode())
    path.write_bytes(content[:characters] + b"ab" + content[characters + 2 :])
    with pytest.raises(InputError, match=r"307,201 bytes: expected 307,200"):
        open_arrays(path)["data"].check()


@pytest.mark.once
@pytest.mark.parametrize("form", ["protocol 2", "protocol 4", "protocol 5", "npz, compressed"])
def test_memory_does_not_grow_with_a_batch(form: str, tmp_path: Path) -> None:
    """init takes about as much for 61 MB of pixels as for 1 MB,
    and so does the reading of all rows.
    """
    memory = []
    ending, write = FORMS[form]
    for count in (100, 5_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        data = np.full((count, 12_288), 255, np.uint8)
        (folder / f"val_data{ending}").write_bytes(write(Batch(data, [7] * count, None)))
        ran = measure(tmp_path, "init", folder, "--output", tmp_path / f"{count}.yaml")
        assert ran.status == 0, ran.err
        memory.append(ran.memory)
    assert memory[1] < memory[0] + (40 << 20)
    path = folder / f"val_data{ending}"
    tracemalloc.start()
    read = ArrayFile(path).open()
    length = len(open_arrays(path)["data"].header) + 12_288
    for number in range(0, count, 7):
        assert len(read(Row(f"val_data/data/{number:06}.png", number, length, 0))) == length
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20


def test_a_label_that_is_a_word_is_refused(tmp_path: Path) -> None:
    """A npz can hold texts for labels: they are named like numbers out of range."""
    pixels = np.zeros((2, 192), np.uint8)
    np.savez(tmp_path / "val_data.npz", data=pixels, labels=np.array(["cat", "dog"]))
    (tmp_path / "r.yaml").write_text("source: {arrays: val_data.npz}\n")
    with pytest.raises(
        InputError, match=r"has the label cat\nexpected labels from 1 to 1000\n.*rename val_data"
    ):
        load(tmp_path / "r.yaml", None, make_engine("threads", 1))
