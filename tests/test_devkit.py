"""The devkit's table of train images per class:
read whole, or refused with its place.
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_devkit import FIELDS, FOLDER, Synset, add_devkit, devkit, meta_mat, synsets
from made_tars import in_memory, pack, save

from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.devkit import train_counts
from imagenet_prep.storage.layout import Layout

COUNTS = {wnid: 732 + label % 569 for wnid, label in facts.labels().items()}
ROWS = synsets(COUNTS)
ARCHIVE = facts.ARCHIVES["devkit"].filename


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with an empty raw folder."""
    (tmp_path / "raw-data").mkdir()
    return Layout(tmp_path)


def keep(layout: Layout, content: bytes, name: str = f"{FOLDER}/data/meta.mat") -> None:
    """Save a file in the raw folder."""
    save(layout.data_dir / "raw-data" / name, content)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_devkit_has_the_images_of_every_class(
    layout: Layout, compressed: bool, order: str
) -> None:
    """Plain and compressed, of both orders of bytes; inner nodes of the tree are no classes."""
    keep(layout, meta_mat(ROWS, compressed=compressed, order=order))
    assert train_counts(layout) == COUNTS


@pytest.mark.parametrize("unpack", [bytes, gzip.decompress])
def test_a_devkit_may_be_an_archive(layout: Layout, unpack: Callable[[bytes], bytes]) -> None:
    """As image-net.org has it, and as a browser leaves it that decompresses on the way."""
    archive_path = add_devkit(layout.data_dir / "raw-data", COUNTS)
    archive_path.write_bytes(unpack(archive_path.read_bytes()))
    assert train_counts(layout) == COUNTS


def test_a_devkit_may_be_packed_without_its_folder(layout: Layout) -> None:
    """A table that the archive has is not called missing."""
    keep(layout, gzip.compress(pack({"data/meta.mat": meta()})), ARCHIVE)
    assert train_counts(layout) == COUNTS


def test_a_devkit_may_be_beside_raw_data_elsewhere(layout: Layout, tmp_path: Path) -> None:
    """With --raw, the devkit that download put into DATA_DIR counts."""
    keep(layout, meta())
    assert train_counts(Layout(tmp_path, tmp_path / "elsewhere")) == COUNTS


def test_without_a_devkit_no_counts_are_known(layout: Layout) -> None:
    """There is no table: None."""
    assert train_counts(layout) is None


@pytest.mark.parametrize("shape", [(-1, 1), (1, -1)])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_of_scipy_is_read(layout: Layout, shape: tuple[int, int], compressed: bool) -> None:
    """Another writer of the format, with a second variable first, and doubles."""
    scipy, np = pytest.importorskip("scipy.io"), pytest.importorskip("numpy")
    rows = np.empty(len(ROWS), [(field, object) for field in FIELDS])
    for index, row in enumerate(ROWS):
        values = [row[field] for field in FIELDS]
        rows[index] = tuple(
            value if isinstance(value, str) else np.array([value], float) for value in values
        )
    variables = {"others": np.arange(3), "synsets": rows.reshape(shape)}
    keep(layout, in_memory(lambda file: scipy.savemat(file, variables, do_compression=compressed)))
    assert train_counts(layout) == COUNTS


def without(field: str) -> list[Synset]:
    """The rows without a field."""
    return [{key: value for key, value in row.items() if key != field} for row in ROWS]


def changed(field: str, value: str | list[int]) -> list[Synset]:
    """The rows with another value in the first one."""
    return [{**ROWS[0], field: value}, *ROWS[1:]]


@functools.cache
def meta() -> bytes:
    """The table of ``ROWS``."""
    return meta_mat(ROWS)


def flipped(data: bytes, position: int, bit: int) -> bytes:
    """The data with a bit of one byte turned over."""
    return data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]


DAMAGE: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "a newer format": lambda: b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF",
    "cut": lambda: meta()[:-100],
    "without its variable": lambda: meta_mat(ROWS, name="meta"),
    "without a class": lambda: meta_mat(ROWS[1:]),
    "a class twice": lambda: meta_mat([*ROWS, ROWS[5]]),
    "without wnids": lambda: meta_mat(without("WNID")),
    "without counts": lambda: meta_mat(without("num_train_images")),
    "a wnid of another type": lambda: meta_mat(changed("WNID", [7])),
    "a count of another type": lambda: meta_mat(changed("num_train_images", "many")),
    "no count": lambda: meta_mat(changed("num_train_images", [])),
    "two counts": lambda: meta_mat(changed("num_train_images", [5, 6])),
    "a count of 0": lambda: meta_mat(changed("num_train_images", [0])),
    "a compressed variable that is cut": lambda: meta_mat(ROWS, compressed=True)[:-9],
    "a compressed variable with a flipped bit": lambda: flipped(
        meta_mat(ROWS, compressed=True), 3000, 1
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_table_is_refused_with_its_place(layout: Layout, case: str) -> None:
    """The error names the file and the command that gets it again."""
    keep(layout, DAMAGE[case]())
    table = layout.raw_dir / FOLDER / "data" / "meta.mat"
    with pytest.raises(InputError) as caught:
        train_counts(layout)
    assert caught.value.what == f"{table} is damaged, or is another file"
    assert caught.value.hint == (
        f"move {table} away, and get the devkit again: imagenet-prep download "
        f"{layout.data_dir} --only devkit"
    )


def test_a_table_that_is_too_large_is_refused(layout: Layout) -> None:
    """No file takes more than a second."""
    keep(layout, meta() + bytes(1 << 23))
    with pytest.raises(
        InputError, match=r"meta\.mat holds 8,954,832 bytes\nexpected at most 8,388,608 bytes"
    ):
        train_counts(layout)


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut": (lambda: devkit(meta())[:-300], "damaged"),
    "a flipped bit": (lambda: flipped(devkit(meta()), 2000, 4), "damaged"),
    "another archive": (
        lambda: gzip.compress(pack({"data/labels.mat": b"MATLAB"})),
        "is damaged, or is another file",
    ),
    "too large a table": (
        lambda: devkit(meta() + bytes(1 << 23)),
        r"data/meta\.mat in .* is damaged, or is another file",
    ),
    "a web page": (lambda: b"<!DOCTYPE html><html>" + bytes(1000), "damaged"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_damaged_archive_is_refused(layout: Layout, case: str) -> None:
    """Damage is no missing devkit."""
    content, reason = ARCHIVES[case]
    keep(layout, content(), ARCHIVE)
    with pytest.raises(InputError, match=reason) as caught:
        train_counts(layout)
    if "another file" in reason:
        assert caught.value.hint.startswith(f"move {layout.raw_dir / ARCHIVE} away, and get ")


SMALL = meta_mat(ROWS[:3])


@settings(max_examples=300, deadline=1000)
@given(st.data())
def test_any_bytes_give_counts_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes of any kind, and a small table with a few bytes exchanged:
    never another exception, never long.
    """
    content = data.draw(
        st.binary(max_size=300).map(lambda tail: SMALL[:128] + tail) | st.just(SMALL)
    )
    changes = data.draw(
        st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=4)
    )
    exchanged = bytearray(content)
    for position, value in changes:
        exchanged[position] = value
    layout = Layout(tmp_path_factory.mktemp("devkit"))
    keep(layout, bytes(exchanged))
    with pytest.raises(InputError):
        train_counts(layout)
