"""verify and repair where they could call wrong what is right, or right what nobody looked at;
compressed sets, too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from existing import existing
from made_sets import ENGINE, PART, converted, copied, data_of, edit_manifest, flip, write
from running import held
from test_recipe_sets import made, make_flowers

from imagenet_prep import Layout, convert, make_engine, repair, verify
from imagenet_prep.checks.shard_check import ShardCheck
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind
from imagenet_prep.errors import BusyError, InputError, WorkerError
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.model import Outcomes, Problem, ProblemKind
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.stages.repair import RepairSummary
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.example import (
    BytesList,
    Feature,
    Int64List,
    encode_example,
    parse_example,
)
from imagenet_prep.tfrecord.inception_reader import read_record

K = ProblemKind
SHARD, OTHER = "train-00003-of-00008", "train-00006-of-00008"
EXAMINE = ImageNetExaminer.examine


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """Shards of ``made_tiny`` with all that belongs to them. Read only."""
    return converted(tmp_path_factory.mktemp("sound") / "data", made_tiny)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``."""
    return copied(sound, tmp_path / "data")


def change(path: Path, number: int, **features: Feature) -> None:
    """Change features of one record of a shard, soundly framed."""
    data = data_of(path)
    held = parse_example(memoryview(data[number]))
    held.update({name.replace("__", "/"): feature for name, feature in features.items()})
    data[number] = encode_example(held)
    write(path, data)


# a check that comes to no end ---------------------------------------------------------------------


def test_a_worker_that_dies(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard whose check kills its worker each time is a problem: nobody has looked at it."""
    victim = read_record(memoryview(data_of(layout.shard_path(SHARD))[2])).filename.encode()

    def die(examiner: ImageNetExaminer, data: memoryview, split: str, *, intact: bool) -> object:
        if victim in bytes(data):
            os.kill(os.getpid(), signal.SIGKILL)
        return EXAMINE(examiner, data, split, intact=intact)

    monkeypatch.setattr(ImageNetExaminer, "examine", die)
    verdict = verify(layout, make_engine("processes", 2))
    assert [(problem.kind, problem.subject) for problem in verdict.problems] == [
        (K.UNREADABLE, SHARD)
    ]
    assert verdict.faulty == {SHARD: (K.UNREADABLE,)}
    assert verdict.level == "damaged"
    assert verdict.fingerprint == ""


@pytest.mark.parametrize(
    ("error", "raised"),
    [(InputError("a disk", "that fails", ""), False), (ZeroDivisionError(), True)],
)
def test_a_check_that_raises(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, error: Exception, raised: bool
) -> None:
    """What the storage refuses is a problem of that shard; a bug of ours is no verdict at all."""
    check = ShardCheck.__call__

    def fail(self: ShardCheck, name: str) -> object:
        if name == SHARD:
            raise error
        return check(self, name)

    monkeypatch.setattr(ShardCheck, "__call__", fail)
    if raised:
        with pytest.raises(WorkerError):
            verify(layout, ENGINE)
        return
    verdict = verify(layout, ENGINE)
    assert [(problem.kind, problem.subject) for problem in verdict.problems] == [
        (K.UNREADABLE, SHARD)
    ]
    assert "a disk" in verdict.problems[0].detail
    assert verdict.level == "damaged"


# what records say ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [(), (1, 2)])
def test_a_promised_feature_with_another_number_of_values(
    tmp_path: Path, values: tuple[int, ...]
) -> None:
    """A feature of a recipe that holds no value or two, where one is promised,
    is named with both numbers.
    """
    make_flowers(tmp_path / "flowers", 1)
    layout = made(
        tmp_path, "source: {folders: flowers}\nshards: 1\nrecord: {image: encoded, size: height}\n"
    )
    change(layout.shard_path("train-00000-of-00001"), 1, size=Int64List(values))
    found = [problem for problem in verify(layout, ENGINE).problems if problem.kind is K.BAD_FIELD]
    assert [(each.record, each.expected, each.got) for each in found] == [
        (1, "1", str(len(values)))
    ]
    assert f"size holds {len(values)} values, expected 1" in found[0].detail


def test_a_cmyk_record(layout: Layout) -> None:
    """A JPEG of four components is named."""
    change(layout.shard_path(SHARD), 4, image__encoded=BytesList((photographs.tiny(1, Kind.CMYK),)))
    (problem,) = ShardCheck(layout, ImageNetExaminer())(SHARD).problems
    assert (problem.kind, problem.record) == (K.BAD_IMAGE, 4)
    assert "4 colour channels, expected at most 3" in problem.detail


def test_nul_in_a_name(layout: Layout) -> None:
    """A name with NUL in it is as good as none: every other record keeps its own name and place."""
    path, name = layout.shard_path(SHARD), b"n01440764_1\0.JPEG"
    names = [read_record(memoryview(data)).filename.encode() for data in data_of(path)]
    change(path, 4, image__filename=BytesList((name,)))
    report = ShardCheck(layout, ImageNetExaminer())(SHARD)
    assert report.filenames == [*names[:4], b"", *names[5:]]
    assert [(problem.kind, problem.record) for problem in report.problems] == [(K.BAD_FIELD, 4)]
    shutil.rmtree(layout.state_dir)
    change(layout.shard_path(OTHER), 2, image__filename=BytesList((name,)))
    problems = verify(layout, ENGINE, allow_incomplete=True).problems
    assert [(problem.kind, problem.subject) for problem in problems] == [
        (K.BAD_FIELD, SHARD),
        (K.BAD_FIELD, OTHER),
    ]


# what is on record --------------------------------------------------------------------------------


def test_an_index_of_another_shard_tells_nothing(layout: Layout) -> None:
    """What became of a damaged shard is not told by an index that is another one's."""
    path = layout.shard_path(SHARD)
    data = data_of(path)
    write(path, [*data[:5], *data[6:]])
    for other, own in zip(layout.index_paths(OTHER), layout.index_paths(SHARD), strict=True):
        shutil.copy(other, own)
    (problem,) = verify(layout, ENGINE).problems
    assert (problem.kind, problem.subject, problem.record) == (K.WRONG_COUNT, SHARD, None)
    assert "without a sound index file" in problem.detail


@pytest.mark.parametrize(("change_to", "canonical"), [({}, True), ({"shuffle": False}, False)])
def test_canonical_order_by_the_settings(
    tmp_path: Path, made_tiny: MadeSet, change_to: dict[str, object], canonical: bool
) -> None:
    """Of a sound set the settings tell the order: the seed of 2016, and shuffled.
    Its names say the same.
    """
    layout = converted(tmp_path / "data", made_tiny, PART.replace(**change_to))  # type: ignore[arg-type]
    expected = "canonical" if canonical else "not canonical"
    assert verify(layout, ENGINE).order == expected
    shutil.rmtree(layout.state_dir)
    assert verify(layout, ENGINE, allow_incomplete=True).order == expected


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("lacks_manifest", [True, False])
def test_the_order_of_a_set_without_all_shards_is_unknown(
    tmp_path: Path, made_tiny: MadeSet, shuffle: bool, lacks_manifest: bool
) -> None:
    """Convert was interrupted, or a shard is gone: the missing names are in no order yet."""
    options = PART.replace(validation_shards=2, shuffle=shuffle)
    layout = converted(tmp_path / "data", made_tiny, options)
    if lacks_manifest:
        layout.manifest_path.unlink()
    layout.shard_path("validation-00001-of-00002").unlink()
    layout.shard_path(SHARD).unlink()
    assert verify(layout, ENGINE).order == "unknown"


@pytest.mark.parametrize(
    ("split", "key", "by"), [("train", "classes", -1), ("validation", "boxes", 1)]
)
def test_totals_are_compared_with_the_records(
    layout: Layout, split: str, key: str, by: int
) -> None:
    """Classes and boxes of a manifest that are not those of the records are found,
    in either split.
    """
    totals = json.loads(layout.manifest_path.read_bytes())["totals"][split]
    number = max(0, totals[key] + by) or 1
    layout.plan_path.unlink()
    edit_manifest(layout, lambda manifest: manifest["totals"][split].update({key: number}))
    (problem,) = verify(layout, ENGINE).problems
    assert (problem.kind, problem.subject) == (K.WRONG_COUNT, split)
    assert number_of(number, key.removesuffix("es"), key) in problem.expected


def test_a_manifest_with_other_numbers_of_images_is_restored_or_made_again(layout: Layout) -> None:
    """Shards without raw data are kept: the remedy is the former manifest, or convert where the
    raw data still is.
    """
    layout.plan_path.unlink()
    layout.journal_path.unlink()
    sound = layout.manifest_path.read_bytes()
    edit_manifest(layout, lambda manifest: manifest["totals"]["train"].update(expected=300))
    (problem,) = verify(layout, ENGINE, allow_incomplete=True).problems
    assert problem.kind is K.BAD_MANIFEST
    assert problem.remedy == (
        "restore the manifest.json that convert wrote for these shards; or, if you still have the "
        "raw data, run the same imagenet-prep convert again with --overwrite"
    )
    changed = layout.manifest_path.read_bytes()
    layout.manifest_path.write_bytes(sound)
    assert not verify(layout, ENGINE, allow_incomplete=True).problems
    layout.manifest_path.write_bytes(changed)
    convert(layout, ENGINE, PART.replace(overwrite=True))
    assert not verify(layout, ENGINE, allow_incomplete=True).problems


# repair -------------------------------------------------------------------------------------------


def test_a_record_framed_again_is_not_as_it_was(tmp_path: Path, made_tiny: MadeSet) -> None:
    """A shard whose changed record was framed with right CRCs is made again,
    whatever is said to be wrong with it.
    """
    layout = converted(tmp_path / "data", made_tiny, PART.replace(compression="gzip"))
    path = layout.shard_path(SHARD)
    sound = path.read_bytes()
    path.write_bytes(zlib.decompress(sound, 31))
    change(path, 4, image__format=BytesList((b"jpeg",)))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert repair(layout, ENGINE, {SHARD: (K.BAD_FIELD,), OTHER: (K.DUPLICATE,)}) == RepairSummary(
        (SHARD,), (OTHER,)
    )
    assert path.read_bytes() == sound


def test_repair_holds_its_own_lock(layout: Layout) -> None:
    """repair by itself, not only behind verify, refuses a DATA_DIR that another process holds."""
    layout.shard_path(SHARD).unlink()
    with held(*layout.lock_paths) as holder, pytest.raises(BusyError, match=str(holder)):
        repair(layout, ENGINE, {SHARD: (K.MISSING_SHARD,)})
    assert not layout.shard_path(SHARD).exists()
    assert repair(layout, ENGINE, {SHARD: (K.MISSING_SHARD,)}).made == (SHARD,)


def test_a_record_that_is_damaged_is_not_as_it_was(layout: Layout) -> None:
    """A shard with a flipped bit in the data is made again though its framing is that of then."""
    path = layout.shard_path(SHARD)
    sound = path.read_bytes()
    flip(path, -40)
    assert repair(layout, ENGINE, {SHARD: (K.BAD_IMAGE,)}) == RepairSummary((SHARD,))
    assert path.read_bytes() == sound


WINDOW = {"gzip": 31, "zlib": 15}
TRAILER = {"gzip": 8, "zlib": 4}


@pytest.fixture(scope="module", params=["gzip", "zlib"])
def packed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet
) -> Layout:
    """Compressed shards of ``made_tiny`` beside its archives. Read only."""
    options = PART.replace(compression=request.param)
    return converted(tmp_path_factory.mktemp(request.param) / "data", made_tiny, options)


@pytest.fixture
def small(tmp_path: Path, packed: Layout) -> Layout:
    """The test's own copy of ``packed``."""
    return copied(packed, tmp_path / "data")


def compression_of(layout: Layout) -> str:
    """How the shards are compressed, as the manifest says."""
    return str(load_manifest(layout.manifest_path).settings["compression"])


def harmless_flips(content: bytes, compression: str) -> list[bytes]:
    """The file with each bit flipped, in its header and in the byte before its trailer,
    that changes no record.
    """
    plain = zlib.decompress(content, WINDOW[compression])
    found = []
    for position in (*range(10), len(content) - TRAILER[compression] - 1):
        for bit in range(8):
            flipped = (
                content[:position]
                + bytes((content[position] ^ 1 << bit,))
                + content[position + 1 :]
            )
            stream = zlib.decompressobj(WINDOW[compression])
            try:
                is_same = (
                    stream.decompress(flipped) == plain and stream.eof and not stream.unused_data
                )
            except zlib.error:
                continue
            if is_same:
                found.append(flipped)
    return found


def the_problem(layout: Layout) -> Problem:
    """The one problem that a full verify finds."""
    (problem,) = verify(layout, ENGINE).problems
    return problem


def test_flips_that_change_no_record(small: Layout) -> None:
    """A bit of a gzip header or of deflate's padding:
    named with both digests, and repair brings back the bytes.
    """
    shards = load_manifest(small.manifest_path).shards
    check = ShardCheck(small, ImageNetExaminer(), shards, compression_of(small))  # type: ignore[arg-type]
    tried = 0
    for path in existing(small.data_dir, "train-*"):
        content = path.read_bytes()
        flips = harmless_flips(content, compression_of(small))
        for flipped in flips[:: 9 if tried > 60 else 1]:
            tried += 1
            path.write_bytes(flipped)
            (problem,) = check(path.name).problems
            assert (problem.kind, problem.subject) == (K.BAD_COMPRESSION, path.name)
            assert problem.expected == hashlib.sha256(content).hexdigest()
            assert problem.got == hashlib.sha256(flipped).hexdigest()
            assert "the records are intact, the bytes around them are not" in problem.detail
        if flips:
            last, sound = path, content
        path.write_bytes(content)
    assert tried >= (60 if compression_of(small) == "gzip" else 1)
    last.write_bytes(flipped)
    assert verify_and_repair(small, ENGINE).repair.made == (last.name,)
    assert last.read_bytes() == sound


def test_other_damage_is_told_once(small: Layout) -> None:
    """Damage of the records, of the stream or of the size is one problem,
    not one more for the file's bytes.
    """
    path = small.shard_path(SHARD)
    content = path.read_bytes()
    window = WINDOW[compression_of(small)]
    packer = zlib.compressobj(9, wbits=window)
    path.write_bytes(packer.compress(zlib.decompress(content, window)) + packer.flush())
    kind = K.WRONG_SIZE if path.stat().st_size != len(content) else K.BAD_COMPRESSION
    assert the_problem(small).kind == kind
    path.write_bytes(content[:-1])
    assert the_problem(small).kind == K.TRUNCATED
    shutil.copy(small.shard_path("train-00004-of-00008"), path)
    assert the_problem(small).kind == K.EXCHANGED_SHARD


@pytest.mark.parametrize("key", ["file_digest", "size"])
def test_repair_refuses_other_bytes(small: Layout, key: str) -> None:
    """A shard of the right records that comes out in other bytes,
    or more of them, is not put in its place.
    """
    told = "0" * 64 if key == "file_digest" else small.shard_path(SHARD).stat().st_size + 1
    edit_manifest(small, lambda manifest: manifest["shards"][SHARD].update({key: told}))
    small.journal_path.unlink()
    before = small.shard_path(SHARD).read_bytes()
    with pytest.raises(InputError, match="with the same content"):
        repair(small, ENGINE, {SHARD: (K.BAD_COMPRESSION,)})
    assert small.shard_path(SHARD).read_bytes() == before


def test_a_digest_that_is_none(small: Layout) -> None:
    """A manifest whose digest of a file is no text is damaged."""
    edit_manifest(small, lambda manifest: manifest["shards"][SHARD].update(file_digest=7))
    small.journal_path.unlink()
    first = verify(small, ENGINE, allow_incomplete=True).problems[0]
    assert (first.kind, first.detail) == (
        K.BAD_MANIFEST,
        f"{small.manifest_path} can't be understood",
    )


T = TypeVar("T")
R = TypeVar("R")
RECIPE = (
    "source: {folders: flowers}\nshards: 4\nrecord: {image: encoded, label: label, name: path}\n"
)


class Backwards:
    """An engine whose last task is done first."""

    workers = 1

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Outcomes[T, R]:
        """The outcomes, from the last to the first."""
        yield from reversed(list(ENGINE.map(function, tasks)))


@pytest.fixture(params=["recipe", "imagenet", "imagenet of others"])
def any_set(request: pytest.FixtureRequest, tmp_path: Path, made_tiny: MadeSet) -> Layout:
    """A set with a manifest, or one that nothing is recorded of."""
    if request.param == "recipe":
        make_flowers(tmp_path / "flowers", 5)
        return made(tmp_path, RECIPE)
    layout = converted(tmp_path / "data", made_tiny)
    if request.param == "imagenet of others":
        layout.manifest_path.unlink()
        layout.journal_path.unlink()
    return layout


@pytest.mark.parametrize("is_damaged", [False, True])
def test_reports_come_in_any_order(any_set: Layout, is_damaged: bool) -> None:
    """The verdict is the same, problems, fingerprint and all, and so is what is kept of it."""
    if is_damaged:
        first, *_, last = existing(any_set.data_dir, "train-*")
        content = first.read_bytes()
        first.write_bytes(last.read_bytes())
        last.write_bytes(content[:-20])
    verdict = verify(any_set, ENGINE)
    assert bool(verdict.problems) >= is_damaged
    kept = json.loads(any_set.verdict_path.read_bytes())
    assert verify(any_set, Backwards()) == verdict
    assert json.loads(any_set.verdict_path.read_bytes()) == kept
