"""reading.shard_set: the records of a split as one sequence,
by number and in order, whoever made the shards.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from existing import existing
from made_sets import ENGINE, PART, converted, data_of, edit_manifest, flip, write
from many_readers import DIGESTS
from PIL import Image

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.reading.values import Decoder
from imagenet_prep.stages.convert import convert
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import parse_example
from imagenet_prep.tfrecord.inception_reader import read_record

MANY = ConvertOptions(train_shards=1024, validation_shards=8, allow_incomplete=True)
SHARD = "train-00003-of-00008"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,024 train shards of 2,000 images, made by convert. Read only."""
    folder = tmp_path_factory.mktemp("many")
    source = make(folder / "made", classes=10, per_class=200, validation=80, tiny=True)
    convert(Layout(folder / "data", raw=source.archives["train"].parent), ENGINE, MANY)
    return folder / "data"


def all_data(folder: Path, split: str = "train") -> list[bytes]:
    """The data of every record of a split, by the framing alone."""
    return [data for path in existing(folder, f"{split}-*-of-*") for data in data_of(path)]


def bare(folder: Path, target: Path) -> Path:
    """A folder of links to the train shards of another one: without manifest and index."""
    target.mkdir()
    for path in existing(folder, "train-*"):
        (target / path.name).symlink_to(path)
    return target


def own(found: ShardSet) -> list[bytes]:
    """The data of each record of a set, by number."""
    return [bytes(found[number].data) for number in range(len(found))]


# many shards --------------------------------------------------------------------------------------

MANY_READERS = f"""
COUNT = 1000
{DIGESTS}
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import imagenet_prep

found = pickle.load(sys.stdin.buffer) if sys.argv[1] == "-" else imagenet_prep.open(sys.argv[1], "train")
digests = [*digests_of_threads(found), digest(found), digest_in_a_fork(found)]
digests.append(digest(pickle.loads(pickle.dumps(found))))
assert sum(1 for _ in found) == len(found)
heavy = ["numpy" in sys.modules, "PIL" in sys.modules]
print(json.dumps([sorted(set(digests)), len(os.listdir("/proc/self/fd")), *heavy]))
"""


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="there is no /proc to count descriptors"
)
@pytest.mark.parametrize("way", ["bare", "pickled"])
def test_1024_shards_under_256_descriptors(way: str, many: Path, tmp_path: Path) -> None:
    """1,000 random records are right: alone, from 8 threads, after a fork, after pickling;
    no file stays open.
    """
    expected = all_data(many)
    assert len(existing(many, "train-*")) == 1024
    folder = bare(many, tmp_path / "bare") if way == "bare" else many
    words, sent = [str(folder)], b""
    if way == "pickled":
        found = imagenet_prep.open(folder, "train")
        assert bytes(found[700].data) == expected[700]
        words, sent = ["-"], pickle.dumps(found)
    done = subprocess.run(
        [sys.executable, "-c", MANY_READERS, *words], input=sent, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    numbers = random.Random(7).sample(range(len(expected)), 1000)
    digest = hashlib.sha256(b"".join(expected[number] for number in numbers)).hexdigest()
    digests, descriptors, *heavy = json.loads(done.stdout)
    assert digests == [digest]
    assert descriptors < 12
    assert heavy == [False, False]


def test_opening_reads_no_shard(many: Path, tmp_path: Path) -> None:
    """A set is opened, and its length known, by manifest and sizes alone:
    damaged shards show when one is read.
    """
    folder = tmp_path / "data"
    (folder / "imagenet-prep").mkdir(parents=True)
    shutil.copy(Layout(many).manifest_path, folder / "imagenet-prep")
    for path in existing(many, "*-of-*"):
        (folder / path.name).touch()
        os.truncate(folder / path.name, path.stat().st_size)
    found = imagenet_prep.open(folder, "train")
    assert len(found) == 2000
    with pytest.raises(InputError, match=r"train-00000-of-01024 .*damaged .*first record"):
        found[0]


# a sequence ---------------------------------------------------------------------------------------


def test_a_set_is_a_sequence(sound: Layout) -> None:
    """Numbers from both ends, slices, iteration in either direction:
    what a list of all records gives.
    """
    expected = all_data(sound.data_dir)
    found = imagenet_prep.open(str(sound.data_dir), "train")
    assert isinstance(found, ShardSet)
    assert (found.split, len(found)) == ("train", 300)
    assert own(found) == expected
    assert [bytes(record.data) for record in found] == expected
    assert [bytes(record.data) for record in reversed(found)] == expected[::-1]
    assert [bytes(record.data) for record in found[-20:280:-3]] == []
    assert [bytes(record.data) for record in found[250:20:-7]] == expected[250:20:-7]
    assert [bytes(found[-number].data) for number in range(1, 301)] == expected[::-1]
    assert len(imagenet_prep.open(sound.data_dir, "validation")) == 80


def test_several_at_once(sound: Layout) -> None:
    """Numbers in any order, twice too, in a list or an array;
    __getitems__ is what PyTorch's DataLoader asks for.
    """
    expected = all_data(sound.data_dir)
    found = imagenet_prep.open(sound.data_dir, "train")
    for wanted in ([7, 299, -1, 0, 7], np.array([7, 299, -1, 0, 7]), (7, 299, -1, 0, 7)):
        for several in (found[wanted], found.__getitems__(wanted)):
            assert [bytes(record.data) for record in several] == [
                expected[k] for k in (7, 299, -1, 0, 7)
            ]
    assert found[np.int64(5)].data == expected[5]
    assert found[[]] == []
    with pytest.raises(IndexError, match="it has 300 records, numbered from 0"):
        found[[0, 300]]


@pytest.mark.parametrize("world", [3, 8, 301])
def test_parts_of_a_set(world: int, sound: Layout) -> None:
    """The parts of all ranks are the set, one after the other;
    their lengths differ by one at most.
    """
    expected = all_data(sound.data_dir)
    whole = imagenet_prep.open(sound.data_dir, "train")
    parts = [pickle.loads(pickle.dumps(whole.shard(rank, world))) for rank in range(world)]
    assert [bytes(record.data) for part in parts for record in part] == expected
    assert [bytes(part[k].data) for part in parts for k in range(len(part))] == expected
    assert {len(part) for part in parts} <= {300 // world, 300 // world + 1}
    assert len(whole) == 300
    last = next(part for part in reversed(parts) if len(part))
    assert last[-1].data == expected[-1]
    with pytest.raises(IndexError, match="numbered from 0"):
        last[len(last)]
    halves = last.shard(0, 2), last.shard(1, 2)
    assert [bytes(record.data) for half in halves for record in half] == [
        bytes(record.data) for record in last
    ]


def test_pixels_of_other_kinds(tmp_path: Path) -> None:
    """CMYK, grey and PNG come in RGB too; what can't be decoded is an
    error that names the record.
    """
    grey = Image.effect_noise((40, 30), 80)
    kinds = [(grey.convert("CMYK"), "JPEG"), (grey, "JPEG"), (grey.convert("RGBA"), "PNG")]
    with records.ShardWriter(tmp_path / "train", shards=1) as shards:
        for image, form in kinds:
            image.save(buffer := io.BytesIO(), form)
            shards.write({"image/encoded": buffer.getvalue(), "image/class/label": 1})
        shards.write({"image/encoded": b"no image", "image/class/label": 1})
    *sound_ones, broken = imagenet_prep.open(tmp_path, "train")
    for record in sound_ones:
        assert record.array().shape == (30, 40, 3)
        assert np.array_equal(record.array(), np.asarray(record.image()))
    for decode in (broken.image, broken.array):
        with pytest.raises(InputError, match=r"record 3 at byte .*can't be decoded"):
            decode()


def test_crcs_are_compared_unless_told_not_to(layout: Layout) -> None:
    """With check=False a record with a flipped pixel comes, in order and by number;
    a broken length is still seen.
    """
    path = layout.shard_path(SHARD)
    flip(path, 5000)
    found = imagenet_prep.open(layout.data_dir, "train", check=False)
    expected = all_data(layout.data_dir)
    assert own(found) == expected
    assert [bytes(record.data) for record in found] == expected
    assert own(pickle.loads(pickle.dumps(found))) == expected
    flip(path, 2)
    with pytest.raises(InputError, match=SHARD):
        list(imagenet_prep.open(layout.data_dir, "train", check=False))


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda found: found[300], IndexError),
        (lambda found: found[-301], IndexError),
        (lambda found: found[1.0], TypeError),
        (lambda found: found.shard(1, 1), ValueError),
        (lambda found: found.shard(-1, 3), ValueError),
        (lambda found: found.shard(0, 0), ValueError),
    ],
)
def test_no_such_record_and_no_such_rank(
    ask: Callable[[ShardSet], Any], error: type[Exception], sound: Layout
) -> None:
    """Beyond either end there is an IndexError, only what is an index to a list is one;
    a rank is of 0 to world - 1.
    """
    with pytest.raises(error):
        ask(imagenet_prep.open(sound.data_dir, "train"))


def test_a_record_tells_what_it_holds(sound: Layout) -> None:
    """Features as records.read gives them, and each value of an image's record;
    the image is no copy.
    """
    found = imagenet_prep.open(sound.data_dir, "train")
    paths = existing(sound.data_dir, "train-*")
    values = list(records.read(paths))
    names = ("filename", "label", "wnid", "text", "boxes", "height", "width", "encoded")
    image = attrgetter(*names)
    places = [(path, number) for path in paths for number in range(len(data_of(path)))]
    for number, record in enumerate(found):
        assert record.features == values[number]
        assert image(record) == image(read_record(record.data))
        assert (record.shard, record.number) == places[number]
        assert record.encoded.obj is record.data.obj
        assert record.data.readonly
    assert any(record.boxes for record in found)


def test_the_ways_to_features_agree(sound: Layout, tmp_path: Path) -> None:
    """As a record of ours, feature by feature, and by the general parser:
    the same names, order, values and types.
    """
    whole = Decoder()
    one_by_one = Decoder(text={"no feature of this name"})
    counts = set()
    for record in imagenet_prep.open(sound.data_dir, "train"):
        general = {
            name: _value(name, feature) for name, feature in parse_example(record.data).items()
        }
        found = [
            list(decoder.example(record.data).items())
            for decoder in (whole, one_by_one, one_by_one)
        ]
        assert found[0] == found[1] == found[2] == list(general.items())
        assert [type(value) for _, value in found[0]] == [type(value) for value in general.values()]
        counts.add(len(record.boxes))
    assert {0, 1, 2} <= counts


def _value(name: str, feature: Any) -> Any:
    values = [bytes(each) if isinstance(each, memoryview) else each for each in feature.values]
    is_single = len(values) == 1 and not name.startswith("image/object/")
    return values[0] if is_single else values


# the index ----------------------------------------------------------------------------------------


def forget(layout: Layout) -> None:
    """Remove all records of a set, except its index: its shards are those of another maker."""
    for path in (layout.manifest_path, layout.journal_path, layout.plan_path):
        path.unlink(missing_ok=True)


def edit_index(layout: Layout, change: Callable[[list[list[int]]], object]) -> None:
    """Change the offsets and lengths that an index holds."""
    path = layout.index_path(SHARD)
    pairs = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
    change(pairs)
    path.write_text("".join(f"{offset} {length}\n" for offset, length in pairs))


def move(pairs: list[list[int]]) -> None:
    """Put one border between two records elsewhere: number and end are right."""
    pairs[4][1] += 3
    pairs[5][0] += 3
    pairs[5][1] -= 3


def join(pairs: list[list[int]]) -> None:
    """Make one of two records."""
    pairs[4][1] += pairs.pop(5)[1]


OTHER = "train-00004-of-00008"


@pytest.mark.parametrize(
    ("damage", "with_manifest"),
    [
        (lambda layout: layout.index_path(SHARD).unlink(), True),
        (lambda layout: shutil.copy(layout.index_path(OTHER), layout.index_path(SHARD)), False),
        (lambda layout: layout.index_path(SHARD).write_bytes(b"\xff\x00 x\n"), True),
        (lambda layout: edit_index(layout, lambda pairs: pairs.pop()), False),
        (lambda layout: edit_index(layout, move), True),
        (lambda layout: edit_index(layout, move), False),
        (lambda layout: edit_index(layout, join), True),
    ],
    ids=[
        "none",
        "of another shard",
        "no numbers",
        "a line less",
        "moved",
        "moved, no manifest",
        "joined",
    ],
)
def test_an_index_only_saves_time(
    damage: Callable[[Layout], object], with_manifest: bool, layout: Layout
) -> None:
    """Whatever an index says, a record is the one that the framing shows."""
    damage(layout)
    if not with_manifest:
        forget(layout)
    assert own(imagenet_prep.open(layout.data_dir, "train")) == all_data(layout.data_dir)


def test_an_index_that_joins_two_records(layout: Layout) -> None:
    """Without a manifest that knows how many there are, nothing is given in place of the two."""
    count = len(data_of(layout.shard_path(SHARD))) - 1
    edit_index(layout, join)
    forget(layout)
    with pytest.raises(InputError, match=rf"expected {count} "):
        own(imagenet_prep.open(layout.data_dir, "train"))


def test_an_index_is_used(layout: Layout) -> None:
    """With an index, a record behind one whose length is damaged is found all the same;
    without it, it is not.
    """
    shard = layout.shard_path(SHARD)
    expected = data_of(shard)
    flip(shard, 16 + len(expected[0]))  # the length of record 1
    found, first = imagenet_prep.open(layout.data_dir, "train"), records_before(layout)
    assert bytes(found[first + 2].data) == expected[2]
    with pytest.raises(
        InputError, match=f"{SHARD}: record 1 at byte {16 + len(expected[0])} can't be read"
    ):
        found[first + 1]
    layout.index_path(SHARD).unlink()
    with pytest.raises(InputError, match="record 1 at byte"):
        imagenet_prep.open(layout.data_dir, "train")[first + 2]


def records_before(layout: Layout) -> int:
    """How many records the shards before SHARD hold."""
    return sum(
        len(data_of(path)) for path in existing(layout.data_dir, "train-*") if path.name < SHARD
    )


# damage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_damaged_record_is_named(compression: str, layout: Layout) -> None:
    """File, record and byte, by number and by iteration;
    the other records come, and verify is proposed.
    """
    shard, first = layout.shard_path(SHARD), records_before(layout)
    expected = all_data(layout.data_dir)
    size = len(expected[first])
    flip(shard, 16 + size + 12 + 5)
    if compression == "gzip":
        shard.write_bytes(gzip.compress(shard.read_bytes()))
        edit_manifest(
            layout, lambda value: value["shards"][SHARD].update(size=shard.stat().st_size)
        )
    where = "" if compression == "none" else " of its gzip content"
    found = imagenet_prep.open(layout.data_dir, "train")
    with pytest.raises(InputError) as caught:
        found[first + 1]
    assert caught.value.what == f"{shard}: record 1 at byte {size + 16}{where} is damaged"
    assert caught.value.detail.endswith(".JPEG: the data does not match its CRC")
    assert "imagenet-prep verify" in caught.value.hint
    others = [number for number in range(300) if number != first + 1]
    assert [bytes(found[number].data) for number in others] == [
        expected[number] for number in others
    ]
    seen = []
    with pytest.raises(InputError, match="record 1 at byte"):
        seen.extend(bytes(record.data) for record in found)
    assert seen == expected[: first + 1]


@pytest.mark.parametrize(
    ("change", "compression"),
    [("fewer", "none"), ("more", "none"), ("cut", "none"), ("fewer", "zlib"), ("cut", "zlib")],
)
def test_a_shard_of_another_length_is_refused(
    change: str, compression: str, layout: Layout
) -> None:
    """A shard that ends early, even between two records, or late,
    is no shorter or longer data set.
    """
    shard, first = layout.shard_path(SHARD), records_before(layout)
    data = data_of(shard)
    write(shard, data[:-1] if change == "fewer" else [*data, b"x"] if change == "more" else data)
    if change == "cut":
        shard.write_bytes(shard.read_bytes()[:-1])
    if compression == "zlib":
        shard.write_bytes(zlib.compress(shard.read_bytes()))
    with pytest.raises(InputError, match=r"holds .* bytes"):
        list(imagenet_prep.open(layout.data_dir, "train"))
    with pytest.raises(InputError, match=r"holds .* bytes"):
        imagenet_prep.open(layout.data_dir, "train")[first + len(data) - 1]
    edit_manifest(layout, lambda value: value["shards"][SHARD].update(size=shard.stat().st_size))
    message = {
        "fewer": "holds 37 records",
        "more": "record 38 .* is not the record that was written there",
        "cut": "after the header, got",
    }
    with pytest.raises(InputError, match=message[change]):
        list(imagenet_prep.open(layout.data_dir, "train"))


@pytest.mark.parametrize(
    ("content", "compression"), [("equal", "none"), ("another", "gzip"), ("gone", "none")]
)
def test_a_replaced_shard_is_refused(content: str, compression: str, tmp_path: Path) -> None:
    """While a set is open: by number and in order alike;
    a set that is opened again has the new one.
    """
    path = tmp_path / "train-00000-of-00001"
    for folder, data in (
        (tmp_path, b"first"),
        (tmp_path / "new", b"other" if content == "another" else b"first"),
    ):
        folder.mkdir(exist_ok=True)
        write(folder / path.name, [data] * 3)
        if compression == "gzip":
            (folder / path.name).write_bytes(gzip.compress((folder / path.name).read_bytes()))
    found = imagenet_prep.open(tmp_path, "train")
    assert [bytes(record.data) for record in found] == [b"first"] * 3
    started = iter(found)
    next(started)
    if content == "gone":
        path.unlink()
    else:
        (tmp_path / "new" / path.name).replace(path)
    for read in (
        lambda: found[0],
        lambda: found[[2]],
        lambda: next(iter(found)),
        lambda: list(found.shard(0, 1)),
    ):
        with pytest.raises(
            InputError, match="can't be read" if content == "gone" else "changed or replaced"
        ) as caught:
            read()
        assert str(path) in caught.value.what
    assert [bytes(record.data) for record in started] == [b"first"] * 2
    if content != "gone":
        assert len(list(imagenet_prep.open(tmp_path, "train"))) == 3


# which shards -------------------------------------------------------------------------------------


def test_a_missing_shard_is_named_at_once(layout: Layout) -> None:
    """A set with a hole is refused when it is opened:
    finished, never finished, or made elsewhere.
    """
    layout.shard_path(SHARD).unlink()
    assert len(imagenet_prep.open(layout.data_dir, "validation")) == 80
    states: list[tuple[Callable[[], object], str, str]] = [
        (lambda: None, f"{SHARD} is missing", "imagenet-prep repair"),
        (
            layout.manifest_path.unlink,
            f"1 shard is not done, {SHARD} first",
            "imagenet-prep convert again",
        ),
        (lambda: forget(layout), f"lacks 1 of 8 train shards\n.*{SHARD}", "get the missing shards"),
    ]
    for change, what, hint in states:
        change()
        with pytest.raises(InputError, match=what) as caught:
            imagenet_prep.open(layout.data_dir, "train")
        assert hint in caught.value.hint


def test_a_shard_that_is_a_broken_link(tmp_path: Path) -> None:
    """Its name is there, and the error says why it is missing all the same."""
    records.write(tmp_path / "train-00000-of-00002", [{"a": 1}])
    (tmp_path / "train-00001-of-00002").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match="lacks 1 of 2 train shards") as caught:
        imagenet_prep.open(tmp_path, "train")
    assert caught.value.detail == ("the first missing one: train-00001-of-00002, a broken link")


def test_no_such_split(layout: Layout, tmp_path: Path) -> None:
    """A split that isn't there, or none that is named: the error lists those that are;
    so does no folder of shards.
    """
    with pytest.raises(InputError, match="no val shards in") as caught:
        imagenet_prep.open(layout.data_dir, "val")
    assert caught.value.hint.startswith("name a split of this folder: train or validation; ")
    with pytest.raises(InputError, match="no train shards in") as caught:
        imagenet_prep.open(layout.raw_dir, "train")
    assert "there are" not in caught.value.detail
    for split in ((), ("",), (None,), (3,)):
        with pytest.raises(UsageError, match="no split is named") as said:
            imagenet_prep.open(layout.data_dir, *split)
        assert "train, validation" in said.value.detail
        assert said.value.hint == "name one of them: split='train'"
    for shard in existing(layout.data_dir, "train-*-of-*"):
        shard.unlink()
    layout.manifest_path.unlink()
    shutil.rmtree(layout.state_dir)
    with pytest.raises(UsageError, match="no split is named") as said:
        imagenet_prep.open(layout.data_dir)
    assert said.value.hint == "name one of them: split='validation'"


def test_no_folder_of_shards(layout: Layout, tmp_path: Path) -> None:
    """A mistyped path, another kind of file, and a shard in place of its folder: nothing is to be
    restored or moved away, and no pipe is opened.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    faults = {
        tmp_path / "nowhere": "does not exist",
        tmp_path / "pipe": "is neither a file nor a folder",
        tmp_path / "link": "is a broken link",
        layout.shard_path(SHARD): "is a file",
    }
    for path, fault in faults.items():
        for split in ((), ("train",)):
            with pytest.raises(InputError) as caught:
                imagenet_prep.open(path, *split)
            assert caught.value.lines[:2] == [f"{path} {fault}", "expected a folder of shards"]
            assert caught.value.hint.startswith("name the folder ")
    assert caught.value.hint == f"name the folder of the shards: {layout.data_dir}"


def test_two_sets_in_one_folder(layout: Layout) -> None:
    """They are refused, with a manifest and without: a glob would match both."""
    shutil.copy(layout.shard_path(SHARD), layout.shard_path("train-00000-of-00001"))
    with pytest.raises(InputError, match=r"train-00000-of-00001 .*manifest"):
        imagenet_prep.open(layout.data_dir, "train")
    assert len(imagenet_prep.open(layout.data_dir, "validation")) == 80
    forget(layout)
    with pytest.raises(InputError, match=r"2 sets: train-\*-of-00001, train-\*-of-00008"):
        imagenet_prep.open(layout.data_dir, "train")


# whose shards -------------------------------------------------------------------------------------


def test_compressed_shards(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The same records as of plain shards, in order and by number."""
    compression: Any = "zlib"
    folder = converted(tmp_path / "data", made_tiny, PART.replace(compression=compression)).data_dir
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in existing(folder, "train-*"):
        (plain / path.name).write_bytes(zlib.decompress(path.read_bytes(), 47))  # gzip or zlib
    expected = all_data(plain)
    warned = []
    for _ in range(2):
        found = imagenet_prep.open(folder, "train")
        assert [bytes(record.data) for record in found] == expected
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            several = found[[7, -1]]
            assert found[-1].data == expected[-1]
        assert [record.data for record in several] == [expected[7], expected[-1]]
        warned.append([str(each.message) for each in caught])
        shutil.rmtree(folder / "imagenet-prep", ignore_errors=True)
    (text,), again = warned
    assert text.startswith(f"the shards in {folder} are compressed ({compression}): records[i] ")
    assert again == []


def test_an_index_is_kept_in_the_cache(
    tmp_path: Path, sound: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other makers' shards are followed once: then a record behind a broken length is found.
    Nothing is beside them.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "others"
    folder.mkdir()
    for path in existing(sound.data_dir, "train-*"):
        shutil.copy(path, folder)
    expected = own(imagenet_prep.open(folder, "train"))
    kept = existing(tmp_path, "cache/imagenet-prep/index/*.idx")
    assert len(kept) == 8
    assert not any(path.is_dir() for path in existing(folder, "*"))
    status = (folder / SHARD).stat()
    flip(folder / SHARD, 1)
    os.utime(folder / SHARD, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = imagenet_prep.open(folder, "train")
    last = records_before(sound) + len(data_of(sound.data_dir / SHARD)) - 1
    assert again[last].data == expected[last]
    flip(folder / SHARD, 1)
    for path in kept:  # an index of another file, and one that is none
        path.write_bytes(kept[0].read_bytes() if path != kept[0] else b"7 x")
    assert own(imagenet_prep.open(folder, "train")) == expected


def test_an_index_that_can_not_be_kept_is_made_again(
    tmp_path: Path, sound: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder that can't be made is no error."""
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert own(imagenet_prep.open(bare(sound.data_dir, tmp_path / "bare"), "train")) == all_data(
        sound.data_dir
    )


def test_records_that_are_no_images(tmp_path: Path) -> None:
    """Their features are there; what an image's record would tell is an error that says where,
    and no default.
    """
    with records.ShardWriter(tmp_path / "movies", shards=2) as shards:
        shards.write({"Age": 29})
        shards.write(records.SequenceExample({"title": "x"}, {"words": ["a", "b"]}))
    film, clip = imagenet_prep.open(tmp_path, "movies")
    assert film.features == {"Age": 29}
    with pytest.raises(InputError, match=r"record 0 at byte 0 .*Inception") as caught:
        _ = film.label
    assert caught.value.detail == "image/encoded is missing"
    with pytest.raises(UsageError, match="record 0 at byte 0") as said:
        _ = clip.features
    assert "records.read_sequences" in said.value.hint
    with pytest.raises(InputError, match=r"record 0 at byte 0 .*Inception") as caught:
        _ = clip.label
    assert "records.read_sequences" in caught.value.hint
    write(tmp_path / "movies-00000-of-00002", [b"\xff\xff"])
    with pytest.raises(InputError, match="record 0 at byte 0 can't be read") as caught:
        _ = imagenet_prep.open(tmp_path, "movies")[0].features
    assert "it is not a tf.train.Example" in caught.value.detail


def test_empty_shards(tmp_path: Path) -> None:
    """Shards of 0 bytes count as shards and hold nothing, wherever they are."""
    for number, data in enumerate([[], [b"a"], [], [], [b"b", b"c"], []]):
        write(tmp_path / f"train-{number:05d}-of-00006", data)
        write(tmp_path / f"nothing-{number:05d}-of-00006", [])
    found = imagenet_prep.open(tmp_path, "train")
    assert own(found) == [bytes(record.data) for record in found] == [b"a", b"b", b"c"]
    empty = imagenet_prep.open(tmp_path, "nothing")
    assert (len(empty), list(empty)) == (0, [])
    with pytest.raises(IndexError):
        empty[0]


def test_a_record_equals_itself(sound: Layout) -> None:
    """Read twice, or sent to another process, it is one record;
    another one with the same data is not.
    """
    found = imagenet_prep.open(sound.data_dir, "train")
    assert found[7] == found[7] == pickle.loads(pickle.dumps(found[7])) == list(found)[7]
    assert len({found[7], list(found)[7], found[8]}) == 2
    assert found[7] != found[8]
    assert found[7] != 7
    assert found.index(found[7]) == 7
    assert found[7] in found
