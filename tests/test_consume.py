"""--consume: the raw data gives its space to the shards;
a kill at any moment loses nothing; what may not go stays.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import kaggle_copies
import pytest
from copies_of_imagenet import write_hugging_face
from existing import existing
from made_sets import flip
from progress import Bars
from running import command, prep

from imagenet_prep import ConvertOptions, Layout, PrepError, convert, make_engine, status
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import InputError, SpaceError, UsageError, WriteError
from imagenet_prep.fetch.target import Target
from imagenet_prep.model import Silent
from imagenet_prep.pipeline import missing_archives, verify_and_repair
from imagenet_prep.shards import consumption, regroup
from imagenet_prep.shards import run as making
from imagenet_prep.shards.consumption import ConsumedFile, Consumption
from imagenet_prep.state.journal import sealed_line
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.storage import durable, local

pytestmark = pytest.mark.once

PLAIN = ConvertOptions(train_shards=3, validation_shards=2, allow_incomplete=True, check="header")
CONSUME = PLAIN.replace(consume=True, memory=2000)
ENGINE = make_engine("threads", 1)


def see(layout: Layout) -> None:
    """Let the digest of every file in the raw folder be seen, as a download does it."""
    for path in existing(layout.own_raw_dir, "*"):
        if path.suffix in (".tar", ".parquet", ".gz", ".zip"):
            digest = hashlib.md5(path.read_bytes()).hexdigest()
            Target(Layout(layout.data_dir), path.name, None, {"md5": digest}).check_present(
                Silent()
            )


def states(layout: Layout) -> dict[str, bytes]:
    """Shards, indexes and manifest, by name."""
    paths = [
        *existing(layout.output_dir, "*-of-*"),
        *existing(layout.index_dir, "*"),
        layout.manifest_path,
    ]
    return {path.name: path.read_bytes() for path in paths}


def made(layout: Layout, options: ConvertOptions = CONSUME) -> list[int]:
    """Convert; how many shards of each split were made."""
    return [split.made for split in convert(layout, ENGINE, options).splits]


def occupied(folder: Path) -> int:
    """Bytes that a folder takes on the disk."""
    return sum(512 * path.lstat().st_blocks for path in list(folder.rglob("*")) if path.is_file())


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> MadeSet:
    """Twelve train and six validation images."""
    return make(tmp_path_factory.mktemp("few"), classes=3, per_class=4, validation=6, tiny=True)


def filled(data_dir: Path, few: MadeSet) -> Layout:
    """A DATA_DIR with the archives, whose digests were seen."""
    layout = Layout(data_dir)
    layout.raw_dir.mkdir(parents=True)
    for path in few.archives.values():
        shutil.copy2(path, layout.raw_dir)
    see(layout)
    return layout


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder for many runs that sync a lot: in memory where there is such a place."""
    memory = Path("/dev/shm")
    folder = (
        memory / f"imagenet-prep-consume-{os.getpid()}"
        if os.access(memory, os.W_OK)
        else tmp_path / "quick"
    )
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def layout(tmp_path: Path, few: MadeSet) -> Layout:
    """The same for one test."""
    return filled(tmp_path / "data", few)


@pytest.fixture(scope="module")
def expected(few: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a conversion leaves that consumes nothing."""
    layout = Layout(tmp_path_factory.mktemp("plain"), raw=few.archives["train"].parent)
    made(layout, PLAIN)
    return states(layout)


# what it leaves -----------------------------------------------------------------------------------


def test_the_shards_are_those_of_an_ordinary_conversion(
    layout: Layout, expected: dict[str, bytes]
) -> None:
    """Shards, indexes and manifest are the same, the archives are gone,
    nothing but records of them is left.
    """
    said = Bars()
    convert(layout, ENGINE, CONSUME, progress=said)
    assert states(layout) == expected
    assert not {"ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"} & set(
        os.listdir(layout.raw_dir)
    )
    left = {path.name for path in existing(layout.consumed_dir, "*/*")}
    assert left == {"record.json", "listing"}
    (told,) = (
        note for note in said.notes if note.startswith("--consume: ILSVRC2012_img_train.tar and 1")
    )
    assert "in the end these files are gone" in told
    assert "reading ILSVRC2012_img_train.tar in order" in said.labels


def test_the_disk_never_holds_much_more_than_the_shards(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no image that was read, and at no shard that was made,
    more than 1.1 times the shards lie on the disk.
    """
    layout = Layout(data_dir)
    see(layout)
    monkeypatch.setattr(making, "HELD", 0)
    beside = sum(path.stat().st_size for path in existing(layout.raw_dir, "*.gz"))
    peaks: list[int] = []

    class Measured(Silent):
        def advance(self, amount: int = 1) -> None:
            peaks.append(occupied(data_dir) - beside)

    options = CONSUME.replace(memory=50_000, train_shards=48, validation_shards=24)
    convert(layout, ENGINE, options, progress=Measured())
    left = occupied(data_dir) - beside
    assert left > 7_000_000
    assert len(peaks) >= 2 * 72
    assert max(peaks) <= 1.1 * left


def test_parquet_files_go_one_by_one(
    made: MadeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is removed once its images are durable in bundles;
    the shards are those of an ordinary conversion.
    """
    layout = Layout(tmp_path / "data")
    write_hugging_face(layout.own_raw_dir, made, files=4)
    see(layout)
    plain = Layout(tmp_path / "plain", raw=layout.raw_dir)
    convert(plain, ENGINE, PLAIN)
    left: list[int] = []

    class Watched(Silent):
        def advance(self, amount: int = 1) -> None:
            folder = layout.consumed("train").files
            left.append(len(list(folder.glob("*.parquet"))) if folder.is_dir() else -1)

    monkeypatch.setattr(consumption, "punch", lambda *_: pytest.fail("no holes"))
    convert(layout, ENGINE, CONSUME.replace(memory=100_000), progress=Watched())
    assert states(layout) == states(plain)
    assert {4, 3, 2, 1, 0} <= set(left)
    assert list(layout.raw_dir.glob("t[re]*-of-*.parquet")) == [
        layout.raw_dir / "test-00000-of-00001.parquet"
    ]


def test_a_set_that_is_done_gives_the_space_back(
    layout: Layout, few: MadeSet, expected: dict[str, bytes]
) -> None:
    """After an ordinary conversion the archives go all the same;
    with them back, a lost shard is repaired.
    """
    made(layout, PLAIN)
    assert made(layout) == made(layout) == [0, 0]
    assert states(layout) == expected
    assert not list(layout.data_dir.rglob("ILSVRC2012_img_*"))
    assert verify_and_repair(layout, ENGINE).repair.made == ()
    layout.shard_path("train-00001-of-00003").unlink()
    with pytest.raises(InputError, match=r"img_train\.tar .*consumed"):
        verify_and_repair(layout, ENGINE)
    shutil.copy2(few.archives["train"], layout.raw_dir)
    assert verify_and_repair(layout, ENGINE).repair.made == ("train-00001-of-00003",)
    assert states(layout) == expected


@pytest.mark.parametrize("lost", ["a shard", "the consumed folder"])
def test_finished_shards_are_kept_with_raw_data_of_another_time(
    layout: Layout, few: MadeSet, expected: dict[str, bytes], lost: str
) -> None:
    """An archive that was downloaded again has another time: only what is missing is made."""
    made(layout)
    layout.shard_path("train-00001-of-00003").unlink()
    if lost == "the consumed folder":
        shutil.rmtree(layout.consumed("train").folder)
    with pytest.raises(InputError, match="download"):
        made(layout)
    shutil.copy(few.archives["train"], layout.raw_dir)
    see(layout)
    assert made(layout, PLAIN) == [1, 0]
    assert states(layout) == expected


def test_other_raw_data_in_the_place_of_the_consumed_is_refused(
    layout: Layout, few: MadeSet
) -> None:
    """Images of the same names and lengths, and other bytes: the shards are not theirs."""
    made(layout)
    path = layout.raw_dir / few.archives["train"].name
    content = few.archives["train"].read_bytes()
    path.write_bytes(content.replace(b"\xff\xdb\x00", b"\xff\xdb\x01"))
    with pytest.raises(UsageError, match="made from other inputs"):
        made(layout, PLAIN)


# what is said of it afterwards --------------------------------------------------------------------


def test_afterwards_everything_is_done(layout: Layout, expected: dict[str, bytes]) -> None:
    """Convert makes nothing, run fetches no images, status says where they are;
    other shards are refused.
    """
    made(layout)
    assert made(layout) == made(layout, PLAIN) == [0, 0]
    assert missing_archives(layout) == ()
    stages = {stage.stage: stage for stage in status(layout).stages}
    assert stages["convert"].state == "done"
    assert (
        "in the train shards only: ILSVRC2012_img_train.tar was consumed"
        in stages["download"].detail
    )
    for options in (PLAIN.replace(train_shards=2), CONSUME.replace(seed=1)):
        with pytest.raises(InputError, match=r"(?s)img_train\.tar .*consumed.*shards") as refused:
            made(layout, options.replace(overwrite=True))
        assert "imagenet-prep download" in refused.value.hint
    assert states(layout) == expected


# kills --------------------------------------------------------------------------------------------

STEPS: list[tuple[object, str]] = [
    *(
        (os, name)
        for name in ("fsync", "replace", "rename", "unlink", "truncate", "mkdir", "rmdir")
    ),
    *((consumption, name) for name in ("sync_file_system", "punch")),
    (regroup, "write_all"),
    (local.LocalAppender, "append"),
    (making, "_sync"),
]
"""Whatever a run does to the disk, but for the bytes of shards."""


def run_until(moment: int, act: Callable[[], object]) -> list[str]:
    """Do something in a process of its own that kills itself before its ``moment``th step.

    Returns:
        Each step that it came to, with what it was done to; the last one was not done, if that is
        the ``moment``th.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        met = 0

        def stepping(name: str, true: Callable[..., object]) -> Callable[..., object]:
            def step(*given: object, **more: object) -> object:
                nonlocal met
                met += 1
                what = (
                    Path(f"/proc/self/fd/{given[0]}").readlink()
                    if isinstance(given[0], int)
                    else given[0]
                )
                name_of_it = "" if isinstance(what, Layout) else Path(str(what)).name
                kind = re.sub(r"[.]?[0-9a-f]+-[0-9a-f]+[.]|[0-9]+", "", name_of_it)
                os.write(writing, f"{name} {kind}\n".encode())
                if met == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return true(*given, **more)

            return step

        try:  # whatever happens, this process must not go on with the tests
            for place, name in STEPS:
                setattr(place, name, stepping(name, getattr(place, name)))
            act()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        steps = said.read().decode().splitlines()
    _, ended = os.waitpid(child, 0)
    assert (len(steps) == moment) == os.WIFSIGNALED(ended)
    return steps


@pytest.mark.parametrize("shards", [(3, 2), (3, 9)], ids=["few shards", "some without images"])
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_kill_before_a_step_loses_nothing(
    few: MadeSet, quick: Path, every: bool, shards: tuple[int, int]
) -> None:
    """Of every other kind of step some one of a run, or all steps (make exhaustive): whichever it
    dies before, and now and then the next run later.

    A shard without images has no bundle.
    """
    plain, consume = (
        each.replace(train_shards=shards[0], validation_shards=shards[1])
        for each in (PLAIN, CONSUME)
    )
    unbroken = Layout(quick / "plain", raw=few.archives["train"].parent)
    made(unbroken, plain)
    steps = run_until(10_000, lambda: made(filled(quick / "all", few), consume))
    kinds = {step.replace("validation", "train"): moment for moment, step in enumerate(steps, 1)}
    assert len(kinds) > 30
    sampled = sorted(kinds.values())
    sampled = sampled[::2] if shards == (3, 2) else sampled[1::5]
    for moment in range(1, len(steps) + 1) if every else sampled:
        layout = filled(quick / "data", few)
        run_until(moment, lambda layout=layout: made(layout, consume))
        if every or moment % 3 == 0:
            run_until(3 + moment % 5, lambda layout=layout: made(layout, consume))
        made(layout, consume)
        assert states(layout) == states(unbroken), f"died before step {moment}, {steps[moment - 1]}"
        record = json.loads(layout.consumed("train").record.read_text())
        assert (record["rows"], record["total"], record["is_over"]) == (12, 12, True)
        assert list(layout.consumed_dir.glob("*/[fb]*/*")) == []
        assert list(layout.raw_dir.glob("*_img_*.tar")) == []
        shutil.rmtree(layout.data_dir)


def test_what_was_begun_goes_on_only_when_asked(
    layout: Layout, begun: Layout, expected: dict[str, bytes]
) -> None:
    """Midway an ordinary convert, and one with other settings, are refused with what helps;
    nothing is touched.
    """
    begin_like(layout, begun)
    kept = {
        str(path): path.read_bytes()
        for path in existing(layout.consumed_dir, "**/*")
        if path.is_file()
    }
    with pytest.raises(UsageError, match="has started to use up") as refused:
        made(layout, PLAIN)
    assert refused.value.hint == "run the same command with --consume"
    with pytest.raises(InputError, match="was consumed") as gone:
        made(layout, CONSUME.replace(seed=3, overwrite=True))
    assert gone.value.hint.startswith(
        f"get it again with imagenet-prep download {layout.data_dir};"
    )
    assert {path: Path(path).read_bytes() for path in kept} == kept
    assert missing_archives(layout) == ()
    plan = load_plan(layout)
    assert plan is not None
    assert ("consume", True) in plan.options
    made(layout)
    assert states(layout) == expected


@pytest.fixture(scope="module")
def begun(few: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A DATA_DIR whose archives are consumed in part. Read only."""
    layout = filled(tmp_path_factory.mktemp("begun") / "data", few)
    midway(layout)
    return layout


def begin_like(layout: Layout, begun: Layout) -> None:
    """Put a copy of ``begun`` in the place of a DATA_DIR, with the times of its files."""
    shutil.rmtree(layout.data_dir)
    shutil.copytree(begun.data_dir, layout.data_dir)


def midway(layout: Layout) -> None:
    """Let runs die until some train images are in bundles, and not all of them."""
    for moment in range(30, 200, 5):
        is_on_record = all(Consumption.find(layout, split) for split in ("train", "validation"))
        run_until(30 if is_on_record else moment, lambda: made(layout))
        found = Consumption.find(layout, "train")
        if found and 0 < found.rows < found.total:
            return
    pytest.fail("no run died midway")


# what is refused ----------------------------------------------------------------------------------


def refused(layout: Layout, options: ConvertOptions = CONSUME) -> PrepError:
    """The error of a conversion that may not begin;
    nothing is there after it that was not there before.
    """
    before = {str(path) for path in list(layout.data_dir.rglob("*"))}
    sizes = {path: Path(path).stat().st_blocks for path in before}
    with pytest.raises(PrepError) as found:
        made(layout, options)
    after = {str(path) for path in list(layout.data_dir.rglob("*"))}
    assert {path for path in after - before if "imagenet-prep" not in path} == set()
    assert not layout.consumed_dir.exists()
    assert {path: Path(path).stat().st_blocks for path in before} == sizes
    return found.value


def test_an_archive_whose_digest_was_not_seen(layout: Layout) -> None:
    """Never compared, or touched since: nothing proves that it could be had again;
    the remedy is to check it.
    """
    os.utime(layout.raw_dir / "ILSVRC2012_img_val.tar", ns=(1, 1))
    found = refused(layout)
    assert isinstance(found, InputError)
    assert "img_val.tar can't be consumed" in found.what
    assert f"imagenet-prep download {layout.data_dir}" in found.hint
    (layout.raw_dir / "checked.json").unlink()
    assert "img_train.tar can't be consumed" in refused(layout).what
    see(layout)
    made(layout)


def test_raw_data_of_others(layout: Layout, few: MadeSet, tmp_path: Path) -> None:
    """What lies outside DATA_DIR, is a link to there,
    or has another name there, is only ever read.
    """
    raw = few.archives["train"].parent
    assert "it is outside" in str(refused(Layout(tmp_path / "empty", raw=raw)).detail)
    path = layout.raw_dir / "ILSVRC2012_img_train.tar"
    elsewhere = tmp_path / "elsewhere.tar"
    os.link(path, elsewhere)
    assert "hard link" in str(refused(layout).detail)
    path.unlink()
    path.symlink_to(elsewhere)
    assert refused(layout).detail == f"it is a link, or below one: its file is {elsewhere}"
    path.unlink()
    shutil.move(layout.raw_dir, tmp_path / "raw")
    layout.raw_dir.symlink_to(tmp_path / "raw")
    elsewhere.rename(path)
    target = tmp_path / "raw" / path.name
    assert refused(layout).detail == f"it is a link, or below one: its file is {target}"


def test_where_it_can_not_be_done(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards elsewhere, a part of the classes, a file system without holes,
    a disk without the little that it takes.
    """
    elsewhere = Layout(layout.data_dir, output=tmp_path / "out")
    assert refused(elsewhere).what.startswith("--consume can't be combined with --output ")
    assert (
        "can't convert only imagenette"
        in refused(layout, CONSUME.replace(classes="imagenette")).what
    )
    with monkeypatch.context() as patch:
        patch.setattr(durable, "_punch", Mock(side_effect=OSError(errno.EOPNOTSUPP, "no holes")))
        assert "can't free space" in refused(layout).what
    full = Mock(f_bavail=10, f_frsize=1000, f_files=9**9, f_favail=9**9)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    assert "3 train shards in the space of the raw data" in refused(layout).what


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (kaggle_copies.write_zip, "it holds several splits"),
        (kaggle_copies.write_tree, "it is a folder"),
    ],
)
def test_copies_whose_space_can_not_be_given_back(
    few: MadeSet, tmp_path: Path, write: Callable[[Path, kaggle_copies.Tree], object], why: str
) -> None:
    """One file that holds both splits, and folders."""
    layout = Layout(tmp_path / "data")
    layout.raw_dir.mkdir(parents=True)
    write(layout.raw_dir, kaggle_copies.tree(few))
    assert why in str(refused(layout).detail)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "run --source kaggle",
            "--consume does not work with Kaggle's zip, which holds both splits",
        ),
        (
            "run --source huggingface --output out --dry-run",
            "--consume can't be combined with --output out",
        ),
        ("convert --config recipe.yaml", "only the archives of ImageNet can be downloaded again"),
    ],
)
def test_what_could_not_be_consumed_is_not_downloaded(tmp_path: Path, words: str, why: str) -> None:
    """Refused before any server is asked, also by a dry run;
    of a recipe's data no digest is known.
    """
    (tmp_path / "recipe.yaml").write_text("source: {files: photos/*.JPEG}\n")
    stage, *more = words.split()
    done = command(stage, "data", "--consume", *more, cwd=tmp_path, status=2)
    assert why in done.stderr
    assert not (tmp_path / "data/raw-data").exists()


# what goes wrong midway ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "code"),
    [("bundle", errno.ENOSPC), ("sync", errno.EIO), ("hole", errno.EIO), ("shard", errno.ENOSPC)],
)
def test_a_disk_that_refuses_midway(
    layout: Layout,
    expected: dict[str, bytes],
    place: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Full, or failing, at a bundle, its sync, a hole or a shard:
    an error that says so, and the next run goes on.
    """
    module, name = {
        "bundle": (regroup, "write_all"),
        "sync": (consumption, "sync_file_system"),
        "hole": (consumption, "punch"),
        "shard": (local, "write_all"),
    }[place]
    true, calls = getattr(module, name), itertools.count(1)

    def fails(*given: object) -> object:
        if next(calls) == 2 or place == "shard":
            raise OSError(code, os.strerror(code))
        return true(*given)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fails)
        with pytest.raises(SpaceError if code == errno.ENOSPC else WriteError):
            made(layout)
    made(layout)
    assert states(layout) == expected


def _change_a_digit(path: Path) -> None:
    path.write_bytes(
        re.sub(rb"\d", lambda digit: b"%d" % (int(digit[0]) ^ 1), path.read_bytes(), count=1)
    )


def _start_again(record: Path) -> None:
    value = json.loads(record.read_text())
    del value["crc"]
    record.write_bytes(sealed_line({**value, "rows": -1}))


def _exchange(path: Path) -> None:
    """Put what the other split has in its place."""
    folder = path.parent.with_name("validation")
    if path.is_dir():
        shutil.rmtree(path)
        shutil.copytree(folder / path.name, path)
    else:
        shutil.copy2(folder / path.name, path)


def _without_a_key(record: Path) -> None:
    value = json.loads(record.read_text())
    del value["crc"], value["listing"]
    record.write_bytes(sealed_line(value))


CHANGED = "is gone, or not as --consume wrote it"
LOST = "may exist nowhere else"


@pytest.mark.parametrize(
    ("files", "harm", "said", "detail"),
    [
        ("record.json", _change_a_digit, CHANGED, ""),
        (
            "record.json",
            _start_again,
            "img_train.tar has another size or time than .*record.json says",
            "",
        ),
        (
            "record.json",
            Path.unlink,
            f"record.json {CHANGED}",
            "",
        ),
        ("record.json", _exchange, CHANGED, ""),
        ("record.json", _without_a_key, CHANGED, ""),
        ("listing/names.bin", lambda path: flip(path, -5), CHANGED, ""),
        ("listing/catalog.json", lambda path: flip(path, -5), CHANGED, ""),
        ("listing", _exchange, CHANGED, ""),
        (
            "b*/*",
            lambda path: os.truncate(path, 1),
            f"is not as it was written, and its images {LOST}",
            "",
        ),
        (
            "b*/*",
            lambda path: path.stat().st_size and flip(path, 300),
            LOST,
            "does not match its checksum",
        ),
    ],
    ids=[
        *("number", "first record", "no record", "another split's record", "older record"),
        *("column", "head", "another split's listing", "short bundle", "bit in a bundle"),
    ],
)
def test_what_is_left_midway_and_changed_is_not_gone_by(
    layout: Layout,
    begun: Layout,
    files: str,
    harm: Callable[[Path], object],
    said: str,
    detail: str,
) -> None:
    """A wrong number would give back what is nowhere else:
    it is refused, and what is there stays.
    """
    begin_like(layout, begun)
    for path in existing(layout.consumed("train").folder, files):
        harm(path)
    kept = {
        each: each.read_bytes() for each in existing(layout.consumed_dir, "**/*") if each.is_file()
    }
    for options in (CONSUME, CONSUME.replace(on_damaged="skip")):
        with pytest.raises(InputError, match=said) as found:
            made(layout, options)
        assert detail in found.value.detail
        assert "imagenet-prep download" in found.value.hint
    assert detail or {each: each.read_bytes() for each in kept} == kept
    assert not layout.manifest_path.exists()


@pytest.mark.parametrize("moment", ["midway", "afterwards"])
@pytest.mark.parametrize("source", ["validation", "another set"])
def test_a_record_of_other_raw_data_is_refused(
    layout: Layout, few: MadeSet, begun: Layout, tmp_path: Path, source: str, moment: str
) -> None:
    """A whole record of another split or another set decides nothing:
    every byte stays as it was.
    """
    begin = midway if moment == "midway" else made
    if moment == "midway":
        begin_like(layout, begun)
    else:
        made(layout)
    record = layout.consumed("train").record
    if source == "validation":
        other = layout.consumed("validation").record
    else:
        made_set = make(tmp_path / "other raw", classes=3, per_class=5, validation=7, tiny=True)
        other_layout = filled(tmp_path / "other", made_set)
        begin(other_layout)
        other = other_layout.consumed("train").record
    ours, theirs = record.read_bytes(), other.read_bytes()
    record.write_bytes(theirs)
    other.write_bytes(ours)
    (layout.data_dir / "imagenet-prep/lock").unlink(missing_ok=True)  # of a run that was killed
    before = {
        path: path.read_bytes() for path in list(layout.data_dir.rglob("*")) if path.is_file()
    }
    for options in (CONSUME, PLAIN):
        with pytest.raises(InputError, match=rf"(record\.json|listing) {CHANGED}"):
            made(layout, options)
    assert {
        path: path.read_bytes() for path in list(layout.data_dir.rglob("*")) if path.is_file()
    } == before
    record.write_bytes(ours)
    other.write_bytes(theirs)
    assert made(layout) in ([0, 0], [3, 2])


def test_without_its_record_a_split_is_not_left_out(layout: Layout) -> None:
    """What else is kept tells that there was one, and convert refuses to make less."""
    made(layout)
    before = states(layout)
    layout.consumed("train").record.unlink()
    for options in (CONSUME, PLAIN):
        with pytest.raises(InputError, match=r"record\.json is gone") as found:
            made(layout, options)
        assert "get the raw data again" in found.value.hint
    assert states(layout) == before


@pytest.mark.parametrize("more", [("--consume", "--overwrite"), ("--dry-run",)])
def test_a_split_whose_files_are_lost_is_missed(
    layout: Layout, begun: Layout, more: tuple[str, ...]
) -> None:
    """Without consumed/train, convert refuses to make a set without train images,
    and verify does not pass.
    """
    begin_like(layout, begun)
    shutil.rmtree(layout.consumed("train").folder)
    counts = ("--train-shards", 3, "--validation-shards", 2, "--check", "header", "--workers", 1)
    ended = command("convert", layout.data_dir, "--allow-incomplete", *counts, *more, status=4)
    assert f"{layout.consumed('train').record} is gone" in ended.stderr
    assert f"imagenet-prep download {layout.data_dir}" in ended.stderr
    assert not layout.manifest_path.exists()
    command("verify", layout.data_dir, status=4)


def test_an_archive_that_was_exchanged_before_the_pass_began(
    layout: Layout, few: MadeSet, tmp_path: Path
) -> None:
    """Between the record and the pass the archive is still under its name:
    another one there is not consumed.
    """
    other = filled(tmp_path / "other", few)
    steps = run_until(10_000, lambda: made(other))
    moment = next(
        number for number, step in enumerate(steps, 1) if step.startswith("replace ILSVRC")
    )
    run_until(moment, lambda: made(layout))
    path = layout.raw_dir / "ILSVRC2012_img_train.tar"
    path.write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="its size or time has changed"):
        made(layout)
    assert path.exists()


def test_files_that_were_moved_already_are_not_to_be_moved_away(tmp_path: Path) -> None:
    """With the record they would be lost: they go back first."""
    layout = Layout(tmp_path)
    layout.raw_dir.mkdir()
    names = ("a.tar", "b.tar")
    files = []
    for name in names:
        path = layout.raw_dir / name
        path.write_bytes(b"images")
        stamp = path.stat().st_mtime_ns
        files.append(ConsumedFile(f"raw-data/{name}", "TarFile", 6, stamp, {}))
    consumption = Consumption(
        layout=layout, split="train", files=tuple(files), listing="", shards={}, total=2
    )
    (layout.raw_dir / "a.tar").write_bytes(b"other")
    with pytest.raises(
        InputError, match=r"a.tar is gone, or its size or time has changed"
    ) as caught:
        consumption.take_files()
    assert caught.value.hint.startswith(f"move {consumption.paths.folder} away")
    consumption.paths.files.mkdir(exist_ok=True, parents=True)
    (layout.raw_dir / "b.tar").rename(consumption.paths.files / "b.tar")
    with pytest.raises(
        InputError, match=r"a.tar is gone, or its size or time has changed"
    ) as caught:
        consumption.take_files()
    assert caught.value.hint.startswith(
        f"move the files in {consumption.paths.files} back to {layout.raw_dir}, then move "
    )


# the command line ---------------------------------------------------------------------------------


def test_run_consumes(layout: Layout) -> None:
    """A second run finds everything done, and fetches nothing; image folders can't be had, too."""
    counts = ("--train-shards", 3, "--validation-shards", 2)
    arguments = ("run", layout.data_dir, "--consume", "--allow-incomplete", *counts, "--workers", 1)
    foreseen = prep(*arguments, "--dry-run")
    assert "3 train shards in the space of the raw data" in foreseen.stdout, foreseen.stderr
    ended = command(*arguments)
    assert "--consume: ILSVRC2012_img_train.tar and 1 more" in ended.stderr
    assert "(imagenet-prep download fetches them again)" in ended.stderr
    assert list(layout.raw_dir.glob("*_img_*")) == []
    command(*arguments)
    command(*arguments, "--extract", status=2)
