"""Ranks whose machines have copies of the raw data of their own, as staging to scratch disks makes
them: the same images make one set, and another image is named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from existing import existing
from made_folders import saved
from made_sets import ENGINE, flip
from made_tars import save
from running import PROGRAM, command

from imagenet_prep import ConvertOptions, Layout, convert, untar, verify
from imagenet_prep.datasets.copies import UNKNOWN
from imagenet_prep.demo.archives import make
from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import DataProblemsError, InputError, UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.merge import merge
from imagenet_prep.state.indexes import read_written
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.state.plan_file import load_plan
from imagenet_prep.storage.layout import by_number

SHARDS = ("--allow-incomplete", "--train-shards", "6", "--validation-shards", "2")
OPTIONS = ConvertOptions(train_shards=6, validation_shards=2, allow_incomplete=True)
NOTE = "made from several copies of the images, which were compared by sample"


@dataclass(frozen=True)
class Known:
    """The raw data as archives and as folders; the files and the images of each shard of the set,
    as one machine makes it from the archives.
    """

    archives: Path
    folders: Path
    files: dict[str, bytes]
    images: dict[str, list[str]]

    def images_of(self, rank: int, world: int) -> list[str]:
        """The images of a rank's shards, in order."""
        shards = sorted(self.images, key=by_number)[rank::world]
        return [image for shard in shards for image in self.images[shard]]


def files_of(data: Path) -> dict[str, bytes]:
    """The bytes of each shard and of its index, and what the manifest says of the shards."""
    layout = Layout(data)
    found = [*existing(layout.output_dir, "*-of-*"), *existing(layout.index_dir, "*")]
    contents = {path.name: path.read_bytes() for path in found if path.is_file()}
    text = layout.manifest_path.read_bytes()
    return {**contents, "manifest": text[text.index(b'"shards": {') : text.rindex(b'"crc"')]}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """130 images of 16x16 pixels. Read only."""
    folder = tmp_path_factory.mktemp("known")
    archives, folders = folder / "archives", folder / "other" / "raw-data"
    make(archives, classes=5, per_class=20, validation=30, tiny=True)
    layout = Layout(folder / "data", raw=archives)
    convert(layout, ENGINE, OPTIONS)
    images = {}
    for name, info in load_manifest(layout.manifest_path).shards.items():
        images[name] = list(read_written(layout, info).names)
    files = files_of(layout.data_dir)
    shutil.copytree(archives, folders)
    untar(Layout(folder / "other"), ENGINE)
    for path in existing(folders, "ILSVRC2012_img_*.tar"):
        path.unlink()
    return Known(archives, folders, files, images)


def copy_of(raw: Path, folder: Path, seconds: int = 0) -> Path:
    """A copy of raw data; with times of its own, if they are given."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(raw, folder)
    for path in existing(folder, "**/*") if seconds else []:
        os.utime(path, (seconds, seconds))
    return folder


def change(raw: Path, known: Known, image: str) -> None:
    """Change one byte of an image in a copy, archive or folders; length and times stay."""
    (sound,) = existing(known.folders, f"**/{image}")
    content = sound.read_bytes()
    for path in existing(raw, "**/*"):
        if path.is_file() and (at := path.read_bytes().find(content)) >= 0:
            status = path.stat()
            flip(path, at + content.index(b"\xff\xdb") + 30)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            return
    raise AssertionError(f"{image} is not in {raw}")


def words_of_a_rank(data: Path, raw: Path, rank: int, world: int) -> list[str]:
    """The command line of a rank, without the program."""
    words = ("convert", data, "--raw", raw, *SHARDS, "--workers", 1, "--rank", f"{rank}/{world}")
    return [str(word) for word in words]


def begin(data: Path, raw: Path, rank: int, world: int) -> subprocess.Popen[str]:
    """A rank in a process of its own, beside others."""
    return subprocess.Popen(
        [*PROGRAM, *words_of_a_rank(data, raw, rank, world)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_rank(data: Path, raw: Path, rank: int, world: int, status: int = 0) -> str:
    """What a rank printed, which must end with this status."""
    ran = command(*words_of_a_rank(data, raw, rank, world), status=status)
    return ran.stdout + ran.stderr


def make_rank(data: Path, raw: Path, rank: int, world: int) -> None:
    """Make a rank's shards in this process, which takes a third of the time."""
    convert(Layout(data, raw=raw), ENGINE, OPTIONS, share=Share(rank, world))


def refuse_advice(out: str) -> None:
    """An error must not advise to replace what other ranks made."""
    assert "--overwrite" not in out[out.index("error: ") :]


def finished(data: Path, known: Known) -> tuple[str, ...]:
    """Merge the ranks' work, which must be the known set; what verify notes about it."""
    merge(Layout(data))
    assert files_of(data) == known.files
    verdict = verify(Layout(data), ENGINE)
    assert verdict.problems == ()
    return verdict.notes


# the same images ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "world"), [("times", 4), ("places", 2), ("forms", 4), ("one", 2)])
def test_copies_of_the_same_images_make_one_set(
    known: Known, tmp_path: Path, what: str, world: int
) -> None:
    """With other times at the same place, in other places, as archives and as folders: the bytes of
    one machine's set; the verdict says so, and says nothing if all ranks read one copy.
    """
    for rank in range(world):
        raw = known.archives
        if what == "times":
            raw = copy_of(known.archives, tmp_path / "raw", 1_600_000_000 + rank)
        elif what == "places":
            raw = copy_of(known.archives, tmp_path / f"raw-{rank}", 1_600_000_000 + rank)
        elif what == "forms":
            raw = (known.archives, known.folders)[rank % 2]
        make_rank(tmp_path / "data", raw, rank, world)
    assert (NOTE in finished(tmp_path / "data", known)) == (what != "one")
    layout = Layout(tmp_path / "data", raw=known.folders)
    assert load_plan(layout).samples == {}
    again = copy_of(known.folders, tmp_path / "again", 1_500_000_000)
    made = convert(Layout(layout.data_dir, raw=again), ENGINE, OPTIONS)
    assert [split.made for split in made.splits] == [0, 0]
    assert (NOTE in finished(tmp_path / "data", known)) == (what != "one")


def test_a_convert_of_another_copy_finishes_what_ranks_began(known: Known, tmp_path: Path) -> None:
    """Also at the same place with other times, then again with others: they prove nothing here."""
    data, raw = tmp_path / "data", tmp_path / "raw"
    make_rank(data, copy_of(known.archives, raw, 1_600_000_000), 0, 2)
    for seconds, made in ((1_600_000_001, [3, 1]), (1_600_000_002, [0, 0])):
        layout = Layout(data, raw=copy_of(known.archives, raw, seconds))
        assert [split.made for split in convert(layout, ENGINE, OPTIONS).splits] == made
        assert NOTE in finished(data, known)


# one other image ----------------------------------------------------------------------------------


@pytest.fixture(params=["archives", "folders"])
def sound(request: pytest.FixtureRequest, known: Known) -> Iterator[Path]:
    """The raw data in both forms."""
    return known.archives if request.param == "archives" else known.folders


@pytest.mark.parametrize("where", ["other times", "same times", "other place"])
@pytest.mark.parametrize(("sound", "world"), [("archives", 4), ("folders", 2)], indirect=["sound"])
def test_one_byte_of_an_image_that_this_rank_must_write(
    known: Known, sound: Path, tmp_path: Path, world: int, where: str
) -> None:
    """At the same length, wherever the copy is: the image is named, no shard of this rank stays,
    and with a sound copy the set is the known one.
    """
    data, place, rank = tmp_path / "data", tmp_path / "raw", world - 1
    raw = copy_of(sound, place, 1_600_000_000)
    for other in range(rank):
        make_rank(data, raw, other, world)
    if where == "other place":
        place = tmp_path / "other"
    raw = copy_of(sound, place, 1_600_000_000 + (where == "other times"))
    image = known.images_of(rank, world)[-1]
    change(raw, known, image)
    out = run_rank(data, raw, rank, world, status=4)
    assert f"error: {image} has other bytes than when the set was planned" in out
    refuse_advice(out)
    with pytest.raises(InputError, match=rf"of rank {rank} \(of {world}\)"):
        merge(Layout(data))
    make_rank(data, copy_of(sound, place, 1_600_000_005), rank, world)
    assert NOTE in finished(data, known)


def test_one_byte_of_an_image_that_another_rank_wrote(
    known: Known, sound: Path, tmp_path: Path
) -> None:
    """A copy that differs from a finished shard makes nothing, and the first such image is named;
    nobody is told to replace what others made.
    """
    data = tmp_path / "data"
    make_rank(data, copy_of(sound, tmp_path / "raw", 1_600_000_000), 0, 2)
    raw = copy_of(sound, tmp_path / "raw", 1_600_000_001)
    for image in known.images_of(0, 2)[2:4]:
        change(raw, known, image)
    if sound == known.folders:  # a rank reads what another one listed
        raw = raw.rename(tmp_path / "elsewhere")
    before = {path.name: path.read_bytes() for path in existing(data, "*-of-*")}
    out = run_rank(data, raw, 1, 2, status=2)
    assert f"{known.images_of(0, 2)[2]} (" in out
    assert "has the same name and length as in its shard, but other bytes" in out
    assert "give all ranks the same images and settings" in out
    refuse_advice(out)
    assert {path.name: path.read_bytes() for path in existing(data, "*-of-*")} == before


def test_ranks_that_start_at_once(known: Known, tmp_path: Path) -> None:
    """Whoever is first, its copy counts: no rank ends well with another image."""
    data, copies = tmp_path / "data", [tmp_path / f"raw-{rank}" for rank in range(4)]
    for rank, raw in enumerate(copies):
        copy_of(known.archives, raw, 1_600_000_000 + rank)
    image = known.images_of(3, 4)[0]
    change(copies[3], known, image)
    running = [begin(data, raw, rank, 4) for rank, raw in enumerate(copies)]
    outs = [process.communicate(timeout=120)[0] for process in running]
    assert running[3].returncode == 4 or load_plan(Layout(data)).raw == str(copies[3]), outs
    for process, out in zip(running, outs, strict=True):
        assert process.returncode == 0 or image in out, out
    if running[3].returncode == 4:
        make_rank(data, known.archives, 3, 4)
        assert NOTE in finished(data, known)


class _Machines(ThreadEngine):
    """An engine that says that it has machines."""

    has_machines = True


def test_a_machine_of_an_engine_that_reads_another_copy(known: Known, tmp_path: Path) -> None:
    """What the driver sampled is compared where the shard is made, but for a damaged image, whose
    place a sound one takes.
    """
    raw = copy_of(known.folders, tmp_path / "raw")
    layout, engine = Layout(tmp_path / "data", raw=raw), _Machines(1)
    image, other = known.images_of(0, 2)[0], known.images_of(1, 2)[-1]
    (path,) = existing(raw, f"**/{image}")
    sound = path.read_bytes()
    path.write_bytes(b"x" * len(sound))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    with pytest.raises(DataProblemsError):
        convert(layout, engine, OPTIONS)
    crcs = [crc for split in load_plan(layout).samples.values() for shard in split for crc in shard]
    assert (len(crcs), crcs.count(UNKNOWN)) == (130, 1)
    path.write_bytes(sound)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    layout.shard_path(sorted(known.images, key=by_number)[-1]).unlink()
    change(raw, known, other)
    with pytest.raises(InputError, match=rf"{other} .*other bytes"):
        convert(layout, engine, OPTIONS)
    assert not list(layout.output_dir.glob("validation-00001-of-*"))
    (path,) = existing(raw, f"**/{other}")
    shutil.copy2(existing(known.folders, f"**/{other}")[0], path)
    convert(layout, engine, OPTIONS)
    assert files_of(layout.data_dir) == known.files


def test_arrays_of_one_length(tmp_path: Path) -> None:
    """A recipe's files all have one length: another version of one of them is named."""
    for number in range(8):
        save(tmp_path / "in" / "ab"[number % 2] / f"{number}.npy", saved([number] * 4))
    (tmp_path / "recipe.yaml").write_text("source: {folders: in}\nshards: 4\n")
    layout = Layout(tmp_path / "out")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"), share=Share(0, 2))
    shutil.copytree(tmp_path / "in", tmp_path / "v2")
    (tmp_path / "v2.yaml").write_text("source: {folders: v2}\nshards: 4\n")
    for number in range(8):
        path = tmp_path / "v2" / "ab"[number % 2] / f"{number}.npy"
        path.write_bytes(saved([100] * 4))
        with pytest.raises((InputError, UsageError), match=r"other bytes|other inputs") as caught:
            convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "v2.yaml"), share=Share(1, 2))
        assert path.name in str(caught.value)
        path.write_bytes(saved([number] * 4))
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "v2.yaml"), share=Share(1, 2))
    merge(layout)
    assert verify(layout, ENGINE).problems == ()
