"""stages.repair: exactly the damaged shards are made again with the bytes they had,
or refused and left alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bounded import kill_group
from existing import existing
from made_sets import ENGINE, data_of, edit_manifest, read_catalog, write
from made_tars import save
from msgspec.structs import replace
from running import PROGRAM, command

from imagenet_prep import (
    ConvertOptions,
    Layout,
    annotate,
    convert,
    make_engine,
    repair,
    status,
    untar,
)
from imagenet_prep.cli.printing.verdict_text import print_repair
from imagenet_prep.demo.archives import MadeSet, make
from imagenet_prep.errors import InputError, SpaceError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import options_from
from imagenet_prep.model import ProblemKind
from imagenet_prep.pipeline import RepairRun, verify_and_repair
from imagenet_prep.stages.repair import RepairSummary
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.once

ENGINE_OF_ONE = make_engine("threads", 1)
PART = ConvertOptions(train_shards=48, validation_shards=16, allow_incomplete=True)
TRAIN, OTHER = "train-00007-of-00048", "train-00031-of-00048"
VALIDATION = "validation-00003-of-00016"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """A DATA_DIR with archives, boxes and the 64 shards that convert made of them. Read only."""
    return _converted(tmp_path_factory.mktemp("sound"), made_tiny, PART)


@pytest.fixture
def layout(tmp_path: Path, sound: Path) -> Layout:
    """The test's own copy of ``sound``, times and all."""
    return Layout(Path(shutil.copytree(sound, tmp_path / "data")))


def _converted(
    folder: Path,
    made: MadeSet,
    options: ConvertOptions,
    harm: Callable[[Layout], None] | None = None,
) -> Path:
    layout = Layout(folder)
    layout.raw_dir.mkdir(parents=True)
    for archive in made.archives.values():
        shutil.copy2(archive, layout.raw_dir)
    if harm is not None:
        harm(layout)
    annotate(layout, ENGINE, validation=options.validation_boxes)
    convert(layout, ENGINE, options)
    return folder


# what a repair must leave as it was ---------------------------------------------------------------


def contents(layout: Layout) -> dict[str, bytes]:
    """Every file of a set: shards, indexes, journal, manifest;
    not what verify writes down, nor where images lie.
    """
    left_out = {layout.problems_path, layout.verdict_path, layout.plan_path.parent}
    paths = [*layout.output_dir.glob("*-of-*"), *layout.state_dir.rglob("*")]
    return {
        str(path): path.read_bytes()
        for path in paths
        if path.is_file() and not left_out & {path, *path.parents}
    }


def identities(layout: Layout) -> dict[str, tuple[int, int]]:
    """Inode and time of every shard: another one where it was replaced,
    though the bytes are the same.
    """
    paths = layout.output_dir.glob("*-of-*")
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths if path.is_file()
    }


def mend(layout: Layout, **options: object) -> RepairRun:
    """Verify, repair, verify."""
    return verify_and_repair(layout, ENGINE, **options)  # type: ignore[arg-type]


# damage -------------------------------------------------------------------------------------------


Harm = Callable[[Layout, str, random.Random], None]


def flip(layout: Layout, name: str, draw: random.Random) -> None:
    """One bit, anywhere."""
    content = bytearray(layout.shard_path(name).read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    layout.shard_path(name).write_bytes(content)


def cut(layout: Layout, name: str, draw: random.Random) -> None:
    """A file that ends too early, anywhere."""
    path = layout.shard_path(name)
    os.truncate(path, draw.randrange(1, path.stat().st_size))


def framed(change: Callable[[list[bytes], int], list[bytes]]) -> Harm:
    """Other records, each soundly framed; the change is told the number of one behind the first."""

    def harm(layout: Layout, name: str, draw: random.Random) -> None:
        records = data_of(layout.shard_path(name))
        write(layout.shard_path(name), change(records, draw.randrange(1, len(records))))

    return harm


def delete(layout: Layout, name: str, draw: random.Random) -> None:
    """No file."""
    layout.shard_path(name).unlink()


def empty(layout: Layout, name: str, draw: random.Random) -> None:
    """A file without a byte."""
    layout.shard_path(name).write_bytes(b"")


def stale_index(layout: Layout, name: str, draw: random.Random) -> None:
    """The index of another shard."""
    others = sorted(
        path.name for path in existing(layout.output_dir, "*-of-*") if path.name != name
    )
    own = layout.index_path(name).read_bytes()
    found = next(other for other in others if layout.index_path(other).read_bytes() != own)
    shutil.copy(layout.index_path(found), layout.index_path(name))


def no_index(layout: Layout, name: str, draw: random.Random) -> None:
    """No index."""
    layout.index_path(name).unlink()


def no_listing(layout: Layout, name: str, draw: random.Random) -> None:
    """The other half of an index gone."""
    layout.listing_path(name).unlink()


def exchange(layout: Layout, one: str, other: str) -> None:
    """Two shards under each other's name."""
    aside = layout.output_dir / "aside"
    layout.shard_path(one).rename(aside)
    layout.shard_path(other).rename(layout.shard_path(one))
    aside.rename(layout.shard_path(other))


HARMS: tuple[Harm, ...] = (
    *(flip, cut),
    framed(lambda records, k: records[:k]),  # the last are missing
    framed(lambda records, k: records[:k] + records[k + 1 :]),  # one is gone
    framed(lambda records, k: [*records[:k], records[0], *records[k:]]),  # one occurs twice
    framed(
        lambda records, k: [records[k], *records[1:k], records[0], *records[k + 1 :]]
    ),  # two have changed places
    *(delete, empty, stale_index, no_index, no_listing),
)


def harm_ten(layout: Layout, harms: Sequence[Harm], draw: random.Random) -> list[str]:
    """Damage ten shards, two of them by an exchange; returns their names in order."""
    names = draw.sample(sorted(path.name for path in existing(layout.output_dir, "*-of-*")), 10)
    for harm, name in zip(harms, names, strict=False):
        harm(layout, name, draw)
    exchange(layout, *names[8:])
    return sorted(names)


# what is made again -------------------------------------------------------------------------------


@pytest.mark.parametrize("harms", [HARMS[:8], HARMS[3:]], ids=["first", "last"])
def test_ten_of_64_damaged_shards(layout: Layout, harms: Sequence[Harm]) -> None:
    """After damage of every kind to ten of 64 shards exactly those are made again;
    every byte is as it was before.
    """
    before, files = contents(layout), identities(layout)
    assert len(files) == 64
    names = harm_ten(layout, harms, random.Random(len(harms[0].__name__)))
    untouched = {name: file for name, file in identities(layout).items() if name not in names}
    run = verify_and_repair(layout, make_engine("processes", 2))
    assert run.repair == RepairSummary(tuple(names))
    assert run.verdict.problems == ()
    assert contents(layout) == before
    after = identities(layout)
    assert {name: file for name, file in after.items() if name not in names} == untouched
    assert all(after[name] != files[name] for name in names)
    summary = convert(layout, ENGINE, PART)
    assert [split.made for split in summary.splits] == [0, 0]
    assert contents(layout) == before


def test_more_missing_shards_than_are_listed(
    layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    """Problems are grouped for people, not for repair:
    even all 64 missing shards are made again.
    """
    before = contents(layout)
    names = sorted(identities(layout))
    for name in names:
        layout.shard_path(name).unlink()
    run = mend(layout)
    assert len(run.found.problems) < len(names)
    assert run.repair.made == tuple(names)
    assert contents(layout) == before
    print_repair(run, quiet=False)
    assert capsys.readouterr().out.splitlines() == [
        f"repair: {name} made again (before: missing)" for name in names
    ]


def test_innocent_shard_of_two_that_share_an_image(layout: Layout) -> None:
    """A record of one shard, copied into another, is found twice;
    only the shard that changed is made again.
    """
    before, files = contents(layout), identities(layout)
    foreign = data_of(layout.shard_path(OTHER))[0]
    write(layout.shard_path(TRAIN), [foreign, *data_of(layout.shard_path(TRAIN))[1:]])
    run = mend(layout)
    assert run.repair.made == (TRAIN,)
    assert contents(layout) == before
    assert identities(layout)[OTHER] == files[OTHER]


def test_image_that_was_bad_when_it_was_taken(tmp_path: Path, made_tiny: MadeSet) -> None:
    """What --check header let pass, and --decode finds, is still a problem,
    but its shard is as it was made: let be.
    """
    options = PART.replace(check="header")
    layout = Layout(
        _converted(tmp_path / "data", made_tiny, options, lambda layout: blot(layout, row=5))
    )
    before, files = contents(layout), identities(layout)
    run = mend(layout, depth="decode")
    (problem,) = run.verdict.problems
    assert run.repair == RepairSummary((), (problem.subject,))
    assert (contents(layout), identities(layout)) == (before, files)
    layout.shard_path(problem.subject).unlink()
    assert mend(layout).repair.made == (problem.subject,)
    assert contents(layout) == before


def blot(layout: Layout, row: int, split: str = "train") -> str:
    """Zeroes within the pixels of an image of the archive, whose size and time stay;
    returns the image's name.
    """
    return alter(layout, row, split, slice(-40, -8))


def behead(layout: Layout, row: int, split: str = "train") -> str:
    """The same at the image's beginning: it is no JPEG any more."""
    return alter(layout, row, split, slice(0, 4))


def alter(layout: Layout, row: int, split: str, where: slice) -> str:
    """Zeroes over a part of an image in the archive."""
    archive = layout.archive_path(facts.ARCHIVES[split])
    catalog = read_catalog(archive, split, ENGINE)
    start, length = catalog.offsets[row], catalog.lengths[row]
    stamp = archive.stat().st_mtime_ns
    with archive.open("r+b") as file:
        file.seek(start + where.indices(length)[0])
        file.write(bytes(len(range(*where.indices(length)))))
    os.utime(archive, ns=(stamp, stamp))
    return catalog.names[row]


# other sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"compression": "zlib", "seed": 7},
        {"resize": 8, "quality": 70, "shuffle": False},
        {
            "max_side": 12,
            "quality": 90,
            "compression": "gzip",
            "validation_boxes": True,
            "validation_shards": 1,
        },
    ],
)
def test_settings_come_from_the_manifest(
    tmp_path: Path, made_tiny: MadeSet, change: dict[str, object]
) -> None:
    """A set made with any settings is repaired without naming them."""
    options = PART.replace(**change)  # type: ignore[arg-type]
    layout = Layout(_converted(tmp_path / "data", made_tiny, options))
    manifest = load_manifest(layout.manifest_path)
    assert options_from(manifest) == options
    before = contents(layout)
    names = random.Random(1).sample(sorted(manifest.shards), 4)
    for harm, name in zip((flip, cut, delete, no_index), names, strict=True):
        harm(layout, name, random.Random(name))
    run = mend(layout)
    assert run.repair.made == tuple(sorted(names))
    assert run.verdict.problems == ()
    assert contents(layout) == before
    convert(layout, ENGINE, options)
    assert contents(layout) == before


def test_images_set_aside_stay_aside(tmp_path: Path, made_tiny: MadeSet) -> None:
    """A shard without the images that --on-damaged skip left out becomes just that again."""
    bad: list[str] = []
    options = PART.replace(on_damaged="skip")
    data_dir = _converted(
        tmp_path / "data", made_tiny, options, lambda layout: bad.append(behead(layout, row=9))
    )
    layout = Layout(data_dir)
    manifest = load_manifest(layout.manifest_path)
    assert options_from(manifest) == options
    (name,) = (name for name, info in manifest.shards.items() if info.set_aside)
    assert manifest.shards[name].set_aside == (bad[0],)
    before = contents(layout)
    empty(layout, name, random.Random(1))
    empty(layout, VALIDATION, random.Random(1))
    assert mend(layout).repair.made == (name, VALIDATION)
    assert contents(layout) == before


# where the raw data may be ------------------------------------------------------------------------


def test_folders_in_place_of_archives(layout: Layout, tmp_path: Path) -> None:
    """Shards that were made from archives are repaired from image folders,
    which are not written to.
    """
    untar(layout, ENGINE)
    raw = tmp_path / "raw"
    raw.mkdir()
    for split in ("train", "validation"):
        layout.images_dir(split).rename(raw / split)
    shutil.copy(layout.boxes_csv, raw)
    shutil.rmtree(layout.raw_dir)
    before = contents(layout)
    for name in (TRAIN, VALIDATION):
        flip(layout, name, random.Random(name))
    for folder in (raw, raw / "train", raw / "validation"):
        folder.chmod(0o555)
    listing = {path: path.stat().st_mtime_ns for path in existing(raw, "**/*")}
    elsewhere = replace(layout, raw=raw)
    assert mend(elsewhere).repair.made == (TRAIN, VALIDATION)
    assert contents(layout) == before
    assert {path: path.stat().st_mtime_ns for path in existing(raw, "**/*")} == listing


# raw data that is not the same --------------------------------------------------------------------


def test_altered_image(layout: Layout) -> None:
    """An image altered in place, size and time kept:
    its shard is refused and stays as found, the others are made.
    """
    before = contents(layout)
    filename = blot(layout, row=17)
    name = shard_of(layout, filename)
    other = OTHER if name != OTHER else TRAIN
    flip(layout, name, random.Random(1))
    delete(layout, other, random.Random(1))
    found = layout.shard_path(name).read_bytes()
    with pytest.raises(InputError, match="can't be made again with the same content") as caught:
        mend(layout)
    assert caught.value.exit_code == 4
    assert name in caught.value.what
    assert filename in caught.value.detail
    assert len(str(caught.value).splitlines()) == 3
    assert layout.shard_path(name).read_bytes() == found
    assert not layout.partial_dir.exists()
    assert contents(layout) == {**before, str(layout.shard_path(name)): found}


def shard_of(layout: Layout, filename: str) -> str:
    """The train shard that holds an image."""
    for path in existing(layout.output_dir, "train-*"):
        if any(read_record(memoryview(data)).filename == filename for data in data_of(path)):
            return path.name
    raise AssertionError(filename)


def _other_archives(layout: Layout) -> None:
    make(layout.raw_dir, classes=5, per_class=60, validation=80, tiny=True)


def _one_image_less(layout: Layout) -> None:
    untar(layout, ENGINE)
    layout.archive_path(facts.ARCHIVES["train"]).unlink()
    sorted(layout.images_dir("train").glob("*/*.JPEG"))[100].unlink()


def _one_box_less(layout: Layout) -> None:
    lines = layout.boxes_csv.read_text().splitlines(keepends=True)
    layout.boxes_csv.write_text("".join(lines[1:]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _other_archives,
            "the train images in .*number is the same, 300, but their names, sizes, labels or order differ",
        ),
        (_one_image_less, "the train images in .*expected 300 images, got 299"),
        (
            _one_box_less,
            (
                "is not the file that annotate wrote.*expected 390 boxes .*got 389 .*imagenet-prep "
                "annotate"
            ),
        ),
    ],
)
def test_other_raw_data_is_refused_at_once(
    layout: Layout, change: Callable[[Layout], None], words: str
) -> None:
    """Images of other names, sizes or number, and other boxes,
    are refused before any work, whichever shard it is.
    """
    flip(layout, TRAIN, random.Random(1))
    before, files = contents(layout), identities(layout)
    change(layout)
    with pytest.raises(InputError, match=f"(?s){words}"):
        mend(layout)
    assert (contents(layout), identities(layout)) == (before, files)


def _move_box(layout: Layout) -> str:
    layout.annotate_path.unlink()
    lines = layout.boxes_csv.read_text().splitlines()
    filename = lines[0].split(",")[0]
    layout.boxes_csv.write_text(
        "\n".join([f"{filename},0.1000,0.1000,0.2000,0.2000", *lines[1:]]) + "\n"
    )
    return filename


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_move_box, "{} now gives another record than the shard's index lists"),
        (lambda layout: behead(layout, row=17), "{}"),
    ],
    ids=["a box elsewhere", "no image any more"],
)
def test_an_image_that_changed_is_named(
    layout: Layout, change: Callable[[Layout], str], said: str
) -> None:
    """As many boxes as before, but one elsewhere, or an image that can't be used now:
    its shard is refused.
    """
    filename = change(layout)
    empty(layout, shard_of(layout, filename), random.Random(1))
    before = contents(layout)
    with pytest.raises(InputError, match="can't be made again with the same content") as caught:
        mend(layout)
    assert said.format(filename) in caught.value.detail
    assert "version" not in caught.value.hint
    assert contents(layout) == before


def test_another_codec_is_named(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Other versions of the codec do no harm if they make the same bytes;
    if they don't, the error names both.
    """
    options = PART.replace(resize=8)
    layout = Layout(_converted(tmp_path / "data", made_tiny, options))
    layout.plan_path.unlink()
    edit_manifest(
        layout, lambda manifest: manifest["settings"]["reencode"].update(codec="Pillow 9, by hand")
    )
    before = contents(layout)
    flip(layout, TRAIN, random.Random(1))
    assert mend(layout).repair.made == (TRAIN,)
    assert contents(layout) == before
    # bytes as another encoder might make them
    edit_manifest(layout, lambda manifest: manifest["settings"]["reencode"].update(quality=20))
    flip(layout, TRAIN, random.Random(1))
    with pytest.raises(InputError, match="with the same content") as caught:
        mend(layout)
    assert "the codec (reencode in manifest.json)" in caught.value.hint


# what can't be repaired ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_ours", "hint"), [(True, "imagenet-prep convert again"), (False, "get sound copies")]
)
def test_no_manifest(layout: Layout, is_ours: bool, hint: str) -> None:
    """Without a manifest nothing is touched: a conversion that was stopped goes on with convert."""
    layout.manifest_path.unlink()
    if not is_ours:
        shutil.rmtree(layout.state_dir)
    flip(layout, TRAIN, random.Random(1))
    before = contents(layout)
    with pytest.raises(InputError, match=hint):
        mend(layout)
    assert contents(layout) == before


def test_folder_in_the_place_of_a_file(layout: Layout) -> None:
    """A folder where a file must go is named; nothing is removed that isn't ours."""
    path = layout.index_path(TRAIN)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=f"{path} is a folder"):
        repair(layout, ENGINE, {TRAIN: (ProblemKind.UNREADABLE,)})
    assert path.is_dir()


def test_disk_too_small(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """With less space than the new shards need beside the old ones it is refused at the start."""
    flip(layout, TRAIN, random.Random(1))
    before = contents(layout)
    found, size = os.statvfs(layout.output_dir), layout.shard_path(TRAIN).stat().st_size

    def with_free(free: int) -> os.statvfs_result:
        return os.statvfs_result((1, 1, *found[2:4], free, *found[5:]))

    monkeypatch.setattr(os, "statvfs", lambda _: with_free(size - 1))
    with pytest.raises(SpaceError, match="for 1 shard made again"):
        repair(layout, ENGINE, {TRAIN: (ProblemKind.BAD_CRC,)})
    assert contents(layout) == before
    monkeypatch.setattr(os, "statvfs", lambda _: with_free(size))
    assert repair(layout, ENGINE, {TRAIN: (ProblemKind.BAD_CRC,)}).made == (TRAIN,)


# other processes ----------------------------------------------------------------------------------


def _left(layout: Layout) -> tuple[Path, Path]:
    """What a killed run left, and the file of a rank of the same plan, which may be running."""
    plan = load_plan(layout)
    assert plan is not None
    dead, living = (
        layout.partials_dir / "host-7-0a/x",
        layout.partials_dir / f"rank-{plan.key}-host-8-0b/x",
    )
    for path in (dead, living):
        save(path, bytes(1000))
    return dead, living


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_a_killed_run_left_goes(is_damaged: bool, layout: Layout) -> None:
    """A repair removes unfinished files of dead runs,
    also if no shard is to be made again, and spares ranks.
    """
    before, (dead, living) = contents(layout), _left(layout)
    if is_damaged:
        flip(layout, TRAIN, random.Random(1))
    mend(layout)
    assert not dead.parent.exists()
    assert living.read_bytes() == bytes(1000)
    shutil.rmtree(layout.partials_dir)
    assert contents(layout) == before


def test_a_refused_repair_leaves_every_byte(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Space is compared before unfinished files of other runs are removed;
    what these hold counts as free.
    """
    dead, _ = _left(layout)
    delete(layout, TRAIN, random.Random(1))
    before, found, shard = (
        contents(layout),
        os.statvfs(layout.data_dir),
        load_manifest(layout.manifest_path),
    )
    assert shard is not None
    needed = 2 * shard.shards[TRAIN].size - 1000

    def free(size: int) -> None:
        sized = os.statvfs_result((1, 1, size, size, size, *found[5:]))
        monkeypatch.setattr(os, "statvfs", lambda _: sized)

    free(needed - 1)
    with pytest.raises(SpaceError):
        repair(layout, ENGINE_OF_ONE, {TRAIN: [ProblemKind.MISSING_SHARD]})
    assert contents(layout) == before
    free(needed)
    repair(layout, ENGINE_OF_ONE, {TRAIN: [ProblemKind.MISSING_SHARD]})
    assert not dead.exists()


def test_kills(layout: Layout) -> None:
    """kill -9 of the whole group at any moment of a repair, then another repair:
    every byte is as it was.
    """
    before = contents(layout)
    draw = random.Random(1)
    call = [*PROGRAM, "repair", str(layout.data_dir), "--workers", "2", "--quiet"]
    began = time.monotonic()
    assert subprocess.run([*call, "--depth", "quick"], stdout=subprocess.DEVNULL).returncode == 0
    latest = 3 * (time.monotonic() - began)
    met = tries = 0
    while met < 3:
        tries += 1
        assert tries < 50, "the kills come too late"
        for harm, name in zip(
            itertools.cycle(HARMS), sorted(identities(layout))[::3], strict=False
        ):
            harm(layout, name, draw)
        process = subprocess.Popen(call, start_new_session=True, stdout=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            began = time.monotonic()
            process.wait(draw.uniform(latest / 6, latest))
            latest = time.monotonic() - began
        met += process.returncode is None
        kill_group(process)
        assert subprocess.run(call, stdout=subprocess.DEVNULL).returncode == 0
        assert contents(layout) == before


# the command --------------------------------------------------------------------------------------


def test_command_repairs(layout: Layout) -> None:
    """Each shard that was made again is printed with what was wrong, then the verdict;
    exit 0, also with --quiet.
    """
    before = contents(layout)
    delete(layout, TRAIN, random.Random(1))
    empty(layout, VALIDATION, random.Random(1))
    result = command("repair", layout.data_dir, "--workers", "2")
    lines = [line for line in result.stdout.splitlines() if line.startswith("repair: ")]
    assert [line.split()[1] for line in lines] == [TRAIN, VALIDATION]
    assert "(before: missing)" in lines[0]
    assert "incomplete: the shards of ILSVRC2012 hold" in result.stdout
    assert result.stdout.splitlines()[-1] == "repaired: 3 images"
    assert contents(layout) == before
    again = command("repair", layout.data_dir, "--workers", "1", "--depth", "decode")
    assert again.stdout.splitlines()[0] == "repair: nothing to make again"
    assert "repair:" not in command("repair", layout.data_dir, "--depth", "quick", "--quiet").stdout


def test_command_when_problems_remain(layout: Layout) -> None:
    """A stray file is exit 3, and the last words say what to do;
    the damaged shard was made again.
    """
    (layout.output_dir / "train-00001-of-00002").touch()
    flip(layout, TRAIN, random.Random(1))
    result = command("repair", layout.data_dir, status=3)
    assert f"repair: {TRAIN} made again" in result.stdout
    assert "train-00001-of-00002" in result.stdout
    assert "1 problem found." in result.stdout


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", 0), ("reencode", {"resize": "8", "max_side": None, "quality": 90})],
)
def test_settings_that_cannot_be_understood(layout: Layout, key: str, value: object) -> None:
    """Settings that no conversion of ours wrote are refused; status then leaves the options out."""
    edit_manifest(layout, lambda manifest: manifest["settings"].update({key: value}))
    flip(layout, TRAIN, random.Random(1))
    before = contents(layout)
    with pytest.raises(InputError):
        mend(layout)
    assert contents(layout) == before
    layout.shard_path(TRAIN).unlink()
    assert status(layout).following.startswith("imagenet-prep ")


def test_only_the_raw_data_of_damaged_shards_is_needed(layout: Layout) -> None:
    """Train shards are repaired without validation images; validation shards then are refused."""
    before = contents(layout)
    layout.archive_path(facts.ARCHIVES["validation"]).unlink()
    flip(layout, TRAIN, random.Random(1))
    assert mend(layout).repair.made == (TRAIN,)
    assert contents(layout) == before
    flip(layout, VALIDATION, random.Random(1))
    with pytest.raises(InputError, match="no validation images"):
        mend(layout)
