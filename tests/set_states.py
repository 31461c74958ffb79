"""Folders in every state that SetState knows, each made by the real event that leads there."""

from __future__ import annotations

import pkgutil
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from existing import existing
from made_sets import ENGINE, data_of, make_flowers, write

from imagenet_prep import Layout, convert
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards.share import Share

RECIPE = (
    "source: {folders: data}\nsplits: {train: 0.75, validation: 0.25}\nshards: {train: 4, "
    "validation: 2}\n"
    "first_label: 1\n"
)
GROWING = RECIPE + "grow: true\n"
OTHER = RECIPE.replace("first_label: 1", "first_label: 5")
"""Records of other bytes and the same lengths: the sizes of the shards are equal."""


class Stopped(BaseException):
    """A run was killed here: no ``except Exception`` sees it."""


@contextmanager
def stopped_before(patch: pytest.MonkeyPatch, target: str, calls: int = 1) -> Iterator[None]:
    """Kill the run of the block when it calls ``target``, such as "module:Type.method",
    for the ``calls``-th time.
    """
    place, _, name = target.replace(":", ".").rpartition(".")
    owner = pkgutil.resolve_name(place)
    real, count = getattr(owner, name), 0

    def call(*arguments: object, **options: object) -> object:
        nonlocal count
        count += 1
        if count >= calls:
            raise Stopped
        return real(*arguments, **options)

    with patch.context() as inner:
        inner.setattr(owner, name, call)
        with suppress(Stopped):
            yield
    assert count >= calls, f"{target} was not called"


class Folder:
    """A folder with data, a recipe, and the set ``out`` in some state."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, patch
        self.layout = Layout(root / "out")

    def convert(
        self, text: str = RECIPE, share: Share | None = None, *, overwrite: bool = False
    ) -> None:
        """Make the set of a recipe, or a rank's part of it."""
        path = self.root / "recipe.yaml"
        path.write_text(text)
        dataset = RecipeSet.read(path)
        options = dataset.options.replace(overwrite=overwrite)
        convert(self.layout, ENGINE, options, dataset=dataset, share=share)

    def add_images(self) -> None:
        """More images for the set to grow by."""
        extra = make_flowers(self.root / "more", 4)
        for path in existing(extra, "*/*.jpg"):
            shutil.copy2(path, self.root / "data" / path.parent.name / f"new-{path.name}")


def fresh(folder: Folder) -> None:
    """Nothing was started."""


def finished(folder: Folder) -> None:
    """A whole set."""
    folder.convert()


def unfinished(folder: Folder) -> None:
    """Killed after some of the shards."""
    with stopped_before(folder.patch, "imagenet_prep.state.journal.Journal.append", 4):
        folder.convert()


def split_absent(folder: Folder) -> None:
    """Planned, and all shards of one split are not there."""
    folder.convert()
    folder.layout.manifest_path.unlink()
    for path in existing(folder.layout.output_dir, "validation-*"):
        path.unlink()


def killed_growth(folder: Folder) -> None:
    """Killed when the first shard of a growth had its name."""
    folder.convert(GROWING)
    folder.add_images()
    with stopped_before(folder.patch, "imagenet_prep.state.journal.Journal.append", 2):
        folder.convert(GROWING)


def claimed_growth(folder: Folder) -> None:
    """Killed when the plan of a growth was saved, beside the manifest from before."""
    folder.convert(GROWING)
    folder.add_images()
    with stopped_before(folder.patch, "imagenet_prep.stages.convert:remove_superseded"):
        folder.convert(GROWING)


def killed_overwrite(folder: Folder) -> None:
    """Killed when the new plan was claimed, and no file of the old set was removed."""
    folder.convert(OTHER)
    with stopped_before(folder.patch, "imagenet_prep.state.replacement.Replacement.finish"):
        folder.convert(overwrite=True)


def half_overwritten(folder: Folder) -> None:
    """Killed when one shard of the old set was removed."""
    folder.convert(OTHER)
    with stopped_before(folder.patch, "imagenet_prep.state.replacement.remove_if_same", 2):
        folder.convert(overwrite=True)


def ranks_not_merged(folder: Folder) -> None:
    """All ranks are done."""
    for rank in range(2):
        folder.convert(share=Share(rank, 2))


def one_rank(folder: Folder) -> None:
    """One of two ranks has run."""
    folder.convert(share=Share(1, 2))


def lost_manifest(folder: Folder) -> None:
    """Every shard is there, and no manifest."""
    folder.convert()
    folder.layout.manifest_path.unlink()


def damaged_manifest(folder: Folder) -> None:
    """A byte of the manifest has changed."""
    folder.convert()
    content = folder.layout.manifest_path.read_bytes()
    folder.layout.manifest_path.write_bytes(content.replace(b'"records": ', b'"records": 1', 1))


def lost_journal(folder: Folder) -> None:
    """A finished set without its journal."""
    folder.convert()
    folder.layout.journal_path.unlink()


def lost_plan(folder: Folder) -> None:
    """A finished set without its plan."""
    folder.convert()
    shutil.rmtree(folder.layout.plan_path.parent)


def only_journal(folder: Folder) -> None:
    """Plan and manifest are gone."""
    lost_plan(folder)
    folder.layout.manifest_path.unlink()


def copied_elsewhere(folder: Folder) -> None:
    """Manifest, shards and indexes, without plan and journal."""
    lost_plan(folder)
    folder.layout.journal_path.unlink()


def older_manifest(folder: Folder) -> None:
    """A set that has grown, beside the manifest from before."""
    folder.convert(GROWING)
    manifest = folder.layout.manifest_path.read_bytes()
    folder.add_images()
    folder.convert(GROWING)
    folder.layout.manifest_path.write_bytes(manifest)


def mixed_generations(folder: Folder) -> None:
    """A shard of an earlier number of shards stays beside a finished set."""
    folder.convert()
    shard = folder.layout.shard_path("train-00000-of-00004")
    shutil.copy2(shard, shard.with_name("train-00000-of-00003"))


def lost_shard(folder: Folder) -> None:
    """A finished set, and one of its shards is gone."""
    folder.convert()
    folder.layout.shard_path("train-00001-of-00004").unlink()


def foreign(folder: Folder) -> None:
    """Shards of another program: records of the same images, and no word of ours."""
    folder.convert()
    shutil.rmtree(folder.layout.state_dir)
    for path in existing(folder.layout.output_dir, "*-of-*"):
        write(path, data_of(path))


STATES: dict[Callable[[Folder], None], str] = {
    fresh: "nothing",
    finished: "finished",
    lost_journal: "finished",
    lost_plan: "finished",
    copied_elsewhere: "finished",
    unfinished: "unfinished",
    split_absent: "unfinished",
    killed_growth: "unfinished",
    claimed_growth: "unfinished",
    lost_manifest: "unfinished",
    damaged_manifest: "unfinished",
    older_manifest: "unfinished",
    killed_overwrite: "replacing",
    half_overwritten: "replacing",
    ranks_not_merged: "part",
    one_rank: "part",
    only_journal: "contradictory",
    mixed_generations: "contradictory",
    lost_shard: "contradictory",
    foreign: "foreign",
}
"""What makes each state, and the word of SetState for it."""
