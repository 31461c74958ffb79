"""Which finished shards are gone on with: images may move and lose their times;
what was written to is not believed.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from existing import existing
from made_folders import saved
from made_sets import ENGINE, PART, converted, copied, flip
from made_tars import save

from imagenet_prep import Layout, annotate, convert, untar, verify
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import UsageError
from imagenet_prep.model import Silent
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.state.journal import Journal, sealed_line
from imagenet_prep.state.plan_file import load_plan

OTHERS = "shards? (was|were) made from other inputs or with other settings"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Layout:
    """A whole set, made from archives that lie in its DATA_DIR. Read only."""
    return converted(tmp_path_factory.mktemp("sound") / "data", made_tiny)


@pytest.fixture
def layout(tmp_path: Path, sound: Layout) -> Layout:
    """The test's own copy of ``sound``, which knows its own place."""
    layout = copied(sound, tmp_path / "data")
    convert(layout, ENGINE, PART)
    return layout


def archive_of(layout: Layout) -> Path:
    """The archive of train."""
    return layout.raw_dir / "ILSVRC2012_img_train.tar"


def shards(layout: Layout) -> dict[str, tuple[int, bytes]]:
    """When each shard was written, and its bytes."""
    found = existing(layout.output_dir, "*-of-*")
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def contents(layout: Layout) -> dict[str, bytes]:
    """The bytes of each shard."""
    return {name: content for name, (_, content) in shards(layout).items()}


def made(layout: Layout, **options: bool) -> list[int]:
    """How many shards of each split convert makes."""
    return [split.made for split in convert(layout, ENGINE, PART.replace(**options)).splits]


def to_folders(layout: Layout) -> None:
    """Unpack the archives, and take them away."""
    untar(layout, ENGINE)
    for path in existing(layout.raw_dir, "ILSVRC2012_img_*.tar"):
        path.unlink()


# what is gone on with -----------------------------------------------------------------------------


def test_from_archives_to_folders_nothing_is_made(layout: Layout) -> None:
    """Untarred and the archives taken away, every shard stands as it was;
    one that is lost gets its bytes again.
    """
    before = shards(layout)
    to_folders(layout)
    assert made(layout) == [0, 0]
    assert shards(layout) == before
    assert verify(layout, ENGINE).problems == ()
    layout.shard_path("train-00003-of-00008").unlink()
    assert made(layout) == [1, 0]
    assert contents(layout) == {name: content for name, (_, content) in before.items()}


# what is not --------------------------------------------------------------------------------------


def refused(layout: Layout, word: str) -> None:
    """Convert refuses to go on, says so, and changes nothing."""
    before = shards(layout), layout.journal_path.read_bytes(), layout.manifest_path.read_bytes()
    with pytest.raises(UsageError, match=OTHERS) as caught:
        made(layout)
    assert word in caught.value.detail
    assert (
        shards(layout),
        layout.journal_path.read_bytes(),
        layout.manifest_path.read_bytes(),
    ) == before


@pytest.mark.parametrize(("what", "count"), [("archive", 8), ("an image", 1)])
def test_what_was_written_to_is_named(layout: Layout, what: str, count: int) -> None:
    """With another time it may hold other images: its shards are made again on --overwrite only.

    Once images have moved to folders, those are what must not be written to; one image is one
    shard.
    """
    before, written = contents(layout), archive_of(layout)
    if what == "an image":
        to_folders(layout)
        assert made(layout) == [0, 0]
        written = existing(layout.raw_dir / "train", "*/*.JPEG")[0]
    os.utime(written, ns=(1, 1))
    refused(
        layout,
        f"the file times of {written} differ: other images, or a copy "
        if what == "archive"
        else str(written.parent),
    )
    assert made(layout, overwrite=True) == [count, 0]
    assert contents(layout) == before
    assert made(layout) == [0, 0]


def test_another_box_is_refused(layout: Layout) -> None:
    """Boxes are items' own: two images that exchange theirs are another set,
    wherever the images are.
    """
    annotate(layout, ENGINE)
    assert made(layout, overwrite=True)[0] > 0
    to_folders(layout)
    assert made(layout) == [0, 0]
    content = layout.boxes_csv.read_text()
    first, *_, last = [line.split(",")[0] for line in content.splitlines()]
    content = content.replace(first, "?").replace(last, first).replace("?", last)
    layout.boxes_csv.write_text("".join(sorted(content.splitlines(keepends=True))))
    layout.annotate_path.unlink()
    refused(layout, "changed since then: boxes or columns of some images")


def other_bytes(path: Path, start: bytes, at: int) -> None:
    """Change one byte of a file, ``at`` bytes after ``start``; its length stays."""
    flip(path, path.read_bytes().index(start) + at)


def test_a_copy_that_holds_other_images_of_the_same_lengths(layout: Layout, tmp_path: Path) -> None:
    """Where images lie elsewhere, their bytes are looked at:
    names and lengths alone don't tell what they hold.
    """
    elsewhere = shutil.copytree(layout.raw_dir, tmp_path / "raw")
    other_bytes(elsewhere / archive_of(layout).name, b"\xff\xdb", 30)
    refused(Layout(layout.data_dir, raw=elsewhere), "other bytes")
    assert made(layout) == [0, 0]
    assert made(Layout(layout.data_dir, raw=elsewhere), overwrite=True) == [1, 0]
    assert made(Layout(layout.data_dir, raw=elsewhere)) == [0, 0]


def test_a_shard_that_comes_out_otherwise_is_named(layout: Layout) -> None:
    """A byte of an image changed, and neither length nor time:
    the shard that is made again says what it was before.
    """
    known = Journal(layout.journal_path)
    status = archive_of(layout).stat()
    other_bytes(archive_of(layout), b"\xff\xdb", 30)
    os.utime(archive_of(layout), ns=(status.st_atime_ns, status.st_mtime_ns))
    for path in existing(layout.output_dir, "train-*"):
        path.unlink()
    progress = Silent()
    assert [split.made for split in convert(layout, ENGINE, PART, progress=progress).splits] == [
        8,
        0,
    ]
    (note,) = (
        note for note in map(str, progress.notes) if "differs from the earlier shard" in note
    )
    name = note.split()[0]
    before, now = known.get(name), Journal(layout.journal_path).get(name)
    assert before.digest != now.digest
    assert (
        f"expected {before.records} records in {before.size:,} bytes, digest {before.digest[:12]}; "
        in note
    )
    assert f"got {now.records} records in {now.size:,} bytes, digest {now.digest[:12]}" in note


@pytest.mark.parametrize("schema", [{}, {"schema": 1}, {"schema": 3}])
def test_a_plan_of_another_schema_is_none(layout: Layout, schema: dict[str, int]) -> None:
    """Its seal may be right: nobody knows what its fields mean."""
    value = json.loads(layout.plan_path.read_bytes())
    del value["schema"], value["crc"]
    layout.plan_path.write_bytes(sealed_line({**value, "schema": 2}))
    assert load_plan(layout) is not None
    layout.plan_path.write_bytes(sealed_line({**value, **schema}))
    assert load_plan(layout) is None


@pytest.mark.parametrize("content", [b"", b'{"crc": "00000000", "schema": 1}\n'])
def test_without_a_plan_that_can_be_understood_images_are_compared(
    layout: Layout, content: bytes
) -> None:
    """What the plan knew of places is lost: shards are compared with images,
    and the plan is written again.
    """
    layout.plan_path.unlink()
    assert made(layout) == [0, 0]
    plan = layout.plan_path.read_bytes()
    layout.plan_path.write_bytes(content)
    before = shards(layout)
    assert (made(layout), shards(layout), layout.plan_path.read_bytes()) == ([0, 0], before, plan)
    layout.plan_path.write_bytes(content)
    other_bytes(archive_of(layout), b"\xff\xdb", 30)
    refused(layout, "other bytes")


# when it is killed --------------------------------------------------------------------------------


def test_killed_while_it_makes_them_again(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of the archive as it was are not believed because others were
    made from it as it is.
    """
    before = contents(layout)
    os.utime(archive_of(layout), ns=(1, 1))
    append, appended = Journal.append, []

    def killed(journal: Journal, *given: object) -> None:
        appended.append(given)
        if len(appended) > 3:
            raise KeyboardInterrupt
        append(journal, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            made(layout, overwrite=True)
    assert not layout.manifest_path.exists()
    assert 0 < made(layout)[0] <= 5
    assert contents(layout) == before
    assert made(layout) == [0, 0]


# a recipe's set -----------------------------------------------------------------------------------


def a_recipe(folder: Path) -> None:
    """Three files of one length in two classes."""
    for number, name in enumerate(("a/0.npy", "a/1.npy", "b/2.npy")):
        save(folder / "in" / name, saved([number] * 4))
    (folder / "recipe.yaml").write_text("source: {folders: in}\nshards: 2\n")


def made_by(folder: Path, recipe: str = "recipe.yaml") -> list[int]:
    """How many shards convert makes by a recipe."""
    dataset = RecipeSet.read(folder / recipe)
    return [split.made for split in convert(Layout(folder / "out"), ENGINE, dataset=dataset).splits]


@pytest.mark.parametrize(
    "moves",
    [(("a/1.npy", "b/1.npy"),), (("a/0.npy", "t"), ("b/2.npy", "a/0.npy"), ("t", "b/2.npy"))],
)
def test_images_of_other_classes_are_other_images(
    tmp_path: Path, moves: tuple[tuple[str, str], ...]
) -> None:
    """A file that goes to another class, and two of one length that exchange their places,
    are not passed over.
    """
    a_recipe(tmp_path)
    made_by(tmp_path)
    for old, new in moves:
        (tmp_path / "in" / old).rename(tmp_path / "in" / new)
        os.utime(tmp_path / "in" / new)
    with pytest.raises(UsageError, match=OTHERS):
        made_by(tmp_path)


def test_a_recipe_that_names_another_version_of_the_data(tmp_path: Path) -> None:
    """Arrays are all of one length: a folder of others with the same names is no move,
    not even begun and stopped.
    """
    a_recipe(tmp_path)
    made_by(tmp_path)
    layout, before = Layout(tmp_path / "out"), shards(Layout(tmp_path / "out"))
    for number, path in enumerate(
        existing(shutil.copytree(tmp_path / "in", tmp_path / "v2"), "*/*.npy")
    ):
        path.write_bytes(saved([100 + number] * 4))
    (tmp_path / "v2.yaml").write_text("source: {folders: v2}\nshards: 2\n")
    with pytest.raises(UsageError, match=f"2 {OTHERS}"):
        made_by(tmp_path, "v2.yaml")
    assert shards(layout) == before
    layout.shard_path("train-00001-of-00002").unlink()
    layout.manifest_path.unlink()
    with pytest.raises(UsageError, match=f"{OTHERS}"):
        made_by(tmp_path, "v2.yaml")
    assert made_by(tmp_path) == [1]
    assert contents(layout) == {name: content for name, (_, content) in before.items()}
