"""Shards under another one's name: readers compare each with its manifest,
so no record of another set comes.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_sets import ENGINE, PART, copied, data_of, edit_manifest, flip, one_more, write

import imagenet_prep
from imagenet_prep import Layout, convert, export
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.class_parts import find_part
from imagenet_prep.reading.shard_set import ShardSet

SHARD = "train-00003-of-00008"
OTHERS = "holds other records than manifest.json|is not the record that was written there"


@pytest.fixture(scope="module")
def relabelled(
    tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet
) -> tuple[Layout, Layout]:
    """Two sets of the same four classes, with labels from 0 and from 1:
    their shards have equal sizes. Read only.
    """
    folder = tmp_path_factory.mktemp("relabelled")
    (folder / "classes.txt").write_text("\n".join(sorted(made_tiny.wnids)[2:6]))
    layouts = [
        Layout(folder / f"from-{first}", raw=made_tiny.archives["train"].parent) for first in (0, 1)
    ]
    for first, layout in enumerate(layouts):
        convert(
            layout, ENGINE, PART.replace(recorded=find_part(str(folder / "classes.txt"), first))
        )
    sizes = [layout.shards.size(SHARD) for layout in layouts]
    assert sizes[0] == sizes[1]
    return layouts[0], layouts[1]


@pytest.fixture
def mixed(tmp_path: Path, relabelled: tuple[Layout, Layout]) -> Layout:
    """A copy of the first set with one shard of the second."""
    layout = copied(relabelled[0], tmp_path / "data")
    shutil.copy(relabelled[1].shard_path(SHARD), layout.shard_path(SHARD))
    return layout


def exchange_index(layout: Layout, other: Layout) -> None:
    """Exchange the index as well."""
    for mine, theirs in zip(layout.index_paths(SHARD), other.index_paths(SHARD), strict=True):
        shutil.copy(theirs, mine)


def remove_index(layout: Layout, other: Layout) -> None:
    """Remove the index."""
    for path in layout.index_paths(SHARD):
        path.unlink()


def keep_index(layout: Layout, other: Layout) -> None:
    """Leave the index as it is."""


def first_of_shard(records: ShardSet) -> Any:
    """The first record of the exchanged shard."""
    return records[records.starts[3]].label


READERS: dict[str, Callable[[ShardSet], Any]] = {
    "in order": list,
    "by number": first_of_shard,
    "several": lambda records: records[[0, records.starts[4] - 1]],
    "a part": lambda records: list(records.shard(1, 3)),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("index", [keep_index, exchange_index, remove_index])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_record_of_another_set_is_read(
    mixed: Layout,
    relabelled: tuple[Layout, Layout],
    read: Callable[[ShardSet], Any],
    index: Callable[[Layout, Layout], None],
    check: bool,
) -> None:
    """A shard of another set with the same size is refused, whatever its index says;
    its CRCs are all right.
    """
    index(mixed, relabelled[1])
    with pytest.raises(InputError, match=OTHERS) as caught:
        read(imagenet_prep.open(mixed.data_dir, "train", check=check))
    assert SHARD in caught.value.what
    assert "imagenet-prep verify" in caught.value.hint


@pytest.mark.parametrize("index", [keep_index, exchange_index, remove_index])
def test_iteration_stops_before_the_first_wrong_record(
    mixed: Layout, relabelled: tuple[Layout, Layout], index: Callable[[Layout, Layout], None]
) -> None:
    """The records of the shards before come, none of the exchanged shard does."""
    index(mixed, relabelled[1])
    expected = [
        bytes(record.data) for record in imagenet_prep.open(relabelled[0].data_dir, "train")
    ]
    records = imagenet_prep.open(mixed.data_dir, "train")
    seen: list[bytes] = []
    with pytest.raises(InputError, match=OTHERS):
        seen.extend(bytes(record.data) for record in records)
    assert seen == expected[: records.starts[3]]


def test_one_other_record_is_refused(tmp_path: Path, relabelled: tuple[Layout, Layout]) -> None:
    """A sound record of the same length in the place of another is named;
    the other records come.
    """
    layout = copied(relabelled[0], tmp_path / "data")
    path = layout.shard_path(SHARD)
    data = data_of(path)
    write(path, [*data[:2], data_of(relabelled[1].shard_path(SHARD))[2], *data[3:]])
    records = imagenet_prep.open(layout.data_dir, "train")
    first = records.starts[3]
    assert [bytes(records[first + number].data) for number in (0, 1, 3)] == [
        data[0],
        data[1],
        data[3],
    ]
    with pytest.raises(InputError, match=OTHERS):
        records[first + 2]
    seen = []
    with pytest.raises(
        InputError, match=f"{SHARD}: record 2 at byte .* is not the record that was written there"
    ):
        seen.extend(bytes(record.data) for record in records)
    assert seen[first:] == data[:2]


@pytest.mark.parametrize("container", ["webdataset", "folders", "parquet", "tfds", "croissant"])
def test_no_export_holds_records_of_another_set(
    tmp_path: Path, mixed: Layout, container: str
) -> None:
    """Exports that copy nothing compare too: their files would describe the wrong shard."""
    out = tmp_path / "out"
    with pytest.raises(InputError, match=OTHERS):
        export(mixed, container, out, ENGINE)
    names = [path.name for path in list(out.glob("*"))]
    assert not [
        name for name in names if name.endswith(".json") or ("train" in name and "00003" in name)
    ]


@pytest.mark.tensorflow
def test_the_loaders_refuse_it(mixed: Layout) -> None:
    """PyTorch's Loader when it comes to the shard, TensorFlow's dataset at once."""
    from imagenet_prep.tensorflow import dataset
    from imagenet_prep.torch import ImageDataset, Loader

    loader = Loader(ImageDataset(imagenet_prep.open(mixed.data_dir, "train")), batch_size=4)
    with pytest.raises(InputError, match=OTHERS):
        list(loader)
    for rank in range(8):
        if rank == 3:
            with pytest.raises(InputError, match=OTHERS):
                dataset(mixed.data_dir, "train", batch_size=4, rank=rank, world=8)
        else:
            dataset(mixed.data_dir, "train", batch_size=4, rank=rank, world=8)


def cut(path: Path) -> None:
    """Remove the last byte."""
    path.write_bytes(path.read_bytes()[:-1])


def recompress(path: Path) -> None:
    """Compress it."""
    path.write_bytes(gzip.compress(path.read_bytes()))


def drop_last(path: Path) -> None:
    """Remove the last record."""
    write(path, data_of(path)[:-1])


@pytest.mark.parametrize("change", [cut, recompress, drop_last, lambda path: path.write_bytes(b"")])
def test_the_size_is_compared_when_a_shard_is_opened(
    tmp_path: Path, relabelled: tuple[Layout, Layout], change: Callable[[Path], None]
) -> None:
    """A set with a shard of another size is refused;
    so is a shard that changed while the set was open.
    """
    layout = copied(relabelled[0], tmp_path / "data")
    path = Path(str(layout.shard_path(SHARD)))
    size, records = path.stat().st_size, imagenet_prep.open(layout.data_dir, "train")
    change(path)
    for read in READERS.values():
        with pytest.raises(InputError, match=f"{SHARD} holds .* bytes") as caught:
            read(records)
        assert caught.value.detail == f"expected {size:,}, as manifest.json says"
    message = f"{SHARD} has .* bytes, and manifest.json lists {size:,} bytes"
    with pytest.raises(InputError, match=message):
        imagenet_prep.open(layout.data_dir, "train")
    for container in ("folders", "croissant"):
        with pytest.raises(InputError, match=message):
            export(layout, container, tmp_path / "out", ENGINE)
    assert not (tmp_path / "out").exists()


def test_another_count_in_the_manifest_is_refused(
    tmp_path: Path, relabelled: tuple[Layout, Layout]
) -> None:
    """A manifest whose count and digest of a shard contradict each other is not believed."""
    layout = copied(relabelled[0], tmp_path / "data")
    edit_manifest(layout, lambda value: one_more(value["shards"][SHARD], "records"))
    for read in READERS.values():
        with pytest.raises(InputError, match=OTHERS):
            read(imagenet_prep.open(layout.data_dir, "train"))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_are_compared(
    tmp_path: Path, made_tiny: MadeSet, compression: str
) -> None:
    """The records of a compressed shard, too, are those of the manifest."""
    (tmp_path / "classes.txt").write_text("\n".join(sorted(made_tiny.wnids)[2:6]))
    layouts = [
        Layout(tmp_path / f"from-{first}", raw=made_tiny.archives["train"].parent)
        for first in (0, 1)
    ]
    for first, layout in enumerate(layouts):
        part = find_part(str(tmp_path / "classes.txt"), first)
        convert(layout, ENGINE, PART.replace(recorded=part, compression=compression))
    shutil.copy(layouts[1].shard_path(SHARD), layouts[0].shard_path(SHARD))
    size = layouts[0].shards.size(SHARD)
    edit_manifest(layouts[0], lambda value: value["shards"][SHARD].update(size=size))
    for read in READERS.values():
        with pytest.raises(InputError, match=OTHERS):
            read(imagenet_prep.open(layouts[0].data_dir, "train"))


def test_a_flipped_stored_crc_is_damage(tmp_path: Path, relabelled: tuple[Layout, Layout]) -> None:
    """A record whose stored CRC changed is damaged, not another one."""
    layout = copied(relabelled[0], tmp_path / "data")
    path = layout.shard_path(SHARD)
    flip(path, 12 + len(data_of(path)[0]))
    for read in (list, first_of_shard):
        with pytest.raises(InputError, match=f"{SHARD}: record 0 at byte 0 is damaged"):
            read(imagenet_prep.open(layout.data_dir, "train"))
